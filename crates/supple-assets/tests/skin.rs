//! Every skinned glTF of the assets in soft skin: it stands, falls and is poked.

use std::path::{Path, PathBuf};
use supple::glam::DVec3;
use supple::skin::Ball;
use supple::*;

/// The folder of real models; the tests that need it say so when it is missing.
fn assets() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("SUPPLE_ASSETS")?);
    folder.is_dir().then_some(folder)
}

/// What a run of steps saw.
#[derive(Debug, Default)]
struct Seen {
    /// How deep a vertex was below the floor, in the last second \[m\].
    inside: f64,
    /// The most vertices touching at once.
    touching: u32,
    /// The largest displacement of a vertex beside its bones \[m\].
    dent: f64,
    /// The fastest body at the end \[m/s\].
    speed: f64,
}

/// Runs a scene for so many steps, with a ball where it is told.
fn run(model: &Model, state: &mut State, input: &Input, steps: usize, ball: &dyn Fn(usize) -> Option<Ball>) -> Seen {
    let mut work = Work::new(model);
    let mut input = input.clone();
    let mut seen = Seen::default();
    let skin = model.skin().unwrap();
    let floor = model.find_obstacle("floor").map_or(f64::NEG_INFINITY, |id| model.obstacle(id).pose.translation.y);
    let mut places = Vec::new();
    for k in 0..steps {
        input.balls.clear();
        input.balls.extend(ball(k));
        let report = step(model, &input, state, &mut work).unwrap_or_else(|e| panic!("step {k}: {e}"));
        seen.touching = seen.touching.max(report.flesh_touching);
        seen.dent = state.nodes.iter().map(|node| node.position.length()).fold(seen.dent, f64::max);
        assert!(state.is_finite(), "step {k}");
        if k + 60 >= steps {
            skin.positions(state, &mut places);
            let lowest = places.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
            seen.inside = seen.inside.max(floor - lowest);
        }
    }
    seen.speed = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(0.0, f64::max);
    seen
}

