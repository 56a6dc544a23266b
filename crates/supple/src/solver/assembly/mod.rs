//! Solver `assembly`: joints held by displacements, loops and broken poses included, accuracy traded for time [Faure 1998].

use crate::input::Input;
use crate::model::{Model, State};
use crate::step::{Failure, Report, StepError};

/// Settings of solver `assembly`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assembly {
    /// What is integrated and how drift is kept away.
    pub scheme: Scheme,
    /// Linearisations in a step, at most.
    pub outer: u32,
    /// Iterations of the linear solver in each, at most.
    pub inner: u32,
    /// The corrections end when no joint is farther open \[m, rad\].
    pub tolerance: f64,
    /// Largest rotation of a correction \[rad\]; infinite: none is cut.
    pub truncation: f64,
    /// What a correction that turns too far is cut by.
    pub cut: Cut,
}

impl Default for Assembly {
    fn default() -> Self {
        Assembly {
            scheme: Scheme::Displacements,
            outer: 10,
            inner: 50,
            tolerance: 1e-6,
            truncation: 0.8,
            cut: Cut::EachBody,
        }
    }
}

/// What is integrated and how drift is kept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Displacements by Störmer's rule, corrected until the joints are closed.
    #[default]
    Displacements,
    /// Velocities, projected after each step: a baseline.
    Projected,
    /// Accelerations with Baumgarte's stabilisation: a baseline.
    Baumgarte,
}

/// What a correction that turns too far is cut by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The rotation of that body alone, as published: fewest iterations from wild starts.
    #[default]
    EachBody,
    /// The whole correction: the error falls monotonically.
    Whole,
}

/// Scratch of solver `assembly`.
pub(crate) struct AssemblyWork {}

impl AssemblyWork {
    pub(crate) fn new(_model: &Model) -> AssemblyWork {
        AssemblyWork {}
    }
}

/// What solver `assembly` does not take.
pub(crate) fn takes(_model: &Model, _input: &Input, _settings: Assembly) -> Result<(), StepError> {
    Ok(())
}

/// One part `h` of a step, `after` seconds before the step's end. On failure the state is as it was.
pub(crate) fn substep(
    _model: &Model,
    _input: &Input,
    _settings: Assembly,
    (_h, _after): (f64, f64),
    _state: &mut State,
    _work: &mut AssemblyWork,
) -> Result<Report, Failure> {
    todo!("solver assembly")
}
