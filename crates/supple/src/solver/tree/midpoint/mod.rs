//! The default step of solver `tree`: no gap, no explosion, the energy kept, at frame size.
//!
//! An energy–momentum midpoint rule with joints closed at the end (`equations`), solved by Newton's method along the tree (`newton`) with a
//! factorisation that is kept as long as it serves. Where nothing is hard, the same equations are solved in a third of the time, or for four characters at
//! once (`calm`). When both fail, the part is halved; from the second halving on, the
//! backward rule is tried in its place; at the last halving a resort that always ends well.
//!
//! ```text
//! advance(T, depth):
//!   rotation over T too large and depth left     → halves
//!   calm, energy not grown                       → accept
//!   midpoint step converges, energy not grown    → accept
//!   depth ≥ 2: backward step, the same           → accept
//!   depth left                                   → halves
//!   else                                         → last resort
//! ```
//! Every decision is a comparison of numbers that follow from the state, so the same state takes the same way.

mod calm;
mod equations;
mod newton;

use super::plan::{NONE, Plan};
use crate::contact::penalty::Touch;
use crate::input::Input;
use crate::maths::Wrench;
#[cfg(target_arch = "x86_64")]
use crate::maths::lanes::Four;
use crate::maths::lanes::{Fused, Instructions, has_fused};
use crate::maths::rotation::turned_inertia;
use crate::measure;
use crate::model::laws::Rule;
use crate::model::{BodyId, JointId, Model, State};
use crate::solver::{Impulses, Mode};
use crate::step::{Cause, Failure, Report};
use crate::watch::{Notes, Stage};
use calm::{Calm, Done, Task};
use equations::{Moment, Outside, Part, Sums, Trial, gather, scatter};
use glam::DVec3;
use newton::Newton;

/// Scratch of the midpoint step.
pub(super) struct MidpointWork {
    now: Vec<Moment>,
    next: Vec<Moment>,
    trial: Vec<Trial>,
    newton: Newton,
    outside: Outside,
    calm: One,
    #[cfg(target_arch = "x86_64")]
    four: Option<Box<Calm<Four>>>,
    /// What `calm` reads and writes within a divided part.
    between: State,
    /// Whether the last part was calm: its impulses are there.
    was_calm: bool,
}

/// The arrays of one character, for the instructions in use.
enum One {
    Fused(Calm<Fused>),
    Baseline(Calm<f64>),
}

impl One {
    fn new(plan: &Plan, model: &Model, fused: bool) -> One {
        if fused { One::Fused(Calm::new(plan, model)) } else { One::Baseline(Calm::new(plan, model)) }
    }

    fn part(&mut self, task: Task<'_, '_>) -> Option<Done> {
        match self {
            One::Fused(calm) => calm.part(task)[0],
            One::Baseline(calm) => calm.part(task)[0],
        }
    }
}

impl MidpointWork {
    pub(super) fn new(plan: &Plan, model: &Model) -> MidpointWork {
        let nodes = plan.nodes.len();
        MidpointWork {
            calm: One::new(plan, model, has_fused()),
            #[cfg(target_arch = "x86_64")]
            four: None,
            between: model.start(),
            was_calm: false,
            now: vec![Moment::WORLD; nodes],
            next: vec![Moment::WORLD; nodes],
            trial: vec![Trial::WORLD; nodes],
            newton: Newton::new(nodes, plan.any),
            outside: Outside::new(nodes, model),
        }
    }
}

/// How a part is done.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) mode: Mode,
    /// Largest number of halvings.
    pub(super) depth: u32,
    pub(super) instructions: Instructions,
    pub(super) impulses: Impulses,
}

/// The numbers behind a [`Mode`].
#[derive(Clone, Copy)]
struct Settings {
    /// Largest relative rotation of a part \[rad\].
    guard: f64,
    /// Largest number of halvings.
    depth: u32,
    /// Halvings after which the backward rule is tried.
    backward_from: u32,
    /// Strength of the damping of tension that h does not resolve.
    tension_damping: f64,
    /// Velocities that would open a joint by more than this within the part are projected \[rad, share of a lever\].
    projection: f64,
    tolerance: f64,
}

