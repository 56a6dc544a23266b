//! One-sided rows: contacts with Coulomb friction, and hard limits of joints.
//!
//! A contact has three rows G in the axes (normal, tangent, tangent). With σ = G v + s the velocity at which its sides part (s holds the gap, or the
//! velocity of a bounce) and f its impulse on side a, Signorini's and Coulomb's laws are
//!
//! ```text
//! σ_N ≥ 0,  f_N ≥ 0,  σ_N f_N = 0;      |f_T| ≤ μ f_N,   and where it slides   f_T = −μ f_N σ_T/|σ_T|              (4)
//! ```
//! An augmented Lagrangian makes f a function of v; f̄ is the impulse of the last round and r a weight:
//!
//! ```text
//! gripping   f(v) = Π( f̄ − r σ ),                             Π onto the cone |f_T| ≤ μ f_N
//! sliding    f_N(v) = max(0, f̄_N − r σ_N),   f_T(v) = Π( f̄_T − r σ_T ),   Π onto the disc |f_T| ≤ μ f̄_N         (5)
//! ```
//! Both are gradients of convex functions: Newton's method on the balance of momenta with f(v) in it has the symmetric matrix
//! `A + r Gᵀ P G`, P the derivative of the projection, and with a line search it cannot fail. Then f̄ ← f, until f̄ stays. Both have the solutions
//! of (4) as their fixed points but for one: the cone makes what slides part at the speed μ |σ_T|. So a contact that is found on the edge of the cone
//! goes on as sliding. A limit is a contact without friction whose tangent rows are zero.
//!
//! Rolling resistance has no normal row; its tangents are the relative rotation of two bodies that touch, times the model's size so that σ is a velocity
//! too, and its impulse stays within a disc of given radius: that of the normal forces of the part before, so that what is asked for is convex.

use crate::contact::{Contact, ContactKey, Other};
use crate::forces::Stop;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, to_wrench};
use crate::maths::sparse::{Slot, Sparse};
use crate::maths::{Twist, Wrench};
use crate::model::{BodyId, ContactMemory, Model, State};
use glam::{DMat3, DVec3};

/// `r` as a multiple of the inertia that a row meets, its bodies being free; and what it grows by from round to round. Small, Newton needs few
/// passes a round where contacts change between gripping and sliding; large, heavy on light needs few rounds.
const WEIGHT: f64 = 20.0;
const GROWTH: f64 = 3.0;
/// The largest `r`: beyond it the rounding of gaps would be felt in the impulses.
const LARGEST_WEIGHT: f64 = 2e4;

/// An impulse at this share of the cone's edge is on it; one remembered from the last part slid.
const AT_EDGE: f64 = 1.0 - 1e-9;
const SLID: f64 = 0.99;

/// How much less it matters that the cone lets go of something slowly than that it passes through.
const LIFTED: f64 = 0.02;

/// Rolling resistance between two bodies that touch, or of one on an obstacle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roll {
    pub(super) a: BodyId,
    pub(super) b: Other,
    pub(super) key: ContactKey,
    /// The largest moment in either half of the part \[N·m\]: normal forces of the part before times their levers.
    pub(super) first: f64,
    pub(super) second: f64,
    /// Mean normal, world axes.
    pub(super) normal: DVec3,
    /// Angular velocity of the obstacle \[rad/s\].
    pub(super) spin: DVec3,
}

impl Roll {
    /// That of one contact, whose force in the part before is remembered; none when it did not push.
    pub(super) fn of(contact: &Contact, memory: &ContactMemory) -> Option<Roll> {
        let moment = |force: DVec3| contact.rolling * contact.normal.dot(force).max(0.0);
        let (first, second) = (moment(memory.first), moment(memory.second));
        let (a, b) = (contact.a, contact.b);
        let (normal, spin) = (contact.normal * (first + second), contact.obstacle_spin);
        (first + second > 0.0).then_some(Roll { a, b, key: ContactKey::rolling(a, b), first, second, normal, spin })
    }

    /// Adds that of another contact of the same two.
    pub(super) fn add(&mut self, other: &Roll) {
        self.first += other.first;
        self.second += other.second;
        self.normal += other.normal;
    }

