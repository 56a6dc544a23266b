//! The shapes of a body as triangles, for files.

use glam::DVec3;
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use supple::model::shape;
use supple::{Body, Pose, Shape};

/// Triangles with a normal at each corner.
#[derive(Debug, Default)]
pub(super) struct Mesh {
    pub(super) positions: Vec<f32>,
    pub(super) normals: Vec<f32>,
    pub(super) triangles: Vec<[u32; 3]>,
}

/// Around a circle, and from pole to pole.
const AROUND: usize = 20;
const DOWN: usize = 12;

/// All shapes of a body, in body coordinates.
pub(super) fn of_body(body: &Body) -> Mesh {
    let mut mesh = Mesh::default();
    for placed in &body.shapes {
        let place = &placed.body_from_shape;
        match &placed.shape {
            Shape::Sphere { radius } => mesh.round(place, 0.0, *radius),
            Shape::Capsule { length, radius } => mesh.round(place, *length, *radius),
            Shape::Cylinder { length, radius } => mesh.cylinder(place, *length, *radius),
            Shape::Cuboid { size } => {
                let corner = |k: u32| DVec3::new(sign(k, 0), sign(k, 1), sign(k, 2)) * *size * 0.5;
                let corners: Vec<DVec3> = (0..8).map(corner).collect();
                mesh.hull(place, &corners);
            }
            Shape::Hull { points } => mesh.hull(place, points),
            Shape::Mesh { vertices, triangles } => mesh.faces(place, vertices, triangles),
        }
    }
    mesh
}

/// +1 or −1 by a bit.
fn sign(k: u32, bit: u32) -> f64 {
    if k >> bit & 1 == 1 { 1.0 } else { -1.0 }
}

impl Mesh {
    fn corner(&mut self, place: &Pose, position: DVec3, normal: DVec3) -> u32 {
        let (position, normal) = (place.transform_point(position).as_vec3(), (place.rotation * normal).as_vec3());
        self.positions.extend(position.to_array());
        self.normals.extend(normal.normalize_or(glam::Vec3::Y).to_array());
        (self.positions.len() / 3 - 1) as u32
    }

    /// Rings from pole to pole along X; `grid` holds their corners, the triangles lie between them.
    fn rings(&mut self, rings: usize, first: u32) {
        let at = |ring: usize, k: usize| first + (ring * AROUND + k % AROUND) as u32;
        for ring in 0..rings - 1 {
            for k in 0..AROUND {
                self.triangles.push([at(ring, k), at(ring + 1, k), at(ring + 1, k + 1)]);
                self.triangles.push([at(ring, k), at(ring + 1, k + 1), at(ring, k + 1)]);
            }
        }
    }

    /// A sphere, or a capsule along X.
    fn round(&mut self, place: &Pose, length: f64, radius: f64) {
        let first = (self.positions.len() / 3) as u32;
        let halves = if length > 0.0 { 2 } else { 1 };
        let rings = DOWN + halves; // the equator twice when there is a tube between
        for ring in 0..rings {
            let step = if halves == 2 && ring > DOWN / 2 { ring - 1 } else { ring };
            let polar = PI * step as f64 / DOWN as f64;
            let shift = if halves == 1 {
                0.0
            } else if ring <= DOWN / 2 {
                0.5 * length
            } else {
                -0.5 * length
            };
            for k in 0..AROUND {
                let around = TAU * k as f64 / AROUND as f64;
                let normal = DVec3::new(polar.cos(), polar.sin() * around.cos(), polar.sin() * around.sin());
                self.corner(place, normal * radius + DVec3::X * shift, normal);
            }
        }
        self.rings(rings, first);
    }

    fn cylinder(&mut self, place: &Pose, length: f64, radius: f64) {
        let first = (self.positions.len() / 3) as u32;
        // Cap, side, side, cap: rings of the same places have their own normals.
        let rings = [
            (0.5, 0.0, 0.0),
            (0.5, 1.0, 0.0),
            (0.5, 1.0, FRAC_PI_2),
            (-0.5, 1.0, FRAC_PI_2),
            (-0.5, 1.0, PI),
            (-0.5, 0.0, PI),
        ];
        for (x, r, tilt) in rings {
            for k in 0..AROUND {
                let around = TAU * k as f64 / AROUND as f64;
                let across = DVec3::new(0.0, around.cos(), around.sin());
                let normal = DVec3::X * f64::cos(tilt) + across * f64::sin(tilt);
                self.corner(place, DVec3::X * (x * length) + across * (r * radius), normal);
            }
        }
        self.rings(rings.len(), first);
    }

    fn hull(&mut self, place: &Pose, points: &[DVec3]) {
        if let Ok((vertices, triangles)) = shape::hull(points) {
            self.faces(place, &vertices, &triangles);
        }
    }

    /// Flat faces.
    fn faces(&mut self, place: &Pose, vertices: &[DVec3], triangles: &[[u32; 3]]) {
        for t in triangles {
            let [a, b, c] = t.map(|i| vertices[i as usize]);
            let normal = (b - a).cross(c - a).normalize_or_zero();
            let corners = [a, b, c].map(|p| self.corner(place, p, normal));
            self.triangles.push(corners);
        }
    }
}
