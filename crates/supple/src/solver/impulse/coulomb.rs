//! (2) of pushes.rs for all pushes at once: Newton's method on Coulomb's law [Alart & Curnier 1991].
//!
//! ```text
//! p_n = max(0, p_n − (u_n − least)/w),     p_t = Π(p_t − u_t/λ),     Π onto the disc of radius μ p_n                        (1)
//! ```
//! w and λ are what a push answers to itself, along the normal and across it. (1) is solved at rates with a give, `u + ε w (p − c)`. Rows that say the same thing,
//! such as those of the two ends of a wheel's line, or that joints leave hardly a way, leave p undetermined; with the give it is the one nearest to c. c
//! begins as the impulses of the part before: what rests gives way to nothing. It follows p until the give is below [`SETTLED`], and ε falls while the steps find
//! their way. So each push counts in joints and in all other pushes at once, and what is the same in every part is found in one step.
//!
//! Only what pushes has unknowns and columns of W, each of which takes a solution of the joints' system: they are found when a push first acts.

use super::pushes::{Push, Rows, STIFF, add_product, size, slip};
use super::system::System;
use crate::maths::Twist;
use crate::maths::block::{Vector, solve_dense};

/// Steps of one solution, and in one place of c.
const MOST_STEPS: u32 = 90;
const MOST_AT_ONCE: u32 = 12;
/// The first give, the least, and beyond which one no longer tries.
const FIRST_GIVE: f64 = 1e-3;
const LEAST_GIVE: f64 = 1e-9;
const MOST_GIVE: f64 = 1.0;
/// Found in so many steps, the give may fall to this share; not found, it is so many times larger.
const EASY: u32 = 4;
const FALL: f64 = 0.03;
const RISE: f64 = 30.0;
/// Rates that are left by the give, in tolerances.
const SETTLED: f64 = 1e4;
/// Most unknowns of a step: its cost grows with their cube. With more, pushes take turns.
const MOST_UNKNOWNS: usize = 480;
/// Rounds in which pushes take turns.
const MOST_ROUNDS: u32 = 500;

/// How a push acts, by (1).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Acts {
    Apart,
    Sticks,
    Slides,
}

/// A push in the equations.
#[derive(Clone, Copy, Debug)]
struct Unknown {
    /// Where its columns of W begin; none before it first acts.
    columns: Option<usize>,
    /// How many of its rows count: friction does not where joints let nothing slide.
    count: usize,
    /// w and λ
    stiff: [f64; 2],
    acts: Acts,
    /// Its first row in the matrix.
    first: usize,
    /// c
    centre: [f64; 3],
    /// Its rates there.
    rates: [f64; 3],
    /// p before.
    before: [f64; 3],
}

const NEW: Unknown = Unknown {
    columns: None,
    count: 1,
    stiff: [1.0; 2],
    acts: Acts::Apart,
    first: 0,
    centre: [0.0; 3],
    rates: [0.0; 3],
    before: [0.0; 3],
};

/// What (1) asks of a push at its present impulses and rates.
struct Target {
    acts: Acts,
    /// How far it is from that, as rates.
    missing: [f64; 3],
    /// The way of its friction where it slides, and the share of what would make it stick.
    along: [f64; 2],
    share: f64,
}

impl Unknown {
    fn target(&self, push: &Push, give: f64) -> Target {
        let [w, lambda] = self.stiff;
        let size = [w, lambda, lambda];
        let rate = |i: usize| push.rates[i] + give * size[i] * (push.given[i] - self.centre[i]);
        let mut target = Target { acts: Acts::Apart, missing: [0.0; 3], along: [0.0; 2], share: 0.0 };
        let normal = push.given[0] - (rate(0) - push.least.unwrap_or(f64::NEG_INFINITY)) / w;
        let mut wanted = [0.0; 3];
        if normal > 0.0 {
            (target.acts, wanted[0]) = (Acts::Sticks, normal);
            if self.count == 3 {
                let friction = [1, 2].map(|i| push.given[i] - rate(i) / lambda);
                let (length, most) = (friction[0].hypot(friction[1]), push.friction * normal);
                if length > most {
                    target.acts = Acts::Slides;
                    (target.along, target.share) = (friction.map(|f| f / length), most / length);
                }
                let share = if length > most { most / length } else { 1.0 };
                (wanted[1], wanted[2]) = (friction[0] * share, friction[1] * share);
            }
        }
        (0..self.count).for_each(|i| target.missing[i] = (push.given[i] - wanted[i]) * size[i]);
        target
    }
}

