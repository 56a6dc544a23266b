//! `supple bench`: the papers' experiments by name, the published figure beside the measured one; and what the default
//! step promises, measured.

mod assembly;
mod chain;
mod contacts;
mod creatures;
mod drag;
mod flesh;
mod hand;
mod loops;
mod papers;
mod papers_page;
mod peak;
mod processor;
mod rest;
mod retarget;
mod rigs;
mod servo;
mod skin;
mod soak;
mod stiffness;
mod studio;
mod together;
mod trees;
mod trial;
mod whip;
mod whip_page;

use crate::error::{Error, nearest};
use crate::output::{self, Outputs};
use crate::table::{Align, Table};
use crate::terminal::Terminal;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::Write;
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
    /// Time per step of trees and a star, all joints at once and joint by joint [Bender 2006, §5]
    Trees(trees::TreesArgs),
    /// Gaps, energy, error and work of undamped whips at frame-size steps, beside the published step
    Whip(whip::WhipArgs),
    /// The longest step at which an undamped chain stays bounded, by stiffness
    Stiffness(stiffness::StiffnessArgs),
    /// Characters dragged by a target that moves at up to 20 m/s
    Drag(drag::DragArgs),
    /// Broken poses brought together, frames of posing and shaking [Faure 1998]
    Assembly(assembly::AssemblyArgs),
    /// Time per step of closed loops against the number of bodies
    Loops(loops::LoopsArgs),
    /// Stacks, slopes, a pile, a car, a walker, a ragdoll and a grasp: what contacts keep and what they cost
    Contacts(contacts::ContactsArgs),
    /// Every built-in scene and every character for minutes on end: gaps, energy, memory, rest
    Soak(soak::SoakArgs),
    /// The page of the studio in a browser without a screen: first picture, cost of a picture, controls at first
    Studio(studio::StudioArgs),
    /// The robot on its feet, every joint a servo, by stiffness
    Servo(servo::ServoArgs),
    /// Time per step of a worm in flesh, explicit and implicit [Kim 2008, table 2]
    Worm(creatures::CreatureArgs),
    /// Time per step of a fish in flesh, explicit and implicit [Kim 2008, table 2]
    Fish(creatures::CreatureArgs),
    /// Time per step of a finger in flesh, explicit and implicit [Kim 2008, table 2]
    Finger(creatures::CreatureArgs),
    /// Flesh of every stiffness from flattened, scrambled and stretched starts, at steps of every size
    Flesh(flesh::FleshArgs),
    /// Time per step of characters in soft skin, by what is done [Galoppo 2007, table 1]
    Skin(skin::SkinArgs),
    /// Error of the condensed skeleton against the coupled solution, by refinements [Galoppo 2007, §5.1]
    Condensation(skin::SkinArgs),
    /// Every table row and figure of the five papers, published and measured
    Papers(papers::PapersArgs),
    /// What lies still: how fast it creeps and turns, by step
    Rest(rest::RestArgs),
    /// Tubes in soft skin by stiffness, friction, bones and moving constraints [Galoppo 2007, fig. 6]
    Tubes(skin::SkinArgs),
    /// Recorded motions on the figures of a folder: feet that stand
    Retarget(retarget::RetargetArgs),
    /// The rigs of a folder of characters: masses, hinges, rest, clips followed
    Rigs(rigs::RigsArgs),
    /// Every solver with every feature: loops, contacts, limits, flesh, skin, control, grips, motors, springs, loads, takes
    Together(together::TogetherArgs),
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// The benches for the list, as in their help.
const NAMES: [(&str, &str); 23] = [
    ("papers", "every table row and figure of the five papers, published and measured"),
    ("rest", "what lies still: how fast it creeps and turns, by step"),
    ("chain", "time per step against the number of links [Hernández 2011, fig. 4]"),
    ("hand", "time per step of a tracked hand [Hernández 2011, §6]"),
    ("trees", "time per step of trees and a star, all joints at once and joint by joint [Bender 2006, §5]"),
    ("whip", "gaps, energy, error and work of undamped whips at frame-size steps, beside the published step"),
    ("stiffness", "the longest step at which an undamped chain stays bounded, by stiffness"),
    ("drag", "characters dragged by a target that moves at up to 20 m/s"),
    ("loops", "time per step of closed loops against the number of bodies"),
    (
        "contacts",
        "stacks, slopes, a pile, a car, a walker, a ragdoll and a grasp: what contacts keep and what they cost",
    ),
    ("soak", "every built-in scene and every character for minutes on end: gaps, energy, memory, rest"),
    ("servo", "the robot on its feet, every joint a servo, by stiffness"),
    ("assembly", "broken poses brought together, frames of posing and shaking [Faure 1998]"),
    ("worm", "time per step of a worm in flesh, explicit and implicit [Kim 2008, table 2]"),
    ("fish", "time per step of a fish in flesh, explicit and implicit [Kim 2008, table 2]"),
    ("finger", "time per step of a finger in flesh, explicit and implicit [Kim 2008, table 2]"),
    ("flesh", "flesh of every stiffness from flattened, scrambled and stretched starts, at steps of every size"),
    ("skin", "time per step of characters in soft skin, by what is done [Galoppo 2007, table 1]"),
    (
        "condensation",
        "error of the condensed skeleton against the coupled solution, by refinements [Galoppo 2007, §5.1]",
    ),
    ("tubes", "tubes in soft skin by stiffness, friction, bones and moving constraints [Galoppo 2007, fig. 6]"),
    ("retarget", "recorded motions on the figures of a folder: feet that stand"),
    ("rigs", "the rigs of a folder of characters: masses, hinges, rest, clips followed"),
    ("together", "every solver with every feature, one small run each, against the default step at a small step"),
];

