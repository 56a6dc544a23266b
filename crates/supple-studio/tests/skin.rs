//! Soft skin as clients meet it: what is told of it, balls that poke it, vertices that are pulled, and what is refused.

mod common;

use common::{Client, Frame, start};
use serde_json::{Value, json};
use supple::glam::{DMat3, DQuat, DVec3, DVec4};
use supple::skin::Skin;
use supple::{Pose, Scene};

/// What a frame tells of the skin, by docs/protocol.md.
struct Told {
    displacements: Vec<DVec3>,
    pressures: Vec<(u32, DVec3)>,
    tested: Vec<u32>,
    balls: Vec<(DVec3, f32)>,
    grabs: Vec<(u32, DVec3)>,
}

impl Told {
    fn largest(&self) -> f64 {
        self.displacements.iter().map(|d| d.length()).fold(0.0, f64::max)
    }
}

fn skin_of(frame: &Frame) -> Told {
    let (bodies, joints, targets, drags) = (frame.bodies(), frame.u32(32), frame.u32(36), frame.drags());
    let mut at = frame.head() + 28 * bodies + 32 * (joints as usize + targets as usize + drags);
    at += 4 + 28 * frame.u32(at) as usize; // the take beside it
    at += 4 + 44 * frame.u32(at) as usize; // contacts of bodies
    at += 4 + 12 * frame.u32(at) as usize; // nodes of flesh
    at += 60 + 40 * frame.u32(at + 56) as usize; // directing
    at += 4 + 32 * frame.u32(at) as usize; // moved obstacles
    let mut next = |bytes: usize| {
        at += bytes;
        at - bytes
    };
    let vec = |at: usize| DVec3::from([0, 4, 8].map(|k| f64::from(frame.f32(at + k))));
    let mut count = frame.u32(next(4));
    let displacements = (0..count).map(|_| vec(next(12))).collect();
    count = frame.u32(next(4));
    let pressures = (0..count).map(|_| next(16)).map(|at| (frame.u32(at), vec(at + 4))).collect();
    count = frame.u32(next(4));
    let tested = (0..count).map(|_| frame.u32(next(4))).collect();
    count = frame.u32(next(4));
    let balls = (0..count).map(|_| next(16)).map(|at| (vec(at), frame.f32(at + 12))).collect();
    count = frame.u32(next(4));
    let grabs = (0..count).map(|_| next(20)).map(|at| (frame.u32(at), vec(at + 4))).collect();
    assert_eq!(next(0), frame.0.len(), "nothing comes after it");
    Told { displacements, pressures, tested, balls, grabs }
}

fn poses(frame: &Frame) -> Vec<Pose> {
    let number = |body: usize, k: usize| f64::from(frame.f32(frame.head() + 28 * body + 4 * k));
    let pose = |b: usize| {
        let turn = DQuat::from_xyzw(number(b, 3), number(b, 4), number(b, 5), number(b, 6)).normalize();
        Pose::new(turn, DVec3::new(number(b, 0), number(b, 1), number(b, 2)))
    };
    (0..frame.bodies()).map(pose).collect()
}

/// Pauses after the first steps and goes to the start: what is done there begins take 1.
async fn at_rest(scene: &str) -> (Client, Value) {
    let address = start(scene);
    let mut client = Client::connect(&address).await;
    let told = client.told("scene").await;
    client.frame_where(|frame| frame.step() >= 1).await;
    client.say(json!({"type": "pause"})).await;
    client.say(json!({"type": "seek", "take": 0, "step": 0})).await;
    client.frame_where(|frame| !frame.playing() && frame.step() == 0).await;
    (client, told)
}

/// Does steps one by one; returns the frame of the last.
async fn go(client: &mut Client, from: u32, steps: u32) -> Frame {
    for step in from + 1..from + steps {
        client.say(json!({"type": "step"})).await;
        client.frame_where(|frame| frame.step() == step).await;
    }
    client.say(json!({"type": "step"})).await;
    client.frame_where(|frame| frame.step() == from + steps).await
}

