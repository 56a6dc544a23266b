//! The built-in takes do what they show [Kim 2008, figs. 1, 7–9]: as inputs only, without a force on a passive root, the same in every run, and with half the step as well.

use glam::DVec3;
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use supple::control::{Aim, Control, Keyframes, Mark, Mode};
use supple::model::Coordinates;
use supple::*;

/// What is measured of a take.
#[derive(Debug, Default)]
struct Shown {
    /// How tall the skin is at the start \[m\].
    height: f64,
    /// How far the lowest point of the skin rises above where it lies \[m\].
    rise: f64,
    /// How far each bone turned, from the start to the end, and the most on the way \[rad\].
    turns: Vec<f64>,
    furthest: Vec<f64>,
    /// The most that a joint is bent \[rad\].
    bend: f64,
    /// By joint: how far it turned, to and fro \[rad\].
    travels: Vec<f64>,
    /// The farthest that the cursor was from what it leads \[m\].
    apart: f64,
    root_wrench: f64,
    /// Mean squares over time of the actuators' torques and accelerations.
    torque: f64,
    acceleration: f64,
    /// Steps under goals.
    directed: usize,
}

/// The surface of a creature.
#[derive(Default)]
struct Skin {
    nodes: Vec<DVec3>,
    vertices: Vec<DVec3>,
}

impl Skin {
    /// The lowest and the highest of its points \[m\].
    fn heights(&mut self, model: &Model, state: &State) -> (f64, f64) {
        let flesh = model.flesh().unwrap();
        flesh.positions(state, &mut self.nodes);
        flesh.surface_positions(&self.nodes, &mut self.vertices);
        let y = self.vertices.iter().map(|p| p.y);
        (y.clone().fold(f64::INFINITY, f64::min), y.fold(f64::NEG_INFINITY, f64::max))
    }
}

/// How far a point that a cursor leads is from it \[m\].
fn apart(input: &Input, state: &State) -> f64 {
    let led = input.control.goals.iter().filter(|goal| goal.mark == Mark::Cursor);
    let each = led.map(|goal| match goal.aim {
        Aim::Position { target, .. } if input.control.mode == Mode::Goals => {
            state.bodies[goal.body.index()].pose().transform_point(goal.point).distance(target)
        }
        _ => 0.0,
    });
    each.fold(0.0, f64::max)
}

/// Runs a scene with what `direct` asks of it, and tells each step.
fn watch(
    scene: &Scene,
    bones: usize,
    (seconds, dt): (f64, f64),
    direct: impl Fn(f64, &mut Input),
    mut each: impl FnMut(&Input, &State),
) -> Shown {
    let model = &scene.model;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(model));
    let angles = |state: &State| -> Vec<f64> {
        state.bodies[..bones].iter().map(|body| 2.0 * body.orientation.z.atan2(body.orientation.w)).collect()
    };
    let bends = |state: &State| -> Vec<f64> { state.joints[1..bones].iter().map(|joint| joint.angle).collect() };
    let mut skin = Skin::default();
    let (low, high) = skin.heights(model, &state);
    let mut shown = Shown { height: high - low, ..Shown::default() };
    (shown.turns, shown.furthest, shown.travels) = (vec![0.0; bones], vec![0.0; bones], vec![0.0; bones - 1]);
    let (mut last, mut bent, mut lies) = (angles(&state), bends(&state), f64::INFINITY);
    let steps = (seconds / dt).round() as usize;
    input.dt = dt;
    for n in 0..steps {
        direct(state.time, &mut input);
        let report = step(model, &input, &mut state, &mut work);
        let report = report.unwrap_or_else(|e| panic!("{}, step {n}: {e}", scene.name)).control;
        shown.root_wrench = shown.root_wrench.max(report.root_wrench);
        shown.torque += report.torque.powi(2) / steps as f64;
        shown.acceleration += report.acceleration.powi(2) / steps as f64;
        shown.directed += usize::from(input.control.mode == Mode::Goals);
        shown.apart = shown.apart.max(apart(&input, &state));
        let now = angles(&state);
        for (k, (now, last)) in now.iter().zip(&last).enumerate() {
            let turned = now - last;
            shown.turns[k] += turned - TAU * (turned / TAU).round();
            if shown.turns[k].abs() > shown.furthest[k].abs() {
                shown.furthest[k] = shown.turns[k];
            }
        }
        let now_bent = bends(&state);
        for (travel, (now, last)) in shown.travels.iter_mut().zip(now_bent.iter().zip(&bent)) {
            *travel += (now - last).abs();
            shown.bend = shown.bend.max(now.abs());
        }
        (last, bent) = (now, now_bent);
        let (lowest, _) = skin.heights(model, &state);
        lies = f64::min(lies, lowest); // it comes down to the ground first
        shown.rise = shown.rise.max(lowest - lies.max(0.0));
        each(&input, &state);
    }
    shown
}

