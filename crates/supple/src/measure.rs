//! Measures of a state: energy, momentum, joint gaps. Used by tests, command line and studio alike.

use crate::forces;
use crate::input::Input;
use crate::maths::rotation::turned_inertia;
use crate::model::laws::{Servo, TurnServo};
use crate::model::{Body, BodyState, JointId, Model, NodeState, ServoTarget, State};
use glam::DVec3;

/// Energies of a state \[J\].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Of motion.
    pub kinetic: f64,
    /// Of height, zero at the world's origin.
    pub gravity: f64,
    /// Of joint springs, limits, anchor springs, trackers and drags. Servo motors are not counted: they are actuators.
    pub springs: f64,
    /// Of flesh or skin.
    pub flesh: f64,
}

impl Energy {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.kinetic + self.gravity + self.springs + self.flesh
    }
}

/// The energy of motion of `state` \[J\].
pub fn kinetic_energy(model: &Model, state: &State) -> f64 {
    let one = |(body, s): (&Body, &BodyState)| {
        let (v, w) = (s.velocity.linear, s.velocity.angular);
        0.5 * (body.mass * v.length_squared() + w.dot(turned_inertia(s.orientation, body.inertia) * w))
    };
    let flesh = nodes(model, state).map(|(mass, node)| 0.5 * mass * node.velocity.length_squared());
    let skin = vertices(model, state).into_iter().map(|(mass, _, v)| 0.5 * mass * v.length_squared());
    model.bodies().iter().zip(&state.bodies).map(one).sum::<f64>() + flesh.sum::<f64>() + skin.sum::<f64>()
}

/// The free nodes of the flesh with their masses \[kg\].
fn nodes<'a>(model: &'a Model, state: &'a State) -> impl Iterator<Item = (f64, &'a NodeState)> {
    let masses = model.flesh().map_or(&[][..], |flesh| &flesh.masses);
    masses.iter().copied().zip(&state.nodes)
}

/// Masses, places and velocities of the skin's vertices \[kg, m, m/s\].
fn vertices(model: &Model, state: &State) -> Vec<(f64, DVec3, DVec3)> {
    let Some(skin) = model.skin() else { return Vec::new() };
    skin.masses.iter().zip(skin.motion(state)).map(|(&mass, (x, v))| (mass, x, v)).collect()
}

/// The energy by which changes are judged \[J\]: that of a fall by `size`; without gravity, that of moving by a tenth of
/// `size` in a second, so that rounding is not taken for motion.
pub fn energy_at_stake(model: &Model, input: &Input, size: f64) -> f64 {
    model.mass() * size * input.gravity.length().max(0.01 * size)
}

/// The energy of `state` under `input`.
pub fn energy(model: &Model, input: &Input, state: &State) -> Energy {
    let mut e = Energy { kinetic: kinetic_energy(model, state), ..Energy::default() };
    for (body, s) in model.bodies().iter().zip(&state.bodies) {
        e.gravity -= body.mass * input.gravity.dot(s.position);
    }
    for (mass, node) in nodes(model, state) {
        e.gravity -= mass * input.gravity.dot(node.position);
    }
    e.springs = forces::spring_energy(model, input, state);
    if let Some(flesh) = model.flesh() {
        let mut positions = Vec::new();
        flesh.positions(state, &mut positions);
        e.flesh = flesh.elastic_energy(&positions);
    }
    if let Some(skin) = model.skin() {
        e.flesh = skin.elastic_energy(state);
        e.gravity -= vertices(model, state).iter().map(|(mass, x, _)| mass * input.gravity.dot(*x)).sum::<f64>();
    }
    e
}

/// The work that servo motors do on the bodies as these go from `before` to `after` in a step of `input` \[J\].
///
/// Along the way x from x₀ to x₁, its rate taken as even, the law `T = torque + ki e − kp (x − x*) − kd (ẋ − r*)` does
///
/// ```text
/// W = (torque + ki e − kp (x̄ − x*) − kd ((x₁ − x₀)/h − r*)) (x₁ − x₀),     x̄ = ½ (x₀ + x₁),     |W| ≤ max |x₁ − x₀|
/// ```
/// and that of a ball, with φ the rotation vector from its target, `W = −½kp (φ₁² − φ₀²) − kd |φ₁ − φ₀|²/h`, within the same bound.
pub fn motor_work(model: &Model, input: &Input, before: &State, after: &State) -> f64 {
    let h = after.time - before.time;
    if !input.torques || h <= 0.0 {
        return 0.0;
    }
    let mut work = 0.0;
    for (k, joint) in model.joints().iter().enumerate() {
        let Some(motor) = joint.motor else { continue };
        let mut own = input.joint(k);
        let [first, last] = [before, after].map(|state| forces::JointView::new(model, state, JointId(k as u32)));
        if let Some((servo, target)) = TurnServo::of(&motor, input, &own) {
            let (first, last) = (first.error_from(target), last.error_from(target));
            let moved = (last - first).length();
            let given_up = first.length_squared() - last.length_squared();
            let done = 0.5 * servo.stiffness * given_up - servo.damping * moved * moved / h;
            let most = motor.max * moved;
            work += done.clamp(-most, most);
            continue;
        }
        let (Some((first, ..)), Some((last, ..))) = (first.motor_position(), last.motor_position()) else { continue };
        let (middle, moved) = (0.5 * (first + last), last - first);
        if let Some(ServoTarget::Position { .. }) = own.servo {
            own.torque += motor.integral * input.scales(&own).0 * before.joints[k].integral;
        }
        work += Servo::of(&motor, input, &own).torque(middle, moved / h) * moved;
    }
    work
}