impl Settings {
    fn new(mode: Mode, depth: u32) -> Settings {
        let standard = Settings {
            guard: 0.5,
            depth,
            backward_from: 2,
            tension_damping: 0.05,
            projection: 1e-2,
            tolerance: TOLERANCE,
        };
        match mode {
            Mode::Fast => Settings { guard: 1.0, ..standard },
            Mode::Default => standard,
            Mode::Accurate => Settings { guard: 0.25, ..standard },
            Mode::Conservative => Settings {
                backward_from: depth,
                tension_damping: 0.0,
                projection: f64::INFINITY,
                tolerance: FINE_TOLERANCE,
                ..standard
            },
        }
    }
}

/// What a part came to.
pub(super) enum Outcome {
    /// The state is written.
    Done(Report),
    /// The hard limit of this joint was passed unforeseen, which takes rows: nothing is written. What was spent.
    Passed(JointId, Report),
}

/// One part `h` of a step, `after` seconds of the step still to come. The state is written at the end.
pub(super) fn substep(
    model: &Model,
    (input, touches): (&Input, &[Touch]),
    how: How,
    (h, after): (f64, f64),
    state: &mut State,
    plan: &Plan,
    (work, notes): (&mut MidpointWork, &mut Notes),
) -> Result<Outcome, Failure> {
    let settings = Settings::new(how.mode, how.depth);
    let fused = how.instructions == Instructions::Best && has_fused();
    if fused != matches!(work.calm, One::Fused(_)) {
        work.calm = One::new(plan, model, fused);
    }
    let may_be_calm = touches.is_empty() && how.mode != Mode::Conservative;
    if may_be_calm {
        let (inputs, impulses) = (&[input][..], how.impulses);
        let (states, left) = (&mut [&mut *state][..], 0.0);
        let task = Task { plan, model, inputs, settings: &settings, h, left, after, impulses, states, notes };
        if let Some(done) = work.calm.part(task) {
            work.was_calm = true;
            notes.ledger.part = h;
            return Ok(Outcome::Done(done.report(plan)));
        }
    }
    gather(plan, state, &mut work.now);
    notes.mark(Stage::Check);
    let mut run = Run {
        model,
        input,
        touches,
        how,
        settings,
        may_be_calm,
        plan,
        end: after,
        work,
        notes,
        report: Report::default(),
        passed: None,
    };
    run.advance(h, after, 0);
    if let Some(joint) = run.passed {
        return Ok(Outcome::Passed(joint, run.report));
    }
    let mut report = run.report;
    if let Some(i) = (1..plan.nodes.len()).find(|&i| !finite(&work.now[i])) {
        return Err(Failure::NotFinite(BodyId(plan.nodes[i].body)));
    }
    scatter(plan, &work.now, state);
    let gap = measure::joint_gap(model, state);
    (report.max_joint_gap, report.max_joint_tilt, report.widest_joint) = (gap.distance, gap.tilt, gap.joint);
    notes.mark(Stage::Measure);
    Ok(Outcome::Done(report))
}

/// Four characters of one model side by side. Where a part is not calm nothing is written, and the character goes alone; `None` when this machine or
/// these inputs cannot go side by side.
#[cfg(target_arch = "x86_64")]
pub(super) fn substep_four(
    model: &Model,
    inputs: [&Input; 4],
    how: How,
    h: f64,
    states: &mut [&mut State; 4],
    plan: &Plan,
    (work, notes): (&mut MidpointWork, &mut Notes),
) -> Option<[Option<Report>; 4]> {
    if !has_fused() || how.mode == Mode::Conservative || !calm::may_go_beside(plan, &inputs) {
        return None;
    }
    let settings = Settings::new(how.mode, how.depth);
    let four = work.four.get_or_insert_with(|| Box::new(Calm::new(plan, model)));
    let (left, after, impulses) = (0.0, 0.0, how.impulses);
    let (inputs, settings) = (&inputs[..], &settings);
    let done = four.part(Task { plan, model, inputs, settings, h, left, after, impulses, states, notes });
    Some(done.map(|lane| lane.map(|done| done.report(plan))))
}

