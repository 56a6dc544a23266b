//! Contact of the embedded surface with obstacles, bodies and itself: a penalty with Coulomb friction on its vertices [Kim 2008, §4.1], as forces of the
//! present for explicit steps, and as terms of the energy for implicit ones.
//!
//! A vertex y that is deeper than the surface it meets by `d = −n·(y − p)` is pushed out with `k d`; what it slides by, u, costs
//! `μ N φ(|u|)`, with φ(u) = u − ½ε beyond a small ε and the parabola u²/2ε below it, so that friction has a direction at rest too:
//!
//! ```text
//! E = ½ k d² + μ N φ(|u|),   K = k n nᵀ + μ N/ε (1 − n nᵀ)                  |u| < ε
//!                            K = k n nᵀ + μ N/|u| (1 − n nᵀ − û ûᵀ)         else                                          (1)
//! ```
//! The last term, which makes friction soft along the slip, is left out until the slip is steady: a vertex about to stick would be thrown to and fro by it.
//! N is k d of the Newton step before, kept from the third on. Normal n and point p are those found at the start of the part; they are carried along by what
//! the surface belongs to. A vertex that meets the flesh's own surface has as p the same point of a triangle; the push on the one
//! is taken from the corners of the other.

use super::{Embedded, Flesh};
use crate::contact::{self, Other};
use crate::input::{Contacts, Input};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{Body, BodyId, Model, ObstacleId, State};
use glam::{DMat3, DVec3};

/// What a vertex may touch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    /// An obstacle.
    Obstacle,
    /// A body that the flesh does not hang on.
    Body(BodyId),
    /// A triangle of its own surface: its corners, and where on it.
    Own([u32; 3], DVec3),
}

/// A vertex near something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// Index of the surface's vertex.
    pub(crate) vertex: u32,
    pub(crate) side: Side,
    /// Outward normal of what it touches: in the body's coordinates, or in the world.
    normal: DVec3,
    /// A point of it: in the body's coordinates, in the world at the end of the part, or from the point of the triangle.
    point: DVec3,
    /// Where the vertex was at the start of the part, carried along by what it touches, as the point is.
    from: DVec3,
    /// k \[N/m\]
    stiffness: f64,
    friction: f64,
    /// N \[N\]
    push: f64,
    /// The slip when a matrix was last made, and whether it is much the same since the one before.
    last: DVec3,
    steady: bool,
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
/// Explicit springs push nothing out faster than this \[m/s\].
const LEAVES: f64 = 10.0;
/// Slip is steady when it has changed by less than this share.
const STEADY: f64 = 0.3;
/// A surface meets itself when it is nearer than this share of a cell; what is nearer than twice that at the start is its neighbour.
const OWN_REACH: f64 = 0.5;
/// What may come within that reach is kept in mind until something has moved by half of this share of a cell.
const SKIN: f64 = 0.25;

/// Everything near the surface.
#[derive(Debug, Default)]
pub(crate) struct Touches {
    pub(crate) all: Vec<Touch>,
    /// Places of the surface's vertices.
    places: Vec<DVec3>,
    /// Those at the start of everything.
    rest: Vec<DVec3>,
    /// k of each vertex, from its share of the surface \[N/m\].
    stiffness: Vec<f64>,
    /// Outward, by vertex, of any length.
    normals: Vec<DVec3>,
    /// Triangles by the cell of their middle, sorted.
    cells: Vec<([i64; 3], u32)>,
    /// Vertices with the triangles they may meet, sorted; and the places of the vertices when these were noted.
    pairs: Vec<(u32, u32)>,
    paired_at: Vec<DVec3>,
    h: f64,
}

