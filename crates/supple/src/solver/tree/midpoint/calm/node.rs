//! One node on the way up and on the way down.

use super::law::{Ball, Hinge};
use super::*;
use crate::model::JointId;
use crate::solver::tree::midpoint::equations::{self, Sums as OneSums};
use crate::solver::tree::midpoint::newton::{self, eliminate_any};
use glam::{DMat3, DQuat};

impl<T: Real> Blocks<T> {
    #[inline(always)]
    fn zero() -> Self {
        let m = M3::zero();
        Blocks { vv: m, vw: m, wv: m, ww: m }
    }

    #[inline(always)]
    fn plus(&self, o: &Self) -> Self {
        Blocks { vv: self.vv.plus(&o.vv), vw: self.vw.plus(&o.vw), wv: self.wv.plus(&o.wv), ww: self.ww.plus(&o.ww) }
    }

    #[inline(always)]
    fn times(&self, u: V3<T>, w: V3<T>) -> (V3<T>, V3<T>) {
        (self.vv.times(u) + self.vw.times(w), self.wv.times(u) + self.ww.times(w))
    }

    /// Referred to another point: displacements there are `u_new`, `u = u_new + ρ×right`; torques there gain `left × F`.
    #[inline(always)]
    fn shifted(&self, left: V3<T>, right: V3<T>) -> Self {
        let vw = self.vw.minus(&self.vv.times_skew(right));
        Blocks {
            vv: self.vv,
            vw,
            wv: self.wv.plus(&self.vv.skewed_by(left)),
            ww: self.ww.minus(&self.wv.times_skew(right)).plus(&vw.skewed_by(left)),
        }
    }

    /// With `s I` at a point with these levers.
    #[inline(always)]
    fn with_point(&self, s: T, left: V3<T>, right: V3<T>) -> Self {
        let (l, r) = (left.scale(s), right.scale(s));
        Blocks {
            vv: self.vv.plus_identity(s),
            vw: self.vw.minus(&M3::skew(r)),
            wv: self.wv.plus(&M3::skew(l)),
            // −[l][r] = (l·r) − r lᵀ
            ww: self.ww.plus_identity(l.dot(right)).plus_outer(-r, left),
        }
    }

    #[inline(always)]
    fn chosen(on: T, yes: &Self, no: &Self) -> Self {
        Blocks {
            vv: M3::chosen(on, &yes.vv, &no.vv),
            vw: M3::chosen(on, &yes.vw, &no.vw),
            wv: M3::chosen(on, &yes.wv, &no.wv),
            ww: M3::chosen(on, &yes.ww, &no.ww),
        }
    }

    fn lane(&self, lane: usize) -> newton::Blocks {
        let m = |m: &M3<T>| DMat3::from_cols(m.x.lane(lane), m.y.lane(lane), m.z.lane(lane)).transpose();
        newton::Blocks { vv: m(&self.vv), vw: m(&self.vw), wv: m(&self.wv), ww: m(&self.ww) }
    }

    fn gather(lanes: &[newton::Blocks; 4]) -> Self {
        let m = |of: fn(&newton::Blocks) -> &DMat3| {
            let row = |k: usize| vector(|l| of(&lanes[l]).row(k));
            M3 { x: row(0), y: row(1), z: row(2) }
        };
        Blocks { vv: m(|b| &b.vv), vw: m(|b| &b.vw), wv: m(|b| &b.wv), ww: m(|b| &b.ww) }
    }
}

impl<T: Real> Levers<T> {
    #[inline(always)]
    fn chosen(on: T, yes: &Self, no: &Self) -> Self {
        Levers {
            own: V3::chosen(on, yes.own, no.own),
            parent: V3::chosen(on, yes.parent, no.parent),
            hop: V3::chosen(on, yes.hop, no.hop),
        }
    }
}

impl<T: Real> Factor<T> {
    /// `yes` where `on > 0`, else `no`: of one kind, unless this is the first pass.
    #[inline(always)]
    fn chosen(on: T, yes: &Self, no: &Self) -> Self {
        match (yes, no) {
            (Factor::Ball { inverse, row, parent }, Factor::Ball { inverse: i, row: r, parent: p }) => Factor::Ball {
                inverse: M3::chosen(on, inverse, i),
                row: M3::chosen(on, row, r),
                parent: M3::chosen(on, parent, p),
            },
            (
                Factor::Hinge { left, right, force, torque, w_u, w_w, inverse },
                Factor::Hinge { left: l, right: r, force: f, torque: t, w_u: u, w_w: w, inverse: i },
            ) => Factor::Hinge {
                left: V3::chosen(on, *left, *l),
                right: V3::chosen(on, *right, *r),
                force: V3::chosen(on, *force, *f),
                torque: V3::chosen(on, *torque, *t),
                w_u: V3::chosen(on, *w_u, *u),
                w_w: V3::chosen(on, *w_w, *w),
                inverse: on.if_positive(*inverse, *i),
            },
            (Factor::Floating { inverse, row, point }, Factor::Floating { inverse: i, row: r, point: p }) => {
                Factor::Floating {
                    inverse: M3::chosen(on, inverse, i),
                    row: M3::chosen(on, row, r),
                    point: M3::chosen(on, point, p),
                }
            }
            _ => *yes,
        }
    }
}

