//! Closed surfaces of triangles: what is inside, which boxes they meet.

use glam::DVec3;

/// A surface of triangles, counter-clockwise seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurfaceMesh {
    /// \[m\]
    pub vertices: Vec<DVec3>,
    /// Indices of vertices.
    pub triangles: Vec<[u32; 3]>,
    /// Colour of each vertex, linear red, green and blue from 0 to 1; empty when it has none.
    pub colours: Vec<[f32; 3]>,
}

impl SurfaceMesh {
    /// The corners of a triangle.
    pub fn corners(&self, triangle: [u32; 3]) -> [DVec3; 3] {
        triangle.map(|i| self.vertices[i as usize])
    }

    /// The volume it encloses \[m³\]; negative when it is inside out.
    pub fn volume(&self) -> f64 {
        // Σ a·(b × c)/6, from the first vertex
        let origin = self.vertices.first().copied().unwrap_or_default();
        let six: f64 = self
            .triangles
            .iter()
            .map(|&t| {
                let [a, b, c] = self.corners(t).map(|p| p - origin);
                a.dot(b.cross(c))
            })
            .sum();
        six / 6.0
    }

    /// The smallest box around it: lower and upper corner.
    pub fn bounds(&self) -> (DVec3, DVec3) {
        let low = self.vertices.iter().copied().fold(DVec3::INFINITY, DVec3::min);
        let high = self.vertices.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
        (low, high)
    }

    /// What is wrong with it, if anything: it must be finite, closed and turned outwards.
    pub fn fault(&self) -> Option<String> {
        if self.triangles.is_empty() {
            return Some("it has no triangle".into());
        }
        if let Some(i) = self.vertices.iter().position(|v| !v.is_finite()) {
            return Some(format!("vertex {i} is not finite"));
        }
        if let Some(t) = self.triangles.iter().position(|t| t.iter().any(|&i| i as usize >= self.vertices.len())) {
            return Some(format!("triangle {t} names a vertex that does not exist"));
        }
        if !(self.colours.is_empty() || self.colours.len() == self.vertices.len()) {
            return Some(format!("it has {} colours for {} vertices", self.colours.len(), self.vertices.len()));
        }
        // Closed and of one orientation: each directed edge once, and its opposite once.
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(3 * self.triangles.len());
        for &[a, b, c] in &self.triangles {
            edges.extend([(a, b), (b, c), (c, a)]);
        }
        edges.sort_unstable();
        if let Some(pair) = edges.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("two triangles have the edge {} → {}", pair[0].0, pair[0].1));
        }
        if let Some((a, b)) = edges.iter().find(|(a, b)| edges.binary_search(&(*b, *a)).is_err()) {
            return Some(format!("the edge {a} → {b} has a triangle on one side only"));
        }
        (self.volume() <= 0.0).then(|| "it is inside out".into())
    }
}

/// Tells quickly what is inside a closed surface: a ray along +X is cut by the triangles over its place in the YZ plane.
#[derive(Clone, Debug)]
pub struct Inside {
    triangles: Vec<[DVec3; 3]>,
    low: DVec3,
    /// Cells per metre along Y and Z.
    density: [f64; 2],
    columns: [usize; 2],
    /// The triangles over cell k are `listed[first[k]..first[k + 1]]`.
    first: Vec<u32>,
    listed: Vec<u32>,
}

impl Inside {
    /// Sorts the triangles by cells; about one triangle a cell.
    pub fn new(surface: &SurfaceMesh) -> Inside {
        let (low, high) = surface.bounds();
        let triangles: Vec<[DVec3; 3]> = surface.triangles.iter().map(|&t| surface.corners(t)).collect();
        let side = ((triangles.len() as f64).sqrt().ceil() as usize).clamp(1, 512);
        let size = (high - low).max(DVec3::splat(1e-12));
        let mut inside = Inside {
            triangles,
            low,
            density: [side as f64 / size.y, side as f64 / size.z],
            columns: [side, side],
            first: vec![0; side * side + 1],
            listed: Vec::new(),
        };
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (t, corners) in inside.triangles.iter().enumerate() {
            let least = corners[0].min(corners[1]).min(corners[2]);
            let most = corners[0].max(corners[1]).max(corners[2]);
            let (from, to) = (inside.cell(least), inside.cell(most));
            for y in from[0]..=to[0] {
                for z in from[1]..=to[1] {
                    pairs.push(((y * side + z) as u32, t as u32));
                }
            }
        }
        pairs.sort_unstable();
        for &(cell, t) in &pairs {
            inside.first[cell as usize + 1] += 1;
            inside.listed.push(t);
        }
        for k in 0..side * side {
            inside.first[k + 1] += inside.first[k];
        }
        inside
    }

