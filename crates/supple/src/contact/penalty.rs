//! Contacts as springs: the law of [Hernández 2011, §2] and [Kim 2008, §4.1], for the solvers that have no one-sided rows.
//!
//! A contact pushes with a stiff one-sided spring and damper along its normal n, and rubs with Coulomb's friction made smooth at slow speeds. With the gap
//! g < 0 and u the velocity of side a against side b,
//!
//! ```text
//! p = max(0, −k g − c u_n)          f = p n − μ p u_t/max(|u_t|, s)                                            (1)
//! ```
//! s is the speed of slip below which friction is viscous: what lies on a slope creeps by s tan(slope)/μ. The damping c follows from the restitution e, as that
//! of a damped spring on the mass m that the contact meets: `c = 2 ζ √(k m)`, `ζ = −ln e/√(π² + ln² e)`. It bounces so while the step resolves the
//! spring; a longer step damps more.
//!
//! Implicit steps take (1) at the end of the part. Those with one linearisation need to know beforehand whether a contact slides, and its pressure: see
//! [`Touch::linear`].

use super::Contact;
use super::follow::Follow;
use crate::forces::{Along, Force};
use crate::maths::rotation::turned_inertia;
use crate::maths::{Twist, Wrench};
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

/// How contacts push and rub when they are springs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// k of each contact \[N/m\].
    pub stiffness: f64,
    /// s, the speed below which friction is viscous \[m/s\].
    pub slip: f64,
}

impl Default for Penalty {
    fn default() -> Self {
        Penalty::USUAL
    }
}

impl Penalty {
    /// A kilogram on one contact sinks in by a tenth of a millimetre; a millimetre a second is slow.
    pub const USUAL: Penalty = Penalty { stiffness: 1e5, slip: 1e-3 };

    /// Whether both numbers are finite and above 0.
    pub fn is_sound(&self) -> bool {
        [self.stiffness, self.slip].iter().all(|x| x.is_finite() && *x > 0.0)
    }
}

/// A contact as a spring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Touch {
    pub(crate) follow: Follow,
    /// k, c, μ, s
    stiffness: f64,
    damping: f64,
    friction: f64,
    slip: f64,
    /// The mass it meets along n \[kg\].
    pub(crate) mass: f64,
    /// How many contacts its bodies share their load with.
    shared: f64,
}

/// Where the points of a contact are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// From the centres of mass \[m\].
    pub(crate) r_a: DVec3,
    pub(crate) r_b: DVec3,
    /// \[m\]
    gap: f64,
    /// u
    velocity: DVec3,
}

/// A force on a at its point, its opposite on b: `force − K δ − D v`, v the velocity of a's point against b's, δ the way it has gone with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Linear {
    pub(crate) force: DVec3,
    pub(crate) stiffness: DMat3,
    pub(crate) damping: DMat3,
}

/// The contacts of one part `h` of a step, `after` seconds before its end, as springs.
pub(crate) fn gather(
    model: &Model,
    state: &State,
    contacts: &[Contact],
    law: Penalty,
    (h, after): (f64, f64),
    touches: &mut Vec<Touch>,
) {
    touches.clear();
    // In the order of their keys contacts of two shapes are beside each other.
    let together = |x: &Contact, y: &Contact| x.a == y.a && x.b == y.b;
    let mut first = 0;
    while first < contacts.len() {
        let count = contacts[first..].iter().take_while(|c| together(c, &contacts[first])).count();
        for contact in &contacts[first..first + count] {
            let mut touch = Touch {
                follow: Follow::new(contact, state, (h, after)),
                stiffness: law.stiffness,
                damping: 0.0,
                friction: contact.friction,
                slip: law.slip,
                mass: 0.0,
                shared: count as f64,
            };
            let place = touch.place(state, (h, after));
            touch.mass = 1.0 / touch.softness(model, state, &place, contact.normal);
            touch.damping = 2.0 * damping_ratio(contact.restitution) * (law.stiffness * touch.mass).sqrt();
            touches.push(touch);
        }
        first += count;
    }
}

/// ζ of a spring that gives back the share `e` of a speed.
fn damping_ratio(e: f64) -> f64 {
    if e < 1e-3 {
        return 1.0;
    }
    let log = e.min(1.0).ln();
    -log / (std::f64::consts::PI * std::f64::consts::PI + log * log).sqrt()
}

