//! `supple bench hand`: time per step of a hand that follows a glove [Hernández 2011, §6].
//!
//! The paper gives 0.36 ms per frame for the articulated dynamics of 16 bones and 15 joints.

use super::trial::solver;
use super::{Case, Destination, Document, Machine, Stopwatch, Timing};
use crate::error::Error;
use crate::settings;
use crate::table::{Align, Table, figure, grouped, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use supple::{Input, Scene, TreeScheme, Work, step, step_crowd};

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
pub(super) const PUBLISHED_US: f64 = 360.0;

/// The ways the hand is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Variant {
    /// One hand with springs, limits and tracking, moving, by the published step.
    Full,
    /// The same hand by the step that a user gets who sets nothing.
    Default,
    /// A thousand hands by the published step, four side by side in the lanes of the processor; figures are per hand.
    Crowd,
    /// The same by the step that a user gets who sets nothing.
    CrowdDefault,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Full => "full",
            Variant::Default => "default",
            Variant::Crowd => "crowd",
            Variant::CrowdDefault => "crowd_default",
        }
    }

    fn scheme(self) -> TreeScheme {
        match self {
            Variant::Full | Variant::Crowd => TreeScheme::Published,
            Variant::Default | Variant::CrowdDefault => TreeScheme::default(),
        }
    }
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scene: String,
    variant: Variant,
    /// How many hands.
    hands: usize,
    pub(super) bodies: usize,
    pub(super) joints: usize,
    /// Per hand.
    pub(super) us_per_step: f64,
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

    let rows = vec![
        alone(&scene, Variant::Full, steps)?,
        alone(&scene, Variant::Default, steps)?,
        crowd(&scene, Variant::Crowd, steps.min(CROWD_STEPS))?,
        crowd(&scene, Variant::CrowdDefault, steps.min(CROWD_STEPS))?,
    ];
    let document = Document { bench: "hand", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// One hand.
pub(super) fn alone(scene: &Scene, variant: Variant, steps: usize) -> Result<Row, Error> {
    let input = Input { solver: solver(variant.scheme()), ..scene.input.clone() };
    let timing = Case { scene, input, steps }.time()?;
    Ok(row(scene, variant, 1, timing))
}

/// Hands of the crowd.
const CROWD: usize = 1000;
/// From hand to hand the recording is this much further \[s\].
const PHASE: f64 = 0.004;
/// A run of the crowd has at most this many steps.
const CROWD_STEPS: usize = 60;

/// A thousand hands, each at its own place in the recording, all moving. What directs them is not timed.
fn crowd(scene: &Scene, variant: Variant, steps: usize) -> Result<Row, Error> {
    let model = &scene.model;
    let mut work = Work::new(model);
    let input = Input { solver: solver(variant.scheme()), ..scene.input.clone() };
    let failed = |e: &supple::StepError| Error::step(e, format_args!("{} in a crowd", scene.name));

    let (mut hand, mut between) = (scene.state.clone(), Input { dt: PHASE, ..input.clone() });
    let mut start = Vec::with_capacity(CROWD);
    for _ in 0..CROWD {
        start.push(hand.clone());
        scene.direct(hand.time, &mut between);
        step(model, &between, &mut hand, &mut work).map_err(|e| failed(&e))?;
    }
    let mut inputs = vec![input; CROWD];

    let mut watch = Stopwatch::default();
    let mut timing = Timing::default();
    while watch.wants_a_run() {
        let mut states = start.clone();
        for _ in 0..steps {
            for (state, input) in states.iter().zip(&mut inputs) {
                scene.direct(state.time, input);
            }
            let done =
                watch.time(|| step_crowd(model, &inputs, &mut states, &mut work)).map_err(|e| failed(&e.error))?;
            timing.max_joint_gap = timing.max_joint_gap.max(done.max_joint_gap);
            timing.limits_active_max = timing.limits_active_max.max(done.limits_active);
        }
    }
    timing.us_per_step = watch.us_per_step() / CROWD as f64;
    Ok(row(scene, variant, CROWD, timing))
}

fn row(scene: &Scene, variant: Variant, hands: usize, timing: Timing) -> Row {
    Row {
        scene: scene.name.clone(),
        variant,
        hands,
        bodies: scene.model.bodies().len(),
        joints: scene.model.joints().len(),
        us_per_step: timing.us_per_step,
        max_joint_gap: timing.max_joint_gap,
        limits_active_max: timing.limits_active_max,
        published_us: Some(PUBLISHED_US),
        ratio_to_published: Some(PUBLISHED_US / timing.us_per_step),
    }
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("variant", Align::Left),
        ("hands", Align::Right),
        ("bodies", Align::Right),
        ("µs/hand", Align::Right),
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
    document.print("springs, limits, tracking", &table, terminal)
}
