//! The server as its clients meet it: what it tells, what nonsense does, and that nobody holds up the others.

mod common;

use common::{Client, Frame, PATIENCE, address_of, ask, ask_with, host, key, start};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Instant;
use supple_studio::{Opening, Settings, Studio};
use tokio_tungstenite::tungstenite::Message;

#[tokio::test(flavor = "multi_thread")]
async fn a_scene_is_described_and_moves() {
    let address = start("robot");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    assert_eq!(scene["name"], "robot");
    let bodies = scene["bodies"].as_array().unwrap().len();
    let frame = client.frame().await;
    assert_eq!(frame.bodies(), bodies);
    let (joints, targets, drags) = (frame.u32(32) as usize, frame.u32(36) as usize, frame.drags());
    assert_eq!(joints, scene["joints"].as_array().unwrap().len());
    // Then the ghost, the contacts and the nodes of flesh, of which there are none.
    assert_eq!(frame.end(), frame.head() + 28 * bodies + 32 * (joints + targets + drags) + 4 + 4 + 4);
    client.frame_where(|later| later.step() > frame.step() + 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_tell_loads_angles_and_times() {
    let address = start("pendulum");
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "pause"})).await;
    let paused = client.frame_where(|frame| !frame.playing()).await;
    let scene = supple::Scene::parse("pendulum").unwrap();
    let weight = 9.81 * scene.model.mass();
    let mut last = paused.step();
    let (mut highest, mut lowest, mut there) = (0.0f32, f32::INFINITY, [0.0; 8]);
    for _ in 0..120 {
        client.say(json!({"type": "step"})).await;
        let frame = client.frame_where(|frame| frame.step() > last).await;
        last = frame.step();
        there = frame.joint(0);
        let [gap, force, ..] = there;
        assert!(gap < 1e-9, "{gap}");
        (highest, lowest) = (highest.max(force), lowest.min(force));
        let micros: f32 = (0..6).map(|k| frame.f32(128 + 4 * k)).sum();
        assert!(micros > 0.0 && micros <= frame.f32(76), "{micros} µs in stages of {} µs", frame.f32(76));
    }
    // A swinging pendulum is heaviest at the bottom, and lighter than its weight where it turns round.
    assert!(lowest < weight as f32 && highest > weight as f32, "{lowest} {weight} {highest}");
    // The same step, gone back to, tells the same.
    client.say(json!({"type": "seek", "take": 0, "step": 3})).await;
    client.frame_where(|frame| frame.step() == 3).await;
    client.say(json!({"type": "seek", "take": 0, "step": last})).await;
    assert_eq!(client.frame_where(|frame| frame.step() == last).await.joint(0), there);
    client.say(json!({"type": "seek", "take": 0, "step": 0})).await;
    let start = client.frame_where(|frame| frame.step() == 0).await;
    assert!(start.joint(0)[1].is_nan(), "nothing is known of loads before the first step");
}

