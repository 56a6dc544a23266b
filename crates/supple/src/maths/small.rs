//! Vectors, quaternions and 3×3 matrices over [`Real`]: straight-line, no trigonometry, no branches.
//!
//! Rotations by polynomials. With `w = cos(t/2)`:
//! ```text
//! g(w) = (t/2) / sin(t/2)          φ = log q = 2 g sign(q.w) q_v                                          (1)
//! b(w) = −dg/dw = (1 − g w)/(1−w²) S = g w I + b q_v q_vᵀ, the symmetric derivative of the logarithm           (2)
//! ```
//! both analytic in `1 − w` on \[0, 1\]; fitted at Chebyshev nodes, relative error 2e-16 and 1.3e-15.

use super::lanes::Real;
use glam::{DMat3, DQuat, DVec3};
use std::ops::{Add, Neg, Sub};

/// A vector.
#[derive(Clone, Copy, Debug)]
pub struct V3<T> {
    /// First component.
    pub x: T,
    /// Second component.
    pub y: T,
    /// Third component.
    pub z: T,
}

/// A quaternion.
#[derive(Clone, Copy, Debug)]
pub struct Q<T> {
    /// Scalar part.
    pub w: T,
    /// Vector part.
    pub v: V3<T>,
}

/// A matrix by rows.
#[derive(Clone, Copy, Debug)]
pub struct M3<T> {
    /// First row.
    pub x: V3<T>,
    /// Second row.
    pub y: V3<T>,
    /// Third row.
    pub z: V3<T>,
}

/// A symmetric matrix.
#[derive(Clone, Copy, Debug)]
pub struct S3<T> {
    /// Entry (0, 0).
    pub xx: T,
    /// Entry (0, 1).
    pub xy: T,
    /// Entry (0, 2).
    pub xz: T,
    /// Entry (1, 1).
    pub yy: T,
    /// Entry (1, 2).
    pub yz: T,
    /// Entry (2, 2).
    pub zz: T,
}

/// A vector from its parts.
#[inline(always)]
pub fn v3<T>(x: T, y: T, z: T) -> V3<T> {
    V3 { x, y, z }
}

impl<T: Real> Add for V3<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        v3(self.x + o.x, self.y + o.y, self.z + o.z)
    }
}
impl<T: Real> Sub for V3<T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        v3(self.x - o.x, self.y - o.y, self.z - o.z)
    }
}
impl<T: Real> Neg for V3<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        v3(-self.x, -self.y, -self.z)
    }
}

impl<T: Real> V3<T> {
    /// Zero.
    #[inline(always)]
    pub fn zero() -> Self {
        v3(T::zero(), T::zero(), T::zero())
    }
    /// The same vector in every lane.
    #[inline(always)]
    pub fn splat(v: DVec3) -> Self {
        v3(T::splat(v.x), T::splat(v.y), T::splat(v.z))
    }
    /// One lane.
    #[inline(always)]
    pub fn lane(self, lane: usize) -> DVec3 {
        DVec3::new(self.x.lane(lane), self.y.lane(lane), self.z.lane(lane))
    }
    /// `self · o`.
    #[inline(always)]
    pub fn dot(self, o: Self) -> T {
        self.x.madd(o.x, self.y.madd(o.y, self.z * o.z))
    }
    /// `self × o`.
    #[inline(always)]
    pub fn cross(self, o: Self) -> Self {
        v3(self.z.nmadd(o.y, self.y * o.z), self.x.nmadd(o.z, self.z * o.x), self.y.nmadd(o.x, self.x * o.y))
    }
    /// `self · s`.
    #[inline(always)]
    pub fn scale(self, s: T) -> Self {
        v3(self.x * s, self.y * s, self.z * s)
    }
    /// `self · s + o`.
    #[inline(always)]
    pub fn madd(self, s: T, o: Self) -> Self {
        v3(self.x.madd(s, o.x), self.y.madd(s, o.y), self.z.madd(s, o.z))
    }
    /// `o − self · s`.
    #[inline(always)]
    pub fn nmadd(self, s: T, o: Self) -> Self {
        v3(self.x.nmadd(s, o.x), self.y.nmadd(s, o.y), self.z.nmadd(s, o.z))
    }
    /// `yes` where `on > 0`, else `no`.
    #[inline(always)]
    pub fn chosen(on: T, yes: Self, no: Self) -> Self {
        v3(on.if_positive(yes.x, no.x), on.if_positive(yes.y, no.y), on.if_positive(yes.z, no.z))
    }
    /// Component `k`.
    #[inline(always)]
    pub fn at(self, k: usize) -> T {
        match k {
            0 => self.x,
            1 => self.y,
            _ => self.z,
        }
    }
}

