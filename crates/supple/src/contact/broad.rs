//! Boxes in a tree: which of them overlap.
//!
//! Halves are split off across the longest side until one box is left; the tree is balanced and has no pointers: node k has children 2k
//! and 2k + 1. It is made anew in a step, in time n log n, and asks for no memory when it has been as large before.

use glam::DVec3;

/// A box along the axes; empty when `min > max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) min: DVec3,
    pub(crate) max: DVec3,
}

impl Bounds {
    pub(crate) const EMPTY: Bounds = Bounds { min: DVec3::INFINITY, max: DVec3::NEG_INFINITY };

    pub(crate) fn around(centre: DVec3, half: DVec3) -> Bounds {
        Bounds { min: centre - half, max: centre + half }
    }

    pub(crate) fn of(points: impl IntoIterator<Item = DVec3>) -> Bounds {
        points.into_iter().fold(Bounds::EMPTY, |b, p| Bounds { min: b.min.min(p), max: b.max.max(p) })
    }

    pub(crate) fn with(&self, other: &Bounds) -> Bounds {
        Bounds { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(crate) fn overlaps(&self, other: &Bounds) -> bool {
        self.min.cmple(other.max).all() && other.min.cmple(self.max).all()
    }

    pub(crate) fn centre(&self) -> DVec3 {
        (self.min + self.max) * 0.5
    }

    pub(crate) fn half(&self) -> DVec3 {
        (self.max - self.min) * 0.5
    }
}

/// A balanced tree of boxes.
#[derive(Debug, Default)]
pub(crate) struct BoxTree {
    /// The items with the middles of their boxes, in the order of the leaves.
    items: Vec<(DVec3, u32)>,
    /// By leaf: the item, or `NONE`.
    leaves: Vec<u32>,
    /// Nodes from 1; the leaves are the last half.
    nodes: Vec<Bounds>,
}

const NONE: u32 = u32::MAX;

impl BoxTree {
    /// Makes the tree of these boxes; items are known by their index.
    pub(crate) fn build(&mut self, boxes: &[Bounds]) {
        let width = boxes.len().next_power_of_two();
        self.items.clear();
        self.items.extend(boxes.iter().enumerate().map(|(k, b)| (b.centre(), k as u32)));
        self.leaves.clear();
        self.leaves.resize(width, NONE);
        halve(&mut self.items, &mut self.leaves);
        self.nodes.clear();
        self.nodes.resize(2 * width, Bounds::EMPTY);
        for (k, &item) in self.leaves.iter().enumerate() {
            if item != NONE {
                self.nodes[width + k] = boxes[item as usize];
            }
        }
        for k in (1..width).rev() {
            self.nodes[k] = self.nodes[2 * k].with(&self.nodes[2 * k + 1]);
        }
    }

    /// The same tree with the boxes of the same items moved.
    pub(crate) fn refit(&mut self, boxes: &[Bounds]) {
        let width = self.leaves.len();
        for (k, &item) in self.leaves.iter().enumerate() {
            if item != NONE {
                self.nodes[width + k] = boxes[item as usize];
            }
        }
        for k in (1..width).rev() {
            self.nodes[k] = self.nodes[2 * k].with(&self.nodes[2 * k + 1]);
        }
    }

    /// Calls `each` with every item whose box overlaps `bounds`.
    pub(crate) fn overlapping(&self, bounds: &Bounds, mut each: impl FnMut(u32)) {
        let width = self.leaves.len();
        if self.items.is_empty() {
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
                // An empty leaf overlaps what is infinite.
                if self.leaves[k - width] != NONE {
                    each(self.leaves[k - width]);
                }
            } else {
                stack[open] = 2 * k + 1;
                stack[open + 1] = 2 * k;
                open += 2;
            }
        }
    }
}

/// Deals items to leaves: half to each side of the middle one across the longest side.
fn halve(items: &mut [(DVec3, u32)], leaves: &mut [u32]) {
    if let [only] = leaves {
        *only = items.first().map_or(NONE, |item| item.1);
        return;
    }
    if items.is_empty() {
        return;
    }
    let all = Bounds::of(items.iter().map(|item| item.0));
    let axis = all.half().max_position();
    let half = items.len().div_ceil(2);
    // By index where middles coincide, so that there is one order.
    items.select_nth_unstable_by(half - 1, |p, q| p.0[axis].total_cmp(&q.0[axis]).then(p.1.cmp(&q.1)));
    let (low, high) = items.split_at_mut(half);
    let (first, second) = leaves.split_at_mut(leaves.len() / 2);
    halve(low, first);
    halve(high, second);
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
