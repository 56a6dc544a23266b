//! A contact followed through the part it was found for, as its bodies move.

use super::{Contact, Other};
use crate::maths::Pose;
use crate::model::{BodyId, BodyState, State};
use glam::{DQuat, DVec3};

/// The two points of a contact. They turn with their bodies, but for what is round: a ball that rolls stays on its contact, the corner of a box moves as corners do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Follow {
    pub(crate) a: BodyId,
    /// `None`: an obstacle.
    pub(crate) b: Option<BodyId>,
    pub(crate) normal: DVec3,
    side_a: Side,
    side_b: Side,
    /// Velocity of the obstacle's point.
    pub(crate) carried: DVec3,
}

/// A point of a body, or of an obstacle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    /// What turns with the body, in its coordinates; of an obstacle the point itself, in the world at the end of the step.
    core: DVec3,
    /// From there to the surface, world axes.
    round: DVec3,
}

impl Side {
    /// From the centre of mass to the point when the body is turned like this.
    fn lever(&self, orientation: DQuat) -> DVec3 {
        orientation * self.core + self.round
    }
}

impl Follow {
    /// A contact of `state`, found at the start of a part `h` that is followed by `after`.
    pub(crate) fn new(contact: &Contact, state: &State, (h, after): (f64, f64)) -> Follow {
        let on_body = |id: BodyId, point: DVec3, round: DVec3| Side {
            core: point - state.bodies[id.index()].orientation.conjugate() * round,
            round,
        };
        let (b, side_b) = match contact.b {
            Other::Body(b) => (Some(b), on_body(b, contact.point_in_b, contact.round_b)),
            Other::Obstacle(_) => {
                let now = contact.point - contact.normal * (0.5 * contact.gap);
                (None, Side { core: now + contact.obstacle_velocity * (h + after), round: DVec3::ZERO })
            }
        };
        Follow {
            a: contact.a,
            b,
            normal: contact.normal,
            side_a: on_body(contact.a, contact.point_in_a, contact.round_a),
            side_b,
            carried: contact.obstacle_velocity,
        }
    }

    /// From the centres of mass, when bodies are turned like this; none to an obstacle.
    pub(crate) fn levers(&self, a: DQuat, b: Option<DQuat>) -> [DVec3; 2] {
        [self.side_a.lever(a), b.map_or(DVec3::ZERO, |b| self.side_b.lever(b))]
    }

    /// From the centres of mass at `state`.
    pub(crate) fn levers_at(&self, state: &State) -> [DVec3; 2] {
        let turned = |id: BodyId| state.bodies[id.index()].orientation;
        self.levers(turned(self.a), self.b.map(turned))
    }

    /// The gap when bodies are here, `left` seconds before the end of the step.
    pub(crate) fn gap(&self, a: Pose, b: Option<Pose>, left: f64) -> f64 {
        let [r_a, r_b] = self.levers(a.rotation, b.map(|b| b.rotation));
        let on_b = b.map_or(self.side_b.core - self.carried * left, |b| b.translation + r_b);
        self.normal.dot(a.translation + r_a - on_b)
    }

    /// The gap at `state`, `left` seconds before the end of the step.
    pub(crate) fn gap_at(&self, state: &State, left: f64) -> f64 {
        let pose = |id: BodyId| BodyState::pose(&state.bodies[id.index()]);
        self.gap(pose(self.a), self.b.map(pose), left)
    }

    /// The velocity of a's point against b's.
    pub(crate) fn velocity_at(&self, state: &State) -> DVec3 {
        let [r_a, r_b] = self.levers_at(state);
        let at = |id: BodyId, r: DVec3| state.bodies[id.index()].velocity.at(r);
        at(self.a, r_a) - self.b.map_or(self.carried, |b| at(b, r_b))
    }
}
