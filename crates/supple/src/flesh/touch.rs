//! Contact of the embedded surface with obstacles and bodies: a penalty with Coulomb friction on its vertices [Kim 2008, §4.1], as forces of the present
//! for explicit steps, and as terms of the energy for implicit ones.
//!
//! A vertex y that is deeper than the surface it meets by `d = −n·(y − p)` is pushed out with `k d`; what it slides by, u, costs
//! `μ k d φ(|u|)`, with φ(u) = u beyond a small ε and a parabola below it, so that friction has a direction at rest too:
//!
//! ```text
//! E = ½ k d² + μ N φ(|u|),   N = k d of the Newton step before,    K = k n nᵀ + μ N/max(|u|, ε) (1 − n nᵀ)                (1)
//! ```
//! Normal n and point p are those found at the start of the part. They are carried along by what the surface belongs to.

use super::Flesh;
use crate::contact;
use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, Model, ObstacleId, ObstacleShape, Shape, State};
use glam::{DMat3, DVec3};

/// A vertex near something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// Index of the surface's vertex.
    pub(crate) vertex: u32,
    /// The body it touches; `None` for an obstacle.
    pub(crate) body: Option<BodyId>,
    /// Outward normal and a point of what it touches: in the body's coordinates, or in the world at the end of the part.
    normal: DVec3,
    point: DVec3,
    /// Where the vertex was at the start of the part, carried along by what it touches, as normal and point are.
    from: DVec3,
    /// k \[N/m\]
    stiffness: f64,
    friction: f64,
    /// N \[N\]
    push: f64,
}

/// Force and derivative of a touch, world axes.
pub(crate) struct Push {
    /// On the vertex \[N\].
    pub(crate) force: DVec3,
    /// K of (1) \[N/m\].
    pub(crate) stiffness: DMat3,
}

/// Stress of a surface that is pressed in by a whole cell, in units of Young's modulus.
const HARDNESS: f64 = 20.0;
/// Below this speed friction is viscous \[m/s\].
const CREEP: f64 = 1e-3;

/// Everything near the surface.
#[derive(Debug, Default)]
pub(crate) struct Touches {
    pub(crate) all: Vec<Touch>,
    /// Places of the surface's vertices.
    places: Vec<DVec3>,
    /// k of each vertex, from its share of the surface \[N/m\].
    stiffness: Vec<f64>,
    h: f64,
}

impl Touches {
    pub(crate) fn new(flesh: &Flesh) -> Touches {
        let mut places = Vec::new();
        flesh.surface_positions(&flesh.start, &mut places);
        let mut stiffness = vec![0.0; places.len()];
        for t in &flesh.surface.triangles {
            let [a, b, c] = t.map(|i| places[i as usize]);
            let share = (b - a).cross(c - a).length() / 6.0;
            t.iter().for_each(|&i| stiffness[i as usize] += HARDNESS * flesh.material.young / flesh.cell * share);
        }
        Touches { all: Vec::with_capacity(2 * places.len()), places, stiffness, h: 0.0 }
    }

    /// Finds what the surface may touch in a part of length h, `after` seconds before the end of the step; `nodes` are all nodes at its start.
    pub(crate) fn find(
        &mut self,
        model: &Model,
        flesh: &Flesh,
        input: &Input,
        state: &State,
        (h, after): (f64, f64),
        nodes: &[DVec3],
    ) {
        self.h = h;
        self.all.clear();
        if input.contacts == Contacts::Off {
            return;
        }
        flesh.surface_positions(nodes, &mut self.places);
        for (id, obstacle) in (0..).map(ObstacleId).zip(model.obstacles()) {
            let (pose, velocity) = contact::obstacle_motion(model, input, id, after);
            let friction = flesh.material.friction.min(obstacle.material.friction);
            for v in 0..self.places.len() {
                let y = self.places[v];
                let Some((gap, normal)) = obstacle_gap(&obstacle.shape, pose.inverse().transform_point(y)) else {
                    continue;
                };
                let normal = pose.rotation * normal;
                // carried along by the obstacle until the end of the part
                let slid = velocity_at(velocity, pose, y) * h;
                self.push(flesh, v, None, friction, (y - normal * gap, normal, y + slid));
            }
        }
        for (i, body) in model.bodies().iter().enumerate() {
            let id = BodyId(i as u32);
            if flesh.bones.contains(&Some(id)) {
                continue; // its own bones
            }
            let pose = state.bodies[i].pose();
            let friction = flesh.material.friction.min(body.material.friction);
            for placed in &body.shapes {
                let world_from_shape = pose.then(placed.body_from_shape);
                for v in 0..self.places.len() {
                    let local = world_from_shape.inverse().transform_point(self.places[v]);
                    let Some((gap, normal)) = shape_gap(&placed.shape, local) else { continue };
                    let in_body = |p: DVec3| placed.body_from_shape.transform_point(p);
                    let normal_in_body = placed.body_from_shape.rotation * normal;
                    self.push(
                        flesh,
                        v,
                        Some(id),
                        friction,
                        (in_body(local - normal * gap), normal_in_body, in_body(local)),
                    );
                }
            }
        }
    }

