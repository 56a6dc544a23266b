//! A broken pose brought together, without time.

use super::check::{check_grips, check_motion, check_sizes};
use super::error::{Failure, StepError};
use super::work::Work;
use crate::input::Grip;
use crate::model::{BodyId, Model, State};
use crate::solver::assembly::{self, Assembly, AssemblyReport};

/// Brings a state whose joints are open to one in which they are closed, with bodies gripped where they are to be, in the sense of
/// least squares: loops, redundant and contradictory joints included [Faure 1998, §3.4]. No time passes; velocities stay as they are.
///
/// ```
/// use supple::*;
/// let scene = Scene::parse("robot").unwrap();
/// let mut state = scene.state.clone();
/// state.bodies[5].position.x += 0.3; // an arm is torn off
/// let mut work = Work::new(&scene.model);
/// let report = assemble(&scene.model, &Assembly::default(), &[], &mut state, &mut work).unwrap();
/// assert!(report.error_before > 0.29 && report.error_after < 1e-6);
/// ```
pub fn assemble(
    model: &Model,
    settings: &Assembly,
    grips: &[Grip],
    state: &mut State,
    work: &mut Work,
) -> Result<AssemblyReport, StepError> {
    check_sizes(model, state)?;
    check_motion(model, state)?;
    check_grips(model, grips)?;
    if work.model != model.fingerprint() {
        return Err(StepError::Work);
    }
    let assembly = work.assembly.get_or_insert_with(|| Box::new(assembly::AssemblyWork::new(model)));
    work.saved.clone_from(state);
    let report = assembly::assemble(model, grips, settings, state, assembly);
    match state.bodies.iter().position(|body| !body.is_finite()) {
        None => Ok(report),
        Some(i) => {
            state.clone_from(&work.saved);
            Err(Failure::NotFinite(BodyId(i as u32)).describe(model))
        }
    }
}
