//! Contacts of the correction: gaps that may not be passed, and friction by Coulomb's law.
//!
//! Faure's smooth surface contact [1998, §3.3] keeps a gap closed while it pushes and knows no friction. Here the contacts of an iteration are solved
//! together, for the motion δ that its rows have found:
//!
//! ```text
//! y  = gaps and slips at q ⊕ δ                         of the contacts that push or would be passed
//! W  = G (N + JᵀJ/μ)⁻¹ Gᵀ                              how they answer each other, joints kept closed
//! Gauss–Seidel:  n: λ ≥ 0 ⟂ y + W Δλ ≥ 0    t: |λ| ≤ friction · λₙ, against the slip
//! δ ← δ + (N + JᵀJ/μ)⁻¹ Gᵀ Δλ
//! ```
//! λ is what a contact gives in the whole part: a later iteration may take it back, and none ever pulls.

use super::inertia::{Inertia, dot};
use super::rows::Rows;
use crate::contact::Contact;
use crate::contact::follow::Follow;
use crate::loads::Ledger;
use crate::maths::block::{Vector, add_scaled, from_twist};
use crate::maths::{Twist, Wrench};
use crate::model::State;
use glam::{DMat3, DVec3};

/// Share of a penetration that is recovered in one part.
pub(super) const RECOVERY: f64 = 0.2;
/// Sweeps over the contacts of an iteration.
const SWEEPS: usize = 500;
/// Changes below this share of what contacts give end the sweeps.
const SETTLED: f64 = 1e-9;
/// How often contacts that would be passed by the answer to others are taken in.
const ROUNDS: usize = 4;

/// A contact with what it has given.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    pub(super) follow: Follow,
    /// The gap that is allowed: what is deeper at the start is lifted out over some steps.
    pub(super) least: f64,
    /// From the end of the part to the end of the step \[s\].
    pub(super) left: f64,
    friction: f64,
    /// How far an obstacle's point goes in the part.
    carried: DVec3,
    /// The normal and two directions across it.
    frame: [DVec3; 3],
    /// What it has given to side a in the part, along these \[kg·m\].
    given: [f64; 3],
}

impl Surface {
    fn new(contact: &Contact, state: &State, (h, after): (f64, f64)) -> Surface {
        let (t, s) = contact.normal.any_orthonormal_pair();
        Surface {
            follow: Follow::new(contact, state, (h, after)),
            least: (1.0 - RECOVERY) * contact.gap.min(0.0),
            left: after,
            friction: contact.friction,
            carried: contact.obstacle_velocity * h,
            frame: [contact.normal, t, s],
            given: [0.0; 3],
        }
    }

    /// How far it is from where it may be \[m\]; below 0 it is passed.
    pub(super) fn room(&self, state: &State) -> f64 {
        self.follow.gap_at(state, self.left) - self.least
    }

    /// The force that it has given, in the world.
    fn force(&self) -> DVec3 {
        self.frame.iter().zip(self.given).map(|(axis, given)| *axis * given).sum()
    }

    /// The force that leaves no gap passed and no slip, or slides at the edge of Coulomb's cone, when it gives `so_far` and is `ahead` so; `own` is how it
    /// answers itself.
    fn answer(&self, so_far: DVec3, ahead: DVec3, (own, inverse): (DMat3, DMat3)) -> DVec3 {
        let stuck = so_far - inverse * ahead;
        if self.friction > 0.0 && stuck.x >= 0.0 && stuck.y.hypot(stuck.z) <= self.friction * stuck.x {
            return stuck;
        }
        let across = own.y_axis.y + own.z_axis.z; // at least the largest answer across
        let push = (so_far.x - ahead.x / own.x_axis.x).max(0.0);
        let (y, z) = (so_far.y - ahead.y / across, so_far.z - ahead.z / across);
        let (size, most) = (y.hypot(z), self.friction * push);
        let share = if size > most { most / size } else { 1.0 };
        DVec3::new(push, y * share, z * share)
    }
}