/// Momentum of a state about the world's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Momentum {
    /// \[kg·m/s\]
    pub linear: DVec3,
    /// \[kg·m²/s\]
    pub angular: DVec3,
}

/// The momentum of `state`.
pub fn momentum(model: &Model, state: &State) -> Momentum {
    let mut m = Momentum::default();
    for (body, s) in model.bodies().iter().zip(&state.bodies) {
        let p = s.velocity.linear * body.mass;
        m.linear += p;
        m.angular += s.position.cross(p) + turned_inertia(s.orientation, body.inertia) * s.velocity.angular;
    }
    for (mass, node) in nodes(model, state) {
        m.linear += node.velocity * mass;
        m.angular += node.position.cross(node.velocity * mass);
    }
    for (mass, x, v) in vertices(model, state) {
        m.linear += v * mass;
        m.angular += x.cross(v * mass);
    }
    m
}

/// How far the joints of a state are open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gap {
    /// Largest distance \[m\].
    pub distance: f64,
    /// Largest sine of an angle.
    pub tilt: f64,
    /// The joint with the largest distance.
    pub joint: Option<JointId>,
}

/// The largest joint gaps of `state`, a joint that is not where its coupling wants it among them.
pub fn joint_gap(model: &Model, state: &State) -> Gap {
    let mut gap = Gap::default();
    for (k, joint) in model.joints().iter().enumerate() {
        let (distance, tilt) = joint.gap(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state));
        if distance > gap.distance || gap.joint.is_none() {
            gap.distance = distance;
            gap.joint = Some(JointId(k as u32));
        }
        gap.tilt = gap.tilt.max(tilt);
    }
    for coupling in model.couplings() {
        let row = coupling.row_at(model, state);
        let off = row.residual.abs();
        if !row.is_length() {
            gap.tilt = gap.tilt.max(off);
        } else if off > gap.distance {
            (gap.distance, gap.joint) = (off, Some(coupling.follower));
        }
    }
    gap
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Motor, Shape};
    use crate::step::{Work, step};
    use glam::DQuat;

    #[test]
    fn what_a_motor_does_is_what_the_wheel_has() {
        let motor = Motor { stiffness: 3.0, damping: 0.05, max: 2.0, integral: 0.0 };
        for (mask, servo) in [
            (JointMask::HINGE, ServoTarget::Position { position: 1.5, rate: 0.3 }),
            (JointMask::HINGE, ServoTarget::Rate(4.0)),
            (JointMask::BALL, ServoTarget::Rotation(DQuat::from_rotation_y(0.5))),
        ] {
            let mut builder = ModelBuilder::new();
            let wheel = builder.body(BodySpec::new("wheel").shape(Shape::sphere(0.2), 1000.0));
            builder.joint(JointSpec::new("axle", mask, wheel, BodyRef::World).motor(motor));
            let model = builder.build().unwrap();
            let mut input = Input { gravity: DVec3::ZERO, dt: 1e-3, ..Input::default() };
            input.joint_mut(&model, 0).servo = Some(servo);
            let (mut state, mut work, mut done) = (model.start(), Work::new(&model), 0.0);
            for _ in 0..400 {
                let before = state.clone();
                step(&model, &input, &mut state, &mut work).unwrap();
                done += motor_work(&model, &input, &before, &state);
            }
            let kinetic = kinetic_energy(&model, &state);
            // The motor leaves its clamp within a step of 1 ms: no more than a thousandth of the work is unsure.
            assert!(kinetic > 1e-3 && (done / kinetic - 1.0).abs() < 1e-3, "{mask:?}: {done} {kinetic}");
        }
    }
}
