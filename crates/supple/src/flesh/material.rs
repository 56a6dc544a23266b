//! The material of flesh: St. Venant–Kirchhoff within a range of stretches, extended outside it so that flattened and inverted elements
//! push back [Kim 2008, §4.3, §4.4].
//!
//! With F the deformation gradient, `C = Fᵀ F`, `E = ½ (C − 1)`:
//!
//! ```text
//! S = λ tr(E) 1 + 2μ E,   P = F S,   Ψ = ½λ tr(E)² + μ E:E                                                                (1)
//! ```
//! P is the stress, `P = ∂Ψ/∂F`; the force on a node of an element is `P b` with a constant vector b. With decreasing stretch s the material goes soft; at
//! s = 0.577 it gives way, and an inverted element would be kept inverted. So (1) is used where all stretches lie in `(s_L, s_U)`,
//! `s_L² = 2/3`, `s_U² = 5/3` (where the stiffness is half and twice that of the rest state), and outside it
//!
//! ```text
//! Ψ = ½λ (Σ g)² + μ Σ g²,   g(s) = ½ (c² − 1) + c (s − c),   c = clamp(s, s_L, s_U)                                       (2)
//! ```
//! over the signed singular values of `F = U diag(s) Vᵀ`. Within the range `g = ½ (s² − 1)` and (2) is (1). [Kim 2008, §4.4] continues the
//! stress by its tangent instead, which is no gradient of any energy (its force differs from one by up to 64 %).
//!
//! The derivative of P by F in the axes of U and V has three kinds of modes: stretches, with the matrix
//! `H = ∂P̂/∂s`; and for each pair i < j a twist and a flip, with the eigenvalues
//!
//! ```text
//! twist = (P̂_i + P̂_j)/(s_i + s_j),   flip = (P̂_i − P̂_j)/(s_i − s_j)                                                      (3)
//! ```
//! Outside the range every eigenvalue is clamped to `[0, 10 k₀]`, `k₀ = λ + 2μ`, before it enters a Newton step. Within it nothing need be diagonalised: with g
//! the shape gradients, `p = F g`, `B = F Fᵀ`, the force on node a answers to the displacement of node b by
//!
//! ```text
//! K_ab = (g_a·S g_b) 1 + λ p_a p_bᵀ + μ p_b p_aᵀ + μ (g_a·g_b) B                                                          (4)
//! ```
//! which is indefinite at times. Inertia usually makes up for it; where it does not, as a pivot tells, all elements are clamped.

use crate::maths::singular::{Singular, eigen, singular};
use glam::{DMat3, DVec3};

/// What flesh is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleshMaterial {
    /// Young's modulus \[Pa\].
    pub young: f64,
    /// Poisson's ratio, from 0 to below ½.
    pub poisson: f64,
    /// \[kg/m³\]
    pub density: f64,
    /// Rate at which motion against the nearest bone dies away \[1/s\].
    pub damping: f64,
    /// Of its surface against what it touches.
    pub friction: f64,
}

impl Default for FleshMaterial {
    /// Soft tissue: 0.1 MPa, nearly incompressible, as heavy as water.
    fn default() -> FleshMaterial {
        FleshMaterial { young: 1e5, poisson: 0.4, density: 1000.0, damping: 10.0, friction: 0.6 }
    }
}

impl FleshMaterial {
    /// The constants of (1).
    pub fn lame(&self) -> Lame {
        let FleshMaterial { young, poisson, .. } = *self;
        Lame {
            lambda: young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson)),
            mu: young / (2.0 * (1.0 + poisson)),
        }
    }
}

/// λ and μ \[Pa\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lame {
    /// λ
    pub lambda: f64,
    /// μ
    pub mu: f64,
}

/// When elements are diagonalised, for forces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagonalize {
    /// Those outside the range [Kim 2008, §4.4].
    #[default]
    Selective,
    /// All, as the method it improves on.
    Always,
}

const RANGE_LOW: f64 = 2.0 / 3.0; // s_L²
const RANGE_HIGH: f64 = 5.0 / 3.0; // s_U²
/// Eigenvalues above this many k₀ are clamped: twists of nearly flat elements are unbounded.
const STIFFEST: f64 = 10.0;

/// Whether all stretches of F are in the open range and F is not inverted: `C − s_L² 1` and `s_U² 1 − C` are positive definite, told by their leading
/// minors \[Sylvester\], and `det F > 0`. Without a root, so that rotations and uniform stretches are told rightly.
#[inline]
pub fn in_range(f: &DMat3) -> bool {
    is_moderate(&green(f)) && f.determinant() > 0.0
}

