//! Flesh over one part of a step, at its end: the nodes where the sum of inertia, damping, strain and contact is least.
//!
//! With x₀, v₀ the free nodes at the start of the part h, bones at given poses at its end, and d where its bone would have carried a node,
//!
//! ```text
//! E(x) = Σ m/2h² |x − x̃|² + Σ γm/2h |x − d|² + Σ w V Ψ(F) + contact,      x̃ = x₀ + h v₀ + h² g                            (1)
//! ```
//! whose gradient is zero where Newton's law holds at the end [backward Euler]. Bones meet the forces at the nodes fixed to them, and the dampers. Nodes and bones
//! are solved together: with g the forces missing at the nodes, W the wrenches on the bones, and K the matrix of (1) over free nodes f and bones b, a
//! Newton step of both has
//!
//! ```text
//! K_ff δx = g − K_fb δq,      W → W* − S δq,   W* = W − K_bf K_ff⁻¹ g,   S = K_bb − K_bf K_ff⁻¹ K_fb                      (2)
//! ```
//! W* and S [Schur complement] are what the solver of the bones needs; it answers with poses, to which the nodes follow by the first equation. A step of the nodes
//! that does not lower E at the new poses is halved: E of (1) only becomes less, and a part of the way is safe too. Factors are kept while they serve.

use super::Flesh;
use super::material::in_range;
use super::touch::{self, Side, Touches};
use crate::input::Input;
use crate::maths::block::{Vector, from_twist, from_wrench, to_wrench};
use crate::maths::lanes::Instructions;
use crate::maths::rotation::{log, skew};
use crate::maths::sparse::{Ldl, Place, Sparse};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, Model, State};
use crate::solver::Solver;
use glam::{DMat3, DVec3};

/// What the solution of a part took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settled {
    /// Newton steps.
    pub newton: u32,
    /// Factorisations.
    pub factorisations: u32,
    /// Whether the last step was within the tolerance.
    pub converged: bool,
    /// Elements outside the range of the material at the end.
    pub outside: u32,
    /// Vertices of the surface that touch something.
    pub touching: u32,
}

/// Scratch of implicit flesh.
pub(crate) struct Implicit {
    /// All nodes, the fixed ones at the end of the part.
    pub(crate) x: Vec<DVec3>,
    /// Free nodes at the start of the part, their targets x̃, and d.
    start: Vec<DVec3>,
    target: Vec<DVec3>,
    drag: Vec<DVec3>,
    trial: Vec<DVec3>,
    /// Forces of strain on all nodes, of contact with obstacles, and of other contact.
    force: Vec<DVec3>,
    outer: Vec<DVec3>,
    inner: Vec<DVec3>,
    touches: Touches,
    /// Right-hand side of (2), by node of the matrix, its free nodes eliminated; and room to solve it.
    reduced: Vec<Vector>,
    solution: Vec<Vector>,
    /// The right-hand side before: minus the gradient of (1) by nodes and bones.
    gradient: Vec<Vector>,
    stiffness: Stiffness,
    /// Poses of bones at the start of the part, and those of the present places.
    before: Vec<Pose>,
    at: Vec<Pose>,
    /// W*, by body.
    pub(crate) wrenches: Vec<Wrench>,
    h: f64,
    gravity: DVec3,
    /// Whether the present places have been met, and the factors are good.
    met: bool,
    factored: bool,
    /// Whether the factors are those of the present places.
    fresh: bool,
    /// How often friction has gone on to the pushes of the present.
    lags: u32,
    /// E at the present places, where it is known.
    energy: Option<f64>,
    /// How far the nodes are from where they should be with bones held, as the last factors tell \[m\].
    pub(crate) off: f64,
    pub(crate) settled: Settled,
}

/// How the stiffness of elements enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curvature {
    /// As it is within the range of the material.
    Exact,
    /// Never negative.
    Projected,
}

/// The matrix of (1): two free nodes share a block of six, bodies come last.
struct Stiffness {
    matrix: Sparse,
    ldl: Ldl,
    /// Of each free node its block and its half of it.
    place: Vec<(u32, usize)>,
    /// The number of blocks of nodes.
    blocks: usize,
    bodies: usize,
    /// Of each element the places of its pairs of nodes (a, b), a ≤ b, in the order of [`PAIRS`].
    slots: Vec<[Option<Place>; 10]>,
    /// Of each element whether one bone holds all of it.
    rigid: Vec<bool>,
    /// Of each free node its own place, and those with its bone.
    own: Vec<Place>,
    with_bone: Vec<Option<[Place; 2]>>,
    /// S: block of bodies i ≥ j.
    schur: Vec<(usize, usize, [[f64; 6]; 6])>,
}

const PAIRS: [(usize, usize); 10] = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)];

