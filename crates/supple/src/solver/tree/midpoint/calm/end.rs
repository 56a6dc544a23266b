//! The end of a part: joints closed exactly, velocities, their projection, energy, what is measured.

use super::node::sides;
use super::*;
use crate::maths::Pose;
use crate::model::joint::RotationKind;
use crate::solver::tree::kernel::{Direction, descend, eliminate_limp};

impl<T: Real> Calm<T> {
    /// Poses with joints closed, children onto parents, a floating tree about its centre of mass; velocities of the midpoint rule. Returns energies and
    /// limits at the end, and how far velocities open joints, squared. Trials stay as they are.
    #[inline(always)]
    pub(super) fn close(&mut self, plan: &Plan, parts: &[Part<'_>; 4], times: &Times<T>) -> (Sums<T>, T) {
        let (mut sums, mut opening) = (Sums::zero(), T::zero());
        for k in 1..self.roots.len() {
            let (root, last) = (self.roots[k - 1], self.roots[k]);
            let floats = plan.nodes[root].link == Link::Floating;
            let (mut mass, mut shift) = (T::zero(), V3::zero());
            for i in root..last {
                self.close_node(plan, i, parts, &mut sums);
                if floats {
                    let m = self.fixed[i].mass;
                    mass = mass + m;
                    shift = (self.end[i].x - self.trial[i].x).madd(m, shift);
                }
            }
            if floats {
                let back = shift.scale(mass.recip());
                for end in &mut self.end[root..last] {
                    end.x = end.x - back;
                }
            }
            for i in root..last {
                let (m, fixed) = (&self.start[i], &self.fixed[i]);
                let (before, rest) = self.end.split_at_mut(i);
                let (up, end) = (&before[plan.nodes[i].parent as usize], &mut rest[0]);
                end.v = (end.x - m.x).scale(times.two_h) - m.v;
                let y = m.r.transpose_times(end.a.scale(times.two_h) - m.w);
                end.w = end.r.times(y);
                let kinetic = end.v.dot(end.v) * fixed.mass + y.dot(fixed.inertia.times(y));
                sums.kinetic = kinetic.madd(T::splat(0.5), sums.kinetic);
                sums.potential = sums.potential - times.gravity.dot(end.x) * fixed.mass;
                let open = open_rate(plan, i, fixed, self.turning.get(plan.nodes[i].detail as usize), end, up);
                opening = opening.max(open);
            }
        }
        (sums, opening * times.h * times.h)
    }

    #[inline(always)]
    fn close_node(&mut self, plan: &Plan, i: usize, parts: &[Part<'_>; 4], sums: &mut Sums<T>) {
        let (node, fixed) = (&plan.nodes[i], &self.fixed[i]);
        let flipped = node.flags & FLIPPED != 0;
        let p = node.parent as usize;
        if let Link::General(_) = node.link {
            self.close_any(plan, i, parts, sums);
            let (m, end) = (&self.start[i], &mut self.end[i]);
            let relative = end.q.times(m.q.conjugate());
            end.a = relative.v.scale(law::twice(relative.w.recip()));
            end.r = end.q.matrix();
            return;
        }
        let (m, t, springs) = (&self.start[i], &self.trial[i], &self.springs[i]);
        let (before, rest) = self.end.split_at_mut(i);
        let (up, end) = (&before[p], &mut rest[0]);
        match node.link {
            Link::Floating => {
                (end.x, end.q, end.a, end.r) = (t.x, t.q.renormalised(), t.a, t.r);
                return;
            }
            Link::Ball => {
                (end.q, end.a, end.r, end.own) = (t.q.renormalised(), t.a, t.r, t.own);
                let (q_a, q_b) = sides(flipped, end.q, up.q);
                if node.flags & SPRING != 0 {
                    let error = q_b.conjugate().times(q_a).times(fixed.rest_inverse);
                    end.turn = error.v.scale(law::twice(error.half_angle_over_sine()) * error.w.sign());
                    let squared = end.turn.dot(end.turn);
                    sums.refuse(squared - T::splat(law::FARTHEST));
                    sums.potential = (springs.k * T::splat(0.5)).madd(squared, sums.potential);
                }
                if node.flags & TURNS != 0 {
                    let turning = &self.turning[node.detail as usize];
                    let relative = turning.relative(q_a, q_b);
                    end.angle = turn_of_half(relative.v.x, relative.w, m.angle).0;
                }
                if node.flags & LIMITS != 0 {
                    let turning = &self.turning[node.detail as usize];
                    sums.potential = sums.potential + turning.energy(q_a, q_b, m.angle, &mut sums.limits);
                }
            }
            _ => {
                let turning = &self.turning[node.detail as usize];
                let (mut sine, mut cosine) = (T::zero(), T::splat(1.0));
                if node.link == Link::Hinge {
                    let (q_a, q_b) = sides(flipped, t.q, self.trial[p].q);
                    let half = turning.half_turn(q_a, q_b);
                    (end.angle, [sine, cosine]) = turn_of_half(half.1, half.0, m.angle);
                    let energy = turning.hinge_energy(springs.k, end.angle, &mut sums.limits);
                    sums.potential = sums.potential + energy;
                }
                let mut v = V3::zero();
                match turning.axis {
                    0 => v.x = sine,
                    1 => v.y = sine,
                    _ => v.z = sine,
                }
                let (turn, a, b) = (Q { w: cosine, v }, turning.frame_a, turning.frame_b);
                let q = if flipped {
                    up.q.times(a).times(turn.conjugate()).times(b.conjugate())
                } else {
                    up.q.times(b).times(turn).times(a.conjugate())
                };
                end.q = q.renormalised();
                end.r = end.q.matrix();
                end.own = end.r.times(fixed.own);
                let relative = end.q.times(m.q.conjugate());
                end.a = relative.v.scale(law::twice(relative.w.recip()));
            }
        }
        end.parent = up.r.times(fixed.parent);
        end.x = up.x + end.parent - end.own;
    }

    /// The nearest velocities, by kinetic energy, that keep the joints closed, where `on` is positive. Returns their energy.
    #[inline(always)]
    pub(super) fn project(&mut self, plan: &Plan, on: T) -> T {
        let count = plan.nodes.len();
        for i in 1..count {
            let (fixed, end) = (&self.fixed[i], &self.end[i]);
            let (m, anchor) = (fixed.mass, if plan.nodes[i].link == Link::Floating { V3::zero() } else { end.own });
            let inertia = end.r.congruence(&fixed.inertia);
            let (f, n) = (end.v.scale(m), inertia.times(end.w));
            let s = anchor.scale(m);
            self.inertias[i] = Inertia {
                m: S3::identity_times(m),
                h: M3::skew(s),
                i: inertia.plus_outer(-m, anchor).plus_identity(s.dot(anchor)),
                f,
                n: n - anchor.cross(f),
            };
        }
        for i in (1..count).rev() {
            let (node, end) = (&plan.nodes[i], self.end[i]);
            let p = node.parent as usize;
            let passage = &mut self.passages[i];
            (passage.own, passage.lever) = (end.own, end.parent);
            if node.link == Link::Floating {
                passage.own = V3::zero();
            }
            let general = self.generals.get_mut(node.general as usize);
            let axes = |general: &mut KernelGeneral<T>| free_directions(plan, node, &end, &self.end[p], general);
            let axis = match node.link {
                Link::Hinge => sides(node.flags & FLIPPED != 0, &end.r, &self.end[p].r)
                    .0
                    .times(self.turning[node.detail as usize].axis_a),
                _ => V3::zero(),
            };
            let passed = eliminate_limp(&self.inertias[i], node, axis, axes, general, passage);
            if p != 0 {
                let hop = end.parent - self.end[p].own;
                let hop = if plan.nodes[p].link == Link::Floating { end.parent } else { hop };
                self.inertias[p] = self.inertias[p].plus(&passed.shifted(hop));
            }
        }
        let mut kinetic = T::zero();
        self.moved[0].x = V3::zero();
        self.moved[0].w = V3::zero();
        for i in 1..count {
            let up = self.moved[plan.nodes[i].parent as usize];
            let (v, w) = descend(&self.passages[i], &self.generals, up.x, up.w);
            (self.moved[i].x, self.moved[i].w) = (v, w);
            let (fixed, end) = (&self.fixed[i], &mut self.end[i]);
            let y = end.r.transpose_times(w);
            kinetic = (v.dot(v) * fixed.mass + y.dot(fixed.inertia.times(y))).madd(T::splat(0.5), kinetic);
            (end.v, end.w) = (V3::chosen(on, v, end.v), V3::chosen(on, w, end.w));
        }
        kinetic
    }

    /// Gaps and tilts at the end.
    #[inline(always)]
    pub(super) fn measure(&self, plan: &Plan, lanes: &mut [Course]) {
        for lane in lanes.iter_mut() {
            lane.done.widest = NONE;
        }
        let (mut widest, mut tilt) = (T::splat(-1.0), T::zero());
        for i in 1..plan.nodes.len() {
            let node = &plan.nodes[i];
            let (end, up) = (&self.end[i], &self.end[node.parent as usize]);
            let gap = match node.link {
                Link::Floating => continue,
                Link::General(_) => {
                    let (gaps, tilts) = self.measure_any(plan, node, end, up);
                    tilt = tilt.max(tilts * tilts);
                    gaps * gaps
                }
                _ => {
                    // By the orientations, as anyone would measure it.
                    let fixed = &self.fixed[i];
                    let d = (end.x - up.x) + (law::turned(end.q, fixed.own) - law::turned(up.q, fixed.parent));
                    d.dot(d)
                }
            };
            if let Link::Hinge | Link::Weld = node.link {
                let turning = &self.turning[node.detail as usize];
                let (r_a, r_b) = sides(node.flags & FLIPPED != 0, &end.r, &up.r);
                let across = r_a.times(turning.axis_a).cross(r_b.times(turning.axis_b));
                tilt = tilt.max(across.dot(across));
            }
            if (gap - widest).any_above(0.0) {
                for (l, lane) in lanes.iter_mut().enumerate() {
                    if gap.lane(l) > widest.lane(l) {
                        lane.done.widest = i as u32;
                    }
                }
                widest = widest.max(gap);
            }
        }
        for (l, lane) in lanes.iter_mut().enumerate() {
            (lane.done.gap, lane.done.tilt) = (widest.lane(l).max(0.0).sqrt(), tilt.lane(l).sqrt());
        }
    }

    #[inline(never)]
    fn measure_any(&self, plan: &Plan, node: &Node, end: &End<T>, up: &End<T>) -> (T, T) {
        let (a, b) = sides(node.flags & FLIPPED != 0, end, up);
        let pose = |e: &End<T>, lane: usize| Pose::new(e.q.lane(lane), e.x.lane(lane));
        let of = |lane: usize| plan.details[node.detail as usize].joint.gap(pose(a, lane), pose(b, lane));
        let all: [(f64, f64); 4] = std::array::from_fn(|l| if l < T::LANES { of(l) } else { (0.0, 0.0) });
        (T::gather(|l| all[l].0), T::gather(|l| all[l].1))
    }

    /// The impulses of joints at the end that was accepted: the way up once more. The state has been written.
    #[inline(always)]
    pub(super) fn find_impulses(&mut self, plan: &Plan, parts: &[Part<'_>; 4], times: Times<T>) {
        for i in 1..plan.nodes.len() {
            let (end, t) = (&self.end[i], &mut self.trial[i]);
            (t.x, t.a, t.q, t.r) = (end.x, end.a, end.q, end.r);
            (t.own, t.parent) = (end.own, end.parent);
            if plan.nodes[i].link == Link::Floating {
                (t.own, t.parent) = (V3::zero(), V3::zero());
            }
        }
        self.pull(&times, false);
        let (on, sums) = (T::zero(), Sums::zero());
        let pass = Pass { first: false, some: false, on, all: true, factored: on };
        T::enter(Ascend::<T, false> { calm: self, plan, parts, times, pass, sums });
    }
}

/// How fast velocities open a joint, squared, in shares of a lever and radians.
#[inline(always)]
fn open_rate<T: Real>(
    plan: &Plan,
    i: usize,
    fixed: &Fixed<T>,
    turning: Option<&Turning<T>>,
    end: &End<T>,
    up: &End<T>,
) -> T {
    let node = &plan.nodes[i];
    if node.link == Link::Floating {
        return T::zero();
    }
    let mut rate = (end.v + end.w.cross(end.own)) - (up.v + up.w.cross(end.parent));
    let relative = end.w - up.w;
    let size = fixed.inverse_size;
    let (r_a, r_b) = sides(node.flags & FLIPPED != 0, &end.r, &up.r);
    match (node.link, turning) {
        (Link::Hinge, Some(turning)) => {
            let along = r_a.times(turning.axis_a).dot(relative);
            let across = along.nmadd(along, relative.dot(relative));
            (rate.dot(rate) * size * size).max(across)
        }
        (Link::Weld, _) => (rate.dot(rate) * size * size).max(relative.dot(relative)),
        (Link::General(_), _) => {
            let detail = &plan.details[node.detail as usize];
            let mask = detail.joint.mask;
            for k in (0..3).filter(|&k| !mask.holds_translation(k)) {
                let axis = r_b.times(V3::splat(detail.axes_b[k]));
                rate = axis.nmadd(axis.dot(rate), rate);
            }
            let mut largest = rate.dot(rate) * size * size;
            for &(j, k) in crate::model::joint::rotation_pairs(mask.rotation()) {
                let (a, b) = (r_a.times(V3::splat(detail.axes_a[j])), r_b.times(V3::splat(detail.axes_b[k])));
                let across = a.cross(b).dot(relative);
                largest = largest.max(across * across);
            }
            largest
        }
        _ => rate.dot(rate) * size * size,
    }
}

/// The free directions of a joint of any mask.
#[inline(always)]
fn free_directions<T: Real>(plan: &Plan, node: &Node, end: &End<T>, up: &End<T>, general: &mut KernelGeneral<T>) {
    let detail = &plan.details[node.detail as usize];
    let mask = detail.joint.mask;
    let (r_a, r_b) = sides(node.flags & FLIPPED != 0, &end.r, &up.r);
    let mut count = 0;
    let mut push = |direction: Direction<T>| {
        general.directions[count] = direction;
        count += 1;
    };
    for k in (0..3).filter(|&k| !mask.holds_translation(k)) {
        push(Direction::Slide(r_b.times(V3::splat(detail.axes_b[k]))));
    }
    match mask.rotation() {
        RotationKind::Held => {}
        RotationKind::Axis(k) => push(Direction::Turn(r_a.times(V3::splat(detail.axes_a[k])))),
        RotationKind::Cardan(k) => {
            push(Direction::Turn(r_b.times(V3::splat(detail.axes_b[(k + 1) % 3]))));
            push(Direction::Turn(r_a.times(V3::splat(detail.axes_a[(k + 2) % 3]))));
        }
        RotationKind::Free => {
            for axis in DVec3::AXES {
                push(Direction::Turn(V3::splat(axis)));
            }
        }
    }
    general.count = count;
}
