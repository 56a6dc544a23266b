//! The character as parts to be drawn: its shapes coloured by limb as in the studio, bones and joints.

use super::camera::Ball;
use super::moments::Posture;
use super::raster::{Facet, Surface, Vertex};
use super::solids::{self, Mesh};
use super::stage::{Finish, Paint, linear};
use clap::ValueEnum;
use supple::glam::{DVec3, Vec3};
use supple::{Flesh, Model, ObstacleShape, Pose, Shape, Skin};

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Layer {
    /// What the file shows, with its textures; bodies of which it shows nothing as shapes
    Mesh,
    /// The bodies
    Shapes,
    /// From joint to joint
    Bones,
    /// Balls, with the axes of hinges
    Joints,
}

/// The colours of limbs, as in the studio.
const LIMBS: [u32; 8] = [0xd8c7ab, 0x6f9fc8, 0xe0a25c, 0x86b98f, 0xc9807d, 0xa58cc0, 0x69b3b0, 0xd3c25a];
/// What they are softened by, and how much.
const SOFT: (u32, f32) = (0xd9d3c9, 0.18);
const BONE: u32 = 0xf59e0b;
const JOINT: u32 = 0x2563a8;
const OBSTACLE: u32 = 0xb9b4ab;

/// What carries a part.
#[derive(Clone, Copy, Debug)]
enum On {
    Body(usize),
    Obstacle(usize),
}

/// A part of the figure: triangles that move with a body or an obstacle.
#[derive(Debug)]
struct Part {
    on: On,
    body_from_part: Pose,
    mesh: Mesh,
    paint: Paint,
}

/// The parts of one layer or more.
#[derive(Debug, Default)]
pub(super) struct Figure {
    parts: Vec<Part>,
}

impl Figure {
    /// The bodies but those that are hidden, and the obstacles where they stand; `sides` is how many sides a circle of a radius gets.
    pub(super) fn shapes(model: &Model, hidden: &[bool], sides: impl Fn(f32) -> usize) -> Figure {
        let colours = limb_colours(model);
        let mut figure = Figure::default();
        for (k, body) in model.bodies().iter().enumerate() {
            if model.skin().is_some_and(|skin| skin.bones.binary_search(&(k as u32)).is_ok()) {
                continue; // it lies within its skin
            }
            if hidden.get(k).copied().unwrap_or(false) {
                continue; // its mesh is drawn
            }
            for placed in &body.shapes {
                let paint = Paint::solid(colours[k]);
                let mesh = solids::mesh(&placed.shape, &sides);
                figure.parts.push(Part { on: On::Body(k), body_from_part: placed.body_from_shape, mesh, paint });
            }
        }
        // The ground is drawn without end: it stands for the half-spaces.
        let paint = Paint::solid(linear(OBSTACLE));
        for (k, obstacle) in model.obstacles().iter().enumerate() {
            let mesh = match &obstacle.shape {
                ObstacleShape::HalfSpace => continue,
                // Sharp edges: they are what is stumbled over.
                ObstacleShape::Solid(Shape::Cuboid { size }) => solids::mesh(&solids::sharp_box(*size), &sides),
                ObstacleShape::Solid(shape) => solids::mesh(shape, &sides),
                ObstacleShape::HeightField(field) => {
                    let (vertices, triangles) = field.surface();
                    solids::creased(&vertices, &triangles)
                }
                ObstacleShape::Mesh { vertices, triangles } => solids::creased(vertices, triangles),
            };
            figure.parts.push(Part { on: On::Obstacle(k), body_from_part: Pose::IDENTITY, mesh, paint });
        }
        figure
    }

