//! The fast kernels of solver `tree` against its reference half: the same discrete equations, written twice.

mod common;

use common::Random;
use supple::maths::lanes::Instructions;
use supple::solver::tree::kkt::reference;
use supple::solver::{Impulses, Threads};
use supple::*;

fn solver(instructions: Instructions, threads: Threads) -> Solver {
    Solver::Tree(Tree { instructions, threads, impulses: Impulses::Keep, scheme: TreeScheme::Published })
}

#[test]
fn velocities_and_joint_impulses_agree_on_random_trees() {
    let (mut worst, mut worst_impulse) = (0.0f64, 0.0f64);
    for seed in 0..400 {
        let (model, mut input, start) = Random::new(seed).tree();
        let (expected, impulses) = reference(&model, &input, &start, input.dt).unwrap();
        for instructions in [Instructions::Best, Instructions::Baseline] {
            input.solver = solver(instructions, Threads::One);
            let (mut state, mut work) = (start.clone(), Work::new(&model));
            let report = step(&model, &input, &mut state, &mut work).unwrap();
            assert_eq!(report.fallbacks, 0, "seed {seed}");
            let scale = expected.iter().map(|t| t.linear.length().max(t.angular.length())).fold(1.0, f64::max);
            for (k, (body, twist)) in state.bodies.iter().zip(&expected).enumerate() {
                let off = (body.velocity.linear - twist.linear).length().max((body.velocity.angular - twist.angular).length());
                worst = worst.max(off / scale);
                // Both are exact but for rounding; the condition of random joints costs a few digits.
                assert!(off < 1e-9 * scale, "seed {seed}, body {k}: {:?} is not {twist:?}", body.velocity);
            }
            let scale = impulses.iter().map(|w| w.force.length().max(w.torque.length())).fold(1.0, f64::max);
            for (k, (found, wanted)) in work.joint_impulses().iter().zip(&impulses).enumerate() {
                let off = (found.force - wanted.force).length().max((found.torque - wanted.torque).length());
                worst_impulse = worst_impulse.max(off / scale);
                let name = model.joints()[k].mask.name();
                assert!(off < 1e-8 * scale, "seed {seed}, joint {k} ({name}): {found:?} is not {wanted:?}");
            }
        }
    }
    println!("largest relative differences: velocities {worst:.1e}, impulses {worst_impulse:.1e}");
}

#[test]
fn the_report_measures_what_measure_measures() {
    for seed in 0..100 {
        let (model, input, mut state) = Random::new(seed).tree();
        let report = step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        let gap = measure::joint_gap(&model, &state);
        assert!((report.max_joint_gap - gap.distance).abs() < 1e-12, "seed {seed}");
        assert!((report.max_joint_tilt - gap.tilt).abs() < 1e-7, "seed {seed}: {} {}", report.max_joint_tilt, gap.tilt);
        let mut recounted = state.clone();
        recounted.recount_turns(&model);
        for (k, (a, b)) in state.joints.iter().zip(&recounted.joints).enumerate() {
            let turns = (a.angle - b.angle) / std::f64::consts::TAU;
            assert!((turns - turns.round()).abs() < 1e-12, "seed {seed}, joint {k}");
        }
    }
}
