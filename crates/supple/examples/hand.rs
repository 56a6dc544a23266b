//! A hand of 16 bones follows a hand-written grasp for two seconds.
//!
//! `cargo run --release --example hand`

use supple::glam::DVec3;
use supple::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scene = Scene::parse("hand")?;
    let (mut state, mut input) = (scene.state.clone(), scene.input.clone());
    let mut work = Work::new(&scene.model);

    let mut widest: f64 = 0.0;
    while state.time < 2.0 - 0.5 * input.dt {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work)?;
        widest = widest.max(report.max_joint_gap);
    }

    println!("after {:.2} s, in a fist:", state.time);
    for finger in ["thumb", "index", "middle", "ring", "little"] {
        let bone = scene.model.find_body(&format!("{finger}_distal")).ok_or("no such bone")?;
        // The joint lies behind the centre of mass as far as the tip lies before it.
        let joint = scene.model.find_joint(&format!("{finger}_tip")).ok_or("no such joint")?;
        let tip = -scene.model.joint(joint).child_from_joint.translation;
        let DVec3 { x, y, z } = state.bodies[bone.index()].pose().transform_point(tip);
        println!("  {finger:6}  {x:7.4} {y:7.4} {z:7.4} m");
    }
    println!("largest joint gap {widest:.1e} m");
    assert!(widest < 1e-3);
    Ok(())
}
