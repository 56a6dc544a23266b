//! Sleep: what is at rest stands still at no cost, and wakes by input, touch or a moved support, at the same step in every replay.

use supple::glam::DVec3;
use supple::*;

const FALL: usize = 1200;

/// The ragdoll on its stairs, allowed to sleep.
fn ragdoll() -> (Scene, Input) {
    let scene = Scene::parse("ragdoll").unwrap();
    let input = Input { sleep: true, ..scene.input.clone() };
    (scene, input)
}

fn run(model: &Model, input: &Input, state: &mut State, work: &mut Work, steps: usize) -> Report {
    let mut report = Report::default();
    for _ in 0..steps {
        report = step(model, input, state, work).unwrap();
    }
    report
}

/// A ragdoll that has fallen, and sleeps.
fn asleep() -> (Scene, Input, State, Work) {
    let (scene, input) = ragdoll();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let report = run(&scene.model, &input, &mut state, &mut work, FALL);
    assert_eq!(report.asleep as usize, scene.model.bodies().len(), "it lies still within twenty seconds");
    (scene, input, state, work)
}

fn fastest(state: &State) -> f64 {
    state.bodies.iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max)
}

#[test]
fn what_sleeps_stands_still_and_is_not_solved() {
    let (scene, input, mut state, mut work) = asleep();
    let before = state.clone();
    let report = run(&scene.model, &input, &mut state, &mut work, 100);
    assert_eq!((report.substeps, report.factorisations, report.solves), (0, 0, 0));
    assert!(report.max_joint_gap < 1e-8 && fastest(&state) == 0.0);
    assert_eq!(state.bodies, before.bodies);
    assert!((state.time - before.time - 100.0 * input.dt).abs() < 1e-9);
}

/// The damping of tissue depends on how fast a joint turns, so that it is another in every step.
#[test]
fn damping_that_changes_wakes_nothing() {
    let (scene, mut input) = ragdoll();
    input.joints.resize(scene.model.joints().len(), JointInput::default());
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    run(&scene.model, &input, &mut state, &mut work, FALL);
    for k in 1..60 {
        input.damping_scale = 1.0 / f64::from(k);
        input.joints.iter_mut().for_each(|joint| joint.damping_scale = f64::from(k));
        let report = run(&scene.model, &input, &mut state, &mut work, 1);
        assert_eq!(report.asleep as usize, scene.model.bodies().len(), "step {k}");
    }
}

/// A change of the input, or of the state by hand.
type Change = fn(&Scene, &mut Input, &mut State);

#[test]
fn whatever_is_asked_wakes() {
    let head = |scene: &Scene| scene.model.bodies().len() - 1;
    let changes: [(&str, Change); 6] = [
        ("gravity", |_, input, _| input.gravity = DVec3::new(12.0, -2.0, 0.0)),
        ("a drag", |scene, input, state| {
            let (body, target) = (BodyId(0), state.bodies[0].position + DVec3::Y);
            let drag =
                Drag { body, point: DVec3::ZERO, target, target_velocity: DVec3::ZERO, stiffness: 3e3, damping: 100.0 };
            assert!(!scene.model.bodies().is_empty());
            input.drags.push(drag);
        }),
        ("a force", |_, input, _| {
            let wrench = Wrench { force: DVec3::new(0.0, 2e3, 0.0), torque: DVec3::ZERO };
            input.wrenches.push((BodyId(0), wrench));
        }),
        ("a support that moves away", |scene, input, _| {
            let away =
                |o: &Obstacle| Some(Target { pose: Pose::at(o.pose.translation - DVec3::Y), velocity: Twist::ZERO });
            input.obstacles = scene.model.obstacles().iter().map(away).collect();
        }),
        ("a velocity by hand", |_, _, state| state.bodies[0].velocity.linear.y = 2.0),
        ("a place by hand", |_, _, state| state.bodies.iter_mut().for_each(|body| body.position.y += 0.5)),
    ];
    for (name, change) in changes {
        let (scene, mut input, mut state, mut work) = asleep();
        change(&scene, &mut input, &mut state);
        let report = run(&scene.model, &input, &mut state, &mut work, 6);
        assert_eq!(report.asleep, 0, "{name}");
        assert!(fastest(&state) > 0.05, "{name}: {} m/s, body {}", fastest(&state), head(&scene));
    }
}

