//! How a character holds itself, its clips and its marks, as a client asks for them.

mod common;

use common::{Client, ask, save};
use serde_json::{Value, json};
use std::path::PathBuf;
use supple_assets::{Files, Recipe};
use supple_studio::Opening;

fn character(text: &str) -> Option<Opening> {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from) else {
        assert!(std::env::var_os("SUPPLE_REQUIRE_ASSETS").is_none(), "SUPPLE_ASSETS names no folder");
        eprintln!("SKIPPED: no models made by others (set SUPPLE_ASSETS)");
        return None;
    };
    let recipe = Recipe::of_file(&assets.join(text).to_string_lossy());
    Some(Opening::of_file(recipe.make(&Files::default()).unwrap()))
}

fn started(text: &str) -> Option<String> {
    Some(common::run(character(text)?, "test", None).0)
}

/// Whether every body is in this state.
fn all(status: &Value, state: &str) -> bool {
    status["tones"]["bodies"].as_array().is_some_and(|bodies| bodies.iter().all(|b| b == state))
}

/// The first status for which this holds; it is asked for, as one may have gone by.
async fn status_where(client: &mut Client, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        client.say(json!({"type": "pause"})).await;
        let status = client.told("status").await;
        if holds(&status) {
            return status;
        }
    }
    panic!("it does not come to hold: {}", client.told("status").await);
}

/// A client that has paused the run, the step at which it stands, and the status there.
async fn paused(address: &str) -> (Client, u32, Value) {
    let mut client = Client::connect(address).await;
    client.say(json!({"type": "pause"})).await;
    let step = client.frame_where(|frame| !frame.playing()).await.step();
    client.say(json!({"type": "pause"})).await;
    let status = status_where(&mut client, |status| status["playing"] == false).await;
    (client, step, status)
}