impl<T: Real> Q<T> {
    /// The same quaternion in every lane.
    #[inline(always)]
    pub fn splat(q: DQuat) -> Self {
        Q { w: T::splat(q.w), v: v3(T::splat(q.x), T::splat(q.y), T::splat(q.z)) }
    }
    /// One lane.
    #[inline(always)]
    pub fn lane(self, lane: usize) -> DQuat {
        DQuat::from_xyzw(self.v.x.lane(lane), self.v.y.lane(lane), self.v.z.lane(lane), self.w.lane(lane))
    }
    /// The inverse of a unit quaternion.
    #[inline(always)]
    pub fn conjugate(self) -> Self {
        Q { w: self.w, v: -self.v }
    }
    /// The product `self ⊗ o`.
    #[inline(always)]
    pub fn times(self, o: Self) -> Self {
        let w = self.v.dot(o.v);
        Q { w: self.w.madd(o.w, -w), v: o.v.madd(self.w, self.v.madd(o.w, self.v.cross(o.v))) }
    }
    /// The rotation matrix.
    #[inline(always)]
    pub fn matrix(self) -> M3<T> {
        let (w, v) = (self.w, self.v);
        let (x2, y2, z2) = (v.x + v.x, v.y + v.y, v.z + v.z);
        let one = T::splat(1.0);
        let (wx, wy, wz) = (w * x2, w * y2, w * z2);
        let xx = v.x * x2;
        M3 {
            x: v3(v.z.nmadd(z2, v.y.nmadd(y2, one)), v.x.madd(y2, -wz), v.x.madd(z2, wy)),
            y: v3(v.x.madd(y2, wz), v.z.nmadd(z2, one - xx), v.y.madd(z2, -wx)),
            z: v3(v.x.madd(z2, -wy), v.y.madd(z2, wx), v.y.nmadd(y2, one - xx)),
        }
    }
    /// Brings the length back to 1: one Newton step, enough for drift of a few roundings.
    #[inline(always)]
    pub fn renormalised(self) -> Self {
        let n = self.w.madd(self.w, self.v.dot(self.v));
        let s = T::splat(0.5).nmadd(n, T::splat(1.5));
        Q { w: self.w * s, v: self.v.scale(s) }
    }
    /// `g` of (1) at `w = |self.w|`.
    #[inline(always)]
    pub fn half_angle_over_sine(self) -> T {
        polynomial(T::splat(1.0) - self.w.abs(), &HALF_ANGLE_OVER_SINE)
    }
    /// The rotation vector, the short way round, by (1); and its symmetric derivative `S`, by (2).
    #[inline(always)]
    pub fn log(self) -> (V3<T>, S3<T>) {
        let x = T::splat(1.0) - self.w.abs();
        let (g, b) = (polynomial(x, &HALF_ANGLE_OVER_SINE), polynomial(x, &LOG_CURVATURE));
        let gamma = g * self.w.abs();
        let bv = self.v.scale(b);
        let s = S3 {
            xx: bv.x.madd(self.v.x, gamma),
            xy: bv.x * self.v.y,
            xz: bv.x * self.v.z,
            yy: bv.y.madd(self.v.y, gamma),
            yz: bv.y * self.v.z,
            zz: bv.z.madd(self.v.z, gamma),
        };
        (self.v.scale((g + g) * self.w.sign()), s)
    }
}

