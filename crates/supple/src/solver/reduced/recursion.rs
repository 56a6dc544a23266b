//! Recursive hybrid dynamics: forward, inverse and mixed, in time linear in the number of bodies [Kim 2008, App. A.1, Table 3].
//!
//! Of each joint either the torque is known or the acceleration; three passes find the other. Index i is a body, p its tree parent, `A` short for
//! `Ad(T_pi⁻¹)`; motions and forces are in body axes at the centre of mass (`spatial.rs`).
//!
//! ```text
//! forward:   V_i = A V_p + S q̇          η_i = ad(V_i) S q̇ + Ṡ q̇           B_i = −ad(V_i)ᵀ J V_i − F_ext
//! backward:  Ĵ_i = J_i + Σ Aᵀ Π A        B_i += Σ Aᵀ β                      over the children
//!   torque:        Ψ = (Sᵀ Ĵ S + E)⁻¹    Π = Ĵ − Ĵ S Ψ Sᵀ Ĵ                β = B + Ĵ (η + S Ψ (τ − Sᵀ (Ĵ η + B)))
//!   acceleration:                        Π = Ĵ                            β = B + Ĵ (η + S q̈)
//! forward:   a = A V̇_p,  V̇_ground = [0; −g]
//!   torque:        q̈ = Ψ (τ − Sᵀ Ĵ (a + η) − Sᵀ B)
//!   V̇_i = a + η + S q̈                    F_i = Ĵ V̇_i + B_i
//!   acceleration:  τ = Sᵀ F_i
//! ```
//! `V̇` is the derivative of the components of V. With gravity as the ground's acceleration it is what a scale on the body would feel: the true
//! acceleration of the centre of mass is `R (v̇ + ω × v) + g`; the paper leaves out this `+ g` beside its equation 21.
//!
//! `E` is not in the paper: a torque `τ − E q̈` instead of `τ`, which is how springs and dampers of the joint become implicit. Implicit loads of a
//! body enter its `J_i`. [Kim 2008, Table 6], the derivatives, are the last two passes with other right-hand sides: no drift, no gravity
//! ([`Recursion::respond`]).

use super::particles::Particle;
use super::spatial::{Inertia, Passage, cross, pair};
use crate::input::Input;
use crate::maths::{Pose, Twist, Wrench};
use crate::model::coordinates::{Directions, Link};
use crate::model::{BodyId, Coordinates, JointId, Model};
use glam::{DMat3, DVec3};
use std::ops::Range;

/// What is known of a joint before the dynamics are solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Given {
    /// Its torques (forces along translations); its accelerations are found.
    #[default]
    Torque,
    /// Its accelerations; the torques it takes are found.
    Acceleration,
}

/// The inertia that a joint moves is zero, or some number has grown beyond all bounds; the body that hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the joint of body {} cannot be solved for its acceleration", .0.0)]
pub struct Singular(pub BodyId);

/// One body with the joint that leads to it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    // Constant.
    pub(super) body: BodyId,
    /// Index of the parent's node plus one; 0 is the world.
    pub(super) parent: usize,
    link: Link,
    /// The joint's rates among all.
    pub(super) rates: Range<usize>,
    /// Its pivot among all.
    pivot: Range<usize>,
    pub(super) mass: f64,
    pub(super) inertia: DMat3,
    // Written by `place`.
    pub(super) world: Pose,
    pub(super) passage: Passage,
    /// S in the child's joint frame, and that frame in the body.
    joint: Directions,
    body_from_joint: Pose,
    // Written by `set_rates`.
    pub(super) velocity: Twist,
    // Written by callers.
    pub(super) given: Given,
    /// Implicit loads, and what else acts on the body from outside.
    load: Inertia,
    pub(super) applied: Wrench,
    // Written by `factor`.
    articulated: Inertia,
}

/// Right-hand sides and solutions of the last two passes.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// By node: own B, before its children's.
    pub(super) bias: Vec<Wrench>,
    /// By node: η.
    drift: Vec<Twist>,
    /// The ground's V̇.
    ground: Twist,
    /// By rate: τ or q̈, whichever is given.
    pub(super) given: Vec<f64>,
    /// By node: B.
    total: Vec<Wrench>,
    /// By node: V̇.
    pub(super) acceleration: Vec<Twist>,
    /// By rate: q̈ or τ, whichever is not given.
    pub(super) found: Vec<f64>,
}

