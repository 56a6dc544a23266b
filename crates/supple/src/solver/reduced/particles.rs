//! Point masses that hang on bodies by three free translations [Kim 2008, App. A.2, Table 5]: what flesh is made of.
//!
//! A particle of mass m is at `r` of its body, in body axes, and moves there with `ṙ`. The body pulls it with the force τ, which acts back on the body;
//! everything else acts on the particle alone. With `V = [ω; v]` and `V̇ = [ω̇; v̇]` of the body:
//!
//! ```text
//! v_i = v + ω × r + ṙ
//! Π_i = 0,   β_i = [0; τ]           so the body meets only the force −τ at r, and no inertia
//! r̈ = (τ + f)/m − ω × (v_i + ṙ) − v̇ − ω̇ × r
//! ```
//! Gravity is in v̇ already (`recursion.rs`), so f does not contain it.

use super::recursion::Recursion;
use crate::maths::Wrench;
use crate::model::BodyId;
use glam::DVec3;

/// A point mass on a body. Its vectors are in the body's axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Particle {
    /// The body it hangs on.
    pub body: BodyId,
    /// \[kg\]
    pub mass: f64,
    /// r, from the body's centre of mass \[m\].
    pub position: DVec3,
    /// ṙ \[m/s\]
    pub velocity: DVec3,
    /// τ: the body's force on the particle \[N\]. Its opposite acts on the body.
    pub pull: DVec3,
    /// f: other forces on the particle, without gravity \[N\].
    pub force: DVec3,
}

impl Recursion {
    /// Adds what a particle does to its body. Call it before the solution.
    pub(super) fn hang(&mut self, particle: &Particle) {
        let node = &mut self.tree.nodes[self.node_of[particle.body.index()]];
        node.applied += -Wrench::at(particle.position, particle.pull);
    }

    /// r̈ of a particle after the solution \[m/s²\].
    pub fn particle_acceleration(&self, particle: &Particle) -> DVec3 {
        let i = self.node_of[particle.body.index()];
        let (v, a) = (self.tree.nodes[i].velocity, self.main.acceleration[i]);
        let Particle { mass, position, velocity, pull, force, .. } = *particle;
        let v_i = v.at(position) + velocity;
        (pull + force) / mass - v.angular.cross(v_i + velocity) - a.at(position)
    }
}
