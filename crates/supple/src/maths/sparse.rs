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
//! Numbers are kept in rows of six, as many as a node has: a block of a joint with three rows has three of them, so that large models read and write no more than
//! there is. Shorter rows are padded by zeros.

mod ldl;
mod order;
mod unsymmetric;

use super::block::{Block, Vector};
use super::lanes::{Fused, Instructions, Kernel, Real, has_fused};
pub use ldl::Ldl;
use std::marker::PhantomData;
use std::ops::Range;
pub use unsymmetric::Lu;

const NONE: Vector = [0.0; 6];

/// A symmetric matrix of blocks: those on the diagonal and those of the edges.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Numbers of each node.
    sizes: Vec<u8>,
    /// Edges (row, column) with row > column, sorted by row, then column.
    edges: Vec<(u32, u32)>,
    /// The edges of row i are `first[i]..first[i + 1]`.
    first: Vec<u32>,
    /// The rows of node i on the diagonal are from `own[i]` on, those of edge e from `shared[e]` on.
    own: Vec<u32>,
    shared: Vec<u32>,
    diagonal: Vec<Vector>,
    lower: Vec<Vector>,
    /// Which instructions products use.
    instructions: Instructions,
}

/// Where the block of two nodes is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first row.
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
        let mut matrix = Sparse {
            sizes: Vec::new(),
            edges: Vec::new(),
            first: Vec::new(),
            own: Vec::new(),
            shared: Vec::new(),
            diagonal: Vec::new(),
            lower: Vec::new(),
            instructions: Instructions::Baseline,
        };
        matrix.set_pattern(sizes, edges);
        matrix
    }

    /// From now on multiplies with these instructions; at first with those of every machine.
    pub fn use_instructions(&mut self, instructions: Instructions) {
        self.instructions = instructions;
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
        let rows = starts(&mut self.own, sizes.iter().copied());
        self.diagonal.clear();
        self.diagonal.resize(rows, NONE);
        let rows = starts(&mut self.shared, self.edges.iter().map(|&(i, _)| sizes[i as usize]));
        self.lower.clear();
        self.lower.resize(rows, NONE);
    }

    /// Becomes the same as another, pattern and numbers. Allocates nothing while there is room.
    pub fn set_to(&mut self, other: &Sparse) {
        self.sizes.clone_from(&other.sizes);
        self.edges.clone_from(&other.edges);
        self.first.clone_from(&other.first);
        self.own.clone_from(&other.own);
        self.shared.clone_from(&other.shared);
        self.diagonal.clone_from(&other.diagonal);
        self.lower.clone_from(&other.lower);
        self.instructions = other.instructions;
    }

    /// Takes the numbers of a matrix with the same pattern.
    pub fn copy_from(&mut self, other: &Sparse) {
        debug_assert!(self.sizes == other.sizes && self.edges == other.edges);
        self.diagonal.copy_from_slice(&other.diagonal);
        self.lower.copy_from_slice(&other.lower);
    }

    /// The same below the diagonal alone.
    pub fn copy_lower_from(&mut self, other: &Sparse) {
        debug_assert!(self.sizes == other.sizes && self.edges == other.edges);
        self.lower.copy_from_slice(&other.lower);
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.sizes.len()
    }

    /// Makes every block zero.
    pub fn clear(&mut self) {
        self.diagonal.fill(NONE);
        self.lower.fill(NONE);
    }

    /// Makes zero all but the blocks that these nodes share with nodes before them: those are about to be written.
    pub fn clear_outside(&mut self, nodes: Range<usize>) {
        let written = self.rows_of_edges(nodes);
        self.diagonal.fill(NONE);
        self.lower[..written.start].fill(NONE);
        self.lower[written.end..].fill(NONE);
    }

    /// Takes the numbers of a matrix with the same pattern, but for the blocks that these nodes share with nodes before them.
    pub fn copy_outside(&mut self, other: &Sparse, nodes: Range<usize>) {
        debug_assert!(self.sizes == other.sizes && self.edges == other.edges);
        let written = self.rows_of_edges(nodes);
        self.diagonal.copy_from_slice(&other.diagonal);
        self.lower[..written.start].copy_from_slice(&other.lower[..written.start]);
        self.lower[written.end..].copy_from_slice(&other.lower[written.end..]);
    }

    /// Where the numbers of the blocks are that these nodes share with nodes before them.
    fn rows_of_edges(&self, nodes: Range<usize>) -> Range<usize> {
        let start =
            |node: usize| self.shared.get(self.first[node] as usize).map_or(self.lower.len(), |&row| row as usize);
        start(nodes.start)..start(nodes.end)
    }

    /// Where the block in the rows of node `i` and the columns of node `j` is. Panics when there is no such edge.
    pub fn slot(&self, i: usize, j: usize) -> Slot {
        if i == j {
            return Slot { index: self.own[i], kind: SlotKind::Diagonal };
        }
        let (row, col, kind) = if i > j { (i, j, SlotKind::AsGiven) } else { (j, i, SlotKind::Transposed) };
        let (from, to) = (self.first[row] as usize, self.first[row + 1] as usize);
        let found = self.edges[from..to].binary_search(&(row as u32, col as u32)).expect("the edge was declared");
        Slot { index: self.shared[from + found], kind }
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
            SlotKind::Diagonal => add_block(&mut self.diagonal[k..k + rows], block),
            SlotKind::AsGiven => add_block(&mut self.lower[k..k + rows], block),
            SlotKind::Transposed => {
                for (c, row) in self.lower[k..k + cols].iter_mut().enumerate() {
                    for r in 0..rows {
                        row[r] += block.get(r, c);
                    }
                }
            }
        }
    }

    /// The first `count` rows of the block at `slot`, which is that of a node and one before it.
    pub fn rows(&self, slot: Slot, count: usize) -> &[Vector] {
        debug_assert!(slot.kind == SlotKind::AsGiven);
        &self.lower[slot.index as usize..][..count]
    }

    /// The same, to be written.
    pub fn rows_mut(&mut self, slot: Slot, count: usize) -> &mut [Vector] {
        debug_assert!(slot.kind == SlotKind::AsGiven);
        &mut self.lower[slot.index as usize..][..count]
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
                        self.lower[k + row + r][col + c] += part[r][c];
                    }
                }
            }
            SlotKind::Transposed => {
                for r in 0..R {
                    for c in 0..C {
                        self.lower[k + col + c][row + r] += part[r][c];
                    }
                }
            }
            SlotKind::Diagonal => {
                for r in 0..R {
                    for c in 0..C {
                        self.diagonal[k + row + r][col + c] += part[r][c];
                        if row != col {
                            self.diagonal[k + col + c][row + r] += part[r][c];
                        }
                    }
                }
            }
        }
    }

    /// `self += scale · other`, which has the same nodes and edges.
    pub fn add_scaled(&mut self, scale: f64, other: &Sparse) {
        assert!(self.sizes == other.sizes && self.edges == other.edges);
        let rows = self.diagonal.iter_mut().chain(&mut self.lower).zip(other.diagonal.iter().chain(&other.lower));
        for (x, y) in rows.flat_map(|(x, y)| x.iter_mut().zip(y)) {
            *x += scale * y;
        }
    }

    /// Adds `x` to each diagonal number of node `i`.
    pub fn add_diagonal(&mut self, i: usize, x: f64) {
        let own = self.own_rows(i);
        self.diagonal[own].iter_mut().enumerate().for_each(|(k, row)| row[k] += x);
    }

    /// The sum of the diagonal of node `i`.
    pub fn trace(&self, i: usize) -> f64 {
        self.diagonal[self.own_rows(i)].iter().enumerate().map(|(k, row)| row[k]).sum()
    }

    fn own_rows(&self, i: usize) -> Range<usize> {
        let from = self.own[i] as usize;
        from..from + self.sizes[i] as usize
    }

    /// The rows of an edge.
    fn shared_rows(&self, edge: usize) -> Range<usize> {
        let from = self.shared[edge] as usize;
        from..from + self.sizes[self.edges[edge].0 as usize] as usize
    }

    /// The edges (i, j) with the rows of their blocks.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, &[Vector])> {
        self.blocks_of(0..self.edges.len())
    }

    /// These of them.
    fn blocks_of(&self, edges: Range<usize>) -> impl Iterator<Item = (usize, usize, &[Vector])> {
        edges.map(|e| (self.edges[e].0 as usize, self.edges[e].1 as usize, &self.lower[self.shared_rows(e)]))
    }

    /// `r −= H x`, by nodes.
    pub fn subtract_product(&self, x: &[Vector], r: &mut [Vector]) {
        self.subtract_product_within(self.nodes(), x, r);
    }

    /// Of `r −= H x` only what the nodes before `end` give to one another.
    pub fn subtract_product_within(&self, end: usize, x: &[Vector], r: &mut [Vector]) {
        let r = &mut r[..end];
        if self.instructions == Instructions::Best && has_fused() {
            Fused::enter(Product::<Fused> { matrix: self, x, r, real: PhantomData });
        } else {
            f64::enter(Product::<f64> { matrix: self, x, r, real: PhantomData });
        }
    }

    /// `xᵀ H x` of the nodes before `end` alone.
    pub fn energy(&self, x: &[Vector], end: usize) -> f64 {
        let times = |block: &[Vector], x: &Vector, y: &Vector| -> f64 {
            block.iter().zip(x).map(|(row, x)| x * dot::<f64>(row, y)).sum()
        };
        let mut sum: f64 = (0..end).map(|i| times(&self.diagonal[self.own_rows(i)], &x[i], &x[i])).sum();
        for (i, j, block) in self.blocks() {
            if i < end && j < end {
                sum += 2.0 * times(block, &x[i], &x[j]);
            }
        }
        sum
    }

    /// Of `r −= H x` only what `node`, where x is `x`, gives to those before it.
    pub fn subtract_given(&self, node: usize, x: &Vector, r: &mut [Vector]) {
        for (_, j, block) in self.blocks_of(self.first[node] as usize..self.first[node + 1] as usize) {
            subtract_transpose_times::<f64>(&mut r[j], block, x);
        }
    }

    /// Of `r −= H x` only what the nodes from `first` on give to those before it.
    pub fn subtract_part(&self, x: &[Vector], r: &mut [Vector], first: usize) {
        for (i, j, block) in self.blocks() {
            if i >= first && j < first {
                subtract_transpose_times::<f64>(&mut r[j], block, &x[i]);
            }
        }
    }
}