/// `m + s [f][r]`: `[f][r] = r fᵀ − f·r`.
#[inline(always)]
fn plus_lever_turning<T: Real>(m: &M3<T>, s: T, f: V3<T>, r: V3<T>) -> M3<T> {
    let r = r.scale(s);
    m.plus_identity(-f.dot(r)).plus_outer(r, f)
}

/// `cay(a)`.
#[inline(always)]
pub(super) fn cayley<T: Real>(a: V3<T>) -> Q<T> {
    let v = a.scale(T::splat(0.5));
    let s = (v.dot(v) + T::splat(1.0)).sqrt().recip();
    Q { w: s, v: v.scale(s) }
}

/// How the Cayley vector changes when the end pose turns by `rho`: `(1 − ½[a] + ¼aaᵀ) ρ`.
#[inline(always)]
fn cayley_rate_times<T: Real>(a: V3<T>, rho: V3<T>) -> V3<T> {
    a.madd(a.dot(rho) * T::splat(0.25), rho - a.cross(rho).scale(T::splat(0.5)))
}

/// The relative rotation `q_b⁻¹ q_a` of a node's joint, and which of two things belongs to which side.
#[inline(always)]
pub(super) fn sides<X>(flipped: bool, own: X, parent: X) -> (X, X) {
    if flipped { (parent, own) } else { (own, parent) }
}