    /// The cell over a point, the nearest one for a point beside the surface.
    fn cell(&self, p: DVec3) -> [usize; 2] {
        let at = |x: f64, k: usize| ((x * self.density[k]).max(0.0) as usize).min(self.columns[k] - 1);
        [at(p.y - self.low.y, 0), at(p.z - self.low.z, 1)]
    }

    /// Whether a point is inside: the surface winds round it. Points on the surface may be told either way.
    pub fn contains(&self, p: DVec3) -> bool {
        // Rays through an edge would meet both its triangles or none: they are moved aside by an amount that no coordinate has.
        let p = p + DVec3::new(0.0, 1.618_033_988e-9, 2.236_067_977e-9) / self.density[0].max(self.density[1]);
        let [y, z] = self.cell(p);
        let k = y * self.columns[1] + z;
        let mut winding = 0;
        for &t in &self.listed[self.first[k] as usize..self.first[k + 1] as usize] {
            winding += crossing(&self.triangles[t as usize], p);
        }
        winding > 0
    }
}

/// +1 when a ray from p along +X leaves through the triangle, −1 when it enters, 0 when it misses.
fn crossing(triangle: &[DVec3; 3], p: DVec3) -> i32 {
    let [a, b, c] = triangle.map(|q| q - p);
    // Signed areas in the YZ plane
    let area = |u: DVec3, v: DVec3| u.y * v.z - u.z * v.y;
    let (wa, wb, wc) = (area(b, c), area(c, a), area(a, b));
    let sign = if wa > 0.0 && wb > 0.0 && wc > 0.0 {
        1
    } else if wa < 0.0 && wb < 0.0 && wc < 0.0 {
        -1
    } else {
        return 0;
    };
    let x = (wa * a.x + wb * b.x + wc * c.x) / (wa + wb + wc);
    if x > 0.0 { sign } else { 0 }
}

/// Whether a triangle and a box have a point in common [separating axes].
pub fn triangle_meets_box(triangle: &[DVec3; 3], centre: DVec3, half: DVec3) -> bool {
    let [a, b, c] = triangle.map(|p| p - centre);
    let apart = |axis: DVec3| {
        let [p, q, r] = [a, b, c].map(|v| v.dot(axis));
        let reach = half.dot(axis.abs());
        p.min(q).min(r) > reach || p.max(q).max(r) < -reach
    };
    let edges = [b - a, c - b, a - c];
    let normal = edges[0].cross(edges[1]);
    !(DVec3::AXES.into_iter().any(apart)
        || apart(normal)
        || edges.iter().any(|e| DVec3::AXES.iter().any(|axis| apart(axis.cross(*e)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cube of side 2 about the origin.
    pub(super) fn cube() -> SurfaceMesh {
        let vertices = (0..8).map(|k| DVec3::new((k & 1) as f64, (k >> 1 & 1) as f64, (k >> 2) as f64) * 2.0 - 1.0);
        let quads = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
        let triangles = quads.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect();
        SurfaceMesh { vertices: vertices.collect(), triangles, colours: Vec::new() }
    }

    #[test]
    fn a_cube_is_closed_and_knows_its_inside() {
        let cube = cube();
        assert_eq!(cube.fault(), None);
        assert!((cube.volume() - 8.0).abs() < 1e-15);
        let inside = Inside::new(&cube);
        for k in 0..20_000u32 {
            let p = DVec3::new((k % 37) as f64, (k / 37 % 31) as f64, (k / 1147) as f64) / 9.0 - 2.0;
            if p.abs().max_element() != 1.0 {
                assert_eq!(inside.contains(p), p.abs().max_element() < 1.0, "{p}");
            }
        }
    }

    #[test]
    fn faults_are_told() {
        let mut open = cube();
        open.triangles.pop();
        assert!(open.fault().unwrap().contains("one side only"));
        let mut turned = cube();
        turned.triangles.iter_mut().for_each(|t| t.swap(0, 1));
        assert!(turned.fault().unwrap().contains("inside out"));
        let mut wild = cube();
        wild.triangles[0][0] = 99;
        assert!(wild.fault().unwrap().contains("does not exist"));
    }

    #[test]
    fn a_triangle_and_a_box_meet() {
        let half = DVec3::ONE;
        let t = [DVec3::new(0.9, 0.0, 0.0), DVec3::new(3.0, 0.0, 0.0), DVec3::new(3.0, 1.0, 0.0)];
        assert!(triangle_meets_box(&t, DVec3::ZERO, half));
        assert!(!triangle_meets_box(&t.map(|p| p + DVec3::X * 0.2), DVec3::ZERO, half));
        // Past a corner: the boxes overlap, an edge axis separates.
        let t = [DVec3::new(2.2, 0.0, 0.5), DVec3::new(0.0, 2.2, 0.5), DVec3::new(2.2, 2.2, 0.5)];
        assert!(!triangle_meets_box(&t, DVec3::ZERO, half));
        let t = t.map(|p| p * 0.8);
        assert!(triangle_meets_box(&t, DVec3::ZERO, half));
    }
}
