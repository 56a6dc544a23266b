//! What can end a command: a wrong call (exit status 2), a run that failed (1), or a reader that went away (0).

use crate::terminal::harmless;
use std::fmt::{Display, Write as _};
use std::io;
use std::path::Path;
use supple::scenes::catalogue;
use supple::{SceneError, StepError, TakeError};
use supple_assets::FileError;
use supple_studio::StudioError;

/// What to do about takes that cannot be read.
const TAKE_HELP: &str = "check that the file is whole and of this version";

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Error {
    /// Something is wrong, told to the user.
    Fault(Fault),
    /// Standard output was closed by its reader, such as `head`: nothing is wrong and nothing more is to be said.
    ReaderGone,
}

/// A fault as the user sees it: the code, what is wrong, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    status: u8,
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl miette::Diagnostic for Fault {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display + 'a>)
    }
}

impl Fault {
    /// The exit status: 1 the run failed, 2 the call or a file is wrong.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

impl Error {
    /// The call or a file is wrong.
    pub(crate) fn wrong(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Error {
        let (message, help) = (harmless(&message.into()).into_owned(), harmless(&help.into()).into_owned());
        Error::Fault(Fault { status: 2, code, message, help: Some(help) })
    }

    /// The run failed.
    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Error {
        Error::Fault(Fault { status: 1, code, message: harmless(&message.into()).into_owned(), help: None })
    }

    /// A setting or option has a value that cannot be used.
    pub(crate) fn setting(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::wrong("cli/setting", message, help)
    }

    /// A file cannot be written.
    pub(crate) fn output(path: &Path, error: &io::Error) -> Error {
        Error::wrong(
            "cli/output",
            format!("cannot write {}: {}", path.display(), without_number(error)),
            "check that its folder exists, may be written to and has room",
        )
    }

    /// A file cannot be taken.
    pub(crate) fn file(error: &FileError) -> Error {
        let place = error.place.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
        Error::wrong(error.code, format!("{}{place}: {}", error.file.display(), error.what), error.remedy.clone())
    }

    /// The bytes of a file are no takes.
    pub(crate) fn take_file(path: &Path, error: &TakeError) -> Error {
        let message = format!("{}: {}", path.display(), strip_code(&error.to_string(), error.code()));
        let help = match error {
            TakeError::Far { .. } => "record it again, and end it before that step",
            _ => TAKE_HELP,
        };
        Error::wrong(error.code(), message, help)
    }

    /// A take cannot be opened or done again.
    pub(crate) fn take(error: &TakeError) -> Error {
        let message = strip_code(&error.to_string(), error.code());
        match error {
            TakeError::Replay { .. } => Error::failed(error.code(), message),
            _ => Error::wrong(error.code(), message, TAKE_HELP),
        }
    }

    /// The studio cannot open.
    pub(crate) fn studio(error: &StudioError) -> Error {
        match error {
            StudioError::Take(error) => Error::take(error),
            error => Error::failed(error.code(), strip_code(&error.to_string(), error.code())),
        }
    }

    /// Writing to standard output failed.
    pub(crate) fn stdout(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Error::ReaderGone,
            _ => Error::wrong(
                "cli/output",
                format!("cannot write to standard output: {}", without_number(&error)),
                "check where it is sent to",
            ),
        }
    }

    /// A step of a run failed; `place` tells where in the run.
    pub(crate) fn step(error: &StepError, place: impl Display) -> Error {
        Error::failed(error.code(), format!("{place}: {}", strip_code(&error.to_string(), error.code())))
    }

    /// There is no such scene, or its parameters are wrong.
    pub(crate) fn scene(error: &SceneError, text: &str) -> Error {
        let name = text.split_once(':').map_or(text, |(name, _)| name);
        if error.code() == "scene/unknown" {
            let mut help = String::new();
            if let Some(near) = nearest(name, catalogue().iter().map(|scene| scene.name)) {
                let _ = write!(help, "did you mean `{near}`? ");
            }
            let _ = write!(help, "There are {}; `supple scenes` tells more", scene_names());
            return Error::wrong(error.code(), format!("there is no scene \"{name}\""), help);
        }
        let message = strip_code(&error.to_string(), error.code());
        let help = match catalogue().iter().find(|scene| scene.name == name) {
            Some(scene) if scene.parameters.is_empty() => format!("`{name}` takes no parameters"),
            Some(scene) => format!("`{name}` takes {}", scene.parameters),
            None => "`supple scenes` lists the scenes and their parameters".to_owned(),
        };
        Error::wrong(error.code(), message, help)
    }
}

/// The names of the built-in scenes, separated by commas.
pub(crate) fn scene_names() -> String {
    catalogue().iter().map(|scene| scene.name).collect::<Vec<_>>().join(", ")
}

/// The name nearest to `word`: one that begins with it, else one within a third of its letters of it.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let distance = |name: &str| match letters >= 2 && name.starts_with(&word) {
        true => 0,
        false => edits(&word, name),
    };
    let (best, name) = names.map(|name| (distance(name), name)).min_by_key(|(distance, _)| *distance)?;
    (best <= letters.div_ceil(3)).then_some(name)
}

/// How many letters must be added, removed or exchanged to make `b` from `a` (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (k, &y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[k + 1];
            row[k + 1] = replace.min(diagonal + 1).min(row[k] + 1);
        }
    }
    row[b.len()]
}

/// The text without the code at its end, which is shown on its own.
fn strip_code(text: &str, code: &str) -> String {
    text.strip_suffix(&format!("[{code}]")).unwrap_or(text).trim_end().to_owned()
}

/// The reason in words, without the number of the operating system.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = || ["pendulum", "chain", "hand"].into_iter();
        assert_eq!(nearest("pendulm", names()), Some("pendulum"));
        assert_eq!(nearest("Chian", names()), Some("chain"));
        assert_eq!(nearest("pend", names()), Some("pendulum"));
        assert_eq!(nearest("octopus", names()), None);
        assert_eq!(nearest("", names()), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn the_code_is_shown_once() {
        let error = StepError::Dt { dt: -1.0 };
        assert_eq!(
            strip_code(&error.to_string(), error.code()),
            "the step's length is -1 s: give a finite value above 0"
        );
    }
}
