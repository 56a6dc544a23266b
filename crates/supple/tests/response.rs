//! Contacts, friction and hard limits in the default step: against numbers computed elsewhere, against a dense solution by another method,
//! against closed forms; what rests stays, nothing gains energy, joints stay closed.

#[path = "common/mod.rs"]
mod common;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use supple::maths::rotation::turned_inertia;
use supple::measure;
use supple::model::joint::Sides;
use supple::solver::Mode;
use supple::*;

const G: f64 = 9.81;

fn oracle() -> Value {
    let all: Value = serde_json::from_str(include_str!("data/oracles.json")).unwrap();
    all["contact"].clone()
}

fn material(friction: f64, restitution: f64) -> Material {
    Material::new(friction, restitution)
}

fn touching() -> Input {
    Input { contacts: Contacts::All, ..Input::default() }
}

/// The same, friction to the last digit instead of a hundredth.
fn accurately() -> Input {
    let scheme = TreeScheme::Midpoint(Mode::Accurate);
    Input { solver: Solver::Tree(Tree { scheme, ..Tree::default() }), ..touching() }
}

/// Boxes with edges of 0.2 m and these masses, one on the other, on a floor.
fn tower(masses: &[f64], friction: f64) -> Model {
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(material(friction, 0.0)));
    for (k, mass) in masses.iter().enumerate() {
        let spec = BodySpec::new(format!("box {k}")).shape(Shape::cuboid(0.2, 0.2, 0.2), mass / 0.008);
        builder.body(spec.pose(Pose::at(DVec3::Y * (0.1 + 0.2 * k as f64))).material(material(friction, 0.0)));
    }
    builder.build().unwrap()
}

/// One body on a floor that slopes by `angle` about Z, down along −X.
fn on_floor(shape: Shape, height: f64, angle: f64, material: Material) -> Model {
    let turn = DQuat::from_rotation_z(angle);
    let mut builder = ModelBuilder::new();
    builder.body(
        BodySpec::new("body").shape(shape, 1000.0).pose(Pose::new(turn, turn * DVec3::Y * height)).material(material),
    );
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).pose(Pose::new(turn, DVec3::ZERO)).material(material));
    builder.build().unwrap()
}

/// Runs, and asks of every step that energy does not rise, joints are closed and contacts have settled.
fn run(model: &Model, input: &Input, state: &mut State, seconds: f64, mut look: impl FnMut(&State, &Report)) {
    let mut work = Work::new(model);
    let size = model.mass() * G;
    let mut energy = measure::energy(model, input, state).total();
    for n in 0..(seconds / input.dt).round() as usize {
        let report = step(model, input, state, &mut work).unwrap_or_else(|e| panic!("step {n}: {e}"));
        let now = measure::energy(model, input, state).total();
        assert!(now <= energy + 1e-6 * (size + energy.abs()), "step {n}: {energy} → {now}");
        assert!(report.max_joint_gap < 1e-8 && report.max_joint_tilt < 1e-8, "step {n}: {report:?}");
        assert_eq!((report.unconverged, report.resorts), (0, 0), "step {n}");
        energy = energy.min(now);
        look(state, &report);
    }
}

/// The sum of the normal impulses of a step, contacts with these keys.
fn normal_impulse(state: &State, h: f64, normal: DVec3) -> f64 {
    state.contacts.iter().map(|c| (c.first + c.second).dot(normal) * h).sum()
}

