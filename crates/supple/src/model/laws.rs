//! The laws of springs, limits, motors and pulls, each written once, over [`Real`].
//!
//! A coordinate x is an angle, a slide, the violation of a swing, a rotation vector or a stretch; where it comes from and how it grows when
//! bodies move is told by joints and solvers. A law says what follows from a value of it and nothing else:
//!
//! ```text
//! energy E(x)      force F = −dE/dx      slope K = −dF/dx                                                      (1)
//! ```
//! A rule turns a law into the impulse of a part h of a step, and its derivative by the end of the part:
//!
//! ```text
//! tangent      F(x*) − K(x*)(x − x*) − c ẋ,  x* = x or where the present rate leads: linear, for one solve      (2)
//! midpoint     h times the mean of the forces at both ends; on three rotations, and between points, the discrete gradient,
//!              whose work is the energy given up                                                               (3)
//! backward     h F(x₁)                                                                                         (4)
//! ```
//! Energies, the work of motors, the reference in `forces.rs`, the kernels of four lanes and the default step all read these.

use super::{AnchorSpring, Limits, Motor, Range, RotationSpring, ServoTarget, SlideSpring};
use crate::input::{Input, JointInput};
use crate::maths::lanes::Real;
use crate::maths::rotation::{log_derivative, outer, skew};
use crate::maths::small::{M3, Q, S3, V3, v3};
use glam::{DMat3, DQuat, DVec3};

/// The rule by which an implicit step places forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Second order, keeps energy and momentum.
    Midpoint,
    /// First order, damps.
    Backward,
}

impl Rule {
    /// Share of the end of a part in levers and springs.
    pub(crate) fn end(self) -> f64 {
        match self {
            Rule::Midpoint => 0.5,
            Rule::Backward => 1.0,
        }
    }

    /// Share of the end in a spring to the outside: half while h resolves it (`s = h²k/m` small), all when it does not.
    #[inline(always)]
    pub(crate) fn end_of_pull<T: Real>(self, s: T) -> T {
        let half = T::splat(0.5);
        match self {
            Rule::Midpoint => (half * s).madd((s + T::splat(4.0)).recip(), half),
            Rule::Backward => T::splat(1.0),
        }
    }
}

/// A law at one value of its coordinate, (1).
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    /// E \[J\]
    pub energy: T,
    /// F \[N or N·m\]
    pub force: T,
    /// K \[N/m or N·m/rad\]
    pub slope: T,
}

/// A law by its tangent: `force − slope δx − damping ẋ`, (2).
#[derive(Clone, Copy, Debug)]
pub struct Tangent<T> {
    /// At δx = 0 and at rest.
    pub force: T,
    /// k
    pub slope: T,
    /// c
    pub damping: T,
}

/// Impulse of a part, and minus its derivative by the end of the coordinate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impulse<T = f64> {
    /// \[N·s or N·m·s\]
    pub impulse: T,
    /// \[N·s/m or N·m·s/rad\]
    pub slope: T,
}

// ---------------------------------------------------------------------------------------------------- springs

/// `E = ½ k (x − rest)²` on one coordinate, or `½ k φ²` on the rotation vector from rest; with a damper.
#[derive(Clone, Copy, Debug)]
pub struct Spring<T> {
    /// k
    pub stiffness: T,
    /// c
    pub damping: T,
    /// Of one coordinate; a rotation vector is told from rest.
    pub rest: T,
}

impl<T: Real> Spring<T> {
    /// The spring of a joint's rotations, with these factors on stiffness and damping; `rest` is that of a hinge's angle.
    #[inline(always)]
    pub fn turning(spring: &RotationSpring, rest: f64, (ks, kc): (T, T)) -> Spring<T> {
        Spring {
            stiffness: T::splat(spring.stiffness) * ks,
            damping: T::splat(spring.damping) * kc,
            rest: T::splat(rest),
        }
    }

    /// The spring along one axis of a joint's translations.
    #[inline(always)]
    pub fn sliding(spring: &SlideSpring, axis: usize, (ks, kc): (T, T)) -> Spring<T> {
        Spring {
            stiffness: T::splat(spring.stiffness) * ks,
            damping: T::splat(spring.damping) * kc,
            rest: T::splat(spring.rest[axis]),
        }
    }

