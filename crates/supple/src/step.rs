//! One step: the pipeline. Read this first.

use crate::contact::{self, Contact, ContactWork};
use crate::control::ControlReport;
use crate::flesh::loose::Loose;
use crate::flesh::together::{Law, Together};
use crate::flesh::{Flesh, Settled};
use crate::input::{FleshCoupling, Grip, Input, Target};
use crate::maths::Wrench;
use crate::model::{BodyId, JointId, Model, State};
use crate::servo;
use crate::skin::{self, Skin, SkinWork};
use crate::solver::assembly::{Assembly, AssemblyReport};
use crate::solver::{Solver, assembly, impulse, reduced, tree};
use crate::watch::{Notes, Stage, StageNanos, Watch};
use glam::DVec3;

/// What a step measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Largest distance by which a joint's points are apart at the end \[m\].
    pub max_joint_gap: f64,
    /// Largest sine of an angle by which a joint's constrained axes are off at the end.
    pub max_joint_tilt: f64,
    /// The joint with the largest gap.
    pub widest_joint: Option<JointId>,
    /// Parts into which the step was divided.
    pub substeps: u32,
    /// Factorisations done.
    pub factorisations: u32,
    /// Right-hand sides solved.
    pub solves: u32,
    /// Parts that failed and were done again in halves.
    pub fallbacks: u32,
    /// Halvings because a joint would turn too far in one part.
    pub rotation_halvings: u32,
    /// Parts done by the backward rule instead of the midpoint rule.
    pub backward_parts: u32,
    /// Parts done by the last resort.
    pub resorts: u32,
    /// Parts whose velocities were projected onto closed joints.
    pub projections: u32,
    /// The farthest a body was moved before a part to close joints that another method had left open \[m\].
    pub closed: f64,
    /// Corrections of velocities by solver `impulse`: systems solved, or rounds joint by joint.
    pub velocity_corrections: u32,
    /// Joint limits that acted.
    pub limits_active: u32,
    /// Contacts found, those still apart included; the most of any part.
    pub contacts: u32,
    /// Parts in which not all contacts settled to tolerance within the iterations allowed. Joints hold all the same.
    pub unconverged: u32,
    /// The deepest that anything was inside anything at the end of the last part \[m\].
    pub max_penetration: f64,
    /// Corrections of joints.
    pub corrections: u32,
    /// Iterations of a linear solver in all corrections.
    pub iterations: u32,
    /// Largest error that the corrections met, of joints, prescribed motions and grips \[m, rad\].
    pub residual_before: f64,
    /// Largest error that the corrections left, of joints, prescribed motions and grips \[m, rad\].
    pub residual: f64,
    /// Newton steps of flesh.
    pub flesh_newton: u32,
    /// Parts in which flesh was not solved to its tolerance.
    pub flesh_unsettled: u32,
    /// Elements of flesh outside the range of their material at the end.
    pub flesh_outside: u32,
    /// Vertices of the flesh's surface that touched something in the last part.
    pub flesh_touching: u32,
    /// What the control of the actuators did.
    pub control: ControlReport,
    /// The worst that made the step divide itself, and where; none when every part went well at once.
    pub trouble: Option<Trouble>,
}

/// Why a part of a step was divided, and the body it lay at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The body.
    pub body: BodyId,
    /// The reason.
    pub cause: Cause,
}

/// Why a part of a step was divided; a later one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The body would turn too far in one part. Usual in fast motion.
    Turning,
    /// The character would have gained energy from nothing; the body moved most.
    Energy,
    /// The equations were not solved in the passes allowed; the body was corrected most.
    Convergence,
    /// A number grew beyond all bounds, or a pivot vanished, at the body.
    Overflow,
    /// No part was small enough: the last resort went on, with the energy held down.
    Resort,
}

