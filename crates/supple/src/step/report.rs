//! What a step measured, and how the reports of its parts become one.

use crate::control::ControlReport;
use crate::flesh::Settled;
use crate::model::{BodyId, JointId};

/// What a step measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Largest distance by which a joint's points are apart at the end \[m\].
    pub max_joint_gap: f64,
    /// Largest sine of an angle by which a joint's constrained axes are off at the end.
    pub max_joint_tilt: f64,
    /// The joint with the largest gap.
    pub widest_joint: Option<JointId>,
    /// Parts into which the step was divided.
    pub substeps: u32,
    /// Parts of the default step that were done by its fast way.
    pub calm_parts: u32,
    /// Factorisations done.
    pub factorisations: u32,
    /// Right-hand sides solved.
    pub solves: u32,
    /// Parts that failed and were done again in halves.
    pub fallbacks: u32,
    /// Halvings because a joint would turn too far in one part.
    pub rotation_halvings: u32,
    /// Parts done by the backward rule instead of the midpoint rule.
    pub backward_parts: u32,
    /// Parts done by the last resort.
    pub resorts: u32,
    /// Those of them in which bodies that touch found no way to move: they stayed where they were and lost half of their speed.
    pub stalled: u32,
    /// Parts whose velocities were projected onto closed joints.
    pub projections: u32,
    /// The farthest a body was moved before a part to close joints that another method had left open \[m\].
    pub closed: f64,
    /// Corrections of velocities by solver `impulse`: systems solved, or rounds joint by joint.
    pub velocity_corrections: u32,
    /// Joint limits that acted.
    pub limits_active: u32,
    /// Bodies that slept; the most of any part.
    pub asleep: u32,
    /// Contacts found, those still apart included; the most of any part.
    pub contacts: u32,
    /// Parts in which not all contacts, or soft limits and motors beside them, settled to tolerance within the iterations
    /// allowed. Joints hold all the same.
    pub unconverged: u32,
    /// The deepest that anything was inside anything at the end of the last part \[m\].
    pub max_penetration: f64,
    /// Corrections of joints.
    pub corrections: u32,
    /// Iterations of a linear solver in all corrections.
    pub iterations: u32,
    /// Largest error that the corrections met, of joints, prescribed motions and grips \[m, rad\].
    pub residual_before: f64,
    /// Largest error that the corrections left, of joints, prescribed motions and grips \[m, rad\].
    pub residual: f64,
    /// Newton steps of flesh.
    pub flesh_newton: u32,
    /// Parts in which flesh was not solved to its tolerance.
    pub flesh_unsettled: u32,
    /// Elements of flesh outside the range of their material at the end.
    pub flesh_outside: u32,
    /// Vertices of the flesh's surface that touched something in the last part.
    pub flesh_touching: u32,
    /// What the control of the actuators did.
    pub control: ControlReport,
    /// What its parts were done by.
    pub rules: Rules,
    /// The worst that made the step divide itself, and where; none when every part went well at once.
    pub trouble: Option<Trouble>,
}

/// The rule by which a part of a step was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRule {
    /// The midpoint rule on bodies and joints at once: solver `tree` of a bare tree.
    Midpoint,
    /// Impulses of joints at both ends of a drift: solver `tree` with contacts, hard limits, loops, couplings or grips, while joints are not tense.
    Rattle,
    /// Backward Euler of soft matter and bones together: solver `tree` with flesh or skin.
    Backward,
    /// Solver `tree` as published, its blocks as printed, and its explicit form.
    Published,
    /// See [`StepRule::Published`].
    Exact,
    /// See [`StepRule::Published`].
    Acceleration,
    /// Solver `impulse`.
    Impulse,
    /// Solver `assembly`.
    Assembly,
    /// Solver `reduced`.
    Reduced,
}

