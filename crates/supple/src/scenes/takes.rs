//! Built-in takes: motions directed by hand, stored as what the hand did [Kim 2008, §5, figs. 7–9]. A cursor leads a bone along a path, other bones keep what they are told to
//! keep, a pose is gone to, the rest lands softly. No pose of the motion itself is stored: it comes about by the character's actuators and the ground.

use super::{Parameters, Scene, SceneError, Script};
use crate::control::spline::Spline;
use crate::control::{Actuation, Aim, Control, Ends, Gains, Goal, Keyframes, Landing, Mode, Robustness, Style};
use crate::input::{Contacts, Input};
use crate::model::{BodyId, Coordinates, JointId};
use crate::solver::{Reduced, Solver};
use crate::step::{Work, step};
use glam::DVec3;
use std::f64::consts::TAU;

/// A directed motion.
#[derive(Clone, Debug)]
pub(super) struct Directed {
    /// What stays the same: style, gains, weights, goals of bones that keep something, keyframes.
    control: Control,
    cursor: Option<Cursor>,
    /// From when on bones no longer keep what they keep \[s\].
    free: f64,
    /// From when on the keyframes are gone over to \[s\].
    key: f64,
    /// When it lands \[s\].
    land: f64,
}

/// A point of a bone that is led along a path.
#[derive(Clone, Debug)]
struct Cursor {
    body: BodyId,
    point: DVec3,
    /// Places in the plane of the motion, along X and Y \[m\].
    path: Spline,
    /// Along Z \[m\].
    depth: f64,
}

/// Time in which goals give way to keyframes \[s\].
const OVER: f64 = 0.03;

impl Cursor {
    fn new(body: BodyId, point: DVec3, start: DVec3, path: &[(f64, [f64; 2])]) -> Cursor {
        let times: Vec<f64> = path.iter().map(|(time, _)| *time).collect();
        let places: Vec<f64> = path.iter().flat_map(|(_, [x, y])| [start.x + x, start.y + y]).collect();
        Cursor { body, point, path: Spline::new(&times, &places, 2, Ends::AtRest), depth: start.z }
    }

    /// Where it is at a time, and how fast.
    fn at(&self, time: f64) -> (DVec3, DVec3) {
        let ([x, vx, _], [y, vy, _]) = (self.path.at(0, time), self.path.at(1, time));
        (DVec3::new(x, y, self.depth), DVec3::new(vx, vy, 0.0))
    }
}

impl Directed {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let control = &mut input.control;
        control.copy_from(&self.control);
        if time >= self.free {
            control.goals.clear();
        }
        if let Some(cursor) = &self.cursor {
            let (target, velocity) = cursor.at(time + input.dt);
            let aim = Aim::Position { target, velocity };
            control.goals.push(Goal { aim, ..Goal::drag(cursor.body, cursor.point, target) });
        }
        if time >= self.land {
            control.mode = Mode::Landing;
        } else if time >= self.key {
            control.mode = Mode::Keyframes;
            let s = if self.cursor.is_some() { ((time - self.key) / OVER).min(1.0) } else { 1.0 };
            control.keyframes.share = s * s * (3.0 - 2.0 * s);
        } else {
            control.mode = Mode::Goals;
        }
    }
}

/// How fast the actuators of these creatures go at most \[rad/s\].
const MOST_RATE: f64 = 30.0;

/// A take as it is written down.
struct Score {
    style: Style,
    /// The bone that is led, and the point of it, from its centre of mass \[m\].
    lead: (&'static str, [f64; 2]),
    /// Times \[s\], and places from where the point starts \[m\].
    path: Vec<(f64, [f64; 2])>,
    /// Bones that keep their orientation.
    upright: &'static [&'static str],
    /// Bones that keep a height \[m\].
    level: &'static [(&'static str, f64)],
    /// From when on they keep neither \[s\].
    free: f64,
    /// A pose, every joint bent by as much \[rad\], from a time on, and how fast it is gone to \[1/s\].
    pose: Option<(f64, f64, f64)>,
    /// When it lands \[s\].
    land: f64,
    /// How near to singular poses commands are held back, how fast places are sought \[1/s²\], how fast motion dies away \[1/s\].
    ease: f64,
    gain: f64,
    braking: f64,
    /// Goals ask for no more \[m/s²\].
    most: f64,
    /// Weights of joints by index.
    weights: &'static [(usize, f64)],
}