impl Touch {
    /// Where its points are at `state`, the start of a part `h` that is followed by `after`.
    pub(crate) fn place(&self, state: &State, (h, after): (f64, f64)) -> Place {
        let [r_a, r_b] = self.follow.levers_at(state);
        Place { r_a, r_b, gap: self.follow.gap_at(state, h + after), velocity: self.follow.velocity_at(state) }
    }

    /// `d·(M_a⁻¹ + M_b⁻¹) d` of the two points \[1/kg\].
    fn softness(&self, model: &Model, state: &State, place: &Place, d: DVec3) -> f64 {
        let side = |id: BodyId, r: DVec3| {
            let (body, arm) = (model.body(id), r.cross(d));
            1.0 / body.mass
                + arm.dot(turned_inertia(state.bodies[id.index()].orientation, body.inertia.inverse()) * arm)
        };
        side(self.follow.a, place.r_a) + self.follow.b.map_or(0.0, |b| side(b, place.r_b))
    }

    /// (1) for one linear step that looks `h` ahead; `None` when the two will not touch.
    ///
    /// The pressure that friction goes by is the spring's own; at a first touch, when it has none yet, that which stops the share of the bodies that falls to
    /// this contact. The contact sticks when friction can stop that share too, and is viscous then; else it slides against a constant force.
    pub(crate) fn linear(&self, model: &Model, state: &State, place: &Place, gravity: DVec3, h: f64) -> Option<Linear> {
        let Touch { stiffness: k, damping: c, friction, .. } = *self;
        let Follow { b, normal: n, carried, .. } = self.follow;
        let fall = if b.is_none() { gravity * h } else { DVec3::ZERO };
        let coming = place.velocity + fall;
        let ahead = place.gap + h * n.dot(coming);
        if ahead >= 0.0 && place.gap >= 0.0 {
            return None;
        }
        let outer = |x: DVec3| DMat3::from_cols(x * x.x, x * x.y, x * x.z);
        let along = outer(n);
        // −k (g + h u) − c u, with what u owes to the obstacle taken to the constant part
        let mut linear = Linear {
            force: n * (-k * place.gap + (h * k + c) * n.dot(carried)),
            stiffness: along * k,
            damping: along * c,
        };
        let stopping = (-k * ahead - c * n.dot(coming)) / (1.0 + h * (h * k + c) * self.shared / self.mass);
        let pressure = stopping.max(-k * place.gap).max(0.0);
        let slide = coming - n * n.dot(coming);
        let speed = slide.length();
        let most = friction * pressure;
        if most == 0.0 {
            return Some(linear);
        }
        let softness = if speed > 0.0 { self.softness(model, state, place, slide / speed) } else { 0.0 };
        if h > 0.0 && speed > h * most * softness * self.shared {
            linear.force -= slide * (most / speed);
        } else {
            let now = place.velocity - n * n.dot(place.velocity);
            let across = (DMat3::IDENTITY - along) * (most / now.length().max(self.slip));
            linear.damping += across;
            linear.force += across * carried;
        }
        Some(linear)
    }

    /// (1) over a part `h` in which a's point goes the way `d` against b's, from a gap `start`: the impulse on a, and minus its derivative by d. The
    /// share `end` of the spring is that of the end of the part.
    pub(crate) fn impulse(&self, start: f64, d: DVec3, end: f64, h: f64) -> (DVec3, DMat3) {
        let n = self.follow.normal;
        let outer = |x: DVec3, y: DVec3| DMat3::from_cols(x * y.x, x * y.y, x * y.z);
        let along = n.dot(d);
        let pressure = -self.stiffness * (start + end * along) * h - self.damping * along;
        if pressure <= 0.0 {
            return (DVec3::ZERO, DMat3::ZERO);
        }
        let t = d - n * along;
        let least = h * self.slip;
        let size = (t.length_squared() + least * least).sqrt();
        let most = self.friction * pressure;
        let slope = outer(n, n) * (self.stiffness * end * h + self.damping)
            + (DMat3::IDENTITY - outer(n, n) - outer(t, t) * (1.0 / (size * size))) * (most / size);
        (n * pressure - t * (most / size), slope)
    }

    /// (1) at `state`, which is `after` seconds before the end of the step: calls `visit` with what it does to each body.
    pub(crate) fn wrenches(&self, model: &Model, state: &State, after: f64, mut visit: impl FnMut(BodyId, Wrench)) {
        let place = self.place(state, (0.0, after));
        let Some(linear) = self.linear(model, state, &place, DVec3::ZERO, 0.0) else { return };
        let Follow { a, b, normal, carried, .. } = self.follow;
        let force = linear.force - linear.damping * (place.velocity + carried);
        if normal.dot(force) > 0.0 {
            visit(a, Wrench::at(place.r_a, force));
            if let Some(b) = b {
                visit(b, Wrench::at(place.r_b, -force));
            }
        }
    }

