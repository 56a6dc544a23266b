//! The reference half of solver `tree` against numbers computed elsewhere by dense methods, and against dense solutions
//! of its own systems.
//!
//! `data/oracles.json` holds published-precision results (12 digits) of an independent program. Quaternions there are
//! w, x, y, z; matrices are lists of rows; 12×12 matrices are ordered x_a, θ_a, x_b, θ_b.

mod common;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use supple::forces::{self, Acting, Derivatives, Force, PairBlock, PointSpring, Source};
use supple::maths::block::{Block, Vector, from_twist, from_wrench};
use supple::maths::rotation::{exp, log_derivative, log_derivative_symmetric, turned_inertia};
use supple::model::joint::{swing_twist, twist_angle};
use supple::solver::tree::assemble::{Gyroscopic, Options, System, Unknown, check};
use supple::solver::tree::kkt::{TreeLdlt, TreeLdu, reference, reference_velocities};
use supple::solver::{Impulses, Threads};
use supple::*;

fn oracle(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("data/oracles.json")).unwrap();
    all[name].clone()
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("not a number: {v}"))
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(number).collect()
}

fn vector(v: &Value) -> DVec3 {
    DVec3::from_slice(&numbers(v))
}

fn quaternion(v: &Value) -> DQuat {
    let q = numbers(v);
    DQuat::from_xyzw(q[1], q[2], q[3], q[0]).normalize()
}

fn matrix(v: &Value) -> DMat3 {
    let rows: Vec<DVec3> = v.as_array().unwrap().iter().map(vector).collect();
    DMat3::from_cols(rows[0], rows[1], rows[2]).transpose()
}

fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < tolerance, "{what}, entry {i}: {a} against {b}");
    }
}

fn assert_matrix(what: &str, found: DMat3, expected: DMat3, tolerance: f64) {
    assert_near(what, &found.to_cols_array(), &expected.to_cols_array(), tolerance);
}

#[test]
fn derivative_of_the_logarithm() {
    for case in oracle("jl_inv").as_array().unwrap() {
        let phi = vector(&case["phi"]);
        // The third vector is given to 12 digits and its derivative has entries of about 1.
        assert_matrix("R", DMat3::from_quat(exp(phi)), matrix(&case["R"]), 1e-11);
        assert_matrix("Jl⁻¹", log_derivative(phi), matrix(&case["jl_inv"]), 1e-11);
    }
}

#[test]
fn angular_spring() {
    let o = oracle("angular_spring");
    let k = number(&o["k"]);
    let phi = forces::rotation_error(quaternion(&o["q_a"]), quaternion(&o["q_b"]), DQuat::IDENTITY);
    assert_near("φ", &phi.to_array(), &numbers(&o["err"]), 1e-9);
    let exact = forces::rotation_spring(phi, k, 0.0, Derivatives::Exact);
    assert_near("T_a", &exact.torque.to_array(), &numbers(&o["T_a"]), 1e-9);
    let block = Force::Turning(exact).block(1.0, 0.0);
    for (block, key) in [(block.aa, "dTa_dtha"), (block.ab, "dTa_dthb"), (block.ba, "dTb_dtha"), (block.bb, "dTb_dthb")]
    {
        let expected = -matrix(&o[key]);
        for i in 0..3 {
            for j in 0..3 {
                assert!((block.get(i + 3, j + 3) - expected.col(j)[i]).abs() < 1e-9, "{key}");
            }
        }
    }
    assert_matrix("S", log_derivative_symmetric(phi), matrix(&o["S"]), 1e-9);

    // Min eigenvalue of the Hessian ½(K + Kᵀ) over k: why the exact blocks are not simply symmetrised.
    let k = dense_pair(&block) / k;
    let least = ((&k + k.transpose()) * 0.5).symmetric_eigenvalues().min();
    assert!((least - number(&o["hess_min_eig_over_k"])).abs() < 1e-9);
    let symmetric =
        dense_pair(&Force::Turning(forces::rotation_spring(phi, 7.0, 0.0, Derivatives::Symmetric)).block(1.0, 0.0));
    assert!(symmetric.symmetric_eigenvalues().min() > -1e-12);
}

fn dense_pair(block: &PairBlock) -> DMatrix<f64> {
    let quarters = [[&block.aa, &block.ab], [&block.ba, &block.bb]];
    DMatrix::from_fn(12, 12, |i, j| quarters[i / 6][j / 6].get(i % 6, j % 6))
}