    fn body_b(&self) -> Option<usize> {
        match self.b {
            Other::Body(b) => Some(b.index()),
            Other::Obstacle(_) => None,
        }
    }
}

/// Which of (5).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    Grips,
    /// Within a disc of this radius, μ f̄_N.
    Slides(f64),
    /// Within the disc μ f_N of its own normal impulse: (4) itself, which is no gradient.
    Coulomb,
    /// Rolling resistance, within a disc of this radius.
    Rolls(f64),
}

/// One contact, or one limit that may be reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) a: usize,
    pub(super) b: Option<usize>,
    /// Normal and tangents, world axes.
    axes: DMat3,
    /// Rows of a and b: velocities become those of (4).
    rows_a: [Vector; 3],
    rows_b: [Vector; 3],
    /// The normal rows as v moves the gap: those of the end of a drift.
    ahead_a: Vector,
    ahead_b: Vector,
    /// Where the blocks of a, b and both are.
    at: [Slot; 3],
    friction: f64,
    kept_friction: f64,
    /// The velocity that a unit impulse causes, its bodies being free.
    softness: f64,
    /// r
    weight: f64,
    /// s
    pub(super) shift: [f64; 3],
    law: Law,
    /// f̄
    pub(super) held: [f64; 3],
    /// σ, f and P at the present v.
    sigma: [f64; 3],
    pub(super) force: [f64; 3],
    stiff: [[f64; 3]; 3],
    /// What (7) adds to f̄ whatever v does.
    jump: [f64; 3],
    /// G d along the line that is searched.
    along: [f64; 3],
    /// Whether it takes part at all.
    pub(super) acts: bool,
}

impl Touch {
    /// A contact; its rows are set by [`place`](Self::place).
    pub(super) fn contact(contact: &Contact, matrix: &Sparse) -> Touch {
        let b = match contact.b {
            Other::Body(id) => Some(id.index()),
            Other::Obstacle(_) => None,
        };
        let (u, w) = contact.normal.any_orthonormal_pair();
        let axes = DMat3::from_cols(contact.normal, u, w);
        Touch::new(contact.a.index(), b, axes, contact.friction, matrix)
    }

    /// An end of a hard limit; its row is set by [`place_stop`](Self::place_stop). Its impulse is along X.
    pub(super) fn stop(stop: &Stop, matrix: &Sparse) -> Touch {
        Touch::new(stop.child.index(), stop.parent.map(|b| b.index()), DMat3::IDENTITY, 0.0, matrix)
    }

    /// Rolling resistance about the tangents of a normal; its rows are set by [`place_roll`](Self::place_roll).
    pub(super) fn roll(roll: &Roll, matrix: &Sparse) -> Touch {
        let (u, w) = roll.normal.any_orthonormal_pair();
        let axes = DMat3::from_cols(roll.normal, u, w);
        Touch { law: Law::Rolls(0.0), ..Touch::new(roll.a.index(), roll.body_b(), axes, 0.0, matrix) }
    }

    fn new(a: usize, b: Option<usize>, axes: DMat3, friction: f64, matrix: &Sparse) -> Touch {
        Touch {
            a,
            b,
            axes,
            rows_a: [[0.0; 6]; 3],
            rows_b: [[0.0; 6]; 3],
            ahead_a: [0.0; 6],
            ahead_b: [0.0; 6],
            at: [matrix.slot(a, a), matrix.slot(b.unwrap_or(a), b.unwrap_or(a)), matrix.slot(a, b.unwrap_or(a))],
            friction,
            kept_friction: friction,
            softness: 0.0,
            weight: 0.0,
            shift: [0.0; 3],
            law: Law::Grips,
            held: [0.0; 3],
            sigma: [0.0; 3],
            force: [0.0; 3],
            stiff: [[0.0; 3]; 3],
            jump: [0.0; 3],
            along: [0.0; 3],
            acts: true,
        }
    }

