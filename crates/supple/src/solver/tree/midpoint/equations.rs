//! The discrete equations of one part of a step: poses from the joints' coordinates, impulses from the poses, what is left over.
//!
//! A body's displacement over the part is `(δx, a)`: `x¹ = x⁰ + δx`, `q¹ = cay(a) q⁰` with `cay(a) = (1, a/2)` normalised.
//! Under the midpoint rule
//!
//! ```text
//! v¹ = 2δx/h − v⁰      R⁰Ω¹ = 2a/h − ω⁰      π¹ = R¹ I₀ R⁰ᵀ(2a/h − ω⁰)                                   (1)
//! P = m(v¹ − v⁰) − (impulses from outside)   L = π¹ − π⁰ − (torques from outside)                             (2)
//! ```
//! and joint impulses `(F, N)` act at averaged levers `r̄ = ½(r⁰+r¹)`. Since `R¹ − R⁰ = [a] ½(R⁰+R¹)` holds exactly, impulses
//! of closed joints do no work and leave the angular momentum as it is, at any h. The equations of a part are
//!
//! ```text
//! P = F − Σ F_c      L = r̄×F + N − Σ (r̄_c×F_c + N_c)      for every body, c its children                      (3)
//! S̄ᵀ(F, N) = τ                                            on the joint's free directions                    (4)
//! C(q¹) = 0                                               on the others: the joint is closed at the end      (5)
//! ```
//! with τ the impulse of the joint's springs, dampers, limits and motor, and `S̄` such that the relative displacement of closed joints is
//! `S̄` times the change of their coordinates: τ does the work `τ·Δ(coordinates)/h`, and springs exactly that of their energy. They are solved in the displacements of all bodies and
//! the impulses of all joints: heavy bodies at the end of light chains converge that way, as they would not with the joints
//! held closed all along. The backward rule has `v¹ = δx/h`, `ω¹ = a/h` and everything at the end pose.

use super::newton::{AnyJoint, Blocks, Equation, Free, Joint, Lever, Newton, Pair};
use crate::contact::penalty::Touch;
use crate::input::Input;
use crate::maths::rotation::{exp, fast_log, log, log_derivative, outer, skew, turn_near};
use crate::maths::small::{V3, tangent_ratio, turn_of_half};
use crate::maths::{Pose, Wrench};
use crate::model::joint::{Joint as ModelJoint, RotationKind, rotation_pairs};
use crate::model::laws::{Damper, Limit, PointSpring, Rule, Servo, Spring, TurnServo, Turned, cayley_rate};
use crate::model::limit::twist_direction;
use crate::model::{BodyId, BodyState, JointState, Model, Range, State, Swing};
use crate::solver::tree::plan::*;
use glam::{DMat3, DQuat, DVec3};

/// A body and the joint to its parent at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) x: DVec3,
    pub(super) q: DQuat,
    pub(super) v: DVec3,
    pub(super) w: DVec3,
    /// The joint's coordinates, child relative to parent: angle of a hinge or first angle of a Cardan joint, its second angle,
    /// position along the parent's joint axes.
    pub(super) angle: f64,
    pub(super) second: f64,
    pub(super) slide: DVec3,
    /// What the joint remembers.
    pub(super) memory: JointState,
}

impl Moment {
    pub(super) const WORLD: Moment = Moment {
        x: DVec3::ZERO,
        q: DQuat::IDENTITY,
        v: DVec3::ZERO,
        w: DVec3::ZERO,
        angle: 0.0,
        second: 0.0,
        slide: DVec3::ZERO,
        memory: JointState { angle: 0.0, turn: DVec3::ZERO, force: DVec3::ZERO, integral: 0.0 },
    };
}

/// One part of a step.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) plan: &'a Plan,
    pub(super) model: &'a Model,
    pub(super) input: &'a Input,
    /// Contacts that are springs.
    pub(super) touches: &'a [Touch],
    pub(super) rule: Rule,
    pub(super) h: f64,
    /// Time from the end of this part to the end of that which the input is for \[s\].
    pub(super) left: f64,
    /// And to the end of the step \[s\].
    pub(super) after: f64,
    /// Strength η of the damping of tension modes that h does not resolve.
    pub(super) tension_damping: f64,
}

/// Poses and impulses of a trial, by node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) x: DVec3,
    pub(super) q: DQuat,
    pub(super) r: DMat3,
    /// What is constant during a part: start rotation, angular momentum, spring's rotation vector in the parent's axes and
    /// in the world, weights of the joint's damping.
    pub(super) r0: DMat3,
    pub(super) pi0: DVec3,
    pub(super) turn0: DVec3,
    pub(super) phi0: DVec3,
    pub(super) damping: Damper,
    /// The rotation as a Cayley vector.
    pub(super) a: DVec3,
    pub(super) angle: f64,
    pub(super) second: f64,
    pub(super) slide: DVec3,
    pub(super) v: DVec3,
    pub(super) w: DVec3,
    pub(super) own0: DVec3,
    pub(super) own1: DVec3,
    pub(super) parent0: DVec3,
    pub(super) parent1: DVec3,
    /// The joint's impulse, on this body.
    pub(super) force: DVec3,
    pub(super) torque: DVec3,
}

impl Trial {
    pub(super) const WORLD: Trial = Trial {
        x: DVec3::ZERO,
        q: DQuat::IDENTITY,
        r: DMat3::IDENTITY,
        r0: DMat3::IDENTITY,
        pi0: DVec3::ZERO,
        turn0: DVec3::ZERO,
        phi0: DVec3::ZERO,
        damping: Damper::NONE,
        a: DVec3::ZERO,
        angle: 0.0,
        second: 0.0,
        slide: DVec3::ZERO,
        v: DVec3::ZERO,
        w: DVec3::ZERO,
        own0: DVec3::ZERO,
        own1: DVec3::ZERO,
        parent0: DVec3::ZERO,
        parent1: DVec3::ZERO,
        force: DVec3::ZERO,
        torque: DVec3::ZERO,
    };
}

/// `cay(a)`.
fn cayley(a: DVec3) -> DQuat {
    let v = 0.5 * a;
    DQuat::from_xyzw(v.x, v.y, v.z, 1.0).normalize()
}

/// The Cayley vector of a rotation; infinite at half a turn.
fn cayley_vector(q: DQuat) -> DVec3 {
    DVec3::new(q.x, q.y, q.z) * (2.0 / q.w)
}

/// The joint of a node with more than a ball's needs.
fn detail<'a>(plan: &'a Plan, node: &Node) -> Option<&'a Detail> {
    plan.details.get(node.detail as usize)
}

fn rotation_kind(plan: &Plan, node: &Node) -> RotationKind {
    match node.link {
        Link::Ball | Link::Floating => RotationKind::Free,
        _ => detail(plan, node).map_or(RotationKind::Free, |d| d.joint.mask.rotation()),
    }
}

fn turn(axis: usize, angle: f64) -> DQuat {
    DQuat::from_axis_angle(DVec3::AXES[axis % 3], angle)
}

/// Rotation of the child's joint frame in the parent's, by the joint's coordinates; `None` where rotation is free.
fn relative(kind: RotationKind, angle: f64, second: f64) -> Option<DQuat> {
    match kind {
        RotationKind::Free => None,
        RotationKind::Axis(k) => Some(turn(k, angle)),
        RotationKind::Cardan(k) => Some(turn(k + 1, angle) * turn(k + 2, second)),
        RotationKind::Held => Some(DQuat::IDENTITY),
    }
}

/// The pose of a node from its parent's and its joint's coordinates; `q` is kept where rotation is free.
pub(super) fn placed(
    plan: &Plan,
    node: &Node,
    parent: (DVec3, DQuat),
    q: DQuat,
    angle: f64,
    second: f64,
    slide: DVec3,
) -> (DVec3, DQuat) {
    let (x_p, q_p) = parent;
    let Some(detail) = detail(plan, node) else {
        // A ball
        let (own, other) = sides(node, node.point_a, node.point_b);
        return (x_p + q_p * other - q * own, q);
    };
    let (f_a, f_b) = (detail.joint.child_from_joint.rotation, detail.joint.parent_from_joint.rotation);
    let flipped = node.flags & FLIPPED != 0;
    let q = match relative(detail.joint.mask.rotation(), angle, second) {
        None => q,
        Some(r) if flipped => (q_p * f_a * r.conjugate() * f_b.conjugate()).normalize(),
        Some(r) => (q_p * f_b * r * f_a.conjugate()).normalize(),
    };
    if flipped {
        (x_p + q_p * node.point_a - q * (f_b * slide + node.point_b), q)
    } else {
        (x_p + q_p * (node.point_b + f_b * slide) - q * node.point_a, q)
    }
}

/// (of the node, of its parent) from (of side a, of side b).
pub(super) fn sides<T>(node: &Node, a: T, b: T) -> (T, T) {
    if node.flags & FLIPPED != 0 { (b, a) } else { (a, b) }
}

/// +1, or −1 when the node is side b: joint forces are told for side a.
fn sign(node: &Node) -> f64 {
    if node.flags & FLIPPED != 0 { -1.0 } else { 1.0 }
}

/// Reads a state and closes its joints, children onto parents: rounding, or what other methods left open.
pub(super) fn gather(plan: &Plan, state: &State, now: &mut [Moment]) {
    now[0] = Moment::WORLD;
    for i in 1..plan.nodes.len() {
        let node = &plan.nodes[i];
        let BodyState { position, orientation, velocity } = state.bodies[node.body as usize];
        // Placed by hand to a few digits; what a step left is a unit to rounding and keeps its bits.
        let rough = (orientation.length_squared() - 1.0).abs() > 1e-12;
        let orientation = if rough { orientation.normalize() } else { orientation };
        let mut moment =
            Moment { x: position, q: orientation, v: velocity.linear, w: velocity.angular, ..Moment::WORLD };
        let parent = now[node.parent as usize];
        gather_node(plan, node, state, &parent, &mut moment);
        now[i] = moment;
    }
}

