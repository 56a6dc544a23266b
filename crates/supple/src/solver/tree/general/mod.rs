//! The step of solver `tree` for whatever is more than a tree: loops, couplings, grips, contacts, hard limits and flesh.
//!
//! With p the momenta, v the velocity with which the bodies drift, f the impulses of contacts and hard limits, J0 and J1 the rows of the joints at both ends
//! and J the rows along which they act:
//!
//! ```text
//! p(v)  = p0 + S(v) + Jᵀ λ + f            q1 = q0 ⊕ h v,   C(q1) = 0                                         (1)
//! p1    = p(v) + S'(v) + Jᵀ λ + J1ᵀ μ + f'    J1 v1 = 0                                                      (2)
//! ```
//! On a tree J is the mean of J0 and J1, and the same impulse acts in both halves: joints act by the midpoint rule, as where nothing touches, and any tension is
//! stable. Where joints close loops J is J0 and its impulse acts in (1) alone [RATTLE, Andersen 1983], until tension asks for the mean.
//! S and S' are the impulses of forces. A force that h resolves acts by half its impulse of the midpoint in each, so that its energy is kept; one
//! that h does not resolve acts by the backward rule in each, so that it settles, what it holds up is at rest in (1) and in (2), and what follows a moving
//! target does not lag:
//!
//! ```text
//! resolved      S = S' = ½h (W − ½h K v − D v)
//! not resolved  S = ½h (W − h K v − D v),   S' = ½h (W − h K v1 − D v1)                                       (3)
//! ```
//! p(v) has the inertia of the pose in the middle of the drift, which makes the angular momentum of a free body that of its true motion to
//! second order, and exactly constant. (1) is solved by Newton's method with one factorisation, and with the derivative where it has come to when that
//! is slow; (2) is linear. Both matrices are
//! `[A Jᵀ; J −μ]` over bodies, joints and grips, factored by [`Ldl`](crate::maths::sparse::Ldl): on a tree at the cost of the tree, with loops
//! near it. Redundant rows (a planar four-bar in space) make `J A⁻¹ Jᵀ` singular; μ is there for them, and what it changes is taken
//! back by the passes of Newton's method, since their residual is that of the system without it.

mod contacts;
mod discs;
mod newton;
mod settle;
mod system;
mod touch;

use crate::contact::Contact;
use crate::flesh::couple::Coupled;
use crate::flesh::implicit::Nodes;
use crate::forces::{self, Derivatives, Stop};
use crate::input::{FleshCoupling, Input};
use crate::loads::Ledger;
use crate::maths::block::{Vector, add_scaled, from_twist, from_wrench, to_twist};
use crate::maths::lanes::Instructions;
use crate::maths::rotation::{exp, turned_inertia};
use crate::maths::{Pose, Twist, Wrench};
use crate::measure;
use crate::model::{Body, BodyId, BodyState, JointId, Model, State};
use crate::solver::Mode;
use crate::step::{Failure, MAX_HALVINGS, Report, Span, StepRule, stay};
use contacts::Met;
use glam::DVec3;
use system::{Accuracy, Along, Factors, Kept, Middle, Part, Regular, System};
use touch::Roll;

/// Scratch of the general step.
pub(super) struct GeneralWork {
    system: System,
    /// Forces of the step with their weights.
    forces: Vec<Kept>,
    /// Impulses of resolved forces, gravity and wrenches: S' of (2), by body.
    second: Vec<Wrench>,
    /// Momenta at the start, and those of the drift.
    momenta: Vec<Vector>,
    /// Poses at the end of the drift.
    poses: Vec<Pose>,
    /// What touches were at the start and gave in (1), by touch.
    met: Vec<Met>,
    /// Rolling resistance, the last of the touches.
    rolls: Vec<Roll>,
    /// By which bodies are pushed out of what they are too deep in, as a velocity over the part.
    push: Vec<Vector>,
    /// The state with the poses of the drift, for limits.
    trial: State,
    /// The state of the start with the velocities of the drift.
    ahead: State,
    /// Whether any force has a tangent that depends on where the drift leads: soft limits and motors.
    bends: bool,
    /// By joint, what its limits and motors do other than their tangents in (1).
    bent: Vec<Wrench>,
    /// Where joints act in (1).
    along: Along,
    /// Flesh around the bodies, and momenta with what it gives.
    flesh: Option<Box<Coupled>>,
    momenta_with_flesh: Vec<Vector>,
    /// Velocities before a step of bones and flesh, and the step.
    before: Vec<Vector>,
    step: Vec<Vector>,
    /// The state to go back to.
    start: State,
}

