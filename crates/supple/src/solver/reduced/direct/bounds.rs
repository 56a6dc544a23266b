//! Commands within their bounds: torques, accelerations and rates.

use super::super::recursion::{Given, Recursion, Singular};
use super::{Asked, Direct, Dynamics, Role, dot};
use crate::control::inverse::Robustness;
use crate::control::{ControlReport, Gains, Level, Style};
use std::ops::Range;

/// How an actuator is told, at its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// By its acceleration.
    Acceleration,
    /// By its torque: for its own sake, or because it is all it has.
    Torque,
    /// It was to have an acceleration that takes more torque than it has: it has that.
    Held,
    /// Nothing.
    Limp,
}

/// A share that counts as nothing when what was found is compared with its bound.
pub(super) const BARELY: f64 = 1e-9;
/// The share of what a level asks for that it may lose to those after it.
const LOSS: f64 = 1e-12;
/// Torques at their bounds that others make up for, in least torque; more are held back.
pub(super) const MOST_FIXED: usize = 64;
/// How often commands are distributed anew when actuators reach their bounds.
pub(super) const ROUNDS: u32 = 8;

impl Direct {
    /// Solves the rows such that no command is beyond its bounds: one that would be stays there, and the others do what they can. Where levels before would lose by it, a level is done by the share that
    /// is possible without. Returns how many came to their bounds.
    pub(super) fn solve_within_bounds(&mut self, asked: Asked<'_>, laws: usize, rates: Option<&[f64]>) -> u32 {
        let robustness = self.robustness(asked);
        let mut limited = 0;
        let mut kept = [0.0; 3]; // what levels missed
        self.levels = 0;
        let last = Level::ALL.iter().rposition(|level| self.rows_of(*level) > 0).unwrap_or(0);
        for k in 0..=last {
            if k < last && self.rows_of(Level::ALL[k]) == 0 {
                continue;
            }
            self.levels += 1;
            self.below.copy_from_slice(&self.command);
            self.remember();
            let mut reached = 0;
            for _ in 0..ROUNDS {
                self.solve_some_levels(robustness, laws, k + 1);
                let more = self.fix_at_bounds();
                reached += more;
                if more == 0 {
                    break;
                }
            }
            limited += reached;
            let lost = (0..k).any(|j| self.missed(laws, j) > kept[j] + LOSS * (kept[j] + self.asked(laws, j)));
            if self.levels > 1 && reached > 0 && lost {
                self.turn_back();
                self.solve_some_levels(robustness, laws, k + 1);
                self.take_share();
                return limited + self.bound(asked, rates);
            }
            self.take_solution();
            (0..=k).for_each(|j| kept[j] = self.missed(laws, j));
            let above = self.bound(asked, rates);
            if above > 0 {
                return limited + above;
            }
        }
        limited
    }

    /// The sum of squares of what the solution at hand misses of a level.
    fn missed(&self, laws: usize, level: usize) -> f64 {
        let n = self.columns.len();
        let range = self.range_of(laws, level);
        let rows = self.matrix[range.start * n..range.end * n].chunks_exact(n.max(1));
        rows.zip(&self.rhs[range]).map(|(row, d)| (d - dot(row, self.hierarchy.solution())).powi(2)).sum()
    }

    /// The sum of squares of what a level asks for.
    fn asked(&self, laws: usize, level: usize) -> f64 {
        self.rhs_before[self.range_of(laws, level)].iter().map(|d| d * d).sum()
    }

    /// The rows of a level.
    fn range_of(&self, laws: usize, level: usize) -> Range<usize> {
        let first = laws + Level::ALL[..level].iter().map(|level| self.rows_of(*level)).sum::<usize>();
        first..first + self.rows_of(Level::ALL[level])
    }