/// What a solution took.
pub(super) struct Found {
    /// How far rates were from what they are now.
    pub moved: f64,
    pub steps: u32,
    pub is_settled: bool,
}

/// Scratch of the method.
pub(super) struct Coulomb {
    unknowns: Vec<Unknown>,
    /// Columns of W: the block of push i in those of push k is `blocks[unknowns[k].columns + i]`.
    blocks: Vec<Rows>,
    /// Row by row.
    matrix: Vec<f64>,
    x: Vec<f64>,
    /// Roots of the diagonal, by which rows and columns are divided.
    scale: Vec<f64>,
    answer: Vec<Twist>,
    impulses: Vec<(usize, Vector)>,
    solves: u32,
    /// Whether it begins where the part before ended.
    begins: bool,
}

impl Coulomb {
    pub(super) fn new(bodies: usize) -> Coulomb {
        Coulomb {
            unknowns: Vec::new(),
            blocks: Vec::new(),
            matrix: Vec::new(),
            x: Vec::new(),
            scale: Vec::new(),
            answer: vec![Twist::ZERO; bodies],
            impulses: Vec::new(),
            solves: 0,
            begins: false,
        }
    }

    /// Forgets W: the joints' system is another.
    pub(super) fn begin(&mut self, pushes: usize) {
        self.unknowns.clear();
        self.unknowns.resize(pushes, NEW);
        self.blocks.clear();
        self.begins = true;
    }

    /// How many solutions of the joints' system it took since this was last asked.
    pub(super) fn take_solves(&mut self) -> u32 {
        std::mem::take(&mut self.solves)
    }

    /// Solves (2), the rates of all being measured without what changes now, and adds the joints' answers to the velocities.
    pub(super) fn solve(
        &mut self,
        all: &mut [Push],
        system: &mut System,
        velocities: &mut [Twist],
        tolerance: f64,
    ) -> Found {
        for (unknown, push) in self.unknowns.iter_mut().zip(all.iter()) {
            unknown.before = push.given;
        }
        if std::mem::take(&mut self.begins) {
            for k in 0..all.len() {
                let guess = all[k].guess();
                if guess != all[k].given && self.wakes(k, all, system) {
                    self.give(k, guess, all);
                }
            }
        }
        let mut steps = 0;
        let is_settled = self.follow(all, system, &mut steps, tolerance) || self.take_turns(all, system, tolerance);
        let mut moved = 0.0f64;
        self.impulses.clear();
        for (k, push) in all.iter().enumerate() {
            let before = self.unknowns[k].before;
            let change: [f64; 3] = std::array::from_fn(|i| push.given[i] - before[i]);
            if change != [0.0; 3] {
                moved = moved.max(size(self.own(k), change));
                push.impulses(change, &mut self.impulses);
            }
        }
        if !self.impulses.is_empty() {
            system.answer(&self.impulses, &mut self.answer);
            self.solves += 1;
            velocities.iter_mut().zip(&self.answer).for_each(|(velocity, answer)| *velocity = *velocity + *answer);
        }
        Found { moved, steps, is_settled }
    }

    /// Solves (1) at centres that follow p; whether it is solved. If not, p is at the last centre.
    fn follow(&mut self, all: &mut [Push], system: &mut System, steps: &mut u32, tolerance: f64) -> bool {
        let (mut give, mut least) = (FIRST_GIVE, LEAST_GIVE);
        self.centre(all);
        while *steps < MOST_STEPS && give <= MOST_GIVE {
            let before = *steps;
            if self.newton(all, system, give, steps, tolerance) {
                let mut left = 0.0f64;
                for (k, push) in all.iter().enumerate().filter(|(k, _)| self.unknowns[*k].columns.is_some()) {
                    let change = std::array::from_fn(|i| push.given[i] - self.unknowns[k].centre[i]);
                    left = left.max(give * size(self.own(k), change));
                }
                self.centre(all);
                // as exactly as it comes easily
                let is_easy = *steps - before <= EASY && give > least;
                if left <= tolerance || (left <= SETTLED * tolerance && !is_easy) {
                    return true;
                }
                if is_easy {
                    give = (give * FALL).max(least);
                }
            } else {
                least = give * RISE;
                for (unknown, push) in self.unknowns.iter().zip(all.iter_mut()) {
                    (push.given, push.rates) = (unknown.centre, unknown.rates);
                }
                give *= RISE;
            }
        }
        false
    }

