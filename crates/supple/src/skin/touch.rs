//! Where the surface touches obstacles, balls, bodies without skin and itself, or may within the coming part: one contact for each vertex and thing, and
//! those between vertices (`between.rs`).

use super::hierarchy::{Near, Triangles};
use super::pose::Posed;
use super::prune::PruneWork;
use super::{Ball, Skin, SkinResponse};
use crate::contact::convex::{Convex, Placed};
use crate::contact::{self, ContactKey};
use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist};
use crate::model::{BodyId, Model, ObstacleId, ObstacleShape, Shape, State};
use glam::{DMat3, DVec3};

/// A place on the surface: a vertex, or one on an edge or a triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) corners: [u32; 3],
    /// Of the corners; they add up to 1.
    pub(crate) shares: DVec3,
}

impl Spot {
    /// A vertex.
    pub(crate) fn vertex(v: u32) -> Spot {
        Spot { corners: [v; 3], shares: DVec3::X }
    }

    /// The corners that have a share, with their shares.
    pub(crate) fn corners(self) -> impl Iterator<Item = (u32, f64)> + use<> {
        (0..3).map(move |k| (self.corners[k], self.shares[k])).filter(|(_, share)| *share > 1e-9)
    }

    /// What vertices have, by their shares.
    pub(crate) fn sum(self, of: impl Fn(usize) -> DVec3) -> DVec3 {
        self.corners().map(|(v, share)| of(v as usize) * share).sum()
    }
}

/// What a place of the surface touches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    /// Something that moves as it is told.
    Fixed,
    /// A body without skin, at a place of its own axes turned to the world, from its centre of mass.
    Body(BodyId, DVec3),
    /// The surface itself, or that of another character.
    Surface(Spot),
}

impl Side {
    /// The vertices of a surface that have a share, with their shares; none of anything else.
    pub(crate) fn corners(&self) -> impl Iterator<Item = (u32, f64)> + use<> {
        let spot = match *self {
            Side::Surface(spot) => spot,
            _ => Spot { corners: [0; 3], shares: DVec3::ZERO },
        };
        spot.corners()
    }
}

/// A place of the surface near something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Touch {
    pub(crate) spot: Spot,
    pub(crate) side: Side,
    /// Unit vector out of what is touched, world axes.
    pub(crate) normal: DVec3,
    /// Distance along it; below 0 the place is inside \[m\].
    pub(crate) gap: f64,
    /// Velocity of what is fixed there \[m/s\].
    pub(crate) velocity: DVec3,
    pub(crate) friction: f64,
    pub(crate) key: ContactKey,
}

impl Touch {
    /// All vertices that it pushes on, with the share of the push that each gets, signed.
    pub(crate) fn vertices(&self) -> impl Iterator<Item = (u32, f64)> + use<> {
        self.spot.corners().chain(self.side.corners().map(|(v, share)| (v, -share)))
    }
}

/// Something that the surface may touch.
pub(super) struct Thing<G, S> {
    /// How far a place is from it, and the unit vector out of it there, if no farther than told.
    pub(super) gap: G,
    /// What it is at a place, and its velocity there.
    pub(super) side: S,
    pub(super) friction: f64,
    pub(super) key: u32,
}

/// Keys of skin's contacts stand after those of shapes and before those of limits.
const SHAPE: u32 = u32::MAX - 1;
const OF_BODY: u32 = 1 << 28;
const OF_BALL: u32 = 1 << 29;
const OF_ITSELF: u32 = 1 << 30;

/// Scratch of the search.
pub(crate) struct Search {
    pub(crate) prune: PruneWork,
    pub(super) own: Triangles,
    /// By obstacle, then by shape of bodies: its triangles, for meshes.
    meshes: Vec<Option<Triangles>>,
    /// By body: which of its meshes is first in `meshes`.
    first_mesh: Vec<usize>,
    /// As `meshes`: middle and half the sides of a box around the shape.
    boxes: Vec<(DVec3, DVec3)>,
    pub(crate) all: Vec<Touch>,
    /// Bones whose vertices were looked at, by body.
    pub(crate) looked: Vec<bool>,
    /// Bones near the thing that is looked at, and how far its vertices are from it \[m\].
    pub(super) near: Vec<u32>,
    pub(super) gaps: Vec<f64>,
    /// Contacts of edges with edges, by both.
    pub(super) crossings: Vec<([u32; 4], Touch)>,
}

