//! Scenes with closed forms: pendulum, double pendulum, heavy top.

use super::{Parameters, Scene, SceneError, Script, frame_along};
use crate::maths::{Pose, Twist};
use crate::model::{BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::DVec3;

/// One rod.
pub(super) fn single(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    rods(&["rod"])
}

/// Two rods.
pub(super) fn double(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    rods(&["upper", "lower"])
}

/// Rods of 1 m along X, each on a hinge about Z at the end of the one before, the first at the origin.
fn rods(names: &[&str]) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    let mut parent = BodyRef::World;
    for (i, name) in names.iter().enumerate() {
        let start = DVec3::X * i as f64;
        let rod = builder.body(
            BodySpec::new(*name).shape(Shape::cuboid(1.0, 0.04, 0.04), 625.0).pose(Pose::at(start + DVec3::X * 0.5)),
        );
        let hinge = if i == 0 { "pivot" } else { "elbow" };
        builder.joint(JointSpec::new(hinge, JointMask::HINGE, rod, parent).at(start).axis(DVec3::Z));
        parent = rod.into();
    }
    Ok(Scene::new(builder.build()?, Script::Still))
}

/// A disc on a spike whose point stays at the origin. Its X is the axis of spin. 60 rad/s is three times what it
/// needs to stand upright, and it precesses once in about 4 s.
pub(super) fn top(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    const SPIN: f64 = 60.0; // rad/s
    const TILT: f64 = 0.4; // rad from the vertical
    let axis = DVec3::new(TILT.sin(), TILT.cos(), 0.0);
    let mut builder = ModelBuilder::new();
    let body = builder.body(
        BodySpec::new("top")
            .shape_at(Shape::cylinder(0.02, 0.1), 1000.0, Pose::at(DVec3::X * 0.05))
            .shape_at(Shape::cylinder(0.04, 0.005), 1000.0, Pose::at(DVec3::X * 0.02))
            .pose(Pose::new(frame_along(axis, DVec3::Z), DVec3::ZERO)),
    );
    builder.joint(JointSpec::new("point", JointMask::BALL, body, BodyRef::World).axis(axis));
    let mut scene = Scene::new(builder.build()?, Script::Still);
    let top = &mut scene.state.bodies[body.index()];
    let spin = axis * SPIN;
    top.velocity = Twist::new(spin.cross(top.position), spin); // the point at the origin is at rest
    Ok(scene)
}
