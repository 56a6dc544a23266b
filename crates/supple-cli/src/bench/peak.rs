//! What one core can do at most: scalar fused multiply-adds, none of which waits for another.

use std::hint::black_box;
use std::time::{Duration, Instant};
use supple::maths::lanes::{Fused, Kernel, Real, has_fused};

/// The scalar peak of one core, a multiply-add counted as two \[GFLOP/s\].
pub(super) fn gflops() -> f64 {
    if has_fused() { fastest(Fused::enter::<Sums<Fused>>) } else { fastest(f64::enter::<Sums<f64>>) }
}

/// Numbers that grow side by side: more than the latency of a multiply-add times what a cycle begins, fewer than registers.
const NUMBERS: usize = 11;
const ROUNDS: usize = 20_000;
/// For this long the peak is looked for: others share the machine.
const LOOKED_FOR: Duration = Duration::from_millis(50);

fn fastest<T: Real>(enter: impl Fn(Sums<T>) -> f64) -> f64 {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    while begin.elapsed() < LOOKED_FOR {
        let sums = Sums { factor: T::splat(black_box(0.999)), term: T::splat(black_box(0.001)) };
        let start = Instant::now();
        black_box(enter(sums));
        best = best.min(start.elapsed().as_secs_f64());
    }
    2e-9 * (NUMBERS * ROUNDS) as f64 / best
}

/// `x ← factor·x + term` for all numbers.
struct Sums<T> {
    factor: T,
    term: T,
}

impl<T: Real> Kernel for Sums<T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut numbers = [T::splat(1.0); NUMBERS];
        for (k, number) in numbers.iter_mut().enumerate() {
            *number = T::splat(0.1 * k as f64);
        }
        for _ in 0..ROUNDS {
            // They change places, which keeps the compiler from putting four into one register: scalars are measured.
            let last = numbers;
            for k in 0..NUMBERS {
                numbers[k] = last[(3 * k + 1) % NUMBERS].madd(self.factor, self.term);
            }
        }
        numbers.iter().map(|x| x.lane(0)).sum()
    }
}
