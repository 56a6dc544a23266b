//! A right hand of 16 bones that follows a hand-written grasp, as the hand of [Hernández 2011, Fig. 5] follows a glove.
//!
//! The palm's frame has its origin at the wrist, X to the fingers, Y out of the back of the hand, Z to the little
//! finger. A phalanx has its origin at its nearer joint, X along the bone, Y to the nail; bending turns it about −Z.
//! The base of a finger is a ball, the other two joints are hinges. Every bone has a tracker: the palm's is strong,
//! those of the phalanges are weak, so that joint springs and limits have their say. The recording goes beyond
//! some limits, as a glove that is not well calibrated does.

use super::{Moving, Parameters, Scene, SceneError, Script, damping, entries, frame_along};
use crate::input::{Input, Target};
use crate::maths::{Pose, Twist, rotation};
use crate::model::{
    BodyId, BodySpec, JointMask, JointSpec, Limits, ModelBuilder, Range, RotationSpring, Shape, SwingEllipse,
    TrackerSpec,
};
use glam::{DQuat, DVec3};
use std::f64::consts::{FRAC_PI_2, TAU};

pub(super) const BONES: usize = 16;
pub(super) const DENSITY: f64 = 1100.0; // kg/m³
pub(super) const PALM: DVec3 = DVec3::new(0.10, 0.025, 0.085); // m
const WRIST: DVec3 = DVec3::new(0.0, 0.2, 0.0); // where it starts [m]

/// A finger as it is built.
pub(super) struct Finger {
    pub(super) name: &'static str,
    /// Its base joint in the palm's frame \[m\].
    base: DVec3,
    /// Where it points when straight, and its nail, in the palm's frame.
    along: DVec3,
    nail: DVec3,
    /// Length of each phalanx, from joint to joint or tip \[m\].
    pub(super) lengths: [f64; 3],
    /// \[m\]
    pub(super) radii: [f64; 3],
    /// The bend in the middle of the base joint's range \[rad\].
    middle: f64,
    /// How far the base goes from there: sideways (about Y) and in bending (about Z).
    swing: SwingEllipse,
    /// Largest twist of the base joint \[rad\].
    twist: f64,
    /// Ranges of bending of the two hinges \[rad\].
    pub(super) hinges: [Range; 2],
    /// Stiffness of the three joints \[N·m/rad\].
    stiffness: [f64; 3],
    /// Angles at which the springs are slack.
    relaxed: Angles,
}

/// Bend of the base, sideways swing of the base towards the thumb, bends of the two hinges \[rad\].
pub(super) type Angles = [f64; 4];

const KNUCKLE: SwingEllipse = SwingEllipse { about_y: 0.4, about_z: 1.05 };
const FINGER_HINGES: [Range; 2] = [Range { min: -0.1, max: 1.75 }, Range { min: -0.1, max: 1.2 }];
const FINGER_STIFFNESS: [f64; 3] = [0.15, 0.08, 0.05];
const FINGER_RELAXED: Angles = [0.3, 0.0, 0.4, 0.25];

