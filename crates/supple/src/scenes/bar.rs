//! The two small examples of [Faure 1998]: a bar whose ends belong onto two discs (Fig. 2), and a particle on a circle (Fig. 4).

use super::{Parameters, Scene, SceneError, Script, by_assembly};
use crate::maths::{Pose, Twist};
use crate::model::{BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::{DQuat, DVec3};

const DENSITY: f64 = 1000.0; // kg/m³

/// The ends of the bar belong into the centres of the discs; at the start they are far from there. Nothing pulls: no weight.
pub(super) fn bar(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    const LENGTH: f64 = 1.0; // m
    let mut builder = ModelBuilder::new();
    let turned = DQuat::from_rotation_z(2.2) * DQuat::from_rotation_y(0.4);
    let bar = builder.body(
        BodySpec::new("bar")
            .shape(Shape::cuboid(LENGTH, 0.06, 0.06), DENSITY)
            .pose(Pose::new(turned, DVec3::new(0.3, 0.7, 0.2))),
    );
    for (name, sign) in [("left", -1.0), ("right", 1.0)] {
        // X of a disc is its axis; it faces +Z.
        let facing = Pose::new(DQuat::from_rotation_y(-std::f64::consts::FRAC_PI_2), DVec3::X * (0.9 * sign));
        let disc =
            builder.body(BodySpec::new(format!("{name}_disc")).shape(Shape::cylinder(0.05, 0.2), DENSITY).pose(facing));
        let end = Pose::at(DVec3::X * (0.5 * LENGTH * sign));
        builder.joint(JointSpec::new(format!("{name}_end"), JointMask::BALL, bar, disc).frames(end, Pose::IDENTITY));
    }
    let mut scene = by_assembly(Scene::new(builder.build()?, Script::Still));
    scene.input.gravity = DVec3::ZERO;
    Ok(scene)
}

/// A small ball that stays on a circle of 1 m about the origin and meets no force: its speed should stay.
pub(super) fn circle(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    const SPEED: f64 = 2.0; // m/s
    let mut builder = ModelBuilder::new();
    let particle = builder.body(BodySpec::new("particle").shape(Shape::sphere(0.03), DENSITY).pose(Pose::at(DVec3::X)));
    builder.joint(JointSpec::new("circle", JointMask::HINGE, particle, BodyRef::World).axis(DVec3::Z));
    let mut scene = by_assembly(Scene::new(builder.build()?, Script::Still));
    scene.input.gravity = DVec3::ZERO;
    scene.state.bodies[particle.index()].velocity = Twist::new(DVec3::Y * SPEED, DVec3::Z * SPEED);
    Ok(scene)
}
