//! What a step must not change: inertial forces do no work, and inner forces change no momentum.
//!
//! A step that takes Coriolis forces at its start and the inertia of its end makes or loses energy of the order h² each time; on a loose chain that
//! turns by a radian in a step it makes so much that the motion grows without bound. Here the books are balanced after the step, for each
//! tree by itself. With `f` the net force on a body that the recursion found (`m a`, `I ω̇ + ω × I ω`), `V̄` the velocity that the mean of old and new
//! rates gives it at the pose of the recursion, and x its place:
//!
//! ```text
//! T* = T₀ + h Σ f·V̄                                             what the forces of joints do cancels            (1)
//! P* = P₀ + h Σ m a,     L* = L₀ + h Σ (x − c) × m a + I ω̇ + ω × I ω         about the centre of mass c          (2)
//! ```
//! The velocities after the step have T, P, L. Let `U` be the rigid motion of the whole tree with momentum P, L, and `U*` that with P*, L*. Then
//!
//! ```text
//! V ← U* + s (V − U),     s² = (T* − T(U*)) / (T − T(U))                                                        (3)
//! ```
//! keeps all joints closed, since a rigid motion does and they are linear, and has T*, P*, L*. A tree that hangs on the world keeps no momentum: `U = U* = 0`.
//! Where motions are prescribed their velocities are not scaled: `s = 1`.
//!
//! A midpoint step takes gravity in (1) by the height that is really lost, `Σ m g·(x₁ − x₀)` in place of `h Σ m g·v̄`, and so keeps the energy of heavy bodies to
//! rounding. Euler's must not: its positions are half a step ahead of its velocities, and its energy swings about the true one.
//!
//! The change is of the order of the error of the step itself, so that the order of the step stays as it is.

use super::recursion::{Given, Node, Recursion};
use crate::maths::rotation::turned_inertia;
use crate::maths::{Twist, Wrench};
use crate::model::{Model, State, TreeNode};
use glam::{DMat3, DVec3};
use std::ops::Range;

/// Kinetic energy and momentum of a tree.
#[derive(Clone, Copy, Debug)]
struct Measure {
    kinetic: f64,
    /// `Σ m g·x`
    fall: f64,
    mass: f64,
    centre: DVec3,
    linear: DVec3,
    /// About the centre of mass.
    angular: DVec3,
    /// Of the tree as one rigid body, about its centre of mass.
    inertia: DMat3,
}

/// A tree on its root.
#[derive(Clone, Copy, Debug)]
struct Grown {
    start: Measure,
    /// T* without the height of the end; P*, L*.
    kinetic: f64,
    linear: DVec3,
    angular: DVec3,
}

/// What the books say of a part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Corrections are small.
    Sound,
    /// The part was too long for the motion: better do it in halves.
    Rough,
}

impl Verdict {
    /// The worse of the two.
    pub(super) fn and(self, other: Verdict) -> Verdict {
        if self == Verdict::Sound { other } else { self }
    }
}

/// What a tree would do with its new rates.
struct Tally {
    /// Kinetic energy at the pose of the recursion.
    kinetic: f64,
    /// T*
    aim: f64,
    /// The farthest turn of a joint \[rad\].
    turn: f64,
}

/// The books of a step, by tree.
pub(super) struct Books {
    trees: Vec<(Range<usize>, Grown)>,
    /// By node: V̄, and the velocity of the new rates at the same pose.
    velocities: Vec<[Twist; 2]>,
    gravity: DVec3,
}

/// Inner motion counts as having this share of the kinetic energy about the centre of mass of a tree that floats, if it has less.
const LEAST_INNER: f64 = 0.01;

/// Rates are not made larger than by this factor: where T is so much too small, it is too small to tell by how much.
const MOST: f64 = 1.2;

/// A joint that turns farther than this in a part \[rad\] may pass a limit, or the half turn of a spring, without noticing.
const TURN: f64 = 1.0;
/// Where velocities have to be scaled by more than this, the part was too long for the motion.
const ROUGH: f64 = 0.2;

