//! The points that touch, given the direction: faces and edges that look at each other, clipped; at most four kept.

use super::convex::{MOST_CORNERS, Patch, Placed};
use super::distance::Axis;
use glam::DVec3;

/// A place where two shapes touch or may touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Unit vector from b to a.
    pub(super) normal: DVec3,
    /// On the two surfaces.
    pub(super) on_a: DVec3,
    pub(super) on_b: DVec3,
    /// Along the normal \[m\].
    pub(super) gap: f64,
    pub(super) feature: u32,
    /// Distinguishes spots of one feature on a surface; 0 elsewhere.
    pub(super) place: u32,
}

/// Whether the nearest pair of points is added when no corner is as near.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Nearest {
    Add,
    Leave,
}

/// Normals within this angle \[rad\] are those of a face that lies flat.
const FLAT: f64 = 2e-4;
/// A corner counts as nearest when it is at most this part of the smaller shape farther.
const AS_NEAR: f64 = 1e-4;

// The kinds of feature, in the upper two bits: first those that stay with a body as it slides.
const CORNER_OF_A: u32 = 0;
const CORNER_OF_B: u32 = 1 << 30;
const CROSSING: u32 = 2 << 30;
const POINTS: u32 = 3 << 30;

/// Whether a feature is a corner of side a alone, wherever it touches.
pub(super) fn is_corner_of_a(feature: u32) -> bool {
    feature >> 30 == 0
}

/// The feature seen with the sides exchanged.
pub(super) fn exchanged(feature: u32) -> u32 {
    match feature >> 30 {
        0 => feature | CORNER_OF_B,
        1 => feature & !CORNER_OF_B,
        _ => feature & POINTS | (feature & 0x7fff) << 15 | feature >> 15 & 0x7fff,
    }
}

/// How far two shapes may come within a part.
#[derive(Clone, Copy)]
pub(super) struct Margin {
    /// Towards each other \[m\].
    pub(super) gap: f64,
    /// Against each other \[rad\]: what is flat to within this may come to lie flat.
    pub(super) turn: f64,
}

/// Appends the spots of two cores thickened by `rounding` that are not farther apart than `margin`.
pub(super) fn spots(
    (a, b): (&Placed<'_>, &Placed<'_>),
    axis: &Axis,
    rounding: [f64; 2],
    margin: Margin,
    nearest: Nearest,
    out: &mut Vec<Spot>,
) {
    let start = out.len();
    let n = axis.normal;
    let flat = |normal: Option<DVec3>, n: DVec3| {
        normal.is_some_and(|m| m.dot(n) > 0.0 && m.cross(n).length() < FLAT + margin.turn)
    };
    let (patch_a, patch_b) = (a.patch(-n), b.patch(n));
    if flat(patch_b.normal, n) {
        clip(&patch_b, &patch_a, n, |on_b, on_a, i, k| {
            let feature = if k == NONE { CORNER_OF_A | i } else { crossing(i, k) };
            out.push(Spot { normal: n, on_a, on_b, gap: n.dot(on_a - on_b), feature, place: 0 });
        });
    } else if flat(patch_a.normal, -n) {
        clip(&patch_a, &patch_b, -n, |on_a, on_b, i, k| {
            let feature = if k == NONE { CORNER_OF_B | i } else { crossing(k, i) };
            out.push(Spot { normal: n, on_a, on_b, gap: n.dot(on_a - on_b), feature, place: 0 });
        });
    } else if let (Some(e), Some(f)) = (a.edge(-n), b.edge(n)) {
        along_edges(e, f, n, margin.turn, out);
    }
    let least = out[start..].iter().map(|s| s.gap).fold(f64::INFINITY, f64::min);
    let tolerance = AS_NEAR * a.size.min(b.size).max(0.01 * (rounding[0] + rounding[1]));
    if nearest == Nearest::Add && least > axis.gap + tolerance {
        // There is one nearest pair. What it lies on is not told: where it is an edge, either end may be named from step to step.
        let feature = POINTS;
        // On curved shapes the points are found less sharply than the gap: put them that far apart.
        let (middle, half) = ((axis.on_a + axis.on_b) * 0.5, n * (0.5 * axis.gap));
        out.push(Spot { normal: n, on_a: middle + half, on_b: middle - half, gap: axis.gap, feature, place: 0 });
    }
    thicken(n, rounding, margin.gap, start, out);
}

