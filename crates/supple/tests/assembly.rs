//! Solver `assembly`: against numbers computed elsewhere, against dense solutions, and what is claimed of it.

mod common;
mod support;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use supple::forces::{self, Derivatives};
use supple::maths::block::{from_twist, from_wrench};
use supple::maths::rotation::{exp, log, turned_inertia};
use supple::solver::assembly::{Cut, Linear, Scheme};
use supple::*;
use support::{apart, block};

fn oracle(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/oracles.json")).unwrap();
    all[name].clone()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn vector(v: &Value) -> DVec3 {
    DVec3::from_slice(&numbers(v))
}

fn quaternion(v: &Value) -> DQuat {
    let q = numbers(v);
    DQuat::from_xyzw(q[1], q[2], q[3], q[0]).normalize()
}

const LINEARS: [Linear; 3] = [Linear::Factored, Linear::Plain, Linear::Biconjugate];

/// Settings that iterate to the end.
fn thorough(linear: Linear) -> Assembly {
    Assembly { outer: 60, inner: 2000, tolerance: 1e-10, linear, ..Assembly::default() }
}

fn solver(settings: Assembly) -> Solver {
    Solver::Assembly(settings)
}

/// The three bodies of an oracle, held at both ends.
fn oracle_model(o: &Value) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    for (i, body) in o["bodies"].as_array().unwrap().iter().enumerate() {
        let inertia = DMat3::from_diagonal(vector(&body["I_body"]));
        let pose = Pose::new(quaternion(&body["q_wxyz"]), vector(&body["x"]));
        let spec = BodySpec::new(format!("{i}")).mass(body["m"].as_f64().unwrap());
        builder.body(spec.inertia(inertia, DVec3::ZERO).pose(pose));
    }
    for (i, joint) in o["joints"].as_array().unwrap().iter().enumerate() {
        let body = |key: &str| joint[key].as_i64().unwrap();
        let reference = |k: i64| if k < 0 { BodyRef::World } else { BodyId(k as u32).into() };
        let spec = JointSpec::new(format!("{i}"), JointMask::BALL, reference(body("a")), reference(body("b")));
        builder.joint(spec.frames(Pose::at(vector(&joint["la"])), Pose::at(vector(&joint["lb"]))));
    }
    let model = builder.build().unwrap();
    let state = model.start();
    (model, state)
}

/// Largest part of a joint error, as the oracles count it.
fn largest_part(model: &Model, state: &State) -> f64 {
    let parts = |joint: &Joint| {
        let errors = joint.errors(&model.sides(joint, state));
        errors.iter().map(|row| row.error.abs()).fold(0.0, f64::max)
    };
    model.joints().iter().map(parts).fold(0.0, f64::max)
}

#[test]
fn assembly_follows_the_oracles() {
    for name in ["faure_assembly", "faure_assembly_small"] {
        let o = oracle(name);
        let (model, start) = oracle_model(&o);
        let mut work = Work::new(&model);
        let expected: Vec<f64> = o["max_error_per_iteration"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().parse().unwrap())
            .collect();
        for (outer, &wanted) in expected.iter().enumerate() {
            let mut state = start.clone();
            let settings =
                Assembly { outer: outer as u32, tolerance: 1e-14, cut: Cut::EachBody, ..Assembly::default() };
            assemble(&model, &settings, &[], &mut state, &mut work).unwrap();
            let error = largest_part(&model, &state);
            println!("{name} {outer}: {error:.6e}, wanted {wanted:.6e}");
            if outer == 1 {
                // The first iteration of both raises the sum of squares; one that is the last is halved until it does not.
                assert!(squares(&model, &state) <= squares(&model, &start));
                continue;
            }
            // The oracles are given with seven digits, in metres.
            assert!((error - wanted).abs() < 1e-6 * wanted + 1e-11, "{name} after {outer}");
        }
        let mut state = start.clone();
        let settings = Assembly { cut: Cut::EachBody, ..thorough(Linear::Factored) };
        let report = assemble(&model, &settings, &[], &mut state, &mut work).unwrap();
        assert!(report.error_after < 1e-10);
        for (i, body) in state.bodies.iter().enumerate() {
            assert!((body.position - vector(&o["x_final"][i])).length() < 1e-8, "{name} {i}");
            assert!(1.0 - body.orientation.dot(quaternion(&o["q_final"][i])).abs() < 1e-8, "{name} {i}");
        }
    }
}

