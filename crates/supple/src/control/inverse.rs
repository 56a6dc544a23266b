//! Linear rows `C x = d` in levels, by inverses that are robust at singular poses [Kim 2008, §3.1].
//!
//! With `C = U S Vᵀ` the inverse is `C# = V diag(f(σ)) Uᵀ`. The plain `f = 1/σ` has no bound; the paper's `f = σ/(σ² + α)` with a constant α has one, but no α suits
//! both accelerations and torques, and every row is missed a little. Here α belongs to each singular value: none while σ is above a share ε of the largest, and
//! below it as much as keeps f continuous,
//!
//! ```text
//! f(σ) = 1/σ       σ ≥ e        e = ε σ_max
//!        σ/e²      σ < e        = σ/(σ² + α),  α = e² − σ²                                                  (1)
//! ```
//! so that what can be reached is reached, and no command is above `|d|/e`.
//!
//! Levels: `x₁ = C₁# d₁`; each further level is solved within what the rows before it leave free, `x ← x + (C P)# (d − C x)`, where P takes away the directions V of all rows
//! before. `C P = (C N) Nᵀ` for any orthonormal basis N of what is left, so no basis is needed.
//!
//! The singular values come from turning pairs of rows until all are at right angles [one-sided Jacobi]: exact to rounding for small values too, with no
//! iteration that can fail. The turns are applied to d at once; U is never formed.

/// What is done about rows that can hardly be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Robustness {
    /// (1) with this ε.
    Scaled(f64),
    /// `σ/(σ² + α)` with this α, as published.
    Constant(f64),
}

impl Default for Robustness {
    fn default() -> Self {
        Robustness::Scaled(0.1)
    }
}

impl Robustness {
    /// Singular values are inverted as they are; what is below [`NONE`] of the largest counts as zero. For laws of physics.
    pub const EXACT: Robustness = Robustness::Constant(0.0);

    /// Whether the number is one that can be used.
    pub fn is_sound(&self) -> bool {
        match self {
            Robustness::Scaled(x) => *x > 0.0 && *x <= 1.0,
            Robustness::Constant(x) => *x >= 0.0 && x.is_finite(),
        }
    }

    /// f(σ), the largest singular value being `largest`.
    fn inverse(&self, sigma: f64, largest: f64) -> f64 {
        match *self {
            Robustness::Scaled(_) if sigma < CUT * largest => 0.0,
            Robustness::Scaled(share) => {
                let e = share * largest;
                if sigma >= e { 1.0 / sigma } else { sigma / (e * e) }
            }
            Robustness::Constant(alpha) => sigma / (sigma * sigma + alpha),
        }
    }
}

/// Rows whose singular value is below this share of the largest leave the directions to later levels.
pub const NONE: f64 = 1e-9;
/// What levels before leave of rows may be little: but no less than this share of the longest row counts as their largest singular value. Without it rows that say
/// almost the same as those before would ask for commands without bound.
const LEFT: f64 = 0.05;
/// Below this share of the largest nothing is asked of a direction.
const CUT: f64 = 1e-6;
/// What is asked of a direction is done in full when no larger share of it is not.
const FIRM: f64 = 1e-9;
/// Rows are at right angles when the cosine of their angle is no larger.
const RIGHT_ANGLE: f64 = 1e-14;
/// Turns through all pairs of rows; five to eight are usual.
const MOST_TURNS: u32 = 40;

/// The solution of rows in levels, and its scratch.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    columns: usize,
    x: Vec<f64>,
    /// Directions that rows before have used, orthonormal, one after the other, each followed by its dual and by the parts that the rows given have in it.
    used: Vec<f64>,
    /// `C P` with its rows turned, each followed by its dual and its parts, and `d − C x` turned alike.
    rows: Vec<f64>,
    rest: Vec<f64>,
    /// Singular values of the last level.
    sigma: Vec<f64>,
    /// By direction used: whether what was asked of it was done in full; and how many directions there were before the last level.
    firm: Vec<bool>,
    before_last: usize,
    /// By row given, in order: λ; and how many were given.
    multipliers: Vec<f64>,
    given: usize,
}

