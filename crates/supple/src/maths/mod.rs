//! Rotations, poses, spatial vectors, small blocks, vector lanes.

pub mod block;
pub(crate) mod fnv;
pub mod lanes;
pub mod points;
pub mod pose;
pub mod rotation;
pub mod singular;
pub mod small;
pub mod sparse;
pub mod spatial;

pub use pose::Pose;
pub use spatial::{Twist, Wrench};
