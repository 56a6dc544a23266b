//! glTF 2.0: nodes, skins, meshes and clips in; baked motion out.

mod accessor;
mod animation;
mod bake;
mod bake_skin;
mod compression;
pub(crate) mod container;
mod document;
mod look;
mod mesh;
mod nodes;
mod physics;
pub(crate) mod schema;
mod soft;
mod solids;
mod vrm;
mod vrma;

pub(crate) use accessor::Reader;
pub(crate) use animation::Clip;
pub use bake::{BakeSettings, Baked, RootMotion, bake_scene};
pub(crate) use bake::{Bounds, push, push_floats, push_indices, push_view};
pub(crate) use document::{Document, rigid};
pub use look::{Look, Looks, MaterialLook, Opacity, Wrap};
pub(crate) use mesh::{Influence, SkinnedMesh};
pub(crate) use nodes::{NodePlaces, steps as node_steps};
pub use vrm::{SpringChain, SpringCollider, SpringJoint, Springs};

/// Extensions that a file may require: those that Supple reads, and those that only change how a surface looks.
pub(crate) const UNDERSTOOD: [&str; 18] = [
    "KHR_physics_rigid_bodies",
    "KHR_implicit_shapes",
    compression::DRACO,
    compression::MESHOPT,
    "KHR_mesh_quantization",
    "KHR_texture_transform",
    "KHR_texture_basisu",
    "EXT_texture_webp",
    "KHR_lights_punctual",
    "KHR_materials_unlit",
    "KHR_materials_clearcoat",
    "KHR_materials_emissive_strength",
    "KHR_materials_ior",
    "KHR_materials_pbrSpecularGlossiness",
    "KHR_materials_sheen",
    "KHR_materials_specular",
    "KHR_materials_transmission",
    "KHR_materials_volume",
];