impl Hierarchy {
    /// Begins anew: x = 0, with this many columns. Room is made for so many rows in all; of the first `multiplied` of them multipliers are found.
    pub fn begin(&mut self, columns: usize, rows: usize, multiplied: usize) {
        self.columns = columns;
        let stride = 2 * columns + rows;
        for (list, room) in [
            (&mut self.used, stride * rows.min(columns)),
            (&mut self.rows, stride * rows),
            (&mut self.rest, rows),
            (&mut self.sigma, rows),
            (&mut self.multipliers, rows),
        ] {
            list.clear();
            list.reserve(room);
        }
        self.x.clear();
        self.x.resize(columns, 0.0);
        self.multipliers.resize(multiplied, 0.0);
        (self.given, self.before_last) = (0, 0);
        self.firm.clear();
        self.firm.reserve(rows);
    }

    /// The solution so far.
    pub fn solution(&self) -> &[f64] {
        &self.x
    }

    /// λ by row: the solution is `Σ λ W c`, the sum of the duals of the rows given, multiplied by these.
    pub fn multipliers(&self) -> &[f64] {
        &self.multipliers
    }

    /// Singular values of the last level, in no order.
    pub fn singular_values(&self) -> &[f64] {
        &self.sigma
    }

    /// Takes from an x, measured as the solution is, all that it would do to what levels before the last one reach. Returns whether there are such levels.
    pub fn spare(&self, x: &mut [f64]) -> bool {
        let n = self.columns;
        let directions = self.used.chunks_exact(2 * n + self.multipliers.len()).zip(&self.firm);
        for (v, _) in directions.take(self.before_last).filter(|(_, is_firm)| **is_firm) {
            let along = dot(&v[..n], x);
            add(x, -along, &v[n..2 * n]);
        }
        self.before_last > 0
    }

    /// Adds a level: rows of C one after the other, and d.
    pub fn add_level(&mut self, c: &[f64], d: &[f64], robustness: Robustness) {
        self.add_level_by(c, c, d, robustness);
    }

    /// Adds a level whose x is measured by `xᵀ W⁻¹ x`, W symmetric and positive, the same for all levels: rows of C, and rows of `C W`.
    pub fn add_level_by(&mut self, c: &[f64], duals: &[f64], d: &[f64], robustness: Robustness) {
        let n = self.columns;
        let stride = 2 * n + self.multipliers.len();
        let given = self.given;
        self.given += d.len();
        self.sigma.clear();
        if d.is_empty() || n == 0 {
            return;
        }
        self.before_last = self.firm.len();
        // C P and d − C x
        self.rows.clear();
        for (i, (row, dual)) in c.chunks_exact(n).zip(duals.chunks_exact(n)).enumerate() {
            self.rows.extend_from_slice(row);
            self.rows.extend_from_slice(dual);
            self.rows.extend((0..stride - 2 * n).map(|k| f64::from(u8::from(k == given + i))));
        }
        self.rest.clear();
        let mut largest = 0.0f64; // the longest row, before levels above took their part
        for (row, d) in self.rows.chunks_exact_mut(stride).zip(d) {
            largest = largest.max(length(row, n));
            self.rest.push(d - dot(&row[..n], &self.x));
            // Twice: the second time takes away the rounding of the first.
            for _ in 0..2 {
                for v in self.used.chunks_exact(stride) {
                    let along = product(row, v, n);
                    add(row, -along, v);
                }
            }
        }
        turn_rows(&mut self.rows, &mut self.rest, n);
        self.sigma.extend(self.rows.chunks_exact(stride).map(|row| length(row, n)));
        let largest = self.sigma.iter().copied().fold(LEFT * largest, f64::max);
        for ((row, rest), sigma) in self.rows.chunks_exact(stride).zip(&self.rest).zip(&self.sigma) {
            if *sigma <= NONE * largest {
                continue;
            }
            let inverse = robustness.inverse(*sigma, largest);
            let size = inverse * rest / sigma;
            add(&mut self.x, size, &row[n..2 * n]);
            add(&mut self.multipliers, size, &row[2 * n..]);
            self.used.extend(row.iter().map(|v| v / sigma));
            self.firm.push(inverse * sigma > 1.0 - FIRM);
        }
    }
}

/// `a W bᵀ` of two rows of n columns, each followed by its dual.
fn product(a: &[f64], b: &[f64], n: usize) -> f64 {
    dot(&a[..n], &b[n..2 * n])
}

/// Of a row followed by its dual; rounding may make its square negative.
fn length(row: &[f64], n: usize) -> f64 {
    product(row, row, n).max(0.0).sqrt()
}