/// `r −= H x` of as many nodes as r has, compiled for kinds of numbers.
struct Product<'a, R> {
    matrix: &'a Sparse,
    x: &'a [Vector],
    r: &'a mut [Vector],
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Product<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Product { matrix, x, r, .. } = self;
        for (i, r) in r.iter_mut().enumerate() {
            subtract_times::<R>(r, &matrix.diagonal[matrix.own_rows(i)], &x[i]);
        }
        for (i, j, block) in matrix.blocks_of(0..matrix.first[r.len()] as usize) {
            subtract_times::<R>(&mut r[i], block, &x[j]);
            subtract_transpose_times::<R>(&mut r[j], block, &x[i]);
        }
    }
}

/// Where each of some runs of rows starts; returns how many rows there are.
fn starts(list: &mut Vec<u32>, sizes: impl Iterator<Item = usize>) -> usize {
    list.clear();
    let mut rows = 0;
    list.extend(sizes.map(|size| {
        rows += size;
        (rows - size) as u32
    }));
    rows
}

fn add_block(to: &mut [Vector], block: &Block) {
    for (r, row) in to.iter_mut().enumerate() {
        for c in 0..block.cols() {
            row[c] += block.get(r, c);
        }
    }
}

#[inline(always)]
fn dot<R: Real>(a: &Vector, b: &Vector) -> f64 {
    let product = |c: usize| R::splat(a[c]) * R::splat(b[c]);
    let pair = |c: usize| R::splat(a[c + 1]).madd(R::splat(b[c + 1]), product(c));
    (pair(0) + pair(2) + pair(4)).lane(0)
}

