//! What joints and bodies carry, as every solver reports it: statics in closed form, sums over flesh, a pendulum in motion, and numbers that are always finite.

use supple::glam::{DQuat, DVec3};
use supple::solver::Impulses;
use supple::*;

const G: f64 = 9.81;

/// Every choice but the explicit form, which explodes on stiff joints.
fn choices() -> Vec<(&'static str, Solver)> {
    let all = Solver::choices();
    all.iter().filter(|c| c.name != "tree:acceleration").map(|c| (c.name, c.solver)).collect()
}

/// Runs until `seconds`; none where the solver refuses the model.
fn run(model: &Model, input: &Input, seconds: f64) -> Option<(State, Work)> {
    input.solver.takes(model, input).ok()?;
    let (mut state, mut work) = (model.start(), Work::new(model));
    work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
    for _ in 0..(seconds / input.dt).round() as usize {
        step(model, input, &mut state, &mut work).unwrap();
    }
    Some((state, work))
}

/// A bone of 0.4 m and about 1.4 kg that a hinge about Z holds at the world, `along` from there.
fn bone(along: DVec3, hold: impl Fn(JointSpec) -> JointSpec) -> Model {
    let mut builder = ModelBuilder::new();
    let turned = DQuat::from_rotation_arc(DVec3::X, along);
    let bone = BodySpec::new("bone").shape(Shape::cuboid(0.4, 0.06, 0.06), 1000.0).pose(Pose::new(turned, along * 0.2));
    let id = builder.body(bone);
    builder.joint(hold(JointSpec::new("joint", JointMask::HINGE, id, BodyRef::World).at(DVec3::ZERO).axis(DVec3::Z)));
    builder.build().unwrap()
}

/// The moment about the hinge that holds a bone up where it is.
fn holding(model: &Model, state: &State) -> f64 {
    model.mass() * G * state.bodies[0].position.x
}

fn assert_near(found: DVec3, wanted: DVec3, within: f64, what: &str) {
    assert!((found - wanted).length() <= within, "{what}: {found}, not {wanted}");
}

#[test]
fn springs_limits_and_motors_at_rest_carry_what_statics_ask() {
    let spring = RotationSpring { stiffness: 30.0, damping: 3.0, ..RotationSpring::default() };
    let limits = |stops| Limits { angle: Some(Range { min: -0.1, max: 0.1 }), stops, ..Limits::default() };
    let motor = Motor { stiffness: 60.0, damping: 6.0, max: 100.0, integral: 0.0 };
    let rubs = RotationSpring { damping: 1.0, ..RotationSpring::default() };
    type Part = fn(&JointLoad) -> Wrench;
    let cases: [(&str, Model, Part); 4] = [
        ("spring", bone(DVec3::X, |joint| joint.rotation_spring(spring)), |load| load.spring),
        ("soft limit", bone(DVec3::X, |joint| joint.limits(limits(Stops::Soft)).rotation_spring(rubs)), |load| {
            load.limit
        }),
        ("hard limit", bone(DVec3::X, |joint| joint.limits(limits(Stops::Hard)).rotation_spring(rubs)), |load| {
            load.limit
        }),
        ("motor", bone(DVec3::X, |joint| joint.motor(motor)), |load| load.motor),
    ];
    for (what, model, part) in &cases {
        for (name, solver) in choices() {
            let mut input = Input { solver, ..Input::default() };
            if model.joints()[0].motor.is_some() {
                input.joint_mut(model, 0).servo = Some(ServoTarget::Position { position: 0.0, rate: 0.0 });
            }
            let Some((state, work)) = run(model, &input, 8.0) else { continue };
            let load = work.joint_loads()[0];
            let (weight, moment) = (DVec3::Y * (model.mass() * G), holding(model, &state));
            let what = format!("{name}, {what}");
            assert_near(load.constraint.force, weight, 2e-3 * weight.length(), &what);
            assert_near(part(&load).torque, DVec3::Z * moment, 5e-3 * moment, &what);
            // What the hinge lets go of is held by that alone: about its axis the constraint does nothing.
            let lever = -state.bodies[0].position;
            let about = load.constraint.torque - lever.cross(load.constraint.force);
            assert!(about.z.abs() < 5e-3 * moment, "{what}: {about}");
            let rest = load.total().torque - load.constraint.torque - part(&load).torque;
            assert!(rest.length() < 5e-3 * moment, "{what}: {rest}");
        }
    }
}

