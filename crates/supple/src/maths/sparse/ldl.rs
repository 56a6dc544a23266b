//! `P H Pᵀ = L D Lᵀ` of a symmetric matrix.
//!
//! Column k of L is kept transposed, as the rows of six that node k has: eliminating a joint of three rows reads three rows a block, and a product of blocks is a sum
//! of as many outer products.

use super::order::Order;
use super::{NONE, Sparse, dot, starts, subtract_scaled, subtract_transpose_times};
use crate::maths::block::Vector;
use crate::maths::lanes::{Fused, Instructions, Kernel, Real, has_fused};
use glam::DMat3;
use std::marker::PhantomData;
use std::ops::Range;

/// The factors of a [`Sparse`].
#[derive(Clone, Debug)]
pub struct Ldl {
    /// Nodes in the order of elimination; below, "column" and "row" count in that order.
    pub(super) order: Vec<u32>,
    pub(super) sizes: Vec<u8>,
    /// The blocks below the diagonal of column k are `first[k]..first[k + 1]`.
    pub(super) first: Vec<u32>,
    /// The row of each block, ascending within a column.
    pub(super) rows: Vec<u32>,
    /// Where the numbers of each block start.
    pub(super) starts: Vec<u32>,
    /// For column k, from `first_target[k]`: where the block starts that each pair (a, b), b < a, of its blocks is subtracted from.
    pub(super) targets: Vec<u32>,
    pub(super) first_target: Vec<u32>,
    /// The edges of the matrix that go to column k are `first_edge[k]..first_edge[k + 1]` of `edges`.
    pub(super) edges: Vec<Target>,
    pub(super) first_edge: Vec<u32>,
    /// Columns that have the numbers of the matrix already.
    loaded: Vec<bool>,
    /// Where the pivot of each column starts: as many rows as the node has, then one of `1/d`.
    pub(super) first_pivot: Vec<u32>,
    pivots: Vec<Vector>,
    /// The columns of L, transposed.
    lower: Vec<Vector>,
    /// The blocks of one column before they are divided by the pivot.
    panel: Vec<Vector>,
    permuted: Vec<Vector>,
    /// Rows of numbers in all columns, and in all pivots.
    pub(super) numbers: usize,
    pub(super) pivot_rows: usize,
    /// Scratch for finding the order.
    found: Order,
    /// Which instructions a factorisation uses.
    pub(super) instructions: Instructions,
}

/// Where an edge of the matrix goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    edge: u32,
    column: u32,
    /// Its first row of numbers there.
    at: u32,
    /// Its column is the node of the edge that has the rows of the matrix, so that they are kept as they are.
    pub(super) as_given: bool,
}

/// Below this share of its diagonal number before elimination a pivot is rounding and nothing else.
pub(super) const ROUNDING: f64 = 1e-14;

impl Ldl {
    /// Finds the order for matrices with the blocks of `matrix`, whatever their values.
    pub fn new(matrix: &Sparse) -> Ldl {
        let mut ldl = Ldl::empty();
        ldl.set_pattern(matrix);
        ldl
    }

    /// The same in an order that is given, all nodes once: one in which no pivot can be singular, where minimum degree might meet one.
    pub fn in_order(matrix: &Sparse, order: &[u32]) -> Ldl {
        let mut ldl = Ldl::empty();
        ldl.found.take(matrix.nodes(), &matrix.edges, order);
        ldl.place_blocks(matrix);
        ldl
    }

    fn empty() -> Ldl {
        Ldl {
            order: Vec::new(),
            sizes: Vec::new(),
            first: Vec::new(),
            rows: Vec::new(),
            starts: Vec::new(),
            targets: Vec::new(),
            first_target: Vec::new(),
            edges: Vec::new(),
            first_edge: Vec::new(),
            loaded: Vec::new(),
            first_pivot: Vec::new(),
            pivots: Vec::new(),
            lower: Vec::new(),
            panel: Vec::new(),
            permuted: Vec::new(),
            numbers: 0,
            pivot_rows: 0,
            found: Order::default(),
            instructions: Instructions::Baseline,
        }
    }

    /// From now on factorises with these instructions; at first with those of every machine.
    pub fn use_instructions(&mut self, instructions: Instructions) {
        self.instructions = instructions;
    }

    /// Finds the order anew, for matrices with the blocks of `matrix`. Allocates nothing while there is room.
    pub fn set_pattern(&mut self, matrix: &Sparse) {
        self.found.find(matrix.nodes(), &matrix.edges);
        self.place_blocks(matrix);
    }

