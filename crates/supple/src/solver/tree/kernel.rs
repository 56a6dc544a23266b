//! The kernels: what happens at one node on the way up and on the way down. Written once over [`Real`].
//!
//! Body and joint are eliminated together on the joint's free directions, in velocities relative to the parent and at
//! the joint's anchor. This is the elimination of [Hernández 2011, §4] of the pair (body, joint): a Schur complement does
//! not depend on the basis. It has no joint pivots, needs no regularisation and keeps its digits for any stiffness.
//!
//! | symbol | meaning |
//! |---|---|
//! | `u = v + ω×r` | velocity of the body at the anchor, `r` the lever from its centre of mass |
//! | `M, H, I` | articulated inertia at the anchor: momentum `f = M u + H ω`, `n = Hᵀ u + I ω` |
//! | `û = v_p + ω_p × lever` | velocity of the parent at the joint |
//! | `c, e` | correction rates that close the joint within the step: `c = −gap/h` |
//! | `q` | free rates: `u = û + c + S q`, `ω = ω_p + e + S q` |
//! | `K, τ` | `h²k + h·damping` and impulse of springs, limits and motors on the free directions |
//!
//! ```text
//! D = SᵀÂS + K    p̄ = p − Â(c,e)    q = D⁻¹(Sᵀp̄ + τ) − D⁻¹(ÂS)ᵀ(û,ω_p)                                     (1)
//! Â' = Â − ÂS D⁻¹ (ÂS)ᵀ             p' = p̄ − ÂS D⁻¹(Sᵀp̄ + τ)                                              (2)
//! ```

use super::plan::*;
use crate::input::{Input, JointInput};
use crate::maths::lanes::Real;
use crate::maths::small::*;
use crate::model::Swing;
use crate::model::joint::{RotationKind, rotation_pairs};
use crate::model::laws::{Limit, Servo, Spring, Tangent, TurnServo, TurnTangent};
use crate::model::limit::twist_direction;
use glam::{DQuat, DVec3};

/// Pose, velocity and turning angle of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving<T> {
    pub(crate) x: V3<T>,
    pub(crate) q: Q<T>,
    pub(crate) v: V3<T>,
    pub(crate) w: V3<T>,
    pub(crate) angle: T,
}

impl<T: Real> Moving<T> {
    pub(crate) fn world() -> Self {
        Moving { x: V3::zero(), q: Q::splat(DQuat::IDENTITY), v: V3::zero(), w: V3::zero(), angle: T::zero() }
    }
}

/// An articulated inertia and momentum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inertia<T> {
    pub(crate) m: S3<T>,
    pub(crate) h: M3<T>,
    pub(crate) i: S3<T>,
    pub(crate) f: V3<T>,
    pub(crate) n: V3<T>,
}

impl<T: Real> Inertia<T> {
    #[inline(always)]
    pub(crate) fn zero() -> Self {
        let o = V3::zero();
        Inertia { m: S3::zero(), h: M3 { x: o, y: o, z: o }, i: S3::zero(), f: o, n: o }
    }

    #[inline(always)]
    pub(crate) fn plus(&self, o: &Self) -> Self {
        Inertia {
            m: self.m.plus(&o.m),
            h: M3 { x: self.h.x + o.h.x, y: self.h.y + o.h.y, z: self.h.z + o.h.z },
            i: self.i.plus(&o.i),
            f: self.f + o.f,
            n: self.n + o.n,
        }
    }

    /// The same at a point `d` before the present one: velocities there are `u_new`, with `u = u_new + ω×d`.
    ///
    /// `H₁ = H − M [d]`, `I₁ = I + [d]H₁ + ([d]H)ᵀ`, `n₁ = n + d×f`.
    #[inline(always)]
    pub(crate) fn shifted(&self, d: V3<T>) -> Self {
        let h = &self.h;
        let h1 =
            M3 { x: d.cross(self.m.row(0)) + h.x, y: d.cross(self.m.row(1)) + h.y, z: d.cross(self.m.row(2)) + h.z };
        let s = M3 { x: h1.x + h.x, y: h1.y + h.y, z: h1.z + h.z };
        let i = &self.i;
        let i1 = S3 {
            xx: d.z.nmadd(s.y.x, d.y.madd(s.z.x, i.xx)),
            yy: d.x.nmadd(s.z.y, d.z.madd(s.x.y, i.yy)),
            zz: d.y.nmadd(s.x.z, d.x.madd(s.y.z, i.zz)),
            xy: d.x.nmadd(h.z.x, d.z.madd(h.x.x, d.z.nmadd(h1.y.y, d.y.madd(h1.z.y, i.xy)))),
            xz: d.y.nmadd(h.x.x, d.x.madd(h.y.x, d.z.nmadd(h1.y.z, d.y.madd(h1.z.z, i.xz)))),
            yz: d.y.nmadd(h.x.y, d.x.madd(h.y.y, d.x.nmadd(h1.z.z, d.z.madd(h1.x.z, i.yz)))),
        };
        Inertia { m: self.m, h: h1, i: i1, f: self.f, n: self.n + d.cross(self.f) }
    }

    /// Momentum of the motion `(u, ω)`.
    #[inline(always)]
    pub(crate) fn times(&self, u: V3<T>, w: V3<T>) -> (V3<T>, V3<T>) {
        (self.m.times(u) + self.h.times(w), self.h.transpose_times(u) + self.i.times(w))
    }

    /// Without the momentum of the motion `(c, e)`.
    #[inline(always)]
    fn without(&self, c: V3<T>, e: V3<T>) -> Self {
        let (f, n) = self.times(c, e);
        Inertia { f: self.f - f, n: self.n - n, ..*self }
    }
}

/// What further right-hand sides need of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<T> {
    /// Articulated inertia before elimination.
    pub(crate) inertia: Inertia<T>,
    /// `D⁻¹` of a ball.
    pub(crate) inverse: S3<T>,
}

/// What the way down needs of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage<T> {
    /// Lever of the anchor from the body's centre of mass.
    pub(crate) own: V3<T>,
    /// Lever of the joint from the parent's centre of mass.
    pub(crate) lever: V3<T>,
    /// Closing rate of the joint.
    pub(crate) c: V3<T>,
    /// Closing rate of the joint's rotation.
    pub(crate) e: V3<T>,
    /// The turn of a spring at the start, in side b's axes, where it may be on either way round; else zero.
    pub(crate) turn: V3<T>,
    pub(crate) factor: Factor<T>,
}

