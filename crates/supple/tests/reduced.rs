//! Solver `reduced`: recursive hybrid dynamics against dense solutions, its coordinates, and what it claims as a step.

mod common;
mod support;

use common::Random;
use common::chaos::{self, Case, Chaos};
use glam::{DMat3, DVec3};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;
use supple::forces::{self, Derivatives};
use supple::maths::block::{Block, from_twist, from_wrench};
use supple::maths::rotation::{exp, skew, turned_inertia};
use supple::model::Coordinates;
use supple::solver::Impulses;
use supple::solver::reduced::{Balance, Given, Known, Particle, Recursion, accelerate, forward, hybrid, inverse};
use supple::*;
use support::with_scheme;

/// Random trees of every mask, flipped joints and floating roots, moving with closed joints.
const ANY: Chaos = Chaos { bodies: (1, 12), gravity: true, ..Chaos::QUIET };

fn random_rates(random: &mut Random, coordinates: &Coordinates, size: f64) -> Vec<f64> {
    coordinates.rates.iter().map(|_| random.range(-size, size)).collect()
}

/// Accelerations of all bodies and the force of each joint on its child, by the dense equations of maximal coordinates: the rows of `Joint::rows`
/// as constraints, joint torques as wrenches on both sides.
///
/// ```text
/// [ M  Jᵀ ] [ a ]   [ F + joint torques ]
/// [ J  0  ] [ λ ] = [ −J̇V               ]
/// ```
fn dense(
    model: &Model,
    input: &Input,
    state: &State,
    coordinates: &Coordinates,
    torques: &[f64],
) -> (Vec<Twist>, Vec<Wrench>) {
    let n = 6 * model.bodies().len();
    let rows: usize = model.joints().iter().map(|j| j.mask.rows()).sum();
    let mut m = DMatrix::<f64>::zeros(n + rows, n + rows);
    let mut rhs = DVector::<f64>::zeros(n + rows);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let (inertia, omega) = (turned_inertia(s.orientation, body.inertia), s.velocity.angular);
        for k in 0..3 {
            m[(6 * i + k, 6 * i + k)] = body.mass;
            for l in 0..3 {
                m[(6 * i + 3 + k, 6 * i + 3 + l)] = inertia.col(l)[k];
            }
        }
        add(&mut rhs, i, Wrench::new(input.gravity * body.mass, -omega.cross(inertia * omega)));
    }
    for (body, wrench) in &input.wrenches {
        add(&mut rhs, body.index(), *wrench);
    }
    // The torques of a floating body's six directions: force on its centre of mass in world axes, torque in its own.
    for node in &model.topology().nodes {
        let range = coordinates.rate_range(coordinates.node_of_body(node.body));
        if node.joint.is_none() {
            let t = &torques[range];
            let turned = state.bodies[node.body.index()].orientation * DVec3::from_slice(&t[3..]);
            add(&mut rhs, node.body.index(), Wrench::new(DVec3::from_slice(&t[..3]), turned));
        }
    }
    let mut own = vec![Wrench::ZERO; model.joints().len()];
    let mut row = n;
    for (k, joint) in model.joints().iter().enumerate() {
        let sides = model.sides(joint, state);
        let frame = sides.a.then(joint.child_from_joint);
        let relative = joint.relative_rotation(sides.a.rotation, sides.b.rotation);
        let node = coordinates.node_of_joint(JointId(k as u32)).unwrap();
        for (s, torque) in joint.mask.directions(relative).iter().zip(&torques[coordinates.rate_range(node)]) {
            let (force, couple) = (frame.rotation * s.linear * *torque, frame.rotation * s.angular * *torque);
            let at = |x: DVec3| Wrench::new(force, couple + (frame.translation - x).cross(force));
            add(&mut rhs, joint.child.index(), at(sides.a.translation));
            own[k] += at(sides.a.translation);
            if let Some(parent) = joint.parent {
                add(&mut rhs, parent.index(), -at(sides.b.translation));
            }
        }
        for r in joint.rows(&sides).iter() {
            for (body, values) in [(Some(joint.child), from_twist(r.a)), (joint.parent, from_twist(r.b))] {
                let Some(body) = body else { continue };
                for (l, value) in values.into_iter().enumerate() {
                    m[(row, 6 * body.index() + l)] = value;
                    m[(6 * body.index() + l, row)] = value;
                }
            }
            rhs[row] = -r.bias;
            row += 1;
        }
    }
    let x = m.clone().lu().solve(&rhs).unwrap();
    let take = |i: usize| DVec3::new(x[i], x[i + 1], x[i + 2]);
    let accelerations = (0..model.bodies().len()).map(|i| Twist::new(take(6 * i), take(6 * i + 3))).collect();
    let mut row = n;
    for (k, joint) in model.joints().iter().enumerate() {
        for r in joint.rows(&model.sides(joint, state)).iter() {
            own[k] += Wrench::new(r.a.linear, r.a.angular) * -x[row];
            row += 1;
        }
    }
    (accelerations, own)
}

