//! Shapes fitted to the vertices that a bone carries, and the volume that it carries.

use crate::gltf::SkinnedMesh;
use glam::{DMat3, DQuat, DVec3};
use supple::maths::{rotation, singular};
use supple::model::shape;
use supple::{Pose, Shape};

/// A shape in world coordinates at rest.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) shape: Shape,
    /// Its frame; X along a capsule.
    pub(crate) place: Pose,
    /// \[m³\]
    pub(crate) volume: f64,
}

impl Fitted {
    /// The height of its lowest point \[m\].
    pub(crate) fn lowest(&self) -> f64 {
        lowest(&self.shape, &self.place)
    }
}

/// The height of the lowest point of a shape at a place \[m\].
pub(crate) fn lowest(shape: &Shape, place: &Pose) -> f64 {
    let height = |p: DVec3| place.transform_point(p).y;
    match shape {
        Shape::Sphere { radius } => place.translation.y - radius,
        Shape::Capsule { length, radius } => {
            let end = DVec3::X * (0.5 * length);
            height(end).min(height(-end)) - radius
        }
        Shape::Cuboid { size } => {
            let down = place.rotation.conjugate() * DVec3::Y;
            place.translation.y - 0.5 * (down.abs() * *size).element_sum()
        }
        Shape::Cylinder { length, radius } => {
            let axis = place.rotation * DVec3::X;
            place.translation.y - 0.5 * length * axis.y.abs() - radius * (1.0 - axis.y * axis.y).max(0.0).sqrt()
        }
        Shape::Hull { points } | Shape::Mesh { vertices: points, .. } => {
            points.iter().map(|p| height(*p)).fold(f64::INFINITY, f64::min)
        }
    }
}

/// A hull has at most this many corners.
const HULL_CORNERS: usize = 26;
/// A part whose cross-section is longer than wide by more than this is a hull, not a capsule.
const ROUND: f64 = 1.7;

/// The shape around these points: a capsule along `along` or along their longest extent, whichever is nearer to them; a hull where no capsule
/// is near. `smallest` is the least radius \[m\].
pub(crate) fn fit(points: &[DVec3], along: Option<DVec3>, smallest: f64) -> Fitted {
    let (centre, axes, spread) = principal(points);
    let capsules = along.into_iter().chain([axes.x_axis]).filter_map(|axis| capsule(points, axis, smallest));
    let best = capsules.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, fitted)| fitted);
    // Spread across the longest extent: a round part has the same both ways.
    let flat = spread.y > ROUND * spread.z.max(1e-9);
    let hull = if flat || best.is_none() { hull(points, centre, axes) } else { None };
    if let Some(hull) = hull {
        return hull;
    }
    best.unwrap_or_else(|| {
        let shape = Shape::sphere(smallest);
        let volume = shape.solid().map_or(0.0, |s| s.volume);
        Fitted { shape, place: Pose::at(centre), volume }
    })
}

/// Half of the extent of points across the direction in which they are thinnest \[m\].
pub(crate) fn thinnest(points: &[DVec3]) -> f64 {
    let (centre, axes, _) = principal(points);
    let mut across: Vec<f64> = points.iter().map(|p| (*p - centre).dot(axes.z_axis).abs()).collect();
    across.sort_by(f64::total_cmp);
    across.get(across.len() / 2).copied().unwrap_or(0.0)
}

/// Centre, principal axes (longest first) and spreads (standard deviations) of points.
fn principal(points: &[DVec3]) -> (DVec3, DMat3, DVec3) {
    let n = points.len().max(1) as f64;
    let centre = points.iter().sum::<DVec3>() / n;
    let mut m = DMat3::ZERO;
    for p in points {
        let d = *p - centre;
        m += DMat3::from_cols(d * d.x, d * d.y, d * d.z);
    }
    let (values, vectors) = eigen(m * (1.0 / n));
    (centre, vectors, DVec3::new(values.x.max(0.0).sqrt(), values.y.max(0.0).sqrt(), values.z.max(0.0).sqrt()))
}

/// Eigenvalues, largest first, and eigenvectors of a symmetric matrix, as the columns of a rotation.
pub(crate) fn eigen(m: DMat3) -> (DVec3, DMat3) {
    let (values, axes) = singular::eigen(m);
    let mut order = [0, 1, 2];
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let (x, y) = (axes.col(order[0]), axes.col(order[1]));
    (DVec3::from_array(order.map(|k| values[k])), DMat3::from_cols(x, y, x.cross(y)))
}

