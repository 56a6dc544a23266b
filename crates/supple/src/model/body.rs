//! A rigid body of the model.

use super::{Groups, Material, Shape};
use crate::maths::Pose;
use glam::{DMat3, DVec3};

/// A rigid body. Body coordinates have their origin in the centre of mass and the axes of the link.
#[derive(Clone, Debug)]
pub struct Body {
    /// Unique among the bodies.
    pub name: String,
    /// \[kg\]
    pub mass: f64,
    /// About the centre of mass, in body axes \[kg·m²\].
    pub inertia: DMat3,
    /// The centre of mass in link coordinates \[m\]: link point = body point + this.
    pub centre_in_link: DVec3,
    /// Shapes in body coordinates, for pictures and contacts.
    pub shapes: Vec<PlacedShape>,
    /// How its surface rubs and bounces.
    pub material: Material,
    /// What it touches.
    pub groups: Groups,
    /// Pose of the centre of mass at the start.
    pub start: Pose,
}

/// A shape and its place on a body.
#[derive(Clone, Debug)]
pub struct PlacedShape {
    /// The shape.
    pub shape: Shape,
    /// Its frame in body coordinates.
    pub body_from_shape: Pose,
}
