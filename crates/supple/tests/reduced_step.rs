//! Solver `reduced` as a step: joints that cannot open, prescribed motions, energy, convergence, other solvers before and after it.

mod common;
mod support;

use common::Random;
use common::chaos::{self, Chaos};
use glam::DVec3;
use supple::model::Coordinates;
use supple::solver::reduced::{Balance, Integration, Springs};
use supple::*;
use support::*;

const EULER: Solver = Solver::Reduced(Reduced {
    springs: Springs::Implicit,
    integration: Integration::Euler,
    balance: Balance::On,
    contacts: Penalty::USUAL,
    diagonalize: Diagonalize::Selective,
});
const MIDPOINT: Solver = Solver::Reduced(Reduced {
    springs: Springs::Implicit,
    integration: Integration::Midpoint,
    balance: Balance::On,
    contacts: Penalty::USUAL,
    diagonalize: Diagonalize::Selective,
});

#[test]
fn joints_never_open_and_nothing_explodes() {
    // 450 random characters, each 20 steps: stiff and loose, heavy and light, turning by up to radians a step.
    for solver in [EULER, MIDPOINT] {
        let (mut gap, mut gains, mut refused) = (0.0f64, 0, 0);
        for seed in 0..450 {
            let mut case = chaos::stress(seed);
            case.input.solver = solver;
            let out = chaos::endure(&case, 20);
            refused += u32::from(out.error.is_some());
            assert!(!out.not_finite, "seed {seed}");
            gains += u32::from(out.gain > 0.1);
            // What a body is away from the origin, in sizes of the character, multiplies rounding: they fall, and some are flung.
            gap = gap.max(out.gap);
        }
        println!("{solver:?}: gap {gap:.1e} of the size, {gains} gained energy, {refused} refused");
        assert!(gap < 1e-12);
        // Two run far into a hard limit in one step: the energy of that depth is there for a step, and gone after it.
        assert!(gains <= 2 && refused == 0);
    }
}

#[test]
fn the_scenes_stay_bounded_at_frame_size() {
    for solver in [EULER, MIDPOINT] {
        for name in ["chain", "whip:30", "whip:10,tip_mass=1e4", "strand", "plant", "hand", "robot", "chain:300"] {
            let scene = Scene::parse(name).unwrap();
            let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            input.solver = solver;
            let start = measure::energy(&scene.model, &input, &state).total();
            let driven = ["strand", "plant", "hand", "robot"].contains(&name);
            for _ in 0..600 {
                scene.direct(state.time, &mut input);
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                assert!(report.max_joint_gap < 1e-12, "{name}");
                let speed = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(0.0, f64::max);
                assert!(!driven || speed < 20.0, "{name}: {speed} m/s");
                // Euler's energy swings by about half a step's work of gravity.
                let energy = measure::energy(&scene.model, &input, &state).total();
                let swing = 0.02 * scene.model.mass() * 9.81;
                assert!(driven || energy < start + swing, "{name}: {energy} J from {start} J");
            }
        }
    }
}

#[test]
fn long_pulls_on_hand_and_robot_stay_bounded() {
    // A stiff drag swung about wildly, the joints' springs strong and weak in turn, for 20 s.
    for name in ["hand", "robot"] {
        for solver in [EULER, MIDPOINT] {
            let scene = Scene::parse(name).unwrap();
            let body = BodyId(scene.model.bodies().len() as u32 - 1);
            let home = scene.state.bodies[body.index()].position;
            let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            input.solver = solver;
            for n in 0..1200 {
                scene.direct(state.time, &mut input);
                let t = state.time;
                let swing = DVec3::new((3.1 * t).sin(), (4.3 * t).sin(), (2.3 * t).cos()) * 0.5;
                input.stiffness_scale = if (n / 300) % 2 == 0 { 1.0 } else { 0.01 };
                input.drags = vec![Drag {
                    body,
                    point: DVec3::ZERO,
                    target: home + swing,
                    target_velocity: DVec3::ZERO,
                    stiffness: 400.0 * scene.model.mass(),
                    damping: 20.0 * scene.model.mass(),
                }];
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                assert!(report.max_joint_gap < 1e-12, "{name}");
                let far = state.bodies.iter().map(|b| b.position.distance(home)).fold(0.0, f64::max);
                let speed = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(0.0, f64::max);
                // They are 0.2 m and 1.7 m long; the target moves at up to 3 m/s, and starts by jumping half a metre.
                assert!(far < 3.0 && speed < 40.0, "{name} at {t} s: {far} m away, {speed} m/s");
            }
        }
    }
}