impl Sweep {
    fn new(nodes: usize, rates: usize) -> Sweep {
        Sweep {
            bias: vec![Wrench::ZERO; nodes],
            drift: vec![Twist::ZERO; nodes],
            ground: Twist::ZERO,
            given: vec![0.0; rates],
            total: vec![Wrench::ZERO; nodes],
            acceleration: vec![Twist::ZERO; nodes],
            found: vec![0.0; rates],
        }
    }
}

/// The factored tree: what both last passes read.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// By rate: S, in body axes at the centre of mass.
    pub(super) directions: Vec<Twist>,
    /// By rate: Ĵ S.
    carried: Vec<Wrench>,
    /// By node, lower triangle row by row: E.
    implicit: Vec<f64>,
    /// The same: LDLᵀ of `Sᵀ Ĵ S + E`.
    pivots: Vec<f64>,
}

/// The recursions of one model: what they need, and what they found.
///
/// ```
/// use supple::model::Coordinates;
/// use supple::solver::reduced::{Recursion, forward, inverse};
/// use supple::*;
/// let scene = Scene::parse("robot").unwrap();
/// let coordinates = Coordinates::of(&scene.model, &scene.state);
/// let mut recursion = Recursion::new(&scene.model);
/// // Limp: how does it start to fall?
/// let torques = vec![0.0; coordinates.rates.len()];
/// forward(&scene.input, &coordinates, &torques, &mut recursion)?;
/// let falling = recursion.accelerations().to_vec();
/// // Which torques make it move just so? None.
/// inverse(&scene.input, &coordinates, &falling, &mut recursion)?;
/// assert!(recursion.torques().iter().all(|torque| torque.abs() < 1e-9));
/// # Ok::<(), supple::solver::reduced::Singular>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recursion {
    pub(super) tree: Tree,
    pub(super) main: Sweep,
    pub(super) response: Sweep,
    torques: Vec<f64>,
    accelerations: Vec<f64>,
    gravity: DVec3,
    /// By body: its node.
    pub(super) node_of: Vec<usize>,
}

/// What is known before the dynamics are solved.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// By joint; torques where it ends. Floating bodies are moved by forces alone.
    pub given: &'a [Given],
    /// By rate: torques or accelerations.
    pub values: &'a [f64],
    /// Point masses that hang on the bodies.
    pub particles: &'a [Particle],
}

/// Accelerations of all joints under these torques, by rate. Gravity and wrenches are those of `input`; springs, motors and limits
/// of the model do not act by themselves.
pub fn forward(
    input: &Input,
    coordinates: &Coordinates,
    torques: &[f64],
    recursion: &mut Recursion,
) -> Result<(), Singular> {
    hybrid(input, coordinates, Known { given: &[], values: torques, particles: &[] }, recursion)
}

/// The torques that give all joints these accelerations, by rate; those of a floating body are the wrench that would have to hold it.
pub fn inverse(
    input: &Input,
    coordinates: &Coordinates,
    accelerations: &[f64],
    recursion: &mut Recursion,
) -> Result<(), Singular> {
    recursion.place(coordinates);
    recursion.surround(input);
    recursion.tree.nodes.iter_mut().for_each(|node| node.given = Given::Acceleration);
    recursion.main.given.copy_from_slice(accelerations);
    recursion.solve()
}

/// Of each joint the torque or the acceleration is given, the other found: [`Recursion::torques`], [`Recursion::accelerations`].
pub fn hybrid(
    input: &Input,
    coordinates: &Coordinates,
    known: Known<'_>,
    recursion: &mut Recursion,
) -> Result<(), Singular> {
    recursion.place(coordinates);
    recursion.surround(input);
    known.particles.iter().for_each(|particle| recursion.hang(particle));
    for (k, given) in known.given.iter().enumerate() {
        if let Some(node) = coordinates.node_of_joint(JointId(k as u32)) {
            recursion.tree.nodes[node].given = *given;
        }
    }
    recursion.main.given.copy_from_slice(known.values);
    recursion.solve()
}

