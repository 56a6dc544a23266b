//! A small rasteriser: triangles with normals, each of a part, become for every pixel what is seen there of which part.
//!
//! A pixel has sixteen samples. Corners are snapped to 1/256 of a pixel and edges are computed in whole numbers, so that two
//! triangles along a common edge cover every sample between them exactly once. For the edge from `p` to `q` and a sample `s`
//!
//! 1. `e(s) = (q − p) × (s − p)`, positive inside;
//! 2. the weight of the corner opposite to the edge is `λ = e / 2A`, `A` the area;
//! 3. `1/z` is linear on the picture, and so is `a/z` for whatever is linear on the triangle: `a = Σ λ a/z ÷ Σ λ/z`.

use super::camera::View;
use crate::cores::on_all_cores;
use supple::glam::{Vec2, Vec3, Vec4};

/// A corner of a surface, in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Vertex {
    /// \[m\]
    pub(super) position: Vec3,
    /// Outward, of unit length.
    pub(super) normal: Vec3,
}

/// A triangle of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facet {
    /// Indices of its vertices.
    pub(super) corners: [u32; 3],
    /// Of the figure: samples of one part are shaded together.
    pub(super) part: u32,
}

/// Triangles in the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Surface {
    pub(super) vertices: Vec<Vertex>,
    pub(super) facets: Vec<Facet>,
    /// By vertex, as far as there are any: what its part is coated with there.
    pub(super) coated: Vec<Coated>,
}

/// What a coat has at a corner: its place in the image, and what multiplies its colour and opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coated {
    pub(super) place: Vec2,
    pub(super) tint: Vec4,
}

impl Coated {
    const PLAIN: Coated = Coated { place: Vec2::ZERO, tint: Vec4::ONE };

    fn lerp(self, other: Coated, share: f32) -> Coated {
        Coated { place: self.place.lerp(other.place, share), tint: self.tint.lerp(other.tint, share) }
    }
}

impl Surface {
    /// Adds the triangles of another one.
    pub(super) fn append(&mut self, other: Surface) {
        let base = self.vertices.len() as u32;
        if !other.coated.is_empty() {
            self.coated.resize(self.vertices.len(), Coated::PLAIN);
            self.coated.extend(other.coated);
        }
        self.vertices.extend(other.vertices);
        self.facets.extend(other.facets.into_iter().map(|f| Facet { corners: f.corners.map(|i| base + i), ..f }));
    }
}

/// What is seen of one part in one pixel, averaged over the samples that see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fragment {
    pub(super) part: u32,
    /// In the world \[m\].
    pub(super) position: Vec3,
    /// Towards the camera's side, of unit length.
    pub(super) normal: Vec3,
    /// The colour of its coat, which multiplies that of the part.
    pub(super) tint: Vec3,
    /// Samples.
    pub(super) count: u32,
}

/// Units in a pixel.
const UNITS: i64 = 256;

/// Samples of a pixel.
pub(super) const SAMPLES: usize = 16;

/// Where the samples lie in their pixel: a square grid, turned so that no two share a row or a column.
const PATTERN: [[i64; 2]; SAMPLES] = {
    let mut pattern = [[0; 2]; SAMPLES];
    let mut k = 0;
    while k < SAMPLES {
        let (column, row) = (k as i64 % 4, k as i64 / 4);
        pattern[k] = [64 * column + 16 * row + 8, 64 * row + 16 * (3 - column) + 8];
        k += 1;
    }
    pattern
};

/// Pixels from `min` up to and without `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) min: [usize; 2],
    pub(super) max: [usize; 2],
}

/// A point of the picture in units.
pub(super) fn snap(x: f32, y: f32) -> [i64; 2] {
    [x, y].map(|v| (f64::from(v) * UNITS as f64).round() as i64)
}

/// A triangle on the picture.
#[derive(Clone, Copy, Debug)]
struct Edges {
    /// `e = a x + b y + c` of the edge opposite to each corner.
    lines: [[i64; 3]; 3],
    /// A sample on an edge belongs to the triangle when the edge is a left or an upper one: `e` is at least this.
    least: [i64; 3],
    /// Twice the area.
    area: i64,
}

