//! The laws of balls and hinges over a part: those of `model/laws.rs`, at the trial.

use super::*;
use crate::model::Swing;
use crate::model::laws::{Impulse, Spring, Turned};
use crate::model::limit::twist_direction;
use crate::solver::tree::kernel::linear;

/// Turns of springs beyond this, squared \[rad²\], may be on either way round: not calm.
pub(super) const FARTHEST: f64 = 6.0;

#[inline(always)]
pub(super) fn twice<T: Real>(x: T) -> T {
    x + x
}

/// A vector turned by a rotation.
#[inline(always)]
pub(super) fn turned<T: Real>(q: Q<T>, v: V3<T>) -> V3<T> {
    let t = q.v.cross(v);
    let t = t + t;
    t.madd(q.w, v + q.v.cross(t))
}

impl<T: Real> Turning<T> {
    /// The rotation of the child's joint frame in the parent's.
    #[inline(always)]
    pub(super) fn relative(&self, q_a: Q<T>, q_b: Q<T>) -> Q<T> {
        self.frame_b.conjugate().times(q_b.conjugate().times(q_a)).times(self.frame_a)
    }

    /// Cosine and sine of half the turn, but for a common factor.
    #[inline(always)]
    pub(super) fn half_turn(&self, q_a: Q<T>, q_b: Q<T>) -> (T, T) {
        let p = q_b.conjugate().times(q_a);
        (linear(&self.cosine, &p), linear(&self.sine, &p))
    }

    /// Positive where a limit of a ball may act.
    #[inline(always)]
    fn near(&self, relative: &Q<T>, angle: T) -> T {
        let Q { w, v } = *relative;
        let mut over = v.y.madd(v.y, v.z * v.z) - T::splat(self.near_swing);
        if self.angle.is_some() {
            let (x, w) = (v.x * w.sign(), w.abs());
            let [min, max] = self.near_twist;
            over = over.max(w.nmadd(T::splat(max), x)).max(w.madd(T::splat(min), -x));
            over = over.max(angle.abs() - T::splat(3.0)); // turns are counted
        }
        over
    }

    /// Energy of a ball's limits; and how many act, added.
    #[inline(always)]
    pub(super) fn energy(&self, q_a: Q<T>, q_b: Q<T>, last: T, limits: &mut T) -> T {
        let relative = self.relative(q_a, q_b);
        let mut energy = T::zero();
        if !self.near(&relative, last).any_above(0.0) {
            return energy;
        }
        let one = T::splat(1.0);
        if let Some(limit) = &self.angle {
            let angle = turn_of_half(relative.v.x, relative.w, last).0;
            energy = limit.at(angle).energy;
            *limits = *limits + (angle - limit.max).max(limit.min - angle).if_positive(one, T::zero());
        }
        if let Some((ellipse, limit)) = &self.swing {
            let swing = Swing::of(relative);
            let (violation, _) = swing.violation(ellipse);
            let on = violation.min(swing.is_meaningful());
            energy = energy + on.if_positive(limit.at(violation).energy, T::zero());
            *limits = *limits + on.if_positive(one, T::zero());
        }
        energy
    }

    /// Energy of a hinge's spring and limit; and how many limits act, added.
    #[inline(always)]
    pub(super) fn hinge_energy(&self, k: T, angle: T, limits: &mut T) -> T {
        let mut energy = Spring { stiffness: k, damping: T::zero(), rest: self.rest_angle }.at(angle).energy;
        if let Some(limit) = &self.angle {
            energy = energy + limit.at(angle).energy;
            *limits = *limits + (angle - limit.max).max(limit.min - angle).if_positive(T::splat(1.0), T::zero());
        }
        energy
    }
}

/// A ball between the start and the trial.
pub(super) struct Ball<'a, T> {
    pub(super) node: &'a Node,
    pub(super) fixed: &'a Fixed<T>,
    pub(super) turning: Option<&'a Turning<T>>,
    pub(super) aim: Option<&'a Aim<T>>,
    pub(super) springs: &'a Springs<T>,
    pub(super) start: &'a Start<T>,
    /// `ω_a − ω_b` at the start.
    pub(super) relative: V3<T>,
    /// Orientations and Cayley vectors of both sides.
    pub(super) q: (Q<T>, Q<T>),
    pub(super) a: (V3<T>, V3<T>),
    /// Side b's axes at the start.
    pub(super) start_b: &'a M3<T>,
}

/// Impulse and derivative on three rotations: `−δτ = k_a ρ_a − k_b ρ_b`.
pub(super) struct Law<T> {
    pub(super) tau: V3<T>,
    pub(super) k_a: M3<T>,
    pub(super) k_b: M3<T>,
}

impl<T: Real> Law<T> {
    #[inline(always)]
    fn chosen(on: T, yes: &Self, no: &Self) -> Self {
        Law {
            tau: V3::chosen(on, yes.tau, no.tau),
            k_a: M3::chosen(on, &yes.k_a, &no.k_a),
            k_b: M3::chosen(on, &yes.k_b, &no.k_b),
        }
    }

