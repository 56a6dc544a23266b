//! Joint limits: one-sided implicit springs, or hard stops.
//!
//! A soft limit pushes back by the law of [`Limit`](super::laws::Limit) once it is passed; the torque is the exact gradient of an energy. A hard one lets nothing
//! pass: a one-sided row that pushes with whatever force it takes, and never pulls.

use crate::maths::lanes::Real;
use crate::maths::small::{M3, Q, V3, v3};
use glam::{DQuat, DVec3};

/// A closed interval \[rad or m\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub min: f64,
    /// Upper end.
    pub max: f64,
}

impl Range {
    /// From `min` to `max`.
    pub fn new(min: f64, max: f64) -> Range {
        Range { min, max }
    }

    /// How far `x` lies outside: positive above `max`, negative below `min`, else 0.
    pub fn excess(&self, x: f64) -> f64 {
        (x - self.max).max(0.0) + (x - self.min).min(0.0)
    }
}

/// The swing of the twist axis as a rotation vector `(s1, s2)` about the joint's Y and Z, kept within
/// `(s1/α)² + (s2/β)² ≤ 1`. The violation is measured along the ray from the centre, in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwingEllipse {
    /// α: largest swing about Y \[rad\].
    pub about_y: f64,
    /// β: largest swing about Z \[rad\].
    pub about_z: f64,
}

impl SwingEllipse {
    /// Violation `v = |s| (1 − 1/√ρ)`, `ρ = (s1/α)² + (s2/β)²`, negative inside, and its gradient `∂v/∂(s1, s2)`.
    ///
    /// On the ellipse the gradient points along that of `ρ`, which is the direction of the limit's torque.
    pub fn violation(&self, s1: f64, s2: f64) -> (f64, [f64; 2]) {
        if s1 * s1 + s2 * s2 < 1e-24 {
            return (-self.about_y.min(self.about_z), [0.0, 0.0]);
        }
        let (v, _, gradient) = self.lanes().violated(s1, s2);
        (v, gradient)
    }

    /// The same in every lane.
    #[inline(always)]
    pub fn lanes<T: Real>(&self) -> Ellipse<T> {
        Ellipse { y: T::splat(self.about_y.powi(-2)), z: T::splat(self.about_z.powi(-2)) }
    }
}

/// A [`SwingEllipse`] by the inverse squares of its axes.
#[derive(Clone, Copy, Debug)]
pub struct Ellipse<T> {
    /// 1/α²
    pub y: T,
    /// 1/β²
    pub z: T,
}

impl<T: Real> Ellipse<T> {
    /// Violation, length of the swing and gradient.
    ///
    /// ```text
    /// dv = d|s| (1 − ρ^−½) + |s| ρ^−3/2 ½dρ
    /// ```
    #[inline(always)]
    fn violated(&self, s1: T, s2: T) -> (T, T, [T; 2]) {
        let tiny = T::splat(1e-24);
        let (h1, h2) = (s1 * self.y, s2 * self.z);
        let rho = s1.madd(h1, s2.madd(h2, tiny));
        let length = s1.madd(s1, s2.madd(s2, tiny)).sqrt();
        let inverse_root = rho.sqrt().recip();
        let inside = T::splat(1.0) - inverse_root;
        let (radial, across) = (inside * length.recip(), length * inverse_root * inverse_root * inverse_root);
        (length * inside, length, [radial.madd(s1, across * h1), radial.madd(s2, across * h2)])
    }
}

/// The swing of a ball: how its X axis is turned away from the parent's, in the parent's joint frame.
///
/// The swing is the rotation vector `σ = t w`, `w ⟂ X`; it carries X to the child's axis `a = cos t X + sin t w × X`. From `ȧ = ω × a` with ω the
/// relative angular velocity:
///
/// ```text
/// ṫ = w·ω                                                                                             (1)
/// ẇ = ψ̇ X × w,   sin t ψ̇ = w·ȧ = ω·(a × w)                                                            (2)
/// v̇ = n·σ̇ = n·(ṫ w + t ẇ),   n = (0, v_1, v_2),   v_i = ∂v/∂s_i                                       (3)
/// g = w (w·n) + (t/sin t) ((X × w)·n) (a × w)                                  by (1), (2) in (3)
/// ```
/// for any function v of the two angles: `v̇ = g·ω`. There is no direction without swing, or at half a turn of it.
#[derive(Clone, Copy, Debug)]
pub struct Swing<T> {
    /// σ, about Y and Z \[rad\].
    pub angles: [T; 2],
    /// Cosine of t/2.
    half_cosine: T,
    /// t/sin t
    stretch: T,
    /// a
    axis: V3<T>,
}

