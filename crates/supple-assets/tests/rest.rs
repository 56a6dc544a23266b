//! Characters without the springs of their joints fall down and lie still.

mod common;

use supple::{Work, step};
use supple_assets::Character;

/// A finger that is pressed against its soft limit by what it lies on lies still. When tangents of limits were taken where
/// the velocities of the start lead, its limit was reached in one step and left in the next: ring_02.l went to and fro at
/// 5 cm/s for ever.
#[test]
fn fingers_pressed_against_their_limits_lie_still() {
    let Some(folder) = common::assets() else { return };
    let path = folder.join("gltf/mannequiny.glb");
    let scene = Character::open(&path).unwrap().imported("figure").unwrap().scene;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.targets.fill(None);
    (input.stiffness_scale, input.damping_scale) = (0.0, 0.1);
    let mut fastest = 0.0f64;
    while state.time < 10.0 {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
        if state.time > 9.0 {
            let speeds = state.bodies.iter().map(|body| body.velocity.linear.length());
            fastest = speeds.fold(fastest, f64::max);
        }
    }
    assert!(fastest < 2e-3, "{fastest} m/s");
}
