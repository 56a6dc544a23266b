//! Solver `tree`: implicit joint forces and implicit joint constraints, in time linear in the number of bodies
//! [Hernández 2011].
//!
//! The published step, in its fast form: `plan` (constants in tree order) → `sweep` (up: assemble and factor; down: velocities
//! and poses) with the `kernel` of one node; `couple` for springs between bodies that are not neighbours in the tree.

pub mod acceleration;
pub mod assemble;
mod couple;
mod general;
mod kernel;
pub mod kkt;
mod loads;
mod midpoint;
mod plan;
mod sweep;

use crate::contact::penalty::{self, Touch};
use crate::contact::{self, Contact};
use crate::flesh::together::Law;
use crate::forces::{self, Stop, StopPlace};
use crate::input::{Contacts, FleshCoupling, Input};
use crate::loads::Ledger;
use crate::maths::Wrench;
#[cfg(target_arch = "x86_64")]
use crate::maths::lanes::Four;
use crate::maths::lanes::{Fused, Instructions, Real, has_fused};
use crate::maths::small::V3;
use crate::model::{BodyId, JointId, Model, State};
use crate::settings::DEPTH;
use crate::solver::{Impulses, Mode, Threads, Tree, TreeScheme};
use crate::step::{Failure, Report, Span, StepError, StepRule};
use crate::watch::{Notes, Stage};
use couple::Couple;
use glam::DVec3;
use midpoint::{How, MidpointWork, Outcome};
use plan::{FLIPPED, Link, NONE, Plan};
use sweep::{Keep, Measured, Sweep};

/// Scratch of solver `tree`.
pub(crate) struct TreeWork {
    plan: Plan,
    one: One,
    #[cfg(target_arch = "x86_64")]
    four: Option<Box<Sweep<Four>>>,
    couple: Couple,
    /// Made when a scheme first asks for it.
    kkt: Option<kkt::KktWork>,
    midpoint: Option<MidpointWork>,
    general: Option<general::GeneralWork>,
    /// Ends of hard limits that are near.
    stops: Vec<Stop>,
    /// Contacts that are springs.
    touches: Vec<Touch>,
}

/// The arrays of one character, for the instructions in use.
enum One {
    Fused(Sweep<Fused>),
    Baseline(Sweep<f64>),
}

impl TreeWork {
    pub(crate) fn new(model: &Model) -> TreeWork {
        let plan = Plan::new(model);
        let one = if has_fused() { One::Fused(Sweep::new(&plan)) } else { One::Baseline(Sweep::new(&plan)) };
        TreeWork {
            couple: Couple::new(model, &plan),
            plan,
            one,
            #[cfg(target_arch = "x86_64")]
            four: None,
            kkt: None,
            midpoint: None,
            general: None,
            stops: Vec::new(),
            touches: Vec::new(),
        }
    }

    /// Makes the arrays fit the instructions asked for.
    fn use_instructions(&mut self, instructions: Instructions) {
        match (&self.one, instructions == Instructions::Best && has_fused()) {
            (One::Baseline(_), true) => self.one = One::Fused(Sweep::new(&self.plan)),
            (One::Fused(_), false) => self.one = One::Baseline(Sweep::new(&self.plan)),
            _ => {}
        }
    }
}

/// What solver `tree` does not take.
pub(crate) fn takes(model: &Model, input: &Input, settings: Tree) -> Result<(), StepError> {
    crate::solver::no_drives("tree", model, input)?;
    if let Some(law) = settings.penalty() {
        crate::solver::check_penalty("tree", law)?;
    }
    if let TreeScheme::Midpoint(_) = settings.scheme {
        let is_more = is_general(model, input) || !model.hard_limits().is_empty();
        if settings.penalty().is_some() && contact::wanted(model, input) && is_more {
            return Err(StepError::Unsupported {
                solver: "tree",
                part: "contacts that are springs beside loops, couplings, grips or hard limits".to_owned(),
                remedy: "leave its contacts to the scheme",
            });
        }
        return Ok(());
    }
    crate::solver::no_hard_limits("tree", model)?;
    if let Some(&id) = model.topology().loops.first() {
        return Err(StepError::loops("tree", model, id));
    }
    crate::solver::no_grips("tree", model, input)?;
    match settings.scheme {
        TreeScheme::Exact if input.contacts == Contacts::All => Err(StepError::Unsupported {
            solver: "tree",
            part: "contacts between bodies in its scheme exact".to_owned(),
            remedy: "let bodies touch obstacles alone, or use another scheme",
        }),
        TreeScheme::Exact => assemble::check(model),
        _ => Ok(()),
    }
}

/// Whether flesh is solved together with the bodies.
fn together(model: &Model, input: &Input) -> bool {
    model.flesh().is_some() && input.flesh == FleshCoupling::Together
}

