//! Rigs as artists make them that no file of the assets has: made up here, so that rules are tried on what they were not made for.

mod common;
#[path = "common/made.rs"]
mod made;

use glam::{DMat4, DQuat, DVec3};
use made::{Made, Turned, glb};
use serde_json::{Value, json};
use std::path::Path;
use supple::{Contacts, Input, Wrench};
use supple_assets::{BakeSettings, Character, Class, Kind, Measured, Recording, Turn};

fn read(bones: &[Made], above: DMat4, clip: &[Turned]) -> Character {
    let bytes = glb(bones, above, clip);
    // To be looked at: SUPPLE_MADE names a folder.
    if let Some(folder) = std::env::var_os("SUPPLE_MADE") {
        std::fs::write(Path::new(&folder).join(format!("{}.glb", bones.len())), &bytes).unwrap();
    }
    Character::from_bytes(Path::new("made.glb"), bytes).unwrap_or_else(|e| panic!("{e}"))
}

fn scaled(by: f64) -> DMat4 {
    DMat4::from_scale(DVec3::splat(by))
}

/// The bounds that hold for every character.
fn is_sound(row: &Measured) {
    assert!(row.asymmetry <= 0.05 && row.head_share <= 0.15, "{row:?}");
    assert!(row.sideways <= 5.0 && row.torn <= 0.01 && row.rest_time <= 4.0, "{row:?}");
    assert!(row.clip_degrees <= 5.0 && row.clip_share <= 0.02, "{row:?}");
}

fn names(character: &Character) -> Vec<&str> {
    character.rig.bones.iter().map(|bone| bone.name.as_str()).collect()
}

/// No joint but shoulders and hips swings by more than 100°.
fn swings_within_bounds(character: &Character) {
    for bone in character.rig.bones.iter().filter(|b| !matches!(b.class, Class::UpperArm | Class::Thigh)) {
        if let Turn::Ball { swing, .. } = &bone.joint {
            let most = swing.about_y.max(swing.about_z).to_degrees();
            assert!(most <= 100.0 + 1e-9, "{}: {most}°", bone.name);
        }
    }
}

/// A person: trunk, head, arms, legs; `names` tells sides, `feet` what the feet hang from.
struct Person {
    bones: Vec<Made>,
    hips: usize,
    thighs: [usize; 2],
    calves: [usize; 2],
    feet: [usize; 2],
    head: usize,
    hand: usize,
}

