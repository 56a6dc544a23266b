//! `supple compare`: the solvers side by side on one scene, at several lengths of a step, against a fine-step reference.

mod page;
mod race;

use crate::bench::Machine;
use crate::error::Error;
use crate::output::{self, Captions, Outputs, Series, SeriesKind};
use crate::scenes::Opened;
use crate::settings;
use crate::table::{Align, Table, count, figure, fraction, given, small};
use crate::terminal::Terminal;
use clap::Args;
use plotters::style::RGBColor;
use race::{Contestant, Reference, Refused, Row};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Run the solvers side by side: time, gaps, energy, momentum, and error against a fine-step reference
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:100)
    scene: String,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    /// How much time to simulate, in seconds
    #[arg(long, value_name = "S", default_value = "1", allow_hyphen_values = true)]
    seconds: String,
    /// Lengths of a step, in seconds; each must go a whole number of times into the longest
    #[arg(long, value_name = "DT,DT", value_delimiter = ',', default_value = "1/30,1/60,1/120,1/240,1/480")]
    dt: Vec<String>,
    /// Only these solvers or variants: tree, `tree published`, `reduced midpoint`; all when left out
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a file, by its ending: .json (the document), .svg (error against time) or .html (both as a page); may be given again
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

/// What was compared. The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Document {
    compare: String,
    machine: Machine,
    bodies: usize,
    joints: usize,
    /// Simulated time \[s\].
    seconds: f64,
    reference: Reference,
    rows: Vec<Row>,
    /// Solvers that cannot take the scene.
    refused: Vec<Refused>,
}

impl Document {
    /// `16 bodies, 15 joints`
    fn parts(&self) -> String {
        format!("{}, {}", count(self.bodies, "body", "bodies"), count(self.joints, "joint", "joints"))
    }
}

