//! `supple bench`: the papers' experiments by name, the published figure beside the measured one; and what the default
//! step promises, measured.

mod chain;
mod drag;
mod hand;
mod peak;
mod stiffness;
mod trial;
mod whip;
mod whip_page;

use crate::error::Error;
use crate::output::{self, Files};
use crate::table::{Align, Table};
use crate::terminal::Terminal;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use supple::{Input, Scene, Work, step};

/// Measure the papers' experiments beside their published figures, and how much a step withstands
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    name: Option<Name>,
}

#[derive(Subcommand, Debug)]
enum Name {
    /// Time per step against the number of links [Hernández 2011, fig. 4]
    Chain(chain::ChainArgs),
    /// Time per step of a tracked hand [Hernández 2011, §6]
    Hand(hand::HandArgs),
    /// Gaps, energy, error and work of undamped whips at frame-size steps, beside the published step
    Whip(whip::WhipArgs),
    /// The longest step at which an undamped chain stays bounded, by stiffness
    Stiffness(stiffness::StiffnessArgs),
    /// Characters dragged by a target that moves at up to 20 m/s
    Drag(drag::DragArgs),
}

/// The benches for the list, as in their help.
const NAMES: [(&str, &str); 5] = [
    ("chain", "time per step against the number of links [Hernández 2011, fig. 4]"),
    ("hand", "time per step of a tracked hand [Hernández 2011, §6]"),
    ("whip", "gaps, energy, error and work of undamped whips at frame-size steps, beside the published step"),
    ("stiffness", "the longest step at which an undamped chain stays bounded, by stiffness"),
    ("drag", "characters dragged by a target that moves at up to 20 m/s"),
];

/// Runs a bench, or lists them.
pub(crate) fn run(args: &BenchArgs, terminal: &Terminal) -> Result<(), Error> {
    match &args.name {
        Some(Name::Chain(args)) => chain::run(args, terminal),
        Some(Name::Hand(args)) => hand::run(args, terminal),
        Some(Name::Whip(args)) => whip::run(args, terminal),
        Some(Name::Stiffness(args)) => stiffness::run(args, terminal),
        Some(Name::Drag(args)) => drag::run(args, terminal),
        None => list(terminal),
    }
}

fn list(terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([("bench", Align::Left), ("what it measures", Align::Left)]);
    for (name, summary) in NAMES {
        table.row([name.into(), summary.into()]);
    }
    output::print(|out| table.write(out, terminal))
}

/// Where the figures go.
#[derive(Args, Debug)]
struct Destination {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a file, by its ending: .json (the document), .svg (chain: the figure), .html (whip: the page); may be given again
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

impl Destination {
    fn files(&self, endings: &[&'static str]) -> Result<Files, Error> {
        Files::check(&self.output, endings)
    }
}

/// The machine that the figures are from.
#[derive(Debug, Serialize)]
struct Machine {
    /// Null where the system does not tell.
    cpu: Option<String>,
    cores: usize,
    os: &'static str,
    arch: &'static str,
}

impl Machine {
    fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cpu: cpu_model(&info),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
        }
    }

    fn words(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("unknown processor");
        format!("{cpu}, {}, {} {}", crate::table::count(self.cores, "core", "cores"), self.os, self.arch)
    }
}

fn cpu_model(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A scene to be timed.
struct Case<'a> {
    scene: &'a Scene,
    /// What the run starts with.
    input: Input,
    steps: usize,
}

/// What the timing of a case gave.
#[derive(Clone, Copy, Debug, Default)]
struct Timing {
    /// Mean over a run, the smallest of all runs \[µs\].
    us_per_step: f64,
    /// Steps of a run: fewer than asked for when they take too long.
    steps: usize,
    /// Over a run \[m\]; the same in every run.
    max_joint_gap: f64,
    limits_active_max: u32,
}

/// Runs are repeated until this much time has been measured.
const MEASURED_AT_LEAST: Duration = Duration::from_millis(300);
/// Others share the machine: a run is done at least this often…
const RUNS_AT_LEAST: usize = 3;
/// …unless that takes longer than this.
const REPEATED_AT_MOST: Duration = Duration::from_secs(6);
/// A run that takes longer is cut off here.
const MEASURED_AT_MOST: Duration = Duration::from_secs(20);

/// Whether so many runs, so long together, are not enough yet.
fn wants_more(runs: usize, measured: Duration) -> bool {
    measured < MEASURED_AT_LEAST || (runs < RUNS_AT_LEAST && measured < REPEATED_AT_MOST)
}

impl Case<'_> {
    /// Times whole runs from the start, each step by itself; what directs the scene is not timed.
    fn time(&self) -> Result<Timing, Error> {
        let mut work = Work::new(&self.scene.model);
        // The first step touches fresh memory: it is done once beforehand.
        self.play(1, &mut work)?;
        let mut timing = Timing { us_per_step: f64::INFINITY, ..Timing::default() };
        let (mut runs, mut measured) = (0, Duration::ZERO);
        while wants_more(runs, measured) {
            let (elapsed, steps, most) = self.play(self.steps, &mut work)?;
            runs += 1;
            measured += elapsed.max(Duration::from_micros(1)); // a coarse clock must not keep us here
            timing.us_per_step = timing.us_per_step.min(1e6 * elapsed.as_secs_f64() / steps as f64);
            timing.steps = steps;
            timing.max_joint_gap = most.max_joint_gap;
            timing.limits_active_max = most.limits_active;
        }
        Ok(timing)
    }

    /// The time of the steps done, their number, and the most of what they reported.
    fn play(&self, steps: usize, work: &mut Work) -> Result<(Duration, usize, supple::Report), Error> {
        let model = &self.scene.model;
        let (mut state, mut input) = (self.scene.state.clone(), self.input.clone());
        let mut elapsed = Duration::ZERO;
        let mut most = supple::Report::default();
        for k in 0..steps {
            if elapsed > MEASURED_AT_MOST {
                return Ok((elapsed, k, most));
            }
            self.scene.direct(state.time, &mut input);
            let start = Instant::now();
            let result = step(model, &input, &mut state, work);
            elapsed += start.elapsed();
            let done = result.map_err(|e| Error::step(&e, format_args!("{}, step {}", self.scene.name, k + 1)))?;
            most.max_joint_gap = most.max_joint_gap.max(done.max_joint_gap);
            most.limits_active = most.limits_active.max(done.limits_active);
        }
        Ok((elapsed, steps, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read() {
        let info = "processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(cpu_model(info).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model("processor : 0"), None);
    }
}
