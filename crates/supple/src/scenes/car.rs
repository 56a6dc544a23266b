//! A car [Bender 2006, fig. 9]: a servo for each wheel, one for the steering, sliders with springs as dampers.
//!
//! It looks along +X, its right side at +Z. Each wheel turns on a carrier that slides up and down in the chassis. In front the wheel turns on
//! a knuckle that swivels on the carrier; a rack across the chassis turns both knuckles by tie rods, which closes two loops.

use super::{Parameters, Scene, SceneError, Script, frame_along};
use crate::input::{Input, JointInput};
use crate::maths::Pose;
use crate::model::{
    BodyId, BodySpec, JointId, JointMask, JointSpec, Limits, Material, ModelBuilder, Motor, ObstacleSpec, Range,
    ServoTarget, Shape, SlideSpring, Stops,
};
use glam::{DQuat, DVec3};
use std::f64::consts::TAU;

const WHEEL: f64 = 0.33; // radius [m]
const TYRE: f64 = 0.22; // width [m]
const AXLES: [f64; 2] = [1.25, -1.25]; // front and rear [m]
const TRACK: f64 = 0.72; // from the middle to a wheel [m]
const PIVOT: f64 = 0.55; // from the middle to a knuckle [m]
const ARM: f64 = 0.2; // from a knuckle's axis back to its tie rod [m]
const RACK: f64 = 0.3; // half its length [m]
/// The rack at full lock \[m\].
const LOCK: f64 = 0.09;

/// What each spring carries at rest \[N\], and how it does: some 5 cm of sag, 0.4 of critical damping.
const LOAD: f64 = 1700.0;
const SPRING: f64 = 35e3; // N/m
const DAMPING: f64 = 2000.0; // N·s/m

/// The car before a road with bumps.
pub(super) fn car(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let speed = parameters.number("speed")?;
    let mut builder = ModelBuilder::new();
    let ground = Material::new(0.9, 0.0);
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(ground));
    bumps(&mut builder, ground);

    let chassis = builder.body(
        BodySpec::new("chassis")
            .shape_at(Shape::cuboid(3.6, 0.28, 1.0), 600.0, Pose::at(DVec3::new(0.0, 0.55, 0.0)))
            .shape_at(Shape::cuboid(1.5, 0.45, 1.1), 60.0, Pose::at(DVec3::new(-0.35, 0.9, 0.0))),
    );
    let rack_x = AXLES[0] - ARM;
    let rack = builder.body(
        BodySpec::new("rack")
            .shape(Shape::cuboid(0.05, 0.05, 2.0 * RACK), 4000.0)
            .pose(Pose::at(DVec3::new(rack_x, WHEEL, 0.0))),
    );
    let motor = Motor { stiffness: 1e5, damping: 3000.0, max: 5000.0, integral: 0.0 };
    let steering = builder.joint(
        JointSpec::new("steering", JointMask::PRISMATIC, rack, chassis)
            .at(DVec3::new(rack_x, WHEEL, 0.0))
            .axis(DVec3::Z)
            .motor(motor),
    );

    let mut wheels = Vec::new();
    for (end, x) in ["front", "rear"].into_iter().zip(AXLES) {
        for (side, sign) in [("left", -1.0), ("right", 1.0)] {
            let name = |part: &str| format!("{end}_{side}_{part}");
            let strut = DVec3::new(x, WHEEL, PIVOT * sign);
            let carrier = builder.body(
                BodySpec::new(name("carrier"))
                    .shape_at(Shape::cuboid(0.12, 0.30, 0.08), 3000.0, Pose::at(DVec3::Y * 0.08))
                    .pose(Pose::at(strut)),
            );
            let stops = Limits { slide: Some(Range::new(-0.15, 0.12)), stops: Stops::Hard, ..Limits::default() };
            builder.joint(
                JointSpec::new(name("damper"), JointMask::PRISMATIC, carrier, chassis)
                    .at(strut)
                    .axis(DVec3::Y)
                    .slide_spring(SlideSpring {
                        stiffness: SPRING,
                        damping: DAMPING,
                        rest: DVec3::NEG_X * (LOAD / SPRING),
                    })
                    .limits(stops),
            );
            let hub = if end == "front" { knuckle(&mut builder, side, sign, strut, carrier, rack) } else { carrier };
            wheels.push(wheel(&mut builder, name("wheel"), DVec3::new(x, WHEEL, TRACK * sign), hub, ground).index());
        }
    }
    let model = builder.build()?;
    let joints = model.joints().len();
    let drive = Drive { wheels, steering: steering.index(), speed };
    let mut scene = Scene::new(model, Script::Drive(drive));
    scene.input.joints = vec![JointInput::default(); joints];
    Ok(scene)
}

