//! Every documented key of the protocol changes a result or is refused: walked over docs/protocol.md itself,
//! so that no new key is forgotten.

mod common;

use common::{Client, Frame, ask, ask_with, key, run, seek, start};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use supple_assets::{Files, Recipe};
use supple_studio::Opening;

/// The documented keys of messages from a client, as `type.key`.
fn documented() -> BTreeSet<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let text = std::fs::read_to_string(path).unwrap();
    let from_client = text.split_once("## From the client").unwrap().1.split_once("## From the server").unwrap().0;
    let mut keys = BTreeSet::new();
    // Messages, told by examples; what they leave out is marked by an ellipsis.
    let mut example = String::new();
    for line in from_client.lines() {
        let is_row = line.starts_with("| `{");
        if is_row || line.starts_with("    ") {
            let cell = if is_row { line.split('|').nth(1).unwrap_or_default() } else { line };
            example.push_str(cell);
            for part in example.clone().split('`').filter(|part| part.trim_start().starts_with('{')) {
                let part = part.replace(", …", "").replace("[…]", "[]").replace("{…}", "{}");
                if let Ok(Value::Object(message)) = serde_json::from_str::<Value>(part.trim()) {
                    add_keys(&mut keys, &message);
                    example.clear();
                }
            }
            if is_row {
                assert!(example.is_empty(), "{line} is no message");
            }
        }
    }
    // The table of `set`.
    let table = from_client.split_once("| key | value |").unwrap().1;
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        for key in row.split('|').nth(1).unwrap().split(',') {
            keys.insert(format!("set.{}", key.trim().trim_matches('`')));
        }
    }
    keys
}

fn add_keys(keys: &mut BTreeSet<String>, message: &Map<String, Value>) {
    fn walk(keys: &mut BTreeSet<String>, path: &str, value: &Value) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                // Names of trackers are no keys.
                let path = if path == "targets.poses" { path.to_owned() } else { format!("{path}.{key}") };
                keys.insert(path.clone());
                walk(keys, &path, value);
            }),
            Value::Array(list) => list.iter().filter(|v| v.is_object()).for_each(|v| walk(keys, path, v)),
            _ => {}
        }
    }
    let kind = message["type"].as_str().unwrap().to_owned();
    if kind == "error" {
        return; // what the server answers
    }
    if message.len() == 1 && kind != "set" {
        keys.insert(kind.clone());
    }
    let mut rest = message.clone();
    rest.remove("type");
    walk(keys, &kind, &Value::Object(rest));
    keys.remove("bone.change.sag"); // one of many, walked by the tests of scene files
}

/// What came of messages and some steps after them.
#[derive(PartialEq)]
struct Outcome {
    /// What moves: poses, joints, flesh.
    moving: Vec<u8>,
    status: Value,
    errors: Vec<Value>,
}

/// Says messages at the start of a scene, then does steps.
async fn outcome(scene: &str, messages: &[Value], steps: u32) -> Outcome {
    let address = start(scene);
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "pause"})).await;
    client.frame_where(|frame| !frame.playing()).await;
    seek(&mut client, 0, 0).await;
    let mut errors = Vec::new();
    for message in messages {
        client.say(message.clone()).await;
    }
    // The simulation answers this one after all others.
    client.say(json!({"type": "pin", "body": 4_000_000, "on": true})).await;
    loop {
        let error = client.told("error").await;
        if error["message"].as_str().unwrap_or_default().contains("4000000") {
            break;
        }
        errors.push(error);
    }
    let mut moving = Vec::new();
    if steps > 0 {
        client.say(json!({"type": "step", "count": steps})).await;
        let frame: Frame = client.frame_where(|frame| frame.step() >= steps && !frame.playing()).await;
        moving = frame.0[frame.head()..].to_vec();
    }
    let mut status = Client::connect(&address).await.told("status").await;
    // What the clock says and what differs from run to run.
    for key in ["bytes", "journals", "doctor", "notice"] {
        status[key] = Value::Null;
    }
    Outcome { moving, status, errors }
}

/// How a key shows: what is said with it, and what with another value or without it.
struct Case {
    scene: &'static str,
    with: Vec<Value>,
    other: Vec<Value>,
    steps: u32,
    /// Whether motion must differ, or what the status says is the result.
    moves: bool,
}

fn moves(scene: &'static str, with: Vec<Value>, other: Vec<Value>) -> Option<Case> {
    Some(Case { scene, with, other, steps: 12, moves: true })
}

fn says(scene: &'static str, with: Vec<Value>, other: Vec<Value>) -> Option<Case> {
    Some(Case { scene, with, other, steps: 0, moves: false })
}