#[test]
fn linear_springs() {
    for name in ["linear_spring_zero_length", "linear_spring_rest_0p2"] {
        let o = oracle(name);
        let (r_a, r_b) = (quaternion(&o["q_a"]) * vector(&o["la"]), quaternion(&o["q_b"]) * vector(&o["lb"]));
        let d = vector(&o["x_a"]) + r_a - vector(&o["x_b"]) - r_b;
        assert!((d.length() - number(&o["length"])).abs() < 1e-9);
        let spring = PointSpring { stiffness: number(&o["k"]), damping: 0.0, rest_length: number(&o["L0"]) };
        for (derivatives, key) in
            [(Derivatives::Exact, "dW_dq_exact_12x12"), (Derivatives::Symmetric, "dW_dq_gauss_newton_12x12")]
        {
            let force = Force::Anchored(spring.force(r_a, r_b, d, derivatives));
            let [on_a, on_b] = force.wrenches();
            assert_near("wrench on a", &from_wrench(on_a), &numbers(&o["wrench_a"]), 1e-9);
            assert_near("wrench on b", &from_wrench(on_b), &numbers(&o["wrench_b"]), 1e-9);
            let Some(rows) = o[key].as_array() else { continue };
            let k = dense_pair(&force.block(1.0, 0.0));
            for (i, row) in rows.iter().enumerate() {
                let found: Vec<f64> = k.row(i).iter().map(|x| -x).collect();
                assert_near(&format!("{name}, {key}, row {i}"), &found, &numbers(row), 1e-9);
            }
        }
    }
}

/// A joint between two bodies at the origin with these orientations, its X along `axis` of both.
fn turned_pair(mask: JointMask, q_a: DQuat, q_b: DQuat, axis: DVec3, limits: Limits) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    for (name, q) in [("b", q_b), ("a", q_a)] {
        let spec = BodySpec::new(name).mass(1.0).inertia(DMat3::IDENTITY, DVec3::ZERO);
        builder.body(spec.pose(Pose::new(q, DVec3::ZERO)));
    }
    let frame = Pose::new(DQuat::from_rotation_arc(DVec3::X, axis), DVec3::ZERO);
    builder.joint(JointSpec::new("joint", mask, "a", "b").frames(frame, frame).limits(limits));
    let model = builder.build().unwrap();
    let state = model.start();
    (model, state)
}

#[test]
fn hinge_limit() {
    let o = oracle("hinge_limit");
    let (max, k) = (number(&o["angle_max"]), number(&o["k"]));
    let limits = Limits { angle: Some(Range::new(-1.0, max)), stiffness: k, ..Limits::default() };
    let (model, state) =
        turned_pair(JointMask::HINGE, quaternion(&o["q_a"]), quaternion(&o["q_b"]), vector(&o["axis"]), limits);
    assert!((state.joints[0].angle - number(&o["angle"])).abs() < 1e-9);
    let mut acted = 0;
    forces::collect(&model, &Input::default(), &state, 0.0, Derivatives::Symmetric, |acting| {
        let Force::Along(limit) = acting.force else { panic!("only the limit acts") };
        assert_near("axis", &limit.a.angular.to_array(), &numbers(&o["axis_world"]), 1e-9);
        // The oracle has k v; ours sets in over a width w, and is k (v − w/2) from there on.
        let v = number(&o["angle"]) - max;
        let expected = numbers(&o["T_a"]).into_iter().map(|t| t * (1.0 - 0.5 * Limits::WIDTH / v)).collect::<Vec<_>>();
        assert_near("T_a", &acting.force.wrenches()[0].torque.to_array(), &expected, 1e-9);
        let (block, expected) = (acting.force.block(1.0, 0.0), matrix(&o["K_symmetric_3x3"]));
        for i in 0..3 {
            for j in 0..3 {
                assert!((block.aa.get(i + 3, j + 3) - expected.col(j)[i]).abs() < 1e-9);
                assert!((block.ab.get(i + 3, j + 3) + expected.col(j)[i]).abs() < 1e-9);
            }
        }
        acted += 1;
    });
    assert_eq!(acted, 1);
}

