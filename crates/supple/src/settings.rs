//! The settings of a run, described once: `--set`, scene files, takes, the studio's controls and the JSON schema read this table.
//!
//! A new setting is a field of its solver and a line here. Its default is what [`Input::default`] has, or the solver's own.

use crate::contact::{self, Penalty};
use crate::control;
use crate::flesh::Diagonalize;
use crate::input::{Contacts, FleshCoupling, Input};
use crate::maths::lanes::Instructions;
use crate::model::{Joint, Model};
use crate::servo;
use crate::skin::{SkinDynamics, SkinEquations, SkinMass, SkinResponse};
use crate::solver::assembly::{Cut, Linear, Scheme};
use crate::solver::impulse::{Elimination, Variant, VelocityCorrection};
use crate::solver::reduced::{Balance, Integration, Springs};
use crate::solver::tree::is_general;
use crate::solver::{Assembly, ContactLaw, Impulse, Impulses, Mode, Reduced, Solver, Threads, Tree, TreeScheme};
use glam::DVec3;

/// A setting of a run.
#[derive(Debug)]
pub struct Setting {
    /// `substeps`; of a solver with its name, `tree.depth`.
    pub key: &'static str,
    /// Empty where there is none.
    pub unit: &'static str,
    /// What it is, on one line.
    pub words: &'static str,
    /// Why it does nothing with this model and input; `None` when it does something.
    idle: fn(&Model, &Input) -> Option<&'static str>,
    field: Field,
}

/// What a setting may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A whole number between these, both included.
    Whole(u32, u32),
    /// A number between these, both included.
    Number(f64, f64),
    /// A number between these, or none at all: infinite, told as `off`.
    NumberOrOff(f64, f64),
    /// One of these words.
    Choice(Vec<&'static str>),
    /// Three numbers, none larger than this.
    Vector(f64),
}

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u32),
    /// A number; infinite where it is switched off.
    Number(f64),
    /// One of the words of [`Values::Choice`].
    Word(&'static str),
    /// Three numbers.
    Vector(DVec3),
}

