//! What acts on single bodies from outside: trackers, drags, wrenches.

use super::*;
use crate::maths::small::exp;

/// A load on a body.
#[derive(Clone, Copy)]
pub(super) struct Pull<T> {
    node: u32,
    /// The next one of the same body, or `NONE`.
    pub(super) next: u32,
    /// A wrench has no springs, only impulses.
    is_wrench: bool,
    turns: bool,
    /// A spring from a point of the body to one that goes from `start` to `end`, `theta` the share of the end.
    point: V3<T>,
    start: V3<T>,
    end: V3<T>,
    stiffness: T,
    damping: T,
    theta: T,
    /// And from its orientation, turned by `phi0` at the start, to `target` at the end, which turns by `turned`.
    turn_stiffness: T,
    turn_damping: T,
    turn_theta: T,
    phi0: V3<T>,
    target: Q<T>,
    turned: V3<T>,
    /// At the trial: impulse about the centre of mass, and its derivative: `slope` at the levers of the point, and a block.
    pub(super) f: V3<T>,
    pub(super) n: V3<T>,
    pub(super) left: V3<T>,
    pub(super) right: V3<T>,
    pub(super) slope: T,
    pub(super) ww: M3<T>,
}

impl<T: Real> Pull<T> {
    fn none(node: usize) -> Pull<T> {
        let (o, z) = (V3::zero(), T::zero());
        Pull {
            node: node as u32,
            next: NONE,
            is_wrench: false,
            turns: false,
            point: o,
            start: o,
            end: o,
            stiffness: z,
            damping: z,
            theta: z,
            turn_stiffness: z,
            turn_damping: z,
            turn_theta: z,
            phi0: o,
            target: Q::splat(DQuat::IDENTITY),
            turned: o,
            f: o,
            n: o,
            left: o,
            right: o,
            slope: z,
            ww: M3::zero(),
        }
    }
}

impl<T: Real> Calm<T> {
    fn add_pull(&mut self, pull: Pull<T>) {
        let next = std::mem::replace(&mut self.pull_of[pull.node as usize], self.pulls.len() as u32);
        self.pulls.push(Pull { next, ..pull });
    }

    /// Gathers the loads of a part. Lanes have the same ones, with other numbers.
    #[inline(always)]
    pub(super) fn set_pulls(&mut self, plan: &Plan, model: &Model, inputs: &[&Input], (h, left): (f64, f64)) {
        for pull in &self.pulls {
            self.pull_of[pull.node as usize] = NONE;
        }
        self.pulls.clear();
        let hh = T::splat(h * h);
        for (k, tracker) in model.trackers().iter().enumerate() {
            let target = |l: usize| inputs[l].targets.get(k).and_then(Option::as_ref);
            if target(0).is_none() {
                continue;
            }
            let node = plan.node_of[tracker.body.index()] as usize;
            let of = |value: fn(&crate::Target) -> DVec3| vector::<T>(|l| target(l).map_or(DVec3::ZERO, value));
            let (speed, w) = (of(|t| t.velocity.linear), of(|t| t.velocity.angular));
            let end = speed.nmadd(T::splat(left), of(|t| t.pose.translation));
            let mut aim: Q<T> = quaternion(|l| target(l).map_or(DQuat::IDENTITY, |t| t.pose.rotation));
            let length = aim.w.madd(aim.w, aim.v.dot(aim.v)).sqrt().recip();
            aim = Q { w: aim.w * length, v: aim.v.scale(length) };
            if left != 0.0 {
                aim = exp(w.scale(T::splat(-left))).times(aim);
            }
            let at_start = exp(w.scale(T::splat(-h))).times(aim);
            let at = |l: usize| tracker.at_strength(inputs[l].strength(k));
            let [stiffness, damping, turn_stiffness, turn_damping] = [0, 1, 2, 3].map(|i| T::gather(|l| at(l)[i]));
            let fixed = &self.fixed[node];
            let mean_inertia = T::splat(plan.nodes[node].mean_inertia);
            let pull = Pull {
                turns: true,
                point: V3::splat(tracker.point),
                start: speed.nmadd(T::splat(h), end),
                end,
                stiffness,
                damping,
                theta: Rule::Midpoint.end_of_pull(hh * stiffness * fixed.mass.recip()),
                turn_stiffness,
                turn_damping,
                turn_theta: Rule::Midpoint.end_of_pull(hh * turn_stiffness * mean_inertia.recip()),
                phi0: log_of(self.start[node].q.times(at_start.conjugate())),
                target: aim,
                turned: w.scale(T::splat(h)),
                ..Pull::none(node)
            };
            self.add_pull(pull);
        }
        for (k, drag) in inputs[0].drags.iter().enumerate() {
            let node = plan.node_of[drag.body.index()] as usize;
            let of = |value: fn(&crate::Drag) -> DVec3| vector::<T>(|l| value(&inputs[l].drags[k]));
            let speed = of(|d| d.target_velocity);
            let end = speed.nmadd(T::splat(left), of(|d| d.target));
            let stiffness = T::gather(|l| inputs[l].drags[k].stiffness);
            let pull = Pull {
                point: of(|d| d.point),
                start: speed.nmadd(T::splat(h), end),
                end,
                stiffness,
                damping: T::gather(|l| inputs[l].drags[k].damping),
                theta: Rule::Midpoint.end_of_pull(hh * stiffness * self.fixed[node].mass.recip()),
                ..Pull::none(node)
            };
            self.add_pull(pull);
        }
        for (k, (body, _)) in inputs[0].wrenches.iter().enumerate() {
            let node = plan.node_of[body.index()] as usize;
            let f: V3<T> = vector(|l| inputs[l].wrenches[k].1.force * h);
            let n: V3<T> = vector(|l| inputs[l].wrenches[k].1.torque * h);
            self.add_pull(Pull { is_wrench: true, f, n, ..Pull::none(node) });
        }
    }