/// The vertex on top of the middle of the skin.
fn top(skin: &Skin, scene: &Scene) -> (usize, DVec3) {
    let mut places = Vec::new();
    skin.positions(&scene.state, &mut places);
    let middle = places.iter().copied().sum::<DVec3>() / places.len() as f64;
    let height = |p: DVec3| p.y - (p - middle).with_y(0.0).length();
    places.into_iter().enumerate().max_by(|a, b| height(a.1).total_cmp(&height(b.1))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bones_and_displacements_give_the_surface() {
    for name in ["tube:2", "tube:2,map=linear"] {
        let (mut client, told) = at_rest(name).await;
        let frame = go(&mut client, 0, 40).await;
        let mut scene = Scene::parse(name).unwrap();
        let skin = scene.model.skin().unwrap();
        let seen = skin_of(&frame);
        assert_eq!(seen.displacements.len(), skin.nodes());
        assert!(seen.largest() > 1e-5, "it moves beside the bones: {} m", seen.largest());
        // as the protocol tells it
        let numbers = |key: &str| -> Vec<f64> {
            told["skin"][key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let (rest, centres, bodies, weights) =
            (numbers("rest"), numbers("centres"), numbers("bodies"), numbers("weights"));
        let from_rest: Vec<Pose> = told["skin"]["from_rest"].as_array().unwrap().iter().map(pose_told).collect();
        let carried: Vec<Pose> = poses(&frame).iter().zip(&from_rest).map(|(pose, rest)| pose.then(*rest)).collect();
        let vec = |list: &[f64], k: usize| DVec3::new(list[3 * k], list[3 * k + 1], list[3 * k + 2]);
        let place = |v: usize| {
            let own = || (4 * v..4 * v + 4).map(|k| (carried[bodies[k] as usize], weights[k]));
            let blend = |p: DVec3| own().map(|(pose, w)| pose.transform_point(p) * w).sum::<DVec3>();
            let (u, p) = (vec(&rest, v) + seen.displacements[v], vec(&centres, v));
            if told["skin"]["map"] == "linear" {
                return blend(u);
            }
            let first = DVec4::from(own().next().unwrap().0.rotation);
            let n: DVec4 = own()
                .map(|(pose, w)| DVec4::from(pose.rotation) * (w * DVec4::from(pose.rotation).dot(first).signum()))
                .sum();
            DMat3::from_quat(DQuat::from_vec4(n.normalize())) * (u - p) + blend(p)
        };
        // as the engine has it
        scene.state.bodies.iter_mut().zip(poses(&frame)).for_each(|(body, pose)| {
            (body.position, body.orientation) = (pose.translation, pose.rotation);
        });
        scene.state.nodes.iter_mut().zip(&seen.displacements).for_each(|(node, d)| node.position = *d);
        let mut places = Vec::new();
        scene.model.skin().unwrap().positions(&scene.state, &mut places);
        let apart = (0..places.len()).map(|v| place(v).distance(places[v])).fold(0.0, f64::max);
        assert!(apart < 1e-6, "{name}: {apart} m"); // the numbers are told in single precision
    }
}

fn pose_told(frame: &Value) -> Pose {
    let numbers =
        |key: &str| -> Vec<f64> { frame[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    let (t, q) = (numbers("position"), numbers("rotation"));
    Pose::new(DQuat::from_xyzw(q[0], q[1], q[2], q[3]), DVec3::new(t[0], t[1], t[2]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ball_dents_the_skin_and_its_poke_is_recorded() {
    let (mut client, _) = at_rest("tube:2").await;
    let scene = Scene::parse("tube:2").unwrap();
    let skin = scene.model.skin().unwrap();
    let (_, at) = top(skin, &scene);
    let way = -DVec3::Y;
    let radius = 0.5 * skin.depth + skin.edge;
    // Without weight nothing but the ball touches it, pinned it does not fly away: take 1.
    client.say(json!({"type": "set", "gravity": [0.0, 0.0, 0.0]})).await;
    for body in 0..2 {
        client.say(json!({"type": "pin", "body": body, "on": true})).await;
    }
    let quiet = skin_of(&go(&mut client, 0, 1).await);
    assert!(quiet.balls.is_empty());
    let poke = |deep: f64| json!({"type": "poke", "centre": (at + way * (deep - radius)).to_array(), "radius": radius});
    client.say(poke(0.0)).await;
    client.say(poke(0.8 * skin.depth)).await;
    let frame = go(&mut client, 1, 12).await;
    let dented = skin_of(&frame);
    assert_eq!(dented.balls.len(), 1);
    assert!((f64::from(dented.balls[0].1) - radius).abs() < 1e-6);
    assert!(
        dented.balls[0].0.distance(at + way * (0.8 * skin.depth - radius)) < 1e-5,
        "the ball came where it was wanted"
    );
    assert!(dented.largest() > 0.2 * skin.depth, "{} m deep", dented.largest());
    assert!(!dented.pressures.is_empty() && !dented.tested.is_empty());
    let push: DVec3 = dented.pressures.iter().map(|(_, force)| *force).sum();
    assert!(push.dot(way) > 0.0, "{push} N");
    // let go, and back to the same step: the same bytes but for what is measured by the clock
    client.say(json!({"type": "release"})).await;
    let later = skin_of(&go(&mut client, 13, 30).await);
    assert!(later.balls.is_empty());
    client.say(json!({"type": "seek", "take": 1, "step": 13})).await;
    let again = skin_of(&client.frame_where(|frame| frame.step() == 13).await);
    assert_eq!(again.displacements, dented.displacements);
    assert_eq!(again.balls, dented.balls);
    assert_eq!(again.pressures, dented.pressures);
    // poking there begins another take
    client.say(poke(0.0)).await;
    let status = client.status_where(|status| status["takes"].as_array().unwrap().len() == 3).await;
    assert_eq!(status["take"], 2);
    assert_eq!(status["undo"], "the new take 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grabbed_vertex_follows() {
    let (mut client, _) = at_rest("tube:2").await;
    let scene = Scene::parse("tube:2").unwrap();
    let skin = scene.model.skin().unwrap();
    let (vertex, at) = top(skin, &scene);
    let target = at + DVec3::new(0.0, 3.0 * skin.depth, 0.0);
    client.say(json!({"type": "grab", "vertex": vertex, "target": target.to_array()})).await;
    let frame = go(&mut client, 0, 30).await;
    let told = skin_of(&frame);
    assert_eq!(told.grabs.len(), 1);
    assert_eq!(told.grabs[0].0 as usize, vertex);
    assert!(told.displacements[vertex].length() > 0.02 * skin.depth, "{}", told.displacements[vertex]);
    client.say(json!({"type": "release"})).await;
    assert!(skin_of(&go(&mut client, 30, 1).await).grabs.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn touches_that_cannot_be_are_refused_with_the_reason() {
    let (mut client, _) = at_rest("tube:2").await;
    let centre = [0.0, 0.0, 0.0];
    let wrong = [
        (json!({"type": "poke", "centre": centre, "radius": 0.0}), "the radius of a ball is 0 m"),
        (json!({"type": "poke", "centre": centre, "radius": -1.0}), "the radius of a ball is -1 m"),
        (json!({"type": "poke", "centre": centre, "radius": 1e300}), "give 0.0001 to 100 m"),
        (json!({"type": "poke", "centre": [0.0, 1e9, 0.0], "radius": 0.1}), "within 1,000,000 m"),
        (json!({"type": "poke", "centre": centre}), "radius"),
        (json!({"type": "poke", "centre": centre, "radius": null}), "null"),
        (json!({"type": "grab", "vertex": 99999, "target": centre}), "there is no vertex 99999: the skin has"),
        (json!({"type": "grab", "vertex": 0, "target": [0.0, -1e7, 0.0]}), "a target in metres"),
        (json!({"type": "grab", "vertex": 0, "target": centre, "strength": -1.0}), "strength up to 100"),
    ];
    for (message, reason) in wrong {
        client.say(message.clone()).await;
        let error = client.told("error").await;
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(reason), "{message}: {text}");
    }
    client.say(json!({"type": "step"})).await;
    let frame = client.frame_where(|frame| frame.step() == 1).await;
    let told = skin_of(&frame);
    assert!(told.balls.is_empty() && told.grabs.is_empty());

    let address = start("robot");
    let mut client = Client::connect(&address).await;
    for message in [
        json!({"type": "poke", "centre": centre, "radius": 0.1}),
        json!({"type": "grab", "vertex": 0, "target": centre}),
    ] {
        client.say(message).await;
        let text = client.told("error").await["message"].to_string();
        assert!(text.contains("the scene has no skin"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_a_large_skin_is_small() {
    let (mut client, told) = at_rest("deer:8408").await;
    client.say(json!({"type": "step"})).await;
    let frame = client.frame_where(|frame| frame.step() == 1).await;
    let vertices = skin_of(&frame).displacements.len();
    assert!(vertices >= 8000, "{vertices}");
    let bytes = frame.0.len();
    println!("{vertices} vertices, {} bodies: {bytes} bytes a frame", frame.bodies());
    println!("{} bytes of scene", told.to_string().len());
    assert!(bytes < 14 * vertices + 20_000, "{bytes} bytes");
}
