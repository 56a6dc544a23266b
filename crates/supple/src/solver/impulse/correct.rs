//! The corrections at both ends of a part, by either variant [Bender 2006, §4.2–4.5].

use super::system::{Held, System};
use super::{ImpulseWork, Motion, Part, Variant, VelocityCorrection};
use crate::flesh::together::Law;
use crate::maths::Twist;
use crate::maths::block::Vector;
use crate::model::{BodyId, State};
use crate::step::{Failure, Report};

/// How often limits that pull are let go and the part begun again.
const LIMIT_PASSES: u32 = 3;
/// How often the pushes of contacts are found anew after joints have been closed again.
const PUSHES: u32 = 8;
/// Rounds joint by joint that count as one iteration of the system, for the bound on both.
const ROUNDS: u32 = 1000;
/// Rounds joint by joint after which contacts may still be changing.
const MOST_PUSHES: u32 = 2000;
/// Corrections of both halves of split loops that count as one of the system.
const ALTERNATIONS: u32 = 100;
/// Joint by joint the error wavers from round to round: it must have fallen after this many.
const WINDOW: u32 = 100;
/// Share of the velocity tolerance to which the pushes are found.
const PRECISION: f64 = 1e-3;
/// Rates this far below the velocities are rounding.
const ROUNDING: f64 = 1e-13;

/// The largest error, and where.
#[derive(Clone, Copy)]
pub(super) struct Worst {
    pub size: f64,
    /// What it is to be called when it stays.
    failure: Option<Failure>,
}

impl Worst {
    pub(super) const NONE: Worst = Worst { size: 0.0, failure: None };

    /// Takes in the rows of one joint or grip; returns their size, the larger of that of its translations and that of its rotations.
    pub(super) fn see(&mut self, k: usize, rows: &Vector, system: &System) -> Result<f64, Failure> {
        let held = &system.held[k];
        let (shifts, turns) = rows.split_at(held.hold.mask.translations());
        let length = |rows: &[f64]| rows.iter().map(|x| x * x).sum::<f64>().sqrt();
        let size = length(shifts).max(length(turns));
        if !rows.iter().sum::<f64>().is_finite() {
            return Err(Failure::NotFinite(BodyId(held.a as u32)));
        }
        if size > self.size {
            *self = Worst { size, failure: Some(diverged(held)) };
        }
        Ok(size)
    }

    /// The larger of two.
    fn and(self, other: Worst) -> Worst {
        if other.size > self.size { other } else { self }
    }

    fn failure(&self) -> Failure {
        self.failure.unwrap_or(Failure::NotFinite(BodyId(0)))
    }
}

/// Notices corrections that do not converge.
struct Watch {
    left: u32,
    last: f64,
    grew: u32,
    /// How often the error may grow.
    patience: u32,
}

impl Watch {
    fn new(most: u32, patience: u32) -> Watch {
        Watch { left: most, last: f64::INFINITY, grew: 0, patience }
    }

    /// One more correction of this error: fails when there were enough, or when the error has grown too often.
    fn allow(&mut self, worst: Worst) -> Result<(), Failure> {
        if worst.size > self.last {
            self.grew += 1;
        }
        self.last = worst.size;
        if self.left == 0 || self.grew == self.patience {
            return Err(worst.failure());
        }
        self.left -= 1;
        Ok(())
    }
}

fn diverged(held: &Held) -> Failure {
    match held.joint {
        Some(joint) => Failure::Diverged(joint),
        None => Failure::NotFinite(BodyId(held.a as u32)), // a grip: it is given up before anyone hears of it
    }
}

/// At which end of the part impulses act, and so what they are for.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    /// At the start: every joint is to be closed after the flight.
    Start(&'a State),
    /// At the end: no joint is to be opening (the velocity correction).
    End,
}

