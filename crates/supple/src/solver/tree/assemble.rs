//! The linear system of one part `h` of a step, as blocks in tree order [Hernández 2011, eq. 3, 4, 6].
//!
//! ```text
//! [ A  Jᵀ ] [ v ]   [ b    ]      A = M + h² K + h D
//! [ J  0  ] [ λ ] = [ −C/h ]      b = M v0 + h F,   F without what is linear in velocity
//! ```
//! with v the twists at the end, λ the impulses of the joints (acting as −Jᵀλ), and all blocks at the start pose. On a tree A
//! couples a body only with its parent. The gyroscopic torque acts before the solve, so that A keeps its symmetry.
//!
//! This is the system in the open: plain blocks that can be read, changed and solved in any way. `kkt.rs` solves it
//! by the paper's elimination.

use crate::forces::{self, Acting, Derivatives, PairBlock, Source};
use crate::input::Input;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, from_wrench, to_wrench};
use crate::maths::rotation::turned_inertia;
use crate::maths::{Twist, Wrench};
use crate::model::joint::Row;
use crate::model::{BodyId, JointId, Model, State};
use crate::step::StepError;
use glam::{DMat3, DVec3};

/// How the gyroscopic torque enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gyroscopic {
    /// By an implicit step of its own before the solve.
    Split,
    /// Not at all.
    Omit,
}

/// Which of the possible systems is assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Derivatives of forces.
    pub derivatives: Derivatives,
    /// The gyroscopic torque.
    pub gyroscopic: Gyroscopic,
}

/// The unknowns of a node, or a right-hand side for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unknown {
    /// Twist of the body, [linear; angular].
    pub body: Vector,
    /// Impulses of the joint that leads to it, one for each row.
    pub joint: Vector,
}

/// A body with the joint that leads to it. Index p stands for the parent.
#[derive(Clone, Copy, Debug)]
pub struct SystemNode {
    /// The body.
    pub body: BodyId,
    /// Its joint; `None` for a floating body.
    pub joint: Option<JointId>,
    /// Index of the parent's node plus one; 0 is the world.
    pub parent: usize,
    /// Number of nodes of the subtree, this one included.
    pub subtree: usize,
    /// A_ii.
    pub a: Block,
    /// A_ip.
    pub a_up: Block,
    /// A_pi.
    pub a_down: Block,
    /// J of the joint on this body, one row for each constrained direction.
    pub j: Block,
    /// J of the joint on the parent.
    pub j_up: Block,
    /// b above, and −C/h.
    pub rhs: Unknown,
    /// The part of the joint's own forces in A and b, between its child a and its parent b.
    own: PairBlock,
    own_impulse: Wrench,
}

/// The system, by nodes in tree order: parents first, each subtree contiguous.
#[derive(Clone, Debug)]
pub struct System {
    /// In the order of [`Topology::nodes`](crate::model::Topology::nodes).
    pub nodes: Vec<SystemNode>,
    /// How many joint limits act.
    pub limits_active: u32,
}

/// An anchor spring, by its index, that couples two bodies which no joint of the tree connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncoupled(pub usize);

/// Whether the model can be solved in this form: a tree, its anchor springs only between neighbours or to the world.
pub fn check(model: &Model) -> Result<(), StepError> {
    if let Some(&id) = model.topology().loops.first() {
        return Err(StepError::loops("tree", model, id));
    }
    let topology = model.topology();
    for spring in model.anchor_springs() {
        let Some(b) = spring.b else { continue };
        let (a, b) = (topology.node_of[spring.a.index()], topology.node_of[b.index()]);
        if topology.nodes[a].parent != b + 1 && topology.nodes[b].parent != a + 1 {
            return Err(StepError::Input {
                part: "the solver's scheme".into(),
                what: format!(
                    "anchor spring \"{}\" connects bodies that no joint connects, which this scheme does not take",
                    spring.name
                ),
            });
        }
    }
    Ok(())
}

impl System {
    /// Room for the system of `model`, which is a tree.
    pub fn new(model: &Model) -> System {
        let empty = Block::zeros(6, 6);
        let nodes = model.topology().nodes.iter().map(|node| {
            let rows = node.joint.map_or(0, |id| model.joint(id).mask.rows());
            SystemNode {
                body: node.body,
                joint: node.joint,
                parent: node.parent,
                subtree: node.subtree,
                a: empty,
                a_up: empty,
                a_down: empty,
                j: Block::zeros(rows, 6),
                j_up: Block::zeros(rows, 6),
                rhs: Unknown::default(),
                own: PairBlock::ZERO,
                own_impulse: Wrench::ZERO,
            }
        });
        System { nodes: nodes.collect(), limits_active: 0 }
    }

