//! `supple bench stiffness`: the longest step at which an undamped chain that falls from horizontal stays bounded.

use super::trial::{Fall, LINK, Trial};
use super::{Destination, Document, Machine};
use crate::cores::on_all_cores;
use crate::error::Error;
use crate::settings;
use crate::table::{Align, Table, figure, given, grouped, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::ops::ControlFlow;
use supple::{Scene, TreeScheme};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct StiffnessArgs {
    /// Numbers of links
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "10,100")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    links: Vec<u32>,
    /// Stiffnesses of the joints, N·m/rad
    #[arg(long, value_name = "K,K", value_delimiter = ',', default_value = "1e2,1e3,1e4,1e5,1e6,1e7,1e8")]
    stiffness: Vec<String>,
    #[command(flatten)]
    destination: Destination,
}

/// Simulated time of a run \[s\].
const SECONDS: f64 = 5.0;
/// A stable run never has more energy than at its start by more than this share of what is released until it hangs.
const GAIN: f64 = 0.01;
/// The shortest and the longest step tried \[s\].
const DTS: [f64; 2] = [1.0 / 960.0, 0.1];
/// How many lengths are tried, in equal ratios.
const TRIED: usize = 12;

/// The stiffest spring that is measured \[N·m/rad\].
const STIFFEST: f64 = 1e15;

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    links: u32,
    /// \[N·m/rad\]
    stiffness: f64,
    /// The longest step that is stable, with all shorter ones tried \[s\]; null when the shortest is not.
    dt_max: Option<f64>,
    /// The same of the published step, whose joints must also stay within a link \[s\].
    dt_max_published: Option<f64>,
    /// Parts done by the last resort in the run at `dt_max`.
    resorts: u64,
    /// Over that run \[m\].
    max_joint_gap: f64,
    /// Largest over that run, as a share of the energy released.
    energy_gain: f64,
    /// Mean over the frames of that run.
    factorisations_mean: f64,
}

/// Measures, writes, prints.
pub(super) fn run(args: &StiffnessArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let mut scenes = Vec::new();
    for &links in &args.links {
        for text in &args.stiffness {
            let stiffness = settings::number(text).filter(|k| (0.0..=STIFFEST).contains(k)).ok_or_else(|| {
                Error::setting(format!("--stiffness cannot be \"{text}\""), "give numbers from 0 to 1e15: 1e2,1e4")
            })?;
            let name = format!("chain:{links},stiffness={stiffness},damping=0");
            let scene = Scene::parse(&name).map_err(|e| Error::scene(&e, &name))?;
            scenes.push((links, stiffness, scene));
        }
    }

    let bar = terminal.progress(scenes.len() as u64, "chains");
    bar.tick();
    let rows = on_all_cores(&scenes, |(links, stiffness, scene)| {
        let row = row(*links, *stiffness, scene);
        bar.inc(1);
        row
    });
    bar.finish_and_clear();

    let document = Document { bench: "stiffness", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn row(links: u32, stiffness: f64, scene: &Scene) -> Row {
    let best = longest(scene, TreeScheme::default(), f64::INFINITY);
    let published = longest(scene, TreeScheme::Published, LINK);
    Row {
        scene: scene.name.clone(),
        links,
        stiffness,
        dt_max: best.map(|run| run.dt),
        dt_max_published: published.map(|run| run.dt),
        resorts: best.map_or(0, |run| run.resorts),
        max_joint_gap: best.map_or(f64::NAN, |run| run.max_joint_gap),
        energy_gain: best.map_or(f64::NAN, |run| run.energy_gain),
        factorisations_mean: best.map_or(f64::NAN, |run| run.factorisations_mean),
    }
}

/// A run that was stable.
#[derive(Clone, Copy, Debug)]
struct Stable {
    dt: f64,
    resorts: u64,
    max_joint_gap: f64,
    energy_gain: f64,
    factorisations_mean: f64,
}

/// The lengths of a step that are tried, shortest first.
fn tried() -> impl Iterator<Item = f64> {
    let [shortest, longest] = DTS;
    (0..TRIED).map(move |k| match k + 1 {
        TRIED => longest,
        _ => shortest * (longest / shortest).powf(k as f64 / (TRIED - 1) as f64),
    })
}

/// The longest step that is stable together with all shorter ones tried: one that holds by luck does not count.
fn longest(scene: &Scene, scheme: TreeScheme, widest_gap: f64) -> Option<Stable> {
    tried().map_while(|dt| stable(scene, scheme, dt, widest_gap)).last()
}

fn stable(scene: &Scene, scheme: TreeScheme, dt: f64, widest_gap: f64) -> Option<Stable> {
    let fall = Fall::new(scene);
    let (mut highest, mut held) = (0.0f64, true);
    let counts = Trial { scene, scheme, dt, frames: (SECONDS / dt).round() as usize }.watch(|input, state| {
        let gain = fall.gain(input, state);
        highest = highest.max(gain);
        held = gain <= GAIN; // false for NaN
        if held { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (held && counts.sound && counts.max_joint_gap < widest_gap).then(|| Stable {
        dt,
        resorts: counts.resorts,
        max_joint_gap: counts.max_joint_gap,
        energy_gain: highest,
        factorisations_mean: counts.mean(counts.factorisations),
    })
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("links", Align::Right),
        ("N·m/rad", Align::Right),
        ("longest dt [s]", Align::Right),
        ("published dt [s]", Align::Right),
        ("resorts", Align::Right),
        ("gap [m]", Align::Right),
        ("gain", Align::Right),
        ("factorisations", Align::Right),
    ]);
    let length = |dt: Option<f64>| dt.map_or("none".into(), figure);
    for row in &document.rows {
        table.row([
            grouped(row.links as usize),
            given(row.stiffness),
            length(row.dt_max),
            length(row.dt_max_published),
            row.resorts.to_string(),
            small(row.max_joint_gap),
            small(row.energy_gain),
            format!("{:.2}", row.factorisations_mean),
        ]);
    }
    let words = format!("steps of {} to {} s, 5 s each, no damping", figure(DTS[0]), given(DTS[1]));
    document.print(&words, &table, terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_tried_from_short_to_long() {
        let dts: Vec<f64> = tried().collect();
        assert_eq!((dts.len(), dts[0], dts[TRIED - 1]), (TRIED, DTS[0], DTS[1]));
        assert!(dts.is_sorted());
    }
}
