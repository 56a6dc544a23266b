//! The solvers: ways to move the same character. A closed set, so an enum.

pub mod assembly;
mod choice;
pub mod impulse;
pub mod reduced;
pub mod tree;

pub use assembly::Assembly;
pub use choice::Choice;
pub use impulse::Impulse;
pub use reduced::Reduced;

use crate::contact::{self, Penalty};
use crate::input::{Drive, FleshCoupling, Input};
use crate::maths::lanes::Instructions;
use crate::model::{Material, Model};
use crate::step::StepError;

/// The method of a step and its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// Implicit joint forces and implicit joint constraints in linear time [Hernández 2011].
    Tree(Tree),
    /// Joints held by impulses, found by prediction and correction [Bender 2006]. Takes loops.
    Impulse(Impulse),
    /// Joints held by displacements, found iteratively within a budget [Faure 1998]. Takes loops and broken poses.
    Assembly(Assembly),
    /// Recursive hybrid dynamics in joint coordinates [Kim 2008]. No joint can open.
    Reduced(Reduced),
}

impl Default for Solver {
    fn default() -> Self {
        Solver::Tree(Tree::default())
    }
}

impl Solver {
    /// The name used on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Solver::Tree(_) => "tree",
            Solver::Impulse(_) => "impulse",
            Solver::Assembly(_) => "assembly",
            Solver::Reduced(_) => "reduced",
        }
    }

    /// Every solver with its default settings.
    pub fn all() -> [Solver; 4] {
        [
            Solver::default(),
            Solver::Impulse(Impulse::default()),
            Solver::Assembly(Assembly::default()),
            Solver::Reduced(Reduced::default()),
        ]
    }

    /// Whether this solver can take the model with this input; otherwise the first part it cannot take, and what to do.
    pub fn takes(&self, model: &Model, input: &Input) -> Result<(), StepError> {
        let together = matches!(
            self,
            Solver::Tree(Tree { scheme: TreeScheme::Midpoint(_) | TreeScheme::Published, .. })
                | Solver::Reduced(_)
                | Solver::Impulse(Impulse { variant: impulse::Variant::System, .. })
                | Solver::Assembly(Assembly { scheme: assembly::Scheme::Displacements, .. })
        );
        if model.flesh().is_some() && !together && input.flesh == FleshCoupling::Together {
            let remedy = "use the solver with its default scheme or variant, which is solved together with flesh, or couple it loosely";
            return Err(StepError::Unsupported { solver: self.name(), part: "flesh".into(), remedy });
        }
        let usual = matches!(self, Solver::Tree(Tree { scheme: TreeScheme::Midpoint(_), .. }));
        let backward = matches!(self, Solver::Tree(Tree { scheme: TreeScheme::Published, .. }));
        if model.skin().is_some() && !(usual || backward) {
            let remedy = "use solver tree, which solves it together with bones";
            return Err(StepError::Unsupported { solver: self.name(), part: "skin".into(), remedy });
        }
        if model.skin().is_some() && !model.couplings().is_empty() {
            let remedy = "use joint springs or motors in their place, or a cage of flesh instead of skin";
            let part = format!("coupling \"{}\" beside skin", model.couplings()[0].name);
            return Err(StepError::Unsupported { solver: self.name(), part, remedy });
        }
        if !usual {
            no_couplings(self.name(), model)?;
        }
        reduced::command::takes(model, input)?;
        match self {
            Solver::Tree(settings) => tree::takes(model, input, *settings),
            Solver::Impulse(settings) => impulse::takes(model, input, *settings),
            Solver::Assembly(settings) => assembly::takes(model, input, *settings),
            Solver::Reduced(settings) => reduced::takes(model, input, *settings),
        }
    }

    /// What this solver lacks of the physics of the scene though it takes it, in words; a [`Run`](crate::Run) tells each once.
    pub fn lacks(&self, model: &Model, input: &Input) -> Option<&'static str> {
        let bounces = |material: &Material| material.restitution > 0.0;
        let bounces = contact::wanted(model, input)
            && (model.bodies().iter().any(|body| bounces(&body.material))
                || model.obstacles().iter().any(|obstacle| bounces(&obstacle.material)));
        let rolls = |material: &Material| material.rolling > 0.0;
        let resists = contact::wanted(model, input)
            && (model.bodies().iter().any(|body| rolls(&body.material))
                || model.obstacles().iter().any(|obstacle| rolls(&obstacle.material)));
        let has_rows = match self {
            Solver::Tree(Tree { scheme: TreeScheme::Midpoint(_), contacts: ContactLaw::OfScheme, .. }) => {
                model.skin().is_none()
            }
            _ => false,
        };
        match self {
            Solver::Assembly(_) if bounces => Some(
                "solver assembly has contacts without bounce, so that what would spring back stays: use solver tree or impulse",
            ),
            _ if resists && !has_rows => Some(
                "nothing resists rolling here, so that balls roll on for ever: use solver tree with its default scheme and contacts, without skin",
            ),
            _ => None,
        }
    }
}