/// A hinged bone that rests with its tip on the ground, in a part of which the hinge is a little higher than that: half of its weight each.
#[test]
fn what_rests_on_the_ground_is_shared_by_joint_and_contact() {
    let (length, radius, high) = (0.4f64, 0.03, 0.05);
    let tilt = ((high - radius) / length).asin();
    let turned = DQuat::from_rotation_z(-tilt);
    let hinge = DVec3::Y * high;
    let mut builder = ModelBuilder::new();
    let pose = Pose::new(turned, hinge + turned * DVec3::X * (0.5 * length));
    let bone = builder.body(BodySpec::new("bone").shape(Shape::Capsule { length, radius }, 1000.0).pose(pose));
    builder.joint(JointSpec::new("joint", JointMask::HINGE, bone, BodyRef::World).at(hinge).axis(DVec3::Z));
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(Material::new(0.0, 0.0)));
    let model = builder.build().unwrap();
    for (name, solver) in choices() {
        let input = Input { solver, contacts: Contacts::Obstacles, ..Input::default() };
        let Some((_, work)) = run(&model, &input, 3.0) else { continue };
        let weight = model.mass() * G;
        let (joint, body) = (work.joint_loads()[0].total(), work.body_loads()[0].contact);
        assert_near(joint.force, DVec3::Y * (0.5 * weight), 0.01 * weight, &format!("{name}, joint"));
        assert_near(body.force, DVec3::Y * (0.5 * weight), 0.01 * weight, &format!("{name}, floor"));
        let moment = joint.torque + body.torque;
        assert!(moment.length() < 5e-3 * weight * length, "{name}: {moment}");
    }
}

/// What has touched and touches no more carries nothing of it, though the way by rows goes on (a loop).
#[test]
fn loads_of_a_contact_end_with_it() {
    let mut builder = ModelBuilder::new();
    let shape = Shape::cuboid(0.2, 0.2, 0.2);
    let a = builder.body(BodySpec::new("a").shape(shape.clone(), 500.0).pose(Pose::at(DVec3::Y * 0.1)));
    let b = builder.body(BodySpec::new("b").shape(shape, 500.0).pose(Pose::at(DVec3::new(0.5, 0.1, 0.0))));
    for (name, at) in [("one", DVec3::new(0.25, 0.1, -0.1)), ("two", DVec3::new(0.25, 0.1, 0.1))] {
        builder.joint(JointSpec::new(name, JointMask::BALL, b, a).at(at));
    }
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    let model = builder.build().unwrap();
    for (name, solver) in choices() {
        let mut input = Input { solver, contacts: Contacts::Obstacles, ..Input::default() };
        let Some((mut state, mut work)) = run(&model, &input, 0.5) else { continue };
        let weight = model.mass() * G;
        let carried: DVec3 = work.body_loads().iter().map(|load| load.contact.force).sum();
        assert_near(carried, DVec3::Y * weight, 0.02 * weight, name);
        input.gravity = DVec3::Y * G;
        for _ in 0..30 {
            step(&model, &input, &mut state, &mut work).unwrap();
        }
        assert!(state.bodies[0].position.y > 0.5, "{name}: it rises");
        assert!(work.body_loads().iter().all(|load| load.contact == Wrench::ZERO), "{name}: {:?}", work.body_loads());
    }
}

