//! Solver `reduced`: recursive hybrid dynamics in joint coordinates [Kim 2008].

use crate::input::Input;
use crate::model::{Model, State};
use crate::step::{Failure, Report, StepError};

/// Settings of solver `reduced`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reduced {
    /// How joint springs and dampers enter.
    pub springs: Springs,
}

/// How joint springs and dampers enter the recursion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Springs {
    /// Implicitly, inside the recursion: stable at any stiffness.
    #[default]
    Implicit,
    /// As torques of the present pose.
    Explicit,
}

/// Scratch of solver `reduced`.
pub(crate) struct ReducedWork {}

impl ReducedWork {
    pub(crate) fn new(_model: &Model) -> ReducedWork {
        ReducedWork {}
    }
}

/// What solver `reduced` does not take.
pub(crate) fn takes(model: &Model, input: &Input, _settings: Reduced) -> Result<(), StepError> {
    if let Some(&id) = model.topology().loops.first() {
        return Err(StepError::loops("reduced", model, id));
    }
    crate::solver::no_grips("reduced", model, input)
}

/// One part `h` of a step, `after` seconds before the step's end. On failure the state is as it was.
pub(crate) fn substep(
    _model: &Model,
    _input: &Input,
    _settings: Reduced,
    (_h, _after): (f64, f64),
    _state: &mut State,
    _work: &mut ReducedWork,
) -> Result<Report, Failure> {
    todo!("solver reduced")
}
