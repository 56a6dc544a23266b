//! Directing through the server: what is switched at once is gone over to step by step, as recorded; what a person does not touch stays as it was.

mod common;

use common::{Client, paused, saved, seek, start};
use serde_json::{Value, json};
use supple::control::{Control, KEYFRAME_RATE, Level, Mode, Style};
use supple::model::Coordinates;
use supple::timeline::file::TakeFile;
use supple::{Contacts, Input, Scene, Solver, State, Work, step};

/// A step of a take, done again.
struct Done {
    input: Input,
    before: State,
    /// Rates of the joints after it; the root of the robot is welded and has none.
    rates: Vec<f64>,
    /// By how much accelerations of joints differ from those of the step before \[rad/s²\].
    leap: f64,
}

/// Every step of a take from its start, with the recorded bits.
fn steps_of(file: &TakeFile, take: usize) -> Vec<Done> {
    let scene = Scene::parse(file.timeline.scene()).unwrap();
    let mut work = Work::new(&scene.model);
    let mut moment = file.timeline.seek(&scene.model, take, 0, &mut work).unwrap();
    let mut rates = Coordinates::of(&scene.model, &moment.state).rates;
    let mut accelerations = vec![0.0; rates.len()];
    let mut done = Vec::new();
    while moment.step < file.timeline.takes()[take].end() {
        let before = moment.state.clone();
        let outcome = file.timeline.advance(&scene.model, take, &mut moment, &mut work).unwrap();
        assert!(outcome.identical, "take {take} at {}", moment.step);
        let now = Coordinates::of(&scene.model, &moment.state).rates;
        let leap = leap(&mut accelerations, &rates, &now, moment.input.dt);
        rates.clone_from(&now);
        done.push(Done { input: moment.input.clone(), before, rates: now, leap });
    }
    done
}

/// The largest difference of accelerations of joints from those before, which become the present ones.
fn leap(accelerations: &mut [f64], before: &[f64], now: &[f64], dt: f64) -> f64 {
    let mut largest = 0.0f64;
    for k in 0..now.len() {
        let acceleration = (now[k] - before[k]) / dt;
        largest = largest.max((acceleration - accelerations[k]).abs());
        accelerations[k] = acceleration;
    }
    largest
}

/// How much keyframes count in a step.
fn share(input: &Input) -> f64 {
    if input.control.mode == Mode::Keyframes { input.control.keyframes.share } else { 0.0 }
}

/// Does steps and waits for them.
async fn steps(client: &mut Client, count: u32) -> u32 {
    client.say(json!({"type": "pause"})).await;
    let from = client.frame_where(|frame| !frame.playing()).await.step();
    client.say(json!({"type": "step", "count": count})).await;
    client.frame_where(|frame| frame.step() == from + count).await.step()
}

async fn set(client: &mut Client, change: Value) {
    let mut message = json!({"type": "set"});
    message.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    client.say(message).await;
}

/// The robot without weight at its start, with a keyframe of that pose; then a hand is pulled aside for half a second.
async fn robot_pulled_aside(address: &str, dt: f64) -> Client {
    let (mut client, _) = paused(address, 0).await;
    seek(&mut client, 0, 0).await;
    set(&mut client, json!({"gravity": [0, 0, 0], "script": false, "hold": false, "dt": dt})).await;
    client.say(json!({"type": "key", "time": 0.9})).await;
    set(&mut client, json!({"control": {"mode": "goals"}})).await;
    client.status_where(|status| status["settings"]["control"]["mode"] == "goals").await;
    let scene = Scene::parse("robot").unwrap();
    let hand = scene.model.find_body("left_hand").unwrap();
    let place = scene.state.bodies[hand.index()].position + supple::glam::DVec3::new(0.0, 0.3, 0.2);
    client.say(json!({"type": "drag", "body": hand.0, "point": [0, 0, 0], "target": place.to_array()})).await;
    steps(&mut client, (0.5 / dt).round() as u32).await;
    client
}

/// The present status.
async fn status_of(address: &str) -> Value {
    Client::connect(address).await.told("status").await
}

/// The control as a status tells it.
fn told(status: &Value) -> &Value {
    &status["settings"]["control"]
}