pub(super) const FINGERS: [Finger; 5] = [
    Finger {
        name: "thumb",
        base: DVec3::new(0.022, -0.010, -0.036),
        along: DVec3::new(0.62, -0.45, -0.64),
        nail: DVec3::new(-0.25, 0.45, -0.70),
        lengths: [0.045, 0.032, 0.026],
        radii: [0.010, 0.0095, 0.0085],
        middle: 0.25,
        swing: SwingEllipse { about_y: 0.7, about_z: 0.7 },
        twist: 0.25,
        hinges: [Range { min: -0.1, max: 1.0 }, Range { min: -0.2, max: 1.3 }],
        stiffness: [0.25, 0.15, 0.08],
        relaxed: [0.2, 0.0, 0.2, 0.2],
    },
    Finger {
        name: "index",
        base: DVec3::new(0.095, 0.0, -0.031),
        along: DVec3::new(1.0, 0.0, -0.08),
        nail: DVec3::Y,
        lengths: [0.040, 0.025, 0.020],
        radii: [0.0090, 0.0082, 0.0075],
        middle: 0.7,
        swing: KNUCKLE,
        twist: 0.1,
        hinges: FINGER_HINGES,
        stiffness: FINGER_STIFFNESS,
        relaxed: FINGER_RELAXED,
    },
    Finger {
        name: "middle",
        base: DVec3::new(0.100, 0.0, -0.010),
        along: DVec3::new(1.0, 0.0, -0.02),
        nail: DVec3::Y,
        lengths: [0.045, 0.029, 0.021],
        radii: [0.0092, 0.0084, 0.0076],
        middle: 0.7,
        swing: KNUCKLE,
        twist: 0.1,
        hinges: FINGER_HINGES,
        stiffness: FINGER_STIFFNESS,
        relaxed: FINGER_RELAXED,
    },
    Finger {
        name: "ring",
        base: DVec3::new(0.096, 0.0, 0.011),
        along: DVec3::new(1.0, 0.0, 0.05),
        nail: DVec3::Y,
        lengths: [0.041, 0.027, 0.021],
        radii: [0.0088, 0.0080, 0.0074],
        middle: 0.7,
        swing: KNUCKLE,
        twist: 0.1,
        hinges: FINGER_HINGES,
        stiffness: FINGER_STIFFNESS,
        relaxed: FINGER_RELAXED,
    },
    Finger {
        name: "little",
        base: DVec3::new(0.088, -0.002, 0.031),
        along: DVec3::new(1.0, 0.0, 0.13),
        nail: DVec3::Y,
        lengths: [0.033, 0.020, 0.018],
        radii: [0.0080, 0.0074, 0.0070],
        middle: 0.7,
        swing: KNUCKLE,
        twist: 0.1,
        hinges: FINGER_HINGES,
        stiffness: FINGER_STIFFNESS,
        relaxed: FINGER_RELAXED,
    },
];

pub(super) const PHALANGES: [&str; 3] = ["proximal", "middle", "distal"];

/// A pose of the recording.
struct Key {
    /// \[s\]
    time: f64,
    /// By finger.
    angles: [Angles; 5],
}

/// Length of the hand-written grasp \[s\]; then it begins again.
const PERIOD: f64 = 4.0;

pub(super) const OPEN: [Angles; 5] = [
    [0.10, 0.10, 0.15, 0.10],
    [0.08, 0.0, 0.12, 0.08],
    [0.08, 0.0, 0.12, 0.08],
    [0.10, 0.0, 0.14, 0.10],
    [0.12, 0.0, 0.16, 0.10],
];
const SPREAD: [Angles; 5] = [
    [-0.10, 0.45, 0.0, -0.10],
    [-0.12, 0.25, -0.15, -0.12],
    [-0.12, 0.03, -0.15, -0.12],
    [-0.12, -0.18, -0.15, -0.12],
    [-0.12, -0.35, -0.15, -0.12],
];
pub(super) const FIST: [Angles; 5] = [
    [0.73, -0.20, 0.09, 1.09],
    [1.35, 0.0, 1.80, 1.00],
    [1.40, 0.0, 1.85, 1.00],
    [1.40, 0.0, 1.85, 1.00],
    [1.40, 0.0, 1.80, 1.00],
];
const PINCH: [Angles; 5] = [
    [0.42, -0.27, 0.19, 0.19],
    [0.65, -0.03, 0.86, 0.59],
    [0.45, 0.0, 0.50, 0.30],
    [0.35, -0.03, 0.40, 0.25],
    [0.30, -0.08, 0.35, 0.20],
];

const KEYS: [Key; 6] = [
    Key { time: 0.0, angles: OPEN },
    Key { time: 0.7, angles: SPREAD },
    Key { time: 1.6, angles: FIST },
    Key { time: 2.1, angles: FIST },
    Key { time: 3.0, angles: PINCH },
    Key { time: PERIOD, angles: OPEN },
];

