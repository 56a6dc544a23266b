//! A humanoid that is pulled by its left hand, as the robot of [Hernández 2011, Fig. 3].
//!
//! It stands at the origin and looks along +Z, its left side at +X; the pelvis is welded to the world. X of a ball's
//! frame points along the limb beyond it, so that twist is twist of the limb.

use super::{Parameters, Scene, SceneError, Script, entries, frame_along};
use crate::input::{Drag, Input, JointInput};
use crate::maths::Pose;
use crate::model::{
    BodyId, BodyRef, BodySpec, JointMask, JointSpec, Limits, ModelBuilder, Motor, ObstacleSpec, Range, ServoTarget,
    Shape, Stops, SwingEllipse,
};
use glam::{DQuat, DVec3};
use std::f64::consts::{FRAC_PI_2, TAU};

const DENSITY: f64 = 850.0; // kg/m³, lungs and gaps included

/// The spring that holds a joint in the start pose.
#[derive(Clone, Copy)]
struct Hold {
    /// \[N·m/rad\]
    stiffness: f64,
    /// \[N·m·s/rad\]: about half of critical for what the joint carries.
    damping: f64,
}

impl Hold {
    const fn new(stiffness: f64, damping: f64) -> Hold {
        Hold { stiffness, damping }
    }

    /// Limits ten times as stiff as the spring, twice as damped.
    fn limits(self) -> Limits {
        Limits { stiffness: 10.0 * self.stiffness, damping: 2.0 * self.damping, ..Limits::default() }
    }
}

/// The robot, standing.
pub(super) fn robot(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let torques = parameters.switch("torques", "on", "off")?;
    let mut builder = ModelBuilder::new();
    let left_hand = Rig::new(&mut builder, Joints::Held).robot();
    let model = builder.build()?;
    let start = model.body(left_hand).start.translation;
    let mut scene = Scene::new(model, Script::Pull(Pull { body: left_hand, start }));
    scene.input.torques = torques;
    Ok(scene)
}

/// The robot on the floor, every joint a servo that holds it as it stands.
pub(super) fn servos(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let stiffness = parameters.positive("kp")?;
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    Rig::new(&mut builder, Joints::Servos { stiffness }).robot();
    let model = builder.build()?;
    let joints = model.joints().iter().map(|joint| {
        let servo = match joint.mask {
            JointMask::BALL => ServoTarget::Rotation(DQuat::IDENTITY),
            _ => ServoTarget::Position { position: 0.0, rate: 0.0 },
        };
        JointInput { servo: Some(servo), ..JointInput::default() }
    });
    let joints = joints.collect();
    let mut scene = Scene::new(model, Script::Still);
    scene.input.joints = joints;
    Ok(scene)
}

const WAIST: DVec3 = DVec3::new(0.0, 1.03, 0.0); // m

/// What moves the joints of a robot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joints {
    /// Springs hold the start pose, soft limits end the motion; the pelvis is welded to the world.
    Held,
    /// Nothing but a twentieth of the damping; hard limits.
    Limp,
    /// A servo of this stiffness \[N·m/rad\], critically damped for what the joint carries; hard limits.
    Servos {
        /// kp
        stiffness: f64,
    },
}

/// Builds a robot.
pub(super) struct Rig<'a> {
    builder: &'a mut ModelBuilder,
    joints: Joints,
    /// Before the name of each part.
    prefix: String,
    /// From the robot that stands at the origin to where it is.
    place: Pose,
    /// Of each hand.
    fingers: &'static [(&'static str, f64)],
}

/// The fingers with their places across the hand \[m\].
const FINGERS: &[(&str, f64)] = &[("thumb", -0.028), ("index", 0.0), ("middle", 0.028)];