    fn push(
        &mut self,
        flesh: &Flesh,
        v: usize,
        body: Option<BodyId>,
        friction: f64,
        (point, normal, from): (DVec3, DVec3, DVec3),
    ) {
        let gap = normal.dot(from - point);
        // A vertex may come nearer by a cell in a part.
        if gap.is_nan() || gap > flesh.cell {
            return;
        }
        let stiffness = self.stiffness[v];
        self.all.push(Touch { vertex: v as u32, body, normal, point, from, stiffness, friction, push: 0.0 });
    }

    /// Friction goes on from the pushes at these places.
    pub(crate) fn lag(&mut self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) {
        for touch in &mut self.all {
            touch.push = touch.stiffness * touch.depth(flesh, nodes, after).max(0.0);
        }
    }

    /// E of (1) \[J\].
    pub(crate) fn energy(&self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> f64 {
        let creep = CREEP * self.h;
        let one = |touch: &Touch| {
            let d = touch.depth(flesh, nodes, after).max(0.0);
            let mut e = 0.5 * touch.stiffness * d * d;
            if touch.push > 0.0 {
                let u = touch.slip(flesh, nodes, after).length();
                let phi = if u > creep { u - 0.5 * creep } else { 0.5 * u * u / creep };
                e += touch.friction * touch.push * phi;
            }
            e
        };
        self.all.iter().map(one).sum()
    }

    /// The push of a touch, if it acts.
    pub(crate) fn at(
        &self,
        touch: &Touch,
        flesh: &Flesh,
        nodes: &[DVec3],
        after: &impl Fn(BodyId) -> Pose,
    ) -> Option<Push> {
        let d = touch.depth(flesh, nodes, after).max(0.0);
        if d == 0.0 && touch.push == 0.0 {
            return None;
        }
        let n = touch.turned(touch.normal, after);
        let nn = DMat3::from_cols(n * n.x, n * n.y, n * n.z);
        let mut push = Push { force: n * (touch.stiffness * d), stiffness: DMat3::ZERO };
        if d > 0.0 {
            push.stiffness += nn * touch.stiffness;
        }
        if touch.push > 0.0 {
            let u = touch.slip(flesh, nodes, after);
            let drag = touch.friction * touch.push / u.length().max(CREEP * self.h);
            push.force -= u * drag;
            push.stiffness += (DMat3::IDENTITY - nn) * drag;
        }
        Some(push)
    }

    /// Adds what bodies feel of the touches.
    pub(crate) fn add_wrenches(
        &self,
        flesh: &Flesh,
        nodes: &[DVec3],
        after: &impl Fn(BodyId) -> Pose,
        out: &mut [Wrench],
    ) {
        for touch in &self.all {
            let (Some(body), Some(push)) = (touch.body, self.at(touch, flesh, nodes, after)) else { continue };
            out[body.index()] += Wrench::at(touch.place(flesh, nodes) - after(body).translation, -push.force);
        }
    }

    /// The force of a touch on a vertex that moves with `velocity`, and where: `N = max(0, k d − c v_n)` along the normal, `min(μ N, c |v_t|)` against the
    /// slip. `mass` is what the vertex moves with \[kg\]; k and c are such that an explicit part of this length takes them.
    pub(crate) fn explicit(
        &self,
        touch: &Touch,
        flesh: &Flesh,
        nodes: &[DVec3],
        (velocity, mass): (DVec3, f64),
        against: Option<impl Fn(DVec3) -> DVec3>,
        pose: &impl Fn(BodyId) -> Pose,
    ) -> Option<(DVec3, DVec3)> {
        let d = touch.depth(flesh, nodes, pose);
        if d <= 0.0 {
            return None;
        }
        let at = touch.place(flesh, nodes);
        // an obstacle carries `from` on by its velocity times h
        let surface = match against {
            Some(velocity) => velocity(at),
            None => (touch.from - at) / self.h,
        };
        let n = touch.turned(touch.normal, pose);
        let slip = velocity - surface;
        let along = n.dot(slip);
        let across = slip - n * along;
        let k = touch.stiffness.min(0.25 * mass / (self.h * self.h));
        let c = (k * mass).sqrt(); // half of critical
        let push = (k * d - c * along).max(0.0);
        let speed = across.length();
        let drag = if speed > 0.0 { (touch.friction * push / speed).min(c) } else { 0.0 };
        Some((at, n * push - across * drag))
    }

    /// Vertices that are pressed in.
    pub(crate) fn count(&self) -> u32 {
        self.all.iter().filter(|touch| touch.push > 0.0).count() as u32
    }
}

impl Touch {
    /// The vertex \[m\].
    fn place(&self, flesh: &Flesh, nodes: &[DVec3]) -> DVec3 {
        let vertex = &flesh.surface.vertices[self.vertex as usize];
        let corners = flesh.elements[vertex.tet as usize].nodes;
        corners.iter().zip(vertex.weights).map(|(i, w)| nodes[*i as usize] * w).sum()
    }

