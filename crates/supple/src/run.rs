//! A run as a whole: its figures, and whether it is to be trusted. Command line and studio judge by the same rules.

use crate::control;
use crate::forces::{self, Derivatives, Source};
use crate::input::{Drive, Input};
use crate::maths::fnv::Fnv;
use crate::maths::{Twist, Wrench};
use crate::measure;
use crate::model::{Model, State};
use crate::step::{FIGURES, Figure, Report, larger};
use std::collections::BTreeMap;

/// What the steps of a run measured, one after another.
#[derive(Clone, Debug)]
pub struct Run {
    /// By figure: the largest of any step, and the sum of all.
    largest: Vec<f64>,
    total: Vec<f64>,
    steps: u64,
    /// The report of the step that left the largest gap.
    widest: Report,
    /// Every number so far was one.
    finite: bool,
    /// Length of the model \[m\], by which gaps and penetrations are judged.
    size: f64,
    energy: Balance,
    /// What the solvers that ran lack of the scene, once each.
    lacking: Vec<&'static str>,
}

/// How far a run is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing speaks against it.
    Good,
    /// It went through, with something that shows in the result.
    Degraded,
    /// Its result means nothing.
    Failed,
}

impl Grade {
    /// The word of the command line and of JSON.
    pub fn word(self) -> &'static str {
        match self {
            Grade::Good => "good",
            Grade::Degraded => "degraded",
            Grade::Failed => "failed",
        }
    }
}

/// How far a run is to be trusted, and why no further.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality {
    /// The worst of the reasons.
    pub grade: Grade,
    /// The worst first.
    pub reasons: Vec<Reason>,
}

/// Why a run is not to be trusted further.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// How far it lowers the quality.
    pub grade: Grade,
    /// What it is about; the same from step to step while figures in the text change, so that it can be told once.
    pub about: &'static str,
    /// In plain words.
    pub text: String,
    /// Whether it comes of the solver that was chosen, whatever happens in the run.
    pub of_solver: bool,
}

impl Quality {
    /// The reasons in words.
    pub fn words(&self) -> Vec<String> {
        self.reasons.iter().map(|reason| reason.text.clone()).collect()
    }
}

// Gaps as shares of the model's size. A hundredth is seen at a glance; a ten-thousandth is 0.2 mm of a person.
const GAP_FAILED: f64 = 1e-2;
const GAP_DEGRADED: f64 = 1e-4;
/// Tilts of held axes \[sine\]: 6°, and a twentieth of a degree.
const TILT_FAILED: f64 = 0.1;
const TILT_DEGRADED: f64 = 1e-3;
/// Penetration as a share of the model's size: 2 cm of a person.
const DEEP: f64 = 1e-2;
/// Share of the parts of steps in which something may be left over before it is told.
const SELDOM: f64 = 0.05;
/// Share of the steps by the last resort from which on the run is not one of the scene.
const OFTEN: f64 = 0.5;
/// Energy above that of the start, from nothing, as a share of the largest energy of motion.
const GAIN_FAILED: f64 = 1.0;
const GAIN_DEGRADED: f64 = 0.05;
/// The same of a rise from any step on: some solvers tell the energy of motion half a step late, and it wavers.
const RISE_DEGRADED: f64 = 0.5;
/// Motion is judged as if it had at least this share of the energy that the scene's weight would have by falling its own size.
const STILL: f64 = 1e-3;
/// Energy that went nowhere, as a share of the largest energy of motion a second. Motion then fades within a minute or so that should go on.
const LOSS_A_SECOND: f64 = 0.01;
/// Seconds after which that is judged.
const LOSS_SECONDS: f64 = 0.5;

impl Run {
    /// A run that starts at `state`.
    pub fn new(model: &Model, input: &Input, state: &State) -> Run {
        let mut run = Run {
            largest: vec![0.0; FIGURES.len()],
            total: vec![0.0; FIGURES.len()],
            steps: 0,
            widest: Report::default(),
            finite: state.is_finite(),
            size: model.size(),
            energy: Balance::default(),
            lacking: Vec::new(),
        };
        run.note_lacking(model, input);
        run
    }

