//! Opens damaged files: `cargo run --release -p supple-assets --example damage -- COUNT [FIRST] [FILE…]`. Each number is a seed; a panic, a
//! second of work or a gigabyte of memory is told with it.

#[path = "../tests/common/allocator.rs"]
mod allocator;
#[path = "../tests/common/damage.rs"]
mod damage;

use damage::{Random, damaged, open, small, small_with_physics};
use std::time::{Duration, Instant};

fn main() {
    let mut words = std::env::args().skip(1);
    let count: u64 = words.next().map_or(Ok(1_000_000), |w| w.parse()).expect("COUNT is a number");
    let first: u64 = words.next().map_or(Ok(0), |w| w.parse()).expect("FIRST is a number");
    let mut bases = vec![small(), small_with_physics()];
    bases.extend(words.map(|file| std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"))));
    std::panic::set_hook(Box::new(|_| {}));
    let (mut opened, mut bad, mut slowest, mut most) = (0u64, 0u64, Duration::ZERO, 0);
    for seed in first..first + count {
        let mut random = Random(seed);
        let file = damaged(&bases[random.below(bases.len())], &mut random);
        let start = Instant::now();
        allocator::reset();
        match std::panic::catch_unwind(|| open(file)) {
            Ok(result) => opened += u64::from(result.is_ok()),
            Err(_) => {
                println!("seed {seed}: a panic");
                bad += 1;
            }
        }
        (slowest, most) = (slowest.max(start.elapsed()), most.max(allocator::peak()));
        if start.elapsed() > Duration::from_secs(5) || allocator::peak() > 1 << 30 {
            println!("seed {seed}: {:?}, {} bytes", start.elapsed(), allocator::peak());
            bad += 1;
        }
    }
    println!("{count} files, {opened} opened, {bad} bad; slowest {slowest:?}, most memory {most} bytes");
    std::process::exit(if bad == 0 { 0 } else { 1 });
}
