//! Closed loops: a row of four-bars, a ring, a rope ladder.

use super::{Parameters, Scene, SceneError, Script, frame_along};
use crate::maths::{Pose, Twist};
use crate::model::{BodyId, BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::DVec3;
use std::f64::consts::TAU;

const DENSITY: f64 = 1000.0; // kg/m³
const THICKNESS: f64 = 0.02; // m

/// A bar between two points.
fn bar(builder: &mut ModelBuilder, name: String, from: DVec3, to: DVec3) -> BodyId {
    let along = to - from;
    let side = if along.normalize().y.abs() > 0.9 { DVec3::X } else { DVec3::Y };
    let shape = Shape::capsule(along.length() - THICKNESS, 0.5 * THICKNESS);
    let pose = Pose::new(frame_along(along, side), 0.5 * (from + to));
    builder.body(BodySpec::new(name).shape(shape, DENSITY).pose(pose))
}

/// Upright rods of 0.4 m on the ground, their tops joined by bars: four-bar after four-bar, all hinges about Z. It moves as one, and
/// in space two of the five rows that close each loop would do. The tops start at 0.5 m/s.
pub(super) fn fourbars(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    const SIDE: f64 = 0.4;
    let mut builder = ModelBuilder::new();
    let hinge = |builder: &mut ModelBuilder, name: String, a: BodyId, b: BodyRef, at: DVec3| {
        builder.joint(JointSpec::new(name, JointMask::HINGE, a, b).axis(DVec3::Z).at(at));
    };
    let mut last: Option<BodyId> = None;
    for i in 0..=count {
        let foot = DVec3::X * (SIDE * i as f64);
        let top = foot + DVec3::Y * SIDE;
        let rod = bar(&mut builder, format!("rod_{i}"), foot, top);
        hinge(&mut builder, format!("foot_{i}"), rod, BodyRef::World, foot);
        if let Some(last) = last {
            let beam = bar(&mut builder, format!("bar_{i}"), top - DVec3::X * SIDE, top);
            hinge(&mut builder, format!("left_{i}"), beam, last.into(), top - DVec3::X * SIDE);
            hinge(&mut builder, format!("right_{i}"), beam, rod.into(), top);
        }
        last = Some(rod);
    }
    let mut scene = Scene::new(builder.build()?, Script::Still);
    let speed = 0.5; // m/s, of the tops
    for (body, s) in scene.model.bodies().iter().zip(&mut scene.state.bodies) {
        s.velocity = match body.name.starts_with("rod") {
            true => Twist::new(DVec3::X * (0.5 * speed), DVec3::NEG_Z * (speed / SIDE)),
            false => Twist::new(DVec3::X * speed, DVec3::ZERO),
        };
    }
    Ok(scene)
}

/// Links of 0.1 m on ball joints that close into a circle, hung from one point and lying level at the start.
pub(super) fn ring(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    if count < 3 {
        return Err(parameters.wrong_size("a ring has at least 3 links".into()));
    }
    let damping = parameters.number("damping")?;
    let angle = TAU / count as f64;
    let radius = 0.05 / (0.5 * angle).sin();
    let corner = |k: usize| radius * DVec3::new((k as f64 * angle).cos() - 1.0, 0.0, (k as f64 * angle).sin());
    let mut builder = ModelBuilder::new();
    let links: Vec<BodyId> =
        (0..count).map(|k| bar(&mut builder, format!("link_{k}"), corner(k), corner((k + 1) % count))).collect();
    builder.joint(JointSpec::new("nail", JointMask::BALL, links[0], BodyRef::World).at(corner(0)));
    for k in 0..count {
        let (child, parent) = (links[(k + 1) % count], links[k]);
        builder.joint(
            JointSpec::new(format!("joint_{k}"), JointMask::BALL, child, parent).at(corner(k + 1)).spring(0.0, damping),
        );
    }
    Ok(Scene::new(builder.build()?, Script::Still))
}

/// Two ropes of links and rungs between them, hung from two points and held out level at the start.
pub(super) fn ladder(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let count = parameters.size()?;
    let damping = parameters.number("damping")?;
    const RISE: f64 = 0.25; // m, between rungs
    const WIDTH: f64 = 0.3; // m
    let mut builder = ModelBuilder::new();
    let mut above: [BodyRef; 2] = [BodyRef::World, BodyRef::World];
    for i in 0..count {
        let mut knots = [DVec3::ZERO; 2];
        for (side, name) in ["left", "right"].into_iter().enumerate() {
            let top = DVec3::new(RISE * i as f64, 0.0, (side as f64 - 0.5) * WIDTH);
            knots[side] = top + DVec3::X * RISE;
            let link = bar(&mut builder, format!("{name}_{i}"), top, knots[side]);
            builder.joint(
                JointSpec::new(format!("{name}_knot_{i}"), JointMask::BALL, link, above[side].clone())
                    .at(top)
                    .spring(0.0, damping),
            );
            above[side] = link.into();
        }
        let rung = bar(&mut builder, format!("rung_{i}"), knots[0], knots[1]);
        for (side, name) in ["left", "right"].into_iter().enumerate() {
            builder.joint(
                JointSpec::new(format!("{name}_end_{i}"), JointMask::BALL, rung, above[side].clone())
                    .at(knots[side])
                    .spring(0.0, damping),
            );
        }
    }
    Ok(Scene::new(builder.build()?, Script::Still))
}
