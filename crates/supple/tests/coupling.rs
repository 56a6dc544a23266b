//! Joints that follow others: rows against differences, gears against closed forms, what is kept, and who refuses them.

use glam::{DQuat, DVec3};
use supple::measure;
use supple::*;

/// A bar along X from a hinge about Z at `at`.
fn bar(builder: &mut ModelBuilder, name: &str, parent: BodyRef, at: DVec3, length: f64) -> (BodyId, JointId) {
    let pose = Pose::at(at + DVec3::X * (0.5 * length));
    let body = builder.body(BodySpec::new(name).shape(Shape::cuboid(length, 0.05, 0.08), 700.0).pose(pose));
    let joint = JointSpec::new(format!("{name} hinge"), JointMask::HINGE, body, parent).axis(DVec3::Z).at(at);
    (body, builder.joint(joint))
}

/// Two bars on a floating block, the second following the first.
fn floating(ratio: f64) -> Model {
    let mut builder = ModelBuilder::new();
    let block = builder.body(BodySpec::new("block").shape(Shape::cuboid(0.3, 0.2, 0.4), 500.0));
    let (_, first) = bar(&mut builder, "first", block.into(), DVec3::new(0.2, 0.0, 0.0), 0.4);
    let (_, second) = bar(&mut builder, "second", block.into(), DVec3::new(0.2, 0.1, 0.3), 0.3);
    builder.coupling(Coupling::new("gear", second, first, ratio, 0.0));
    builder.build().unwrap()
}

