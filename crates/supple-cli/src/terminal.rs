//! The person's side of the terminal: colours, width, progress and notes.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

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
            say(text);
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

/// A line on standard error.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(Harmless(io::stderr()), "{text}");
}

/// What [`Terminal::styled`] writes.
const STYLES: [&str; 4] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"];

/// Whether a sign steers a terminal: moves its cursor, changes its title, makes text run backwards. Names come from files, and files from strangers.
pub(crate) fn steers(sign: char) -> bool {
    (sign.is_control() && sign != '\n') || matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with a picture in place of each sign that [`steers`], as wide as the sign is counted.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let style = STYLES.into_iter().find(|style| rest.starts_with(style));
        match (style, sign) {
            (Some(style), _) => out.push_str(style),
            (None, '\x7f') => out.push('␡'),
            (None, '\0'..' ') if steers(sign) => out.extend(char::from_u32(0x2400 + sign as u32)),
            (None, _) if steers(sign) => out.push(char::REPLACEMENT_CHARACTER),
            (None, _) => out.push(sign),
        }
        rest = &rest[style.map_or(sign.len_utf8(), str::len)..];
    }
    Cow::Owned(out)
}

/// Writes [`harmless`] text.
#[derive(Debug)]
pub(crate) struct Harmless<W>(pub(crate) W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is written comes piece by piece, and each is whole letters.
        self.0.write_all(harmless(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether the environment leaves colours on: `NO_COLOR` is unset or empty and the terminal is not a dumb one.
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_a_picture() {
        for (from, shown) in [
            ("bone_1 – Hüfte 骨", "bone_1 – Hüfte 骨"),
            ("a\x1b]0;title\x07b", "a␛]0;title␇b"),
            ("\x1b[2J\x1b[31mred\r\t\x7f\0", "␛[2J␛[31mred␍␉␡␀"),
            ("\u{9b}31m \u{202e}txt.glb\u{2066}", "\u{fffd}31m \u{fffd}txt.glb\u{fffd}"),
            ("two\nlines", "two\nlines"),
        ] {
            assert_eq!(harmless(from), shown);
            let mut written = Vec::new();
            write!(Harmless(&mut written), "{from}").unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), shown);
        }
        // Our own styles pass.
        let terminal = Terminal { quiet: false, colour: true, width: 80 };
        for text in [terminal.bold("x"), terminal.faint("x"), terminal.warning("x")] {
            assert!(text.starts_with('\x1b') && harmless(&text) == text, "{text:?}");
        }
    }
}
