//! The fast kernels of solver `tree` against its reference half: the same discrete equations, written twice.

mod common;

use common::Random;
use supple::maths::lanes::Instructions;
use supple::solver::tree::kkt::reference;
use supple::solver::{Impulses, Threads};
use supple::*;

fn solver(instructions: Instructions, threads: Threads) -> Solver {
    Solver::Tree(Tree {
        instructions,
        threads,
        impulses: Impulses::Keep,
        scheme: TreeScheme::Published,
        ..Tree::default()
    })
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
                let off = (body.velocity.linear - twist.linear)
                    .length()
                    .max((body.velocity.angular - twist.angular).length());
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
        let (model, mut input, mut state) = Random::new(seed).tree();
        if seed % 2 == 0 {
            input.solver = solver(Instructions::Best, Threads::One);
        }
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

#[test]
fn characters_in_lanes_have_the_bits_of_characters_alone() {
    if !supple::maths::lanes::has_fused() {
        println!("skipped: this machine has no fused instructions, so crowds go one by one");
        return;
    }
    for seed in 0..60 {
        let (model, input, start) = Random::new(seed).tree();
        // Nine characters: two fours and one left over, each in another pose and with another gravity.
        let mut inputs: Vec<Input> = Vec::new();
        let mut states: Vec<State> = Vec::new();
        for k in 0..9 {
            let mut input = input.clone();
            input.gravity.y -= 0.1 * k as f64;
            if k == 6 {
                input.drags.clear(); // the second four goes one by one
            }
            let mut state = start.clone();
            state.bodies.iter_mut().for_each(|b| b.velocity = b.velocity * (1.0 + 0.05 * k as f64));
            inputs.push(input);
            states.push(state);
        }
        let mut alone = states.clone();
        let mut work = Work::new(&model);
        for _ in 0..3 {
            step_crowd(&model, &inputs, &mut states, &mut work).unwrap();
            for (input, state) in inputs.iter().zip(&mut alone) {
                step(&model, input, state, &mut work).unwrap();
            }
        }
        for (k, (a, b)) in states.iter().zip(&alone).enumerate() {
            assert_eq!(a, b, "seed {seed}, character {k}");
        }
    }
}

#[test]
fn the_default_step_in_lanes_has_the_bits_of_one_alone() {
    if !supple::maths::lanes::has_fused() {
        println!("skipped: this machine has no fused instructions, so crowds go one by one");
        return;
    }
    // Calm ones, some that meet limits, some whose lanes are done after different numbers of passes or not calm at all.
    for name in ["hand", "robot", "plant", "tree:31", "chain:20,stiffness=1", "whip:30,stiffness=0"] {
        let scene = Scene::parse(name).unwrap();
        let mut inputs = vec![scene.input.clone(); 9];
        let mut states = vec![scene.state.clone(); 9];
        for (k, (state, input)) in states.iter_mut().zip(&mut inputs).enumerate() {
            state.time += 0.2 * k as f64; // elsewhere in what directs it
            input.gravity.y -= 0.1 * k as f64;
            input.solver = Solver::default();
        }
        let mut alone = states.clone();
        let (mut work, mut calm, mut calm_alone) = (Work::new(&scene.model), 0, 0);
        for _ in 0..60 {
            for (state, input) in states.iter().zip(&mut inputs) {
                scene.direct(state.time, input);
            }
            calm += step_crowd(&scene.model, &inputs, &mut states, &mut work).unwrap().calm_parts;
            for (input, state) in inputs.iter().zip(&mut alone) {
                calm_alone += step(&scene.model, input, state, &mut work).unwrap().calm_parts;
            }
        }
        println!("{name}: {calm} calm parts of 540 steps");
        assert_eq!(calm, calm_alone, "{name}");
        assert!(calm > 300, "{name}: only {calm} calm parts");
        for (k, (a, b)) in states.iter().zip(&alone).enumerate() {
            assert_eq!(a.hash(), b.hash(), "{name}, character {k}");
        }
    }
}

#[test]
fn many_threads_have_the_bits_of_one() {
    for name in ["tree:1023", "star:511", "chain:2000", "plant", "hand"] {
        let scene = Scene::parse(name).unwrap();
        let mut hashes = Vec::new();
        for threads in [Threads::One, Threads::Many] {
            let mut input = scene.input.clone();
            input.solver = solver(Instructions::Best, threads);
            let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
            for _ in 0..20 {
                scene.direct(state.time, &mut input);
                step(&scene.model, &input, &mut state, &mut work).unwrap();
            }
            hashes.push(state.hash());
        }
        assert_eq!(hashes[0], hashes[1], "{name}");
    }
}

#[test]
fn cut_trees_agree_with_the_reference() {
    // Large enough to be cut into tasks.
    for name in ["tree:511", "star:511"] {
        let scene = Scene::parse(name).unwrap();
        let (model, mut input) = (&scene.model, scene.input.clone());
        input.solver = solver(Instructions::Best, Threads::One);
        scene.direct(0.0, &mut input);
        let (expected, _) = reference(model, &input, &scene.state, input.dt).unwrap();
        let mut state = scene.state.clone();
        step(model, &input, &mut state, &mut Work::new(model)).unwrap();
        for (body, twist) in state.bodies.iter().zip(&expected) {
            assert!((body.velocity.linear - twist.linear).length() < 1e-9, "{name}");
            assert!((body.velocity.angular - twist.angular).length() < 1e-9, "{name}");
        }
    }
}

#[test]
fn both_schemes_tell_the_same_joint_impulses_of_a_hanging_chain() {
    // At rest every joint carries the weight below it: impulse h Σ m g upwards, in the published and in the midpoint step.
    let scene = Scene::parse("chain:6,stiffness=0,damping=0").unwrap();
    let mut start = scene.state.clone();
    let down = supple::glam::DQuat::from_rotation_z(-std::f64::consts::FRAC_PI_2);
    for (i, body) in start.bodies.iter_mut().enumerate() {
        body.position = supple::glam::DVec3::new(0.0, -0.05 - 0.1 * i as f64, 0.0);
        body.orientation = down;
    }
    start.recount_turns(&scene.model);
    for scheme in [TreeScheme::default(), TreeScheme::Published] {
        let solver = Solver::Tree(Tree { scheme, impulses: Impulses::Keep, ..Tree::default() });
        let input = Input { solver, ..scene.input.clone() };
        let (mut state, mut work) = (start.clone(), Work::new(&scene.model));
        for _ in 0..3 {
            step(&scene.model, &input, &mut state, &mut work).unwrap();
        }
        for (i, impulse) in work.joint_impulses().iter().enumerate() {
            let weight = 0.1 * 9.81 * (6 - i) as f64 * input.dt;
            assert!((impulse.force.y - weight).abs() < 1e-9 * weight.max(1.0), "{scheme:?}, joint {i}: {impulse:?}");
            assert!(impulse.torque.length() < 1e-9, "{scheme:?}, joint {i}: {impulse:?}");
        }
    }
}