#[test]
fn the_oracles_of_one_step_are_met() {
    let o = oracle();
    let number = |v: &Value| v.as_f64().unwrap();
    // a box that slides
    let model = on_floor(Shape::cuboid(1.0, 1.0, 1.0), 0.5, 0.0, material(number(&o["box_sliding"]["mu"]), 0.0));
    let mut state = model.start();
    state.bodies[0].velocity.linear.x = 2.0;
    let input = Input { dt: number(&o["box_sliding"]["h"]), ..accurately() };
    let report = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
    let off = state.bodies[0].velocity.linear.x - number(&o["box_sliding"]["vx_after"]);
    assert!(off.abs() < 1e-7, "{off}, {report:?}");
    let normal = normal_impulse(&state, input.dt, DVec3::Y) / model.mass();
    assert!((normal - number(&o["box_sliding"]["sum_normal_impulse"])).abs() < 1e-7, "{normal}");
    // a box that falls and grips
    let model = on_floor(Shape::cuboid(1.0, 0.2, 1.0), 0.1, 0.0, material(number(&o["box_impact"]["mu"]), 0.0));
    let mut state = model.start();
    state.bodies[0].velocity.linear = DVec3::new(1.0, -3.0, 0.0);
    step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
    assert!(state.bodies[0].velocity.linear.length() < 1e-7, "{:?}", state.bodies[0].velocity);
    let normal = normal_impulse(&state, input.dt, DVec3::Y) / model.mass();
    assert!((normal - number(&o["box_impact"]["sum_normal_impulse"])).abs() < 1e-6, "{normal}");
    // stacks, all levels together; of two bodies the impulse is on the lower one
    for (masses, sum) in [
        (vec![1.0; 5], number(&o["stack5"]["sum_normal_impulse_over_all_contacts"])),
        (vec![1.0, 1.0, 1.0, 1.0, 100.0], number(&o["stack_1_1_1_1_100"]["sum"])),
    ] {
        let model = tower(&masses, 0.5);
        let mut state = model.start();
        step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        let found: f64 = state.contacts.iter().map(|c| (c.first + c.second).y.abs() * input.dt).sum();
        assert!((found - sum).abs() < 1e-6 * sum, "{found} {sum}");
    }
}

#[test]
fn towers_stand_still_for_a_minute_the_heavy_on_the_light_too() {
    for masses in [vec![1.0; 5], vec![1.0; 20], vec![1.0, 1.0, 1.0, 1.0, 100.0]] {
        let model = tower(&masses, 0.5);
        let (mut state, mut iterations) = (model.start(), 0);
        run(&model, &touching(), &mut state, 60.0, |_, report| iterations += report.iterations);
        for (now, start) in state.bodies.iter().zip(&model.start().bodies) {
            assert!(now.position.distance(start.position) < 1e-5, "{:?}", now.position);
            assert!(now.velocity.linear.length() < 1e-9 && now.velocity.angular.length() < 1e-9, "{:?}", now.velocity);
        }
        assert!(iterations < 3 * 3600, "{iterations}"); // one pass each half when nothing changes
    }
}

#[test]
fn sliding_and_sticking_are_those_of_coulomb() {
    let friction = 0.4f64;
    for shape in [Shape::cuboid(0.3, 0.1, 0.2), Shape::capsule(0.2, 0.05)] {
        for (angle, sticks) in [(0.9, true), (0.99, true), (1.01, false), (1.5, false)] {
            let angle = angle * friction.atan();
            let model = on_floor(shape.clone(), 0.05, angle, material(friction, 0.0));
            let mut state = model.start();
            run(&model, &touching(), &mut state, 1.0, |_, _| {});
            let expected = if sticks { 0.0 } else { G * (angle.sin() - friction * angle.cos()) };
            let down = DQuat::from_rotation_z(angle) * DVec3::NEG_X;
            let speed = state.bodies[0].velocity.linear.dot(down);
            assert!((speed - expected).abs() < 1e-4 * G, "{shape:?} {angle}: {speed}, expected {expected}");
            if sticks {
                assert!(state.bodies[0].position.distance(model.start().bodies[0].position) < 1e-6);
            }
        }
    }
}