/// The factor of one node, by the kind of its link; `q0` solves the present right-hand side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Factor<T> {
    /// `ω = q0 − G û + E ω_p`.
    Ball { g: M3<T>, e: M3<T>, q0: V3<T> },
    /// `q = q0 − g_u·û − g_w·ω_p`; `inverse = 1/δ`.
    Hinge { axis: V3<T>, g_u: V3<T>, g_w: V3<T>, inverse: T, q0: T },
    /// The body moves with its parent.
    Weld,
    /// `u` is absolute, `ω = q0 − G u`.
    Floating { inverse: S3<T>, g: M3<T>, point_inverse: S3<T>, q0: V3<T>, u: V3<T> },
    /// In the list of general factors.
    General(u32),
}

/// The factor of a link with any free directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct General<T> {
    pub(crate) count: usize,
    pub(crate) directions: [Direction<T>; 6],
    /// `D⁻¹(ÂS)ᵀ`, linear and angular part.
    pub(crate) g_u: [V3<T>; 6],
    pub(crate) g_w: [V3<T>; 6],
    /// `D = L diag(d) Lᵀ`, `d` inverted.
    pub(crate) l: [[T; 6]; 6],
    pub(crate) d_inverse: [T; 6],
    pub(crate) q0: [T; 6],
}

impl<T: Real> General<T> {
    pub(crate) fn zero() -> Self {
        let (o, v) = (T::zero(), V3::zero());
        General {
            count: 0,
            directions: [Direction::Turn(v); 6],
            g_u: [v; 6],
            g_w: [v; 6],
            l: [[o; 6]; 6],
            d_inverse: [o; 6],
            q0: [o; 6],
        }
    }

    /// `D⁻¹ s`.
    #[inline(always)]
    fn solve(&self, s: &mut [T; 6]) {
        let n = self.count;
        for i in 0..n {
            for k in 0..i {
                s[i] = self.l[i][k].nmadd(s[k], s[i]);
            }
        }
        for i in (0..n).rev() {
            s[i] = s[i] * self.d_inverse[i];
            for k in i + 1..n {
                s[i] = self.l[k][i].nmadd(s[k], s[i]);
            }
        }
    }
}

/// A free direction of a joint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction<T> {
    /// Translation along a unit vector.
    Slide(V3<T>),
    /// Rotation about a unit vector.
    Turn(V3<T>),
}

impl<T: Real> Direction<T> {
    /// Momentum of unit motion along it.
    #[inline(always)]
    fn momentum(&self, a: &Inertia<T>) -> (V3<T>, V3<T>) {
        match *self {
            Direction::Slide(s) => (a.m.times(s), a.h.transpose_times(s)),
            Direction::Turn(s) => (a.h.times(s), a.i.times(s)),
        }
    }
    /// Part of a momentum along it.
    #[inline(always)]
    fn part(&self, f: V3<T>, n: V3<T>) -> T {
        match *self {
            Direction::Slide(s) => s.dot(f),
            Direction::Turn(s) => s.dot(n),
        }
    }
}

/// What is the same for all nodes of a sweep.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a, T> {
    pub(crate) plan: &'a Plan,
    /// One input per lane.
    pub(crate) inputs: &'a [&'a Input],
    /// By joint: its turn from rest at the last pose, in side b's axes; joints that do not wind have none.
    pub(crate) turns: &'a [V3<T>],
    pub(crate) h: T,
    pub(crate) inverse_h: T,
    pub(crate) gravity: V3<T>,
    /// Factors on stiffness and damping when no joint has an input of its own.
    pub(crate) scales: Option<(T, T)>,
}

impl<'a, T: Real> Context<'a, T> {
    #[inline(always)]
    pub(crate) fn new(plan: &'a Plan, inputs: &'a [&'a Input], turns: &'a [V3<T>], h: f64) -> Self {
        let uniform = inputs.iter().all(|i| i.joints.is_empty());
        let neutral = JointInput::default();
        Context {
            plan,
            inputs,
            turns,
            h: T::splat(h),
            inverse_h: T::splat(1.0 / h),
            gravity: v3(
                T::gather(|l| inputs[l].gravity.x),
                T::gather(|l| inputs[l].gravity.y),
                T::gather(|l| inputs[l].gravity.z),
            ),
            scales: uniform
                .then(|| (T::gather(|l| inputs[l].scales(&neutral).0), T::gather(|l| inputs[l].scales(&neutral).1))),
        }
    }

    #[inline(always)]
    fn scales(&self, joint: u32) -> (T, T) {
        match self.scales {
            Some(scales) => scales,
            None => self.own_scales(joint),
        }
    }

    #[cold]
    fn own_scales(&self, joint: u32) -> (T, T) {
        let one = |l: usize| self.inputs[l].scales(&self.inputs[l].joint(joint as usize));
        (T::gather(|l| one(l).0), T::gather(|l| one(l).1))
    }
}

/// The two sides of a node's joint.
struct Sides<'a, T> {
    a: &'a Moving<T>,
    b: &'a Moving<T>,
    r_a: M3<T>,
    r_b: M3<T>,
    /// `ω_a − ω_b` at the start.
    rate: V3<T>,
}

/// `K` and `τ` on three rotations.
#[derive(Clone, Copy)]
struct Torque<T> {
    k: S3<T>,
    tau: V3<T>,
}

/// `K` and `τ` on one direction.
#[derive(Clone, Copy)]
struct Pull<T> {
    k: T,
    tau: T,
}

impl<T: Real> Pull<T> {
    /// `h²k + h c` and `h F` of a law's tangent.
    #[inline(always)]
    fn of(law: Tangent<T>, h: T) -> Pull<T> {
        Pull { k: (law.slope * h).madd(h, law.damping * h), tau: law.force * h }
    }

    #[inline(always)]
    fn plus(self, o: Pull<T>) -> Pull<T> {
        Pull { k: self.k + o.k, tau: self.tau + o.tau }
    }
}

impl<T: Real> Torque<T> {
    /// A law on three rotations, where the logarithm has the symmetric derivative `s`.
    #[inline(always)]
    fn of(law: TurnTangent<T>, s: &S3<T>, h: T) -> Torque<T> {
        Torque { k: s.madd(law.slope * h * h, &S3::identity_times(law.damping * h)), tau: law.torque.scale(h) }
    }