impl Done {
    fn report(&self, plan: &Plan) -> Report {
        Report {
            max_joint_gap: self.gap,
            max_joint_tilt: self.tilt,
            widest_joint: if self.widest == NONE { None } else { plan.joint_id(self.widest as usize) },
            substeps: 1,
            calm_parts: 1,
            factorisations: self.factorisations,
            solves: self.passes,
            projections: self.projections,
            limits_active: self.limits,
            ..Report::default()
        }
    }
}

impl MidpointWork {
    /// The impulse of each joint on its child over the last part of the last step.
    pub(super) fn joint_impulses(&self, plan: &Plan, notes: &mut Notes) {
        let impulses = notes.ledger.totals();
        if self.was_calm {
            for (i, node) in plan.nodes.iter().enumerate().skip(1).filter(|(_, node)| node.joint != NONE) {
                let (f, n, own, parent) = match &self.calm {
                    One::Fused(calm) => calm.impulse(i, 0),
                    One::Baseline(calm) => calm.impulse(i, 0),
                };
                impulses[node.joint as usize] = equations::on_child(node, f, n, own, parent);
            }
            return;
        }
        equations::joint_impulses(plan, &self.trial, impulses);
        // After a last resort that stayed where it was, nothing is known of them.
        impulses.iter_mut().filter(|impulse| !impulse.is_finite()).for_each(|impulse| *impulse = Wrench::ZERO);
    }
}

fn finite(m: &Moment) -> bool {
    m.x.is_finite()
        && m.q.is_finite()
        && m.v.is_finite()
        && m.w.is_finite()
        && m.angle.is_finite()
        && m.slide.is_finite()
}

struct Run<'a> {
    model: &'a Model,
    input: &'a Input,
    touches: &'a [Touch],
    how: How,
    settings: Settings,
    may_be_calm: bool,
    plan: &'a Plan,
    /// Time from the end of the part that is asked for to the end of the step \[s\].
    end: f64,
    work: &'a mut MidpointWork,
    notes: &'a mut Notes,
    report: Report,
    /// The joint whose hard limit was passed: all is given up.
    passed: Option<JointId>,
}

/// Newton ends when its correction and the gaps it last saw are below this \[rad, share of a lever\]; gaps are then closed exactly.
const TOLERANCE: f64 = 1e-7;
/// The same where energy is to be kept: what is left is rounding.
const FINE_TOLERANCE: f64 = 1e-11;
/// Passes of Newton before it has failed.
const PASSES: u32 = 16;
/// Changes of the limits that act before corrections must shrink all the same.
const CHANGES: u32 = 6;
/// Growth of energy that is still rounding and truncation, as a share of the energy at stake.
const ENERGY_SLACK: f64 = 1e-3;

/// Whether there is no more energy after a part than before it and the work done from outside allow; kinetic and potential energy before and after.
fn energy_kept(
    plan: &Plan,
    input: &Input,
    h: f64,
    kinetic: (f64, f64),
    potential: (f64, f64),
    work: f64,
    effort: f64,
) -> bool {
    // What the solver's tolerance and rounding may do: velocities of a tolerance in h, torques over a tolerance.
    let speed = TOLERANCE * plan.reach / h;
    let loose = 4.0 * plan.mass * speed * speed + TOLERANCE * effort + 1e-13 * (potential.0.abs() + potential.1.abs());
    let stake = stake(plan, input, kinetic.0.max(kinetic.1), work);
    kinetic.1 + potential.1 <= kinetic.0 + potential.0 + work + loose + ENERGY_SLACK * stake
}