impl Edges {
    /// `None` when the corners lie on a line.
    fn of(corners: [[i64; 2]; 3]) -> Option<Edges> {
        let [p, q, r] = corners;
        let area = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
        if area == 0 {
            return None;
        }
        let (mut lines, mut least) = ([[0; 3]; 3], [0; 3]);
        for k in 0..3 {
            let (mut from, mut to) = (corners[(k + 1) % 3], corners[(k + 2) % 3]);
            if area < 0 {
                (from, to) = (to, from);
            }
            let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
            lines[k] = [-dy, dx, dy * from[0] - dx * from[1]]; // by (1)
            let owns = dy < 0 || (dy == 0 && dx > 0);
            least[k] = if owns { 0 } else { 1 };
        }
        Some(Edges { lines, least, area: area.abs() })
    }

    /// `e` of the three edges.
    fn at(&self, point: [i64; 2]) -> [i64; 3] {
        self.lines.map(|[a, b, c]| a * point[0] + b * point[1] + c)
    }

    /// The corners' weights, by (2).
    fn weights(&self, edges: [i64; 3]) -> [f32; 3] {
        let scale = 1.0 / self.area as f32;
        edges.map(|e| e as f32 * scale)
    }
}

/// Calls `visit(pixel, sample, weights)` for every sample of the window inside the triangle.
pub(super) fn scan<const N: usize>(
    corners: [[i64; 2]; 3],
    samples: &[[i64; 2]; N],
    window: Window,
    mut visit: impl FnMut([usize; 2], usize, [f32; 3]),
) {
    let (mut min, mut max) = (window.min, window.max);
    for axis in 0..2 {
        // Pixels with a sample between the outermost corners.
        let [p, q, r] = corners.map(|c| c[axis]);
        let (first, last) = samples.iter().fold((UNITS, 0), |(f, l), s| (s[axis].min(f), s[axis].max(l)));
        let low = (p.min(q).min(r) - last + UNITS - 1).div_euclid(UNITS);
        let high = (p.max(q).max(r) - first).div_euclid(UNITS) + 1;
        min[axis] = min[axis].max(usize::try_from(low).unwrap_or(0));
        max[axis] = max[axis].min(usize::try_from(high).unwrap_or(0));
    }
    if min[0] >= max[0] || min[1] >= max[1] {
        return;
    }
    let Some(edges) = Edges::of(corners) else { return };
    // What the samples of a pixel add to the edges at its corner, and the most that any adds.
    let offsets = samples.map(|[x, y]| edges.lines.map(|[a, b, _]| a * x + b * y));
    let most = offsets.iter().fold([i64::MIN; 3], |m, o| [m[0].max(o[0]), m[1].max(o[1]), m[2].max(o[2])]);
    let least = edges.least;
    for y in min[1]..max[1] {
        let mut e = edges.at([min[0] as i64 * UNITS, y as i64 * UNITS]);
        for x in min[0]..max[0] {
            if (0..3).all(|k| e[k] + most[k] >= least[k]) {
                for (s, offset) in offsets.iter().enumerate() {
                    let here = [e[0] + offset[0], e[1] + offset[1], e[2] + offset[2]];
                    if here[0] >= least[0] && here[1] >= least[1] && here[2] >= least[2] {
                        visit([x, y], s, edges.weights(here));
                    }
                }
            }
            for k in 0..3 {
                e[k] += edges.lines[k][0] * UNITS;
            }
        }
    }
}

/// A triangle as the camera sees it.
#[derive(Clone, Copy, Debug)]
struct Projected {
    corners: [[i64; 2]; 3],
    /// 1/z of the corners \[1/m\].
    nearness: [f32; 3],
    normals: [Vec3; 3],
    coated: [Coated; 3],
    part: u32,
}

/// A corner before the camera: X right, Y up, Z away from it.
#[derive(Clone, Copy, Debug)]
struct Corner {
    place: Vec3,
    normal: Vec3,
    coated: Coated,
}