/// The turn whose half has a sine and cosine in this proportion, of all its values the one nearest `last`; and the half's sine and cosine.
#[inline(always)]
pub fn turn_of_half<T: Real>(sine: T, cosine: T, last: T) -> (T, [T; 2]) {
    let size = cosine.madd(cosine, sine.madd(sine, T::splat(1e-300))).sqrt().recip();
    let (cosine, sine) = (cosine * size, sine * size);
    let half = Q { w: cosine.abs().min(T::splat(1.0)), v: V3::zero() }.half_angle_over_sine();
    let angle = (half + half) * sine * cosine.sign();
    let whole = T::splat(std::f64::consts::TAU);
    (((last - angle) * T::splat(1.0 / std::f64::consts::TAU)).round().madd(whole, angle), [sine, cosine])
}

/// `tan(½x)/(½x)` and its derivative: Padé's quotient of tangents, `|x| ≤ 1.2` to 1e-15; beyond, the exact function, lane by lane.
#[inline(always)]
pub fn tangent_ratio<T: Real>(x: T) -> (T, T) {
    let y = x * T::splat(0.5);
    let z = y * y;
    let one = T::splat;
    let n = (one(-1.0)).madd(z, one(378.0)).madd(z, one(-17325.0)).madd(z, one(135135.0));
    let d = (one(-28.0)).madd(z, one(3150.0)).madd(z, one(-62370.0)).madd(z, one(135135.0));
    let m = (one(27.0)).madd(z, one(-2772.0)).madd(z, one(45045.0)); // (n − d)/z
    let inverse = d.recip();
    let ratio = n * inverse;
    // With r the ratio: dr/dx = ½y (r² − (r − 1)/y²)
    let near = (ratio, one(0.5) * y * ratio.madd(ratio, -(m * inverse)));
    if z.any_above(0.36) { tangent_ratio_far(y, z, near) } else { near }
}

#[cold]
#[inline(never)]
fn tangent_ratio_far<T: Real>(y: T, z: T, near: (T, T)) -> (T, T) {
    let exact = |l: usize| {
        let (y, tangent) = (y.lane(l), y.lane(l).tan());
        (tangent / y, ((1.0 + tangent * tangent) * y - tangent) / (2.0 * y * y))
    };
    let of = |l: usize| if z.lane(l) > 0.36 { exact(l) } else { (near.0.lane(l), near.1.lane(l)) };
    (T::gather(|l| of(l).0), T::gather(|l| of(l).1))
}

/// The rotation by the vector `phi`: quarter angle by polynomial, then one squaring. For `|phi| ≤ 2`; longer ones by
/// the exact functions, lane by lane.
#[inline(always)]
pub fn exp<T: Real>(phi: V3<T>) -> Q<T> {
    let y = phi.dot(phi) * T::splat(1.0 / 16.0); // (θ/4)²
    let (s, c) = (polynomial(y, &SINC), polynomial(y, &COSINE));
    let s = s * T::splat(0.25); // sin(θ/4)/θ
    // (c, sφ)² = (c² − s²|φ|², 2cs φ)
    let ss = s * s * y * T::splat(16.0);
    let near = Q { w: c.madd(c, -ss), v: phi.scale((c + c) * s) };
    if y.any_above(0.25) { exp_far(phi, y, near) } else { near }
}

#[cold]
#[inline(never)]
fn exp_far<T: Real>(phi: V3<T>, y: T, near: Q<T>) -> Q<T> {
    let mut lanes = [DQuat::IDENTITY; 4];
    for lane in 0..T::LANES {
        let v = phi.lane(lane);
        lanes[lane] = near.lane(lane);
        if y.lane(lane) > 0.25 && v.is_finite() {
            lanes[lane] = super::rotation::exp(v);
        }
    }
    Q {
        w: T::gather(|l| lanes[l].w),
        v: v3(T::gather(|l| lanes[l].x), T::gather(|l| lanes[l].y), T::gather(|l| lanes[l].z)),
    }
}

