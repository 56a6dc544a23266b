//! Takes: what happened, kept so that it can be looked at again, resumed and tried differently.
//!
//! A [`Take`] holds a snapshot of the [`State`] at its beginning and at regular intervals, the changes of the [`Input`] from step to
//! step, and the hash of the state after each step. Going to a step means loading the snapshot before it and stepping on with the
//! recorded inputs: since the same model, state and input give the same bits, that is the run itself again, and the
//! hashes prove it. A [`Timeline`] is a tree of takes over one scene: a take that was forked from another begins with a snapshot of the
//! step at which it left.
//!
//! ```
//! use supple::timeline::{Fork, Timeline};
//! use supple::*;
//!
//! let scene = Scene::parse("hand")?;
//! let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
//! let mut timeline = Timeline::new("hand", &state, &input);
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

mod encode;
pub mod file;
mod take;

pub use take::{Fork, Moment, Take};

use crate::model::{Model, State};
use crate::step::{StepError, Work};
use crate::{Input, step};

/// The takes of one scene, the first of which starts where the scene does.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The scene as asked for: `chain:100`.
    scene: String,
    /// Snapshots are this many steps apart.
    every: u32,
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
    /// No such step was recorded.
    #[error("take {take} has no step {step} [take/step]")]
    Step {
        /// Index of the take.
        take: usize,
        /// As asked for.
        step: u64,
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
            TakeError::Model { .. } => "take/model",
            TakeError::Step { .. } => "take/step",
            TakeError::Replay { error, .. } => error.code(),
        }
    }
}

/// Steps between snapshots of a small character: a second at 60 a second, done again within a frame.
const EVERY: usize = 60;
/// Bodies per step between snapshots of a large one, so that a minute of it stays within some hundred megabytes.
const BODIES_PER_STEP: usize = 16;

impl Timeline {
    /// One empty take that starts at `state`; `input` is that of the first step, as far as it is known.
    pub fn new(scene: impl Into<String>, state: &State, input: &Input) -> Timeline {
        let every = EVERY.max(state.bodies.len() / BODIES_PER_STEP) as u32;
        Timeline { scene: scene.into(), every, takes: vec![Take::new("take 1", None, state, input)] }
    }

    /// The scene as asked for.
    pub fn scene(&self) -> &str {
        &self.scene
    }

    /// All takes; a fork comes after the take it left.
    pub fn takes(&self) -> &[Take] {
        &self.takes
    }

    /// Renames a take.
    pub fn rename(&mut self, take: usize, name: impl Into<String>) {
        self.takes[take].name = name.into();
    }

    /// Bytes held by all takes, nearly.
    pub fn bytes(&self) -> usize {
        self.takes.iter().map(Take::bytes).sum()
    }

    /// Adds to a take the step that was just done with `input` and led to `state`.
    pub fn record(&mut self, take: usize, input: &Input, state: &State) {
        self.takes[take].record(self.every, input, state);
    }

    /// Starts a take that leaves another at a step, `moment` being what [`Timeline::seek`] found there. Returns its index.
    pub fn fork(&mut self, from: Fork, name: impl Into<String>, moment: &Moment) -> usize {
        // What is older than the take that is left belongs to the one that it left.
        let (holder, step) = (self.holder(from.take, from.step), from.step);
        self.takes.push(Take::new(name, Some(Fork { take: holder, step }), &moment.state, &moment.input));
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

    /// The moment after `step` steps in the history of a take.
    pub fn seek(&self, model: &Model, take: usize, step: u64, work: &mut Work) -> Result<Moment, TakeError> {
        let missing = TakeError::Step { take, step };
        if self.takes.get(take).is_none_or(|t| step > t.end()) {
            return Err(missing);
        }
        let holder = self.holder(take, step);
        let mut moment = self.takes[holder].snapshot(holder, step).ok_or(missing)?;
        check(model, &moment.state)?;
        while moment.step < step {
            self.advance(model, take, &mut moment, work)?;
        }
        Ok(moment)
    }

    /// Does the next recorded step of a take's history again. The hash tells whether it came out as recorded.
    pub fn advance(
        &self,
        model: &Model,
        take: usize,
        moment: &mut Moment,
        work: &mut Work,
    ) -> Result<Outcome, TakeError> {
        let holder = self.holder(take, moment.step); // a fork holds the state it begins with, and so the step from there
        let recorded = self.takes[holder].next_input(moment, holder)?;
        let report = step(model, &moment.input, &mut moment.state, work)
            .map_err(|error| TakeError::Replay { step: moment.step + 1, error })?;
        moment.step += 1;
        Ok(Outcome { report, identical: recorded == moment.state.hash() })
    }
}

/// What came of a step done again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What it measured.
    pub report: crate::Report,
    /// Whether it led to the recorded state, by its hash. It does with the build that recorded it, on the same kind of machine.
    pub identical: bool,
}

/// Whether a recorded state fits the model built for its scene.
fn check(model: &Model, state: &State) -> Result<(), TakeError> {
    for (what, found, expected) in
        [("bodies", state.bodies.len(), model.bodies().len()), ("joints", state.joints.len(), model.joints().len())]
    {
        if found != expected {
            return Err(TakeError::Model { what, found, expected });
        }
    }
    Ok(())
}
