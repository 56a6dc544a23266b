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
//! (2) is solved in turn by a few rounds in which each push gives what (2) asks of it alone, and by a guess from where these lead: who is apart, who sticks, who
//! slides and whither. Once that is known (2) is linear; a guess that the solution bears out is right.

use super::system::{Mass, System};
use crate::contact::follow::Follow;
use crate::contact::{Contact, Other};
use crate::forces::{self, Stop, StopPlace};
use crate::loads::Ledger;
use crate::maths::block::{Vector, add_scaled, from_twist, from_wrench, solve_dense, to_twist};
use crate::maths::{Twist, Wrench};
use crate::model::{BodyId, JointId, Model, State};
use glam::DVec3;

/// Largest number of rounds in which (2) is solved. A guess is right long before; where none is, rounds go on alone.
pub(super) const MOST_ROUNDS: u32 = 500;
/// Rounds before a guess.
const BEFORE_GUESS: u32 = 10;
/// How often a guess is mended before there are rounds again.
const MENDED: u32 = 6;
/// Most unknowns of a guess: its cost grows with their cube.
const MOST_UNKNOWNS: usize = 360;
/// Rows that say the same thing share the load: this share of its own answer is added to each row's.
const SHARED: f64 = 1e-9;
/// A push whose answer is this share of what it would be without joints cannot move anything: its bodies are as good as one.
const STIFF: f64 = 1e-7;
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
struct Push {
    kind: Kind,
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
    friction: f64,
    /// Speed at which it parts, when it has touched.
    bounce: f64,
    /// Whether `least` lifts one out of the other.
    lifts: bool,
    /// Least `u_n`; none while the two do not touch.
    least: Option<f64>,
    /// p
    given: [f64; 3],
    /// u
    rates: [f64; 3],
}

/// All of them.
pub(super) struct Pushes {
    all: Vec<Push>,
    /// By body: a number that those share which joints and springs connect.
    character: Vec<usize>,
    /// The pushes that answer to push k are `near[first[k]..first[k + 1]]`, each with its block of W.
    first: Vec<usize>,
    near: Vec<(usize, Rows)>,
    own: Vec<Rows>,
    /// p before the rounds.
    before: Vec<[f64; 3]>,
    guess: Guess,
    answer: Vec<Twist>,
    impulses: Vec<(usize, Vector)>,
    stops: Vec<Stop>,
}

type Rows = [[f64; 3]; 3];

/// What is guessed of a push.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Guessed {
    Apart,
    Sticks,
    /// Against a friction of this direction.
    Slides([f64; 2]),
}

/// Scratch of a guess.
#[derive(Default)]
struct Guess {
    states: Vec<Guessed>,
    /// By push: its first unknown.
    first: Vec<usize>,
    /// Row by row.
    matrix: Vec<f64>,
    x: Vec<f64>,
    /// Impulses and rates to go back to.
    kept: Vec<([f64; 3], [f64; 3])>,
}