    /// k \[N/m\]
    pub(crate) fn stiffness(&self) -> f64 {
        self.stiffness
    }

    /// [`Linear`] as forces along rows.
    pub(crate) fn forces(&self, place: &Place, linear: &Linear, mut visit: impl FnMut(&Force)) {
        let n = self.follow.normal;
        let (t, s) = n.any_orthonormal_pair();
        for d in [n, t, s] {
            let row = |r: DVec3, sign: f64| Twist::new(d * sign, r.cross(d) * sign);
            visit(&Force::Along(Along {
                a: row(place.r_a, 1.0),
                b: row(place.r_b, -1.0),
                force: d.dot(linear.force),
                stiffness: d.dot(linear.stiffness * d),
                damping: d.dot(linear.damping * d),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::{ContactKey, Other};
    use crate::model::ObstacleId;

    fn touch() -> Touch {
        let normal = DVec3::new(0.36, 0.48, 0.8);
        let contact = Contact {
            a: BodyId(0),
            b: Other::Obstacle(ObstacleId(0)),
            key: ContactKey { shape_a: 0, shape_b: 1, place: 0, feature: 0 },
            point: DVec3::ZERO,
            point_in_a: DVec3::ZERO,
            point_in_b: DVec3::ZERO,
            round_a: DVec3::ZERO,
            round_b: DVec3::ZERO,
            normal,
            gap: 0.0,
            friction: 0.7,
            restitution: 0.0,
            rolling: 0.0,
            obstacle_velocity: DVec3::ZERO,
            obstacle_spin: DVec3::ZERO,
        };
        let scene = crate::Scene::parse("chain:1").unwrap();
        let follow = Follow::new(&contact, &scene.state, (0.02, 0.0));
        Touch { follow, stiffness: 300.0, damping: 4.0, friction: 0.7, slip: 0.05, mass: 2.0, shared: 1.0 }
    }

    #[test]
    fn slopes_match_central_differences_and_friction_keeps_within_its_cone() {
        let (touch, h, step) = (touch(), 0.02, 1e-7);
        for d in [DVec3::new(0.01, -0.02, -0.03), DVec3::new(1e-4, 1e-4, -1e-3), DVec3::new(0.0, 0.3, -0.4)] {
            let (impulse, slope) = touch.impulse(-0.001, d, 1.0, h);
            let pressure = touch.follow.normal.dot(impulse);
            assert!(pressure > 0.0);
            let friction = (impulse - touch.follow.normal * pressure).length();
            assert!(friction <= 0.7 * pressure);
            // How friction follows the pressure is left out of the slope: it is not symmetric.
            for axis in DVec3::AXES {
                let at = |s: f64| touch.impulse(-0.001, d + axis * (s * step), 1.0, h).0;
                let measured = (at(-1.0) - at(1.0)) / (2.0 * step);
                let t = (d - touch.follow.normal * touch.follow.normal.dot(d)).normalize();
                let along = touch.follow.normal.dot(axis) * (300.0 * h + 4.0);
                let length = (d - touch.follow.normal * touch.follow.normal.dot(d)).length();
                let share = length / (length * length + (h * 0.05) * (h * 0.05)).sqrt();
                let left_out = t * (-0.7 * share * along);
                assert!((measured - left_out - slope * axis).length() < 1e-5 * slope.x_axis.length().max(1.0), "{d}");
            }
        }
        assert_eq!(touch.impulse(0.01, DVec3::ZERO, 1.0, h), (DVec3::ZERO, DMat3::ZERO));
    }

    #[test]
    fn damping_gives_back_what_restitution_says() {
        for e in [0.2f64, 0.5, 0.9] {
            // Half an oscillation of a damped spring: its speed falls by exp(−π ζ/√(1 − ζ²)).
            let ratio = damping_ratio(e);
            let kept = (-std::f64::consts::PI * ratio / (1.0 - ratio * ratio).sqrt()).exp();
            assert!((kept - e).abs() < 1e-12);
        }
        assert_eq!((damping_ratio(1.0), damping_ratio(0.0)), (-0.0, 1.0));
    }
}