/// Runs a take, records it, and does it again from the record: every step must have its hash.
fn show(name: &str, bones: usize, seconds: f64, mut each: impl FnMut(&State)) -> Shown {
    let scene = Scene::parse(name).unwrap();
    let model = &scene.model;
    let mut timeline = Timeline::new(name, model, &scene.state, &scene.input);
    let direct = |time: f64, input: &mut Input| scene.direct(time, input);
    let shown = watch(&scene, bones, (seconds, scene.input.dt), direct, |input, state| {
        timeline.record(0, input, state);
        each(state);
    });
    // From the beginning again, by the recorded inputs alone.
    let mut work = Work::new(model);
    let mut again = timeline.seek(model, 0, 0, &mut work).unwrap();
    for n in 0..(seconds / scene.input.dt).round() as u64 {
        timeline.advance(model, 0, &mut again, &mut work).unwrap();
        assert_eq!(Some(again.state.hash()), timeline.hash(0, n + 1), "{name}, step {}", n + 1);
    }
    shown
}

/// The same take with half the step.
fn halved(name: &str, bones: usize, seconds: f64) -> Shown {
    let scene = Scene::parse(name).unwrap();
    let direct = |time: f64, input: &mut Input| scene.direct(time, input);
    watch(&scene, bones, (seconds, 0.5 * scene.input.dt), direct, |_, _| {})
}

/// A force of this size along a passive root would be rounding \[N, N·m\].
const NONE: f64 = 1e-9;

/// How long the first jump is \[s\]: by then it lies on the ground again.
const JUMP: f64 = 0.8;

/// The joints of a take move as they did, at other times: `t' = t + (warp/t_f) sin(2πt/t_f)`. What of the control stays is that of the take; `bounded` says whether commands have bounds.
fn again(name: &str, seconds: f64, (warp, length): (f64, f64), bounded: bool) -> Shown {
    let scene = Scene::parse(name).unwrap();
    let mut keyframes = Keyframes { rate: 200.0, ..Keyframes::new() };
    keyframes.insert(0.0, &Coordinates::of(&scene.model, &scene.state));
    let mut control = Control::default();
    let mut n = 0;
    let done = |time: f64, input: &mut Input| scene.direct(time, input);
    watch(&scene, 7, (seconds, scene.input.dt), done, |input, state| {
        n += 1;
        if n == 1 {
            control = input.control.clone();
        }
        if n % 5 == 0 {
            let t = state.time;
            keyframes.insert(t + warp / length * (TAU * t / length).sin(), &Coordinates::of(&scene.model, state));
        }
    });
    control = Control { mode: Mode::Keyframes, goals: Vec::new(), keyframes, ..control };
    if !bounded {
        (control.gains.most_rate, control.gains.most_command) = (1e9, 1e9);
    }
    let directed = |_: f64, input: &mut Input| input.control.clone_from(&control);
    watch(&scene, 7, (seconds + 0.2, scene.input.dt), directed, |_, _| {})
}

#[test]
fn the_worm_jumps_and_fails_with_warped_timing() {
    let jump = show("worm:take=jump", 7, JUMP, |_| {});
    let height = jump.height;
    assert!(jump.rise > 0.33 * height && jump.root_wrench < NONE && jump.directed > 200, "{jump:?}");
    let half = halved("worm:take=jump", 7, JUMP);
    assert!((half.rise / jump.rise - 1.0).abs() < 0.2, "{} {}", half.rise, jump.rise);
    let second = show("worm:take=jump2", 7, 1.2, |_| {});
    assert!(second.rise > 0.3 * height && second.root_wrench < NONE && second.directed > 300, "{second:?}");
    // By its joints alone it jumps as well as by the hand, if the timing is the same.
    let same = again("worm:take=jump", JUMP, (0.0, JUMP), true);
    assert!((same.rise / jump.rise - 1.0).abs() < 0.05, "{} {}", same.rise, jump.rise);
    // With the timing warped it does not, with bounds of the commands or without them.
    let warped = show("worm:take=warped", 7, JUMP + 0.2, |_| {});
    assert!(warped.rise < 0.5 * jump.rise && warped.root_wrench < NONE, "{} {}", warped.rise, jump.rise);
    assert!(warped.rise < 0.18 * height, "{}", warped.rise);
    for bounded in [true, false] {
        let by_hand = again("worm:take=jump", JUMP, (0.05, JUMP), bounded);
        assert!((by_hand.rise - warped.rise).abs() < 0.1 * jump.rise, "{} {}", by_hand.rise, warped.rise);
    }
}

