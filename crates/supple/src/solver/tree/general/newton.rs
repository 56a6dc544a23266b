//! Newton's method on momenta, joints and Coulomb's law together [Alart & Curnier 1991].
//!
//! The rounds of [`settle`](super::settle) are convex and find their way from anywhere, but where contacts slide they follow the discs of friction from round to
//! round. Near the solution (4) itself can be solved: `f = Π(f − r σ)`, Π onto the disc of the normal impulse at hand. Its derivative is not symmetric, since
//! friction answers to the normal impulse and not the other way round. What Newton's method leads astray is put back, and the rounds go on.

use super::TOLERANCE;
use super::settle::{Equations, Wanted};
use super::system::{Part, System};
use crate::maths::block::add_scaled;
use crate::model::State;
use crate::step::{Failure, Report};

/// Passes of one attempt.
const PASSES: u32 = 30;
/// Passes in a row that may fail to come nearer.
const PATIENCE: u32 = 6;
/// A pass that leaves less than this share has come nearer.
const NEARER: f64 = 0.95;
/// A step may lead this many times farther off, since the next one may lead much nearer; beyond it is halved, this often at the most.
const FARTHER: f64 = 3.0;
const SHORTENINGS: u32 = 2;

/// How far from solved.
#[derive(Clone, Copy)]
struct Merit {
    /// As a share of the model's size or an angle.
    size: f64,
    is_done: bool,
}

impl System {
    /// Tries to solve what is left after a round, whose `plain` and touches are those of the present v. Returns whether it did; if not, all is as before.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn newton(
        &mut self,
        part: &Part<'_>,
        state: &State,
        report: &mut Report,
        wanted: &Wanted,
        open: f64,
        tries: &mut u32,
        equations: &mut impl Equations,
    ) -> Result<bool, Failure> {
        self.keep_for_newton();
        self.touches.iter_mut().filter(|t| t.acts).for_each(|t| t.begin_coulomb());
        let (mut best, mut patience) = (f64::INFINITY, PATIENCE);
        let mut merit = self.merit(part, state, wanted, open);
        let most = PASSES.min(*tries);
        for pass in 0..=most {
            if merit.is_done {
                self.touches.iter_mut().filter(|t| t.acts).for_each(|t| t.end_coulomb());
                return Ok(true);
            }
            if !merit.size.is_finite() || pass == most {
                break;
            }
            if merit.size <= NEARER * best {
                (best, patience) = (merit.size, PATIENCE);
            } else {
                patience -= 1;
                if patience == 0 {
                    break;
                }
            }
            *tries -= 1;
            report.iterations += 1;
            report.factorisations += 1;
            report.solves += 1;
            if !self.newton_step(equations) {
                break;
            }
            // As far as it leads nearer
            let mut share = 1.0;
            let last = merit.size;
            for shortening in 0..=SHORTENINGS {
                let open = match equations.residual(self) {
                    Ok(open) => open,
                    Err(Failure::Turned(_)) => f64::INFINITY,
                    Err(failure) => return Err(failure),
                };
                self.plain.copy_from_slice(&self.x);
                merit = if open.is_finite() {
                    self.merit(part, state, wanted, open)
                } else {
                    Merit { size: open, is_done: false }
                };
                if merit.size <= FARTHER * last || shortening == SHORTENINGS {
                    break;
                }
                share *= 0.5;
                self.go_back(share);
            }
        }
        self.put_back();
        Ok(false)
    }

    /// How far from solved v, y and f̄ are, `plain` being what is missing there without touches; it is left in `x` with them.
    fn merit(&mut self, part: &Part<'_>, state: &State, wanted: &Wanted, open: f64) -> Merit {
        self.x.copy_from_slice(&self.plain);
        for touch in self.touches.iter_mut().filter(|t| t.acts) {
            touch.evaluate(&self.v);
            touch.push_held(false, &mut self.x);
        }
        let (missing, off) = (self.largest_momentum(part, state), self.largest_off(part));
        let acting = self.touches.iter().filter(|t| t.acts);
        let sum: f64 = acting.map(|t| t.off(part.accuracy.friction).powi(2)).sum();
        let largest = open.max(missing);
        Merit {
            size: (largest * largest + sum * (part.h / part.reach).powi(2)).sqrt(),
            is_done: open < TOLERANCE && missing <= wanted.missing && off <= wanted.off,
        }
    }

    /// Finds the step of v and y by the derivative where they truly lead, what is missing being in `x`. Returns whether there is one.
    pub(super) fn find_step(&mut self, equations: &mut impl Equations) -> bool {
        self.stiffened.copy_from(&self.matrix);
        self.above.copy_lower_from(&self.matrix);
        equations.derive(self);
        for touch in self.touches.iter().filter(|t| t.acts) {
            touch.stiffen_halves(&mut self.stiffened, &mut self.above);
        }
        if self.lu.factor(&self.ldl, &self.stiffened, &self.above).is_err() {
            return false;
        }
        self.lu.solve(&self.ldl, &mut self.x);
        self.step.copy_from_slice(&self.x);
        true
    }

    /// Goes this share of the step of v and y that is in `step`.
    pub(super) fn follow_step(&mut self, share: f64) {
        let (bodies, links) = self.step.split_at(self.bodies);
        self.v.iter_mut().zip(bodies).for_each(|(v, dv)| add_scaled(v, share, dv));
        self.links.iter_mut().zip(links).for_each(|(link, dy)| add_scaled(&mut link.y, share, dy));
    }

    /// One step of v, y and f̄; it is left in `step`. Returns whether there was one.
    fn newton_step(&mut self, equations: &mut impl Equations) -> bool {
        self.x.copy_from_slice(&self.plain);
        for touch in self.touches.iter_mut().filter(|t| t.acts) {
            touch.linearise();
            touch.push_held(true, &mut self.x);
        }
        let is_found = self.find_step(equations);
        if is_found {
            self.follow_step(1.0);
            let bodies = &self.step[..self.bodies];
            self.touches.iter_mut().filter(|t| t.acts).for_each(|t| t.follow_law(bodies));
        }
        is_found
    }

    /// Goes back by this share of the last step.
    fn go_back(&mut self, share: f64) {
        self.touches.iter_mut().filter(|t| t.acts).for_each(|t| t.go_back(share));
        self.follow_step(-share);
    }

    fn keep_for_newton(&mut self) {
        self.kept_touches.clone_from(&self.touches);
        self.kept_plain.copy_from_slice(&self.plain);
        let y = self.links.iter().map(|link| &link.y);
        self.kept_place.iter_mut().zip(self.v.iter().chain(y)).for_each(|(kept, now)| *kept = *now);
    }

    fn put_back(&mut self) {
        self.touches.clone_from(&self.kept_touches);
        self.plain.copy_from_slice(&self.kept_plain);
        let y = self.links.iter_mut().map(|link| &mut link.y);
        self.v.iter_mut().chain(y).zip(&self.kept_place).for_each(|(now, then)| *now = *then);
    }
}
