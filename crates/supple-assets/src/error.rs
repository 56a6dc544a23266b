//! What is wrong with a file, and what was made of it that its author should know.

use std::path::{Path, PathBuf};
pub use supple::settings::plain;

/// Why a file could not be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {what}; {remedy} [{code}]", file.display(), place.as_ref().map(|p| format!(", {p}")).unwrap_or_default())]
pub struct FileError {
    /// Stable code, listed in `docs/errors.md`: `file/…`.
    pub code: &'static str,
    /// The file.
    pub file: PathBuf,
    /// Where in it: a line and column, a node, a bone, a joint.
    pub place: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl FileError {
    /// An error about a file as a whole.
    pub fn new(code: &'static str, file: &Path, what: impl Into<String>, remedy: impl Into<String>) -> FileError {
        FileError { code, file: file.to_owned(), place: None, what: what.into(), remedy: remedy.into() }
    }

    /// The same error, with its place in the file.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> FileError {
        self.place = Some(place.into());
        self
    }
}

/// Something that was changed, guessed or left out when a file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Stable code, listed in `docs/errors.md`: `import/…`.
    pub code: &'static str,
    /// The node, bone, link or joint it is about.
    pub part: String,
    /// What was done, and what to change in the file if it was not meant so.
    pub text: String,
}