impl Part<'_> {
    /// Adds the impulses of the joints and of the implicit forces; how many corrections it took.
    pub(super) fn correct(&self, at: At<'_>, work: &mut ImpulseWork, report: &mut Report) -> Result<u32, Failure> {
        let tolerance = match at {
            At::Start(_) => self.settings.tolerance,
            At::End => self.settings.velocity_tolerance.max(ROUNDING * work.motion.speed()),
        };
        match (self.settings.variant, at, self.settings.velocity_correction) {
            (_, At::End, VelocityCorrection::Off) if work.kicks.soft.is_empty() && work.pushes.is_empty() => Ok(0),
            (Variant::System | Variant::SplitLoops, ..) => self.by_system(at, tolerance, work, report),
            (Variant::JointByJoint, ..) => self.by_joint(at, tolerance, work),
        }
    }

    fn watch(&self) -> Watch {
        match self.settings.variant {
            Variant::SplitLoops => Watch::new(self.settings.iterations.saturating_mul(ALTERNATIONS), u32::MAX),
            _ => Watch::new(self.settings.iterations, 2),
        }
    }

    /// All joints at once: measure, solve, and again until all is well.
    fn by_system(
        &self,
        at: At<'_>,
        tolerance: f64,
        work: &mut ImpulseWork,
        report: &mut Report,
    ) -> Result<u32, Failure> {
        let mut corrections = 0;
        let mut passes = LIMIT_PASSES;
        work.kicked.clone_from(&work.motion.velocities);
        work.pushes.keep(&mut work.given);
        'again: loop {
            report.factorisations += self.factor(at, work)?;
            work.pushes.forget_since(&work.given);
            work.pushes.begin();
            let mut pushes = PUSHES;
            let mut watch = self.watch();
            let flesh = self.flesh.filter(|_| matches!(at, At::Start(_)));
            let mut owes = !work.kicks.soft.is_empty() || flesh.is_some();
            loop {
                let worst = work.measure(at)?.and(work.measure_marked(at)?);
                if !owes && worst.size <= tolerance {
                    if pushes == 0 || work.pushes.is_empty() || work.push(at, self.settings.velocity_tolerance, report)
                    {
                        return Ok(corrections);
                    }
                    pushes -= 1;
                    watch = self.watch(); // joints have to be closed anew
                    continue;
                }
                watch.allow(worst)?;
                if owes {
                    work.owe(self.h, flesh);
                }
                work.solve();
                report.solves += 1 + work.solve_marked(at)?;
                corrections += 1;
                if owes && passes > 0 && work.let_go(self.h) {
                    // begin again without the limits that would pull
                    passes -= 1;
                    work.motion.velocities.clone_from(&work.kicked);
                    continue 'again;
                }
                owes = false;
            }
        }
    }

    fn factor(&self, at: At<'_>, work: &mut ImpulseWork) -> Result<u32, Failure> {
        let ImpulseWork { system, marked, kicks, motion, .. } = work;
        let bodies = match at {
            At::Start(start) => &start.bodies,
            At::End => &motion.end.bodies,
        };
        let flesh = self.flesh.filter(|_| matches!(at, At::Start(_)));
        let implicit = (&kicks.soft[..], flesh);
        let mut factorisations = system.factor(self.model, self.settings.elimination, bodies, implicit, self.h)?;
        if let Some(marked) = marked {
            marked.system.weigh(bodies);
            factorisations += marked.system.factor(self.model, self.settings.elimination, bodies, implicit, self.h)?;
        }
        Ok(factorisations)
    }

    /// One joint after another, round and round.
    fn by_joint(&self, at: At<'_>, tolerance: f64, work: &mut ImpulseWork) -> Result<u32, Failure> {
        let ImpulseWork { system, kicks, motion, goals, by_joint, pushes, .. } = work;
        pushes.alone(&system.masses);
        match at {
            At::Start(start) => {
                system.place(&start.bodies);
                motion.fly_all(start);
            }
            At::End => system.place(&motion.end.bodies),
        }
        by_joint.prepare(system, kicks, self.h)?;
        let most = self.settings.iterations.saturating_mul(ROUNDS);
        let mut watch = Watch::new(most, 2);
        let mut worst = Worst::NONE;
        for done in 0..most {
            let pushed;
            (worst, pushed) = match at {
                At::Start(start) => by_joint.close(system, start, motion, pushes, &goals.errors, tolerance)?,
                At::End => by_joint.settle(system, motion, pushes, &goals.rates, tolerance)?,
            };
            if worst.size <= tolerance && (pushed <= self.settings.velocity_tolerance || done >= MOST_PUSHES) {
                return Ok(done);
            }
            if done % WINDOW == WINDOW - 1 {
                watch.allow(worst)?;
            }
        }
        Err(worst.failure())
    }
}

