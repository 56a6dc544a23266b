//! `supple bench trees`: trees and a star of bars, all joints at once and joint by joint [Bender 2006, §5].
//!
//! The paper gives the time of a step for trees of 31 to 255 bodies and three tolerances (tables 2 and 3), over the run for the tree of 127 (figure 8), and
//! how much faster the system is: 11 times on that tree at 1e-6, almost 80 times on the star at 1e-4.

use super::{Case, Destination, Machine, slope};
use crate::error::Error;
use crate::output::{self, Captions, Series, SeriesKind};
use crate::settings;
use crate::table::{Align, Table, figure, given, grouped};
use crate::terminal::Terminal;
use clap::Args;
use plotters::style::RGBColor;
use serde::Serialize;
use std::time::Duration;
use supple::solver::Impulse;
use supple::solver::impulse::Variant;
use supple::{Input, Scene, Solver};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct TreesArgs {
    /// Scenes
    #[arg(long, value_name = "SCENE,SCENE", value_delimiter = ',')]
    #[arg(default_value = "tree:31,tree:63,tree:127,tree:255,star:127")]
    scene: Vec<String>,
    /// Simulated time of a run, in steps of 1/30 s; a run that takes too long is cut off
    #[arg(long, value_name = "S", default_value = "4", allow_hyphen_values = true)]
    seconds: String,
    #[command(flatten)]
    destination: Destination,
}

/// Length of a step \[s\].
pub(super) const DT: f64 = 1.0 / 30.0;
/// How far a joint may be open \[m\], and how fast it may open \[m/s\].
pub(super) const TOLERANCES: [f64; 3] = [1e-2, 1e-4, 1e-6];
/// Table 3: with the system \[ms\], by tolerance.
const PUBLISHED_SYSTEM: [(&str, [f64; 3]); 4] = [
    ("tree:31", [3.23, 3.54, 3.79]),
    ("tree:63", [7.12, 7.14, 7.69]),
    ("tree:127", [18.78, 18.95, 20.09]),
    ("tree:255", [62.06, 63.21, 63.61]),
];
/// Table 2: without.
const PUBLISHED_JOINT_BY_JOINT: [(&str, [f64; 3]); 4] = [
    ("tree:31", [0.97, 6.78, 14.31]),
    ("tree:63", [2.48, 28.46, 67.50]),
    ("tree:127", [6.25, 87.05, 228.57]),
    ("tree:255", [15.86, 246.71, 703.48]),
];
/// How many times faster the system is, as the text says it.
pub(super) const PUBLISHED_RATIOS: [(&str, f64, f64); 2] = [("tree:127", 1e-6, 11.0), ("star:127", 1e-4, 80.0)];

pub(super) const VARIANTS: [(&str, Variant); 2] =
    [("system", Variant::System), ("joint_by_joint", Variant::JointByJoint)];

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    /// Exponent p of `time ∝ bodiesᵖ` of the system variant over the trees at the finest tolerance; null with fewer than two.
    slope: Option<f64>,
    ratios: Vec<Ratio>,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) scene: String,
    bodies: usize,
    pub(super) joints: usize,
    /// \[m\], and \[m/s\] for velocities.
    pub(super) tolerance: f64,
    pub(super) variant: &'static str,
    pub(super) ms_per_step: f64,
    /// Corrections of positions in a step: systems solved, or rounds.
    pub(super) iterations_jc_mean: f64,
    iterations_jc_max: u32,
    /// Of velocities.
    pub(super) iterations_vc_mean: f64,
    pub(super) published_ms: Option<f64>,
    /// Over the run \[m\].
    max_joint_gap: f64,
    /// Steps that were timed.
    steps: usize,
    #[serde(skip)]
    times: Vec<Duration>,
}

