//! The linear system of a correction and its solution by conjugate gradients in the sense of least squares.
//!
//! Each row asks for a change of an error by a motion `δ` of two bodies. Of all motions that come nearest to what the rows ask for, the one
//! of least `δᵀ N δ` is wanted [Faure 1998, §3.3], `N` being what resists (`inertia.rs`):
//!
//! ```text
//! min |J δ − b|,  of those  min δᵀ N δ
//! ```
//! Conjugate gradients on `Jᵀ J δ = Jᵀ b` with the inner product of `N` find it from `δ = 0`, redundant and contradictory rows included. (The
//! paper takes biconjugate gradients on `J M⁻¹ Jᵀ`, which do not end at the least squares when rows contradict each other:
//! `docs/papers.md`.)
//!
//! They take as many iterations as `J N⁻¹ Jᵀ` is badly conditioned: hundreds on long or branching characters. The same motion is also the
//! smallest in `Ñ = μ N + Jᵀ J`, for among the motions that come nearest `|J δ|` is the same. In the inner product of `Ñ` with μ small,
//! `Jᵀ J` is nearly the identity on what the rows see, and a few iterations are enough. `Ñ` couples bodies that share rows: it is
//! factored once for a linearisation.

use super::Linear;
use super::inertia::{Inertia, dot};
use crate::maths::block::{Block, Vector, add_scaled, from_twist, to_twist, to_wrench};
use crate::maths::sparse::{Ldl, Sparse};
use crate::maths::{Twist, Wrench};
use crate::model::Model;

/// Six numbers for each body, and six for the world that stay zero.
pub(super) type Motions = [Vector];

/// The number that stands for the world among the bodies.
pub(super) fn world(model: &Model) -> usize {
    model.bodies().len()
}

/// Rows that act on the same two bodies.
#[derive(Clone, Copy)]
struct Pair {
    a: u32,
    b: u32,
    /// One past its last row.
    end: u32,
}

/// When the iterations end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// Iterations at most.
    pub(super) iterations: u32,
    /// The rows are near enough when `|J δ − b|` is below this share of `|b|`…
    pub(super) share: f64,
    /// …or below this.
    pub(super) enough: f64,
}

/// Below this share of its start the slope `Jᵀ(J δ − b)` is zero to rounding: no motion comes nearer.
const FLAT: f64 = 1e-11;

/// Rounds in which multipliers are found: each takes what is off to a millionth or so.
const MULTIPLIER_ROUNDS: usize = 4;

/// Rows `J δ = b` with the iterates of their solution.
pub(super) struct Rows {
    pairs: Vec<Pair>,
    // By row.
    a: Vec<Vector>,
    b: Vec<Vector>,
    /// `b − J δ`
    residual: Vec<f64>,
    /// `J p`
    image: Vec<f64>,
    /// λ, c, and the residual while they are found.
    multipliers: Vec<f64>,
    asked: Vec<f64>,
    left: Vec<f64>,
    // By body, the world at the end.
    motion: Vec<Vector>,
    /// `Jᵀ(b − J δ)`
    slope: Vec<Vector>,
    /// `N⁻¹` of it.
    steepest: Vec<Vector>,
    search: Vec<Vector>,
    /// `Ñ`
    nearly: Sparse,
    factors: Ldl,
    /// By body: what a push answers with, see `stiffly`.
    answer: Vec<Vector>,
    /// μ of `Ñ` \[1/kg\].
    mu: f64,
    /// \[kg\]
    heaviest: f64,
}

/// μ times the largest mass: motions that cost a millionth of what it costs to move the heaviest body count in full.
const SHARE_OF_HEAVIEST: f64 = 1e-6;
/// μ times the smallest mass, at least: what the factors of `Ñ` can still tell apart.
const SHARE_OF_LIGHTEST: f64 = 1e-11;

