//! The factorisation `P H Pᵀ = L U` of a matrix whose blocks are where those of a symmetric one are, but are not the same on both sides of the
//! diagonal: `[A J0ᵀ; J1 −μ]`, rows that differ at the two ends of a step.
//!
//! It eliminates in the order that was found for the symmetric matrix, in which nothing more fills in. No pivoting is done: the matrix is to be near a
//! quasi-definite one.

use super::{Ldl, Mat, Pivot, ROUNDING, Sparse, ZERO, subtract_product, subtract_times, transpose};
use crate::maths::block::Vector;
use crate::maths::lanes::{Fused, Instructions, Kernel, Real, has_fused};
use std::marker::PhantomData;

/// The factors.
#[derive(Clone, Debug, Default)]
pub struct Lu {
    /// `L` below the diagonal, `U` beside it, by the blocks of the pattern.
    lower: Vec<Mat>,
    upper: Vec<Mat>,
    /// Pivots, factored: the unit `l` below their diagonal, `u` above it.
    pivots: Vec<Pivot>,
    permuted: Vec<Vector>,
}

impl Lu {
    /// Makes room for matrices with the pattern of `pattern`.
    pub fn set_pattern(&mut self, pattern: &Ldl) {
        let (nodes, blocks) = (pattern.order.len(), pattern.rows.len());
        for blocks_of in [&mut self.lower, &mut self.upper] {
            blocks_of.clear();
            blocks_of.resize(blocks, ZERO);
        }
        self.pivots.clear();
        self.pivots.resize(nodes, Pivot { l: ZERO, inverse: [1.0; 6] });
        self.permuted.clear();
        self.permuted.resize(nodes, [0.0; 6]);
    }

    /// Factors the matrix with the diagonal and the lower blocks of `below`, and above its diagonal the transposed lower blocks of `above`. On failure
    /// names the node whose pivot is singular or not finite.
    pub fn factor(&mut self, pattern: &Ldl, below: &Sparse, above: &Sparse) -> Result<(), usize> {
        assert!(self.pivots.len() == pattern.order.len() && self.lower.len() == pattern.rows.len());
        self.scatter(pattern, below, above);
        if pattern.instructions == Instructions::Best && has_fused() {
            Fused::enter(Eliminate::<Fused> { lu: self, pattern, below, real: PhantomData })
        } else {
            f64::enter(Eliminate::<f64> { lu: self, pattern, below, real: PhantomData })
        }
    }

    fn scatter(&mut self, pattern: &Ldl, below: &Sparse, above: &Sparse) {
        for &block in &pattern.filled_in {
            (self.lower[block as usize], self.upper[block as usize]) = (ZERO, ZERO);
        }
        for (pivot, &node) in self.pivots.iter_mut().zip(&pattern.order) {
            pivot.l = below.diagonal[node as usize];
        }
        for ((b, a), &(to, transposed)) in below.lower.iter().zip(&above.lower).zip(&pattern.scatter) {
            let (lower, upper) = if transposed { (transpose(a), *b) } else { (*b, transpose(a)) };
            (self.lower[to as usize], self.upper[to as usize]) = (lower, upper);
        }
    }