fn add(rhs: &mut DVector<f64>, body: usize, wrench: Wrench) {
    for (l, value) in from_wrench(wrench).into_iter().enumerate() {
        rhs[6 * body + l] += value;
    }
}

/// The force of a joint on its child, as the recursion tells it: of a flipped joint the tree parent is the child.
fn joint_force(model: &Model, state: &State, recursion: &Recursion, id: JointId) -> Wrench {
    let joint = model.joint(id);
    let node = model.topology().nodes.iter().find(|n| n.joint == Some(id)).unwrap();
    let force = recursion.joint_force(node.body);
    if !node.flipped {
        return force;
    }
    let shift = state.bodies[node.body.index()].position - state.bodies[joint.child.index()].position;
    Wrench::new(-force.force, -(force.torque + shift.cross(force.force)))
}

fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// The largest difference of two lists, as a share of the largest number (or of 1).
fn off(found: &[f64], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    largest(found.iter().zip(wanted).map(|(a, b)| a - b)) / largest(wanted.iter().copied()).max(1.0)
}

fn size_of(t: Twist) -> f64 {
    t.linear.length().max(t.angular.length())
}

fn size_of_wrench(w: Wrench) -> f64 {
    w.force.length().max(w.torque.length())
}

fn with_wrenches(random: &mut Random, case: &mut Case) {
    for k in 0..case.model.bodies().len() {
        case.input.wrenches.push((BodyId(k as u32), Wrench::new(random.vector(5.0), random.vector(1.0))));
    }
}

#[test]
fn forward_dynamics_and_joint_forces_are_those_of_the_dense_equations() {
    let mut worst = (0.0f64, 0.0f64);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut case = chaos::tree(&mut random, &ANY);
        with_wrenches(&mut random, &mut case);
        let Case { model, input, state, .. } = &case;
        let coordinates = Coordinates::of(model, state);
        let torques = random_rates(&mut random, &coordinates, 3.0);
        let mut recursion = Recursion::new(model);
        forward(input, &coordinates, &torques, &mut recursion).unwrap();
        let (accelerations, forces) = dense(model, input, state, &coordinates, &torques);
        let scale = accelerations.iter().map(|a| size_of(*a)).fold(1.0, f64::max);
        for (k, a) in accelerations.iter().enumerate() {
            worst.0 = worst.0.max(size_of(recursion.acceleration(BodyId(k as u32)) - *a) / scale);
        }
        let scale = forces.iter().map(|f| size_of_wrench(*f)).fold(1.0, f64::max);
        for (k, f) in forces.iter().enumerate() {
            let found = joint_force(model, state, &recursion, JointId(k as u32));
            worst.1 = worst.1.max(size_of_wrench(found + -*f) / scale);
        }
    }
    println!("accelerations {:.1e}, joint forces {:.1e}", worst.0, worst.1);
    // Conditions of the dense systems up to about 1e5, times rounding.
    assert!(worst.0 < 1e-10 && worst.1 < 1e-10, "{worst:?}");
}

/// `M(q) = Σ Jᵀ M J`, the columns of J from the velocities that unit rates give the bodies.
fn mass_matrix(model: &Model, coordinates: &Coordinates) -> DMatrix<f64> {
    let n = coordinates.rates.len();
    let columns: Vec<State> = (0..n)
        .map(|k| {
            let (mut unit, mut state) = (coordinates.clone(), model.start());
            unit.rates.fill(0.0);
            unit.rates[k] = 1.0;
            unit.write(model, &mut state);
            state
        })
        .collect();
    DMatrix::from_fn(n, n, |i, j| {
        let bodies = model.bodies().iter().zip(columns[i].bodies.iter().zip(&columns[j].bodies));
        bodies
            .map(|(body, (a, b))| {
                let inertia = turned_inertia(a.orientation, body.inertia);
                body.mass * a.velocity.linear.dot(b.velocity.linear)
                    + a.velocity.angular.dot(inertia * b.velocity.angular)
            })
            .sum()
    })
}