/// What the joint of a node remembers and its coordinates at the pose in `moment`, which is closed onto the parent's.
pub(super) fn gather_node(plan: &Plan, node: &Node, state: &State, parent: &Moment, moment: &mut Moment) {
    if node.joint != NONE {
        moment.memory = state.joints[node.joint as usize];
        if !state.remembers {
            (moment.memory.turn, moment.memory.force) = (DVec3::ZERO, DVec3::ZERO);
        }
    }
    if let (Some(detail), false) = (detail(plan, node), node.link == Link::Floating) {
        let joint = &detail.joint;
        let (a, b) = sides(node, (moment.q, moment.x), (parent.q, parent.x));
        let relative = joint.relative_rotation(a.0, b.0);
        match joint.mask.rotation() {
            RotationKind::Axis(_) => moment.angle = angle_near(joint, relative, moment.memory.angle),
            RotationKind::Cardan(k) => (moment.angle, moment.second) = cardan_angles(relative, k),
            RotationKind::Free if joint.limits.angle.is_some() => {
                moment.memory.angle = angle_near(joint, relative, moment.memory.angle);
            }
            RotationKind::Free | RotationKind::Held => {}
        }
        let pose = |s: (DQuat, DVec3)| crate::maths::Pose::new(s.0, s.1);
        moment.slide = joint.relative_translation(pose(a), pose(b));
        for k in 0..3 {
            if joint.mask.holds_translation(k) {
                moment.slide[k] = 0.0;
            }
        }
    }
    if node.link != Link::Floating {
        (moment.x, moment.q) =
            placed(plan, node, (parent.x, parent.q), moment.q, moment.angle, moment.second, moment.slide);
    }
    let turning = matches!(rotation_kind(plan, node), RotationKind::Free | RotationKind::Cardan(_));
    if node.flags & SPRING != 0 && turning {
        let (q_a, q_b) = sides(node, moment.q, parent.q);
        moment.memory.turn = error_turn(q_a, q_b, node.rest_inverse, moment.memory.turn);
    }
}

/// [`ModelJoint::angle_near`] by a polynomial: as exact, and no call of a library.
fn angle_near(joint: &ModelJoint, relative: DQuat, last: f64) -> f64 {
    let Some(axis) = joint.turning_axis() else { return 0.0 };
    turn_of_half(relative.to_array()[axis], relative.w, last).0
}

/// The angles of a Cardan joint: `relative = turn(k+1, first) turn(k+2, second)`.
fn cardan_angles(relative: DQuat, k: usize) -> (f64, f64) {
    let m = DMat3::from_quat(relative);
    let (i, j, l) = (k % 3, (k + 1) % 3, (k + 2) % 3);
    (m.col(l)[i].atan2(m.col(l)[l]), m.col(i)[j].atan2(m.col(j)[j]))
}

/// Writes the state.
pub(super) fn scatter(plan: &Plan, now: &[Moment], state: &mut State) {
    state.remembers = true;
    for (node, moment) in plan.nodes.iter().zip(now).skip(1) {
        let body = &mut state.bodies[node.body as usize];
        (body.position, body.orientation) = (moment.x, moment.q);
        (body.velocity.linear, body.velocity.angular) = (moment.v, moment.w);
        if node.joint != NONE {
            let joint = &mut state.joints[node.joint as usize];
            *joint = moment.memory;
        }
    }
}

/// The impulse of each joint on its child over the last part, about the child's centre of mass.
pub(super) fn joint_impulses(plan: &Plan, trial: &[Trial], impulses: &mut [Wrench]) {
    for (node, t) in plan.nodes.iter().zip(trial).skip(1) {
        if node.joint == NONE {
            continue;
        }
        let mean = |a: DVec3, b: DVec3| (a + b) * 0.5;
        let (own, parent) = (mean(t.own0, t.own1), mean(t.parent0, t.parent1));
        impulses[node.joint as usize] = on_child(node, t.force, t.torque, own, parent);
    }
}

/// The impulse `(f, n)` of a joint on a node, about the joint, as one on the joint's child about its centre of mass; with the levers of node and parent.
pub(super) fn on_child(node: &Node, f: DVec3, n: DVec3, own: DVec3, parent: DVec3) -> Wrench {
    let lever = if node.flags & FLIPPED == 0 { own } else { parent };
    Wrench::new(f, n + lever.cross(f)) * sign(node)
}