/// Coriolis forces may change the kinetic energy at the pose of the recursion, by about hω of it; if it grows by more than this factor, the part is too long to
/// tell, and bodies must not be flung by it.
const MOST_ENERGY: f64 = 2.0;

/// Whether a joint of the tree moves as told.
fn is_prescribed(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| node.given == Given::Acceleration)
}

impl Books {
    pub(super) fn new(model: &Model) -> Books {
        let nodes = &model.topology().nodes;
        let roots = nodes.iter().enumerate().filter(|(_, node)| node.parent == 0);
        let nothing = Measure::of(model, &[], &model.start(), DVec3::ZERO);
        let grown = Grown { start: nothing, kinetic: 0.0, linear: DVec3::ZERO, angular: DVec3::ZERO };
        Books {
            trees: roots.map(|(i, node)| (i..i + node.subtree, grown)).collect(),
            velocities: vec![[Twist::ZERO; 2]; nodes.len()],
            gravity: DVec3::ZERO,
        }
    }

    /// Opens the books at the start of a part. `gravity` is what is taken by height.
    pub(super) fn open(&mut self, model: &Model, state: &State, gravity: DVec3) {
        self.gravity = gravity;
        for (range, grown) in &mut self.trees {
            grown.start = Measure::of(model, &model.topology().nodes[range.clone()], state, gravity);
        }
    }

    /// Enters what the recursion found to act over `h`, between the rates `from` and `to`. Rates that would need more than [`MOST_ENERGY`] are cut.
    pub(super) fn enter(&mut self, recursion: &Recursion, h: f64, from: &[f64], to: &mut [f64]) -> Verdict {
        let mut verdict = Verdict::Sound;
        for tree in 0..self.trees.len() {
            let Tally { kinetic, aim, turn } = self.tally(tree, recursion, h, from, to);
            if turn > TURN {
                verdict = Verdict::Rough;
            }
            let (range, grown) = &self.trees[tree];
            let nodes = &recursion.tree.nodes[range.clone()];
            let most = MOST_ENERGY * aim.max(grown.start.kinetic);
            if kinetic > most && !is_prescribed(nodes) {
                let rates = nodes[0].rates.start..nodes[nodes.len() - 1].rates.end;
                to[rates].iter_mut().for_each(|rate| *rate *= (most / kinetic).sqrt());
                self.tally(tree, recursion, h, from, to);
                verdict = Verdict::Rough;
            }
        }
        verdict
    }

    /// (1) and (2) of one tree.
    fn tally(&mut self, tree: usize, recursion: &Recursion, h: f64, from: &[f64], to: &[f64]) -> Tally {
        let (range, grown) = &mut self.trees[tree];
        let directions = &recursion.tree.directions;
        let Measure { kinetic, linear, angular, mass, fall, .. } = grown.start;
        (grown.kinetic, grown.linear, grown.angular) = (kinetic - fall, linear, angular);
        let (mut work, mut felt) = (0.0, 0.0);
        let mut tally = Tally { kinetic: 0.0, aim: kinetic, turn: 0.0 };
        let nodes = &recursion.tree.nodes[range.clone()];
        let centre = nodes.iter().fold(DVec3::ZERO, |sum, node| sum + node.world.translation * (node.mass / mass));
        for (i, node) in range.clone().zip(nodes) {
            // V̄ = A V̄_p + S q̄, and the same with the new rates
            let above = node.parent.checked_sub(1).map_or([Twist::ZERO; 2], |p| self.velocities[p]);
            let (mut mean, mut own) = (node.passage.down(above[0]), Twist::ZERO);
            for k in node.rates.clone() {
                mean = mean + directions[k] * (0.5 * (from[k] + to[k]));
                own = own + directions[k] * to[k];
            }
            let new = node.passage.down(above[1]) + own;
            self.velocities[i] = [mean, new];
            tally.turn = tally.turn.max(h * own.angular.length());
            tally.kinetic +=
                0.5 * (node.mass * new.linear.length_squared() + new.angular.dot(node.inertia * new.angular));
            let (net, r) = (recursion.net_force(i), node.world.rotation);
            work += h * net.power(mean);
            felt += h * node.mass * self.gravity.dot(r * mean.linear);
            let force = r * net.force * h;
            grown.linear += force;
            grown.angular += (node.world.translation - centre).cross(force) + r * net.torque * h;
        }
        grown.kinetic += work - felt;
        tally.aim += work;
        tally
    }

