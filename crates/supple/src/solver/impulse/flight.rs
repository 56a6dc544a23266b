//! The free flight of a body [Bender 2006, §3].
//!
//! ```text
//! x(t0 + h) = x + h v + ½ h² F/m,   v(t0 + h) = v + h F/m                                          eq. 1, 2
//! q̇ = ½ q [0, w],   ẇ = I⁻¹ (Rᵀτ − w × I w)                                                        eq. 3, 4, w = Rᵀω in body axes
//! ω(t0 + h) = R I⁻¹ Rᵀ l,   l = l(t0) + h τ                                                        (1)
//! ```
//! Force F and torque τ are constant in world axes. The Runge–Kutta rule gives the orientation, and an angular velocity whose error changes the
//! angular momentum `l`; (1) is not in the paper: it takes the angular velocity from the angular momentum, which is known exactly. So momentum is kept to rounding,
//! and |ω| cannot grow beyond `|l|` over the least moment of inertia.

use crate::maths::Twist;
use crate::model::BodyState;
use glam::{DMat3, DQuat, DVec3};

/// What one body's flight needs besides its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flyer {
    /// In body axes \[kg·m²\].
    pub inertia: DMat3,
    /// Its inverse.
    pub inverse_inertia: DMat3,
    /// F/m \[m/s²\]
    pub acceleration: DVec3,
    /// τ \[N·m\]
    pub torque: DVec3,
}

/// Largest turn of one Runge–Kutta step \[rad\]: its relative error is below `(¼)⁵/120`, 1e-5 of that turn.
const LARGEST_TURN: f64 = 0.25;
/// Most Runge–Kutta steps of a flight: faster bodies, beyond two turns a flight, are followed less exactly.
const MOST_STEPS: f64 = 64.0;

impl Flyer {
    /// Where a body that leaves `start` with `velocity` is after `h`.
    pub(super) fn fly(&self, start: &BodyState, velocity: Twist, h: f64) -> BodyState {
        let Flyer { inertia, inverse_inertia, acceleration, torque } = *self;
        let turns = torque != DVec3::ZERO;
        let rate = |q: DQuat, w: DVec3| {
            let half = w * 0.5;
            let mut couple = -w.cross(inertia * w);
            if turns {
                couple += q.conjugate() * torque / q.length_squared(); // within a step q is not quite of unit length
            }
            (q * DQuat::from_xyzw(half.x, half.y, half.z, 0.0), inverse_inertia * couple)
        };
        let r = DMat3::from_quat(start.orientation);
        let mut w = r.transpose() * velocity.angular;
        let l = r * (inertia * w) + torque * h;
        let mut q = start.orientation;
        let last = if turns { (inverse_inertia * (r.transpose() * l)).length() } else { 0.0 };
        let steps = (h * velocity.angular.length().max(last) / LARGEST_TURN).ceil().clamp(1.0, MOST_STEPS);
        let k = h / steps;
        for _ in 0..steps as u32 {
            // The fourth order Runge–Kutta rule
            let (q1, w1) = rate(q, w);
            let (q2, w2) = rate(q + q1 * (0.5 * k), w + w1 * (0.5 * k));
            let (q3, w3) = rate(q + q2 * (0.5 * k), w + w2 * (0.5 * k));
            let (q4, w4) = rate(q + q3 * k, w + w3 * k);
            q = (q + (q1 + (q2 + q3) * 2.0 + q4) * (k / 6.0)).normalize();
            w += (w1 + (w2 + w3) * 2.0 + w4) * (k / 6.0);
        }
        let r = DMat3::from_quat(q);
        BodyState {
            position: start.position + velocity.linear * h + acceleration * (0.5 * h * h),
            orientation: q,
            velocity: Twist::new(velocity.linear + acceleration * h, r * (inverse_inertia * (r.transpose() * l))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maths::Pose;
    use crate::maths::rotation::{exp, log, turned_inertia};

    fn flyer(moments: DVec3) -> Flyer {
        let inertia = DMat3::from_diagonal(moments);
        Flyer { inertia, inverse_inertia: inertia.inverse(), acceleration: DVec3::ZERO, torque: DVec3::ZERO }
    }

    #[test]
    fn a_symmetric_top_precesses_as_the_closed_form_says() {
        // Moments (A, A, C): the axis of symmetry turns about l with |l|/A, the body about its axis with ω_z (A − C)/A besides.
        let (a, c) = (0.2, 0.5);
        let flyer = flyer(DVec3::new(a, a, c));
        let q = exp(DVec3::new(0.3, -0.2, 0.6));
        let start = BodyState::at_rest(Pose::new(q, DVec3::ZERO));
        let omega = q * DVec3::new(1.5, 0.0, 2.0);
        let l = turned_inertia(q, flyer.inertia) * omega;
        let spin = q.conjugate().mul_vec3(omega).z * (a - c) / a;
        let exact = |t: f64| exp(l * (t / a)) * q * exp(DVec3::Z * (spin * t));
        let error = |h: f64, steps: usize| {
            let (mut state, mut velocity) = (start, Twist::new(DVec3::ZERO, omega));
            for _ in 0..steps {
                state = flyer.fly(&state, velocity, h);
                velocity = state.velocity;
            }
            log(state.orientation * exact(h * steps as f64).conjugate()).length()
        };
        // Half a second at 6 rad/s; each halving divides the error of a fourth order rule by 16.
        let (coarse, fine) = (error(1.0 / 40.0, 20), error(1.0 / 80.0, 40));
        assert!(coarse < 1e-6 && (14.0..18.0).contains(&(coarse / fine)), "{coarse:e} {fine:e}");
        // A long flight is divided: 6 rad at once are as exact as many short flights.
        assert!(error(1.0, 1) < 1e-4, "{:e}", error(1.0, 1));
    }

    #[test]
    fn angular_momentum_is_kept_to_rounding_at_any_speed() {
        let flyer = Flyer { torque: DVec3::new(0.1, -0.3, 0.2), ..flyer(DVec3::new(0.1, 0.2, 0.25)) };
        for speed in [1.0, 100.0, 1e4] {
            let q = exp(DVec3::new(1.0, 2.0, -0.5));
            let start = BodyState::at_rest(Pose::new(q, DVec3::ZERO));
            let omega = DVec3::new(0.5, 0.7, -0.4) * speed;
            let momentum = |s: &BodyState| turned_inertia(s.orientation, flyer.inertia) * s.velocity.angular;
            let before = turned_inertia(q, flyer.inertia) * omega;
            let end = flyer.fly(&start, Twist::new(DVec3::ZERO, omega), 1.0 / 30.0);
            let gained = momentum(&end) - before - flyer.torque / 30.0;
            assert!(gained.length() < 1e-14 * speed.max(1.0), "{speed}: {gained}"); // some roundings of numbers of this size
        }
    }
}
