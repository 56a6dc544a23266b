//! Joints that follow others in files: `mimic` of URDF, `equality/joint` of MJCF, and back to MJCF.

mod common;

use common::assets;
use std::path::Path;
use supple::{Model, State, Work, step};
use supple_assets::export_mjcf::export;
use supple_assets::robot::{Base, Built, build};
use supple_assets::{mjcf, open, urdf};

const URDF: &str = r#"<robot name="gear">
  <link name="base"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="one"><inertial><origin xyz="0.3 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="two"><inertial><origin xyz="0.2 0 0"/><mass value="2"/><inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="jaw"><inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="a" type="continuous"><parent link="base"/><child link="one"/><axis xyz="0 1 0"/></joint>
  <joint name="b" type="continuous"><parent link="one"/><child link="two"/><origin xyz="0.6 0 0"/><axis xyz="0 1 0"/><mimic joint="a" multiplier="-2" offset="0.3"/></joint>
  <joint name="c" type="prismatic"><parent link="base"/><child link="jaw"/><origin xyz="0 1 0"/><axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="0" velocity="1"/><mimic joint="b" multiplier="0.05"/></joint>
</robot>"#;

const MJCF: &str = r#"<mujoco><compiler angle="radian"/><default><joint damping="0.02"/></default><worldbody>
  <body><inertial pos="0.3 0 0" mass="1" diaginertia="0.01 0.02 0.02"/><joint name="a" axis="0 1 0" ref="0.2"/>
    <body pos="0.6 0 0"><inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/><joint name="b" axis="0 1 0" ref="-0.1"/></body>
    <body pos="0 1 0"><inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/><joint name="c" axis="0 1 0"/></body>
  </body></worldbody>
  <equality><joint name="follow" joint1="b" joint2="a" polycoef="0.1 -1.5 0.2 0 0.05"/><joint joint1="c" polycoef="0.4"/><joint joint1="a" joint2="b" active="false"/></equality>
</mujoco>"#;

fn built_urdf(text: &str) -> Built {
    build(Path::new("gear.urdf"), &urdf::parse(Path::new("gear.urdf"), text).unwrap(), Base::Fixed).unwrap()
}

fn built_mjcf(text: &str) -> Built {
    build(Path::new("gear.xml"), &mjcf::parse(Path::new("gear.xml"), text).unwrap(), Base::Fixed).unwrap()
}

/// Positions of joints by name, as the model counts them.
fn position(model: &Model, state: &State, name: &str) -> f64 {
    let id = model.find_joint(name).unwrap();
    let joint = model.joint(id);
    joint.position(&model.sides(joint, state), state.joints[id.index()].angle).unwrap().0
}

/// Runs two seconds; tells how far the named joint moved at most.
fn swing(model: &Model, name: &str, mut each: impl FnMut(&State)) -> f64 {
    let (mut state, mut work) = (model.start(), Work::new(model));
    let mut most = 0f64;
    let first = position(model, &state, name);
    for _ in 0..120 {
        let report = step(model, &supple::Input::default(), &mut state, &mut work).unwrap();
        assert!(report.max_joint_gap < 1e-8 && report.max_joint_tilt < 1e-8, "{report:?}");
        most = most.max((position(model, &state, name) - first).abs());
        each(&state);
    }
    most
}

#[test]
fn mimic_joints_follow_exactly() {
    let built = built_urdf(URDF);
    let model = &built.model;
    assert_eq!(model.couplings().len(), 2);
    assert!(model.warnings().iter().all(|w| w.code != "model/start-uncoupled"), "{:?}", model.warnings());
    let moved = swing(model, "a", |state| {
        let [a, b, c] = ["a", "b", "c"].map(|name| position(model, state, name));
        assert!((b - (-2.0 * a + 0.3)).abs() < 1e-8 && (c - 0.05 * b).abs() < 1e-8, "{a} {b} {c}");
    });
    assert!(moved > 0.5, "{moved}");
}

#[test]
fn coupled_joints_of_mjcf_follow_their_polynomial() {
    let built = built_mjcf(MJCF);
    let model = &built.model;
    let codes: Vec<_> = built.notes.iter().filter(|n| n.code == "import/coupling").collect();
    assert_eq!((model.couplings().len(), codes.len()), (2, 1), "the one that is not active is told: {codes:?}");
    // from the references of the file, as the model counts
    let wanted = |x: f64| 0.1 - 1.5 * x + 0.2 * x * x + 0.05 * x.powi(4);
    let moved = swing(model, "a", |state| {
        let [a, b, c] = ["a", "b", "c"].map(|name| position(model, state, name));
        assert!((b - wanted(a)).abs() < 1e-8 && (c - 0.4).abs() < 1e-8, "{a} {b} {c}");
    });
    assert!(moved > 0.3, "{moved}");
}