#[test]
fn rows_match_central_differences() {
    let mut builder = ModelBuilder::new();
    let (arm, first) = bar(&mut builder, "arm", BodyRef::World, DVec3::ZERO, 0.5);
    let (_, second) = bar(&mut builder, "hand", arm.into(), DVec3::new(0.5, 0.0, 0.0), 0.3);
    let slide = builder.body(BodySpec::new("slide").shape(Shape::sphere(0.1), 500.0).pose(Pose::at(DVec3::Y)));
    let third = builder.joint(JointSpec::new("rail", JointMask::PRISMATIC, slide, arm).axis(DVec3::Y).at(DVec3::Y));
    for (name, follower, leader) in [("turns", second, first), ("slides", third, second)] {
        let polynomial = [0.3, -1.7, 0.4, 0.2, -0.1];
        builder.coupling(Coupling { name: name.into(), follower, leader: Some(leader), polynomial });
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    // a pose in which no joint is at zero and the slide is off its axis; joints are a little open, which rows do not see
    for (k, body) in state.bodies.iter_mut().enumerate() {
        let k = k as f64;
        body.orientation = DQuat::from_rotation_z(0.7 + 0.9 * k) * body.orientation;
        body.position += DVec3::new(0.1 * k, 0.3, 0.0);
    }
    let turn = state.bodies[arm.index()].orientation;
    state.bodies[slide.index()].orientation = turn;
    state.recount_turns(&model);
    for coupling in model.couplings() {
        let row = coupling.row_at(&model, &state);
        let joints = [Some(coupling.follower), coupling.leader].map(|id| model.joint(id.unwrap()));
        let sides = [joints[0].child.into(), joints[0].parent, joints[1].child.into(), joints[1].parent];
        let rows = [row.follower[0], row.follower[1], row.leader[0], row.leader[1]];
        for body in 0..model.bodies().len() {
            let own = |t: fn(&Twist) -> DVec3| -> DVec3 {
                let mine = sides.iter().zip(&rows).filter(|(side, _)| **side == Some(BodyId(body as u32)));
                mine.map(|(_, row)| t(row)).sum()
            };
            for axis in DVec3::AXES {
                let residual = |linear: DVec3, angular: DVec3| {
                    let moved = |i: usize| {
                        let pose = state.bodies[i].pose();
                        if i != body {
                            return pose;
                        }
                        Pose::new(DQuat::from_scaled_axis(angular) * pose.rotation, pose.translation + linear)
                    };
                    coupling.row(&model, &state, moved).residual
                };
                let e = 1e-6;
                let slid = (residual(axis * e, DVec3::ZERO) - residual(axis * -e, DVec3::ZERO)) / (2.0 * e);
                // about Z: turns out of the plane open the hinge, where its angle is another function
                let turned = (residual(DVec3::ZERO, DVec3::Z * e) - residual(DVec3::ZERO, DVec3::Z * -e)) / (2.0 * e);
                assert!((slid - own(|t| t.linear).dot(axis)).abs() < 1e-8, "{} {body} {axis}", coupling.name);
                assert!((turned - own(|t| t.angular).z).abs() < 1e-8, "{} {body}", coupling.name);
            }
        }
    }
}

/// Momentum to rounding, energy to the slack of the step, positions to Newton's tolerance.
#[test]
fn gears_in_free_flight_keep_momentum_and_energy() {
    for ratio in [1.0, -1.0, 2.5, -0.2] {
        for dt in [1.0 / 60.0, 1.0 / 240.0] {
            let model = floating(ratio);
            let input = Input { dt, gravity: DVec3::ZERO, ..Input::default() };
            let mut state = model.start();
            for (k, body) in state.bodies.iter_mut().enumerate() {
                let k = k as f64;
                body.velocity = Twist::new(DVec3::new(k.sin(), k.cos(), 0.2), DVec3::new(0.5, 1.0 - k, 2.0 + k));
            }
            let before = measure::momentum(&model, &state);
            let mut work = Work::new(&model);
            // the given motion breaks the joints: the first step takes that part of it away
            step(&model, &input, &mut state, &mut work).unwrap();
            let energy = measure::energy(&model, &input, &state).total();
            let mut gap = 0f64;
            for _ in 0..(5.0 / dt) as usize {
                let report = step(&model, &input, &mut state, &mut work).unwrap();
                gap = gap.max(report.max_joint_gap).max(report.max_joint_tilt);
                assert_eq!(report.resorts, 0);
            }
            let after = measure::momentum(&model, &state);
            let coupling = &model.couplings()[0];
            let turned = state.joints[coupling.leader.unwrap().index()].angle;
            assert!(turned.abs() > 0.5, "nothing turned: {turned}");
            assert!((state.joints[coupling.follower.index()].angle - ratio * turned).abs() < 1e-8);
            assert!(gap < 1e-8, "{ratio} {dt}: gap {gap}"); // Newton ends at 1e-9 of the size, or rad
            assert!((after.linear - before.linear).length() < 1e-10 * before.linear.length());
            // impulses of joints act at points that are apart by up to Newton's tolerance
            let lost = (after.angular - before.angular).length() / before.angular.length();
            assert!(lost < 1e-9, "{ratio} {dt}: angular momentum {lost}");
            let drift = measure::energy(&model, &input, &state).total() / energy - 1.0;
            assert!(drift.abs() < 0.01, "{ratio} {dt}: energy {drift}");
        }
    }
}

/// Two bars hanging on gears are one pendulum: `(I_1 + r² I_2) q̈ = −g (m_1 l_1 cos q + r m_2 l_2 cos r q)`.
#[test]
fn geared_pendulums_move_as_the_closed_form_to_second_order() {
    let ratio = -1.5;
    let mut builder = ModelBuilder::new();
    let (_, first) = bar(&mut builder, "first", BodyRef::World, DVec3::ZERO, 0.6);
    let (_, second) = bar(&mut builder, "second", BodyRef::World, DVec3::Z, 0.4);
    builder.coupling(Coupling::new("gear", second, first, ratio, 0.0));
    let model = builder.build().unwrap();
    let [(m1, i1), (m2, i2)] = [(0, 0.3), (1, 0.2)].map(|(k, l): (usize, f64)| {
        let body = &model.bodies()[k];
        (9.81 * body.mass * l, body.inertia.z_axis.z + body.mass * l * l)
    });
    let acceleration = |q: f64| -(m1 * q.cos() + ratio * m2 * (ratio * q).cos()) / (i1 + ratio * ratio * i2);
    // Runge and Kutta, 20,000 steps of 0.05 ms: exact here
    let (mut q, mut w, h) = (0.0, 0.0, 5e-5);
    for _ in 0..20_000 {
        let (k1, l1) = (w, acceleration(q));
        let (k2, l2) = (w + 0.5 * h * l1, acceleration(q + 0.5 * h * k1));
        let (k3, l3) = (w + 0.5 * h * l2, acceleration(q + 0.5 * h * k2));
        let (k4, l4) = (w + h * l3, acceleration(q + h * k3));
        q += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
        w += h / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4);
    }
    let error = |steps: usize| {
        let input = Input { dt: 1.0 / steps as f64, ..Input::default() };
        let (mut state, mut work) = (model.start(), Work::new(&model));
        for _ in 0..steps {
            step(&model, &input, &mut state, &mut work).unwrap();
        }
        (state.joints[first.index()].angle - q).abs()
    };
    let [coarse, fine] = [error(240), error(480)];
    assert!(fine < 1e-4 && (3.5..4.5).contains(&(coarse / fine)), "{coarse} {fine}");
}