/// Triangles are cut where they leave the picture by more than this many of its heights and widths: whole numbers stay small.
const GUARD: f32 = 3.0;

/// Projects the surface, cut at the near plane and far beside the picture.
fn project(surface: &Surface, view: &View) -> Vec<Projected> {
    let coated = surface.coated.iter().copied().chain(std::iter::repeat(Coated::PLAIN));
    let corner = |(v, coated): (&Vertex, Coated)| Corner { place: view.before(v.position), normal: v.normal, coated };
    let corners: Vec<Corner> = surface.vertices.iter().zip(coated).map(corner).collect();
    // Inside is where all of these are positive: z beyond the near plane, and the four sides.
    let reach = view.reach() * GUARD;
    let sides =
        |p: Vec3| [p.z - view.near, reach.x * p.z - p.x, reach.x * p.z + p.x, reach.y * p.z - p.y, reach.y * p.z + p.y];
    let mut projected = Vec::with_capacity(surface.facets.len());
    for facet in &surface.facets {
        let triangle = facet.corners.map(|i| corners[i as usize]);
        let inside = triangle.map(|c| sides(c.place));
        if inside.iter().flatten().all(|d| *d >= 0.0) {
            projected.push(Projected::of(triangle, facet.part, view));
        } else if (0..5).all(|k| inside.iter().any(|d| d[k] >= 0.0)) {
            let mut polygon = triangle.to_vec();
            for k in 0..5 {
                polygon = cut(&polygon, |p| sides(p)[k]);
            }
            for k in 2..polygon.len() {
                projected.push(Projected::of([polygon[0], polygon[k - 1], polygon[k]], facet.part, view));
            }
        }
    }
    projected
}

/// The part of a convex polygon where `side` is not negative (Sutherland–Hodgman).
fn cut(polygon: &[Corner], side: impl Fn(Vec3) -> f32) -> Vec<Corner> {
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (k, &to) in polygon.iter().enumerate() {
        let from = polygon[(k + polygon.len() - 1) % polygon.len()];
        let (d_from, d_to) = (side(from.place), side(to.place));
        if (d_from >= 0.0) != (d_to >= 0.0) {
            let share = d_from / (d_from - d_to);
            kept.push(Corner {
                place: from.place.lerp(to.place, share),
                normal: from.normal.lerp(to.normal, share),
                coated: from.coated.lerp(to.coated, share),
            });
        }
        if d_to >= 0.0 {
            kept.push(to);
        }
    }
    kept
}

impl Projected {
    fn of(corners: [Corner; 3], part: u32, view: &View) -> Projected {
        let on_picture = corners.map(|c| view.pixel(c.place));
        // Seen from behind, a surface shows its other side.
        let [p, q, r] = on_picture;
        let behind = (q - p).perp_dot(r - p) > 0.0; // Y of the picture is down
        Projected {
            corners: on_picture.map(|p| snap(p.x, p.y)),
            nearness: corners.map(|c| 1.0 / c.place.z),
            normals: corners.map(|c| if behind { -c.normal } else { c.normal }),
            coated: corners.map(|c| c.coated),
            part,
        }
    }

    fn nearness(&self, weights: [f32; 3]) -> f32 {
        (0..3).map(|k| weights[k] * self.nearness[k]).sum()
    }

    /// The corners' weights on the triangle itself, by (3).
    fn on_triangle(&self, weights: [f32; 3]) -> [f32; 3] {
        let share = 1.0 / self.nearness(weights);
        std::array::from_fn(|k| weights[k] * self.nearness[k] * share)
    }

    /// The normal, not of unit length.
    fn normal(&self, weights: [f32; 3]) -> Vec3 {
        let weights = self.on_triangle(weights);
        (0..3).map(|k| self.normals[k] * weights[k]).sum()
    }

    /// What the coat has there.
    fn coated(&self, weights: [f32; 3]) -> Coated {
        let weights = self.on_triangle(weights);
        Coated {
            place: (0..3).map(|k| self.coated[k].place * weights[k]).sum(),
            tint: (0..3).map(|k| self.coated[k].tint * weights[k]).sum(),
        }
    }
}