impl Recursion {
    /// Room for the recursions of `model`. Joints that close loops do not act.
    pub fn new(model: &Model) -> Recursion {
        let (mut rates, mut pivots) = (0, 0);
        let nodes: Vec<Node> = model
            .topology()
            .nodes
            .iter()
            .map(|place| {
                let (body, link) = (model.body(place.body), Link::new(model, place));
                let free = link.mask.free();
                let triangle = free * (free + 1) / 2;
                let node = Node {
                    body: place.body,
                    parent: place.parent,
                    link,
                    rates: rates..rates + free,
                    pivot: pivots..pivots + triangle,
                    mass: body.mass,
                    inertia: body.inertia,
                    world: Pose::IDENTITY,
                    passage: Passage::HERE,
                    joint: Directions::default(),
                    body_from_joint: Pose::IDENTITY,
                    velocity: Twist::ZERO,
                    given: Given::Torque,
                    load: Inertia::ZERO,
                    applied: Wrench::ZERO,
                    articulated: Inertia::ZERO,
                };
                (rates, pivots) = (node.rates.end, node.pivot.end);
                node
            })
            .collect();
        Recursion {
            main: Sweep::new(nodes.len(), rates),
            response: Sweep::new(nodes.len(), rates),
            torques: vec![0.0; rates],
            accelerations: vec![0.0; rates],
            gravity: DVec3::ZERO,
            node_of: model.topology().node_of.clone(),
            tree: Tree {
                nodes,
                directions: vec![Twist::ZERO; rates],
                carried: vec![Wrench::ZERO; rates],
                implicit: vec![0.0; pivots],
                pivots: vec![0.0; pivots],
            },
        }
    }

    /// The first pass: poses, directions, velocities. Nothing acts from outside yet, and every torque is given as zero.
    pub(super) fn place(&mut self, coordinates: &Coordinates) {
        for i in 0..self.tree.nodes.len() {
            let node = &self.tree.nodes[i];
            let link = node.link;
            let joint = link.mask.pose(&coordinates.positions[coordinates.position_range(i)]);
            let above = node.parent.checked_sub(1).map_or(Pose::IDENTITY, |p| self.tree.nodes[p].world);
            let local = link.pose(joint);

            // S, from the child's joint frame to the body
            let in_joint = link.mask.directions(joint.rotation);
            let body_from_joint = link.body_from_joint(joint);
            for (s, column) in self.tree.directions[node.rates.clone()].iter_mut().zip(in_joint.iter()) {
                *s = link.carry(&body_from_joint, *column);
            }

            let node = &mut self.tree.nodes[i];
            node.world = above.then(local);
            node.world.rotation = node.world.rotation.normalize();
            node.passage = Passage { rotation: DMat3::from_quat(local.rotation), offset: local.translation };
            (node.joint, node.body_from_joint) = (in_joint, body_from_joint);
            (node.given, node.load, node.applied) = (Given::Torque, Inertia::ZERO, Wrench::ZERO);
        }
        self.tree.implicit.fill(0.0);
        self.main.given.fill(0.0);
        self.set_gravity(DVec3::ZERO);
        self.set_rates(&coordinates.rates);
    }

    /// The velocities of the first pass, at the poses it found: `V = A V_p + S q̇`, `η = ad(V) S q̇ + Ṡ q̇`.
    pub(super) fn set_rates(&mut self, rates: &[f64]) {
        for i in 0..self.tree.nodes.len() {
            let node = &self.tree.nodes[i];
            let above = node.parent.checked_sub(1).map_or(Twist::ZERO, |p| self.tree.nodes[p].velocity);
            let rates = &rates[node.rates.clone()];
            let own = node.link.carry(&node.body_from_joint, node.joint.times(rates));
            let turning = node.link.carry(&node.body_from_joint, node.link.mask.drift(&node.joint, rates));
            let velocity = node.passage.down(above) + own;
            self.main.drift[i] = cross(velocity, own) + turning;
            self.tree.nodes[i].velocity = velocity;
        }
    }

