//! A thousand random drags of the robot, the worm and imported figures (a walking man, a mannequin with fingers, a humanoid robot, a skeleton of a recording) by their own actuators:
//! `SUPPLE_ASSETS=… cargo run --release -p supple-assets --example drags -- 1000`.

#[path = "../tests/common/drags.rs"]
mod drags;

use drags::{MOST_TORQUE, drag, most_speed};
use supple::Scene;

fn main() {
    let count = std::env::args().nth(1).map_or(1000, |n| n.parse::<u64>().expect("a number"));
    let mut scenes = vec![
        (Scene::parse("robot").expect("a built-in scene"), 1.0 / 60.0, 60),
        (Scene::parse("worm").expect("a built-in scene"), 1e-3, 100),
    ];
    if let Some(folder) = std::env::var_os("SUPPLE_ASSETS") {
        for file in ["gltf/CesiumMan.glb", "gltf/mannequiny.glb", "mjcf/humanoid.xml", "bvh/cmu_02_01.bvh"] {
            let path = std::path::Path::new(&folder).join(file);
            scenes.push((supple_assets::open(&path).expect("a figure").scene, 1.0 / 60.0, 60));
        }
    }
    for (scene, dt, steps) in &scenes {
        let share = count.div_ceil(scenes.len() as u64);
        let (mut failed, mut wrench, mut torque, mut speed) = (0, 0.0f64, 0.0f64, 0.0f64);
        for seed in 0..share {
            match drag(scene, seed, *dt, *steps) {
                Ok(told) => {
                    wrench = wrench.max(told.root_wrench);
                    torque = torque.max(told.torque);
                    speed = speed.max(told.speed);
                }
                Err(error) => {
                    failed += 1;
                    println!("{}: {error}", scene.name);
                }
            }
        }
        println!(
            "{}: {share} drags, {failed} failed; root wrench up to {wrench:.1e}, torque up to {torque:.1} of {MOST_TORQUE} N·m, speed up to {speed:.1} of {:.1} m/s",
            scene.name,
            most_speed(scene)
        );
    }
}
