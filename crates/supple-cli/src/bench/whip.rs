//! `supple bench whip`: undamped chains that fall from horizontal, at frame-size steps. What the default step promises
//! (no gap, no explosion, the energy kept, a small error, little work) is measured over a grid, beside the published step.

use super::trial::{Fall, LINK, Trial, tip};
use super::{Destination, Machine, whip_page};
use crate::cores::on_all_cores;
use crate::error::Error;
use crate::output;
use crate::table::{Align, Table, figure, fraction, given, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::ops::ControlFlow;
use supple::glam::DVec3;
use supple::solver::Mode;
use supple::{Scene, TreeScheme};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct WhipArgs {
    /// Only 10 links, and no steps of 1/240 s
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    destination: Destination,
}

const LINKS: [u32; 3] = [10, 30, 100];
/// \[N·m/rad\]
const STIFFNESSES: [f64; 5] = [0.0, 1.0, 100.0, 1e4, 1e6];
/// In masses of the last link.
const TIP_MASSES: [f64; 3] = [1.0, 100.0, 1e4];
/// \[s\]
const DTS: [f64; 3] = [1.0 / 30.0, 1.0 / 60.0, 1.0 / 240.0];
/// Simulated time \[s\].
const SECONDS: f64 = 5.0;
/// A run whose energy grows by more than this share of what was released has exploded.
const EXPLODED: f64 = 0.05;
/// Steps of the reference \[s\].
const REFERENCE_DTS: [f64; 2] = [1.0 / 3840.0, 1.0 / 7680.0];
/// A reference is none when its two runs are further apart \[m\].
const REFERENCE_CONVERGED: f64 = 1e-3;

/// A whip.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    links: u32,
    stiffness: f64,
    tip_mass: f64,
}

impl Setting {
    fn scene(self) -> Result<Scene, Error> {
        let Setting { links, stiffness, tip_mass } = self;
        let name = format!("whip:{links},stiffness={stiffness},tip_mass={tip_mass}");
        Scene::parse(&name).map_err(|e| Error::scene(&e, &name))
    }
}

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    machine: Machine,
    rows: Vec<Row>,
    /// The published step on the same grid.
    published: Vec<Row>,
    bounds: Vec<Met>,
}

/// The keys are a promise: add, do not rename. Null where a number was lost in an explosion.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) scene: String,
    pub(super) links: u32,
    /// \[N·m/rad\]
    pub(super) stiffness: f64,
    /// In masses of the last link.
    pub(super) tip_mass: f64,
    /// \[s\]
    pub(super) dt: f64,
    pub(super) bounded: bool,
    /// Over the run \[m\].
    pub(super) max_joint_gap: f64,
    /// The gap in lengths of a link.
    pub(super) gap_per_link: f64,
    /// Largest over the run, as a share of the energy released between horizontal and hanging.
    pub(super) energy_gain: f64,
    /// After 1 s, as such a share.
    pub(super) energy_loss_1s: f64,
    /// After 5 s, as such a share.
    pub(super) energy_loss_5s: f64,
    pub(super) substeps_mean: f64,
    pub(super) factorisations_mean: f64,
    pub(super) factorisations_max: u32,
    /// Median.
    pub(super) us_per_frame: f64,
    /// Distance of the far end from the reference after 1 s \[m\]; null when the reference has not converged.
    pub(super) tip_error_1s: Option<f64>,
    /// Distance between the reference's two runs \[m\].
    pub(super) reference_error: f64,
}

/// How many rows meet a bound.
#[derive(Debug, Serialize)]
pub(super) struct Met {
    pub(super) bound: &'static str,
    pub(super) met: usize,
    pub(super) published_met: usize,
    /// Rows that the bound applies to.
    pub(super) of: usize,
}

/// What a row must keep; `None` where the bound does not apply.
struct Bound {
    words: &'static str,
    met: fn(&Row) -> Option<bool>,
}

const BOUNDS: [Bound; 7] = [
    Bound { words: "bounded", met: |row| Some(row.bounded) },
    Bound { words: "gap per link at most 1e-6", met: |row| Some(row.gap_per_link <= GAP_BOUND) },
    Bound { words: "energy gain at most 1 %", met: |row| Some(row.energy_gain <= GAIN_BOUND) },
    Bound {
        words: "energy loss after 1 s at most 2 %",
        met: |row| Some(row.bounded && row.energy_loss_1s <= LOSS_BOUND),
    },
    Bound {
        words: "tip error after 1 s at most 0.12, 0.025, 0.004 m at 1/30, 1/60, 1/240 s",
        met: |row| row.tip_error_1s.map(|error| error <= row.tip_bound()),
    },
    Bound { words: "factorisations at most 25 a frame", met: |row| Some(row.factorisations_mean <= WORK_BOUND) },
    Bound {
        words: "factorisations at most 1.2 a frame where stiffness is 1e6 and tip mass 1",
        met: |row| row.is_calm().then_some(row.factorisations_mean <= CALM_WORK_BOUND),
    },
];

