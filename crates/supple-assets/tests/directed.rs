//! Imported figures follow a drag by their own actuators: every robot, character and skeleton among the files of others, in every style.
//!
//! Each goal is a place that the figure can bring its bone to: it was led there through keyframes, by its own actuators, within their torques and the limits of its joints (`common/led.rs`). So every
//! goal is to be reached, but where a bone stands such that no command brings it nearer, which is told. What is out of reach is asked for too: then nothing may whirl.

mod common;
#[path = "common/led.rs"]
mod led;

use glam::DVec3;
use led::{Led, at_rest, lead, longest_limb};
use std::f64::consts::E;
use std::path::Path;
use supple::control::{ControlReport, Gains, Goal, Mode, Robustness, Style};
use supple::*;

const STYLES: [Style; 3] = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity];
const FILES: [(&str, &str); 5] = [("urdf", "urdf"), ("mjcf", "xml"), ("gltf", "glb"), ("gltf", "gltf"), ("bvh", "bvh")];
/// Three seconds.
const STEPS: u32 = 180;

/// The distance of the two farthest of the centres of mass and joints of a figure \[m\].
fn size(model: &Model, state: &State) -> f64 {
    let bodies = state.bodies.iter().map(|body| body.position);
    let place =
        |joint: &Joint| state.bodies[joint.child.index()].pose().transform_point(joint.child_from_joint.translation);
    let points: Vec<DVec3> = bodies.chain(model.joints().iter().map(place)).collect();
    points.iter().flat_map(|a| points.iter().map(|b| a.distance(*b))).fold(0.0, f64::max)
}

/// The speed of the fastest body \[m/s\].
fn speed(state: &State) -> f64 {
    state.bodies.iter().map(|body| body.velocity.linear.length()).fold(0.0, f64::max)
}

/// What became of a drag.
struct Drag {
    /// How far the bone is from its target in the end \[m\].
    off: f64,
    /// The fastest that a body was, and was in the last second, and is in the end \[m/s\].
    fastest: f64,
    late: f64,
    end: f64,
    /// Of the last step.
    last: ControlReport,
}

/// Drags a bone of a figure at rest to a place.
fn drag(scene: &Scene, bone: BodyId, to: DVec3, style: Style) -> Result<Drag, StepError> {
    let (mut state, mut input) = at_rest(scene);
    input.control.mode = Mode::Goals;
    input.control.style = style;
    input.control.goals = vec![Goal::drag(bone, DVec3::ZERO, to)];
    let mut work = Work::new(&scene.model);
    let (mut fastest, mut late) = (0.0f64, 0.0f64);
    let mut last = ControlReport::default();
    for n in 0..STEPS {
        last = step(&scene.model, &input, &mut state, &mut work)?.control;
        // rounding, beside what would be needed to pull it
        let none = 1e-9 + 1e-12 * (last.pull_force + last.pull_torque + last.max_torque);
        assert!(last.root_wrench < none, "{}, {style:?}, step {n}: {last:?}", scene.name);
        fastest = fastest.max(speed(&state));
        if n >= STEPS - 60 {
            late = late.max(speed(&state));
        }
    }
    let off = state.bodies[bone.index()].position.distance(to);
    Ok(Drag { off, fastest, late, end: speed(&state), last })
}

/// What became of the drags within reach.
#[derive(Default)]
struct Told {
    reached: u32,
    /// No command brings the bone nearer, and this is told.
    stuck: u32,
    /// Figures too weak to keep the pose they start in.
    weak: Vec<String>,
    /// Figures with loops or couplings.
    refused: u32,
    /// What must not be.
    wrong: Vec<String>,
}

