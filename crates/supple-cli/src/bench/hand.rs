//! `supple bench hand`: time per step of a hand that follows a glove [Hernández 2011, §6].
//!
//! The paper gives 0.36 ms per frame for the articulated dynamics of 16 bones and 15 joints.

use super::{Case, Destination, Machine};
use crate::error::Error;
use crate::output;
use crate::settings;
use crate::table::{Align, Table, figure, grouped, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use supple::Scene;

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct HandArgs {
    /// Simulated time of a run
    #[arg(long, value_name = "S", default_value = "10", allow_hyphen_values = true)]
    seconds: String,
    #[command(flatten)]
    destination: Destination,
}

/// Articulated dynamics of the hand, µs per frame [Hernández 2011, §6].
const PUBLISHED_US: f64 = 360.0;

/// The ways the hand is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Variant {
    /// One hand with springs, limits and tracking, moving.
    Full,
    /// A thousand hands, four side by side in the lanes of the processor; figures are per hand.
    #[expect(dead_code, reason = "until the crate steps crowds: see crowd_row")]
    Crowd,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Full => "full",
            Variant::Crowd => "crowd",
        }
    }
}

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    variant: Variant,
    /// How many hands.
    hands: usize,
    bodies: usize,
    joints: usize,
    /// Per hand.
    us_per_step: f64,
    /// Over the run \[m\].
    max_joint_gap: f64,
    limits_active_max: u32,
    published_us: Option<f64>,
    /// Published over measured.
    ratio_to_published: Option<f64>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &HandArgs, terminal: &Terminal) -> Result<(), Error> {
    let scene = Scene::parse("hand").map_err(|e| Error::scene(&e, "hand"))?;
    let steps = settings::steps(&args.seconds, scene.input.dt)?;
    let files = args.destination.files(&["json"])?;

    let mut rows = vec![full_row(&scene, steps)?];
    rows.extend(crowd_row());
    let document = Document { bench: "hand", machine: Machine::here(), rows };
    for path in files.ending("json") {
        output::write_json(path, &document)?;
    }
    if args.destination.json {
        output::print_json(&document)?;
    } else {
        print(&document, terminal)?;
    }
    for path in files.paths() {
        terminal.note(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn full_row(scene: &Scene, steps: usize) -> Result<Row, Error> {
    let timing = Case { scene, input: scene.input.clone(), steps }.time()?;
    Ok(Row {
        scene: scene.name.clone(),
        variant: Variant::Full,
        hands: 1,
        bodies: scene.model.bodies().len(),
        joints: scene.model.joints().len(),
        us_per_step: timing.us_per_step,
        max_joint_gap: timing.max_joint_gap,
        limits_active_max: timing.limits_active_max,
        published_us: Some(PUBLISHED_US),
        ratio_to_published: Some(PUBLISHED_US / timing.us_per_step),
    })
}

/// A thousand hands, four in lanes. The crate cannot step a crowd yet: when it can, the row is made here as in
/// [`full_row`], with `hands: 1000` and the time of a step divided by them.
fn crowd_row() -> Option<Row> {
    None
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("variant", Align::Left),
        ("hands", Align::Right),
        ("bodies", Align::Right),
        ("µs/step", Align::Right),
        ("gap [m]", Align::Right),
        ("limits", Align::Right),
        ("published µs", Align::Right),
        ("faster by", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.variant.name().into(),
            grouped(row.hands),
            grouped(row.bodies),
            figure(row.us_per_step),
            small(row.max_joint_gap),
            row.limits_active_max.to_string(),
            row.published_us.map_or("–".into(), |us| us.to_string()),
            row.ratio_to_published.map_or("–".into(), |ratio| format!("{ratio:.0}×")),
        ]);
    }
    output::print(|out| {
        use std::io::Write;
        writeln!(out, "{}  {}", terminal.bold("hand"), terminal.faint("springs, limits, tracking"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}