#[derive(Debug)]
enum Field {
    Whole { least: u32, most: u32, get: fn(&Input) -> Option<u32>, set: fn(&mut Input, u32) },
    Number { least: f64, most: f64, off: bool, get: fn(&Input) -> Option<f64>, set: fn(&mut Input, f64) },
    Choice { word: fn(usize) -> Option<&'static str>, get: fn(&Input) -> Option<usize>, set: fn(&mut Input, usize) },
    Vector { most: f64, get: fn(&Input) -> DVec3, set: fn(&mut Input, DVec3) },
}

/// Gravity beyond this is taken for a mistake \[m/s²\].
pub const MAX_GRAVITY: f64 = 1000.0;
/// More parts of a step than this, too.
pub const MAX_SUBSTEPS: u32 = 1000;
/// And more sweeps of the skin's condensed solution.
pub const MAX_REFINEMENTS: u32 = 100;
/// How often a part of a step may be halved, at least and at most.
pub const DEPTH: [u32; 2] = [3, 12];
/// Lengths of a step \[s\]: below, time stands still beside rounding; above, nothing is a motion.
pub const DT: [f64; 2] = [1e-9, 1.0];

/// Every setting: those of any run, then by solver.
pub static SETTINGS: &[Setting] = &[
    number(("dt", "s"), (DT[0], DT[1]), |i| Some(i.dt), |i, x| i.dt = x, "length of a step"),
    whole("substeps", (1, MAX_SUBSTEPS), |i| Some(i.substeps), |i, n| i.substeps = n, "parts of a step"),
    Setting {
        key: "gravity",
        unit: "m/s²",
        words: "gravity",
        idle: never,
        field: Field::Vector { most: MAX_GRAVITY, get: |i| i.gravity, set: |i, g| i.gravity = g },
    },
    number(
        ("stiffness_scale", ""),
        (0.0, 1e6),
        |i| Some(i.stiffness_scale),
        |i, x| i.stiffness_scale = x,
        "multiplies the stiffness of every joint spring and motor",
    )
    .unless(without_springs),
    number(
        ("damping_scale", ""),
        (0.0, 1e6),
        |i| Some(i.damping_scale),
        |i, x| i.damping_scale = x,
        "multiplies the damping of every joint spring and motor",
    )
    .unless(without_springs),
    choice(
        "torques",
        |k| word(&SWITCH, k),
        |i| place(&SWITCH, i.torques),
        |i, k| i.torques = SWITCH[k].1,
        "whether joint springs, dampers and motors act",
    )
    .unless(without_springs),
    choice(
        "contacts",
        |k| word(&CONTACTS, k),
        |i| place(&CONTACTS, i.contacts),
        |i, k| i.contacts = CONTACTS[k].1,
        "what touches what: nothing, bodies and what stands around, or bodies each other too",
    ),
    choice(
        "sleep",
        |k| word(&SWITCH, k),
        |i| place(&SWITCH, i.sleep),
        |i, k| i.sleep = SWITCH[k].1,
        "whether bodies that have been at rest for half a second stand still until something asks or touches them",
    )
    .unless(|model, i| match i.control.mode {
        control::Mode::Off => servo::any_integral(model).then_some("servos that integrate do not sleep"),
        _ => Some("a directed character does not sleep"),
    }),
    choice(
        "flesh",
        |k| word(&FLESH, k),
        |i| place(&FLESH, i.flesh),
        |i, k| i.flesh = FLESH[k].1,
        "flesh and bones solved together, or bones first and flesh after them",
    )
    .unless(without_flesh),
    whole(
        "skin.refinements",
        (0, MAX_REFINEMENTS),
        |i| Some(i.skin.refinements),
        |i, n| i.skin.refinements = n,
        "sweeps that bring the condensed solution nearer to the true one; 0 as published",
    )
    .unless(without_skin),
    choice(
        "skin.response",
        |k| word(&RESPONSES, k),
        |i| place(&RESPONSES, i.skin.response),
        |i, k| i.skin.response = RESPONSES[k].1,
        "how contacts of skin answer",
    )
    .unless(without_skin),
    choice(
        "skin.mass",
        |k| word(&MASSES, k),
        |i| place(&MASSES, i.skin.mass),
        |i, k| i.skin.mass = MASSES[k].1,
        "the mass matrix of bones under skin, with or without the blocks of bones that share vertices",
    )
    .unless(without_skin),
    choice(
        "skin.equations",
        |k| word(&EQUATIONS, k),
        |i| place(&EQUATIONS, i.skin.equations),
        |i, k| i.skin.equations = EQUATIONS[k].1,
        "how the matrix of the skin is solved",
    )
    .unless(without_skin),
    choice(
        "skin.dynamics",
        |k| word(&DYNAMICS, k),
        |i| place(&DYNAMICS, i.skin.dynamics),
        |i, k| i.skin.dynamics = DYNAMICS[k].1,
        "whether the surface moves beside the bones, or is carried by them",
    )
    .unless(without_skin),
    choice(
        "tree.scheme",
        |k| word(&SCHEMES, k),
        |i| place(&SCHEMES, tree(i)?.scheme),
        |i, k| with_tree(i, |tree| tree.scheme = SCHEMES[k].1),
        "the step: the default one in its modes, then the published one and its relatives",
    ),
    whole(
        "tree.depth",
        (DEPTH[0], DEPTH[1]),
        |i| Some(tree(i)?.depth),
        |i, n| with_tree(i, |tree| tree.depth = n),
        "how often a part of a step may be halved",
    )
    .unless(without_halves),
    choice(
        "tree.threads",
        |k| word(&THREADS, k),
        |i| place(&THREADS, tree(i)?.threads),
        |i, k| with_tree(i, |tree| tree.threads = THREADS[k].1),
        "whether large trees are divided among threads: the time changes, no bit does",
    )
    .unless(|model, i| match tree(i)?.scheme {
        TreeScheme::Published => with_skin(model),
        _ => Some("this scheme divides no tree among threads: give tree.scheme=published"),
    }),
    choice(
        "tree.instructions",
        |k| word(&INSTRUCTIONS, k),
        |i| place(&INSTRUCTIONS, tree(i)?.instructions),
        |i, k| with_tree(i, |tree| tree.instructions = INSTRUCTIONS[k].1),
        "the best instructions of the machine, or those that every machine has and rounds alike",
    )
    .unless(without_kernels),
    choice(
        "tree.impulses",
        |k| word(&IMPULSES, k),
        |i| place(&IMPULSES, tree(i)?.impulses),
        |i, k| with_tree(i, |tree| tree.impulses = IMPULSES[k].1),
        "whether joint loads are computed too; no bit of the motion changes",
    ),
    choice(
        "tree.contacts",
        |k| word(&LAWS, k),
        |i| Some(usize::from(matches!(tree(i)?.contacts, ContactLaw::Penalty(_)))),
        |i, k| with_tree(i, |tree| tree.contacts = if k == 0 { ContactLaw::OfScheme } else { springs_of(tree) }),
        "how bodies push where they touch: as the scheme does, or by springs",
    )
    .unless(|model, i| match tree(i)?.scheme {
        _ if model.skin().is_some() => with_skin(model),
        TreeScheme::Midpoint(_) => without_contacts(model, i),
        _ => Some("contacts are springs in this scheme anyway"),
    }),
    number(
        ("tree.contact_stiffness", "N/m"),
        STIFFNESS,
        |i| Some(tree(i)?.penalty()?.stiffness),
        |i, x| with_tree(i, |t| t.contacts = ContactLaw::Penalty(Penalty { stiffness: x, ..penalty_of(t) })),
        "stiffness of contacts that are springs",
    )
    .unless(without_contact_springs),
    number(
        ("tree.contact_slip", "m/s"),
        SLIP,
        |i| Some(tree(i)?.penalty()?.slip),
        |i, x| with_tree(i, |t| t.contacts = ContactLaw::Penalty(Penalty { slip: x, ..penalty_of(t) })),
        "speed below which the friction of contacts that are springs is viscous",
    )
    .unless(without_contact_springs),
    choice(
        "impulse.variant",
        |k| word(&VARIANTS, k),
        |i| place(&VARIANTS, impulse(i)?.variant),
        |i, k| with_impulse(i, |impulse| impulse.variant = VARIANTS[k].1),
        "how the impulses of an iteration are found",
    ),
    choice(
        "impulse.elimination",
        |k| word(&ELIMINATIONS, k),
        |i| place(&ELIMINATIONS, impulse(i)?.elimination),
        |i, k| with_impulse(i, |impulse| impulse.elimination = ELIMINATIONS[k].1),
        "which matrix the system variant factors",
    )
    .unless(|model, i| match impulse(i)?.variant {
        Variant::JointByJoint => Some("impulse.variant=joint_by_joint factors no matrix"),
        _ => with_soft_forces(model, i).map(|_| "with springs, motors or flesh the matrix is that of the bodies"),
    }),
    number(
        ("impulse.tolerance", "m, rad"),
        TOLERANCE,
        |i| Some(impulse(i)?.tolerance),
        |i, x| with_impulse(i, |impulse| impulse.tolerance = x),
        "how far a joint may be open after a step",
    ),
    number(
        ("impulse.velocity_tolerance", "m/s, rad/s"),
        TOLERANCE,
        |i| Some(impulse(i)?.velocity_tolerance),
        |i, x| with_impulse(i, |impulse| impulse.velocity_tolerance = x),
        "how fast a joint may open after a step",
    )
    .unless(|_, i| match impulse(i)?.velocity_correction {
        VelocityCorrection::On => None,
        VelocityCorrection::Off => Some("velocities are not corrected: set impulse.velocity_correction=on"),
    }),
    choice(
        "impulse.velocity_correction",
        |k| word(&CORRECTIONS, k),
        |i| place(&CORRECTIONS, impulse(i)?.velocity_correction),
        |i, k| with_impulse(i, |impulse| impulse.velocity_correction = CORRECTIONS[k].1),
        "whether velocities are corrected after a step",
    )
    .unless(|model, i| {
        with_soft_forces(model, i).map(|_| "with springs, motors or flesh velocities are corrected anyway")
    }),
    whole(
        "impulse.iterations",
        ITERATIONS,
        |i| Some(impulse(i)?.iterations),
        |i, n| with_impulse(i, |impulse| impulse.iterations = n),
        "corrections before a part is given up and halved",
    ),
    choice(
        "assembly.scheme",
        |k| word(&ASSEMBLY_SCHEMES, k),
        |i| place(&ASSEMBLY_SCHEMES, assembly(i)?.scheme),
        |i, k| with_assembly(i, |assembly| assembly.scheme = ASSEMBLY_SCHEMES[k].1),
        "what is integrated and how drift is kept away",
    ),
    whole(
        "assembly.outer",
        ITERATIONS,
        |i| Some(assembly(i)?.outer),
        |i, n| with_assembly(i, |assembly| assembly.outer = n),
        "linearisations of a step, at most",
    )
    .unless(without_corrections),
    whole(
        "assembly.inner",
        ITERATIONS,
        |i| Some(assembly(i)?.inner),
        |i, n| with_assembly(i, |assembly| assembly.inner = n),
        "iterations of the linear solver in each, at most",
    ),
    number(
        ("assembly.tolerance", "m, rad"),
        TOLERANCE,
        |i| Some(assembly(i)?.tolerance),
        |i, x| with_assembly(i, |assembly| assembly.tolerance = x),
        "the corrections end when no joint is farther open",
    )
    .unless(without_corrections),
    number_or_off(
        ("assembly.truncation", "rad"),
        (1e-6, 10.0),
        |i| Some(assembly(i)?.truncation),
        |i, x| with_assembly(i, |assembly| assembly.truncation = x),
        "largest rotation of a correction, or off",
    )
    .unless(without_corrections),
    choice(
        "assembly.cut",
        |k| word(&CUTS, k),
        |i| place(&CUTS, assembly(i)?.cut),
        |i, k| with_assembly(i, |assembly| assembly.cut = CUTS[k].1),
        "what keeps corrections from turning too far",
    )
    .unless(|model, i| match assembly(i)?.truncation.is_finite() {
        true => without_corrections(model, i),
        false => Some("no correction is cut while assembly.truncation=off"),
    }),
    choice(
        "assembly.linear",
        |k| word(&LINEARS, k),
        |i| place(&LINEARS, assembly(i)?.linear),
        |i, k| with_assembly(i, |assembly| assembly.linear = LINEARS[k].1),
        "how the linear systems are solved",
    ),
    choice(
        "reduced.springs",
        |k| word(&SPRINGS, k),
        |i| place(&SPRINGS, reduced(i)?.springs),
        |i, k| with_reduced(i, |reduced| reduced.springs = SPRINGS[k].1),
        "how springs, dampers and pulls enter",
    ),
    choice(
        "reduced.integration",
        |k| word(&INTEGRATIONS, k),
        |i| place(&INTEGRATIONS, reduced(i)?.integration),
        |i, k| with_reduced(i, |reduced| reduced.integration = INTEGRATIONS[k].1),
        "how the coordinates are moved",
    ),
    choice(
        "reduced.balance",
        |k| word(&BALANCES, k),
        |i| place(&BALANCES, reduced(i)?.balance),
        |i, k| with_reduced(i, |reduced| reduced.balance = BALANCES[k].1),
        "whether energy and momentum are balanced after each part",
    )
    .unless(|model, _| model.flesh().map(|_| "nothing is balanced with flesh")),
    number(
        ("reduced.contact_stiffness", "N/m"),
        STIFFNESS,
        |i| Some(reduced(i)?.contacts.stiffness),
        |i, x| with_reduced(i, |reduced| reduced.contacts.stiffness = x),
        "stiffness of contacts, which are springs here",
    )
    .unless(without_contacts),
    number(
        ("reduced.contact_slip", "m/s"),
        SLIP,
        |i| Some(reduced(i)?.contacts.slip),
        |i, x| with_reduced(i, |reduced| reduced.contacts.slip = x),
        "speed below which their friction is viscous",
    )
    .unless(without_contacts),
    choice(
        "reduced.diagonalize",
        |k| word(&DIAGONALIZE, k),
        |i| place(&DIAGONALIZE, reduced(i)?.diagonalize),
        |i, k| with_reduced(i, |reduced| reduced.diagonalize = DIAGONALIZE[k].1),
        "which elements of flesh are diagonalised",
    )
    .unless(without_flesh),
];

const TOLERANCE: (f64, f64) = (1e-12, 1.0);
const STIFFNESS: (f64, f64) = (1.0, 1e8);
const SLIP: (f64, f64) = (1e-6, 1.0);
const ITERATIONS: (u32, u32) = (1, 10_000);

const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];
const CONTACTS: [(&str, Contacts); 3] =
    [("off", Contacts::Off), ("obstacles", Contacts::Obstacles), ("all", Contacts::All)];