#[test]
fn torques_act_through_the_inverse_of_the_mass_matrix() {
    let mut worst = 0.0f64;
    for seed in 0..200 {
        let mut random = Random::new(seed + 300);
        let Case { model, input, state, .. } = chaos::tree(&mut random, &ANY);
        let coordinates = Coordinates::of(&model, &state);
        let torques = random_rates(&mut random, &coordinates, 3.0);
        let mut recursion = Recursion::new(&model);
        forward(&input, &coordinates, &vec![0.0; torques.len()], &mut recursion).unwrap();
        let limp = recursion.accelerations().to_vec();
        forward(&input, &coordinates, &torques, &mut recursion).unwrap();
        let m = mass_matrix(&model, &coordinates);
        if torques.is_empty() {
            continue;
        }
        let wanted = m.lu().solve(&DVector::from_column_slice(&torques)).unwrap();
        let found: Vec<f64> = recursion.accelerations().iter().zip(&limp).map(|(a, b)| a - b).collect();
        // As a share of the accelerations whose difference they are.
        let scale = largest(limp.iter().chain(&found).copied()).max(1.0);
        worst = worst.max(largest(found.iter().zip(wanted.iter()).map(|(a, b)| a - b)) / scale);
    }
    println!("{worst:.1e}");
    assert!(worst < 1e-10, "{worst}");
}

#[test]
fn inverse_undoes_forward() {
    let mut worst = (0.0f64, 0.0f64);
    for seed in 0..300 {
        let mut random = Random::new(seed + 600);
        let mut case = chaos::tree(&mut random, &ANY);
        with_wrenches(&mut random, &mut case);
        let Case { model, input, state, .. } = &case;
        let coordinates = Coordinates::of(model, state);
        let torques = random_rates(&mut random, &coordinates, 3.0);
        let mut recursion = Recursion::new(model);
        forward(input, &coordinates, &torques, &mut recursion).unwrap();
        let accelerations = recursion.accelerations().to_vec();
        let (bodies, force) = (recursion.acceleration(BodyId(0)), recursion.joint_force(BodyId(0)));
        inverse(input, &coordinates, &accelerations, &mut recursion).unwrap();
        assert_eq!(recursion.accelerations(), accelerations);
        // Torques are differences of inertial forces, which may be larger.
        let scale = model.mass() * size_of(bodies).max(10.0);
        worst.0 = worst.0.max(largest(recursion.torques().iter().zip(&torques).map(|(a, b)| a - b)) / scale);
        worst.1 = worst.1.max(size_of_wrench(recursion.joint_force(BodyId(0)) + -force) / scale);
    }
    println!("torques {:.1e}, joint forces {:.1e}", worst.0, worst.1);
    assert!(worst.0 < 1e-10 && worst.1 < 1e-10, "{worst:?}");
}

/// Random joints prescribed.
fn some_given(random: &mut Random, model: &Model) -> Vec<Given> {
    model.joints().iter().map(|_| if random.chance(0.4) { Given::Acceleration } else { Given::Torque }).collect()
}

#[test]
fn hybrid_dynamics_are_forward_dynamics_with_the_torques_they_find() {
    let mut worst = 0.0f64;
    for seed in 0..300 {
        let mut random = Random::new(seed + 900);
        let mut case = chaos::tree(&mut random, &Chaos { floating: 0.7, ..ANY });
        with_wrenches(&mut random, &mut case);
        let Case { model, input, state, .. } = &case;
        let coordinates = Coordinates::of(model, state);
        let mut values = random_rates(&mut random, &coordinates, 3.0);
        let given = some_given(&mut random, model);
        // Floating bodies get nothing.
        for node in model.topology().nodes.iter().filter(|n| n.joint.is_none()) {
            values[coordinates.rate_range(coordinates.node_of_body(node.body))].fill(0.0);
        }
        let mut recursion = Recursion::new(model);
        hybrid(input, &coordinates, Known { given: &given, values: &values, particles: &[] }, &mut recursion).unwrap();
        let (accelerations, torques) = (recursion.accelerations().to_vec(), recursion.torques().to_vec());
        for (k, given) in given.iter().enumerate() {
            let range = coordinates.rate_range(coordinates.node_of_joint(JointId(k as u32)).unwrap());
            let told = if *given == Given::Torque { &torques } else { &accelerations };
            assert_eq!(told[range.clone()], values[range]);
        }
        for node in model.topology().nodes.iter().filter(|n| n.joint.is_none()) {
            let scale = model.mass() * largest(accelerations.iter().copied()).max(10.0);
            assert!(
                size_of_wrench(recursion.joint_force(node.body)) < 1e-12 * scale,
                "a floating root is held by nothing"
            );
        }
        forward(input, &coordinates, &torques, &mut recursion).unwrap();
        worst = worst.max(off(recursion.accelerations(), &accelerations));
    }
    println!("{worst:.1e}");
    // The torques are found to rounding of inertial forces; light bodies answer to them more than heavy ones: conditions up to 1e4.
    assert!(worst < 1e-10, "{worst}");
}