impl ImpulseWork {
    /// The change of velocity that each row needs, and the largest error:
    /// `(goal − C(t0 + h))/h` at the start, `goal − J V` at the end.
    fn measure(&mut self, at: At<'_>) -> Result<Worst, Failure> {
        let ImpulseWork { system, motion, goals, wanted, .. } = self;
        let mut worst = Worst::NONE;
        if let At::Start(start) = at {
            motion.fly_all(start);
        }
        for (k, held) in system.held.iter().enumerate() {
            match at {
                At::Start(_) => {
                    wanted[k] = goals.errors[k];
                    for (i, row) in held.errors(&motion.end.bodies).iter().enumerate() {
                        wanted[k][i] -= row.error;
                    }
                    worst.see(k, &wanted[k], system)?;
                    wanted[k].iter_mut().for_each(|x| *x /= motion.h);
                }
                At::End => {
                    let rate = system.rate(k, &motion.velocities);
                    wanted[k] = std::array::from_fn(|i| goals.rates[k][i] - rate[i]);
                    worst.see(k, &wanted[k], system)?;
                }
            }
        }
        Ok(worst)
    }

    /// The same of the joints that were marked, when loops are split.
    fn measure_marked(&mut self, at: At<'_>) -> Result<Worst, Failure> {
        let ImpulseWork { marked, motion, .. } = self;
        let mut worst = Worst::NONE;
        let Some(marked) = marked else { return Ok(worst) };
        for (k, held) in marked.system.held.iter().enumerate() {
            let wanted = &mut marked.wanted[k];
            match at {
                At::Start(_) => {
                    *wanted = [0.0; 6];
                    for (i, row) in held.errors(&motion.end.bodies).iter().enumerate() {
                        wanted[i] = -row.error;
                    }
                    worst.see(k, wanted, &marked.system)?;
                    wanted.iter_mut().for_each(|x| *x /= motion.h);
                }
                At::End => {
                    *wanted = marked.system.rate(k, &motion.velocities).map(|rate| -rate);
                    worst.see(k, wanted, &marked.system)?;
                }
            }
        }
        Ok(worst)
    }

    /// One correction of the marked joints, when loops are split; how many.
    fn solve_marked(&mut self, at: At<'_>) -> Result<u32, Failure> {
        if self.marked.is_none() {
            return Ok(0);
        }
        if let At::Start(start) = at {
            self.motion.fly_all(start);
        }
        self.measure_marked(at)?;
        let ImpulseWork { marked, motion, owed, .. } = self;
        let Some(marked) = marked else { return Ok(0) };
        marked.system.solve(owed, &marked.wanted, &mut motion.velocities);
        Ok(1)
    }

    /// Takes what the implicit forces owe at these velocities into the next correction.
    fn owe(&mut self, h: f64, flesh: Option<&Law>) {
        self.motion.mean(&mut self.mean);
        if let Some(law) = flesh {
            // h W₀ − h S D, D = h u
            self.note_moves(h);
            law.add_pushes(h, &self.moved, &mut self.owed);
            self.owed.iter_mut().flatten().for_each(|x| *x /= h);
        }
        self.kicks.owed(h, &self.mean, &mut self.owed);
    }

    /// One correction. After it nothing is owed.
    fn solve(&mut self) {
        let ImpulseWork { system, motion, wanted, owed, .. } = self;
        system.solve(owed, wanted, &mut motion.velocities);
        owed.fill([0.0; 6]);
    }

    /// The impulses of contacts and hard limits at these velocities; whether they hardly changed.
    fn push(&mut self, at: At<'_>, tolerance: f64, report: &mut Report) -> bool {
        let ImpulseWork { system, pushes, motion, .. } = self;
        let found = pushes.push(system, &mut motion.velocities, &motion.drift, PRECISION * tolerance);
        report.iterations += found.steps;
        report.unconverged = report.unconverged.max(u32::from(!found.is_settled));
        report.solves += pushes.take_solves();
        if let At::Start(start) = at {
            motion.fly_all(start);
        }
        found.moved <= tolerance
    }

    /// Lets go of limits that would pull; whether there were any.
    fn let_go(&mut self, h: f64) -> bool {
        self.motion.mean(&mut self.mean);
        self.kicks.let_go(h, &self.mean)
    }
}

impl Motion {
    /// The largest velocity of a body \[m/s, rad/s\].
    fn speed(&self) -> f64 {
        self.velocities.iter().fold(0.0, |m, v| m.max(v.linear.length()).max(v.angular.length()))
    }

    /// The velocities that implicit forces see.
    pub(super) fn mean(&self, mean: &mut [Twist]) {
        for ((mean, velocity), drift) in mean.iter_mut().zip(&self.velocities).zip(&self.drift) {
            *mean = *velocity + *drift;
        }
    }
}