    /// Gravity and wrenches of `input`.
    pub(super) fn surround(&mut self, input: &Input) {
        self.set_gravity(input.gravity);
        for (body, wrench) in &input.wrenches {
            self.push(*body, *wrench);
        }
    }

    fn set_gravity(&mut self, gravity: DVec3) {
        self.gravity = gravity;
        self.main.ground = Twist::new(-gravity, DVec3::ZERO);
    }

    /// Adds a force from outside on a body: world axes, about its centre of mass.
    pub(super) fn push(&mut self, body: BodyId, wrench: Wrench) {
        let node = &mut self.tree.nodes[self.node_of[body.index()]];
        node.applied += node.in_body_axes(wrench);
    }

    /// The second and the third pass.
    pub(super) fn solve(&mut self) -> Result<(), Singular> {
        self.factor()?;
        self.solve_again();
        Ok(())
    }

    /// The second pass as far as it concerns inertias.
    pub(super) fn factor(&mut self) -> Result<(), Singular> {
        self.tree.factor()
    }

    /// The rest of the second pass, and the third: also with other velocities, torques or forces than before.
    pub(super) fn solve_again(&mut self) {
        for (bias, node) in self.main.bias.iter_mut().zip(&self.tree.nodes) {
            *bias = node.bias();
        }
        self.tree.sweep(&mut self.main);
        self.tell();
    }

    /// Sorts what was given and found into torques and accelerations.
    fn tell(&mut self) {
        for node in &self.tree.nodes {
            for k in node.rates.clone() {
                let (given, found) = (self.main.given[k], self.main.found[k]);
                (self.torques[k], self.accelerations[k]) = match node.given {
                    Given::Torque => (given, found),
                    Given::Acceleration => (found, given),
                };
            }
        }
    }

    /// Accelerations of all joints, by rate; those of a ball or a floating body as its rates are told.
    pub fn accelerations(&self) -> &[f64] {
        &self.accelerations
    }

    /// Torques of all joints, by rate.
    pub fn torques(&self) -> &[f64] {
        &self.torques
    }

    /// Velocity of a body's centre of mass, world axes.
    pub fn velocity(&self, body: BodyId) -> Twist {
        let node = &self.tree.nodes[self.node_of[body.index()]];
        Twist::new(node.world.rotation * node.velocity.linear, node.world.rotation * node.velocity.angular)
    }

    /// Where a body's centre of mass is.
    pub(super) fn position(&self, body: BodyId) -> DVec3 {
        self.tree.nodes[self.node_of[body.index()]].world.translation
    }

    /// True acceleration of a body's centre of mass, world axes: `R (v̇ + ω × v) + g`, `R ω̇`.
    pub fn acceleration(&self, body: BodyId) -> Twist {
        let i = self.node_of[body.index()];
        let (node, a) = (&self.tree.nodes[i], self.main.acceleration[i]);
        let (r, v) = (node.world.rotation, node.velocity);
        Twist::new(r * (a.linear + v.angular.cross(v.linear)) + self.gravity, r * a.angular)
    }

    /// The acceleration that a body's centre of mass has by velocities alone, no joint accelerating; world axes.
    pub(super) fn coasting(&self, body: BodyId) -> Twist {
        let i = self.node_of[body.index()];
        let (node, a) = (&self.tree.nodes[i], self.drift_of(i));
        let (r, v) = (node.world.rotation, node.velocity);
        Twist::new(r * (a.linear + v.angular.cross(v.linear)), r * a.angular)
    }

    /// `A V̇_p + η` with no q̈ on the way from the world.
    fn drift_of(&self, node: usize) -> Twist {
        let (mut path, mut a) = (node, self.main.drift[node]);
        // Shifts of all joints above, carried down one after the other: from the node up, since a sum of images is the image of the sum.
        let mut passages = self.tree.nodes[node].passage;
        while let Some(parent) = self.tree.nodes[path].parent.checked_sub(1) {
            a = a + passages.down(self.main.drift[parent]);
            passages = self.tree.nodes[parent].passage.then(&passages);
            path = parent;
        }
        a
    }

