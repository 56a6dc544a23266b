//! Scene files: a rig written, changed and read again.

use std::path::{Path, PathBuf};
use supple::glam::DVec3;
use supple::solver::Mode;
use supple::solver::reduced::Integration;
use supple::{JointMask, Solver, TreeScheme, Work, step};
use supple_assets::{Character, FileError, Imported, open};

#[allow(dead_code)]
#[path = "common/damage.rs"]
mod damage;

/// A folder of its own with the small character in it.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("supple-scenes-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("strip.gltf"), damage::small()).unwrap();
    folder
}

fn scene(name: &str, text: &str) -> Result<Imported, FileError> {
    let folder = folder(name);
    std::fs::write(folder.join("scene.toml"), text).unwrap();
    let result = open(&folder.join("scene.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

#[test]
fn a_rig_written_and_read_again_is_the_same() {
    let folder = folder("again");
    let plain = open(&folder.join("strip.gltf")).unwrap();
    let text = Character::open(&folder.join("strip.gltf")).unwrap().scene_file("strip.gltf", None);
    std::fs::write(folder.join("scene.toml"), &text).unwrap();
    let again = open(&folder.join("scene.toml")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (a, b) = (&plain.scene.model, &again.scene.model);
    assert_eq!(a.bodies().len(), b.bodies().len());
    for (x, y) in a.joints().iter().zip(b.joints()) {
        assert_eq!((&x.name, x.mask), (&y.name, y.mask));
        // Numbers are written with five digits after the point.
        assert!((x.rotation_spring.stiffness / y.rotation_spring.stiffness - 1.0).abs() < 1e-4);
        assert!((x.limits.angle.unwrap().max - y.limits.angle.unwrap().max).abs() < 1e-6);
    }
}

#[test]
fn every_part_of_a_scene_file_acts() {
    let text = r#"
floor = -0.5
[character]
file = "strip.gltf"
[bones."*"]
mass = 2.0
[bones.knee]
mass = 0.5
sag = 90.0
joint = "hinge"
axis = [0.0, 0.0, 2.0]
range = [-10.0, 120.0]
[pose]
knee = [0.0, 0.0, 45.0]
[[obstacles]]
name = "step"
box = [1.0, 0.2, 1.0]
position = [2.0, 0.1, 0.0]
[[pushes]]
bone = "knee"
from = 0.5
to = 0.525
force = [0.0, 0.0, 300.0]
[simulation]
dt = 0.01
gravity = [0.0, -1.6, 0.0]
"#;
    let imported = scene("parts", text).unwrap();
    let scene = &imported.scene;
    let body = |name: &str| scene.model.body(scene.model.find_body(name).unwrap());
    assert_eq!((body("hip").mass, body("knee").mass), (2.0, 0.5), "the more exact name wins: it comes later");
    let joint = &scene.model.joints()[0];
    assert_eq!(joint.mask, JointMask::HINGE);
    assert!((scene.state.joints[0].angle - 45f64.to_radians()).abs() < 1e-6, "{}", scene.state.joints[0].angle);
    assert!((joint.limits.angle.unwrap().max - 120f64.to_radians()).abs() < 1e-12);
    assert_eq!(scene.model.obstacles().len(), 2);
    assert_eq!(scene.model.obstacles()[0].pose.translation.y, -0.5);
    assert_eq!((scene.input.dt, scene.input.gravity), (0.01, DVec3::new(0.0, -1.6, 0.0)));
    // 300 N from 0.500 to 0.525 s are 7.5 N·s, whatever the steps.
    let (mut input, mut state, mut work) = (scene.input.clone(), scene.state.clone(), Work::new(&scene.model));
    let mut impulse = DVec3::ZERO;
    for _ in 0..100 {
        scene.direct(state.time, &mut input);
        impulse += input.wrenches[0].1.force * input.dt;
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    assert!((impulse - DVec3::new(0.0, 0.0, 7.5)).length() < 1e-9, "{impulse}");
}

#[test]
fn a_scene_file_chooses_its_solver() {
    let with = |text: &str| scene("solver", &format!("[character]\nfile = \"strip.gltf\"\n{text}")).unwrap().scene;
    let solver = |text: &str| with(text).input.solver;
    assert_eq!(solver(""), Solver::default());
    let Solver::Tree(tree) = solver("[simulation.tree]\nscheme = \"accurate\"\ndepth = 6\n") else { panic!("tree") };
    assert_eq!((tree.scheme, tree.depth), (TreeScheme::Midpoint(Mode::Accurate), 6));
    let text = "[simulation]\nsolver = \"impulse\"\nimpulse = { tolerance = 1e-5, iterations = 7 }\n";
    let Solver::Impulse(impulse) = solver(text) else { panic!("impulse") };
    assert_eq!((impulse.tolerance, impulse.iterations), (1e-5, 7));
    let text = "[simulation]\nsolver = \"assembly\"\n[simulation.assembly]\nouter = 3\n";
    assert!(matches!(solver(text), Solver::Assembly(a) if a.outer == 3));
    let text = "[simulation]\nsolver = \"reduced\"\nreduced = { integration = \"midpoint\" }\n";
    assert!(matches!(solver(text), Solver::Reduced(r) if r.integration == Integration::Midpoint));
    let scene = with("[simulation]\ncontacts = \"off\"\nstiffness_scale = 2.0\n");
    assert_eq!((scene.input.contacts, scene.input.stiffness_scale), (supple::Contacts::Off, 2.0));
}

#[test]
fn a_script_pulls_and_lets_go() {
    let text = r#"
release = 1.0
[character]
file = "strip.gltf"
[[pulls]]
bone = "knee"
from = 0.2
to = 0.6
target = [1.0, 1.0, 0.0]
"#;
    let scene = scene("pulls", text).unwrap().scene;
    let (mut input, mut state, mut work) = (scene.input.clone(), scene.state.clone(), Work::new(&scene.model));
    let knee = scene.model.find_body("knee").unwrap().index();
    let (start, mut nearest) = (state.bodies[knee].position, f64::INFINITY);
    let mut held_at = Vec::new();
    for _ in 0..120 {
        scene.direct(state.time, &mut input);
        let pulls = input.drags[0].stiffness > 0.0;
        assert_eq!(pulls, (0.19..0.599).contains(&state.time), "{}", state.time);
        if input.targets.iter().any(Option::is_some) {
            held_at.push(state.time);
        }
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        if pulls {
            nearest = nearest.min(state.bodies[knee].position.distance(DVec3::new(1.0, 1.0, 0.0)));
        }
    }
    let far = start.distance(DVec3::new(1.0, 1.0, 0.0));
    assert!(nearest < far - 0.05, "from {far} m to {nearest} m");
    assert!((held_at.last().unwrap() - 1.0).abs() < 0.02, "the hold lets go at 1 s");
}

#[test]
fn what_is_wrong_is_told_with_line_and_column() {
    let head = "[character]\nfile = \"strip.gltf\"\n";
    let cases = [
        ("[bones.elbow]\nmass = 1.0\n", "line 3, column 8", "no bone fits \"elbow\""),
        ("[bones.knee]\nmass = -1.0\n", "line 3, column 8", "mass is -1"),
        ("[bones.knee]\nweight = 1.0\n", "line 4, column 1", "unknown field `weight`"),
        ("[bones.knee]\nmass = \"one\"\n", "line 4, column 8", "invalid type"),
        ("[pose]\nankle = [0.0, 0.0, 1.0]\n", "line 4, column 1", "no bone \"ankle\""),
        ("[floor]\nheight = 1.0\n", "line 3, column 1", "its height in metres, or false"),
        ("[simulation]\ndt = 0.0\n", "line 4, column 6", "dt is 0.0"),
        ("[simulation]\nsolver = \"forest\"\n", "line 4, column 10", "no solver \"forest\""),
        (
            "[simulation]\nsolver = \"impulse\"\n[simulation.tree]\ndepth = 4\n",
            "line 6, column 1",
            "a setting of solver tree",
        ),
        ("[simulation.tree]\ndepth = 99\n", "line 4, column 9", "depth is 99"),
        ("[simulation]\nstiffness_scale = -1.0\n", "line 4, column 19", "stiffness_scale is -1"),
        ("[[obstacles]]\nname = \"wall\"\nsphere = -2.0\n", "line 4, column 8", "obstacle \"wall\""),
        (
            "[[pulls]]\nbone = \"ankle\"\nfrom = 0.0\nto = 1.0\ntarget = [0.0, 0.0, 0.0]\n",
            "line 4, column 8",
            "no bone \"ankle\"",
        ),
    ];
    for (text, place, what) in cases {
        let error = scene("wrong", &format!("{head}{text}")).expect_err(text);
        assert_eq!(error.code, "file/scene", "{error}");
        assert!(error.place.as_deref().unwrap().starts_with(place) && error.what.contains(what), "{text}: {error}");
    }
    let error = scene("clip", "[character]\nfile = \"strip.gltf\"\ntrack = \"jump\"\n").unwrap_err();
    assert_eq!(error.place.as_deref(), Some("line 3, column 9"));
    assert!(error.remedy.contains("bend"), "{error}");
    let error = scene("file", "[character]\nfile = \"/etc/hostname\"\n").unwrap_err();
    assert_eq!(error.place.as_deref(), Some("line 2, column 8"));
    assert!(open(Path::new("none.toml")).is_err_and(|e| e.code == "file/read"));
}

/// A million metres away is nowhere, whatever stands or pulls there.
#[test]
fn places_beyond_the_world_are_refused() {
    let at = "name = \"o\"\nposition = [0.0, -5.0, 0.0]\n";
    let lines = [
        "floor = 2e6".to_owned(),
        "floor = -1e300".to_owned(),
        "[[obstacles]]\nname = \"o\"\nsphere = 1.0\nposition = [0.0, 2e6, 0.0]".to_owned(),
        format!("[[obstacles]]\n{at}sphere = 1e6"),
        format!("[[obstacles]]\n{at}box = [1e300, 1.0, 1.0]"),
        format!("[[obstacles]]\n{at}capsule = [2e6, 1.0]"),
        format!("[[obstacles]]\n{at}sphere = 1.0\nrolling = 1e7"),
        "[[pulls]]\nbone = \"knee\"\nfrom = 0\nto = 1\ntarget = [0.0, 2e6, 0.0]".to_owned(),
        "[[keyframes]]\nat = 0\nshift = [2e6, 0.0, 0.0]".to_owned(),
        "[[things]]\nkind = \"ball\"\nposition = [2e6, 0.0, 0.0]".to_owned(),
    ];
    for line in lines {
        let text = match line.starts_with('[') {
            true => format!("[character]\nfile = \"strip.gltf\"\n{line}\n"),
            false => format!("{line}\n[character]\nfile = \"strip.gltf\"\n"),
        };
        let error = scene("far", &text).expect_err(&line);
        assert!(error.code == "file/scene" && error.to_string().contains("scene.toml"), "{line}: {error}");
    }
}

/// A ball in a hand, stairs, and changes of state.
#[test]
fn things_and_states_are_read() {
    let read = |rest: &str| scene("things", &format!("[character]\nfile = \"strip.gltf\"\ntrack = \"bend\"\n{rest}"));
    let bare = read("").unwrap();
    let bones = bare.scene.model.bodies().len();
    let hand = bare.scene.model.bodies()[bones - 1].name.clone();
    let ball = "[[things]]\nkind = \"ball\"\nposition = [1.0, 1.0, 0.0]\nsize = [0.2, 0.2, 0.2]\n";
    let stairs = "[[things]]\nname = \"up\"\nkind = \"stairs\"\nposition = [2.0, 0.0, 0.0]\nsize = [1.0, 0.5, 1.0]\n";
    let held = format!("[things.held]\nby = \"{hand}\"\nposition = [0.0, 0.3, 0.0]\n");
    let states = "[[states]]\nat = 0.5\nstate = \"loose\"\n[hits]\nimpulse = 2.0\n";
    let file = read(&format!("{ball}{held}{stairs}{states}")).unwrap();
    let (scene, model) = (&file.scene, &file.scene.model);
    assert_eq!((model.bodies().len(), scene.things(), scene.bare().model.bodies().len()), (bones + 1, 1, bones));
    assert_eq!(file.things.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["ball 1", "up"]);
    assert!(model.find_obstacle("up.3").is_some() && model.find_body("ball 1").is_some());
    // Carried exactly while the clip moves the hand, and still after it is loose.
    let (mut state, mut input) = (scene.state.clone(), scene.input.clone());
    let (mut work, mut tones) = (supple::Work::new(model), scene.stated_tones().unwrap());
    let place = |state: &supple::State| {
        let pose = |body: usize| state.bodies[body].pose();
        pose(bones - 1).inverse().then(pose(bones)).translation
    };
    for _ in 0..60 {
        scene.direct(state.time, &mut input);
        tones.direct(model, &state, &[], &mut input);
        supple::step(model, &input, &mut state, &mut work).unwrap();
        assert!(place(&state).distance(supple::glam::DVec3::Y * 0.3) < 1e-6, "{} at {}", place(&state), state.time);
    }
    assert_eq!(tones.tone(supple::BodyId(0)), supple::tone::Tone::Loose);
    assert_eq!(tones.carried(state.time), 0.0);
    for (wrong, told) in [
        (ball.replace("ball", "teapot"), "teapot"),
        (format!("{ball}{}", held.replace(&hand, "nobody")), "nobody"),
        ("[[states]]\nat = 0.5\nstate = \"asleep\"\n".into(), "asleep"),
        ("[[states]]\nat = -1.0\nstate = \"loose\"\n".into(), "0 or more"),
        ("[hits]\nimpulse = 0.0\n".into(), "impulse"),
    ] {
        let error = read(&wrong).unwrap_err();
        assert!(error.to_string().contains(told) && error.code == "file/scene", "{error}");
    }
}
