//! Takes: what happened, kept so that it can be looked at again, resumed and tried differently.
//!
//! A [`Take`] holds a snapshot of the [`State`] at its beginning and at regular intervals, and for each step the change of the
//! [`Input`], the hash of the state after it, and the poses of all bodies, rounded.
//!
//! [`Timeline::seek`] goes to a step to go on from it: it loads the snapshot before and steps on with the recorded inputs. Since
//! the same model, state and input give the same bits, that is the run itself again, and the hashes prove it. [`Timeline::look`] goes to a
//! step to look at it: it reads the stored poses and computes nothing, so that a take of another build or of a model that has changed
//! shows what was recorded.
//!
//! A [`Timeline`] is a tree of takes over one scene: a take that was forked from another begins with a snapshot of the
//! step at which it left. Copies share what is full, so that a copy of an hour costs little.
//!
//! ```
//! use supple::timeline::{Fork, Timeline};
//! use supple::*;
//!
//! let scene = Scene::parse("hand")?;
//! let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
//! let mut timeline = Timeline::new("hand", &scene.model, &state, &input);
//! for _ in 0..100 {
//!     scene.direct(state.time, &mut input);
//!     step(&scene.model, &input, &mut state, &mut work)?;
//!     timeline.record(0, &input, &state);
//! }
//! let back = timeline.seek(&scene.model, 0, 70, &mut work)?;
//! let other = timeline.fork(Fork { take: 0, step: 70 }, "a second try", &back);
//! assert_eq!((other, timeline.takes()[other].first()), (1, 70));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod compare;
mod eight;
mod encode;
pub mod file;
mod poses;
mod take;

pub use take::{Fork, Moment, Playback, Take};

use crate::measure;
use crate::model::{BodyId, MOST_LENGTH, Model, State};
use crate::step::{StepError, Work};
use crate::{Input, step};
use poses::Grid;

/// The takes of one scene, the first of which starts where the scene does.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The scene as asked for: `chain:100`.
    scene: String,
    /// Fingerprint of the model that was recorded.
    model: u64,
    /// Number of its bodies and joints.
    size: (usize, usize),
    /// Snapshots are this many steps apart.
    every: u32,
    grid: Grid,
    takes: Vec<Take>,
}

/// Why a take cannot be opened or replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TakeError {
    /// The file does not begin as a take does.
    #[error("this is not a take: it does not begin with the letters of one [take/format]")]
    Format,
    /// The file was written in another version of the format.
    #[error(
        "the take has format {found}, this version reads {expected}: open it with the version that wrote it [take/version]"
    )]
    Version {
        /// In the file.
        found: u32,
        /// The only one read.
        expected: u32,
    },
    /// The bytes cannot be what was written.
    #[error("the take is damaged: {what} [take/damaged]")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// A pose is farther away than any file may say.
    #[error(
        "{part} is more than {MOST_LENGTH} m away, or nowhere, after step {step} of take \"{take}\": no file may hold such a place [take/far]"
    )]
    Far {
        /// `body 3`, `node 7`, counted from 0.
        part: String,
        /// Name of the take.
        take: String,
        /// Counted from the start of the scene.
        step: u64,
    },
    /// The take belongs to another model than the one built for its scene.
    #[error("the take was recorded with another build of its scene: {found} {what}, now {expected} [take/model]")]
    Model {
        /// Bodies or joints.
        what: &'static str,
        /// In the take.
        found: usize,
        /// In the model.
        expected: usize,
    },
    /// The take's poses do not fit the model built for its scene, so that nothing can be computed from them.
    #[error(
        "the take was recorded with another model of its scene: joint \"{joint}\" would be {gap:.3} m apart. It can be looked at, not resumed [take/model]"
    )]
    Apart {
        /// Name of the widest joint.
        joint: String,
        /// \[m\]
        gap: f64,
    },
    /// The first take holds the beginning of all others.
    #[error(
        "the first take cannot be removed, all others begin in it: open the scene again to start anew [take/first]"
    )]
    First,
    /// No such step was recorded.
    #[error("take {take} has no step {step}{} [take/step]", end_told(*.end))]
    Step {
        /// Index of the take.
        take: usize,
        /// As asked for.
        step: u64,
        /// The last one it has; `None`: there is no such take.
        end: Option<u64>,
    },
    /// A recorded step could not be done again.
    #[error("step {step} of the take cannot be done again: {error}")]
    Replay {
        /// Counted from the start of the scene.
        step: u64,
        /// The reason.
        error: StepError,
    },
}