    /// With a limit whose coordinate grows along `g`.
    #[inline(always)]
    fn with<const FACTOR: bool>(&self, g: V3<T>, over: Impulse<T>) -> Self {
        let mut law = Law { tau: g.madd(over.impulse, self.tau), k_a: self.k_a, k_b: self.k_b };
        if FACTOR {
            let slope = g.scale(over.slope);
            law.k_a = law.k_a.plus_outer(slope, g);
            law.k_b = law.k_b.plus_outer(slope, g);
        }
        law
    }
}

impl<T: Real> Ball<'_, T> {
    #[inline(always)]
    pub(super) fn over<const FACTOR: bool>(&self, times: &Times<T>, sums: &mut Sums<T>) -> Law<T> {
        let ((q_a, q_b), (a_a, a_b)) = (self.q, self.a);
        let half = T::splat(0.5);
        let mut law = Law { tau: V3::zero(), k_a: M3::zero(), k_b: M3::zero() };
        if self.node.flags & SPRING != 0 {
            let error = q_b.conjugate().times(q_a).times(self.fixed.rest_inverse);
            let axis = self.start_b.times(error.v);
            let turn1 = axis.scale(twice(error.half_angle_over_sine()) * error.w.sign());
            sums.refuse(turn1.dot(turn1) - T::splat(FARTHEST));
            let spring = Turned { k: times.h * self.springs.k, a_a, a_b, turn0: self.start.turn, turn1 };
            let (tau, gradient) = spring.torque();
            law.tau = tau;
            if FACTOR {
                (law.k_a, law.k_b) = spring.near_derivative(tau, &gradient, error, axis);
            }
        }
        let Damper { strength, start } = self.start.damper;
        let delta = a_a - a_b;
        law.tau = law.tau - delta.scale(strength) - self.relative.scale(start);
        if FACTOR {
            let by = half * strength;
            law.k_a = law.k_a.plus_identity(strength).minus(&M3::skew(a_a.scale(by)));
            law.k_b = law.k_b.plus_identity(strength).minus(&M3::skew(a_b.scale(by)));
        }
        if self.node.flags & (LIMITS | MOTOR) == 0 {
            return law;
        }
        if let Some(turning) = self.turning {
            law = self.limits::<FACTOR>(turning, law, delta, times, sums);
        }
        if let Some(Aim::Turn(servo, rest)) = self.aim {
            let error = q_a.times(*rest).times(q_b.conjugate());
            let (phi, s) = error.log();
            let (torque, share) = servo.torque(phi, delta.scale(times.inverse_h));
            let torque = torque.scale(share);
            law.tau = torque.madd(times.h, law.tau);
            sums.work = sums.work + torque.dot(delta);
            if FACTOR {
                let within = (T::splat(1.0) - share).if_positive(T::zero(), T::splat(1.0));
                let (k, c) = (times.h * servo.stiffness * within, servo.damping * within);
                let symmetric = M3 { x: s.row(0), y: s.row(1), z: s.row(2) }.scaled(k).plus_identity(c);
                let turn = M3::skew(phi.scale(half * k));
                let by = half * c;
                law.k_a = law.k_a.plus(&symmetric).minus(&turn).minus(&M3::skew(a_a.scale(by)));
                law.k_b = law.k_b.plus(&symmetric).plus(&turn).minus(&M3::skew(a_b.scale(by)));
            }
        }
        law
    }

    #[inline(always)]
    fn limits<const FACTOR: bool>(
        &self,
        turning: &Turning<T>,
        mut law: Law<T>,
        delta: V3<T>,
        times: &Times<T>,
        sums: &mut Sums<T>,
    ) -> Law<T> {
        let (q_a, q_b) = self.q;
        let relative = turning.relative(q_a, q_b);
        if !turning.near(&relative, self.start.angle).any_above(0.0) {
            return law;
        }
        let one = T::splat(1.0);
        let f_b = q_b.times(turning.frame_b).matrix();
        if let Some(limit) = &turning.angle {
            let angle = turn_of_half(relative.v.x, relative.w, self.start.angle).0;
            let (x_a, x_b) = (q_a.times(turning.frame_a).matrix().column(0), f_b.column(0));
            let g = twist_direction(x_a, x_b);
            let (over, on) = limit.over(times.h, angle, g.dot(delta));
            let mut with = law.with::<FACTOR>(g, over);
            if FACTOR {
                // The direction g = (x_a + x_b)/(1 + x_a·x_b) turns with both sides.
                let scale = over.impulse * (one + x_a.dot(x_b)).max(T::splat(1e-6)).recip();
                let (g, across) = (g.scale(scale), x_a.cross(x_b));
                with.k_a = with.k_a.plus(&M3::skew(x_a.scale(scale))).plus_outer(g, across);
                with.k_b = with.k_b.minus(&M3::skew(x_b.scale(scale))).plus_outer(g, across);
            }
            law = Law::chosen(on, &with, &law);
            sums.limits = sums.limits + on;
        }
        if let Some((ellipse, limit)) = &turning.swing {
            let swing = Swing::of(relative);
            let (violation, direction) = swing.violation(ellipse);
            let g = f_b.times(direction);
            let (over, on) = limit.over(times.h, violation, g.dot(delta));
            let on = swing.is_meaningful().if_positive(on, T::zero());
            let mut with = law.with::<FACTOR>(g, over);
            if FACTOR {
                let h = f_b.product(&swing.turning(ellipse)).product_transposed(&f_b).scaled(over.impulse);
                with.k_a = with.k_a.minus(&h);
                with.k_b = with.k_b.minus(&h).minus(&M3::skew(g.scale(over.impulse)));
            }
            law = Law::chosen(on, &with, &law);
            sums.limits = sums.limits + on;
        }
        law
    }
}

