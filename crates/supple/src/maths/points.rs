//! Large symmetric positive matrices of 3×3 blocks, one row of blocks for each point, and their factorisation `P H Pᵀ = L D Lᵀ`.
//!
//! The order is found once by minimum degree, as in `sparse.rs`, and run through branch by branch; after that factoring and solving allocate nothing. A solution reads L twice, front to back
//! and back to front.

use super::sparse::Ldl;
use glam::{DMat3, DVec3};

/// A symmetric matrix: the blocks on the diagonal and those below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointMatrix {
    /// Blocks on the diagonal.
    pub diagonal: Vec<DMat3>,
    /// (row, column) of each block below the diagonal, row > column, sorted by row, then column.
    pub edges: Vec<(u32, u32)>,
    /// The blocks of the edges.
    pub lower: Vec<DMat3>,
}

impl PointMatrix {
    /// A zero matrix over `n` points with a block for each edge, which may come in any order and more than once.
    pub fn new(n: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> PointMatrix {
        let mut edges: Vec<(u32, u32)> =
            edges.into_iter().filter(|(i, j)| i != j).map(|(i, j)| (i.max(j), i.min(j))).collect();
        edges.sort_unstable();
        edges.dedup();
        PointMatrix { diagonal: vec![DMat3::ZERO; n], lower: vec![DMat3::ZERO; edges.len()], edges }
    }

    /// Adds `block` in the rows of point `i` and the columns of point `j`; off the diagonal its transpose stands across. Panics without such an edge.
    pub fn add(&mut self, i: u32, j: u32, block: DMat3) {
        if i == j {
            self.diagonal[i as usize] += block;
            return;
        }
        let (at, block) = if i > j { ((i, j), block) } else { ((j, i), block.transpose()) };
        let k = self.edges.binary_search(&at).expect("the edge was declared");
        self.lower[k] += block;
    }

    /// `y ← H x`.
    pub fn product(&self, x: &[DVec3], y: &mut [DVec3]) {
        for ((y, d), x) in y.iter_mut().zip(&self.diagonal).zip(x) {
            *y = *d * *x;
        }
        for (&(i, j), block) in self.edges.iter().zip(&self.lower) {
            let (i, j) = (i as usize, j as usize);
            y[i] += *block * x[j];
            y[j] += block.transpose() * x[i];
        }
    }
}

/// Another order of elimination with the same fill: the columns that a column is subtracted from come soon after it, so that what a solution reads and
/// writes beside L stays near. An order is its points, and for the k-th of them, from `first[k]` on, the points after it that it shares a block with.
fn branch_by_branch((order, first, rows): (Vec<u32>, Vec<u32>, Vec<u32>)) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let n = order.len();
    let mut place = vec![0u32; n];
    order.iter().enumerate().for_each(|(k, &node)| place[node as usize] = k as u32);
    let column = |k: usize| &rows[first[k] as usize..first[k + 1] as usize];
    // the tree of elimination: the parent of a column is the first that it is subtracted from
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut open = Vec::new();
    for k in (0..n).rev() {
        match column(k).iter().map(|&node| place[node as usize]).min() {
            Some(parent) => children[parent as usize].push(k as u32),
            None => open.push(k as u32),
        }
    }
    // parents before children, backwards
    let mut backwards = Vec::with_capacity(n);
    while let Some(k) = open.pop() {
        backwards.push(k);
        open.append(&mut children[k as usize]);
    }
    let (mut new_order, mut new_first, mut new_rows) =
        (Vec::with_capacity(n), vec![0u32], Vec::with_capacity(rows.len()));
    for &k in backwards.iter().rev() {
        new_order.push(order[k as usize]);
        new_rows.extend_from_slice(column(k as usize));
        new_first.push(new_rows.len() as u32);
    }
    (new_order, new_first, new_rows)
}

/// The factors of a [`PointMatrix`].
#[derive(Clone, Debug)]
pub struct PointFactor {
    /// Points in the order of elimination; "column" and "row" count in that order.
    order: Vec<u32>,
    /// The blocks below the diagonal of column k are `first[k]..first[k + 1]`.
    first: Vec<u32>,
    rows: Vec<u32>,
    /// Where the edges of the matrix go: a block, and whether it is transposed there.
    scatter: Vec<(u32, bool)>,
    /// D⁻¹, and L.
    inverse: Vec<DMat3>,
    lower: Vec<DMat3>,
    /// Column k while it is eliminated; by row the block of the column that is subtracted from.
    panel: Vec<DMat3>,
    place: Vec<u32>,
    permuted: Vec<DVec3>,
}

