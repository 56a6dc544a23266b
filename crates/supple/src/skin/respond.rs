//! The answer of bones and skin to contacts, in the space of the skeleton.
//!
//! Contact a has an impulse λ_a in the world on its vertex. With λ⁰ the impulses of the part before, which act on the free motion already, the change δv of
//! velocities is that of [Galoppo 2007, eq. 9] with M̂_s for M̃_s:
//!
//! ```text
//! M̂ δv_b = Σ J_aᵀ (λ_a − λ⁰_a) − Jᵀ μ,   J δv_b = 0,   J_a = (1 − m R D⁻¹ Rᵀ) B_a of its vertex, less that of the other side       (1)
//! c_a = b_a + J_a δv_b + Σ_b Λ_ab (λ_b − λ⁰_b),   Λ_ab = R D⁻¹ Rᵀ of a vertex that a and b have in common                           (2)
//! 0 ≤ c_n ⊥ λ_n ≥ 0,   |λ_t| ≤ μ λ_n,   λ_t against c_t                                                                              (3)
//! ```
//! Λ is a number ω times 1 for a contact that is alone on its vertex. Then (3) has a closed form in c, `local`, with a derivative, and (1) is solved by
//! Newton's method for δv_b alone: with the bound of friction kept, it is the minimum of a convex function, which a search along each step approaches from
//! anywhere. The bound, and what contacts on the same vertex do to one another, are put right from round to round, with ω enlarged by their number.

use super::condense::{self, Skeleton};
use super::pose::Posed;
use super::touch::{Side, Touch};
use super::{Grab, Skin};
use crate::contact::{Contact, Other};
use crate::forces::Stop;
use crate::maths::block::{Block, Vector, add_scaled};
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

/// How one contact answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// It pushes along the normal and rubs with at most this coefficient.
    Push {
        /// The coefficient.
        friction: f64,
    },
    /// It holds in all directions.
    Hold,
}

/// (3) in closed form: the impulse at velocity `c` with a local operator ω, the bound of friction being `bound`, and its derivative by c.
pub fn local(c: DVec3, omega: f64, normal: DVec3, law: Law, bound: f64) -> (DVec3, DMat3) {
    let free = c * (-1.0 / omega);
    let Law::Push { .. } = law else { return (free, DMat3::from_diagonal(DVec3::splat(-1.0 / omega))) };
    let along = normal.dot(free);
    let nn = outer(normal, normal);
    let (mut impulse, mut derivative) = (DVec3::ZERO, DMat3::ZERO);
    if along > 0.0 {
        impulse += normal * along;
        derivative -= nn * (1.0 / omega);
    }
    let across = free - normal * along;
    let size = across.length();
    if size <= bound {
        impulse += across;
        derivative -= (DMat3::IDENTITY - nn) * (1.0 / omega);
    } else if bound > 0.0 {
        let t = across / size;
        impulse += t * bound;
        derivative -= (DMat3::IDENTITY - nn - outer(t, t)) * (bound / (size * omega));
    }
    (impulse, derivative)
}

/// The function whose derivative by c is −λ.
fn potential(c: DVec3, omega: f64, normal: DVec3, law: Law, bound: f64) -> f64 {
    let free = c * (-1.0 / omega);
    let Law::Push { .. } = law else { return 0.5 * omega * free.length_squared() };
    let along = normal.dot(free).max(0.0);
    let size = (free - normal * normal.dot(free)).length();
    let across = if size <= bound { 0.5 * size * size } else { bound * size - 0.5 * bound * bound };
    omega * (0.5 * along * along + across)
}

fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// A body's part in a contact: velocity there per velocity of the body.
#[derive(Clone, Copy, Debug)]
struct Arm {
    body: u32,
    linear: DMat3,
    angular: DMat3,
}

impl Arm {
    fn velocity(&self, v: &Vector) -> DVec3 {
        self.linear * DVec3::new(v[0], v[1], v[2]) + self.angular * DVec3::new(v[3], v[4], v[5])
    }

