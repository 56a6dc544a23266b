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
//! `settle.rs` solves them: for contacts that are alone on their vertices (3) has a closed form in c, `local`, with a derivative; contacts that share vertices
//! are swept over until they agree.

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

pub(super) fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// A body's part in a contact: velocity there per velocity of the body. No body has two in one contact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub(super) body: u32,
    linear: DMat3,
    angular: DMat3,
}

impl Arm {
    pub(super) fn velocity(&self, v: &Vector) -> DVec3 {
        self.linear * DVec3::new(v[0], v[1], v[2]) + self.angular * DVec3::new(v[3], v[4], v[5])
    }

    pub(super) fn pull(&self, f: DVec3, out: &mut [Vector]) {
        let (force, torque) = (self.linear.transpose() * f, self.angular.transpose() * f);
        let pull = [force.x, force.y, force.z, torque.x, torque.y, torque.z];
        add_scaled(&mut out[self.body as usize], 1.0, &pull);
    }
}

/// A triangle may touch another.
const MOST_VERTICES: usize = 6;

/// A contact in (1) to (3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(super) law: Law,
    pub(super) normal: DVec3,
    /// b_a: velocity without an answer, with what the gap allows.
    pub(super) bias: DVec3,
    /// Its vertices, with the share of the impulse that each gets, signed.
    pub(super) vertices: [(u32, f64); MOST_VERTICES],
    pub(super) count: u8,
    /// Its arms are `first..last`.
    pub(super) first: u32,
    pub(super) last: u32,
    /// What it yields by itself \[1/kg\].
    pub(super) compliance: f64,
    /// ω: what its own impulse adds to its velocity \[1/kg\].
    pub(super) omega: f64,
    /// Whether impulses of others on its vertices, or a skin that yields in one direction more than in another, make it take sweeps.
    pub(super) is_shared: bool,
    /// What holds it near the impulse of the round before \[1/kg\].
    pub(super) hold: f64,
    /// `b_a + J_a δv_b`; in a search direction `J_a δv_b`.
    pub(super) free: DVec3,
    pub(super) rate: DVec3,
    /// μ λ_n of the round before.
    pub(super) bound: f64,
    /// λ⁰ and λ \[N·s\]; its change in a search direction.
    pub(super) start: DVec3,
    pub(crate) impulse: DVec3,
    pub(super) turn: DVec3,
    /// λ at the end of the round before, and what `hold` holds it to.
    pub(super) before: DVec3,
    pub(super) anchor: DVec3,
    /// dλ/dc that the last factors were made with.
    pub(super) slope: DMat3,
    /// dλ/dc here.
    pub(super) derivative: DMat3,
}

impl Row {
    /// Its vertices and their shares.
    pub(super) fn vertices(&self) -> &[(u32, f64)] {
        &self.vertices[..self.count as usize]
    }
}

/// Share of the depth that is pushed out in a part.
const PUSH_OUT: f64 = 0.2;
/// Contacts without a soft vertex yield this share of what their bodies do.
const RIGID: f64 = 1e-4;