    /// With a law along one direction.
    #[inline(always)]
    fn plus(self, g: V3<T>, pull: Pull<T>) -> Torque<T> {
        Torque { k: self.k.plus_outer(pull.k, g), tau: g.madd(pull.tau, self.tau) }
    }
}

/// The way up at node `i`: assembles its body, eliminates it with its joint. Returns what goes to the parent.
///
/// `waiting` is the children's sum, `load` what acts on the body from outside; `kept` receives the articulated inertia
/// before elimination when the factorisation is to be used again.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn ascend<T: Real>(
    cx: &Context<'_, T>,
    i: usize,
    moving: &[Moving<T>],
    load: Option<&Inertia<T>>,
    waiting: Option<&Inertia<T>>,
    general: Option<&mut General<T>>,
    mut kept: Option<&mut Kept<T>>,
    limits: &mut T,
    passage: &mut Passage<T>,
) -> Inertia<T> {
    let node = &cx.plan.nodes[i];
    let parent = &moving[node.parent as usize];
    let own = &moving[i];
    let flipped = node.flags & FLIPPED != 0;
    let (r_own, r_parent) = (own.q.matrix(), parent.q.matrix());
    let sides = if flipped {
        Sides { a: parent, b: own, r_a: r_parent, r_b: r_own, rate: parent.w - own.w }
    } else {
        Sides { a: own, b: parent, r_a: r_own, r_b: r_parent, rate: own.w - parent.w }
    };

    // The levers, and how far the joint's points are apart.
    let (lever_a, lever_b) = (sides.r_a.times(V3::splat(node.point_a)), sides.r_b.times(V3::splat(node.point_b)));
    let gap = (sides.a.x - sides.b.x) + (lever_a - lever_b);
    let mut hop = r_parent.times(V3::splat(node.hop));
    let (mut anchor, mut lever) = if flipped { (lever_b, lever_a) } else { (lever_a, lever_b) };
    if matches!(node.link, Link::General(_)) && holds_some_translation_free(cx.plan, node) {
        // The joint point is a's; on side b it is the point that happens to be there.
        if flipped {
            anchor = anchor + gap;
        } else {
            lever = lever + gap;
            hop = hop + gap;
        }
    }
    if node.flags & PARENT_ANCHOR_MOVES != 0 {
        hop = lever - moving_anchor(cx.plan, node.parent as usize, moving);
    }

    let mut body = assemble_body(cx, node, own, &r_own, anchor, load);
    if let Some(waiting) = waiting {
        body = body.plus(waiting);
    }
    if let Some(kept) = &mut kept {
        kept.inertia = body;
    }

    passage.own = anchor;
    passage.lever = lever;
    let passed = match node.link {
        Link::Ball => {
            passage.c = gap.scale(if flipped { cx.inverse_h } else { -cx.inverse_h });
            let mut torque = rotation_spring(cx, node, &sides, &mut passage.turn);
            if node.flags & (LIMITS | MOTOR) != 0 {
                ball_limits(cx, node, &sides, own.angle, &mut torque, limits);
                ball_motor(cx, node, &sides, &mut torque);
            }
            if flipped {
                torque.tau = -torque.tau;
            }
            {
                let (passed, inverse) = eliminate_ball(&body, passage.c, &torque, &mut passage.factor);
                if let Some(kept) = kept {
                    kept.inverse = inverse;
                }
                passed
            }
        }
        Link::Hinge => {
            passage.c = gap.scale(if flipped { cx.inverse_h } else { -cx.inverse_h });
            let (axis, mut e, mut pull) = hinge(cx, node, &sides, own.angle, limits);
            if flipped {
                e = -e;
                pull.tau = -pull.tau;
            }
            passage.e = e;
            eliminate_hinge(&body, passage.c, e, axis, pull, &mut passage.factor)
        }
        Link::Weld => {
            passage.c = gap.scale(if flipped { cx.inverse_h } else { -cx.inverse_h });
            let e = held_rotation(cx, node, &sides);
            passage.e = if flipped { -e } else { e };
            passage.factor = Factor::Weld;
            body.without(passage.c, passage.e)
        }
        Link::Floating => eliminate_floating(&body, &mut passage.factor),
        Link::General(_) => {
            let general = general.expect("a general link has a general factor");
            let (c, e, passed) =
                general_link(cx, node, &sides, gap, flipped, own.angle, &body, general, limits, &mut passage.turn);
            (passage.c, passage.e) = (c, e);
            passage.factor = Factor::General(node.general);
            passed
        }
    };
    if node.parent == 0 { passed } else { passed.shifted(hop) }
}

#[inline(always)]
fn holds_some_translation_free(plan: &Plan, node: &Node) -> bool {
    !plan.details[node.detail as usize].joint.mask.holds_point()
}

/// Lever of the anchor of a node whose anchor moves: it is side b, and the point is the one of side a.
#[cold]
fn moving_anchor<T: Real>(plan: &Plan, i: usize, moving: &[Moving<T>]) -> V3<T> {
    let node = &plan.nodes[i];
    let a = &moving[node.parent as usize];
    a.x + a.q.matrix().times(V3::splat(node.point_a)) - moving[i].x
}

/// The body alone at its anchor: inertia, momentum at the start of the step, gravity, gyroscopic term, loads.
#[inline(always)]
fn assemble_body<T: Real>(
    cx: &Context<'_, T>,
    node: &Node,
    own: &Moving<T>,
    r: &M3<T>,
    anchor: V3<T>,
    load: Option<&Inertia<T>>,
) -> Inertia<T> {
    let m = T::splat(node.mass);
    let i = r.congruence(&S3::splat(&node.inertia));
    let f = cx.gravity.madd(cx.h, own.v).scale(m);
    let n = i.times(gyroscopic(&i, own.w, cx.h));
    if let Some(load) = load {
        let body = Inertia { m: load.m.plus_identity(m), h: load.h, i: i.plus(&load.i), f: f + load.f, n: n + load.n };
        return body.shifted(-anchor);
    }
    // H = m [r],  I = I_w + m (r² 1 − r rᵀ)
    let s = anchor.scale(m);
    let o = T::zero();
    let diagonal = s.dot(anchor);
    Inertia {
        m: S3::identity_times(m),
        h: M3 { x: v3(o, -s.z, s.y), y: v3(s.z, o, -s.x), z: v3(-s.y, s.x, o) },
        i: i.plus_outer(-m, anchor).plus_identity(diagonal),
        f,
        n: n - anchor.cross(f),
    }
}

