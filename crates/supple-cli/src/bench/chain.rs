//! `supple bench chain`: time per step against the number of links [Hernández 2011, fig. 4].
//!
//! The paper gives 22 ms for 1,000 bones and 285 ms for 10,000, and claims that the time is linear in their number.

use super::trial::LINK;
use super::{Case, Destination, Machine, peak, slope};
use crate::error::Error;
use crate::output::{self, Captions, Series, SeriesKind};
use crate::settings;
use crate::table::{Align, Table, figure, grouped, small};
use crate::terminal::Terminal;
use clap::Args;
use plotters::style::RGBColor;
use serde::Serialize;
use supple::solver::Threads;
use supple::{Input, Scene, Solver, Tree, TreeScheme};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct ChainArgs {
    /// Numbers of links
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "10,100,1000,10000,100000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    links: Vec<u32>,
    /// Simulated time of a run, in steps of 1/60 s; a run that takes too long is cut off
    #[arg(long, value_name = "S", default_value = "1", allow_hyphen_values = true)]
    seconds: String,
    #[command(flatten)]
    destination: Destination,
}

/// Length of a step \[s\].
const DT: f64 = 1.0 / 60.0;
/// Of the published step, per link: 989 for a ball with a spring, counted by running the kernels on a number that
/// counts (a multiply-add is two), and about 100 for the gyroscopic term.
const FLOPS: f64 = 1090.0;
/// Links and ms per frame [Hernández 2011, fig. 4].
const PUBLISHED: [(u32, f64); 2] = [(1000, 22.0), (10_000, 285.0)];
/// The slope is taken over these numbers of links: below, the cost of a step itself shows.
const SLOPE_RANGE: std::ops::RangeInclusive<u32> = 100..=100_000;

/// The ways a chain is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Variant {
    /// The published step on one thread.
    Plain,
    /// What a user gets who sets nothing.
    Default,
}

impl Variant {
    const ALL: [Variant; 2] = [Variant::Plain, Variant::Default];

    fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::Default => "default",
        }
    }

    fn solver(self) -> Solver {
        match self {
            Variant::Plain => {
                Solver::Tree(Tree { scheme: TreeScheme::Published, threads: Threads::One, ..Tree::default() })
            }
            Variant::Default => Input::default().solver,
        }
    }

    fn colour(self) -> RGBColor {
        match self {
            Variant::Plain => RGBColor(0, 114, 178),
            Variant::Default => RGBColor(0, 158, 115),
        }
    }
}

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    /// What one core does at most with scalars, measured in this run.
    peak_gflops: f64,
    rows: Vec<Row>,
    slope: Slopes,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scene: String,
    pub(super) links: u32,
    pub(super) variant: Variant,
    pub(super) us_per_step: f64,
    us_per_link: f64,
    /// Over the run \[m\].
    max_joint_gap: f64,
    /// The gap in lengths of a link.
    gap_per_link: f64,
    /// Share of the scalar peak that the step reaches; null where its operations are not counted.
    peak_share: Option<f64>,
    pub(super) published_ms: Option<f64>,
    /// Published over measured.
    ratio_to_published: Option<f64>,
    /// Steps that were timed.
    steps: usize,
}