    /// Impulses at the trial, with their derivatives where asked for. Returns their work.
    #[inline(always)]
    pub(super) fn pull(&mut self, times: &Times<T>, matrix: bool) -> T {
        let (half, one) = (T::splat(0.5), T::splat(1.0));
        let mut work = T::zero();
        for pull in &mut self.pulls {
            let (m, t) = (&self.start[pull.node as usize], &self.trial[pull.node as usize]);
            if pull.is_wrench {
                work = (pull.f.dot(t.x - m.x) + pull.n.dot(t.a)).madd(times.inverse_h, work);
                continue;
            }
            let (r0, r1) = (m.r.times(pull.point), t.r.times(pull.point));
            let (p0, p1) = (m.x + r0, t.x + r1);
            let way = p1 - p0;
            let stretch = (p0 - pull.start).scale(one - pull.theta) + (p1 - pull.end).scale(pull.theta);
            let f = stretch.scale(-(times.h * pull.stiffness)) - (way - (pull.end - pull.start)).scale(pull.damping);
            (pull.left, pull.right) = ((r0 + r1).scale(half), r1);
            pull.f = f;
            pull.n = pull.left.cross(f);
            work = f.dot(way).madd(times.inverse_h, work);
            if matrix {
                pull.slope = (times.h * pull.stiffness).madd(pull.theta, pull.damping);
                // The lever turns: −½[F][r]
                let r = r1.scale(half);
                pull.ww = M3::zero().plus_identity(f.dot(r)).plus_outer(-r, f);
            }
            if !pull.turns {
                continue;
            }
            let error = t.q.times(pull.target.conjugate());
            let phi1 = log_of(error);
            let phi = pull.phi0.scale(one - pull.turn_theta) + phi1.scale(pull.turn_theta);
            let torque = phi.scale(-(times.h * pull.turn_stiffness)) - (t.a - pull.turned).scale(pull.turn_damping);
            pull.n = pull.n + torque;
            work = torque.dot(t.a).madd(times.inverse_h, work);
            if matrix {
                let (_, s) = error.log();
                let k = times.h * pull.turn_stiffness * pull.turn_theta;
                let symmetric = M3 { x: s.row(0), y: s.row(1), z: s.row(2) }.scaled(k).plus_identity(pull.turn_damping);
                let turning = phi1.scale(half * k) + t.a.scale(half * pull.turn_damping);
                pull.ww = pull.ww.plus(&symmetric).minus(&M3::skew(turning));
            }
        }
        work
    }
}

/// The rotation vector.
#[inline(always)]
fn log_of<T: Real>(q: Q<T>) -> V3<T> {
    q.v.scale(law::twice(q.half_angle_over_sine()) * q.w.sign())
}