/// The gyroscopic term apart from the solve: one Newton step of `I(ω' − ω) + h ω'×Iω' = 0`.
#[inline(always)]
fn gyroscopic<T: Real>(i: &S3<T>, w: V3<T>, h: T) -> V3<T> {
    let l = i.times(w);
    let rhs = w.cross(l).scale(h);
    // Columns of I + h([ω]I − [Iω])
    let (hw, hl, o) = (w.scale(h), l.scale(h), T::zero());
    let (r0, r1, r2) = (i.row(0), i.row(1), i.row(2));
    let c0 = r0 + hw.cross(r0) - v3(o, hl.z, -hl.y);
    let c1 = r1 + hw.cross(r1) - v3(-hl.z, o, hl.x);
    let c2 = r2 + hw.cross(r2) - v3(hl.y, -hl.x, o);
    let across = c1.cross(c2);
    let s = c0.dot(across).recip();
    let d = v3(rhs.dot(across), c0.dot(rhs.cross(c2)), c0.dot(c1.cross(rhs)));
    d.nmadd(s, w)
}

/// Spring and damper on three rotations: `K = h²k S + h c`, `τ = −h k φ`.
#[inline(always)]
fn rotation_spring<T: Real>(cx: &Context<'_, T>, node: &Node, sides: &Sides<'_, T>, turn: &mut V3<T>) -> Torque<T> {
    if node.flags & SPRING == 0 {
        return Torque { k: S3::zero(), tau: V3::zero() };
    }
    let law = spring(cx, node);
    let error = sides.a.q.times(Q::splat(node.rest_inverse)).times(sides.b.q.conjugate());
    let (mut phi, mut s) = error.log();
    *turn = V3::zero();
    // Within a radian of rest (cos ½) there is no choice.
    if (T::splat(0.8775825618903728) - error.w.abs()).any_above(0.0) {
        wind(sides.r_b.times(cx.turns[node.joint as usize]), &mut phi, &mut s);
        *turn = sides.r_b.transpose_times(phi);
    }
    Torque::of(TurnTangent { torque: law.at_turn(phi).1, slope: law.stiffness, damping: law.damping }, &s, cx.h)
}

/// Takes a rotation vector and its derivative the long way round where that is nearer the last one: [`turn_near`](crate::maths::rotation::turn_near) in lanes.
/// Beyond half a turn the derivative is that along the vector alone, which is positive semidefinite.
#[cold]
#[inline(never)]
fn wind<T: Real>(last: V3<T>, phi: &mut V3<T>, s: &mut S3<T>) {
    let length = phi.dot(*phi).sqrt();
    let u = phi.scale(length.max(T::splat(1e-9)).recip());
    let (o, pi) = (T::zero(), T::splat(std::f64::consts::PI));
    // |long − last|² < |short − last|²
    let long = (length - T::splat(1.0)).if_positive(length - pi - last.dot(u), o);
    let by = |x: T, wound: T| long.if_positive(wound, x);
    let wound = u.scale(length - pi - pi);
    *phi = v3(by(phi.x, wound.x), by(phi.y, wound.y), by(phi.z, wound.z));
    let along = S3::zero().plus_outer(T::splat(1.0), u);
    *s = S3 {
        xx: by(s.xx, along.xx),
        xy: by(s.xy, along.xy),
        xz: by(s.xz, along.xz),
        yy: by(s.yy, along.yy),
        yz: by(s.yz, along.yz),
        zz: by(s.zz, along.zz),
    };
}

/// The law of a node's spring on rotations.
#[inline(always)]
fn spring<T: Real>(cx: &Context<'_, T>, node: &Node) -> Spring<T> {
    let (k_scale, c_scale) = cx.scales(node.joint);
    Spring {
        stiffness: T::splat(node.stiffness) * k_scale,
        damping: T::splat(node.damping) * c_scale,
        rest: T::splat(node.rest_angle),
    }
}

/// A limit of a coordinate, where the present rate leads.
#[inline(always)]
fn limited<T: Real>(cx: &Context<'_, T>, limit: &Limit, x: T, rate: T, limits: &mut T) -> Pull<T> {
    let (tangent, on) = limit.splat().ahead(x, rate, cx.h);
    *limits = *limits + on;
    Pull::of(tangent, cx.h)
}

/// Twist range and swing ellipse of a joint with free rotation.
#[inline(always)]
fn ball_limits<T: Real>(
    cx: &Context<'_, T>,
    node: &Node,
    sides: &Sides<'_, T>,
    angle: T,
    torque: &mut Torque<T>,
    limits: &mut T,
) {
    let detail = &cx.plan.details[node.detail as usize];
    let joint = &detail.joint;
    if let Some(limit) = joint.limits.angle_law() {
        let x_a = sides.r_a.times(V3::splat(detail.axes_a[0]));
        let x_b = sides.r_b.times(V3::splat(detail.axes_b[0]));
        let g = twist_direction(x_a, x_b);
        *torque = torque.plus(g, limited(cx, &limit, angle, g.dot(sides.rate), limits));
    }
    if let (Some(ellipse), Some(limit)) = (joint.limits.swing, joint.limits.swing_law()) {
        let frame_b = Q::splat(joint.parent_from_joint.rotation);
        let frame_a = Q::splat(joint.child_from_joint.rotation);
        let relative = sides.b.q.times(frame_b).conjugate().times(sides.a.q.times(frame_a));
        let (v, g) = Swing::of(relative).violation(&ellipse.lanes());
        let [x, y, z] = detail.axes_b.map(V3::splat);
        let g = sides.r_b.times(x.scale(g.x) + y.scale(g.y) + z.scale(g.z));
        *torque = torque.plus(g, limited(cx, &limit, v, g.dot(sides.rate), limits));
    }
}

