//! Random drags of characters by their own actuators stay finite and within bounds: the robot, the worm, an imported figure. As many as wanted: the example `drags`.

mod common;
#[path = "common/drags.rs"]
mod drags;

use drags::{MOST_TORQUE, Outcome, drag, most_speed};
use supple::Scene;

fn endure(scene: &Scene, dt: f64, steps: usize, seeds: u64) {
    let mut worst = Outcome::default();
    for seed in 0..seeds {
        let told = drag(scene, seed, dt, steps).unwrap_or_else(|e| panic!("{}: {e}", scene.name));
        worst.root_wrench = worst.root_wrench.max(told.root_wrench);
        worst.torque = worst.torque.max(told.torque);
        worst.speed = worst.speed.max(told.speed);
        worst.spin = worst.spin.max(told.spin);
    }
    // No actuator has more torque than it was given, and nothing acts on a free root. None is told to go faster than its largest rate, so that goals which contradict one another cannot go on
    // doing work: without that bound the robot came to 480 m/s.
    let most = most_speed(scene);
    assert!(worst.speed < most, "{}: {worst:?}, at most {most} m/s", scene.name);
    assert!(worst.torque <= MOST_TORQUE * (1.0 + 1e-9), "{}: {worst:?}", scene.name);
    assert!(worst.root_wrench < 1e-8, "{}: {worst:?}", scene.name); // rounding, at torques of up to 200 N·m on limbs that spin
    assert!(worst.spin.is_finite(), "{}: {worst:?}", scene.name);
    println!("{}: {seeds} drags, {worst:?}, at most {most:.1} m/s", scene.name);
}

// A thousand drags in all.

#[test]
fn the_robot_endures_random_drags() {
    endure(&Scene::parse("robot").unwrap(), 1.0 / 60.0, 60, 334);
}

#[test]
fn the_worm_endures_random_drags() {
    endure(&Scene::parse("worm").unwrap(), 1e-3, 100, 333);
}

#[test]
fn an_imported_figure_endures_random_drags() {
    let Some(folder) = common::assets() else { return };
    let figure = supple_assets::open(&folder.join("gltf/CesiumMan.glb")).unwrap();
    endure(&figure.scene, 1.0 / 60.0, 60, 333);
}
