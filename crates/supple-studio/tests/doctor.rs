//! The doctor of rigs in the studio: it looks at what a file gives, and its remedies are applied on request.

mod common;

use common::{Client, run};
use serde_json::json;
use std::path::Path;
use supple_assets::doctor::Parts;
use supple_assets::mjcf;
use supple_assets::robot::{Base, build};
use supple_assets::{Class, Files, Made, Recipe};
use supple_studio::Opening;

/// Two boxes that overlap, one inside the other by half.
const OVERLAPPING: &str = r#"<mujoco><worldbody>
  <body name="one" pos="0 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
  <body name="two" pos="0.2 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
</worldbody></mujoco>"#;

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_file_are_told_and_mended() {
    let path = Path::new("boxes.xml");
    let robot = mjcf::parse(path, OVERLAPPING).unwrap();
    let imported = build(path, &robot, Base::Fixed).unwrap().imported(path, &robot);
    let (address, _) =
        run(Opening::of_file(Made { recipe: Recipe::new("broken.xml"), imported, character: None }), "test", None);
    let mut client = Client::connect(&address).await;
    let told = client.status_where(|status| !status["doctor"].is_null()).await;
    assert_eq!(told["doctor"]["findings"][0]["code"], "doctor/overlap", "{}", told["doctor"]);
    client.say(json!({"type": "mend"})).await;
    let faulty = told["generation"].clone();
    let told = client.status_where(|status| status["generation"] != faulty && !status["doctor"].is_null()).await;
    assert_eq!(told["doctor"]["findings"], json!([]), "{}", told["doctor"]);
    assert_eq!(told["doctor"]["seconds"], 2.0);
    // Nothing is left to mend, and that is said.
    client.say(json!({"type": "mend"})).await;
    let refused = client.told("error").await;
    assert_eq!(refused["code"], "studio/value");
    // Undo brings the file's own model back.
    client.say(json!({"type": "undo"})).await;
    let told = client.status_where(|status| !status["redo"].is_null()).await;
    assert_eq!(told["doctor"]["findings"][0]["code"], "doctor/overlap", "{}", told["doctor"]);
}

/// A limb of an MJCF file: an upper body, a lower one on a hinge, and something else within the lower one.
fn limb(lower: &str, within: &str) -> String {
    format!(
        r#"<mujoco><worldbody><body name="upper" pos="0 0 1">
             <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05" density="1000"/>
             <body name="lower" pos="0 0 -0.5"><joint name="knee" type="hinge" axis="0 1 0"/>{lower}{within}</body>
           </body></worldbody></mujoco>"#
    )
}