#[tokio::test(flavor = "multi_thread")]
async fn goals_and_keyframes_go_over_into_each_other() {
    for dt in [1.0 / 60.0, 1.0 / 400.0] {
        let address = start("robot");
        let mut client = robot_pulled_aside(&address, dt).await;
        let half = (0.5 / dt).round() as u32;
        set(&mut client, json!({"control": {"mode": "keyframes"}})).await;
        steps(&mut client, half).await;
        set(&mut client, json!({"control": {"mode": "goals"}})).await;
        steps(&mut client, half).await;
        let file = saved(&address).await;
        let done = steps_of(&file, file.current);

        // 0.2 s to the keyframes and 0.2 s back, by the same in each step; then all of it, or nothing.
        let shares: Vec<f64> = done.iter().map(|step| share(&step.input)).collect();
        let (there, back) = (half as usize, 2 * half as usize);
        assert!(shares[..there].iter().all(|x| *x == 0.0));
        for (k, pair) in shares.windows(2).enumerate() {
            assert!((pair[1] - pair[0]).abs() <= dt / 0.2 + 1e-12, "{pair:?} at {k}");
        }
        let over = (0.2 / dt).round() as usize;
        assert!(shares[there] > 0.0 && shares[there + over + 1] == 1.0 && shares[back - 1] == 1.0);
        assert!(shares[back] < 1.0 && shares[back] > 0.8 && shares[back + over + 1] == 0.0);
        assert_eq!(done.last().unwrap().input.control.mode, Mode::Goals);

        // Beside the same switched at once.
        for (at, mode) in [(there, Mode::Keyframes), (back, Mode::Goals)] {
            let abrupt = leap_at_once(&done, at, mode);
            let ramped = done[at..(at + over + 2).min(done.len())].iter().map(|step| step.leap).fold(0.0, f64::max);
            println!("dt {dt:.4}, to {mode:?}: {ramped:.2} rad/s² in a step, at once {abrupt:.2}");
            assert!(ramped < 0.3 * abrupt && abrupt > 5.0, "{ramped} {abrupt}");
        }
    }
}

