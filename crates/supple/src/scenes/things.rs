//! Things put into a scene: balls, boxes and capsules that move, ramps, stairs and tables that stand.

use super::Scene;
use crate::input::{Contacts, JointInput};
use crate::maths::{Pose, Twist};
use crate::model::{
    BodyId, BodyRef, BodySpec, BodyState, JointMask, JointSpec, JointState, Material, Model, ModelBuilder, ModelError,
    ObstacleSpec, Shape,
};
use glam::DVec3;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThingKind {
    /// As wide as its size along x.
    Ball,
    /// A cuboid.
    Box,
    /// Along y, as wide as its size along x.
    Capsule,
    /// It rises along z to its height; it stands.
    Ramp,
    /// They rise along z to their height, in steps of at most 18 cm; they stand.
    Stairs,
    /// A board on four legs; it stands.
    Table,
    /// A seat on two rods that swings about a bar between posts, which stand.
    Swing,
    /// Any solid, as the hull of its points.
    Prop,
}

impl ThingKind {
    /// All of them.
    pub const ALL: [ThingKind; 8] = [
        ThingKind::Ball,
        ThingKind::Box,
        ThingKind::Capsule,
        ThingKind::Ramp,
        ThingKind::Stairs,
        ThingKind::Table,
        ThingKind::Swing,
        ThingKind::Prop,
    ];

    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            ThingKind::Ball => "ball",
            ThingKind::Box => "box",
            ThingKind::Capsule => "capsule",
            ThingKind::Ramp => "ramp",
            ThingKind::Stairs => "stairs",
            ThingKind::Table => "table",
            ThingKind::Swing => "swing",
            ThingKind::Prop => "prop",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<ThingKind> {
        ThingKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is a body that goes anywhere; otherwise it stands.
    pub fn moves(self) -> bool {
        matches!(self, ThingKind::Ball | ThingKind::Box | ThingKind::Capsule | ThingKind::Prop)
    }
}

/// A thing in a scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    /// Its own among bodies and obstacles; empty: one is found.
    pub name: String,
    /// What it is.
    pub kind: ThingKind,
    /// Its middle, if it moves; the middle of where it stands otherwise.
    pub pose: Pose,
    /// Along x, y and z \[m\]; of a prop, times as large as its points are.
    pub size: DVec3,
    /// Of a prop: its points about the middle of its mass \[m\].
    pub hull: Vec<DVec3>,
    /// Of what moves \[kg\].
    pub mass: f64,
    /// Coefficient of friction.
    pub friction: f64,
    /// The body that carries it and its pose there, held exactly; `None`: it moves freely.
    pub held: Option<(BodyId, Pose)>,
}

/// A step of stairs is no higher than this \[m\].
const RISE: f64 = 0.18;
/// Thickness of a swing's posts and seat, and the room beside the seat \[m\].
const POST: f64 = 0.05;
const ROOM: f64 = 0.12;
/// Of a swing: what is left of its motion after a second, of what air and bearing take, as a rate \[1/s\].
const SWING_RATE: f64 = 0.1;
/// Thickness of a table's board and of its legs, of its height.
const BOARD: f64 = 0.07;
/// Lever of the rolling resistance of what is round, of its smallest size: a ball pushed off at 1 m/s rolls 3.6 m.
const ROLLING: f64 = 0.01;

impl Thing {
    /// A thing of a kind at a place, not held by anything.
    pub fn new(kind: ThingKind, pose: Pose, size: DVec3) -> Thing {
        Thing { name: String::new(), kind, pose, size, hull: Vec::new(), mass: 1.0, friction: 0.5, held: None }
    }