#[test]
fn balls_and_wheels_roll() {
    // a = g sin α / (1 + I/(m r²))
    let angle = 0.2f64;
    for (shape, share, turn) in [
        (Shape::sphere(0.1), 0.4, DQuat::IDENTITY),
        (Shape::Cylinder { length: 0.05, radius: 0.1 }, 0.5, DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2)),
    ] {
        let slope = DQuat::from_rotation_z(angle);
        let mut builder = ModelBuilder::new();
        let stuff = material(0.8, 0.0);
        builder.body(
            BodySpec::new("roller")
                .shape(shape, 1000.0)
                .pose(Pose::new(slope * turn, slope * DVec3::Y * 0.1))
                .material(stuff),
        );
        builder.obstacle(ObstacleSpec::floor("floor", 0.0).pose(Pose::new(slope, DVec3::ZERO)).material(stuff));
        let model = builder.build().unwrap();
        let mut state = model.start();
        run(&model, &touching(), &mut state, 2.0, |_, _| {});
        let expected = 2.0 * G * angle.sin() / (1.0 + share);
        assert!(
            (state.bodies[0].velocity.linear.length() - expected).abs() < 1e-6 * expected,
            "{:?}",
            state.bodies[0].velocity
        );
        assert!((state.bodies[0].velocity.angular.length() - expected / 0.1).abs() < 1e-5 * expected / 0.1);
    }
}

#[test]
fn rolling_resistance_slows_a_ball_and_holds_it_on_a_slope() {
    // a = g b / (r (1 + I/(m r²))), b the lever; on a slope it lies still up to tan α = b/r
    let (radius, lever, speed) = (0.1, 0.004, 1.0);
    for restitution in [0.0, 0.5] {
        let stuff = material(0.8, restitution).rolling(lever);
        let model = on_floor(Shape::sphere(radius), radius, 0.0, stuff);
        let (mut state, mut seconds) = (model.start(), 0.0);
        let slows = G * lever / (radius * 1.4);
        state.bodies[0].velocity = Twist::new(DVec3::X * speed, DVec3::NEG_Z * (speed / radius));
        run(&model, &touching(), &mut state, 5.0, |state, _| {
            let (expected, now) = ((speed - slows * state.time).max(0.0), state.bodies[0].velocity.linear.x);
            // The first step knows no normal force yet.
            assert!((now - expected).abs() < 1.5 * slows / 60.0, "{} s: {now}, not {expected}", state.time);
            if now.abs() > 1e-4 {
                seconds = state.time;
            }
        });
        assert!((seconds - speed / slows).abs() < 3.0 / 60.0, "rests after {seconds} s");
    }
    for (share, rests) in [(0.8, true), (1.2, false)] {
        let angle = (share * lever / radius).atan();
        let model = on_floor(Shape::sphere(radius), radius, angle, material(0.8, 0.0).rolling(lever));
        let mut state = model.start();
        let input = Input { sleep: false, ..touching() };
        run(&model, &input, &mut state, 5.0, |_, _| {});
        let (now, free) = (state.bodies[0].velocity.linear.length(), G * angle.sin() * 5.0 / 1.4);
        let expected = if rests { 0.0 } else { free * (1.0 - 1.0 / share) };
        assert!((now - expected).abs() < 0.02 * free, "{share}: {now}, not {expected}");
    }
}

#[test]
fn a_ball_that_was_put_into_a_scene_and_pushed_comes_to_rest() {
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    builder.body(BodySpec::new("block").shape(Shape::cuboid(0.2, 0.2, 0.2), 500.0).pose(Pose::at(DVec3::Y * 0.1)));
    let model = builder.build().unwrap();
    let start = model.start();
    let scene = Scene::from_parts("room", model, start, touching());
    let ball = Thing::new(ThingKind::Ball, Pose::at(DVec3::new(1.0, 0.1, 0.0)), DVec3::splat(0.2));
    let Scene { model, mut state, .. } = scene.with_things(&[ball]).unwrap().unwrap();
    state.bodies[1].velocity = Twist::new(DVec3::Z, DVec3::X / 0.1);
    run(&model, &touching(), &mut state, 10.0, |_, _| {});
    assert!(state.bodies[1].velocity.linear.length() < 1e-3, "{:?}", state.bodies[1].velocity);
    assert!(state.bodies[1].position.z > 2.0, "it rolled no farther than {}", state.bodies[1].position);
}

