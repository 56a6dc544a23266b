//! Convex shapes: their farthest point in a direction, and the face or edge that looks there.
//!
//! A shape is a core (point, segment, box, cylinder, polytope, triangle) thickened by a radius: a sphere is a point, a capsule a
//! segment. Directions and distances are found between cores, which have no curved parts but the cylinder's.

use super::polytope::Polytope;
use glam::{DMat3, DVec3};

/// A convex core about its own origin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Convex<'m> {
    Point,
    /// Along X.
    Segment {
        half: f64,
    },
    Box {
        half: DVec3,
    },
    /// Along X.
    Cylinder {
        half: f64,
        radius: f64,
    },
    Polytope(&'m Polytope),
    Triangle([DVec3; 3]),
}

/// A core at a place, world axes, seen from an origin near by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'m> {
    pub(crate) core: Convex<'m>,
    pub(crate) axes: DMat3,
    pub(crate) at: DVec3,
    /// Farthest core point from the core's origin \[m\].
    pub(crate) size: f64,
}

/// Rim points of a cylinder's cap when it is clipped against.
const RIM: usize = 16;
/// Corners of a patch; a face with more is thinned out.
pub(crate) const MOST_CORNERS: usize = 24;

/// The part of a surface that looks in some direction: a point, an edge, or a face with its corners counter-clockwise from outside.
#[derive(Clone, Copy)]
pub(crate) struct Patch {
    pub(crate) corners: [(DVec3, u32); MOST_CORNERS],
    pub(crate) count: usize,
    /// Of a face, outward.
    pub(crate) normal: Option<DVec3>,
}

impl Patch {
    fn new(normal: Option<DVec3>) -> Patch {
        Patch { corners: [(DVec3::ZERO, 0); MOST_CORNERS], count: 0, normal }
    }

    pub(crate) fn push(&mut self, point: DVec3, id: u32) {
        if self.count < MOST_CORNERS {
            self.corners[self.count] = (point, id);
            self.count += 1;
        }
    }

    pub(crate) fn corners(&self) -> &[(DVec3, u32)] {
        &self.corners[..self.count]
    }
}

impl<'m> Placed<'m> {
    fn out(&self, local: DVec3) -> DVec3 {
        self.at + self.axes * local
    }

    fn local(&self, direction: DVec3) -> DVec3 {
        // Axes are orthonormal: the inverse is the transpose.
        DVec3::new(self.axes.x_axis.dot(direction), self.axes.y_axis.dot(direction), self.axes.z_axis.dot(direction))
    }

    /// A point inside.
    pub(crate) fn middle(&self) -> DVec3 {
        match self.core {
            Convex::Triangle([a, b, c]) => self.out((a + b + c) / 3.0),
            _ => self.at,
        }
    }

    /// The farthest point along `direction` and its id.
    pub(crate) fn support(&self, direction: DVec3) -> (DVec3, u32) {
        let d = self.local(direction);
        let (point, id) = match self.core {
            Convex::Point => (DVec3::ZERO, 0),
            Convex::Segment { half } => (DVec3::X * sign(d.x, half), u32::from(d.x >= 0.0)),
            Convex::Box { half } => corner(half, d),
            Convex::Cylinder { half, radius } => {
                let across = d.y.hypot(d.z);
                // Straight along the axis any rim point will do: take the same one always.
                let (y, z) = if across > 1e-14 { (d.y / across, d.z / across) } else { (1.0, 0.0) };
                (DVec3::new(sign(d.x, half), radius * y, radius * z), 64 + u32::from(d.x >= 0.0))
            }
            Convex::Polytope(p) => p.support(d),
            Convex::Triangle(corners) => {
                let s = corners.map(|c| c.dot(d));
                let k = if s[0] >= s[1] && s[0] >= s[2] { 0 } else { 1 + usize::from(s[2] > s[1]) };
                (corners[k], k as u32)
            }
        };
        (self.out(point), id)
    }