/// Pixels on a side of a tile: its samples fit into the nearest caches.
const TILE: usize = 32;
/// No triangle.
const NONE: u32 = u32::MAX;

/// What the samples of a tile see.
struct Seen {
    nearness: Vec<f32>,
    facet: Vec<u32>,
}

/// Colours of pixels from what is seen there: how a part looks, and what is behind.
pub(super) trait Shade: Sync {
    /// The colour of a fragment.
    fn fragment(&self, fragment: &Fragment) -> Vec3;
    /// The colour behind everything at a place of the picture \[pixels\].
    fn behind(&self, x: f32, y: f32) -> Vec3;
    /// Colour and opacity of the coat of a part; `None`: it has none, and is opaque.
    fn coat(&self, _part: u32, _coated: Coated) -> Option<Vec4> {
        None
    }
    /// Whether anything behind a part may be seen through it.
    fn is_clear(&self, _part: u32) -> bool {
        false
    }
}

/// The picture, row by row. Of several surfaces a later one lies over the earlier ones, whatever their distance.
pub(super) fn draw(surfaces: &[Surface], view: &View, shade: &impl Shade) -> Vec<Vec3> {
    let [columns, rows] = [view.width, view.height].map(|length| length.div_ceil(TILE));
    let mut projected = Vec::new();
    let mut layers = Vec::new(); // where each surface begins
    for surface in surfaces {
        layers.push(projected.len() as u32);
        projected.extend(project(surface, view));
    }

    // The triangles that may touch each tile.
    let mut bins = vec![Vec::new(); columns * rows];
    let tile = |unit: i64, count: usize| unit.div_euclid(UNITS * TILE as i64).clamp(-1, count as i64);
    for (k, triangle) in projected.iter().enumerate() {
        let xs = triangle.corners.map(|c| tile(c[0], columns));
        let ys = triangle.corners.map(|c| tile(c[1], rows));
        let ends = |t: [i64; 3], count: usize| {
            let (low, high) = (t[0].min(t[1]).min(t[2]), t[0].max(t[1]).max(t[2]));
            low.max(0) as usize..(high + 1).clamp(0, count as i64) as usize
        };
        for row in ends(ys, rows) {
            for column in ends(xs, columns) {
                bins[row * columns + column].push(k as u32);
            }
        }
    }

    let tiles: Vec<usize> = (0..bins.len()).collect();
    let drawn = on_all_cores(&tiles, |&k| {
        let min = [k % columns * TILE, k / columns * TILE];
        let window = Window { min, max: [(min[0] + TILE).min(view.width), (min[1] + TILE).min(view.height)] };
        let seen = see(&projected, &bins[k], &layers, window, shade);
        resolve(&projected, &seen, window, view, shade)
    });

    let mut picture = vec![Vec3::ZERO; view.width * view.height];
    for (k, pixels) in drawn.iter().enumerate() {
        let (x, y) = (k % columns * TILE, k / columns * TILE);
        let width = TILE.min(view.width - x);
        for (row, line) in pixels.chunks_exact(width).enumerate() {
            picture[(y + row) * view.width + x..][..width].copy_from_slice(line);
        }
    }
    picture
}

/// The nearest triangle at every sample of a tile.
///
/// What is partly clear hides as many samples of a pixel as its opacity says, each time others: no order has to be found.
fn see(projected: &[Projected], bin: &[u32], layers: &[u32], window: Window, shade: &impl Shade) -> Option<Seen> {
    if bin.is_empty() {
        return None;
    }
    let mut seen = Seen { nearness: vec![0.0; TILE * TILE * SAMPLES], facet: vec![NONE; TILE * TILE * SAMPLES] };
    let mut layer = 0;
    for &k in bin {
        let here = layers.partition_point(|first| *first <= k) - 1;
        if here != layer {
            layer = here;
            seen.nearness.fill(0.0); // what comes now lies over everything
        }
        let triangle = &projected[k as usize];
        let clear = shade.is_clear(triangle.part);
        scan(triangle.corners, &PATTERN, window, |[x, y], sample, weights| {
            let at = ((y - window.min[1]) * TILE + (x - window.min[0])) * SAMPLES + sample;
            let nearness = triangle.nearness(weights);
            let opacity = |t: &Projected| shade.coat(t.part, t.coated(weights)).map_or(1.0, |coat| coat.w);
            if nearness > seen.nearness[at] && (!clear || opacity(triangle) > threshold([x, y], sample, triangle.part))
            {
                (seen.nearness[at], seen.facet[at]) = (nearness, k);
            }
        });
    }
    Some(seen)
}