#[test]
fn what_rolls_on_another_body_comes_to_rest_on_it() {
    // A ball on a plate that slides freely on ice.
    let (radius, lever) = (0.1, 0.004);
    let stuff = material(0.8, 0.0).rolling(lever);
    let mut builder = ModelBuilder::new();
    let plate = BodySpec::new("plate").shape(Shape::cuboid(4.0, 0.2, 4.0), 10.0).pose(Pose::at(DVec3::Y * 0.1));
    builder.body(plate.material(material(0.8, 0.0)));
    let ball = BodySpec::new("ball").shape(Shape::sphere(radius), 1000.0).pose(Pose::at(DVec3::Y * (0.2 + radius)));
    builder.body(ball.material(stuff));
    builder.obstacle(ObstacleSpec::floor("ice", 0.0).material(material(0.0, 0.0)));
    let model = builder.build().unwrap();
    let mut state = model.start();
    state.bodies[1].velocity = Twist::new(DVec3::X, DVec3::NEG_Z / radius);
    let momentum = |state: &State| {
        let of = |(body, s): (&supple::Body, &supple::BodyState)| body.mass * s.velocity.linear.x;
        model.bodies().iter().zip(&state.bodies).map(of).sum::<f64>()
    };
    let before = momentum(&state);
    run(&model, &Input { sleep: false, ..touching() }, &mut state, 8.0, |_, _| {});
    assert!((momentum(&state) - before).abs() < 1e-9 * before, "{before} → {}", momentum(&state));
    let [plate, ball] = [&state.bodies[0], &state.bodies[1]];
    assert!((ball.velocity.linear - plate.velocity.linear).length() < 1e-6, "the ball goes with the plate");
    assert!(ball.velocity.angular.length() < 1e-6, "{}", ball.velocity.angular);
}

#[test]
fn a_ball_bounces_as_high_as_restitution_says() {
    for restitution in [0.0, 0.5, 0.8, 1.0] {
        let model = on_floor(Shape::sphere(0.1), 1.1, 0.0, material(0.3, restitution));
        let input = Input { dt: 1.0 / 240.0, ..touching() };
        let (mut state, mut fell, mut top) = (model.start(), false, 0.0f64);
        run(&model, &input, &mut state, 1.2, |state, _| {
            fell |= state.bodies[0].velocity.linear.y > 0.1;
            if fell || state.bodies[0].position.y < 0.11 {
                top = top.max(state.bodies[0].position.y - 0.1);
            }
        });
        let expected = restitution * restitution;
        assert!((top - expected).abs() < 0.03, "{restitution}: {top}");
    }
}

#[test]
fn a_moving_floor_carries_what_stands_on_it() {
    let model = tower(&[1.0, 2.0], 0.5);
    let mut input = touching();
    let (mut state, mut work) = (model.start(), Work::new(&model));
    for n in 1..=120 {
        // speeds up at 2 m/s², below μ g
        let t = f64::from(n) * input.dt;
        let motion = Twist::new(DVec3::X * (2.0 * t), DVec3::ZERO);
        input.obstacles = vec![Some(Target { pose: Pose::at(DVec3::X * (t * t)), velocity: motion })];
        step(&model, &input, &mut state, &mut work).unwrap();
    }
    for body in &state.bodies {
        assert!((body.velocity.linear - DVec3::X * 4.0).length() < 1e-6, "{:?}", body.velocity);
        assert!(body.velocity.angular.length() < 1e-6);
    }
    // faster than friction can: it slides at μ g
    let model = tower(&[1.0], 0.5);
    let (mut state, mut work) = (model.start(), Work::new(&model));
    input.obstacles = vec![Some(Target { pose: Pose::IDENTITY, velocity: Twist::new(DVec3::X * 50.0, DVec3::ZERO) })];
    for _ in 0..60 {
        step(&model, &input, &mut state, &mut work).unwrap();
    }
    assert!((state.bodies[0].velocity.linear.x - 0.5 * G).abs() < 1e-4, "{:?}", state.bodies[0].velocity);
}

