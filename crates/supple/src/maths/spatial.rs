//! Velocity of a body and force on it, with named parts so that no signature depends on an order.

use glam::DVec3;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

/// Velocity of a body, world axes, linear part that of the centre of mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// \[m/s\]
    pub linear: DVec3,
    /// \[rad/s\]
    pub angular: DVec3,
}

/// Force and torque on a body, world axes, torque about the centre of mass. Also used for impulses \[N·s, N·m·s\].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wrench {
    /// \[N\]
    pub force: DVec3,
    /// \[N·m\]
    pub torque: DVec3,
}

impl Twist {
    /// At rest.
    pub const ZERO: Twist = Twist { linear: DVec3::ZERO, angular: DVec3::ZERO };

    /// A twist from its parts.
    pub fn new(linear: DVec3, angular: DVec3) -> Twist {
        Twist { linear, angular }
    }

    /// Velocity of the point at `lever` from the centre of mass \[m/s\].
    pub fn at(&self, lever: DVec3) -> DVec3 {
        self.linear + self.angular.cross(lever)
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.linear.is_finite() && self.angular.is_finite()
    }
}

impl Wrench {
    /// No force, no torque.
    pub const ZERO: Wrench = Wrench { force: DVec3::ZERO, torque: DVec3::ZERO };

    /// A wrench from its parts.
    pub fn new(force: DVec3, torque: DVec3) -> Wrench {
        Wrench { force, torque }
    }

    /// The wrench of `force` acting at `lever` from the centre of mass.
    pub fn at(lever: DVec3, force: DVec3) -> Wrench {
        Wrench { force, torque: lever.cross(force) }
    }

    /// Power delivered to a body that moves with `twist` \[W\].
    pub fn power(&self, twist: Twist) -> f64 {
        self.force.dot(twist.linear) + self.torque.dot(twist.angular)
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.force.is_finite() && self.torque.is_finite()
    }
}

impl Add for Twist {
    type Output = Twist;
    fn add(self, o: Twist) -> Twist {
        Twist { linear: self.linear + o.linear, angular: self.angular + o.angular }
    }
}
impl Sub for Twist {
    type Output = Twist;
    fn sub(self, o: Twist) -> Twist {
        Twist { linear: self.linear - o.linear, angular: self.angular - o.angular }
    }
}
impl Mul<f64> for Twist {
    type Output = Twist;
    fn mul(self, s: f64) -> Twist {
        Twist { linear: self.linear * s, angular: self.angular * s }
    }
}
impl Add for Wrench {
    type Output = Wrench;
    fn add(self, o: Wrench) -> Wrench {
        Wrench { force: self.force + o.force, torque: self.torque + o.torque }
    }
}
impl AddAssign for Wrench {
    fn add_assign(&mut self, o: Wrench) {
        self.force += o.force;
        self.torque += o.torque;
    }
}
impl Neg for Wrench {
    type Output = Wrench;
    fn neg(self) -> Wrench {
        Wrench { force: -self.force, torque: -self.torque }
    }
}
impl Mul<f64> for Wrench {
    type Output = Wrench;
    fn mul(self, s: f64) -> Wrench {
        Wrench { force: self.force * s, torque: self.torque * s }
    }
}