/// The recorded angles at a time, and their rates. Between keys `10 u³ − 15 u⁴ + 6 u⁵`: at rest at every key.
fn recorded(time: f64) -> ([Angles; 5], [Angles; 5]) {
    let t = time.rem_euclid(PERIOD);
    let next = KEYS.iter().position(|key| key.time > t).unwrap_or(KEYS.len() - 1).max(1);
    let (a, b) = (&KEYS[next - 1], &KEYS[next]);
    let span = b.time - a.time;
    let u = (t - a.time) / span;
    let blend = u * u * u * (10.0 + u * (-15.0 + 6.0 * u));
    let blend_rate = 30.0 * (u * (1.0 - u)).powi(2) / span;
    let (mut angles, mut rates) = ([[0.0; 4]; 5], [[0.0; 4]; 5]);
    for finger in 0..5 {
        for k in 0..4 {
            let change = b.angles[finger][k] - a.angles[finger][k];
            angles[finger][k] = a.angles[finger][k] + blend * change;
            rates[finger][k] = blend_rate * change;
        }
    }
    (angles, rates)
}

/// The recorded wrist: a few centimetres along a slow curve, with a little turning; starts at rest.
fn wrist(time: f64) -> Moving {
    let omega = TAU / (2.0 * PERIOD);
    let wave = |size: f64, times: f64| {
        let w = omega * times;
        (size * (1.0 - (w * time).cos()), size * w * (w * time).sin())
    };
    let [(x, vx), (y, vy), (z, vz)] = [wave(0.02, 1.0), wave(0.015, 2.0), wave(-0.02, 1.0)];
    let axis = DVec3::new(0.8, 0.0, 0.6);
    let (angle, rate) = wave(0.2, 1.0);
    Moving {
        pose: Pose::new(DQuat::from_axis_angle(axis, angle), WRIST + DVec3::new(x, y, z)),
        velocity: Twist::new(DVec3::new(vx, vy, vz), axis * rate),
    }
}

impl Finger {
    /// The base joint's frame in the palm's: X in the middle of the range of bending.
    fn base_in_palm(&self) -> Pose {
        Pose::new(frame_along(self.along, self.nail) * DQuat::from_rotation_z(-self.middle), self.base)
    }

    /// The base's swing as a rotation vector in the joint's frame.
    pub(super) fn swing_vector(&self, angles: &Angles) -> DVec3 {
        DVec3::new(0.0, angles[1], self.middle - angles[0])
    }

    /// Where the three phalanges are, their palm and joints moving thus.
    fn phalanges(&self, palm: Moving, angles: &Angles, rates: &Angles) -> [Moving; 3] {
        let swing = self.swing_vector(angles);
        let swing_rate = DVec3::new(0.0, rates[1], -rates[0]);
        // The derivative of the rotation vector, undone: what turning goes with its rate.
        let turning = rotation::log_derivative(swing).inverse() * swing_rate;
        let joint = palm.then(self.base_in_palm(), DVec3::ZERO);
        let mut last = joint.then(Pose::new(rotation::exp(swing), DVec3::ZERO), turning);
        let mut all = [last; 3];
        for k in 1..3 {
            let bend = Pose::new(DQuat::from_rotation_z(-angles[k + 1]), DVec3::X * self.lengths[k - 1]);
            last = last.then(bend, DVec3::NEG_Z * rates[k + 1]);
            all[k] = last;
        }
        all
    }

    /// Mass of a phalanx \[kg\].
    pub(super) fn mass(&self, k: usize) -> f64 {
        let r = self.radii[k];
        DENSITY * std::f64::consts::PI * r * r * (self.lengths[k] + 4.0 / 3.0 * r)
    }

    /// Inertia of the straight finger beyond joint `k`, about it: rods on a line \[kg·m²\].
    pub(super) fn inertia_beyond(&self, k: usize) -> f64 {
        let mut from = 0.0;
        let mut sum = 0.0;
        for i in k..3 {
            let to = from + self.lengths[i];
            sum += self.mass(i) * (from * from + from * to + to * to) / 3.0;
            from = to;
        }
        sum
    }
}

/// Where all bones are in the recording, palm first, then finger by finger.
fn recorded_bones(time: f64) -> [Moving; BONES] {
    let (angles, rates) = recorded(time);
    bones(wrist(time), &angles, &rates)
}

