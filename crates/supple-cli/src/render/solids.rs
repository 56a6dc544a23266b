//! Shapes as triangles with smooth normals. Round shapes get as many sides as their size on the picture asks for.

use super::camera::Ball;
use super::raster::Vertex;
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};
use supple::Shape;
use supple::glam::{DVec3, Vec3};
use supple::model::shape::hull;

/// A closed surface in the shape's own frame, outward counter-clockwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Mesh {
    pub(super) vertices: Vec<Vertex>,
    pub(super) triangles: Vec<[u32; 3]>,
}

/// Edges of boxes are rounded by this share of their shortest side.
const BOX_ROUNDING: f32 = 0.3;
/// Rims of cylinders are rounded by this share of their radius or length.
const RIM_ROUNDING: f32 = 0.12;
/// Faces of hulls and meshes that meet at less than this angle look round \[rad\].
const CREASE: f32 = 0.7;

/// The surface of a shape; `sides` is how many sides a full circle of a given radius gets.
pub(super) fn mesh(shape: &Shape, sides: impl Fn(f32) -> usize) -> Mesh {
    match shape {
        Shape::Sphere { radius } => {
            let r = *radius as f32;
            revolve(&arc(0.0, 0.0, r, [0.0, PI], sides(r) / 2), sides(r))
        }
        Shape::Capsule { length, radius } => {
            let (half, r) = (0.5 * *length as f32, *radius as f32);
            let quarter = sides(r).div_ceil(4);
            let mut profile = arc(half, 0.0, r, [0.0, FRAC_PI_2], quarter);
            profile.extend(arc(-half, 0.0, r, [FRAC_PI_2, PI], quarter));
            revolve(&profile, sides(r))
        }
        Shape::Cylinder { length, radius } => {
            let (half, r) = (0.5 * *length as f32, *radius as f32);
            let rim = RIM_ROUNDING * r.min(half);
            let quarter = sides(rim).div_ceil(4);
            let mut profile = vec![Turned { along: half, out: 0.0, slant: 0.0 }];
            profile.extend(arc(half - rim, r - rim, rim, [0.0, FRAC_PI_2], quarter));
            profile.extend(arc(rim - half, r - rim, rim, [FRAC_PI_2, PI], quarter));
            profile.push(Turned { along: -half, out: 0.0, slant: PI });
            revolve(&profile, sides(r))
        }
        Shape::Cuboid { size } => {
            let size = size.as_vec3();
            let rounding = BOX_ROUNDING * size.min_element();
            rounded_box(0.5 * size, rounding, sides(rounding).div_ceil(8))
        }
        Shape::Hull { points } => {
            hull(points).map(|(vertices, triangles)| creased(&vertices, &triangles)).unwrap_or_default()
        }
        Shape::Mesh { vertices, triangles } => creased(vertices, triangles),
    }
}

/// A box as the hull of its corners.
pub(super) fn sharp_box(size: DVec3) -> Shape {
    let corner =
        |k: u32| DVec3::from_array(std::array::from_fn(|i| if k >> i & 1 == 0 { -0.5 } else { 0.5 } * size[i]));
    Shape::Hull { points: (0..8).map(corner).collect() }
}

/// Balls that hold a shape.
pub(super) fn balls(shape: &Shape) -> Vec<Ball> {
    let ball = |centre: Vec3, radius: f64| Ball { centre, radius: radius as f32 };
    let corners = |low: Vec3, high: Vec3| {
        let corner =
            move |k: u32| Vec3::from_array(std::array::from_fn(|i| if k >> i & 1 == 0 { low[i] } else { high[i] }));
        (0..8).map(move |k| ball(corner(k), 0.0)).collect()
    };
    let around = |points: &[DVec3]| {
        let low = points.iter().copied().fold(DVec3::INFINITY, DVec3::min);
        let high = points.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
        corners(low.as_vec3(), high.as_vec3())
    };
    match shape {
        Shape::Sphere { radius } => vec![ball(Vec3::ZERO, *radius)],
        Shape::Capsule { length, radius } => {
            [-0.5, 0.5].map(|end| ball(Vec3::X * (end * length) as f32, *radius)).to_vec()
        }
        Shape::Cylinder { length, radius } => {
            let half = DVec3::new(0.5 * length, *radius, *radius).as_vec3();
            corners(-half, half)
        }
        Shape::Cuboid { size } => corners(-0.5 * size.as_vec3(), 0.5 * size.as_vec3()),
        Shape::Hull { points } => around(points),
        Shape::Mesh { vertices, .. } => around(vertices),
    }
}