impl Part<'_> {
    /// The trial that goes on with the present velocities, rotations of at most one radian, and the joint forces remembered.
    pub(super) fn predict(&self, now: &[Moment], trial: &mut [Trial]) {
        for i in 1..self.plan.nodes.len() {
            let m = &now[i];
            let t = &mut trial[i];
            let node = &self.plan.nodes[i];
            t.r0 = DMat3::from_quat(m.q);
            t.pi0 = t.r0 * (inertia(node) * (t.r0.transpose() * m.w));
            t.damping = self.damping(node, m);
            (t.turn0, t.phi0) = self.start_turn(node, m, &now[node.parent as usize]);
            let a = m.w * self.h;
            t.a = a / a.length().max(1.0);
            t.x = m.x + m.v * self.h;
            (t.angle, t.second, t.slide) = (m.angle, m.second, m.slide);
            (t.force, t.torque) = (m.memory.force * (sign(node) * self.h), DVec3::ZERO);
        }
        self.place(now, trial);
    }

    /// The turn of a spring at the start, in side b's axes and in the world's.
    pub(super) fn start_turn(&self, node: &Node, m: &Moment, parent: &Moment) -> (DVec3, DVec3) {
        if node.flags & SPRING == 0 {
            return (DVec3::ZERO, DVec3::ZERO);
        }
        let q_b = sides(node, m.q, parent.q).1;
        (m.memory.turn, q_b * m.memory.turn)
    }

    /// Adds this share of a Newton step. Returns the whole step's largest rotation, in radians (displacements of floating bodies and slides are seen in
    /// those of the joints, or count by their share of `reach`).
    pub(super) fn correct(&self, newton: &Newton, share: f64, reach: f64, now: &[Moment], trial: &mut [Trial]) -> f64 {
        let mut largest = 0.0f64;
        for i in 1..self.plan.nodes.len() {
            let (dx, rho) = newton.moved[i];
            if dx.is_nan() || rho.is_nan() {
                return f64::NAN;
            }
            let t = &mut trial[i];
            let (f, n) = newton.supplied[i];
            t.x += dx * share;
            t.a += cayley_rate(t.a) * (rho * share);
            t.force += f * share;
            t.torque += n * share;
            largest = largest.max(rho.length());
            if !matches!(self.plan.nodes[i].link, Link::Ball | Link::Hinge | Link::Weld) {
                largest = largest.max(dx.length() / reach);
            }
        }
        self.place(now, trial);
        largest
    }

    /// Everything that follows from the displacements: poses, velocities by (1), levers, coordinates of the joints.
    fn place(&self, now: &[Moment], trial: &mut [Trial]) {
        for i in 1..self.plan.nodes.len() {
            let m = &now[i];
            let t = &mut trial[i];
            t.q = cayley(t.a) * m.q;
            t.r = DMat3::from_quat(t.q);
            self.set_velocity(m, t);
        }
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            if node.link == Link::Floating {
                continue;
            }
            let p = node.parent as usize;
            let (parent_now, parent) = (&now[p], trial[p]);
            self.place_joint(node, &now[i], parent_now, &parent, &mut trial[i]);
        }
    }

    /// Levers and coordinates of a joint at the trial.
    pub(super) fn place_joint(&self, node: &Node, m: &Moment, parent_now: &Moment, parent: &Trial, t: &mut Trial) {
        // Levers of the joint point. On side b of a joint that slides, it is the point that happens to be there.
        let (own_point, parent_point) = sides(node, node.point_a, node.point_b);
        (t.own0, t.own1) = (t.r0 * own_point, t.r * own_point);
        (t.parent0, t.parent1) = (parent.r0 * parent_point, parent.r * parent_point);
        if let Some(detail) = detail(self.plan, node) {
            let joint = &detail.joint;
            if !joint.mask.holds_point() {
                let between0 = (m.x + t.own0) - (parent_now.x + t.parent0);
                let between1 = (t.x + t.own1) - (parent.x + t.parent1);
                if node.flags & FLIPPED != 0 {
                    (t.own0, t.own1) = (t.own0 - between0, t.own1 - between1);
                } else {
                    (t.parent0, t.parent1) = (t.parent0 + between0, t.parent1 + between1);
                }
                let r_b = if node.flags & FLIPPED != 0 { t.r } else { parent.r };
                let axes = r_b * detail.frames().1;
                let s = axes.transpose() * (between1 * sign(node));
                for k in 0..3 {
                    t.slide[k] = if joint.mask.holds_translation(k) { 0.0 } else { s[k] };
                }
            }
            let (q_a, q_b) = sides(node, t.q, parent.q);
            match joint.mask.rotation() {
                RotationKind::Axis(_) => t.angle = angle_near(joint, joint.relative_rotation(q_a, q_b), m.angle),
                RotationKind::Cardan(k) => {
                    (t.angle, t.second) = cardan_angles(joint.relative_rotation(q_a, q_b), k);
                }
                RotationKind::Free | RotationKind::Held => {}
            }
        }
    }

    #[inline(always)]
    fn set_velocity(&self, m: &Moment, t: &mut Trial) {
        let h = self.h;
        match self.rule {
            Rule::Midpoint => {
                t.v = (t.x - m.x) * (2.0 / h) - m.v;
                t.w = t.r * (t.r0.transpose() * (t.a * (2.0 / h) - m.w));
            }
            Rule::Backward => (t.v, t.w) = ((t.x - m.x) / h, t.a / h),
        }
    }

    /// Closes the joints of a converged trial exactly, children onto parents; a floating tree keeps its centre of mass.
    pub(super) fn close(&self, now: &[Moment], trial: &mut [Trial]) {
        let nodes = &self.plan.nodes;
        let mut root = 1;
        while root < nodes.len() {
            let end = (root + 1..nodes.len()).find(|&i| nodes[i].parent == 0).unwrap_or(nodes.len());
            let (mut mass, mut shift) = (0.0, DVec3::ZERO);
            for i in root..end {
                let node = &nodes[i];
                mass += node.mass;
                if node.link == Link::Floating {
                    continue;
                }
                let parent = &trial[node.parent as usize];
                let at = (parent.x, parent.q);
                let t = &mut trial[i];
                let open = t.x;
                (t.x, t.q) = placed(self.plan, node, at, t.q, t.angle, t.second, t.slide);
                t.a = cayley_vector(t.q * now[i].q.conjugate());
                t.r = DMat3::from_quat(t.q);
                shift += (t.x - open) * node.mass;
            }
            let back = if nodes[root].link == Link::Floating { shift / mass } else { DVec3::ZERO };
            for i in root..end {
                trial[i].x -= back;
                self.set_velocity(&now[i], &mut trial[i]);
            }
            root = end;
        }
    }

    /// The motion `(c, e)` that closes a joint at the trial, node relative to parent; and the gap it closes, in shares of a lever and
    /// radians.
    pub(super) fn closing(&self, node: &Node, parent: &Trial, own: &Trial) -> ((DVec3, DVec3), f64) {
        let mut c = (parent.x + own.parent1) - (own.x + own.own1);
        let mut e = DVec3::ZERO;
        if let Some(detail) = detail(self.plan, node) {
            let joint = &detail.joint;
            let (r_a, r_b) = sides(node, own.r, parent.r);
            let (f_a, f_b) = detail.frames();
            let (f_a, f_b) = (r_a * f_a, r_b * f_b);
            if !joint.mask.holds_point() {
                // The levers meet in one point; what is open lies along the held axes between the bodies' own points.
                let (p_own, p_parent) = sides(node, node.point_a, node.point_b);
                let between = (own.x + own.r * p_own) - (parent.x + parent.r * p_parent);
                c = DVec3::ZERO;
                for k in 0..3 {
                    if joint.mask.holds_translation(k) {
                        c -= f_b.col(k) * f_b.col(k).dot(between);
                    }
                }
            }
            e = closing_rotation(joint.mask.rotation(), f_a, f_b) * sign(node);
        }
        ((c, e), (c.length() / gap_size(node)).max(e.length()))
    }

    fn lever(&self, start: DVec3, end: DVec3) -> Lever {
        let share = self.rule.end();
        Lever { left: start * (1.0 - share) + end * share, right: end }
    }

    /// Imbalances of (3), (4) and (5) at the trial, and the matrix of a Newton step when asked for.
    pub(super) fn evaluate(
        &self,
        now: &[Moment],
        trial: &[Trial],
        outside: &mut Outside,
        newton: &mut Newton,
        matrix: bool,
    ) -> Sums {
        let (h, share) = (self.h, self.rule.end());
        let Newton { equations, load, closing, imbalance, pairs, any, .. } = newton;
        let mut unused = AnyJoint::NONE;
        outside.evaluate(self, now, trial, matrix, pairs);
        let count = self.plan.nodes.len();
        let mut sums = Sums { work: outside.work, limits: 0, gap: 0.0, effort: 0.0 };
        for &i in &outside.touched {
            let (f, n) = outside.impulse[i as usize];
            sums.effort += (f.length() * self.plan.reach + n.length()) / h;
        }
        for i in 1..count {
            let node = &self.plan.nodes[i];
            let (m, t) = (&now[i], &trial[i]);
            let i0 = inertia(node);
            let pi1 = t.r * (i0 * (t.r.transpose() * t.w));
            let (outside_f, outside_n) = outside.impulse[i];
            load[i] = ((t.v - m.v - self.input.gravity * h) * node.mass - outside_f, pi1 - t.pi0 - outside_n);
            if matrix {
                let rate = cayley_rate(t.a);
                let ww = match self.rule {
                    Rule::Midpoint => t.r * i0 * t.r0.transpose() * rate * (2.0 / h) - skew(pi1),
                    Rule::Backward => {
                        let i1 = t.r * i0 * t.r.transpose();
                        i1 * rate * (1.0 / h) + i1 * skew(t.w) - skew(pi1)
                    }
                };
                let mut body = outside.blocks[i];
                body.vv += DMat3::from_diagonal(DVec3::splat(node.mass / (share * h)));
                body.ww += ww;
                let (own, parent) = (self.lever(t.own0, t.own1), self.lever(t.parent0, t.parent1));
                equations[i] = Equation { body, own, parent, joint: Joint::Floating };
            }
        }
        for i in 1..count {
            let node = &self.plan.nodes[i];
            if node.link == Link::Floating {
                imbalance[i] = [0.0; 6];
                closing[i] = (DVec3::ZERO, DVec3::ZERO);
                continue;
            }
            let p = node.parent as usize;
            let (parent, own) = (&trial[p], &trial[i]);
            let room = match any.get_mut(node.any as usize) {
                Some(room) if matrix => room,
                _ => &mut unused,
            };
            let joint = self.joint(node, &now[p], &now[i], parent, own, &mut imbalance[i], matrix, &mut sums, room);
            let (motion, gap) = self.closing(node, parent, own);
            closing[i] = motion;
            sums.gap = sums.gap.max(gap);
            let (own_lever, parent_lever) = (self.lever(own.own0, own.own1), self.lever(own.parent0, own.parent1));
            load[i].0 -= own.force;
            load[i].1 -= own_lever.left.cross(own.force) + own.torque;
            if p != 0 {
                load[p].0 += own.force;
                load[p].1 += parent_lever.left.cross(own.force) + own.torque;
            }
            if matrix {
                equations[i].joint = joint;
                // Levers turn with their bodies: −share [F][r] on the child, + on the parent.
                equations[i].body.ww -= skew(own.force) * skew(own_lever.right) * share;
                if p != 0 {
                    equations[p].body.ww += skew(own.force) * skew(parent_lever.right) * share;
                }
            }
        }
        sums
    }

    /// The imbalance of one joint and its part of the matrix.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn joint(
        &self,
        node: &Node,
        parent_now: &Moment,
        now: &Moment,
        parent: &Trial,
        own: &Trial,
        g: &mut [f64; 6],
        matrix: bool,
        sums: &mut Sums,
        any: &mut AnyJoint,
    ) -> Joint {
        let s = sign(node);
        let (now_a, now_b) = sides(node, now, parent_now);
        if node.link == Link::Weld {
            return Joint::Weld;
        }
        if node.link == Link::Ball {
            let law = self.rotation_law(node, now_a, now_b, parent, own, now, matrix, sums);
            let rest = own.torque - law.tau * s;
            (g[0], g[1], g[2]) = (rest.x, rest.y, rest.z);
            let (k_own, k_parent) = sides(node, law.k_a, law.k_b);
            return Joint::Ball { k_own, k_parent };
        }
        let Some(detail) = detail(self.plan, node) else { return Joint::Weld };
        let joint = &detail.joint;
        let (h, share) = (self.h, self.rule.end());
        let AnyJoint { count: directions, free, k, k_parent } = any;
        let mut count = 0;
        let (f_a, f_b) = detail.frames();
        let (r0_a, r0_b) = sides(node, own.r0, parent.r0);
        let (r1_a, r1_b) = sides(node, own.r, parent.r);
        let flipped = node.flags & FLIPPED != 0;

        // Translations: dual axes of the averaged frame are perpendicular to all held ones.
        if !joint.mask.holds_point() {
            let end = r1_b * f_b;
            let mean = (r0_b * (1.0 - share) + r1_b * share) * f_b;
            let dual = mean.inverse().transpose();
            // δ(M̄⁻ᵀ) = −M̄⁻ᵀ δM̄ᵀ M̄⁻ᵀ,  δM̄ = share [ρ_b] M¹
            let carried = end * (dual.transpose() * own.force) * share;
            for axis in 0..3 {
                if joint.mask.holds_translation(axis) {
                    continue;
                }
                let start = r0_b * f_b.col(axis);
                let at = |m: &Moment, lever: DVec3| m.v + m.w.cross(lever);
                let rate = s * start.dot(at(now, own.own0) - at(parent_now, own.parent0));
                let pull = self.slide_law(node, detail, axis, rate, now, own, sums);
                let (left, right) = (dual.col(axis), end.col(axis));
                free[count] = Free { turns: false, left, right };
                sums.work += pull.motor * (own.slide[axis] - now.slide[axis]) / h;
                g[count] = left.dot(own.force) - s * (pull.tau + pull.motor);
                if matrix {
                    k[count] = [0.0; 6];
                    k[count][count] = pull.k + pull.motor_k;
                    k_parent[count] = left.cross(carried);
                }
                count += 1;
            }
        }
        match joint.mask.rotation() {
            RotationKind::Held => {}
            RotationKind::Axis(axis) => {
                let frame = f_a.col(axis);
                let (start, right) = (r0_a * frame, r1_a * frame);
                let mean = start * (1.0 - share) + right * share;
                let pull = self.axis_law(node, detail, now_a, now_b, now, own, start, sums);
                // a_a − a_b = l n̄ (x¹ − x⁰),  l = (1 + ¼ a_a·a_b) tan(½Δx)/(½Δx),  n̄ the mean axis
                let (length, by_angle, by_turn) = match self.rule {
                    Rule::Midpoint => {
                        let (tangent, slope) = tangent_ratio(own.angle - now.angle);
                        let share = 1.0 + 0.25 * own.a.dot(parent.a);
                        (share * tangent, share * slope, 0.25 * tangent)
                    }
                    Rule::Backward => (1.0, 0.0, 0.0),
                };
                let left = mean * length;
                let size = left.length();
                sums.work += pull.motor * size * (own.angle - now.angle) / h;
                // A motor gives its torque about the axis, not by the angle.
                let rest = own.torque - left * (s * pull.motor / size);
                free[count] = Free { turns: true, left, right };
                g[count] = left.dot(rest) - s * pull.tau;
                if matrix {
                    let along = mean.dot(rest);
                    let by = |a: DVec3, b: DVec3| cayley_rate(a).transpose() * b * by_turn;
                    let (by_own, by_parent) = (by(own.a, parent.a), by(parent.a, own.a));
                    k[count] = [0.0; 6];
                    k[count][count] = pull.k + pull.motor_k * size + along * (s * by_angle + by_own.dot(right));
                    k_parent[count] = right.cross(rest) * (share * length) + (by_own + by_parent) * along;
                    // A slide's direction turns with side b; when that is this body, also with this rotation.
                    if flipped {
                        for t in 0..count {
                            k[t][count] += right.dot(k_parent[t]);
                        }
                    }
                }
                count += 1;
            }
            kind @ (RotationKind::Free | RotationKind::Cardan(_)) => {
                let law = self.rotation_law(node, now_a, now_b, parent, own, now, matrix, sums);
                let rest = own.torque - law.tau * s;
                let (k_own, k_par) = sides(node, law.k_a, law.k_b);
                let first = count;
                // Which side carries each direction: +1 this body, 0 the parent; a fixed axis turns with neither.
                let mut carried = [(false, false); 6];
                if let RotationKind::Cardan(c) = kind {
                    let axis_b = f_b.col((c + 1) % 3);
                    let axis_a = f_a.col((c + 2) % 3);
                    for (axis, r0, r1, by_a) in [(axis_b, r0_b, r1_b, false), (axis_a, r0_a, r1_a, true)] {
                        let (start, right) = (r0 * axis, r1 * axis);
                        free[count] = Free { turns: true, left: start * (1.0 - share) + right * share, right };
                        carried[count] = (true, by_a != flipped);
                        count += 1;
                    }
                } else {
                    for axis in DVec3::AXES {
                        free[count] = Free { turns: true, left: axis, right: axis };
                        count += 1;
                    }
                }
                for r in first..count {
                    g[r] = free[r].left.dot(rest);
                }
                for r in first..if matrix { count } else { first } {
                    let left = free[r].left;
                    k[r] = [0.0; 6];
                    k_parent[r] = (k_own - k_par).transpose() * left;
                    let row = k_own.transpose() * left;
                    for c in first..count {
                        k[r][c] += row.dot(free[c].right);
                    }
                    if carried[r].0 {
                        let turning = free[r].right.cross(rest) * share;
                        k_parent[r] += turning;
                        if carried[r].1 {
                            for c in first..count {
                                k[r][c] += turning.dot(free[c].right);
                            }
                        }
                    }
                }
                if matrix && flipped {
                    for t in 0..first {
                        for c in first..count {
                            k[t][c] += free[c].right.dot(k_parent[t]);
                        }
                    }
                }
            }
        }
        *directions = count;
        Joint::Any(node.any)
    }

    /// The damping of a joint: of its rotations, or of its translations where it has no rotation; and of tension that h does not resolve.
    pub(super) fn damping(&self, node: &Node, now: &Moment) -> Damper {
        if node.joint == NONE {
            return Damper::NONE;
        }
        let turns = rotation_kind(self.plan, node) != RotationKind::Held;
        let slide = detail(self.plan, node).map_or(0.0, |d| d.joint.slide_spring.damping);
        let (_, c_scale) = self.input.scales(&self.input.joint(node.joint as usize));
        let c = c_scale * if turns { node.damping } else { slide };
        let h = self.h;
        // A slider alone is damped as a mass; tension turns nothing there.
        let (inertia, lever) = if turns { node.joint_inertia } else { (node.joint_mass, 0.0) };
        let damper = Damper::over(self.rule, h, c, inertia);
        match self.rule {
            Rule::Midpoint => {
                damper.with_tension(h, self.tension_damping, now.memory.force.length() * lever, 1.0 / inertia)
            }
            Rule::Backward => damper,
        }
    }

    /// Springs, dampers, limits and servo on three free rotations.
    #[allow(clippy::too_many_arguments)]
    fn rotation_law(
        &self,
        node: &Node,
        now_a: &Moment,
        now_b: &Moment,
        parent: &Trial,
        own: &Trial,
        now: &Moment,
        matrix: bool,
        sums: &mut Sums,
    ) -> Law {
        let h = self.h;
        let joint_input = self.input.joint(node.joint as usize);
        let k = node.stiffness * self.input.scales(&joint_input).0;
        let (q_a, q_b) = sides(node, own.q, parent.q);
        let (a_a, a_b) = sides(node, own.a, parent.a);
        let delta = a_a - a_b;
        let mut law = Law { tau: DVec3::ZERO, k_a: DMat3::ZERO, k_b: DMat3::ZERO };
        if k > 0.0 {
            let turn = error_turn(q_a, q_b, node.rest_inverse, own.turn0);
            match self.rule {
                Rule::Midpoint => {
                    let (r0, r1) = sides(node, (own.r0, own.r), (parent.r0, parent.r)).1;
                    let [a_a, a_b, turn0, turn1] = [a_a, a_b, own.phi0, r0 * turn].map(V3::splat);
                    let spring = Turned { k: h * k, a_a, a_b, turn0, turn1 };
                    let (tau, gradient) = spring.torque();
                    let tau = tau.lane(0);
                    law.tau += tau;
                    if matrix {
                        let (k_a, k_b) = spring.derivative(tau, &gradient, r0 * r1.transpose());
                        law.k_a += k_a;
                        law.k_b += k_b;
                    }
                }
                Rule::Backward => {
                    let phi = q_b * turn;
                    law.tau -= phi * (h * k);
                    if matrix {
                        let derivative = log_derivative(phi) * (h * k);
                        law.k_a += derivative;
                        law.k_b += derivative.transpose();
                    }
                }
            }
        }
        let Damper { strength, start } = own.damping;
        if strength > 0.0 {
            law.tau -= delta * strength + (now_a.w - now_b.w) * start;
            if matrix {
                law.k_a += cayley_rate(a_a) * strength;
                law.k_b += cayley_rate(a_b) * strength;
            }
        }
        if node.flags & (LIMITS | MOTOR) == 0 {
            return law;
        }
        let Some(detail) = detail(self.plan, node) else { return law };
        let joint = &detail.joint;
        let relative = joint.relative_rotation(q_a, q_b);
        let (f_a, f_b) = (
            DMat3::from_quat(q_a * joint.child_from_joint.rotation),
            DMat3::from_quat(q_b * joint.parent_from_joint.rotation),
        );
        let limits = &joint.limits;
        if let Some(limit) = limits.angle_law() {
            let angle = angle_near(joint, relative, now.memory.angle);
            let (x_a, x_b) = (f_a.col(0), f_b.col(0));
            let direction = twist_direction(V3::<f64>::splat(x_a), V3::splat(x_b)).lane(0);
            let impulse = law.limit(direction, angle, &limit, h, delta, sums);
            if matrix && impulse != 0.0 {
                // The direction g = (x_a + x_b)/(1 + x_a·x_b) turns with both sides.
                let scale = impulse / (1.0 + x_a.dot(x_b)).max(1e-6);
                let across = x_a.cross(x_b);
                law.k_a += (skew(x_a) + outer(direction, across)) * scale;
                law.k_b -= (skew(x_b) - outer(direction, across)) * scale;
            }
        }
        if let (Some(ellipse), Some(limit), Some(swing)) =
            (limits.swing, limits.swing_law(), Swing::meaningful(relative))
        {
            let (violation, direction) = swing.violation(&ellipse.lanes());
            let direction = f_b * direction.lane(0);
            let impulse = law.limit(direction, violation, &limit, h, delta, sums);
            if matrix && impulse != 0.0 {
                let turning = f_b * swing.turning(&ellipse.lanes()).matrix() * f_b.transpose() * impulse;
                law.k_a -= turning;
                law.k_b -= turning + skew(direction) * impulse;
            }
        }
        if let Some((servo, target)) = joint.motor.as_ref().and_then(|m| TurnServo::of(m, self.input, &joint_input)) {
            let (frame_a, frame_b) = (joint.child_from_joint.rotation, joint.parent_from_joint.rotation);
            let rest_inverse = (frame_b * target * frame_a.conjugate()).conjugate();
            let phi = fast_log(q_a * rest_inverse * q_b.conjugate());
            let (torque, share) = servo.torque(V3::splat(phi), V3::splat(delta / h));
            let torque = torque.lane(0) * share;
            law.tau += torque * h;
            sums.work += torque.dot(delta);
            if matrix && share == 1.0 {
                let derivative = log_derivative(phi) * (h * servo.stiffness);
                law.k_a += derivative + cayley_rate(a_a) * servo.damping;
                law.k_b += derivative.transpose() + cayley_rate(a_b) * servo.damping;
            }
        }
        law
    }

    /// Springs, dampers, limits and motor about one axis.
    #[allow(clippy::too_many_arguments)]
    fn axis_law(
        &self,
        node: &Node,
        detail: &Detail,
        now_a: &Moment,
        now_b: &Moment,
        now: &Moment,
        own: &Trial,
        axis_now: DVec3,
        sums: &mut Sums,
    ) -> Pull {
        let joint = &detail.joint;
        let rate = axis_now.dot(now_a.w - now_b.w);
        let law = Line {
            spring: self.turning_spring(node, joint),
            damping: own.damping,
            limit: joint.limits.angle_law(),
            motor: node.flags & MOTOR != 0,
        };
        self.line_law(node, joint, &law, now.angle, own.angle, rate, sums)
    }

    /// The spring about the axis of a hinge, with its scales.
    fn turning_spring(&self, node: &Node, joint: &ModelJoint) -> Spring<f64> {
        let scales = self.input.scales(&self.input.joint(node.joint as usize));
        Spring::turning(&joint.rotation_spring, node.rest_angle, scales)
    }

    fn sliding_spring(&self, node: &Node, joint: &ModelJoint, axis: usize) -> Spring<f64> {
        Spring::sliding(&joint.slide_spring, axis, self.input.scales(&self.input.joint(node.joint as usize)))
    }

    /// Springs, dampers, limits and motor along one translation.
    #[allow(clippy::too_many_arguments)]
    fn slide_law(
        &self,
        node: &Node,
        detail: &Detail,
        axis: usize,
        rate: f64,
        now: &Moment,
        own: &Trial,
        sums: &mut Sums,
    ) -> Pull {
        let joint = &detail.joint;
        let spring = self.sliding_spring(node, joint, axis);
        let law = Line {
            spring,
            damping: Damper::over(self.rule, self.h, spring.damping, node.joint_mass),
            limit: if axis == 0 { joint.limits.slide_law() } else { None },
            motor: node.flags & MOTOR != 0 && axis == 0 && joint.mask.rotation() == RotationKind::Held,
        };
        self.line_law(node, joint, &law, now.slide[axis], own.slide[axis], rate, sums)
    }

    /// The law of one coordinate that goes from `x0` to `x1`.
    #[allow(clippy::too_many_arguments)]
    fn line_law(
        &self,
        node: &Node,
        joint: &ModelJoint,
        law: &Line,
        x0: f64,
        x1: f64,
        rate: f64,
        sums: &mut Sums,
    ) -> Pull {
        let (h, delta) = (self.h, x1 - x0);
        let spring = law.spring.over(self.rule, h, x0, x1);
        let Damper { strength, start } = law.damping;
        let mut pull = Pull {
            tau: spring.impulse - strength * delta - start * rate,
            k: spring.slope + strength,
            motor: 0.0,
            motor_k: 0.0,
        };
        if let Some((limit, on)) = law.limit.map(|limit| limit.over(h, x1, delta)).filter(|over| over.1 > 0.0) {
            sums.limits += on as u32;
            pull.tau += limit.impulse;
            pull.k += limit.slope;
        }
        if let (true, Some(motor)) = (law.motor, joint.motor) {
            let servo = Servo::of(&motor, self.input, &self.input.joint(node.joint as usize)).over(h, 1.0 / h, x0, x1);
            (pull.motor, pull.motor_k) = (servo.impulse, servo.slope);
            sums.effort += servo.impulse.abs() / h;
        }
        pull
    }

    /// Energy of a moment: motion, height, joint springs and limits.
    pub(super) fn energy(&self, moments: &[Moment]) -> (f64, f64) {
        let (mut kinetic, mut potential) = (0.0, 0.0);
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            let m = &moments[i];
            let w = m.q.conjugate() * m.w;
            kinetic += 0.5 * (node.mass * m.v.length_squared() + w.dot(inertia(node) * w));
            potential -= node.mass * self.input.gravity.dot(m.x);
            potential += self.joint_energy(node, m, moments[node.parent as usize].q);
        }
        (kinetic, potential)
    }

    /// That of a joint's springs and limits.
    pub(super) fn joint_energy(&self, node: &Node, m: &Moment, q_parent: DQuat) -> f64 {
        let mut potential = 0.0;
        if node.joint == NONE {
            return potential;
        }
        let turning = matches!(rotation_kind(self.plan, node), RotationKind::Free | RotationKind::Cardan(_));
        if node.flags & SPRING != 0 && turning {
            let (k_scale, _) = self.input.scales(&self.input.joint(node.joint as usize));
            let law = Spring { stiffness: node.stiffness * k_scale, damping: 0.0, rest: 0.0 };
            potential += law.at_turn(V3::splat(m.memory.turn)).0;
        }
        let Some(detail) = detail(self.plan, node) else { return potential };
        let joint = &detail.joint;
        let of_limit = |law: Option<Limit>, x: f64| law.map_or(0.0, |law| law.at(x).energy);
        if let RotationKind::Axis(_) = joint.mask.rotation() {
            potential += self.turning_spring(node, joint).at(m.angle).energy;
            potential += of_limit(joint.limits.angle_law(), m.angle);
        }
        for axis in (0..3).filter(|&axis| !joint.mask.holds_translation(axis)) {
            potential += self.sliding_spring(node, joint, axis).at(m.slide[axis]).energy;
        }
        potential += of_limit(joint.limits.slide_law(), m.slide.x);
        if turning && joint.limits.any() {
            let (a, b) = sides(node, m.q, q_parent);
            let relative = joint.relative_rotation(a, b);
            potential += of_limit(joint.limits.angle_law(), angle_near(joint, relative, m.memory.angle));
            if let (Some(ellipse), Some(swing)) = (joint.limits.swing, Swing::meaningful(relative)) {
                potential += of_limit(joint.limits.swing_law(), swing.violation(&ellipse.lanes()).0);
            }
        }
        potential
    }

    /// The first node whose hard limit is passed: what no force of this step holds.
    pub(super) fn passed(&self, moments: &[Moment]) -> Option<usize> {
        (1..self.plan.nodes.len()).find(|&i| {
            let (node, m) = (&self.plan.nodes[i], &moments[i]);
            if node.flags & LIMITS == 0 {
                return false;
            }
            let Some(joint) = detail(self.plan, node).map(|d| &d.joint).filter(|j| j.limits.are_hard()) else {
                return false;
            };
            let (a, b) = sides(node, m.q, moments[node.parent as usize].q);
            let relative = joint.relative_rotation(a, b);
            let beyond = |range: Option<Range>, x: f64| range.is_some_and(|r| r.excess(x) != 0.0);
            beyond(joint.limits.angle, joint.angle_near(relative, m.memory.angle))
                || beyond(joint.limits.slide, m.slide.x)
                || joint.limits.swing.is_some_and(|ellipse| {
                    Swing::meaningful(relative).is_some_and(|swing| swing.violation(&ellipse.lanes()).0 > 0.0)
                })
        })
    }

    /// The moment at the end of an accepted trial.
    pub(super) fn finish(&self, now: &[Moment], trial: &[Trial], next: &mut [Moment]) {
        next[0] = Moment::WORLD;
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            next[i] = self.finish_node(node, &now[i], &trial[i], trial[node.parent as usize].q);
        }
    }

    /// The same of one node.
    pub(super) fn finish_node(&self, node: &Node, now: &Moment, t: &Trial, q_parent: DQuat) -> Moment {
        let mut memory = now.memory;
        memory.force = t.force * (sign(node) / self.h);
        let (q_a, q_b) = sides(node, t.q, q_parent);
        match rotation_kind(self.plan, node) {
            RotationKind::Free | RotationKind::Cardan(_) => {
                if node.flags & SPRING != 0 {
                    memory.turn = error_turn(q_a, q_b, node.rest_inverse, memory.turn);
                }
                if node.flags & TURNS != 0
                    && let Some(detail) = detail(self.plan, node)
                {
                    let relative = detail.joint.relative_rotation(q_a, q_b);
                    memory.angle = angle_near(&detail.joint, relative, memory.angle);
                }
            }
            RotationKind::Axis(_) => memory.angle = t.angle,
            RotationKind::Held => {}
        }
        Moment { x: t.x, q: t.q, v: t.v, w: t.w, angle: t.angle, second: t.second, slide: t.slide, memory }
    }

    /// How far the velocities of a moment open the joints within h, in radians and shares of a lever.
    pub(super) fn opening(&self, moments: &[Moment]) -> f64 {
        let mut largest = 0.0f64;
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            if node.link == Link::Floating {
                continue;
            }
            let m = &moments[i];
            let parent = &moments[node.parent as usize];
            let (a, b) = sides(node, m, parent);
            let r_a = a.q * node.point_a;
            let p = a.x + r_a;
            let mut rate = a.v + a.w.cross(r_a) - b.v - b.w.cross(p - b.x);
            let size = gap_size(node);
            if let Some(detail) = detail(self.plan, node) {
                let joint = &detail.joint;
                let f_b = DMat3::from_quat(b.q * joint.parent_from_joint.rotation);
                for k in 0..3 {
                    if !joint.mask.holds_translation(k) {
                        rate -= f_b.col(k) * f_b.col(k).dot(rate);
                    }
                }
                let f_a = DMat3::from_quat(a.q * joint.child_from_joint.rotation);
                for &(j, k) in rotation_pairs(joint.mask.rotation()) {
                    largest = largest.max(f_a.col(j).cross(f_b.col(k)).dot(a.w - b.w).abs());
                }
            }
            largest = largest.max(rate.length() / size);
        }
        largest * self.h
    }

    /// The equations whose solution are the velocities nearest those of `moments`, by kinetic energy, that keep the joints closed.
    pub(super) fn projection(&self, moments: &[Moment], newton: &mut Newton) {
        let Newton { equations, load, closing, imbalance, pairs, any, .. } = newton;
        pairs.clear();
        imbalance.fill([0.0; 6]);
        closing.fill((DVec3::ZERO, DVec3::ZERO));
        for i in 1..self.plan.nodes.len() {
            let node = &self.plan.nodes[i];
            let m = &moments[i];
            let parent = &moments[node.parent as usize];
            let r = DMat3::from_quat(m.q);
            let inertia = r * inertia(node) * r.transpose();
            let (a, b) = sides(node, m, parent);
            let p = a.x + a.q * node.point_a;
            let lever = |x: DVec3| Lever { left: p - x, right: p - x };
            let joint = match node.link {
                Link::Floating => Joint::Floating,
                Link::Ball => Joint::Ball { k_own: DMat3::ZERO, k_parent: DMat3::ZERO },
                Link::Weld => Joint::Weld,
                Link::Hinge | Link::General(_) => {
                    let Some(detail) = detail(self.plan, node) else { continue };
                    let joint = &detail.joint;
                    let f_a = DMat3::from_quat(a.q * joint.child_from_joint.rotation);
                    let f_b = DMat3::from_quat(b.q * joint.parent_from_joint.rotation);
                    let mut free = [Free { turns: true, left: DVec3::ZERO, right: DVec3::ZERO }; 6];
                    let mut count = 0;
                    let mut push = |turns: bool, axis: DVec3| {
                        free[count] = Free { turns, left: axis, right: axis };
                        count += 1;
                    };
                    for k in (0..3).filter(|&k| !joint.mask.holds_translation(k)) {
                        push(false, f_b.col(k));
                    }
                    match joint.mask.rotation() {
                        RotationKind::Held => {}
                        RotationKind::Axis(k) => push(true, f_a.col(k)),
                        RotationKind::Cardan(k) => {
                            push(true, f_b.col((k + 1) % 3));
                            push(true, f_a.col((k + 2) % 3));
                        }
                        RotationKind::Free => DVec3::AXES.into_iter().for_each(|axis| push(true, axis)),
                    }
                    any[node.any as usize] = AnyJoint { count, free, ..AnyJoint::NONE };
                    Joint::Any(node.any)
                }
            };
            let zero = Lever::default();
            let (own, parent) = if node.link == Link::Floating { (zero, zero) } else { (lever(m.x), lever(parent.x)) };
            let vv = DMat3::from_diagonal(DVec3::splat(node.mass));
            equations[i] = Equation { body: Blocks { vv, ww: inertia, ..Blocks::ZERO }, own, parent, joint };
            load[i] = (m.v * -node.mass, inertia * -m.w);
        }
    }
}