#[test]
fn derivatives_by_reciprocity_by_command_and_by_differences_agree() {
    let (mut by_command, mut by_difference) = (0.0f64, 0.0f64);
    for seed in 0..100 {
        let mut random = Random::new(seed + 1200);
        let case = chaos::tree(&mut random, &ANY);
        let Case { model, input, state, .. } = &case;
        let coordinates = Coordinates::of(model, state);
        let values = random_rates(&mut random, &coordinates, 3.0);
        let given = some_given(&mut random, model);
        let mut recursion = Recursion::new(model);
        let body = BodyId(random.below(model.bodies().len()) as u32);
        let along = Wrench::at(state.bodies[body.index()].orientation * random.vector(0.3), random.vector(1.0));
        let along = Wrench::new(along.force, along.torque + random.vector(1.0));
        hybrid(input, &coordinates, Known { given: &given, values: &values, particles: &[] }, &mut recursion).unwrap();
        let rows = recursion.by_acceleration(body, along).to_vec();
        let columns: Vec<f64> = (0..values.len())
            .map(|k| {
                recursion.by_command(k);
                along.power(recursion.response(body))
            })
            .collect();
        by_command = by_command.max(off(&rows, &columns));
        let at = |values: &[f64], recursion: &mut Recursion| {
            hybrid(input, &coordinates, Known { given: &given, values, particles: &[] }, recursion).unwrap();
            along.power(recursion.acceleration(body))
        };
        let differences: Vec<f64> = (0..values.len())
            .map(|k| {
                // The map is affine: any step will do.
                let (mut more, mut less) = (values.clone(), values.clone());
                more[k] += 1.0;
                less[k] -= 1.0;
                0.5 * (at(&more, &mut recursion) - at(&less, &mut recursion))
            })
            .collect();
        by_difference = by_difference.max(off(&rows, &differences));
    }
    println!("by command {by_command:.1e}, by differences {by_difference:.1e}");
    assert!(by_command < 1e-11); // the same sweeps on the same factors
    assert!(by_difference < 1e-10); // differences of accelerations of up to 1e3
}

#[test]
fn accelerations_and_multipliers_of_the_tree_are_those_of_the_recursion() {
    // The acceleration form of solver `tree` solves the same equations of this instant: springs, dampers, limits, motors, pulls.
    let chaos = Chaos {
        bodies: (1, 10),
        springs: 0.6,
        dampers: 0.5,
        limits: 0.5,
        motors: 0.4,
        loads: 0.3,
        gravity: true,
        ..Chaos::QUIET
    };
    let (mut worst, mut worst_force) = (0.0f64, 0.0f64);
    for seed in 0..300 {
        let mut random = Random::new(seed + 1500);
        let Case { model, mut input, state, .. } = chaos::tree(&mut random, &chaos);
        let Solver::Tree(tree) = with_scheme(TreeScheme::Acceleration) else { unreachable!() };
        input.solver = Solver::Tree(Tree { impulses: Impulses::Keep, ..tree });
        input.dt = 1e-3;
        let (mut stepped, mut work) = (state.clone(), Work::new(&model));
        step(&model, &input, &mut stepped, &mut work).unwrap();
        let (mut coordinates, mut recursion) = (Coordinates::new(&model), Recursion::new(&model));
        accelerate(&model, &input, &state, &mut coordinates, &mut recursion).unwrap();
        let accelerations: Vec<Twist> = state
            .bodies
            .iter()
            .zip(&stepped.bodies)
            .map(|(a, b)| (b.velocity - a.velocity) * (1.0 / input.dt))
            .collect();
        let scale = accelerations.iter().map(|a| size_of(*a)).fold(10.0, f64::max);
        for (k, a) in accelerations.iter().enumerate() {
            worst = worst.max(size_of(recursion.acceleration(BodyId(k as u32)) - *a) / scale);
        }
        let forces: Vec<Wrench> = work.joint_impulses().iter().map(|w| *w * (1.0 / input.dt)).collect();
        let scale = forces.iter().map(|f| size_of_wrench(*f)).fold(1.0, f64::max);
        for (k, f) in forces.iter().enumerate() {
            let found = joint_force(&model, &state, &recursion, JointId(k as u32));
            worst_force = worst_force.max(size_of_wrench(found + -*f) / scale);
        }
    }
    println!("accelerations {worst:.1e}, forces {worst_force:.1e}");
    // Joint errors of rounding, 1e-16 m, enter the tree's equations times α² = (1/5h)² = 4e4 1/s².
    assert!(worst < 1e-9 && worst_force < 1e-9);
}

