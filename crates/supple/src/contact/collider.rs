//! The shapes of a model, made ready for contacts.

use crate::model::{Body, Obstacle};

/// All shapes: those of bodies first, in order, then obstacles.
#[derive(Debug)]
pub(crate) struct Colliders;

impl Colliders {
    pub(crate) fn new(_bodies: &[Body], _obstacles: &[Obstacle]) -> Colliders {
        Colliders
    }
}