    /// The net force on a node's body, `m a` and `I ω̇ + ω × I ω`, in body axes.
    pub(super) fn net_force(&self, node: usize) -> Wrench {
        let (a, node) = (self.main.acceleration[node], &self.tree.nodes[node]);
        let Twist { linear: v, angular: w } = node.velocity;
        let linear = a.linear + w.cross(v) + node.world.rotation.conjugate() * self.gravity;
        Wrench::new(linear * node.mass, node.inertia * a.angular + w.cross(node.inertia * w))
    }

    /// What the tree parent of a body exerts on it through their joint, constraint and torques together: world axes, about the body's centre
    /// of mass. Nothing where a floating body's torques are zero.
    pub fn joint_force(&self, body: BodyId) -> Wrench {
        let i = self.node_of[body.index()];
        let node = &self.tree.nodes[i];
        // F = Ĵ V̇ + B
        let force = node.articulated.times(self.main.acceleration[i]) + self.main.total[i];
        Wrench::new(node.world.rotation * force.force, node.world.rotation * force.torque)
    }
}

/// How forces enter, for `loads.rs`.
impl Recursion {
    /// Says what is given of a node's joint, by its rates.
    pub(super) fn give(&mut self, node: usize, given: Given, values: &[f64]) {
        let node = &mut self.tree.nodes[node];
        node.given = given;
        self.main.given[node.rates.clone()].copy_from_slice(values);
    }

    /// What is given of a node's joint.
    pub(super) fn given(&self, node: usize) -> Given {
        self.tree.nodes[node].given
    }

    /// Where the rates of a node lie.
    pub(super) fn rates(&self, node: usize) -> Range<usize> {
        self.tree.nodes[node].rates.clone()
    }

    /// The node of a body.
    pub(super) fn node_of(&self, body: BodyId) -> usize {
        self.node_of[body.index()]
    }

    /// Where a node's joint is on its body, in the world.
    pub(super) fn joint_place(&self, node: usize) -> DVec3 {
        let node = &self.tree.nodes[node];
        node.world.transform_point(node.body_from_joint.translation)
    }

    /// The k-th free direction of a node's joint: how it moves the body, world axes, at its centre of mass.
    pub(super) fn direction(&self, node: usize, k: usize) -> Twist {
        let node = &self.tree.nodes[node];
        let (r, s) = (node.world.rotation, self.tree.directions[node.rates.start + k]);
        Twist::new(r * s.linear, r * s.angular)
    }

    /// `E x` of a node's joint: what its implicit springs and dampers take off its torques at accelerations x.
    pub(super) fn implicit_torques(&self, node: usize, x: &[f64]) -> [f64; 6] {
        let mut torques = [0.0; 6];
        let mut entries = self.tree.implicit[self.tree.nodes[node].pivot.clone()].iter();
        for k in 0..x.len() {
            for (j, e) in (0..=k).zip(&mut entries) {
                torques[k] += e * x[j];
                if j < k {
                    torques[j] += e * x[k];
                }
            }
        }
        torques
    }

    /// Adds an implicit torque `force − x q̈` along the k-th rate of a node's joint.
    pub(super) fn spring_joint(&mut self, node: usize, k: usize, force: f64, x: f64) {
        let node = &self.tree.nodes[node];
        self.main.given[node.rates.start + k] += force;
        self.tree.implicit[node.pivot.start + k * (k + 3) / 2] += x;
    }

    /// Adds to what acts along the free directions of a node's joint: the torque `force(g)` and the matrix `matrix(g, g')`, for the
    /// directions g, g' of the joint in world axes.
    pub(super) fn load_joint(
        &mut self,
        node: usize,
        force: impl Fn(Twist) -> f64,
        matrix: impl Fn(Twist, Twist) -> f64,
    ) {
        let node = &self.tree.nodes[node];
        let r = node.world.rotation;
        let mut s = [Twist::ZERO; 6];
        for (s, own) in s.iter_mut().zip(&self.tree.directions[node.rates.clone()]) {
            *s = Twist::new(r * own.linear, r * own.angular);
        }
        let mut entry = node.pivot.start;
        for (k, rate) in node.rates.clone().enumerate() {
            self.main.given[rate] += force(s[k]);
            for other in &s[..=k] {
                self.tree.implicit[entry] += matrix(s[k], *other);
                entry += 1;
            }
        }
    }