/// Exponents `p` of `time ∝ linksᵖ`; null with fewer than two numbers of links.
#[derive(Debug, Serialize)]
struct Slopes {
    plain: Option<f64>,
    default: Option<f64>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &ChainArgs, terminal: &Terminal) -> Result<(), Error> {
    let steps = settings::steps(&args.seconds, DT)?;
    let files = args.destination.files(&["json", "svg"])?;

    let peak_gflops = peak::gflops();
    let mut rows = Vec::new();
    let bar = terminal.progress((args.links.len() * Variant::ALL.len()) as u64, "runs");
    for &links in &args.links {
        bar.set_message(format!("{} links", grouped(links as usize)));
        bar.tick();
        rows.extend(of_links(links, steps, peak_gflops)?);
        bar.inc(Variant::ALL.len() as u64);
    }
    bar.finish_and_clear();

    let slope = Slopes { plain: slope_of(&rows, Variant::Plain), default: slope_of(&rows, Variant::Default) };
    let document = Document { bench: "chain", machine: Machine::here(), peak_gflops, rows, slope };
    for path in files.ending("svg") {
        output::write_text(path, &chart(&document.rows)?)?;
    }
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// A chain of so many links, in both ways.
pub(super) fn of_links(links: u32, steps: usize, peak_gflops: f64) -> Result<Vec<Row>, Error> {
    let name = format!("chain:{links},stiffness=10,damping=0.01");
    let scene = Scene::parse(&name).map_err(|e| Error::scene(&e, &name))?;
    Variant::ALL.into_iter().map(|variant| measure(&scene, links, variant, steps, peak_gflops)).collect()
}

fn measure(scene: &Scene, links: u32, variant: Variant, steps: usize, peak_gflops: f64) -> Result<Row, Error> {
    let input = Input { dt: DT, solver: variant.solver(), ..scene.input.clone() };
    let timing = Case { scene, input, steps }.time()?;
    let published_ms = PUBLISHED.iter().find(|(n, _)| *n == links).map(|(_, ms)| *ms);
    Ok(Row {
        scene: scene.name.clone(),
        links,
        variant,
        us_per_step: timing.us_per_step,
        us_per_link: timing.us_per_step / f64::from(links),
        max_joint_gap: timing.max_joint_gap,
        gap_per_link: timing.max_joint_gap / LINK,
        peak_share: (variant == Variant::Plain)
            .then(|| FLOPS * f64::from(links) / (1e3 * timing.us_per_step * peak_gflops)),
        published_ms,
        ratio_to_published: published_ms.map(|ms| 1e3 * ms / timing.us_per_step),
        steps: timing.steps,
    })
}

/// The slope of log time over log links, by least squares.
pub(super) fn slope_of(rows: &[Row], variant: Variant) -> Option<f64> {
    let wanted = |row: &&Row| row.variant == variant && SLOPE_RANGE.contains(&row.links);
    slope(rows.iter().filter(wanted).map(|row| (f64::from(row.links), row.us_per_step)))
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("links", Align::Right),
        ("variant", Align::Left),
        ("ms/step", Align::Right),
        ("µs/link", Align::Right),
        ("gap [m]", Align::Right),
        ("gap/link", Align::Right),
        ("of peak", Align::Right),
        ("steps", Align::Right),
        ("published ms", Align::Right),
        ("faster by", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            grouped(row.links as usize),
            row.variant.name().into(),
            figure(1e-3 * row.us_per_step),
            figure(row.us_per_link),
            small(row.max_joint_gap),
            small(row.gap_per_link),
            row.peak_share.map_or("–".into(), |share| format!("{:.0} %", 100.0 * share)),
            grouped(row.steps),
            row.published_ms.map_or("–".into(), |ms| ms.to_string()),
            row.ratio_to_published.map_or("–".into(), |ratio| format!("{ratio:.0}×")),
        ]);
    }
    output::print(|out| {
        use std::io::Write;
        writeln!(out, "{}  {}", terminal.bold("chain"), terminal.faint("stiffness 10 N·m/rad, steps of 1/60 s"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        for (variant, slope) in [("plain", document.slope.plain), ("default", document.slope.default)] {
            if let Some(slope) = slope {
                writeln!(out, "  {variant}: time grows as links to the power {slope:.3} (1 is linear)")?;
            }
        }
        let peak = format!("{}, scalar peak {:.1} GFLOP/s", document.machine.words(), document.peak_gflops);
        writeln!(out, "  {}", terminal.faint(&peak))
    })
}

/// The paper's figure 4 with our curves.
pub(super) fn chart(rows: &[Row]) -> Result<String, Error> {
    let mut series: Vec<Series> = Variant::ALL
        .into_iter()
        .map(|variant| Series {
            label: format!("Supple, {}", variant.name()),
            colour: variant.colour(),
            kind: SeriesKind::Line,
            weight: if variant == Variant::Plain { 5 } else { 2 },
            points: rows
                .iter()
                .filter(|row| row.variant == variant)
                .map(|row| (f64::from(row.links), 1e-3 * row.us_per_step))
                .collect(),
        })
        .collect();
    series.push(Series {
        label: "published".into(),
        colour: RGBColor(213, 94, 0),
        kind: SeriesKind::Crosses,
        weight: 2,
        points: PUBLISHED.iter().map(|&(links, ms)| (f64::from(links), ms)).collect(),
    });
    output::log_log_chart(
        Captions { title: "A chain of stiff joints: time per frame", x: "bones", y: "ms per frame" },
        &series,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(links: u32, us_per_step: f64) -> Row {
        Row {
            scene: String::new(),
            links,
            variant: Variant::Plain,
            us_per_step,
            us_per_link: us_per_step / f64::from(links),
            max_joint_gap: 0.0,
            gap_per_link: 0.0,
            peak_share: None,
            published_ms: None,
            ratio_to_published: None,
            steps: 1,
        }
    }

    #[test]
    fn the_slope_is_the_exponent() {
        let rows = [row(10, 1e9), row(100, 5.0), row(1000, 500.0), row(10_000, 50_000.0)];
        // a few roundings of logarithms near 10
        assert!((slope_of(&rows, Variant::Plain).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(slope_of(&rows, Variant::Default), None);
        assert_eq!(slope_of(&rows[..2], Variant::Plain), None);
    }
}