    /// Assembles the system at `state` for a part `h`.
    pub fn assemble(
        &mut self,
        model: &Model,
        input: &Input,
        state: &State,
        h: f64,
        options: Options,
    ) -> Result<(), Uncoupled> {
        // A = M, b = M v0 + h m g + h W
        self.set_inertia(model, state);
        for node in &mut self.nodes {
            let (body, s) = (model.body(node.body), &state.bodies[node.body.index()]);
            let omega = match options.gyroscopic {
                Gyroscopic::Split => {
                    let omega_in_body = s.orientation.conjugate() * s.velocity.angular;
                    s.orientation * forces::gyroscopic(body.inertia, omega_in_body, h)
                }
                Gyroscopic::Omit => s.velocity.angular,
            };
            let start = Twist::new(s.velocity.linear + input.gravity * h, omega);
            node.rhs.body = node.a.times_vector(&from_twist(start));
        }
        for (body, wrench) in &input.wrenches {
            let node = model.topology().node_of[body.index()];
            add_scaled(&mut self.nodes[node].rhs.body, h, &from_wrench(*wrench));
        }

        // A += h² K + h D, b += h F
        let mut fault = Ok(());
        self.limits_active = forces::collect(model, input, state, h, options.derivatives, |acting| {
            let added = self.add_force(model, &acting, h);
            fault = fault.and(added);
        });
        fault?;

        // J v = −C/h
        self.set_rows(model, state, |row, _| -row.residual / h);
        Ok(())
    }

    /// A = M at the poses of `state`, nothing coupled, all right-hand sides zero.
    pub(super) fn set_inertia(&mut self, model: &Model, state: &State) {
        for node in &mut self.nodes {
            let (body, s) = (model.body(node.body), &state.bodies[node.body.index()]);
            let mass = DMat3::from_diagonal(DVec3::splat(body.mass));
            let inertia = turned_inertia(s.orientation, body.inertia);
            node.a = Block::from_quarters(mass, DMat3::ZERO, DMat3::ZERO, inertia);
            node.a_up = Block::zeros(6, 6);
            node.a_down = Block::zeros(6, 6);
            node.own = PairBlock::ZERO;
            node.own_impulse = Wrench::ZERO;
            node.rhs = Unknown::default();
        }
    }

    /// J at `state`, and what each row is to yield: `value(row, J V)` with V the velocities of `state`.
    pub(super) fn set_rows(&mut self, model: &Model, state: &State, value: impl Fn(&Row, f64) -> f64) {
        for (node, place) in self.nodes.iter_mut().zip(&model.topology().nodes) {
            let Some(id) = node.joint else { continue };
            let joint = model.joint(id);
            let sides = model.sides(joint, state);
            for (k, row) in joint.rows(&sides).iter().enumerate() {
                let (a, b) = (from_twist(row.a), from_twist(row.b));
                let (this, parent) = if place.flipped { (b, a) } else { (a, b) };
                node.j.set_row(k, &this);
                if node.parent > 0 {
                    node.j_up.set_row(k, &parent);
                }
                let (va, vb) = (from_twist(sides.a_velocity), from_twist(sides.b_velocity));
                let rate: f64 = (0..6).map(|i| a[i] * va[i] + b[i] * vb[i]).sum();
                node.rhs.joint[k] = value(row, rate);
            }
        }
    }

    /// Adds one force: `A += h² K + h D`, `b += h W`.
    pub fn add_force(&mut self, model: &Model, acting: &Acting<'_>, h: f64) -> Result<(), Uncoupled> {
        let block = acting.force.block(h * h, h);
        let [on_a, on_b] = acting.force.wrenches();

        let a = model.topology().node_of[acting.a.index()];
        let b = acting.b.map(|b| model.topology().node_of[b.index()]);
        self.nodes[a].a.add_scaled(1.0, &block.aa);
        add_scaled(&mut self.nodes[a].rhs.body, h, &from_wrench(on_a));
        if let Some(b) = b {
            self.nodes[b].a.add_scaled(1.0, &block.bb);
            add_scaled(&mut self.nodes[b].rhs.body, h, &from_wrench(on_b));
            // The coupling belongs to whichever of the two is the child in the tree.
            let (child, up, down) = if self.nodes[a].parent == b + 1 {
                (a, &block.ab, &block.ba)
            } else if self.nodes[b].parent == a + 1 {
                (b, &block.ba, &block.ab)
            } else {
                let Source::AnchorSpring(k) = acting.source else {
                    unreachable!("the joints of a tree connect neighbours")
                };
                return Err(Uncoupled(k));
            };
            self.nodes[child].a_up.add_scaled(1.0, up);
            self.nodes[child].a_down.add_scaled(1.0, down);
        }
        if let Some(node) = self.own_node(model, acting) {
            node.own.add_scaled(1.0, &block);
            node.own_impulse += on_a * h;
        }
        Ok(())
    }