/// A contact in the linear problem of an iteration.
struct Near {
    contact: usize,
    a: usize,
    b: usize,
    /// Its rows on both sides: along the normal and across it.
    rows: [[Vector; 2]; 3],
    /// Room and slip with the motion found.
    ahead: [f64; 3],
    /// What is added to what it gave.
    added: [f64; 3],
    /// How it answers itself.
    own: DMat3,
    inverse: DMat3,
}

/// The contacts of a part.
#[derive(Default)]
pub(super) struct Surfaces {
    pub(super) list: Vec<Surface>,
    best: Vec<Surface>,
    near: Vec<Near>,
    is_near: Vec<bool>,
    /// W, three rows and columns for each contact that is near.
    answers: Vec<f64>,
    /// What contacts that are near give in all.
    total: Vec<f64>,
    /// By body, the world at the end.
    pushed: Vec<Vector>,
}

impl Surfaces {
    pub(super) fn new(bodies: usize) -> Surfaces {
        Surfaces { pushed: vec![[0.0; 6]; bodies + 1], ..Surfaces::default() }
    }

    pub(super) fn begin(&mut self, contacts: &[Contact], state: &State, part: (f64, f64)) {
        self.list.clear();
        self.list.extend(contacts.iter().map(|contact| Surface::new(contact, state, part)));
    }

    /// Remembers what contacts have given.
    pub(super) fn keep(&mut self) {
        self.best.clone_from(&self.list);
    }

    /// To what was remembered.
    pub(super) fn go_back(&mut self) {
        self.list.clone_from(&self.best);
    }

    /// Adds to the motion that `rows` have found what contacts ask for at the pose of `state`, from where bodies have `moved` so far. Without factors nothing
    /// is added.
    pub(super) fn answer(&mut self, rows: &mut Rows, inertia: &Inertia, state: &State, moved: &[Twist]) {
        self.near.clear();
        self.is_near.clear();
        self.is_near.resize(self.list.len(), false);
        if self.list.is_empty() {
            return;
        }
        for round in 0..ROUNDS {
            if !self.find_near(rows, state, moved, round > 0) {
                break;
            }
            if !rows.factor_stiff(inertia) {
                self.near.clear();
                return;
            }
            self.find_answers(rows);
            self.sweep();
            self.gather();
            rows.foresee_push(&self.pushed);
        }
        if self.near.is_empty() {
            return;
        }
        rows.take_push();
        for near in &self.near {
            let given = &mut self.list[near.contact].given;
            for (given, added) in given.iter_mut().zip(near.added) {
                *given += added;
            }
        }
    }

    /// Takes in contacts that push already or would be passed, by the motion found and, `answered`, by the answer to those that are in; tells whether there
    /// are more than before.
    fn find_near(&mut self, rows: &Rows, state: &State, moved: &[Twist], answered: bool) -> bool {
        let (before, world) = (self.near.len(), self.pushed.len() - 1);
        for (k, contact) in self.list.iter().enumerate() {
            if self.is_near[k] {
                continue;
            }
            let Follow { a, b, .. } = contact.follow;
            let (a, b) = (a.index(), b.map_or(world, |b| b.index()));
            let levers = contact.follow.levers_at(state);
            let motion = |body: usize| rows.motion(body) + if answered { rows.answer(body) } else { Twist::ZERO };
            let way = |find: &dyn Fn(usize) -> Twist| {
                let on_b = if b == world { DVec3::ZERO } else { find(b).at(levers[1]) };
                find(a).at(levers[0]) - on_b
            };
            let ahead = contact.room(state) + contact.frame[0].dot(way(&motion));
            if ahead >= 0.0 && contact.given[0] == 0.0 {
                continue;
            }
            self.is_near[k] = true;
            let first = way(&|body| rows.motion(body));
            let carried = if b == world { contact.carried } else { DVec3::ZERO };
            let slip = way(&|body| moved[body]) + first - carried;
            let [n, t, s] = contact.frame;
            let rows = contact.frame.map(|axis| {
                let on_b = if b == world { [0.0; 6] } else { from_twist(Twist::new(-axis, -levers[1].cross(axis))) };
                [from_twist(Twist::new(axis, levers[0].cross(axis))), on_b]
            });
            let ahead = [contact.room(state) + n.dot(first), t.dot(slip), s.dot(slip)];
            self.near.push(Near {
                contact: k,
                a,
                b,
                rows,
                ahead,
                added: [0.0; 3],
                own: DMat3::ZERO,
                inverse: DMat3::ZERO,
            });
        }
        self.near.len() > before
    }

