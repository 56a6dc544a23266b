//! The midpoint step, the default of solver `tree`: its oracles, laws, orders, units, modes and what it does with everything
//! that may act on a character.

#[path = "common/mod.rs"]
mod common;
mod support;

use common::Random;
use common::chaos::{self, Case, Chaos, midpoint};
use glam::{DQuat, DVec3};
use supple::solver::Mode;
use supple::*;
use support::{MOMENTS, apart, list, on_world, orders, play};

const FPS: [f64; 3] = [30.0, 60.0, 240.0];

fn input(dt: f64) -> Input {
    Input { dt, ..Input::default() }
}

fn weightless(dt: f64) -> Input {
    Input { gravity: DVec3::ZERO, ..input(dt) }
}

/// Far end of the last link of a chain.
fn tip(state: &State) -> DVec3 {
    state.bodies.last().unwrap().pose().transform_point(DVec3::X * 0.05)
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    steps: u32,
    factorisations: u32,
    most: u32,
    fallbacks: u32,
    halvings: u32,
    backward: u32,
    resorts: u32,
    projections: u32,
    gap: f64,
    speed: f64,
}

impl Run {
    fn add(&mut self, state: &State, r: &Report) {
        self.steps += 1;
        self.factorisations += r.factorisations;
        self.most = self.most.max(r.factorisations);
        self.fallbacks += r.fallbacks;
        self.halvings += r.rotation_halvings;
        self.backward += r.backward_parts;
        self.resorts += r.resorts;
        self.projections += r.projections;
        self.gap = self.gap.max(r.max_joint_gap).max(r.max_joint_tilt);
        self.speed = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(self.speed, f64::max);
    }
    fn mean(&self) -> f64 {
        f64::from(self.factorisations) / f64::from(self.steps)
    }
}

/// Steps with a look after each; every state must be finite.
fn run(model: &Model, input: &Input, state: &mut State, steps: usize, mut look: impl FnMut(&State, &Report)) -> Run {
    let mut work = Work::new(model);
    let mut sums = Run::default();
    for n in 0..steps {
        let report = step(model, input, state, &mut work).unwrap_or_else(|e| panic!("step {n}: {e}"));
        assert!(state.is_finite(), "step {n}");
        sums.add(state, &report);
        look(state, &report);
    }
    sums
}

fn total(model: &Model, input: &Input, state: &State) -> f64 {
    let (kinetic, potential) = chaos::energy(model, input, state);
    kinetic + potential
}

// ---------------------------------------------------------------------------------------------------- oracles