impl GeneralWork {
    pub(super) fn new(model: &Model) -> GeneralWork {
        let bodies = model.bodies().len();
        GeneralWork {
            system: System::new(model),
            forces: Vec::new(),
            second: vec![Wrench::ZERO; bodies],
            momenta: vec![[0.0; 6]; bodies],
            poses: vec![Pose::IDENTITY; bodies],
            met: Vec::new(),
            rolls: Vec::new(),
            push: vec![[0.0; 6]; bodies],
            trial: model.start(),
            ahead: model.start(),
            bent: vec![Wrench::ZERO; model.joints().len()],
            bends: model.joints().iter().any(|joint| joint.motor.is_some() || joint.limits.has_law()),
            along: Along::Start,
            flesh: model.flesh().map(|flesh| Box::new(Coupled::new(model, flesh))),
            momenta_with_flesh: vec![[0.0; 6]; bodies],
            before: vec![[0.0; 6]; bodies],
            step: Vec::with_capacity(bodies),
            start: model.start(),
        }
    }
}

/// Newton ends when joints are closed to this share of the model's size \[m, and rad\].
const TOLERANCE: f64 = 1e-9;
/// Passes before Newton has failed.
const PASSES: u32 = 25;
/// A first correction of remembered forces, as a turn or a share of the model's size, beyond which they are no use.
const LARGEST_FROM_MEMORY: f64 = 0.2;
/// Times that the derivative under tension is factored: it follows the first corrections, which are large.
const TENSE_PASSES: u32 = 2;
/// A correction that is more than this share of the last one, of the same factors, asks for the derivative at the present drift: rows that turn under tension, along a
/// long chain, make the one of the start useless.
const SLOW: f64 = 0.2;
/// What may be missing of momenta, as the share of the model's size that it moves a body by. It is given to the bodies afterwards, so
/// that none is lost.
const MISSING: f64 = 1e-8;
/// The same with flesh.
const MISSING_WITH_FLESH: f64 = 1e-7;
/// What may be missing with flesh when passes are used up.
const UNSETTLED: f64 = 1e-2;
/// Times that a drift is found, at most, until limits and motors act at its end as it took them to.
const LOOKS: u32 = 4;
/// Tangents are the same when what they differ by moves a body by no more in a part, as a share of the model's size or an angle.
const SAME_TANGENT: f64 = 1e-6;
/// Halvings of a step of bones and flesh.
const SHORTER: u32 = 12;
/// Largest rotation of a body in a part \[rad\].
const LARGEST_TURN: f64 = 1.0;

/// Growth of energy in a part that is still truncation, as a share of the energy at stake.
const ENERGY_SLACK: f64 = 2e-4;

/// Halvings that may be spent on contacts that are far from settled.
const HALVINGS_FOR_CONTACTS: u32 = 1;
/// Halvings that may be spent on energy that comes of contacts that are not settled, and of limits that the drift would find reached and left by turns.
const HALVINGS_FOR_UNSETTLED: u32 = 2;
/// Halvings that may be spent on a loss of energy: a motion that opens joints at its start must lose some.
const HALVINGS_FOR_LOSS: u32 = 3;

/// One part of a step. On failure the state is as it was; a part that may not be halved any more does not fail but for numbers that
/// are none.
pub(super) fn substep(
    model: &Model,
    input: &Input,
    (contacts, stops, held): (&[Contact], &[Stop], &[bool]),
    (mode, instructions, span): (Mode, Instructions, Span),
    reach: f64,
    state: &mut State,
    (work, ledger): (&mut GeneralWork, &mut Ledger),
) -> Result<Report, Failure> {
    work.system.use_instructions(instructions);
    work.start.clone_from(state);
    let part = Part {
        model,
        input,
        h: span.h,
        after: span.after,
        reach,
        contacts,
        stops,
        held,
        accuracy: Accuracy::of(mode),
        must_settle: span.halvings > MAX_HALVINGS - HALVINGS_FOR_CONTACTS,
    };
    // Flesh that is coupled loosely is no matter of the bodies.
    let aside = if input.flesh == FleshCoupling::Loose { work.flesh.take() } else { None };
    let done = work.advance(&part, span.halvings, state, ledger);
    if aside.is_some() {
        work.flesh = aside;
    }
    if let Err(failure) = done {
        state.clone_from(&work.start);
        if span.halvings == 0 {
            ledger.forget();
            return Ok(stay(model, failure, state));
        }
    }
    done
}

