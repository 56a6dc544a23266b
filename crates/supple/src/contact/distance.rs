//! The signed distance of two convex cores, and the direction it is measured in.
//!
//! For a unit vector n let `sep(n) = min n·a − max n·b` over the points of the two shapes. Then
//!
//! ```text
//! (1)  distance = max over n of sep(n), negative by the least depth when they overlap,
//! ```
//!
//! and the best n is the contact normal, from b to a. It is found in three ways that complete each other:
//! - apart: the point of the difference body `A − B` nearest the origin, by simplices [Gilbert 1988];
//! - touching or overlapping: the face of `A − B` nearest the origin, by an expanding polytope [Bergen 2001]. Moving a shape does not
//!   change the faces of `A − B`, so a pair that just touches is first pushed together a little: its direction, which the
//!   difference of two nearly equal points would not tell, becomes that of a face;
//! - last, normals of faces near the one found are tried in (1): resting faces give their own normal, exactly.

use super::convex::Placed;
use glam::DVec3;

/// How far two cores are apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Unit vector from b to a.
    pub(crate) normal: DVec3,
    /// `sep(normal)`; below 0 when the cores overlap \[m\].
    pub(crate) gap: f64,
    /// Nearest (or deepest) points of the two cores.
    pub(crate) on_a: DVec3,
    pub(crate) on_b: DVec3,
}

/// A point of the difference body and where it comes from.
#[derive(Clone, Copy, Debug, Default)]
struct Vertex {
    w: DVec3,
    a: DVec3,
    b: DVec3,
}