/// Words for hips, spine, chest, neck, head, upper arm, forearm, hand, thigh, shin, foot.
type Words = [&'static str; 11];

fn person(words: Words, sides: [&str; 2], feet_on_root: bool) -> Person {
    let mut bones = vec![
        Made::new("Steuerung", None, [0.0, 0.0, 0.0], [0.0, 0.0, 0.1], 0.0),
        Made::new(words[0], Some(0), [0.0, 0.93, 0.0], [0.0, 1.05, 0.0], 0.13),
        Made::new(words[1], Some(1), [0.0, 1.05, 0.0], [0.0, 1.2, 0.0], 0.13),
        Made::new(words[2], Some(2), [0.0, 1.2, 0.0], [0.0, 1.45, 0.0], 0.14),
        Made::new(words[3], Some(3), [0.0, 1.45, 0.0], [0.0, 1.53, 0.0], 0.05),
        Made::new(words[4], Some(4), [0.0, 1.53, 0.0], [0.0, 1.75, 0.0], 0.08),
    ];
    let (mut thighs, mut calves, mut feet, mut hand) = ([0; 2], [0; 2], [0; 2], 0);
    for (k, side) in sides.iter().enumerate() {
        let x = if k == 0 { 1.0 } else { -1.0 };
        let at = bones.len();
        // Before the word, within it or after it.
        let name = |word: &str| if word.contains('*') { word.replace('*', side) } else { format!("{word}{side}") };
        bones.push(Made::new(name(words[5]), Some(3), [0.19 * x, 1.42, 0.0], [0.47 * x, 1.42, 0.0], 0.045));
        // A helper that carries half of the upper arm, and a pole that carries nothing.
        bones.push(Made::new(name("Twist_"), Some(at), [0.33 * x, 1.42, 0.0], [0.45 * x, 1.42, 0.0], 0.04));
        bones.push(Made::new(name(words[6]), Some(at), [0.47 * x, 1.42, 0.0], [0.72 * x, 1.42, 0.0], 0.038));
        bones.push(Made::new(name(words[7]), Some(at + 2), [0.72 * x, 1.42, 0.0], [0.9 * x, 1.42, 0.0], 0.03));
        bones.push(Made::new(name("pole_"), Some(0), [0.1 * x, 0.5, 0.6], [0.1 * x, 0.5, 0.7], 0.0));
        bones.push(Made::new(name(words[8]), Some(1), [0.1 * x, 0.9, 0.0], [0.1 * x, 0.5, 0.0], 0.07));
        bones.push(Made::new(name(words[9]), Some(at + 5), [0.1 * x, 0.5, 0.0], [0.1 * x, 0.1, 0.0], 0.055));
        let above = if feet_on_root { 0 } else { at + 6 };
        let mut foot = Made::new(name(words[10]), Some(above), [0.1 * x, 0.1, 0.0], [0.1 * x, 0.05, 0.18], 0.045);
        foot.shared = Some(at + 6);
        bones.push(foot);
        (thighs[k], calves[k], feet[k], hand) = (at + 5, at + 6, at + 7, at + 3);
    }
    Person { bones, hips: 1, thighs, calves, feet, head: 5, hand }
}

/// Bends the knees while feet stay where they are.
fn crouch(person: &Person, frames: usize) -> Vec<Turned> {
    let angle = |f: usize| 0.6 * (1.0 - (std::f64::consts::TAU * f as f64 / (frames - 1) as f64).cos()) / 2.0;
    let turns = |by: f64| (0..frames).map(|f| DQuat::from_rotation_x(by * angle(f))).collect::<Vec<_>>();
    let still = vec![DQuat::IDENTITY; frames];
    let hips = person.bones[person.hips].from;
    let lowered = (0..frames).map(|f| hips - DVec3::Y * (0.8 * (1.0 - angle(f).cos()))).collect();
    let mut clip: Vec<Turned> = vec![(person.hips, still.clone(), Some(lowered))];
    for k in 0..2 {
        clip.push((person.thighs[k], turns(-1.0), None));
        clip.push((person.calves[k], turns(2.0), None));
        let stays = vec![person.bones[person.feet[k]].from; frames];
        clip.push((person.feet[k], still.clone(), Some(stays)));
    }
    clip
}

/// Feet that are targets of IK and hang from a control without a vertex, in millimetres, with twist bones and poles, named in Spanish.
#[test]
fn feet_of_ik_in_millimetres_with_twist_bones() {
    let words = [
        "cadera",
        "columna",
        "pecho",
        "cuello",
        "cabeza",
        "brazo_",
        "antebrazo_",
        "mano_",
        "muslo_",
        "pantorrilla_",
        "pie_",
    ];
    let person = person(words, ["izquierdo", "derecho"], true);
    let character = read(&person.bones, scaled(1000.0), &crouch(&person, 21));
    let bones = &character.rig.bones;
    let known = names(&character);
    assert_eq!(character.rig.kind(), Kind::Biped, "{known:?}");
    assert!((character.height() - 1.75).abs() < 0.06 && (character.scale() - 1e-3).abs() < 1e-12, "{known:?}");
    for side in ["izquierdo", "derecho"] {
        let bone = |name: &str| bones.iter().find(|b| b.name == format!("{name}{side}")).unwrap();
        let foot = bone("pie_");
        assert_eq!(bones[foot.parent.unwrap()].name, format!("pantorrilla_{side}"), "{known:?}");
        for (name, class) in [
            ("muslo_", Class::Thigh),
            ("pantorrilla_", Class::Calf),
            ("pie_", Class::Foot),
            ("brazo_", Class::UpperArm),
            ("antebrazo_", Class::Forearm),
        ] {
            assert_eq!(bone(name).class, class, "{name}");
        }
        assert!(matches!(bone("pantorrilla_").joint, Turn::Hinge { .. }));
    }
    assert!(!known.iter().any(|n| n.contains("Twist") || n.contains("pole") || n.contains("Steuerung")), "{known:?}");
    swings_within_bounds(&character);
    let row = character.measure().unwrap();
    assert!(row.hinges_found >= 4, "{row:?}");
    is_sound(&row);
    // Baked, the feet are written below the control, where the simulation has them, in millimetres.
    let imported = character.imported("made").unwrap();
    let scene = &imported.scene;
    let (mut state, mut work, mut recording) =
        (scene.state.clone(), supple::Work::new(&scene.model), Recording::default());
    let mut input = scene.input.clone();
    input.targets.fill(None);
    for _ in 0..45 {
        supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
        recording.add(&scene.model, &input, &state, None);
    }
    let baked = character.bake(&scene.model, &recording, "fall", &BakeSettings::default());
    let again = Character::from_bytes(Path::new("baked.glb"), baked.bytes).unwrap();
    assert_eq!(again.scale(), character.scale());
    let clips = again.imported("again").unwrap().clips;
    let clip = clips.iter().find(|clip| clip.name() == "fall").unwrap();
    // Where bones begin; how their mass lies around that is found anew from the skin.
    let read_again = again.imported("again").unwrap();
    for (b, body) in state.bodies.iter().enumerate() {
        let here = body.pose().then(imported.links[b].body_from_link).translation;
        let same = read_again.links.iter().position(|link| link.name == imported.links[b].name).unwrap();
        let there = clip.at(state.time, same).pose.then(read_again.links[same].body_from_link).translation;
        assert!(here.distance(there) < 2e-3, "{}: {} m", bones[b].name, here.distance(there));
    }
}

const GERMAN: [&str; 11] = [
    "Becken",
    "Wirbel_1",
    "Brust",
    "Hals",
    "Kopf",
    "Oberarm.",
    "Unterarm.",
    "Hand.",
    "Oberschenkel.",
    "Unterschenkel.",
    "Fuss.",
];

/// A knee that a clip twists, eyes, a sword, a cape, in German, looking along X, in centimetres.
#[test]
fn a_twisted_knee_stays_a_hinge_and_small_parts_are_welded() {
    let mut person = person(GERMAN, ["L", "R"], false);
    for (k, x) in [0.03, -0.03].into_iter().enumerate() {
        let name = format!("Auge.{}", ["L", "R"][k]);
        let mut eye = Made::new(name, Some(person.head), [x, 1.64, 0.07], [x, 1.64, 0.095], 0.012);
        eye.shared = None;
        person.bones.push(eye);
    }
    let mut sword = Made::new("sword_socket", Some(person.hand), [-0.85, 1.42, 0.0], [-0.85, 1.42, 0.9], 0.02);
    sword.shared = None;
    person.bones.push(sword);
    let mut above = 3;
    for k in 0..4 {
        let y = 1.4 - 0.2 * f64::from(k);
        let here = person.bones.len();
        person.bones.push(Made::new(format!("cape_{k}"), Some(above), [0.0, y, -0.17], [0.0, y - 0.19, -0.18], 0.015));
        above = here;
    }
    // The left knee bends and turns about the shin by a radian, the right one only bends.
    let frames = 21;
    let share = |f: usize| (std::f64::consts::TAU * f as f64 / 20.0).sin().abs();
    let twisted = (0..frames).map(|f| DQuat::from_rotation_x(share(f)) * DQuat::from_rotation_y(share(f))).collect();
    let bent = (0..frames).map(|f| DQuat::from_rotation_x(share(f))).collect();
    let eyes = (0..frames).map(|f| DQuat::from_rotation_y(0.5 * share(f))).collect();
    let eye = person.bones.iter().position(|b| b.name == "Auge.L").unwrap();
    let clip: Vec<Turned> = vec![(person.calves[0], twisted, None), (person.calves[1], bent, None), (eye, eyes, None)];
    let above = DMat4::from_rotation_y(std::f64::consts::FRAC_PI_2) * scaled(100.0);
    let character = read(&person.bones, above, &clip);
    let (bones, known) = (&character.rig.bones, names(&character));
    assert_eq!(character.rig.kind(), Kind::Biped);
    let knee = |side: &str| bones.iter().find(|b| b.name == format!("Unterschenkel.{side}")).unwrap();
    let range = |side: &str| match &knee(side).joint {
        Turn::Hinge { axis, range } => (*axis, *range),
        other => panic!("{side}: {other:?}"),
    };
    let ((left, a), (right, b)) = (range("L"), range("R"));
    assert!((a.min - b.min).abs() < 1e-9 && (a.max - b.max).abs() < 1e-9, "{a:?} {b:?}");
    // Looking along X, knees bend about Z.
    assert!(left.z.abs() > 0.99 && right.z.abs() > 0.99, "{left} {right}");
    assert!(character.rig.notes.iter().any(|n| n.code == "import/beyond" && n.part == "Unterschenkel.L"));
    assert!(!known.iter().any(|n| n.contains("Auge") || n.contains("sword")), "{known:?}");
    let cape: Vec<bool> = bones.iter().filter(|b| b.name.starts_with("cape")).map(|b| b.sways).collect();
    assert_eq!(cape, [true; 4]);
    swings_within_bounds(&character);
    let row = character.measure().unwrap();
    assert!(row.hinges_found >= 4 && (row.height - 1.75).abs() < 0.06, "{row:?}");
    // A clip that no knee can do is followed as far as a knee goes: all else is as for any character.
    assert!(row.asymmetry <= 0.05 && row.sideways <= 5.0 && row.torn <= 0.01 && row.rest_time <= 4.0, "{row:?}");
}

/// An animal without names, with Z up in its own nodes, in units of 10 m, with a tail.
#[test]
fn an_animal_without_names_in_other_axes() {
    let name = |k: usize| format!("Bone.{k:03}");
    let mut bones = vec![
        Made::new(name(0), None, [0.0, 0.6, -0.35], [0.0, 0.62, 0.0], 0.14),
        Made::new(name(1), Some(0), [0.0, 0.62, 0.0], [0.0, 0.62, 0.35], 0.14),
        Made::new(name(2), Some(1), [0.0, 0.66, 0.38], [0.0, 0.82, 0.52], 0.07),
        Made::new(name(3), Some(2), [0.0, 0.82, 0.52], [0.0, 0.8, 0.78], 0.08),
    ];
    for (z, parent) in [(0.3, 1), (-0.35, 0)] {
        for x in [0.12, -0.12] {
            let at = bones.len();
            let joints = [[x, 0.6, z], [x, 0.36, z + 0.06], [x, 0.16, z - 0.05], [x, 0.04, z], [x, 0.03, z + 0.08]];
            for k in 0..4 {
                let above = if k == 0 { parent } else { at + k - 1 };
                let radius = [0.06, 0.045, 0.03, 0.03][k];
                bones.push(Made::new(name(at + k), Some(above), joints[k], joints[k + 1], radius));
            }
        }
    }
    let mut above = 0;
    for k in 0..4 {
        let here = bones.len();
        let z = -0.4 - 0.1 * f64::from(k);
        bones.push(Made::new(name(here), Some(above), [0.0, 0.66, z], [0.0, 0.66, z - 0.09], 0.015));
        above = here;
    }
    // Bones are told with Z up, a tenth as large, and the node above them turns that.
    let z_up = DMat4::from_rotation_x(-std::f64::consts::FRAC_PI_2);
    let told = z_up.inverse();
    for bone in &mut bones {
        bone.from = told.transform_point3(bone.from) * 0.1;
        bone.to = told.transform_point3(bone.to) * 0.1;
        bone.radius *= 0.1;
    }
    let character = read(&bones, z_up, &[]);
    let row = character.measure().unwrap();
    assert_eq!(row.kind, Kind::Quadruped, "{row:?}");
    assert!(row.hinges_found >= 8, "{row:?}");
    assert!((row.scale - 10.0).abs() < 1e-9, "{row:?}");
    assert!(row.asymmetry <= 0.05 && row.head_share <= 0.15 && row.sideways <= 5.0 && row.torn <= 0.01, "{row:?}");
    assert!(row.rest_time <= 4.0 && row.rest_speed < 0.01, "{row:?}");
    swings_within_bounds(&character);
    let swaying = character.rig.bones.iter().filter(|bone| bone.sways).count();
    assert_eq!(swaying, 4, "the tail");
    let head = character.rig.bones.iter().find(|bone| bone.name == name(3)).unwrap();
    assert_eq!(head.class, Class::Head);
}

/// Parts that are not neighbours touch each other without being asked to.
#[test]
fn an_arm_does_not_go_through_the_trunk() {
    let character = read(&person(GERMAN, ["L", "R"], false).bones, DMat4::IDENTITY, &[]);
    let scene = character.imported("made").unwrap().scene;
    let hand = scene.model.find_body("Hand.L").unwrap();
    // Limp, its hips held, its left hand pulled to the right with 40 N.
    let reached = |contacts: Option<Contacts>| {
        let (mut state, mut work) = (scene.state.clone(), supple::Work::new(&scene.model));
        let mut input = Input { stiffness_scale: 0.0, ..scene.input.clone() };
        input.contacts = contacts.unwrap_or(input.contacts);
        input.wrenches.push((hand, Wrench::new(DVec3::NEG_X * 40.0, DVec3::ZERO)));
        let mut least = f64::INFINITY;
        for _ in 0..120 {
            supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
            // How near the axis of the trunk the middle of the hand comes below the shoulder, in the frame of the chest.
            let chest = &state.bodies[scene.model.find_body("Brust").unwrap().index()];
            let seen = chest.pose().inverse().transform_point(state.bodies[hand.index()].position);
            let along = chest.orientation.conjugate() * DVec3::Y;
            least = least.min(seen.reject_from(along).length());
        }
        least
    };
    let (by_default, without) = (reached(None), reached(Some(Contacts::Obstacles)));
    println!("{by_default} m, without contact between parts {without} m");
    assert!(by_default > 0.1, "{by_default} m");
    assert!(without < 0.08, "{without} m: nothing was in its way");
}

/// What a rig is, whatever its bones are called: by bone its class where that is a part of a limb or the head, whether it is a hinge, and its share of the mass.
type Shape = Vec<(usize, Option<Class>, bool, f64)>;

/// By node of the file as it was first: `first[node]`.
fn shape(character: &Character, first: &dyn Fn(usize) -> usize) -> Shape {
    let bones = &character.rig.bones;
    let whole: f64 = bones.iter().map(|bone| bone.mass).sum();
    let limb = |class: Class| {
        use Class::*;
        let is_one = matches!(class, Thigh | Calf | Foot | Toe | UpperArm | Forearm | Hand | Head);
        is_one.then_some(class)
    };
    let row = |bone: &supple_assets::Bone| {
        (first(bone.node), limb(bone.class), bone.axis().is_some() && bone.parent.is_some(), bone.mass / whole)
    };
    let mut rows: Shape = bones.iter().map(row).collect();
    rows.sort_by_key(|row| row.0);
    rows
}

fn is_same(name: &str, found: &Shape, wanted: &Shape) {
    let plain = |shape: &Shape| shape.iter().map(|(node, class, hinge, _)| (*node, *class, *hinge)).collect::<Vec<_>>();
    assert_eq!(plain(found), plain(wanted), "{name}");
    for ((node, _, _, a), (_, _, _, b)) in found.iter().zip(wanted) {
        assert!((a - b).abs() < 1e-3, "{name}: node {node} has {a} of the mass, not {b}");
    }
}

/// A .glb as its document and its buffer.
fn opened(bytes: &[u8]) -> (Value, Vec<u8>) {
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[20..20 + length]).unwrap(), bytes[28 + length..].to_vec())
}

