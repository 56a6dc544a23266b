//! `supple bench worm`, `fish`, `finger`: time per step of characters in flesh, explicit and implicit [Kim 2008, table 2, fig. 5].

use super::{Case, Destination, Machine, slope};
use crate::error::Error;
use crate::output::{self, Captions, Series, SeriesKind};
use crate::table::{Align, Table, figure, grouped};
use crate::terminal::Terminal;
use clap::Args;
use plotters::style::RGBColor;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use supple::control::{Keyframes, Mode};
use supple::model::Coordinates;
use supple::{Diagonalize, Input, NodeState, Reduced, Scene, Solver, State, Work, step};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct CreatureArgs {
    #[command(flatten)]
    destination: Destination,
}

/// A character as published: name, step of explicit runs \[s\], milliseconds a step under joint control and under Cartesian control.
pub(super) struct Published {
    pub(super) name: &'static str,
    pub(super) dt: f64,
    pub(super) joint_ms: f64,
    pub(super) cartesian_ms: f64,
    /// The take that is measured under Cartesian control: a jump of the worm and of the fish, a push of the finger, as published.
    pub(super) take: &'static str,
}

pub(super) const TABLE: [Published; 3] = [
    Published { name: "worm", dt: 1e-3, joint_ms: 1.60, cartesian_ms: 2.86, take: "jump2" },
    Published { name: "fish", dt: 1e-3, joint_ms: 1.48, cartesian_ms: 2.44, take: "escape" },
    Published { name: "finger", dt: 0.5e-3, joint_ms: 0.629, cartesian_ms: 2.10, take: "push" },
];

pub(super) const EXPLICIT_STEPS: usize = 300;
const IMPLICIT_STEPS: usize = 60;
const FRAME: f64 = 1.0 / 60.0;
/// How much finer the cages are by which the growth of time is told.
const FINE: [f64; 3] = [1.0, 1.5, 2.0];

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scene: String,
    control: &'static str,
    integrator: &'static str,
    dt: f64,
    elements: usize,
    pub(super) ms_per_step: f64,
    /// Newton steps of flesh, mean; null for explicit steps.
    newton_mean: Option<f64>,
    /// Share of steps whose flesh was solved to its tolerance; null for explicit steps.
    converged: Option<f64>,
    /// Mean share of elements outside the range of the material.
    pub(super) largely_deformed_ratio: f64,
    /// Time with all elements diagonalised to that with those outside the range only; null for implicit steps.
    speedup: Option<f64>,
    published_ms: Option<f64>,
    /// Time to that of the same integrator under joint control; null for joint control.
    to_joint: Option<f64>,
}

/// Time of an explicit step against the share of largely deformed elements.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) ratio: f64,
    pub(super) selective_ms: f64,
    pub(super) full_ms: f64,
}

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    /// The exponent p of time ∝ elementsᵖ of explicit steps.
    slope: Option<f64>,
    figure: Vec<Point>,
}

