//! A walking machine [Bender 2006, fig. 9]: each leg has one servo, two hinges, one slider, and closes one loop.
//!
//! A crank (the servo) turns about C on the frame. The leg hangs from the crank's pin P and slides through a block that swivels about Q, below C. With
//! `|CP| = r`, `|CQ| = d` and L the length of the leg, the foot is at
//!
//! ```text
//! F = P + L (Q − P)/|Q − P|
//! ```
//! While P passes below C the foot is low and goes back: the leg carries. While P passes above, the foot is lifted and goes forward. Six legs
//! in two threes half a turn apart change over when all feet are at one height.

use super::{Parameters, Scene, SceneError, Script, frame_along};
use crate::input::{Input, JointInput};
use crate::maths::Pose;
use crate::model::{
    BodyId, BodySpec, JointMask, JointSpec, Material, ModelBuilder, Motor, ObstacleSpec, ServoTarget, Shape,
};
use glam::DVec3;
use std::f64::consts::{PI, TAU};

const CRANK: f64 = 0.04; // r [m]
const SWIVEL: f64 = 0.2; // d [m]
const LEG: f64 = 0.8; // L, to the middle of the foot [m]
const FOOT: f64 = 0.035; // radius [m]
const FRAME: DVec3 = DVec3::new(1.7, 0.08, 0.80); // m
const STEEL: f64 = 2700.0; // kg/m³
const SPACING: f64 = 0.7; // of the legs on a side [m]

/// A leg: which side it is on (+1 is Z), its place along the frame, and the crank's angle at the start \[rad\].
struct Leg {
    name: &'static str,
    side: f64,
    along: f64,
    phase: f64,
}

const LEGS: [Leg; 6] = [
    Leg { name: "left_front", side: -1.0, along: SPACING, phase: 0.0 },
    Leg { name: "left_middle", side: -1.0, along: 0.0, phase: PI },
    Leg { name: "left_rear", side: -1.0, along: -SPACING, phase: 0.0 },
    Leg { name: "right_front", side: 1.0, along: SPACING, phase: PI },
    Leg { name: "right_middle", side: 1.0, along: 0.0, phase: 0.0 },
    Leg { name: "right_rear", side: 1.0, along: -SPACING, phase: PI },
];

/// The machine, all feet on the ground; it walks along +X.
pub(super) fn walker(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let turns = parameters.number("turns")?;
    let rubber = Material::new(0.9, 0.0);
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(rubber));

    // The height of C at which the feet of both threes stand, P beside C.
    let beside = SWIVEL.hypot(CRANK);
    let height = FOOT + (LEG - beside) * SWIVEL / beside + SWIVEL;
    let frame = builder
        .body(BodySpec::new("frame").shape(Shape::Cuboid { size: FRAME }, 350.0).pose(Pose::at(DVec3::Y * height)));
    let mut servos = Vec::new();
    for leg in &LEGS {
        servos.push(leg.build(&mut builder, frame, height, rubber).index());
    }
    let model = builder.build()?;
    let joints = model.joints().len();
    let mut scene = Scene::new(model, Script::Walk(Walk { servos, speed: TAU * turns }));
    scene.input.joints = vec![JointInput::default(); joints];
    Ok(scene)
}

impl Leg {
    /// Adds crank, leg and block to the frame; returns the servo.
    fn build(&self, builder: &mut ModelBuilder, frame: BodyId, height: f64, rubber: Material) -> crate::model::JointId {
        let name = |part: &str| format!("{}_{part}", self.name);
        let plane = |z: f64| DVec3::Z * (self.side * (0.5 * FRAME.z + z));
        let hub = DVec3::new(self.along, height, 0.0);
        let pin = hub + CRANK * DVec3::new(self.phase.cos(), self.phase.sin(), 0.0);
        let pivot = hub - DVec3::Y * SWIVEL;
        let down = (pivot - pin).normalize();

        let disc = Pose::new(frame_along(DVec3::Z, DVec3::Y), hub + plane(0.02));
        let crank =
            builder.body(BodySpec::new(name("crank")).shape(Shape::cylinder(0.02, CRANK + 0.02), STEEL).pose(disc));
        let along = frame_along(down, DVec3::Z);
        let leg = builder.body(
            BodySpec::new(name("leg"))
                .shape_at(Shape::cylinder(LEG, 0.016), STEEL, Pose::at(DVec3::X * (0.5 * LEG)))
                .shape_at(Shape::sphere(FOOT), 1000.0, Pose::at(DVec3::X * LEG))
                .pose(Pose::new(along, pin + plane(0.05)))
                .material(rubber),
        );
        let block = builder.body(
            BodySpec::new(name("block"))
                .shape(Shape::cuboid(0.07, 0.05, 0.05), STEEL)
                .pose(Pose::new(along, pivot + plane(0.05))),
        );
        let hinge = |part: &str, child: BodyId, parent: BodyId, at: DVec3| {
            JointSpec::new(name(part), JointMask::HINGE, child, parent).at(at).axis(DVec3::Z)
        };
        let motor = Motor { stiffness: 3000.0, damping: 100.0, max: 300.0, integral: 0.0 };
        let servo = builder.joint(hinge("servo", crank, frame, hub + plane(0.02)).motor(motor));
        builder.joint(hinge("pin", leg, crank, pin + plane(0.05)));
        builder.joint(hinge("swivel", block, frame, pivot + plane(0.05)));
        builder.joint(
            JointSpec::new(name("slider"), JointMask::PRISMATIC, leg, block)
                .frame(Pose::new(along, pivot + plane(0.05))),
        );
        servo
    }
}

/// All cranks turn alike, after a gentle start.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Their joints.
    servos: Vec<usize>,
    /// \[rad/s\]
    speed: f64,
}

impl Walk {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        const START: f64 = 1.0; // s
        let t = time + input.dt;
        // The speed rises evenly until START.
        let turned = if t < START { 0.5 * t * t / START } else { t - 0.5 * START };
        let servo = ServoTarget::Position { position: self.speed * turned, rate: self.speed * (t / START).min(1.0) };
        for &k in &self.servos {
            if let Some(joint) = input.joints.get_mut(k) {
                joint.servo = Some(servo);
            }
        }
    }
}