    fn pull(&self, f: DVec3, out: &mut [Vector]) {
        let (force, torque) = (self.linear.transpose() * f, self.angular.transpose() * f);
        let pull = [force.x, force.y, force.z, torque.x, torque.y, torque.z];
        add_scaled(&mut out[self.body as usize], 1.0, &pull);
    }
}

/// A contact in (1) to (3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    law: Law,
    normal: DVec3,
    /// b_a: velocity without an answer, with what the gap allows.
    bias: DVec3,
    /// Its vertices, with the sign of the impulse on them.
    vertices: [(u32, f64); 2],
    count: u8,
    /// Its arms are `first..last`.
    first: u32,
    last: u32,
    /// What it yields by itself \[1/kg\].
    compliance: f64,
    /// ω, enlarged.
    omega: f64,
    /// What others on its vertices do, and ω λ.
    shift: DVec3,
    /// μ λ_n of the round before.
    bound: f64,
    /// λ⁰ and λ \[N·s\].
    start: DVec3,
    pub(crate) impulse: DVec3,
    /// dλ/dc that the last factors were made with.
    slope: DMat3,
    /// dλ/dc here.
    derivative: DMat3,
    /// λ carried on by its change in the last round: what others on its vertices are taken to do.
    lead: DVec3,
}

/// Rounds in which the bound of friction and shared vertices are put right.
const MOST_ROUNDS: usize = 40;
/// Rounds after which bounds of friction go half the way.
const WAVERING: usize = 10;
/// Factors are kept while slopes have changed by less than this, in units of 1/ω.
const KEPT: f64 = 0.1;
/// Newton steps in a round.
const MOST_STEPS: usize = 12;
/// Impulses are found to this share of the largest.
const TOLERANCE: f64 = 1e-4;
/// Share of the depth that is pushed out in a part.
const PUSH_OUT: f64 = 0.2;
/// Contacts without a soft vertex yield this share of what their bodies do.
const RIGID: f64 = 1e-4;

/// Scratch of the answer.
#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) rows: Vec<Row>,
    arms: Vec<Arm>,
    /// R D⁻¹ Rᵀ of vertices in contacts.
    shared: Vec<u32>,
    sums: Vec<DVec3>,
    x: Vec<Vector>,
    trial: Vec<Vector>,
    step: Vec<Vector>,
    /// Whether the skeleton's factors are those of the rows' slopes.
    factored: bool,
    /// Factorisations, and rounds, of the last answer; whether it settled.
    pub(crate) newton: u32,
    pub(crate) rounds: u32,
    pub(crate) settled: bool,
}

/// What the rows are made from.
pub(crate) struct Ground<'w> {
    pub(crate) model: &'w Model,
    pub(crate) skin: &'w Skin,
    pub(crate) posed: &'w Posed,
    pub(crate) state: &'w State,
    /// R D⁻¹ Rᵀ by vertex \[1/kg\].
    pub(crate) yields: &'w [DMat3],
    pub(crate) h: f64,
}

impl Responder {
    pub(crate) fn clear(&mut self, n: usize) {
        self.rows.clear();
        self.arms.clear();
        self.shared.resize(n, 0);
        self.sums.resize(n, DVec3::ZERO);
        (self.newton, self.rounds, self.settled) = (0, 0, true);
    }

    fn add_vertex(&mut self, ground: &Ground<'_>, a: u32, sign: f64) {
        let (skin, v) = (ground.skin, a as usize);
        let own = &skin.influences[v][..skin.counts[v] as usize];
        let left = (DMat3::IDENTITY - ground.yields[v] * skin.masses[v]) * sign;
        for (i, lever) in own.iter().zip(&ground.posed.levers[v]) {
            self.arms.push(Arm { body: i.body, linear: left * i.weight, angular: left * *lever });
        }
        self.shared[v] += 1;
    }

    fn add_body(&mut self, body: BodyId, lever: DVec3, sign: f64) {
        let angular = crate::maths::rotation::skew(lever) * -sign;
        self.arms.push(Arm { body: body.0, linear: DMat3::from_diagonal(DVec3::splat(sign)), angular });
    }