#[test]
fn swing_and_twist() {
    let o = oracle("swing_twist");
    let circle = SwingEllipse { about_y: 0.5, about_z: 0.5 }; // on a circle the direction is that of the swing itself
    let limits = Limits { swing: Some(circle), angle: Some(Range::new(-0.1, 0.1)), ..Limits::default() };
    let (model, state) =
        turned_pair(JointMask::BALL, quaternion(&o["q_a"]), quaternion(&o["q_b"]), vector(&o["axis"]), limits);
    let relative = state.relative_rotation(&model, &model.joints()[0]);
    let (s1, s2, twist) = swing_twist(relative);
    assert!((twist - number(&o["twist"])).abs() < 1e-9);
    assert!((twist_angle(relative, 0) - number(&o["twist"])).abs() < 1e-9);
    assert!((s1.hypot(s2) - number(&o["swing"])).abs() < 1e-9);
    let mut directions = Vec::new();
    forces::collect(&model, &Input::default(), &state, 0.0, Derivatives::Symmetric, |acting| {
        let Force::Along(limit) = acting.force else { panic!("only limits act") };
        directions.push((limit.a.angular, limit.force));
    });
    assert_eq!(directions.len(), 2);
    assert_near("twist direction", &directions[0].0.to_array(), &numbers(&o["twist_dir"]), 1e-9);
    assert_near("swing direction", &directions[1].0.to_array(), &numbers(&o["swing_dir"]), 1e-9);
    let beyond = number(&o["swing"]) - 0.5 - 0.5 * Limits::WIDTH; // the law is k (v − w/2)
    assert!((directions[1].1 + 100.0 * beyond).abs() < 1e-7);
}

#[test]
fn gyroscopic_torque() {
    let o = oracle("gyro");
    let inertia = DMat3::from_diagonal(vector(&o["I_body"]));
    let (q, omega, h) = (exp(vector(&o["rotvec"])), vector(&o["w"]), number(&o["h"]));
    let after = q * forces::gyroscopic(inertia, q.conjugate() * omega, h);
    assert_near("ω", &after.to_array(), &numbers(&o["w_after"]), 1e-10);
    let in_world = turned_inertia(q, inertia);
    assert_matrix("A", forces::gyroscopic_inertia(in_world, omega, h), matrix(&o["A_world"]), 1e-10);
    let b = in_world * omega + omega.cross(in_world * omega) * h;
    assert_near("b", &b.to_array(), &numbers(&o["b_world"]), 1e-10);
    for (w, key) in [(omega, "E0"), (after, "E1")] {
        assert!((0.5 * w.dot(in_world * w) - number(&o[key])).abs() < 1e-10);
    }
}

/// The Y-shaped tree of five bodies: hinge to the world, ball, hinge, ball, universal joint.
fn y_tree() -> (Model, State, Input, Value) {
    let o = oracle("kkt_ytree");
    let mut builder = ModelBuilder::new();
    let bodies = o["bodies"].as_array().unwrap();
    for (i, b) in bodies.iter().enumerate() {
        let inertia = DMat3::from_diagonal(vector(&b["I_body"]));
        let pose = Pose::new(quaternion(&b["q_wxyz"]), vector(&b["x"]));
        builder.body(BodySpec::new(format!("{i}")).mass(number(&b["m"])).inertia(inertia, DVec3::ZERO).pose(pose));
    }
    for (i, j) in o["joints"].as_array().unwrap().iter().enumerate() {
        // A frame from its axes: the first as given, the second made perpendicular.
        let frame = |x: DVec3, y: DVec3| {
            let x = x.normalize();
            let y = (y - x * x.dot(y)).normalize();
            DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y)))
        };
        let any = |v: DVec3| v.any_orthonormal_vector();
        let axes = || (vector(&j["ha"]), vector(&j["hb"]));
        let (mask, f_a, f_b) = match j["kind"].as_str().unwrap() {
            "ball" => (JointMask::BALL, DQuat::IDENTITY, DQuat::IDENTITY),
            "hinge" => {
                let (ha, hb) = axes();
                (JointMask::HINGE, frame(ha, any(ha.normalize())), frame(hb, vector(&j["t1"])))
            }
            _ => {
                // Z of the child and Y of the parent: X is any perpendicular
                let (z, y) = axes();
                let (x_a, x_b) = (any(z.normalize()), any(y.normalize()));
                let y_a = z.normalize().cross(x_a);
                (JointMask::UNIVERSAL, frame(x_a, y_a), frame(x_b, y))
            }
        };
        let name = |key: &str| match j[key].as_i64().unwrap() {
            -1 => BodyRef::World,
            k => BodyRef::Name(k.to_string()),
        };
        let spec = JointSpec::new(format!("{i}"), mask, name("a"), name("b"));
        builder.joint(spec.frames(Pose::new(f_a, vector(&j["la"])), Pose::new(f_b, vector(&j["lb"]))));
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    for (s, b) in state.bodies.iter_mut().zip(bodies) {
        s.velocity = Twist::new(vector(&b["v"]), vector(&b["w"]));
    }
    let input = Input { gravity: vector(&o["gravity"]), dt: number(&o["h"]), ..Input::default() };
    (model, state, input, o)
}

