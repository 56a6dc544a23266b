//! `supple bench skin`, `condensation`, `tubes`: characters in soft skin beside the published figures [Galoppo 2007, table 1, §5.1, fig. 6].

use super::{Destination, Document, Machine, slope};
use crate::error::Error;
use crate::output::{self, Outputs};
use crate::table::{Align, Table, figure, grouped};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use supple::glam::DVec3;
use supple::skin::{Ball, SkinEquations, condensation};
use supple::{Input, Scene, SkinSettings, Stage, State, Watch, Work, step};

/// Options of the benches.
#[derive(Args, Debug)]
pub(crate) struct SkinArgs {
    #[command(flatten)]
    destination: Destination,
}

/// A row of table 1: milliseconds a frame without and with contact.
pub(super) struct Published {
    pub(super) scene: &'static str,
    pub(super) ms: Option<f64>,
    pub(super) contact_ms: Option<f64>,
    /// Steps that are measured: until well after the first contact.
    steps: usize,
}

const fn row(scene: &'static str, ms: f64, contact_ms: f64, steps: usize) -> Published {
    Published { scene, ms: Some(ms), contact_ms: Some(contact_ms), steps }
}

pub(super) const TABLE: [Published; 7] = [
    row("deer:1748", 74.8, 123.8, 100),
    row("deer:2755", 114.1, 160.4, 100),
    row("deer:8408", 310.0, 449.7, 100),
    row("snake", 106.5, 140.6, 100),
    row("tube:2", 9.5, 13.8, 120),
    row("tube:5", 14.6, 23.3, 120),
    Published { scene: "soft_hand", ms: None, contact_ms: None, steps: 100 },
];

/// Others share the machine: runs are repeated, and of each step the shortest time of each stage counts.
const RUNS: usize = 3;

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scene: String,
    pub(super) nodes: usize,
    pub(super) bones: usize,
    pub(super) max_contacts: u32,
    refinements: u32,
    /// Mean milliseconds of a step by what is done: matrices and forces; bones; skin; search; answer.
    pub(super) setup_ms: f64,
    pub(super) bones_ms: f64,
    pub(super) skin_ms: f64,
    pub(super) detection_ms: f64,
    pub(super) response_ms: f64,
    /// Mean milliseconds of steps in which nothing touches; of a fall from 3 m above where there are none.
    pub(super) total_ms: Option<f64>,
    /// Mean milliseconds of steps in which something touches; null when there are none.
    pub(super) total_contact_ms: Option<f64>,
    published_ms: Option<f64>,
    published_contact_ms: Option<f64>,
}

/// Time of the answer against the number of contacts, all else kept.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// `published` or `default`.
    pub(super) response: &'static str,
    pub(super) contacts: u32,
    detection_ms: f64,
    pub(super) response_ms: f64,
    total_ms: f64,
}

/// The skin's matrix solved in two ways on 2,755 nodes.
#[derive(Debug, Serialize)]
pub(super) struct Equations {
    pub(super) factored_ms: f64,
    pub(super) gradients_ms: f64,
    gradient_iterations: usize,
}

#[derive(Debug, Serialize)]
struct Skins {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    /// The exponent p of time ∝ nodesᵖ over the three deer, as published.
    slope_nodes: Option<f64>,
    /// The exponent p of time ∝ contactsᵖ on the deer of 2,755 nodes, as published and by default.
    slope_contacts: Option<f64>,
    slope_contacts_default: Option<f64>,
    /// Time of the answer to 41 contacts in that to 1, as published and by default.
    response_41_to_1: Option<f64>,
    response_41_to_1_default: Option<f64>,
    contacts: Vec<Answer>,
    equations: Equations,
}

fn open(text: &str) -> Result<Scene, Error> {
    Scene::parse(text).map_err(|e| Error::scene(&e, text))
}