impl<T: Real> Calm<T> {
    /// Reads the states, tells the energy they have, predicts. What is not calm is told in `bad`.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        plan: &Plan,
        parts: &[Part<'_>; 4],
        times: &Times<T>,
        guard: f64,
        states: &[&mut State],
    ) -> Sums<T> {
        let mut sums = Sums::zero();
        let (half, one) = (T::splat(0.5), T::splat(1.0));
        for i in 1..plan.nodes.len() {
            let (node, fixed) = (&plan.nodes[i], &self.fixed[i]);
            let (body, joint) = (node.body as usize, node.joint as usize);
            let p = node.parent as usize;
            let flipped = node.flags & FLIPPED != 0;
            let (before, rest) = self.start.split_at_mut(i);
            let (up, m) = (&before[p], &mut rest[0]);
            let (trial_before, trial_rest) = self.trial.split_at_mut(i);
            let (trial_up, t) = (&trial_before[p], &mut trial_rest[0]);
            m.x = vector(|l| states[l].bodies[body].position);
            m.q = quaternion(|l| states[l].bodies[body].orientation);
            m.v = vector(|l| states[l].bodies[body].velocity.linear);
            m.w = vector(|l| states[l].bodies[body].velocity.angular);
            m.r = m.q.matrix();
            m.own = m.r.times(fixed.own);
            m.parent = up.r.times(fixed.parent);
            m.pi = m.r.times(fixed.inertia.times(m.r.transpose_times(m.w)));
            sums.kinetic = (m.v.dot(m.v) * fixed.mass + m.pi.dot(m.w)).madd(half, sums.kinetic);
            sums.potential = sums.potential - times.gravity.dot(m.x) * fixed.mass;
            // Orientations that are no units to rounding are made so by the robust way.
            sums.refuse((m.q.w.madd(m.q.w, m.q.v.dot(m.q.v)) - one).abs() - T::splat(1e-12));
            // Turns too far: of the joint, by its stiffness, or of the body.
            let springs = &self.springs[i];
            let relative = m.w - up.w;
            let stiff = T::splat(0.25) * times.h * times.h * springs.k;
            let bound = stiff.madd(fixed.inverse_inertia, one) * T::splat(guard);
            sums.refuse(relative.dot(relative) - bound * bound);
            sums.refuse(m.w.dot(m.w) * times.h * times.h - one);
            t.f = V3::zero();
            if node.joint != NONE {
                let force: V3<T> = vector(|l| states[l].remembered_force(joint));
                t.f = if flipped { -force } else { force }.scale(times.h);
                let tension = force.dot(force).sqrt() * fixed.lever;
                m.damper = springs.damper.with_tension(times.h, times.tension_damping, tension, fixed.inverse_inertia);
            }
            // ½l / (2I/h (1 + h²k/4I + hc/2I))
            let held = (half * times.h * m.damper.strength + stiff).madd(fixed.inverse_inertia, one);
            m.gives = T::splat(0.25) * times.h * fixed.lever * fixed.inverse_inertia * held.recip();
            let (q_a, q_b) = sides(flipped, m.q, up.q);
            match node.link {
                Link::Floating | Link::General(_) => {}
                _ => {
                    let gap = (up.x + m.parent) - (m.x + m.own);
                    let size = fixed.inverse_size;
                    sums.refuse(gap.dot(gap) * size * size - T::splat(1e-18));
                }
            }
            match node.link {
                Link::Ball => {
                    if node.flags & SPRING != 0 {
                        let error = q_b.conjugate().times(q_a).times(fixed.rest_inverse);
                        let turn = error.v.scale(law::twice(error.half_angle_over_sine()) * error.w.sign());
                        let seen: V3<T> = vector(|l| states[l].turn_of(JointId(node.joint)));
                        m.turn = sides(flipped, &m.r, &up.r).1.times(turn);
                        let squared = turn.dot(turn);
                        sums.refuse(squared.max(seen.dot(seen)) - T::splat(law::FARTHEST));
                        sums.potential = (springs.k * half).madd(squared, sums.potential);
                    }
                    if node.flags & TURNS != 0 {
                        let last = T::gather(|l| states[l].joints[joint].angle);
                        let turning = &self.turning[node.detail as usize];
                        let relative = turning.relative(q_a, q_b);
                        m.angle = turn_of_half(relative.v.x, relative.w, last).0;
                    }
                    if node.flags & LIMITS != 0 {
                        let turning = &self.turning[node.detail as usize];
                        sums.potential = sums.potential + turning.energy(q_a, q_b, m.angle, &mut T::zero());
                    }
                }
                Link::Hinge => {
                    let turning = &self.turning[node.detail as usize];
                    let last = T::gather(|l| states[l].joints[joint].angle);
                    let (cosine, sine) = turning.half_turn(q_a, q_b);
                    sums.refuse(T::splat(1.0 - 1e-12) - cosine.madd(cosine, sine * sine));
                    m.angle = turn_of_half(sine, cosine, last).0;
                    sums.potential = sums.potential + turning.hinge_energy(springs.k, m.angle, &mut T::zero());
                }
                Link::Weld => {
                    let turning = &self.turning[node.detail as usize];
                    let relative = turning.relative(q_a, q_b);
                    sums.refuse(relative.v.dot(relative.v) - T::splat(1e-18));
                }
                Link::Floating | Link::General(_) => {}
            }
            t.a = m.w.scale(times.h);
            t.x = m.v.madd(times.h, m.x);
            t.q = cayley(t.a).times(m.q);
            t.r = t.q.matrix();
            t.own = t.r.times(fixed.own);
            t.parent = trial_up.r.times(fixed.parent);
            if let Link::General(_) = node.link {
                self.begin_any(plan, i, parts, states, &mut sums);
            }
        }
        sums
    }

