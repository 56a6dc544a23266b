//! Files of other kinds: FBX, VRM avatars and their motion, USD out.

mod common;

use glam::DVec3;
use std::path::Path;
use std::process::Command;
use supple::{Pose, Work, step};
use supple_assets::{BakeSettings, Character, Imported, Recording, motion, open};

fn asset(name: &str) -> Option<std::path::PathBuf> {
    common::assets().map(|assets| assets.join(name))
}

/// From the lowest vertex to the highest \[m\].
fn height(imported: &Imported) -> f32 {
    let heights = || imported.meshes.iter().flat_map(|mesh| &mesh.vertices).map(|v| v[1]);
    heights().fold(f32::NEG_INFINITY, f32::max) - heights().fold(f32::INFINITY, f32::min)
}

/// Half a second of a character as it opens, and where its bodies are in the first and in the last frame.
fn recorded(imported: &Imported) -> (Recording, [Vec<Pose>; 2]) {
    let scene = &imported.scene;
    let (mut state, mut work, mut recording) = (scene.state.clone(), Work::new(&scene.model), Recording::default());
    let mut ends: [Vec<Pose>; 2] = Default::default();
    for k in 0..30 {
        step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        recording.add(&scene.model, &scene.input, &state, None);
        ends[usize::from(k > 0)] = state.bodies.iter().map(|body| body.pose()).collect();
    }
    (recording, ends)
}

#[test]
fn fbx_characters_open_stand_and_are_baked_as_glb() {
    let Some(folder) = asset("fbx") else { return };
    for name in [
        "max_transformed_skin_7500_binary.fbx",
        "maya_character_7500_binary.fbx",
        "maya_human_ik_7400_binary.fbx",
        "maya_kenney_character_7700_binary.fbx",
        "motionbuilder_sausage_rrss_7700_binary.fbx",
    ] {
        let path = folder.join(name);
        let character = Character::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let imported = character.imported(name).unwrap();
        assert!(imported.notes.iter().any(|note| note.code == "import/fbx"), "{name}");
        let baked = character.bake(&imported.scene.model, &recorded(&imported).0, "half a second", &Default::default());
        let again = Character::from_bytes(Path::new("baked.glb"), baked.bytes).unwrap().imported("baked").unwrap();
        assert_eq!(imported.scene.model.bodies().len(), again.scene.model.bodies().len(), "{name}");
        assert_eq!(imported.clips.len() + 1, again.clips.len(), "{name}");
        assert!((height(&imported) - height(&again)).abs() < 1e-4 * height(&imported), "{name}");
        // What the page draws is the same.
        let drawn = Character::from_bytes(Path::new("drawn.glb"), character.drawn()).unwrap();
        assert_eq!(drawn.imported("drawn").unwrap().meshes, imported.meshes, "{name}");
    }
    // A person whose file is in centimetres; the skeleton has no mesh, and its bones are drawn, with a head on the last joint, 1.64 m above the soles.
    let man = open(&folder.join("maya_character_7500_binary.fbx")).unwrap();
    assert!((1.75..1.9).contains(&height(&man)), "{}", height(&man));
    let rig = Character::open(&folder.join("maya_character_7500_binary.fbx")).unwrap().rig;
    assert!(rig.bones.iter().any(|bone| bone.class == supple_assets::Class::Head));
    assert!(man.notes.iter().any(|note| note.code == "import/bones"));
}

#[test]
fn an_avatar_is_what_its_map_says() {
    let Some(path) = asset("vrm/debug_robot.vrm") else { return };
    let robot = Character::open(&path).unwrap();
    let bones: Vec<&str> = robot.rig.bones.iter().map(|bone| bone.name.as_str()).collect();
    for (bone, class) in [("upper_leg.L", supple_assets::Class::Thigh), ("lower_arm.R", supple_assets::Class::Forearm)]
    {
        let found = robot.rig.bones.iter().find(|b| b.name == bone).unwrap_or_else(|| panic!("{bone} of {bones:?}"));
        assert_eq!(found.class, class, "{bone}");
    }
    assert_eq!(robot.springs, supple_assets::Springs::default());
    // The motion of one is read again from what is written, on the same bones, in the same places.
    let imported = robot.imported("robot").unwrap();
    let (recording, ends) = recorded(&imported);
    let model = &imported.scene.model;
    let written = robot.vrma(model, &recording, "half a second", &Default::default()).unwrap();
    let read = motion::recording(supple_assets::InputFile::sent("robot.vrma", written.bytes), None).unwrap();
    let hips = read.joints.iter().position(|joint| joint.name == "hips").unwrap();
    let first = read.frame(0)[hips].translation;
    let body = imported.links.iter().position(|link| link.name == "hips").unwrap();
    let link = ends[0][body].then(imported.links[body].body_from_link);
    assert!(first.distance(link.translation) < 2e-3, "{first} {}", link.translation);
    assert!((0.45..0.55).contains(&(read.frame_time * (read.frames() - 1) as f64)), "{}", read.frames());
    // And a person without such a map is refused.
    let man = Character::open(&asset("gltf/CesiumMan.glb").unwrap()).unwrap();
    let refused = man.vrma(&man.imported("man").unwrap().scene.model, &Recording::default(), "x", &Default::default());
    assert_eq!(refused.unwrap_err().code, "file/vrm");
}