impl<T: Real> Swing<T> {
    /// Of the child's joint frame in the parent's.
    #[inline(always)]
    pub fn of(relative: Q<T>) -> Swing<T> {
        let Q { w, v } = relative;
        let half_cosine = w.madd(w, v.x.madd(v.x, T::splat(1e-24))).sqrt();
        let s = half_cosine.recip();
        let (cosine, sine) = (w * s, v.x * s);
        // The swing's quaternion is (half_cosine, 0, y, z).
        let (y, z) = (sine.nmadd(v.z, cosine * v.y), sine.madd(v.y, cosine * v.z));
        let g = Q { w: half_cosine.min(T::splat(1.0)), v: V3::zero() }.half_angle_over_sine();
        let (two, c) = (T::splat(2.0), half_cosine + half_cosine);
        let axis = v3(two.madd(half_cosine * half_cosine, T::splat(-1.0)), c * z, -(c * y));
        Swing { angles: [two * g * y, two * g * z], half_cosine, stretch: g * s, axis }
    }

    /// Violation of an ellipse and the direction g in which it grows.
    #[inline(always)]
    pub fn violation(&self, ellipse: &Ellipse<T>) -> (T, V3<T>) {
        let [s1, s2] = self.angles;
        let (v, length, slope) = ellipse.violated(s1, s2);
        (v, self.direction(length, slope))
    }

    /// g of a function of the angles with these derivatives; `length` is t.
    #[inline(always)]
    fn direction(&self, length: T, [v1, v2]: [T; 2]) -> V3<T> {
        let inverse = length.recip();
        let (w1, w2) = (self.angles[0] * inverse, self.angles[1] * inverse);
        let w = v3(T::zero(), w1, w2);
        let (along, around) = (w1.madd(v1, w2 * v2), w1.madd(v2, -(w2 * v1)));
        w.scale(along) + self.axis.cross(w).scale(self.stretch * around)
    }
}

impl Swing<f64> {
    /// Of the child's joint frame in the parent's; none where there is no direction.
    pub fn meaningful(relative: DQuat) -> Option<Swing<f64>> {
        let swing = Swing::of(Q::splat(relative));
        (swing.is_meaningful() > 0.0).then_some(swing)
    }

    /// What is left of the swing in an ellipse's narrower direction, `(1 − r) min(α, β)` with `r² = s₁²/α² + s₂²/β²`, and the direction in which it shrinks. It is zero
    /// where the violation is; but its slope is no larger than 1 without swing too, where that of the violation has no bound, so that it tells how soon the
    /// limit is reached.
    pub(crate) fn left(&self, SwingEllipse { about_y, about_z }: SwingEllipse) -> (f64, DVec3) {
        let [s1, s2] = self.angles;
        let (x, y) = (s1 / about_y, s2 / about_z);
        let (r, narrow) = ((x * x + y * y).sqrt(), about_y.min(about_z));
        let slope = [x / about_y, y / about_z].map(|x| x * narrow / r);
        ((1.0 - r) * narrow, self.direction((s1 * s1 + s2 * s2).sqrt(), slope).lane(0))
    }
}

impl<T: Real> Swing<T> {
    /// Where [`Swing::meaningful`] gives a swing, a positive number, elsewhere none.
    #[inline(always)]
    pub(crate) fn is_meaningful(&self) -> T {
        let [s1, s2] = self.angles;
        s1.madd(s1, s2.madd(s2, T::splat(-1e-18))).min(self.half_cosine - T::splat(1e-6))
    }

