//! The impulses of contacts of skin that satisfy (1) to (3) of `respond.rs`.
//!
//! With the bounds of friction kept for a round, (2) and (3) at given δv_b are the minimum of a convex function of the impulses,
//!
//! ```text
//! −Ψ(w) = min over λ   wᵀ(λ − λ⁰) + ½ (λ − λ⁰)ᵀ Λ (λ − λ⁰) + ½ |λ − λ′|²_hold,   w = b + J δv_b                                       (4)
//! E(δv_b) = ½ δv_bᵀ M̂ δv_b + Ψ(w)                                                                                                  (5)
//! ```
//! and (1) is the minimum of E, which has the derivative `M̂ δv_b − Jᵀ (λ − λ⁰)` and is convex: Newton's method with a search along each step finds it from
//! anywhere. A contact that is alone on its vertices has a closed form in (4); those that share vertices are swept over one after the other until they
//! agree, and so is the derivative of their impulses along a direction: conjugate gradients, with the skeleton's factors in front, then find the step.
//!
//! From round to round the bounds of friction follow the pushes, and contacts that share vertices are held near the impulses λ′ of the round before: where
//! they leave one another an answer it is found, and where they do not, as for a vertex between two walls that close, impulses stay bounded.

use super::condense::Skeleton;
use super::respond::{Ground, Law, Responder, Row, add_stiffness, local};
use crate::maths::block::{Vector, add_scaled};
use glam::{DMat3, DVec3};

/// Rounds in which bounds of friction and what contacts on one vertex do to one another are put right.
const MOST_ROUNDS: usize = 60;
/// Rounds after which bounds of friction go half the way.
const WAVERING: usize = 10;
/// Rounds after which impulses are held where they are: what is left has no answer.
const ANCHORED: usize = 20;
/// Impulses are found to this share of the largest.
const TOLERANCE: f64 = 1e-4;
/// How much contacts on shared vertices are held to the round before, in what they yield.
const HOLD: f64 = 0.05;
/// Newton steps in a round, and what they leave of the energy.
const MOST_STEPS: usize = 12;
const LEFT: f64 = 1e-11;
/// Factors are kept while slopes have changed by less than this, in units of 1/ω.
const KEPT: f64 = 0.1;
/// Sweeps over contacts that share vertices, and the share of the largest impulse to which they agree; of derivatives likewise.
const MOST_SWEEPS: usize = 400;
const SWEPT: f64 = 1e-6;
const TURNED: f64 = 1e-3;
/// Conjugate gradients in a Newton step, and what they leave of its energy.
const MOST_GRADIENTS: usize = 20;
const DESCENT: f64 = 1e-4;

#[derive(Clone, Copy)]
enum Which {
    Here,
    Trial,
}

/// A bound of the largest eigenvalue of a symmetric matrix: its own where it is a number times 1.
fn largest(m: DMat3) -> f64 {
    let row = |v: DVec3| v.abs().element_sum();
    row(m.x_axis).max(row(m.y_axis)).max(row(m.z_axis))
}

fn dot(a: &[Vector], b: &[Vector]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (0..6).map(|k| a[k] * b[k]).sum::<f64>()).sum()
}

impl Responder {
    /// Solves (1) to (3); returns δv of bodies. Impulses are in the rows. Names the node whose pivot failed.
    pub(crate) fn solve(&mut self, ground: &Ground<'_>, skeleton: &mut Skeleton) -> Result<&[Vector], usize> {
        let n = skeleton.nodes();
        let Responder { x, trial, step, residual, heading, product, divided, .. } = self;
        for list in [x, trial, step, residual, heading, product, divided] {
            list.clear();
            list.resize(n, [0.0; 6]);
        }
        for k in 0..self.rows.len() {
            self.prepare(ground, k);
        }
        (self.settled, self.factored) = (false, false);
        for round in 0..MOST_ROUNDS {
            self.newton(ground, skeleton)?;
            let (mut change, mut most) = (0.0f64, 0.0f64);
            for row in &mut self.rows {
                change = change.max(row.impulse.distance(row.before));
                most = most.max(row.impulse.length());
                row.before = row.impulse;
                if round < ANCHORED {
                    row.anchor = row.impulse;
                }
                if let Law::Push { friction } = row.law {
                    let bound = friction * row.normal.dot(row.impulse).max(0.0);
                    change = change.max((bound - row.bound).abs());
                    // half the way once it goes to and fro
                    row.bound = if round < WAVERING { bound } else { 0.5 * (row.bound + bound) };
                }
            }
            self.rounds = round as u32 + 1;
            if change <= TOLERANCE * most {
                self.settled = true;
                break;
            }
        }
        Ok(&self.x)
    }

