//! Robots as Supple reads them agree with what MuJoCo and Pinocchio read in the same files: masses, centres, inertias, axes, poses at
//! random positions, and the motion of a passive swing. The two come from PyPI into `target/oracles` (`test.sh` puts them there).

mod common;

use common::{assets, files};
use glam::{DMat3, DQuat, DVec3};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use supple::{JointMask, Pose, Work, step};
use supple_assets::robot::{Base, Built, Inertial, Kind, Robot, build, y_up};
use supple_assets::{Files, mjcf, urdf};

/// Relative to the largest number of its kind.
const TOLERANCE: f64 = 1e-9;

#[derive(Deserialize)]
struct Reading {
    bodies: Vec<BodyReading>,
    #[serde(default)]
    links: Vec<String>,
    joints: Vec<String>,
    samples: Vec<Sample>,
    /// What was taken out of the file for the oracle to read it.
    #[serde(default)]
    edits: Vec<String>,
}

#[derive(Deserialize)]
struct BodyReading {
    name: String,
    mass: f64,
    centre: [f64; 3],
    inertia: [f64; 9],
}

#[derive(Deserialize)]
struct Sample {
    positions: Vec<f64>,
    /// x y z, w x y z
    poses: Vec<[f64; 7]>,
    axes: Vec<[f64; 3]>,
    anchors: Vec<[f64; 3]>,
}

#[derive(Deserialize)]
struct Swing {
    /// By joint: where it starts.
    joints: BTreeMap<String, f64>,
    /// By body: where it ends.
    poses: BTreeMap<String, [f64; 7]>,
    /// How far a hinge got from its start [rad].
    turned: f64,
}

/// The interpreter with both libraries; says aloud when it is absent, and fails where it must be there.
fn python() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let python = target.join("oracles/bin/python");
    if python.is_file() {
        return Some(python);
    }
    assert!(
        std::env::var_os("SUPPLE_REQUIRE_ASSETS").is_none(),
        "MuJoCo and Pinocchio are not in target/oracles: run test.sh"
    );
    eprintln!("SKIPPED: MuJoCo and Pinocchio are not in target/oracles (run test.sh)");
    None
}

/// What the oracle prints about a file, or why it does not read it.
fn ask<T: for<'a> Deserialize<'a>>(what: &str, file: &Path) -> Option<Result<T, String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracles.py");
    let out = Command::new(python()?).arg(script).arg(what).arg(file).output().unwrap();
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return Some(Err(said.into_owned()));
    }
    Some(Ok(serde_json::from_slice(&out.stdout).unwrap()))
}

fn pose(p: &[f64; 7]) -> Pose {
    Pose::new(DQuat::from_xyzw(p[4], p[5], p[6], p[3]), DVec3::from_slice(p))
}

fn up() -> Pose {
    Pose::new(y_up(), DVec3::ZERO)
}

fn near(a: Pose, b: Pose, tolerance: f64) -> bool {
    let turn = a.rotation.dot(b.rotation).abs();
    (a.translation - b.translation).length() < tolerance && 1.0 - turn < tolerance * tolerance.max(1e-12) + 1e-15
}

/// The largest difference of two inertias, relative to the larger one.
fn difference(a: &Inertial, b: &Inertial) -> f64 {
    let size = |m: &DMat3| m.to_cols_array().iter().fold(0f64, |s, x| s.max(x.abs()));
    let moment = size(&(a.inertia - b.inertia)) / size(&b.inertia).max(1e-300);
    ((a.mass - b.mass) / b.mass).abs().max((a.centre - b.centre).length()).max(moment)
}

fn inertial(b: &BodyReading) -> Inertial {
    Inertial { mass: b.mass, centre: DVec3::from_array(b.centre), inertia: DMat3::from_cols_array(&b.inertia) }
}

/// Axis directions and anchors of all joints of the file, at a state.
fn axes(built: &Built, robot: &Robot, state: &supple::State) -> Vec<(DVec3, DVec3)> {
    let mut out = Vec::new();
    for joint in &built.joints {
        let Some(id) = joint.joint else {
            out.push((DVec3::ZERO, built.link_pose(state, joint.link).translation));
            continue;
        };
        let model_joint = built.model.joint(id);
        let child = state.bodies[model_joint.child.index()].pose().then(model_joint.child_from_joint);
        let parent = built.model.parent_pose(model_joint, state).then(model_joint.parent_from_joint);
        let planar = model_joint.mask == JointMask::PLANAR && joint.kind == Kind::Slide;
        let direction =
            if planar { parent.rotation * DVec3::AXES[joint.slot + 1] * joint.sign } else { child.rotation * DVec3::X };
        out.push((direction, child.translation));
    }
    assert_eq!(out.len(), robot.links.iter().map(|l| l.axes.len()).sum::<usize>());
    out
}

