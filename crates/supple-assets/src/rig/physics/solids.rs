//! Colliders: their shapes, surfaces and filters.

use super::Physics;
use super::parts::{ColliderPart, FilterPart, MeshRef, Round, unit};
use crate::rig::{Rig, fit};
use crate::{FileError, Note};
use glam::{DMat3, DQuat, DVec3};
use serde_json::Value;
use std::f64::consts::{FRAC_PI_2, PI};
use supple::model::shape;
use supple::{Material, ObstacleShape, ObstacleSpec, Pose, Shape};

/// Hulls of more points than this are made of those that lie furthest out.
const HULL_POINTS: usize = 4096;
/// Bodies whose pairs are gone through for filters.
const MAX_FILTERED: usize = 2000;

/// A solid in the world at rest.
pub(super) struct Placed {
    pub(super) shape: ObstacleShape,
    pub(super) place: Pose,
}

/// What of a mesh is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Hull,
    AsItIs,
}

impl Surface {
    fn of(convex_hull: bool) -> Surface {
        if convex_hull { Surface::Hull } else { Surface::AsItIs }
    }
}

impl Physics<'_> {
    /// The solid of a collider; `None`: nothing that can be touched, and that is said.
    pub(super) fn solid(&mut self, node: usize, collider: &ColliderPart) -> Result<Option<Placed>, FileError> {
        let (place, scale) = self.place(node);
        let geometry = &collider.geometry;
        if let Some(mesh) = geometry.node {
            let Some(other) = self.document.root().nodes.get(mesh) else {
                return Err(self.missing(node, "node", mesh, self.nodes.len()));
            };
            return match other.mesh {
                Some(mesh) => self.mesh(node, mesh, Surface::of(geometry.convex_hull)),
                None => {
                    self.note(node, "the node of its geometry has no mesh: left out");
                    Ok(None)
                }
            };
        }
        if let Some(mesh) = geometry.mesh {
            return self.mesh(node, mesh, Surface::of(geometry.convex_hull));
        }
        let Some(index) = geometry.shape.or(collider.shape) else {
            self.note(node, "its collider has no geometry: left out");
            return Ok(None);
        };
        let Some(shape) = self.shapes.get(index) else {
            return Err(self.missing(node, "shape", index, self.shapes.len()));
        };
        if let Some(MeshRef { mesh }) = shape.mesh {
            let hull = shape.extensions.pointer("/KHR_physics_rigid_bodies/convexHull") == Some(&Value::Bool(true));
            return self.mesh(node, mesh, Surface::of(hull));
        }
        // Ours lie along X, those of the file along Y.
        let along = Pose::new(place.rotation * DQuat::from_rotation_z(FRAC_PI_2), place.translation);
        let round = |part: &Option<Round>| {
            let part = part.as_ref();
            let radius = |r: fn(&Round) -> Option<f64>| part.and_then(r).unwrap_or(0.25) * scale.x.max(scale.z);
            let height = part.and_then(|p| p.height).unwrap_or(0.5) * scale.y;
            (height, radius(|p| p.radius_top), radius(|p| p.radius_bottom))
        };
        let uneven = scale.max_element() > 1.001 * scale.min_element();
        let mut told = None;
        let (shape, place) = match shape.kind.as_str() {
            "sphere" => {
                if uneven {
                    told = Some("a sphere of uneven scale is taken as one of the largest");
                }
                let radius = shape.sphere.as_ref().and_then(|s| s.radius).unwrap_or(0.5);
                (ObstacleShape::Solid(Shape::sphere(radius * scale.max_element())), place)
            }
            "box" => {
                let size = DVec3::from(shape.cuboid.as_ref().map_or(unit(), |b| b.size)) * scale;
                (ObstacleShape::Solid(Shape::cuboid(size.x, size.y, size.z)), place)
            }
            "capsule" => {
                let (height, top, bottom) = round(&shape.capsule);
                if (top - bottom).abs() > 1e-9 * top {
                    told = Some("a capsule with ends of two sizes is taken as one of their mean");
                }
                (ObstacleShape::Solid(Shape::capsule(height, 0.5 * (top + bottom))), along)
            }
            "cylinder" => {
                let (height, top, bottom) = round(&shape.cylinder);
                let solid = if (top - bottom).abs() <= 1e-9 * top.max(bottom) {
                    Shape::Cylinder { length: height, radius: top }
                } else {
                    told = Some("a cylinder with ends of two sizes is taken as a hull");
                    cone(height, top, bottom)
                };
                (ObstacleShape::Solid(solid), along)
            }
            "plane" => (ObstacleShape::HalfSpace, place),
            other => {
                let text = format!("a shape of type \"{other}\" is not known: left out");
                self.note(node, text);
                return Ok(None);
            }
        };
        if let ObstacleShape::Solid(solid) = &shape
            && let Err(fault) = solid.solid()
        {
            self.note(node, format!("its shape is left out: {fault}"));
            return Ok(None);
        }
        if let Some(told) = told {
            self.note(node, told);
        }
        Ok(Some(Placed { shape, place }))
    }

    /// A mesh as a hull; one that stands still and need not be one, as it is.
    fn mesh(&mut self, node: usize, mesh: usize, surface: Surface) -> Result<Option<Placed>, FileError> {
        let count = self.document.root().meshes.len();
        if mesh >= count {
            return Err(self.missing(node, "mesh", mesh, count));
        }
        let world = self.document.world[node];
        let (place, _) = self.place(node);
        let inward = place.inverse();
        let (mut points, triangles) = self.document.mesh_points(&self.reader, mesh)?;
        for point in &mut points {
            *point = inward.transform_point(world.transform_point3(*point));
        }
        if surface == Surface::AsItIs && !self.moving[node] && !triangles.is_empty() {
            return Ok(Some(Placed { shape: ObstacleShape::Mesh { vertices: points, triangles }, place }));
        }
        if surface == Surface::AsItIs {
            self.note(node, "a mesh that moves is taken as its convex hull");
        }
        if points.len() > HULL_POINTS {
            points = fit::outermost(&points, DMat3::IDENTITY);
            self.note(node, "its hull is made of the points that lie furthest out");
        }
        let found = shape::hull(&points).ok().map(|(points, _)| Shape::Hull { points });
        let Some(solid) = found.filter(|shape| shape.solid().is_ok()) else {
            self.note(node, "the hull of its mesh has no volume: left out");
            return Ok(None);
        };
        Ok(Some(Placed { shape: ObstacleShape::Solid(solid), place }))
    }

    /// What a collider says of its surface, if anything.
    pub(super) fn material(&mut self, node: usize, collider: &ColliderPart) -> Result<Option<Material>, FileError> {
        let Some(index) = collider.physics_material else { return Ok(None) };
        let list = &self.root.physics_materials;
        let Some(surface) = list.get(index) else {
            return Err(self.missing(node, "physics material", index, list.len()));
        };
        let (still, moving) = (surface.static_friction, surface.dynamic_friction);
        let material = Material::new(
            moving.or(still).unwrap_or(Material::default().friction).clamp(0.0, 1e3),
            surface.restitution.unwrap_or(0.0).clamp(0.0, 1.0),
        );
        if let (Some(still), Some(moving)) = (still, moving)
            && still != moving
        {
            self.note(node, format!("it has one coefficient of friction, {moving}, not another of {still} at rest"));
        }
        Ok(Some(material))
    }

    pub(super) fn filter(&self, node: usize, collider: &ColliderPart) -> Result<Option<usize>, FileError> {
        let count = self.root.collision_filters.len();
        match collider.collision_filter {
            Some(index) if index >= count => Err(self.missing(node, "collision filter", index, count)),
            filter => Ok(filter),
        }
    }

    /// Whether what two filters belong to may touch. Without a filter: all.
    fn meet(&self, a: Option<usize>, b: Option<usize>) -> bool {
        let empty = FilterPart::default();
        let get = |i: Option<usize>| i.map_or(&empty, |i| &self.root.collision_filters[i]);
        let lets = |this: &FilterPart, other: &FilterPart| {
            let only = this
                .collide_with_systems
                .as_ref()
                .is_none_or(|only| other.collision_systems.iter().any(|s| only.contains(s)));
            let not = this
                .not_collide_with_systems
                .as_ref()
                .is_some_and(|not| other.collision_systems.iter().any(|s| not.contains(s)));
            only && !not
        };
        let (a, b) = (get(a), get(b));
        lets(a, b) && lets(b, a)
    }

    /// Pairs of bones that filters keep apart.
    pub(super) fn apart(&mut self, filters: &[Option<usize>]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        if filters.len() > MAX_FILTERED {
            let text = format!("it has more than {MAX_FILTERED} bodies: filters between them are left out");
            self.notes.push(Note { code: "import/physics", part: "scene".into(), text });
            return pairs;
        }
        let with: Vec<usize> = (0..filters.len()).filter(|i| filters[*i].is_some()).collect();
        for &i in &with {
            for j in 0..filters.len() {
                // Once each: with those that have a filter, when it is the first of the two.
                if i != j && (filters[j].is_none() || i < j) && !self.meet(filters[i], filters[j]) {
                    pairs.push((i, j));
                }
            }
        }
        pairs
    }

    /// What stands around, in a group for each filter, so that bodies can be told which they touch.
    pub(super) fn obstacles(
        &mut self,
        obstacles: Vec<(ObstacleSpec, Option<usize>)>,
        filters: &[Option<usize>],
        rig: &mut Rig,
    ) {
        let mut kinds: Vec<Option<usize>> = Vec::new();
        for (spec, filter) in obstacles {
            let kind = kinds.iter().position(|k| *k == filter).unwrap_or_else(|| {
                kinds.push(filter);
                kinds.len() - 1
            });
            // The first group is that of the bodies.
            rig.obstacles.push(spec.group(1 << (1 + kind.min(30))));
        }
        if kinds.len() > 31 {
            let text = "what stands around has more than 31 filters: those after are taken as one".into();
            self.notes.push(Note { code: "import/physics", part: "scene".into(), text });
        }
        for (bone, filter) in rig.bones.iter_mut().zip(filters) {
            for (k, kind) in kinds.iter().enumerate() {
                if !self.meet(*filter, *kind) {
                    bone.collides_with &= !(1 << (1 + k.min(30)));
                }
            }
        }
    }
}

/// Points around both ends of a cone, along X.
fn cone(height: f64, top: f64, bottom: f64) -> Shape {
    const AROUND: usize = 16;
    let ring = |x: f64, radius: f64| {
        (0..AROUND).map(move |k| {
            let angle = 2.0 * PI * k as f64 / AROUND as f64;
            DVec3::new(x, radius * angle.cos(), radius * angle.sin())
        })
    };
    // An end without a radius is one point.
    let end = |x: f64, radius: f64| -> Vec<DVec3> {
        if radius > 0.0 { ring(x, radius).collect() } else { vec![DVec3::X * x] }
    };
    let points = end(0.5 * height, top).into_iter().chain(end(-0.5 * height, bottom)).collect();
    Shape::Hull { points }
}
