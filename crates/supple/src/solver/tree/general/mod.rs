//! The step of solver `tree` for whatever is more than a tree: loops and grips.
//!
//! Joints act by impulses at both ends of the step, so that they are closed at its end and stay closed: the scheme of RATTLE [Andersen 1983]
//! with implicit forces. With p the momenta, v the velocity with which the bodies drift, J0 and J1 the rows of the joints at both ends:
//!
//! ```text
//! p(v)  = p0 + S(v) + J0ᵀ λ0        q1 = q0 ⊕ h v,   C(q1) = 0                                               (1)
//! p1    = p(v) + S'(v) + J1ᵀ λ1     J1 v1 = 0                                                                (2)
//! ```
//! S and S' are the impulses of forces. A force that h resolves acts by half its impulse of the midpoint in each, so that its energy is kept; one
//! that h does not resolve acts in (1) alone, by the backward rule, so that it settles:
//!
//! ```text
//! resolved      S = S' = ½h (W − ½h K v − D v)
//! not resolved  S = h (W − h K v − D v),   S' = 0                                                            (3)
//! ```
//! p(v) has the inertia of the pose in the middle of the drift, which makes the angular momentum of a free body that of its true motion to
//! second order, and exactly constant. (1) is solved by Newton's method with one factorisation, (2) is linear. Both matrices are
//! `[A Jᵀ; J −μ]` over bodies, joints and grips, factored by [`Ldl`](crate::maths::sparse::Ldl): on a tree at the cost of the tree, with loops
//! near it. Redundant rows (a planar four-bar in space) make `J A⁻¹ Jᵀ` singular; μ is there for them, and what it changes is taken
//! back by the passes of Newton's method, since their residual is that of the system without it.

mod settle;
mod system;
mod touch;

use crate::contact::{Contact, Other};
use crate::forces::{self, Derivatives};
use crate::input::Input;
use crate::maths::block::{Vector, add_scaled, from_twist, from_wrench, to_twist};
use crate::maths::rotation::{exp, turned_inertia};
use crate::maths::{Pose, Twist, Wrench};
use crate::measure;
use crate::model::{BodyId, ContactMemory, JointId, Model, State};
use crate::step::{Failure, MAX_HALVINGS, Report, Span};
use glam::DVec3;
use system::{Kept, Part, System, Weight};
use touch::Touch;

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
    /// Impulses of contacts in (1), world axes, by contact; and how fast they parted at the start.
    first_touches: Vec<(DVec3, f64)>,
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
            first_touches: Vec::new(),
            start: model.start(),
        }
    }
}

/// Newton ends when joints are closed to this share of the model's size \[m, and rad\] and the last correction was as small.
const TOLERANCE: f64 = 1e-9;
/// Passes before Newton has failed.
const PASSES: u32 = 25;
/// Largest rotation of a body in a part \[rad\].
const LARGEST_TURN: f64 = 1.0;

/// A contact that closes slower than this many times what gravity gives in h does not bounce.
const BOUNCE: f64 = 2.0;

/// Growth of energy in a part that is still truncation, as a share of the energy at stake.
const ENERGY_SLACK: f64 = 2e-4;

/// Halvings that may be spent on a loss of energy: a motion that opens joints at its start must lose some.
const HALVINGS_FOR_LOSS: u32 = 3;

/// One part of a step. On failure the state is as it was; a part that may not be halved any more does not fail but for numbers that
/// are none.
pub(super) fn substep(
    model: &Model,
    input: &Input,
    contacts: &[Contact],
    span: Span,
    reach: f64,
    state: &mut State,
    work: &mut GeneralWork,
) -> Result<Report, Failure> {
    work.start.clone_from(state);
    let part = Part { model, input, h: span.h, reach, contacts };
    let done = work.advance(&part, span.halvings, state);
    if done.is_err() {
        state.clone_from(&work.start);
        if span.halvings == 0 {
            return Ok(stay(&part, state));
        }
    }
    done
}

/// The last resort: for this part, the shortest there is, the bodies stay where they are and come to rest.
fn stay(part: &Part<'_>, state: &mut State) -> Report {
    state.bodies.iter_mut().for_each(|body| body.velocity = Twist::ZERO);
    let gap = measure::joint_gap(part.model, state);
    Report {
        substeps: 1,
        resorts: 1,
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        ..Report::default()
    }
}

