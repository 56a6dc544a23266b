//! Symmetric matrices of small blocks, and their factorisation `P H Pᵀ = L D Lᵀ` with an order that keeps fill small.
//!
//! A node is a body (six numbers), a joint (its rows) or anything else of at most six numbers; an edge says that two nodes share a block.
//! The order is found once, by minimum degree on the graph of nodes: on the graph of a tree it eliminates leaves first and nothing fills
//! in, so that the cost is that of the tree order [Hernández 2011, §3.3]; loops fill in along their paths only. After that nothing
//! allocates.
//!
//! The matrix may be definite, or quasi-definite, `[A Jᵀ; J −μ]` with A and μ positive: then every order of elimination has pivots that
//! are definite, positive for A and negative for the rows. No pivoting between nodes is done or needed. A matrix with μ tiny or zero
//! may meet a pivot that is singular to rounding: [`Ldl::factor`] names its node.
//!
//! Blocks are stored 6×6, smaller nodes padded by ones on their diagonal: straight-line code for all.

mod unsymmetric;

use super::block::{Block, Vector};
use super::lanes::{Fused, Instructions, Kernel, Real, has_fused};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
pub use unsymmetric::Lu;

type Mat = [[f64; 6]; 6];
const ZERO: Mat = [[0.0; 6]; 6];

/// A symmetric matrix of blocks: those on the diagonal and those of the edges.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Numbers of each node.
    sizes: Vec<u8>,
    /// Edges (row, column) with row > column, sorted by row, then column.
    edges: Vec<(u32, u32)>,
    /// The edges of row i are `first[i]..first[i + 1]`.
    first: Vec<u32>,
    diagonal: Vec<Mat>,
    lower: Vec<Mat>,
}

/// Where the block of two nodes is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    index: u32,
    kind: SlotKind,
}

/// A part of the block of two nodes: from a row and a column of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    slot: Slot,
    row: u8,
    col: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    Diagonal,
    AsGiven,
    Transposed,
}

impl Sparse {
    /// A zero matrix over nodes of these sizes, 0 to 6, with a block for each edge. Edges may come in any order and more than once.
    pub fn new(sizes: &[usize], edges: &[(usize, usize)]) -> Sparse {
        let mut matrix =
            Sparse { sizes: Vec::new(), edges: Vec::new(), first: Vec::new(), diagonal: Vec::new(), lower: Vec::new() };
        matrix.set_pattern(sizes, edges);
        matrix
    }

    /// Becomes the zero matrix with this pattern, as [`new`](Self::new) makes it. Allocates nothing while there is room.
    pub fn set_pattern(&mut self, sizes: &[usize], edges: &[(usize, usize)]) {
        assert!(sizes.iter().all(|&n| n <= 6));
        self.sizes.clear();
        self.sizes.extend(sizes.iter().map(|&n| n as u8));
        self.edges.clear();
        let both = edges.iter().filter(|(i, j)| i != j);
        self.edges.extend(both.map(|&(i, j)| (i.max(j) as u32, i.min(j) as u32)));
        self.edges.sort_unstable();
        self.edges.dedup();
        self.first.clear();
        self.first.resize(sizes.len() + 1, 0);
        for &(i, _) in &self.edges {
            self.first[i as usize + 1] += 1;
        }
        for i in 0..sizes.len() {
            self.first[i + 1] += self.first[i];
        }
        self.diagonal.clear();
        self.diagonal.resize(sizes.len(), ZERO);
        self.lower.clear();
        self.lower.resize(self.edges.len(), ZERO);
    }

    /// Becomes the same as another, pattern and numbers. Allocates nothing while there is room.
    pub fn set_to(&mut self, other: &Sparse) {
        self.sizes.clone_from(&other.sizes);
        self.edges.clone_from(&other.edges);
        self.first.clone_from(&other.first);
        self.diagonal.clone_from(&other.diagonal);
        self.lower.clone_from(&other.lower);
    }

    /// Takes the numbers of a matrix with the same pattern.
    pub fn copy_from(&mut self, other: &Sparse) {
        debug_assert!(self.sizes == other.sizes && self.edges == other.edges);
        self.diagonal.copy_from_slice(&other.diagonal);
        self.lower.copy_from_slice(&other.lower);
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.sizes.len()
    }

    /// Makes every block zero.
    pub fn clear(&mut self) {
        self.diagonal.fill(ZERO);
        self.lower.fill(ZERO);
    }

    /// Where the block in the rows of node `i` and the columns of node `j` is. Panics when there is no such edge.
    pub fn slot(&self, i: usize, j: usize) -> Slot {
        if i == j {
            return Slot { index: i as u32, kind: SlotKind::Diagonal };
        }
        let (row, col, kind) = if i > j { (i, j, SlotKind::AsGiven) } else { (j, i, SlotKind::Transposed) };
        let (from, to) = (self.first[row] as usize, self.first[row + 1] as usize);
        let found = self.edges[from..to].binary_search(&(row as u32, col as u32)).expect("the edge was declared");
        Slot { index: (from + found) as u32, kind }
    }