#[test]
fn y_tree_of_five_bodies() {
    let (model, state, input, o) = y_tree();
    let h = number(&o["h"]);
    let cases = [
        (Derivatives::Symmetric, number(&o["k"]), number(&o["c"]), "v_S", "lambda_S"),
        (Derivatives::Exact, number(&o["k"]), number(&o["c"]), "v_exact", "lambda_exact"),
        (Derivatives::Exact, 0.0, 0.0, "v_rigid_k0_c0", "lambda_rigid_k0_c0"),
    ];
    for (derivatives, k, c, v_key, lambda_key) in cases {
        let mut system = System::new(&model);
        system.assemble(&model, &input, &state, h, Options { derivatives, gyroscopic: Gyroscopic::Omit }).unwrap();
        // The oracle's springs act on all three rotations, of hinges too, and rest where orientations are equal.
        for (i, joint) in model.joints().iter().enumerate() {
            let Some(parent) = joint.parent else { continue };
            let orientation = |body: BodyId| state.bodies[body.index()].orientation;
            let phi = forces::rotation_error(orientation(joint.child), orientation(parent), DQuat::IDENTITY);
            let force = Force::Turning(forces::rotation_spring(phi, k, c, derivatives));
            let source = Source::Joint(JointId(i as u32));
            system.add_force(&model, &Acting { source, a: joint.child, b: joint.parent, force: &force }, h).unwrap();
        }
        let mut x = vec![Unknown::default(); 5];
        system.load(&mut x);
        let mut factors = TreeLdu::new(&model);
        factors.factor(&system).unwrap();
        factors.solve(&system, &mut x);
        let mut solutions = vec![x];
        if derivatives == Derivatives::Symmetric || k == 0.0 {
            let mut x = vec![Unknown::default(); 5];
            system.load(&mut x);
            let mut factors = TreeLdlt::new(&model);
            factors.factor(&system).unwrap();
            factors.solve(&system, &mut x);
            solutions.push(x);
        }
        for x in solutions {
            let mut lambda = Vec::new();
            for (i, joint) in model.joints().iter().enumerate() {
                // A joint's impulses are with the node of its child: none is flipped here.
                let node = model.topology().node_of[joint.child.index()];
                assert_eq!(system.nodes[node].joint, Some(JointId(i as u32)));
                lambda.extend(&x[node].joint[..joint.mask.rows()]);
            }
            for (i, v) in o[v_key].as_array().unwrap().iter().enumerate() {
                let node = model.topology().node_of[i];
                assert_near(&format!("{v_key} of body {i}"), &x[node].body, &numbers(v), 1e-8);
            }
            assert_near(lambda_key, &lambda, &numbers(&o[lambda_key]), 1e-8);
        }
    }
}

/// The system as one matrix: for each node the body's six unknowns, then the joint's.
fn dense(system: &System) -> (DMatrix<f64>, DVector<f64>, Vec<usize>) {
    let mut first = vec![0];
    for node in &system.nodes {
        first.push(first[first.len() - 1] + 6 + node.j.rows());
    }
    let size = first[system.nodes.len()];
    let (mut h, mut z) = (DMatrix::zeros(size, size), DVector::zeros(size));
    let mut put = |row: usize, col: usize, block: &Block| {
        for i in 0..block.rows() {
            for j in 0..block.cols() {
                h[(row + i, col + j)] += block.get(i, j);
            }
        }
    };
    for (i, node) in system.nodes.iter().enumerate() {
        let (body, joint) = (first[i], first[i] + 6);
        put(body, body, &node.a);
        put(joint, body, &node.j);
        put(body, joint, &node.j.transposed());
        if let Some(p) = node.parent.checked_sub(1) {
            put(body, first[p], &node.a_up);
            put(first[p], body, &node.a_down);
            put(joint, first[p], &node.j_up);
            put(first[p], joint, &node.j_up.transposed());
        }
        for k in 0..6 {
            z[body + k] = node.rhs.body[k];
        }
        for k in 0..node.j.rows() {
            z[joint + k] = node.rhs.joint[k];
        }
    }
    (h, z, first)
}

