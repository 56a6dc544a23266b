//! One number, or four side by side: the scalar of the tree kernels.
//!
//! The sweeps of `solver/tree` are written once over [`Real`] and compiled for
//! - `f64`, the baseline of every machine;
//! - [`Fused`], one `f64` with fused multiply-add, only inside functions compiled for it;
//! - `Four`, four `f64` in one register: four characters of one model.
//!
//! [`Real::enter`] enters functions compiled for them. This is the only file that contains unsafe code: the calls
//! into functions compiled for instructions that were found to be present, and the vector instructions themselves.
//! `Four` belongs to this crate alone, which makes one only after asking [`has_fused`]: a value of it is a promise that
//! the machine has AVX2, and safe code elsewhere cannot make that promise.
//!
//! ```
//! use supple::maths::lanes::{Fused, Real, has_fused};
//! assert_eq!(Fused::splat(2.0).madd(Fused(3.0), Fused(1.0)).lane(0), 7.0); // on any machine
//! let _ = has_fused();
//! ```
//! ```compile_fail,E0603
//! use supple::maths::lanes::{Four, Real};
//! assert_eq!(Four::splat(2.0).lane(0), 2.0); // an illegal instruction where there is no AVX
//! ```
//!
//! `Fused` and `Four` do the same operations in the same order, so a character alone and a character in a lane agree
//! bit for bit; `f64` rounds each product and differs in the last bits.
#![allow(unsafe_code)]

use std::ops::{Add, Mul, Neg, Sub};

/// The arithmetic the tree kernels need. Every operation is exact to rounding; none branches.
pub trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> + Send + Sync + 'static
{
    /// How many characters lie side by side.
    const LANES: usize;
    /// The same number in every lane.
    fn splat(value: f64) -> Self;
    /// Reads each lane from `value(lane)`.
    fn gather(value: impl Fn(usize) -> f64) -> Self;
    /// The number in one lane.
    fn lane(self, lane: usize) -> f64;
    /// `self * b + c`.
    fn madd(self, b: Self, c: Self) -> Self;
    /// `c - self * b`.
    fn nmadd(self, b: Self, c: Self) -> Self;
    /// `1 / self`.
    fn recip(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The larger of the two.
    fn max(self, other: Self) -> Self;
    /// The smaller of the two.
    fn min(self, other: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// 1 where `self` is not negative (or is +0), else −1.
    fn sign(self) -> Self;
    /// `yes` where `self > 0`, else `no`.
    fn if_positive(self, yes: Self, no: Self) -> Self;
    /// Whether any lane exceeds `bound` (false for NaN).
    fn any_above(self, bound: f64) -> bool;
    /// The nearest whole number, ties to even; for |self| < 2^51.
    #[inline(always)]
    fn round(self) -> Self {
        let shift = Self::splat(6755399441055744.0); // 1.5 · 2^52: adding it drops the fraction
        (self + shift) - shift
    }
    /// Zero in every lane.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    /// Runs work on this kind of number, compiled for the instructions it needs.
    fn enter<K: Kernel>(kernel: K) -> K::Output;
}

impl Real for f64 {
    const LANES: usize = 1;
    #[inline(always)]
    fn splat(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn gather(value: impl Fn(usize) -> f64) -> Self {
        value(0)
    }
    #[inline(always)]
    fn lane(self, _: usize) -> f64 {
        self
    }
    #[inline(always)]
    fn madd(self, b: Self, c: Self) -> Self {
        self * b + c
    }
    #[inline(always)]
    fn nmadd(self, b: Self, c: Self) -> Self {
        c - self * b
    }
    #[inline(always)]
    fn recip(self) -> Self {
        1.0 / self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        f64::abs(self)
    }
    #[inline(always)]
    fn sign(self) -> Self {
        1f64.copysign(self)
    }
    #[inline(always)]
    fn if_positive(self, yes: Self, no: Self) -> Self {
        if self > 0.0 { yes } else { no }
    }
    #[inline(always)]
    fn any_above(self, bound: f64) -> bool {
        self > bound
    }
    #[inline]
    fn enter<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
}

/// One `f64` whose `madd` is a fused instruction. Outside functions compiled with it, `mul_add` would be a slow call:
/// use it only through [`Real::enter`].
#[derive(Clone, Copy, Debug)]
pub struct Fused(pub f64);

impl Add for Fused {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Fused(self.0 + other.0)
    }
}
impl Sub for Fused {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Fused(self.0 - other.0)
    }
}
impl Mul for Fused {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Fused(self.0 * other.0)
    }
}
impl Neg for Fused {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Fused(-self.0)
    }
}
impl Real for Fused {
    const LANES: usize = 1;
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Fused(value)
    }
    #[inline(always)]
    fn gather(value: impl Fn(usize) -> f64) -> Self {
        Fused(value(0))
    }
    #[inline(always)]
    fn lane(self, _: usize) -> f64 {
        self.0
    }
    #[inline(always)]
    fn madd(self, b: Self, c: Self) -> Self {
        Fused(self.0.mul_add(b.0, c.0))
    }
    #[inline(always)]
    fn nmadd(self, b: Self, c: Self) -> Self {
        Fused((-self.0).mul_add(b.0, c.0))
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Fused(1.0 / self.0)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Fused(self.0.sqrt())
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Fused(Real::max(self.0, other.0))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Fused(Real::min(self.0, other.0))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Fused(self.0.abs())
    }
    #[inline(always)]
    fn sign(self) -> Self {
        Fused(1f64.copysign(self.0))
    }
    #[inline(always)]
    fn if_positive(self, yes: Self, no: Self) -> Self {
        if self.0 > 0.0 { yes } else { no }
    }
    #[inline(always)]
    fn any_above(self, bound: f64) -> bool {
        self.0 > bound
    }
    #[inline]
    fn enter<K: Kernel>(kernel: K) -> K::Output {
        run_fused(kernel)
    }
}