impl<T: Real> M3<T> {
    /// `self · v`.
    #[inline(always)]
    pub fn times(self, v: V3<T>) -> V3<T> {
        v3(self.x.dot(v), self.y.dot(v), self.z.dot(v))
    }
    /// `selfᵀ · v`.
    #[inline(always)]
    pub fn transpose_times(self, v: V3<T>) -> V3<T> {
        self.x.madd(v.x, self.y.madd(v.y, self.z.scale(v.z)))
    }
    /// Column `k`.
    #[inline(always)]
    pub fn column(self, k: usize) -> V3<T> {
        v3(self.x.at(k), self.y.at(k), self.z.at(k))
    }
    /// `self S selfᵀ`.
    #[inline(always)]
    pub fn congruence(self, s: &S3<T>) -> S3<T> {
        let (a, b, c) = (s.times(self.x), s.times(self.y), s.times(self.z));
        S3 {
            xx: self.x.dot(a),
            xy: self.x.dot(b),
            xz: self.x.dot(c),
            yy: self.y.dot(b),
            yz: self.y.dot(c),
            zz: self.z.dot(c),
        }
    }
}

impl<T: Real> M3<T> {
    /// Zero.
    #[inline(always)]
    pub fn zero() -> Self {
        let o = V3::zero();
        M3 { x: o, y: o, z: o }
    }
    /// The matrix of `v ×`.
    #[inline(always)]
    pub fn skew(v: V3<T>) -> Self {
        let o = T::zero();
        M3 { x: v3(o, -v.z, v.y), y: v3(v.z, o, -v.x), z: v3(-v.y, v.x, o) }
    }
    /// `self · o`.
    #[inline(always)]
    pub fn product(&self, o: &Self) -> Self {
        M3 { x: o.transpose_times(self.x), y: o.transpose_times(self.y), z: o.transpose_times(self.z) }
    }
    /// `self · oᵀ`.
    #[inline(always)]
    pub fn product_transposed(&self, o: &Self) -> Self {
        M3 { x: o.times(self.x), y: o.times(self.y), z: o.times(self.z) }
    }
    /// The sum.
    #[inline(always)]
    pub fn plus(&self, o: &Self) -> Self {
        M3 { x: self.x + o.x, y: self.y + o.y, z: self.z + o.z }
    }
    /// The difference.
    #[inline(always)]
    pub fn minus(&self, o: &Self) -> Self {
        M3 { x: self.x - o.x, y: self.y - o.y, z: self.z - o.z }
    }
    /// `self · s`.
    #[inline(always)]
    pub fn scaled(&self, s: T) -> Self {
        M3 { x: self.x.scale(s), y: self.y.scale(s), z: self.z.scale(s) }
    }
    /// `self · [r]`.
    #[inline(always)]
    pub fn times_skew(&self, r: V3<T>) -> Self {
        M3 { x: self.x.cross(r), y: self.y.cross(r), z: self.z.cross(r) }
    }
    /// `[l] · self`.
    #[inline(always)]
    pub fn skewed_by(&self, l: V3<T>) -> Self {
        M3 {
            x: self.y.nmadd(l.z, self.z.scale(l.y)),
            y: self.z.nmadd(l.x, self.x.scale(l.z)),
            z: self.x.nmadd(l.y, self.y.scale(l.x)),
        }
    }
    /// `self + s I`.
    #[inline(always)]
    pub fn plus_identity(&self, s: T) -> Self {
        M3 {
            x: v3(self.x.x + s, self.x.y, self.x.z),
            y: v3(self.y.x, self.y.y + s, self.y.z),
            z: v3(self.z.x, self.z.y, self.z.z + s),
        }
    }
    /// `self + a bᵀ`.
    #[inline(always)]
    pub fn plus_outer(&self, a: V3<T>, b: V3<T>) -> Self {
        M3 { x: b.madd(a.x, self.x), y: b.madd(a.y, self.y), z: b.madd(a.z, self.z) }
    }
    /// The inverse, through the adjugate.
    #[inline(always)]
    pub fn inverse(&self) -> Self {
        let (a, b, c) = (self.y.cross(self.z), self.z.cross(self.x), self.x.cross(self.y));
        let s = self.x.dot(a).recip();
        let (a, b, c) = (a.scale(s), b.scale(s), c.scale(s));
        M3 { x: v3(a.x, b.x, c.x), y: v3(a.y, b.y, c.y), z: v3(a.z, b.z, c.z) }
    }
    /// `yes` where `on > 0`, else `no`.
    #[inline(always)]
    pub fn chosen(on: T, yes: &Self, no: &Self) -> Self {
        M3 { x: V3::chosen(on, yes.x, no.x), y: V3::chosen(on, yes.y, no.y), z: V3::chosen(on, yes.z, no.z) }
    }
}