#[test]
fn motions_of_other_files_are_recordings() {
    let Some(folder) = common::assets() else { return };
    let read = |name: &str, clip: Option<&str>| {
        motion::recording(supple_assets::Files::default().open(&folder.join(name)).unwrap(), clip)
    };
    let twist = read("vrm/hips_spine_twisting.vrma", None).unwrap();
    assert!(twist.joints.iter().any(|joint| joint.name == "leftUpperLeg"));
    assert!(twist.frames() > 10);
    let walk = read("gltf/CesiumMan.glb", None).unwrap();
    assert!(walk.joints.len() >= 19);
    assert_eq!(read("gltf/mannequiny.glb", None).unwrap_err().code, "file/clip");
    read("gltf/mannequiny.glb", Some("run")).unwrap();
    assert_eq!(read("urdf/cartpole.urdf", None).unwrap_err().code, "file/ending");
}

/// Spring bones as both versions of the format tell them, in a file of five nodes.
fn avatar(extensions: &str) -> Result<Character, supple_assets::FileError> {
    let text = String::from_utf8(include_bytes!("../../../fuzz/strip.gltf").to_vec()).unwrap();
    let text = text.replacen('{', &format!("{{\"extensions\":{extensions},"), 1);
    Character::from_bytes(Path::new("avatar.vrm"), text.into_bytes())
}

#[test]
fn spring_bones_of_avatars_are_read() {
    let one = r#"{"VRMC_springBone":{"specVersion":"1.0","colliders":[{"node":1,"shape":{"sphere":{"offset":[0,1,2],"radius":0.5}}},
        {"node":2,"shape":{"capsule":{"offset":[0,0,0],"radius":0.25,"tail":[0,1,0]}}}],"colliderGroups":[{"colliders":[0,1]}],
        "springs":[{"name":"ear","joints":[{"node":1,"stiffness":2,"gravityPower":0.5,"dragForce":0.25},{"node":2}],"colliderGroups":[0]}]}}"#;
    let avatar_1 = avatar(one).unwrap();
    let (chain, colliders) = (&avatar_1.springs.chains[0], &avatar_1.springs.colliders);
    assert_eq!((chain.name.as_str(), &chain.colliders[..], chain.joints.len()), ("ear", &[0, 1][..], 2));
    assert_eq!(
        (chain.joints[0].stiffness, chain.joints[0].gravity_power, chain.joints[0].drag_force),
        (2.0, 0.5, 0.25)
    );
    assert_eq!(
        (colliders[0].offset, colliders[0].tail, colliders[1].tail),
        (DVec3::new(0.0, 1.0, 2.0), None, Some(DVec3::Y))
    );
    assert!(avatar_1.imported("avatar").unwrap().notes.iter().any(|note| note.code == "import/spring"));
    let zero = r#"{"VRM":{"secondaryAnimation":{"boneGroups":[{"comment":"ear","stiffiness":2,"gravityPower":0.5,"dragForce":0.25,"hitRadius":0.02,"bones":[1],"colliderGroups":[0]}],
        "colliderGroups":[{"node":1,"colliders":[{"offset":{"x":0,"y":1,"z":-2},"radius":0.5}]}]}}}"#;
    let avatar_0 = avatar(zero).unwrap();
    let chain = &avatar_0.springs.chains[0];
    assert_eq!(chain.joints.iter().map(|joint| joint.node).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((avatar_0.springs.colliders[0].offset, chain.joints[1].hit_radius), (DVec3::new(0.0, 1.0, 2.0), 0.02));
    for wrong in
        [one.replace("\"node\":2}]", "\"node\":99}]"), one.replace("[0,1]}]", "[0,7]}]"), zero.replace("[1]", "[-1]")]
    {
        assert_eq!(avatar(&wrong).unwrap_err().code, "file/vrm", "{wrong}");
    }
}