/// Flesh is settled when no node is off by more than this share of a cell.
const CLOSE: f64 = 1e-5;
/// Nodes farther off than this share of a cell are brought nearer before bones move with them.
const FAR: f64 = 0.2;
/// Newton steps for that.
const STEPS_ALONE: u32 = 60;
/// Friction goes on to the pushes of the present this often in a part, then keeps them, so that all converges.
const LAGS: u32 = 3;
/// Factors are kept while steps become shorter by this.
const KEEP: f64 = 0.3;
/// Or the nodes are this much nearer than they need be.
const WELL: f64 = 0.01;
/// Halvings of a step before it is given up.
const HALVINGS: u32 = 20;

/// How nodes come to rest at poses of the bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// By the steps that bones take too; those that are far off move by themselves until they are not.
    WithBones,
    /// By themselves: where bones may stay, as bodies that touch something do, and lead nodes nowhere.
    Alone,
}

impl Implicit {
    pub(crate) fn new(model: &Model, flesh: &Flesh) -> Implicit {
        let (n, free, bodies) = (flesh.start.len(), flesh.free, model.bodies().len());
        let stiffness = Stiffness::new(model, flesh);
        let rows = stiffness.matrix.nodes();
        Implicit {
            x: flesh.start.clone(),
            start: vec![DVec3::ZERO; free],
            target: vec![DVec3::ZERO; free],
            drag: vec![DVec3::ZERO; free],
            trial: flesh.start.clone(),
            force: vec![DVec3::ZERO; n],
            outer: vec![DVec3::ZERO; n],
            inner: vec![DVec3::ZERO; n],
            touches: Touches::new(flesh),
            reduced: vec![[0.0; 6]; rows],
            solution: vec![[0.0; 6]; rows],
            gradient: vec![[0.0; 6]; rows],
            stiffness,
            before: vec![Pose::IDENTITY; bodies],
            at: vec![Pose::IDENTITY; bodies],
            wrenches: vec![Wrench::ZERO; bodies],
            h: 0.0,
            gravity: DVec3::ZERO,
            met: false,
            factored: false,
            fresh: false,
            lags: 0,
            energy: None,
            off: 0.0,
            settled: Settled::default(),
        }
    }

    /// Notes the start of a part: its length, and how long before the end of the step it ends.
    pub(crate) fn begin(&mut self, model: &Model, flesh: &Flesh, input: &Input, state: &State, part: (f64, f64)) {
        let h = part.0;
        self.h = h;
        self.gravity = input.gravity;
        self.lags = 0;
        (self.met, self.factored) = (false, false);
        self.settled = Settled::default();
        let instructions = match input.solver {
            Solver::Tree(tree) => tree.instructions,
            _ => Instructions::Best,
        };
        self.stiffness.ldl.use_instructions(instructions);
        for (before, body) in self.before.iter_mut().zip(&state.bodies) {
            *before = body.pose();
        }
        flesh.positions(state, &mut self.x);
        self.touches.find(model, flesh, input, state, part, &self.x);
        for (i, node) in state.nodes.iter().enumerate() {
            self.start[i] = node.position;
            self.target[i] = node.position + node.velocity * h + input.gravity * (h * h);
            self.x[i] = node.position + node.velocity * h;
        }
    }

    /// Goes on to these poses of the bodies: nodes follow by (2), then W* and S are those there.
    pub(crate) fn meet(&mut self, flesh: &Flesh, poses: &[Pose], nodes: Nodes) {
        let near = match nodes {
            Nodes::WithBones => FAR,
            Nodes::Alone => CLOSE,
        };
        self.come(flesh, poses, near * flesh.cell);
    }

    /// Solves the nodes for these poses of the bodies.
    pub(crate) fn settle(&mut self, flesh: &Flesh, poses: &[Pose]) {
        self.come(flesh, poses, CLOSE * flesh.cell);
        // What is left is the whole motion of a short part: it goes too.
        self.go_alone(flesh);
    }

    fn come(&mut self, flesh: &Flesh, poses: &[Pose], near: f64) {
        let close = CLOSE * flesh.cell;
        if !self.met {
            self.start_at(flesh, poses);
        } else if self.at != poses {
            self.follow(flesh, poses);
        }
        for alone in 0..=STEPS_ALONE {
            self.linearise(flesh);
            if self.off <= near || alone == STEPS_ALONE {
                break;
            }
            if !self.go_alone(flesh) {
                break;
            }
            self.settled.newton += 1;
        }
        self.settled.converged = self.off < close;
        self.settled.newton += 1;
        self.wrenches.iter_mut().zip(&self.reduced[self.stiffness.blocks..]).for_each(|(w, r)| *w = to_wrench(r));
    }

    /// How far flesh is from settled: below 1 when it is.
    pub(crate) fn unsettled(&self, flesh: &Flesh) -> f64 {
        self.off / (CLOSE * flesh.cell)
    }