/// Turns pairs of rows, each followed by its dual and its parts, and the entries of `d` with them, until all rows are at right angles.
fn turn_rows(rows: &mut [f64], d: &mut [f64], columns: usize) {
    let m = d.len();
    let n = rows.len() / m;
    for _ in 0..MOST_TURNS {
        let mut turned = false;
        for p in 0..m {
            for q in p + 1..m {
                let (head, tail) = rows.split_at_mut(q * n);
                let (a, b) = (&mut head[p * n..(p + 1) * n], &mut tail[..n]);
                let (aa, bb) = (product(a, a, columns).max(0.0), product(b, b, columns).max(0.0));
                let ab = product(a, b, columns);
                if ab == 0.0 || ab.abs() <= RIGHT_ANGLE * (aa * bb).sqrt() {
                    continue;
                }
                turned = true;
                // tan 2θ = 2 a·b/(a·a − b·b), the smaller of the two angles
                let zeta = (bb - aa) / (2.0 * ab);
                let t = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = c * t;
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                }
                (d[p], d[q]) = (c * d[p] - s * d[q], s * d[p] + c * d[q]);
            }
        }
        if !turned {
            return;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `x += size · y`.
fn add(x: &mut [f64], size: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += size * y);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between −1 and 1, the same in every run.
    fn numbers(seed: u64, count: usize) -> Vec<f64> {
        let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    fn missed(c: &[f64], d: &[f64], x: &[f64]) -> f64 {
        c.chunks_exact(x.len()).zip(d).map(|(row, d)| (d - dot(row, x)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn levels_hold_and_the_solution_is_the_shortest() {
        let mut h = Hierarchy::default();
        for seed in 1..200 {
            let n = 6 + seed as usize % 9;
            let (c1, d1) = (numbers(seed, 2 * n), numbers(seed + 1000, 2));
            let (c2, d2) = (numbers(seed + 2000, 3 * n), numbers(seed + 3000, 3));
            // more than is left free: cannot be fulfilled
            let (c3, d3) = (numbers(seed + 4000, 20 * n), numbers(seed + 5000, 20));
            h.begin(n, 25, 0);
            h.add_level(&c1, &d1, Robustness::EXACT);
            h.add_level(&c2, &d2, Robustness::EXACT);
            let two = h.solution().to_vec();
            h.add_level(&c3, &d3, Robustness::default());
            // rounding, times conditions of up to 1e3
            assert!(missed(&c1, &d1, h.solution()) < 1e-11 && missed(&c2, &d2, h.solution()) < 1e-10);
            // both levels at once have the same shortest solution, since both can be fulfilled
            h.begin(n, 25, 0);
            h.add_level(&[c1, c2].concat(), &[d1, d2].concat(), Robustness::EXACT);
            let off = h.solution().iter().zip(&two).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9 * h.solution().iter().fold(1.0, |m: f64, x| m.max(x.abs())), "{off}");
        }
    }

    #[test]
    fn no_command_is_above_its_bound_however_near_rows_are_to_each_other() {
        let mut h = Hierarchy::default();
        for k in 0..40 {
            // two rows that differ by ever less
            let gap = 0.5f64.powi(k);
            let c = [1.0, 0.0, 0.0, 1.0, gap, 0.0];
            let d = [0.0, 1.0];
            h.begin(3, 2, 0);
            h.add_level(&c, &d, Robustness::Scaled(0.02));
            let largest = h.singular_values().iter().copied().fold(0.0, f64::max);
            let size = dot(h.solution(), h.solution()).sqrt();
            assert!(size <= 1.0 / (0.02 * largest) * (1.0 + 1e-12), "gap {gap}: {size}");
            if gap > 0.1 {
                assert!(missed(&c, &d, h.solution()) < 1e-12);
            }
        }
    }

    #[test]
    fn a_level_that_repeats_the_one_before_adds_nothing() {
        let mut h = Hierarchy::default();
        let (c, d) = (numbers(7, 24), numbers(8, 3));
        h.begin(8, 6, 0);
        h.add_level(&c, &d, Robustness::EXACT);
        let first = h.solution().to_vec();
        let other: Vec<f64> = d.iter().map(|d| d + 1.0).collect();
        h.add_level(&c, &other, Robustness::default());
        let off = h.solution().iter().zip(&first).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "{off}");
    }

    #[test]
    fn with_a_measure_the_solution_is_the_shortest_by_it() {
        let mut h = Hierarchy::default();
        for seed in 1..100 {
            let n = 7;
            // W = 1 + A Aᵀ; the shortest x with C x = d by xᵀ W⁻¹ x is W Cᵀ λ
            let a = numbers(seed, n * n);
            let w = |i: usize, j: usize| {
                dot(&a[i * n..(i + 1) * n], &a[j * n..(j + 1) * n]) + if i == j { 1.0 } else { 0.0 }
            };
            let times_w = |c: &[f64]| -> Vec<f64> {
                c.chunks_exact(n).flat_map(|row| (0..n).map(|j| (0..n).map(|i| row[i] * w(i, j)).sum())).collect()
            };
            let (c1, c2) = (numbers(seed + 300, 2 * n), numbers(seed + 600, 2 * n));
            let (d1, d2) = (numbers(seed + 900, 2), numbers(seed + 1200, 2));
            let (w1, w2) = (times_w(&c1), times_w(&c2));
            h.begin(n, 4, 4);
            h.add_level_by(&c1, &w1, &d1, Robustness::EXACT);
            h.add_level_by(&c2, &w2, &d2, Robustness::default());
            let x = h.solution().to_vec();
            let of_rows = |j: usize| {
                let duals = w1.chunks_exact(n).chain(w2.chunks_exact(n));
                h.multipliers().iter().zip(duals).map(|(lambda, dual)| lambda * dual[j]).sum::<f64>()
            };
            let off = (0..n).map(|j| (of_rows(j) - x[j]).abs()).fold(0.0, f64::max);
            assert!(off < 1e-10 * x.iter().fold(1.0, |m: f64, x| m.max(x.abs())), "{off}");
            h.begin(n, 4, 0);
            h.add_level_by(&c1, &w1, &d1, Robustness::EXACT);
            h.add_level_by(&c2, &w2, &d2, Robustness::EXACT);
            let mut more = numbers(seed + 1800, n);
            assert!(h.spare(&mut more));
            assert!(missed(&c1, &[0.0; 2], &more) < 1e-10 && missed(&c2, &[0.0; 2], &more) > 1e-6);
            let x = h.solution().to_vec();
            assert!(missed(&c1, &d1, &x) < 1e-10 && missed(&c2, &d2, &x) < 1e-10);
            // any other solution is longer: x + z with C z = 0 has z at right angles to x by W⁻¹, that is z · (Cᵀ λ) = 0
            h.begin(n, 4, 0);
            h.add_level(&[c1.clone(), c2.clone()].concat(), &[0.0; 4], Robustness::EXACT);
            let mut z = numbers(seed + 1500, n);
            for _ in 0..2 {
                for v in h.used.chunks_exact(2 * n) {
                    let along = dot(&z, &v[..n]);
                    add(&mut z, -along, &v[..n]);
                }
            }
            // λ by the rows of C W: x = W y, y in the span of C, so y · z = 0 for all such z
            let y = solve(n, &w, &x);
            assert!(dot(&y, &z).abs() < 1e-9, "{}", dot(&y, &z));
        }
    }

    /// `W y = x` by elimination.
    fn solve(n: usize, w: &impl Fn(usize, usize) -> f64, x: &[f64]) -> Vec<f64> {
        let mut m: Vec<Vec<f64>> =
            (0..n).map(|i| (0..n).map(|j| w(i, j)).chain(std::iter::once(x[i])).collect()).collect();
        for k in 0..n {
            for i in 0..n {
                if i != k {
                    let f = m[i][k] / m[k][k];
                    let pivot = m[k].clone();
                    m[i].iter_mut().zip(&pivot).for_each(|(a, b)| *a -= f * b);
                }
            }
        }
        (0..n).map(|i| m[i][n] / m[i][i]).collect()
    }

    #[test]
    fn singular_values_are_exact_far_below_the_largest() {
        // diag(1, 1e-9) times rotations on both sides
        let (c, s) = (0.6, 0.8);
        let rows = [c * c - s * s * 1e-9, c * s + s * c * 1e-9, -s * c - c * s * 1e-9, -s * s + c * c * 1e-9];
        let mut h = Hierarchy::default();
        h.begin(2, 2, 0);
        h.add_level(&rows, &[1.0, 0.0], Robustness::default());
        let mut sigma = h.singular_values().to_vec();
        sigma.sort_by(f64::total_cmp);
        assert!((sigma[1] - 1.0).abs() < 1e-15 && (sigma[0] - 1e-9).abs() < 1e-16, "{sigma:?}");
    }
}
