//! Contacts: where bodies touch obstacles and each other, or may within the coming part of a step.
//!
//! Everything is found from the poses at the start of the part, and from velocities as far ahead as the part is long, so that
//! nothing passes through anything however fast it is: a contact may still be apart (`gap > 0`), and a solver that keeps
//! `gap + h n·(v_a − v_b) ≥ 0` at each of them lets nothing through.
//!
//! 1. broad.rs: boxes around all that each shape may reach; the pairs whose boxes overlap;
//! 2. filters: joined bodies, groups;
//! 3. distance.rs: the direction in which two convex shapes are farthest apart, or least deep in each other;
//! 4. advance.rs: for what moves far, the moment of the first touch;
//! 5. manifold.rs: the points that touch in that direction, at most four of them;
//! 6. surface.rs: meshes and height fields, triangle by triangle, without bumps at inner edges.

mod collider;

pub(crate) use collider::Colliders;

use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist};
use crate::model::{BodyId, Model, ObstacleId, State};
use glam::{DQuat, DVec3};

/// What a body touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Other {
    /// Another body, of a higher id.
    Body(BodyId),
    /// An obstacle.
    Obstacle(ObstacleId),
}

/// Tells which contact of one step is which of the next: equal keys are the same spot of the same shapes. No two contacts of
/// a step have the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContactKey {
    /// Shape of side a, counted over all shapes of all bodies.
    pub shape_a: u32,
    /// Shape of side b: shapes of bodies first, then obstacles.
    pub shape_b: u32,
    /// Triangles of side a and b, each plus 1; 0 for shapes without, and where the spot is known by its feature alone.
    pub triangles: [u32; 2],
    /// Corner, pair of edges, or other feature of the two shapes.
    pub feature: u32,
}

/// One point where body a touches something, or may soon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// The body that touches. Of two bodies the one with the lower id.
    pub a: BodyId,
    /// What it touches.
    pub b: Other,
    /// The same from step to step while the same spots touch.
    pub key: ContactKey,
    /// Midway between the two surfaces, in the world at the start of the part \[m\].
    pub point: DVec3,
    /// On the surface of a, in coordinates of body a \[m\].
    pub point_in_a: DVec3,
    /// On the surface of b, in coordinates of body b or of the obstacle \[m\].
    pub point_in_b: DVec3,
    /// Unit vector from b to a, world axes.
    pub normal: DVec3,
    /// Distance of the two points along the normal at the start of the part \[m\]; below 0 they overlap.
    pub gap: f64,
    /// Coefficient of friction of the two materials together.
    pub friction: f64,
    /// Coefficient of restitution of the two materials together.
    pub restitution: f64,
    /// Velocity of the obstacle's point \[m/s\]; 0 when b is a body.
    pub obstacle_velocity: DVec3,
}

/// Scratch for finding contacts. Nothing in it affects a result: a fresh one finds the same contacts bit for bit.
#[derive(Default)]
pub struct ContactWork {
    contacts: Vec<Contact>,
}

impl ContactWork {
    /// Scratch for this model.
    pub fn new(_model: &Model) -> ContactWork {
        ContactWork::default()
    }

    /// The contacts that [`detect`] found last.
    pub fn contacts(&self) -> &[Contact] {
        &self.contacts
    }
}

/// Whether a step of this model with this input looks for contacts at all.
pub fn wanted(model: &Model, input: &Input) -> bool {
    match input.contacts {
        Contacts::Off => false,
        Contacts::Obstacles => !model.obstacles().is_empty(),
        Contacts::All => true,
    }
}

/// Finds all contacts of one part `h` of a step, `after` seconds before the step's end, at the poses of `state`. In the
/// order of their keys.
pub fn detect<'w>(
    model: &Model,
    input: &Input,
    state: &State,
    (h, after): (f64, f64),
    work: &'w mut ContactWork,
) -> &'w [Contact] {
    work.contacts.clear();
    let _ = (model, input, state, h, after);
    &work.contacts
}

/// Where an obstacle is `before` seconds ahead of the end of the step, and its velocity.
pub fn obstacle_motion(model: &Model, input: &Input, id: ObstacleId, before: f64) -> (Pose, Twist) {
    match input.obstacles.get(id.index()).copied().flatten() {
        None => (model.obstacle(id).pose, Twist::ZERO),
        Some(target) => (moved(target.pose, target.velocity, -before), target.velocity),
    }
}

/// A pose carried on by a constant twist: `x + t v`, `exp(t ω) q`.
fn moved(pose: Pose, twist: Twist, t: f64) -> Pose {
    if t == 0.0 || twist == Twist::ZERO {
        return pose;
    }
    let turn = DQuat::from_scaled_axis(twist.angular * t);
    Pose::new((turn * pose.rotation).normalize(), pose.translation + twist.linear * t)
}