/// Materials for avatars and expressions are nothing to a simulation: a bake keeps them, letter by letter.
#[test]
fn a_bake_carries_what_an_avatar_has_besides_bones() {
    let extensions = serde_json::json!({
        "VRMC_vrm": { "specVersion": "1.0", "meta": { "name": "strip", "authors": ["us"], "licenseUrl": "https://vrm.dev/licenses/1.0/" },
            "humanoid": { "humanBones": { "hips": { "node": 1 } } },
            "expressions": { "preset": { "happy": { "morphTargetBinds": [], "isBinary": false,
                "materialColorBinds": [{ "material": 0, "type": "color", "targetValue": [1, 0.5, 0.25, 1] }] } } } },
        "VRMC_springBone": { "specVersion": "1.0", "springs": [{ "name": "ear", "joints": [{ "node": 1 }, { "node": 2 }] }] } });
    let mtoon = serde_json::json!({ "VRMC_materials_mtoon": { "specVersion": "1.0", "shadeColorFactor": [0.1, 0.2, 0.3],
        "outlineWidthMode": "worldCoordinates", "outlineWidthFactor": 0.01 } });
    let mut root: serde_json::Value = serde_json::from_slice(include_bytes!("../../../fuzz/strip.gltf")).unwrap();
    root["extensions"] = extensions.clone();
    root["extensionsUsed"] = serde_json::json!(["VRMC_vrm", "VRMC_springBone", "VRMC_materials_mtoon"]);
    root["materials"] = serde_json::json!([{ "name": "skin", "extensions": mtoon.clone() }]);
    root["meshes"][0]["primitives"][0]["material"] = serde_json::json!(0);
    let character = Character::from_bytes(Path::new("avatar.vrm"), root.to_string().into_bytes()).unwrap();
    let scene = character.imported("avatar").unwrap().scene;
    let (mut state, mut work, mut recording) = (scene.state.clone(), Work::new(&scene.model), Recording::default());
    for _ in 0..10 {
        let report = step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        recording.add(&scene.model, &scene.input, &state, Some(&report));
    }
    let baked = character.bake(&scene.model, &recording, "sway", &BakeSettings::default()).bytes;
    let length = u32::from_le_bytes(baked[12..16].try_into().unwrap()) as usize;
    let written: serde_json::Value = serde_json::from_slice(&baked[20..20 + length]).unwrap();
    for (name, value) in extensions.as_object().unwrap() {
        assert_eq!(written["extensions"][name], *value, "{name}");
    }
    assert_eq!(written["materials"][0]["extensions"], mtoon);
    let used = written["extensionsUsed"].as_array().unwrap();
    assert!(root["extensionsUsed"].as_array().unwrap().iter().all(|name| used.contains(name)), "{used:?}");
    assert_eq!(written["animations"].as_array().unwrap().last().unwrap()["name"], "sway");
}

/// USD's own library opens what is written, and puts the vertices where the simulation has them.
#[test]
fn usd_is_opened_by_its_own_library() {
    let Some(folder) = common::assets() else { return };
    let python = std::env::var("SUPPLE_USD_PYTHON").unwrap_or_else(|_| "python3".into());
    if !Command::new(&python).args(["-c", "from pxr import Usd"]).output().is_ok_and(|out| out.status.success()) {
        assert!(std::env::var_os("SUPPLE_USD_PYTHON").is_none(), "{python} has no usd-core");
        eprintln!("SKIPPED: {python} has no usd-core (pip install usd-core, SUPPLE_USD_PYTHON)");
        return;
    }
    let scratch = std::env::temp_dir().join(format!("supple-usd-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    for name in ["gltf/CesiumMan.glb", "vrm/debug_robot.vrm"] {
        let character = Character::open(&folder.join(name)).unwrap();
        let imported = character.imported(name).unwrap();
        let (recording, ends) = recorded(&imported);
        let usda = character.usda(&imported.scene.model, &recording, "half a second").unwrap();
        let path = scratch.join("out.usda");
        std::fs::write(&path, &usda.text).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/usd.py");
        let out = Command::new(&python).arg(script).arg(&path).output().unwrap();
        assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        // Vertices of the last frame by USD, and by the bodies that carry them here.
        let count: usize = imported.meshes.iter().map(|mesh| mesh.vertices.len()).sum();
        let places = told["points"].as_array().unwrap();
        if name.ends_with(".vrm") {
            // Parts of it hang on no bone, and no body draws them here.
            assert!(places.len() >= count, "{name}");
            continue;
        }
        assert_eq!(places.len(), count, "{name}");
        let (bodies, poses) = (imported.scene.model.bodies(), &ends[1]);
        let scale = told["metersPerUnit"].as_f64().unwrap();
        let carried = imported.meshes.iter().flat_map(|mesh| mesh.vertices.iter().zip(&mesh.carried));
        let mut worst = 0.0f64;
        for (place, (vertex, carried)) in places.iter().zip(carried) {
            let start = DVec3::from_array(vertex.map(f64::from));
            let mut here = DVec3::ZERO;
            for (body, weight) in carried.bodies.iter().zip(carried.weights) {
                let body = body.index();
                let at = poses[body].transform_point(bodies[body].start.inverse().transform_point(start));
                here += at * f64::from(weight);
            }
            let there = DVec3::from_array(std::array::from_fn(|k| place[k].as_f64().unwrap())) * scale;
            worst = worst.max(there.distance(here));
        }
        // f32 in the file, and the four strongest bones here: a tenth of a millimetre for figures of a metre or two.
        assert!(worst < 2e-4, "{name}: {worst} m");
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}