/// A floating tree whose joints are driven, with its coordinates.
fn driven(seed: u64) -> (Model, Input, State) {
    let mut random = Random::new(seed);
    let chaos = Chaos { bodies: (2, 8), floating: 1.0, springs: 0.5, gravity: true, ..Chaos::QUIET };
    let case = chaos::tree(&mut random, &chaos);
    (case.model, case.input, case.state)
}

#[test]
fn prescribed_velocities_and_accelerations_are_followed_to_rounding() {
    for solver in [EULER, MIDPOINT] {
        for seed in 0..60 {
            let (model, mut input, mut state) = driven(seed);
            let mut random = Random::new(seed + 99);
            input.solver = solver;
            let mut drives = Vec::new();
            for k in 0..model.joints().len() {
                let numbers: [f64; 6] = std::array::from_fn(|_| random.range(-2.0, 2.0));
                let drive = match random.below(3) {
                    0 => Drive::Forces,
                    1 => Drive::Velocity(numbers),
                    _ => Drive::Acceleration(numbers),
                };
                input.joint_mut(&model, k).drive = drive;
                drives.push(drive);
            }
            let mut work = Work::new(&model);
            for _ in 0..10 {
                let before = Coordinates::of(&model, &state);
                step(&model, &input, &mut state, &mut work).unwrap();
                let after = Coordinates::of(&model, &state);
                for (k, drive) in drives.iter().enumerate() {
                    let id = JointId(k as u32);
                    for (i, rate) in after.rates_of(id).iter().enumerate() {
                        let wanted = match drive {
                            Drive::Forces => continue,
                            Drive::Velocity(v) => v[i],
                            Drive::Acceleration(a) => before.rates_of(id)[i] + input.dt * a[i],
                        };
                        assert!((rate - wanted).abs() < 1e-11, "seed {seed}, {drive:?}: {rate} for {wanted}");
                    }
                }
            }
        }
    }
}

#[test]
fn driven_joints_move_a_floating_root_without_a_force_on_it() {
    // A cat in free fall: whatever its joints do, momentum is kept, and the centre of mass falls as a stone.
    for solver in [EULER, MIDPOINT] {
        let (mut worst, mut worst_fall) = (0.0f64, 0.0f64);
        for seed in 0..60 {
            let (model, mut input, mut state) = driven(seed);
            input.solver = solver;
            for k in 0..model.joints().len() {
                input.joint_mut(&model, k).drive = Drive::Velocity([0.7, -0.4, 0.9, -0.6, 0.3, 0.8]);
            }
            let mut work = Work::new(&model);
            let start = measure::momentum(&model, &state);
            let centre = |state: &State| {
                let sum: DVec3 = model.bodies().iter().zip(&state.bodies).map(|(b, s)| s.position * b.mass).sum();
                sum / model.mass()
            };
            let about = |state: &State| {
                let m = measure::momentum(&model, state);
                m.angular - centre(state).cross(m.linear)
            };
            let (spin, size) = (about(&state), about(&state).length().max(model.mass()));
            for n in 1..=60 {
                step(&model, &input, &mut state, &mut work).unwrap();
                let now = measure::momentum(&model, &state);
                let fallen = input.gravity * (model.mass() * input.dt * f64::from(n));
                worst_fall = worst_fall.max((now.linear - start.linear - fallen).length() / model.mass());
                worst = worst.max((about(&state) - spin).length() / size);
            }
        }
        println!("{solver:?}: momentum {worst_fall:.1e} m/s, {worst:.1e} of the angular momentum");
        assert!(worst_fall < 1e-11 && worst < 1e-11); // rounding, over 60 steps
    }
}

