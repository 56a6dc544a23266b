//! What a `Watch` notes, and that it changes nothing: times by stage, joint impulses, and where a step had trouble.

use std::cell::Cell;
use supple::glam::DVec3;
use supple::solver::Impulses;
use supple::*;

thread_local! {
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

/// A clock that counts how often it is read: the same in every run.
fn ticks() -> u64 {
    TICKS.set(TICKS.get() + 1);
    TICKS.get()
}

const EVERYTHING: Watch = Watch { clock: Some(ticks), impulses: Impulses::Keep };

#[test]
fn watching_changes_no_bit() {
    for choice in Solver::choices().iter().filter(|choice| choice.name != "tree:acceleration") {
        for name in ["hand", "robot", "tree:31"] {
            let scene = Scene::parse(name).unwrap();
            let mut hashes = Vec::new();
            for watch in [Watch::default(), EVERYTHING] {
                let (mut state, mut input, mut work) =
                    (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
                input.solver = choice.solver;
                work.watch(watch);
                let mut reports = Vec::new();
                for _ in 0..30 {
                    scene.direct(state.time, &mut input);
                    reports.push(step(&scene.model, &input, &mut state, &mut work).unwrap());
                }
                hashes.push((state.hash(), reports));
            }
            assert_eq!(hashes[0], hashes[1], "{} on {name}", choice.name);
        }
    }
}

#[test]
fn times_are_zero_without_a_clock_and_add_up_with_one() {
    let scene = Scene::parse("hand").unwrap();
    for choice in Solver::choices() {
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.solver = choice.solver;
        input.dt = 1e-5; // at which even the explicit form is calm
        scene.direct(0.0, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        assert_eq!(work.stage_nanos(), StageNanos::default());

        work.watch(EVERYTHING);
        let before = TICKS.get();
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        let readings = TICKS.get() - before;
        // Every reading after the first closes a stage, one tick long.
        assert_eq!(work.stage_nanos().iter().sum::<u64>(), readings - 1, "{}", choice.name);
        let stages: &[Stage] = match choice.solver {
            Solver::Tree(_) => &[Stage::Check, Stage::Factor, Stage::Solve, Stage::Measure],
            _ => &[Stage::Check, Stage::Solve],
        };
        for &stage in stages {
            assert!(work.stage_nanos()[stage as usize] > 0, "{}: {}", choice.name, stage.name());
        }
    }
}

/// The topmost joint of a chain at rest carries the weight of all of it: by the impulse over its time, in parts of any length.
#[test]
fn impulses_over_their_time_are_the_forces() {
    let scene = Scene::parse("chain:8").unwrap();
    let weight = 9.81 * scene.model.mass();
    let kept = |name: &str| name.starts_with("tree:") && name != "tree:acceleration";
    for choice in Solver::choices().iter().filter(|choice| kept(choice.name)) {
        for substeps in [1, 3] {
            let (mut state, mut work) = (hanging(&scene.model), Work::new(&scene.model));
            let input = Input { solver: choice.solver, substeps, torques: false, ..Input::default() };
            work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
            for _ in 0..3 {
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
            assert_eq!(work.joint_impulses().len(), scene.model.joints().len());
            assert!((work.impulse_time() - input.dt / f64::from(substeps)).abs() < 1e-15);
            let top = scene.model.joints().iter().position(|joint| joint.parent.is_none()).unwrap();
            let force = work.joint_impulses()[top].force / work.impulse_time();
            // At rest, so only rounding in the pose and what the schemes leave of it.
            assert!((force - DVec3::Y * weight).length() < 1e-6 * weight, "{}: {force}", choice.name);
        }
    }
}

/// The chain of a scene hanging straight down, at rest.
fn hanging(model: &Model) -> State {
    let mut state = model.start();
    let down = supple::glam::DQuat::from_rotation_arc(DVec3::X, DVec3::NEG_Y);
    let top = model.joints().iter().find(|joint| joint.parent.is_none()).unwrap().parent_from_joint.translation;
    for body in &mut state.bodies {
        *body = BodyState::at_rest(Pose::new(down * body.orientation, top + down * (body.position - top)));
    }
    state.recount_turns(model);
    state
}

#[test]
fn the_body_in_trouble_is_named() {
    let (model, mut state, mut work) = spinning(40.0);
    let report = step(&model, &Input::default(), &mut state, &mut work).unwrap();
    assert!(report.rotation_halvings > 0);
    let trouble = report.trouble.expect("it was divided");
    assert_eq!((model.body(trouble.body).name.as_str(), trouble.cause), ("tip", Cause::Turning));

    let (model, mut state, mut work) = spinning(0.0);
    let report = step(&model, &Input::default(), &mut state, &mut work).unwrap();
    assert_eq!((report.substeps, report.trouble), (1, None));
}

/// Two links, the second of which turns about its joint at this rate [rad/s].
fn spinning(rate: f64) -> (Model, State, Work) {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for (i, name) in ["root", "tip"].into_iter().enumerate() {
        let x = 0.1 * i as f64;
        let pose = Pose::at(DVec3::new(x + 0.05, 0.0, 0.0));
        let body = builder.body(BodySpec::new(name).shape(Shape::capsule(0.08, 0.02), 1000.0).pose(pose));
        builder.joint(JointSpec::new(format!("{name} joint"), JointMask::BALL, body, last).at(DVec3::X * x));
        last = BodyRef::Id(body);
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    let omega = DVec3::Y * rate;
    state.bodies[1].velocity = Twist::new(omega.cross(DVec3::X * 0.05), omega);
    let work = Work::new(&model);
    (model, state, work)
}

/// Loose chains with a heavy tip, at frames too long for them: whatever the step counts, it names the worst of.
#[test]
fn the_trouble_named_is_the_worst_counted() {
    let mut seen = [0; 2];
    for name in ["whip:30,tip_mass=1e4", "whip:10,tip_mass=1e3"] {
        let scene = Scene::parse(name).unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.dt = 1.0 / 30.0;
        for _ in 0..90 {
            scene.direct(state.time, &mut input);
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
            let cause = report.trouble.map(|trouble| trouble.cause);
            assert_eq!(cause.is_some(), report.rotation_halvings + report.fallbacks > 0, "{report:?}");
            assert_eq!(cause == Some(Cause::Turning), report.rotation_halvings > 0 && report.fallbacks == 0);
            assert_eq!(cause == Some(Cause::Resort), report.resorts > 0);
            seen[0] += u32::from(cause == Some(Cause::Turning));
            seen[1] += u32::from(cause > Some(Cause::Turning));
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "both kinds must occur: {seen:?}");
}
