//! Rigs as artists make them that no file of the assets has: made up here, so that rules are tried on what they were not made for.

#[path = "common/made.rs"]
mod made;

use glam::{DMat4, DQuat, DVec3};
use made::{Made, Turned, glb};
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
        let name = |word: &str| format!("{word}{side}");
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