#[test]
fn tips_of_whips_are_where_a_fine_reference_has_them() {
    // robust_step.md §7: Richardson's extrapolation of 1/3840 and 1/7680 s, good to 1e-5 m; its z is our y, its y our −z.
    type At = [f64; 3];
    let oracles: [(usize, f64, f64, At, At); 8] = [
        (10, 0.0, 1.0, [-0.26357, 0.00016, -0.85482], [-0.90069, -0.00116, -0.15374]),
        (10, 100.0, 1.0, [0.99553, -0.00044, -0.08962], [0.96537, -0.00036, -0.24727]),
        (30, 0.0, 1.0, [2.43845, 0.00142, -1.22625], [-1.80507, -0.00090, -2.03578]),
        (30, 100.0, 1.0, [2.53140, 0.00196, -1.57605], [-0.63752, 0.00031, -2.70630]),
        (30, 0.0, 1e4, [2.74682, 0.00046, -1.20597], [0.12638, 0.00059, -2.99720]),
        (30, 1e4, 100.0, [2.79377, 0.00039, -1.00841], [2.40923, -0.00014, -1.63429]),
        (100, 0.0, 1.0, [9.66275, 0.00154, -1.22625], [7.53415, 0.00284, -4.90500]),
        (100, 100.0, 1.0, [9.72447, 0.00144, -1.22131], [7.68577, 0.00262, -4.89872]),
    ];
    let mut wrong = Vec::new();
    for (links, stiffness, mass, half, one) in oracles {
        let scene = Scene::parse(&format!("whip:{links},stiffness={stiffness},tip_mass={mass}")).unwrap();
        let mut found = Vec::new();
        for rate in FPS {
            // The tolerances suggested with the oracles: truncation at each step, measured with a prototype.
            let tolerance = match rate as u32 {
                240 => 0.002,
                60 => 0.020,
                _ if (links, stiffness, mass) == (30, 0.0, 1.0) => 0.12,
                _ => 0.05,
            };
            let mut state = scene.state.clone();
            let mut off = Vec::new();
            let mut n = 0;
            run(&scene.model, &input(1.0 / rate), &mut state, rate as usize, |state, _| {
                n += 1;
                for (when, [x, y, z]) in [(0.5, half), (1.0, one)] {
                    if f64::from(n) == (when * rate).round() {
                        off.push(tip(state).distance(DVec3::new(x, z, -y)));
                    }
                }
            });
            if off.iter().any(|&d| d > tolerance) {
                wrong.push(format!("{} at 1/{rate} s: off by {} m, allowed {tolerance}", scene.name, list(&off)));
            }
            found.extend(off);
        }
        println!("{}: off at 1/30, 1/60, 1/240 s (0.5 s, 1 s each): {} m", scene.name, list(&found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn static_sag_is_that_of_an_independent_solve_at_every_step_size() {
    // Equilibrium does not depend on dt: springs act with the poses' own torque. 1e-6 m: the digits of the oracle, and what
    // settling leaves: the softest chain's lowest mode (11 rad/s, 5 % of critical) decays as e^(−0.6 t).
    let mut wrong = Vec::new();
    for (stiffness, mass, damping, x, y, seconds) in [
        (1e2, 1.0, 1.0, 0.988251, -0.146044, 60.0),
        (1e4, 1.0, 30.0, 0.9999988, -0.0014838, 20.0),
        (1e6, 1.0, 300.0, 1.0, -1.48e-5, 20.0),
        (1e6, 1e4, 3000.0, 0.999299, -0.035043, 60.0),
        (1e4, 100.0, 30.0, 0.999255, -0.036161, 60.0),
    ] {
        let scene = Scene::parse(&format!("chain:10,stiffness={stiffness},damping={damping},tip_mass={mass}")).unwrap();
        for rate in FPS {
            let mut state = scene.state.clone();
            let counts = run(&scene.model, &input(1.0 / rate), &mut state, (seconds * rate) as usize, |_, _| {});
            let at = tip(&state);
            let speed = state.bodies.last().unwrap().velocity.linear.length();
            println!(
                "{}: at 1/{rate} s tip ({:.7}, {:.7}), speed {speed:.1e} m/s, {:.2} factorisations a step",
                scene.name,
                at.x,
                at.y,
                counts.mean()
            );
            if at.distance(DVec3::new(x, y, 0.0)) > 1e-6 {
                wrong.push(format!("{} at 1/{rate}: {at}", scene.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// ------------------------------------------------------------------------------------------------------- laws

/// Presets, odd masks, and mixtures of all (None).
fn mask_cases() -> Vec<Option<JointMask>> {
    let presets = JointMask::PRESETS.into_iter().map(|(_, m)| Some(m));
    // A slider across X, Cardan joints about other axes, hinges about Y and Z, two slides with a Cardan, a line along Z …
    let odd = [0b111101, 0b010111, 0b100111, 0b101111, 0b011111, 0b001011, 0b000011, 0b110110, 0b101010, 0b010001];
    presets.chain(odd.into_iter().map(|b| Some(JointMask::from_bits(b)))).chain([None]).collect()
}

/// Largest relative change of energy in a step, over seeds.
fn drift(chaos: &Chaos, dt: f64, seeds: u64) -> f64 {
    let mut worst = 0.0f64;
    for seed in 0..seeds {
        let Case { model, mut input, mut state, .. } = chaos::tree(&mut Random::new(1000 + seed), chaos);
        (input.dt, input.solver) = (dt, midpoint(Mode::Conservative));
        let mut last = total(&model, &input, &state);
        if last == 0.0 {
            continue; // a weld to the world
        }
        run(&model, &input, &mut state, 100, |state, _| {
            let now = total(&model, &input, state);
            worst = worst.max((now / last - 1.0).abs());
            last = now;
        });
    }
    worst
}

#[test]
fn joint_impulses_do_no_work_for_any_joint() {
    // The rule makes the work exactly zero for a solved step. Newton's method stops at a correction of 1e-7 rad; what it leaves is
    // that times its contraction, which goes with the rotation in a step, and closing the joints moves bodies by as much:
    // 2·1e-7·0.1/h of velocity at worst, a few 1e-6 m/s of about 1 m/s at 1/60 s. Rounding of positions, 1e-16 m/h, is far below.
    let mut wrong = Vec::new();
    for mask in mask_cases() {
        let name = mask.map_or("all mixed".to_owned(), JointMask::name);
        let seeds = if mask.is_some() { 12 } else { 60 };
        let chaos = Chaos { mask, ..Chaos::QUIET };
        let (coarse, fine) = (drift(&chaos, 1.0 / 60.0, seeds), drift(&chaos, 1e-3, seeds));
        println!(
            "{name:>16}: energy changes by at most {coarse:.1e} of itself in a step of 1/60 s, {fine:.1e} at 1/1000 s"
        );
        if !(coarse < 2e-6 && fine < 1e-9) {
            wrong.push(format!("{name}: {coarse:.1e} at 1/60 s, {fine:.1e} at 1/1000 s"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn joint_impulses_do_no_work_to_rounding() {
    // The conservative mode stops at a correction of 1e-11 rad and closes gaps below 1e-11 of a lever; rounding of positions gives 1e-12
    // to 7e-12. Largest measured: 1.14e-11 (mask `tx ry`). The bound is that with room, not derived; the identity itself is
    // held to 1e-12 beside `equations.rs`.
    for mask in mask_cases() {
        let coarse = drift(&Chaos { mask, ..Chaos::QUIET }, 1.0 / 60.0, 12);
        assert!(coarse < 3e-11, "{:?}: {coarse:e}", mask.map(JointMask::name));
    }
}

#[test]
fn springs_do_exactly_the_work_of_their_energy() {
    // As above, with springs of 30 to 300 N·m/rad and N/m that start stretched, on joints that start at up to 5 rad/s: none turns right round,
    // where a spring forgets its turns.
    let springs = Chaos { springs: 1.0, stiffness: (1.5, 2.5), slack: 0.0, speed: 5.0, ..Chaos::QUIET };
    let mut worst = 0.0f64;
    for mask in mask_cases() {
        let off = drift(&Chaos { mask, ..springs }, 1.0 / 60.0, 12);
        println!("{:?}: {off:.1e}", mask.map(JointMask::name));
        worst = worst.max(off);
    }
    assert!(worst < 2e-10, "{worst:e}"); // measured: 4.4e-11, of free bodies on springs; with the mean of the torques hinges gave 4.5e-3
}

/// Relative drifts of linear and angular momentum of floating trees in 60 steps, and counts. The backward rule keeps the angular
/// momentum to first order only: from the first part done by it on, the angular momentum is not looked at.
fn momentum_drift(chaos: &Chaos, seeds: u64, mode: Mode) -> (f64, f64, Run) {
    let (mut linear, mut angular, mut counts) = (0.0f64, 0.0f64, Run::default());
    for seed in 0..seeds {
        let Case { model, mut input, mut state, .. } = chaos::tree(&mut Random::new(5000 + seed), chaos);
        input.solver = midpoint(mode);
        let start = measure::momentum(&model, &state);
        // What rounding and tolerance go with: the largest sums of sizes so far.
        let (mut p, mut l, mut backward) = (0.0f64, 0.0f64, 0);
        run(&model, &input, &mut state, 60, |state, report| {
            counts.add(state, report);
            let (mut p_now, mut l_now) = (0.0, 0.0);
            for (body, s) in model.bodies().iter().zip(&state.bodies) {
                let m_v = body.mass * s.velocity.linear.length();
                p_now += m_v;
                l_now += m_v * s.position.length() + body.inertia.y_axis.y * s.velocity.angular.length();
            }
            (p, l) = (p.max(p_now), l.max(l_now));
            let now = measure::momentum(&model, state);
            linear = linear.max((now.linear - start.linear).length() / p);
            backward += report.backward_parts;
            if backward == 0 {
                angular = angular.max((now.angular - start.angular).length() / l);
            }
        });
    }
    (linear, angular, counts)
}

#[test]
fn floating_trees_keep_their_momentum() {
    let base = Chaos {
        bodies: (2, 20),
        floating: 1.0,
        springs: 0.6,
        stiffness: (0.0, 3.0),
        slack: 1.0,
        dampers: 0.4,
        limits: 0.4,
        ..Chaos::QUIET
    };
    // Joints close exactly at the end of a step, children onto parents: what Newton's method left open, up to its 1e-7 of a
    // lever (0.3 m) times its contraction (0.05 rad), moves bodies without an impulse: 2e-7 m/s of about 1 m/s in a step. Sixty
    // steps add up at random.
    for (what, chaos) in [
        ("joints alone", Chaos { springs: 0.0, dampers: 0.0, limits: 0.0, ..base }),
        ("springs, dampers, limits", base),
    ] {
        let (linear, angular, counts) = momentum_drift(&chaos, 60, Mode::Default);
        println!(
            "{what}: linear momentum off by {linear:.1e}, angular by {angular:.1e} of the sums of sizes; {counts:?}"
        );
        assert!(linear < 3e-6, "{what}: linear {linear:e}");
        assert!(angular < 3e-6, "{what}: angular {angular:e}");
        assert!(counts.backward <= counts.steps / 100, "{counts:?}"); // so that the angular momentum was looked at
    }
}

#[test]
fn floating_trees_keep_their_linear_momentum_to_rounding() {
    // The equations of linear momentum are linear: every solve fulfils them to rounding, 1e-16 m/h of velocity in each of 60 steps.
    let chaos = Chaos { bodies: (2, 20), floating: 1.0, ..Chaos::QUIET };
    let (linear, _, _) = momentum_drift(&chaos, 60, Mode::Default);
    assert!(linear < 1e-11, "{linear:e}");
}

// ---------------------------------------------------------------------------------------------------- order

/// Errors at steps that halve, against Richardson's extrapolation of a second-order rule.
fn errors(name: &str, rates: [f64; 4], at: impl Fn(f64) -> State) -> Vec<f64> {
    let fine = 8.0 * rates[3];
    let (coarse, mut reference) = (at(fine), at(2.0 * fine));
    for (a, b) in reference.bodies.iter_mut().zip(&coarse.bodies) {
        a.position = (a.position * 4.0 - b.position) / 3.0;
    }
    let errors: Vec<f64> = rates.iter().map(|&rate| apart(&at(rate), &reference)).collect();
    println!("{name}: errors {} m at {rates:?} Hz, orders {:.2?}", list(&errors), orders(&errors));
    errors
}

fn assert_second_order(name: &str, errors: &[f64]) {
    // Second order, with the next term of the error still visible at the coarsest step.
    let orders = orders(errors);
    assert!(orders.iter().all(|o| (1.7..2.3).contains(o)), "{name}: errors {errors:?}, orders {orders:.2?}");
}

#[test]
fn a_chain_with_springs_converges_to_second_order() {
    let scene = Scene::parse("chain:5,stiffness=20,damping=0.01").unwrap();
    // At 1/120 s the faster bending modes (hundreds of rad/s) are not resolved: the order shows below that.
    let errors = errors(&scene.name, [240.0, 480.0, 960.0, 1920.0], |rate| {
        play(&scene, midpoint(Mode::Default), 1.0 / rate, 0.5)
    });
    assert_second_order(&scene.name, &errors);
}

/// Hinge, universal, slider and ball one below the other, with springs and dampers.
fn mixed_arm() -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for (i, mask) in
        [JointMask::HINGE, JointMask::UNIVERSAL, JointMask::PRISMATIC, JointMask::CYLINDRICAL, JointMask::BALL]
            .into_iter()
            .enumerate()
    {
        let x = 0.2 * i as f64;
        let link = builder.body(
            BodySpec::new(format!("link {i}"))
                .shape(Shape::cuboid(0.2, 0.05, 0.04), 1000.0)
                .pose(Pose::at(DVec3::X * (x + 0.1))),
        );
        let axis = [DVec3::Z, DVec3::Y, DVec3::X, DVec3::new(0.3, 1.0, 0.2), DVec3::X][i];
        builder.joint(
            JointSpec::new(format!("joint {i}"), mask, link, last)
                .at(DVec3::X * x)
                .axis(axis)
                .spring(8.0, 0.02)
                .slide_spring(SlideSpring { stiffness: 60.0, damping: 0.3, rest: DVec3::ZERO }),
        );
        last = link.into();
    }
    builder.build().unwrap()
}

#[test]
fn an_arm_of_many_kinds_of_joints_converges_to_second_order() {
    let model = mixed_arm();
    let errors = errors("hinge, universal, slider, cylinder, ball", [120.0, 240.0, 480.0, 960.0], |rate| {
        let mut state = model.start();
        run(&model, &input(1.0 / rate), &mut state, (0.5 * rate) as usize, |_, _| {});
        state
    });
    assert_second_order("arm", &errors);
}

#[test]
fn the_heavy_top_converges_to_second_order() {
    // 60 rad/s: below 1/120 s no part is halved.
    let scene = Scene::parse("top").unwrap();
    let errors = errors(&scene.name, [240.0, 480.0, 960.0, 1920.0], |rate| {
        play(&scene, midpoint(Mode::Default), 1.0 / rate, 1.0)
    });
    assert_second_order(&scene.name, &errors);
}

// ------------------------------------------------------------------------------------------------------ gaps

#[test]
fn every_mask_is_closed_after_every_step() {
    let mut worst = (0.0f64, String::new());
    for bits in 0..64 {
        let mask = JointMask::from_bits(bits);
        for (floating, flipped) in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)] {
            let chaos = Chaos {
                bodies: (4, 4),
                mask: Some(mask),
                floating,
                flipped,
                springs: 0.3,
                slack: 1.0,
                speed: 10.0,
                gravity: true,
                ..Chaos::QUIET
            };
            let Case { model, input, mut state, size, .. } =
                chaos::tree(&mut Random::new(u64::from(bits) + 70), &chaos);
            run(&model, &input, &mut state, 30, |state, report| {
                let gap = measure::joint_gap(&model, state);
                let open = (gap.distance / size).max(gap.tilt);
                // Children are placed onto parents: rounding of a path of four joints.
                assert!(open < 1e-9, "{}: open by {open:e}", mask.name());
                // Both are rounding, of sums in another order.
                let told = (report.max_joint_gap - gap.distance).abs().max((report.max_joint_tilt - gap.tilt).abs());
                assert!(told < 1e-14 * size.max(1.0), "{}: told {report:?}, found {gap:?}", mask.name());
                if open > worst.0 {
                    worst = (open, mask.name());
                }
            });
        }
    }
    println!("worst: {:.1e} of the size at {}", worst.0, worst.1);
    // The measure tells: the published step leaves such trees open.
    let chaos = Chaos { bodies: (4, 4), mask: Some(JointMask::HINGE), floating: 0.0, speed: 10.0, ..Chaos::QUIET };
    let Case { model, mut input, mut state, .. } = chaos::tree(&mut Random::new(70), &chaos);
    input.solver = support::published();
    assert!(run(&model, &input, &mut state, 30, |_, _| {}).gap > 1e-5);
}

// ----------------------------------------------------------------------------------------------------- units

/// How far poses and angles at another scale are from those at scale 1 after a second, as shares of the size.
fn units_apart(seed: u64, chaos: &Chaos, scale: f64) -> f64 {
    let at = |scale: f64| {
        let Case { model, input, mut state, size, .. } =
            chaos::tree(&mut Random::new(seed), &Chaos { scale, ..*chaos });
        run(&model, &input, &mut state, 60, |_, _| {});
        (state, size)
    };
    let ((a, size), (b, _)) = (at(1.0), at(scale));
    a.bodies
        .iter()
        .zip(&b.bodies)
        .map(|(a, b)| {
            let turned = a.orientation.angle_between(b.orientation);
            (a.position.distance(b.position / scale) / size).max(turned)
        })
        .fold(0.0, f64::max)
}

const UNITS: Chaos = Chaos {
    bodies: (10, 16),
    all_masks: false,
    floating: 0.0,
    springs: 1.0,
    stiffness: (1.0, 2.5),
    slack: 1.0,
    dampers: 1.0,
    speed: 1.0,
    gravity: true,
    ..Chaos::QUIET
};

#[test]
fn units_do_not_matter_to_rotating_joints() {
    // The same numbers in other units, up to rounding and the solver's 1e-7 rad, which springs and dampers do not amplify.
    for (what, mask, limits) in [
        ("balls", JointMask::BALL, 0.0),
        ("balls with limits", JointMask::BALL, 0.7),
        ("hinges", JointMask::HINGE, 0.5),
        ("universals", JointMask::UNIVERSAL, 0.0),
    ] {
        let chaos = Chaos { mask: Some(mask), limits, ..UNITS };
        for scale in [1e-3, 100.0] {
            let worst = (0..8).map(|seed| units_apart(seed, &chaos, scale)).fold(0.0, f64::max);
            println!("{what} at {scale} m: off by {worst:.1e} of the size or rad after 1 s");
            assert!(worst < 1e-6, "{what} at {scale}: {worst:e}");
        }
    }
}

#[test]
fn units_do_not_matter_to_sliding_joints() {
    let mut wrong = Vec::new();
    for (what, mask) in [
        ("sliders", Some(JointMask::PRISMATIC)),
        ("cylinders", Some(JointMask::CYLINDRICAL)),
        ("points on lines", Some(JointMask::POINT_ON_LINE)),
        ("presets", None),
    ] {
        let chaos = Chaos { mask, bodies: (3, 6), ..UNITS };
        for scale in [1e-3, 100.0] {
            let worst = (0..8).map(|seed| units_apart(seed, &chaos, scale)).fold(0.0, f64::max);
            println!("{what} at {scale} m: off by {worst:.1e} of the size or rad after 1 s");
            if worst > 1e-6 {
                wrong.push(format!("{what} at {scale}: {worst:e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn loads_have_no_units_of_their_own() {
    let chaos = Chaos { loads: 0.4, anchors: 0.3, motors: 0.5, mask: Some(JointMask::HINGE), ..UNITS };
    for scale in [1e-3, 100.0] {
        let worst = (0..8).map(|seed| units_apart(seed, &chaos, scale)).fold(0.0, f64::max);
        println!("trackers, drags, anchors, motors at {scale} m: off by {worst:.1e} after 1 s");
        assert!(worst < 1e-6, "at {scale}: {worst:e}");
    }
}

// ------------------------------------------------------------------------------------------------ mass ratios

#[test]
fn mass_ratios_of_ten_thousand_both_ways_stay_bounded() {
    for mass in [1e4, 1e-4] {
        for stiffness in [0.0, 1.0, 1e4] {
            for rate in [30.0, 60.0] {
                let scene = Scene::parse(&format!("whip:10,stiffness={stiffness},tip_mass={mass}")).unwrap();
                let input = input(1.0 / rate);
                let mut state = scene.state.clone();
                let first = total(&scene.model, &input, &state);
                // Released between horizontal and hanging.
                let released: f64 = scene.model.bodies().iter().map(|b| b.mass * 9.81 * b.start.translation.x).sum();
                let mut gain = 0.0f64;
                let counts = run(&scene.model, &input, &mut state, (5.0 * rate) as usize, |state, _| {
                    gain = gain.max((total(&scene.model, &input, state) - first) / released);
                });
                println!(
                    "{} at 1/{rate}: gain {gain:.1e}, {:.1} factorisations a step, {counts:?}",
                    scene.name,
                    counts.mean()
                );
                assert!(counts.gap < 1e-9, "{}: {counts:?}", scene.name); // rounding of a path of 1 m
                assert!(gain < 1e-3, "{}: gain {gain:e}", scene.name); // the slack of one part, robust_step.md §1: 8.7e-4
            }
        }
    }
    // A heavy link at the root of a light chain.
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for i in 0..10 {
        let x = 0.1 * f64::from(i);
        let density = if i == 0 { 6.25e6 } else { 625.0 };
        let link = builder.body(
            BodySpec::new(format!("link {i}"))
                .shape(Shape::cuboid(0.1, 0.04, 0.04), density)
                .pose(Pose::at(DVec3::X * (x + 0.05))),
        );
        builder.joint(JointSpec::new(format!("joint {i}"), JointMask::BALL, link, last).at(DVec3::X * x));
        last = link.into();
    }
    let model = builder.build().unwrap();
    let (input, mut state) = (input(1.0 / 60.0), model.start());
    let first = total(&model, &input, &state);
    let mut gain = 0.0f64;
    let counts = run(&model, &input, &mut state, 300, |state, _| gain = gain.max(total(&model, &input, state) - first));
    let released: f64 = model.bodies().iter().map(|b| b.mass * 9.81 * b.start.translation.x).sum();
    println!("heavy root: gain {:.1e}, {:.1} factorisations a step, {counts:?}", gain / released, counts.mean());
    assert!(gain < 1e-3 * released && counts.gap < 1e-9, "{counts:?}");
}

// ------------------------------------------------------------------------------------------------ determinism

#[test]
fn a_rewound_run_has_the_same_bits() {
    for seed in 0..30 {
        let case = chaos::stress(seed);
        let Case { model, input, state, .. } = &case;
        let mut work = Work::new(model);
        let mut whole = state.clone();
        let mut middle = None;
        for n in 0..20 {
            if n == 10 {
                middle = Some(whole.clone());
            }
            step(model, input, &mut whole, &mut work).unwrap();
        }
        let mut again = middle.unwrap();
        for _ in 10..20 {
            step(model, input, &mut again, &mut Work::new(model)).unwrap(); // a fresh Work each time
        }
        assert_eq!(again.hash(), whole.hash(), "seed {seed}");
        // So that it can fail: the last bit of one velocity.
        let mut other = state.clone();
        let x = &mut other.bodies[0].velocity.angular.x;
        *x = f64::from_bits(x.to_bits() ^ 1);
        assert_ne!(other.hash(), state.hash());
    }
}

#[test]
fn schemes_may_be_switched_at_any_step() {
    for name in ["whip:10,stiffness=10,damping=0.05", "hand", "robot"] {
        let scene = Scene::parse(name).unwrap();
        for seed in 0..4 {
            let mut random = Random::new(seed);
            let (mut state, mut scene_input, mut work) =
                (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            let mut fastest = 0.0f64;
            let mut switches = 0;
            for n in 0..300 {
                let scheme = if random.chance(0.5) { TreeScheme::Published } else { TreeScheme::default() };
                let solver = Solver::Tree(Tree { scheme, ..Tree::default() });
                switches += u32::from(solver != scene_input.solver);
                scene_input.solver = solver;
                scene.direct(state.time, &mut scene_input);
                step(&scene.model, &scene_input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}, {n}: {e}"));
                assert!(state.is_finite());
                fastest = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(fastest, f64::max);
            }
            println!("{name}: {switches} switches, at most {fastest:.1} m/s");
            // A fall through 1 m gives 4.4 m/s, a whip's end a few times that; the published step alone stays below too.
            assert!(switches > 100 && fastest < 40.0, "{name}: {fastest} m/s");
        }
    }
}

#[test]
fn the_report_tells_what_was_done() {
    let scene = Scene::parse("whip:30,stiffness=0").unwrap();
    let mut state = scene.state.clone();
    let counts = run(&scene.model, &input(1.0 / 30.0), &mut state, 60, |_, report| {
        // Every halving makes one part more.
        assert_eq!(report.substeps, 1 + report.rotation_halvings + report.fallbacks - report.resorts, "{report:?}");
        assert!(report.factorisations >= report.substeps, "{report:?}");
        assert!(report.solves >= report.factorisations, "{report:?}");
        assert!(report.backward_parts >= report.resorts, "{report:?}");
    });
    println!("{counts:?}");
    assert!(counts.halvings > 0 && counts.projections > 0, "{counts:?}");
    // A chain that hangs still: one factorisation a step.
    let scene = Scene::parse("chain:10,stiffness=1e4,damping=30").unwrap();
    let mut state = scene.state.clone();
    run(&scene.model, &input(1.0 / 60.0), &mut state, 600, |_, _| {});
    let calm = run(&scene.model, &input(1.0 / 60.0), &mut state, 60, |_, _| {});
    println!("at rest {calm:?}");
    assert_eq!((calm.factorisations, calm.halvings, calm.projections, calm.fallbacks), (60, 0, 0, 0), "{calm:?}");
}

// ----------------------------------------------------------------------------------------------------- modes

#[test]
fn modes_weigh_cost_against_accuracy() {
    // robust_step.md §7, n = 30, k = 0: the tip after 1 s.
    let scene = Scene::parse("whip:30,stiffness=0").unwrap();
    let reference = DVec3::new(-1.80507, -2.03578, 0.00090);
    let of = |mode| {
        let mut state = scene.state.clone();
        let input = Input { solver: midpoint(mode), ..input(1.0 / 30.0) };
        let mut parts = 0;
        run(&scene.model, &input, &mut state, 30, |_, report| parts += report.substeps);
        (parts, tip(&state).distance(reference))
    };
    let [fast, default, accurate] = [Mode::Fast, Mode::Default, Mode::Accurate].map(of);
    println!("parts in 1 s and error: fast {fast:?}, default {default:?}, accurate {accurate:?}");
    assert!(fast.0 <= default.0 && default.0 <= accurate.0);
    assert!(fast.1 >= default.1 && default.1 >= accurate.1);
}

#[test]
fn the_conservative_mode_keeps_the_energy() {
    let scene = Scene::parse("whip:10,stiffness=1").unwrap();
    let released: f64 = scene.model.bodies().iter().map(|b| b.mass * 9.81 * b.start.translation.x).sum();
    let off = |mode: Mode, rate: f64| {
        let input = Input { solver: midpoint(mode), ..input(1.0 / rate) };
        let mut state = scene.state.clone();
        let first = total(&scene.model, &input, &state);
        let mut worst = 0.0f64;
        let counts = run(&scene.model, &input, &mut state, (5.0 * rate) as usize, |state, _| {
            worst = worst.max((total(&scene.model, &input, state) - first).abs() / released);
        });
        println!("{mode:?} at 1/{rate}: energy off by at most {worst:.1e} of the released; {counts:?}");
        worst
    };
    for rate in [60.0, 240.0] {
        let kept = off(Mode::Conservative, rate);
        assert!(kept < 1e-9, "at 1/{rate}: {kept:e}"); // measured: 1.9e-11, the solver's tolerance
    }
    assert!(off(Mode::Default, 60.0) > 1e-3, "the default damps: else this test tells nothing");
}

// --------------------------------------------------------------------------------------------------- dampers

#[test]
fn one_damped_hinge_decays_exactly() {
    // About the axis of the largest moment the weight of the damper is exact at any step, up to the angle's difference from its
    // Cayley vector, (ωh)²/12 of it (2e-7 at 0.05 rad/s and 1/30 s), once in the mean and once in the start's share.
    for (c, rate) in [(0.01, 30.0), (0.05, 30.0), (0.3, 30.0), (0.05, 240.0)] {
        for (lever, speed) in [(0.0, 0.05), (0.2, 0.05), (0.0, 5.0), (0.2, 5.0)] {
            let model = on_world(JointMask::HINGE, DVec3::X * lever, |j| j.axis(DVec3::Z).spring(0.0, c));
            let inertia = MOMENTS.z + 2.0 * lever * lever;
            let mut state = model.start();
            let spin = DVec3::Z * speed;
            state.bodies[0].velocity = Twist::new(spin.cross(DVec3::X * lever), spin);
            let mut worst = 0.0f64;
            let mut n = 0.0;
            run(&model, &weightless(1.0 / rate), &mut state, rate as usize, |state, _| {
                n += 1.0;
                let expected = speed * (-c * n / (rate * inertia)).exp();
                worst = worst.max((state.bodies[0].velocity.angular.z - expected).abs() / speed);
            });
            println!("c {c}, 1/{rate} s, lever {lever}, {speed} rad/s: off by {worst:.1e} of the first speed");
            let truncation = (speed / rate).powi(2) / 12.0;
            assert!(worst < 1e-6 + 2.0 * truncation, "c {c} at 1/{rate}, lever {lever}, {speed} rad/s: {worst:e}");
        }
    }
}

/// Speeds of a block on a joint with this damper over a few steps at 1/30 s, along `axis` (a rotation or a translation).
fn damped(mask: JointMask, c: f64, turning: bool) -> Vec<f64> {
    let slide = SlideSpring { stiffness: 0.0, damping: c, rest: DVec3::ZERO };
    let model = on_world(mask, DVec3::ZERO, |j| j.spring(0.0, c).slide_spring(slide));
    let mut state = model.start();
    // About Y for the universal joint, else along and about X, which is the smallest moment.
    let axis = if mask == JointMask::UNIVERSAL { DVec3::Y } else { DVec3::X };
    let speed = axis * 5.0;
    state.bodies[0].velocity = if turning { Twist::new(DVec3::ZERO, speed) } else { Twist::new(speed, DVec3::ZERO) };
    let mut speeds = vec![5.0];
    run(&model, &weightless(1.0 / 30.0), &mut state, 10, |state, _| {
        let v = state.bodies[0].velocity;
        speeds.push(axis.dot(if turning { v.angular } else { v.linear }));
    });
    speeds
}

#[test]
fn stiff_dampers_on_rotations_do_not_ring() {
    // hc/I of 7 … 100,000: the exact decay is to nothing. The weight goes by the largest moment; about an axis of 0.6 of it the speed
    // may pass rest by (z(1−θ) − 1)/(1 + zθ) with z = 11, θ = 0.85: 6 %. A plain midpoint damper would have 70 % and more.
    for mask in [JointMask::HINGE, JointMask::BALL, JointMask::UNIVERSAL, JointMask::CYLINDRICAL, JointMask::PLANAR] {
        for c in [10.0, 1e3, 1e5] {
            let speeds = damped(mask, c, true);
            let lowest = speeds.iter().copied().fold(0.0, f64::min);
            println!("{} c {c:e}: {speeds:.3?}", mask.name());
            assert!(lowest > -0.07 * 5.0, "{} c {c:e}: {speeds:?}", mask.name());
            let fades = speeds.windows(2).all(|s| s[1].abs() <= 0.1 * s[0].abs() + 1e-6); // 1e-7 rad in 1/30 s
            assert!(fades, "{} c {c:e}: {speeds:?}", mask.name());
        }
    }
}

#[test]
fn stiff_dampers_on_slides_do_not_ring() {
    // As those on rotations: hc/m of 0.17 … 17,000.
    for mask in [JointMask::PRISMATIC, JointMask::CYLINDRICAL, JointMask::POINT_ON_LINE] {
        for c in [10.0, 1e3, 1e6] {
            let speeds = damped(mask, c, false);
            let lowest = speeds.iter().copied().fold(0.0, f64::min);
            println!("{} c {c:e}: {speeds:.3?}", mask.name());
            assert!(lowest > -5e-3, "{} c {c:e}: {speeds:?}", mask.name());
            if c > 100.0 {
                assert!(speeds[10].abs() < 5e-3, "{} c {c:e}: {speeds:?}", mask.name());
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------- limits

/// Limits that hold a torque; gravity has no lever here.
fn hold_a_torque(gravity: DVec3) {
    // At rest k (v − w/2) = T beyond the ramp of w = 0.02 rad: v = T/k + w/2.
    let torque = 3.0;
    for k in [50.0, 1e3, 1e4] {
        let beyond = torque / k;
        let rest = if beyond > 0.5 * Limits::WIDTH {
            beyond + 0.5 * Limits::WIDTH
        } else {
            (2.0 * Limits::WIDTH * beyond).sqrt()
        };
        for rate in [30.0, 240.0] {
            let limits = Limits {
                angle: Some(Range::new(-0.5, 0.4)),
                stiffness: k,
                damping: 0.1 * k.sqrt(),
                ..Limits::default()
            };
            let model = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.limits(limits));
            let mut wrenched = Input { gravity, ..input(1.0 / rate) };
            wrenched.wrenches.push((BodyId(0), Wrench::new(DVec3::ZERO, DVec3::X * torque)));
            let mut state = model.start();
            let mut furthest = 0.0f64;
            let counts = run(&model, &wrenched, &mut state, (10.0 * rate) as usize, |state, _| {
                furthest = furthest.max(state.joints[0].angle);
            });
            let at = state.joints[0].angle - 0.4;
            println!(
                "hinge, k {k:e}, 1/{rate} s: rests {at:.6} beyond, expected {rest:.6}, went {:.4} beyond",
                furthest - 0.4
            );
            assert!((at - rest).abs() < 1e-6, "k {k:e} at 1/{rate}: {at} beyond, not {rest}"); // what settling leaves
            assert_eq!(counts.resorts, 0, "k {k:e} at 1/{rate}: {counts:?}");

            // A ball's swing about Y, where the ellipse has 0.4 rad.
            let ellipse = SwingEllipse { about_y: 0.4, about_z: 0.9 };
            let limits = Limits { angle: None, swing: Some(ellipse), ..limits };
            let model = on_world(JointMask::BALL, DVec3::ZERO, |j| j.limits(limits));
            wrenched.wrenches[0].1.torque = DVec3::Y * torque;
            let mut state = model.start();
            run(&model, &wrenched, &mut state, (10.0 * rate) as usize, |_, _| {});
            let (swing, _, _) = supple::model::joint::swing_twist(state.relative_rotation(&model, &model.joints()[0]));
            println!("swing, k {k:e}, 1/{rate} s: rests {:.6} beyond, expected {rest:.6}", swing - 0.4);
            assert!((swing - 0.4 - rest).abs() < 1e-6, "k {k:e} at 1/{rate}: swing {swing}");
        }
    }
}

#[test]
fn limits_hold_a_torque() {
    hold_a_torque(DVec3::NEG_Y * 9.81);
}

#[test]
fn limits_hold_a_torque_without_gravity() {
    hold_a_torque(DVec3::ZERO);
}

#[test]
fn limp_chains_with_limits_stay_bounded() {
    // robust_step.md §5: 0.3 rad on 20 limp joints, released horizontal.
    for k in [1e3, 1e4] {
        for rate in [60.0, 240.0] {
            let mut builder = ModelBuilder::new();
            let mut last = BodyRef::World;
            for i in 0..20 {
                let x = 0.1 * f64::from(i);
                let link = builder.body(
                    BodySpec::new(format!("link {i}"))
                        .shape(Shape::cuboid(0.1, 0.04, 0.04), 625.0)
                        .pose(Pose::at(DVec3::X * (x + 0.05))),
                );
                let limits = Limits {
                    swing: Some(SwingEllipse { about_y: 0.3, about_z: 0.3 }),
                    stiffness: k,
                    ..Limits::default()
                };
                builder.joint(
                    JointSpec::new(format!("joint {i}"), JointMask::BALL, link, last).at(DVec3::X * x).limits(limits),
                );
                last = link.into();
            }
            let model = builder.build().unwrap();
            let (input, mut state) = (input(1.0 / rate), model.start());
            let first = total(&model, &input, &state);
            let released: f64 = model.bodies().iter().map(|b| b.mass * 9.81 * b.start.translation.x).sum();
            let (mut gain, mut bent) = (0.0f64, 0.0f64);
            let counts = run(&model, &input, &mut state, (5.0 * rate) as usize, |state, _| {
                gain = gain.max((total(&model, &input, state) - first) / released);
                for joint in model.joints() {
                    let (s1, s2, _) = supple::model::joint::swing_twist(state.relative_rotation(&model, joint));
                    bent = bent.max(s1.hypot(s2));
                }
            });
            println!(
                "k {k:e}, 1/{rate} s: gain {gain:.1e}, bent to {bent:.3} rad, {:.1} factorisations a step, {counts:?}",
                counts.mean()
            );
            // The energy at the bottom is 1.96 kg · 9.81 · 1 m = 19 J, in one limit ½k v²: v < √(2 · 19/k) + the ramp.
            assert!(bent < 0.3 + (38.0 / k).sqrt() + Limits::WIDTH, "bent to {bent}");
            assert!(gain < 1e-3, "gain {gain:e}"); // the slack of one part
            assert!(counts.gap < 1e-9);
        }
    }
}

// ----------------------------------------------------------------------------------------------------- drags

#[test]
fn violent_drags_are_survived() {
    // The target goes to and fro over ±1 m at 20 m/s, on 1e4 N/m.
    for (name, body) in [("chain:20", "link_19"), ("hand", "index_3"), ("hand", "palm"), ("robot", "left_hand")] {
        let scene = Scene::parse(name).unwrap();
        let body = scene.model.find_body(body).unwrap_or(BodyId(scene.model.bodies().len() as u32 - 1));
        let start = scene.state.bodies[body.index()].position;
        for rate in [60.0, 240.0] {
            let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
            input.dt = 1.0 / rate;
            input.drags.clear();
            let mut counts = Run::default();
            for n in 0..(3.0 * rate) as usize {
                let time = (n + 1) as f64 / rate;
                // A triangle of period 0.2 s.
                let phase = (time / 0.2).fract();
                let (x, v) = if phase < 0.5 { (4.0 * phase - 1.0, 20.0) } else { (3.0 - 4.0 * phase, -20.0) };
                let pull = Drag {
                    body,
                    point: DVec3::ZERO,
                    target: start + DVec3::new(x, 0.3 * x, 0.0),
                    target_velocity: DVec3::new(v, 0.3 * v, 0.0),
                    stiffness: 1e4,
                    damping: 0.0,
                };
                scene.direct(state.time, &mut input); // the robot's own drag comes first
                input.drags.retain(|d| d.stiffness != 1e4);
                input.drags.push(pull);
                let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
                assert!(state.is_finite());
                counts.add(&state, &report);
            }
            println!("{name} by {body:?}, 1/{rate} s: {:.1} factorisations a step, {counts:?}", counts.mean());
            assert!(counts.gap < 1e-9, "{name}: {counts:?}"); // rounding
            // The spring can give ½·1e4·(2 m)² = 20 kJ at most; on the 2 kg of the chain that is 140 m/s, whipping links of
            // 0.1 kg reach more (robust_step.md §5: 180 m/s). An explosion has no bound.
            assert!(counts.speed < 600.0, "{name}: {counts:?}");
        }
    }
}

// --------------------------------------------------------------------------------------- motors and trackers

#[test]
fn a_servo_reaches_its_target() {
    let motor = Motor { stiffness: 20.0, damping: 2.0, max: 1e3, integral: 0.0 };
    for rate in FPS {
        let aim = |model: &Model, servo: ServoTarget, gravity: DVec3| {
            let mut input = Input { gravity, ..input(1.0 / rate) };
            input.joint_mut(model, 0).servo = Some(servo);
            let mut state = model.start();
            run(model, &input, &mut state, (20.0 * rate) as usize, |_, _| {}); // the slowest decays as e^(−3 t)
            state
        };
        // 1e-7 rad is where the solver stops.
        let hinge = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::Z).motor(motor));
        let at = aim(&hinge, ServoTarget::Position { position: 1.2, rate: 0.0 }, DVec3::ZERO).joints[0].angle;
        assert!((at - 1.2).abs() < 1e-7, "hinge at {at}");
        let turning = aim(&hinge, ServoTarget::Rate(-2.5), DVec3::ZERO).bodies[0].velocity.angular.z;
        // The angle advances by 2.5 h; the velocity that goes with it is the Cayley vector's, (ωh)²/12 more.
        let cayley = 2.0 * (1.25 / rate).tan() * rate;
        assert!((turning + cayley).abs() < 1e-6, "hinge turns at {turning}");
        let strong = Motor { damping: 12.0, ..motor };
        let slider = on_world(JointMask::PRISMATIC, DVec3::ZERO, |j| j.axis(DVec3::Y).motor(strong));
        let state = aim(&slider, ServoTarget::Position { position: 0.3, rate: 0.0 }, DVec3::NEG_Y * 9.81);
        let expected = 0.3 - 2.0 * 9.81 / 20.0; // gives way by m g / kp
        assert!((state.bodies[0].position.y - expected).abs() < 1e-7, "slider at {}", state.bodies[0].position.y);
        let ball = on_world(JointMask::BALL, DVec3::ZERO, |j| j.motor(motor));
        let target = DQuat::from_scaled_axis(DVec3::new(0.8, -1.1, 0.5));
        let turned = aim(&ball, ServoTarget::Rotation(target), DVec3::ZERO).bodies[0].orientation;
        assert!(turned.angle_between(target) < 1e-7, "ball at {turned}, wanted {target}");
    }
}

#[test]
fn a_clamped_motor_gives_exactly_its_largest_torque() {
    let max = 0.25;
    let motor = Motor { stiffness: 100.0, damping: 1.0, max, integral: 0.0 };
    for mask in [JointMask::HINGE, JointMask::PRISMATIC, JointMask::BALL] {
        for rate in FPS {
            let model = on_world(mask, DVec3::ZERO, |j| j.axis(DVec3::X).motor(motor));
            let mut driven = weightless(1.0 / rate);
            driven.joint_mut(&model, 0).servo = Some(match mask {
                JointMask::BALL => ServoTarget::Rotation(DQuat::from_rotation_x(3.0)),
                _ => ServoTarget::Position { position: 100.0, rate: 0.0 },
            });
            let mut state = model.start();
            let mut n = 0.0;
            // Until the ball nears its target.
            run(&model, &driven, &mut state, (0.4 * rate) as usize, |state, _| {
                n += 1.0;
                let (speed, inertia) = match mask {
                    JointMask::PRISMATIC => (state.bodies[0].velocity.linear.x, 2.0),
                    _ => (state.bodies[0].velocity.angular.x, MOMENTS.x),
                };
                let expected = n / rate * max / inertia;
                // A constant torque: velocities are exact to the solver's 1e-7 rad over the step.
                assert!((speed - expected).abs() < 1e-7 * rate, "{} step {n}: {speed}, not {expected}", mask.name());
            });
        }
    }
}

#[test]
fn trackers_follow_their_targets() {
    // A free block on a tracker, the target on a circle of 0.3 m at 1 rad/s and turning with it.
    let mut builder = ModelBuilder::new();
    let body = builder.body(support::block("block", DVec3::X * 0.3));
    let (k, c) = (2000.0, 120.0);
    let tracker = TrackerSpec {
        name: "tracker".into(),
        body: body.into(),
        point: DVec3::ZERO,
        stiffness: k,
        damping: c,
        rotation_stiffness: 100.0,
        rotation_damping: 4.0,
    };
    builder.tracker(tracker);
    let model = builder.build().unwrap();
    let follow = |rate: f64| {
        let (mut state, mut input, mut work) = (model.start(), weightless(1.0 / rate), Work::new(&model));
        state.bodies[0].velocity = Twist::new(DVec3::Y * 0.3, DVec3::Z);
        let (mut off, mut turned) = (0.0f64, 0.0f64);
        for n in 0..(5.0 * rate) as usize {
            let angle = (n + 1) as f64 / rate;
            let place = DQuat::from_rotation_z(angle) * (DVec3::X * 0.3);
            let pose = Pose::new(DQuat::from_rotation_z(angle), place);
            input.targets = vec![Some(Target { pose, velocity: Twist::new(DVec3::Z.cross(place), DVec3::Z) })];
            let report = step(&model, &input, &mut state, &mut work).unwrap();
            assert_eq!(report.resorts, 0);
            off = off.max(state.bodies[0].position.distance(place));
            turned = turned.max(state.bodies[0].orientation.angle_between(pose.rotation));
        }
        (off, turned)
    };
    // Against the centripetal force it lags by m ω² r / k = 0.3 mm, against no torque not at all.
    let lag = 2.0 * 0.3 / k;
    for rate in FPS {
        let (off, turned) = follow(rate);
        println!("1/{rate} s: off by at most {off:.1e} m (lag {lag:.1e}), {turned:.1e} rad");
        // The chord of the target's path adds ω² r h²/8 = 4e-5 m at 1/30 s; a body that turns by h has the velocity 2 tan(h/2)/h,
        // (h²/12 more), which the damper pulls back. The solver's 1e-7 rad a step add up over the spring's 0.02 s.
        assert!(off < 2.0 * lag + 0.3 / (rate * rate), "1/{rate}: {off}");
        assert!(turned < 1e-6 + 4.0 / 100.0 / (12.0 * rate * rate), "1/{rate}: turned {turned}");
    }
}

// --------------------------------------------------------------------------------------------- anchor springs

#[test]
fn springs_between_far_bodies_are_survived() {
    // A chain of 10 whose links 2 and 9 are joined by a spring, of any stiffness.
    for rest_length in [0.0, 0.4] {
        for stiffness in [1e1, 1e2, 1e3, 1e4, 1e5, 1e6] {
            let mut builder = ModelBuilder::new();
            let mut last = BodyRef::World;
            for i in 0..10 {
                let x = 0.1 * f64::from(i);
                let link = builder.body(
                    BodySpec::new(format!("link {i}"))
                        .shape(Shape::cuboid(0.1, 0.04, 0.04), 625.0)
                        .pose(Pose::at(DVec3::X * (x + 0.05))),
                );
                builder.joint(
                    JointSpec::new(format!("joint {i}"), JointMask::BALL, link, last)
                        .at(DVec3::X * x)
                        .spring(1.0, 0.05),
                );
                last = link.into();
            }
            builder.anchor_spring(AnchorSpringSpec {
                name: "far".into(),
                a: "link 2".into(),
                point_in_a: DVec3::ZERO,
                b: "link 9".into(),
                point_in_b: DVec3::ZERO,
                stiffness,
                damping: 0.0,
                rest_length,
            });
            let model = builder.build().unwrap();
            let (input, mut state) = (input(1.0 / 60.0), model.start());
            let first = total(&model, &input, &state);
            let released: f64 = model.bodies().iter().map(|b| b.mass * 9.81 * b.start.translation.x).sum();
            let stake = released + 0.5 * stiffness * (0.7 - rest_length).powi(2);
            let mut gain = 0.0f64;
            let counts = run(&model, &input, &mut state, 120, |state, _| {
                gain = gain.max((total(&model, &input, state) - first) / stake)
            });
            println!(
                "spring {stiffness:.0e} N/m, rest {rest_length}: gain {gain:.1e}, {:.1} factorisations a step, {counts:?}",
                counts.mean()
            );
            assert!(gain < 1e-2, "{stiffness:e}: gain {gain:e}"); // a part may gain 1e-3 of what is at stake
            assert!(counts.gap < 1e-9);
        }
    }
}

// -------------------------------------------------------------------------------------------------- first steps

#[test]
fn a_spring_that_starts_stretched_needs_no_resort() {
    for mask in [JointMask::BALL, JointMask::UNIVERSAL, JointMask::POINT_ON_LINE, JointMask::HINGE] {
        let rest = RotationSpring {
            stiffness: 2.0,
            rest: DQuat::from_rotation_y(0.5) * DQuat::from_rotation_x(0.5),
            ..RotationSpring::default()
        };
        let model = on_world(mask, DVec3::X * 0.2, |j| j.rotation_spring(rest));
        let counts = run(&model, &input(1.0 / 60.0), &mut model.start(), 1, |_, _| {});
        assert_eq!((counts.resorts, counts.fallbacks), (0, 0), "{}: {counts:?}", mask.name());
    }
}

#[test]
fn what_rests_without_gravity_costs_nothing() {
    for seed in 0..40 {
        let chaos = Chaos { bodies: (1, 8), speed: 0.0, ..Chaos::QUIET };
        let Case { model, input, mut state, .. } = chaos::tree(&mut Random::new(seed), &chaos);
        let counts = run(&model, &input, &mut state, 3, |_, _| {});
        assert_eq!((counts.resorts, counts.fallbacks), (0, 0), "seed {seed}: {counts:?}");
        assert!(counts.speed < 1e-12, "seed {seed}: {counts:?}"); // rounding of 1e-16 m in 1/60 s
    }
}

#[test]
fn joint_impulses_are_kept_when_asked_for() {
    // A block that hangs still on a hinge: the joint carries m g h.
    let model = on_world(JointMask::HINGE, DVec3::NEG_Y * 0.3, |j| j.axis(DVec3::Z));
    let mut asking = input(1.0 / 60.0);
    asking.solver = Solver::Tree(Tree { impulses: supple::solver::Impulses::Keep, ..Tree::default() });
    let (mut state, mut work) = (model.start(), Work::new(&model));
    step(&model, &asking, &mut state, &mut work).unwrap();
    assert_eq!(work.joint_impulses().len(), 1);
    let force = work.joint_impulses()[0].force * 60.0;
    assert!(force.distance(DVec3::Y * (2.0 * 9.81)) < 1e-9, "{force}");
}

#[test]
fn turns_are_counted() {
    // A free hinge at 70 rad/s through eleven turns. A part of at most 0.5 rad turns by 2 atan(ωh/2), here 0.29 rad: 0.7 % behind.
    let model = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::Z));
    let mut state = model.start();
    state.bodies[0].velocity.angular = DVec3::Z * 70.0;
    let counts = run(&model, &weightless(1.0 / 60.0), &mut state, 60, |_, _| {});
    let parts = f64::from(counts.halvings + counts.steps);
    let expected = parts * 2.0 * (35.0 / parts).atan();
    assert!((state.joints[0].angle - expected).abs() < 1e-5, "{} against {expected}", state.joints[0].angle);
    // A ball's spring wound up to 4.5 rad, past half a turn, swings back and to the other side.
    let model = on_world(JointMask::BALL, DVec3::ZERO, |j| j.spring(1.0, 0.0));
    let mut state = model.start();
    let omega = (1.0f64 / MOMENTS.x).sqrt();
    state.bodies[0].velocity.angular = DVec3::X * (omega * 4.5);
    let (mut furthest, mut back) = (0.0f64, 0.0f64);
    run(&model, &weightless(1.0 / 240.0), &mut state, 300, |state, _| {
        furthest = furthest.max(state.joints[0].turn.x);
        back = back.min(state.joints[0].turn.x);
    });
    // The amplitude is kept; the top is seen within ½(ωh/2)² = 7e-5 of it, and velocities are Cayley's: (0.1 rad)²/12 = 1e-3 of them.
    println!("wound up to {furthest:.4} and {back:.4}");
    assert!((furthest - 4.5).abs() < 0.02 && (back + 4.5).abs() < 0.02, "wound up to {furthest} and {back}");
}

#[test]
fn a_wheel_on_its_hub_needs_no_halving() {
    // A joint exactly at the wheel's centre of mass: no lever to measure its gap against. Held to a swinging arm, it must cost no
    // more than a joint elsewhere.
    let mut builder = ModelBuilder::new();
    let arm =
        builder.body(BodySpec::new("arm").shape(Shape::cuboid(0.4, 0.05, 0.05), 1000.0).pose(Pose::at(DVec3::X * 0.2)));
    let wheel = builder.body(
        BodySpec::new("wheel")
            .shape(Shape::cylinder(0.02, 0.1), 1000.0)
            .pose(Pose::new(DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2), DVec3::X * 0.4)),
    );
    builder.joint(JointSpec::new("shoulder", JointMask::BALL, arm, BodyRef::World));
    builder.joint(
        JointSpec::new("hub", JointMask::HINGE, wheel, arm)
            .frame(Pose::new(DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2), DVec3::X * 0.4)),
    );
    let model = builder.build().unwrap();
    let mut state = model.start();
    let counts =
        run(&model, &Input { solver: midpoint(Mode::Default), ..Input::default() }, &mut state, 120, |_, _| {});
    assert_eq!((counts.fallbacks, counts.resorts), (0, 0), "{counts:?}");
}
