//! The comparison as one page: the chart and the table. Nothing is loaded from elsewhere.

use super::{Document, WORDS};
use crate::table::{figure, fraction, given, small};
use std::fmt::Write as _;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --faint: #5c6570; --line: #d5dae0 }
@media (prefers-color-scheme: dark) { :root { --text: #e8ebee; --page: #14171a; --faint: #9aa4ae; --line: #343b42 } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1.25rem; background: var(--page); color: var(--text);
       font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 0 .25rem }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p { margin: .25rem 0 .75rem; color: var(--faint) }
figure { margin: 1rem 0; overflow-x: auto }
figure svg { background: #ffffff; max-width: 100%; height: auto; border: 1px solid var(--line) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem }
th, td { padding: .2rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th { font-weight: 600; color: var(--faint) }
th:first-child, td:first-child, td.why { text-align: left }
td.why { white-space: normal; color: var(--faint) }
tr.first > * { border-top: 2px solid var(--faint) }
";

/// The whole page; `chart` is an SVG.
pub(super) fn page(document: &Document, chart: &str) -> String {
    let Document { compare, seconds, reference, rows, refused, machine, .. } = document;
    let title = escaped(&format!("{compare}: the solvers side by side"));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p>{} s, {}. {}</p>\n<figure>\n{chart}\n</figure>\n<h2>Figures</h2>\n<p>{}</p>\n",
        given(*seconds),
        document.parts(),
        escaped(&reference.words()),
        escaped(&WORDS.join(" ")),
    );
    let head =
        ["solver", "step [s]", "ms/s", "gap [m]", "tilt", "energy", "momentum", "pose [m]", "turn [rad]", "ended"];
    html.push_str("<div class=\"wide\">\n<table>\n<thead><tr>");
    for title in head {
        let _ = write!(html, "<th>{title}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let mut last = "";
    for row in rows {
        let first = row.solver != last;
        last = &row.solver;
        let _ = write!(html, "<tr{}><td>{}</td>", if first { " class=\"first\"" } else { "" }, escaped(&row.solver));
        let number = |value: Option<f64>, shown: fn(f64) -> String| value.map_or("–".into(), shown);
        for cell in [
            fraction(row.dt),
            number(row.ms_per_second, figure),
            number(row.max_joint_gap, small),
            number(row.max_joint_tilt, small),
            number(row.energy_error, small),
            number(row.momentum_error, small),
            number(row.pose_error, small),
            number(row.turn_error, small),
        ] {
            let _ = write!(html, "<td>{cell}</td>");
        }
        let why = row.ended_at.zip(row.reason.as_ref());
        let why = why.map_or(String::new(), |(time, reason)| format!("at {} s: {reason}", given(time)));
        let _ = writeln!(html, "<td class=\"why\">{}</td></tr>", escaped(&why));
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    if !refused.is_empty() {
        html.push_str("<h2>Not compared</h2>\n<ul>\n");
        for (names, reason) in super::race::reasons(refused) {
            let _ = writeln!(html, "<li>{}: {}</li>", escaped(&names), escaped(reason));
        }
        html.push_str("</ul>\n");
    }
    let _ = write!(html, "<p>{}</p>\n</body>\n</html>\n", escaped(&machine.words()));
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
