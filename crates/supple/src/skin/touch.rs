//! Where the surface touches obstacles, balls, bodies without skin and itself, or may within the coming part: one contact for each vertex and thing.

use super::hierarchy::Triangles;
use super::pose::Posed;
use super::prune::PruneWork;
use super::{Ball, Skin};
use crate::contact::convex::{Convex, Placed};
use crate::contact::{self, ContactKey};
use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist};
use crate::model::{BodyId, Model, ObstacleId, ObstacleShape, Shape, State};
use glam::{DMat3, DVec3};

/// What a vertex touches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    /// Something that moves as it is told.
    Fixed,
    /// A body without skin, at a place of its own axes turned to the world, from its centre of mass.
    Body(BodyId, DVec3),
    /// A triangle of the surface itself, or of another character's: its corners, and their shares in the nearest point.
    Triangle([u32; 3], DVec3),
}

impl Side {
    /// The corners of a triangle that have a share, with their shares; none of anything else.
    pub(crate) fn corners(&self) -> impl Iterator<Item = (u32, f64)> + use<> {
        let (corners, shares) = match *self {
            Side::Triangle(corners, shares) => (corners, shares),
            _ => ([0; 3], DVec3::ZERO),
        };
        (0..3).map(move |k| (corners[k], shares[k])).filter(|(_, share)| *share > 1e-9)
    }
}

/// A vertex near something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Touch {
    pub(crate) vertex: u32,
    pub(crate) side: Side,
    /// Unit vector out of what is touched, world axes.
    pub(crate) normal: DVec3,
    /// Distance along it; below 0 the vertex is inside \[m\].
    pub(crate) gap: f64,
    /// Velocity of what is fixed there \[m/s\].
    pub(crate) velocity: DVec3,
    pub(crate) friction: f64,
    pub(crate) key: ContactKey,
}

/// Keys of skin's contacts stand after those of shapes and before those of limits.
const SHAPE: u32 = u32::MAX - 1;
const OF_BODY: u32 = 1 << 28;
const OF_BALL: u32 = 1 << 29;
const OF_ITSELF: u32 = 1 << 30;

/// Scratch of the search.
pub(crate) struct Search {
    pub(crate) prune: PruneWork,
    own: Triangles,
    /// By obstacle, then by shape of bodies: its triangles, for meshes.
    meshes: Vec<Option<Triangles>>,
    /// By body: which of its meshes is first in `meshes`.
    first_mesh: Vec<usize>,
    /// As `meshes`: middle and half the sides of a box around the shape.
    boxes: Vec<(DVec3, DVec3)>,
    pub(crate) all: Vec<Touch>,
    /// Bones whose vertices were looked at, by body.
    pub(crate) looked: Vec<bool>,
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
        let ahead =
            Ahead { h, slack: if h > 0.0 { 0.05 * skin.depth + 2.0 * h * h * input.gravity.length() } else { 0.0 } };
        let reach = ahead.slack + h * fastest;