    /// Adds `block` in the rows of node `i` and the columns of node `j`, and its transpose across the diagonal. On the diagonal it is
    /// added once and must be symmetric.
    pub fn add(&mut self, i: usize, j: usize, block: &Block) {
        self.add_to(self.slot(i, j), block);
    }

    /// As [`add`](Self::add), the place being known.
    pub fn add_to(&mut self, slot: Slot, block: &Block) {
        let k = slot.index as usize;
        let (rows, cols) = (block.rows(), block.cols());
        match slot.kind {
            SlotKind::Diagonal => add_block(&mut self.diagonal[k], block, rows, cols),
            SlotKind::AsGiven => add_block(&mut self.lower[k], block, rows, cols),
            SlotKind::Transposed => {
                for r in 0..rows {
                    for c in 0..cols {
                        self.lower[k][c][r] += block.get(r, c);
                    }
                }
            }
        }
    }

    /// Where a part of the block of two nodes is: from row `row` of node `i` and column `col` of node `j`. On the diagonal with `row` below `col` it is
    /// the part across that is kept.
    pub fn place(&self, (i, row): (usize, usize), (j, col): (usize, usize)) -> Place {
        Place { slot: self.slot(i, j), row: row as u8, col: col as u8 }
    }

    /// Adds the rows of `part` at a place, and their transpose across the diagonal. In the middle of a diagonal block the part must be symmetric.
    pub fn add_part<const R: usize, const C: usize>(&mut self, place: Place, part: &[[f64; C]; R]) {
        let Place { slot, row, col } = place;
        let (k, row, col) = (slot.index as usize, row as usize, col as usize);
        match slot.kind {
            SlotKind::AsGiven => {
                for r in 0..R {
                    for c in 0..C {
                        self.lower[k][row + r][col + c] += part[r][c];
                    }
                }
            }
            SlotKind::Transposed => {
                for r in 0..R {
                    for c in 0..C {
                        self.lower[k][col + c][row + r] += part[r][c];
                    }
                }
            }
            SlotKind::Diagonal => {
                for r in 0..R {
                    for c in 0..C {
                        self.diagonal[k][row + r][col + c] += part[r][c];
                        if row != col {
                            self.diagonal[k][col + c][row + r] += part[r][c];
                        }
                    }
                }
            }
        }
    }

    /// `self += scale · other`, which has the same nodes and edges.
    pub fn add_scaled(&mut self, scale: f64, other: &Sparse) {
        assert!(self.sizes == other.sizes && self.edges == other.edges);
        let blocks = self.diagonal.iter_mut().chain(&mut self.lower).zip(other.diagonal.iter().chain(&other.lower));
        for (x, y) in blocks.flat_map(|(x, y)| x.as_flattened_mut().iter_mut().zip(y.as_flattened())) {
            *x += scale * y;
        }
    }

    /// Adds `x` to each diagonal number of node `i`.
    pub fn add_diagonal(&mut self, i: usize, x: f64) {
        for k in 0..self.sizes[i] as usize {
            self.diagonal[i][k][k] += x;
        }
    }

    /// The sum of the diagonal of node `i`.
    pub fn trace(&self, i: usize) -> f64 {
        (0..self.sizes[i] as usize).map(|k| self.diagonal[i][k][k]).sum()
    }

    /// `r −= H x`, by nodes.
    pub fn subtract_product(&self, x: &[Vector], r: &mut [Vector]) {
        for (i, d) in self.diagonal.iter().enumerate() {
            subtract_times::<f64>(&mut r[i], d, &x[i]);
        }
        for (&(i, j), block) in self.edges.iter().zip(&self.lower) {
            let (i, j) = (i as usize, j as usize);
            subtract_times::<f64>(&mut r[i], block, &x[j]);
            subtract_transpose_times::<f64>(&mut r[j], block, &x[i]);
        }
    }

    /// `xᵀ H x` of the nodes before `end` alone.
    pub fn energy(&self, x: &[Vector], end: usize) -> f64 {
        let times = |block: &Mat, x: &Vector, y: &Vector| -> f64 {
            let row = |r: usize| (0..6).map(|c| block[r][c] * y[c]).sum::<f64>();
            (0..6).map(|r| x[r] * row(r)).sum()
        };
        let mut sum: f64 = (0..end).map(|i| times(&self.diagonal[i], &x[i], &x[i])).sum();
        for (&(i, j), block) in self.edges.iter().zip(&self.lower) {
            if (i as usize) < end && (j as usize) < end {
                sum += 2.0 * times(block, &x[i as usize], &x[j as usize]);
            }
        }
        sum
    }

    /// Of `r −= H x` only what the nodes from `first` on give to those before it.
    pub fn subtract_part(&self, x: &[Vector], r: &mut [Vector], first: usize) {
        for (&(i, j), block) in self.edges.iter().zip(&self.lower) {
            if i as usize >= first && (j as usize) < first {
                subtract_transpose_times::<f64>(&mut r[j as usize], block, &x[i as usize]);
            }
        }
    }
}