fn mesh_of(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Triangles {
    let mut mesh = Triangles::new(triangles);
    mesh.refit(vertices);
    mesh
}

impl Search {
    pub(crate) fn new(model: &Model, skin: &Skin) -> Search {
        let mut meshes: Vec<Option<Triangles>> = model
            .obstacles()
            .iter()
            .map(|obstacle| match &obstacle.shape {
                ObstacleShape::Mesh { vertices, triangles }
                | ObstacleShape::Solid(Shape::Mesh { vertices, triangles }) => Some(mesh_of(vertices, triangles)),
                ObstacleShape::Solid(Shape::Hull { points }) => hull_of(points),
                _ => None,
            })
            .collect();
        let mut boxes: Vec<(DVec3, DVec3)> = model.obstacles().iter().map(|o| bounds(&o.shape)).collect();
        let mut first_mesh = Vec::new();
        for body in model.bodies() {
            boxes.extend(body.shapes.iter().map(|placed| bounds(&ObstacleShape::Solid(placed.shape.clone()))));
            first_mesh.push(meshes.len());
            meshes.extend(body.shapes.iter().map(|placed| match &placed.shape {
                Shape::Mesh { vertices, triangles } => Some(mesh_of(vertices, triangles)),
                Shape::Hull { points } => hull_of(points),
                _ => None,
            }));
        }
        Search {
            prune: PruneWork::default(),
            own: Triangles::new(&skin.triangles),
            meshes,
            first_mesh,
            boxes,
            all: Vec::new(),
            looked: vec![false; model.bodies().len()],
            near: Vec::new(),
            gaps: vec![f64::INFINITY; skin.nodes()],
            crossings: Vec::new(),
        }
    }

    /// Finds what the surface may touch within h, `after` seconds before the end of the step; with h = 0 what is inside something. The contacts are in the order of their keys.
    pub(crate) fn find(
        &mut self,
        model: &Model,
        skin: &Skin,
        input: &Input,
        (state, posed): (&State, &Posed),
        (h, after): (f64, f64),
    ) {
        self.all.clear();
        self.looked.fill(false);
        if input.contacts == Contacts::Off && input.balls.is_empty() {
            return;
        }
        self.prune.measure(skin, state, posed);
        // How far vertices come within the part: they are looked at again, each with its own velocity
        let fastest = posed.velocities.iter().map(|v| v.length_squared()).fold(0.0, f64::max).sqrt();
        let slack = if h > 0.0 { 0.05 * skin.depth + 2.0 * h * h * input.gravity.length() } else { 0.0 };
        // as published vertices alone are looked at
        let is_whole = h > 0.0 && input.skin.response == SkinResponse::Complementary;
        let ahead = Ahead { h, slack, reach: slack + h * fastest, is_whole };

        for (k, ball) in input.balls.iter().enumerate() {
            let centre = ball.centre - ball.velocity * (after + h);
            let core = Placed { core: Convex::Point, axes: DMat3::IDENTITY, at: centre, size: 0.0 };
            self.find_bones(skin, state, &core, ball.radius + ahead.reach + h * ball.velocity.length());
            let gap = |x: DVec3, _: f64| {
                let away = x - centre;
                Some((away.length() - ball.radius, away.try_normalize().unwrap_or(DVec3::Y)))
            };
            let side = |_| (Side::Fixed, ball.velocity);
            self.test(skin, posed, ahead, &Thing { gap, side, friction: BALL_FRICTION, key: OF_BALL + k as u32 });
        }
        if input.contacts != Contacts::Off {
            self.find_obstacles(model, skin, input, (state, posed), (ahead, after));
        }
        if input.contacts == Contacts::All {
            self.find_bodies(model, skin, (state, posed), ahead);
            self.find_own(skin, (state, posed), ahead);
        }
        // an edge is found with both its triangles
        self.all.sort_unstable_by(|a, b| a.key.cmp(&b.key).then(a.gap.total_cmp(&b.gap)));
        self.all.dedup_by(|b, a| a.key == b.key && a.key.feature != 0);
    }

    /// Notes the bones whose proxies are nearer to a core than `near`.
    fn find_bones(&mut self, skin: &Skin, state: &State, core: &Placed<'_>, near: f64) {
        let Search { prune, near: bones, .. } = self;
        bones.clear();
        bones.extend(skin.bones.iter().filter(|&&bone| prune.gap(skin, state, bone, core) <= near));
    }

    /// Finds where the bones that were noted touch a thing: at vertices, and between them.
    fn test<G, S>(&mut self, skin: &Skin, posed: &Posed, ahead: Ahead, thing: &Thing<G, S>)
    where
        G: Fn(DVec3, f64) -> Option<(f64, DVec3)>,
        S: Fn(DVec3) -> (Side, DVec3),
    {
        if self.near.is_empty() {
            return;
        }
        self.test_vertices(skin, posed, ahead, thing);
        if ahead.is_whole {
            self.test_between(skin, posed, ahead, thing);
        }
    }

    fn test_vertices<G, S>(&mut self, skin: &Skin, posed: &Posed, ahead: Ahead, thing: &Thing<G, S>)
    where
        G: Fn(DVec3, f64) -> Option<(f64, DVec3)>,
        S: Fn(DVec3) -> (Side, DVec3),
    {
        let Search { prune, all, looked, near, gaps, .. } = self;
        prune.start(skin.nodes());
        let farthest = ahead.reach + skin.depth;
        for &bone in near.iter() {
            looked[bone as usize] = true;
            for &a in skin.proxies.vertices(bone) {
                if !prune.is_first(a) {
                    continue;
                }
                let x = posed.places[a as usize];
                let found = (thing.gap)(x, farthest);
                gaps[a as usize] = found.map_or(f64::INFINITY, |(gap, _)| gap);
                if let Some(found) = found {
                    let key = (thing.friction, thing.key, 0);
                    all.extend(ahead.touch((skin, posed), Spot::vertex(a), found, (thing.side)(x), key));
                }
            }
        }
    }

    fn find_obstacles(
        &mut self,
        model: &Model,
        skin: &Skin,
        input: &Input,
        (state, posed): (&State, &Posed),
        (ahead, after): (Ahead, f64),
    ) {
        for (id, obstacle) in (0..).map(ObstacleId).zip(model.obstacles()) {
            let (pose, twist) = contact::obstacle_motion(model, input, id, after + ahead.h);
            let is_plane = matches!(obstacle.shape, ObstacleShape::HalfSpace);
            if is_plane {
                let up = pose.rotation * DVec3::Y;
                let reach = ahead.reach + ahead.h * twist.linear.length();
                let Search { prune, near, .. } = self;
                near.clear();
                let height = |bone: u32| prune.height(skin, state, bone, pose.translation, up);
                near.extend(skin.bones.iter().filter(|&&bone| height(bone) <= reach));
            } else {
                let (centre, half) = self.boxes[id.index()];
                let speed = twist.linear.length() + twist.angular.length() * half.length();
                self.find_bones(skin, state, &boxed(pose, centre, half), ahead.reach + ahead.h * speed);
            }
            let from_world = pose.inverse();
            let mesh = self.meshes[id.index()].take();
            let gap = |x: DVec3, farthest: f64| {
                let local = from_world.transform_point(x);
                let (gap, normal) = match &mesh {
                    Some(mesh) => mesh.nearest(local, farthest, |_| true).map(|found| (found.gap, found.normal))?,
                    None => model.colliders().gap(model.colliders().of_obstacle(id), local, farthest)?,
                };
                Some((gap, pose.rotation * normal))
            };
            let side = |x: DVec3| (Side::Fixed, velocity_at(twist, pose, x));
            let thing = Thing { gap, side, friction: obstacle.material.friction, key: id.0 };
            // on a plane vertices are lowest; on a mesh of many triangles the rest would take too long
            let is_quick = !is_plane && mesh.as_ref().is_none_or(|mesh| mesh.count() <= FEW_TRIANGLES);
            self.test(skin, posed, Ahead { is_whole: ahead.is_whole && is_quick, ..ahead }, &thing);
            self.meshes[id.index()] = mesh;
        }
    }

    fn find_bodies(&mut self, model: &Model, skin: &Skin, (state, posed): (&State, &Posed), ahead: Ahead) {
        for (i, body) in model.bodies().iter().enumerate() {
            if body.groups.collides_with == 0 || skin.bones.binary_search(&(i as u32)).is_ok() {
                continue;
            }
            let s = &state.bodies[i];
            let from_world = s.pose().inverse();
            for (k, placed) in body.shapes.iter().enumerate() {
                let slot = self.first_mesh[i] + k;
                let world_from_shape = s.pose().then(placed.body_from_shape);
                let (centre, half) = self.boxes[slot];
                let speed = s.velocity.linear.length() + s.velocity.angular.length() * half.length();
                self.find_bones(skin, state, &boxed(world_from_shape, centre, half), ahead.reach + ahead.h * speed);
                let mesh = self.meshes[slot].take();
                let gap = |x: DVec3, farthest: f64| match &mesh {
                    Some(mesh) => {
                        let local = world_from_shape.inverse().transform_point(x);
                        let found = mesh.nearest(local, farthest, |_| true)?;
                        Some((found.gap, world_from_shape.rotation * found.normal))
                    }
                    None => {
                        let shape = slot - model.obstacles().len();
                        let (gap, normal) = model.colliders().gap(shape, from_world.transform_point(x), farthest)?;
                        Some((gap, s.orientation * normal))
                    }
                };
                let side = |x: DVec3| {
                    let lever = x - s.position;
                    (Side::Body(BodyId(i as u32), lever), s.velocity.at(lever))
                };
                let thing = Thing { gap, side, friction: body.material.friction, key: OF_BODY + i as u32 };
                self.test(skin, posed, ahead, &thing);
                self.meshes[slot] = mesh;
            }
        }
    }

    /// Where limbs, or characters, touch one another: vertices near triangles of bones that are no neighbours, face to face, and edges that cross.
    fn find_own(&mut self, skin: &Skin, (state, posed): (&State, &Posed), ahead: Ahead) {
        let near_by = 0.5 * skin.depth + ahead.slack;
        let reach = near_by + (ahead.reach - ahead.slack).min(2.0 * skin.depth);
        self.prune.find_pairs(skin, state, reach);
        if self.prune.pairs.is_empty() {
            return;
        }
        self.own.refit(&posed.places);
        self.gaps.fill(f64::INFINITY);
        let Search { prune, own, all, looked, gaps, .. } = self;
        for &bone in &skin.bones {
            if !prune.is_paired(bone) {
                continue;
            }
            looked[bone as usize] = true;
            for &a in skin.proxies.vertices(bone) {
                let v = a as usize;
                if skin.influences[v][0].body != bone {
                    continue; // it is looked at with the bone that it follows most
                }
                let outward = own.vertex_normal(v);
                let wanted = |t: u32| prune.may_touch(skin, own, (bone, &[a], outward), t, near_by);
                let Some(found) = own.nearest(posed.places[v], reach, wanted) else { continue };
                gaps[v] = found.gap;
                all.extend(ahead.own_touch(skin, posed, Spot::vertex(a), &found, 0));
            }
        }
        if ahead.is_whole {
            self.test_crossings(skin, posed, ahead, (near_by, reach));
        }
    }
}

const BALL_FRICTION: f64 = 0.5;
/// Obstacles of more triangles are met by vertices alone.
const FEW_TRIANGLES: usize = 200;

/// How far ahead contacts are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    h: f64,
    pub(super) slack: f64,
    /// How far the fastest vertex may come.
    pub(super) reach: f64,
    /// Whether what lies between vertices is looked at.
    is_whole: bool,
}