/// A point of a profile that is turned about X: how far along, how far out, and the angle of its normal from +X.
#[derive(Clone, Copy)]
struct Turned {
    along: f32,
    out: f32,
    slant: f32,
}

/// An arc of a profile about a centre, from one angle from +X to another.
fn arc(along: f32, out: f32, radius: f32, [from, to]: [f32; 2], parts: usize) -> Vec<Turned> {
    let parts = parts.max(1);
    let point = |k: usize| {
        let slant = from + (to - from) * k as f32 / parts as f32;
        // The sine of π rounds to less than 0.
        Turned { along: along + radius * slant.cos(), out: (out + radius * slant.sin()).max(0.0), slant }
    };
    (0..=parts).map(point).collect()
}

/// Turns a profile from its +X end to its −X end about X.
fn revolve(profile: &[Turned], sides: usize) -> Mesh {
    let mut mesh = Mesh::default();
    for point in profile {
        let (out_normal, along_normal) = point.slant.sin_cos();
        for k in 0..=sides {
            let (sin, cos) = (TAU * (k % sides) as f32 / sides as f32).sin_cos();
            mesh.vertices.push(Vertex {
                position: Vec3::new(point.along, point.out * cos, point.out * sin),
                normal: Vec3::new(along_normal, out_normal * cos, out_normal * sin),
            });
        }
    }
    grid(&mut mesh, 0, profile.len(), sides + 1);
    mesh
}

/// Joins rows of vertices into triangles; those without an area are left out.
fn grid(mesh: &mut Mesh, first: usize, rows: usize, columns: usize) {
    for row in 1..rows {
        for column in 1..columns {
            let at = |r: usize, c: usize| (first + r * columns + c) as u32;
            let [a, b, c, d] = [at(row - 1, column - 1), at(row, column - 1), at(row, column), at(row - 1, column)];
            for triangle in [[a, b, c], [a, c, d]] {
                let [p, q, r] = triangle.map(|i| mesh.vertices[i as usize].position);
                if p != q && q != r && r != p {
                    mesh.triangles.push(triangle);
                }
            }
        }
    }
}

/// A box with round edges: each face is a grid whose outer rows bend by 45° towards the next face.
fn rounded_box(half: Vec3, rounding: f32, parts: usize) -> Mesh {
    let inner = half - Vec3::splat(rounding);
    // The side of the inner box a row begins at, and its slope there.
    let rows: Vec<(f32, f32)> = [-1.0, 1.0]
        .into_iter()
        .flat_map(|side: f32| {
            (0..=parts).map(move |k| {
                let angle = FRAC_PI_4 * k as f32 / parts as f32;
                if side < 0.0 { (side, -(FRAC_PI_4 - angle).tan()) } else { (side, angle.tan()) }
            })
        })
        .collect();
    let mut mesh = Mesh::default();
    for axis in 0..3 {
        for sign in [-1.0, 1.0] {
            let first = mesh.vertices.len();
            // Rows and columns along axes that make a right-handed frame with the outward one.
            let (u, v) = if sign > 0.0 { ((axis + 1) % 3, (axis + 2) % 3) } else { ((axis + 2) % 3, (axis + 1) % 3) };
            for &(u_side, u_slope) in &rows {
                for &(v_side, v_slope) in &rows {
                    let (mut corner, mut normal) = (Vec3::ZERO, Vec3::ZERO);
                    (corner[u], corner[v], corner[axis]) = (u_side, v_side, sign);
                    (normal[u], normal[v], normal[axis]) = (u_slope, v_slope, sign);
                    let normal = normal.normalize();
                    mesh.vertices.push(Vertex { position: corner * inner + normal * rounding, normal });
                }
            }
            grid(&mut mesh, first, rows.len(), rows.len());
        }
    }
    mesh
}