fn add_block(to: &mut Mat, block: &Block, rows: usize, cols: usize) {
    for r in 0..rows {
        for c in 0..cols {
            to[r][c] += block.get(r, c);
        }
    }
}

#[inline(always)]
fn subtract_times<R: Real>(y: &mut Vector, m: &Mat, x: &Vector) {
    for r in 0..6 {
        let product = |c: usize| R::splat(m[r][c]) * R::splat(x[c]);
        let pair = |c: usize| R::splat(m[r][c + 1]).madd(R::splat(x[c + 1]), product(c));
        y[r] -= (pair(0) + pair(2) + pair(4)).lane(0);
    }
}

#[inline(always)]
fn subtract_transpose_times<R: Real>(y: &mut Vector, m: &Mat, x: &Vector) {
    for r in 0..6 {
        for c in 0..6 {
            y[c] = R::splat(m[r][c]).nmadd(R::splat(x[r]), R::splat(y[c])).lane(0);
        }
    }
}

/// The factors of a [`Sparse`].
#[derive(Clone, Debug)]
pub struct Ldl {
    /// Nodes in the order of elimination; below, "column" and "row" count in that order.
    order: Vec<u32>,
    sizes: Vec<u8>,
    /// The blocks below the diagonal of column k are `first[k]..first[k + 1]`.
    first: Vec<u32>,
    /// The row of each block, ascending within a column.
    rows: Vec<u32>,
    /// For column k, from `first_target[k]`: the block that each pair (a, b), b < a, of its blocks is subtracted from.
    targets: Vec<u32>,
    first_target: Vec<u32>,
    /// Where the edges of the matrix go: a block, and whether it is transposed there.
    scatter: Vec<(u32, bool)>,
    /// Blocks that no edge of the matrix goes to.
    filled_in: Vec<u32>,
    /// Pivots, factored, and `L` below them.
    pivots: Vec<Pivot>,
    lower: Vec<Mat>,
    /// The blocks of one column before they are divided by the pivot.
    panel: Vec<Mat>,
    permuted: Vec<Vector>,
    /// Scratch for finding the order.
    graph: Graph,
    /// Which instructions a factorisation uses.
    instructions: Instructions,
}

/// The graph of nodes while an order of elimination is found.
#[derive(Clone, Debug, Default)]
struct Graph {
    /// For each node those it shares a block with and that are still there, sorted.
    near: Vec<Vec<u32>>,
    done: Vec<bool>,
    /// Nodes by degree, entries from before a degree changed among them.
    queue: BinaryHeap<Reverse<(usize, u32)>>,
    merged: Vec<u32>,
    /// Where each node is in the order.
    place: Vec<u32>,
}

impl Graph {
    fn start(&mut self, n: usize, edges: &[(u32, u32)]) {
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
}

/// `L D Lᵀ` of a pivot, the unit diagonal left out and `1/d` kept.
#[derive(Clone, Copy, Debug)]
struct Pivot {
    l: Mat,
    inverse: [f64; 6],
}

/// Below this share of its diagonal number before elimination a pivot is rounding and nothing else.
const ROUNDING: f64 = 1e-14;

impl Ldl {
    /// Finds the order for matrices with the blocks of `matrix`, whatever their values.
    pub fn new(matrix: &Sparse) -> Ldl {
        let mut ldl = Ldl::empty();
        ldl.set_pattern(matrix);
        ldl
    }

    /// The same in an order that is given, all nodes once: one in which no pivot can be singular, where minimum degree might meet one.
    pub fn in_order(matrix: &Sparse, order: &[u32]) -> Ldl {
        assert_eq!(order.len(), matrix.nodes());
        let mut ldl = Ldl::empty();
        ldl.graph.start(matrix.nodes(), &matrix.edges);
        ldl.first.push(0);
        for &v in order {
            ldl.take_out(v);
        }
        ldl.place_blocks(matrix);
        ldl
    }

    fn empty() -> Ldl {
        Ldl {
            order: Vec::new(),
            sizes: Vec::new(),
            first: Vec::new(),
            rows: Vec::new(),
            targets: Vec::new(),
            first_target: Vec::new(),
            scatter: Vec::new(),
            filled_in: Vec::new(),
            pivots: Vec::new(),
            lower: Vec::new(),
            panel: Vec::new(),
            permuted: Vec::new(),
            graph: Graph::default(),
            instructions: Instructions::Baseline,
        }
    }

    /// From now on factorises with these instructions; at first with those of every machine.
    pub fn use_instructions(&mut self, instructions: Instructions) {
        self.instructions = instructions;
    }

    /// Finds the order anew, for matrices with the blocks of `matrix`. Allocates nothing while there is room.
    ///
    /// Among nodes of the same degree the first goes first, so that the order is that of the numbering.
    pub fn set_pattern(&mut self, matrix: &Sparse) {
        self.find_order(matrix.nodes(), &matrix.edges);
        self.place_blocks(matrix);
    }

