//! How far a point is outside of a shape, and the way out: what the surface of flesh asks.

use super::Other;
use super::broad::Bounds;
use super::collider::{Collider, Colliders, Form};
use super::surface::{Back, Surface};
use crate::model::ObstacleId;
use glam::DVec3;

/// Behind a surface that is no solid, only what is less than this share of `reach` deep is pushed back: what comes from there passes through.
const OPEN_DEPTH: f64 = 0.25;
/// Inside a solid surface, points are looked for this many times as deep as they are outside.
const SOLID_DEPTH: f64 = 4.0;

impl Colliders {
    /// The shapes of bodies, in order, and whose they are.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (usize, Other)> {
        self.all[..self.of_bodies].iter().map(|collider| collider.owner).enumerate()
    }

    /// The shape of an obstacle.
    pub(crate) fn of_obstacle(&self, id: ObstacleId) -> usize {
        self.of_bodies + id.index()
    }

    /// How far a point is outside of a shape \[m\], and the way out, in the owner's coordinates; `None` when it is farther than `reach` (or behind
    /// a surface where nothing tells).
    pub(crate) fn gap(&self, shape: usize, p: DVec3, reach: f64) -> Option<(f64, DVec3)> {
        let collider = &self.all[shape];
        let (gap, normal) = collider.gap(collider.place.inverse().transform_point(p), reach)?;
        (gap <= reach).then(|| (gap, collider.place.rotation * normal))
    }
}

impl Collider {
    fn gap(&self, p: DVec3, reach: f64) -> Option<(f64, DVec3)> {
        match &self.form {
            Form::HalfSpace => Some((p.y, DVec3::Y)),
            Form::Point => Some(ball(p, self.rounding)),
            Form::Segment { half } => Some(ball(p - DVec3::X * p.x.clamp(-half, *half), self.rounding)),
            Form::Cylinder { half, radius } => {
                let across = DVec3::new(0.0, p.y, p.z);
                let (side, end) = (across.length() - radius, p.x.abs() - half);
                Some(if side > end {
                    (side, across.try_normalize().unwrap_or(DVec3::Y))
                } else {
                    (end, DVec3::X * p.x.signum())
                })
            }
            Form::Box { half } => {
                let out = p.abs() - *half;
                let k = if out.x >= out.y && out.x >= out.z {
                    0
                } else if out.y >= out.z {
                    1
                } else {
                    2
                };
                Some((out[k], DVec3::AXES[k] * p[k].signum()))
            }
            Form::Polytope(hull) => {
                let above = |best: (f64, DVec3), (normal, height): (DVec3, f64)| {
                    let gap = normal.dot(p) - height;
                    if gap > best.0 { (gap, normal) } else { best }
                };
                Some(hull.planes().fold((f64::NEG_INFINITY, DVec3::Y), above))
            }
            Form::Surface(surface) => surface.gap(p, reach),
        }
    }
}

impl Surface {
    /// By the nearest triangle: along its normal within it, else along the way to it. Of triangles that are as near, at an edge, the one that faces the point
    /// most tells the side.
    fn gap(&self, p: DVec3, reach: f64) -> Option<(f64, DVec3)> {
        let depth = reach * if self.back == Back::Solid { SOLID_DEPTH } else { OPEN_DEPTH };
        let mut best: Option<(f64, f64, DVec3, DVec3)> = None;
        self.near(&Bounds::around(p, DVec3::splat(reach.max(depth))), |t| {
            let (corners, normal) = (self.corners(t), self.normal(t));
            let foot = nearest_on_triangle(corners, p);
            let (away, height) = (p.distance(foot), normal.dot(p - corners[0]));
            // as near, to rounding
            let slack = 1e-9 * (away + reach);
            let better = best.is_none_or(|(least, highest, ..)| {
                away < least - slack || (away < least + slack && height.abs() > highest.abs())
            });
            if better {
                best = Some((away, height, normal, foot));
            }
        });
        let (away, height, normal, foot) = best?;
        let side = if height < 0.0 { -1.0 } else { 1.0 };
        if side < 0.0 && away > depth {
            return None;
        }
        // within the triangle the foot is straight below
        let straight = (height.abs() - away).abs() <= 1e-6 * away.max(1e-9);
        let out = if straight { normal } else { (p - foot).try_normalize().map_or(normal, |out| out * side) };
        Some((away * side, out))
    }
}

fn ball(p: DVec3, radius: f64) -> (f64, DVec3) {
    (p.length() - radius, p.try_normalize().unwrap_or(DVec3::Y))
}

