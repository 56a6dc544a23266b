//! Every robot among the models made by others can be simulated for ten seconds; fragments are refused.

mod common;

use common::files;
use glam::DVec3;
use supple::{Work, step};
use supple_assets::open;

/// Opens a file and runs it under a gravity: the largest joint gap, and the fastest turn of a body.
fn run(path: &std::path::Path, gravity: Option<DVec3>, steps: usize) -> (f64, f64) {
    let imported = open(path).unwrap_or_else(|e| panic!("{e}"));
    let scene = imported.scene;
    let (mut state, _) = scene.assembled_start().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
    input.gravity = gravity.unwrap_or(input.gravity);
    let (mut gap, mut fastest) = (0f64, 0f64);
    for k in 0..steps {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work)
            .unwrap_or_else(|e| panic!("{}, step {k}: {e}", path.display()));
        gap = gap.max(report.max_joint_gap);
        fastest = state.bodies.iter().map(|b| b.velocity.angular.length()).fold(fastest, f64::max);
    }
    assert!(state.is_finite(), "{}", path.display());
    (gap, fastest)
}

#[test]
fn every_recording_moves_its_own_figure() {
    for path in files("bvh", "bvh") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let imported = open(&path).unwrap_or_else(|e| panic!("{e}"));
        let (scene, motion) = (&imported.scene, &imported.clips[0]);
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.dt = 1.0 / 120.0;
        let mut worst = 0f64;
        let mut way = 0f64;
        for _ in 0..600 {
            scene.direct(state.time, &mut input);
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(report.max_joint_gap < 1e-9, "{name}: {}", report.max_joint_gap);
            for (b, body) in state.bodies.iter().enumerate() {
                worst = worst.max((motion.at(state.time, b).pose.translation - body.position).length());
                way = way.max((scene.state.bodies[b].position - body.position).length());
            }
        }
        println!(
            "{name}: {} bodies, moved by up to {way:.2} m, at most {worst:.4} m from the recording",
            state.bodies.len()
        );
        // A recording that jumps, by its own note, cannot be followed there: it must only stay bounded.
        let jumps = imported.notes.iter().any(|note| note.code == "import/jump");
        assert_eq!(jumps, ["cmu_05_06.bvh", "cmu_49_05.bvh"].contains(&name.as_str()), "{name}");
        assert!(worst < if jumps { 1.0 } else { 0.1 }, "{name}: {worst} m");
        assert!(way > 0.2 || motion.frames() == 1, "{name} does not move: {way} m");
    }
}

#[test]
fn every_robot_runs_for_ten_seconds() {
    let fragments = ["keyframes.xml", "materials.xml", "skybox.xml", "visual.xml"];
    for path in files("urdf", "urdf").into_iter().chain(files("mjcf", "xml")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if fragments.contains(&name.as_str()) {
            assert_eq!(open(&path).unwrap_err().code, "file/fragment", "{name}");
            continue;
        }
        // Upright many stand in balance, or fall without turning: aslant they move.
        let ((gap, fastest), (gap_aslant, fastest_aslant)) =
            (run(&path, None, 600), run(&path, Some(DVec3::new(6.0, -5.0, 6.0)), 120));
        println!(
            "{name}: gaps {gap:.1e} and {gap_aslant:.1e} m, fastest turn {fastest:.1} and {fastest_aslant:.1} rad/s"
        );
        // metres: the joint tolerance of [Bender 2006, §5]; without contacts they close to rounding
        assert!(gap.max(gap_aslant) < 1e-6, "{name}: {gap} {gap_aslant}");
    }
}

#[test]
fn missing_meshes_and_textures_are_told() {
    let text = r#"<robot name="box"><material name="wood"><texture filename="package://box/wood.png"/></material>
        <link name="base"><visual><geometry><mesh filename="package://box/base.stl"/></geometry><material name="own"><texture filename="own.png"/></material></visual>
        <collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"#;
    let path = std::env::temp_dir().join(format!("supple-missing-{}.urdf", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let imported = open(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    let missing: Vec<_> = imported.notes.iter().filter(|n| n.code == "import/missing-file").collect();
    let told: Vec<_> = missing.iter().map(|n| (n.part.as_str(), n.text.split(' ').nth(1).unwrap())).collect();
    let wanted = [("base", "package://box/base.stl"), ("base", "own.png"), ("wood", "package://box/wood.png")];
    assert_eq!(told, wanted);
}
