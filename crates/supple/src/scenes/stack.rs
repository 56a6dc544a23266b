//! Boxes on one another, and one on a slope.

use super::{Parameters, Scene, SceneError, Script};
use crate::input::Contacts;
use crate::maths::Pose;
use crate::model::{BodySpec, Material, ModelBuilder, ObstacleShape, ObstacleSpec, Shape};
use glam::{DQuat, DVec3};

/// Edge of a box \[m\]; it weighs 1 kg.
const EDGE: f64 = 0.2;

/// Boxes of 1 kg in a straight pile; the top one may weigh more.
pub(super) fn stack(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    let top_mass = parameters.positive("top_mass")?;
    let material = Material::new(0.5, 0.0);
    let mut builder = ModelBuilder::new();
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(material));
    let density = EDGE.powi(-3);
    for k in 0..count {
        let density = if k + 1 == count { top_mass * density } else { density };
        builder.body(
            BodySpec::new(format!("box_{k}"))
                .shape(Shape::cuboid(EDGE, EDGE, EDGE), density)
                .pose(Pose::at(DVec3::Y * (EDGE * (k as f64 + 0.5))))
                .material(material),
        );
    }
    let mut scene = Scene::new(builder.build()?, Script::Still);
    scene.input.contacts = Contacts::All;
    Ok(scene)
}

/// A box on a plane that falls by `slope` towards +X: it slides, sticks or bounces.
pub(super) fn block(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let slope = parameters.number("slope")?.to_radians();
    let speed = parameters.number("speed")?;
    let height = parameters.number("height")?;
    let material = Material::new(parameters.number("friction")?, parameters.number("restitution")?);
    let tilt = DQuat::from_rotation_z(-slope);
    let mut builder = ModelBuilder::new();
    let plane = ObstacleSpec::new("plane", ObstacleShape::HalfSpace);
    builder.obstacle(plane.pose(Pose::new(tilt, DVec3::ZERO)).material(material));
    let centre = tilt * DVec3::Y * (0.5 * EDGE + height);
    builder.body(
        BodySpec::new("block")
            .shape(Shape::cuboid(EDGE, EDGE, EDGE), EDGE.powi(-3))
            .pose(Pose::new(tilt, centre))
            .material(material),
    );
    let mut scene = Scene::new(builder.build()?, Script::Still);
    scene.state.bodies[0].velocity.linear = tilt * DVec3::X * speed;
    Ok(scene)
}