    /// Bones and joints.
    pub(super) fn markings(model: &Model, layers: &[Layer], finish: Finish, sides: impl Fn(f32) -> usize) -> Figure {
        let mut figure = Figure::default();
        let bones = bones(model);
        if layers.contains(&Layer::Bones) {
            let paint = Paint { finish, ..Paint::solid(linear(BONE)) };
            for bone in &bones {
                let mesh = pointed(bone.from.distance(bone.to) as f32);
                let along = DVec3::X;
                let Some(direction) = (bone.to - bone.from).try_normalize() else { continue };
                let rotation = supple::glam::DQuat::from_rotation_arc(along, direction);
                let body_from_part = Pose::new(rotation, bone.from);
                figure.parts.push(Part { on: On::Body(bone.body), body_from_part, mesh, paint });
            }
        }
        if layers.contains(&Layer::Joints) {
            let paint = Paint { finish, ..Paint::solid(linear(JOINT)) };
            let typical = median(bones.iter().map(|bone| bone.from.distance(bone.to)).collect());
            for joint in model.joints() {
                // A tenth of the bone, or of a usual one where the joint lies in the middle of its body.
                let lever = joint.child_from_joint.translation.length();
                let radius = 0.11 * if lever > 0.0 { (2.0 * lever).min(typical) } else { typical };
                let mut add = |shape: &Shape, at: Pose| {
                    let mesh = solids::mesh(shape, &sides);
                    let body_from_part = joint.child_from_joint.then(at);
                    figure.parts.push(Part { on: On::Body(joint.child.index()), body_from_part, mesh, paint });
                };
                add(&Shape::sphere(radius), Pose::IDENTITY);
                if let (Some(axis), 1) = (joint.turning_axis(), joint.mask.free()) {
                    let turn = supple::glam::DQuat::from_rotation_arc(DVec3::X, DVec3::AXES[axis]);
                    add(&Shape::capsule(5.0 * radius, 0.35 * radius), Pose::new(turn, DVec3::ZERO));
                }
            }
        }
        figure
    }

    /// How the parts look.
    pub(super) fn paints(&self) -> impl Iterator<Item = Paint> {
        self.parts.iter().map(|part| part.paint)
    }

    /// The surface in a posture, about a new origin; its parts are counted from `first`.
    pub(super) fn surface(&self, posture: &Posture, origin: DVec3, first: usize) -> Surface {
        let mut surface = Surface::default();
        for (k, part) in self.parts.iter().enumerate() {
            let world_from_owner = match part.on {
                On::Body(k) => posture.bodies[k],
                On::Obstacle(k) => posture.obstacles[k],
            };
            let place = world_from_owner.then(part.body_from_part);
            let (turn, at) = (place.rotation.as_quat(), (place.translation - origin).as_vec3());
            let base = surface.vertices.len() as u32;
            let moved = |v: &Vertex| Vertex { position: turn * v.position + at, normal: turn * v.normal };
            surface.vertices.extend(part.mesh.vertices.iter().map(moved));
            let facet = |t: &[u32; 3]| Facet { corners: t.map(|i| base + i), part: (first + k) as u32 };
            surface.facets.extend(part.mesh.triangles.iter().map(facet));
        }
        surface
    }
}

/// The surface of flesh or skin: smooth, with a colour for each triangle.
#[derive(Debug)]
pub(super) struct Soft {
    triangles: Vec<[u32; 3]>,
    colours: Vec<Vec3>,
}

impl Soft {
    /// That of a model, if it has any.
    pub(super) fn of(model: &Model) -> Option<Soft> {
        let of_flesh = |flesh: &'_ Flesh| (flesh.surface.triangles.clone(), flesh.surface.colours.clone());
        let of_skin = |skin: &'_ Skin| (skin.triangles.clone(), skin.colours.clone());
        let (triangles, colours) = model.flesh().map(of_flesh).or_else(|| model.skin().map(of_skin))?;
        let plain = linear(LIMBS[0]);
        let corner = |i: u32| colours.get(i as usize).map_or(plain, |colour| Vec3::from_array(*colour));
        let colours = triangles.iter().map(|t| t.iter().map(|&i| corner(i)).sum::<Vec3>() / 3.0).collect();
        Some(Soft { colours, triangles })
    }

    pub(super) fn paints(&self) -> impl Iterator<Item = Paint> {
        self.colours.iter().map(|&colour| Paint::solid(colour))
    }

    /// With its vertices at these places, about a new origin; its parts are counted from `first`.
    pub(super) fn surface(&self, places: &[DVec3], origin: DVec3, first: usize) -> Surface {
        // Normals of the triangles round a vertex, by their areas
        let mut normals = vec![DVec3::ZERO; places.len()];
        for t in &self.triangles {
            let [a, b, c] = t.map(|i| places[i as usize]);
            let normal = (b - a).cross(c - a);
            t.iter().for_each(|&i| normals[i as usize] += normal);
        }
        let vertex = |(place, normal): (&DVec3, &DVec3)| Vertex {
            position: (*place - origin).as_vec3(),
            normal: normal.normalize_or(DVec3::Y).as_vec3(),
        };
        let facet = |(k, t): (usize, &[u32; 3])| Facet { corners: *t, part: (first + k) as u32 };
        Surface {
            vertices: places.iter().zip(&normals).map(vertex).collect(),
            facets: self.triangles.iter().enumerate().map(facet).collect(),
            coated: Vec::new(),
        }
    }
}