    /// Rows for the levers of both sides, and the weight that fits them.
    pub(super) fn place(&mut self, model: &Model, state: &State, lever_a: DVec3, lever_b: DVec3) {
        let mut softness = 0.0;
        let rows = |lever: DVec3, sign: f64| {
            std::array::from_fn(|k| {
                let t = self.axes.col(k) * sign;
                from_twist(Twist::new(t, lever.cross(t)))
            })
        };
        (self.rows_a, self.rows_b) = (rows(lever_a, 1.0), rows(lever_b, -1.0));
        (self.ahead_a, self.ahead_b) = (self.rows_a[0], self.rows_b[0]);
        for (body, lever) in [(Some(self.a), lever_a), (self.b, lever_b)] {
            let Some(i) = body else { continue };
            let (body, s) = (&model.bodies()[i], &state.bodies[i]);
            // trace of r× I⁻¹ r×ᵀ
            let q = s.orientation.conjugate();
            let inverse = body.inertia.inverse();
            let turns = (0..3).map(|k| {
                let t = q * lever.cross(self.axes.col(k));
                t.dot(inverse * t)
            });
            softness += 1.0 / body.mass + turns.sum::<f64>() / 3.0;
        }
        (self.softness, self.weight) = (softness, WEIGHT / softness);
    }

    /// The row of a limit, and the weight that fits it.
    pub(super) fn place_stop(&mut self, model: &Model, state: &State, stop: &Stop) {
        self.turn_stop(stop);
        let mut softness = 0.0;
        for (body, row) in [(Some(self.a), stop.a), (self.b, stop.b)] {
            let Some(i) = body else { continue };
            let (body, s) = (&model.bodies()[i], &state.bodies[i]);
            let turn = s.orientation.conjugate() * row.angular;
            softness += row.linear.length_squared() / body.mass + turn.dot(body.inertia.inverse() * turn);
        }
        self.softness = softness;
        self.weight = if softness > 0.0 { WEIGHT / softness } else { 0.0 };
    }

    /// The rows of rolling resistance, as velocities at this length, and the weight that fits them.
    pub(super) fn place_roll(&mut self, model: &Model, state: &State, length: f64) {
        let mut softness = 0.0;
        for (body, rows, sign) in [(Some(self.a), &mut self.rows_a, 1.0), (self.b, &mut self.rows_b, -1.0)] {
            let Some(i) = body else { continue };
            let (body, s) = (&model.bodies()[i], &state.bodies[i]);
            let inverse = body.inertia.inverse();
            for k in [1, 2] {
                let turn = self.axes.col(k) * length;
                rows[k] = from_twist(Twist::new(DVec3::ZERO, turn * sign));
                let turn = s.orientation.conjugate() * turn;
                softness += 0.5 * turn.dot(inverse * turn);
            }
        }
        (self.softness, self.weight) = (softness, WEIGHT / softness);
    }

    /// Starts rolling resistance from an impulse in world axes, within a disc of this radius, against an other side with these velocities.
    pub(super) fn start_rolling(&mut self, impulse: DVec3, radius: f64, velocity: DVec3) {
        let [_, t, u] = (self.axes.transpose() * impulse).to_array();
        (self.held, _) = onto_disc([0.0, t, u], radius);
        self.force = self.held;
        self.law = Law::Rolls(radius);
        let [_, t, u] = (self.axes.transpose() * -velocity).to_array();
        self.shift = [0.0, t, u];
        self.acts = radius > 0.0;
    }

    /// The row of a limit for other poses.
    pub(super) fn turn_stop(&mut self, stop: &Stop) {
        self.rows_a[0] = from_twist(stop.a);
        self.rows_b[0] = from_twist(stop.b);
        (self.ahead_a, self.ahead_b) = (self.rows_a[0], self.rows_b[0]);
    }

    fn rows_times(&self, v: &[Vector]) -> [f64; 3] {
        self.rows_times_of(|body| v[body])
    }

    fn rows_times_of(&self, v: impl Fn(usize) -> Vector) -> [f64; 3] {
        let (a, b) = (v(self.a), self.b.map(v));
        std::array::from_fn(|k| dot(&self.rows_a[k], &a) + b.as_ref().map_or(0.0, |b| dot(&self.rows_b[k], b)))
    }

