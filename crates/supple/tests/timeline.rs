//! Takes: seeking, resuming and forking give the bits of the uninterrupted run; files come back whole or are refused.

use supple::control::{Goal, Keyframes, Level, Mode, Style};
use supple::glam::DVec3;
use supple::model::Coordinates;
use supple::timeline::compare::compare;
use supple::timeline::{Fork, Playback, TakeError, Timeline, file};
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
    let mut timeline = Timeline::new(name, &scene.model, &state, &input);
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
        assert_eq!(error, TakeError::Step { take: 0, step: 151, end: Some(150) });
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
fn a_moment_of_another_branch_is_refused() {
    let (scene, timeline, _) = forked();
    let mut work = Work::new(&scene.model);
    let seek = |take, step| timeline.seek(&scene.model, take, step, &mut Work::new(&scene.model)).unwrap();
    // Take 1 left take 0 at 70, take 2 left take 1 at 100.
    for (from, step, to) in [(0, 120, 1), (1, 120, 0), (0, 100, 2), (1, 90, 0), (2, 120, 1), (0, 71, 1)] {
        let mut moment = seek(from, step);
        let before = moment.clone();
        let error = timeline.advance(&scene.model, to, &mut moment, &mut work).unwrap_err();
        assert!(
            matches!(error, TakeError::Step { take, step: at, .. } if (take, at) == (to, step + 1)),
            "{from} at {step} in {to}"
        );
        assert_eq!(moment, before);
    }
    // Where a take begins, and before, the moment is one of both.
    for (from, step, to) in [(0, 70, 1), (0, 69, 1), (1, 100, 2), (0, 50, 2), (2, 50, 0), (1, 99, 2), (1, 70, 1)] {
        let mut moment = seek(from, step);
        assert!(
            timeline.advance(&scene.model, to, &mut moment, &mut work).unwrap().identical,
            "{from} at {step} in {to}"
        );
        assert_eq!(moment.state, seek(to, step + 1).state);
    }
}

/// A playback shows what was there: half a line of the robot's grid is 2⁻¹⁵ m; a rotation is off by four halves of 2⁻¹⁴, doubled.
fn assert_shows(playback: &Playback, state: &State) {
    assert_eq!(playback.time, state.time);
    assert_eq!(playback.bodies(), state.bodies.len());
    for (k, body) in state.bodies.iter().enumerate() {
        let pose = playback.pose(k);
        assert!((pose.translation - body.position).abs().max_element() <= 0.5f64.powi(15), "body {k}");
        assert!(pose.rotation.angle_between(body.orientation) < 1.3e-4, "body {k}");
    }
}

#[test]
fn poses_are_shown_without_computing() {
    let (_, timeline, histories) = forked();
    for (take, states) in histories.iter().enumerate() {
        let mut playback = Playback::default();
        // Forward, then in leaps, back and forth.
        let leaps = (0..states.len()).map(|k| k * 67 % states.len());
        for step in (0..states.len()).chain(leaps) {
            timeline.look(take, step as u64, &mut playback).unwrap();
            assert_eq!(playback.step, step as u64);
            assert_shows(&playback, &states[step]);
        }
        let error = timeline.look(take, states.len() as u64, &mut playback).unwrap_err();
        assert_eq!(error.code(), "take/step");
    }
    // The input of each step is there too.
    let mut playback = Playback::default();
    timeline.look(0, 60, &mut playback).unwrap();
    assert_eq!(playback.input.drags.len(), 2);
    timeline.look(0, 140, &mut playback).unwrap();
    assert_eq!((playback.input.substeps, playback.input.gravity.y), (2, -3.0));
}

