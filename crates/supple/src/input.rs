//! The input of a step: everything that may differ from step to step. What is not here cannot change during a run.

use crate::control::Control;
use crate::maths::rotation::exp;
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, Model, ServoTarget};
use crate::skin::{Ball, Grab, SkinSettings};
use crate::solver::Solver;
use glam::{DQuat, DVec3};

/// What the user asks of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Length of the step \[s\].
    pub dt: f64,
    /// Parts into which the step is divided, at least 1.
    pub substeps: u32,
    /// The method and its settings.
    pub solver: Solver,
    /// \[m/s²\]
    pub gravity: DVec3,
    /// Multiplies the stiffness of every joint spring and motor.
    pub stiffness_scale: f64,
    /// Multiplies the damping of every joint spring and motor.
    pub damping_scale: f64,
    /// Whether joint springs, dampers and motors act at all. Limits always act.
    pub torques: bool,
    /// By joint; empty: every joint neutral.
    pub joints: Vec<JointInput>,
    /// By tracker; missing or `None`: the tracker rests.
    pub targets: Vec<Option<Target>>,
    /// By tracker, no more than there are targets: multiplies the stiffness of its pull; its damping goes with the root, so that
    /// the pull is as well damped at every strength. Missing: 1.
    pub strengths: Vec<f64>,
    /// Springs that a person pulls with.
    pub drags: Vec<Drag>,
    /// Points of bodies held by rows to a place in the world: pins, and poses pulled by hand.
    pub grips: Vec<Grip>,
    /// Forces from outside.
    pub wrenches: Vec<(BodyId, Wrench)>,
    /// What touches what.
    pub contacts: Contacts,
    /// Whether bodies that have been at rest for half a second sleep: they stand still, at no cost, until something asks
    /// or touches them.
    pub sleep: bool,
    /// How flesh and bones are solved.
    pub flesh: FleshCoupling,
    /// How skin is solved.
    pub skin: SkinSettings,
    /// Balls that poke the skin.
    pub balls: Vec<Ball>,
    /// Vertices of the skin that are pulled.
    pub grabs: Vec<Grab>,
    /// By obstacle: its pose at the end of the step and its velocity, linear part that of its origin. Missing or `None`: it
    /// stands where it was built.
    pub obstacles: Vec<Option<Target>>,
    /// What the character is to do by its own actuators.
    pub control: Control,
}

/// What touches what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contacts {
    /// Nothing: bodies pass through each other and through obstacles.
    Off,
    /// Bodies touch obstacles, and pass through each other.
    #[default]
    Obstacles,
    /// Bodies touch obstacles and each other, save for the pairs that [`Model::may_touch`] excludes.
    All,
}

/// How flesh and bones are solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FleshCoupling {
    /// Together: momentum is kept, and any ratio of their masses stays bounded.
    #[default]
    Together,
    /// Bones first, with what flesh did to them at the end of the part before; then flesh, its bones led. For comparison, and for solvers that take flesh
    /// in no other way.
    Loose,
}

/// What may differ from joint to joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointInput {
    /// Multiplies the stiffness of the joint's spring and motor.
    pub stiffness_scale: f64,
    /// Multiplies the damping of the joint's spring and motor.
    pub damping_scale: f64,
    /// Torque of the motor about the axis \[N·m\], or force along the slide \[N\], before clamping.
    pub torque: f64,
    /// What the motor aims at.
    pub servo: Option<ServoTarget>,
    /// Whether the joint moves by forces or as told.
    pub drive: Drive,
}

/// How a joint's free directions move. The directions are those of [`JointMask::free`](crate::JointMask), translations
/// before rotations, as in [`Coordinates`](crate::model::Coordinates): three free rotations are the angular velocity of the child against the
/// parent in the child's joint axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drive {
    /// By forces: springs, dampers, limits, motors.
    #[default]
    Forces,
    /// With these velocities, whatever force it takes \[m/s, rad/s\].
    Velocity([f64; 6]),
    /// With these accelerations, whatever force it takes \[m/s², rad/s²\].
    Acceleration([f64; 6]),
}

impl Drive {
    /// Its numbers; none where forces act.
    pub(crate) fn numbers(&self) -> &[f64] {
        match self {
            Drive::Forces => &[],
            Drive::Velocity(x) | Drive::Acceleration(x) => x,
        }
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.numbers().iter().all(|x| x.is_finite())
    }
}

impl Default for JointInput {
    fn default() -> Self {
        JointInput { stiffness_scale: 1.0, damping_scale: 1.0, torque: 0.0, servo: None, drive: Drive::Forces }
    }
}

/// Where a tracker pulls its body: the pose wanted at the end of the step, and its velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Position of the tracked point, orientation of the body.
    pub pose: Pose,
    /// Velocity of the target.
    pub velocity: Twist,
}

