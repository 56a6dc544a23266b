//! One step: the pipeline. Read this first.

mod assemble;
mod check;
mod crowd;
mod error;
mod islands;
mod report;
mod sleep;
mod work;

pub use assemble::assemble;
pub use crowd::{CrowdError, step_crowd};
pub(crate) use error::Failure;
pub use error::StepError;
pub(crate) use report::larger;
pub use report::{Cause, FIGURES, Figure, Merge, Report, Rules, StepRule, Trouble};
pub use work::Work;

use crate::contact;
use crate::control::ControlReport;
use crate::flesh::Flesh;
use crate::flesh::loose::Loose;
use crate::flesh::together::{Law, Together};
use crate::input::{FleshCoupling, Input};
use crate::measure;
use crate::model::{BodyId, Model, State};
use crate::servo;
use crate::skin::{self, SkinWork};
use crate::solver::reduced::command;
use crate::solver::{Impulses, Solver, Tree, TreeScheme, assembly, impulse, reduced, tree};
use crate::watch::Stage;

/// How often a failed part may be halved.
pub(crate) const MAX_HALVINGS: u32 = 6;
/// Islands of a part that may fail and be done by themselves; where more fail, those that are left are halved together.
const MOST_ALONE: usize = 3;

/// Advances `state` by `input.dt`.
///
/// On error the state is as it was. The same model, state and input give the same bits.
pub fn step(model: &Model, input: &Input, state: &mut State, work: &mut Work) -> Result<Report, StepError> {
    work.notes.start();
    check::check(model, input, state)?;
    if work.model != model.fingerprint() {
        return Err(StepError::Work);
    }
    let sleeps = sleep::is_wanted(input, work.integrals);
    work.rest.clone_from(&state.rest);
    if sleeps {
        sleep::wake(model, input, state, &mut work.asked_of);
        if sleep::is_all_asleep(state) {
            work.keep_notes_of(sleep::signature(state));
            let report = sleep::pass(model, input, state, &work.asked_of);
            work.noted = sleep::signature(state);
            return Ok(report);
        }
    } else {
        state.rest.clear();
    }
    work.notes.mark(Stage::Check);
    let parts = input.substeps.max(1);
    let h = input.dt / f64::from(parts);
    if parts > 1 {
        work.saved.clone_from(state);
    }
    let halvings = match input.solver {
        Solver::Impulse(_) => impulse::MAX_HALVINGS,
        _ => MAX_HALVINGS,
    };
    let mut report = Report::default();
    for part in 0..parts {
        let after = input.dt - f64::from(part + 1) * h;
        match substep(model, input, Span { h, after, halvings }, state, work) {
            Ok(done) => report = report.then(done),
            Err(failure) => {
                if part == 0 {
                    work.saved.clone_from(state);
                }
                match again(model, input, Span { h, after, halvings }, failure, state, work) {
                    Ok(done) => report = report.then(done),
                    Err(failure) => {
                        state.clone_from(&work.saved);
                        state.rest.clone_from(&work.rest);
                        return Err(failure.describe(model));
                    }
                }
            }
        }
    }
    state.time += input.dt;
    if sleeps {
        sleep::count(model, input, state, &work.asked_of);
        work.noted = sleep::signature(state);
    }
    Ok(report)
}

/// A part of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Its length \[s\].
    pub(crate) h: f64,
    /// What is left of the step after it \[s\].
    pub(crate) after: f64,
    /// How often it may still be halved.
    pub(crate) halvings: u32,
}

/// Does a part again that failed: in halves. Where bodies form islands that do not touch, the one that failed is halved by itself, and the others go on
/// without it.
fn again(
    model: &Model,
    input: &Input,
    span: Span,
    mut failure: Failure,
    state: &mut State,
    work: &mut Work,
) -> Result<Report, Failure> {
    if !can_hold(model, input) || work.islands.find(model, work.contacts.contacts(), &state.rest) < 2 {
        return halves(model, input, span, failure, state, work);
    }
    let mut report = Report::default();
    let (mut alone, mut failures) = (0, [failure; MOST_ALONE]);
    // The others, fewer and fewer of them
    loop {
        let known = alone;
        alone = work.islands.single_out(failure.trouble(model).body);
        failures[alone - 1] = failure;
        if work.islands.are_all_alone() {
            break;
        }
        let is_last = alone == MOST_ALONE || alone == known;
        work.islands.hold_alone(model, state);
        let mut done = substep(model, input, span, state, work);
        if let (Err(failed), true) = (done, is_last) {
            done = halves(model, input, span, failed, state, work);
        }
        work.islands.release(model, state);
        match done {
            Ok(done) => {
                report = done;
                break;
            }
            Err(_) if is_last => return done,
            Err(failed) => failure = failed,
        }
    }
    // Each that failed
    for (one, &failure) in failures[..alone].iter().enumerate() {
        work.islands.hold_all_but(one, model, state);
        let done = halves(model, input, span, failure, state, work);
        work.islands.release(model, state);
        report = report.with_island(done?);
    }
    Ok(report)
}

