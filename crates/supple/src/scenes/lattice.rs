//! A lattice of bars that is dragged by a corner, of the size of [Faure 1998, Fig. 5]: 56 solids, 261 scalar constraints.
//!
//! Four by four cells, each with a diagonal: 40 + 16 bars between 25 nodes. Where k bars meet, k − 1 ball joints hold them together:
//! 2 · 56 − 25 = 87 joints of three rows. The sheet cannot shear but folds; every cell closes two loops.

use super::{Parameters, Scene, SceneError, Script, by_assembly, entries};
use crate::input::{Grip, Input};
use crate::maths::Pose;
use crate::model::{BodyId, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use crate::solver::assembly::Scheme;
use crate::solver::{Assembly, Solver};
use glam::{DQuat, DVec3};

const CELLS: usize = 4;
const CELL: f64 = 0.25; // m
const RADIUS: f64 = 0.012; // m
const DENSITY: f64 = 700.0; // kg/m³, wood

/// The sheet, upright in the plane of X and Y, its lower left corner in the origin. It is posed, not thrown about: nothing falls.
pub(super) fn lattice(_: &Parameters<'_>) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    let place = |[i, k]: [usize; 2]| DVec3::new(i as f64, k as f64, 0.0) * CELL;
    // The bar that came first to each node, and where on it the node is.
    let mut first: Vec<Option<(BodyId, DVec3)>> = vec![None; (CELLS + 1) * (CELLS + 1)];
    let mut bar = |from: [usize; 2], to: [usize; 2]| {
        let (a, b) = (place(from), place(to));
        let length = a.distance(b);
        let pose = Pose::new(DQuat::from_rotation_arc(DVec3::X, (b - a) / length), 0.5 * (a + b));
        let name = format!("bar_{}{}_{}{}", from[0], from[1], to[0], to[1]);
        let body = builder.body(BodySpec::new(&name).shape(Shape::cylinder(length, RADIUS), DENSITY).pose(pose));
        for ([i, k], end) in [(from, -0.5 * length), (to, 0.5 * length)] {
            let end = DVec3::X * end;
            match &mut first[i * (CELLS + 1) + k] {
                none @ None => *none = Some((body, end)),
                Some((other, at)) => {
                    let joint = JointSpec::new(format!("node_{i}{k}_{name}"), JointMask::BALL, body, *other);
                    builder.joint(joint.frames(Pose::at(end), Pose::at(*at)));
                }
            }
        }
        body
    };
    let mut corners = [None; 2];
    for i in 0..=CELLS {
        for k in 0..=CELLS {
            if i < CELLS {
                let body = bar([i, k], [i + 1, k]);
                corners[0].get_or_insert(body);
                if k == CELLS {
                    corners[1] = Some(body); // the last one ends in the far corner
                }
            }
            if k < CELLS {
                bar([i, k], [i, k + 1]);
            }
            if i < CELLS && k < CELLS {
                bar([i, k], [i + 1, k + 1]);
            }
        }
    }
    let [Some(held), Some(led)] = corners else { unreachable!("a lattice has corners") };
    let drag = Drag { held, led, from: place([CELLS, CELLS]) };
    let mut scene = by_assembly(Scene::new(builder.build()?, Script::Lead(drag)));
    scene.input.solver = Solver::Assembly(Assembly { scheme: Scheme::Posing, ..Assembly::default() });
    Ok(scene)
}

/// One corner is held, the one across is led towards it and out of the plane, then kept still: two seconds of motion, rest after.
#[derive(Clone, Debug)]
pub(super) struct Drag {
    held: BodyId,
    led: BodyId,
    from: DVec3,
}

impl Drag {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        const WAY: DVec3 = DVec3::new(-0.45, -0.2, 0.5); // m
        let t = (0.5 * (time + input.dt)).clamp(0.0, 1.0);
        let share = t * t * (3.0 - 2.0 * t);
        let grip = |body, point, target| Grip { body, point, target, rotation: None };
        let end = DVec3::X * (0.5 * CELL);
        let grips = entries(&mut input.grips, 2, grip(self.held, DVec3::ZERO, DVec3::ZERO));
        grips[0] = grip(self.held, -end, DVec3::ZERO);
        grips[1] = grip(self.led, end, self.from + WAY * share);
    }
}