    /// The way up: imbalances, and factors where asked for.
    #[inline(always)]
    pub(super) fn ascend<const FACTOR: bool>(
        &mut self,
        plan: &Plan,
        parts: &[Part<'_>; 4],
        times: &Times<T>,
        &Pass { first, some, on, all, factored }: &Pass<T>,
        sums: &mut Sums<T>,
    ) {
        let half = T::splat(0.5);
        for i in (1..plan.nodes.len()).rev() {
            let (node, fixed, place) = (&plan.nodes[i], &self.fixed[i], self.places[i]);
            let flipped = node.flags & FLIPPED != 0;
            let p = node.parent as usize;
            let (before, rest) = self.trial.split_at_mut(i);
            let (up, t) = (&before[p], &mut rest[0]);
            let (m, up0) = (&self.start[i], &self.start[p]);
            // What the joint must supply
            let way = t.x - m.x;
            let mut f = (way.scale(times.two_h) - (m.v + m.v) - times.gravity.scale(times.h)).scale(fixed.mass);
            let y = t.a.scale(times.two_h) - m.w;
            let pi = t.r.times(fixed.inertia.times(m.r.transpose_times(y)));
            let mut n = pi - m.pi;
            let mut at = self.pull_of[i];
            while at != NONE {
                let pull = &self.pulls[at as usize];
                f = f - pull.f;
                n = n - pull.n;
                at = pull.next;
            }
            let (mut load_f, mut load_n) = (V3::zero(), V3::zero());
            if place.children != NONE {
                let waiting = &self.slots[place.children as usize];
                f = f + waiting.f;
                n = n + waiting.n;
                (load_f, load_n) = (waiting.load_f, waiting.load_n);
            }
            let (own, parent) = ((m.own + t.own).scale(half), (m.parent + t.parent).scale(half));
            n = n - own.cross(f);
            // Before the first pass the trial is a guess: levers turn under the forces remembered.
            let tension = if first { t.f } else { f };
            if FACTOR {
                t.tension = if all { tension } else { V3::chosen(factored, tension, t.tension) };
            }
            // Also beside lanes that get new factors: nothing is off where they are new.
            let off = f - t.tension;
            sums.drift = sums.drift.max(off.dot(off) * m.gives * m.gives);
            t.n = n;
            t.f = if some { V3::chosen(on, f, t.f) } else { f };
            if FACTOR {
                // R¹ I R⁰ᵀ (1 − ½[a] + ¼aaᵀ) 2/h − [π¹]
                let inertia = &fixed.inertia;
                let i1 = M3 { x: inertia.times(t.r.x), y: inertia.times(t.r.y), z: inertia.times(t.r.z) };
                let i1 = i1.product_transposed(&m.r);
                let i2 = i1.minus(&i1.times_skew(t.a.scale(half)));
                let i2 = i2.plus_outer(i1.times(t.a), t.a.scale(T::splat(0.25)));
                let ww = i2.scaled(times.two_h).minus(&M3::skew(pi));
                let ww = plus_lever_turning(&ww, -half, tension, t.own);
                let mut a = match place.children {
                    NONE => Blocks { ww, ..Blocks::zero() },
                    k => {
                        let waiting = &self.slots[k as usize].a;
                        Blocks { ww: waiting.ww.plus(&ww), ..*waiting }
                    }
                };
                a = a.with_point(fixed.mass * times.two_h, -own, -t.own);
                let mut at = self.pull_of[i];
                while at != NONE {
                    let pull = &self.pulls[at as usize];
                    a.ww = a.ww.plus(&pull.ww);
                    a = a.with_point(pull.slope, pull.left - own, pull.right - t.own);
                    at = pull.next;
                }
                self.matrix[i] = if all { a } else { Blocks::chosen(factored, &a, &self.matrix[i]) };
            }
            let levers = &mut self.levers[i];
            if FACTOR {
                let hop = parent - (up0.own + up.own).scale(half);
                let now = Levers { own: t.own, parent: t.parent, hop };
                *levers = if all { now } else { Levers::chosen(factored, &now, levers) };
            }
            let levers = *levers;
            let a = &self.matrix[i];
            let moved = &mut self.moved[i];
            let mut passed = Blocks::zero();
            let (q_a, q_b) = sides(flipped, t.q, up.q);
            moved.c = (up.x + t.parent) - (t.x + t.own);
            match node.link {
                Link::Floating => {
                    let (f, n) = (load_f + f, load_n + n);
                    if FACTOR {
                        let inverse = a.ww.inverse();
                        let row = inverse.product(&a.wv);
                        let point = a.vv.minus(&a.vw.product(&row)).inverse();
                        let factor = Factor::Floating { inverse, row, point };
                        self.factor[i] = if all { factor } else { Factor::chosen(factored, &factor, &self.factor[i]) };
                    }
                    if let Factor::Floating { inverse, row, point } = &self.factor[i] {
                        let q = inverse.times(n);
                        moved.c = point.times(a.vw.times(q) - f);
                        moved.free = -q - row.times(moved.c);
                    }
                    continue;
                }
                Link::Ball => {
                    let law = Ball {
                        node,
                        fixed,
                        turning: self.turning.get(node.detail as usize),
                        aim: self.aims.get(node.detail as usize),
                        springs: &self.springs[i],
                        start: m,
                        relative: sides(flipped, m.w - up0.w, up0.w - m.w).0,
                        q: (q_a, q_b),
                        a: sides(flipped, t.a, up.a),
                        start_b: sides(flipped, &m.r, &up0.r).1,
                    };
                    let law = law.over::<FACTOR>(times, sums);
                    let (k_own, k_parent) = sides(flipped, law.k_a, law.k_b);
                    let imbalance = if flipped { n + law.tau } else { n - law.tau };
                    load_f = a.vv.times(moved.c) + load_f;
                    load_n = a.wv.times(moved.c) + load_n;
                    if FACTOR {
                        let inverse = a.ww.plus(&k_own).inverse();
                        let (row, parent) = (inverse.product(&a.wv), inverse.product(&k_parent));
                        let factor = Factor::Ball { inverse, row, parent };
                        self.factor[i] = if all { factor } else { Factor::chosen(factored, &factor, &self.factor[i]) };
                        passed = Blocks {
                            vv: a.vv.minus(&a.vw.product(&row)),
                            vw: a.vw.product(&parent),
                            wv: k_own.product(&row),
                            ww: a.ww.product(&parent),
                        };
                    }
                    if let Factor::Ball { inverse, .. } = &self.factor[i] {
                        moved.free = inverse.times(load_n + imbalance);
                        load_f = load_f - a.vw.times(moved.free);
                        load_n = load_n - a.ww.times(moved.free);
                    }
                }
                Link::Hinge => {
                    let law = Hinge {
                        turning: &self.turning[node.detail as usize],
                        aim: &self.aims[node.detail as usize],
                        springs: &self.springs[i],
                        start: m,
                        relative: sides(flipped, m.w - up0.w, up0.w - m.w).0,
                        q: (q_a, q_b),
                        a: (t.a, up.a),
                        r_a: sides(flipped, (&m.r, &t.r), (&up0.r, &up.r)).0,
                        r_b: sides(flipped, &t.r, &up.r).1,
                        flipped,
                        torque: n,
                    };
                    let law = law.over::<FACTOR>(times, sums);
                    moved.e = law.closing;
                    let (f, n) = a.times(moved.c, moved.e);
                    (load_f, load_n) = (load_f + f, load_n + n);
                    if FACTOR {
                        let (left, right) = (law.left, law.right);
                        let (force, torque) = (a.vw.times(right), a.ww.times(right));
                        let (w_u, w_w) = (a.wv.transpose_times(left), a.ww.transpose_times(left) + law.k_parent);
                        let inverse = (left.dot(torque) + law.k).recip();
                        let factor = Factor::Hinge { left, right, force, torque, w_u, w_w, inverse };
                        self.factor[i] = if all { factor } else { Factor::chosen(factored, &factor, &self.factor[i]) };
                        let (f, n) = (force.scale(-inverse), torque.scale(-inverse));
                        passed = Blocks {
                            vv: a.vv.plus_outer(f, w_u),
                            vw: a.vw.plus_outer(f, w_w),
                            wv: a.wv.plus_outer(n, w_u),
                            ww: a.ww.plus_outer(n, w_w),
                        };
                    }
                    if let Factor::Hinge { left, force, torque, inverse, .. } = &self.factor[i] {
                        let q = (law.imbalance + left.dot(load_n)) * *inverse;
                        moved.free.x = q;
                        load_f = force.nmadd(q, load_f);
                        load_n = torque.nmadd(q, load_n);
                    }
                }
                Link::Weld => {
                    let turning = &self.turning[node.detail as usize];
                    let relative = turning.relative(q_a, q_b);
                    let r_b = sides(flipped, &t.r, &up.r).1;
                    let e = r_b.times(law::turned(turning.frame_b, relative.v.scale(law::twice(relative.w.sign()))));
                    moved.e = if flipped { e } else { -e };
                    let (f, n) = a.times(moved.c, moved.e);
                    (load_f, load_n) = (load_f + f, load_n + n);
                    if FACTOR {
                        self.factor[i] = Factor::Weld;
                        passed = *a;
                    }
                }
                Link::General(_) => {
                    let load = (load_f, load_n);
                    let factor = if FACTOR { Some(factored) } else { None };
                    let done = self.ascend_any(plan, i, parts, (f, n), load, factor, sums);
                    ((load_f, load_n), passed) = done;
                    if FACTOR {
                        self.factor[i] = Factor::General;
                    }
                }
            }
            if place.own != NONE {
                let slot = &mut self.slots[place.own as usize];
                let torque = parent.cross(f) + n;
                let load_n = load_n + levers.hop.cross(load_f);
                if FACTOR {
                    let (t, up) = (&self.trial[i], &self.trial[p]);
                    let hop = parent - (self.start[p].own + up.own).scale(half);
                    let mut a = passed.shifted(hop, t.parent - up.own);
                    a.ww = plus_lever_turning(&a.ww, half, tension, t.parent);
                    slot.a = if place.first { a } else { slot.a.plus(&a) };
                }
                if place.first {
                    (slot.f, slot.n, slot.load_f, slot.load_n) = (f, torque, load_f, load_n);
                } else {
                    (slot.f, slot.n) = (slot.f + f, slot.n + torque);
                    (slot.load_f, slot.load_n) = (slot.load_f + load_f, slot.load_n + load_n);
                }
            }
        }
    }

    /// The way down: corrections, and the next trial, in the lanes that are `on`. Returns the largest rotation squared (displacements of
    /// floating bodies and slides by their share of the character's size).
    #[inline(always)]
    pub(super) fn descend(&mut self, plan: &Plan, parts: &[Part<'_>; 4], pass: &Pass<T>) -> T {
        let &Pass { some, on, .. } = pass;
        let inverse_reach = T::splat(1.0 / (plan.reach * plan.reach));
        let mut largest = T::zero();
        let mut total = T::zero();
        for i in 1..plan.nodes.len() {
            let (node, fixed) = (&plan.nodes[i], &self.fixed[i]);
            let p = node.parent as usize;
            let up_moved = self.moved[p];
            let (before, rest) = self.trial.split_at_mut(i);
            let (up, t) = (&before[p], &mut rest[0]);
            let moved = &mut self.moved[i];
            let levers = &self.levers[i];
            let at_joint = up_moved.x + up_moved.w.cross(levers.parent);
            let (u, w) = match &self.factor[i] {
                Factor::Ball { row, parent, .. } => {
                    (at_joint + moved.c, parent.times(up_moved.w) - row.times(at_joint) - moved.free)
                }
                Factor::Hinge { right, w_u, w_w, inverse, .. } => {
                    let q = -(w_u.dot(at_joint) + w_w.dot(up_moved.w)).madd(*inverse, moved.free.x);
                    (at_joint + moved.c, right.madd(q, up_moved.w + moved.e))
                }
                Factor::Weld => (at_joint + moved.c, up_moved.w + moved.e),
                Factor::Floating { .. } => (moved.c, moved.free),
                Factor::General => self.any[node.general as usize].descend(at_joint, up_moved.w, moved),
            };
            let dx = u - w.cross(levers.own);
            (moved.x, moved.w) = (dx, w);
            largest = largest.max(w.dot(w));
            total = total + w.dot(w) + dx.dot(dx);
            if matches!(node.link, Link::Floating | Link::General(_)) {
                largest = largest.max(dx.dot(dx) * inverse_reach);
            }
            let (x, a) = (t.x + dx, t.a + cayley_rate_times(t.a, w));
            (t.x, t.a) = if some { (V3::chosen(on, x, t.x), V3::chosen(on, a, t.a)) } else { (x, a) };
            t.q = cayley(t.a).times(self.start[i].q);
            t.r = t.q.matrix();
            t.own = t.r.times(fixed.own);
            t.parent = up.r.times(fixed.parent);
            if let Link::General(_) = node.link {
                self.place_any(plan, i, parts);
            }
        }
        // The larger of a number and none is either: a sum knows.
        largest + total * T::zero()
    }

    /// Poses and velocities into a state; false, and nothing, when a number is not finite.
    #[inline(always)]
    pub(super) fn write(&self, plan: &Plan, times: &Times<T>, lane: usize, state: &mut State) -> bool {
        let mut sum = 0.0;
        for end in &self.end[1..] {
            let all = end.x.lane(lane) + end.v.lane(lane) + end.w.lane(lane);
            let q = end.q.lane(lane);
            sum += (all.x + all.y + all.z + q.x + q.y + q.z + q.w) * 0.0;
        }
        if sum != 0.0 {
            return false;
        }
        let remembers = state.remembers;
        for (i, node) in plan.nodes.iter().enumerate().skip(1) {
            let end = &self.end[i];
            let body = &mut state.bodies[node.body as usize];
            (body.position, body.orientation) = (end.x.lane(lane), end.q.lane(lane));
            (body.velocity.linear, body.velocity.angular) = (end.v.lane(lane), end.w.lane(lane));
            if node.joint == NONE {
                continue;
            }
            let joint = &mut state.joints[node.joint as usize];
            let force = self.trial[i].f.scale(times.inverse_h).lane(lane);
            joint.force = if node.flags & FLIPPED != 0 { -force } else { force };
            if node.flags & WINDS != 0 {
                joint.turn = end.turn.lane(lane);
            } else if !remembers {
                joint.turn = DVec3::ZERO;
            }
            if node.flags & TURNS != 0 {
                joint.angle = end.angle.lane(lane);
            }
        }
        state.remembers = true;
        true
    }

    // ------------------------------------------------------------------------------------- joints of any mask

    /// A node and its parent as the robust way has them.
    fn one(&self, i: usize, lane: usize) -> (Moment, OneTrial) {
        let (m, t) = (&self.start[i], &self.trial[i]);
        let matrix = |r: &M3<T>| DMat3::from_cols(r.x.lane(lane), r.y.lane(lane), r.z.lane(lane)).transpose();
        let moment =
            Moment { x: m.x.lane(lane), q: m.q.lane(lane), v: m.v.lane(lane), w: m.w.lane(lane), ..Moment::WORLD };
        let trial = OneTrial {
            x: t.x.lane(lane),
            q: t.q.lane(lane),
            a: t.a.lane(lane),
            r: matrix(&t.r),
            r0: matrix(&m.r),
            ..OneTrial::WORLD
        };
        (moment, trial)
    }

    /// Coordinates and memory at the start, and the first trial.
    #[inline(never)]
    fn begin_any(&mut self, plan: &Plan, i: usize, parts: &[Part<'_>; 4], states: &[&mut State], sums: &mut Sums<T>) {
        let node = &plan.nodes[i];
        let (mut open, mut energy, mut far) = ([0.0; 4], [0.0; 4], [0.0; 4]);
        for lane in 0..T::LANES {
            let (parent, up) = self.one(node.parent as usize, lane);
            let (given, own) = self.one(i, lane);
            let mut m = given;
            equations::gather_node(plan, node, states[lane], &parent, &mut m);
            let link = &mut self.any[node.general as usize];
            // Closed by the robust way where it is open.
            open[lane] = (m.x.distance(given.x) * (1.0 / equations::gap_size(node)))
                .max((m.q * given.q.conjugate()).xyz().length());
            far[lane] = m.memory.turn.length_squared();
            let mut t = own;
            t.damping = parts[lane].damping(node, &m);
            (t.turn0, t.phi0) = parts[lane].start_turn(node, &m, &parent);
            (t.angle, t.second, t.slide) = (m.angle, m.second, m.slide);
            parts[lane].place_joint(node, &m, &parent, &up, &mut t);
            (link.now[lane], link.trial[lane]) = (m, t);
            energy[lane] = parts[lane].joint_energy(node, &m, parent.q);
        }
        sums.refuse(T::gather(|l| open[l]) - T::splat(1e-9));
        sums.refuse(T::gather(|l| far[l]) - T::splat(law::FARTHEST));
        sums.potential = sums.potential + T::gather(|l| energy[l]);
        self.read_levers(node, i);
    }

    /// Levers and coordinates of the trial.
    #[inline(never)]
    fn place_any(&mut self, plan: &Plan, i: usize, parts: &[Part<'_>; 4]) {
        let node = &plan.nodes[i];
        for lane in 0..T::LANES {
            let (parent, up) = self.one(node.parent as usize, lane);
            let (_, own) = self.one(i, lane);
            let link = &mut self.any[node.general as usize];
            let t = &mut link.trial[lane];
            (t.x, t.q, t.a, t.r) = (own.x, own.q, own.a, own.r);
            parts[lane].place_joint(node, &link.now[lane], &parent, &up, t);
        }
        self.read_levers(node, i);
    }

    fn read_levers(&mut self, node: &Node, i: usize) {
        let AnyLink { trial, .. } = &self.any[node.general as usize];
        (self.start[i].own, self.trial[i].own) = (vector(|l| trial[l].own0), vector(|l| trial[l].own1));
        (self.start[i].parent, self.trial[i].parent) = (vector(|l| trial[l].parent0), vector(|l| trial[l].parent1));
    }

    /// The way up at a joint of any mask: the text of `equations` and `newton`.
    #[inline(never)]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn ascend_any(
        &mut self,
        plan: &Plan,
        i: usize,
        parts: &[Part<'_>; 4],
        supplied: (V3<T>, V3<T>),
        (load_f, load_n): (V3<T>, V3<T>),
        factor: Option<T>,
        sums: &mut Sums<T>,
    ) -> ((V3<T>, V3<T>), Blocks<T>) {
        let node = &plan.nodes[i];
        let mut passed = [newton::Blocks::ZERO; 4];
        let mut load = [(DVec3::ZERO, DVec3::ZERO); 4];
        let mut closing = load;
        let mut told = [OneSums::default(); 4];
        let mut singular = [0.0; 4];
        for lane in 0..T::LANES {
            let (parent, up) = self.one(node.parent as usize, lane);
            let (f, n) = (supplied.0.lane(lane), supplied.1.lane(lane));
            let a = self.matrix[i].lane(lane);
            let link = &mut self.any[node.general as usize];
            let (m, t) = (link.now[lane], &mut link.trial[lane]);
            (t.force, t.torque) = (f, n);
            let renew = factor.is_some_and(|on| on.lane(lane) > 0.0);
            let (mut g, mut fresh) = ([0.0; 6], AnyJoint::NONE);
            let part = &parts[lane];
            part.joint(node, &parent, &m, &up, t, &mut g, factor.is_some(), &mut told[lane], &mut fresh);
            closing[lane] = part.closing(node, &up, t).0;
            if factor.is_some() {
                let mut made = AnyFactor::NONE;
                match eliminate_any(&a, &fresh, &mut made) {
                    Some(rest) => passed[lane] = rest,
                    None => singular[lane] = 1.0,
                }
                if renew {
                    (link.joint[lane], link.factor[lane]) = (fresh, made);
                }
            }
            let (c, e) = closing[lane];
            let (close_f, close_n) = a.times(c, e);
            let (f, n) = (load_f.lane(lane) + close_f, load_n.lane(lane) + close_n);
            let (s, f, n) = link.factor[lane].ascend(&link.joint[lane], &g, f, n);
            (link.free[lane], load[lane]) = (s, (f, n));
        }
        sums.limits = sums.limits + T::gather(|l| f64::from(told[l].limits));
        sums.work = sums.work + T::gather(|l| told[l].work);
        sums.refuse(T::gather(|l| singular[l]));
        (self.moved[i].c, self.moved[i].e) = (vector(|l| closing[l].0), vector(|l| closing[l].1));
        ((vector(|l| load[l].0), vector(|l| load[l].1)), Blocks::gather(&passed))
    }

    /// The end of a joint of any mask: its pose, closed onto the parent's, with the memory of its turns, and its energy.
    #[inline(never)]
    pub(super) fn close_any(&mut self, plan: &Plan, i: usize, parts: &[Part<'_>; 4], sums: &mut Sums<T>) {
        let node = &plan.nodes[i];
        let p = node.parent as usize;
        let (mut q, mut x, mut turn) = ([DQuat::IDENTITY; 4], [DVec3::ZERO; 4], [DVec3::ZERO; 4]);
        let (mut angle, mut energy, mut own, mut parent) = ([0.0; 4], [0.0; 4], [DVec3::ZERO; 4], [DVec3::ZERO; 4]);
        for lane in 0..T::LANES {
            let (up_x, up_q) = (self.end[p].x.lane(lane), self.end[p].q.lane(lane));
            let AnyLink { now, trial, .. } = &self.any[node.general as usize];
            let (m, t) = (&now[lane], &trial[lane]);
            (x[lane], q[lane]) = equations::placed(plan, node, (up_x, up_q), t.q, t.angle, t.second, t.slide);
            let end = OneTrial { x: x[lane], q: q[lane], ..*t };
            let next = parts[lane].finish_node(node, m, &end, up_q);
            (turn[lane], angle[lane]) = (next.memory.turn, next.memory.angle);
            energy[lane] = parts[lane].joint_energy(node, &next, up_q);
            // On side b of a joint that slides, the point that happens to be there.
            let (mut r_own, mut r_up) = equations::sides(node, node.point_a, node.point_b);
            (r_own, r_up) = (q[lane] * r_own, up_q * r_up);
            if node.flags & FLIPPED != 0 {
                r_own = up_x + r_up - x[lane];
            } else {
                r_up = x[lane] + r_own - up_x;
            }
            (own[lane], parent[lane]) = (r_own, r_up);
        }
        let end = &mut self.end[i];
        (end.x, end.q) = (vector(|l| x[l]), quaternion(|l| q[l]));
        (end.own, end.parent) = (vector(|l| own[l]), vector(|l| parent[l]));
        (end.turn, end.angle) = (vector(|l| turn[l]), T::gather(|l| angle[l]));
        sums.potential = sums.potential + T::gather(|l| energy[l]);
        sums.refuse(T::gather(|l| turn[l].length_squared()) - T::splat(law::FARTHEST));
    }
}

impl AnyLink {
    /// The way down.
    #[inline(never)]
    fn descend<T: Real>(&self, at_joint: V3<T>, w: V3<T>, moved: &Moved<T>) -> (V3<T>, V3<T>) {
        let mut out = [(DVec3::ZERO, DVec3::ZERO); 4];
        for lane in 0..T::LANES {
            let closing = (moved.c.lane(lane), moved.e.lane(lane));
            let (at_joint, w) = (at_joint.lane(lane), w.lane(lane));
            out[lane] = self.factor[lane].descend(&self.joint[lane], &self.free[lane], closing, at_joint, w);
        }
        (vector(|l| out[l].0), vector(|l| out[l].1))
    }
}
