//! `supple bench assembly`: the scenes of [Faure 1998] with the published numbers of iterations, and with the default settings.
//!
//! The paper gives: two characters bound at hands and feet, 758 scalar constraints, 6 linearisations of 30 iterations, less than a second (Fig. 3); a
//! structure of 261 constraints, dragged with 2 of 5, visually perfect with 3 of 50 (Fig. 5); a plate with 108 constraints shaken at 12 frames a second, 1
//! of 15, half of the time for rendering (Fig. 6). All on an SGI O2.

use super::{Destination, Document, Machine, Stopwatch};
use crate::error::Error;
use crate::table::{Align, Table, figure, small};
use crate::terminal::Terminal;
use clap::{Args, builder::PossibleValuesParser};
use serde::Serialize;
use supple::solver::assembly::{Cut, Linear, Scheme};
use supple::{Assembly, Input, Scene, Solver, Work, assemble, step};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct AssemblyArgs {
    /// Only this scene; may be given again
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["crowd_of_two", "bar", "lattice", "plate", "circle"]))]
    scene: Vec<String>,
    #[command(flatten)]
    destination: Destination,
}

/// A scene with its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) scene: &'static str,
    pub(super) settings: Settings,
    task: Task,
    pub(super) outer: u32,
    pub(super) inner: u32,
    /// \[m, rad\]
    tolerance: f64,
    /// On an SGI O2 \[ms\]: what the paper gives, or at most gives.
    published_ms: Option<f64>,
}

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Settings {
    /// Biconjugate gradients, rotations cut body by body, iterations as in the paper.
    Printed,
    /// The same with conjugate gradients in the sense of least squares.
    Published,
    /// Biconjugate gradients with as many iterations as rows, and bodies that resist turning: what the printed way lacks from so far away.
    Thorough,
    /// What a user gets who sets nothing but the tolerance.
    Default,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Task {
    /// From the broken start to an assembled pose.
    Assemble,
    /// A frame of the scene in motion; errors are the largest of all frames.
    Frame,
}

pub(super) const CASES: [Case; 12] = [
    like(Settings::Printed, published("crowd_of_two", Task::Assemble, (6, 30), Some(1000.0))),
    like(Settings::Thorough, published("crowd_of_two", Task::Assemble, (6, 758), None)),
    published("crowd_of_two", Task::Assemble, (6, 30), Some(1000.0)),
    default("crowd_of_two", Task::Assemble, 1e-3),
    default("bar", Task::Assemble, 1e-3),
    like(Settings::Printed, published("lattice", Task::Frame, (3, 50), None)),
    published("lattice", Task::Frame, (2, 5), None),
    published("lattice", Task::Frame, (3, 50), None),
    default("lattice", Task::Frame, 1e-6),
    published("plate", Task::Frame, (1, 15), Some(1000.0 / 12.0 / 2.0)),
    default("plate", Task::Frame, 1e-6),
    default("circle", Task::Frame, 1e-6),
];

const fn published(scene: &'static str, task: Task, (outer, inner): (u32, u32), published_ms: Option<f64>) -> Case {
    Case { scene, settings: Settings::Published, task, outer, inner, tolerance: 1e-6, published_ms }
}

const fn like(settings: Settings, case: Case) -> Case {
    Case { settings, ..case }
}

const fn default(scene: &'static str, task: Task, tolerance: f64) -> Case {
    Case { scene, settings: Settings::Default, task, outer: 20, inner: 50, tolerance, published_ms: None }
}

/// Frames of a scene in motion: two seconds.
const FRAMES: usize = 120;

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scene: &'static str,
    settings: Settings,
    task: Task,
    pub(super) bodies: usize,
    /// Scalar constraints of joints.
    pub(super) rows: usize,
    /// Linearisations at most.
    outer: u32,
    /// Iterations in each at most.
    inner: u32,
    /// Those done, in the mean over frames.
    pub(super) outer_done: f64,
    inner_done: f64,
    /// The shortest of all repetitions; of frames the mean.
    pub(super) ms: f64,
    /// \[m, rad\]
    pub(super) error_before: f64,
    pub(super) error_after: f64,
    pub(super) published_ms: Option<f64>,
    /// Published over measured.
    ratio_to_published: Option<f64>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &AssemblyArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let wanted = |case: &&Case| args.scene.is_empty() || args.scene.iter().any(|name| name == case.scene);
    let rows = CASES.iter().filter(wanted).map(measure).collect::<Result<Vec<_>, _>>()?;
    let document = Document { bench: "assembly", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// What a case took.
#[derive(Default)]
struct Taken {
    outer: f64,
    inner: f64,
    before: f64,
    after: f64,
}

pub(super) fn measure(case: &Case) -> Result<Row, Error> {
    let scene = Scene::parse(case.scene).map_err(|e| Error::scene(&e, case.scene))?;
    let scheme = match scene.input.solver {
        Solver::Assembly(own) => own.scheme,
        _ => Scheme::default(),
    };
    let (linear, cut) = match case.settings {
        Settings::Printed => (Linear::Biconjugate, Cut::EachBody),
        Settings::Published => (Linear::Plain, Cut::EachBody),
        Settings::Thorough => (Linear::Biconjugate, Cut::Resisted),
        Settings::Default => (Linear::default(), Cut::default()),
    };
    let Case { outer, inner, tolerance, .. } = *case;
    let settings = Assembly { scheme, outer, inner, tolerance, linear, cut, ..Assembly::default() };
    let mut work = Work::new(&scene.model);
    // Fresh memory is touched once beforehand.
    play(case, &scene, settings, &mut work, &mut Stopwatch::default())?;
    let (mut watch, mut taken) = (Stopwatch::default(), Taken::default());
    while watch.wants_a_run() {
        taken = play(case, &scene, settings, &mut work, &mut watch)?;
    }
    let ms = 1e-3 * watch.us_per_step();
    Ok(Row {
        scene: case.scene,
        settings: case.settings,
        task: case.task,
        bodies: scene.model.bodies().len(),
        rows: scene.model.joints().iter().map(|joint| joint.mask.rows()).sum(),
        outer,
        inner,
        outer_done: taken.outer,
        inner_done: taken.inner,
        ms,
        error_before: taken.before,
        error_after: taken.after,
        published_ms: case.published_ms,
        ratio_to_published: case.published_ms.map(|published| published / ms),
    })
}

fn play(
    case: &Case,
    scene: &Scene,
    settings: Assembly,
    work: &mut Work,
    watch: &mut Stopwatch,
) -> Result<Taken, Error> {
    let (model, mut state) = (&scene.model, scene.state.clone());
    let failed = |e: &supple::StepError| Error::step(e, scene.name.as_str());
    match case.task {
        Task::Assemble => {
            let done = watch.time(|| assemble(model, &settings, &[], &mut state, work)).map_err(|e| failed(&e))?;
            Ok(Taken {
                outer: f64::from(done.outer),
                inner: f64::from(done.inner),
                before: done.error_before,
                after: done.error_after,
            })
        }
        Task::Frame => {
            let mut input = Input { solver: Solver::Assembly(settings), ..scene.input.clone() };
            let mut taken = Taken::default();
            for _ in 0..FRAMES {
                scene.direct(state.time, &mut input);
                let done = watch.time(|| step(model, &input, &mut state, work)).map_err(|e| failed(&e))?;
                taken.outer += f64::from(done.corrections) / FRAMES as f64;
                taken.inner += f64::from(done.iterations) / FRAMES as f64;
                taken.before = taken.before.max(done.residual_before);
                taken.after = taken.after.max(done.residual);
            }
            Ok(taken)
        }
    }
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("settings", Align::Left),
        ("task", Align::Left),
        ("rows", Align::Right),
        ("outer", Align::Right),
        ("inner", Align::Right),
        ("ms", Align::Right),
        ("error before", Align::Right),
        ("error after", Align::Right),
        ("published ms", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.into(),
            match row.settings {
                Settings::Published => format!("{} of {}", row.outer, row.inner),
                Settings::Printed => format!("{} of {}, as printed", row.outer, row.inner),
                Settings::Thorough => format!("{} of {}, resisted", row.outer, row.inner),
                Settings::Default => "default".into(),
            },
            match row.task {
                Task::Assemble => "assemble".into(),
                Task::Frame => "frame".into(),
            },
            row.rows.to_string(),
            figure(row.outer_done),
            figure(row.inner_done),
            figure(row.ms),
            small(row.error_before),
            small(row.error_after),
            row.published_ms.map_or("–".into(), figure),
        ]);
    }
    let words = "the scenes of [Faure 1998], errors in m or rad, published times on an SGI O2";
    document.print(words, &table, terminal)
}
