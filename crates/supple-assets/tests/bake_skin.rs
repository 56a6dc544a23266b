//! Soft skin of imported characters, baked: a viewer of glTF shows every vertex where the simulation had it.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use supple::glam::DVec3;
use supple::{Input, PoseMap, Scene, SkinMaterial, Work, step};
use supple_assets::{BakeSettings, Character, Imported, InputFile, Recording, RigOptions};

#[path = "common/viewer.rs"]
mod viewer;
use viewer::{Viewer, parts};

fn asset(name: &str) -> Option<PathBuf> {
    let Ok(folder) = std::env::var("SUPPLE_ASSETS") else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return None;
    };
    Some(Path::new(&folder).join("gltf").join(name))
}

/// Runs a scene without its hold; every `every`th step is a frame. The places of its vertices in each, and the recording.
fn record(scene: &Scene, steps: usize) -> (Vec<f64>, Vec<Vec<DVec3>>, Recording) {
    let model = &scene.model;
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let mut input = Input { targets: vec![None; scene.input.targets.len()], ..scene.input.clone() };
    let mut recording = Recording::default();
    let (mut times, mut frames) = (Vec::new(), Vec::new());
    for k in 0..=steps {
        let mut places = Vec::new();
        model.skin().unwrap().positions(&state, &mut places);
        times.push(state.time);
        frames.push(places);
        recording.add(model, &input, &state, None);
        if k < steps {
            scene.direct(state.time, &mut input);
            input.targets.fill(None);
            step(model, &input, &mut state, &mut work).unwrap();
        }
    }
    (times, frames, recording)
}

fn skinned(imported: &Imported) -> Imported {
    imported.with_skin(&|_| Some(SkinMaterial { young: 2e4, ..SkinMaterial::default() }), PoseMap::Centres).unwrap()
}

/// Bakes a fall of a file and looks at it as a viewer would; the file that was written. `least` is how many morph targets it has at least.
fn bake_and_view(path: &Path, bytes: Vec<u8>, scale: Option<f64>, steps: usize) -> Viewer {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let options = RigOptions { scale, ..RigOptions::default() };
    let character = Character::read_with(InputFile::sent(path, bytes), &options).unwrap();
    let imported = skinned(&character.imported("test").unwrap());
    let model = &imported.scene.model;
    let skin = model.skin().unwrap();
    let (times, frames, recording) = record(&imported.scene, steps);
    let settings = BakeSettings::default();
    let baked = character.bake(model, &recording, "simulated", &settings);
    baked.notes.iter().for_each(|note| println!("{name}: {}", note.text));
    println!("{name}: {} bytes", baked.bytes.len());
    let folder = std::env::var_os("SUPPLE_BAKED").map(PathBuf::from);
    if let Some(folder) = folder {
        std::fs::write(folder.join(format!("{name}.glb")), &baked.bytes).unwrap();
    }
    let viewer = Viewer::open(&baked.bytes);
    let last = viewer.root["animations"].as_array().unwrap().len() - 1;

    // Vertices of the file belong to those of the skin that are at their place at rest: before the first frame, bones stand as they do at rest.
    // The file is in its own unit, the simulation in metres.
    let scale = character.scale();
    let shown = viewer.frames(last, &times);
    let (low, high) =
        skin.rest.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = (high - low).length();
    let mut by_x: Vec<(f64, usize)> = skin.rest.iter().enumerate().map(|(v, p)| (p.x, v)).collect();
    by_x.sort_by(|a, b| a.0.total_cmp(&b.0));
    let near = 2e-6 * size + 1e-5;
    let (mut all, mut found, mut worst) = (0, 0, 0.0f64);
    for (k, (_, places)) in shown[0].iter().enumerate() {
        for (v, place) in places.iter().enumerate() {
            let place = *place * scale;
            all += 1;
            let from = by_x.partition_point(|(x, _)| *x < place.x - near);
            let here = by_x[from..].iter().take_while(|(x, _)| *x <= place.x + near);
            let Some(&(_, vertex)) = here.into_iter().find(|(_, w)| skin.rest[*w].distance(place) < near) else {
                continue;
            };
            found += 1;
            for (frame, places) in shown.iter().zip(&frames) {
                worst = worst.max((frame[k].1[v] * scale).distance(places[vertex]));
            }
        }
    }
    let moved = frames.iter().flat_map(|f| f.iter().zip(&frames[0])).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max);
    println!("{name}: {found} of {all} vertices, {worst:.2e} m off at most, moved by {moved:.3} m");
    assert!(found as f64 > 0.97 * all as f64, "{name}: {found} of {all} vertices are those of the skin");
    assert!(moved > 0.01, "{name}: nothing happened");
    // the tolerance, and the rounding of metres as f32
    assert!(worst < settings.position + 1e-6 * size, "{name}: {worst} m off");
    viewer
}

fn targets(viewer: &Viewer, mesh: usize) -> Vec<usize> {
    let primitives = viewer.root["meshes"][mesh]["primitives"].as_array().unwrap();
    primitives.iter().map(|p| p["targets"].as_array().map_or(0, Vec::len)).collect()
}