/// Two stacks, and a ball that falls on one of them.
fn stacks() -> Scene {
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    for (k, x) in [0.0, -6.0].into_iter().enumerate() {
        for level in 0..3 {
            let at = Pose::at(DVec3::new(x, 0.1 + 0.2 * f64::from(level), 0.0));
            builder.body(BodySpec::new(format!("{k} {level}")).shape(Shape::cuboid(0.2, 0.2, 0.2), 500.0).pose(at));
        }
    }
    let high = Pose::at(DVec3::new(0.17, 12.0, 0.0));
    builder.body(BodySpec::new("ball").shape(Shape::sphere(0.1), 1000.0).pose(high));
    let model = builder.build().unwrap();
    let input = Input { sleep: true, contacts: Contacts::All, ..Input::default() };
    let state = model.start();
    Scene::from_parts("stacks".to_owned(), model, state, input)
}

#[test]
fn islands_sleep_by_themselves_and_wake_by_touch() {
    let Scene { model, mut state, input, .. } = stacks();
    let mut work = Work::new(&model);
    let (mut first_nap, mut woken, mut moved) = (None, None, 0.0f64);
    for k in 0..180 {
        let places = |state: &State| state.bodies[3..6].iter().map(BodyState::pose).collect::<Vec<_>>();
        let before = places(&state);
        let report = step(&model, &input, &mut state, &mut work).unwrap();
        assert!(report.max_joint_gap < 1e-9);
        if report.asleep == 6 {
            first_nap.get_or_insert(k);
            assert_eq!(places(&state), before);
        }
        if first_nap.is_some() && report.asleep == 3 {
            woken.get_or_insert(k);
        }
        let strike = state.bodies[..3].iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max);
        if woken.is_some() {
            moved = moved.max(strike);
        }
        if woken.is_some() {
            assert_eq!(places(&state), before, "what is not touched sleeps on");
        }
    }
    // From rest on, half a second; the ball falls 11.3 m to the upper side of the stack.
    let (nap, woken) = (first_nap.unwrap(), woken.unwrap());
    assert!((28..45).contains(&nap), "{nap}");
    let impact = (2.0 * 11.3f64 / 9.81).sqrt() * 60.0;
    assert!((f64::from(woken) - impact).abs() < 3.0, "woken at {woken}, met at {impact}");
    // what was struck has moved
    assert!(moved > 1e-3, "{moved} m/s");
}

#[test]
fn replays_sleep_and_wake_at_the_same_steps() {
    let Scene { model, state: start, input, .. } = stacks();
    let (mut once, mut work) = (start.clone(), Work::new(&model));
    let mut hashes = Vec::new();
    let mut middle = None;
    for k in 0..150 {
        step(&model, &input, &mut once, &mut work).unwrap();
        hashes.push(once.hash());
        if k == 60 {
            middle = Some(once.clone());
        }
    }
    // from a snapshot in which bodies sleep, with fresh scratch
    let (mut again, mut work) = (middle.unwrap(), Work::new(&model));
    assert!(again.rest.iter().filter(|rest| rest.seconds >= 0.5).count() == 6);
    for hash in &hashes[61..] {
        step(&model, &input, &mut again, &mut work).unwrap();
        assert_eq!(again.hash(), *hash);
    }
}