#[test]
fn nothing_passes_through_the_floor_at_fifty_metres_a_second() {
    for (k, shape) in
        [Shape::sphere(0.02), Shape::cuboid(0.05, 0.02, 0.03), Shape::capsule(0.1, 0.01)].into_iter().enumerate()
    {
        let model = on_floor(shape, 2.0 + 0.13 * k as f64, 0.0, material(0.5, 0.2));
        let mut state = model.start();
        state.bodies[0].velocity = Twist::new(DVec3::new(10.0, -50.0, 0.0), DVec3::new(20.0, 5.0, 30.0));
        run(&model, &touching(), &mut state, 1.0, |state, report| {
            assert!(state.bodies[0].position.y > 0.0, "{:?}", state.bodies[0]);
            assert!(report.max_penetration < 1e-3, "{report:?}");
        });
    }
}

#[test]
fn what_starts_too_deep_comes_out_and_gains_no_speed() {
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    for k in 0..3 {
        let spec = BodySpec::new(format!("box {k}")).shape(Shape::cuboid(0.2, 0.2, 0.2), 1000.0);
        builder.body(spec.pose(Pose::at(DVec3::Y * (0.07 + 0.15 * f64::from(k)))));
    }
    let model = builder.build().unwrap();
    let (mut state, mut work) = (model.start(), Work::new(&model));
    for _ in 0..240 {
        step(&model, &touching(), &mut state, &mut work).unwrap();
        assert!(measure::kinetic_energy(&model, &state) < 1e-9 * model.mass() * G);
    }
    for (k, body) in state.bodies.iter().enumerate() {
        assert!((body.position.y - (0.1 + 0.2 * k as f64)).abs() < 1e-4, "{:?}", body.position);
    }
}

#[test]
fn a_hard_limit_is_not_passed_and_does_not_spring_back() {
    let swing = SwingEllipse { about_y: 0.6, about_z: 0.4 };
    for (mask, limits) in [
        (JointMask::HINGE, Limits { angle: Some(Range::new(-0.7, 0.5)), ..Limits::default() }),
        (JointMask::BALL, Limits { swing: Some(swing), angle: Some(Range::new(-0.2, 0.2)), ..Limits::default() }),
        (JointMask::PRISMATIC, Limits { slide: Some(Range::new(-0.1, 0.25)), ..Limits::default() }),
    ] {
        let mut builder = ModelBuilder::new();
        let slides = mask == JointMask::PRISMATIC;
        let axis = if slides { DVec3::NEG_Y } else { DVec3::Z };
        let body =
            builder.body(BodySpec::new("rod").shape(Shape::capsule(0.5, 0.02), 1000.0).pose(Pose::at(DVec3::X * 0.25)));
        let tip =
            builder.body(BodySpec::new("tip").shape(Shape::capsule(0.5, 0.02), 1000.0).pose(Pose::at(DVec3::X * 0.75)));
        let limits = Limits { stops: Stops::Hard, ..limits };
        let frame = if mask == JointMask::BALL { DVec3::X } else { axis };
        builder.joint(JointSpec::new("first", mask, body, BodyRef::World).at(DVec3::ZERO).axis(frame).limits(limits));
        let hinge = Limits { angle: Some(Range::new(-0.3, 0.3)), stops: Stops::Hard, ..Limits::default() };
        builder.joint(
            JointSpec::new("second", JointMask::HINGE, tip, body).at(DVec3::X * 0.5).axis(DVec3::Z).limits(hinge),
        );
        let model = builder.build().unwrap();
        let mut state = model.start();
        let mut passed = 0.0f64;
        run(&model, &touching(), &mut state, 4.0, |state, _| {
            supple::forces::stops(&model, state, |stop| passed = passed.max(-stop.gap));
        });
        assert!(passed < 1e-6, "{mask:?}: passed by {passed}");
        // it hangs at its limits, at rest
        assert!(measure::kinetic_energy(&model, &state) < 1e-9, "{mask:?}: {:?}", state.bodies);
        assert!(!state.contacts.is_empty());
    }
}

