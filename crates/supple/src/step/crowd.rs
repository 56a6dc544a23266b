//! Many characters of one model, four of them side by side in the lanes of the processor.

use super::check::check;
use super::error::StepError;
use super::report::Report;
use super::step;
use super::work::Work;
use crate::contact;
use crate::input::Input;
use crate::model::{Model, State};
use crate::solver::reduced::command;
use crate::solver::{Solver, tree};

/// Advances many characters of one model, each with its own state, four side by side in the lanes of the processor.
///
/// `inputs` has one entry for all or one for each. Characters whose inputs differ in more than numbers (another `dt`, a drag on
/// another body), those left over from fours, and a four of which one needs halving go one by one: the result is that
/// of [`step()`] on each, bit for bit.
/// The report merges theirs as [`FIGURES`](super::FIGURES) says.
///
/// On error the characters before the one named are advanced, that one is not, and those after it are not but for the rest of its four, which may be:
/// their time tells.
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
        let mut done = [None; 4];
        if let [a, b, c, d, ..] = &mut states[k..] {
            done = four(model, [input(k), input(k + 1), input(k + 2), input(k + 3)], [a, b, c, d], work);
        }
        for one in done {
            // Those that did not go beside the others go alone, in their turn.
            if k == states.len() {
                break;
            }
            let one = match one {
                Some(one) => one,
                None => {
                    step(model, input(k), &mut states[k], work).map_err(|error| CrowdError { character: k, error })?
                }
            };
            report.beside(one);
            k += 1;
        }
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

/// Four characters side by side: the reports of those that are advanced. The others must go one by one; their states are as they were.
fn four(model: &Model, inputs: [&Input; 4], mut states: [&mut State; 4], work: &mut Work) -> [Option<Report>; 4] {
    let none = [None; 4];
    let Solver::Tree(settings) = inputs[0].solver else { return none };
    let alike = inputs[1..].iter().all(|i| goes_beside(i, inputs[0]));
    let touching = inputs.iter().any(|i| contact::wanted(model, i));
    if !alike
        || touching
        || inputs.iter().any(|i| i.sleep || command::is_wanted(i))
        || states.iter().any(|state| !state.rest.is_empty())
        || model.flesh().is_some()
        || model.skin().is_some()
        || work.integrals
        || !tree::goes_in_lanes(settings)
        || inputs[0].substeps > 1
        || work.model != model.fingerprint()
    {
        return none;
    }
    // An error is told when the character goes alone.
    if inputs.iter().zip(&states).any(|(input, state)| check(model, input, state).is_err()) {
        return none;
    }
    let h = inputs[0].dt;
    work.notes.ledger.clear();
    let scratch = (&mut work.tree, &mut work.notes);
    let Some(done) = tree::substep_four(model, inputs, settings, h, &mut states, scratch) else { return none };
    for (state, _) in states.iter_mut().zip(done).filter(|(_, report)| report.is_some()) {
        state.time += h;
        state.last_dt = h;
    }
    done
}