impl<'a> Rig<'a> {
    /// A robot that stands at the origin.
    pub(super) fn new(builder: &'a mut ModelBuilder, joints: Joints) -> Rig<'a> {
        Rig { builder, joints, prefix: String::new(), place: Pose::IDENTITY, fingers: FINGERS }
    }

    /// A limp robot in another place, with mittens: no fingers.
    pub(super) fn ragdoll(builder: &'a mut ModelBuilder, prefix: String, place: Pose) -> Rig<'a> {
        Rig { builder, joints: Joints::Limp, prefix, place, fingers: &[] }
    }

    /// Adds the robot; returns its left hand.
    pub(super) fn robot(mut self) -> BodyId {
        let pelvis = self.block("pelvis", DVec3::new(0.0, 0.95, 0.0), DVec3::new(0.30, 0.16, 0.18));
        if let Joints::Held = self.joints {
            let stand = JointSpec::new(self.name("stand"), JointMask::WELD, pelvis, BodyRef::World);
            self.builder.joint(stand.at(self.place.transform_point(WAIST)));
        }
        let torso = self.block("torso", DVec3::new(0.0, 1.24, 0.0), DVec3::new(0.34, 0.42, 0.20));
        let up = |at: DVec3| Pose::new(frame_along(DVec3::Y, DVec3::Z), at);
        self.ball("waist", torso, pelvis, up(WAIST), Hold::new(600.0, 50.0), [0.4, 0.7, 0.5]);

        let neck = DVec3::new(0.0, 1.45, 0.0);
        let head = self.body(
            BodySpec::new(self.name("head"))
                .shape_at(Shape::sphere(0.105), DENSITY, Pose::at(DVec3::X * 0.145))
                .shape_at(Shape::cylinder(0.05, 0.05), DENSITY, Pose::at(DVec3::X * 0.025)),
            up(neck),
        );
        self.ball("neck", head, torso, up(neck), Hold::new(30.0, 1.5), [0.5, 0.7, 1.2]);

        let left_hand = self.arm("left", 1.0, torso);
        self.arm("right", -1.0, torso);
        self.leg("left", 1.0, pelvis);
        self.leg("right", -1.0, pelvis);
        left_hand
    }

    fn name(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// A body where the robot has it.
    fn body(&mut self, body: BodySpec, pose: Pose) -> BodyId {
        self.builder.body(body.pose(self.place.then(pose)))
    }

    fn block(&mut self, name: &str, centre: DVec3, size: DVec3) -> BodyId {
        self.body(BodySpec::new(self.name(name)).shape(Shape::Cuboid { size }, DENSITY), Pose::at(centre))
    }

    /// A round limb from the origin of `root` along its X.
    fn limb(&mut self, name: &str, root: Pose, length: f64, radius: f64) -> BodyId {
        let shape = Shape::capsule(length, radius);
        let middle = Pose::at(DVec3::X * (0.5 * length));
        self.body(BodySpec::new(self.name(name)).shape_at(shape, DENSITY, middle), root)
    }

    /// Adds a joint with what moves and limits it.
    fn joint(&mut self, joint: JointSpec, frame: Pose, hold: Hold, limits: Limits) {
        let joint = joint.frame(self.place.then(frame));
        let hard = Limits { stops: Stops::Hard, ..limits };
        self.builder.joint(match self.joints {
            Joints::Held => joint.spring(hold.stiffness, hold.damping).limits(limits),
            Joints::Limp => joint.spring(0.0, 0.05 * hold.damping).limits(hard),
            // The damping of the spring is half of critical for it: c/2√(k I) = ½.
            Joints::Servos { stiffness } => joint.limits(hard).motor(Motor {
                stiffness,
                damping: 2.0 * hold.damping * (stiffness / hold.stiffness).sqrt(),
                max: f64::MAX,
                integral: 0.0,
            }),
        });
    }

    /// A ball with largest swings about Y and Z and largest twist.
    fn ball(&mut self, name: &str, child: BodyId, parent: BodyId, frame: Pose, hold: Hold, reach: [f64; 3]) {
        let [about_y, about_z, twist] = reach;
        let limits = Limits {
            swing: Some(SwingEllipse { about_y, about_z }),
            angle: Some(Range::new(-twist, twist)),
            ..hold.limits()
        };
        self.joint(JointSpec::new(self.name(name), JointMask::BALL, child, parent), frame, hold, limits);
    }

    /// A hinge about X of its frame, its angle 0 at the start.
    fn hinge(&mut self, name: &str, child: BodyId, parent: BodyId, frame: Pose, hold: Hold, range: Range) {
        let limits = Limits { angle: Some(range), ..hold.limits() };
        self.joint(JointSpec::new(self.name(name), JointMask::HINGE, child, parent), frame, hold, limits);
    }

    /// The arm of a side (+1 is left): hanging, the elbow bent to the middle of its range. Returns the hand.
    fn arm(&mut self, side: &str, sign: f64, torso: BodyId) -> BodyId {
        const UPPER: f64 = 0.28;
        const FORE: f64 = 0.25;
        const HAND: DVec3 = DVec3::new(0.09, 0.03, 0.08); // along, thick, wide
        let name = |part: &str| format!("{side}_{part}");
        let step = |length: f64| Pose::at(DVec3::X * length);

        // Y of the arm's frames is to the front, Z across it: the elbow bends about Z.
        let shoulder =
            Pose::new(frame_along(DVec3::new(0.25 * sign, -0.95, 0.05), DVec3::Z), DVec3::new(0.215 * sign, 1.40, 0.0));
        let upper = self.limb(&name("upper_arm"), shoulder, UPPER, 0.042);
        self.ball(&name("shoulder"), upper, torso, shoulder, Hold::new(40.0, 4.0), [1.3, 1.6, 0.8]);

        let elbow = shoulder.then(step(UPPER)).then(Pose::new(DQuat::from_rotation_z(0.9), DVec3::ZERO));
        let fore = self.limb(&name("forearm"), elbow, FORE, 0.035);
        self.ball(&name("elbow"), fore, upper, elbow, Hold::new(20.0, 1.2), [0.5, 0.95, 1.0]);

        let wrist = elbow.then(step(FORE));
        let palm = step(0.5 * HAND.x);
        let hand = BodySpec::new(self.name(&name("hand"))).shape_at(Shape::Cuboid { size: HAND }, DENSITY, palm);
        let hand = self.body(hand, wrist);
        self.ball(&name("wrist"), hand, fore, wrist, Hold::new(5.0, 0.12), [0.5, 1.0, 0.3]);

        for &(finger, across) in self.fingers {
            let across = across * sign; // palms to the front, thumbs outside
            let knuckle = wrist.then(Pose::at(DVec3::new(HAND.x, 0.0, across)));
            let inner = self.limb(&name(&format!("{finger}_inner")), knuckle, 0.035, 0.009);
            let outer_root = knuckle.then(step(0.035));
            let outer = self.limb(&name(&format!("{finger}_outer")), outer_root, 0.030, 0.008);
            // X of the hinges is Z of the hand: fingers close towards the front.
            let turn = Pose::new(DQuat::from_rotation_y(-FRAC_PI_2), DVec3::ZERO);
            let range = Range::new(-0.2, 1.5);
            let (hold, tip_hold) = (Hold::new(0.5, 0.004), Hold::new(0.3, 0.001));
            self.hinge(&name(&format!("{finger}_knuckle")), inner, hand, knuckle.then(turn), hold, range);
            self.hinge(&name(&format!("{finger}_joint")), outer, inner, outer_root.then(turn), tip_hold, range);
        }
        hand
    }

    /// The leg of a side (+1 is left), straight down.
    fn leg(&mut self, side: &str, sign: f64, pelvis: BodyId) {
        let name = |part: &str| format!("{side}_{part}");
        let down = frame_along(DVec3::NEG_Y, DVec3::Z);
        let at = |y: f64| Pose::new(down, DVec3::new(0.09 * sign, y, 0.0));
        let (hip, knee, ankle) = (at(0.90), at(0.48), at(0.07));

        let thigh = self.limb(&name("thigh"), hip, 0.42, 0.065);
        self.ball(&name("hip"), thigh, pelvis, hip, Hold::new(150.0, 18.0), [0.6, 1.2, 0.6]);
        let shin = self.limb(&name("shin"), knee, 0.41, 0.045);
        let knee_range = Range::new(-0.05, 2.4); // the shin goes back
        self.hinge(&name("knee"), shin, thigh, Pose::at(knee.translation), Hold::new(80.0, 6.0), knee_range);
        let foot = self.block(&name("foot"), DVec3::new(0.09 * sign, 0.035, 0.06), DVec3::new(0.09, 0.07, 0.24));
        let ankle_range = Range::new(-0.5, 0.8); // the toes go down
        self.hinge(&name("ankle"), foot, shin, Pose::at(ankle.translation), Hold::new(20.0, 0.6), ankle_range);
    }
}

/// The hand is drawn forward, up and to both sides, and back, starting at rest.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    body: BodyId,
    /// Centre of the hand at the start \[m\].
    start: DVec3,
}

impl Pull {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        const SECONDS: f64 = 4.0; // there and back
        let omega = TAU / SECONDS;
        let (sin, cos) = (omega * (time + input.dt)).sin_cos();
        // s goes from 0 to 1 and back; across = s sin
        let (s, s_rate) = (0.5 * (1.0 - cos), 0.5 * omega * sin);
        let (across, across_rate) = (s * sin, s_rate * sin + s * omega * cos);
        let path = |s: f64, across: f64| DVec3::new(0.3 * across, 0.5 * s, 0.5 * s);
        let drag = Drag {
            body: self.body,
            point: DVec3::ZERO,
            target: self.start + path(s, across),
            target_velocity: path(s_rate, across_rate),
            stiffness: 400.0,
            damping: 20.0,
        };
        entries(&mut input.drags, 1, drag)[0] = drag;
    }
}