    /// The motion that the free directions of a node's joint give its body against the tree parent, at these rates: world axes.
    pub(super) fn joint_motion(&self, node: usize, rates: &[f64]) -> Twist {
        let node = &self.tree.nodes[node];
        let own = node.link.carry(&node.body_from_joint, node.joint.times(&rates[node.rates.clone()]));
        Twist::new(node.world.rotation * own.linear, node.world.rotation * own.angular)
    }

    /// Adds an implicit load on a body, `force − X a` with a the true acceleration of its centre of mass; world axes.
    pub(super) fn load_body(&mut self, body: BodyId, force: Wrench, x: &Inertia) {
        let gravity = self.gravity;
        let node = &mut self.tree.nodes[self.node_of[body.index()]];
        let back = DMat3::from_quat(node.world.rotation.conjugate());
        let x = x.turned(back);
        // a = V̇ + γ,   γ = [0; ω × v + Rᵀ g]
        let gamma = Twist::new(node.velocity.angular.cross(node.velocity.linear) + back * gravity, DVec3::ZERO);
        node.applied += node.in_body_axes(force) + -x.times(gamma);
        node.load.add(&x);
    }

    /// Whether a node's body is side b of its joint.
    pub(super) fn is_flipped(&self, node: usize) -> bool {
        self.tree.nodes[node].link.flipped
    }
}

impl Node {
    /// `−ad(V)ᵀ J V − F_ext`, where `−ad(V)ᵀ J V = [ω × I ω; ω × m v]` about the centre of mass.
    fn bias(&self) -> Wrench {
        let Twist { linear, angular } = self.velocity;
        Wrench::new(angular.cross(linear * self.mass), angular.cross(self.inertia * angular)) + -self.applied
    }

    /// A force in world axes, in body axes.
    pub(super) fn in_body_axes(&self, wrench: Wrench) -> Wrench {
        let back = self.world.rotation.conjugate();
        Wrench::new(back * wrench.force, back * wrench.torque)
    }
}

impl Tree {
    /// Articulated inertias, leaves to root.
    fn factor(&mut self) -> Result<(), Singular> {
        for node in &mut self.nodes {
            node.articulated = Inertia::of_body(node.mass, node.inertia);
            node.articulated.add(&node.load);
        }
        for i in (0..self.nodes.len()).rev() {
            let node = &self.nodes[i];
            let mut handed = node.articulated;
            let (s, carried) = (&self.directions[node.rates.clone()], &mut self.carried[node.rates.clone()]);
            // Ĵ S, D = Sᵀ Ĵ S + E = L d Lᵀ
            for (c, s) in carried.iter_mut().zip(s) {
                *c = node.articulated.times(*s);
            }
            let d = &mut self.pivots[node.pivot.clone()];
            d.copy_from_slice(&self.implicit[node.pivot.clone()]);
            let mut entry = 0;
            for (k, c) in carried.iter().enumerate() {
                for s in &s[..=k] {
                    d[entry] += pair(*c, *s);
                    entry += 1;
                }
            }
            if node.given == Given::Torque && !factor(d, s.len()) {
                return Err(Singular(node.body));
            }
            let Some(p) = node.parent.checked_sub(1) else { continue };
            if node.given == Given::Torque {
                // Π = Ĵ − Σ z_k z_kᵀ / d_k,   z = L⁻¹ Sᵀ Ĵ
                let mut z = [Wrench::ZERO; 6];
                for k in 0..s.len() {
                    z[k] = carried[k];
                    let row = &d[k * (k + 1) / 2..];
                    for j in 0..k {
                        z[k] += z[j] * -row[j];
                    }
                    handed.remove(z[k], row[k]);
                }
            }
            let handed = node.passage.inertia_up(&handed);
            self.nodes[p].articulated.add(&handed);
        }
        Ok(())
    }