fn end_told(end: Option<u64>) -> String {
    end.map_or(": there is no such take".into(), |end| format!(": its last is {end}"))
}

impl TakeError {
    fn damaged(what: &'static str) -> TakeError {
        TakeError::Damaged { what }
    }

    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            TakeError::Format => "take/format",
            TakeError::Version { .. } => "take/version",
            TakeError::Damaged { .. } => "take/damaged",
            TakeError::Far { .. } => "take/far",
            TakeError::Model { .. } | TakeError::Apart { .. } => "take/model",
            TakeError::First => "take/first",
            TakeError::Step { .. } => "take/step",
            TakeError::Replay { error, .. } => error.code(),
        }
    }
}

/// Steps between snapshots of a small character: a second at 60 a second, done again within a frame.
const EVERY: usize = 60;
/// Bodies per step between snapshots of a large one: its snapshots take a fifth of the room of its poses, about.
const BODIES_PER_STEP: usize = 100;
/// Rotations are stored to 2⁻¹⁴ in each of four numbers \[rad\].
const TURNED: f64 = 5e-4;
/// How far apart the joints of a recorded state may be in a model that has changed, as a share of its size.
const FIT: f64 = 0.01;

impl Timeline {
    /// One empty take that starts at `state`; `input` is that of the first step, as far as it is known.
    pub fn new(scene: impl Into<String>, model: &Model, state: &State, input: &Input) -> Timeline {
        let every = EVERY.max(state.bodies.len() / BODIES_PER_STEP) as u32;
        let grid = Grid::new(model);
        Timeline {
            scene: scene.into(),
            model: model.fingerprint(),
            size: (state.bodies.len(), state.joints.len()),
            every,
            grid,
            takes: vec![Take::new("take 1", None, (every, grid), state, input)],
        }
    }

    /// The scene as asked for.
    pub fn scene(&self) -> &str {
        &self.scene
    }

    /// Whether it was recorded with this very model, by its fingerprint.
    pub fn is_of(&self, model: &Model) -> bool {
        self.model == model.fingerprint()
    }

    /// All takes; a fork comes after the take it left. Those that were removed keep their place.
    pub fn takes(&self) -> &[Take] {
        &self.takes
    }

    /// Renames a take.
    pub fn rename(&mut self, take: usize, name: impl Into<String>) {
        self.takes[take].name = name.into();
    }

    /// Gives a take other marks: a step each, and what is told there. Those before the take's own steps belong to the one it left and are passed over.
    pub fn set_marks(&mut self, take: usize, mut marks: Vec<(u64, String)>) {
        let take = &mut self.takes[take];
        marks.retain(|(step, _)| *step >= take.first());
        marks.sort_by_key(|(step, _)| *step);
        take.marks = marks;
    }

    /// The marks in the history of a take, those of the takes it left included, in order.
    pub fn marks(&self, take: usize) -> Vec<(u64, &str)> {
        let (mut take, mut until) = (take, u64::MAX);
        let mut marks = Vec::new();
        loop {
            let Take { marks: own, fork, .. } = &self.takes[take];
            marks.extend(own.iter().filter(|(step, _)| *step < until).map(|(step, text)| (*step, text.as_str())).rev());
            // What is told at the step of a fork is told of the take that begins there.
            let Some(fork) = fork else { break };
            (take, until) = (fork.take, until.min(fork.step));
        }
        marks.reverse();
        marks
    }

    /// Bytes held by all takes, nearly.
    pub fn bytes(&self) -> usize {
        self.takes.iter().map(Take::bytes).sum()
    }

    /// Adds to a take the step that was just done with `input` and led to `state`.
    pub fn record(&mut self, take: usize, input: &Input, state: &State) {
        self.takes[take].record(input, state);
    }

    /// Starts a take that leaves another at a step, `moment` being what [`Timeline::seek`] found there. Returns its index.
    pub fn fork(&mut self, from: Fork, name: impl Into<String>, moment: &Moment) -> usize {
        // What is older than the take that is left belongs to the one that it left.
        let (holder, step) = (self.holder(from.take, from.step), from.step);
        let fork = Some(Fork { take: holder, step });
        self.takes.push(Take::new(name, fork, (self.every, self.grid), &moment.state, &moment.input));
        self.takes.len() - 1
    }