fn open(folder: &Path, name: &str) -> supple_assets::Imported {
    supple_assets::open(&folder.join("gltf").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Gives a file soft skin; it stands held for 1 s, is poked for 2 s, and is let go, to fall and come to rest for 7 s. The reason when it gets none.
fn try_file(name: &str) -> Result<(), String> {
    let Some(folder) = assets() else {
        eprintln!("SUPPLE_ASSETS is not set: skipped");
        return Ok(());
    };
    let imported = open(&folder, name);
    let skinned = imported.with_skin(&|_| Some(SkinMaterial::default()), PoseMap::Centres)?;
    let (model, input) = (&skinned.scene.model, &skinned.scene.input);
    let mut state = skinned.scene.state.clone();
    let skin = model.skin().unwrap();
    let (low, high) =
        skin.rest.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = (high - low).length();

    let stood = run(model, &mut state, input, 60, &|_| None);

    // a ball a tenth of its size comes from the front at the foremost vertex, and goes a twentieth of the size further
    let mut places = Vec::new();
    skin.positions(&state, &mut places);
    let foremost = places.iter().copied().max_by(|a, b| a.z.total_cmp(&b.z)).unwrap();
    let radius = 0.1 * size;
    let poke = |k: usize| {
        let s = (k as f64 / 60.0).min(1.0);
        let velocity = if k < 60 { DVec3::Z * (-0.1 * size) } else { DVec3::ZERO };
        Some(Ball { centre: foremost + DVec3::Z * (radius + (0.05 - 0.1 * s) * size), radius, velocity })
    };
    let poked = run(model, &mut state, input, 120, &poke);
    assert!(poked.touching > 0 && poked.dent > 1e-5 * size, "{name} was not poked: {poked:?}");

    let free = Input { targets: vec![None; input.targets.len()], ..input.clone() };
    let fallen = run(model, &mut state, &free, 420, &|_| None);
    println!(
        "{name}: {} vertices, {} bones, {size:.2} m; stood {:.2} mm inside the floor; dented {:.1} mm; fell, {:.2} mm inside, {:.3} m/s",
        skin.nodes(),
        skin.bones.len(),
        1e3 * stood.inside,
        1e3 * poked.dent,
        1e3 * fallen.inside,
        fallen.speed
    );
    if model.find_obstacle("floor").is_some() {
        assert!(fallen.touching > 0, "{name} did not reach the floor");
        assert!(stood.inside < 2e-3, "{name} stands {} m inside the floor", stood.inside);
        assert!(fallen.inside < 2e-3, "{name} is {} m inside the floor at rest", fallen.inside);
    }
    Ok(())
}

#[test]
fn a_man_stands_falls_and_is_poked() {
    try_file("CesiumMan.glb").unwrap();
}

#[test]
fn a_figure_stands_falls_and_is_poked() {
    try_file("RiggedFigure.glb").unwrap();
}

#[test]
fn a_figure_in_two_files_stands_falls_and_is_poked() {
    try_file("RiggedFigure-separate/RiggedFigure.gltf").unwrap();
}

#[test]
fn a_simple_rig_stands_falls_and_is_poked() {
    try_file("RiggedSimple.glb").unwrap();
}

#[test]
fn recursive_skeletons_stand_fall_and_are_poked() {
    try_file("RecursiveSkeletons.glb").unwrap();
}

#[test]
fn a_hand_stands_falls_and_is_poked() {
    try_file("generic-hand-left.glb").unwrap();
}

#[test]
fn a_mannequin_stands_falls_and_is_poked() {
    try_file("mannequiny.glb").unwrap();
}

#[test]
fn a_platform_robot_stands_falls_and_is_poked() {
    try_file("platformer-robot.glb").unwrap();
}

/// A flat sheet has no inside.
#[test]
fn a_flat_sheet_is_refused_with_the_reason() {
    if assets().is_some() {
        let reason = try_file("SimpleSkin.gltf").unwrap_err();
        assert!(!reason.is_empty());
    }
}

/// The hand of the assets in soft skin, by the scene file of the guide: it presses on the table, dents, does not go through, and rises again.
#[test]
fn a_hand_presses_on_a_table() {
    let Some(assets) = assets() else { return };
    let folder = std::env::temp_dir().join(format!("supple-hand-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = "generic-hand-left.glb";
    std::fs::copy(assets.join("gltf").join(name), folder.join(name)).unwrap();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scenes/hand-on-table.toml");
    std::fs::copy(guide, folder.join("hand.toml")).unwrap();
    let imported = supple_assets::open(&folder.join("hand.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    let scene = imported.unwrap().scene;
    let model = &scene.model;
    let skin = model.skin().unwrap();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(model));
    // the top of the table is at 0
    let below = |p: &DVec3| p.x.clamp(-0.32, 0.12) == p.x && p.z.clamp(-0.16, 0.28) == p.z && p.y > -0.04;
    let mut places = Vec::new();
    let (mut deepest, mut pressed, mut dent, mut last) = (0.0f64, 0, 0.0f64, 0);
    for k in 0..270 {
        scene.direct(state.time, &mut input);
        let report = step(model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("step {k}: {e}"));
        assert!(state.is_finite(), "step {k}");
        skin.positions(&state, &mut places);
        let inside = places.iter().filter(|p| below(p)).map(|p| -p.y).fold(0.0, f64::max);
        last = report.flesh_touching;
        if (1.5..2.4).contains(&state.time) {
            // at rest on the table; while it comes down it may be a frame late
            deepest = deepest.max(inside);
            pressed = pressed.max(report.flesh_touching);
            dent = state.nodes.iter().map(|node| node.position.length()).fold(dent, f64::max);
        }
    }
    let left = state.nodes.iter().map(|node| node.position.length()).fold(0.0, f64::max);
    println!(
        "{pressed} vertices press, dented {:.2} mm, {:.3} mm inside at most, then {last} touch, {:.2} mm left",
        1e3 * dent,
        1e3 * deepest,
        1e3 * left
    );
    assert!(pressed >= 5, "{pressed} vertices press on the table, less than one a finger");
    assert!(dent > 5e-4, "dented by {dent} m");
    assert!(deepest < 2e-3, "{deepest} m inside the table");
    assert!(last == 0 && left < 0.5 * dent, "it does not come back: {last} touch, {left} m are left");
}