impl M3<f64> {
    /// As a matrix.
    pub fn matrix(&self) -> DMat3 {
        DMat3::from_cols(self.x.lane(0), self.y.lane(0), self.z.lane(0)).transpose()
    }
}

impl<T: Real> S3<T> {
    /// Zero.
    #[inline(always)]
    pub fn zero() -> Self {
        Self::identity_times(T::zero())
    }
    /// `s I`.
    #[inline(always)]
    pub fn identity_times(s: T) -> Self {
        let o = T::zero();
        S3 { xx: s, xy: o, xz: o, yy: s, yz: o, zz: s }
    }
    /// The same matrix in every lane: xx, xy, xz, yy, yz, zz.
    #[inline(always)]
    pub fn splat(a: &[f64; 6]) -> Self {
        let s = T::splat;
        S3 { xx: s(a[0]), xy: s(a[1]), xz: s(a[2]), yy: s(a[3]), yz: s(a[4]), zz: s(a[5]) }
    }
    /// `self · v`.
    #[inline(always)]
    pub fn times(&self, v: V3<T>) -> V3<T> {
        v3(
            self.xx.madd(v.x, self.xy.madd(v.y, self.xz * v.z)),
            self.xy.madd(v.x, self.yy.madd(v.y, self.yz * v.z)),
            self.xz.madd(v.x, self.yz.madd(v.y, self.zz * v.z)),
        )
    }
    /// The sum.
    #[inline(always)]
    pub fn plus(&self, o: &Self) -> Self {
        S3 {
            xx: self.xx + o.xx,
            xy: self.xy + o.xy,
            xz: self.xz + o.xz,
            yy: self.yy + o.yy,
            yz: self.yz + o.yz,
            zz: self.zz + o.zz,
        }
    }
    /// `self · s + o`.
    #[inline(always)]
    pub fn madd(&self, s: T, o: &Self) -> Self {
        S3 {
            xx: self.xx.madd(s, o.xx),
            xy: self.xy.madd(s, o.xy),
            xz: self.xz.madd(s, o.xz),
            yy: self.yy.madd(s, o.yy),
            yz: self.yz.madd(s, o.yz),
            zz: self.zz.madd(s, o.zz),
        }
    }
    /// `self + s I`.
    #[inline(always)]
    pub fn plus_identity(&self, s: T) -> Self {
        S3 { xx: self.xx + s, yy: self.yy + s, zz: self.zz + s, ..*self }
    }
    /// `self + s v vᵀ`.
    #[inline(always)]
    pub fn plus_outer(&self, s: T, v: V3<T>) -> Self {
        let u = v.scale(s);
        S3 {
            xx: u.x.madd(v.x, self.xx),
            xy: u.x.madd(v.y, self.xy),
            xz: u.x.madd(v.z, self.xz),
            yy: u.y.madd(v.y, self.yy),
            yz: u.y.madd(v.z, self.yz),
            zz: u.z.madd(v.z, self.zz),
        }
    }
    /// The inverse, through the adjugate; and the determinant.
    #[inline(always)]
    pub fn inverse(&self) -> (Self, T) {
        let xx = self.yz.nmadd(self.yz, self.yy * self.zz);
        let xy = self.xy.nmadd(self.zz, self.xz * self.yz);
        let xz = self.xz.nmadd(self.yy, self.xy * self.yz);
        let yy = self.xz.nmadd(self.xz, self.xx * self.zz);
        let yz = self.xx.nmadd(self.yz, self.xy * self.xz);
        let zz = self.xy.nmadd(self.xy, self.xx * self.yy);
        let det = self.xx.madd(xx, self.xy.madd(xy, self.xz * xz));
        let s = det.recip();
        (S3 { xx: xx * s, xy: xy * s, xz: xz * s, yy: yy * s, yz: yz * s, zz: zz * s }, det)
    }
    /// One row.
    #[inline(always)]
    pub fn row(&self, k: usize) -> V3<T> {
        match k {
            0 => v3(self.xx, self.xy, self.xz),
            1 => v3(self.xy, self.yy, self.yz),
            _ => v3(self.xz, self.yz, self.zz),
        }
    }
}

