//! Every key of scene files changes a result, or is refused with a reason: walked over the schema, so that no new one is forgotten.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use supple::{SETTINGS, Work, step};
use supple_assets::{FileError, Imported, open, scene_schema};

#[allow(dead_code)]
#[path = "common/damage.rs"]
mod damage;

/// A scene of the small character, whose bones are `hip` and `knee` and whose clip is `bend`.
fn scene(text: &str) -> Result<Imported, FileError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let own = format!("supple-keys-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(own);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("strip.gltf"), damage::small()).unwrap();
    std::fs::write(folder.join("scene.toml"), text).unwrap();
    let result = open(&folder.join("scene.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

/// The hash of the state after a second and a half.
fn outcome(text: &str) -> u64 {
    let scene = scene(text).unwrap_or_else(|error| panic!("{text}: {error}")).scene;
    let (mut input, mut state, mut work) = (scene.input.clone(), scene.state.clone(), Work::new(&scene.model));
    let mut tones = scene.stated_tones();
    while state.time < 1.5 {
        scene.direct(state.time, &mut input);
        if let Some(tones) = &mut tones {
            tones.direct(&scene.model, &state, &[], &mut input);
        }
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    state.hash()
}

/// The paths of all keys: lists have `[]`, names that a person gives `*`.
fn keys() -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(&scene_schema()).unwrap();
    let mut keys = BTreeSet::new();
    walk(&schema, &schema, "", &mut keys);
    keys
}

fn walk(root: &Value, node: &Value, path: &str, keys: &mut BTreeSet<String>) {
    if let Some(name) = node["$ref"].as_str() {
        let place = name.trim_start_matches('#');
        return walk(root, root.pointer(place).unwrap(), path, keys);
    }
    let mut whole = true;
    for choice in ["anyOf", "allOf"].iter().filter_map(|list| node[list].as_array()).flatten() {
        if choice["$ref"].is_string() || choice["properties"].is_object() {
            whole = false;
            walk(root, choice, path, keys);
        }
    }
    if let Some(properties) = node["properties"].as_object() {
        whole = false;
        for (name, inside) in properties {
            walk(root, inside, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, keys);
        }
    }
    if node["additionalProperties"].is_object() {
        whole = false;
        walk(root, &node["additionalProperties"], &format!("{path}.*"), keys);
    }
    if node["items"].is_object() && (node["items"]["$ref"].is_string() || node["items"]["properties"].is_object()) {
        whole = false;
        walk(root, &node["items"], &format!("{path}[]"), keys);
    }
    if whole {
        keys.insert(path.to_owned());
    }
}

const PUSH: &str = "[[pushes]]\nbone = \"knee\"\nfrom = 0.1\nto = 0.3\nforce = [0.0, 0.0, 30.0]\n";
const PULL: &str = "[[pulls]]\nbone = \"knee\"\nfrom = 0.1\nto = 0.6\ntarget = [1.0, 1.0, 0.0]\nstiffness = 200.0\n";
const LED: &str =
    "[[keyframes]]\nat = 0.0\n[[keyframes]]\nat = 0.5\nshift = [0.0, 0.1, 0.0]\npose = { knee = [0.0, 0.0, 30.0] }\n";
const WALL: &str =
    "[[obstacles]]\nname = \"wall\"\nbox = [1.0, 0.2, 1.0]\nposition = [0.0, 0.0, 0.0]\nfriction = 0.2\n";
const BENT: &str = "[bones.knee]\njoint = \"hinge\"\naxis = [0.0, 0.0, 1.0]\nrange = [-10.0, 20.0]\n";
const BALL: &str = "[bones.knee]\njoint = \"ball\"\nswing = [20.0, 20.0]\ntwist = [-5.0, 5.0]\n";

/// A tilted box that falls onto the character.
const THING: &str = "[[things]]\nname = \"it\"\nkind = \"box\"\nposition = [0.1, 3.0, 0.1]\nrotation = [0.0, 0.0, 0.2, 0.9798]\n\
                     size = [0.6, 0.6, 0.6]\nmass = 5.0\nfriction = 0.5\n";
const HELD: &str = "[things.held]\nby = \"knee\"\nposition = [0.0, 0.2, 0.0]\nrotation = [0.0, 0.0, 0.0, 1.0]\n";
const STATE: &str = "[[states]]\nat = 0.2\nstate = \"posed\"\nbones = [\"knee\"]\nstrength = 1.0\nblend = 0.1\n";

const THINGS: &str = "fn things_and_states_are_read";
const CAST: &str = "fn scene_files_have_them_and_refuse_what_is_wrong";
const SKIN: &str = "fn every_key_of_skin_changes_the_model";
const WRONG: &str = "fn what_is_wrong_is_told_with_line_and_column";

/// What shows a key: two ends of a scene file that differ in it alone, or the test elsewhere that does.
enum Shown {
    Differs(String, String),
    By(&'static str),
}

fn shown(key: &str) -> Option<Shown> {
    let change = |base: &str, from: &str, to: &str| {
        assert!(base.contains(from), "{key}: {from}");
        Some(Shown::Differs(base.to_owned(), base.replacen(from, to, 1)))
    };
    let added = |text: &str| Some(Shown::Differs(String::new(), text.to_owned()));
    match key {
        "character.file" => Some(Shown::By(WRONG)),
        "character.mass" | "character.scale" | "character.height" => {
            let name = key.trim_start_matches("character.");
            let push = "[[pushes]]\nbone = \"knee\"\nfrom = 0.1\nto = 0.3\nforce = [0.0, 0.0, 30.0]\n";
            let base = format!("[character]\nfile = \"strip.gltf\"\n{name} = 1.5\n{push}");
            change(&base, "= 1.5", "= 2.5")
        }
        "character.mass_scale" => added(
            "[character]\nfile = \"strip.gltf\"\nmass_scale = 3.0\n[[pushes]]\nbone = \"knee\"\nfrom = 0.1\nto = 0.3\nforce = [0.0, 0.0, 30.0]\n",
        ),
        "character.track" => added("[character]\nfile = \"strip.gltf\"\ntrack = \"bend\"\n"),
        "bones.*.mass" => added("[bones.knee]\nmass = 40.0\n"),
        "bones.*.sag" => added("[bones.knee]\nsag = 90.0\n"),
        "bones.*.width" => added("[bones.knee]\nwidth = 3.0\n"),
        // long enough to reach the floor: a shape alone weighs nothing
        "bones.*.length" => added("[bones.knee]\nlength = 10.0\n"),
        "bones.*.settle" => added("[bones.knee]\nsettle = 9.0\n"),
        "bones.*.strength" => {
            change(&format!("{LED}[bones.knee]\nstrength = 1.0\n"), "strength = 1.0", "strength = 0.01")
        }
        "bones.*.joint" => change(&format!("{PUSH}[bones.knee]\njoint = \"hinge\"\n"), "hinge", "ball"),
        "bones.*.axis" => change(&format!("{BENT}{PUSH}"), "[0.0, 0.0, 1.0]", "[1.0, 0.0, 0.0]"),
        "bones.*.range" => change(
            &format!("{BENT}[bones.hip]\nmass = 1.0\n[pose]\nknee = [0.0, 0.0, 60.0]\n"),
            "-10.0, 20.0",
            "-10.0, 90.0",
        ),
        "bones.*.swing" => change(&format!("{BALL}[pose]\nknee = [0.0, 0.0, 60.0]\n"), "[20.0, 20.0]", "[80.0, 80.0]"),
        "bones.*.twist" => change(&format!("{BALL}[pose]\nknee = [40.0, 40.0, 10.0]\n"), "-5.0, 5.0", "-80.0, 80.0"),
        "floor" => change("release = 0.0\nfloor = -3.0\n", "-3.0", "-0.2"),
        "obstacles[].name" => Some(Shown::By(WRONG)),
        "obstacles[].box" => change(&format!("release = 0.0\n{WALL}"), "0.2, 1.0]", "0.3, 1.0]"),
        "obstacles[].sphere" => change(
            &format!("release = 0.0\n{}", WALL.replace("box = [1.0, 0.2, 1.0]", "sphere = 0.1")),
            "sphere = 0.1",
            "sphere = 0.2",
        ),
        "obstacles[].capsule" => change(
            &format!("release = 0.0\n{}", WALL.replace("box = [1.0, 0.2, 1.0]", "capsule = [1.0, 0.1]")),
            "[1.0, 0.1]",
            "[1.0, 0.2]",
        ),
        "obstacles[].position" => {
            change(&format!("release = 0.0\n{WALL}"), "position = [0.0, 0.0, 0.0]", "position = [0.0, 0.05, 0.0]")
        }
        "obstacles[].rotation" => {
            change(&format!("release = 0.0\n{WALL}"), "friction", "rotation = [0.0, 0.0, 10.0]\nfriction")
        }
        "obstacles[].rolling" => change(WALL, "friction = 0.2", "friction = 0.2\nrolling = 0.05"),
        "obstacles[].friction" => change(
            &format!(
                "release = 0.0\n{}",
                WALL.replace("friction = 0.2", "rotation = [0.0, 0.0, 20.0]\nfriction = 0.2")
            ),
            "friction = 0.2",
            "friction = 0.9",
        ),
        "pose.*" => added("[pose]\nknee = [0.0, 0.0, 20.0]\n"),
        "keyframes[].at" => change(LED, "at = 0.5", "at = 0.7"),
        "keyframes[].shift" => change(LED, "0.1, 0.0]", "0.2, 0.0]"),
        "keyframes[].pose.*" => change(LED, "30.0", "40.0"),
        "pushes[].bone" => change(PUSH, "knee", "hip"),
        "pushes[].from" => change(PUSH, "from = 0.1", "from = 0.2"),
        "pushes[].to" => change(PUSH, "to = 0.3", "to = 0.4"),
        "pushes[].force" => change(PUSH, "30.0", "20.0"),
        "pulls[].bone" => change(PULL, "knee", "hip"),
        "pulls[].from" => change(PULL, "from = 0.1", "from = 0.2"),
        "pulls[].to" => change(PULL, "to = 0.6", "to = 0.7"),
        "pulls[].target" => change(PULL, "1.0, 1.0", "1.0, 0.5"),
        "pulls[].stiffness" => change(PULL, "200.0", "300.0"),
        "things[].file" | "things[].clip" | "things[].state" => Some(Shown::By(CAST)),
        "things[].name" => Some(Shown::By(THINGS)),
        "things[].kind" => change(THING, "\"box\"", "\"ball\""),
        "things[].position" => change(THING, "3.0", "2.8"),
        "things[].rotation" => change(THING, "0.2, 0.9798", "0.0, 1.0"),
        "things[].size" => change(THING, "[0.6, 0.6, 0.6]", "[0.6, 0.3, 0.6]"),
        "things[].mass" => change(THING, "5.0", "50.0"),
        "things[].friction" => change(THING, "friction = 0.5", "friction = 0.0"),
        "things[].held.by" => change(&format!("{THING}{HELD}"), "knee", "hip"),
        "things[].held.position" => change(&format!("{THING}{HELD}"), "[0.0, 0.2, 0.0]", "[0.3, 0.2, 0.0]"),
        "things[].held.rotation" => {
            change(&format!("{PUSH}{THING}{HELD}"), "[0.0, 0.0, 0.0, 1.0]", "[0.0, 0.6, 0.0, 0.8]")
        }
        "states[].at" => change(&format!("{PUSH}{STATE}"), "at = 0.2", "at = 0.25"),
        "states[].state" => change(&format!("{PUSH}{STATE}"), "posed", "limp"),
        "states[].bones" => change(&format!("{PUSH}{STATE}"), "\"knee\"]", "\"*\"]"),
        "states[].strength" => change(&format!("{PUSH}{STATE}"), "strength = 1.0", "strength = 0.2"),
        "states[].blend" => change(&format!("{PUSH}{STATE}"), "blend = 0.1", "blend = 0.6"),
        // A blow is answered where a limb is held by its state.
        "hits.impulse" => {
            change(&format!("{THING}{STATE}[hits]\nimpulse = 0.1\nrecovery = 0.5\n"), "impulse = 0.1", "impulse = 1e6")
        }
        "hits.recovery" => change(
            &format!("{THING}{STATE}[hits]\nimpulse = 0.1\nrecovery = 0.5\n"),
            "recovery = 0.5",
            "recovery = 5.0",
        ),
        "release" => added("release = 0.5\n"),
        "simulation.solver" => added("[simulation]\nsolver = \"reduced\"\n"),
        "simulation.hold" => added("[simulation]\nhold = false\n"),
        key if key.starts_with("skin.*.") || key.starts_with("painted.*.") => Some(Shown::By(SKIN)),
        key if key.starts_with("layer.") => Some(Shown::By(SKIN)),
        _ => None,
    }
}

#[test]
fn every_key_changes_a_result() {
    let head = |rest: &str| match rest.contains("[character]") {
        true => rest.to_owned(),
        // what stands before the first table belongs to the file, not to the character
        false => {
            let table = rest.find('[').filter(|at| *at == 0 || rest.as_bytes()[at - 1] == b'\n').unwrap_or(rest.len());
            format!("{}[character]\nfile = \"strip.gltf\"\n{}", &rest[..table], &rest[table..])
        }
    };
    let (mut idle, mut unknown) = (Vec::new(), Vec::new());
    for key in keys() {
        let setting = key.strip_prefix("simulation.").filter(|key| SETTINGS.iter().any(|setting| setting.key == *key));
        if setting.is_some() {
            continue; // below, and in the engine's own walk
        }
        match shown(&key) {
            Some(Shown::Differs(a, b)) if outcome(&head(&a)) == outcome(&head(&b)) => idle.push(key),
            Some(Shown::Differs(..)) => {}
            Some(Shown::By(test)) => {
                let tests = [include_str!("scenes.rs"), include_str!("skin_scenes.rs"), include_str!("cast.rs")];
                assert!(tests.iter().any(|text| text.contains(test)), "{key}: {test}");
            }
            None => unknown.push(key),
        }
    }
    assert!(unknown.is_empty(), "keys that nothing shows: {unknown:?}");
    assert!(idle.is_empty(), "keys that do nothing: {idle:?}");
}

/// Every setting of the engine is a key of `[simulation]`: it reaches the input, or is refused with the engine's reason.
#[test]
fn every_setting_is_a_key() {
    let keys = keys();
    for setting in SETTINGS {
        assert!(keys.contains(&format!("simulation.{}", setting.key)), "{}", setting.key);
        let value = match setting.default_value() {
            Some(supple::settings::Value::Whole(n)) => n.to_string(),
            Some(supple::settings::Value::Number(x)) => format!("{x:?}"),
            Some(supple::settings::Value::Word(word)) => format!("\"{word}\""),
            Some(supple::settings::Value::Vector(v)) => format!("[{:?}, {:?}, {:?}]", v.x, v.y, v.z),
            None => "1.0".into(),
        };
        let solver = setting.owner().unwrap_or("tree");
        let text = match setting.key.split_once('.') {
            None => format!("{} = {value}\n", setting.key),
            Some((group, last)) => format!("[simulation.{group}]\n{last} = {value}\n"),
        };
        let text = format!("[character]\nfile = \"strip.gltf\"\n[simulation]\nsolver = \"{solver}\"\n{text}");
        let plain =
            scene(&format!("[character]\nfile = \"strip.gltf\"\n[simulation]\nsolver = \"{solver}\"\n")).unwrap().scene;
        match (scene(&text), setting.idle(&plain.model, &plain.input)) {
            (Ok(_), None) => {}
            (Err(error), Some(reason)) => assert!(error.what.contains(&reason), "{text}: {error}"),
            (Ok(_), Some(reason)) => panic!("{text}: {reason}"),
            (Err(error), None) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn what_would_do_nothing_is_refused() {
    for (text, what) in [
        ("release = 1.0\n[character]\nfile = \"strip.gltf\"\ntrack = \"bend\"\n", "led by the clip"),
        ("[character]\nfile = \"strip.gltf\"\ntrack = \"bend\"\n[simulation]\nhold = false\n", "led by the clip"),
        ("[character]\nfile = \"strip.gltf\"\ntrack = \"bend\"\n[pose]\nknee = [0.0, 0.0, 9.0]\n", "that of the clip"),
        ("release = 1.0\n[character]\nfile = \"strip.gltf\"\n[simulation]\nhold = false\n", "nothing is held"),
        ("[character]\nfile = \"strip.gltf\"\n[simulation]\ngravity = [0.0, -1e6, 0.0]\n", "gravity is"),
        ("[character]\nfile = \"strip.gltf\"\n[simulation]\nsped = 2\n", "no key `sped`"),
        (
            "[character]\nfile = \"strip.gltf\"\n[[obstacles]]\nname = \"wall\"\nsphere = 1.0\nposition = [0.0, 2e6, 0.0]\n",
            "more than 1000000 m away",
        ),
        (
            "[character]\nfile = \"strip.gltf\"\n[[pulls]]\nbone = \"knee\"\nfrom = 0.0\nto = 1.0\ntarget = [2e6, 0.0, 0.0]\n",
            "more than 1000000 m away",
        ),
    ] {
        let error = scene(text).err().unwrap_or_else(|| panic!("{text} is taken"));
        assert!(error.what.contains(what) && !error.remedy.is_empty(), "{text}: {error}");
    }
}
