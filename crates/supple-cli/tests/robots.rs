//! Robots and recorded motion on the command line: keyframes, floating roots, motion and models written, rigs mended, limits from motion.

mod common;

use common::{fresh_file, json, refused, supple};
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of this content.
fn file(name: &str, content: &str) -> PathBuf {
    let path = fresh_file(name);
    std::fs::write(&path, content).unwrap();
    path
}

const PENDULUM: &str = r#"<robot name="p">
  <link name="base"><inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.08" iyy="0.08" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"><inertial><origin xyz="0.2 0 0"/><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="swing" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
  <joint name="wrist" type="continuous"><parent link="rod"/><child link="tip"/><origin xyz="0 0 -1"/><axis xyz="0 1 0"/><mimic joint="swing" multiplier="2"/></joint>
</robot>"#;

const BOXES: &str = r#"<mujoco model="boxes"><worldbody>
  <body name="one" pos="0 0 1"><joint name="a" type="hinge" axis="0 1 0"/><geom type="box" size="0.2 0.2 0.2"/></body>
  <body name="two" pos="0.2 0 1"><joint name="b" type="slide" axis="1 0 0"/><geom type="box" size="0.2 0.2 0.2"/></body>
</worldbody><keyframe><key name="high" qpos="0.5 0.7"/></keyframe></mujoco>"#;

#[test]
fn a_root_floats_when_asked() {
    let urdf = file("pendulum.urdf", PENDULUM);
    // A floating robot falls by ½ g t², a fixed one does not.
    let lowest = |options: &[&str]| {
        let out = fresh_file("fall.csv");
        let call = [&["simulate", text(&urdf), "--seconds", "1", "-o", text(&out)], options].concat();
        assert!(supple(&call).status.success());
        let table = std::fs::read_to_string(out).unwrap();
        let last = table.lines().rfind(|line| line.split(',').nth(1) == Some("base")).unwrap();
        last.split(',').nth(3).unwrap().parse::<f64>().unwrap() // time, body, x, y
    };
    assert!(lowest(&[]).abs() < 1e-9);
    assert!((lowest(&["--floating"]) + 0.5 * 9.81).abs() < 0.05);
    let said = refused(&["simulate", "hand", "--floating"]);
    assert!(said.contains("--floating"), "{said}");
}

#[test]
fn a_model_is_written_as_mjcf_and_moves_the_same() {
    let urdf = file("written.urdf", PENDULUM);
    let xml = fresh_file("written.xml");
    assert!(supple(&["inspect", text(&urdf), "-o", text(&xml)]).status.success());
    let written = std::fs::read_to_string(&xml).unwrap();
    assert!(written.contains("joint1=\"wrist\" joint2=\"swing\""), "{written}");
    let energy =
        |path: &Path| json(&["simulate", text(path), "--seconds", "1", "--json"])["energy"]["last"].as_f64().unwrap();
    let (one, other) = (energy(&urdf), energy(&xml));
    assert!((one - other).abs() < 1e-6 * (1.0 + one.abs()), "{one} {other}");
}

#[test]
fn a_run_starts_in_a_keyframe() {
    let xml = file("keyed.xml", BOXES);
    let first = |options: &[&str]| {
        let call = [&["simulate", text(&xml), "--seconds", "0.1", "--json"], options].concat();
        json(&call)["energy"]["first"].as_f64().unwrap()
    };
    // the box slides along X and turns about its middle: the same energy, another pose
    assert!((first(&["--keyframe", "high"]) - first(&[])).abs() < 1e-9);
    let name = json(&["simulate", text(&xml), "--keyframe", "high", "--seconds", "0.1", "--json"])["scene"].clone();
    assert!(name.as_str().unwrap().ends_with("keyed.xml#high"), "{name}");
    let said = refused(&["simulate", text(&xml), "--keyframe", "low"]);
    assert!(said.contains("file/keyframe") && said.contains("high"), "{said}");
    assert!(refused(&["simulate", "hand", "--keyframe", "low"]).contains("--keyframe"));
}