#[test]
fn a_baked_man_is_shown_as_simulated() {
    let Some(path) = asset("CesiumMan.glb") else { return };
    let bytes = std::fs::read(&path).unwrap();
    let (before, binary) = parts(&bytes);
    let viewer = bake_and_view(&path, bytes.clone(), None, 60);
    // Materials, textures, coordinates and weights are those of the file.
    for key in ["materials", "textures", "images", "samplers", "skins"] {
        assert_eq!(viewer.root[key], before[key], "{key}");
    }
    let (old, new) = (&before["meshes"][0]["primitives"][0], &viewer.root["meshes"][0]["primitives"][0]);
    assert_eq!((&old["attributes"], &old["material"]), (&new["attributes"], &new["material"]));
    let all = parts(&std::fs::read(&path).unwrap()).1;
    assert_eq!(all, binary);
    assert!(targets(&viewer, 0)[0] > 3);
    assert!(targets(&viewer, 0)[0] < 61, "fewer targets than frames");
}

#[test]
fn meshes_of_several_parts_are_baked_with_their_skin() {
    for name in ["platformer-robot.glb", "mannequiny.glb"] {
        let Some(path) = asset(name) else { return };
        let viewer = bake_and_view(&path, std::fs::read(&path).unwrap(), None, 30);
        let targets = targets(&viewer, 0);
        assert!(targets.len() > 1 && targets.iter().all(|n| *n == targets[0] && *n > 0), "{name}: {targets:?}");
    }
}

#[test]
fn a_mesh_that_many_nodes_show_is_baked_for_each() {
    let Some(path) = asset("RecursiveSkeletons.glb") else { return };
    // In metres as it is, 177 m high: its skin moves enough for every copy to need targets of its own.
    let viewer = bake_and_view(&path, std::fs::read(&path).unwrap(), Some(1.0), 30);
    let meshes = viewer.root["meshes"].as_array().unwrap().len();
    assert!(meshes > 50, "{meshes} copies");
}

/// Morph targets of the file stay, with their weights and the animations that move them.
#[test]
fn morph_targets_of_the_file_stay() {
    let Some(path) = asset("RiggedSimple.glb") else { return };
    let (mut root, mut binary) = parts(&std::fs::read(&path).unwrap());
    let positions = root["meshes"][0]["primitives"][0]["attributes"]["POSITION"].as_u64().unwrap() as usize;
    let count = root["accessors"][positions]["count"].as_u64().unwrap() as usize;
    let mut add = |values: &[f32], kind: &str| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let views = root["bufferViews"].as_array_mut().unwrap();
        views.push(json!({ "buffer": 0, "byteOffset": binary.len(), "byteLength": bytes.len() }));
        let view = views.len() - 1;
        binary.extend(bytes);
        let width = if kind == "VEC3" { 3 } else { 1 };
        let bound = |pick: fn(f32, f32) -> f32| -> Vec<f32> {
            (0..width).map(|k| values.iter().skip(k).step_by(width).copied().reduce(pick).unwrap()).collect()
        };
        let accessors = root["accessors"].as_array_mut().unwrap();
        accessors.push(json!({
            "bufferView": view, "componentType": 5126, "count": values.len() / width, "type": kind,
            "min": bound(f32::min), "max": bound(f32::max),
        }));
        accessors.len() - 1
    };
    let lifted = add(&[0.0, 0.0, 0.5].repeat(count), "VEC3");
    let (input, output) = (add(&[0.0, 1.0], "SCALAR"), add(&[0.0, 1.0], "SCALAR"));
    root["meshes"][0]["primitives"][0]["targets"] = json!([{ "POSITION": lifted }]);
    root["meshes"][0]["weights"] = json!([0.0]);
    root["meshes"][0]["extras"] = json!({ "targetNames": ["lift"] });
    let node = root["nodes"].as_array().unwrap().iter().position(|n| n.get("mesh").is_some()).unwrap();
    root["animations"].as_array_mut().unwrap().push(json!({
        "name": "lift",
        "samplers": [{ "input": input, "output": output }],
        "channels": [{ "sampler": 0, "target": { "node": node, "path": "weights" } }],
    }));
    root["buffers"][0]["byteLength"] = binary.len().into();
    let mut json = root.to_string().into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let mut glb =
        [b"glTF".as_slice(), &2u32.to_le_bytes(), &((28 + json.len() + binary.len()) as u32).to_le_bytes()].concat();
    for (kind, chunk) in [(b"JSON", &json), (b"BIN\0", &binary)] {
        glb.extend((chunk.len() as u32).to_le_bytes());
        glb.extend(kind);
        glb.extend(chunk);
    }

    let before = Viewer::open(&glb);
    let viewer = bake_and_view(&path, glb, None, 45);
    let mesh = &viewer.root["meshes"][0];
    let count = targets(&viewer, 0)[0];
    assert!(count > 1);
    assert_eq!(mesh["primitives"][0]["targets"][0]["POSITION"], json!(lifted));
    assert_eq!(mesh["weights"].as_array().unwrap().len(), count);
    let names: Vec<&Value> = mesh["extras"]["targetNames"].as_array().unwrap().iter().collect();
    assert_eq!((names.len(), names[0]), (count, &json!("lift")));
    // its animation does what it did
    let clip = viewer.root["animations"].as_array().unwrap().len() - 2;
    assert_eq!(viewer.root["animations"][clip]["name"], "lift");
    let times = [0.0, 0.25, 1.0];
    for (a, b) in viewer.frames(clip, &times).iter().zip(&before.frames(clip, &times)) {
        for (a, b) in a[0].1.iter().zip(&b[0].1) {
            assert!(a.distance(*b) < 1e-5);
        }
    }
}