    /// W
    fn find_answers(&mut self, rows: &mut Rows) {
        let size = 3 * self.near.len();
        self.answers.clear();
        self.answers.resize(size * size, 0.0);
        for j in 0..self.near.len() {
            for k in 0..3 {
                self.pushed.fill([0.0; 6]);
                let near = &self.near[j];
                self.pushed[near.a] = near.rows[k][0];
                add_scaled(&mut self.pushed[near.b], 1.0, &near.rows[k][1]);
                rows.stiffly(&mut self.pushed);
                for (i, near) in self.near.iter().enumerate() {
                    for (l, [on_a, on_b]) in near.rows.iter().enumerate() {
                        let answer = dot(on_a, &self.pushed[near.a]) + dot(on_b, &self.pushed[near.b]);
                        self.answers[(3 * i + l) * size + 3 * j + k] = answer;
                    }
                }
            }
        }
    }

    /// Gauss–Seidel over the contacts that are near: each sticks if it may, and slides by the edge of its cone if not.
    fn sweep(&mut self) {
        let size = 3 * self.near.len();
        self.total.clear();
        for near in &mut self.near {
            self.total.extend(self.list[near.contact].given.iter().zip(near.added).map(|(given, added)| given + added));
            let i = self.total.len() - 3;
            let own = DMat3::from_cols_array(&std::array::from_fn(|k| self.answers[(i + k % 3) * size + i + k / 3]));
            let inverse = own.inverse();
            (near.own, near.inverse) = (own, inverse);
        }
        for _ in 0..SWEEPS {
            let (mut change, mut most) = (0.0f64, 0.0f64);
            for i in 0..self.near.len() {
                let near = &self.near[i];
                let contact = &self.list[near.contact];
                let mut ahead = DVec3::from(near.ahead);
                for (j, other) in self.near.iter().enumerate() {
                    let added = DVec3::from(other.added);
                    let row = |l: usize| DVec3::from_slice(&self.answers[(3 * i + l) * size + 3 * j..]).dot(added);
                    ahead += DVec3::new(row(0), row(1), row(2));
                }
                let so_far = DVec3::from_slice(&self.total[3 * i..]);
                let force = contact.answer(so_far, ahead, (near.own, near.inverse));
                let more = force - so_far;
                change = change.max(more.abs().max_element());
                most = most.max(force.abs().max_element());
                self.total[3 * i..3 * i + 3].copy_from_slice(&force.to_array());
                let near = &mut self.near[i];
                near.added = (DVec3::from(near.added) + more).to_array();
            }
            if change <= SETTLED * most {
                break;
            }
        }
    }

    /// `Gᵀ Δλ`
    fn gather(&mut self) {
        self.pushed.fill([0.0; 6]);
        for near in &self.near {
            for ([on_a, on_b], added) in near.rows.iter().zip(near.added) {
                add_scaled(&mut self.pushed[near.a], added, on_a);
                add_scaled(&mut self.pushed[near.b], added, on_b);
            }
        }
    }

    /// Notes what contacts gave within `h`.
    pub(super) fn note(&self, h: f64, state: &State, ledger: &mut Ledger) {
        for contact in &self.list {
            let Follow { a, b, .. } = contact.follow;
            let ([r_a, r_b], impulse) = (contact.follow.levers_at(state), contact.force() / h);
            ledger.touch(a, Wrench::at(r_a, impulse));
            if let Some(b) = b {
                ledger.touch(b, Wrench::at(r_b, -impulse));
            }
        }
    }
}
