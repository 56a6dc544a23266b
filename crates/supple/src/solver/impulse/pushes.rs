//! One-sided impulses: contacts with Coulomb friction and restitution, and the ends of hard limits.
//!
//! Each has a row across the surface, n, and a contact two along it, t. With u the rates of these rows and p their impulses,
//!
//! ```text
//! start   u of the mean velocity of the flight;   u_n ≥ −gap/h: the two touch at the end at the earliest
//! end     u of the velocity there;                u_n ≥ 0 where they touch, or the speed of a bounce                      (1)
//! both    p_n ≥ 0,   p_n > 0 only where u_n is at its bound,   |p_t| ≤ μ p_n,   u_t = 0 or p_t = −μ p_n u_t/|u_t|         (2)
//! ```
//! p are the impulses of both ends together. What the start gave only to lift bodies out of each other the end takes back: they part without a speed. What would
//! not touch within the flight gets nothing.
//!
//! Joints answer to a push at once. With R the rows, a push changes the rates by `W p`, `W = R (M⁻¹ − M⁻¹ Jᵀ S⁻¹ J M⁻¹) Rᵀ`, found by one solution of the
//! joints' system for each row; so no push opens a joint, and (2) is solved in its own few unknowns. W is zero between characters that nothing joins.
//!
//! How (2) is solved is told in coulomb.rs.

use super::coulomb::{Coulomb, Found};
use super::system::{Mass, System};
use crate::contact::follow::Follow;
use crate::contact::{Contact, ContactKey, Other};
use crate::forces::{self, Stop, StopPlace};
use crate::loads::Ledger;
use crate::maths::block::{Vector, add_scaled, from_twist, from_wrench, to_twist};
use crate::maths::{Twist, Wrench};
use crate::model::state::ContactMemory;
use crate::model::{BodyId, JointId, Model, State};
use glam::DVec3;

/// A push whose answer is this share of what it would be without joints cannot move anything: its bodies are as good as one.
pub(super) const STIFF: f64 = 1e-7;
/// Share of a penetration that is recovered in one part.
const RECOVERY: f64 = 0.2;
/// Fastest recovery \[m/s, rad/s\].
const RECOVERY_SPEED: f64 = 1.0;
/// Ends of limits farther away than this are not looked at \[rad, m\]: no joint goes so far in one part that goes well.
const FAR: f64 = 1.0;

/// What pushes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Contact,
    Stop(JointId, StopPlace),
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    kind: Kind,
    key: ContactKey,
    a: usize,
    /// `None` is the world, or an obstacle.
    b: Option<usize>,
    /// n, t, t; of a limit only the first counts.
    rows_a: [Twist; 3],
    rows_b: [Twist; 3],
    /// Rates that the obstacle's own motion takes off.
    carried: [f64; 3],
    /// A contact as its bodies move; `None`: a limit.
    follow: Option<Follow>,
    gap: f64,
    /// μ
    pub(super) friction: f64,
    /// Speed at which it parts, when it has touched.
    bounce: f64,
    /// Whether `least` lifts one out of the other.
    lifts: bool,
    /// Least `u_n`; none while the two do not touch.
    pub(super) least: Option<f64>,
    /// p of the part before, as far as it is remembered: where (2) is begun.
    guess: [f64; 3],
    /// Its force at the start, on side a; of a limit its size \[N, or N·m\].
    first: DVec3,
    /// p
    pub(super) given: [f64; 3],
    /// u
    pub(super) rates: [f64; 3],
}

/// All of them.
pub(super) struct Pushes {
    all: Vec<Push>,
    /// Each push's own block, joint by joint.
    own: Vec<Rows>,
    coulomb: Coulomb,
    stops: Vec<Stop>,
}

pub(super) type Rows = [[f64; 3]; 3];