    /// Adds a step that `input` led to `state`; the energy where it was measured \[J\].
    pub fn add(&mut self, model: &Model, input: &Input, state: &State, report: &Report, energy: Option<f64>) {
        self.steps += 1;
        for (k, (_, value)) in report.figures().enumerate() {
            self.largest[k] = larger(self.largest[k], value);
            self.total[k] += value;
            self.finite &= value.is_finite();
        }
        if report.max_joint_gap > self.widest.max_joint_gap || self.steps == 1 {
            self.widest = *report;
        }
        self.finite &= energy.is_none_or(f64::is_finite);
        if let Some(energy) = energy {
            self.energy.add(model, input, state, report, energy);
        }
        self.note_lacking(model, input);
    }

    fn note_lacking(&mut self, model: &Model, input: &Input) {
        if let Some(what) = input.solver.lacks(model, input)
            && !self.lacking.contains(&what)
        {
            self.lacking.push(what);
        }
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Every figure with the largest of any step and the sum of all.
    pub fn figures(&self) -> impl Iterator<Item = (&'static Figure, f64, f64)> {
        FIGURES.iter().zip(&self.largest).zip(&self.total).map(|((figure, largest), total)| (figure, *largest, *total))
    }

    /// The largest of a figure in any step.
    ///
    /// # Panics
    /// When there is no such figure.
    pub fn largest(&self, name: &str) -> f64 {
        self.largest[place(name)]
    }

    /// The sum of a figure over all steps.
    ///
    /// # Panics
    /// When there is no such figure.
    pub fn total(&self, name: &str) -> f64 {
        self.total[place(name)]
    }

    /// By the name of a rule: how many parts of steps it did.
    pub fn rules(&self) -> BTreeMap<&'static str, u64> {
        let of_rules = |(figure, _, total): (&'static Figure, f64, f64)| {
            figure.name.strip_prefix("rules.").filter(|_| total > 0.0).map(|name| (name, total as u64))
        };
        self.figures().filter_map(of_rules).collect()
    }

    /// Whether every number that was reported was one, and the state at the end is.
    pub fn is_finite(&self, state: &State) -> bool {
        self.finite && state.is_finite()
    }

    /// How far the run is to be trusted.
    pub fn quality(&self, model: &Model, input: &Input, state: &State) -> Quality {
        let mut told: Vec<Reason> = Vec::new();
        if !self.is_finite(state) {
            told.push(reason(Grade::Failed, "numbers", "a number of the run overflowed"));
        }
        self.judge_joints(model, &mut told);
        self.judge_contacts(&mut told);
        self.judge_parts(&mut told);
        self.energy.judge(input, &mut told);
        let lacking = self.lacking.iter().map(|what| reason(Grade::Degraded, what, *what));
        told.extend(lacking.map(|reason| Reason { of_solver: true, ..reason }));
        told.sort_by_key(|reason| std::cmp::Reverse(reason.grade)); // stable
        let grade = told.first().map_or(Grade::Good, |reason| reason.grade);
        Quality { grade, reasons: told }
    }

    fn judge_joints(&self, model: &Model, told: &mut Vec<Reason>) {
        let gap = self.widest.max_joint_gap;
        if let Some(grade) = grade(gap / self.size, GAP_DEGRADED, GAP_FAILED) {
            let joint = self.widest.widest_joint.map_or("?", |joint| &model.joint(joint).name);
            told.push(reason(grade, "joints", format!("joint \"{joint}\" came open by {}", length(gap))));
        }
        let tilt = self.largest("max_joint_tilt");
        if let Some(grade) = grade(tilt, TILT_DEGRADED, TILT_FAILED) {
            told.push(reason(
                grade,
                "tilt",
                format!("a joint was tilted off its axes by {:.2}°", tilt.min(1.0).asin().to_degrees()),
            ));
        }
    }