/// `y −= a x`.
#[inline(always)]
fn subtract_scaled<R: Real>(y: &mut Vector, a: f64, x: &Vector) {
    for c in 0..6 {
        y[c] = R::splat(a).nmadd(R::splat(x[c]), R::splat(y[c])).lane(0);
    }
}

/// `y −= m x`.
#[inline(always)]
fn subtract_times<R: Real>(y: &mut Vector, m: &[Vector], x: &Vector) {
    for (y, row) in y.iter_mut().zip(m) {
        *y -= dot::<R>(row, x);
    }
}

/// `y −= mᵀ x`.
#[inline(always)]
fn subtract_transpose_times<R: Real>(y: &mut Vector, m: &[Vector], x: &Vector) {
    for (row, x) in m.iter().zip(x) {
        subtract_scaled::<R>(y, *x, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{DMat3, DVec3};
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

            // factors and solution in one go are the same, to the bit; with more on the diagonal they are those of the larger matrix
            let (separately, mut x) = (x, b.clone());
            ldl.factor_and_solve(&case.matrix, &[], &mut x).unwrap();
            assert_eq!(x, separately);
            let turning: Vec<DMat3> =
                (0..bodies).map(|_| DMat3::from_diagonal(DVec3::splat(random.next() + 1.5))).collect();
            let mut x = b.clone();
            ldl.factor_and_solve(&case.matrix, &turning, &mut x).unwrap();
            let mut larger = case.dense.clone();
            for (i, block) in turning.iter().enumerate() {
                (0..3).for_each(|k| larger[(6 * i + 3 + k, 6 * i + 3 + k)] += block.col(k)[k]);
            }
            let dense = larger.lu().solve(&case.flat(&b)).unwrap();
            worst = worst.max((case.flat(&x) - &dense).norm() / dense.norm());

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
                        below.matrix.lower[above.matrix.shared_rows(k).start + r][c] += x;
                        below.dense[(above.offsets[i] + r, above.offsets[j] + c)] += x;
                    }
                }
            }
            below.matrix.diagonal[1][2] += 0.5;
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