    /// The commands that are the largest share of the way from those below to the solution at hand within their bounds.
    fn take_share(&mut self) {
        let (share, _) = self.share_of_columns();
        self.command.copy_from_slice(&self.own);
        for (column, &rate) in self.columns.iter().enumerate() {
            let part = self.below[rate] + share * (self.sum(column) - self.below[rate]);
            self.command[rate] = part.clamp(self.low[rate], self.high[rate]);
        }
    }

    /// The commands of the solution at hand.
    fn take_solution(&mut self) {
        self.command.copy_from_slice(&self.own);
        for (column, &rate) in self.columns.iter().enumerate() {
            self.command[rate] = self.sum(column).clamp(self.low[rate], self.high[rate]);
        }
    }

    /// The command of a column: what is commanded beside the solution of the rows, and that.
    fn sum(&self, column: usize) -> f64 {
        self.own[self.columns[column]] + self.hierarchy.solution()[column] * self.ease[column]
    }

    /// Takes commands that are beyond their bounds out of the rows, as constants. Returns how many.
    fn fix_at_bounds(&mut self) -> u32 {
        let mut reached = 0;
        for column in 0..self.columns.len() {
            let (rate, sum) = (self.columns[column], self.sum(column));
            let bound = sum.clamp(self.low[rate], self.high[rate]);
            if bound != sum {
                reached += 1;
                self.fix(column, bound);
            }
        }
        reached
    }

    /// Solves the rows for torques such that none is beyond its bounds. The weakest that would be stays there, and the others do what they can; after [`ROUNDS`] of them, or where levels before would
    /// lose by it, what is asked for is done by the share that is possible: in its direction, but more slowly. The recursion measures torques. Returns how many came to their bounds.
    pub(super) fn solve_within_torques(&mut self, robustness: Robustness, mut measures: Option<&mut Recursion>) -> u32 {
        self.fixed.clear();
        let mut kept = [0.0; 3]; // what levels missed
        let mut tried = None; // the level for which a torque stays at its bound, and that one may turn out to be dear to those before it
        for round in 0.. {
            self.below.copy_from_slice(&self.own);
            let (mut share, mut weakest, mut at, mut missed, mut is_first) = (1.0, 0, 0, kept, true);
            for k in 0..Level::ALL.len() {
                if self.rows_of(Level::ALL[k]) == 0 {
                    continue;
                }
                is_first = k == self.first_level();
                self.solve_some_levels(robustness, 0, k + 1);
                (share, weakest) = self.share_of_columns();
                at = k;
                if share < 1.0 {
                    break;
                }
                (0..=k).for_each(|j| missed[j] = self.missed(0, j));
                for column in 0..self.columns.len() {
                    self.below[self.columns[column]] = self.sum(column);
                }
            }
            if let Some(level) = tried {
                let lost = |j: usize| missed[j] > kept[j] + LOSS * (kept[j] + self.asked(0, j));
                if share < 1.0 && at < level || (0..level).any(lost) {
                    self.turn_back();
                    self.below.copy_from_slice(&self.own);
                    self.solve_some_levels(robustness, 0, level);
                    for column in 0..self.columns.len() {
                        self.below[self.columns[column]] = self.sum(column);
                    }
                    self.solve_some_levels(robustness, 0, level + 1);
                    self.take_share();
                    return round;
                }
            }
            if share == 1.0 {
                self.take_solution();
                return round;
            }
            if round == ROUNDS {
                self.take_share();
                return round + 1;
            }
            (kept, tried) = (missed, (!is_first).then_some(at));
            self.remember();
            let rate = self.columns[weakest];
            let bound = self.sum(weakest).clamp(self.low[rate], self.high[rate]);
            match &mut measures {
                Some(recursion) => self.fix_measured(weakest, bound, recursion),
                None => self.fix(weakest, bound),
            }
        }
        unreachable!("it ends after {ROUNDS} rounds")
    }

    /// The first level that anything is asked on.
    fn first_level(&self) -> usize {
        Level::ALL.iter().position(|level| self.rows_of(*level) > 0).unwrap_or(0)
    }