    /// An order of elimination by minimum degree for a graph of `n` nodes, and what elimination makes of it: the nodes in their order, and for the k-th
    /// of them, from `first[k]` on, the nodes after it that it shares a block with.
    pub(in crate::maths) fn elimination(n: usize, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let mut order = Order::default();
        order.find(n, edges);
        (order.nodes, order.first, order.rows)
    }

    /// From the order, and for each node of it the nodes it is connected with, where every block goes.
    fn place_blocks(&mut self, matrix: &Sparse) {
        let n = matrix.nodes();
        let Ldl { order, sizes, first, rows, starts: start, targets, first_target, edges, first_edge, found, .. } =
            self;
        order.clone_from(&found.nodes);
        first.clone_from(&found.first);
        let place = &found.place;
        rows.clear();
        rows.extend(found.rows.iter().map(|&node| place[node as usize]));
        sizes.clear();
        sizes.extend(order.iter().map(|&node| matrix.sizes[node as usize]));
        let column = |k: usize| first[k] as usize..first[k + 1] as usize;
        for k in 0..n {
            rows[column(k)].sort_unstable();
        }
        let of_columns = (0..n).flat_map(|k| column(k).map(move |_| k));
        self.numbers = starts(start, of_columns.map(|k| sizes[k] as usize));
        self.pivot_rows = starts(&mut self.first_pivot, sizes.iter().map(|&size| size as usize + 1));
        let block_at = |row: u32, k: usize| -> usize {
            let from = first[k] as usize;
            from + rows[column(k)].binary_search(&row).expect("elimination fills this block in")
        };
        targets.clear();
        first_target.clear();
        for k in 0..n {
            first_target.push(targets.len() as u32);
            let column = &rows[column(k)];
            for (a, &row) in column.iter().enumerate() {
                targets.extend(column[..a].iter().map(|&b| start[block_at(row, b as usize)]));
            }
        }
        edges.clear();
        edges.extend(matrix.edges.iter().zip(0..).map(|(&(i, j), edge)| {
            let (p, q) = (place[i as usize], place[j as usize]);
            let column = p.min(q);
            Target { edge, column, at: start[block_at(p.max(q), column as usize)], as_given: p < q }
        }));
        edges.sort_unstable_by_key(|target| (target.column, target.at));
        first_edge.clear();
        first_edge.resize(n + 1, 0);
        for target in edges.iter() {
            first_edge[target.column as usize + 1] += 1;
        }
        for k in 0..n {
            first_edge[k + 1] += first_edge[k];
        }
        self.loaded.clear();
        self.loaded.resize(n, false);
        let widest = (0..n).map(|k| column(k).len() * sizes[k] as usize).max().unwrap_or(0);
        for (list, rows) in [
            (&mut self.pivots, self.pivot_rows),
            (&mut self.lower, self.numbers),
            (&mut self.panel, widest),
            (&mut self.permuted, n),
        ] {
            list.clear();
            list.resize(rows, NONE);
        }
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
        let task = Task { count: self.order.len(), signs: Pivots::OfAnySign, substitutes: false };
        self.eliminate_first(matrix, &[], task)
    }

    /// Factors `matrix`, to whose first nodes, of six numbers each, the symmetric blocks of `turning` are added between their last three, and solves `x ← H⁻¹ x`
    /// on the way, which passes over the factors once less. On failure x is as it was.
    pub fn factor_and_solve(&mut self, matrix: &Sparse, turning: &[DMat3], x: &mut [Vector]) -> Result<(), usize> {
        self.permute(x);
        let task = Task { count: self.order.len(), signs: Pivots::OfAnySign, substitutes: true };
        self.eliminate_first(matrix, turning, task)?;
        self.substitute(task.count);
        self.permute_back(x);
        Ok(())
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
        self.eliminate_first(matrix, &[], Task { count: done, signs: Pivots::Positive, substitutes: false })?;
        let whole = |rows: &[Vector]| -> [Vector; 6] { std::array::from_fn(|r| rows.get(r).copied().unwrap_or(NONE)) };
        for k in done..self.order.len() {
            let (node, size) = (self.order[k] as usize, self.sizes[k] as usize);
            each(node, node, &whole(&self.pivots[self.first_pivot[k] as usize..][..size]));
            for b in self.first[k] as usize..self.first[k + 1] as usize {
                let block = whole(&self.lower[self.starts[b] as usize..][..size]);
                let block = std::array::from_fn(|r| std::array::from_fn(|c| block[c][r]));
                each(self.order[self.rows[b] as usize] as usize, node, &block);
            }
        }
        Ok(())
    }

