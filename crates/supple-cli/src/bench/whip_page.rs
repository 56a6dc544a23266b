//! The grid of `supple bench whip` as one page: the default step beside the published one, a table a measure, coloured by
//! how far a number is from its bound. Nothing is loaded from elsewhere.

use super::Machine;
use super::whip::{GAIN_BOUND, GAP_BOUND, LOSS_BOUND, Met, Row};
use crate::table::{figure, fraction, given, small};
use std::fmt::Write as _;

/// A number of every row.
struct Measure {
    title: &'static str,
    words: &'static str,
    /// NaN when it is not known.
    value: fn(&Row) -> f64,
    bound: fn(&Row) -> Option<f64>,
    shown: fn(f64) -> String,
}

const MEASURES: [Measure; 7] = [
    Measure {
        title: "Joint gap",
        words: "Largest over 5 s, in lengths of a link. Bound: 1e-6.",
        value: |row| row.gap_per_link,
        bound: |_| Some(GAP_BOUND),
        shown: small,
    },
    Measure {
        title: "Energy gained",
        words: "Largest over 5 s, as a share of the energy released between horizontal and hanging. Bound: 1 %.",
        value: |row| row.energy_gain,
        bound: |_| Some(GAIN_BOUND),
        shown: small,
    },
    Measure {
        title: "Energy lost after 1 s",
        words: "As such a share. Bound: 2 %.",
        value: |row| if row.bounded { row.energy_loss_1s } else { f64::NAN },
        bound: |_| Some(LOSS_BOUND),
        shown: percent,
    },
    Measure {
        title: "Energy lost after 5 s",
        words: "As such a share. After the first snap at the bottom, energy goes into waves that a step of this length does not carry.",
        value: |row| if row.bounded { row.energy_loss_5s } else { f64::NAN },
        bound: |_| None,
        shown: percent,
    },
    Measure {
        title: "Factorisations a frame",
        words: "Mean. Bound: 25, and 1.2 where the stiffness is 1e6 and the tip mass 1.",
        value: |row| row.factorisations_mean,
        bound: |row| Some(row.work_bound()),
        shown: |x| format!("{x:.1}"),
    },
    Measure {
        title: "Tip error after 1 s",
        words: "Distance from the reference in millimetres. Bounds: 120, 25 and 4 at steps of 1/30, 1/60 and 1/240 s. A dash: the reference itself is not known to 1 mm.",
        value: |row| row.tip_error_1s.unwrap_or(f64::NAN),
        bound: |row| Some(row.tip_bound()),
        shown: |x| if x < 1e3 { format!("{:.1}", 1e3 * x) } else { small(1e3 * x) },
    },
    Measure {
        title: "Time of a frame",
        words: "Median, in microseconds, on one thread.",
        value: |row| row.us_per_frame,
        bound: |_| None,
        shown: figure,
    },
];

fn percent(share: f64) -> String {
    if share.abs() < 10.0 { format!("{:.2} %", 100.0 * share) } else { small(share) }
}

pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --faint: #5c6570; --line: #d5dae0 }
@media (prefers-color-scheme: dark) { :root { --text: #e8ebee; --page: #14171a; --faint: #9aa4ae; --line: #343b42 } }
body { margin: 2rem auto; max-width: 96rem; padding: 0 1.25rem; background: var(--page); color: var(--text);
       font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 0 .25rem }
h2 { font-size: 1.15rem; margin: 2.25rem 0 0 }
p { margin: .25rem 0 .75rem; color: var(--faint); max-width: 60rem }
.pair { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem }
figure { margin: 0; overflow-x: auto; max-width: 100% }
figcaption { font-weight: 600; margin-bottom: .25rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .75rem }
th, td { padding: .15rem .35rem; border: 1px solid var(--line); text-align: right; white-space: nowrap }
th { font-weight: 600; color: var(--faint) }
td { min-width: 2.6rem }
th[colspan] { text-align: center }
tbody tr.first > * { border-top: 2px solid var(--faint) }
.bounds th, .bounds td { text-align: left; font-size: .9rem; color: var(--text) }
.bounds td + td { text-align: right }
.kept { background: rgb(0 114 178 / var(--a)) }
.broken { background: rgb(213 94 0 / var(--a)); font-weight: 600 }
.plain { background: rgb(128 128 128 / var(--a)) }
.lost { background: repeating-linear-gradient(45deg, rgb(213 94 0 / .75) 0 4px, rgb(213 94 0 / .45) 4px 8px) }
.legend text { fill: currentColor; font-size: 12px }
";

/// The whole page.
pub(super) fn page(rows: &[Row], published: &[Row], bounds: &[Met], machine: &Machine) -> String {
    let mut html = String::new();
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Whips at frame-size steps</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Whips at frame-size steps</h1>\n\
         <p>Chains of links of 0.1 m and 0.1 kg on ball joints, released horizontal, without damping, for 5 s. \
         Rows: number of links and stiffness of the joints in N·m/rad. Columns: mass of the last link in its own \
         multiples, and length of a step in seconds. First the default step, then the published one \
         (one linear solve a step). {}.</p>\n",
        escaped(&machine.words())
    );
    write_bounds(&mut html, bounds);
    html.push_str(LEGEND);
    for measure in &MEASURES {
        let _ = write!(html, "<h2>{}</h2>\n<p>{}</p>\n<div class=\"pair\">\n", measure.title, measure.words);
        let scale = Scale::of(measure, rows);
        for (caption, rows) in [("Default step", rows), ("Published step", published)] {
            let _ = write!(html, "<figure><figcaption>{caption}</figcaption>");
            write_grid(&mut html, measure, scale, rows);
            html.push_str("</figure>\n");
        }
        html.push_str("</div>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

fn write_bounds(html: &mut String, bounds: &[Met]) {
    html.push_str(
        "<table class=\"bounds\"><thead><tr><th>bound</th><th>default</th><th>published</th></tr></thead>\n<tbody>\n",
    );
    for Met { bound, met, published_met, of } in bounds {
        let class = |met: usize| if met == *of { "kept" } else { "broken" };
        let _ = writeln!(
            html,
            "<tr><td>{bound}</td><td class=\"{}\" style=\"--a:.3\">{met} of {of}</td>\
             <td class=\"{}\" style=\"--a:.3\">{published_met} of {of}</td></tr>",
            class(*met),
            class(*published_met)
        );
    }
    html.push_str("</tbody></table>\n");
}

const LEGEND: &str = "<svg class=\"legend\" width=\"560\" height=\"46\" role=\"img\" aria-label=\"Colours: blue keeps the bound, orange breaks it\">
<defs><linearGradient id=\"kept\"><stop offset=\"0\" stop-color=\"#0072b2\" stop-opacity=\".05\"/><stop offset=\"1\" stop-color=\"#0072b2\" stop-opacity=\".45\"/></linearGradient>
<linearGradient id=\"broken\"><stop offset=\"0\" stop-color=\"#d55e00\" stop-opacity=\".35\"/><stop offset=\"1\" stop-color=\"#d55e00\" stop-opacity=\".75\"/></linearGradient></defs>
<rect x=\"0\" y=\"10\" width=\"240\" height=\"14\" fill=\"url(#kept)\"/><rect x=\"240\" y=\"10\" width=\"240\" height=\"14\" fill=\"url(#broken)\"/>
<text x=\"0\" y=\"40\">far below the bound</text><text x=\"240\" y=\"40\" text-anchor=\"middle\">at it</text><text x=\"480\" y=\"40\" text-anchor=\"end\">1,000 times above, or lost</text>
</svg>
";

/// Colours of a measure without bounds go from its smallest number of the default step to its largest.
#[derive(Clone, Copy)]
struct Scale {
    min: f64,
    max: f64,
}

impl Scale {
    fn of(measure: &Measure, rows: &[Row]) -> Scale {
        let values = || rows.iter().map(measure.value).filter(|x| x.is_finite());
        Scale { min: values().fold(f64::INFINITY, f64::min), max: values().fold(f64::NEG_INFINITY, f64::max) }
    }

    fn share(self, x: f64) -> f64 {
        if self.max > self.min { ((x - self.min) / (self.max - self.min)).clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn write_grid(html: &mut String, measure: &Measure, scale: Scale, rows: &[Row]) {
    // The rows come by links, stiffness, tip mass, dt: a line of the table is a run of equal links and stiffness.
    let lines: Vec<&[Row]> = rows.chunk_by(|a, b| (a.links, a.stiffness) == (b.links, b.stiffness)).collect();
    let Some(first) = lines.first() else { return };
    html.push_str("<table>\n<thead><tr><th colspan=\"2\">tip mass</th>");
    for tip in first.chunk_by(|a, b| a.tip_mass == b.tip_mass) {
        let _ = write!(html, "<th colspan=\"{}\">× {}</th>", tip.len(), given(tip[0].tip_mass));
    }
    html.push_str("</tr>\n<tr><th>links</th><th>stiffness</th>");
    for row in *first {
        let _ = write!(html, "<th>{}</th>", fraction(row.dt));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for group in lines.chunk_by(|a, b| a[0].links == b[0].links) {
        for (k, line) in group.iter().enumerate() {
            html.push_str(if k == 0 { "<tr class=\"first\">" } else { "<tr>" });
            if k == 0 {
                let _ = write!(html, "<th rowspan=\"{}\">{}</th>", group.len(), line[0].links);
            }
            let _ = write!(html, "<th>{}</th>", given(line[0].stiffness));
            for row in *line {
                write_cell(html, measure, scale, row);
            }
            html.push_str("</tr>\n");
        }
    }
    html.push_str("</tbody></table>");
}

fn write_cell(html: &mut String, measure: &Measure, scale: Scale, row: &Row) {
    let value = (measure.value)(row);
    let title = format!("{}, dt {} s", escaped(&row.scene), fraction(row.dt));
    if !value.is_finite() {
        let (class, shown, why) = if row.bounded { ("", "–", "not known") } else { ("lost", "✕", "lost") };
        let _ = write!(html, "<td class=\"{class}\" title=\"{title}: {why}\">{shown}</td>");
        return;
    }
    let (class, alpha) = match (measure.bound)(row) {
        // Six powers of ten below the bound fade out; three above it are the end of the scale.
        Some(bound) if value <= bound => {
            ("kept", 0.05 + 0.4 * (1.0 + (value.max(0.0) / bound).log10().max(-6.0) / 6.0))
        }
        Some(bound) => ("broken", 0.35 + 0.4 * ((value / bound).log10() / 3.0).min(1.0)),
        None => ("plain", 0.4 * scale.share(value)),
    };
    let shown = (measure.shown)(value);
    let _ = write!(html, "<td class=\"{class}\" style=\"--a:{alpha:.2}\" title=\"{title}\">{shown}</td>");
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stiffness: f64, dt: f64, energy_gain: f64) -> Row {
        Row {
            scene: format!("whip:10,stiffness={stiffness}"),
            links: 10,
            stiffness,
            tip_mass: 1.0,
            dt,
            bounded: energy_gain < 0.05,
            max_joint_gap: 1e-15,
            gap_per_link: 1e-14,
            energy_gain,
            energy_loss_1s: 0.001,
            energy_loss_5s: 0.1,
            substeps_mean: 1.0,
            factorisations_mean: 1.0,
            factorisations_max: 1,
            us_per_frame: 20.0,
            tip_error_1s: None,
            reference_error: 1.0,
        }
    }

    #[test]
    fn the_page_stands_alone() {
        let rows = [row(0.0, 1.0 / 30.0, 1e-9), row(0.0, 1.0 / 60.0, 0.02), row(1.0, 1.0 / 30.0, f64::INFINITY)];
        let bounds = [Met { bound: "bounded", met: 2, published_met: 3, of: 3 }];
        let machine = Machine { cpu: Some("A & B".into()), cores: 2, os: "x", arch: "y" };
        let page = page(&rows, &rows, &bounds, &machine);
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("A &amp; B"));
        assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
        assert_eq!(page.matches("<table>").count(), 2 * MEASURES.len());
        assert!(
            page.contains("class=\"broken\"") && page.contains("class=\"lost\"") && page.contains("class=\"kept\"")
        );
        for outside in ["http:", "https:", "src=", "<link", "<script", "NaN", "inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
