//! Solver `assembly`: against numbers computed elsewhere, against dense solutions, and what is claimed of it.

mod common;
mod support;

use common::Random;
use glam::{DMat3, DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
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

const LINEARS: [Linear; 2] = [Linear::Factored, Linear::Plain];

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
        for linear in LINEARS {
            for (outer, &wanted) in expected.iter().enumerate() {
                let mut state = start.clone();
                let settings =
                    Assembly { outer: outer as u32, inner: 200, tolerance: 1e-14, linear, ..Assembly::default() };
                assemble(&model, &settings, &[], &mut state, &mut work).unwrap();
                let error = largest_part(&model, &state);
                println!("{name} {linear:?} {outer}: {error:.6e}, wanted {wanted:.6e}");
                // The oracles are given with seven digits, in metres.
                assert!((error - wanted).abs() < 1e-6 * wanted + 1e-11, "{name} {linear:?} after {outer}");
            }
            let mut state = start.clone();
            let report = assemble(&model, &thorough(linear), &[], &mut state, &mut work).unwrap();
            assert!(report.error_after < 1e-10);
            for (i, body) in state.bodies.iter().enumerate() {
                assert!((body.position - vector(&o["x_final"][i])).length() < 1e-8, "{name} {linear:?} {i}");
                assert!(1.0 - body.orientation.dot(quaternion(&o["q_final"][i])).abs() < 1e-8, "{name} {linear:?} {i}");
            }
        }
    }
}
