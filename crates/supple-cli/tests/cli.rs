//! The binary as its users meet it: exit status, standard output, standard error, files.

mod common;
#[path = "../../supple-assets/tests/common/mod.rs"]
mod models;

use common::{command, fresh_file, json, refused, stderr, stdout, supple};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn version_and_help() {
    let version = supple(&["--version"]);
    assert!(version.status.success());
    assert_eq!(stdout(&version), format!("supple {}\n", env!("CARGO_PKG_VERSION")));
    let help = supple(&["--help"]);
    assert!(help.status.success());
    for word in ["view", "simulate", "render", "compare", "assemble", "bench", "inspect", "scenes", "completions"] {
        assert!(stdout(&help).contains(word), "{word}");
    }
}

#[test]
fn scenes_are_listed() {
    let document = json(&["scenes", "--json"]);
    let scenes = document["scenes"].as_array().unwrap();
    for wanted in ["pendulum", "chain", "hand"] {
        let scene = scenes.iter().find(|s| s["name"] == wanted).unwrap_or_else(|| panic!("{wanted} is missing"));
        assert!(!scene["summary"].as_str().unwrap().is_empty());
    }
    let table = stdout(&supple(&["scenes"]));
    assert!(table.contains("20 links") && table.contains("stiffness=10 N·m/rad"), "parameters have units: {table}");
    assert!(scenes.iter().all(|s| table.contains(s["name"].as_str().unwrap())));
}

#[test]
fn an_unknown_scene_is_refused_with_the_nearest_name() {
    let said = refused(&["simulate", "pendulm"]);
    assert!(said.contains("scene/unknown") && said.contains("pendulm") && said.contains("`pendulum`"), "{said}");
    let said = refused(&["inspect", "octopus"]);
    assert!(said.contains("scene/unknown") && !said.contains("did you mean"), "{said}");
}

#[test]
fn wrong_parameters_of_a_scene_are_refused() {
    let said = refused(&["simulate", "chain:minus"]);
    assert!(said.contains("scene/parameter") && said.contains("chain"), "{said}");
}

#[test]
fn files_that_cannot_be_taken_are_refused() {
    let said = refused(&["simulate", "none/hand.glb"]);
    assert!(said.contains("file/read") && said.contains("none/hand.glb"), "{said}");
    let said = refused(&["inspect", "models/robot.obj"]);
    assert!(said.contains("file/ending") && said.contains(".glb"), "{said}");
}

#[test]
fn wrong_settings_are_refused() {
    for (setting, hint) in [
        ("substeps", "key=value"),
        ("substeps=0", "substeps"),
        ("stifness_scale=2", "`stiffness_scale`"),
        ("gravity=1,2", "x,y,z"),
        ("gravity=1e6", "within 1000"),
        ("torques=maybe", "on or off"),
    ] {
        let said = refused(&["simulate", "pendulum", "--set", setting]);
        assert!(said.contains("cli/setting") && said.contains(hint), "{setting}: {said}");
    }
    for (option, value) in [
        ("--dt", "0"),
        ("--dt", "-1/60"),
        ("--dt", "soon"),
        ("--seconds", "0"),
        ("--seconds", "-5"),
        ("--seconds", "1e12"),
        ("--seconds", "1e308"),
        ("--seconds", "inf"),
        ("--solver", "magic"),
    ] {
        let said = refused(&["simulate", "pendulum", option, value]);
        assert!(said.contains("cli/setting") && said.contains(value), "{option} {value}: {said}");
    }
}

/// Written out, 1e308 has 309 digits.
#[test]
fn large_and_tiny_numbers_are_told_in_few_letters() {
    let file = fresh_file("numbers.glb");
    let file = file.to_str().unwrap();
    for (option, value) in [
        ("--fps", "1e308"),
        ("--fps", "1e-300"),
        ("--from", "1e308"),
        ("--to", "1e308"),
        ("--loop", "1e308"),
        ("--loop", "1e-300"),
    ] {
        let said = refused(&["simulate", "hand", "--seconds", "0.1", "-o", file, option, value]);
        assert!(said.contains(&format!("{option} is {value}")), "{said}");
    }
}

#[test]
fn a_wrong_call_has_a_code_too() {
    assert!(refused(&["simulate", "pendulum", "--fast"]).contains("cli/usage"));
    assert!(refused(&["dance"]).contains("cli/usage"));
    let said = refused(&["bench", "whipp"]);
    assert!(
        said.contains("cli/usage") && said.contains("`whip`") && said.contains("chain, hand, trees, whip"),
        "{said}"
    );
}

/// The keys that a report promises.
const REPORT_KEYS: [&str; 26] = [
    "scene",
    "solver",
    "dt",
    "steps",
    "seconds",
    "bodies",
    "joints",
    "ms_per_step",
    "max_joint_gap",
    "max_joint_tilt",
    "energy",
    "contacts_max",
    "substeps_max",
    "fallbacks",
    "rules",
    "finite",
    "state_hash",
    "limits_active_max",
    "tiers",
    "corrections",
    "settings",
    "max_penetration",
    "unconverged",
    "figures",
    "quality",
    "reasons",
];