/// Runs a bench, or lists them.
pub(crate) fn run(args: &BenchArgs, terminal: &Terminal) -> Result<(), Error> {
    match &args.name {
        Some(Name::Chain(args)) => chain::run(args, terminal),
        Some(Name::Hand(args)) => hand::run(args, terminal),
        Some(Name::Trees(args)) => trees::run(args, terminal),
        Some(Name::Whip(args)) => whip::run(args, terminal),
        Some(Name::Stiffness(args)) => stiffness::run(args, terminal),
        Some(Name::Drag(args)) => drag::run(args, terminal),
        Some(Name::Assembly(args)) => assembly::run(args, terminal),
        Some(Name::Loops(args)) => loops::run(args, terminal),
        Some(Name::Contacts(args)) => contacts::run(args, terminal),
        Some(Name::Soak(args)) => soak::run(args, terminal),
        Some(Name::Studio(args)) => studio::run(args, terminal),
        Some(Name::Servo(args)) => servo::run(args, terminal),
        Some(Name::Worm(args)) => creatures::run("worm", args, terminal),
        Some(Name::Fish(args)) => creatures::run("fish", args, terminal),
        Some(Name::Finger(args)) => creatures::run("finger", args, terminal),
        Some(Name::Flesh(args)) => flesh::run(args, terminal),
        Some(Name::Skin(args)) => skin::run(args, terminal),
        Some(Name::Condensation(args)) => skin::run_condensation(args, terminal),
        Some(Name::Papers(args)) => papers::run(args, terminal),
        Some(Name::Rest(args)) => rest::run(args, terminal),
        Some(Name::Tubes(args)) => skin::run_tubes(args, terminal),
        Some(Name::Retarget(args)) => retarget::run(args, terminal),
        Some(Name::Rigs(args)) => rigs::run(args, terminal),
        Some(Name::Together(args)) => together::run(args, terminal),
        Some(Name::Unknown(words)) => Err(unknown(words.first().map_or("", String::as_str))),
        None => list(terminal),
    }
}