/// Every cause that a file may have: what the doctor says is mended in the studio, and undo brings the fault back.
#[tokio::test(flavor = "multi_thread")]
async fn every_remedy_does_what_it_says_and_is_undone() {
    let good = r#"<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04" density="1000"/>"#;
    let foot = |name: &str| {
        format!(
            r#"<body name="{name}" pos="0 0 -0.5"><joint name="of {name}" type="hinge" axis="0 1 0"/>
               <geom type="box" size="0.1 0.05 0.03" density="1000"/></body>"#
        )
    };
    let inertial = |mass: &str, moments: &str| {
        format!(r#"<inertial pos="0 0 -0.2" mass="{mass}" diaginertia="{moments}"/>{good}"#)
    };
    let far = r#"<mujoco><worldbody><body name="upper" pos="0 0 100"><geom type="capsule" fromto="0 0 0 0 0 -40" size="5"/>
        <body name="lower" pos="0 0 -50"><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -40" size="4"/></body>
        </body></worldbody></mujoco>"#;
    let point = r#"<inertial pos="0 0 0" mass="1" diaginertia="1e-10 1e-10 1e-10"/>"#;
    let faults = [
        ("doctor/units", far.to_owned()),
        ("doctor/duplicate", limb(good, &(foot("foot") + &foot("foot again")))),
        ("doctor/inertia", limb(&inertial("2", "0.001 0.03 0.03"), "")),
        ("doctor/mass-ratio", limb(&inertial("3e-7", "4e-9 4e-9 4e-10"), "")),
        ("doctor/zero-length", limb(point, &foot("foot").replace("0 0 -0.5", "0 0 0"))),
        ("doctor/limit", limb(good, "")), // the reader would start it within its limits: see below
        ("doctor/overlap", OVERLAPPING.to_owned()),
    ];
    for (code, text) in faults {
        let path = Path::new("limb.xml");
        let robot = mjcf::parse(path, &text).unwrap();
        let mut imported = build(path, &robot, Base::Fixed).unwrap().imported(path, &robot);
        if code == "doctor/limit" {
            let mut parts = Parts::of(&imported.scene.model);
            let knee = parts.joints.iter_mut().find(|joint| joint.name == "knee").unwrap();
            knee.limits.angle = Some(supple::Range::new(1.0, 1.2));
            imported.scene.model = parts.build().unwrap();
        }
        let (address, _) =
            run(Opening::of_file(Made { recipe: Recipe::new("limb.xml"), imported, character: None }), "test", None);
        let mut client = Client::connect(&address).await;
        let codes = |told: &serde_json::Value| -> Vec<String> {
            let findings = told["doctor"]["findings"].as_array().unwrap();
            findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
        };
        let told = client.status_where(|status| !status["doctor"].is_null()).await;
        let before = codes(&told);
        assert!(before.iter().any(|found| found == code), "{code}: {}", told["doctor"]);
        client.say(json!({"type": "mend"})).await;
        let faulty = told["generation"].clone();
        let told = client.status_where(|status| status["generation"] != faulty && !status["doctor"].is_null()).await;
        assert_eq!(codes(&told), Vec::<String>::new(), "{code}: {}", told["doctor"]);
        client.say(json!({"type": "undo"})).await;
        let told = client.status_where(|status| !status["redo"].is_null()).await;
        assert_eq!(codes(&told), before, "{code}");
    }
}

/// Masses that no body has: a head that is too heavy, a thigh unlike its twin, all far too heavy for its height, as a scene file tells them.
#[tokio::test(flavor = "multi_thread")]
async fn masses_are_mended_and_undone() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(std::path::PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let man = assets.join("gltf/CesiumMan.glb");
    let plain = Files::default().character(&man).unwrap().unwrap();
    let bone = |class: Class| plain.rig.bones.iter().find(|bone| bone.class == class).unwrap();
    let (head, thigh) = (bone(Class::Head), bone(Class::Thigh));
    // The lighter one of two is told.
    let index = plain.rig.bones.iter().position(|bone| bone.name == thigh.name).unwrap();
    let other = &plain.rig.bones[plain.rig.twin(index).unwrap()];
    let folder = std::env::temp_dir().join(format!("supple-masses-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&man, folder.join("man.glb")).unwrap();
    let scene = folder.join("man.toml");
    let of = |bone: &supple_assets::Bone, mass: f64| format!("[bones.\"{}\"]\nmass = {mass}\n", bone.name);
    for (what, part, text) in [
        ("a head", head.name.as_str(), of(head, 5.0 * head.mass)),
        ("a thigh", other.name.as_str(), of(thigh, 1.5 * thigh.mass)),
        ("all", "model", "mass = 300.0\n".to_owned()),
    ] {
        std::fs::write(&scene, format!("[character]\nfile = \"man.glb\"\n{text}")).unwrap();
        let made = Recipe::of_file(&scene.to_string_lossy()).make(&Files::default()).unwrap();
        let (address, _) = run(Opening::of_file(made), "test", None);
        let mut client = Client::connect(&address).await;
        let masses = |told: &serde_json::Value| -> Vec<String> {
            let findings = told["doctor"]["findings"].as_array().unwrap().iter();
            let masses = findings.filter(|finding| finding["code"] == "doctor/mass");
            masses.map(|finding| finding["part"].as_str().unwrap().to_owned()).collect()
        };
        let told = client.status_where(|status| !status["doctor"].is_null()).await;
        assert_eq!(masses(&told), [part], "{what}: {}", told["doctor"]);
        client.say(json!({"type": "mend"})).await;
        let faulty = told["generation"].clone();
        let told = client.status_where(|status| status["generation"] != faulty && !status["doctor"].is_null()).await;
        assert_eq!(masses(&told), Vec::<String>::new(), "{what}: {}", told["doctor"]);
        client.say(json!({"type": "undo"})).await;
        let told = client.status_where(|status| !status["redo"].is_null()).await;
        assert_eq!(masses(&told), [part], "{what}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