impl Trouble {
    /// The worse of two; of equals the first.
    fn worse(first: Option<Trouble>, later: Option<Trouble>) -> Option<Trouble> {
        match (first, later) {
            (Some(a), Some(b)) => Some(if b.cause > a.cause { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

impl Report {
    /// What the solution of flesh took in a part.
    pub(crate) fn note_flesh(&mut self, settled: Settled) {
        self.flesh_newton += settled.newton;
        self.factorisations += settled.factorisations;
        self.flesh_unsettled += u32::from(!settled.converged);
        self.flesh_outside = settled.outside;
        self.flesh_touching = settled.touching;
    }

    /// Notes a trouble, unless a worse one is noted.
    pub(crate) fn note(&mut self, body: BodyId, cause: Cause) {
        self.trouble = Trouble::worse(self.trouble, Some(Trouble { body, cause }));
    }

    /// Adds a later part of the same step: counts add up, gaps are those at the end.
    pub(crate) fn then(self, later: Report) -> Report {
        Report {
            substeps: self.substeps + later.substeps,
            factorisations: self.factorisations + later.factorisations,
            solves: self.solves + later.solves,
            fallbacks: self.fallbacks + later.fallbacks,
            rotation_halvings: self.rotation_halvings + later.rotation_halvings,
            backward_parts: self.backward_parts + later.backward_parts,
            resorts: self.resorts + later.resorts,
            projections: self.projections + later.projections,
            closed: self.closed.max(later.closed),
            velocity_corrections: self.velocity_corrections + later.velocity_corrections,
            limits_active: self.limits_active.max(later.limits_active),
            corrections: self.corrections + later.corrections,
            iterations: self.iterations + later.iterations,
            residual_before: self.residual_before.max(later.residual_before),
            flesh_newton: self.flesh_newton + later.flesh_newton,
            flesh_unsettled: self.flesh_unsettled + later.flesh_unsettled,
            trouble: Trouble::worse(self.trouble, later.trouble),
            contacts: self.contacts.max(later.contacts),
            unconverged: self.unconverged + later.unconverged,
            control: self.control.then(later.control),
            ..later
        }
    }
}

/// Why a step was not done. The state is as it was before.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StepError {
    /// The step's length cannot be used.
    #[error("the step's length is {dt} s: give a finite value above 0 [step/dt]")]
    Dt {
        /// \[s\]
        dt: f64,
    },
    /// A part of the input is not finite, negative where it must not be, or names something that does not exist.
    #[error("{part} of the input is wrong: {what} [step/input]")]
    Input {
        /// `gravity`, `drag 2`.
        part: String,
        /// What is wrong.
        what: String,
    },
    /// The state does not belong to the model.
    #[error("the state has {found} {what}, the model {expected}: make it with Model::start [step/mismatch]")]
    Mismatch {
        /// Bodies, joints or nodes.
        what: &'static str,
        /// In the state.
        found: usize,
        /// In the model.
        expected: usize,
    },
    /// The scratch does not belong to the model.
    #[error("the Work was made for another model: make it with Work::new [step/mismatch]")]
    Work,
    /// A number of the state cannot be gone on from.
    #[error("{part} of the state is wrong: {what} [step/state]")]
    State {
        /// `the orientation of body "arm"`, `the angle of joint "elbow"`.
        part: String,
        /// What is wrong, and what to do.
        what: &'static str,
    },
    /// The model has loops, which this solver does not solve.
    #[error(
        "joint \"{joint}\" closes a loop, which solver {solver} does not solve: use solver tree with its default scheme, impulse or assembly, or an anchor spring in its place [step/loops]"
    )]
    Loops {
        /// Name of the solver.
        solver: &'static str,
        /// Name of the first such joint.
        joint: String,
    },
    /// The solver cannot take a part of the model or the input.
    #[error("solver {solver} does not take {part}: {remedy} [step/unsupported]")]
    Unsupported {
        /// Name of the solver.
        solver: &'static str,
        /// `joint "elbow"`, `the grip on body "hand"`.
        part: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A body spins faster than even the shortest part of a step can follow.
    #[error("body \"{body}\" turns by more than a radian however short the step: use a smaller dt [step/turned]")]
    Turned {
        /// Its name.
        body: String,
    },
    /// The corrections of a joint did not converge, however short the step.
    #[error(
        "the corrections of joint \"{joint}\" do not converge: use a smaller dt or a looser tolerance [step/diverged]"
    )]
    Diverged {
        /// The joint that stayed farthest open.
        joint: String,
    },
    /// The state given was not finite, or the motion grew beyond all numbers.
    #[error("body \"{body}\" has a position or velocity that is not finite: {remedy} [step/not-finite]")]
    NotFinite {
        /// Name of the first such body.
        body: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The linear system has no solution at a joint.
    #[error(
        "joint \"{joint}\" is in a pose its constraints cannot be solved at: start closer to an assembled pose [step/factor]"
    )]
    Factor {
        /// The joint's name.
        joint: String,
    },
}

