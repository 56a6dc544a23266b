//! `supple bench contacts`: what contacts keep and what they cost, from a stack of boxes to a shaken grasp.

use super::trial::{Excess, Trial};
use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table, figure, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::ops::ControlFlow;
use supple::glam::DVec3;
use supple::{Scene, State, TreeScheme};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct ContactsArgs {
    /// Only scenes that begin with this, such as stack; may be given again
    #[arg(long, value_name = "NAME")]
    scene: Vec<String>,
    /// A tenth of the time of the stacks and the grasp, and a smaller pile
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    destination: Destination,
}

const DT: f64 = 1.0 / 60.0; // s
const GRAVITY: f64 = 9.81; // m/s²
/// Energy that may come from nowhere, as a share of the scene's.
const MOST_EXCESS: f64 = 0.01;
/// Joints hold to this \[m\].
const MOST_GAP: f64 = 1e-6;
/// The car is as many times faster than real time as published [Bender 2006, §5].
const TIMES_REAL: f64 = 6.0;

/// A scene and what must be true of it.
struct Case {
    scene: &'static str,
    quick: &'static str,
    /// \[s\]
    seconds: f64,
    quick_seconds: f64,
    wanted: Wanted,
}

/// What must be true, beside sound numbers, closed joints and no energy from nowhere.
#[derive(Clone, Copy)]
enum Wanted {
    /// No centre of mass moves by a millimetre.
    Still,
    /// The box goes along the slope with this acceleration \[m/s²\], within a hundredth.
    Accelerates(f64),
    /// The box comes back to this share of its height, within a fiftieth.
    Bounces(f64),
    /// No body is faster than 1 cm/s at the end.
    Rests,
    /// The first body goes this far along X \[m\], and is upright at the end.
    Goes(f64),
    /// The same, as many times faster than real time as was published.
    GoesFast(f64),
    /// From 2 s on the box stays where it is in the hand, within a centimetre.
    Holds,
}

const fn case(scene: &'static str, seconds: f64, wanted: Wanted) -> Case {
    Case { scene, quick: scene, seconds, quick_seconds: seconds, wanted }
}

/// tan 26.565° = 0.5
const FRICTION: f64 = 0.5;

fn cases() -> Vec<Case> {
    let stack = |scene| Case { quick_seconds: 6.0, ..case(scene, 60.0, Wanted::Still) };
    let slope = 27f64.to_radians();
    vec![
        stack("stack:5"),
        stack("stack:10"),
        stack("stack:20"),
        stack("stack:5,top_mass=100"),
        case("block:friction=0.3,speed=3", 0.8, Wanted::Accelerates(-0.3 * GRAVITY)),
        case("block:friction=0.5,speed=0,slope=26", 5.0, Wanted::Still),
        case(
            "block:friction=0.5,speed=0,slope=27",
            5.0,
            Wanted::Accelerates(GRAVITY * (slope.sin() - FRICTION * slope.cos())),
        ),
        case("block:speed=0,height=1,restitution=0.8", 0.85, Wanted::Bounces(0.64)),
        Case { quick: "pile:4", quick_seconds: 4.0, ..case("pile:20", 10.0, Wanted::Rests) },
        case("car", 8.0, Wanted::GoesFast(20.0)),
        case("walker", 24.0, Wanted::Goes(5.0)),
        case("ragdoll", 6.0, Wanted::Rests),
        Case { quick_seconds: 5.0, ..case("grasp", 32.5, Wanted::Holds) },
    ]
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    scene: String,
    /// Median.
    us_per_frame: f64,
    /// Over the run \[m\].
    max_penetration: f64,
    /// Over the run \[m\].
    max_joint_gap: f64,
    /// Rise of the energy above its start and the work of motors, as a share of m g times the size of the scene.
    energy_excess: f64,
    /// Passes over contacts in a frame.
    iterations_mean: f64,
    iterations_max: u32,
    /// Frames in which contacts did not settle to tolerance.
    unconverged_steps: u64,
    passed: bool,
    /// What was wanted and what came, for people.
    #[serde(skip)]
    found: String,
}