    /// Remembers the rows and what is commanded beside, for [`turn_back`](Self::turn_back).
    fn remember(&mut self) {
        self.matrix_before.clone_from(&self.matrix);
        self.duals_before.clone_from(&self.duals);
        self.rhs_before.clone_from(&self.rhs);
        self.own_before.copy_from_slice(&self.own);
    }

    fn turn_back(&mut self) {
        std::mem::swap(&mut self.matrix, &mut self.matrix_before);
        std::mem::swap(&mut self.duals, &mut self.duals_before);
        std::mem::swap(&mut self.rhs, &mut self.rhs_before);
        std::mem::swap(&mut self.own, &mut self.own_before);
    }

    /// The least of the shares of columns, and the column that has it.
    fn share_of_columns(&self) -> (f64, usize) {
        let mut least = (1.0, 0);
        for column in 0..self.columns.len() {
            let own = self.share_of_column(column);
            if own < least.0 {
                least = (own, column);
            }
        }
        least
    }

    /// The share of the way from the command below to that of a column that is within its bounds.
    fn share_of_column(&self, column: usize) -> f64 {
        let (rate, sum) = (self.columns[column], self.sum(column));
        let bound = sum.clamp(self.low[rate], self.high[rate]);
        share_within(self.below[rate], sum, bound)
    }

    /// Sees to it that no actuator that is told its acceleration needs more torque than it has; the solution at hand is that of the commands. Those that are too weak even for their brakes get the
    /// torque they have, as does the weakest for the goals, and the rows are to be solved anew without them: others know what they can count on. When the rounds are used up, what is
    /// asked for is done by the share that is possible: in its direction, but more slowly; in least acceleration last levels first. Returns whether all is as it is to be, and the number of
    /// right-hand sides solved.
    pub(super) fn keep_torques(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        rounds: &mut u32,
        report: &mut ControlReport,
    ) -> Result<(bool, u32), Singular> {
        if !(0..self.told.len()).any(|i| self.is_too_weak(asked, dynamics.recursion, i)) {
            return Ok((true, 0));
        }
        self.set_brakes(asked);
        self.give_told(&self.brake, dynamics.recursion);
        let mut solves = dynamics.factor_and_solve()?;
        let mut weak = 0;
        for i in 0..self.told.len() {
            if self.is_too_weak(asked, dynamics.recursion, i) {
                weak += 1;
                self.note_torques(dynamics.recursion, i);
                self.hold(asked, dynamics.recursion, i, 0.0);
                // what is against the springs and stops of its own joint leaves them to do their work
                for rate in dynamics.recursion.rates(i) {
                    if (self.held[rate] - self.base[rate]) * self.base[rate] < 0.0 {
                        self.held[rate] = self.base[rate];
                    }
                }
            }
        }
        report.limited += weak;
        if weak > 0 {
            return Ok((false, solves));
        }
        self.below.copy_from_slice(&self.brake);
        let (mut share, mut weakest) = (1.0, None);
        let by_level = asked.control().style == Style::LeastAcceleration;
        self.levels = 0;
        for (k, &level) in Level::ALL.iter().enumerate() {
            if by_level && self.rows_of(level) == 0 || !by_level && level != Level::Tertiary {
                continue;
            }
            (0..self.told.len()).for_each(|i| self.note_torques(dynamics.recursion, i));
            if by_level {
                self.levels += 1;
                self.solve_some_levels(self.robustness(asked), 0, k + 1);
                self.take_solution();
                self.bound(asked, None);
            }
            self.give_told(&self.command, dynamics.recursion);
            solves += dynamics.solve();
            (share, weakest) = self.share_of_torques(asked, dynamics.recursion);
            if share < 1.0 {
                break;
            }
            self.below.copy_from_slice(&self.command);
        }
        let Some(weakest) = weakest else { return Ok((true, solves)) };
        report.limited += 1;
        if *rounds > 0 {
            *rounds -= 1;
            self.hold(asked, dynamics.recursion, weakest, share);
            return Ok((false, solves));
        }
        self.command.iter_mut().zip(&self.below).for_each(|(x, below)| *x = below + share * (*x - below));
        self.give_told(&self.command, dynamics.recursion);
        Ok((true, solves + dynamics.solve()))
    }