/// A message with one key set to this.
fn changed(message: &Value, path: &[&str], value: Value) -> Value {
    let mut out = message.clone();
    let mut at = &mut out;
    for key in path {
        at = if at.is_array() { &mut at[0] } else { at };
        at = &mut at[*key];
    }
    *at = value;
    out
}

fn case(key: &str) -> Option<Case> {
    let step = |count: u32| json!({"type": "step", "count": count});
    let set = |key: &str, value: Value| json!({"type": "set", key: value});
    let (kind, field) = key.split_once('.').unwrap_or((key, ""));
    let drag = json!({"type": "drag", "pointer": 0, "body": 1, "point": [0.0, 0.0, 0.0], "target": [0.5, 0.5, 0.0], "strength": 1.0});
    let poke = json!({"type": "poke", "pointer": 0, "centre": [0.0, 0.9, 0.0], "radius": 0.2});
    let grab = json!({"type": "grab", "pointer": 0, "vertex": 5, "target": [0.5, 1.0, 0.0], "strength": 1.0});
    let chain = "chain:3";
    match (kind, field) {
        ("play", "") => says(chain, vec![json!({"type": "play"})], vec![]),
        ("pause", "") => {
            says(chain, vec![json!({"type": "play"}), json!({"type": "pause"})], vec![json!({"type": "play"})])
        }
        ("step", "count") => says(chain, vec![step(3)], vec![step(5)]),
        ("speed", "factor") => says(chain, vec![json!({"type": "speed", "factor": 0.5})], vec![]),
        ("drag", "pointer") => {
            let second = changed(&changed(&drag, &["pointer"], json!(1)), &["body"], json!(0));
            let same = changed(&drag, &["body"], json!(0));
            moves(chain, vec![drag, second], vec![same])
        }
        ("drag", _) => {
            let value = match field {
                "body" => json!(2),
                "strength" => json!(3.0),
                "rotation" => {
                    let pose = set("pose", json!(true));
                    let turned = changed(&drag, &["rotation"], json!([0.0, 0.0, 0.5, 0.866]));
                    return moves(chain, vec![pose.clone(), turned], vec![pose, drag]);
                }
                _ => json!([0.1, 0.2, 0.1]),
            };
            moves(chain, vec![changed(&drag, &[field], value)], vec![drag])
        }
        ("poke", "pointer") => {
            let second = changed(&changed(&poke, &["pointer"], json!(1)), &["centre"], json!([0.3, 0.9, 0.0]));
            let same = changed(&second, &["pointer"], json!(0));
            moves("tubes", vec![poke.clone(), second], vec![poke, same])
        }
        ("poke", _) => {
            let value = if field == "radius" { json!(0.4) } else { json!([0.2, 0.7, 0.1]) };
            moves("tubes", vec![changed(&poke, &[field], value)], vec![poke])
        }
        ("grab", "pointer") => {
            let second = changed(&changed(&grab, &["pointer"], json!(1)), &["vertex"], json!(40));
            let same = changed(&second, &["pointer"], json!(0));
            moves("tubes", vec![grab.clone(), second], vec![grab, same])
        }
        ("grab", _) => {
            let value = match field {
                "vertex" => json!(60),
                "strength" => json!(5.0),
                _ => json!([0.0, 2.0, 0.4]),
            };
            moves("tubes", vec![changed(&grab, &[field], value)], vec![grab])
        }
        ("release", "pointer") => moves(
            chain,
            vec![drag.clone(), json!({"type": "release", "pointer": 0})],
            vec![drag, json!({"type": "release", "pointer": 1})],
        ),
        ("pin", _) => {
            let pin = json!({"type": "pin", "body": 2, "on": true, "level": "primary"});
            match field {
                "body" => moves(chain, vec![changed(&pin, &["body"], json!(1))], vec![pin]),
                "on" => moves(chain, vec![pin.clone(), changed(&pin, &["on"], json!(false))], vec![pin]),
                "turn" => moves(chain, vec![changed(&pin, &["turn"], json!(true))], vec![pin]),
                "at" => moves(chain, vec![changed(&pin, &["at"], json!([0.1, 0.2, 0.0]))], vec![pin]),
                _ => says(chain, vec![changed(&pin, &["level"], json!("tertiary"))], vec![pin]),
            }
        }
        ("targets", _) => {
            let pose = json!({"position": [0.0, 0.3, 0.0], "rotation": [0.0, 0.0, 0.0, 1.0], "linear": [0.0, 0.0, 0.0], "angular": [0.0, 0.0, 0.0]});
            let targets = |pose: Value| json!({"type": "targets", "poses": {"palm": pose}});
            let other = match field {
                "poses" => return moves("hand", vec![targets(pose)], vec![]),
                "poses.position" => json!([0.1, 0.4, 0.0]),
                "poses.rotation" => json!([0.0, 0.0, 0.6, 0.8]),
                _ => json!([0.0, 3.0, 0.0]),
            };
            let path = field.split_once('.').unwrap().1;
            moves("hand", vec![targets(changed(&pose, &[path], other))], vec![targets(pose)])
        }
        ("steer", "values") => moves("car", vec![json!({"type": "steer", "values": [1.0, -0.3]})], vec![]),
        ("state", _) => {
            let state = json!({"type": "state", "state": "loose", "bodies": [], "strength": 1.0, "blend": 0.0});
            let (scene, first, value) = match field {
                "state" => ("robot", state, json!("limp")),
                "bodies" => ("robot", state, json!([3])),
                "blend" => ("robot", state, json!(5.0)),
                "at" => ("robot", state, json!(6)),
                _ => ("hand", changed(&state, &["state"], json!("posed")), json!(0.1)),
            };
            moves(scene, vec![changed(&first, &[field], value)], vec![first])
        }
        // Refused: there is no clip. What clips do is tested on characters (states.rs).
        ("clip", "clip" | "fade" | "at") => {
            says(chain, vec![json!({"type": "clip", "clip": "walk", "fade": 0.3, "at": 9})], vec![])
        }
        ("clip", "figure") => says(
            chain,
            vec![json!({"type": "clip", "figure": 1, "speed": 0.5})],
            vec![json!({"type": "clip", "speed": 0.5})],
        ),
        ("clip", _) => says(chain, vec![json!({"type": "clip", "speed": 0.5, "again": true})], vec![]),
        ("hits", "hits") => says(chain, vec![json!({"type": "hits", "hits": [2, 0.8]})], vec![]),
        ("variant", _) => {
            let variant = json!({"type": "variant", "take": 0, "from": 2, "to": 10,
                "variation": {"strength": 0.5, "delay": 0.1, "style": 0.3, "gravity": 0.9, "seed": 4}});
            let of = |variant: Value| vec![step(10), variant];
            let path: Vec<&str> = field.split('.').collect();
            let other = match field {
                "take" => json!(9),
                "from" | "to" => json!(5),
                "variation" => json!({}),
                "variation.seed" => json!(5),
                _ => json!(0.2),
            };
            let (with, without) = (of(changed(&variant, &path, other)), of(variant));
            // What is asked of a chain is always the same: later it is the same, too, and the take's name tells it.
            if matches!(field, "take" | "from" | "to" | "variation.delay") {
                says(chain, with, without)
            } else {
                moves(chain, with, without)
            }
        }
        ("things", _) => {
            // A tilted box that falls onto the edge of another one.
            let thing = json!({"name": "it", "kind": "box", "position": [0.1, 0.35, 0.05], "rotation": [0.0, 0.0, 0.2, 0.9798],
                "size": [0.2, 0.2, 0.2], "mass": 2.0, "friction": 0.5});
            let put = |thing: &Value| json!({"type": "things", "things": [thing]});
            let held = changed(
                &thing,
                &["held"],
                json!({"by": "box_0", "position": [0.0, 0.2, 0.0], "rotation": [0.0, 0.0, 0.0, 1.0]}),
            );
            let against = |other: Value, first: &Value| {
                let case = moves("stack:1", vec![put(&other)], vec![put(first)])?;
                Some(Case { steps: 45, ..case })
            };
            match field.trim_start_matches("things.") {
                "things" => moves("stack:1", vec![put(&thing)], vec![]),
                "name" => {
                    let throw = json!({"type": "throw", "thing": "it", "from": [0, 1, 0], "velocity": [1, 0, 0]});
                    let other = changed(&thing, &["name"], json!("other"));
                    says("stack:1", vec![put(&other), throw.clone()], vec![put(&thing), throw])
                }
                "kind" => against(changed(&thing, &["kind"], json!("ball")), &thing),
                "position" => against(changed(&thing, &["position"], json!([0.0, 0.6, 0.0])), &thing),
                "rotation" => against(changed(&thing, &["rotation"], json!([0.0, 0.0, 0.0, 1.0])), &thing),
                "size" => against(changed(&thing, &["size"], json!([0.3, 0.1, 0.2])), &thing),
                "mass" => against(changed(&thing, &["mass"], json!(20.0)), &thing),
                "friction" => against(changed(&thing, &["friction"], json!(0.0)), &thing),
                // Characters: that of no file is refused in a scene that is none, and so are its fields.
                "file" | "clip" | "state" => {
                    let name = field.trim_start_matches("things.");
                    let guest = json!({"kind": "character", "position": [1.0, 0.0, 0.0]});
                    let told = if name == "state" { json!(7) } else { json!("none") };
                    says("stack:1", vec![put(&changed(&guest, &[name], told))], vec![put(&thing)])
                }
                "held" => against(held, &thing),
                "held.by" => {
                    says("stack:1", vec![put(&changed(&held, &["held", "by"], json!("none")))], vec![put(&held)])
                }
                "held.position" => against(changed(&held, &["held", "position"], json!([0.3, 0.2, 0.0])), &held),
                "held.rotation" => against(changed(&held, &["held", "rotation"], json!([0.0, 0.6, 0.0, 0.8])), &held),
                _ => None,
            }
        }
        ("hold" | "throw", _) => {
            let thing = json!({"name": "it", "kind": "ball", "position": [0.4, 0.5, 0.0], "size": [0.2, 0.2, 0.2]});
            let put = json!({"type": "things", "things": [thing]});
            let message = match kind {
                "hold" => json!({"type": "hold", "thing": "it", "body": 0}),
                _ => json!({"type": "throw", "thing": "it", "from": [0.0, 1.0, 0.0], "velocity": [1.0, 0.0, 0.0]}),
            };
            let other = match field {
                "thing" => changed(&message, &["thing"], json!("none")),
                "body" => changed(&message, &["body"], Value::Null),
                _ => changed(&message, &[field], json!([0.0, 2.0, 1.0])),
            };
            moves("stack:1", vec![put.clone(), message], vec![put, other])
        }
        ("mark", "name") => {
            says(chain, vec![json!({"type": "mark", "name": "a"})], vec![json!({"type": "mark", "name": "b"})])
        }
        ("mark", "at") => says(
            chain,
            vec![json!({"type": "mark", "name": "a", "at": 9})],
            vec![json!({"type": "mark", "name": "a", "at": 7})],
        ),
        ("unmark", "mark") => {
            let mark = json!({"type": "mark", "name": "a"});
            says(chain, vec![mark.clone(), json!({"type": "unmark", "mark": 0})], vec![mark])
        }
        ("bone", _) => says(chain, vec![json!({"type": "bone", "bone": "x", "change": {"sag": 5}})], vec![]), // refused: no character
        ("rig", _) => says(chain, vec![json!({"type": "rig", "options": {"mass": 70}})], vec![]), // the same
        ("aside", _) => says(chain, vec![json!({"type": "aside", "sheet": 1, "take": 0})], vec![]), // refused: nothing was edited
        ("recent", _) => says(chain, vec![json!({"type": "recent", "file": 0})], vec![]), // refused: there is none
        ("open", "scene") => says(chain, vec![json!({"type": "open", "scene": "pendulum"})], vec![]),
        ("seek", "take") => says(
            chain,
            vec![step(5), json!({"type": "seek", "take": 9, "step": 2})],
            vec![step(5), json!({"type": "seek", "take": 0, "step": 2})],
        ),
        ("seek", "step") => says(
            chain,
            vec![step(5), json!({"type": "seek", "take": 0, "step": 9})],
            vec![step(5), json!({"type": "seek", "take": 0, "step": 2})],
        ),
        ("rename", "take") => says(
            chain,
            vec![json!({"type": "rename", "take": 0, "name": "a"})],
            vec![json!({"type": "rename", "take": 1, "name": "a"})],
        ),
        ("rename", "name") => says(
            chain,
            vec![json!({"type": "rename", "take": 0, "name": "a"})],
            vec![json!({"type": "rename", "take": 0, "name": "b"})],
        ),
        ("delete", "take") => {
            let second = vec![
                step(5),
                json!({"type": "seek", "take": 0, "step": 2}),
                set("gravity", json!([0, -1, 0])),
                step(2),
            ];
            let with = [second.clone(), vec![json!({"type": "delete", "take": 1})]].concat();
            says(chain, with, second)
        }
        ("compare", "take") => says(chain, vec![step(2), json!({"type": "compare", "take": 0})], vec![step(2)]),
        ("key", "time") => {
            says("robot", vec![json!({"type": "key", "time": 1.2})], vec![json!({"type": "key", "time": 0.5})])
        }
        ("unkey", "key") => {
            let key = json!({"type": "key", "time": 1.2});
            says("robot", vec![key.clone(), json!({"type": "unkey", "key": 0})], vec![key])
        }
        ("target_pose", "") => says("robot", vec![json!({"type": "target_pose"})], vec![]),
        ("undo", "") => {
            says(chain, vec![set("dt", json!(0.01)), json!({"type": "undo"})], vec![set("dt", json!(0.01))])
        }
        ("redo", "") => {
            let undone = vec![set("dt", json!(0.01)), json!({"type": "undo"})];
            says(chain, [undone.clone(), vec![json!({"type": "redo"})]].concat(), undone)
        }
        ("mend", "") | ("recover" | "discard", "journal") => {
            let message = if kind == "mend" { json!({"type": kind}) } else { json!({"type": kind, "journal": 0}) };
            says(chain, vec![message], vec![]) // refused: there is none
        }
        ("set", _) => case_of_set(field),
        _ => None,
    }
}

