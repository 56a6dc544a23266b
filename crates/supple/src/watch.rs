//! What a [`Work`](crate::Work) notes while it steps, beyond the [`Report`](crate::Report). None of it changes a result.

use crate::loads::Ledger;
use crate::solver::Impulses;

/// What to note. The crate reads no clock: whoever wants times hands one in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// Nanoseconds from any fixed moment, for [`StageNanos`]; without it all times are 0.
    pub clock: Option<fn() -> u64>,
    /// Whether every step keeps the loads of joints and bodies, whatever the solver's settings ask.
    pub impulses: Impulses,
}

/// A stage of a step. Every solver divides its work into these, and leaves out what it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Input and state are checked and put in the solver's order.
    Check,
    /// Forces, their derivatives and what is left of the equations.
    Forces,
    /// The matrix is factored.
    Factor,
    /// Right-hand sides are solved and the trial is moved.
    Solve,
    /// Joints are closed; velocities and energy are settled.
    Close,
    /// The new state is written and measured.
    Measure,
}

impl Stage {
    /// All, in the order of a step.
    pub const ALL: [Stage; 6] =
        [Stage::Check, Stage::Forces, Stage::Factor, Stage::Solve, Stage::Close, Stage::Measure];

    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Check => "check",
            Stage::Forces => "forces",
            Stage::Factor => "factor",
            Stage::Solve => "solve",
            Stage::Close => "close",
            Stage::Measure => "measure",
        }
    }
}

/// Nanoseconds of the last step by stage, in the order of [`Stage::ALL`].
pub type StageNanos = [u64; Stage::ALL.len()];

/// What was noted of the last step.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    watch: Watch,
    since: u64,
    nanos: StageNanos,
    /// What joints and bodies carried.
    pub(crate) ledger: Ledger,
}

impl Notes {
    pub(crate) fn set(&mut self, watch: Watch) {
        self.watch = watch;
        self.nanos = StageNanos::default();
        self.ledger.clear();
    }

    /// A step begins.
    pub(crate) fn start(&mut self) {
        self.nanos = StageNanos::default();
        self.since = self.now();
    }

    /// The time since the last mark belongs to this stage.
    pub(crate) fn mark(&mut self, stage: Stage) {
        if self.watch.clock.is_some() {
            let now = self.now();
            self.nanos[stage as usize] += now.saturating_sub(self.since);
            self.since = now;
        }
    }

    fn now(&self) -> u64 {
        self.watch.clock.map_or(0, |clock| clock())
    }

    pub(crate) fn nanos(&self) -> StageNanos {
        self.nanos
    }

    /// Whether impulses are to be kept, by the solver's settings or by the watch.
    pub(crate) fn keeps(&self, asked: Impulses) -> Impulses {
        if self.watch.impulses == Impulses::Keep { Impulses::Keep } else { asked }
    }
}
