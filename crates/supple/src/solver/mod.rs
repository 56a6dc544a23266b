//! The solvers: ways to move the same character. A closed set, so an enum.

pub mod tree;

use crate::maths::lanes::Instructions;

/// The method of a step and its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// Implicit joint forces and implicit joint constraints in linear time [Hernández 2011].
    Tree(Tree),
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
}

impl Default for Tree {
    fn default() -> Self {
        Tree {
            scheme: TreeScheme::default(),
            depth: 8,
            instructions: Instructions::Best,
            threads: Threads::One,
            impulses: Impulses::Skip,
        }
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
    /// Parts may turn a joint by up to a radian.
    Fast,
    /// Up to half a radian.
    #[default]
    Default,
    /// Up to a quarter.
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