    /// The node of the joint a force comes from, if it comes from one.
    fn own_node(&mut self, model: &Model, acting: &Acting<'_>) -> Option<&mut SystemNode> {
        let (Source::Joint(id) | Source::Motor(id) | Source::Limit(id)) = acting.source else { return None };
        let node_of = |body: BodyId| model.topology().node_of[body.index()];
        let (a, b) = (node_of(acting.a), acting.b.map(node_of));
        let node = if self.nodes[a].joint == Some(id) { a } else { b? };
        Some(&mut self.nodes[node])
    }

    /// Adds one force without derivatives: `b += W` with damping at the velocities of `state`.
    pub(super) fn add_explicit(&mut self, model: &Model, state: &State, acting: &Acting<'_>) {
        let velocity = |body: BodyId| state.bodies[body.index()].velocity;
        let [on_a, on_b] = acting.force.wrenches_at(velocity(acting.a), acting.b.map_or(Twist::ZERO, velocity));
        let node_of = &model.topology().node_of;
        add_scaled(&mut self.nodes[node_of[acting.a.index()]].rhs.body, 1.0, &from_wrench(on_a));
        if let Some(b) = acting.b {
            add_scaled(&mut self.nodes[node_of[b.index()]].rhs.body, 1.0, &from_wrench(on_b));
        }
        if let Some(node) = self.own_node(model, acting) {
            node.own_impulse += on_a;
        }
    }

    /// The right-hand sides of all nodes.
    pub fn load(&self, x: &mut [Unknown]) {
        for (x, node) in x.iter_mut().zip(&self.nodes) {
            *x = node.rhs;
        }
    }

    /// `r = z − H x`.
    pub fn residual(&self, x: &[Unknown], r: &mut [Unknown]) {
        self.load(r);
        for (i, node) in self.nodes.iter().enumerate() {
            add_scaled(&mut r[i].body, -1.0, &node.a.times_vector(&x[i].body));
            add_scaled(&mut r[i].body, -1.0, &node.j.transpose_times_vector(&x[i].joint));
            add_scaled(&mut r[i].joint, -1.0, &node.j.times_vector(&x[i].body));
            if let Some(p) = node.parent.checked_sub(1) {
                add_scaled(&mut r[i].body, -1.0, &node.a_up.times_vector(&x[p].body));
                add_scaled(&mut r[p].body, -1.0, &node.a_down.times_vector(&x[i].body));
                add_scaled(&mut r[p].body, -1.0, &node.j_up.transpose_times_vector(&x[i].joint));
                add_scaled(&mut r[i].joint, -1.0, &node.j_up.times_vector(&x[p].body));
            }
        }
    }

    /// The impulse that the joint of node `i` exerts on its child (side a) when `x` solves the system: constraint, spring,
    /// limit and motor, `h W_a − (h² K + h D)_a v − J_aᵀ λ`. Of a system of accelerations it is the force.
    pub fn joint_impulse(&self, model: &Model, x: &[Unknown], i: usize) -> Wrench {
        let node = &self.nodes[i];
        let still = [0.0; 6];
        let parent = node.parent.checked_sub(1).map_or(&still, |p| &x[p].body);
        let flipped = model.topology().nodes[i].flipped;
        let (v_a, v_b, j_a) = if flipped { (parent, &x[i].body, &node.j_up) } else { (&x[i].body, parent, &node.j) };
        let mut impulse = from_wrench(node.own_impulse);
        add_scaled(&mut impulse, -1.0, &node.own.aa.times_vector(v_a));
        add_scaled(&mut impulse, -1.0, &node.own.ab.times_vector(v_b));
        add_scaled(&mut impulse, -1.0, &j_a.transpose_times_vector(&x[i].joint));
        to_wrench(&impulse)
    }
}