    /// How the direction g of the violation turns with a: `δg = H (ρ_a − ρ_b) + ρ_b × g`, all in the parent's joint frame.
    ///
    /// In polar coordinates of the swing, `(s1, s2) = t (cos θ, sin θ)`, the violation is `v = t − 1/κ`, `κ² = cos²θ/α² + sin²θ/β²`. With
    /// the unit vectors w along the swing's axis, `e = a×w`, `f = X×w` and `μ = dv/dθ = κ'/κ²`:
    ///
    /// ```text
    /// g = w + e μ/sin t      δt = w·ρ      δθ = e·ρ/sin t      δw = f δθ      δe = a δt − w cos t δθ
    /// H = (a − e cot t) μ/sin t wᵀ + (f − w μ cot t + e μ'/sin t)/sin t eᵀ
    /// ```
    #[inline(always)]
    pub(crate) fn turning(&self, ellipse: &Ellipse<T>) -> M3<T> {
        let ([s1, s2], o) = (self.angles, T::zero());
        let inverse_t = s1.madd(s1, s2 * s2).sqrt().recip();
        let (cosine, sine) = (s1 * inverse_t, s2 * inverse_t);
        let (a, w) = (self.axis, v3(o, cosine, sine));
        let (e, f) = (a.cross(w), v3(o, -sine, cosine));
        let (alpha, beta) = (ellipse.y, ellipse.z);
        let (cc, ss) = (cosine * cosine, sine * sine);
        let inverse = cc.madd(alpha, ss * beta).recip();
        let inverse_cube = inverse * inverse.sqrt();
        let across = (beta - alpha) * cosine * sine;
        let mu = across * inverse_cube;
        let mu_slope = ((beta - alpha) * (cc - ss) - T::splat(3.0) * across * across * inverse) * inverse_cube;
        let inverse_sine = self.stretch * inverse_t; // 1/sin t
        let cotangent = a.x * inverse_sine;
        let by_t = (a - e.scale(cotangent)).scale(mu * inverse_sine);
        let by_angle = (f - w.scale(mu * cotangent) + e.scale(mu_slope * inverse_sine)).scale(inverse_sine);
        M3::zero().plus_outer(by_t, w).plus_outer(by_angle, e)
    }
}

/// The direction in which the twist of a ball grows, from the X axes of both its joint frames: `(a + b)/(1 + a·b)`, which has no meaning at half a turn of swing.
#[inline(always)]
pub(crate) fn twist_direction<T: Real>(a: V3<T>, b: V3<T>) -> V3<T> {
    (a + b).scale((T::splat(1.0) + a.dot(b)).max(T::splat(1e-6)).recip())
}

/// Whether the ends of a joint's limits give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stops {
    /// One-sided springs with the stiffness and damping of the [`Limits`]: every solver takes them.
    #[default]
    Soft,
    /// One-sided rows: nothing passes, nothing springs back, stiffness and damping mean nothing. A solver that cannot hold them
    /// says so before the run ([`Solver::takes`](crate::Solver::takes)).
    Hard,
}

/// The limits of a joint. Those that do not fit its free directions are refused by the builder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Range of the unwrapped angle of a hinge, or of the twist of a ball about X \[rad\].
    pub angle: Option<Range>,
    /// Swing of a ball's X axis.
    pub swing: Option<SwingEllipse>,
    /// Range of the position along X of a slider \[m\].
    pub slide: Option<Range>,
    /// Whether the ends give.
    pub stops: Stops,
    /// Stiffness of the angular limits \[N·m/rad\].
    pub stiffness: f64,
    /// Damping while an angular limit acts \[N·m·s/rad\].
    pub damping: f64,
    /// Stiffness of the slide limit \[N/m\].
    pub slide_stiffness: f64,
    /// Damping while the slide limit acts \[N·s/m\].
    pub slide_damping: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            angle: None,
            swing: None,
            slide: None,
            stops: Stops::Soft,
            stiffness: 100.0,
            damping: 0.0,
            slide_stiffness: 1e4,
            slide_damping: 0.0,
        }
    }
}

impl Limits {
    /// Whether there is any limit.
    pub fn any(&self) -> bool {
        self.angle.is_some() || self.swing.is_some() || self.slide.is_some()
    }

    /// Whether there is any limit, and it is hard.
    pub fn are_hard(&self) -> bool {
        self.stops == Stops::Hard && self.any()
    }
}