    fn judge_contacts(&self, told: &mut Vec<Reason>) {
        let deep = self.largest("max_penetration");
        if deep > DEEP * self.size {
            told.push(reason(
                Grade::Degraded,
                "penetration",
                format!("bodies were inside one another by up to {}", length(deep)),
            ));
        }
        for (figure, what) in [
            ("unconverged", "contacts or limits did not settle"),
            ("flesh_unsettled", "flesh was not solved to its tolerance"),
        ] {
            let parts = self.total(figure);
            if parts > SELDOM * self.total("substeps") {
                let share = 100.0 * parts / self.total("substeps").max(1.0);
                told.push(reason(Grade::Degraded, figure, format!("{what} in {share:.0} % of the parts of steps")));
            }
        }
    }

    fn judge_parts(&self, told: &mut Vec<Reason>) {
        let resorts = self.total("resorts");
        if resorts > 0.0 {
            let failed = resorts > OFTEN * self.steps as f64;
            let grade = if failed { Grade::Failed } else { Grade::Degraded };
            let what = format!("{resorts:.0} parts of steps went by the last resort, which holds motion back");
            told.push(reason(grade, "resorts", what));
        }
    }
}

fn reason(grade: Grade, about: &'static str, text: impl Into<String>) -> Reason {
    Reason { grade, about, text: text.into(), of_solver: false }
}

fn place(name: &str) -> usize {
    FIGURES.iter().position(|figure| figure.name == name).unwrap_or_else(|| panic!("there is no figure {name}"))
}

/// Above the second bound failed, above the first degraded. What is no number is told elsewhere.
fn grade(x: f64, degraded: f64, failed: f64) -> Option<Grade> {
    if x > failed {
        Some(Grade::Failed)
    } else if x > degraded {
        Some(Grade::Degraded)
    } else {
        None
    }
}

/// A length in the unit that suits it.
fn length(metres: f64) -> String {
    if metres < 1.0 { format!("{:.2} mm", 1e3 * metres) } else { format!("{metres:.2} m") }
}

/// The length of a step: `1/60 s`.
fn seconds(dt: f64) -> String {
    let rate = dt.recip();
    if rate >= 1.5 && (rate - rate.round()).abs() < 1e-6 * rate { format!("1/{rate:.0} s") } else { format!("{dt} s") }
}

/// Energy over stretches of the run in which nothing from outside does work: then it must not grow, and must not fall by more than what
/// dampers take.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    /// Of the step before, if nothing acted from outside.
    before: Option<Before>,
    /// Largest energy of motion \[J\].
    motion: f64,
    /// At the beginning of the stretch \[J\].
    start: f64,
    /// The most above that, and the most that it rose from any step on \[J\].
    gained: f64,
    risen: f64,
    /// The lowest of the stretch \[J\].
    lowest: f64,
    /// What went nowhere \[J\], over these seconds.
    lost: f64,
    seconds: f64,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    energy: f64,
    /// Of all dampers \[W\].
    damping: f64,
    /// What the energy depends on besides the state.
    conditions: u64,
}

impl Balance {
    fn add(&mut self, model: &Model, input: &Input, state: &State, report: &Report, energy: f64) {
        let still = STILL * measure::energy_at_stake(model, input, model.size());
        self.motion = self.motion.max(measure::kinetic_energy(model, state)).max(still);
        if !is_left_alone(model, input) {
            self.before = None;
            return;
        }
        let damping = damping_power(model, input, state);
        let conditions = conditions(input);
        self.before = self.before.filter(|before| before.conditions == conditions);
        if let Some(before) = self.before {
            let change = energy - before.energy;
            self.lowest = self.lowest.min(energy);
            self.gained = self.gained.max(energy - self.start);
            self.risen = self.risen.max(energy - self.lowest);
            // Contacts, stops and flesh take what nobody counts.
            let counted = report.contacts == 0 && report.limits_active == 0;
            if counted && model.flesh().is_none() && model.skin().is_none() {
                self.lost -= change + 0.5 * (before.damping + damping) * input.dt;
                self.seconds += input.dt;
            }
        }
        if self.before.is_none() {
            (self.start, self.lowest) = (energy, energy);
        }
        self.before = Some(Before { energy, damping, conditions });
    }