/// A knuckle on its carrier, and the rod from the rack to its arm.
fn knuckle(builder: &mut ModelBuilder, side: &str, sign: f64, strut: DVec3, carrier: BodyId, rack: BodyId) -> BodyId {
    let arm = strut - DVec3::X * ARM;
    let knuckle = builder.body(
        BodySpec::new(format!("{side}_knuckle"))
            .shape(Shape::cuboid(0.10, 0.14, 0.12), 3000.0)
            .shape_at(Shape::cuboid(ARM, 0.04, 0.04), 3000.0, Pose::at(DVec3::NEG_X * (0.5 * ARM)))
            .pose(Pose::at(strut)),
    );
    let range = Limits { angle: Some(Range::new(-0.7, 0.7)), stops: Stops::Hard, ..Limits::default() };
    builder.joint(
        JointSpec::new(format!("{side}_swivel"), JointMask::HINGE, knuckle, carrier)
            .at(strut)
            .axis(DVec3::Y)
            .limits(range),
    );
    let from = DVec3::new(arm.x, arm.y, RACK * sign);
    let along = Pose::new(frame_along(arm - from, DVec3::Y), from);
    let length = (arm - from).length();
    let rod = builder.body(
        BodySpec::new(format!("{side}_tie_rod"))
            .shape_at(Shape::capsule(length, 0.015), 7000.0, Pose::at(DVec3::X * (0.5 * length)))
            .pose(along),
    );
    builder.joint(JointSpec::new(format!("{side}_rack_end"), JointMask::UNIVERSAL, rod, rack).frame(along));
    builder.joint(JointSpec::new(format!("{side}_arm_end"), JointMask::BALL, rod, knuckle).at(arm));
    knuckle
}

/// A wheel; its joint turns with positive rate when the car goes forward.
fn wheel(builder: &mut ModelBuilder, name: String, centre: DVec3, hub: BodyId, rubber: Material) -> JointId {
    let turned = Pose::new(frame_along(DVec3::NEG_Z, DVec3::Y), centre);
    let joint = name.clone();
    let wheel =
        builder.body(BodySpec::new(name).shape(Shape::cylinder(TYRE, WHEEL), 250.0).pose(turned).material(rubber));
    let motor = Motor { stiffness: 0.0, damping: 100.0, max: 250.0, integral: 0.0 };
    builder.joint(JointSpec::new(joint, JointMask::HINGE, wheel, hub).frame(turned).motor(motor))
}

/// Planks across one wheel track after the other, then a ramp that ends in the air.
fn bumps(builder: &mut ModelBuilder, ground: Material) {
    for k in 0..6 {
        let z = if k % 2 == 0 { TRACK } else { -TRACK };
        let plank = ObstacleSpec::solid(format!("plank_{k}"), Shape::cuboid(0.25, 0.10, 0.9));
        builder.obstacle(plank.pose(Pose::at(DVec3::new(5.0 + 1.6 * f64::from(k), 0.02, z))).material(ground));
    }
    let slope = Pose::new(DQuat::from_rotation_z(0.12), DVec3::new(18.0, 0.03, 0.0));
    builder.obstacle(ObstacleSpec::solid("ramp", Shape::cuboid(3.0, 0.25, 2.4)).pose(slope).material(ground));
}

/// Straight ahead over the bumps, then in wide bends.
#[derive(Clone, Debug)]
pub(super) struct Drive {
    /// Joints of the wheels.
    wheels: Vec<usize>,
    /// The joint of the rack.
    steering: usize,
    /// \[m/s\]
    speed: f64,
}

impl Drive {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        const BENDS_FROM: f64 = 9.0; // s: behind the ramp
        let t = time + input.dt;
        let turn = if t < BENDS_FROM { 0.0 } else { 0.5 * (TAU * (t - BENDS_FROM) / 8.0).sin() };
        self.steer((t / 2.0).min(1.0), turn, input);
    }

    /// Drives at a share of the full speed (−1 to 1), the wheels at a share of full lock (−1 to 1, positive to the left).
    pub(super) fn steer(&self, drive: f64, turn: f64, input: &mut Input) {
        let rate = self.speed / WHEEL * drive;
        for &k in &self.wheels {
            if let Some(joint) = input.joints.get_mut(k) {
                joint.servo = Some(ServoTarget::Rate(rate));
            }
        }
        if let Some(joint) = input.joints.get_mut(self.steering) {
            joint.servo = Some(ServoTarget::Position { position: LOCK * turn, rate: 0.0 });
        }
    }
}
