//! Motions, forces and inertias in body axes, taken at the centre of mass: the world of the recursion.
//!
//! [Kim 2008, Table 4] stacks [angular; linear]. Here the parts have names, so that the order is seen only in formulas:
//! `V = [ω; v]` is a [`Twist`], `F = [n; f]` a [`Wrench`], and `⟨F, V⟩ = n·ω + f·v`.

use crate::maths::rotation::skew;
use crate::maths::{Twist, Wrench};
use glam::{DMat3, DVec3};

/// The place `T = (R, p)` of a body in its tree parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) rotation: DMat3,
    pub(super) offset: DVec3,
}

impl Passage {
    pub(super) const HERE: Passage = Passage { rotation: DMat3::IDENTITY, offset: DVec3::ZERO };

    /// The place of what has the place `inner` in this body.
    pub(super) fn then(&self, inner: &Passage) -> Passage {
        Passage { rotation: self.rotation * inner.rotation, offset: self.offset + self.rotation * inner.offset }
    }

    /// `Ad(T⁻¹) V`: the parent's motion as seen from the body.
    pub(super) fn down(&self, v: Twist) -> Twist {
        let back = self.rotation.transpose();
        Twist::new(back * v.at(self.offset), back * v.angular)
    }

    /// `Ad(T⁻¹)ᵀ F`: a force on the body as seen from the parent.
    pub(super) fn up(&self, f: Wrench) -> Wrench {
        let force = self.rotation * f.force;
        Wrench::new(force, self.rotation * f.torque + self.offset.cross(force))
    }

    /// `Ad(T⁻¹)ᵀ X Ad(T⁻¹)`. Turned into the parent's axes, then shifted: by `v = v_p − [p] ω` and `n_p = n + [p] f`
    ///
    /// ```text
    /// M_p = M,     H_p = H + [p] M,     I_p = I − H [p] + [p] H_pᵀ
    /// ```
    pub(super) fn inertia_up(&self, x: &Inertia) -> Inertia {
        let p = skew(self.offset);
        let Inertia { i, h, m } = x.turned(self.rotation);
        let h_p = h + p * m;
        Inertia { i: i - h * p + p * h_p.transpose(), h: h_p, m }
    }
}

/// A symmetric map from motions to forces, `[n; f] = [[I, H], [Hᵀ, M]] [ω; v]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inertia {
    /// \[kg·m²\]
    pub(super) i: DMat3,
    /// \[kg·m\]
    pub(super) h: DMat3,
    /// \[kg\]
    pub(super) m: DMat3,
}

impl Inertia {
    pub(super) const ZERO: Inertia = Inertia { i: DMat3::ZERO, h: DMat3::ZERO, m: DMat3::ZERO };

    /// Of a body about its centre of mass.
    pub(super) fn of_body(mass: f64, inertia: DMat3) -> Inertia {
        Inertia { i: inertia, h: DMat3::ZERO, m: DMat3::from_diagonal(DVec3::splat(mass)) }
    }

    /// `Bᵀ X B` with `B = [−[r], 1]`: a matrix X on the motion of the point r.
    pub(super) fn at_point(r: DVec3, x: DMat3) -> Inertia {
        let h = skew(r) * x;
        Inertia { i: -(h * skew(r)), h, m: x }
    }

    /// In axes turned by `r`: each block X becomes `r X rᵀ`.
    pub(super) fn turned(&self, r: DMat3) -> Inertia {
        let back = r.transpose();
        Inertia { i: r * self.i * back, h: r * self.h * back, m: r * self.m * back }
    }

    pub(super) fn times(&self, v: Twist) -> Wrench {
        Wrench::new(self.h.transpose() * v.angular + self.m * v.linear, self.i * v.angular + self.h * v.linear)
    }

    pub(super) fn add(&mut self, o: &Inertia) {
        self.i += o.i;
        self.h += o.h;
        self.m += o.m;
    }

    /// `self −= F Fᵀ / d`.
    pub(super) fn remove(&mut self, f: Wrench, d: f64) {
        let outer = |a: DVec3, b: DVec3| DMat3::from_cols(a * b.x, a * b.y, a * b.z);
        let (n, force) = (f.torque / d, f.force / d);
        self.i -= outer(n, f.torque);
        self.h -= outer(n, f.force);
        self.m -= outer(force, f.force);
    }
}

/// `⟨F, V⟩`.
pub(super) fn pair(f: Wrench, v: Twist) -> f64 {
    f.power(v)
}

/// `ad_V W = [ω × w; v × w + ω × w_v]`.
pub(super) fn cross(v: Twist, w: Twist) -> Twist {
    Twist::new(v.linear.cross(w.angular) + v.angular.cross(w.linear), v.angular.cross(w.angular))
}
