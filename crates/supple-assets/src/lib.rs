//! File formats of Supple: characters, robots, motion and meshes in; baked motion out. What is wrong in a file ends here, as a
//! [`FileError`] that names the place and the remedy; what was changed or left out is a [`Note`].

mod error;
pub mod tetmesh;

pub use error::{FileError, Note};