    /// How fast its sides part along the normal at v, the other side of a contact with an obstacle standing still.
    pub(super) fn parting(&self, v: &[Vector]) -> f64 {
        dot(&self.rows_a[0], &v[self.a]) + self.b.map_or(0.0, |b| dot(&self.rows_b[0], &v[b]))
    }

    /// Sets s so that σ_N at v is this: the gap that v leads to, divided by h.
    pub(super) fn set_gap(&mut self, rate: f64, v: &[Vector]) {
        self.shift[0] = rate - self.parting(v);
    }

    /// σ is the velocity against an other side that moves.
    pub(super) fn move_other_side(&mut self, velocity: DVec3) {
        self.shift = (self.axes.transpose() * -velocity).to_array();
    }

    /// σ, f and P at v.
    pub(super) fn evaluate(&mut self, v: &[Vector]) {
        let parting = self.rows_times(v);
        self.sigma = std::array::from_fn(|k| parting[k] + self.shift[k]);
        (self.force, self.stiff) = self.project(self.wanted(0.0));
    }

    /// How fast its sides move against each other with these velocities of bodies.
    pub(super) fn speed(&self, v: impl Fn(usize) -> Vector) -> f64 {
        (DVec3::from_array(self.rows_times_of(v)) + DVec3::from_array(self.shift)).length()
    }

    /// What is projected in (5), `share` along the line.
    fn wanted(&self, share: f64) -> [f64; 3] {
        std::array::from_fn(|k| self.held[k] - self.weight * (self.sigma[k] + share * self.along[k]))
    }

    fn project(&self, x: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        match self.law {
            Law::Grips => onto_cone(x, self.friction),
            Law::Slides(radius) | Law::Rolls(radius) => onto_disc(x, radius),
            Law::Coulomb => onto_coulomb(x, self.friction),
        }
    }

    /// `Gᵀ f`, its impulses on both sides.
    pub(super) fn impulses(&self) -> [Wrench; 2] {
        [&self.rows_a, &self.rows_b].map(|rows| {
            let mut sum = [0.0; 6];
            rows.iter().zip(self.force).for_each(|(row, f)| add_scaled(&mut sum, f, row));
            to_wrench(&sum)
        })
    }

    /// Adds `scale Gᵀ f` to the impulses of its bodies.
    pub(super) fn push(&self, scale: f64, x: &mut [Vector]) {
        for k in 0..3 {
            add_scaled(&mut x[self.a], scale * self.force[k], &self.rows_a[k]);
            if let Some(b) = self.b {
                add_scaled(&mut x[b], scale * self.force[k], &self.rows_b[k]);
            }
        }
    }

    /// Adds `r Gᵀ P G`.
    pub(super) fn stiffen(&self, matrix: &mut Sparse) {
        if self.stiff == [[0.0; 3]; 3] {
            return;
        }
        let block = |left: &[Vector; 3], right: &[Vector; 3]| {
            let mut out = Block::zeros(6, 6);
            for (i, row) in left.iter().enumerate() {
                let mut sum = [0.0; 6];
                for (j, other) in right.iter().enumerate() {
                    add_scaled(&mut sum, self.weight * self.stiff[i][j], other);
                }
                out.add_outer(row, &sum);
            }
            out
        };
        matrix.add_to(self.at[0], &block(&self.rows_a, &self.rows_a));
        if self.b.is_some() {
            matrix.add_to(self.at[1], &block(&self.rows_b, &self.rows_b));
            matrix.add_to(self.at[2], &block(&self.rows_a, &self.rows_b));
        }
    }

    /// From here on its law is (4) itself, from the present impulse.
    pub(super) fn begin_coulomb(&mut self) {
        if !matches!(self.law, Law::Rolls(_)) {
            self.law = Law::Coulomb;
        }
        self.held = self.force;
        self.weight = if self.softness > 0.0 { WEIGHT / self.softness } else { 0.0 };
    }

