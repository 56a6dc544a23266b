//! Chains of equal links on ball joints, along +X from the origin.

use super::{Parameters, Scene, SceneError, Script};
use crate::maths::{Pose, Twist};
use crate::model::{BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::DVec3;

const LENGTH: f64 = 0.1; // m
const WIDTH: f64 = 0.04; // m
const MASS: f64 = 0.1; // kg

/// Released at rest.
pub(super) fn chain(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let links = parameters.size()?;
    let stiffness = parameters.number("stiffness")?;
    let damping = parameters.number("damping")?;
    let tip_mass = parameters.positive("tip_mass")?;
    let mut builder = ModelBuilder::new();
    let mut parent = BodyRef::World;
    for i in 0..links {
        let start = LENGTH * i as f64;
        let mass = if i + 1 == links { MASS * tip_mass } else { MASS };
        let link = builder.body(
            BodySpec::new(format!("link_{i}"))
                .shape(Shape::cuboid(LENGTH, WIDTH, WIDTH), MASS / (LENGTH * WIDTH * WIDTH))
                .mass(mass) // its inertia goes with it
                .pose(Pose::at(DVec3::X * (start + 0.5 * LENGTH))),
        );
        builder.joint(
            JointSpec::new(format!("joint_{i}"), JointMask::BALL, link, parent)
                .at(DVec3::X * start)
                .spring(stiffness, damping),
        );
        parent = link.into();
    }
    Ok(Scene::new(builder.build()?, Script::Still))
}

/// Every link turns about the vertical at a rate of its own: ωᵢ = 0.05 sin(1.7 i + 0.3) rad/s.
pub(super) fn whip(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut scene = chain(parameters)?;
    let mut joint_velocity = DVec3::ZERO; // of the link's upper joint
    for (i, link) in scene.state.bodies.iter_mut().enumerate() {
        let angular = DVec3::Y * (0.05 * (1.7 * i as f64 + 0.3).sin());
        let half = angular.cross(DVec3::X * (0.5 * LENGTH));
        link.velocity = Twist::new(joint_velocity + half, angular);
        joint_velocity += 2.0 * half;
    }
    Ok(scene)
}
