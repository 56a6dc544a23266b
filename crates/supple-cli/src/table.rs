//! Tables for people: a bold head, aligned columns, the last column wrapped to the terminal.

use crate::terminal::Terminal;
use std::io::{self, Write};

/// To which side the cells of a column lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under a head.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GUTTER: &str = "  ";
/// A wrapped column is never made narrower than this.
const NARROWEST: usize = 20;

impl Table {
    /// A table with these columns.
    pub(crate) fn new<const N: usize>(columns: [(&'static str, Align); N]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "a row has as many cells as the table has columns");
        self.rows.push(cells.to_vec());
    }

    /// Prints the table, indented by two.
    pub(crate) fn write(&self, out: &mut impl Write, terminal: &Terminal) -> io::Result<()> {
        let widths = self.widths(terminal.width());
        let last = self.columns.len() - 1;
        let head: Vec<String> = (0..=last).map(|k| self.fit(k, self.columns[k].0, widths[k])).collect();
        writeln!(out, "  {}", terminal.bold(head.join(GUTTER).trim_end()))?;
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        writeln!(out, "  {}", terminal.faint(&rule.join(GUTTER)))?;
        let indent = widths[..last].iter().map(|w| w + GUTTER.len()).sum::<usize>();
        for row in &self.rows {
            let mut lines = wrap(&row[last], widths[last]).into_iter();
            let mut cells: Vec<String> = (0..last).map(|k| self.fit(k, &row[k], widths[k])).collect();
            cells.push(self.fit(last, &lines.next().unwrap_or_default(), widths[last]));
            writeln!(out, "  {}", cells.join(GUTTER).trim_end())?;
            for line in lines {
                writeln!(out, "  {:indent$}{line}", "")?;
            }
        }
        Ok(())
    }

    /// As wide as the widest cell; the last column, if it holds words, no wider than what the terminal has left.
    fn widths(&self, terminal: usize) -> Vec<usize> {
        let cell = |k: usize| self.rows.iter().map(|row| length(&row[k])).max().unwrap_or(0);
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(k, (title, _))| length(title).max(cell(k))).collect();
        if let Some((&(title, Align::Left), before)) = self.columns.last().zip(widths.len().checked_sub(1)) {
            let used: usize = 2 + widths[..before].iter().map(|w| w + GUTTER.len()).sum::<usize>();
            let left = terminal.saturating_sub(used).max(NARROWEST).max(length(title));
            widths[before] = widths[before].min(left);
        }
        widths
    }

    fn fit(&self, column: usize, text: &str, width: usize) -> String {
        let gap = " ".repeat(width.saturating_sub(length(text)));
        match self.columns[column].1 {
            Align::Left => format!("{text}{gap}"),
            Align::Right => format!("{gap}{text}"),
        }
    }
}

/// Prints names with their values, one a line, the values below one another.
pub(crate) fn write_pairs(out: &mut impl Write, terminal: &Terminal, pairs: &[(&str, String)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    for (name, value) in pairs {
        let name = format!("{name}{}", " ".repeat(width - length(name)));
        let mut lines = wrap(value, terminal.width().saturating_sub(width + 4).max(NARROWEST)).into_iter();
        writeln!(out, "  {}  {}", terminal.faint(&name), lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "  {:width$}  {line}", "")?;
        }
    }
    Ok(())
}

/// A number with four significant digits: `0.1234`, `12.34`, `1.234e-9`.
pub(crate) fn figure(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    if !x.is_finite() {
        return x.to_string();
    }
    let digits = x.abs().log10().floor() as i32;
    if (-3..6).contains(&digits) { format!("{x:.*}", (3 - digits).max(0) as usize) } else { format!("{x:.3e}") }
}

/// [`figure`] without zeros at the end, for numbers that were given: `10`, `0.01`.
pub(crate) fn given(x: f64) -> String {
    let text = figure(x);
    let (digits, exponent) = text.split_once('e').map_or((text.as_str(), None), |(d, e)| (d, Some(e)));
    let short = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    exponent.map_or(short.to_owned(), |e| format!("{short}e{e}"))
}

/// A length of time as people write it: `1/60` when it is one over a whole number.
pub(crate) fn fraction(dt: f64) -> String {
    let rate = (1.0 / dt).round();
    if rate > 1.0 && 1.0 / rate == dt { format!("1/{rate}") } else { given(dt) }
}

/// A number whose size alone matters, such as an error: `1.2e-9`.
pub(crate) fn small(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// A count and its noun: `1 body`, `1,000 bodies`.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// A whole number with thousands apart: `100,000`.
pub(crate) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Breaks text between words into lines of at most `width`; a longer word stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if length(line) + 1 + length(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        let shown: Vec<String> = [0.0, 0.5, 22.0, 1234.5, 99999.9, 1.5e-9, -0.00123, 2e7].map(figure).to_vec();
        assert_eq!(shown, ["0", "0.5000", "22.00", "1234", "100000", "1.500e-9", "-0.001230", "2.000e7"]);
        let shown: Vec<String> = [0.0, 0.5, 10.0, 100.0, 0.01, 1e9].map(given).to_vec();
        assert_eq!(shown, ["0", "0.5", "10", "100", "0.01", "1e9"]);
    }

    #[test]
    fn lengths_of_time_are_short() {
        assert_eq!(fraction(1.0 / 60.0), "1/60");
        assert_eq!(fraction(0.01), "1/100");
        assert_eq!(fraction(0.3), "0.3");
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("incomprehensible a", 7), ["incomprehensible", "a"]);
    }
}
