//! Solver `reduced`: recursive hybrid dynamics against dense solutions, its coordinates, and what it claims as a step.

mod common;
mod support;

use common::Random;
use common::chaos::{self, Case, Chaos};
use glam::{DQuat, DVec3};
use nalgebra::{DMatrix, DVector};
use supple::maths::block::{from_twist, from_wrench};
use supple::maths::rotation::{exp, turned_inertia};
use supple::model::{Coordinates, RotationKind};
use supple::solver::reduced::{Given, Integration, Known, Recursion, Springs, accelerate, forward, hybrid, inverse};
use supple::solver::{Impulses, Reduced};
use supple::*;
use support::{apart, orders};

const REDUCED: Solver = Solver::Reduced(Reduced {
    springs: Springs::Implicit,
    integration: Integration::Euler,
    balance: supple::solver::reduced::Balance::On,
});
const MIDPOINT: Solver = Solver::Reduced(Reduced {
    springs: Springs::Implicit,
    integration: Integration::Midpoint,
    balance: supple::solver::reduced::Balance::On,
});

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