    /// `h² S` of the last factors, `each(i, j, block)` for bodies i ≥ j.
    pub(crate) fn schur(&self) -> &[(usize, usize, [[f64; 6]; 6])] {
        &self.stiffness.schur
    }

    /// The first places of a part: where velocities lead, or carried along with the bones, whatever is better.
    fn start_at(&mut self, flesh: &Flesh, poses: &[Pose]) {
        self.met = true;
        self.place_bones(flesh, poses);
        self.lag(flesh);
        let forward = self.cost(flesh, &self.x);
        self.trial.copy_from_slice(&self.x);
        self.trial[..flesh.free].copy_from_slice(&self.drag);
        if self.cost(flesh, &self.trial) < forward {
            std::mem::swap(&mut self.x, &mut self.trial);
        }
    }

    /// Nodes move as (2) says for the way of the bones to these poses.
    fn follow(&mut self, flesh: &Flesh, poses: &[Pose]) {
        let blocks = self.stiffness.blocks;
        self.solution.copy_from_slice(&self.reduced);
        for ((x, to), from) in self.solution[blocks..].iter_mut().zip(poses).zip(&self.at) {
            let turn = log(to.rotation * from.rotation.conjugate());
            *x = from_twist(Twist::new(to.translation - from.translation, turn));
        }
        self.place_bones(flesh, poses);
        if self.lags < LAGS {
            self.lag(flesh);
        }
        self.go(flesh);
    }

    /// Aims along (2) for bodies that change their velocities by `dv`; returns the slope of E that way.
    pub(crate) fn aim(&mut self, dv: &[Vector]) -> f64 {
        let Stiffness { ldl, bodies, blocks, .. } = &mut self.stiffness;
        self.solution.copy_from_slice(&self.reduced);
        for (x, dv) in self.solution[*blocks..].iter_mut().zip(dv) {
            *x = dv.map(|dv| dv * self.h);
        }
        ldl.expand(*bodies, &mut self.solution);
        let both = self.solution.iter().zip(&self.gradient);
        -both.flat_map(|(x, g)| x.iter().zip(g)).map(|(x, g)| x * g).sum::<f64>()
    }

    /// How much less steeply E falls along a turn than the torques on the bodies say: a body that turns by θ = h w turns on by `J δθ` when w changes, with
    /// `J = 1 + (1 − cos θ)/θ² [θ] + (θ − sin θ)/θ³ [θ]²`, and the step takes the torque of its end as it is.
    pub(crate) fn turning(&self, v: &[Vector], dv: &[Vector]) -> f64 {
        let wrenches = &self.gradient[self.stiffness.blocks..];
        let mut sum = 0.0;
        for ((v, dv), wrench) in v.iter().zip(dv).zip(wrenches) {
            let [theta, turn] = [v, dv].map(|v| DVec3::from_slice(&v[3..]) * self.h);
            let t = theta.length();
            let (b, c) =
                if t < 1e-2 { (0.5, 1.0 / 6.0) } else { ((1.0 - t.cos()) / (t * t), (t - t.sin()) / (t * t * t)) };
            let once = theta.cross(turn);
            sum += DVec3::from_slice(&wrench[3..]).dot(once * b + theta.cross(once) * c);
        }
        sum
    }

    /// Moves the nodes alone, the bodies staying where they are; tells whether E became less.
    pub(crate) fn go_alone(&mut self, flesh: &Flesh) -> bool {
        self.solution.copy_from_slice(&self.reduced);
        self.still_bodies();
        let moved = self.go(flesh);
        self.factored = false;
        moved
    }

    /// E where the bodies are at these poses and the nodes have gone this share of the way aimed at.
    pub(crate) fn try_at(&mut self, flesh: &Flesh, poses: &[Pose], share: f64) -> f64 {
        self.place_bones(flesh, poses);
        self.trial[flesh.free..].copy_from_slice(&self.x[flesh.free..]);
        for (i, &(block, half)) in self.stiffness.place.iter().enumerate() {
            self.trial[i] = self.x[i] + DVec3::from_slice(&self.solution[block as usize][half..half + 3]) * share;
        }
        self.cost(flesh, &self.trial)
    }

    /// Stays where it was tried last, and E was this.
    pub(crate) fn stay(&mut self, flesh: &Flesh, energy: f64) {
        std::mem::swap(&mut self.x, &mut self.trial);
        self.energy = Some(energy);
        if self.lags < LAGS {
            self.lag(flesh);
        }
    }

    /// E at the present places.
    pub(crate) fn cost_here(&mut self, flesh: &Flesh) -> f64 {
        let energy = self.energy.unwrap_or_else(|| self.cost(flesh, &self.x));
        self.energy = Some(energy);
        energy
    }