impl StepError {
    pub(crate) fn loops(solver: &'static str, model: &Model, id: JointId) -> StepError {
        StepError::Loops { solver, joint: model.joint(id).name.clone() }
    }

    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            StepError::Dt { .. } => "step/dt",
            StepError::Input { .. } => "step/input",
            StepError::Mismatch { .. } => "step/mismatch",
            StepError::Work => "step/mismatch",
            StepError::State { .. } => "step/state",
            StepError::Loops { .. } => "step/loops",
            StepError::Unsupported { .. } => "step/unsupported",
            StepError::Diverged { .. } => "step/diverged",
            StepError::Turned { .. } => "step/turned",
            StepError::NotFinite { .. } => "step/not-finite",
            StepError::Factor { .. } => "step/factor",
        }
    }
}

/// Scratch, made once from the model. Nothing in it affects a result: a fresh one gives the same step bit for bit.
pub struct Work {
    tree: tree::TreeWork,
    notes: Notes,
    contacts: ContactWork,
    // Made when the solver is first used.
    impulse: Option<Box<impulse::ImpulseWork>>,
    assembly: Option<Box<assembly::AssemblyWork>>,
    reduced: Option<Box<reduced::ReducedWork>>,
    loose: Option<Box<Loose>>,
    together: Option<Box<Together>>,
    skin: Option<Box<SkinWork>>,
    /// The state at the start of a step of several parts.
    saved: State,
    /// The state at the start of a part.
    part_start: State,
    /// The input of a part with what the integrals of servos add; `None` when no motor has an integral gain.
    governed: Option<Box<Input>>,
    /// The fingerprint of the model it was made for.
    model: u64,
}

impl Work {
    /// Scratch for this model.
    pub fn new(model: &Model) -> Work {
        Work {
            tree: tree::TreeWork::new(model),
            notes: Notes::default(),
            contacts: ContactWork::new(model),
            impulse: None,
            assembly: None,
            reduced: None,
            loose: None,
            together: None,
            skin: None,
            saved: model.start(),
            part_start: model.start(),
            governed: servo::any_integral(model).then(Box::default),
            model: model.fingerprint(),
        }
    }

    /// Asks for times or impulses beside the report. Steps give the same bits with any watch.
    pub fn watch(&mut self, watch: Watch) {
        self.notes.set(watch);
    }

    /// Nanoseconds of the last step by [`Stage`]; zeros without a clock to [`watch`](Work::watch) with.
    pub fn stage_nanos(&self) -> StageNanos {
        self.notes.nanos()
    }

    /// The impulse each joint exerted on its child in the last part of the last step, about the child's centre of mass
    /// \[N·s, N·m·s\]: constraint, spring, limit and motor together. Empty unless the solver or a [`Watch`] was told to keep them.
    pub fn joint_impulses(&self) -> &[Wrench] {
        &self.notes.impulses
    }

    /// Length of the part that [`joint_impulses`](Work::joint_impulses) are of \[s\]: divided by it, they are mean forces and torques.
    pub fn impulse_time(&self) -> f64 {
        self.notes.part
    }

    /// The vertices of the skin that something pressed on in the last part of the last step, and the forces \[N\].
    pub fn skin_pressures(&self) -> &[(u32, DVec3)] {
        self.skin.as_ref().map_or(&[], |skin| &skin.pressures)
    }

    /// By body: whether the triangles of its skin were looked at for contacts in the last search, or pruned.
    pub fn skin_looked(&self) -> &[bool] {
        self.skin.as_ref().map_or(&[], |skin| &skin.search.looked)
    }