    /// Bias forces from the leaves to the root, then accelerations back.
    pub(super) fn sweep(&self, sweep: &mut Sweep) {
        let Sweep { bias, drift, ground, given, total, acceleration, found } = sweep;
        total.copy_from_slice(bias);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let Some(p) = node.parent.checked_sub(1) else { continue };
            let (s, carried) = (&self.directions[node.rates.clone()], &self.carried[node.rates.clone()]);
            // β = B + Ĵ η + Ĵ S x,   x = Ψ (τ − Sᵀ (Ĵ η + B)) or q̈
            let mut handed = node.articulated.times(drift[i]) + total[i];
            let mut x = [0.0; 6];
            x[..s.len()].copy_from_slice(&given[node.rates.clone()]);
            if node.given == Given::Torque {
                for (x, s) in x.iter_mut().zip(s) {
                    *x -= pair(handed, *s);
                }
                solve(&self.pivots[node.pivot.clone()], &mut x[..s.len()]);
            }
            for (x, c) in x.iter().zip(carried) {
                handed += *c * *x;
            }
            total[p] += node.passage.up(handed);
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let (s, carried) = (&self.directions[node.rates.clone()], &self.carried[node.rates.clone()]);
            let above = node.parent.checked_sub(1).map_or(*ground, |p| acceleration[p]);
            let mut a = node.passage.down(above) + drift[i];
            let mut x = [0.0; 6];
            x[..s.len()].copy_from_slice(&given[node.rates.clone()]);
            match node.given {
                Given::Torque => {
                    // q̈ = Ψ (τ − Sᵀ Ĵ (a + η) − Sᵀ B)
                    for (k, s) in s.iter().enumerate() {
                        x[k] -= pair(carried[k], a) + pair(total[i], *s);
                    }
                    solve(&self.pivots[node.pivot.clone()], &mut x[..s.len()]);
                    found[node.rates.clone()].copy_from_slice(&x[..s.len()]);
                    for (x, s) in x.iter().zip(s) {
                        a = a + *s * *x;
                    }
                }
                Given::Acceleration => {
                    for (x, s) in x.iter().zip(s) {
                        a = a + *s * *x;
                    }
                    // τ = Sᵀ (Ĵ V̇ + B)
                    for (k, s) in s.iter().enumerate() {
                        found[node.rates.start + k] = pair(carried[k], a) + pair(total[i], *s);
                    }
                }
            }
            acceleration[i] = a;
        }
    }
}

/// Below this fraction of its diagonal entry a pivot is rounding and nothing else: then this fraction it is. The inertia that a joint moves is never
/// zero, but what is left of it beside masses 1e14 times its own cannot be told.
const PIVOT: f64 = 1e-14;

/// `a = L d Lᵀ` in place, lower triangle row by row: `d` on the diagonal, `L` beside it. False when a pivot is zero or not finite.
fn factor(a: &mut [f64], n: usize) -> bool {
    let at = |i: usize, j: usize| i * (i + 1) / 2 + j;
    for j in 0..n {
        // d_j = a_jj − Σ_k l_jk² d_k,   l_ij = (a_ij − Σ_k l_ik d_k l_jk)/d_j
        let mut d = a[at(j, j)];
        let floor = if d > 0.0 { PIVOT * d } else { -d };
        for k in 0..j {
            d -= a[at(j, k)] * a[at(j, k)] * a[at(k, k)];
        }
        d = d.max(floor);
        if !(d > 0.0 && d.is_finite()) {
            return false;
        }
        a[at(j, j)] = d;
        for i in j + 1..n {
            let mut x = a[at(i, j)];
            for k in 0..j {
                x -= a[at(i, k)] * a[at(k, k)] * a[at(j, k)];
            }
            a[at(i, j)] = x / d;
        }
    }
    true
}

/// `a⁻¹ x` by what [`factor`] left.
fn solve(a: &[f64], x: &mut [f64]) {
    let at = |i: usize, j: usize| i * (i + 1) / 2 + j;
    for i in 0..x.len() {
        for k in 0..i {
            x[i] -= a[at(i, k)] * x[k];
        }
    }
    for i in (0..x.len()).rev() {
        x[i] /= a[at(i, i)];
        for k in i + 1..x.len() {
            x[i] -= a[at(k, i)] * x[k];
        }
    }
}
