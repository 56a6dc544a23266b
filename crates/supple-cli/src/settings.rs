//! Values given on the command line: lengths of time such as `1/60`, `--set key=value`, and the options of every run.

use crate::error::{Error, nearest};
use crate::table::{given, grouped};
use clap::{Args, ValueEnum};
use serde::Serialize;
use supple::glam::DVec3;
use supple::maths::lanes::Instructions;
use supple::solver::assembly::{Budget, Cut, Linear, Scheme};
use supple::solver::impulse::{Elimination, Variant, VelocityCorrection};
use supple::solver::reduced::{Balance, Integration, Springs};
use supple::solver::{Mode, Threads};
use supple::{ContactLaw, Contacts, Diagonalize, Input, Penalty, Scene, Solver, Tree, TreeScheme};

/// How a scene is run.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Length of a step in seconds, as a number or a fraction [default: the scene's own, 1/60 unless it says otherwise]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    dt: Option<String>,
    /// The method [default: the scene's own, tree unless it says otherwise]
    #[arg(long, value_name = "NAME")]
    solver: Option<SolverName>,
    #[arg(long, value_name = "KEY=VALUE", help = "Change a setting of the run; may be given again", long_help = keys_help())]
    set: Vec<String>,
}

/// The solvers by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SolverName {
    /// Implicit joint forces and constraints in linear time
    Tree,
    /// Joints held by impulses, loops included
    Impulse,
    /// Joints held by displacements within a budget, loops and broken poses included
    Assembly,
    /// Recursive dynamics in joint coordinates
    Reduced,
}

impl SolverName {
    /// The scene's own settings of this solver, or the default ones.
    fn settings(self, scene: Solver) -> Solver {
        let default = match self {
            SolverName::Tree => Solver::Tree(Default::default()),
            SolverName::Impulse => Solver::Impulse(Default::default()),
            SolverName::Assembly => Solver::Assembly(Default::default()),
            SolverName::Reduced => Solver::Reduced(Default::default()),
        };
        if scene.name() == default.name() { scene } else { default }
    }
}

impl RunArgs {
    /// The scene's input with the options in it.
    pub(crate) fn input(&self, scene: &Scene) -> Result<Input, Error> {
        let mut input = scene.input.clone();
        if let Some(solver) = self.solver {
            input.solver = solver.settings(input.solver);
        }
        if let Some(text) = &self.dt {
            input.dt = dt(text)?;
        }
        for text in &self.set {
            set(&mut input, text)?;
        }
        Ok(input)
    }

    /// Refuses options that a take has no use for.
    pub(crate) fn refuse_for_take(&self) -> Result<(), Error> {
        if self.dt.is_none() && self.set.is_empty() && self.solver.is_none() {
            return Ok(());
        }
        Err(Error::setting("a take is done again with the inputs it recorded", "leave out --dt, --solver and --set"))
    }
}