    /// Iterations of conjugate gradients in the last solution of the skin, when it is solved so.
    pub fn skin_iterations(&self) -> usize {
        self.skin.as_ref().map_or(0, |skin| skin.gradient_iterations())
    }

    /// The contacts of the last part of the last step, as found at its start.
    pub fn contacts(&self) -> &[Contact] {
        self.contacts.contacts()
    }
}

/// Why a part of a step failed; the step tries again in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A number overflowed at this body.
    NotFinite(BodyId),
    /// This joint's pivot could not be inverted.
    Factor(JointId),
    /// This joint stayed farthest open when the corrections were given up.
    Diverged(JointId),
    /// This body would turn too far.
    Turned(BodyId),
    /// Energy would come from nothing; this body moved most.
    Energy(BodyId),
    /// Contacts were far from settled when passes were used up, the one on this body farthest.
    Unsettled(BodyId),
}

impl Failure {
    /// Where it failed, and why.
    fn trouble(self, model: &Model) -> Trouble {
        let (body, cause) = match self {
            Failure::NotFinite(body) => (body, Cause::Overflow),
            Failure::Factor(joint) => (model.joint(joint).child, Cause::Overflow),
            Failure::Diverged(joint) => (model.joint(joint).child, Cause::Convergence),
            Failure::Turned(body) => (body, Cause::Turning),
            Failure::Energy(body) => (body, Cause::Energy),
            Failure::Unsettled(body) => (body, Cause::Convergence),
        };
        Trouble { body, cause }
    }

    fn describe(self, model: &Model) -> StepError {
        match self {
            Failure::NotFinite(body) | Failure::Energy(body) | Failure::Unsettled(body) => StepError::NotFinite {
                body: model.body(body).name.clone(),
                remedy: "use a smaller dt or softer springs",
            },
            Failure::Factor(joint) => StepError::Factor { joint: model.joint(joint).name.clone() },
            Failure::Turned(body) => StepError::Turned { body: model.body(body).name.clone() },
            Failure::Diverged(joint) => StepError::Diverged { joint: model.joint(joint).name.clone() },
        }
    }
}

/// More parts than this are a slip of the pen.
const MAX_SUBSTEPS: u32 = 10_000;
/// So are more refinements of skin.
const MAX_REFINEMENTS: u32 = 100;
/// How often a failed part may be halved.
pub(crate) const MAX_HALVINGS: u32 = 6;

/// Advances `state` by `input.dt`.
///
/// On error the state is as it was. The same model, state and input give the same bits.
pub fn step(model: &Model, input: &Input, state: &mut State, work: &mut Work) -> Result<Report, StepError> {
    work.notes.start();
    check(model, input, state)?;
    if work.model != model.fingerprint() {
        return Err(StepError::Work);
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
                match halves(model, input, Span { h, after, halvings }, failure, state, work) {
                    Ok(done) => report = report.then(done),
                    Err(failure) => {
                        state.clone_from(&work.saved);
                        return Err(failure.describe(model));
                    }
                }
            }
        }
    }
    state.time += input.dt;
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
        let done = match substep(model, input, half, state, work) {
            Ok(done) => done,
            Err(failure) => halves(model, input, half, failure, state, work)?,
        };
        report = report.then(done);
    }
    Ok(report)
}

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

/// Advances many characters of one model, each with its own state, four side by side in the lanes of the processor.
///
/// `inputs` has one entry for all or one for each. Characters whose inputs differ in more than numbers (another `dt`, a drag on
/// another body), those left over from fours, and a four of which one needs halving go one by one: the result is that
/// of [`step()`] on each, bit for bit.
/// The report has the largest gaps and counts of all.
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
        if one.max_joint_gap > report.max_joint_gap || k == 0 {
            (report.max_joint_gap, report.widest_joint) = (one.max_joint_gap, one.widest_joint);
        }
        report.max_joint_tilt = report.max_joint_tilt.max(one.max_joint_tilt);
        report.substeps = report.substeps.max(one.substeps);
        report.factorisations = report.factorisations.max(one.factorisations);
        report.solves = report.solves.max(one.solves);
        report.fallbacks += one.fallbacks;
        report.rotation_halvings += one.rotation_halvings;
        report.backward_parts += one.backward_parts;
        report.resorts += one.resorts;
        report.projections += one.projections;
        report.closed = report.closed.max(one.closed);
        report.velocity_corrections = report.velocity_corrections.max(one.velocity_corrections);
        report.limits_active = report.limits_active.max(one.limits_active);
        report.corrections = report.corrections.max(one.corrections);
        report.iterations = report.iterations.max(one.iterations);
        report.residual_before = report.residual_before.max(one.residual_before);
        report.residual = report.residual.max(one.residual);
        report.trouble = Trouble::worse(report.trouble, one.trouble);
        report.contacts = report.contacts.max(one.contacts);
        report.unconverged = report.unconverged.max(one.unconverged);
        report.max_penetration = report.max_penetration.max(one.max_penetration);
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
        || work.governed.is_some()
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

