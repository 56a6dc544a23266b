//! `supple simulate`: runs a scene without a window and measures it.

use crate::error::Error;
use crate::output::{self, Outputs, Trajectory};
use crate::scenes::Opened;
use crate::settings::{self, RunArgs, Settings};
use crate::table::{self, count, figure, fraction, given, grouped};
use crate::terminal::{Terminal, harmless};
use crate::track::{Track, Tracking};
use clap::Args;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use supple::solver::assembly::Budget;
use supple::{Figure, Grade, Input, Merge, Run, Scene, Solver, Work, measure, step};
use supple_assets::Recording;

/// Run a scene without a window
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), a file (.glb, .gltf, .vrm, .fbx, .urdf, .xml for MJCF, .bvh, .vrma), or a .take file, which is done again
    scene: String,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    #[command(flatten)]
    character: crate::scenes::CharacterArgs,
    /// Follow a clip of the file, a recorded motion, or on a character a clip of another one's file
    #[arg(long, value_name = "CLIP|FILE.bvh|FILE#CLIP")]
    track: Option<String>,
    /// With a motion of another file, a body and the recorded joint that it follows; may be given again
    #[arg(long, value_name = "BODY=JOINT", requires = "track")]
    map: Vec<String>,
    /// Start in a keyframe of an MJCF file
    #[arg(long, value_name = "NAME", conflicts_with = "floating")]
    keyframe: Option<String>,
    /// Do not fix the root of a URDF to the world
    #[arg(long)]
    floating: bool,
    /// Write a file, by its ending: .glb (baked animation), .bvh (motion), .usda (UsdSkel), .vrma (motion of an avatar), .csv (trajectory) or .json (report); may be given again
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// How much time to simulate, in seconds
    #[arg(long, value_name = "S", default_value = "10", allow_hyphen_values = true)]
    seconds: String,
    #[command(flatten)]
    bake: crate::bake::BakeArgs,
    #[command(flatten)]
    states: crate::states::StateArgs,
    #[command(flatten)]
    run: RunArgs,
    /// Microseconds that the corrections of solver assembly may take in a step: turned into iterations
    #[arg(long, value_name = "US", allow_hyphen_values = true)]
    budget: Option<String>,
    /// Print the report as one JSON document
    #[arg(long)]
    json: bool,
}

/// What a run can be written into.
const ENDINGS: [&str; 6] = ["glb", "bvh", "usda", "vrma", "csv", "json"];

/// What a run measured. The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Report {
    scene: String,
    solver: &'static str,
    /// \[s\]
    dt: f64,
    steps: usize,
    /// Simulated time \[s\].
    seconds: f64,
    bodies: usize,
    joints: usize,
    ms_per_step: Times,
    /// \[m\]
    max_joint_gap: f64,
    /// Sine of an angle.
    max_joint_tilt: f64,
    energy: Energies,
    contacts_max: u32,
    substeps_max: u32,
    fallbacks: u64,
    /// By the name of a rule: how many parts of steps it did. Those of fallbacks are not among them.
    rules: BTreeMap<&'static str, u64>,
    /// Whether every number here and of the state at the end is one.
    finite: bool,
    state_hash: String,
    limits_active_max: u32,
    /// \[m\]
    max_penetration: f64,
    /// Parts of steps in which not all contacts settled.
    unconverged: u64,
    tiers: Tiers,
    corrections: Corrections,
    /// Every figure of the engine's reports.
    figures: Figures,
    /// `good`, `degraded` or `failed`.
    quality: &'static str,
    /// Why no better, in words.
    reasons: Vec<String>,
    /// Of a run with `--track FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<Tracking>,
    settings: Settings,
}

/// What the corrections of joints took; zeros for a solver that makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Corrections {
    /// In all steps.
    count: u64,
    /// Iterations of linear solvers in all of them.
    iterations: u64,
    /// Largest error left after a step \[m, rad\].
    residual_max: f64,
}

impl Corrections {
    fn of(run: &Run) -> Corrections {
        Corrections {
            count: run.total("corrections") as u64,
            iterations: run.total("iterations") as u64,
            residual_max: run.largest("residual"),
        }
    }
}

/// How often the run needed more than the plain midpoint rule over a whole step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Tiers {
    /// Halvings because a joint would turn too far in one part.
    rotation_halvings: u64,
    /// Parts done by the backward rule.
    backward_parts: u64,
    /// Parts done by the last resort.
    resorts: u64,
    /// Those of them in which bodies that touch could not move.
    stalled: u64,
    /// Parts whose velocities were projected onto closed joints.
    projections: u64,
}

