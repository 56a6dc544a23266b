//! A person directs the character, which uses only its own actuators [Kim 2008, §3].
//!
//! What is asked for is part of the [`Input`](crate::Input), so that a take holds it and nothing else is needed to do it again: goals of bones, in one of
//! three styles; keyframes; a soft landing. Solver `reduced` carries it out (`solver/reduced/direct.rs`): goals become rows `C x = d` on the commands of
//! the actuators, solved level by level (`inverse.rs`); keyframes become a motion with continuous acceleration (`spline.rs`).
//!
//! The actuators are the joints between bodies, and those that hold a body to a place in the world. Joints that let a character go anywhere (a floating body, a planar
//! root) are passive: whatever the goals, no force acts along their directions. The motor of an actuator rests; springs and limits of its joint act.

pub mod inverse;
pub mod spline;

use crate::model::{BodyId, Coordinates, Joint, JointMask, Model, State};
use crate::step::StepError;
use glam::{DQuat, DVec3};

pub use inverse::Robustness;

/// What the character is to do.
///
/// ```
/// use supple::control::{Goal, Mode};
/// use supple::*;
/// // The robot stretches its left hand out to the side, by its own joints.
/// let scene = Scene::parse("robot").unwrap();
/// let hand = scene.model.find_body("left_hand").unwrap();
/// let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
/// let mut input = Input { solver: Solver::Reduced(Reduced::default()), gravity: glam::DVec3::ZERO, ..Input::default() };
/// let target = state.bodies[hand.index()].position + glam::DVec3::new(0.0, 0.1, 0.1);
/// input.control.mode = Mode::Goals;
/// input.control.goals = vec![Goal::drag(hand, glam::DVec3::ZERO, target)];
/// for _ in 0..60 {
///     let report = step(&scene.model, &input, &mut state, &mut work)?;
///     assert!(report.control.root_wrench < 1e-9); // nothing pulls it from outside
/// }
/// assert!(state.bodies[hand.index()].position.distance(target) < 0.01);
/// # Ok::<(), StepError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// How the actuators are told.
    pub mode: Mode,
    /// What the commands that reach the goals keep small.
    pub style: Style,
    /// What bones are to do.
    pub goals: Vec<Goal>,
    /// By joint; missing: as [`JointControl::default`].
    pub joints: Vec<JointControl>,
    /// Level of the rows of joint limits and of the pose.
    pub joint_level: Level,
    /// A pose to go to beside the goals, and to land in: positions of all joints as in [`Coordinates`]; empty: the pose that the model starts in.
    pub pose: Vec<f64>,
    /// How much of the way to the pose is asked for, from 0 (none) to 1: γ of [Kim 2008, §3.1], to be raised slowly.
    pub pose_share: f64,
    /// A motion of the joints.
    pub keyframes: Keyframes,
    /// How fast goals are sought.
    pub gains: Gains,
    /// Springs of a soft landing.
    pub landing: Landing,
    /// What is done about goals that can hardly be reached.
    pub robustness: Robustness,
}

/// How the actuators are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not at all: springs, motors and drives of the joints act.
    #[default]
    Off,
    /// By goals of bones. Parts are then stepped by Euler's rule, as with keyframes and landing.
    Goals,
    /// By keyframes; by goals as far as the share of the keyframes is below 1.
    Keyframes,
    /// They are limp but for springs and dampers.
    Landing,
}

/// What the commands that reach the goals keep small [Kim 2008, §3.2].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Accelerations of the actuators: the body bends as one.
    #[default]
    LeastAcceleration,
    /// Torques of the actuators, counted by the energy that they give: loose, waving.
    LeastTorque,
    /// Velocities of all joints: slow, composed.
    LeastVelocity,
}

/// Whose wish comes first. A level is fulfilled as well as can be without any loss to those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// First.
    Primary,
    /// Second.
    #[default]
    Secondary,
    /// Third.
    Tertiary,
}

impl Level {
    /// In order.
    pub const ALL: [Level; 3] = [Level::Primary, Level::Secondary, Level::Tertiary];
}