fn case_of_set(field: &str) -> Option<Case> {
    let set = |key: &str, value: Value| json!({"type": "set", key: value});
    let one = |scene, key: &str, value: Value| moves(scene, vec![set(key, value)], vec![]);
    if let Some(key) = field.strip_prefix("control") {
        return case_of_control(key.trim_start_matches('.'));
    }
    match field {
        "solver" => one("chain:3", "solver", json!("impulse:system")),
        "dt" => one("chain:3", "dt", json!(0.01)),
        "substeps" => one("chain:3", "substeps", json!(4)),
        "gravity" => one("chain:3", "gravity", json!([1, -5, 0])),
        "stiffness_scale" | "damping_scale" => one("chain:3", field, json!(0.1)),
        "torques" => one("chain:3", "torques", json!(false)),
        "contacts" => Some(Case { steps: 60, ..one("block", "contacts", json!("off"))? }),
        "contact_stiffness" | "contact_slip" => {
            let reduced = set("solver", json!("reduced:euler"));
            let value = if field == "contact_slip" { json!(0.5) } else { json!(3e4) };
            let case = moves("block", vec![reduced.clone(), set(field, value)], vec![reduced]);
            Some(Case { steps: 90, ..case? })
        }
        "hold" => one("hand", "hold", json!(false)),
        "script" => Some(Case { steps: 40, ..one("hand", "script", json!(false))? }),
        "pose" => one("chain:3", "pose", json!(true)),
        "budget" => {
            let assembly = set("solver", json!("assembly"));
            moves("lattice", vec![assembly.clone(), set("budget", json!(1.0))], vec![assembly])
        }
        "joints" => one("chain:3", "joints", json!([{"joint": 1, "stiffness_scale": 9, "damping_scale": 2}])),
        _ => None,
    }
}