    /// Makes the next factors those of its places; tells whether the last were not.
    pub(crate) fn refactor(&mut self) -> bool {
        std::mem::take(&mut self.factored) && !self.fresh
    }

    fn lag(&mut self, flesh: &Flesh) {
        let Implicit { touches, x, at, .. } = self;
        touches.lag(flesh, x, &|bone: BodyId| at[bone.index()]);
        self.energy = None;
        self.lags += 1;
    }

    fn still_bodies(&mut self) {
        self.solution[self.stiffness.blocks..].fill([0.0; 6]);
    }

    /// Puts the fixed nodes, and d, where these poses have them.
    fn place_bones(&mut self, flesh: &Flesh, poses: &[Pose]) {
        self.at.copy_from_slice(poses);
        self.energy = None;
        for i in 0..flesh.start.len() {
            let bone = flesh.bones[i].map(|bone| bone.index());
            if i >= flesh.free {
                self.x[i] = bone.map_or(flesh.in_bone[i], |bone| poses[bone].transform_point(flesh.in_bone[i]));
            } else {
                let x0 = self.start[i];
                let carried =
                    |bone: usize| poses[bone].transform_point(self.before[bone].inverse().transform_point(x0));
                self.drag[i] = bone.map_or(x0, carried);
            }
        }
    }

    /// From the bodies' part of `solution` and the reduced right-hand side in the rest of it, goes along the nodes' part, halved until E becomes less.
    /// Tells whether it did.
    fn go(&mut self, flesh: &Flesh) -> bool {
        let bodies = self.stiffness.bodies;
        self.stiffness.ldl.expand(bodies, &mut self.solution);
        let before = self.cost(flesh, &self.x);
        let mut share = 1.0;
        self.trial[flesh.free..].copy_from_slice(&self.x[flesh.free..]);
        for _ in 0..HALVINGS {
            for (i, &(block, half)) in self.stiffness.place.iter().enumerate() {
                let step = DVec3::from_slice(&self.solution[block as usize][half..half + 3]);
                self.trial[i] = self.x[i] + step * share;
            }
            // Near the end the descent is less than the rounding of E. Anything that is no number is no descent.
            if self.cost(flesh, &self.trial) <= before * (1.0 + 1e-13) {
                std::mem::swap(&mut self.x, &mut self.trial);
                self.energy = None;
                return true;
            }
            share *= 0.5;
        }
        false
    }

    /// Forces, W* and S at the present places.
    fn linearise(&mut self, flesh: &Flesh) {
        let last = self.off;
        self.evaluate(flesh);
        if self.factored {
            self.reduce();
            self.fresh = false;
            if self.off < KEEP * last || self.off < WELL * CLOSE * flesh.cell {
                return;
            }
            self.reduced.copy_from_slice(&self.gradient);
        }
        self.factor(flesh);
        self.fresh = true;
        self.reduce();
    }

    /// Forces at the present places, as the right-hand side of (2).
    fn evaluate(&mut self, flesh: &Flesh) {
        let Implicit { force, outer, inner, touches, x, at, wrenches, reduced, stiffness, .. } = self;
        let after = |bone: BodyId| at[bone.index()];
        force.fill(DVec3::ZERO);
        outer.fill(DVec3::ZERO);
        inner.fill(DVec3::ZERO);
        for touch in &touches.all {
            let Some(push) = touches.at(touch, flesh, x, &after) else { continue };
            let forces = if touch.side == Side::Obstacle { &mut *outer } else { &mut *inner };
            touch.shares(
                |vertex, share| {
                    for (i, w) in flesh.elements[vertex.tet as usize].nodes.iter().zip(vertex.weights) {
                        forces[*i as usize] += push.force * (w * share);
                    }
                },
                flesh,
            );
        }
        self.settled.outside = flesh.add_elastic_forces(x, super::Diagonalize::Selective, force) as u32;
        self.settled.touching = touches.count();
        wrenches.fill(Wrench::ZERO);
        touches.add_wrenches(flesh, x, &after, wrenches);
        let (inertia, damping) = weights(self.h, flesh);
        reduced.fill([0.0; 6]);
        for i in 0..flesh.start.len() {
            let pushed = force[i] + outer[i] + inner[i];
            let (lever, on_bone) = if i < flesh.free {
                let m = flesh.masses[i];
                let pull = (x[i] - self.drag[i]) * (m * damping);
                let missing = pushed - (x[i] - self.target[i]) * (m * inertia) - pull;
                let (block, half) = stiffness.place[i];
                reduced[block as usize][half..half + 3].copy_from_slice(&missing.to_array());
                // the damper pulls the bone where the bone would have the node
                (self.drag[i], pull)
            } else {
                (x[i], pushed)
            };
            if let Some(bone) = flesh.bones[i] {
                wrenches[bone.index()] += Wrench::at(lever - after(bone).translation, on_bone);
            }
        }
        for (r, wrench) in reduced[stiffness.blocks..].iter_mut().zip(wrenches.iter()) {
            *r = from_wrench(*wrench);
        }
        self.gradient.copy_from_slice(reduced);
    }

