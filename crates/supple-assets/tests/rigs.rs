//! Rigs of characters made by others: what `supple bench rigs` measures stays within its bounds, whatever the unit of length of a file.

use std::path::{Path, PathBuf};
use supple::glam::DVec3;
use supple::{Work, step};
use supple_assets::doctor::{examine_figure, mend};
use supple_assets::{BakeSettings, Character, Files, Kind, Recipe, Recording, RigOptions};

/// The folder of assets, or nothing, aloud, when it is not here.
fn assets() -> Option<PathBuf> {
    let folder = std::env::var("SUPPLE_ASSETS").ok().map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
    }
    folder
}

#[test]
fn rigs_are_whole_symmetric_and_follow_their_clips() {
    let Some(assets) = assets() else { return };
    let files = [
        ("gltf/CesiumMan.glb", Kind::Biped),
        ("gltf/RiggedFigure.glb", Kind::Biped),
        ("gltf/mannequiny.glb", Kind::Biped),
        ("gltf/platformer-robot.glb", Kind::Biped),
        ("gltf/generic-hand-left.glb", Kind::Other),
        ("characters/Pug/Pug.gltf", Kind::Quadruped),
        ("characters/rogue-hooded.glb", Kind::Biped),
        ("gltf/RiggedSimple.glb", Kind::Other),
        ("gltf/SimpleSkin.gltf", Kind::Other),
        ("vrm/debug_robot.vrm", Kind::Biped),
        ("fbx/max_transformed_skin_7500_binary.fbx", Kind::Other),
        ("fbx/maya_kenney_character_7700_binary.fbx", Kind::Biped),
        ("fbx/maya_character_7500_binary.fbx", Kind::Biped),
        ("fbx/motionbuilder_sausage_rrss_7700_binary.fbx", Kind::Other),
    ];
    for (name, kind) in files {
        let row = Files::default().character(&assets.join(name)).unwrap().unwrap().measure().unwrap();
        assert_eq!(row.kind, kind, "{name}");
        let hinges = match kind {
            Kind::Biped => 4,
            Kind::Quadruped => 8,
            Kind::Other => 0,
        };
        assert!(row.hinges_found >= hinges, "{name}: {row:?}");
        assert!(row.asymmetry <= 0.05 && row.head_share <= 0.15, "{name}: {row:?}");
        assert!(row.sideways <= 5.0 && row.torn <= 0.01, "{name}: {row:?}");
        assert!(row.rest_time <= 4.0, "{name}: {row:?}");
        assert!(row.clip_degrees <= 5.0 && row.clip_share <= 0.02, "{name}: {row:?}");
    }
}

#[test]
fn feet_that_hang_from_the_root_are_joined_to_their_legs() {
    let Some(assets) = assets() else { return };
    let character = Character::open(&assets.join("characters/Pug/Pug.gltf")).unwrap();
    let bones = &character.rig.bones;
    for (foot, leg) in [("FrontFoot", "FrontLowLeg"), ("BackFoot", "BackLowLeg")] {
        for side in ["L", "R"] {
            let foot = bones.iter().find(|b| b.name == format!("{foot}.{side}")).unwrap();
            assert_eq!(bones[foot.parent.unwrap()].name, format!("{leg}.{side}"));
        }
    }
    // Weapons, targets of IK and poles are no bodies.
    let rogue = Character::open(&assets.join("characters/rogue-hooded.glb")).unwrap();
    let names: Vec<&str> = rogue.rig.bones.iter().map(|b| b.name.as_str()).collect();
    assert!(!names.iter().any(|n| n.contains("slot") || n.contains("IK") || n.contains("control")), "{names:?}");
}