/// Whether a step is more than the tree alone can do.
pub(crate) fn is_general(model: &Model, input: &Input) -> bool {
    !(model.topology().is_tree() && model.couplings().is_empty() && input.grips.is_empty()) || together(model, input)
}

/// The ends of hard limits that may be reached within h: closer than this angle or share of the model's size, or than twice their way.
pub(crate) fn near_stops(model: &Model, state: &State, h: f64, reach: f64, stops: &mut Vec<Stop>) {
    const NEAR: f64 = 0.2;
    stops.clear();
    forces::stops(model, state, |stop| {
        let velocity = |body: BodyId| state.bodies[body.index()].velocity;
        let rate = forces::along(stop.a, velocity(stop.child))
            + stop.parent.map_or(0.0, |b| forces::along(stop.b, velocity(b)));
        let size = if stop.a.linear == DVec3::ZERO { 1.0 } else { reach };
        if stop.gap < (NEAR * size).max(-2.0 * h * rate) {
            stops.push(stop);
        }
    });
}

/// Whether some bodies can be [held](substep) while others go on.
pub(crate) fn can_hold(settings: Tree) -> bool {
    matches!(settings.scheme, TreeScheme::Midpoint(_)) && settings.penalty().is_none()
}

/// What acts on the bodies of a part from outside their tree.
pub(crate) struct Outside<'a> {
    pub(crate) contacts: &'a [Contact],
    /// By body: which stay where they are, at rest, with all that is joined to them and none of the contacts; empty when all move.
    pub(crate) held: &'a [bool],
    /// Flesh that is solved together with the published step.
    pub(crate) law: Option<&'a mut Law>,
}

/// One part of a step. On failure the state is as it was.
#[allow(clippy::too_many_arguments)]
pub(crate) fn substep(
    model: &Model,
    input: &Input,
    outside: Outside<'_>,
    settings: Tree,
    span: Span,
    state: &mut State,
    work: &mut TreeWork,
    notes: &mut Notes,
) -> Result<Report, Failure> {
    let Outside { contacts, held, mut law } = outside;
    let Span { h, after, .. } = span;
    work.touches.clear();
    if let Some(law) = settings.penalty() {
        penalty::gather(model, state, contacts, law, (h, after), &mut work.touches);
    }
    let settings = Tree { impulses: notes.keeps(settings.impulses), ..settings };
    if let TreeScheme::Midpoint(mode) = settings.scheme {
        near_stops(model, state, h, work.plan.reach, &mut work.stops);
        if !held.is_empty() {
            work.stops.retain(|stop| !held[stop.child.index()]);
        }
        let contacts = if settings.penalty().is_some() { &[] } else { contacts };
        let by_rows = (mode, settings.instructions, span);
        if is_general(model, input) || !(contacts.is_empty() && work.stops.is_empty() && held.is_empty()) {
            return with_rows(model, input, (contacts, held), by_rows, state, (work, &mut notes.ledger));
        }
        state.contacts.clear();
        let midpoint = work.midpoint.get_or_insert_with(|| MidpointWork::new(&work.plan, model));
        let how = how_of(mode, settings);
        let scratch = (&mut *midpoint, &mut *notes);
        let outside = (input, work.touches.as_slice());
        let done = midpoint::substep(model, outside, how, (h, after), state, &work.plan, scratch)?;
        let report = match done {
            Outcome::Done(report) => report.by(StepRule::Midpoint),
            Outcome::Passed(joint, spent) => {
                // From afar: all hard limits are rows now. A swing has none as long as there is no swing: shorter parts will see one.
                work.stops.clear();
                forces::stops(model, state, |stop| work.stops.push(stop));
                let has_swing = work.stops.iter().any(|s| (s.joint, s.place) == (joint, StopPlace::Swing));
                if model.joint(joint).limits.swing.is_some() && !has_swing && span.halvings > 0 {
                    return Err(Failure::Turned(model.joint(joint).child));
                }
                let mut report = with_rows(model, input, (contacts, held), by_rows, state, (work, &mut notes.ledger))?;
                report.factorisations += spent.factorisations;
                report.solves += spent.solves;
                return Ok(report);
            }
        };
        if settings.impulses == Impulses::Keep {
            midpoint.joint_impulses(&work.plan, notes);
            notes.ledger.touch_softly(model, &work.touches, state, after);
            notes.mark(Stage::Measure);
        }
        return Ok(report);
    }
    let report = match settings.scheme {
        TreeScheme::Midpoint(_) => unreachable!("done above"),
        TreeScheme::Published => {
            work.use_instructions(settings.instructions);
            let TreeWork { plan, one, couple, touches, .. } = work;
            couple.touch(model, input, state, (h, after), plan, touches);
            couple.surround(plan, law.as_deref(), h);
            let report = match one {
                One::Fused(sweep) => published(model, input, settings, h, state, plan, sweep, couple, notes),
                One::Baseline(sweep) => published(model, input, settings, h, state, plan, sweep, couple, notes),
            };
            if let Some(law) = &mut law {
                match one {
                    One::Fused(sweep) => couple.displace(sweep, h, law),
                    One::Baseline(sweep) => couple.displace(sweep, h, law),
                }
            }
            report
        }
        TreeScheme::Exact => {
            let kkt = work.kkt.get_or_insert_with(|| kkt::KktWork::new(model));
            let report = kkt::exact_substep(model, (input, &work.touches), (h, after), state, kkt, notes)?;
            if settings.impulses == Impulses::Keep {
                kkt.joint_impulses(model, notes.ledger.totals());
            }
            Ok(report)
        }
        TreeScheme::Acceleration => {
            let kkt = work.kkt.get_or_insert_with(|| kkt::KktWork::new(model));
            let outside = (input, work.touches.as_slice());
            let report = acceleration::acceleration_substep(model, outside, (h, after), state, kkt, notes)?;
            if settings.impulses == Impulses::Keep {
                kkt.joint_impulses(model, notes.ledger.totals());
                notes.ledger.totals().iter_mut().for_each(|force| *force = *force * h);
            }
            Ok(report)
        }
    }?;
    if settings.impulses == Impulses::Keep {
        notes.ledger.touch_softly(model, &work.touches, state, after);
    }
    state.forget_forces();
    Ok(report.by(match settings.scheme {
        TreeScheme::Exact => StepRule::Exact,
        TreeScheme::Acceleration => StepRule::Acceleration,
        TreeScheme::Published | TreeScheme::Midpoint(_) => StepRule::Published,
    }))
}

