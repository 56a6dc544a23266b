//! Real meshes of tetrahedra, in the folder that `SUPPLE_ASSETS` names: they load, fall and come to rest.

use std::path::PathBuf;
use supple::glam::DVec3;
use supple::{BodySpec, FleshMaterial, FleshSpec, Input, ModelBuilder, ObstacleSpec, Pose, Shape, Work, measure, step};
use supple_assets::{Files, tetmesh};

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SUPPLE_ASSETS").map(|folder| PathBuf::from(folder).join("tet"));
    if folder.is_none() {
        println!("skipped: SUPPLE_ASSETS does not name a folder of assets");
    }
    folder
}

/// File, nodes, tetrahedra.
const MESHES: [(&str, usize, usize); 12] = [
    ("beam3_tet.veg", 208, 450),
    ("ball.vtk", 600, 2536),
    ("banana.vtk", 725, 2395),
    ("single_tet.vtk", 4, 1),
    ("shark_ascii.msh", 425, 1070),
    ("cube_22_ascii.msh", 14, 24),
    ("cube_41_ascii.msh", 14, 24),
    ("cube_22_binary.msh", 14, 24),
    ("cube_41_binary.msh", 14, 24),
    ("bar-186.msh", 86, 186),
    ("rod.msh", 630, 1722),
    ("sphere1K.msh", 1760, 6851),
];

#[test]
fn real_meshes_load() {
    let Some(folder) = folder() else { return };
    for (name, nodes, tets) in MESHES {
        let (cage, _) =
            tetmesh::read(&Files::default().open(&folder.join(name)).unwrap()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((cage.nodes.len(), cage.tets.len()), (nodes, tets), "{name}");
    }
    let error = tetmesh::read(&Files::default().open(&folder.join("beam3.veg")).unwrap()).unwrap_err();
    assert!(error.to_string().contains("CUBIC"), "{error}");
}

/// Frames in which a mesh must come to rest, and in how many of them it must lie still.
const FRAMES: usize = 300;
const STILL: usize = 10;

#[test]
fn real_meshes_fall_and_rest() {
    let Some(folder) = folder() else { return };
    for (name, ..) in MESHES {
        let (mut cage, _) = tetmesh::read(&Files::default().open(&folder.join(name)).unwrap()).unwrap();
        // 0.3 m across, a little above the ground
        let low = cage.nodes.iter().copied().fold(DVec3::INFINITY, DVec3::min);
        let high = cage.nodes.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
        let scale = 0.3 / (high - low).max_element();
        cage.nodes.iter_mut().for_each(|p| *p = (*p - low) * scale + DVec3::Y * 0.02);
        let mut builder = ModelBuilder::new();
        // a model has a body: one far away
        builder
            .body(BodySpec::new("stone").shape(Shape::sphere(0.1), 1000.0).pose(Pose::at(DVec3::new(5.0, 0.1, 0.0))));
        builder.obstacle(ObstacleSpec::floor("ground", 0.0));
        let material = FleshMaterial { young: 2e5, damping: 1.0, ..FleshMaterial::default() };
        builder.flesh(FleshSpec { cage, surface: None, material, holds: Vec::new() });
        let model = builder.build().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (mut state, mut work, input) = (model.start(), Work::new(&model), Input::default());
        let (mut still, mut frames, mut unsettled, mut fastest, mut lowest) = (0, 0, 0, 0.0, 0.0);
        while frames < FRAMES && still < STILL {
            let report = step(&model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}: {e}"));
            unsettled += report.flesh_unsettled;
            fastest = state.nodes.iter().map(|node| node.velocity.length()).fold(0.0, f64::max);
            lowest = state.nodes.iter().map(|node| node.position.y).fold(f64::INFINITY, f64::min);
            still = if report.flesh_touching > 0 && fastest < 0.02 { still + 1 } else { 0 };
            frames += 1;
        }
        println!(
            "{name}: still after {frames} frames, {fastest:.1e} m/s, lowest {lowest:.1e} m, {unsettled} unsettled"
        );
        assert_eq!(still, STILL, "{name}: {fastest} m/s after {frames} frames");
        assert!((-0.02..0.001).contains(&lowest), "{name}: {lowest}");
        assert!(measure::energy(&model, &input, &state).flesh < 5.0, "{name}");
    }
}