    /// (1).
    #[inline(always)]
    pub fn at(&self, x: T) -> At<T> {
        let away = x - self.rest;
        let force = -(self.stiffness * away);
        At { energy: T::splat(-0.5) * force * away, force, slope: self.stiffness }
    }

    /// (2).
    #[inline(always)]
    pub fn tangent(&self, x: T) -> Tangent<T> {
        Tangent { force: self.at(x).force, slope: self.stiffness, damping: self.damping }
    }

    /// Energy and torque at a rotation vector from rest.
    #[inline(always)]
    pub fn at_turn(&self, phi: V3<T>) -> (T, V3<T>) {
        (T::splat(0.5) * self.stiffness * phi.dot(phi), phi.scale(-self.stiffness))
    }

    /// (3) and (4), from `x0` to `x1`; without the damper.
    #[inline(always)]
    pub(crate) fn over(&self, rule: Rule, h: T, x0: T, x1: T) -> Impulse<T> {
        let (start, end) = (T::splat(1.0 - rule.end()), T::splat(rule.end()));
        Impulse { impulse: h * self.at(x0 * start + x1 * end).force, slope: h * self.stiffness * end }
    }
}

/// A damper over a part: impulse `−strength Δ − start · (rate at the start)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damper<T = f64> {
    pub(crate) strength: T,
    pub(crate) start: T,
}

impl<T: Real> Damper<T> {
    /// With a damping of the tension that h does not resolve, `η s/(s+4) h k`: `k = |F| l` is the stiffness that a force F at lever l gives to
    /// the rotation of an inertia I, and `s = h²k/I`.
    #[inline(always)]
    pub(crate) fn with_tension(self, h: T, eta: T, tension: T, inverse_inertia: T) -> Damper<T> {
        let s = h * h * tension * inverse_inertia;
        let share = s * (s + T::splat(4.0)).recip();
        Damper { strength: (eta * share * h).madd(tension, self.strength), start: self.start }
    }
}

impl Damper {
    pub(crate) const NONE: Damper = Damper { strength: 0.0, start: 0.0 };

    /// The damper c over a part h. Under the midpoint rule its weight `θ = 1/(1 − e^−z) − 1/z`, `z = hc/I`, gives one damped joint of
    /// inertia I its exact decay, and stiff dampers no ringing.
    pub(crate) fn over(rule: Rule, h: f64, c: f64, inertia: f64) -> Damper {
        if rule == Rule::Backward {
            return Damper { strength: c, start: 0.0 };
        }
        let z = h * c / inertia;
        let weight = if z < 1e-3 { 0.5 + z / 12.0 } else { 1.0 / (1.0 - (-z).exp()) - 1.0 / z };
        Damper { strength: 2.0 * weight * c, start: h * c * (1.0 - 2.0 * weight) }
    }
}

/// The spring on three rotations by (3): its impulse does exactly the work of its energy `½k|turn|²`.
///
/// The bodies turn by Cayley vectors `a_a`, `a_b`; a turns relative to b by `b`, `cay(a_a) = cay(a_b) cay(b)`. From the
/// composition of Cayley vectors
///
/// ```text
/// a_a − a_b = (1 + ¼ a_a·a_b) (I − ½[a_b])⁻¹ b                                                             (5)
/// ```
/// so the torque `τ = (I + ½[a_b]) σ / (1 + ¼ a_a·a_b)` has the work `τ·(a_a − a_b) = σ·b`: what both bodies turn together does not
/// matter. The torque σ is the mean of those at both ends and what the mean lacks, along b:
///
/// ```text
/// σ = −k(½(t⁰ + t¹) − γ b)      γ = (½|t⁰|² − ½|t¹|² + ½(t⁰ + t¹)·b) / |b|²                                 (6)
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turned<T> {
    /// Stiffness times h.
    pub(crate) k: T,
    pub(crate) a_a: V3<T>,
    pub(crate) a_b: V3<T>,
    /// The turns from rest at both ends, in the axes that b had at the start.
    pub(crate) turn0: V3<T>,
    pub(crate) turn1: V3<T>,
}

/// γ of (6), with its divisor, σ, and `1/(1 + ¼ a_a·a_b)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gradient<T> {
    b: V3<T>,
    gamma: T,
    squared: T,
    sigma: V3<T>,
    share: T,
}