/// Flesh that is coupled loosely is reported as flesh that is solved together is.
#[test]
fn loose_flesh_is_reported_as_flesh() {
    let scene = Scene::parse("worm").unwrap();
    let found = [FleshCoupling::Together, FleshCoupling::Loose].map(|flesh| {
        let mut input = Input { flesh, contacts: Contacts::Off, dt: 1.0 / 1920.0, ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
        for _ in 0..96 {
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
        }
        work.body_loads().iter().map(|load| load.flesh.force.length()).fold(0.0, f64::max)
    });
    assert!(found[1] > 0.5 * found[0] && found[1] < 2.0 * found[0], "{found:?}");
}

/// The pull in a pendulum: what gravity and the way round ask.
#[test]
fn a_swinging_pendulum_pulls_as_its_motion_asks() {
    let model = bone(DVec3::X, |joint| joint);
    for (name, solver) in choices() {
        let input = Input { solver, dt: 1.0 / 960.0, ..Input::default() };
        let Some((state, work)) = run(&model, &input, 0.3) else { continue };
        let body = state.bodies[0];
        let inward = -body.position.normalize();
        let speed = body.velocity.linear.length();
        let pull = model.mass() * (speed * speed / body.position.length() - inward.dot(DVec3::NEG_Y) * G);
        let found = work.joint_loads()[0].constraint.force.dot(inward);
        assert!((found - pull).abs() < 0.01 * pull, "{name}: {found} N, not {pull}");
    }
}

/// A four-bar in motion: what the roots carry is the weight of all and their gain of momentum, however the loop is closed.
#[test]
fn joints_of_a_loop_carry_its_weight() {
    let scene = Scene::parse("fourbars:2").unwrap();
    let mut seen = 0;
    for (name, solver) in choices() {
        let input = Input { solver, dt: 1.0 / 480.0, ..scene.input.clone() };
        if solver.takes(&scene.model, &input).is_err() {
            continue;
        }
        seen += 1;
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
        let momentum = |state: &State| -> DVec3 {
            scene.model.bodies().iter().zip(&state.bodies).map(|(b, s)| s.velocity.linear * b.mass).sum()
        };
        let (mut given, mut gained) = (DVec3::ZERO, DVec3::ZERO);
        for k in 0..120 {
            let before = momentum(&state);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            let roots = scene.model.joints().iter().zip(work.joint_loads()).filter(|(joint, _)| joint.parent.is_none());
            let pull: DVec3 = roots.map(|(_, load)| load.total().force).sum();
            if k >= 20 {
                given += (pull + input.gravity * scene.model.mass()) * input.dt;
                gained += momentum(&state) - before;
            }
        }
        let scale = scene.model.mass() * G * 100.0 * input.dt;
        assert_near(given, gained, 5e-3 * scale, name);
    }
    assert!(seen >= 6, "{seen}");
}

/// In the air flesh and bones act on one another alone. What flesh does to all bones together is their gain of momentum less their weight and what
/// holds them in the world, whatever joints do among themselves; and what it does to each bone every solver finds alike.
#[test]
fn flesh_does_to_bones_what_they_gain_beside_their_weight() {
    for name in ["worm", "tube"] {
        let scene = Scene::parse(name).unwrap();
        let mut known: Option<Vec<BodyLoad>> = None;
        for (choice, solver) in choices() {
            let mut input = Input { solver, contacts: Contacts::Off, dt: 1.0 / 960.0, ..scene.input.clone() };
            if solver.takes(&scene.model, &input).is_err() {
                continue;
            }
            let momentum = |state: &State| -> DVec3 {
                scene.model.bodies().iter().zip(&state.bodies).map(|(b, s)| s.velocity.linear * b.mass).sum()
            };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
            let mut before = DVec3::ZERO;
            for _ in 0..96 {
                before = momentum(&state);
                scene.direct(state.time, &mut input);
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
            let loads = work.body_loads();
            let weight = input.gravity * scene.model.bodies().iter().map(|body| body.mass).sum::<f64>();
            let gain = (momentum(&state) - before) / work.impulse_time();
            let sum: DVec3 = loads.iter().map(|load| load.flesh.force).sum();
            let roots = scene.model.joints().iter().zip(work.joint_loads()).filter(|(joint, _)| joint.parent.is_none());
            let held: DVec3 = roots.map(|(_, load)| load.total().force).sum();
            let most = loads.iter().map(|load| load.flesh.force.length()).fold(0.0, f64::max);
            if solver.name() != "reduced" {
                assert_near(sum, gain - weight - held, 1e-6 * weight.length(), &format!("{name} {choice}"));
            }
            let known = known.get_or_insert_with(|| loads.to_vec());
            let off = loads.iter().zip(known.iter()).map(|(a, b)| (a.flesh.force - b.flesh.force).length());
            let off = off.fold(0.0, f64::max);
            println!("{name} {choice}: {off} of {most}");
            assert!(off < 0.05 * most, "{name} {choice}: off by {off} N of {most}");
        }
    }
}

#[test]
fn loads_are_finite_in_every_scene_and_solver() {
    for scene in ["hand", "robot", "ragdoll", "car", "walker", "grasp", "stack:3", "worm", "finger", "tube", "snake"] {
        let scene = Scene::parse(scene).unwrap();
        for (name, solver) in choices() {
            let mut input = Input { solver, ..scene.input.clone() };
            if solver.takes(&scene.model, &input).is_err() {
                continue;
            }
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            work.watch(Watch { impulses: Impulses::Keep, ..Watch::default() });
            for _ in 0..3 {
                scene.direct(state.time, &mut input);
                if step(&scene.model, &input, &mut state, &mut work).is_err() {
                    break;
                }
                assert_eq!(work.joint_loads().len(), scene.model.joints().len());
                for load in work.joint_loads() {
                    assert!(load.total().is_finite(), "{} {name}: {load:?}", scene.name);
                }
                for load in work.body_loads() {
                    assert!(load.contact.is_finite() && load.flesh.is_finite(), "{} {name}: {load:?}", scene.name);
                }
            }
        }
    }
}
