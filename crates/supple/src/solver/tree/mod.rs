//! Solver `tree`: implicit joint forces and implicit joint constraints, in time linear in the number of bodies
//! [Hernández 2011].

use crate::input::Input;
use crate::maths::Wrench;
use crate::model::{Model, State};
use crate::solver::Tree;
use crate::step::{Failure, Report};

/// Scratch of solver `tree`.
pub struct TreeWork {
    impulses: Vec<Wrench>,
}

impl TreeWork {
    pub(crate) fn new(_model: &Model) -> TreeWork {
        TreeWork { impulses: Vec::new() }
    }

    pub(crate) fn joint_impulses(&self) -> &[Wrench] {
        &self.impulses
    }
}

/// One part `h` of a step.
pub(crate) fn substep(
    _model: &Model,
    _input: &Input,
    _settings: Tree,
    _h: f64,
    _state: &mut State,
    _work: &mut TreeWork,
) -> Result<Report, Failure> {
    Ok(Report::default())
}