impl Default for Score {
    fn default() -> Self {
        Score {
            style: Style::LeastAcceleration,
            lead: ("segment_0", [-0.08, 0.0]),
            path: Vec::new(),
            upright: &[],
            level: &[],
            free: f64::INFINITY,
            pose: None,
            land: f64::INFINITY,
            ease: 0.1,
            gain: Gains::default().goal,
            braking: Gains::default().braking,
            most: Gains::default().most_acceleration,
            weights: &[],
        }
    }
}

/// Names of the takes of a scene, with what they show; the first is the scene's own motion.
pub(super) const WORM: &[(&str, &str)] = &[
    ("crawl", "waves run along the body, by servos"),
    ("jump", "the head is drawn out to wind up, then in and up, and the body springs off the ground"),
    ("jump2", "the head is lifted while the tail keeps its orientation; then the body stretches"),
    ("warped", "the first jump, its joints moving as they did but with the timing warped: it fails"),
    ("wave", "the head is led up and down, in least torque"),
    ("bend", "the same in least acceleration"),
    (
        "limp",
        "the head is led to and fro, in least velocity, while the middle keeps its height; joints of unequal weight",
    ),
    ("roll", "the head is led over the body, which curls and rolls"),
];
pub(super) const FISH: &[(&str, &str)] = &[
    ("beat", "the tail beats, by servos"),
    ("escape", "the head is pulled up fast, and the body follows it off the ground"),
    ("turnover", "the tail is led over the head slowly, in least velocity, until the fish lies on its back"),
];
pub(super) const FINGER: &[(&str, &str)] = &[
    ("roll", "the finger moves over a ball, by servos"),
    ("push", "the tip is led onto the ball and rolls it away, in least velocity; the root is active, but dear"),
];

/// The heads of waves up and down: the same path in both styles.
fn up_and_down() -> Vec<(f64, [f64; 2])> {
    let wave = |k: i32| {
        let turn = f64::from(k) / 8.0;
        (1.2 * turn, [0.0, 0.06 * (1.0 - (TAU * turn).cos())])
    };
    (0..=16).map(wave).collect()
}

fn score(scene: &str, take: &str) -> Option<Score> {
    let start = (0.0, [0.0; 2]);
    let wave = Score { path: up_and_down(), ease: 0.3, gain: 100.0, braking: 20.0, ..Score::default() };
    Some(match (scene, take) {
        ("worm", "jump" | "warped") => Score {
            path: vec![start, (0.125, [-0.087, -0.011]), (0.25, [0.212, 0.16]), (0.35, [0.2, 0.12])],
            land: 0.3,
            ease: 0.245,
            gain: 155.0,
            most: 38.5,
            ..Score::default()
        },
        ("worm", "jump2") => Score {
            path: vec![start, (0.45, [0.30, 0.35]), (0.68, [0.2, 0.5])],
            upright: &["segment_6"],
            pose: Some((0.6, 0.0, 35.0)),
            land: 0.88,
            ..Score::default()
        },
        ("worm", "wave") => Score { style: Style::LeastTorque, ..wave },
        ("worm", "bend") => wave,
        ("worm", "limp") => Score {
            style: Style::LeastVelocity,
            path: (0..=6).map(|k| (0.4 * f64::from(k), if k % 2 == 0 { [0.0, 0.02] } else { [0.15, 0.05] })).collect(),
            level: &[("segment_3", 0.2)],
            weights: &[(4, 4.0), (5, 4.0), (6, 4.0)],
            ..Score::default()
        },
        ("worm", "roll") => Score {
            path: vec![start, (0.775, [0.401, 0.5]), (1.175, [1.26, 0.555])],
            pose: Some((0.823, -1.01, 7.8)),
            ease: 0.3,
            ..Score::default()
        },
        ("fish", "escape") => Score {
            lead: ("spine_0", [-0.08, 0.0]),
            path: vec![start, (0.057, [0.164, 0.073]), (0.222, [0.02, 0.435])],
            land: 0.25,
            ease: 0.127,
            gain: 97.0,
            most: 83.0,
            ..Score::default()
        },
        // The front half lies still while the tail is led over it; then it is drawn along, and over.
        ("fish", "turnover") => Score {
            style: Style::LeastVelocity,
            lead: ("spine_6", [0.03, 0.0]),
            path: vec![
                start,
                (0.8, [-0.08, 0.18]),
                (1.6, [-0.28, 0.3]),
                (2.4, [-0.48, 0.25]),
                (3.4, [-0.79, 0.02]),
                (4.4, [-1.1, 0.125]),
                (5.2, [-1.33, 0.05]),
                (6.0, [-1.375, 0.01]),
            ],
            upright: &["spine_0", "spine_1", "spine_2"],
            free: 2.2,
            land: 6.6,
            ..Score::default()
        },
        // Moving the root is as dear as turning the joints by many radians to a metre: so they do what they can.
        ("finger", "push") => Score {
            style: Style::LeastVelocity,
            lead: ("distal", [0.01, 0.0]),
            path: vec![start, (0.5, [-0.02, -0.022]), (1.2, [0.02, -0.022])],
            weights: &[(0, 1e4)],
            ..Score::default()
        },
        _ => return None,
    })
}