    /// Closes the books: (3) on the velocities of `state` after the step.
    pub(super) fn close(&self, model: &Model, state: &mut State, recursion: &Recursion) -> Verdict {
        let mut verdict = Verdict::Sound;
        for (range, grown) in &self.trees {
            let nodes = &model.topology().nodes[range.clone()];
            let end = Measure::of(model, nodes, state, self.gravity);
            let floats = nodes[0].joint.is_none();
            let (now, wanted) = if floats {
                (end.rigid(end.linear, end.angular), end.rigid(grown.linear, grown.angular))
            } else {
                ((Twist::ZERO, 0.0), (Twist::ZERO, 0.0))
            };
            let (inner, aim) = (end.kinetic - now.1, grown.kinetic + end.fall - wanted.1);
            // What the books are off by is a share of the energy of turning too: where inner motion has next to none beside it, it is not to be laid on that.
            let about_centre = end.kinetic - 0.5 * end.linear.length_squared() / end.mass;
            let lacking = if floats { (LEAST_INNER * about_centre - inner).max(0.0) } else { 0.0 };
            let (inner, aim) = (inner + lacking, aim + lacking);
            let scale = if is_prescribed(&recursion.tree.nodes[range.clone()]) || inner <= f64::EPSILON * end.kinetic {
                1.0
            } else {
                (aim / inner).clamp(0.0, MOST * MOST).sqrt()
            };
            for node in nodes {
                let s = &mut state.bodies[node.body.index()];
                let at = |u: Twist| Twist::new(u.at(s.position - end.centre), u.angular);
                s.velocity = at(wanted.0) + (s.velocity - at(now.0)) * scale;
            }
            if (scale - 1.0).abs() > ROUGH {
                verdict = Verdict::Rough;
            }
        }
        verdict
    }
}

impl Measure {
    fn of(model: &Model, nodes: &[TreeNode], state: &State, gravity: DVec3) -> Measure {
        let mut m = Measure {
            kinetic: 0.0,
            fall: 0.0,
            mass: 0.0,
            centre: DVec3::ZERO,
            linear: DVec3::ZERO,
            angular: DVec3::ZERO,
            inertia: DMat3::ZERO,
        };
        for node in nodes {
            let (body, s) = (model.body(node.body), &state.bodies[node.body.index()]);
            m.mass += body.mass;
            m.centre += s.position * body.mass;
            m.linear += s.velocity.linear * body.mass;
        }
        m.centre /= m.mass;
        m.fall = m.mass * gravity.dot(m.centre);
        for node in nodes {
            let (body, s) = (model.body(node.body), &state.bodies[node.body.index()]);
            let inertia = turned_inertia(s.orientation, body.inertia);
            let (d, v, w) = (s.position - m.centre, s.velocity.linear, s.velocity.angular);
            let spin = inertia * w;
            m.kinetic += 0.5 * (body.mass * v.length_squared() + w.dot(spin));
            m.angular += d.cross(v * body.mass) + spin;
            let outer = DMat3::from_cols(d * d.x, d * d.y, d * d.z);
            m.inertia += inertia + (DMat3::from_diagonal(DVec3::splat(d.length_squared())) - outer) * body.mass;
        }
        m
    }

    /// The motion of the whole tree as one body with this momentum, and its kinetic energy.
    fn rigid(&self, linear: DVec3, angular: DVec3) -> (Twist, f64) {
        let u = Twist::new(linear / self.mass, self.inertia.inverse() * angular);
        (u, 0.5 * Wrench::new(linear, angular).power(u))
    }
}