/// Settings of solver `tree`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree {
    /// Which system is solved.
    pub scheme: TreeScheme,
    /// How often a part of a midpoint step may be halved, from 3 to 12: the bound on the work of a frame.
    pub depth: u32,
    /// Which instructions the kernels use.
    pub instructions: Instructions,
    /// Whether large trees are divided among threads; the bits are the same either way.
    pub threads: Threads,
    /// Whether the step also computes the joints' impulses, read by [`Work::joint_impulses`](crate::Work::joint_impulses).
    pub impulses: Impulses,
    /// How bodies push where they touch.
    pub contacts: ContactLaw,
}

/// How bodies push where they touch, in solver `tree`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ContactLaw {
    /// The default step by one-sided rows. The published one and its relatives have none: in them contacts are springs of the usual [`Penalty`].
    #[default]
    OfScheme,
    /// Springs, as published [Hernández 2011, §2].
    Penalty(Penalty),
}

impl Tree {
    /// A scheme with the usual settings.
    pub const fn new(scheme: TreeScheme) -> Tree {
        Tree {
            scheme,
            depth: 8,
            instructions: Instructions::Best,
            threads: Threads::One,
            impulses: Impulses::Skip,
            contacts: ContactLaw::OfScheme,
        }
    }

    /// The law of contacts that are springs; `None` when they are rows.
    pub fn penalty(&self) -> Option<Penalty> {
        match (self.contacts, self.scheme) {
            (ContactLaw::Penalty(law), _) => Some(law),
            (ContactLaw::OfScheme, TreeScheme::Midpoint(_)) => None,
            (ContactLaw::OfScheme, _) => Some(Penalty::default()),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Tree::new(TreeScheme::default())
    }
}

/// Which system solver `tree` solves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeScheme {
    /// The energy–momentum midpoint step: closed joints, bounded energy, second order, at frame size.
    Midpoint(Mode),
    /// The published step with symmetric blocks, in its fast form: one linearisation, one factorisation.
    Published,
    /// The published step with the exact, non-symmetric derivatives of the joint torques, by LDU of the KKT form.
    Exact,
    /// The explicit acceleration form that the paper improves on [Hernández 2011, §3.1; Baraff 1996], with stabilisation.
    Acceleration,
}

impl Default for TreeScheme {
    fn default() -> Self {
        TreeScheme::Midpoint(Mode::Default)
    }
}

/// How the midpoint step weighs accuracy against time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Parts may turn a joint by up to a radian. Contacts get few passes: joints are closed as exactly as ever, but bodies may enter one another by millimetres, and
    /// friction is right to a tenth of itself.
    Fast,
    /// Up to half a radian. Friction is right to a hundredth of itself.
    #[default]
    Default,
    /// Up to a quarter. Friction is right to a millionth of itself.
    Accurate,
    /// No damping of any kind is added; energy is kept while Newton's method holds. Costs most on fast, loose chains.
    Conservative,
}

/// One thread or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread alone.
    #[default]
    One,
    /// The threads of the current rayon pool.
    Many,
}

/// Whether joint impulses are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Impulses {
    /// No.
    #[default]
    Skip,
    /// Yes, at about a fifth of the step's time.
    Keep,
}

/// Refuses numbers that make no law of contacts.
pub(crate) fn check_penalty(solver: &'static str, law: Penalty) -> Result<(), StepError> {
    if law.is_sound() {
        return Ok(());
    }
    let what = "the stiffness or the slip of its contacts is not above 0".to_owned();
    Err(StepError::Input { part: format!("solver {solver}"), what })
}

/// Refuses grips, for the solvers that have no rows for them.
pub(crate) fn no_grips(solver: &'static str, model: &Model, input: &Input) -> Result<(), StepError> {
    match input.grips.first() {
        None => Ok(()),
        Some(grip) => Err(StepError::Unsupported {
            solver,
            part: format!("the grip on body \"{}\"", model.bodies().get(grip.body.index()).map_or("?", |b| &b.name)),
            remedy: "pull with a stiff drag instead, or use solver tree with its default scheme, impulse or assembly",
        }),
    }
}

/// Refuses joints that follow others, for the solvers that have no rows for them.
pub(crate) fn no_couplings(solver: &'static str, model: &Model) -> Result<(), StepError> {
    match model.couplings().first() {
        None => Ok(()),
        Some(coupling) => Err(StepError::Unsupported {
            solver,
            part: format!("coupling \"{}\"", coupling.name),
            remedy: "use solver tree with its default scheme",
        }),
    }
}

/// Refuses hard limits, for the solvers that have no one-sided rows for them.
pub(crate) fn no_hard_limits(solver: &'static str, model: &Model) -> Result<(), StepError> {
    match model.hard_limits().first() {
        None => Ok(()),
        Some(&id) => Err(StepError::Unsupported {
            solver,
            part: format!("the hard limits of joint \"{}\"", model.joint(id).name),
            remedy: "make them soft (Stops::Soft) and stiff, or use solver tree with its default scheme, or impulse",
        }),
    }
}

/// Refuses prescribed motions, for the solvers in which joints move by forces alone.
pub(crate) fn no_drives(solver: &'static str, model: &Model, input: &Input) -> Result<(), StepError> {
    let forced = input.joints.iter().zip(model.joints()).find(|(j, _)| j.drive != Drive::Forces);
    match forced {
        None => Ok(()),
        Some((_, joint)) => Err(StepError::Unsupported {
            solver,
            part: format!("the prescribed motion of joint \"{}\"", joint.name),
            remedy: "use a servo instead, or solver reduced or assembly",
        }),
    }
}