/// The small rotation of a against b that makes the joint's pairs of axes perpendicular.
fn closing_rotation(kind: RotationKind, f_a: DMat3, f_b: DMat3) -> DVec3 {
    let pairs = rotation_pairs(kind);
    let row = |k: usize| {
        let (i, j) = pairs[k];
        (f_a.col(i).cross(f_b.col(j)), -f_a.col(i).dot(f_b.col(j)))
    };
    match pairs.len() {
        0 => DVec3::ZERO,
        1 => {
            let (j, r) = row(0);
            j * (r / j.length_squared())
        }
        n => {
            let ((a, x), (b, y)) = (row(0), row(1));
            let (c, z) = if n == 3 { row(2) } else { (a.cross(b), 0.0) };
            let (bc, ca, ab) = (b.cross(c), c.cross(a), a.cross(b));
            (bc * x + ca * y + ab * z) / a.dot(bc)
        }
    }
}

/// Of all values of the rotation vector from rest, in side b's axes, the one nearest `last`.
#[inline(always)]
fn error_turn(q_a: DQuat, q_b: DQuat, rest_inverse: DQuat, last: DVec3) -> DVec3 {
    // R_bᵀ log(q_a q0⁻¹ q_b⁻¹) = log(q_b⁻¹ q_a q0⁻¹)
    turn_near(fast_log(q_b.conjugate() * q_a * rest_inverse), last)
}