/// By how much accelerations differ from those of the step before when a step is wholly in another mode.
fn leap_at_once(done: &[Done], at: usize, mode: Mode) -> f64 {
    let scene = Scene::parse("robot").unwrap();
    let mut input = done[at].input.clone();
    (input.control.mode, input.control.keyframes.share) = (mode, 1.0);
    let mut state = done[at].before.clone();
    step(&scene.model, &input, &mut state, &mut Work::new(&scene.model)).unwrap();
    let now = Coordinates::of(&scene.model, &state).rates;
    let rate = |k: usize, i: usize| done[k].rates[i];
    let last = |i: usize| (rate(at - 1, i) - rate(at - 2, i)) / done[at - 1].input.dt;
    (0..now.len()).map(|i| ((now[i] - rate(at - 1, i)) / input.dt - last(i)).abs()).fold(0.0, f64::max)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_while_it_goes_over_goes_on_over() {
    let address = start("robot");
    let mut client = robot_pulled_aside(&address, 0.01).await;
    set(&mut client, json!({"control": {"mode": "keyframes"}})).await;
    let there = steps(&mut client, 5).await;
    let file = saved(&address).await;
    assert!((share(&steps_of(&file, file.current).last().unwrap().input) - 0.25).abs() < 1e-9);
    // Played again from the start and on: it goes on where it was.
    let take = file.current as u32;
    seek(&mut client, take, 0).await;
    client.say(json!({"type": "step", "count": there + 20})).await;
    client.frame_where(|frame| frame.step() == there + 20).await;
    let done = steps_of(&saved(&address).await, take as usize);
    assert_eq!(share(&done[there as usize].input), share(&done[there as usize - 1].input) + 0.05);
    assert_eq!(share(&done.last().unwrap().input), 1.0);
    // Goals are chosen, and left for another take before they are reached: the other take goes on over to them.
    set(&mut client, json!({"control": {"mode": "goals"}})).await;
    let end = steps(&mut client, 10).await;
    seek(&mut client, take, end - 4).await;
    let status = status_of(&address).await;
    assert_eq!((&told(&status)["mode"], &told(&status)["share"]), (&json!("goals"), &json!(1.0)));
    set(&mut client, json!({"gravity": [0, -1, 0]})).await;
    client.status_where(|status| status["take"] == take + 1).await;
    steps(&mut client, 40).await;
    let done = steps_of(&saved(&address).await, take as usize + 1);
    assert_eq!(share(&done[end as usize - 4].input), share(&done[end as usize - 5].input) - 0.05);
    assert_eq!(done.last().unwrap().input.control.mode, Mode::Goals);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_fast_it_is_played_is_of_no_matter_for_going_over() {
    for speed in [0.25, 8.0] {
        let address = start("robot");
        let mut client = robot_pulled_aside(&address, 0.01).await;
        client.say(json!({"type": "speed", "factor": speed})).await;
        client.say(json!({"type": "play"})).await;
        client.frame_where(|frame| frame.step() > 51).await;
        set(&mut client, json!({"control": {"mode": "keyframes"}})).await;
        let status = client.status_where(|status| told(status)["mode"] == "keyframes").await;
        let begun = status["takes"][status["take"].as_u64().unwrap() as usize]["end"].as_u64().unwrap() as u32;
        client.frame_where(|frame| frame.step() > begun + 25).await;
        let file = saved(&address).await;
        let done = steps_of(&file, file.current);
        let first = done.iter().position(|step| share(&step.input) > 0.0).unwrap();
        for k in 0..25 {
            let due = f64::min(0.05 * (k + 1) as f64, 1.0);
            assert!((share(&done[first + k].input) - due).abs() < 1e-9, "speed {speed}, step {k}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_built_in_take_keeps_what_it_does_not_name() {
    for take in ["jump2", "roll", "warped"] {
        let address = start(&format!("worm:take={take}"));
        let (mut client, _) = paused(&address, 0).await;
        seek(&mut client, 0, 0).await;
        steps(&mut client, 900).await;
        let keyed = |step: &Done| step.input.control.mode == Mode::Keyframes;
        let done = steps_of(&saved(&address).await, 0);
        let at = done.iter().position(keyed).unwrap_or_else(|| panic!("{take} has no keyframes"));
        let before: Control = done[at].input.control.clone();
        assert_ne!(before.keyframes.rate, KEYFRAME_RATE, "{take} shows nothing");
        seek(&mut client, 0, at as u32 + 1).await;
        set(&mut client, json!({"script": false, "control": {"style": "least_torque"}})).await;
        client.status_where(|status| told(status)["style"] == "least_torque").await;
        steps(&mut client, 2).await;
        let after = steps_of(&saved(&address).await, 1).pop().unwrap().input.control;
        println!("{take}: rate {} and {:?} from step {at}", after.keyframes.rate, after.keyframes.ends);
        let goals = before.goals.iter().filter(|goal| goal.mark == supple::control::Mark::Constraint).copied();
        let expected = Control { style: Style::LeastTorque, goals: goals.collect(), ..before };
        assert_eq!(after, expected, "{take}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contacts_change_at_any_step_and_are_undone() {
    let address = start("worm");
    let (mut client, _) = paused(&address, 0).await;
    seek(&mut client, 0, 0).await;
    set(&mut client, json!({"script": false, "contact_stiffness": 2e5})).await;
    let refusal = client.told("error").await;
    assert!(refusal["message"].as_str().unwrap().contains("choose solver reduced"), "{refusal}");
    set(&mut client, json!({"script": false, "control": {"mode": "landing"}, "contact_stiffness": 2e5})).await;
    steps(&mut client, 3).await;
    set(&mut client, json!({"contacts": "all", "contact_slip": 0.01})).await;
    steps(&mut client, 3).await;
    set(&mut client, json!({"contacts": "off"})).await;
    steps(&mut client, 3).await;
    client.say(json!({"type": "undo"})).await;
    let status = client.status_where(|status| status["settings"]["contacts"] == "all").await;
    assert_eq!(
        (&status["settings"]["contact_stiffness"], &status["settings"]["contact_slip"]),
        (&json!(2e5), &json!(0.01))
    );
    steps(&mut client, 1).await;
    let file = saved(&address).await;
    let found: Vec<_> = steps_of(&file, file.current)
        .iter()
        .map(|Done { input, .. }| match input.solver {
            Solver::Reduced(reduced) => (input.contacts, reduced.contacts.stiffness, reduced.contacts.slip),
            other => panic!("{other:?}"),
        })
        .collect();
    let of = |contacts, slip| (contacts, 2e5, slip);
    let [first, all, off] = [of(Contacts::Obstacles, 1e-3), of(Contacts::All, 0.01), of(Contacts::Off, 0.01)];
    assert_eq!(found, [first, first, first, all, all, all, off, off, off, all]);
    // Off and on again, contacts are as they were set.
    set(&mut client, json!({"control": {"mode": "off"}})).await;
    client.status_where(|status| status["settings"]["contact_stiffness"].is_null()).await;
    set(&mut client, json!({"control": {"mode": "goals"}})).await;
    client.status_where(|status| status["settings"]["contact_stiffness"] == 2e5).await;
    for wrong in [json!({"contact_stiffness": 0}), json!({"contact_slip": -1}), json!({"contacts": "some"})] {
        set(&mut client, wrong.clone()).await;
        assert!(client.told("error").await["message"].as_str().is_some_and(|text| !text.is_empty()), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pose_is_taken_and_gone_to() {
    let address = start("robot");
    let mut client = robot_pulled_aside(&address, 0.01).await;
    client.say(json!({"type": "release"})).await;
    client.say(json!({"type": "target_pose"})).await;
    let status = client.status_where(|status| !told(status)["pose"].as_array().unwrap().is_empty()).await;
    let wanted: Vec<f64> = serde_json::from_value(told(&status)["pose"].clone()).unwrap();
    let (take, takes) = (status["take"].clone(), status["takes"].as_array().unwrap().len());
    // It stays when one goes back to the start, and began no take.
    seek(&mut client, take.as_u64().unwrap() as u32, 0).await;
    set(&mut client, json!({"gravity": [0, 0, 0], "dt": 0.01, "control": {"mode": "goals", "pose_share": 1.0}})).await;
    let status = client.status_where(|status| told(status)["pose_share"] == 1.0).await;
    assert_eq!(status["takes"].as_array().unwrap().len(), takes + 1, "only the change at the start begins one");
    assert_eq!(serde_json::from_value::<Vec<f64>>(told(&status)["pose"].clone()).unwrap(), wanted);
    steps(&mut client, 300).await;
    let file = saved(&address).await;
    let scene = Scene::parse("robot").unwrap();
    let done = steps_of(&file, file.current);
    for (k, step) in done.iter().take(60).enumerate() {
        let due = f64::min(0.02 * (k + 1) as f64, 1.0); // half a second in steps of 10 ms
        assert!((step.input.control.pose_share - due).abs() < 1e-9, "step {k}: {}", step.input.control.pose_share);
    }
    let end = file.timeline.takes()[file.current].end();
    let mut work = Work::new(&scene.model);
    let state = file.timeline.seek(&scene.model, file.current, end, &mut work).unwrap().state;
    let off = off_pose(&scene, &state, &wanted);
    let was = off_pose(&scene, &scene.state, &wanted);
    println!("joints off the pose by up to {off:.1e}, at the start {was:.2}");
    assert!(was > 0.1 && off < 1e-3, "{was} {off}");

    // Another pose: the one before is let go first.
    set(&mut client, json!({"control": {"pose": []}})).await;
    steps(&mut client, 120).await;
    let done = steps_of(&saved(&address).await, file.current);
    let after = &done[end as usize..];
    let turn = after.iter().position(|step| step.input.control.pose.is_empty()).unwrap();
    assert_eq!(turn, 49, "let go within half a second");
    assert_eq!(after[turn].input.control.pose_share, 0.0);
    assert!(after[..turn].iter().all(|step| step.input.control.pose == wanted && step.input.control.pose_share < 1.0));
    assert_eq!(after.last().unwrap().input.control.pose_share, 1.0);
    // A pose of another length is refused.
    set(&mut client, json!({"control": {"pose": [0.0, 1.0]}})).await;
    assert!(client.told("error").await["message"].as_str().unwrap().contains("target_pose"));
}

/// How far the joints of a state are off positions, the largest difference.
fn off_pose(scene: &Scene, state: &State, wanted: &[f64]) -> f64 {
    let mut found = Coordinates::of(&scene.model, state);
    let mut positions = found.positions.clone();
    found.align(wanted, &mut positions);
    found.positions = positions;
    found.positions.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pin_has_a_level() {
    let address = start("robot");
    let mut client = robot_pulled_aside(&address, 0.01).await;
    client.say(json!({"type": "pin", "body": 3, "on": true})).await;
    client.say(json!({"type": "pin", "body": 7, "on": true, "level": "tertiary"})).await;
    steps(&mut client, 2).await;
    client.say(json!({"type": "pin", "body": 3, "on": true, "level": "secondary"})).await;
    let status = client.status_where(|status| status["pin_levels"][0] == "secondary").await;
    assert_eq!(status["pins"], json!([3, 7]));
    assert!(status["undo"].as_str().unwrap().starts_with("level of pin"), "{status}");
    let end = steps(&mut client, 2).await;
    let file = saved(&address).await;
    let levels = |step: &Done| -> Vec<(u32, Level)> {
        let goals = step.input.control.goals.iter().filter(|goal| [3, 7].contains(&goal.body.0));
        goals.map(|goal| (goal.body.0, goal.level)).collect()
    };
    let done = steps_of(&file, file.current);
    assert_eq!(levels(&done[done.len() - 3]), [(3, Level::Primary), (7, Level::Tertiary)]);
    assert_eq!(levels(done.last().unwrap()), [(3, Level::Secondary), (7, Level::Tertiary)]);
    // Pins are found again in a recorded step, with their levels, and a pull at a centre of mass is none.
    seek(&mut client, file.current as u32, end - 2).await;
    let status = status_of(&address).await;
    assert_eq!((&status["pins"], &status["pin_levels"]), (&json!([3, 7]), &json!(["primary", "tertiary"])));
}