#[test]
fn free_flight_keeps_energy_and_momentum_to_rounding() {
    // No gravity, no springs: Coriolis forces alone.
    for solver in [EULER, MIDPOINT] {
        let mut worst = (0.0f64, 0.0f64);
        for seed in 0..40 {
            let mut random = Random::new(seed + 40);
            let chaos = Chaos { bodies: (2, 8), floating: 1.0, all_masks: false, speed: 2.0, ..Chaos::QUIET };
            let mut case = chaos::tree(&mut random, &chaos);
            case.input.solver = solver;
            let (model, mut state, mut work) = (&case.model, case.state.clone(), Work::new(&case.model));
            let (energy, momentum) =
                (measure::energy(model, &case.input, &state).kinetic, measure::momentum(model, &state));
            for _ in 0..60 {
                step(model, &case.input, &mut state, &mut work).unwrap();
                let now = measure::energy(model, &case.input, &state).kinetic;
                worst.0 = worst.0.max((now / energy - 1.0).abs());
                let change = (measure::momentum(model, &state).linear - momentum.linear).length();
                worst.1 = worst.1.max(change / (model.mass() * energy).sqrt());
            }
        }
        println!("{solver:?}: energy {:.1e}, momentum {:.1e}", worst.0, worst.1);
        assert!(worst.0 < 1e-11 && worst.1 < 1e-12);
    }
}

#[test]
fn energy_of_pendulums_swings_or_stays() {
    for (name, seconds) in [("pendulum", 20.0), ("double_pendulum", 20.0), ("top", 10.0)] {
        let scene = Scene::parse(name).unwrap();
        // What is at stake: a fall through the pendulum's length, or the spin of the top.
        let stake = measure::energy(&scene.model, &scene.input, &scene.state).kinetic.max(scene.model.mass() * 9.81);
        for (solver, most) in [(EULER, 0.05), (MIDPOINT, 1e-10)] {
            let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            input.solver = solver;
            let start = measure::energy(&scene.model, &input, &state).total();
            let mut worst = 0.0f64;
            for _ in 0..(seconds / input.dt) as usize {
                step(&scene.model, &input, &mut state, &mut work).unwrap();
                worst = worst.max((measure::energy(&scene.model, &input, &state).total() - start).abs() / stake);
            }
            println!("{name}, {solver:?}: {worst:.1e} of {stake:.1} J");
            assert!(worst < most, "{name}, {solver:?}: {worst}");
        }
    }
}

/// Errors at steps that halve, against a fine run of solver `tree` extrapolated to second order and better.
fn errors(scene: &Scene, solver: Solver, seconds: f64, rates: &[f64], fine: f64) -> Vec<f64> {
    let tree = |rate: f64| play(scene, Solver::default(), 1.0 / rate, seconds);
    // The default step of `tree` is second order: (4 fine − coarse)/3.
    let (coarse, mut reference) = (tree(fine), tree(2.0 * fine));
    for (a, b) in reference.bodies.iter_mut().zip(&coarse.bodies) {
        a.position = (a.position * 4.0 - b.position) / 3.0;
    }
    rates.iter().map(|&rate| apart(&play(scene, solver, 1.0 / rate, seconds), &reference)).collect()
}

#[test]
fn the_step_converges_to_the_motion_of_the_tree() {
    // Loose links with springs and dampers that leave the plane.
    let mut scene = Scene::parse("chain:5,stiffness=2,damping=0.01").unwrap();
    for link in &mut scene.state.bodies {
        let turning = DVec3::new(0.5, 3.0, 0.3);
        link.velocity = Twist::new(turning.cross(link.position), turning);
    }
    for (solver, order) in [(EULER, 0.85..1.2), (MIDPOINT, 1.8..2.3)] {
        let found = errors(&scene, solver, 0.5, &[120.0, 240.0, 480.0, 960.0], 7680.0);
        let orders = orders(&found);
        println!("{solver:?}: errors {} m, orders {orders:.2?}", list(&found));
        assert!(orders.iter().all(|o| order.contains(o)), "{found:?}: orders {orders:?}");
    }
}

#[test]
fn as_published_without_the_books_it_converges_too() {
    let scene = Scene::parse("double_pendulum").unwrap();
    let plain = Solver::Reduced(Reduced { balance: Balance::Off, springs: Springs::Explicit, ..Reduced::default() });
    let found = errors(&scene, plain, 0.5, &[240.0, 480.0, 960.0, 1920.0], 7680.0);
    let orders = orders(&found);
    println!("errors {} m, orders {orders:.2?}", list(&found));
    assert!(orders.iter().all(|o| (0.85..1.2).contains(o)), "{found:?}: orders {orders:?}");
}