/// The servo of a joint with free rotation.
#[inline(always)]
fn ball_motor<T: Real>(cx: &Context<'_, T>, node: &Node, sides: &Sides<'_, T>, torque: &mut Torque<T>) {
    if node.flags & MOTOR == 0 {
        return;
    }
    let detail = &cx.plan.details[node.detail as usize];
    let Some(motor) = detail.joint.motor else { return };
    let (frame_a, frame_b) = (detail.joint.child_from_joint.rotation, detail.joint.parent_from_joint.rotation);
    let none = TurnServo { stiffness: 0.0, damping: 0.0, max: motor.max.min(1e300) };
    let (mut servos, mut rest) = ([none; 4], [DQuat::IDENTITY; 4]);
    for lane in 0..T::LANES {
        let input = cx.inputs[lane];
        if let Some((servo, target)) = TurnServo::of(&motor, input, &input.joint(node.joint as usize)) {
            servos[lane] = servo;
            rest[lane] = (frame_b * target * frame_a.conjugate()).conjugate();
        }
    }
    let servo = TurnServo {
        stiffness: T::gather(|l| servos[l].stiffness),
        damping: T::gather(|l| servos[l].damping),
        max: T::gather(|l| servos[l].max),
    };
    let rest = Q {
        w: T::gather(|l| rest[l].w),
        v: v3(T::gather(|l| rest[l].x), T::gather(|l| rest[l].y), T::gather(|l| rest[l].z)),
    };
    let (phi, s) = sides.a.q.times(rest).times(sides.b.q.conjugate()).log();
    let own = Torque::of(servo.ahead(phi, sides.rate, cx.h), &s, cx.h);
    *torque = Torque { k: torque.k.plus(&own.k), tau: torque.tau + own.tau };
}

/// The motor of one direction with coordinate `x` and rate.
#[inline(always)]
fn scalar_motor<T: Real>(cx: &Context<'_, T>, node: &Node, x: T, rate: T) -> Pull<T> {
    let detail = &cx.plan.details[node.detail as usize];
    let Some(motor) = detail.joint.motor else { return Pull { k: T::zero(), tau: T::zero() } };
    let of = |lane: usize| Servo::of(&motor, cx.inputs[lane], &cx.inputs[lane].joint(node.joint as usize));
    Pull::of(Servo::gather(of).ahead(x, rate, cx.h), cx.h)
}

/// Axis, closing rate, and spring, limit and motor of a single free rotation.
#[inline(always)]
fn hinge<T: Real>(
    cx: &Context<'_, T>,
    node: &Node,
    sides: &Sides<'_, T>,
    angle: T,
    limits: &mut T,
) -> (V3<T>, V3<T>, Pull<T>) {
    let (h_a, h_b) = (sides.r_a.times(V3::splat(node.axis_a)), sides.r_b.times(V3::splat(node.axis_b)));
    // e = (h_a × h_b)/(h h_a·h_b) closes both axis rows. They lose their meaning at a right angle: no number is given there.
    let cosine = h_a.dot(h_b);
    let e = h_a.cross(h_b).scale(meaningful(cosine, (cosine * cx.h).recip()));
    let mut pull = Pull { k: T::zero(), tau: T::zero() };
    if node.flags & SPRING != 0 {
        pull = Pull::of(spring(cx, node).tangent(angle), cx.h);
    }
    if node.flags & (LIMITS | MOTOR) != 0 {
        let rate = h_a.dot(sides.rate);
        if let Some(limit) = cx.plan.details[node.detail as usize].joint.limits.angle_law() {
            pull = pull.plus(limited(cx, &limit, angle, rate, limits));
        }
        if node.flags & MOTOR != 0 {
            pull = pull.plus(scalar_motor(cx, node, angle, rate));
        }
    }
    (h_a, e, pull)
}

/// `x` while the axes of a joint are well within a right angle of each other, else not a number: the step fails.
#[inline(always)]
fn meaningful<T: Real>(cosine: T, x: T) -> T {
    (cosine - T::splat(crate::model::joint::SMALLEST_COSINE)).if_positive(x, T::splat(f64::NAN))
}

/// The closing rate of held rotations: solves the rows `(u×w)·e = −(u·w)/h` for the joint's pairs of axes.
#[inline(always)]
fn held_rotation<T: Real>(cx: &Context<'_, T>, node: &Node, sides: &Sides<'_, T>) -> V3<T> {
    let detail = &cx.plan.details[node.detail as usize];
    let pairs = rotation_pairs(detail.joint.mask.rotation());
    let (mut j, mut rhs) = ([V3::zero(); 3], [T::zero(); 3]);
    for (row, &(a, b)) in pairs.iter().enumerate() {
        let u = sides.r_a.times(V3::splat(detail.axes_a[a]));
        let w = sides.r_b.times(V3::splat(detail.axes_b[b]));
        j[row] = u.cross(w);
        rhs[row] = -(u.dot(w) * cx.inverse_h);
    }
    match pairs.len() {
        // The shortest e with j·e = rhs.
        1 => j[0].scale(rhs[0] * j[0].dot(j[0]).recip()),
        // e ⟂ the free axis j0 × j1
        2 => solve_rows(j[0], j[1], j[0].cross(j[1]), rhs[0], rhs[1], T::zero()),
        3 => {
            let x_a = sides.r_a.times(V3::splat(detail.axes_a[0]));
            let y_a = sides.r_a.times(V3::splat(detail.axes_a[1]));
            let z_a = sides.r_a.times(V3::splat(detail.axes_a[2]));
            let smallest = x_a
                .dot(sides.r_b.times(V3::splat(detail.axes_b[0])))
                .min(y_a.dot(sides.r_b.times(V3::splat(detail.axes_b[1]))))
                .min(z_a.dot(sides.r_b.times(V3::splat(detail.axes_b[2]))));
            solve_rows(j[0], j[1], j[2], rhs[0], rhs[1], rhs[2]).scale(meaningful(smallest, T::splat(1.0)))
        }
        _ => V3::zero(),
    }
}

/// Solves three rows by cross products.
#[inline(always)]
fn solve_rows<T: Real>(a: V3<T>, b: V3<T>, c: V3<T>, x: T, y: T, z: T) -> V3<T> {
    let (bc, ca, ab) = (b.cross(c), c.cross(a), a.cross(b));
    bc.madd(x, ca.madd(y, ab.scale(z))).scale(a.dot(bc).recip())
}

