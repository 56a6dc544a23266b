//! Random small heaps, many of them: `cargo run --release -p supple --example heaps -- 10000`.
//!
//! A second number is the first seed. `seed N` tells one of them step by step.

#[path = "../tests/common/mod.rs"]
mod common;

use common::heap::{Heap, Outcome, endure, heap};
use supple::{Work, step};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, seed] = &arguments[..]
        && word == "seed"
    {
        return tell(seed.parse().expect("a seed"));
    }
    let number = |k: usize, missing: u64| std::env::args().nth(k).map_or(missing, |a| a.parse().expect("a number"));
    let (count, first) = (number(1, 1000), number(2, 0));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let start = std::time::Instant::now();
    let run = |from: u64| -> Vec<(u64, Outcome)> {
        let seeds = (first + from..first + count).step_by(threads as usize);
        seeds.map(|seed| (seed, endure(&heap(seed), 2.0))).collect()
    };
    let mut all: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || run(t))).collect();
        handles.into_iter().flat_map(|h| h.join().expect("no panic")).collect()
    });
    all.sort_unstable_by_key(|(seed, _)| *seed);
    let sum = |of: &dyn Fn(&Outcome) -> u64| all.iter().map(|(_, out)| of(out)).sum::<u64>();
    let most = |of: &dyn Fn(&Outcome) -> f64| all.iter().map(|(_, out)| of(out)).fold(0.0, f64::max);
    let frames = sum(&|o| o.frames.into());
    println!("{count} heaps of 2 s, {frames} frames, in {:.1} s", start.elapsed().as_secs_f64());
    println!("errors {}, not finite {}", sum(&|o| o.error.is_some().into()), sum(&|o| (!o.finite).into()));
    println!(
        "widest gap {:.1e} of the size, largest gain {:.1e} of what is at stake",
        most(&|o| o.gap),
        most(&|o| o.gain)
    );
    println!("deepest {:.1e} m", most(&|o| o.depth));
    println!("passes a frame {:.1}", sum(&|o| o.passes) as f64 / frames as f64);
    let (unconverged, divided) = (sum(&|o| o.unconverged.into()), sum(&|o| o.divided.into()));
    println!("frames in which contacts did not settle {unconverged}, that were divided {divided}");
    for (seed, out) in &all {
        if out.error.is_some() || !out.finite || out.gap > 1e-6 || out.gain > 0.01 {
            println!("seed {seed}: {out:?}");
        }
    }
    let fell: Vec<String> =
        all.iter().filter(|(_, o)| o.resorted > 0).map(|(seed, o)| format!("{seed} ({})", o.resorted)).collect();
    println!("heaps with the last resort (frames): {}: {}", fell.len(), fell.join(", "));
}

/// One heap, step by step.
fn tell(seed: u64) {
    let Heap { model, mut state, input, loops } = heap(seed);
    println!(
        "seed {seed}: {} bodies, {} joints, {loops} loops, dt {:.4}",
        model.bodies().len(),
        model.joints().len(),
        input.dt
    );
    let mut work = Work::new(&model);
    while state.time < 2.0 {
        match step(&model, &input, &mut state, &mut work) {
            Ok(r) => println!(
                "{:.3} s: {} contacts, {} parts, {} resorts, {} passes, {} unsettled, depth {:.1e}, gap {:.1e}, {:?}",
                state.time,
                r.contacts,
                r.substeps,
                r.resorts,
                r.iterations,
                r.unconverged,
                r.max_penetration,
                r.max_joint_gap,
                r.trouble.map(|t| (t.cause, &model.bodies()[t.body.index()].name)),
            ),
            Err(error) => return println!("{error}"),
        }
    }
}