#[test]
fn a_motion_is_written_as_bvh_and_can_be_followed() {
    let bvh = fresh_file("robot.bvh");
    assert!(supple(&["simulate", "robot", "--seconds", "0.5", "-o", text(&bvh)]).status.success());
    let read = supple_assets::bvh::read(&supple_assets::Files::default().open(&bvh).unwrap()).unwrap();
    assert_eq!(read.frames(), 31);
    let done = json(&["simulate", "robot", "--track", text(&bvh), "--seconds", "0.4", "--json"]);
    assert_eq!(done["finite"], true);
    // its own motion on itself: nothing is lost by names, axes and limits but the margin of 0.1 rad
    let tracking = &done["tracking"];
    assert!(tracking["error_mean"].as_f64().unwrap() < 0.02, "{tracking}");
    let map = supple(&[
        "simulate",
        "robot",
        "--track",
        text(&bvh),
        "--map",
        "left_hand=left_forearm",
        "--seconds",
        "0.1",
        "--json",
    ]);
    assert!(map.status.success());
    assert!(refused(&["simulate", "robot", "--track", text(&bvh), "--map", "left_hand=nobody"]).contains("nobody"));
}

#[test]
fn a_mended_rig_is_written() {
    let xml = file("broken.xml", BOXES);
    let mended = fresh_file("mended.xml");
    let told = json(&["inspect", text(&xml), "--doctor", "--fix", "-o", text(&mended), "--json"]);
    assert_eq!(told["findings"][0]["code"], "doctor/overlap", "{told}");
    let again = json(&["inspect", text(&mended), "--doctor", "--json"]);
    assert_eq!(again["findings"].as_array().unwrap().len(), 0, "{again}");
    // Without --fix the model is written as it is.
    let plain = fresh_file("plain.xml");
    json(&["inspect", text(&xml), "--doctor", "-o", text(&plain), "--json"]);
    let again = json(&["inspect", text(&plain), "--doctor", "--json"]);
    assert_eq!(again["findings"][0]["code"], "doctor/overlap", "{again}");
    assert_eq!(supple(&["inspect", "hand", "--doctor", "--fix"]).status.code(), Some(2));
}

/// Every frame of the motions lies inside the limits that were fitted to them, and each limit is near something that they do.
#[test]
fn limits_are_fitted_to_motions() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let (figure, walk) = (assets.join("gltf/mannequiny.glb"), assets.join("bvh/cmu_02_01.bvh"));
    let toml = fresh_file("fitted.toml");
    let call = ["rig", text(&figure), "--limits-from", text(&walk), "run_root.001", "-o", text(&toml)];
    assert!(supple(&call).status.success());
    let files = supple_assets::Files::allowing(&[assets]).unwrap();
    let (before, after) = (files.scene(&figure).unwrap(), files.scene(&toml).unwrap());
    let clip = after.clip("run_root.001").unwrap().clone();
    let model = &after.scene.model;
    let mut state = after.scene.state.clone();
    let (mut nearest, mut narrower) = (vec![f64::INFINITY; model.joints().len()], 0);
    for f in 0..clip.frames() {
        for (body, pose) in state.bodies.iter_mut().zip(clip.frame(f)) {
            (body.position, body.orientation) = (pose.translation, pose.rotation);
        }
        state.follow_turns(model);
        for (k, joint) in model.joints().iter().enumerate() {
            let limits = &joint.limits;
            let (s1, s2, _) = supple::model::joint::swing_twist(state.relative_rotation(model, joint));
            let left = limits
                .angle
                .map_or(f64::INFINITY, |r| (r.max - state.joints[k].angle).min(state.joints[k].angle - r.min));
            let left = left.min(limits.swing.map_or(f64::INFINITY, |e| -e.violation(s1, s2).0));
            assert!(left > -1e-3, "{}: frame {f} is {left} beyond the limit", joint.name);
            nearest[k] = nearest[k].min(left);
        }
    }
    for (old, new) in before.scene.model.joints().iter().zip(model.joints()) {
        let width = |limits: &supple::Limits| limits.angle.map_or(0.0, |r| r.max - r.min);
        narrower += usize::from(width(&new.limits) < 0.8 * width(&old.limits));
    }
    let touched = nearest.iter().filter(|left| **left < 0.3).count();
    assert!(touched > nearest.len() / 2, "{touched} of {} limits are near the motion", nearest.len());
    assert!(narrower > 10, "{narrower} joints got narrower");
    assert!(refused(&["rig", text(&figure), "--limits-from", "no such clip"]).contains("no such clip"));
}