impl Ahead {
    /// How far something may be that comes as fast. Skin that gives way comes back by as much as it was displaced, whatever way it goes at the start.
    pub(super) fn comes(&self, closing: f64, back: f64) -> f64 {
        self.slack + self.h * closing.max(0.0) + if self.h > 0.0 { back.max(0.0) } else { 0.0 }
    }

    /// The contact of a place with something of a friction and a key, if it may come about within the part.
    pub(super) fn touch(
        &self,
        (skin, posed): (&Skin, &Posed),
        spot: Spot,
        (gap, normal): (f64, DVec3),
        (side, velocity): (Side, DVec3),
        (friction, shape_b, feature): (f64, u32, u32),
    ) -> Option<Touch> {
        let closing = -normal.dot(spot.sum(|v| posed.velocities[v]) - velocity);
        let back = normal.dot(spot.sum(|v| posed.displaced[v]));
        if gap >= self.comes(closing, back) {
            return None;
        }
        let friction = most_of(spot, &skin.friction).min(friction);
        let key = ContactKey { shape_a: SHAPE, shape_b, place: spot.corners[0], feature };
        Some(Touch { spot, side, normal, gap, velocity, friction, key })
    }

    /// The contact of a place with the surface itself, likewise.
    pub(super) fn own_touch(
        &self,
        skin: &Skin,
        posed: &Posed,
        spot: Spot,
        found: &Near,
        feature: u32,
    ) -> Option<Touch> {
        let other = Spot { corners: skin.triangles[found.triangle as usize], shares: found.shares };
        let at = (Side::Surface(other), other.sum(|v| posed.velocities[v]));
        let friction = most_of(other, &skin.friction);
        self.touch((skin, posed), spot, (found.gap, found.normal), at, (friction, OF_ITSELF, feature))
    }
}