const FLESH: [(&str, FleshCoupling); 2] = [("together", FleshCoupling::Together), ("loose", FleshCoupling::Loose)];
const RESPONSES: [(&str, SkinResponse); 2] =
    [("complementary", SkinResponse::Complementary), ("published", SkinResponse::Published)];
const MASSES: [(&str, SkinMass); 2] = [("full", SkinMass::Full), ("block_diagonal", SkinMass::BlockDiagonal)];
const EQUATIONS: [(&str, SkinEquations); 2] =
    [("factored", SkinEquations::Factored), ("conjugate_gradients", SkinEquations::ConjugateGradients)];
const DYNAMICS: [(&str, SkinDynamics); 2] = [("soft", SkinDynamics::Soft), ("carried", SkinDynamics::Carried)];
const SCHEMES: [(&str, TreeScheme); 7] = [
    ("fast", TreeScheme::Midpoint(Mode::Fast)),
    ("default", TreeScheme::Midpoint(Mode::Default)),
    ("accurate", TreeScheme::Midpoint(Mode::Accurate)),
    ("conservative", TreeScheme::Midpoint(Mode::Conservative)),
    ("published", TreeScheme::Published),
    ("exact", TreeScheme::Exact),
    ("acceleration", TreeScheme::Acceleration),
];
const THREADS: [(&str, Threads); 2] = [("one", Threads::One), ("many", Threads::Many)];
const INSTRUCTIONS: [(&str, Instructions); 2] = [("best", Instructions::Best), ("baseline", Instructions::Baseline)];
const IMPULSES: [(&str, Impulses); 2] = [("skip", Impulses::Skip), ("keep", Impulses::Keep)];
const LAWS: [(&str, ()); 2] = [("of_scheme", ()), ("penalty", ())];
const VARIANTS: [(&str, Variant); 3] =
    [("system", Variant::System), ("joint_by_joint", Variant::JointByJoint), ("split_loops", Variant::SplitLoops)];
