//! What acts on single bodies from outside: trackers, drags, wrenches, springs to the world.
//!
//! Each is a block on the body and a momentum, about the centre of mass. A spring with matrix `Kd = h²k + h·damping` at
//! lever `r`, `B = [1, −[r]]`, gives `Bᵀ Kd B` and `Bᵀ f`.

use super::couple::ContactLoad;
use super::kernel::{Context, Inertia, Moving};
use super::plan::NONE;
use crate::maths::lanes::Real;
use crate::maths::small::*;
use crate::model::laws::PointSpring;
use crate::model::{AnchorSpring, Model};
use glam::{DQuat, DVec3};

/// The loads of a step, in the order bodies were first named.
pub(crate) struct Loads<T> {
    /// By node: index of its load, or `NONE`.
    of: Vec<u32>,
    loads: Vec<Inertia<T>>,
    /// The node of each load.
    nodes: Vec<u32>,
    /// Contacts of the only lane there is.
    contacts: Vec<ContactLoad>,
}

impl<T: Real> Loads<T> {
    pub(crate) fn new(nodes: usize) -> Self {
        Loads { of: vec![NONE; nodes], loads: Vec::new(), nodes: Vec::new(), contacts: Vec::new() }
    }

    /// Takes the contacts of the part to come.
    pub(crate) fn touch(&mut self, contacts: &[ContactLoad]) {
        self.contacts.clear();
        self.contacts.extend_from_slice(contacts);
    }

    #[inline(always)]
    pub(crate) fn get(&self, node: usize) -> Option<&Inertia<T>> {
        match self.of[node] {
            NONE => None,
            k => Some(&self.loads[k as usize]),
        }
    }

    /// Adds to the load of a node.
    #[inline(always)]
    fn add(&mut self, node: usize, load: Inertia<T>) {
        match self.of[node] {
            NONE => {
                self.of[node] = self.loads.len() as u32;
                self.loads.push(load);
                self.nodes.push(node as u32);
            }
            k => self.loads[k as usize] = self.loads[k as usize].plus(&load),
        }
    }

    #[inline(always)]
    fn clear(&mut self) {
        for &node in &self.nodes {
            self.of[node as usize] = NONE;
        }
        self.nodes.clear();
        self.loads.clear();
    }

    /// Gathers all loads of a step at the present poses.
    #[inline(always)]
    pub(crate) fn collect(&mut self, cx: &Context<'_, T>, model: &Model, moving: &[Moving<T>]) {
        self.clear();
        let node_of = &cx.plan.node_of;
        for (k, tracker) in model.trackers().iter().enumerate() {
            let target = |lane: usize| cx.inputs[lane].targets.get(k).and_then(Option::as_ref);
            if (0..T::LANES).all(|lane| target(lane).is_none()) {
                continue;
            }
            let node = node_of[tracker.body.index()] as usize;
            let own = &moving[node];
            // A lane without a target has no stiffness.
            let of = |l: usize| target(l).map_or([0.0; 4], |_| tracker.at_strength(cx.inputs[l].strength(k)));
            let [stiffness, damping, turn_stiffness, turn_damping] = [0, 1, 2, 3].map(|i| T::gather(|l| of(l)[i]));
            let place = |l: usize| target(l).map_or(DVec3::ZERO, |t| t.pose.translation);
            let turn = |l: usize| target(l).map_or(DQuat::IDENTITY, |t| t.pose.rotation);
            let spring = Pull {
                point: V3::splat(tracker.point),
                target: vector(place),
                target_rate: vector(|l| target(l).map_or(DVec3::ZERO, |t| t.velocity.linear)),
                law: PointSpring { stiffness, damping, rest_length: 0.0 },
            };
            let turn_rate: V3<T> = vector(|l| target(l).map_or(DVec3::ZERO, |t| t.velocity.angular));
            let mut load = spring.load(cx, own);
            // Torque −k φ − c (ω − ω*), φ = log(q q*⁻¹)
            let hk = turn_stiffness * cx.h;
            let hc = turn_damping * cx.h;
            let (phi, s) = own.q.times(quaternion::<T>(turn).conjugate()).log();
            load.i = load.i.plus(&s.madd(hk * cx.h, &S3::identity_times(hc)));
            load.n = load.n + turn_rate.scale(hc) - phi.scale(hk);
            self.add(node, load);
        }
        for lane in 0..T::LANES {
            let mine = |x: f64| move |l: usize| if l == lane { x } else { 0.0 };
            for drag in &cx.inputs[lane].drags {
                let node = node_of[drag.body.index()] as usize;
                let spring = Pull {
                    point: V3::splat(drag.point),
                    target: V3::splat(drag.target),
                    target_rate: V3::splat(drag.target_velocity),
                    law: PointSpring {
                        stiffness: T::gather(mine(drag.stiffness)),
                        damping: T::gather(mine(drag.damping)),
                        rest_length: 0.0,
                    },
                };
                let load = spring.load(cx, &moving[node]);
                self.add(node, load);
            }
            for (body, wrench) in &cx.inputs[lane].wrenches {
                let force = vector(|l| if l == lane { wrench.force } else { DVec3::ZERO });
                let torque = vector(|l| if l == lane { wrench.torque } else { DVec3::ZERO });
                let load = Inertia { f: force.scale(cx.h), n: torque.scale(cx.h), ..Inertia::zero() };
                self.add(node_of[body.index()] as usize, load);
            }
        }
        for k in 0..self.contacts.len() {
            let ContactLoad { node, lever, k, impulse } = self.contacts[k];
            let kd = S3::splat(&[k.x_axis.x, k.y_axis.x, k.z_axis.x, k.y_axis.y, k.z_axis.y, k.z_axis.z]);
            self.add(node, load_at(&kd, V3::splat(lever), V3::splat(impulse)));
        }
        for spring in model.anchor_springs() {
            let node = node_of[spring.a.index()] as usize;
            let Some(b) = spring.b else {
                let own = &moving[node];
                let r = own.q.matrix().times(V3::splat(spring.point_in_a));
                let (force, kd) = anchor_force(spring, own.x + r - V3::splat(spring.point_in_b), cx.h);
                self.add(node, load_at(&kd, r, force));
                continue;
            };
            // Between bodies: the impulse here, the stiffness by `couple`.
            let other = node_of[b.index()] as usize;
            let (r_a, r_b, d) = anchor_levers(spring, &moving[node], &moving[other]);
            let (force, _) = anchor_force(spring, d, cx.h);
            self.add(node, load_at(&S3::zero(), r_a, force));
            self.add(other, load_at(&S3::zero(), r_b, -force));
        }
    }
}