#[test]
fn under_the_same_drag_waving_takes_less_torque_and_bending_less_acceleration() {
    let wave = show("worm:take=wave", 7, 2.4, |_| {});
    let bend = show("worm:take=bend", 7, 2.4, |_| {});
    assert!(wave.torque < 0.95 * bend.torque, "{wave:?} {bend:?}");
    assert!(bend.acceleration < 0.5 * wave.acceleration, "{wave:?} {bend:?}");
    assert!(wave.root_wrench < NONE && bend.root_wrench < NONE);
}

/// The head goes to and fro after the cursor, the middle is carried high, and the joints that are dear do little: the worm limps with its front.
#[test]
fn the_worm_limps() {
    let (mut middle, mut heads) = (Vec::new(), Vec::new());
    let limp = show("worm:take=limp", 7, 2.4, |state| {
        middle.push(state.bodies[3].position.y);
        heads.push(state.bodies[0].position.x);
    });
    assert!(limp.root_wrench < NONE && limp.turns.iter().all(|t| t.abs() < FRAC_PI_2), "{limp:?}");
    // The cursor goes 0.15 m away; if the worm lay still, it would be as far from the head.
    assert!(limp.directed == 2400 && limp.apart < 0.14, "{limp:?}");
    // It lies at half its height; the middle is asked to keep 0.2 m and does.
    assert!(middle[300..].iter().all(|y| (0.17..0.22).contains(y)) && middle[0] < 0.09);
    let range = |of: &[f64]| {
        of.iter().fold(f64::NEG_INFINITY, |m, x| m.max(*x)) - of.iter().fold(f64::INFINITY, |m, x| m.min(*x))
    };
    heads.chunks(800).for_each(|once| assert!(range(once) > 0.015, "{}", range(once)));
    let (cheap, dear) = limp.travels.split_at(3);
    let (cheap, dear): (f64, f64) = (cheap.iter().sum(), dear.iter().sum());
    assert!(cheap > 3.0 * dear && cheap > 3.0, "{:?}", limp.travels);
}

#[test]
fn every_bone_of_the_worm_rolls_over_at_least_once() {
    let roll = show("worm:take=roll", 7, 4.0, |_| {});
    assert!(roll.root_wrench < NONE, "{roll:?}");
    for shown in [roll, halved("worm:take=roll", 7, 4.0)] {
        assert!(shown.turns.iter().all(|turn| *turn >= TAU) && shown.bend < 2.0, "{shown:?}");
    }
}

#[test]
fn the_fish_escapes() {
    let escape = show("fish:take=escape", 7, 1.1, |_| {});
    assert!(escape.root_wrench < NONE, "{escape:?}");
    for shown in [escape, halved("fish:take=escape", 7, 1.1)] {
        assert!(shown.rise > 0.33 * shown.height && shown.bend < 2.0, "{shown:?}");
    }
}

/// Every bone turns by half a turn or more, all the same way, after a cursor that is never farther than half a body away. In the end the fish lies on its back: head and fin carry it, so that it lies
/// aslant by as much as 0.3 rad.
#[test]
fn the_fish_turns_over() {
    let turnover = show("fish:take=turnover", 7, 7.4, |_| {});
    assert!(turnover.root_wrench < NONE && turnover.directed == 6600, "{turnover:?}");
    let length = 0.77; // m: of the fish
    for shown in [turnover, halved("fish:take=turnover", 7, 7.4)] {
        assert!(shown.furthest.iter().all(|turn| *turn >= PI), "{shown:?}");
        assert!(shown.turns.iter().all(|turn| (turn - PI).abs() < 0.5), "{shown:?}");
        assert!(shown.bend < 2.5 && shown.apart < 0.5 * length, "{shown:?}");
    }
}

/// Against the same finger that is asked to stay where it is, for as long.
#[test]
fn the_finger_pushes_the_ball() {
    let scene = Scene::parse("finger:take=push").unwrap();
    let ball = |state: &State| state.bodies.last().unwrap().position;
    let start = ball(&scene.state);
    let mut moved = 0.0;
    let push = show("finger:take=push", 5, 1.2, |state| moved = ball(state).distance(start));
    let mut alone = 0.0;
    let stay = |_: f64, input: &mut Input| scene.direct(-input.dt, input);
    watch(&scene, 5, (1.2, scene.input.dt), stay, |_, state| alone = ball(state).distance(start));
    assert!(moved - alone > 0.01, "{moved} {alone}");
    // Its joints do it, as far as they reach.
    assert!(push.travels.iter().all(|travel| *travel > 0.1) && push.bend > 0.2, "{push:?}");
    assert!(push.apart < 0.01, "{push:?}");
}