/// A weight on a rack turns a wheel: `a = g m / (m + I r²)` with r radians a metre. Many turns are counted.
#[test]
fn a_falling_rack_turns_its_wheel() {
    let (g, radians_per_metre) = (9.81, 20.0);
    let mut builder = ModelBuilder::new();
    let wheel = builder.body(BodySpec::new("wheel").shape(Shape::sphere(0.15), 400.0));
    let weight = builder.body(BodySpec::new("weight").shape(Shape::sphere(0.1), 400.0).pose(Pose::at(DVec3::X)));
    let axle = builder.joint(JointSpec::new("axle", JointMask::HINGE, wheel, BodyRef::World).axis(DVec3::Z));
    let rack = builder
        .joint(JointSpec::new("rack", JointMask::PRISMATIC, weight, BodyRef::World).axis(-DVec3::Y).at(DVec3::X));
    builder.coupling(Coupling::new("pinion", axle, rack, radians_per_metre, 0.0));
    let model = builder.build().unwrap();
    let (m, i) = (model.body(weight).mass, model.body(wheel).inertia.z_axis.z);
    let a = g * m / (m + i * radians_per_metre * radians_per_metre);
    let input = Input { gravity: -DVec3::Y * g, ..Input::default() };
    let (mut state, mut work) = (model.start(), Work::new(&model));
    for _ in 0..120 {
        step(&model, &input, &mut state, &mut work).unwrap();
    }
    let fallen = 0.5 * a * state.time * state.time;
    assert!(fallen * radians_per_metre > 10.0, "several turns");
    assert!((state.joints[axle.index()].angle - radians_per_metre * fallen).abs() < 1e-6);
    assert!((state.bodies[weight.index()].position.y + fallen).abs() < 1e-8);
}

/// What does not agree at the start does after a step, and a follower without a leader is held.
#[test]
fn a_coupling_open_at_the_start_closes() {
    let mut builder = ModelBuilder::new();
    let (_, first) = bar(&mut builder, "first", BodyRef::World, DVec3::ZERO, 0.6);
    let (arm, second) = bar(&mut builder, "second", BodyRef::World, DVec3::Z, 0.4);
    let (_, held) = bar(&mut builder, "held", arm.into(), DVec3::new(0.4, 0.0, 1.0), 0.2);
    builder.coupling(Coupling::new("gear", second, first, 1.0, 0.2));
    builder.coupling(Coupling {
        name: "held".into(),
        follower: held,
        leader: None,
        polynomial: [0.1, 0.0, 0.0, 0.0, 0.0],
    });
    let model = builder.build().unwrap();
    let codes: Vec<_> = model.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, ["model/start-uncoupled", "model/start-uncoupled"]);
    let (mut state, mut work) = (model.start(), Work::new(&model));
    for _ in 0..60 {
        let report = step(&model, &Input::default(), &mut state, &mut work).unwrap();
        assert!(report.max_joint_tilt < 1e-8 && report.max_joint_gap < 1e-8, "{report:?}");
    }
    let angle = |id: JointId| state.joints[id.index()].angle;
    assert!((angle(second) - angle(first) - 0.2).abs() < 1e-8 && (angle(held) - 0.1).abs() < 1e-8);
}