    /// Eliminates the first nodes of the order.
    fn eliminate_first(&mut self, matrix: &Sparse, turning: &[DMat3], task: Task) -> Result<(), usize> {
        assert!(matrix.nodes() == self.order.len() && matrix.edges.len() == self.edges.len());
        self.loaded.fill(false);
        if self.instructions == Instructions::Best && has_fused() {
            Fused::enter(Eliminate::<Fused> { ldl: self, matrix, turning, task, real: PhantomData })
        } else {
            f64::enter(Eliminate::<f64> { ldl: self, matrix, turning, task, real: PhantomData })
        }
    }

    /// Fetches the numbers of column k and of those that it is subtracted from. They are fetched when they are first needed, so that they are still near at
    /// hand when they are used.
    #[inline(always)]
    fn fetch(&mut self, k: usize, matrix: &Sparse, turning: &[DMat3]) {
        self.fetch_one(k, matrix, turning);
        for b in self.first[k] as usize..self.first[k + 1] as usize {
            self.fetch_one(self.rows[b] as usize, matrix, turning);
        }
    }

    fn fetch_one(&mut self, k: usize, matrix: &Sparse, turning: &[DMat3]) {
        if std::mem::replace(&mut self.loaded[k], true) {
            return;
        }
        let node = self.order[k] as usize;
        let own = &matrix.diagonal[matrix.own_rows(node)];
        let pivot = &mut self.pivots[self.first_pivot[k] as usize..][..own.len()];
        pivot.copy_from_slice(own);
        if let Some(turning) = turning.get(node) {
            for (row, add) in pivot[3..].iter_mut().zip(turning.to_cols_array_2d()) {
                row[3..].iter_mut().zip(add).for_each(|(to, x)| *to += x);
            }
        }
        let column = self.column(k);
        self.lower[column].fill(NONE);
        for target in &self.edges[self.first_edge[k] as usize..self.first_edge[k + 1] as usize] {
            put(&mut self.lower, matrix, target);
        }
    }

    /// The rows of numbers of column k.
    pub(super) fn column(&self, k: usize) -> Range<usize> {
        let blocks = self.first[k] as usize..self.first[k + 1] as usize;
        let start = self.starts.get(blocks.start).map_or(self.numbers, |&start| start as usize);
        start..start + blocks.len() * self.sizes[k] as usize
    }

    /// Eliminates column k of S numbers:  `L_i = B_i D⁻¹`,  `H_ij −= L_i B_jᵀ` for all pairs of its blocks.
    #[inline(always)]
    fn eliminate<R: Real, const S: usize>(&mut self, k: usize, given: &[Vector], signs: Pivots) -> Option<()> {
        let own = &mut self.pivots[self.first_pivot[k] as usize..][..S + 1];
        let pivot = Pivot::<S>::factor(own, given)?;
        if signs == Pivots::Positive && pivot.inverse[0] < 0.0 {
            return None;
        }
        pivot.store(own);
        let (from, to) = (self.first[k] as usize, self.first[k + 1] as usize);
        let mut target = self.first_target[k] as usize;
        // What is subtracted from lies in later columns.
        let Range { start, end } = self.column(k);
        let (column, later) = self.lower[start..].split_at_mut(end - start);
        let panel = &mut self.panel[..column.len()];
        panel.copy_from_slice(column);
        for a in 0..to - from {
            let b_a = block::<S>(panel, a);
            let l_a = pivot.divide::<R>(b_a);
            column[S * a..][..S].copy_from_slice(&l_a);
            for b in 0..a {
                let size = self.sizes[self.rows[from + b] as usize] as usize;
                let to = &mut later[self.targets[target] as usize - end..][..size];
                subtract_products::<R, S>(to, block::<S>(panel, b), &l_a);
                target += 1;
            }
            let row = self.rows[from + a] as usize;
            let to = &mut self.pivots[self.first_pivot[row] as usize..][..self.sizes[row] as usize];
            subtract_products::<R, S>(to, b_a, &l_a);
        }
        Some(())
    }

    /// After [`condense`](Self::condense) with the same `kept`: of `H x = r` eliminates the nodes that it eliminated. What is left of r at the kept
    /// nodes is the right-hand side of what is left of the matrix; [`expand`](Self::expand) goes on from the rest.
    pub fn reduce(&mut self, kept: usize, r: &mut [Vector]) {
        self.permute(r);
        self.substitute_forward::<f64>(0..self.order.len() - kept);
        self.permute_back(r);
    }

