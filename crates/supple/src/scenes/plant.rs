//! A plant in the wind: a stem that tapers, a twig at each of its upper nodes, leaves.

use super::{Parameters, Scene, SceneError, Script, damping, entries, frame_along};
use crate::input::Input;
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::{DQuat, DVec3};

const STEM_PARTS: usize = 8;
const STEM_LENGTH: f64 = 0.1; // m, of a part
const STEM_RADIUS: f64 = 0.006; // m, at the ground; half of it at the top
const STEM_STIFFNESS: f64 = 20.0; // N·m/rad at the ground: wind bends it by a few degrees a joint
const FIRST_TWIG: usize = 3; // the lowest part that bears a twig at its upper end
const TWIG_LENGTH: f64 = 0.06; // m, of each of its two parts
const TWIG_RADIUS: f64 = 0.0025; // m
const TWIG_SLANT: f64 = 0.9; // rad from the stem
const LEAF: DVec3 = DVec3::new(0.08, 0.002, 0.05); // m
const GREEN_WOOD: f64 = 600.0; // kg/m³
const LEAF_DENSITY: f64 = 400.0; // kg/m³
/// From one twig to the next, about the stem \[rad\]: the golden angle.
const DIVERGENCE: f64 = 2.399963;

/// The plant, rooted at the origin, straight up.
pub(super) fn plant(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut grower = Grower { builder: ModelBuilder::new(), leaves: Vec::new() };
    let mut node = Pose::new(frame_along(DVec3::Y, DVec3::X), DVec3::ZERO);
    let mut last = BodyRef::World;
    for i in 0..STEM_PARTS {
        // Bending stiffness goes with the fourth power of the radius.
        let taper = 1.0 - 0.5 * i as f64 / (STEM_PARTS - 1) as f64;
        let stiffness = STEM_STIFFNESS * taper.powi(4);
        let part = grower.part(&format!("stem_{i}"), last, node, STEM_LENGTH, STEM_RADIUS * taper, stiffness);
        node = node.then(Pose::at(DVec3::X * STEM_LENGTH));
        if i >= FIRST_TWIG {
            let turn = DQuat::from_rotation_x(DIVERGENCE * i as f64) * DQuat::from_rotation_z(TWIG_SLANT);
            grower.twig(i, part, node.then(Pose::new(turn, DVec3::ZERO)));
        }
        last = part.into();
    }
    grower.leaf("leaf_top", last, node);
    Ok(Scene::new(grower.builder.build()?, Script::Wind(Wind { leaves: grower.leaves })))
}

struct Grower {
    builder: ModelBuilder,
    leaves: Vec<BodyId>,
}

impl Grower {
    /// A piece of wood from `node` along its X.
    fn part(&mut self, name: &str, parent: BodyRef, node: Pose, length: f64, radius: f64, stiffness: f64) -> BodyId {
        let shape = Shape::cylinder(length, radius);
        let spec = BodySpec::new(name).shape_at(shape, GREEN_WOOD, Pose::at(DVec3::X * (0.5 * length))).pose(node);
        let body = self.builder.body(spec);
        // 6 ms: about a twentieth of critical where the plant sways three times a second
        let joint = JointSpec::new(format!("{name}_joint"), JointMask::BALL, body, parent);
        self.builder.joint(joint.frame(node).spring(stiffness, 0.006 * stiffness));
        body
    }

    /// Two parts and a leaf.
    fn twig(&mut self, i: usize, stem: BodyId, node: Pose) {
        let step = Pose::at(DVec3::X * TWIG_LENGTH);
        let inner = self.part(&format!("twig_{i}_inner"), stem.into(), node, TWIG_LENGTH, TWIG_RADIUS, 0.5);
        let node = node.then(step);
        let outer = self.part(&format!("twig_{i}_outer"), inner.into(), node, TWIG_LENGTH, TWIG_RADIUS, 0.3);
        self.leaf(&format!("leaf_{i}"), outer.into(), node.then(step));
    }

    fn leaf(&mut self, name: &str, parent: BodyRef, node: Pose) {
        const STIFFNESS: f64 = 0.05; // N·m/rad: a leaf alone shakes about 13 times a second
        let inertia = LEAF_DENSITY * LEAF.x * LEAF.y * LEAF.z * LEAF.x * LEAF.x / 3.0; // about its stalk
        let shape = Shape::Cuboid { size: LEAF };
        let spec = BodySpec::new(name).shape_at(shape, LEAF_DENSITY, Pose::at(DVec3::X * (0.5 * LEAF.x))).pose(node);
        let body = self.builder.body(spec);
        let joint = JointSpec::new(format!("{name}_joint"), JointMask::BALL, body, parent);
        self.builder.joint(joint.frame(node).spring(STIFFNESS, damping(0.1, STIFFNESS, inertia)));
        self.leaves.push(body);
    }
}

/// Wind along +X with gusts, a little different at each leaf.
#[derive(Clone, Debug)]
pub(super) struct Wind {
    leaves: Vec<BodyId>,
}

impl Wind {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        const FORCE: f64 = 0.1; // N on a leaf: wind of some 7 m/s
        let t = time + 0.5 * input.dt;
        let rise = (0.5 * t).clamp(0.0, 1.0); // it comes up within 2 s
        let strength = FORCE * rise * rise * (3.0 - 2.0 * rise);
        let wrenches = entries(&mut input.wrenches, self.leaves.len(), (BodyId(0), Wrench::ZERO));
        for (i, (wrench, leaf)) in wrenches.iter_mut().zip(&self.leaves).enumerate() {
            let phase = 0.7 * i as f64;
            let along = 1.0 + 0.5 * (1.3 * t - 0.3 * phase).sin() + 0.3 * (3.1 * t + phase).sin();
            let up = 0.15 * (5.3 * t + 2.0 * phase).sin();
            let across = 0.3 * (2.1 * t - phase).sin() + 0.2 * (7.9 * t + 3.0 * phase).sin();
            *wrench = (*leaf, Wrench::new(DVec3::new(along, up, across) * strength, DVec3::ZERO));
        }
    }
}