/// The keys of `--set` with what they take.
const KEYS: [(&str, &str); 32] = [
    ("substeps", "a whole number from 1 to 1000"),
    ("gravity", "one number, m/s² downwards, or three: x,y,z"),
    ("stiffness_scale", "a number, 0 or more"),
    ("damping_scale", "a number, 0 or more"),
    ("torques", "on or off"),
    ("contacts", "off, obstacles or all"),
    ("tree.scheme", "fast, default, accurate, conservative, published, exact or acceleration"),
    ("tree.depth", "how often a part may be halved, 3 to 12"),
    ("tree.threads", "one or many"),
    ("tree.instructions", "best or baseline"),
    ("tree.contacts", "of_scheme or penalty"),
    ("tree.contact_stiffness", "N/m, above 0, of contacts that are springs"),
    ("tree.contact_slip", "m/s, above 0, below which their friction is viscous"),
    ("impulse.variant", "system, joint_by_joint or split_loops"),
    ("impulse.elimination", "automatic, joints or bodies"),
    ("impulse.tolerance", "m or rad, above 0"),
    ("impulse.velocity_tolerance", "m/s or rad/s, above 0"),
    ("impulse.velocity_correction", "on or off"),
    ("impulse.iterations", "a whole number from 1 to 10000"),
    ("assembly.scheme", "displacements, projected, baumgarte or posing"),
    ("assembly.outer", "a whole number from 1 to 10000"),
    ("assembly.inner", "a whole number from 1 to 10000"),
    ("assembly.tolerance", "m or rad, above 0"),
    ("assembly.truncation", "rad, above 0, or off"),
    ("assembly.cut", "resisted, each_body or whole"),
    ("assembly.linear", "factored or plain"),
    ("reduced.springs", "implicit or explicit"),
    ("reduced.integration", "euler or midpoint"),
    ("reduced.balance", "on or off"),
    ("reduced.contact_stiffness", "N/m, above 0"),
    ("reduced.contact_slip", "m/s, above 0, below which friction is viscous"),
    ("reduced.diagonalize", "selective or always"),
];

/// The help of `--set`, listing its keys.
pub(crate) fn keys_help() -> String {
    let lines: Vec<String> = KEYS.iter().map(|(key, takes)| format!("  {key:<17}{takes}")).collect();
    format!("Change a setting of the run, as key=value; may be given again\n\n{}", lines.join("\n"))
}

/// Changes `input` as one `key=value` says. The settings of a solver may be given by their last word while that solver is chosen.
pub(crate) fn set(input: &mut Input, text: &str) -> Result<(), Error> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(Error::setting(format!("--set {text} has no value"), "write --set key=value"));
    };
    let (key, value) = (key.trim(), value.trim());
    let solver = input.solver.name();
    let long = format!("{solver}.{key}");
    let Some((key, takes)) = KEYS.iter().find(|(name, _)| *name == key || *name == long) else {
        let keys = || KEYS.iter().map(|(name, _)| *name);
        let hint = nearest(key, keys()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let list = keys().collect::<Vec<_>>().join(", ");
        return Err(Error::setting(format!("--set does not know the key \"{key}\""), format!("{hint}Keys are {list}")));
    };
    if let Some((owner, _)) = key.split_once('.')
        && owner != solver
    {
        let what = format!("--set {key} is a setting of solver {owner}, and {solver} runs");
        return Err(Error::setting(what, format!("give --solver {owner}, or leave it out")));
    }
    assign(input, key, value)
        .ok_or_else(|| Error::setting(format!("--set {key} cannot be \"{value}\""), format!("give {takes}")))
}

/// Assigns a known key of the run or of the solver in use; `None` when the value cannot be used.
fn assign(input: &mut Input, key: &str, value: &str) -> Option<()> {
    match key {
        "substeps" => input.substeps = whole(value, 1, 1000)?,
        "gravity" => input.gravity = gravity(value)?,
        "stiffness_scale" => input.stiffness_scale = number(value).filter(|x| *x >= 0.0)?,
        "damping_scale" => input.damping_scale = number(value).filter(|x| *x >= 0.0)?,
        "torques" => input.torques = choice(value, &[("on", true), ("off", false)])?,
        "contacts" => input.contacts = choice(value, &CONTACTS)?,
        _ => assign_solver(&mut input.solver, key.split_once('.')?.1, value)?,
    }
    Some(())
}