/// The figure with its scene put into a node of this scale.
fn scaled(path: &Path, scale: f64) -> Character {
    let mut root: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let children = root["scenes"][0]["nodes"].take();
    let nodes = root["nodes"].as_array_mut().unwrap();
    let added = nodes.len();
    nodes.push(serde_json::json!({ "name": "unit", "scale": [scale, scale, scale], "children": children }));
    root["scenes"][0]["nodes"] = serde_json::json!([added]);
    let folder = std::env::temp_dir().join(format!("supple-units-{}-{scale}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(path.with_file_name("RiggedFigure0.bin"), folder.join("RiggedFigure0.bin")).unwrap();
    let file = folder.join("figure.gltf");
    std::fs::write(&file, root.to_string()).unwrap();
    let character = Character::open(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    character
}

#[test]
fn the_same_figure_in_any_unit_moves_the_same_and_is_baked_in_its_own() {
    let Some(assets) = assets() else { return };
    let path = assets.join("gltf/RiggedFigure-separate/RiggedFigure.gltf");
    let mut runs: Vec<(f64, Vec<DVec3>, f64)> = Vec::new();
    for scale in [1.0, 0.01, 100.0] {
        let character = scaled(&path, scale);
        assert!((character.scale() * scale - 1.0).abs() < 1e-12);
        let scene = character.imported("figure").unwrap().scene;
        let mut input = scene.input.clone();
        input.targets.fill(None);
        let (mut state, mut work, mut recording) = (scene.state.clone(), Work::new(&scene.model), Recording::default());
        for _ in 0..60 {
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
            recording.add(&scene.model, &input, &state, Some(&report));
        }
        let baked = character.bake(&scene.model, &recording, "fall", &BakeSettings::default());
        let again = Character::from_bytes(Path::new("baked.glb"), baked.bytes).unwrap();
        let clips = again.imported("again").unwrap().clips;
        let clip = clips.iter().find(|clip| clip.name() == "fall").unwrap();
        let off =
            (0..state.bodies.len()).map(|i| clip.at(state.time, i).pose.translation.distance(state.bodies[i].position));
        assert_eq!(again.scale(), character.scale());
        runs.push((scale, state.bodies.iter().map(|b| b.position).collect(), off.fold(0.0, f64::max)));
    }
    for (scale, places, off) in &runs {
        let far = places.iter().zip(&runs[0].1).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max);
        assert!(far < 1e-6, "{scale}: {far} m");
        // Keys are left out within a tenth of a millimetre a bone.
        assert!(*off < 2e-3, "{scale}: {off} m");
    }
}

fn mass(character: &Character) -> f64 {
    character.rig.bones.iter().map(|bone| bone.mass).sum()
}

#[test]
fn mass_and_height_are_what_was_asked_for() {
    let Some(assets) = assets() else { return };
    let path = assets.join("gltf/CesiumMan.glb");
    let open = |options: RigOptions| Files::default().with_rig(options).character(&path);
    let told = RigOptions { mass: Some(80.0), height: Some(1.8), ..RigOptions::default() };
    let man = open(told).unwrap().unwrap();
    assert!((mass(&man) - 80.0).abs() < 1e-9 && (man.height() - 1.8).abs() < 1e-6, "{} {}", mass(&man), man.height());
    let plain = Character::open(&path).unwrap();
    let half = open(RigOptions { scale: Some(0.5), ..RigOptions::default() }).unwrap().unwrap();
    assert!((half.height() - 0.5 * plain.height()).abs() < 1e-9);
    let both = RigOptions { scale: Some(1.0), ..told };
    assert_eq!(open(both).unwrap_err().code, "file/option");
    assert_eq!(open(RigOptions { mass: Some(-1.0), ..told }).unwrap_err().code, "file/option");
    // What is no character has no rig to be asked of.
    let robot = Files::default().with_rig(told).scene(&assets.join("mjcf/humanoid.xml"));
    assert_eq!(robot.unwrap_err().code, "file/option");
    // A scene file says the same, and the call goes before it; takes open with what they were made with.
    let folder = std::env::temp_dir().join(format!("supple-rig-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&path, folder.join("man.glb")).unwrap();
    let scene = folder.join("man.toml");
    std::fs::write(&scene, "[character]\nfile = \"man.glb\"\nmass = 70.0\nheight = 1.7\n").unwrap();
    let character = |files: &Files| files.character(&scene).unwrap().unwrap();
    let told_by_file = character(&Files::default());
    assert!((mass(&told_by_file) - 70.0).abs() < 1e-9 && (told_by_file.height() - 1.7).abs() < 1e-6);
    let overruled = character(&Files::default().with_rig(RigOptions { mass: Some(90.0), ..RigOptions::default() }));
    assert!((mass(&overruled) - 90.0).abs() < 1e-9 && (overruled.height() - 1.7).abs() < 1e-6);
    let made = Recipe::of_file(&folder.join("man.glb").to_string_lossy()).make(&Files::default().with_rig(told));
    let again = Recipe::parse(&made.unwrap().recipe.to_string()).unwrap().make(&Files::default()).unwrap();
    assert!((mass(&again.character.unwrap()) - 80.0).abs() < 1e-9);
    std::fs::write(&scene, "[character]\nfile = \"man.glb\"\nmass = 0.0\n").unwrap();
    let wrong = Files::default().character(&scene).unwrap_err();
    assert_eq!((wrong.code, wrong.place.as_deref()), ("file/scene", Some("line 3, column 8")));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn masses_that_no_body_has_are_told_and_mended() {
    let Some(assets) = assets() else { return };
    let mut man = Character::open(&assets.join("gltf/CesiumMan.glb")).unwrap();
    let findings = |man: &Character| {
        let scene = man.imported("man").unwrap().scene;
        let found = examine_figure(&scene.model, &scene.input, Some(&man.rig)).findings;
        (found.iter().filter(|f| f.cause.code() == "doctor/mass").cloned().collect::<Vec<_>>(), scene)
    };
    assert!(findings(&man).0.is_empty());
    let thigh = man.rig.bones.iter().position(|bone| bone.class == supple_assets::Class::Thigh).unwrap();
    let head = man.rig.bones.iter().position(|bone| bone.class == supple_assets::Class::Head).unwrap();
    man.rig.bones[thigh].mass *= 1.5;
    man.rig.bones[head].mass *= 3.0;
    man.rig.bones.iter_mut().for_each(|bone| bone.mass *= 5.0);
    let (found, scene) = findings(&man);
    assert_eq!(found.len(), 3, "{found:?}");
    let mended = mend(&scene.model, &found).unwrap();
    let left = examine_figure(&mended, &scene.input, Some(&man.rig)).findings;
    assert!(!left.iter().any(|f| f.cause.code() == "doctor/mass"), "{left:?}");
}
