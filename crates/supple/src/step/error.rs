//! Why a step was refused, and why one of its parts failed.

use super::report::{Cause, Trouble};
use crate::model::{BodyId, JointId, Model};

/// Why a step was not done. The state is as it was before.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StepError {
    /// The step's length cannot be used.
    #[error("the step's length is {dt} s: give a finite value above 0 [step/dt]")]
    Dt {
        /// \[s\]
        dt: f64,
    },
    /// A part of the input is not finite, negative where it must not be, or names something that does not exist.
    #[error("{part} of the input is wrong: {what} [step/input]")]
    Input {
        /// `gravity`, `drag 2`.
        part: String,
        /// What is wrong.
        what: String,
    },
    /// The state does not belong to the model.
    #[error("the state has {found} {what}, the model {expected}: make it with Model::start [step/mismatch]")]
    Mismatch {
        /// Bodies, joints or nodes.
        what: &'static str,
        /// In the state.
        found: usize,
        /// In the model.
        expected: usize,
    },
    /// The scratch does not belong to the model.
    #[error("the Work was made for another model: make it with Work::new [step/mismatch]")]
    Work,
    /// A number of the state cannot be gone on from.
    #[error("{part} of the state is wrong: {what} [step/state]")]
    State {
        /// `the orientation of body "arm"`, `the angle of joint "elbow"`.
        part: String,
        /// What is wrong, and what to do.
        what: &'static str,
    },
    /// The model has loops, which this solver does not solve.
    #[error(
        "joint \"{joint}\" closes a loop, which solver {solver} does not solve: use solver tree with its default scheme, impulse or assembly, or an anchor spring in its place [step/loops]"
    )]
    Loops {
        /// Name of the solver.
        solver: &'static str,
        /// Name of the first such joint.
        joint: String,
    },
    /// The solver cannot take a part of the model or the input.
    #[error("solver {solver} does not take {part}: {remedy} [step/unsupported]")]
    Unsupported {
        /// Name of the solver.
        solver: &'static str,
        /// `joint "elbow"`, `the grip on body "hand"`.
        part: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A body spins faster than even the shortest part of a step can follow.
    #[error("body \"{body}\" turns by more than a radian however short the step: use a smaller dt [step/turned]")]
    Turned {
        /// Its name.
        body: String,
    },
    /// The corrections of a joint did not converge, however short the step.
    #[error(
        "the corrections of joint \"{joint}\" do not converge: use a smaller dt or a looser tolerance [step/diverged]"
    )]
    Diverged {
        /// The joint that stayed farthest open.
        joint: String,
    },
    /// Contacts, and joints with them, did not settle however short the step.
    #[error(
        "what touches body \"{body}\" does not settle, however short the step: use a smaller dt, more iterations, or solver tree [step/unsettled]"
    )]
    Unsettled {
        /// The body that moved farthest.
        body: String,
    },
    /// The state given was not finite, or the motion grew beyond all numbers.
    #[error("body \"{body}\" has a position or velocity that is not finite: {remedy} [step/not-finite]")]
    NotFinite {
        /// Name of the first such body.
        body: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The linear system has no solution at a joint.
    #[error(
        "joint \"{joint}\" is in a pose its constraints cannot be solved at: start closer to an assembled pose [step/factor]"
    )]
    Factor {
        /// The joint's name.
        joint: String,
    },
}

impl StepError {
    pub(crate) fn loops(solver: &'static str, model: &Model, id: JointId) -> StepError {
        StepError::Loops { solver, joint: model.joint(id).name.clone() }
    }

    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            StepError::Dt { .. } => "step/dt",
            StepError::Input { .. } => "step/input",
            StepError::Mismatch { .. } => "step/mismatch",
            StepError::Work => "step/mismatch",
            StepError::State { .. } => "step/state",
            StepError::Loops { .. } => "step/loops",
            StepError::Unsupported { .. } => "step/unsupported",
            StepError::Diverged { .. } => "step/diverged",
            StepError::Unsettled { .. } => "step/unsettled",
            StepError::Turned { .. } => "step/turned",
            StepError::NotFinite { .. } => "step/not-finite",
            StepError::Factor { .. } => "step/factor",
        }
    }
}

/// Why a part of a step failed; the step tries again in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A number overflowed at this body.
    NotFinite(BodyId),
    /// This joint's pivot could not be inverted.
    Factor(JointId),
    /// This joint stayed farthest open when the corrections were given up.
    Diverged(JointId),
    /// This body would turn too far.
    Turned(BodyId),
    /// Energy would come from nothing; this body moved most.
    Energy(BodyId),
    /// Contacts were far from settled when passes were used up, the one on this body farthest.
    Unsettled(BodyId),
}

impl Failure {
    /// Where it failed, and why.
    pub(crate) fn trouble(self, model: &Model) -> Trouble {
        let (body, cause) = match self {
            Failure::NotFinite(body) => (body, Cause::Overflow),
            Failure::Factor(joint) => (model.joint(joint).child, Cause::Overflow),
            Failure::Diverged(joint) => (model.joint(joint).child, Cause::Convergence),
            Failure::Turned(body) => (body, Cause::Turning),
            Failure::Energy(body) => (body, Cause::Energy),
            Failure::Unsettled(body) => (body, Cause::Convergence),
        };
        Trouble { body, cause }
    }

    pub(super) fn describe(self, model: &Model) -> StepError {
        match self {
            Failure::Unsettled(body) => StepError::Unsettled { body: model.body(body).name.clone() },
            Failure::NotFinite(body) | Failure::Energy(body) => StepError::NotFinite {
                body: model.body(body).name.clone(),
                remedy: "use a smaller dt or softer springs",
            },
            Failure::Factor(joint) => StepError::Factor { joint: model.joint(joint).name.clone() },
            Failure::Turned(body) => StepError::Turned { body: model.body(body).name.clone() },
            Failure::Diverged(joint) => StepError::Diverged { joint: model.joint(joint).name.clone() },
        }
    }
}