/// Triangles whose normals are averaged with those of neighbours at a corner, except across a crease.
pub(super) fn creased(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Mesh {
    let at = |i: u32| vertices[i as usize];
    // Area times two along the normal: small triangles count little.
    let areas: Vec<DVec3> = triangles.iter().map(|&[a, b, c]| (at(b) - at(a)).cross(at(c) - at(a))).collect();
    let mut around = vec![Vec::new(); vertices.len()];
    for (k, triangle) in triangles.iter().enumerate() {
        triangle.iter().for_each(|&i| around[i as usize].push(k));
    }
    let mut mesh = Mesh::default();
    for (k, triangle) in triangles.iter().enumerate() {
        let own = areas[k].normalize_or_zero();
        let round = |other: &&usize| own.dot(areas[**other].normalize_or_zero()) >= f64::from(CREASE.cos());
        let first = mesh.vertices.len() as u32;
        for &i in triangle {
            let normal: DVec3 = around[i as usize].iter().filter(round).map(|other| areas[*other]).sum();
            let normal = normal.try_normalize().unwrap_or(DVec3::Y);
            mesh.vertices.push(Vertex { position: at(i).as_vec3(), normal: normal.as_vec3() });
        }
        mesh.triangles.push([first, first + 1, first + 2]);
    }
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> Vec<Shape> {
        let corners =
            |i: i32| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)) - DVec3::splat(0.5);
        vec![
            Shape::sphere(0.7),
            Shape::capsule(1.0, 0.3),
            Shape::cylinder(1.0, 0.3),
            Shape::cuboid(1.0, 0.5, 0.3),
            Shape::Hull { points: (0..8).map(corners).collect() },
        ]
    }

    #[test]
    fn surfaces_are_closed_and_look_outward() {
        for shape in shapes() {
            let mesh = mesh(&shape, |_| 64);
            // Volume by the tetrahedra to the origin: that of the shape, less chords, rims and the edges of the box.
            let corner = |i: u32| mesh.vertices[i as usize].position;
            let volume: f32 =
                mesh.triangles.iter().map(|&[a, b, c]| corner(a).dot(corner(b).cross(corner(c))) / 6.0).sum();
            let expected = match &shape {
                Shape::Cuboid { size } => {
                    let r = BOX_ROUNDING * size.as_vec3().min_element();
                    let [a, b, c] = (size.as_vec3() - 2.0 * r).to_array();
                    a * b * c
                        + 2.0 * r * (a * b + b * c + c * a)
                        + PI * r * r * (a + b + c)
                        + 4.0 / 3.0 * PI * r.powi(3)
                }
                other => other.solid().unwrap().volume as f32,
            };
            let share = volume / expected;
            assert!((0.99..1.00001).contains(&share), "{shape:?}: {share}");
            for vertex in &mesh.vertices {
                assert!((vertex.normal.length() - 1.0).abs() < 1e-5, "{shape:?}");
                assert!(vertex.normal.dot(vertex.position) > 0.0, "{shape:?}");
            }
            for triangle in &mesh.triangles {
                let [a, b, c] = triangle.map(|i| mesh.vertices[i as usize]);
                let across = (b.position - a.position).cross(c.position - a.position);
                // The normals of a facet lie on its side: those at its corners turn by no more than a crease.
                assert!(across.dot(a.normal + b.normal + c.normal) > 0.0, "{shape:?}");
            }
        }
    }

    #[test]
    fn creases_stay_sharp_and_gentle_edges_become_round() {
        let cube = mesh(&shapes()[4], |_| 8);
        assert!(cube.vertices.iter().all(|v| v.normal.abs().max_element() > 0.9999), "a cube keeps its faces");
        // A prism with 24 sides, 15° apart.
        let rim = |k: i32, z: f64| {
            let angle = f64::from(k) * std::f64::consts::TAU / 24.0;
            DVec3::new(angle.cos(), angle.sin(), z)
        };
        let points = (0..24).flat_map(|k| [rim(k, -1.0), rim(k, 1.0)]).collect();
        let prism = mesh(&Shape::Hull { points }, |_| 8);
        let side = prism.vertices.iter().filter(|v| v.normal.z.abs() < 0.5);
        for vertex in side {
            let radial = vertex.position.truncate().extend(0.0).normalize();
            // Within the 7.5° of half a side.
            assert!(vertex.normal.dot(radial) > 7.5f32.to_radians().cos() - 1e-4, "{vertex:?}");
        }
    }
}