    /// From x at the kept nodes, and what [`reduce`](Self::reduce) left at the others, x at the others.
    pub fn expand(&mut self, kept: usize, x: &mut [Vector]) {
        self.permute(x);
        self.substitute_back::<f64>(self.order.len() - kept);
        self.permute_back(x);
    }

    /// `x ← H⁻¹ x`, by nodes; of a node smaller than six the rest must be zero and stays so.
    pub fn solve(&mut self, x: &mut [Vector]) {
        self.permute(x);
        self.substitute(0);
        self.permute_back(x);
    }

    /// Both substitutions of all columns, the one forward from the column `first` on.
    fn substitute(&mut self, first: usize) {
        if self.instructions == Instructions::Best && has_fused() {
            Fused::enter(Substitute::<Fused> { ldl: self, first, real: PhantomData });
        } else {
            f64::enter(Substitute::<f64> { ldl: self, first, real: PhantomData });
        }
    }

    fn permute(&mut self, x: &[Vector]) {
        for (y, &node) in self.permuted.iter_mut().zip(&self.order) {
            *y = x[node as usize];
        }
    }

    fn permute_back(&self, x: &mut [Vector]) {
        for (y, &node) in self.permuted.iter().zip(&self.order) {
            x[node as usize] = *y;
        }
    }

    /// Of these columns: `y ← L⁻¹ y`.
    #[inline(always)]
    fn substitute_forward<R: Real>(&mut self, columns: Range<usize>) {
        columns.for_each(|k| self.substitute_column::<R>(k));
    }

    /// Of column k alone: `y ← L⁻¹ y`.
    #[inline(always)]
    fn substitute_column<R: Real>(&mut self, k: usize) {
        let y = &mut self.permuted;
        let (y_k, size) = (y[k], self.sizes[k] as usize);
        for b in self.first[k] as usize..self.first[k + 1] as usize {
            let l = &self.lower[self.starts[b] as usize..][..size];
            subtract_transpose_times::<R>(&mut y[self.rows[b] as usize], l, &y_k);
        }
    }

    /// Of the first `count` columns: `y ← L⁻ᵀ D⁻¹ y`.
    #[inline(always)]
    fn substitute_back<R: Real>(&mut self, count: usize) {
        let y = &mut self.permuted;
        for k in (0..count).rev() {
            let size = self.sizes[k] as usize;
            let mut y_k = solve_pivot(&self.pivots[self.first_pivot[k] as usize..][..size + 1], &y[k]);
            for b in self.first[k] as usize..self.first[k + 1] as usize {
                let l = &self.lower[self.starts[b] as usize..][..size];
                let y_b = &y[self.rows[b] as usize];
                y_k.iter_mut().zip(l).for_each(|(y, l)| *y -= dot::<R>(l, y_b));
            }
            y[k] = y_k;
        }
    }
}

/// Puts an edge of a matrix where it belongs in columns that are kept transposed.
pub(super) fn put(numbers: &mut [Vector], matrix: &Sparse, target: &Target) {
    let edge = target.edge as usize;
    let rows = &matrix.lower[matrix.shared_rows(edge)];
    let at = target.at as usize;
    if target.as_given {
        numbers[at..][..rows.len()].copy_from_slice(rows);
    } else {
        let size = matrix.sizes[matrix.edges[edge].1 as usize] as usize;
        for (r, to) in numbers[at..][..size].iter_mut().enumerate() {
            *to = std::array::from_fn(|c| rows.get(c).map_or(0.0, |row| row[r]));
        }
    }
}

/// Block `a` of a column of S rows a block.
#[inline(always)]
pub(super) fn block<const S: usize>(column: &[Vector], a: usize) -> &[Vector; S] {
    column[S * a..][..S].try_into().expect("S rows")
}

/// `h −= leftᵀ right`, as many rows of it as there are.
#[inline(always)]
pub(super) fn subtract_products<R: Real, const S: usize>(h: &mut [Vector], left: &[Vector; S], right: &[Vector; S]) {
    // most have six, which the compiler then knows
    match h.as_mut_array::<6>() {
        Some(six) => subtract_rows::<R, S>(six, left, right),
        None => subtract_rows::<R, S>(h, left, right),
    }
}

