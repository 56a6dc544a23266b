//! Singular values of 3×3 matrices with handedness: `F = U diag(s) Vᵀ` with rotations U and V.
//!
//! Rotations of pairs of columns of F make them orthogonal [one-sided Jacobi]: `F V = U diag(s)`. Since U and V are rotations, the sign
//! of `det F` goes to the smallest value: `s₁ ≥ s₂ ≥ |s₃|`. Nothing divides by a small value: a column that has vanished takes its direction
//! from the others, so that flattened elements, lines and points have their rotations too.

use glam::{DMat3, DVec3};

/// `F = U diag(s) Vᵀ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Singular {
    /// U, a rotation.
    pub u: DMat3,
    /// `s₁ ≥ s₂ ≥ |s₃|`; the last is negative when F turns inside out.
    pub values: DVec3,
    /// V, a rotation.
    pub v: DMat3,
}

/// Sweeps converge quadratically: four bring any matrix to rounding, two more are for extreme ratios.
const SWEEPS: usize = 8;

/// Columns are orthogonal when their cosine is below this: then the error of the values is its square.
const ORTHOGONAL: f64 = 1e-14;

/// The singular values of a finite matrix.
pub fn singular(f: DMat3) -> Singular {
    let mut a = f.to_cols_array_2d().map(DVec3::from_array);
    let mut v = DMat3::IDENTITY.to_cols_array_2d().map(DVec3::from_array);
    for _ in 0..SWEEPS {
        let mut turned = false;
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            turned |= orthogonalise(&mut a, &mut v, p, q);
        }
        if !turned {
            break;
        }
    }

    // Largest first; an exchange turns one column round, so that V stays a rotation.
    let mut size = a.map(|column| column.length_squared());
    for (p, q) in [(0, 1), (1, 2), (0, 1)] {
        if size[p] < size[q] {
            size.swap(p, q);
            (a[p], a[q]) = (a[q], -a[p]);
            (v[p], v[q]) = (v[q], -v[p]);
        }
    }
    let u0 = a[0].try_normalize().unwrap_or(DVec3::X);
    let second = a[1] - u0 * u0.dot(a[1]);
    let u1 = match second.try_normalize() {
        Some(u1) if second.length_squared() > 1e-28 * size[0] => u1,
        _ => u0.any_orthonormal_vector(),
    };
    let u2 = u0.cross(u1);
    Singular {
        u: DMat3::from_cols(u0, u1, u2),
        values: DVec3::new(u0.dot(a[0]), u1.dot(a[1]), u2.dot(a[2])),
        v: DMat3::from_cols(v[0], v[1], v[2]),
    }
}

/// Turns columns p and q of A and V against each other until those of A are orthogonal; tells whether it had to.
#[inline]
fn orthogonalise(a: &mut [DVec3; 3], v: &mut [DVec3; 3], p: usize, q: usize) -> bool {
    let (pp, qq, pq) = (a[p].length_squared(), a[q].length_squared(), a[p].dot(a[q]));
    if pq * pq <= ORTHOGONAL * ORTHOGONAL * pp * qq || pq == 0.0 {
        return false;
    }
    // tan of the angle: t² + 2τt − 1 = 0, the smaller root
    let tau = (qq - pp) / (2.0 * pq);
    let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = c * t;
    (a[p], a[q]) = (a[p] * c - a[q] * s, a[p] * s + a[q] * c);
    (v[p], v[q]) = (v[p] * c - v[q] * s, v[p] * s + v[q] * c);
    true
}

impl Singular {
    /// `U diag(d) Vᵀ`.
    pub fn with(&self, d: DVec3) -> DMat3 {
        DMat3::from_cols(self.u.x_axis * d.x, self.u.y_axis * d.y, self.u.z_axis * d.z) * self.v.transpose()
    }
}

/// Eigenvalues of a symmetric 3×3 matrix in any order, and a rotation whose columns are the eigenvectors.
pub fn eigen(m: DMat3) -> (DVec3, DMat3) {
    // a rotation of rows and columns at once [Jacobi]
    let mut a = m;
    let mut q = DMat3::IDENTITY;
    for _ in 0..SWEEPS {
        let off = a.x_axis.y.abs() + a.x_axis.z.abs() + a.y_axis.z.abs();
        let size = a.x_axis.x.abs() + a.y_axis.y.abs() + a.z_axis.z.abs();
        if off <= 1e-15 * size || off == 0.0 {
            break;
        }
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let (aij, gap) = (a.col(j)[i], a.col(j)[j] - a.col(i)[i]);
            if aij == 0.0 {
                continue;
            }
            let tau = gap / (2.0 * aij);
            let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
            let c = 1.0 / (1.0 + t * t).sqrt();
            let s = c * t;
            let mut g = DMat3::IDENTITY;
            (g.col_mut(i)[i], g.col_mut(j)[j], g.col_mut(j)[i], g.col_mut(i)[j]) = (c, c, s, -s);
            a = g.transpose() * a * g;
            q *= g;
        }
    }
    (DVec3::new(a.x_axis.x, a.y_axis.y, a.z_axis.z), q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::DQuat;

    struct Random(u64);
    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
        }
        fn rotation(&mut self) -> DMat3 {
            let q = DQuat::from_xyzw(self.next(), self.next(), self.next(), self.next());
            DMat3::from_quat(q.normalize())
        }
    }

    /// Rounding: a few units in the last place of the largest value.
    const ROUNDING: f64 = 2e-14;

    fn largest(m: DMat3) -> f64 {
        m.to_cols_array().into_iter().fold(0.0, |a, b| a.max(b.abs()))
    }

    #[test]
    fn values_and_rotations_are_found_again() {
        let mut random = Random(1);
        let shapes = [
            [1.0, 1.0, 1.0],
            [2.0, 1.0, 0.5],
            [1.0, 1.0, -1.0],
            [1.3, 0.9, -0.2],
            [1.0, 0.5, 0.0],
            [1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [3.0, 3.0, 1e-9],
            [1.0, 1e-7, -1e-8],
            [1e5, 1.0, 1e-5],
        ];
        for s in shapes {
            for _ in 0..200 {
                let f = random.rotation() * DMat3::from_diagonal(s.into()) * random.rotation();
                let found = singular(f);
                let size = s[0].max(1e-300);
                for (found, s) in found.values.to_array().into_iter().zip(s) {
                    assert!((found - s).abs() < ROUNDING * size, "{s:?}: {found:?}");
                }
                assert!(largest(found.with(found.values) - f) < ROUNDING * size);
                for r in [found.u, found.v] {
                    assert!(largest(r.transpose() * r - DMat3::IDENTITY) < ROUNDING);
                    assert!((r.determinant() - 1.0).abs() < ROUNDING);
                }
            }
        }
    }

    #[test]
    fn symmetric_matrices_are_made_diagonal() {
        let mut random = Random(2);
        for d in [[1.0, 2.0, 3.0], [1.0, 1.0, -4.0], [0.0, 0.0, 0.0], [1e-8, 1.0, 1e4]] {
            for _ in 0..100 {
                let r = random.rotation();
                let m = r * DMat3::from_diagonal(d.into()) * r.transpose();
                let (values, q) = eigen(m);
                assert!(largest(q * DMat3::from_diagonal(values) * q.transpose() - m) <= ROUNDING * largest(m));
                let mut sorted = values.to_array();
                sorted.sort_by(f64::total_cmp);
                let mut expected = d;
                expected.sort_by(f64::total_cmp);
                for (a, b) in sorted.into_iter().zip(expected) {
                    assert!((a - b).abs() <= ROUNDING * largest(m));
                }
            }
        }
    }
}