    /// Whether a node's actuator is told an acceleration that takes more torque than it has.
    fn is_too_weak(&self, asked: Asked<'_>, recursion: &Recursion, node: usize) -> bool {
        self.told[node] == Told::Acceleration
            && self
                .own_torques(recursion, node)
                .iter()
                .zip(recursion.rates(node))
                .any(|(own, rate)| own.abs() > self.most_torque(asked, rate) * (1.0 + BARELY))
    }

    /// Notes the torques of a node's actuator in the solution at hand.
    fn note_torques(&mut self, recursion: &Recursion, node: usize) {
        for (own, rate) in self.own_torques(recursion, node).into_iter().zip(recursion.rates(node)) {
            self.torques_below[rate] = own;
        }
    }

    /// From now on a node's actuator has the torques that are this share of the way from those noted to those at hand, as far as it has them.
    fn hold(&mut self, asked: Asked<'_>, recursion: &Recursion, node: usize, share: f64) {
        self.told[node] = Told::Torque;
        for (own, rate) in self.own_torques(recursion, node).into_iter().zip(recursion.rates(node)) {
            let (below, most) = (self.torques_below[rate], self.most_torque(asked, rate));
            self.held[rate] = self.base[rate] + (below + share * (own - below)).clamp(-most, most);
        }
    }

    /// The largest share of the way from the torques noted to those at hand at which all have enough, and the node that has least.
    fn share_of_torques(&self, asked: Asked<'_>, recursion: &Recursion) -> (f64, Option<usize>) {
        let mut least = (1.0, None);
        for i in 0..self.told.len() {
            if !self.is_too_weak(asked, recursion, i) {
                continue;
            }
            for (own, rate) in self.own_torques(recursion, i).into_iter().zip(recursion.rates(i)) {
                let most = self.most_torque(asked, rate);
                let share = share_within(self.torques_below[rate], own, own.clamp(-most, most));
                if share < least.0 {
                    least = (share, Some(i));
                }
            }
        }
        least
    }

    pub(super) fn fix(&mut self, column: usize, bound: f64) {
        let (n, rate) = (self.columns.len(), self.columns[column]);
        let more = bound - self.own[rate];
        self.own[rate] = bound;
        for (row, rhs) in self.matrix.chunks_exact_mut(n).zip(&mut self.rhs) {
            *rhs -= row[column] * more / self.ease[column];
            row[column] = 0.0;
        }
    }

    /// With W the measure as it is while others are fixed, w its column and b what the command lacks, the others are nearest to where they were at `w b/w_f`, and W becomes `W − w wᵀ/w_f`.
    pub(super) fn fix_measured(&mut self, column: usize, bound: f64, recursion: &mut Recursion) {
        let n = self.columns.len();
        let first = self.fixed.len();
        if first >= n * MOST_FIXED {
            return; // it is held back in the end
        }
        self.fixed.resize(first + n, 0.0);
        let (before, w) = self.fixed.split_at_mut(first);
        w[column] = 1.0;
        measure(&self.columns, &self.ease, &self.node_of_rate, recursion, w);
        for v in before.chunks_exact(n) {
            let along = v[column];
            w.iter_mut().zip(v).for_each(|(w, v)| *w -= along * v);
        }
        let own = w[column];
        if own <= 0.0 {
            self.fixed.truncate(first);
            return;
        }
        let scale = 1.0 / own.sqrt();
        w.iter_mut().for_each(|w| *w *= scale);
        let rate = self.columns[column];
        let more = (bound - self.own[rate]) / self.ease[column] / w[column];
        for ((&rate, ease), w) in self.columns.iter().zip(&self.ease).zip(&*w) {
            self.own[rate] += ease * w * more;
        }
        self.own[rate] = bound;
        for ((row, rhs), dual) in self.matrix.chunks_exact(n).zip(&mut self.rhs).zip(self.duals.chunks_exact_mut(n)) {
            *rhs -= more * dot(row, w);
            let along = dual[column] / w[column];
            dual.iter_mut().zip(&*w).for_each(|(dual, w)| *dual -= along * w);
            dual[column] = 0.0;
        }
    }