impl Pushes {
    pub(super) fn new(model: &Model) -> Pushes {
        Pushes {
            all: Vec::new(),
            own: Vec::new(),
            coulomb: Coulomb::new(model.bodies().len()),
            stops: Vec::with_capacity(5 * model.hard_limits().len()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many hard limits push.
    pub(super) fn limits_active(&self) -> u32 {
        self.all.iter().filter(|push| push.kind != Kind::Contact && push.given[0] > 0.0).count() as u32
    }

    /// Contacts and limits at the start of a part, whose flight has this `drift` (`½h a`).
    pub(super) fn gather(&mut self, model: &Model, state: &State, contacts: &[Contact], drift: &[Twist], h: f64) {
        let Pushes { all, stops, .. } = self;
        all.clear();
        for contact in contacts {
            let mut push = Push::contact(contact, state);
            let speed = push.rate(0, |i| state.bodies[i].velocity) - push.carried[0];
            let acceleration = push.rate(0, |i| drift[i]) * (2.0 / h);
            push.bounce = bounce(contact, speed, acceleration, h);
            push.aim(h);
            all.push(push);
        }
        stops.clear();
        forces::stops(model, state, |stop| stops.extend((stop.gap < FAR).then_some(stop)));
        for stop in stops.iter() {
            let mut push = Push::stop(stop);
            push.aim(h);
            all.push(push);
        }
        for push in all {
            if let Some(memory) = push.remembered(state) {
                push.guess = push.along(memory.first * (0.5 * h));
            }
        }
    }

    /// After the flight: who touches, and how fast they are to part. Rates are those of the start.
    pub(super) fn land(&mut self, model: &Model, end: &State, h: f64, tolerance: f64) {
        let Pushes { all, stops, .. } = self;
        let mut at = 0;
        stops.clear();
        forces::stops(model, end, |stop| stops.push(stop));
        for push in all {
            let mut gap = push.gap + h * push.rates[0];
            push.meet(end);
            if let Kind::Stop(joint, place) = push.kind {
                // in the order of `forces::stops`
                let same = |stop: &Stop| (stop.joint, stop.place) == (joint, place);
                if let Some(found) = stops[at..].iter().position(same) {
                    at += found;
                    let placed = Push::stop(&stops[at]);
                    (push.rows_a, push.rows_b) = (placed.rows_a, placed.rows_b);
                    gap = stops[at].gap;
                }
            }
            push.guess = push.given;
            if let Some(memory) = push.remembered(end) {
                let more = push.along(memory.second * (0.5 * h));
                push.guess = std::array::from_fn(|i| push.given[i] + more[i]);
            }
            (push.gap, push.lifts) = (gap, false);
            push.first = push.force(h);
            let touches = push.given[0] > 0.0 || gap <= tolerance;
            push.least = touches.then_some(if push.given[0] > 0.0 { push.bounce } else { 0.0 });
        }
    }

    /// Keeps the forces of the part for the next, in the order of keys.
    pub(super) fn remember(&self, h: f64, state: &mut State) {
        state.contacts.clear();
        let pushed = self.all.iter().filter(|push| push.first != DVec3::ZERO || push.given != [0.0; 3]);
        let memory =
            |push: &Push| ContactMemory { key: push.key, first: push.first, second: push.force(h) - push.first };
        state.contacts.extend(pushed.map(memory));
        state.contacts.sort_unstable_by_key(|memory| memory.key);
    }

    /// Keeps what was given so far.
    pub(super) fn keep(&self, given: &mut Vec<[f64; 3]>) {
        given.clear();
        given.extend(self.all.iter().map(|push| push.given));
    }

    /// Notes what was given since, and adds it to the impulses on bodies.
    pub(super) fn note(&self, before: &[[f64; 3]], given: &mut [Vector], ledger: &mut Ledger) {
        for (push, before) in self.all.iter().zip(before) {
            let side = |rows: &[Twist; 3]| {
                let mut sum = Twist::ZERO;
                for (i, row) in rows.iter().enumerate().take(push.count()) {
                    sum = sum + *row * (push.given[i] - before[i]);
                }
                Wrench::new(sum.linear, sum.angular)
            };
            let (on_a, on_b) = (side(&push.rows_a), side(&push.rows_b));
            add_scaled(&mut given[push.a], 1.0, &from_wrench(on_a));
            if let Some(b) = push.b {
                add_scaled(&mut given[b], 1.0, &from_wrench(on_b));
            }
            match push.kind {
                Kind::Stop(joint, _) => ledger.stop(joint, on_a),
                Kind::Contact => {
                    ledger.touch(BodyId(push.a as u32), on_a);
                    if let Some(b) = push.b {
                        ledger.touch(BodyId(b as u32), on_b);
                    }
                }
            }
        }
    }

    /// How deep anything is in anything else, after the flight \[m\].
    pub(super) fn penetration(&self) -> f64 {
        let contacts = self.all.iter().filter(|push| push.kind == Kind::Contact);
        contacts.map(|push| -push.gap).fold(0.0, f64::max)
    }

    /// Goes back to what was given before.
    pub(super) fn forget_since(&mut self, given: &[[f64; 3]]) {
        self.all.iter_mut().zip(given).for_each(|(push, given)| push.given = *given);
    }

    /// Solutions of the joints' system since this was last asked.
    pub(super) fn take_solves(&mut self) -> u32 {
        self.coulomb.take_solves()
    }

    /// The joints' system is another: what is pushed answers otherwise.
    pub(super) fn begin(&mut self) {
        self.coulomb.begin(self.all.len());
    }

    /// Solves (2) at velocities with this `drift`, to a `tolerance` of the rates, and adds what the pushes and the joints' answers change.
    pub(super) fn push(
        &mut self,
        system: &mut System,
        velocities: &mut [Twist],
        drift: &[Twist],
        tolerance: f64,
    ) -> Found {
        self.measure(velocities, drift);
        self.coulomb.solve(&mut self.all, system, velocities, tolerance)
    }

    /// Takes the rates at velocities with this `drift`.
    pub(super) fn measure(&mut self, velocities: &[Twist], drift: &[Twist]) {
        for push in &mut self.all {
            push.rates = std::array::from_fn(|i| push.rate(i, |body| velocities[body] + drift[body]) - push.carried[i]);
        }
    }

    /// Each push's own block, of its two bodies alone.
    pub(super) fn alone(&mut self, masses: &[Mass]) {
        self.own.clear();
        for push in &self.all {
            let mut block = [[0.0; 3]; 3];
            for (rows, body) in push.sides() {
                for i in 0..3 {
                    for j in 0..3 {
                        let answer = masses[body].answer(&from_twist(rows[j]));
                        block[i][j] += from_twist(rows[i]).iter().zip(&answer).map(|(x, y)| x * y).sum::<f64>();
                    }
                }
            }
            self.own.push(block);
        }
    }

    /// Once round, each for itself; calls `moved` for each body whose velocity changed. The largest change of a rate.
    pub(super) fn round(
        &mut self,
        masses: &[Mass],
        velocities: &mut [Twist],
        drift: &[Twist],
        mut moved: impl FnMut(usize, &mut [Twist]),
    ) -> f64 {
        let mut largest = 0.0f64;
        for (push, own) in self.all.iter_mut().zip(&self.own) {
            push.rates = std::array::from_fn(|i| push.rate(i, |body| velocities[body] + drift[body]) - push.carried[i]);
            let Some(change) = push.give(own) else { continue };
            if change == [0.0; 3] {
                continue;
            }
            largest = largest.max(size(own, change));
            add_product(&mut push.rates, own, change);
            for (rows, body) in push.sides() {
                let mut impulse = [0.0; 6];
                (0..3).for_each(|i| add_scaled(&mut impulse, change[i], &from_twist(rows[i])));
                let answer = masses[body].answer(&impulse);
                velocities[body] = velocities[body] + to_twist(&answer);
                moved(body, velocities);
            }
        }
        largest
    }
}

/// The speed at which a contact parts that meets at this `speed` (negative while it closes): that of the first touch, times the restitution. A bounce that
/// would be over within the next part is none.
fn bounce(contact: &Contact, speed: f64, acceleration: f64, h: f64) -> f64 {
    let squared = speed * speed - 2.0 * acceleration * contact.gap.max(0.0);
    let parting = contact.restitution * squared.max(0.0).sqrt();
    if speed < 0.0 && parting > h * acceleration.abs() { parting } else { 0.0 }
}

/// The larger eigenvalue of what a push answers to itself across its normal.
pub(super) fn slip(own: &Rows) -> f64 {
    let (x, y, xy) = (own[1][1], own[2][2], own[1][2]);
    0.5 * (x + y) + (0.25 * (x - y) * (x - y) + xy * xy).sqrt()
}

/// The largest change of a rate of its own that these impulses make.
pub(super) fn size(own: &Rows, change: [f64; 3]) -> f64 {
    (0..3).map(|i| own[i][i] * change[i].abs()).fold(0.0, f64::max)
}

/// `x += block y`.
pub(super) fn add_product(x: &mut [f64; 3], block: &Rows, y: [f64; 3]) {
    for i in 0..3 {
        x[i] += block[i][0] * y[0] + block[i][1] * y[1] + block[i][2] * y[2];
    }
}

impl Push {
    fn contact(contact: &Contact, state: &State) -> Push {
        let (t, s) = contact.normal.any_orthonormal_pair();
        let directions = [contact.normal, t, s];
        let b = match contact.b {
            Other::Body(b) => Some(b.index()),
            Other::Obstacle(_) => None,
        };
        let mut push = Push {
            kind: Kind::Contact,
            key: contact.key,
            a: contact.a.index(),
            b,
            rows_a: directions.map(|d| Twist::new(d, DVec3::ZERO)),
            rows_b: directions.map(|d| Twist::new(-d, DVec3::ZERO)),
            follow: Some(Follow::new(contact, state, (0.0, 0.0))),
            carried: directions.map(|d| d.dot(contact.obstacle_velocity)),
            gap: contact.gap,
            friction: contact.friction,
            bounce: 0.0,
            lifts: false,
            least: None,
            first: DVec3::ZERO,
            guess: [0.0; 3],
            given: [0.0; 3],
            rates: [0.0; 3],
        };
        push.meet(state);
        push
    }

    /// Takes the levers of a contact at this state: both sides are pushed at one point, midway between their surfaces, so that angular momentum is kept.
    fn meet(&mut self, state: &State) {
        let Some(follow) = &self.follow else { return };
        let [r_a, r_b] = follow.levers_at(state);
        let surface = |body: usize, lever: DVec3| state.bodies[body].position + lever;
        let on_a = surface(self.a, r_a);
        let point = self.b.map_or(on_a, |b| (on_a + surface(b, r_b)) * 0.5);
        for (rows, body) in [(&mut self.rows_a, Some(self.a)), (&mut self.rows_b, self.b)] {
            let Some(body) = body else { continue };
            let r = point - state.bodies[body].position;
            rows.iter_mut().for_each(|row| row.angular = r.cross(row.linear));
        }
    }

    fn stop(stop: &Stop) -> Push {
        let only = |row: Twist| [row, Twist::ZERO, Twist::ZERO];
        Push {
            kind: Kind::Stop(stop.joint, stop.place),
            key: ContactKey::limit(stop.joint, stop.place as u32),
            a: stop.child.index(),
            b: stop.parent.map(|b| b.index()),
            rows_a: only(stop.a),
            rows_b: only(stop.b),
            follow: None,
            carried: [0.0; 3],
            gap: stop.gap,
            friction: 0.0,
            bounce: 0.0,
            lifts: false,
            least: None,
            first: DVec3::ZERO,
            guess: [0.0; 3],
            given: [0.0; 3],
            rates: [0.0; 3],
        }
    }

    /// The least rate of its gap before the flight: that which just closes it, or opens a share of what is below zero.
    fn aim(&mut self, h: f64) {
        self.lifts = self.gap < 0.0;
        let least = if self.lifts { (-RECOVERY * self.gap / h).min(RECOVERY_SPEED) } else { -self.gap / h };
        self.least = Some(least);
    }

    /// How many of its rows count.
    pub(super) fn count(&self) -> usize {
        match self.kind {
            Kind::Contact if self.friction > 0.0 => 3,
            _ => 1,
        }
    }

    fn sides(&self) -> impl Iterator<Item = (&[Twist; 3], usize)> {
        [Some((&self.rows_a, self.a)), self.b.map(|b| (&self.rows_b, b))].into_iter().flatten()
    }

    /// Row i applied to a motion.
    pub(super) fn rate(&self, i: usize, motion: impl Fn(usize) -> Twist) -> f64 {
        let along = |row: Twist, v: Twist| row.linear.dot(v.linear) + row.angular.dot(v.angular);
        along(self.rows_a[i], motion(self.a)) + self.b.map_or(0.0, |b| along(self.rows_b[i], motion(b)))
    }

    /// These impulses on its bodies.
    pub(super) fn impulses(&self, change: [f64; 3], all: &mut Vec<(usize, Vector)>) {
        for (rows, body) in self.sides() {
            let mut impulse = [0.0; 6];
            (0..3).for_each(|i| add_scaled(&mut impulse, change[i], &from_twist(rows[i])));
            all.push((body, impulse));
        }
    }

    /// What the last part ended with, if it pushed.
    fn remembered<'s>(&self, state: &'s State) -> Option<&'s ContactMemory> {
        let at = state.contacts.binary_search_by_key(&self.key, |memory| memory.key).ok()?;
        Some(&state.contacts[at])
    }

    /// The impulses along its rows of one on side a.
    fn along(&self, impulse: DVec3) -> [f64; 3] {
        match self.kind {
            Kind::Stop(..) => [impulse.x, 0.0, 0.0],
            Kind::Contact => self.rows_a.map(|row| row.linear.dot(impulse)),
        }
    }

    /// The force over half of a part that gives its impulses: the reverse of `along`.
    fn force(&self, h: f64) -> DVec3 {
        let force = self.given.map(|p| 2.0 * p / h);
        match self.kind {
            Kind::Stop(..) => DVec3::X * force[0],
            Kind::Contact => (0..self.count()).map(|i| self.rows_a[i].linear * force[i]).sum(),
        }
    }

    /// Where (2) is begun: what is remembered, as far as Coulomb's law has it.
    pub(super) fn guess(&self) -> [f64; 3] {
        let normal = self.guess[0].max(0.0);
        let rubs = if self.count() == 3 { self.guess[1].hypot(self.guess[2]) } else { 0.0 };
        let share = if rubs > 0.0 { (self.friction * normal / rubs).min(1.0) } else { 0.0 };
        [normal, self.guess[1] * share, self.guess[2] * share]
    }

    /// What lifts it out of something does so at this share of its speed.
    pub(super) fn lift_by(&mut self, share: f64) {
        if self.lifts {
            self.least = self.least.map(|least| least * share);
        }
    }

    /// `n·M⁻¹ n` of its two bodies alone.
    pub(super) fn softness(&self, masses: &[Mass]) -> f64 {
        let side = |(rows, body): (&[Twist; 3], usize)| {
            let n = from_twist(rows[0]);
            masses[body].answer(&n).iter().zip(&n).map(|(x, y)| x * y).sum::<f64>()
        };
        self.sides().map(side).sum()
    }

    /// Adds what (2) asks of this push alone, whose answers to itself are `own`; the change. `None`: it does not touch.
    pub(super) fn give(&mut self, own: &Rows) -> Option<[f64; 3]> {
        let least = self.least?;
        let before = self.given;
        // p_n := max(0, p_n + (least − u_n)/W_nn)
        self.given[0] = (before[0] + (least - self.rates[0]) / own[0][0]).max(0.0);
        let mut change = [self.given[0] - before[0], 0.0, 0.0];
        if self.count() == 3 {
            // p_t := p_t − u_t/λ, within the circle of radius μ p_n; λ the larger eigenvalue of W_tt: what slides then slides against its friction
            let rate: [f64; 2] = std::array::from_fn(|i| self.rates[i + 1] + own[i + 1][0] * change[0]);
            let lambda = slip(own);
            if lambda <= STIFF * own[0][0] {
                return Some(change); // joints let nothing slide
            }
            let mut friction = [before[1] - rate[0] / lambda, before[2] - rate[1] / lambda];
            let (length, most) = (friction[0].hypot(friction[1]), self.friction * self.given[0]);
            if length > most {
                friction = friction.map(|p| p * (most / length));
            }
            (change[1], change[2]) = (friction[0] - before[1], friction[1] - before[2]);
            (self.given[1], self.given[2]) = (friction[0], friction[1]);
        }
        Some(change)
    }
}
