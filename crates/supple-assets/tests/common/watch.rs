//! A stopwatch of work: what waits for a busy machine is no slower for it.

use std::time::{Duration, Instant};

/// How long this thread has worked; by the clock where the system does not say.
pub(crate) struct Watch {
    clock: Instant,
    worked: Option<u64>,
}

impl Watch {
    pub(crate) fn start() -> Watch {
        Watch { clock: Instant::now(), worked: worked() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let since = self.worked.zip(worked()).map(|(then, now)| Duration::from_nanos(now - then));
        since.unwrap_or_else(|| self.clock.elapsed())
    }
}

/// Nanoseconds that this thread has run.
fn worked() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
