//! How the tests call the binary.
#![allow(dead_code)] // each test uses some of it

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Calls `supple` with these words.
pub(crate) fn supple(words: &[&str]) -> Output {
    command(words).output().expect("the binary runs")
}

/// A call that is yet to be made.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supple"));
    command.args(words).stdin(Stdio::null());
    command
}

/// What was printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is text")
}

/// What was said.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is text")
}

/// The JSON document of a call that must succeed.
pub(crate) fn json(words: &[&str]) -> Value {
    let output = supple(words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}\n{}", stdout(&output)))
}

/// Asserts that the call is refused with status 2, and gives what was said.
pub(crate) fn refused(words: &[&str]) -> String {
    let output = supple(words);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?} printed {}", stdout(&output));
    said
}

/// A file of this test in the build's folder for temporary files, not there yet.
pub(crate) fn fresh_file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}
