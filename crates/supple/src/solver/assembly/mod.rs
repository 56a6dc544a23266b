//! Solver `assembly`: joints held by displacements, loops and broken poses included, accuracy traded for time [Faure 1998].
//!
//! ```text
//! step:    Δ = h v + ½ h² M⁻¹ f          where the bodies would go alone                                                [§4.2]
//!          q = q ⊕ Δ                     with springs: Δ such that no joint opens, by the rows of the start
//!          q = q ⊕ correction(q)         joints closed by the least motion, stiff springs met on the way                [§3.4]
//!          v = (q ⊖ q_start)/h + ½ h M⁻¹ f
//! ```
//! The paper keeps the last displacement in place of a velocity; this is the same rule for steps of any length, with the velocity that
//! the state keeps. Nothing of it knows trees: loops, redundant and contradictory joints are met in the sense of least squares.

mod baselines;
mod budget;
mod correct;
mod inertia;
mod rows;
mod surfaces;

pub use budget::Budget;
pub use correct::Residual;

use crate::contact::{self, Contact};
use crate::flesh::together::Law;
use crate::input::{Drive, Grip, Input};
use crate::loads::Ledger;
use crate::maths::Twist;
use crate::maths::block::from_twist;
use crate::measure;
use crate::model::{Model, State};
use crate::step::{Failure, Report, StepError};
use correct::{Correction, LimitRows, Outcome, Owner, PATIENCE};

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
    /// What keeps corrections from turning too far.
    pub cut: Cut,
    /// How the linear systems are solved.
    pub linear: Linear,
}

impl Default for Assembly {
    fn default() -> Self {
        Assembly {
            scheme: Scheme::Displacements,
            outer: 10,
            inner: 50,
            tolerance: 1e-6,
            truncation: 0.8,
            cut: Cut::Resisted,
            linear: Linear::Factored,
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
    /// Nothing: bodies stay where they are but for what joints, limits and grips ask of them. For posing by hand.
    Posing,
}

/// What keeps corrections from turning too far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Where nothing but the joints is at stake (assembling, posing), bodies resist turning as long as joints are far open; what still
    /// turns too far is cut body by body. In motion as [`Cut::EachBody`].
    #[default]
    Resisted,
    /// The rotation of the body that turns too far is cut, as published.
    EachBody,
    /// The whole correction is cut.
    Whole,
}

/// How the linear systems are solved; all find the same motion, as long as rows agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linear {
    /// Conjugate gradients led by a factorisation: a few iterations, whatever the character.
    #[default]
    Factored,
    /// Conjugate gradients alone, in the sense of least squares: many cheap iterations, which may be cut short.
    Plain,
    /// Biconjugate gradients on `J M⁻¹ Jᵀ`, as printed: the least motion where rows agree, anything where they contradict each other.
    Biconjugate,
}

/// Scratch of solver `assembly`.
pub(crate) struct AssemblyWork {
    correction: Correction,
    /// By body: where it would go alone.
    displacements: Vec<Twist>,
}

impl AssemblyWork {
    pub(crate) fn new(model: &Model) -> AssemblyWork {
        AssemblyWork { correction: Correction::new(model), displacements: vec![Twist::ZERO; model.bodies().len()] }
    }
}

/// What solver `assembly` does not take.
pub(crate) fn takes(model: &Model, input: &Input, settings: Assembly) -> Result<(), StepError> {
    let unsupported =
        |part: String, remedy: &'static str| Err(StepError::Unsupported { solver: "assembly", part, remedy });
    if matches!(settings.scheme, Scheme::Projected | Scheme::Baumgarte) {
        crate::solver::no_hard_limits("assembly", model)?;
        if contact::wanted(model, input) {
            return unsupported("contacts in its baselines".to_owned(), "use its scheme displacements, or no contacts");
        }
    }
    for (asked, joint) in input.joints.iter().zip(model.joints()) {
        let part = || format!("the prescribed motion of joint \"{}\"", joint.name);
        match (asked.drive, settings.scheme) {
            (Drive::Forces, _) | (Drive::Velocity(_), Scheme::Displacements) => {}
            (Drive::Velocity(_), _) => return unsupported(part(), "use its scheme displacements"),
            (Drive::Acceleration(_), _) => return unsupported(part(), "prescribe a velocity, or use solver reduced"),
        }
    }
    match input.grips.first() {
        Some(grip) if matches!(settings.scheme, Scheme::Projected | Scheme::Baumgarte) => {
            let name = model.bodies().get(grip.body.index()).map_or("?", |body| &body.name);
            unsupported(format!("the grip on body \"{name}\""), "use its scheme displacements or posing")
        }
        _ => Ok(()),
    }
}