impl GeneralWork {
    fn advance(
        &mut self,
        part: &Part<'_>,
        halvings: u32,
        state: &mut State,
        ledger: &mut Ledger,
    ) -> Result<Report, Failure> {
        let model = part.model;
        let mut report = Report { substeps: 1, ..Report::default() };
        self.system.fit(part);
        let touching = !(part.contacts.is_empty() && part.stops.is_empty());
        report.limits_active = self.weigh_forces(part, state);
        let kinetic = measure::kinetic_energy(model, state);

        // (1): the drift
        if touching {
            self.meet(part, state, &mut report)?;
            self.recall_touches(part, &state.contacts);
        }
        let middle = if touching { Middle::Foretold } else { Middle::OfDrift };
        self.along = self.begin_along(model);
        for look in 1..=LOOKS {
            self.first_impulses(part, state);
            self.system.assemble_first(part, middle, state, &self.forces);
            self.begin_flesh(part, state);
            if self.along == Along::Mean {
                self.system.begin_mean(model);
            }
            if touching {
                let done = self.drift_touching(part, state, &mut report);
                if done.is_err() && !state.contacts.is_empty() && self.flesh.is_none() {
                    self.begin_cold(part, state);
                    self.drift_touching(part, state, &mut report)?;
                } else {
                    done?;
                }
            } else {
                self.drift(part, state, &mut report)?;
            }
            if !self.bends || self.are_tangents_true(part, state) {
                break;
            }
            if look < LOOKS {
                report.limits_active = self.weigh_forces_ahead(part, state);
            } else {
                report.unconverged = 1;
            }
        }
        self.momenta_of_drift(model, middle);
        self.note_drift(part, touching, ledger);

        // (2): the velocities at its end
        self.second_impulses(part);
        match self.along {
            Along::Start => state.joints.iter_mut().for_each(|joint| joint.force = DVec3::ZERO),
            Along::Mean => self.system.remember(part.h, state),
        }
        for (body, pose) in state.bodies.iter_mut().zip(&self.poses) {
            (body.position, body.orientation) = (pose.translation, pose.rotation);
        }
        self.system.assemble_second(part, state, &self.forces, Regular::AsBefore);
        if self.begin_along(model) == Along::Mean && !touching {
            report.projections += u32::from(self.system.keep_opening(part, &self.start, state));
        }
        if touching {
            self.velocities_touching(part, state, &mut report)?;
        } else {
            report.factorisations += 1;
            report.solves += self.system.velocities(model, &self.momenta, &self.second)?;
        }
        for (body, v) in state.bodies.iter_mut().zip(self.system.solution()) {
            body.velocity = to_twist(v);
        }
        self.note_velocities(part, touching, ledger);
        self.check_energy(part, halvings, kinetic, state)?;
        if report.unconverged > 0 && halvings > MAX_HALVINGS - HALVINGS_FOR_UNSETTLED {
            self.check_unsettled(part, state)?;
        }
        if let (Some(coupled), Some(flesh)) = (&self.flesh, model.flesh()) {
            coupled.implicit.commit(flesh, state);
            report.note_flesh(coupled.implicit.settled);
        }
        if touching {
            self.remember(part, state, &mut report);
        } else {
            state.contacts.clear();
        }

        state.follow_turns(model);
        let gap = measure::joint_gap(model, state);
        (report.max_joint_gap, report.max_joint_tilt, report.widest_joint) = (gap.distance, gap.tilt, gap.joint);
        match state.bodies.iter().position(|b| !b.is_finite()) {
            None => Ok(report),
            Some(i) => Err(Failure::NotFinite(BodyId(i as u32))),
        }
    }

