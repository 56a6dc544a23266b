//! Collision shapes of bones, made wider or longer.

use super::BoneChange;
use crate::rig::BoneShape;
use glam::{DMat3, DVec3};
use std::collections::BTreeMap;
use supple::Shape;

/// By bone: how many times as wide and as long as they were found its shapes are.
pub(crate) type Shaped = BTreeMap<String, [f64; 2]>;

/// Notes what a change does to the shapes of a bone.
pub(crate) fn note(shaped: &mut Shaped, bone: &str, change: &BoneChange) {
    if change.width.is_some() || change.length.is_some() {
        let [wide, long] = shaped.entry(bone.to_owned()).or_insert([1.0; 2]);
        *wide *= change.width.unwrap_or(1.0);
        *long *= change.length.unwrap_or(1.0);
    }
}

/// Makes shapes so many times as wide across the bone and as long along it, about the middle of them all: `x → c + A (x − c)`, `A = w + (l − w) d dᵀ`.
pub(super) fn stretch(shapes: &mut [BoneShape], width: f64, length: f64) {
    let (centre, way) = axis(shapes);
    let along = DMat3::from_cols(way * way.x, way * way.y, way * way.z);
    let change = DMat3::from_diagonal(DVec3::splat(width)) + along * (length - width);
    for BoneShape { shape, link_from_shape: place } in shapes {
        // in the frame of the shape, whose own turn stays
        let turn = DMat3::from_quat(place.rotation);
        let own = turn.transpose() * change * turn;
        place.translation = centre + change * (place.translation - centre);
        // A shape that has axes of its own takes what lies along them.
        let factor = |axis: DVec3| (own * axis).length();
        match shape {
            Shape::Sphere { radius } => *shape = capsule((0.0, *radius), factor(DVec3::X), width),
            Shape::Capsule { length, radius } => {
                *shape = capsule((*length, *radius), factor(DVec3::X), 0.5 * (factor(DVec3::Y) + factor(DVec3::Z)));
            }
            Shape::Cylinder { length, radius } => {
                *length *= factor(DVec3::X);
                *radius *= 0.5 * (factor(DVec3::Y) + factor(DVec3::Z));
            }
            Shape::Cuboid { size } => *size *= DVec3::new(factor(DVec3::X), factor(DVec3::Y), factor(DVec3::Z)),
            Shape::Hull { points } | Shape::Mesh { vertices: points, .. } => {
                points.iter_mut().for_each(|point| *point = own * *point);
            }
        }
    }
}

/// A capsule made so many times as long as it is from end to end, caps included, and as wide.
fn capsule((length, radius): (f64, f64), long: f64, wide: f64) -> Shape {
    let whole = (length + 2.0 * radius) * long;
    let radius = radius * wide;
    Shape::Capsule { length: (whole - 2.0 * radius).max(0.0), radius }
}

/// The middle of shapes, and the way that they are longest.
fn axis(shapes: &[BoneShape]) -> (DVec3, DVec3) {
    let corners: Vec<DVec3> = shapes.iter().flat_map(reach).collect();
    let (low, high) = corners.iter().fold((DVec3::MAX, DVec3::MIN), |(low, high), p| (low.min(*p), high.max(*p)));
    let centre = if corners.is_empty() { DVec3::ZERO } else { 0.5 * (low + high) };
    let far = corners.iter().map(|p| *p - centre).max_by(|a, b| a.length().total_cmp(&b.length()));
    // Of one shape its own longest axis; of many the way to the farthest point.
    let way = match shapes {
        [BoneShape { shape: Shape::Capsule { .. } | Shape::Cylinder { .. }, link_from_shape }] => {
            link_from_shape.rotation * DVec3::X
        }
        [BoneShape { shape: Shape::Cuboid { size }, link_from_shape }] => {
            let longest = (0..3).max_by(|a, b| size[*a].total_cmp(&size[*b])).unwrap_or(0);
            link_from_shape.rotation * DVec3::AXES[longest]
        }
        _ => far.unwrap_or(DVec3::X),
    };
    (centre, way.try_normalize().unwrap_or(DVec3::X))
}

/// Points of a shape, in the frame of its bone, that tell how far it reaches.
fn reach(BoneShape { shape, link_from_shape: place }: &BoneShape) -> Vec<DVec3> {
    let ends = |x: f64, r: f64| {
        DVec3::AXES.into_iter().flat_map(move |a| [-1.0, 1.0].map(|s| a * s * if a.x != 0.0 { x } else { r }))
    };
    let own: Vec<DVec3> = match shape {
        Shape::Sphere { radius } => ends(*radius, *radius).collect(),
        Shape::Capsule { length, radius } => ends(0.5 * length + radius, *radius).collect(),
        Shape::Cylinder { length, radius } => ends(0.5 * length, *radius).collect(),
        Shape::Cuboid { size } => DVec3::AXES.into_iter().flat_map(|a| [-0.5, 0.5].map(|s| a * *size * s)).collect(),
        Shape::Hull { points } | Shape::Mesh { vertices: points, .. } => points.clone(),
    };
    own.into_iter().map(|point| place.transform_point(point)).collect()
}
