//! Two characters of different size that are to be bound at hands and feet, of the size of [Faure 1998, Fig. 3]: 758 scalar constraints.
//!
//! Each has 88 bones: a pelvis, 12 vertebrae, 5 of the neck, head and jaw, and on either side collar bone, upper arm, forearm in two parts that
//! twist, hand and five fingers of three bones, thigh, shank, foot in two parts and five toes of two bones. Their 87 joints have 373 rows; four ball
//! joints between the characters add 12: 2 · 373 + 12 = 758. At the start the two stand face to face, and nothing is bound.

use super::{Parameters, Scene, SceneError, Script, by_assembly, frame_along};
use crate::maths::Pose;
use crate::model::{BodyId, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::{DQuat, DVec3};
use std::f64::consts::PI;

const DENSITY: f64 = 1000.0; // kg/m³

/// The two, weightless.
pub(super) fn crowd_of_two(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    let facing = Pose::new(DQuat::from_rotation_y(PI), DVec3::Z);
    let tall = Rig { name: "tall", size: 1.0, place: Pose::IDENTITY }.build(&mut builder);
    let short = Rig { name: "short", size: 0.6, place: facing }.build(&mut builder);
    // Face to face, the left of one is across from the right of the other.
    for (what, of_tall, of_short) in [
        ("left_hands", tall.hands[0], short.hands[1]),
        ("right_hands", tall.hands[1], short.hands[0]),
        ("left_feet", tall.feet[0], short.feet[1]),
        ("right_feet", tall.feet[1], short.feet[0]),
    ] {
        let joint = JointSpec::new(what, JointMask::BALL, of_short.0, of_tall.0);
        builder.joint(joint.frames(Pose::at(of_short.1), Pose::at(of_tall.1)));
    }
    let mut scene = by_assembly(Scene::new(builder.build()?, Script::Still));
    scene.input.gravity = DVec3::ZERO;
    Ok(scene)
}

/// A body and a point on it, in link coordinates.
type Spot = (BodyId, DVec3);

struct Ends {
    /// Palms, left first.
    hands: [Spot; 2],
    /// Soles, left first.
    feet: [Spot; 2],
}

struct Rig {
    name: &'static str,
    /// As a share of 1.75 m.
    size: f64,
    /// Where it stands; it looks along its +Z, its left at +X.
    place: Pose,
}

impl Rig {
    /// A bone from `root` along its X, jointed there. Lengths and places are those of a tall character.
    fn bone(
        &self,
        builder: &mut ModelBuilder,
        name: &str,
        parent: BodyId,
        root: Pose,
        size: DVec3,
        joint: (JointMask, DVec3),
    ) -> BodyId {
        let placed = self.placed(root);
        let size = size * self.size;
        let shape = Shape::Cuboid { size };
        let spec = BodySpec::new(format!("{}_{name}", self.name));
        let body = builder.body(spec.shape_at(shape, DENSITY, Pose::at(DVec3::X * (0.5 * size.x))).pose(placed));
        let (mask, axis) = joint;
        let axis = self.place.rotation * axis;
        let frame = Pose::new(frame_along(axis, axis.any_orthonormal_vector()), placed.translation);
        builder.joint(JointSpec::new(format!("{}_{name}", self.name), mask, body, parent).frame(frame));
        body
    }

    fn placed(&self, pose: Pose) -> Pose {
        self.place.then(Pose::new(pose.rotation, pose.translation * self.size))
    }

    fn build(&self, builder: &mut ModelBuilder) -> Ends {
        let pelvis = builder.body(
            BodySpec::new(format!("{}_pelvis", self.name))
                .shape(Shape::Cuboid { size: DVec3::new(0.30, 0.14, 0.18) * self.size }, DENSITY)
                .pose(self.placed(Pose::at(DVec3::Y * 0.95))),
        );
        let up = frame_along(DVec3::Y, DVec3::Z);
        let ball = (JointMask::BALL, DVec3::Y);
        let mut last = pelvis;
        for i in 0..12 {
            let root = Pose::new(up, DVec3::Y * (1.02 + 0.033 * i as f64));
            last = self.bone(builder, &format!("vertebra_{i}"), last, root, DVec3::new(0.033, 0.18, 0.28), ball);
        }
        let chest = last;
        for i in 0..5 {
            let root = Pose::new(up, DVec3::Y * (1.416 + 0.022 * i as f64));
            last = self.bone(builder, &format!("neck_{i}"), last, root, DVec3::new(0.022, 0.10, 0.10), ball);
        }
        let root = Pose::new(up, DVec3::Y * 1.526);
        let head = self.bone(builder, "head", last, root, DVec3::new(0.20, 0.16, 0.16), ball);
        let jaw = Pose::new(frame_along(DVec3::Z, DVec3::X), DVec3::new(0.0, 1.55, 0.02));
        self.bone(builder, "jaw", head, jaw, DVec3::new(0.07, 0.09, 0.03), (JointMask::HINGE, DVec3::X));
        let [left, right] = [("left", 1.0), ("right", -1.0)];
        Ends {
            hands: [self.arm(builder, left, chest), self.arm(builder, right, chest)],
            feet: [self.leg(builder, left, pelvis), self.leg(builder, right, pelvis)],
        }
    }

    /// Returns the palm.
    fn arm(&self, builder: &mut ModelBuilder, (side, sign): (&str, f64), chest: BodyId) -> Spot {
        let name = |part: &str| format!("{side}_{part}");
        let outward = DVec3::X * sign;
        let along = |direction: DVec3| frame_along(direction, DVec3::Z);
        let collar = Pose::new(frame_along(outward, DVec3::Y), DVec3::new(0.02 * sign, 1.41, 0.0));
        let ball = (JointMask::BALL, DVec3::X);
        let clavicle = self.bone(builder, &name("clavicle"), chest, collar, DVec3::new(0.16, 0.03, 0.03), ball);
        let down = DVec3::new(0.2 * sign, -0.9, 0.0).normalize();
        let shoulder = DVec3::new(0.18 * sign, 1.41, 0.0);
        let upper_size = DVec3::new(0.29, 0.08, 0.08);
        let upper =
            self.bone(builder, &name("upper_arm"), clavicle, Pose::new(along(down), shoulder), upper_size, ball);
        // The elbow is bent a little, to the front.
        let elbow = shoulder + down * 0.29;
        let fore = DVec3::new(0.1 * sign, -0.7, 0.6).normalize();
        let hinge = (JointMask::HINGE, DVec3::X);
        let fore_size = DVec3::new(0.13, 0.06, 0.06);
        let forearm = self.bone(builder, &name("forearm"), upper, Pose::new(along(fore), elbow), fore_size, hinge);
        let middle = elbow + fore * 0.13;
        let twist = (JointMask::HINGE, fore);
        let lower =
            self.bone(builder, &name("lower_forearm"), forearm, Pose::new(along(fore), middle), fore_size, twist);
        let wrist = middle + fore * 0.13;
        let cardan = (JointMask::UNIVERSAL, fore);
        let hand_root = Pose::new(along(fore), wrist);
        let hand = self.bone(builder, &name("hand"), lower, hand_root, DVec3::new(0.09, 0.03, 0.09), cardan);
        let across = along(fore) * DVec3::Z;
        for finger in 0..5 {
            let mut root = Pose::new(along(fore), wrist + fore * 0.09 + across * (0.018 * (finger as f64 - 2.0)));
            let mut parent = hand;
            for part in 0..3 {
                let joint = if part == 0 { (JointMask::UNIVERSAL, fore) } else { (JointMask::HINGE, across) };
                let size = DVec3::new(0.028, 0.016, 0.016);
                parent = self.bone(builder, &name(&format!("finger_{finger}{part}")), parent, root, size, joint);
                root.translation += fore * 0.028;
            }
        }
        (hand, DVec3::X * (0.045 * self.size))
    }

    /// Returns the sole.
    fn leg(&self, builder: &mut ModelBuilder, (side, sign): (&str, f64), pelvis: BodyId) -> Spot {
        let name = |part: &str| format!("{side}_{part}");
        let down = frame_along(DVec3::NEG_Y, DVec3::Z);
        let ahead = frame_along(DVec3::Z, DVec3::X);
        let hinge = (JointMask::HINGE, DVec3::X);
        let at = |y: f64, z: f64| DVec3::new(0.10 * sign, y, z);
        let thigh_size = DVec3::new(0.42, 0.14, 0.14);
        let thigh = self.bone(
            builder,
            &name("thigh"),
            pelvis,
            Pose::new(down, at(0.92, 0.0)),
            thigh_size,
            (JointMask::BALL, DVec3::Y),
        );
        let shank_size = DVec3::new(0.40, 0.10, 0.10);
        let shank = self.bone(builder, &name("shank"), thigh, Pose::new(down, at(0.50, 0.0)), shank_size, hinge);
        let cardan = (JointMask::UNIVERSAL, DVec3::Y);
        let foot_size = DVec3::new(0.14, 0.08, 0.06);
        let foot = self.bone(builder, &name("foot"), shank, Pose::new(ahead, at(0.10, 0.0)), foot_size, cardan);
        let front_size = DVec3::new(0.06, 0.08, 0.04);
        let front = self.bone(builder, &name("forefoot"), foot, Pose::new(ahead, at(0.10, 0.14)), front_size, hinge);
        for toe in 0..5 {
            let x = 0.016 * (toe as f64 - 2.0);
            let mut root = Pose::new(ahead, at(0.10, 0.20) + DVec3::X * x);
            let mut parent = front;
            for part in 0..2 {
                let size = DVec3::new(0.02, 0.015, 0.02);
                parent = self.bone(builder, &name(&format!("toe_{toe}{part}")), parent, root, size, hinge);
                root.translation += DVec3::Z * 0.02;
            }
        }
        (foot, DVec3::X * (0.07 * self.size))
    }
}