/// The same of `E = ½ (C − 1)`, inversion left aside.
#[inline]
fn is_moderate(e: &Symmetric) -> bool {
    let Symmetric { own, off } = *e;
    let (q, t) = (off * off, 2.0 * off.x * off.y * off.z);
    let d = own - DVec3::splat(0.5 * (RANGE_LOW - 1.0));
    let m = d.x * d.y - q.x;
    let above = d.x > 0.0 && m > 0.0 && d.z * m - d.y * q.y - d.x * q.z + t > 0.0;
    let d = DVec3::splat(0.5 * (RANGE_HIGH - 1.0)) - own;
    let m = d.x * d.y - q.x;
    let below = d.x > 0.0 && m > 0.0 && d.z * m - d.y * q.y - d.x * q.z - t > 0.0;
    above && below
}

/// A symmetric matrix: its diagonal, and its entries xy, xz, yz.
#[derive(Clone, Copy, Debug)]
struct Symmetric {
    own: DVec3,
    off: DVec3,
}

/// The stretches of one element, with what (2) makes of them.
#[derive(Clone, Copy, Debug)]
struct Stretches {
    s: Singular,
    /// g
    g: DVec3,
    /// g′ = c
    slope: DVec3,
    /// g″: 1 within the range, else 0.
    bend: DVec3,
    /// `Q_i = λ Σ g + 2μ g_i`
    q: DVec3,
}

/// The projected derivative of the stress in the axes of U and V.
#[derive(Clone, Copy, Debug)]
pub struct Modes {
    /// U
    pub u: DMat3,
    /// V
    pub v: DMat3,
    /// The stretch modes, H.
    pub stretch: DMat3,
    /// Twist of the pairs (1,2), (0,2), (0,1).
    pub twist: DVec3,
    /// Flip of the same pairs.
    pub flip: DVec3,
}

impl Lame {
    /// k₀ = λ + 2μ: stiffness of one direction at rest, the others held \[Pa\].
    pub fn uniaxial(&self) -> f64 {
        self.lambda + 2.0 * self.mu
    }

    /// Ψ \[J/m³\]
    pub fn energy(&self, f: &DMat3) -> f64 {
        let e = green(f);
        if is_moderate(&e) && f.determinant() > 0.0 {
            let trace = e.own.element_sum();
            let squares = e.own.length_squared() + 2.0 * e.off.length_squared();
            0.5 * self.lambda * trace * trace + self.mu * squares
        } else {
            let g = self.stretches(f).g;
            let trace = g.element_sum();
            0.5 * self.lambda * trace * trace + self.mu * g.length_squared()
        }
    }

    /// P \[Pa\], and whether F is in the range.
    #[inline]
    pub fn stress(&self, f: &DMat3, diagonalize: Diagonalize) -> (DMat3, bool) {
        match diagonalize {
            Diagonalize::Selective => {
                let e = green(f);
                if is_moderate(&e) && f.determinant() > 0.0 {
                    (*f * self.second_stress(&e), true)
                } else {
                    (self.extended(f), false)
                }
            }
            Diagonalize::Always => {
                let k = self.stretches(f);
                (k.s.with(k.slope * k.q), k.bend == DVec3::ONE)
            }
        }
    }

    /// S of (1).
    #[inline]
    fn second_stress(&self, e: &Symmetric) -> DMat3 {
        let d = e.own * (2.0 * self.mu) + DVec3::splat(self.lambda * e.own.element_sum());
        let o = e.off * (2.0 * self.mu);
        DMat3::from_cols(DVec3::new(d.x, o.x, o.y), DVec3::new(o.x, d.y, o.z), DVec3::new(o.y, o.z, d.z))
    }

    /// P by (2).
    fn extended(&self, f: &DMat3) -> DMat3 {
        let k = self.stretches(f);
        k.s.with(k.slope * k.q)
    }

    fn stretches(&self, f: &DMat3) -> Stretches {
        let s = singular(*f);
        let (low, high) = (RANGE_LOW.sqrt(), RANGE_HIGH.sqrt());
        let c = s.values.clamp(DVec3::splat(low), DVec3::splat(high));
        let g = (c * c - DVec3::ONE) * 0.5 + c * (s.values - c);
        let bend = DVec3::from_array(std::array::from_fn(|i| if c[i] == s.values[i] { 1.0 } else { 0.0 }));
        let q = DVec3::splat(self.lambda * g.element_sum()) + g * (2.0 * self.mu);
        Stretches { s, g, slope: c, bend, q }
    }

    /// The derivative of the stress with every eigenvalue as it is.
    pub fn exact_modes(&self, f: &DMat3) -> Modes {
        let Stretches { s, slope, bend, q, .. } = self.stretches(f);
        let stress = slope * q;
        // H_ij = δ_ij (g″_i Q_i + 2μ g′_i²) + λ g′_i g′_j
        let own = bend * q + slope * slope * (2.0 * self.mu);
        let cross = |k: f64| slope * (self.lambda * k);
        let h = DMat3::from_cols(cross(slope.x), cross(slope.y), cross(slope.z)) + DMat3::from_diagonal(own);
        let (mut twist, mut flip) = (DVec3::ZERO, DVec3::ZERO);
        for (k, (i, j)) in [(1, 2), (0, 2), (0, 1)].into_iter().enumerate() {
            let (sum, gap) = (s.values[i] + s.values[j], s.values[i] - s.values[j]);
            // The limits of (3): below these gaps the quotients are rounding.
            twist[k] = if sum.abs() < 1e-9 { 0.0 } else { (stress[i] + stress[j]) / sum };
            flip[k] = if gap.abs() < 1e-7 {
                0.5 * (h.col(i)[i] + h.col(j)[j]) - h.col(j)[i]
            } else {
                (stress[i] - stress[j]) / gap
            };
        }
        Modes { u: s.u, v: s.v, stretch: h, twist, flip }
    }