pub(super) const GAP_BOUND: f64 = 1e-6;
pub(super) const GAIN_BOUND: f64 = 0.01;
pub(super) const LOSS_BOUND: f64 = 0.02;
/// Factorisations a frame.
const WORK_BOUND: f64 = 25.0;
const CALM_WORK_BOUND: f64 = 1.2;

impl Row {
    /// \[m\]
    pub(super) fn tip_bound(&self) -> f64 {
        match self.dt {
            dt if dt > 0.02 => 0.12,
            dt if dt > 0.01 => 0.025,
            _ => 0.004,
        }
    }

    /// Factorisations a frame.
    pub(super) fn work_bound(&self) -> f64 {
        if self.is_calm() { CALM_WORK_BOUND } else { WORK_BOUND }
    }

    fn is_calm(&self) -> bool {
        self.stiffness == 1e6 && self.tip_mass == 1.0
    }
}

/// Measures, writes, prints.
pub(super) fn run(args: &WhipArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json", "html"])?;
    let (links, dts) = if args.quick { (&LINKS[..1], &DTS[..2]) } else { (&LINKS[..], &DTS[..]) };
    let mut settings = Vec::new();
    for &links in links {
        for stiffness in STIFFNESSES {
            settings.extend(TIP_MASSES.map(|tip_mass| Setting { links, stiffness, tip_mass }));
        }
    }
    let scenes = settings.iter().map(|setting| setting.scene()).collect::<Result<Vec<_>, _>>()?;

    let bar = terminal.progress((scenes.len() * (1 + dts.len())) as u64, "runs");
    bar.set_message("references");
    bar.tick();
    let references = on_all_cores(&scenes, |scene| {
        let reference = Reference::of(scene);
        bar.inc(1);
        reference
    });
    // One after the other: they are timed.
    let (mut rows, mut published) = (Vec::new(), Vec::new());
    for ((&setting, scene), reference) in settings.iter().zip(&scenes).zip(&references) {
        bar.set_message(scene.name.clone());
        for &dt in dts {
            rows.push(measure(setting, scene, reference, TreeScheme::default(), dt));
            published.push(measure(setting, scene, reference, TreeScheme::Published, dt));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    let bounds = BOUNDS.iter().map(|bound| bound.count(&rows, &published)).collect();
    let document = Document { bench: "whip", machine: Machine::here(), rows, published, bounds };
    for path in files.ending("html") {
        let page = whip_page::page(&document.rows, &document.published, &document.bounds, &document.machine);
        output::write_text(path, &page)?;
    }
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

impl Bound {
    fn count(&self, rows: &[Row], published: &[Row]) -> Met {
        let met = |rows: &[Row]| rows.iter().filter(|row| (self.met)(row) == Some(true)).count();
        let of = rows.iter().filter(|row| (self.met)(row).is_some()).count();
        Met { bound: self.words, met: met(rows), published_met: met(published), of }
    }
}

/// Where the far end is after 1 s, as well as it can be known.
struct Reference {
    tip: DVec3,
    /// Between the two runs; NaN when one of them failed \[m\].
    error: f64,
}

impl Reference {
    /// Nothing damped, two small steps, and the limit of both for a second-order rule.
    fn of(scene: &Scene) -> Reference {
        let [coarse, fine] = REFERENCE_DTS.map(|dt| {
            let trial = Trial {
                scene,
                scheme: TreeScheme::Midpoint(Mode::Conservative),
                dt,
                frames: (1.0 / dt).round() as usize,
            };
            let mut end = DVec3::NAN;
            let counts = trial.watch(|_, state| {
                end = tip(state);
                ControlFlow::Continue(())
            });
            if counts.sound { end } else { DVec3::NAN }
        });
        Reference { tip: fine + (fine - coarse) / 3.0, error: coarse.distance(fine) }
    }
}

fn measure(setting: Setting, scene: &Scene, reference: &Reference, scheme: TreeScheme, dt: f64) -> Row {
    let fall = Fall::new(scene);
    let second = (1.0 / dt).round() as usize;
    let frames = (SECONDS / dt).round() as usize;
    let (mut frame, mut highest) = (0, 0.0f64);
    let (mut loss_1s, mut loss_5s, mut tip_1s) = (f64::NAN, f64::NAN, DVec3::NAN);
    let counts = Trial { scene, scheme, dt, frames }.watch(|input, state| {
        frame += 1;
        let gain = fall.gain(input, state);
        if !gain.is_finite() {
            highest = f64::INFINITY;
            return ControlFlow::Break(());
        }
        highest = highest.max(gain);
        if frame == second {
            (loss_1s, tip_1s) = (-gain, tip(state));
        }
        if frame == frames {
            loss_5s = -gain;
        }
        ControlFlow::Continue(())
    });
    if !counts.sound {
        highest = f64::INFINITY;
    }
    let tip_error = (reference.error <= REFERENCE_CONVERGED).then(|| tip_1s.distance(reference.tip));
    Row {
        scene: scene.name.clone(),
        links: setting.links,
        stiffness: setting.stiffness,
        tip_mass: setting.tip_mass,
        dt,
        bounded: highest < EXPLODED,
        max_joint_gap: counts.max_joint_gap,
        gap_per_link: counts.max_joint_gap / LINK,
        energy_gain: highest,
        energy_loss_1s: loss_1s,
        energy_loss_5s: loss_5s,
        substeps_mean: counts.mean(counts.substeps),
        factorisations_mean: counts.mean(counts.factorisations),
        factorisations_max: counts.factorisations_max,
        us_per_frame: counts.us_per_frame(),
        tip_error_1s: tip_error,
        reference_error: reference.error,
    }
}

fn print(document: &Document, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("links", Align::Right),
        ("N·m/rad", Align::Right),
        ("tip mass", Align::Right),
        ("dt [s]", Align::Right),
        ("bounded", Align::Left),
        ("gap/link", Align::Right),
        ("gain", Align::Right),
        ("loss 1 s", Align::Right),
        ("loss 5 s", Align::Right),
        ("parts", Align::Right),
        ("factorisations", Align::Right),
        ("most", Align::Right),
        ("µs/frame", Align::Right),
        ("tip error [m]", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.links.to_string(),
            given(row.stiffness),
            given(row.tip_mass),
            fraction(row.dt),
            if row.bounded { "yes" } else { "NO" }.into(),
            small(row.gap_per_link),
            small(row.energy_gain),
            small(row.energy_loss_1s),
            small(row.energy_loss_5s),
            format!("{:.2}", row.substeps_mean),
            format!("{:.2}", row.factorisations_mean),
            row.factorisations_max.to_string(),
            figure(row.us_per_frame),
            row.tip_error_1s.map_or("–".into(), |error| format!("{error:.4}")),
        ]);
    }
    let mut bounds = Table::new([
        ("rows of", Align::Right),
        ("default", Align::Right),
        ("published", Align::Right),
        ("keep the bound", Align::Left),
    ]);
    for Met { bound, met, published_met, of } in &document.bounds {
        bounds.row([of.to_string(), met.to_string(), published_met.to_string(), (*bound).into()]);
    }
    output::print(|out| {
        use std::io::Write;
        writeln!(out, "{}  {}", terminal.bold("whip"), terminal.faint("the default step, 5 s, no damping"))?;
        table.write(out, terminal)?;
        writeln!(out)?;
        bounds.write(out, terminal)?;
        writeln!(out)?;
        writeln!(out, "  {}", terminal.faint(&document.machine.words()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_agrees_with_what_is_known() {
        // An independent program, gravity along −Z and the waving along Y there: 5 digits were printed.
        let scene = Setting { links: 10, stiffness: 0.0, tip_mass: 1.0 }.scene().unwrap();
        let reference = Reference::of(&scene);
        let known = DVec3::new(-0.90069, -0.15374, 0.00116);
        assert!(reference.error < 1e-4, "{}", reference.error);
        assert!(reference.tip.distance(known) < 2e-4, "{}", reference.tip);
    }

    #[test]
    fn bounds_of_the_tip_follow_the_step() {
        let scene = Setting { links: 10, stiffness: 1e6, tip_mass: 1.0 }.scene().unwrap();
        let reference = Reference { tip: DVec3::ZERO, error: f64::NAN };
        let setting = Setting { links: 10, stiffness: 1e6, tip_mass: 1.0 };
        let row = |dt| measure(setting, &scene, &reference, TreeScheme::Published, dt);
        assert_eq!(DTS.map(|dt| row(dt).tip_bound()), [0.12, 0.025, 0.004]);
        assert_eq!(row(DTS[0]).work_bound(), 1.2);
        assert_eq!(row(DTS[0]).tip_error_1s, None, "a reference that failed is none");
    }
}
