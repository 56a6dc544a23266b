//! `supple assemble`: a broken pose brought together.

use crate::error::Error;
use crate::output::{self, Outputs};
use crate::settings;
use crate::table::{self, Align, Table, count, figure, small};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use supple::{Assembly, Input, Model, Setting, Solver, State, Work, assemble};

/// Bring a broken pose together: joints closed in the sense of least squares, loops included
#[derive(Args, Debug)]
pub(crate) struct AssembleArgs {
    /// A built-in scene, with parameters after a colon: crowd_of_two, bar
    scene: String,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    /// Write a file, by its ending: .json (poses and what is left at each joint) or .csv (poses); may be given again
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[arg(long, value_name = "KEY=VALUE", help = "Change a setting of solver assembly; may be given again", long_help = settings::keys_help(acts))]
    set: Vec<String>,
    /// Print the report as one JSON document
    #[arg(long)]
    json: bool,
}

/// What was done. The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Report {
    scene: String,
    bodies: usize,
    joints: usize,
    /// Scalar constraints.
    rows: usize,
    /// Largest error of a joint or grip \[m, rad\].
    error_before: f64,
    error_after: f64,
    /// Whether every error is within the tolerance.
    closed: bool,
    /// Linearisations.
    outer: u32,
    /// Iterations of the linear solver.
    inner: u32,
    ms: f64,
    residuals: Vec<JointResidual>,
    poses: Vec<BodyPose>,
}

#[derive(Debug, Serialize)]
struct JointResidual {
    joint: String,
    kind: String,
    /// \[m\]
    distance_before: f64,
    /// \[rad\]
    angle_before: f64,
    distance: f64,
    angle: f64,
}

#[derive(Debug, Serialize)]
struct BodyPose {
    body: String,
    /// Of the centre of mass \[m\].
    position: [f64; 3],
    /// w, x, y, z.
    rotation: [f64; 4],
}

/// Whether a setting does anything to a pose that is brought together.
fn acts(setting: &Setting) -> bool {
    setting.owner() == Some("assembly") && setting.key != "assembly.scheme"
}

/// Linearisations unless told otherwise: no frame waits for it.
const ITERATIONS: u32 = 100;
/// More joints than this are not all shown.
const SHOWN: usize = 20;

/// Assembles, writes, prints.
pub(crate) fn run(args: &AssembleArgs, terminal: &Terminal) -> Result<(), Error> {
    let scene = crate::scenes::open(&args.scene, &args.files.files()?)?;
    let own = match scene.input.solver {
        Solver::Assembly(own) => own,
        _ => Assembly::default(),
    };
    let mut input = Input { solver: Solver::Assembly(Assembly { outer: ITERATIONS, ..own }), ..scene.input.clone() };
    for text in &args.set {
        let (setting, _) = settings::split(&input.solver, text)?;
        if !acts(setting) {
            let what =
                format!("--set {} would do nothing: poses are brought together, nothing moves in time", setting.key);
            return Err(Error::setting(what, "give a setting of solver assembly, or leave it out"));
        }
        settings::set(&scene.model, &mut input, text)?;
    }
    let Solver::Assembly(settings) = input.solver else { unreachable!("--set does not change the solver") };
    let files = Outputs::check(&args.output, &["json", "csv"])?;

    let (model, mut state, mut work) = (&scene.model, scene.state.clone(), Work::new(&scene.model));
    let start = Instant::now();
    let done = assemble(model, &settings, &input.grips, &mut state, &mut work)
        .map_err(|e| Error::step(&e, format_args!("assembling {}", scene.name)))?;
    let ms = 1e3 * start.elapsed().as_secs_f64();
    let report = Report {
        scene: scene.name.clone(),
        bodies: model.bodies().len(),
        joints: model.joints().len(),
        rows: model.joints().iter().map(|joint| joint.mask.rows()).sum(),
        error_before: done.error_before,
        error_after: done.error_after,
        closed: done.error_after <= settings.tolerance,
        outer: done.outer,
        inner: done.inner,
        ms,
        residuals: residuals(model, &done),
        poses: poses(model, &state),
    };
    for path in files.ending("json") {
        output::write_json(path, &report)?;
    }
    for path in files.ending("csv") {
        output::write_text(path, &csv(&report))?;
    }
    if args.json {
        output::print_json(&report)?;
    } else {
        print(&report, terminal)?;
    }
    files.tell(terminal);
    Ok(())
}