/// (1) and (2) for a ball, written so that nothing cancels: `I' = I D⁻¹ K` is the parallel sum of inertia and spring.
#[inline(always)]
fn eliminate_ball<T: Real>(
    body: &Inertia<T>,
    c: V3<T>,
    torque: &Torque<T>,
    factor: &mut Factor<T>,
) -> (Inertia<T>, S3<T>) {
    let (m, h, i, k) = (&body.m, &body.h, &body.i, &torque.k);
    let (inverse, _) = i.plus(k).inverse();
    let g = inverse_times_transpose(&inverse, h);
    let e = M3 { x: k.times(inverse.row(0)), y: k.times(inverse.row(1)), z: k.times(inverse.row(2)) };
    let n = body.n - h.transpose_times(c);
    let q0 = inverse.times(n + torque.tau);
    *factor = Factor::Ball { g, e, q0 };
    let passed = Inertia {
        m: minus_product(m, h, &g),
        h: M3 { x: e.transpose_times(h.x), y: e.transpose_times(h.y), z: e.transpose_times(h.z) },
        i: {
            let (a, b, d) = (e.transpose_times(i.row(0)), e.transpose_times(i.row(1)), i.row(2));
            S3 { xx: a.x, xy: a.y, xz: a.z, yy: b.y, yz: b.z, zz: d.dot(e.column(2)) }
        },
        f: body.f - m.times(c) - h.times(q0),
        n: n - i.times(q0),
    };
    (passed, inverse)
}

/// `G = D⁻¹Hᵀ`.
#[inline(always)]
fn inverse_times_transpose<T: Real>(inverse: &S3<T>, h: &M3<T>) -> M3<T> {
    M3 { x: h.times(inverse.row(0)), y: h.times(inverse.row(1)), z: h.times(inverse.row(2)) }
}

/// `M − H G`, known to be symmetric.
#[inline(always)]
fn minus_product<T: Real>(m: &S3<T>, h: &M3<T>, g: &M3<T>) -> S3<T> {
    let x = g.x.nmadd(h.x.x, g.y.nmadd(h.x.y, g.z.nmadd(h.x.z, m.row(0))));
    let y = g.x.nmadd(h.y.x, g.y.nmadd(h.y.y, g.z.nmadd(h.y.z, m.row(1))));
    let zz = h.z.x.nmadd(g.x.z, h.z.y.nmadd(g.y.z, h.z.z.nmadd(g.z.z, m.zz)));
    S3 { xx: x.x, xy: x.y, xz: x.z, yy: y.y, yz: y.z, zz }
}

/// (1) and (2) for one rotation: a rank-one update.
#[inline(always)]
fn eliminate_hinge<T: Real>(
    body: &Inertia<T>,
    c: V3<T>,
    e: V3<T>,
    axis: V3<T>,
    pull: Pull<T>,
    factor: &mut Factor<T>,
) -> Inertia<T> {
    let body = body.without(c, e);
    let (u, w) = (body.h.times(axis), body.i.times(axis));
    let inverse = (axis.dot(w) + pull.k).recip();
    let (g_u, g_w) = (u.scale(inverse), w.scale(inverse));
    let s = axis.dot(body.n) + pull.tau;
    *factor = Factor::Hinge { axis, g_u, g_w, inverse, q0: s * inverse };
    Inertia {
        m: body.m.plus_outer(-inverse, u),
        h: M3 { x: g_w.nmadd(u.x, body.h.x), y: g_w.nmadd(u.y, body.h.y), z: g_w.nmadd(u.z, body.h.z) },
        i: body.i.plus_outer(-inverse, w),
        f: g_u.nmadd(s, body.f),
        n: g_w.nmadd(s, body.n),
    }
}

/// A floating body: rotation eliminated as a limp ball, then the point. Nothing is passed on.
#[inline(always)]
fn eliminate_floating<T: Real>(body: &Inertia<T>, factor: &mut Factor<T>) -> Inertia<T> {
    let (inverse, _) = body.i.inverse();
    let g = inverse_times_transpose(&inverse, &body.h);
    let q0 = inverse.times(body.n);
    let (point_inverse, _) = minus_product(&body.m, &body.h, &g).inverse();
    let u = point_inverse.times(body.f - body.h.times(q0));
    *factor = Factor::Floating { inverse, g, point_inverse, q0, u };
    Inertia::zero()
}

/// Eliminates a node whose joint is limp and closed: what is left is inertia and momentum. `axis` is that of a hinge, `directions` tells those of a link of
/// any mask.
#[inline(always)]
pub(crate) fn eliminate_limp<T: Real>(
    body: &Inertia<T>,
    node: &Node,
    axis: V3<T>,
    directions: impl FnOnce(&mut General<T>),
    general: Option<&mut General<T>>,
    passage: &mut Passage<T>,
) -> Inertia<T> {
    let (o, z) = (V3::zero(), T::zero());
    (passage.c, passage.e) = (o, o);
    match (node.link, general) {
        (Link::Floating, _) => eliminate_floating(body, &mut passage.factor),
        (Link::Ball, _) => {
            let limp = Torque { k: S3::zero(), tau: o };
            eliminate_ball(body, o, &limp, &mut passage.factor).0
        }
        (Link::Hinge, _) => eliminate_hinge(body, o, o, axis, Pull { k: z, tau: z }, &mut passage.factor),
        (Link::General(_), Some(general)) => {
            directions(general);
            passage.factor = Factor::General(node.general);
            eliminate_general(body, &[[z; 6]; 6], &[z; 6], general)
        }
        _ => {
            passage.factor = Factor::Weld;
            *body
        }
    }
}