/// The value of the corner with the largest share.
fn most_of(spot: Spot, values: &[f64]) -> f64 {
    values[spot.corners[spot.shares.max_position()] as usize]
}

/// A box as the core of a shape.
fn boxed(pose: Pose, centre: DVec3, half: DVec3) -> Placed<'static> {
    let at = pose.transform_point(centre);
    Placed { core: Convex::Box { half }, axes: DMat3::from_quat(pose.rotation), at, size: half.length() }
}

fn hull_of(points: &[DVec3]) -> Option<Triangles> {
    let (points, triangles) = crate::model::shape::hull(points).ok()?;
    Some(mesh_of(&points, &triangles))
}

/// A box around a shape, in its coordinates: middle and half its sides.
fn bounds(shape: &ObstacleShape) -> (DVec3, DVec3) {
    let of = |points: &[DVec3]| {
        let low = points.iter().copied().fold(DVec3::INFINITY, DVec3::min);
        let high = points.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
        (0.5 * (low + high), 0.5 * (high - low))
    };
    match shape {
        ObstacleShape::HalfSpace => (DVec3::ZERO, DVec3::splat(1e3)),
        ObstacleShape::HeightField(field) => of(&field.surface().0),
        ObstacleShape::Mesh { vertices, .. } | ObstacleShape::Solid(Shape::Mesh { vertices, .. }) => of(vertices),
        ObstacleShape::Solid(Shape::Hull { points }) => of(points),
        ObstacleShape::Solid(Shape::Sphere { radius }) => (DVec3::ZERO, DVec3::splat(*radius)),
        ObstacleShape::Solid(Shape::Capsule { length, radius }) => {
            (DVec3::ZERO, DVec3::new(0.5 * length + radius, *radius, *radius))
        }
        ObstacleShape::Solid(Shape::Cylinder { length, radius }) => {
            (DVec3::ZERO, DVec3::new(0.5 * length, *radius, *radius))
        }
        ObstacleShape::Solid(Shape::Cuboid { size }) => (DVec3::ZERO, *size * 0.5),
    }
}

fn velocity_at(twist: Twist, pose: Pose, point: DVec3) -> DVec3 {
    twist.at(point - pose.translation)
}

impl Ball {
    /// Whether its numbers can be used.
    pub fn is_sound(&self) -> bool {
        self.centre.is_finite() && self.velocity.is_finite() && self.radius.is_finite() && self.radius > 0.0
    }
}