/// Rolling resistance is a lever, and there where contacts have six dimensions.
#[test]
fn rolling_resistance_is_read_and_survives_export() {
    let geom =
        |more: &str| format!(r#"<body><freejoint/><geom type="sphere" size="0.1" pos="0 0 0.1" {more}/></body>"#);
    let bodies = [
        geom(r#"friction="0.7 0.005 0.003" condim="6""#),
        geom(r#"friction="0.7 0.005 0.003""#),
        geom(r#"condim="6""#),
    ];
    let text = format!("<mujoco><worldbody>{}</worldbody></mujoco>", bodies.concat());
    let built = built_mjcf(&text);
    let rolling = |model: &supple::Model| model.bodies().iter().map(|body| body.material.rolling).collect::<Vec<_>>();
    assert_eq!(rolling(&built.model), [0.003, 0.0, 1e-4]);
    let again = built_mjcf(&export("balls", &built.model, &supple::Input::default()).text);
    assert_eq!(rolling(&again.model), rolling(&built.model));
}

/// A model that was written and read again moves as before.
#[test]
fn couplings_survive_export() {
    for built in [built_urdf(URDF), built_mjcf(MJCF)] {
        let exported = export("gear", &built.model, &supple::Input::default());
        let again = built_mjcf(&exported.text);
        assert_eq!(again.model.couplings().len(), 2, "{}", exported.text);
        let mut ends = [built.model, again.model].map(|model| {
            let mut last = None;
            swing(&model, "a", |state| last = Some(state.clone()));
            let last = last.unwrap();
            model.bodies().iter().zip(last.bodies).map(|(b, s)| (b.name.clone(), s.position)).collect::<Vec<_>>()
        });
        ends.iter_mut().for_each(|list| list.sort_by(|a, b| a.0.cmp(&b.0)));
        for (a, b) in ends[0].iter().zip(&ends[1]) {
            assert!(a.0 == b.0 && (a.1 - b.1).length() < 1e-6, "{a:?} {b:?}");
        }
    }
}

#[test]
fn what_cannot_be_coupled_is_told_or_refused() {
    let built = built_urdf(&URDF.replace("<mimic joint=\"b\"", "<mimic joint=\"nobody\""));
    assert_eq!(built.model.couplings().len(), 1);
    assert!(built.notes.iter().any(|n| n.code == "import/coupling" && n.part == "c"), "{:?}", built.notes);
    let circle = URDF.replace(
        "<axis xyz=\"0 1 0\"/></joint>\n  <joint name=\"b\"",
        "<axis xyz=\"0 1 0\"/><mimic joint=\"b\"/></joint>\n  <joint name=\"b\"",
    );
    let robot = urdf::parse(Path::new("gear.urdf"), &circle).unwrap();
    assert_eq!(build(Path::new("gear.urdf"), &robot, Base::Fixed).unwrap_err().code, "file/model");
    let unknown = MJCF.replace("joint2=\"a\"", "joint2=\"z\"");
    assert!(mjcf::parse(Path::new("gear.xml"), &unknown).is_err());
}

/// The fingers of the gripper, which nothing but their coupling moves together.
#[test]
fn the_fingers_of_the_panda_move_as_one() {
    let Some(assets) = assets() else { return };
    let scene = open(&assets.join("urdf/panda/urdf/panda.urdf")).unwrap().scene;
    let model = &scene.model;
    assert_eq!(model.couplings().len(), 1);
    let names = ["panda_finger_joint1", "panda_finger_joint2"];
    let (mut state, mut work, mut most) = (model.start(), Work::new(model), 0f64);
    for _ in 0..300 {
        let report = step(model, &scene.input, &mut state, &mut work).unwrap();
        assert!(report.max_joint_gap < 1e-8 && report.resorts == 0, "{report:?}");
        let [one, two] = names.map(|name| position(model, &state, name));
        assert!((one - two).abs() < 1e-8, "{one} {two}");
        most = most.max(one.abs());
    }
    assert!(most > 1e-3, "they moved by {most} m");
}

#[test]
fn balanced_and_bounded_inertias_are_those_of_mujoco() {
    let text = |compiler: &str| {
        format!(
            r#"<mujoco><compiler {compiler}/><worldbody><body name="b"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.9 0.1 0.2"/></body></worldbody></mujoco>"#
        )
    };
    let moments = |compiler: &str| {
        let built = built_mjcf(&text(compiler));
        let i = built.model.bodies()[0].inertia;
        ([i.x_axis.x, i.y_axis.y, i.z_axis.z], built.notes.iter().filter(|n| n.code == "import/inertia").count())
    };
    let ([x, y, z], notes) = moments("balanceinertia=\"true\"");
    assert!((x - 0.4).abs() < 1e-12 && (y - 0.4).abs() < 1e-12 && (z - 0.4).abs() < 1e-12 && notes == 1);
    let ([x, y, z], notes) = moments("boundinertia=\"0.5\"");
    assert!((x - 0.9).abs() < 1e-12 && (y - 0.5).abs() < 1e-12 && (z - 0.5).abs() < 1e-12 && notes == 0);
    // neither: the nearest that a body can have, told
    assert_eq!(moments("angle=\"radian\"").1, 1);
}
