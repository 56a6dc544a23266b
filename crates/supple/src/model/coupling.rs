//! Joints that move together: gears, a screw, the fingers of a gripper.
//!
//! With x the [position](Joint::position) of a joint, f the follower and l the leader:
//!
//! ```text
//! C = x_f − p(x_l),   p(x) = c_0 + c_1 x + c_2 x² + c_3 x³ + c_4 x⁴                                           (1)
//! Ċ = J_f V − p'(x_l) J_l V                                                                                   (2)
//! ```

use super::joint::Sides;
use super::{Joint, JointId, Model, State};
use crate::maths::{Pose, Twist};

/// A joint that follows another: the angle of a hinge or the position of a slider as a polynomial of that of its leader. Held exactly, as a
/// joint is: gears do no work and take none.
#[derive(Clone, Debug, PartialEq)]
pub struct Coupling {
    /// Unique among the couplings.
    pub name: String,
    /// The joint that follows.
    pub follower: JointId,
    /// The joint that it follows; `None`: it stays at `polynomial[0]`.
    pub leader: Option<JointId>,
    /// c_0 … c_4 of (1), in the units of both positions \[rad or m\].
    pub polynomial: [f64; 5],
}

impl Coupling {
    /// A follower that moves `ratio` times as far as its leader, and is `offset` ahead of it.
    pub fn new(name: impl Into<String>, follower: JointId, leader: JointId, ratio: f64, offset: f64) -> Coupling {
        let polynomial = [offset, ratio, 0.0, 0.0, 0.0];
        Coupling { name: name.into(), follower, leader: Some(leader), polynomial }
    }

    /// p and p' of (1).
    pub fn wanted(&self, x: f64) -> (f64, f64) {
        let [c0, c1, c2, c3, c4] = self.polynomial;
        (c0 + x * (c1 + x * (c2 + x * (c3 + x * c4))), c1 + x * (2.0 * c2 + x * (3.0 * c3 + x * (4.0 * c4))))
    }

    /// The row of the coupling where `pose` says that bodies are; turns are counted from those of `state`.
    pub fn row(&self, model: &Model, state: &State, pose: impl Fn(usize) -> Pose) -> CouplingRow {
        let position = |id: JointId| {
            let joint = model.joint(id);
            let b = joint.parent.map_or(Pose::IDENTITY, |b| pose(b.index()));
            let sides = Sides { a: pose(joint.child.index()), a_velocity: Twist::ZERO, b, b_velocity: Twist::ZERO };
            joint.position(&sides, state.joints[id.index()].angle).unwrap_or((0.0, Twist::ZERO, Twist::ZERO))
        };
        let (x, a, b) = position(self.follower);
        let (leading, c, d) = self.leader.map_or((0.0, Twist::ZERO, Twist::ZERO), position);
        let (wanted, slope) = self.wanted(leading);
        CouplingRow { residual: x - wanted, follower: [a, b], leader: [c * -slope, d * -slope] }
    }

    /// The row at the poses of `state`.
    pub fn row_at(&self, model: &Model, state: &State) -> CouplingRow {
        self.row(model, state, |i| state.bodies[i].pose())
    }
}

/// How far a coupling is from holding, and how that grows with the velocities of the bodies on both sides of both joints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CouplingRow {
    /// C of (1) \[rad or m\].
    pub residual: f64,
    /// Rows of the follower's child and parent.
    pub follower: [Twist; 2],
    /// Rows of the leader's child and parent.
    pub leader: [Twist; 2],
}

impl CouplingRow {
    /// Whether the residual is a length.
    pub fn is_length(&self) -> bool {
        self.follower[0].linear != glam::DVec3::ZERO
    }
}

/// What is wrong with a coupling, with its remedy.
pub(super) fn fault(coupling: &Coupling, joints: &[Joint], all: &[Coupling]) -> Option<(&'static str, &'static str)> {
    let moves = |id: JointId| joints.get(id.index()).map(Joint::has_position);
    let sides = [Some(coupling.follower), coupling.leader];
    if sides.into_iter().flatten().any(|id| moves(id).is_none()) {
        return Some((
            "it names a joint that this model does not have",
            "use a JointId that came from the same builder",
        ));
    }
    if sides.into_iter().flatten().any(|id| moves(id) == Some(false)) {
        return Some(("one of its joints has no single position", "couple hinges and sliders"));
    }
    if !coupling.polynomial.iter().all(|c| c.is_finite()) {
        return Some(("a coefficient is not finite", "give finite numbers"));
    }
    if all.iter().filter(|other| other.follower == coupling.follower).count() > 1 {
        return Some(("its follower follows twice", "let each joint follow one other"));
    }
    // Each joint follows at most one other: a circle comes back after as many as there are couplings.
    let mut leader = coupling.leader;
    for _ in 0..=all.len() {
        let joint = leader?;
        leader = all.iter().find(|other| other.follower == joint).and_then(|other| other.leader);
    }
    Some(("it follows itself, by way of others", "leave out one coupling of the circle"))
}