/// Links without mass of their own in the file, those that were mended, and those that stand between axes have no counterpart.
fn changed(built: &Built, body: &str) -> bool {
    let codes = ["import/inertia", "import/massless", "import/density"];
    built.notes.iter().any(|n| codes.contains(&n.code) && n.part.split(", ").any(|part| part == body))
}

#[test]
fn mjcf_models_agree_with_mujoco() {
    let mut compared = Vec::new();
    for file in files("mjcf", "xml") {
        let Ok(robot) = mjcf::read(&Files::default().open(&file).unwrap()) else { continue }; // fragments: tests/assets.rs
        let Some(reading) = ask::<Reading>("mjcf", &file) else { return };
        let reading = reading.unwrap_or_else(|e| panic!("MuJoCo does not read {}: {e}", file.display()));
        let built = build(&file, &robot, Base::Fixed).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(reading.bodies.len(), robot.links.len(), "{name}");
        assert_eq!(reading.joints.len(), built.joints.len(), "{name}");
        for (link, body) in robot.links.iter().zip(&reading.bodies) {
            assert!(body.name.is_empty() || body.name == link.name, "{name}: {} {}", body.name, link.name);
            let Some(own) = &link.inertial else {
                assert_eq!(body.mass, 0.0, "{name} {}", link.name);
                continue;
            };
            let off = difference(own, &inertial(body));
            assert!(off < TOLERANCE, "{name} {}: {off}", link.name);
        }
        // Fixed links together, by MuJoCo's numbers and relative poses.
        let first = &reading.samples[0].poses;
        for (k, body) in built.model.bodies().iter().enumerate() {
            let members: Vec<usize> = (0..robot.links.len()).filter(|&l| built.links[l].0.index() == k).collect();
            let Some(&leader) = members.first() else { continue };
            if changed(&built, &body.name) {
                continue;
            }
            let place = |l: usize| pose(&first[leader]).inverse().then(pose(&first[l]));
            let sum = members
                .iter()
                .map(|&l| inertial(&reading.bodies[l]).moved(place(l)))
                .reduce(|a, b| a.plus(&b))
                .unwrap();
            let own = Inertial { mass: body.mass, centre: body.centre_in_link, inertia: body.inertia };
            let off = difference(&own, &sum);
            assert!(off < TOLERANCE, "{name}, body {}: {off}", body.name);
        }
        for sample in &reading.samples {
            let state = built.place(&sample.positions);
            for (l, given) in sample.poses.iter().enumerate() {
                let (own, given) = (built.link_pose(&state, l), up().then(pose(given)));
                assert!(near(own, given, TOLERANCE), "{name} {}: {own:?} {given:?}", robot.links[l].name);
            }
            for (k, (axis, anchor)) in axes(&built, &robot, &state).into_iter().enumerate() {
                let (a, p) =
                    (y_up() * DVec3::from_array(sample.axes[k]), y_up() * DVec3::from_array(sample.anchors[k]));
                let joint = &built.joints[k];
                let turns = matches!(joint.kind, Kind::Hinge | Kind::Slide);
                assert!(!turns || (axis - a).length() < TOLERANCE, "{name} {}: {axis} {a}", joint.name);
                assert!(
                    joint.kind != Kind::Hinge || (anchor - p).length() < TOLERANCE,
                    "{name} {}: {anchor} {p}",
                    joint.name
                );
            }
        }
        for edit in &reading.edits {
            eprintln!("MuJoCo reads {name} only without {edit}");
        }
        compared.push(name);
    }
    if assets().is_some() {
        assert!(compared.len() >= 17, "{compared:?}");
        println!("agree with MuJoCo: {}", compared.join(", "));
    }
}