/// A link with any mask: gathers its free directions with their springs, then (1) and (2).
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn general_link<T: Real>(
    cx: &Context<'_, T>,
    node: &Node,
    sides: &Sides<'_, T>,
    gap: V3<T>,
    flipped: bool,
    angle: T,
    body: &Inertia<T>,
    general: &mut General<T>,
    limits: &mut T,
    turn: &mut V3<T>,
) -> (V3<T>, V3<T>, Inertia<T>) {
    let detail = &cx.plan.details[node.detail as usize];
    let joint = &detail.joint;
    let scales = cx.scales(node.joint);
    let mut k = [[T::zero(); 6]; 6];
    let mut tau = [T::zero(); 6];
    let mut count = 0;

    // Translations: held ones give c, free ones a direction with its spring.
    let mut c = V3::zero();
    let lever_a = sides.r_a.times(V3::splat(node.point_a));
    let lever_b = sides.r_b.times(V3::splat(node.point_b)) + gap;
    let point_rate = sides.a.v + sides.a.w.cross(lever_a) - sides.b.v - sides.b.w.cross(lever_b);
    for axis in 0..3 {
        let t = sides.r_b.times(V3::splat(detail.axes_b[axis]));
        let s = t.dot(gap);
        if joint.mask.holds_point() {
            c = gap.scale(-cx.inverse_h);
            break;
        }
        if joint.mask.holds_translation(axis) {
            c = t.nmadd(s * cx.inverse_h, c);
            continue;
        }
        let mut pull = Pull::of(Spring::sliding(&joint.slide_spring, axis, scales).tangent(s), cx.h);
        if axis == 0 {
            let rate = t.dot(point_rate);
            if let Some(limit) = joint.limits.slide_law() {
                pull = pull.plus(limited(cx, &limit, s, rate, limits));
            }
            if node.flags & MOTOR != 0 && joint.mask.rotation() == RotationKind::Held {
                pull = pull.plus(scalar_motor(cx, node, s, rate));
            }
        }
        (k[count][count], tau[count]) = (pull.k, pull.tau);
        general.directions[count] = Direction::Slide(t);
        count += 1;
    }

    // Rotations.
    let mut e = held_rotation(cx, node, sides);
    match joint.mask.rotation() {
        RotationKind::Held => {}
        RotationKind::Axis(_) => {
            let (axis, closing, pull) = hinge(cx, node, sides, angle, limits);
            e = closing;
            general.directions[count] = Direction::Turn(axis);
            k[count][count] = pull.k;
            tau[count] = pull.tau;
            count += 1;
        }
        kind @ (RotationKind::Cardan(_) | RotationKind::Free) => {
            let mut torque = rotation_spring(cx, node, sides, turn);
            let first = count;
            if let RotationKind::Cardan(i) = kind {
                let free_b = sides.r_b.times(V3::splat(detail.axes_b[(i + 1) % 3]));
                let free_a = sides.r_a.times(V3::splat(detail.axes_a[(i + 2) % 3]));
                general.directions[count] = Direction::Turn(free_b);
                general.directions[count + 1] = Direction::Turn(free_a);
                count += 2;
            } else {
                if node.flags & (LIMITS | MOTOR) != 0 {
                    ball_limits(cx, node, sides, angle, &mut torque, limits);
                    ball_motor(cx, node, sides, &mut torque);
                }
                for axis in DVec3::AXES {
                    general.directions[count] = Direction::Turn(V3::splat(axis));
                    count += 1;
                }
            }
            // K_q = Sᵀ K S,  τ_q = Sᵀ(τ − K e)
            let rest = torque.tau - torque.k.times(e);
            for r in first..count {
                let Direction::Turn(s) = general.directions[r] else { continue };
                let ks = torque.k.times(s);
                tau[r] = s.dot(rest);
                for q in first..count {
                    let Direction::Turn(other) = general.directions[q] else { continue };
                    k[r][q] = ks.dot(other);
                }
            }
        }
    }
    if flipped {
        c = -c;
        e = -e;
        for t in tau.iter_mut().take(count) {
            *t = -*t;
        }
    }
    general.count = count;
    let passed = eliminate_general(&body.without(c, e), &k, &tau, general);
    (c, e, passed)
}

/// (1) and (2) for any directions. `body` already lacks the closing motion.
#[inline(always)]
fn eliminate_general<T: Real>(
    body: &Inertia<T>,
    k: &[[T; 6]; 6],
    tau: &[T; 6],
    general: &mut General<T>,
) -> Inertia<T> {
    let n = general.count;
    let (mut u, mut w) = ([V3::zero(); 6], [V3::zero(); 6]);
    let mut s = [T::zero(); 6];
    let mut d = *k;
    for a in 0..n {
        (u[a], w[a]) = general.directions[a].momentum(body);
        s[a] = general.directions[a].part(body.f, body.n) + tau[a];
    }
    for a in 0..n {
        for b in 0..=a {
            d[a][b] = d[a][b] + general.directions[a].part(u[b], w[b]);
        }
    }
    // D = L diag(d) Lᵀ
    for a in 0..n {
        for b in 0..a {
            let mut sum = d[a][b];
            for r in 0..b {
                sum = (general.l[a][r] * d[r][r]).nmadd(general.l[b][r], sum);
            }
            general.l[a][b] = sum * general.d_inverse[b];
        }
        let mut pivot = d[a][a];
        for r in 0..a {
            pivot = (general.l[a][r] * d[r][r]).nmadd(general.l[a][r], pivot);
        }
        d[a][a] = pivot;
        general.d_inverse[a] = pivot.recip();
    }
    general.q0 = s;
    let mut q0 = s;
    general.solve(&mut q0);
    general.q0 = q0;
    // G = D⁻¹ (ÂS)ᵀ, column by column
    for axis in 0..3 {
        let (mut column_u, mut column_w) = ([T::zero(); 6], [T::zero(); 6]);
        for a in 0..n {
            (column_u[a], column_w[a]) = (u[a].at(axis), w[a].at(axis));
        }
        general.solve(&mut column_u);
        general.solve(&mut column_w);
        for a in 0..n {
            let (g_u, g_w) = (&mut general.g_u[a], &mut general.g_w[a]);
            match axis {
                0 => (g_u.x, g_w.x) = (column_u[a], column_w[a]),
                1 => (g_u.y, g_w.y) = (column_u[a], column_w[a]),
                _ => (g_u.z, g_w.z) = (column_u[a], column_w[a]),
            }
        }
    }
    if n == 6 && k.iter().all(|row| row.iter().all(|x| !x.abs().any_above(0.0))) {
        // Nothing holds the body to its parent; of (2) only the reaction −Sτ is left, the rest would be rounding.
        let mut reaction = Inertia::zero();
        for a in 0..n {
            match general.directions[a] {
                Direction::Slide(s) => reaction.f = s.nmadd(tau[a], reaction.f),
                Direction::Turn(s) => reaction.n = s.nmadd(tau[a], reaction.n),
            }
        }
        return reaction;
    }
    let mut passed = *body;
    for a in 0..n {
        let (g_u, g_w) = (general.g_u[a], general.g_w[a]);
        passed.m = minus_outer(&passed.m, u[a], g_u);
        passed.i = minus_outer(&passed.i, w[a], g_w);
        passed.h =
            M3 { x: g_w.nmadd(u[a].x, passed.h.x), y: g_w.nmadd(u[a].y, passed.h.y), z: g_w.nmadd(u[a].z, passed.h.z) };
        passed.f = u[a].nmadd(q0[a], passed.f);
        passed.n = w[a].nmadd(q0[a], passed.n);
    }
    passed
}