    /// Eliminates the free nodes from the right-hand side, and finds how far they are off.
    fn reduce(&mut self) {
        let Stiffness { ldl, bodies, blocks, .. } = &mut self.stiffness;
        ldl.reduce(*bodies, &mut self.reduced);
        self.solution.copy_from_slice(&self.reduced);
        self.solution[*blocks..].fill([0.0; 6]);
        ldl.expand(*bodies, &mut self.solution);
        let longest = |v: &Vector| {
            let (a, b) = (DVec3::from_slice(&v[..3]), DVec3::from_slice(&v[3..]));
            a.length_squared().max(b.length_squared())
        };
        let off = self.solution[..*blocks].iter().map(longest);
        self.off = off.fold(0.0, |m: f64, x| if x.is_nan() { f64::NAN } else { m.max(x) }).sqrt();
    }

    /// Factors the matrix of (1) at the present places, exact if its pivots are positive, else projected.
    fn factor(&mut self, flesh: &Flesh) {
        let Implicit { touches, x, at, .. } = self;
        touches.note(flesh, x, &|bone: BodyId| at[bone.index()]);
        for curvature in [Curvature::Exact, Curvature::Projected] {
            self.assemble(flesh, curvature);
            self.settled.factorisations += 1;
            let Stiffness { matrix, ldl, bodies, blocks, schur, .. } = &mut self.stiffness;
            schur.clear();
            let hh = self.h * self.h;
            let each = |i: usize, j: usize, block: &[[f64; 6]; 6]| {
                schur.push((i - *blocks, j - *blocks, block.map(|row| row.map(|x| x * hh))));
            };
            self.factored = ldl.condense(matrix, *bodies, each).is_ok();
            if self.factored {
                break;
            }
        }
    }

    fn assemble(&mut self, flesh: &Flesh, curvature: Curvature) {
        let (inertia, damping) = weights(self.h, flesh);
        let Implicit { stiffness, x, at, touches, drag, .. } = self;
        let after = |bone: BodyId| at[bone.index()];
        stiffness.matrix.clear();
        stiffness.add_elements(flesh, x, curvature, &after);
        stiffness.add_touches(flesh, x, touches, &after);
        for i in 0..flesh.free {
            let m = flesh.masses[i];
            let own = DMat3::from_diagonal(DVec3::splat(m * (inertia + damping)));
            stiffness.matrix.add_part(stiffness.own[i], &rows(own));
            let (Some(bone), Some([between, own])) = (flesh.bones[i], stiffness.with_bone[i]) else { continue };
            // the damper: m γ/h over [x; bone], with B the motion of the bone at d
            let r = drag[i] - after(bone).translation;
            let k = DMat3::from_diagonal(DVec3::splat(m * damping));
            stiffness.matrix.add_part(between, &node_bone(-k, r));
            stiffness.matrix.add_part(own, &bone_bone(k, r, r));
        }
    }

    /// E of (1) \[J, but for a constant\].
    fn cost(&self, flesh: &Flesh, x: &[DVec3]) -> f64 {
        let (inertia, damping) = weights(self.h, flesh);
        let mut own = 0.0;
        for i in 0..flesh.free {
            let m = 0.5 * flesh.masses[i];
            own +=
                m * (inertia * x[i].distance_squared(self.target[i]) + damping * x[i].distance_squared(self.drag[i]));
        }
        own + flesh.elastic_energy(x) + self.touches.energy(flesh, x, &|bone: BodyId| self.at[bone.index()])
    }

    /// What bodies feel of flesh in the state that the part begins with: strain and contact, and the dampers of the nodes they refer to.
    pub(crate) fn reactions(&mut self, flesh: &Flesh, state: &State, out: &mut [Wrench]) {
        self.x[..flesh.free].copy_from_slice(&self.start);
        self.at.copy_from_slice(&self.before);
        for i in 0..flesh.free {
            self.drag[i] = self.start[i];
        }
        self.lag(flesh);
        self.evaluate(flesh);
        out.copy_from_slice(&self.wrenches);
        for (i, node) in state.nodes.iter().enumerate() {
            let Some(bone) = flesh.bones[i] else { continue };
            let body = &state.bodies[bone.index()];
            let lever = node.position - body.position;
            let slip = node.velocity - body.velocity.at(lever);
            out[bone.index()] += Wrench::at(lever, slip * (flesh.masses[i] * flesh.material.damping));
        }
        // as `begin` left it
        self.lags = 0;
        for i in 0..flesh.free {
            self.x[i] = self.start[i] + state.nodes[i].velocity * self.h;
        }
    }