impl PointFactor {
    /// Finds the order for matrices with the blocks of `matrix`, whatever their values.
    pub fn new(matrix: &PointMatrix) -> PointFactor {
        let n = matrix.diagonal.len();
        let (order, first, mut rows) = branch_by_branch(Ldl::elimination(n, &matrix.edges));
        let mut place = vec![0u32; n];
        order.iter().enumerate().for_each(|(k, &node)| place[node as usize] = k as u32);
        rows.iter_mut().for_each(|row| *row = place[*row as usize]);
        for k in 0..n {
            rows[first[k] as usize..first[k + 1] as usize].sort_unstable();
        }
        let block_at = |row: u32, column: u32| {
            let (from, to) = (first[column as usize] as usize, first[column as usize + 1] as usize);
            (from + rows[from..to].binary_search(&row).expect("elimination keeps this block")) as u32
        };
        let scatter = matrix.edges.iter().map(|&(i, j)| {
            let (p, q) = (place[i as usize], place[j as usize]);
            if p > q { (block_at(p, q), false) } else { (block_at(q, p), true) }
        });
        let scatter = scatter.collect();
        let widest = (0..n).map(|k| first[k + 1] - first[k]).max().unwrap_or(0) as usize;
        PointFactor {
            inverse: vec![DMat3::ZERO; n],
            lower: vec![DMat3::ZERO; rows.len()],
            panel: vec![DMat3::ZERO; widest],
            permuted: vec![DVec3::ZERO; n],
            order,
            first,
            rows,
            scatter,
            place,
        }
    }

    /// Blocks below the diagonal, fill included.
    pub fn blocks(&self) -> usize {
        self.rows.len()
    }

    /// Factors a positive matrix with the edges this was made for; names the point at which it is not positive.
    pub fn factor(&mut self, matrix: &PointMatrix) -> Result<(), usize> {
        self.lower.fill(DMat3::ZERO);
        for (k, &node) in self.order.iter().enumerate() {
            self.inverse[k] = matrix.diagonal[node as usize];
        }
        for (block, &(to, transposed)) in matrix.lower.iter().zip(&self.scatter) {
            self.lower[to as usize] = if transposed { block.transpose() } else { *block };
        }
        // L_i = B_i D⁻¹,  H_ij −= L_i B_jᵀ for all pairs of blocks of a column
        for k in 0..self.order.len() {
            let pivot = self.inverse[k];
            let minor = pivot.x_axis.x * pivot.y_axis.y - pivot.x_axis.y * pivot.x_axis.y;
            if !(pivot.x_axis.x > 0.0 && minor > 0.0 && pivot.determinant() > 0.0) {
                return Err(self.order[k] as usize);
            }
            let inverse = pivot.inverse();
            self.inverse[k] = inverse;
            let (from, to) = (self.first[k] as usize, self.first[k + 1] as usize);
            let panel = &mut self.panel[..to - from];
            for (b, l) in panel.iter_mut().zip(&mut self.lower[from..to]) {
                *b = l.transpose();
                *l *= inverse;
            }
            for (b, &column) in panel.iter().zip(&self.rows[from..to]) {
                // the blocks of that column by row
                let column = column as usize;
                let (start, end) = (self.first[column] as usize, self.first[column + 1] as usize);
                for (at, &row) in (start..end).zip(&self.rows[start..end]) {
                    self.place[row as usize] = at as u32;
                }
                for at in from..to {
                    let row = self.rows[at] as usize;
                    if row < column {
                        continue;
                    }
                    let taken = self.lower[at] * *b;
                    if row == column {
                        self.inverse[row] -= taken;
                    } else {
                        self.lower[self.place[row] as usize] -= taken;
                    }
                }
            }
        }
        Ok(())
    }

    /// `x ← H⁻¹ x`.
    pub fn solve(&mut self, x: &mut [DVec3]) {
        let PointFactor { order, first, rows, inverse, lower, permuted: y, .. } = self;
        for (y, &node) in y.iter_mut().zip(order.iter()) {
            *y = x[node as usize];
        }
        for k in 0..y.len() {
            let y_k = y[k];
            let column = first[k] as usize..first[k + 1] as usize;
            for (&row, l) in rows[column.clone()].iter().zip(&lower[column]) {
                y[row as usize] -= *l * y_k;
            }
        }
        for k in (0..y.len()).rev() {
            let mut y_k = inverse[k] * y[k];
            let column = first[k] as usize..first[k + 1] as usize;
            for (&row, l) in rows[column.clone()].iter().zip(&lower[column]) {
                let y_i = y[row as usize];
                y_k -= DVec3::new(l.x_axis.dot(y_i), l.y_axis.dot(y_i), l.z_axis.dot(y_i));
            }
            y[k] = y_k;
        }
        for (y, &node) in y.iter().zip(order.iter()) {
            x[node as usize] = *y;
        }
    }
}