#[test]
fn another_solver_may_take_over_at_any_step() {
    // The published step leaves gaps and velocities that open joints: `reduced` closes them and says so. The default step leaves no gap:
    // then nothing jumps.
    for (before, gap_left) in [(published(), true), (Solver::default(), false)] {
        for name in ["chain:10,stiffness=2", "hand", "robot"] {
            let scene = Scene::parse(name).unwrap();
            let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            for n in 0..90 {
                scene.direct(state.time, &mut input);
                input.solver = if (n / 15) % 2 == 0 { before } else { EULER };
                let start = state.clone();
                let gap = measure::joint_gap(&scene.model, &state).distance;
                let kinetic = measure::energy(&scene.model, &input, &state).kinetic;
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                if n % 30 == 15 {
                    // The first step of `reduced`: each body is moved by the gaps on its way to the root at most, and by its motion.
                    let links = scene.model.bodies().len() as f64;
                    assert!(
                        report.closed <= 3.0 * gap * links + 1e-14,
                        "{name}: {} m for gaps of {gap} m",
                        report.closed
                    );
                    assert_eq!(gap_left, report.closed > 1e-9, "{name}: closed {} m", report.closed);
                    assert!(!gap_left || report.projections == 1, "{name}: {report:?}");
                    for (a, b) in start.bodies.iter().zip(&state.bodies) {
                        let speed = a.velocity.linear.length().max(b.velocity.linear.length());
                        let moved = a.position.distance(b.position);
                        assert!(moved < report.closed + 1.5 * speed * input.dt + 1e-3, "{name}: jumped by {moved} m");
                    }
                } else if n % 30 > 15 {
                    assert_eq!((report.projections, report.closed < 1e-13), (0, true), "{name}, step {n}: {report:?}");
                }
                let now = measure::energy(&scene.model, &input, &state).kinetic;
                assert!(now < 2.0 * kinetic + 2.0, "{name}, step {n}: {kinetic} J became {now} J");
            }
        }
    }
}

#[test]
fn projected_velocities_lose_energy_and_keep_momentum() {
    for seed in 0..100 {
        let mut random = Random::new(seed + 7);
        let chaos = Chaos { bodies: (2, 8), floating: 1.0, ..Chaos::QUIET };
        let case = chaos::tree(&mut random, &chaos);
        let (model, mut state) = (&case.model, case.state.clone());
        // Velocities that tear at the joints; a part so short that nothing else happens in it.
        for body in &mut state.bodies {
            body.velocity = body.velocity + Twist::new(random.vector(1.0), random.vector(1.0));
        }
        let input = Input { dt: 1e-12, solver: EULER, gravity: DVec3::ZERO, ..Input::default() };
        let (energy, momentum) = (measure::energy(model, &input, &state).kinetic, measure::momentum(model, &state));
        let report = step(model, &input, &mut state, &mut Work::new(model)).unwrap();
        let (now, after) = (measure::energy(model, &input, &state).kinetic, measure::momentum(model, &state));
        let whole = model.joints().iter().all(|joint| joint.mask == JointMask::FREE);
        assert_eq!(report.projections, u32::from(!whole), "seed {seed}");
        assert!(now <= energy * (1.0 + 1e-12), "seed {seed}: {energy} J, {now} J");
        let size = (model.mass() * energy).sqrt();
        assert!((after.linear - momentum.linear).length() < 1e-9 * size, "seed {seed}");
        assert!((after.angular - momentum.angular).length() < 1e-9 * size * case.size.max(1.0), "seed {seed}");
        // What is left moves with closed joints: the rates alone give the same velocities.
        let mut again = state.clone();
        Coordinates::of(model, &state).write(model, &mut again);
        for (a, b) in state.bodies.iter().zip(&again.bodies) {
            let d = a.velocity - b.velocity;
            assert!(d.linear.length().max(d.angular.length()) < 1e-11, "seed {seed}");
        }
    }
}

#[test]
fn loops_and_grips_are_refused_by_name() {
    let mut builder = ModelBuilder::new();
    for (i, x) in [0.0, 1.0].into_iter().enumerate() {
        builder.body(block(&format!("block {i}"), DVec3::X * x));
        builder.joint(JointSpec::new(format!("to world {i}"), JointMask::BALL, BodyId(i as u32), BodyRef::World));
    }
    builder.joint(JointSpec::new("between", JointMask::BALL, BodyId(0), BodyId(1)));
    let model = builder.build().unwrap();
    let mut input = Input { solver: EULER, ..Input::default() };
    let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
    assert_eq!(error.code(), "step/loops");
    assert!(error.to_string().contains("reduced"), "{error}");

    let model = on_world(JointMask::BALL, DVec3::X, |joint| joint);
    input.grips.push(Grip { body: BodyId(0), point: DVec3::ZERO, target: DVec3::ZERO, rotation: None });
    let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
    assert_eq!(error.code(), "step/unsupported");
    assert!(error.to_string().contains("block"), "{error}");
}