impl<T: Real> Turned<T> {
    #[inline(always)]
    pub(crate) fn torque(&self) -> (V3<T>, Gradient<T>) {
        let Turned { k, a_a, a_b, turn0, turn1 } = *self;
        let half = T::splat(0.5);
        let share = a_a.dot(a_b).madd(T::splat(0.25), T::splat(1.0)).recip();
        let delta = a_a - a_b;
        let b = (delta - a_b.cross(delta).scale(half)).scale(share);
        let sum = turn0 + turn1;
        // The numerator is of third order in b: below a millionth of a radian it is rounding. γ = ±½ are the torques at the start
        // and at the end.
        let squared = b.dot(b) + T::splat(1e-12);
        let lacking = half * (turn0.dot(turn0) - turn1.dot(turn1) + sum.dot(b));
        let gamma = (lacking * squared.recip()).max(-half).min(half);
        let sigma = (sum.scale(half) - b.scale(gamma)).scale(-k);
        ((sigma + a_b.cross(sigma).scale(half)).scale(share), Gradient { b, gamma, squared, sigma, share })
    }

    /// [`derivative`](Turned::derivative) to first order in what turns during the part; `error` is the rotation whose logarithm is `turn1` but for the axes, and
    /// `axis` its vector part in the axes of `turn1`.
    #[inline(always)]
    pub(crate) fn near_derivative(
        &self,
        tau: V3<T>,
        gradient: &Gradient<T>,
        error: Q<T>,
        axis: V3<T>,
    ) -> (M3<T>, M3<T>) {
        let (half, quarter) = (T::splat(0.5), T::splat(0.25));
        let Gradient { sigma, share, .. } = *gradient;
        // G = γ I + (1 − γ)/|q_v|² q_v q_vᵀ − ½[t¹]; without a turn the quotient does not matter.
        let gamma = error.half_angle_over_sine() * error.w.abs();
        let along = (T::splat(1.0) - gamma) * (axis.dot(axis) + T::splat(1e-18)).recip();
        let g = M3::skew(self.turn1.scale(-half)).plus_outer(axis.scale(along), axis).plus_identity(gamma);
        let g = g.scaled(self.k * half * share);
        let turned = g.plus(&g.skewed_by(self.a_b).scaled(half)).minus(&g.times_skew(self.a_b));
        let k_a = turned.plus_outer(tau.scale(quarter), self.a_b);
        let k_b = turned.plus_outer(tau.scale(-quarter), self.a_a).minus(&M3::skew(sigma.scale(half * share)));
        (k_a, k_b)
    }
}

impl Turned<f64> {
    /// `(k_a, k_b)` of `−δτ = k_a ρ_a − k_b ρ_b`; `back` turns from b's axes at the end to those at the start.
    pub(crate) fn derivative(&self, tau: DVec3, gradient: &Gradient<f64>, back: DMat3) -> (DMat3, DMat3) {
        let [a_a, a_b, turn0, turn1] = [self.a_a, self.a_b, self.turn0, self.turn1].map(|v| v.lane(0));
        let Gradient { gamma, squared, share, .. } = *gradient;
        let [b, sigma] = [gradient.b, gradient.sigma].map(|v| v.lane(0));
        let (rate_a, rate_b, rate) = (cayley_rate(a_a), cayley_rate(a_b), cayley_rate(b));
        let sum = turn0 + turn1;
        // By the turn ρ of a relative to b, in b's axes at the start: δt¹ = Gρ, δb = Cρ, ½δ|t¹|² = t¹·ρ.
        let g = log_derivative(turn1);
        let mut relative = g * 0.5 - rate * gamma;
        if gamma.abs() < 0.5 {
            let lacking = (g.transpose() * b + rate.transpose() * sum) * 0.5 - turn1;
            relative -= outer(b, (lacking - rate.transpose() * b * (2.0 * gamma)) / squared);
        }
        let turned = (relative + skew(a_b) * relative * 0.5) * back * (self.k * share);
        let by_a = outer(tau, rate_a.transpose() * a_b) * (0.25 * share);
        let by_b = outer(tau, rate_b.transpose() * a_a) * (0.25 * share) + skew(sigma) * rate_b * (0.5 * share);
        (turned + by_a, turned - by_b)
    }
}

/// `δa = cayley_rate(a) ρ`: how the Cayley vector changes when the end pose turns by ρ.
pub(crate) fn cayley_rate(a: DVec3) -> DMat3 {
    DMat3::IDENTITY - skew(a) * 0.5 + outer(a, a) * 0.25
}

