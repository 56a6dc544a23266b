//! The order of elimination, and what it fills in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes in the order of their elimination, and the graph while it is found.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The nodes in their order.
    pub(super) nodes: Vec<u32>,
    /// For the k-th node, `rows[first[k]..first[k + 1]]`: the nodes after it that it shares a block with.
    pub(super) first: Vec<u32>,
    pub(super) rows: Vec<u32>,
    /// Where each node is in the order.
    pub(super) place: Vec<u32>,
    /// For each node those it shares a block with and that are still there, sorted.
    near: Vec<Vec<u32>>,
    done: Vec<bool>,
    /// Nodes by degree, entries from before a degree changed among them.
    queue: BinaryHeap<Reverse<(usize, u32)>>,
    merged: Vec<u32>,
    /// By place in the order of minimum degree: how many are eliminated into it, itself included, and where they begin.
    sizes: Vec<u32>,
    free: Vec<u32>,
    /// Room for an order that replaces another.
    spare: [Vec<u32>; 3],
}

impl Order {
    /// Finds the order for a graph by minimum degree. Among nodes of the same degree the first goes first, so that the order is that of the numbering.
    pub(super) fn find(&mut self, n: usize, edges: &[(u32, u32)]) {
        self.start(n, edges);
        for i in 0..n {
            self.queue.push(Reverse((self.near[i].len(), i as u32)));
        }
        while let Some(Reverse((degree, v))) = self.queue.pop() {
            if self.done[v as usize] || degree != self.near[v as usize].len() {
                continue; // an entry from before its degree changed
            }
            let start = self.rows.len();
            self.take_out(v);
            for &u in &self.rows[start..] {
                self.queue.push(Reverse((self.near[u as usize].len(), u)));
            }
        }
        self.find_places();
        self.bring_together();
    }

    /// Takes an order that is given, all nodes once.
    pub(super) fn take(&mut self, n: usize, edges: &[(u32, u32)], order: &[u32]) {
        assert_eq!(order.len(), n);
        self.start(n, edges);
        for &v in order {
            self.take_out(v);
        }
        self.find_places();
    }

    fn start(&mut self, n: usize, edges: &[(u32, u32)]) {
        self.nodes.clear();
        self.rows.clear();
        self.first.clear();
        self.first.push(0);
        self.near.iter_mut().for_each(Vec::clear);
        self.near.resize(n.max(self.near.len()), Vec::new());
        for &(i, j) in edges {
            self.near[i as usize].push(j);
            self.near[j as usize].push(i);
        }
        self.near[..n].iter_mut().for_each(|list| list.sort_unstable());
        self.done.clear();
        self.done.resize(n, false);
        self.queue.clear();
    }

    /// Puts node `v` next in the order: its neighbours, appended to `rows`, become neighbours of one another.
    fn take_out(&mut self, v: u32) {
        let Order { near, merged, done, rows, .. } = self;
        done[v as usize] = true;
        let start = rows.len();
        rows.extend_from_slice(&near[v as usize]);
        let column = &rows[start..];
        for &u in column {
            merged.clear();
            merge(&near[u as usize], column, merged);
            merged.retain(|&w| w != u && w != v);
            near[u as usize].clone_from(merged);
        }
        self.nodes.push(v);
        self.first.push(self.rows.len() as u32);
    }

    fn find_places(&mut self) {
        self.place.clear();
        self.place.resize(self.nodes.len(), 0);
        for (k, &node) in self.nodes.iter().enumerate() {
            self.place[node as usize] = k as u32;
        }
    }

    /// Among the orders with the same fill takes the one in which a node comes right after what is eliminated into it [postorder of the elimination tree]:
    /// numbers are still near at hand when they are used again, however large the matrix.
    fn bring_together(&mut self) {
        let n = self.nodes.len();
        let Order { nodes, first, rows, place, sizes, free, spare, .. } = self;
        // A node is eliminated into the first of its rows.
        let parent = |k: usize| {
            let column = &rows[first[k] as usize..first[k + 1] as usize];
            column.iter().map(|&node| place[node as usize] as usize).min()
        };
        sizes.clear();
        sizes.resize(n, 1);
        for k in 0..n {
            if let Some(parent) = parent(k) {
                sizes[parent] += sizes[k];
            }
        }
        // From the last node on each takes the next room of its parent, so that what was eliminated first, leaves mostly, comes nearest to it.
        let [order, first_of, rows_of] = spare;
        order.clear();
        order.resize(n, 0);
        free.clear();
        free.resize(n, 0);
        let mut free_at_root = 0;
        for k in (0..n).rev() {
            let room = match parent(k) {
                Some(parent) => &mut free[parent],
                None => &mut free_at_root,
            };
            let from = *room;
            *room += sizes[k];
            free[k] = from;
            order[(from + sizes[k] - 1) as usize] = k as u32;
        }
        first_of.clear();
        first_of.push(0);
        rows_of.clear();
        for k in order.iter_mut() {
            let was = *k as usize;
            rows_of.extend_from_slice(&rows[first[was] as usize..first[was + 1] as usize]);
            first_of.push(rows_of.len() as u32);
            *k = nodes[was];
        }
        std::mem::swap(nodes, order);
        std::mem::swap(first, first_of);
        std::mem::swap(rows, rows_of);
        self.find_places();
    }
}

/// The union of two sorted lists.
fn merge(a: &[u32], b: &[u32], out: &mut Vec<u32>) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let take_a = j == b.len() || (i < a.len() && a[i] <= b[j]);
        let next = if take_a { a[i] } else { b[j] };
        i += usize::from(i < a.len() && a[i] == next);
        j += usize::from(j < b.len() && b[j] == next);
        out.push(next);
    }
}