fn case_of_control(field: &str) -> Option<Case> {
    let goal = json!({"body": 6, "point": [0.0, 0.0, 0.0], "aim": {"position": [0.3, 1.2, 0.3]}, "level": "primary", "weight": 1.0});
    let start = json!({"mode": "goals", "style": "least_acceleration", "goals": [goal], "joints": [{"joint": 3, "weight": 3.0, "max_torque": null, "actuation": "by_place"}]});
    let set = |control: &Value| json!({"type": "set", "control": control});
    let against = |other: Value| moves("robot", vec![set(&other)], vec![set(&start)]);
    let with = |path: &[&str], value: Value| against(changed(&start, path, value));
    let key = |time: f64| json!({"type": "key", "time": time});
    match field {
        "" => moves("robot", vec![set(&start)], vec![]),
        "mode" => with(&["mode"], json!("off")),
        "style" => with(&["style"], json!("least_torque")),
        "goals" => with(&["goals"], json!([])),
        "goals.body" => with(&["goals", "body"], json!(9)),
        "goals.point" => with(&["goals", "point"], json!([0.1, 0.2, 0.0])),
        "goals.aim" => with(&["goals", "aim"], json!({"velocity": [0.0, 0.5, 0.0]})),
        "goals.aim.orientation" => with(&["goals", "aim"], json!({"orientation": [0.0, 0.0, 0.6, 0.8]})),
        "goals.level" | "goals.weight" => {
            // Two that cannot both be reached.
            let mut other = goal.clone();
            other["aim"] = json!({"position": [-0.5, 0.4, -0.2]});
            let both = changed(&start, &["goals"], json!([goal, other]));
            let mut changed = both.clone();
            let name = field.split_once('.').unwrap().1;
            changed["goals"][1][name] = if name == "level" { json!("tertiary") } else { json!(9.0) };
            moves("robot", vec![set(&changed)], vec![set(&both)])
        }
        "drag_level" => {
            let drag = json!({"type": "drag", "body": 6, "point": [0.0, 0.0, 0.0], "target": [-0.5, 0.4, -0.2]});
            let other = changed(&start, &["drag_level"], json!("primary"));
            moves("robot", vec![set(&other), drag.clone()], vec![set(&start), drag])
        }
        "joint_level" => {
            let posed = changed(&start, &["pose_share"], json!(1.0));
            moves("robot", vec![set(&changed(&posed, &["joint_level"], json!("primary")))], vec![set(&posed)])
        }
        "joints" => with(&["joints"], json!([])),
        "joints.joint" => with(&["joints", "joint"], json!(2)),
        "joints.weight" => with(&["joints", "weight"], json!(90.0)),
        "joints.max_torque" => with(&["joints", "max_torque"], json!(0.01)),
        "joints.actuation" => with(&["joints", "actuation"], json!("passive")),
        "pose" => {
            let posed = changed(&start, &["pose_share"], json!(1.0));
            let gone = vec![json!({"type": "step", "count": 20}), json!({"type": "target_pose"})];
            let moved = [vec![set(&posed)], gone.clone()].concat();
            let back = [moved.clone(), vec![set(&json!({"pose": []}))]].concat();
            Some(Case { steps: 60, ..moves("robot", moved, back)? })
        }
        "pose_share" => with(&["pose_share"], json!(1.0)),
        "keyframes" | "keyframes.time" | "keyframes.positions" | "share" => {
            let followed = changed(&start, &["mode"], json!("keyframes"));
            let drive = |at: f64| vec![json!({"type": "step", "count": 10}), key(at), set(&followed)];
            match field {
                "keyframes" => moves("robot", drive(0.2), vec![json!({"type": "step", "count": 10}), set(&followed)]),
                "share" => {
                    let less = [drive(0.2), vec![set(&json!({"share": 0.2}))]].concat();
                    moves("robot", less, drive(0.2))
                }
                // The whole list, as a client that edits it sends it.
                _ => {
                    let list = |time: f64, steps: u32| {
                        let scene = supple::Scene::parse("robot").unwrap();
                        let (mut state, mut work) = (scene.state.clone(), supple::Work::new(&scene.model));
                        let input = supple::Input { torques: false, ..scene.input.clone() };
                        let at = |state: &supple::State| supple::model::Coordinates::of(&scene.model, state).positions;
                        let first = json!({"time": 0.0, "positions": at(&state)});
                        for _ in 0..steps {
                            supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
                        }
                        let keys = json!([first, {"time": time, "positions": at(&state)}]);
                        vec![set(&changed(&followed, &["keyframes"], keys))]
                    };
                    let other = if field == "keyframes.time" { list(0.9, 10) } else { list(0.2, 20) };
                    moves("robot", other, list(0.2, 10))
                }
            }
        }
        "landing" | "landing.hertz" | "landing.ratio" => {
            let landing = changed(&start, &["mode"], json!("landing"));
            let value = if field == "landing.ratio" {
                json!({"hertz": 1.5, "ratio": 0.2})
            } else {
                json!({"hertz": 4.0, "ratio": 1.0})
            };
            moves("robot", vec![set(&changed(&landing, &["landing"], value))], vec![set(&landing)])
        }
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_key_changes_a_result_or_is_refused() {
    let documented = documented();
    assert!(documented.len() > 70, "{documented:?}");
    let (mut unknown, mut idle) = (Vec::new(), Vec::new());
    for key in &documented {
        let Some(case) = case(key) else {
            unknown.push(key);
            continue;
        };
        let with = outcome(case.scene, &case.with, case.steps).await;
        let other = outcome(case.scene, &case.other, case.steps).await;
        let refused = with.errors.len() != other.errors.len();
        let differs = if case.moves { with.moving != other.moving } else { with != other };
        if case.moves && !with.errors.is_empty() {
            println!("{key}: {:?}", with.errors);
        }
        if !(differs || refused) {
            idle.push(key);
        }
    }
    assert!(unknown.is_empty() && idle.is_empty(), "without a case: {unknown:?}; without effect: {idle:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_far_beyond_is_refused_by_its_name() {
    let address = start("chain:3");
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "pause"})).await;
    for (message, name) in [
        (json!({"type": "set", "gravity": [0.0, -1e6, 0.0]}), "gravity"),
        (json!({"type": "set", "gravity": [1e308, 0.0, 0.0]}), "gravity"),
        (json!({"type": "seek", "take": 0, "step": 4_000_000_000u32}), "step"),
        (json!({"type": "key", "time": 1e308}), "keyframe"),
        (json!({"type": "key", "time": -1e308}), "keyframe"),
    ] {
        client.say(message.clone()).await;
        let told = tokio::time::timeout(common::PATIENCE, client.told("error")).await;
        let error = told.expect("it is refused");
        assert!(error["message"].as_str().unwrap().contains(name), "{message}: {error}");
    }
}