// ----------------------------------------------------------------------------------------------------- limits

/// A soft limit of one coordinate: nothing within the range; beyond it by `v > 0` a push back that sets in over the width w,
///
/// ```text
/// F = k v²/2w  (v < w),   k (v − w/2)  (v ≥ w)                                                                   (7)
/// ```
/// and, while it is passed, a damper c. Together they push and never pull. The swing of a ball is a range of its violation, open below.
///
/// The force sets in smoothly because Newton's method, and a body at rest on its limit, would otherwise see a stiffness that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit<T = f64> {
    /// Least that is allowed.
    pub min: T,
    /// Most that is allowed.
    pub max: T,
    /// k
    pub stiffness: T,
    /// c
    pub damping: T,
    /// w
    pub width: T,
    /// 1/w
    pub inverse_width: T,
}

impl Limits {
    /// Angular limits set in over this much \[rad\].
    pub const WIDTH: f64 = 0.02;

    /// The law of a hinge's angle or a ball's twist; none without such a limit, or where it is hard: that is a row, not a force.
    #[inline]
    pub fn angle_law(&self) -> Option<Limit> {
        self.law(self.angle?, self.stiffness, self.damping, Limits::WIDTH)
    }

    /// The law of the violation of a ball's swing.
    #[inline]
    pub fn swing_law(&self) -> Option<Limit> {
        self.swing?;
        self.law(Range::new(f64::NEG_INFINITY, 0.0), self.stiffness, self.damping, Limits::WIDTH)
    }

    /// The law of the position along X. It sets in over a thousandth of its range, of a metre where that is longer.
    #[inline]
    pub fn slide_law(&self) -> Option<Limit> {
        let range = self.slide?;
        let width = (1e-3 * (range.max - range.min).abs().min(1.0)).max(1e-9);
        self.law(range, self.slide_stiffness, self.slide_damping, width)
    }

    /// Whether any coordinate has a soft limit.
    pub(crate) fn has_law(&self) -> bool {
        !self.are_hard() && (self.angle.is_some() || self.swing.is_some() || self.slide.is_some())
    }

    fn law(&self, range: Range, stiffness: f64, damping: f64, width: f64) -> Option<Limit> {
        (!self.are_hard()).then_some(Limit::new(range, stiffness, damping, width))
    }
}

impl Limit {
    /// Of this range.
    #[inline]
    pub fn new(Range { min, max }: Range, stiffness: f64, damping: f64, width: f64) -> Limit {
        Limit { min, max, stiffness, damping, width, inverse_width: 1.0 / width }
    }

    /// The same in every lane.
    #[inline(always)]
    pub fn splat<T: Real>(&self) -> Limit<T> {
        Limit {
            min: T::splat(self.min),
            max: T::splat(self.max),
            stiffness: T::splat(self.stiffness),
            damping: T::splat(self.damping),
            width: T::splat(self.width),
            inverse_width: T::splat(self.inverse_width),
        }
    }

    /// Force at an instant, damper included.
    pub fn force(&self, x: f64, rate: f64) -> f64 {
        let excess = Range::new(self.min, self.max).excess(x);
        let side = excess.signum();
        let size = (self.damping * rate - self.at(x).force) * side;
        if excess == 0.0 { 0.0 } else { -side * size.max(0.0) }
    }
}

impl<T: Real> Limit<T> {
    /// (1), of the elastic part.
    #[inline(always)]
    pub fn at(&self, x: T) -> At<T> {
        let (o, k) = (T::zero(), self.stiffness);
        let above = (x - self.max).max(o);
        let below = (self.min - x).max(o);
        let v = above + below; // one of them is nothing
        // What lies within the width, and what beyond: (7) is k (r²/2w + s).
        let r = v.min(self.width);
        let s = v - r;
        let set_in = r * self.inverse_width;
        let size = k * (T::splat(0.5) * r).madd(set_in, s);
        let within = T::splat(1.0 / 6.0) * r * r * set_in;
        let beyond = T::splat(0.5) * s * (s + self.width);
        At { energy: k * (within + beyond), force: above.if_positive(-size, size), slope: k * set_in }
    }

