//! Convex polytopes: vertices, faces with any number of corners, neighbours.

use crate::model::shape;
use glam::DVec3;

/// The convex hull of points.
#[derive(Debug)]
pub(crate) struct Polytope {
    pub(crate) vertices: Vec<DVec3>,
    faces: Vec<Face>,
    /// Corners of all faces, one face after the other.
    corners: Vec<u32>,
    /// By vertex: where its neighbours start in `neighbours`; one more at the end.
    first_neighbour: Vec<u32>,
    neighbours: Vec<u32>,
}

#[derive(Debug)]
struct Face {
    normal: DVec3,
    start: u32,
    count: u32,
}

/// Fewer vertices than this are looked through; more are climbed.
const SCAN: usize = 24;

impl Polytope {
    /// The hull, or `None` when the points lie in a plane.
    pub(crate) fn new(points: &[DVec3]) -> Option<Polytope> {
        let (vertices, triangles) = shape::hull(points).ok()?;
        let (faces, corners) = faces(&vertices, &triangles);
        let mut pairs: Vec<(u32, u32)> =
            triangles.iter().flat_map(|t| [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])]).collect();
        pairs.extend(pairs.clone().iter().map(|&(a, b)| (b, a)));
        pairs.sort_unstable();
        pairs.dedup();
        let mut first_neighbour = vec![0u32; vertices.len() + 1];
        for &(a, _) in &pairs {
            first_neighbour[a as usize + 1] += 1;
        }
        for k in 0..vertices.len() {
            first_neighbour[k + 1] += first_neighbour[k];
        }
        let neighbours = pairs.into_iter().map(|(_, b)| b).collect();
        Some(Polytope { vertices, faces, corners, first_neighbour, neighbours })
    }

    /// The same, moved.
    pub(crate) fn moved(mut self, by: DVec3) -> Polytope {
        self.vertices.iter_mut().for_each(|v| *v += by);
        self
    }

    /// The planes of its faces: outward normal, and height along it.
    pub(super) fn planes(&self) -> impl Iterator<Item = (DVec3, f64)> {
        self.faces.iter().map(|face| {
            let corner = self.vertices[self.corners[face.start as usize] as usize];
            (face.normal, face.normal.dot(corner))
        })
    }

    fn around(&self, vertex: u32) -> &[u32] {
        let (i, k) = (self.first_neighbour[vertex as usize], self.first_neighbour[vertex as usize + 1]);
        &self.neighbours[i as usize..k as usize]
    }

    /// The farthest vertex along `d`.
    pub(crate) fn support(&self, d: DVec3) -> (DVec3, u32) {
        let height = |k: u32| self.vertices[k as usize].dot(d);
        let higher = |(best, most): (u32, f64), k: u32| if height(k) > most { (k, height(k)) } else { (best, most) };
        let mut top = (0, height(0));
        if self.vertices.len() <= SCAN {
            top = (1..self.vertices.len() as u32).fold(top, higher);
        } else {
            // On a convex body a vertex that no neighbour exceeds is the farthest.
            loop {
                let next = self.around(top.0).iter().copied().fold(top, higher);
                if next.0 == top.0 {
                    break;
                }
                top = next;
            }
        }
        (self.vertices[top.0 as usize], top.0)
    }

    /// The face that looks most along `d` of those at the farthest vertex: its normal and corners.
    pub(crate) fn face(&self, d: DVec3) -> (DVec3, &[u32]) {
        let top = self.support(d).1;
        let corners = |f: &Face| &self.corners[f.start as usize..(f.start + f.count) as usize];
        let mut best = (f64::NEG_INFINITY, &self.faces[0]);
        for face in &self.faces {
            let s = face.normal.dot(d);
            if s > best.0 && corners(face).contains(&top) {
                best = (s, face);
            }
        }
        (best.1.normal, corners(best.1))
    }

    /// The edge at the farthest vertex along `d` that is most square to `d`.
    pub(crate) fn edge(&self, d: DVec3) -> [(DVec3, u32); 2] {
        let (top, k) = self.support(d);
        let mut best = (f64::INFINITY, k);
        for &i in self.around(k) {
            let along = self.vertices[i as usize] - top;
            let slope = (d.dot(along) / along.length().max(1e-300)).abs();
            if slope < best.0 {
                best = (slope, i);
            }
        }
        let (low, high) = (k.min(best.1), k.max(best.1));
        [low, high].map(|i| (self.vertices[i as usize], i))
    }
}

