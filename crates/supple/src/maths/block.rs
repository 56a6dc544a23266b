//! Small dense blocks, at most 6×6: products, and the factorisations of the pivots of the KKT form.
//!
//! A block carries its size, so that the rows of joints (0 to 6) and bodies (6) go through the same code. Nothing
//! here allocates.

use super::{Twist, Wrench};
use glam::{DMat3, DVec3};

/// Six numbers, [linear; angular] for bodies; of a joint only the first `rows` count.
pub type Vector = [f64; 6];

/// A twist as [linear; angular].
pub fn from_twist(t: Twist) -> Vector {
    [t.linear.x, t.linear.y, t.linear.z, t.angular.x, t.angular.y, t.angular.z]
}

/// [linear; angular] as a twist.
pub fn to_twist(v: &Vector) -> Twist {
    Twist::new(DVec3::new(v[0], v[1], v[2]), DVec3::new(v[3], v[4], v[5]))
}

/// A wrench as [force; torque].
pub fn from_wrench(w: Wrench) -> Vector {
    [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
}

/// [force; torque] as a wrench.
pub fn to_wrench(v: &Vector) -> Wrench {
    Wrench::new(DVec3::new(v[0], v[1], v[2]), DVec3::new(v[3], v[4], v[5]))
}

/// `x += scale · y`.
pub fn add_scaled(x: &mut Vector, scale: f64, y: &Vector) {
    for i in 0..6 {
        x[i] += scale * y[i];
    }
}

/// A matrix of at most six rows and six columns. Entries outside its size are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    rows: usize,
    cols: usize,
    at: [[f64; 6]; 6],
}

impl Block {
    /// All zero.
    pub const fn zeros(rows: usize, cols: usize) -> Block {
        assert!(rows <= 6 && cols <= 6);
        Block { rows, cols, at: [[0.0; 6]; 6] }
    }

    /// The 6×6 block `[[ll, la], [al, aa]]` of 3×3 blocks: l linear, a angular.
    pub fn from_quarters(ll: DMat3, la: DMat3, al: DMat3, aa: DMat3) -> Block {
        let mut block = Block::zeros(6, 6);
        for i in 0..3 {
            for j in 0..3 {
                block.at[i][j] = ll.col(j)[i];
                block.at[i][j + 3] = la.col(j)[i];
                block.at[i + 3][j] = al.col(j)[i];
                block.at[i + 3][j + 3] = aa.col(j)[i];
            }
        }
        block
    }

    /// The 6×6 block that is zero but for its angular quarter.
    pub fn angular(aa: DMat3) -> Block {
        Block::from_quarters(DMat3::ZERO, DMat3::ZERO, DMat3::ZERO, aa)
    }

    /// `scale · x yᵀ`, 6×6.
    pub fn outer(scale: f64, x: &Vector, y: &Vector) -> Block {
        let mut block = Block::zeros(6, 6);
        for i in 0..6 {
            for j in 0..6 {
                block.at[i][j] = scale * x[i] * y[j];
            }
        }
        block
    }