/// Appends the spots of a core above the plane through `origin` with normal `n`, which is side b.
pub(super) fn spots_on_plane(a: &Placed<'_>, origin: DVec3, n: DVec3, rounding: f64, margin: f64, out: &mut Vec<Spot>) {
    let start = out.len();
    let mut push = |on_a: DVec3, feature: u32| {
        let gap = n.dot(on_a - origin);
        out.push(Spot { normal: n, on_a, on_b: on_a - n * gap, gap, feature, place: 0 });
    };
    for &(p, id) in a.patch(-n).corners() {
        push(p, CORNER_OF_A | id);
    }
    let (low, id) = a.support(-n);
    push(low, CORNER_OF_A | id);
    // The farthest point is one of the corners, or it is as near as none of them.
    let last = out.len() - 1;
    if out[start..last].iter().any(|s| s.gap <= out[last].gap + AS_NEAR * a.size) {
        out.pop();
    }
    thicken(n, [rounding, 0.0], margin, start, out);
}

/// From cores to surfaces; drops what is too far.
fn thicken(n: DVec3, rounding: [f64; 2], margin: f64, start: usize, out: &mut Vec<Spot>) {
    let mut kept = start;
    for k in start..out.len() {
        let Spot { on_a, on_b, .. } = out[k];
        let gap = out[k].gap - rounding[0] - rounding[1];
        if gap <= margin {
            out[kept] = Spot { on_a: on_a - n * rounding[0], on_b: on_b + n * rounding[1], gap, ..out[k] };
            kept += 1;
        }
    }
    out.truncate(kept);
}

const NONE: u32 = u32::MAX;

fn crossing(a: u32, b: u32) -> u32 {
    CROSSING | (a & 0x7fff) << 15 | b & 0x7fff
}

/// Clips the patch `other` to the prism over the face `face`, whose normal is nearly `n`. Calls `spot` with the point on the face,
/// the point of the other, the other's corner or the corner its edge starts at, and the corner that the face's edge starts at or `NONE`.
fn clip(face: &Patch, other: &Patch, n: DVec3, mut spot: impl FnMut(DVec3, DVec3, u32, u32)) {
    const MOST: usize = 2 * MOST_CORNERS;
    let (mut ring, mut count) = ([(DVec3::ZERO, 0u32, NONE); MOST], other.count);
    for (to, &(p, id)) in ring.iter_mut().zip(other.corners()) {
        *to = (p, id, NONE);
    }
    let corners = face.corners();
    let extent = corners.iter().map(|c| c.0.distance(corners[0].0)).fold(0.0, f64::max);
    let slack = 1e-9 * extent; // metres: points on the border belong to the face
    for k in 0..corners.len() {
        let ((p, id), (q, _)) = (corners[k], corners[(k + 1) % corners.len()]);
        let Some(inward) = n.cross(q - p).try_normalize() else { continue };
        let depth = |x: DVec3| inward.dot(x - p);
        let (old, m) = (ring, count);
        count = 0;
        for i in 0..m {
            let (x, y) = (old[i], old[(i + 1) % m]);
            let (dx, dy) = (depth(x.0), depth(y.0));
            let mut push = |corner: (DVec3, u32, u32)| {
                if count < MOST {
                    ring[count] = corner;
                    count += 1;
                }
            };
            if dx >= -slack {
                push(x);
            }
            // A ring of two corners is one edge, not two.
            if (dx < -slack) != (dy < -slack) && !(m == 2 && i == 1) && m > 1 {
                push((x.0 + (y.0 - x.0) * (dx / (dx - dy)).clamp(0.0, 1.0), x.1, id));
            }
        }
        if count == 0 {
            return;
        }
    }
    let normal = face.normal.unwrap_or(n);
    for &(x, i, k) in &ring[..count] {
        // Along n down to the face's plane.
        let gap = normal.dot(x - corners[0].0) / normal.dot(n);
        spot(x - n * gap, x, i, k);
    }
}

