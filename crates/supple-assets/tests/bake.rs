//! Baked files: opened again, the motion is there and all else is as it was.

use serde_json::Value;
use std::path::{Path, PathBuf};
use supple::{Scene, Work, step};
use supple_assets::{BakeSettings, Character, Recording, RootMotion, bake_scene};

fn asset(name: &str) -> Option<PathBuf> {
    let Ok(folder) = std::env::var("SUPPLE_ASSETS") else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return None;
    };
    Some(Path::new(&folder).join("gltf").join(name))
}

/// JSON and binary chunk of a .glb.
fn parts(glb: &[u8]) -> (Value, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(glb[at..at + 4].try_into().unwrap()) as usize;
    let json = word(12);
    assert_eq!(word(8), glb.len());
    (serde_json::from_slice(&glb[20..20 + json]).unwrap(), glb[28 + json..].to_vec())
}

fn record(scene: &Scene, steps: usize) -> Recording {
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let mut recording = Recording::default();
    recording.add(&scene.model, &input, &state, None);
    for _ in 0..steps {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        recording.add(&scene.model, &input, &state, Some(&report));
    }
    recording
}

#[test]
fn a_baked_file_keeps_all_it_had_and_plays_the_motion() {
    for name in ["CesiumMan.glb", "mannequiny.glb", "RiggedSimple.glb", "RecursiveSkeletons.glb"] {
        let Some(path) = asset(name) else { return };
        let character = Character::open(&path).unwrap();
        let imported = character.imported("test").unwrap();
        let scene = &imported.scene;
        let recording = record(scene, 60);
        let settings = BakeSettings::default();
        let baked = character.bake(&scene.model, &recording, "simulated", &settings);
        assert!(baked.notes.is_empty(), "{name}: {:?}", baked.notes);

        // Every part of the file is there as it was, but for matrices of nodes that now move.
        let (before, binary_before) = parts(&std::fs::read(&path).unwrap());
        let (after, binary_after) = parts(&baked.bytes);
        assert_eq!(binary_after[..binary_before.len()], binary_before[..], "{name}");
        for (key, value) in before.as_object().unwrap() {
            let now = &after[key];
            match value {
                Value::Array(list) if key != "buffers" => {
                    for (i, entry) in list.iter().enumerate() {
                        let moved = key == "nodes" && entry.get("matrix").is_some() && now[i].get("matrix").is_none();
                        assert!(moved || now[i] == *entry, "{name}: {key}[{i}]");
                    }
                }
                _ if key != "buffers" => assert_eq!(now, value, "{name}: {key}"),
                _ => {}
            }
        }
        let animations = before["animations"].as_array().map_or(0, Vec::len);
        assert_eq!(after["animations"].as_array().unwrap().len(), animations + 1);
        let quality = &after["animations"][animations]["extras"]["supple"];
        assert_eq!(quality["gap"].as_array().unwrap().len(), 61);
        assert_eq!(quality["penetration"].as_array().unwrap().len(), 61);

        // Opened again, the new clip has the bodies where the simulation had them.
        let again = Character::from_bytes(&path, baked.bytes).unwrap().imported("again").unwrap();
        let clip = again.clips.last().unwrap();
        assert_eq!(clip.name(), "simulated");
        assert!((clip.seconds() - 1.0).abs() < 1e-6);
        let mut state = scene.state.clone();
        let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
        for frame in 1..=60 {
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            for (i, body) in state.bodies.iter().enumerate() {
                let pose = clip.at(f64::from(frame) / 60.0, i).pose;
                let link = &again.links[i];
                assert_eq!(scene.model.bodies()[i].name, link.name);
                // Tolerances add up along the longest branch (20 bones); the far ends are metres away in some files.
                let angle = pose.rotation.angle_between(body.orientation);
                assert!(angle < 21.0 * settings.angle, "{name}, {}: {angle} rad", link.name);
            }
        }
    }
}