    /// (2) where the present rate leads within h, with 1 where the limit acts and 0 where it does not. Whether the damper pulls is told by the velocity of the end
    /// alone: one solve cannot know, and a limit let go because of the velocity of the start would come and go.
    #[inline(always)]
    pub fn ahead(&self, x: T, rate: T, h: T) -> (Tangent<T>, T) {
        let At { force, slope, .. } = self.at(rate.madd(h, x));
        let on = slope.if_positive(T::splat(1.0), T::zero());
        (Tangent { force: (slope * rate).madd(h, force), slope, damping: self.damping * on }, on)
    }

    /// (4) of a coordinate that came by `delta` to `x1`; 1 where the limit is passed there, else 0.
    ///
    /// ```text
    /// h F(v) + c min(v, δ),   never pulling
    /// ```
    /// The damper acts along the part of the way that lies beyond the limit. So the impulse grows with `v` without a jump, and a body that
    /// is thrown against its limit has an end of the part to come to. (With a damper along the whole way there may be none: it throws back
    /// whatever comes to lie beyond the limit, and nothing holds what does not.)
    #[inline(always)]
    pub(crate) fn over(&self, h: T, x1: T, delta: T) -> (Impulse<T>, T) {
        let (o, one) = (T::zero(), T::splat(1.0));
        let (above, below) = (x1 - self.max, self.min - x1);
        let excess = above.max(below);
        let sign = above.if_positive(one, -one);
        let At { force, slope, .. } = self.at(x1);
        let size = self.damping.madd(excess.min(delta * sign), -(h * force * sign));
        let pushes = excess.if_positive(size, o);
        let impulse = Impulse {
            impulse: pushes.if_positive(-(size * sign), o),
            slope: pushes.if_positive(h.madd(slope, self.damping), o),
        };
        (impulse, excess.if_positive(one, o))
    }
}

// ----------------------------------------------------------------------------------------------------- motors

/// A motor on one coordinate: `T = feed − kp (x − x*) − kd (ẋ − r*)`, at most `max` either way.
#[derive(Clone, Copy, Debug)]
pub struct Servo<T> {
    /// kp
    pub stiffness: T,
    /// kd
    pub damping: T,
    /// x*
    pub position: T,
    /// r*
    pub rate: T,
    /// The torque given.
    pub feed: T,
    /// Largest torque.
    pub max: T,
}

impl Servo<f64> {
    /// The motor of a joint with its input.
    pub fn of(motor: &Motor, input: &Input, own: &JointInput) -> Servo<f64> {
        let (ks, kc) = input.scales(own);
        let (kp, kd) = (motor.stiffness * ks, motor.damping * kc);
        let (stiffness, damping, position, rate) = match own.servo {
            Some(ServoTarget::Position { position, rate }) => (kp, kd, position, rate),
            Some(ServoTarget::Rate(rate)) => (0.0, kd, 0.0, rate),
            Some(ServoTarget::Rotation(_)) | None => (0.0, 0.0, 0.0, 0.0),
        };
        let feed = if input.torques { own.torque } else { 0.0 };
        Servo { stiffness, damping, position, rate, feed, max: motor.max.min(1e300) }
    }
}

impl<T: Real> Servo<T> {
    /// A motor with an input of its own in each lane.
    #[inline(always)]
    pub fn gather(of: impl Fn(usize) -> Servo<f64>) -> Servo<T> {
        let mut lanes = [of(0); 4];
        for (lane, servo) in lanes.iter_mut().enumerate().take(T::LANES).skip(1) {
            *servo = of(lane);
        }
        Servo {
            stiffness: T::gather(|l| lanes[l].stiffness),
            damping: T::gather(|l| lanes[l].damping),
            position: T::gather(|l| lanes[l].position),
            rate: T::gather(|l| lanes[l].rate),
            feed: T::gather(|l| lanes[l].feed),
            max: T::gather(|l| lanes[l].max),
        }
    }

    #[inline(always)]
    fn unclamped(&self, x: T, rate: T) -> T {
        self.feed - self.stiffness * (x - self.position) - self.damping * (rate - self.rate)
    }

    /// T at an instant.
    #[inline(always)]
    pub fn torque(&self, x: T, rate: T) -> T {
        self.unclamped(x, rate).min(self.max).max(-self.max)
    }