/// What a joint's gap is measured against \[m\]: its lever, or the body's own size where the lever is short.
pub(super) fn gap_size(node: &Node) -> f64 {
    node.joint_inertia.1.max((node.mean_inertia / node.mass).sqrt())
}

fn inertia(node: &Node) -> DMat3 {
    let [xx, xy, xz, yy, yz, zz] = node.inertia;
    DMat3::from_cols(DVec3::new(xx, xy, xz), DVec3::new(xy, yy, yz), DVec3::new(xz, yz, zz))
}

/// Impulse and derivative on three rotations: `−δτ = k_a ρ_a − k_b ρ_b`.
struct Law {
    tau: DVec3,
    k_a: DMat3,
    k_b: DMat3,
}

impl Law {
    /// Adds a limit of a coordinate `x` that grows along `direction`; returns its impulse.
    fn limit(&mut self, direction: DVec3, x: f64, limit: &Limit, h: f64, delta: DVec3, sums: &mut Sums) -> f64 {
        let (over, on) = limit.over(h, x, direction.dot(delta));
        if on == 0.0 {
            return 0.0;
        }
        sums.limits += 1;
        self.tau += direction * over.impulse;
        let block = outer(direction, direction) * over.slope;
        self.k_a += block;
        self.k_b += block;
        over.impulse
    }
}