/// One part `h` of a step, `after` seconds before the step's end. On failure the state is put back by the caller.
pub(crate) fn substep(
    model: &Model,
    input: &Input,
    settings: Assembly,
    part: (f64, f64),
    (contacts, law): (&[Contact], Option<&mut Law>),
    state: &mut State,
    (work, ledger): (&mut AssemblyWork, &mut Ledger),
) -> Result<Report, Failure> {
    work.correction.note_pulls(model, ledger.is_open);
    let outcome = match settings.scheme {
        Scheme::Displacements => displacements(model, (input, contacts, law), &settings, part, state, work)?,
        Scheme::Projected => baselines::projected(model, input, &settings, part.0, state, work)?,
        Scheme::Baumgarte => baselines::baumgarte(model, input, &settings, part.0, state, work),
        Scheme::Posing => posing(model, &input.grips, &settings, state, work),
    };
    if settings.scheme == Scheme::Displacements {
        work.correction.note(part.0, state, ledger);
    }
    state.follow_turns(model);
    let gap = measure::joint_gap(model, state);
    Ok(Report {
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        substeps: 1,
        solves: outcome.outer,
        corrections: outcome.outer,
        iterations: outcome.inner,
        residual_before: outcome.before,
        residual: outcome.after,
        limits_active: work.correction.inertia.limits_active,
        max_penetration: match settings.scheme {
            Scheme::Displacements => work.correction.penetration(state),
            _ => 0.0,
        },
        ..Report::default()
    })
}

/// Störmer's rule with the correction at the end of the part.
fn displacements(
    model: &Model,
    (input, contacts, law): (&Input, &[Contact], Option<&mut Law>),
    settings: &Assembly,
    (h, after): (f64, f64),
    state: &mut State,
    work: &mut AssemblyWork,
) -> Result<Outcome, Failure> {
    // The share of f that acts at the start: half, but all of it with flesh, which acts there alone. What f balances would otherwise be at rest in its place
    // and yet have a velocity at the end.
    let (early, late) = if law.is_some() { (h, 0.0) } else { (0.5 * h, 0.5 * h) };
    let AssemblyWork { correction, displacements } = work;
    correction.begin(state);
    correction.hold(model, input, state, (h, after));
    correction.touch(contacts, state, (h, after));
    correction.limits = LimitRows::Hard;
    let open = if correction.touches() { correction.measure_open(model, state) } else { 0.0 };
    correction.inertia.load(model, (input, law.as_deref()), state, h)?;

    // Δ = h v + ½ h² M⁻¹ f                                                            [Faure 1998, §4.2, corrected]
    for (i, (displacement, body)) in displacements.iter_mut().zip(&state.bodies).enumerate() {
        let omega = correction.inertia.spun(i, body, body.velocity.angular, 0.5 * h);
        let pushed = correction.inertia.acceleration(i, body) * early;
        *displacement = (Twist::new(body.velocity.linear, omega) + pushed) * h;
    }
    correction.inertia.yield_to_springs(state, displacements);
    let led = correction.lead(model, settings, state, displacements);
    for (i, (displacement, body)) in displacements.iter().zip(&mut state.bodies).enumerate() {
        correction.displace(i, body, *displacement);
    }
    let alone = correction.inertia.size(state, displacements);
    let mut outcome = correction.correct(model, settings, state);
    outcome.inner += led;
    let left = correction.left_open(state);
    correction.limits = LimitRows::None;

    // v = Δ/h + ½ h M⁻¹ f. Nothing that stands still makes Δᵀ M Δ larger by being touched; rows that come and go on the way may, and are held to it.
    let together = correction.inertia.size(state, &correction.moved);
    if correction.touches() && left > UNSOLVED.max(TWICE * open) {
        return Err(Failure::Unsettled(correction.fastest(state)));
    }
    let pushed = together > alone && correction.touches_only_what_stands() && !moves_by_hand(input);
    let share = if pushed { (alone / together).sqrt() } else { 1.0 };
    for (i, body) in state.bodies.iter_mut().enumerate() {
        let moved = correction.moved[i] * share;
        let omega = correction.inertia.spun(i, body, moved.angular / h, 0.5 * h);
        let pushed = correction.inertia.acceleration(i, body) * late;
        body.velocity = Twist::new(moved.linear / h, omega) + pushed;
    }
    if let Some(law) = law {
        for ((law, moved), turned) in law.moved.iter_mut().zip(&correction.moved).zip(&correction.turned) {
            *law = from_twist(Twist::new(moved.linear, *turned));
        }
    }
    correction.settle(model, state, h);
    Ok(outcome)
}

/// With contacts, a part whose joints or contacts are left open by more than this was not solved \[m, rad\]…
const UNSOLVED: f64 = 1e-3;
/// …unless joints were open by half as much at its start: what contradicts itself ends at the least squares.
const TWICE: f64 = 2.0;