/// Whether some bodies of a step can be held where they are while others go on.
fn can_hold(model: &Model, input: &Input) -> bool {
    let Solver::Tree(settings) = input.solver else { return false };
    tree::can_hold(settings) && model.flesh().is_none() && model.skin().is_none()
}

/// The last resort: for a part that is not halved any more the bodies stay where they are and lose half of their speed, and what pressed on them is forgotten. What cannot move at one
/// speed, or from the impulses of before, may at a lower one and from none; poses in which nothing can move are left by none.
pub(crate) fn stay(model: &Model, failure: Failure, state: &mut State) -> Report {
    state.forget_forces();
    state.bodies.iter_mut().for_each(|body| body.velocity = body.velocity * 0.5);
    let gap = measure::joint_gap(model, state);
    let mut report = Report {
        substeps: 1,
        resorts: 1,
        stalled: 1,
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        ..Report::default()
    };
    report.note(failure.trouble(model).body, Cause::Stalled);
    report
}

/// After so many last resorts in a row, a half that knows nothing else, the other half is not tried: what contradicts itself for good costs a few parts a step and not all of them.
const STALLS: u32 = 4;

/// Does a part that failed as its two halves.
fn halves(
    model: &Model,
    input: &Input,
    span: Span,
    failure: Failure,
    state: &mut State,
    work: &mut Work,
) -> Result<Report, Failure> {
    if span.halvings == 0 {
        return Err(failure);
    }
    let mut report = Report { fallbacks: 1, ..Report::default() };
    report.trouble = Some(failure.trouble(model));
    let (h, halvings) = (0.5 * span.h, span.halvings - 1);
    for after in [span.after + h, span.after] {
        let half = Span { h, after, halvings };
        if report.stalled >= STALLS && report.stalled == report.substeps {
            return Ok(report.then(stay(model, failure, state)));
        }
        let done = match substep(model, input, half, state, work) {
            Ok(done) => done,
            Err(failure) => halves(model, input, half, failure, state, work)?,
        };
        report = report.then(done);
    }
    Ok(report)
}

/// One part of a step, with what is asked of it: targets where they are at its end, the commands of actuators, and the
/// integrals of servos. On failure the state is that of the part's
/// start.
fn substep(model: &Model, input: &Input, span: Span, state: &mut State, work: &mut Work) -> Result<Report, Failure> {
    let moves = span.after > 0.0 && input.moves();
    let is_directed = command::is_wanted(input);
    if !(moves || work.integrals || is_directed) {
        return solve(model, input, span, state, work);
    }
    let mut asked = work.asked.take().unwrap_or_default();
    asked.copy_from(input);
    asked.go_back(if moves { span.after } else { 0.0 });
    let told = if is_directed { direct(model, &mut asked, span, state, work) } else { Ok(ControlReport::default()) };
    servo::govern(model, state, &mut asked);
    let done = told.and_then(|control| {
        let report = solve(model, &asked, span, state, work)?;
        Ok(if is_directed { Report { control, ..report } } else { report })
    });
    if done.is_ok() {
        servo::advance(model, &asked, span.h, state);
    }
    work.asked = Some(asked);
    done
}

/// The control: adds the commands of the actuators to what is asked of a part.
fn direct(
    model: &Model,
    asked: &mut Input,
    span: Span,
    state: &State,
    work: &mut Work,
) -> Result<ControlReport, Failure> {
    let part = (span.h, span.after);
    contact::detect(model, asked, state, part, &mut work.contacts);
    let reduced = work.reduced.get_or_insert_with(|| Box::new(reduced::ReducedWork::new(model)));
    let told = work.notes.ledger.commands(model);
    command::command(model, asked, part, work.contacts.contacts(), state, (reduced, told))
}

/// One part of a step by the solver asked for.
fn solve(model: &Model, input: &Input, span: Span, state: &mut State, work: &mut Work) -> Result<Report, Failure> {
    work.notes.ledger.outside = input.wrenches.len();
    let Some(flesh) = model.flesh() else { return solve_bodies(model, input, span, None, state, work) };
    if input.flesh == FleshCoupling::Together {
        return match input.solver {
            Solver::Tree(Tree { scheme: TreeScheme::Midpoint(_), .. }) | Solver::Reduced(_) => {
                solve_bodies(model, input, span, None, state, work)
            }
            _ => solve_together((model, flesh), input, span, state, work),
        };
    }
    let mut loose = work.loose.take().unwrap_or_else(|| Box::new(Loose::new(model, flesh)));
    loose.load(model, flesh, input, state, (span.h, span.after));
    let mut done = solve_bodies(model, &loose.input, span, None, state, work);
    if let Ok(report) = &mut done {
        report.note_flesh(loose.lead(flesh, state));
    }
    work.loose = Some(loose);
    done
}