/// How many times faster the system is than joint by joint.
#[derive(Debug, Serialize)]
pub(super) struct Ratio {
    pub(super) scene: String,
    pub(super) tolerance: f64,
    pub(super) ratio: f64,
    pub(super) published_ratio: Option<f64>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &TreesArgs, terminal: &Terminal) -> Result<(), Error> {
    let steps = settings::steps(&args.seconds, DT)?;
    let files = args.destination.files(&["json", "svg"])?;
    let scenes: Vec<Scene> = args
        .scene
        .iter()
        .map(|name| Scene::parse(name).map_err(|e| Error::scene(&e, name)))
        .collect::<Result<_, _>>()?;

    let mut rows = Vec::new();
    let bar = terminal.progress((scenes.len() * TOLERANCES.len() * VARIANTS.len()) as u64, "runs");
    for scene in &scenes {
        bar.set_message(scene.name.clone());
        bar.tick();
        for tolerance in TOLERANCES {
            for variant in VARIANTS {
                rows.push(measure(scene, tolerance, variant, steps)?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();

    let (slope, ratios) = (slope_of(&rows), ratios(&rows));
    let document = Document { bench: "trees", machine: Machine::here(), rows, slope, ratios };
    for path in files.ending("svg") {
        output::write_text(path, &chart(&document.rows)?)?;
    }
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

pub(super) fn measure(
    scene: &Scene,
    tolerance: f64,
    (name, variant): (&'static str, Variant),
    steps: usize,
) -> Result<Row, Error> {
    let settings = Impulse { variant, tolerance, velocity_tolerance: tolerance, ..Impulse::default() };
    let input = Input { dt: DT, solver: Solver::Impulse(settings), ..scene.input.clone() };
    let (timing, times) = Case { scene, input, steps }.time_each()?;
    let per_step = |count: u64| count as f64 / timing.steps as f64;
    Ok(Row {
        scene: scene.name.clone(),
        bodies: scene.model.bodies().len(),
        joints: scene.model.joints().len(),
        tolerance,
        variant: name,
        ms_per_step: 1e-3 * timing.us_per_step,
        iterations_jc_mean: per_step(timing.corrections),
        iterations_jc_max: timing.corrections_max,
        iterations_vc_mean: per_step(timing.velocity_corrections),
        published_ms: published(&scene.name, tolerance, variant),
        max_joint_gap: timing.max_joint_gap,
        steps: timing.steps,
        times,
    })
}

fn published(scene: &str, tolerance: f64, variant: Variant) -> Option<f64> {
    let table = match variant {
        Variant::System => &PUBLISHED_SYSTEM,
        Variant::JointByJoint => &PUBLISHED_JOINT_BY_JOINT,
        Variant::SplitLoops => return None, // trees have no loops
    };
    let column = TOLERANCES.iter().position(|t| *t == tolerance)?;
    table.iter().find(|(name, _)| *name == scene).map(|(_, ms)| ms[column])
}

fn slope_of(rows: &[Row]) -> Option<f64> {
    let finest = TOLERANCES[TOLERANCES.len() - 1];
    let trees = rows.iter().filter(|r| r.variant == "system" && r.tolerance == finest && r.scene.starts_with("tree"));
    slope(trees.map(|r| (r.bodies as f64, r.ms_per_step)))
}

pub(super) fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let system = rows.iter().filter(|r| r.variant == "system");
    let of = |row: &Row| {
        let other =
            rows.iter().find(|r| r.variant != "system" && r.scene == row.scene && r.tolerance == row.tolerance)?;
        let published = PUBLISHED_RATIOS.iter().find(|(s, t, _)| *s == row.scene && *t == row.tolerance);
        Some(Ratio {
            scene: row.scene.clone(),
            tolerance: row.tolerance,
            ratio: other.ms_per_step / row.ms_per_step,
            published_ratio: published.map(|(.., ratio)| *ratio),
        })
    };
    system.filter_map(of).collect()
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("joints", Align::Right),
        ("tolerance", Align::Right),
        ("variant", Align::Left),
        ("ms/step", Align::Right),
        ("iterations", Align::Right),
        ("most", Align::Right),
        ("velocity", Align::Right),
        ("steps", Align::Right),
        ("published ms", Align::Right),
        ("faster by", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            row.joints.to_string(),
            given(row.tolerance),
            row.variant.replace('_', " "),
            figure(row.ms_per_step),
            figure(row.iterations_jc_mean),
            row.iterations_jc_max.to_string(),
            figure(row.iterations_vc_mean),
            grouped(row.steps),
            row.published_ms.map_or("–".into(), |ms| ms.to_string()),
            row.published_ms.map_or("–".into(), |ms| format!("{:.0}×", ms / row.ms_per_step)),
        ]);
    }
    output::print(|out| {
        use std::io::Write;
        writeln!(out, "{}  {}", terminal.bold("trees"), terminal.faint("bars on ball joints, steps of 1/30 s"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        if let Some(slope) = document.slope {
            writeln!(out, "  system: time grows as bodies to the power {slope:.3} (1 is linear)")?;
        }
        for Ratio { scene, tolerance, ratio, published_ratio } in &document.ratios {
            if let Some(published) = published_ratio {
                let tolerance = given(*tolerance);
                writeln!(out, "  {scene} at {tolerance}: the system is {ratio:.1}× faster; published: {published}×")?;
            }
        }
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}

/// The paper's figure 8: the time of each step over the run, of the tree of 127, or of the first scene without it; at the finest tolerance.
pub(super) fn chart(rows: &[Row]) -> Result<String, Error> {
    let finest = TOLERANCES[TOLERANCES.len() - 1];
    let scene = rows.iter().find(|r| r.scene == "tree:127").or(rows.first()).map_or("", |r| &r.scene);
    let series: Vec<Series> = rows
        .iter()
        .filter(|row| row.scene == scene && row.tolerance == finest)
        .map(|row| Series {
            label: row.variant.replace('_', " "),
            colour: if row.variant == "system" { RGBColor(0, 114, 178) } else { RGBColor(213, 94, 0) },
            kind: SeriesKind::Line,
            weight: 1,
            points: row.times.iter().enumerate().map(|(k, t)| (DT * (k + 1) as f64, 1e3 * t.as_secs_f64())).collect(),
        })
        .collect();
    let title = format!("{scene}, tolerance {}: time per step", given(finest));
    output::time_chart(Captions { title: &title, x: "simulated time [s]", y: "ms per step" }, &series)
}