/// Whether flesh may touch a body: one that collides, has a shape and is no bone of the flesh.
pub(crate) fn may_touch(flesh: &Flesh, id: BodyId, body: &Body) -> bool {
    body.groups.collides_with != 0 && !body.shapes.is_empty() && !flesh.bones.contains(&Some(id))
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
        Touches {
            all: Vec::with_capacity(3 * places.len()),
            rest: places.clone(),
            normals: vec![DVec3::ZERO; places.len()],
            cells: Vec::with_capacity(flesh.surface.triangles.len()),
            pairs: Vec::with_capacity(16 * places.len()),
            paired_at: Vec::with_capacity(places.len()),
            places,
            stiffness,
            h: 0.0,
        }
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
        let colliders = model.colliders();
        for (id, obstacle) in (0..).map(ObstacleId).zip(model.obstacles()) {
            let (pose, velocity) = contact::obstacle_motion(model, input, id, after);
            let friction = flesh.material.friction.min(obstacle.material.friction);
            let shape = colliders.of_obstacle(id);
            for v in 0..self.places.len() {
                let y = self.places[v];
                let Some((gap, normal)) = colliders.gap(shape, pose.inverse().transform_point(y), flesh.cell) else {
                    continue;
                };
                let normal = pose.rotation * normal;
                // carried along by the obstacle until the end of the part
                let slid = velocity_at(velocity, pose, y) * h;
                self.push(flesh, v, Side::Obstacle, friction, (y - normal * gap + slid, normal, y + slid));
            }
        }
        if input.contacts != Contacts::All {
            return;
        }
        for (shape, owner) in colliders.owners() {
            let Other::Body(id) = owner else { continue };
            let body = model.body(id);
            if !may_touch(flesh, id, body) {
                continue;
            }
            let body_from_world = state.bodies[id.index()].pose().inverse();
            let friction = flesh.material.friction.min(body.material.friction);
            for v in 0..self.places.len() {
                let local = body_from_world.transform_point(self.places[v]);
                let Some((gap, normal)) = colliders.gap(shape, local, flesh.cell) else { continue };
                self.push(flesh, v, Side::Body(id), friction, (local - normal * gap, normal, local));
            }
        }
        self.find_own(flesh);
    }

    /// Finds where the surface is near itself.
    fn find_own(&mut self, flesh: &Flesh) {
        let allowed = 0.5 * SKIN * flesh.cell;
        let is_near = |(now, then): (&DVec3, &DVec3)| now.distance_squared(*then) <= allowed * allowed;
        if self.paired_at.len() != self.places.len() || !self.places.iter().zip(&self.paired_at).all(is_near) {
            self.pair(flesh);
        }
        if self.pairs.is_empty() {
            return;
        }
        let triangles = &flesh.surface.triangles;
        self.normals.fill(DVec3::ZERO);
        for t in triangles {
            let [a, b, c] = t.map(|i| self.places[i as usize]);
            let normal = (b - a).cross(c - a);
            t.iter().for_each(|&i| self.normals[i as usize] += normal);
        }
        for of_vertex in self.pairs.chunk_by(|a, b| a.0 == b.0) {
            let v = of_vertex[0].0 as usize;
            let mut nearest: Option<(f64, Touch)> = None;
            for &(_, triangle) in of_vertex {
                let found = self.own(flesh, v, self.places[v], triangles[triangle as usize]);
                if let Some((gap, touch)) = found
                    && nearest.is_none_or(|(least, _)| gap.abs() < least)
                {
                    nearest = Some((gap.abs(), touch));
                }
            }
            self.all.extend(nearest.map(|(_, touch)| touch));
        }
    }

    /// Notes the vertices and triangles that may meet before any of them has moved by half of [`SKIN`]. Which of them do is found anew in each part, in an
    /// order of their own: it does not matter when they were noted.
    fn pair(&mut self, flesh: &Flesh) {
        let Touches { places, rest, cells, pairs, paired_at, .. } = self;
        let triangles = &flesh.surface.triangles;
        let ball = |t: &[u32; 3]| {
            let corners = t.map(|i| places[i as usize]);
            let middle = (corners[0] + corners[1] + corners[2]) / 3.0;
            (middle, corners.iter().map(|p| p.distance(middle)).fold(0.0, f64::max))
        };
        let reach = (OWN_REACH + SKIN) * flesh.cell;
        // what is within reach is in the next cell
        let size = reach + triangles.iter().map(|t| ball(t).1).fold(0.0, f64::max);
        let cell_of = |p: DVec3| (p / size).floor().to_array().map(|x| x as i64);
        cells.clear();
        cells.extend(triangles.iter().enumerate().map(|(k, t)| (cell_of(ball(t).0), k as u32)));
        cells.sort_unstable();
        pairs.clear();
        for (v, &y) in places.iter().enumerate() {
            let [i, j, k] = cell_of(y);
            let first = pairs.len();
            for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
                let [from, to] = [k - 1, k + 1].map(|k| [i + dx, j + dy, k]);
                let start = cells.partition_point(|(cell, _)| *cell < from);
                for &(_, t) in cells[start..].iter().take_while(|(cell, _)| *cell <= to) {
                    let corners = &triangles[t as usize];
                    if is_neighbour(flesh, rest, v, corners) {
                        continue;
                    }
                    let (middle, radius) = ball(corners);
                    if y.distance(middle) <= reach + radius {
                        pairs.push((v as u32, t));
                    }
                }
            }
            pairs[first..].sort_unstable();
        }
        paired_at.clone_from(places);
    }

    /// Whether a vertex is near a triangle that faces it; how far it is outside.
    fn own(&self, flesh: &Flesh, v: usize, y: DVec3, corners: [u32; 3]) -> Option<(f64, Touch)> {
        let [a, b, c] = corners.map(|i| self.places[i as usize]);
        let reach = OWN_REACH * flesh.cell;
        let normal = (b - a).cross(c - a).try_normalize()?;
        let gap = normal.dot(y - a);
        if gap.abs() > reach || normal.dot(self.normals[v]) >= 0.0 {
            return None;
        }
        // where on the triangle, by areas
        let foot = y - normal * gap;
        let part = |p: DVec3, q: DVec3| normal.dot((p - foot).cross(q - foot));
        let areas = DVec3::new(part(b, c), part(c, a), part(a, b));
        if areas.min_element() < 0.0 {
            return None;
        }
        let touch = Touch {
            vertex: v as u32,
            side: Side::Own(corners, areas / areas.element_sum()),
            normal,
            point: DVec3::ZERO,
            from: normal * gap,
            stiffness: self.stiffness[v],
            friction: flesh.material.friction,
            push: 0.0,
            last: DVec3::ZERO,
            steady: false,
        };
        Some((gap, touch))
    }

    fn push(
        &mut self,
        flesh: &Flesh,
        v: usize,
        side: Side,
        friction: f64,
        (point, normal, from): (DVec3, DVec3, DVec3),
    ) {
        let gap = normal.dot(from - point);
        // A vertex may come nearer by a cell in a part.
        if gap.is_nan() || gap > flesh.cell {
            return;
        }
        let stiffness = self.stiffness[v];
        let (push, last, steady) = (0.0, DVec3::ZERO, false);
        self.all.push(Touch { vertex: v as u32, side, normal, point, from, stiffness, friction, push, last, steady });
    }

    /// Friction goes on from the pushes at these places.
    pub(crate) fn lag(&mut self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) {
        for touch in &mut self.all {
            touch.push = touch.stiffness * touch.depth(flesh, nodes, after).max(0.0);
        }
    }

    /// A matrix is made at these places.
    pub(crate) fn note(&mut self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) {
        for touch in &mut self.all {
            let u = touch.slip(flesh, nodes, after);
            touch.steady = u.distance(touch.last) < STEADY * u.length();
            touch.last = u;
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
        let nn = outer(n);
        let mut push = Push { force: n * (touch.stiffness * d), stiffness: DMat3::ZERO };
        if d > 0.0 {
            push.stiffness += nn * touch.stiffness;
        }
        if touch.push > 0.0 {
            let u = touch.slip(flesh, nodes, after);
            let (size, creep) = (u.length(), CREEP * self.h);
            let drag = touch.friction * touch.push / size.max(creep);
            push.force -= u * drag;
            push.stiffness += (DMat3::IDENTITY - nn) * drag;
            if size > creep && touch.steady {
                push.stiffness -= outer(u / size) * drag;
            }
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
            let (Side::Body(body), Some(push)) = (touch.side, self.at(touch, flesh, nodes, after)) else { continue };
            out[body.index()] += Wrench::at(touch.place(flesh, nodes) - after(body).translation, -push.force);
        }
    }

    /// The force of a touch on a vertex that moves with `velocity` against what it touches, and where: `N = max(0, k d − c v_n)` along the normal,
    /// `min(μ N, ½ m/h |v_t|)` against the slip. `mass` is what the vertex moves with \[kg\]; k and c are such that an explicit part of
    /// this length takes them.
    pub(crate) fn explicit(
        &self,
        touch: &Touch,
        flesh: &Flesh,
        nodes: &[DVec3],
        (slip, mass): (DVec3, f64),
        pose: &impl Fn(BodyId) -> Pose,
    ) -> Option<(DVec3, DVec3)> {
        let at = touch.place(flesh, nodes);
        let n = touch.turned(touch.normal, pose);
        let d = match touch.side {
            // an obstacle is noted where it is at the end of the part
            Side::Obstacle => -n.dot(touch.from - touch.point),
            _ => touch.depth(flesh, nodes, pose),
        };
        if d <= 0.0 {
            return None;
        }
        let along = n.dot(slip);
        let across = slip - n * along;
        let k = touch.stiffness.min(0.25 * mass / (self.h * self.h));
        let c = (k * mass).sqrt(); // half of critical
        // what is found deep inside, as after contacts were off, is led out and not shot out
        let d = d.min(LEAVES * c / k);
        let push = (k * d - c * along).max(0.0);
        let speed = across.length();
        let drag = if speed > 0.0 { (touch.friction * push / speed).min(0.5 * mass / self.h) } else { 0.0 };
        Some((at, n * push - across * drag))
    }

    /// The velocity of an obstacle at a touch \[m/s\], from how far it carries the vertex in the part.
    pub(crate) fn obstacle_velocity(&self, touch: &Touch) -> DVec3 {
        (touch.from - self.places[touch.vertex as usize]) / self.h
    }

    /// Vertices that are pressed in.
    pub(crate) fn count(&self) -> u32 {
        self.all.iter().filter(|touch| touch.push > 0.0).count() as u32
    }
}

