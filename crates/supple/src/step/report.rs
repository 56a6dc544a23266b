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
    /// Contacts found, those still apart included; the most of any part.
    pub contacts: u32,
    /// Parts in which not all contacts settled to tolerance within the iterations allowed. Joints hold all the same.
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
    /// Impulses of joints and contacts at both ends of a drift: solver `tree` with contacts, hard limits, loops, couplings, grips or flesh.
    Rattle,
    /// Backward Euler of skin and skeleton together.
    Skin,
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
        StepRule::Skin,
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
            StepRule::Skin => "skin",
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

    /// Adds the same part of the step of other bodies: depths are the larger of both.
    pub(super) fn beside(self, other: Report) -> Report {
        let max_penetration = self.max_penetration.max(other.max_penetration);
        Report { max_penetration, ..self.then(other) }
    }

    /// Adds a later part of the same step: counts add up, gaps are those at the end.
    pub(crate) fn then(self, later: Report) -> Report {
        Report {
            substeps: self.substeps + later.substeps,
            factorisations: self.factorisations + later.factorisations,
            solves: self.solves + later.solves,
            fallbacks: self.fallbacks + later.fallbacks,
            rotation_halvings: self.rotation_halvings + later.rotation_halvings,
            backward_parts: self.backward_parts + later.backward_parts,
            resorts: self.resorts + later.resorts,
            stalled: self.stalled + later.stalled,
            projections: self.projections + later.projections,
            closed: self.closed.max(later.closed),
            velocity_corrections: self.velocity_corrections + later.velocity_corrections,
            limits_active: self.limits_active.max(later.limits_active),
            corrections: self.corrections + later.corrections,
            iterations: self.iterations + later.iterations,
            residual_before: self.residual_before.max(later.residual_before),
            flesh_newton: self.flesh_newton + later.flesh_newton,
            flesh_unsettled: self.flesh_unsettled + later.flesh_unsettled,
            trouble: Trouble::worse(self.trouble, later.trouble),
            contacts: self.contacts.max(later.contacts),
            unconverged: self.unconverged + later.unconverged,
            control: self.control.then(later.control),
            rules: self.rules.plus(later.rules),
            ..later
        }
    }
}