/// Accelerations of a part `h` from rest by the dense implicit equations
///
/// ```text
/// [ M + h²K + hD  Jᵀ ] [ a ]   [ F ]
/// [ J             0  ] [ λ ] = [ 0 ]
/// ```
fn dense_implicit(model: &Model, input: &Input, state: &State) -> Vec<Twist> {
    let h = input.dt;
    let n = 6 * model.bodies().len();
    let rows: usize = model.joints().iter().map(|j| j.mask.rows()).sum();
    let mut m = DMatrix::<f64>::zeros(n + rows, n + rows);
    let mut rhs = DVector::<f64>::zeros(n + rows);
    for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
        let inertia = turned_inertia(s.orientation, body.inertia);
        for k in 0..3 {
            m[(6 * i + k, 6 * i + k)] = body.mass;
            for l in 0..3 {
                m[(6 * i + 3 + k, 6 * i + 3 + l)] = inertia.col(l)[k];
            }
        }
        add(&mut rhs, i, Wrench::new(input.gravity * body.mass, DVec3::ZERO));
    }
    for (body, wrench) in &input.wrenches {
        add(&mut rhs, body.index(), *wrench);
    }
    forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
        let (k, d, wrenches) = (acting.force.block(1.0, 0.0), acting.force.block(0.0, 1.0), acting.force.wrenches());
        let blocks = |p: &forces::PairBlock| [[p.aa, p.ab], [p.ba, p.bb]];
        let (k, d): ([[Block; 2]; 2], [[Block; 2]; 2]) = (blocks(&k), blocks(&d));
        let sides = [Some(acting.a), acting.b];
        for (s, row) in sides.iter().enumerate() {
            let Some(row) = row else { continue };
            add(&mut rhs, row.index(), wrenches[s]);
            for (t, col) in sides.iter().enumerate() {
                let Some(col) = col else { continue };
                for i in 0..6 {
                    for j in 0..6 {
                        m[(6 * row.index() + i, 6 * col.index() + j)] +=
                            h * h * k[s][t].get(i, j) + h * d[s][t].get(i, j);
                    }
                }
            }
        }
    });
    let mut row = n;
    for joint in model.joints() {
        for r in joint.rows(&model.sides(joint, state)).iter() {
            for (body, values) in [(Some(joint.child), from_twist(r.a)), (joint.parent, from_twist(r.b))] {
                let Some(body) = body else { continue };
                for (l, value) in values.into_iter().enumerate() {
                    m[(row, 6 * body.index() + l)] = value;
                    m[(6 * body.index() + l, row)] = value;
                }
            }
            row += 1;
        }
    }
    let x = m.lu().solve(&rhs).unwrap();
    (0..model.bodies().len())
        .map(|i| {
            Twist::new(
                DVec3::new(x[6 * i], x[6 * i + 1], x[6 * i + 2]),
                DVec3::new(x[6 * i + 3], x[6 * i + 4], x[6 * i + 5]),
            )
        })
        .collect()
}

#[test]
fn a_step_from_rest_is_that_of_the_dense_implicit_equations() {
    // Everything that may act, springs between any two bodies included, at stiffnesses up to 1e6.
    let chaos = Chaos {
        bodies: (1, 10),
        springs: 0.7,
        stiffness: (0.0, 6.0),
        dampers: 0.5,
        limits: 0.5,
        motors: 0.4,
        anchors: 0.3,
        loads: 0.3,
        speed: 0.0,
        gravity: true,
        ..Chaos::QUIET
    };
    let (mut worst, mut springs) = (0.0f64, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed + 2000);
        let Case { model, mut input, state, .. } = chaos::tree(&mut random, &chaos);
        springs += model.anchor_springs().len();
        input.solver = Solver::Reduced(Reduced { balance: Balance::Off, ..Reduced::default() });
        let mut wanted = state.clone();
        for (body, a) in wanted.bodies.iter_mut().zip(dense_implicit(&model, &input, &state)) {
            body.velocity = a * input.dt;
        }
        let wanted = Coordinates::of(&model, &wanted).rates;
        let mut stepped = state.clone();
        step(&model, &input, &mut stepped, &mut Work::new(&model)).unwrap();
        worst = worst.max(off(&Coordinates::of(&model, &stepped).rates, &wanted));
    }
    println!("{worst:.1e}, {springs} springs between bodies");
    assert!(worst < 1e-10 && springs > 100, "{worst}"); // rounding times conditions of about 1e4
}

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

fn near(what: &str, found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        assert!((a - b).abs() < tolerance * b.abs().max(1.0), "{what}, entry {i}: {a} against {b}");
    }
}

/// Derivative of the exponential from the right, `ω = Jr(q) q̇` in the turned axes, and its rate, by their series' closed forms.
fn right_jacobian(q: DVec3, qd: DVec3) -> (DMat3, DMat3) {
    let t = q.length();
    let (b, c) = ((1.0 - t.cos()) / t.powi(2), (t - t.sin()) / t.powi(3));
    let b_rate = (t * t.sin() - 2.0 * (1.0 - t.cos())) / (2.0 * t.powi(4)) * 2.0 * q.dot(qd);
    let c_rate = (t * (1.0 - t.cos()) - 3.0 * (t - t.sin())) / (2.0 * t.powi(5)) * 2.0 * q.dot(qd);
    let (k, kd) = (skew(q), skew(qd));
    let jr = DMat3::IDENTITY - k * b + k * k * c;
    (jr, kd * -b - k * b_rate + (k * kd + kd * k) * c + k * k * c_rate)
}

