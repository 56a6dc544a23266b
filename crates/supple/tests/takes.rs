//! The built-in takes do what they show [Kim 2008, figs. 1, 7–9]: as inputs only, without a force on a passive root, the same in every run.

use std::f64::consts::{PI, TAU};
use supple::*;

/// What is measured of a take.
#[derive(Debug, Default)]
struct Shown {
    /// How far the lowest point of the skin rises above where it lies \[m\].
    rise: f64,
    /// How far the body turned as a whole, from the start to the end \[rad\].
    turn: f64,
    /// The farthest that the last body went \[m\].
    moved: f64,
    root_wrench: f64,
    /// Mean squares over time of the actuators' torques and accelerations.
    torque: f64,
    acceleration: f64,
    /// Steps under goals.
    directed: usize,
}

/// Runs a take, records it, and does it again from the record: every step must have its hash.
fn show(name: &str, bones: usize, seconds: f64) -> Shown {
    let scene = Scene::parse(name).unwrap();
    let model = &scene.model;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(model));
    let mut timeline = Timeline::new(name, model, &state, &input);
    let flesh = model.flesh().unwrap();
    let (mut nodes, mut skin) = (Vec::new(), Vec::new());
    let mut mean_angle = |state: &State| {
        let q = state.bodies[0].orientation;
        let mut angle = 2.0 * q.z.atan2(q.w);
        let mut sum = angle;
        for joint in &state.joints[1..bones] {
            angle += joint.angle;
            sum += angle;
        }
        sum / bones as f64
    };
    let (mut shown, mut last) = (Shown::default(), mean_angle(&state));
    let start = state.bodies.last().unwrap().position;
    let mut lies = f64::INFINITY;
    let steps = (seconds / input.dt).round() as usize;
    for n in 0..steps {
        scene.direct(state.time, &mut input);
        let report = step(model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}, step {n}: {e}"));
        timeline.record(0, &input, &state);
        shown.root_wrench = shown.root_wrench.max(report.control.root_wrench);
        shown.torque += report.control.torque.powi(2) / steps as f64;
        shown.acceleration += report.control.acceleration.powi(2) / steps as f64;
        shown.directed += usize::from(input.control.mode == supple::control::Mode::Goals);
        let turned = mean_angle(&state) - last;
        shown.turn += turned - TAU * (turned / TAU).round();
        last += turned;
        flesh.positions(&state, &mut nodes);
        flesh.surface_positions(&nodes, &mut skin);
        let lowest = skin.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
        lies = f64::min(lies, lowest); // it comes down to the ground first
        shown.rise = shown.rise.max(lowest - lies.max(0.0));
        shown.moved = shown.moved.max(state.bodies.last().unwrap().position.distance(start));
    }
    // From the beginning again, by the recorded inputs alone.
    let mut again = timeline.seek(model, 0, 0, &mut work).unwrap();
    for n in 0..steps as u64 {
        step_again(&timeline, model, &mut again, &mut work, n);
    }
    assert_eq!(again.state.hash(), state.hash(), "{name}");
    shown
}

fn step_again(timeline: &Timeline, model: &Model, moment: &mut Moment, work: &mut Work, n: u64) {
    timeline.advance(model, 0, moment, work).unwrap();
    assert_eq!(Some(moment.state.hash()), timeline.hash(0, n + 1), "step {}", n + 1);
}

const WORM: f64 = 0.16; // m: its height
const FISH: f64 = 0.23; // m
/// A force of this size along a passive root would be rounding \[N, N·m\].
const NONE: f64 = 1e-9;

#[test]
fn the_worm_jumps_and_fails_with_warped_timing() {
    let jump = show("worm:take=jump", 7, 1.2);
    assert!(jump.rise > 0.3 * WORM && jump.root_wrench < NONE && jump.directed > 300, "{jump:?}");
    let second = show("worm:take=jump2", 7, 1.2);
    assert!(second.rise > 0.3 * WORM && second.root_wrench < NONE && second.directed > 300, "{second:?}");
    let warped = show("worm:take=warped", 7, 1.0);
    assert!(warped.rise < 0.5 * jump.rise && warped.root_wrench < NONE, "{warped:?} against {jump:?}");
}

#[test]
fn under_the_same_drag_waving_takes_less_torque_and_bending_less_acceleration() {
    let wave = show("worm:take=wave", 7, 2.4);
    let bend = show("worm:take=bend", 7, 2.4);
    assert!(wave.torque < 0.95 * bend.torque, "{wave:?} {bend:?}");
    assert!(bend.acceleration < 0.5 * wave.acceleration, "{wave:?} {bend:?}");
    assert!(wave.root_wrench < NONE && bend.root_wrench < NONE);
}

#[test]
fn the_worm_limps_and_rolls() {
    let limp = show("worm:take=limp", 7, 2.4);
    assert!(limp.root_wrench < NONE && limp.turn.abs() < 0.5 && limp.directed == 2400, "{limp:?}");
    let roll = show("worm:take=roll", 7, 3.0);
    assert!(roll.turn.abs() >= TAU && roll.root_wrench < NONE, "{roll:?}");
}

#[test]
fn the_fish_escapes_and_turns_over() {
    let escape = show("fish:take=escape", 7, 1.1);
    assert!(escape.rise > 0.3 * FISH && escape.root_wrench < NONE, "{escape:?}");
    let turnover = show("fish:take=turnover", 7, 4.0);
    assert!(turnover.turn.abs() >= PI && turnover.root_wrench < NONE, "{turnover:?}");
}

#[test]
fn the_finger_pushes_the_ball() {
    let push = show("finger:take=push", 5, 1.2);
    assert!(push.moved > 0.01, "{push:?}");
    // by servos that hold still it stays where it is
    let scene = Scene::parse("finger").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let input = Input { dt: 1e-3, solver: Solver::Reduced(Reduced::default()), ..scene.input.clone() };
    let start = state.bodies.last().unwrap().position;
    for _ in 0..300 {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    assert!(state.bodies.last().unwrap().position.distance(start) < 2e-3);
}