/// There is no bench of this name.
fn unknown(name: &str) -> Error {
    let names = || NAMES.iter().map(|(name, _)| *name);
    let hint = nearest(name, names()).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let list = names().collect::<Vec<_>>().join(", ");
    Error::wrong(
        "cli/usage",
        format!("there is no bench \"{name}\""),
        format!("{hint}There are {list}; `supple bench` tells more"),
    )
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
    /// Write a file, by its ending: .json (the document), .svg (chain, trees, worm, fish, finger: the figure), .html (papers, whip: the page); may be given again
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

impl Destination {
    fn files(&self, endings: &[&'static str]) -> Result<Outputs, Error> {
        Outputs::check(&self.output, endings)
    }

    /// Writes the document into the files that end in .json, prints it or calls `show`, and tells what was written.
    fn deliver(
        &self,
        document: &impl Serialize,
        files: &Outputs,
        terminal: &Terminal,
        show: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        for path in files.ending("json") {
            output::write_json(path, document)?;
        }
        if self.json {
            output::print_json(document)?;
        } else {
            show()?;
        }
        files.tell(terminal);
        Ok(())
    }
}

/// The document of a bench that has nothing but rows.
#[derive(Debug, Serialize)]
struct Document<Row> {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

impl<Row> Document<Row> {
    /// Prints the name of the bench with some words, the rows as a table, and the machine.
    fn print(&self, words: &str, rows: &Table, terminal: &Terminal) -> Result<(), Error> {
        output::print(|out| {
            writeln!(out, "{}  {}", terminal.bold(self.bench), terminal.faint(words))?;
            rows.write(out, terminal)?;
            writeln!(out)?;
            writeln!(out, "  {}", terminal.faint(&self.machine.words()))
        })
    }
}

/// The machine that the figures are from.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    /// Null where the system does not tell.
    cpu: Option<String>,
    cores: usize,
    os: &'static str,
    arch: &'static str,
}

impl Machine {
    pub(crate) fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cpu: cpu_model(&info),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
        }
    }

    pub(crate) fn words(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("unknown processor");
        format!("{cpu}, {}, {} {}", crate::table::count(self.cores, "core", "cores"), self.os, self.arch)
    }
}