/// The energy at stake: of motion, of falling through the character's own size, of the work done.
fn stake(plan: &Plan, input: &Input, kinetic: f64, work: f64) -> f64 {
    kinetic.max(plan.mass * input.gravity.length() * plan.reach).max(work.abs())
}

impl<'a> Run<'a> {
    fn part(&self, rule: Rule, h: f64, after: f64) -> Part<'a> {
        Part {
            plan: self.plan,
            model: self.model,
            input: self.input,
            touches: self.touches,
            rule,
            h,
            left: after - self.end,
            after,
            tension_damping: self.settings.tension_damping,
        }
    }

    /// Advances `now` by h.
    fn advance(&mut self, h: f64, after: f64, depth: u32) {
        let may_halve = depth < self.settings.depth;
        let (rotation, fastest) = self.rotation(h);
        if may_halve && rotation > self.settings.guard {
            self.report.rotation_halvings += 1;
            self.report.note(self.body(fastest), Cause::Turning);
            return self.halves(h, after, depth);
        }
        if depth > 0 && self.may_be_calm && self.calm(h, after) {
            return;
        }
        let before = self.part(Rule::Midpoint, h, after).energy(&self.work.now);
        let mut rules = [Some(Rule::Midpoint), None];
        if depth >= self.settings.backward_from {
            rules[1] = Some(Rule::Backward);
        }
        for rule in rules.into_iter().flatten() {
            let part = self.part(rule, h, after);
            if let Some(sums) = self.newton(&part) {
                self.settle(&part);
                let kept = self.energy_kept(&part, before, &sums);
                self.notes.mark(Stage::Close);
                if kept {
                    self.watch_stops(&part);
                    return self.accept(rule, h, sums);
                }
                self.report.note(self.body(self.most_energetic()), Cause::Energy);
            } else {
                self.report.note(self.body(self.most_corrected()), Cause::Convergence);
            }
        }
        self.report.fallbacks += 1;
        if may_halve {
            self.halves(h, after, depth);
        } else {
            self.report.note(self.body(self.most_corrected()), Cause::Resort);
            self.last_resort(h, after, before);
        }
    }

    /// Advances `now` by h if that is calm.
    fn calm(&mut self, h: f64, after: f64) -> bool {
        let MidpointWork { now, calm, between, .. } = &mut *self.work;
        scatter(self.plan, now, between);
        let task = Task {
            plan: self.plan,
            model: self.model,
            inputs: &[self.input],
            settings: &self.settings,
            h,
            left: after - self.end,
            after,
            impulses: self.how.impulses,
            states: &mut [between],
            notes: self.notes,
        };
        let Some(done) = calm.part(task) else { return false };
        gather(self.plan, between, now);
        self.work.was_calm = true;
        self.notes.ledger.part = h;
        self.report = self.report.then(done.report(self.plan));
        true
    }

    fn halves(&mut self, h: f64, after: f64, depth: u32) {
        self.advance(0.5 * h, after + 0.5 * h, depth + 1);
        if self.passed.is_none() {
            self.advance(0.5 * h, after, depth + 1);
        }
    }

    fn body(&self, node: usize) -> BodyId {
        BodyId(self.plan.nodes[node].body)
    }

    /// The node that the last pass of Newton moved most: where it failed.
    fn most_corrected(&self) -> usize {
        let size = |i: usize| {
            let (dx, rho) = self.work.newton.moved[i];
            let size = rho.length().max(dx.length() / self.plan.reach);
            if size.is_nan() { f64::INFINITY } else { size }
        };
        self.largest(size)
    }

    /// The node with the most energy of motion in the trial.
    fn most_energetic(&self) -> usize {
        let energy = |i: usize| {
            let (body, m) = (self.model.body(self.body(i)), &self.work.next[i]);
            body.mass * m.v.length_squared() + m.w.dot(turned_inertia(m.q, body.inertia) * m.w)
        };
        self.largest(energy)
    }

    /// The first node with the largest of something.
    fn largest(&self, of: impl Fn(usize) -> f64) -> usize {
        let mut best = (1, f64::NEG_INFINITY);
        for i in 1..self.plan.nodes.len() {
            let x = of(i);
            if x > best.1 {
                best = (i, x);
            }
        }
        best.0
    }

    /// The largest rotation of a joint, or of a floating body, that its velocity would make in `h` \[rad\], and its node.
    ///
    /// A spring too stiff for h turns the velocity round within the part: it counts by `1/(1 + h²k/4I)`.
    fn rotation(&self, h: f64) -> (f64, usize) {
        let now = &self.work.now;
        let (mut largest, mut fastest) = (0.0f64, 1);
        for (i, node) in self.plan.nodes.iter().enumerate().skip(1) {
            let rate = (now[i].w - now[node.parent as usize].w).length();
            let scale = self.input.scales(&self.input.joint(node.joint as usize)).0;
            let stiff = 0.25 * h * h * node.stiffness * scale / node.joint_inertia.0;
            let rate = rate / (1.0 + stiff);
            if rate > largest {
                (largest, fastest) = (rate, i);
            }
        }
        (largest * h, fastest)
    }

    /// Newton's method from the predicted pose. A factorisation is kept while five more passes with it would do.
    fn newton(&mut self, part: &Part<'_>) -> Option<Sums> {
        let MidpointWork { now, trial, newton, outside, .. } = &mut *self.work;
        let notes = &mut *self.notes;
        let plan = self.plan;
        let tolerance = self.settings.tolerance;
        let parent = |i: usize| plan.nodes[i].parent as usize;
        part.predict(now, trial);
        let (mut last, mut slow) = (f64::INFINITY, 0);
        let (mut active, mut changes) = (0, 0);
        let mut refactor = true;
        for pass in 0..PASSES {
            let mut sums = part.evaluate(now, trial, outside, newton, refactor);
            // Other limits act: the last factorisation does not serve, and the last correction tells nothing of the next.
            let mut share = 1.0;
            if pass > 0 && sums.limits != active {
                changes += 1;
                if !refactor {
                    refactor = true;
                    sums = part.evaluate(now, trial, outside, newton, true);
                }
                if changes <= CHANGES {
                    last = f64::INFINITY;
                }
                // To and fro across the end of a limit: the way between.
                if changes > 1 {
                    share = 0.5;
                }
            }
            active = sums.limits;
            notes.mark(Stage::Forces);
            if refactor {
                self.report.factorisations += 1;
                let regular = newton.factor(parent);
                notes.mark(Stage::Factor);
                if !regular {
                    return None;
                }
            }
            newton.solve(parent);
            self.report.solves += 1;
            let correction = part.correct(newton, share, plan.reach, now, trial);
            notes.mark(Stage::Solve);
            if correction.is_nan() || correction > 3.0 {
                return None;
            }
            if correction < tolerance && sums.gap < tolerance {
                part.close(now, trial);
                return Some(sums);
            }
            let ratio = correction / last;
            if pass > 0 && ratio > 0.7 {
                slow += 1;
                if slow > 2 || ratio > 10.0 {
                    return None;
                }
            }
            // The first pass started from a guess: its size says little about the next.
            refactor = if pass == 0 { correction > 0.1 } else { ratio > 0.5 || correction * ratio.powi(5) > tolerance };
            last = correction;
        }
        None
    }

    /// Velocities of the converged trial, projected when they would open the joints.
    fn settle(&mut self, part: &Part<'_>) {
        let MidpointWork { now, trial, next, .. } = &mut *self.work;
        part.finish(now, trial, next);
        if part.opening(next) > self.settings.projection {
            self.project(part);
        }
    }

    /// The nearest velocities, by kinetic energy, that keep the joints closed: energy is only removed.
    fn project(&mut self, part: &Part<'_>) {
        let MidpointWork { next, newton, .. } = &mut *self.work;
        let plan = self.plan;
        let parent = |i: usize| plan.nodes[i].parent as usize;
        part.projection(next, newton);
        self.report.projections += 1;
        self.report.factorisations += 1;
        self.report.solves += 1;
        if newton.factor(parent) {
            newton.solve(parent);
            for (m, &(v, w)) in next.iter_mut().zip(&newton.moved).skip(1) {
                (m.v, m.w) = (v, w);
            }
        }
    }

    /// Whether `next` has no more energy than `now` and the work done from outside allow.
    fn energy_kept(&self, part: &Part<'_>, before: (f64, f64), sums: &Sums) -> bool {
        let after = part.energy(&self.work.next);
        let (kinetic, potential) = ((before.0, after.0), (before.1, after.1));
        energy_kept(self.plan, self.input, part.h, kinetic, potential, sums.work, sums.effort)
    }

    /// Notes a hard limit that `next` has passed.
    fn watch_stops(&mut self, part: &Part<'_>) {
        if !self.model.hard_limits().is_empty() {
            self.passed = part.passed(&self.work.next).map(|i| JointId(self.plan.nodes[i].joint));
        }
    }

    fn accept(&mut self, rule: Rule, h: f64, sums: Sums) {
        self.notes.ledger.part = h;
        self.work.was_calm = false;
        std::mem::swap(&mut self.work.now, &mut self.work.next);
        self.report.substeps += 1;
        self.report.limits_active = self.report.limits_active.max(sums.limits);
        if rule == Rule::Backward {
            self.report.backward_parts += 1;
        }
    }

    /// A few damped passes of the backward rule, whatever they reach, with the energy held down: joints are closed by
    /// construction, and nothing grows.
    fn last_resort(&mut self, h: f64, after: f64, before: (f64, f64)) {
        let part = self.part(Rule::Backward, h, after);
        let plan = self.plan;
        let parent = |i: usize| plan.nodes[i].parent as usize;
        let MidpointWork { now, trial, newton, outside, next, .. } = &mut *self.work;
        part.predict(now, trial);
        let mut sums = Sums::default();
        for _ in 0..3 {
            sums = part.evaluate(now, trial, outside, newton, true);
            self.report.factorisations += 1;
            if !newton.factor(parent) {
                break;
            }
            newton.solve(parent);
            self.report.solves += 1;
            let largest = newton.moved.iter().map(|m| m.1.length()).fold(0.0, f64::max);
            if !largest.is_finite() {
                break;
            }
            let scale = (0.5 / largest.max(1e-300)).min(1.0);
            newton.moved.iter_mut().for_each(|m| *m = (m.0 * scale, m.1 * scale));
            if part.correct(newton, 1.0, plan.reach, now, trial) < TOLERANCE {
                break;
            }
        }
        part.close(now, trial);
        part.finish(now, trial, next);
        if self.work.next.iter().skip(1).any(|m| !finite(m)) {
            // Nothing came of it: stay, at rest.
            let MidpointWork { now, next, .. } = &mut *self.work;
            next.copy_from_slice(now);
            next.iter_mut().for_each(|m| (m.v, m.w) = (DVec3::ZERO, DVec3::ZERO));
        } else {
            self.project(&part);
        }
        let (kinetic, potential) = part.energy(&self.work.next);
        let allowed = before.0 + before.1 + sums.work.max(0.0).min(stake(plan, self.input, before.0, 0.0)) - potential;
        if kinetic > allowed {
            let scale = (allowed.max(0.0) / kinetic).sqrt();
            self.work.next.iter_mut().for_each(|m| (m.v, m.w) = (m.v * scale, m.w * scale));
        }
        self.work.next.iter_mut().for_each(|m| m.memory.force = DVec3::ZERO);
        self.watch_stops(&part);
        self.report.resorts += 1;
        self.notes.mark(Stage::Solve);
        self.accept(Rule::Backward, h, sums);
    }
}