/// Relative difference of the velocities and of the impulses, each over its own size.
fn difference(system: &System, x: &[Unknown], exact: &DVector<f64>, first: &[usize]) -> f64 {
    let (mut v_size, mut v_error, mut l_size, mut l_error) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for (i, node) in system.nodes.iter().enumerate() {
        for k in 0..6 {
            v_size = v_size.max(exact[first[i] + k].abs());
            v_error = v_error.max((exact[first[i] + k] - x[i].body[k]).abs());
        }
        for k in 0..node.j.rows() {
            l_size = l_size.max(exact[first[i] + 6 + k].abs());
            l_error = l_error.max((exact[first[i] + 6 + k] - x[i].joint[k]).abs());
        }
    }
    (v_error / v_size).max(if l_size > 0.0 { l_error / l_size } else { 0.0 })
}

#[test]
fn factorisations_agree_with_dense_solutions_on_random_trees() {
    let h = 1.0 / 60.0;
    let (mut worst, mut limits) = (0.0f64, 0);
    for seed in 0..300 {
        let (model, input, state) = Random::new(seed).tree();
        let mut system = System::new(&model);
        for derivatives in [Derivatives::Symmetric, Derivatives::Exact] {
            let options = Options { derivatives, gyroscopic: Gyroscopic::Split };
            system.assemble(&model, &input, &state, h, options).unwrap();
            limits += system.limits_active;
            let (matrix, z, first) = dense(&system);
            if derivatives == Derivatives::Symmetric {
                assert!((&matrix - matrix.transpose()).amax() < 1e-12 * matrix.amax());
            }
            let exact = matrix.full_piv_lu().solve(&z).unwrap();
            let mut x = vec![Unknown::default(); system.nodes.len()];
            let mut ldu = TreeLdu::new(&model);
            ldu.factor(&system).unwrap();
            system.load(&mut x);
            ldu.solve(&system, &mut x);
            let error = difference(&system, &x, &exact, &first);
            assert!(error < 1e-9, "seed {seed}, {derivatives:?}, LDU: {error:e}");
            worst = worst.max(error);
            if derivatives == Derivatives::Symmetric {
                let mut ldlt = TreeLdlt::new(&model);
                ldlt.factor(&system).unwrap();
                system.load(&mut x);
                ldlt.solve(&system, &mut x);
                let error = difference(&system, &x, &exact, &first);
                assert!(error < 1e-9, "seed {seed}, LDLᵀ: {error:e}");
                worst = worst.max(error);

                // The residual is that of the dense matrix.
                let mut r = x.clone();
                let nothing = vec![Unknown::default(); x.len()];
                system.residual(&nothing, &mut r);
                assert!(r.iter().zip(&system.nodes).all(|(r, node)| *r == node.rhs));
                system.residual(&x, &mut r);
                assert!(r.iter().all(|r| r.body.iter().all(|x| x.abs() < 1e-7)), "seed {seed}");
            }
        }
    }
    println!("largest relative difference {worst:e}, {limits} limits");
    assert!(limits > 500, "limits are exercised");
}