/// Where the numbers of a message are, as JSON pointers.
fn numbers(message: &Value, at: &str) -> Vec<String> {
    match message {
        Value::Number(_) => vec![at.to_owned()],
        Value::Array(list) => (0..list.len()).flat_map(|k| numbers(&list[k], &format!("{at}/{k}"))).collect(),
        Value::Object(fields) => fields.iter().flat_map(|(k, v)| numbers(v, &format!("{at}/{k}"))).collect(),
        _ => Vec::new(),
    }
}

/// Whatever number a message holds: the studio goes on, no place becomes nonsense, and no error is hundreds of digits long.
#[tokio::test(flavor = "multi_thread")]
async fn any_number_in_any_message_ends_in_few_words() {
    let mut scenes: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for case in documented().iter().filter_map(|key| case(key)) {
        scenes.entry(case.scene).or_default().extend(case.with);
    }
    let (mut said, mut errors, mut long) = (0, 0, Vec::new());
    for (scene, mut messages) in scenes {
        messages.sort_by_key(Value::to_string);
        messages.dedup();
        let address = start(scene);
        let mut client = Client::connect(&address).await;
        client.say(json!({"type": "pause"})).await;
        for message in messages {
            for number in [1e308, -1e308, 1e-300, 1e7, -1.0] {
                for place in numbers(&message, "") {
                    let mut wild = message.clone();
                    *wild.pointer_mut(&place).unwrap() = json!(number);
                    said += 1;
                    client.say(wild.clone()).await;
                    client.say(json!({"type": "pin", "body": 4_000_000, "on": true})).await;
                    loop {
                        let text = client.told("error").await["message"].as_str().unwrap().to_owned();
                        if text.contains("4000000") {
                            break;
                        }
                        errors += 1;
                        let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
                        if digits >= Some(20) {
                            long.push(format!("{wild}: {text}"));
                        }
                    }
                    if wild["type"] == "open" || wild["type"] == "step" || wild["type"] == "play" {
                        client.say(json!({"type": "pause"})).await;
                    }
                }
            }
        }
        client.frame_where(|frame| (0..3).all(|k| frame.position(0)[k].is_finite())).await;
    }
    assert!(said > 500 && errors > 200, "{said} messages, {errors} errors");
    assert!(long.is_empty(), "{long:#?}");
}