#[test]
fn a_report_has_its_keys() {
    let report = json(&["simulate", "pendulum", "--seconds", "0.1", "--json", "--set", "gravity=1.62"]);
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    for key in REPORT_KEYS {
        assert!(keys.contains(&key), "{key} is missing");
    }
    assert_eq!(keys.len(), REPORT_KEYS.len(), "{keys:?}");
    for key in ["median", "p99", "max"] {
        assert!(report["ms_per_step"][key].as_f64().unwrap() >= 0.0, "{key}");
    }
    for key in ["first", "last", "max"] {
        assert!(report["energy"][key].is_f64(), "{key}");
    }
    for key in ["rotation_halvings", "backward_parts", "resorts", "projections"] {
        assert!(report["tiers"][key].is_u64(), "{key}");
    }
    assert_eq!(report["scene"], "pendulum");
    assert_eq!(report["solver"], "tree");
    assert_eq!(report["steps"], 6);
    assert_eq!(report["dt"], 1.0 / 60.0);
    assert_eq!(report["finite"], true);
    assert_eq!(report["settings"]["gravity"], serde_json::json!([0.0, -1.62, 0.0]));
    let hash = report["state_hash"].as_str().unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
}

#[test]
fn the_same_run_gives_the_same_bits() {
    let hash = || json(&["simulate", "chain:10", "--seconds", "0.5", "--json"])["state_hash"].clone();
    assert_eq!(hash(), hash());
}

