//! Every built-in scene, 200 steps of its own settings with the instructions of every machine: the state it ends in is kept
//! in `data/golden.txt`, to the bit. Changing it is a deliberate commit: `SUPPLE_GOLDEN=write cargo test --release -p supple --test golden`.
//!
//! Sines and arc tangents come from the platform's own library, so that the file holds for the platform it names.

use std::fmt::Write;
use supple::maths::lanes::Instructions;
use supple::*;

const STEPS: usize = 200;
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden.txt");
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The hash of the state after [`STEPS`] steps, or where they ended.
fn hash_of(name: &str) -> String {
    let scene = Scene::parse(name).unwrap();
    let (mut state, mut work, mut input) = (scene.state.clone(), Work::new(&scene.model), scene.input.clone());
    if let Solver::Tree(tree) = &mut input.solver {
        tree.instructions = Instructions::Baseline;
    }
    for step_number in 0..STEPS {
        scene.direct(state.time, &mut input);
        if let Err(error) = step(&scene.model, &input, &mut state, &mut work) {
            return format!("step {step_number}: {}", error.code());
        }
    }
    format!("{:016x}", state.hash())
}

#[test]
fn built_in_scenes_end_where_they_did() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        println!("SKIPPED: the hashes are those of {PLATFORM}");
        return;
    }
    let names: Vec<&str> = scenes::catalogue().iter().map(|info| info.name).collect();
    // Scenes differ in cost by a thousand: each thread takes the next one.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut rows: Vec<(usize, String)> = std::thread::scope(|scope| {
        let run = || {
            let mut rows = Vec::new();
            loop {
                let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(name) = names.get(i) else { return rows };
                rows.push((i, hash_of(name)));
            }
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    rows.sort();
    let mut found = format!("# {STEPS} steps of every built-in scene, {PLATFORM}, instructions=baseline\n");
    for (i, hash) in &rows {
        writeln!(found, "{:16} {hash}", names[*i]).unwrap();
    }
    if std::env::var("SUPPLE_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(FILE, found).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    let differ: Vec<_> = found.lines().filter(|line| !kept.lines().any(|old| old == *line)).collect();
    assert!(
        differ.is_empty() && found.lines().count() == kept.lines().count(),
        "bits of built-in scenes changed; if that is meant, write them anew with SUPPLE_GOLDEN=write and say why:\n{}",
        differ.join("\n")
    );
}