    /// The linear law that Newton's method takes for `f = Π(f − r σ)` at f̄ and v, [`stiff`](Self::stiff) and `force` being Π and its derivative P there:
    ///
    /// ```text
    /// (1 − P + ε P) δf = Π − f̄ − r P G δv,      so   δf = jump − S G δv                                          (7)
    /// ```
    /// ε gives what grips, and what is pressed, the stiffness of the largest weight; without it redundant contacts would have no solution.
    pub(super) fn linearise(&mut self) {
        if self.weight == 0.0 {
            (self.jump, self.stiff) = ([0.0; 3], [[0.0; 3]; 3]);
            return;
        }
        let epsilon = self.weight * self.softness / LARGEST_WEIGHT;
        let p = DMat3::from_cols_array_2d(&self.stiff).transpose();
        let q = (DMat3::IDENTITY - p * (1.0 - epsilon)).inverse();
        let rest = DVec3::from(self.force) - DVec3::from(self.held);
        self.jump = (q * rest).to_array();
        self.stiff = (q * p).transpose().to_cols_array_2d();
    }

    /// Adds `Gᵀ f̄`, or with the jump of (7) `Gᵀ (f̄ + jump)`, to the impulses of its bodies.
    pub(super) fn push_held(&self, with_jump: bool, x: &mut [Vector]) {
        for k in 0..3 {
            let f = self.held[k] + if with_jump { self.jump[k] } else { 0.0 };
            add_scaled(&mut x[self.a], f, &self.rows_a[k]);
            if let Some(b) = self.b {
                add_scaled(&mut x[b], f, &self.rows_b[k]);
            }
        }
    }

    /// Adds `Gᵀ S G`, which is not symmetric: `below` and `above` are its halves as [`Lu`](crate::maths::sparse::Lu) takes them.
    pub(super) fn stiffen_halves(&self, below: &mut Sparse, above: &mut Sparse) {
        if self.stiff == [[0.0; 3]; 3] {
            return;
        }
        let block = |left: &[Vector; 3], right: &[Vector; 3]| {
            let mut out = Block::zeros(6, 6);
            for (i, row) in left.iter().enumerate() {
                let mut sum = [0.0; 6];
                for (j, other) in right.iter().enumerate() {
                    add_scaled(&mut sum, self.weight * self.stiff[i][j], other);
                }
                out.add_outer(row, &sum);
            }
            out
        };
        let (ahead_a, ahead_b) = self.rows_ahead();
        below.add_to(self.at[0], &block(&self.rows_a, &ahead_a));
        if let Some(b) = self.b {
            below.add_to(self.at[1], &block(&self.rows_b, &ahead_b));
            let (ab, ba) = (block(&self.rows_a, &ahead_b), block(&self.rows_b, &ahead_a).transposed());
            let (lower, upper) = if self.a > b { (ab, ba) } else { (ba, ab) };
            below.add_to(self.at[2], &lower);
            above.add_to(self.at[2], &upper);
        }
    }

    /// The rows by which v moves σ.
    fn rows_ahead(&self) -> ([Vector; 3], [Vector; 3]) {
        let ([_, t_a, u_a], [_, t_b, u_b]) = (self.rows_a, self.rows_b);
        ([self.ahead_a, t_a, u_a], [self.ahead_b, t_b, u_b])
    }

    /// Sets the rows by which v moves the gap.
    pub(super) fn set_ahead(&mut self, a: Twist, b: Twist) {
        (self.ahead_a, self.ahead_b) = (from_twist(a), from_twist(b));
    }

    /// Its normal, world axes.
    pub(super) fn normal(&self) -> DVec3 {
        self.axes.x_axis
    }

    /// Follows (7) along the step d of the bodies.
    pub(super) fn follow_law(&mut self, d: &[Vector]) {
        let mut along = self.rows_times(d);
        along[0] = dot(&self.ahead_a, &d[self.a]) + self.b.map_or(0.0, |b| dot(&self.ahead_b, &d[b]));
        for i in 0..3 {
            let taken: f64 = (0..3).map(|j| self.stiff[i][j] * along[j]).sum();
            self.along[i] = self.jump[i] - self.weight * taken;
            self.held[i] += self.along[i];
        }
    }

    /// Goes back by this share of the step that [`follow_law`](Self::follow_law) made.
    pub(super) fn go_back(&mut self, share: f64) {
        (0..3).for_each(|k| self.held[k] -= share * self.along[k]);
    }

