//! Shapes: volume, centre, inertia. Boxes and round solids by formula, hulls and closed meshes by integration.

use glam::{DMat3, DVec3};

/// A solid shape about its own origin.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Radius \[m\].
    Sphere {
        /// \[m\]
        radius: f64,
    },
    /// Edge lengths along X, Y, Z \[m\].
    Cuboid {
        /// \[m\]
        size: DVec3,
    },
    /// A segment along X of this length (without the caps), thickened by the radius.
    Capsule {
        /// Length of the segment \[m\].
        length: f64,
        /// \[m\]
        radius: f64,
    },
    /// Along X.
    Cylinder {
        /// \[m\]
        length: f64,
        /// \[m\]
        radius: f64,
    },
    /// The convex hull of points.
    Hull {
        /// \[m\]
        points: Vec<DVec3>,
    },
    /// A closed triangle mesh, outward counter-clockwise. Contacts see its surface: what is wholly inside touches nothing.
    Mesh {
        /// \[m\]
        vertices: Vec<DVec3>,
        /// Corner indices.
        triangles: Vec<[u32; 3]>,
    },
}

/// Volume integrals of a solid of density 1.
#[derive(Clone, Copy, Debug)]
pub struct Solid {
    /// \[m³\]
    pub volume: f64,
    /// Centre of mass \[m\].
    pub centre: DVec3,
    /// Inertia about the centre for density 1 \[m⁵\].
    pub inertia: DMat3,
}

/// Why a shape has no volume integrals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeFault {
    /// A length is zero, negative or not finite.
    #[error("a length is zero, negative or not finite")]
    Size,
    /// The points of the hull lie in a plane, or there are fewer than four.
    #[error("the points of the hull lie in a plane, or there are fewer than four")]
    FlatHull,
    /// A triangle names a vertex that does not exist.
    #[error("a triangle names a vertex that does not exist")]
    Index,
    /// The mesh is open, inside out or flat.
    #[error("the mesh is open, inside out or flat")]
    OpenMesh,
}

impl Shape {
    /// A box with these edge lengths.
    pub fn cuboid(x: f64, y: f64, z: f64) -> Shape {
        Shape::Cuboid { size: DVec3::new(x, y, z) }
    }

    /// A sphere.
    pub fn sphere(radius: f64) -> Shape {
        Shape::Sphere { radius }
    }

    /// A capsule along X; `length` without the caps.
    pub fn capsule(length: f64, radius: f64) -> Shape {
        Shape::Capsule { length, radius }
    }

    /// A cylinder along X.
    pub fn cylinder(length: f64, radius: f64) -> Shape {
        Shape::Cylinder { length, radius }
    }

    /// Volume, centre and inertia for density 1.
    ///
    /// ```
    /// use supple::Shape;
    /// let solid = Shape::cuboid(1.0, 2.0, 3.0).solid().unwrap();
    /// assert_eq!(solid.volume, 6.0);
    /// assert!((solid.inertia.x_axis.x - 6.0 * (4.0 + 9.0) / 12.0).abs() < 1e-12);
    /// ```
    pub fn solid(&self) -> Result<Solid, ShapeFault> {
        use std::f64::consts::PI;
        let good = |lengths: &[f64]| lengths.iter().all(|l| l.is_finite() && *l > 0.0);
        let diagonal = |volume: f64, x: f64, y: f64, z: f64| Solid {
            volume,
            centre: DVec3::ZERO,
            inertia: DMat3::from_diagonal(DVec3::new(x, y, z)),
        };
        match self {
            Shape::Sphere { radius: r } => {
                if !good(&[*r]) {
                    return Err(ShapeFault::Size);
                }
                let v = 4.0 / 3.0 * PI * r.powi(3);
                let i = 0.4 * v * r * r;
                Ok(diagonal(v, i, i, i))
            }
            Shape::Cuboid { size: s } => {
                if !good(&s.to_array()) {
                    return Err(ShapeFault::Size);
                }
                let v = s.x * s.y * s.z;
                let q = *s * *s * (v / 12.0);
                Ok(diagonal(v, q.y + q.z, q.x + q.z, q.x + q.y))
            }
            Shape::Cylinder { length: l, radius: r } => {
                if !good(&[*l, *r]) {
                    return Err(ShapeFault::Size);
                }
                let v = PI * r * r * l;
                let across = v * (3.0 * r * r + l * l) / 12.0;
                Ok(diagonal(v, 0.5 * v * r * r, across, across))
            }
            Shape::Capsule { length: l, radius: r } => {
                if !good(&[*r]) || !l.is_finite() || *l < 0.0 {
                    return Err(ShapeFault::Size);
                }
                let tube = PI * r * r * l;
                let ball = 4.0 / 3.0 * PI * r.powi(3);
                // Each half ball: centre 3r/8 beyond the end of the segment.
                let along = 0.5 * tube * r * r + 0.4 * ball * r * r;
                let across = tube * (3.0 * r * r + l * l) / 12.0 + ball * (0.4 * r * r + 0.25 * l * l + 0.375 * l * r);
                Ok(diagonal(tube + ball, along, across, across))
            }
            Shape::Hull { points } => {
                let (vertices, triangles) = hull(points)?;
                mesh_solid(&vertices, &triangles).map_err(|_| ShapeFault::FlatHull)
            }
            Shape::Mesh { vertices, triangles } => mesh_solid(vertices, triangles),
        }
    }
}

/// The convex hull of points as a triangle mesh, outward counter-clockwise.
pub fn hull(points: &[DVec3]) -> Result<(Vec<DVec3>, Vec<[u32; 3]>), ShapeFault> {
    if points.iter().any(|p| !p.is_finite()) {
        return Err(ShapeFault::Size);
    }
    if points.len() < 4 {
        return Err(ShapeFault::FlatHull);
    }
    parry3d_f64::transformation::try_convex_hull(points).map_err(|_| ShapeFault::FlatHull)
}

