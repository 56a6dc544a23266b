//! Steps that are divided: what is asked for at a part's end is what is asked for there, and nothing is passed unseen.

use glam::{DQuat, DVec3};
use supple::maths::rotation::exp;
use supple::model::Stops;
use supple::*;

/// A body on a tracker, one on a drag, and an arm with a servo; beside them one that may be gripped.
fn model() -> Model {
    let mut builder = ModelBuilder::new();
    for (k, name) in ["tracked", "dragged", "arm", "held"].into_iter().enumerate() {
        let at = Pose::at(DVec3::X * k as f64);
        builder.body(BodySpec::new(name).shape(Shape::cuboid(0.3, 0.2, 0.25), 100.0).pose(at));
    }
    builder.tracker(TrackerSpec {
        name: "tracker".into(),
        body: "tracked".into(),
        point: DVec3::new(0.05, 0.0, 0.1),
        stiffness: 30.0,
        damping: 2.0,
        rotation_stiffness: 1.0,
        rotation_damping: 0.05,
    });
    let motor = Motor { stiffness: 2.0, damping: 0.1, max: 100.0, integral: 0.5 };
    builder.joint(JointSpec::new("elbow", JointMask::HINGE, "arm", BodyRef::World).at(DVec3::X * 2.0).motor(motor));
    builder.build().unwrap()
}

/// What is asked for at the end of a step that ends at `time`.
fn asked(model: &Model, solver: Solver, grip: bool, dt: f64, time: f64) -> Input {
    let (v, w) = (DVec3::new(1.0, 2.0, -0.5), DVec3::new(0.3, -0.8, 0.5));
    let mut input = Input { dt, solver, gravity: DVec3::ZERO, ..Input::default() };
    let pose = Pose::new(exp(w * time), v * time);
    input.targets = vec![Some(Target { pose, velocity: Twist::new(v, w) })];
    input.drags = vec![Drag {
        body: BodyId(1),
        point: DVec3::new(0.1, 0.05, 0.0),
        target: DVec3::X + v * time,
        target_velocity: v,
        stiffness: 40.0,
        damping: 1.0,
    }];
    input.joint_mut(model, 0).servo = Some(ServoTarget::Position { position: 0.9 * time, rate: 0.9 });
    if grip {
        input.grips =
            vec![Grip { body: BodyId(3), point: DVec3::ZERO, target: DVec3::X * 3.0, rotation: Some(DQuat::IDENTITY) }];
    }
    input
}

#[test]
fn a_step_in_parts_is_as_many_short_steps() {
    // Parts of a step see the targets where they are at their own ends: eight parts are eight steps, to the rounding of the targets' places.
    const PARTS: u32 = 8;
    let model = model();
    let solvers = [
        ("midpoint", Solver::default(), false),
        ("with a grip", Solver::default(), true),
        ("published", Solver::Tree(Tree { scheme: TreeScheme::Published, ..Tree::default() }), false),
        ("exact", Solver::Tree(Tree { scheme: TreeScheme::Exact, ..Tree::default() }), false),
        ("impulse", Solver::Impulse(Impulse::default()), false),
        ("assembly", Solver::Assembly(Assembly::default()), false),
        ("reduced", Solver::Reduced(Reduced::default()), false),
    ];
    for (name, solver, grip) in solvers {
        let (mut whole, mut short) = (model.start(), model.start());
        let (mut work, mut work_short) = (Work::new(&model), Work::new(&model));
        let dt = 1.0 / 30.0;
        let mut off = 0.0f64;
        for n in 0..15 {
            let end = f64::from(n + 1) * dt;
            let input = Input { substeps: PARTS, ..asked(&model, solver, grip, dt, end) };
            step(&model, &input, &mut whole, &mut work).unwrap();
            for k in 1..=PARTS {
                let h = dt / f64::from(PARTS);
                let input = asked(&model, solver, grip, h, end - f64::from(PARTS - k) * h);
                step(&model, &input, &mut short, &mut work_short).unwrap();
            }
            for (a, b) in whole.bodies.iter().zip(&short.bodies) {
                off = off.max(a.position.distance(b.position)).max((a.velocity.linear - b.velocity.linear).length());
                off = off.max((a.velocity.angular - b.velocity.angular).length());
            }
        }
        println!("{name}: {off:.1e}");
        let moved = whole.bodies[1].position.distance(DVec3::X);
        assert!(moved > 0.1, "{name}: nothing moved");
        // Newton's tolerance in angles over h; aiming at the step's end in every part is off by centimetres.
        assert!(off < 1e-6, "{name}: off by {off:e}");
    }
}

#[test]
fn a_hard_limit_is_not_passed_from_afar_within_one_step() {
    // At rest 0.25 rad before the stop, farther than what counts as near, and thrown at it: ½ α h² is half a radian.
    for (mask, limits) in [
        (JointMask::HINGE, Limits { angle: Some(Range::new(-1.0, 0.25)), ..Limits::default() }),
        (JointMask::BALL, Limits { angle: Some(Range::new(-1.0, 0.25)), ..Limits::default() }),
        (
            JointMask::BALL,
            Limits { swing: Some(model::SwingEllipse { about_y: 0.25, about_z: 0.4 }), ..Limits::default() },
        ),
    ] {
        let mut builder = ModelBuilder::new();
        let body = builder.body(BodySpec::new("arm").shape(Shape::cuboid(0.2, 0.2, 0.2), 1000.0));
        let limits = Limits { stops: Stops::Hard, ..limits };
        builder.joint(JointSpec::new("stop", mask, body, BodyRef::World).limits(limits));
        let model = builder.build().unwrap();
        let axis = if limits.swing.is_some() { DVec3::Y } else { DVec3::X };
        let inertia = model.bodies()[0].inertia.x_axis.x;
        let mut input = Input { gravity: DVec3::ZERO, dt: 1.0 / 60.0, ..Input::default() };
        input.wrenches = vec![(body, Wrench::new(DVec3::ZERO, axis * (3600.0 * inertia)))];
        let (mut state, mut work) = (model.start(), Work::new(&model));
        for n in 0..20 {
            step(&model, &input, &mut state, &mut work).unwrap();
            let mut passed = 0.0f64;
            forces::stops(&model, &state, |stop| passed = passed.max(-stop.gap));
            assert!(passed < 1e-6, "{mask:?}, step {n}: passed by {passed} rad");
        }
        let mut left = f64::INFINITY;
        forces::stops(&model, &state, |stop| left = left.min(stop.gap));
        assert!(left.abs() < 1e-6, "{mask:?}: {left} rad from the stop");
    }
}

#[test]
fn the_report_of_a_crowd_tells_of_flesh_as_that_of_one_does() {
    let scene = Scene::parse("worm").unwrap();
    let mut one = scene.state.clone();
    let alone = step(&scene.model, &scene.input, &mut one, &mut Work::new(&scene.model)).unwrap();
    let mut crowd = vec![scene.state.clone(), scene.state.clone()];
    let inputs = [scene.input.clone()];
    let both = step_crowd(&scene.model, &inputs, &mut crowd, &mut Work::new(&scene.model)).unwrap();
    assert!(alone.flesh_newton > 0, "{alone:?}");
    assert_eq!((both.flesh_newton, both.control), (alone.flesh_newton, alone.control));
    assert_eq!(both.rules, alone.rules.plus(alone.rules));
}