#[test]
fn solvers_without_rows_for_couplings_refuse_them_by_name() {
    let model = floating(1.0);
    let mut others = Solver::all().to_vec();
    others.remove(0);
    for scheme in [TreeScheme::Published, TreeScheme::Exact, TreeScheme::Acceleration] {
        others.push(Solver::Tree(Tree::new(scheme)));
    }
    for solver in others {
        let input = Input { solver, ..Input::default() };
        let mut state = model.start();
        let error = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap_err();
        assert!(error.to_string().contains("coupling \"gear\""), "{error}");
        assert_eq!(error.code(), "step/unsupported");
    }
}

/// Adds couplings of three joints.
type Couple = fn(&mut ModelBuilder, [JointId; 3]);

#[test]
fn the_builder_tells_what_is_wrong_with_a_coupling() {
    let build = |couple: Couple| {
        let mut builder = ModelBuilder::new();
        let (_, first) = bar(&mut builder, "first", BodyRef::World, DVec3::ZERO, 0.6);
        let (body, second) = bar(&mut builder, "second", BodyRef::World, DVec3::Z, 0.4);
        let ball = builder.body(BodySpec::new("ball").shape(Shape::sphere(0.1), 400.0));
        let third = builder.joint(JointSpec::new("socket", JointMask::BALL, ball, body));
        couple(&mut builder, [first, second, third]);
        builder.build().unwrap_err().problems.into_iter().map(|p| (p.code, p.what)).collect::<Vec<_>>()
    };
    let wrong: [(Couple, &str, usize); 5] = [
        (|b, [a, _, c]| b.coupling(Coupling::new("x", a, c, 1.0, 0.0)), "no single position", 1),
        (|b, [a, ..]| b.coupling(Coupling::new("x", a, JointId(9), 1.0, 0.0)), "does not have", 1),
        (|b, [a, c, _]| b.coupling(Coupling::new("x", a, c, f64::NAN, 0.0)), "not finite", 1),
        (|b, [a, ..]| b.coupling(Coupling::new("x", a, a, 1.0, 0.0)), "follows itself", 1),
        (
            |b, [a, c, _]| {
                b.coupling(Coupling::new("x", a, c, 1.0, 0.0));
                b.coupling(Coupling::new("y", c, a, 1.0, 0.0));
            },
            "follows itself",
            2,
        ),
    ];
    for (couple, text, count) in wrong {
        let problems = build(couple);
        assert_eq!(problems.len(), count, "{problems:?}");
        assert!(problems.iter().all(|(code, what)| *code == "model/coupling" && what.contains(text)), "{problems:?}");
    }
}

/// Two bars that can turn nowhere, and a coupling that asks one to: every part of every step fails. That costs a few attempts a step, not one for each of the
/// 64 shortest parts, and the report says that nothing moves.
#[test]
fn what_contradicts_itself_costs_few_attempts() {
    let mut builder = ModelBuilder::new();
    let mut hinges = Vec::new();
    for (name, z) in [("first", 0.0), ("second", 0.5)] {
        let (body, hinge) = bar(&mut builder, name, BodyRef::World, DVec3::Z * z, 0.4);
        let far = JointSpec::new(format!("{name} lock"), JointMask::HINGE, body, BodyRef::World);
        builder.joint(far.axis(DVec3::Z).at(DVec3::new(0.4, 0.0, z)));
        hinges.push(hinge);
    }
    let polynomial = [0.1, 0.5, 0.0, 0.0, 0.0];
    builder.coupling(Coupling { name: "no".into(), follower: hinges[1], leader: Some(hinges[0]), polynomial });
    let model = builder.build().unwrap();
    let (mut state, mut work, input) = (model.start(), Work::new(&model), Input::default());
    for _ in 0..10 {
        let report = step(&model, &input, &mut state, &mut work).unwrap();
        assert!(report.stalled > 0, "{report:?}");
        assert!(report.fallbacks <= 8 && report.substeps <= 12, "{report:?}");
        assert!(state.bodies.iter().all(|body| body.position.is_finite()), "{state:?}");
    }
}