#[cfg(target_arch = "x86_64")]
mod four {
    use super::*;
    use std::arch::x86_64::*;

    /// Four `f64` in one AVX2 register. Made only after [`has_fused`]; computed with only inside [`Real::enter`].
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Four(__m256d);

    // Safety of this module: each function is one instruction of AVX, AVX2 or FMA. `Four` is private to this crate, and its
    // one user, `substep_four`, makes values of it only where `has_fused` has found those instructions present.
    impl Add for Four {
        type Output = Self;
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Four(unsafe { _mm256_add_pd(self.0, other.0) })
        }
    }
    impl Sub for Four {
        type Output = Self;
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            Four(unsafe { _mm256_sub_pd(self.0, other.0) })
        }
    }
    impl Mul for Four {
        type Output = Self;
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            Four(unsafe { _mm256_mul_pd(self.0, other.0) })
        }
    }
    impl Neg for Four {
        type Output = Self;
        #[inline(always)]
        fn neg(self) -> Self {
            Four(unsafe { _mm256_xor_pd(self.0, _mm256_set1_pd(-0.0)) })
        }
    }
    impl Real for Four {
        const LANES: usize = 4;
        #[inline(always)]
        fn splat(value: f64) -> Self {
            Four(unsafe { _mm256_set1_pd(value) })
        }
        #[inline(always)]
        fn gather(value: impl Fn(usize) -> f64) -> Self {
            Four(unsafe { _mm256_set_pd(value(3), value(2), value(1), value(0)) })
        }
        #[inline(always)]
        fn lane(self, lane: usize) -> f64 {
            let mut lanes = [0.0; 4];
            unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), self.0) };
            lanes[lane]
        }
        #[inline(always)]
        fn madd(self, b: Self, c: Self) -> Self {
            Four(unsafe { _mm256_fmadd_pd(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn nmadd(self, b: Self, c: Self) -> Self {
            Four(unsafe { _mm256_fnmadd_pd(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn recip(self) -> Self {
            Four(unsafe { _mm256_div_pd(_mm256_set1_pd(1.0), self.0) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Four(unsafe { _mm256_sqrt_pd(self.0) })
        }
        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Four(unsafe { _mm256_max_pd(self.0, other.0) })
        }
        #[inline(always)]
        fn min(self, other: Self) -> Self {
            Four(unsafe { _mm256_min_pd(self.0, other.0) })
        }
        #[inline(always)]
        fn abs(self) -> Self {
            Four(unsafe { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0) })
        }
        #[inline(always)]
        fn sign(self) -> Self {
            let bit = unsafe { _mm256_and_pd(self.0, _mm256_set1_pd(-0.0)) };
            Four(unsafe { _mm256_or_pd(bit, _mm256_set1_pd(1.0)) })
        }
        #[inline(always)]
        fn if_positive(self, yes: Self, no: Self) -> Self {
            let mask = unsafe { _mm256_cmp_pd::<_CMP_GT_OQ>(self.0, _mm256_setzero_pd()) };
            Four(unsafe { _mm256_blendv_pd(no.0, yes.0, mask) })
        }
        #[inline(always)]
        fn any_above(self, bound: f64) -> bool {
            unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(self.0, _mm256_set1_pd(bound))) != 0 }
        }
        #[inline]
        fn enter<K: Kernel>(kernel: K) -> K::Output {
            run_fused(kernel)
        }
    }
}
#[cfg(target_arch = "x86_64")]
pub(crate) use four::Four;

/// Work compiled for one kind of number. `run` and all it calls must be `#[inline(always)]`, without closures around
/// vector code, or the compiler leaves the fast instructions out.
pub trait Kernel {
    /// What the work returns.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instructions {
    /// The best this machine has.
    #[default]
    Best,
    /// Only what every machine of this architecture has: the same bits everywhere.
    Baseline,
}

/// Whether this machine has the instructions of [`Fused`] and of four lanes in one register.
#[inline]
pub fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Runs work on [`Fused`] or `Four`, compiled for the instructions they need.
///
/// # Panics
/// When [`has_fused`] is false.
#[inline]
fn run_fused<K: Kernel>(kernel: K) -> K::Output {
    assert!(has_fused(), "the machine lacks fused instructions");
    #[cfg(target_arch = "x86_64")]
    {
        // Safety: the instructions were just found to be present.
        unsafe { enter_fused(kernel) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        kernel.run()
    }
}

/// One function for each kernel: profiles tell them apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
unsafe fn enter_fused<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
