//! `supple bench drag`: characters pulled by a spring whose other end swings to and fro at up to 20 m/s.

use super::trial::Trial;
use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table, figure, fraction, small};
use crate::terminal::Terminal;
use clap::{Args, builder::PossibleValuesParser};
use serde::Serialize;
use std::ops::ControlFlow;
use supple::glam::DVec3;
use supple::{BodyId, Drag, Input, Scene, TreeScheme, measure};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct DragArgs {
    /// Only this character; may be given again
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PULLED.map(|pulled| pulled.name)))]
    scene: Vec<String>,
    #[command(flatten)]
    destination: Destination,
}

/// A character and where it is pulled.
#[derive(Clone, Copy, Debug)]
struct Pulled {
    name: &'static str,
    scene: &'static str,
    /// The last one when none is named.
    body: Option<&'static str>,
    /// In body coordinates \[m\].
    point: DVec3,
}

const fn chain(name: &'static str, scene: &'static str) -> Pulled {
    Pulled { name, scene, body: None, point: DVec3::new(0.05, 0.0, 0.0) } // the far end
}

const PULLED: [Pulled; 5] = [
    chain("chain:10", "chain:10,stiffness=0,damping=0.01"),
    chain("chain:20", "chain:20,stiffness=0,damping=0.01"),
    chain("chain:30", "chain:30,stiffness=0,damping=0.01"),
    Pulled { name: "hand", scene: "hand:track=1", body: Some("index_distal"), point: DVec3::ZERO },
    Pulled { name: "robot", scene: "robot", body: Some("left_hand"), point: DVec3::ZERO },
];

const DTS: [f64; 2] = [1.0 / 60.0, 1.0 / 30.0]; // s
const SECONDS: f64 = 5.0;
const STIFFNESS: f64 = 1e4; // N/m
const SWING: f64 = 1.0; // m, to either side
const SPEED: f64 = 20.0; // m/s, in the middle
/// Some of along, up and across: no symmetry helps.
const DIRECTION: DVec3 = DVec3::new(1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0);

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    /// \[s\]
    dt: f64,
    /// Every frame was done, every number finite, and the energy of motion never more than the spring holds when it is
    /// stretched over the character and the swing twice.
    bounded: bool,
    /// Over the run \[m\].
    max_joint_gap: f64,
    /// The gap as a share of the character: the diagonal of the box around its centres of mass.
    gap_per_size: f64,
    factorisations_mean: f64,
    factorisations_max: u32,
    /// Parts done by the last resort.
    resorts: u64,
    /// Median.
    us_per_frame: f64,
    /// Of a centre of mass \[m/s\].
    max_speed: f64,
}

/// Measures, writes, prints.
pub(super) fn run(args: &DragArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let wanted = |pulled: &&Pulled| args.scene.is_empty() || args.scene.iter().any(|name| name == pulled.name);
    let pulled: Vec<&Pulled> = PULLED.iter().filter(wanted).collect();

    let bar = terminal.progress((pulled.len() * DTS.len()) as u64, "runs");
    let mut rows = Vec::new();
    for pulled in pulled {
        bar.set_message(pulled.name);
        bar.tick();
        let scene = Scene::parse(pulled.scene).map_err(|e| Error::scene(&e, pulled.scene))?;
        for dt in DTS {
            rows.push(pull(pulled, &scene, dt));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    let document = Document { bench: "drag", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn pull(pulled: &Pulled, scene: &Scene, dt: f64) -> Row {
    let model = &scene.model;
    let body = match pulled.body {
        Some(name) => model.find_body(name).expect("the scene has the body"),
        None => BodyId(model.bodies().len() as u32 - 1),
    };
    let start = scene.state.bodies[body.index()].pose();
    let start = start.translation + start.rotation * pulled.point;
    let size = size(scene);
    let most_energy = 0.5 * STIFFNESS * (2.0 * (size + SWING)).powi(2);
    let scripted = scene.input.drags.len();

    let direct = |time: f64, input: &mut Input| {
        let rate = SPEED / SWING;
        let (sin, cos) = (rate * (time + input.dt)).sin_cos();
        input.drags.truncate(scripted);
        input.drags.push(Drag {
            body,
            point: pulled.point,
            target: start + DIRECTION * (SWING * sin),
            target_velocity: DIRECTION * (SPEED * cos),
            stiffness: STIFFNESS,
            damping: 0.0,
        });
    };
    let (mut max_speed, mut held) = (0.0f64, true);
    let trial = Trial { scene, scheme: TreeScheme::default(), dt, frames: (SECONDS / dt).round() as usize };
    let counts = trial.watch_directed(direct, |input, state| {
        for body in &state.bodies {
            max_speed = max_speed.max(body.velocity.linear.length());
        }
        held &= measure::energy(model, input, state).kinetic <= most_energy;
        ControlFlow::Continue(())
    });
    Row {
        scene: scene.name.clone(),
        dt,
        bounded: counts.sound && held,
        max_joint_gap: counts.max_joint_gap,
        gap_per_size: counts.max_joint_gap / size,
        factorisations_mean: counts.mean(counts.factorisations),
        factorisations_max: counts.factorisations_max,
        resorts: counts.resorts,
        us_per_frame: counts.us_per_frame(),
        max_speed,
    }
}

/// The diagonal of the box around the centres of mass at the start \[m\].
fn size(scene: &Scene) -> f64 {
    let positions = || scene.state.bodies.iter().map(|body| body.position);
    let low = positions().fold(DVec3::INFINITY, DVec3::min);
    let high = positions().fold(DVec3::NEG_INFINITY, DVec3::max);
    low.distance(high)
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("dt [s]", Align::Right),
        ("bounded", Align::Left),
        ("gap [m]", Align::Right),
        ("gap/size", Align::Right),
        ("factorisations", Align::Right),
        ("most", Align::Right),
        ("resorts", Align::Right),
        ("µs/frame", Align::Right),
        ("fastest m/s", Align::Right),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            fraction(row.dt),
            if row.bounded { "yes" } else { "NO" }.into(),
            small(row.max_joint_gap),
            small(row.gap_per_size),
            format!("{:.2}", row.factorisations_mean),
            row.factorisations_max.to_string(),
            row.resorts.to_string(),
            figure(row.us_per_frame),
            figure(row.max_speed),
        ]);
    }
    let words = "a target at up to 20 m/s, ±1 m, on a spring of 10,000 N/m, 5 s";
    document.print(words, &table, terminal)
}