    /// A name that no take has: `take 3`.
    pub fn free_name(&self) -> String {
        let name = |n: usize| format!("take {n}");
        let taken = |name: &String| self.takes.iter().any(|take| take.name == *name);
        (self.takes.len() + 1..).map(name).find(|n| !taken(n)).expect("there are more numbers than takes")
    }

    /// The take that holds the state after `step` in this take's history: itself, or one it came from.
    fn holder(&self, mut take: usize, step: u64) -> usize {
        while let Some(fork) = self.takes[take].fork
            && step < self.takes[take].first()
        {
            take = fork.take;
        }
        take
    }

    /// The hash of the state after `step` steps in the history of a take, as recorded; `None` at the start.
    pub fn hash(&self, take: usize, step: u64) -> Option<u64> {
        let mut take = self.takes.get(take)?;
        while let Some(fork) = take.fork
            && step <= take.first()
        {
            take = &self.takes[fork.take];
        }
        take.hash(step)
    }

    /// Removes a take and all that left it. They keep their indices and can be restored. Returns those that were removed by this.
    pub fn remove(&mut self, take: usize) -> Result<Vec<usize>, TakeError> {
        let fork = self.takes.get(take).ok_or(TakeError::Step { take, step: 0, end: None })?.fork;
        if fork.is_none() {
            return Err(TakeError::First);
        }
        let mut removed = Vec::new();
        for k in take..self.takes.len() {
            let leads_here = k == take || self.takes[k].fork.is_some_and(|fork| removed.contains(&fork.take));
            if leads_here && !self.takes[k].removed {
                removed.push(k);
            }
        }
        removed.iter().for_each(|k| self.takes[*k].removed = true);
        Ok(removed)
    }

    /// Brings back takes that [`Timeline::remove`] removed.
    pub fn restore(&mut self, removed: &[usize]) {
        removed.iter().for_each(|k| self.takes[*k].removed = false);
    }

    /// Frees what removed takes hold; they cannot be restored any more.
    pub fn forget(&mut self, removed: &[usize]) {
        for k in removed {
            if self.takes[*k].removed {
                self.takes[*k].forget();
            }
        }
    }

    /// The last step that the histories of two takes share.
    pub fn parting(&self, a: usize, b: usize) -> u64 {
        let line = |mut take: usize| {
            let mut line = vec![(take, self.takes[take].end())];
            while let Some(fork) = self.takes[take].fork {
                take = fork.take;
                line.push((take, fork.step));
            }
            line
        };
        let other = line(b);
        // Both come from the first take: the first of a's line that is in b's holds their last common step.
        let shared = |(take, end): (usize, u64)| other.iter().find(|o| o.0 == take).map(|o| o.1.min(end));
        line(a).into_iter().find_map(shared).unwrap_or(0)
    }

    /// The take that holds a step, if that was recorded in the history of this one.
    fn find(&self, take: usize, step: u64) -> Result<usize, TakeError> {
        match self.takes.get(take) {
            Some(t) if !t.removed && step <= t.end() => Ok(self.holder(take, step)),
            _ => Err(self.no_step(take, step)),
        }
    }

    fn no_step(&self, take: usize, step: u64) -> TakeError {
        let end = self.takes.get(take).filter(|take| !take.removed).map(Take::end);
        TakeError::Step { take, step, end }
    }

    /// The moment after `step` steps in the history of a take, to go on from.
    pub fn seek(&self, model: &Model, take: usize, step: u64, work: &mut Work) -> Result<Moment, TakeError> {
        let holder = self.find(take, step)?;
        let mut moment = self.takes[holder].snapshot(holder, step).ok_or(self.no_step(take, step))?;
        self.check(model, &moment.state)?;
        while moment.step < step {
            self.advance(model, take, &mut moment, work)?;
        }
        Ok(moment)
    }

    /// Whether the recorded poses can be shown with this model: it has as many bodies.
    pub fn check_bodies(&self, model: &Model) -> Result<(), TakeError> {
        let (found, expected) = (self.size.0, model.bodies().len());
        if found == expected { Ok(()) } else { Err(TakeError::Model { what: "bodies", found, expected }) }
    }