    /// Writes the free nodes of flesh whose bones were led.
    pub(crate) fn commit_led(&self, state: &mut State) {
        for (i, node) in state.nodes.iter_mut().enumerate() {
            node.velocity = (self.x[i] - self.start[i]) / self.h;
            node.position = self.x[i];
        }
    }

    /// Writes the free nodes: places of the end, velocities by the way.
    ///
    /// Bones were given `h W*`, and angular momentum `h (c₀ × F + T)` with it, since backward Euler takes levers at the start of the part. What bones and other
    /// bodies gained of flesh the nodes must have lost, to rounding: what is left of strain that has not quite settled, and of levers that
    /// moved, is given back as a motion of all free nodes as one. It is of the order of the tolerance and of h².
    pub(crate) fn commit(&self, flesh: &Flesh, state: &mut State) {
        let h = self.h;
        let (_, damping) = weights(h, flesh);
        let (mut mass, mut centre) = (0.0, DVec3::ZERO);
        // momentum that the nodes should have, less that which they have
        let (mut linear, mut angular) = (DVec3::ZERO, DVec3::ZERO);
        for i in 0..flesh.free {
            let (m, x, x0) = (flesh.masses[i], self.x[i], self.start[i]);
            mass += m;
            centre += x * m;
            let mut from_outside = self.gravity * m + self.outer[i];
            if flesh.bones[i].is_none() {
                from_outside -= (x - self.drag[i]) * (m * damping);
            }
            let (due, had) = (state.nodes[i].velocity * m + from_outside * h, (x - x0) * (m / h));
            linear += due - had;
            angular += x0.cross(due) - x.cross(had);
        }
        for (wrench, before) in self.wrenches.iter().zip(&self.before) {
            linear -= wrench.force * h;
            angular -= (before.translation.cross(wrench.force) + wrench.torque) * h;
        }
        for i in flesh.free..flesh.start.len() {
            let Some(bone) = flesh.bones[i].map(|bone| bone.index()) else { continue };
            let at = self.x[i] - self.at[bone].translation + self.before[bone].translation;
            linear += self.outer[i] * h;
            angular += at.cross(self.outer[i]) * h;
        }
        if mass == 0.0 {
            return;
        }
        centre /= mass;
        let mut inertia = DMat3::ZERO;
        for i in 0..flesh.free {
            let r = skew(self.x[i] - centre);
            inertia += r.transpose() * r * flesh.masses[i];
        }
        let trace = inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z;
        // nodes on a line cannot be turned about it
        let turn = if inertia.determinant() > 1e-6 * trace.powi(3) {
            inertia.inverse() * (angular - centre.cross(linear))
        } else {
            DVec3::ZERO
        };
        for (i, node) in state.nodes.iter_mut().enumerate() {
            node.velocity = (self.x[i] - self.start[i]) / h + linear / mass + turn.cross(self.x[i] - centre);
            node.position = self.x[i];
        }
    }
}

/// 1/h² and γ/h.
fn weights(h: f64, flesh: &Flesh) -> (f64, f64) {
    (1.0 / (h * h), flesh.material.damping / h)
}