    fn judge(&self, input: &Input, told: &mut Vec<Reason>) {
        let (solver, dt) = (input.solver.choice(), seconds(input.dt));
        let gained = grade(self.gained / self.motion, GAIN_DEGRADED, GAIN_FAILED);
        let risen = (self.risen > RISE_DEGRADED * self.motion).then_some(Grade::Degraded);
        if let Some(grade) = gained.or(risen) {
            let what = format!("{:.3} J of energy came from nothing", self.gained.max(self.risen));
            told.push(reason(grade, "energy", format!("{what}: solver {solver} needs a step shorter than {dt} here")));
        }
        let rate = self.lost / (self.motion * self.seconds);
        if self.seconds > LOSS_SECONDS && rate > LOSS_A_SECOND {
            let what = format!(
                "solver {solver} at {dt} takes {:.0} % of the energy of motion a second that nothing in the scene takes",
                100.0 * rate
            );
            let text = format!("{what}: motion fades too soon; use a shorter step, or solver tree");
            told.push(Reason { of_solver: true, ..reason(Grade::Degraded, "damping", text) });
        }
    }
}

/// Whether nothing from outside does work in a step: no pulls, motors, told motions, or things that are moved.
fn is_left_alone(model: &Model, input: &Input) -> bool {
    let forces = |k: usize| {
        let joint = input.joint(k);
        joint.drive == Drive::Forces && (!input.torques || (joint.torque == 0.0 && joint.servo.is_none()))
    };
    input.control.mode == control::Mode::Off
        && input.targets.iter().flatten().next().is_none()
        && input.obstacles.iter().flatten().next().is_none()
        && input.drags.is_empty()
        && input.grips.is_empty()
        && input.wrenches.iter().all(|(_, wrench)| *wrench == Wrench::ZERO)
        && input.balls.is_empty()
        && input.grabs.is_empty()
        && (input.joints.is_empty() || (0..model.joints().len()).all(forces))
}

/// A hash of what the energy of a state depends on in the input. A user who changes gravity or a spring changes the energy, and it
/// comes from there, not from nothing.
fn conditions(input: &Input) -> u64 {
    let scales = input.joints.iter().flat_map(|joint| [joint.stiffness_scale, joint.damping_scale]);
    let numbers =
        input.gravity.to_array().into_iter().chain([input.stiffness_scale, input.damping_scale]).chain(scales);
    let mut hash = Fnv::from(u64::from(input.torques));
    numbers.for_each(|number| hash.word(number.to_bits()));
    hash.finish()
}

/// What the dampers of joints, limits and springs between bodies take at this moment \[W\].
fn damping_power(model: &Model, input: &Input, state: &State) -> f64 {
    let mut power = 0.0;
    let work = |w: Wrench, v: Twist| w.force.dot(v.linear) + w.torque.dot(v.angular);
    forces::collect(model, input, state, 0.0, Derivatives::Exact, |acting| {
        if matches!(acting.source, Source::Joint(_) | Source::Limit(_) | Source::AnchorSpring(_)) {
            let a = state.bodies[acting.a.index()].velocity;
            let b = acting.b.map_or(Twist::ZERO, |b| state.bodies[b.index()].velocity);
            let (still, moving) = (acting.force.wrenches(), acting.force.wrenches_at(a, b));
            power -= work(moving[0], a) - work(still[0], a) + work(moving[1], b) - work(still[1], b);
        }
    });
    power
}
