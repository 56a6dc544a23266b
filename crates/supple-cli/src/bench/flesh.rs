//! `supple bench flesh`: a block of flesh of every stiffness from any start, at steps of every size.

use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::scenes::above_zero;
use crate::table::{Align, Table, figure, given, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use supple::flesh::{Hold, Lattice, Split};
use supple::glam::DVec3;
use supple::{BodySpec, FleshMaterial, FleshSpec, Input, Model, ModelBuilder, Pose, Shape, State, Work, measure, step};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct FleshArgs {
    /// How long each run lasts, in seconds
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = above_zero, allow_hyphen_values = true)]
    seconds: f64,
    /// Steps of a run at most; 20 for a quick look
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    #[command(flatten)]
    destination: Destination,
}

const STIFFNESS: [f64; 5] = [1e3, 1e4, 1e5, 1e6, 1e7];
const POISSON: [f64; 3] = [0.0, 0.4, 0.49];
const STEPS: [f64; 3] = [1.0 / 30.0, 1.0 / 60.0, 1.0 / 1000.0];
const STARTS: [&str; 4] = ["rest", "flattened", "scrambled", "stretched"];

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: &'static str,
    stiffness: f64,
    poisson: f64,
    dt: f64,
    start: &'static str,
    finite: bool,
    inverted_start: usize,
    inverted_end: usize,
    /// Share of all elements that are inverted at the end.
    not_returned: f64,
    /// Newton steps a step, mean.
    newton_mean: f64,
    /// Share of steps solved to the tolerance.
    converged: f64,
    /// \[J\], of everything, at the start and at the end.
    energy_first: f64,
    energy_last: f64,
}

/// Measures, writes, prints.
pub(super) fn run(args: &FleshArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let runs = STIFFNESS.len() * POISSON.len() * STEPS.len() * STARTS.len();
    let bar = terminal.progress(runs as u64, "runs");
    let mut rows = Vec::with_capacity(runs);
    for stiffness in STIFFNESS {
        for poisson in POISSON {
            let model = block(stiffness, poisson)?;
            for dt in STEPS {
                for start in STARTS {
                    rows.push(measure_run(&model, stiffness, poisson, dt, start, args)?);
                    bar.inc(1);
                }
            }
        }
    }
    bar.finish_and_clear();
    let mut table = Table::new([
        ("stiffness [Pa]", Align::Right),
        ("Poisson", Align::Right),
        ("dt [s]", Align::Right),
        ("start", Align::Left),
        ("finite", Align::Left),
        ("inverted", Align::Right),
        ("at end", Align::Right),
        ("Newton", Align::Right),
        ("converged", Align::Right),
        ("energy [J]", Align::Right),
        ("at end", Align::Right),
    ]);
    for row in &rows {
        table.row([
            small(row.stiffness),
            given(row.poisson),
            crate::table::fraction(row.dt),
            row.start.into(),
            if row.finite { "yes".into() } else { "no".into() },
            row.inverted_start.to_string(),
            row.inverted_end.to_string(),
            figure(row.newton_mean),
            figure(row.converged),
            small(row.energy_first),
            small(row.energy_last),
        ]);
    }
    let document = Document { bench: "flesh", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || {
        document.print("a block of 4 × 2 × 2 cells of 0.1 m on a bone", &table, terminal)
    })
}

/// A block of 96 tetrahedra, held at one end by a heavy bone that floats.
fn block(young: f64, poisson: f64) -> Result<Model, Error> {
    let mut builder = ModelBuilder::new();
    let shape = Shape::cuboid(0.1, 0.2, 0.2);
    let bone = builder.body(BodySpec::new("bone").shape(shape, 1000.0).pose(Pose::at(DVec3::new(-0.05, 0.1, 0.1))));
    let lattice = Lattice { cell: DVec3::splat(0.1), origin: DVec3::ZERO, split: Split::Six };
    let hold = Hold { body: bone.into(), from: DVec3::new(0.0, 0.0, 0.1), to: DVec3::new(0.0, 0.2, 0.1), reach: 0.101 };
    let material = FleshMaterial { young, poisson, ..FleshMaterial::default() };
    builder.flesh(FleshSpec { cage: lattice.block([4, 2, 2]), surface: None, material, holds: vec![hold] });
    builder.build().map_err(|e| Error::failed("cli/bug", e.to_string()))
}

fn measure_run(
    model: &Model,
    stiffness: f64,
    poisson: f64,
    dt: f64,
    start: &'static str,
    args: &FleshArgs,
) -> Result<Row, Error> {
    let Some(flesh) = model.flesh() else { return Err(Error::failed("cli/bug", "no flesh".to_owned())) };
    let mut state = model.start();
    deform(&mut state, start);
    let (mut work, input) = (Work::new(model), Input { dt, gravity: DVec3::ZERO, ..Input::default() });
    let mut nodes = Vec::new();
    let mut inverted = |state: &State| {
        flesh.positions(state, &mut nodes);
        flesh.inverted(&nodes)
    };
    let (inverted_start, energy_first) = (inverted(&state), measure::energy(model, &input, &state).total());
    let steps = ((args.seconds / dt).round().max(1.0) as usize).min(args.steps as usize);
    let (mut newton, mut unsettled, mut finite) = (0u64, 0u64, true);
    for _ in 0..steps {
        match step(model, &input, &mut state, &mut work) {
            Ok(report) => {
                newton += u64::from(report.flesh_newton);
                unsettled += u64::from(report.flesh_unsettled.min(1));
            }
            Err(_) => {
                finite = false;
                break;
            }
        }
    }
    let inverted_end = inverted(&state);
    Ok(Row {
        scene: "block",
        stiffness,
        poisson,
        dt,
        start,
        finite: finite && state.is_finite(),
        inverted_start,
        inverted_end,
        not_returned: inverted_end as f64 / flesh.elements.len() as f64,
        newton_mean: newton as f64 / steps as f64,
        converged: 1.0 - unsettled as f64 / steps as f64,
        energy_first,
        energy_last: measure::energy(model, &input, &state).total(),
    })
}

/// Moves the free nodes.
fn deform(state: &mut State, start: &str) {
    // xorshift64*: the same numbers in every run
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = || {
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        (seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    };
    for node in &mut state.nodes {
        match start {
            "flattened" => node.position.y = 0.1,
            "scrambled" => node.position = DVec3::new(0.4 * random(), 0.2 * random(), 0.2 * random()),
            "stretched" => node.position.x *= 3.0,
            _ => {}
        }
    }
}
