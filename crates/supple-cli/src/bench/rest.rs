//! `supple bench rest`: what lies still must stay where it lies. Every lying scene of rigid bodies, flesh and skin: how fast it creeps and turns once it lies.

use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::settings;
use crate::table::{Align, Table, figure, fraction, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use supple::glam::DVec3;
use supple::maths::Twist;
use supple::maths::rotation::log;
use supple::{Input, Model, Pose, Scene, State, Work, measure, step};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct RestArgs {
    /// Only scenes whose name contains this, such as snake; may be given again
    #[arg(long, value_name = "NAME")]
    scene: Vec<String>,
    /// Steps, in seconds
    #[arg(
        long,
        value_name = "S,S",
        value_delimiter = ',',
        default_value = "1/30,1/60,1/240",
        allow_hyphen_values = true
    )]
    dt: Vec<String>,
    /// How long each lies before it is measured, in seconds
    #[arg(long, value_name = "S", default_value = "10", allow_hyphen_values = true)]
    seconds: String,
    #[command(flatten)]
    destination: Destination,
}

/// What lies still goes and turns no faster than this \[mm/s, rad/s\].
const MOST_CREEP: f64 = 0.01;
const MOST_SPIN: f64 = 0.001;
/// How long it is watched once it lies \[s\].
const WATCHED: f64 = 1.0;

/// Energies are measured against at least this size \[m\]: one body has no size between its points.
const LEAST_SIZE: f64 = 0.1;

/// What a scene is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Made {
    Rigid,
    Flesh,
    Skin,
}

/// How a scene is brought to lie.
#[derive(Clone, Copy, Debug)]
enum How {
    /// As its script says: it falls.
    Falls,
    /// Nothing directs it: it stays as it is at the start.
    Undirected,
    /// Its script stops at this time, and what it leads stays there \[s\].
    Stops(f64),
    /// Nothing directs it and nothing holds it.
    Limp,
}

const CASES: [(&str, Made, How); 14] = [
    ("block", Made::Rigid, How::Falls),
    ("stack:10", Made::Rigid, How::Falls),
    ("ragdoll", Made::Rigid, How::Falls),
    ("pile:3", Made::Rigid, How::Falls),
    ("servos", Made::Rigid, How::Falls),
    ("walker", Made::Rigid, How::Undirected),
    ("worm", Made::Flesh, How::Undirected),
    ("fish", Made::Flesh, How::Undirected),
    ("finger", Made::Flesh, How::Undirected),
    ("tube:2", Made::Skin, How::Falls),
    ("tube:5", Made::Skin, How::Falls),
    ("snake", Made::Skin, How::Undirected),
    ("soft_hand", Made::Skin, How::Stops(1.0)),
    ("deer:1748,bird=0,animated=0", Made::Skin, How::Limp),
];

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    made: Made,
    dt: f64,
    /// The farthest that a body, a node or a vertex goes in the second that is watched \[mm/s\].
    creep_mm_s: f64,
    /// The farthest that a body turns in it \[rad/s\].
    spin_rad_s: f64,
    /// The change of the energy in it, as a share of m g times the size.
    energy_drift: f64,
    /// Bodies asleep at the end.
    asleep: u32,
    passed: bool,
}

