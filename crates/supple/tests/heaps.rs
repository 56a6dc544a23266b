//! Random small heaps: things that fall on one another for two seconds. `cargo run --release -p supple --example heaps -- 10000` runs more of them and tells which
//! needed the last resort.

#[path = "common/mod.rs"]
mod common;

use common::heap::{endure, heap};

const SEEDS: u64 = 500;

#[test]
fn random_heaps_stay_finite_closed_and_gain_no_energy() {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4) as u64;
    let run = |from: u64| {
        let mut wrong = Vec::new();
        let (mut loops, mut frames, mut unconverged, mut resorted) = (0, 0, 0, 0);
        for seed in (from..SEEDS).step_by(threads as usize) {
            let heap = heap(seed);
            let out = endure(&heap, 2.0);
            if let Some(error) = &out.error {
                wrong.push(format!("seed {seed}: {error}"));
            }
            if !out.finite || out.gap > 1e-6 || out.gain > 0.01 {
                wrong.push(format!("seed {seed}: {out:?}"));
            }
            loops += heap.loops;
            frames += out.frames;
            unconverged += out.unconverged;
            resorted += out.resorted;
        }
        (wrong, loops, frames, unconverged, resorted)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        handles.into_iter().map(|h| h.join().expect("no panic")).collect()
    });
    let wrong: Vec<&String> = parts.iter().flat_map(|part| &part.0).collect();
    let sum = |of: fn(&(Vec<String>, usize, u32, u32, u32)) -> u32| parts.iter().map(of).sum::<u32>();
    let (frames, unconverged, resorted) = (sum(|p| p.2), sum(|p| p.3), sum(|p| p.4));
    eprintln!("{frames} frames, {unconverged} in which contacts did not settle, {resorted} with the last resort");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(parts.iter().map(|part| part.1).sum::<usize>() > 100);
    // One frame in a hundred may not settle, one in a thousand may stop.
    assert!(unconverged * 100 <= frames && resorted * 1000 <= frames, "{unconverged} and {resorted} of {frames}");
}