/// One part of a step, with the integrals of servos where there are any. On failure the state is that of the part's start.
fn substep(model: &Model, input: &Input, span: Span, state: &mut State, work: &mut Work) -> Result<Report, Failure> {
    let Some(mut governed) = work.governed.take() else { return solve(model, input, span, state, work) };
    servo::govern(model, input, state, &mut governed);
    let done = solve(model, &governed, span, state, work);
    work.governed = Some(governed);
    if done.is_ok() {
        servo::advance(model, input, span.h, state);
    }
    done
}

/// One part of a step by the solver asked for.
fn solve(model: &Model, input: &Input, span: Span, state: &mut State, work: &mut Work) -> Result<Report, Failure> {
    let Some(flesh) = model.flesh() else { return solve_bodies(model, input, span, None, state, work) };
    if input.flesh == FleshCoupling::Together {
        return match input.solver {
            Solver::Tree(_) | Solver::Reduced(_) => solve_bodies(model, input, span, None, state, work),
            Solver::Impulse(_) | Solver::Assembly(_) => solve_together((model, flesh), input, span, state, work),
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
    work.notes.impulses.clear();
    work.notes.part = span.h;
    let contacts = contact::detect(model, input, state, part, &mut work.contacts);
    if let Some(skin) = model.skin() {
        let own = work.skin.get_or_insert_with(|| Box::new(SkinWork::new(model, skin)));
        work.part_start.clone_from(state);
        let done = skin::substep((model, skin), input, contacts, span, state, own, &mut work.notes);
        match done {
            Ok(_) => state.last_dt = span.h,
            Err(_) => state.clone_from(&work.part_start),
        }
        return done;
    }
    let done = match input.solver {
        // It writes only what succeeded, and the joints' memory itself.
        Solver::Tree(settings) => {
            tree::substep(model, input, contacts, settings, span, state, &mut work.tree, &mut work.notes)
        }
        Solver::Impulse(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.impulse.get_or_insert_with(|| Box::new(impulse::ImpulseWork::new(model)));
            impulse::substep(model, input, settings, part, (contacts, law), state, work)
        }),
        Solver::Assembly(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.assembly.get_or_insert_with(|| Box::new(assembly::AssemblyWork::new(model)));
            assembly::substep(model, input, settings, part, (contacts, law), state, work)
        }),
        Solver::Reduced(settings) => restoring(state, &mut work.part_start, |state| {
            let work = work.reduced.get_or_insert_with(|| Box::new(reduced::ReducedWork::new(model)));
            reduced::substep(model, input, settings, part, contacts, state, work)
        }),
    };
    work.notes.mark(Stage::Solve); // what a solver did not divide
    let report = done?;
    state.last_dt = span.h;
    Ok(Report { contacts: work.contacts.contacts().len() as u32, ..report })
}

/// Runs a part that may fail halfway: then the state is put back. Otherwise it must be finite; what only solver
/// `tree` remembers is forgotten.
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
    match done {
        Ok(_) => {
            state.forget();
        }
        Err(_) => state.clone_from(start),
    }
    done
}

