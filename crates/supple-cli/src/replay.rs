//! `supple simulate X.take`: does a recorded run again, tells whether it came out the same, and writes what was asked for.

use crate::bake::{BakeArgs, Clip};
use crate::error::Error;
use crate::output::{self, Outputs, Trajectory};
use crate::table;
use crate::terminal::Terminal;
use serde::Serialize;
use supple::timeline::file::TakeFile;
use supple::timeline::{Difference, Playback};
use supple::{Moment, Run, Scene, TakeError, Work, measure};
use supple_assets::{Character, Recording};

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
    /// After the last step, as computed now; null when it cannot be computed.
    state_hash: Option<String>,
    /// After the last step, as recorded; null when the take has no step.
    recorded_hash: Option<String>,
    /// Whether every step led to the recorded state.
    identical: bool,
    /// The first step that did not.
    differs_at: Option<u64>,
    /// The body that is off, from the step on at which the stored poses show it, and by how much \[m\].
    differs_body: Option<String>,
    differs_body_at: Option<u64>,
    differs_by: Option<f64>,
    /// Why it cannot be computed again.
    cannot: Option<String>,
    /// What files show: `computed`, or `stored` for a take of another build or model.
    shown: &'static str,
    quality: &'static str,
    reasons: Vec<String>,
}

/// A recorded run that is done again beside what is stored of it.
struct Again<'a> {
    scene: &'a Scene,
    file: &'a TakeFile,
    moment: Moment,
    work: Work,
    run: Run,
    stored: Playback,
    differs_at: Option<u64>,
    differs: Option<(u64, Difference)>,
    /// The step that could not be done, and why.
    cannot: Option<TakeError>,
}

impl Again<'_> {
    fn start<'a>(scene: &'a Scene, file: &'a TakeFile) -> Result<Again<'a>, TakeError> {
        let mut work = Work::new(&scene.model);
        let moment = file.timeline.seek(&scene.model, file.current, 0, &mut work)?;
        let run = Run::new(&scene.model, &moment.input, &moment.state);
        let stored = Playback::default();
        Ok(Again { scene, file, moment, work, run, stored, differs_at: None, differs: None, cannot: None })
    }

    /// The next step, unless one before it could not be done.
    fn advance(&mut self) {
        if self.cannot.is_some() {
            return;
        }
        if let Err(error) = self.try_advance() {
            self.cannot = Some(error);
        }
    }

    fn try_advance(&mut self) -> Result<(), TakeError> {
        let Again { scene: Scene { model, .. }, file, moment, work, run, .. } = self;
        let outcome = file.timeline.advance(model, file.current, moment, work)?;
        let energy = measure::energy(model, &moment.input, &moment.state).total();
        run.add(model, &moment.input, &moment.state, &outcome.report, Some(energy));
        if !outcome.identical {
            self.differs_at.get_or_insert(moment.step);
        }
        if self.differs_at.is_some() && self.differs.is_none() {
            let found = file.timeline.difference(file.current, moment, &mut self.stored)?;
            self.differs = found.map(|difference| (moment.step, difference));
        }
        Ok(())
    }
}

/// What is written of a replay.
pub(crate) struct Wanted<'a> {
    pub(crate) bake: &'a BakeArgs,
    pub(crate) files: &'a Outputs,
    pub(crate) json: bool,
}

/// The takes beside the one that is looked at, as they are stored.
fn others(scene: &Scene, file: &TakeFile) -> Result<Vec<Clip>, Error> {
    let mut shown = Moment::new(scene.state.clone(), scene.input.clone());
    let takes = file.timeline.takes().iter().enumerate();
    let mut clips = Vec::new();
    for (k, take) in takes.filter(|(k, take)| *k != file.current && !take.is_removed()) {
        let (mut recording, mut playback) = (Recording::default(), Playback::default());
        for step in 0..=take.end() {
            file.timeline.look(k, step, &mut playback).map_err(|e| Error::take(&e))?;
            playback.show(&scene.model, &mut shown);
            recording.add(&scene.model, &shown.input, &shown.state, None);
        }
        clips.push((take.name.clone(), recording));
    }
    Ok(clips)
}