    /// The face, or else edge or point, that looks along `direction`.
    pub(crate) fn patch(&self, direction: DVec3) -> Patch {
        let d = self.local(direction);
        match self.core {
            Convex::Point => {
                let mut patch = Patch::new(None);
                patch.push(self.at, 0);
                patch
            }
            Convex::Segment { half } => {
                let mut patch = Patch::new(None);
                patch.push(self.out(DVec3::X * -half), 0);
                patch.push(self.out(DVec3::X * half), 1);
                patch
            }
            Convex::Box { half } => {
                let k = d.abs().max_position();
                let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                let side = sign(d[k], 1.0);
                let mut patch = Patch::new(Some(self.axes.col(k) * side));
                // Counter-clockwise about +k for the upper side, the other way round for the lower.
                for (u, v) in [(-1.0, -1.0), (side, -side), (1.0, 1.0), (-side, side)] {
                    let mut c = DVec3::ZERO;
                    (c[k], c[i], c[j]) = (side, u, v);
                    let (point, id) = corner(half, c);
                    patch.push(self.out(point), id);
                }
                patch
            }
            Convex::Cylinder { half, radius } => {
                let side = sign(d.x, 1.0);
                let cap = u32::from(d.x >= 0.0);
                let across = d.y.hypot(d.z);
                if d.x.abs() > across {
                    let mut patch = Patch::new(Some(self.axes.x_axis * side));
                    for k in 0..RIM {
                        let angle = side * std::f64::consts::TAU * k as f64 / RIM as f64;
                        let point = DVec3::new(side * half, radius * angle.cos(), radius * angle.sin());
                        patch.push(self.out(point), cap * RIM as u32 + k as u32);
                    }
                    patch
                } else {
                    let (y, z) = (radius * d.y / across, radius * d.z / across);
                    let mut patch = Patch::new(None);
                    patch.push(self.out(DVec3::new(-half, y, z)), 64);
                    patch.push(self.out(DVec3::new(half, y, z)), 65);
                    patch
                }
            }
            Convex::Polytope(p) => {
                let (normal, corners) = p.face(d);
                let mut patch = Patch::new(Some(self.axes * normal));
                let every = corners.len().div_ceil(MOST_CORNERS);
                for &id in corners.iter().step_by(every) {
                    patch.push(self.out(p.vertices[id as usize]), id);
                }
                patch
            }
            Convex::Triangle(corners) => {
                let normal = triangle_normal(corners).unwrap_or(DVec3::Y);
                let order = if normal.dot(d) >= 0.0 { [0, 1, 2] } else { [0, 2, 1] };
                let mut patch = Patch::new(Some(self.axes * (normal * sign(normal.dot(d), 1.0))));
                for k in order {
                    patch.push(self.out(corners[k]), k as u32);
                }
                patch
            }
        }
    }

    /// The edge that looks along `direction`: of those at the farthest point the one most square to it.
    pub(crate) fn edge(&self, direction: DVec3) -> Option<[(DVec3, u32); 2]> {
        let d = self.local(direction);
        let ends = match self.core {
            Convex::Point => return None,
            Convex::Segment { half } => [(DVec3::X * -half, 0), (DVec3::X * half, 1)],
            Convex::Box { half } => {
                let k = d.abs().min_position();
                let (mut low, mut high) = (d, d);
                (low[k], high[k]) = (-1.0, 1.0);
                [corner(half, low), corner(half, high)]
            }
            Convex::Cylinder { half, radius } => {
                let across = d.y.hypot(d.z);
                if across < 1e-3 {
                    return None;
                }
                let (y, z) = (radius * d.y / across, radius * d.z / across);
                [(DVec3::new(-half, y, z), 64), (DVec3::new(half, y, z), 65)]
            }
            Convex::Polytope(p) => p.edge(d),
            Convex::Triangle(c) => {
                let k = self.support(direction).1 as usize;
                let slope = |i: usize| (d.dot(c[i] - c[k]) / c[i].distance(c[k]).max(1e-300)).abs();
                let i = if slope((k + 1) % 3) <= slope((k + 2) % 3) { (k + 1) % 3 } else { (k + 2) % 3 };
                let (low, high) = (k.min(i), k.max(i));
                [(c[low], low as u32), (c[high], high as u32)]
            }
        };
        Some(ends.map(|(p, id)| (self.out(p), id)))
    }

    /// Directions that may be the shortest way apart, near `direction`: normals of faces, and across a cylinder.
    pub(crate) fn natural_normals(&self, direction: DVec3) -> [Option<DVec3>; 2] {
        match self.core {
            Convex::Point | Convex::Segment { .. } => [None, None],
            Convex::Cylinder { .. } => {
                let axis = self.axes.x_axis;
                let along = direction.dot(axis);
                [Some(axis * sign(along, 1.0)), (direction - axis * along).try_normalize()]
            }
            _ => [self.patch(direction).normal, None],
        }
    }
}

fn sign(x: f64, size: f64) -> f64 {
    if x >= 0.0 { size } else { -size }
}

/// The corner of a box on the side of `d`, and its id.
fn corner(half: DVec3, d: DVec3) -> (DVec3, u32) {
    let point = DVec3::new(sign(d.x, half.x), sign(d.y, half.y), sign(d.z, half.z));
    (point, u32::from(d.x >= 0.0) | u32::from(d.y >= 0.0) << 1 | u32::from(d.z >= 0.0) << 2)
}

/// Unit normal of a triangle, counter-clockwise; `None` when it has no area to speak of.
pub(crate) fn triangle_normal([a, b, c]: [DVec3; 3]) -> Option<DVec3> {
    let (u, v) = (b - a, c - a);
    let n = u.cross(v);
    let longest = u.length_squared().max(v.length_squared()).max((c - b).length_squared());
    // Height below 1e-7 of the longest edge: its direction is rounding.
    (n.length() > 1e-7 * longest).then(|| n.normalize())
}
