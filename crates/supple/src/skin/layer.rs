//! A layer of tetrahedra under a closed surface that keeps the surface's vertices, and what makes a surface closed.
//!
//! Under each triangle lies a prism between its corners and their inner places, `X − d n`. It is split in three along diagonals that depend on the numbers
//! of the vertices alone, so that neighbours match.

use super::hierarchy::Triangles;
use crate::flesh::SurfaceMesh;
use glam::{DMat3, DVec3};

/// Tetrahedra between vertices (first) and inner places, which are numbered after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// Places on the inner side, fixed to the bones \[m\]; one for each vertex unless tetrahedra are given.
    pub inner: Vec<DVec3>,
    /// The vertex whose bones carry each of them.
    pub follows: Vec<u32>,
    /// Of positive volume; the inner places are numbered after the nodes of the skin.
    pub tets: Vec<[u32; 4]>,
    /// How far the inner side is below each node \[m\].
    pub depths: Vec<f64>,
    /// Vertices of tetrahedra that were left out where the surface folds back on itself, in order: what is below them is not told.
    pub folded: Vec<u32>,
}

/// A tetrahedron with less than this share of a third of its prism is too flat.
const FLAT: f64 = 0.05;
/// Share of tetrahedra that may be left out because they stay flat however thin the layer is.
const MOST_LEFT_FLAT: f64 = 0.03;
/// Normals look along each face around them by at least this, where that can be.
const LEAST_COSINE: f64 = 0.15;
/// What the depth of a flat prism is multiplied by, and how often.
const SHRINK: f64 = 0.8;
const MOST_SHRINKS: usize = 9;
/// Rounds in which normals turn towards faces they do not see.
const MOST_TURNS: usize = 30;

/// The three tetrahedra under a triangle whose first corner has the smallest number; capitals are inside.
fn prism([a, b, c]: [u32; 3], n: u32) -> [[u32; 4]; 3] {
    let [ia, ib, ic] = [a + n, b + n, c + n];
    if b < c {
        [[a, ia, ib, ic], [a, b, ib, ic], [a, b, ic, c]]
    } else {
        [[a, ia, ib, ic], [a, c, ib, ic], [a, b, ib, c]]
    }
}

/// The triangle turned so that its smallest number is first.
fn smallest_first([a, b, c]: [u32; 3]) -> [u32; 3] {
    if a < b && a < c {
        [a, b, c]
    } else if b < c {
        [b, c, a]
    } else {
        [c, a, b]
    }
}

pub(super) fn volume([a, b, c, d]: [DVec3; 4]) -> f64 {
    (b - a).cross(c - a).dot(d - a) / 6.0
}

/// Outward unit normals of vertices, faces weighted by their angles there.
pub fn normals(surface: &SurfaceMesh) -> Vec<DVec3> {
    let mut normals = vec![DVec3::ZERO; surface.vertices.len()];
    for &t in &surface.triangles {
        let corners = surface.corners(t);
        let Some(face) = (corners[1] - corners[0]).cross(corners[2] - corners[0]).try_normalize() else { continue };
        for k in 0..3 {
            let (u, v) = (corners[(k + 1) % 3] - corners[k], corners[(k + 2) % 3] - corners[k]);
            normals[t[k] as usize] += face * u.angle_between(v);
        }
    }
    let mut normals: Vec<DVec3> = normals.iter().map(|n| n.normalize_or_zero()).collect();
    // Where a face is seen from behind, the normal turns towards it, face by face
    let faces: Vec<DVec3> = surface
        .triangles
        .iter()
        .map(|&t| {
            let [a, b, c] = surface.corners(t);
            (b - a).cross(c - a).normalize_or_zero()
        })
        .collect();
    for _ in 0..MOST_TURNS {
        let mut turned = false;
        for (t, face) in surface.triangles.iter().zip(&faces) {
            for &v in t {
                let n = &mut normals[v as usize];
                if *face != DVec3::ZERO && n.dot(*face) < LEAST_COSINE {
                    *n = (*n + *face * (LEAST_COSINE - n.dot(*face))).normalize_or(*n);
                    turned = true;
                }
            }
        }
        if !turned {
            break;
        }
    }
    normals
}