    /// Takes the impulse of Newton's method as the law has it: what parts gives none at all, not one of the size of what is missing. Rounds may go on from it.
    pub(super) fn end_coulomb(&mut self) {
        self.held = self.force;
        self.law = self.law_of_force();
    }

    /// Which of (5) an impulse begins with.
    fn law_of_force(&self) -> Law {
        if let Law::Rolls(radius) = self.law {
            return Law::Rolls(radius);
        }
        if self.is_at_edge(SLID) { Law::Slides(self.friction * self.force[0]) } else { Law::Grips }
    }

    /// Makes ready to search along d; returns `r (G d)ᵀ P (G d)`.
    pub(super) fn aim(&mut self, d: &[Vector]) -> f64 {
        self.along = self.rows_times(d);
        let mut sum = 0.0;
        for i in 0..3 {
            for j in 0..3 {
                sum += self.along[i] * self.stiff[i][j] * self.along[j];
            }
        }
        self.weight * sum
    }

    /// `(G d)ᵀ f` at `share` along the line.
    pub(super) fn power_along(&self, share: f64) -> f64 {
        let (force, _) = self.project(self.wanted(share));
        (0..3).map(|k| self.along[k] * force[k]).sum()
    }

    /// How far (4) is from holding, as a velocity; friction may differ from it by `accuracy`, a share of its size.
    pub(super) fn off(&self, accuracy: f64) -> f64 {
        let [n, t, u] = self.force;
        let change = DVec3::new(n - self.held[0], t - self.held[1], u - self.held[2]).length();
        let edge = match self.law {
            // The cone lets go of what slides: it is to go on as sliding.
            Law::Grips if self.is_at_edge(AT_EDGE) => {
                LIFTED * self.friction * (self.sigma[1] * self.sigma[1] + self.sigma[2] * self.sigma[2]).sqrt()
            }
            Law::Grips | Law::Coulomb | Law::Rolls(_) => 0.0,
            Law::Slides(radius) => {
                let wrong = (radius - self.friction * n).abs() * self.softness;
                if wrong > accuracy * self.friction * n * self.softness { wrong } else { 0.0 }
            }
        };
        if self.weight > 0.0 { change / self.weight + edge } else { 0.0 }
    }

    /// Whether the impulse is on the edge of the cone.
    fn is_at_edge(&self, share: f64) -> bool {
        let [n, t, u] = self.force;
        self.friction > 0.0 && n > 0.0 && (t * t + u * u).sqrt() >= share * self.friction * n
    }

    /// The next round: f̄ ← f.
    pub(super) fn next_round(&mut self) {
        self.held = self.force;
        self.weight = (self.weight * GROWTH).min(LARGEST_WEIGHT / self.softness);
        if self.law == Law::Grips && self.is_at_edge(AT_EDGE) {
            self.law = Law::Slides(self.friction * self.force[0]);
        }
    }

    /// The radius of its disc and what the law asks it to be, both as velocities that such an impulse causes; `None` unless it slides.
    pub(super) fn disc(&self) -> Option<[f64; 2]> {
        match self.law {
            Law::Grips | Law::Coulomb | Law::Rolls(_) => None,
            Law::Slides(radius) => Some([radius * self.softness, self.friction * self.force[0] * self.softness]),
        }
    }

    /// Sets the radius of its disc, as a velocity.
    pub(super) fn set_disc(&mut self, radius: f64) {
        self.law = Law::Slides(radius.max(0.0) / self.softness);
    }

    /// Starts from nothing, as if there were no friction, until [`restore_friction`](Self::restore_friction).
    pub(super) fn start_without_friction(&mut self) {
        (self.kept_friction, self.friction) = (self.friction, 0.0);
        self.start_from(DVec3::ZERO);
    }

    pub(super) fn restore_friction(&mut self) {
        self.friction = self.kept_friction;
    }

    /// A touch that did not take part gave nothing.
    pub(super) fn forget_idle(&mut self) {
        if !self.acts {
            self.force = [0.0; 3];
        }
    }

    /// Starts from an impulse in world axes.
    pub(super) fn start_from(&mut self, impulse: DVec3) {
        let local = self.axes.transpose() * impulse;
        (self.held, _) = onto_cone(local.to_array(), self.friction);
        self.force = self.held;
        self.law = self.law_of_force();
    }