/// One part of a step of flesh and bodies together, by a solver that takes a law of flesh.
fn solve_together(
    (model, flesh): (&Model, &Flesh),
    input: &Input,
    span: Span,
    state: &mut State,
    work: &mut Work,
) -> Result<Report, Failure> {
    let mut together = work.together.take().unwrap_or_else(|| Box::new(Together::new(model, flesh)));
    together.begin(model, flesh, input, state, (span.h, span.after));
    let done =
        together.run((model, flesh), state, |law, state| solve_bodies(model, input, span, Some(law), state, work));
    work.together = Some(together);
    done
}

/// One part of a step of the bodies, and of flesh that is solved together with them: by the solver itself, or with a law of what it does.
fn solve_bodies(
    model: &Model,
    input: &Input,
    span: Span,
    law: Option<&mut Law>,
    state: &mut State,
    work: &mut Work,
) -> Result<Report, Failure> {
    let part = (span.h, span.after);
    let kept = match input.solver {
        Solver::Tree(settings) => settings.impulses,
        _ => Impulses::Skip,
    };
    let is_wanted = work.notes.keeps(kept) == Impulses::Keep;
    work.notes.ledger.begin(model, state, span.h, is_wanted);
    contact::detect(model, input, state, part, &mut work.contacts);
    let dozes = doze(model, input, state, work);
    work.contacts.leave_out(work.islands.held());
    let contacts = work.contacts.contacts();
    if let Some(skin) = model.skin() {
        let own = work.skin.get_or_insert_with(|| Box::new(SkinWork::new(model, skin)));
        work.part_start.clone_from(state);
        let done = skin::substep((model, skin), input, contacts, span, state, own, &mut work.notes);
        match done {
            Ok(_) => state.last_dt = span.h,
            Err(_) => state.clone_from(&work.part_start),
        }
        if done.is_ok() {
            work.notes.ledger.close(model, input, state, &[]);
        }
        return done.map(|report| report.by(StepRule::Backward));
    }
    let ledger = &mut work.notes.ledger;
    let done = match input.solver {
        // It writes only what succeeded, and the joints' memory itself.
        Solver::Tree(settings) => {
            let outside = tree::Outside { contacts, held: work.islands.held(), law };
            tree::substep(model, input, outside, settings, span, state, &mut work.tree, &mut work.notes)
        }
        Solver::Impulse(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.impulse.get_or_insert_with(|| Box::new(impulse::ImpulseWork::new(model)));
            Ok(impulse::substep(model, input, settings, part, (contacts, law), state, (work, ledger))?
                .by(StepRule::Impulse))
        }),
        Solver::Assembly(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.assembly.get_or_insert_with(|| Box::new(assembly::AssemblyWork::new(model)));
            let report = assembly::substep(model, input, settings, part, (contacts, law), state, (work, ledger))?;
            state.forget_forces();
            Ok(report.by(StepRule::Assembly))
        }),
        Solver::Reduced(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.reduced.get_or_insert_with(|| Box::new(reduced::ReducedWork::new(model)));
            let report = reduced::substep(model, input, settings, part, contacts, state, (work, ledger))?;
            state.follow_turns(model);
            state.forget_forces();
            Ok(report.by(StepRule::Reduced))
        }),
    };
    work.notes.mark(Stage::Solve); // what a solver did not divide
    if done.is_ok() {
        work.notes.ledger.close(model, input, state, work.islands.held());
    }
    if dozes {
        work.islands.release(model, state);
    }
    let report = done?;
    state.last_dt = span.h;
    Ok(Report { contacts: work.contacts.contacts().len() as u32, asleep: work.islands.asleep(), ..report })
}

/// Holds the islands that sleep in a part; where some are held for another reason, those that sleep are among them.
fn doze(model: &Model, input: &Input, state: &mut State, work: &mut Work) -> bool {
    if !work.islands.held().is_empty() {
        return false;
    }
    work.islands.wake_all();
    if !(can_hold(model, input) && state.rest.iter().any(sleep::is_asleep)) {
        return false;
    }
    work.islands.find(model, work.contacts.contacts(), &state.rest);
    work.islands.hold_asleep(model, state)
}

/// Runs a part that may fail halfway: then the state is put back. Otherwise it must be finite; forces that only solver
/// `tree` remembers are forgotten.
fn restoring(
    state: &mut State,
    start: &mut State,
    part: impl FnOnce(&mut State) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    start.clone_from(state);
    let done = part(state).and_then(|report| match state.bodies.iter().position(|b| !b.is_finite()) {
        None => Ok(report),
        Some(i) => Err(Failure::NotFinite(BodyId(i as u32))),
    });
    if done.is_err() {
        state.clone_from(start);
    }
    done
}