/// What a bone is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The bone.
    pub body: BodyId,
    /// A point of it, in body coordinates \[m\]. Of no matter for orientations.
    pub point: DVec3,
    /// What is asked of it.
    pub aim: Aim,
    /// Whose wish comes first.
    pub level: Level,
    /// Weight among the goals of its level.
    pub weight: f64,
    /// How it is drawn.
    pub mark: Mark,
}

/// How a goal is drawn; of no matter for what is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// As something that holds.
    #[default]
    Constraint,
    /// As a cursor that leads.
    Cursor,
}

/// What is asked of a bone or of a point of it; world axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// To go to a place, there to have a velocity; at the end of the step \[m, m/s\].
    Position {
        /// \[m\]
        target: DVec3,
        /// \[m/s\]
        velocity: DVec3,
    },
    /// To be at a height over the origin \[m\], along +Y.
    Height(f64),
    /// To turn to an orientation, body axes to world axes, there to have an angular velocity \[rad/s\].
    Orientation {
        /// At the end of the step.
        target: DQuat,
        /// \[rad/s\]
        velocity: DVec3,
    },
    /// To have a velocity \[m/s\].
    Velocity(DVec3),
    /// To have an angular velocity \[rad/s\].
    AngularVelocity(DVec3),
    /// To have an acceleration \[m/s²\].
    Acceleration(DVec3),
    /// To have an angular acceleration \[rad/s²\].
    AngularAcceleration(DVec3),
}

impl Goal {
    /// A goal with the weight 1.
    pub fn new(body: BodyId, point: DVec3, aim: Aim, level: Level) -> Goal {
        Goal { body, point, aim, level, weight: 1.0, mark: Mark::Constraint }
    }

    /// A point follows a cursor: secondary.
    pub fn drag(body: BodyId, point: DVec3, target: DVec3) -> Goal {
        let aim = Aim::Position { target, velocity: DVec3::ZERO };
        Goal { mark: Mark::Cursor, ..Goal::new(body, point, aim, Level::Secondary) }
    }

    /// The bone keeps an orientation: primary.
    pub fn keep_orientation(body: BodyId, target: DQuat) -> Goal {
        let aim = Aim::Orientation { target, velocity: DVec3::ZERO };
        Goal::new(body, DVec3::ZERO, aim, Level::Primary)
    }

    /// A point keeps its place: primary.
    pub fn keep_position(body: BodyId, point: DVec3, target: DVec3) -> Goal {
        let aim = Aim::Position { target, velocity: DVec3::ZERO };
        Goal::new(body, point, aim, Level::Primary)
    }

    /// A point keeps its height: primary.
    pub fn keep_height(body: BodyId, point: DVec3, height: f64) -> Goal {
        Goal::new(body, point, Aim::Height(height), Level::Primary)
    }

    /// The bone comes to rest and stays so: primary.
    pub fn stop(body: BodyId) -> [Goal; 2] {
        [Aim::Velocity(DVec3::ZERO), Aim::AngularVelocity(DVec3::ZERO)]
            .map(|aim| Goal::new(body, DVec3::ZERO, aim, Level::Primary))
    }

    /// The bone goes on as it moves: primary.
    pub fn coast(body: BodyId) -> [Goal; 2] {
        [Aim::Acceleration(DVec3::ZERO), Aim::AngularAcceleration(DVec3::ZERO)]
            .map(|aim| Goal::new(body, DVec3::ZERO, aim, Level::Primary))
    }

    fn is_sound(&self) -> bool {
        let aim = match self.aim {
            Aim::Position { target, velocity } => target.is_finite() && velocity.is_finite(),
            Aim::Height(height) => height.is_finite(),
            Aim::Orientation { target, velocity } => {
                (target.length_squared() - 1.0).abs() < 2e-3 && velocity.is_finite()
            }
            Aim::Velocity(x) | Aim::AngularVelocity(x) | Aim::Acceleration(x) | Aim::AngularAcceleration(x) => {
                x.is_finite()
            }
        };
        aim && self.point.is_finite() && self.weight.is_finite() && self.weight >= 0.0
    }
}

