//! Hair, tails and clothes: chains that sway, settle, keep out of the body, and do the same at any frame rate.

use serde_json::{Value, json};
use std::path::Path;
use supple::glam::DVec3;
use supple::tone::{Change, Tone};
use supple::{BodyId, Input, Model, Pose, Scene, State, Target, Twist, Work, Wrench, step};
use supple_assets::{Character, Class};

/// The corners and sides of a box of this size around the origin, as buffers of a glTF mesh.
fn cube() -> (Vec<u8>, Vec<u8>) {
    let corners = (0..8).flat_map(|k: u32| [k & 1, k >> 1 & 1, k >> 2].map(|bit| bit as f32 - 0.5));
    let sides: [[u16; 4]; 6] = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let triangles = sides.iter().flat_map(|[a, b, c, d]| [*a, *b, *c, *a, *c, *d]);
    (corners.flat_map(f32::to_le_bytes).collect(), triangles.flat_map(u16::to_le_bytes).collect())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |sum, b| sum << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for k in 0..4 {
            let letter = if k <= three.len() { LETTERS[(bits >> (18 - 6 * k) & 63) as usize] } else { b'=' };
            out.push(letter.into());
        }
    }
    out
}

/// A bone: its name, the one above, its origin, the box that it carries: centre and size.
type BoneAt = (&'static str, Option<usize>, [f64; 3], Option<([f64; 3], [f64; 3])>);

/// A file of boxes that hang on each other, without a skin.
fn figure(bones: &[BoneAt], extensions: &Value) -> Value {
    let mut nodes: Vec<Value> = Vec::new();
    for (k, (name, parent, at, _)) in bones.iter().enumerate() {
        let above = parent.map_or([0.0; 3], |p| bones[p].2);
        let children: Vec<usize> = (0..bones.len()).filter(|c| bones[*c].1 == Some(k)).collect();
        let offset = [0, 1, 2].map(|i| at[i] - above[i]);
        let mut node = json!({ "name": name, "translation": offset });
        if !children.is_empty() {
            node["children"] = json!(children);
        }
        nodes.push(node);
    }
    for (k, (_, _, at, carried)) in bones.iter().enumerate() {
        let Some((centre, size)) = carried else { continue };
        let added = nodes.len();
        let offset = [0, 1, 2].map(|i| centre[i] - at[i]);
        nodes.push(json!({ "name": format!("mesh {k}"), "mesh": 0, "translation": offset, "scale": size }));
        let below = nodes[k]["children"].as_array().cloned().unwrap_or_default();
        nodes[k]["children"] = json!(below.into_iter().chain([json!(added)]).collect::<Vec<_>>());
    }
    let (corners, triangles) = cube();
    let still: Vec<u8> =
        [0.0f32, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let bytes = [&corners[..], &triangles[..], &still[..]].concat();
    let view = |from: usize, length: usize| json!({ "buffer": 0, "byteOffset": from, "byteLength": length });
    let times = corners.len() + triangles.len();
    let views = [view(0, corners.len()), view(corners.len(), triangles.len()), view(times, 8), view(times + 8, 32)];
    // A clip that moves nothing: what it names are bones.
    let channels: Vec<Value> =
        (0..bones.len()).map(|k| json!({ "sampler": 0, "target": { "node": k, "path": "rotation" } })).collect();
    json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [0] }], "nodes": nodes,
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1 }] }],
        "accessors": [{ "bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3" },
            { "bufferView": 1, "componentType": 5123, "count": 36, "type": "SCALAR" },
            { "bufferView": 2, "componentType": 5126, "count": 2, "type": "SCALAR", "min": [0.0], "max": [1.0] },
            { "bufferView": 3, "componentType": 5126, "count": 2, "type": "VEC4" }],
        "animations": [{ "name": "still", "channels": channels, "samplers": [{ "input": 2, "output": 3 }] }],
        "bufferViews": views,
        "buffers": [{ "byteLength": bytes.len(), "uri": format!("data:application/octet-stream;base64,{}", base64(&bytes)) }],
        "extensions": extensions,
    })
}