/// Measures, writes, prints.
pub(super) fn run(name: &str, args: &CreatureArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json", "svg"])?;
    let published = TABLE.iter().find(|p| p.name == name).expect("the benches are those of the table");
    let open = |text: &str| Scene::parse(text).map_err(|e| Error::scene(&e, text));
    let scene = open(name)?;
    let bar = terminal.progress(4 + FINE.len() as u64, "runs");
    let mut rows = Vec::new();
    let full = measure(&scene, explicit(Diagonalize::Always), published.dt, EXPLICIT_STEPS)?;
    bar.inc(1);
    let selective = measure(&scene, explicit(Diagonalize::Selective), published.dt, EXPLICIT_STEPS)?;
    bar.inc(1);
    let joint = Some(published.joint_ms);
    let joint_ms = selective.ms_per_step;
    rows.push(Row { speedup: Some(full.ms_per_step / joint_ms), published_ms: joint, ..selective });
    let directed = open(&format!("{name}:take={}", published.take))?;
    let cartesian = measure(&directed, explicit(Diagonalize::Selective), published.dt, EXPLICIT_STEPS)?;
    // The same motion of the joints again, by keyframes through which the spline was led once: what control costs, not what the motion does to the flesh.
    let again = by_joints(&directed, explicit(Diagonalize::Selective), published.dt)?;
    let same = measure(&again, explicit(Diagonalize::Selective), published.dt, EXPLICIT_STEPS)?;
    let to_joint = Some(cartesian.ms_per_step / same.ms_per_step);
    rows.push(same);
    let published_ms = Some(published.cartesian_ms);
    rows.push(Row { control: "cartesian", published_ms, to_joint, ..cartesian });
    bar.inc(1);
    let implicit = measure(&scene, Solver::default(), FRAME, IMPLICIT_STEPS)?;
    rows.push(Row { published_ms: None, ..implicit });
    bar.inc(1);
    let mut points = Vec::new();
    for fine in FINE {
        let refined = open(&format!("{name}:fine={fine}"))?;
        // The same short steps for all: what one costs, not how many a finer cage would need.
        let row = measure(&refined, explicit(Diagonalize::Selective), 1e-5, EXPLICIT_STEPS)?;
        points.push((row.elements as f64, row.ms_per_step));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let figure = curve(&scene)?;
    let document = Document { bench: published.name, machine: Machine::here(), rows, slope: slope(points), figure };
    for path in files.ending("svg") {
        output::write_text(path, &chart(document.bench, &document.figure)?)?;
    }
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// Explicit steps.
pub(super) fn explicit(diagonalize: Diagonalize) -> Solver {
    Solver::Reduced(Reduced { diagonalize, ..Reduced::default() })
}

/// A directed scene with the motion of its joints as keyframes in place of goals.
pub(super) fn by_joints(scene: &Scene, solver: Solver, dt: f64) -> Result<Scene, Error> {
    let model = &scene.model;
    let mut input = Input { dt, solver, ..scene.input.clone() };
    let (mut state, mut work, mut keyframes) = (scene.state.clone(), Work::new(model), Keyframes::new());
    for k in 0..=EXPLICIT_STEPS {
        if k % 10 == 0 {
            keyframes.insert(state.time, &Coordinates::of(model, &state));
        }
        scene.direct(state.time, &mut input);
        step(model, &input, &mut state, &mut work).map_err(|e| Error::step(&e, &scene.name))?;
    }
    input.control.mode = Mode::Keyframes;
    input.control.keyframes = keyframes;
    input.control.goals.clear();
    Ok(Scene::from_parts(&scene.name, model.clone(), scene.state.clone(), input))
}

pub(super) fn measure(scene: &Scene, solver: Solver, dt: f64, steps: usize) -> Result<Row, Error> {
    let input = Input { dt, solver, ..scene.input.clone() };
    let timing = Case { scene, input: input.clone(), steps }.time()?;
    // What the steps report is the same in every run: once more, to count.
    let (mut state, mut input, mut work) = (scene.state.clone(), input, Work::new(&scene.model));
    let (mut newton, mut unsettled, mut outside) = (0u64, 0u64, 0u64);
    for k in 0..timing.steps {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work)
            .map_err(|e| Error::step(&e, format_args!("{}, step {}", scene.name, k + 1)))?;
        newton += u64::from(report.flesh_newton);
        unsettled += u64::from(report.flesh_unsettled.min(1));
        outside += u64::from(report.flesh_outside);
    }
    let n = timing.steps as f64;
    let elements = scene.model.flesh().map_or(0, |flesh| flesh.elements.len());
    let is_implicit = !matches!(solver, Solver::Reduced(_));
    Ok(Row {
        scene: scene.name.clone(),
        control: "joint",
        integrator: if is_implicit { "implicit" } else { "explicit" },
        dt,
        elements,
        ms_per_step: 1e-3 * timing.us_per_step,
        newton_mean: is_implicit.then(|| newton as f64 / n),
        converged: is_implicit.then(|| 1.0 - unsettled as f64 / n),
        largely_deformed_ratio: outside as f64 / (n * elements as f64),
        speedup: None,
        published_ms: None,
        to_joint: None,
    })
}

/// Explicit steps from states in which more and more of the flesh is blown up.
pub(super) fn curve(scene: &Scene) -> Result<Vec<Point>, Error> {
    let model = &scene.model;
    let Some(flesh) = model.flesh() else { return Ok(Vec::new()) };
    let axis = |x: f64| flesh.start.iter().map(|p| p.x).fold(x, if x > 0.0 { f64::min } else { f64::max });
    let (low, high) = (axis(f64::INFINITY), axis(f64::NEG_INFINITY));
    let mut work = Work::new(model);
    let mut points = Vec::new();
    for tenth in 0..=10 {
        let limit = low + (high - low) * f64::from(tenth) / 10.0;
        let centre = scene.state.bodies[0].position;
        let swollen = |node: &NodeState| {
            let p = node.position;
            let mut q = p;
            if p.x < limit {
                q.y = centre.y + 1.8 * (p.y - centre.y);
                q.z = centre.z + 1.8 * (p.z - centre.z);
            }
            NodeState::at_rest(q)
        };
        let start = State { nodes: scene.state.nodes.iter().map(swollen).collect(), ..scene.state.clone() };
        let mut ratio = 0.0;
        let mut best = |diagonalize: Diagonalize| {
            let solver = Solver::Reduced(Reduced { diagonalize, ..Reduced::default() });
            let input = Input { dt: 1e-6, solver, ..scene.input.clone() };
            let mut least = f64::INFINITY;
            for _ in 0..40 {
                let mut state = start.clone();
                let begin = Instant::now();
                let report = step(model, &input, &mut state, &mut work).map_err(|e| Error::step(&e, &scene.name))?;
                least = least.min(1e3 * begin.elapsed().as_secs_f64());
                ratio = f64::from(report.flesh_outside) / flesh.elements.len() as f64;
            }
            Ok::<f64, Error>(least)
        };
        let (selective_ms, full_ms) = (best(Diagonalize::Selective)?, best(Diagonalize::Always)?);
        points.push(Point { ratio, selective_ms, full_ms });
    }
    Ok(points)
}

pub(super) fn chart(name: &str, measured: &[Point]) -> Result<String, Error> {
    let line = |label: &str, colour: RGBColor, time: fn(&Point) -> f64| Series {
        label: label.into(),
        colour,
        kind: SeriesKind::Line,
        weight: 1,
        points: measured.iter().map(|p| (p.ratio, time(p))).collect(),
    };
    let series = [
        line("selective", RGBColor(0, 114, 178), |p| p.selective_ms),
        line("full", RGBColor(213, 94, 0), |p| p.full_ms),
    ];
    let title = format!("{}: an explicit step, largely deformed elements diagonalised or all", name);
    output::time_chart(Captions { title: &title, x: "share of largely deformed elements", y: "ms per step" }, &series)
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("control", Align::Left),
        ("integrator", Align::Left),
        ("dt [s]", Align::Right),
        ("elements", Align::Right),
        ("ms/step", Align::Right),
        ("Newton", Align::Right),
        ("converged", Align::Right),
        ("deformed", Align::Right),
        ("speedup", Align::Right),
        ("published ms", Align::Right),
        ("to joint", Align::Right),
    ]);
    let or_dash = |x: Option<f64>| x.map_or("–".into(), figure);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            row.control.into(),
            row.integrator.into(),
            crate::table::given(row.dt),
            grouped(row.elements),
            figure(row.ms_per_step),
            or_dash(row.newton_mean),
            or_dash(row.converged),
            figure(row.largely_deformed_ratio),
            or_dash(row.speedup),
            or_dash(row.published_ms),
            or_dash(row.to_joint),
        ]);
    }
    output::print(|out| {
        writeln!(out, "{}  {}", terminal.bold(document.bench), terminal.faint("joints led by servos"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        let words = document.slope.map_or("too few sizes".into(), |p| format!("explicit time ∝ elements^{p:.2}"));
        writeln!(out, "  {words}")?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}
