//! What springs, dampers, motors and limits do at the two ends of a part: half of their impulse at each.
//!
//! Gentle forces are explicit. At each end `V += ½h M⁻¹ F(q, V)`: with the flight between them this is the rule of Störmer and Verlet, of
//! second order. A force whose `h²k + hc` is not small against the inertia it moves would explode: it is implicit. With `W`, `K`, `D` as in
//! `forces.rs` and `u` the mean velocity of the flight to come,
//!
//! ```text
//! impulse = ½h (W − (h K + D) u) = ½h W − G u,     G = ½h² K + ½h D                                        (1)
//! start:  u = V + ½h a, with a the acceleration of the flight;     end: u = V, the velocity there          (2)
//! ```
//! Each half is a linear equation for the velocity after it, `(M + G) ΔV = ½h W − G u`, solved together with the joints. It looks a whole part
//! ahead, as the backward Euler rule does: of first order, and damped the more the stiffer (an oscillation ω loses amplitude at the rate
//! `½hω²`), so that any stiffness is at rest after a step or two. A character that hangs at rest stays at rest, velocities included: there the two halves
//! of spring and gravity cancel. As h falls, more and more forces are gentle: in the limit the step is of second order.
//!
//! A limit pushes one way. It is always implicit, and let go when (1) would pull.

use super::system::Mass;
use crate::forces::{self, Derivatives, Force, PairBlock, Source};
use crate::input::{Grip, Input};
use crate::maths::block::{Vector, add_scaled, from_wrench};
use crate::maths::rotation::log;
use crate::maths::{Twist, Wrench};
use crate::model::{Model, State};
use glam::{DMat3, DVec3};

/// A body may feel explicit forces whose `(h²k + hc)/m` add up to this. Then no eigenvalue of `h² M⁻¹ K` is above twice that, 1, and the explicit
/// rule is stable up to 4.
const GENTLE: f64 = 0.5;

/// A force of (1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Soft {
    pub a: usize,
    /// `None` is the world.
    pub b: Option<usize>,
    pub force: Force,
    /// The sign that its size must keep; 0: it may push and pull.
    pub pushes: f64,
    /// `(h²k + hc)/m`.
    ratio: f64,
}

/// The forces at one end of a part.
pub(super) struct Kicks {
    acting: Vec<Soft>,
    /// The implicit ones.
    pub soft: Vec<Soft>,
    /// Impulses of the explicit ones, by body.
    pub explicit: Vec<Wrench>,
    /// Sum of ratios, by body.
    load: Vec<f64>,
    /// How many forces the joints and anchor springs may have.
    most: usize,
    pub limits_active: u32,
}

impl Kicks {
    pub(super) fn new(model: &Model) -> Kicks {
        let of_joints = model.joints().iter().map(|j| {
            let (turn, slide) = (j.rotation_spring, j.slide_spring);
            let limits = [j.limits.angle.is_some(), j.limits.swing.is_some(), j.limits.slide.is_some()];
            usize::from(turn.stiffness > 0.0 || turn.damping > 0.0)
                + if slide.stiffness > 0.0 || slide.damping > 0.0 { 3 } else { 0 }
                + usize::from(j.motor.is_some())
                + limits.into_iter().filter(|l| *l).count()
        });
        let most = of_joints.sum::<usize>() + model.anchor_springs().len() + 2 * model.trackers().len();
        Kicks {
            acting: Vec::with_capacity(most),
            soft: Vec::with_capacity(most),
            explicit: vec![Wrench::ZERO; model.bodies().len()],
            load: vec![0.0; model.bodies().len()],
            most,
            limits_active: 0,
        }
    }

