//! The factorisation `P H Pᵀ = L U` of a matrix whose blocks are where those of a symmetric one are, but are not the same on both sides of the
//! diagonal: `[A J0ᵀ; J1 −μ]`, rows that differ at the two ends of a step.
//!
//! It eliminates in the order that was found for the symmetric matrix, in which nothing more fills in. No pivoting is done: the matrix is to be near a
//! quasi-definite one. As there, columns of L are kept transposed, in rows of six, and so are those of Uᵀ.

use super::ldl::{ROUNDING, block, put, subtract_products};
use super::{Ldl, NONE, Sparse, dot, subtract_scaled, subtract_transpose_times};
use crate::maths::block::Vector;
use crate::maths::lanes::{Fused, Instructions, Kernel, Real, has_fused};
use std::marker::PhantomData;
use std::ops::Range;

/// The factors.
#[derive(Clone, Debug, Default)]
pub struct Lu {
    /// `L` below the diagonal, transposed, and `U` beside it, by the blocks of the pattern.
    lower: Vec<Vector>,
    upper: Vec<Vector>,
    /// Pivots, factored: the unit `l` below their diagonal, `u` above it, then a row of `1/u` on it.
    pivots: Vec<Vector>,
    permuted: Vec<Vector>,
    /// Columns that have the numbers of the matrix already.
    loaded: Vec<bool>,
}

impl Lu {
    /// Makes room for matrices with the pattern of `pattern`.
    pub fn set_pattern(&mut self, pattern: &Ldl) {
        for (list, rows) in [
            (&mut self.lower, pattern.numbers),
            (&mut self.upper, pattern.numbers),
            (&mut self.pivots, pattern.pivot_rows),
            (&mut self.permuted, pattern.order.len()),
        ] {
            list.clear();
            list.resize(rows, NONE);
        }
        self.loaded.clear();
        self.loaded.resize(pattern.order.len(), false);
    }

    /// Factors the matrix with the diagonal and the lower blocks of `below`, and above its diagonal the transposed lower blocks of `above`. On failure
    /// names the node whose pivot is singular or not finite.
    pub fn factor(&mut self, pattern: &Ldl, below: &Sparse, above: &Sparse) -> Result<(), usize> {
        assert!(self.pivots.len() == pattern.pivot_rows && self.lower.len() == pattern.numbers);
        self.loaded.fill(false);
        if pattern.instructions == Instructions::Best && has_fused() {
            Fused::enter(Eliminate::<Fused> { lu: self, pattern, below, above, real: PhantomData })
        } else {
            f64::enter(Eliminate::<f64> { lu: self, pattern, below, above, real: PhantomData })
        }
    }

    /// Fetches the numbers of column k when they are first needed.
    fn fetch(&mut self, k: usize, pattern: &Ldl, below: &Sparse, above: &Sparse) {
        if std::mem::replace(&mut self.loaded[k], true) {
            return;
        }
        let own = &below.diagonal[below.own_rows(pattern.order[k] as usize)];
        self.pivots[pattern.first_pivot[k] as usize..][..own.len()].copy_from_slice(own);
        let column = pattern.column(k);
        self.lower[column.clone()].fill(NONE);
        self.upper[column].fill(NONE);
        for target in &pattern.edges[pattern.first_edge[k] as usize..pattern.first_edge[k + 1] as usize] {
            // What is below the diagonal of the matrix is above that of the elimination where the rows of the edge are a column.
            let (lower, upper) = if target.as_given { (above, below) } else { (below, above) };
            put(&mut self.lower, lower, target);
            put(&mut self.upper, upper, target);
        }
    }

    /// Eliminates column k of S numbers:  `L_i = B_i D⁻¹`,  `H_ij −= L_i U_j` for all pairs of its blocks, on both sides of the diagonal.
    #[inline(always)]
    fn eliminate<R: Real, const S: usize>(&mut self, k: usize, pattern: &Ldl, given: &[Vector]) -> Option<()> {
        let own = &mut self.pivots[pattern.first_pivot[k] as usize..][..S + 1];
        let pivot = Pivot::<S>::factor(own, given)?;
        pivot.store(own);
        let (from, to) = (pattern.first[k] as usize, pattern.first[k + 1] as usize);
        let mut target = pattern.first_target[k] as usize;
        // What is subtracted from lies in later columns.
        let Range { start, end } = pattern.column(k);
        let (lower, lower_later) = self.lower[start..].split_at_mut(end - start);
        let (upper, upper_later) = self.upper[start..].split_at_mut(end - start);
        for a in 0..to - from {
            let l_a = pivot.divide::<R>(block::<S>(lower, a));
            lower[S * a..][..S].copy_from_slice(&l_a);
            let u_a = block::<S>(upper, a);
            for b in 0..a {
                let size = pattern.sizes[pattern.rows[from + b] as usize] as usize;
                let at = pattern.targets[target] as usize - end;
                subtract_products::<R, S>(&mut lower_later[at..][..size], block::<S>(upper, b), &l_a);
                subtract_products::<R, S>(&mut upper_later[at..][..size], block::<S>(lower, b), u_a);
                target += 1;
            }
            let row = pattern.rows[from + a] as usize;
            let to = &mut self.pivots[pattern.first_pivot[row] as usize..][..pattern.sizes[row] as usize];
            subtract_products::<R, S>(to, &l_a, u_a);
        }
        Some(())
    }