/// Scratch of [`conjugate_gradients`].
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    r: Vec<DVec3>,
    p: Vec<DVec3>,
    q: Vec<DVec3>,
    z: Vec<DVec3>,
}

/// Solves `H x = b` by conjugate gradients, preconditioned by the numbers on the diagonal, until the residual is `tolerance` of b or `most` iterations are
/// done; returns their number. `x` is the first guess.
pub fn conjugate_gradients(
    matrix: &PointMatrix,
    b: &[DVec3],
    x: &mut [DVec3],
    (tolerance, most): (f64, usize),
    work: &mut Gradients,
) -> usize {
    let n = b.len();
    let Gradients { r, p, q, z } = work;
    for list in [&mut *r, &mut *p, &mut *q, &mut *z] {
        list.resize(n, DVec3::ZERO);
    }
    let dot = |a: &[DVec3], b: &[DVec3]| a.iter().zip(b).map(|(a, b)| a.dot(*b)).sum::<f64>();
    let divide = |r: &[DVec3], z: &mut [DVec3]| {
        for ((z, r), d) in z.iter_mut().zip(r).zip(&matrix.diagonal) {
            *z = *r / DVec3::new(d.x_axis.x, d.y_axis.y, d.z_axis.z);
        }
    };
    matrix.product(x, q);
    (0..n).for_each(|i| r[i] = b[i] - q[i]);
    divide(r, z);
    p.copy_from_slice(z);
    let (enough, mut rz) = (tolerance * tolerance * dot(b, b), dot(r, z));
    for iteration in 0..most {
        if dot(r, r) <= enough {
            return iteration;
        }
        matrix.product(p, q);
        let step = rz / dot(p, q);
        for i in 0..n {
            x[i] += p[i] * step;
            r[i] -= q[i] * step;
        }
        divide(r, z);
        let next = dot(r, z);
        let keep = next / rz;
        rz = next;
        (0..n).for_each(|i| p[i] = z[i] + p[i] * keep);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of points with random springs between neighbours.
    fn grid(side: u32) -> PointMatrix {
        let mut seed = 7u64;
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        let at = |i: u32, j: u32| i * side + j;
        let mut edges = Vec::new();
        for i in 0..side {
            for j in 0..side {
                edges.extend((i + 1 < side).then(|| (at(i, j), at(i + 1, j))));
                edges.extend((j + 1 < side).then(|| (at(i, j), at(i, j + 1))));
            }
        }
        let mut matrix = PointMatrix::new((side * side) as usize, edges.iter().copied());
        for (i, j) in edges {
            let d = DVec3::new(next(), next(), next());
            let block = DMat3::from_cols(d * d.x, d * d.y, d * d.z) + DMat3::IDENTITY * 0.1;
            matrix.add(i, i, block);
            matrix.add(j, j, block);
            matrix.add(j, i, -block);
        }
        matrix.diagonal.iter_mut().for_each(|d| *d += DMat3::IDENTITY * 0.01);
        matrix
    }

    /// Both ways to solve leave a residual of rounding, and of the tolerance.
    #[test]
    fn solutions_solve() {
        let matrix = grid(23);
        let n = matrix.diagonal.len();
        let b: Vec<DVec3> = (0..n).map(|i| DVec3::new((i as f64).sin(), 1.0, (3.0 * i as f64).cos())).collect();
        let residual = |x: &[DVec3]| {
            let mut y = vec![DVec3::ZERO; n];
            matrix.product(x, &mut y);
            y.iter().zip(&b).map(|(y, b)| y.distance(*b)).fold(0.0, f64::max)
        };
        let mut factor = PointFactor::new(&matrix);
        factor.factor(&matrix).unwrap();
        let mut x = b.clone();
        factor.solve(&mut x);
        assert!(residual(&x) < 1e-11, "{}", residual(&x));
        let mut y = vec![DVec3::ZERO; n];
        let done = conjugate_gradients(&matrix, &b, &mut y, (1e-10, 3000), &mut Gradients::default());
        assert!(done < 3000 && residual(&y) < 1e-8, "{done} {}", residual(&y));
    }

    /// A matrix that is not positive is refused by its point.
    #[test]
    fn what_is_not_positive_is_named() {
        let mut matrix = grid(4);
        matrix.diagonal[5] -= DMat3::IDENTITY * 100.0;
        assert_eq!(PointFactor::new(&matrix).factor(&matrix), Err(5));
    }
}