    /// Collects the forces at the poses of `state`, whose masses are given, for a part `h`. Limits and motors look ahead with its velocities; explicit dampers act
    /// on the velocities `seen`; `loose` grips pull like springs.
    pub(super) fn gather(
        &mut self,
        (model, input): (&Model, &Input),
        (state, masses): (&State, &[Mass]),
        seen: &[Twist],
        h: f64,
        loose: &[Grip],
    ) {
        let Kicks { acting, soft, explicit, load, most, .. } = self;
        acting.clear();
        soft.clear();
        let room = *most + input.drags.len() + 2 * loose.len();
        acting.reserve(room);
        soft.reserve(room);
        explicit.fill(Wrench::ZERO);
        load.fill(0.0);
        self.limits_active = forces::collect(model, input, state, h, Derivatives::Symmetric, |found| {
            let (a, b) = (found.a.index(), found.b.map(|b| b.index()));
            let (force, mut pushes) = (*found.force, 0.0);
            if let (Source::Limit(_), Force::Along(limit)) = (found.source, found.force) {
                // where the present velocity leads: beyond the end that is meant
                let rate = dot(limit.a, state, Some(a)) + dot(limit.b, state, b);
                pushes = (limit.force - h * limit.stiffness * rate).signum();
            }
            let ratio = ratio(&force, &masses[a], b.map(|b| &masses[b]), h);
            acting.push(Soft { a, b, force, pushes, ratio });
        });
        for grip in loose {
            pull(grip, state, masses, |force| {
                acting.push(Soft { a: grip.body.index(), b: None, force, pushes: 0.0, ratio: f64::INFINITY });
            });
        }
        for force in acting.iter() {
            load[force.a] += force.ratio;
            if let Some(b) = force.b {
                load[b] += force.ratio;
            }
        }
        for force in acting.iter() {
            let gentle = |body: usize| load[body] <= GENTLE;
            let explicitly = force.ratio == 0.0 || (gentle(force.a) && force.b.is_none_or(gentle));
            if force.pushes != 0.0 || !explicitly {
                soft.push(*force);
                continue;
            }
            let other = force.b.map_or(Twist::ZERO, |b| seen[b]);
            let [on_a, on_b] = force.force.wrenches_at(seen[force.a], other);
            explicit[force.a] += on_a * (0.5 * h);
            if let Some(b) = force.b {
                explicit[b] += on_b * (0.5 * h);
            }
        }
    }

    /// What is owed to (1) when the bodies move with `mean` velocities: `r += ½h W − G u`, by body.
    pub(super) fn owed(&self, h: f64, mean: &[Twist], r: &mut [Vector]) {
        for soft in &self.soft {
            let [on_a, on_b] = soft.impulses(h, mean);
            add_scaled(&mut r[soft.a], 1.0, &on_a);
            if let Some(b) = soft.b {
                add_scaled(&mut r[b], 1.0, &on_b);
            }
        }
    }

    /// Lets go of the limits that would pull at these velocities; whether there were any.
    pub(super) fn let_go(&mut self, h: f64, mean: &[Twist]) -> bool {
        let before = self.soft.len();
        self.soft.retain(|soft| {
            let Force::Along(f) = soft.force else { return true };
            soft.pushes == 0.0 || (f.force - (h * f.stiffness + f.damping) * soft.rate(mean)) * soft.pushes >= 0.0
        });
        self.limits_active = self.limits_active.saturating_sub((before - self.soft.len()) as u32);
        self.soft.len() < before
    }
}

impl Soft {
    /// `G` of (1).
    pub(super) fn block(&self, h: f64) -> PairBlock {
        self.force.block(0.5 * h * h, 0.5 * h)
    }

    /// The row of a force along one, applied to these velocities.
    fn rate(&self, mean: &[Twist]) -> f64 {
        let Force::Along(f) = self.force else { return 0.0 };
        let side = |row: Twist, v: Twist| row.linear.dot(v.linear) + row.angular.dot(v.angular);
        side(f.a, mean[self.a]) + self.b.map_or(0.0, |b| side(f.b, mean[b]))
    }

