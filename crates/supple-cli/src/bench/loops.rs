//! `supple bench loops`: time per step of closed loops against the number of bodies, and what a tree pays for loops being possible.

use super::{Case, Destination, Machine, slope};
use crate::error::Error;
use crate::output;
use crate::table::{Align, Table, figure, grouped, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use supple::{Grip, Input, Scene, Work};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct LoopsArgs {
    /// Numbers of bodies, nearly
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "4,10,50,100,500,1000,5000,10000")]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=1_000_000))]
    bodies: Vec<u32>,
    #[command(flatten)]
    destination: Destination,
}

/// Steps before the clock starts: half a second. From rest few joints of a small scene are under tension yet, and all of a large one soon are: steps would be
/// compared that do not do the same.
const STEPS_BEFORE: usize = 30;
/// Steps of a run: half a second.
const STEPS: usize = 30;
/// The slope is taken from this number of bodies on: below, the cost of a step itself shows.
const SLOPE_FROM: usize = 50;

/// A family of scenes: its name, the size for a number of bodies, the length of its links \[m\].
struct Family {
    name: &'static str,
    size: fn(u32) -> u32,
    link: f64,
}

/// Links of the chains without loops.
const CHAINS: [u32; 2] = [100, 1000];

const FAMILIES: [Family; 3] = [
    Family { name: "fourbars", size: |bodies| (bodies / 2).max(1), link: 0.4 },
    Family { name: "ring", size: |bodies| bodies.max(3), link: 0.1 },
    Family { name: "ladder", size: |bodies| (bodies / 3).max(1), link: 0.25 },
];

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    slopes: Vec<Slope>,
    trees: Vec<Tree>,
}

/// A chain without loops: its default step, and the step of loops on the same motion, asked for by a grip that holds its first link where it hangs anyway.
#[derive(Debug, Serialize)]
struct Tree {
    scene: String,
    us_per_step: f64,
    us_per_step_general: f64,
    /// General over default.
    ratio: f64,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    bodies: usize,
    us_per_step: f64,
    us_per_body: f64,
    /// Over the run \[m\].
    max_joint_gap: f64,
    /// The gap in lengths of a link.
    gap_per_link: f64,
    /// Steps that were timed.
    steps: usize,
}

/// The exponent `p` of `time ∝ bodiesᵖ` of a family; null with fewer than two sizes.
#[derive(Debug, Serialize)]
struct Slope {
    family: &'static str,
    slope: Option<f64>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &LoopsArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let bar = terminal.progress((FAMILIES.len() * args.bodies.len()) as u64, "scenes");
    let (mut rows, mut slopes) = (Vec::new(), Vec::new());
    for family in &FAMILIES {
        let mut points = Vec::new();
        for &bodies in &args.bodies {
            let name = format!("{}:{}", family.name, (family.size)(bodies));
            bar.set_message(name.clone());
            let (scene, gap_before) = in_motion(&name)?;
            let bodies = scene.model.bodies().len();
            let timing = Case { scene: &scene, input: scene.input.clone(), steps: STEPS }.time()?;
            let max_joint_gap = timing.max_joint_gap.max(gap_before);
            if bodies >= SLOPE_FROM {
                points.push((bodies as f64, timing.us_per_step));
            }
            rows.push(Row {
                scene: name,
                bodies,
                us_per_step: timing.us_per_step,
                us_per_body: timing.us_per_step / bodies as f64,
                max_joint_gap,
                gap_per_link: max_joint_gap / family.link,
                steps: timing.steps,
            });
            bar.inc(1);
        }
        slopes.push(Slope { family: family.name, slope: slope(points) });
    }
    let trees = CHAINS.iter().map(|&links| tree(links)).collect::<Result<_, _>>()?;
    bar.finish_and_clear();
    let document = Document { bench: "loops", machine: Machine::here(), rows, slopes, trees };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// A scene half a second after its start, and its widest gap up to there.
fn in_motion(name: &str) -> Result<(Scene, f64), Error> {
    let mut scene = Scene::parse(name).map_err(|e| Error::scene(&e, name))?;
    let mut work = Work::new(&scene.model);
    let mut gap = 0.0f64;
    for _ in 0..STEPS_BEFORE {
        let report = supple::step(&scene.model, &scene.input, &mut scene.state, &mut work);
        let report = report.map_err(|e| Error::step(&e, name))?;
        gap = gap.max(report.max_joint_gap);
    }
    Ok((scene, gap))
}

fn tree(links: u32) -> Result<Tree, Error> {
    let name = format!("chain:{links}");
    let (scene, _) = in_motion(&name)?;
    let time = |input: Input| Case { scene: &scene, input, steps: STEPS }.time().map(|timing| timing.us_per_step);
    let us_per_step = time(scene.input.clone())?;
    let mut gripped = scene.input.clone();
    let held = scene.model.joints().iter().find(|joint| joint.parent.is_none());
    gripped.grips.extend(held.map(|joint| {
        let point = joint.child_from_joint.translation;
        let pose = scene.state.bodies[joint.child.index()].pose();
        Grip { body: joint.child, point, target: pose.transform_point(point), rotation: None }
    }));
    let us_per_step_general = time(gripped)?;
    Ok(Tree { scene: name, us_per_step, us_per_step_general, ratio: us_per_step_general / us_per_step })
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("bodies", Align::Right),
        ("µs/step", Align::Right),
        ("µs/body", Align::Right),
        ("gap [m]", Align::Right),
        ("gap/link", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            grouped(row.bodies),
            figure(row.us_per_step),
            figure(row.us_per_body),
            small(row.max_joint_gap),
            small(row.gap_per_link),
        ]);
    }
    output::print(|out| {
        writeln!(
            out,
            "{}  {}",
            terminal.bold(document.bench),
            terminal.faint("closed loops at 1/60 s, half a second of their motion")
        )?;
        table.write(out, terminal)?;
        writeln!(out)?;
        for Slope { family, slope } in &document.slopes {
            let words = slope.map_or("too few sizes".into(), |p| format!("time ∝ bodies^{p:.3}"));
            writeln!(out, "  {family}: {words}")?;
        }
        for tree in &document.trees {
            let (default, general) = (figure(tree.us_per_step), figure(tree.us_per_step_general));
            let ratio = tree.ratio;
            writeln!(
                out,
                "  {} without loops: {default} µs a step; by the step of loops {general}, {ratio:.2} times that",
                tree.scene
            )?;
        }
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}