#[test]
fn built_in_scenes_bake_too() {
    let scene = Scene::parse("hand").unwrap();
    let baked = bake_scene(&scene.model, &record(&scene, 30), "hand", &BakeSettings::default());
    let (json, binary) = parts(&baked.bytes);
    assert_eq!(json["nodes"].as_array().unwrap().len(), 16);
    assert_eq!(json["animations"][0]["channels"].as_array().unwrap().len(), 32);
    assert!(binary.len() >= json["buffers"][0]["byteLength"].as_u64().unwrap() as usize);
    // What was written can be read: every animated node is a body again.
    let again = Character::from_bytes(Path::new("hand.glb"), baked.bytes).unwrap();
    assert_eq!(again.rig.bones.len(), 16);
}

/// The numbers of an accessor.
fn floats(root: &Value, binary: &[u8], accessor: &Value) -> Vec<f32> {
    let accessor = &root["accessors"][accessor.as_u64().unwrap() as usize];
    let view = &root["bufferViews"][accessor["bufferView"].as_u64().unwrap() as usize];
    let [from, length] = ["byteOffset", "byteLength"].map(|key| view[key].as_u64().unwrap() as usize);
    binary[from..from + length].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn flesh_is_baked_as_morph_targets_to_the_tolerance() {
    let scene = Scene::parse("worm").unwrap();
    let flesh = scene.model.flesh().unwrap();
    let recording = record(&scene, 60);
    let settings = BakeSettings::default();
    let baked = bake_scene(&scene.model, &recording, "simulated", &settings);
    let (root, binary) = parts(&baked.bytes);
    let mesh = root["meshes"].as_array().unwrap().iter().find(|m| m["name"] == "flesh").unwrap();
    let primitive = &mesh["primitives"][0];
    let targets: Vec<Vec<f32>> = primitive["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| floats(&root, &binary, &target["POSITION"]))
        .collect();
    assert_eq!(mesh["weights"].as_array().unwrap().len(), targets.len());
    // far fewer shapes than frames
    assert!((3..40).contains(&targets.len()), "{}", targets.len());
    let first = floats(&root, &binary, &primitive["attributes"]["POSITION"]);
    assert_eq!(first.len(), 3 * flesh.surface.vertices.len());

    let animation = &root["animations"][0];
    let channels = animation["channels"].as_array().unwrap();
    let channel = channels.iter().find(|c| c["target"]["path"] == "weights").unwrap();
    let sampler = &animation["samplers"][channel["sampler"].as_u64().unwrap() as usize];
    let (times, weights) = (floats(&root, &binary, &sampler["input"]), floats(&root, &binary, &sampler["output"]));
    assert_eq!(weights.len(), times.len() * targets.len());

    // At every frame, between keys too, every vertex is where the simulation had it.
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let (mut nodes, mut places) = (Vec::new(), Vec::new());
    let mut moved = 0.0f64;
    for frame in 0..=60 {
        let t = state.time as f32;
        let after = times.iter().position(|k| *k >= t - 1e-6).unwrap();
        let before = after.saturating_sub(1);
        let span = times[after] - times[before];
        let u = if span > 0.0 { (t - times[before]) / span } else { 0.0 };
        let weight = |k: usize| {
            let [a, b] = [before, after].map(|key| weights[key * targets.len() + k]);
            a + u * (b - a)
        };
        flesh.positions(&state, &mut nodes);
        flesh.surface_positions(&nodes, &mut places);
        for (v, place) in places.iter().enumerate() {
            for axis in 0..3 {
                let sum: f32 = (0..targets.len()).map(|k| weight(k) * targets[k][3 * v + axis]).sum();
                let off = f64::from(first[3 * v + axis] + sum) - place[axis];
                // the tolerance, and the rounding of metres as f32
                assert!(off.abs() < settings.position + 1e-6, "frame {frame}: {off}");
                moved = moved.max(f64::from(sum.abs()));
            }
        }
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    assert!(moved > 0.02, "{moved}");
}

/// A skinned mesh with morph targets: blended by the bones as every viewer does, each vertex is where the simulation had it.
#[test]
fn skin_is_baked_as_a_skinned_mesh_with_morph_targets() {
    let scene = Scene::parse("tube:5").unwrap();
    let skin = scene.model.skin().unwrap();
    let steps = 45;
    let settings = BakeSettings::default();
    let baked = bake_scene(&scene.model, &record(&scene, steps), "simulated", &settings);
    let (root, binary) = parts(&baked.bytes);
    let mesh = root["meshes"].as_array().unwrap().iter().find(|m| m["name"] == "skin").unwrap();
    let primitive = &mesh["primitives"][0];
    let node = root["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "skin").unwrap();
    let binding = &root["skins"][node["skin"].as_u64().unwrap() as usize];
    let joints: Vec<usize> =
        binding["joints"].as_array().unwrap().iter().map(|j| j.as_u64().unwrap() as usize).collect();
    let binds = floats(&root, &binary, &binding["inverseBindMatrices"]);
    let weights = floats(&root, &binary, &primitive["attributes"]["WEIGHTS_0"]);
    let first = floats(&root, &binary, &primitive["attributes"]["POSITION"]);
    assert_eq!((first.len(), weights.len(), binds.len()), (3 * 292, 4 * 292, 16 * joints.len()));
    let accessor = &root["accessors"][primitive["attributes"]["JOINTS_0"].as_u64().unwrap() as usize];
    let view = &root["bufferViews"][accessor["bufferView"].as_u64().unwrap() as usize];
    let from = view["byteOffset"].as_u64().unwrap() as usize;
    let joint = |k: usize| u16::from_le_bytes(binary[from + 2 * k..from + 2 * k + 2].try_into().unwrap()) as usize;
    let targets: Vec<Vec<f32>> = primitive["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| floats(&root, &binary, &target["POSITION"]))
        .collect();
    assert!((1..steps).contains(&targets.len()), "{}", targets.len());
    let animation = &root["animations"][0];
    let channels = animation["channels"].as_array().unwrap();
    let channel = channels.iter().find(|c| c["target"]["path"] == "weights").unwrap();
    let sampler = &animation["samplers"][channel["sampler"].as_u64().unwrap() as usize];
    let (times, keys) = (floats(&root, &binary, &sampler["input"]), floats(&root, &binary, &sampler["output"]));

    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let mut places = Vec::new();
    let mut moved = 0.0f64;
    for frame in 0..=steps {
        let t = state.time as f32;
        let after = times.iter().position(|k| *k >= t - 1e-6).unwrap();
        let before = after.saturating_sub(1);
        let span = times[after] - times[before];
        let u = if span > 0.0 { (t - times[before]) / span } else { 0.0 };
        let weight = |k: usize| {
            let [a, b] = [before, after].map(|key| keys[key * targets.len() + k]);
            a + u * (b - a)
        };
        skin.positions(&state, &mut places);
        for (v, place) in places.iter().enumerate() {
            let morphed = supple::glam::DVec3::from_array(std::array::from_fn(|axis| {
                let sum: f32 = (0..targets.len()).map(|k| weight(k) * targets[k][3 * v + axis]).sum();
                moved = moved.max(f64::from(sum.abs()));
                f64::from(first[3 * v + axis] + sum)
            }));
            let mut blended = supple::glam::DVec3::ZERO;
            for i in 4 * v..4 * v + 4 {
                let bind: [f32; 16] = binds[16 * joint(i)..16 * joint(i) + 16].try_into().unwrap();
                let bind = supple::glam::Mat4::from_cols_array(&bind).as_dmat4();
                let body = &state.bodies[joints[joint(i)]];
                blended += body.pose().transform_point(bind.transform_point3(morphed)) * f64::from(weights[i]);
            }
            // the tolerance, and the rounding of metres as f32
            assert!(blended.distance(*place) < 2.0 * settings.position, "frame {frame}, vertex {v}: {blended} {place}");
        }
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    assert!(moved > 1e-3, "{moved}");
}

/// The man follows his walk for two seconds; the recording, and how a bake of it moves when it is opened again.
#[test]
fn a_bake_is_cut_closed_and_carried_as_asked() {
    let Some(path) = asset("CesiumMan.glb") else { return };
    let character = Character::open(&path).unwrap();
    let imported = character.imported("man").unwrap();
    let scene = imported.following(&imported.clips[0]).unwrap();
    let mut recording = record(&scene, 90);
    // The walk of the file is on the spot: a travel of 1 m/s is put on it.
    recording = travelling(&recording, &scene.model, &scene.input, 1.0);
    let play = |settings: &BakeSettings, recording: &Recording| {
        let baked = character.bake_clips(&scene.model, &[("a", recording), ("b", recording)], settings);
        let again = Character::from_bytes(&path, baked.bytes).unwrap();
        let clips = again.imported("again").unwrap().clips;
        let names: Vec<&str> = clips.iter().map(|clip| clip.name()).collect();
        assert_eq!(names[names.len() - 2..], ["a", "b"]);
        clips.last().unwrap().clone()
    };
    let plain = play(&BakeSettings::default(), &recording);
    assert!((plain.at(1.5, 0).pose.translation - plain.at(0.0, 0).pose.translation).z > 1.4);

    // On the node at the root the world sees the same; in place it stays.
    let rooted = play(&BakeSettings { root: RootMotion::Root, ..BakeSettings::default() }, &recording);
    let still = play(&BakeSettings { root: RootMotion::InPlace, ..BakeSettings::default() }, &recording);
    for k in 0..15 {
        let t = 0.1 * f64::from(k);
        for b in 0..plain.bodies() {
            let (a, r) = (plain.at(t, b).pose.translation, rooted.at(t, b).pose.translation);
            assert!(a.distance(r) < 2e-3, "{t} {b}: {}", a.distance(r));
        }
        let gone = still.at(t, 0).pose.translation - still.at(0.0, 0).pose.translation;
        assert!(gone.x.hypot(gone.z) < 1e-3, "{t}: {gone}");
    }

    // A loop ends in the pose that it begins with; its travel goes on.
    let looped = play(&BakeSettings { seam: Some(0.3), ..BakeSettings::default() }, &recording);
    let far = looped.at(1.5, 0).pose.translation - looped.at(0.0, 0).pose.translation;
    assert!(far.z > 1.4 && far.y.abs() < 1e-3, "{far}");
    for b in 0..looped.bodies() {
        let (first, last) = (looped.at(0.0, b).pose, looped.at(1.5, b).pose);
        assert!(first.rotation.angle_between(last.rotation) < 5e-3, "{b}");
        assert!((last.translation - first.translation - far).length() < 5e-3, "{b}");
        // Before the seam it is what it was.
        assert!(looped.at(1.1, b).pose.translation.distance(plain.at(1.1, b).pose.translation) < 2e-3, "{b}");
    }

    // A part, in frames of its own.
    let part = recording.cut(0.25, 1.25, Some(24.0));
    assert_eq!((part.frames(), part.seconds()), (25, 1.0));
    let cut = play(&BakeSettings::default(), &part);
    for b in 0..cut.bodies() {
        let (a, c) = (plain.at(0.75, b).pose.translation, cut.at(0.5, b).pose.translation);
        assert!(a.distance(c) < 5e-3, "{b}: {}", a.distance(c));
    }
}

/// The same motion, carried along Z at this speed \[m/s\].
fn travelling(recording: &Recording, model: &supple::Model, input: &supple::Input, speed: f64) -> Recording {
    let mut out = Recording::default();
    for frame in 0..recording.frames() {
        let mut state = recording.state(model, frame);
        state.bodies.iter_mut().for_each(|body| body.position.z += speed * state.time);
        out.add(model, input, &state, None);
    }
    out
}