fn assign_solver(solver: &mut Solver, key: &str, value: &str) -> Option<()> {
    match (solver, key) {
        (Solver::Tree(tree), "scheme") => tree.scheme = choice(value, &SCHEMES)?,
        (Solver::Tree(tree), "depth") => tree.depth = whole(value, 3, 12)?,
        (Solver::Tree(tree), "threads") => tree.threads = choice(value, &THREADS)?,
        (Solver::Tree(tree), "instructions") => tree.instructions = choice(value, &INSTRUCTIONS)?,
        (Solver::Tree(tree), "contacts") => tree.contacts = choice(value, &LAWS)?,
        (Solver::Tree(tree), "contact_stiffness") => springs_of(tree)?.stiffness = positive(value)?,
        (Solver::Tree(tree), "contact_slip") => springs_of(tree)?.slip = positive(value)?,
        (Solver::Impulse(impulse), "variant") => impulse.variant = choice(value, &VARIANTS)?,
        (Solver::Impulse(impulse), "elimination") => impulse.elimination = choice(value, &ELIMINATIONS)?,
        (Solver::Impulse(impulse), "tolerance") => impulse.tolerance = positive(value)?,
        (Solver::Impulse(impulse), "velocity_tolerance") => impulse.velocity_tolerance = positive(value)?,
        (Solver::Impulse(impulse), "velocity_correction") => impulse.velocity_correction = choice(value, &CORRECTIONS)?,
        (Solver::Impulse(impulse), "iterations") => impulse.iterations = whole(value, 1, 10_000)?,
        (Solver::Assembly(assembly), "scheme") => assembly.scheme = choice(value, &ASSEMBLY_SCHEMES)?,
        (Solver::Assembly(assembly), "outer") => assembly.outer = whole(value, 1, 10_000)?,
        (Solver::Assembly(assembly), "inner") => assembly.inner = whole(value, 1, 10_000)?,
        (Solver::Assembly(assembly), "tolerance") => assembly.tolerance = positive(value)?,
        (Solver::Assembly(assembly), "truncation") => {
            assembly.truncation = if value == "off" { f64::INFINITY } else { positive(value)? }
        }
        (Solver::Assembly(assembly), "cut") => assembly.cut = choice(value, &CUTS)?,
        (Solver::Assembly(assembly), "linear") => assembly.linear = choice(value, &LINEARS)?,
        (Solver::Reduced(reduced), "springs") => reduced.springs = choice(value, &SPRINGS)?,
        (Solver::Reduced(reduced), "integration") => reduced.integration = choice(value, &INTEGRATIONS)?,
        (Solver::Reduced(reduced), "balance") => reduced.balance = choice(value, &BALANCES)?,
        (Solver::Reduced(reduced), "contact_stiffness") => reduced.contacts.stiffness = positive(value)?,
        (Solver::Reduced(reduced), "contact_slip") => reduced.contacts.slip = positive(value)?,
        (Solver::Reduced(reduced), "diagonalize") => reduced.diagonalize = choice(value, &DIAGONALIZE)?,
        _ => unreachable!("the key was looked up in KEYS, and its solver runs"),
    }
    Some(())
}

/// The contacts of solver `tree` as springs; `None` when its scheme has rows for them.
fn springs_of(tree: &mut Tree) -> Option<&mut Penalty> {
    tree.contacts = ContactLaw::Penalty(tree.penalty()?);
    match &mut tree.contacts {
        ContactLaw::Penalty(law) => Some(law),
        ContactLaw::OfScheme => None,
    }
}
const CONTACTS: [(&str, Contacts); 3] =
    [("off", Contacts::Off), ("obstacles", Contacts::Obstacles), ("all", Contacts::All)];

/// The default step in its modes, then the published one and its relatives.
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
const LAWS: [(&str, ContactLaw); 2] =
    [("of_scheme", ContactLaw::OfScheme), ("penalty", ContactLaw::Penalty(Penalty::USUAL))];