    /// The lever of its rolling resistance \[m\].
    fn rolling(&self) -> f64 {
        match self.kind {
            ThingKind::Ball | ThingKind::Capsule => ROLLING * self.size.min_element(),
            _ => 0.0,
        }
    }

    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        let Thing { pose, size, mass, friction, kind, held, .. } = self;
        let name = if self.name.is_empty() { kind.name() } else { &self.name };
        if !(pose.is_finite() && pose.translation.abs().max_element() <= 1e3) {
            return Err(format!("the {name} must lie within 1,000 m"));
        }
        if !(size.is_finite() && size.min_element() >= 0.005 && size.max_element() <= 100.0) {
            return Err(format!("the size of the {name} must lie between 0.005 and 100 m"));
        }
        if *kind == ThingKind::Prop && self.shape().solid().is_err() {
            return Err(format!("the {name} has no volume"));
        }
        if (kind.moves() || *kind == ThingKind::Swing) && !(1e-4..=1e5).contains(mass) {
            return Err(format!("the mass of the {name} must lie between 0.0001 and 100,000 kg"));
        }
        if !(0.0..=10.0).contains(friction) {
            return Err(format!("the friction of the {name} must lie between 0 and 10"));
        }
        if let Some((_, place)) = held {
            if !kind.moves() {
                return Err(format!("the {name} stands: a ball, a box or a capsule can be held"));
            }
            if !(place.is_finite() && place.translation.length() <= 1e3) {
                return Err(format!("the {name} must be held within 1,000 m"));
            }
        }
        Ok(())
    }

    /// The shape of what moves.
    fn shape(&self) -> Shape {
        let size = self.size;
        match self.kind {
            ThingKind::Ball => Shape::Sphere { radius: 0.5 * size.x },
            ThingKind::Capsule => Shape::Capsule { length: (size.y - size.x).max(1e-3), radius: 0.5 * size.x },
            ThingKind::Prop => Shape::Hull { points: self.hull.iter().map(|point| *point * size).collect() },
            _ => Shape::Cuboid { size },
        }
    }

    /// The parts of what stands, in its own frame.
    fn parts(&self) -> Vec<(Shape, Pose)> {
        let DVec3 { x, y, z } = self.size;
        let block = |size: DVec3, at: DVec3| (Shape::Cuboid { size }, Pose::at(at));
        match self.kind {
            ThingKind::Ramp => {
                let corner = |sx: f64, h: f64, sz: f64| DVec3::new(0.5 * sx * x, h, 0.5 * sz * z);
                let low = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)].map(|(sx, sz)| corner(sx, 0.0, sz));
                let points = low.into_iter().chain([corner(-1.0, y, 1.0), corner(1.0, y, 1.0)]).collect();
                vec![(Shape::Hull { points }, Pose::IDENTITY)]
            }
            ThingKind::Stairs => {
                let count = (y / RISE).ceil().clamp(1.0, 100.0);
                let (rise, run) = (y / count, z / count);
                (0..count as usize)
                    .map(|k| {
                        let height = rise * (k + 1) as f64;
                        let middle = -0.5 * z + run * (k as f64 + 0.5);
                        block(DVec3::new(x, height, run), DVec3::new(0.0, 0.5 * height, middle))
                    })
                    .collect()
            }
            ThingKind::Table => {
                let (thick, leg) = (BOARD * y, BOARD * y);
                let board = block(DVec3::new(x, thick, z), DVec3::Y * (y - 0.5 * thick));
                let at = |sx: f64, sz: f64| DVec3::new(0.5 * sx * (x - leg), 0.5 * (y - thick), 0.5 * sz * (z - leg));
                let legs = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)]
                    .map(|(sx, sz)| block(DVec3::new(leg, y - thick, leg), at(sx, sz)));
                std::iter::once(board).chain(legs).collect()
            }
            ThingKind::Swing => {
                let post =
                    |side: f64| block(DVec3::new(POST, y, POST), DVec3::new(side * (0.5 * x + ROOM), 0.5 * y, 0.0));
                let bar = block(DVec3::new(x + 2.0 * ROOM, POST, POST), DVec3::Y * (y + 0.5 * POST));
                vec![post(-1.0), post(1.0), bar]
            }
            ThingKind::Ball | ThingKind::Box | ThingKind::Capsule | ThingKind::Prop => Vec::new(),
        }
    }

    /// What hangs on what stands, in its own frame: a seat of a third of a metre above the ground at the most, on its rods.
    fn hanging(&self, name: &str) -> Option<(BodySpec, DVec3)> {
        if self.kind != ThingKind::Swing {
            return None;
        }
        let DVec3 { x, y, z } = self.size;
        let seat = (0.25 * y).min(0.35);
        let rod = y - POST - seat;
        let rods = [-0.5, 0.5].map(|side| DVec3::new(side * (x - POST), seat + 0.5 * rod, 0.0));
        let board = Shape::Cuboid { size: DVec3::new(x, POST, z) };
        let spec = BodySpec::new(name).shape_at(board, 400.0, Pose::at(DVec3::Y * seat));
        let spec = rods.into_iter().fold(spec, |spec, at| {
            spec.shape_at(Shape::Cuboid { size: DVec3::new(0.5 * POST, rod, 0.5 * POST) }, 100.0, Pose::at(at))
        });
        Some((spec, DVec3::Y * (y - 0.5 * POST)))
    }
}