impl StepRule {
    /// All, in the order of [`Rules`].
    pub const ALL: [StepRule; 9] = [
        StepRule::Midpoint,
        StepRule::Rattle,
        StepRule::Backward,
        StepRule::Published,
        StepRule::Exact,
        StepRule::Acceleration,
        StepRule::Impulse,
        StepRule::Assembly,
        StepRule::Reduced,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            StepRule::Midpoint => "midpoint",
            StepRule::Rattle => "rattle",
            StepRule::Backward => "backward",
            StepRule::Published => "published",
            StepRule::Exact => "exact",
            StepRule::Acceleration => "acceleration",
            StepRule::Impulse => "impulse",
            StepRule::Assembly => "assembly",
            StepRule::Reduced => "reduced",
        }
    }
}

/// How many parts of a step were done by each rule. Parts done by a fallback (the backward rule, the last resort) are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules([u32; StepRule::ALL.len()]);

impl Rules {
    /// Parts done by this rule.
    pub fn count(&self, rule: StepRule) -> u32 {
        self.0[rule as usize]
    }

    /// The rules that did any part, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (StepRule, u32)> {
        StepRule::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// Both together.
    pub fn plus(self, other: Rules) -> Rules {
        Rules(std::array::from_fn(|k| self.0[k] + other.0[k]))
    }
}

/// Why a part of a step was divided, and the body it lay at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The body.
    pub body: BodyId,
    /// The reason.
    pub cause: Cause,
}

/// Why a part of a step was divided; a later one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The body would turn too far in one part. Usual in fast motion.
    Turning,
    /// The character would have gained energy from nothing; the body moved most.
    Energy,
    /// The equations were not solved in the passes allowed; the body was corrected most.
    Convergence,
    /// A number grew beyond all bounds, or a pivot vanished, at the body.
    Overflow,
    /// No part was small enough: the last resort went on, with the energy held down.
    Resort,
    /// Not even that: the body and what it touches stayed where they were for a while.
    Stalled,
}