/// Measures, writes, prints.
pub(super) fn run(args: &ContactsArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let wanted = |case: &Case| args.scene.is_empty() || args.scene.iter().any(|name| case.scene.starts_with(name));
    let cases: Vec<Case> = cases().into_iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(Error::setting("--scene names no case of this bench", "leave it out, or give stack, block or car"));
    }
    let bar = terminal.progress(cases.len() as u64, "runs");
    let mut rows = Vec::new();
    for case in cases {
        let (name, seconds) = if args.quick { (case.quick, case.quick_seconds) } else { (case.scene, case.seconds) };
        bar.set_message(name);
        bar.tick();
        let scene = Scene::parse(name).map_err(|e| Error::scene(&e, name))?;
        rows.push(measure(&scene, seconds, case.wanted));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let document = Document { bench: "contacts", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn measure(scene: &Scene, seconds: f64, wanted: Wanted) -> Row {
    let trial = Trial { scene, scheme: TreeScheme::default(), dt: DT, frames: (seconds / DT).round() as usize };
    let mut excess = Excess::new(scene);
    let mut seen = Seen::new(scene, wanted);
    let counts = trial.watch(|input, state| {
        excess.look(input, state);
        seen.look(state);
        ControlFlow::Continue(())
    });
    let us_per_frame = counts.us_per_frame();
    let (held, found) = seen.verdict(us_per_frame);
    Row {
        scene: scene.name.clone(),
        us_per_frame,
        max_penetration: counts.max_penetration,
        max_joint_gap: counts.max_joint_gap,
        energy_excess: excess.most,
        iterations_mean: counts.mean(counts.iterations),
        iterations_max: counts.iterations_max,
        unconverged_steps: counts.unconverged_steps,
        passed: counts.sound && counts.max_joint_gap <= MOST_GAP && excess.most <= MOST_EXCESS && held,
        found,
    }
}

/// What a run has shown.
struct Seen<'a> {
    scene: &'a Scene,
    wanted: Wanted,
    /// The farthest a centre of mass was from its start \[m\].
    drift: f64,
    /// The highest the first body was on its way up after it came down \[m\], above its lowest.
    rebound: f64,
    lowest: f64,
    /// The box in the hand at 2 s, and the farthest it was from there \[m\].
    held: Option<DVec3>,
    slipped: f64,
    last: State,
}

impl Seen<'_> {
    fn new(scene: &Scene, wanted: Wanted) -> Seen<'_> {
        Seen {
            scene,
            wanted,
            drift: 0.0,
            rebound: 0.0,
            lowest: f64::INFINITY,
            held: None,
            slipped: 0.0,
            last: scene.state.clone(),
        }
    }

    fn look(&mut self, state: &State) {
        self.last.clone_from(state);
        for (now, then) in state.bodies.iter().zip(&self.scene.state.bodies) {
            self.drift = self.drift.max(now.position.distance(then.position));
        }
        let first = &state.bodies[0];
        if first.velocity.linear.y <= 0.0 && self.rebound == 0.0 {
            self.lowest = self.lowest.min(first.position.y);
        } else {
            self.rebound = self.rebound.max(first.position.y);
        }
        if let (Wanted::Holds, true) = (self.wanted, state.time >= 2.0) {
            let (palm, held) = (first, state.bodies.last().expect("the box"));
            let place = palm.orientation.conjugate() * (held.position - palm.position);
            let start = *self.held.get_or_insert(place);
            self.slipped = self.slipped.max(place.distance(start));
        }
    }

    /// Whether what was wanted came, and in words.
    fn verdict(&self, us_per_frame: f64) -> (bool, String) {
        let (start, end) = (&self.scene.state.bodies[0], &self.last.bodies[0]);
        let gone = end.position.x - start.position.x;
        let times = 1e6 * DT / us_per_frame;
        match self.wanted {
            Wanted::Still => (self.drift < 1e-3, format!("drift {} m", small(self.drift))),
            Wanted::Accelerates(wanted) => {
                let along = start.orientation * DVec3::X;
                let gained = (end.velocity.linear - start.velocity.linear).dot(along) / self.last.time;
                (((gained / wanted) - 1.0).abs() < 0.01, format!("{gained:.4} m/s², {wanted:.4} wanted"))
            }
            Wanted::Bounces(share) => {
                // From the floor's contact (centre at half an edge) to the start, and back up.
                let fall = start.position.y - 0.1;
                let back = (self.rebound - 0.1) / fall;
                ((back / share - 1.0).abs() < 0.02, format!("back to {back:.4}, {share} wanted"))
            }
            Wanted::Rests => {
                let fastest = self.last.bodies.iter().map(|b| b.velocity.linear.length()).fold(0.0, f64::max);
                (fastest < 0.01, format!("fastest at the end {} m/s", small(fastest)))
            }
            Wanted::Goes(metres) => {
                let up = (end.orientation * DVec3::Y).y;
                (gone >= metres && up > 0.9, format!("went {gone:.2} m, up {up:.3}"))
            }
            Wanted::GoesFast(metres) => {
                (gone >= metres && times >= TIMES_REAL, format!("went {gone:.2} m, {times:.1} × real time"))
            }
            Wanted::Holds => {
                let up = self.last.bodies.last().is_some_and(|b| b.position.y > 0.1);
                (up && self.slipped < 0.01, format!("slipped {} m", small(self.slipped)))
            }
        }
    }
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("scene", Align::Left),
        ("µs/frame", Align::Right),
        ("depth [m]", Align::Right),
        ("gap [m]", Align::Right),
        ("energy", Align::Right),
        ("passes", Align::Right),
        ("most", Align::Right),
        ("unconverged", Align::Right),
        ("passed", Align::Left),
        ("found", Align::Left),
    ]);
    for row in &document.rows {
        table.row([
            row.scene.clone(),
            figure(row.us_per_frame),
            small(row.max_penetration),
            small(row.max_joint_gap),
            small(row.energy_excess),
            format!("{:.1}", row.iterations_mean),
            row.iterations_max.to_string(),
            row.unconverged_steps.to_string(),
            if row.passed { "yes" } else { "NO" }.into(),
            row.found.clone(),
        ]);
    }
    document.print("contacts with friction in the default step, dt 1/60 s", &table, terminal)
}
