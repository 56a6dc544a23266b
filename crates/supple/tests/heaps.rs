//! Random small heaps: things that fall on one another for two seconds. `cargo run --release -p supple --example heaps -- 10000` runs more of them and tells which
//! needed the last resort.

#[path = "common/mod.rs"]
mod common;

use common::heap::{endure, heap};

const SEEDS: u64 = 500;

/// What became of many.
#[derive(Default)]
struct Tally {
    wrong: Vec<String>,
    loops: usize,
    frames: u32,
    unconverged: u32,
    resorted: u32,
}

#[test]
fn random_heaps_stay_finite_closed_and_gain_no_energy() {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4) as u64;
    let run = |from: u64| {
        let mut tally = Tally::default();
        for seed in (from..SEEDS).step_by(threads as usize) {
            let heap = heap(seed);
            let out = endure(&heap, 2.0);
            if out.error.is_some() || !out.finite || out.gap > 1e-6 || out.gain > 0.01 {
                tally.wrong.push(format!("seed {seed}: {out:?}"));
            }
            tally.loops += heap.loops;
            tally.frames += out.frames;
            tally.unconverged += out.unconverged;
            tally.resorted += out.resorted;
        }
        tally
    };
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        handles.into_iter().map(|h| h.join().expect("no panic")).collect()
    });
    let mut all = Tally::default();
    for tally in tallies {
        all.wrong.extend(tally.wrong);
        all.loops += tally.loops;
        all.frames += tally.frames;
        all.unconverged += tally.unconverged;
        all.resorted += tally.resorted;
    }
    let Tally { wrong, loops, frames, unconverged, resorted } = all;
    eprintln!("{frames} frames, {unconverged} in which contacts did not settle, {resorted} with the last resort");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(loops > 100, "{loops}");
    // Measured: one frame in 60 does not settle, one in 2,900 needs the last resort.
    assert!(unconverged * 40 <= frames && resorted * 1000 <= frames, "{unconverged} and {resorted} of {frames}");
}