impl Pushes {
    pub(super) fn new(model: &Model) -> Pushes {
        let joints = model.joints().iter().filter_map(|j| Some((j.child, j.parent?)));
        let springs = model.anchor_springs().iter().filter_map(|s| Some((s.a, s.b?)));
        let mut character: Vec<usize> = (0..model.bodies().len()).collect();
        fn head(character: &mut [usize], mut i: usize) -> usize {
            while character[i] != i {
                character[i] = character[character[i]];
                i = character[i];
            }
            i
        }
        for (a, b) in joints.chain(springs) {
            let (a, b) = (head(&mut character, a.index()), head(&mut character, b.index()));
            character[a.max(b)] = a.min(b);
        }
        for i in 0..character.len() {
            character[i] = head(&mut character, i);
        }
        Pushes {
            all: Vec::new(),
            character,
            first: Vec::new(),
            near: Vec::new(),
            own: Vec::new(),
            before: Vec::new(),
            guess: Guess::default(),
            answer: vec![Twist::ZERO; model.bodies().len()],
            impulses: Vec::new(),
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
            push.gap = gap;
            push.lifts = false;
            let touches = push.given[0] > 0.0 || gap <= tolerance;
            push.least = touches.then_some(if push.given[0] > 0.0 { push.bounce } else { 0.0 });
        }
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

    /// Finds W with the factors of the system; how many solutions it took.
    pub(super) fn respond(&mut self, system: &mut System) -> u32 {
        let Pushes { all, character, first, near, own, answer, impulses, .. } = self;
        first.clear();
        near.clear();
        own.clear();
        let of = |body: Option<usize>| body.map(|i| character[i]);
        let mut solves = 0;
        for k in 0..all.len() {
            first.push(near.len());
            own.push([[0.0; 3]; 3]);
            if all[k].least.is_none() {
                continue;
            }
            let mine = [of(Some(all[k].a)), of(all[k].b)];
            for (i, push) in all.iter().enumerate().filter(|(_, push)| push.least.is_some()) {
                let theirs = [of(Some(push.a)), of(push.b)];
                if mine.iter().flatten().any(|c| theirs.contains(&Some(*c))) {
                    near.push((i, [[0.0; 3]; 3]));
                }
            }
            for column in 0..all[k].count() {
                impulses.clear();
                all[k].impulses(std::array::from_fn(|i| f64::from(u8::from(i == column))), impulses);
                system.answer(impulses, answer);
                solves += 1;
                for (i, block) in &mut near[first[k]..] {
                    for (row, entries) in block.iter_mut().enumerate().take(all[*i].count()) {
                        entries[column] = all[*i].rate(row, |body| answer[body]);
                    }
                }
            }
            own[k] = near[first[k]..].iter().find(|(i, _)| *i == k).expect("it answers to itself").1;
            // Where joints leave hardly a way out bodies are lifted out of each other as slowly: no faster than they would move without them.
            let share = own[k][0][0] / all[k].softness(&system.masses);
            all[k].least = all[k].least.filter(|_| share > STIFF);
            if all[k].lifts {
                all[k].least = all[k].least.map(|least| least * share.min(1.0));
            }
            if all[k].least.is_none() {
                near.truncate(first[k]);
            }
        }
        first.push(near.len());
        solves
    }

    /// Solves (2) at velocities with this `drift`, to a `tolerance` of the rates, and adds what the pushes and the joints' answers change. How far the rates
    /// were from what they are now, and how many rounds it took.
    pub(super) fn push(
        &mut self,
        system: &mut System,
        velocities: &mut [Twist],
        drift: &[Twist],
        tolerance: f64,
    ) -> (f64, u32) {
        self.measure(velocities, drift);
        self.before.clear();
        self.before.extend(self.all.iter().map(|push| push.given));
        let mut rounds = 0;
        while rounds < MOST_ROUNDS {
            rounds += 1;
            let mut largest = 0.0f64;
            for k in 0..self.all.len() {
                let k = if rounds % 2 == 1 { k } else { self.all.len() - 1 - k };
                let Some(change) = self.all[k].give(&self.own[k]) else { continue };
                largest = largest.max(size(&self.own[k], change));
                for (i, block) in &self.near[self.first[k]..self.first[k + 1]] {
                    add_product(&mut self.all[*i].rates, block, change);
                }
            }
            if largest <= tolerance || (rounds % BEFORE_GUESS == 0 && self.guess(tolerance)) {
                break;
            }
        }

        let Pushes { all, own, before, answer, impulses, .. } = self;
        let mut moved = 0.0f64;
        impulses.clear();
        for ((push, own), before) in all.iter().zip(own.iter()).zip(before.iter()) {
            let change: [f64; 3] = std::array::from_fn(|i| push.given[i] - before[i]);
            if change != [0.0; 3] {
                moved = moved.max(size(own, change));
                push.impulses(change, impulses);
            }
        }
        if !impulses.is_empty() {
            system.answer(impulses, answer);
            for (velocity, answer) in velocities.iter_mut().zip(answer.iter()) {
                *velocity = *velocity + *answer;
            }
        }
        (moved, rounds)
    }

    /// Solves (2) for who is apart, sticks and slides as it looks now, mending that a few times; whether it is solved. If not, all is as before.
    fn guess(&mut self, tolerance: f64) -> bool {
        self.guess.states.clear();
        self.guess.states.extend(self.all.iter().map(Push::looks));
        self.guess.kept.clear();
        self.guess.kept.extend(self.all.iter().map(|push| (push.given, push.rates)));
        for _ in 0..MENDED {
            if !self.solve_guess() {
                break;
            }
            let mut right = true;
            for (push, state) in self.all.iter().zip(&mut self.guess.states) {
                if let Some(other) = push.contradicts(*state, tolerance) {
                    (*state, right) = (other, false);
                }
            }
            if right {
                if self.all.iter().zip(&self.guess.states).all(|(push, state)| push.holds(*state, tolerance)) {
                    return true;
                }
                break; // rows that nearly contradict each other
            }
        }
        for (push, kept) in self.all.iter_mut().zip(&self.guess.kept) {
            (push.given, push.rates) = *kept;
        }
        false
    }

    /// The impulses that hold what is guessed, and the rates they make; false when there are too many or no such impulses.
    fn solve_guess(&mut self) -> bool {
        let Pushes { all, first, near, own, guess, .. } = self;
        let Guess { states, first: unknown, matrix, x, .. } = guess;
        let count = |push: &Push, state: Guessed| match state {
            Guessed::Apart => 0,
            Guessed::Sticks => push.count(),
            Guessed::Slides(_) => 1,
        };
        unknown.clear();
        let mut n = 0;
        for (push, state) in all.iter().zip(states.iter()) {
            unknown.push(n);
            n += count(push, *state);
        }
        if n > MOST_UNKNOWNS {
            return false;
        }
        matrix.clear();
        matrix.resize(n * n, 0.0);
        x.clear();
        x.resize(n, 0.0);
        // Rates without any push, and what they lack
        for k in 0..all.len() {
            let given = all[k].given;
            for (i, block) in &near[first[k]..first[k + 1]] {
                add_product(&mut all[*i].rates, block, given.map(|p| -p));
            }
        }
        for (k, push) in all.iter().enumerate() {
            for row in 0..count(push, states[k]) {
                let wanted = if row == 0 { push.least.unwrap_or(0.0) } else { 0.0 };
                x[unknown[k] + row] = wanted - push.rates[row];
            }
        }
        for (k, push) in all.iter().enumerate() {
            let columns = count(push, states[k]);
            for (i, block) in &near[first[k]..first[k + 1]] {
                for row in 0..count(&all[*i], states[*i]) {
                    for column in 0..columns {
                        let mut entry = block[row][column];
                        if let Guessed::Slides(d) = states[k] {
                            entry += push.friction * (block[row][1] * d[0] + block[row][2] * d[1]);
                        }
                        if *i == k && row == column {
                            entry += SHARED * own[k][row][row];
                        }
                        matrix[(unknown[*i] + row) * n + unknown[k] + column] = entry;
                    }
                }
            }
        }
        solve_dense(matrix, x);
        if !x.iter().all(|p| p.is_finite()) {
            x.fill(0.0);
            n = 0;
        }
        for (k, push) in all.iter_mut().enumerate() {
            let p = |row: usize| x[unknown[k] + row];
            push.given = match states[k] {
                Guessed::Apart => [0.0; 3],
                Guessed::Sticks if push.count() == 3 => [p(0), p(1), p(2)],
                Guessed::Sticks => [p(0), 0.0, 0.0],
                Guessed::Slides(d) => [p(0), push.friction * p(0) * d[0], push.friction * p(0) * d[1]],
            };
        }
        for k in 0..all.len() {
            let given = all[k].given;
            for (i, block) in &near[first[k]..first[k + 1]] {
                add_product(&mut all[*i].rates, block, given);
            }
        }
        n > 0
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

/// The largest change of a rate of its own that these impulses make.
fn size(own: &Rows, change: [f64; 3]) -> f64 {
    (0..3).map(|i| own[i][i] * change[i].abs()).fold(0.0, f64::max)
}

/// `x += block y`.
fn add_product(x: &mut [f64; 3], block: &Rows, y: [f64; 3]) {
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
    fn count(&self) -> usize {
        match self.kind {
            Kind::Contact if self.friction > 0.0 => 3,
            _ => 1,
        }
    }

    fn sides(&self) -> impl Iterator<Item = (&[Twist; 3], usize)> {
        [Some((&self.rows_a, self.a)), self.b.map(|b| (&self.rows_b, b))].into_iter().flatten()
    }

    /// Row i applied to a motion.
    fn rate(&self, i: usize, motion: impl Fn(usize) -> Twist) -> f64 {
        let along = |row: Twist, v: Twist| row.linear.dot(v.linear) + row.angular.dot(v.angular);
        along(self.rows_a[i], motion(self.a)) + self.b.map_or(0.0, |b| along(self.rows_b[i], motion(b)))
    }

    /// These impulses on its bodies.
    fn impulses(&self, change: [f64; 3], all: &mut Vec<(usize, Vector)>) {
        for (rows, body) in self.sides() {
            let mut impulse = [0.0; 6];
            (0..3).for_each(|i| add_scaled(&mut impulse, change[i], &from_twist(rows[i])));
            all.push((body, impulse));
        }
    }

    /// How it looks: apart, sticking or sliding.
    fn looks(&self) -> Guessed {
        let rubs = self.given[1].hypot(self.given[2]);
        let most = self.friction * self.given[0];
        if self.least.is_none() || self.given[0] <= 0.0 {
            Guessed::Apart
        } else if self.count() == 1 || rubs < most * (1.0 - 1e-9) {
            Guessed::Sticks
        } else {
            Guessed::Slides([self.given[1] / rubs, self.given[2] / rubs])
        }
    }

    /// Whether its rates are what `state` asks of them.
    fn holds(&self, state: Guessed, tolerance: f64) -> bool {
        let near = |rate: f64, wanted: f64| (rate - wanted).abs() <= 10.0 * tolerance;
        let Some(least) = self.least else { return true };
        match state {
            Guessed::Apart => true,
            Guessed::Sticks if self.count() == 3 => {
                near(self.rates[0], least) && near(self.rates[1], 0.0) && near(self.rates[2], 0.0)
            }
            _ => near(self.rates[0], least),
        }
    }

    /// What it is instead, when its impulses and rates are not those of `state`.
    fn contradicts(&self, state: Guessed, tolerance: f64) -> Option<Guessed> {
        let least = self.least?;
        match state {
            Guessed::Apart => (self.rates[0] < least - tolerance).then_some(Guessed::Sticks),
            _ if self.given[0] < 0.0 => Some(Guessed::Apart),
            Guessed::Sticks => {
                let rubs = self.given[1].hypot(self.given[2]);
                let slides = self.count() == 3 && rubs > self.friction * self.given[0];
                slides.then(|| Guessed::Slides([self.given[1] / rubs, self.given[2] / rubs]))
            }
            Guessed::Slides(d) => {
                // Friction is against the slip, u_t = −|u_t| d
                let speed = self.rates[1].hypot(self.rates[2]);
                let along = self.rates[1] * d[0] + self.rates[2] * d[1];
                let across = self.rates[1] * d[1] - self.rates[2] * d[0];
                if along > tolerance {
                    Some(Guessed::Sticks)
                } else if across.abs() > tolerance {
                    Some(Guessed::Slides([-self.rates[1] / speed, -self.rates[2] / speed]))
                } else {
                    None
                }
            }
        }
    }

    /// `n·M⁻¹ n` of its two bodies alone.
    fn softness(&self, masses: &[Mass]) -> f64 {
        let side = |(rows, body): (&[Twist; 3], usize)| {
            let n = from_twist(rows[0]);
            masses[body].answer(&n).iter().zip(&n).map(|(x, y)| x * y).sum::<f64>()
        };
        self.sides().map(side).sum()
    }

    /// Adds what (2) asks of this push alone, whose answers to itself are `own`; the change. `None`: it does not touch.
    fn give(&mut self, own: &Rows) -> Option<[f64; 3]> {
        let least = self.least?;
        let before = self.given;
        // p_n := max(0, p_n + (least − u_n)/W_nn)
        self.given[0] = (before[0] + (least - self.rates[0]) / own[0][0]).max(0.0);
        let mut change = [self.given[0] - before[0], 0.0, 0.0];
        if self.count() == 3 {
            // p_t := p_t − u_t/λ, within the circle of radius μ p_n; λ the larger eigenvalue of W_tt: what slides then slides against its friction
            let rate: [f64; 2] = std::array::from_fn(|i| self.rates[i + 1] + own[i + 1][0] * change[0]);
            let (x, y, xy) = (own[1][1], own[2][2], own[1][2]);
            let lambda = 0.5 * (x + y) + (0.25 * (x - y) * (x - y) + xy * xy).sqrt();
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
