//! Joint limits: one-sided implicit springs, or hard stops.
//!
//! A soft limit is a potential `½ k v²` of its violation `v > 0`; the torque is its exact gradient. A hard one lets nothing pass:
//! a one-sided row that pushes with whatever force it takes, and never pulls.

/// A closed interval \[rad or m\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub min: f64,
    /// Upper end.
    pub max: f64,
}

impl Range {
    /// From `min` to `max`.
    pub fn new(min: f64, max: f64) -> Range {
        Range { min, max }
    }

    /// How far `x` lies outside: positive above `max`, negative below `min`, else 0.
    pub fn excess(&self, x: f64) -> f64 {
        (x - self.max).max(0.0) + (x - self.min).min(0.0)
    }
}

/// The swing of the twist axis as a rotation vector `(s1, s2)` about the joint's Y and Z, kept within
/// `(s1/α)² + (s2/β)² ≤ 1`. The violation is measured along the ray from the centre, in radians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwingEllipse {
    /// α: largest swing about Y \[rad\].
    pub about_y: f64,
    /// β: largest swing about Z \[rad\].
    pub about_z: f64,
}

impl SwingEllipse {
    /// Violation `v = |s| (1 − 1/√ρ)`, `ρ = (s1/α)² + (s2/β)²`, negative inside, and its gradient `∂v/∂(s1, s2)`.
    ///
    /// On the ellipse the gradient points along that of `ρ`, which is the direction of the limit's torque.
    pub fn violation(&self, s1: f64, s2: f64) -> (f64, [f64; 2]) {
        let half_gradient = [s1 / self.about_y.powi(2), s2 / self.about_z.powi(2)];
        let rho = s1 * half_gradient[0] + s2 * half_gradient[1];
        let length = s1.hypot(s2);
        if length < 1e-12 {
            return (-self.about_y.min(self.about_z), [0.0, 0.0]);
        }
        let root = rho.sqrt();
        // dv = d|s| (1 − ρ^−½) + |s| ρ^−3/2 ½dρ
        let (radial, across) = ((1.0 - 1.0 / root) / length, length / (rho * root));
        (
            length * (1.0 - 1.0 / root),
            [radial * s1 + across * half_gradient[0], radial * s2 + across * half_gradient[1]],
        )
    }
}

/// Whether the ends of a joint's limits give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stops {
    /// One-sided springs with the stiffness and damping of the [`Limits`]: every solver takes them.
    #[default]
    Soft,
    /// One-sided rows: nothing passes, nothing springs back, stiffness and damping mean nothing. A solver that cannot hold them
    /// says so before the run ([`Solver::takes`](crate::Solver::takes)).
    Hard,
}

/// The limits of a joint. Those that do not fit its free directions are refused by the builder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Range of the unwrapped angle of a hinge, or of the twist of a ball about X \[rad\].
    pub angle: Option<Range>,
    /// Swing of a ball's X axis.
    pub swing: Option<SwingEllipse>,
    /// Range of the position along X of a slider \[m\].
    pub slide: Option<Range>,
    /// Whether the ends give.
    pub stops: Stops,
    /// Stiffness of the angular limits \[N·m/rad\].
    pub stiffness: f64,
    /// Damping while an angular limit acts \[N·m·s/rad\].
    pub damping: f64,
    /// Stiffness of the slide limit \[N/m\].
    pub slide_stiffness: f64,
    /// Damping while the slide limit acts \[N·s/m\].
    pub slide_damping: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            angle: None,
            swing: None,
            slide: None,
            stops: Stops::Soft,
            stiffness: 100.0,
            damping: 0.0,
            slide_stiffness: 1e4,
            slide_damping: 0.0,
        }
    }
}

impl Limits {
    /// Whether there is any limit.
    pub fn any(&self) -> bool {
        self.angle.is_some() || self.swing.is_some() || self.slide.is_some()
    }

    /// Whether there is any limit, and it is hard.
    pub fn are_hard(&self) -> bool {
        self.stops == Stops::Hard && self.any()
    }
}
