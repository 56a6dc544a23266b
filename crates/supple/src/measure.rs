//! Measures of a state: energy, momentum, joint gaps. Used by tests, command line and studio alike.

use crate::forces;
use crate::input::Input;
use crate::maths::rotation::turned_inertia;
use crate::model::{Body, BodyState, JointId, Model, NodeState, State};
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
    /// Of flesh.
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
    model.bodies().iter().zip(&state.bodies).map(one).sum::<f64>() + flesh.sum::<f64>()
}

/// The free nodes of the flesh with their masses \[kg\].
fn nodes<'a>(model: &'a Model, state: &'a State) -> impl Iterator<Item = (f64, &'a NodeState)> {
    let masses = model.flesh().map_or(&[][..], |flesh| &flesh.masses);
    masses.iter().copied().zip(&state.nodes)
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
    e
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

/// The largest joint gaps of `state`.
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
    gap
}