    fn finish(&mut self, first: usize, row: Row) {
        let (first, last) = (first as u32, self.arms.len() as u32);
        self.rows.push(Row { first, last, ..row });
    }

    /// Adds a contact; `start` is its impulse of the part before \[N·s\].
    pub(crate) fn add_touch(&mut self, ground: &Ground<'_>, touch: &Touch, relative: DVec3, start: DVec3) {
        let first = self.arms.len();
        self.add_vertex(ground, touch.vertex, 1.0);
        let (mut vertices, mut count) = ([(touch.vertex, 1.0), (0, 0.0)], 1);
        match touch.side {
            Side::Fixed => {}
            Side::Body(body, lever) => self.add_body(body, lever, -1.0),
            Side::Vertex(other) => {
                self.add_vertex(ground, other, -1.0);
                (vertices[1], count) = ((other, -1.0), 2);
            }
        }
        let allowed = if touch.gap > 0.0 { touch.gap / ground.h } else { PUSH_OUT * touch.gap / ground.h };
        let row = Row {
            law: Law::Push { friction: touch.friction },
            bias: relative + touch.normal * allowed,
            ..self.row(ground, touch.normal, first, start)
        };
        let is_soft = vertices[..count as usize].iter().any(|(v, _)| ground.yields[*v as usize] != DMat3::ZERO);
        let compliance = if is_soft { 0.0 } else { row.compliance };
        self.finish(first, Row { vertices, count, compliance, ..row });
    }

    /// Adds a contact of bodies without skin.
    pub(crate) fn add_contact(&mut self, ground: &Ground<'_>, contact: &Contact, relative: DVec3, start: DVec3) {
        let first = self.arms.len();
        let lever = |body: BodyId| contact.point - ground.state.bodies[body.index()].position;
        self.add_body(contact.a, lever(contact.a), 1.0);
        if let Other::Body(b) = contact.b {
            self.add_body(b, lever(b), -1.0);
        }
        let allowed = if contact.gap > 0.0 { contact.gap / ground.h } else { PUSH_OUT * contact.gap / ground.h };
        let row = Row {
            law: Law::Push { friction: contact.friction },
            bias: relative + contact.normal * allowed,
            ..self.row(ground, contact.normal, first, start)
        };
        self.finish(first, row);
    }

    fn row(&self, ground: &Ground<'_>, normal: DVec3, first: usize, start: DVec3) -> Row {
        // what bodies yield along the row, as if each were alone
        let yields: f64 = self.arms[first..]
            .iter()
            .map(|arm| {
                let body = ground.model.body(BodyId(arm.body));
                let least = body.inertia.x_axis.x.min(body.inertia.y_axis.y).min(body.inertia.z_axis.z);
                let (f, t) = (arm.linear.transpose() * normal, arm.angular.transpose() * normal);
                f.length_squared() / body.mass + t.length_squared() / least
            })
            .sum();
        Row {
            law: Law::Hold,
            normal,
            bias: DVec3::ZERO,
            vertices: [(0, 0.0); 2],
            count: 0,
            first: 0,
            last: 0,
            compliance: RIGID * yields,
            omega: 0.0,
            shift: DVec3::ZERO,
            bound: 0.0,
            start,
            impulse: start,
            lead: start,
            slope: DMat3::ZERO,
            derivative: DMat3::ZERO,
        }
    }

    /// Adds an end of a hard limit.
    pub(crate) fn add_stop(&mut self, ground: &Ground<'_>, stop: &Stop, rate: f64, start: f64) {
        let first = self.arms.len();
        let row_of = |v: DVec3| DMat3::from_cols(DVec3::X * v.x, DVec3::X * v.y, DVec3::X * v.z);
        let sides = [(Some(stop.child), stop.a), (stop.parent, stop.b)];
        for (body, row) in sides.into_iter().filter_map(|(body, row)| Some((body?, row))) {
            self.arms.push(Arm { body: body.0, linear: row_of(row.linear), angular: row_of(row.angular) });
        }
        let allowed = if stop.gap > 0.0 { stop.gap / ground.h } else { PUSH_OUT * stop.gap / ground.h };
        let row = Row {
            law: Law::Push { friction: 0.0 },
            bias: DVec3::X * (rate + allowed),
            ..self.row(ground, DVec3::X, first, DVec3::X * start)
        };
        self.finish(first, row);
    }