/// The point of a triangle that is nearest to p.
fn nearest_on_triangle([a, b, c]: [DVec3; 3], p: DVec3) -> DVec3 {
    let normal = (b - a).cross(c - a);
    let squared = normal.length_squared();
    if squared > 0.0 {
        let foot = p - normal * (normal.dot(p - a) / squared);
        let is_inside = |a: DVec3, b: DVec3| normal.dot((b - a).cross(foot - a)) >= 0.0;
        if is_inside(a, b) && is_inside(b, c) && is_inside(c, a) {
            return foot;
        }
    }
    let on_edge = |a: DVec3, b: DVec3| {
        let along = b - a;
        a + along * (along.dot(p - a) / along.length_squared().max(1e-300)).clamp(0.0, 1.0)
    };
    let nearer = |x: DVec3, y: DVec3| if p.distance_squared(y) < p.distance_squared(x) { y } else { x };
    nearer(nearer(on_edge(a, b), on_edge(b, c)), on_edge(c, a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, BodyId, ModelBuilder, ObstacleShape, ObstacleSpec, Shape};
    use crate::{BodySpec, HeightField, Pose};

    fn colliders(shape: ObstacleShape) -> Colliders {
        let mut builder = ModelBuilder::new();
        builder.body(BodySpec::new("far").shape(Shape::sphere(0.1), 1.0).pose(Pose::at(DVec3::X * 99.0)));
        builder.obstacle(ObstacleSpec::new("it", shape));
        let model = builder.build().unwrap();
        let bodies: Vec<Body> = model.bodies().to_vec();
        assert_eq!(model.colliders().owners().next(), Some((0, Other::Body(BodyId(0)))));
        Colliders::new(&bodies, model.obstacles())
    }

    /// The corners of a cube of 2 m, and its triangles.
    fn cube() -> (Vec<DVec3>, Vec<[u32; 3]>) {
        let corner = |k: usize| DVec3::new((k & 1) as f64, (k >> 1 & 1) as f64, (k >> 2) as f64) * 2.0 - DVec3::ONE;
        crate::model::shape::hull(&(0..8).map(corner).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_cube_is_the_same_as_box_hull_and_mesh() {
        let (vertices, triangles) = cube();
        let forms = [
            ObstacleShape::Solid(Shape::cuboid(2.0, 2.0, 2.0)),
            ObstacleShape::Solid(Shape::Hull { points: vertices.clone() }),
            ObstacleShape::Mesh { vertices, triangles },
        ];
        let forms = forms.map(colliders);
        for (p, gap, normal) in [
            (DVec3::new(0.3, 1.2, -0.4), 0.2, DVec3::Y),
            (DVec3::new(-1.05, 0.2, 0.9), 0.05, DVec3::NEG_X),
            (DVec3::new(0.1, 0.3, 0.95), -0.05, DVec3::Z),
            // on a diagonal of a face, where two triangles are as near
            (DVec3::new(0.5, -1.1, 0.5), 0.1, DVec3::NEG_Y),
        ] {
            for form in &forms {
                let (found, out) = form.gap(1, p, 0.5).unwrap();
                assert!((found - gap).abs() < 1e-9 && out.distance(normal) < 1e-6, "{p}: {found} {out}");
            }
        }
        // Beyond an edge a mesh tells the true way out; deep behind it nothing, for it need not be closed.
        let (gap, out) = forms[2].gap(1, DVec3::new(1.3, 1.4, 0.0), 1.0).unwrap();
        assert!((gap - 0.5).abs() < 1e-9 && out.distance(DVec3::new(0.6, 0.8, 0.0)) < 1e-9, "{gap} {out}");
        assert_eq!(forms[2].gap(1, DVec3::ZERO, 0.5), None);
        assert_eq!(forms[0].gap(1, DVec3::Y * 3.0, 0.5), None);
    }

    #[test]
    fn both_triangles_of_a_cell_of_heights_count() {
        // a roof: up along x, then z, to 1 m in the far corner
        let field =
            HeightField { columns: 2, rows: 2, length_x: 2.0, length_z: 2.0, heights: vec![0.0, 0.0, 0.0, 1.0] };
        let ground = colliders(ObstacleShape::HeightField(field));
        // on the near triangle the ground is level
        let (gap, out) = ground.gap(1, DVec3::new(-0.5, 0.1, -0.5), 0.5).unwrap();
        assert!((gap - 0.1).abs() < 1e-9 && out.distance(DVec3::Y) < 1e-9, "{gap} {out}");
        // on the far one it is y = ½(x + z)
        let n = DVec3::new(-0.5, 1.0, -0.5).normalize();
        let at = DVec3::new(0.5, 0.5, 0.5) - n * 0.05;
        let (gap, out) = ground.gap(1, at, 0.5).unwrap();
        assert!((gap + 0.05).abs() < 1e-9 && out.distance(n) < 1e-9, "{gap} {out}");
    }
}