#[test]
fn urdf_models_agree_with_pinocchio() {
    let (mut compared, mut refused) = (Vec::new(), Vec::new());
    for file in files("urdf", "urdf") {
        let robot = urdf::read(&Files::default().open(&file).unwrap()).unwrap();
        let built = build(&file, &robot, Base::Fixed).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Some(reading) = ask::<Reading>("urdf", &file) else { return };
        let reading = match reading {
            Ok(reading) => reading,
            Err(e) => {
                eprintln!("Pinocchio does not read {name}: {e}");
                refused.push(name);
                continue;
            }
        };
        assert_eq!(reading.joints.len(), built.joints.len(), "{name}");
        let of_name: Vec<usize> =
            built.joints.iter().map(|j| reading.joints.iter().position(|n| *n == j.name).unwrap()).collect();
        for (joint, &k) in built.joints.iter().zip(&of_name) {
            let (body, _) = built.links[joint.link];
            let body = built.model.body(body);
            if changed(&built, &body.name) {
                continue;
            }
            let own = Inertial { mass: body.mass, centre: body.centre_in_link, inertia: body.inertia };
            let off = difference(&own, &inertial(&reading.bodies[k]));
            assert!(off < TOLERANCE, "{name} {}: {off}", body.name);
        }
        for sample in &reading.samples {
            let positions: Vec<f64> = of_name.iter().map(|&k| sample.positions[k]).collect();
            let state = built.place(&positions);
            for (link, given) in reading.links.iter().zip(&sample.poses) {
                let l = robot.links.iter().position(|l| l.name == *link).unwrap();
                let (own, given) = (built.link_pose(&state, l), up().then(pose(given)));
                assert!(near(own, given, TOLERANCE), "{name} {link}: {own:?} {given:?}");
            }
            for ((axis, anchor), &k) in axes(&built, &robot, &state).into_iter().zip(&of_name) {
                let (a, p) =
                    (y_up() * DVec3::from_array(sample.axes[k]), y_up() * DVec3::from_array(sample.anchors[k]));
                let slides = built.joints.iter().find(|j| j.name == reading.joints[k]).unwrap().kind == Kind::Slide;
                assert!((axis - a).length() < TOLERANCE, "{name} {}: {axis} {a}", reading.joints[k]);
                assert!(slides || (anchor - p).length() < TOLERANCE, "{name} {}: {anchor} {p}", reading.joints[k]);
            }
        }
        compared.push(name);
    }
    if assets().is_some() {
        assert!(compared.len() >= 9, "{compared:?}");
        println!("agree with Pinocchio: {}; not read by it: {}", compared.join(", "), refused.join(", "));
    }
}

#[test]
fn passive_swings_agree_with_mujoco() {
    let Some(assets) = assets() else { return };
    let models = [
        "mjcf/dm_control/acrobot.xml",
        "mjcf/dm_control/cartpole.xml",
        "mjcf/dm_control/pendulum.xml",
        "mjcf/dm_control/cheetah.xml",
        "mjcf/shadow_hand/right_hand.xml",
        "urdf/double_pendulum_simple.urdf",
        "urdf/pendulum5.urdf",
    ];
    for name in models {
        let file = assets.join(name);
        let Some(swing) = ask::<Swing>("swing", &file) else { return };
        let swing = swing.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(swing.turned > 0.1, "{name} does not swing: {} rad", swing.turned);
        let file = Files::default().open(&file).unwrap();
        let mut robot = if name.ends_with("urdf") { urdf::read(&file) } else { mjcf::read(&file) }.unwrap();
        for axis in robot.links.iter_mut().flat_map(|link| &mut link.axes) {
            (axis.range, axis.actuator) = (None, None);
        }
        robot.contacts = supple::Contacts::Off;
        let built = build(file.path(), &robot, Base::Fixed).unwrap();
        let start: Vec<f64> = built.joints.iter().map(|joint| swing.joints[&joint.name]).collect();
        let end = |parts: usize| {
            let (mut state, mut input) = (built.place(&start), built.input.clone());
            input.dt = 1.0 / parts as f64;
            let mut work = Work::new(&built.model);
            for _ in 0..parts {
                step(&built.model, &input, &mut state, &mut work).unwrap();
            }
            let off = swing.poses.iter().map(|(body, given)| {
                let l = robot.links.iter().position(|link| link.name == *body).unwrap();
                // the origin may be on the hinge: also points a metre away from it
                let (own, given) = (built.link_pose(&state, l), up().then(pose(given)));
                let points = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::Z];
                points
                    .map(|p| (own.transform_point(p) - given.transform_point(p)).length())
                    .into_iter()
                    .fold(0f64, f64::max)
            });
            off.fold(0f64, f64::max)
        };
        let (coarse, fine) = (end(1000), end(4000));
        println!(
            "{name}: hinges turn {:.2} rad; {coarse:.2e} m apart after 1 s at 1/1000 s, {fine:.2e} m at 1/4000 s",
            swing.turned
        );
        assert!(fine < 1e-4, "{name}: {fine} m after 1 s");
        // Two methods that solve the same equations: the difference is that of our steps, and goes with them.
        assert!(coarse > 1e-12 && fine < 0.5 * coarse, "{name}: {coarse} m, then {fine} m");
    }
}