/// Where all bones are, the palm and the joints moving thus.
pub(super) fn bones(palm: Moving, angles: &[Angles; 5], rates: &[Angles; 5]) -> [Moving; BONES] {
    let mut bones = [palm; BONES];
    for (f, finger) in FINGERS.iter().enumerate() {
        bones[1 + 3 * f..4 + 3 * f].copy_from_slice(&finger.phalanges(palm, &angles[f], &rates[f]));
    }
    bones
}

/// A bone's centre of mass, in its own frame \[m\].
pub(super) fn centre(bone: usize) -> DVec3 {
    DVec3::X * (0.5 * if bone == 0 { PALM.x } else { FINGERS[(bone - 1) / 3].lengths[(bone - 1) % 3] })
}

/// The hand at the beginning of the recording.
pub(super) fn hand(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let tracked = parameters.switch("track", "1", "0")?;
    let start = recorded_bones(0.0).map(|bone| bone.pose);
    let mut builder = ModelBuilder::new();
    build(&mut builder, &start, Strength::Free)?;
    Ok(Scene::new(builder.build()?, Script::Grasp(Grasp { tracked })))
}

/// How the hand is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// Bare bones that follow a recording through the air.
    Free,
    /// Bones within soft skin that press on things: stronger trackers, and nothing that touches but the skin.
    Pressing,
}

/// Bones, joints and trackers with bones at these poses.
pub(super) fn build(builder: &mut ModelBuilder, start: &[Pose; BONES], strength: Strength) -> Result<(), SceneError> {
    let (factor, meets) = match strength {
        Strength::Free => (1.0, u32::MAX),
        Strength::Pressing => (4.0, 0),
    };
    let palm = BodySpec::new("palm").shape_at(Shape::Cuboid { size: PALM }, DENSITY, Pose::at(centre(0)));
    let palm = builder.body(palm.pose(start[0]).collides_with(meets));
    let mass =
        DENSITY * PALM.x * PALM.y * PALM.z + FINGERS.iter().flat_map(|f| [0, 1, 2].map(|k| f.mass(k))).sum::<f64>();
    let inertia = mass * PALM.x * PALM.x / 2.0; // of the open hand about the palm's centre, roughly
    let (stiffness, rotation_stiffness) = (2000.0 * factor, 20.0 * factor);
    builder.tracker(TrackerSpec {
        name: "palm".into(),
        body: palm.into(),
        point: centre(0),
        stiffness,
        damping: damping(1.0, stiffness, mass),
        rotation_stiffness,
        rotation_damping: damping(1.0, rotation_stiffness, inertia),
    });

    for (f, finger) in FINGERS.iter().enumerate() {
        let mut parent = palm;
        for k in 0..3 {
            let bone = 1 + 3 * f + k;
            let name = format!("{}_{}", finger.name, PHALANGES[k]);
            let shape = Shape::capsule(finger.lengths[k], finger.radii[k]);
            let body = BodySpec::new(&name).shape_at(shape, DENSITY, Pose::at(centre(bone)));
            let body = builder.body(body.pose(start[bone]).collides_with(meets));
            builder.joint(finger.joint(k, body, parent));
            builder.tracker(finger.tracker(k, name, body));
            parent = body;
        }
    }
    Ok(())
}

/// The names of all bones, palm first, then finger by finger.
pub(super) fn bone_names() -> Vec<String> {
    let fingers = FINGERS.iter().flat_map(|finger| PHALANGES.map(|phalanx| format!("{}_{phalanx}", finger.name)));
    std::iter::once("palm".to_owned()).chain(fingers).collect()
}

/// Where all bones are in the open hand, its fingers apart: the pose that its skin is made in.
pub(super) fn open_bones() -> [Pose; BONES] {
    let mut angles = OPEN;
    for (finger, wide) in angles.iter_mut().zip(&SPREAD) {
        finger[1] = wide[1];
    }
    bones(Moving { pose: Pose::IDENTITY, velocity: Twist::ZERO }, &angles, &[[0.0; 4]; 5]).map(|bone| bone.pose)
}