/// Nodes in another order; returns by new node the one that it was.
fn shuffle(root: &mut Value, seed: u64) -> Vec<usize> {
    let count = root["nodes"].as_array().unwrap().len();
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = seed;
    for k in (1..count).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(k, (random >> 33) as usize % (k + 1));
    }
    let mut new = vec![0; count];
    order.iter().enumerate().for_each(|(now, was)| new[*was] = now);
    let moved = |value: &mut Value| *value = json!(new[value.as_u64().unwrap() as usize]);
    let all = |list: &mut Value| list.as_array_mut().into_iter().flatten().for_each(moved);
    let nodes = root["nodes"].as_array_mut().unwrap();
    nodes.iter_mut().filter(|node| node.get("children").is_some()).for_each(|node| all(&mut node["children"]));
    let by_order = order.iter().map(|was| nodes[*was].clone()).collect();
    *nodes = by_order;
    root["scenes"].as_array_mut().unwrap().iter_mut().for_each(|scene| all(&mut scene["nodes"]));
    for skin in root["skins"].as_array_mut().into_iter().flatten() {
        all(&mut skin["joints"]);
        skin.get_mut("skeleton").into_iter().for_each(moved);
    }
    for clip in root["animations"].as_array_mut().into_iter().flatten() {
        clip["channels"].as_array_mut().unwrap().iter_mut().for_each(|channel| moved(&mut channel["target"]["node"]));
    }
    order
}