/// The documented keys after the `?` of addresses, as `route.key`.
fn documented_queries() -> BTreeSet<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let text = std::fs::read_to_string(path).unwrap();
    let takes = text.split_once("\n## Takes\n").unwrap().1;
    let mut keys = BTreeSet::new();
    // Told in words: what stands in brackets are values.
    let told = takes.split_once("After `?` may stand").unwrap().1.split_once(".\n").unwrap().0;
    let bare: String = told.split('(').map(|part| part.rsplit(')').next().unwrap()).collect();
    for word in bare.split('`').skip(1).step_by(2) {
        let name = word.split('=').next().unwrap();
        keys.extend(["glb", "bvh", "usda", "vrma"].map(|form| format!("baked.{form}.{name}")));
    }
    // Told by an example.
    for example in takes.split('`').filter(|part| part.starts_with("GET /") && part.contains('?')) {
        let (route, words) = example.trim_start_matches("GET /").split_once('?').unwrap();
        let route = route.split('/').next().unwrap();
        keys.extend(words.split('&').map(|pair| format!("{route}.{}", pair.split('=').next().unwrap())));
    }
    // A variant has more of them: those of the message.
    let variation = documented().into_iter().filter_map(|k| Some(k.strip_prefix("variant.variation.")?.to_owned()));
    keys.extend(variation.map(|name| format!("variant.{name}")));
    keys
}