const INSTRUCTIONS: [(&str, Instructions); 2] = [("best", Instructions::Best), ("baseline", Instructions::Baseline)];
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
const LINEARS: [(&str, Linear); 2] = [("factored", Linear::Factored), ("plain", Linear::Plain)];
const CUTS: [(&str, Cut); 3] = [("resisted", Cut::Resisted), ("each_body", Cut::EachBody), ("whole", Cut::Whole)];
const SPRINGS: [(&str, Springs); 2] = [("implicit", Springs::Implicit), ("explicit", Springs::Explicit)];
const INTEGRATIONS: [(&str, Integration); 2] = [("euler", Integration::Euler), ("midpoint", Integration::Midpoint)];
const BALANCES: [(&str, Balance); 2] = [("on", Balance::On), ("off", Balance::Off)];
const DIAGONALIZE: [(&str, Diagonalize); 2] = [("selective", Diagonalize::Selective), ("always", Diagonalize::Always)];

fn whole(text: &str, min: u32, max: u32) -> Option<u32> {
    text.parse().ok().filter(|n| (min..=max).contains(n))
}

fn positive(text: &str) -> Option<f64> {
    number(text).filter(|x| *x > 0.0)
}

fn choice<T: Copy>(word: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(value: T, choices: &[(&'static str, T)]) -> &'static str {
    choices.iter().find(|(_, choice)| *choice == value).map_or("other", |(name, _)| name)
}

/// `9.81`: downwards; `0,-9.81,0`: a vector.
fn gravity(text: &str) -> Option<DVec3> {
    let numbers: Vec<f64> = text.split(',').map(|part| number(part.trim())).collect::<Option<_>>()?;
    match numbers[..] {
        [down] => Some(DVec3::new(0.0, -down, 0.0)),
        [x, y, z] => Some(DVec3::new(x, y, z)),
        _ => None,
    }
}

/// A finite number: `0.5`, `1e-3`, or a fraction of two: `1/60`.
pub(crate) fn number(text: &str) -> Option<f64> {
    let plain = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.split_once('/') {
        Some((over, under)) => plain(over)? / plain(under)?,
        None => plain(text)?,
    };
    value.is_finite().then_some(value)
}

/// The budget of `--budget`, in microseconds: solver assembly alone keeps one.
pub(crate) fn budget(text: &str, input: &Input) -> Result<Budget, Error> {
    let Solver::Assembly(_) = input.solver else {
        let what = format!("--budget is kept by solver assembly, and {} runs", input.solver.name());
        return Err(Error::setting(what, "give --solver assembly, or leave it out"));
    };
    number(text)
        .filter(|us| (1.0..=1e9).contains(us))
        .map(Budget::new)
        .ok_or_else(|| Error::setting(format!("--budget cannot be \"{text}\""), "give microseconds, from 1 to 1e9"))
}

/// The step's length is sought between these \[s\]: below, time stands still beside rounding; above, nothing is a motion.
const DT_RANGE: [f64; 2] = [1e-9, 10.0];
/// More steps than anyone waits for: 46 hours of simulated time at 60 a second. It also bounds the memory of the timings.
const MAX_STEPS: f64 = 1e7;

/// The step's length from `--dt`.
pub(crate) fn dt(text: &str) -> Result<f64, Error> {
    let [min, max] = DT_RANGE;
    number(text).filter(|dt| (min..=max).contains(dt)).ok_or_else(|| {
        Error::setting(
            format!("--dt cannot be \"{text}\""),
            format!("give seconds from {} to {}, as a number or a fraction such as 1/60", given(min), given(max)),
        )
    })
}

/// The number of steps that `--seconds` makes.
pub(crate) fn steps(seconds: &str, dt: f64) -> Result<usize, Error> {
    let wrong = |help: String| Err(Error::setting(format!("--seconds cannot be \"{seconds}\""), help));
    let Some(value) = number(seconds).filter(|s| *s > 0.0) else {
        return wrong("give a finite number of seconds above 0, such as 10: a run must end".into());
    };
    let steps = (value / dt).round();
    if steps < 1.0 {
        return wrong(format!("it is less than half of one step of {} s: give more", given(dt)));
    }
    if steps > MAX_STEPS {
        return wrong(too_many(steps));
    }
    Ok(steps as usize)
}

fn too_many(steps: f64) -> String {
    format!("that is {} steps, and {} is the most: give less", given(steps), grouped(MAX_STEPS as usize))
}

/// A moment of a run, from an option \[s\].
pub(crate) fn time(option: &str, text: &str) -> Result<f64, Error> {
    number(text).filter(|t| *t >= 0.0).ok_or_else(|| {
        Error::setting(format!("{option} cannot be \"{text}\""), "give a finite number of seconds, 0 or more")
    })
}

/// Refuses a moment that takes too many steps to reach.
pub(crate) fn check_reach(time: f64, dt: f64) -> Result<(), Error> {
    let steps = time / dt;
    if steps > MAX_STEPS {
        return Err(Error::setting(format!("{} s cannot be reached", given(time)), too_many(steps)));
    }
    Ok(())
}

/// The settings a run had, as its report tells them: what `--set` can change.
#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    substeps: u32,
    gravity: [f64; 3],
    stiffness_scale: f64,
    damping_scale: f64,
    torques: &'static str,
    /// What touches what.
    contacts_with: &'static str,
    #[serde(flatten)]
    solver: SolverSettings,
}

/// Those of the solver that ran.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SolverSettings {
    Tree {
        scheme: &'static str,
        depth: u32,
        threads: &'static str,
        instructions: &'static str,
        contacts: &'static str,
        contact_stiffness: Option<f64>,
        contact_slip: Option<f64>,
    },
    Impulse {
        variant: &'static str,
        elimination: &'static str,
        tolerance: f64,
        velocity_tolerance: f64,
        velocity_correction: &'static str,
        iterations: u32,
    },
    Assembly {
        scheme: &'static str,
        outer: u32,
        inner: u32,
        tolerance: f64,
        /// Null: nothing is cut.
        truncation: Option<f64>,
        cut: &'static str,
        linear: &'static str,
    },
    Reduced {
        springs: &'static str,
        integration: &'static str,
        balance: &'static str,
        contact_stiffness: f64,
        contact_slip: f64,
        diagonalize: &'static str,
    },
}

impl Settings {
    /// Those of `input`.
    pub(crate) fn of(input: &Input) -> Settings {
        Settings {
            substeps: input.substeps,
            gravity: input.gravity.to_array(),
            stiffness_scale: input.stiffness_scale,
            damping_scale: input.damping_scale,
            torques: if input.torques { "on" } else { "off" },
            contacts_with: name_of(input.contacts, &CONTACTS),
            solver: match input.solver {
                Solver::Tree(tree) => SolverSettings::Tree {
                    scheme: name_of(tree.scheme, &SCHEMES),
                    depth: tree.depth,
                    threads: name_of(tree.threads, &THREADS),
                    instructions: name_of(tree.instructions, &INSTRUCTIONS),
                    contacts: if tree.penalty().is_some() { "penalty" } else { "of_scheme" },
                    contact_stiffness: tree.penalty().map(|law| law.stiffness),
                    contact_slip: tree.penalty().map(|law| law.slip),
                },
                Solver::Impulse(impulse) => SolverSettings::Impulse {
                    variant: name_of(impulse.variant, &VARIANTS),
                    elimination: name_of(impulse.elimination, &ELIMINATIONS),
                    tolerance: impulse.tolerance,
                    velocity_tolerance: impulse.velocity_tolerance,
                    velocity_correction: name_of(impulse.velocity_correction, &CORRECTIONS),
                    iterations: impulse.iterations,
                },
                Solver::Assembly(assembly) => SolverSettings::Assembly {
                    scheme: name_of(assembly.scheme, &ASSEMBLY_SCHEMES),
                    outer: assembly.outer,
                    inner: assembly.inner,
                    tolerance: assembly.tolerance,
                    truncation: Some(assembly.truncation).filter(|x| x.is_finite()),
                    cut: name_of(assembly.cut, &CUTS),
                    linear: name_of(assembly.linear, &LINEARS),
                },
                Solver::Reduced(reduced) => SolverSettings::Reduced {
                    springs: name_of(reduced.springs, &SPRINGS),
                    integration: name_of(reduced.integration, &INTEGRATIONS),
                    balance: name_of(reduced.balance, &BALANCES),
                    contact_stiffness: reduced.contacts.stiffness,
                    contact_slip: reduced.contacts.slip,
                    diagonalize: name_of(reduced.diagonalize, &DIAGONALIZE),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_fractions() {
        assert_eq!(number("1/60"), Some(1.0 / 60.0));
        assert_eq!(number(" 0.5 "), Some(0.5));
        assert_eq!(number("1e-3"), Some(1e-3));
        for wrong in ["", "x", "1/0", "1/2/3", "inf", "nan", "1/"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_key_can_be_set() {
        let mut input = Input::default();
        for text in [
            "substeps=4",
            "gravity=1.62",
            "stiffness_scale=2",
            "damping_scale=1/2",
            "torques=off",
            "contacts=all",
            "scheme=exact",
            "threads=many",
            "instructions=baseline",
            "tree.contacts=penalty",
            "contact_stiffness=2e4",
            "contact_slip=0.01",
        ] {
            assert!(set(&mut input, text).is_ok(), "{text}");
        }
        assert_eq!((input.substeps, input.gravity, input.torques), (4, DVec3::new(0.0, -1.62, 0.0), false));
        let Solver::Tree(tree) = input.solver else { panic!("tree is the default") };
        assert_eq!((tree.scheme, tree.threads), (TreeScheme::Exact, Threads::Many));
        assert_eq!((input.stiffness_scale, input.damping_scale), (2.0, 0.5));
        for (solver, texts) in [
            (
                Solver::Impulse(Default::default()),
                &[
                    "variant=joint_by_joint",
                    "impulse.elimination=bodies",
                    "tolerance=1e-4",
                    "velocity_tolerance=1",
                    "velocity_correction=off",
                    "iterations=9",
                ][..],
            ),
            (
                Solver::Assembly(Default::default()),
                &[
                    "scheme=projected",
                    "outer=3",
                    "inner=9",
                    "tolerance=0.1",
                    "truncation=off",
                    "assembly.cut=whole",
                    "linear=plain",
                ][..],
            ),
            (
                Solver::Reduced(Default::default()),
                &[
                    "springs=explicit",
                    "reduced.integration=midpoint",
                    "balance=off",
                    "contact_stiffness=1e4",
                    "contact_slip=0.1",
                    "diagonalize=always",
                ][..],
            ),
        ] {
            input.solver = solver;
            for text in texts {
                let before = input.solver;
                assert!(set(&mut input, text).is_ok() && input.solver != before, "{text}");
            }
            assert!(set(&mut input, "tree.depth=4").is_err());
        }
        assert!(set(&mut input, "gravity=1,2,3").is_ok());
        assert_eq!(input.gravity, DVec3::new(1.0, 2.0, 3.0));
    }

    #[test]
    fn wrong_settings_are_refused() {
        let mut input = Input::default();
        for text in [
            "substeps",
            "substeps=0",
            "substeps=1.5",
            "gravity=1,2",
            "stiffness_scale=-1",
            "torques=maybe",
            "color=red",
        ] {
            assert!(set(&mut input, text).is_err(), "{text}");
        }
        assert_eq!(input, Input::default());
    }

    #[test]
    fn lengths_of_time() {
        assert_eq!(steps("10", dt("1/60").unwrap()).unwrap(), 600);
        assert_eq!(steps("1/60", 1.0 / 60.0).unwrap(), 1);
        for wrong in ["0", "-1", "nan", "1e9", "0.001", "x"] {
            assert!(steps(wrong, 1.0 / 60.0).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1/60", "1/0", "100", "1e-12", ""] {
            assert!(dt(wrong).is_err(), "{wrong}");
        }
    }
}