#[test]
fn a_chain_thrown_onto_the_floor_keeps_its_joints_and_comes_to_rest() {
    for heavy in [1.0, 100.0] {
        let mut builder = ModelBuilder::new();
        builder.obstacle(ObstacleSpec::floor("floor", 0.0));
        let mut last: Option<BodyId> = None;
        for k in 0..12 {
            let x = 0.2 * f64::from(k);
            let density = if k == 11 { 1000.0 * heavy } else { 1000.0 };
            let spec = BodySpec::new(format!("link {k}")).shape(Shape::cuboid(0.18, 0.03, 0.04), density);
            let id = builder.body(spec.pose(Pose::at(DVec3::new(x, 0.3, 0.0))));
            if let Some(parent) = last {
                builder.joint(JointSpec::new(format!("joint {k}"), JointMask::BALL, id, parent).at(DVec3::new(
                    x - 0.1,
                    0.3,
                    0.0,
                )));
            }
            last = Some(id);
        }
        let model = builder.build().unwrap();
        let mut state = model.start();
        state.bodies.iter_mut().for_each(|b| b.velocity.linear = DVec3::new(2.0, 0.0, 1.0));
        run(&model, &touching(), &mut state, 4.0, |_, _| {});
        let before = state.clone();
        run(&model, &touching(), &mut state, 4.0, |_, _| {});
        for (now, then) in state.bodies.iter().zip(&before.bodies) {
            assert!(now.position.distance(then.position) < 1e-4, "creeps from {} to {}", then.position, now.position);
            assert!(now.velocity.linear.length() < 1e-6, "{:?}", now.velocity);
        }
    }
}

#[test]
fn the_same_bits_from_fresh_scratch_and_from_a_state_in_the_middle() {
    let model = tower(&[1.0; 6], 0.5);
    let input = touching();
    let mut state = model.start();
    state.bodies[5].velocity = Twist::new(DVec3::new(1.0, 0.0, 0.5), DVec3::new(0.0, 2.0, 0.0));
    state.bodies[2].velocity.linear.x = 0.4;
    let mut again = state.clone();
    let mut work = Work::new(&model);
    for _ in 0..90 {
        step(&model, &input, &mut state, &mut work).unwrap();
        step(&model, &input, &mut again, &mut Work::new(&model)).unwrap();
        assert_eq!(state.hash(), again.hash());
        assert_eq!(state, again);
    }
}

// ------------------------------------------------------------------------------------------------- a dense solution

/// M, and the rows of all joints, at a state.
fn dense(model: &Model, state: &State) -> (DMatrix<f64>, DMatrix<f64>) {
    let n = 6 * model.bodies().len();
    let mut mass = DMatrix::zeros(n, n);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let inertia: DMat3 = turned_inertia(s.orientation, body.inertia);
        for k in 0..3 {
            mass[(6 * i + k, 6 * i + k)] = body.mass;
            for l in 0..3 {
                mass[(6 * i + 3 + k, 6 * i + 3 + l)] = inertia.col(l)[k];
            }
        }
    }
    let mut rows: Vec<DVector<f64>> = Vec::new();
    for joint in model.joints() {
        let sides: Sides = model.sides(joint, state);
        for row in joint.rows(&sides).iter() {
            let mut line = DVector::zeros(n);
            let mut put = |body: usize, t: Twist| {
                for (k, x) in t.linear.to_array().into_iter().chain(t.angular.to_array()).enumerate() {
                    line[6 * body + k] = x;
                }
            };
            put(joint.child.index(), row.a);
            if let Some(b) = joint.parent {
                put(b.index(), row.b);
            }
            rows.push(line);
        }
    }
    let j = DMatrix::from_fn(rows.len(), n, |r, c| rows[r][c]);
    (mass, j)
}