#[test]
fn a_run_moves() {
    let path = fresh_file("moves.csv");
    let output = supple(&["simulate", "chain:10", "--seconds", "0.5", "-o", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&path).unwrap();
    // The row of a body without its time.
    let body = |line: &str| line.split_once(',').unwrap().1.to_owned();
    let (start, end) = (text.lines().nth(10).unwrap(), text.lines().last().unwrap());
    assert_ne!(body(start), body(end), "the last link stays where it was");
}

#[test]
fn files_are_written_by_their_ending() {
    let (csv, report) = (fresh_file("run.csv"), fresh_file("run.json"));
    let words =
        ["simulate", "chain:3", "--seconds", "0.1", "-o", csv.to_str().unwrap(), "-o", report.to_str().unwrap()];
    let output = supple(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("real time at the median step"));
    assert!(stdout(&output).contains("chain:3") && stderr(&output).contains("run.csv"));

    let text = std::fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time,body,x,y,z,qw,qx,qy,qz,vx,vy,vz,wx,wy,wz"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let bodies = report["bodies"].as_u64().unwrap() as usize;
    assert_eq!(rows.len(), bodies * 7, "the start and six steps of every body");
    for row in &rows {
        assert_eq!(row.len(), 15);
        let number = |k: usize| row[k].parse::<f64>().unwrap();
        // Unit quaternions in w, x, y, z, to the rounding of a few products.
        let length: f64 = (5..9).map(|k| number(k).powi(2)).sum::<f64>().sqrt();
        assert!((length - 1.0).abs() < 1e-12, "{row:?}");
    }
    assert_eq!(rows[0][0].parse::<f64>(), Ok(0.0));
    assert!((rows[rows.len() - 1][0].parse::<f64>().unwrap() - 0.1).abs() < 1e-12);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_run() {
    let path = "no/such/folder/run.csv";
    let said = refused(&["simulate", "pendulum", "-o", path]);
    assert!(said.contains("cli/output") && said.contains(path), "{said}");
    let said = refused(&["simulate", "pendulum", "-o", "run.txt"]);
    assert!(said.contains("cli/output") && said.contains("run.txt") && said.contains(".csv or .json"), "{said}");
    let said = refused(&["bench", "hand", "-o", "hand.svg"]);
    assert!(said.contains("cli/output") && said.contains(".json"), "{said}");
    assert!(refused(&["simulate", "pendulum", "-o", "a.csv", "-o", "a.csv"]).contains("twice"));
}

#[test]
fn inspect_tells_the_soft_skin() {
    let skin = &json(&["inspect", "tube:5", "--json"])["skin"];
    assert_eq!((&skin["nodes"], &skin["soft_nodes"]), (&292.into(), &292.into()));
    // three under each of 2 (n − 2) triangles
    assert_eq!(skin["tetrahedra"], 3 * 2 * (292 - 2));
    assert_eq!(skin["fleshed"].as_array().unwrap().len(), 5);
    let depth: Vec<f64> = skin["depth"].as_array().unwrap().iter().map(|d| d.as_f64().unwrap()).collect();
    assert!(0.0 < depth[0] && depth[0] <= depth[1] && depth[1] <= depth[2], "{depth:?}");
    let told = stdout(&supple(&["inspect", "tube:5"]));
    assert!(told.contains("soft skin") && told.contains("bones with flesh"), "{told}");
    assert!(json(&["inspect", "hand", "--json"])["skin"].is_null());
}

#[test]
fn inspect_tells_what_is_there() {
    let document = json(&["inspect", "chain:50", "--json"]);
    assert_eq!(document["bodies"].as_array().unwrap().len(), 50);
    assert_eq!(document["totals"]["bodies"], 50);
    let body = &document["bodies"][0];
    assert!(body["mass"].as_f64().unwrap() > 0.0);
    assert!(body["principal_moments"].as_array().unwrap().iter().all(|m| m.as_f64().unwrap() > 0.0));
    assert!(document["loops"].as_array().unwrap().is_empty());

    let some = stdout(&supple(&["inspect", "chain:50"]));
    assert!(some.contains("and 30 more"), "{some}");
    let all = stdout(&supple(&["inspect", "chain:50", "--all"]));
    assert!(!all.contains("more: --all") && all.lines().count() > some.lines().count());
}

#[test]
fn benches_have_their_form() {
    let svg = fresh_file("chain.svg");
    let words = ["bench", "chain", "--links", "100,200", "--seconds", "0.1", "--json", "-o", svg.to_str().unwrap()];
    let document = json(&words);
    assert_eq!(document["bench"], "chain");
    assert!(document["machine"]["cores"].as_u64().unwrap() > 0);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert!(row["us_per_step"].as_f64().unwrap() > 0.0);
        for key in ["scene", "links", "variant", "us_per_link", "max_joint_gap", "gap_per_link"] {
            assert!(!row[key].is_null(), "{key}");
        }
        for key in ["published_ms", "ratio_to_published"] {
            assert!(row.get(key).is_some_and(Value::is_null), "{key}");
        }
        if row["variant"] == "plain" {
            assert!(row["peak_share"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{row}");
        } else {
            assert!(row.get("peak_share").is_some_and(Value::is_null), "{row}");
        }
    }
    assert!(document["peak_gflops"].as_f64().unwrap() > 0.0);
    assert!(document["slope"]["plain"].is_f64() && document["slope"]["default"].is_f64());
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));

    let document = json(&["bench", "hand", "--seconds", "0.5", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    for (row, (variant, hands)) in
        rows.iter().zip([("full", 1), ("default", 1), ("crowd", 1000), ("crowd_default", 1000)])
    {
        assert_eq!((&row["variant"], &row["hands"]), (&variant.into(), &hands.into()));
        assert_eq!(row["published_us"], 360.0);
        assert!(row["ratio_to_published"].as_f64().unwrap() > 0.0);
        assert!(row["max_joint_gap"].as_f64().unwrap() < 1e-3);
    }
    assert_eq!(rows.len(), 4);

    let figure = fresh_file("trees.svg");
    let words = ["bench", "trees", "--scene", "tree:7,tree:31,star:7", "--seconds", "0.1", "--json", "-o"];
    let document = json(&[&words[..], &[figure.to_str().unwrap()]].concat());
    assert_eq!(document["bench"], "trees");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 3 * 2);
    for row in rows {
        for key in ["ms_per_step", "iterations_jc_mean", "iterations_jc_max", "iterations_vc_mean", "tolerance"] {
            assert!(row[key].is_number(), "{key}: {row}");
        }
        assert_eq!((&row["bodies"], row["published_ms"].is_number()), (&row["joints"], row["scene"] == "tree:31"));
        assert!(row["max_joint_gap"].as_f64() <= row["tolerance"].as_f64(), "{row}");
    }
    assert_eq!((&rows[8]["variant"], &rows[9]["variant"]), (&"system".into(), &"joint_by_joint".into()));
    assert_eq!(rows[6]["published_ms"], 3.23);
    assert!(document["slope"].is_number() && document["ratios"].as_array().unwrap().len() == 9);
    assert!(std::fs::read_to_string(&figure).unwrap().contains("ms per step"));

    let names = stdout(&supple(&["bench"]));
    for name in ["chain", "hand", "whip", "stiffness", "drag"] {
        assert!(names.contains(name), "{name}");
    }
}

/// The keys of every row, no more and no less.
fn assert_keys(row: &Value, wanted: &[&str]) {
    let mut keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let mut wanted = wanted.to_vec();
    keys.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(keys, wanted);
}

#[test]
fn whips_keep_their_bounds() {
    let page = fresh_file("whip.html");
    let document = json(&["bench", "whip", "--quick", "--json", "-o", page.to_str().unwrap()]);
    assert_eq!(document["bench"], "whip");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 30, "five stiffnesses, three tips, two steps");
    assert_eq!(document["published"].as_array().unwrap().len(), 30);
    let keys = [
        "scene",
        "links",
        "stiffness",
        "tip_mass",
        "dt",
        "bounded",
        "max_joint_gap",
        "gap_per_link",
        "energy_gain",
        "energy_loss_1s",
        "energy_loss_5s",
        "substeps_mean",
        "factorisations_mean",
        "factorisations_max",
        "us_per_frame",
        "tip_error_1s",
        "reference_error",
    ];
    for row in rows {
        assert_keys(row, &keys);
        assert_eq!(row["bounded"], true, "{row}");
    }
    // Every bound holds in every row that it applies to; the references of these whips have all converged.
    let bounds = document["bounds"].as_array().unwrap();
    assert_eq!(bounds.len(), 7);
    for bound in bounds {
        assert_eq!(bound["met"], bound["of"], "{bound}");
        assert!(bound["of"].as_u64().unwrap() >= 2, "{bound}");
    }
    // The published step opens joints that the default step keeps closed.
    assert!(bounds.iter().any(|bound| bound["published_met"].as_u64() < bound["met"].as_u64()));

    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http:", "https:", "src=", "<link", "<script", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn stiff_chains_take_long_steps() {
    let document = json(&["bench", "stiffness", "--links", "10", "--stiffness", "1e4", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &document["bench"]), (1, &"stiffness".into()));
    let row = &rows[0];
    for key in ["links", "stiffness", "dt_max", "dt_max_published", "resorts"] {
        assert!(row.get(key).is_some(), "{key}");
    }
    assert_eq!((&row["links"], &row["stiffness"]), (&10.into(), &1e4.into()));
    assert_eq!(row["dt_max"], 0.1, "the longest step tried");
    let said = refused(&["bench", "stiffness", "--stiffness", "hard"]);
    assert!(said.contains("cli/setting") && said.contains("hard"), "{said}");
}

#[test]
fn the_contacts_bench_has_its_form_and_stacks_stand() {
    let document = json(&["bench", "contacts", "--quick", "--scene", "stack", "--scene", "block", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &document["bench"]), (8, &"contacts".into()));
    let keys = [
        "scene",
        "us_per_frame",
        "max_penetration",
        "max_joint_gap",
        "energy_excess",
        "iterations_mean",
        "iterations_max",
        "unconverged_steps",
        "passed",
    ];
    for row in rows {
        assert_keys(row, &keys);
        assert_eq!(row["passed"], true, "{row}");
    }
    assert!(refused(&["bench", "contacts", "--scene", "octopus"]).contains("--scene"));
}

#[test]
fn the_servo_bench_has_its_form_and_the_robot_stands() {
    let document = json(&["bench", "servo", "--kp", "1e4,1e7", "--seconds", "1", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &document["bench"]), (4, &"servo".into()));
    let keys = ["kp", "dt", "stable", "standing", "max_joint_gap", "energy_excess", "max_joint_rate", "us_per_frame"];
    for row in rows {
        assert_keys(row, &keys);
        assert_eq!((&row["stable"], &row["standing"]), (&true.into(), &true.into()), "{row}");
    }
    assert!(refused(&["bench", "servo", "--kp", "0"]).contains("above 0"));
}

#[test]
fn a_violent_drag_is_withstood() {
    let document = json(&["bench", "drag", "--scene", "chain:10", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &document["bench"]), (2, &"drag".into()));
    let keys = [
        "scene",
        "dt",
        "bounded",
        "max_joint_gap",
        "gap_per_size",
        "factorisations_mean",
        "factorisations_max",
        "resorts",
        "us_per_frame",
        "max_speed",
    ];
    for row in rows {
        assert_keys(row, &keys);
        assert_eq!(row["bounded"], true, "{row}");
        assert!(row["gap_per_size"].as_f64().unwrap() < 1e-9, "{row}");
    }
    assert!(refused(&["bench", "drag", "--scene", "octopus"]).contains("chain:30"));
}

#[test]
fn the_tiers_of_a_run_are_told() {
    // A loose chain turns fast: parts are halved for it.
    let words = ["simulate", "whip:10", "--seconds", "2", "--json"];
    assert!(json(&words)["tiers"]["rotation_halvings"].as_u64().unwrap() > 0);
    assert!(stdout(&supple(&words[..4])).contains("rotation halvings"));
    assert!(!stdout(&supple(&["simulate", "pendulum", "--seconds", "0.1"])).contains("tiers"));
}

#[test]
fn no_color_is_respected() {
    for words in
        [&["--help"][..], &["scenes"], &["simulate", "pendulum", "--seconds", "0.1"], &["simulate", "x"], &["x"]]
    {
        // Other variables ask for colours: NO_COLOR wins.
        let output = command(words)
            .env("NO_COLOR", "1")
            .env("CLICOLOR_FORCE", "1")
            .env("FORCE_COLOR", "1")
            .output()
            .expect("the binary runs");
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{words:?}");
    }
}

#[test]
fn quiet_is_quiet() {
    let path = fresh_file("quiet.csv");
    let output = supple(&["--quiet", "simulate", "pendulum", "--seconds", "0.1", "-o", path.to_str().unwrap()]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn a_reader_may_leave() {
    for words in [&["inspect", "chain:2000", "--json"][..], &["scenes"], &["--help"], &["completions", "zsh"]] {
        let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the binary ends");
        let said = stderr(&output);
        assert!(output.status.success() && !said.contains("panic") && !said.contains("cli/"), "{words:?}: {said}");
    }
}

#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = supple(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("simulate"), "{shell}");
    }
}

#[test]
fn a_broken_pose_is_assembled() {
    let (document, table) = (fresh_file("crowd.json"), fresh_file("crowd.csv"));
    let words = ["assemble", "crowd_of_two", "-o", document.to_str().unwrap(), "-o", table.to_str().unwrap()];
    let output = supple(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("758 rows") && said.contains("left_hands") && said.contains("closed"), "{said}");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&document).unwrap()).unwrap();
    assert_eq!((&report["rows"], &report["closed"]), (&758.into(), &true.into()));
    assert!(report["error_before"].as_f64().unwrap() > 0.5 && report["error_after"].as_f64().unwrap() <= 1e-6);
    let residuals = report["residuals"].as_array().unwrap();
    assert_eq!(residuals.len(), 178);
    assert!(residuals.iter().all(|r| r["distance"].as_f64().unwrap() <= 1e-6 && r["angle"].as_f64().unwrap() <= 1e-6));
    assert_eq!(report["poses"].as_array().unwrap().len(), 176);
    let text = std::fs::read_to_string(&table).unwrap();
    assert_eq!((text.lines().count(), text.lines().next()), (177, Some("body,x,y,z,qw,qx,qy,qz")));
    // Too few iterations are told, and the settings are those of solver assembly.
    let short = json(&["assemble", "crowd_of_two", "--set", "outer=1", "--json"]);
    assert_eq!((&short["closed"], &short["outer"]), (&false.into(), &1.into()));
    assert!(refused(&["assemble", "crowd_of_two", "--set", "tree.depth=4"]).contains("cli/setting"));
}

