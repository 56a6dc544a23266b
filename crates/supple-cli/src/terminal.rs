//! The person's side of the terminal: colours, width, progress and notes.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Width used when standard output is no terminal.
const DEFAULT_WIDTH: usize = 100;

/// How to talk to the person who called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// No progress and no notes.
    quiet: bool,
    /// Whether standard output takes colours.
    colour: bool,
    /// Columns of standard output.
    width: usize,
}

impl Terminal {
    /// Looks at standard output and the environment.
    pub(crate) fn new(quiet: bool) -> Terminal {
        let stdout = std::io::stdout();
        let width = terminal_size::terminal_size_of(&stdout).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        Terminal { quiet, colour: colours_wanted() && stdout.is_terminal(), width }
    }

    /// Columns of standard output.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The text in bold.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled(text, "1")
    }

    /// The text in a faint colour.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.styled(text, "2")
    }

    /// The text in the colour of warnings.
    pub(crate) fn warning(&self, text: &str) -> String {
        self.styled(text, "33")
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A line on standard error, unless quiet. That standard error is closed is no reason to stop.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// A progress bar on standard error; hidden when quiet or when standard error is no terminal.
    pub(crate) fn progress(&self, length: u64, unit: &str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = if colours_wanted() { "{bar:32.cyan}" } else { "{bar:32}" };
        let template = format!("{{msg:20}} {bar} {{pos}}/{{len}} {unit}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr())
            .with_style(style.progress_chars("━╸─"))
    }
}

/// Whether the environment leaves colours on: `NO_COLOR` is unset or empty and the terminal is not a dumb one.
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
}
