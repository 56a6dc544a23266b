//! The hostile table at the command line: every file is refused with its code and exit status 2, or taken.

mod common;
#[path = "../../supple-assets/tests/common/damage.rs"]
#[allow(dead_code)]
mod damage;
#[path = "../../supple-assets/tests/common/hostile.rs"]
#[allow(dead_code)]
mod hostile;

use common::{json, stderr, stdout, supple};

#[test]
fn the_hostile_table_is_refused() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    std::fs::create_dir_all(&folder).unwrap();
    let mut wrong = Vec::new();
    for case in hostile::table(std::str::from_utf8(&damage::small()).unwrap()) {
        let path = folder.join(case.name);
        std::fs::write(&path, &case.bytes).unwrap();
        let word = if case.name.ends_with(".take") { "simulate" } else { "inspect" };
        let ended = supple(&[word, path.to_str().unwrap()]);
        let wanted = if case.code.is_empty() { 0 } else { 2 };
        let said = stderr(&ended);
        if ended.status.code() != Some(wanted) || !said.contains(case.code) {
            wrong.push(format!("{}: {:?}, wanted {wanted} and {}: {said}", case.name, ended.status, case.code));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_wherever_a_file_is_named() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipes");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = |ending: &str| folder.join(format!("a.{ending}")).to_str().unwrap().to_owned();
    for ending in ["glb", "gltf", "toml", "urdf", "xml", "bvh", "take", "vrm", "vrma", "fbx"] {
        assert!(std::process::Command::new("mkfifo").arg(path(ending)).status().unwrap().success());
    }
    let (glb, toml, urdf, bvh, take) = (path("glb"), path("toml"), path("urdf"), path("bvh"), path("take"));
    let (vrm, vrma, fbx) = (path("vrm"), path("vrma"), path("fbx"));
    let calls: [&[&str]; 17] = [
        &["simulate", &fbx],
        &["inspect", &vrm],
        &["render", &vrma, "-o", "a.png"],
        &["rig", &fbx],
        &["simulate", "hand", "--track", &vrma],
        &["simulate", &glb],
        &["simulate", &take],
        &["simulate", &urdf, "--floating"],
        &["simulate", "hand", "--track", &bvh],
        &["render", &toml, "-o", "a.png"],
        &["render", &take, "-o", "a.png"],
        &["compare", &bvh],
        &["assemble", &urdf],
        &["inspect", &path("xml")],
        &["rig", &glb],
        &["view", &take, "--no-open"],
        &["view", &path("gltf"), "--no-open"],
    ];
    for call in calls {
        let said = common::refused(call);
        assert!(said.contains("is a pipe or a device, not a file"), "{call:?}: {said}");
    }
    assert!(common::refused(&["inspect", "hand.glb", "--allow-dir", &glb]).contains("file/folder"));
    let _ = std::fs::remove_dir_all(&folder);
}

/// Names in a file reach the terminal of whoever looks at it: none may move its cursor, set its title or make text run backwards.
#[test]
fn names_of_a_file_do_not_steer_the_terminal() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("steering");
    std::fs::create_dir_all(&folder).unwrap();
    let name = r"k\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\u007f";
    let text = String::from_utf8(damage::small()).unwrap();
    let named = text.replacen(r#""name":"knee""#, &format!(r#""name":"{name}""#), 1);
    assert_ne!(named, text);
    let path = folder.join("steers.gltf");
    std::fs::write(&path, named).unwrap();
    let path = path.to_str().unwrap();
    let none = format!("{path}#none");
    let strange = "\u{1b}]0;title\u{7}\u{1b}[2J.glb";
    let calls: [&[&str]; 8] = [
        &["inspect", path],
        &["inspect", path, "--json"],
        &["inspect", path, "--doctor"],
        &["simulate", path, "--seconds", "0.1"],
        &["simulate", path, "--track", &none],
        &["simulate", strange],
        &["simulate", "hand", strange],
        &["simulate", "hand", "--solver", strange],
    ];
    let mut shown = 0;
    for call in calls {
        let ended = supple(call);
        for said in [stdout(&ended), stderr(&ended)] {
            let steers = said.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
            assert_eq!(steers, None, "{call:?}: {said:?}");
            shown += usize::from(said.contains("]0;title"));
        }
    }
    assert!(shown >= 3, "the names are shown all the same: {shown}");
    // A program reads them as they are.
    let bodies = json(&["inspect", path, "--json"]).to_string();
    let whole: serde_json::Value = serde_json::from_str(&format!("\"{name}\"")).unwrap();
    assert!(bodies.contains(&whole.to_string()), "{bodies}");
    let _ = std::fs::remove_dir_all(&folder);
}