/// Every list of triangles in three, a primitive each.
fn split(root: &mut Value) {
    let mut accessors = root["accessors"].as_array().unwrap().clone();
    for mesh in root["meshes"].as_array_mut().unwrap() {
        let mut parts = Vec::new();
        for primitive in mesh["primitives"].as_array().unwrap() {
            let Some(indices) = primitive.get("indices").and_then(Value::as_u64) else {
                parts.push(primitive.clone());
                continue;
            };
            let whole = accessors[indices as usize].clone();
            let (triangles, size) =
                (whole["count"].as_u64().unwrap() / 3, if whole["componentType"] == 5125 { 4 } else { 2 });
            for k in 0..3 {
                let (from, to) = (triangles * k / 3, triangles * (k + 1) / 3);
                let mut part = whole.clone();
                part.as_object_mut().unwrap().retain(|key, _| key != "min" && key != "max");
                part["byteOffset"] = json!(whole["byteOffset"].as_u64().unwrap_or(0) + 3 * size * from);
                part["count"] = json!(3 * (to - from));
                let mut primitive = primitive.clone();
                primitive["indices"] = json!(accessors.len());
                accessors.push(part);
                parts.push(primitive);
            }
        }
        mesh["primitives"] = json!(parts);
    }
    root["accessors"] = json!(accessors);
}