    /// Puts the centres where p is.
    fn centre(&mut self, all: &[Push]) {
        for (unknown, push) in self.unknowns.iter_mut().zip(all) {
            (unknown.centre, unknown.rates) = (push.given, push.rates);
        }
    }

    /// Solves (1) with this give; whether it is solved.
    fn newton(&mut self, all: &mut [Push], system: &mut System, give: f64, steps: &mut u32, tolerance: f64) -> bool {
        for done in 0..=MOST_AT_ONCE {
            match self.look(all, system, give) {
                off if off <= tolerance => return true,
                off if !off.is_finite() => return false,
                _ if done == MOST_AT_ONCE || *steps == MOST_STEPS => return false,
                _ => {}
            }
            *steps += 1;
            if !self.step(all, give) {
                return false;
            }
        }
        false
    }

    /// How each push acts, by (1), and how far the rates are from what it asks.
    fn look(&mut self, all: &mut [Push], system: &mut System, give: f64) -> f64 {
        let mut off = 0.0f64;
        for k in 0..all.len() {
            let is_apart = |push: &Push| push.least.is_none_or(|least| push.rates[0] >= least);
            if self.unknowns[k].columns.is_none() && (is_apart(&all[k]) || !self.wakes(k, all, system)) {
                continue;
            }
            let target = self.unknowns[k].target(&all[k], give);
            self.unknowns[k].acts = target.acts;
            for missing in target.missing {
                // one that is no number must not be lost
                off = if missing.abs() <= off { off } else { missing.abs() };
            }
        }
        off
    }

    /// Whether a push has columns of W; finds them when it has none. One that can move nothing never acts.
    fn wakes(&mut self, k: usize, all: &mut [Push], system: &mut System) -> bool {
        if self.unknowns[k].columns.is_some() || all[k].least.is_none() {
            return self.unknowns[k].columns.is_some();
        }
        let base = self.blocks.len();
        self.blocks.resize(base + all.len(), [[0.0; 3]; 3]);
        for column in 0..all[k].count() {
            self.impulses.clear();
            all[k].impulses(std::array::from_fn(|i| f64::from(u8::from(i == column))), &mut self.impulses);
            system.answer(&self.impulses, &mut self.answer);
            self.solves += 1;
            for (block, push) in self.blocks[base..].iter_mut().zip(all.iter()).filter(|(_, p)| p.least.is_some()) {
                for (row, entries) in block.iter_mut().enumerate().take(push.count()) {
                    entries[column] = push.rate(row, |body| self.answer[body]);
                }
            }
        }
        // Where joints leave hardly a way out bodies are lifted out of each other as slowly: no faster than they would move without them.
        let share = self.blocks[base + k][0][0] / all[k].softness(&system.masses);
        if share <= STIFF || share.is_nan() {
            all[k].least = None;
            self.blocks.truncate(base);
            return false;
        }
        all[k].lift_by(share.min(1.0));
        let own = &self.blocks[base + k];
        let (w, lambda) = (own[0][0], slip(own));
        let slides = all[k].count() == 3 && lambda > STIFF * w;
        let count = if slides { 3 } else { 1 };
        self.unknowns[k] = Unknown { columns: Some(base), count, stiff: [w, lambda], ..self.unknowns[k] };
        true
    }

    /// What a push answers to itself.
    fn own(&self, k: usize) -> &Rows {
        &self.blocks[self.unknowns[k].columns.expect("only what has columns is given anything") + k]
    }

    /// Gives a push these impulses in place of its own; all rates follow.
    fn give(&mut self, k: usize, impulses: [f64; 3], all: &mut [Push]) {
        let change: [f64; 3] = std::array::from_fn(|i| impulses[i] - all[k].given[i]);
        all[k].given = impulses;
        let base = self.unknowns[k].columns.expect("it was woken");
        for (block, push) in self.blocks[base..base + all.len()].iter().zip(all.iter_mut()) {
            add_product(&mut push.rates, block, change);
        }
    }