/// From 0 to 1: in each pixel every sample has another, and every part another order.
fn threshold([x, y]: [usize; 2], sample: usize, part: u32) -> f32 {
    let mixed =
        (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77) ^ part.wrapping_mul(0xc2b2_ae3d);
    let turn = (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d) >> 28;
    ((sample as u32 * 7 + turn) % SAMPLES as u32) as f32 / SAMPLES as f32 + 0.5 / SAMPLES as f32
}

/// Colours the pixels of a tile.
fn resolve(projected: &[Projected], seen: &Option<Seen>, window: Window, view: &View, shade: &impl Shade) -> Vec<Vec3> {
    let mut pixels = Vec::with_capacity(TILE * TILE);
    let mut fragments: Vec<Fragment> = Vec::with_capacity(SAMPLES);
    for y in window.min[1]..window.max[1] {
        for x in window.min[0]..window.max[0] {
            fragments.clear();
            if let Some(seen) = seen {
                let at = ((y - window.min[1]) * TILE + (x - window.min[0])) * SAMPLES;
                gather(projected, &seen.facet[at..][..SAMPLES], [x, y], view, shade, &mut fragments);
            }
            let covered: u32 = fragments.iter().map(|f| f.count).sum();
            let mut colour: Vec3 = fragments.iter().map(|f| shade.fragment(f) * f.count as f32).sum();
            if covered < SAMPLES as u32 {
                colour += shade.behind(x as f32 + 0.5, y as f32 + 0.5) * (SAMPLES as u32 - covered) as f32;
            }
            pixels.push(colour / SAMPLES as f32);
        }
    }
    pixels
}

/// Averages what the samples of a pixel see of each part.
fn gather(
    projected: &[Projected],
    facets: &[u32],
    pixel: [usize; 2],
    view: &View,
    shade: &impl Shade,
    fragments: &mut Vec<Fragment>,
) {
    for (sample, &k) in facets.iter().enumerate() {
        if k == NONE {
            continue;
        }
        let triangle = &projected[k as usize];
        let Some(edges) = Edges::of(triangle.corners) else { continue };
        let point: [i64; 2] = std::array::from_fn(|axis| pixel[axis] as i64 * UNITS + PATTERN[sample][axis]);
        let weights = edges.weights(edges.at(point));
        let [x, y] = point.map(|v| v as f32 / UNITS as f32);
        let position = view.eye + view.ray(x, y) / triangle.nearness(weights);
        let normal = triangle.normal(weights);
        let tint = shade.coat(triangle.part, triangle.coated(weights)).map_or(Vec3::ONE, |coat| coat.truncate());
        match fragments.iter_mut().find(|f| f.part == triangle.part) {
            Some(fragment) => {
                fragment.position += position;
                fragment.normal += normal;
                fragment.tint += tint;
                fragment.count += 1;
            }
            None => fragments.push(Fragment { part: triangle.part, position, normal, tint, count: 1 }),
        }
    }
    for fragment in fragments {
        fragment.position /= fragment.count as f32;
        fragment.tint /= fragment.count as f32;
        fragment.normal = fragment.normal.try_normalize().unwrap_or(-view.forward);
    }
}

#[cfg(test)]
mod tests {
    use super::super::camera::{Ball, Camera};
    use super::*;
    use std::collections::BTreeMap;

    const CENTRE: [[i64; 2]; 1] = [[128, 128]];

