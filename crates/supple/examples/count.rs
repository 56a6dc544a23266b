//! Steps a built-in scene and does nothing else: what `tools/instructions.py` counts the instructions of.
//!
//! `cargo run --release -p supple --example count -- hand 100` advances the scene by 100 steps of its own settings.

use supple::{Scene, Work, step};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, steps] = words.as_slice() else { return Err("count SCENE STEPS".into()) };
    let (scene, steps) = (Scene::parse(name)?, steps.parse::<usize>()?);
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    for _ in 0..steps {
        scene.direct(state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work)?;
    }
    println!("{name}: {steps} steps, {:016x}", state.hash());
    Ok(())
}
