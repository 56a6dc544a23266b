//! Springs, dampers, motors, limits and pulls, from `forces.rs` into the recursion.
//!
//! Over a part of a step a force is taken as
//!
//! ```text
//! F = F₀ − K (α V + β a) − D (V + γ a)                                                                               (1)
//!                α    β      γ
//! backward       h    h²     h        at the end of the part: stable at any stiffness
//! midpoint       0    h²/4   h/2      the mean of the part, poses being those of its middle
//! its end        h/2  h²/2   h        for pulls, whose targets are those of the end, and while a limit acts: the mean would ring
//! explicit       0    0      0
//! ```
//! with V the velocity at the start and a the acceleration. What a joint's own springs do is told by its free directions alone:
//! `Sᵀ F₀` and so on enter its torque and its E. Pulls to the world enter the inertia of their body. A spring between two bodies touches
//! the whole path between them; one factorisation serves all of them: with `B` the rows of the points' relative motions, `X = βK + γD`,
//! a₀ the solution without X and `Z` the response of the points to unit forces on them,
//!
//! ```text
//! f = −X ρ,   ρ = B a₀ + Z f    ⇒    (1 + X Z) f = −X B a₀
//! ```

use super::recursion::{Given, Recursion};
use super::spatial::Inertia;
use crate::contact::penalty::{Place, Touch};
use crate::forces::{self, Acting, Along, Derivatives, Force, Source};
use crate::input::Input;
use crate::maths::block::solve_dense;
use crate::maths::{Twist, Wrench};
use crate::model::{BodyId, Coordinates, Model, State};
use glam::{DMat3, DVec3};
use std::f64::consts::TAU;

/// The numbers of (1).
#[derive(Clone, Copy, Debug)]
struct Weights {
    /// α \[s\]
    ahead: f64,
    /// β \[s²\]
    position: f64,
    /// γ \[s\]
    velocity: f64,
}

impl Weights {
    const NONE: Weights = Weights { ahead: 0.0, position: 0.0, velocity: 0.0 };

    /// `α K + D`: what meets the velocity at the start.
    fn on_velocity(&self, stiffness: DMat3, damping: f64) -> DMat3 {
        stiffness * self.ahead + DMat3::from_diagonal(DVec3::splat(damping))
    }

    /// `X = β K + γ D`: what meets the acceleration.
    fn on_acceleration(&self, stiffness: DMat3, damping: f64) -> DMat3 {
        stiffness * self.position + DMat3::from_diagonal(DVec3::splat(damping * self.velocity))
    }
}

/// How forces are taken over a part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Those between bodies.
    springs: Weights,
    /// Those to the world.
    pulls: Weights,
    /// How far limits and motors look ahead \[s\].
    look: f64,
}

impl Rule {
    pub(super) const EXPLICIT: Rule = Rule { springs: Weights::NONE, pulls: Weights::NONE, look: 0.0 };

    pub(super) fn backward(h: f64) -> Rule {
        let weights = Weights { ahead: h, position: h * h, velocity: h };
        Rule { springs: weights, pulls: weights, look: h }
    }

    pub(super) fn midpoint(h: f64) -> Rule {
        let springs = Weights { ahead: 0.0, position: 0.25 * h * h, velocity: 0.5 * h };
        Rule { springs, ..Rule::end_of_midpoint(h) }
    }

    pub(super) fn end_of_midpoint(h: f64) -> Rule {
        let weights = Weights { ahead: 0.5 * h, position: 0.5 * h * h, velocity: h };
        Rule { springs: weights, pulls: weights, look: 0.5 * h }
    }
}

/// A spring between two bodies.
#[derive(Clone, Copy, Debug)]
struct Spring {
    a: BodyId,
    b: BodyId,
    r_a: DVec3,
    r_b: DVec3,
    /// X
    x: DMat3,
    /// f, as far as the recursion has it.
    force: DVec3,
}

/// Scratch of the springs between bodies.
pub(super) struct Loads {
    springs: Vec<Spring>,
    /// `1 + X Z`, row by row, and `−X B a₀`.
    matrix: Vec<f64>,
    rhs: Vec<f64>,
}

impl Loads {
    pub(super) fn new(model: &Model) -> Loads {
        let springs = model.anchor_springs().iter().filter(|s| s.b.is_some()).count();
        let n = 3 * springs;
        Loads { springs: Vec::with_capacity(springs), matrix: vec![0.0; n * n], rhs: vec![0.0; n] }
    }

    /// For explicit forces.
    pub(super) fn empty() -> Loads {
        Loads { springs: Vec::new(), matrix: Vec::new(), rhs: Vec::new() }
    }

