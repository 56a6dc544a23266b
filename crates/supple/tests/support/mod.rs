//! What the tests of claims share: the scheme they are about, runs, and orders of convergence.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses a part

use glam::{DMat3, DVec3};
use supple::*;

/// The scheme whose claims are tested, whatever the default is.
pub fn published() -> Solver {
    with_scheme(TreeScheme::Published)
}

pub fn with_scheme(scheme: TreeScheme) -> Solver {
    Solver::Tree(Tree { scheme, ..Tree::default() })
}

/// Gravity along −Y, nothing else.
pub fn input(dt: f64) -> Input {
    Input { dt, solver: published(), ..Input::default() }
}

/// Nothing from outside.
pub fn weightless(dt: f64) -> Input {
    Input { gravity: DVec3::ZERO, ..input(dt) }
}

/// Steps, with a look at the state and the report after each.
pub fn run(model: &Model, input: &Input, state: &mut State, steps: usize, mut look: impl FnMut(&State, &Report)) {
    let mut work = Work::new(model);
    for n in 0..steps {
        let report = step(model, input, state, &mut work).unwrap_or_else(|e| panic!("step {n}: {e}"));
        look(state, &report);
    }
}

/// As many steps as `seconds` take.
pub fn settle(model: &Model, input: &Input, state: &mut State, seconds: f64) {
    run(model, input, state, (seconds / input.dt).round() as usize, |_, _| {});
}

/// A scene run by its own script for `seconds` in steps of `dt`.
pub fn play(scene: &Scene, solver: Solver, dt: f64, seconds: f64) -> State {
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    (input.dt, input.solver) = (dt, solver);
    for n in 0..(seconds / dt).round() as usize {
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{} step {n}: {e}", scene.name));
    }
    state
}

/// Largest distance between the centres of mass of two states of one model.
pub fn apart(a: &State, b: &State) -> f64 {
    a.bodies.iter().zip(&b.bodies).map(|(a, b)| a.position.distance(b.position)).fold(0.0, f64::max)
}

/// The orders of convergence between errors at steps that halve each time.
pub fn orders(errors: &[f64]) -> Vec<f64> {
    errors.windows(2).map(|e| (e[0] / e[1]).log2()).collect()
}

/// A body of 2 kg with three different moments, its centre at `at`.
pub fn block(name: &str, at: DVec3) -> BodySpec {
    BodySpec::new(name).mass(2.0).inertia(DMat3::from_diagonal(MOMENTS), DVec3::ZERO).pose(Pose::at(at))
}

/// The moments of [`block`] \[kg·m²\].
pub const MOMENTS: DVec3 = DVec3::new(0.03, 0.04, 0.05);

/// A block on one joint to the world, the joint's frame at the world's origin.
pub fn on_world(mask: JointMask, centre: DVec3, adjust: impl FnOnce(JointSpec) -> JointSpec) -> Model {
    let mut builder = ModelBuilder::new();
    let body = builder.body(block("block", centre));
    builder.joint(adjust(JointSpec::new("joint", mask, body, BodyRef::World)));
    builder.build().unwrap()
}

/// Small numbers, legibly.
pub fn list(values: &[f64]) -> String {
    values.iter().map(|x| format!("{x:.1e}")).collect::<Vec<_>>().join(" ")
}