#[test]
fn a_scene_that_starts_broken_is_assembled_aloud() {
    let output = supple(&["simulate", "bar", "--seconds", "0.1", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("starts broken"), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["solver"], "assembly");
    // From an assembled pose nothing is flung about: without forces the bar rests.
    assert!(report["energy"]["max"].as_f64().unwrap() < 1e-9, "{report}");
    assert!(!stderr(&supple(&["simulate", "chain:3", "--seconds", "0.1"])).contains("broken"));
}

#[test]
fn a_budget_is_kept_in_iterations() {
    let run = |budget: &str| json(&["simulate", "plate", "--seconds", "1", "--budget", budget, "--json"]);
    let (little, plenty) = (run("1"), run("1e6"));
    let count = |report: &serde_json::Value| report["corrections"]["count"].as_u64().unwrap();
    assert_eq!(count(&little), 60, "one linearisation a step");
    assert!(count(&plenty) > 60);
    let left = |report: &serde_json::Value| report["corrections"]["residual_max"].as_f64().unwrap();
    assert!(left(&little) > left(&plenty), "{little} {plenty}");
    assert!(refused(&["simulate", "plate", "--budget", "0"]).contains("cli/setting"));
    assert!(refused(&["simulate", "chain", "--budget", "100"]).contains("assembly"));
}

#[test]
fn solvers_are_compared() {
    let (svg, html) = (fresh_file("compare.svg"), fresh_file("compare.html"));
    let (svg_name, html_name) = (svg.to_str().unwrap(), html.to_str().unwrap());
    let only = ["compare", "double_pendulum", "--only", "tree,reduced", "--dt", "1/30,1/60", "--seconds", "0.5"];
    let document = json(&[&only[..], &["--json", "-o", svg_name, "-o", html_name]].concat());
    assert_eq!((&document["compare"], &document["seconds"]), (&"double_pendulum".into(), &0.5.into()));
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6 * 2, "four of tree, two of reduced, two steps each");
    for key in
        ["solver", "dt", "ms_per_second", "max_joint_gap", "energy_error", "momentum_error", "pose_error", "turn_error"]
    {
        assert!(rows.iter().all(|row| !row[key].is_null()), "{key}");
    }
    let error = |solver: &str| {
        let of = rows.iter().filter(|row| row["solver"] == solver);
        of.map(|row| row["pose_error"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    // A second-order step, halved.
    let midpoint = error("reduced midpoint");
    assert!(midpoint[1] < 0.35 * midpoint[0] && midpoint[0] < error("reduced euler")[0], "{document}");
    assert!(document["reference"]["error"].as_f64().unwrap() < 0.2 * midpoint[1]); // an eighth of the step, squared, and more
    let page = std::fs::read_to_string(html).unwrap();
    assert!(
        page.contains("<svg") && page.contains("reduced midpoint") && !page.contains("http://www.w3.org/1999/xlink")
    );
    assert!(!page.contains("src=") && !page.contains("href="), "nothing is loaded");
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
    assert!(stdout(&supple(&only)).contains("reduced euler"));
}

#[test]
fn what_a_solver_cannot_take_is_said_and_the_others_compared() {
    let words = ["compare", "fourbars", "--only", "assembly displacements,reduced", "--dt", "1/60", "--seconds", "0.1"];
    let document = json(&[&words[..], &["--json"]].concat());
    let refused_solvers = document["refused"].as_array().unwrap();
    assert!(refused_solvers.iter().all(|r| r["code"] == "step/loops") && refused_solvers.len() == 2, "{document}");
    assert_eq!(document["rows"].as_array().unwrap().len(), 1);
    assert!(stdout(&supple(&words)).contains("reduced euler, reduced midpoint: joint"));
    assert!(refused(&["compare", "hand", "--only", "tre"]).contains("`tree"));
    assert!(refused(&["compare", "hand", "--dt", "1/30,1/50"]).contains("cli/setting"));
}

#[test]
fn the_assembly_bench_has_its_form() {
    let document = json(&["bench", "assembly", "--scene", "crowd_of_two", "--json"]);
    assert_eq!(document["bench"], "assembly");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for key in ["scene", "outer", "inner", "ms", "error_before", "error_after", "published_ms"] {
        assert!(rows.iter().all(|row| !row[key].is_null() || key == "published_ms"), "{key}");
    }
    assert_eq!((&rows[0]["outer"], &rows[0]["inner"], &rows[0]["rows"]), (&6.into(), &30.into(), &758.into()));
    let after = |row: usize| rows[row]["error_after"].as_f64().unwrap();
    assert!(after(0) > 0.1 && after(1) < 1e-4, "as printed it closes with as many iterations as rows");
    assert!(after(3) <= 1e-3, "the default closes to a millimetre");
}

/// Half a second of a scene as a .take file.
fn recorded(scene: &supple::Scene, name: &str) -> std::path::PathBuf {
    let (mut state, _) = scene.assembled_start().unwrap();
    let (mut input, mut work) = (scene.input.clone(), supple::Work::new(&scene.model));
    let mut timeline = supple::Timeline::new(&scene.name, &scene.model, &state, &input);
    for _ in 0..30 {
        scene.direct(state.time, &mut input);
        supple::step(&scene.model, &input, &mut state, &mut work).unwrap();
        timeline.record(0, &input, &state);
    }
    let path = fresh_file(name);
    std::fs::write(&path, supple::timeline::file::write(&timeline, 0, "test")).unwrap();
    path
}

/// A folder of a test, empty.
fn fresh_folder(name: &str) -> std::path::PathBuf {
    let folder = fresh_file(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A take of a built-in scene with a character of a file beside it, which it names by `named`; the character is that of `file`.
fn recorded_with_guest(named: &str, file: &std::path::Path, name: &str) -> std::path::PathBuf {
    let told = |file: &str| {
        let text = format!(r#"{{"name":"Anna","kind":"character","position":[2.0,0.0,0.0],"file":{file:?}}}"#);
        let mut recipe = supple_assets::Recipe::new("stack:1");
        recipe.changes.things = Some(vec![serde_json::from_str(&text).unwrap()]);
        recipe
    };
    let folder = supple_assets::TakesFrom::Folder(file.parent().unwrap());
    let bare = supple::Scene::parse("stack:1").unwrap();
    let (mut scene, ..) =
        told(file.to_str().unwrap()).furnish_for(&bare, &supple_assets::Files::default(), folder).unwrap();
    assert_eq!(scene.guests().len(), 1);
    scene.name = told(named).to_string();
    recorded(&scene, name)
}

const STRIP: &[u8] = include_bytes!("../../../fuzz/strip.gltf");

#[test]
fn a_take_of_a_built_in_scene_with_characters_is_done_again() {
    let folder = fresh_folder("guests");
    let file = folder.join("strip.gltf");
    std::fs::write(&file, STRIP).unwrap();
    let path = file.to_str().unwrap();
    let take = recorded_with_guest(path, &file, "guests/scene.take");
    let told = json(&["simulate", take.to_str().unwrap(), "--json"]);
    assert_eq!((&told["identical"], &told["same_model"]), (&true.into(), &true.into()), "{told}");
    assert!(told["bodies"].as_u64().unwrap() > 1, "{told}");
    // Where the character was when the takes were made is nothing any more: the one beside them is meant.
    let moved = recorded_with_guest("/nowhere/strip.gltf", &file, "guests/moved.take");
    assert_eq!(json(&["simulate", moved.to_str().unwrap(), "--json"])["identical"], true);
    // One that was dropped on a page, of which no copy was kept, has no path at all.
    let sent = recorded_with_guest("sent:strip.gltf", &file, "guests/sent.take");
    assert_eq!(json(&["simulate", sent.to_str().unwrap(), "--json"])["identical"], true);
    // It lies elsewhere: refused, and taken once its folder is allowed.
    let elsewhere = fresh_folder("guests-elsewhere");
    let far = elsewhere.join("scene.take");
    std::fs::copy(&take, &far).unwrap();
    let far = far.to_str().unwrap();
    assert!(refused(&["simulate", far]).contains("file/outside"));
    assert_eq!(json(&["simulate", far, "--json", "--allow-dir", folder.to_str().unwrap()])["identical"], true);
}

/// A take may name any file: a path that is not from the root does not mean the folder that the program was started in.
#[test]
fn a_take_opens_no_character_from_the_working_folder() {
    let (working, takes) = (fresh_folder("guest-working"), fresh_folder("guest-takes"));
    let file = working.join("strip.gltf");
    std::fs::write(&file, STRIP).unwrap();
    let of_scene = recorded_with_guest("strip.gltf", &file, "guest-takes/scene.take");
    // The same with a file as its scene, which may be opened.
    let own = takes.join("own.gltf");
    std::fs::write(&own, STRIP).unwrap();
    let text = r#"{"name":"Anna","kind":"character","position":[2.0,0.0,0.0],"file":"strip.gltf"}"#;
    let with = |file: &str| {
        let mut recipe = supple_assets::Recipe::of_file(own.to_str().unwrap());
        recipe.changes.things = Some(vec![serde_json::from_str(&text.replace("strip.gltf", file)).unwrap()]);
        recipe
    };
    let made = with(file.to_str().unwrap()).make(&supple_assets::Files::default()).unwrap();
    let mut scene = made.imported.scene;
    scene.name = with("strip.gltf").to_string();
    let of_file = recorded(&scene, "guest-takes/file.take");
    for take in [of_scene, of_file] {
        let call = ["simulate", take.to_str().unwrap(), "--json"];
        let output = command(&call).current_dir(&working).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

#[test]
fn a_take_that_leads_too_far_is_refused_by_its_name() {
    let mut scene = supple::Scene::parse("stack:1").unwrap();
    scene.state.bodies[0].position.x = 2e6;
    let take = recorded(&scene, "far.take");
    let said = refused(&["simulate", take.to_str().unwrap()]);
    for word in ["take/far", "far.take", "body 0", "step 0"] {
        assert!(said.contains(word), "{said}");
    }
}

/// Takes of this very build must come out the same; what another build recorded is played, and where it differs is told.
#[test]
fn a_take_that_comes_out_otherwise_fails_or_is_told() {
    let scene = supple::Scene::parse("chain:3").unwrap();
    let (mut state, mut work) = (scene.state.clone(), supple::Work::new(&scene.model));
    let mut timeline = supple::Timeline::new("chain:3", &scene.model, &state, &scene.input);
    for k in 0..30 {
        supple::step(&scene.model, &scene.input, &mut state, &mut work).unwrap();
        if k == 19 {
            state.bodies[2].velocity.linear.z += 1.0; // as if it had been computed otherwise
        }
        timeline.record(0, &scene.input, &state);
    }
    let path = fresh_file("differs.take");
    let take = path.to_str().unwrap();
    let write = |build: &str| std::fs::write(&path, supple::timeline::file::write(&timeline, 0, build)).unwrap();
    write("another build");
    let other = supple(&["simulate", take, "--json"]);
    let told: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!(other.status.code(), Some(0));
    assert_eq!((&told["differs_at"], &told["differs_body"]), (&20.into(), &"link_2".into()), "{told}");
    assert_eq!((&told["shown"], &told["identical"]), (&"stored".into(), &false.into()));
    let said = stderr(&other);
    assert!(said.contains("played as it is stored") && said.contains("from step 20 on; body \"link_2\""), "{said}");
    // the build tells its own name
    let build = said.split_once("this is ").unwrap().1.split_once(": ").unwrap().0.to_owned();
    write(&build);
    let own = supple(&["simulate", take, "--json"]);
    assert_eq!(own.status.code(), Some(1));
    assert!(stderr(&own).contains("take/differs") && stderr(&own).contains("link_2"), "{}", stderr(&own));
}

/// What is not to be trusted says so, in words and by its exit status.
#[test]
fn runs_are_judged() {
    let good = json(&["simulate", "chain:10", "--seconds", "2", "--json"]);
    assert_eq!((&good["quality"], &good["reasons"]), (&"good".into(), &Value::Array(Vec::new())), "{good}");
    assert_eq!(good["finite"], true);
    for solver in ["impulse", "reduced"] {
        let damped = json(&["simulate", "chain:10", "--solver", solver, "--seconds", "2", "--json"]);
        let reason = damped["reasons"][0].as_str().unwrap();
        assert!(damped["quality"] == "degraded" && reason.contains("energy of motion a second"), "{solver}: {reason}");
    }
    let walks = json(&["simulate", "walker", "--solver", "assembly", "--seconds", "1", "--json"]);
    assert_eq!(walks["quality"], "good", "{walks}");
    let hasty = ["--set", "assembly.outer=1", "--set", "assembly.linear=plain", "--set", "assembly.inner=1"];
    let open =
        supple(&[&["simulate", "walker", "--solver", "assembly", "--seconds", "1", "--json"], &hasty[..]].concat());
    let told: Value = serde_json::from_slice(&open.stdout).unwrap();
    assert_eq!((open.status.code(), &told["quality"]), (Some(1), &"failed".into()), "{told}");
    assert!(stderr(&open).contains("run/quality") && stderr(&open).contains("came open"), "{}", stderr(&open));
    let figures = told["figures"].as_object().unwrap();
    assert_eq!(figures.len(), supple::FIGURES.len());
    let table = stdout(&supple(&["simulate", "stack:2", "--seconds", "1"]));
    for word in ["penetration", "settled", "quality"] {
        assert!(table.contains(word), "{table}");
    }
}

/// The JSON of a .glb.
fn glb(path: &std::path::Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    serde_json::from_slice(&bytes[20..20 + length]).unwrap()
}

#[test]
fn takes_are_baked() {
    let take = recorded(&supple::Scene::parse("hand").unwrap(), "hand-to-bake.take");
    let (baked, table, report) = (fresh_file("take.glb"), fresh_file("take.csv"), fresh_file("take.json"));
    let paths = [&baked, &table, &report].map(|p| p.to_str().unwrap());
    let told = json(&["simulate", take.to_str().unwrap(), "-o", paths[0], "-o", paths[1], "-o", paths[2], "--json"]);
    assert_eq!((&told["identical"], &told["steps"]), (&Value::Bool(true), &Value::from(30)));
    let animation = &glb(&baked)["animations"][0];
    for key in ["times", "gap", "penetration", "torque_over_limit"] {
        assert_eq!(animation["extras"]["supple"][key].as_array().unwrap().len(), 31, "{key}");
    }
    assert_eq!(
        std::fs::read_to_string(&table).unwrap().lines().count(),
        1 + 31 * told["bodies"].as_u64().unwrap() as usize
    );
    assert!(report.exists());
    // A character of a file gets it as one more animation; all else stays.
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(std::path::PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let path = assets.join("gltf/CesiumMan.glb");
    let scene = supple_assets::open(&path).unwrap().scene;
    let take = recorded(&scene, "man-to-bake.take");
    let baked = fresh_file("man.glb");
    let call = ["simulate", take.to_str().unwrap(), "-o", baked.to_str().unwrap(), "--json"];
    // These do not show that who made them had the file: its folder must be allowed.
    assert!(refused(&call).contains("file/outside"));
    let told = json(&[&call[..], &["--allow-dir", assets.to_str().unwrap()]].concat());
    assert_eq!(told["identical"], true);
    let mut scene = scene;
    let digest = supple_assets::Digest::of(&std::fs::read(&path).unwrap());
    scene.name = supple_assets::Recipe { digest: Some(digest), ..supple_assets::Recipe::new(scene.name) }.to_string();
    let take = recorded(&scene, "own-to-bake.take");
    let told = json(&["simulate", take.to_str().unwrap(), "-o", baked.to_str().unwrap(), "--json"]);
    assert_eq!(told["identical"], true);
    let (before, after) = (glb(&path), glb(&baked));
    assert_eq!(after["animations"].as_array().unwrap().len(), before["animations"].as_array().unwrap().len() + 1);
    assert_eq!(
        (&after["materials"], &after["meshes"], &after["skins"]),
        (&before["materials"], &before["meshes"], &before["skins"])
    );
}

#[test]
fn a_rig_is_written_as_a_scene_file_and_into_its_own() {
    let Some(assets) = std::env::var_os("SUPPLE_ASSETS").map(std::path::PathBuf::from) else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return;
    };
    let man = assets.join("gltf/CesiumMan.glb");
    let (scene, rigged, again) = (fresh_file("man.toml"), fresh_file("rigged.glb"), fresh_file("again.glb"));
    let words = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    assert!(supple(&["rig", &words(&man), "-o", &words(&scene)]).status.success());
    assert!(supple(&["rig", &words(&man), "-o", &words(&rigged)]).status.success());
    // A scene file with changes is written too.
    let text = std::fs::read_to_string(&scene).unwrap();
    std::fs::write(&scene, text.replace("sag = 3.0", "sag = 9.0")).unwrap();
    let call = ["rig", &words(&scene), "-o", &words(&again)];
    assert!(refused(&call).contains("--allow-dir"));
    assert!(supple(&[&call[..], &["--allow-dir", &words(&assets)]].concat()).status.success());
    let joints = |path: &std::path::Path| json(&["inspect", &words(path), "--json"])["joints"].clone();
    let (plain, written, changed) = (joints(&man), joints(&rigged), joints(&again));
    let stiffness = |list: &Value, k: usize| list[k]["stiffness"].as_f64().unwrap();
    assert_eq!(plain.as_array().unwrap().len(), written.as_array().unwrap().len());
    let differ =
        (0..plain.as_array().unwrap().len()).filter(|k| stiffness(&plain, *k) != stiffness(&changed, *k)).count();
    assert!(differ > 0, "{changed}");
    let bones = json(&["inspect", &words(&rigged), "--json"])["file"]["bones"].clone();
    assert!(bones.as_array().unwrap().iter().all(|b| b["joint"].is_null() || b["joint_from"] == "file"), "{bones}");
    assert!(refused(&["rig", "hand.urdf", "-o", &words(&rigged)]).contains("holds no character"));
}

#[test]
fn every_character_is_inspected_and_simulated() {
    for path in models::characters() {
        let path = path.to_str().unwrap();
        if path.ends_with("SimpleMorph.gltf") {
            assert!(refused(&["inspect", path, "--json"]).contains("file/nothing"));
            assert!(refused(&["simulate", path, "--seconds", "10", "--json"]).contains("file/nothing"));
            continue;
        }
        let told = json(&["inspect", path, "--json"]);
        let bones = told["file"]["bones"].as_array().unwrap();
        assert_eq!(bones.len(), told["bodies"].as_array().unwrap().len(), "{path}");
        assert!(bones.iter().all(|b| b["mass"].as_f64().unwrap() > 0.0), "{path}");
        let run = json(&["simulate", path, "--seconds", "10", "--json"]);
        assert_eq!((&run["finite"], &run["fallbacks"]), (&Value::Bool(true), &Value::from(0)), "{path}");
        assert!(run["max_joint_gap"].as_f64().unwrap() < 1e-9, "{path}: {}", run["max_joint_gap"]);
    }
}
