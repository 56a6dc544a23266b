//! How long the processor has worked for this process. The clock tells something else on a machine that does much beside.

use std::time::{Duration, Instant};

/// Runs while the processor works for this process, whichever of its threads; where the system does not tell that, as the clock does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processor {
    worked: Option<Duration>,
    clock: Instant,
}

impl Processor {
    /// From now on.
    pub(super) fn start() -> Processor {
        Processor { worked: worked(), clock: Instant::now() }
    }

    /// The time since the start \[s\].
    pub(super) fn seconds(&self) -> f64 {
        let since = self.worked.zip(worked()).map(|(before, now)| now.saturating_sub(before));
        since.unwrap_or_else(|| self.clock.elapsed()).as_secs_f64()
    }
}

/// What the processor has given to this process so far, if the system tells.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn worked() -> Option<Duration> {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)).ok()
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn worked() -> Option<Duration> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn sleeps_and_works() {
        let processor = Processor::start();
        std::thread::sleep(Duration::from_millis(500));
        assert!(processor.seconds() < 0.25, "{} s of sleep are counted", processor.seconds());
        while processor.seconds() < 0.3 {
            std::hint::black_box(processor.seconds());
        }
    }

    #[test]
    fn sleep_does_not_count_and_work_does() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "bench::processor::tests::sleeps_and_works", "--ignored"]);
        let output = alone.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}