    /// Gravity, wrenches and every force of [`forces::collect`] at `state`, whose poses and velocities the recursion has been placed at.
    /// Motors of nodes that `rest` do not act. Returns how many limits act.
    pub(super) fn collect(
        &mut self,
        model: &Model,
        input: &Input,
        state: &State,
        coordinates: &Coordinates,
        (rule, rests): (Rule, impl Fn(usize) -> bool),
        recursion: &mut Recursion,
    ) -> u32 {
        self.springs.clear();
        recursion.surround(input);
        let velocity = |body: BodyId| state.bodies[body.index()].velocity;
        forces::collect(model, input, state, rule.look, Derivatives::Symmetric, |acting| {
            match (acting.source, acting.force, acting.b) {
                (Source::Motor(id), ..) if rests(coordinates.node_of_joint(id).expect(NO_LOOPS)) => {}
                (Source::Joint(id) | Source::Motor(id) | Source::Limit(id), force, _) => {
                    let node = coordinates.node_of_joint(id).expect(NO_LOOPS);
                    joint_load(force, node, &coordinates.rates, rule.springs, recursion);
                }
                (_, Force::Anchored(f), Some(b)) => {
                    let rate = velocity(acting.a).at(f.r_a) - velocity(b).at(f.r_b);
                    let force = f.force - rule.springs.on_velocity(f.stiffness, f.damping) * rate;
                    recursion.push(acting.a, Wrench::at(f.r_a, force));
                    recursion.push(b, Wrench::at(f.r_b, -force));
                    let x = rule.springs.on_acceleration(f.stiffness, f.damping);
                    if rule.springs.velocity > 0.0 {
                        self.springs.push(Spring { a: acting.a, b, r_a: f.r_a, r_b: f.r_b, x, force: DVec3::ZERO });
                    }
                }
                _ => body_load(&acting, velocity(acting.a), rule.pulls, recursion),
            }
        })
    }

    /// Contacts as springs, at `state` and with so much of the part `left`.
    pub(super) fn touch(
        &mut self,
        model: &Model,
        input: &Input,
        state: &State,
        (touches, left): (&[Touch], (f64, f64)),
        rule: Rule,
        recursion: &mut Recursion,
    ) {
        let velocity = |body: BodyId| state.bodies[body.index()].velocity;
        let Weights { ahead, position, velocity: later } = rule.pulls;
        for touch in touches {
            let place = touch.place(state, left);
            let Some(linear) = touch.linear(model, state, &place, input.gravity, rule.look) else { continue };
            let rate = velocity(touch.follow.a).at(place.r_a)
                - touch.follow.b.map_or(DVec3::ZERO, |b| velocity(b).at(place.r_b));
            let force = linear.force - (linear.stiffness * ahead + linear.damping) * rate;
            let x = linear.stiffness * position + linear.damping * later;
            let Some(b) = touch.follow.b else {
                recursion.load_body(touch.follow.a, Wrench::at(place.r_a, force), &Inertia::at_point(place.r_a, x));
                continue;
            };
            recursion.push(touch.follow.a, Wrench::at(place.r_a, force));
            recursion.push(b, Wrench::at(place.r_b, -force));
            if later > 0.0 {
                let Place { r_a, r_b, .. } = place;
                self.springs.push(Spring { a: touch.follow.a, b, r_a, r_b, x, force: DVec3::ZERO });
            }
        }
        let n = 3 * self.springs.len();
        if self.rhs.len() < n {
            self.rhs.resize(n, 0.0);
            self.matrix.resize(n * n, 0.0);
        }
    }

    /// Solves the tree that the recursion has factored, springs between bodies included. Returns the number of right-hand sides solved.
    pub(super) fn solve(&mut self, recursion: &mut Recursion) -> u32 {
        let n = 3 * self.springs.len();
        for spring in &mut self.springs {
            spring.add(-spring.force, recursion);
        }
        recursion.solve_again();
        if n == 0 {
            return 1;
        }
        for (s, spring) in self.springs.iter().enumerate() {
            let relative = spring.relative(|body| recursion.acceleration(body));
            self.rhs[3 * s..3 * s + 3].copy_from_slice(&(-(spring.x * relative)).to_array());
        }
        for s in 0..self.springs.len() {
            for axis in 0..3 {
                recursion.respond(&self.springs[s].forces(DVec3::AXES[axis]), None);
                for (t, spring) in self.springs.iter().enumerate() {
                    let column = spring.x * spring.relative(|body| recursion.response(body));
                    for row in 0..3 {
                        let identity = if s == t && row == axis { 1.0 } else { 0.0 };
                        self.matrix[(3 * t + row) * n + 3 * s + axis] = identity + column[row];
                    }
                }
            }
        }
        solve_dense(&mut self.matrix[..n * n], &mut self.rhs[..n]);
        for (s, spring) in self.springs.iter_mut().enumerate() {
            spring.add(DVec3::from_slice(&self.rhs[3 * s..3 * s + 3]), recursion);
        }
        recursion.solve_again();
        n as u32 + 2
    }
}

