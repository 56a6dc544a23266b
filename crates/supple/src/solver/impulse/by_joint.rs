//! One joint after another: the iteration that [Bender 2006, §4.5] starts from.
//!
//! Each joint that would be open gets the impulse that would close it alone, `K p = −C/h` with its own block `K = J M⁻¹ Jᵀ`, and the two bodies' flights are
//! predicted anew; so on round the joints until all are closed. Implicit forces (`kicks.rs`) take their turn like joints: with rows `B`, `W = B M⁻¹ Bᵀ`
//! and `P` the impulse given so far, the rest of (1) there is `½h f − G B u − P`, and the change that makes it zero is `(1 + G W)⁻¹` times it.

use super::Motion;
use super::correct::Worst;
use super::kicks::{Kicks, Soft};
use super::pushes::Pushes;
use super::system::{Mass, System, apply};
use crate::forces::Force;
use crate::maths::Twist;
use crate::maths::block::{Ldlt, Vector};
use crate::model::State;
use crate::step::Failure;
use glam::{DMat3, DVec3};

/// Scratch of the iteration.
#[derive(Default)]
pub(super) struct ByJoint {
    /// Factors of each joint's own block.
    own: Vec<Ldlt>,
    soft: Vec<SoftUnit>,
}

/// An implicit force of one row or three.
struct SoftUnit {
    a: usize,
    b: Option<usize>,
    rows_a: [Twist; 3],
    rows_b: [Twist; 3],
    /// `½h f`
    size: DVec3,
    /// G
    gain: DMat3,
    /// W
    answer: DMat3,
    /// `(1 + G W)⁻¹`
    share: DMat3,
    /// P
    given: DVec3,
    pushes: f64,
}

impl ByJoint {
    /// Factors each joint's own block; the rows must be placed.
    pub(super) fn prepare(&mut self, system: &System, kicks: &Kicks, h: f64) -> Result<(), Failure> {
        self.own.clear();
        for k in 0..system.held.len() {
            self.own.push(Ldlt::new(&system.own_block(k)).ok_or_else(|| system.failure_at(k))?);
        }
        self.soft.clear();
        self.soft.reserve(kicks.soft.capacity());
        self.soft.extend(kicks.soft.iter().map(|soft| SoftUnit::new(soft, &system.masses, h)));
        Ok(())
    }

    /// Once round at the start: closes each joint that would be open by more than `tolerance` after the flight; the largest error met. And the largest
    /// change of a contact's rate.
    pub(super) fn close(
        &mut self,
        system: &System,
        start: &State,
        motion: &mut Motion,
        pushes: &mut Pushes,
        goal: &[Vector],
        tolerance: f64,
    ) -> Result<(Worst, f64), Failure> {
        let mut worst = Worst::NONE;
        for (k, held) in system.held.iter().enumerate() {
            let mut c = goal[k];
            for (i, row) in held.errors(&motion.end.bodies).iter().enumerate() {
                c[i] -= row.error;
            }
            if worst.see(k, &c, system)? > tolerance {
                let p = self.own[k].solve(&c.map(|c| c / motion.h));
                apply(held, &system.rows[k], &p, &mut motion.velocities);
                motion.fly(start, held.a);
                held.b.into_iter().for_each(|b| motion.fly(start, b));
            }
        }
        for unit in &mut self.soft {
            let change = motion.h * unit.give(&system.masses, &motion.drift, &mut motion.velocities);
            worst.size = worst.size.max(change);
            motion.fly(start, unit.a);
            unit.b.into_iter().for_each(|b| motion.fly(start, b));
        }
        let Motion { velocities, drift, flyers, end, h } = motion;
        let change = pushes.round(&system.masses, velocities, drift, |i, velocities| {
            end.bodies[i] = flyers[i].fly(&start.bodies[i], velocities[i], *h);
        });
        Ok((worst, change))
    }

