//! Solver `impulse`: against numbers computed elsewhere, against a dense solution, against closed forms, and what [Bender 2006] claims.

#[path = "common/mod.rs"]
mod common;
mod support;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use supple::maths::rotation::{exp, log, turned_inertia};
use supple::model::joint::Hold;
use supple::solver::Impulse;
use supple::solver::impulse::{Elimination, Variant, VelocityCorrection};
use supple::*;
use support::{apart, block, orders};

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

fn dense(v: &Value) -> DMatrix<f64> {
    let rows: Vec<Vec<f64>> = v.as_array().unwrap().iter().map(numbers).collect();
    DMatrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

fn with(settings: Impulse) -> Solver {
    Solver::Impulse(settings)
}

fn impulse() -> Solver {
    with(Impulse::default())
}

/// Tolerances at the floor of rounding, with iterations to get there.
fn exact() -> Impulse {
    Impulse { tolerance: 1e-13, velocity_tolerance: 1e-12, iterations: 40, ..Impulse::default() }
}

fn go(model: &Model, input: &Input, state: &mut State, steps: usize) -> Report {
    let mut work = Work::new(model);
    let mut last = Report::default();
    for n in 0..steps {
        last = step(model, input, state, &mut work).unwrap_or_else(|e| panic!("step {n}: {e}"));
    }
    last
}

// ---- Numbers from elsewhere ----

#[test]
fn rows_and_masses_make_the_matrices_of_the_paper() {
    // K_PQ, L, W_P, U_P [Bender 2006, §4.1] are products of the rows of a ball and of a held rotation.
    let o = oracle("bender_KLWU");
    let (m, q) = (o["m"].as_f64().unwrap(), quaternion(&o["q_wxyz"]));
    let inverse = turned_inertia(q, DMat3::from_diagonal(vector(&o["I_body"]))).inverse();
    let mut mass = DMatrix::zeros(6, 6);
    mass.view_mut((0, 0), (3, 3)).fill_with_identity();
    mass *= 1.0 / m;
    mass.view_mut((3, 3), (3, 3)).copy_from(&DMatrix::from_fn(3, 3, |i, j| inverse.col(j)[i]));
    let rows = |mask: JointMask, lever: DVec3| {
        let hold = Hold {
            mask,
            child_from_joint: Pose::at(q.conjugate() * lever),
            parent_from_joint: Pose::new(q, DVec3::ZERO),
        };
        let errors = hold.errors(Pose::new(q, DVec3::ZERO), Pose::IDENTITY);
        DMatrix::from_fn(3, 6, |i, k| {
            let t = errors[errors.len() - 3 + i].a; // of a weld the rotations
            [t.linear.to_array(), t.angular.to_array()].concat()[k]
        })
    };
    let (p, r) = (rows(JointMask::BALL, vector(&o["rP"])), rows(JointMask::BALL, vector(&o["rQ"])));
    // the rows of a held rotation are in the axes of its frame
    let turn = DMatrix::from_fn(3, 3, |i, j| DMat3::from_quat(q).col(j)[i]) * rows(JointMask::WELD, DVec3::ZERO);
    let near = |what: &str, found: DMatrix<f64>| {
        assert!((&found - dense(&o[what])).amax() < 1e-9, "{what}: {found}"); // 12 digits of numbers below 10
    };
    near("K_PQ", &p * &mass * r.transpose());
    near("L", &turn * &mass * turn.transpose());
    near("W_P", &turn * &mass * p.transpose());
    near("U_P", &p * &mass * turn.transpose());
}

/// The double pendulum of the oracle, with its state.
fn double_pendulum(o: &Value) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    for i in 0..2 {
        let pose = Pose::new(quaternion(&o["q"][i]), vector(&o["x"][i]));
        let inertia = DMat3::from_diagonal(vector(&o["I_body"][i]));
        let spec = BodySpec::new(format!("rod {i}")).mass(o["mass"][i].as_f64().unwrap()).inertia(inertia, DVec3::ZERO);
        builder.body(spec.pose(pose));
        let parent = if i == 0 { BodyRef::World } else { BodyId(0).into() };
        let joint = JointSpec::new(format!("joint {i}"), JointMask::BALL, BodyId(i as u32), parent);
        builder.joint(joint.frames(Pose::at(vector(&o["la"][i])), Pose::at(vector(&o["lb"][i]))));
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    for i in 0..2 {
        state.bodies[i].velocity = Twist::new(vector(&o["v"][i]), vector(&o["w"][i]));
    }
    (model, state)
}

#[test]
fn a_double_pendulum_takes_the_step_of_the_oracle() {
    let o = oracle("bender_double_pendulum");
    let (model, start) = double_pendulum(&o);
    // The matrix of the system, from the rows.
    let (j, mass) = dense_rows(&model, &start);
    assert!((&j * &mass * j.transpose() - dense(&o["SLE"])).amax() < 1e-9);

    for elimination in [Elimination::Joints, Elimination::Bodies] {
        let mut state = start.clone();
        let input = Input {
            dt: o["h"].as_f64().unwrap(),
            gravity: vector(&o["gravity"]),
            solver: with(Impulse { elimination, ..exact() }),
            ..Input::default()
        };
        let report = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        // The oracle's errors reach 1e-13 with the eighth correction; the ninth finds nothing to do.
        assert_eq!(report.corrections, 8, "{report:?}");
        for (i, body) in state.bodies.iter().enumerate() {
            // The flights differ by the error of the Runge–Kutta rule: (h|ω|/2)⁵/120, 1e-9 at 2.5 rad/s; over h in velocities.
            assert!((body.position - vector(&o["x1"][i])).length() < 3e-9);
            let turned = log(body.orientation * quaternion(&o["q1"][i]).conjugate()).length();
            assert!(turned < 1e-8, "{turned:e}");
            assert!((body.velocity.linear - vector(&o["v_final"][i])).length() < 1e-7);
            assert!((body.velocity.angular - vector(&o["w_final"][i])).length() < 1e-7);
        }
    }
}

#[test]
fn the_error_falls_as_the_oracle_says() {
    let o = oracle("bender_double_pendulum");
    let (model, start) = double_pendulum(&o);
    let errors: Vec<f64> =
        o["err_per_iteration"].as_array().unwrap().iter().map(|x| x.as_str().unwrap().parse().unwrap()).collect();
    for (k, error) in errors.iter().enumerate().take(6) {
        // A tolerance just above the k-th error is met after k corrections, just below not.
        for (tolerance, corrections) in [(1.01 * error, k), (0.99 * error, k + 1)] {
            let solver = with(Impulse { tolerance, ..Impulse::default() });
            let (dt, gravity) = (o["h"].as_f64().unwrap(), vector(&o["gravity"]));
            let input = Input { dt, gravity, solver, ..Input::default() };
            let report = step(&model, &input, &mut start.clone(), &mut Work::new(&model)).unwrap();
            assert_eq!(report.corrections as usize, corrections, "tolerance {tolerance:e}");
        }
    }
}

#[test]
fn a_four_bar_with_repeated_rows_gets_the_velocities_of_the_oracle() {
    // 20 rows of rank 17. The oracle projects v + h g onto the joints: so does a step of no length.
    let o = oracle("fourbar");
    let (model, mut state) = four_bar(&o);
    let h = o["h"].as_f64().unwrap();
    for (i, body) in state.bodies.iter_mut().enumerate() {
        let given = &o["bodies"][i];
        body.velocity = Twist::new(vector(&given["v"]) + vector(&o["gravity"]) * h, vector(&given["w"]));
    }
    for elimination in [Elimination::Joints, Elimination::Bodies] {
        let mut state = state.clone();
        let solver = with(Impulse { elimination, velocity_tolerance: 1e-11, ..Impulse::default() });
        let input = Input { dt: 1e-10, gravity: DVec3::ZERO, solver, ..Input::default() };
        let report = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        assert!(report.velocity_corrections <= 4, "{report:?}");
        for (body, v) in state.bodies.iter().zip(o["v"].as_array().unwrap()) {
            let found = [body.velocity.linear.to_array(), body.velocity.angular.to_array()].concat();
            // 1e-10 s of motion at 1 rad/s
            assert!(found.iter().zip(numbers(v)).all(|(a, b)| (a - b).abs() < 1e-8), "{found:?}");
        }
    }
}

fn four_bar(o: &Value) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    for (i, b) in o["bodies"].as_array().unwrap().iter().enumerate() {
        let inertia = DMat3::from_diagonal(vector(&b["I_body"]));
        let spec = BodySpec::new(format!("bar {i}")).mass(b["m"].as_f64().unwrap()).inertia(inertia, DVec3::ZERO);
        builder.body(spec.pose(Pose::new(quaternion(&b["q_wxyz"]), vector(&b["x"]))));
    }
    let along_z = DQuat::from_rotation_y(-std::f64::consts::FRAC_PI_2); // X of the joint's frame along Z
    for (i, j) in o["joints"].as_array().unwrap().iter().enumerate() {
        let parent = match j["b"].as_i64().unwrap() {
            -1 => BodyRef::World,
            b => BodyId(b as u32).into(),
        };
        let spec =
            JointSpec::new(format!("hinge {i}"), JointMask::HINGE, BodyId(j["a"].as_u64().unwrap() as u32), parent);
        builder.joint(spec.frames(Pose::new(along_z, vector(&j["la"])), Pose::new(along_z, vector(&j["lb"]))));
    }
    let model = builder.build().unwrap();
    let state = model.start();
    (model, state)
}