    /// Eliminates column k:  `L_i = B_i D⁻¹`,  `H_ij −= L_i U_j` for all pairs of its blocks, on both sides of the diagonal.
    #[inline(always)]
    fn eliminate<R: Real>(&mut self, k: usize, pattern: &Ldl, given: &Mat) -> Option<()> {
        let pivot = &mut self.pivots[k];
        pivot.factor_unsymmetric(pattern.sizes[k] as usize, given)?;
        let pivot = *pivot;
        let (from, to) = (pattern.first[k] as usize, pattern.first[k + 1] as usize);
        let mut target = pattern.first_target[k] as usize;
        // What is subtracted from lies in later columns.
        let (lower, lower_later) = self.lower.split_at_mut(to);
        let (upper, upper_later) = self.upper.split_at_mut(to);
        for a in from..to {
            let l_a = pivot.divide_unsymmetric::<R>(&transpose(&lower[a]));
            lower[a] = l_a;
            for b in from..a {
                let at = pattern.targets[target] as usize - to;
                subtract_product::<R>(&mut lower_later[at], &l_a, &upper[b]);
                subtract_product::<R>(&mut upper_later[at], &lower[b], &upper[a]);
                target += 1;
            }
            subtract_product::<R>(&mut self.pivots[pattern.rows[a] as usize].l, &l_a, &upper[a]);
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
        let Lu { lower, upper, pivots, permuted: y } = self.lu;
        let Ldl { order, first, rows, .. } = self.pattern;
        let blocks = |k: usize| first[k] as usize..first[k + 1] as usize;
        for (y, &node) in y.iter_mut().zip(order) {
            *y = self.x[node as usize];
        }
        for k in 0..y.len() {
            let y_k = y[k];
            for b in blocks(k) {
                subtract_times::<R>(&mut y[rows[b] as usize], &lower[b], &y_k);
            }
        }
        for k in (0..y.len()).rev() {
            let mut y_k = y[k];
            for b in blocks(k) {
                subtract_times::<R>(&mut y_k, &upper[b], &y[rows[b] as usize]);
            }
            y[k] = pivots[k].solve_unsymmetric(&y_k);
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
    real: PhantomData<R>,
}

impl<R: Real> Kernel for Eliminate<'_, R> {
    type Output = Result<(), usize>;
    #[inline(always)]
    fn run(self) -> Result<(), usize> {
        for (k, &node) in self.pattern.order.iter().enumerate() {
            let node = node as usize;
            self.lu.eliminate::<R>(k, self.pattern, &self.below.diagonal[node]).ok_or(node)?;
        }
        Ok(())
    }
}

impl Pivot {
    /// `l u` in place; rows and columns from `size` on become those of the identity. `given` is the block before any elimination.
    fn factor_unsymmetric(&mut self, size: usize, given: &Mat) -> Option<()> {
        let a = self.l;
        let m = &mut self.l;
        *m = ZERO;
        self.inverse = [1.0; 6];
        for i in 0..size {
            for j in 0..size {
                let mut x = a[i][j];
                for k in 0..i.min(j) {
                    x -= m[i][k] * m[k][j];
                }
                m[i][j] = if j < i { x * self.inverse[j] } else { x };
            }
            let scale = given[i][i].abs().max((a[i][i] - given[i][i]).abs());
            let pivot = m[i][i];
            if !(pivot.is_finite() && pivot.abs() > ROUNDING * scale) {
                return None;
            }
            self.inverse[i] = 1.0 / pivot;
        }
        Some(())
    }

    /// `D⁻¹ x`.
    #[inline(always)]
    fn solve_unsymmetric(&self, x: &Vector) -> Vector {
        let mut y = *x;
        for i in 1..6 {
            for k in 0..i {
                y[i] -= self.l[i][k] * y[k];
            }
        }
        for i in (0..6).rev() {
            for k in i + 1..6 {
                y[i] -= self.l[i][k] * y[k];
            }
            y[i] *= self.inverse[i];
        }
        y
    }

    /// `b D⁻¹` from `bᵀ`, all rows of b at once: `Dᵀ y = bᵀ`, `Dᵀ = uᵀ lᵀ`.
    #[inline(always)]
    fn divide_unsymmetric<R: Real>(&self, b: &Mat) -> Mat {
        let mut y = *b;
        let subtract = |y: &mut Mat, i: usize, k: usize, l: f64| {
            for c in 0..6 {
                y[i][c] = R::splat(l).nmadd(R::splat(y[k][c]), R::splat(y[i][c])).lane(0);
            }
        };
        for i in 0..6 {
            for k in 0..i {
                subtract(&mut y, i, k, self.l[k][i]);
            }
            for c in 0..6 {
                y[i][c] *= self.inverse[i];
            }
        }
        for i in (0..6).rev() {
            for k in i + 1..6 {
                subtract(&mut y, i, k, self.l[k][i]);
            }
        }
        transpose(&y)
    }
}
