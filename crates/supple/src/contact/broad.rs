//! Boxes in a tree: which of them overlap.
//!
//! The leaves are in the order of their places on a space-filling curve (Morton's), the tree above is balanced and has no pointers:
//! node k has children 2k and 2k + 1. It is made anew in a step, in time n log n, and asks for no memory when it has been as large before.

use glam::DVec3;

/// A box along the axes; empty when `min > max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) min: DVec3,
    pub(super) max: DVec3,
}

impl Bounds {
    pub(super) const EMPTY: Bounds = Bounds { min: DVec3::INFINITY, max: DVec3::NEG_INFINITY };

    pub(super) fn around(centre: DVec3, half: DVec3) -> Bounds {
        Bounds { min: centre - half, max: centre + half }
    }

    pub(super) fn of(points: impl IntoIterator<Item = DVec3>) -> Bounds {
        points.into_iter().fold(Bounds::EMPTY, |b, p| Bounds { min: b.min.min(p), max: b.max.max(p) })
    }

    pub(super) fn with(&self, other: &Bounds) -> Bounds {
        Bounds { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(super) fn overlaps(&self, other: &Bounds) -> bool {
        self.min.cmple(other.max).all() && other.min.cmple(self.max).all()
    }

    pub(super) fn centre(&self) -> DVec3 {
        (self.min + self.max) * 0.5
    }

    pub(super) fn half(&self) -> DVec3 {
        (self.max - self.min) * 0.5
    }
}

/// A balanced tree of boxes.
#[derive(Debug, Default)]
pub(super) struct BoxTree {
    /// By leaf: place on the curve and item.
    leaves: Vec<(u64, u32)>,
    /// Nodes from 1; the leaves are the last half, filled up with empty boxes.
    nodes: Vec<Bounds>,
}

impl BoxTree {
    /// Makes the tree of these boxes; items are known by their index.
    pub(super) fn build(&mut self, boxes: &[Bounds]) {
        let all = boxes.iter().fold(Bounds::EMPTY, |all, b| all.with(b));
        // 21 bits along each axis.
        let scale = (all.max - all.min).max(DVec3::splat(1e-300)).recip() * f64::from((1u32 << 21) - 1);
        self.leaves.clear();
        self.leaves.extend(boxes.iter().enumerate().map(|(k, b)| {
            let place = (b.centre() - all.min) * scale;
            (spread(place.x) | spread(place.y) << 1 | spread(place.z) << 2, k as u32)
        }));
        self.leaves.sort_unstable();
        let width = boxes.len().next_power_of_two();
        self.nodes.clear();
        self.nodes.resize(2 * width, Bounds::EMPTY);
        for (leaf, &(_, item)) in self.leaves.iter().enumerate() {
            self.nodes[width + leaf] = boxes[item as usize];
        }
        for k in (1..width).rev() {
            self.nodes[k] = self.nodes[2 * k].with(&self.nodes[2 * k + 1]);
        }
    }

    /// Calls `each` with every item whose box overlaps `bounds`.
    pub(super) fn overlapping(&self, bounds: &Bounds, mut each: impl FnMut(u32)) {
        let width = self.nodes.len() / 2;
        if self.leaves.is_empty() {
            return;
        }
        // One open sibling a level, and no more levels than bits in an index.
        let mut stack = [0usize; 40];
        let mut open = 1;
        stack[0] = 1;
        while open > 0 {
            open -= 1;
            let k = stack[open];
            if !self.nodes[k].overlaps(bounds) {
                continue;
            }
            if k >= width {
                each(self.leaves[k - width].1);
            } else {
                stack[open] = 2 * k + 1;
                stack[open + 1] = 2 * k;
                open += 2;
            }
        }
    }
}

/// Puts two zeros between the lowest 21 bits of a number.
fn spread(x: f64) -> u64 {
    let x = (x as u64) & 0x1f_ffff; // what is not a number becomes 0
    let x = (x | x << 32) & 0x1f00000000ffff;
    let x = (x | x << 16) & 0x1f0000ff0000ff;
    let x = (x | x << 8) & 0x100f00f00f00f00f;
    let x = (x | x << 4) & 0x10c30c30c30c30c3;
    (x | x << 2) & 0x1249249249249249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_finds_what_a_search_through_all_finds() {
        let mut tree = BoxTree::default();
        for count in [0usize, 1, 2, 3, 17, 200] {
            let boxes: Vec<Bounds> = (0..count)
                .map(|k| {
                    let t = k as f64;
                    let centre = DVec3::new((12.9 * t).sin(), (78.2 * t).sin(), (37.7 * t).sin()) * 5.0;
                    Bounds::around(centre, DVec3::new(0.1, 0.5, 0.3) * (1.5 + (3.3 * t).sin()))
                })
                .collect();
            tree.build(&boxes);
            for probe in &boxes {
                let mut found = Vec::new();
                tree.overlapping(probe, |k| found.push(k as usize));
                found.sort_unstable();
                let all: Vec<usize> = (0..count).filter(|&k| boxes[k].overlaps(probe)).collect();
                assert_eq!(found, all);
            }
        }
    }
}