#[test]
fn every_mask_moves_where_it_is_free_and_nowhere_else() {
    // One block on one joint under a constant wrench, at rest: the work of the wrench goes where the mask lets it.
    for bits in 0..64 {
        let mask = JointMask::from_bits(bits);
        let model = on_world(mask, DVec3::new(0.1, 0.2, 0.05), |joint| joint);
        let mut input = Input { solver: EULER, gravity: DVec3::ZERO, dt: 1e-3, ..Input::default() };
        input.wrenches.push((BodyId(0), Wrench::new(DVec3::new(1.0, 2.0, 3.0), DVec3::new(0.3, 0.1, 0.2))));
        let (mut state, mut work) = (model.start(), Work::new(&model));
        let mut reference = state.clone();
        for _ in 0..20 {
            step(&model, &input, &mut state, &mut work).unwrap();
            step(&model, &Input { solver: Solver::default(), ..input.clone() }, &mut reference, &mut work).unwrap();
        }
        let gap = measure::joint_gap(&model, &state);
        assert!(gap.distance < 1e-15 && gap.tilt < 1e-14, "{}: {gap:?}", mask.name());
        let moved = apart(&state, &model.start());
        assert_eq!(moved > 1e-5, mask != JointMask::WELD, "{}: {moved}", mask.name());
        // First order: 20 ms at up to 20 rad/s² from steps of 1 ms.
        assert!(apart(&state, &reference) < 0.1 * moved + 1e-15, "{}", mask.name());
    }
}

#[test]
fn the_same_bits_with_a_fresh_work_and_from_a_snapshot() {
    for solver in [EULER, MIDPOINT] {
        for name in ["whip", "hand", "robot", "tree:31"] {
            let scene = Scene::parse(name).unwrap();
            let run = |mut state: State, steps: usize, fresh: bool| {
                let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
                input.solver = solver;
                for _ in 0..steps {
                    if fresh {
                        work = Work::new(&scene.model);
                    }
                    scene.direct(state.time, &mut input);
                    step(&scene.model, &input, &mut state, &mut work).unwrap();
                }
                state
            };
            let whole = run(scene.state.clone(), 60, false).hash();
            assert_eq!(run(scene.state.clone(), 60, true).hash(), whole, "{name}: fresh work");
            let snapshot = run(scene.state.clone(), 25, false).clone();
            assert_eq!(run(snapshot, 35, false).hash(), whole, "{name}: resumed");
        }
    }
}

#[test]
fn balanced_books_do_not_disturb_a_tree_that_turns_as_one() {
    // Nearly all of its energy is that of the motion as one body. What the books are off by must not be laid on the rest.
    let mut builder = ModelBuilder::new();
    let mut last = None;
    for k in 0..3 {
        let at = DVec3::new(0.2 * f64::from(k) - 0.2, 0.0, 0.0);
        let body = builder
            .body(BodySpec::new(format!("bone {k}")).shape(Shape::cuboid(0.2, 0.15, 0.2), 1000.0).pose(Pose::at(at)));
        if let Some(last) = last {
            let joint = JointSpec::new(format!("joint {k}"), JointMask::BALL, body, last);
            builder.joint(joint.at(at - DVec3::X * 0.1));
        }
        last = Some(body);
    }
    let model = builder.build().unwrap();
    let mut start = model.start();
    let spin = DVec3::new(0.5, -1.0, 2.0);
    for body in &mut start.bodies {
        body.velocity = Twist::new(spin.cross(body.position) + DVec3::X, spin);
    }
    let run = |solver: Solver, dt: f64| {
        let (mut state, mut work) = (start.clone(), Work::new(&model));
        let input = Input { gravity: DVec3::NEG_Y, dt, solver, ..Input::default() };
        for _ in 0..(0.1 / dt).round() as usize {
            step(&model, &input, &mut state, &mut work).unwrap();
        }
        state.bodies.iter().map(|body| body.position).collect::<Vec<_>>()
    };
    let reference = run(Solver::default(), 1e-4);
    let off = |dt: f64| {
        let bodies = run(Solver::Reduced(Reduced::default()), dt);
        bodies.iter().zip(&reference).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max)
    };
    let [coarse, fine] = [1e-3, 2.5e-4].map(off);
    assert!(coarse < 1e-4 && fine < 0.3 * coarse, "{coarse} {fine}");
}
