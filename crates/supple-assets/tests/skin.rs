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

/// Runs a scene for so many steps; returns the deepest that a vertex was below the floor at the end, and the most vertices touching.
fn run(
    model: &Model,
    state: &mut State,
    input: &Input,
    steps: usize,
    ball: &dyn Fn(usize) -> Option<Ball>,
) -> (f64, u32) {
    let mut work = Work::new(model);
    let mut input = input.clone();
    let mut touching = 0;
    for k in 0..steps {
        input.balls.clear();
        input.balls.extend(ball(k));
        let report = step(model, &input, state, &mut work).unwrap_or_else(|e| panic!("step {k}: {e}"));
        touching = touching.max(report.flesh_touching);
        assert!(state.is_finite(), "step {k}");
    }
    let skin = model.skin().unwrap();
    let mut places = Vec::new();
    skin.positions(state, &mut places);
    let floor = model.find_obstacle("floor").map_or(f64::NEG_INFINITY, |id| model.obstacle(id).pose.translation.y);
    let lowest = places.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
    (floor - lowest, touching)
}

fn open(folder: &Path, name: &str) -> supple_assets::Imported {
    supple_assets::open(&folder.join("gltf").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Gives a file soft skin, holds and pokes it for 3 s, lets it go and leaves it for 7 s; the reason when it gets none.
fn try_file(name: &str) -> Result<(), String> {
    let Some(folder) = assets() else {
        eprintln!("SUPPLE_ASSETS is not set: skipped");
        return Ok(());
    };
    let imported = open(&folder, name);
    let skinned = imported.with_skin(&|_| Some(SkinMaterial::default()), PoseMap::Centres)?;
    let (model, state, input) = (&skinned.scene.model, &skinned.scene.state, &skinned.scene.input);
    let skin = model.skin().unwrap();
    let (low, high) =
        skin.rest.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = (high - low).length();
    println!("{name}: {} vertices, {} bones, {size:.2} m", skin.nodes(), skin.bones.len());

    // a ball a tenth of its size comes from the side
    let mut held = state.clone();
    let (middle, radius) = (0.5 * (low + high), 0.1 * size);
    let poke = |k: usize| {
        let s = (k as f64 / 60.0).min(1.0);
        let from = high.z + 1.2 * radius;
        let velocity = if k < 60 { DVec3::Z * (-0.6 * radius) } else { DVec3::ZERO };
        let centre = DVec3::new(middle.x, middle.y, from - 0.6 * radius * s);
        (k < 120).then_some(Ball { centre, radius, velocity })
    };
    run(model, &mut held, input, 180, &poke);
    let mut fallen = held;
    let free = Input { targets: vec![None; input.targets.len()], ..input.clone() };
    let (inside, touching) = run(model, &mut fallen, &free, 420, &|_| None);
    if model.find_obstacle("floor").is_some() {
        assert!(touching > 0, "{name} did not reach the floor");
        assert!(inside < 2e-3, "{name} is {inside} m inside the floor at rest");
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