fn direct(path: &Path, told: &mut Told) {
    let name = path.file_name().unwrap().display();
    let Ok(figure) = supple_assets::open(path) else { return }; // fragments: tested where files are read
    let scene = &figure.scene;
    let Led { bone, from, to, share } = match lead(scene) {
        Ok(Some(led)) => led,
        Ok(None) => return told.weak.push(name.to_string()),
        Err(error) if error.code() == "step/unsupported" => {
            println!("{name}: {error}");
            return told.refused += 1;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    if share == 0.0 {
        return told.wrong.push(format!("{name} stands, but cannot be led anywhere"));
    }
    let way = from.distance(to);
    if way < 1e-6 {
        return println!("{name}: no joint moves its last bone");
    }
    // No goal is farther than the figure is large: nothing is faster than a drag over the whole of it would move its bone, critically damped (in least velocity: in the time it is to be reached).
    let Gains { goal, reach_time, .. } = Gains::default();
    let most = size(&scene.model, &scene.state) * (goal.sqrt() / E).max(1.0 / reach_time);
    for style in STYLES {
        let Drag { off, fastest, end, last, .. } =
            drag(scene, bone, to, style).unwrap_or_else(|error| panic!("{name}, {style:?}: {error}"));
        let reached = off < 0.02 * way;
        let missed = last.residuals[1] / last.asked[1].max(1e-9);
        let line = format!(
            "{name} {style:?}: {} actuators, {:.1} mm of {:.1} mm left, {missed:.2} missed, {} limited, torque {:.1}, {fastest:.1} of {most:.1} m/s, {end:.4} in the end",
            last.actuators,
            1e3 * off,
            1e3 * way,
            last.limited,
            last.max_torque,
        );
        println!("{line}");
        // It stands still, at no bound, and next to nothing of what is asked for can be done.
        let is_stuck = missed > 0.9 && last.limited == 0 && end < 0.01 * most;
        told.reached += u32::from(reached);
        told.stuck += u32::from(!reached && is_stuck);
        if fastest > most || !(reached || is_stuck) {
            told.wrong.push(line);
        }
    }
}

#[test]
fn imported_figures_follow_a_drag_in_every_style() {
    if common::assets().is_none() {
        return;
    }
    let mut told = Told::default();
    for (folder, ending) in FILES {
        common::files(folder, ending).iter().for_each(|path| direct(path, &mut told));
    }
    let Told { reached, stuck, weak, refused, wrong } = told;
    println!("{reached} reached, {stuck} stuck, {refused} figures refused, too weak to stand: {weak:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // All goals can be reached. Some figures stand in a singular pose, and some end in one: a straight limb on hinges cannot
    // be drawn in along itself. 7 of 114 goals are lost to it (5 when knees and elbows of characters were balls).
    assert!(15 * stuck <= reached + stuck, "{stuck} of {}", reached + stuck);
    // most of the files are figures, and are tried
    assert!(reached >= 100 && refused <= 5 && weak.len() <= 1, "{reached} reached, {refused} refused, {weak:?} weak");
}

/// Figures with more bodies are left out where goals are out of reach, for the time it takes.
const MOST_BODIES: usize = 300;

/// Drags the end of the longest limb of a figure to a place that is twice as far as the figure is large.
fn overreach(path: &Path, wrong: &mut Vec<String>) {
    let name = path.file_name().unwrap().display();
    let Ok(figure) = supple_assets::open(path) else { return };
    let scene = &figure.scene;
    let (bone, _) = longest_limb(&scene.model);
    let far = DVec3::new(0.6, 0.48, -0.64) * 2.0 * size(&scene.model, &scene.state);
    let to = scene.state.bodies[bone.index()].position + far;
    // The bone is sought at no more than the most velocity, and no command is above what is asked for divided by the share (control/inverse.rs): what is turned along goes by no more than that faster.
    let Robustness::Scaled(share) = Robustness::default() else { unreachable!("the default") };
    let most = Gains::default().most_velocity / share;
    for style in STYLES.into_iter().filter(|_| scene.model.bodies().len() <= MOST_BODIES) {
        match drag(scene, bone, to, style) {
            Ok(Drag { fastest, late, last, .. }) => {
                let line = format!(
                    "{name} {style:?}: {} limited, torque {:.1}, {fastest:.2} of {most:.2} m/s, {late:.2} in the last second",
                    last.limited, last.max_torque
                );
                println!("{line}");
                if fastest > most {
                    wrong.push(line);
                }
            }
            Err(error) if error.code() == "step/unsupported" => return, // told above
            Err(error) => panic!("{name}, {style:?}: {error}"),
        }
    }
}

#[test]
fn what_is_out_of_reach_makes_nothing_whirl() {
    if common::assets().is_none() {
        return;
    }
    let mut wrong = Vec::new();
    for (folder, ending) in FILES {
        common::files(folder, ending).iter().for_each(|path| overreach(path, &mut wrong));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