/// Half the way through the body below each vertex \[m\], as a ray along the inward normal finds it; no more than `most`.
pub fn radii(surface: &SurfaceMesh, most: f64) -> Vec<f64> {
    let mut triangles = Triangles::new(&surface.triangles);
    triangles.refit(&surface.vertices);
    let one = |(v, (&from, &n)): (usize, (&DVec3, &DVec3))| {
        // seen where the ray comes out
        let leaves = |t: [u32; 3], face: DVec3| !t.contains(&(v as u32)) && face.dot(n) < 0.0;
        0.5 * first_hit(&triangles, surface, (from, -n), 2.0 * most, 0.0, leaves).unwrap_or(2.0 * most)
    };
    surface.vertices.iter().zip(&normals(surface)).enumerate().map(one).collect()
}

/// How far below each vertex another surface lies \[m\], along the inward normal; `None` where it is not met within the body.
pub fn depths_to(surface: &SurfaceMesh, inner: &SurfaceMesh) -> Vec<Option<f64>> {
    let mut triangles = Triangles::new(&inner.triangles);
    triangles.refit(&inner.vertices);
    let (low, high) = surface.bounds();
    let radii = radii(surface, 0.5 * (high - low).max_element());
    let one = |((&from, &n), radius): ((&DVec3, &DVec3), &f64)| {
        first_hit(&triangles, inner, (from, -n), 2.0 * radius, 1e-9, |_, _| true)
    };
    surface.vertices.iter().zip(&normals(surface)).zip(&radii).map(one).collect()
}

/// How far a ray goes from a point until it meets a triangle that is asked for by its corners and its normal, if within `most`. A ray may
/// pass a triangle by the share `beside` of its sides and still meet it.
fn first_hit(
    triangles: &Triangles,
    surface: &SurfaceMesh,
    (from, along): (DVec3, DVec3),
    most: f64,
    beside: f64,
    asked: impl Fn([u32; 3], DVec3) -> bool,
) -> Option<f64> {
    let (mut nearest, tip) = (most, from + along * most);
    triangles.near(from.min(tip), from.max(tip), |t| {
        let corners = surface.triangles[t as usize];
        let [a, b, c] = surface.corners(corners);
        let face = (b - a).cross(c - a);
        if !asked(corners, face) {
            return;
        }
        // from + s along = a + y (b − a) + z (c − a)
        let solved = DMat3::from_cols(along, a - b, a - c);
        if solved.determinant().abs() <= 1e-12 * face.length() {
            return;
        }
        let at = solved.inverse() * (a - from);
        if at.x > 0.0 && at.y >= -beside && at.z >= -beside && at.y + at.z <= 1.0 + beside {
            nearest = nearest.min(at.x);
        }
    });
    (nearest < most).then_some(nearest)
}

impl Layer {
    /// The layer under a surface whose vertices lie `depths` above it, less where that would turn a tetrahedron over; what is wrong when no depth will do.
    pub fn under(surface: &SurfaceMesh, depths: Vec<f64>) -> Result<Layer, String> {
        if let Some(what) = surface.fault() {
            return Err(what);
        }
        let normals = normals(surface);
        if let Some(v) = normals.iter().position(|n| *n == DVec3::ZERO) {
            return Err(format!("vertex {v} has no normal: the triangles around it are flat or face each other"));
        }
        let follows = (0..surface.vertices.len() as u32).collect();
        let mut layer = Layer { follows, tets: tets(surface), depths, ..Layer::default() };
        for _ in 0..=MOST_SHRINKS {
            let places = surface.vertices.iter().zip(&normals).zip(&layer.depths);
            layer.inner = places.map(|((x, n), d)| *x - *n * *d).collect();
            let flat = layer.flat(surface);
            if flat.is_empty() {
                return Ok(layer);
            }
            let n = surface.vertices.len();
            let mut touched: Vec<usize> = flat.iter().flat_map(|&t| layer.tets[t]).map(|i| i as usize % n).collect();
            touched.sort_unstable();
            touched.dedup();
            touched.iter().for_each(|&v| layer.depths[v] *= SHRINK);
        }
        layer.leave_out_flat(surface)
    }

    /// The layer between a surface and the inner place of each of its vertices, such as a file gives.
    pub fn between(surface: &SurfaceMesh, inner: Vec<DVec3>) -> Result<Layer, String> {
        if let Some(what) = surface.fault() {
            return Err(what);
        }
        if inner.len() != surface.vertices.len() {
            return Err(format!("it has {} vertices outside and {} inside", surface.vertices.len(), inner.len()));
        }
        let depths = surface.vertices.iter().zip(&inner).map(|(a, b)| a.distance(*b)).collect();
        let follows = (0..inner.len() as u32).collect();
        Layer { inner, follows, tets: tets(surface), depths, folded: Vec::new() }.leave_out_flat(surface)
    }