    /// (1) on both sides.
    fn impulses(&self, h: f64, mean: &[Twist]) -> [Vector; 2] {
        let (a, b) = (mean[self.a], self.b.map_or(Twist::ZERO, |b| mean[b]));
        // The damping of a force with `h k + c` in place of c is what (1) takes off.
        let mut force = self.force;
        match &mut force {
            Force::Along(f) => f.damping += h * f.stiffness,
            Force::Turning(f) => f.torque -= f.stiffness * (a.angular - b.angular) * h,
            Force::Anchored(f) => f.force -= f.stiffness * (a.at(f.r_a) - b.at(f.r_b)) * h,
        }
        force.wrenches_at(a, b).map(|w| from_wrench(w * (0.5 * h)))
    }

    /// The same force without its size: what enters the matrix.
    pub(super) fn shape(&self) -> Soft {
        let mut shape = *self;
        match &mut shape.force {
            Force::Along(f) => f.force = 0.0,
            Force::Turning(f) => f.torque = DVec3::ZERO,
            Force::Anchored(f) => f.force = DVec3::ZERO,
        }
        (shape.pushes, shape.ratio) = (0.0, 0.0);
        shape
    }
}

fn dot(row: Twist, state: &State, body: Option<usize>) -> f64 {
    let v = body.map_or(Twist::ZERO, |b| state.bodies[b].velocity);
    row.linear.dot(v.linear) + row.angular.dot(v.angular)
}

/// `(h²k + hc)/m` of a force, m the mass it meets on both sides; for all rotations or a point an upper bound.
fn ratio(force: &Force, a: &Mass, b: Option<&Mass>, h: f64) -> f64 {
    let both = |side: &dyn Fn(&Mass, usize) -> f64| side(a, 0) + b.map_or(0.0, |b| side(b, 1));
    let gain = |k: DMat3, c: f64| h * h * (k.x_axis.x + k.y_axis.y + k.z_axis.z) + h * c;
    let trace = |m: DMat3| m.x_axis.x + m.y_axis.y + m.z_axis.z;
    match force {
        Force::Along(f) => {
            let inverse = both(&|mass, side| {
                let row = [f.a, f.b][side];
                row.linear.length_squared() * mass.inverse + row.angular.dot(mass.inverse_inertia * row.angular)
            });
            (h * h * f.stiffness + h * f.damping) * inverse
        }
        Force::Turning(f) => gain(f.stiffness, f.damping) * both(&|mass, _| trace(mass.inverse_inertia)),
        Force::Anchored(f) => {
            gain(f.stiffness, f.damping)
                * both(&|mass, side| mass.inverse + [f.r_a, f.r_b][side].length_squared() * trace(mass.inverse_inertia))
        }
    }
}

/// Circular frequency of a grip out of reach, as a critically damped spring on its body alone \[rad/s\].
const PULL: f64 = 20.0;

/// A grip out of reach pulls like a spring, `k = m ω²`, `c = 2 m ω`.
fn pull(grip: &Grip, state: &State, masses: &[Mass], mut visit: impl FnMut(Force)) {
    let (body, mass) = (&state.bodies[grip.body.index()], &masses[grip.body.index()]);
    let r = body.orientation * grip.point;
    let m = 1.0 / mass.inverse;
    let spring = forces::PointSpring { stiffness: m * PULL * PULL, damping: 2.0 * m * PULL, rest_length: 0.0 };
    visit(Force::Anchored(spring.force(r, grip.target, body.position + r - grip.target, Derivatives::Symmetric)));
    if let Some(target) = grip.rotation {
        let phi = log(body.orientation * target.conjugate());
        let moments = mass.inverse_inertia.inverse();
        let i = (moments.x_axis.x + moments.y_axis.y + moments.z_axis.z) / 3.0;
        visit(Force::Turning(forces::rotation_spring(phi, i * PULL * PULL, 2.0 * i * PULL, Derivatives::Symmetric)));
    }
}
