//! A curled hair on a shaken scalp.

use super::{Parameters, Scene, SceneError, Script, damping, entries, frame_along};
use crate::input::{Input, Target};
use crate::maths::{Pose, Twist, rotation};
use crate::model::{BodySpec, JointMask, JointSpec, ModelBuilder, RotationSpring, Shape, TrackerSpec};
use glam::DVec3;
use std::f64::consts::TAU;

const LENGTH: f64 = 0.005; // m, of a link
const RADIUS: f64 = 0.001; // m
const DENSITY: f64 = 1300.0; // kg/m³, keratin

/// Links that continue one another along X, bent at rest into a helix that rises from the scalp.
pub(super) fn strand(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let links = parameters.size()?;
    let mut builder = ModelBuilder::new();
    let size = DVec3::new(0.02, 0.005, 0.02);
    let scalp = builder.body(
        BodySpec::new("scalp").shape(Shape::Cuboid { size }, DENSITY).pose(Pose::at(DVec3::NEG_Y * (0.5 * size.y))),
    );
    let mass = DENSITY * size.x * size.y * size.z;
    builder.tracker(TrackerSpec {
        name: "scalp".into(),
        body: scalp.into(),
        point: DVec3::ZERO,
        stiffness: 500.0,
        damping: damping(1.0, 500.0, mass),
        rotation_stiffness: 1.0,
        rotation_damping: damping(1.0, 1.0, 1e-5), // kg·m²: 40 links about their root
    });

    // A hair held level sags by about half a radian in all and sways about twice a second.
    let spring = RotationSpring {
        stiffness: 0.02,
        damping: 3e-4, // a tenth of critical for the whole hair
        rest: rotation::exp(DVec3::new(0.04, 0.0, 0.12)),
        ..RotationSpring::default()
    };
    let end = Pose::at(DVec3::X * LENGTH);
    let mut root = Pose::new(frame_along(DVec3::Y, DVec3::X), DVec3::ZERO);
    let mut last = scalp;
    for i in 0..links {
        let spec = BodySpec::new(format!("link_{i}"));
        let shape = Shape::cylinder(LENGTH, RADIUS);
        let link = builder.body(spec.shape_at(shape, DENSITY, Pose::at(DVec3::X * (0.5 * LENGTH))).pose(root));
        let name = format!("joint_{i}");
        builder.joint(match i {
            0 => JointSpec::new(name, JointMask::WELD, link, last).frame(root),
            _ => JointSpec::new(name, JointMask::BALL, link, last).frames(Pose::IDENTITY, end).rotation_spring(spring),
        });
        root = root.then(end);
        root.rotation = (root.rotation * spring.rest).normalize();
        last = link;
    }
    let model = builder.build()?;
    let start = model.body(scalp).start;
    Ok(Scene::new(model, Script::Shake(Shake { start })))
}

/// The scalp moves along a closed curve, starting at rest.
#[derive(Clone, Debug)]
pub(super) struct Shake {
    start: Pose,
}

impl Shake {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let t = time + input.dt;
        // a (1 − cos ωt) along each axis: 4 cm to and fro, 2 cm up and down, 2 cm across
        let (mut offset, mut velocity) = (DVec3::ZERO, DVec3::ZERO);
        for (axis, size, hertz) in [(DVec3::X, 0.02, 1.0), (DVec3::Y, 0.01, 2.0), (DVec3::Z, 0.01, 0.5)] {
            let omega = TAU * hertz;
            offset += axis * (size * (1.0 - (omega * t).cos()));
            velocity += axis * (size * omega * (omega * t).sin());
        }
        let pose = Pose::new(self.start.rotation, self.start.translation + offset);
        entries(&mut input.targets, 1, None)[0] = Some(Target { pose, velocity: Twist::new(velocity, DVec3::ZERO) });
    }
}
