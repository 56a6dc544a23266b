//! File formats of Supple: characters, robots, motion and meshes in; baked motion out. What is wrong in a file ends here, as a
//! [`FileError`] that names the place and the remedy; what was changed or left out is a [`Note`].

pub mod bvh;
mod character;
pub mod doctor;
mod error;
mod export_bvh;
pub mod export_mjcf;
mod fbx;
mod files;
mod gltf;
mod imported;
mod inner;
pub mod meshes;
pub mod mjcf;
pub mod motion;
mod open;
mod plant;
mod recipe;
mod recording;
pub mod retarget;
mod rig;
pub mod robot;
mod scene;
mod skeleton;
mod skin;
mod taken;
pub mod tetmesh;
mod things;
pub mod urdf;
mod usd;
mod xml;

pub use character::Character;
pub use error::{FileError, Note, plain};
pub use export_bvh::export as export_bvh;
pub use files::{Files, InputFile};
pub use gltf::{
    BakeSettings, Baked, Look, Looks, MaterialLook, Opacity, RootMotion, SpringChain, SpringCollider, SpringJoint,
    Springs, Wrap, bake_scene,
};
pub use imported::{Carried, DrawnMesh, Group, Imported, Link, NoClip};
pub use inner::Inner;
pub use open::{CHARACTER_ENDINGS, open};
pub use recipe::{
    ChangedBone, Changes, Digest, MOST_MENDED, MOST_MOTIONS, Made, Recipe, SENT, TakesFrom, is_file, split_clip,
};
pub use recording::{Quality, Recording};
pub use rig::{
    Bone, BoneShape, BoneTold, Class, Given, JointFrom, Kind, Measured, Rig, RigOptions, Spread, SpringFrom, Swing,
    Tearing, Turn,
};
pub use scene::{BoneChange, JointKind, fits as name_fits, scene_schema};
pub use skin::SkinPlan;
pub use taken::{Source, Taken};
pub use things::{Cast, HeldTold, Player, ThingTold, furnished};
pub use usd::Usda;
