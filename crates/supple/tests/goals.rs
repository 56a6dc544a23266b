//! What goals do to a character in every style: light bones, bounds, and each thing that can be asked of a bone.

mod common;

use common::Random;
use glam::DVec3;
use supple::control::{Aim, Gains, Goal, Keyframes, Level, Mode, Style};
use supple::maths::rotation::{exp, log};
use supple::model::Coordinates;
use supple::*;

const STYLES: [Style; 3] = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity];

/// Bones in a row along x, each with its length \[m\] and mass \[kg\], held by ball joints.
fn limb(bones: &[(f64, f64)], is_held: bool) -> Model {
    let mut builder = ModelBuilder::new();
    let mut from = 0.0;
    for (i, (length, mass)) in bones.iter().enumerate() {
        let (id, at) = (BodyId(i as u32), DVec3::X * (from + 0.5 * length));
        let (side, density) = (0.2 * length, mass / (length * (0.2 * length).powi(2)));
        builder.body(
            BodySpec::new(format!("bone {i}")).shape(Shape::cuboid(*length, side, side), density).pose(Pose::at(at)),
        );
        let joint =
            |parent: BodyRef| JointSpec::new(format!("joint {i}"), JointMask::BALL, id, parent).at(DVec3::X * from);
        if i > 0 {
            builder.joint(joint(BodyId(i as u32 - 1).into()));
        } else if is_held {
            builder.joint(joint(BodyRef::World));
        }
        from += length;
    }
    builder.build().unwrap()
}

/// A trunk with an arm, a hand and a finger of some grams.
const ARM: [(f64, f64); 6] = [(0.5, 20.0), (0.3, 2.0), (0.25, 1.2), (0.1, 0.4), (0.03, 0.01), (0.02, 0.004)];

/// An input that asks for goals in a style, without gravity.
fn asks(style: Style, goals: Vec<Goal>) -> Input {
    let solver = Solver::Reduced(Reduced::default());
    let mut input = Input { solver, gravity: DVec3::ZERO, contacts: Contacts::Off, ..Input::default() };
    (input.control.mode, input.control.style, input.control.goals) = (Mode::Goals, style, goals);
    input
}

/// A pose with all joints bent a little.
fn bent(model: &Model, by: f64) -> State {
    let mut state = model.start();
    let mut c = Coordinates::of(model, &state);
    for k in 0..model.joints().len() as u32 {
        let axis = DVec3::new(0.3, 1.0, 0.5 * f64::from(k)).normalize();
        exp(axis * by).write_to_slice(c.positions_of_mut(JointId(k)));
    }
    c.write(model, &mut state);
    state
}

#[test]
fn light_bones_do_not_flutter_however_far_they_are_pulled() {
    for is_held in [true, false] {
        let model = limb(&ARM, is_held);
        let tip = BodyId(ARM.len() as u32 - 1);
        for style in STYLES {
            let far = Goal::drag(tip, DVec3::ZERO, DVec3::new(3.0, 2.0, -1.0));
            let pulled = |dt: f64| {
                let mut input = asks(style, vec![far]);
                input.dt = dt;
                let (mut state, mut work) = (bent(&model, 0.3), Work::new(&model));
                let (mut fastest, mut late) = (0.0f64, 0.0f64);
                for n in 0..(4.0 / dt) as u32 {
                    step(&model, &input, &mut state, &mut work).unwrap();
                    let speed = state.bodies.iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max);
                    fastest = fastest.max(speed);
                    if f64::from(n) * dt > 3.0 {
                        late = late.max(speed);
                    }
                }
                (fastest, late, state.bodies[tip.index()].position)
            };
            let (fastest, late, end) = pulled(1.0 / 60.0);
            let (fine_fastest, fine_late, fine_end) = pulled(1.0 / 3840.0);
            println!(
                "held {is_held}, {style:?}: {fastest:.2} m/s, {late:.3} in the last second, ends at {end:.3}; fine steps {fine_fastest:.2}, {fine_late:.3}, {fine_end:.3}"
            );
            // what it does is what it does in steps that are short enough for a bone of four grams
            let most = Gains::default().most_velocity;
            assert!(fastest < 2.0 * most.max(fine_fastest), "held {is_held}, {style:?}: {fastest} m/s, {fine_fastest}");
            if is_held {
                // in least torque it still sways about where it is pulled
                let (most_late, off) = if style == Style::LeastTorque { (2.0, 0.5) } else { (0.05, 0.02) };
                let far = end.distance(fine_end);
                assert!(late < most_late && far < off, "{style:?}: {late} m/s, {far} m off");
            }
        }
    }
}