    /// The layer without the few tetrahedra that are flat; what is wrong when there are many.
    fn leave_out_flat(mut self, surface: &SurfaceMesh) -> Result<Layer, String> {
        let flat = self.flat(surface);
        if flat.len() as f64 > MOST_LEFT_FLAT * self.tets.len() as f64 {
            return Err(format!(
                "{} of the {} tetrahedra of its layer stay flat or turned over, the first at vertex {}",
                flat.len(),
                self.tets.len(),
                self.tets[flat[0]][0]
            ));
        }
        let n = surface.vertices.len() as u32;
        self.folded = flat.iter().flat_map(|&t| self.tets[t]).map(|i| i % n).collect();
        self.folded.sort_unstable();
        self.folded.dedup();
        let mut k = 0;
        self.tets.retain(|_| {
            k += 1;
            flat.binary_search(&(k - 1)).is_err()
        });
        Ok(self)
    }

    /// The places of a tetrahedron's corners; those of the nodes are given.
    pub fn corners(&self, nodes: &[DVec3], tet: [u32; 4]) -> [DVec3; 4] {
        let n = nodes.len();
        tet.map(|i| if (i as usize) < n { nodes[i as usize] } else { self.inner[i as usize - n] })
    }

    /// Volume of a tetrahedron \[m³\].
    pub fn volume(&self, nodes: &[DVec3], tet: [u32; 4]) -> f64 {
        volume(self.corners(nodes, tet))
    }

    /// The tetrahedra that are turned over or too flat: less than a share of a third of their prism, as thick as it should be.
    fn flat(&self, surface: &SurfaceMesh) -> Vec<usize> {
        let is_flat = |k: usize| {
            let t = surface.triangles[k / 3];
            let [a, b, c] = surface.corners(t);
            let depth = t.iter().map(|&v| self.depths[v as usize]).sum::<f64>() / 3.0;
            let third = 0.5 * (b - a).cross(c - a).length() * depth / 3.0;
            let volume = self.volume(&surface.vertices, self.tets[k]);
            volume.is_nan() || volume <= FLAT * third
        };
        (0..self.tets.len()).filter(|&k| is_flat(k)).collect()
    }
}

/// The tetrahedra of all triangles, turned so that their volume is positive for a layer that is thin.
fn tets(surface: &SurfaceMesh) -> Vec<[u32; 4]> {
    let n = surface.vertices.len() as u32;
    let mut all = Vec::with_capacity(3 * surface.triangles.len());
    for &triangle in &surface.triangles {
        let t = smallest_first(triangle);
        // Signs on a model prism: triangle in the plane z = 0, seen from +z, inside at z = −1.
        let model = |i: u32| {
            let (outer, z) = if i >= n { (i - n, -1.0) } else { (i, 0.0) };
            let corner = t.iter().position(|&c| c == outer).unwrap_or(0);
            [DVec3::new(0.0, 0.0, z), DVec3::new(1.0, 0.0, z), DVec3::new(0.0, 1.0, z)][corner]
        };
        for tet in prism(t, n) {
            let turned = if volume(tet.map(model)) > 0.0 { tet } else { [tet[0], tet[1], tet[3], tet[2]] };
            all.push(turned);
        }
    }
    all
}

/// A surface made closed, and what that took.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    /// Closed and turned outwards.
    pub surface: SurfaceMesh,
    /// For each vertex of the surface given, its vertex here.
    pub vertex_of: Vec<u32>,
    /// For each vertex here those of the surface given that it stands for; several for the middle of a cap.
    pub made_of: Vec<Vec<u32>>,
    /// Holes that were capped.
    pub caps: usize,
    /// Triangles that were left out: flat, double, or a third one at an edge.
    pub left_out: usize,
}

/// More than this share of triangles left out: the surface is not one.
const MOST_LEFT_OUT: f64 = 0.05;