/// Names, the order of nodes, how a figure stands, the unit of its file and how its mesh is cut say nothing about what it is.
#[test]
fn a_rig_is_the_same_without_names_in_any_order_turned_and_in_any_unit() {
    let Some(assets) = common::assets() else { return };
    for name in ["gltf/CesiumMan.glb", "gltf/RiggedFigure.glb", "gltf/mannequiny.glb", "characters/rogue-hooded.glb"] {
        let bytes = std::fs::read(assets.join(name)).unwrap();
        let read = |root: &Value, data: &[u8]| {
            Character::from_bytes(Path::new("varied.glb"), made::packed(root.clone(), data.to_vec()))
                .unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let (plain, data) = opened(&bytes);
        let (wanted, height) = (shape(&read(&plain, &data), &|node| node), read(&plain, &data).height());
        assert!(wanted.iter().filter(|row| row.2).count() >= 4, "{name}");
        for (what, scale, degrees) in
            [("as it is", 1.0, 0.0f64), ("turned", 1.0, 37.0), ("large", 100.0, 200.0), ("small", 0.01, -65.0)]
        {
            let mut root = plain.clone();
            for (k, node) in root["nodes"].as_array_mut().unwrap().iter_mut().enumerate() {
                // Words that no language has, in no order.
                node["name"] = json!(format!("q{:x}x", (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40));
            }
            let nodes = root["nodes"].as_array_mut().unwrap();
            let half = 0.5 * degrees.to_radians();
            let above = nodes.len();
            nodes.push(json!({ "name": "w", "children": plain["scenes"][0]["nodes"], "scale": [scale, scale, scale],
                "rotation": [0.0, half.sin(), 0.0, half.cos()], "translation": [3.0 * scale, 0.0, -2.0 * scale] }));
            root["scenes"][0]["nodes"] = json!([above]);
            split(&mut root);
            let order = shuffle(&mut root, above as u64);
            let varied = read(&root, &data);
            is_same(&format!("{name}, {what}"), &shape(&varied, &|node| order[node]), &wanted);
            // In a power of ten of metres.
            assert!(
                (varied.height() / height - 1.0).abs() < 1e-4,
                "{name}, {what}: {} m, not {height}",
                varied.height()
            );
        }
    }
}

/// Axes of bones of programs: any at all.
#[test]
fn the_axes_of_bones_tell_nothing() {
    let plain = person(GERMAN, ["L", "R"], false);
    let wanted = shape(&read(&plain.bones, DMat4::IDENTITY, &crouch(&plain, 21)), &|node| node);
    for seed in 1..4 {
        let mut turned = person(GERMAN, ["L", "R"], false);
        for (k, bone) in turned.bones.iter_mut().enumerate() {
            let angle =
                |n: usize| (k as f64 * (0.754_877 + 0.1 * n as f64) * f64::from(seed)).fract() * std::f64::consts::TAU;
            bone.roll = match seed {
                // As programs mirror the bones of one side.
                1 if bone.from.x < 0.0 => DQuat::from_rotation_z(std::f64::consts::PI),
                1 => DQuat::IDENTITY,
                _ => DQuat::from_euler(glam::EulerRot::XYZ, angle(0), angle(1), angle(2)),
            };
        }
        let found = read(&turned.bones, DMat4::IDENTITY, &crouch(&turned, 21));
        is_same(&format!("seed {seed}"), &shape(&found, &|node| node), &wanted);
    }
}

/// The bones of a person as programs call them.
#[test]
fn bones_of_other_programs_are_known_by_their_names() {
    let schemes: [(&str, Words, [&str; 2]); 6] = [
        (
            "Mixamo",
            [
                "mixamorig:Hips",
                "mixamorig:Spine",
                "mixamorig:Spine2",
                "mixamorig:Neck",
                "mixamorig:Head",
                "mixamorig:*Arm",
                "mixamorig:*ForeArm",
                "mixamorig:*Hand",
                "mixamorig:*UpLeg",
                "mixamorig:*Leg",
                "mixamorig:*Foot",
            ],
            ["Left", "Right"],
        ),
        (
            "Unreal",
            [
                "pelvis",
                "spine_01",
                "spine_03",
                "neck_01",
                "head",
                "upperarm_",
                "lowerarm_",
                "hand_",
                "thigh_",
                "calf_",
                "foot_",
            ],
            ["l", "r"],
        ),
        (
            "Unity",
            [
                "Hips",
                "Spine",
                "Chest",
                "Neck",
                "Head",
                "*UpperArm",
                "*LowerArm",
                "*Hand",
                "*UpperLeg",
                "*LowerLeg",
                "*Foot",
            ],
            ["Left", "Right"],
        ),
        (
            "Rigify",
            [
                "DEF-spine",
                "DEF-spine.001",
                "DEF-spine.003",
                "DEF-spine.004",
                "DEF-spine.006",
                "DEF-upper_arm.",
                "DEF-forearm.",
                "DEF-hand.",
                "DEF-thigh.",
                "DEF-shin.",
                "DEF-foot.",
            ],
            ["L", "R"],
        ),
        (
            "Biped",
            [
                "Bip001 Pelvis",
                "Bip001 Spine",
                "Bip001 Spine1",
                "Bip001 Neck",
                "Bip001 Head",
                "Bip001 * UpperArm",
                "Bip001 * Forearm",
                "Bip001 * Hand",
                "Bip001 * Thigh",
                "Bip001 * Calf",
                "Bip001 * Foot",
            ],
            ["L", "R"],
        ),
        ("nothing", ["b1", "b2", "b3", "b4", "b5", "c*", "d*", "e*", "f*", "g*", "h*"], ["x", "y"]),
    ];
    for (scheme, words, sides) in schemes {
        let person = person(words, sides, false);
        let character = read(&person.bones, DMat4::IDENTITY, &[]);
        assert_eq!(character.rig.kind(), Kind::Biped, "{scheme}");
        let of = |node: usize| {
            character.rig.bones.iter().find(|bone| bone.node == node).unwrap_or_else(|| panic!("{scheme}: {node}"))
        };
        assert_eq!(of(person.head).class, Class::Head, "{scheme}");
        for side in 0..2 {
            let leg = [person.thighs[side], person.calves[side], person.feet[side]].map(|node| of(node).class);
            assert_eq!(leg, [Class::Thigh, Class::Calf, Class::Foot], "{scheme}");
            let arm = [person.hand - 3, person.hand - 1, person.hand].map(|node| of(node - 8 * side).class);
            assert_eq!(arm, [Class::UpperArm, Class::Forearm, Class::Hand], "{scheme}");
            let elbow = of(person.hand - 1 - 8 * side);
            assert!(
                matches!(of(person.calves[side]).joint, Turn::Hinge { .. })
                    && matches!(elbow.joint, Turn::Hinge { .. }),
                "{scheme}"
            );
        }
    }
}

/// A robot: rigid parts on nodes, no skin and no clip. A house of parts is none.
#[test]
fn a_figure_of_rigid_parts_without_a_clip_is_one() {
    for words in [GERMAN, ["b1", "b2", "b3", "b4", "b5", "c", "d", "e", "f", "g", "h"]] {
        let person = person(words, ["L", "R"], false);
        let character =
            Character::from_bytes(Path::new("robot.glb"), made::parts(&person.bones)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(character.rig.kind(), Kind::Biped);
        let row = character.measure().unwrap();
        assert!(row.hinges_found >= 4, "{row:?}");
        assert!(row.asymmetry <= 0.05 && row.head_share <= 0.15 && row.sideways <= 5.0 && row.torn <= 0.01, "{row:?}");
    }
    let mut house = vec![Made::new("house", None, [0.0, 0.0, 0.0], [0.0, 3.0, 0.0], 3.0)];
    for k in 0..4 {
        let (x, z) = ([3.0, -3.0][k % 2], [3.0, -3.0][k / 2]);
        house.push(Made::new(format!("wall {k}"), Some(0), [x, 0.0, z], [x, 2.0, z], 0.2));
    }
    let refused = Character::from_bytes(Path::new("house.glb"), made::parts(&house)).map(drop).unwrap_err();
    assert_eq!(refused.code, "file/nothing");
}

/// Animals whose legs have three, four or five bones, however they stand.
#[test]
fn legs_of_animals_have_any_number_of_bones() {
    for (count, degrees) in [(3, 0.0f64), (4, 25.0), (5, 110.0)] {
        let mut bones = vec![
            Made::new("a", None, [0.0, 0.6, -0.35], [0.0, 0.62, 0.0], 0.14),
            Made::new("b", Some(0), [0.0, 0.62, 0.0], [0.0, 0.62, 0.35], 0.14),
            Made::new("c", Some(1), [0.0, 0.66, 0.38], [0.0, 0.82, 0.52], 0.07),
            Made::new("d", Some(2), [0.0, 0.82, 0.52], [0.0, 0.8, 0.78], 0.08),
        ];
        for (z, parent) in [(0.3, 1), (-0.35, 0)] {
            for x in [0.12, -0.12] {
                let at = bones.len();
                // With a shoulder blade before it, or toes behind it.
                let all = [
                    [x, 0.66, z - 0.02],
                    [x, 0.6, z],
                    [x, 0.36, z + 0.06],
                    [x, 0.16, z - 0.05],
                    [x, 0.04, z],
                    [x, 0.03, z + 0.08],
                ];
                let joints = match count {
                    3 => vec![all[1], all[2], all[3], [x, 0.02, z + 0.06]],
                    4 => all[1..].to_vec(),
                    _ => all.to_vec(),
                };
                for k in 0..joints.len() - 1 {
                    let above = if k == 0 { parent } else { at + k - 1 };
                    let radius = if joints[k][1] > 0.5 { 0.06 } else { 0.035 };
                    bones.push(Made::new(format!("e{}", at + k), Some(above), joints[k], joints[k + 1], radius));
                }
            }
        }
        let character = read(&bones, DMat4::from_rotation_y(degrees.to_radians()), &[]);
        let row = character.measure().unwrap();
        assert_eq!(row.kind, Kind::Quadruped, "{count}: {row:?}");
        assert!(row.hinges_found >= 8, "{count}: {row:?}");
        assert!(
            row.asymmetry <= 0.05 && row.head_share <= 0.15 && row.sideways <= 5.0 && row.torn <= 0.01,
            "{count}: {row:?}"
        );
        let head = character.rig.bones.iter().find(|bone| bone.name == "d").unwrap();
        assert_eq!(head.class, Class::Head, "{count}");
        swings_within_bounds(&character);
        println!("legs of {count} bones: at rest after {:.1} s", row.rest_time);
    }
}

/// A clip that makes a bone half as long again is followed in its turns, and what hangs on the bone comes along.
#[test]
fn what_a_clip_stretches_is_followed_in_its_turns() {
    let person = person(GERMAN, ["L", "R"], false);
    let frames = 11;
    let share = |f: usize| (std::f64::consts::PI * f as f64 / 10.0).sin();
    let turns: Vec<DQuat> = (0..frames).map(|f| DQuat::from_rotation_z(0.5 * share(f))).collect();
    // The forearm leaves the elbow by 15 cm, along the arm.
    let elbow = person.hand - 1;
    let from = person.bones[elbow].from;
    let moved = (0..frames).map(|f| from - DVec3::X * (0.15 * share(f))).collect();
    let character = read(&person.bones, DMat4::IDENTITY, &[(elbow, turns, Some(moved))]);
    assert!(character.rig.notes.iter().any(|note| note.code == "import/stretch"), "{:?}", character.rig.notes);
    let row = character.measure().unwrap();
    assert!(row.clip_degrees <= 5.0 && row.clip_share <= 0.02, "{row:?}");
    let imported = character.imported("made").unwrap();
    let clip = &imported.clips[0];
    let link = |name: &str, time: f64| {
        let body = imported.links.iter().position(|link| link.name == name).unwrap();
        clip.at(time, body).pose.then(imported.links[body].body_from_link).translation
    };
    for f in 0..frames {
        let time = 0.1 * f as f64;
        let (upper, fore, hand) = (link("Oberarm.R", time), link("Unterarm.R", time), link("Hand.R", time));
        assert!((upper.distance(fore) - 0.28).abs() < 1e-6 && (fore.distance(hand) - 0.25).abs() < 1e-6, "frame {f}");
    }
}

/// A hand alone, without names, in tens of centimetres: fingers are fingers and bend towards the palm, however it lies.
#[test]
fn a_nameless_hand_is_a_hand() {
    for turn in [DQuat::IDENTITY, DQuat::from_euler(glam::EulerRot::XYZ, 1.9, 0.4, 2.6)] {
        let mut bones = vec![Made::new("a0", None, [0.0, 0.0, 0.0], [0.0, 0.8, 0.0], 0.3)];
        for finger in 0..5 {
            let x = 0.2 * (f64::from(finger) - 2.5);
            let (from, lean) =
                if finger == 0 { ([-0.25, 0.3, 0.1], 0.9f64) } else { ([x, 0.9, 0.0], -0.04 * x.signum()) };
            let (mut above, mut here) = (0, DVec3::from(from));
            for k in 0..3 {
                let (length, curl) = (0.4 - 0.08 * f64::from(k), 0.12 * f64::from(k + 1));
                let along = DVec3::new(-lean.sin() * curl.cos(), lean.cos() * curl.cos(), curl.sin());
                let there = here + along * length;
                let name = format!("a{}", bones.len());
                bones.push(Made::new(name, Some(above), here.to_array(), there.to_array(), 0.08));
                (above, here) = (bones.len() - 1, there);
            }
        }
        for bone in &mut bones {
            (bone.from, bone.to) = (turn * bone.from, turn * bone.to);
        }
        let character = read(&bones, DMat4::IDENTITY, &[]);
        let classes: Vec<Class> = (0..bones.len())
            .map(|node| character.rig.bones.iter().find(|bone| bone.name == format!("a{node}")).unwrap().class)
            .collect();
        let mut wanted = vec![Class::Hand];
        (0..5).for_each(|_| wanted.extend([Class::FingerBase, Class::Finger, Class::Finger]));
        assert_eq!(classes, wanted);
        assert!((character.scale() - 0.1).abs() < 1e-12, "{}", character.scale());
        // All bend about the axis across the palm, towards where they are curled; the thumb about its own.
        for bone in character.rig.bones.iter().filter(|bone| bone.class == Class::Finger) {
            let Turn::Hinge { axis, range } = &bone.joint else { panic!("{}: {:?}", bone.name, bone.joint) };
            let across = turn.conjugate() * *axis;
            let thumb = bone.name == "a2" || bone.name == "a3";
            assert!(thumb || across.x > 0.95, "{}: about {across}", bone.name);
            assert!(range.max > 1.0 && range.min > -0.8, "{}: {range:?}", bone.name);
        }
        let row = character.measure().unwrap();
        assert_eq!(row.hinges_found, 10, "{row:?}");
        is_sound(&row);
    }
}

/// What is neither a person nor an animal moves the same in any unit of length, too.
#[test]
fn a_thing_of_two_bones_moves_the_same_in_any_unit() {
    let bones = [
        Made::new("a", None, [0.0, 0.0, 0.0], [0.0, 0.45, 0.0], 0.1),
        Made::new("b", Some(0), [0.0, 0.45, 0.0], [0.0, 0.9, 0.0], 0.1),
    ];
    let run = |unit: f64| {
        let character = read(&bones, scaled(unit), &[]);
        assert!((character.scale() * unit - 1.0).abs() < 1e-9, "{unit}: {}", character.scale());
        let scene = character.imported("made").unwrap().scene;
        let input = Input { targets: vec![None; scene.input.targets.len()], ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), supple::Work::new(&scene.model));
        for _ in 0..60 {
            supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
        }
        is_sound(&character.measure().unwrap());
        state.bodies.iter().map(|body| body.position).collect::<Vec<_>>()
    };
    let one = run(1.0);
    for unit in [0.01, 0.1, 10.0, 100.0] {
        let far = run(unit).iter().zip(&one).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max);
        assert!(far < 1e-6, "{unit}: {far} m");
    }
}

/// An animal of the assets is the same without its clips: what hangs on what, and what each bone is.
#[test]
fn an_animal_without_its_clips_has_the_same_legs() {
    let Some(assets) = common::assets() else { return };
    let path = assets.join("characters/Pug/Pug.gltf");
    let mut root: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    root.as_object_mut().unwrap().remove("animations");
    let folder = std::env::temp_dir().join(format!("supple-still-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for buffer in root["buffers"].as_array().unwrap() {
        let name = buffer["uri"].as_str().unwrap();
        if !name.starts_with("data:") {
            std::fs::copy(path.with_file_name(name), folder.join(name)).unwrap();
        }
    }
    let file = folder.join("still.gltf");
    std::fs::write(&file, root.to_string()).unwrap();
    let (still, whole) = (Character::open(&file).unwrap(), Character::open(&path).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    let legs = |character: &Character| {
        let leg = |c: Class| matches!(c, Class::Thigh | Class::Calf | Class::Foot | Class::Toe);
        let bones = character.rig.bones.iter().filter(|bone| leg(bone.class));
        let mut legs: Vec<_> = bones.map(|bone| (bone.name.clone(), format!("{:?}", bone.class))).collect();
        legs.sort();
        legs
    };
    assert_eq!(legs(&still), legs(&whole));
    assert_eq!(legs(&still).len(), 12);
}

/// A figure whose file holds it in pieces, as the deforming bones of a rig of controls do when they are written alone, and as exporters do that write bones
/// in one flat list: it is the same as in one piece.
#[test]
fn a_skeleton_in_pieces_hangs_together() {
    const RIGIFY: Words = [
        "DEF-spine",
        "DEF-spine.001",
        "DEF-spine.002",
        "DEF-spine.004",
        "DEF-spine.006",
        "DEF-upper_arm.*",
        "DEF-forearm.*",
        "DEF-hand.*",
        "DEF-thigh.*",
        "DEF-shin.*",
        "DEF-foot.*",
    ];
    let whole = person(RIGIFY, ["L", "R"], false);
    let wanted = read(&whole.bones, DMat4::IDENTITY, &[]);
    assert_eq!(wanted.rig.kind(), Kind::Biped);
    for flat in [false, true] {
        let mut pieces = person(RIGIFY, ["L", "R"], false);
        for (k, bone) in pieces.bones.iter_mut().enumerate() {
            let limb = pieces.thighs.contains(&k) || bone.name.contains("upper_arm") || k == 4;
            if flat || limb {
                bone.parent = None;
            }
        }
        let character = read(&pieces.bones, DMat4::IDENTITY, &[]);
        let above = |c: &Character| {
            let name = |k: usize| c.rig.bones[k].name.clone();
            let mut pairs: Vec<_> =
                c.rig.bones.iter().map(|bone| (bone.name.clone(), bone.parent.map(name), bone.class)).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            pairs
        };
        assert_eq!(above(&character), above(&wanted), "flat: {flat}");
        assert_eq!(character.rig.kind(), Kind::Biped);
        is_sound(&character.measure().unwrap());
    }
    // Two that stand side by side in one file are two.
    let mut two = person(RIGIFY, ["L", "R"], false);
    let count = two.bones.len();
    for mut bone in person(RIGIFY, ["L", "R"], false).bones {
        (bone.from.x, bone.to.x) = (bone.from.x + 3.0, bone.to.x + 3.0);
        (bone.parent, bone.shared) = (bone.parent.map(|p| p + count), bone.shared.map(|p| p + count));
        two.bones.push(bone);
    }
    let roots = read(&two.bones, DMat4::IDENTITY, &[]).rig.bones.iter().filter(|bone| bone.parent.is_none()).count();
    assert_eq!(roots, 2);
}

/// Paws whose toes are called fingers, and palms: the front legs of a cat are legs, and its toes toes.
#[test]
fn paws_with_fingers_are_feet() {
    let mut bones = vec![
        Made::new("spine", None, [0.0, 0.3, -0.2], [0.0, 0.32, 0.0], 0.07),
        Made::new("spine.001", Some(0), [0.0, 0.32, 0.0], [0.0, 0.32, 0.2], 0.07),
        Made::new("neck", Some(1), [0.0, 0.33, 0.2], [0.0, 0.4, 0.27], 0.04),
        Made::new("neck.001", Some(2), [0.0, 0.4, 0.27], [0.0, 0.45, 0.31], 0.035),
        Made::new("head", Some(3), [0.0, 0.45, 0.31], [0.0, 0.45, 0.43], 0.045),
    ];
    for (z, above, words) in [
        (0.17, 1, ["upper_arm", "forearm", "hand", "f_index", "f_ring"]),
        (-0.2, 0, ["thigh", "shin", "foot", "r_palm", "r_palm.001"]),
    ] {
        for (x, side) in [(0.05, "L"), (-0.05, "R")] {
            let at = bones.len();
            let joints = [[x, 0.29, z], [x, 0.17, z - 0.02], [x, 0.05, z], [x, 0.02, z + 0.02]];
            for k in 0..3 {
                let on = if k == 0 { above } else { at + k - 1 };
                bones.push(Made::new(format!("{}.{side}", words[k]), Some(on), joints[k], joints[k + 1], 0.022));
            }
            for (k, aside) in [0.012, -0.012].into_iter().enumerate() {
                let (from, to) = ([x + aside, 0.02, z + 0.02], [x + aside, 0.015, z + 0.05]);
                bones.push(Made::new(format!("{}.{side}", words[3 + k]), Some(at + 2), from, to, 0.01));
            }
        }
    }
    let character = read(&bones, DMat4::IDENTITY, &[]);
    let class = |name: &str| character.rig.bones.iter().find(|bone| bone.name == name).map(|bone| bone.class);
    let row = character.measure().unwrap();
    assert_eq!((row.kind, row.scale), (Kind::Quadruped, 1.0), "{row:?}");
    assert!(row.hinges_found >= 8, "{row:?}");
    use Class::*;
    for (name, wanted) in
        [("upper_arm.L", Thigh), ("forearm.R", Calf), ("hand.L", Foot), ("f_index.L", Toe), ("r_palm.R", Toe)]
    {
        assert_eq!(class(name), Some(wanted), "{name}");
    }
    for (name, wanted) in [("neck", Neck), ("neck.001", Neck), ("head", Head)] {
        assert_eq!(class(name), Some(wanted), "{name}");
    }
}

/// A fish has no legs, though its fins reach as low as it does; a beetle has six.
#[test]
fn fins_are_no_legs_and_six_legs_are_legs() {
    let mut fish = vec![
        Made::new("a", None, [0.0, 0.3, 0.0], [0.0, 0.3, 0.5], 0.2),
        Made::new("b", Some(0), [0.0, 0.3, 0.0], [0.0, 0.3, -0.5], 0.15),
        Made::new("c", Some(1), [0.0, 0.3, -0.5], [0.0, 0.3, -0.9], 0.08),
    ];
    for x in [1.0, -1.0] {
        let at = fish.len();
        fish.push(Made::new("d", Some(0), [0.15 * x, 0.25, 0.2], [0.3 * x, 0.18, 0.15], 0.03));
        fish.push(Made::new("e", Some(at), [0.3 * x, 0.18, 0.15], [0.5 * x, 0.13, 0.1], 0.02));
    }
    let character = read(&fish, DMat4::IDENTITY, &[]);
    assert_eq!(character.rig.kind(), Kind::Other);
    let of_leg = |class: Class| matches!(class, Class::Thigh | Class::Calf | Class::Foot);
    assert!(character.rig.bones.iter().all(|bone| !of_leg(bone.class)));
    let mut beetle = vec![Made::new("a", None, [0.0, 0.2, -0.3], [0.0, 0.2, 0.3], 0.1)];
    for z in [0.2, 0.0, -0.2] {
        for x in [1.0, -1.0] {
            let at = beetle.len();
            let joints = [[0.08 * x, 0.2, z], [0.25 * x, 0.32, z], [0.4 * x, 0.1, z], [0.45 * x, 0.01, z]];
            for k in 0..3 {
                let above = if k == 0 { 0 } else { at + k - 1 };
                beetle.push(Made::new(format!("n{}", at + k), Some(above), joints[k], joints[k + 1], 0.02));
            }
        }
    }
    let character = read(&beetle, DMat4::IDENTITY, &[]);
    let row = character.measure().unwrap();
    assert_eq!(row.kind, Kind::Other);
    let knees = character.rig.bones.iter().filter(|bone| bone.class == Class::Calf && bone.axis().is_some());
    assert_eq!(knees.count(), 6);
    assert!(row.asymmetry <= 0.05 && row.sideways <= 5.0 && row.torn <= 0.01, "{row:?}");
}