#[test]
fn bones_stop_coast_and_turn() {
    let model = limb(&ARM[..4], true);
    let hand = BodyId(3);
    let mut start = bent(&model, 0.4);
    let mut c = Coordinates::of(&model, &start);
    let mut random = Random::new(3);
    c.rates.iter_mut().for_each(|rate| *rate = random.range(-0.5, 0.5));
    c.write(&model, &mut start);
    for style in STYLES {
        let run = |goals: Vec<Goal>, seconds: f64| {
            let input = Input { dt: 1.0 / 240.0, ..asks(style, goals) };
            let (mut state, mut work) = (start.clone(), Work::new(&model));
            for _ in 0..(seconds / input.dt) as u32 {
                step(&model, &input, &mut state, &mut work).unwrap();
            }
            state.bodies[hand.index()]
        };
        let before = &start.bodies[hand.index()];
        let stopped = run(Goal::stop(hand).to_vec(), 2.0).velocity;
        assert!(stopped.linear.length() < 1e-3 && stopped.angular.length() < 1e-2, "{style:?}: {stopped:?}");
        let coasting = run(Goal::coast(hand).to_vec(), 0.2).velocity;
        let off = (coasting.linear - before.velocity.linear).length() / before.velocity.linear.length();
        let turned = (coasting.angular - before.velocity.angular).length() / before.velocity.angular.length();
        println!("{style:?}: {off} of its velocity, {turned} of its turning lost");
        // Directions that are ten times harder to move than others count as hardly to be reached: to turn the hand across its length, in least torque.
        assert!(off < 0.2 && (turned < 0.2 || style == Style::LeastTorque), "{style:?}: {off}, {turned}");
        let wanted = exp(DVec3::new(0.2, -0.4, 0.3)) * before.orientation;
        let left = log(run(vec![Goal::keep_orientation(hand, wanted)], 3.0).orientation * wanted.conjugate()).length();
        assert!(left < 1e-3, "{style:?}: {left} rad left");
    }
}

#[test]
fn torques_of_landing_and_keyframes_are_within_their_bounds() {
    // a heavy arm on a hinge, level under gravity
    let mut builder = ModelBuilder::new();
    builder.body(BodySpec::new("arm").shape(Shape::cuboid(0.6, 0.08, 0.08), 500.0).pose(Pose::at(DVec3::X * 0.3)));
    builder.joint(JointSpec::new("shoulder", JointMask::HINGE, BodyId(0), BodyRef::World).axis(DVec3::Z));
    let model = builder.build().unwrap();
    for (most, hertz) in [(0.0, 1.5), (0.0, 20.0), (1.0, 1.5), (1.0, 20.0), (1e3, 20.0)] {
        for mode in [Mode::Landing, Mode::Keyframes] {
            let mut input = Input { gravity: Input::default().gravity, ..asks(Style::default(), Vec::new()) };
            input.control.mode = mode;
            input.control.landing.hertz = hertz;
            input.control.joint_mut(&model, 0).max_torque = most;
            input.control.keyframes = Keyframes::new();
            let (mut state, mut work) = (model.start(), Work::new(&model));
            input.control.keyframes.insert(0.0, &Coordinates::of(&model, &state));
            let mut worst = 0.0f64;
            for _ in 0..60 {
                let before = Coordinates::of(&model, &state);
                let report = step(&model, &input, &mut state, &mut work).unwrap().control;
                worst = worst.max(report.max_torque);
                // what is told is what acts: I q̈ = τ − m g c cos q, over a step that is as long as the angle changes little
                let (angle, rate) = (before.positions_of(JointId(0))[0], before.rates_of(JointId(0))[0]);
                let rate_after = Coordinates::of(&model, &state).rates_of(JointId(0))[0];
                let body = model.body(BodyId(0));
                let inertia = body.inertia.z_axis.z + body.mass * 0.09;
                let acts = inertia * (rate_after - rate) / input.dt + body.mass * 9.81 * 0.3 * angle.cos();
                let tolerance = 1e-6 + 0.02 * (report.max_torque + inertia * rate * rate);
                assert!((acts.abs() - report.max_torque).abs() < tolerance, "{mode:?} {most}: {acts} {report:?}");
            }
            assert!(worst <= most * (1.0 + 1e-9), "{mode:?}, {hertz} Hz: {worst} of {most} N·m");
            // strong ones hold it
            let angle = state.joints[0].angle;
            assert_eq!(most > 10.0, angle.abs() < 0.1, "{mode:?}, {most} N·m, {hertz} Hz: {angle}");
        }
    }
}