    /// `self += x yᵀ`, of a 6×6 block.
    pub fn add_outer(&mut self, x: &Vector, y: &Vector) {
        for (row, x) in self.at.iter_mut().zip(x) {
            for (entry, y) in row.iter_mut().zip(y) {
                *entry += x * y;
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One entry.
    pub fn get(&self, row: usize, col: usize) -> f64 {
        self.at[row][col]
    }

    /// Sets one entry.
    pub fn set(&mut self, row: usize, col: usize, value: f64) {
        assert!(row < self.rows && col < self.cols);
        self.at[row][col] = value;
    }

    /// Sets one row of six columns.
    pub fn set_row(&mut self, row: usize, values: &Vector) {
        assert!(row < self.rows && self.cols == 6);
        self.at[row] = *values;
    }

    /// Sets one column of six rows.
    pub fn set_column(&mut self, col: usize, values: &Vector) {
        assert!(col < self.cols && self.rows == 6);
        for (row, value) in self.at.iter_mut().zip(values) {
            row[col] = *value;
        }
    }

    /// The transpose.
    pub fn transposed(&self) -> Block {
        let mut out = Block::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for j in 0..self.cols {
                out.at[j][i] = self.at[i][j];
            }
        }
        out
    }

    /// `self · other`.
    pub fn times(&self, other: &Block) -> Block {
        assert_eq!(self.cols, other.rows);
        let mut out = Block::zeros(self.rows, other.cols);
        for i in 0..self.rows {
            for k in 0..self.cols {
                for j in 0..6 {
                    out.at[i][j] += self.at[i][k] * other.at[k][j];
                }
            }
        }
        out
    }

    /// `selfᵀ · other`.
    pub fn transpose_times(&self, other: &Block) -> Block {
        assert_eq!(self.rows, other.rows);
        let mut out = Block::zeros(self.cols, other.cols);
        for k in 0..self.rows {
            for i in 0..self.cols {
                for j in 0..6 {
                    out.at[i][j] += self.at[k][i] * other.at[k][j];
                }
            }
        }
        out
    }

    /// `self += scale · other`.
    pub fn add_scaled(&mut self, scale: f64, other: &Block) {
        assert!(self.rows == other.rows && self.cols == other.cols);
        for i in 0..self.rows {
            add_scaled(&mut self.at[i], scale, &other.at[i]);
        }
    }

    /// `self · x`.
    pub fn times_vector(&self, x: &Vector) -> Vector {
        let mut out = [0.0; 6];
        for i in 0..self.rows {
            out[i] = (0..self.cols).map(|j| self.at[i][j] * x[j]).sum();
        }
        out
    }

    /// `selfᵀ · x`.
    pub fn transpose_times_vector(&self, x: &Vector) -> Vector {
        let mut out = [0.0; 6];
        for i in 0..self.rows {
            add_scaled(&mut out, x[i], &self.at[i]);
        }
        out
    }
}

/// Below this fraction of its diagonal entry a pivot is rounding and nothing else.
const PIVOT: f64 = 1e-14;

/// `L D Lᵀ` of a symmetric definite block, positive or negative; only the lower triangle is read.
#[derive(Clone, Copy, Debug)]
pub struct Ldlt {
    n: usize,
    l: [[f64; 6]; 6],
    d: [f64; 6],
}

impl Ldlt {
    /// The factors of the empty block.
    pub const EMPTY: Ldlt = Ldlt { n: 0, l: [[0.0; 6]; 6], d: [0.0; 6] };

    /// Factors `block`, or `None` when it is singular, indefinite or not finite.
    pub fn new(block: &Block) -> Option<Ldlt> {
        assert_eq!(block.rows, block.cols);
        let mut f = Ldlt { n: block.rows, ..Ldlt::EMPTY };
        for j in 0..f.n {
            // d_j = a_jj − Σ_k l_jk² d_k,   l_ij = (a_ij − Σ_k l_ik d_k l_jk)/d_j
            let mut d = block.at[j][j];
            for k in 0..j {
                d -= f.l[j][k] * f.l[j][k] * f.d[k];
            }
            let same_sign = d * block.at[0][0] > 0.0;
            if !(same_sign && d.is_finite() && d.abs() > PIVOT * block.at[j][j].abs()) {
                return None;
            }
            f.d[j] = d;
            f.l[j][j] = 1.0;
            for i in j + 1..f.n {
                let mut x = block.at[i][j];
                for k in 0..j {
                    x -= f.l[i][k] * f.d[k] * f.l[j][k];
                }
                f.l[i][j] = x / d;
            }
        }
        Some(f)
    }

    /// `block⁻¹ x`.
    pub fn solve(&self, x: &Vector) -> Vector {
        let mut y = *x;
        for i in 0..self.n {
            for k in 0..i {
                y[i] -= self.l[i][k] * y[k];
            }
        }
        for i in (0..self.n).rev() {
            y[i] /= self.d[i];
            for k in i + 1..self.n {
                y[i] -= self.l[k][i] * y[k];
            }
        }
        y
    }

    /// `block⁻¹ X`.
    pub fn solve_block(&self, x: &Block) -> Block {
        assert_eq!(self.n, x.rows);
        let mut y = *x;
        for i in 0..self.n {
            for k in 0..i {
                let (l, row) = (self.l[i][k], y.at[k]);
                add_scaled(&mut y.at[i], -l, &row);
            }
        }
        for i in (0..self.n).rev() {
            y.at[i] = y.at[i].map(|v| v / self.d[i]);
            for k in i + 1..self.n {
                let (l, row) = (self.l[k][i], y.at[k]);
                add_scaled(&mut y.at[i], -l, &row);
            }
        }
        y
    }
}

/// `P A = L U` with partial pivoting.
#[derive(Clone, Copy, Debug)]
pub struct Lu {
    n: usize,
    lu: [[f64; 6]; 6],
    order: [usize; 6],
}

impl Lu {
    /// The factors of the empty block.
    pub const EMPTY: Lu = Lu { n: 0, lu: [[0.0; 6]; 6], order: [0, 1, 2, 3, 4, 5] };

    /// Factors `block`, or `None` when it is singular or not finite.
    pub fn new(block: &Block) -> Option<Lu> {
        assert_eq!(block.rows, block.cols);
        let n = block.rows;
        let mut f = Lu { n, lu: block.at, ..Lu::EMPTY };
        for j in 0..n {
            let column_size = (0..n).fold(0.0f64, |m, i| m.max(block.at[i][j].abs()));
            let pivot = (j..n).max_by(|&a, &b| f.lu[a][j].abs().total_cmp(&f.lu[b][j].abs()))?;
            f.lu.swap(j, pivot);
            f.order.swap(j, pivot);
            let d = f.lu[j][j];
            if !(d.is_finite() && d.abs() > PIVOT * column_size) {
                return None;
            }
            for i in j + 1..n {
                f.lu[i][j] /= d;
                for k in j + 1..n {
                    f.lu[i][k] -= f.lu[i][j] * f.lu[j][k];
                }
            }
        }
        Some(f)
    }

    /// `block⁻¹ x`.
    pub fn solve(&self, x: &Vector) -> Vector {
        let mut y = [0.0; 6];
        for i in 0..self.n {
            y[i] = x[self.order[i]];
            for k in 0..i {
                y[i] -= self.lu[i][k] * y[k];
            }
        }
        for i in (0..self.n).rev() {
            for k in i + 1..self.n {
                y[i] -= self.lu[i][k] * y[k];
            }
            y[i] /= self.lu[i][i];
        }
        y
    }

    /// `block⁻¹ X`.
    pub fn solve_block(&self, x: &Block) -> Block {
        assert_eq!(self.n, x.rows);
        let columns = x.transposed();
        let mut y = Block::zeros(x.cols, x.rows);
        for j in 0..x.cols {
            y.at[j] = self.solve(&columns.at[j]);
        }
        y.transposed()
    }
}

/// Solves a dense system of any size, `m` row by row, by Gaussian elimination with row exchange; the solution replaces `rhs`, `m` is
/// used up.
pub fn solve_dense(m: &mut [f64], rhs: &mut [f64]) {
    let n = rhs.len();
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &k| m[i * n + c].abs().total_cmp(&m[k * n + c].abs())).unwrap_or(c);
        if pivot != c {
            for k in 0..n {
                m.swap(c * n + k, pivot * n + k);
            }
            rhs.swap(c, pivot);
        }
        for r in c + 1..n {
            let factor = m[r * n + c] / m[c * n + c];
            for k in c..n {
                m[r * n + k] -= factor * m[c * n + k];
            }
            rhs[r] -= factor * rhs[c];
        }
    }
    for r in (0..n).rev() {
        for k in r + 1..n {
            rhs[r] -= m[r * n + k] * rhs[k];
        }
        rhs[r] /= m[r * n + r];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries in (−1, 1) from a fixed sequence.
    fn sample(rows: usize, cols: usize, seed: u64) -> Block {
        let mut x = seed * 2 + 1;
        let mut block = Block::zeros(rows, cols);
        for i in 0..rows {
            for j in 0..cols {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                block.at[i][j] = (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            }
        }
        block
    }

    fn near(a: &Block, b: &Block) -> bool {
        (0..6).all(|i| (0..6).all(|j| (a.at[i][j] - b.at[i][j]).abs() < 1e-11)) // condition below 1e4
    }

    #[test]
    fn factorisations_undo_products_for_every_size() {
        for n in 0..=6 {
            let x = sample(n, 4, 7);
            let g = sample(n, n, 3 + n as u64);
            let mut definite = g.transpose_times(&g);
            for i in 0..n {
                definite.at[i][i] += 0.1;
            }
            for sign in [1.0, -1.0] {
                let mut a = Block::zeros(n, n);
                a.add_scaled(sign, &definite);
                let f = Ldlt::new(&a).unwrap();
                assert!(near(&f.solve_block(&a.times(&x)), &x), "LDLᵀ of size {n}");
            }
            let f = Lu::new(&g).unwrap();
            assert!(near(&f.solve_block(&g.times(&x)), &x), "LU of size {n}");
            let (first, columns) = (x.transposed().at[0], g.times(&x).transposed());
            assert!(f.solve(&columns.at[0]).iter().zip(&first).all(|(a, b)| (a - b).abs() < 1e-11));
            assert!(near(&g.transpose_times(&x), &g.transposed().times(&x)));
        }
    }

    #[test]
    fn singular_indefinite_and_non_finite_blocks_are_refused() {
        let row = sample(1, 6, 5).at[0];
        let singular = Block::outer(1.0, &row, &row);
        assert!(Ldlt::new(&singular).is_none() && Lu::new(&singular).is_none());
        let mut indefinite = Block::angular(DMat3::IDENTITY);
        indefinite.add_scaled(-1.0, &Block::from_quarters(DMat3::IDENTITY, DMat3::ZERO, DMat3::ZERO, DMat3::ZERO));
        assert!(Ldlt::new(&indefinite).is_none() && Lu::new(&indefinite).is_some());
        let mut bad = Block::angular(DMat3::IDENTITY);
        bad.at[3][3] = f64::NAN;
        assert!(Ldlt::new(&bad).is_none() && Lu::new(&bad).is_none());
    }
}
