//! A scene file as it is written: TOML. The comments become the descriptions of its JSON schema.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A character with what is changed of its rig, what stands around it and what happens to it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SceneFile {
    /// The character.
    pub(crate) character: CharacterEdit,
    /// Changes of bones, by name; `*` stands for any letters, `?` for one. Later entries in the order of names win.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BoneEdit>")]
    pub(crate) bones: BTreeMap<Spanned<String>, BoneEdit>,
    /// The floor; under the lowest vertex unless told.
    pub(crate) floor: Option<FloorEdit>,
    /// What stands around.
    #[serde(default)]
    pub(crate) obstacles: Vec<ObstacleEdit>,
    /// The pose at the start: by bone, a rotation vector from rest in degrees about the world's axes, carried along by the bones above.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, [f64; 3]>")]
    pub(crate) pose: BTreeMap<Spanned<String>, [f64; 3]>,
    /// Pushes, one after another or together.
    #[serde(default)]
    pub(crate) pushes: Vec<PushEdit>,
    /// How it is simulated.
    #[serde(default)]
    pub(crate) simulation: SimulationEdit,
}

/// Where the character comes from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CharacterEdit {
    /// A .glb or .gltf file, beside this one.
    #[schemars(with = "String")]
    pub(crate) file: Spanned<String>,
    /// Multiplies every mass that no bone gives.
    #[schemars(range(min = 0.0))]
    pub(crate) mass_scale: Option<f64>,
    /// A clip of the file to be followed.
    #[schemars(with = "Option<String>")]
    pub(crate) track: Option<Spanned<String>>,
}

/// What is changed of a bone.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoneEdit {
    /// Mass in kg.
    pub(crate) mass: Option<f64>,
    /// How far its joint gives way under the weight of all it carries, held level, in degrees.
    pub(crate) sag: Option<f64>,
    /// How long it takes to come to rest, in seconds.
    pub(crate) settle: Option<f64>,
    /// How strongly it follows a clip; 1 is the default.
    pub(crate) strength: Option<f64>,
    /// Its kind of joint.
    pub(crate) joint: Option<JointKind>,
    /// Axis of a hinge, in the world at rest.
    pub(crate) axis: Option<[f64; 3]>,
    /// Range of a hinge from rest, in degrees.
    pub(crate) range: Option<[f64; 2]>,
    /// Half angles of a ball's swing, sideways and bending, in degrees.
    pub(crate) swing: Option<[f64; 2]>,
    /// Range of a ball's twist, in degrees.
    pub(crate) twist: Option<[f64; 2]>,
}

/// A kind of joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JointKind {
    /// About one axis.
    Hinge,
    /// About all three.
    Ball,
}

/// The floor: its height in metres, or none.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum FloorEdit {
    /// Its height in metres.
    Height(f64),
    /// `false`: there is none.
    Present(bool),
}

/// Something that stands around.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObstacleEdit {
    /// Its own name.
    pub(crate) name: String,
    /// A box of these edges in metres.
    #[serde(rename = "box")]
    pub(crate) cuboid: Option<[f64; 3]>,
    /// A ball of this radius in metres.
    pub(crate) sphere: Option<f64>,
    /// A capsule along its X: length without the ends, and radius, in metres.
    pub(crate) capsule: Option<[f64; 2]>,
    /// Where its middle is, in metres.
    #[serde(default)]
    pub(crate) position: [f64; 3],
    /// How it is turned: a rotation vector in degrees.
    #[serde(default)]
    pub(crate) rotation: [f64; 3],
    /// Friction; 0.6 unless told.
    pub(crate) friction: Option<f64>,
}

/// A force that acts on a bone for a while.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushEdit {
    /// The bone.
    #[schemars(with = "String")]
    pub(crate) bone: Spanned<String>,
    /// When it begins, in seconds.
    pub(crate) from: f64,
    /// When it ends, in seconds.
    pub(crate) to: f64,
    /// In newtons, along the world's axes, at the bone's centre of mass.
    pub(crate) force: [f64; 3],
}

/// How a scene is simulated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulationEdit {
    /// Length of a step in seconds; 1/60 unless told.
    pub(crate) dt: Option<f64>,
    /// Parts of a step.
    pub(crate) substeps: Option<u32>,
    /// In m/s².
    pub(crate) gravity: Option<[f64; 3]>,
    /// `true`: the root is held by a spring until it is released.
    pub(crate) hold: Option<bool>,
}
