//! A budget of time, turned into iterations. The clock is the caller's: what a step may take goes in as iterations with the [`Assembly`]
//! of its input, so that it is recorded and done again to the bit.

use super::{Assembly, Linear};
use crate::step::Report;

/// Keeps the steps of solver `assembly` within a time, by what earlier ones took.
///
/// ```
/// use supple::solver::assembly::{Assembly, Budget};
/// let mut budget = Budget::new(200.0);
/// let asked = Assembly::default();
/// let first = budget.settings(asked); // nothing is known yet: one iteration
/// assert_eq!(first.outer, 1);
/// budget.learn(&supple::Report { corrections: 1, iterations: 1, ..Default::default() }, 50.0);
/// assert_eq!(budget.settings(asked).outer, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// What a step may take \[µs\].
    micros: f64,
    /// What a linearisation takes, all its iterations included \[µs\].
    outer_micros: Option<f64>,
    /// What an iteration of the linear solver takes, its share of everything else included \[µs\].
    inner_micros: Option<f64>,
}

/// How much of the last step enters what is known: a slow step in between is forgotten after a few.
const NEWS: f64 = 0.2;

impl Budget {
    /// Steps of at most this time \[µs\].
    pub fn new(micros: f64) -> Budget {
        Budget { micros, outer_micros: None, inner_micros: None }
    }

    /// What a step may take \[µs\].
    pub fn micros(&self) -> f64 {
        self.micros
    }

    /// `asked` with as many iterations as there is time for, at least one and no more than asked for.
    pub fn settings(&self, asked: Assembly) -> Assembly {
        let affordable = |cost: Option<f64>| cost.map_or(1.0, |cost| (self.micros / cost).floor().max(1.0));
        match asked.linear {
            Linear::Factored => {
                Assembly { outer: asked.outer.min(affordable(self.outer_micros).min(1e4) as u32), ..asked }
            }
            // Few iterations go into one linearisation, so that each gets somewhere.
            Linear::Plain | Linear::Biconjugate => {
                let iterations = affordable(self.inner_micros).min(1e6) as u32;
                let outer = asked.outer.min(1 + iterations / WORTHWHILE);
                Assembly { outer, inner: asked.inner.min((iterations / outer).max(1)), ..asked }
            }
        }
    }

    /// Learns from a step that took `micros`.
    pub fn learn(&mut self, report: &Report, micros: f64) {
        let follow = |known: &mut Option<f64>, count: u32| {
            if count > 0 && micros.is_finite() && micros > 0.0 {
                let cost = micros / f64::from(count);
                *known = Some(known.map_or(cost, |known| known + NEWS * (cost - known)));
            }
        };
        follow(&mut self.outer_micros, report.corrections);
        follow(&mut self.inner_micros, report.iterations);
    }
}

/// Iterations below which a linearisation hardly pays.
const WORTHWHILE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_time() {
        let mut budget = Budget::new(300.0);
        let plain = Assembly { linear: Linear::Plain, outer: 6, inner: 30, ..Assembly::default() };
        assert_eq!((budget.settings(plain).outer, budget.settings(plain).inner), (1, 1));
        for _ in 0..50 {
            budget.learn(&Report { corrections: 2, iterations: 20, ..Report::default() }, 200.0);
        }
        // 10 µs an iteration: 30 of them, in six linearisations of five.
        assert_eq!((budget.settings(plain).outer, budget.settings(plain).inner), (6, 5));
        assert_eq!(budget.settings(Assembly::default()).outer, 3); // 100 µs each
        // One slow step costs little of what is known, many cost it.
        budget.learn(&Report { corrections: 2, iterations: 20, ..Report::default() }, 400.0);
        assert_eq!(budget.settings(Assembly::default()).outer, 2);
        for _ in 0..50 {
            budget.learn(&Report { corrections: 2, iterations: 20, ..Report::default() }, 4000.0);
        }
        assert_eq!(budget.settings(Assembly::default()).outer, 1);
        // A step without corrections tells nothing.
        let before = budget;
        budget.learn(&Report::default(), 1.0);
        assert_eq!(budget, before);
    }
}