const ELIMINATIONS: [(&str, Elimination); 3] =
    [("automatic", Elimination::Automatic), ("joints", Elimination::Joints), ("bodies", Elimination::Bodies)];
const CORRECTIONS: [(&str, VelocityCorrection); 2] = [("on", VelocityCorrection::On), ("off", VelocityCorrection::Off)];
const ASSEMBLY_SCHEMES: [(&str, Scheme); 4] = [
    ("displacements", Scheme::Displacements),
    ("projected", Scheme::Projected),
    ("baumgarte", Scheme::Baumgarte),
    ("posing", Scheme::Posing),
];
const CUTS: [(&str, Cut); 3] = [("resisted", Cut::Resisted), ("each_body", Cut::EachBody), ("whole", Cut::Whole)];
const LINEARS: [(&str, Linear); 3] =
    [("factored", Linear::Factored), ("plain", Linear::Plain), ("biconjugate", Linear::Biconjugate)];
const SPRINGS: [(&str, Springs); 2] = [("implicit", Springs::Implicit), ("explicit", Springs::Explicit)];
const INTEGRATIONS: [(&str, Integration); 2] = [("euler", Integration::Euler), ("midpoint", Integration::Midpoint)];
const BALANCES: [(&str, Balance); 2] = [("on", Balance::On), ("off", Balance::Off)];
const DIAGONALIZE: [(&str, Diagonalize); 2] = [("selective", Diagonalize::Selective), ("always", Diagonalize::Always)];