#[test]
fn takes_are_removed_with_their_forks_and_restored() {
    let (scene, mut timeline, _) = forked();
    let before = timeline.clone();
    let mut work = Work::new(&scene.model);
    assert_eq!(timeline.remove(0), Err(TakeError::First));
    assert_eq!(timeline.remove(9).unwrap_err().code(), "take/step");
    assert_eq!(timeline.remove(1), Ok(vec![1, 2]));
    assert!(timeline.takes()[2].is_removed());
    assert_eq!(timeline.seek(&scene.model, 2, 10, &mut work).unwrap_err().code(), "take/step");
    assert_eq!(timeline.look(1, 10, &mut Playback::default()).unwrap_err().code(), "take/step");
    let left = file::read(&file::write(&timeline, 0, "test")).unwrap().timeline;
    assert_eq!(left.takes(), &before.takes()[..1]);
    timeline.restore(&[1, 2]);
    assert_eq!(timeline, before);
    // A leaf alone; then what it held is freed.
    assert_eq!(timeline.remove(2), Ok(vec![2]));
    let bytes = timeline.bytes();
    timeline.forget(&[1, 2]);
    assert!(timeline.bytes() < bytes);
    assert!(timeline.seek(&scene.model, 1, 120, &mut work).is_ok(), "what was not removed is not forgotten");
}

#[test]
fn takes_are_compared_joint_by_joint() {
    let (scene, timeline, histories) = forked();
    assert_eq!([(0, 1), (1, 2), (0, 2), (1, 1)].map(|(a, b)| timeline.parting(a, b)), [70, 100, 70, 150]);
    let joints = scene.model.joints();
    // By the states themselves, at every step.
    let relative = |joint: &Joint, state: &State| {
        let parent = scene.model.parent_pose(joint, state).then(joint.parent_from_joint);
        parent.inverse().then(state.bodies[joint.child.index()].pose().then(joint.child_from_joint))
    };
    for columns in [1000, 7] {
        let comparison = compare(&timeline, &scene.model, [0, 2], columns).unwrap();
        assert_eq!((comparison.first, comparison.last), (70, 150));
        assert!(comparison.times.len() <= columns);
        assert_eq!(comparison.times[0], histories[0][70].time);
        for (line, joint) in comparison.joints.iter().zip(joints) {
            assert_eq!(line.columns.len(), comparison.times.len());
            let mut largest = (0.0f64, 0.0f64);
            for (k, column) in line.columns.iter().enumerate() {
                let steps = 70 + k as u64 * comparison.steps_per_column..;
                let (mut angle, mut shift) = (0.0f64, 0.0f64);
                for step in steps.take(comparison.steps_per_column as usize).filter(|step| *step <= 150) {
                    let [a, b] = [0, 2].map(|take: usize| relative(joint, &histories[take][step as usize]));
                    angle = angle.max(a.rotation.angle_between(b.rotation));
                    shift = shift.max((a.translation - b.translation).length());
                }
                let near = comparison.resolution;
                assert!((column.angle - angle).abs() < near.angle, "{} at {k}: {} {angle}", joint.name, column.angle);
                assert!((column.shift - shift).abs() < near.shift, "{} at {k}: {} {shift}", joint.name, column.shift);
                largest = (largest.0.max(column.angle), largest.1.max(column.shift));
            }
            assert_eq!((line.largest.angle, line.largest.shift), largest);
        }
    }
    // Four poses take part, each off by 1.2e-4 rad and 0.05 mm at most; the longest arm of the robot is the 1 m to its pelvis.
    let comparison = compare(&timeline, &scene.model, [0, 1], 100).unwrap();
    assert!(comparison.resolution.angle < 5e-4 && comparison.resolution.shift < 8e-4, "{:?}", comparison.resolution);
    // Gravity turned upside down: most of all the elbow of the arm that nobody holds gives way.
    let largest = comparison.joints.iter().max_by(|a, b| a.largest.angle.total_cmp(&b.largest.angle)).unwrap();
    assert_eq!(scene.model.joint(largest.joint).name, "right_elbow");
    assert!(largest.largest.angle > 0.05, "{:?}", largest.largest);
    let same = compare(&timeline, &scene.model, [1, 1], 100).unwrap();
    // 1e-15: the last digit of a product of unit quaternions
    assert!(same.joints.iter().all(|line| line.largest.angle < 1e-15 && line.largest.shift == 0.0));
}