/// Height of the table that the hand is pressed on \[m\].
pub(super) const TABLE: f64 = 0.1;

/// Where all bones are when the hand comes down on the table on its finger tips, presses and rises, again and again.
pub(super) fn pressing_bones(time: f64) -> [Pose; BONES] {
    let s = time.rem_euclid(PERIOD);
    let smooth = |x: f64| {
        let x = x.clamp(0.0, 1.0);
        x * x * (3.0 - 2.0 * x)
    };
    let down = smooth(s / 1.0) * smooth((PERIOD - s) / 1.0);
    // it stands on its finger tips
    let mut angles = [[0.75, 0.0, 0.5, 0.2]; 5];
    angles[0] = OPEN[0];
    let height = TABLE + 0.118 - 0.042 * down;
    let palm = Moving { pose: Pose::at(DVec3::new(0.0, height, 0.0)), velocity: Twist::ZERO };
    bones(palm, &angles, &[[0.0; 4]; 5]).map(|bone| bone.pose)
}

impl Finger {
    /// Joint `k` of the finger: `index_base`, `index_middle`, `index_tip`.
    pub(super) fn joint(&self, k: usize, child: BodyId, parent: BodyId) -> JointSpec {
        let name = format!("{}_{}", self.name, ["base", "middle", "tip"][k]);
        let inertia = self.inertia_beyond(k);
        let limit_stiffness = [15.0, 10.0, 5.0][k];
        let limits =
            Limits { stiffness: limit_stiffness, damping: damping(0.5, limit_stiffness, inertia), ..Limits::default() };
        let spring = RotationSpring {
            stiffness: self.stiffness[k],
            damping: damping(1.0, self.stiffness[k], inertia),
            ..RotationSpring::default()
        };
        if k == 0 {
            return JointSpec::new(name, JointMask::BALL, child, parent)
                .frames(Pose::IDENTITY, self.base_in_palm())
                .rotation_spring(RotationSpring { rest: rotation::exp(self.swing_vector(&self.relaxed)), ..spring })
                .limits(Limits {
                    angle: Some(Range::new(-self.twist, self.twist)),
                    swing: Some(self.swing),
                    ..limits
                });
        }
        // X of the hinge is −Z of both bones: bending is positive.
        let hinge = DQuat::from_rotation_y(FRAC_PI_2);
        JointSpec::new(name, JointMask::HINGE, child, parent)
            .frames(Pose::new(hinge, DVec3::ZERO), Pose::new(hinge, DVec3::X * self.lengths[k - 1]))
            .rotation_spring(RotationSpring { rest: DQuat::from_rotation_x(self.relaxed[k + 1]), ..spring })
            .limits(Limits { angle: Some(self.hinges[k - 1]), ..limits })
    }

    /// A weak spring from phalanx `k` to its recorded place.
    fn tracker(&self, k: usize, name: String, body: BodyId) -> TrackerSpec {
        let (stiffness, rotation_stiffness) = (150.0, 0.05);
        let inertia = self.mass(k) * self.lengths[k].powi(2) / 12.0;
        TrackerSpec {
            name,
            body: body.into(),
            point: DVec3::X * (0.5 * self.lengths[k]),
            stiffness,
            damping: damping(1.0, stiffness, self.mass(k)),
            rotation_stiffness,
            rotation_damping: damping(1.0, rotation_stiffness, inertia),
        }
    }
}

/// The recording as targets. Not tracked, the palm is held where it started and the fingers are left alone.
#[derive(Clone, Debug)]
pub(super) struct Grasp {
    tracked: bool,
}

impl Grasp {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let bones = recorded_bones(if self.tracked { time + input.dt } else { 0.0 });
        let followed = if self.tracked { BONES } else { 1 };
        let targets = entries(&mut input.targets, BONES, None);
        for (bone, target) in targets.iter_mut().enumerate() {
            let centre = bones[bone].then(Pose::at(centre(bone)), DVec3::ZERO);
            *target = (bone < followed).then_some(Target { pose: centre.pose, velocity: centre.velocity });
        }
    }
}