    /// What a row yields, and whether it shares that with others.
    fn prepare(&mut self, ground: &Ground<'_>, k: usize) {
        let row = self.rows[k];
        let (mut own, mut is_shared) = (0.0, false);
        for &(v, share) in row.vertices() {
            let yields = ground.yields[v as usize];
            let most = largest(yields);
            own += share * share * most;
            let is_even = largest(yields - DMat3::from_diagonal(DVec3::splat(most))) <= 1e-9 * most;
            is_shared |= most > 0.0 && (self.shared[v as usize] > 1 || !is_even);
        }
        let row = &mut self.rows[k];
        row.is_shared = is_shared;
        row.hold = if is_shared { HOLD * own } else { 0.0 };
        row.omega = own + row.compliance + row.hold;
        if let Law::Push { friction } = row.law {
            row.bound = friction * row.normal.dot(row.start).max(0.0);
        }
    }

    /// Velocity of a row with its own impulse taken away.
    fn alone(&self, ground: &Ground<'_>, row: &Row) -> DVec3 {
        let mut c = row.free + (row.impulse - row.start) * row.compliance + (row.impulse - row.anchor) * row.hold
            - row.impulse * row.omega;
        for &(v, share) in row.vertices() {
            c += ground.yields[v as usize] * self.sums[v as usize] * share;
        }
        c
    }

    /// The impulses of (4) at velocities of bodies.
    fn answer(&mut self, ground: &Ground<'_>, which: Which) {
        for k in 0..self.rows.len() {
            let row = self.rows[k];
            let x = match which {
                Which::Here => &self.x,
                Which::Trial => &self.trial,
            };
            let arms = &self.arms[row.first as usize..row.last as usize];
            self.rows[k].free = row.bias + arms.iter().map(|arm| arm.velocity(&x[arm.body as usize])).sum::<DVec3>();
            row.vertices().iter().for_each(|&(v, _)| self.sums[v as usize] = DVec3::ZERO);
        }
        for row in &self.rows {
            for &(v, share) in row.vertices() {
                self.sums[v as usize] += (row.impulse - row.start) * share;
            }
        }
        for sweep in 0..MOST_SWEEPS {
            let (mut change, mut most) = (0.0f64, 0.0f64);
            for k in 0..self.rows.len() {
                let row = self.rows[k];
                if sweep > 0 && !row.is_shared {
                    continue;
                }
                let c = self.alone(ground, &row);
                let (impulse, derivative) = local(c, row.omega, row.normal, row.law, row.bound);
                let by = impulse - row.impulse;
                if row.is_shared {
                    change = change.max(by.length());
                }
                most = most.max(impulse.length());
                for &(v, share) in row.vertices() {
                    self.sums[v as usize] += by * share;
                }
                (self.rows[k].impulse, self.rows[k].derivative) = (impulse, derivative);
            }
            if change <= SWEPT * most {
                break;
            }
        }
    }

    /// How the impulses of (4) turn as bodies go along `heading`.
    fn turn(&mut self, ground: &Ground<'_>) {
        for k in 0..self.rows.len() {
            let row = self.rows[k];
            let arms = &self.arms[row.first as usize..row.last as usize];
            self.rows[k].rate = arms.iter().map(|arm| arm.velocity(&self.heading[arm.body as usize])).sum();
            self.rows[k].turn = DVec3::ZERO;
            row.vertices().iter().for_each(|&(v, _)| self.turns[v as usize] = DVec3::ZERO);
        }
        for sweep in 0..MOST_SWEEPS {
            let (mut change, mut most) = (0.0f64, 0.0f64);
            for k in 0..self.rows.len() {
                let row = self.rows[k];
                if sweep > 0 && !row.is_shared {
                    continue;
                }
                let mut c = row.rate + row.turn * (row.compliance + row.hold - row.omega);
                for &(v, share) in row.vertices() {
                    c += ground.yields[v as usize] * self.turns[v as usize] * share;
                }
                let turn = row.derivative * c;
                let by = turn - row.turn;
                if row.is_shared {
                    change = change.max(by.length());
                }
                most = most.max(turn.length());
                for &(v, share) in row.vertices() {
                    self.turns[v as usize] += by * share;
                }
                self.rows[k].turn = turn;
            }
            if change <= TURNED * most {
                break;
            }
        }
    }

    /// E of (5), and a size to measure it by. The rows answer.
    fn cost(&mut self, ground: &Ground<'_>, skeleton: &Skeleton, which: Which) -> (f64, f64) {
        self.answer(ground, which);
        let x = match which {
            Which::Here => &self.x,
            Which::Trial => &self.trial,
        };
        let moved = skeleton.base.energy(x, skeleton.bodies());
        let (mut sum, mut size) = (0.5 * moved, moved);
        for row in &self.rows {
            let by = row.impulse - row.start;
            sum -= row.free.dot(by) + 0.5 * row.compliance * by.length_squared();
            sum -= 0.5 * row.hold * row.impulse.distance_squared(row.anchor);
            size += row.omega * row.impulse.length_squared();
            for &(v, share) in row.vertices() {
                let v = v as usize;
                sum -= 0.5 * share * by.dot(ground.yields[v] * self.sums[v]);
            }
        }
        (sum, size)
    }