fn read(file: &Value) -> Character {
    Character::from_bytes(Path::new("avatar.vrm"), file.to_string().into_bytes()).unwrap()
}

/// A trunk with a head, two legs, and a braid of three bones that hangs down before the trunk, a hand's breadth from it.
const BONES: [BoneAt; 13] = [
    ("a", None, [0.0, 0.9, 0.0], Some(([0.0, 1.1, 0.0], [0.4, 0.5, 0.2]))),
    ("b", Some(0), [0.0, 1.4, 0.0], Some(([0.0, 1.55, 0.05], [0.2, 0.25, 0.3]))),
    ("c.l", Some(0), [0.1, 0.85, 0.0], Some(([0.1, 0.65, 0.0], [0.12, 0.4, 0.12]))),
    ("d.l", Some(2), [0.1, 0.45, 0.0], Some(([0.1, 0.27, 0.0], [0.1, 0.36, 0.1]))),
    ("e.l", Some(3), [0.1, 0.08, 0.0], Some(([0.1, 0.04, 0.06], [0.1, 0.08, 0.25]))),
    ("c.r", Some(0), [-0.1, 0.85, 0.0], Some(([-0.1, 0.65, 0.0], [0.12, 0.4, 0.12]))),
    ("d.r", Some(5), [-0.1, 0.45, 0.0], Some(([-0.1, 0.27, 0.0], [0.1, 0.36, 0.1]))),
    ("e.r", Some(6), [-0.1, 0.08, 0.0], Some(([-0.1, 0.04, 0.06], [0.1, 0.08, 0.25]))),
    ("f1", Some(1), [0.0, 1.5, 0.24], Some(([0.0, 1.42, 0.24], [0.03, 0.14, 0.03]))),
    ("f2", Some(8), [0.0, 1.35, 0.24], Some(([0.0, 1.27, 0.24], [0.03, 0.14, 0.03]))),
    ("f3", Some(9), [0.0, 1.2, 0.24], Some(([0.0, 1.12, 0.24], [0.03, 0.14, 0.03]))),
    ("f4", Some(10), [0.0, 1.05, 0.24], None),
    ("g", Some(0), [0.0, 1.0, -0.1], None),
];
const BRAID: [usize; 3] = [8, 9, 10];
/// The trunk's sphere against which the braid may swing: centre and radius.
const BALL: ([f64; 3], f64) = ([0.0, 1.15, 0.0], 0.16);

/// The figure as an avatar whose braid springs, with a ball in its trunk.
fn avatar(stiffness: f64, gravity: f64) -> Character {
    let human = |k: usize| json!({ "node": k });
    let bones = json!({ "hips": human(0), "head": human(1), "leftUpperLeg": human(2), "leftLowerLeg": human(3),
        "leftFoot": human(4), "rightUpperLeg": human(5), "rightLowerLeg": human(6), "rightFoot": human(7) });
    let joint = |node: usize| {
        json!({ "node": node, "stiffness": stiffness, "dragForce": 0.2, "hitRadius": 0.02,
        "gravityPower": gravity, "gravityDir": [0, 0, 1] })
    };
    let (centre, radius) = BALL;
    let offset = [0, 1, 2].map(|i| centre[i] - BONES[0].2[i]);
    read(&figure(
        &BONES,
        &json!({ "VRMC_vrm": { "specVersion": "1.0", "humanoid": { "humanBones": bones } },
        "VRMC_springBone": { "specVersion": "1.0",
            "colliders": [{ "node": 0, "shape": { "sphere": { "offset": offset, "radius": radius } } }],
            "colliderGroups": [{ "colliders": [0] }],
            "springs": [{ "name": "braid", "joints": (8..12).map(joint).collect::<Vec<_>>(), "colliderGroups": [0] }] } }),
    ))
}