impl S3<f64> {
    /// As a matrix.
    pub fn matrix(&self) -> DMat3 {
        DMat3::from_cols(self.row(0).lane(0), self.row(1).lane(0), self.row(2).lane(0))
    }
}

/// A polynomial as four interleaved ones in `x⁴`, so that the processor can work on them at once.
#[inline(always)]
pub fn polynomial<T: Real, const N: usize>(x: T, coefficients: &[f64; N]) -> T {
    let x2 = x * x;
    let x4 = x2 * x2;
    let mut sums = [T::zero(); 4];
    let mut r = 0;
    while r < 4 {
        // The highest coefficient whose index leaves remainder r.
        let mut k = N - 1 - ((N - 1 + 4 - r) % 4);
        let mut sum = T::splat(coefficients[k]);
        while k >= 4 {
            k -= 4;
            sum = sum.madd(x4, T::splat(coefficients[k]));
        }
        sums[r] = sum;
        r += 1;
    }
    sums[3].madd(x, sums[2]).madd(x2, sums[1].madd(x, sums[0]))
}

/// `g` in powers of `1 − w`.
const HALF_ANGLE_OVER_SINE: [f64; 20] = [
    1.0,
    3.33333333333462600e-01,
    1.33333333316191793e-01,
    5.71428580428611568e-02,
    2.53968004680119284e-02,
    1.15444322936505851e-02,
    5.32329163332115243e-03,
    2.52344979954088281e-03,
    9.57999424752009024e-04,
    1.46144812477941354e-03,
    -2.68651137882776640e-03,
    7.49781275877252091e-03,
    -1.41517635453678112e-02,
    2.11420865485573047e-02,
    -2.39521418772297399e-02,
    2.04401031472473058e-02,
    -1.26855527844123277e-02,
    5.43563997997891912e-03,
    -1.44130778315828450e-03,
    1.81015292764800142e-04,
];

/// `b` in powers of `1 − w`.
const LOG_CURVATURE: [f64; 21] = [
    3.33333333333333759e-01,
    2.66666666666308894e-01,
    1.71428571480894881e-01,
    1.01587298554589867e-01,
    5.77201505799711662e-02,
    3.19662960319092720e-02,
    1.74264133323357856e-02,
    9.17147000426099708e-03,
    6.19927370303550041e-03,
    -3.18712364986365598e-03,
    2.28385073635112221e-02,
    -6.04417525436444572e-02,
    1.36408972158758940e-01,
    -2.36102973009592654e-01,
    3.19565337555859641e-01,
    -3.32707057274591267e-01,
    2.62127157551361401e-01,
    -1.51169282804370031e-01,
    6.03916128323808768e-02,
    -1.49777063235945525e-02,
    1.75483445714366042e-03,
];

/// `sin(x)/x` in powers of `x²`, for `x ≤ ½`.
const SINC: [f64; 7] = [
    1.0,
    -1.66666666666666657e-01,
    8.33333333333319097e-03,
    -1.98412698409278324e-04,
    2.75573188330528578e-06,
    -2.50518789680657059e-08,
    1.59922616829825484e-10,
];

