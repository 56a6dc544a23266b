//! `supple simulate X.take`: does a recorded run again, tells whether it came out the same, and writes what was asked for.

use crate::error::Error;
use crate::output::{self, Outputs, Trajectory};
use crate::table;
use crate::terminal::Terminal;
use serde::Serialize;
use supple::timeline::file::TakeFile;
use supple::{Scene, Work};
use supple_assets::{Files, Recording};

/// What a replay measured. The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Report {
    scene: String,
    solver: &'static str,
    take: String,
    takes: usize,
    /// The build that recorded it.
    recorded_by: String,
    /// Whether it was this one, and with the model that its scene has now: otherwise what is computed may differ.
    same_build: bool,
    same_model: bool,
    /// Of the last step \[s\].
    dt: f64,
    steps: u64,
    seconds: f64,
    bodies: usize,
    joints: usize,
    max_joint_gap: f64,
    fallbacks: u64,
    finite: bool,
    /// After the last step, as computed now.
    state_hash: String,
    /// After the last step, as recorded; null when the take has no step.
    recorded_hash: Option<String>,
    /// Whether every step led to the recorded state.
    identical: bool,
    /// The first step that did not.
    differs_at: Option<u64>,
}

/// Does the take that was being looked at again, from the start of its scene.
pub(crate) fn run(
    scene: &Scene,
    from: &Files,
    file: &TakeFile,
    files: &Outputs,
    json: bool,
    terminal: &Terminal,
) -> Result<(), Error> {
    let (model, timeline) = (&scene.model, &file.timeline);
    let mut work = Work::new(model);
    let take = &timeline.takes()[file.current];
    let mut moment = timeline.seek(model, file.current, 0, &mut work).map_err(|e| Error::take(&e))?;
    let (mut gap, mut fallbacks, mut differs_at) = (0.0f64, 0, None);
    let mut trajectories = files.ending("csv").map(Trajectory::create).collect::<Result<Vec<_>, _>>()?;
    let mut recording = files.ending("glb").chain(files.ending("bvh")).next().map(|_| Recording::default());
    for trajectory in &mut trajectories {
        trajectory.frame(model, &moment.state)?;
    }
    if let Some(recording) = &mut recording {
        recording.add(model, &moment.input, &moment.state, None);
    }
    let bar = terminal.progress(take.end(), "steps");
    while moment.step < take.end() {
        let outcome = timeline.advance(model, file.current, &mut moment, &mut work).map_err(|e| Error::take(&e))?;
        gap = gap.max(outcome.report.max_joint_gap);
        fallbacks += u64::from(outcome.report.fallbacks);
        if !outcome.identical && differs_at.is_none() {
            differs_at = Some(moment.step);
        }
        for trajectory in &mut trajectories {
            trajectory.frame(model, &moment.state)?;
        }
        if let Some(recording) = &mut recording {
            recording.add(model, &moment.input, &moment.state, Some(&outcome.report));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(recording) = &recording {
        crate::scenes::write_baked(scene, recording, from, files, terminal)?;
    }
    for trajectory in trajectories {
        trajectory.finish()?;
    }
    let recorded = timeline.hash(file.current, take.end());
    let report = Report {
        scene: scene.name.clone(),
        solver: moment.input.solver.name(),
        take: take.name.clone(),
        takes: timeline.takes().len(),
        recorded_by: file.build.clone(),
        same_build: file.build == crate::build(),
        same_model: timeline.is_of(model),
        dt: moment.input.dt,
        steps: moment.step,
        seconds: moment.state.time,
        bodies: model.bodies().len(),
        joints: model.joints().len(),
        max_joint_gap: gap,
        fallbacks,
        finite: moment.state.is_finite(),
        state_hash: format!("{:016x}", moment.state.hash()),
        recorded_hash: recorded.map(|hash| format!("{hash:016x}")),
        identical: differs_at.is_none(),
        differs_at,
    };
    if !report.same_build {
        let (recorded, now) = (&file.build, crate::build());
        terminal.note(format_args!("recorded by {recorded}, computed again by {now}: the result may differ"));
    }
    if !report.same_model {
        terminal.note("the model of the scene has changed since the take was recorded: the result may differ");
    }
    for path in files.ending("json") {
        output::write_json(path, &report)?;
    }
    files.tell(terminal);
    if json {
        return output::print_json(&report);
    }
    let same = match report.differs_at {
        None => "yes, every step to the last bit".to_owned(),
        Some(step) => match report.same_model {
            true => format!("no, from step {step} on: another build or another kind of machine recorded it"),
            false => format!("no, from step {step} on: the model of the scene has changed"),
        },
    };
    let pairs = [
        ("take", format!("{} of {}", report.take, report.scene)),
        ("simulated", format!("{} s in {} steps", table::given(report.seconds), report.steps)),
        ("as recorded", same),
        ("state hash", report.state_hash.clone()),
    ];
    output::print(|out| table::write_pairs(out, terminal, &pairs))
}
