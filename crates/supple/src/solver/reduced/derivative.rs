//! Derivatives of accelerations with respect to what is given of the joints [Kim 2008, App. A.3, Table 6, corrected; `docs/papers.md`].
//!
//! The dynamics are affine in torques and given accelerations, so a derivative is a response: the last two passes with no drift and no
//! gravity. [`Recursion::by_command`] is the paper's way, one sweep for each command. Few rows and many commands go the other way round,
//! by reciprocity, one sweep for each row ([`Recursion::by_acceleration`]): with a unit force F on a body along c
//!
//! ```text
//! ∂(V̇·c)/∂τ_j = ∂q̈_j/∂F        where the torque is given
//! ∂(V̇·c)/∂q̈_j = −∂τ_j/∂F        where the acceleration is given
//! ```

use super::recursion::{Given, Node, Recursion};
use crate::maths::{Twist, Wrench};
use crate::model::BodyId;

impl Recursion {
    /// How the true acceleration of a body changes with each joint's command (its torque or its acceleration, whichever was given to the
    /// last solution), by rate. The part of the acceleration is `along.force · linear + along.torque · angular`, world axes, centre of
    /// mass; that of a point at lever r along the unit vector e is `Wrench::at(r, e)`.
    pub fn by_acceleration(&mut self, body: BodyId, along: Wrench) -> &[f64] {
        self.respond(&[(body, along)], None);
        self.turn_signs();
        &self.response.found
    }

    /// How the acceleration of a node's joint along its rates changes with each joint's command, by rate.
    pub(super) fn by_joint(&mut self, node: usize, along: &[f64]) -> &[f64] {
        let Node { given, rates, .. } = &self.tree.nodes[node];
        let (given, rates) = (*given, rates.clone());
        let along = &along[..rates.len()];
        if given == Given::Acceleration {
            self.response.found.fill(0.0);
            self.response.found[rates].copy_from_slice(along);
            return &self.response.found;
        }
        // The inverse of the mass matrix is symmetric: what the joint's torques do to others is what theirs do to it.
        self.response.bias.fill(Wrench::ZERO);
        self.response.given.fill(0.0);
        self.response.given[rates].copy_from_slice(along);
        self.tree.sweep(&mut self.response);
        self.turn_signs();
        &self.response.found
    }

    /// What is found of the joints when so much is given of them and nothing else acts, by rate.
    pub(super) fn by_given(&mut self, given: impl Iterator<Item = (usize, f64)>) -> &[f64] {
        self.response.bias.fill(Wrench::ZERO);
        self.response.given.fill(0.0);
        given.for_each(|(rate, value)| self.response.given[rate] = value);
        self.tree.sweep(&mut self.response);
        &self.response.found
    }

    /// Reciprocity: where the acceleration is given, the derivative is minus the torque found.
    fn turn_signs(&mut self) {
        for node in &self.tree.nodes {
            if node.given == Given::Acceleration {
                self.response.found[node.rates.clone()].iter_mut().for_each(|x| *x = -*x);
            }
        }
    }

    /// How all accelerations change with one command, told by its rate: the torque or the acceleration, whichever was given. Read them by
    /// [`response`](Self::response).
    pub fn by_command(&mut self, rate: usize) {
        self.respond(&[], Some(rate));
    }

    /// How the true acceleration of a body changed in the last response, world axes.
    pub fn response(&self, body: BodyId) -> Twist {
        let i = self.node_of[body.index()];
        let (r, a) = (self.tree.nodes[i].world.rotation, self.response.acceleration[i]);
        Twist::new(r * a.linear, r * a.angular)
    }

    /// What forces on bodies (world axes, about their centres of mass) and a unit of one command change: no drift, no gravity.
    pub(super) fn respond(&mut self, forces: &[(BodyId, Wrench)], command: Option<usize>) {
        self.response.bias.fill(Wrench::ZERO);
        self.response.given.fill(0.0);
        for (body, force) in forces {
            let i = self.node_of[body.index()];
            self.response.bias[i] += -self.tree.nodes[i].in_body_axes(*force);
        }
        if let Some(rate) = command {
            self.response.given[rate] = 1.0;
        }
        self.tree.sweep(&mut self.response);
    }
}