    /// A new contact that slides faster than it could be stopped by the friction of its own arrest slides, first without friction. The cone would
    /// throw it off.
    pub(super) fn guess_sliding(&mut self) {
        let [n, t, u] = self.sigma;
        if self.friction > 0.0 && self.held == [0.0; 3] && (t * t + u * u).sqrt() > self.friction * -n {
            self.law = Law::Slides(0.0);
        }
    }

    /// The impulse on side a, world axes.
    pub(super) fn impulse(&self) -> DVec3 {
        self.axes * DVec3::from(self.force)
    }
}

fn dot(x: &Vector, y: &Vector) -> f64 {
    (x[0] * y[0] + x[1] * y[1]) + (x[2] * y[2] + x[3] * y[3]) + (x[4] * y[4] + x[5] * y[5])
}

/// The nearest impulse in the cone `|t| ≤ μ n`, and the derivative of it.
///
/// ```text
/// |t| ≤ μ n:   x                  μ |t| ≤ −n:   0
/// else:        n' (1, μ e),       n' = (n + μ |t|) / (1 + μ²),   e = t/|t|
/// ```
fn onto_cone([n, t, u]: [f64; 3], friction: f64) -> ([f64; 3], [[f64; 3]; 3]) {
    if friction == 0.0 {
        return if n > 0.0 {
            ([n, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]])
        } else {
            ([0.0; 3], [[0.0; 3]; 3])
        };
    }
    let size = (t * t + u * u).sqrt();
    if size <= friction * n {
        return ([n, t, u], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }
    if friction * size <= -n {
        return ([0.0; 3], [[0.0; 3]; 3]);
    }
    let m = friction;
    let share = 1.0 / (1.0 + m * m);
    let normal = (n + m * size) * share;
    let e = [t / size, u / size];
    let turn = m * normal / size;
    let stiff = [
        [share, share * m * e[0], share * m * e[1]],
        [share * m * e[0], share * m * m * e[0] * e[0] + turn * e[1] * e[1], (share * m * m - turn) * e[0] * e[1]],
        [share * m * e[1], (share * m * m - turn) * e[0] * e[1], share * m * m * e[1] * e[1] + turn * e[0] * e[0]],
    ];
    ([normal, m * normal * e[0], m * normal * e[1]], stiff)
}

/// The normal part, where it pushes, and the tangents within a disc; and the derivative of both.
fn onto_disc([n, t, u]: [f64; 3], radius: f64) -> ([f64; 3], [[f64; 3]; 3]) {
    let (normal, stiff) = if n > 0.0 { (n, 1.0) } else { (0.0, 0.0) };
    let size = (t * t + u * u).sqrt();
    if size <= radius {
        return ([normal, t, u], [[stiff, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }
    let e = [t / size, u / size];
    let turn = radius / size;
    let stiff = [
        [stiff, 0.0, 0.0],
        [0.0, turn * e[1] * e[1], -turn * e[0] * e[1]],
        [0.0, -turn * e[0] * e[1], turn * e[0] * e[0]],
    ];
    ([normal, radius * e[0], radius * e[1]], stiff)
}

/// The normal part, where it pushes, and the tangents within the disc μ n; and the derivative of both, rows of the result by columns of x.
fn onto_coulomb([n, t, u]: [f64; 3], friction: f64) -> ([f64; 3], [[f64; 3]; 3]) {
    if n <= 0.0 {
        return ([0.0; 3], [[0.0; 3]; 3]);
    }
    let (size, radius) = ((t * t + u * u).sqrt(), friction * n);
    if friction == 0.0 {
        return ([n, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]]);
    }
    if size <= radius {
        return ([n, t, u], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    }
    let e = [t / size, u / size];
    let turn = radius / size;
    let stiff = [
        [1.0, 0.0, 0.0],
        [friction * e[0], turn * e[1] * e[1], -turn * e[0] * e[1]],
        [friction * e[1], -turn * e[0] * e[1], turn * e[0] * e[0]],
    ];
    ([n, radius * e[0], radius * e[1]], stiff)
}