    /// Where joints act in (1) at first. Rows of loops that say the same twice leave a part of the impulses undetermined; along rows that move with the drift it would be found anew in every
    /// pass (row of 25 four-bars: 9.8 solves a step in place of 4.8). Flesh acts in (1) alone.
    fn begin_along(&self, model: &Model) -> Along {
        let is_tree = model.topology().is_tree() && model.couplings().is_empty();
        if is_tree && self.flesh.is_none() { Along::Mean } else { Along::Start }
    }

    /// Whether limits and motors act at the end of the drift as their tangents in (1) have it. Tangents are taken where
    /// the velocities of the start lead; a finger that is pressed against its limit would find it reached in one step
    /// and left in the next, for ever.
    fn are_tangents_true(&mut self, part: &Part<'_>, state: &State) -> bool {
        self.look_ahead(state);
        let GeneralWork { system, forces, ahead, bent, flesh, .. } = self;
        let (h, is_whole) = (part.h, flesh.is_some());
        bent.fill(Wrench::ZERO);
        for kept in forces.iter() {
            if let Some(id) = kept.stop_or_motor() {
                bent[id.index()] += -kept.first(&system.v, h)[0];
            }
        }
        forces::collect(part.model, part.input, ahead, h, Derivatives::Symmetric, |acting| {
            if part.is_held(acting.a.index()) {
                return;
            }
            let now = Kept::new(part, state, &acting, is_whole);
            if let Some(id) = now.stop_or_motor() {
                bent[id.index()] += now.first(&system.v, h)[0];
            }
        });
        let would_move = |body: BodyId, off: &Wrench| system.moved_by(part, state, body, off);
        part.model.joints().iter().zip(bent.iter()).all(|(joint, off)| {
            let most = joint.parent.map_or(0.0, |b| would_move(b, off)).max(would_move(joint.child, off));
            most <= SAME_TANGENT
        })
    }

    /// Keeps forces anew, with the tangents of limits and motors where the drift leads.
    fn weigh_forces_ahead(&mut self, part: &Part<'_>, state: &State) -> u32 {
        self.look_ahead(state);
        weigh(part, &self.ahead, self.flesh.is_some(), &mut self.forces)
    }

    /// Makes `ahead` the state of the start with the velocities of the drift.
    fn look_ahead(&mut self, state: &State) {
        self.ahead.clone_from(state);
        for (body, v) in self.ahead.bodies.iter_mut().zip(&self.system.v) {
            body.velocity = to_twist(v);
        }
    }

    /// Keeps every force with its weight (3); returns how many limits act.
    fn weigh_forces(&mut self, part: &Part<'_>, state: &State) -> u32 {
        weigh(part, state, self.flesh.is_some(), &mut self.forces)
    }

    /// The share of gravity and given wrenches that acts in (1): half, but all of it with flesh, which acts there alone. What they balance
    /// would otherwise be at rest in its place and yet have a velocity at the end.
    fn steady_share(&self) -> f64 {
        if self.flesh.is_some() { 1.0 } else { 0.5 }
    }