impl Trouble {
    /// The worse of two; of equals the first.
    pub(super) fn worse(first: Option<Trouble>, later: Option<Trouble>) -> Option<Trouble> {
        match (first, later) {
            (Some(a), Some(b)) => Some(if b.cause > a.cause { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

impl Report {
    /// What the solution of flesh took in a part.
    pub(crate) fn note_flesh(&mut self, settled: Settled) {
        self.flesh_newton += settled.newton;
        self.factorisations += settled.factorisations;
        self.flesh_unsettled += u32::from(!settled.converged);
        self.flesh_outside = settled.outside;
        self.flesh_touching = settled.touching;
    }

    /// The same of parts that were done by this rule, but for those of its fallbacks.
    pub(crate) fn by(self, rule: StepRule) -> Report {
        let mut rules = Rules::default();
        rules.0[rule as usize] = self.substeps.saturating_sub(self.backward_parts.max(self.resorts));
        Report { rules, ..self }
    }

    /// The rule that did most parts of the step; none when fallbacks did all.
    pub fn rule(&self) -> Option<StepRule> {
        self.rules.iter().max_by_key(|(_, count)| *count).map(|(rule, _)| rule)
    }

    /// Notes a trouble, unless a worse one is noted.
    pub(crate) fn note(&mut self, body: BodyId, cause: Cause) {
        self.trouble = Trouble::worse(self.trouble, Some(Trouble { body, cause }));
    }

    /// Adds the same part of the step of another island: depths are the larger of both.
    pub(super) fn with_island(self, other: Report) -> Report {
        let max_penetration = self.max_penetration.max(other.max_penetration);
        Report { max_penetration, ..self.then(other) }
    }

    /// Adds a later part of the same step, each figure as [`FIGURES`] says.
    pub(crate) fn then(mut self, mut later: Report) -> Report {
        for figure in FIGURES {
            figure.merge(figure.parts, &mut self, &mut later);
        }
        self.widest_joint = later.widest_joint; // goes with the gap, which is that at the end
        self.trouble = Trouble::worse(self.trouble, later.trouble);
        self
    }

    /// Adds another character that was advanced by the same step, each figure as [`FIGURES`] says.
    pub(super) fn beside(&mut self, mut other: Report) {
        if other.max_joint_gap > self.max_joint_gap || self.widest_joint.is_none() {
            self.widest_joint = other.widest_joint;
        }
        for figure in FIGURES {
            figure.merge(figure.characters, self, &mut other);
        }
        self.trouble = Trouble::worse(self.trouble, other.trouble);
    }

    /// Every figure with its value, in the order of [`FIGURES`].
    pub fn figures(mut self) -> impl Iterator<Item = (&'static Figure, f64)> {
        FIGURES.iter().map(move |figure| (figure, figure.of(&mut self)))
    }
}

/// A figure of the [`Report`]: described here once, for the merging of parts and of characters, for runs, command line, studio and plots.
#[derive(Debug)]
pub struct Figure {
    /// As JSON and plots call it; what the control did begins with `control.`.
    pub name: &'static str,
    /// Empty for a count.
    pub unit: &'static str,
    /// What it tells.
    pub words: &'static str,
    /// How the parts of a step become one figure.
    pub parts: Merge,
    /// How the characters of a crowd do.
    pub characters: Merge,
    field: Field,
}

/// How figures become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They add up.
    Sum,
    /// The largest stays; one that is no number at all counts as larger than any.
    Max,
    /// The last stays.
    Last,
}

#[derive(Debug)]
enum Field {
    Count(fn(&mut Report) -> &mut u32),
    Size(fn(&mut Report) -> &mut f64),
}

impl Figure {
    /// The figure of this name.
    pub fn named(name: &str) -> Option<&'static Figure> {
        FIGURES.iter().find(|figure| figure.name == name)
    }

    /// Its value in a report.
    pub fn value(&self, report: &Report) -> f64 {
        let mut report = *report;
        self.of(&mut report)
    }

    /// Whether it is a whole number.
    pub fn is_count(&self) -> bool {
        matches!(self.field, Field::Count(_))
    }

    fn of(&self, report: &mut Report) -> f64 {
        match self.field {
            Field::Count(at) => f64::from(*at(report)),
            Field::Size(at) => *at(report),
        }
    }

    fn merge(&self, how: Merge, first: &mut Report, later: &mut Report) {
        match self.field {
            Field::Count(at) => {
                let (into, from) = (at(first), *at(later));
                *into = match how {
                    Merge::Sum => into.saturating_add(from),
                    Merge::Max => from.max(*into),
                    Merge::Last => from,
                }
            }
            Field::Size(at) => {
                let (into, from) = (at(first), *at(later));
                *into = match how {
                    Merge::Sum => *into + from,
                    Merge::Max => larger(*into, from),
                    Merge::Last => from,
                }
            }
        }
    }
}

/// The larger of two; one that is no number is not passed over, as `f64::max` would.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

const fn count(
    name: &'static str,
    (parts, characters): (Merge, Merge),
    at: fn(&mut Report) -> &mut u32,
    words: &'static str,
) -> Figure {
    Figure { name, unit: "", words, parts, characters, field: Field::Count(at) }
}

const fn size(
    (name, unit): (&'static str, &'static str),
    (parts, characters): (Merge, Merge),
    at: fn(&mut Report) -> &mut f64,
    words: &'static str,
) -> Figure {
    Figure { name, unit, words, parts, characters, field: Field::Size(at) }
}

const SUM: (Merge, Merge) = (Merge::Sum, Merge::Sum);
/// Work of a step: that of the character that took most.
const WORK: (Merge, Merge) = (Merge::Sum, Merge::Max);
const MAX: (Merge, Merge) = (Merge::Max, Merge::Max);
const END: (Merge, Merge) = (Merge::Last, Merge::Max);
const COUNT_AT_END: (Merge, Merge) = (Merge::Last, Merge::Sum);

/// Every figure of a report.
pub static FIGURES: &[Figure] = &[
    size(("max_joint_gap", "m"), END, |r| &mut r.max_joint_gap, "largest gap of a joint"),
    size(("max_joint_tilt", "rad"), END, |r| &mut r.max_joint_tilt, "largest tilt of a joint's held axes"),
    count("substeps", WORK, |r| &mut r.substeps, "parts of a step"),
    count("calm_parts", SUM, |r| &mut r.calm_parts, "parts of the default step by its fast way"),
    count("factorisations", WORK, |r| &mut r.factorisations, "factorisations"),
    count("solves", WORK, |r| &mut r.solves, "right-hand sides solved"),
    count("fallbacks", SUM, |r| &mut r.fallbacks, "parts that failed and were halved"),
    count("rotation_halvings", SUM, |r| &mut r.rotation_halvings, "halvings because a joint would turn too far"),
    count("backward_parts", SUM, |r| &mut r.backward_parts, "parts by the backward rule"),
    count("resorts", SUM, |r| &mut r.resorts, "parts by the last resort"),
    count("stalled", SUM, |r| &mut r.stalled, "parts in which an island made no progress"),
    count("projections", SUM, |r| &mut r.projections, "parts with velocities projected onto closed joints"),
    size(("closed", "m"), MAX, |r| &mut r.closed, "farthest move of a body to close joints before a part"),
    count("velocity_corrections", WORK, |r| &mut r.velocity_corrections, "corrections of velocities"),
    count("limits_active", MAX, |r| &mut r.limits_active, "limits acting"),
    count("asleep", (Merge::Max, Merge::Sum), |r| &mut r.asleep, "bodies asleep"),
    count("contacts", MAX, |r| &mut r.contacts, "contacts"),
    count("unconverged", SUM, |r| &mut r.unconverged, "parts with contacts or limits that did not settle"),
    size(("max_penetration", "m"), END, |r| &mut r.max_penetration, "deepest penetration"),
    count("corrections", WORK, |r| &mut r.corrections, "corrections of joints"),
    count("iterations", WORK, |r| &mut r.iterations, "iterations of linear solvers"),
    size(("residual_before", "m, rad"), MAX, |r| &mut r.residual_before, "largest error met by corrections"),
    size(("residual", "m, rad"), END, |r| &mut r.residual, "largest error left by corrections"),
    count("flesh_newton", WORK, |r| &mut r.flesh_newton, "Newton steps of flesh"),
    count("flesh_unsettled", SUM, |r| &mut r.flesh_unsettled, "parts with flesh not solved to its tolerance"),
    count("flesh_outside", COUNT_AT_END, |r| &mut r.flesh_outside, "elements of flesh outside their material's range"),
    count("flesh_touching", COUNT_AT_END, |r| &mut r.flesh_touching, "vertices of flesh that touch something"),
    count("rules.midpoint", SUM, |r| &mut r.rules.0[StepRule::Midpoint as usize], "parts by the rule midpoint"),
    count("rules.rattle", SUM, |r| &mut r.rules.0[StepRule::Rattle as usize], "parts by the rule rattle"),
    count("rules.backward", SUM, |r| &mut r.rules.0[StepRule::Backward as usize], "parts by the rule backward"),
    count("rules.published", SUM, |r| &mut r.rules.0[StepRule::Published as usize], "parts by the rule published"),
    count("rules.exact", SUM, |r| &mut r.rules.0[StepRule::Exact as usize], "parts by the rule exact"),
    count(
        "rules.acceleration",
        SUM,
        |r| &mut r.rules.0[StepRule::Acceleration as usize],
        "parts by the rule acceleration",
    ),
    count("rules.impulse", SUM, |r| &mut r.rules.0[StepRule::Impulse as usize], "parts by the rule impulse"),
    count("rules.assembly", SUM, |r| &mut r.rules.0[StepRule::Assembly as usize], "parts by the rule assembly"),
    count("rules.reduced", SUM, |r| &mut r.rules.0[StepRule::Reduced as usize], "parts by the rule reduced"),
    count("control.actuators", COUNT_AT_END, |r| &mut r.control.actuators, "actuators told what to do"),
    size(
        ("control.root_wrench", "N, N·m"),
        MAX,
        |r| &mut r.control.root_wrench,
        "force or torque on passive roots: zero but for rounding",
    ),
    size(("control.pull_force", "N"), END, |r| &mut r.control.pull_force, "pull from outside that would do the same"),
    size(("control.pull_torque", "N·m"), END, |r| &mut r.control.pull_torque, "torque of that pull about the root"),
    count("control.limited", (Merge::Max, Merge::Sum), |r| &mut r.control.limited, "commands held back by a bound"),
    size(
        ("control.residual_primary", "m/s²"),
        END,
        |r| &mut r.control.residuals[0],
        "asked for at the first level and not done",
    ),
    size(
        ("control.residual_secondary", "m/s²"),
        END,
        |r| &mut r.control.residuals[1],
        "asked for at the second level and not done",
    ),
    size(
        ("control.residual_tertiary", "m/s²"),
        END,
        |r| &mut r.control.residuals[2],
        "asked for at the third level and not done",
    ),
    size(("control.asked_primary", "m/s²"), END, |r| &mut r.control.asked[0], "asked for at the first level"),
    size(("control.asked_secondary", "m/s²"), END, |r| &mut r.control.asked[1], "asked for at the second level"),
    size(("control.asked_tertiary", "m/s²"), END, |r| &mut r.control.asked[2], "asked for at the third level"),
    size(("control.max_torque", "N·m"), MAX, |r| &mut r.control.max_torque, "largest torque of an actuator"),
    size(("control.torque", "N·m"), END, |r| &mut r.control.torque, "actuators' torques, root of the sum of squares"),
    size(
        ("control.acceleration", "rad/s²"),
        END,
        |r| &mut r.control.acceleration,
        "actuators' accelerations, root of the sum of squares",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that is added to the report and not to the table is caught here.
    #[test]
    fn every_number_of_a_report_is_a_figure() {
        let mut report = Report::default();
        for (k, figure) in FIGURES.iter().enumerate() {
            match figure.field {
                Field::Count(at) => *at(&mut report) = k as u32 + 1,
                Field::Size(at) => *at(&mut report) = k as f64 + 1.5,
            }
        }
        let told = format!("{report:?}");
        for nothing in [": 0,", ": 0 ", ": 0.0", "[0.0", " 0.0]", "[0,", ", 0,", ", 0]"] {
            assert!(!told.contains(nothing), "{nothing} in {told}");
        }
        // each figure has a place of its own
        for (k, (figure, value)) in report.figures().enumerate() {
            assert_eq!(value.floor(), k as f64 + 1.0, "{}", figure.name);
            assert_eq!(Figure::named(figure.name).map(|f| f.words), Some(figure.words));
        }
    }

    #[test]
    fn parts_and_characters_merge_by_the_table() {
        let one = Report { substeps: 2, contacts: 3, max_joint_gap: 5e-9, flesh_unsettled: 1, ..Report::default() };
        let two = Report { substeps: 3, contacts: 1, max_joint_gap: 1e-9, flesh_unsettled: 2, ..Report::default() };
        let after = one.then(two);
        assert_eq!((after.substeps, after.contacts, after.flesh_unsettled), (5, 3, 3));
        assert_eq!(after.max_joint_gap, 1e-9); // that at the end
        let mut both = one;
        both.control.root_wrench = 1.0;
        both.beside(two);
        assert_eq!((both.substeps, both.contacts, both.flesh_unsettled), (3, 3, 3));
        assert_eq!((both.max_joint_gap, both.control.root_wrench), (5e-9, 1.0));
        let lost = Report { residual_before: f64::NAN, ..Report::default() };
        assert!(one.then(lost).then(two).residual_before.is_nan()); // no number is lost on the way
    }
}
