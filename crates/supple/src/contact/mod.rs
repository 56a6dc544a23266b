//! Contacts: where bodies touch obstacles and each other, or may within the coming part of a step.
//!
//! Everything is found from the poses at the start of the part, and from velocities as far ahead as the part is long, so that
//! nothing passes through anything however fast it is: a contact may still be apart (`gap > 0`), and a solver that keeps
//! `gap + h n·(v_a − v_b) ≥ 0` at each of them lets nothing through.
//!
//! 1. broad.rs: boxes around all that each shape may reach; the pairs whose boxes overlap;
//! 2. filters: joined bodies, groups;
//! 3. distance.rs: the direction in which two convex shapes are farthest apart, or least deep in each other;
//! 4. manifold.rs: the points that touch in that direction, at most four of them;
//! 5. surface.rs: meshes and height fields, triangle by triangle, without bumps at inner edges;
//! 6. pair.rs: two shapes, through 3 to 5; for what moves far, at the moment of the first touch.
//!
//! follow.rs: a contact as its bodies move on; penalty.rs: contacts as springs, for the solvers that have no one-sided rows.

pub(crate) mod broad;
mod collider;
pub(crate) mod convex;
pub(crate) mod distance;
pub(crate) mod follow;
mod manifold;
mod pair;
pub(crate) mod penalty;
mod point;
pub(crate) mod polytope;
mod surface;

pub(crate) use collider::Colliders;
pub use penalty::Penalty;

use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist};
use crate::model::{BodyId, JointId, Model, ObstacleId, State};
use broad::{Bounds, BoxTree};
use collider::{Collider, Form};
use distance::DistanceWork;
use glam::{DMat3, DQuat, DVec3};
use manifold::Spot;

/// What a body touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Other {
    /// Another body, of a higher id.
    Body(BodyId),
    /// An obstacle.
    Obstacle(ObstacleId),
}

/// Marks obstacles in keys of rolling resistance.
const OBSTACLES: u32 = 1 << 31;

/// Tells which contact of one step is which of the next: equal keys are the same spot of the same shapes. No two contacts of
/// a step have the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContactKey {
    /// Shape of side a, counted over all shapes of all bodies.
    pub shape_a: u32,
    /// Shape of side b: shapes of bodies first, then obstacles.
    pub shape_b: u32,
    /// On meshes and height fields the triangle, or roughly the direction of its normal where a corner of side a slides over many.
    pub place: u32,
    /// Corner, pair of edges, or other feature of the two shapes.
    pub feature: u32,
}

impl ContactKey {
    /// The key of an end of a joint's hard limits: after those of all contacts.
    pub(crate) fn limit(joint: JointId, place: u32) -> ContactKey {
        ContactKey { shape_a: u32::MAX, shape_b: joint.0, place, feature: 0 }
    }

    /// The key of the rolling resistance of a body on something: after those of limits.
    pub(crate) fn rolling(a: BodyId, b: Other) -> ContactKey {
        let feature = match b {
            Other::Body(b) => b.0,
            Other::Obstacle(b) => OBSTACLES | b.0,
        };
        ContactKey { shape_a: u32::MAX, shape_b: u32::MAX, place: a.0, feature }
    }

    /// Whether it is of a contact, not of a limit or of rolling resistance.
    pub(crate) fn is_contact(&self) -> bool {
        self.shape_a != u32::MAX
    }

    /// The body on side a of a contact, or whose joint a limit is of; none for the key of another model.
    pub(crate) fn body(&self, model: &Model) -> Option<BodyId> {
        if self.shape_a == u32::MAX {
            let rolls = (self.shape_b == u32::MAX).then_some(BodyId(self.place));
            let rolls = rolls.filter(|body| body.index() < model.bodies().len());
            return rolls.or_else(|| model.joints().get(self.shape_b as usize).map(|joint| joint.child));
        }
        match model.colliders().all.get(self.shape_a as usize)?.owner {
            Other::Body(id) => Some(id),
            Other::Obstacle(_) => None,
        }
    }