/// How the oracle's coordinates of a joint become ours.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    /// Rotation vector.
    Ball,
    /// Rotation vector, then translation.
    Free,
}

/// A tree of the oracles, with the translation of its coordinates.
struct OracleTree {
    model: Model,
    kinds: Vec<(Kind, usize)>,
    coms: Vec<DVec3>,
}

impl OracleTree {
    /// Positions and rates as ours.
    fn coordinates(&self, q: &[f64], qd: &[f64]) -> Coordinates {
        let mut c = Coordinates::new(&self.model);
        let mut at = 0;
        for (k, &(kind, n)) in self.kinds.iter().enumerate() {
            let (q, qd) = (&q[at..at + n], &qd[at..at + n]);
            let (mut positions, mut rates) = (q.to_vec(), qd.to_vec());
            let v = |x: &[f64]| DVec3::new(x[0], x[1], x[2]);
            if kind != Kind::Plain {
                let omega = right_jacobian(v(q), v(qd)).0 * v(qd);
                (positions, rates) = (q[3..].to_vec(), qd[3..].to_vec());
                positions.extend(exp(v(q)).to_array());
                rates.extend(omega.to_array());
            }
            c.positions_of_mut(JointId(k as u32)).copy_from_slice(&positions);
            c.rates_of_mut(JointId(k as u32)).copy_from_slice(&rates);
            at += n;
        }
        c
    }

    /// Our list by rate from the oracle's of the joints, by a map on the three rotations of balls: `ours = map(Jr, dJr/dt, theirs)`.
    fn by_rate(
        &self,
        c: &Coordinates,
        q: &[f64],
        qd: &[f64],
        x: &[f64],
        map: impl Fn(DMat3, DVec3, DVec3) -> DVec3,
    ) -> Vec<f64> {
        let mut out = vec![0.0; c.rates.len()];
        let mut at = 0;
        for (k, &(kind, n)) in self.kinds.iter().enumerate() {
            let mut own = x[at..at + n].to_vec();
            if kind != Kind::Plain {
                let v = |x: &[f64]| DVec3::new(x[at], x[at + 1], x[at + 2]);
                let (jr, jr_rate) = right_jacobian(v(q), v(qd));
                own = x[at + 3..at + n].to_vec();
                own.extend(map(jr, jr_rate * v(qd), v(x)).to_array());
            }
            out[c.rate_range(c.node_of_joint(JointId(k as u32)).unwrap())].copy_from_slice(&own);
            at += n;
        }
        out
    }
}

/// The tree of oracle `hybrid_tree` without its particles: link frames as given, joints to the parent or the world.
fn hybrid_tree(o: &Value) -> OracleTree {
    let mut builder = ModelBuilder::new();
    let (mut kinds, mut coms) = (Vec::new(), Vec::new());
    for (i, b) in o["bodies"].as_array().unwrap().iter().enumerate() {
        let kind = b["joint"].as_str().unwrap();
        if kind == "particle" {
            continue;
        }
        let com = vector(&b["com"]);
        let inertia = DMat3::from_diagonal(vector(&b["inertia_com_diag"]));
        builder.body(BodySpec::new(format!("body {i}")).mass(b["mass"].as_f64().unwrap()).inertia(inertia, com));
        coms.push(com);
        // Our main axis is X; a universal joint turns about Y, then Z.
        let (mask, axes, sort) = match kind {
            "free" => (JointMask::FREE, DMat3::IDENTITY, (Kind::Free, 6)),
            "ball" => (JointMask::BALL, DMat3::IDENTITY, (Kind::Ball, 3)),
            "univ" => {
                let (y, z) = (vector(&b["axis_a"]), vector(&b["axis_b"]));
                (JointMask::UNIVERSAL, DMat3::from_cols(y.cross(z), y, z), (Kind::Plain, 2))
            }
            _ => {
                let x = vector(&b["axis_a"]);
                let y = x.any_orthonormal_vector();
                let mask = if kind == "rev" { JointMask::HINGE } else { JointMask::PRISMATIC };
                (mask, DMat3::from_cols(x, y, x.cross(y)), (Kind::Plain, 1))
            }
        };
        kinds.push(sort);
        let turned = Pose::new(glam::DQuat::from_mat3(&axes), DVec3::ZERO);
        let pose = |r: &str, p: &str| Pose::new(exp(vector(&b[r])), vector(&b[p]));
        let parent = b["parent"].as_i64().unwrap();
        let holder = if parent < 0 { BodyRef::World } else { BodyId(parent as u32).into() };
        builder.joint(JointSpec::new(format!("joint {i}"), mask, BodyId(i as u32), holder).frames(
            pose("body_rotvec", "body_pos").inverse().then(turned),
            pose("offset_rotvec", "offset_pos").then(turned),
        ));
    }
    OracleTree { model: builder.build().unwrap(), kinds, coms }
}

