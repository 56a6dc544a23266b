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

const FILES: [&str; 8] = [
    "CesiumMan.glb",
    "RiggedFigure.glb",
    "RiggedSimple.glb",
    "SimpleSkin.gltf",
    "RecursiveSkeletons.glb",
    "generic-hand-left.glb",
    "mannequiny.glb",
    "platformer-robot.glb",
];

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

#[test]
fn every_skinned_file_stands_falls_and_is_poked() {
    let Some(folder) = assets() else {
        eprintln!("SUPPLE_ASSETS is not set: skipped");
        return;
    };
    let mut refused = Vec::new();
    for name in FILES {
        let imported = open(&folder, name);
        let material = SkinMaterial::default();
        let skinned = match imported.with_skin(&|_| Some(material), PoseMap::Centres) {
            Ok(skinned) => skinned,
            Err(what) => {
                refused.push(format!("{name}: {what}"));
                continue;
            }
        };
        let (model, state, input) = (&skinned.scene.model, &skinned.scene.state, &skinned.scene.input);
        let skin = model.skin().unwrap();
        let (low, high) =
            skin.rest.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
        let size = (high - low).length();
        println!("{name}: {} vertices, {} bones, {size:.2} m", skin.nodes(), skin.bones.len());

        // held for 3 s, and poked from the side by a ball a tenth of its size for 2 s of them
        let mut held = state.clone();
        let middle = 0.5 * (low + high);
        let radius = 0.1 * size;
        let poke = |k: usize| {
            let s = (k as f64 / 60.0).min(1.0);
            let from = high.z + 1.2 * radius;
            let velocity = if k < 60 { DVec3::Z * (-0.6 * radius) } else { DVec3::ZERO };
            let centre = DVec3::new(middle.x, middle.y, from - 0.6 * radius * s);
            (k < 120).then_some(Ball { centre, radius, velocity })
        };
        run(model, &mut held, input, 180, &poke);

        // let go: it falls and lies for 7 s
        let mut fallen = held;
        let free = Input { targets: vec![None; input.targets.len()], ..input.clone() };
        let (inside, touching) = run(model, &mut fallen, &free, 420, &|_| None);
        if model.find_obstacle("floor").is_some() {
            assert!(touching > 0, "{name} did not reach the floor");
            assert!(inside < 2e-3, "{name} is {inside} m inside the floor at rest");
        }
    }
    // a flat sheet has no inside
    println!("refused: {refused:#?}");
    assert!(refused.iter().all(|reason| reason.starts_with("SimpleSkin.gltf")), "{refused:#?}");
}