    /// Makes accelerations smaller until none is above the bound: those of the last level, if it is by them; otherwise all alike. In least velocity commands are rates, and those at the start of the part
    /// are given. Returns how many were.
    pub(super) fn bound(&mut self, asked: Asked<'_>, rates: Option<&[f64]>) -> u32 {
        let most = asked.control().gains.most_command * if rates.is_some() { asked.h } else { 1.0 };
        let from = |rate: usize| rates.map_or(0.0, |rates| rates[rate]);
        let told = |rate: &usize| self.roles[self.node_of_rate[*rate]] == Role::Actuator;
        let all = || (0..self.command.len()).filter(told);
        let size = |rate: usize| (self.command[rate] - from(rate)).abs();
        let above = all().filter(|rate| size(*rate) > most).count() as u32;
        if above == 0 {
            return 0;
        }
        if self.levels > 1 {
            let share_of = |rate| {
                let (below, x) = (self.below[rate] - from(rate), self.command[rate] - from(rate));
                share_within(below, x, x.clamp(-most, most))
            };
            let share = all().map(share_of).fold(1.0, f64::min);
            self.command.iter_mut().zip(&self.below).for_each(|(x, below)| *x = below + share * (*x - below));
        } else {
            let largest = all().map(size).fold(0.0, f64::max);
            for (rate, x) in self.command.iter_mut().enumerate() {
                *x = from(rate) + (*x - from(rate)) * (most / largest);
            }
        }
        above
    }

    /// Tells all actuators alike how they are told.
    pub(super) fn tell_all(&mut self, how: Told) {
        for (told, role) in self.told.iter_mut().zip(&self.roles) {
            *told = if *role == Role::Actuator { how } else { Told::Limp };
        }
    }

    pub(super) fn most_torque(&self, asked: Asked<'_>, rate: usize) -> f64 {
        self.joints[self.node_of_rate[rate]]
            .map_or(f64::INFINITY, |id| asked.control().joint(id.index()).most_torque(asked.model.joint(id)))
    }

    /// The torques of a node's joint beside those of its own springs, dampers and motor, `base − E q̈`.
    pub(super) fn own_torques(&self, recursion: &Recursion, node: usize) -> [f64; 6] {
        let rates = recursion.rates(node);
        // where torques are given, E acts beside them
        let mut own = match recursion.given(node) {
            Given::Acceleration => recursion.implicit_torques(node, &recursion.accelerations()[rates.clone()]),
            Given::Torque => [0.0; 6],
        };
        for (own, rate) in own.iter_mut().zip(rates) {
            *own += recursion.torques()[rate] - self.base[rate];
        }
        own
    }

