//! `supple bench soak`: every built-in scene and every character at hand for minutes on end. What a short run does not show: energy and gaps that
//! come once in a while, figures that never lie still, memory that grows.

use super::processor::Processor;
use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::scenes::above_zero;
use crate::settings;
use crate::table::{Align, Table, figure, small};
use crate::terminal::{Terminal, harmless};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use supple::glam::DVec3;
use supple::scenes::catalogue;
use supple::tone::{Change, Tone, Tones};
use supple::{Input, Scene, State, Work, measure, step};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct SoakArgs {
    /// Only scenes and files whose name contains this, such as deer or CesiumMan; may be given again
    #[arg(long, value_name = "NAME")]
    scene: Vec<String>,
    /// How much time to simulate of each, in seconds
    #[arg(long, value_name = "S", default_value = "600", allow_hyphen_values = true)]
    seconds: String,
    /// End a run after so much time of the processor, in seconds; its row says how far it came, and that it has not passed.
    /// On Linux and macOS that is what this process was given, elsewhere the time of the clock
    #[arg(long, value_name = "S", value_parser = above_zero)]
    machine_seconds: Option<f64>,
    /// A folder of characters, looked through with the folders in it; else that of the variable SUPPLE_ASSETS
    #[arg(long, value_name = "FOLDER")]
    characters: Option<PathBuf>,
    #[command(flatten)]
    destination: Destination,
}

/// Every script has done all it does within this time, and whatever falls lies \[s\].
const CYCLE: f64 = 20.0;
/// The widest a joint may open, as a share of the scene's size.
const MOST_GAP: f64 = 1e-5;
/// The most that the energy may rise above that of the first cycle, as a share of what is at stake.
const MOST_EXCESS: f64 = 0.2;
/// The most that memory may grow after the first cycle \[bytes\].
const MOST_MEMORY: f64 = 1e6;
/// The fastest that what is held or has fallen may be after the first cycle \[m/s\].
const MOST_SPEED: f64 = 1e-3;
/// Built-in scenes that come to rest, with the names of their parameters left out.
const RESTING: [&str; 5] = ["stack", "block", "ragdoll", "pile", "servos"];
/// Folders of characters.
const FOLDERS: [&str; 4] = ["gltf", "characters", "vrm", "fbx"];

/// How a scene is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum How {
    /// As its script says.
    Scripted,
    /// A character as it opens: its roots are held where they are.
    Held,
    /// A character let go, to fall to the floor.
    Loose,
    /// The same in the state [`Tone::Limp`]: no springs and motors, the damping of tissue kept.
    Limp,
}

/// A run of the bench.
struct Case {
    /// What the row is called.
    name: String,
    /// What is opened.
    source: String,
    how: How,
}

impl Case {
    /// Whether it must come to rest.
    fn rests(&self) -> bool {
        let name = self.name.split(':').next().unwrap_or_default();
        self.how != How::Scripted || RESTING.contains(&name)
    }
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    how: How,
    /// Simulated time \[s\], and how long the processor worked for that (elsewhere than on Linux and macOS: the time of the clock).
    seconds: f64,
    machine_seconds: f64,
    /// Whether it was simulated to the end; all else is of the time until then.
    ended: bool,
    /// What gaps are measured against: the box around all bodies at the start \[m\].
    size: f64,
    /// Over the run \[m\].
    max_gap: f64,
    /// Rise of the energy above the most of the first cycle, as a share of m g times the size, or of what the first cycle moved if that is more.
    energy_excess: f64,
    /// From the end of the first cycle to that of the run \[bytes\]; null where the system does not tell.
    memory_growth: Option<f64>,
    /// The fastest that a body was after the first cycle \[m/s\]; null for what does not come to rest, and for shorter runs.
    rest_speed: Option<f64>,
    /// Parts of steps that were done again in halves.
    fallbacks: u64,
    /// Parts that were done by the last resort.
    resorts: u64,
    passed: bool,
    /// The bounds that are broken, in words.
    broken: Vec<String>,
}