    fn find_order(&mut self, n: usize, edges: &[(u32, u32)]) {
        self.order.clear();
        self.rows.clear();
        self.first.clear();
        self.first.push(0);
        self.graph.start(n, edges);
        for i in 0..n {
            self.graph.queue.push(Reverse((self.graph.near[i].len(), i as u32)));
        }
        while let Some(Reverse((degree, v))) = self.graph.queue.pop() {
            if self.graph.done[v as usize] || degree != self.graph.near[v as usize].len() {
                continue; // an entry from before its degree changed
            }
            let start = self.rows.len();
            self.take_out(v);
            for &u in &self.rows[start..] {
                self.graph.queue.push(Reverse((self.graph.near[u as usize].len(), u)));
            }
        }
    }

    /// An order of elimination by minimum degree for a graph of `n` nodes, and what elimination makes of it: the nodes in their order, and for the k-th
    /// of them, from `first[k]` on, the nodes after it that it shares a block with.
    pub(super) fn elimination(n: usize, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let mut ldl = Ldl::empty();
        ldl.find_order(n, edges);
        (ldl.order, ldl.first, ldl.rows)
    }

    /// Puts node `v` next in the order: its neighbours, appended to `rows`, become neighbours of one another.
    fn take_out(&mut self, v: u32) {
        let Graph { near, merged, done, .. } = &mut self.graph;
        done[v as usize] = true;
        let start = self.rows.len();
        self.rows.extend_from_slice(&near[v as usize]);
        let column = &self.rows[start..];
        for &u in column {
            merged.clear();
            merge(&near[u as usize], column, merged);
            merged.retain(|&w| w != u && w != v);
            near[u as usize].clone_from(merged);
        }
        self.order.push(v);
        self.first.push(self.rows.len() as u32);
    }

    /// From the order, and for each node of it the nodes it is connected with, where every block goes.
    fn place_blocks(&mut self, matrix: &Sparse) {
        let n = matrix.nodes();
        assert_eq!(self.order.len(), n);
        let Ldl { order, sizes, first, rows, targets, first_target, scatter, filled_in, graph, .. } = self;
        let place = &mut graph.place;
        place.resize(n, 0);
        for (k, &node) in order.iter().enumerate() {
            place[node as usize] = k as u32;
        }
        for row in rows.iter_mut() {
            *row = place[*row as usize];
        }
        for k in 0..n {
            rows[first[k] as usize..first[k + 1] as usize].sort_unstable();
        }
        let block_at = |row: u32, column: usize| -> u32 {
            let (from, to) = (first[column] as usize, first[column + 1] as usize);
            (from + rows[from..to].binary_search(&row).expect("elimination fills this block in")) as u32
        };
        targets.clear();
        first_target.clear();
        for k in 0..n {
            first_target.push(targets.len() as u32);
            let column = &rows[first[k] as usize..first[k + 1] as usize];
            for (a, &row) in column.iter().enumerate() {
                targets.extend(column[..a].iter().map(|&b| block_at(row, b as usize)));
            }
        }
        scatter.clear();
        scatter.extend(matrix.edges.iter().map(|&(i, j)| {
            let (p, q) = (place[i as usize], place[j as usize]);
            if p > q { (block_at(p, q as usize), false) } else { (block_at(q, p as usize), true) }
        }));
        graph.merged.clear();
        graph.merged.extend(scatter.iter().map(|&(to, _)| to));
        graph.merged.sort_unstable();
        let mut edges = graph.merged.iter().peekable();
        filled_in.clear();
        filled_in.extend((0..rows.len() as u32).filter(|block| edges.next_if(|edge| *edge == block).is_none()));
        sizes.clear();
        sizes.extend(order.iter().map(|&node| matrix.sizes[node as usize]));
        let widest = (0..n).map(|k| (first[k + 1] - first[k]) as usize).max().unwrap_or(0);
        let blocks = rows.len();
        self.pivots.clear();
        self.pivots.resize(n, Pivot { l: ZERO, inverse: [1.0; 6] });
        self.lower.clear();
        self.lower.resize(blocks, ZERO);
        self.panel.clear();
        self.panel.resize(widest, ZERO);
        self.permuted.clear();
        self.permuted.resize(n, [0.0; 6]);
    }

    /// Blocks below the diagonal, fill included: a measure of the cost.
    pub fn blocks(&self) -> usize {
        self.rows.len()
    }

    /// Products of blocks in a factorisation.
    pub fn products(&self) -> usize {
        self.targets.len() + 2 * self.rows.len()
    }

    /// Nodes in the order of elimination.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Factors `matrix`, which has the edges this was made for. On failure names the node whose pivot is singular or not finite.
    pub fn factor(&mut self, matrix: &Sparse) -> Result<(), usize> {
        self.eliminate_first(matrix, self.order.len(), Pivots::OfAnySign)
    }

