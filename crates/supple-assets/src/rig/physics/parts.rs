//! `KHR_physics_rigid_bodies` and `KHR_implicit_shapes` as they stand in the JSON.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use supple::Range;

/// A limit narrower than this is none: the direction is held \[m, rad\].
const CLOSED: f64 = 1e-9;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RootPart {
    pub(super) physics_materials: Vec<SurfacePart>,
    pub(super) collision_filters: Vec<FilterPart>,
    pub(super) physics_joints: Vec<JointPart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SurfacePart {
    pub(super) static_friction: Option<f64>,
    pub(super) dynamic_friction: Option<f64>,
    pub(super) restitution: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FilterPart {
    pub(super) collision_systems: BTreeSet<String>,
    pub(super) not_collide_with_systems: Option<BTreeSet<String>>,
    pub(super) collide_with_systems: Option<BTreeSet<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JointPart {
    pub(super) limits: Vec<LimitPart>,
    pub(super) drives: Vec<DrivePart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LimitPart {
    pub(super) linear_axes: Vec<usize>,
    pub(super) angular_axes: Vec<usize>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) stiffness: Option<f64>,
    pub(super) damping: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DrivePart {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) mode: String,
    pub(super) axis: usize,
    pub(super) max_force: Option<f64>,
    pub(super) position_target: f64,
    pub(super) velocity_target: f64,
    pub(super) stiffness: f64,
    pub(super) damping: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodePart {
    pub(super) motion: Option<MotionPart>,
    pub(super) collider: Option<ColliderPart>,
    pub(super) joint: Option<JointUse>,
    pub(super) trigger: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MotionPart {
    pub(super) is_kinematic: bool,
    pub(super) mass: Option<f64>,
    pub(super) center_of_mass: Option<[f64; 3]>,
    pub(super) inertia_diagonal: Option<[f64; 3]>,
    pub(super) inertia_orientation: Option<[f64; 4]>,
    pub(super) linear_velocity: [f64; 3],
    pub(super) angular_velocity: [f64; 3],
    pub(super) gravity_factor: Option<f64>,
}

/// The geometry stands in an object of its own; in older files beside the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ColliderPart {
    pub(super) geometry: GeometryPart,
    pub(super) shape: Option<usize>,
    pub(super) physics_material: Option<usize>,
    pub(super) collision_filter: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GeometryPart {
    pub(super) shape: Option<usize>,
    pub(super) node: Option<usize>,
    pub(super) mesh: Option<usize>,
    pub(super) convex_hull: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JointUse {
    pub(super) connected_node: usize,
    pub(super) joint: usize,
    #[serde(default)]
    pub(super) enable_collision: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ShapeList {
    pub(super) shapes: Vec<ShapePart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ShapePart {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(rename = "box")]
    pub(super) cuboid: Option<Cuboid>,
    pub(super) sphere: Option<Round>,
    pub(super) capsule: Option<Round>,
    pub(super) cylinder: Option<Round>,
    pub(super) mesh: Option<MeshRef>,
    pub(super) extensions: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cuboid {
    #[serde(default = "unit")]
    pub(super) size: [f64; 3],
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Round {
    pub(super) radius: Option<f64>,
    pub(super) height: Option<f64>,
    pub(super) radius_top: Option<f64>,
    pub(super) radius_bottom: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MeshRef {
    pub(super) mesh: usize,
}

pub(super) fn unit() -> [f64; 3] {
    [1.0; 3]
}

impl LimitPart {
    pub(super) fn range(&self) -> Range {
        Range::new(self.min.unwrap_or(f64::NEG_INFINITY), self.max.unwrap_or(f64::INFINITY))
    }

    /// Whether nothing gives beyond it.
    pub(super) fn is_hard(&self) -> bool {
        self.stiffness.is_none_or(|k| !(k.is_finite() && k > 0.0))
    }

    /// Whether it leaves no room. Of two and three axes, ranges are distances: none below 0.
    pub(super) fn closed(&self) -> bool {
        let Range { min, max } = self.range();
        let distance = self.linear_axes.len().max(self.angular_axes.len()) > 1;
        if distance { max <= CLOSED } else { max - min <= CLOSED }
    }
}