    /// One step of Newton's method; whether there was one.
    fn step(&mut self, all: &mut [Push], give: f64) -> bool {
        let mut n = 0;
        for k in 0..all.len() {
            self.unknowns[k].first = n;
            if self.unknowns[k].columns.is_none() {
                continue;
            }
            match self.unknowns[k].acts {
                Acts::Apart if all[k].given != [0.0; 3] => self.give(k, [0.0; 3], all),
                Acts::Apart => {}
                _ => n += self.unknowns[k].count,
            }
        }
        if n > MOST_UNKNOWNS {
            return false;
        }
        let Coulomb { unknowns, blocks, matrix, x, scale, .. } = self;
        matrix.clear();
        matrix.resize(n * n, 0.0);
        x.clear();
        x.resize(n, 0.0);
        scale.clear();
        scale.resize(n, 0.0);
        let acting = |k: &usize| unknowns[*k].columns.is_some() && unknowns[*k].acts != Acts::Apart;
        for i in (0..all.len()).filter(acting) {
            let Unknown { first, count, stiff: [w, lambda], acts, .. } = unknowns[i];
            let target = unknowns[i].target(&all[i], give);
            for row in 0..count {
                x[first + row] = -target.missing[row];
                scale[first + row] = 1.0 / if row == 0 { w } else { lambda }.sqrt();
            }
            for k in (0..all.len()).filter(acting) {
                let mut block = blocks[unknowns[k].columns.expect("it acts") + i];
                if i == k {
                    (0..count).for_each(|row| block[row][row] += give * if row == 0 { w } else { lambda });
                }
                if acts == Acts::Slides {
                    // λ (dp_t − r (1 − e eᵀ)(dp_t − du_t/λ) − μ e (dp_n − du_n/w))
                    let ([e, f], r) = (target.along, target.share);
                    let plain = block;
                    for column in 0..3 {
                        let own = |row: usize| if i == k && row == column { lambda } else { 0.0 };
                        let turned = [own(1) - plain[1][column], own(2) - plain[2][column]];
                        let along = e * turned[0] + f * turned[1];
                        let normal = if i == k && column == 0 { 1.0 } else { 0.0 } - plain[0][column] / w;
                        let grows = lambda * all[i].friction * normal;
                        block[1][column] = own(1) - r * (turned[0] - e * along) - e * grows;
                        block[2][column] = own(2) - r * (turned[1] - f * along) - f * grows;
                    }
                }
                let at = unknowns[k].first;
                for row in 0..count {
                    for column in 0..unknowns[k].count {
                        matrix[(first + row) * n + at + column] = block[row][column];
                    }
                }
            }
        }
        for row in 0..n {
            x[row] *= scale[row];
            matrix[row * n..(row + 1) * n].iter_mut().zip(scale.iter()).for_each(|(m, s)| *m *= scale[row] * s);
        }
        solve_dense(matrix, x);
        if !x.iter().all(|x| x.is_finite()) {
            return false;
        }
        for k in 0..all.len() {
            if self.unknowns[k].columns.is_none() || self.unknowns[k].acts == Acts::Apart {
                continue;
            }
            let Unknown { first, count, .. } = self.unknowns[k];
            let mut given = all[k].given;
            (0..count).for_each(|row| given[row] += self.x[first + row] * self.scale[first + row]);
            self.give(k, given, all);
        }
        true
    }

    /// Pushes take turns, each doing what (2) asks of it alone; whether they hardly changed any more.
    fn take_turns(&mut self, all: &mut [Push], system: &mut System, tolerance: f64) -> bool {
        for round in 0..MOST_ROUNDS {
            let mut largest = 0.0f64;
            for k in 0..all.len() {
                let k = if round % 2 == 1 { all.len() - 1 - k } else { k };
                let is_apart = all[k].least.is_none_or(|least| all[k].rates[0] >= least && all[k].given == [0.0; 3]);
                if is_apart || !self.wakes(k, all, system) {
                    continue;
                }
                let own = *self.own(k);
                let before = all[k].given;
                let Some(change) = all[k].give(&own) else { continue };
                let given = std::mem::replace(&mut all[k].given, before);
                largest = largest.max(size(&own, change));
                self.give(k, given, all);
            }
            if largest <= SETTLED * tolerance {
                return true;
            }
        }
        false
    }
}