#[tokio::test(flavor = "multi_thread")]
async fn let_go_in_the_midst_of_a_walk_it_falls_and_comes_back() {
    let Some(address) = started("gltf/CesiumMan.glb#0") else { return };
    let (mut client, begin, status) = paused(&address).await;
    assert!(all(&status, "follow"), "{}", status["tones"]);
    assert_eq!(status["tones"]["carried"], 1.0);
    client.say(json!({"type": "step", "count": 60})).await;
    let walking = client.frame_where(|frame| frame.step() == begin + 60).await;
    let bodies = status["tones"]["bodies"].as_array().unwrap().len();
    let height = |frame: &common::Frame| (0..bodies).map(|b| frame.position(b)[1]).sum::<f32>() / bodies as f32;
    client.say(json!({"type": "state", "state": "loose", "blend": 0.1})).await;
    status_where(&mut client, |status| all(status, "loose")).await;
    client.say(json!({"type": "step", "count": 180})).await;
    let fallen = client.frame_where(|frame| frame.step() == begin + 240).await;
    assert!(height(&fallen) < 0.6 * height(&walking), "{} of {}", height(&fallen), height(&walking));
    let status = status_where(&mut client, |status| status["tones"]["carried"] == 0.0).await;
    assert_eq!(status["marks"][0]["step"], begin + 60);
    // Back in the clip, carried.
    client.say(json!({"type": "state", "state": "follow", "blend": 1})).await;
    client.say(json!({"type": "step", "count": 120})).await;
    let back = client.frame_where(|frame| frame.step() == begin + 360).await;
    assert!((height(&back) - height(&walking)).abs() < 0.05, "{} of {}", height(&back), height(&walking));
    // At an earlier step it is as it was then; a change there begins another take.
    client.say(json!({"type": "seek", "take": 0, "step": begin + 200})).await;
    status_where(&mut client, |status| all(status, "loose")).await;
    client.say(json!({"type": "seek", "take": 0, "step": begin + 30})).await;
    status_where(&mut client, |status| all(status, "follow") && status["take"] == 0).await;
    client.say(json!({"type": "state", "state": "limp", "bodies": [3, 4]})).await;
    let status = status_where(&mut client, |status| status["take"] == 1).await;
    assert_eq!((&status["tones"]["bodies"][3], &status["tones"]["bodies"][0]), (&json!("limp"), &json!("follow")));
    client.say(json!({"type": "undo"})).await;
    status_where(&mut client, |status| status["take"] == 0 && all(status, "follow")).await;
    client.say(json!({"type": "redo"})).await;
    status_where(&mut client, |status| status["take"] == 1 && status["tones"]["bodies"][3] == "limp").await;
    // The file keeps it.
    let bytes = save(&address).await;
    let file = supple::timeline::file::read(&bytes).unwrap();
    assert_eq!(file.timeline.marks(0).len(), 2);
    assert_eq!(file.timeline.marks(1).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_act_when_their_step_comes() {
    let Some(address) = started("gltf/CesiumMan.glb#0") else { return };
    let (mut client, begin, _) = paused(&address).await;
    client.say(json!({"type": "state", "state": "limp", "blend": 0.2, "at": begin + 20})).await;
    client.say(json!({"type": "mark", "name": "here it falls", "at": begin + 20})).await;
    let status = status_where(&mut client, |status| status["marks"].as_array().is_some_and(|m| m.len() == 2)).await;
    assert!(all(&status, "follow"), "{status}");
    client.say(json!({"type": "step", "count": 20})).await;
    client.say(json!({"type": "step", "count": 5})).await;
    client.frame_where(|frame| frame.step() == begin + 25).await;
    client.say(json!({"type": "pause"})).await;
    status_where(&mut client, |status| all(status, "limp")).await;
    client.say(json!({"type": "mark", "name": "late", "at": begin + 3})).await;
    assert_eq!(client.told("error").await["code"], "studio/value");
    client.say(json!({"type": "unmark", "mark": 0})).await;
    assert_eq!(client.told("error").await["code"], "studio/value");
    client.say(json!({"type": "unmark", "mark": 1})).await;
    status_where(&mut client, |status| status["marks"].as_array().is_some_and(|m| m.len() == 1)).await;
    for wrong in [
        json!({"type": "state", "state": "floating"}),
        json!({"type": "state", "state": "loose", "blend": -1}),
        json!({"type": "state", "state": "loose", "bodies": [999]}),
        json!({"type": "clip", "clip": "no such clip"}),
        json!({"type": "clip", "speed": 1000}),
        json!({"type": "hits", "hits": [-1, 0]}),
    ] {
        client.say(wrong.clone()).await;
        let refusal = client.told("error").await;
        assert!(refusal["code"] == "studio/value" || refusal["code"] == "tone/value", "{wrong}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clips_begin_in_their_first_pose_and_go_over_into_one_another() {
    let Some(address) = started("gltf/platformer-robot.glb") else { return };
    let mut client = Client::connect(&address).await;
    let scene = client.told("scene").await;
    let clips: Vec<String> =
        scene["clips"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect();
    assert!(clips.len() > 2, "{clips:?}");
    client.say(json!({"type": "clip", "clip": clips[0]})).await;
    let scene = client.told("scene").await;
    assert!(scene["name"].as_str().unwrap().ends_with(&format!("#{}", clips[0])), "{}", scene["name"]);
    client.say(json!({"type": "pause"})).await;
    let status = status_where(&mut client, |status| status["tones"]["clip"]["name"] == clips[0].as_str()).await;
    assert!(all(&status, "follow"));
    client.say(json!({"type": "seek", "take": 0, "step": 0})).await;
    let generation = scene["generation"].as_u64().unwrap() as u32;
    let frame = client.frame_where(|frame| frame.u32(4) == generation && !frame.playing() && frame.step() == 0).await;
    for (b, body) in scene["bodies"].as_array().unwrap().iter().enumerate() {
        for k in 0..3 {
            let start = body["start"]["position"][k].as_f64().unwrap();
            // A clip may turn hinges askew: the nearest pose that they allow.
            assert!((f64::from(frame.position(b)[k]) - start).abs() < 0.02, "{}", body["name"]);
        }
    }
    client.say(json!({"type": "seek", "take": 0, "step": 0})).await;
    client.say(json!({"type": "clip", "clip": clips[1], "fade": 0.3})).await;
    status_where(&mut client, |status| status["tones"]["clip"]["name"] == clips[1].as_str()).await;
    client.say(json!({"type": "clip", "speed": 0.5, "again": true})).await;
    status_where(&mut client, |status| status["tones"]["clip"]["speed"] == 0.5).await;
    client.say(json!({"type": "step", "count": 60})).await;
    client.frame_where(|frame| frame.u32(4) == generation && frame.step() == 60).await;
    // Undoing leads back to the scene without a clip.
    for _ in 0..3 {
        client.say(json!({"type": "undo"})).await;
    }
    status_where(&mut client, |status| status["tones"]["clip"].is_null()).await;
    let (code, _) = ask(&address, "GET", "/take", b"").await;
    assert_eq!(code, 200);
}