/// Joins the triangles of a hull that lie in one plane.
fn faces(vertices: &[DVec3], triangles: &[[u32; 3]]) -> (Vec<Face>, Vec<u32>) {
    let area: Vec<DVec3> = triangles
        .iter()
        .map(|t| {
            let [a, b, c] = t.map(|i| vertices[i as usize]);
            (b - a).cross(c - a)
        })
        .collect();
    // By directed edge: the triangle it belongs to.
    let mut edges: Vec<(u32, u32, usize)> =
        triangles.iter().enumerate().flat_map(|(k, t)| (0..3).map(move |i| (t[i], t[(i + 1) % 3], k))).collect();
    edges.sort_unstable();
    let owner = |a: u32, b: u32| edges.binary_search_by(|e| (e.0, e.1).cmp(&(a, b))).ok().map(|k| edges[k].2);
    let mut group = vec![usize::MAX; triangles.len()];
    let mut loops = (Vec::new(), Vec::new());
    // Largest first, so that slivers join what they lie in.
    let mut order: Vec<usize> = (0..triangles.len()).collect();
    order.sort_by(|&i, &k| area[k].length().total_cmp(&area[i].length()).then(i.cmp(&k)));
    for seed in order {
        if group[seed] != usize::MAX {
            continue;
        }
        let Some(normal) = area[seed].try_normalize() else { continue };
        let number = loops.0.len();
        let (mut stack, mut members) = (vec![seed], Vec::new());
        group[seed] = number;
        while let Some(k) = stack.pop() {
            members.push(k);
            for i in 0..3 {
                let (a, b) = (triangles[k][i], triangles[k][(i + 1) % 3]);
                let Some(next) = owner(b, a) else { continue };
                // Within 1e-6 rad, or without area.
                let flat =
                    area[next].cross(normal).length() <= 1e-6 * area[next].length() && area[next].dot(normal) >= 0.0;
                if group[next] == usize::MAX && flat {
                    group[next] = number;
                    stack.push(next);
                }
            }
        }
        // The border: edges whose other side is in another group.
        let mut border: Vec<(u32, u32)> = Vec::new();
        for &k in &members {
            for i in 0..3 {
                let (a, b) = (triangles[k][i], triangles[k][(i + 1) % 3]);
                if owner(b, a).is_none_or(|o| group[o] != number) {
                    border.push((a, b));
                }
            }
        }
        border.sort_unstable();
        let start = loops.1.len();
        let mut at = border[0].0;
        for _ in 0..border.len() {
            loops.1.push(at);
            match border.binary_search_by(|e| e.0.cmp(&at)) {
                Ok(k) => at = border[k].1,
                Err(_) => break,
            }
        }
        if at != border[0].0 {
            loops.1.truncate(start);
            loops.1.extend(triangles[seed]); // a border that is no ring: the triangle alone
        }
        let normal = members.iter().map(|&k| area[k]).sum::<DVec3>().normalize_or(normal);
        loops.0.push(Face { normal, start: start as u32, count: (loops.1.len() - start) as u32 });
    }
    loops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faces_of_a_box_have_four_corners() {
        let points: Vec<DVec3> =
            (0..8).map(|i| DVec3::new((i & 1) as f64, (i >> 1 & 1) as f64 * 2.0, (i >> 2) as f64 * 3.0)).collect();
        let p = Polytope::new(&points).unwrap();
        assert_eq!((p.vertices.len(), p.faces.len(), p.corners.len()), (8, 6, 24));
        let (normal, corners) = p.face(DVec3::new(0.1, 0.2, 0.9));
        assert!((normal - DVec3::Z).length() < 1e-15);
        let ring: Vec<DVec3> = corners.iter().map(|&k| p.vertices[k as usize]).collect();
        let turn: DVec3 = (0..4).map(|k| ring[k].cross(ring[(k + 1) % 4])).sum();
        assert!((turn.z - 4.0).abs() < 1e-12, "twice the area of 1 × 2, counter-clockwise: {turn}");
    }

    #[test]
    fn climbing_finds_the_farthest_vertex() {
        let mut points = Vec::new();
        for i in 0..20 {
            for k in 0..10 {
                let (a, b) = (0.1 + i as f64 * 0.31, 0.05 + k as f64 * 0.3);
                points.push(DVec3::new(b.sin() * a.cos(), 0.7 * b.sin() * a.sin(), 1.3 * b.cos()));
            }
        }
        let p = Polytope::new(&points).unwrap();
        assert!(p.vertices.len() > 100);
        for i in 0..500 {
            let t = f64::from(i);
            let d = DVec3::new((1.7 * t).sin(), (2.9 * t).cos(), (0.3 * t).sin()).normalize();
            let scanned = p.vertices.iter().map(|v| v.dot(d)).fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(p.support(d).0.dot(d), scanned);
        }
    }
}