    /// Adds a pulled vertex: a spring is a row that yields, `ẋ + γ h k (x − x*) + γ λ = 0`, `γ = 1/(h² k + h c)`.
    pub(crate) fn add_grab(&mut self, ground: &Ground<'_>, grab: &Grab, velocity: DVec3) {
        let h = ground.h;
        let gamma = 1.0 / (h * h * grab.stiffness + h * grab.damping).max(1e-12);
        let first = self.arms.len();
        self.add_vertex(ground, grab.vertex, 1.0);
        let away = ground.posed.places[grab.vertex as usize] - grab.target;
        let row = Row {
            bias: velocity + away * (gamma * h * grab.stiffness),
            ..self.row(ground, DVec3::Y, first, DVec3::ZERO)
        };
        self.finish(first, Row { compliance: gamma, vertices: [(grab.vertex, 1.0), (0, 0.0)], count: 1, ..row });
    }

    /// `Σ_b Λ_ab (λ_b − λ⁰_b)`, its own compliance included.
    fn coupled(&self, ground: &Ground<'_>, row: &Row) -> DVec3 {
        let mut sum = (row.lead - row.start) * row.compliance;
        for &(v, sign) in &row.vertices[..row.count as usize] {
            sum += ground.yields[v as usize] * self.sums[v as usize] * sign;
        }
        sum
    }

    fn sum_up(&mut self) {
        for row in &self.rows {
            for &(v, _) in &row.vertices[..row.count as usize] {
                self.sums[v as usize] = DVec3::ZERO;
            }
        }
        for row in &self.rows {
            for &(v, sign) in &row.vertices[..row.count as usize] {
                self.sums[v as usize] += (row.lead - row.start) * sign;
            }
        }
    }

    fn velocity(&self, row: &Row, x: &[Vector]) -> DVec3 {
        let arms = &self.arms[row.first as usize..row.last as usize];
        row.bias + row.shift + arms.iter().map(|arm| arm.velocity(&x[arm.body as usize])).sum::<DVec3>()
    }

    /// Solves (1) to (3); returns δv of bodies. Impulses are in the rows. Names the node whose pivot failed.
    pub(crate) fn solve(&mut self, ground: &Ground<'_>, skeleton: &mut Skeleton) -> Result<&[Vector], usize> {
        let n = skeleton.nodes();
        for list in [&mut self.x, &mut self.trial, &mut self.step] {
            list.clear();
            list.resize(n, [0.0; 6]);
        }
        for k in 0..self.rows.len() {
            let row = self.rows[k];
            let own: f64 = row.vertices[..row.count as usize]
                .iter()
                .map(|&(v, _)| {
                    let yields = ground.yields[v as usize];
                    let most = yields.x_axis.x.max(yields.y_axis.y).max(yields.z_axis.z);
                    most * f64::from(self.shared[v as usize])
                })
                .sum();
            self.rows[k].omega = own + row.compliance;
            if let Law::Push { friction } = row.law {
                self.rows[k].bound = friction * row.normal.dot(row.start).max(0.0);
            }
        }
        self.settled = false;
        self.factored = false;
        let mut pace = 0.0;
        for round in 0..MOST_ROUNDS {
            self.sum_up();
            for k in 0..self.rows.len() {
                let row = self.rows[k];
                self.rows[k].shift = self.coupled(ground, &row) - row.lead * row.omega;
            }
            self.newton(skeleton)?;
            // new impulses, and how far they are from those of the round before
            let (mut change, mut most, mut against) = (0.0f64, 0.0f64, 0.0f64);
            for k in 0..self.rows.len() {
                let row = self.rows[k];
                let c = self.velocity(&row, &self.x);
                let (impulse, _) = local(c, row.omega, row.normal, row.law, row.bound);
                change = change.max(impulse.distance(row.impulse)).max(impulse.distance(row.lead));
                most = most.max(impulse.length());
                against += (row.lead - impulse).dot(impulse - row.impulse);
                self.rows[k].lead = row.impulse; // for now
                self.rows[k].impulse = impulse;
                if let Law::Push { friction } = row.law {
                    // half the way once it goes to and fro
                    let bound = friction * row.normal.dot(impulse).max(0.0);
                    self.rows[k].bound = if round < WAVERING { bound } else { 0.5 * (row.bound + bound) };
                }
            }
            self.rounds = round as u32 + 1;
            if change <= TOLERANCE * most {
                self.settled = true;
                break;
            }
            // [Nesterov 1983], begun again when it goes against the descent [O'Donoghue 2015]
            pace = if against > 0.0 { 0.0 } else { pace + 1.0 };
            for row in &mut self.rows {
                row.lead = row.impulse + (row.impulse - row.lead) * (pace / (pace + 3.0));
            }
        }
        self.rows.iter_mut().for_each(|row| row.lead = row.impulse);
        for row in &self.rows {
            for &(v, _) in &row.vertices[..row.count as usize] {
                self.shared[v as usize] = 0;
            }
        }
        self.sum_up();
        Ok(&self.x)
    }