    /// The two bodies of a contact between bodies; none for one with an obstacle, a limit, or the key of another model.
    pub(crate) fn bodies(&self, model: &Model) -> Option<(BodyId, BodyId)> {
        if self.shape_a == u32::MAX {
            return None;
        }
        match model.colliders().all.get(self.shape_b as usize)?.owner {
            Other::Body(b) => Some((self.body(model)?, b)),
            Other::Obstacle(_) => None,
        }
    }
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
    /// From the core of a to that point, world axes: what does not turn with the body when it rolls \[m\]. For spheres and capsules from the centre or
    /// the axis, for cylinders from the axis; zero for shapes with corners.
    pub round_a: DVec3,
    /// The same of b \[m\].
    pub round_b: DVec3,
    /// Unit vector from b to a, world axes.
    pub normal: DVec3,
    /// Distance of the two points along the normal at the start of the part \[m\]; below 0 they overlap.
    pub gap: f64,
    /// Coefficient of friction of the two materials together.
    pub friction: f64,
    /// Coefficient of restitution of the two materials together.
    pub restitution: f64,
    /// Lever of the rolling resistance of the two materials together \[m\].
    pub rolling: f64,
    /// Velocity of the obstacle's point \[m/s\]; 0 when b is a body.
    pub obstacle_velocity: DVec3,
    /// Angular velocity of the obstacle \[rad/s\]; 0 when b is a body.
    pub obstacle_spin: DVec3,
}

/// Scratch for finding contacts. Nothing in it affects a result: a fresh one finds the same contacts bit for bit.
#[derive(Default)]
pub struct ContactWork {
    contacts: Vec<Contact>,
    /// By collider: where its owner is and how it moves.
    motions: Vec<Motion>,
    /// The colliders in the tree, and a box around all that each may reach.
    items: Vec<u32>,
    boxes: Vec<Bounds>,
    tree: BoxTree,
    half_spaces: Vec<u32>,
    pairs: Vec<(u32, u32)>,
    spots: Spots,
}

/// Scratch for one pair of shapes.
#[derive(Default)]
struct Spots {
    found: Vec<Spot>,
    cluster: Vec<Spot>,
    kept: Vec<Spot>,
    /// Triangles of side a that are near side b; of side b that are near one of them.
    triangles: Vec<u32>,
    near: Vec<u32>,
    distance: DistanceWork,
}

/// Where an owner of shapes is at the start of the part, and its velocity.
#[derive(Clone, Copy, Debug)]
struct Motion {
    pose: Pose,
    twist: Twist,
}

impl ContactWork {
    /// Scratch for this model.
    pub fn new(_model: &Model) -> ContactWork {
        ContactWork::default()
    }

    /// How many pairs of shapes came near enough to be looked at in the last search.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The contacts that [`detect`] found last.
    pub fn contacts(&self) -> &[Contact] {
        &self.contacts
    }

    /// Forgets the contacts of the last search.
    pub(crate) fn clear(&mut self) {
        self.contacts.clear();
    }