    /// Moves a playback to what was recorded after `step` steps in the history of a take. Nothing is computed.
    pub fn look(&self, take: usize, step: u64, playback: &mut Playback) -> Result<(), TakeError> {
        let holder = self.find(take, step)?;
        self.takes[holder].look(holder, step, playback)
    }

    /// Whether a step was recorded in the history of a take.
    pub fn check_step(&self, take: usize, step: u64) -> Result<(), TakeError> {
        self.find(take, step).map(|_| ())
    }

    /// How a moment that was computed again differs from what is stored of its step: by the last bit where there is a snapshot, elsewhere by more
    /// than the rounding of the stored poses. `None`: no body is seen to differ. `playback` is kept from step to step.
    pub fn difference(
        &self,
        take: usize,
        moment: &Moment,
        playback: &mut Playback,
    ) -> Result<Option<Difference>, TakeError> {
        self.look(take, moment.step, playback)?;
        let holder = self.holder(take, moment.step);
        let exact = self.takes[holder].snapshot(holder, moment.step).filter(|kept| kept.step == moment.step);
        let mut worst: Option<Difference> = None;
        for (k, body) in moment.state.bodies.iter().enumerate() {
            let (kept, differs) = match &exact {
                Some(exact) => (exact.state.bodies[k].pose(), exact.state.bodies[k] != *body),
                None => {
                    let kept = playback.pose(k);
                    let turned = kept.rotation.angle_between(body.orientation);
                    let moved = kept.translation.distance(body.position);
                    (kept, moved > self.grid.line() || turned > TURNED)
                }
            };
            let distance = kept.translation.distance(body.position);
            if differs && worst.is_none_or(|worst| distance > worst.distance) {
                worst = Some(Difference { body: BodyId(k as u32), distance });
            }
        }
        Ok(worst)
    }

    /// Does the next recorded step of a take's history again. The hash tells whether it came out as recorded.
    pub fn advance(
        &self,
        model: &Model,
        take: usize,
        moment: &mut Moment,
        work: &mut Work,
    ) -> Result<Outcome, TakeError> {
        let missing = self.no_step(take, moment.step.saturating_add(1));
        self.find(take, moment.step + 1)?;
        let holder = self.holder(take, moment.step); // a fork holds the state it begins with, and so the step from there
        // A moment of another branch has no place in this history.
        if !self.leads_to(moment.place.take, holder, moment.step) {
            return Err(missing);
        }
        let recorded = self.takes[holder].next_input(holder, moment.step, &mut moment.input, &mut moment.place)?;
        let report = step(model, &moment.input, &mut moment.state, work)
            .map_err(|error| TakeError::Replay { step: moment.step + 1, error })?;
        moment.step += 1;
        Ok(Outcome { report, identical: recorded == moment.state.hash() })
    }

    /// Whether the state after `step` in take `from` is the one in take `to`: they are the same take, or `to` began there.
    fn leads_to(&self, from: usize, mut to: usize, step: u64) -> bool {
        while from != to {
            match self.takes[to].fork {
                Some(fork) if fork.step == step => to = fork.take,
                _ => return false,
            }
        }
        true
    }

    /// Whether a recorded state fits the model built for its scene.
    fn check(&self, model: &Model, state: &State) -> Result<(), TakeError> {
        self.check_bodies(model)?;
        let (found, expected) = (state.joints.len(), model.joints().len());
        if found != expected {
            return Err(TakeError::Model { what: "joints", found, expected });
        }
        if self.is_of(model) {
            return Ok(());
        }
        let gap = measure::joint_gap(model, state);
        match gap.joint {
            Some(joint) if gap.distance > FIT * model.size() || gap.distance.is_nan() => {
                Err(TakeError::Apart { joint: model.joint(joint).name.clone(), gap: gap.distance })
            }
            _ => Ok(()),
        }
    }
}

/// Where a step that was done again differs most from what is stored of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The body.
    pub body: BodyId,
    /// How far its centre of mass is from where it was \[m\]; 0 when only its rotation or its velocity differs.
    pub distance: f64,
}

/// What came of a step done again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What it measured.
    pub report: crate::Report,
    /// Whether it led to the recorded state, by its hash. It does with the build that recorded it, on the same kind of machine.
    pub identical: bool,
}