    /// Once round at the end: stops each joint that is opening faster than `tolerance`; the largest rate met, and change of a contact's.
    pub(super) fn settle(
        &mut self,
        system: &System,
        motion: &mut Motion,
        pushes: &mut Pushes,
        goal: &[Vector],
        tolerance: f64,
    ) -> Result<(Worst, f64), Failure> {
        let mut worst = Worst::NONE;
        for (k, held) in system.held.iter().enumerate() {
            let rate = system.rate(k, &motion.velocities);
            let c: Vector = std::array::from_fn(|i| goal[k][i] - rate[i]);
            if worst.see(k, &c, system)? > tolerance {
                apply(held, &system.rows[k], &self.own[k].solve(&c), &mut motion.velocities);
            }
        }
        for unit in &mut self.soft {
            let change = unit.give(&system.masses, &motion.drift, &mut motion.velocities);
            worst.size = worst.size.max(change);
        }
        let Motion { velocities, drift, .. } = motion;
        Ok((worst, pushes.round(&system.masses, velocities, drift, |_, _| {})))
    }
}

impl SoftUnit {
    fn new(soft: &Soft, masses: &[Mass], h: f64) -> SoftUnit {
        let identity = |c: f64| DMat3::from_diagonal(DVec3::splat(c));
        let zero = [Twist::ZERO; 3];
        let axes = DVec3::AXES;
        let (rows_a, rows_b, force, stiffness, damping) = match &soft.force {
            Force::Along(f) => {
                let (mut a, mut b) = (zero, zero);
                (a[0], b[0]) = (f.a, f.b);
                let only = |x: f64| DMat3::from_diagonal(DVec3::X * x);
                (a, b, DVec3::X * f.force, only(f.stiffness), only(f.damping))
            }
            Force::Turning(f) => {
                let turn = |sign: f64| axes.map(|e| Twist::new(DVec3::ZERO, e * sign));
                (turn(1.0), turn(-1.0), f.torque, f.stiffness, identity(f.damping))
            }
            Force::Anchored(f) => {
                let point = |r: DVec3, sign: f64| axes.map(|e| Twist::new(e * sign, r.cross(e) * sign));
                (point(f.r_a, 1.0), point(f.r_b, -1.0), f.force, f.stiffness, identity(f.damping))
            }
        };
        let gain = (stiffness * h + damping) * (0.5 * h);
        // W = B M⁻¹ Bᵀ
        let side = |rows: &[Twist; 3], mass: &Mass| {
            let column = |row: &Twist| {
                let (v, w) = (row.linear * mass.inverse, mass.inverse_inertia * row.angular);
                DVec3::from_array(rows.map(|r| r.linear.dot(v) + r.angular.dot(w)))
            };
            DMat3::from_cols(column(&rows[0]), column(&rows[1]), column(&rows[2]))
        };
        let mut answer = side(&rows_a, &masses[soft.a]);
        if let Some(b) = soft.b {
            answer += side(&rows_b, &masses[b]);
        }
        SoftUnit {
            a: soft.a,
            b: soft.b,
            rows_a,
            rows_b,
            size: force * (0.5 * h),
            gain,
            answer,
            share: (DMat3::IDENTITY + gain * answer).inverse(),
            given: DVec3::ZERO,
            pushes: soft.pushes,
        }
    }

    /// Gives what is missing, `drift` being what the mean velocity has more than the velocity; returns how much its rows' velocity changed.
    fn give(&mut self, masses: &[Mass], drift: &[Twist], velocities: &mut [Twist]) -> f64 {
        let along = |rows: &[Twist; 3], v: Twist| {
            DVec3::from_array(rows.map(|r| r.linear.dot(v.linear) + r.angular.dot(v.angular)))
        };
        let mut rate = along(&self.rows_a, velocities[self.a] + drift[self.a]);
        if let Some(b) = self.b {
            rate += along(&self.rows_b, velocities[b] + drift[b]);
        }
        let mut change = self.share * (self.size - self.gain * rate - self.given);
        if self.pushes != 0.0 && (self.given + change).x * self.pushes < 0.0 {
            change = -self.given; // a limit does not pull
        }
        self.given += change;
        let mut push = |rows: &[Twist; 3], body: usize| {
            let mut wrench = Twist::ZERO;
            for k in 0..3 {
                wrench = wrench + rows[k] * change[k];
            }
            let mass = &masses[body];
            let answer = Twist::new(wrench.linear * mass.inverse, mass.inverse_inertia * wrench.angular);
            velocities[body] = velocities[body] + answer;
        };
        push(&self.rows_a, self.a);
        if let Some(b) = self.b {
            push(&self.rows_b, b);
        }
        (self.answer * change).length()
    }
}