    /// Eliminates all nodes but the last `kept` of the order, and tells what is left of the matrix: `each(i, j, block)` for the nodes i and j
    /// on and below the diagonal of what is left [Schur complement]. On failure names the node whose pivot is not positive or not finite.
    pub fn condense(
        &mut self,
        matrix: &Sparse,
        kept: usize,
        mut each: impl FnMut(usize, usize, &[[f64; 6]; 6]),
    ) -> Result<(), usize> {
        let done = self.order.len() - kept;
        self.eliminate_first(matrix, done, Pivots::Positive)?;
        for k in done..self.order.len() {
            let node = self.order[k] as usize;
            each(node, node, &self.pivots[k].l);
            for b in self.first[k] as usize..self.first[k + 1] as usize {
                each(self.order[self.rows[b] as usize] as usize, node, &self.lower[b]);
            }
        }
        Ok(())
    }

    /// Eliminates the first `count` nodes of the order.
    fn eliminate_first(&mut self, matrix: &Sparse, count: usize, signs: Pivots) -> Result<(), usize> {
        self.scatter(matrix);
        if self.instructions == Instructions::Best && has_fused() {
            Fused::enter(Eliminate::<Fused> { ldl: self, matrix, count, signs, real: PhantomData })
        } else {
            f64::enter(Eliminate::<f64> { ldl: self, matrix, count, signs, real: PhantomData })
        }
    }

    fn scatter(&mut self, matrix: &Sparse) {
        assert!(matrix.nodes() == self.order.len() && matrix.edges.len() == self.scatter.len());
        self.filled_in.iter().for_each(|&block| self.lower[block as usize] = ZERO);
        for (pivot, &node) in self.pivots.iter_mut().zip(&self.order) {
            pivot.l = matrix.diagonal[node as usize];
        }
        for (block, &(to, transposed)) in matrix.lower.iter().zip(&self.scatter) {
            self.lower[to as usize] = if transposed { transpose(block) } else { *block };
        }
    }

    /// Eliminates column k:  `L_i = B_i D⁻¹`,  `H_ij −= L_i B_jᵀ` for all pairs of its blocks.
    #[inline(always)]
    fn eliminate<R: Real>(&mut self, k: usize, given: &Mat, signs: Pivots) -> Option<()> {
        let size = self.sizes[k] as usize;
        let pivot = &mut self.pivots[k];
        pivot.factor(size, given)?;
        let pivot = *pivot;
        if signs == Pivots::Positive && pivot.inverse[0] < 0.0 {
            return None;
        }
        let (from, to) = (self.first[k] as usize, self.first[k + 1] as usize);
        let panel = &mut self.panel[..to - from];
        let mut target = self.first_target[k] as usize;
        for a in 0..to - from {
            let b_a = self.lower[from + a];
            // kept transposed, as the products need it
            panel[a] = transpose(&b_a);
            let l_a = pivot.divide::<R>(&panel[a]);
            self.lower[from + a] = l_a;
            for b in panel[..a].iter() {
                subtract_product::<R>(&mut self.lower[self.targets[target] as usize], &l_a, b);
                target += 1;
            }
            let row = self.rows[from + a] as usize;
            subtract_product::<R>(&mut self.pivots[row].l, &l_a, &panel[a]);
        }
        Some(())
    }

    /// After [`condense`](Self::condense) with the same `kept`: of `H x = r` eliminates the nodes that it eliminated. What is left of r at the kept
    /// nodes is the right-hand side of what is left of the matrix; [`expand`](Self::expand) goes on from the rest.
    pub fn reduce(&mut self, kept: usize, r: &mut [Vector]) {
        let y = &mut self.permuted;
        for (y, &node) in y.iter_mut().zip(&self.order) {
            *y = r[node as usize];
        }
        for k in 0..y.len() - kept {
            let y_k = y[k];
            for b in self.first[k] as usize..self.first[k + 1] as usize {
                subtract_times::<f64>(&mut y[self.rows[b] as usize], &self.lower[b], &y_k);
            }
        }
        for (y, &node) in y.iter().zip(&self.order) {
            r[node as usize] = *y;
        }
    }

    /// From x at the kept nodes, and what [`reduce`](Self::reduce) left at the others, x at the others.
    pub fn expand(&mut self, kept: usize, x: &mut [Vector]) {
        let y = &mut self.permuted;
        for (y, &node) in y.iter_mut().zip(&self.order) {
            *y = x[node as usize];
        }
        for k in (0..y.len() - kept).rev() {
            let mut y_k = self.pivots[k].solve(&y[k]);
            for b in self.first[k] as usize..self.first[k + 1] as usize {
                subtract_transpose_times::<f64>(&mut y_k, &self.lower[b], &y[self.rows[b] as usize]);
            }
            y[k] = y_k;
        }
        for (y, &node) in y.iter().zip(&self.order) {
            x[node as usize] = *y;
        }
    }