fn residuals(model: &Model, done: &supple::AssemblyReport) -> Vec<JointResidual> {
    let each = model.joints().iter().zip(&done.before).zip(&done.joints);
    each.map(|((joint, before), after)| JointResidual {
        joint: joint.name.clone(),
        kind: joint.mask.name(),
        distance_before: before.distance,
        angle_before: before.angle,
        distance: after.distance,
        angle: after.angle,
    })
    .collect()
}

fn poses(model: &Model, state: &State) -> Vec<BodyPose> {
    let each = model.bodies().iter().zip(&state.bodies);
    each.map(|(body, state)| {
        let q = state.orientation;
        BodyPose { body: body.name.clone(), position: state.position.to_array(), rotation: [q.w, q.x, q.y, q.z] }
    })
    .collect()
}

/// One row a body, every number with as many digits as give the same bits back.
fn csv(report: &Report) -> String {
    let mut text = String::from("body,x,y,z,qw,qx,qy,qz\n");
    for BodyPose { body, position: [x, y, z], rotation: [qw, qx, qy, qz] } in &report.poses {
        let _ = writeln!(text, "{},{x},{y},{z},{qw},{qx},{qy},{qz}", output::csv_field(body));
    }
    text
}

fn print(report: &Report, terminal: &Terminal) -> Result<(), Error> {
    let mut table = Table::new([
        ("joint", Align::Left),
        ("kind", Align::Left),
        ("open by [m]", Align::Right),
        ("turned by [rad]", Align::Right),
        ("left [m]", Align::Right),
        ("left [rad]", Align::Right),
    ]);
    // Those farthest open after, then before, first; the order of the model among equals.
    let mut order: Vec<&JointResidual> = report.residuals.iter().collect();
    let size = |a: f64, b: f64| a.max(b);
    order.sort_by(|a, b| {
        let after = size(b.distance, b.angle).total_cmp(&size(a.distance, a.angle));
        let before = size(b.distance_before, b.angle_before).total_cmp(&size(a.distance_before, a.angle_before));
        if report.closed { before } else { after }
    });
    for joint in order.iter().take(SHOWN) {
        table.row([
            joint.joint.clone(),
            joint.kind.clone(),
            figure(joint.distance_before),
            figure(joint.angle_before),
            small(joint.distance),
            small(joint.angle),
        ]);
    }
    let title = format!(
        "{}, {}, {}",
        count(report.bodies, "body", "bodies"),
        count(report.joints, "joint", "joints"),
        count(report.rows, "row", "rows")
    );
    let closed = match report.closed {
        true => "yes".to_owned(),
        false => "no: what is left is the least squares, or more --set outer= is needed".to_owned(),
    };
    let work = format!(
        "{} of {} in all, {} ms",
        count(report.outer as usize, "linearisation", "linearisations"),
        count(report.inner as usize, "iteration", "iterations"),
        figure(report.ms)
    );
    output::print(|out| {
        use std::io::Write;
        writeln!(out, "{}  {}", terminal.bold(&report.scene), terminal.faint(&title))?;
        let pairs = [
            (
                "largest error",
                format!("{} before, {} after (m, rad)", figure(report.error_before), figure(report.error_after)),
            ),
            ("closed", closed),
            ("work", work),
        ];
        table::write_pairs(out, terminal, &pairs)?;
        writeln!(out)?;
        table.write(out, terminal)?;
        if report.residuals.len() > SHOWN {
            let more = format!("and {} more, with a .json file or --json", report.residuals.len() - SHOWN);
            writeln!(out, "  {}", terminal.faint(&more))?;
        }
        Ok(())
    })
}
