//! The contestants, the reference, and what a run is measured by.

use crate::error::{Error, nearest};
use crate::table::{fraction, small};
use serde::Serialize;
use std::time::{Duration, Instant};
use supple::glam::DVec3;
use supple::maths::rotation::log;
use supple::solver::assembly::Scheme;
use supple::solver::impulse::Variant;
use supple::solver::reduced::Integration;
use supple::{
    Assembly, Impulse, Input, Reduced, Scene, Solver, State, StepError, Tree, TreeScheme, Work, measure, step,
};

/// A solver with its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contestant {
    solver: fn() -> Solver,
    /// `tree`
    family: &'static str,
    /// `published`
    variant: &'static str,
    /// Red, green, blue of its curve.
    pub(super) colour: [u8; 3],
}

fn tree(scheme: TreeScheme) -> Solver {
    Solver::Tree(Tree { scheme, ..Tree::default() })
}

fn impulse(variant: Variant) -> Solver {
    Solver::Impulse(Impulse { variant, ..Impulse::default() })
}

fn assembly(scheme: Scheme) -> Solver {
    Solver::Assembly(Assembly { scheme, ..Assembly::default() })
}

fn reduced(integration: Integration) -> Solver {
    Solver::Reduced(Reduced { integration, ..Reduced::default() })
}

/// Everything that can be compared: one hue a solver, its baselines lighter.
pub(super) const CONTESTANTS: [Contestant; 11] = [
    Contestant { family: "tree", variant: "default", colour: [0, 84, 148], solver: Solver::default },
    Contestant { family: "tree", variant: "published", colour: [0, 134, 209], solver: || tree(TreeScheme::Published) },
    Contestant { family: "tree", variant: "exact", colour: [92, 179, 230], solver: || tree(TreeScheme::Exact) },
    Contestant {
        family: "tree",
        variant: "acceleration",
        colour: [163, 208, 240],
        solver: || tree(TreeScheme::Acceleration),
    },
    Contestant { family: "impulse", variant: "system", colour: [190, 70, 0], solver: || impulse(Variant::System) },
    Contestant {
        family: "impulse",
        variant: "joint_by_joint",
        colour: [240, 150, 80],
        solver: || impulse(Variant::JointByJoint),
    },
    Contestant {
        family: "assembly",
        variant: "displacements",
        colour: [120, 40, 120],
        solver: || assembly(Scheme::Displacements),
    },
    Contestant {
        family: "assembly",
        variant: "projected",
        colour: [175, 105, 175],
        solver: || assembly(Scheme::Projected),
    },
    Contestant {
        family: "assembly",
        variant: "baumgarte",
        colour: [215, 170, 215],
        solver: || assembly(Scheme::Baumgarte),
    },
    Contestant { family: "reduced", variant: "euler", colour: [0, 120, 80], solver: || reduced(Integration::Euler) },
    Contestant {
        family: "reduced",
        variant: "midpoint",
        colour: [90, 190, 150],
        solver: || reduced(Integration::Midpoint),
    },
];

impl Contestant {
    /// `tree published`
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.family, self.variant)
    }

    /// The contestant of this name.
    pub(super) fn named(name: &str) -> Option<&'static Contestant> {
        CONTESTANTS.iter().find(|c| c.name() == name)
    }
}

