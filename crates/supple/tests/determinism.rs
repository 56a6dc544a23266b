//! The same model, state and input give the same bits: in every run, with every scratch, from every snapshot.

mod support;

use supple::*;
use support::*;

const STEPS: usize = 60;

/// The published step where it can be had, else the one that takes loops.
fn solver_for(scene: &Scene) -> Solver {
    if scene.model.topology().is_tree() { published() } else { Solver::default() }
}

/// Steps a scene from a state, `work` made anew when `fresh` says so.
fn go_on(scene: &Scene, substeps: u32, mut state: State, steps: usize, fresh: bool) -> State {
    let mut input = scene.input.clone();
    (input.solver, input.substeps) = (solver_for(scene), substeps);
    let mut work = Work::new(&scene.model);
    for _ in 0..steps {
        if fresh {
            work = Work::new(&scene.model);
        }
        scene.direct(state.time, &mut input);
        let report =
            step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{}: {e}", scene.name));
        if scene.model.topology().is_tree() {
            assert_eq!(report.substeps, substeps, "{}", scene.name);
        }
    }
    state
}

/// Calls `check` for every scene of the catalogue, whole and in four parts a step.
fn for_every_scene(check: impl Fn(&Scene, u32, State)) {
    for info in supple::scenes::catalogue() {
        let scene = Scene::parse(info.name).unwrap();
        let own = matches!(scene.input.solver, Solver::Tree(_));
        let touches = contact::wanted(&scene.model, &scene.input) || scene.model.flesh().is_some();
        if !own || touches || published().takes(&scene.model, &scene.input).is_err() {
            continue; // another solver's scene, one with loops, or one with contacts or flesh, which have their own tests
        }
        for substeps in [1, 4] {
            let reference = go_on(&scene, substeps, scene.state.clone(), STEPS, false);
            check(&scene, substeps, reference);
        }
    }
}

#[test]
fn a_second_run_has_the_same_bits() {
    for_every_scene(|scene, substeps, reference| {
        // The scene too is made anew.
        let again = Scene::parse(&scene.name).unwrap();
        let state = go_on(&again, substeps, again.state.clone(), STEPS, false);
        assert_eq!(state.hash(), reference.hash(), "{}, {substeps} parts", scene.name);
        println!("{:16} {substeps} parts: {:016x}", scene.name, state.hash());
    });
}

#[test]
fn a_fresh_work_at_every_step_has_the_same_bits() {
    for_every_scene(|scene, substeps, reference| {
        let state = go_on(scene, substeps, scene.state.clone(), STEPS, true);
        assert_eq!(state.hash(), reference.hash(), "{}, {substeps} parts", scene.name);
    });
}

#[test]
fn a_work_used_for_other_things_has_the_same_bits() {
    // Other schemes, other inputs and a failed step leave nothing behind.
    for_every_scene(|scene, substeps, reference| {
        let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
        let mut state = scene.state.clone();
        for n in 0..STEPS {
            let mut other = state.clone();
            scene.direct(state.time, &mut input);
            (input.solver, input.substeps) = (solver_for(scene), substeps);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            let scheme = [TreeScheme::Exact, TreeScheme::Acceleration, TreeScheme::Published][n % 3];
            input.solver = with_scheme(scheme);
            if n % 5 == 0 {
                other.bodies.iter_mut().for_each(|b| b.velocity.linear *= 1e200);
            }
            let _ = step(&scene.model, &input, &mut other, &mut work);
        }
        assert_eq!(state.hash(), reference.hash(), "{}, {substeps} parts", scene.name);
    });
}

#[test]
fn a_clone_resumed_in_the_middle_has_the_same_bits() {
    for_every_scene(|scene, substeps, reference| {
        let snapshot = go_on(scene, substeps, scene.state.clone(), STEPS / 2, false).clone();
        let state = go_on(scene, substeps, snapshot, STEPS - STEPS / 2, false);
        assert_eq!(state.hash(), reference.hash(), "{}, {substeps} parts", scene.name);
    });
}

#[test]
fn the_hash_tells_a_single_bit() {
    // So that the other tests can fail.
    let scene = Scene::parse("robot").unwrap();
    let hash = scene.state.hash();
    let flip = |x: &mut f64| *x = f64::from_bits(x.to_bits() ^ 1);
    let change = |change: &dyn Fn(&mut State)| {
        let mut state = scene.state.clone();
        change(&mut state);
        assert_ne!(state.hash(), hash);
    };
    for k in 0..scene.state.bodies.len() {
        for axis in 0..3 {
            change(&|s| flip(&mut s.bodies[k].position[axis]));
            change(&|s| flip(&mut s.bodies[k].velocity.linear[axis]));
            change(&|s| flip(&mut s.bodies[k].velocity.angular[axis]));
        }
        change(&|s| flip(&mut s.bodies[k].orientation.x));
        change(&|s| flip(&mut s.bodies[k].orientation.y));
        change(&|s| flip(&mut s.bodies[k].orientation.z));
        change(&|s| flip(&mut s.bodies[k].orientation.w));
    }
    (0..scene.state.joints.len()).for_each(|k| change(&|s| flip(&mut s.joints[k].angle)));
    change(&|s| flip(&mut s.time));
    change(&|s| flip(&mut s.last_dt));
}

#[test]
fn another_gravity_is_another_run() {
    for_every_scene(|scene, substeps, reference| {
        let mut other = scene.clone();
        other.input.gravity.y *= 1.0 + 1e-9;
        let state = go_on(&other, substeps, scene.state.clone(), STEPS, false);
        assert_ne!(state.hash(), reference.hash(), "{}, {substeps} parts", scene.name);
    });
}