// ---- Dense solution ----

/// J over all joints and M⁻¹, at a state.
fn dense_rows(model: &Model, state: &State) -> (DMatrix<f64>, DMatrix<f64>) {
    let n = model.bodies().len();
    let count: usize = model.joints().iter().map(|j| j.mask.rows()).sum();
    let mut j = DMatrix::zeros(count, 6 * n);
    let mut at = 0;
    for joint in model.joints() {
        for row in joint.errors(&model.sides(joint, state)).iter() {
            for (body, t) in [(Some(joint.child), row.a), (joint.parent, row.b)] {
                let Some(body) = body else { continue };
                for k in 0..3 {
                    j[(at, 6 * body.index() + k)] += t.linear[k];
                    j[(at, 6 * body.index() + 3 + k)] += t.angular[k];
                }
            }
            at += 1;
        }
    }
    let mut mass = DMatrix::zeros(6 * n, 6 * n);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let inverse = turned_inertia(s.orientation, body.inertia).inverse();
        for k in 0..3 {
            mass[(6 * i + k, 6 * i + k)] = 1.0 / body.mass;
            for l in 0..3 {
                mass[(6 * i + 3 + k, 6 * i + 3 + l)] = inverse.col(l)[k];
            }
        }
    }
    (j, mass)
}

fn errors(model: &Model, state: &State) -> DVector<f64> {
    let all = model
        .joints()
        .iter()
        .flat_map(|joint| joint.errors(&model.sides(joint, state)).iter().map(|row| row.error).collect::<Vec<_>>());
    DVector::from_vec(all.collect())
}

/// Adds M⁻¹ Jᵀ p by body.
fn add(state: &mut State, change: &DVector<f64>) {
    for (i, body) in state.bodies.iter_mut().enumerate() {
        body.velocity.linear += DVec3::from_slice(&change.as_slice()[6 * i..6 * i + 3]);
        body.velocity.angular += DVec3::from_slice(&change.as_slice()[6 * i + 3..6 * i + 6]);
    }
}

/// The free flight as the paper has it: eq. 4 in body axes, in a hundred small Runge–Kutta steps.
fn flown(model: &Model, state: &State, gravity: DVec3, h: f64) -> State {
    let mut end = state.clone();
    for (body, s) in model.bodies().iter().zip(&mut end.bodies) {
        let k = h / 100.0;
        let (i0, inverse) = (body.inertia, body.inertia.inverse());
        let mut y = (s.orientation, s.orientation.conjugate() * s.velocity.angular);
        let rate =
            |(q, w): (DQuat, DVec3)| (q * DQuat::from_xyzw(w.x, w.y, w.z, 0.0) * 0.5, inverse * -w.cross(i0 * w));
        let ahead = |y: (DQuat, DVec3), r: (DQuat, DVec3), k: f64| (y.0 + r.0 * k, y.1 + r.1 * k);
        for _ in 0..100 {
            let a = rate(y);
            let b = rate(ahead(y, a, 0.5 * k));
            let c = rate(ahead(y, b, 0.5 * k));
            let d = rate(ahead(y, c, k));
            y.0 += (a.0 + (b.0 + c.0) * 2.0 + d.0) * (k / 6.0);
            y.1 += (a.1 + (b.1 + c.1) * 2.0 + d.1) * (k / 6.0);
        }
        s.position += s.velocity.linear * h + gravity * (0.5 * h * h);
        s.velocity.linear += gravity * h;
        s.orientation = y.0.normalize();
        s.velocity.angular = s.orientation * y.1;
    }
    end
}