    /// (4), with the mean rate of the part.
    #[inline(always)]
    pub(crate) fn over(&self, h: T, inverse_h: T, x0: T, x1: T) -> Impulse<T> {
        let unclamped = self.unclamped(x1, (x1 - x0) * inverse_h);
        let (within, o) = (h.madd(self.stiffness, self.damping), T::zero());
        Impulse {
            impulse: h * unclamped.min(self.max).max(-self.max),
            slope: (unclamped.abs() - self.max).if_positive(o, within),
        }
    }

    /// (2): implicit while the torque at the end of h, at the present rate, is within the bounds; else that bound, without slope.
    #[inline(always)]
    pub fn ahead(&self, x: T, rate: T, h: T) -> Tangent<T> {
        let o = T::zero();
        let predicted = self.unclamped(rate.madd(h, x), rate);
        let over = predicted.abs() - self.max;
        Tangent {
            force: over.if_positive(predicted.sign() * self.max, self.unclamped(x, o)),
            slope: over.if_positive(o, self.stiffness),
            damping: over.if_positive(o, self.damping),
        }
    }
}

/// A motor on three rotations: `T = −kp φ − kd ω`, φ the rotation vector from its target, no longer than `max`.
#[derive(Clone, Copy, Debug)]
pub struct TurnServo<T> {
    /// kp
    pub stiffness: T,
    /// kd
    pub damping: T,
    /// Largest torque.
    pub max: T,
}

/// A law on three rotations by its tangent: `torque − slope (how φ changes) − damping ω`.
#[derive(Clone, Copy, Debug)]
pub struct TurnTangent<T> {
    /// At rest.
    pub torque: V3<T>,
    /// k
    pub slope: T,
    /// c
    pub damping: T,
}

impl TurnServo<f64> {
    /// The motor of a ball with its input, and the rotation of the child's joint frame in the parent's that it aims at; none without a target.
    pub fn of(motor: &Motor, input: &Input, own: &JointInput) -> Option<(TurnServo<f64>, DQuat)> {
        let Some(ServoTarget::Rotation(target)) = own.servo else { return None };
        let (ks, kc) = input.scales(own);
        let servo =
            TurnServo { stiffness: motor.stiffness * ks, damping: motor.damping * kc, max: motor.max.min(1e300) };
        Some((servo, target.normalize()))
    }
}

impl<T: Real> TurnServo<T> {
    /// T before it is bounded, by its share that is within the bound.
    #[inline(always)]
    pub(crate) fn torque(&self, phi: V3<T>, omega: V3<T>) -> (V3<T>, T) {
        let torque = phi.scale(-self.stiffness) - omega.scale(self.damping);
        let size = torque.dot(torque).madd(T::splat(1.0), T::splat(1e-300)).sqrt();
        (torque, (size - self.max).if_positive(self.max * size.recip(), T::splat(1.0)))
    }

    /// (2), as of [`Servo`].
    #[inline(always)]
    pub fn ahead(&self, phi: V3<T>, omega: V3<T>, h: T) -> TurnTangent<T> {
        let o = T::zero();
        let (predicted, share) = self.torque(omega.madd(h, phi), omega);
        let over = T::splat(1.0) - share;
        let (slope, damping) = (over.if_positive(o, self.stiffness), over.if_positive(o, self.damping));
        let torque = predicted.scale(over.if_positive(share, o)) - phi.scale(slope);
        TurnTangent { torque, slope, damping }
    }
}

// ------------------------------------------------------------------------------------------ springs between points

/// A spring of some rest length between two points, `E = ½ k (|d| − ℓ0)²`, d the vector between them: of anchors, drags and trackers (`ℓ0 = 0`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointSpring<T> {
    /// k \[N/m\]
    pub stiffness: T,
    /// c \[N·s/m\]
    pub damping: T,
    /// ℓ0 \[m\]
    pub rest_length: f64,
}

/// A spring at one stretch `d`, with `ℓ = |d|` and `n = d/ℓ`:
///
/// ```text
/// F = −k (ℓ − ℓ0) n,     K = k [(1 − ℓ0/ℓ)(I − n nᵀ) + n nᵀ]        (ℓ0 = 0: F = −k d, K = k I)
/// ```
/// Points that coincide give a spring of some rest length no direction, hence no force.
#[derive(Clone, Copy, Debug)]
pub struct Stretched<T> {
    /// E \[J\]
    pub energy: T,
    /// F on the first point \[N\].
    pub force: V3<T>,
    stiffness: T,
    n: V3<T>,
    /// `1 − ℓ0/ℓ`
    across: T,
}