/// A vector with a value of its own in each lane.
#[inline(always)]
pub(crate) fn vector<T: Real>(value: impl Fn(usize) -> DVec3) -> V3<T> {
    v3(T::gather(|l| value(l).x), T::gather(|l| value(l).y), T::gather(|l| value(l).z))
}

/// A quaternion with a value of its own in each lane.
#[inline(always)]
pub(crate) fn quaternion<T: Real>(value: impl Fn(usize) -> DQuat) -> Q<T> {
    Q {
        w: T::gather(|l| value(l).w),
        v: v3(T::gather(|l| value(l).x), T::gather(|l| value(l).y), T::gather(|l| value(l).z)),
    }
}

/// A spring to a moving point.
struct Pull<T> {
    point: V3<T>,
    target: V3<T>,
    target_rate: V3<T>,
    law: PointSpring<T>,
}

impl<T: Real> Pull<T> {
    #[inline(always)]
    fn load(&self, cx: &Context<'_, T>, own: &Moving<T>) -> Inertia<T> {
        let r = own.q.matrix().times(self.point);
        let (force, kd) = impulse(&self.law, own.x + r - self.target, cx.h);
        load_at(&kd, r, self.target_rate.madd(self.law.damping * cx.h, force))
    }
}

/// `Bᵀ kd B` and `Bᵀ force` at lever `r`.
#[inline(always)]
fn load_at<T: Real>(kd: &S3<T>, r: V3<T>, force: V3<T>) -> Inertia<T> {
    let o = V3::zero();
    Inertia { m: *kd, h: M3 { x: o, y: o, z: o }, i: S3::zero(), f: force, n: o }.shifted(r)
}

/// Levers of an anchor spring and the vector from b's point to a's.
#[inline(always)]
pub(crate) fn anchor_levers<T: Real>(spring: &AnchorSpring, a: &Moving<T>, b: &Moving<T>) -> (V3<T>, V3<T>, V3<T>) {
    let r_a = a.q.matrix().times(V3::splat(spring.point_in_a));
    let r_b = b.q.matrix().times(V3::splat(spring.point_in_b));
    (r_a, r_b, (a.x - b.x) + (r_a - r_b))
}

/// Impulse on a of an anchor spring, and `h²K + h c`.
#[inline(always)]
pub(crate) fn anchor_force<T: Real>(spring: &AnchorSpring, d: V3<T>, h: T) -> (V3<T>, S3<T>) {
    impulse(&PointSpring::of(spring).splat(), d, h)
}

/// Impulse of a spring at the stretch `d`, and `h²K + h c`.
#[inline(always)]
fn impulse<T: Real>(law: &PointSpring<T>, d: V3<T>, h: T) -> (V3<T>, S3<T>) {
    let at = law.at(d);
    (at.force.scale(h), at.positive_slope().madd(h * h, &S3::identity_times(law.damping * h)))
}