/// A tree of bodies on joints of any of the 64 kinds, assembled, moving as its joints allow.
fn random_tree(random: &mut Random, count: usize) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    let mut poses: Vec<Pose> = Vec::new();
    for i in 0..count {
        let mask = JointMask::from_bits(random.below(64) as u8);
        let (frame_a, frame_b, relative) = (random.pose(), random.pose(), random.allowed(mask));
        let parent = (i > 0).then(|| random.below(i));
        poses.push(parent.map_or(Pose::IDENTITY, |p| poses[p]).then(frame_b).then(relative).then(frame_a.inverse()));
        let size = DVec3::new(random.range(0.1, 0.4), random.range(0.1, 0.4), random.range(0.1, 0.4));
        let shape = Shape::cuboid(size.x, size.y, size.z);
        builder.body(BodySpec::new(format!("body {i}")).shape(shape, 1000.0).pose(poses[i]));
        let holder = parent.map_or(BodyRef::World, |p| BodyId(p as u32).into());
        let spec = JointSpec::new(format!("joint {i}"), mask, BodyId(i as u32), holder);
        builder.joint(spec.frames(frame_a, frame_b));
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    for body in &mut state.bodies {
        body.velocity = Twist::new(random.vector(0.5), random.vector(1.5));
    }
    // v ← v − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹ J v
    let (j, mass) = dense_rows(&model, &state);
    let v = velocities(&state);
    let p = (&j * &mass * j.transpose()).cholesky().map(|s| s.solve(&(-&j * v)));
    if let Some(p) = p {
        add(&mut state, &(mass * j.transpose() * p));
    }
    (model, state)
}

fn velocities(state: &State) -> DVector<f64> {
    let all = state.bodies.iter().flat_map(|b| [b.velocity.linear.to_array(), b.velocity.angular.to_array()].concat());
    DVector::from_vec(all.collect())
}

#[test]
fn a_step_is_that_of_a_dense_solution_in_both_eliminations() {
    let h = 1.0 / 120.0;
    let gravity = DVec3::new(0.0, -9.81, 0.0);
    let (mut worst, mut between) = (0.0f64, 0.0f64);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(14);
        let (model, start) = random_tree(&mut random, count);
        // The paper's iteration, dense: S at the start, correct until closed; S at the end, stop.
        let (j, mass) = dense_rows(&model, &start);
        let s = (&j * &mass * j.transpose()).lu();
        let mut reference = start.clone();
        for _ in 0..60 {
            let d = errors(&model, &flown(&model, &reference, gravity, h));
            if d.is_empty() || d.amax() < 1e-13 {
                break;
            }
            let p = s.solve(&(d / -h)).unwrap();
            add(&mut reference, &(&mass * j.transpose() * p));
        }
        let mut reference = flown(&model, &reference, gravity, h);
        let (j, mass) = dense_rows(&model, &reference);
        if j.nrows() > 0 {
            let p = (&j * &mass * j.transpose()).lu().solve(&(-&j * velocities(&reference))).unwrap();
            add(&mut reference, &(&mass * j.transpose() * p));
        }
        let mut ends = Vec::new();
        for elimination in [Elimination::Joints, Elimination::Bodies] {
            let input = Input { dt: h, solver: with(Impulse { elimination, ..exact() }), ..Input::default() };
            let mut state = start.clone();
            step(&model, &input, &mut state, &mut Work::new(&model)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let off = (velocities(&state) - velocities(&reference)).amax();
            worst = worst.max(apart(&state, &reference)).max(off);
            ends.push(state);
        }
        between = between.max((velocities(&ends[0]) - velocities(&ends[1])).amax());
    }
    println!("from dense {worst:.1e}, between the eliminations {between:.1e}");
    // Positions are closed to 1e-13, which h turns into 1e-11 m/s, and levers of up to 10 m into more; the Runge–Kutta rule
    // errs by (h|ω|/2)⁵/120 in a turn, 1e-11 at 4 rad/s, 1e-9 over h.
    assert!(worst < 2e-9 && between < 1e-12, "{worst:e} {between:e}");
}

#[test]
fn all_64_joints_move_as_solver_tree_moves_them() {
    // Two bodies, the mask under test between them and at the world; 0.1 s.
    let mut worst = 0.0f64;
    for bits in 0..64 {
        let mut random = Random::new(900 + u64::from(bits));
        let mask = JointMask::from_bits(bits);
        let mut builder = ModelBuilder::new();
        let mut last = Pose::IDENTITY;
        for i in 0..2 {
            let (frame_a, frame_b, relative) = (random.pose(), random.pose(), random.allowed(mask));
            last = last.then(frame_b).then(relative).then(frame_a.inverse());
            builder.body(block(&format!("body {i}"), DVec3::ZERO).pose(last));
            let parent = if i == 0 { BodyRef::World } else { BodyId(0).into() };
            builder.joint(JointSpec::new(format!("joint {i}"), mask, BodyId(i), parent).frames(frame_a, frame_b));
        }
        let model = builder.build().unwrap();
        let run = |solver: Solver, steps: usize| {
            let mut state = model.start();
            let input = Input { dt: 0.1 / steps as f64, solver, ..Input::default() };
            let report = go(&model, &input, &mut state, steps);
            (state, report)
        };
        let (reference, _) = run(Solver::default(), 200);
        for variant in [Variant::System, Variant::JointByJoint] {
            let (state, report) = run(with(Impulse { variant, ..Impulse::default() }), 100);
            // The tolerance of both; tilt is a sine.
            assert!(report.max_joint_gap < 1e-6 && report.max_joint_tilt < 1e-6, "mask {bits}: {report:?}");
            worst = worst.max(apart(&state, &reference));
            // Both are of second order: at 1 ms they differ by less than a hundredth of a millimetre after 5 cm of fall.
            assert!(apart(&state, &reference) < 1e-5, "mask {bits}, {variant:?}: {:e}", apart(&state, &reference));
        }
    }
    println!("worst {worst:.1e} m");
}

// ---- What the paper and the study behind it say ----

/// Links with three different moments, free in space.
fn free_chain(links: usize) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    let mut random = Random::new(5);
    for i in 0..links {
        builder.body(block(&format!("link {i}"), DVec3::X * (0.4 * i as f64)));
        if i > 0 {
            let at = DVec3::X * (0.4 * i as f64 - 0.2);
            builder.joint(
                JointSpec::new(format!("joint {i}"), JointMask::BALL, BodyId(i as u32), BodyId(i as u32 - 1)).at(at),
            );
        }
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    state.bodies.iter_mut().for_each(|b| b.velocity = Twist::new(random.vector(1.0), random.vector(3.0)));
    let (j, mass) = dense_rows(&model, &state);
    let p = (&j * &mass * j.transpose()).lu().solve(&(-&j * velocities(&state))).unwrap();
    add(&mut state, &(mass * j.transpose() * p));
    (model, state)
}

