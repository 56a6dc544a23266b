//! The shapes of a model, made ready for contacts.

use super::Other;
use super::broad::Bounds;
use super::convex::Convex;
use super::polytope::Polytope;
use super::surface::{Back, Surface};
use crate::maths::Pose;
use crate::model::{Body, BodyId, Obstacle, ObstacleId, ObstacleShape, Shape};
use glam::DVec3;

/// All shapes: those of bodies first, in order, then obstacles.
#[derive(Debug)]
pub(crate) struct Colliders {
    pub(super) all: Vec<Collider>,
    /// How many of them belong to bodies.
    pub(super) of_bodies: usize,
}

/// One shape of a body, or an obstacle.
#[derive(Debug)]
pub(super) struct Collider {
    pub(super) owner: Other,
    /// `owner_from_shape`.
    pub(super) place: Pose,
    pub(super) form: Form,
    /// The core is thickened by this \[m\].
    pub(super) rounding: f64,
    /// Box around it in shape coordinates, thickness included.
    pub(super) bounds: Bounds,
    /// Farthest core point from the shape's origin \[m\].
    pub(super) size: f64,
    /// Farthest point from the owner's origin \[m\].
    pub(super) reach: f64,
    /// Smallest extent \[m\].
    pub(super) thickness: f64,
}

#[derive(Debug)]
pub(super) enum Form {
    Point,
    Segment { half: f64 },
    Box { half: DVec3 },
    Cylinder { half: f64, radius: f64 },
    Polytope(Polytope),
    Surface(Box<Surface>),
    HalfSpace,
}

impl Colliders {
    pub(crate) fn new(bodies: &[Body], obstacles: &[Obstacle]) -> Colliders {
        let mut all = Vec::new();
        for (k, body) in bodies.iter().enumerate() {
            for placed in &body.shapes {
                all.push(Collider::solid(Other::Body(BodyId(k as u32)), placed.body_from_shape, &placed.shape));
            }
        }
        let of_bodies = all.len();
        for (k, obstacle) in obstacles.iter().enumerate() {
            let owner = Other::Obstacle(ObstacleId(k as u32));
            all.push(match &obstacle.shape {
                ObstacleShape::HalfSpace => {
                    let everywhere = Bounds { min: DVec3::NEG_INFINITY, max: DVec3::INFINITY };
                    Collider::new(owner, Pose::IDENTITY, Form::HalfSpace, 0.0, everywhere)
                }
                ObstacleShape::Solid(shape) => Collider::solid(owner, Pose::IDENTITY, shape),
                ObstacleShape::HeightField(field) => {
                    let (vertices, triangles) = field.surface();
                    Collider::surface(owner, Pose::IDENTITY, &vertices, &triangles, Back::Solid)
                }
                ObstacleShape::Mesh { vertices, triangles } => {
                    Collider::surface(owner, Pose::IDENTITY, vertices, triangles, Back::Open)
                }
            });
        }
        Colliders { all, of_bodies }
    }
}

impl Collider {
    /// From the core to a point of the surface, world axes, `outward` being the normal there: what does not turn with the owner when it rolls.
    /// `lever` is the point from the owner's origin, world axes.
    pub(super) fn round(&self, owner: &Pose, lever: DVec3, outward: DVec3) -> DVec3 {
        match self.form {
            Form::Cylinder { .. } => {
                let axis = owner.rotation * (self.place.rotation * DVec3::X);
                (lever - owner.rotation * self.place.translation).reject_from_normalized(axis)
            }
            _ => outward * self.rounding,
        }
    }

    fn new(owner: Other, place: Pose, form: Form, rounding: f64, core: Bounds) -> Collider {
        let bounds = Bounds::around(core.centre(), core.half() + DVec3::splat(rounding));
        let farthest = |b: &Bounds| b.centre().length() + b.half().length();
        let size = match &form {
            Form::Point => 0.0,
            Form::Segment { half } => *half,
            _ => farthest(&core),
        };
        let reach = place.transform_point(core.centre()).length() + core.half().length() + rounding;
        let thickness = 2.0 * bounds.half().min_element();
        Collider { owner, place, form, rounding, bounds, size, reach, thickness }
    }

    fn solid(owner: Other, place: Pose, shape: &Shape) -> Collider {
        let box_of = |x: f64, y: f64, z: f64| Bounds::around(DVec3::ZERO, DVec3::new(x, y, z));
        let (form, rounding, core) = match shape {
            Shape::Sphere { radius } => (Form::Point, *radius, box_of(0.0, 0.0, 0.0)),
            Shape::Capsule { length, radius } if *length == 0.0 => (Form::Point, *radius, box_of(0.0, 0.0, 0.0)),
            Shape::Capsule { length, radius } => {
                let half = 0.5 * length;
                (Form::Segment { half }, *radius, box_of(half, 0.0, 0.0))
            }
            Shape::Cuboid { size } => {
                let half = *size * 0.5;
                (Form::Box { half }, 0.0, box_of(half.x, half.y, half.z))
            }
            Shape::Cylinder { length, radius } => {
                let half = 0.5 * length;
                (Form::Cylinder { half, radius: *radius }, 0.0, box_of(half, *radius, *radius))
            }
            Shape::Hull { points } => match Polytope::new(points) {
                Some(hull) => {
                    // About its middle, so that distances keep their digits.
                    let bounds = Bounds::of(hull.vertices.iter().copied());
                    let middle = bounds.centre();
                    let place = place.then(Pose::at(middle));
                    let core = Bounds::around(DVec3::ZERO, bounds.half());
                    return Collider::new(owner, place, Form::Polytope(hull.moved(-middle)), 0.0, core);
                }
                None => (Form::Point, 0.0, box_of(0.0, 0.0, 0.0)), // not reached: the builder refuses flat hulls
            },
            Shape::Mesh { vertices, triangles } => {
                return Collider::surface(owner, place, vertices, triangles, Back::Solid);
            }
        };
        Collider::new(owner, place, form, rounding, core)
    }

    fn surface(owner: Other, place: Pose, vertices: &[DVec3], triangles: &[[u32; 3]], back: Back) -> Collider {
        let mut surface = Surface::new(vertices, triangles, back);
        if matches!(owner, Other::Body(_)) {
            surface = surface.with_hull();
        }
        let bounds = surface.bounds;
        Collider::new(owner, place, Form::Surface(Box::new(surface)), 0.0, bounds)
    }

    /// How far ahead contacts are kept when nothing moves \[m\]: a hundredth of its size.
    pub(super) fn slack(&self) -> f64 {
        0.01 * self.bounds.half().length()
    }

    /// The convex core, of those that have one.
    pub(super) fn convex(&self) -> Option<Convex<'_>> {
        match &self.form {
            Form::Point => Some(Convex::Point),
            Form::Segment { half } => Some(Convex::Segment { half: *half }),
            Form::Box { half } => Some(Convex::Box { half: *half }),
            Form::Cylinder { half, radius } => Some(Convex::Cylinder { half: *half, radius: *radius }),
            Form::Polytope(p) => Some(Convex::Polytope(p)),
            Form::Surface(_) | Form::HalfSpace => None,
        }
    }
}