/// What may differ from joint to joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointControl {
    /// Whether it is an actuator.
    pub actuation: Actuation,
    /// How dear its command is: of two joints the one with the smaller weight does more. Above 0.
    pub weight: f64,
    /// Largest torque (force of a slide) \[N·m, N\]; the motor of the joint may allow less.
    pub max_torque: f64,
}

impl Default for JointControl {
    fn default() -> Self {
        JointControl { actuation: Actuation::ByPlace, weight: 1.0, max_torque: f64::INFINITY }
    }
}

/// Whether a joint is an actuator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Actuation {
    /// It is one unless it lets a body go anywhere in the world: two free translations or more.
    #[default]
    ByPlace,
    /// It is one.
    Active,
    /// It is none: its motor acts.
    Passive,
}

impl JointControl {
    /// Whether the joint is an actuator. Floating bodies have no joint and no actuator.
    pub fn acts(&self, joint: &Joint) -> bool {
        joint.mask.free() > 0
            && match self.actuation {
                Actuation::ByPlace => joint.parent.is_some() || joint.mask.free_translations() < 2,
                Actuation::Active => true,
                Actuation::Passive => false,
            }
    }

    /// Largest torque \[N·m, N\].
    pub fn most_torque(&self, joint: &Joint) -> f64 {
        joint.motor.map_or(self.max_torque, |motor| motor.max.min(self.max_torque))
    }
}

/// Poses at times, and how much the motion through them counts. Flat lists: a key is a time and as many positions as [`Coordinates`] have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keyframes {
    /// Of the state's time, growing \[s\].
    pub times: Vec<f64>,
    /// Key by key: positions of all joints; those of joints that are no actuators are not used.
    pub positions: Vec<f64>,
    /// Share of the keyframes in the commands, 0 to 1; the rest is that of the goals.
    pub share: f64,
    /// How the motion begins and ends.
    pub ends: Ends,
    /// How fast joints that are off the motion come back to it \[1/s\].
    pub rate: f64,
}

/// How a motion through keyframes begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// At rest.
    #[default]
    AtRest,
    /// Without acceleration.
    Natural,
}

/// The usual [`Keyframes::rate`] \[1/s\].
pub const KEYFRAME_RATE: f64 = 30.0;

impl Keyframes {
    /// No keys yet, all of the command.
    pub fn new() -> Keyframes {
        Keyframes { share: 1.0, rate: KEYFRAME_RATE, ..Keyframes::default() }
    }

    /// Adds the pose of `coordinates` at a time, in its place among the others. Of the quaternions q and −q that is taken which is nearer to the key before.
    pub fn insert(&mut self, time: f64, coordinates: &Coordinates) {
        let stride = coordinates.positions.len();
        let k = self.times.partition_point(|t| *t < time);
        if self.times.get(k) == Some(&time) {
            self.positions[k * stride..(k + 1) * stride].copy_from_slice(&coordinates.positions);
        } else {
            self.times.insert(k, time);
            self.positions.splice(k * stride..k * stride, coordinates.positions.iter().copied());
        }
        for key in 1..self.times.len() {
            let (before, this) = self.positions.split_at_mut(key * stride);
            coordinates.align(&before[(key - 1) * stride..], &mut this[..stride]);
        }
    }

    /// Takes the key at an index away.
    pub fn remove(&mut self, key: usize) {
        let stride = self.positions.len() / self.times.len().max(1);
        if key < self.times.len() {
            self.times.remove(key);
            self.positions.drain(key * stride..(key + 1) * stride);
        }
    }
}

/// How fast goals are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Of positions and orientations, in least acceleration and least torque: `A = Kp (x* − x) + 2 √Kp (v* − v)` \[1/s²\].
    pub goal: f64,
    /// Time in which a goal is to be reached, in least velocity: `V = v* + (x* − x)/T` \[s\].
    pub reach_time: f64,
    /// Of limits that are passed \[1/s²\].
    pub limit: f64,
    /// Of the pose beside the goals \[1/s²\].
    pub pose: f64,
    /// How fast motion that no goal asks for dies away, in least acceleration and least torque \[1/s\]: small is what commands do beyond this. 0: as published, and what once
    /// moves goes on.
    pub braking: f64,
    /// Goals ask for no more than this \[m/s²\].
    pub most_acceleration: f64,
    /// Goals ask for no more than this \[m/s\].
    pub most_velocity: f64,
    /// No actuator is told a larger acceleration \[rad/s², m/s²\].
    pub most_command: f64,
    /// No actuator is told to go faster \[rad/s, m/s\]: like a motor it does no work on what is faster already, and brakes it. Without this bound goals that contradict one another
    /// do work on a character for as long as they are asked for.
    pub most_rate: f64,
}

