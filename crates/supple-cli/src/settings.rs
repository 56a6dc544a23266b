//! Values given on the command line: lengths of time such as `1/60`, `--set key=value`, and the options of every run.

use crate::error::{Error, nearest};
use crate::table::{given, grouped};
use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use supple::settings::{DT, Value};
use supple::solver::assembly::Budget;
use supple::{Input, Model, SETTINGS, Scene, Setting, Solver};

pub(crate) use supple::settings::parse_number as number;

/// How a scene is run.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Length of a step in seconds, as a number or a fraction [default: the scene's own, 1/60 unless it says otherwise]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    dt: Option<String>,
    /// The method [default: the scene's own, tree unless it says otherwise]
    #[arg(long, value_name = "NAME")]
    solver: Option<SolverName>,
    #[arg(long, value_name = "KEY=VALUE", help = "Change a setting of the run; may be given again", long_help = keys_help(|_| true))]
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
            set(&scene.model, &mut input, text)?;
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

/// The help of `--set`, listing the keys that `wanted` wants.
pub(crate) fn keys_help(wanted: fn(&Setting) -> bool) -> String {
    let line = |setting: &Setting| {
        let default = setting.default_value().map(|value| format!(" [{}]", told(value))).unwrap_or_default();
        format!("  {:<28}{}: {}{default}", setting.key, setting.words, setting.range_words())
    };
    let lines: Vec<String> = SETTINGS.iter().filter(|setting| wanted(setting)).map(line).collect();
    format!("Change a setting of the run, as key=value; may be given again\n\n{}", lines.join("\n"))
}

/// A value as it is given.
fn told(value: Value) -> String {
    match value {
        Value::Whole(n) => n.to_string(),
        Value::Number(x) if x.is_finite() => given(x),
        Value::Number(_) => "off".into(),
        Value::Word(word) => word.into(),
        Value::Vector(v) => format!("{},{},{}", v.x, v.y, v.z),
    }
}

/// Changes `input` as one `key=value` says. The settings of a solver may be given by their last word while that solver is chosen. What would do
/// nothing is refused.
pub(crate) fn set(model: &Model, input: &mut Input, text: &str) -> Result<(), Error> {
    let (setting, value) = split(&input.solver, text)?;
    let key = setting.key;
    let wrong =
        || Error::setting(format!("--set {key} cannot be \"{value}\""), format!("give {}", setting.range_words()));
    let value = setting.parse(value).ok_or_else(wrong)?;
    if let Some(reason) = setting.idle(model, input) {
        let help = match setting.owner() {
            Some(owner) if owner != input.solver.name() => format!("give --solver {owner}, or leave it out"),
            _ => "leave it out".into(),
        };
        return Err(Error::setting(format!("--set {key} would do nothing: {reason}"), help));
    }
    if setting.set(input, value) { Ok(()) } else { Err(wrong()) }
}

/// The setting that `key=value` names, and the value as given.
pub(crate) fn split<'t>(solver: &Solver, text: &'t str) -> Result<(&'static Setting, &'t str), Error> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(Error::setting(format!("--set {text} has no value"), "write --set key=value"));
    };
    let (key, value) = (key.trim(), value.trim());
    let Some(setting) = Setting::find(key, solver) else {
        let keys = || SETTINGS.iter().map(|setting| setting.key);
        let hint = nearest(key, keys()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let list = keys().collect::<Vec<_>>().join(", ");
        return Err(Error::setting(format!("--set does not know the key \"{key}\""), format!("{hint}Keys are {list}")));
    };
    Ok((setting, value))
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

/// More steps than anyone waits for: 46 hours of simulated time at 60 a second. It also bounds the memory of the timings.
const MAX_STEPS: f64 = 1e7;

/// The step's length from `--dt`.
pub(crate) fn dt(text: &str) -> Result<f64, Error> {
    let [min, max] = DT;
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
    let most = grouped(MAX_STEPS as usize);
    if steps.is_finite() {
        format!("that is {} steps, and {most} is the most: give less", given(steps))
    } else {
        format!("that is more steps than can be counted, and {most} is the most: give less")
    }
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

/// The settings a run had, as its report tells them: those of any run and those of its solver, by their last word. `null`: there is none here.
#[derive(Debug)]
pub(crate) struct Settings(Input);

impl Settings {
    /// Those of `input`.
    pub(crate) fn of(input: &Input) -> Settings {
        Settings(input.clone())
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Settings(input) = self;
        let own = SETTINGS.iter().filter(|s| s.owner().is_none_or(|owner| owner == input.solver.name()));
        serializer.collect_map(own.map(|setting| {
            let name = match (setting.key, setting.owner()) {
                ("contacts", _) => "contacts_with", // solver tree has contacts of its own
                (_, Some(_)) => setting.last_word(),
                (key, None) => key,
            };
            let value = setting.get(input).map(|value| match value {
                Value::Whole(n) => serde_json::Value::from(n),
                Value::Number(x) => serde_json::Value::from(x), // null where it is off
                Value::Word(word) => serde_json::Value::from(word),
                Value::Vector(v) => serde_json::Value::from(v.to_array().to_vec()),
            });
            (name, value)
        }))
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
    fn settings_are_given_by_key_or_last_word_and_refused_with_a_reason() {
        let model = Scene::parse("chain:2").unwrap().model;
        let mut input = Input::default();
        for text in
            ["substeps=4", "gravity=1.62", "stiffness_scale=2", "damping_scale=1/2", "torques=off", "scheme=exact"]
        {
            assert!(set(&model, &mut input, text).is_ok(), "{text}");
        }
        assert_eq!((input.substeps, input.gravity.y, input.torques), (4, -1.62, false));
        assert_eq!((input.stiffness_scale, input.damping_scale), (2.0, 0.5));
        let before = input.clone();
        for text in [
            "substeps",
            "substeps=0",
            "substeps=1.5",
            "gravity=1,2",
            "gravity=1e6",
            "stiffness_scale=-1",
            "torques=maybe",
            "color=red",
            "impulse.iterations=3",
            "skin.refinements=1",
            "flesh=loose",
        ] {
            assert!(set(&model, &mut input, text).is_err(), "{text}");
        }
        assert_eq!(input, before);
        let told = serde_json::to_value(Settings::of(&input)).unwrap();
        assert_eq!((&told["scheme"], &told["contacts_with"]), (&"exact".into(), &"obstacles".into()));
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