#[test]
fn a_file_comes_back_whole() {
    let (scene, timeline, histories) = forked();
    let bytes = file::write(&timeline, 2, "supple of the test");
    let back = file::read(&bytes).unwrap();
    assert_eq!((&back.timeline, back.current, back.build.as_str()), (&timeline, 2, "supple of the test"));
    assert!(back.timeline.is_of(&scene.model));
    let end = back.timeline.takes()[2].end();
    let moment = back.timeline.seek(&scene.model, 2, end, &mut Work::new(&scene.model)).unwrap();
    assert_eq!(Some(moment.state.hash()), timeline.takes()[2].hash(end));
    assert_eq!(&moment.state, histories[2].last().unwrap());
}

/// A generator without a crate.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn anything_may_change_at_any_step_of_a_directed_take() {
    const MODES: [Mode; 4] = [Mode::Goals, Mode::Keyframes, Mode::Landing, Mode::Off];
    const STYLES: [Style; 3] = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity];
    for (name, seed) in [("worm", 1), ("robot", 2), ("fish", 3)] {
        let scene = Scene::parse(name).unwrap();
        let model = &scene.model;
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(model));
        let mut timeline = Timeline::new(name, model, &state, &input);
        let last = BodyId(model.bodies().len() as u32 - 1);
        let place = state.bodies[last.index()].position + DVec3::new(0.0, 0.1, 0.0);
        let mut reduced = Reduced::default();
        input.control.goals = vec![Goal::drag(last, DVec3::ZERO, place)];
        input.control.keyframes = Keyframes::new();
        input.control.keyframes.insert(0.0, &Coordinates::of(model, &state));
        input.control.mode = Mode::Goals;
        let mut random = Random(seed);
        let (mut changes, mut seen) = ([0; 8], std::collections::BTreeSet::new());
        let (mut fastest, mut root) = (0.0f64, 0.0f64);
        for k in 0..400 {
            // Each of these about every tenth step, and several at once now and then.
            for (what, count) in changes.iter_mut().enumerate() {
                if random.below(10) > 0 {
                    continue;
                }
                *count += 1;
                match what {
                    0 => input.control.mode = MODES[random.below(4)],
                    1 => input.control.style = STYLES[random.below(3)],
                    2 => input.dt = [1e-3, 5e-4, 2e-3][random.below(3)], // without contacts it falls into the ground: not far
                    3 => input.damping_scale = [1.0, 0.2, 5.0][random.below(3)],
                    4 => {
                        let joint = random.below(model.joints().len());
                        input.joint_mut(model, joint).damping_scale = [1.0, 0.3, 3.0][random.below(3)];
                    }
                    5 => input.contacts = [Contacts::Obstacles, Contacts::Off, Contacts::All][random.below(3)],
                    6 => {
                        reduced.contacts.stiffness = [1e5, 2e4, 4e5][random.below(3)];
                        reduced.contacts.slip = [1e-3, 1e-2][random.below(2)];
                    }
                    _ => {
                        input.control.goals[0].level = Level::ALL[random.below(3)];
                        input.control.keyframes.share = [0.0, 0.4, 1.0][random.below(3)];
                        input.control.pose_share = [0.0, 0.5][random.below(2)];
                    }
                }
            }
            // As in the studio: what moved the scene before moves it while nobody directs.
            let off = input.control.mode == Mode::Off;
            input.solver = if off { scene.input.solver } else { Solver::Reduced(reduced) };
            seen.insert((input.control.mode as usize, input.control.style as usize));
            let report =
                step(model, &input, &mut state, &mut work).unwrap_or_else(|error| panic!("{name}, step {k}: {error}"));
            timeline.record(0, &input, &state);
            root = root.max(report.control.root_wrench);
            fastest = state.bodies.iter().map(|body| body.velocity.linear.length()).fold(fastest, f64::max);
        }
        println!("{name}: changes {changes:?}, up to {fastest:.1} m/s, root wrench {root:.1e}");
        let wanted = [(0, 0), (0, 1), (0, 2)]; // goals in each style, and every mode
        let all =
            wanted.iter().all(|pair| seen.contains(pair)) && (0..4).all(|k| seen.iter().any(|(mode, _)| *mode == k));
        assert!(changes.iter().all(|count| *count > 20) && all, "{changes:?} {seen:?}");
        assert!(root < 1e-8, "{name}: {root} N on the root");
        assert!(fastest < 30.0, "{name}: {fastest} m/s");
        // From a file, from its start and from the midst, by scratch that knows nothing.
        let back = file::read(&file::write(&timeline, 0, "supple of the test")).unwrap().timeline;
        assert_eq!(back, timeline);
        for from in [0, 137, 399] {
            let mut work = Work::new(model);
            let mut moment = back.seek(model, 0, from, &mut work).unwrap();
            while moment.step < 400 {
                let outcome = back.advance(model, 0, &mut moment, &mut work).unwrap();
                assert!(outcome.identical, "{name}: step {} from {from}", moment.step);
                assert_eq!(Some(moment.state.hash()), timeline.hash(0, moment.step), "{name}: step {}", moment.step);
            }
            assert_eq!(moment.state.hash(), state.hash());
        }
    }
}

