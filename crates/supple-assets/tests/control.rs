//! Random drags of characters by their own actuators stay finite and within bounds: the robot, the worm, an imported figure. A thousand of them: the example `drags`.

mod common;
#[path = "common/drags.rs"]
mod drags;

use drags::{MOST_TORQUE, Outcome, drag};
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
    // No actuator has more torque than it was given, and nothing acts on a free root. How fast limbs become is not bounded: 200 N·m at a wrist whose goals contradict one another
    // bring it to hundreds of metres a second.
    assert!(worst.torque <= MOST_TORQUE * (1.0 + 1e-9), "{}: {worst:?}", scene.name);
    assert!(worst.root_wrench < 1e-8, "{}: {worst:?}", scene.name); // rounding, at torques of up to 200 N·m on limbs that spin
    assert!(worst.speed.is_finite() && worst.spin.is_finite(), "{}: {worst:?}", scene.name);
}

#[test]
fn the_robot_and_the_worm_endure_random_drags() {
    endure(&Scene::parse("robot").unwrap(), 1.0 / 60.0, 60, 20);
    endure(&Scene::parse("worm").unwrap(), 1e-3, 200, 8);
}

#[test]
fn an_imported_figure_endures_random_drags() {
    let Some(folder) = common::assets() else { return };
    let figure = supple_assets::open(&folder.join("gltf/CesiumMan.glb")).unwrap();
    endure(&figure.scene, 1.0 / 60.0, 60, 20);
}