/// The contestants that `only` names: by solver, or by solver and variant.
pub(super) fn chosen(only: &[String]) -> Result<Vec<&'static Contestant>, Error> {
    let matches = |c: &Contestant, word: &str| c.family == word || c.name() == word;
    for word in only {
        if !CONTESTANTS.iter().any(|c| matches(c, word.trim())) {
            let names: Vec<String> = CONTESTANTS.iter().map(Contestant::name).collect();
            let near = nearest(word, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`? "));
            return Err(Error::setting(
                format!("there is no solver \"{word}\" to compare"),
                format!("{}There are {}", near.unwrap_or_default(), names.join(", ")),
            ));
        }
    }
    let wanted = |c: &&Contestant| only.is_empty() || only.iter().any(|word| matches(c, word.trim()));
    Ok(CONTESTANTS.iter().filter(wanted).collect())
}

/// A solver that cannot take the scene, and why.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Refused {
    pub(super) solver: String,
    code: &'static str,
    pub(super) reason: String,
}

impl Refused {
    fn new(contestant: &Contestant, error: &StepError) -> Refused {
        Refused { solver: contestant.name(), code: error.code(), reason: without_code(error) }
    }
}

/// The message of an error without its code, which is told beside it.
fn without_code(error: &StepError) -> String {
    error.to_string().replace(&format!(" [{}]", error.code()), "")
}

/// The refused by their reasons: `tree exact, reduced euler: joint …`.
pub(super) fn reasons(refused: &[Refused]) -> Vec<(String, &str)> {
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for one in refused {
        match reasons.iter_mut().find(|(_, reason)| *reason == one.reason) {
            Some((names, _)) => *names = format!("{names}, {}", one.solver),
            None => reasons.push((one.solver.clone(), &one.reason)),
        }
    }
    reasons
}

/// Those that can take the scene as it begins, and those that cannot.
pub(super) fn sort<'c>(scene: &Scene, contestants: &[&'c Contestant]) -> (Vec<&'c Contestant>, Vec<Refused>) {
    let (mut takers, mut refused) = (Vec::new(), Vec::new());
    for contestant in contestants {
        match takes(scene, (contestant.solver)()) {
            Ok(()) => takers.push(*contestant),
            Err(error) => refused.push(Refused::new(contestant, &error)),
        }
    }
    (takers, refused)
}

fn takes(scene: &Scene, solver: Solver) -> Result<(), StepError> {
    let mut input = scene.input.clone();
    scene.direct(scene.state.time, &mut input);
    solver.takes(&scene.model, &input)
}

/// The reference's solver: the first of these that takes the scene. They come in the order of their accuracy.
pub(super) fn reference_solver(scene: &Scene, refused: &[Refused]) -> Result<&'static Contestant, Error> {
    let order = ["tree default", "reduced midpoint", "impulse system", "assembly displacements"];
    let found = order.iter().filter_map(|name| Contestant::named(name));
    found.clone().find(|c| takes(scene, (c.solver)()).is_ok()).ok_or_else(|| {
        let why = refused.first().map_or(String::new(), |r| format!(": {}", r.reason));
        Error::failed("step/unsupported", format!("no solver takes the scene{why}"))
    })
}

/// What the others are measured against.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Reference {
    solver: String,
    /// \[s\]
    dt: f64,
    /// How far it is from a run with twice the step: the farthest body at the end \[m\]. What it is itself off by is a third of that or less.
    /// Null when that run failed.
    pub(super) error: Option<f64>,
    /// The farthest body from the centre of mass at the end \[m\].
    pub(super) reach: f64,
}

impl Reference {
    /// A sentence about it.
    pub(super) fn words(&self) -> String {
        let error = self.error.map_or("its own error is not known".into(), |e| {
            format!("with twice the step it ends {} m away", small(e))
        });
        format!("Reference: {} at {} s; {error}.", self.solver, fraction(self.dt))
    }
}

/// A contestant at one length of a step. Null: the run did not come so far.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// `tree published`
    pub(super) solver: String,
    /// \[s\]
    pub(super) dt: f64,
    /// Time to compute a second of motion \[ms\]: the shortest time of each step over the runs.
    pub(super) ms_per_second: Option<f64>,
    /// Over the run \[m\].
    pub(super) max_joint_gap: Option<f64>,
    /// Sine of an angle.
    pub(super) max_joint_tilt: Option<f64>,
    /// The largest at any frame, as a share of the reference's largest kinetic energy.
    pub(super) energy_error: Option<f64>,
    /// The largest at any frame, linear or angular about the centre of mass, as a share of the momentum that goes with that energy.
    pub(super) momentum_error: Option<f64>,
    /// The farthest body from the reference at the end \[m\].
    pub(super) pose_error: Option<f64>,
    /// The body farthest turned from the reference at the end \[rad\].
    pub(super) turn_error: Option<f64>,
    /// When the run ended early \[s\], by which error, and why.
    pub(super) ended_at: Option<f64>,
    pub(super) code: Option<&'static str>,
    pub(super) reason: Option<String>,
}

/// What is looked at after each frame.
#[derive(Clone, Copy, Debug)]
struct Look {
    kinetic: f64,
    total: f64,
    linear: DVec3,
    /// About the centre of mass.
    angular: DVec3,
}

impl Look {
    /// What pulls at the character has its target ahead by a step: its spring is not counted.
    fn at(scene: &Scene, input: &Input, state: &State) -> Look {
        let alone = Input { targets: Vec::new(), drags: Vec::new(), ..input.clone() };
        let (energy, momentum) = (measure::energy(&scene.model, &alone, state), measure::momentum(&scene.model, state));
        let centre = centre(scene, state);
        Look {
            kinetic: energy.kinetic,
            total: energy.total(),
            linear: momentum.linear,
            angular: momentum.angular - centre.cross(momentum.linear),
        }
    }
}

/// A whole run.
struct Run {
    looks: Vec<Look>,
    end: State,
    gap: f64,
    tilt: f64,
    failure: Option<StepError>,
}

/// The scene, its reference, and the scales that errors are measured by.
pub(super) struct Course<'s> {
    scene: &'s Scene,
    /// \[s\]
    frame: f64,
    frames: usize,
    pub(super) reference: Reference,
    looks: Vec<Look>,
    end: State,
}

/// The reference's step goes so often into the shortest that is compared; a second run takes twice the step. The first of these that is expected to take
/// less than [`REFERENCE_AT_MOST`], or the last.
const FINER: [f64; 4] = [16.0, 8.0, 4.0, 2.0];
/// For both runs of the reference.
const REFERENCE_AT_MOST: Duration = Duration::from_secs(30);
/// Runs are repeated so often…
const RUNS: usize = 3;
/// …unless they take longer than this together.
const LONGEST: Duration = Duration::from_secs(2);

impl<'s> Course<'s> {
    /// Runs the reference: `frames` of the longest step.
    pub(super) fn new(
        scene: &'s Scene,
        frame: f64,
        frames: usize,
        shortest: f64,
        solver: &Contestant,
    ) -> Result<Course<'s>, Error> {
        let run = |dt: f64, frames: usize| play(scene, (solver.solver)(), dt, frame, frames, &mut Vec::new());
        let is_short = |finer: &&f64| {
            let started = Instant::now();
            run(shortest / **finer, 1);
            // One frame of the finer run, and half as long for the other.
            started.elapsed().mul_f64(1.5 * frames as f64) < REFERENCE_AT_MOST
        };
        let finer = FINER[..FINER.len() - 1].iter().find(is_short).unwrap_or(&FINER[FINER.len() - 1]);
        let dt = shortest / finer;
        let (coarse, fine) = (run(2.0 * dt, frames), run(dt, frames));
        if let Some(error) = fine.failure {
            return Err(Error::step(&error, format_args!("the reference, {} at {} s", solver.name(), fraction(dt))));
        }
        let error = coarse.failure.is_none().then(|| apart(&coarse.end, &fine.end).0);
        let reference = Reference { solver: solver.name(), dt, error, reach: reach(scene, &fine.end) };
        Ok(Course { scene, frame, frames, reference, looks: fine.looks, end: fine.end })
    }

    /// Runs and times a contestant.
    pub(super) fn run(&self, contestant: &Contestant, dt: f64) -> Row {
        let solver = (contestant.solver)();
        let mut shortest = Vec::new();
        let started = Instant::now();
        let mut run = play(self.scene, solver, dt, self.frame, self.frames, &mut shortest);
        for _ in 1..RUNS {
            if started.elapsed() > LONGEST || run.failure.is_some() {
                break;
            }
            run = play(self.scene, solver, dt, self.frame, self.frames, &mut shortest);
        }
        let seconds = self.frame * self.frames as f64;
        let time = 1e3 * shortest.iter().sum::<Duration>().as_secs_f64() / seconds;
        let done = run.failure.is_none();
        let (pose, turn) = apart(&run.end, &self.end);
        Row {
            solver: contestant.name(),
            dt,
            ms_per_second: done.then_some(time),
            max_joint_gap: done.then_some(run.gap),
            max_joint_tilt: done.then_some(run.tilt),
            energy_error: done.then(|| self.energy_error(&run.looks)),
            momentum_error: done.then(|| self.momentum_error(&run.looks)),
            pose_error: done.then_some(pose),
            turn_error: done.then_some(turn),
            ended_at: run.failure.as_ref().map(|_| run.end.time),
            code: run.failure.as_ref().map(StepError::code),
            reason: run.failure.as_ref().map(without_code),
        }
    }

    /// The largest kinetic energy of the reference, at least that of a fall of a millimetre \[J\].
    fn energy_scale(&self) -> f64 {
        let least = 1e-3 * 9.81 * self.scene.model.mass();
        self.looks.iter().map(|look| look.kinetic).fold(least, f64::max)
    }

    fn energy_error(&self, looks: &[Look]) -> f64 {
        let differences = looks.iter().zip(&self.looks).map(|(a, b)| (a.total - b.total).abs());
        differences.fold(0.0, f64::max) / self.energy_scale()
    }

    /// Scales: `p = √(2 m T)`, and for the angular momentum `p` times the largest distance of a body from the centre of mass.
    fn momentum_error(&self, looks: &[Look]) -> f64 {
        let scale = (2.0 * self.scene.model.mass() * self.energy_scale()).sqrt();
        let reach = self.reference.reach.max(1e-3);
        let differences = looks.iter().zip(&self.looks).map(|(a, b)| {
            let (linear, angular) = ((a.linear - b.linear).length(), (a.angular - b.angular).length());
            linear.max(angular / reach)
        });
        differences.fold(0.0, f64::max) / scale
    }
}

/// Plays the scene in steps of `dt`, looking at it after each frame; `shortest` keeps the shortest time of each step.
fn play(scene: &Scene, solver: Solver, dt: f64, frame: f64, frames: usize, shortest: &mut Vec<Duration>) -> Run {
    let model = &scene.model;
    let mut input = Input { dt, solver, ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let steps = (frame / dt).round() as usize;
    let mut run = Run { looks: Vec::with_capacity(frames), end: state.clone(), gap: 0.0, tilt: 0.0, failure: None };
    let mut n = 0;
    for _ in 0..frames {
        for _ in 0..steps {
            scene.direct(state.time, &mut input);
            let start = Instant::now();
            let result = step(model, &input, &mut state, &mut work);
            let time = start.elapsed();
            match shortest.get_mut(n) {
                Some(shortest) => *shortest = time.min(*shortest),
                None => shortest.push(time),
            }
            n += 1;
            match result {
                Ok(report) => {
                    run.gap = run.gap.max(report.max_joint_gap);
                    run.tilt = run.tilt.max(report.max_joint_tilt);
                }
                Err(error) => {
                    (run.failure, run.end) = (Some(error), state);
                    return run;
                }
            }
        }
        scene.direct(state.time, &mut input);
        run.looks.push(Look::at(scene, &input, &state));
    }
    run.end = state;
    run
}

/// The centre of mass \[m\].
fn centre(scene: &Scene, state: &State) -> DVec3 {
    let bodies = scene.model.bodies().iter().zip(&state.bodies);
    bodies.map(|(body, s)| s.position * body.mass).sum::<DVec3>() / scene.model.mass()
}

/// The farthest body from the centre of mass \[m\].
fn reach(scene: &Scene, state: &State) -> f64 {
    let centre = centre(scene, state);
    state.bodies.iter().map(|s| s.position.distance(centre)).fold(0.0, f64::max)
}

/// The farthest body \[m\] and the farthest turned \[rad\] between two states.
fn apart(a: &State, b: &State) -> (f64, f64) {
    a.bodies.iter().zip(&b.bodies).fold((0.0, 0.0), |(far, turned), (a, b)| {
        let turn = log(a.orientation * b.orientation.conjugate()).length();
        (f64::max(far, a.position.distance(b.position)), f64::max(turned, turn))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_solvers_and_variants() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|w| (*w).to_owned()).collect();
            chosen(&only).map(|list| list.iter().map(|c| c.name()).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), CONTESTANTS.len());
        assert_eq!(names(&["reduced"]).unwrap(), ["reduced euler", "reduced midpoint"]);
        assert_eq!(names(&["tree exact", "reduced euler"]).unwrap(), ["tree exact", "reduced euler"]);
        assert!(names(&["tre"]).is_err());
    }

    #[test]
    fn errors_shrink_with_the_step_and_vanish_for_the_reference() {
        let scene = Scene::parse("double_pendulum").unwrap();
        let reference = Contestant::named("tree default").unwrap();
        let course = Course::new(&scene, 1.0 / 30.0, 6, 1.0 / 120.0, reference).unwrap();
        let euler = Contestant::named("reduced euler").unwrap();
        let [coarse, fine] = [1.0 / 30.0, 1.0 / 120.0].map(|dt| course.run(euler, dt));
        let of = |value: Option<f64>| value.unwrap();
        assert!(of(fine.pose_error) < 0.5 * of(coarse.pose_error), "{coarse:?} {fine:?}");
        assert!(of(fine.energy_error) < 0.5 * of(coarse.energy_error));
        assert!(of(fine.momentum_error) < 0.5 * of(coarse.momentum_error));
        // The reference against itself.
        let own = course.run(reference, course.reference.dt);
        assert_eq!((of(own.pose_error), of(own.energy_error), of(own.momentum_error)), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_run_that_fails_says_when_and_why() {
        let scene = Scene::parse("whip:20,stiffness=1e6").unwrap();
        let course =
            Course::new(&scene, 1.0 / 30.0, 30, 1.0 / 30.0, Contestant::named("tree default").unwrap()).unwrap();
        // Explicit springs of this stiffness overflow at once.
        let row = course.run(Contestant::named("tree acceleration").unwrap(), 1.0 / 30.0);
        assert!(row.code == Some("step/not-finite") && row.ended_at.is_some() && row.pose_error.is_none(), "{row:?}");
    }
}