const fn whole(
    key: &'static str,
    (least, most): (u32, u32),
    get: fn(&Input) -> Option<u32>,
    set: fn(&mut Input, u32),
    words: &'static str,
) -> Setting {
    Setting { key, unit: "", words, idle: never, field: Field::Whole { least, most, get, set } }
}

const fn number(
    (key, unit): (&'static str, &'static str),
    (least, most): (f64, f64),
    get: fn(&Input) -> Option<f64>,
    set: fn(&mut Input, f64),
    words: &'static str,
) -> Setting {
    Setting { key, unit, words, idle: never, field: Field::Number { least, most, off: false, get, set } }
}

const fn number_or_off(
    (key, unit): (&'static str, &'static str),
    (least, most): (f64, f64),
    get: fn(&Input) -> Option<f64>,
    set: fn(&mut Input, f64),
    words: &'static str,
) -> Setting {
    Setting { key, unit, words, idle: never, field: Field::Number { least, most, off: true, get, set } }
}

const fn choice(
    key: &'static str,
    word: fn(usize) -> Option<&'static str>,
    get: fn(&Input) -> Option<usize>,
    set: fn(&mut Input, usize),
    words: &'static str,
) -> Setting {
    Setting { key, unit: "", words, idle: never, field: Field::Choice { word, get, set } }
}