impl Stiffness {
    fn new(model: &Model, flesh: &Flesh) -> Stiffness {
        let bodies = model.bodies().len();
        let place = pair_up(flesh);
        let blocks = place.iter().map(|(block, _)| *block as usize + 1).max().unwrap_or(0);
        let mut sizes = vec![0; blocks];
        place.iter().for_each(|&(block, half)| sizes[block as usize] = sizes[block as usize].max(half + 3));
        sizes.extend(vec![6; bodies]);
        // Where the numbers of a node are in the matrix: a free one's own, a fixed one's bone's
        let at = |node: usize| match (place.get(node), flesh.bones[node]) {
            (Some(&(block, half)), _) => Some((block as usize, half)),
            (None, Some(bone)) => Some((blocks + bone.index(), 0)),
            (None, None) => None,
        };
        let mut edges = Vec::new();
        for element in &flesh.elements {
            for (a, b) in PAIRS {
                let [a, b] = [a, b].map(|k| at(element.nodes[k] as usize));
                if let (Some((a, _)), Some((b, _))) = (a, b) {
                    edges.push((a, b));
                }
            }
        }
        let bone_of = |i: usize| flesh.bones[i].map(|bone| blocks + bone.index());
        edges.extend((0..flesh.free).filter_map(|i| Some((place[i].0 as usize, bone_of(i)?))));
        // Bodies that the surface may touch, with whatever carries it
        for (i, body) in model.bodies().iter().enumerate() {
            if touch::may_touch(flesh, BodyId(i as u32), body) {
                let carriers = flesh.surface.vertices.iter().flat_map(|v| flesh.elements[v.tet as usize].nodes);
                edges.extend(carriers.filter_map(|node| Some((at(node as usize)?.0, blocks + i))));
            }
        }
        let matrix = Sparse::new(&sizes, &edges);
        let slots = flesh.elements.iter().map(|element| {
            PAIRS.map(|(a, b)| {
                let [a, b] = [a, b].map(|k| at(element.nodes[k] as usize));
                Some(matrix.place(a?, b?))
            })
        });
        let own = (0..flesh.free).map(|i| at(i).map(|at| matrix.place(at, at)).expect("free nodes are in the matrix"));
        let with_bone = (0..flesh.free).map(|i| {
            let (node, bone) = (at(i)?, (bone_of(i)?, 0));
            Some([matrix.place(node, bone), matrix.place(bone, bone)])
        });
        // Nodes by minimum degree among themselves, then bodies
        let own_edges: Vec<(usize, usize)> = edges.iter().copied().filter(|&(a, b)| a.max(b) < blocks).collect();
        let inner = Ldl::new(&Sparse::new(&sizes[..blocks], &own_edges));
        let order: Vec<u32> = inner.order().iter().copied().chain(blocks as u32..sizes.len() as u32).collect();
        let is_rigid = |element: &super::Element| {
            let bone = |k: usize| {
                let node = element.nodes[k] as usize;
                if node < flesh.free { None } else { Some(flesh.bones[node]) }
            };
            (0..4).all(|k| bone(k).is_some() && bone(k) == bone(0))
        };
        Stiffness {
            rigid: flesh.elements.iter().map(is_rigid).collect(),
            slots: slots.collect(),
            own: own.collect(),
            with_bone: with_bone.collect(),
            ldl: Ldl::in_order(&matrix, &order),
            place,
            blocks,
            bodies,
            matrix,
            schur: Vec::with_capacity(bodies * (bodies + 1) / 2),
        }
    }

    /// Adds the stiffness of all elements.
    fn add_elements(&mut self, flesh: &Flesh, x: &[DVec3], curvature: Curvature, after: &impl Fn(BodyId) -> Pose) {
        for (t, element) in flesh.elements.iter().enumerate() {
            if self.rigid[t] {
                continue;
            }
            let f = element.gradient(x);
            let [_, g1, g2, g3] = element.shape_gradients();
            let blocks = if curvature == Curvature::Exact && in_range(&f) {
                flesh.lame.blocks_within(&f, [g1, g2, g3])
            } else {
                let modes = flesh.lame.modes(&f);
                let [g1, g2, g3] = [g1, g2, g3].map(|g| modes.v.transpose() * g);
                [(g1, g1), (g1, g2), (g1, g3), (g2, g2), (g2, g3), (g3, g3)].map(|(a, b)| modes.block(a, b))
            };
            // K_ab for a, b of 1 to 3; node 0 moves against all: K_0b = −Σ K_ab
            let [k11, k12, k13, k22, k23, k33] = blocks.map(|block| block * element.filled);
            let k01 = -(k11 + k12.transpose() + k13.transpose());
            let k02 = -(k12 + k22 + k23.transpose());
            let k03 = -(k13 + k23 + k33);
            let k00 = -(k01 + k02 + k03);
            // rounding must not make the diagonal asymmetric
            let k00 = (k00 + k00.transpose()) * 0.5;
            let k = [k00, k01, k02, k03, k11, k12, k13, k22, k23, k33];
            for (pair, k) in k.into_iter().enumerate() {
                self.add_pair(flesh, x, (t, pair), k, after);
            }
        }
    }