impl Default for Gains {
    fn default() -> Self {
        Gains {
            goal: 200.0,
            reach_time: 0.15,
            limit: 400.0,
            pose: 100.0,
            braking: 5.0,
            most_acceleration: 50.0,
            most_velocity: 3.0,
            most_command: 2000.0,
            most_rate: 30.0,
        }
    }
}

/// Springs of a soft landing: as if each joint, with all that it moves in the pose at the start, were a spring of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Landing {
    /// \[1/s\]
    pub hertz: f64,
    /// Damping in parts of the critical.
    pub ratio: f64,
}

impl Default for Landing {
    fn default() -> Self {
        Landing { hertz: 1.5, ratio: 1.0 }
    }
}

/// What a step tells of the control.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControlReport {
    /// Actuators told what to do.
    pub actuators: u32,
    /// Largest force or torque along the free directions of passive roots \[N, N·m\]: zero but for rounding.
    pub root_wrench: f64,
    /// Force of the pull from outside that would have done as much with stiff joints (loose ones, in least torque) \[N\].
    pub pull_force: f64,
    /// Its torque about the root \[N·m\].
    pub pull_torque: f64,
    /// Commands that were held back by a bound.
    pub limited: u32,
    /// By level: what was asked for and not done, root of the sum of squares over its rows \[m/s²; in least velocity m/s\].
    pub residuals: [f64; 3],
    /// By level: what was asked for \[m/s²; in least velocity m/s\].
    pub asked: [f64; 3],
    /// Largest torque of an actuator \[N·m, N\].
    pub max_torque: f64,
    /// Root of the sum of squares of the actuators' torques \[N·m\].
    pub torque: f64,
    /// The same of their accelerations \[rad/s²\].
    pub acceleration: f64,
}

impl Control {
    /// One joint's part.
    pub fn joint(&self, index: usize) -> JointControl {
        self.joints.get(index).copied().unwrap_or_default()
    }

    /// One joint's part, to be changed; all joints get entries.
    pub fn joint_mut(&mut self, model: &Model, index: usize) -> &mut JointControl {
        self.joints.resize(model.joints().len(), JointControl::default());
        &mut self.joints[index]
    }

    /// Becomes the same as another. Allocates nothing once its lists have their size.
    pub(crate) fn copy_from(&mut self, other: &Control) {
        let Control {
            mode,
            style,
            goals,
            joints,
            joint_level,
            pose,
            pose_share,
            keyframes,
            gains,
            landing,
            robustness,
        } = other;
        (self.mode, self.style, self.joint_level, self.pose_share) = (*mode, *style, *joint_level, *pose_share);
        (self.gains, self.landing, self.robustness) = (*gains, *landing, *robustness);
        self.goals.clone_from(goals);
        self.joints.clone_from(joints);
        self.pose.clone_from(pose);
        let Keyframes { times, positions, share, ends, rate } = keyframes;
        self.keyframes.times.clone_from(times);
        self.keyframes.positions.clone_from(positions);
        (self.keyframes.share, self.keyframes.ends, self.keyframes.rate) = (*share, *ends, *rate);
    }