impl GeneralWork {
    fn advance(&mut self, part: &Part<'_>, halvings: u32, state: &mut State) -> Result<Report, Failure> {
        let model = part.model;
        let mut report = Report { substeps: 1, ..Report::default() };
        self.system.fit(part);
        let touching = !part.contacts.is_empty();
        report.limits_active = self.weigh_forces(part, state);
        let kinetic = measure::kinetic_energy(model, state);

        // (1): the drift
        self.first_impulses(part, state);
        self.system.assemble_first(part, state, &self.forces);
        if touching {
            self.meet(part, state);
            self.drift_touching(part, state, &mut report)?;
        } else {
            self.system.factor(model)?;
            report.factorisations += 1;
            self.drift(part, state, &mut report)?;
        }

        // (2): the velocities at its end
        self.second_impulses(part);
        for (body, pose) in state.bodies.iter_mut().zip(&self.poses) {
            (body.position, body.orientation) = (pose.translation, pose.rotation);
        }
        self.system.assemble_second(part, state);
        if touching {
            self.leave(part, state);
            self.velocities_touching(part, state, &mut report)?;
        } else {
            self.system.factor(model)?;
            report.factorisations += 1;
            report.solves += self.system.velocities(&self.momenta, &self.second);
        }
        for (body, v) in state.bodies.iter_mut().zip(self.system.solution()) {
            body.velocity = to_twist(v);
        }
        self.check_energy(part, halvings, kinetic, state)?;
        if touching {
            self.remember(part, state, &mut report);
        } else {
            state.contacts.clear();
        }

        state.follow_turns(model);
        state.remembers = false;
        let gap = measure::joint_gap(model, state);
        (report.max_joint_gap, report.max_joint_tilt, report.widest_joint) = (gap.distance, gap.tilt, gap.joint);
        match state.bodies.iter().position(|b| !b.is_finite()) {
            None => Ok(report),
            Some(i) => Err(Failure::NotFinite(BodyId(i as u32))),
        }
    }