fn how_of(mode: Mode, settings: Tree) -> How {
    let (instructions, impulses) = (settings.instructions, settings.impulses);
    How { mode, depth: settings.depth.clamp(DEPTH[0], DEPTH[1]), instructions, impulses }
}

/// A part with contacts, hard limits, loops, couplings, grips or flesh.
fn with_rows(
    model: &Model,
    input: &Input,
    (contacts, held): (&[Contact], &[bool]),
    how: (Mode, Instructions, Span),
    state: &mut State,
    (work, ledger): (&mut TreeWork, &mut Ledger),
) -> Result<Report, Failure> {
    ledger.part = how.2.h;
    let general = work.general.get_or_insert_with(|| general::GeneralWork::new(model));
    let one_sided = (contacts, &work.stops[..], held);
    let report = general::substep(model, input, one_sided, how, work.plan.reach, state, (general, ledger))?;
    let rule = if together(model, input) { StepRule::Backward } else { general.rule() };
    Ok(report.by(rule))
}

/// The published step: one linearisation at the start of the step, one factorisation.
#[allow(clippy::too_many_arguments)]
fn published<T: Real>(
    model: &Model,
    input: &Input,
    settings: Tree,
    h: f64,
    state: &mut State,
    plan: &Plan,
    sweep: &mut Sweep<T>,
    couple: &mut Couple,
    notes: &mut Notes,
) -> Result<Report, Failure> {
    let keep = if settings.impulses == Impulses::Keep || !couple.is_empty() { Keep::Yes } else { Keep::No };
    sweep.gather(plan, &[state]);
    sweep.loads.touch(couple.contacts());
    notes.mark(Stage::Check);
    let limits = sweep.up(plan, model, &[input], h, keep, settings.threads);
    notes.mark(Stage::Factor); // one sweep: forces, blocks and factors of a node together
    let mut solves = 1;
    let measured = if couple.is_empty() {
        sweep.down(plan, h, settings.threads)
    } else {
        solves = couple.join(model, plan, sweep, h);
        sweep.place(plan, h)
    };
    notes.mark(Stage::Solve);
    check(model, state, plan, sweep, &measured)?;
    if settings.impulses == Impulses::Keep {
        joint_impulses(model, plan, sweep, !couple.is_empty(), notes.ledger.totals());
    }
    sweep.scatter(plan, &mut [state]);
    notes.mark(Stage::Measure);
    Ok(Report { solves, ..report(plan, &measured, limits) })
}

fn report<T: Real>(plan: &Plan, measured: &Measured<T>, limits: T) -> Report {
    Report {
        max_joint_gap: measured.gap.sqrt(),
        max_joint_tilt: measured.tilt.sqrt(),
        widest_joint: if measured.widest == NONE { None } else { plan.joint_id(measured.widest as usize) },
        substeps: 1,
        factorisations: 1,
        solves: 1,
        limits_active: (0..T::LANES).map(|l| limits.lane(l) as u32).max().unwrap_or(0),
        ..Report::default()
    }
}

