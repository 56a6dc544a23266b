//! `supple bench servo`: the robot on its feet, every joint a position servo, from soft to stiffer than any engine takes.

use super::trial::{Excess, Trial};
use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::settings;
use crate::table::{Align, Table, figure, fraction, given, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::ops::ControlFlow;
use supple::glam::DVec3;
use supple::{Model, Scene, State, TreeScheme};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct ServoArgs {
    /// Stiffnesses of the servos [N·m/rad]
    #[arg(long, value_name = "KP,KP", value_delimiter = ',', default_value = "1e2,1e3,1e4,1e5,1e6,1e7")]
    kp: Vec<String>,
    /// How long each run is, in seconds
    #[arg(long, value_name = "S", default_value = "10")]
    seconds: String,
    #[command(flatten)]
    destination: Destination,
}

const DTS: [f64; 2] = [1.0 / 30.0, 1.0 / 60.0]; // s
/// Joints hold to this \[m\].
const MOST_GAP: f64 = 1e-6;
/// Energy that may come from nowhere, as a share of m g times the size of the robot.
const MOST_EXCESS: f64 = 0.01;
/// Of a joint in the last second \[rad/s\].
const MOST_RATE: f64 = 50.0;

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    /// \[N·m/rad\]
    kp: f64,
    /// \[s\]
    dt: f64,
    /// Every number finite, joints closed, no energy beyond the start and the servos' work, no joint fast in the last second.
    stable: bool,
    /// The pelvis is at the end within 5 cm of its height and 0.2 rad of upright.
    standing: bool,
    /// Over the run \[m\].
    max_joint_gap: f64,
    energy_excess: f64,
    /// In the last second \[rad/s\].
    max_joint_rate: f64,
    /// Median.
    us_per_frame: f64,
}

/// Measures, writes, prints.
pub(super) fn run(args: &ServoArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let frames: Vec<usize> = DTS.iter().map(|dt| settings::steps(&args.seconds, *dt)).collect::<Result<_, _>>()?;
    let bar = terminal.progress((args.kp.len() * DTS.len()) as u64, "runs");
    let mut rows = Vec::new();
    for kp in &args.kp {
        let name = format!("servos:kp={kp}");
        bar.set_message(name.clone());
        bar.tick();
        let scene = Scene::parse(&name).map_err(|e| Error::scene(&e, &name))?;
        let kp = settings::number(kp).ok_or_else(|| Error::setting("--kp is not a number", "give such as 1e4"))?;
        for (dt, frames) in DTS.into_iter().zip(&frames) {
            rows.push(measure(&scene, kp, dt, *frames));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let document = Document { bench: "servo", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn measure(scene: &Scene, kp: f64, dt: f64, frames: usize) -> Row {
    let seconds = frames as f64 * dt;
    let trial = Trial { scene, scheme: TreeScheme::default(), dt, frames };
    let mut excess = Excess::new(scene);
    let (mut max_joint_rate, mut last) = (0.0f64, scene.state.clone());
    let counts = trial.watch(|input, state| {
        excess.look(input, state);
        if state.time > seconds - 1.0 {
            max_joint_rate = max_joint_rate.max(fastest_joint(&scene.model, state));
        }
        last.clone_from(state);
        ControlFlow::Continue(())
    });
    let pelvis = scene.model.find_body("pelvis").expect("the robot has one").index();
    let (start, end) = (&scene.state.bodies[pelvis], &last.bodies[pelvis]);
    let upright = (end.orientation * DVec3::Y).y > 0.2f64.cos();
    Row {
        kp,
        dt,
        stable: counts.sound
            && counts.max_joint_gap <= MOST_GAP
            && excess.most <= MOST_EXCESS
            && max_joint_rate <= MOST_RATE,
        standing: counts.sound && upright && (end.position.y - start.position.y).abs() < 0.05,
        max_joint_gap: counts.max_joint_gap,
        energy_excess: excess.most,
        max_joint_rate,
        us_per_frame: counts.us_per_frame(),
    }
}

/// The largest angular velocity of a child against its parent \[rad/s\].
fn fastest_joint(model: &Model, state: &State) -> f64 {
    let rate = |joint: &supple::Joint| {
        let parent = joint.parent.map_or(DVec3::ZERO, |b| state.bodies[b.index()].velocity.angular);
        (state.bodies[joint.child.index()].velocity.angular - parent).length()
    };
    model.joints().iter().map(rate).fold(0.0, f64::max)
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("kp [N·m/rad]", Align::Right),
        ("dt [s]", Align::Right),
        ("stable", Align::Left),
        ("standing", Align::Left),
        ("gap [m]", Align::Right),
        ("energy", Align::Right),
        ("rad/s", Align::Right),
        ("µs/frame", Align::Right),
    ]);
    let word = |yes: bool| if yes { "yes" } else { "NO" }.to_owned();
    for row in &document.rows {
        table.row([
            given(row.kp),
            fraction(row.dt),
            word(row.stable),
            word(row.standing),
            small(row.max_joint_gap),
            small(row.energy_excess),
            small(row.max_joint_rate),
            figure(row.us_per_frame),
        ]);
    }
    document.print("the robot on the floor, every joint a position servo, contacts on", &table, terminal)
}