    fn turned(&self, v: DVec3, after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        self.body.map_or(v, |body| after(body).rotation * v)
    }

    fn carried(&self, p: DVec3, after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        self.body.map_or(p, |body| after(body).transform_point(p))
    }

    /// d \[m\]
    fn depth(&self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> f64 {
        self.turned(self.normal, after).dot(self.carried(self.point, after) - self.place(flesh, nodes))
    }

    /// u \[m\]
    fn slip(&self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        let n = self.turned(self.normal, after);
        let moved = self.place(flesh, nodes) - self.carried(self.from, after);
        moved - n * n.dot(moved)
    }
}

fn velocity_at(velocity: Twist, pose: Pose, at: DVec3) -> DVec3 {
    velocity.at(at - pose.translation)
}

/// How far a point is outside an obstacle, and the way out; `None` for forms whose inside is not told.
fn obstacle_gap(shape: &ObstacleShape, p: DVec3) -> Option<(f64, DVec3)> {
    match shape {
        ObstacleShape::HalfSpace => Some((p.y, DVec3::Y)),
        ObstacleShape::Solid(shape) => shape_gap(shape, p),
        ObstacleShape::HeightField(field) => {
            // the triangle below, as a plane
            let (nx, nz) = (field.columns as f64 - 1.0, field.rows as f64 - 1.0);
            let (u, w) = ((p.x / field.length_x + 0.5) * nx, (p.z / field.length_z + 0.5) * nz);
            if !(0.0..=nx).contains(&u) || !(0.0..=nz).contains(&w) {
                return None;
            }
            let (i, k) = ((u as usize).min(field.columns - 2), (w as usize).min(field.rows - 2));
            let (a, b, c) = (field.point(i, k), field.point(i + 1, k), field.point(i, k + 1));
            let normal = (c - a).cross(b - a).normalize();
            Some((normal.dot(p - a), normal))
        }
        ObstacleShape::Mesh { .. } => None,
    }
}

/// The same for a solid.
fn shape_gap(shape: &Shape, p: DVec3) -> Option<(f64, DVec3)> {
    match *shape {
        Shape::Sphere { radius } => Some(ball(p, radius)),
        Shape::Capsule { length, radius } => {
            let x = p.x.clamp(-0.5 * length, 0.5 * length);
            Some(ball(p - DVec3::X * x, radius))
        }
        Shape::Cylinder { length, radius } => {
            let across = DVec3::new(0.0, p.y, p.z);
            let (side, end) = (across.length() - radius, p.x.abs() - 0.5 * length);
            Some(if side > end {
                (side, across.try_normalize().unwrap_or(DVec3::Y))
            } else {
                (end, DVec3::X * p.x.signum())
            })
        }
        Shape::Cuboid { size } => {
            let out = p.abs() - size * 0.5;
            let k = if out.x >= out.y && out.x >= out.z {
                0
            } else if out.y >= out.z {
                1
            } else {
                2
            };
            Some((out[k], DVec3::AXES[k] * p[k].signum()))
        }
        Shape::Hull { .. } | Shape::Mesh { .. } => None,
    }
}

fn ball(p: DVec3, radius: f64) -> (f64, DVec3) {
    let away = p.length();
    (away - radius, p.try_normalize().unwrap_or(DVec3::Y))
}