#[tokio::test(flavor = "multi_thread")]
async fn contacts_are_told_with_their_forces() {
    let address = start("stack:3");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    assert_eq!(scene["obstacles"][0]["shape"], "half_space");
    assert_eq!(scene["controls"], json!([]));
    let frame = client.frame_where(|frame| frame.step() > 5).await;
    // No joints, targets or drags; no other take: the contacts come next.
    let at = frame.head() + 28 * 3 + 4;
    let count = frame.u32(at) as usize;
    assert_eq!(count, 12, "four corners each");
    // After them the nodes of flesh: none.
    assert_eq!(frame.end(), at + 4 + 44 * count + 4);
    // The floor carries three boxes of 1 kg.
    let up = |k: usize| frame.f32(at + 4 + 44 * k + 4 + 4 * 7);
    let height = |k: usize| frame.f32(at + 4 + 44 * k + 4 + 4);
    let floor: f32 = (0..count).filter(|&k| height(k).abs() < 1e-3).map(up).sum();
    assert!((floor - 3.0 * 9.81).abs() < 0.1, "{floor} N");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_car_is_steered_and_other_scenes_are_not() {
    let address = start("car");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    assert_eq!(scene["controls"], json!(["drive", "turn"]));
    // Backwards, against the script.
    client.say(json!({"type": "steer", "values": [-1.0, 0.0]})).await;
    client.frame_where(|frame| frame.position(0)[0] < -0.5).await;
    for wrong in [json!([1.0]), json!([2.0, 0.0]), json!([0.0, 0.0, 0.0])] {
        client.say(json!({"type": "steer", "values": wrong})).await;
        let refusal = client.told("error").await;
        assert_eq!(refusal["code"], "studio/value", "{refusal}");
    }
    client.say(json!({"type": "open", "scene": "pendulum"})).await;
    client.told("scene").await;
    client.say(json!({"type": "steer", "values": [0.0, 0.0]})).await;
    assert!(client.told("error").await["message"].as_str().unwrap().contains("nothing to steer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_let_go_keeps_its_speed() {
    let address = start("ragdoll");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    let torso = scene["bodies"].as_array().unwrap().iter().position(|b| b["name"] == "torso").unwrap();
    client.say(json!({"type": "pause"})).await;
    let start = client.frame_where(|frame| !frame.playing()).await;
    let [x, y, z] = start.position(torso);
    let mut last = start.step();
    // Drawn upwards for half a second at 4 m/s, then let go.
    for k in 1..=30 {
        let target = [x, y + 4.0 * k as f32 / 60.0, z];
        client.say(json!({"type": "drag", "body": torso, "point": [0, 0, 0], "target": target, "strength": 4})).await;
        client.say(json!({"type": "step"})).await;
        last = client.frame_where(|frame| frame.step() > last).await.step();
    }
    client.say(json!({"type": "release"})).await;
    let mut heights = Vec::new();
    for _ in 0..4 {
        client.say(json!({"type": "step"})).await;
        let frame = client.frame_where(|frame| frame.step() > last).await;
        last = frame.step();
        heights.push(frame.position(torso)[1]);
    }
    let speed = (heights[3] - heights[0]) * 20.0; // three steps of 1/60 s
    // It goes on upwards; limbs that trail behind take a share of the momentum.
    assert!(speed > 1.0, "{speed} m/s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solver_is_chosen_from_the_list_and_one_that_fails_names_the_body() {
    let address = start("hand");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    let solvers: Vec<String> =
        scene["solvers"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap().to_owned()).collect();
    assert!(solvers.len() >= 7, "{solvers:?}");
    client.say(json!({"type": "pause"})).await;
    client.frame_where(|frame| !frame.playing()).await;
    // The last, explicit one cannot hold the stiff joints of the hand: the run stops and says where.
    for name in solvers.iter().map(String::as_str).chain(["tree:acceleration"]) {
        client.say(json!({"type": "set", "solver": name})).await;
        client.status_where(|status| status["settings"]["solver"] == name).await;
    }
    client.say(json!({"type": "step", "count": 1000})).await;
    let status = client.status_where(|status| status["notice"].is_object()).await;
    assert!(status["notice"]["text"].as_str().unwrap().contains("smaller dt"), "{status}");
    let failed = client.frame_where(|frame| frame.0[2] & 8 != 0).await;
    assert!((failed.u32(120) as usize) < failed.bodies());
    assert_eq!(failed.u32(124), 6);
}

/// What a solver lacks of the scene, and how strongly it damps, is told to the page, each once.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_solver_lacks_is_told_once() {
    for (scene, solver, words) in [
        ("block:restitution=0.5", "assembly", "without bounce"),
        ("chain:10", "reduced:euler", "energy of motion a second"),
    ] {
        let address = start(scene);
        let mut client = Client::connect(&address).await;
        client.say(json!({"type": "set", "solver": solver})).await;
        let told = |status: &Value| status["notice"]["text"].as_str().is_some_and(|text| text.contains(words));
        let status = client.status_where(told).await;
        assert_eq!((&status["notice"]["level"], &status["quality"]), (&"warning".into(), &"degraded".into()));
        assert!(status["reasons"].as_array().unwrap().iter().any(|r| r.as_str().unwrap().contains(words)), "{status}");
        client.say(json!({"type": "step", "count": 200})).await;
        client.say(json!({"type": "rename", "take": 0, "name": "later"})).await;
        let later = client.status_where(|status| status["takes"][0]["name"] == "later").await;
        let others = |text: &str| later["notice"]["number"] == status["notice"]["number"] || !text.contains(words);
        assert!(others(later["notice"]["text"].as_str().unwrap()), "{later}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_real_time() {
    let address = start("pendulum");
    let mut client = Client::connect(&address).await;
    let first = client.frame().await.step();
    let start = Instant::now();
    let last = client.frame_where(|frame| frame.step() >= first + 60).await.step();
    let seconds = start.elapsed().as_secs_f64();
    let simulated = f64::from(last - first) / 60.0;
    // A busy machine may be late; it must never run ahead by more than what it may catch up (50 ms) and a step.
    assert!(simulated < seconds + 0.1, "{simulated} s simulated in {seconds} s");
}

/// What the server answers to a request for this path, without the key: the page tells nothing of what is simulated.
async fn get(address: &str, path: &str) -> String {
    let (_, head, body) = ask_with(address, "GET", path, "", b"").await;
    format!("{head}\r\n\r\n{}", String::from_utf8_lossy(&body))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_is_served_with_the_documents_it_links_to() {
    let address = start("pendulum");
    let answer = get(&address, "/guide").await;
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: docs/guide/studio.html"), "{answer}");
    let guide = get(&address, "/docs/guide/studio.html").await;
    assert!(guide.starts_with("HTTP/1.1 200") && guide.contains("<h1 id=\"the-studio\">The studio</h1>"), "{guide}");
    // Everything it links to or shows is there; nothing comes from elsewhere.
    let links = guide.split("href=\"").chain(guide.split("src=\"")).skip(1);
    let mut followed = 0;
    for link in links.filter_map(|rest| rest.split('"').next()) {
        let file = link.split('#').next().unwrap();
        if file.is_empty() || file.contains(['<', '\n']) || file.starts_with("data:") {
            continue;
        }
        assert!(!file.contains("://"), "{file}");
        let path = match file.strip_prefix("../") {
            Some(rest) => format!("/docs/{rest}"),
            None => format!("/docs/guide/{file}"),
        };
        assert!(get(&address, &path).await.starts_with("HTTP/1.1 200"), "{path}");
        followed += 1;
    }
    assert!(followed > 3, "{followed} links");
    assert!(get(&address, "/docs/../Cargo.toml").await.starts_with("HTTP/1.1 403"));
    assert_eq!(ask(&address, "GET", "/docs/../Cargo.toml", b"").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_malformed_messages_change_nothing() {
    let address = start("hand");
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "pause"})).await;
    let status = client.status_where(|status| status["playing"] == false).await;
    let before = client.frame_where(|frame| !frame.playing()).await;

    let bodies = before.bodies();
    let wrong = [
        "".to_owned(),
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{\"type\":\"explode\"}".to_owned(),
        "{\"type\":\"step\",\"count\":-1}".to_owned(),
        "{\"type\":\"step\",\"count\":0}".to_owned(),
        "{\"type\":\"speed\",\"factor\":-1}".to_owned(),
        "{\"type\":\"speed\",\"factor\":1e999}".to_owned(),
        "{\"type\":\"set\",\"dt\":0}".to_owned(),
        "{\"type\":\"set\",\"dt\":0.01,\"substeps\":0}".to_owned(),
        "{\"type\":\"set\",\"gravity\":[1,2]}".to_owned(),
        "{\"type\":\"set\",\"gravity\":[0,-1e6,0]}".to_owned(),
        "{\"type\":\"key\",\"time\":1e308}".to_owned(),
        "{\"type\":\"key\",\"time\":-1e308}".to_owned(),
        "{\"type\":\"set\",\"stiffness_scale\":-1}".to_owned(),
        "{\"type\":\"set\",\"colour\":\"red\"}".to_owned(),
        "{\"type\":\"set\",\"solver\":\"magic\"}".to_owned(),
        "{\"type\":\"set\",\"joints\":[{\"joint\":99999,\"stiffness_scale\":1,\"damping_scale\":1}]}".to_owned(),
        format!("{{\"type\":\"drag\",\"body\":{bodies},\"point\":[0,0,0],\"target\":[0,0,0]}}"),
        "{\"type\":\"drag\",\"body\":0,\"point\":[0,0,0],\"target\":[0,1e30,0]}".to_owned(),
        "{\"type\":\"drag\",\"body\":0,\"point\":[0,0,0]}".to_owned(),
        "{\"type\":\"pin\",\"body\":4294967295,\"on\":true}".to_owned(),
        "{\"type\":\"targets\",\"poses\":{\"tail\":null}}".to_owned(),
        "{\"type\":\"targets\",\"poses\":{\"palm\":{\"position\":[0,0,0],\"rotation\":[0,0,0,0]}}}".to_owned(),
        "{\"type\":\"open\",\"scene\":\"octopus\"}".to_owned(),
        "{\"type\":\"open\",\"scene\":\"chain:1000000\"}".to_owned(),
        "{\"type\":\"open\",\"scene\":\"../../etc/passwd\"}".to_owned(),
        "{\"type\":\"seek\",\"take\":0,\"step\":999999999}".to_owned(),
        "{\"type\":\"seek\",\"take\":7,\"step\":0}".to_owned(),
        "{\"type\":\"rename\",\"take\":0,\"name\":\"\"}".to_owned(),
        "{\"type\":\"rename\",\"take\":9,\"name\":\"x\"}".to_owned(),
        "{\"type\":\"delete\",\"take\":0}".to_owned(),
        "{\"type\":\"delete\",\"take\":-1}".to_owned(),
        "{\"type\":\"compare\",\"take\":3}".to_owned(),
        "{\"type\":\"undo\"}".to_owned(),
        "{\"type\":\"redo\"}".to_owned(),
        "{\"type\":\"recover\",\"journal\":0}".to_owned(),
        "{\"type\":\"discard\",\"journal\":99}".to_owned(),
    ];
    // One by one every one of them is answered with an error.
    for text in &wrong {
        client.0.send(Message::text(text.clone())).await.unwrap();
        let error = client.told("error").await;
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{text}: {error}");
    }
    // And then thousands at once, while another task reads the answers.
    let Client(socket) = client;
    let (mut writer, mut reader) = socket.split(); // the reader keeps the connection when the writer is done
    let flood = wrong.clone();
    let writing = tokio::spawn(async move {
        for k in 0..10_000 {
            let message = match k % 30 {
                29 => Message::binary(vec![0u8; 64]),
                k => Message::text(flood[k % flood.len()].clone()),
            };
            writer.feed(message).await.unwrap();
        }
        writer
            .send(Message::text(json!({"type": "rename", "take": 0, "name": "still here"}).to_string()))
            .await
            .unwrap();
    });
    let mut errors = 0;
    let after = loop {
        let message = tokio::time::timeout(PATIENCE, reader.next()).await.unwrap().unwrap().unwrap();
        let Message::Text(text) = message else { continue };
        let value: Value = serde_json::from_str(&text).unwrap();
        errors += usize::from(value["type"] == "error");
        if value["type"] == "status" && value["takes"][0]["name"] == "still here" {
            break value;
        }
    };
    writing.await.unwrap();
    assert!(errors > 3000, "{errors} answers");
    let mut expected = status.clone();
    expected["takes"][0]["name"] = "still here".into();
    expected["undo"] = "rename take 1".into();
    expected["unsaved"] = true.into();
    assert_eq!(after, expected);

    let mut other = Client::connect(&address).await;
    let frame = other.frame().await;
    assert_eq!((frame.step(), frame.poses()), (before.step(), before.poses()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_never_reads_holds_up_nobody() {
    let address = start("chain:2000"); // frames of 64 kB, so that buffers fill within the two seconds
    // It takes the connection and then nothing, so that its buffers fill up.
    let _deaf = Client::connect(&address).await;
    let mut third = Client::connect(&address).await;
    let mut reader = Client::connect(&address).await;
    let first = reader.frame().await.step();
    let start = Instant::now();
    reader.frame_where(|frame| frame.step() > first + 120).await;
    let seconds = start.elapsed().as_secs_f64();
    assert!(seconds < 10.0, "two seconds of simulation took {seconds} s");
    // The third sees the present, not what it missed while it did not read.
    third.say(json!({"type": "pause"})).await;
    let paused = reader.frame_where(|frame| !frame.playing()).await;
    let same = third.frame_where(|frame| !frame.playing()).await;
    assert_eq!(paused.step(), same.step());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drag_moves_a_body_and_ends_with_its_client() {
    let address = start("chain:10");
    let mut watcher = Client::connect(&address).await;
    let mut puller = Client::connect(&address).await;
    let start = watcher.frame().await.position(9);
    let target = [start[0], 2.0, 1.0];
    puller.say(json!({"type": "drag", "body": 9, "point": [0, 0, 0], "target": target, "strength": 3})).await;
    let pulled = watcher.frame_where(|frame| frame.drags() == 1 && frame.position(9)[2] > 0.3).await;
    let force: f32 = (0..3).map(|k| pulled.f32(pulled.end() - 24 + 4 * k).powi(2)).sum::<f32>().sqrt();
    assert!(force > 0.0);
    drop(puller);
    watcher.frame_where(|frame| frame.drags() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_targets_lead_the_hand() {
    let address = start("hand");
    let mut client = Client::connect(&address).await;
    let pose = json!({"position": [0.2, 0.5, 0.1], "rotation": [0, 0, 0, 1]});
    client.say(json!({"type": "targets", "poses": {"palm": pose}})).await;
    // The fingers' own trackers hold against it: the palm comes half of the way.
    client.frame_where(|frame| frame.position(0)[1] > 0.3).await;
    client.say(json!({"type": "targets", "poses": {"palm": null}})).await;
    client.frame_where(|frame| frame.position(0)[1] < 0.26).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scrubbing_forking_and_playing_again() {
    let address = start("robot");
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "pause"})).await;
    client.frame_where(|frame| !frame.playing()).await;
    client.say(json!({"type": "step", "count": 100})).await;
    client.say(json!({"type": "seek", "take": 0, "step": 60})).await;
    let at_60 = client.frame_where(|frame| frame.step() == 60).await;
    client.say(json!({"type": "seek", "take": 0, "step": 90})).await;
    let at_90 = client.frame_where(|frame| frame.step() == 90).await;
    assert_ne!(at_60.poses(), at_90.poses());

    // Going on from 60 is the recording again.
    client.say(json!({"type": "seek", "take": 0, "step": 60})).await;
    client.say(json!({"type": "step", "count": 30})).await;
    let again = client.frame_where(|frame| frame.step() == 90).await;
    assert_eq!(again.poses(), at_90.poses());

    // A changed setting leaves it.
    client.say(json!({"type": "seek", "take": 0, "step": 60})).await;
    client.say(json!({"type": "set", "gravity": [0, 5, 0]})).await;
    let status = client.status_where(|status| status["takes"].as_array().unwrap().len() == 2).await;
    assert_eq!(
        (&status["take"], &status["takes"][1]["parent"], &status["takes"][1]["first"]),
        (&1.into(), &0.into(), &60.into())
    );
    client.say(json!({"type": "step", "count": 30})).await;
    let other = client.frame_where(|frame| frame.step() == 90).await;
    assert_ne!(other.poses(), at_90.poses());
    // The first take is as it was, and so are its settings.
    client.say(json!({"type": "seek", "take": 0, "step": 90})).await;
    let status = client.status_where(|status| status["take"] == 0).await;
    assert_eq!(status["settings"]["gravity"][1], -9.81);
    let back = client.frame_where(|frame| frame.u32(24) == 0 && frame.step() == 90).await;
    assert_eq!(back.poses(), at_90.poses());
}

#[test]
fn a_busy_port_gives_the_next_one() {
    let opening = || Opening::scene("pendulum").unwrap();
    let at = |port| Settings { port: Some(port), ..Settings::default() };
    let first = Studio::bind(opening(), at(0)).unwrap();
    let address = address_of(&first);
    let port: u16 = host(&address).rsplit(':').next().unwrap().parse().unwrap();
    let second = address_of(&Studio::bind(opening(), at(port)).unwrap());
    assert_ne!(host(&address), host(&second));
    assert_ne!(key(&address), key(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_posed_by_hand() {
    let address = start("robot:torques=off");
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    let hand = scene["bodies"].as_array().unwrap().iter().position(|body| body["name"] == "right_hand").unwrap();
    client.say(json!({"type": "set", "pose": true, "script": false, "budget": 2000.0})).await;
    let status = client.status_where(|status| status["settings"]["pose"] == true).await;
    assert_eq!((&status["settings"]["solver"], &status["settings"]["budget"]), (&json!("assembly"), &json!(2000.0)));

    // Nothing falls: with the torques off everything would. What is pulled comes, and stays when it is let go.
    let first = client.frame().await;
    let later = client.frame_where(|frame| frame.step() > first.step() + 30).await;
    let apart = |a: &Frame, b: &Frame, body: usize| {
        let (a, b) = (a.position(body), b.position(body));
        (0..3).map(|k| f64::from(a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
    };
    let settled = client.frame_where(|frame| frame.step() > later.step() + 30).await;
    assert!(
        (0..settled.bodies()).all(|body| apart(&settled, &later, body) < 1e-6),
        "a posed character moves by itself"
    );
    let [x, y, z] = settled.position(hand).map(f64::from);
    let target = [x, y + 0.15, z + 0.1];
    client.say(json!({"type": "drag", "body": hand, "point": [0, 0, 0], "target": target})).await;
    let near = |frame: &Frame| {
        let at = frame.position(hand);
        (0..3).all(|k| (f64::from(at[k]) - target[k]).abs() < 1e-4)
    };
    let reached = client.frame_where(near).await;
    client.say(json!({"type": "release"})).await;
    let kept = client.frame_where(|frame| frame.step() > reached.step() + 30).await;
    assert!(near(&kept), "the hand stays where it was put");

    // Moving again: it falls.
    client.say(json!({"type": "set", "pose": false})).await;
    client.status_where(|status| status["settings"]["solver"] == "tree:default").await;
    client.frame_where(|frame| apart(frame, &kept, hand) > 0.05).await;
    client
        .say(json!({"type": "drag", "body": 0, "point": [0, 0, 0], "target": [0, 0, 0], "rotation": [9, 0, 0, 0]}))
        .await;
    assert_eq!(client.told("error").await["code"], "studio/value");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_scene_is_brought_together_aloud() {
    let address = start("crowd_of_two");
    let mut client = Client::connect(&address).await;
    let status = client.status_where(|status| !status["notice"].is_null()).await;
    assert!(status["notice"]["text"].as_str().unwrap().contains("starts broken"), "{status}");
    let frame = client.frame().await;
    assert!(frame.f32(48) < 1e-5, "the largest joint gap is {} m", frame.f32(48));
}