/// Runs, writes, prints; fails when a bound is broken.
pub(super) fn run(args: &SoakArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    settings::steps(&args.seconds, Input::default().dt)?; // a wrong one is told before anything runs
    let characters = args.characters.clone().or_else(|| std::env::var_os("SUPPLE_ASSETS").map(PathBuf::from));
    let cases: Vec<Case> = cases(characters.as_deref(), terminal)?
        .into_iter()
        .filter(|case| args.scene.is_empty() || args.scene.iter().any(|part| case.name.contains(part)))
        .collect();
    if cases.is_empty() {
        return Err(Error::setting(
            "--scene names nothing that this bench runs",
            "leave it out, or give a part of a name",
        ));
    }
    let bar = terminal.progress(cases.len() as u64, "runs");
    let mut rows = Vec::new();
    for case in cases {
        bar.set_message(harmless(&case.name).into_owned());
        bar.tick();
        match open(&case) {
            Ok(Some(opened)) => {
                let steps = settings::steps(&args.seconds, opened.0.input.dt)?;
                let row = soak(&case, opened, steps, args.machine_seconds.unwrap_or(f64::INFINITY));
                bar.suspend(|| terminal.note(told(&row)));
                rows.push(row);
            }
            Ok(None) => bar.suspend(|| terminal.note(format_args!("{}: nothing in it can move", case.name))),
            Err(refused) if case.how == How::Scripted => return Err(refused),
            Err(_) => bar.suspend(|| terminal.note(format_args!("{}: not a file that opens", case.name))),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let failed: Vec<String> = rows.iter().filter(|row| !row.passed).map(|row| row.scene.clone()).collect();
    let document = Document { bench: "soak", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))?;
    match failed.as_slice() {
        [] => Ok(()),
        _ => Err(Error::failed("bench/soak", format!("bounds are broken by {}", failed.join(", ")))),
    }
}

/// All that is run: built-in scenes, then characters, held, let go and limp.
fn cases(characters: Option<&Path>, terminal: &Terminal) -> Result<Vec<Case>, Error> {
    let scripted = |name: &str| Case { name: name.to_owned(), source: name.to_owned(), how: How::Scripted };
    let mut cases: Vec<Case> = catalogue().iter().map(|info| scripted(info.name)).collect();
    let Some(folder) = characters else {
        terminal.note("no characters: name their folder by --characters or SUPPLE_ASSETS");
        return Ok(cases);
    };
    let mut files = Vec::new();
    // The folders of the assets that hold characters; of a folder without them all.
    let known: Vec<PathBuf> = FOLDERS.iter().map(|name| folder.join(name)).filter(|path| path.is_dir()).collect();
    let folders = if known.is_empty() { vec![folder.to_owned()] } else { known };
    folders.iter().try_for_each(|folder| find(folder, &mut files))?;
    files.sort_unstable();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        let source = file.to_string_lossy().into_owned();
        cases.extend([How::Held, How::Loose, How::Limp].map(|how| Case {
            name: name.clone(),
            source: source.clone(),
            how,
        }));
    }
    Ok(cases)
}

/// The files of characters in a folder and the folders in it.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let listed = std::fs::read_dir(folder).map_err(|e| {
        let message = format!("--characters: {} cannot be read: {e}", folder.display());
        Error::setting(message, "name a folder of characters that may be read, or leave it out")
    })?;
    for entry in listed.filter_map(Result::ok) {
        let (path, kind) = (entry.path(), entry.file_type());
        if kind.is_ok_and(|kind| kind.is_dir()) {
            find(&path, files)?;
        } else if path
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| supple_assets::CHARACTER_ENDINGS.contains(&e))
        {
            files.push(path);
        }
    }
    Ok(())
}

/// The scene of a case; `None` when it has no joint that could move.
fn open(case: &Case) -> Result<Option<(Scene, Option<Tones>)>, Error> {
    let scene = crate::scenes::open(&case.source, &supple_assets::Files::default())?;
    if case.how == How::Scripted {
        return Ok(Some((scene, None)));
    }
    if scene.model.joints().is_empty() {
        return Ok(None);
    }
    let Scene { model, state, mut input, .. } = scene;
    if case.how != How::Held {
        input.targets.fill(None);
    }
    // As in the studio, what a state asks of the joints follows from how fast they are in each step.
    let tones = (case.how == How::Limp).then(|| {
        let mut tones = Tones::new(&model, model.bodies().len(), 0);
        tones.change(&model, &state, &Change::to(Tone::Limp, 0.0)).expect("every character can be limp");
        tones
    });
    Ok(Some((Scene::from_parts(case.name.clone(), model, state, input), tones)))
}