/// A pole that stands on its end is slow for seconds before it falls: it must not be caught.
#[test]
fn what_topples_slowly_is_not_stopped() {
    let mut builder = ModelBuilder::new();
    let pole = builder.body(
        BodySpec::new("pole").shape(Shape::Capsule { length: 1.0, radius: 0.02 }, 500.0).pose(Pose::at(DVec3::X * 0.5)),
    );
    builder.joint(JointSpec::new("foot", JointMask::HINGE, pole, BodyRef::World).axis(DVec3::Z));
    let model = builder.build().unwrap();
    let input = Input { sleep: true, gravity: DVec3::new(-9.81, 0.0, 0.0), ..Input::default() };
    let (mut state, mut work) = (model.start(), Work::new(&model));
    // as slow as rounding allows: 1e-9 rad/s
    let spin = DVec3::Z * 1e-9;
    state.bodies[0].velocity = Twist { linear: spin.cross(DVec3::X * 0.5), angular: spin };
    let (mut awake_and_slow, mut most) = (0, 0.0f64);
    for _ in 0..480 {
        let report = step(&model, &input, &mut state, &mut work).unwrap();
        assert_eq!(report.asleep, 0, "at {} s", state.time);
        awake_and_slow += usize::from(fastest(&state) < 1e-3);
        most = most.max(fastest(&state));
    }
    assert!(awake_and_slow > 120 && most > 1.0, "{awake_and_slow} {most}");
}

#[test]
fn sleep_changes_nothing_before_it_begins_and_ends_when_it_is_switched_off() {
    let (scene, input) = ragdoll();
    let (mut with, mut without) = (scene.state.clone(), scene.state.clone());
    let (mut a, mut b) = (Work::new(&scene.model), Work::new(&scene.model));
    run(&scene.model, &input, &mut with, &mut a, 60);
    let plain = Input { sleep: false, ..input.clone() };
    run(&scene.model, &plain, &mut without, &mut b, 60);
    assert_eq!(with.bodies, without.bodies);
    let (scene, input, mut state, mut work) = asleep();
    let report = run(&scene.model, &Input { sleep: false, ..input }, &mut state, &mut work, 1);
    assert!(report.asleep == 0 && state.rest.is_empty() && report.substeps > 0);
}

/// Lanes know nothing of sleep: who may sleep goes alone, with the same bits.
#[test]
fn a_crowd_sleeps_as_each_does_alone() {
    let scene = Scene::parse("chain:3,damping=5").unwrap();
    let input = Input { sleep: true, ..scene.input.clone() };
    let (mut crowd, mut alone) = (vec![scene.state.clone(); 4], scene.state.clone());
    let (mut a, mut b) = (Work::new(&scene.model), Work::new(&scene.model));
    let mut slept = 0;
    for _ in 0..1200 {
        let report = step_crowd(&scene.model, std::slice::from_ref(&input), &mut crowd, &mut a).unwrap();
        slept = slept.max(report.asleep);
        step(&scene.model, &input, &mut alone, &mut b).unwrap();
        assert!(crowd.iter().all(|state| state.hash() == alone.hash()), "at {} s", alone.time);
    }
    assert_eq!(slept, 12);
    // and wakes when sleep is switched off
    let awake = [Input { sleep: false, ..input }];
    step_crowd(&scene.model, &awake, &mut crowd, &mut a).unwrap();
    step(&scene.model, &awake[0], &mut alone, &mut b).unwrap();
    assert!(crowd.iter().all(|state| state.hash() == alone.hash() && state.rest.is_empty()));
}

/// What a Work tells beside the report is of the state that was stepped, or empty: never of another one.
#[test]
fn contacts_of_a_sleeping_state_are_its_own() {
    let (scene, input, mut state, mut work) = asleep();
    let own = work.contacts().len();
    assert!(own > 0);
    run(&scene.model, &input, &mut state, &mut work, 3);
    assert_eq!(work.contacts().len(), own);
    let mut other = scene.state.clone();
    run(&scene.model, &input, &mut other, &mut work, 1);
    run(&scene.model, &input, &mut state, &mut work, 1);
    assert!(work.contacts().is_empty());
}