fn word<T>(list: &[(&'static str, T)], k: usize) -> Option<&'static str> {
    list.get(k).map(|entry| entry.0)
}

fn place<T: PartialEq>(list: &[(&'static str, T)], value: T) -> Option<usize> {
    list.iter().position(|entry| entry.1 == value)
}

fn tree(input: &Input) -> Option<&Tree> {
    if let Solver::Tree(tree) = &input.solver { Some(tree) } else { None }
}
fn impulse(input: &Input) -> Option<&Impulse> {
    if let Solver::Impulse(impulse) = &input.solver { Some(impulse) } else { None }
}
fn assembly(input: &Input) -> Option<&Assembly> {
    if let Solver::Assembly(assembly) = &input.solver { Some(assembly) } else { None }
}
fn reduced(input: &Input) -> Option<&Reduced> {
    if let Solver::Reduced(reduced) = &input.solver { Some(reduced) } else { None }
}
fn with_tree(input: &mut Input, change: impl FnOnce(&mut Tree)) {
    if let Solver::Tree(tree) = &mut input.solver {
        change(tree);
    }
}
fn with_impulse(input: &mut Input, change: impl FnOnce(&mut Impulse)) {
    if let Solver::Impulse(impulse) = &mut input.solver {
        change(impulse);
    }
}
fn with_assembly(input: &mut Input, change: impl FnOnce(&mut Assembly)) {
    if let Solver::Assembly(assembly) = &mut input.solver {
        change(assembly);
    }
}
fn with_reduced(input: &mut Input, change: impl FnOnce(&mut Reduced)) {
    if let Solver::Reduced(reduced) = &mut input.solver {
        change(reduced);
    }
}
fn penalty_of(tree: &Tree) -> Penalty {
    tree.penalty().unwrap_or_default()
}
fn springs_of(tree: &Tree) -> ContactLaw {
    ContactLaw::Penalty(penalty_of(tree))
}

// Why settings do nothing.
fn never(_: &Model, _: &Input) -> Option<&'static str> {
    None
}
fn without_springs(model: &Model, _: &Input) -> Option<&'static str> {
    let acts = |joint: &Joint| {
        let (turn, slide) = (joint.rotation_spring, joint.slide_spring);
        joint.motor.is_some()
            || [turn.stiffness, turn.damping, slide.stiffness, slide.damping].iter().any(|x| *x != 0.0)
    };
    (!model.joints().iter().any(acts)).then_some("no joint of the scene has a spring, a damper or a motor")
}
/// Whether anything is implicit in solver `impulse`.
fn with_soft_forces(model: &Model, input: &Input) -> Option<()> {
    (model.flesh().is_some() || (input.torques && without_springs(model, input).is_none())).then_some(())
}
/// Soft skin and its bones are solved by a rule of their own, whatever the scheme.
fn with_skin(model: &Model) -> Option<&'static str> {
    model.skin().is_some().then_some("soft skin and its bones are solved together in a way that knows no such setting")
}
/// Only the default step halves its parts, and only while it has no rows from the model: those are halved by what runs it.
fn without_halves(model: &Model, input: &Input) -> Option<&'static str> {
    match tree(input)?.scheme {
        _ if model.skin().is_some() => with_skin(model),
        TreeScheme::Midpoint(_) => is_general(model, input)
            .then_some("loops, couplings, grips and flesh are solved without halving parts in this way"),
        _ => Some("this scheme halves nothing by itself: give tree.scheme=default"),
    }
}
/// Where every operation is of the kind that all machines have: in the matrices of the bodies, and in the robust way of a tree.
fn without_kernels(model: &Model, input: &Input) -> Option<&'static str> {
    let is_plain = match tree(input)?.scheme {
        _ if model.skin().is_some() => return with_skin(model),
        TreeScheme::Exact | TreeScheme::Acceleration => model.flesh().is_none(),
        TreeScheme::Midpoint(Mode::Conservative) => {
            let has_rows = is_general(model, input) || contact::wanted(model, input);
            !has_rows && model.flesh().is_none() && model.hard_limits().is_empty()
        }
        _ => false,
    };
    is_plain
        .then_some("this scheme computes with the same instructions everywhere: give tree.scheme=default or published")
}
fn without_flesh(model: &Model, _: &Input) -> Option<&'static str> {
    model.flesh().is_none().then_some("the scene has no flesh")
}
fn without_skin(model: &Model, _: &Input) -> Option<&'static str> {
    model.skin().is_none().then_some("the scene has no soft skin")
}
fn without_contacts(model: &Model, input: &Input) -> Option<&'static str> {
    (!contact::wanted(model, input)).then_some("nothing of the scene touches anything: give contacts=all, or obstacles")
}
fn without_contact_springs(model: &Model, input: &Input) -> Option<&'static str> {
    match tree(input)?.penalty() {
        Some(_) if model.skin().is_some() => with_skin(model),
        Some(_) => without_contacts(model, input),
        None => Some("contacts are no springs: give tree.contacts=penalty first"),
    }
}
fn without_corrections(_: &Model, input: &Input) -> Option<&'static str> {
    match assembly(input)?.scheme {
        Scheme::Displacements | Scheme::Posing => None,
        _ => Some("this scheme does not correct joints again and again: give assembly.scheme=displacements"),
    }
}

impl Setting {
    const fn unless(mut self, idle: fn(&Model, &Input) -> Option<&'static str>) -> Setting {
        self.idle = idle;
        self
    }