/// A closed model of random joints, `loops` of them closing loops, its bodies thrown about by up to `far` \[m, 3 rad\].
fn broken(seed: u64, loops: usize, far: f64) -> (Model, State) {
    let mut random = Random::new(seed);
    let count = 2 + random.below(20);
    let mut builder = ModelBuilder::new();
    let mut poses: Vec<Pose> = Vec::new();
    let id = |i: usize| BodyId(i as u32);
    for i in 0..count {
        let mask = JointMask::PRESETS[random.below(9)].1;
        let parent = (i > 0).then(|| random.below(i));
        let (frame_a, frame_b, relative) = (random.pose(), random.pose(), random.allowed(mask));
        let base = parent.map_or(Pose::IDENTITY, |p| poses[p]);
        poses.push(base.then(frame_b).then(relative).then(frame_a.inverse()));
        let size = DVec3::new(random.range(0.05, 0.4), random.range(0.05, 0.4), random.range(0.05, 0.4));
        builder.body(BodySpec::new(format!("{i}")).shape(Shape::Cuboid { size }, 1000.0).pose(poses[i]));
        if i > 0 || random.chance(0.5) {
            let holder = parent.map_or(BodyRef::World, |p| id(p).into());
            builder.joint(JointSpec::new(format!("{i}"), mask, id(i), holder).frames(frame_a, frame_b));
        }
    }
    for k in 0..loops {
        let (a, b) = (random.below(count), random.below(count));
        if a != b {
            let mask = JointMask::PRESETS[random.below(9)].1;
            let (frame_b, relative) = (random.pose(), random.allowed(mask));
            let frame_a = poses[a].inverse().then(poses[b].then(frame_b).then(relative));
            builder.joint(JointSpec::new(format!("loop {k}"), mask, id(a), id(b)).frames(frame_a, frame_b));
        }
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    for body in &mut state.bodies {
        body.position += random.vector(far);
        body.orientation = (random.rotation(3.0 * far) * body.orientation).normalize();
    }
    state.recount_turns(&model);
    (model, state)
}

#[test]
fn random_broken_poses_come_together() {
    // Of 200, how many are closed to 1e-8 after at most 100 iterations, and how many iterations these take in the mean. Loops of
    // random joints from far away may be in a place from which no small motion closes them (a chain folded the wrong way).
    for (loops, far, at_least, iterations) in
        [(0, 0.1, 200, 5.0), (0, 1.0, 199, 9.0), (3, 0.05, 199, 5.0), (3, 0.3, 195, 10.0), (3, 1.0, 150, 20.0)]
    {
        let (mut closed, mut outer, mut inner) = (0, 0, 0);
        for seed in 0..200 {
            let (model, mut state) = broken(seed, loops, far);
            let settings = Assembly { outer: 100, tolerance: 1e-8, ..Assembly::default() };
            let before = squares(&model, &state);
            let report = assemble(&model, &settings, &[], &mut state, &mut Work::new(&model)).unwrap();
            assert!(squares(&model, &state) <= before, "seed {seed}: worse than before");
            let gap = measure::joint_gap(&model, &state);
            if report.error_after <= 1e-8 {
                assert!(gap.distance < 2e-8 && gap.tilt < 2e-8, "seed {seed}: {gap:?}");
                (closed, outer, inner) = (closed + 1, outer + report.outer, inner + report.inner);
            } else {
                assert!(report.joints.iter().any(|j| j.largest() > 1e-8), "seed {seed}: no joint is told to be open");
            }
        }
        let (outer, inner) = (f64::from(outer) / f64::from(closed), f64::from(inner) / f64::from(closed));
        println!("{loops} loops, {far} m: {closed} of 200 closed, in {outer:.1} iterations, {inner:.1} linear ones");
        assert!(closed >= at_least && outer < iterations);
    }
}

/// Sum of squared errors, rotations by the radius of gyration of the two bodies.
fn squares(model: &Model, state: &State) -> f64 {
    let each = |joint: &Joint| {
        let length = length(model, joint);
        let errors = joint.errors(&model.sides(joint, state));
        let translations = joint.mask.held_translations();
        let scaled = |(k, error): (usize, f64)| if k < translations { error } else { error * length };
        errors.iter().map(|row| row.error).enumerate().map(scaled).map(|x| x * x).sum::<f64>()
    };
    model.joints().iter().map(each).sum()
}

/// What a radian counts as \[m\].
fn length(model: &Model, joint: &Joint) -> f64 {
    let mobility = |body: BodyId| {
        let (body, inverse) = (model.body(body), model.body(body).inertia.inverse());
        (1.0 / body.mass, (inverse.x_axis.x + inverse.y_axis.y + inverse.z_axis.z) / 3.0)
    };
    let (a, b) = (mobility(joint.child), joint.parent.map_or((0.0, 0.0), mobility));
    ((a.0 + b.0) / (a.1 + b.1)).sqrt()
}

/// A block held at three points that its own three points do not fit: nine rows of rank six.
fn contradictory() -> Model {
    let mut builder = ModelBuilder::new();
    builder.body(block("block", DVec3::new(0.1, -0.2, 0.3)));
    let points = [DVec3::new(0.3, 0.0, 0.1), DVec3::new(-0.2, 0.25, 0.0), DVec3::new(0.0, -0.3, -0.2)];
    let places = [DVec3::new(0.6, 0.2, 0.0), DVec3::new(-0.1, 0.5, 0.3), DVec3::new(0.1, -0.6, -0.1)];
    for (i, (point, place)) in points.into_iter().zip(places).enumerate() {
        let joint = JointSpec::new(format!("{i}"), JointMask::BALL, "block", BodyRef::World);
        builder.joint(joint.frames(Pose::at(point), Pose::at(place)));
    }
    builder.build().unwrap()
}

/// The rigid motion that brings `points` nearest to `places`, and what is left (Kabsch, by a singular value decomposition).
fn nearest_fit(points: &[DVec3], places: &[DVec3]) -> f64 {
    let centre = |list: &[DVec3]| list.iter().sum::<DVec3>() / list.len() as f64;
    let (p0, q0) = (centre(points), centre(places));
    let mut h = nalgebra::Matrix3::zeros();
    for (p, q) in points.iter().zip(places) {
        let (p, q) = ((*p - p0).to_array(), (*q - q0).to_array());
        h += nalgebra::Vector3::from(q) * nalgebra::Vector3::from(p).transpose();
    }
    let svd = h.svd(true, true);
    let (u, v) = (svd.u.unwrap(), svd.v_t.unwrap());
    let sign = nalgebra::Matrix3::from_diagonal(&nalgebra::Vector3::new(1.0, 1.0, (u * v).determinant().signum()));
    let r = u * sign * v;
    let rest = |p: &DVec3, q: &DVec3| {
        let turned = r * nalgebra::Vector3::from((*p - p0).to_array());
        (nalgebra::Vector3::from((*q - q0).to_array()) - turned).norm_squared()
    };
    points.iter().zip(places).map(|(p, q)| rest(p, q)).sum::<f64>().sqrt()
}

#[test]
fn contradictory_joints_end_at_the_least_squares() {
    let model = contradictory();
    let joint = |f: fn(&Joint) -> DVec3| model.joints().iter().map(f).collect::<Vec<_>>();
    let best = nearest_fit(&joint(|j| j.child_from_joint.translation), &joint(|j| j.parent_from_joint.translation));
    for linear in LINEARS {
        let mut state = model.start();
        let settings = Assembly { outer: 500, ..thorough(linear) };
        let report = assemble(&model, &settings, &[], &mut state, &mut Work::new(&model)).unwrap();
        let found = squares(&model, &state).sqrt();
        println!("{linear:?}: residual {found:.9} m, best possible {best:.9} m, {report:?}");
        // Both are at a minimum, flat to second order in what is left of the slope.
        assert!(best > 0.1 && (found - best).abs() < 1e-9);
        let told: f64 = report.joints.iter().map(|j| j.distance * j.distance).sum();
        assert!((told.sqrt() - found).abs() < 1e-12, "the residuals of the joints add up");
    }
}

#[test]
fn redundant_joints_close() {
    // Each joint of a broken chain three times.
    let mut builder = ModelBuilder::new();
    let mut random = Random::new(5);
    for i in 0..10 {
        let pose = Pose::new(random.rotation(0.5), DVec3::X * (0.3 * f64::from(i)) + random.vector(0.2));
        builder.body(BodySpec::new(format!("{i}")).shape(Shape::cuboid(0.3, 0.1, 0.1), 1000.0).pose(pose));
        for again in 0..3 {
            let parent = if i == 0 { BodyRef::World } else { BodyId(i as u32 - 1).into() };
            let spec = JointSpec::new(format!("{i} {again}"), JointMask::HINGE, BodyId(i as u32), parent);
            builder
                .joint(spec.frames(Pose::at(DVec3::X * -0.15), Pose::at(DVec3::X * if i == 0 { 0.0 } else { 0.15 })));
        }
    }
    let model = builder.build().unwrap();
    for linear in LINEARS {
        let mut state = model.start();
        let report = assemble(&model, &thorough(linear), &[], &mut state, &mut Work::new(&model)).unwrap();
        assert!(report.error_before > 0.1 && report.error_after < 1e-10, "{linear:?}: {report:?}");
    }
}

#[test]
fn truncation_keeps_wild_corrections_in_hand() {
    // Iterations to 1e-10 m. Without truncation the second takes fewer than in the study behind the formulas (7): damped iterations come in.
    for (name, expected) in [("faure_assembly", [8, 6, 14]), ("faure_assembly_small", [6, 6, 7])] {
        let (model, start) = oracle_model(&oracle(name));
        let mut found = Vec::new();
        for (cut, truncation) in [(Cut::EachBody, 0.8), (Cut::Whole, 0.8), (Cut::EachBody, f64::INFINITY)] {
            let mut state = start.clone();
            let settings = Assembly { cut, truncation, ..thorough(Linear::Factored) };
            let report = assemble(&model, &settings, &[], &mut state, &mut Work::new(&model)).unwrap();
            assert!(report.error_after < 1e-10, "{name} {cut:?} {truncation}");
            found.push(report.outer);
        }
        println!("{name}: each body {}, whole {}, none {}; expected {expected:?}", found[0], found[1], found[2]);
        assert_eq!(found[..2], expected[..2], "{name}");
    }
    // Cut as a whole, the error falls at every iteration.
    for name in ["faure_assembly", "faure_assembly_small"] {
        let (model, start) = oracle_model(&oracle(name));
        let mut last = f64::INFINITY;
        for outer in 0..8 {
            let mut state = start.clone();
            let settings = Assembly { cut: Cut::Whole, outer, ..thorough(Linear::Factored) };
            let report = assemble(&model, &settings, &[], &mut state, &mut Work::new(&model)).unwrap();
            assert!(report.error_after < last || report.error_after < 1e-10, "{name} after {outer}");
            last = report.error_after;
        }
    }
}

/// One body without joints.
fn alone(moments: DVec3) -> Model {
    let mut builder = ModelBuilder::new();
    builder.body(BodySpec::new("body").mass(2.0).inertia(DMat3::from_diagonal(moments), DVec3::ZERO));
    builder.build().unwrap()
}

#[test]
fn free_fall_is_exact_at_any_steps() {
    let o = oracle("stoermer");
    let fall = &o["free_fall"];
    let number = |v: &Value, key: &str| v[key].as_f64().unwrap();
    let model = alone(DVec3::ONE);
    let (v0, a) = (number(fall, "v0"), number(fall, "a"));
    let start = || {
        let mut state = model.start();
        state.bodies[0].velocity.linear = DVec3::Y * v0;
        state
    };
    let mut input = Input { solver: solver(Assembly::default()), gravity: DVec3::Y * a, ..Input::default() };
    let mut work = Work::new(&model);
    let mut state = start();
    input.dt = number(fall, "dt");
    for _ in 0..30 {
        step(&model, &input, &mut state, &mut work).unwrap();
    }
    assert!((state.bodies[0].position.y - number(fall, "x_correct")).abs() < 1e-4); // as many digits as the oracle has
    // Steps that double, and steps of random length: exact to rounding of a few metres.
    let doubling = &o["dt_doubling"];
    let (dt1, dt2) = (number(doubling, "dt1"), number(doubling, "dt2"));
    let mut random = Random::new(3);
    let jitter: Vec<f64> = (0..40).map(|_| random.range(1.0 / 60.0, 1.0 / 20.0)).collect();
    for steps in [[vec![dt1; 30], vec![dt2; 30]].concat(), jitter] {
        let mut state = start();
        for dt in steps {
            input.dt = dt;
            step(&model, &input, &mut state, &mut work).unwrap();
            let (t, body) = (state.time, &state.bodies[0]);
            assert!((body.position.y - (v0 * t + 0.5 * a * t * t)).abs() < 1e-12);
            assert!((body.velocity.linear.y - (v0 + a * t)).abs() < 1e-12);
        }
    }
}

#[test]
fn a_free_body_tumbles_as_it_should() {
    // About the middle axis, a little off. The gyroscopic torque is taken in its stable form, of first order; without it the momentum would turn
    // with the body.
    let model = alone(DVec3::new(0.02, 0.03, 0.05));
    let mut errors = Vec::new();
    for dt in [1.0 / 60.0, 1.0 / 120.0, 1.0 / 240.0] {
        let mut state = model.start();
        state.bodies[0].velocity.angular = DVec3::new(0.05, 4.0, 0.02);
        let input = Input { solver: solver(Assembly::default()), gravity: DVec3::ZERO, dt, ..Input::default() };
        let (first, mut work) = (measure::momentum(&model, &state).angular, Work::new(&model));
        let mut off = 0.0f64;
        while state.time < 2.0 {
            step(&model, &input, &mut state, &mut work).unwrap();
            off = off.max((measure::momentum(&model, &state).angular - first).length() / first.length());
        }
        errors.push(off);
    }
    println!("angular momentum off by {}", support::list(&errors));
    let orders = support::orders(&errors);
    assert!(errors[0] < 2e-4 && orders.iter().all(|o| (0.8..2.5).contains(o)), "{errors:?} {orders:?}");
}

/// Five links without weight, bent and moving against one another.
fn floating_chain() -> (Model, State) {
    let mut builder = ModelBuilder::new();
    for i in 0..5 {
        let pose = Pose::at(DVec3::X * (0.2 * i as f64));
        builder.body(BodySpec::new(format!("{i}")).shape(Shape::cuboid(0.2, 0.05, 0.05), 1000.0).pose(pose));
        if i > 0 {
            let spec = JointSpec::new(format!("{i}"), JointMask::BALL, BodyId(i as u32), BodyId(i as u32 - 1));
            builder.joint(spec.at(DVec3::X * (0.2 * i as f64 - 0.1)));
        }
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    let mut joint = DVec3::new(0.1, 0.2, 0.0); // velocity of the upper end
    for (i, body) in state.bodies.iter_mut().enumerate() {
        let angular = DVec3::new(0.0, 3.0 * (1.7 * i as f64).sin(), 2.0 * (2.3 * i as f64 + 1.0).cos());
        let half = angular.cross(DVec3::X * 0.1);
        body.velocity = Twist::new(joint + half, angular);
        joint += 2.0 * half;
    }
    (model, state)
}

#[test]
fn linear_momentum_is_kept_and_motion_within_is_damped() {
    // The paper says that energy and momentum stay to rounding. Linear momentum does; the rest is lost, since the rows are those of the
    // predicted pose (docs/papers.md): of the energy a fifth or more within 5 s, of the angular momentum a few hundredths.
    let (model, start) = floating_chain();
    for (dt, linear) in [(1.0 / 30.0, Linear::Factored), (1.0 / 120.0, Linear::Factored), (1.0 / 30.0, Linear::Plain)] {
        let mut state = start.clone();
        let settings = Assembly { tolerance: 1e-10, inner: 500, linear, ..Assembly::default() };
        let input = Input { solver: solver(settings), gravity: DVec3::ZERO, dt, ..Input::default() };
        let (mut work, first) = (Work::new(&model), measure::momentum(&model, &start));
        let energy = |state: &State| measure::energy(&model, &input, state).kinetic;
        let mut most = 0.0f64;
        while state.time < 5.0 {
            step(&model, &input, &mut state, &mut work).unwrap();
            most = most.max(energy(&state) / energy(&start));
        }
        let last = measure::momentum(&model, &state);
        let linear_off = (last.linear - first.linear).length() / first.linear.length();
        let angular_off = (last.angular - first.angular).length() / first.angular.length();
        let (lost, drift) = (1.0 - energy(&state) / energy(&start), linear_off);
        println!(
            "dt {dt:.4} {linear:?}: linear {drift:.1e}, angular {angular_off:.3}, energy lost {:.0} %",
            100.0 * lost
        );
        assert!(linear_off < 1e-10, "{linear_off:e}");
        assert!((1e-3..0.4).contains(&angular_off) && (0.05..0.95).contains(&lost) && most < 1.02, "{most}");
    }
}

#[test]
fn the_particle_stays_on_its_circle() {
    let scene = Scene::parse("circle").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    for _ in 0..120 {
        step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        assert!((state.bodies[0].position.length() - 1.0).abs() < 2e-6, "off the circle");
    }
    let speed = state.bodies[0].velocity.linear.length();
    println!("speed after 2 s: {speed} of 2 m/s");
    // By symmetry each step is the same: what the correction takes in one it takes in all, (ω h)²/2 at most of the speed.
    assert!((1.5..2.001).contains(&speed));
}

#[test]
fn finer_steps_come_nearer_to_the_motion() {
    // Against solver tree with short steps, over half a second of a stiff chain, a pendulum and a bent loose chain.
    for name in ["pendulum", "double_pendulum", "chain:6,stiffness=2"] {
        let scene = Scene::parse(name).unwrap();
        let reference = support::play(&scene, Solver::default(), 1e-3, 0.5);
        let errors: Vec<f64> = [1.0 / 60.0, 1.0 / 120.0, 1.0 / 240.0, 1.0 / 480.0]
            .map(|dt| {
                apart(
                    &support::play(&scene, solver(Assembly { tolerance: 1e-9, ..Assembly::default() }), dt, 0.5),
                    &reference,
                )
            })
            .to_vec();
        let orders = support::orders(&errors);
        println!("{name}: off by {}, orders {orders:.2?}", support::list(&errors));
        assert!(orders.iter().all(|o| (0.7..2.5).contains(o)), "{name}: {errors:?} {orders:?}");
    }
}

#[test]
fn stiff_characters_run_at_frame_size_steps() {
    for name in ["hand", "robot", "strand", "plant", "chain:40,stiffness=1e6,damping=1"] {
        let scene = Scene::parse(name).unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.solver = solver(Assembly::default());
        let size = scene.model.mass() * 9.81; // J for a metre of height
        let first = measure::energy(&scene.model, &input, &state).total();
        let (mut gap, mut most) = (0.0f64, f64::NEG_INFINITY);
        for n in 0..600 {
            scene.direct(state.time, &mut input);
            let report =
                step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name} {n}: {e}"));
            assert_eq!(report.fallbacks, 0, "{name}, step {n}");
            gap = gap.max(report.residual);
            most = most.max(measure::energy(&scene.model, &input, &state).total() - first);
        }
        println!("{name}: residual {gap:.1e} at most, energy {most:.3} J above the start, {size:.2} J a metre");
        assert!(gap < 1e-5, "{name}: {gap:e}");
        assert!(most < 0.2 * size + 2.0, "{name}: {most}"); // what hands, wind and drags put in stays small
    }
}

#[test]
fn driven_joints_go_as_told() {
    // A hinge, a slider, a ball and a universal joint, each in a chain that hangs and swings: rates of all free directions are prescribed.
    for (mask, rates) in [
        (JointMask::HINGE, vec![2.0]),
        (JointMask::PRISMATIC, vec![-0.3]),
        (JointMask::BALL, vec![1.0, -0.5, 0.8]),
        (JointMask::UNIVERSAL, vec![0.7, -1.1]),
        (JointMask::CYLINDRICAL, vec![0.2, 3.0]),
    ] {
        let mut builder = ModelBuilder::new();
        for i in 0..3 {
            builder.body(block(&format!("{i}"), DVec3::X * (0.4 * f64::from(i))));
            let parent = if i == 0 { BodyRef::World } else { BodyId(i as u32 - 1).into() };
            let kind = if i == 1 { mask } else { JointMask::BALL };
            let at = DVec3::X * (0.4 * f64::from(i) - 0.2);
            builder.joint(JointSpec::new(format!("{i}"), kind, BodyId(i as u32), parent).at(at));
        }
        let model = builder.build().unwrap();
        let (mut state, mut work) = (model.start(), Work::new(&model));
        let mut input =
            Input { solver: solver(Assembly { tolerance: 1e-10, ..Assembly::default() }), ..Input::default() };
        let mut asked = [0.0; 6];
        asked[..rates.len()].copy_from_slice(&rates);
        input.joint_mut(&model, 1).drive = Drive::Velocity(asked);
        let positions = |state: &State| {
            let coordinates = supple::model::Coordinates::of(&model, state);
            coordinates.positions_of(JointId(1)).to_vec()
        };
        let first = positions(&state);
        for _ in 0..30 {
            let report = step(&model, &input, &mut state, &mut work).unwrap();
            assert!(report.residual < 1e-10, "{}: {report:?}", mask.name());
        }
        let mut wanted = first;
        for _ in 0..30 {
            mask.advance(&mut wanted, &rates, input.dt);
        }
        for (k, (found, wanted)) in positions(&state).into_iter().zip(wanted).enumerate() {
            // Thirty times what the tolerance leaves open.
            assert!((found - wanted).abs() < 3e-9, "{} {k}: {found}, wanted {wanted}", mask.name());
        }
    }
}

#[test]
fn what_cannot_be_driven_is_told() {
    let model = support::on_world(JointMask::HINGE, DVec3::X, |joint| joint);
    let mut input = Input { solver: solver(Assembly::default()), ..Input::default() };
    input.joint_mut(&model, 0).drive = Drive::Acceleration([1.0; 6]);
    let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
    assert_eq!(error.code(), "step/unsupported");
    input.joint_mut(&model, 0).drive = Drive::Forces;
    input.grips.push(Grip { body: BodyId(0), point: DVec3::ZERO, target: DVec3::X, rotation: None });
    for scheme in [Scheme::Projected, Scheme::Baumgarte] {
        input.solver = solver(Assembly { scheme, ..Assembly::default() });
        let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
        assert_eq!(error.code(), "step/unsupported", "{scheme:?}");
    }
}

fn posing() -> Solver {
    solver(Assembly { scheme: Scheme::Posing, ..Assembly::default() })
}

#[test]
fn posing_reaches_what_can_be_reached() {
    let scene = Scene::parse("robot").unwrap();
    let (model, hand) = (&scene.model, scene.model.find_body("left_hand").unwrap());
    let mut input = Input { solver: posing(), ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let start = state.bodies[hand.index()];
    for (way, turn) in
        [(DVec3::new(0.1, 0.15, 0.1), None), (DVec3::new(0.05, 0.1, 0.12), Some(DVec3::new(0.2, -0.1, 0.1)))]
    {
        let target = start.position + way;
        let rotation = turn.map(|turn| (exp(turn) * start.orientation).normalize());
        input.grips = vec![Grip { body: hand, point: DVec3::ZERO, target, rotation }];
        let mut residual = f64::INFINITY;
        for _ in 0..20 {
            residual = step(model, &input, &mut state, &mut work).unwrap().residual;
        }
        let found = state.bodies[hand.index()];
        let gap = measure::joint_gap(model, &state);
        println!("{way}: residual {residual:.1e}, gap {:.1e}", gap.distance);
        assert!((found.position - target).length() < 2e-6 && residual < 2e-6, "{residual:e}");
        if let Some(rotation) = rotation {
            assert!(log(found.orientation * rotation.conjugate()).length() < 2e-6);
        }
        assert!(gap.distance < 1e-6 && found.velocity == Twist::ZERO);
    }
    // Nothing is beyond its limits, and the feet have not moved: they were not asked to.
    for (k, joint) in model.joints().iter().enumerate() {
        let excess = joint.limits.angle.map_or(0.0, |range| range.excess(state.joints[k].angle));
        assert!(excess.abs() < 1e-5, "{}: {excess}", joint.name);
    }
}

#[test]
fn posing_stretches_towards_what_cannot_be_reached() {
    // A chain of ten links from the origin: pulled to a point 2 m away it becomes straight and stays closed.
    let scene = Scene::parse("chain:10").unwrap();
    let tip = BodyId(9);
    let target = DVec3::new(1.2, 1.6, 0.0);
    let grip = Grip { body: tip, point: DVec3::X * 0.05, target, rotation: None };
    let input = Input { solver: posing(), grips: vec![grip], ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let mut last = f64::INFINITY;
    for n in 0..200 {
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        assert!(report.residual <= last * (1.0 + 1e-9), "frame {n}: {} after {last}", report.residual);
        last = report.residual;
        assert!(report.max_joint_gap < 1e-6, "frame {n}: gap {:e}", report.max_joint_gap);
    }
    println!("left {last}, the chain is 1 m long and the target 2 m away");
    // The last bit of stretching gains only the square of what is left to straighten.
    assert!((last - 1.0).abs() < 1e-4, "{last}");
}

#[test]
fn the_error_shrinks_while_nothing_moves() {
    // A lattice led by a corner with the published small budget: an error is left while the hand moves, and falls from frame to frame
    // once it rests.
    let scene = Scene::parse("lattice").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let settings = Assembly {
        scheme: Scheme::Posing,
        outer: 2,
        inner: 5,
        linear: Linear::Plain,
        cut: Cut::EachBody,
        ..Assembly::default()
    };
    input.solver = solver(settings);
    let mut moving = 0.0f64;
    for _ in 0..121 {
        scene.direct(state.time, &mut input);
        moving = moving.max(step(&scene.model, &input, &mut state, &mut work).unwrap().residual);
    }
    let sum = |state: &State| {
        let grip =
            |g: &Grip| (state.bodies[g.body.index()].pose().transform_point(g.point) - g.target).length_squared();
        squares(&scene.model, state) + input.grips.iter().map(grip).sum::<f64>()
    };
    let (first, mut last) = (sum(&state), f64::INFINITY);
    for frame in 0..300 {
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        let now = sum(&state);
        assert!(report.corrections <= 2 && report.iterations <= 10, "{report:?}");
        assert!(now <= last || now < 1e-12, "frame {frame}: {now:e} after {last:e}");
        last = now;
    }
    println!("while moving {moving:.1e} m; sum of squares {first:.1e} at rest, {last:.1e} after 300 frames");
    assert!(moving > 1e-4 && last < 1e-4 * first);
}

#[test]
fn solvers_take_over_from_one_another_without_a_jump() {
    for name in ["robot", "whip:10", "hand"] {
        let scene = Scene::parse(name).unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.dt = 1.0 / 240.0;
        let (mut before, mut jump, mut usual) = (state.clone(), 0.0f64, 0.0f64);
        for n in 0..240 {
            let changes = n > 0 && n % 40 == 0;
            input.solver = if n / 40 % 2 == 0 { Solver::default() } else { solver(Assembly::default()) };
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            let moved = apart(&state, &before);
            if changes {
                jump = jump.max(moved);
            } else {
                usual = usual.max(moved);
            }
            before = state.clone();
        }
        println!("{name}: {jump:.1e} m in a step that changes the solver, {usual:.1e} m in others");
        // Nothing falls farther in a step than in others, but for half of what gravity adds in one: ½ g h² = 8.5e-5 m.
        assert!(jump < 1.1 * usual + 1e-4, "{name}");
    }
}

#[test]
fn baselines_hold_small_chains() {
    // What they are kept for: projected velocities hold the joints at any step; Baumgarte's terms need short ones.
    let scene = Scene::parse("chain:5,stiffness=0").unwrap();
    for (scheme, dt, allowed) in [(Scheme::Projected, 1.0 / 60.0, 1e-6), (Scheme::Baumgarte, 1e-3, 2e-3)] {
        let mut input = scene.input.clone();
        (input.dt, input.solver) = (dt, solver(Assembly { scheme, inner: 200, ..Assembly::default() }));
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        let first = measure::energy(&scene.model, &input, &state).total();
        let (mut gap, mut gain) = (0.0f64, f64::NEG_INFINITY);
        while state.time < 2.0 {
            gap = gap.max(step(&scene.model, &input, &mut state, &mut work).unwrap().max_joint_gap);
            gain = gain.max(measure::energy(&scene.model, &input, &state).total() - first);
        }
        println!("{scheme:?}: gap {gap:.1e} m, energy at most {gain:.1e} J above the start");
        assert!(gap < allowed && gain < 0.05, "{scheme:?}: {gap:e} {gain:e}"); // the chain releases 1.2 J
    }
}

/// The poses after one part of a step with one linearisation, by dense matrices. With `N = M + h² K + h C`:
///
/// ```text
/// N D = M (h v + ½ h² M⁻¹ f) + h² W,      δ = L (J L)⁺ (−C),   L Lᵀ = N⁻¹
/// ```
/// J and C at the pose that D leads to.
fn dense_step(model: &Model, input: &Input, state: &State) -> Vec<Pose> {
    let (h, n) = (input.dt, 6 * model.bodies().len());
    let (mut mass, mut resisting, mut right) = (DMatrix::zeros(n, n), DMatrix::zeros(n, n), DVector::zeros(n));
    let mut free = DVector::zeros(n);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let inertia = turned_inertia(s.orientation, body.inertia);
        for r in 0..3 {
            mass[(6 * i + r, 6 * i + r)] = body.mass;
            for c in 0..3 {
                mass[(6 * i + 3 + r, 6 * i + 3 + c)] = inertia.col(c)[r];
            }
        }
        let q = s.orientation;
        let spun = q * forces::gyroscopic(body.inertia, q.conjugate() * s.velocity.angular, 0.5 * h);
        let mut wrench = Wrench::new(input.gravity * body.mass, DVec3::ZERO);
        for (_, w) in input.wrenches.iter().filter(|(b, _)| b.index() == i) {
            wrench += *w;
        }
        let turn = spun * h + inertia.inverse() * wrench.torque * (0.5 * h * h);
        let way = s.velocity.linear * h + wrench.force / body.mass * (0.5 * h * h);
        free.rows_mut(6 * i, 6).copy_from_slice(&from_twist(Twist::new(way, turn)));
    }
    resisting += &mass;
    right += &mass * &free;
    let mut has_springs = false;
    forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
        has_springs = true;
        let (k, c, w) = (acting.force.block(1.0, 0.0), acting.force.block(0.0, 1.0), acting.force.wrenches());
        let sides = [Some(acting.a), acting.b];
        let blocks = [[(&k.aa, &c.aa), (&k.ab, &c.ab)], [(&k.ba, &c.ba), (&k.bb, &c.bb)]];
        for (s, row) in sides.iter().enumerate() {
            let Some(row) = row else { continue };
            for i in 0..6 {
                right[6 * row.index() + i] += h * h * from_wrench(w[s])[i];
                for (t, col) in sides.iter().enumerate() {
                    let Some(col) = col else { continue };
                    for j in 0..6 {
                        let (k, c) = blocks[s][t];
                        resisting[(6 * row.index() + i, 6 * col.index() + j)] += h * h * k.get(i, j) + h * c.get(i, j);
                    }
                }
            }
        }
    });
    let factor = resisting.cholesky().expect("positive definite");
    let apply = |poses: &mut [Pose], d: &DVector<f64>| {
        for (i, pose) in poses.iter_mut().enumerate() {
            let (way, turn) = (&d.as_slice()[6 * i..6 * i + 3], &d.as_slice()[6 * i + 3..6 * i + 6]);
            pose.translation += DVec3::from_slice(way);
            pose.rotation = (exp(DVec3::from_slice(turn)) * pose.rotation).normalize();
        }
    };
    let count: usize = model.joints().iter().map(|joint| joint.mask.rows()).sum();
    let rows_at = |poses: &[Pose]| {
        let (mut rows, mut wanted, mut k) = (DMatrix::zeros(count, n), DVector::zeros(count), 0);
        for joint in model.joints() {
            let b = joint.parent.map_or(Pose::IDENTITY, |p| poses[p.index()]);
            let translations = joint.mask.held_translations();
            for (i, row) in joint.hold().errors(poses[joint.child.index()], b).iter().enumerate() {
                let scale = if i < translations { 1.0 } else { length(model, joint) };
                for (body, row) in [(Some(joint.child), row.a), (joint.parent, row.b)] {
                    let Some(body) = body else { continue };
                    for (j, x) in from_twist(row).into_iter().enumerate() {
                        rows[(k, 6 * body.index() + j)] = scale * x;
                    }
                }
                wanted[k] = -scale * row.error;
                k += 1;
            }
        }
        (rows, wanted)
    };
    // The least motion in N that rows ask for
    let l = factor.l().try_inverse().unwrap().transpose();
    let least = |rows: DMatrix<f64>, wanted: DVector<f64>| &l * ((rows * &l).pseudo_inverse(1e-9).unwrap() * wanted);
    let mut poses: Vec<Pose> = state.bodies.iter().map(BodyState::pose).collect();
    let mut alone = factor.solve(&right);
    if has_springs {
        let (rows, wanted) = rows_at(&poses);
        let left = wanted - &rows * &alone;
        alone += least(rows, left);
    }
    apply(&mut poses, &alone);
    let (rows, wanted) = rows_at(&poses);
    apply(&mut poses, &least(rows, wanted));
    poses
}