/// Whether a state is finite with unit orientations, without a branch for each number: anything not finite times zero is not a number.
/// When it says no, [`check_state`] finds the place.
fn looks_sound(state: &State) -> bool {
    let (mut poison, mut off) = (state.time + state.last_dt, 0.0f64);
    for b in &state.bodies {
        let sum = b.position + b.velocity.linear + b.velocity.angular;
        poison += sum.x + sum.y + sum.z;
        poison *= 0.0;
        off = off.max((b.orientation.length_squared() - 1.0).abs());
        poison += b.orientation.length_squared() * 0.0;
    }
    for j in &state.joints {
        let sum = j.turn + j.force;
        poison += (j.angle + j.integral + sum.x + sum.y + sum.z) * 0.0;
    }
    for c in &state.contacts {
        let sum = c.first + c.second;
        poison += (sum.x + sum.y + sum.z) * 0.0;
    }
    for node in &state.nodes {
        let sum = node.position + node.velocity;
        poison += (sum.x + sum.y + sum.z) * 0.0;
    }
    poison * 0.0 == 0.0 && off < 1e-3
}

fn target_is_sound(t: &Target) -> bool {
    let sum = t.pose.translation + t.velocity.linear + t.velocity.angular;
    (sum.x + sum.y + sum.z) * 0.0 == 0.0 && (t.pose.rotation.length_squared() - 1.0).abs() < 2e-3
}

/// Everything that must hold before a step.
fn check(model: &Model, input: &Input, state: &State) -> Result<(), StepError> {
    if !(input.dt.is_finite() && input.dt > 0.0) {
        return Err(StepError::Dt { dt: input.dt });
    }
    check_sizes(model, state)?;
    input.solver.takes(model, input)?;
    check_motion(model, state)?;
    check_input(model, input)
}

fn check_sizes(model: &Model, state: &State) -> Result<(), StepError> {
    for (what, found, expected) in [
        ("bodies", state.bodies.len(), model.bodies().len()),
        ("joints", state.joints.len(), model.joints().len()),
        ("nodes", state.nodes.len(), model.nodes()),
    ] {
        if found != expected {
            return Err(StepError::Mismatch { what, found, expected });
        }
    }
    Ok(())
}

fn check_motion(model: &Model, state: &State) -> Result<(), StepError> {
    if looks_sound(state) {
        return Ok(());
    }
    if let Some(i) = state.bodies.iter().position(|b| !b.is_finite()) {
        return Err(StepError::NotFinite { body: model.bodies()[i].name.clone(), remedy: "give a finite start" });
    }
    check_state(model, state)
}

/// What the motion of bodies does not tell: orientations that are none, angles, times.
fn check_state(model: &Model, state: &State) -> Result<(), StepError> {
    let wrong = |part: String, what: &'static str| Err(StepError::State { part, what });
    // As far from a unit as the builder takes one.
    if let Some(i) = state.bodies.iter().position(|b| (b.orientation.length_squared() - 1.0).abs() > 2e-3) {
        let part = format!("the orientation of body \"{}\"", model.bodies()[i].name);
        return wrong(part, "it is not a unit quaternion: normalise it");
    }
    if let Some(i) = state.joints.iter().position(|j| !j.angle.is_finite()) {
        let part = format!("the angle of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: call State::recount_turns");
    }
    if let Some(i) = state.joints.iter().position(|j| !(j.turn.is_finite() && j.force.is_finite())) {
        let part = format!("the memory of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: call State::recount_turns");
    }
    if let Some(i) = state.joints.iter().position(|j| !j.integral.is_finite()) {
        let part = format!("the integral of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: give 0 or what a step left there");
    }
    if state.contacts.iter().any(|c| !(c.first.is_finite() && c.second.is_finite())) {
        return wrong("the memory of a contact".to_owned(), "it is not finite: clear the list");
    }
    if let Some(i) = state.nodes.iter().position(|node| !node.is_finite()) {
        return wrong(format!("node {i} of the flesh"), "it is not finite: give a finite start");
    }
    for (part, number) in [("the time", state.time), ("the length of the last step", state.last_dt)] {
        if !number.is_finite() {
            return wrong(part.to_owned(), "it is not finite: give 0 or what a step left there");
        }
    }
    Ok(())
}

