//! Many characters of one model, four of them side by side in the lanes of the processor.

use super::check::check;
use super::error::StepError;
use super::report::Report;
use super::step;
use super::work::Work;
use crate::contact;
use crate::input::Input;
use crate::model::{Model, State};
use crate::solver::{Solver, tree};

/// Advances many characters of one model, each with its own state, four side by side in the lanes of the processor.
///
/// `inputs` has one entry for all or one for each. Characters whose inputs differ in more than numbers (another `dt`, a drag on
/// another body), those left over from fours, and a four of which one needs halving go one by one: the result is that
/// of [`step()`] on each, bit for bit.
/// The report merges theirs as [`FIGURES`](super::FIGURES) says.
///
/// On error the characters before the one named are advanced, that one and those after it (and the rest of its four) are not.
pub fn step_crowd(
    model: &Model,
    inputs: &[Input],
    states: &mut [State],
    work: &mut Work,
) -> Result<Report, CrowdError> {
    if !(inputs.len() == 1 || inputs.len() == states.len()) {
        let (found, expected) = (inputs.len(), states.len());
        return Err(CrowdError { character: 0, error: StepError::Mismatch { what: "inputs", found, expected } });
    }
    let input = |k: usize| if inputs.len() == 1 { &inputs[0] } else { &inputs[k] };
    let mut report = Report::default();
    let mut k = 0;
    while k < states.len() {
        let taken = match &mut states[k..] {
            [a, b, c, d, ..] => four(model, [input(k), input(k + 1), input(k + 2), input(k + 3)], [a, b, c, d], work),
            _ => None,
        };
        let advanced = if taken.is_some() { 4 } else { 1 };
        let one = match taken {
            Some(report) => report,
            None => step(model, input(k), &mut states[k], work).map_err(|error| CrowdError { character: k, error })?,
        };
        report.beside(one);
        for _ in 1..advanced {
            report.rules = report.rules.plus(one.rules); // a report of four stands for each
        }
        k += advanced;
    }
    Ok(report)
}

/// Which character of a crowd could not be advanced, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("character {character}: {error}")]
pub struct CrowdError {
    /// Index into the states.
    pub character: usize,
    /// The reason.
    #[source]
    pub error: StepError,
}

/// Whether two inputs act on the same bodies in the same way, so that lanes do the operations of a character alone.
fn goes_beside(a: &Input, b: &Input) -> bool {
    a.dt == b.dt
        && a.substeps == b.substeps
        && a.solver == b.solver
        && a.targets.iter().map(Option::is_some).eq(b.targets.iter().map(Option::is_some))
        && a.drags.iter().map(|d| d.body).eq(b.drags.iter().map(|d| d.body))
        && a.wrenches.iter().map(|w| w.0).eq(b.wrenches.iter().map(|w| w.0))
}

/// Four characters side by side, or `None` when they must go one by one; then the states are as they were.
fn four(model: &Model, inputs: [&Input; 4], mut states: [&mut State; 4], work: &mut Work) -> Option<Report> {
    let Solver::Tree(settings) = inputs[0].solver else { return None };
    let alike = inputs[1..].iter().all(|i| goes_beside(i, inputs[0]));
    let touching = inputs.iter().any(|i| contact::wanted(model, i));
    if !alike
        || touching
        || model.flesh().is_some()
        || model.skin().is_some()
        || work.integrals
        || !tree::goes_in_lanes(settings)
        || inputs[0].substeps > 1
        || work.model != model.fingerprint()
    {
        return None;
    }
    for (input, state) in inputs.iter().zip(&states) {
        check(model, input, state).ok()?; // its error is told when it goes alone
    }
    let h = inputs[0].dt;
    work.notes.impulses.clear();
    let report = tree::substep_four(model, inputs, h, &mut states, &mut work.tree)?.ok()?;
    for state in &mut states {
        state.time += h;
        state.last_dt = h;
    }
    Some(report)
}