/// How far the oracles' numbers can be off: 12 digits of inputs and outputs, conditions of about 1e2.
const ORACLE: f64 = 1e-9;

#[test]
fn the_hybrid_tree_of_the_oracles() {
    let o = oracle("hybrid_tree");
    let tree = hybrid_tree(&o);
    let model = &tree.model;
    let (q, qd, tau) = (numbers(&o["q"]), numbers(&o["qd"]), numbers(&o["tau"]));
    let coordinates = tree.coordinates(&q, &qd);
    let joints: usize = tree.kinds.iter().map(|k| k.1).sum();
    let mut state = model.start();
    coordinates.write(model, &mut state);

    // Wrenches [moment; force] at the origin of the link, in its axes; those of particles are forces on them alone.
    let mut input = Input { gravity: vector(&o["gravity"]), ..Input::default() };
    let external: Vec<Vec<f64>> = o["Fext"].as_array().unwrap().iter().map(numbers).collect();
    for (i, com) in tree.coms.iter().enumerate() {
        let (moment, force) = (DVec3::from_slice(&external[i][..3]), DVec3::from_slice(&external[i][3..]));
        let r = state.bodies[i].orientation;
        input.wrenches.push((BodyId(i as u32), Wrench::new(r * force, r * (moment - com.cross(force)))));
    }
    let bodies = o["bodies"].as_array().unwrap();
    let particles: Vec<Particle> = (tree.coms.len()..bodies.len())
        .map(|i| {
            let (b, at) = (&bodies[i], joints + 3 * (i - tree.coms.len()));
            let body = b["parent"].as_i64().unwrap() as usize;
            Particle {
                body: BodyId(body as u32),
                mass: b["mass"].as_f64().unwrap(),
                position: vector(&b["p0"]) + DVec3::from_slice(&q[at..]) - tree.coms[body],
                velocity: DVec3::from_slice(&qd[at..]),
                pull: DVec3::from_slice(&tau[at..]),
                force: DVec3::from_slice(&external[i][3..]),
            }
        })
        .collect();

    // Power: τ_ours·ω = τ·q̇, so τ = Jrᵀ τ_ours; accelerations: ω̇ = Jr q̈ + dJr/dt q̇.
    let torques = |x: &[f64]| tree.by_rate(&coordinates, &q, &qd, x, |jr, _, x| jr.transpose().inverse() * x);
    let accelerations = |x: &[f64]| tree.by_rate(&coordinates, &q, &qd, x, |jr, drift, x| jr * x + drift);
    let mut recursion = Recursion::new(model);
    let check_particles = |what: &str, recursion: &Recursion, wanted: &[f64]| {
        for (i, particle) in particles.iter().enumerate() {
            let found = recursion.particle_acceleration(particle).to_array();
            near(what, &found, &wanted[joints + 3 * i..joints + 3 * i + 3], ORACLE);
        }
    };

    let known = Known { given: &[], values: &torques(&tau), particles: &particles };
    hybrid(&input, &coordinates, known, &mut recursion).unwrap();
    let wanted = numbers(&o["forward_qdd"]);
    near("forward q̈", recursion.accelerations(), &accelerations(&wanted), ORACLE);
    check_particles("forward q̈ of particles", &recursion, &wanted);

    let mut given = [Given::Torque; 5];
    let mut values = torques(&tau);
    for body in numbers(&o["prescribed_bodies"]) {
        given[body as usize] = Given::Acceleration;
        let range = coordinates.rate_range(coordinates.node_of_joint(JointId(body as u32)).unwrap());
        values[range].copy_from_slice(&numbers(&o["prescribed_qdd"][format!("{body}")]));
    }
    let known = Known { given: &given, values: &values, particles: &particles };
    hybrid(&input, &coordinates, known, &mut recursion).unwrap();
    let wanted = numbers(&o["hybrid_qdd"]);
    near("hybrid q̈", recursion.accelerations(), &accelerations(&wanted), ORACLE);
    near("hybrid τ", recursion.torques(), &torques(&numbers(&o["hybrid_tau"])), ORACLE);
    check_particles("hybrid q̈ of particles", &recursion, &wanted);
    assert!(size_of_wrench(recursion.joint_force(BodyId(0))) < 1e-12);

    // The origin of link 4: a + α × r + ω × (ω × r).
    let lever = state.bodies[4].orientation * -tree.coms[4];
    near("origin", &(state.bodies[4].position + lever).to_array(), &numbers(&o["link4_origin"]), ORACLE);
    let (a, omega) = (recursion.acceleration(BodyId(4)), state.bodies[4].velocity.angular);
    let at_origin = a.at(lever) + omega.cross(omega.cross(lever));
    near("acceleration of link 4", &at_origin.to_array(), &numbers(&o["link4_true_linear_acc_hybrid"]), ORACLE);

    // Derivatives of the acceleration of link 4 at its origin, [angular; linear]: by prescribed accelerations, then by all torques.
    let row = |k: usize| match k {
        0..3 => Wrench::new(DVec3::ZERO, DVec3::AXES[k]),
        _ => Wrench::at(lever, DVec3::AXES[k - 3]),
    };
    let by_prescribed = o["dA4_dqdd_prescribed_global_ang_lin"].as_array().unwrap();
    for (k, wanted) in by_prescribed.iter().enumerate() {
        let found = recursion.by_acceleration(BodyId(4), row(k)).to_vec();
        let mut prescribed = Vec::new();
        for joint in [1, 4] {
            prescribed.extend(&found[coordinates.rate_range(coordinates.node_of_joint(JointId(joint)).unwrap())]);
        }
        near("∂A/∂q̈", &prescribed, &numbers(wanted), ORACLE);
    }
    forward(&input, &coordinates, &torques(&tau), &mut recursion).unwrap();
    for (k, wanted) in o["dA4_dtau_global_ang_lin"].as_array().unwrap().iter().enumerate() {
        // ∂/∂τ_theirs of a ball: τ_ours = Jr⁻ᵀ τ_theirs, so ∂/∂τ_ours = Jr ∂/∂τ_theirs.
        let wanted = tree.by_rate(&coordinates, &q, &qd, &numbers(wanted), |jr, _, x| jr * x);
        near("∂A/∂τ", recursion.by_acceleration(BodyId(4), row(k)), &wanted, ORACLE);
    }
}