    /// `x ← H⁻¹ x`, by nodes; of a node smaller than six the rest must be zero and stays so.
    pub fn solve(&mut self, x: &mut [Vector]) {
        if self.instructions == Instructions::Best && has_fused() {
            Fused::enter(Substitute::<Fused> { ldl: self, x, real: PhantomData });
        } else {
            f64::enter(Substitute::<f64> { ldl: self, x, real: PhantomData });
        }
    }
}

/// Both substitutions, compiled for kinds of numbers.
struct Substitute<'a, R> {
    ldl: &'a mut Ldl,
    x: &'a mut [Vector],
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Substitute<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Ldl { order, first, rows, lower, pivots, permuted: y, .. } = self.ldl;
        let blocks = |k: usize| first[k] as usize..first[k + 1] as usize;
        for (y, &node) in y.iter_mut().zip(order.iter()) {
            *y = self.x[node as usize];
        }
        for k in 0..y.len() {
            let y_k = y[k];
            for b in blocks(k) {
                subtract_times::<R>(&mut y[rows[b] as usize], &lower[b], &y_k);
            }
        }
        for k in (0..y.len()).rev() {
            let mut y_k = pivots[k].solve(&y[k]);
            for b in blocks(k) {
                subtract_transpose_times::<R>(&mut y_k, &lower[b], &y[rows[b] as usize]);
            }
            y[k] = y_k;
        }
        for (y, &node) in y.iter().zip(order.iter()) {
            self.x[node as usize] = *y;
        }
    }
}

fn transpose(m: &Mat) -> Mat {
    std::array::from_fn(|r| std::array::from_fn(|c| m[c][r]))
}

/// `h −= l b`.
#[inline(always)]
fn subtract_product<R: Real>(h: &mut Mat, l: &Mat, b: &Mat) {
    for r in 0..6 {
        let mut row = h[r];
        for k in 0..6 {
            for c in 0..6 {
                row[c] = R::splat(l[r][k]).nmadd(R::splat(b[k][c]), R::splat(row[c])).lane(0);
            }
        }
        h[r] = row;
    }
}

/// Which signs the pivots of an elimination may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pivots {
    OfAnySign,
    Positive,
}

/// The elimination, compiled for kinds of numbers.
struct Eliminate<'a, R> {
    ldl: &'a mut Ldl,
    matrix: &'a Sparse,
    count: usize,
    signs: Pivots,
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Eliminate<'_, R> {
    type Output = Result<(), usize>;
    #[inline(always)]
    fn run(self) -> Result<(), usize> {
        for k in 0..self.count {
            let node = self.ldl.order[k] as usize;
            self.ldl.eliminate::<R>(k, &self.matrix.diagonal[node], self.signs).ok_or(node)?;
        }
        Ok(())
    }
}

impl Pivot {
    /// Factors `l` in place; rows from `size` on become those of the identity. `given` is the block before any elimination.
    fn factor(&mut self, size: usize, given: &Mat) -> Option<()> {
        let a = self.l;
        let (mut l, mut d) = (ZERO, [1.0; 6]);
        self.inverse = [1.0; 6];
        for j in 0..size {
            let mut dj = a[j][j];
            for k in 0..j {
                dj -= l[j][k] * l[j][k] * d[k];
            }
            // Before elimination the rows of joints are 0 or −μ: what was taken off then says how large the number was.
            let scale = given[j][j].abs().max((a[j][j] - given[j][j]).abs());
            let same_sign = dj * d[0] > 0.0 || j == 0;
            if !(same_sign && dj.is_finite() && dj.abs() > ROUNDING * scale) {
                return None;
            }
            d[j] = dj;
            self.inverse[j] = 1.0 / dj;
            for i in j + 1..size {
                let mut x = a[i][j];
                for k in 0..j {
                    x -= l[i][k] * d[k] * l[j][k];
                }
                l[i][j] = x * self.inverse[j];
            }
        }
        self.l = l;
        Some(())
    }

    /// `D⁻¹ x`.
    #[inline(always)]
    fn solve(&self, x: &Vector) -> Vector {
        let mut y = *x;
        for i in 1..6 {
            for k in 0..i {
                y[i] -= self.l[i][k] * y[k];
            }
        }
        for i in (0..6).rev() {
            y[i] *= self.inverse[i];
            for k in i + 1..6 {
                y[i] -= self.l[k][i] * y[k];
            }
        }
        y
    }

    /// `b D⁻¹` from `bᵀ`, all rows of b at once.
    #[inline(always)]
    fn divide<R: Real>(&self, b: &Mat) -> Mat {
        let mut y = *b; // D⁻¹ bᵀ, row by row
        let subtract = |y: &mut Mat, i: usize, k: usize, l: f64| {
            for c in 0..6 {
                y[i][c] = R::splat(l).nmadd(R::splat(y[k][c]), R::splat(y[i][c])).lane(0);
            }
        };
        for i in 1..6 {
            for k in 0..i {
                subtract(&mut y, i, k, self.l[i][k]);
            }
        }
        for i in (0..6).rev() {
            for c in 0..6 {
                y[i][c] *= self.inverse[i];
            }
            for k in i + 1..6 {
                subtract(&mut y, i, k, self.l[k][i]);
            }
        }
        transpose(&y)
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

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, DVector};

