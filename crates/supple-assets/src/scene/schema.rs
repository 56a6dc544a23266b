//! A scene file as it is written: TOML. The comments become the descriptions of its JSON schema.

use super::simulation::SimulationEdit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
    #[schemars(with = "BTreeMap<String, BoneChange>")]
    pub(crate) bones: BTreeMap<Spanned<String>, BoneChange>,
    /// Soft skin of bones, by name as in `bones`: bones that no entry fits have none. Entries add up in the order of names.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, SkinEdit>")]
    pub(crate) skin: BTreeMap<Spanned<String>, SkinEdit>,
    /// Soft skin of painted vertex groups: a custom attribute (`_BELLY`, or `belly`) or a channel of vertex colours (`COLOR_0.r`). What an entry does not tell is usual.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, SkinEdit>")]
    pub(crate) painted: BTreeMap<Spanned<String>, SkinEdit>,
    /// What the soft layer ends at, and how bones carry it.
    #[schemars(with = "Option<LayerEdit>")]
    pub(crate) layer: Option<Spanned<LayerEdit>>,
    /// The floor; under the lowest vertex unless told.
    #[schemars(with = "Option<FloorEdit>")]
    pub(crate) floor: Option<Spanned<FloorEdit>>,
    /// What stands around.
    #[serde(default)]
    pub(crate) obstacles: Vec<ObstacleEdit>,
    /// The pose at the start: by bone, a rotation vector from rest in degrees about the world's axes, carried along by the bones above.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, [f64; 3]>")]
    pub(crate) pose: BTreeMap<Spanned<String>, [f64; 3]>,
    /// A motion to be followed, where the file has no clip for it: poses at times, eased between.
    #[serde(default)]
    pub(crate) keyframes: Vec<KeyframeEdit>,
    /// Pushes, one after another or together.
    #[serde(default)]
    pub(crate) pushes: Vec<PushEdit>,
    /// Pulls at bones, as with the mouse.
    #[serde(default)]
    pub(crate) pulls: Vec<PullEdit>,
    /// When the hold of the roots lets go, in seconds.
    #[schemars(with = "Option<f64>")]
    pub(crate) release: Option<Spanned<f64>>,
    /// Changes of state, each at its time.
    #[serde(default)]
    pub(crate) states: Vec<StateEdit>,
    /// How blows are answered: a limb that is struck goes loose within a tenth of a second, and recovers.
    #[schemars(with = "Option<HitsEdit>")]
    pub(crate) hits: Option<Spanned<HitsEdit>>,
    /// Things put beside the character: balls, boxes and capsules that move, ramps, stairs and tables that stand.
    #[serde(default)]
    #[schemars(with = "Vec<crate::ThingTold>")]
    pub(crate) things: Vec<Spanned<crate::ThingTold>>,
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
    /// Of all bodies together, in kg; by the height or the volume unless told. Masses of bones come after it.
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub(crate) mass: Option<Spanned<f64>>,
    /// Metres in a unit of length of the file; found unless told.
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub(crate) scale: Option<Spanned<f64>>,
    /// From the lowest vertex to the highest, in metres, in place of `scale`.
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub(crate) height: Option<Spanned<f64>>,
    /// Multiplies every mass that no bone gives.
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub(crate) mass_scale: Option<Spanned<f64>>,
    /// A clip of the file to be followed; or a motion from elsewhere, beside this file: `walk.bvh`, or `other.glb#walk`.
    #[schemars(with = "Option<String>")]
    pub(crate) track: Option<Spanned<String>>,
}

/// A change of state.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateEdit {
    /// When, in seconds.
    #[schemars(with = "f64")]
    pub(crate) at: Spanned<f64>,
    /// `posed` in the pose it has, `start` as it was made, `follow` its clip, `loose` or `limp`.
    pub(crate) state: String,
    /// The bones that change, by name; `*` stands for any letters. All unless told.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(crate) bones: Vec<Spanned<String>>,
    /// How strongly it is posed or follows, from 0 to 1; 1 unless told.
    pub(crate) strength: Option<f64>,
    /// How long the change takes, in seconds; 0.1 to let go and 0.7 to carry unless told.
    pub(crate) blend: Option<f64>,
}

/// How blows are answered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HitsEdit {
    /// The impulse of another body's blow that counts, in N·s.
    pub(crate) impulse: f64,
    /// How long the strength takes to come back, in seconds; 0.8 unless told.
    pub(crate) recovery: Option<f64>,
}