impl Scene {
    /// The same scene with things in it, beside those it has: bodies that move come after its own, in order; what stands comes after its obstacles.
    /// The state of what was there is kept. `None` when the scene has flesh or skin, whose model cannot be made again.
    pub fn with_things(&self, things: &[Thing]) -> Result<Option<Scene>, ModelError> {
        if self.model.flesh().is_some() || self.model.skin().is_some() {
            return Ok(None);
        }
        let mut builder = ModelBuilder::from(&self.model);
        let mut state = self.state.clone();
        let (mut moving, mut hung) = (0, Vec::new());
        for (thing, name) in things.iter().zip(thing_names(&self.model, things)) {
            let material = Material::new(thing.friction, 0.0).rolling(thing.rolling());
            if !thing.kind.moves() {
                for (k, (shape, place)) in thing.parts().into_iter().enumerate() {
                    let part = ObstacleSpec::solid(format!("{name}.{}", k + 1), shape);
                    builder.obstacle(part.pose(thing.pose.then(place)).material(material));
                }
                if let Some((spec, pivot)) = thing.hanging(&name) {
                    let own = builder.body(spec.pose(thing.pose).mass(thing.mass).material(material));
                    let hinge = Pose::new(thing.pose.rotation, thing.pose.transform_point(pivot));
                    let joint = JointSpec::new(format!("{name} hangs"), JointMask::HINGE, own, BodyRef::World);
                    builder.joint(joint.frame(hinge).spring(0.0, SWING_RATE * thing.mass * pivot.y * pivot.y));
                    hung.push(own);
                    state.bodies.push(BodyState::at_rest(thing.pose)); // where its mass is, once the model is made
                    moving += 1;
                }
                continue;
            }
            let carrier = thing.held.filter(|(body, _)| body.index() < self.model.bodies().len());
            let start = carrier.map_or(thing.pose, |(body, place)| self.model.body(body).start.then(place));
            let spec = BodySpec::new(&name).pose(start).material(material);
            let own = builder.body(spec.shape(thing.shape(), 1.0).mass(thing.mass));
            state.bodies.push(match carrier {
                Some((body, place)) => {
                    let link = Pose::new(place.rotation, place.translation + self.model.body(body).centre_in_link);
                    let held = JointSpec::new(format!("{name} held"), JointMask::WELD, own, body);
                    builder.joint(held.frames(Pose::IDENTITY, link));
                    carried(&self.state.bodies[body.index()], place)
                }
                None => BodyState::at_rest(thing.pose),
            });
            moving += 1;
        }
        let model = builder.build()?;
        for own in hung {
            state.bodies[own.index()] = BodyState::at_rest(model.body(own).start);
        }
        state.joints.resize(model.joints().len(), JointState::default());
        state.contacts.clear(); // keys count shapes
        state.rest.clear();
        let mut input = self.input.clone();
        if !things.is_empty() {
            input.contacts = Contacts::All;
        }
        if !input.joints.is_empty() {
            input.joints.resize(model.joints().len(), JointInput::default());
        }
        let bare = Some(Arc::new(self.bare().clone()));
        let (name, script, states) = (self.name.clone(), self.script.clone(), self.states.clone());
        let (things, guests) = (self.things + moving, self.guests.clone());
        Ok(Some(Scene { name, model, state, input, things, guests, bare, states, script }))
    }

    /// The scene as it was before things were put into it; itself where none were.
    pub fn bare(&self) -> &Scene {
        self.bare.as_deref().unwrap_or(self)
    }

    /// How many of its bodies, the last, are things that were put into it.
    pub fn things(&self) -> usize {
        self.things
    }
}

/// What a body carries at a place of it moves so.
fn carried(body: &BodyState, place: Pose) -> BodyState {
    let pose = body.pose().then(place);
    let Twist { linear, angular } = body.velocity;
    let lever = pose.translation - body.position;
    BodyState { velocity: Twist::new(linear + angular.cross(lever), angular), ..BodyState::at_rest(pose) }
}

/// The names of things, those that have none named by what they are and a number.
pub fn thing_names(model: &Model, things: &[Thing]) -> Vec<String> {
    let bodies = model.bodies().iter().map(|body| body.name.clone());
    // parts of what stands are called "stairs 1.3"
    let whole = |name: &str| name.split_once('.').map_or(name, |(whole, _)| whole).to_owned();
    let obstacles = model.obstacles().iter().map(|obstacle| whole(&obstacle.name));
    let told = things.iter().map(|thing| thing.name.clone());
    let mut taken: BTreeSet<String> = bodies.chain(obstacles).chain(told).collect();
    let mut free = |kind: ThingKind| {
        let mut all = (1..).map(|k| format!("{} {k}", kind.name()));
        all.find(|name| taken.insert(name.clone())).unwrap_or_default()
    };
    things.iter().map(|thing| if thing.name.is_empty() { free(thing.kind) } else { thing.name.clone() }).collect()
}
