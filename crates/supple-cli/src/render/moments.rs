//! The poses of a run at given times: simulated, or as a take recorded them.

use super::marks::{self, Sign};
use crate::error::Error;
use crate::table::given;
use crate::terminal::{Terminal, harmless};
use supple::glam::DVec3;
use supple::timeline::Playback;
use supple::timeline::file::TakeFile;
use supple::{Input, Model, Moment, Pose, Scene, State, Work, step};

/// Where everything is at a moment.
#[derive(Clone, Debug)]
pub(super) struct Posture {
    pub(super) bodies: Vec<Pose>,
    /// The vertices of the surface of flesh or skin \[m\].
    pub(super) flesh: Vec<DVec3>,
    pub(super) obstacles: Vec<Pose>,
    /// What a hand does, and where its cursor was since the moment before.
    pub(super) marks: Vec<(Sign, DVec3)>,
    pub(super) trail: Vec<DVec3>,
}

impl Posture {
    fn of(model: &Model, input: &Input, state: &State) -> Posture {
        let mut flesh = Vec::new();
        if let Some(soft) = model.flesh() {
            let mut nodes = Vec::new();
            soft.positions(state, &mut nodes);
            soft.surface_positions(&nodes, &mut flesh);
        }
        if let Some(skin) = model.skin() {
            skin.positions(state, &mut flesh);
        }
        let moved = |k: usize| input.obstacles.get(k).copied().flatten().map(|target| target.pose);
        let obstacles = model.obstacles().iter().enumerate().map(|(k, o)| moved(k).unwrap_or(o.pose)).collect();
        Posture {
            bodies: state.bodies.iter().map(|body| body.pose()).collect(),
            flesh,
            obstacles,
            marks: Vec::new(),
            trail: Vec::new(),
        }
    }
}

/// What is shown.
pub(super) enum Source {
    /// A scene run with this input.
    Run(Scene, Box<Input>),
    /// A take, and how long it is \[s\].
    Take(Scene, TakeFile, f64),
}

/// Times this much apart are the same \[s\]: a sum of steps is rounded.
const SAME: f64 = 1e-9;

impl Source {
    /// A take as it was recorded: its stored poses, whatever build wrote them.
    pub(super) fn take(scene: Scene, file: TakeFile) -> Result<Source, Error> {
        let (timeline, take) = (&file.timeline, file.current);
        let mut last = Playback::default();
        timeline
            .check_bodies(&scene.model)
            .and_then(|()| timeline.look(take, timeline.takes()[take].end(), &mut last))
            .map_err(|e| Error::take(&e))?;
        Ok(Source::Take(scene, file, last.time))
    }

    pub(super) fn scene(&self) -> &Scene {
        match self {
            Source::Run(scene, _) | Source::Take(scene, ..) => scene,
        }
    }

    /// The length of a take \[s\]; a scene goes on as long as wanted.
    pub(super) fn end(&self) -> Option<f64> {
        match self {
            Source::Run(..) => None,
            Source::Take(_, _, seconds) => Some(*seconds),
        }
    }