/// The velocities after an impact without restitution, by projected Gauss–Seidel over contacts on the dense matrix `G P Gᵀ`, P the inverse of the
/// mass on the motions that joints allow.
fn by_gauss_seidel(model: &Model, state: &State, contacts: &[Contact]) -> DVector<f64> {
    let (mass, j) = dense(model, state);
    let inverse = mass.try_inverse().unwrap();
    let p = if j.nrows() == 0 {
        inverse.clone()
    } else {
        let lambda = (&j * &inverse * j.transpose()).pseudo_inverse(1e-10).unwrap();
        &inverse - &inverse * j.transpose() * lambda * &j * &inverse
    };
    let n = inverse.nrows();
    let mut g = DMatrix::zeros(3 * contacts.len(), n);
    for (c, contact) in contacts.iter().enumerate() {
        let (u, w) = contact.normal.any_orthonormal_pair();
        for (k, t) in [contact.normal, u, w].into_iter().enumerate() {
            let mut put = |body: usize, sign: f64, lever: DVec3| {
                let turning = lever.cross(t) * sign;
                for (i, x) in (t * sign).to_array().into_iter().chain(turning.to_array()).enumerate() {
                    g[(3 * c + k, 6 * body + i)] = x;
                }
            };
            put(contact.a.index(), 1.0, contact.point - state.bodies[contact.a.index()].position);
            if let Other::Body(b) = contact.b {
                put(b.index(), -1.0, contact.point - state.bodies[b.index()].position);
            }
        }
    }
    let mut v = DVector::zeros(n);
    for (i, s) in state.bodies.iter().enumerate() {
        for (k, x) in s.velocity.linear.to_array().into_iter().chain(s.velocity.angular.to_array()).enumerate() {
            v[6 * i + k] = x;
        }
    }
    // joints first
    let v = &p * model_mass(model, state) * v;
    let w = &g * &p * g.transpose();
    let free = &g * &v;
    let mut f = DVector::<f64>::zeros(3 * contacts.len());
    for _ in 0..200_000 {
        let mut change = 0.0f64;
        for (c, contact) in contacts.iter().enumerate() {
            let r = 3 * c;
            let rate = |f: &DVector<f64>, k: usize| free[r + k] + (w.row(r + k) * f)[0];
            let size = (w[(r, r)] + w[(r + 1, r + 1)] + w[(r + 2, r + 2)]) / 3.0;
            let old = [f[r], f[r + 1], f[r + 2]];
            f[r] = (f[r] - rate(&f, 0) / w[(r, r)]).max(0.0);
            let (s, t) = (f[r + 1] - rate(&f, 1) / size, f[r + 2] - rate(&f, 2) / size);
            let most = contact.friction * f[r];
            let shrink = if s.hypot(t) > most { most / s.hypot(t) } else { 1.0 };
            (f[r + 1], f[r + 2]) = (s * shrink, t * shrink);
            change = (0..3).map(|k| (f[r + k] - old[k]).abs() * size).fold(change, f64::max);
        }
        if change < 1e-13 {
            break;
        }
    }
    v + &p * g.transpose() * f
}

fn model_mass(model: &Model, state: &State) -> DMatrix<f64> {
    dense(model, state).0
}