#[inline(always)]
fn subtract_rows<R: Real, const S: usize>(h: &mut [Vector], left: &[Vector; S], right: &[Vector; S]) {
    for (r, to) in h.iter_mut().enumerate().take(6) {
        let mut row = *to;
        for c in 0..S {
            subtract_scaled::<R>(&mut row, left[c][r], &right[c]);
        }
        *to = row;
    }
}

/// Both substitutions, compiled for kinds of numbers.
struct Substitute<'a, R> {
    ldl: &'a mut Ldl,
    first: usize,
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Substitute<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let all = self.ldl.order.len();
        self.ldl.substitute_forward::<R>(self.first..all);
        self.ldl.substitute_back::<R>(all);
    }
}

/// What an elimination does.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// Nodes that are eliminated.
    count: usize,
    signs: Pivots,
    /// Whether `permuted` is substituted forward on the way.
    substitutes: bool,
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
    turning: &'a [DMat3],
    task: Task,
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Eliminate<'_, R> {
    type Output = Result<(), usize>;
    #[inline(always)]
    fn run(self) -> Result<(), usize> {
        let Eliminate { ldl, matrix, turning, task: Task { count, signs, substitutes }, .. } = self;
        for k in 0..count {
            let node = ldl.order[k] as usize;
            let given = &matrix.diagonal[matrix.own_rows(node)];
            ldl.fetch(k, matrix, turning);
            let done = match ldl.sizes[k] {
                0 => Some(()),
                1 => ldl.eliminate::<R, 1>(k, given, signs),
                2 => ldl.eliminate::<R, 2>(k, given, signs),
                3 => ldl.eliminate::<R, 3>(k, given, signs),
                4 => ldl.eliminate::<R, 4>(k, given, signs),
                5 => ldl.eliminate::<R, 5>(k, given, signs),
                _ => ldl.eliminate::<R, 6>(k, given, signs),
            };
            done.ok_or(node)?;
            if substitutes {
                ldl.substitute_column::<R>(k);
            }
        }
        (count..ldl.order.len()).for_each(|k| ldl.fetch_one(k, matrix, turning));
        Ok(())
    }
}

/// `L D Lᵀ` of a pivot, the unit diagonal left out and `1/d` kept.
struct Pivot<const S: usize> {
    l: [[f64; S]; S],
    inverse: [f64; S],
}

impl<const S: usize> Pivot<S> {
    /// Factors these rows. `given` is the block before any elimination.
    #[inline(always)]
    fn factor(a: &[Vector], given: &[Vector]) -> Option<Pivot<S>> {
        let (mut l, mut d, mut inverse) = ([[0.0; S]; S], [1.0; S], [1.0; S]);
        for j in 0..S {
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
            inverse[j] = 1.0 / dj;
            for i in j + 1..S {
                let mut x = a[i][j];
                for k in 0..j {
                    x -= l[i][k] * d[k] * l[j][k];
                }
                l[i][j] = x * inverse[j];
            }
        }
        Some(Pivot { l, inverse })
    }

    /// Writes it over the rows it is of, and one more.
    #[inline(always)]
    fn store(&self, rows: &mut [Vector]) {
        for i in 0..S {
            rows[i][..S].copy_from_slice(&self.l[i]);
            rows[S][i] = self.inverse[i];
        }
    }

    /// `D⁻¹ b`, all columns of b at once.
    #[inline(always)]
    fn divide<R: Real>(&self, b: &[Vector; S]) -> [Vector; S] {
        let mut y = *b;
        for i in 1..S {
            for k in 0..i {
                let y_k = y[k];
                subtract_scaled::<R>(&mut y[i], self.l[i][k], &y_k);
            }
        }
        for i in (0..S).rev() {
            y[i].iter_mut().for_each(|y| *y *= self.inverse[i]);
            for k in i + 1..S {
                let y_k = y[k];
                subtract_scaled::<R>(&mut y[i], self.l[k][i], &y_k);
            }
        }
        y
    }
}

/// `D⁻¹ x` of a pivot that was stored.
#[inline(always)]
fn solve_pivot(rows: &[Vector], x: &Vector) -> Vector {
    let size = rows.len() - 1;
    let mut y = *x;
    for i in 1..size {
        for k in 0..i {
            y[i] -= rows[i][k] * y[k];
        }
    }
    for i in (0..size).rev() {
        y[i] *= rows[size][i];
        for k in i + 1..size {
            y[i] -= rows[k][i] * y[k];
        }
    }
    y
}
