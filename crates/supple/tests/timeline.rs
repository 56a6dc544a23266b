//! Takes: seeking, resuming and forking give the bits of the uninterrupted run; files come back whole or are refused.

use supple::glam::DVec3;
use supple::timeline::{Fork, TakeError, Timeline, file};
use supple::*;

/// A run that is pulled and whose settings change.
fn change(step: u64, model: &Model, input: &mut Input) {
    input.drags.truncate(1);
    if (40..90).contains(&step) {
        input.drags.push(Drag {
            body: BodyId(5.min(model.bodies().len() as u32 - 1)),
            point: DVec3::new(0.01, 0.0, 0.0),
            target: DVec3::new(0.3, 1.0 + 0.002 * step as f64, 0.2),
            target_velocity: DVec3::ZERO,
            stiffness: 100.0,
            damping: 5.0,
        });
    }
    input.gravity.y = if step > 100 { -3.0 } else { -9.81 };
    input.substeps = if step > 120 { 2 } else { 1 };
}

struct Run {
    scene: Scene,
    timeline: Timeline,
    states: Vec<State>,
}

fn run(name: &str, steps: u64) -> Run {
    let scene = Scene::parse(name).unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let mut timeline = Timeline::new(name, &state, &input);
    let mut states = vec![state.clone()];
    for k in 0..steps {
        change(k, &scene.model, &mut input);
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        timeline.record(0, &input, &state);
        states.push(state.clone());
    }
    Run { scene, timeline, states }
}

#[test]
fn every_step_is_found_again_bit_for_bit() {
    for name in ["robot", "hand", "plant"] {
        let Run { scene, timeline, states } = run(name, 150);
        for step in [0, 1, 41, 59, 60, 61, 95, 119, 120, 130, 150] {
            let moment = timeline.seek(&scene.model, 0, step, &mut Work::new(&scene.model)).unwrap();
            assert_eq!(moment.state.hash(), states[step as usize].hash(), "{name} at {step}");
            assert_eq!(moment.state, states[step as usize], "{name} at {step}");
        }
        let missing = timeline.seek(&scene.model, 0, 151, &mut Work::new(&scene.model));
        assert_eq!(missing.unwrap_err().code(), "take/step");
    }
}

#[test]
fn resuming_from_any_moment_is_the_uninterrupted_run() {
    let Run { scene, timeline, states } = run("robot", 150);
    let mut work = Work::new(&scene.model);
    for from in (0..150).step_by(7) {
        let mut moment = timeline.seek(&scene.model, 0, from, &mut work).unwrap();
        while moment.step < 150 {
            let outcome = timeline.advance(&scene.model, 0, &mut moment, &mut work).unwrap();
            assert!(outcome.identical, "from {from} at {}", moment.step);
        }
        assert_eq!(moment.state, states[150], "from {from}");
        // Beyond the recording the run goes on with its last input.
        assert_eq!(moment.input.substeps, 2);
        let error = timeline.advance(&scene.model, 0, &mut moment, &mut work).unwrap_err();
        assert_eq!(error, TakeError::Step { take: 0, step: 151 });
    }
}

/// A take forked at 70, and one forked from that at 100; each with a history of its own.
fn forked() -> (Scene, Timeline, Vec<Vec<State>>) {
    let Run { scene, mut timeline, states } = run("robot", 150);
    let mut work = Work::new(&scene.model);
    let mut histories = vec![states];
    for (parent, at, gravity) in [(0, 70, 2.0), (1, 100, -20.0)] {
        let mut moment = timeline.seek(&scene.model, parent, at, &mut work).unwrap();
        let take = timeline.fork(Fork { take: parent, step: at }, "another", &moment);
        let mut states = histories[parent][..=at as usize].to_vec();
        for _ in 0..80 {
            moment.input.gravity.y = gravity;
            scene.direct(moment.state.time, &mut moment.input);
            step(&scene.model, &moment.input, &mut moment.state, &mut work).unwrap();
            timeline.record(take, &moment.input, &moment.state);
            states.push(moment.state.clone());
        }
        histories.push(states);
    }
    (scene, timeline, histories)
}

#[test]
fn forks_keep_their_history() {
    let (scene, timeline, histories) = forked();
    let mut work = Work::new(&scene.model);
    for (take, states) in histories.iter().enumerate() {
        assert_eq!(timeline.takes()[take].end() as usize, states.len() - 1);
        for step in (0..states.len() as u64).step_by(9) {
            let moment = timeline.seek(&scene.model, take, step, &mut work).unwrap();
            assert_eq!(moment.state, states[step as usize], "take {take} at {step}");
        }
        // From the very start through all forks.
        let mut moment = timeline.seek(&scene.model, take, 0, &mut work).unwrap();
        while moment.step < timeline.takes()[take].end() {
            assert!(timeline.advance(&scene.model, take, &mut moment, &mut work).unwrap().identical);
        }
        assert_eq!(&moment.state, states.last().unwrap());
    }
}

#[test]
fn a_file_comes_back_whole() {
    let (scene, timeline, histories) = forked();
    let bytes = file::write(&timeline, 2);
    let back = file::read(&bytes).unwrap();
    assert_eq!((&back.timeline, back.current, back.build), (&timeline, 2, file::build()));
    let end = back.timeline.takes()[2].end();
    let moment = back.timeline.seek(&scene.model, 2, end, &mut Work::new(&scene.model)).unwrap();
    assert_eq!(Some(moment.state.hash()), timeline.takes()[2].hash(end));
    assert_eq!(&moment.state, histories[2].last().unwrap());
}

#[test]
fn damaged_files_are_refused() {
    let (_, timeline, _) = forked();
    let bytes = file::write(&timeline, 0);
    assert_eq!(file::read(b"").unwrap_err().code(), "take/format");
    assert_eq!(file::read(b"PNG and so on, quite long").unwrap_err().code(), "take/format");
    let mut newer = bytes.clone();
    newer[8] = 99;
    assert_eq!(file::read(&newer).unwrap_err(), TakeError::Version { found: 99, expected: file::VERSION });
    for end in (0..bytes.len()).step_by(997) {
        assert!(file::read(&bytes[..end]).is_err(), "cut at {end}");
    }
    // A changed byte gives an error or another take, never a panic or an endless list.
    let mut state = 1u64;
    for _ in 0..2000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut changed = bytes.clone();
        let k = (state >> 33) as usize % changed.len();
        changed[k] ^= 1 << (state >> 29 & 7);
        let _ = file::read(&changed);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(file::read(&longer).unwrap_err().code(), "take/damaged");
}

#[test]
fn an_hour_of_the_robot_fits() {
    let Run { timeline, .. } = run("robot", 600);
    let hour = timeline.bytes() * 360; // 600 steps are ten seconds
    assert!(hour < 256 << 20, "{} MB in memory", hour >> 20);
    let file = file::write(&timeline, 0).len() * 360;
    assert!(file < 100 << 20, "{} MB on disk", file >> 20);
}