    /// Where everything is at each of these times, which ascend.
    pub(super) fn poses(&self, times: &[f64], terminal: &Terminal) -> Result<Vec<Posture>, Error> {
        let model = &self.scene().model;
        let mut sampler =
            Sampler { model, times, poses: Vec::with_capacity(times.len()), before: None, trail: Vec::new() };
        match self {
            Source::Run(scene, input) => {
                let mut work = Work::new(model);
                let (mut state, mut input) = (scene.state.clone(), Input::clone(input));
                let steps = (times.last().map_or(0.0, |t| t / input.dt)).ceil();
                let bar = terminal.progress(steps as u64, "steps");
                bar.set_message(harmless(&scene.name).into_owned());
                let mut tones = scene.stated_tones();
                sampler.offer(&state, &input);
                while !sampler.is_done() {
                    scene.direct(state.time, &mut input);
                    if let Some(tones) = &mut tones {
                        tones.direct(model, &state, &[], &mut input);
                    }
                    step(model, &input, &mut state, &mut work).map_err(|e| {
                        bar.finish_and_clear();
                        Error::step(&e, format_args!("{}, at {} s", scene.name, given(state.time)))
                    })?;
                    sampler.offer(&state, &input);
                    bar.inc(1);
                }
                bar.finish_and_clear();
            }
            Source::Take(scene, file, _) => {
                let mut playback = Playback::default();
                let mut moment = Moment::new(scene.state.clone(), scene.input.clone());
                for step in 0.. {
                    if sampler.is_done() {
                        break;
                    }
                    file.timeline.look(file.current, step, &mut playback).map_err(|e| Error::take(&e))?;
                    playback.show(model, &mut moment);
                    sampler.offer(&moment.state, &moment.input);
                }
            }
        }
        Ok(sampler.poses)
    }
}

/// Takes poses at given times from the states of a run.
struct Sampler<'a> {
    model: &'a Model,
    times: &'a [f64],
    poses: Vec<Posture>,
    before: Option<(State, Input)>,
    /// Where the cursor was since the last posture taken.
    trail: Vec<DVec3>,
}

impl Sampler<'_> {
    fn is_done(&self) -> bool {
        self.poses.len() == self.times.len()
    }

    /// Takes what lies between the state before and this one.
    fn offer(&mut self, state: &State, input: &Input) {
        let marks = marks::of(self.model, input, state);
        self.trail.extend(marks.iter().find(|(sign, _)| *sign == Sign::Cursor).map(|(_, place)| *place));
        while let Some(&time) = self.times.get(self.poses.len())
            && time <= state.time + SAME
        {
            let mut posture = match &self.before {
                Some(before) if time < state.time - SAME => {
                    between(self.model, (&before.0, &before.1), (state, input), time)
                }
                _ => Posture::of(self.model, input, state),
            };
            posture.marks.clone_from(&marks);
            posture.trail = std::mem::take(&mut self.trail);
            self.trail.extend(posture.trail.last());
            self.poses.push(posture);
        }
        match &mut self.before {
            Some((before, with)) => {
                before.clone_from(state);
                with.clone_from(input);
            }
            None => self.before = Some((state.clone(), input.clone())),
        }
    }
}

/// The poses at a time between two states: places on the line, rotations on the shortest arc.
fn between(model: &Model, before: (&State, &Input), after: (&State, &Input), time: f64) -> Posture {
    let share = (time - before.0.time) / (after.0.time - before.0.time);
    let (mut a, b) = (Posture::of(model, before.1, before.0), Posture::of(model, after.1, after.0));
    let (from, to) = (a.bodies.iter_mut().chain(&mut a.obstacles), b.bodies.iter().chain(&b.obstacles));
    for (a, b) in from.zip(to) {
        *a = Pose::new(a.rotation.slerp(b.rotation, share), a.translation.lerp(b.translation, share));
    }
    a.flesh.iter_mut().zip(&b.flesh).for_each(|(a, b)| *a = a.lerp(*b, share));
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_steps_lie_between_their_states() {
        let scene = Scene::parse("pendulum").unwrap();
        let input = scene.input.clone();
        let dt = input.dt;
        let source = Source::Run(scene, Box::new(input));
        let poses = source.poses(&[0.0, 3.0 * dt, 3.5 * dt, 4.0 * dt], &Terminal::new(true)).unwrap();
        let at = |k: usize| poses[k].bodies[0];
        assert_eq!(at(0).translation, source.scene().state.bodies[0].position);
        let middle = at(1).translation.lerp(at(3).translation, 0.5);
        // rounding of the sum of steps
        assert!((at(2).translation - middle).length() < 1e-12);
        assert!(at(2).rotation.angle_between(at(1).rotation) > 1e-4);
        assert!(at(2).rotation.angle_between(at(3).rotation) > 1e-4);
    }
}