    /// The setting of this key, or of a solver that has it as its last word.
    pub fn find(key: &str, solver: &Solver) -> Option<&'static Setting> {
        let of_solver = |s: &&Setting| s.owner() == Some(solver.name()) && s.last_word() == key;
        SETTINGS.iter().find(|setting| setting.key == key).or_else(|| SETTINGS.iter().find(of_solver))
    }

    /// The solver whose setting it is; `None` for those of any run.
    pub fn owner(&self) -> Option<&'static str> {
        let (owner, _) = self.key.split_once('.')?;
        (owner != "skin").then_some(owner)
    }

    /// The key without the solver.
    pub fn last_word(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// What it may be.
    pub fn values(&self) -> Values {
        match self.field {
            Field::Whole { least, most, .. } => Values::Whole(least, most),
            Field::Number { least, most, off: false, .. } => Values::Number(least, most),
            Field::Number { least, most, off: true, .. } => Values::NumberOrOff(least, most),
            Field::Choice { word, .. } => Values::Choice((0..).map_while(word).collect()),
            Field::Vector { most, .. } => Values::Vector(most),
        }
    }

    /// The value that an input has; `None` while another solver runs, or where there is none.
    pub fn get(&self, input: &Input) -> Option<Value> {
        match self.field {
            Field::Whole { get, .. } => get(input).map(Value::Whole),
            Field::Number { get, .. } => get(input).map(Value::Number),
            Field::Choice { get, word, .. } => get(input).and_then(word).map(Value::Word),
            Field::Vector { get, .. } => Some(Value::Vector(get(input))),
        }
    }

    /// The value it has unless told; `None` where there is none.
    pub fn default_value(&self) -> Option<Value> {
        let solver = Solver::all().into_iter().find(|solver| self.owner() == Some(solver.name()));
        self.get(&Input { solver: solver.unwrap_or_default(), ..Input::default() })
    }

    /// Whether it can be this.
    pub fn takes(&self, value: Value) -> bool {
        match (self.values(), value) {
            (Values::Whole(least, most), Value::Whole(n)) => (least..=most).contains(&n),
            (Values::Number(least, most), Value::Number(x)) => (least..=most).contains(&x),
            (Values::NumberOrOff(least, most), Value::Number(x)) => (least..=most).contains(&x) || x == f64::INFINITY,
            (Values::Choice(words), Value::Word(word)) => words.contains(&word),
            (Values::Vector(most), Value::Vector(v)) => v.is_finite() && v.abs().max_element() <= most,
            _ => false,
        }
    }

    /// Changes an input, if the value can be. Says nothing of whether it does anything: ask [`Setting::idle`].
    #[must_use]
    pub fn set(&self, input: &mut Input, value: Value) -> bool {
        if !self.takes(value) {
            return false;
        }
        self.put(input, value);
        true
    }

    /// One of its words as a value.
    pub fn word(&self, told: &str) -> Option<Value> {
        let Values::Choice(words) = self.values() else { return None };
        words.into_iter().find(|word| *word == told).map(Value::Word)
    }

    /// Changes an input, whatever the range is: takes carry what an API may have set.
    pub(crate) fn put(&self, input: &mut Input, value: Value) {
        match (&self.field, value) {
            (Field::Whole { set, .. }, Value::Whole(n)) => set(input, n),
            (Field::Number { set, .. }, Value::Number(x)) => set(input, x),
            (Field::Choice { set, word, .. }, Value::Word(w)) => {
                if let Some(k) = (0..).map_while(word).position(|own| own == w) {
                    set(input, k);
                }
            }
            (Field::Vector { set, .. }, Value::Vector(v)) => set(input, v),
            _ => {}
        }
    }

    /// Why the setting does nothing with this model and input, as it is now: it is refused then.
    pub fn idle(&self, model: &Model, input: &Input) -> Option<String> {
        if let Some(owner) = self.owner()
            && owner != input.solver.name()
        {
            return Some(format!("it is a setting of solver {owner}, and {} runs", input.solver.name()));
        }
        (self.idle)(model, input).map(str::to_owned)
    }

    /// The value of a text such as `0.5`, `1/60`, `off`, `0,-9.81,0`; gravity may be one number, downwards. `None` when it can be none.
    pub fn parse(&self, text: &str) -> Option<Value> {
        let value = match self.values() {
            Values::Whole(..) => Value::Whole(text.parse().ok()?),
            Values::NumberOrOff(..) if text == "off" => Value::Number(f64::INFINITY),
            Values::Number(..) | Values::NumberOrOff(..) => Value::Number(parse_number(text)?),
            Values::Choice(_) => self.word(text)?,
            Values::Vector(_) => {
                let numbers: Vec<f64> = text.split(',').map(parse_number).collect::<Option<_>>()?;
                Value::Vector(match numbers[..] {
                    [down] => DVec3::new(0.0, -down, 0.0),
                    [x, y, z] => DVec3::new(x, y, z),
                    _ => return None,
                })
            }
        };
        self.takes(value).then_some(value)
    }

    /// What it may be, in words: `a whole number from 3 to 12`.
    pub fn range_words(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.values() {
            Values::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Values::Number(least, most) => format!("{} to {}{unit}", plain(least), plain(most)),
            Values::NumberOrOff(least, most) => format!("{} to {}{unit}, or off", plain(least), plain(most)),
            Values::Choice(words) => match words.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => words.join(""),
            },
            Values::Vector(most) => {
                format!("one number, downwards, or three, x,y,z, each within {}{unit}", plain(most))
            }
        }
    }
}