/// Does the take that was being looked at again, from the start of its scene. One of this build and model that comes out otherwise has failed; one of
/// another is played as it is stored, and where computing it again differs is told.
pub(crate) fn run(
    scene: &Scene,
    character: Option<&Character>,
    file: &TakeFile,
    wanted: &Wanted<'_>,
    terminal: &Terminal,
) -> Result<(), Error> {
    let &Wanted { bake, files, json } = wanted;
    let (model, timeline) = (&scene.model, &file.timeline);
    let take = &timeline.takes()[file.current];
    let ours = file.build == crate::build() && timeline.is_of(model);
    timeline.check_bodies(model).map_err(|e| Error::take(&e))?;
    let mut again = match Again::start(scene, file) {
        Ok(again) => Ok(again),
        Err(error) if ours => return Err(Error::take(&error)),
        Err(error) => Err(error),
    };
    let mut shown = Moment::new(scene.state.clone(), scene.input.clone());
    let mut playback = Playback::default();
    let mut trajectories = files.ending("csv").map(Trajectory::create).collect::<Result<Vec<_>, _>>()?;
    let wanted = crate::scenes::MOTION_ENDINGS.iter().any(|ending| files.ending(ending).next().is_some());
    let mut recording = wanted.then(Recording::default);
    let bar = terminal.progress(take.end(), "steps");
    for step in 0..=take.end() {
        if let Ok(again) = &mut again
            && step > 0
        {
            again.advance();
        }
        let moment = match &again {
            Ok(again) if ours => {
                if let Some(error) = &again.cannot {
                    return Err(Error::take(error));
                }
                &again.moment
            }
            _ => {
                timeline.look(file.current, step, &mut playback).map_err(|e| Error::take(&e))?;
                playback.show(model, &mut shown);
                &shown
            }
        };
        for trajectory in &mut trajectories {
            trajectory.frame(model, &moment.state)?;
        }
        if let Some(recording) = &mut recording {
            recording.add(model, &moment.input, &moment.state, None);
        }
        bar.inc(u64::from(step > 0));
    }
    bar.finish_and_clear();
    if let Some(recording) = recording {
        let mut clips = vec![(take.name.clone(), recording)];
        // All takes of a character's file are clips of the one that is written.
        if character.is_some() && files.ending("glb").next().is_some() {
            clips.extend(others(scene, file)?);
        }
        bake.write(scene, character, clips, files, terminal)?;
    }
    for trajectory in trajectories {
        trajectory.finish()?;
    }
    let report = report(scene, file, &shown, &again, ours);
    for path in files.ending("json") {
        output::write_json(path, &report)?;
    }
    files.tell(terminal);
    if json {
        output::print_json(&report)?;
    } else {
        let pairs = [
            ("take", format!("{} of {}", report.take, report.scene)),
            ("simulated", format!("{} s in {} steps", table::given(report.seconds), report.steps)),
            ("as recorded", same(&report)),
            ("state hash", report.state_hash.clone().unwrap_or_else(|| "none: it cannot be computed again".into())),
        ];
        output::print(|out| table::write_pairs(out, terminal, &pairs))?;
    }
    if !ours {
        let why = match report.same_model {
            true => format!("recorded by {}, this is {}", file.build, crate::build()),
            false => "the model of the scene has changed since it was recorded".to_owned(),
        };
        let what = if report.identical { "computing it again gives the same".to_owned() } else { same(&report) };
        terminal.note(format_args!("{why}: the take is played as it is stored; computed again: {what}"));
        return Ok(());
    }
    if !report.identical {
        return Err(Error::failed("take/differs", format!("computed again, the take differs: {}", same(&report))));
    }
    Ok(())
}

fn report(scene: &Scene, file: &TakeFile, shown: &Moment, again: &Result<Again<'_>, TakeError>, ours: bool) -> Report {
    let (timeline, take) = (&file.timeline, &file.timeline.takes()[file.current]);
    let done = again.as_ref().ok();
    let whole = done.filter(|again| again.cannot.is_none());
    let moment = whole.map_or(shown, |again| &again.moment);
    let cannot = match again {
        Ok(again) => again.cannot.as_ref(),
        Err(error) => Some(error),
    };
    let quality = whole.map(|a| a.run.quality(&a.scene.model, &a.moment.input, &a.moment.state));
    let differs = done.and_then(|again| again.differs);
    let differs_at = done.and_then(|again| again.differs_at);
    let (largest, total) =
        (|name| done.map_or(0.0, |a| a.run.largest(name)), |name| done.map_or(0.0, |a| a.run.total(name)));
    let model = &scene.model;
    Report {
        scene: scene.name.clone(),
        solver: moment.input.solver.name(),
        take: take.name.clone(),
        takes: timeline.takes().len(),
        recorded_by: file.build.clone(),
        same_build: file.build == crate::build(),
        same_model: timeline.is_of(model),
        dt: moment.input.dt,
        steps: take.end(),
        seconds: moment.state.time,
        bodies: moment.state.bodies.len(),
        joints: moment.state.joints.len(),
        max_joint_gap: largest("max_joint_gap"),
        fallbacks: total("fallbacks") as u64,
        finite: done.is_none_or(|again| again.run.is_finite(&again.moment.state)),
        state_hash: whole.map(|again| format!("{:016x}", again.moment.state.hash())),
        recorded_hash: timeline.hash(file.current, take.end()).map(|hash| format!("{hash:016x}")),
        identical: cannot.is_none() && differs_at.is_none(),
        differs_at,
        differs_body: differs.map(|(_, off)| model.body(off.body).name.clone()),
        differs_body_at: differs.map(|(step, _)| step),
        differs_by: differs.map(|(_, off)| off.distance),
        cannot: cannot.map(ToString::to_string),
        shown: if ours { "computed" } else { "stored" },
        quality: quality.as_ref().map_or("degraded", |quality| quality.grade.word()),
        reasons: quality.map_or_else(|| vec!["it cannot be computed again".to_owned()], |quality| quality.words()),
    }
}

/// Whether it came out as recorded, in words: the first step and body that did not.
fn same(report: &Report) -> String {
    if let Some(why) = &report.cannot {
        return format!("no, it cannot be computed again: {why}");
    }
    let Some(step) = report.differs_at else { return "yes, every step to the last bit".to_owned() };
    match (&report.differs_body, report.differs_body_at, report.differs_by) {
        (Some(body), Some(at), Some(by)) => {
            format!("no, from step {step} on; body \"{body}\" is {} m off at step {at}", table::figure(by))
        }
        _ => format!("no, from step {step} on; no body is off by more than the stored poses resolve"),
    }
}