    /// Newton's method for (5), bounds and anchors kept.
    fn newton(&mut self, ground: &Ground<'_>, skeleton: &mut Skeleton) -> Result<(), usize> {
        let bodies = skeleton.bodies();
        let (mut here, mut size) = self.cost(ground, skeleton, Which::Here);
        for _ in 0..MOST_STEPS {
            self.step.fill([0.0; 6]);
            skeleton.base.subtract_product(&self.x, &mut self.step);
            let mut is_same = self.factored;
            for row in &self.rows {
                let arms = &self.arms[row.first as usize..row.last as usize];
                arms.iter().for_each(|arm| arm.pull(row.impulse - row.start, &mut self.step));
                let by = (row.derivative - row.slope).to_cols_array().into_iter().map(f64::abs).fold(0.0, f64::max);
                is_same &= by * row.omega <= KEPT;
            }
            self.step[bodies..].fill([0.0; 6]); // joints hold
            // Factors serve as long as contacts stay open, stuck or slipping the same way; what the step is worth is told below.
            if !is_same {
                skeleton.restore();
                for row in &mut self.rows {
                    row.slope = row.derivative;
                    if row.derivative != DMat3::ZERO {
                        add_stiffness(skeleton, &self.arms[row.first as usize..row.last as usize], -row.derivative);
                    }
                }
                skeleton.factor()?;
                self.factored = true;
                self.newton += 1;
            }
            if self.find_step(ground, skeleton) <= LEFT * size {
                break;
            }
            // half the way until it is less
            let mut share = 1.0;
            loop {
                for ((to, x), dx) in self.trial.iter_mut().zip(&self.x).zip(&self.step) {
                    *to = *x;
                    add_scaled(to, share, dx);
                }
                let (there, reached) = self.cost(ground, skeleton, Which::Trial);
                if there <= here + 1e-12 * reached {
                    (here, size) = (there, reached);
                    std::mem::swap(&mut self.x, &mut self.trial);
                    break;
                }
                share *= 0.5;
                if share < 1e-3 {
                    self.answer(ground, Which::Here);
                    return Ok(()); // rounding
                }
            }
        }
        Ok(())
    }

    /// Newton's step in place of the residual in `step`; returns the product of both.
    fn find_step(&mut self, ground: &Ground<'_>, skeleton: &mut Skeleton) -> f64 {
        let bodies = skeleton.bodies();
        self.residual.copy_from_slice(&self.step);
        skeleton.solve(&mut self.step);
        self.step[bodies..].fill([0.0; 6]);
        let first = dot(&self.residual, &self.step);
        if !self.rows.iter().any(|row| row.is_shared) {
            return first;
        }
        self.heading.copy_from_slice(&self.step);
        self.step.fill([0.0; 6]);
        let (mut left, mut sum) = (first, 0.0);
        for _ in 0..MOST_GRADIENTS {
            // product = −(M̂ + Jᵀ C J) heading
            self.turn(ground);
            self.product.fill([0.0; 6]);
            skeleton.base.subtract_product(&self.heading, &mut self.product);
            for row in &self.rows {
                let arms = &self.arms[row.first as usize..row.last as usize];
                arms.iter().for_each(|arm| arm.pull(row.turn, &mut self.product));
            }
            self.product[bodies..].fill([0.0; 6]);
            let curve = -dot(&self.heading, &self.product);
            if curve.is_nan() || curve <= 0.0 {
                break;
            }
            let far = left / curve;
            for i in 0..bodies {
                add_scaled(&mut self.step[i], far, &self.heading[i]);
                add_scaled(&mut self.residual[i], far, &self.product[i]);
            }
            sum += far * left;
            self.divided.copy_from_slice(&self.residual);
            skeleton.solve(&mut self.divided);
            self.divided[bodies..].fill([0.0; 6]);
            let next = dot(&self.residual, &self.divided);
            if next <= DESCENT * first {
                break;
            }
            let keep = next / left;
            for i in 0..bodies {
                let before = self.heading[i];
                self.heading[i] = self.divided[i];
                add_scaled(&mut self.heading[i], keep, &before);
            }
            left = next;
        }
        sum
    }

    /// c of (2) at the end, without what holds impulses to the round before.
    #[cfg(test)]
    pub(super) fn end_velocity(&self, ground: &Ground<'_>, row: &Row) -> DVec3 {
        let mut c = row.free + (row.impulse - row.start) * row.compliance;
        for &(v, share) in row.vertices() {
            c += ground.yields[v as usize] * self.sums[v as usize] * share;
        }
        c
    }
}