/// Runs the comparison, writes the files, prints the table.
pub(crate) fn run(args: &CompareArgs, terminal: &Terminal) -> Result<(), Error> {
    let mut scene = match crate::scenes::open_any(&args.scene, &args.files.files()?)? {
        Opened::Scene(scene) => scene,
        Opened::Takes(..) => {
            return Err(Error::setting("a take was made by one solver", "compare its scene instead, by name"));
        }
    };
    let steps = lengths(&args.dt)?;
    let frames = settings::steps(&args.seconds, steps[0])?;
    let files = Outputs::check(&args.output, &["json", "svg", "html"])?;
    let contestants = race::chosen(&args.only)?;
    scene.state = crate::scenes::start(&scene, terminal)?;

    let (takers, refused) = race::sort(&scene, &contestants);
    let reference = race::reference_solver(&scene, &refused)?;
    let bar = terminal.progress((takers.len() * steps.len()) as u64 + 2, "runs");
    bar.set_message("reference");
    bar.tick();
    let course = race::Course::new(&scene, steps[0], frames, *steps.last().expect("at least one length"), reference)?;
    bar.inc(2);
    let mut rows = Vec::new();
    for contestant in takers {
        bar.set_message(contestant.name());
        for &dt in &steps {
            rows.push(course.run(contestant, dt));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    let document = Document {
        compare: scene.name.clone(),
        machine: Machine::here(),
        bodies: scene.model.bodies().len(),
        joints: scene.model.joints().len(),
        seconds: frames as f64 * steps[0],
        reference: course.reference,
        rows,
        refused,
    };
    for path in files.ending("svg") {
        output::write_text(path, &chart(&document)?)?;
    }
    for path in files.ending("html") {
        output::write_text(path, &page::page(&document, &chart(&document)?))?;
    }
    for path in files.ending("json") {
        output::write_json(path, &document)?;
    }
    if args.json {
        output::print_json(&document)?;
    } else {
        print(&document, terminal)?;
    }
    files.tell(terminal);
    Ok(())
}

/// The lengths of a step, longest first, each once; every one goes a whole number of times into the longest.
fn lengths(texts: &[String]) -> Result<Vec<f64>, Error> {
    let mut lengths = texts.iter().map(|text| settings::dt(text)).collect::<Result<Vec<f64>, Error>>()?;
    lengths.sort_by(|a, b| b.total_cmp(a));
    lengths.dedup();
    let longest = *lengths
        .first()
        .ok_or_else(|| Error::setting("no length of a step is given", "give some, such as --dt 1/60,1/120"))?;
    for dt in &lengths {
        let parts = longest / dt;
        // Lengths are fractions rounded once.
        if (parts - parts.round()).abs() > 1e-9 * parts {
            return Err(Error::setting(
                format!("{} s is not a whole number of steps of {} s", fraction(longest), fraction(*dt)),
                "give lengths that halve, such as --dt 1/30,1/60,1/120",
            ));
        }
    }
    Ok(lengths)
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("solver", Align::Left),
        ("step [s]", Align::Right),
        ("ms/s", Align::Right),
        ("gap [m]", Align::Right),
        ("energy", Align::Right),
        ("momentum", Align::Right),
        ("pose [m]", Align::Right),
        ("turn [rad]", Align::Right),
        ("ended", Align::Left),
    ]);
    let mut last = "";
    for row in &document.rows {
        let name = if row.solver == last { "" } else { &row.solver };
        last = &row.solver;
        table.row([
            name.into(),
            fraction(row.dt),
            row.ms_per_second.map_or("–".into(), figure),
            measured(row.max_joint_gap),
            measured(row.energy_error),
            measured(row.momentum_error),
            measured(row.pose_error),
            measured(row.turn_error),
            ending(row),
        ]);
    }
    let Document { compare, seconds, reference, .. } = document;
    output::print(|out| {
        let parts = format!("{} s, {}", given(*seconds), document.parts());
        writeln!(out, "{}  {}", terminal.bold(compare), terminal.faint(&parts))?;
        table.write(out, terminal)?;
        if !document.refused.is_empty() {
            writeln!(out)?;
            for (names, reason) in race::reasons(&document.refused) {
                writeln!(out, "  {names}: {reason}")?;
            }
        }
        writeln!(out)?;
        for line in WORDS {
            writeln!(out, "  {}", terminal.faint(line))?;
        }
        writeln!(out, "  {}", terminal.faint(&reference.words()))?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}

/// What the columns mean.
const WORDS: [&str; 3] = [
    "ms/s: time to compute a second. Errors are against the reference; energy (of the character, without what pulls at",
    "it) and momentum: the largest at any frame, as shares of the largest kinetic energy and of the momentum that goes",
    "with it; pose and turn: the farthest body at the end.",
];

/// When and by which error a run ended early; the reason is in the JSON document and on the page.
fn ending(row: &Row) -> String {
    let name = |code: &'static str| code.split_once('/').map_or(code, |(_, name)| name);
    row.ended_at.zip(row.code).map_or(String::new(), |(time, code)| format!("{} s: {}", given(time), name(code)))
}

fn measured(value: Option<f64>) -> String {
    value.map_or("–".into(), small)
}

/// A run that ends farther from the reference than this many times the character's reach is not drawn: it has exploded.
const LOST: f64 = 10.0;

/// Error against time, a curve for each solver.
fn chart(document: &Document) -> Result<String, Error> {
    let mut series: Vec<Series> = Vec::new();
    for row in &document.rows {
        let (Some(time), Some(error)) = (row.ms_per_second, row.pose_error) else { continue };
        if error > LOST * document.reference.reach {
            continue;
        }
        match series.last_mut() {
            Some(last) if last.label == row.solver => last.points.push((time, error)),
            _ => series.push(Series {
                label: row.solver.clone(),
                colour: colour(&row.solver),
                kind: SeriesKind::Line,
                weight: 2,
                points: vec![(time, error)],
            }),
        }
    }
    // What is not known better than the reference is told by a line at its own error.
    if let Some(error) = document.reference.error.filter(|error| *error > 0.0) {
        let times = || series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
        let (first, end) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        if first < end {
            let points = vec![(first, error), (end, error)];
            let (label, colour) = ("error of the reference".into(), RGBColor(150, 150, 150));
            series.push(Series { label, colour, kind: SeriesKind::Line, weight: 1, points });
        }
    }
    let title = format!("{}: error against time", document.compare);
    let y = format!("farthest body after {} s [m]", given(document.seconds));
    output::log_log_chart(Captions { title: &title, x: "ms to compute a second", y: &y }, &series)
}

/// One hue a solver, one shade a variant.
fn colour(name: &str) -> RGBColor {
    let [r, g, b] = Contestant::named(name).map_or([0, 0, 0], |c| c.colour);
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_into_the_longest() {
        let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let found = lengths(&texts(&["1/120", "1/30", "1/60", "1/60"])).unwrap();
        assert_eq!(found, [1.0 / 30.0, 1.0 / 60.0, 1.0 / 120.0]);
        assert!(lengths(&texts(&["1/30", "1/50"])).is_err());
        assert!(lengths(&[]).is_err() && lengths(&texts(&["0"])).is_err());
    }

    #[test]
    fn every_contestant_has_a_name_and_a_colour_of_its_own() {
        for (i, a) in race::CONTESTANTS.iter().enumerate() {
            for b in &race::CONTESTANTS[i + 1..] {
                assert!(a.name() != b.name() && a.colour != b.colour, "{} and {}", a.name(), b.name());
            }
        }
    }
}