/// What joints, gravity and pulls give adds up to the change of momentum of every body.
#[test]
fn joint_impulses_explain_the_change_of_every_velocity() {
    let h = 1.0 / 60.0;
    let mut trees = 0;
    for seed in 1000..1400 {
        let (model, mut input, mut state) = Random::new(seed).tree();
        if !model.anchor_springs().is_empty() {
            continue; // their impulses are not told
        }
        trees += 1;
        input.targets.clear();
        input.drags.clear();
        for body in &mut state.bodies {
            body.velocity.angular = DVec3::ZERO; // no gyroscopic torque
        }
        let (velocities, impulses) = reference(&model, &input, &state, h).unwrap();
        let mut momentum: Vec<Vector> = vec![[0.0; 6]; model.bodies().len()];
        let mut scale = 1.0f64;
        let mut add = |body: BodyId, wrench: Wrench| {
            for (sum, x) in momentum[body.index()].iter_mut().zip(from_wrench(wrench)) {
                *sum += x;
                scale = scale.max(x.abs());
            }
        };
        for (joint, impulse) in model.joints().iter().zip(&impulses) {
            add(joint.child, *impulse);
            if let Some(parent) = joint.parent {
                // Opposite, about the parent's centre of mass: J_bᵀ = −(J_aᵀ moved), whether open or not
                let apart = state.bodies[joint.child.index()].position - state.bodies[parent.index()].position;
                let gap_torque = if joint.mask.holds_point() {
                    let p_a =
                        state.bodies[joint.child.index()].pose().transform_point(joint.child_from_joint.translation);
                    let p_b = state.bodies[parent.index()].pose().transform_point(joint.parent_from_joint.translation);
                    (p_a - p_b).cross(impulse.force)
                } else {
                    DVec3::ZERO
                };
                add(parent, Wrench::new(-impulse.force, -impulse.torque - apart.cross(impulse.force) + gap_torque));
            }
        }
        for (body, wrench) in &input.wrenches {
            add(*body, *wrench * h);
        }
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            let linear = (velocities[i].linear - s.velocity.linear - input.gravity * h) * body.mass;
            let angular = turned_inertia(s.orientation, body.inertia) * (velocities[i].angular - s.velocity.angular);
            let change = from_wrench(Wrench::new(linear, angular));
            assert_near(&format!("seed {seed}, body {i}"), &momentum[i], &change, 1e-9 * scale);
        }
    }
    assert!(trees > 20, "{trees} trees without anchor springs");
}

fn with_scheme(input: &Input, scheme: TreeScheme) -> Input {
    let impulses = Impulses::Keep;
    Input { solver: Solver::Tree(Tree { scheme, impulses, threads: Threads::One, ..Tree::default() }), ..input.clone() }
}

/// A stiff arm of three links: hinge, ball, universal.
fn arm(stiffness: f64) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for (i, mask) in [JointMask::HINGE, JointMask::BALL, JointMask::UNIVERSAL].into_iter().enumerate() {
        let x = 0.2 * i as f64;
        let place = Pose::at(DVec3::new(x + 0.1, 0.0, 0.0));
        let link = BodySpec::new(format!("link {i}")).shape(Shape::cuboid(0.2, 0.05, 0.06), 1000.0).pose(place);
        let body = builder.body(link);
        let at = Pose::new(DQuat::from_rotation_y(-1.2), DVec3::new(x, 0.0, 0.0));
        builder.joint(JointSpec::new(format!("joint {i}"), mask, body, last).frame(at).spring(stiffness, 0.05));
        last = BodyRef::Id(body);
    }
    builder.build().unwrap()
}

fn run(model: &Model, input: &Input, seconds: f64) -> Result<(State, Report), StepError> {
    let (mut state, mut work) = (model.start(), Work::new(model));
    let mut report = Report::default();
    for _ in 0..(seconds / input.dt).round() as usize {
        report = step(model, input, &mut state, &mut work)?;
    }
    Ok((state, report))
}

#[test]
fn both_kkt_schemes_approach_the_same_motion() {
    let model = arm(2.0);
    let apart = |dt: f64| {
        let input = Input { dt, ..Input::default() };
        let (exact, report) = run(&model, &with_scheme(&input, TreeScheme::Exact), 0.3).unwrap();
        assert!(report.max_joint_gap < 1e-3 && report.factorisations == 1 && report.substeps == 1);
        let (explicit, report) = run(&model, &with_scheme(&input, TreeScheme::Acceleration), 0.3).unwrap();
        assert!(report.max_joint_gap < 1e-3, "{report:?}");
        exact.bodies.iter().zip(&explicit.bodies).map(|(a, b)| (a.position - b.position).length()).fold(0.0, f64::max)
    };
    // Both are of first order: the difference falls with dt.
    let (coarse, fine) = (apart(1.0 / 1000.0), apart(1.0 / 4000.0));
    println!("apart by {coarse:e} m and {fine:e} m");
    assert!(fine < 5e-4 && coarse / fine > 3.0 && coarse / fine < 5.0, "{coarse:e} {fine:e}");
}

