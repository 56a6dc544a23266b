//! Springs and dampers: of joints, between anchors, and to a tracked pose.

use super::BodyId;
use glam::{DQuat, DVec3};

/// Spring and damper on the free rotations of a joint: torque on the child `−k φ − c ω_rel`, with `φ` the rotation
/// vector from rest (about a hinge: the unwrapped angle from rest).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotationSpring {
    /// \[N·m/rad\]
    pub stiffness: f64,
    /// \[N·m·s/rad\]
    pub damping: f64,
    /// Rotation of the child's joint frame in the parent's at which the spring is slack.
    pub rest: DQuat,
    /// Further turns of rest about a hinge's axis \[rad\], added to the angle of `rest`.
    pub rest_turns: f64,
}

impl Default for RotationSpring {
    fn default() -> Self {
        RotationSpring { stiffness: 0.0, damping: 0.0, rest: DQuat::IDENTITY, rest_turns: 0.0 }
    }
}

/// Spring and damper on the free translations of a joint: force on the child `−k (s − rest) − c ṡ` along each free
/// axis of the parent's joint frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlideSpring {
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
    /// Position along the joint axes at which the spring is slack \[m\].
    pub rest: DVec3,
}

/// A spring between a point of one body and a point of another, or of the world.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchorSpring {
    /// Unique among the anchor springs.
    pub name: String,
    /// Side a.
    pub a: BodyId,
    /// The point in a's body coordinates \[m\].
    pub point_in_a: DVec3,
    /// Side b; `None` is the world.
    pub b: Option<BodyId>,
    /// The point in b's body coordinates, or in the world \[m\].
    pub point_in_b: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// Damping of the points' relative velocity, in every direction \[N·s/m\].
    pub damping: f64,
    /// Length at which the spring is slack \[m\].
    pub rest_length: f64,
}

/// A spring that pulls a body to a moving target pose, given by [`Input::targets`](crate::Input::targets): how a
/// captured hand drives a simulated one. It rests while its target is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracker {
    /// Unique among the trackers.
    pub name: String,
    /// The body that is pulled.
    pub body: BodyId,
    /// The point of the body that follows the target's origin, in body coordinates \[m\].
    pub point: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
    /// \[N·m/rad\]
    pub rotation_stiffness: f64,
    /// \[N·m·s/rad\]
    pub rotation_damping: f64,
}

impl Tracker {
    /// Stiffness and damping of the pull, then of the turning, at a strength: `s k` and `√s c`.
    pub fn at_strength(&self, strength: f64) -> [f64; 4] {
        let root = strength.sqrt();
        [
            strength * self.stiffness,
            root * self.damping,
            strength * self.rotation_stiffness,
            root * self.rotation_damping,
        ]
    }
}