/// Writes a session piece by piece, at random moments; `each` sees the bytes and the timeline after each piece.
fn journal(seed: u64, mut each: impl FnMut(&[u8], &Timeline, usize)) -> (Scene, Vec<u8>) {
    let mut random = Random(seed);
    let scene = Scene::parse("chain:4").unwrap();
    let mut work = Work::new(&scene.model);
    let mut timeline = Timeline::new("chain:4", &scene.model, &scene.state, &scene.input);
    let (mut writer, mut bytes) = (file::Writer::default(), Vec::new());
    let (mut take, mut removed) = (0, Vec::new());
    let mut moment = timeline.seek(&scene.model, 0, 0, &mut work).unwrap();
    for _ in 0..60 {
        match random.below(10) {
            0 if timeline.takes().len() < 8 => {
                let step = random.below(timeline.takes()[take].end() as usize + 1) as u64;
                moment = timeline.seek(&scene.model, take, step, &mut work).unwrap();
                take = timeline.fork(Fork { take, step }, format!("take at {step}"), &moment);
            }
            1 => timeline.rename(take, format!("name {}", random.below(1000))),
            2 if take > 0 => {
                removed = timeline.remove(take).unwrap();
                take = timeline.takes()[take].fork.unwrap().take;
                moment = timeline.seek(&scene.model, take, timeline.takes()[take].end(), &mut work).unwrap();
            }
            3 => timeline.restore(&std::mem::take(&mut removed)),
            4 => {
                take = (0..timeline.takes().len()).rfind(|k| !timeline.takes()[*k].is_removed()).unwrap();
                moment = timeline.seek(&scene.model, take, timeline.takes()[take].end(), &mut work).unwrap();
            }
            _ => {
                for _ in 0..random.below(80) {
                    moment.input.gravity.y = -(random.below(20) as f64);
                    step(&scene.model, &moment.input, &mut moment.state, &mut work).unwrap();
                    moment.step += 1;
                    timeline.record(take, &moment.input, &moment.state);
                }
                moment = timeline.seek(&scene.model, take, timeline.takes()[take].end(), &mut work).unwrap();
            }
        }
        if random.below(3) > 0 {
            writer.append(&timeline, take, "test", &mut bytes);
            each(&bytes, &timeline, take);
        }
    }
    (scene, bytes)
}

/// What a take holds: its name, its first step, its hashes, and the name and first step of the one it left.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    name: String,
    first: u64,
    hashes: Vec<Option<u64>>,
    left: Option<(String, u64)>,
}