    /// Momenta of the start with the part of S that does not depend on v.
    fn first_impulses(&mut self, part: &Part<'_>, state: &State) {
        let &Part { model, input, h, .. } = part;
        let share = self.steady_share() * h;
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            if part.is_held(i) {
                self.momenta[i] = [0.0; 6];
                continue;
            }
            let linear = s.velocity.linear * body.mass + input.gravity * (share * body.mass);
            let angular = turned_inertia(s.orientation, body.inertia) * s.velocity.angular;
            self.momenta[i] = from_twist(Twist::new(linear, angular));
        }
        for (body, wrench) in part.wrenches() {
            add_scaled(&mut self.momenta[body.index()], share, &from_wrench(*wrench));
        }
        for kept in &self.forces {
            let [on_a, on_b] = kept.force.wrenches();
            let share = kept.weight.share() * h;
            add_scaled(&mut self.momenta[kept.a.index()], share, &from_wrench(on_a));
            if let Some(b) = kept.b {
                add_scaled(&mut self.momenta[b.index()], share, &from_wrench(on_b));
            }
        }
    }

    /// Solves (1). Afterwards `poses` are those of the end.
    fn drift(&mut self, part: &Part<'_>, state: &State, report: &mut Report) -> Result<(), Failure> {
        let &Part { model, h, .. } = part;
        let mut last = self.begin_from_memory(part, state, report)?;
        let mut tense_passes = u32::from(last.is_some());
        if last.is_none() {
            self.begin_at_start(model, state, report)?;
        }
        let enough = if self.flesh.is_some() { MISSING_WITH_FLESH } else { MISSING };
        let (mut factors, mut slow) = (Factors::Symmetric, 0);
        let (mut is_slow, mut is_fresh) = (false, false);
        for pass in 0..=PASSES {
            // Where v leads, and what is missing in (1)
            place(state, &self.system.v, None, h, &mut self.poses)?;
            let is_tense = pass > 0 && self.flesh.is_none() && self.system.is_tense(part, state);
            if pass == 1 && is_tense && self.along == Along::Start {
                self.act_along_mean(model);
            }
            let GeneralWork { system, poses, momenta, momenta_with_flesh, flesh, along, .. } = self;
            let (momenta, unsettled) =
                with_flesh(part, flesh, (poses, Nodes::WithBones), momenta, system, momenta_with_flesh);
            let open = system.residual(part, (Middle::OfDrift, *along), state, poses, momenta);
            let missing = self.system.largest_momentum(part, state);
            // Joints are asked, not the correction: near a pose where rows become dependent (a four-bar laid flat) it may be large in
            // a direction that closes nothing.
            if last.is_some() && open.max(unsettled) < TOLERANCE && missing < enough {
                break;
            }
            if pass == PASSES {
                // Flesh and bones that go on to move against each other by little are told as not settled.
                if self.flesh.is_some() && open < TOLERANCE && missing < UNSETTLED {
                    break;
                }
                return Err(self.widest(model));
            }
            let correction = if self.flesh.is_some() {
                self.before.clone_from(&self.system.v);
                report.factorisations += 1;
                self.system.factor(model)?;
                self.system.correct(part, factors)
            } else if is_slow || (is_tense && self.along == Along::Mean && tense_passes < TENSE_PASSES) {
                is_fresh = true;
                report.factorisations += 1;
                // Where bodies are pressed together the symmetric part may have no factors
                let tense = if is_slow { None } else { self.system.correct_tense(part, &self.poses).ok() };
                if let Some(correction) = tense {
                    (factors, tense_passes) = (Factors::Symmetric, tense_passes + 1);
                    correction
                } else {
                    self.system.factor_at(part, self.along, state, &self.poses)?;
                    (factors, tense_passes) = (Factors::OfDrift, TENSE_PASSES);
                    self.system.correct(part, factors)
                }
            } else {
                self.system.correct(part, factors)
            };
            report.solves += 1;
            if !correction.is_finite() {
                return Err(self.widest(model));
            }
            let before = last.unwrap_or(f64::INFINITY);
            if self.flesh.is_some() {
                self.search(part, state)?;
            } else if correction > 0.5 * before {
                slow += 1;
                if slow > 4 || correction > 100.0 * before {
                    return Err(self.widest(model));
                }
            }
            is_slow = correction > SLOW * before && !is_fresh;
            is_fresh = false;
            last = Some(correction);
        }
        Ok(())
    }

    /// Begins (1) with the impulses that the state remembers of joints under tension, and a first correction of them. Returns its size; none, and nothing is begun,
    /// where nothing is remembered or it leads too far.
    fn begin_from_memory(
        &mut self,
        part: &Part<'_>,
        state: &State,
        report: &mut Report,
    ) -> Result<Option<f64>, Failure> {
        self.system.guess(state);
        if self.flesh.is_some() || !self.system.recall(part, state) || !self.system.is_tense(part, state) {
            return Ok(None);
        }
        self.act_along_mean(part.model);
        place(state, &self.system.v, None, part.h, &mut self.poses)?;
        self.system.residual(part, (Middle::OfDrift, self.along), state, &self.poses, &self.momenta);
        report.factorisations += 1;
        report.solves += 1;
        let correction = self.system.correct_tense(part, &self.poses).ok();
        Ok(correction.filter(|correction| *correction <= LARGEST_FROM_MEMORY))
    }

    /// Begins (1) with the velocities and the rows of the start, and no impulses of joints.
    fn begin_at_start(&mut self, model: &Model, state: &State, report: &mut Report) -> Result<(), Failure> {
        if self.along == Along::Mean {
            self.system.end_mean(model);
        }
        self.along = self.begin_along(model);
        self.system.guess(state);
        if self.flesh.is_some() {
            return Ok(()); // whose stiffness is not yet in the matrix
        }
        report.factorisations += 1;
        self.system.factor(model)
    }

    fn act_along_mean(&mut self, model: &Model) {
        if self.along == Along::Start {
            self.system.begin_mean(model);
        }
        self.along = Along::Mean;
    }

    /// The rule of the last part.
    pub(super) fn rule(&self) -> StepRule {
        match self.along {
            Along::Start => StepRule::Rattle,
            Along::Mean => StepRule::Midpoint,
        }
    }

    /// Shortens the last correction of bones, and the step of the flesh that goes with it, until it goes down.
    fn search(&mut self, part: &Part<'_>, state: &State) -> Result<(), Failure> {
        let GeneralWork { system, poses, momenta, flesh, before, step, .. } = self;
        let (Some(coupled), Some(flesh)) = (flesh, part.model.flesh()) else { return Ok(()) };
        step.clear();
        step.extend(system.v.iter().zip(before.iter()).map(|(v, b)| std::array::from_fn(|k| v[k] - b[k])));
        let line = coupled.aim(flesh, before, step, momenta, system.along(step));
        let mut share = 1.0;
        for _ in 0..SHORTER {
            for ((v, b), s) in system.v.iter_mut().zip(before.iter()).zip(step.iter()) {
                *v = std::array::from_fn(|k| b[k] + share * s[k]);
            }
            if place(state, &system.v, None, part.h, poses).is_ok() && coupled.descend(flesh, &line, share, poses) {
                return Ok(());
            }
            share *= 0.5;
        }
        // Factors of other places may lead nowhere. Those of the present lead the flesh at least, with its bones where they are.
        system.v.copy_from_slice(before);
        place(state, &system.v, None, part.h, poses)?;
        coupled.implicit.try_at(flesh, poses, 0.0);
        if coupled.implicit.refactor() || coupled.implicit.go_alone(flesh) {
            return Ok(());
        }
        Err(self.widest(part.model))
    }

    /// Notes the start of the part for the flesh.
    fn begin_flesh(&mut self, part: &Part<'_>, state: &State) {
        let (Some(coupled), Some(flesh)) = (&mut self.flesh, part.model.flesh()) else { return };
        coupled.implicit.begin(part.model, flesh, part.input, state, (part.h, part.after));
        coupled.note(part.h, &self.system.matrix);
    }

    /// p(v), with what is still missing in (1): momentum is kept to rounding, not to the tolerance.
    fn momenta_of_drift(&mut self, model: &Model, middle: Middle) {
        for (i, body) in model.bodies().iter().enumerate() {
            let v = to_twist(&self.system.v[i]);
            let spin = self.system.spin(middle, i);
            self.momenta[i] = from_twist(Twist::new(v.linear * body.mass, spin));
            add_scaled(&mut self.momenta[i], 1.0, self.system.missing(i));
        }
    }

    /// S' of (2), without what depends on the velocities of the end.
    fn second_impulses(&mut self, part: &Part<'_>) {
        let &Part { model, input, h, .. } = part;
        let share = (1.0 - self.steady_share()) * h;
        for (i, (impulse, body)) in self.second.iter_mut().zip(model.bodies()).enumerate() {
            let pull = if part.is_held(i) { DVec3::ZERO } else { input.gravity * (share * body.mass) };
            *impulse = Wrench::new(pull, DVec3::ZERO);
        }
        for (body, wrench) in part.wrenches() {
            self.second[body.index()] += *wrench * share;
        }
        for kept in &self.forces {
            let [on_a, on_b] = kept.second(&self.system.v, h);
            self.second[kept.a.index()] += on_a;
            if let Some(b) = kept.b {
                self.second[b.index()] += on_b;
            }
        }
        if self.along == Along::Mean {
            self.system.add_mean_impulses(model, &mut self.second);
        }
    }

    /// Notes what joints and touches gave in (1).
    fn note_drift(&mut self, part: &Part<'_>, touching: bool, ledger: &mut Ledger) {
        if !ledger.is_open {
            return;
        }
        ledger.knows_constraints();
        // Along the mean the same impulse acts in both halves.
        let times = if self.along == Along::Mean { 2.0 } else { 1.0 };
        for (k, link) in self.system.links.iter().enumerate().take(part.model.joints().len()) {
            ledger.constrain(JointId(k as u32), self.system.impulse_on_child(link, &link.y) * times);
        }
        if touching {
            self.note_touches(part, ledger);
        }
    }

    /// Notes what joints and touches gave in (2).
    fn note_velocities(&mut self, part: &Part<'_>, touching: bool, ledger: &mut Ledger) {
        if !ledger.is_open {
            return;
        }
        let System { links, keep, bodies, .. } = &self.system;
        for (k, link) in links.iter().enumerate().take(part.model.joints().len()) {
            let y = if touching { &link.y } else { &keep[bodies + k] };
            ledger.constrain(JointId(k as u32), self.system.impulse_on_child(link, y));
        }
        if touching {
            self.note_touches(part, ledger);
        }
    }

    fn note_touches(&self, part: &Part<'_>, ledger: &mut Ledger) {
        let contacts = part.contacts.len();
        for (k, touch) in self.system.touches.iter().enumerate().filter(|(_, touch)| touch.acts) {
            let [on_a, on_b] = touch.impulses();
            match part.stops.get(k.wrapping_sub(contacts)) {
                Some(stop) => ledger.stop(stop.joint, on_a),
                None => {
                    ledger.touch(BodyId(touch.a as u32), on_a);
                    if let Some(b) = touch.b {
                        ledger.touch(BodyId(b as u32), on_b);
                    }
                }
            }
        }
    }

    /// Fails when the energy of motion has changed by other than the work of the forces. A part that may not be halved any more is
    /// slowed down instead, and a loss is accepted after a few halvings; at once with flesh, whose backward rule always loses some.
    fn check_energy(&self, part: &Part<'_>, halvings: u32, before: f64, state: &mut State) -> Result<(), Failure> {
        let &Part { model, input, h, reach, contacts, stops, .. } = part;
        let after = measure::kinetic_energy(model, state);
        let v = |id: usize| to_twist(&self.system.v[id]);
        let mut work: f64 =
            model.bodies().iter().enumerate().map(|(i, b)| h * b.mass * input.gravity.dot(v(i).linear)).sum();
        work += input.wrenches.iter().map(|(id, wrench)| h * wrench.power(v(id.index()))).sum::<f64>();
        for kept in &self.forces {
            let [on_a, on_b] = kept.given(&self.system.v, h);
            work += on_a.power(v(kept.a.index())) + kept.b.map_or(0.0, |b| on_b.power(v(b.index())));
        }
        // What moving obstacles give; contacts take besides.
        let obstacles = contacts.iter().zip(&self.met).zip(&self.system.touches);
        let obstacles = obstacles.map(|((c, met), touch)| (met.impulse + touch.impulse()).dot(c.obstacle_velocity));
        work += obstacles.sum::<f64>();
        work += self.flesh.as_ref().map_or(0.0, |flesh| flesh.work(|i, wrench| wrench.power(v(i))));
        let stake = before.max(after).max(model.mass() * input.gravity.length() * reach).max(work.abs());
        let still = model.flesh().map_or(0.0, |flesh| flesh.still());
        let (gain, slack) = (after - before - work, ENERGY_SLACK * stake + still);
        let damped: f64 = self.forces.iter().map(|kept| kept.damped(&self.system.v, h)).sum();
        let may_not_lose = contacts.is_empty() && stops.is_empty() && self.flesh.is_none();
        if !gain.is_nan() && !input.grips.is_empty() {
            return Ok(()); // the hand that leads a grip gives and takes what it needs
        }
        if gain.is_nan()
            || (gain > slack && halvings > 0)
            || (gain < -slack - damped && may_not_lose && halvings > MAX_HALVINGS - HALVINGS_FOR_LOSS)
        {
            return Err(Failure::Energy(fastest(model, state)));
        }
        if gain > slack {
            let scale = ((before + work).max(0.0) / after).sqrt();
            state.bodies.iter_mut().for_each(|body| body.velocity = body.velocity * scale);
        }
        Ok(())
    }

    /// Fails when an unsettled part has gained energy. The work of forces is then not that of their laws, so that
    /// [`check_energy`](Self::check_energy) does not see it: energies themselves are compared. What moves targets and obstacles may give some besides: such
    /// parts are halved in vain, at most [`HALVINGS_FOR_UNSETTLED`] times.
    fn check_unsettled(&self, part: &Part<'_>, state: &State) -> Result<(), Failure> {
        let &Part { model, input, h, reach, .. } = part;
        if self.flesh.is_some() || !input.grips.is_empty() {
            return Ok(());
        }
        let height = |state: &State| -> f64 {
            let weight = |(body, s): (&Body, &BodyState)| -body.mass * input.gravity.dot(s.position);
            model.bodies().iter().zip(&state.bodies).map(weight).sum()
        };
        let energy = |state: &State| {
            measure::kinetic_energy(model, state) + height(state) + forces::spring_energy(model, input, state)
        };
        let given = input.wrenches.iter().map(|(id, wrench)| h * wrench.power(to_twist(&self.system.v[id.index()])));
        let (before, after) = (energy(&self.start), energy(state));
        let stake = model.mass() * input.gravity.length() * reach;
        let gain = after - before - given.sum::<f64>();
        if gain > ENERGY_SLACK * stake.max(measure::kinetic_energy(model, &self.start)) {
            return Err(Failure::Energy(fastest(model, state)));
        }
        Ok(())
    }

    /// The joint that the trial poses leave farthest open.
    fn widest(&self, model: &Model) -> Failure {
        let mut widest = (0.0, JointId(0));
        for (k, joint) in model.joints().iter().enumerate() {
            let b = joint.parent.map_or(Pose::IDENTITY, |b| self.poses[b.index()]);
            let (distance, tilt) = joint.gap(self.poses[joint.child.index()], b);
            if distance + tilt > widest.0 {
                widest = (distance + tilt, JointId(k as u32));
            }
        }
        if model.joints().is_empty() { Failure::NotFinite(BodyId(0)) } else { Failure::Diverged(widest.1) }
    }
}