impl Rows {
    pub(super) fn new(model: &Model) -> Rows {
        let by_body = || vec![[0.0; 6]; model.bodies().len() + 1];
        let nearly = Sparse::new(&vec![6; model.bodies().len()], &pairs(model));
        let masses = || model.bodies().iter().map(|body| body.mass);
        let (heaviest, lightest) = (masses().fold(0.0, f64::max), masses().fold(f64::INFINITY, f64::min));
        Rows {
            factors: Ldl::new(&nearly),
            nearly,
            answer: by_body(),
            heaviest,
            mu: (SHARE_OF_HEAVIEST / heaviest).max(SHARE_OF_LIGHTEST / lightest),
            pairs: Vec::new(),
            a: Vec::new(),
            b: Vec::new(),
            residual: Vec::new(),
            image: Vec::new(),
            multipliers: Vec::new(),
            asked: Vec::new(),
            left: Vec::new(),
            motion: by_body(),
            slope: by_body(),
            steepest: by_body(),
            search: by_body(),
        }
    }

    /// No rows.
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
        self.a.clear();
        self.b.clear();
        self.residual.clear();
    }

    /// The rows that follow act on these bodies.
    pub(super) fn between(&mut self, a: usize, b: usize) {
        self.pairs.push(Pair { a: a as u32, b: b as u32, end: self.a.len() as u32 });
    }

    /// `a·δ_a + b·δ_b = wanted`, all times `scale`; `b` counts for nothing when it is the world's.
    pub(super) fn push(&mut self, a: Twist, b: Twist, wanted: f64, scale: f64) {
        let world = self.motion.len() as u32 - 1;
        let pair = self.pairs.last_mut().expect("between was called");
        self.a.push(from_twist(a * scale));
        self.b.push(if pair.b == world { [0.0; 6] } else { from_twist(b * scale) });
        self.residual.push(wanted * scale);
        pair.end += 1;
    }

    /// `Ñ = μ N + Jᵀ J`, factored; tells whether it could be.
    fn factor(&mut self, inertia: &Inertia, mu: f64) -> bool {
        self.nearly.clear();
        inertia.add_to(&mut self.nearly, mu);
        let (mut row, world) = (0, self.motion.len() as u32 - 1);
        for pair in &self.pairs {
            let mut blocks = [Block::zeros(6, 6); 3];
            for i in row..pair.end as usize {
                let (a, b) = (&self.a[i], &self.b[i]);
                blocks[0].add_outer(a, a);
                blocks[1].add_outer(a, b);
                blocks[2].add_outer(b, b);
            }
            let (a, b) = (pair.a as usize, pair.b as usize);
            self.nearly.add(a, a, &blocks[0]);
            if pair.b != world {
                self.nearly.add(a, b, &blocks[1]);
                self.nearly.add(b, b, &blocks[2]);
            }
            row = pair.end as usize;
        }
        self.factors.factor(&self.nearly).is_ok()
    }

    /// `N⁻¹` or `Ñ⁻¹` of the slope; returns their product.
    fn resist(&mut self, inertia: &mut Inertia, factored: bool) -> f64 {
        if factored {
            let bodies = self.slope.len() - 1;
            self.steepest[..bodies].copy_from_slice(&self.slope[..bodies]);
            self.factors.solve(&mut self.steepest[..bodies]);
        } else {
            inertia.resist(&self.slope, &mut self.steepest);
        }
        self.slope.iter().zip(&self.steepest).map(|(s, z)| dot(s, z)).sum()
    }

    /// Biconjugate gradients on `J N⁻¹ Jᵀ λ = b`, `δ = N⁻¹ Jᵀ λ`. The matrix is its own transpose, so that the second of the two printed sequences is the first.
    fn solve_biconjugate(&mut self, inertia: &mut Inertia, stop: Stop) -> u32 {
        self.motion.fill([0.0; 6]);
        let rows = self.a.len();
        self.image.clear();
        self.image.resize(rows, 0.0);
        self.asked.clone_from(&self.residual); // p
        let mut left = square(&self.residual);
        let enough = (stop.share * stop.share * left).max(stop.enough * stop.enough);
        for iteration in 0..stop.iterations {
            std::mem::swap(&mut self.residual, &mut self.asked);
            self.find_slope();
            std::mem::swap(&mut self.residual, &mut self.asked);
            let curvature = self.resist(inertia, false);
            if left <= enough || !(curvature > 0.0 && curvature.is_finite()) {
                return iteration;
            }
            let alpha = left / curvature;
            self.search.copy_from_slice(&self.steepest);
            self.find_image();
            for (x, z) in self.motion.iter_mut().zip(&self.steepest) {
                add_scaled(x, alpha, z);
            }
            for (r, image) in self.residual.iter_mut().zip(&self.image) {
                *r -= alpha * image;
            }
            let last = left;
            left = square(&self.residual);
            for (p, r) in self.asked.iter_mut().zip(&self.residual) {
                *p = r + left / last * *p;
            }
        }
        stop.iterations
    }

    /// Solves from zero; returns the iterations done.
    pub(super) fn solve(&mut self, inertia: &mut Inertia, linear: Linear, stop: Stop) -> u32 {
        if linear == Linear::Biconjugate {
            return self.solve_biconjugate(inertia, stop);
        }
        let factored = linear == Linear::Factored && self.factor(inertia, self.mu);
        self.motion.fill([0.0; 6]);
        self.image.clear();
        self.image.resize(self.a.len(), 0.0);
        let mut left = square(&self.residual);
        let enough = (stop.share * stop.share * left).max(stop.enough * stop.enough);
        self.find_slope();
        let mut gamma = self.resist(inertia, factored);
        let flat = FLAT * FLAT * gamma;
        self.search.copy_from_slice(&self.steepest);
        for iteration in 0..stop.iterations {
            // The last: a direction that no row sees, or numbers beyond all bounds.
            let curvature = self.find_image();
            if left <= enough || gamma <= flat || !(curvature > 0.0 && curvature.is_finite() && gamma.is_finite()) {
                return iteration;
            }
            let alpha = gamma / curvature;
            for (x, p) in self.motion.iter_mut().zip(&self.search) {
                add_scaled(x, alpha, p);
            }
            left = 0.0;
            for (r, image) in self.residual.iter_mut().zip(&self.image) {
                *r -= alpha * image;
                left += *r * *r;
            }
            self.find_slope();
            let last = gamma;
            gamma = self.resist(inertia, factored);
            let beta = gamma / last;
            for (p, z) in self.search.iter_mut().zip(&self.steepest) {
                for k in 0..6 {
                    p[k] = z[k] + beta * p[k];
                }
            }
        }
        stop.iterations
    }

    /// Solves `(Jᵀ J + λ N) δ = Jᵀ b`; tells whether it could.
    pub(super) fn solve_damped(&mut self, inertia: &Inertia, lambda: f64) -> bool {
        let factored = self.factor(inertia, lambda);
        if factored {
            self.find_slope();
            self.search.copy_from_slice(&self.slope);
            let bodies = self.search.len() - 1;
            self.factors.solve(&mut self.search[..bodies]);
            self.image.resize(self.a.len(), 0.0);
            self.find_image();
            self.motion.copy_from_slice(&self.search);
            for (r, image) in self.residual.iter_mut().zip(&self.image) {
                *r -= image;
            }
        }
        factored
    }

    /// What rows ask for beyond these motions of the bodies: `b ← b − J D`.
    pub(super) fn foresee(&mut self, displacements: &[Twist]) {
        for (search, displacement) in self.search.iter_mut().zip(displacements) {
            *search = from_twist(*displacement);
        }
        *self.search.last_mut().expect("the world is there") = [0.0; 6];
        self.image.resize(self.a.len(), 0.0);
        self.find_image();
        for (b, image) in self.residual.iter_mut().zip(&self.image) {
            *b -= image;
        }
    }

    /// Adds these motions of the bodies to the motion found.
    pub(super) fn follow(&mut self, displacements: &[Twist]) {
        for (motion, displacement) in self.motion.iter_mut().zip(displacements) {
            add_scaled(motion, 1.0, &from_twist(*displacement));
        }
    }

    /// Finds the multipliers of the motion found, `N δ = Jᵀ λ`; tells whether it could. What is left of the rows stays as it is.
    ///
    /// δ is also the least of `½ |J δ − c|² + μ (½ δᵀ N δ − λᵀ J δ)` with c = J δ, whose solution has `λ ← λ + (c − J δ)/μ`: the method of multipliers, with
    /// the factors of `Ñ`. μ is small beside `J N⁻¹ Jᵀ`, so that few rounds do.
    pub(super) fn find_multipliers(&mut self, inertia: &Inertia) -> bool {
        self.multipliers.clear();
        if !self.factor(inertia, self.mu) {
            return false;
        }
        let (rows, bodies) = (self.a.len(), self.motion.len() - 1);
        self.search.copy_from_slice(&self.motion);
        self.image.resize(rows, 0.0);
        self.find_image();
        self.asked.clone_from(&self.image);
        self.multipliers.resize(rows, 0.0);
        std::mem::swap(&mut self.residual, &mut self.left);
        self.residual.clear();
        self.residual.resize(rows, 0.0);
        for _ in 0..MULTIPLIER_ROUNDS {
            for (r, (asked, multiplier)) in self.residual.iter_mut().zip(self.asked.iter().zip(&self.multipliers)) {
                *r = asked + self.mu * multiplier;
            }
            self.find_slope();
            self.search.copy_from_slice(&self.slope);
            self.factors.solve(&mut self.search[..bodies]);
            self.find_image();
            for (multiplier, (asked, image)) in self.multipliers.iter_mut().zip(self.asked.iter().zip(&self.image)) {
                *multiplier += (asked - image) / self.mu;
            }
        }
        std::mem::swap(&mut self.residual, &mut self.left);
        true
    }

    /// Factors `Ñ` for [`stiffly`](Rows::stiffly); tells whether it could be.
    pub(super) fn factor_stiff(&mut self, inertia: &Inertia) -> bool {
        self.factor(inertia, self.mu)
    }

    /// `x ← (N + JᵀJ/μ)⁻¹ x`: how bodies move by a push when rows keep all but a millionth of what they ask.
    pub(super) fn stiffly(&mut self, x: &mut [Vector]) {
        let bodies = x.len() - 1;
        self.factors.solve(&mut x[..bodies]);
        x.iter_mut().for_each(|x| x.iter_mut().for_each(|x| *x *= self.mu));
        x[bodies] = [0.0; 6];
    }

    /// Finds how bodies answer a push, see [`answer`](Rows::answer).
    pub(super) fn foresee_push(&mut self, push: &[Vector]) {
        let mut answer = std::mem::take(&mut self.answer);
        answer.copy_from_slice(push);
        self.stiffly(&mut answer);
        self.answer = answer;
    }

    /// How a body answers the last push that was foreseen.
    pub(super) fn answer(&self, body: usize) -> Twist {
        to_twist(&self.answer[body])
    }

    /// Adds the answer to that push to the motion, and to the multipliers, where they are known, what rows did for it: `−J x/μ`.
    pub(super) fn take_push(&mut self) {
        for (motion, answer) in self.motion.iter_mut().zip(&self.answer) {
            add_scaled(motion, 1.0, answer);
        }
        if self.multipliers.len() == self.a.len() {
            self.search.copy_from_slice(&self.answer);
            self.image.resize(self.a.len(), 0.0);
            self.find_image();
            for (multiplier, image) in self.multipliers.iter_mut().zip(&self.image) {
                *multiplier -= image / self.mu;
            }
        }
    }

    /// `Jᵀ λ` of the rows of a pair, on a and on b; nothing where no multipliers could be found.
    pub(super) fn pulls(&self, pair: usize) -> [Wrench; 2] {
        let first = pair.checked_sub(1).map_or(0, |before| self.pairs[before].end as usize);
        let rows = first..self.pairs[pair].end as usize;
        [&self.a, &self.b].map(|side| {
            let mut sum = [0.0; 6];
            for i in rows.clone() {
                let multiplier = self.multipliers.get(i).copied().unwrap_or(0.0);
                add_scaled(&mut sum, multiplier, &side[i]);
            }
            to_wrench(&sum)
        })
    }

    /// `|J δ − b|²` at the motion found.
    pub(super) fn left(&self) -> f64 {
        square(&self.residual)
    }

    /// λ to begin with \[1/kg\]: a hundredth of what would make a motion of the heaviest body cost as much as an open joint.
    pub(super) fn first_damping(&self) -> f64 {
        1e-2 / self.heaviest
    }

    /// λ below which nothing is damped \[1/kg\].
    pub(super) fn least_damping(&self) -> f64 {
        self.mu
    }

    /// `s = Jᵀ r`
    fn find_slope(&mut self) {
        self.slope.fill([0.0; 6]);
        let mut row = 0;
        for pair in &self.pairs {
            let (mut s_a, mut s_b) = (self.slope[pair.a as usize], self.slope[pair.b as usize]);
            for i in row..pair.end as usize {
                add_scaled(&mut s_a, self.residual[i], &self.a[i]);
                add_scaled(&mut s_b, self.residual[i], &self.b[i]);
            }
            (self.slope[pair.a as usize], self.slope[pair.b as usize]) = (s_a, s_b);
            row = pair.end as usize;
        }
    }

    /// `J p`; returns `|J p|²`.
    fn find_image(&mut self) -> f64 {
        let (mut row, mut sum) = (0, 0.0);
        for pair in &self.pairs {
            let (p_a, p_b) = (self.search[pair.a as usize], self.search[pair.b as usize]);
            for i in row..pair.end as usize {
                let image = dot(&self.a[i], &p_a) + dot(&self.b[i], &p_b);
                self.image[i] = image;
                sum += image * image;
            }
            row = pair.end as usize;
        }
        sum
    }

    /// The motion found, of one body.
    pub(super) fn motion(&self, body: usize) -> Twist {
        to_twist(&self.motion[body])
    }
}

