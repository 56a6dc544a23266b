//! Things put into a scene, carried and thrown, as a client asks for them.

mod common;

use common::{Client, Frame, paused, saved, start};
use serde_json::{Value, json};

fn ball(name: &str, x: f64) -> Value {
    json!({"name": name, "kind": "ball", "position": [x, 0.1, 0.0], "size": [0.2, 0.2, 0.2], "mass": 2.0})
}

/// Where a body of this name is, and how many bodies there are.
async fn scene_of(address: &str) -> Value {
    Client::connect(address).await.told("scene").await
}

fn body(scene: &Value, name: &str) -> usize {
    scene["bodies"].as_array().unwrap().iter().position(|body| body["name"] == name).unwrap()
}

/// Says something that makes the model anew; returns the first frame of it.
async fn remade(client: &mut Client, message: Value) -> Frame {
    let generation = client.frame_now().await.u32(4);
    client.say(message).await;
    client.frame_where(|frame| frame.u32(4) != generation).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_stays_goes_on_bit_for_bit_when_things_come_and_go() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 30).await;
    let before = client.frame_now().await;
    let bodies = before.bodies();
    let poses = |frame: &Frame| frame.poses()[..28 * bodies].to_vec();
    let with = remade(&mut client, json!({"type": "things", "things": [ball("a", 3.0), ball("b", 4.0)]})).await;
    assert_eq!(with.bodies(), bodies + 2);
    assert_eq!(poses(&with), poses(&before));
    client.say(json!({"type": "step", "count": 20})).await;
    let moved = client.frame_where(|frame| frame.step() == 20).await;
    let kept = moved.position(bodies + 1);
    let less = remade(&mut client, json!({"type": "things", "things": [ball("b", 4.0)]})).await;
    assert_eq!(less.bodies(), bodies + 1);
    assert_eq!(poses(&less), poses(&moved));
    assert_eq!(less.position(bodies), kept, "the other thing stays where it rolled to");
    // Stairs are no bodies but stand in the way.
    let stairs = json!({"kind": "stairs", "position": [9.0, 0.0, 0.0], "size": [1.0, 0.5, 1.0]});
    remade(&mut client, json!({"type": "things", "things": [ball("b", 4.0), stairs]})).await;
    let scene = scene_of(&address).await;
    assert_eq!(scene["thing_bodies"], 1);
    assert_eq!(scene["things"][1]["name"], "stairs 1");
    assert_eq!(
        scene["obstacles"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| o["name"].as_str().unwrap().starts_with("stairs 1."))
            .count(),
        3
    );
    // Undo leads back, thing by thing.
    for count in [bodies + 1, bodies + 2, bodies] {
        let frame = remade(&mut client, json!({"type": "undo"})).await;
        assert_eq!(frame.bodies(), count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thing_is_carried_exactly_and_let_go() {
    let address = start("robot");
    let (mut client, _) = paused(&address, 5).await;
    remade(&mut client, json!({"type": "things", "things": [ball("it", 0.6)]})).await;
    let scene = scene_of(&address).await;
    let (hand, it) = (body(&scene, "left_hand"), body(&scene, "it"));
    let held = remade(&mut client, json!({"type": "hold", "thing": "it", "body": hand})).await;
    let apart = |frame: &Frame| {
        let (a, b) = (frame.position(hand), frame.position(it));
        (0..3).map(|k| f64::from(a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
    };
    let first = apart(&held);
    client.say(json!({"type": "step", "count": 60})).await;
    let later = client.frame_where(|frame| frame.step() == 60).await;
    assert!((apart(&later) - first).abs() < 1e-5, "{first} m, then {} m", apart(&later));
    assert_ne!(later.position(hand), held.position(hand), "the hand is moved");
    remade(&mut client, json!({"type": "hold", "thing": "it", "body": null})).await;
    client.say(json!({"type": "step", "count": 60})).await;
    let free = client.frame_where(|frame| frame.step() == 60).await;
    assert!((apart(&free) - first).abs() > 0.05, "{first} m, then {} m", apart(&free));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throw_is_a_take_that_is_saved_and_opened_again() {
    let address = start("ragdoll");
    let (mut client, _) = paused(&address, 3).await;
    remade(&mut client, json!({"type": "things", "things": [ball("it", 2.0)]})).await;
    let it = body(&scene_of(&address).await, "it");
    client.say(json!({"type": "step", "count": 2})).await;
    client.frame_where(|frame| frame.step() == 2).await;
    client.say(json!({"type": "throw", "thing": "it", "from": [0.0, 2.0, 5.0], "velocity": [0.0, 0.0, -6.0]})).await;
    client.say(json!({"type": "step", "count": 12})).await;
    let flown = client.frame_where(|frame| frame.step() == 14).await;
    // z = 5 − 6 t, y = 2 − ½ g t², in 12 steps of 1/60 s
    let [x, y, z] = flown.position(it).map(f64::from);
    let t = 12.0 / 60.0;
    assert!(
        x.abs() < 1e-6 && (z - (5.0 - 6.0 * t)).abs() < 1e-4 && (y - (2.0 - 0.5 * 9.81 * t * t)).abs() < 2e-2,
        "{x} {y} {z}"
    );
    client.say(json!({"type": "throw", "thing": "nothing", "from": [0, 0, 0], "velocity": [0, 0, 0]})).await;
    assert_eq!(client.told("error").await["code"], "studio/value");
    let file = saved(&address).await;
    assert_eq!(file.timeline.takes().len(), 2);
    // The takes name their things: opened again, they have the same bodies and end alike.
    let (other, _) = common::run(supple_studio::Opening::takes(&common::save(&address).await).unwrap(), "test", None);
    let scene = scene_of(&other).await;
    assert_eq!(scene["things"][0]["name"], "it");
    let mut again = Client::connect(&other).await;
    let end = again.frame_where(|frame| frame.step() == 14).await;
    assert_eq!(end.position(it), flown.position(it));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_things_are_refused_and_change_nothing() {
    let address = start("worm");
    let (mut client, _) = paused(&address, 0).await;
    client.say(json!({"type": "things", "things": [ball("a", 3.0)]})).await;
    let told = client.told("error").await;
    assert!(told["message"].as_str().unwrap().contains("flesh"), "{told}");
    let address = start("robot");
    let (mut client, _) = paused(&address, 0).await;
    let heavy = json!({"kind": "box", "position": [0, 0, 0], "size": [1, 1, 1], "mass": -1});
    let odd = json!({"kind": "teapot", "position": [0, 0, 0], "size": [1, 1, 1]});
    for (wrong, about) in
        [(vec![heavy], "mass"), (vec![odd], "teapot"), (vec![ball("a", 1.0), ball("a", 2.0)], "called")]
    {
        client.say(json!({"type": "things", "things": wrong})).await;
        let told = client.told("error").await;
        assert!(told["message"].as_str().unwrap().contains(about), "{told}");
    }
    assert_eq!(scene_of(&address).await["generation"], 0);
}