impl Touch {
    /// The vertex \[m\].
    pub(crate) fn place(&self, flesh: &Flesh, nodes: &[DVec3]) -> DVec3 {
        place(flesh, self.vertex, nodes)
    }

    /// `visit(vertex, weight)` for each vertex of the surface that the force on the vertex acts on, with the share it takes.
    pub(crate) fn shares(&self, mut visit: impl FnMut(&Embedded, f64), flesh: &Flesh) {
        visit(&flesh.surface.vertices[self.vertex as usize], 1.0);
        if let Side::Own(corners, weights) = self.side {
            for (i, w) in corners.iter().zip(weights.to_array()) {
                visit(&flesh.surface.vertices[*i as usize], -w);
            }
        }
    }

    fn turned(&self, v: DVec3, after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        match self.side {
            Side::Body(body) => after(body).rotation * v,
            Side::Obstacle | Side::Own(..) => v,
        }
    }

    fn carried(&self, p: DVec3, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        match self.side {
            Side::Obstacle => p,
            Side::Body(body) => after(body).transform_point(p),
            Side::Own(corners, weights) => {
                let [a, b, c] = corners.map(|i| place(flesh, i, nodes));
                p + a * weights.x + b * weights.y + c * weights.z
            }
        }
    }

    /// d \[m\]
    fn depth(&self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> f64 {
        let surface = self.carried(self.point, flesh, nodes, after);
        self.turned(self.normal, after).dot(surface - self.place(flesh, nodes))
    }

    /// u \[m\]
    fn slip(&self, flesh: &Flesh, nodes: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> DVec3 {
        let n = self.turned(self.normal, after);
        let moved = self.place(flesh, nodes) - self.carried(self.from, flesh, nodes, after);
        moved - n * n.dot(moved)
    }
}

/// Whether a triangle is so near to a vertex at the start of everything that they are neighbours, and never meet.
fn is_neighbour(flesh: &Flesh, rest: &[DVec3], vertex: usize, corners: &[u32; 3]) -> bool {
    let least = 2.0 * OWN_REACH * flesh.cell;
    corners.iter().any(|&i| rest[i as usize].distance_squared(rest[vertex]) < least * least)
}

fn place(flesh: &Flesh, vertex: u32, nodes: &[DVec3]) -> DVec3 {
    let vertex = &flesh.surface.vertices[vertex as usize];
    let corners = flesh.elements[vertex.tet as usize].nodes;
    corners.iter().zip(vertex.weights).map(|(i, w)| nodes[*i as usize] * w).sum()
}

fn outer(n: DVec3) -> DMat3 {
    DMat3::from_cols(n * n.x, n * n.y, n * n.z)
}

fn velocity_at(velocity: Twist, pose: Pose, at: DVec3) -> DVec3 {
    velocity.at(at - pose.translation)
}
