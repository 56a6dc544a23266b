//! Where the recursion meets the state that all solvers share: body poses and velocities become joint coordinates and back.
//!
//! Other methods may leave joints a little open and velocities that open them. Poses are closed from the roots on, each joint at its nearest closed
//! pose. Velocities are projected: of all that keep the joints closed, those nearest in the sense of kinetic energy,
//!
//! ```text
//! min ½ Σ (V − V₀)ᵀ J (V − V₀),   V_i = A V_p + S q̇
//! ```
//! which are the recursion's with bias forces `−J V₀`, no drift and no gravity: what impulses of the joints would do. No energy is gained, and
//! a floating character keeps its momentum.

use super::recursion::{Recursion, Singular};
use crate::maths::{Twist, Wrench};
use crate::model::{Coordinates, Model, State};

/// What had to be changed to go on in joint coordinates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// The farthest a body was moved to close joints \[m\].
    pub(super) closed: f64,
    /// Whether velocities were projected: 0 or 1.
    pub(super) projections: u32,
}

/// Velocities farther than this from closed joints, as a share of the largest, are projected; less is rounding.
const SLIP: f64 = 1e-10;
/// Poses farther than this from closed joints, as a share of the largest distance from the origin, are written anew; less is rounding.
const OPEN: f64 = 1e-13;

/// Coordinates and first pass of `state`, which is closed where it was open.
pub(super) fn enter(
    model: &Model,
    state: &mut State,
    coordinates: &mut Coordinates,
    recursion: &mut Recursion,
) -> Result<Entry, Singular> {
    coordinates.read(model, state);
    recursion.place(coordinates);

    let (mut entry, mut far) = (Entry::default(), 0.0f64);
    let (mut slip, mut speed) = (Twist::ZERO, Twist::ZERO);
    for node in &recursion.tree.nodes {
        let (s, v) = (&state.bodies[node.body.index()], recursion.velocity(node.body));
        entry.closed = entry.closed.max(s.position.distance(node.world.translation));
        far = far.max(s.position.length());
        let d = s.velocity - v;
        slip = Twist::new(slip.linear.max(d.linear.abs()), slip.angular.max(d.angular.abs()));
        speed = Twist::new(speed.linear.max(s.velocity.linear.abs()), speed.angular.max(s.velocity.angular.abs()));
    }
    if slip.linear.length() > SLIP * speed.linear.length() || slip.angular.length() > SLIP * speed.angular.length() {
        recursion.project(state, coordinates)?;
        entry.projections = 1;
    }
    if entry.projections > 0 || entry.closed > OPEN * far {
        coordinates.write(model, state);
    }
    Ok(entry)
}

impl Recursion {
    /// Replaces the rates by those nearest the velocities of `state`, at the poses of the first pass.
    fn project(&mut self, state: &State, coordinates: &mut Coordinates) -> Result<(), Singular> {
        self.factor()?;
        for (node, bias) in self.tree.nodes.iter().zip(&mut self.response.bias) {
            let (s, back) = (&state.bodies[node.body.index()], node.world.rotation.conjugate());
            let momentum =
                Wrench::new(back * s.velocity.linear * node.mass, node.inertia * (back * s.velocity.angular));
            *bias = -momentum;
        }
        self.response.given.fill(0.0);
        self.tree.sweep(&mut self.response);
        coordinates.rates.copy_from_slice(&self.response.found);
        self.set_rates(&coordinates.rates);
        Ok(())
    }
}