fn nanos() -> u64 {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// What a step took, by stage and in all \[ms\], and how many vertices touched.
#[derive(Clone, Copy)]
struct Timed {
    stages: [f64; Stage::ALL.len()],
    total: f64,
    touching: u32,
}

/// Plays a scene; of each step the shortest times.
fn play(scene: &Scene, start: &State, settings: SkinSettings, steps: usize) -> Result<Vec<Timed>, Error> {
    let mut best: Vec<Timed> = Vec::new();
    let mut work = Work::new(&scene.model);
    work.watch(Watch { clock: Some(nanos), ..Watch::default() });
    for _ in 0..RUNS {
        let (mut state, mut input) = (start.clone(), Input { skin: settings, ..scene.input.clone() });
        for k in 0..steps {
            scene.direct(state.time, &mut input);
            let report = step(&scene.model, &input, &mut state, &mut work)
                .map_err(|e| Error::step(&e, format_args!("{}, step {}", scene.name, k + 1)))?;
            let stages = work.stage_nanos().map(|n| 1e-6 * n as f64);
            let touching = report.flesh_touching;
            match best.get_mut(k) {
                None => best.push(Timed { stages, total: 0.0, touching }),
                Some(best) => {
                    (0..stages.len()).for_each(|s| best.stages[s] = best.stages[s].min(stages[s]));
                }
            }
        }
    }
    // what others take from the machine falls on one stage or another: the sum of their shortest times
    best.iter_mut().for_each(|timed| timed.total = timed.stages.iter().sum());
    Ok(best)
}

fn mean(times: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = times.fold((0.0, 0u32), |(sum, count), t| (sum + t, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

pub(super) fn measure(published: &Published, settings: SkinSettings) -> Result<Row, Error> {
    let scene = open(published.scene)?;
    let times = play(&scene, &scene.state, settings, published.steps)?;
    // the first step also makes matrices that are kept
    let times = &times[1..];
    let free = |times: &[Timed]| mean(times.iter().filter(|t| t.touching == 0).map(|t| t.total));
    let mut total_ms = free(times);
    if total_ms.is_none() {
        let mut above = scene.state.clone();
        above.bodies.iter_mut().for_each(|body| body.position.y += 3.0);
        total_ms = free(&play(&scene, &above, settings, 20)?[1..]);
    }
    let stage = |stage: Stage| mean(times.iter().map(|t| t.stages[stage as usize])).unwrap_or(0.0);
    let skin = scene.model.skin();
    Ok(Row {
        scene: published.scene.into(),
        nodes: skin.map_or(0, |skin| skin.nodes()),
        bones: skin.map_or(0, |skin| skin.bones.len()),
        max_contacts: times.iter().map(|t| t.touching).max().unwrap_or(0),
        refinements: settings.refinements,
        setup_ms: stage(Stage::Forces),
        bones_ms: stage(Stage::Factor),
        skin_ms: stage(Stage::Solve),
        detection_ms: stage(Stage::Check),
        response_ms: stage(Stage::Close),
        total_ms,
        total_contact_ms: mean(times.iter().filter(|t| t.touching > 0).map(|t| t.total)),
        published_ms: published.ms,
        published_contact_ms: published.contact_ms,
    })
}

/// The deer of 2,755 nodes in one pose, weightless, beside as many small balls each time: more and more of them press on a vertex each.
pub(super) fn contacts() -> Result<Vec<Answer>, Error> {
    const COUNTS: [usize; 8] = [1, 2, 5, 10, 20, 41, 80, 160];
    let scene = open("deer:2755,bird=0,animated=0")?;
    let Some(skin) = scene.model.skin() else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    skin.positions(&scene.state, &mut places);
    let normals = normals(&places, &skin.triangles);
    // vertices of body, neck and thighs, all over
    let mut order: Vec<usize> = (0..places.len()).filter(|&v| skin.soft[v] && places[v].y > 0.7).collect();
    order.sort_by_key(|&v| (v * 7919) % places.len());
    let mut work = Work::new(&scene.model);
    work.watch(Watch { clock: Some(nanos), ..Watch::default() });
    let mut out = Vec::new();
    for (response, settings) in [("published", SkinSettings::PUBLISHED), ("default", SkinSettings::default())] {
        for count in COUNTS {
            let ball = |(k, &v): (usize, &usize)| {
                let radius = 0.004;
                let away = if k < count { radius - 0.002 } else { radius + 0.02 };
                Ball { centre: places[v] + normals[v] * away, radius, velocity: DVec3::ZERO }
            };
            let balls = order.iter().take(COUNTS[COUNTS.len() - 1]).enumerate().map(ball).collect();
            let input = Input { balls, gravity: DVec3::ZERO, skin: settings, ..scene.input.clone() };
            let never = f64::INFINITY;
            let mut best = Answer { response, contacts: 0, detection_ms: never, response_ms: never, total_ms: never };
            for _ in 0..12 {
                let mut state = scene.state.clone();
                let begin = Instant::now();
                let report =
                    step(&scene.model, &input, &mut state, &mut work).map_err(|e| Error::step(&e, &scene.name))?;
                best.total_ms = best.total_ms.min(1e3 * begin.elapsed().as_secs_f64());
                let stage = |stage: Stage| 1e-6 * work.stage_nanos()[stage as usize] as f64;
                best.response_ms = best.response_ms.min(stage(Stage::Close));
                best.detection_ms = best.detection_ms.min(stage(Stage::Check));
                best.contacts = report.flesh_touching;
            }
            out.push(best);
        }
    }
    Ok(out)
}

/// Outward unit normals of vertices.
fn normals(places: &[DVec3], triangles: &[[u32; 3]]) -> Vec<DVec3> {
    let mut normals = vec![DVec3::ZERO; places.len()];
    for t in triangles {
        let [a, b, c] = t.map(|v| places[v as usize]);
        t.iter().for_each(|&v| normals[v as usize] += (b - a).cross(c - a));
    }
    normals.iter().map(|n| n.normalize_or(DVec3::Y)).collect()
}

pub(super) fn equations() -> Result<Equations, Error> {
    let scene = open("deer:2755")?;
    let (mut times, mut iterations) = ([0.0; 2], 0);
    for (k, equations) in [SkinEquations::Factored, SkinEquations::ConjugateGradients].into_iter().enumerate() {
        let settings = SkinSettings { equations, ..SkinSettings::PUBLISHED };
        let timed = play(&scene, &scene.state, settings, 12)?;
        times[k] = mean(timed[2..].iter().map(|t| t.stages[Stage::Solve as usize])).unwrap_or(0.0);
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        let input = Input { skin: settings, ..scene.input.clone() };
        step(&scene.model, &input, &mut state, &mut work).map_err(|e| Error::step(&e, &scene.name))?;
        iterations = work.skin_iterations();
    }
    Ok(Equations { factored_ms: times[0], gradients_ms: times[1], gradient_iterations: iterations })
}

/// Measures table 1.
pub(super) fn run(args: &SkinArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let bar = terminal.progress(2 * TABLE.len() as u64 + 2, "runs");
    let refined = SkinSettings { refinements: 2, ..SkinSettings::default() };
    let mut rows = Vec::new();
    for published in &TABLE {
        for settings in [SkinSettings::PUBLISHED, refined] {
            rows.push(measure(published, settings)?);
            bar.inc(1);
        }
    }
    let answers = contacts()?;
    bar.inc(1);
    let equations = equations()?;
    bar.finish_and_clear();
    let deer = rows.iter().filter(|r| r.scene.starts_with("deer") && r.refinements == 0);
    let slope_nodes = slope(deer.filter_map(|r| Some((r.nodes as f64, r.total_ms?))));
    let of = |response: &'static str| answers.iter().filter(move |a| a.response == response && a.contacts > 0);
    let grows = |response| slope(of(response).map(|a| (f64::from(a.contacts), a.total_ms)));
    let ratio = |response: &'static str| {
        let at = |count: u32| of(response).find(|a| a.contacts == count).map(|a| a.response_ms);
        at(41).zip(at(1)).map(|(many, one)| many / one)
    };
    let (slope_contacts, slope_contacts_default) = (grows("published"), grows("default"));
    let (response_41_to_1, response_41_to_1_default) = (ratio("published"), ratio("default"));
    let document = Skins {
        bench: "skin",
        machine: Machine::here(),
        rows,
        slope_nodes,
        slope_contacts,
        slope_contacts_default,
        response_41_to_1,
        response_41_to_1_default,
        contacts: answers,
        equations,
    };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn print(document: &Skins, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("nodes", Align::Right),
        ("bones", Align::Right),
        ("contacts", Align::Right),
        ("sweeps", Align::Right),
        ("setup", Align::Right),
        ("bones", Align::Right),
        ("skin", Align::Right),
        ("search", Align::Right),
        ("answer", Align::Right),
        ("ms free", Align::Right),
        ("ms touching", Align::Right),
        ("published", Align::Right),
    ]);
    let or_dash = |x: Option<f64>| x.map_or("–".into(), figure);
    for row in &document.rows {
        let pair = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => format!("{a} / {b}"),
            _ => "–".into(),
        };
        table.row([
            row.scene.clone(),
            grouped(row.nodes),
            row.bones.to_string(),
            row.max_contacts.to_string(),
            row.refinements.to_string(),
            figure(row.setup_ms),
            figure(row.bones_ms),
            figure(row.skin_ms),
            figure(row.detection_ms),
            figure(row.response_ms),
            or_dash(row.total_ms),
            or_dash(row.total_contact_ms),
            pair(row.published_ms, row.published_contact_ms),
        ]);
    }
    output::print(|out| {
        writeln!(out, "{}  {}", terminal.bold(document.bench), terminal.faint("milliseconds a step of 1/60 s"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        let exponent = |p: Option<f64>| p.map_or("–".into(), |p| format!("{p:.2}"));
        writeln!(out, "  time ∝ nodes^{} over the deer, nothing touching", exponent(document.slope_nodes))?;
        let both = [
            ("published", document.slope_contacts, document.response_41_to_1),
            ("default", document.slope_contacts_default, document.response_41_to_1_default),
        ];
        for (response, slope, ratio) in both {
            let times = document.contacts.iter().filter(|a| a.response == response);
            let times: Vec<String> = times.map(|a| format!("{}: {}", a.contacts, figure(a.response_ms))).collect();
            writeln!(
                out,
                "  2,755 nodes, {response}: time ∝ contacts^{}; the answer to 41 takes {} of that to 1; ms of the answer by contacts: {}",
                exponent(slope),
                exponent(ratio),
                times.join(", ")
            )?;
        }
        let Equations { factored_ms, gradients_ms, gradient_iterations } = &document.equations;
        writeln!(
            out,
            "  2,755 nodes: {} ms by factors, {} ms by conjugate gradients ({gradient_iterations} iterations)",
            figure(*factored_ms),
            figure(*gradients_ms)
        )?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Condensed {
    scene: String,
    dt: f64,
    bones: usize,
    /// Of the condensed matrix of the bones, spectral norm.
    pub(super) matrix_error: f64,
    /// Of the bones' velocities with 0 to 3 refinements, norm of the energy of motion.
    error_0: f64,
    error_1: f64,
    error_2: f64,
    error_3: f64,
    /// Measured on other meshes of the same characters; null where none was.
    expected_matrix_error: Option<f64>,
    expected_error_0: Option<f64>,
}

/// Errors that were measured in a prototype: of the matrix, and of velocities without refinement.
type Expected = (f64, f64);

/// Scene, step, and what is expected.
const CONDENSED: [(&str, f64, Option<Expected>); 6] = [
    ("tube:2,stiffness=10000", 0.005, Some((0.112, 0.268))),
    ("tube:5,stiffness=10000,influences=3", 0.02, Some((0.086, 0.141))),
    ("tube:5,influences=2", 0.02, Some((0.013, 0.030))),
    ("tube:5,influences=3", 0.02, Some((0.013, 0.030))),
    ("snake", 0.005, Some((0.104, 0.216))),
    ("snake", 0.02, None),
];

/// Measures the error of condensation.
pub(super) fn run_condensation(args: &SkinArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let document = Document { bench: "condensation", machine: Machine::here(), rows: condensed()? };
    deliver_condensed(args, &document, &files, terminal)
}

/// Measures the errors.
pub(super) fn condensed() -> Result<Vec<Condensed>, Error> {
    let mut rows = Vec::new();
    for (name, dt, expected) in CONDENSED {
        let scene = open(name)?;
        let input = Input { dt, ..scene.input.clone() };
        let Some(found) = condensation(&scene.model, &input, &scene.state) else {
            return Err(Error::failed("cli/bug", format!("{name}: it cannot be condensed")));
        };
        let [error_0, error_1, error_2, error_3] = found.velocity_errors;
        rows.push(Condensed {
            scene: name.into(),
            dt,
            bones: scene.model.bodies().len(),
            matrix_error: found.matrix_error,
            error_0,
            error_1,
            error_2,
            error_3,
            expected_matrix_error: expected.map(|e| e.0),
            expected_error_0: expected.map(|e| e.1),
        });
    }
    Ok(rows)
}

fn deliver_condensed(
    args: &SkinArgs,
    document: &Document<Condensed>,
    files: &Outputs,
    terminal: &Terminal,
) -> Result<(), Error> {
    args.destination.deliver(document, files, terminal, || {
        let mut table = Table::new([
            ("scene", Align::Left),
            ("dt [s]", Align::Right),
            ("matrix", Align::Right),
            ("0 sweeps", Align::Right),
            ("1", Align::Right),
            ("2", Align::Right),
            ("3", Align::Right),
            ("prototype", Align::Right),
        ]);
        let percent = |x: f64| format!("{} %", figure(100.0 * x));
        for row in &document.rows {
            let expected = row.expected_matrix_error.zip(row.expected_error_0);
            table.row([
                row.scene.clone(),
                crate::table::given(row.dt),
                percent(row.matrix_error),
                percent(row.error_0),
                percent(row.error_1),
                percent(row.error_2),
                percent(row.error_3),
                expected.map_or("–".into(), |(m, v)| format!("{} / {}", percent(m), percent(v))),
            ]);
        }
        document.print("error of the condensed skeleton against the coupled solution", &table, terminal)
    })
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Tubes {
    scene: String,
    varied: &'static str,
    steps: usize,
    max_contacts: u32,
    /// Largest displacement of the skin \[m\].
    pub(super) max_displacement: f64,
    /// Deepest vertex left inside anything \[m\].
    pub(super) max_penetration: f64,
    max_joint_gap: f64,
    /// Fastest vertex at the end against its bones \[m/s\].
    rest_speed: f64,
    unconverged: u32,
    pub(super) ms_per_step: f64,
}

const TUBES: [(&str, &str); 13] = [
    ("tube:5,stiffness=10000", "stiffness"),
    ("tube:5,stiffness=100000", "stiffness"),
    ("tube:5,stiffness=1000000", "stiffness"),
    ("tube:5,friction=0", "friction"),
    ("tube:5,friction=0.5", "friction"),
    ("tube:5,friction=1", "friction"),
    ("tube:2", "bones"),
    ("tube:3", "bones"),
    ("tube:10", "bones"),
    ("tube:20", "bones"),
    ("tubes", "moving constraints"),
    ("tubes:stiffness=30000", "moving constraints"),
    ("tubes:friction=1", "moving constraints"),
];

/// Measures the experiments with tubes.
pub(super) fn run_tubes(args: &SkinArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let bar = terminal.progress(TUBES.len() as u64, "tubes");
    let mut rows = Vec::new();
    for (name, varied) in TUBES {
        rows.push(one_tube(name, varied)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let document = Document { bench: "tubes", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || {
        let mut table = Table::new([
            ("scene", Align::Left),
            ("varied", Align::Left),
            ("contacts", Align::Right),
            ("displaced [mm]", Align::Right),
            ("inside [mm]", Align::Right),
            ("gap [m]", Align::Right),
            ("speed at the end [m/s]", Align::Right),
            ("unsettled", Align::Right),
            ("ms/step", Align::Right),
        ]);
        for row in &document.rows {
            table.row([
                row.scene.clone(),
                row.varied.into(),
                row.max_contacts.to_string(),
                figure(1e3 * row.max_displacement),
                figure(1e3 * row.max_penetration),
                figure(row.max_joint_gap),
                figure(row.rest_speed),
                format!("{} of {}", row.unconverged, row.steps),
                figure(row.ms_per_step),
            ]);
        }
        document.print("tubes in soft skin, 3 s", &table, terminal)
    })
}

pub(super) fn one_tube(name: &str, varied: &'static str) -> Result<Tubes, Error> {
    let scene = open(name)?;
    let steps = 180;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let mut row = Tubes {
        scene: name.into(),
        varied,
        steps,
        max_contacts: 0,
        max_displacement: 0.0,
        max_penetration: 0.0,
        max_joint_gap: 0.0,
        rest_speed: 0.0,
        unconverged: 0,
        ms_per_step: 0.0,
    };
    let fastest = |state: &State| state.nodes.iter().map(|node| node.velocity.length()).fold(0.0, f64::max);
    for k in 0..steps {
        scene.direct(state.time, &mut input);
        let begin = Instant::now();
        let report = step(&scene.model, &input, &mut state, &mut work)
            .map_err(|e| Error::step(&e, format_args!("{name}, step {}", k + 1)))?;
        row.ms_per_step += 1e3 * begin.elapsed().as_secs_f64() / steps as f64;
        row.max_contacts = row.max_contacts.max(report.flesh_touching);
        row.max_penetration = row.max_penetration.max(report.max_penetration);
        row.max_joint_gap = row.max_joint_gap.max(report.max_joint_gap);
        row.unconverged += report.unconverged.min(1);
        let displaced = state.nodes.iter().map(|node| node.position.length()).fold(0.0, f64::max);
        row.max_displacement = row.max_displacement.max(displaced);
    }
    row.rest_speed = fastest(&state);
    Ok(row)
}