/// Impulse and derivative on one coordinate, of the motor apart.
struct Pull {
    tau: f64,
    k: f64,
    motor: f64,
    motor_k: f64,
}

/// What acts on one coordinate.
struct Line {
    spring: Spring<f64>,
    damping: Damper,
    limit: Option<Limit>,
    motor: bool,
}

/// Sums over an evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Work done from outside: by loads and motors \[J\].
    pub(super) work: f64,
    /// Limits that act.
    pub(super) limits: u32,
    /// Largest gap of a joint, in shares of a lever and radians.
    pub(super) gap: f64,
    /// Sum of the sizes of torques from outside, forces by `reach` \[J/rad\]: what an error of a radian would do.
    pub(super) effort: f64,
}

/// What acts on the bodies from outside: trackers, drags, wrenches, anchor springs.
pub(super) struct Outside {
    /// By node: impulse about the centre of mass, and its derivative with the sign of (2).
    impulse: Vec<(DVec3, DVec3)>,
    blocks: Vec<Blocks>,
    touched: Vec<u32>,
    work: f64,
}

impl Outside {
    pub(super) fn new(nodes: usize, model: &Model) -> Outside {
        // The robust way may first be needed long after the start: its lists have their room by then.
        let touching = model.trackers().len() + 2 * model.anchor_springs().len() + 16;
        Outside {
            impulse: vec![(DVec3::ZERO, DVec3::ZERO); nodes],
            blocks: vec![Blocks::ZERO; nodes],
            touched: Vec::with_capacity(touching),
            work: 0.0,
        }
    }

    fn evaluate(&mut self, part: &Part<'_>, now: &[Moment], trial: &[Trial], matrix: bool, pairs: &mut Vec<Pair>) {
        if matrix {
            pairs.clear();
        }
        for &i in &self.touched {
            self.impulse[i as usize] = (DVec3::ZERO, DVec3::ZERO);
            self.blocks[i as usize] = Blocks::ZERO;
        }
        self.touched.clear();
        self.work = 0.0;
        let (h, left) = (part.h, part.left);
        let node_of = &part.plan.node_of;
        for (index, (tracker, target)) in part.model.trackers().iter().zip(&part.input.targets).enumerate() {
            let Some(target) = target else { continue };
            let [stiffness, damping, k, c] = tracker.at_strength(part.input.strength(index));
            let i = node_of[tracker.body.index()] as usize;
            let speed = target.velocity.linear;
            let end = target.pose.translation - speed * left;
            let pull = Pull3 { point: tracker.point, start: end - speed * h, end, stiffness, damping };
            self.pull(part, i, &pull, &now[i], &trial[i], matrix);
            // Rotation: −k φ − c (ω − ω*), towards the end pose as far as h does not resolve the spring.
            let w = target.velocity.angular;
            let q1 = exp(w * -left) * target.pose.rotation.normalize();
            let q0 = exp(w * -h) * q1;
            let node = &part.plan.nodes[i];
            let theta = part.rule.end_of_pull(h * h * k / node.mean_inertia);
            let (phi0, phi1) = (log(now[i].q * q0.conjugate()), log(trial[i].q * q1.conjugate()));
            let a = trial[i].a;
            let torque = (phi0 * (1.0 - theta) + phi1 * theta) * (-h * k) - (a - w * h) * c;
            self.impulse[i].1 += torque;
            self.work += torque.dot(a) / h;
            if matrix {
                self.blocks[i].ww += log_derivative(phi1) * (h * k * theta) + cayley_rate(a) * c;
            }
        }
        for drag in &part.input.drags {
            let i = node_of[drag.body.index()] as usize;
            let end = drag.target - drag.target_velocity * left;
            let pull = Pull3 {
                point: drag.point,
                start: end - drag.target_velocity * h,
                end,
                stiffness: drag.stiffness,
                damping: drag.damping,
            };
            self.pull(part, i, &pull, &now[i], &trial[i], matrix);
        }
        for (body, wrench) in &part.input.wrenches {
            let i = node_of[body.index()] as usize;
            self.touched.push(i as u32);
            self.impulse[i].0 += wrench.force * h;
            self.impulse[i].1 += wrench.torque * h;
            self.work += wrench.force.dot(trial[i].x - now[i].x) + wrench.torque.dot(trial[i].a);
        }
        for spring in part.model.anchor_springs() {
            let i = node_of[spring.a.index()] as usize;
            let j = spring.b.map_or(0, |b| node_of[b.index()] as usize);
            let (a0, a1) = (now[i].q * spring.point_in_a, trial[i].r * spring.point_in_a);
            let (b0, b1) = (now[j].q * spring.point_in_b, trial[j].r * spring.point_in_b);
            let d0 = now[i].x + a0 - now[j].x - b0;
            let d1 = trial[i].x + a1 - trial[j].x - b1;
            let (elastic, kd) = PointSpring::of(spring).over(part.rule, d0, d1);
            let force = elastic * h - (d1 - d0) * spring.damping;
            let kd = kd * h + DMat3::from_diagonal(DVec3::splat(spring.damping));
            self.work += force.dot(d1 - d0) / h;
            if j == 0 {
                self.add(part.rule, i, a0, a1, force, kd, matrix);
                continue;
            }
            // Between bodies: the impulse and its turning here, the stiffness with the solve.
            for (k, r0, r1, f) in [(i, a0, a1, force), (j, b0, b1, -force)] {
                self.add(part.rule, k, r0, r1, f, DMat3::ZERO, matrix);
            }
            if matrix {
                let (lever_a, lever_b) = (part.lever(a0, a1), part.lever(b0, b1));
                pairs.push(Pair { a: i, b: j, lever_a, lever_b, k: kd });
            }
        }
        for touch in part.touches {
            self.touch(part, touch, now, trial, matrix, pairs);
        }
    }