impl<T: Real> Stretched<T> {
    /// K.
    #[inline(always)]
    pub fn slope(&self) -> S3<T> {
        self.slope_across(self.across)
    }

    /// K without what a compressed spring takes off it across its length: positive semidefinite.
    #[inline(always)]
    pub fn positive_slope(&self) -> S3<T> {
        self.slope_across(self.across.max(T::zero()))
    }

    #[inline(always)]
    fn slope_across(&self, across: T) -> S3<T> {
        let k = self.stiffness;
        S3::identity_times(k * across).plus_outer(k * (T::splat(1.0) - across), self.n)
    }
}

impl PointSpring<f64> {
    /// That of an anchor spring.
    pub fn of(spring: &AnchorSpring) -> PointSpring<f64> {
        PointSpring { stiffness: spring.stiffness, damping: spring.damping, rest_length: spring.rest_length }
    }

    /// The same in every lane.
    #[inline(always)]
    pub fn splat<T: Real>(&self) -> PointSpring<T> {
        PointSpring {
            stiffness: T::splat(self.stiffness),
            damping: T::splat(self.damping),
            rest_length: self.rest_length,
        }
    }

    /// Force of (3) or (4) for a stretch that goes from `d0` to `d1`, and minus its derivative by `d1`; without the damper.
    ///
    /// Under the midpoint rule the force is `−k(½s − ℓ0)(d0 + d1)/s`, `s = |d0| + |d1|`, whose work is exactly the energy given up, since
    /// `(d1 − d0)·(d0 + d1) = (|d1| − |d0|) s`.
    pub(crate) fn over(&self, rule: Rule, d0: DVec3, d1: DVec3) -> (DVec3, DMat3) {
        let (k, rest) = (self.stiffness, self.rest_length);
        match rule {
            Rule::Midpoint => {
                let length = d1.length();
                let (sum, s) = (d0 + d1, d0.length() + length);
                if rest == 0.0 || s < 1e-12 {
                    return (sum * (-0.5 * k), DMat3::from_diagonal(DVec3::splat(0.5 * k)));
                }
                let share = 0.5 - rest / s;
                let along = if length > 1e-12 { outer(sum, d1 / length) * (k * rest / (s * s)) } else { DMat3::ZERO };
                (sum * (-k * share), DMat3::from_diagonal(DVec3::splat(k * share)) + along)
            }
            Rule::Backward => {
                let at = self.at(V3::splat(d1));
                (at.force.lane(0), at.positive_slope().matrix())
            }
        }
    }
}