/// The worm of oracle `worm`: seven bones, a free root, six universal joints.
fn worm() -> OracleTree {
    let mut builder = ModelBuilder::new();
    let (mass, length, com) = (0.5, 0.2, DVec3::new(0.1, 0.0, 0.0));
    let across = mass * length * length / 12.0;
    let inertia = DMat3::from_diagonal(DVec3::new(5e-4, across, across));
    let universal = Pose::new(glam::DQuat::from_mat3(&DMat3::from_cols(-DVec3::X, DVec3::Z, DVec3::Y)), DVec3::ZERO);
    let mut kinds = vec![(Kind::Free, 6)];
    for i in 0..7 {
        builder.body(BodySpec::new(format!("bone {i}")).mass(mass).inertia(inertia, com));
        let spec = |mask, holder| JointSpec::new(format!("joint {i}"), mask, BodyId(i as u32), holder);
        if i == 0 {
            builder.joint(spec(JointMask::FREE, BodyRef::World).frames(Pose::IDENTITY, Pose::IDENTITY));
        } else {
            let at_end = Pose::at(DVec3::new(length, 0.0, 0.0)).then(universal);
            builder.joint(spec(JointMask::UNIVERSAL, BodyId(i as u32 - 1).into()).frames(universal, at_end));
            kinds.push((Kind::Plain, 2));
        }
    }
    OracleTree { model: builder.build().unwrap(), kinds, coms: vec![com; 7] }
}

#[test]
fn the_worm_of_the_oracles() {
    let (o, worm) = (oracle("worm"), worm());
    let coordinates = worm.coordinates(&numbers(&o["q"]), &numbers(&o["qd"]));
    let mut state = worm.model.start();
    coordinates.write(&worm.model, &mut state);
    let lever = state.bodies[6].orientation * -worm.coms[6];
    let input = Input::default();
    let mut recursion = Recursion::new(&worm.model);
    let zero = vec![0.0; coordinates.rates.len()];
    for (given, a0, sigma) in [(Given::Acceleration, "A0_acc", "sigma_acc"), (Given::Torque, "A0_tau", "sigma_tau")] {
        let mut all = [given; 7];
        all[0] = Given::Torque;
        hybrid(&input, &coordinates, Known { given: &all, values: &zero, particles: &[] }, &mut recursion).unwrap();
        let (a, omega) = (recursion.acceleration(BodyId(6)), state.bodies[6].velocity.angular);
        near(a0, &(a.at(lever) + omega.cross(omega.cross(lever))).to_array(), &numbers(&o[a0]), ORACLE);
        // The commands are those of the twelve universal angles; the root is passive.
        let mut c = DMatrix::<f64>::zeros(3, 12);
        for k in 0..3 {
            let row = &recursion.by_acceleration(BodyId(6), Wrench::at(lever, DVec3::AXES[k]))[6..];
            if given == Given::Acceleration {
                near("C", row, &numbers(&o["C_acc"][k]), ORACLE);
            }
            (0..12).for_each(|j| c[(k, j)] = row[j]);
        }
        let mut values: Vec<f64> = c.singular_values().iter().copied().collect();
        values.sort_by(|a, b| b.total_cmp(a));
        near(sigma, &values, &numbers(&o[sigma]), ORACLE);
    }
}
