//! `supple bench together`: every solver with every feature, one small real run per cell, compared with the default step at a
//! small step. A cell is yes, or a refusal with its reason.

use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table, figure, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::time::Instant;
use supple::control::{Goal, Mode as Control};
use supple::glam::DVec3;
use supple::solver::Impulses;
use supple::timeline::Timeline;
use supple::{
    Assembly, BodyId, BodyRef, BodySpec, Contacts, Drag, Grip, Impulse, Input, JointMask, JointSpec, Limits, Model,
    ModelBuilder, Motor, Pose, Range, Reduced, Scene, ServoTarget, Shape, Solver, State, StepError, Stops, TreeScheme,
    Watch, Work, step,
};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct TogetherArgs {
    #[command(flatten)]
    destination: Destination,
}

/// Solvers run at this step \[s\]: fine enough that methods of the first order come near their limit.
const DT: f64 = 1.0 / 480.0;
/// The reference runs at this step \[s\].
const FINE: f64 = 1.0 / 3840.0;
/// Bodies may end this far from the reference, as a share of the longest way that one went.
const MOST_ERROR: f64 = 0.05;
/// Joints may be open by this share of the scene's size: what the first-order solvers leave at [`DT`].
const MOST_GAP: f64 = 1e-3;

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    solver: &'static str,
    scheme: &'static str,
    feature: &'static str,
    ok: bool,
    /// Why not; null when it is.
    reason: Option<String>,
    /// Time of the run \[s\].
    seconds: f64,
    /// Against the default step at a small step, as a share of the longest way; null where nothing is compared.
    error: Option<f64>,
    /// \[m\]
    max_joint_gap: Option<f64>,
}

/// What a cell of the table runs.
struct Feature {
    name: &'static str,
    make: fn() -> Scene,
    /// What changes over the run.
    direct: fn(&Scene, f64, &mut Input),
    /// How long it runs \[s\].
    seconds: f64,
    check: Check,
}

/// What must hold beside finite numbers and closed joints.
#[derive(Clone, Copy)]
enum Check {
    /// All bodies end where those of the reference do.
    Motion,
    /// A goal is reached to this distance \[m\].
    Goal(DVec3, f64),
    /// The hinge of the motor stands at this angle \[rad\].
    Angle(f64),
    /// The first joint carries the weight of all.
    Loads,
    /// A recorded take is played again with the same bits.
    Take,
}

const FEATURES: [Feature; 11] = [
    Feature { name: "loops", make: || built_in("fourbars:2"), direct: script, seconds: 0.5, check: Check::Motion },
    Feature {
        name: "contacts",
        make: || built_in("block:friction=0.3,speed=1"),
        direct: script,
        seconds: 0.5,
        check: Check::Motion,
    },
    Feature { name: "hard_limits", make: stopped, direct: script, seconds: 0.6, check: Check::Motion },
    Feature { name: "flesh", make: || in_the_air("worm"), direct: script, seconds: 0.15, check: Check::Motion },
    Feature { name: "skin", make: || in_the_air("tube"), direct: script, seconds: 0.15, check: Check::Motion },
    Feature {
        name: "control",
        make: directed,
        direct: script,
        seconds: 2.0,
        check: Check::Goal(DVec3::new(0.55, 0.3, 0.1), 0.02),
    },
    Feature { name: "grips", make: bent, direct: grip, seconds: 0.5, check: Check::Motion },
    Feature { name: "motors", make: servo, direct: script, seconds: 6.0, check: Check::Angle(0.5) },
    Feature {
        name: "springs",
        make: || built_in("chain:6,damping=0.02"),
        direct: drag,
        seconds: 0.5,
        check: Check::Motion,
    },
    Feature { name: "loads", make: hanging, direct: script, seconds: 0.25, check: Check::Loads },
    Feature {
        name: "takes",
        make: || built_in("chain:6,damping=0.02"),
        direct: drag,
        seconds: 0.25,
        check: Check::Take,
    },
];