/// The bodies that share a joint or a spring.
pub(super) fn pairs(model: &Model) -> Vec<(usize, usize)> {
    let joints = model.joints().iter().map(|joint| (joint.child, joint.parent));
    let anchors = model.anchor_springs().iter().map(|spring| (spring.a, spring.b));
    let flesh = crate::flesh::together::Law::pairs(model);
    joints.chain(anchors).filter_map(|(a, b)| Some((a.index(), b?.index()))).chain(flesh).collect()
}

fn square(list: &[f64]) -> f64 {
    list.iter().map(|x| x * x).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maths::rotation::turned_inertia;
    use crate::model::{BodySpec, JointMask, JointSpec, ModelBuilder, Shape, State};
    use glam::{DQuat, DVec3};
    use nalgebra::{DMatrix, DVector};

    /// Numbers without order, in (−1, 1).
    fn noise(k: usize) -> f64 {
        let x = (12.9898 * k as f64 + 4.1).sin() * 43_758.545;
        2.0 * (x - x.floor()) - 1.0
    }

    fn some_vector(k: usize) -> DVec3 {
        DVec3::new(noise(3 * k), noise(3 * k + 1), noise(3 * k + 2))
    }

    /// Bodies of different masses in a ring.
    fn ring(bodies: usize) -> (Model, State) {
        let mut builder = ModelBuilder::new();
        for i in 0..bodies {
            let turned = DQuat::from_scaled_axis(some_vector(i));
            let pose = crate::maths::Pose::new(turned, some_vector(50 + i));
            let shape = Shape::cuboid(0.2, 0.3, 0.1 + 0.1 * i as f64);
            builder.body(BodySpec::new(format!("{i}")).shape(shape, 1000.0).pose(pose));
        }
        for i in 0..bodies {
            let (a, b) = (format!("{i}"), format!("{}", (i + 1) % bodies));
            builder.joint(JointSpec::new(format!("{i}"), JointMask::BALL, a.as_str(), b.as_str()));
        }
        let model = builder.build().unwrap();
        let state = model.start();
        (model, state)
    }

    /// Rows with noise: `count` between each two neighbours and as many to the world on the first body, every third twice with
    /// another wish, so that they contradict each other.
    fn fill(rows: &mut Rows, bodies: usize, count: usize) {
        let mut k = 1000;
        for i in 0..=bodies {
            let pair = if i == bodies { (0, bodies) } else { (i, (i + 1) % bodies) };
            rows.between(pair.0, pair.1);
            for n in 0..count {
                let twist = |k: usize| Twist::new(some_vector(k), some_vector(k + 1));
                let times = if n % 3 == 0 { 2 } else { 1 };
                for again in 0..times {
                    rows.push(twist(k), twist(k + 2), noise(7 * k + again), 1.0);
                }
                k += 4;
            }
        }
    }

    /// `W (J W)⁺ b` with `W Wᵀ = M⁻¹`, and the distance `|J δ − b|` it leaves.
    fn dense(model: &Model, state: &State, rows: &Rows) -> (DVector<f64>, f64) {
        let n = 6 * model.bodies().len();
        let mut mass = DMatrix::zeros(n, n);
        for (i, body) in model.bodies().iter().enumerate() {
            let inertia = turned_inertia(state.bodies[i].orientation, body.inertia);
            for r in 0..3 {
                mass[(6 * i + r, 6 * i + r)] = body.mass;
                for c in 0..3 {
                    mass[(6 * i + 3 + r, 6 * i + 3 + c)] = inertia.col(c)[r];
                }
            }
        }
        let w = mass.cholesky().unwrap().l().try_inverse().unwrap().transpose();
        let mut j = DMatrix::zeros(rows.a.len(), n);
        let mut row = 0;
        for pair in &rows.pairs {
            for i in row..pair.end as usize {
                for k in 0..6 {
                    j[(i, 6 * pair.a as usize + k)] = rows.a[i][k];
                    if (pair.b as usize) < model.bodies().len() {
                        j[(i, 6 * pair.b as usize + k)] = rows.b[i][k];
                    }
                }
            }
            row = pair.end as usize;
        }
        let b = DVector::from_column_slice(&rows.residual);
        let x = (&j * &w).pseudo_inverse(1e-10).unwrap() * &b;
        let motion = w * x;
        let left = (&j * &motion - b).norm();
        (motion, left)
    }

    #[test]
    fn the_motion_is_the_least_of_those_that_come_nearest() {
        // Fewer rows than motions (consistent but for the pairs), and more.
        for (bodies, count) in [(2, 2), (5, 2), (5, 3), (4, 6), (9, 5)] {
            let (model, state) = ring(bodies);
            let mut inertia = Inertia::new(&model);
            inertia.turn(&state, 0.0);
            for linear in [Linear::Factored, Linear::Plain] {
                let mut rows = Rows::new(&model);
                fill(&mut rows, bodies, count);
                let (expected, left) = dense(&model, &state, &rows);
                let iterations = rows.solve(&mut inertia, linear, Stop { iterations: 2000, share: 0.0, enough: 0.0 });
                let found = square(&rows.residual).sqrt();
                println!("{bodies} bodies, {count} rows, {linear:?}: {iterations} iterations, |Jδ − b| {found:.9}");
                assert!(left > 0.1, "the rows contradict each other");
                assert!((found - left).abs() < 1e-9 * left, "{found} against {left}");
                let size = expected.norm();
                for i in 0..bodies {
                    for k in 0..6 {
                        // The slope is driven to 1e-11 of its start; the condition of these rows is below 1e4.
                        let off = (rows.motion[i][k] - expected[6 * i + k]).abs();
                        assert!(
                            off < 1e-6 * size,
                            "{linear:?} {bodies} {count}: body {i}, {k}: off by {off:e} of {size}"
                        );
                    }
                }
                if linear == Linear::Factored {
                    assert!(iterations <= 8, "{iterations}");
                }
            }
        }
    }
}