/// A capsule along an axis: its radius is the middle one of the points' distances from the axis through their middle, so that as much
/// of the surface lies within as without; its ends are those of the points. With it the mean square of the points' distances from its
/// surface \[m²\].
fn capsule(points: &[DVec3], axis: DVec3, smallest: f64) -> Option<(f64, Fitted)> {
    let axis = axis.try_normalize()?;
    let n = points.len();
    if n < 4 {
        return None;
    }
    let centre = points.iter().sum::<DVec3>() / n as f64;
    let mut across: Vec<f64> = points.iter().map(|p| (*p - centre).reject_from_normalized(axis).length()).collect();
    let mut along: Vec<f64> = points.iter().map(|p| (*p - centre).dot(axis)).collect();
    across.sort_by(f64::total_cmp);
    along.sort_by(f64::total_cmp);
    let at = |list: &[f64], part: f64| list[((n - 1) as f64 * part).round() as usize];
    let radius = at(&across, 0.5).max(smallest);
    let (low, high) = (at(&along, 0.02), at(&along, 0.98));
    let length = (high - low - 2.0 * radius).max(0.0);
    let middle = centre + axis * (0.5 * (low + high));
    let shape = Shape::capsule(length, radius);
    let volume = shape.solid().ok()?.volume;
    let off = |p: &DVec3| {
        let along = (*p - middle).dot(axis).clamp(-0.5 * length, 0.5 * length);
        (p.distance(middle + axis * along) - radius).powi(2)
    };
    let error = points.iter().map(off).sum::<f64>() / n as f64;
    Some((error, Fitted { shape, place: Pose::new(rotation::between(DVec3::X, axis), middle), volume }))
}

/// The hull of points that a round shape was fitted to, for large parts: flesh lies on what it flattens and a mesh on its facets, while a ball or a capsule rolls
/// on for ever. `None` where the shape is not round, or the points enclose too little.
pub(crate) fn facets(shape: &Shape, points: &[DVec3]) -> Option<Fitted> {
    let round = matches!(shape, Shape::Sphere { .. } | Shape::Capsule { .. });
    let (centre, axes, _) = principal(points);
    round.then(|| hull(points, centre, axes)).flatten()
}

/// The points that lie furthest in a fixed set of directions along and between these axes.
pub(crate) fn outermost(points: &[DVec3], axes: DMat3) -> Vec<DVec3> {
    let mut corners: Vec<DVec3> = Vec::with_capacity(HULL_CORNERS);
    for i in -1..=1i32 {
        for j in -1..=1i32 {
            for k in -1..=1i32 {
                let direction = axes * DVec3::new(i.into(), j.into(), k.into());
                let furthest = points.iter().max_by(|a, b| a.dot(direction).total_cmp(&b.dot(direction)));
                if let Some(furthest) = furthest
                    && (i, j, k) != (0, 0, 0)
                    && !corners.contains(furthest)
                {
                    corners.push(*furthest);
                }
            }
        }
    }
    corners
}

/// The hull of the points that lie furthest in a fixed set of directions.
fn hull(points: &[DVec3], centre: DVec3, axes: DMat3) -> Option<Fitted> {
    let corners = outermost(points, axes);
    let place = Pose::new(DQuat::from_mat3(&axes).normalize(), centre);
    let inward = place.inverse();
    let local: Vec<DVec3> = corners.iter().map(|p| inward.transform_point(*p)).collect();
    let (vertices, _) = shape::hull(&local).ok()?;
    let shape = Shape::Hull { points: vertices };
    let solid = shape.solid().ok()?;
    // A sheet has no volume to speak of: a capsule will do.
    let size = points.iter().map(|p| (*p - centre).length()).fold(0.0, f64::max);
    (solid.volume > 1e-4 * size.powi(3)).then_some(Fitted { shape, place, volume: solid.volume })
}

/// A vertex belongs to every bone that has more than this part of it, so that parts reach into each other at joints.
const MUCH: f64 = 0.4;

/// What a bone carries of the meshes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// Vertices that hang on it by much or most of their weight, in the world at rest.
    pub(crate) points: Vec<DVec3>,
    /// \[m³\], before the sum is made that of the mesh.
    pub(crate) volume: f64,
}