fn check_input(model: &Model, input: &Input) -> Result<(), StepError> {
    let wrong = |part: String, what: &str| Err(StepError::Input { part, what: what.to_owned() });
    let scale = |x: f64| x.is_finite() && x >= 0.0;
    if input.substeps > MAX_SUBSTEPS {
        return wrong("substeps".into(), "there are more than 10,000");
    }
    if !input.gravity.is_finite() {
        return wrong("gravity".into(), "it is not finite");
    }
    if !(scale(input.stiffness_scale) && scale(input.damping_scale)) {
        return wrong("a scale".into(), "it is negative or not finite");
    }
    if !(input.joints.is_empty() || input.joints.len() == model.joints().len()) {
        return wrong("joints".into(), "its length is neither 0 nor the number of joints");
    }
    if input.targets.len() > model.trackers().len() {
        return wrong("targets".into(), "there are more targets than trackers");
    }
    for (i, joint) in input.joints.iter().enumerate() {
        let name = || format!("joint \"{}\"", model.joints()[i].name);
        if !(scale(joint.stiffness_scale) && scale(joint.damping_scale) && joint.torque.is_finite()) {
            return wrong(name(), "a scale or torque is negative or not finite");
        }
        if let Some(servo) = joint.servo
            && !servo.is_finite()
        {
            return wrong(name(), "its servo target is not finite");
        }
        if !joint.drive.is_finite() {
            return wrong(name(), "its prescribed motion is not finite");
        }
    }
    for (i, target) in input.targets.iter().enumerate() {
        if let Some(t) = target
            && !target_is_sound(t)
        {
            return wrong(
                format!("the target of tracker \"{}\"", model.trackers()[i].name),
                "it is not finite or its rotation is not a unit quaternion",
            );
        }
    }
    if input.obstacles.len() > model.obstacles().len() {
        return wrong("obstacles".into(), "there are more entries than obstacles");
    }
    for (i, target) in input.obstacles.iter().enumerate() {
        if let Some(t) = target
            && !target_is_sound(t)
        {
            return wrong(
                format!("the motion of obstacle \"{}\"", model.obstacles()[i].name),
                "it is not finite or its rotation is not a unit quaternion",
            );
        }
    }
    for (i, drag) in input.drags.iter().enumerate() {
        if drag.body.index() >= model.bodies().len() {
            return wrong(format!("drag {i}"), "its body does not exist");
        }
        let finite = drag.point.is_finite() && drag.target.is_finite() && drag.target_velocity.is_finite();
        if !(finite && scale(drag.stiffness) && scale(drag.damping)) {
            return wrong(format!("drag {i}"), "a number is negative or not finite");
        }
    }
    check_grips(model, &input.grips)?;
    input.control.check(model)?;
    if input.skin.refinements > MAX_REFINEMENTS {
        return wrong("skin".into(), "there are more than 100 refinements");
    }
    if let Some(i) = input.balls.iter().position(|ball| !ball.is_sound()) {
        return wrong(format!("ball {i}"), "its radius is not above 0 or a number is not finite");
    }
    for (i, grab) in input.grabs.iter().enumerate() {
        if grab.vertex as usize >= model.skin().map_or(0, Skin::nodes) {
            return wrong(format!("grab {i}"), "the skin has no such vertex");
        }
        if !(grab.target.is_finite() && scale(grab.stiffness) && scale(grab.damping)) {
            return wrong(format!("grab {i}"), "a number is negative or not finite");
        }
    }
    for (i, (body, wrench)) in input.wrenches.iter().enumerate() {
        if body.index() >= model.bodies().len() {
            return wrong(format!("wrench {i}"), "its body does not exist");
        }
        if !wrench.is_finite() {
            return wrong(format!("wrench {i}"), "it is not finite");
        }
    }
    Ok(())
}

fn check_grips(model: &Model, grips: &[Grip]) -> Result<(), StepError> {
    let wrong = |i: usize, what: &str| Err(StepError::Input { part: format!("grip {i}"), what: what.to_owned() });
    for (i, grip) in grips.iter().enumerate() {
        if grip.body.index() >= model.bodies().len() {
            return wrong(i, "its body does not exist");
        }
        if !grip.is_sound() {
            return wrong(i, "a number is not finite or its rotation is not a unit quaternion");
        }
    }
    Ok(())
}