impl Tiers {
    fn of(run: &Run) -> Tiers {
        let total = |name| run.total(name) as u64;
        Tiers {
            rotation_halvings: total("rotation_halvings"),
            backward_parts: total("backward_parts"),
            resorts: total("resorts"),
            stalled: total("stalled"),
            projections: total("projections"),
        }
    }

    /// Those that are not zero, in words.
    fn words(self) -> String {
        let told = [
            (self.rotation_halvings, "rotation halving", "rotation halvings"),
            (self.backward_parts, "backward part", "backward parts"),
            (self.resorts, "resort", "resorts"),
            (self.stalled, "part without a way to move", "parts without a way to move"),
            (self.projections, "projection", "projections"),
        ];
        let words = told.iter().filter(|(n, ..)| *n > 0).map(|&(n, one, many)| count(n as usize, one, many));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Every figure of the engine's reports by its name: the largest of any step, and the sum over all where parts add up.
#[derive(Debug)]
pub(crate) struct Figures(Vec<(&'static Figure, f64, f64)>);

impl Figures {
    pub(crate) fn of(run: &Run) -> Figures {
        Figures(run.figures().collect())
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = |figure: &Figure, x: f64| match figure.is_count() {
            true => serde_json::Value::from(x as u64),
            false => serde_json::Value::from(x),
        };
        serializer.collect_map(self.0.iter().map(|(figure, largest, total)| {
            let mut told = serde_json::json!({ "unit": figure.unit, "largest": number(figure, *largest) });
            if figure.parts == Merge::Sum {
                told["total"] = number(figure, *total);
            }
            (figure.name, told)
        }))
    }
}

/// Wall-clock time of the steps \[ms\].
#[derive(Debug, Serialize)]
struct Times {
    median: f64,
    p99: f64,
    max: f64,
}

/// \[J\]
#[derive(Debug, Serialize)]
struct Energies {
    first: f64,
    last: f64,
    /// Null when the model is too large to measure at every step.
    max: Option<f64>,
}

/// Up to this many bodies the energy is measured at every step; it costs about as much as the step itself.
const ENERGY_AT_EVERY_STEP: usize = 10_000;

/// Runs the scene, writes the files, prints the report.
pub(crate) fn run(args: &SimulateArgs, terminal: &Terminal) -> Result<(), Error> {
    let recorded = args.track.as_ref().filter(|track| supple_assets::motion::is_recording(track));
    let text = match (&args.track, &args.keyframe) {
        (Some(clip), None) if recorded.is_none() => format!("{}#{clip}", args.scene),
        (_, Some(keyframe)) if args.scene.to_lowercase().ends_with(".xml") => format!("{}#{keyframe}", args.scene),
        (_, Some(_)) => return Err(Error::setting("only an MJCF file (.xml) has keyframes", "leave out --keyframe")),
        _ => args.scene.clone(),
    };
    let from = args.files.with(&args.character)?;
    let opened = if args.floating {
        crate::scenes::open_floating(&text, &from).map(Opened::Scene)
    } else {
        crate::scenes::open_any(&text, &from)
    };
    let scene = match opened? {
        Opened::Scene(scene) => scene,
        Opened::Takes(scene, file, character) => {
            args.run.refuse_for_take()?;
            args.states.refuse_for_take()?;
            if args.budget.is_some() {
                return Err(Error::setting("a take has its iterations recorded", "leave out --budget"));
            }
            let files = Outputs::check(&args.output, &ENDINGS)?;
            args.bake.check(&files)?;
            let outputs = crate::replay::Wanted { bake: &args.bake, files: &files, json: args.json };
            return crate::replay::run(&scene, character.as_deref(), &file, &outputs, terminal);
        }
    };
    let (scene, track) = match recorded {
        Some(file) => {
            let (scene, track) = Track::onto(&scene, &from, file, &args.map, terminal)?;
            (scene, Some(track))
        }
        None => (scene, None),
    };
    let scene = args.states.put(scene)?;
    let input = args.run.input(&scene)?;
    let budget = args.budget.as_deref().map(|text| settings::budget(text, &input)).transpose()?;
    let steps = settings::steps(&args.seconds, input.dt)?;
    let files = Outputs::check(&args.output, &ENDINGS)?;
    args.bake.check(&files)?;
    let mut trajectories = files.ending("csv").map(Trajectory::create).collect::<Result<Vec<_>, _>>()?;

    let wanted = crate::scenes::MOTION_ENDINGS.iter().any(|ending| files.ending(ending).next().is_some());
    let mut recording = wanted.then(Recording::default);
    let report = simulate(&scene, input, budget, steps, &mut trajectories, &mut recording, track, terminal)?;

    if let Some(recording) = recording {
        let character = crate::scenes::character(&text, &from)?;
        let clips = vec![("supple".to_owned(), recording)];
        args.bake.write(&scene, character.as_ref(), clips, &files, terminal)?;
    }

    for trajectory in trajectories {
        trajectory.finish()?;
    }
    for path in files.ending("json") {
        output::write_json(path, &report)?;
    }
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(|out| {
            writeln_title(out, terminal, &report)?;
            table::write_pairs(out, terminal, &summary(&report))
        })?;
    }
    files.tell(terminal);
    trusted(report.quality, &report.reasons)
}

/// A run that failed ends with status 1, after everything was written that it gave.
pub(crate) fn trusted(quality: &str, reasons: &[String]) -> Result<(), Error> {
    if quality != Grade::Failed.word() {
        return Ok(());
    }
    Err(Error::failed("run/quality", format!("the run is not to be trusted: {}", reasons.join("; "))))
}

/// The run itself. Only `step` is timed.
#[allow(clippy::too_many_arguments)] // all that a run takes and gives
fn simulate(
    scene: &Scene,
    mut input: Input,
    mut budget: Option<Budget>,
    steps: usize,
    trajectories: &mut [Trajectory],
    recording: &mut Option<Recording>,
    mut track: Option<Track>,
    terminal: &Terminal,
) -> Result<Report, Error> {
    let model = &scene.model;
    let mut state = crate::scenes::start(scene, terminal)?;
    let mut work = Work::new(model);
    let mut times = Vec::with_capacity(steps);
    let asked = input.solver;
    let mut tones = scene.stated_tones();

    scene.direct(state.time, &mut input);
    let settings = Settings::of(&input);
    let energy_at_every_step = model.bodies().len() <= ENERGY_AT_EVERY_STEP;
    let first = measure::energy(model, &input, &state).total();
    let mut highest = first;
    let mut run = Run::new(model, &input, &state);
    for trajectory in trajectories.iter_mut() {
        trajectory.frame(model, &state)?;
    }

    if let Some(recording) = recording {
        recording.add(model, &input, &state, None);
    }

    let bar = terminal.progress(steps as u64, "steps");
    bar.set_message(harmless(&scene.name).into_owned());
    for k in 0..steps {
        let time = state.time;
        scene.direct(time, &mut input);
        if let Some(tones) = &mut tones {
            tones.direct(model, &state, &[], &mut input);
        }
        if let (Some(budget), Solver::Assembly(asked)) = (&budget, asked) {
            input.solver = Solver::Assembly(budget.settings(asked));
        }
        let start = Instant::now();
        let result = step(model, &input, &mut state, &mut work);
        times.push(start.elapsed());
        let done = result.map_err(|e| {
            bar.finish_and_clear();
            Error::step(&e, format_args!("step {} of {steps}, at {} s", k + 1, given(time)))
        })?;

        if let Some(budget) = &mut budget {
            budget.learn(&done, 1e6 * times[k].as_secs_f64());
        }
        let energy = energy_at_every_step.then(|| measure::energy(model, &input, &state).total());
        highest = energy.map_or(highest, |energy| highest.max(energy));
        run.add(model, &input, &state, &done, energy);
        for trajectory in trajectories.iter_mut() {
            trajectory.frame(model, &state)?;
        }
        if let Some(recording) = recording {
            recording.add(model, &input, &state, Some(&done));
        }
        if let Some(track) = &mut track {
            track.measure(&state);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();

    let last = measure::energy(model, &input, &state).total();
    let quality = run.quality(model, &input, &state);
    let tracking = track.map(Track::report);
    let followed = tracking.as_ref().is_none_or(Tracking::is_finite);
    Ok(Report {
        scene: scene.name.clone(),
        solver: input.solver.name(),
        dt: input.dt,
        steps,
        seconds: steps as f64 * input.dt,
        bodies: model.bodies().len(),
        joints: model.joints().len(),
        ms_per_step: Times::of(times),
        max_joint_gap: run.largest("max_joint_gap"),
        max_joint_tilt: run.largest("max_joint_tilt"),
        energy: Energies { first, last, max: energy_at_every_step.then_some(highest) },
        contacts_max: run.largest("contacts") as u32,
        substeps_max: run.largest("substeps") as u32,
        fallbacks: run.total("fallbacks") as u64,
        rules: run.rules(),
        finite: run.is_finite(&state) && first.is_finite() && last.is_finite() && followed,
        state_hash: format!("{:016x}", state.hash()),
        limits_active_max: run.largest("limits_active") as u32,
        max_penetration: run.largest("max_penetration"),
        unconverged: run.total("unconverged") as u64,
        tiers: Tiers::of(&run),
        corrections: Corrections::of(&run),
        figures: Figures::of(&run),
        quality: quality.grade.word(),
        reasons: quality.words(),
        tracking,
        settings,
    })
}

impl Times {
    /// Of at least one step.
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let at = |share: f64| 1e3 * times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64();
        Times { median: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

fn writeln_title(out: &mut impl std::io::Write, terminal: &Terminal, report: &Report) -> std::io::Result<()> {
    let parts = format!(
        "{}, {}, solver {}",
        count(report.bodies, "body", "bodies"),
        count(report.joints, "joint", "joints"),
        report.solver
    );
    writeln!(out, "{}  {}", terminal.bold(&report.scene), terminal.faint(&parts))
}

/// The report in words.
fn summary(report: &Report) -> Vec<(&'static str, String)> {
    let Times { median, p99, max } = report.ms_per_step;
    let (scale, unit) = if median < 0.1 { (1e3, "µs") } else { (1.0, "ms") };
    let [median_shown, p99, max] = [median, p99, max].map(|ms| figure(scale * ms));
    let speed = 1e3 * report.dt / median;
    let (speed, word) = if speed < 1.0 { (1.0 / speed, "slower") } else { (speed, "faster") };
    let steps = count(report.steps, "step", "steps");
    let energy = &report.energy;
    let highest = energy.max.map_or(String::new(), |max| format!(", {} J highest", figure(max)));
    let mut pairs = vec![
        ("simulated", format!("{} s in {steps} of {} s", given(report.seconds), fraction(report.dt))),
        ("time per step", format!("{median_shown} {unit} median, {p99} {unit} p99, {max} {unit} longest")),
        ("speed", format!("{} times {word} than real time at the median step", figure(speed))),
        (
            "largest joint gap",
            format!("{} m, tilt {} rad", figure(report.max_joint_gap), figure(report.max_joint_tilt)),
        ),
        ("energy", format!("{} J first, {} J last{highest}", figure(energy.first), figure(energy.last))),
    ];
    let mut at_most = |name, n: u32| {
        if n > 0 {
            pairs.push((name, format!("{} at most", grouped(n as usize))));
        }
    };
    at_most("limits acting", report.limits_active_max);
    at_most("contacts", report.contacts_max);
    if report.contacts_max > 0 {
        let unsettled = match report.unconverged {
            0 => "all settled".to_owned(),
            n => format!("not settled in {}", count(n as usize, "part", "parts")),
        };
        pairs.push(("penetration", format!("{} m at most, {unsettled}", figure(report.max_penetration))));
    }
    if report.substeps_max > 1 || report.fallbacks > 0 {
        pairs.push(("parts of a step", format!("{} at most, {} halved", report.substeps_max, report.fallbacks)));
    }
    if report.tiers != Tiers::default() {
        pairs.push(("tiers used", report.tiers.words()));
    }
    if report.corrections != Corrections::default() {
        let Corrections { count, iterations, residual_max } = report.corrections;
        let each = |n: u64| figure(n as f64 / report.steps as f64);
        let text = format!(
            "{} a step, {} iterations, {} m or rad left at most",
            each(count),
            each(iterations),
            figure(residual_max)
        );
        pairs.push(("corrections", text));
    }
    if let Some(tracking) = &report.tracking {
        pairs.extend(tracking.words());
    }
    if !report.finite {
        pairs.push(("finite", "no: a number of the run overflowed".into()));
    }
    pairs.push(("quality", report.quality.to_owned()));
    pairs.extend(report.reasons.iter().map(|reason| ("", reason.clone())));
    pairs.push(("state hash", report.state_hash.clone()));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_sorted_times() {
        let times = Times::of((1..=101).rev().map(Duration::from_millis).collect());
        assert_eq!((times.median, times.p99, times.max), (51.0, 100.0, 101.0));
        let one = Times::of(vec![Duration::from_millis(3)]);
        assert_eq!((one.median, one.max), (3.0, 3.0));
    }
}
