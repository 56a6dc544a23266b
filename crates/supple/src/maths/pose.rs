//! A rotation and a translation: where a frame lies in another.

use glam::{DQuat, DVec3};

/// The place of one frame in another: `p_outer = rotation · p_inner + translation`.
///
/// ```
/// use glam::{DQuat, DVec3};
/// use supple::Pose;
/// let world_from_body = Pose::new(DQuat::from_rotation_z(0.5), DVec3::new(1.0, 2.0, 3.0));
/// let p = DVec3::new(0.1, 0.2, 0.3);
/// let back = world_from_body.inverse().transform_point(world_from_body.transform_point(p));
/// assert!((back - p).length() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Unit quaternion, inner axes to outer axes.
    pub rotation: DQuat,
    /// Origin of the inner frame in the outer one \[m\].
    pub translation: DVec3,
}

impl Default for Pose {
    fn default() -> Self {
        Pose::IDENTITY
    }
}

impl Pose {
    /// The two frames coincide.
    pub const IDENTITY: Pose = Pose { rotation: DQuat::IDENTITY, translation: DVec3::ZERO };

    /// A pose from its parts.
    pub fn new(rotation: DQuat, translation: DVec3) -> Pose {
        Pose { rotation, translation }
    }

    /// A pure translation.
    pub fn at(translation: DVec3) -> Pose {
        Pose { rotation: DQuat::IDENTITY, translation }
    }

    /// Coordinates of a point, inner to outer.
    pub fn transform_point(&self, point: DVec3) -> DVec3 {
        self.rotation * point + self.translation
    }

    /// The outer frame seen from the inner one.
    pub fn inverse(&self) -> Pose {
        let rotation = self.rotation.conjugate();
        Pose { rotation, translation: -(rotation * self.translation) }
    }

    /// `world_from_body.then(body_from_joint) = world_from_joint`.
    pub fn then(&self, inner: Pose) -> Pose {
        Pose { rotation: self.rotation * inner.rotation, translation: self.transform_point(inner.translation) }
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.rotation.is_finite() && self.translation.is_finite()
    }
}