#[test]
fn impacts_agree_with_gauss_seidel_on_the_dense_matrix() {
    let mut random = Random::new(11);
    let (mut tried, mut unsettled) = (0, Vec::new());
    for case in 0..60usize {
        let mut builder = ModelBuilder::new();
        let stuff = material([0.0, 0.3, 0.8][case % 3], 0.0);
        builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(stuff));
        // With friction more bodies may go apart in more than one way.
        let count = if stuff.friction == 0.0 { 1 + case % 4 } else { 1 + case / 4 % 2 };
        for k in 0..count {
            let density = if case % 5 == 0 && k == 0 { 20_000.0 } else { 1000.0 };
            // Four corners of a box share its weight in many ways, and with friction each way moves it otherwise: what is round then.
            let (flat, jointed) = (stuff.friction == 0.0, case % 2 == 0);
            let shape = match (flat, jointed) {
                (true, _) => Shape::cuboid(0.3, 0.2, 0.2),
                (false, true) => Shape::sphere(0.1),
                (false, false) => Shape::capsule(0.2, 0.1),
            };
            let spec = BodySpec::new(format!("box {k}")).shape(shape, density).material(stuff);
            let at = match (jointed, flat) {
                (true, _) => DVec3::new(0.42 * k as f64, 0.1, 0.0),
                (false, true) => DVec3::Y * (0.1 + 0.2 * k as f64),
                (false, false) => DVec3::new(0.1 * k as f64, 0.1, 0.2 * k as f64),
            };
            let id = builder.body(spec.pose(Pose::at(at)));
            if jointed && k > 0 {
                let parent = format!("box {}", k - 1);
                let mask = if flat && case % 4 == 0 { JointMask::HINGE } else { JointMask::BALL };
                builder.joint(
                    JointSpec::new(format!("joint {k}"), mask, id, parent.as_str())
                        .at(at - DVec3::X * 0.21)
                        .axis(DVec3::Z),
                );
            }
        }
        let model = builder.build().unwrap();
        let mut state = model.start();
        for body in &mut state.bodies {
            body.velocity = Twist::new(random.vector(1.0) - DVec3::Y, random.vector(3.0));
        }
        // an impact lasts no time: what a body turns meanwhile moves its velocity by 1e2 m/s² of h at most here
        let input = Input { dt: 1e-6, gravity: DVec3::ZERO, ..accurately() };
        let contacts = contact::detect(&model, &input, &state, (input.dt, 0.0), &mut ContactWork::new(&model)).to_vec();
        let expected = by_gauss_seidel(&model, &state, &contacts);
        let report = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        if report.unconverged > 0 {
            unsettled.push(case);
            continue;
        }
        // friction is asked for to 5e-6 of the speeds at hand
        let fastest = 1.0 + expected.amax();
        for (i, body) in state.bodies.iter().enumerate() {
            let found = body.velocity.linear.to_array().into_iter().chain(body.velocity.angular.to_array());
            for (k, x) in found.enumerate() {
                assert!(
                    (x - expected[6 * i + k]).abs() < 1e-4 * fastest,
                    "case {case}, body {i}: {x}, expected {}",
                    expected[6 * i + k]
                );
            }
        }
        tried += contacts.len();
    }
    assert!(tried > 200, "{tried}");
    assert!(unsettled.len() <= 4, "{unsettled:?}");
}

/// Jammed bodies may have friction that holds them and friction that lets them move: a forearm in the pile reported 8.5 mm/s for
/// good and went nowhere.
#[test]
fn what_lies_jammed_in_a_pile_reports_no_speed() {
    let scene = Scene::parse("pile").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let mut fastest = 0.0f64;
    for k in 0..1260 {
        let mut input = scene.input.clone();
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        if k >= 1200 {
            let speeds = state.bodies.iter().map(|body| body.velocity.linear.length());
            fastest = speeds.fold(fastest, f64::max);
        }
    }
    // What the soak asks of what has fallen, after 20 s.
    assert!(fastest < 1e-3, "{fastest} m/s");
}