/// What each bone carries of the meshes that are `of_body`, `bone_of` giving the bone that a node's vertices belong to; and the volume that they enclose
/// together, if they enclose one.
pub(crate) fn shares(
    meshes: &[SkinnedMesh],
    of_body: &[bool],
    bones: usize,
    bone_of: impl Fn(usize) -> Option<usize>,
) -> (Vec<Share>, Option<f64>) {
    let mut shares = vec![Share::default(); bones];
    let meshes = || meshes.iter().zip(of_body).filter(|(_, of_body)| **of_body).map(|(mesh, _)| mesh);
    for mesh in meshes() {
        for (v, point) in mesh.vertices.iter().enumerate() {
            let mut last = None;
            for (k, influence) in mesh.influences(v).iter().enumerate() {
                let Some(bone) = bone_of(influence.node).filter(|_| k == 0 || influence.weight > MUCH) else {
                    continue;
                };
                if last != Some(bone) {
                    shares[bone].points.push(*point);
                    last = Some(bone);
                }
            }
        }
    }
    let centres: Vec<DVec3> =
        shares.iter().map(|s| s.points.iter().sum::<DVec3>() / s.points.len().max(1) as f64).collect();
    let (mut total, mut area, mut closure) = (0.0, 0.0, DVec3::ZERO);
    let origin = meshes().find_map(|m| m.vertices.first()).copied().unwrap_or_default();
    for mesh in meshes() {
        for t in &mesh.triangles {
            let [a, b, c] = t.map(|i| mesh.vertices[i as usize]);
            // Divergence theorem: V = Σ a·(b × c)/6, each bone's part about its own centre.
            let part = |o: DVec3| (a - o).dot((b - o).cross(c - o)) / 6.0;
            let normal = (b - a).cross(c - a) * 0.5;
            (area, closure, total) = (area + normal.length(), closure + normal, total + part(origin));
            for i in t {
                for influence in mesh.influences(*i as usize) {
                    if let Some(bone) = bone_of(influence.node) {
                        shares[bone].volume += part(centres[bone]) * influence.weight / 3.0;
                    }
                }
            }
        }
    }
    // The vector areas of a closed surface sum up to zero; small openings (neck of a shirt, soles) are let pass.
    let closed = area > 0.0 && closure.length() < 0.02 * area && total > 0.0;
    (shares, closed.then_some(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on a cylinder of radius 0.1 m along `axis` with rounded ends, total length 1 m.
    fn tube(axis: DVec3) -> Vec<DVec3> {
        let turn = rotation::between(DVec3::X, axis.normalize());
        let mut points = Vec::new();
        for i in 0..=40 {
            let x = i as f64 / 40.0;
            let r: f64 = if x < 0.1 {
                (0.01 - (0.1 - x).powi(2)).max(0.0).sqrt()
            } else if x > 0.9 {
                (0.01 - (x - 0.9).powi(2)).max(0.0).sqrt()
            } else {
                0.1
            };
            for k in 0..16 {
                let a = std::f64::consts::TAU * k as f64 / 16.0;
                points.push(turn * DVec3::new(x, r * a.cos(), r * a.sin()) + DVec3::new(3.0, -2.0, 1.0));
            }
        }
        points
    }

    #[test]
    fn a_tube_is_a_capsule_of_its_size() {
        for axis in [DVec3::X, DVec3::new(1.0, 2.0, -0.5)] {
            let fitted = fit(&tube(axis), Some(axis + DVec3::new(0.3, 0.0, 0.2)), 1e-3);
            let Shape::Capsule { length, radius } = fitted.shape else { panic!("{:?}", fitted.shape) };
            // Half the points lie on the full radius; 2 % of the points are let out at each end.
            assert!((radius - 0.1).abs() < 1e-9 && (length - 0.8).abs() < 0.06, "{length} {radius}");
            assert!((fitted.place.rotation * DVec3::X).cross(axis.normalize()).length() < 1e-6);
        }
    }

    #[test]
    fn a_board_is_a_hull() {
        let mut points = Vec::new();
        for i in 0..20 {
            for k in 0..10 {
                for side in [-0.02, 0.02] {
                    points.push(DVec3::new(0.02 * i as f64, 0.02 * k as f64, side));
                }
            }
        }
        let fitted = fit(&points, Some(DVec3::X), 1e-3);
        assert!(matches!(fitted.shape, Shape::Hull { .. }));
        assert!((fitted.volume - 0.38 * 0.18 * 0.04).abs() < 1e-9);
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let m = DMat3::from_cols(DVec3::new(2.0, -1.0, 0.3), DVec3::new(-1.0, 1.5, 0.7), DVec3::new(0.3, 0.7, 3.0));
        let (values, vectors) = eigen(m);
        let back = vectors * DMat3::from_diagonal(values) * vectors.transpose();
        assert!((back - m).to_cols_array().iter().all(|x| x.abs() < 1e-12));
        assert!(values.x >= values.y && values.y >= values.z);
    }
}