/// Runs a scene for so many steps, or so many seconds of the processor, and measures it.
fn soak(case: &Case, (scene, mut tones): (Scene, Option<Tones>), steps: usize, most_seconds: f64) -> Row {
    let scene = &scene;
    let mut row = Row {
        scene: case.name.clone(),
        how: case.how,
        seconds: 0.0,
        machine_seconds: 0.0,
        ended: false,
        size: size(scene),
        max_gap: 0.0,
        energy_excess: 0.0,
        memory_growth: None,
        rest_speed: None,
        fallbacks: 0,
        resorts: 0,
        passed: false,
        broken: Vec::new(),
    };
    let (mut state, _) = match scene.assembled_start() {
        Ok(start) => start,
        Err(error) => {
            row.broken.push(error.to_string());
            return row;
        }
    };
    let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
    let mut energies = Energies::new(scene);
    let mut memory = None;
    let cycle = (CYCLE / input.dt).round() as usize;
    let processor = Processor::start();
    for k in 0..steps {
        if processor.seconds() > most_seconds {
            let asked = steps as f64 * input.dt;
            row.broken.push(format!("not ended: {:.1} s of {asked:.0} s in the time that it was given", row.seconds));
            break;
        }
        scene.direct(state.time, &mut input);
        if let Some(tones) = &mut tones {
            tones.direct(&scene.model, &state, &[], &mut input);
        }
        let report = match step(&scene.model, &input, &mut state, &mut work) {
            Ok(report) => report,
            Err(error) => {
                row.broken.push(format!("at {:.2} s: {error}", state.time));
                break;
            }
        };
        row.seconds = (k + 1) as f64 * input.dt;
        row.ended = k + 1 == steps;
        row.max_gap = row.max_gap.max(report.max_joint_gap);
        row.fallbacks += u64::from(report.fallbacks);
        row.resorts += u64::from(report.resorts);
        energies.look(&input, &state, k < cycle);
        if !(state.is_finite() && report.max_joint_gap.is_finite()) {
            row.broken.push(format!("at {:.2} s: a number is not finite", state.time));
            break;
        }
        if k >= cycle {
            memory.get_or_insert_with(resident);
            if case.rests() {
                let fastest = state.bodies.iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max);
                row.rest_speed = Some(row.rest_speed.unwrap_or(0.0).max(fastest));
            }
        }
    }
    row.machine_seconds = processor.seconds();
    row.energy_excess = energies.excess();
    row.memory_growth = memory.flatten().and_then(|before| Some(resident()? - before));
    row.judge();
    row
}

impl Row {
    /// Compares what was measured with the bounds.
    fn judge(&mut self) {
        let bounds = [
            ("gap", "of the size", Some(self.max_gap / self.size), MOST_GAP),
            ("energy excess", "", Some(self.energy_excess), MOST_EXCESS),
            ("memory growth", "bytes", self.memory_growth, MOST_MEMORY),
            ("speed at rest", "m/s", self.rest_speed, MOST_SPEED),
        ];
        for (what, unit, found, most) in bounds {
            if let Some(found) = found
                && (found.is_nan() || found > most)
            {
                let words = format!("{what} {} {unit}", figure(found));
                self.broken.push(format!("{}, at most {}", words.trim_end(), figure(most)));
            }
        }
        self.passed = self.broken.is_empty();
    }
}

/// The box around all bodies at the start, and the edge of a cube of water that weighs as much \[m\].
fn size(scene: &Scene) -> f64 {
    let positions = || scene.state.bodies.iter().map(|body| body.position);
    let low = positions().fold(DVec3::INFINITY, DVec3::min);
    let high = positions().fold(DVec3::NEG_INFINITY, DVec3::max);
    low.distance(high) + (scene.model.mass() / 1000.0).cbrt()
}

/// The energy of a run, against that of its first cycle.
struct Energies<'a> {
    scene: &'a Scene,
    /// Least and most of the first cycle, and the most after it \[J\].
    least: f64,
    most: f64,
    later: f64,
}

impl Energies<'_> {
    fn new(scene: &Scene) -> Energies<'_> {
        Energies { scene, least: f64::INFINITY, most: f64::NEG_INFINITY, later: f64::NEG_INFINITY }
    }

    fn look(&mut self, input: &Input, state: &State, is_first: bool) {
        let energy = measure::energy(&self.scene.model, input, state).total();
        if is_first {
            (self.least, self.most) = (self.least.min(energy), self.most.max(energy));
        } else {
            self.later = self.later.max(energy);
        }
    }

    /// 0 for a run that ends with the first cycle.
    fn excess(&self) -> f64 {
        let stake = measure::energy_at_stake(&self.scene.model, &self.scene.input, size(self.scene));
        let stake = stake.max(self.most - self.least);
        ((self.later - self.most) / stake).max(0.0)
    }
}

/// The memory of this process that is in use \[bytes\]; `None` where the system does not tell.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    resident_of(&status)
}

fn resident_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(1024.0 * kilobytes)
}