    /// A contact as a spring. Its levers are those of the start: a ball that rolls does not lift itself.
    fn touch(
        &mut self,
        part: &Part<'_>,
        touch: &Touch,
        now: &[Moment],
        trial: &[Trial],
        matrix: bool,
        pairs: &mut Vec<Pair>,
    ) {
        let (h, after) = (part.h, part.after);
        let node = |body: BodyId| part.plan.node_of[body.index()] as usize;
        let (i, j) = (node(touch.follow.a), touch.follow.b.map_or(0, node));
        let [a, b] = touch.follow.levers(now[i].q, touch.follow.b.map(|_| now[j].q));
        let way = |i: usize, r: DVec3| trial[i].x - now[i].x + trial[i].a.cross(r);
        let (way_a, way_b) = (way(i, a), touch.follow.b.map_or(touch.follow.carried * h, |_| way(j, b)));
        let pose = |i: usize| Pose::new(now[i].q, now[i].x);
        let gap = touch.follow.gap(pose(i), touch.follow.b.map(|_| pose(j)), h + after);
        let end = part.rule.end_of_pull(h * h * touch.stiffness() / touch.mass);
        let (force, kd) = touch.impulse(gap, way_a - way_b, end, h);
        self.work += (force.dot(way_a) - if j == 0 { 0.0 } else { force.dot(way_b) }) / h;
        if j == 0 {
            self.add_still(i, a, force, kd, matrix);
            return;
        }
        for (k, r, f) in [(i, a, force), (j, b, -force)] {
            self.add_still(k, r, f, DMat3::ZERO, matrix);
        }
        if matrix {
            pairs.push(Pair { a: i, b: j, lever_a: part.lever(a, a), lever_b: part.lever(b, b), k: kd });
        }
    }

    fn pull(&mut self, part: &Part<'_>, i: usize, pull: &Pull3, now: &Moment, trial: &Trial, matrix: bool) {
        let h = part.h;
        let (r0, r1) = (now.q * pull.point, trial.r * pull.point);
        let (p0, p1) = (now.x + r0, trial.x + r1);
        let theta = part.rule.end_of_pull(h * h * pull.stiffness / part.plan.nodes[i].mass);
        let stretch = (p0 - pull.start) * (1.0 - theta) + (p1 - pull.end) * theta;
        let force = stretch * (-h * pull.stiffness) - ((p1 - p0) - (pull.end - pull.start)) * pull.damping;
        let kappa = h * pull.stiffness * theta + pull.damping;
        self.work += force.dot(p1 - p0) / h;
        self.add(part.rule, i, r0, r1, force, DMat3::from_diagonal(DVec3::splat(kappa)), matrix);
    }

    /// An impulse at a lever that does not turn.
    fn add_still(&mut self, i: usize, r: DVec3, force: DVec3, kd: DMat3, matrix: bool) {
        self.touched.push(i as u32);
        self.impulse[i].0 += force;
        self.impulse[i].1 += r.cross(force);
        if matrix {
            let (r, b) = (skew(r), &mut self.blocks[i]);
            b.vv += kd;
            b.vw -= kd * r;
            b.wv += r * kd;
            b.ww -= r * kd * r;
        }
    }

    /// An impulse at a lever, with its derivative by the lever's end.
    #[allow(clippy::too_many_arguments)]
    fn add(&mut self, rule: Rule, i: usize, r0: DVec3, r1: DVec3, force: DVec3, kd: DMat3, matrix: bool) {
        let share = rule.end();
        let left = r0 * (1.0 - share) + r1 * share;
        self.touched.push(i as u32);
        self.impulse[i].0 += force;
        self.impulse[i].1 += left.cross(force);
        if matrix {
            let (l, r) = (skew(left), skew(r1));
            let b = &mut self.blocks[i];
            b.vv += kd;
            b.vw -= kd * r;
            b.wv += l * kd;
            b.ww -= l * kd * r + skew(force) * r * share;
        }
    }
}