    /// `x ← H⁻¹ x`, by nodes; of a node smaller than six the rest must be zero and stays so.
    pub fn solve(&mut self, pattern: &Ldl, x: &mut [Vector]) {
        if pattern.instructions == Instructions::Best && has_fused() {
            Fused::enter(Substitute::<Fused> { lu: self, pattern, x, real: PhantomData });
        } else {
            f64::enter(Substitute::<f64> { lu: self, pattern, x, real: PhantomData });
        }
    }
}

/// Both substitutions, compiled for kinds of numbers.
struct Substitute<'a, R> {
    lu: &'a mut Lu,
    pattern: &'a Ldl,
    x: &'a mut [Vector],
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Substitute<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Lu { lower, upper, pivots, permuted: y, .. } = self.lu;
        let Ldl { order, sizes, first, rows, starts, first_pivot, .. } = self.pattern;
        let blocks = |k: usize| first[k] as usize..first[k + 1] as usize;
        for (y, &node) in y.iter_mut().zip(order) {
            *y = self.x[node as usize];
        }
        for k in 0..y.len() {
            let (y_k, size) = (y[k], sizes[k] as usize);
            for b in blocks(k) {
                let l = &lower[starts[b] as usize..][..size];
                subtract_transpose_times::<R>(&mut y[rows[b] as usize], l, &y_k);
            }
        }
        for k in (0..y.len()).rev() {
            let (mut y_k, size) = (y[k], sizes[k] as usize);
            for b in blocks(k) {
                let (u, y_b) = (&upper[starts[b] as usize..][..size], &y[rows[b] as usize]);
                y_k.iter_mut().zip(u).for_each(|(y, u)| *y -= dot::<R>(u, y_b));
            }
            y[k] = solve_pivot(&pivots[first_pivot[k] as usize..][..size + 1], &y_k);
        }
        for (y, &node) in y.iter().zip(order) {
            self.x[node as usize] = *y;
        }
    }
}

/// The elimination, compiled for kinds of numbers.
struct Eliminate<'a, R> {
    lu: &'a mut Lu,
    pattern: &'a Ldl,
    below: &'a Sparse,
    above: &'a Sparse,
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Eliminate<'_, R> {
    type Output = Result<(), usize>;
    #[inline(always)]
    fn run(self) -> Result<(), usize> {
        let Eliminate { lu, pattern, below, above, .. } = self;
        for (k, &node) in pattern.order.iter().enumerate() {
            lu.fetch(k, pattern, below, above);
            for b in pattern.first[k] as usize..pattern.first[k + 1] as usize {
                lu.fetch(pattern.rows[b] as usize, pattern, below, above);
            }
            let given = &below.diagonal[below.own_rows(node as usize)];
            let done = match pattern.sizes[k] {
                0 => Some(()),
                1 => lu.eliminate::<R, 1>(k, pattern, given),
                2 => lu.eliminate::<R, 2>(k, pattern, given),
                3 => lu.eliminate::<R, 3>(k, pattern, given),
                4 => lu.eliminate::<R, 4>(k, pattern, given),
                5 => lu.eliminate::<R, 5>(k, pattern, given),
                _ => lu.eliminate::<R, 6>(k, pattern, given),
            };
            done.ok_or(node as usize)?;
        }
        Ok(())
    }
}

/// `l u` of a pivot, and `1/u` of its diagonal.
struct Pivot<const S: usize> {
    lu: [[f64; S]; S],
    inverse: [f64; S],
}

impl<const S: usize> Pivot<S> {
    /// Factors these rows. `given` is the block before any elimination.
    #[inline(always)]
    fn factor(a: &[Vector], given: &[Vector]) -> Option<Pivot<S>> {
        let (mut m, mut inverse) = ([[0.0; S]; S], [1.0; S]);
        for i in 0..S {
            for j in 0..S {
                let mut x = a[i][j];
                for k in 0..i.min(j) {
                    x -= m[i][k] * m[k][j];
                }
                m[i][j] = if j < i { x * inverse[j] } else { x };
            }
            let scale = given[i][i].abs().max((a[i][i] - given[i][i]).abs());
            let pivot = m[i][i];
            if !(pivot.is_finite() && pivot.abs() > ROUNDING * scale) {
                return None;
            }
            inverse[i] = 1.0 / pivot;
        }
        Some(Pivot { lu: m, inverse })
    }

    /// Writes it over the rows it is of, and one more.
    #[inline(always)]
    fn store(&self, rows: &mut [Vector]) {
        for i in 0..S {
            rows[i][..S].copy_from_slice(&self.lu[i]);
            rows[S][i] = self.inverse[i];
        }
    }

    /// `D⁻ᵀ b`, all columns of b at once: `Dᵀ = uᵀ lᵀ`.
    #[inline(always)]
    fn divide<R: Real>(&self, b: &[Vector; S]) -> [Vector; S] {
        let mut y = *b;
        for i in 0..S {
            for k in 0..i {
                let y_k = y[k];
                subtract_scaled::<R>(&mut y[i], self.lu[k][i], &y_k);
            }
            y[i].iter_mut().for_each(|y| *y *= self.inverse[i]);
        }
        for i in (0..S).rev() {
            for k in i + 1..S {
                let y_k = y[k];
                subtract_scaled::<R>(&mut y[i], self.lu[k][i], &y_k);
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
        for k in i + 1..size {
            y[i] -= rows[i][k] * y[k];
        }
        y[i] *= rows[size][i];
    }
    y
}