/// Joins vertices at the same place, leaves out what is double, caps holes. Tells why when that does not give a closed surface.
pub fn close(vertices: &[DVec3], triangles: &[[u32; 3]]) -> Result<Closed, String> {
    if let Some(v) = vertices.iter().position(|p| !p.is_finite()) {
        return Err(format!("vertex {v} is not finite"));
    }
    if let Some(t) = triangles.iter().position(|t| t.iter().any(|&i| i as usize >= vertices.len())) {
        return Err(format!("triangle {t} names a vertex that does not exist"));
    }
    if triangles.is_empty() {
        return Err("it has no triangle".into());
    }
    // Same place: within a millionth of its size
    let low = vertices.iter().copied().fold(DVec3::INFINITY, DVec3::min);
    let high = vertices.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
    let grain = 1e-6 * (high - low).max_element().max(1e-12);
    let mut order: Vec<([i64; 3], u32)> = vertices
        .iter()
        .enumerate()
        .map(|(v, p)| (((*p - low) / grain).round().to_array().map(|x| x as i64), v as u32))
        .collect();
    order.sort_unstable();
    let mut first_of = vec![0u32; vertices.len()];
    let mut leader = 0;
    for k in 0..order.len() {
        if k == 0 || order[k].0 != order[k - 1].0 {
            leader = order[k].1;
        }
        first_of[order[k].1 as usize] = leader;
    }

    // Triangles with three corners, each directed edge once
    let mut edges: std::collections::BTreeSet<(u32, u32)> = std::collections::BTreeSet::new();
    let (mut kept, mut left_out) = (Vec::with_capacity(triangles.len()), 0);
    for t in triangles {
        let [a, b, c] = t.map(|i| first_of[i as usize]);
        let around = [(a, b), (b, c), (c, a)];
        let flat = a == b || b == c || c == a;
        if flat || around.iter().any(|e| edges.contains(e)) {
            left_out += usize::from(!flat);
            continue;
        }
        edges.extend(around);
        kept.push([a, b, c]);
    }
    if left_out as f64 > MOST_LEFT_OUT * triangles.len() as f64 {
        return Err(format!(
            "{left_out} of its {} triangles share an edge with two others or are turned against them: join or turn them in the modelling tool",
            triangles.len()
        ));
    }

    // Vertices in use, renumbered in their order
    let mut number = vec![u32::MAX; vertices.len()];
    let (mut surface, mut made_of) = (SurfaceMesh::default(), Vec::new());
    kept.iter().flatten().for_each(|&v| number[v as usize] = 0);
    for (v, number) in number.iter_mut().enumerate() {
        if *number == 0 {
            *number = surface.vertices.len() as u32;
            surface.vertices.push(vertices[v]);
            made_of.push(vec![v as u32]);
        }
    }
    surface.triangles = kept.iter().map(|t| t.map(|v| number[v as usize])).collect();

    // Holes: the edges without a triangle on the other side, followed round
    let mut next: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
    for &(a, b) in &edges {
        if !edges.contains(&(b, a)) {
            next.entry(number[b as usize]).or_default().push(number[a as usize]);
        }
    }
    let mut caps = 0;
    while let Some((&start, _)) = next.iter().find(|(_, to)| !to.is_empty()) {
        let mut hole = vec![start];
        loop {
            let here = hole[hole.len() - 1];
            let Some(to) = next.get_mut(&here).and_then(Vec::pop) else {
                return Err("a hole of its surface does not close: join its vertices in the modelling tool".into());
            };
            // where two holes touch in a vertex, the loop is cut off there
            if let Some(at) = hole.iter().position(|&v| v == to) {
                let round: Vec<u32> = hole.drain(at..).collect();
                cap(&mut surface, &mut made_of, &round);
                caps += 1;
                if hole.is_empty() {
                    break;
                }
            }
            hole.push(to);
        }
    }
    let vertex_of = first_of.iter().map(|&v| number[v as usize]).collect();
    if surface.volume() < 0.0 {
        surface.triangles.iter_mut().for_each(|t| t.swap(1, 2));
    }
    match surface.fault() {
        None => Ok(Closed { surface, vertex_of, made_of, caps, left_out }),
        Some(what) => Err(what),
    }
}

/// Closes a hole by triangles, fanned from its middle when it has more than three sides.
fn cap(surface: &mut SurfaceMesh, made_of: &mut Vec<Vec<u32>>, hole: &[u32]) {
    if let [a, b, c] = *hole {
        surface.triangles.push([a, b, c]);
        return;
    }
    if hole.len() < 3 {
        return;
    }
    let middle = surface.vertices.len() as u32;
    let sum: DVec3 = hole.iter().map(|&v| surface.vertices[v as usize]).sum();
    surface.vertices.push(sum / hole.len() as f64);
    made_of.push(hole.iter().flat_map(|&v| made_of[v as usize].clone()).collect());
    for k in 0..hole.len() {
        surface.triangles.push([hole[k], hole[(k + 1) % hole.len()], middle]);
    }
}