/// The takes that were not removed, sorted: those that were restored stand later in a journal.
fn contents(timeline: &Timeline) -> Vec<Content> {
    let takes = timeline.takes().iter().filter(|take| !take.is_removed());
    let mut all: Vec<_> = takes
        .map(|take| Content {
            name: take.name.clone(),
            first: take.first(),
            hashes: (take.first() + 1..=take.end()).map(|step| take.hash(step)).collect(),
            left: take.fork.map(|fork| &timeline.takes()[fork.take]).map(|t| (t.name.clone(), t.first())),
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_journal_holds_every_piece_that_was_written() {
    for seed in 0..12 {
        journal(seed, |bytes, timeline, take| {
            let back = file::recover(bytes).unwrap();
            assert_eq!(back.lost, 0);
            assert_eq!(contents(&back.file.timeline), contents(timeline), "seed {seed}");
            let name = |timeline: &Timeline, take: usize| timeline.takes()[take].name.clone();
            assert_eq!(name(&back.file.timeline, back.file.current), name(timeline, take));
            // A file is more than a journal: it tells where it ends.
            assert_eq!(file::read(bytes).unwrap_err().code(), "take/damaged");
        });
    }
}

#[test]
fn a_torn_journal_is_read_up_to_its_last_whole_record() {
    let mut pieces = Vec::new();
    let (scene, bytes) = journal(5, |bytes, timeline, _| pieces.push((bytes.len(), contents(timeline))));
    let mut random = Random(3);
    for _ in 0..300 {
        let cut = random.below(bytes.len());
        let mut torn = bytes[..cut].to_vec();
        // What was being written may also be zeros, or nonsense.
        match random.below(3) {
            0 => torn.resize(cut + random.below(300), 0),
            1 => (0..random.below(300)).for_each(|_| torn.push(random.below(256) as u8)),
            _ => {}
        }
        let whole = pieces.iter().rev().find(|(length, _)| *length <= cut);
        match (file::recover(&torn), whole) {
            (Ok(back), Some((length, _))) => {
                assert!(back.lost <= torn.len() - length);
                // Every step that is there is the one that was recorded: its take can be done again.
                let timeline = back.file.timeline;
                let mut work = Work::new(&scene.model);
                let mut moment = timeline.seek(&scene.model, back.file.current, 0, &mut work).unwrap();
                while moment.step < timeline.takes()[back.file.current].end() {
                    let outcome = timeline.advance(&scene.model, back.file.current, &mut moment, &mut work).unwrap();
                    assert!(outcome.identical);
                }
            }
            (Ok(_), None) => {} // cut within the first piece, behind its first records
            (Err(error), whole) => assert!(whole.is_none(), "{error} at {cut} of {}", bytes.len()),
        }
    }
}

#[test]
fn another_build_or_model_is_shown_and_resumed_where_it_fits() {
    let Run { scene, timeline, states } = run("robot", 150);
    // Softer springs: another model, in which the same poses are possible.
    let softer = Scene::parse("chain:4,stiffness=5").unwrap();
    let chain = Scene::parse("chain:4").unwrap();
    let Run { timeline: recorded, states: links, .. } = run("chain:4", 90);
    assert!(recorded.is_of(&chain.model) && !recorded.is_of(&softer.model));
    let moment = recorded.seek(&softer.model, 0, 60, &mut Work::new(&softer.model)).unwrap();
    assert_eq!(moment.state, links[60], "the snapshot itself is what was recorded");
    let moment = recorded.seek(&softer.model, 0, 80, &mut Work::new(&softer.model)).unwrap();
    assert_ne!(moment.state, links[80], "softer springs move otherwise");
    // Longer arms: the joints of the recorded poses are apart.
    let mut long = ModelBuilder::new();
    let mut last = BodyRef::World;
    for k in 0..4 {
        let body = long.body(BodySpec::new(format!("link {k}")).shape(Shape::cuboid(0.5, 0.1, 0.1), 1000.0));
        let frames = (Pose::at(DVec3::X * -0.25), Pose::at(DVec3::X * if k == 0 { 0.0 } else { 0.25 }));
        long.joint(JointSpec::new(format!("joint {k}"), JointMask::BALL, body, last).frames(frames.0, frames.1));
        last = BodyRef::Id(body);
    }
    let long = long.build().unwrap();
    let error = recorded.seek(&long, 0, 60, &mut Work::new(&long)).unwrap_err();
    assert!(matches!(&error, TakeError::Apart { gap, .. } if *gap > 0.1), "{error}");
    assert_eq!(error.code(), "take/model");
    let error = recorded.seek(&scene.model, 0, 60, &mut Work::new(&scene.model)).unwrap_err();
    assert_eq!(error.code(), "take/model");
    // Looking needs no model at all.
    let mut playback = Playback::default();
    timeline.look(0, 149, &mut playback).unwrap();
    assert_shows(&playback, &states[149]);
}

#[test]
fn damaged_files_are_refused() {
    let (_, timeline, _) = forked();
    let bytes = file::write(&timeline, 0, "test");
    assert_eq!(file::read(b"").unwrap_err().code(), "take/format");
    assert_eq!(file::read(b"PNG and so on, quite long").unwrap_err().code(), "take/format");
    for version in [2, 99] {
        let mut other = bytes.clone();
        other[8] = version;
        let found = u32::from(version);
        assert_eq!(file::read(&other).unwrap_err(), TakeError::Version { found, expected: file::VERSION });
    }
    for end in (0..bytes.len()).step_by(997) {
        assert!(file::read(&bytes[..end]).is_err(), "cut at {end}");
    }
    // Every changed bit is noticed by the checksum of its record.
    let mut random = Random(1);
    for _ in 0..2000 {
        let mut changed = bytes.clone();
        let k = 12 + random.below(changed.len() - 12);
        changed[k] ^= 1 << random.below(8);
        assert_eq!(file::read(&changed).unwrap_err().code(), "take/damaged");
        let _ = file::recover(&changed);
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(file::read(&longer).unwrap_err().code(), "take/damaged");
}

/// The records of a file: where each begins and how long its content is.
fn records(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut all) = (12, Vec::new());
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        all.push((at, length));
        at += length + 13;
    }
    all
}

#[test]
fn a_forged_file_gives_an_error_or_a_take_that_can_be_looked_at() {
    let Run { scene, mut timeline, .. } = run("chain:3", 130);
    let mut work = Work::new(&scene.model);
    let moment = timeline.seek(&scene.model, 0, 70, &mut work).unwrap();
    timeline.fork(Fork { take: 0, step: 70 }, "another", &moment);
    let bytes = file::write(&timeline, 1, "test");
    let records = records(&bytes);
    let mut random = Random(9);
    let (mut refused, mut opened) = (0, 0);
    for _ in 0..20_000 {
        // A change inside a record, whose checksum is then made right again: only the content can tell.
        let mut forged = bytes.clone();
        let (start, length) = records[random.below(records.len())];
        for _ in 0..1 + random.below(3) {
            let k = start + if random.below(8) == 0 { 0 } else { 5 + random.below(length.max(1)) };
            forged[k] = match random.below(4) {
                0 => 0,
                1 => 255,
                2 => forged[k].wrapping_add(1),
                _ => random.below(256) as u8,
            };
        }
        let mut hash = 0xcbf29ce484222325u64;
        for byte in &forged[start..start + 5 + length] {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        }
        forged[start + 5 + length..][..8].copy_from_slice(&hash.to_le_bytes());
        match file::read(&forged) {
            Err(_) => refused += 1,
            Ok(file) => {
                opened += 1;
                let mut playback = Playback::default();
                let take = &file.timeline.takes()[file.current];
                for step in [take.first(), take.end() / 2, take.end(), u64::MAX] {
                    if file.timeline.look(file.current, step, &mut playback).is_ok() {
                        assert!((0..playback.bodies()).all(|body| playback.pose(body).is_finite()));
                    }
                }
                let _ = file.timeline.seek(&scene.model, file.current, take.end(), &mut work);
                let _ = compare(&file.timeline, &scene.model, [0, file.current], 50);
            }
        }
        let _ = file::recover(&forged);
    }
    assert!(refused > 1000 && opened > 1000, "{refused} refused, {opened} opened");
}

/// A lively robot: pulled about by script and by hand, for ten minutes at 60 steps a second. What an hour needs is six times that.
/// Measured: 84 MB in memory, 83 MB on disk, half of it the two pulls that change at every step. `cargo test --release -p supple --test timeline an_hour -- --nocapture` prints it.
#[test]
fn an_hour_of_the_robot_fits() {
    let scene = Scene::parse("robot").unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let mut timeline = Timeline::new("robot", &scene.model, &state, &input);
    let mut random = Random(11);
    let mut pull = None;
    for k in 0..10 * 60 * 60 {
        if k % 45 == 0 {
            let offset = DVec3::from_array([0; 3].map(|_| random.below(1000) as f64 / 1000.0 - 0.5));
            let body = random.below(scene.model.bodies().len());
            pull = Some((BodyId(body as u32), state.bodies[body].position + offset));
        }
        input.drags.truncate(1);
        scene.direct(state.time, &mut input);
        if let Some((body, target)) = pull {
            // the mouse moves at every step
            let target = target + DVec3::Y * (0.05 * (0.3 * k as f64).sin());
            let (point, target_velocity) = (DVec3::ZERO, DVec3::ZERO);
            input.drags.push(Drag { body, point, target, target_velocity, stiffness: 300.0, damping: 10.0 });
        }
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        timeline.record(0, &input, &state);
    }
    let megabytes = |bytes: usize| 6.0 * bytes as f64 / 1e6;
    let bytes = file::write(&timeline, 0, "test");
    let (memory, disk) = (megabytes(timeline.bytes()), megabytes(bytes.len()));
    println!("an hour of the robot: {memory:.0} MB in memory, {disk:.0} MB on disk");
    assert!(memory < 256.0, "{memory} MB in memory");
    assert!(disk < 100.0, "{disk} MB on disk");
    assert_eq!(file::read(&bytes).unwrap().timeline, timeline);
}

/// A file of version 8, by a build that wrote settings by their place: it opens, plays and keeps its settings, and is written anew by key.
#[test]
fn takes_of_version_8_are_read() {
    let file = file::read(include_bytes!("data/version8.take")).unwrap();
    let (timeline, model) = (&file.timeline, Scene::parse("chain:3").unwrap().model);
    assert_eq!((timeline.scene(), timeline.takes()[0].end()), ("chain:3", 91));
    let mut playback = Playback::default();
    timeline.look(0, 30, &mut playback).unwrap();
    assert_eq!((playback.input.substeps, playback.input.damping_scale), (2, 3.0));
    assert_eq!(playback.input.gravity, DVec3::new(0.5, -5.0, 0.0));
    for (step, solver) in [(45, "impulse:system"), (55, "assembly"), (65, "reduced:midpoint"), (75, "tree:published")] {
        timeline.look(0, step, &mut playback).unwrap();
        assert_eq!(playback.input.solver.choice(), solver, "step {step}");
    }
    timeline.look(0, 91, &mut playback).unwrap();
    assert_eq!(playback.input.drags.len(), 1);
    assert!(timeline.seek(&model, 0, 91, &mut Work::new(&model)).is_ok());
    let anew = file::read(&file::write(timeline, file.current, &file.build)).unwrap();
    assert_eq!(anew, file);
}

/// A build to come has settings that this one lacks, and words that it does not know: its takes open all the same.
#[test]
fn settings_that_this_build_does_not_know_are_passed_over() {
    let scene = Scene::parse("chain:3").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let mut timeline = Timeline::new("chain:3", &scene.model, &state, &scene.input);
    for _ in 0..5 {
        step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        timeline.record(0, &scene.input, &state);
    }
    let mut bytes = file::write(&timeline, 0, "another build");
    // as long, so that no length changes; checksums are made anew
    for (known, unknown) in [("substeps", "sabsteps"), ("obstacles", "abstacles")] {
        let at: Vec<usize> =
            (0..bytes.len() - known.len()).filter(|k| bytes[*k..].starts_with(known.as_bytes())).collect();
        assert!(!at.is_empty(), "{known}");
        at.into_iter().for_each(|k| bytes[k..k + known.len()].copy_from_slice(unknown.as_bytes()));
    }
    let mut at = 12;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        let end = at + 5 + length;
        let sum = bytes[at..end]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        at = end + 8;
    }
    let file = file::read(&bytes).unwrap();
    let moment = file.timeline.seek(&scene.model, 0, 5, &mut work).unwrap();
    assert_eq!(moment.state.hash(), state.hash());
}

#[test]
fn what_was_computed_otherwise_is_found() {
    let scene = Scene::parse("chain:3").unwrap();
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let mut timeline = Timeline::new("chain:3", &scene.model, &state, &scene.input);
    for k in 0..30 {
        step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        if k == 19 {
            state.bodies[2].velocity.linear.z += 1.0; // as if another machine had computed it so
        }
        timeline.record(0, &scene.input, &state);
    }
    let mut moment = timeline.seek(&scene.model, 0, 0, &mut work).unwrap();
    let (mut playback, mut first, mut found) = (Playback::default(), None, None);
    while moment.step < 30 {
        let outcome = timeline.advance(&scene.model, 0, &mut moment, &mut work).unwrap();
        if !outcome.identical {
            first.get_or_insert(moment.step);
        }
        let difference = timeline.difference(0, &moment, &mut playback).unwrap();
        assert!(difference.is_none() || moment.step > 20, "step {}", moment.step);
        found = found.or(difference.map(|d| (moment.step, d.body)));
    }
    assert_eq!((first, found), (Some(20), Some((21, BodyId(2)))));
}

/// No reader takes a place beyond 1e6 m; what a journal has before it is kept.
#[test]
fn nodes_of_flesh_beyond_the_world_are_found_before_they_are_recorded() {
    let Run { scene, states, .. } = run("worm", 2);
    let mut state = states[1].clone();
    assert_eq!(state.strayed(), None);
    state.nodes[5].position.y = -1e6;
    let part = state.strayed().unwrap();
    assert_eq!((part.body(), part.name(&scene.model)), (None, "node 5 of the flesh".to_owned()));
    state.bodies[1].position.x = f64::NAN;
    let part = state.strayed().unwrap();
    assert_eq!(part.name(&scene.model), format!("\"{}\"", scene.model.bodies()[1].name));
    // A file whose snapshot has such a node is refused, and says which it is.
    state = states[1].clone();
    state.nodes[5].position.y = -2e6;
    let bytes = file::write(&Timeline::new("worm", &scene.model, &state, &scene.input), 0, "test");
    let error = file::read(&bytes).unwrap_err();
    assert_eq!(error.code(), "take/far");
    assert!(error.to_string().contains("node 5 of the flesh"), "{error}");
}

#[test]
fn poses_beyond_the_world_are_refused() {
    let Run { scene, states, .. } = run("chain:3", 70);
    let moved = |step: u64, x: f64| {
        let mut other = Timeline::new("chain:3", &scene.model, &states[0], &scene.input);
        let (mut writer, mut journal) = (file::Writer::default(), Vec::new());
        for (k, state) in (1..).zip(&states[1..]) {
            let mut state = state.clone();
            if k == step {
                state.bodies[1].position.x = x;
            }
            other.record(0, &scene.input, &state);
            if k % 10 == 0 {
                writer.append(&other, 0, "test", &mut journal);
            }
        }
        (file::write(&other, 0, "test"), journal)
    };
    // In the poses of a step, and in a snapshot, which the sixtieth step has; and in that alone, where poses are rounded.
    for (step, x, kept) in [(17, -2e6, 10), (60, -2e6, 50), (60, -1e6, 50)] {
        let (bytes, journal) = moved(step, x);
        let error = file::read(&bytes).unwrap_err();
        let expected = TakeError::Far { part: "body 1".into(), take: "take 1".into(), step };
        assert_eq!((&error, error.code()), (&expected, "take/far"));
        let recovered = file::recover(&journal).unwrap();
        assert_eq!(recovered.file.timeline.takes()[0].end(), kept);
        assert!(recovered.lost > 0);
        let mut playback = Playback::default();
        recovered.file.timeline.look(0, kept, &mut playback).unwrap();
        assert_shows(&playback, &states[kept as usize]);
        // It goes on from there, through the next snapshot.
        let mut resumed = recovered.file.timeline.clone();
        states[kept as usize + 1..].iter().for_each(|state| resumed.record(0, &scene.input, state));
        resumed.look(0, 70, &mut playback).unwrap();
        assert_shows(&playback, &states[70]);
        assert_eq!(resumed.seek(&scene.model, 0, 70, &mut Work::new(&scene.model)).unwrap().step, 70);
        assert!(file::read(&moved(step, 0.999e6).0).is_ok());
    }
    // At the very start.
    let mut state = scene.state.clone();
    state.bodies[2].position.y = f64::NAN;
    let lost = Timeline::new("chain:3", &scene.model, &state, &scene.input);
    let error = file::read(&file::write(&lost, 0, "test")).unwrap_err();
    assert_eq!(error, TakeError::Far { part: "body 2".into(), take: "take 1".into(), step: 0 });
}