    /// Everything that must hold of a control that acts; a step checks it too.
    pub fn check(&self, model: &Model) -> Result<(), StepError> {
        if self.mode == Mode::Off {
            return Ok(());
        }
        let wrong = |part: String, what: &str| Err(StepError::Input { part, what: what.to_owned() });
        for (i, goal) in self.goals.iter().enumerate() {
            if goal.body.index() >= model.bodies().len() {
                return wrong(format!("goal {i}"), "its body does not exist");
            }
            if !goal.is_sound() {
                let what = "a number is not finite, its weight is negative or its rotation is not a unit quaternion";
                return wrong(format!("goal {i}"), what);
            }
        }
        if self.joints.len() > model.joints().len() {
            return wrong("the control".into(), "it has more joints than the model");
        }
        for (joint, part) in model.joints().iter().zip(&self.joints) {
            if !(part.weight.is_finite() && part.weight > 0.0 && part.max_torque >= 0.0) {
                let what = "its weight in the control is not above 0, or its largest torque is negative";
                return wrong(format!("joint \"{}\"", joint.name), what);
            }
        }
        let positions: usize = model
            .topology()
            .nodes
            .iter()
            .map(|node| node.joint.map_or(JointMask::FREE, |id| model.joint(id).mask).positions())
            .sum();
        let finite = |list: &[f64]| list.iter().all(|x| x.is_finite());
        if !(self.pose.is_empty() || self.pose.len() == positions) || !finite(&self.pose) {
            return wrong(
                "the pose of the control".into(),
                "it is not as long as the model's coordinates, or not finite",
            );
        }
        let Keyframes { times, positions: keys, share, rate, .. } = &self.keyframes;
        if keys.len() != times.len() * positions || !finite(keys) {
            return wrong("the keyframes".into(), "a key is not as long as the model's coordinates, or not finite");
        }
        let are_rotations = |list: &[f64]| are_rotations(model, list, positions);
        if !are_rotations(&self.pose) {
            return wrong("the pose of the control".into(), "the rotation of a joint in it is not a unit quaternion");
        }
        if !are_rotations(keys) {
            let what = "the rotation of a joint is not a unit quaternion, or more than half a turn from that of the key before it";
            return wrong("the keyframes".into(), what);
        }
        if !finite(times) || !times.is_sorted_by(|a, b| a < b) {
            return wrong("the keyframes".into(), "their times do not grow");
        }
        if self.mode == Mode::Keyframes && times.is_empty() {
            return wrong("the keyframes".into(), "there is none: insert one");
        }
        let share_is_sound = |x: f64| (0.0..=1.0).contains(&x);
        if !(share_is_sound(*share) && share_is_sound(self.pose_share)) {
            return wrong("a share of the control".into(), "it is not between 0 and 1");
        }
        let Gains { goal, reach_time, limit, pose, braking, most_acceleration, most_velocity, most_command, most_rate } =
            self.gains;
        let gains = [goal, limit, pose, braking, most_acceleration, most_velocity, most_command, most_rate, *rate];
        let Landing { hertz, ratio } = self.landing;
        if gains.iter().chain(&[hertz, ratio]).any(|x| !(x.is_finite() && *x >= 0.0))
            || !(reach_time.is_finite() && reach_time > 0.0)
            || !self.robustness.is_sound()
        {
            return wrong("a gain of the control".into(), "it is negative or not finite");
        }
        Ok(())
    }

    /// The keyframe of a state: its pose at its time. Returns the coordinates it was taken of.
    pub fn key(&mut self, model: &Model, state: &State) -> Coordinates {
        let coordinates = Coordinates::of(model, state);
        if self.keyframes == Keyframes::default() {
            self.keyframes = Keyframes::new();
        }
        self.keyframes.insert(state.time, &coordinates);
        coordinates
    }
}

/// Whether the rotations of joints in a list of poses, each `positions` long, are unit quaternions, each on the same side as the one before.
fn are_rotations(model: &Model, list: &[f64], positions: usize) -> bool {
    let mut end = 0;
    model.topology().nodes.iter().all(|node| {
        let mask = node.joint.map_or(JointMask::FREE, |id| model.joint(id).mask);
        end += mask.positions();
        let at = end - 4.min(end);
        let poses = list.chunks_exact(positions.max(1)).map(|pose| &pose[at..end]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let neighbours = poses.clone().zip(poses.clone().skip(1));
        !mask.has_quaternion()
            || (poses.clone().all(|q| (dot(q, q) - 1.0).abs() < 2e-3)
                && neighbours.clone().all(|(a, b)| dot(a, b) > 0.0))
    })
}