/// What is changed of a bone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoneChange {
    /// Mass in kg.
    pub mass: Option<f64>,
    /// How far its joint gives way under the weight of all it carries, held level, in degrees.
    pub sag: Option<f64>,
    /// How long it takes to come to rest, in seconds.
    pub settle: Option<f64>,
    /// How strongly it follows a clip; 1 is the default.
    pub strength: Option<f64>,
    /// Its kind of joint.
    pub joint: Option<JointKind>,
    /// Axis of a hinge, in the world at rest.
    pub axis: Option<[f64; 3]>,
    /// Range of a hinge from rest, in degrees.
    pub range: Option<[f64; 2]>,
    /// Half angles of a ball's swing, sideways and bending, in degrees.
    pub swing: Option<[f64; 2]>,
    /// Range of a ball's twist, in degrees.
    pub twist: Option<[f64; 2]>,
    /// Makes its collision shapes so many times as wide across the bone, from 0.05 to 20.
    pub width: Option<f64>,
    /// The same along the bone.
    pub length: Option<f64>,
}

/// What the skin of bones or of a painted group is made of.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkinEdit {
    /// `false`: these bones have no flesh, their skin is fixed to them.
    pub(crate) soft: Option<bool>,
    /// Thickness of the soft layer in metres; 0.4 of half the way through the body unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) depth: Option<Spanned<f64>>,
    /// Young's modulus in Pa; 100,000 unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) stiffness: Option<Spanned<f64>>,
    /// Poisson's ratio, from 0 to below 0.4999; 0.4 unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) poisson: Option<Spanned<f64>>,
    /// Density in kg/m³; 1,000 unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) density: Option<Spanned<f64>>,
    /// Damping against the bones in 1/s; 10 unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) damping: Option<Spanned<f64>>,
    /// Multiplies the mass of the surface: more makes it wobble.
    #[schemars(with = "Option<f64>")]
    pub(crate) mass_scale: Option<Spanned<f64>>,
    /// Coefficient of friction; 0.5 unless told.
    #[schemars(with = "Option<f64>")]
    pub(crate) friction: Option<Spanned<f64>>,
}

/// The soft layer as a whole.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayerEdit {
    /// An inner surface that the layer ends at (.obj, .stl, .glb, .gltf), or tetrahedra with one (.msh, .veg, .vtk, .node, .ele); beside this file, in metres.
    #[schemars(with = "Option<String>")]
    pub(crate) inner: Option<Spanned<String>>,
    /// How bones carry the surface; centres unless told.
    pub(crate) map: Option<MapName>,
}

/// How bones carry the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MapName {
    /// By rotations about optimised centres: joints keep their volume.
    Centres,
    /// By the mean of where each bone would carry a vertex: joints collapse when bent far.
    Linear,
}

/// A pose at a time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyframeEdit {
    /// When, in seconds; later than the one before.
    #[schemars(with = "f64")]
    pub(crate) at: Spanned<f64>,
    /// How far the roots are from where they are at rest, in metres.
    #[serde(default)]
    pub(crate) shift: [f64; 3],
    /// By bone: a rotation vector from rest in degrees, as in `pose`; bones that are left out are as at rest.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, [f64; 3]>")]
    pub(crate) pose: BTreeMap<Spanned<String>, [f64; 3]>,
}

/// A kind of joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JointKind {
    /// About one axis.
    Hinge,
    /// About all three.
    Ball,
}

/// The floor: its height in metres, or none.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "the floor is its height in metres, or false")]
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
    #[schemars(with = "String")]
    pub(crate) name: Spanned<String>,
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
    /// Lever at which the normal force resists rolling, in metres; 0 unless told.
    pub(crate) rolling: Option<f64>,
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

/// A spring that pulls at a bone for a while.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PullEdit {
    /// The bone, pulled at its centre of mass.
    #[schemars(with = "String")]
    pub(crate) bone: Spanned<String>,
    /// When it begins, in seconds.
    pub(crate) from: f64,
    /// When it ends, in seconds.
    pub(crate) to: f64,
    /// Where it is pulled to, in metres.
    pub(crate) target: [f64; 3],
    /// In N/m; left out: one that lifts the whole character within 5 cm.
    pub(crate) stiffness: Option<f64>,
}