    /// Where an acceleration would take more torque than the actuator has, it gets that torque and moves as it then does; where that torque would bring it past the
    /// acceleration, because others changed, it gets the acceleration again. With M the mass matrix this is the one solution of `M q̈ = τ + …`, `|τ| ≤ most`, where a torque at
    /// its bound points from q̈ to what is asked (Newton on the active set). Torques that were found for their own sake, in least torque, stay as they are unless they bring a
    /// joint beyond the accelerations it may have: then it is told the nearest of those. If it does not end, those in doubt are limp.
    pub(super) fn hold_bounds(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let mut solves = 0;
        // past the rounds each change makes one limp for good: it ends
        for round in 0.. {
            let mut changed = 0;
            for i in 0..self.roles.len() {
                let is_wrong = self.is_beyond_bounds(asked, dynamics.recursion, i);
                if !is_wrong {
                    continue;
                }
                changed += 1;
                let range = asked.coordinates.rate_range(i);
                let recursion = &mut *dynamics.recursion;
                self.told[i] = match self.told[i] {
                    _ if round >= ROUNDS => {
                        recursion.give(i, Given::Torque, &self.base[range]);
                        Told::Limp
                    }
                    Told::Acceleration => {
                        let mut held = self.own_torques(recursion, i);
                        for (held, rate) in held.iter_mut().zip(range.clone()) {
                            let most = self.most_torque(asked, rate);
                            *held = self.base[rate] + held.clamp(-most, most);
                        }
                        recursion.give(i, Given::Torque, &held[..range.len()]);
                        Told::Held
                    }
                    Told::Torque => {
                        for rate in range.clone() {
                            let (low, high) = allowed(asked, rate);
                            self.command[rate] = recursion.accelerations()[rate].clamp(low, high);
                        }
                        recursion.give(i, Given::Acceleration, &self.command[range]);
                        Told::Acceleration
                    }
                    Told::Held | Told::Limp => {
                        recursion.give(i, Given::Acceleration, &self.command[range]);
                        Told::Acceleration
                    }
                };
            }
            report.limited += changed;
            if changed == 0 {
                break;
            }
            solves += dynamics.factor_and_solve()?;
        }
        Ok(solves)
    }

    /// Whether a node is told what its bounds do not allow, or is at a bound that it need not be at.
    pub(super) fn is_beyond_bounds(&self, asked: Asked<'_>, recursion: &Recursion, node: usize) -> bool {
        let range = asked.coordinates.rate_range(node);
        let found = &recursion.accelerations()[range.clone()];
        match self.told[node] {
            Told::Acceleration => self.is_too_weak(asked, recursion, node),
            Told::Torque => found.iter().zip(range).any(|(found, rate)| {
                let (low, high) = allowed(asked, rate);
                let slack = BARELY * asked.control().gains.most_command;
                *found < low - slack || *found > high + slack
            }),
            Told::Held => {
                let beyond = found.iter().zip(&self.command[range]).map(|(found, asked)| found - asked);
                self.own_torques(recursion, node).iter().zip(beyond).map(|(own, beyond)| own * beyond).sum::<f64>()
                    > 0.0
            }
            Told::Limp => false,
        }
    }
}

/// The share of the way between two numbers that ends at the bound nearest to the second; none if the first is beyond it too.
pub(super) fn share_within(from: f64, to: f64, bound: f64) -> f64 {
    if bound == to {
        return 1.0;
    }
    let share = (bound - from) / (to - from);
    if (0.0..1.0).contains(&share) { share } else { 0.0 }
}

/// The accelerations with which a rate is no faster at the end of the part than it may be. What is too fast already is braked, by no more than commands may.
pub(super) fn allowed(asked: Asked<'_>, rate: usize) -> (f64, f64) {
    let Gains { most_rate, most_command, .. } = asked.control().gains;
    let to = |then: f64| (then - asked.coordinates.rates[rate]) / asked.h;
    (to(-most_rate).min(most_command), to(most_rate).max(-most_command))
}

/// `W x`, W being how torques are measured: the torques of these accelerations of the actuators, implicit springs included. Both are scaled as the columns are.
pub(super) fn measure(columns: &[usize], ease: &[f64], nodes: &[usize], recursion: &mut Recursion, x: &mut [f64]) {
    x.iter_mut().zip(ease).for_each(|(x, ease)| *x *= ease);
    recursion.by_given(columns.iter().copied().zip(x.iter().copied()));
    let mut first = 0;
    while first < columns.len() {
        let node = nodes[columns[first]];
        let range = first..first + recursion.rates(node).len();
        let implicit = recursion.implicit_torques(node, &x[range.clone()]);
        for (column, implicit) in range.clone().zip(implicit) {
            x[column] = (recursion.response.found[columns[column]] + implicit) * ease[column];
        }
        first = range.end;
    }
}