/// Sums the tetrahedra between each triangle and a point inside, exactly.
fn mesh_solid(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Result<Solid, ShapeFault> {
    if vertices.is_empty() || triangles.is_empty() {
        return Err(ShapeFault::OpenMesh);
    }
    if vertices.iter().any(|v| !v.is_finite()) {
        return Err(ShapeFault::Size);
    }
    if triangles.iter().flatten().any(|&i| i as usize >= vertices.len()) {
        return Err(ShapeFault::Index);
    }
    // Closed: every directed edge has exactly one opposite.
    let mut edges: Vec<(u32, u32)> =
        triangles.iter().flat_map(|t| [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])]).collect();
    let mut opposite: Vec<(u32, u32)> = edges.iter().map(|&(i, k)| (k, i)).collect();
    edges.sort_unstable();
    opposite.sort_unstable();
    if edges != opposite || edges.windows(2).any(|w| w[0] == w[1]) {
        return Err(ShapeFault::OpenMesh);
    }
    // A reference point near the mesh keeps the digits when the mesh lies far from its origin.
    let origin = vertices.iter().sum::<DVec3>() / vertices.len() as f64;
    let mut volume = 0.0;
    let mut moment = DVec3::ZERO;
    let mut second = DMat3::ZERO; // ∫ p pᵀ
    for t in triangles {
        let [a, b, c] = t.map(|i| vertices[i as usize] - origin);
        let v = a.dot(b.cross(c)) / 6.0;
        let s = a + b + c;
        volume += v;
        moment += s * (v / 4.0);
        // ∫ p pᵀ over the tetrahedron (0, a, b, c) = v/20 (Σ p pᵀ + s sᵀ)
        second += (outer(a) + outer(b) + outer(c) + outer(s)) * (v / 20.0);
    }
    if !volume.is_finite() || volume <= 0.0 {
        return Err(ShapeFault::OpenMesh);
    }
    let centre = moment / volume;
    let second = second - outer(centre) * volume;
    let trace = second.x_axis.x + second.y_axis.y + second.z_axis.z;
    Ok(Solid { volume, centre: origin + centre, inertia: DMat3::from_diagonal(DVec3::splat(trace)) - second })
}

pub(super) fn outer(p: DVec3) -> DMat3 {
    DMat3::from_cols(p * p.x, p * p.y, p * p.z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: DMat3, b: DMat3, tolerance: f64) -> bool {
        (a - b).to_cols_array().iter().all(|x| x.abs() < tolerance)
    }

    #[test]
    fn a_box_as_hull_and_as_mesh_agrees_with_the_formula() {
        let shift = DVec3::new(5.0, -2.0, 1.0);
        let points: Vec<DVec3> = (0..8)
            .map(|i| {
                DVec3::new((i & 1) as f64 - 0.5, (i >> 1 & 1) as f64 * 2.0 - 1.0, (i >> 2) as f64 * 3.0 - 1.5) + shift
            })
            .collect();
        let formula = Shape::cuboid(1.0, 2.0, 3.0).solid().unwrap();
        let hull = Shape::Hull { points: points.clone() }.solid().unwrap();
        assert!((hull.volume - formula.volume).abs() < 1e-12);
        assert!((hull.centre - shift).length() < 1e-12);
        assert!(near(hull.inertia, formula.inertia, 1e-11));
        let (vertices, triangles) = super::hull(&points).unwrap();
        let mesh = Shape::Mesh { vertices, triangles }.solid().unwrap();
        assert!(near(mesh.inertia, formula.inertia, 1e-11));
    }

    #[test]
    fn a_capsule_agrees_with_its_mesh() {
        // A fine hull of a capsule along X, length 1, radius 0.3: 2 % by the chords of 48 segments is 0.3 %.
        let mut points = Vec::new();
        for i in 0..=24 {
            let polar = std::f64::consts::PI * i as f64 / 24.0;
            for k in 0..48 {
                let around = std::f64::consts::TAU * k as f64 / 48.0;
                let (s, c) = (0.3 * polar.sin(), 0.3 * polar.cos());
                let x = c + if i <= 12 { 0.5 } else { -0.5 };
                points.push(DVec3::new(x, s * around.cos(), s * around.sin()));
                if i == 12 {
                    points.push(DVec3::new(c - 0.5, s * around.cos(), s * around.sin()));
                }
            }
        }
        let fine = Shape::Hull { points }.solid().unwrap();
        let exact = Shape::capsule(1.0, 0.3).solid().unwrap();
        assert!((fine.volume / exact.volume - 1.0).abs() < 0.01);
        assert!((fine.inertia.y_axis.y / exact.inertia.y_axis.y - 1.0).abs() < 0.01);
        assert!((fine.inertia.x_axis.x / exact.inertia.x_axis.x - 1.0).abs() < 0.015);
    }

    #[test]
    fn faults_are_told() {
        assert_eq!(Shape::sphere(-1.0).solid().unwrap_err(), ShapeFault::Size);
        let flat = vec![DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::X + DVec3::Y];
        assert_eq!(Shape::Hull { points: flat }.solid().unwrap_err(), ShapeFault::FlatHull);
        let open = Shape::Mesh { vertices: vec![DVec3::ZERO, DVec3::X, DVec3::Y], triangles: vec![[0, 1, 2]] };
        assert_eq!(open.solid().unwrap_err(), ShapeFault::OpenMesh);
        let bad = Shape::Mesh { vertices: vec![DVec3::ZERO], triangles: vec![[0, 1, 2]] };
        assert_eq!(bad.solid().unwrap_err(), ShapeFault::Index);
    }
}