/// `cos(x)` in powers of `x²`, for `x ≤ ½`.
const COSINE: [f64; 7] = [
    1.0,
    -4.99999999999999944e-01,
    4.16666666666645272e-02,
    -1.38888888883760856e-03,
    2.48015867154141187e-05,
    -2.75569752167528002e-07,
    2.07766098308963525e-09,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maths::rotation;

    #[test]
    fn tangents_agree_with_the_exact_function() {
        for i in -250..=250 {
            let x = 0.01 * f64::from(i) + 1e-9;
            let y = 0.5 * x;
            let (ratio, slope) = tangent_ratio(x);
            // 1e-15 of numbers up to 9
            assert!((ratio - y.tan() / y).abs() < 1e-14, "{x}: {ratio}");
            let step = 1e-5; // central differences: step² times third derivatives below 600, and 1e-15/step
            let difference = (tangent_ratio(x + step).0 - tangent_ratio(x - step).0) / (2.0 * step);
            assert!((slope - difference).abs() < 1e-7, "{x}: {slope}, not {difference}");
        }
    }

    #[test]
    fn polynomials_agree_with_the_exact_functions() {
        for i in 0..2000 {
            let f = i as f64;
            let axis = DVec3::new((1.3 * f).sin(), (2.1 * f + 1.0).cos(), (0.7 * f + 0.3).sin()).normalize();
            let angle = std::f64::consts::PI * (i as f64 / 2000.0) * (1.0 - 1e-9);
            let q = rotation::exp(axis * angle);
            let (phi, s) = Q::<f64>::splat(q).log();
            let (phi_flipped, _) = Q::<f64>::splat(-q).log();
            // Rounding of the quaternion near a half turn moves the angle by a few 1e-16.
            assert!((phi.lane(0) - axis * angle).length() < 3e-15, "{angle}");
            assert!((phi_flipped.lane(0) - axis * angle).length() < 3e-15, "{angle}");
            let exact = rotation::log_derivative_symmetric(axis * angle);
            assert!((s.xx - exact.x_axis.x).abs() < 1e-13 && (s.yz - exact.y_axis.z).abs() < 1e-13, "{angle}");
            let turned = exp(V3::<f64>::splat(axis * (1.9 * angle / 3.0))).lane(0);
            let exact = rotation::exp(axis * (1.9 * angle / 3.0));
            assert!((turned.x - exact.x).abs() + (turned.w - exact.w).abs() < 1e-15, "{angle}");
        }
    }

    #[test]
    fn small_blocks_agree_with_glam() {
        let q = rotation::exp(DVec3::new(0.4, -1.1, 0.7));
        let m = glam::DMat3::from_quat(q);
        let v = DVec3::new(0.2, 0.5, -0.9);
        let ours = Q::<f64>::splat(q).matrix();
        assert!((ours.times(V3::splat(v)).lane(0) - m * v).length() < 1e-15);
        assert!((ours.transpose_times(V3::splat(v)).lane(0) - m.transpose() * v).length() < 1e-15);
        let s = S3::<f64>::splat(&[2.0, 0.3, -0.4, 3.0, 0.1, 4.0]);
        let (inverse, _) = s.inverse();
        assert!((s.times(inverse.times(V3::splat(v))).lane(0) - v).length() < 1e-15);
        let p = rotation::exp(DVec3::new(-0.2, 0.3, 1.0));
        let product = Q::<f64>::splat(q).times(Q::splat(p)).lane(0);
        assert!((product - q * p).length() < 1e-15);
        let turned = ours.congruence(&s);
        let dense =
            glam::DMat3::from_cols(DVec3::new(2.0, 0.3, -0.4), DVec3::new(0.3, 3.0, 0.1), DVec3::new(-0.4, 0.1, 4.0));
        let exact = m * dense * m.transpose();
        assert!((turned.xy - exact.y_axis.x).abs() < 1e-14 && (turned.zz - exact.z_axis.z).abs() < 1e-14);
    }
}