    fn pixels(corners: [[f32; 2]; 3], size: usize) -> Vec<[usize; 2]> {
        let mut found = Vec::new();
        let window = Window { min: [0, 0], max: [size, size] };
        scan(corners.map(|[x, y]| snap(x, y)), &CENTRE, window, |pixel, _, weights| {
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6 && weights.iter().all(|w| *w >= 0.0));
            found.push(pixel);
        });
        found
    }

    #[test]
    fn a_triangle_covers_the_exact_pixels() {
        // Middles with x + y < 4; those on the long edge belong to the triangle on its other side.
        let upper = pixels([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 8);
        assert_eq!(upper, [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [0, 2]]);
        let lower = pixels([[4.0, 0.0], [4.0, 4.0], [0.0, 4.0]], 8);
        assert_eq!(lower, [[3, 0], [2, 1], [3, 1], [1, 2], [2, 2], [3, 2], [0, 3], [1, 3], [2, 3], [3, 3]]);
        // Either way round; partly beside the window; without an area.
        assert_eq!(pixels([[0.0, 4.0], [4.0, 0.0], [0.0, 0.0]], 8), upper);
        assert_eq!(pixels([[-9.0, -9.0], [9.0, -9.0], [-9.0, 9.0]], 2), [[0, 0]; 0]);
        assert_eq!(pixels([[-9.0, -9.0], [19.0, -9.0], [-9.0, 19.0]], 2).len(), 4);
        assert!(pixels([[1.0, 1.0], [5.0, 5.0], [3.0, 3.0]], 8).is_empty());
    }

    /// Numbers from 0 to 1 that look random.
    fn noise(seed: &mut u64) -> f32 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 40) as f32 / (1u64 << 24) as f32
    }

    #[test]
    fn a_fan_covers_every_sample_once() {
        let mut seed = 1;
        for _ in 0..50 {
            // A square cut into four triangles at a point inside it.
            let middle = [8.0 * noise(&mut seed), 8.0 * noise(&mut seed)].map(|v| v + 4.0);
            let corners = [[2.5, 2.5], [13.5, 2.5], [13.5, 13.5], [2.5, 13.5]];
            let mut hits = BTreeMap::new();
            for k in 0..4 {
                let triangle = [corners[k], corners[(k + 1) % 4], middle].map(|[x, y]| snap(x, y));
                scan(triangle, &PATTERN, Window { min: [0, 0], max: [16, 16] }, |pixel, sample, _| {
                    *hits.entry((pixel, sample)).or_insert(0) += 1;
                });
            }
            assert_eq!(hits.len(), 11 * 11 * SAMPLES);
            assert!(hits.values().all(|n| *n == 1));
        }
    }

    /// Parts in their own grey, nothing black.
    struct Greys<'a>(&'a [f32]);

    impl Shade for Greys<'_> {
        fn fragment(&self, fragment: &Fragment) -> Vec3 {
            Vec3::splat(self.0[fragment.part as usize])
        }
        fn behind(&self, _: f32, _: f32) -> Vec3 {
            Vec3::ZERO
        }
    }

    /// A camera at the origin that looks along −Z: a picture of 64 × 48, one metre at one metre is 40 pixels.
    fn view() -> View {
        View {
            width: 64,
            height: 48,
            eye: Vec3::ZERO,
            right: Vec3::X,
            up: Vec3::Y,
            forward: Vec3::NEG_Z,
            focal: 40.0,
            near: 0.1,
        }
    }

    fn surface(triangles: &[[Vec3; 3]]) -> Surface {
        let mut surface = Surface::default();
        for (part, corners) in triangles.iter().enumerate() {
            let first = surface.vertices.len() as u32;
            surface.vertices.extend(corners.map(|position| Vertex { position, normal: Vec3::Z }));
            surface.facets.push(Facet { corners: [first, first + 1, first + 2], part: part as u32 });
        }
        surface
    }

    /// A triangle that fills the view at this distance.
    fn wall(distance: f32) -> [Vec3; 3] {
        [[-9.0, -9.0], [9.0, -9.0], [0.0, 9.0]].map(|[x, y]| Vec3::new(x * distance, y * distance, -distance))
    }

    #[test]
    fn the_nearer_hides_the_farther_in_any_order() {
        let greys = Greys(&[0.25, 0.75]);
        let near_first = draw(&[surface(&[wall(1.0), wall(2.0)])], &view(), &greys);
        let far_first = draw(&[surface(&[wall(2.0), wall(1.0)])], &view(), &greys);
        assert!(near_first.iter().all(|c| c.x == 0.25));
        assert!(far_first.iter().all(|c| c.x == 0.75));
        // A later surface lies over an earlier one, however far it is.
        let layers = [surface(&[wall(1.0)]), surface(&[wall(9.0)])];
        let mut over = layers.clone();
        over[1].facets[0].part = 1;
        assert!(draw(&over, &view(), &greys).iter().all(|c| c.x == 0.75));
        // Two that cut each other show the nearer at each place: they meet in the middle column.
        let slanted =
            |sign: f32| [[-9.0, -9.0], [9.0, -9.0], [0.0, 9.0]].map(|[x, y]| Vec3::new(x, y, -10.0 + sign * 0.5 * x));
        let cut = draw(&[surface(&[slanted(1.0), slanted(-1.0)])], &view(), &greys);
        let row = &cut[24 * 64..][..64];
        assert!(row[16..31].iter().all(|c| c.x == 0.75) && row[33..48].iter().all(|c| c.x == 0.25));
    }

    #[test]
    fn triangles_are_cut_at_the_near_plane() {
        // A floor 1 m below the camera, from 20 m before it to 20 m behind it, and far to both sides.
        let floor = |z: f32| [Vec3::new(-50.0, -1.0, -20.0), Vec3::new(50.0, -1.0, -20.0), Vec3::new(0.0, -1.0, z)];
        let greys = Greys(&[1.0]);
        let drawn = draw(&[surface(&[floor(20.0)])], &view(), &greys);
        // It ends at its far edge, 40 · 1 / 20 = 2 pixels below the horizon, and fills all rows below.
        for (k, colour) in drawn.iter().enumerate() {
            let expected = if k / 64 >= 26 { 1.0 } else { 0.0 };
            assert!((colour.x - expected).abs() < 1e-6, "pixel {} {}: {}", k % 64, k / 64, colour.x);
        }
        // What is behind the camera or between it and the near plane is not seen.
        for z in [1.0, -0.05] {
            let hidden = wall(1.0).map(|p| p.with_z(z));
            assert!(draw(&[surface(&[hidden])], &view(), &greys).iter().all(|c| c.x == 0.0));
        }
    }

    #[test]
    fn what_is_linear_on_the_triangle_is_interpolated_in_perspective() {
        // Normals that are a linear function of place, on a triangle that goes far into the picture.
        let field = |p: Vec3| Vec3::new(1.0 + 0.3 * p.x, 2.0 - 0.2 * p.z, 0.5 * p.y + 0.1 * p.z);
        let corners = [Vec3::new(-1.0, -0.6, -1.2), Vec3::new(1.0, -0.8, -1.5), Vec3::new(0.3, 2.0, -12.0)];
        let view = view();
        let triangle = Projected::of(
            corners.map(|p| Corner { place: view.before(p), normal: field(p), coated: Coated::PLAIN }),
            0,
            &view,
        );
        let across = (corners[1] - corners[0]).cross(corners[2] - corners[0]);
        let edges = Edges::of(triangle.corners).unwrap();
        let (mut seen, mut worst) = (0, 0.0f32);
        scan(triangle.corners, &CENTRE, Window { min: [0, 0], max: [64, 48] }, |[x, y], _, weights| {
            let ray = view.ray(x as f32 + 0.5, y as f32 + 0.5);
            let point = ray * (across.dot(corners[0]) / across.dot(ray));
            worst = worst.max((triangle.normal(weights) - field(point)).length() / field(point).length());
            assert!((1.0 / triangle.nearness(weights) + point.z).abs() < 0.02 * -point.z);
            seen += 1;
        });
        assert!(edges.area > 0 && seen > 100, "{seen}");
        // Corners are moved by up to 1/512 of a pixel, and where z grows by 8 % a pixel that is 2e-4 of it.
        assert!(worst < 2e-3, "{worst}");
    }

    #[test]
    fn edges_are_covered_in_part() {
        let view = view();
        let at = |x: f32, y: f32| Vec3::new((x - 32.0) / 40.0, (24.0 - y) / 40.0, -1.0);
        // A slanting triangle: the sum over the pixels is its area, to what sixteen samples tell of its 90 pixels of edge.
        let corners = [[5.3, 4.1], [58.7, 11.9], [20.2, 44.6]];
        let drawn = draw(&[surface(&[corners.map(|[x, y]| at(x, y))])], &view, &Greys(&[1.0]));
        let sum: f32 = drawn.iter().map(|c| c.x).sum();
        let [p, q, r] = corners;
        let area = 0.5 * ((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])).abs();
        assert!((sum - area).abs() < 1.0, "{sum} {area}");
        let partly = drawn.iter().filter(|c| c.x > 0.0 && c.x < 1.0).count();
        assert!((100..200).contains(&partly), "{partly}");
        // An upright edge at a quarter of a pixel leaves three quarters, and so an eighth: all steps of a sixteenth are there.
        for sixteenths in 0..=16 {
            let left = 20.0 + sixteenths as f32 / 16.0;
            let half = [[left, -500.0], [left, 500.0], [900.0, 0.0]];
            let drawn = draw(&[surface(&[half.map(|[x, y]| at(x, y))])], &view, &Greys(&[1.0]));
            let expected = 1.0 - sixteenths as f32 / 16.0;
            assert!((drawn[24 * 64 + 20].x - expected).abs() < 1e-6, "{sixteenths}: {}", drawn[24 * 64 + 20].x);
        }
    }

    #[test]
    fn positions_and_sides_are_those_of_the_surface() {
        /// Checks fragments instead of colouring them.
        struct Check;
        impl Shade for Check {
            fn fragment(&self, fragment: &Fragment) -> Vec3 {
                assert!((fragment.position.z + 2.0).abs() < 1e-4, "{fragment:?}");
                assert!(fragment.normal.z > 0.999, "{fragment:?}");
                Vec3::ONE
            }
            fn behind(&self, _: f32, _: f32) -> Vec3 {
                Vec3::ZERO
            }
        }
        // From behind, a surface shows its other side.
        let (front, mut back) = (surface(&[wall(2.0)]), surface(&[wall(2.0)]));
        back.facets[0].corners.reverse();
        back.vertices.iter_mut().for_each(|v| v.normal = Vec3::NEG_Z);
        for one in [front, back] {
            assert!(draw(&[one], &view(), &Check).iter().all(|c| c.x == 1.0));
        }
    }

    #[test]
    fn a_fitted_view_holds_what_it_must() {
        let mut seed = 7;
        for [width, height] in [[64, 48], [30, 90], [200, 40]] {
            let balls: Vec<Ball> = (0..40)
                .map(|_| {
                    let centre = Vec3::from_array([(); 3].map(|()| 4.0 * noise(&mut seed) - 2.0));
                    Ball { centre, radius: 0.3 * noise(&mut seed) }
                })
                .collect();
            let view = Camera::default().fit(&balls, width, height);
            let (mut widest, mut highest) = (0.0f32, 0.0f32);
            for ball in &balls {
                let place = view.before(ball.centre);
                assert!(place.z > ball.radius);
                // The outermost point of a ball towards each side of the picture.
                let reach = view.reach();
                for (x, reach, most) in [(place.x, reach.x, &mut widest), (place.y, reach.y, &mut highest)] {
                    let outermost = (x.abs() + ball.radius * (1.0 + reach * reach).sqrt()) / (reach * place.z);
                    *most = most.max(outermost);
                }
            }
            let fullest = widest.max(highest);
            // 86 % of one side; the bound of a ball at the middle's slope is a little wide.
            assert!((0.84..0.90).contains(&fullest), "{width}x{height}: {widest} {highest}");
        }
    }
}
