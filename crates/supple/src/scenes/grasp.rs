//! The hand closes on a box, lifts it by friction and shakes it.
//!
//! The hand lies on its side, thumb up, its palm against the box. The wrist slides up and down on a servo; the fingers are servos with as much torque as
//! a hand has.

use super::hand::{self, Angles, BONES, DENSITY, FINGERS, Finger, PALM};
use super::{Moving, Parameters, Scene, SceneError, Script, damping};
use crate::input::{Contacts, Input, JointInput};
use crate::maths::{Pose, Twist, rotation};
use crate::model::{
    BodyId, BodyRef, BodySpec, JointMask, JointSpec, Material, ModelBuilder, Motor, ObstacleSpec, ServoTarget, Shape,
};
use glam::{DQuat, DVec3};
use std::f64::consts::{FRAC_PI_2, TAU};

const SKIN: Material = Material::new(1.0, 0.0);
const CARD: Material = Material::new(0.6, 0.0);
const WRIST: DVec3 = DVec3::new(0.0, 0.06, 0.0); // m
const BOX: DVec3 = DVec3::new(0.048, 0.09, 0.042); // m
const BOX_DENSITY: f64 = 500.0; // kg/m³

/// Torques of the three joints of a finger, as stiffness \[N·m/rad\] and as most \[N·m\].
const STRENGTH: [(f64, f64); 3] = [(4.0, 0.9), (2.0, 0.5), (1.0, 0.3)];

const CLOSED: [Angles; 5] = [
    [0.50, -0.20, 0.30, 0.60],
    [1.45, 0.0, 1.60, 0.90],
    [1.45, 0.0, 1.60, 0.90],
    [1.45, 0.0, 1.60, 0.90],
    [1.45, 0.0, 1.60, 0.90],
];

/// The open hand beside a box on the floor.
pub(super) fn grasp(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    // X of the hand stays, its back (Y) to +Z, its little finger (Z) down.
    let palm_pose = Pose::new(DQuat::from_rotation_x(FRAC_PI_2), WRIST);
    let start = hand::bones(Moving { pose: palm_pose, velocity: Twist::ZERO }, &hand::OPEN, &[[0.0; 4]; 5]);
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(CARD));
    let bone = |k: usize, name: String, shape: Shape| {
        BodySpec::new(name).shape_at(shape, DENSITY, Pose::at(hand::centre(k))).pose(start[k].pose).material(SKIN)
    };
    let palm = builder.body(bone(0, "palm".into(), Shape::Cuboid { size: PALM }));
    let motor = Motor { stiffness: 2e4, damping: 400.0, max: 500.0, integral: 0.0 };
    let lift = builder.joint(
        JointSpec::new("lift", JointMask::PRISMATIC, palm, BodyRef::World).at(WRIST).axis(DVec3::Y).motor(motor),
    );
    let mut servos = Vec::new();
    for (f, finger) in FINGERS.iter().enumerate() {
        let mut parent = palm;
        for k in 0..3 {
            let shape = Shape::capsule(finger.lengths[k], finger.radii[k]);
            let name = format!("{}_{}", finger.name, hand::PHALANGES[k]);
            let body = builder.body(bone(1 + 3 * f + k, name, shape));
            servos.push(builder.joint(servo(finger, k, body, parent)).index());
            parent = body;
        }
    }
    debug_assert_eq!(servos.len() + 1, BONES);
    let at = DVec3::new(0.036 + 0.5 * BOX.x, 0.5 * BOX.y, -0.5 * PALM.y - 0.5 * BOX.z - 0.002);
    builder
        .body(BodySpec::new("box").shape(Shape::Cuboid { size: BOX }, BOX_DENSITY).pose(Pose::at(at)).material(CARD));
    let model = builder.build()?;
    let joints = model.joints().len();
    let mut scene = Scene::new(model, Script::Lift(Lift { lift: lift.index(), servos }));
    scene.input.joints = vec![JointInput::default(); joints];
    scene.input.contacts = Contacts::All;
    Ok(scene)
}

/// Joint `k` of a finger as in the hand, a servo in place of its spring.
fn servo(finger: &Finger, k: usize, child: BodyId, parent: BodyId) -> JointSpec {
    let (stiffness, max) = STRENGTH[k];
    let damping = damping(1.0, stiffness, finger.inertia_beyond(k));
    finger.joint(k, child, parent).spring(0.0, 0.0).motor(Motor { stiffness, damping, max, integral: 0.0 })
}

/// Closes, lifts, and shakes by 5 cm at 2 Hz.
#[derive(Clone, Debug)]
pub(super) struct Lift {
    lift: usize,
    /// Joints of the fingers, three by three.
    servos: Vec<usize>,
}

/// When the hand has closed, has lifted, and begins to shake at full size \[s\].
const CLOSE: f64 = 0.8;
const LIFTED: f64 = 2.0;
const SHAKING: f64 = 2.5;
const HEIGHT: f64 = 0.2; // m
const SHAKE: f64 = 0.05; // m
const FREQUENCY: f64 = 2.0; // Hz

/// `10 u³ − 15 u⁴ + 6 u⁵` of the share of the time between two moments, and its rate \[1/s\].
fn blend(t: f64, from: f64, to: f64) -> (f64, f64) {
    let u = ((t - from) / (to - from)).clamp(0.0, 1.0);
    (u * u * u * (10.0 + u * (-15.0 + 6.0 * u)), 30.0 * (u * (1.0 - u)).powi(2) / (to - from))
}

impl Lift {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let t = time + input.dt;
        let (closed, closing) = blend(t, 0.0, CLOSE);
        for (n, &joint) in self.servos.iter().enumerate() {
            let (f, k) = (n / 3, n % 3);
            let angles: Angles = std::array::from_fn(|i| hand::OPEN[f][i] + closed * (CLOSED[f][i] - hand::OPEN[f][i]));
            let target = if k == 0 {
                ServoTarget::Rotation(rotation::exp(FINGERS[f].swing_vector(&angles)))
            } else {
                let rate = closing * (CLOSED[f][k + 1] - hand::OPEN[f][k + 1]);
                ServoTarget::Position { position: angles[k + 1], rate }
            };
            set(input, joint, target);
        }
        // height(t) = HEIGHT lifted + SHAKE shaking sin ωt
        let ((lifted, lifting), (shaking, growing)) = (blend(t, CLOSE + 0.2, LIFTED), blend(t, LIFTED, SHAKING));
        let omega = TAU * FREQUENCY;
        let (sin, cos) = (omega * (t - LIFTED)).sin_cos();
        let position = HEIGHT * lifted + SHAKE * shaking * sin;
        let rate = HEIGHT * lifting + SHAKE * (growing * sin + shaking * omega * cos);
        set(input, self.lift, ServoTarget::Position { position, rate });
    }
}

fn set(input: &mut Input, joint: usize, target: ServoTarget) {
    if let Some(joint) = input.joints.get_mut(joint) {
        joint.servo = Some(target);
    }
}