/// Fails when any number of the new state is not finite: names a joint that was out of joint, else the first such body.
fn check<T: Real>(
    model: &Model,
    start: &State,
    plan: &Plan,
    sweep: &Sweep<T>,
    measured: &Measured<T>,
) -> Result<(), Failure> {
    if measured.is_finite() {
        return Ok(());
    }
    for (k, joint) in model.joints().iter().enumerate() {
        let a = start.bodies[joint.child.index()].orientation;
        if joint.is_out_of_joint(a, model.parent_pose(joint, start).rotation) {
            return Err(Failure::Factor(JointId(k as u32)));
        }
    }
    let bad = |v: V3<T>| (0..T::LANES).any(|l| !v.lane(l).is_finite());
    let node = (1..plan.nodes.len())
        .find(|&i| bad(sweep.moving[i].v) || bad(sweep.moving[i].w) || bad(sweep.moving[i].x))
        .unwrap_or(1);
    Err(Failure::NotFinite(BodyId(plan.nodes[node].body)))
}

/// The impulse on each joint's child: what the articulated body beyond the joint gained beyond its own loads.
fn joint_impulses<T: Real>(model: &Model, plan: &Plan, sweep: &Sweep<T>, is_coupled: bool, impulses: &mut Vec<Wrench>) {
    impulses.resize(model.joints().len(), Wrench::ZERO);
    for (i, node) in plan.nodes.iter().enumerate().skip(1) {
        if node.joint == NONE {
            continue;
        }
        let (passage, moving) = (&sweep.passages[i], &sweep.moving[i]);
        let kept = &sweep.kept[i].inertia;
        let (f, n) = kept.times(moving.v + moving.w.cross(passage.own), moving.w);
        // The impulses of what couples bodies came after the way up.
        let late = if is_coupled { sweep.again.totals.get(i).copied() } else { None };
        let (late_f, late_n) = late.unwrap_or((V3::zero(), V3::zero()));
        let force = (f - kept.f - late_f).lane(0);
        let torque = (n - kept.n - late_n).lane(0);
        impulses[node.joint as usize] = if node.flags & FLIPPED == 0 {
            Wrench::new(force, torque + passage.own.lane(0).cross(force))
        } else {
            Wrench::new(-force, -(torque + passage.lever.lane(0).cross(force)))
        };
    }
}

/// Whether these settings allow four characters side by side.
pub(crate) fn goes_in_lanes(settings: Tree) -> bool {
    matches!(settings.scheme, TreeScheme::Published | TreeScheme::Midpoint(_))
        && settings.instructions == Instructions::Best
        && settings.impulses == Impulses::Skip
}

/// Four characters of one model side by side: what each came to. Those without a report go alone, their states as they were; `None` when this machine,
/// model or input cannot go side by side at all.
pub(crate) fn substep_four(
    model: &Model,
    inputs: [&Input; 4],
    settings: Tree,
    h: f64,
    states: &mut [&mut State; 4],
    (work, notes): (&mut TreeWork, &mut Notes),
) -> Option<[Option<Report>; 4]> {
    #[cfg(target_arch = "x86_64")]
    {
        if notes.keeps(Impulses::Skip) == Impulses::Keep {
            return None;
        }
        if let TreeScheme::Midpoint(mode) = settings.scheme {
            let plain = |input: &&Input| is_general(model, input) || contact::wanted(model, input);
            if inputs.iter().any(plain) || !model.hard_limits().is_empty() {
                return None;
            }
            let midpoint = work.midpoint.get_or_insert_with(|| MidpointWork::new(&work.plan, model));
            let (how, scratch) = (how_of(mode, settings), (midpoint, notes));
            let mut done = midpoint::substep_four(model, inputs, how, h, states, &work.plan, scratch)?;
            for (report, state) in done.iter_mut().zip(states) {
                if let Some(report) = report {
                    state.contacts.clear();
                    *report = report.by(StepRule::Midpoint);
                }
            }
            return Some(done);
        }
        // A free joint passes nothing on when nothing acts on it; lanes could differ in that.
        if !has_fused() || !work.couple.is_empty() || work.plan.nodes.iter().any(|n| n.link == Link::General(6)) {
            return None;
        }
        let TreeWork { plan, four, .. } = work;
        let sweep = four.get_or_insert_with(|| Box::new(Sweep::new(plan)));
        sweep.loads.touch(&[]);
        sweep.gather(plan, &[&*states[0], &*states[1], &*states[2], &*states[3]]);
        let limits = sweep.up(plan, model, &inputs, h, Keep::No, Threads::One);
        let measured = sweep.down(plan, h, Threads::One);
        check(model, states[0], plan, sweep, &measured).ok()?;
        sweep.scatter(plan, states);
        states.iter_mut().for_each(|state| state.forget_forces());
        Some([Some(report(plan, &measured, limits).by(StepRule::Published)); 4])
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (model, inputs, settings, h, states, work, notes);
        None
    }
}