#[test]
fn stiff_joints_are_no_trouble_for_the_implicit_form_and_end_the_explicit_one() {
    let (model, input) = (arm(1e4), Input::default());
    let (state, report) = run(&model, &with_scheme(&input, TreeScheme::Exact), 1.0).unwrap();
    assert!(state.is_finite() && report.max_joint_gap < 1e-4, "{report:?}");
    let tip = state.bodies[2].position;
    assert!((tip - model.bodies()[2].start.translation).length() < 0.01, "a beam this stiff hardly bends: {tip}");
    match run(&model, &with_scheme(&input, TreeScheme::Acceleration), 1.0) {
        Ok((state, _)) => {
            let energy = measure::energy(&model, &input, &state).total();
            assert!(energy > 1e3, "the explicit form was expected to explode: {energy} J");
        }
        Err(error) => assert_eq!(error.code(), "step/not-finite"),
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut builder = ModelBuilder::new();
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let x = i as f64;
        builder.body(BodySpec::new(name).shape(Shape::sphere(0.1), 1000.0).pose(Pose::at(DVec3::new(x, 0.0, 0.0))));
    }
    builder.joint(JointSpec::new("ab", JointMask::BALL, "b", "a").at(DVec3::new(0.5, 0.0, 0.0)));
    builder.joint(JointSpec::new("bc", JointMask::BALL, "c", "b").at(DVec3::new(1.5, 0.0, 0.0)));
    builder.anchor_spring(AnchorSpringSpec {
        name: "across".into(),
        a: "a".into(),
        point_in_a: DVec3::ZERO,
        b: "c".into(),
        point_in_b: DVec3::ZERO,
        stiffness: 1.0,
        damping: 0.0,
        rest_length: 1.0,
    });
    let model = builder.build().unwrap();
    let error = check(&model).unwrap_err();
    assert!(error.to_string().contains("\"across\"") && error.code() == "step/input", "{error}");
    assert_eq!(reference_velocities(&model, &Input::default(), &model.start(), 0.01), Err(error));
}

#[test]
fn a_joint_without_a_solution_is_named() {
    // A Cardan joint whose two axes are parallel has a row of zeros.
    let mut builder = ModelBuilder::new();
    let body = builder.body(BodySpec::new("body").shape(Shape::sphere(0.1), 1000.0));
    let (z, y) = (Pose::IDENTITY, Pose::new(DQuat::from_rotation_x(std::f64::consts::FRAC_PI_2), DVec3::ZERO));
    builder.joint(JointSpec::new("cross", JointMask::UNIVERSAL, body, BodyRef::World).frames(z, y));
    let model = builder.build().unwrap();
    let error = reference_velocities(&model, &Input::default(), &model.start(), 0.01).unwrap_err();
    assert_eq!(error, StepError::Factor { joint: "cross".into() });
    let input = with_scheme(&Input::default(), TreeScheme::Exact);
    let (mut state, mut work) = (model.start(), Work::new(&model));
    assert_eq!(step(&model, &input, &mut state, &mut work), Err(error));
    assert_eq!(state, model.start(), "the state is as it was");
}

#[test]
fn a_resting_pendulum_carries_its_weight() {
    let mut builder = ModelBuilder::new();
    let body = builder.body(BodySpec::new("bob").shape(Shape::sphere(0.1), 1000.0).pose(Pose::at(DVec3::NEG_Y)));
    builder.joint(JointSpec::new("pivot", JointMask::BALL, body, BodyRef::World));
    let model = builder.build().unwrap();
    for scheme in [TreeScheme::Exact, TreeScheme::Acceleration] {
        let input = with_scheme(&Input::default(), scheme);
        let (mut state, mut work) = (model.start(), Work::new(&model));
        step(&model, &input, &mut state, &mut work).unwrap();
        let weight = model.mass() * 9.81 * input.dt;
        let impulse = work.joint_impulses()[0];
        assert!((impulse.force - DVec3::Y * weight).length() < 1e-12, "{impulse:?}");
        assert!(impulse.torque.length() < 1e-12);
        assert_near("velocity", &from_twist(state.bodies[0].velocity), &[0.0; 6], 1e-12);
    }
}