    /// Keeps every force with its weight (3); returns how many limits act.
    fn weigh_forces(&mut self, part: &Part<'_>, state: &State) -> u32 {
        let kept = &mut self.forces;
        kept.clear();
        let &Part { model, input, h, .. } = part;
        forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
            let softness = |body: BodyId| system::softness(model, state, body, acting.force);
            let [a, b] = [softness(acting.a)[0], acting.b.map_or(0.0, |b| softness(b)[1])];
            let weight = Weight::of(acting.force, a + b, h);
            kept.push(Kept { a: acting.a, b: acting.b, force: *acting.force, weight });
        })
    }

    /// Momenta of the start with the part of S that does not depend on v.
    fn first_impulses(&mut self, part: &Part<'_>, state: &State) {
        let &Part { model, input, h, .. } = part;
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            let linear = s.velocity.linear * body.mass + input.gravity * (0.5 * h * body.mass);
            let angular = turned_inertia(s.orientation, body.inertia) * s.velocity.angular;
            self.momenta[i] = from_twist(Twist::new(linear, angular));
        }
        for (body, wrench) in &input.wrenches {
            add_scaled(&mut self.momenta[body.index()], 0.5 * h, &from_wrench(*wrench));
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

    /// Solves (1). Afterwards `poses` are those of the end and `momenta` are p(v).
    fn drift(&mut self, part: &Part<'_>, state: &State, report: &mut Report) -> Result<(), Failure> {
        let &Part { model, h, .. } = part;
        self.system.guess(state);
        let (mut last, mut slow) = (f64::INFINITY, 0);
        for pass in 0..=PASSES {
            // Where v leads, and what is missing in (1)
            place(state, &self.system.v, h, &mut self.poses)?;
            let open = self.system.residual(part, state, &self.poses, &self.momenta);
            let missing = open.max(self.system.largest_momentum(part, state));
            // Joints are asked, not the correction: near a pose where rows become dependent (a four-bar laid flat) it may be large in
            // a direction that closes nothing.
            if pass > 0 && missing < TOLERANCE {
                break;
            }
            if pass == PASSES {
                return Err(self.widest(model));
            }
            let correction = self.system.correct(part);
            report.solves += 1;
            if !correction.is_finite() {
                return Err(self.widest(model));
            }
            if correction > 0.5 * last {
                slow += 1;
                if slow > 4 || correction > 100.0 * last {
                    return Err(self.widest(model));
                }
            }
            last = correction;
        }
        self.momenta_of_drift(part, state);
        Ok(())
    }

    /// p(v), with what is still missing in (1): momentum is kept to rounding, not to the tolerance.
    fn momenta_of_drift(&mut self, part: &Part<'_>, state: &State) {
        let &Part { model, h, .. } = part;
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            let v = to_twist(&self.system.v[i]);
            let middle = exp(v.angular * (0.5 * h)) * s.orientation;
            let angular = turned_inertia(middle, body.inertia) * v.angular;
            self.momenta[i] = from_twist(Twist::new(v.linear * body.mass, angular));
            add_scaled(&mut self.momenta[i], 1.0, self.system.missing(i));
        }
    }

    /// The contacts of the part as touches of (1), with the impulses they had at the end of the last part.
    fn meet(&mut self, part: &Part<'_>, state: &State) {
        let GeneralWork { system, first_touches, .. } = self;
        system.touches.clear();
        first_touches.clear();
        let mut known = state.contacts.iter().peekable();
        for contact in part.contacts {
            let mut touch = Touch::contact(contact, &system.matrix);
            let [lever_a, lever_b] = levers(contact, |i| state.bodies[i].pose());
            touch.place(part.model, state, lever_a, lever_b);
            while known.next_if(|k| k.key < contact.key).is_some() {}
            if let Some(memory) = known.next_if(|k| k.key == contact.key) {
                touch.start_from(memory.first * part.h);
            }
            let moving = touch.axes.transpose() * contact.obstacle_velocity;
            touch.shift = [0.0, -moving.y, -moving.z];
            system.touches.push(touch);
        }
        system.guess(state);
        for touch in &system.touches {
            let moving = touch.axes.transpose() * part.contacts[first_touches.len()].obstacle_velocity;
            first_touches.push((DVec3::ZERO, touch.parting(&system.v)[0] - moving.x));
        }
    }

    /// Solves (1) with contacts: bodies drift until they touch, no deeper than they are.
    fn drift_touching(&mut self, part: &Part<'_>, state: &State, report: &mut Report) -> Result<(), Failure> {
        let GeneralWork { system, poses, momenta, first_touches, .. } = self;
        let h = part.h;
        system.settle(part, state, report, |system| {
            place(state, &system.v, h, poses)?;
            for k in 0..part.contacts.len() {
                let contact = &part.contacts[k];
                let gap = gap_at(contact, state, poses, h);
                let parting = system.touches[k].parting(&system.v)[0];
                system.touches[k].shift[0] = (gap - contact.gap.min(0.0)) / h - parting;
            }
            Ok(system.residual(part, state, poses, momenta))
        })?;
        for (first, touch) in first_touches.iter_mut().zip(&system.touches) {
            first.0 = touch.impulse();
        }
        self.momenta_of_drift(part, state);
        Ok(())
    }

    /// The contacts that were reached as touches of (2): they part no slower than a bounce asks.
    fn leave(&mut self, part: &Part<'_>, state: &State) {
        let GeneralWork { system, first_touches, poses, start, .. } = self;
        let resting = BOUNCE * part.h * part.input.gravity.length();
        let mut known = start.contacts.iter().peekable();
        for (k, contact) in part.contacts.iter().enumerate() {
            let touch = &mut system.touches[k];
            let (impulse, parted) = first_touches[k];
            let gap = gap_at(contact, start, poses, part.h);
            touch.acts = impulse != DVec3::ZERO || gap <= 1e-9 * part.reach;
            let [lever_a, lever_b] = levers_after(contact, start, state);
            touch.place(part.model, state, lever_a, lever_b);
            while known.next_if(|k| k.key < contact.key).is_some() {}
            let memory = known.next_if(|k| k.key == contact.key);
            touch.start_from(memory.map_or(DVec3::ZERO, |m| m.second * part.h));
            let moving = touch.axes.transpose() * contact.obstacle_velocity;
            let bounce = if parted < -resting { contact.restitution * parted } else { 0.0 };
            touch.shift = [bounce - moving.x, -moving.y, -moving.z];
        }
    }

    /// Solves (2) with contacts.
    fn velocities_touching(&mut self, part: &Part<'_>, state: &State, report: &mut Report) -> Result<(), Failure> {
        let GeneralWork { system, momenta, second, .. } = self;
        system.start_second();
        let done = system.settle(part, state, report, |system| Ok(system.residual_second(part, momenta, second)));
        system.end_second();
        done
    }

    /// Keeps the impulses of contacts for the next part.
    fn remember(&mut self, part: &Part<'_>, state: &mut State, report: &mut Report) {
        state.contacts.clear();
        for ((contact, touch), (first, _)) in part.contacts.iter().zip(&self.system.touches).zip(&self.first_touches) {
            let second = if touch.acts { touch.impulse() } else { DVec3::ZERO };
            if *first != DVec3::ZERO || second != DVec3::ZERO {
                state.contacts.push(ContactMemory {
                    key: contact.key,
                    first: *first / part.h,
                    second: second / part.h,
                });
            }
            let gap = gap_at(contact, &self.start, &self.poses, part.h);
            report.max_penetration = report.max_penetration.max(-gap);
        }
    }

    /// S' of (2): what resolved forces, gravity and wrenches gave in (1), once more.
    fn second_impulses(&mut self, part: &Part<'_>) {
        let &Part { model, input, h, .. } = part;
        for (impulse, body) in self.second.iter_mut().zip(model.bodies()) {
            *impulse = Wrench::new(input.gravity * (0.5 * h * body.mass), DVec3::ZERO);
        }
        for (body, wrench) in &input.wrenches {
            self.second[body.index()] += *wrench * (0.5 * h);
        }
        for kept in self.forces.iter().filter(|kept| kept.weight == Weight::Resolved) {
            let [on_a, on_b] = kept.impulses(&self.system.v, h);
            self.second[kept.a.index()] += on_a;
            if let Some(b) = kept.b {
                self.second[b.index()] += on_b;
            }
        }
    }

    /// Fails when the energy of motion has changed by other than the work of the forces. A part that may not be halved any more is
    /// slowed down instead, and a loss is accepted after a few halvings.
    fn check_energy(&self, part: &Part<'_>, halvings: u32, before: f64, state: &mut State) -> Result<(), Failure> {
        let &Part { model, input, h, reach, contacts } = part;
        let after = measure::kinetic_energy(model, state);
        let v = |id: usize| to_twist(&self.system.v[id]);
        let resolved: f64 = self.second.iter().enumerate().map(|(i, s)| 2.0 * s.power(v(i))).sum();
        let backward = self.forces.iter().filter(|kept| kept.weight == Weight::Backward).map(|kept| {
            let [on_a, on_b] = kept.impulses(&self.system.v, h);
            on_a.power(v(kept.a.index())) + kept.b.map_or(0.0, |b| on_b.power(v(b.index())))
        });
        // What moving obstacles give; contacts take besides.
        let obstacles =
            contacts.iter().zip(&self.first_touches).zip(&self.system.touches).map(|((c, (first, _)), touch)| {
                let second = if touch.acts { touch.impulse() } else { DVec3::ZERO };
                (*first + second).dot(c.obstacle_velocity)
            });
        let work = resolved + backward.sum::<f64>() + obstacles.sum::<f64>();
        let stake = before.max(after).max(model.mass() * input.gravity.length() * reach).max(work.abs());
        let (gain, slack) = (after - before - work, ENERGY_SLACK * stake);
        if gain.is_nan()
            || (gain > slack && halvings > 0)
            || (gain < -slack && contacts.is_empty() && halvings > MAX_HALVINGS - HALVINGS_FOR_LOSS)
        {
            return Err(Failure::Energy(fastest(model, state)));
        }
        if gain > slack {
            let scale = ((before + work).max(0.0) / after).sqrt();
            state.bodies.iter_mut().for_each(|body| body.velocity = body.velocity * scale);
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

/// Where the bodies are after drifting with v for h.
fn place(state: &State, v: &[Vector], h: f64, poses: &mut [Pose]) -> Result<(), Failure> {
    for (i, (s, v)) in state.bodies.iter().zip(v).enumerate() {
        let v = to_twist(v);
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

/// From both bodies' centres of mass to their points of a contact, at the poses it was found at.
fn levers(contact: &Contact, pose: impl Fn(usize) -> Pose) -> [DVec3; 2] {
    let a = pose(contact.a.index()).rotation * contact.point_in_a;
    let b = match contact.b {
        Other::Body(b) => pose(b.index()).rotation * contact.point_in_b,
        Other::Obstacle(_) => DVec3::ZERO,
    };
    [a, b]
}

/// The same when the bodies have moved on from `start`; what is round does not turn with them.
fn levers_after(contact: &Contact, start: &State, now: &State) -> [DVec3; 2] {
    let carried = |i: usize, point: DVec3, round: DVec3| {
        let (then, now) = (&start.bodies[i], &now.bodies[i]);
        now.orientation * (point - then.orientation.conjugate() * round) + round
    };
    let a = carried(contact.a.index(), contact.point_in_a, contact.round_a);
    let b = match contact.b {
        Other::Body(b) => carried(b.index(), contact.point_in_b, contact.round_b),
        Other::Obstacle(_) => DVec3::ZERO,
    };
    [a, b]
}

/// How far apart the sides of a contact are along its normal when the bodies have moved from `start` to `poses` in h.
fn gap_at(contact: &Contact, start: &State, poses: &[Pose], h: f64) -> f64 {
    let moved = |i: usize, point: DVec3, round: DVec3| {
        let (then, now) = (&start.bodies[i], &poses[i]);
        let core = point - then.orientation.conjugate() * round;
        // what the point has moved by
        (now.translation - then.position) + (now.rotation * core - then.orientation * core)
    };
    let a = moved(contact.a.index(), contact.point_in_a, contact.round_a);
    let b = match contact.b {
        Other::Body(b) => moved(b.index(), contact.point_in_b, contact.round_b),
        Other::Obstacle(_) => contact.obstacle_velocity * h,
    };
    contact.gap + contact.normal.dot(a - b)
}
