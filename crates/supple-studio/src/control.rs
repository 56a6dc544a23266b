//! The control of the actuators as JSON, for `set`, `status` and frames (`docs/protocol.md`).

use serde::{Deserialize, Serialize};
use supple::control::{Actuation, Aim, Control, Goal, JointControl, Keyframes, Landing, Level, Mark, Mode, Style};
use supple::glam::{DQuat, DVec3};
use supple::model::Coordinates;
use supple::{BodyId, Model};

/// All that is asked of the actuators but pulls, which come as drags.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ControlTold {
    pub(crate) mode: ModeTold,
    pub(crate) style: StyleTold,
    pub(crate) goals: Vec<GoalTold>,
    /// Level of pulls.
    pub(crate) drag_level: LevelTold,
    pub(crate) joint_level: LevelTold,
    pub(crate) joints: Vec<JointTold>,
    /// The target pose: positions of all joints, as in keyframes; empty: the pose that the scene starts in.
    pub(crate) pose: Vec<f64>,
    pub(crate) pose_share: f64,
    pub(crate) keyframes: Vec<KeyTold>,
    /// Share of the keyframes in the commands.
    pub(crate) share: f64,
    pub(crate) landing: LandingTold,
}

/// What changes of it; what is left out stays, so that changes which cross on their way do not undo one another.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct ControlChange {
    mode: Option<ModeTold>,
    style: Option<StyleTold>,
    goals: Option<Vec<GoalTold>>,
    drag_level: Option<LevelTold>,
    joint_level: Option<LevelTold>,
    joints: Option<Vec<JointTold>>,
    pose: Option<Vec<f64>>,
    pose_share: Option<f64>,
    keyframes: Option<Vec<KeyTold>>,
    share: Option<f64>,
    landing: Option<LandingTold>,
}