fn scene(character: &Character) -> (Scene, Vec<usize>) {
    let scene = character.imported("avatar").unwrap().scene;
    let place = |name: &str| scene.model.bodies().iter().position(|body| body.name == name).unwrap();
    let braid = BRAID.map(|k| place(BONES[k].0)).to_vec();
    (scene, braid)
}

/// Runs it, the pelvis led to and fro until `shaken`, with a force on the last bone of the braid.
fn run(scene: &Scene, dt: f64, seconds: f64, shaken: f64, push: DVec3, mut look: impl FnMut(&Model, &State)) -> State {
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let hold = scene.input.targets.iter().position(Option::is_some).unwrap();
    let held = scene.input.targets[hold].unwrap();
    let last = scene.model.bodies().iter().position(|body| body.name == "f3").unwrap();
    for _ in 0..(seconds / dt).round() as usize {
        let mut input = Input { dt, ..scene.input.clone() };
        let end = state.time + dt;
        let (side, speed) = if end < shaken {
            let turn = std::f64::consts::TAU * end;
            (0.06 * (1.0 - turn.cos()), 0.06 * std::f64::consts::TAU * turn.sin())
        } else {
            (0.0, 0.0)
        };
        let pose = Pose::new(held.pose.rotation, held.pose.translation + DVec3::X * side);
        input.targets[hold] = Some(Target { pose, velocity: Twist::new(DVec3::X * speed, DVec3::ZERO) });
        input.wrenches.push((BodyId(last as u32), Wrench::new(push, DVec3::ZERO)));
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        look(&scene.model, &state);
    }
    state
}

#[test]
fn springs_of_an_avatar_sway_settle_and_do_the_same_at_any_frame_rate() {
    let character = avatar(1.0, 0.0);
    for k in BRAID {
        let bone = character.rig.bones.iter().find(|bone| bone.name == BONES[k].0).unwrap();
        assert!(bone.sways && bone.class == Class::Tail && bone.strength == 0.0, "{bone:?}");
    }
    assert_eq!(character.rig.bones.iter().filter(|bone| bone.sways).count(), 3);
    let (scene, braid) = scene(&character);
    let tip = braid[2];
    // Against the head, which carries it.
    let swing = |state: &State| state.bodies[tip].position - state.bodies[1].position;
    let rest = swing(&scene.state);
    // Thirty times a second, at every rate.
    let courses = [1, 2, 4, 8].map(|parts: usize| {
        let (mut course, mut k) = (Vec::new(), 0);
        run(&scene, 1.0 / (30 * parts) as f64, 1.5, 1.0, DVec3::ZERO, |_, state| {
            k += 1;
            if k % parts == 0 {
                course.push(swing(state));
            }
        });
        course
    });
    let far = |a: &[DVec3], b: &[DVec3]| a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max);
    // It lags behind the head by centimetres.
    let largest = far(&courses[3], &vec![rest; courses[3].len()]);
    assert!(largest > 0.02, "{largest} m");
    let off = [0, 1, 2].map(|k| far(&courses[k], &courses[3]) / largest);
    // What is left is the error of the step, of second order in dt: at 30 Hz a swing of ω = 20/s is two thirds of a radian a step. A rule for each frame would
    // have four times the stiffness at 120 Hz.
    assert!(off[0] < 0.3 && off[1] < 0.12 && off[2] < 0.04, "{off:?} of {largest} m");
    let state = run(&scene, 1.0 / 60.0, 4.0, 1.0, DVec3::ZERO, |_, _| {});
    let speed = braid.iter().map(|b| state.bodies[*b].velocity.linear.length()).fold(0.0, f64::max);
    // With γ = 13/s the swing is down by e^(−γ t / 2) = 3e-9 three seconds after the shaking; the figure on its hold creeps more.
    assert!(speed < 1e-3 && swing(&state).distance(rest) < 1e-3, "{speed} m/s, {:?}", swing(&state) - rest);
}