#[test]
fn momentum_is_kept() {
    let (model, start) = free_chain(5);
    for (dt, energy_kept) in [(1.0 / 30.0, 5e-2), (1.0 / 120.0, 2e-3)] {
        let solver = with(Impulse { tolerance: 1e-11, iterations: 20, ..Impulse::default() });
        let input = Input { dt, gravity: DVec3::ZERO, solver, ..Input::default() };
        let mut state = start.clone();
        let before = measure::momentum(&model, &state);
        let first = measure::energy(&model, &input, &state).total();
        go(&model, &input, &mut state, (5.0 / dt) as usize);
        let after = measure::momentum(&model, &state);
        let linear = (after.linear - before.linear).length();
        let angular = (after.angular - before.angular).length() / before.angular.length();
        let energy = (measure::energy(&model, &input, &state).total() - first).abs() / first;
        println!("1/{:.0}: |ΔP| {linear:.1e}, ΔL {angular:.1e}, ΔE {energy:.1e}", 1.0 / dt);
        // 10 kg at 1 m/s, some roundings a step. Impulses act where joints are closed to 1e-11 m, and the flight keeps the angular momentum
        // (the study behind the formulas, with ω in body axes, lost 1.7e-3 of it at 1/30 s and 1.7e-6 at 1/120 s).
        assert!(linear < 1e-12 && angular < 1e-10, "{linear:e} {angular:e}");
        assert!(energy < energy_kept, "{energy:e}");
    }
}

/// A tree of bars that turns about the vertical as one.
fn turning_tree(size: u32, omega: f64) -> (Scene, State) {
    let scene = Scene::parse(&format!("tree:{size}")).unwrap();
    let mut state = scene.state.clone();
    for body in &mut state.bodies {
        body.velocity = Twist::new((DVec3::Y * omega).cross(body.position), DVec3::Y * omega);
    }
    (scene, state)
}

#[test]
fn trees_need_few_iterations() {
    for size in [31, 63, 127, 255] {
        let (scene, mut state) = turning_tree(size, 1.0);
        let input = Input { dt: 1.0 / 30.0, solver: impulse(), ..Input::default() };
        let mut work = Work::new(&scene.model);
        let mut all = Vec::new();
        for _ in 0..6 {
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
            all.push(report.corrections);
            assert_eq!((report.velocity_corrections, report.fallbacks), (1, 0));
        }
        println!("tree:{size}: {all:?}");
        // The rate of convergence is about h|ω|, 0.03 at the start.
        assert!(all.iter().all(|n| (2..=4).contains(n)), "tree:{size}: {all:?}");
    }
}

#[test]
fn one_factorisation_serves_the_end_of_a_step_and_the_start_of_the_next() {
    let scene = Scene::parse("tree:31").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.solver = impulse();
    let counts: Vec<u32> = (0..5)
        .map(|_| {
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap().factorisations
        })
        .collect();
    assert_eq!(counts, [2, 1, 1, 1, 1]);
    // A body that was moved by hand is noticed.
    state.bodies[3].position.x += 1e-9;
    assert_eq!(step(&scene.model, &input, &mut state, &mut work).unwrap().factorisations, 2);
}