    /// Adds the stiffness of all touches, through the nodes that carry their vertices.
    ///
    /// Where the surface meets itself the blocks between both sides are left out, and those of each side doubled: with `w` the weights of all
    /// nodes, `w wᵀ ≤ 2 diag(w_a w_aᵀ, w_b w_bᵀ)`, and for the corners of a triangle `(Σ b_j y_j)² ≤ Σ b_j y_j²`. So every step goes down.
    fn add_touches(&mut self, flesh: &Flesh, x: &[DVec3], touches: &Touches, after: &impl Fn(BodyId) -> Pose) {
        for touch in &touches.all {
            let Some(push) = touches.at(touch, flesh, x, after) else { continue };
            let double = if let Side::Own(..) = touch.side { 2.0 } else { 1.0 };
            touch.shares(
                |vertex, share| {
                    for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
                        let k = push.stiffness * (vertex.weights[a] * vertex.weights[b] * share.abs() * double);
                        self.add_pair(flesh, x, (vertex.tet as usize, pair), k, after);
                    }
                },
                flesh,
            );
            if let Side::Body(body) = touch.side {
                let r = touch.place(flesh, x) - after(body).translation;
                let on_body = (self.blocks + body.index(), 0);
                let own = self.matrix.place(on_body, on_body);
                self.matrix.add_part(own, &bone_bone(push.stiffness, r, r));
                let vertex = &flesh.surface.vertices[touch.vertex as usize];
                for (node, w) in flesh.elements[vertex.tet as usize].nodes.iter().zip(vertex.weights) {
                    let (node, k) = (*node as usize, push.stiffness * -w);
                    match (self.place.get(node), flesh.bones[node]) {
                        (Some(&(block, half)), _) => {
                            let between = self.matrix.place((block as usize, half), on_body);
                            self.matrix.add_part(between, &node_bone(k, r));
                        }
                        (None, Some(bone)) => {
                            let between = self.matrix.place((self.blocks + bone.index(), 0), on_body);
                            self.matrix.add_part(between, &bone_bone(k, arm(flesh, x, node, after), r));
                        }
                        (None, None) => {}
                    }
                }
            }
        }
    }

    /// Adds `K_ab` of a pair of nodes of an element, where bones are concerned through their motion.
    fn add_pair(
        &mut self,
        flesh: &Flesh,
        x: &[DVec3],
        (element, pair): (usize, usize),
        k: DMat3,
        after: &impl Fn(BodyId) -> Pose,
    ) {
        let Some(slot) = self.slots[element][pair] else { return };
        let (a, b) = PAIRS[pair];
        let [a, b] = [a, b].map(|k| flesh.elements[element].nodes[k] as usize);
        match (a < flesh.free, b < flesh.free) {
            (true, true) => self.matrix.add_part(slot, &rows(k)),
            (true, false) => self.matrix.add_part(slot, &node_bone(k, arm(flesh, x, b, after))),
            (false, true) => {
                let part = node_bone(k.transpose(), arm(flesh, x, a, after));
                self.matrix.add_part(slot, &transposed(&part));
            }
            (false, false) => {
                let part = bone_bone(k, arm(flesh, x, a, after), arm(flesh, x, b, after));
                self.matrix.add_part(slot, &part);
                if a != b && flesh.bones[a] == flesh.bones[b] {
                    // both halves of the pair fall into one diagonal block
                    self.matrix.add_part(slot, &transposed(&part));
                }
            }
        }
    }
}

/// From the centre of mass of its bone to a fixed node.
fn arm(flesh: &Flesh, x: &[DVec3], node: usize, after: &impl Fn(BodyId) -> Pose) -> DVec3 {
    x[node] - flesh.bones[node].map_or(DVec3::ZERO, |bone| after(bone).translation)
}

/// Free nodes two by two, neighbours as far as can be: block and half of each.
fn pair_up(flesh: &Flesh) -> Vec<(u32, usize)> {
    let mut shared: std::collections::BTreeMap<(u32, u32), u32> = std::collections::BTreeMap::new();
    for element in &flesh.elements {
        for a in element.nodes {
            for b in element.nodes {
                if a < b && (b as usize) < flesh.free {
                    *shared.entry((a, b)).or_default() += 1;
                }
            }
        }
    }
    // Those that share most elements first
    let mut pairs: Vec<((u32, u32), u32)> = shared.into_iter().collect();
    pairs.sort_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    let mut place: Vec<Option<(u32, usize)>> = vec![None; flesh.free];
    let mut blocks = 0;
    for ((a, b), _) in pairs {
        let (a, b) = (a as usize, b as usize);
        if place[a].is_none() && place[b].is_none() {
            (place[a], place[b]) = (Some((blocks, 0)), Some((blocks, 3)));
            blocks += 1;
        }
    }
    for place in place.iter_mut().filter(|place| place.is_none()) {
        *place = Some((blocks, 0));
        blocks += 1;
    }
    place.into_iter().flatten().collect()
}

fn rows(m: DMat3) -> [[f64; 3]; 3] {
    m.transpose().to_cols_array_2d()
}

/// `K B` with `B = [1, −[r]]`, the motion of a bone at the lever r.
fn node_bone(k: DMat3, r: DVec3) -> [[f64; 6]; 3] {
    let (linear, angular) = (rows(k), rows(-(k * skew(r))));
    std::array::from_fn(|i| std::array::from_fn(|j| if j < 3 { linear[i][j] } else { angular[i][j - 3] }))
}

/// `B_aᵀ K B_b`.
fn bone_bone(k: DMat3, r_a: DVec3, r_b: DVec3) -> [[f64; 6]; 6] {
    let upper = node_bone(k, r_b);
    let lower = node_bone(skew(r_a) * k, r_b); // −[r]ᵀ = [r]
    std::array::from_fn(|i| if i < 3 { upper[i] } else { lower[i - 3] })
}

fn transposed<const R: usize, const C: usize>(m: &[[f64; C]; R]) -> [[f64; R]; C] {
    std::array::from_fn(|c| std::array::from_fn(|r| m[r][c]))
}
