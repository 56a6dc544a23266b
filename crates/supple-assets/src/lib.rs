//! File formats of Supple: characters, robots, motion and meshes in; baked motion out. What is wrong in a file ends here, as a
//! [`FileError`] that names the place and the remedy; what was changed or left out is a [`Note`].

mod character;
mod error;
mod gltf;
mod imported;
mod open;
mod recording;
mod rig;

pub use character::Character;
pub use error::{FileError, Note};
pub use gltf::{BakeSettings, Baked, bake_scene};
pub use imported::{Carried, DrawnMesh, Imported, Link};
pub use open::open;
pub use recording::{Quality, Recording};
pub use rig::{Bone, Class, JointFrom, Rig, Turn};