/// Whether the input moves bodies whatever it takes.
fn moves_by_hand(input: &Input) -> bool {
    !input.grips.is_empty() || input.joints.iter().any(|joint| joint.drive != Drive::Forces)
}

/// Bodies stay where they are but for what joints, limits and grips ask of them; nothing moves on by itself.
fn posing(model: &Model, grips: &[Grip], settings: &Assembly, state: &mut State, work: &mut AssemblyWork) -> Outcome {
    let correction = &mut work.correction;
    (correction.limits, correction.patience) = (LimitRows::Passed, 0);
    let outcome = assembled(model, grips, settings, state, correction);
    (correction.limits, correction.patience) = (LimitRows::None, PATIENCE);
    for body in &mut state.bodies {
        body.velocity = Twist::ZERO;
    }
    outcome
}

/// How much bodies resist turning, see `Correction::wariness`. A body whose joints are open by E would turn by up to E/r in one
/// iteration; at `1/0.8` it turns by no more than the truncation. Bones that carry others need more: at 4 the two characters of
/// `crowd_of_two` are together in 5 iterations, at 2 in 10, without in no number of them.
const WARINESS: f64 = 4.0;

/// What the errors of grips count as beside those of joints, so that joints hardly open where a grip cannot be reached: by a thousandth of
/// what is left.
const GRIP: f64 = 0.03;

/// Joints and grips brought together. Where they contradict each other the joints win: they are closed once more without the grips.
fn assembled(
    model: &Model,
    grips: &[Grip],
    settings: &Assembly,
    state: &mut State,
    correction: &mut Correction,
) -> Outcome {
    // Iterations that are cut short do not get to rows that count less.
    let weight = if settings.linear == Linear::Factored { GRIP } else { 1.0 };
    correction.begin(state);
    correction.touch_nothing();
    correction.inertia.without_springs();
    correction.wariness = if settings.cut == Cut::Resisted { WARINESS } else { 0.0 };
    correction.hold_joints(model);
    correction.hold_grips(model, grips, state, 1.0, weight);
    correction.measure(model, state);
    let before = correction.errors();
    // A third of the budget is kept for the joints alone, when they come first.
    let kept = if grips.is_empty() || weight == 1.0 { 0 } else { settings.outer / 3 };
    let mut outcome = correction.correct(model, &Assembly { outer: settings.outer - kept, ..*settings }, state);
    if kept > 0 && outcome.after > settings.tolerance {
        correction.hold_joints(model);
        let rest = Assembly { outer: settings.outer - outcome.outer, ..*settings };
        let closed = correction.correct(model, &rest, state);
        outcome.outer += closed.outer;
        outcome.inner += closed.inner;
        correction.hold_grips(model, grips, state, 1.0, weight);
        outcome.after = correction.measure(model, state);
        // What the joints took back from the grips may be more than was gained: at a target out of reach nothing trembles.
        let after = correction.errors();
        if before.joints <= settings.tolerance && after.grips > before.grips {
            correction.go_to_start(state);
            outcome.after = correction.measure(model, state);
        }
    }
    correction.wariness = 0.0;
    outcome
}

/// What [`assemble`](crate::assemble) did.
#[derive(Clone, Debug, PartialEq)]
pub struct AssemblyReport {
    /// Largest error of a joint or grip before \[m, rad\].
    pub error_before: f64,
    /// Largest error of a joint or grip after \[m, rad\].
    pub error_after: f64,
    /// Linearisations.
    pub outer: u32,
    /// Iterations of the linear solver in all of them.
    pub inner: u32,
    /// By joint: how far it was open.
    pub before: Vec<Residual>,
    /// By joint: how far it is open.
    pub joints: Vec<Residual>,
    /// By grip: how far it is from its target.
    pub grips: Vec<Residual>,
}

/// See [`assemble`](crate::assemble).
pub(crate) fn assemble(
    model: &Model,
    grips: &[Grip],
    settings: &Assembly,
    state: &mut State,
    work: &mut AssemblyWork,
) -> AssemblyReport {
    let correction = &mut work.correction;
    let by_joint = |correction: &Correction| {
        let mut joints = vec![Residual::default(); model.joints().len()];
        for (held, residual) in correction.held.iter().zip(&correction.residuals) {
            if let Owner::Joint(id) = held.owner {
                joints[id.index()] = *residual;
            }
        }
        joints
    };
    correction.touch_nothing();
    correction.hold_joints(model);
    correction.measure(model, state);
    let before = by_joint(correction);
    let outcome = assembled(model, grips, settings, state, correction);
    state.follow_turns(model);
    state.forget_forces();
    AssemblyReport {
        error_before: outcome.before,
        error_after: outcome.after,
        outer: outcome.outer,
        inner: outcome.inner,
        before,
        joints: by_joint(correction),
        grips: correction.residuals[correction.residuals.len() - grips.len()..].to_vec(),
    }
}