#[test]
fn a_step_is_that_of_the_dense_equations() {
    let mut worst = 0.0f64;
    for seed in 0..60 {
        let (model, mut input, start) = Random::new(seed).tree();
        let settings = Assembly { outer: 1, tolerance: 1e-14, truncation: f64::INFINITY, ..Assembly::default() };
        (input.dt, input.solver) = (1e-3, solver(settings));
        let mut state = start.clone();
        step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        for (found, wanted) in state.bodies.iter().zip(dense_step(&model, &input, &start)) {
            let off = (found.position - wanted.translation).length();
            let turned = log(found.orientation * wanted.rotation.conjugate()).length();
            worst = worst.max(off).max(turned);
            // The rows are met to 1e-9 of errors below a centimetre; springs of 1e4 N/m and masses from 0.1 to 60 kg cost some digits.
            assert!(off < 1e-7 && turned < 1e-7, "seed {seed}: off by {off:e} m, {turned:e} rad");
        }
    }
    println!("at most {worst:.1e} from the dense step");
}

/// A scene with the settings of a run.
fn runs() -> Vec<(Scene, Solver)> {
    let with = |name: &str, settings: Assembly| (Scene::parse(name).unwrap(), solver(settings));
    let plain = Assembly { linear: Linear::Plain, outer: 2, inner: 10, ..Assembly::default() };
    vec![
        with("robot", Assembly::default()),
        with("hand", plain),
        with("plate", Assembly::default()),
        with("lattice", Assembly { scheme: Scheme::Posing, ..Assembly::default() }),
        with("lattice", Assembly { scheme: Scheme::Posing, ..plain }),
        with("whip:30", Assembly { scheme: Scheme::Projected, ..Assembly::default() }),
    ]
}

