//! Triangle meshes and height fields as surfaces: which triangles are near, and which normals they may push with.
//!
//! A flat floor of many triangles must act like one face. Taken alone, a triangle pushes sideways what lies beyond its edge; but an edge
//! between two triangles in one plane is no edge. So a normal n at an edge or vertex is taken only when the surface there is
//! extreme along n: no neighbouring vertex u may lie above, `n·(u − p) ≤ 0`. Otherwise the triangle pushes along its own normal, and only
//! what is straight above it.

use super::broad::{Bounds, BoxTree};
use super::convex::triangle_normal;
use super::polytope::Polytope;
use glam::DVec3;

/// A triangle mesh.
#[derive(Debug)]
pub(super) struct Surface {
    vertices: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    /// By triangle; 0 when it has no area.
    normals: Vec<DVec3>,
    /// By triangle and edge (corner k to k + 1): the vertex of the triangle beyond, or `NONE`.
    beyond: Vec<[u32; 3]>,
    /// By vertex: where its neighbours start; one more at the end.
    first_neighbour: Vec<u32>,
    neighbours: Vec<u32>,
    tree: BoxTree,
    pub(super) bounds: Bounds,
    /// Its convex hull, which is all that a half-space touches; only of bodies' meshes.
    pub(super) hull: Option<Polytope>,
    pub(super) back: Back,
}

/// What is behind a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// The inside of a solid: what is there is pushed out.
    Solid,
    /// Nothing: what comes from there passes through.
    Open,
}

const NONE: u32 = u32::MAX;
/// Slope up to which a neighbour counts as not above: ten times the error of a direction.
const LEVEL: f64 = 1e-5;

impl Surface {
    pub(super) fn new(points: &[DVec3], given: &[[u32; 3]], back: Back) -> Surface {
        // Vertices at the same place become one: many files give each triangle its own.
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        let coordinates = |k: u32| points[k as usize].to_array().map(|x| x + 0.0); // −0 is 0
        order.sort_by(|&i, &k| {
            let (p, q) = (coordinates(i), coordinates(k));
            (0..3).map(|c| p[c].total_cmp(&q[c])).find(|o| o.is_ne()).unwrap_or(i.cmp(&k))
        });
        let mut new = vec![0u32; points.len()];
        let mut vertices: Vec<DVec3> = Vec::new();
        for (at, &k) in order.iter().enumerate() {
            if at == 0 || coordinates(order[at - 1]) != coordinates(k) {
                vertices.push(points[k as usize]);
            }
            new[k as usize] = vertices.len() as u32 - 1;
        }
        let triangles: Vec<[u32; 3]> = given.iter().map(|t| t.map(|k| new[k as usize])).collect();
        let corners = |t: &[u32; 3]| t.map(|k| vertices[k as usize]);
        let normals: Vec<DVec3> =
            triangles.iter().map(|t| triangle_normal(corners(t)).unwrap_or(DVec3::ZERO)).collect();

        let mut edges: Vec<(u32, u32, u32)> = Vec::with_capacity(3 * triangles.len());
        for (t, normal) in triangles.iter().zip(&normals) {
            if *normal != DVec3::ZERO {
                edges.extend((0..3).map(|k| (t[k], t[(k + 1) % 3], t[(k + 2) % 3])));
            }
        }
        edges.sort_unstable();
        let across = |a: u32, b: u32| {
            let k = edges.partition_point(|e| (e.0, e.1) < (a, b));
            edges.get(k).filter(|e| (e.0, e.1) == (a, b)).map_or(NONE, |e| e.2)
        };
        let beyond = triangles.iter().map(|t| [0, 1, 2].map(|k| across(t[(k + 1) % 3], t[k]))).collect();
        let mut pairs: Vec<(u32, u32)> = edges.iter().flat_map(|e| [(e.0, e.1), (e.1, e.0)]).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut first_neighbour = vec![0u32; vertices.len() + 1];
        for &(a, _) in &pairs {
            first_neighbour[a as usize + 1] += 1;
        }
        for k in 0..vertices.len() {
            first_neighbour[k + 1] += first_neighbour[k];
        }
        let boxes: Vec<Bounds> = triangles.iter().map(|t| Bounds::of(corners(t))).collect();
        let mut tree = BoxTree::default();
        tree.build(&boxes);
        let bounds = Bounds::of(triangles.iter().flat_map(corners));
        let neighbours = pairs.into_iter().map(|(_, b)| b).collect();
        Surface { vertices, triangles, normals, beyond, first_neighbour, neighbours, tree, bounds, hull: None, back }
    }

    /// With its convex hull.
    pub(super) fn with_hull(mut self) -> Surface {
        self.hull = Polytope::new(&self.vertices);
        self
    }

    /// Calls `each` with every triangle with an area whose box overlaps `bounds`.
    pub(super) fn near(&self, bounds: &Bounds, mut each: impl FnMut(u32)) {
        self.tree.overlapping(bounds, |t| {
            if self.normals[t as usize] != DVec3::ZERO {
                each(t);
            }
        });
    }

    pub(super) fn corners(&self, triangle: u32) -> [DVec3; 3] {
        self.triangles[triangle as usize].map(|k| self.vertices[k as usize])
    }

    pub(super) fn normal(&self, triangle: u32) -> DVec3 {
        self.normals[triangle as usize]
    }

    /// Whether the surface may push along `n`, which is not the triangle's normal, at a point of its border.
    pub(super) fn pushes_along(&self, triangle: u32, point: DVec3, n: DVec3) -> bool {
        let t = self.triangles[triangle as usize];
        let c = self.corners(triangle);
        let level = |k: u32, from: DVec3| {
            let u = self.vertices[k as usize] - from;
            n.dot(u) <= LEVEL * u.length()
        };
        let longest = (0..3).map(|k| c[k].distance(c[(k + 1) % 3])).fold(0.0, f64::max);
        // Points of curved shapes are known to half the digits of a distance.
        if let Some(k) = (0..3).find(|&k| c[k].distance(point) <= 1e-4 * longest) {
            let (i, j) = (self.first_neighbour[t[k] as usize], self.first_neighbour[t[k] as usize + 1]);
            return self.neighbours[i as usize..j as usize].iter().all(|&u| level(u, c[k]));
        }
        // Else the nearest edge: square to n, and nothing above on either side.
        let inside = |k: usize| {
            let inward = self.normals[triangle as usize].cross(c[(k + 1) % 3] - c[k]).normalize_or_zero();
            inward.dot(point - c[k])
        };
        let k = (1..3).fold(0, |best, k| if inside(k) < inside(best) { k } else { best });
        let beyond = self.beyond[triangle as usize][k];
        level(t[(k + 1) % 3], c[k])
            && level(t[k], c[(k + 1) % 3])
            && level(t[(k + 2) % 3], c[k])
            && (beyond == NONE || level(beyond, c[k]))
    }
}
