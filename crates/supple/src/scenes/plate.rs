//! A plate that is shaken by hand, with what hangs on it, of the size of [Faure 1998, Fig. 6]: 28 solids, 108 scalar constraints.
//!
//! Nine strings of three links each below a plate, all on universal joints: 27 joints of four rows. The plate is held by a grip, as by a
//! tracker in the hand.

use super::{Parameters, Scene, SceneError, Script, by_assembly, entries, frame_along};
use crate::input::{Grip, Input};
use crate::maths::{Pose, rotation};
use crate::model::{BodyId, BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::DVec3;

const DENSITY: f64 = 700.0; // kg/m³, wood
const PLATE: DVec3 = DVec3::new(0.5, 0.02, 0.5); // m
const LINK: f64 = 0.12; // m
const RADIUS: f64 = 0.015; // m
const SPACING: f64 = 0.18; // m

/// The plate, level at a height of 1 m.
pub(super) fn plate(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    let start = DVec3::Y;
    let plate =
        builder.body(BodySpec::new("plate").shape(Shape::Cuboid { size: PLATE }, DENSITY).pose(Pose::at(start)));
    for i in 0..9 {
        let across = DVec3::new((i % 3) as f64 - 1.0, 0.0, (i / 3) as f64 - 1.0) * SPACING;
        let mut root = Pose::new(frame_along(DVec3::NEG_Y, DVec3::X), start + across - DVec3::Y * (0.5 * PLATE.y));
        let mut parent = BodyRef::Id(plate);
        for k in 0..3 {
            let shape = Shape::capsule(LINK, RADIUS);
            let spec = BodySpec::new(format!("link_{i}{k}"));
            let link = builder.body(spec.shape_at(shape, DENSITY, Pose::at(DVec3::X * (0.5 * LINK))).pose(root));
            builder.joint(JointSpec::new(format!("joint_{i}{k}"), JointMask::UNIVERSAL, link, parent).frame(root));
            root = root.then(Pose::at(DVec3::X * LINK));
            parent = link.into();
        }
    }
    Ok(by_assembly(Scene::new(builder.build()?, Script::ShakePlate(Shake { plate, start }))))
}

/// The hand that holds the plate: to and fro, up and down, tilting.
#[derive(Clone, Debug)]
pub(super) struct Shake {
    plate: BodyId,
    start: DVec3,
}

impl Shake {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let t = time + input.dt;
        let rise = t.clamp(0.0, 1.0); // it comes up within a second
        let (a, b) = ((7.0 * t).sin() * rise, (5.0 * t).sin() * rise);
        let grip = Grip {
            body: self.plate,
            point: DVec3::ZERO,
            target: self.start + DVec3::new(0.15 * a, 0.05 * b, 0.1 * a * b),
            rotation: Some(rotation::exp(DVec3::new(0.3 * b, 0.0, -0.2 * a))),
        };
        entries(&mut input.grips, 1, grip)[0] = grip;
    }
}