#[test]
fn the_same_run_has_the_same_bits() {
    for (scene, solver) in runs() {
        // Work that is made anew at every step, work that did other things in between, and a copy that goes on from the middle.
        let run = |fresh: bool, busy: bool, from: Option<(State, usize)>| {
            let (mut state, first) = from.unwrap_or((scene.state.clone(), 0));
            let mut input = Input { solver, ..scene.input.clone() };
            let mut work = Work::new(&scene.model);
            let mut middle = None;
            for n in first..60 {
                if n == 30 {
                    middle = Some((state.clone(), n));
                }
                if fresh {
                    work = Work::new(&scene.model);
                }
                if busy {
                    let mut other = scene.state.clone();
                    other.bodies[0].position.x += 0.5;
                    assemble(&scene.model, &Assembly::default(), &[], &mut other, &mut work).unwrap();
                }
                scene.direct(state.time, &mut input);
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
            (state.hash(), middle)
        };
        let (hash, middle) = run(false, false, None);
        for (fresh, busy, from) in
            [(false, false, None), (true, false, None), (false, true, None), (false, false, middle)]
        {
            assert_eq!(run(fresh, busy, from).0, hash, "{} {solver:?}", scene.name);
        }
    }
}

#[test]
fn bad_input_to_assemble_is_refused_by_name() {
    let scene = Scene::parse("robot").unwrap();
    let model = &scene.model;
    let attempt = |grips: &[Grip], change: &dyn Fn(&mut State)| {
        let mut state = scene.state.clone();
        change(&mut state);
        let result = assemble(model, &Assembly::default(), grips, &mut state, &mut Work::new(model));
        result.map_err(|error| error.code()).unwrap_err()
    };
    let grip = Grip { body: BodyId(3), point: DVec3::ZERO, target: DVec3::ONE, rotation: None };
    assert_eq!(attempt(&[Grip { body: BodyId(999), ..grip }], &|_| {}), "step/input");
    assert_eq!(attempt(&[Grip { target: DVec3::NAN, ..grip }], &|_| {}), "step/input");
    assert_eq!(
        attempt(&[Grip { rotation: Some(DQuat::from_xyzw(0.0, 0.0, 0.0, 2.0)), ..grip }], &|_| {}),
        "step/input"
    );
    assert_eq!(attempt(&[], &|state| state.bodies[2].position.x = f64::INFINITY), "step/not-finite");
    assert_eq!(attempt(&[], &|state| state.bodies[2].orientation.w = 3.0), "step/state");
    assert_eq!(attempt(&[], &|state| state.bodies.truncate(3)), "step/mismatch");
}

/// Where springs carry weight, the pose of rest is that of the forces, whatever the step and the damping.
#[test]
fn springs_and_joints_come_to_the_rest_of_the_other_solvers() {
    for damping in ["0.5", "2"] {
        let scene = Scene::parse(&format!("chain:10,damping={damping}")).unwrap();
        let tip = |solver: Solver, dt: f64| {
            let input = Input { solver, dt, ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            for _ in 0..(40.0 / dt).round() as usize {
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
            state.bodies.last().unwrap().position
        };
        let rest = tip(Solver::default(), 1.0 / 60.0);
        for dt in [1.0 / 60.0, 1.0 / 240.0] {
            let found = tip(Solver::Assembly(Assembly::default()), dt);
            assert!(found.distance(rest) < 2e-3, "damping {damping}, {dt} s: {found}, not {rest}");
        }
    }
}