impl<T: Real> PointSpring<T> {
    /// At the stretch `d`.
    #[inline(always)]
    pub fn at(&self, d: V3<T>) -> Stretched<T> {
        let (k, squared, half) = (self.stiffness, d.dot(d), T::splat(0.5));
        if self.rest_length == 0.0 {
            let (n, across) = (V3::zero(), T::splat(1.0));
            return Stretched { energy: half * k * squared, force: d.scale(-k), stiffness: k, n, across };
        }
        let (o, rest) = (T::zero(), T::splat(self.rest_length));
        // Shorter than this it has no direction.
        let is_long = squared - T::splat(1e-24);
        let length = is_long.if_positive(squared.sqrt(), o);
        let inverse = is_long.if_positive(squared.sqrt().recip(), o);
        let across = T::splat(1.0) - rest * inverse;
        let stretch = length - rest;
        let force = d.scale(-(k * across));
        let pushes = |x: T| is_long.if_positive(x, o);
        Stretched {
            energy: half * k * stretch * stretch,
            force: v3(pushes(force.x), pushes(force.y), pushes(force.z)),
            stiffness: is_long.if_positive(k, o),
            n: d.scale(inverse),
            across,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 1e-6; // central differences: error about STEP² + 1e-16/STEP, times numbers below 1000

    fn assert_is_slope(at: impl Fn(f64) -> At<f64>, x: f64) {
        let (high, low, here) = (at(x + STEP), at(x - STEP), at(x));
        let (force, slope) = ((low.energy - high.energy) / (2.0 * STEP), (low.force - high.force) / (2.0 * STEP));
        assert!((here.force - force).abs() < 1e-6, "at {x}: force {}, not {force}", here.force);
        assert!((here.slope - slope).abs() < 1e-6, "at {x}: slope {}, not {slope}", here.slope);
    }

    fn limit(damping: f64) -> Limit {
        Limit::new(Range::new(-0.4, 0.3), 70.0, damping, 0.02)
    }

    #[test]
    fn forces_are_minus_the_slopes_of_energies_and_slopes_those_of_forces() {
        let spring = Spring { stiffness: 30.0, damping: 1.0, rest: 0.2 };
        for x in [-1.3, -0.451, -0.411, -0.2, 0.0, 0.307, 0.319, 0.4, 2.0] {
            assert_is_slope(|x| spring.at(x), x);
            assert_is_slope(|x| limit(0.0).at(x), x);
        }
        let swing = Limit { min: f64::NEG_INFINITY, max: 0.0, ..limit(0.0) };
        for x in [-1.0, 0.004, 0.015, 0.3] {
            assert_is_slope(|x| swing.at(x), x);
        }
        for rest_length in [0.0, 0.3, 2.0] {
            let spring = PointSpring { stiffness: 40.0, damping: 0.0, rest_length };
            let d = DVec3::new(0.3, -0.5, 0.7);
            let here = spring.at(V3::splat(d));
            for axis in DVec3::AXES {
                let [high, low] = [STEP, -STEP].map(|by| spring.at(V3::splat(d + axis * by)));
                let force = (low.energy - high.energy) / (2.0 * STEP);
                assert!((here.force.lane(0).dot(axis) - force).abs() < 1e-6, "rest length {rest_length}");
                let slope = (low.force.lane(0) - high.force.lane(0)) / (2.0 * STEP);
                assert!((here.slope().matrix() * axis - slope).length() < 1e-6, "rest length {rest_length}");
            }
        }
    }

    #[test]
    fn limits_push_and_never_pull() {
        for c in [0.0, 3.0, 300.0] {
            for x in [-2.0, -0.41, -0.3, 0.29, 0.301, 0.4] {
                for rate in [-50.0, -1.0, 0.0, 1.0, 50.0] {
                    let side = Range::new(limit(c).min, limit(c).max).excess(x);
                    let force = limit(c).force(x, rate);
                    assert!(force * side <= 0.0 && (side != 0.0 || force == 0.0), "c {c}, {x}, {rate}: {force}");
                    let over = limit(c).over(0.01, x, 0.01 * rate).0.impulse;
                    assert!(over * side <= 0.0, "c {c}, {x}, {rate}: {over}");
                }
            }
        }
    }

    #[test]
    fn without_motion_every_rule_gives_the_law_at_the_instant() {
        // h times the force, to rounding.
        let (h, close) = (0.01, 1e-14);
        for x in [-0.7, -0.405, 0.1, 0.31, 0.5] {
            let law = limit(2.0);
            let force = law.at(x).force;
            assert!((law.force(x, 0.0) - force).abs() < close * 100.0);
            assert!((law.ahead(x, 0.0, h).0.force - force).abs() < close * 100.0);
            assert!((law.over(h, x, 0.0).0.impulse - h * force).abs() < close);
            let spring = Spring { stiffness: 30.0, damping: 1.0, rest: 0.2 };
            for rule in [Rule::Midpoint, Rule::Backward] {
                assert!((spring.over(rule, h, x, x).impulse - h * spring.at(x).force).abs() < close);
            }
            for max in [1.0, 1e9] {
                let servo = Servo { stiffness: 20.0, damping: 0.5, position: 0.3, rate: 0.7, feed: 0.1, max };
                let torque = servo.torque(x, 0.0);
                assert!((servo.ahead(x, 0.0, h).force - torque).abs() < close * 100.0);
                assert!((servo.over(h, 1.0 / h, x, x).impulse - h * torque).abs() < close);
            }
        }
        let d = DVec3::new(0.3, -0.5, 0.7);
        for rest_length in [0.0, 0.3, 2.0] {
            let spring = PointSpring { stiffness: 40.0, damping: 0.0, rest_length };
            for rule in [Rule::Midpoint, Rule::Backward] {
                assert!((spring.over(rule, d, d).0 - spring.at(V3::splat(d)).force.lane(0)).length() < 1e-12);
            }
        }
    }
}
