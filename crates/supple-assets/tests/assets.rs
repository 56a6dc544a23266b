//! Real files made by others, found through `SUPPLE_ASSETS` (see `test.sh`): each becomes a character that holds its pose.

mod common;

use common::characters;
use std::path::Path;
use supple::glam::DVec3;
use supple::{Work, step};
use supple_assets::{Character, Imported, JointFrom, open};

fn asset(name: &str) -> Option<Imported> {
    let path = characters().into_iter().find(|f| f.ends_with(name))?;
    Some(open(&path).unwrap())
}

fn stem(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_file_holds_its_pose_at_rest() {
    for path in characters() {
        let name = stem(&path);
        let imported = match open(&path) {
            Ok(imported) => imported,
            Err(error) => {
                // A triangle that morphs has nothing to simulate.
                assert_eq!((name.as_str(), error.code), ("SimpleMorph.gltf", "file/nothing"), "{error}");
                continue;
            }
        };
        let scene = &imported.scene;
        let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
        let size = extent(&imported);
        for k in 0..120 {
            let report = step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
            // Nothing but the plain rule; joints closed to the tolerance of steps in which bodies may touch each other.
            assert_eq!((report.fallbacks, report.resorts), (0, 0), "{name}, step {k}: {:?}", report.trouble);
            assert!(report.max_joint_gap < 1e-9 * size.max(1.0), "{name}: {}", report.max_joint_gap);
        }
        assert!(state.is_finite(), "{name}");
        for (body, start) in state.bodies.iter().zip(&scene.state.bodies) {
            // Springs are wound up by what they carry: the pose is an equilibrium, to rounding of inertias in large files.
            let moved = body.position.distance(start.position);
            assert!(moved < 1e-6 * size, "{name}: {moved} of {size}");
        }
    }
}

/// The largest extent of all meshes \[m\].
fn extent(imported: &Imported) -> f64 {
    let points = imported.meshes.iter().flat_map(|m| &m.vertices).map(|v| DVec3::from(v.map(f64::from)));
    let (low, high) = points.fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(l, h), p| (l.min(p), h.max(p)));
    (high - low).max_element()
}

#[test]
fn a_mannequin_is_understood() {
    let Some(path) = characters().into_iter().find(|f| f.ends_with("mannequiny.glb")) else { return };
    let character = Character::open(&path).unwrap();
    let bone = |name: &str| character.rig.bones.iter().find(|b| b.name == name).unwrap();
    assert_eq!(character.rig.bones.len(), 45);
    let parent = |name: &str| bone(name).parent.map(|p| character.rig.bones[p].name.as_str());
    assert_eq!(parent("calf.l"), Some("thigh.l"));
    assert_eq!(parent("clavicle.r"), Some("spine_02"));
    assert_eq!(parent("pelvis"), None);
    for name in ["calf.l", "calf.r", "lowerarm.l", "lowerarm.r"] {
        assert!(matches!(bone(name).joint, supple_assets::Turn::Hinge { .. }), "{name}");
        assert!(matches!(bone(name).joint_from, JointFrom::Name | JointFrom::NameAndClips), "{name}");
    }
    // By its height: a body mass index of 22.
    let mass: f64 = character.rig.bones.iter().map(|b| b.mass).sum();
    assert!((mass - 22.0 * character.height().powi(2)).abs() < 1e-9, "{mass} kg");
    let sides = |name: &str| (bone(&format!("{name}.l")).mass, bone(&format!("{name}.r")).mass);
    for part in ["thigh", "calf", "upperarm", "lowerarm", "hand"] {
        let (left, right) = sides(part);
        assert!((left / right - 1.0).abs() < 1e-9, "{part}: {left} and {right} kg");
    }
}

#[test]
fn shapes_lie_within_what_is_drawn() {
    for name in ["CesiumMan.glb", "mannequiny.glb", "RiggedFigure.glb", "generic-hand-left.glb"] {
        let Some(imported) = asset(name) else { return };
        let points: Vec<DVec3> =
            imported.meshes.iter().flat_map(|m| &m.vertices).map(|v| DVec3::from(v.map(f64::from))).collect();
        let (low, high) =
            points.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(l, h), p| (l.min(*p), h.max(*p)));
        let slack = 0.03 * (high - low).max_element();
        for body in imported.scene.model.bodies() {
            let centre = body.start.translation;
            let inside = centre.cmpge(low - slack).all() && centre.cmple(high + slack).all();
            assert!(inside, "{name}: {} at {centre}", body.name);
        }
        // The floor is a centimetre under the lowest vertex, for every metre of the whole.
        let floor = imported.scene.model.obstacles()[0].pose.translation.y;
        let under = 0.01 * (high - low).max_element().max(1.0);
        assert!((floor + under - low.y).abs() < 1e-6, "{name}: {floor}, {}", low.y);
    }
}

#[test]
fn bones_side_by_side_become_a_hand() {
    let Some(imported) = asset("generic-hand-left.glb") else { return };
    let model = &imported.scene.model;
    assert_eq!(model.joints().len(), model.bodies().len() - 1, "one tree");
    let parent = |name: &str| {
        let joint = model.joints().iter().find(|j| j.name == name).unwrap();
        model.body(joint.parent.unwrap()).name.clone()
    };
    for finger in ["index-finger", "middle-finger", "ring-finger", "pinky-finger"] {
        let bone = |part: &str| format!("{finger}-{part}");
        assert_eq!(parent(&bone("phalanx-distal")), bone("phalanx-intermediate"));
        assert_eq!(parent(&bone("phalanx-intermediate")), bone("phalanx-proximal"));
        assert_eq!(parent(&bone("phalanx-proximal")), bone("metacarpal"));
        // Those that share no vertex with the wrist hang on their neighbour.
        let above = parent(&bone("metacarpal"));
        assert!(above == "wrist" || above.ends_with("metacarpal"), "{finger}: {above}");
    }
    assert!(imported.notes.iter().any(|n| n.code == "import/joined-by-skin"));
}