    /// Leaves out the contacts of bodies that stay where they are, told by body; none is told when all move.
    pub(crate) fn leave_out(&mut self, held: &[bool]) {
        if held.is_empty() {
            return;
        }
        self.contacts.retain(|contact| {
            let other = match contact.b {
                Other::Body(b) => held[b.index()],
                Other::Obstacle(_) => false,
            };
            !(held[contact.a.index()] || other)
        });
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
    let ContactWork { contacts, motions, items, boxes, tree, half_spaces, pairs, spots } = work;
    contacts.clear();
    pairs.clear();
    if !wanted(model, input) {
        return contacts;
    }
    let colliders = model.colliders();
    // What bodies may gain by gravity within the part, doubled for what else pushes them.
    let fall = 2.0 * h * h * input.gravity.length();

    motions.clear();
    motions.extend(colliders.all.iter().map(|c| match c.owner {
        Other::Body(id) => {
            let body = &state.bodies[id.index()];
            Motion { pose: body.pose(), twist: body.velocity }
        }
        Other::Obstacle(id) => {
            let (pose, twist) = obstacle_motion(model, input, id, after + h);
            Motion { pose, twist }
        }
    }));

    items.clear();
    half_spaces.clear();
    let first = if input.contacts == Contacts::All { 0 } else { colliders.of_bodies };
    for (k, collider) in colliders.all.iter().enumerate().skip(first) {
        match collider.form {
            Form::HalfSpace => half_spaces.push(k as u32),
            _ => items.push(k as u32),
        }
    }
    boxes.clear();
    boxes.extend(items.iter().map(|&k| swept(&colliders.all[k as usize], &motions[k as usize], h, fall)));
    tree.build(boxes);

    // Every shape of a body against the tree and the half-spaces, each pair once and in order.
    for k in 0..colliders.of_bodies {
        let Other::Body(a) = colliders.all[k].owner else { continue };
        let meets = |other: &Collider| match other.owner {
            Other::Body(b) => a < b && model.may_touch(a, b),
            Other::Obstacle(b) => model.body(a).groups.meet(model.obstacle(b).groups),
        };
        let bounds = swept(&colliders.all[k], &motions[k], h, fall);
        tree.overlapping(&bounds, |item| {
            let other = items[item as usize];
            if meets(&colliders.all[other as usize]) {
                pairs.push((k as u32, other));
            }
        });
        pairs.extend(half_spaces.iter().filter(|&&o| meets(&colliders.all[o as usize])).map(|&o| (k as u32, o)));
    }
    pairs.sort_unstable();

    for &(i, k) in pairs.iter() {
        let (a, b) = (&colliders.all[i as usize], &colliders.all[k as usize]);
        let (motion_a, motion_b) = (motions[i as usize], motions[k as usize]);
        let origin = motion_a.pose.transform_point(a.place.translation);
        spots.kept.clear();
        pair::spots(pair::Pair { a, b, motion_a, motion_b, origin, h, fall }, spots);
        if spots.kept.is_empty() {
            continue;
        }
        let Other::Body(body) = a.owner else { continue };
        let (mine, theirs) = match b.owner {
            Other::Body(b) => (model.body(body).material, model.body(b).material),
            Other::Obstacle(b) => (model.body(body).material, model.obstacle(b).material),
        };
        let material = mine.with(theirs);
        let start = contacts.len();
        for spot in &spots.kept {
            let (on_a, on_b) = (spot.on_a + origin, spot.on_b + origin);
            let (obstacle_velocity, obstacle_spin) = match b.owner {
                Other::Body(_) => (DVec3::ZERO, DVec3::ZERO),
                Other::Obstacle(_) => (motion_b.twist.at(on_b - motion_b.pose.translation), motion_b.twist.angular),
            };
            let contact = Contact {
                a: body,
                b: b.owner,
                key: ContactKey { shape_a: i, shape_b: k, place: spot.place, feature: spot.feature },
                point: (on_a + on_b) * 0.5,
                point_in_a: seen_from(&motion_a.pose, origin, spot.on_a),
                point_in_b: seen_from(&motion_b.pose, origin, spot.on_b),
                round_a: a.round(&motion_a.pose, spot.on_a + (origin - motion_a.pose.translation), -spot.normal),
                round_b: b.round(&motion_b.pose, spot.on_b + (origin - motion_b.pose.translation), spot.normal),
                normal: spot.normal,
                gap: spot.gap,
                friction: material.friction,
                restitution: material.restitution,
                rolling: material.rolling,
                obstacle_velocity,
                obstacle_spin,
            };
            if contact.is_finite() {
                contacts.push(contact);
            }
        }
        // In order, and no key twice.
        let new = &mut contacts[start..];
        new.sort_unstable_by(|p, q| p.key.cmp(&q.key).then(p.gap.total_cmp(&q.gap)));
        for k in 1..new.len() {
            if new[k].key <= new[k - 1].key {
                new[k].key = ContactKey { feature: new[k - 1].key.feature.wrapping_add(1), ..new[k - 1].key };
            }
        }
    }
    contacts
}

impl Contact {
    fn is_finite(&self) -> bool {
        self.point_in_a.is_finite() && self.point_in_b.is_finite() && self.normal.is_finite() && self.gap.is_finite()
    }
}

/// A point given from `origin`, in the coordinates of an owner; near bodies far from the world's origin keep their digits.
fn seen_from(pose: &Pose, origin: DVec3, point: DVec3) -> DVec3 {
    pose.rotation.conjugate() * (point + (origin - pose.translation))
}

/// A box around all that a shape may reach within the part.
fn swept(collider: &Collider, motion: &Motion, h: f64, fall: f64) -> Bounds {
    let world_from_shape = motion.pose.then(collider.place);
    let axes = DMat3::from_quat(world_from_shape.rotation);
    let half = collider.bounds.half();
    let half = axes.x_axis.abs() * half.x + axes.y_axis.abs() * half.y + axes.z_axis.abs() * half.z;
    let centre = world_from_shape.transform_point(collider.bounds.centre());
    // A point turned by an angle moves at most by the chord, and never farther than across.
    let turned = (motion.twist.angular.length() * h).min(2.0) * collider.reach;
    let now = Bounds::around(centre, half + DVec3::splat(turned + fall + collider.slack()));
    let travel = motion.twist.linear * h;
    now.with(&Bounds { min: now.min + travel, max: now.max + travel })
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