/// Measures, writes, prints; fails when something creeps.
pub(super) fn run(args: &RestArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let dts = args.dt.iter().map(|text| settings::dt(text)).collect::<Result<Vec<f64>, _>>()?;
    let steps = dts.iter().map(|dt| settings::steps(&args.seconds, *dt)).collect::<Result<Vec<usize>, _>>()?;
    let wanted = |name: &str| args.scene.is_empty() || args.scene.iter().any(|part| name.contains(part.as_str()));
    let cases: Vec<_> = CASES.iter().filter(|(name, ..)| wanted(name)).collect();
    if cases.is_empty() {
        let help = "leave it out, or give a part of a name";
        return Err(Error::setting("--scene names nothing that this bench runs", help));
    }
    let bar = terminal.progress((cases.len() * dts.len()) as u64, "runs");
    let mut rows = Vec::new();
    for (name, made, how) in cases {
        for (&dt, &steps) in dts.iter().zip(&steps) {
            bar.set_message(*name);
            rows.push(watch(name, *made, *how, dt, steps)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let creeping = rows.iter().filter(|row| !row.passed).count();
    let document = Document { bench: "rest", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))?;
    match creeping {
        0 => Ok(()),
        n => Err(Error::failed(
            "bench/rest",
            format!(
                "{n} of {} do not lie still: bounds are {MOST_CREEP} mm/s and {MOST_SPIN} rad/s",
                document.rows.len()
            ),
        )),
    }
}

impl How {
    fn start(self, scene: &Scene) -> Input {
        let mut input = scene.input.clone();
        if let How::Limp = self {
            input.targets.fill(None);
        }
        input
    }

    fn direct(self, scene: &Scene, time: f64, input: &mut Input) {
        match self {
            How::Falls => scene.direct(time, input),
            How::Undirected | How::Limp => {}
            How::Stops(end) if time < end => scene.direct(time, input),
            How::Stops(_) => {
                let led = input.targets.iter_mut().chain(&mut input.obstacles).flatten();
                led.for_each(|target| target.velocity = Twist::ZERO);
            }
        }
    }
}

/// Where everything is.
struct Places {
    bodies: Vec<Pose>,
    points: Vec<DVec3>,
}

impl Places {
    fn of(model: &Model, state: &State) -> Places {
        let mut points = Vec::new();
        if let Some(flesh) = model.flesh() {
            flesh.positions(state, &mut points);
        }
        if let Some(skin) = model.skin() {
            skin.positions(state, &mut points);
        }
        points.extend(state.bodies.iter().map(|body| body.position));
        Places { bodies: state.bodies.iter().map(|body| body.pose()).collect(), points }
    }
}

fn watch(name: &str, made: Made, how: How, dt: f64, steps: usize) -> Result<Row, Error> {
    let scene = Scene::parse(name).map_err(|e| Error::scene(&e, name))?;
    let model = &scene.model;
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let mut input = Input { dt, ..how.start(&scene) };
    let mut go = |steps: usize, state: &mut State, input: &mut Input| {
        let mut asleep = 0;
        for k in 0..steps {
            how.direct(&scene, state.time, input);
            let report = step(model, input, state, &mut work)
                .map_err(|e| Error::step(&e, format_args!("{name}, dt {}, step {}", fraction(dt), k + 1)))?;
            asleep = report.asleep;
        }
        Ok::<u32, Error>(asleep)
    };
    go(steps, &mut state, &mut input)?;
    let (before, energy) = (Places::of(model, &state), measure::energy(model, &input, &state).total());
    let asleep = go((WATCHED / dt).round() as usize, &mut state, &mut input)?;
    let after = Places::of(model, &state);
    let gone = before.points.iter().zip(&after.points).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max);
    let turn = |(a, b): (&Pose, &Pose)| log(b.rotation * a.rotation.conjugate()).length();
    let turned = before.bodies.iter().zip(&after.bodies).map(turn).fold(0.0, f64::max);
    let (low, high) = before.points.iter().fold((DVec3::MAX, DVec3::MIN), |(l, h), p| (l.min(*p), h.max(*p)));
    let stake = measure::energy_at_stake(model, &input, (high - low).length().max(LEAST_SIZE));
    let (creep_mm_s, spin_rad_s) = (1e3 * gone / WATCHED, turned / WATCHED);
    Ok(Row {
        scene: name.into(),
        made,
        dt,
        creep_mm_s,
        spin_rad_s,
        energy_drift: (measure::energy(model, &input, &state).total() - energy) / stake,
        asleep,
        passed: creep_mm_s <= MOST_CREEP && spin_rad_s <= MOST_SPIN,
    })
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("of", Align::Left),
        ("dt [s]", Align::Right),
        ("creep [mm/s]", Align::Right),
        ("spin [rad/s]", Align::Right),
        ("energy", Align::Right),
        ("asleep", Align::Right),
        ("still", Align::Left),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            match row.made {
                Made::Rigid => "rigid bodies".into(),
                Made::Flesh => "flesh".into(),
                Made::Skin => "skin".into(),
            },
            fraction(row.dt),
            if row.creep_mm_s < 1e-3 { small(row.creep_mm_s) } else { figure(row.creep_mm_s) },
            small(row.spin_rad_s),
            small(row.energy_drift),
            row.asleep.to_string(),
            if row.passed { "yes" } else { "NO" }.into(),
        ]);
    }
    document.print("what lies still, in the second after it has lain", &table, terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slides_does_not_pass() {
        let still = watch("stack:2", Made::Rigid, How::Falls, 1.0 / 60.0, 60).unwrap();
        assert!(still.passed, "{still:?}");
        // without friction it goes on at 1 m/s
        let slides = watch("block:friction=0,speed=1", Made::Rigid, How::Falls, 1.0 / 60.0, 30).unwrap();
        assert!(!slides.passed && (slides.creep_mm_s - 1e3).abs() < 1.0, "{slides:?}");
    }
}