    /// Numbers in −1…1, the same in each run.
    struct Random(u64);
    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
        fn below(&mut self, n: usize) -> usize {
            ((self.next() * 0.5 + 0.5) * n as f64) as usize % n
        }
        fn block(&mut self, rows: usize, cols: usize) -> Block {
            let mut block = Block::zeros(rows, cols);
            for r in 0..rows {
                for c in 0..cols {
                    block.set(r, c, self.next());
                }
            }
            block
        }
    }

    struct Case {
        matrix: Sparse,
        dense: DMatrix<f64>,
        sizes: Vec<usize>,
        offsets: Vec<usize>,
    }

    /// `[A Jᵀ; J −μ]`: bodies with definite blocks and couplings, rows between random bodies.
    fn quasi_definite(bodies: usize, rows: usize, mu: f64, random: &mut Random) -> Case {
        let sizes: Vec<usize> = (0..bodies + rows).map(|i| if i < bodies { 6 } else { 1 + random.below(6) }).collect();
        let mut edges = Vec::new();
        for i in 1..bodies {
            edges.push((random.below(i), i)); // springs along a tree
        }
        for i in bodies..bodies + rows {
            edges.push((i, random.below(bodies)));
            edges.push((random.below(bodies), i));
        }
        let offsets: Vec<usize> = sizes.iter().scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n))).collect();
        let total = sizes.iter().sum();
        let mut case =
            Case { matrix: Sparse::new(&sizes, &edges), dense: DMatrix::zeros(total, total), sizes, offsets };
        for i in 0..bodies {
            let g = random.block(6, 6);
            case.add(i, i, &g.times(&g.transposed()));
            case.matrix.add_diagonal(i, 3.0);
            (0..6).for_each(|k| case.dense[(6 * i + k, 6 * i + k)] += 3.0);
        }
        for (i, j) in edges {
            if i < bodies && j < bodies {
                // B = [g; −g]: definite, as a spring between two bodies is
                let g = random.block(6, 6);
                let k = g.times(&g.transposed());
                let mut minus = Block::zeros(6, 6);
                minus.add_scaled(-1.0, &k);
                case.add(i, i, &k);
                case.add(j, j, &k);
                case.add(i, j, &minus);
            } else {
                let block = random.block(case.sizes[i], case.sizes[j]);
                case.add(i, j, &block);
            }
        }
        for i in bodies..bodies + rows {
            case.matrix.add_diagonal(i, -mu);
            let (o, n) = (case.offsets[i], case.sizes[i]);
            (0..n).for_each(|k| case.dense[(o + k, o + k)] -= mu);
        }
        case
    }

    impl Case {
        fn add(&mut self, i: usize, j: usize, block: &Block) {
            self.matrix.add(i, j, block);
            for r in 0..block.rows() {
                for c in 0..block.cols() {
                    let (p, q) = (self.offsets[i] + r, self.offsets[j] + c);
                    self.dense[(p, q)] += block.get(r, c);
                    if i != j {
                        self.dense[(q, p)] += block.get(r, c);
                    }
                }
            }
        }

        fn random_vector(&self, random: &mut Random) -> Vec<Vector> {
            let vector = |n: &usize| std::array::from_fn(|k| if k < *n { random.next() } else { 0.0 });
            self.sizes.iter().map(vector).collect()
        }

        fn flat(&self, x: &[Vector]) -> DVector<f64> {
            DVector::from_iterator(self.dense.nrows(), x.iter().zip(&self.sizes).flat_map(|(x, &n)| x[..n].to_vec()))
        }
    }

    #[test]
    fn agrees_with_a_dense_solution() {
        let mut random = Random(7);
        let mut worst: f64 = 0.0;
        for round in 0..60 {
            let (bodies, rows) = (2 + random.below(20), random.below(25));
            let mut case = quasi_definite(bodies, rows, 10f64.powi(-(round % 4)), &mut random);
            let mut ldl = Ldl::new(&case.matrix);
            ldl.factor(&case.matrix).unwrap();
            let b = case.random_vector(&mut random);
            let mut x = b.clone();
            ldl.solve(&mut x);
            let dense = case.dense.clone().lu().solve(&case.flat(&b)).unwrap();
            worst = worst.max((case.flat(&x) - &dense).norm() / dense.norm());

            // the product is that of the matrix
            let mut r = b.clone();
            case.matrix.subtract_product(&x, &mut r);
            let by_hand = case.flat(&b) - &case.dense * case.flat(&x);
            assert!((case.flat(&r) - by_hand).norm() < 1e-11 * (1.0 + dense.norm()));

            // values may change, the order stays
            case.matrix.clear();
            (0..case.matrix.nodes()).for_each(|i| case.matrix.add_diagonal(i, 2.0));
            ldl.factor(&case.matrix).unwrap();
            let mut x = b.clone();
            ldl.solve(&mut x);
            assert!(x.iter().zip(&b).all(|(x, b)| (0..6).all(|k| x[k] == 0.5 * b[k])));
        }
        // condition numbers reach 1e5 here; the error is theirs times rounding
        assert!(worst < 1e-10, "{worst:e}");
    }

    #[test]
    fn an_unsymmetric_matrix_agrees_with_a_dense_solution() {
        let mut random = Random(19);
        let mut worst: f64 = 0.0;
        for _ in 0..60 {
            let (bodies, rows) = (2 + random.below(20), random.below(25));
            let above = quasi_definite(bodies, rows, 0.1, &mut random);
            let mut below = Case {
                matrix: above.matrix.clone(),
                dense: above.dense.clone(),
                ..quasi_definite(0, 0, 0.1, &mut random)
            };
            (below.sizes, below.offsets) = (above.sizes.clone(), above.offsets.clone());
            // other rows below the diagonal than above it, and a diagonal that is not symmetric
            for k in 0..above.matrix.edges.len() {
                let (i, j) = (above.matrix.edges[k].0 as usize, above.matrix.edges[k].1 as usize);
                if i < bodies {
                    continue;
                }
                let change = random.block(above.sizes[i], above.sizes[j]);
                for r in 0..change.rows() {
                    for c in 0..change.cols() {
                        let x = 0.2 * change.get(r, c);
                        below.matrix.lower[k][r][c] += x;
                        below.dense[(above.offsets[i] + r, above.offsets[j] + c)] += x;
                    }
                }
            }
            below.matrix.diagonal[0][1][2] += 0.5;
            below.dense[(1, 2)] += 0.5;
            let pattern = Ldl::new(&above.matrix);
            let mut lu = Lu::default();
            lu.set_pattern(&pattern);
            lu.factor(&pattern, &below.matrix, &above.matrix).unwrap();
            let b = above.random_vector(&mut random);
            let mut x = b.clone();
            lu.solve(&pattern, &mut x);
            let dense = below.dense.clone().lu().solve(&above.flat(&b)).unwrap();
            worst = worst.max((above.flat(&x) - &dense).norm() / dense.norm());
        }
        assert!(worst < 1e-10, "{worst:e}");
    }

    #[test]
    fn nothing_fills_in_on_a_tree() {
        let mut random = Random(3);
        for bodies in [2, 10, 100, 1000] {
            // body i, joint bodies + i to its parent, springs beside it
            let mut edges = Vec::new();
            for i in 1..bodies {
                let parent = random.below(i);
                edges.extend([(bodies + i, i), (bodies + i, parent), (i, parent)]);
            }
            let sizes = vec![6; 2 * bodies];
            let matrix = Sparse::new(&sizes, &edges);
            assert_eq!(Ldl::new(&matrix).blocks(), edges.len());
        }
    }

    #[test]
    fn the_order_does_not_matter_to_the_answer() {
        let mut random = Random(11);
        for _ in 0..20 {
            let case = quasi_definite(2 + random.below(12), random.below(12), 0.1, &mut random);
            let n = case.matrix.nodes();
            let mut order: Vec<u32> = (0..n as u32).collect();
            for i in (1..n).rev() {
                order.swap(i, random.below(i + 1));
            }
            let b = case.random_vector(&mut random);
            let (mut x, mut y) = (b.clone(), b);
            for (ldl, x) in [(Ldl::new(&case.matrix), &mut x), (Ldl::in_order(&case.matrix, &order), &mut y)] {
                let mut ldl = ldl;
                ldl.factor(&case.matrix).unwrap();
                ldl.solve(x);
            }
            let (x, y) = (case.flat(&x), case.flat(&y));
            assert!((&x - &y).norm() < 1e-10 * x.norm()); // condition numbers reach 1e4
        }
    }

    #[test]
    fn a_ring_fills_in_linearly() {
        let blocks = |n: usize| {
            let edges: Vec<(usize, usize)> = (0..n).flat_map(|i| [(n + i, i), (n + i, (i + 1) % n)]).collect();
            Ldl::new(&Sparse::new(&vec![6; 2 * n], &edges)).blocks()
        };
        // a cycle of m nodes: m edges, and one more block for each node but the last three
        assert_eq!([blocks(10), blocks(1000)], [4 * 10 - 3, 4 * 1000 - 3]);
    }

    #[test]
    fn a_singular_pivot_is_named() {
        let mut matrix = Sparse::new(&[6, 3], &[(0, 1)]);
        matrix.add_diagonal(0, 1.0);
        let mut ldl = Ldl::new(&matrix);
        assert_eq!(ldl.factor(&matrix), Err(1)); // a joint without rows
        matrix.add_diagonal(1, f64::NAN);
        assert_eq!(ldl.factor(&matrix), Err(1));
        matrix.clear();
        assert_eq!(ldl.factor(&matrix), Err(0));
    }
}