/// Scratch of the answer.
#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) rows: Vec<Row>,
    pub(super) arms: Vec<Arm>,
    /// By vertex: how many rows push on it, the sum of λ − λ⁰, and of its change in a search direction.
    pub(super) shared: Vec<u32>,
    pub(super) sums: Vec<DVec3>,
    pub(super) turns: Vec<DVec3>,
    /// δv of bodies, a trial of it, and vectors of the search.
    pub(super) x: Vec<Vector>,
    pub(super) trial: Vec<Vector>,
    pub(super) step: Vec<Vector>,
    pub(super) residual: Vec<Vector>,
    pub(super) heading: Vec<Vector>,
    pub(super) product: Vec<Vector>,
    pub(super) divided: Vec<Vector>,
    /// Whether the skeleton's factors are those of the rows' slopes.
    pub(super) factored: bool,
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
        for row in &self.rows {
            row.vertices().iter().for_each(|&(v, _)| self.shared[v as usize] = 0);
        }
        self.rows.clear();
        self.arms.clear();
        self.shared.resize(n, 0);
        self.sums.resize(n, DVec3::ZERO);
        self.turns.resize(n, DVec3::ZERO);
        (self.newton, self.rounds, self.settled) = (0, 0, true);
    }

    /// Adds an arm to the row whose arms begin at `first`.
    fn add_arm(&mut self, first: usize, body: u32, linear: DMat3, angular: DMat3) {
        match self.arms[first..].iter_mut().find(|arm| arm.body == body) {
            Some(arm) => {
                arm.linear += linear;
                arm.angular += angular;
            }
            None => self.arms.push(Arm { body, linear, angular }),
        }
    }

    fn add_vertex(&mut self, ground: &Ground<'_>, first: usize, a: u32, share: f64) {
        let (skin, v) = (ground.skin, a as usize);
        let own = &skin.influences[v][..skin.counts[v] as usize];
        let left = (DMat3::IDENTITY - ground.yields[v] * skin.masses[v]) * share;
        for (i, lever) in own.iter().zip(ground.posed.levers(v)) {
            self.add_arm(first, i.body, left * i.weight, left * *lever);
        }
        self.shared[v] += 1;
    }

    fn add_body(&mut self, first: usize, body: BodyId, lever: DVec3, sign: f64) {
        let angular = crate::maths::rotation::skew(lever) * -sign;
        self.add_arm(first, body.0, DMat3::from_diagonal(DVec3::splat(sign)), angular);
    }

    fn finish(&mut self, first: usize, row: Row) {
        let (first, last) = (first as u32, self.arms.len() as u32);
        self.rows.push(Row { first, last, ..row });
    }

    /// Adds a contact; `start` is its impulse of the part before \[N·s\].
    pub(crate) fn add_touch(&mut self, ground: &Ground<'_>, touch: &Touch, relative: DVec3, start: DVec3) {
        let first = self.arms.len();
        let (mut vertices, mut count) = ([(0, 0.0); MOST_VERTICES], 0u8);
        for (v, share) in touch.vertices() {
            self.add_vertex(ground, first, v, share);
            vertices[count as usize] = (v, share);
            count += 1;
        }
        if let Side::Body(body, lever) = touch.side {
            self.add_body(first, body, lever, -1.0);
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
        self.add_body(first, contact.a, lever(contact.a), 1.0);
        if let Other::Body(b) = contact.b {
            self.add_body(first, b, lever(b), -1.0);
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
            vertices: [(0, 0.0); MOST_VERTICES],
            count: 0,
            first: 0,
            last: 0,
            compliance: RIGID * yields,
            omega: 0.0,
            is_shared: false,
            hold: 0.0,
            free: DVec3::ZERO,
            rate: DVec3::ZERO,
            bound: 0.0,
            start,
            impulse: start,
            turn: DVec3::ZERO,
            before: start,
            anchor: start,
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
            self.add_arm(first, body.0, row_of(row.linear), row_of(row.angular));
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
        self.add_vertex(ground, first, grab.vertex, 1.0);
        let away = ground.posed.places[grab.vertex as usize] - grab.target;
        let row = Row {
            bias: velocity + away * (gamma * h * grab.stiffness),
            ..self.row(ground, DVec3::Y, first, DVec3::ZERO)
        };
        let mut vertices = [(0, 0.0); MOST_VERTICES];
        vertices[0] = (grab.vertex, 1.0);
        self.finish(first, Row { compliance: gamma, vertices, count: 1, ..row });
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
            let arms = &self.arms[row.first as usize..row.last as usize];
            let c = row.bias + arms.iter().map(|arm| arm.velocity(&self.x[arm.body as usize])).sum::<DVec3>();
            self.rows[k].impulse = row.normal * (-row.normal.dot(c) / row.omega);
        }
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
            for &(v, share) in row.vertices() {
                let v = v as usize;
                if skin.soft[v] {
                    each(v, inverse(v) * (posed.turns[v].transpose() * ((row.impulse - row.start) * share)));
                }
            }
        }
    }
}

/// Adds `Jᵀ s J` of a contact.
pub(super) fn add_stiffness(skeleton: &mut Skeleton, arms: &[Arm], s: DMat3) {
    for (p, a) in arms.iter().enumerate() {
        let (left_l, left_a) = (a.linear.transpose() * s, a.angular.transpose() * s);
        for b in &arms[..=p] {
            let block =
                Block::from_quarters(left_l * b.linear, left_l * b.angular, left_a * b.linear, left_a * b.angular);
            skeleton.add(a.body as usize, b.body as usize, &block);
        }
    }
}