#[test]
fn both_variants_make_the_same_step() {
    // With springs, limits and motors too: the system's implicit blocks against impulses one by one.
    for name in ["tree:15", "hand", "robot", "chain:8"] {
        let scene = Scene::parse(name).unwrap();
        let run = |variant: Variant| {
            let settings =
                Impulse { variant, tolerance: 1e-10, velocity_tolerance: 1e-10, iterations: 20, ..Impulse::default() };
            let mut input = Input { dt: 1.0 / 60.0, solver: with(settings), ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            for _ in 0..4 {
                scene.direct(state.time, &mut input);
                step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            state
        };
        let (a, b) = (run(Variant::System), run(Variant::JointByJoint));
        let off = (velocities(&a) - velocities(&b)).amax();
        println!("{name}: {off:.1e}");
        // Errors of 1e-10 m a joint over h; the rounds stop where each changes so little, up to a thousand rounds before the end.
        assert!(off < 1e-6, "{name}: {off:e}");
    }
}

#[test]
fn the_step_is_of_second_order() {
    // Swinging on hinges and balls; with springs that are gentle at these steps and a damper.
    for (scene, what) in [
        (Scene::parse("double_pendulum").unwrap(), "hinges"),
        (Scene::parse("chain:4,stiffness=0,damping=0").unwrap(), "balls"),
        (Scene::parse("chain:3,stiffness=0.02,damping=0.0002").unwrap(), "springs"),
    ] {
        let end = |steps: usize| {
            let settings =
                Impulse { tolerance: 1e-12, velocity_tolerance: 1e-11, iterations: 20, ..Impulse::default() };
            support::play(&scene, with(settings), 0.3 / steps as f64, 0.3)
        };
        let reference = end(6400);
        let errors: Vec<f64> = [100, 200, 400].iter().map(|n| apart(&end(*n), &reference)).collect();
        println!("{what}: {} {:?}", support::list(&errors), orders(&errors));
        assert!(orders(&errors).iter().all(|p| (1.9..2.2).contains(p)), "{what}: {errors:?} {:?}", orders(&errors));
    }
}

#[test]
fn stiff_springs_are_of_first_order_until_they_are_gentle() {
    // A chain so stiff that no step here is gentle: the error falls in proportion to the step.
    let scene = Scene::parse("chain:3,stiffness=5,damping=0.5").unwrap();
    let end = |steps: usize| support::play(&scene, impulse(), 0.2 / steps as f64, 0.2);
    let reference = end(12_800);
    let errors: Vec<f64> = [25, 50, 100].iter().map(|n| apart(&end(*n), &reference)).collect();
    println!("{} {:?}", support::list(&errors), orders(&errors));
    assert!(orders(&errors).iter().all(|p| *p > 0.8), "{errors:?}");
}

// ---- Stiffness ----

#[test]
fn no_stiffness_explodes() {
    for (stiffness, damping) in [(1e2, 0.0), (1e5, 0.0), (1e9, 0.0), (1e9, 1e6), (0.0, 1e6)] {
        for dt in [1.0 / 30.0, 1.0 / 60.0, 1.0 / 250.0] {
            let scene = Scene::parse(&format!("chain:10,stiffness={stiffness},damping={damping}")).unwrap();
            let mut input = Input { dt, solver: impulse(), ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            let first = measure::energy(&scene.model, &input, &state).total();
            let released = 10.0 * 0.1 * 9.81 * 0.5; // J, the chain from horizontal to hanging
            for _ in 0..(2.0 / dt) as usize {
                scene.direct(state.time, &mut input);
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                assert!(report.max_joint_gap < 1e-6);
                let energy = measure::energy(&scene.model, &input, &state).total();
                // The energy of a spring of 1e9 bent by the tolerance of a joint is 1e-3 J.
                assert!(energy < first + 0.01 * released, "k {stiffness}, c {damping}, dt {dt}: {energy} of {first}");
            }
        }
    }
}

#[test]
fn stiff_characters_run_at_frame_steps() {
    for name in ["hand", "robot", "plant", "strand"] {
        let scene = Scene::parse(name).unwrap();
        let reference = support::play(&scene, Solver::default(), 1.0 / 60.0, 1.0);
        let state = support::play(&scene, impulse(), 1.0 / 60.0, 1.0);
        println!("{name}: {:.1e} m from the default step", apart(&state, &reference));
        // Two rules at frame size, of a character of 0.2 m to 2 m that is moved by decimetres.
        assert!(apart(&state, &reference) < 0.02, "{name}: {:e}", apart(&state, &reference));
    }
}

#[test]
fn what_hangs_at_rest_stays_at_rest() {
    // A weight on a stiff slide spring, let settle, and a stiff horizontal hinge: no velocity is left, at any step.
    for (mask, stiffness) in [(JointMask::PRISMATIC, 1e5), (JointMask::PRISMATIC, 5.0), (JointMask::HINGE, 1e4)] {
        let mut builder = ModelBuilder::new();
        builder.body(block("weight", DVec3::new(0.0, -0.3, 0.2)));
        let down = DQuat::from_rotation_z(-std::f64::consts::FRAC_PI_2);
        let spec = JointSpec::new("joint", mask, "weight", BodyRef::World);
        let spec = spec.frames(Pose::new(down, DVec3::new(0.0, 0.3, -0.2)), Pose::new(down, DVec3::ZERO));
        let damping = 2.0 * (stiffness * 2.0f64).sqrt();
        builder.joint(spec.spring(stiffness, damping).slide_spring(SlideSpring {
            stiffness,
            damping,
            rest: DVec3::ZERO,
        }));
        let model = builder.build().unwrap();
        let input = Input { solver: impulse(), ..Input::default() };
        let mut state = model.start();
        go(&model, &input, &mut state, 2000);
        let body = &state.bodies[0];
        let rest = body.velocity.linear.length().max(body.velocity.angular.length());
        if mask == JointMask::PRISMATIC {
            // k s = m g
            let s = -0.3 - body.position.y;
            assert!((s * stiffness - 2.0 * 9.81).abs() < 1e-5, "{s}");
        }
        assert!(rest < 1e-7, "k {stiffness}: {rest:e}");
    }
}

#[test]
fn a_limit_stops_and_does_not_pull() {
    // A rod falls about a hinge onto a stiff, damped limit; then a motor lifts it off: nothing holds it back.
    let range = Limits { angle: Some(Range::new(-0.5, 2.0)), stiffness: 1e5, damping: 1e3, ..Limits::default() };
    let motor = Motor { stiffness: 0.0, damping: 0.0, max: 100.0, integral: 0.0 };
    let mut builder = ModelBuilder::new();
    builder.body(block("rod", DVec3::X * 0.5));
    let about_z = DQuat::from_rotation_y(-std::f64::consts::FRAC_PI_2);
    let spec = JointSpec::new("hinge", JointMask::HINGE, "rod", BodyRef::World);
    let spec = spec.frames(Pose::new(about_z, -DVec3::X * 0.5), Pose::new(about_z, DVec3::ZERO));
    builder.joint(spec.limits(range).motor(motor));
    let model = builder.build().unwrap();
    let mut input = Input { solver: impulse(), ..Input::default() };
    let (mut state, mut work) = (model.start(), Work::new(&model));
    let mut acted = 0;
    for _ in 0..120 {
        acted += step(&model, &input, &mut state, &mut work).unwrap().limits_active;
        assert!(state.joints[0].angle > -0.503, "{}", state.joints[0].angle); // 0.0019 rad at rest; the impact a little more
    }
    // Within the width w over which the limit sets in, k v²/2w = m g r cos(0.5 + v).
    let rest = (0..9).fold(-0.5f64, |x, _| -0.5 - (2.0 * Limits::WIDTH * 2.0 * 9.81 * 0.5 * x.cos() / 1e5).sqrt());
    assert!(acted > 60 && (state.joints[0].angle - rest).abs() < 1e-6, "{} {acted}", state.joints[0].angle);
    // 15 N·m against 8.6 of gravity: the same first step up as without a limit.
    input.joint_mut(&model, 0).torque = 15.0;
    let lifted = 2.0 * 9.81 * 0.5 * 0.5f64.cos();
    let inertia = support::MOMENTS.z + 2.0 * 0.25;
    let mut lift = 0.0;
    for _ in 0..6 {
        step(&model, &input, &mut state, &mut work).unwrap();
        lift = state.bodies[0].velocity.angular.z;
    }
    let free = (15.0 - lifted) / inertia * 0.1;
    // The first half kick still finds the limit pushing; gravity falls a little on the way up.
    assert!((lift / free - 1.0).abs() < 0.1, "{lift} of {free}");
}

// ---- Divergence ----

#[test]
fn fast_motion_is_done_in_halves_and_stays_bounded() {
    for (name, dt) in [("whip:20", 1.0 / 30.0), ("whip:10,tip_mass=10", 1.0 / 60.0), ("top", 1.0 / 15.0)] {
        let scene = Scene::parse(name).unwrap();
        let mut input = Input { dt, solver: impulse(), ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        let energy = |input: &Input, state: &State| measure::energy(&scene.model, input, state);
        let first = energy(&input, &state);
        // What may turn into motion at most: kinetic energy at the start, and the fall by the length of the chain on both sides.
        let length = 0.1 * scene.model.bodies().len() as f64;
        let scale = first.kinetic + 2.0 * scene.model.mass() * 9.81 * length;
        let (mut halved, mut most) = (0, 0.0f64);
        for n in 0..(3.0 / dt) as usize {
            scene.direct(state.time, &mut input);
            let report =
                step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name} {n}: {e}"));
            halved += report.fallbacks;
            assert!(report.max_joint_gap < 1e-6 && report.substeps == 1 + report.fallbacks, "{name}: {report:?}");
            most = most.max((energy(&input, &state).total() - first.total()) / scale);
        }
        println!("{name}: {halved} halvings, energy gained at most {most:.1e}");
        assert!(halved > 0 && most < 0.05, "{name}: {halved} {most}");
    }
}

#[test]
fn corrections_that_cannot_succeed_name_the_joint_and_leave_the_state() {
    // Joints torn a metre apart, one correction allowed for closing them to 1e-12.
    let scene = Scene::parse("chain:3").unwrap();
    let mut state = scene.state.clone();
    for (i, body) in state.bodies.iter_mut().enumerate() {
        body.position.y += (i * i) as f64;
        body.velocity.angular = DVec3::splat(20.0);
    }
    let before = state.clone();
    let solver = with(Impulse { tolerance: 1e-12, iterations: 1, ..Impulse::default() });
    let input = Input { solver, ..scene.input.clone() };
    let error = step(&scene.model, &input, &mut state, &mut Work::new(&scene.model)).unwrap_err();
    assert!(matches!(error, StepError::Diverged { .. }), "{error}");
    assert_eq!(state, before);
}

#[test]
fn settings_without_sense_are_refused() {
    let scene = Scene::parse("chain:3").unwrap();
    let normal = Impulse::default();
    for settings in [
        Impulse { tolerance: 0.0, ..normal },
        Impulse { tolerance: f64::NAN, ..normal },
        Impulse { velocity_tolerance: -1.0, ..normal },
        Impulse { iterations: 0, ..normal },
    ] {
        let input = Input { solver: with(settings), ..scene.input.clone() };
        let error = step(&scene.model, &input, &mut scene.state.clone(), &mut Work::new(&scene.model)).unwrap_err();
        assert_eq!(error.code(), "step/input");
    }
}

// ---- Loops, grips, velocity correction ----

#[test]
fn a_four_bar_swings_closed_and_keeps_its_energy() {
    let (model, start) = four_bar(&oracle("fourbar"));
    let mut offs = Vec::new();
    for (dt, elimination, variant) in [
        (1.0 / 120.0, Elimination::Joints, Variant::System),
        (1.0 / 480.0, Elimination::Joints, Variant::System),
        (1.0 / 120.0, Elimination::Bodies, Variant::System),
        (1.0 / 120.0, Elimination::Automatic, Variant::JointByJoint),
    ] {
        let mut state = start.clone();
        let input =
            Input { dt, solver: with(Impulse { elimination, variant, ..Impulse::default() }), ..Input::default() };
        let mut work = Work::new(&model);
        let first = measure::energy(&model, &input, &state).total();
        let (mut swing, mut off) = (0.0f64, 0.0f64);
        for n in 0..(2.0 / dt) as usize {
            let report = step(&model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{variant:?} {n}: {e}"));
            assert!(report.max_joint_gap < 1e-6 && report.max_joint_tilt < 1e-6, "{report:?}");
            off = off.max((measure::energy(&model, &input, &state).total() - first).abs());
            swing = swing.max(state.bodies[0].velocity.angular.z.abs());
        }
        println!("{elimination:?} {variant:?}: energy off by {off:.1e} J, up to {swing:.1} rad/s");
        // Some 20 J are turned over at up to 10 rad/s: (h|ω|)² = 0.7 % of it.
        assert!(swing > 2.0 && off < 0.5, "{swing} {off}");
        offs.push(off);
    }
    // Second order: a quarter of the step, a sixteenth of the error.
    assert!((10.0..20.0).contains(&(offs[0] / offs[1])), "{offs:?}");
}

#[test]
fn a_ring_of_balls_stays_closed() {
    for links in [4u32, 8, 32] {
        let mut builder = ModelBuilder::new();
        let angle = |i: f64| std::f64::consts::TAU * i / f64::from(links);
        let corner = |i: f64| DVec3::new(angle(i).cos(), angle(i).sin(), 0.0) * 0.1 * f64::from(links);
        for i in 0..links {
            let i = f64::from(i);
            let middle = (corner(i) + corner(i + 1.0)) * 0.5;
            builder.body(block(&format!("link {i}"), middle));
        }
        for i in 0..links {
            let next = (i + 1) % links;
            let spec = JointSpec::new(format!("joint {i}"), JointMask::BALL, BodyId(next), BodyId(i));
            builder.joint(spec.at(corner(f64::from(i + 1))));
        }
        let model = builder.build().unwrap();
        assert_eq!(model.topology().loops.len(), 1);
        let mut ends = Vec::new();
        for elimination in [Elimination::Joints, Elimination::Bodies] {
            let mut state = model.start();
            let mut random = Random::new(3);
            state.bodies.iter_mut().for_each(|b| b.velocity = Twist::new(random.vector(0.3), random.vector(0.5)));
            let solver = with(Impulse { elimination, ..Impulse::default() });
            let input = Input { dt: 1.0 / 60.0, gravity: DVec3::ZERO, solver, ..Input::default() };
            let mut work = Work::new(&model);
            let before = measure::momentum(&model, &state);
            for n in 0..120 {
                let report = step(&model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{links} {n}: {e}"));
                assert!(
                    report.max_joint_gap < 1e-6 && report.corrections <= 4 * report.substeps,
                    "{links}: {report:?}"
                );
            }
            let after = measure::momentum(&model, &state);
            assert!((after.linear - before.linear).length() < 1e-11, "{links}"); // roundings of 64 kg in 120 steps
            assert!((after.angular - before.angular).length() < 1e-5 * before.angular.length().max(1.0), "{links}");
            ends.push(state);
        }
        // Both solve to 1e-6 m; small differences grow in two seconds.
        assert!(apart(&ends[0], &ends[1]) < 1e-3, "{links}: {:e}", apart(&ends[0], &ends[1]));
    }
}

#[test]
fn a_joint_given_twice_is_as_good_as_once() {
    let build = |times: usize| {
        let mut builder = ModelBuilder::new();
        for i in 0..3u32 {
            builder.body(block(&format!("body {i}"), DVec3::X * f64::from(i)));
            let parent = if i == 0 { BodyRef::World } else { BodyId(i - 1).into() };
            for k in 0..times {
                let spec = JointSpec::new(format!("joint {i} {k}"), JointMask::HINGE, BodyId(i), parent.clone());
                let turned = DQuat::from_rotation_z(0.4 * f64::from(i));
                builder.joint(spec.frames(
                    Pose::new(turned, -DVec3::X * 0.5),
                    Pose::new(turned, DVec3::X * if i == 0 { -0.5 } else { 0.5 }),
                ));
            }
        }
        builder.build().unwrap()
    };
    let run = |times: usize| {
        let model = build(times);
        let mut state = model.start();
        go(
            &model,
            &Input { solver: with(Impulse { tolerance: 1e-10, ..Impulse::default() }), ..Input::default() },
            &mut state,
            30,
        );
        state
    };
    let (once, twice) = (run(1), run(2));
    // Closed to 1e-10 m, half a second.
    assert!(apart(&once, &twice) < 1e-7, "{:e}", apart(&once, &twice));
}

#[test]
fn velocities_are_corrected_or_left_to_the_next_step() {
    let scene = Scene::parse("chain:6,stiffness=0,damping=0").unwrap();
    let rate = |state: &State| {
        let (j, _) = dense_rows(&scene.model, state);
        (j * velocities(state)).amax()
    };
    let run = |velocity_correction| {
        support::play(&scene, with(Impulse { velocity_correction, ..Impulse::default() }), 1.0 / 120.0, 0.5)
    };
    let (on, off) = (run(VelocityCorrection::On), run(VelocityCorrection::Off));
    for state in [&on, &off] {
        assert!(measure::joint_gap(&scene.model, state).distance < 1e-6);
    }
    assert!(rate(&on) < 1e-6 && rate(&off) > 1e-2, "{:e} {:e}", rate(&on), rate(&off));
    // Half a step of gravity and swing in velocity, O(h) in position.
    assert!(apart(&on, &off) < 0.02, "{:e}", apart(&on, &off));
}

#[test]
fn a_grip_holds_a_point_and_a_pin_a_pose() {
    let scene = Scene::parse("chain:10,stiffness=1,damping=0.3").unwrap();
    let model = &scene.model;
    let body = BodyId(9);
    let tip = DVec3::X * 0.05;
    let place = |state: &State| state.bodies[9].pose().transform_point(tip);
    for substeps in [1, 3] {
        let mut state = scene.state.clone();
        let mut input = Input { solver: impulse(), substeps, ..Input::default() };
        let mut work = Work::new(model);
        // Let it come to rest, then lead its tip along a curve, then hold it.
        for _ in 0..600 {
            step(model, &input, &mut state, &mut work).unwrap();
        }
        let from = place(&state);
        let curve = |t: f64| DVec3::new(0.3 * t, 0.2 * t, 0.2 * (3.0 * t).sin()) * t;
        for n in 1..=90 {
            let target = from + curve((f64::from(n) / 60.0).min(1.0));
            input.grips = vec![Grip { body, point: tip, target, rotation: None }];
            let report = step(model, &input, &mut state, &mut work).unwrap();
            assert!((place(&state) - target).length() < 1e-6 && report.max_joint_gap < 1e-6, "{n}: {report:?}");
        }
        // Held in a pose: six rows.
        let (target, rotation) = (place(&state), Some(state.bodies[9].orientation));
        input.grips = vec![Grip { body, point: tip, target, rotation }];
        for _ in 0..30 {
            step(model, &input, &mut state, &mut work).unwrap();
            assert!((place(&state) - target).length() < 1e-6);
            assert!(log(state.bodies[9].orientation * rotation.unwrap().conjugate()).length() < 1e-6);
        }
    }
}

#[test]
fn a_grip_out_of_reach_gives_way() {
    let scene = Scene::parse("chain:10,stiffness=0,damping=0").unwrap();
    let mut state = scene.state.clone();
    let target = DVec3::new(0.0, -3.0, 0.0); // the chain is 1 m long
    let grip = Grip { body: BodyId(9), point: DVec3::X * 0.05, target, rotation: None };
    let input = Input { solver: impulse(), grips: vec![grip], ..Input::default() };
    let mut work = Work::new(&scene.model);
    for n in 0..300 {
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{n}: {e}"));
        assert!(report.max_joint_gap < 1e-6);
    }
    // It has come to hang straight down, pulled tight.
    let tip = state.bodies[9].pose().transform_point(DVec3::X * 0.05);
    assert!((tip - DVec3::new(0.0, -1.0, 0.0)).length() < 0.02, "{tip}");
}

// ---- Servos with an integral ----

/// A block on a hinge or a slider whose servo has this integral gain, with a lasting load; no gravity.
fn loaded(mask: JointMask, integral: f64, max: f64) -> Model {
    let mut builder = ModelBuilder::new();
    builder.body(block("block", DVec3::ZERO));
    let motor = Motor { stiffness: 20.0, damping: 4.0, max, integral };
    builder.joint(JointSpec::new("joint", mask, "block", BodyRef::World).motor(motor));
    builder.build().unwrap()
}

#[test]
fn an_integral_takes_away_the_error_of_a_lasting_load() {
    let load = 3.0; // N·m or N along X, against 20 a radian or metre
    let settings = Impulse { tolerance: 1e-12, velocity_tolerance: 1e-12, ..Impulse::default() };
    for solver in [Solver::default(), support::published(), with(settings)] {
        for (mask, wrench) in [
            (JointMask::HINGE, Wrench::new(DVec3::ZERO, DVec3::X * load)),
            (JointMask::PRISMATIC, Wrench::new(DVec3::X * load, DVec3::ZERO)),
        ] {
            for integral in [0.0, 10.0] {
                let model = loaded(mask, integral, 50.0);
                let mut input = Input { gravity: DVec3::ZERO, solver, ..Input::default() };
                input.joint_mut(&model, 0).servo = Some(ServoTarget::Position { position: 0.4, rate: 0.0 });
                input.wrenches = vec![(BodyId(0), wrench)];
                let mut state = model.start();
                go(&model, &input, &mut state, 3000);
                let x = if mask == JointMask::HINGE { state.joints[0].angle } else { state.bodies[0].position.x };
                // kp (x − x*) = load without; nothing with, when ki e = −load. Decays as e^(−0.5 t) at the slowest: 1e-10 after 50 s.
                let steady = if integral == 0.0 { load / 20.0 } else { 0.0 };
                assert!((x - 0.4 - steady).abs() < 1e-9, "{} {}: {x}", solver.name(), mask.name());
                let e = if integral == 0.0 { 0.0 } else { -load / integral };
                assert!((state.joints[0].integral - e).abs() < 1e-9, "{}", state.joints[0].integral);
            }
        }
    }
}

#[test]
fn an_integral_follows_its_differential_equation() {
    // I ẍ + kd ẋ + kp x = ki e,  ė = −x, from x = 0.3: against a Runge–Kutta solution.
    let model = loaded(JointMask::HINGE, 40.0, 1e3);
    let exact = {
        let mut y = [0.3, 0.0, 0.0];
        let rate = |y: [f64; 3]| [y[1], (40.0 * y[2] - 20.0 * y[0] - 4.0 * y[1]) / support::MOMENTS.x, -y[0]];
        let ahead = |y: [f64; 3], r: [f64; 3], k: f64| -> [f64; 3] { std::array::from_fn(|i| y[i] + k * r[i]) };
        let h = 1e-5;
        for _ in 0..50_000 {
            let a = rate(y);
            let b = rate(ahead(y, a, 0.5 * h));
            let c = rate(ahead(y, b, 0.5 * h));
            let d = rate(ahead(y, c, h));
            y = std::array::from_fn(|i| y[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]));
        }
        y[0]
    };
    let end = |steps: usize| {
        let mut input = Input { gravity: DVec3::ZERO, dt: 0.5 / steps as f64, ..Input::default() };
        input.joint_mut(&model, 0).servo = Some(ServoTarget::Position { position: 0.0, rate: 0.0 });
        let mut state = model.start();
        state.bodies[0].orientation = exp(DVec3::X * 0.3);
        state.recount_turns(&model);
        go(&model, &input, &mut state, steps);
        (state.joints[0].angle - exact).abs()
    };
    let errors = [end(200), end(400), end(800)];
    // The integral is taken at the end of each part: first order.
    assert!(errors[2] < 1e-3 && orders(&errors).iter().all(|p| (0.8..1.3).contains(p)), "{errors:?}");
}

#[test]
fn an_integral_does_not_wind_up() {
    // The load is beyond the motor for a long time: the integral stays within what the motor can answer.
    let model = loaded(JointMask::HINGE, 40.0, 5.0);
    let mut input = Input { gravity: DVec3::ZERO, solver: impulse(), ..Input::default() };
    input.joint_mut(&model, 0).servo = Some(ServoTarget::Position { position: 0.0, rate: 0.0 });
    input.wrenches = vec![(BodyId(0), Wrench::new(DVec3::ZERO, DVec3::X * 6.0))];
    let mut state = model.start();
    let mut work = Work::new(&model);
    for _ in 0..60 {
        step(&model, &input, &mut state, &mut work).unwrap();
        assert!(40.0 * state.joints[0].integral.abs() <= 5.0 * (1.0 + 1e-12));
    }
    assert!((40.0 * state.joints[0].integral + 5.0).abs() < 1e-9);
    // Motors off, or no place to go: it keeps what it has.
    let kept = state.joints[0].integral;
    input.torques = false;
    step(&model, &input, &mut state, &mut work).unwrap();
    input.torques = true;
    input.joint_mut(&model, 0).servo = None;
    step(&model, &input, &mut state, &mut work).unwrap();
    assert_eq!(state.joints[0].integral, kept);
}

#[test]
fn an_integral_on_a_ball_is_refused() {
    let mut builder = ModelBuilder::new();
    builder.body(block("block", DVec3::ZERO));
    let motor = Motor { stiffness: 20.0, damping: 4.0, max: 1.0, integral: 1.0 };
    builder.joint(JointSpec::new("joint", JointMask::BALL, "block", BodyRef::World).motor(motor));
    let problems = builder.build().unwrap_err().problems;
    assert_eq!((problems.len(), problems[0].code), (1, "model/motor"));
}

// ---- Determinism, hostility ----

#[test]
fn the_same_bits_with_a_fresh_work_and_when_resumed() {
    for name in ["tree:15", "star:15", "hand", "robot", "whip:10"] {
        let scene = Scene::parse(name).unwrap();
        for settings in [
            Impulse::default(),
            Impulse { elimination: Elimination::Bodies, ..Impulse::default() },
            Impulse { variant: Variant::JointByJoint, tolerance: 1e-4, velocity_tolerance: 1e-3, ..Impulse::default() },
        ] {
            let run = |mut state: State, steps: usize, fresh: usize| {
                let mut input = Input { dt: 1.0 / 60.0, solver: with(settings), ..scene.input.clone() };
                let mut work = Work::new(&scene.model);
                for n in 0..steps {
                    if n % fresh == 0 {
                        work = Work::new(&scene.model);
                    }
                    scene.direct(state.time, &mut input);
                    step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}: {e}"));
                }
                state
            };
            let whole = run(scene.state.clone(), 30, 1000);
            assert_eq!(run(scene.state.clone(), 30, 1).hash(), whole.hash(), "{name}, fresh");
            assert_eq!(run(run(scene.state.clone(), 13, 1000), 17, 1000).hash(), whole.hash(), "{name}, resumed");
        }
    }
}

#[test]
fn random_characters_end_in_a_finite_state_or_a_named_error() {
    // Trees with everything that may act, torn by a millimetre, turning at 3 rad/s.
    let (mut done, mut refused) = (0, 0);
    for seed in 0..80 {
        let mut random = Random::new(seed);
        let (model, mut input, start) = random.tree();
        for _ in 0..random.below(3) {
            let body = BodyId(random.below(model.bodies().len()) as u32);
            let rotation = random.chance(0.5).then(|| random.rotation(2.0));
            input.grips.push(Grip { body, point: random.vector(0.2), target: random.vector(1.0), rotation });
        }
        // The system takes all of them. A thousand rounds joint by joint are not enough for the stiffest, and take long.
        let variants: &[Variant] =
            if seed % 10 == 0 { &[Variant::System, Variant::JointByJoint] } else { &[Variant::System] };
        for &variant in variants {
            let tolerance = if variant == Variant::System { 1e-6 } else { 1e-3 };
            let iterations = if variant == Variant::System { 8 } else { 1 };
            let settings =
                Impulse { variant, tolerance, velocity_tolerance: tolerance, iterations, ..Impulse::default() };
            input.solver = with(settings);
            let (mut state, mut work) = (start.clone(), Work::new(&model));
            for _ in 0..(if variant == Variant::System { 20 } else { 1 }) {
                let before = state.clone();
                match step(&model, &input, &mut state, &mut work) {
                    Ok(report) => {
                        assert!(state.is_finite() && report.max_joint_gap < 2.0 * tolerance, "seed {seed}: {report:?}");
                        done += 1;
                    }
                    Err(error) => {
                        assert_eq!(state, before, "seed {seed}: {error}");
                        assert!(variant == Variant::JointByJoint, "seed {seed}: {error}");
                        refused += 1;
                        break;
                    }
                }
            }
        }
    }
    println!("{done} steps done, {refused} refused");
}

#[test]
fn four_bars_pass_the_flat_pose_where_their_rows_become_dependent() {
    for name in ["fourbars:4", "fourbars:20"] {
        let scene = Scene::parse(name).unwrap();
        let input = Input { solver: Solver::Impulse(Impulse::default()), ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        let start = measure::energy(&scene.model, &input, &state).total();
        let mut parts = 0;
        for n in 0..240 {
            let report =
                step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name} {n}: {e}"));
            assert!(report.max_joint_gap <= 1e-6, "{name} {n}: {}", report.max_joint_gap);
            parts += report.substeps;
        }
        let energy = measure::energy(&scene.model, &input, &state).total();
        // A step of second order at frame size, in 4 s of swinging.
        assert!((energy / start - 1.0).abs() < 0.02, "{name}: {start} to {energy}");
        assert!(parts < 300, "{name}: {parts}"); // a few steps about the flat pose are halved
    }
}

#[test]
fn split_loops_move_as_the_system_does_with_many_times_its_corrections() {
    for name in ["ring:16", "ladder:6"] {
        let scene = Scene::parse(name).unwrap();
        let run = |variant: Variant| {
            let settings = Impulse { variant, ..Impulse::default() };
            let input = Input { solver: Solver::Impulse(settings), ..scene.input.clone() };
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            let (mut corrections, mut gap) = (0, 0.0f64);
            for _ in 0..60 {
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                corrections += report.corrections + report.velocity_corrections;
                gap = gap.max(report.max_joint_gap);
            }
            (state, corrections, gap)
        };
        let (whole, few, _) = run(Variant::System);
        let (split, many, gap) = run(Variant::SplitLoops);
        assert!(gap <= 1e-6, "{name}: {gap}");
        // Errors of 1e-6 m a step, for a second.
        assert!(support::apart(&whole, &split) < 1e-4, "{name}: {}", support::apart(&whole, &split));
        assert!(many > 20 * few, "{name}: {many} and {few}");
    }
}