    /// Newton's method for (1) with bounds and shifts kept.
    fn newton(&mut self, skeleton: &mut Skeleton) -> Result<(), usize> {
        let mut here = self.cost(skeleton, Which::Here);
        for _ in 0..MOST_STEPS {
            self.step.fill([0.0; 6]);
            skeleton.base.subtract_product(&self.x, &mut self.step);
            let mut size = 0.0f64;
            let mut is_same = self.factored;
            for k in 0..self.rows.len() {
                let row = self.rows[k];
                let c = self.velocity(&row, &self.x);
                let (impulse, derivative) = local(c, row.omega, row.normal, row.law, row.bound);
                size = size.max(impulse.length());
                let arms = &self.arms[row.first as usize..row.last as usize];
                for arm in arms {
                    arm.pull(impulse - row.start, &mut self.step);
                }
                let turned = (derivative - row.slope).to_cols_array().into_iter().map(f64::abs).fold(0.0, f64::max);
                is_same &= turned * row.omega <= KEPT;
                self.rows[k].derivative = derivative;
            }
            let left = self.step.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
            if left <= 1e-9 * size {
                break;
            }
            // Factors serve as long as contacts stay open, stuck or slipping the same way; what the step is worth is told below.
            if !is_same {
                skeleton.restore();
                for k in 0..self.rows.len() {
                    let row = self.rows[k];
                    self.rows[k].slope = row.derivative;
                    if row.derivative != DMat3::ZERO {
                        add_stiffness(skeleton, &self.arms[row.first as usize..row.last as usize], -row.derivative);
                    }
                }
                skeleton.factor()?;
                self.factored = true;
                self.newton += 1;
            }
            skeleton.solve(&mut self.step);
            // a convex function: half the way until it is less
            let mut share = 1.0;
            loop {
                for ((to, x), dx) in self.trial.iter_mut().zip(&self.x).zip(&self.step) {
                    *to = *x;
                    add_scaled(to, share, dx);
                }
                let there = self.cost(skeleton, Which::Trial);
                if there <= here + 1e-12 * here.abs() {
                    let gained = here - there;
                    here = there;
                    std::mem::swap(&mut self.x, &mut self.trial);
                    if gained <= 1e-14 * here.abs() {
                        return Ok(());
                    }
                    break;
                }
                share *= 0.5;
                if share < 1e-4 {
                    return Ok(()); // rounding
                }
            }
        }
        Ok(())
    }

    /// `½ δvᵀ M̂ δv − Σ λ⁰ᵀ J δv + Σ ψ(c)`.
    fn cost(&mut self, skeleton: &Skeleton, which: Which) -> f64 {
        let x = match which {
            Which::Here => &self.x,
            Which::Trial => &self.trial,
        };
        let mut sum = 0.5 * skeleton.base.energy(x, skeleton.bodies());
        for row in &self.rows {
            let c = self.velocity(row, x);
            sum += potential(c, row.omega, row.normal, row.law, row.bound);
            sum -= row.start.dot(c - row.bias - row.shift);
        }
        sum
    }