/// A number as people write it, as short as it can be without loss: `0.5`, `1000`, `1e-9`, `1e308`, which has 309 digits otherwise.
pub fn plain(x: f64) -> String {
    let text = format!("{x:?}"); // the standard library's rule of when a power of ten is written
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A finite number: `0.5`, `1e-3`, or a fraction of two: `1/60`.
pub fn parse_number(text: &str) -> Option<f64> {
    let plain = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.split_once('/') {
        Some((over, under)) => plain(over)? / plain(under)?,
        None => plain(text)?,
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skin::SkinSettings;

    /// A field that is added to an input or a solver is named here, and in the table above.
    #[test]
    fn every_field_has_a_key() {
        let Input {
            dt: _,
            substeps: _,
            gravity: _,
            stiffness_scale: _,
            damping_scale: _,
            torques: _,
            contacts: _,
            sleep: _,
            flesh: _,
            skin: _,
            solver: _,
            // what a user does, from step to step
            joints: _,
            targets: _,
            strengths: _,
            drags: _,
            grips: _,
            wrenches: _,
            balls: _,
            grabs: _,
            obstacles: _,
            control: _,
        } = Input::default();
        let SkinSettings { refinements: _, response: _, mass: _, equations: _, dynamics: _ } = SkinSettings::default();
        let Tree { scheme: _, depth: _, threads: _, instructions: _, impulses: _, contacts: _ } = Tree::default();
        let Impulse {
            variant: _,
            elimination: _,
            tolerance: _,
            velocity_tolerance: _,
            velocity_correction: _,
            iterations: _,
        } = Impulse::default();
        let Assembly { scheme: _, outer: _, inner: _, tolerance: _, truncation: _, cut: _, linear: _ } =
            Assembly::default();
        let Reduced {
            springs: _,
            integration: _,
            balance: _,
            contacts: Penalty { stiffness: _, slip: _ },
            diagonalize: _,
        } = Reduced::default();
        let of = |owner: Option<&str>| SETTINGS.iter().filter(|s| s.owner() == owner).count();
        let counts = [None, Some("tree"), Some("impulse"), Some("assembly"), Some("reduced")].map(of);
        assert_eq!(counts, [9 + 5, 6 + 2, 6, 7, 4 + 2]); // with the two numbers of contacts that are springs
    }

    #[test]
    fn every_setting_can_be_set_to_another_value_and_told() {
        for setting in SETTINGS {
            let solver = Solver::all().into_iter().find(|solver| setting.owner() == Some(solver.name()));
            let mut input = Input { solver: solver.unwrap_or_default(), ..Input::default() };
            if setting.key.starts_with("tree.contact_") {
                assert!(Setting::find("tree.contacts", &input.solver).unwrap().set(&mut input, Value::Word("penalty")));
            }
            let before = setting.get(&input).expect(setting.key);
            assert!(setting.takes(before), "{}", setting.key);
            let other = match (setting.values(), before) {
                (Values::Whole(least, most), Value::Whole(n)) => Value::Whole(if n == least { most } else { least }),
                (Values::Choice(words), word) => {
                    Value::Word(words.into_iter().find(|w| Value::Word(w) != word).expect("there is a choice"))
                }
                (Values::Number(least, _) | Values::NumberOrOff(least, _), _) if before != Value::Number(least) => {
                    Value::Number(least)
                }
                (Values::Number(_, most) | Values::NumberOrOff(_, most), _) => Value::Number(most),
                (Values::Vector(most), _) => Value::Vector(DVec3::new(most, 0.0, -most)),
                (values, value) => panic!("{}: {values:?} {value:?}", setting.key),
            };
            assert!(setting.set(&mut input, other), "{}", setting.key);
            assert_eq!(setting.get(&input), Some(other), "{}", setting.key);
            assert!(!setting.set(&mut input, Value::Number(f64::NAN)), "{}", setting.key);
            assert_eq!(setting.parse("nonsense"), None, "{}", setting.key);
        }
    }
}