/// Two spots at the ends of what two edges share that are nearly parallel, or may be after a turn. Edges that cross leave the nearest points to the caller.
fn along_edges(e: [(DVec3, u32); 2], f: [(DVec3, u32); 2], n: DVec3, turn: f64, out: &mut Vec<Spot>) {
    let (u, v) = (e[1].0 - e[0].0, f[1].0 - f[0].0);
    let (lu, lv) = (u.length(), v.length());
    if lu == 0.0 || lv == 0.0 {
        return;
    }
    let (du, dv) = (u / lu, v / lv);
    // Square to the normal and parallel, to about a degree.
    let enough = 0.02 + turn;
    if du.dot(n).abs() > enough || dv.dot(n).abs() > enough || du.cross(dv).length() > enough {
        return;
    }
    let along = |p: DVec3| (p - e[0].0).dot(du);
    let (mut low, mut high) = ((along(f[0].0), 0), (along(f[1].0), 1));
    if low.0 > high.0 {
        (low, high) = (high, low);
    }
    let (from, to) = (low.0.max(0.0), high.0.min(lu));
    if to - from <= 1e-6 * lu.min(lv) {
        return;
    }
    for (s, end) in [(from, 0u32), (to, 1)] {
        let on_a = e[0].0 + du * s;
        let on_b = f[0].0 + dv * ((on_a - f[0].0).dot(dv)).clamp(0.0, lv);
        let id = |ends: [(DVec3, u32); 2]| (ends[0].1 * 151 + ends[1].1) & 0x3fff;
        let feature = CROSSING | (id(e) << 1 | end) << 15 | id(f);
        out.push(Spot { normal: n, on_a, on_b, gap: n.dot(on_a - on_b), feature, place: 0 });
    }
}

/// Keeps at most four of the spots from `start` on: the deepest, and those that span the largest area. Leaves them in the order of
/// their features.
pub(super) fn reduce(start: usize, out: &mut Vec<Spot>) {
    let all = &mut out[start..];
    all.sort_unstable_by(|p, q| (p.feature, p.place).cmp(&(q.feature, q.place)).then(p.gap.total_cmp(&q.gap)));
    if all.len() <= 2 {
        return;
    }
    let n = all[0].normal;
    let spread = all.iter().map(|s| s.on_a.distance(all[0].on_a)).fold(0.0, f64::max);
    let least = all.iter().map(|s| s.gap).fold(f64::INFINITY, f64::min);
    // Of those that are as good the first: the same ones from step to step.
    let best = |score: &dyn Fn(&Spot) -> f64, slack: f64| {
        let most = all.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        all.iter().position(|s| score(s) >= most - slack).map(|k| (k, most))
    };
    let flat = 1e-6 * spread * spread;
    let mut kept = [usize::MAX; 4];
    let mut count = 0;
    let mut keep = |k: usize| {
        kept[count] = k;
        count += 1;
    };
    let deepest = all.iter().position(|s| s.gap <= least + 1e-5 * spread);
    if let Some(k) = deepest {
        let p = all[k].on_a;
        keep(k);
        if let Some((k, far)) = best(&|s| s.on_a.distance(p), 1e-6 * spread)
            && far > 1e-6 * spread
        {
            let q = all[k].on_a;
            keep(k);
            let area = |p: DVec3, q: DVec3, s: &Spot| n.dot((q - p).cross(s.on_a - p));
            if let Some((k, most)) = best(&|s| area(p, q, s).abs(), flat)
                && most > flat
            {
                let mut r = all[k].on_a;
                let (mut p, q) = (p, q);
                keep(k);
                // Counter-clockwise, so that areas beyond an edge are negative.
                if area(p, q, &all[k]) < 0.0 {
                    std::mem::swap(&mut p, &mut r);
                }
                let beyond = |s: &Spot| -area(p, q, s).min(area(q, r, s)).min(area(r, p, s));
                if let Some((k, most)) = best(&beyond, flat)
                    && most > flat
                {
                    keep(k);
                }
            }
        }
    }
    let kept = &mut kept[..count];
    kept.sort_unstable();
    for (to, &from) in kept.iter().enumerate() {
        out[start + to] = out[start + from];
    }
    out.truncate(start + count);
}