/// Keeps every force of a state with its weight (3); returns how many limits act.
fn weigh(part: &Part<'_>, state: &State, is_whole: bool, kept: &mut Vec<Kept>) -> u32 {
    kept.clear();
    let &Part { model, input, h, .. } = part;
    forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
        if !part.is_held(acting.a.index()) {
            kept.push(Kept::new(part, state, &acting, is_whole));
        }
    })
}

/// Momenta with what flesh gives to bodies that drift to these poses, and how far it is from settled in units of [`TOLERANCE`]; its stiffness becomes part of
/// the matrix.
fn with_flesh<'a>(
    part: &Part<'_>,
    coupled: &mut Option<Box<Coupled>>,
    (poses, nodes): (&[Pose], Nodes),
    momenta: &'a [Vector],
    system: &mut System,
    sum: &'a mut [Vector],
) -> (&'a [Vector], f64) {
    let (Some(coupled), Some(flesh)) = (coupled, part.model.flesh()) else { return (momenta, 0.0) };
    coupled.meet(flesh, (poses, nodes), &system.v, momenta, &mut system.matrix, sum);
    (sum, TOLERANCE * coupled.implicit.unsettled(flesh))
}

/// The body with the most energy of motion.
fn fastest(model: &Model, state: &State) -> BodyId {
    let mut most = (0.0, 0);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let w = s.orientation.conjugate() * s.velocity.angular;
        let energy = body.mass * s.velocity.linear.length_squared() + w.dot(body.inertia * w);
        if energy > most.0 {
            most = (energy, i);
        }
    }
    BodyId(most.1 as u32)
}

/// Where the bodies are after drifting with v for h, and being pushed out besides.
fn place(state: &State, v: &[Vector], push: Option<&[Vector]>, h: f64, poses: &mut [Pose]) -> Result<(), Failure> {
    for (i, (s, v)) in state.bodies.iter().zip(v).enumerate() {
        let v = to_twist(v) + push.map_or(Twist::ZERO, |push| to_twist(&push[i]));
        let turn = v.angular * h;
        let size = turn.length();
        if size.is_nan() || size > LARGEST_TURN {
            return Err(Failure::Turned(BodyId(i as u32)));
        }
        let rotation = (exp(turn) * s.orientation).normalize();
        poses[i] = Pose::new(rotation, s.position + v.linear * h);
    }
    Ok(())
}