/// Balls that hold the shapes of all bodies and the flesh in all these postures, about a new origin.
pub(super) fn balls(model: &Model, postures: &[Posture], origin: DVec3) -> Vec<Ball> {
    let mut own = Vec::new();
    for (k, body) in model.bodies().iter().enumerate() {
        for placed in &body.shapes {
            own.extend(
                solids::balls(&placed.shape)
                    .into_iter()
                    .map(|ball| (k, placed.body_from_shape.transform_point(ball.centre.as_dvec3()), ball.radius)),
            );
        }
    }
    let place = |poses: &[Pose], &(k, at, radius): &(usize, DVec3, f32)| Ball {
        centre: (poses[k].transform_point(at) - origin).as_vec3(),
        radius,
    };
    let bodies = postures.iter().flat_map(|posture| own.iter().map(move |ball| place(&posture.bodies, ball)));
    let flesh = postures.iter().flat_map(|posture| &posture.flesh);
    bodies.chain(flesh.map(|p| Ball { centre: (*p - origin).as_vec3(), radius: 0.0 })).collect()
}

/// A limb keeps its colour; where the tree branches, each branch gets the next one.
fn limb_colours(model: &Model) -> Vec<Vec3> {
    let mut children = vec![Vec::new(); model.bodies().len()];
    let mut held = vec![false; model.bodies().len()];
    for joint in model.joints() {
        if let Some(parent) = joint.parent {
            children[parent.index()].push(joint.child.index());
            held[joint.child.index()] = true;
        }
    }
    let mut shades = vec![0; model.bodies().len()];
    let mut seen = held.iter().map(|held| !held).collect::<Vec<bool>>();
    let mut open: Vec<usize> = (0..held.len()).filter(|&k| !held[k]).collect();
    while let Some(body) = open.pop() {
        let next = &children[body];
        for (k, &child) in next.iter().enumerate() {
            if !std::mem::replace(&mut seen[child], true) {
                shades[child] = if next.len() == 1 { shades[body] } else { (shades[body] + k + 1) % LIMBS.len() };
                open.push(child);
            }
        }
    }
    let (soft, share) = SOFT;
    shades.into_iter().map(|k| linear(LIMBS[k]).lerp(linear(soft), share)).collect()
}

/// A bone in the coordinates of its body.
struct Bone {
    body: usize,
    from: DVec3,
    to: DVec3,
}

/// From the joint that holds a body to the joints that it holds; at a loose end through its centre of mass and as far again.
fn bones(model: &Model) -> Vec<Bone> {
    let count = model.bodies().len();
    let (mut held, mut holds) = (vec![None; count], vec![Vec::new(); count]);
    for joint in model.joints() {
        held[joint.child.index()] = Some(joint.child_from_joint.translation);
        if let Some(parent) = joint.parent {
            holds[parent.index()].push(joint.parent_from_joint.translation);
        }
    }
    let mut bones = Vec::new();
    for body in 0..count {
        let from = held[body].unwrap_or(DVec3::ZERO);
        if holds[body].is_empty() {
            bones.push(Bone { body, from, to: -from });
        }
        bones.extend(holds[body].iter().map(|&to| Bone { body, from, to }));
    }
    bones
}

fn median(mut lengths: Vec<f64>) -> f64 {
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(0.0)
}

/// A bone as drawn: four-sided, from the origin along X, thickest near its root.
fn pointed(length: f32) -> Mesh {
    let (thick, at) = (0.07 * length, 0.16 * length);
    let ring = [Vec3::Y, Vec3::Z, Vec3::NEG_Y, Vec3::NEG_Z].map(|d| Vec3::X * at + d * thick);
    let mut mesh = Mesh::default();
    for k in 0..4 {
        let (a, b) = (ring[k], ring[(k + 1) % 4]);
        for corners in [[Vec3::X * length, a, b], [Vec3::ZERO, b, a]] {
            let normal = (corners[1] - corners[0]).cross(corners[2] - corners[0]).normalize_or(Vec3::Y);
            let first = mesh.vertices.len() as u32;
            mesh.vertices.extend(corners.map(|position| Vertex { position, normal }));
            mesh.triangles.push([first, first + 1, first + 2]);
        }
    }
    mesh
}