/// The rows of the table.
fn solvers() -> [(&'static str, &'static str, Solver); 5] {
    [
        ("tree", "default", Solver::default()),
        ("tree", "published", super::trial::solver(TreeScheme::Published)),
        ("impulse", "default", Solver::Impulse(Impulse::default())),
        ("assembly", "default", Solver::Assembly(Assembly::default())),
        ("reduced", "default", Solver::Reduced(Reduced::default())),
    ]
}

/// Measures, writes, prints.
pub(super) fn run(args: &TogetherArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let solvers = solvers();
    let bar = terminal.progress((FEATURES.len() * solvers.len()) as u64, "cells");
    let mut rows = Vec::new();
    for feature in &FEATURES {
        bar.set_message(feature.name);
        bar.tick();
        let scene = (feature.make)();
        let reference = matches!(feature.check, Check::Motion).then(|| go(feature, &scene, Solver::default(), FINE));
        for (solver, scheme, settings) in solvers {
            let start = Instant::now();
            let done = cell(feature, &scene, settings, reference.as_ref());
            let seconds = start.elapsed().as_secs_f64();
            let (error, gap) = done.as_ref().map_or((None, None), |found| (found.error, Some(found.max_joint_gap)));
            let reason = done.err();
            let feature = feature.name;
            rows.push(Row {
                solver,
                scheme,
                feature,
                ok: reason.is_none(),
                reason,
                seconds,
                error,
                max_joint_gap: gap,
            });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let document = Document { bench: "together", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// What a cell that is in order measured.
struct Found {
    error: Option<f64>,
    max_joint_gap: f64,
}

/// The end of a run.
struct Ran {
    state: State,
    max_joint_gap: f64,
    work: Work,
}

/// Runs one cell; the reason why it is not in order.
fn cell(
    feature: &Feature,
    scene: &Scene,
    solver: Solver,
    reference: Option<&Result<Ran, StepError>>,
) -> Result<Found, String> {
    let ran = go(feature, scene, solver, DT).map_err(|error| error.to_string())?;
    let size = size(&scene.state);
    if ran.max_joint_gap > MOST_GAP * size {
        return Err(format!("joints are open by {:.1e} m", ran.max_joint_gap));
    }
    let mut error = None;
    match feature.check {
        Check::Motion => {
            let reference = match reference.expect("motions are compared") {
                Ok(reference) => reference,
                Err(error) => return Err(format!("the reference failed: {error}")),
            };
            let way = farthest(&scene.state, &reference.state);
            let off = farthest(&reference.state, &ran.state) / way;
            if off.is_nan() || off > MOST_ERROR {
                return Err(format!("bodies end {:.0} % of their way from the reference", 100.0 * off));
            }
            error = Some(off);
        }
        Check::Goal(place, within) => {
            let tip = ran.state.bodies.last().expect("the limb has bones");
            let off = tip.position.distance(place);
            if off > within {
                return Err(format!("the goal is missed by {off:.3} m"));
            }
            error = Some(off / size);
        }
        Check::Angle(angle) => {
            let off = (ran.state.joints[0].angle - angle).abs();
            if off > 0.01 {
                return Err(format!("the servo stands {off:.3} rad from its target"));
            }
            error = Some(off);
        }
        Check::Loads => error = Some(check_loads(&scene.model, &scene.input, &ran.work)?),
        Check::Take => check_take(feature, scene, solver)?,
    }
    Ok(Found { error, max_joint_gap: ran.max_joint_gap })
}

fn go(feature: &Feature, scene: &Scene, solver: Solver, dt: f64) -> Result<Ran, StepError> {
    let mut input = Input { solver, dt, ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    work.watch(Watch { clock: None, impulses: Impulses::Keep });
    let mut max_joint_gap = 0.0f64;
    for _ in 0..(feature.seconds / dt).round() as usize {
        (feature.direct)(scene, state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work)?;
        max_joint_gap = max_joint_gap.max(report.max_joint_gap);
    }
    Ok(Ran { state, max_joint_gap, work })
}

/// The load of the first joint against the weight below it, as a share of that.
fn check_loads(model: &Model, input: &Input, work: &Work) -> Result<f64, String> {
    let Some(first) = work.joint_loads().first() else { return Err("joint loads are not reported".into()) };
    let force = first.constraint.force;
    let weight = -model.mass() * input.gravity;
    let off = force.distance(weight) / weight.length();
    match off {
        off if off <= 1e-3 => Ok(off),
        off => Err(format!("the first joint reports {:.1} % of the weight that hangs on it", 100.0 * (1.0 - off))),
    }
}

fn check_take(feature: &Feature, scene: &Scene, solver: Solver) -> Result<(), String> {
    let mut input = Input { solver, dt: DT, ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let mut timeline = Timeline::new(scene.name.as_str(), &scene.model, &state, &input);
    for _ in 0..60 {
        (feature.direct)(scene, state.time, &mut input);
        step(&scene.model, &input, &mut state, &mut work).map_err(|error| error.to_string())?;
        timeline.record(0, &input, &state);
    }
    let mut moment = timeline.seek(&scene.model, 0, 0, &mut work).map_err(|error| error.to_string())?;
    while moment.step < timeline.takes()[0].end() {
        let outcome = timeline.advance(&scene.model, 0, &mut moment, &mut work).map_err(|error| error.to_string())?;
        if !outcome.identical {
            return Err(format!("played again, step {} has other bits", moment.step));
        }
    }
    Ok(())
}

/// The largest distance between a body in two states \[m\].
fn farthest(a: &State, b: &State) -> f64 {
    a.bodies.iter().zip(&b.bodies).map(|(a, b)| a.position.distance(b.position)).fold(0.0, f64::max)
}

/// How large a scene is, at least a decimetre \[m\].
fn size(state: &State) -> f64 {
    let positions = || state.bodies.iter().map(|body| body.position);
    let low = positions().fold(DVec3::INFINITY, DVec3::min);
    let high = positions().fold(DVec3::NEG_INFINITY, DVec3::max);
    low.distance(high).max(0.1)
}

fn built_in(name: &str) -> Scene {
    Scene::parse(name).expect("the scene is built in")
}

/// A creature or a skin that falls freely from its start, bones driven: nothing touches, so that every law of contact agrees.
fn in_the_air(name: &str) -> Scene {
    let mut scene = built_in(name);
    scene.input.contacts = Contacts::Off;
    scene
}

/// Bones of 0.3 m in a row along a direction, on hinges about Z.
fn limb(bones: usize, along: DVec3, shape: impl Fn(JointSpec) -> JointSpec) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for i in 0..bones {
        let from = along * (0.3 * i as f64);
        let bone = BodySpec::new(format!("bone {i}"))
            .shape(Shape::cuboid(0.3, 0.06, 0.06), 1000.0)
            .pose(Pose::new(supple::glam::DQuat::from_rotation_arc(DVec3::X, along), from + along * 0.15));
        let id = builder.body(bone);
        let joint = JointSpec::new(format!("joint {i}"), JointMask::HINGE, id, last).at(from).axis(DVec3::Z);
        builder.joint(shape(joint));
        last = BodyRef::Id(id);
    }
    builder.build().expect("the limb is sound")
}

fn scene_of(name: &str, model: Model, input: Input) -> Scene {
    let state = model.start();
    Scene::from_parts(name, model, state, input)
}

/// A pendulum that falls onto a hard limit.
fn stopped() -> Scene {
    let range = Range { min: -0.6, max: 0.6 };
    let limits = Limits { angle: Some(range), stops: Stops::Hard, ..Limits::default() };
    scene_of("stopped", limb(1, DVec3::X, |joint| joint.limits(limits)), Input::default())
}

/// A hinge against gravity by a servo whose integral takes the sag away.
fn servo() -> Scene {
    let motor = Motor { stiffness: 20.0, damping: 4.0, max: 100.0, integral: 40.0 };
    let model = limb(1, DVec3::X, |joint| joint.motor(motor));
    let mut input = Input::default();
    input.joint_mut(&model, 0).servo = Some(ServoTarget::Position { position: 0.5, rate: 0.0 });
    scene_of("servo", model, input)
}

/// A limb of ball joints whose tip is led to a place by its own actuators, without gravity.
fn directed() -> Scene {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for i in 0..3 {
        let from = DVec3::X * (0.3 * f64::from(i));
        let bone = BodySpec::new(format!("bone {i}"));
        let pose = Pose::at(from + DVec3::X * 0.15);
        let id = builder.body(bone.shape(Shape::cuboid(0.3, 0.06, 0.06), 1000.0).pose(pose));
        builder.joint(JointSpec::new(format!("joint {i}"), JointMask::BALL, id, last).at(from));
        last = BodyRef::Id(id);
    }
    let model = builder.build().expect("the limb is sound");
    let mut input = Input { gravity: DVec3::ZERO, ..Input::default() };
    input.control.mode = Control::Goals;
    input.control.goals = vec![Goal::drag(BodyId(2), DVec3::ZERO, DVec3::new(0.55, 0.3, 0.1))];
    scene_of("directed", model, input)
}

/// A chain at rest in a bent pose: the end of a straight one cannot be led along it at any speed.
fn bent() -> Scene {
    let scene = built_in("chain:6,damping=0.02");
    let input = Input { dt: DT, ..scene.input.clone() };
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    for _ in 0..200 {
        step(&scene.model, &input, &mut state, &mut work).expect("a chain falls");
    }
    state.bodies.iter_mut().for_each(|body| body.velocity = supple::Twist::ZERO);
    state.time = 0.0;
    let mut scene = scene_of("bent", scene.model.clone(), scene.input.clone());
    scene.state = state;
    scene
}

/// A limb that hangs at rest.
fn hanging() -> Scene {
    scene_of("hanging", limb(3, DVec3::NEG_Y, |joint| joint), Input::default())
}

/// As the scene's script says.
fn script(scene: &Scene, time: f64, input: &mut Input) {
    scene.direct(time, input);
}

/// The last link of a chain is gripped and led upwards.
fn grip(scene: &Scene, time: f64, input: &mut Input) {
    let last = scene.state.bodies.len() - 1;
    let up = DVec3::Y * (0.2 * (time + input.dt)) - DVec3::X * (0.1 * (time + input.dt));
    let target = scene.state.bodies[last].position + up;
    input.grips.clear();
    input.grips.push(Grip { body: BodyId(last as u32), point: DVec3::ZERO, target, rotation: None });
}

/// The last link of a chain is dragged by a spring.
fn drag(scene: &Scene, time: f64, input: &mut Input) {
    let last = scene.state.bodies.len() - 1;
    let target_velocity = DVec3::new(0.0, 0.4, 0.2);
    let target = scene.state.bodies[last].position + target_velocity * (time + input.dt);
    let body = BodyId(last as u32);
    input.drags.clear();
    input.drags.push(Drag { body, point: DVec3::ZERO, target, target_velocity, stiffness: 50.0, damping: 1.0 });
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("solver", Align::Left),
        ("scheme", Align::Left),
        ("feature", Align::Left),
        ("", Align::Left),
        ("error", Align::Right),
        ("gap [m]", Align::Right),
        ("s", Align::Right),
        ("why not", Align::Left),
    ]);
    let given = |x: Option<f64>| x.map_or("–".to_owned(), small);
    for row in &document.rows {
        table.row([
            row.solver.into(),
            row.scheme.into(),
            row.feature.into(),
            if row.ok { "yes" } else { "no" }.into(),
            given(row.error),
            given(row.max_joint_gap),
            figure(row.seconds),
            row.reason.clone().unwrap_or_default(),
        ]);
    }
    document.print("every solver with every feature, against the default step at a small step", &table, terminal)
}