#[test]
fn levels_hold_at_bounds_too() {
    let model = limb(&[(0.2, 0.5); 7], false);
    let start = bent(&model, 0.5);
    let first = Goal::new(BodyId(3), DVec3::ZERO, Aim::Acceleration(DVec3::new(0.3, 0.5, 0.2)), Level::Primary);
    let mut random = Random::new(11);
    let others: Vec<Goal> = [Level::Secondary, Level::Secondary, Level::Tertiary, Level::Tertiary]
        .map(|level| {
            Goal::new(BodyId(random.below(7) as u32), DVec3::ZERO, Aim::Acceleration(random.vector(30.0)), level)
        })
        .to_vec();
    for style in STYLES {
        let bounds: &[(f64, f64, f64)] = match style {
            Style::LeastTorque => &[(1e9, 1e9, 1.0), (1e9, 1e9, 0.3)],
            _ => &[
                (0.5, 1e9, f64::INFINITY),
                (0.05, 1e9, f64::INFINITY),
                (1e9, 100.0, f64::INFINITY),
                (1e9, 20.0, f64::INFINITY),
            ],
        };
        for &(most_rate, most_command, most_torque) in bounds {
            let missed = |goals: Vec<Goal>| {
                let mut input = Input { dt: 1e-3, ..asks(style, goals) };
                input.control.gains = Gains { most_rate, most_command, ..Gains::default() };
                (0..6).for_each(|k| input.control.joint_mut(&model, k).max_torque = most_torque);
                step(&model, &input, &mut start.clone(), &mut Work::new(&model)).unwrap().control
            };
            let alone = missed(vec![first]);
            let beside = missed(std::iter::once(first).chain(others.iter().copied()).collect());
            println!(
                "{style:?} {most_rate} {most_command} {most_torque}: {:?} {:?} of {:?}, {} limited",
                alone.residuals, beside.residuals, beside.asked, beside.limited
            );
            assert!(beside.limited > 0, "the others are to come to a bound");
            let lost = beside.residuals[0] - alone.residuals[0];
            assert!(lost < 1e-6 * alone.asked[0], "{style:?}, {most_rate} {most_command} {most_torque}: {lost} lost");
        }
    }
}

#[test]
fn the_pull_that_is_told_would_do_as_much() {
    // With stiff joints a bone is pulled as the whole is: the force told, on the bone, gives it what it asked for.
    let model = limb(&[(0.2, 0.5); 7], false);
    let start = bent(&model, 0.5);
    let (bone, wish) = (BodyId(6), DVec3::new(1.0, 2.0, -1.0));
    let goal = Goal::new(bone, DVec3::ZERO, Aim::Acceleration(wish), Level::Secondary);
    let mut input = Input { dt: 1e-4, ..asks(Style::LeastTorque, vec![goal]) };
    let told = step(&model, &input, &mut start.clone(), &mut Work::new(&model)).unwrap().control;
    // loose joints: in least torque it is the pull on a limp chain
    input.control.mode = Mode::Off;
    let moved = |force: DVec3| {
        let mut input = input.clone();
        input.wrenches = vec![(bone, Wrench::new(force, DVec3::ZERO))];
        let mut state = start.clone();
        step(&model, &input, &mut state, &mut Work::new(&model)).unwrap();
        state.bodies[bone.index()].velocity.linear / input.dt
    };
    // the mobility of the bone by unit forces, and the force that gives the wish
    let columns = DVec3::AXES.map(moved);
    let force = glam::DMat3::from_cols(columns[0], columns[1], columns[2]).inverse() * wish;
    assert!(
        (force.length() - told.pull_force).abs() < 1e-3 * told.pull_force,
        "{} {}",
        force.length(),
        told.pull_force
    );
}
