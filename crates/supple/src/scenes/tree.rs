//! The trees of [Bender 2006, §5]: bodies of equal density between 1 m and 11.4 m long on ball joints.
//!
//! The paper does not give the layout. Here the bars hang like a mobile: each is level, held at the middle of its upper
//! face, and carries its children below its two ends, the bars of one level across those of the next. So the tree is
//! balanced at the start, and a torque about the vertical on the top bar carries the whole round with it although no
//! ball joint passes a torque on.

use super::{Parameters, Scene, SceneError, Script, entries};
use crate::input::Input;
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, BodyRef, BodySpec, JointMask, JointSpec, ModelBuilder, Shape};
use glam::{DQuat, DVec3};
use std::f64::consts::TAU;

const RATIO: f64 = 1.5; // of the lengths of parent and child
const SLENDERNESS: f64 = 10.0; // length over width
const DENSITY: f64 = 1000.0; // kg/m³
const SPEED: f64 = 0.5; // rad/s, reached by the top bar at the end of the torque
const SECONDS: f64 = 4.0; // that the torque lasts

/// A bar: where it hangs and how.
#[derive(Clone, Copy)]
struct Bar {
    length: f64,
    /// Of its upper face \[m\].
    middle: DVec3,
    /// Whether it lies along Z, not X.
    across: bool,
    /// Index of the bar it hangs on.
    parent: Option<usize>,
}

impl Bar {
    fn width(&self) -> f64 {
        self.length / SLENDERNESS
    }

    fn mass(&self) -> f64 {
        DENSITY * self.length * self.width().powi(2)
    }

    /// The place on the lower face at this distance from the middle.
    fn below(&self, along: f64) -> DVec3 {
        let direction = if self.across { DVec3::Z } else { DVec3::X };
        self.middle + direction * along - DVec3::Y * self.width()
    }
}

/// The number of levels of a tree of `size()` bodies.
fn levels(parameters: &Parameters<'_>) -> Result<u32, SceneError> {
    let size = parameters.size()?;
    let levels = (size + 1).ilog2();
    if size + 1 == 1 << levels {
        return Ok(levels);
    }
    let (below, above) = ((1usize << levels) - 1, (2usize << levels) - 1);
    Err(parameters.wrong_size(format!("{size} bodies do not fill a binary tree, give {below} or {above}")))
}

/// Length of a bar on this level, the top being level 0 \[m\].
fn length(levels: u32, level: u32) -> f64 {
    RATIO.powi((levels - 1 - level) as i32)
}

/// Every bar carries two.
pub(super) fn tree(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let levels = levels(parameters)?;
    let mut bars = vec![Bar { length: length(levels, 0), middle: DVec3::ZERO, across: false, parent: None }];
    for i in 1..(1usize << levels) - 1 {
        let level = (i + 1).ilog2();
        let parent = (i - 1) / 2;
        let (holder, bar_length) = (bars[parent], length(levels, level));
        let side = if i % 2 == 1 { 0.5 } else { -0.5 };
        let middle = holder.below(side * holder.length);
        bars.push(Bar { length: bar_length, middle, across: !holder.across, parent: Some(parent) });
    }
    hang(&bars)
}

/// The same bars, all below the top one: in equal pairs, the longest outside.
pub(super) fn star(parameters: &Parameters<'_>) -> Result<Scene, SceneError> {
    let levels = levels(parameters)?;
    let top = Bar { length: length(levels, 0), middle: DVec3::ZERO, across: false, parent: None };
    let mut bars = vec![top];
    let pairs = (1usize << (levels - 1)) - 1;
    for i in 1..=2 * pairs {
        let rank = (i - 1) / 2; // of the pair
        let side = if i % 2 == 1 { 0.5 } else { -0.5 };
        let middle = top.below(side * top.length * (1.0 - rank as f64 / pairs as f64));
        bars.push(Bar { length: length(levels, (i + 1).ilog2()), middle, across: true, parent: Some(0) });
    }
    hang(&bars)
}

/// Builds the bars. The top one resists the torque by its own inertia and by all that hangs on it, each subtree as a
/// mass at its joint: on balls nothing need turn with it.
fn hang(bars: &[Bar]) -> Result<Scene, SceneError> {
    let mut builder = ModelBuilder::new();
    let mut carried: Vec<f64> = bars.iter().map(Bar::mass).collect(); // mass of each subtree
    for (i, bar) in bars.iter().enumerate().rev() {
        if let Some(parent) = bar.parent {
            carried[parent] += carried[i];
        }
    }
    let top = &bars[0];
    let mut inertia = top.mass() * (top.length.powi(2) + top.width().powi(2)) / 12.0;
    for (i, bar) in bars.iter().enumerate() {
        if bar.parent == Some(0) {
            inertia += carried[i] * (bar.middle.x.powi(2) + bar.middle.z.powi(2));
        }
        let rotation = if bar.across { DQuat::from_rotation_y(-std::f64::consts::FRAC_PI_2) } else { DQuat::IDENTITY };
        let body = builder.body(
            BodySpec::new(format!("bar_{i}"))
                .shape(Shape::cuboid(bar.length, bar.width(), bar.width()), DENSITY)
                .pose(Pose::new(rotation, bar.middle - DVec3::Y * (0.5 * bar.width()))),
        );
        let parent = bar.parent.map_or(BodyRef::World, |p| BodyId(p as u32).into());
        builder.joint(JointSpec::new(format!("joint_{i}"), JointMask::BALL, body, parent).at(bar.middle));
    }
    let torque = DVec3::Y * (inertia * SPEED / SECONDS);
    Ok(Scene::new(builder.build()?, Script::Spin(Spin { body: BodyId(0), torque })))
}

/// A torque that swells and fades during the first seconds: `τ (1 − cos 2πt/T)`.
#[derive(Clone, Debug)]
pub(super) struct Spin {
    body: BodyId,
    torque: DVec3,
}

impl Spin {
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        // The mean over the step, so that the impulse does not depend on dt:  ∫ = t − (T/2π) sin 2πt/T
        let given = |t: f64| {
            let t = t.clamp(0.0, SECONDS);
            t - SECONDS / TAU * (TAU * t / SECONDS).sin()
        };
        let share = (given(time + input.dt) - given(time)) / input.dt;
        let torque = self.torque * if share.is_nan() { 0.0 } else { share };
        let rest = (self.body, Wrench::ZERO);
        entries(&mut input.wrenches, 1, rest)[0] = (self.body, Wrench::new(DVec3::ZERO, torque));
    }
}