/// A row in words, while the bench runs.
fn told(row: &Row) -> String {
    let verdict = if row.passed { "passed".to_owned() } else { row.broken.join("; ") };
    format!("{} ({:?}), {:.0} s: {verdict}", row.scene, row.how, row.seconds).to_lowercase()
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("how", Align::Left),
        ("seconds", Align::Right),
        ("of the machine", Align::Right),
        ("gap [m]", Align::Right),
        ("energy excess", Align::Right),
        ("memory [bytes]", Align::Right),
        ("at rest [m/s]", Align::Right),
        ("fallbacks", Align::Right),
        ("resorts", Align::Right),
        ("passed", Align::Left),
        ("broken", Align::Left),
    ]);
    for row in &document.rows {
        let known = |x: Option<f64>| x.map_or("–".to_owned(), small);
        table.row([
            row.scene.clone(),
            format!("{:?}", row.how).to_lowercase(),
            figure(row.seconds),
            figure(row.machine_seconds),
            small(row.max_gap),
            small(row.energy_excess),
            known(row.memory_growth),
            known(row.rest_speed),
            row.fallbacks.to_string(),
            row.resorts.to_string(),
            if row.passed { "yes" } else { "NO" }.into(),
            row.broken.join("; "),
        ]);
    }
    document.print("scenes and characters for minutes on end", &table, terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let case = Case { name: "pendulum".into(), source: "pendulum".into(), how: How::Scripted };
        soak(&case, open(&case).unwrap().unwrap(), 30, f64::INFINITY)
    }

    #[test]
    fn a_run_that_did_not_end_says_so_and_does_not_pass() {
        let case = Case { name: "pendulum".into(), source: "pendulum".into(), how: How::Scripted };
        let row = soak(&case, open(&case).unwrap().unwrap(), usize::MAX, 0.05);
        assert!(!row.ended && !row.passed && row.seconds > 0.0 && row.machine_seconds >= 0.05, "{row:?}");
        assert!(row.broken[0].starts_with("not ended: "), "{row:?}");
    }

    #[test]
    fn a_pendulum_passes() {
        let row = row();
        assert!(row.passed && row.ended, "{row:?}");
        assert_eq!((row.seconds, row.rest_speed, row.memory_growth), (0.5, None, None));
    }

    /// Energies of 1e-25 J, which rounding makes and takes: no rise of them is one of the scene.
    #[test]
    fn rounding_is_no_energy() {
        let case = Case { name: "bar".into(), source: "bar".into(), how: How::Scripted };
        let row = soak(&case, open(&case).unwrap().unwrap(), 3000, f64::INFINITY);
        assert!(row.passed && row.ended && row.seconds > 2.0 * CYCLE, "{row:?}");
    }

    #[test]
    fn every_bound_that_is_broken_is_told() {
        let wrong = |change: fn(&mut Row)| {
            let mut row = row();
            change(&mut row);
            row.judge();
            assert!(!row.passed, "{row:?}");
            row.broken.len()
        };
        assert_eq!(wrong(|row| row.max_gap = 2e-5 * row.size), 1);
        assert_eq!(wrong(|row| row.energy_excess = 0.21), 1);
        assert_eq!(wrong(|row| row.memory_growth = Some(1.1e6)), 1);
        assert_eq!(wrong(|row| row.rest_speed = Some(1.1e-3)), 1);
        assert_eq!(wrong(|row| (row.max_gap, row.energy_excess) = (f64::NAN, f64::NAN)), 2);
    }

    #[test]
    fn energy_counts_from_the_first_cycle() {
        let scene = Scene::parse("pendulum").unwrap();
        let mut energies = Energies::new(&scene);
        energies.look(&scene.input, &scene.state, true);
        assert_eq!(energies.excess(), 0.0);
        let mut fast = scene.state.clone();
        fast.bodies[0].velocity.linear = DVec3::X * 10.0;
        energies.look(&scene.input, &fast, false);
        assert!(energies.excess() > MOST_EXCESS);
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(resident_of("VmPeak:\t9 kB\nVmRSS:\t  1024 kB\n"), Some(1048576.0));
        assert_eq!(resident_of(""), None);
    }

    #[test]
    fn what_rests_is_known_by_its_name() {
        let case = |name: &str, how| Case { name: name.into(), source: name.into(), how };
        assert!(case("stack", How::Scripted).rests() && case("a.glb", How::Loose).rests());
        assert!(!case("deer", How::Scripted).rests());
        assert!(RESTING.iter().all(|name| catalogue().iter().any(|info| info.name == *name)));
    }
}