/// A hinge between the start and the trial.
pub(super) struct Hinge<'a, T> {
    pub(super) turning: &'a Turning<T>,
    pub(super) aim: &'a Aim<T>,
    pub(super) springs: &'a Springs<T>,
    pub(super) start: &'a Start<T>,
    /// `ω_a − ω_b` at the start.
    pub(super) relative: V3<T>,
    pub(super) q: (Q<T>, Q<T>),
    /// Cayley vectors of the body and of its parent.
    pub(super) a: (V3<T>, V3<T>),
    /// Side a's axes at both ends, and side b's at the end.
    pub(super) r_a: (&'a M3<T>, &'a M3<T>),
    pub(super) r_b: &'a M3<T>,
    pub(super) flipped: bool,
    /// What the joint must supply.
    pub(super) torque: V3<T>,
}

/// What newton.rs, (3), needs of a hinge.
pub(super) struct OneTurn<T> {
    pub(super) left: V3<T>,
    pub(super) right: V3<T>,
    pub(super) closing: V3<T>,
    pub(super) imbalance: T,
    pub(super) k: T,
    pub(super) k_parent: V3<T>,
}

impl<T: Real> Hinge<'_, T> {
    #[inline(always)]
    pub(super) fn over<const FACTOR: bool>(&self, times: &Times<T>, sums: &mut Sums<T>) -> OneTurn<T> {
        let Hinge { turning, start, a: (a_own, a_parent), .. } = *self;
        let (half, quarter, one) = (T::splat(0.5), T::splat(0.25), T::splat(1.0));
        let sign = if self.flipped { T::splat(-1.0) } else { one };
        let (axis0, right) = (self.r_a.0.times(turning.axis_a), self.r_a.1.times(turning.axis_a));
        let axis_b = self.r_b.times(turning.axis_b);
        let mean = (axis0 + right).scale(half);
        let (cosine, sine) = turning.half_turn(self.q.0, self.q.1);
        let angle = turn_of_half(sine, cosine, start.angle).0;
        let delta = angle - start.angle;
        // a_a − a_b = l n̄ (x¹ − x⁰),  l = (1 + ¼ a_a·a_b) tan(½Δx)/(½Δx),  n̄ the mean axis
        let (tangent, slope) = tangent_ratio(delta);
        let share = a_own.dot(a_parent).madd(quarter, one);
        let length = share * tangent;
        let left = mean.scale(length);

        let rate = axis0.dot(self.relative);
        let spring = Spring { stiffness: self.springs.k, damping: T::zero(), rest: turning.rest_angle };
        let spring = spring.over(Rule::Midpoint, times.h, start.angle, angle);
        let Damper { strength, start: damped } = start.damper;
        let mut tau = damped.nmadd(rate, strength.nmadd(delta, spring.impulse));
        let mut k = spring.slope + strength;
        if let Some(limit) = &turning.angle {
            let (over, on) = limit.over(times.h, angle, delta);
            tau = on.if_positive(tau + over.impulse, tau);
            k = on.if_positive(k + over.slope, k);
            sums.limits = sums.limits + on;
        }
        let mut rest = self.torque;
        if let Aim::Line(servo) = self.aim {
            let motor = servo.over(times.h, times.inverse_h, start.angle, angle);
            let size = left.dot(left).sqrt();
            sums.work = (motor.impulse * size * delta).madd(times.inverse_h, sums.work);
            // A motor gives its torque about the axis, not by the angle.
            rest = left.nmadd(sign * motor.impulse * size.recip(), rest);
            k = motor.slope.madd(size, k);
        }
        let mut turn = OneTurn {
            left,
            right,
            closing: right.cross(axis_b).scale(right.dot(axis_b).recip() * sign),
            imbalance: left.dot(rest) - sign * tau,
            k,
            k_parent: V3::zero(),
        };
        if FACTOR {
            let along = mean.dot(rest);
            let by_turn = quarter * tangent * along;
            turn.k = turn.k + (sign * share * slope).madd(along, by_turn * a_parent.dot(right));
            turn.k_parent = right.cross(rest).scale(half * length) + (a_own + a_parent).scale(by_turn);
        }
        turn
    }
}