/// Room for the expanding polytope, kept between calls.
#[derive(Default)]
pub(crate) struct DistanceWork {
    vertices: Vec<Vertex>,
    faces: Vec<Face>,
    edges: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Face {
    corners: [u32; 3],
    normal: DVec3,
    distance: f64,
}

/// Rounds after which the nearest simplex is taken as it is; polytopes need fewer, cylinders come close to it.
const MOST_ROUNDS: usize = 80;
/// Rounds of the expanding polytope.
const MOST_EXPANSIONS: usize = 200;
/// Steps of a climb: 31 halvings lead from the widest step to the finest, and a step that is not halved leads up.
const MOST_STEPS: usize = 200;
/// Nearer than this part of the larger shape, the difference of the nearest points has lost half its digits.
const NEAR: f64 = 1e-8;

/// The axis of (1).
pub(crate) fn distance(a: &Placed<'_>, b: &Placed<'_>, work: &mut DistanceWork) -> Axis {
    let size = a.size.max(b.size).max((a.at - b.at).length()).max(1e-300);
    let vertex = |direction: DVec3, shift: DVec3| {
        let (p, q) = (a.support(direction).0, b.support(-direction).0);
        Vertex { w: p - q + shift, a: p, b: q }
    };
    let mut simplex = Simplex::default();
    let found = match nearest(&mut simplex, a.at - b.at, size, |d| vertex(d, DVec3::ZERO)) {
        Some(axis) if axis.gap > NEAR * size => return polished(a, b, climbed(a, b, axis, size), size),
        found => found,
    };
    // Push them together along the direction known, so that the origin is inside for sure.
    let mut shift = DVec3::ZERO;
    if let Some(axis) = found {
        shift = -axis.normal * (axis.gap + 4.0 * NEAR * size);
        simplex = Simplex::default();
        nearest(&mut simplex, a.at - b.at, size, |d| vertex(d, shift));
    }
    let expanded = expand(&simplex, size, work, |d| vertex(d, shift));
    let axis = expanded.into_iter().chain(found).map(|axis| rated(a, b, axis));
    let axis = axis.reduce(|x, y| if y.gap > x.gap { y } else { x }).unwrap_or_else(|| widest(a, b));
    polished(a, b, axis, size)
}

/// The axis with the gap of (1) instead of the distance of its points.
fn rated(a: &Placed<'_>, b: &Placed<'_>, axis: Axis) -> Axis {
    Axis { gap: separation(a, b, axis.normal), ..axis }
}

/// `sep(n)`.
pub(crate) fn separation(a: &Placed<'_>, b: &Placed<'_>, n: DVec3) -> f64 {
    n.dot(a.support(-n).0 - b.support(n).0)
}

/// The axis along `n`, with the farthest points as witnesses.
pub(crate) fn along(a: &Placed<'_>, b: &Placed<'_>, n: DVec3) -> Axis {
    let on_a = a.support(-n).0;
    let gap = n.dot(on_a - b.support(n).0);
    Axis { normal: n, gap, on_a, on_b: on_a - n * gap }
}

/// Takes the normal of a face when it is as good: (1) up to rounding.
fn polished(a: &Placed<'_>, b: &Placed<'_>, axis: Axis, size: f64) -> Axis {
    let n = axis.normal;
    let mut best = axis;
    let mut most = axis.gap + 1e-12 * size;
    let from_b = b.natural_normals(n);
    let from_a = a.natural_normals(-n).map(|n| n.map(|n| -n));
    for n in from_b.into_iter().chain(from_a).flatten() {
        // Only near ones: a far one that were as good would have been found.
        if n.dot(axis.normal) < 0.99 {
            continue;
        }
        let gap = separation(a, b, n);
        if gap >= most - 2e-12 * size {
            // Keep the points when they belong to this direction too.
            let fits = (axis.on_a - axis.on_b - n * gap).length() <= 1e-9 * size;
            best = if fits { Axis { normal: n, gap, ..axis } } else { along(a, b, n) };
            most = gap + 2e-12 * size;
        }
    }
    best
}

/// Between two rims the simplex can become a sliver and stop short, which (1) tells: then climb. Apart, `sep` has one summit.
fn climbed(a: &Placed<'_>, b: &Placed<'_>, axis: Axis, size: f64) -> Axis {
    let n = axis.normal;
    let most = separation(a, b, n);
    if most >= axis.gap - 1e-11 * size {
        return axis;
    }
    let step = 2.0 * ((axis.gap - most) / axis.gap).sqrt(); // the angle that the shortfall stands for, doubled
    along(a, b, summit(|n| separation(a, b, n), n, most, step))
}

/// The direction of the greatest `height`, found from `n` of height `most` in steps of this angle and then shorter ones.
fn summit(mut height: impl FnMut(DVec3) -> f64, mut n: DVec3, mut most: f64, mut step: f64) -> DVec3 {
    for _ in 0..MOST_STEPS {
        if step.is_nan() || step <= 1e-9 {
            break;
        }
        let (u, v) = n.any_orthonormal_pair();
        let around = [u, u + v, v, v - u, -u, -u - v, -v, u - v];
        let best = around.map(|d| (n + d * step).normalize()).map(|n| (height(n), n));
        match best.into_iter().reduce(|x, y| if y.0 > x.0 { y } else { x }) {
            Some((higher, there)) if higher > most => (most, n) = (higher, there),
            _ => step *= 0.5,
        }
    }
    n
}

/// When all else fails, as for two points in one place: the best of a few directions.
fn widest(a: &Placed<'_>, b: &Placed<'_>) -> Axis {
    let mut best = along(a, b, DVec3::Y);
    let mut take = |n: DVec3| {
        for n in [n, -n] {
            let axis = along(a, b, n);
            if axis.gap > best.gap + 1e-12 * a.size.max(b.size) {
                best = axis;
            }
        }
    };
    take(DVec3::X);
    take(DVec3::Z);
    (a.at - b.at).try_normalize().into_iter().for_each(&mut take);
    for i in 0..3 {
        take(a.axes.col(i));
        take(b.axes.col(i));
        for k in 0..3 {
            a.axes.col(i).cross(b.axes.col(k)).try_normalize().into_iter().for_each(&mut take);
        }
    }
    best
}

/// Up to four points of the difference body.
#[derive(Default)]
struct Simplex {
    points: [Vertex; 4],
    weights: [f64; 4],
    count: usize,
}

/// The nearest points when the origin is outside the difference body by more than rounding; `None` with a simplex around it when it
/// is inside.
fn nearest(simplex: &mut Simplex, start: DVec3, size: f64, vertex: impl Fn(DVec3) -> Vertex) -> Option<Axis> {
    let first = vertex(-start.normalize_or(DVec3::X));
    (simplex.points[0], simplex.weights[0], simplex.count) = (first, 1.0, 1);
    let mut v = first.w;
    for _ in 0..MOST_ROUNDS {
        let length = v.length();
        if length <= 1e-14 * size {
            return None;
        }
        let next = vertex(-v / length);
        // v·w is what the distance is at least: stop when v cannot get nearer.
        let seen = simplex.points[..simplex.count].iter().any(|p| p.w == next.w);
        if seen || length * length - v.dot(next.w) <= 1e-14 * length * length {
            break;
        }
        let before = (simplex.points, simplex.weights, simplex.count);
        simplex.points[simplex.count] = next;
        simplex.count += 1;
        let Some(nearer) = simplex.reduce() else {
            return None; // the origin is inside
        };
        if nearer.length() >= length {
            // Rounding: the last one was the best.
            (simplex.points, simplex.weights, simplex.count) = before;
            break;
        }
        v = nearer;
    }
    let gap = v.length();
    let blend =
        |of: fn(&Vertex) -> DVec3| (0..simplex.count).map(|k| of(&simplex.points[k]) * simplex.weights[k]).sum();
    Some(Axis { normal: v / gap, gap, on_a: blend(|p| p.a), on_b: blend(|p| p.b) })
}

impl Simplex {
    /// The point nearest the origin; keeps the corners it lies between. `None` when the origin is inside the tetrahedron.
    fn reduce(&mut self) -> Option<DVec3> {
        let w = self.points.map(|p| p.w);
        let weights = match self.count {
            1 => [1.0, 0.0, 0.0, 0.0],
            2 => {
                let [s, t] = on_segment(w[0], w[1]);
                [s, t, 0.0, 0.0]
            }
            3 => {
                let [s, t, u] = on_triangle(w[0], w[1], w[2]);
                [s, t, u, 0.0]
            }
            _ => on_tetrahedron(w)?,
        };
        let mut kept = 0;
        let mut v = DVec3::ZERO;
        for k in 0..self.count {
            if weights[k] > 0.0 {
                (self.points[kept], self.weights[kept]) = (self.points[k], weights[k]);
                v += w[k] * weights[k];
                kept += 1;
            }
        }
        self.count = kept;
        Some(v)
    }
}

/// Weights of the point of a segment nearest the origin.
fn on_segment(a: DVec3, b: DVec3) -> [f64; 2] {
    let ab = b - a;
    let t = -a.dot(ab);
    let whole = ab.length_squared();
    if t <= 0.0 || whole == 0.0 {
        [1.0, 0.0]
    } else if t >= whole {
        [0.0, 1.0]
    } else {
        [1.0 - t / whole, t / whole]
    }
}

/// Weights of the point of a triangle nearest the origin [Ericson 2005, §5.1.5].
fn on_triangle(a: DVec3, b: DVec3, c: DVec3) -> [f64; 3] {
    let (ab, ac) = (b - a, c - a);
    let (d1, d2) = (-ab.dot(a), -ac.dot(a));
    if d1 <= 0.0 && d2 <= 0.0 {
        return [1.0, 0.0, 0.0];
    }
    let (d3, d4) = (-ab.dot(b), -ac.dot(b));
    if d3 >= 0.0 && d4 <= d3 {
        return [0.0, 1.0, 0.0];
    }
    let (d5, d6) = (-ab.dot(c), -ac.dot(c));
    if d6 >= 0.0 && d5 <= d6 {
        return [0.0, 0.0, 1.0];
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        let [s, t] = on_segment(a, b);
        return [s, t, 0.0];
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        let [s, t] = on_segment(a, c);
        return [s, 0.0, t];
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0 {
        let [s, t] = on_segment(b, c);
        return [0.0, s, t];
    }
    let sum = va + vb + vc;
    [va / sum, vb / sum, vc / sum]
}

/// Weights of the point of a tetrahedron nearest the origin; `None` when the origin is inside.
fn on_tetrahedron(w: [DVec3; 4]) -> Option<[f64; 4]> {
    let mut best: Option<(f64, [f64; 4])> = None;
    let mut inside = true;
    for (i, j, k, opposite) in [(0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 3, 2, 0)] {
        let n = (w[j] - w[i]).cross(w[k] - w[i]);
        let (height, at) = (n.dot(w[opposite] - w[i]), -n.dot(w[i]));
        // Outside this face, or the tetrahedron is flat there.
        if at * height <= 0.0 || height.abs() <= 1e-14 * n.length() * (w[opposite] - w[i]).length() {
            inside = false;
            let [s, t, u] = on_triangle(w[i], w[j], w[k]);
            let v = (w[i] * s + w[j] * t + w[k] * u).length_squared();
            if best.is_none_or(|(least, _)| v < least) {
                let mut weights = [0.0; 4];
                (weights[i], weights[j], weights[k]) = (s, t, u);
                best = Some((v, weights));
            }
        }
    }
    if inside { None } else { best.map(|(_, weights)| weights) }
}

/// The face of the difference body nearest the origin, which is inside. `None` when the difference body is flat.
fn expand(simplex: &Simplex, size: f64, work: &mut DistanceWork, vertex: impl Fn(DVec3) -> Vertex) -> Option<Axis> {
    let DistanceWork { vertices, faces, edges } = work;
    vertices.clear();
    faces.clear();
    vertices.extend(&simplex.points[..simplex.count]);
    let flat = 1e-9 * size;
    // A tetrahedron: away from the first point, from the line, from the plane.
    if vertices.len() == 1 {
        let far =
            DVec3::AXES.iter().flat_map(|&d| [d, -d]).map(&vertex).find(|p| p.w.distance(vertices[0].w) > flat)?;
        vertices.push(far);
    }
    if vertices.len() == 2 {
        let line = (vertices[1].w - vertices[0].w).try_normalize()?;
        let u = line.any_orthonormal_vector();
        let v = line.cross(u);
        let far = [u, -u, v, -v].into_iter().map(&vertex);
        let far = far.into_iter().find(|p| line.cross(p.w - vertices[0].w).length() > flat)?;
        vertices.push(far);
    }
    if vertices.len() == 3 {
        let n = (vertices[1].w - vertices[0].w).cross(vertices[2].w - vertices[0].w).try_normalize()?;
        let far = [n, -n].into_iter().map(&vertex).find(|p| n.dot(p.w - vertices[0].w).abs() > flat)?;
        vertices.push(far);
    }
    let w = |vertices: &[Vertex], k: u32| vertices[k as usize].w;
    let volume =
        (w(vertices, 1) - w(vertices, 0)).cross(w(vertices, 2) - w(vertices, 0)).dot(w(vertices, 3) - w(vertices, 0));
    let corners: [[u32; 3]; 4] = if volume < 0.0 {
        [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]
    } else {
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    };
    for corners in corners {
        faces.push(face(vertices, corners));
    }
    let mut best = None;
    for _ in 0..MOST_EXPANSIONS {
        let (k, nearest) = faces
            .iter()
            .enumerate()
            .map(|(k, f)| (k, *f))
            .reduce(|x, y| if y.1.distance < x.1.distance { y } else { x })?;
        if !nearest.distance.is_finite() {
            break;
        }
        best = Some(nearest);
        let next = vertex(nearest.normal);
        if nearest.normal.dot(next.w) - nearest.distance <= 1e-10 * size {
            break;
        }
        let added = vertices.len() as u32;
        vertices.push(next);
        // Take away the faces that see the new point, and close the hole with faces to it.
        edges.clear();
        let mut index = 0;
        faces.retain(|f| {
            let sees = index == k || f.normal.dot(next.w - vertices[f.corners[0] as usize].w) > 1e-13 * size;
            index += 1;
            if sees {
                edges.extend((0..3).map(|i| (f.corners[i], f.corners[(i + 1) % 3])));
            }
            !sees
        });
        for i in 0..edges.len() {
            let (p, q) = edges[i];
            if !edges.contains(&(q, p)) {
                faces.push(face(vertices, [p, q, added]));
            }
        }
    }
    let Face { corners: [i, j, k], normal, distance } = best?;
    let n = normal * distance;
    let [s, t, u] = on_triangle(w(vertices, i) - n, w(vertices, j) - n, w(vertices, k) - n);
    let blend = |of: fn(&Vertex) -> DVec3| {
        of(&vertices[i as usize]) * s + of(&vertices[j as usize]) * t + of(&vertices[k as usize]) * u
    };
    // The way out of the overlap is to move a along −normal of the difference body's face.
    Some(Axis { normal: -normal, gap: -distance, on_a: blend(|p| p.a), on_b: blend(|p| p.b) })
}

/// A face of the polytope; one without area is infinitely far.
fn face(vertices: &[Vertex], corners: [u32; 3]) -> Face {
    let [a, b, c] = corners.map(|k| vertices[k as usize].w);
    let (u, v) = (b - a, c - a);
    let n = u.cross(v);
    let small = n.length() <= 1e-14 * u.length() * v.length();
    match n.try_normalize() {
        // Below 0 by rounding when the origin lies in the face.
        Some(normal) if !small => Face { corners, normal, distance: normal.dot(a).max(0.0) },
        _ => Face { corners, normal: DVec3::ZERO, distance: f64::INFINITY },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_ends_at_the_summit() {
        let top = DVec3::new(1.0, 2.0, -2.0) / 3.0;
        let reached = summit(|n| n.dot(top), DVec3::X, DVec3::X.dot(top), 1.0);
        assert!(reached.distance(top) < 1e-7, "{reached}"); // the cosine tells no less
    }

    /// Rounding may tell a rise wherever one goes.
    #[test]
    fn a_climb_that_always_rises_ends() {
        let mut asked = 0;
        let up = |_: DVec3| {
            asked += 1;
            assert!(asked <= 8 * MOST_STEPS, "it goes on");
            f64::from(asked as u32)
        };
        assert!(summit(up, DVec3::Y, 0.0, 0.1).is_normalized());
    }
}