impl ControlChange {
    /// The whole, after the change.
    pub(crate) fn of(self, before: ControlTold) -> ControlTold {
        ControlTold {
            mode: self.mode.unwrap_or(before.mode),
            style: self.style.unwrap_or(before.style),
            goals: self.goals.unwrap_or(before.goals),
            drag_level: self.drag_level.unwrap_or(before.drag_level),
            joint_level: self.joint_level.unwrap_or(before.joint_level),
            joints: self.joints.unwrap_or(before.joints),
            pose: self.pose.unwrap_or(before.pose),
            pose_share: self.pose_share.unwrap_or(before.pose_share),
            keyframes: self.keyframes.unwrap_or(before.keyframes),
            share: self.share.unwrap_or(before.share),
            landing: self.landing.unwrap_or(before.landing),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeTold {
    Off,
    Goals,
    Keyframes,
    Landing,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum StyleTold {
    #[serde(rename = "least_acceleration")]
    Acceleration,
    #[serde(rename = "least_torque")]
    Torque,
    #[serde(rename = "least_velocity")]
    Velocity,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelTold {
    Primary,
    Secondary,
    Tertiary,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AimTold {
    Position([f64; 3]),
    Height(f64),
    /// x, y, z, w.
    Orientation([f64; 4]),
    Velocity([f64; 3]),
    AngularVelocity([f64; 3]),
    Acceleration([f64; 3]),
    AngularAcceleration([f64; 3]),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoalTold {
    pub(crate) body: u32,
    /// In body coordinates.
    #[serde(default)]
    pub(crate) point: [f64; 3],
    pub(crate) aim: AimTold,
    #[serde(default = "primary")]
    pub(crate) level: LevelTold,
    #[serde(default = "unit")]
    pub(crate) weight: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JointTold {
    pub(crate) joint: u32,
    #[serde(default = "unit")]
    pub(crate) weight: f64,
    /// Null: none of its own.
    #[serde(default)]
    pub(crate) max_torque: Option<f64>,
    #[serde(default)]
    pub(crate) actuation: ActuationTold,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActuationTold {
    #[default]
    ByPlace,
    Active,
    Passive,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyTold {
    pub(crate) time: f64,
    /// Of all joints, as the engine's coordinates have them.
    pub(crate) positions: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LandingTold {
    pub(crate) hertz: f64,
    pub(crate) ratio: f64,
}

fn primary() -> LevelTold {
    LevelTold::Primary
}
fn unit() -> f64 {
    1.0
}

impl LevelTold {
    pub(crate) fn level(self) -> Level {
        match self {
            LevelTold::Primary => Level::Primary,
            LevelTold::Secondary => Level::Secondary,
            LevelTold::Tertiary => Level::Tertiary,
        }
    }

    pub(crate) fn of(level: Level) -> LevelTold {
        match level {
            Level::Primary => LevelTold::Primary,
            Level::Secondary => LevelTold::Secondary,
            Level::Tertiary => LevelTold::Tertiary,
        }
    }
}

impl AimTold {
    fn aim(self) -> Aim {
        let velocity = DVec3::ZERO;
        match self {
            AimTold::Position(x) => Aim::Position { target: x.into(), velocity },
            AimTold::Height(x) => Aim::Height(x),
            AimTold::Orientation(q) => Aim::Orientation { target: DQuat::from_array(q).normalize(), velocity },
            AimTold::Velocity(x) => Aim::Velocity(x.into()),
            AimTold::AngularVelocity(x) => Aim::AngularVelocity(x.into()),
            AimTold::Acceleration(x) => Aim::Acceleration(x.into()),
            AimTold::AngularAcceleration(x) => Aim::AngularAcceleration(x.into()),
        }
    }

    fn of(aim: Aim) -> AimTold {
        match aim {
            Aim::Position { target, .. } => AimTold::Position(target.into()),
            Aim::Height(x) => AimTold::Height(x),
            Aim::Orientation { target, .. } => AimTold::Orientation(target.into()),
            Aim::Velocity(x) => AimTold::Velocity(x.into()),
            Aim::AngularVelocity(x) => AimTold::AngularVelocity(x.into()),
            Aim::Acceleration(x) => AimTold::Acceleration(x.into()),
            Aim::AngularAcceleration(x) => AimTold::AngularAcceleration(x.into()),
        }
    }
}

impl GoalTold {
    fn goal(&self) -> Goal {
        let goal = Goal::new(BodyId(self.body), self.point.into(), self.aim.aim(), self.level.level());
        Goal { weight: self.weight, ..goal }
    }

    fn of(goal: &Goal) -> GoalTold {
        GoalTold {
            body: goal.body.0,
            point: goal.point.into(),
            aim: AimTold::of(goal.aim),
            level: LevelTold::of(goal.level),
            weight: goal.weight,
        }
    }
}

impl ControlTold {
    /// The control as the engine takes it, in place of `before`, which keeps what is not told.
    pub(crate) fn control(&self, model: &Model, before: &Control) -> Control {
        let mut control = Control { goals: Vec::new(), joints: Vec::new(), ..before.clone() };
        control.mode = match self.mode {
            ModeTold::Off => Mode::Off,
            ModeTold::Goals => Mode::Goals,
            ModeTold::Keyframes => Mode::Keyframes,
            ModeTold::Landing => Mode::Landing,
        };
        control.style = match self.style {
            StyleTold::Acceleration => Style::LeastAcceleration,
            StyleTold::Torque => Style::LeastTorque,
            StyleTold::Velocity => Style::LeastVelocity,
        };
        // One that was there already keeps what is not told of it.
        let known = |told: &GoalTold| kept(before).find(|goal| GoalTold::of(goal) == *told).copied();
        control.goals.extend(self.goals.iter().map(|told| known(told).unwrap_or_else(|| told.goal())));
        control.joint_level = self.joint_level.level();
        for told in self.joints.iter().filter(|told| (told.joint as usize) < model.joints().len()) {
            *control.joint_mut(model, told.joint as usize) = JointControl {
                weight: told.weight,
                max_torque: told.max_torque.unwrap_or(f64::INFINITY),
                actuation: match told.actuation {
                    ActuationTold::ByPlace => Actuation::ByPlace,
                    ActuationTold::Active => Actuation::Active,
                    ActuationTold::Passive => Actuation::Passive,
                },
            };
        }
        control.pose.clone_from(&self.pose);
        control.pose_share = self.pose_share;
        let usual = if before.keyframes == Keyframes::default() { Keyframes::new() } else { before.keyframes.clone() };
        let Keyframes { ends, rate, .. } = usual; // a scene may have its own
        control.keyframes = Keyframes { share: self.share, ends, rate, ..Keyframes::default() };
        let mut coordinates = Coordinates::new(model);
        for key in &self.keyframes {
            if key.positions.len() == coordinates.positions.len() {
                coordinates.positions.copy_from_slice(&key.positions);
                control.keyframes.insert(key.time, &coordinates);
            }
        }
        control.landing = Landing { hertz: self.landing.hertz, ratio: self.landing.ratio };
        control
    }

    /// What is to be told of a control; pulls are not.
    pub(crate) fn of(control: &Control, drag_level: LevelTold) -> ControlTold {
        let keys = &control.keyframes;
        let stride = keys.positions.len() / keys.times.len().max(1);
        let usual = JointControl::default();
        let joints = control.joints.iter().enumerate().filter(|(_, joint)| **joint != usual);
        ControlTold {
            mode: match control.mode {
                Mode::Off => ModeTold::Off,
                Mode::Goals => ModeTold::Goals,
                Mode::Keyframes => ModeTold::Keyframes,
                Mode::Landing => ModeTold::Landing,
            },
            style: match control.style {
                Style::LeastAcceleration => StyleTold::Acceleration,
                Style::LeastTorque => StyleTold::Torque,
                Style::LeastVelocity => StyleTold::Velocity,
            },
            goals: kept(control).map(GoalTold::of).collect(),
            drag_level,
            joint_level: LevelTold::of(control.joint_level),
            joints: joints
                .map(|(k, joint)| JointTold {
                    joint: k as u32,
                    weight: joint.weight,
                    max_torque: joint.max_torque.is_finite().then_some(joint.max_torque),
                    actuation: match joint.actuation {
                        Actuation::ByPlace => ActuationTold::ByPlace,
                        Actuation::Active => ActuationTold::Active,
                        Actuation::Passive => ActuationTold::Passive,
                    },
                })
                .collect(),
            pose: control.pose.clone(),
            pose_share: control.pose_share,
            keyframes: keys
                .times
                .iter()
                .enumerate()
                .map(|(k, &time)| KeyTold { time, positions: keys.positions[k * stride..(k + 1) * stride].to_vec() })
                .collect(),
            share: if keys.times.is_empty() { 1.0 } else { keys.share },
            landing: LandingTold { hertz: control.landing.hertz, ratio: control.landing.ratio },
        }
    }
}

/// Goals that hold until they are taken away: all but those of cursors.
pub(crate) fn kept(control: &Control) -> impl Iterator<Item = &Goal> {
    control.goals.iter().filter(|goal| goal.mark == Mark::Constraint)
}
