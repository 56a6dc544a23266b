//! Rotations as vectors: exponential, logarithm, and the derivative of the logarithm [Hernández 2011, App. A, corrected].
//!
//! With `t = |φ|`, `u = φ/t`, `[φ]` the cross-product matrix and `γ = (t/2) cot(t/2)`:
//!
//! ```text
//! log(exp(δ) R) = log R + G δ + O(δ²),   G = γ I + (1−γ) u uᵀ − ½[φ]                                     (1)
//! log(R exp(δ)) = log R + Gᵀ δ                                                                         (2)
//! ```
//! Along the axis the derivative is 1 at every angle; equation 7 of the paper has φ/sin φ there (`docs/papers.md`).

use super::small::Q;
use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::TAU;

/// The cross-product matrix: `skew(a) b = a × b`.
pub fn skew(a: DVec3) -> DMat3 {
    DMat3::from_cols(DVec3::new(0.0, a.z, -a.y), DVec3::new(-a.z, 0.0, a.x), DVec3::new(a.y, -a.x, 0.0))
}

/// `a bᵀ`.
pub fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// The rotation by the vector `phi` \[rad\].
///
/// ```
/// use glam::DVec3;
/// use supple::maths::rotation::{exp, log};
/// let phi = DVec3::new(0.3, -0.2, 0.5);
/// assert!((log(exp(phi)) - phi).length() < 1e-15);
/// ```
pub fn exp(phi: DVec3) -> DQuat {
    let half = 0.5 * phi.length();
    // sin(half)/half, by its series where the quotient would lose digits
    let sinc = if half < 1e-4 { 1.0 - half * half / 6.0 } else { half.sin() / half };
    let v = phi * (0.5 * sinc);
    DQuat::from_xyzw(v.x, v.y, v.z, half.cos())
}

/// The rotation vector of `q`, the short way round: at most π long.
pub fn log(q: DQuat) -> DVec3 {
    let v = DVec3::new(q.x, q.y, q.z);
    let (v, w) = if q.w < 0.0 { (-v, -q.w) } else { (v, q.w) };
    let s = v.length();
    if s < 1e-8 { v * (2.0 / w * (1.0 - (s / w).powi(2) / 3.0)) } else { v * (2.0 * s.atan2(w) / s) }
}

/// [`log`] by a polynomial: as exact, and no call of a library.
#[inline(always)]
pub(crate) fn fast_log(q: DQuat) -> DVec3 {
    let g = Q::<f64>::splat(q).half_angle_over_sine();
    DVec3::new(q.x, q.y, q.z) * (2.0 * g).copysign(q.w)
}

/// Of the rotation vectors of one rotation, whose `short` one is given, the one nearest `last`: up to within a radian of a whole turn. Far from half a turn
/// there is no choice, unless a whole turn was made at once.
#[inline(always)]
pub(crate) fn turn_near(short: DVec3, last: DVec3) -> DVec3 {
    let length = short.length();
    if length < 1.0 {
        return short;
    }
    let long = short * (1.0 - TAU / length);
    if (long - last).length_squared() < (short - last).length_squared() { long } else { short }
}

/// `γ(t) = (t/2) cot(t/2)` and `(1 − γ)/t²`.
fn gamma(t: f64) -> (f64, f64) {
    if t < 1e-2 {
        let t2 = t * t;
        let c = 1.0 / 12.0 + t2 / 720.0 + t2 * t2 / 30240.0;
        (1.0 - t2 * c, c)
    } else {
        let gamma = 0.5 * t / (0.5 * t).tan();
        (gamma, (1.0 - gamma) / (t * t))
    }
}

/// How `exp(phi)` is turned, from the left, when `phi` changes: the inverse of [`log_derivative`].
///
/// ```text
/// 1 + b [φ] + c [φ]²,   b = (1 − cos t)/t²,   c = (t − sin t)/t³
/// ```
pub fn exp_derivative(phi: DVec3) -> DMat3 {
    let k = skew(phi);
    let t2 = phi.length_squared();
    let (b, c) = if t2 < 1e-4 {
        (0.5 - t2 / 24.0 + t2 * t2 / 720.0, 1.0 / 6.0 - t2 / 120.0 + t2 * t2 / 5040.0)
    } else {
        let t = t2.sqrt();
        ((1.0 - t.cos()) / t2, (t - t.sin()) / (t2 * t))
    };
    DMat3::IDENTITY + k * b + k * k * c
}

/// `G` of (1): how the rotation vector `phi` changes when the rotation is turned a little more, from the left.
pub fn log_derivative(phi: DVec3) -> DMat3 {
    let k = skew(phi);
    let (_, c) = gamma(phi.length());
    DMat3::IDENTITY - k * 0.5 + k * k * c
}

/// The symmetric part `S = ½(G + Gᵀ) = γ I + (1−γ) u uᵀ`. Beyond half a turn, where γ is negative, it is taken as 0: what is left is positive semidefinite.
pub fn log_derivative_symmetric(phi: DVec3) -> DMat3 {
    let (gamma, c) = gamma(phi.length());
    if gamma < 0.0 {
        return outer(phi, phi) / phi.length_squared();
    }
    DMat3::from_diagonal(DVec3::splat(gamma)) + outer(phi, phi) * c
}

/// `inertia` turned from body axes to world axes: `R I Rᵀ`.
pub fn turned_inertia(rotation: DQuat, inertia: DMat3) -> DMat3 {
    let r = DMat3::from_quat(rotation);
    r * inertia * r.transpose()
}

/// The shortest rotation that carries the unit vector `from` to the unit vector `to`; any half turn when opposed.
pub fn between(from: DVec3, to: DVec3) -> DQuat {
    DQuat::from_rotation_arc(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<DVec3> {
        let mut out = vec![DVec3::ZERO, DVec3::new(1e-9, 0.0, 0.0), DVec3::new(0.0, 1e-3, -1e-3)];
        for i in 0..40 {
            let f = i as f64;
            let axis = DVec3::new((1.3 * f).sin(), (2.1 * f + 1.0).cos(), (0.7 * f + 0.3).sin()).normalize();
            out.push(axis * (3.1 * (i + 1) as f64 / 40.0));
        }
        out
    }

    #[test]
    fn log_undoes_exp() {
        for phi in samples() {
            assert!((log(exp(phi)) - phi).length() < 1e-14, "{phi}"); // a few roundings of numbers below π
        }
    }

    #[test]
    fn log_derivative_matches_central_differences() {
        let step = 1e-6; // central differences: error about step² + 1e-16/step = 1e-10
        for phi in samples() {
            let (g, q) = (log_derivative(phi), exp(phi));
            for axis in [DVec3::X, DVec3::Y, DVec3::Z] {
                let left = (log(exp(axis * step) * q) - log(exp(-axis * step) * q)) / (2.0 * step);
                let right = (log(q * exp(axis * step)) - log(q * exp(-axis * step))) / (2.0 * step);
                assert!((g * axis - left).length() < 2e-9, "left at {phi}");
                assert!((g.transpose() * axis - right).length() < 2e-9, "right at {phi}");
            }
            let s = (g + g.transpose()) * 0.5;
            let d = s - log_derivative_symmetric(phi);
            assert!(d.to_cols_array().iter().all(|x| x.abs() < 1e-12), "{phi}");
        }
    }
}