fn cpu_model(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The exponent `p` of `time ∝ sizeᵖ`, by least squares of logarithms over (size, time); `None` with fewer than two sizes.
fn slope(points: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let points: Vec<(f64, f64)> = points.into_iter().map(|(size, time)| (size.ln(), time.ln())).collect();
    let n = points.len() as f64;
    let mean = points.iter().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    let over: f64 = points.iter().map(|p| (p.0 - mean.0) * (p.1 - mean.1)).sum();
    let under: f64 = points.iter().map(|p| (p.0 - mean.0).powi(2)).sum();
    (under > 0.0).then(|| over / under)
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
    /// Mean over a run of the shortest time that each step took in any run \[µs\].
    us_per_step: f64,
    /// Steps of a run: fewer than asked for when they take too long.
    steps: usize,
    /// Over a run \[m\]; the same in every run.
    max_joint_gap: f64,
    limits_active_max: u32,
    /// Corrections of solver `impulse` over a run, and the most in a step.
    corrections: u64,
    corrections_max: u32,
    velocity_corrections: u64,
}

/// Runs are repeated until this much time has been measured.
const MEASURED_AT_LEAST: Duration = Duration::from_millis(300);
/// Others share the machine: a run is done at least this often…
const RUNS_AT_LEAST: usize = 5;
/// …unless that takes longer than this.
const REPEATED_AT_MOST: Duration = Duration::from_secs(6);
/// A run that takes longer is cut off here.
const MEASURED_AT_MOST: Duration = Duration::from_secs(20);

/// The times of the steps of a run that is repeated. Every repetition does the same, so what a step took longer than its
/// shortest time was taken by others.
#[derive(Debug, Default)]
struct Stopwatch {
    shortest: Vec<Duration>,
    runs: usize,
    /// Steps done in the present run.
    step: usize,
    /// In the present run.
    elapsed: Duration,
    /// In all runs.
    measured: Duration,
}

impl Stopwatch {
    /// Whether the run should be done (again); if so it begins.
    fn wants_a_run(&mut self) -> bool {
        let wanted =
            self.measured < MEASURED_AT_LEAST || (self.runs < RUNS_AT_LEAST && self.measured < REPEATED_AT_MOST);
        if wanted {
            self.runs += 1;
            (self.step, self.elapsed) = (0, Duration::ZERO);
        }
        wanted
    }

    /// Does and times a step of the present run.
    fn time<R>(&mut self, step: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = step();
        let time = start.elapsed();
        match self.shortest.get_mut(self.step) {
            Some(shortest) => *shortest = time.min(*shortest),
            None => self.shortest.push(time),
        }
        self.step += 1;
        self.elapsed += time;
        self.measured += time.max(Duration::from_nanos(1)); // a coarse clock must not keep us here
        result
    }

    /// Whether the present run has taken too long.
    fn is_late(&self) -> bool {
        self.elapsed > MEASURED_AT_MOST
    }

    fn us_per_step(&self) -> f64 {
        1e6 * self.shortest.iter().sum::<Duration>().as_secs_f64() / self.shortest.len() as f64
    }
}

impl Case<'_> {
    /// Times whole runs from the start, each step by itself; what directs the scene is not timed.
    fn time(&self) -> Result<Timing, Error> {
        Ok(self.time_each()?.0)
    }

    /// The same, with the shortest time of each step.
    fn time_each(&self) -> Result<(Timing, Vec<Duration>), Error> {
        let mut work = Work::new(&self.scene.model);
        // The first step touches fresh memory: it is done once beforehand.
        self.play(1, &mut work, &mut Stopwatch::default())?;
        let mut watch = Stopwatch::default();
        let mut timing = Timing::default();
        while watch.wants_a_run() {
            timing = self.play(self.steps, &mut work, &mut watch)?;
        }
        Ok((Timing { us_per_step: watch.us_per_step(), steps: watch.shortest.len(), ..timing }, watch.shortest))
    }

    /// What the steps reported, taken together.
    fn play(&self, steps: usize, work: &mut Work, watch: &mut Stopwatch) -> Result<Timing, Error> {
        let model = &self.scene.model;
        let (mut state, mut input) = (self.scene.state.clone(), self.input.clone());
        let mut all = Timing::default();
        for k in 0..steps {
            self.scene.direct(state.time, &mut input);
            let done = watch
                .time(|| step(model, &input, &mut state, work))
                .map_err(|e| Error::step(&e, format_args!("{}, step {}", self.scene.name, k + 1)))?;
            all.max_joint_gap = all.max_joint_gap.max(done.max_joint_gap);
            all.limits_active_max = all.limits_active_max.max(done.limits_active);
            all.corrections += u64::from(done.corrections);
            all.corrections_max = all.corrections_max.max(done.corrections);
            all.velocity_corrections += u64::from(done.velocity_corrections);
            if watch.is_late() {
                break;
            }
        }
        Ok(all)
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

    #[test]
    fn the_shortest_time_of_each_step_counts() {
        let mut watch = Stopwatch::default();
        while watch.wants_a_run() {
            for ms in if watch.runs == 1 { [50, 1] } else { [1, 60] } {
                watch.time(|| std::thread::sleep(Duration::from_millis(ms)));
            }
        }
        // Sleeps last at least as long as asked, and a loaded machine adds to them: far from the 55 ms of a run.
        let us = watch.us_per_step();
        assert!((1e3..25e3).contains(&us), "{us}");
        assert_eq!((watch.shortest.len(), watch.runs >= RUNS_AT_LEAST), (2, true));
    }
}