/// `m − u gᵀ`, whose sum over all directions is symmetric.
#[inline(always)]
fn minus_outer<T: Real>(m: &S3<T>, u: V3<T>, g: V3<T>) -> S3<T> {
    S3 {
        xx: u.x.nmadd(g.x, m.xx),
        xy: u.x.nmadd(g.y, m.xy),
        xz: u.x.nmadd(g.z, m.xz),
        yy: u.y.nmadd(g.y, m.yy),
        yz: u.y.nmadd(g.z, m.yz),
        zz: u.z.nmadd(g.z, m.zz),
    }
}

/// The way up for another right-hand side: `(f, n)` at the anchor with the children's sum, closing rates in `passage`.
/// `kept` is the articulated inertia before elimination. Returns what goes to the parent's anchor.
#[inline(always)]
pub(crate) fn ascend_again<T: Real>(
    passage: &mut Passage<T>,
    generals: &mut [General<T>],
    kept: &Kept<T>,
    f: V3<T>,
    n: V3<T>,
    hop: V3<T>,
) -> (V3<T>, V3<T>) {
    let body = Inertia { f, n, ..kept.inertia }.without(passage.c, passage.e);
    let (f, n) = (body.f, body.n);
    let (f, n) = match &mut passage.factor {
        Factor::Ball { q0, .. } => {
            *q0 = kept.inverse.times(n);
            (f - body.h.times(*q0), n - body.i.times(*q0))
        }
        Factor::Hinge { axis, g_u, g_w, inverse, q0 } => {
            let s = axis.dot(n);
            *q0 = s * *inverse;
            (g_u.nmadd(s, f), g_w.nmadd(s, n))
        }
        Factor::Weld => (f, n),
        Factor::Floating { inverse, point_inverse, q0, u, .. } => {
            *q0 = inverse.times(n);
            *u = point_inverse.times(f - body.h.times(*q0));
            (V3::zero(), V3::zero())
        }
        Factor::General(index) => {
            let general = &mut generals[*index as usize];
            let mut s = [T::zero(); 6];
            for a in 0..general.count {
                s[a] = general.directions[a].part(f, n);
            }
            let (mut f, mut n) = (f, n);
            for a in 0..general.count {
                f = general.g_u[a].nmadd(s[a], f);
                n = general.g_w[a].nmadd(s[a], n);
            }
            general.solve(&mut s);
            general.q0 = s;
            (f, n)
        }
    };
    (f, n + hop.cross(f))
}

/// The way down: the node's velocities from its parent's.
#[inline(always)]
pub(crate) fn descend<T: Real>(
    passage: &Passage<T>,
    generals: &[General<T>],
    v_parent: V3<T>,
    w_parent: V3<T>,
) -> (V3<T>, V3<T>) {
    let at_joint = v_parent + w_parent.cross(passage.lever);
    let (u, w) = match &passage.factor {
        Factor::Ball { g, e, q0, .. } => (at_joint + passage.c, *q0 - g.times(at_joint) + e.times(w_parent)),
        Factor::Hinge { axis, g_u, g_w, q0, .. } => {
            let q = *q0 - g_u.dot(at_joint) - g_w.dot(w_parent);
            (at_joint + passage.c, axis.madd(q, w_parent + passage.e))
        }
        Factor::Weld => (at_joint + passage.c, w_parent + passage.e),
        Factor::Floating { g, q0, u, .. } => (*u, *q0 - g.times(*u)),
        Factor::General(index) => {
            let general = &generals[*index as usize];
            let (mut u, mut w) = (at_joint + passage.c, w_parent + passage.e);
            for a in 0..general.count {
                let q = general.q0[a] - general.g_u[a].dot(at_joint) - general.g_w[a].dot(w_parent);
                match general.directions[a] {
                    Direction::Slide(s) => u = s.madd(q, u),
                    Direction::Turn(s) => w = s.madd(q, w),
                }
            }
            (u, w)
        }
    };
    (u + passage.own.cross(w), w)
}

/// Pose after the step: `x + h v`, `exp(h ω) q`.
#[inline(always)]
pub(crate) fn integrate<T: Real>(moving: &mut Moving<T>, h: T) {
    moving.x = moving.v.madd(h, moving.x);
    moving.q = exp(moving.w.scale(h)).times(moving.q).renormalised();
}

/// The squared gap of a joint with a held point.
#[inline(always)]
pub(crate) fn gap_squared<T: Real>(node: &Node, own: &Moving<T>, parent: &Moving<T>) -> T {
    let (a, b) = if node.flags & FLIPPED != 0 { (parent, own) } else { (own, parent) };
    let p_a = rotated(&a.q, V3::splat(node.point_a));
    let p_b = rotated(&b.q, V3::splat(node.point_b));
    let d = (a.x - b.x) + (p_a - p_b);
    d.dot(d)
}

#[inline(always)]
fn rotated<T: Real>(q: &Q<T>, v: V3<T>) -> V3<T> {
    let t = q.v.cross(v);
    let t = t + t;
    t.madd(q.w, v + q.v.cross(t))
}

/// The turning angle at the new pose, of all its values the one nearest the last; and the squared sine of the angle by which the axis
/// of a hinge is off, from what the relative rotation has beside its turn (exact to 1e-8 rad).
#[inline(always)]
pub(crate) fn turned_angle<T: Real>(plan: &Plan, node: &Node, own: &Moving<T>, parent: &Moving<T>) -> (T, T) {
    let detail = &plan.details[node.detail as usize];
    let (a, b) = if node.flags & FLIPPED != 0 { (parent, own) } else { (own, parent) };
    let p = b.q.conjugate().times(a.q);
    let (cosine, sine) = (linear(&detail.turn_cosine, &p), linear(&detail.turn_sine, &p));
    // Beside the turn: sin²(tilt/2) = 1 − squared;  sin² tilt = 4 sin² cos²
    let beside = (T::splat(1.0) - cosine.madd(cosine, sine * sine)).max(T::zero());
    let tilt = T::splat(4.0) * beside * (T::splat(1.0) - beside);
    (turn_of_half(sine, cosine, own.angle).0, tilt)
}

/// A linear function of a quaternion (w, x, y, z).
#[inline(always)]
pub(crate) fn linear<T: Real>(k: &[f64; 4], q: &Q<T>) -> T {
    q.w.madd(T::splat(k[0]), q.v.dot(v3(T::splat(k[1]), T::splat(k[2]), T::splat(k[3]))))
}
