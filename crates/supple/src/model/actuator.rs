//! Motors and servos: an implicit proportional–derivative law on the free directions of a joint, clamped.

use glam::DQuat;

/// A motor: pulls the joint to [`ServoTarget`] with `−kp (x − target) − kd (ẋ − rate)`, plus a given torque,
/// clamped to `max`; with an integral gain also `+ ki ∫ (target − x) dt`, which takes away the error that a lasting load leaves. On a hinge `x` is the angle; on a slider the position along X; on a ball the rotation
/// vector from the target. The law is implicit while it is within the clamp; a clamped motor is a constant torque
/// without stiffness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motor {
    /// kp \[N·m/rad, or N/m on a slider\]
    pub stiffness: f64,
    /// kd \[N·m·s/rad, or N·s/m\]
    pub damping: f64,
    /// Largest torque, or force on a slider \[N·m or N\].
    pub max: f64,
    /// ki \[N·m/(rad·s), or N/(m·s)\], on the position of a hinge or slider; 0: no integral is kept. The integral advances at the end of each part of a
    /// step while the servo has a position to go to, stays within `|ki ∫| ≤ max`, and is kept in [`JointState::integral`](super::JointState::integral).
    pub integral: f64,
}

/// What a motor aims at in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServoTarget {
    /// Angle of a hinge \[rad\] or position of a slider \[m\], and the rate it should have there.
    Position {
        /// \[rad or m\]
        position: f64,
        /// \[rad/s or m/s\]
        rate: f64,
    },
    /// Rotation of a ball's child frame in the parent's.
    Rotation(DQuat),
    /// A rate alone: `kp` does not act.
    Rate(f64),
}

impl ServoTarget {
    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        match self {
            ServoTarget::Position { position, rate } => position.is_finite() && rate.is_finite(),
            ServoTarget::Rotation(q) => q.is_finite() && (q.length() - 1.0).abs() < 1e-3,
            ServoTarget::Rate(rate) => rate.is_finite(),
        }
    }
}
