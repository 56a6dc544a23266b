//! The robot limp: down stairs, and in a heap.

use super::robot::Rig;
use super::{Parameters, Scene, SceneError, Script};
use crate::input::Contacts;
use crate::maths::{Pose, Twist};
use crate::model::{ModelBuilder, ObstacleSpec, Shape};
use glam::{DQuat, DVec3};
use std::f64::consts::FRAC_PI_2;

/// Steps, and the rise and run of each \[m\].
const STEPS: u32 = 10;
const RISE: f64 = 0.17;
const RUN: f64 = 0.29;
const WIDTH: f64 = 2.4;

/// A limp robot thrown from the top of the stairs.
pub(super) fn ragdoll(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    let top = RISE * f64::from(STEPS);
    let block = |name: String, height: f64, from: f64, to: f64| {
        let size = DVec3::new(WIDTH, height, to - from);
        ObstacleSpec::solid(name, Shape::Cuboid { size }).pose(Pose::at(DVec3::new(
            0.0,
            0.5 * height,
            0.5 * (from + to),
        )))
    };
    builder.obstacle(block("landing".into(), top, -1.5, 0.0));
    for k in 1..STEPS {
        let from = RUN * f64::from(k - 1);
        builder.obstacle(block(format!("step_{k}"), top - RISE * f64::from(k), from, from + RUN));
    }
    let place = Pose::at(DVec3::new(0.0, top + 0.02, -0.35));
    Rig::ragdoll(&mut builder, String::new(), place).robot();
    let mut scene = Scene::new(builder.build()?, Script::Still);
    scene.input.contacts = Contacts::All;
    // Thrown forward, head first, with a little twist.
    let (linear, angular) = (DVec3::new(0.1, 1.0, 2.0), DVec3::new(1.6, 0.5, 0.1));
    let centre = place.transform_point(DVec3::Y);
    for body in &mut scene.state.bodies {
        body.velocity = Twist::new(linear + angular.cross(body.position - centre), angular);
    }
    Ok(scene)
}

/// Limp robots dropped flat, two side by side and the next two across them.
pub(super) fn pile(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0));
    for k in 0..count {
        let (layer, side) = ((k / 2) as f64, if k % 2 == 0 { -0.45 } else { 0.45 });
        let lying = DQuat::from_rotation_y(FRAC_PI_2 * layer) * DQuat::from_rotation_x(FRAC_PI_2);
        let middle = DVec3::Y * (0.5 + 0.5 * layer) + DQuat::from_rotation_y(FRAC_PI_2 * layer) * DVec3::X * side;
        // Every second one lies the other way round.
        let turn = if k % 2 == 0 { lying } else { lying * DQuat::from_rotation_z(std::f64::consts::PI) };
        let place = Pose::new(turn, middle).then(Pose::at(DVec3::NEG_Y));
        Rig::ragdoll(&mut builder, format!("{k}_"), place).robot();
    }
    let mut scene = Scene::new(builder.build()?, Script::Still);
    scene.input.contacts = Contacts::All;
    Ok(scene)
}