    /// `K_ab` of (4) for the pairs (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3) of nodes of an element, per unit of filled volume, from the shape
    /// gradients of nodes 1 to 3. F must be in the range.
    pub fn blocks_within(&self, f: &DMat3, g: [DVec3; 3]) -> [DMat3; 6] {
        let s = self.second_stress(&green(f));
        let b = *f * f.transpose() * self.mu;
        let p = g.map(|g| *f * g);
        let block = |i: usize, j: usize| {
            let (pi, pj) = (p[i], p[j]);
            let own = DVec3::splat(g[i].dot(s * g[j]));
            // column c of λ p_i p_jᵀ + μ p_j p_iᵀ
            let column = |c: usize| pi * (self.lambda * pj[c]) + pj * (self.mu * pi[c]);
            DMat3::from_cols(column(0), column(1), column(2)) + b * g[i].dot(g[j]) + DMat3::from_diagonal(own)
        };
        [block(0, 0), block(0, 1), block(0, 2), block(1, 1), block(1, 2), block(2, 2)]
    }

    /// The derivative of the stress with eigenvalues clamped to `[0, 10 k₀]`: never indefinite.
    pub fn modes(&self, f: &DMat3) -> Modes {
        let mut modes = self.exact_modes(f);
        let cap = STIFFEST * self.uniaxial();
        let clamp = |x: DVec3| x.clamp(DVec3::ZERO, DVec3::splat(cap));
        (modes.twist, modes.flip) = (clamp(modes.twist), clamp(modes.flip));
        if !is_positive(&modes.stretch) {
            let (values, axes) = eigen(modes.stretch);
            modes.stretch = axes * DMat3::from_diagonal(clamp(values)) * axes.transpose();
        }
        modes
    }
}

/// Whether a symmetric matrix is positive definite [Sylvester].
fn is_positive(m: &DMat3) -> bool {
    let minor = m.x_axis.x * m.y_axis.y - m.x_axis.y * m.x_axis.y;
    m.x_axis.x > 0.0 && minor > 0.0 && m.determinant() > 0.0
}

/// E = ½ (Fᵀ F − 1)
#[inline]
fn green(f: &DMat3) -> Symmetric {
    let (a, b, c) = (f.x_axis, f.y_axis, f.z_axis);
    let own = (DVec3::new(a.length_squared(), b.length_squared(), c.length_squared()) - DVec3::ONE) * 0.5;
    Symmetric { own, off: DVec3::new(a.dot(b), a.dot(c), b.dot(c)) * 0.5 }
}

impl Modes {
    /// `K_ab`: how the force on node a answers to the displacement of node b, `−∂f_a/∂x_b` per unit of filled volume, from the shape gradients of
    /// both in the axes of V (`h = Vᵀ G`). In the axes of U
    ///
    /// ```text
    /// K̂_ik = H_ik h_ai h_bk + [i = k] Σ_{j≠i} ½(twist + flip)_ij h_aj h_bj + [i ≠ k] ½(flip − twist)_ik h_ak h_bi
    /// ```
    #[inline]
    pub fn block(&self, ha: DVec3, hb: DVec3) -> DMat3 {
        let alpha = (self.twist + self.flip) * 0.5;
        let beta = (self.flip - self.twist) * 0.5;
        let p = ha * hb;
        let h = &self.stretch;
        // entry (i, k) is component i of column k
        let x = DVec3::new(
            h.x_axis.x * p.x + alpha.z * p.y + alpha.y * p.z,
            h.x_axis.y * ha.y * hb.x + beta.z * ha.x * hb.y,
            h.x_axis.z * ha.z * hb.x + beta.y * ha.x * hb.z,
        );
        let y = DVec3::new(
            h.y_axis.x * ha.x * hb.y + beta.z * ha.y * hb.x,
            h.y_axis.y * p.y + alpha.z * p.x + alpha.x * p.z,
            h.y_axis.z * ha.z * hb.y + beta.x * ha.y * hb.z,
        );
        let z = DVec3::new(
            h.z_axis.x * ha.x * hb.z + beta.y * ha.z * hb.x,
            h.z_axis.y * ha.y * hb.z + beta.x * ha.z * hb.y,
            h.z_axis.z * p.z + alpha.y * p.x + alpha.x * p.y,
        );
        self.u * DMat3::from_cols(x, y, z) * self.u.transpose()
    }
}