/// The take of a scene that its parameter asks for, in place of the scene's own motion.
pub(super) fn apply(
    name: &str,
    takes: &[(&str, &str)],
    parameters: &Parameters<'_>,
    mut scene: Scene,
) -> Result<Scene, SceneError> {
    let names: Vec<&str> = takes.iter().map(|(name, _)| *name).collect();
    let take = parameters.choice("take", &names)?;
    let Some(score) = score(name, take) else { return Ok(scene) };
    scene.input.solver = Solver::Reduced(Reduced::default());
    scene.input.dt = if name == "finger" { 0.5e-3 } else { 1e-3 };
    let mut directed = score.directed(&scene);
    if name == "finger" {
        directed.control.joint_mut(&scene.model, 0).actuation = Actuation::Active;
        scene.input.contacts = Contacts::All;
    }
    if take == "warped" {
        directed = directed.warped(&scene);
    }
    scene.script = Script::Directed(Box::new(directed));
    Ok(scene)
}

impl Score {
    fn directed(&self, scene: &Scene) -> Directed {
        let model = &scene.model;
        let body = |name: &str| model.find_body(name).expect("a take names bones of its scene");
        let (name, [x, y]) = self.lead;
        let (lead, point) = (body(name), DVec3::new(x, y, 0.0));
        let start = scene.state.bodies[lead.index()].pose().transform_point(point);
        let mut control = Control {
            mode: Mode::Goals,
            style: self.style,
            gains: Gains {
                goal: self.gain,
                braking: self.braking,
                most_acceleration: self.most,
                most_rate: MOST_RATE,
                ..Gains::default()
            },
            robustness: Robustness::Scaled(self.ease),
            landing: Landing::default(),
            ..Control::default()
        };
        for name in self.upright {
            let bone = body(name);
            control.goals.push(Goal::keep_orientation(bone, scene.state.bodies[bone.index()].orientation));
        }
        for (name, height) in self.level {
            control.goals.push(Goal::keep_height(body(name), DVec3::ZERO, *height));
        }
        for (joint, weight) in self.weights {
            control.joint_mut(model, *joint).weight = *weight;
        }
        let mut key = f64::INFINITY;
        if let Some((from, bend, rate)) = self.pose {
            let mut pose = Coordinates::of(model, &scene.state);
            (1..model.joints().len()).for_each(|k| pose.positions_of_mut(JointId(k as u32))[0] = bend);
            control.keyframes = Keyframes { rate, ..Keyframes::new() };
            control.keyframes.insert(from, &pose);
            key = from;
        }
        let cursor = Some(Cursor::new(lead, point, start, &self.path));
        Directed { control, cursor, free: self.free, key, land: self.land }
    }
}

/// Length of the first jump \[s\]: by then it lies on the ground again. It is t_f of the warp.
const JUMP: f64 = 0.8;
/// Between the keys of a take that is done again by its joints \[s\].
const KEYS: f64 = 5e-3;

impl Directed {
    /// The same motion of the joints with another timing, `t' = t + (0.05/t_f) sin(2πt/t_f)` [Kim 2008, fig. 1]. The motion is done once, to learn how the joints move.
    fn warped(&self, scene: &Scene) -> Directed {
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        let mut keyframes = Keyframes { rate: 200.0, ..Keyframes::new() };
        let mut next = 0.0;
        while state.time < JUMP {
            if state.time >= next - 1e-9 {
                let warped = state.time + 0.05 / JUMP * (TAU * state.time / JUMP).sin();
                keyframes.insert(warped, &Coordinates::of(&scene.model, &state));
                next += KEYS;
            }
            self.direct(state.time, &mut input);
            if step(&scene.model, &input, &mut state, &mut work).is_err() {
                break; // its keys so far are what there is
            }
        }
        let control = Control { mode: Mode::Keyframes, keyframes, goals: Vec::new(), ..self.control.clone() };
        Directed { control, cursor: None, free: f64::INFINITY, key: 0.0, land: f64::INFINITY }
    }
}