    /// What stops all rows along their normals, whatever the sign [Galoppo 2007, eq. 14]; no two rows may share a vertex.
    pub(crate) fn stop(&mut self, ground: &Ground<'_>, skeleton: &mut Skeleton) -> Result<&[Vector], usize> {
        let n = skeleton.nodes();
        self.x.clear();
        self.x.resize(n, [0.0; 6]);
        skeleton.restore();
        for k in 0..self.rows.len() {
            let row = self.rows[k];
            let (v, _) = row.vertices[0];
            let normal = row.normal;
            // M_λ = J_s D⁻¹ J_sᵀ
            let m = normal.dot(ground.yields[v as usize] * normal) + row.compliance;
            let arms = &self.arms[row.first as usize..row.last as usize];
            add_stiffness(skeleton, arms, outer(normal, normal) * (1.0 / m));
            arms.iter().for_each(|arm| arm.pull(normal * (-normal.dot(row.bias) / m), &mut self.x));
            self.rows[k].omega = m;
        }
        skeleton.factor()?;
        skeleton.solve(&mut self.x);
        for k in 0..self.rows.len() {
            let row = self.rows[k];
            let c = self.velocity(&row, &self.x);
            self.rows[k].impulse = row.normal * (-row.normal.dot(c) / row.omega);
            self.rows[k].lead = self.rows[k].impulse;
        }
        for row in &self.rows {
            for &(v, _) in &row.vertices[..row.count as usize] {
                self.shared[v as usize] = 0;
            }
        }
        self.sum_up();
        (self.newton, self.rounds, self.settled) = (1, 1, true);
        Ok(&self.x)
    }

    /// Adds the answer of the skin, [Galoppo 2007, eq. 15]: `δv_s = D⁻¹ (Rᵀ Σ (λ − λ⁰) − m Rᵀ B δv_b)`. `inverse` is D⁻¹.
    pub(crate) fn move_skin(
        &self,
        skin: &Skin,
        posed: &Posed,
        inverse: impl Fn(usize) -> DMat3,
        mut each: impl FnMut(usize, DVec3),
    ) {
        for a in 0..skin.nodes() {
            if !skin.soft[a] {
                continue;
            }
            let carried = condense::carried(skin, posed, a, &self.x) * skin.masses[a];
            each(a, inverse(a) * (posed.turns[a].transpose() * -carried));
        }
        for row in &self.rows {
            for &(v, sign) in &row.vertices[..row.count as usize] {
                let v = v as usize;
                if skin.soft[v] {
                    each(v, inverse(v) * (posed.turns[v].transpose() * ((row.impulse - row.start) * sign)));
                }
            }
        }
    }

    /// c of (2) at the end.
    #[cfg(test)]
    pub(super) fn end_velocity(&self, ground: &Ground<'_>, row: &Row) -> DVec3 {
        let arms = &self.arms[row.first as usize..row.last as usize];
        row.bias
            + arms.iter().map(|arm| arm.velocity(&self.x[arm.body as usize])).sum::<DVec3>()
            + self.coupled(ground, row)
    }
}

enum Which {
    Here,
    Trial,
}

/// Adds `Jᵀ s J` of a contact.
fn add_stiffness(skeleton: &mut Skeleton, arms: &[Arm], s: DMat3) {
    for (p, a) in arms.iter().enumerate() {
        let (left_l, left_a) = (a.linear.transpose() * s, a.angular.transpose() * s);
        for b in &arms[..=p] {
            let block =
                Block::from_quarters(left_l * b.linear, left_l * b.angular, left_a * b.linear, left_a * b.angular);
            let (i, j) = (a.body as usize, b.body as usize);
            if i == j && !std::ptr::eq(a, b) {
                // both orders fall on the same block
                skeleton.add(i, i, &block);
                skeleton.add(i, i, &block.transposed());
            } else {
                skeleton.add(i, j, &block);
            }
        }
    }
}
