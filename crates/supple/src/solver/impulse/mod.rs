//! Solver `impulse`: joints held by impulses [Bender 2006].

use crate::input::Input;
use crate::model::{Model, State};
use crate::step::{Failure, Report, StepError};

/// Settings of solver `impulse`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impulse {
    /// How the impulses of an iteration are found.
    pub variant: Variant,
    /// Where the rows of the joints are taken.
    pub rows: Rows,
    /// Which matrix the system variant factors.
    pub elimination: Elimination,
    /// How far a joint may be open after a step \[m, rad\].
    pub tolerance: f64,
    /// How fast a joint may open after the velocity correction \[m/s, rad/s\].
    pub velocity_tolerance: f64,
    /// Whether velocities are corrected after the step.
    pub velocity_correction: VelocityCorrection,
    /// Corrections before the step is given up and halved.
    pub iterations: u32,
}

impl Default for Impulse {
    fn default() -> Self {
        Impulse {
            variant: Variant::System,
            rows: Rows::Start,
            elimination: Elimination::Automatic,
            tolerance: 1e-6,
            velocity_tolerance: 1e-6,
            velocity_correction: VelocityCorrection::On,
            iterations: 8,
        }
    }
}

/// How the impulses of an iteration are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// All at once, by one sparse linear system.
    #[default]
    System,
    /// One joint after another.
    JointByJoint,
}

/// Where the rows of the joints are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// At the start of the step, as published: one factorisation serves all iterations.
    #[default]
    Start,
    /// At the predicted pose: Newton's method, a factorisation for each iteration.
    Predicted,
}

/// Which matrix the system variant factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elimination {
    /// Joints while no body carries many, else bodies and joints.
    #[default]
    Automatic,
    /// `J M⁻¹ Jᵀ`, joints alone.
    Joints,
    /// Bodies and joints together, in tree order.
    Bodies,
}

/// Whether velocities are corrected after the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VelocityCorrection {
    /// Yes.
    #[default]
    On,
    /// No: the next step's corrections take care of it.
    Off,
}

/// Scratch of solver `impulse`.
pub(crate) struct ImpulseWork {}

impl ImpulseWork {
    pub(crate) fn new(_model: &Model) -> ImpulseWork {
        ImpulseWork {}
    }
}

/// What solver `impulse` does not take.
pub(crate) fn takes(_model: &Model, _input: &Input, _settings: Impulse) -> Result<(), StepError> {
    Ok(())
}

/// One part `h` of a step, `after` seconds before the step's end. On failure the state is as it was.
pub(crate) fn substep(
    _model: &Model,
    _input: &Input,
    _settings: Impulse,
    (_h, _after): (f64, f64),
    _state: &mut State,
    _work: &mut ImpulseWork,
) -> Result<Report, Failure> {
    todo!("solver impulse")
}