        for (k, ball) in input.balls.iter().enumerate() {
            let centre = ball.centre - ball.velocity * (after + h);
            let core = Placed { core: Convex::Point, axes: DMat3::IDENTITY, at: centre, size: 0.0 };
            let near = ball.radius + reach + h * ball.velocity.length();
            let key = OF_BALL + k as u32;
            self.each_vertex(skin, state, (&core, near), |a| {
                let away = posed.places[a as usize] - centre;
                let found = (away.length() - ball.radius, away.try_normalize().unwrap_or(DVec3::Y));
                ahead.fixed(skin, posed, a, found, (ball.velocity, BALL_FRICTION), key)
            });
        }
        if input.contacts != Contacts::Off {
            self.find_obstacles(model, skin, input, (state, posed), (ahead, after, reach));
        }
        if input.contacts == Contacts::All {
            self.find_bodies(model, skin, (state, posed), (ahead, reach));
            self.find_own(skin, (state, posed), ahead, h * fastest);
        }
        self.all.sort_unstable_by_key(|touch| touch.key);
    }

    /// Looks at the vertices of the bones whose proxies are nearer to a core than `near`.
    fn each_vertex(
        &mut self,
        skin: &Skin,
        state: &State,
        (core, near): (&Placed<'_>, f64),
        mut look: impl FnMut(u32) -> Option<Touch>,
    ) {
        let Search { prune, all, looked, .. } = self;
        prune.start(skin.nodes());
        for &bone in &skin.bones {
            if prune.gap(skin, state, bone, core) > near {
                continue;
            }
            looked[bone as usize] = true;
            for &a in skin.proxies.vertices(bone) {
                if prune.is_first(a) {
                    all.extend(look(a));
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
        (ahead, after, reach): (Ahead, f64, f64),
    ) {
        for (id, obstacle) in (0..).map(ObstacleId).zip(model.obstacles()) {
            let (pose, twist) = contact::obstacle_motion(model, input, id, after + ahead.h);
            let key = id.0;
            let from_world = pose.inverse();
            let mesh = self.meshes[id.index()].take();
            let depth = reach + skin.depth;
            let look = |a: u32| {
                let x = posed.places[a as usize];
                let local = from_world.transform_point(x);
                let (gap, normal) = match &mesh {
                    Some(mesh) => {
                        let found = mesh.nearest(local, depth, |_| true)?;
                        (found.gap, found.normal)
                    }
                    None => model.colliders().gap(model.colliders().of_obstacle(id), local, depth)?,
                };
                let friction = skin.friction[a as usize].min(obstacle.material.friction);
                let velocity = velocity_at(twist, pose, x);
                ahead.fixed(skin, posed, a, (gap, pose.rotation * normal), (velocity, friction), key)
            };
            if matches!(obstacle.shape, ObstacleShape::HalfSpace) {
                let up = pose.rotation * DVec3::Y;
                let speed = twist.linear.length();
                let Search { prune, all, looked, .. } = self;
                prune.start(skin.nodes());
                for &bone in &skin.bones {
                    if prune.height(skin, state, bone, pose.translation, up) > reach + ahead.h * speed {
                        continue;
                    }
                    looked[bone as usize] = true;
                    for &a in skin.proxies.vertices(bone) {
                        if prune.is_first(a) {
                            all.extend(look(a));
                        }
                    }
                }
            } else {
                let (centre, half) = self.boxes[id.index()];
                let speed = twist.linear.length() + twist.angular.length() * half.length();
                let core = Placed {
                    core: Convex::Box { half },
                    axes: DMat3::from_quat(pose.rotation),
                    at: pose.transform_point(centre),
                    size: half.length(),
                };
                self.each_vertex(skin, state, (&core, reach + ahead.h * speed), look);
            }
            self.meshes[id.index()] = mesh;
        }
    }

    fn find_bodies(
        &mut self,
        model: &Model,
        skin: &Skin,
        (state, posed): (&State, &Posed),
        (ahead, reach): (Ahead, f64),
    ) {
        for (i, body) in model.bodies().iter().enumerate() {
            if body.groups.collides_with == 0 || skin.bones.binary_search(&(i as u32)).is_ok() {
                continue;
            }
            let s = &state.bodies[i];
            for (k, placed) in body.shapes.iter().enumerate() {
                let slot = self.first_mesh[i] + k;
                let mesh = self.meshes[slot].take();
                let world_from_shape = s.pose().then(placed.body_from_shape);
                let from_world = world_from_shape.inverse();
                let (centre, half) = self.boxes[slot];
                let speed = s.velocity.linear.length() + s.velocity.angular.length() * half.length();
                let core = Placed {
                    core: Convex::Box { half },
                    axes: DMat3::from_quat(world_from_shape.rotation),
                    at: world_from_shape.transform_point(centre),
                    size: half.length(),
                };
                let depth = reach + skin.depth;
                self.each_vertex(skin, state, (&core, reach + ahead.h * speed), |a| {
                    let x = posed.places[a as usize];
                    let local = from_world.transform_point(x);
                    let (gap, normal) = match &mesh {
                        Some(mesh) => {
                            let found = mesh.nearest(local, depth, |_| true)?;
                            (found.gap, found.normal)
                        }
                        None => {
                            let shape = slot - model.obstacles().len();
                            let (gap, normal) =
                                model.colliders().gap(shape, s.pose().inverse().transform_point(x), depth)?;
                            (gap, placed.body_from_shape.rotation.conjugate() * normal)
                        }
                    };
                    let lever = x - s.position;
                    let friction = skin.friction[a as usize].min(body.material.friction);
                    let at = (s.velocity.at(lever), friction);
                    let found = (gap, world_from_shape.rotation * normal);
                    let touch = ahead.fixed(skin, posed, a, found, at, OF_BODY + i as u32)?;
                    Some(Touch { side: Side::Body(BodyId(i as u32), lever), velocity: DVec3::ZERO, ..touch })
                });
                self.meshes[slot] = mesh;
            }
        }
    }

    /// Where limbs, or characters, touch one another: vertices near triangles of bones that are no neighbours, face to face. `coming` is how far they may come.
    fn find_own(&mut self, skin: &Skin, (state, posed): (&State, &Posed), ahead: Ahead, coming: f64) {
        let near_by = 0.5 * skin.depth + ahead.slack;
        let reach = near_by + coming.min(2.0 * skin.depth);
        self.prune.find_pairs(skin, state, reach);
        if self.prune.pairs.is_empty() {
            return;
        }
        self.own.refit(&posed.places);
        let Search { prune, own, all, looked, .. } = self;
        let near = |a: u32, b: u32| prune.pairs.binary_search(&(a.min(b), a.max(b))).is_ok();
        for &bone in &skin.bones {
            let Some(_) = prune.pairs.iter().find(|(a, b)| *a == bone || *b == bone) else { continue };
            looked[bone as usize] = true;
            for &a in skin.proxies.vertices(bone) {
                let v = a as usize;
                if skin.influences[v][0].body != bone {
                    continue; // it is looked at with the bone that it follows most
                }
                let outward = own.vertex_normal(v);
                let piece = |v: u32| skin.proxies.pieces[v as usize];
                let wanted = |t: u32| {
                    let corners = skin.triangles[t as usize];
                    // what is near by on the same surface is no contact
                    let is_far = |&c: &u32| skin.rest[c as usize].distance(skin.rest[v]) > 2.0 * near_by;
                    near(bone, skin.proxies.triangle_bones[t as usize])
                        && (piece(corners[0]) != piece(a) || corners.iter().all(is_far))
                        && corners.iter().all(|&c| own.vertex_normal(c as usize).dot(outward) < 0.0)
                };
                let x = posed.places[v];
                let Some(found) = own.nearest(x, reach, wanted) else { continue };
                let corners = skin.triangles[found.triangle as usize];
                let most = found.shares.max_position();
                let other = corners[most];
                let velocity: DVec3 = (0..3).map(|k| posed.velocities[corners[k] as usize] * found.shares[k]).sum();
                let friction = skin.friction[v].min(skin.friction[other as usize]);
                let touch = ahead.fixed(skin, posed, a, (found.gap, found.normal), (velocity, friction), OF_ITSELF);
                let side = Side::Triangle(corners, found.shares);
                all.extend(touch.map(|touch| Touch { side, velocity: DVec3::ZERO, ..touch }));
            }
        }
    }
}

const BALL_FRICTION: f64 = 0.5;

/// How far ahead contacts are kept.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    h: f64,
    slack: f64,
}

impl Ahead {
    /// The contact of a vertex with something fixed, if it may come about within the part.
    fn fixed(
        &self,
        _skin: &Skin,
        posed: &Posed,
        vertex: u32,
        (gap, normal): (f64, DVec3),
        (velocity, friction): (DVec3, f64),
        shape_b: u32,
    ) -> Option<Touch> {
        let closing = -normal.dot(posed.velocities[vertex as usize] - velocity);
        let comes = gap < self.slack + self.h * closing.max(0.0);
        let key = ContactKey { shape_a: SHAPE, shape_b, place: vertex, feature: 0 };
        comes.then_some(Touch { vertex, side: Side::Fixed, normal, gap, velocity, friction, key })
    }
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