/// The small character of the fuzz targets.
const STRIP: &[u8] = include_bytes!("../../../fuzz/strip.gltf");

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_key_of_an_address_changes_the_answer_or_is_refused() {
    let folder = common::folder("address-keys");
    let file = folder.join("strip.gltf");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&file, STRIP).unwrap();
    let made = Recipe::of_file(file.to_str().unwrap()).make(&Files::default()).unwrap();
    let (address, _task) = run(Opening::of_file(made), "test", None);
    let (mut client, _) = common::paused(&address, 30).await;
    // A second character, and two takes in which something moves.
    let words = format!("Authorization: Bearer {}\r\nx-file-name: other.gltf\r\n", key(&address));
    let before = client.frame_now().await.bodies();
    assert_eq!(ask_with(&address, "POST", "/guest", &words, STRIP).await.0, 204);
    let beside = client.frame_where(|frame| frame.bodies() > before).await.u32(4);
    let away = json!({"name": "other", "kind": "character", "file": "sent:other.gltf", "position": [5.0, 0.0, 0.0]});
    client.say(json!({"type": "things", "things": [away]})).await;
    client.frame_where(|frame| frame.u32(4) != beside).await;
    let drag = |x: f64| json!({"type": "drag", "body": 1, "point": [0, 0, 0], "target": [x, 0.5, 0.2]});
    client.say(json!({"type": "step", "count": 10})).await;
    client.frame_where(|frame| frame.step() == 10 && !frame.playing()).await;
    client.say(drag(0.3)).await; // so that asking for it later is something else
    client.say(json!({"type": "step", "count": 50})).await;
    client.frame_where(|frame| frame.step() == 60 && !frame.playing()).await;
    seek(&mut client, 0, 20).await;
    client.say(drag(-0.4)).await;
    client.say(json!({"type": "step", "count": 20})).await;
    client.frame_where(|frame| frame.step() == 40 && !frame.playing()).await;

    let documented = documented_queries();
    assert!(documented.contains("look.every") && documented.contains("variant.seed"), "{documented:?}");
    assert_eq!(documented.iter().filter(|key| key.starts_with("baked.glb.")).count(), 7, "{documented:?}");
    for name in &documented {
        let (route, field) = name.rsplit_once('.').unwrap();
        let (path, other, value) = match (route, field) {
            ("look", "every") => ("/look/0?", "every=1", "every=3"),
            ("variant", "from") => ("/variant/0?", "from=0&to=40&every=4", "from=10&to=40&every=4"),
            ("variant", "to") => ("/variant/0?", "from=0&to=40&every=4", "from=0&to=30&every=4"),
            ("variant", "every") => ("/variant/0?", "from=0&to=40&every=4", "from=0&to=40&every=5"),
            ("variant", _) => {
                let value = match field {
                    "delay" => "from=0&to=40&every=4&delay=0.1",
                    "strength" => "from=0&to=40&every=4&strength=0.3",
                    "style" => "from=0&to=40&every=4&style=0.3",
                    "gravity" => "from=0&to=40&every=4&gravity=0.3",
                    "seed" => "from=0&to=40&every=4&seed=3",
                    _ => panic!("{name} has no case"),
                };
                ("/variant/0?", "from=0&to=40&every=4", value)
            }
            (_, field) => {
                let path = match route {
                    "baked.glb" => "/baked.glb?",
                    "baked.bvh" => "/baked.bvh?",
                    "baked.usda" => "/baked.usda?",
                    "baked.vrma" => "/baked.vrma?",
                    _ => panic!("{name} has no case"),
                };
                let value = match field {
                    "from" => "from=0.2",
                    "to" => "to=0.4",
                    "fps" => "fps=24",
                    "loop" => "loop=0.1",
                    "root" => "root=in_place",
                    "all" => "all=true",
                    "figure" => "figure=1",
                    _ => panic!("{name} has no case"),
                };
                (path, "", value)
            }
        };
        let plain = ask(&address, "GET", &format!("{path}{other}"), b"").await;
        let with = ask(&address, "GET", &format!("{path}{value}"), b"").await;
        // A .vrma is of avatars alone, which the strip is not: whatever is asked of it is refused.
        assert_eq!(plain.0, if route == "baked.vrma" { 400 } else { 200 }, "{path}{other}");
        let said = String::from_utf8_lossy(&with.1).into_owned();
        assert!(with.0 == 400 || (with.0 == 200 && with.1 != plain.1), "{path}{value} does nothing: {}", with.0);
        if with.0 == 400 {
            println!("{path}{value}: {said}");
        }
    }
    // What stands for nothing is refused, and so is what is not known.
    for wrong in [
        "/look/0?every=0",
        "/look/0?every=4294967296",
        "/look/0",
        "/look/0?every=1&more=1",
        "/variant/0?from=0&to=40",
        "/variant/0?from=0&to=40&every=0",
        "/baked.glb?speed=2",
        "/baked.glb?to=9",
        "/baked.glb?from=0.7",
        "/baked.bvh?loop=0.1",
        "/baked.usda?root=root",
        "/baked.bvh?all=true",
        "/baked.glb?figure=2",
    ] {
        let (status, said) = ask(&address, "GET", wrong, b"").await;
        assert_eq!(status, 400, "{wrong}: {}", String::from_utf8_lossy(&said));
    }
    let _ = std::fs::remove_dir_all(folder); // the studio may still write its journal
}