#[test]
fn a_braid_keeps_out_of_the_body_and_its_colliders() {
    let (scene, braid) = scene(&avatar(0.2, 0.0));
    let ball = |state: &State| {
        state.bodies[0].pose().transform_point(DVec3::from(BALL.0) - scene.model.bodies()[0].start.translation)
    };
    let (mut nearest, mut pressed) = (f64::INFINITY, 0.0f64);
    // As heavy as the braid, towards the trunk.
    let weight = braid.iter().map(|b| scene.model.bodies()[*b].mass).sum::<f64>() * 9.81;
    run(&scene, 1.0 / 60.0, 2.0, 1.0, DVec3::NEG_Z * weight, |model, state| {
        let centre = ball(state);
        for b in &braid {
            let placed = &model.bodies()[*b].shapes[0];
            let supple::Shape::Capsule { length, radius } = placed.shape else { panic!("{:?}", placed.shape) };
            assert!((radius - 0.02).abs() < 1e-9, "{radius}: not the radius of the file");
            let place = state.bodies[*b].pose().then(placed.body_from_shape);
            let local = place.inverse().transform_point(centre);
            let on_axis = DVec3::X * local.x.clamp(-0.5 * length, 0.5 * length);
            nearest = nearest.min(local.distance(on_axis) - radius - BALL.1);
        }
        pressed = pressed.max(model.bodies()[braid[2]].start.translation.z - state.bodies[braid[2]].position.z);
    });
    // It would go 10 cm further than the 4 cm that there are before the ball.
    assert!(pressed > 0.03, "it was pressed by {pressed} m alone");
    assert!(nearest > -2e-3, "{nearest} m within the ball");
}

#[test]
fn what_pulls_a_spring_tells_where_it_rests() {
    // Along Z as strongly as back to its pose, which hangs down: it rests at 45°.
    let (scene, braid) = scene(&avatar(1.0, 1.0));
    let state = run(&scene, 1.0 / 60.0, 4.0, 0.0, DVec3::ZERO, |_, _| {});
    let along =
        |b: usize| state.bodies[b].orientation * (scene.model.bodies()[b].start.rotation.conjugate() * DVec3::NEG_Y);
    let first = along(braid[0]);
    // Its weight, which the format has none of, pulls it down again: by 14° a unit of stiffness for a rod, more for a chain.
    assert!(first.z > 0.3 && first.z < 0.75, "{first}");
    assert!(along(braid[2]).z > first.z, "each bends on from the one before");
}

#[test]
fn what_sways_does_so_in_every_state_and_is_never_carried() {
    let (scene, braid) = scene(&avatar(1.0, 0.0));
    let mut tones = scene.tones();
    let (state, mut input) = (scene.state.clone(), scene.input.clone());
    for tone in [Tone::Posed, Tone::Loose, Tone::Limp] {
        tones.change(&scene.model, &state, &Change::to(tone, 0.0)).unwrap();
        tones.direct(&scene.model, &state, &[], &mut input);
        for (joint, asked) in scene.model.joints().iter().zip(&input.joints) {
            let sways = braid.contains(&joint.child.index());
            let own = (asked.stiffness_scale, asked.damping_scale) == (1.0, 1.0);
            assert_eq!(own, sways, "{tone:?} {}: {asked:?}", joint.name);
        }
        for (body, wrench) in &input.wrenches {
            assert!(!braid.contains(&body.index()) || *wrench == Wrench::ZERO, "{tone:?}");
        }
        let share = if tone == Tone::Posed { 1.0 } else { 0.0 };
        assert!((tones.carried(state.time) - share).abs() < 1e-12, "{tone:?}");
    }
}

#[test]
fn light_chains_that_no_clip_moves_sway_without_being_told_so() {
    let plain = read(&figure(&BONES, &json!({})));
    let swaying: Vec<&str> = plain.rig.bones.iter().filter(|bone| bone.sways).map(|bone| bone.name.as_str()).collect();
    assert_eq!(swaying, ["f1", "f2", "f3"]);
    let notes = plain.imported("avatar").unwrap().notes;
    assert!(notes.iter().any(|note| note.code == "import/sways"), "{notes:?}");
}