impl Spring {
    /// How the points move against each other when bodies move so; levers do not turn.
    fn relative(&self, motion: impl Fn(BodyId) -> Twist) -> DVec3 {
        motion(self.a).at(self.r_a) - motion(self.b).at(self.r_b)
    }

    /// A force on a's point and its opposite on b's.
    fn forces(&self, force: DVec3) -> [(BodyId, Wrench); 2] {
        [(self.a, Wrench::at(self.r_a, force)), (self.b, Wrench::at(self.r_b, -force))]
    }

    /// Adds to f.
    fn add(&mut self, force: DVec3, recursion: &mut Recursion) {
        for (body, force) in self.forces(force) {
            recursion.push(body, force);
        }
        self.force += force;
    }
}

const NO_LOOPS: &str = "models with loops are refused";
/// Hard limits as springs: how often they would swing in a second, critically damped.
const STOP_HERTZ: f64 = 8.0;

/// Hard limits that would be passed within `h`, as springs for the inertias that rates move; they do not pull.
pub(super) fn stop_softly(
    model: &Model,
    state: &State,
    coordinates: &Coordinates,
    h: f64,
    inertias: &[f64],
    recursion: &mut Recursion,
) {
    forces::stops(model, state, |stop| {
        let node = coordinates.node_of_joint(stop.joint).expect(NO_LOOPS);
        let row = if recursion.is_flipped(node) { stop.b } else { stop.a };
        let row = Wrench::new(row.linear, row.angular);
        let rate = row.power(recursion.joint_motion(node, &coordinates.rates));
        let is_driven = recursion.given(node) == Given::Acceleration;
        if is_driven || stop.gap + h * rate >= 0.0 {
            return;
        }
        // the inertia along the row
        let (mut inertia, mut size) = (0.0, 0.0);
        for (k, own) in inertias[coordinates.rate_range(node)].iter().enumerate() {
            let along = row.power(recursion.direction(node, k)).powi(2);
            (inertia, size) = (inertia + along * own, size + along);
        }
        let (inertia, omega) = (inertia / size, TAU * STOP_HERTZ);
        let (stiffness, damping) = (inertia * omega * omega, 2.0 * inertia * omega);
        if size == 0.0 || stiffness * (stop.gap + h * rate) + damping * rate >= 0.0 {
            return;
        }
        let spring = Along { a: stop.a, b: stop.b, force: -stiffness * stop.gap, stiffness, damping };
        joint_load(&Force::Along(spring), node, &coordinates.rates, Rule::backward(h).springs, recursion);
    });
}

/// A force of a joint, along its own free directions: they move the node's body against its tree parent.
fn joint_load(force: &Force, node: usize, rates: &[f64], weights: Weights, recursion: &mut Recursion) {
    let flipped = recursion.is_flipped(node);
    let motion = recursion.joint_motion(node, rates);
    match force {
        Force::Along(f) => {
            // τ = g (F₀ − (α k + c) ẋ),   E = (β k + γ c) g gᵀ,   g = Sᵀ row
            let row = if flipped { f.b } else { f.a };
            let row = Wrench::new(row.linear, row.angular);
            let size = f.force - (weights.ahead * f.stiffness + f.damping) * row.power(motion);
            let matrix = weights.position * f.stiffness + weights.velocity * f.damping;
            recursion.load_joint(node, |s| size * row.power(s), |s, t| matrix * row.power(s) * row.power(t));
        }
        Force::Turning(f) => {
            let on_body = if flipped { -f.torque } else { f.torque };
            let torque = on_body - weights.on_velocity(f.stiffness, f.damping) * motion.angular;
            let x = weights.on_acceleration(f.stiffness, f.damping);
            recursion.load_joint(node, |s| torque.dot(s.angular), |s, t| s.angular.dot(x * t.angular));
        }
        Force::Anchored(_) => unreachable!("no force of a joint is between points"),
    }
}

/// A force between a body and the world.
fn body_load(acting: &Acting<'_>, velocity: Twist, weights: Weights, recursion: &mut Recursion) {
    match acting.force {
        Force::Anchored(f) => {
            let force = f.force - weights.on_velocity(f.stiffness, f.damping) * velocity.at(f.r_a);
            let x = Inertia::at_point(f.r_a, weights.on_acceleration(f.stiffness, f.damping));
            recursion.load_body(acting.a, Wrench::at(f.r_a, force), &x);
        }
        Force::Turning(f) => {
            let torque = f.torque - weights.on_velocity(f.stiffness, f.damping) * velocity.angular;
            let x = Inertia { i: weights.on_acceleration(f.stiffness, f.damping), ..Inertia::ZERO };
            recursion.load_body(acting.a, Wrench::new(DVec3::ZERO, torque), &x);
        }
        Force::Along(_) => unreachable!("forces along a row are those of joints"),
    }
}