/// A spring from a point of a body to a point that goes from `start` to `end`.
struct Pull3 {
    point: DVec3,
    start: DVec3,
    end: DVec3,
    stiffness: f64,
    damping: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        BodyRef, BodySpec, JointMask, JointSpec, Limits, ModelBuilder, Range, RotationSpring, Shape, SlideSpring,
        SwingEllipse,
    };

    /// A number in (−1, 1) that depends on k in no simple way.
    fn noise(k: usize) -> f64 {
        (12.9898 * k as f64 + 78.233).sin()
    }

    fn vector(k: usize) -> DVec3 {
        DVec3::new(noise(k), noise(k + 1), noise(k + 2))
    }

    /// A joint between two bodies; b hangs on the world, so the joint to a decides which of its sides is the parent.
    fn pair(mask: JointMask, flipped: bool, spec: impl Fn(JointSpec) -> JointSpec) -> Model {
        let mut builder = ModelBuilder::new();
        let body = |name: &str| BodySpec::new(name).shape(Shape::cuboid(0.3, 0.2, 0.1), 1000.0);
        let a = builder.body(body("a"));
        let b = builder.body(body("b"));
        let k = 7 * usize::from(mask.bits());
        let frame = |k: usize| Pose::new(exp(vector(k)), vector(k + 3) * 0.3);
        let (child, parent) = if flipped { (b, a) } else { (a, b) };
        builder.joint(JointSpec::new("to world", JointMask::BALL, b, BodyRef::World));
        builder.joint(spec(JointSpec::new("joint", mask, child, parent).frames(frame(k), frame(k + 40))));
        builder.build().unwrap()
    }

    /// Two closed poses of the joint of a [`pair`], far apart.
    struct Apart<'a> {
        part: Part<'a>,
        now: Vec<Moment>,
        trial: Vec<Trial>,
    }

    impl<'a> Apart<'a> {
        fn new(model: &'a Model, plan: &'a Plan, input: &'a Input, rule: Rule) -> Apart<'a> {
            let part =
                Part { plan, model, input, touches: &[], rule, h: 0.01, left: 0.0, after: 0.0, tension_damping: 0.0 };
            let mask = model.joints()[1].mask;
            let k = 7 * usize::from(mask.bits());
            let mut now = vec![Moment::WORLD; 3];
            gather(plan, &model.start(), &mut now);
            let mut trial = vec![Trial::WORLD; 3];
            part.predict(&now, &mut trial);
            // Somewhere else, closed again.
            for (i, t) in trial.iter_mut().enumerate().skip(1) {
                t.a = vector(k + 11 * i) * 0.7;
                t.q = cayley(t.a) * now[i].q;
                (t.angle, t.second) = (now[i].angle + 0.6 * noise(k + 5), now[i].second + 0.5 * noise(k + 6));
                for axis in 0..3 {
                    if !mask.holds_translation(axis) {
                        t.slide[axis] += 0.2 * noise(k + 8 + axis);
                    }
                }
            }
            part.close(&now, &mut trial);
            part.place(&now, &mut trial);
            Apart { part, now, trial }
        }

        /// Imbalance and matrix of the joint.
        fn joint(&self) -> (Joint, [f64; 6], AnyJoint) {
            let (mut imbalance, mut any) = ([0.0; 6], AnyJoint::NONE);
            let (now, trial) = (&self.now, &self.trial);
            let sums = &mut Sums::default();
            let joint = self.part.joint(
                &self.part.plan.nodes[2],
                &now[1],
                &now[2],
                &trial[1],
                &trial[2],
                &mut imbalance,
                true,
                sums,
                &mut any,
            );
            (joint, imbalance, any)
        }
    }

    fn each_joint(mut check: impl FnMut(JointMask, bool)) {
        for bits in 0..64u8 {
            for flipped in [false, true] {
                check(JointMask::from_bits(bits), flipped);
            }
        }
    }

    #[test]
    fn impulses_of_closed_joints_do_no_work_over_any_displacement() {
        // For each mask: two closed poses of a joint far apart. Whatever impulse (F, N) has no part on the free directions of the rule does
        // no work over the displacement: the displacement lies in the span of those directions. An identity, so to rounding.
        each_joint(|mask, flipped| {
            let model = pair(mask, flipped, |spec| spec.spring(1.0, 0.0));
            let (plan, input) = (Plan::new(&model), Input::default());
            let apart = Apart::new(&model, &plan, &input, Rule::Midpoint);
            let Apart { part, now, trial } = &apart;
            let (joint, _, any) = apart.joint();
            let (own, parent) =
                (part.lever(trial[2].own0, trial[2].own1), part.lever(trial[2].parent0, trial[2].parent1));
            let mut u = (trial[2].x - now[2].x) + trial[2].a.cross(own.left)
                - (trial[1].x - now[1].x)
                - trial[1].a.cross(parent.left);
            let mut w = trial[2].a - trial[1].a;
            match joint {
                Joint::Ball { .. } => w = DVec3::ZERO,
                Joint::Any(_) => {
                    // Remove the span of the free directions, translations and rotations apart, by Gram–Schmidt.
                    let mut basis: Vec<(bool, DVec3)> = Vec::new();
                    for free in &any.free[..any.count] {
                        let mut v = free.left;
                        for (turns, e) in &basis {
                            if *turns == free.turns {
                                v -= *e * e.dot(v);
                            }
                        }
                        basis.push((free.turns, v.normalize()));
                    }
                    for (turns, e) in basis {
                        if turns {
                            w -= e * e.dot(w);
                        } else {
                            u -= e * e.dot(u);
                        }
                    }
                }
                Joint::Weld | Joint::Floating => {}
            }
            let left = u.length().max(w.length());
            assert!(left < 1e-12, "mask {} flipped {flipped}: {left:e} left of the displacement", mask.name());
        });
    }

    #[test]
    fn springs_do_exactly_the_work_of_their_energy() {
        // For each mask: the impulses that balance the joint's springs alone, times the displacement between two poses far apart, are h times the
        // energy given up. An identity, so to rounding.
        let mut springs = 0;
        each_joint(|mask, flipped| {
            let model = pair(mask, flipped, |spec| {
                let rest = exp(vector(3));
                spec.rotation_spring(RotationSpring { stiffness: 2.0, rest, ..RotationSpring::default() })
                    .slide_spring(SlideSpring { stiffness: 3.0, rest: vector(9) * 0.1, ..SlideSpring::default() })
            });
            let (plan, input) = (Plan::new(&model), Input { gravity: DVec3::ZERO, ..Input::default() });
            let mut apart = Apart::new(&model, &plan, &input, Rule::Midpoint);
            for t in &mut apart.trial {
                (t.force, t.torque) = (DVec3::ZERO, DVec3::ZERO);
            }
            // Without impulses the imbalance is −S̄ᵀ(those of the springs), and the displacement S̄ Δ(coordinates); S̄ is 1 for free rotations.
            let (joint, imbalance, any) = apart.joint();
            let Apart { part, now, trial } = &apart;
            let s = sign(&plan.nodes[2]);
            let turned = (trial[2].a - trial[1].a) * s;
            let by_turn = |v: DVec3, g: &[f64]| -s * (0..3).map(|k| g[k] * v[k]).sum::<f64>();
            let work = match joint {
                Joint::Ball { .. } => by_turn(turned, &imbalance),
                Joint::Any(_) => {
                    let (mut work, mut n) = (0.0, 0);
                    for axis in (0..3).filter(|&axis| !mask.holds_translation(axis)) {
                        work -= s * imbalance[n] * (trial[2].slide[axis] - now[2].slide[axis]);
                        n += 1;
                    }
                    work + match mask.rotation() {
                        RotationKind::Held => 0.0,
                        RotationKind::Axis(_) => {
                            let angle = trial[2].angle - now[2].angle;
                            let off = (turned - any.free[n].left * angle).length();
                            assert!(off < 1e-13, "{} flipped {flipped}: turned by {off:e} else", mask.name());
                            -s * imbalance[n] * angle
                        }
                        RotationKind::Free => by_turn(turned, &imbalance[n..]),
                        RotationKind::Cardan(_) => {
                            // turned = S̄ y
                            let (e, f) = (any.free[n].left, any.free[n + 1].left);
                            let (ee, ef, ff) = (e.length_squared(), e.dot(f), f.length_squared());
                            let (x, y) = (e.dot(turned), f.dot(turned));
                            let det = ee * ff - ef * ef;
                            let (x, y) = ((ff * x - ef * y) / det, (ee * y - ef * x) / det);
                            -s * (imbalance[n] * x + imbalance[n + 1] * y)
                        }
                    }
                }
                Joint::Weld | Joint::Floating => 0.0,
            };
            let mut next = now.clone();
            part.finish(now, trial, &mut next);
            let given = part.energy(now).1 - part.energy(&next).1;
            let off = (work / part.h - given).abs();
            assert!(off < 1e-12, "mask {} flipped {flipped}: {work:e}/h, not {given:e}", mask.name());
            springs += u32::from(given.abs() > 1e-3);
        });
        assert!(springs > 100, "{springs}");
    }

    #[test]
    fn derivatives_of_joints_match_central_differences() {
        // The imbalance of every kind of joint, with impulses, springs, dampers, limits and motors, against K_q q + K_p ρ_p of newton.rs, S̄ᵀ of
        // constant impulses being part of K. Steps of 1e-6: their squares, and rounding of 1e-16/1e-6.
        let mut limits = 0;
        each_joint(|mask, flipped| {
            for rule in [Rule::Midpoint, Rule::Backward] {
                let turns = mask.rotation();
                let model = pair(mask, flipped, |spec| {
                    let spring = RotationSpring { stiffness: 200.0, rest: exp(vector(3)), ..RotationSpring::default() };
                    let slide = SlideSpring { stiffness: 300.0, rest: vector(9) * 0.1, damping: 2.0 };
                    spec.rotation_spring(RotationSpring { damping: 2.0, ..spring }).slide_spring(slide).limits(Limits {
                        angle: matches!(turns, RotationKind::Axis(_) | RotationKind::Free)
                            .then_some(Range::new(-0.1, 0.1)),
                        swing: (turns == RotationKind::Free).then_some(SwingEllipse { about_y: 0.2, about_z: 0.3 }),
                        slide: (!mask.holds_translation(0)).then_some(Range::new(-0.01, 0.01)),
                        stiffness: 500.0,
                        slide_stiffness: 500.0,
                        ..Limits::default()
                    })
                });
                let (plan, input) = (Plan::new(&model), Input::default());
                let mut apart = Apart::new(&model, &plan, &input, rule);
                (apart.trial[2].force, apart.trial[2].torque) = (vector(21), vector(24));
                let (joint, _, any) = apart.joint();
                let n = match joint {
                    Joint::Ball { .. } => 3,
                    Joint::Any(_) => any.count,
                    Joint::Weld | Joint::Floating => 0,
                };
                // Free directions one by one, then turns of the parent.
                for direction in 0..n + 3 {
                    let (mut q, mut rho_p) = ([0.0; 6], DVec3::ZERO);
                    if direction < n {
                        q[direction] = 1.0
                    } else {
                        rho_p = DVec3::AXES[direction - n]
                    }
                    let moved = |size: f64| {
                        let mut trial = apart.trial.clone();
                        let (mut u, mut rho) = (rho_p.cross(trial[2].parent1), rho_p);
                        for k in 0..n {
                            let free = if let Joint::Any(_) = joint {
                                any.free[k]
                            } else {
                                Free { turns: true, left: DVec3::AXES[k], right: DVec3::AXES[k] }
                            };
                            if free.turns { rho += free.right * q[k] } else { u += free.right * q[k] }
                        }
                        let u = u - rho.cross(trial[2].own1);
                        trial[2].x += u * size;
                        for (i, rho) in [(1, rho_p), (2, rho)] {
                            trial[i].a = cayley_vector(exp(rho * size) * trial[i].q * apart.now[i].q.conjugate());
                        }
                        apart.part.place(&apart.now, &mut trial);
                        Apart { part: apart.part, now: apart.now.clone(), trial }.joint().1
                    };
                    let (plus, minus) = (moved(1e-6), moved(-1e-6));
                    for r in 0..n {
                        let difference = (plus[r] - minus[r]) / 2e-6;
                        let derivative = match joint {
                            Joint::Ball { k_own, k_parent } => {
                                let own = DVec3::new(q[0], q[1], q[2]) + rho_p;
                                (k_own * own - k_parent * rho_p)[r]
                            }
                            _ => (0..n).map(|c| any.k[r][c] * q[c]).sum::<f64>() + any.k_parent[r].dot(rho_p),
                        };
                        assert!(
                            (difference - derivative).abs() < 1e-6,
                            "{} {rule:?} flipped {flipped}, {r} by {direction} of {n}: {derivative}, not {difference}",
                            mask.name()
                        );
                    }
                }
                let mut sums = Sums::default();
                let mut unused = AnyJoint::NONE;
                let (now, trial) = (&apart.now, &apart.trial);
                apart.part.joint(
                    &plan.nodes[2],
                    &now[1],
                    &now[2],
                    &trial[1],
                    &trial[2],
                    &mut [0.0; 6],
                    true,
                    &mut sums,
                    &mut unused,
                );
                limits += sums.limits;
            }
        });
        assert!(limits > 50, "{limits}");
    }
}
