//! Triangles in a hierarchy of boxes that is refitted as they move: the nearest one to a point, and which side of it the point is on.

use crate::contact::broad::{Bounds, BoxTree};
use glam::DVec3;

/// Where a point is to a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Near {
    /// Index of the triangle.
    pub(crate) triangle: u32,
    /// Shares of its corners in the nearest point.
    pub(crate) shares: DVec3,
    /// Unit vector out of the surface there.
    pub(crate) normal: DVec3,
    /// Distance to the nearest point; below 0 inside \[m\].
    pub(crate) gap: f64,
}

/// Triangles whose corners move.
#[derive(Debug, Default)]
pub(crate) struct Triangles {
    corners: Vec<[u32; 3]>,
    boxes: Vec<Bounds>,
    tree: BoxTree,
    /// Of faces and, by angle, of vertices.
    faces: Vec<DVec3>,
    vertices: Vec<DVec3>,
    places: Vec<DVec3>,
    built: bool,
}

impl Triangles {
    pub(crate) fn new(corners: &[[u32; 3]]) -> Triangles {
        let n = corners.len();
        Triangles {
            corners: corners.to_vec(),
            boxes: vec![Bounds::EMPTY; n],
            faces: vec![DVec3::ZERO; n],
            ..Triangles::default()
        }
    }

    /// Moves the vertices. The boxes of the hierarchy are made to fit; which triangles they hold stays as it was at first.
    pub(crate) fn refit(&mut self, places: &[DVec3]) {
        let Triangles { corners, boxes, tree, faces, vertices, places: kept, built } = self;
        kept.clear();
        kept.extend_from_slice(places);
        vertices.clear();
        vertices.resize(places.len(), DVec3::ZERO);
        for ((t, bounds), face) in corners.iter().zip(boxes.iter_mut()).zip(faces.iter_mut()) {
            let [a, b, c] = t.map(|i| places[i as usize]);
            *bounds = Bounds { min: a.min(b).min(c), max: a.max(b).max(c) };
            let cross = (b - a).cross(c - a);
            *face = cross.normalize_or_zero();
            // by area: near enough to angles for which side a point is on
            t.iter().for_each(|&i| vertices[i as usize] += cross);
        }
        vertices.iter_mut().for_each(|n| *n = n.normalize_or_zero());
        if *built {
            tree.refit(boxes);
        } else {
            tree.build(boxes);
            *built = true;
        }
    }

    /// How many they are.
    pub(crate) fn count(&self) -> usize {
        self.corners.len()
    }

    /// Outward unit normal of a vertex.
    pub(crate) fn vertex_normal(&self, v: usize) -> DVec3 {
        self.vertices[v]
    }

    /// Calls `each` with the triangles whose boxes overlap a box.
    pub(crate) fn near(&self, min: DVec3, max: DVec3, each: impl FnMut(u32)) {
        self.tree.overlapping(&Bounds { min, max }, each);
    }

    /// The nearest of the triangles that `wanted` lets through, no farther than `reach`.
    pub(crate) fn nearest(&self, p: DVec3, reach: f64, wanted: impl Fn(u32) -> bool) -> Option<Near> {
        let (mut best, mut least) = (None, reach * reach);
        let arm = DVec3::splat(reach);
        self.near(p - arm, p + arm, |t| {
            let [a, b, c] = self.corners[t as usize].map(|i| self.places[i as usize]);
            let shares = nearest_on(p, a, b, c);
            let away = p - (a * shares.x + b * shares.y + c * shares.z);
            let size = away.length_squared();
            // of equals the first by number, whatever the order of boxes
            let first = best.is_none_or(|(before, _, _): (u32, DVec3, DVec3)| size < least || t < before);
            if size <= least && first && wanted(t) {
                (best, least) = (Some((t, shares, away)), size);
            }
        });
        let (triangle, shares, away) = best?;
        let face = self.faces[triangle as usize];
        // On an edge or a corner the normals around it tell the side.
        let corners = self.corners[triangle as usize];
        let blend: DVec3 = (0..3).map(|k| self.vertices[corners[k] as usize] * shares[k]).sum();
        let outward = if shares.min_element() > 1e-9 { face } else { blend };
        let distance = least.sqrt();
        let sign = if away.dot(outward) >= 0.0 { 1.0 } else { -1.0 };
        let normal = if distance > 1e-9 { away * (sign / distance) } else { blend.try_normalize().unwrap_or(face) };
        Some(Near { triangle, shares, normal, gap: sign * distance })
    }
}

/// The shares of the corners in the point of a triangle nearest to p [Ericson 2005, §5.1.5].
pub(super) fn nearest_on(p: DVec3, a: DVec3, b: DVec3, c: DVec3) -> DVec3 {
    let (ab, ac, ap) = (b - a, c - a, p - a);
    let (d1, d2) = (ab.dot(ap), ac.dot(ap));
    if d1 <= 0.0 && d2 <= 0.0 {
        return DVec3::X;
    }
    let bp = p - b;
    let (d3, d4) = (ab.dot(bp), ac.dot(bp));
    if d3 >= 0.0 && d4 <= d3 {
        return DVec3::Y;
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        let t = d1 / (d1 - d3);
        return DVec3::new(1.0 - t, t, 0.0);
    }
    let cp = p - c;
    let (d5, d6) = (ab.dot(cp), ac.dot(cp));
    if d6 >= 0.0 && d5 <= d6 {
        return DVec3::Z;
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        let t = d2 / (d2 - d6);
        return DVec3::new(1.0 - t, 0.0, t);
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0 {
        let t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return DVec3::new(0.0, 1.0 - t, t);
    }
    let sum = va + vb + vc;
    if sum > 0.0 { DVec3::new(va, vb, vc) / sum } else { DVec3::X }
}