/// A spring between a point of a body and a point in the world, such as a mouse drag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drag {
    /// The body that is pulled.
    pub body: BodyId,
    /// In body coordinates \[m\].
    pub point: DVec3,
    /// Where it is pulled to, at the end of the step \[m\].
    pub target: DVec3,
    /// Velocity of the target \[m/s\].
    pub target_velocity: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
}

/// A point of a body held at a place in the world by rows, not by a spring: three rows, or six with a rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grip {
    /// The body that is held.
    pub body: BodyId,
    /// In body coordinates \[m\].
    pub point: DVec3,
    /// Where it is held at the end of the step \[m\].
    pub target: DVec3,
    /// The orientation it is held in, body axes to world axes; `None` leaves it free.
    pub rotation: Option<DQuat>,
}

impl Grip {
    /// Whether every number is finite and the rotation is one.
    pub fn is_sound(&self) -> bool {
        self.point.is_finite()
            && self.target.is_finite()
            && self.rotation.is_none_or(|q| (q.length_squared() - 1.0).abs() < 2e-3)
    }
}

impl Default for Input {
    fn default() -> Self {
        Input {
            dt: 1.0 / 60.0,
            substeps: 1,
            solver: Solver::default(),
            gravity: DVec3::new(0.0, -9.81, 0.0),
            stiffness_scale: 1.0,
            damping_scale: 1.0,
            torques: true,
            joints: Vec::new(),
            targets: Vec::new(),
            strengths: Vec::new(),
            drags: Vec::new(),
            grips: Vec::new(),
            wrenches: Vec::new(),
            contacts: Contacts::default(),
            sleep: false,
            flesh: FleshCoupling::default(),
            skin: SkinSettings::default(),
            balls: Vec::new(),
            grabs: Vec::new(),
            obstacles: Vec::new(),
            control: Control::default(),
        }
    }
}

impl Input {
    /// Becomes the same as another. Allocates nothing once its lists have their size.
    pub(crate) fn copy_from(&mut self, other: &Input) {
        let Input {
            dt,
            substeps,
            solver,
            gravity,
            stiffness_scale,
            damping_scale,
            torques,
            joints,
            targets,
            strengths,
            drags,
            grips,
            wrenches,
            contacts,
            sleep,
            flesh,
            skin,
            balls,
            grabs,
            obstacles,
            control,
        } = other;
        (self.dt, self.substeps, self.solver, self.gravity) = (*dt, *substeps, *solver, *gravity);
        (self.stiffness_scale, self.damping_scale, self.torques) = (*stiffness_scale, *damping_scale, *torques);
        self.joints.clone_from(joints);
        self.targets.clone_from(targets);
        self.strengths.clone_from(strengths);
        self.drags.clone_from(drags);
        self.grips.clone_from(grips);
        self.wrenches.clone_from(wrenches);
        (self.contacts, self.sleep, self.flesh, self.skin) = (*contacts, *sleep, *flesh, *skin);
        self.balls.clone_from(balls);
        self.grabs.clone_from(grabs);
        self.obstacles.clone_from(obstacles);
        self.control.copy_from(control);
    }

    /// Whether any target of a drag, tracker or servo moves during the step.
    pub(crate) fn moves(&self) -> bool {
        self.drags.iter().any(|drag| drag.target_velocity != DVec3::ZERO)
            || self.targets.iter().flatten().any(|target| target.velocity != Twist::ZERO)
            || self
                .joints
                .iter()
                .any(|own| matches!(own.servo, Some(ServoTarget::Position { rate, .. }) if rate != 0.0))
    }

    /// Puts the targets of drags, trackers and servos, which are those of the step's end, back to where they are so long before it.
    pub(crate) fn go_back(&mut self, by: f64) {
        for drag in &mut self.drags {
            drag.target -= drag.target_velocity * by;
        }
        for target in self.targets.iter_mut().flatten() {
            target.pose.translation -= target.velocity.linear * by;
            target.pose.rotation = exp(target.velocity.angular * -by) * target.pose.rotation;
        }
        for own in &mut self.joints {
            if let Some(ServoTarget::Position { position, rate }) = &mut own.servo {
                *position -= *rate * by;
            }
        }
    }

    /// What multiplies the pull of a tracker, by its index.
    pub fn strength(&self, tracker: usize) -> f64 {
        self.strengths.get(tracker).copied().unwrap_or(1.0)
    }

    /// One joint's input.
    pub fn joint(&self, index: usize) -> JointInput {
        self.joints.get(index).copied().unwrap_or_default()
    }

    /// One joint's input, to be changed; all joints get entries.
    pub fn joint_mut(&mut self, model: &Model, index: usize) -> &mut JointInput {
        self.joints.resize(model.joints().len(), JointInput::default());
        &mut self.joints[index]
    }

    /// Factors on joint stiffness and damping, with the switch for torques.
    pub(crate) fn scales(&self, joint: &JointInput) -> (f64, f64) {
        let on = if self.torques { 1.0 } else { 0.0 };
        (on * self.stiffness_scale * joint.stiffness_scale, on * self.damping_scale * joint.damping_scale)
    }
}