/// A model written as MJCF: MuJoCo reads the bodies with the same inertia, and the kinematics of the model.
#[test]
fn exported_models_are_read_by_mujoco_as_they_are() {
    let Some(_) = python() else { return };
    let folder = std::env::temp_dir().join(format!("supple-export-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut scenes: Vec<(String, supple::Scene)> = ["robot", "hand", "chain:5", "fourbars:2"]
        .map(|name| (name.to_owned(), supple::Scene::parse(name).unwrap()))
        .into();
    if let Some(assets) = assets() {
        for name in [
            "mjcf/humanoid.xml",
            "mjcf/dm_control/cheetah.xml",
            "urdf/panda/urdf/panda.urdf",
            "mjcf/dm_control/hopper.xml",
        ] {
            scenes.push((name.to_owned(), supple_assets::open(&assets.join(name)).unwrap().scene));
        }
    }
    for (name, scene) in scenes {
        let model = &scene.model;
        let file = folder.join("model.xml");
        std::fs::write(&file, supple_assets::export_mjcf::export(&name, model, &scene.input).text).unwrap();
        let reading = ask::<Reading>("mjcf", &file).unwrap().unwrap_or_else(|e| panic!("{name}: {e}"));
        let robot = mjcf::read(&Files::default().open(&file).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let built = build(&file, &robot, Base::Fixed).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(reading.bodies.len(), model.bodies().len(), "{name}");
        for given in &reading.bodies {
            let body = model.body(model.find_body(&given.name).unwrap());
            let own = Inertial { mass: body.mass, centre: body.centre_in_link, inertia: body.inertia };
            let off = difference(&own, &inertial(given));
            assert!(off < TOLERANCE, "{name} {}: {off}", given.name);
        }
        // MuJoCo's poses at random positions are those of the model at the same positions, joint by joint.
        for sample in &reading.samples {
            let mut state = model.start();
            let mut coordinates = supple::model::Coordinates::of(model, &state);
            let mut rest = sample.positions.as_slice();
            for joint in &built.joints {
                let (own, after) = rest.split_at(joint.kind.positions());
                rest = after;
                let id = match model.find_joint(&joint.name) {
                    Some(id) if coordinates.node_of_joint(id).is_some() => id,
                    _ => continue, // free bodies and joints of several axes: by the reader's own place, below
                };
                let model_joint = model.joint(id);
                if joint.kind == Kind::Ball {
                    // MuJoCo turns from the start, in link axes: q = q_start · F⁻¹ turn F
                    let turn = DQuat::from_xyzw(own[1], own[2], own[3], own[0]);
                    let frame = model_joint.child_from_joint.rotation;
                    let start = DQuat::from_slice(coordinates.positions_of(id));
                    (start * frame.conjugate() * turn * frame).write_to_slice(coordinates.positions_of_mut(id));
                } else {
                    coordinates.positions_of_mut(id)[0] = own[0];
                }
            }
            coordinates.write(model, &mut state);
            let simple = built.joints.iter().all(|j| model.find_joint(&j.name).is_some());
            let read_back = built.place(&sample.positions);
            for (l, given) in sample.poses.iter().enumerate() {
                let given = up().then(pose(given));
                assert!(
                    near(built.link_pose(&read_back, l), given, TOLERANCE),
                    "{name} {}, read back",
                    robot.links[l].name
                );
                if simple {
                    let id = model.find_body(&robot.links[l].name).unwrap();
                    let own = state.bodies[id.index()].pose().then(Pose::at(-model.body(id).centre_in_link));
                    assert!(near(own, given, 1e-8), "{name} {}: {own:?} {given:?}", robot.links[l].name);
                }
            }
        }
        println!("{name}: {} bodies, {} joints", reading.bodies.len(), reading.joints.len());
    }
    std::fs::remove_dir_all(folder).unwrap();
}
