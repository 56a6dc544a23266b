//! Flesh over one part of a step, at its end: the nodes where the sum of inertia, damping, strain and contact is least.
//!
//! With x₀, v₀ the free nodes at the start of the part h, bones at given poses at its end, and d where its bone would have carried a node,
//!
//! ```text
//! E(x) = Σ m/2h² |x − x̃|² + Σ γm/2h |x − d|² + Σ w V Ψ(F),      x̃ = x₀ + h v₀ + h² g                                      (1)
//! ```
//! whose gradient is zero where Newton's law holds at the end [backward Euler]. It is found by Newton's method with the derivative of stress projected
//! (`material.rs`), so that every step goes down, and halved until it goes down enough [Armijo]. A part of the way is safe too: E has only become less.
//!
//! Bones meet the forces at the nodes fixed to them, and the dampers. With x(q) the solution of (1) for bones at q, the
//! wrench W(q) they feel has the derivative
//!
//! ```text
//! −∂W/∂q = K_bb − K_bf K_ff⁻¹ K_fb                                                                                        (2)
//! ```
//! the Schur complement of the free nodes, with K the matrix of (1) over free nodes f and bones b.

use super::Flesh;
use super::touch::Touches;
use crate::input::Input;
use crate::maths::block::Vector;
use crate::maths::rotation::skew;
use crate::maths::sparse::{Ldl, Place, Sparse};
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

/// How far flesh is solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Newton steps at most.
    pub steps: u32,
    /// Done when no node moves by more than this share of a cell.
    pub tolerance: f64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { steps: 40, tolerance: 1e-6 }
    }
}

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
    /// Forces of strain on all nodes, and of contact.
    force: Vec<DVec3>,
    push: Vec<DVec3>,
    pub(crate) touches: Touches,
    /// Newton's direction, by free node.
    direction: Vec<DVec3>,
    /// Gradient of (1), by node of the matrix; then the direction.
    rhs: Vec<Vector>,
    held: Stiffness,
    moving: Option<Box<Stiffness>>,
    h: f64,
    /// E of the present places.
    energy: f64,
    /// Whether the factors are those of this part.
    factored: bool,
    /// How often friction has gone on to the pushes of the present.
    lags: u32,
}

/// Whether bones are part of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bones {
    Held,
    Moving,
}

/// The matrix of (1): two free nodes share a block of six, bones come last.
struct Stiffness {
    matrix: Sparse,
    ldl: Ldl,
    bones: Bones,
    /// Of each free node its block and its half of it.
    place: Vec<(u32, usize)>,
    /// The number of blocks of nodes.
    blocks: usize,
    /// Of each element the places of its pairs of nodes (a, b), a ≤ b, in the order of [`PAIRS`].
    slots: Vec<[Option<Place>; 10]>,
    /// Of each free node its own place, and those with its bone.
    own: Vec<Place>,
    with_bone: Vec<Option<[Place; 2]>>,
}

const PAIRS: [(usize, usize); 10] = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)];

/// Share of the descent that the slope promises [Armijo].
const DESCENT: f64 = 1e-4;
/// Solutions of a part at whose start friction goes on to the pushes of the one before; later ones keep them, so that bones and flesh converge.
const LAGS: u32 = 4;
/// Factors are kept while steps become shorter by this.
const KEEP: f64 = 0.2;
/// Halvings of a step before it is given up.
const HALVINGS: u32 = 20;

impl Implicit {
    pub(crate) fn new(flesh: &Flesh) -> Implicit {
        let (n, free) = (flesh.start.len(), flesh.free);
        let held = Stiffness::new(flesh, 0, Bones::Held);
        Implicit {
            x: flesh.start.clone(),
            start: vec![DVec3::ZERO; free],
            target: vec![DVec3::ZERO; free],
            drag: vec![DVec3::ZERO; free],
            trial: flesh.start.clone(),
            force: vec![DVec3::ZERO; n],
            push: vec![DVec3::ZERO; n],
            touches: Touches::new(flesh),
            direction: vec![DVec3::ZERO; free],
            rhs: vec![[0.0; 6]; held.matrix.nodes()],
            held,
            moving: None,
            h: 0.0,
            energy: 0.0,
            factored: false,
            lags: 0,
        }
    }

    /// Notes the start of a part: its length, and how long before the end of the step it ends.
    pub(crate) fn begin(&mut self, model: &Model, flesh: &Flesh, input: &Input, state: &State, part: (f64, f64)) {
        let h = part.0;
        self.h = h;
        self.lags = 0;
        flesh.positions(state, &mut self.x);
        self.touches.find(model, flesh, input, state, part, &self.x);
        self.factored = false;
        for (i, node) in state.nodes.iter().enumerate() {
            self.start[i] = node.position;
            self.target[i] = node.position + node.velocity * h + input.gravity * (h * h);
            self.x[i] = node.position + node.velocity * h;
        }
    }

    /// Solves (1) with the bones moved from `before` to `after`, from where the free nodes are now.
    pub(crate) fn settle(
        &mut self,
        flesh: &Flesh,
        before: impl Fn(BodyId) -> Pose,
        after: impl Fn(BodyId) -> Pose,
        budget: Budget,
    ) -> Settled {
        for i in 0..flesh.start.len() {
            let bone = flesh.bones[i];
            if i >= flesh.free {
                self.x[i] = bone.map_or(flesh.in_bone[i], |bone| after(bone).transform_point(flesh.in_bone[i]));
            } else {
                let x0 = self.start[i];
                self.drag[i] =
                    bone.map_or(x0, |bone| after(bone).transform_point(before(bone).inverse().transform_point(x0)));
            }
        }
        let mut settled = Settled::default();
        if self.lags < LAGS {
            self.touches.lag(flesh, &self.x, &after);
            self.lags += 1;
        }
        self.energy = self.cost(flesh, &self.x, &after);
        // The nodes carried along with their bones may be a better guess than where their velocities lead.
        self.trial.copy_from_slice(&self.x);
        self.trial[..flesh.free].copy_from_slice(&self.drag);
        let carried = self.cost(flesh, &self.trial, &after);
        if carried < self.energy {
            std::mem::swap(&mut self.x, &mut self.trial);
            self.energy = carried;
        }
        // Factors are kept while they serve: a direction by an older matrix goes down too, and costs a tenth.
        let close = budget.tolerance * flesh.cell;
        let mut last = f64::INFINITY;
        while settled.newton < budget.steps {
            settled.newton += 1;
            let fresh = !self.factored;
            if fresh && !self.factor(flesh, &after, &mut settled) {
                break;
            }
            let slope = self.direction(flesh, &after);
            let Some(moved) = self.search(flesh, slope, &after) else {
                if fresh {
                    break;
                }
                self.factored = false;
                continue;
            };
            if moved < close {
                settled.converged = true;
                break;
            }
            self.factored = moved < KEEP * last;
            last = moved;
        }
        settled.outside = self.forces(flesh, &after) as u32;
        settled.touching = self.touches.count();
        settled
    }

    /// Forces of strain and contact at the present places; returns how many elements are outside the range of the material.
    fn forces(&mut self, flesh: &Flesh, after: &impl Fn(BodyId) -> Pose) -> usize {
        self.force.fill(DVec3::ZERO);
        self.push.fill(DVec3::ZERO);
        for touch in &self.touches.all {
            let Some(push) = self.touches.at(touch, flesh, &self.x, after) else { continue };
            let vertex = &flesh.surface.vertices[touch.vertex as usize];
            for (i, w) in flesh.elements[vertex.tet as usize].nodes.iter().zip(vertex.weights) {
                self.push[*i as usize] += push.force * w;
            }
        }
        flesh.add_elastic_forces(&self.x, super::Diagonalize::Selective, &mut self.force)
    }

    /// E of (1) \[J, but for a constant\].
    fn cost(&self, flesh: &Flesh, x: &[DVec3], after: &impl Fn(BodyId) -> Pose) -> f64 {
        let (inertia, damping) = self.weights(flesh);
        let mut own = 0.0;
        for i in 0..flesh.free {
            let m = 0.5 * flesh.masses[i];
            own +=
                m * (inertia * x[i].distance_squared(self.target[i]) + damping * x[i].distance_squared(self.drag[i]));
        }
        own + flesh.elastic_energy(x) + self.touches.energy(flesh, x, after)
    }

    /// 1/h² and γ/h.
    fn weights(&self, flesh: &Flesh) -> (f64, f64) {
        (1.0 / (self.h * self.h), flesh.material.damping / self.h)
    }

    /// Factors the matrix of (1) at the present places; tells whether it could be.
    fn factor(&mut self, flesh: &Flesh, after: &impl Fn(BodyId) -> Pose, settled: &mut Settled) -> bool {
        let (inertia, damping) = self.weights(flesh);
        let held = &mut self.held;
        held.matrix.clear();
        held.add_elements(flesh, &self.x, after);
        held.add_touches(flesh, &self.x, &self.touches, after);
        for i in 0..flesh.free {
            let own = DMat3::from_diagonal(DVec3::splat(flesh.masses[i] * (inertia + damping)));
            held.matrix.add_part(held.own[i], &rows(own));
        }
        settled.factorisations += 1;
        self.factored = held.ldl.factor(&held.matrix).is_ok();
        self.factored
    }

    /// Fills `direction`; returns the slope of E along it.
    fn direction(&mut self, flesh: &Flesh, after: &impl Fn(BodyId) -> Pose) -> f64 {
        let (inertia, damping) = self.weights(flesh);
        self.forces(flesh, after);
        self.rhs.fill([0.0; 6]);
        for i in 0..flesh.free {
            let m = flesh.masses[i];
            let missing = self.force[i] + self.push[i]
                - (self.x[i] - self.target[i]) * (m * inertia)
                - (self.x[i] - self.drag[i]) * (m * damping);
            let (block, half) = self.held.place[i];
            self.rhs[block as usize][half..half + 3].copy_from_slice(&missing.to_array());
            self.trial[i] = missing; // for the slope
        }
        self.held.ldl.solve(&mut self.rhs);
        let mut slope = 0.0;
        for i in 0..flesh.free {
            let (block, half) = self.held.place[i];
            self.direction[i] = DVec3::from_slice(&self.rhs[block as usize][half..half + 3]);
            slope -= self.direction[i].dot(self.trial[i]);
        }
        slope
    }

    /// Goes along the direction, halved until E goes down enough. Returns how far the node that moved most would have gone at full length, or
    /// `None` where nothing goes down.
    fn search(&mut self, flesh: &Flesh, slope: f64, after: &impl Fn(BodyId) -> Pose) -> Option<f64> {
        let longest = self.direction.iter().map(|d| d.length_squared()).fold(0.0, f64::max).sqrt();
        let mut step = 1.0;
        self.trial[flesh.free..].copy_from_slice(&self.x[flesh.free..]);
        for _ in 0..HALVINGS {
            for i in 0..flesh.free {
                self.trial[i] = self.x[i] + self.direction[i] * step;
            }
            let energy = self.cost(flesh, &self.trial, after);
            // Near the end the descent is less than the rounding of E. Anything that is no number is no descent.
            if energy <= self.energy + DESCENT * step * slope + 1e-13 * self.energy.abs() {
                std::mem::swap(&mut self.x, &mut self.trial);
                self.energy = energy;
                return Some(longest);
            }
            step *= 0.5;
        }
        None
    }

    /// Writes the free nodes: places of the end, velocities by the way.
    ///
    /// Backward Euler takes levers at the start of the part: `x₁ × m v₁ − x₀ × m v₀ = x₀ × h f`, by which strain would change angular momentum. What
    /// bones gained of strain, `h (c₀ × F + T)` each, is what the nodes must have lost: the difference is given
    /// back as a turn of all free nodes about their middle. It is of the order h².
    pub(crate) fn commit(&self, flesh: &Flesh, before: &[Pose], state: &mut State) {
        let (_, damping) = self.weights(flesh);
        let (mut mass, mut centre, mut missing) = (0.0, DVec3::ZERO, DVec3::ZERO);
        for i in 0..flesh.free {
            let (m, x) = (flesh.masses[i], self.x[i]);
            mass += m;
            centre += x * m;
            missing -= self.start[i].cross(self.force[i] - (x - self.drag[i]) * (m * damping));
        }
        let bone = |i: usize| {
            flesh.bones[i].map(|bone| (before[bone.index()].translation, state.bodies[bone.index()].position))
        };
        for i in 0..flesh.start.len() {
            let Some((before, after)) = bone(i) else { continue };
            let (at, force) = self.reaction(flesh, i);
            missing -= (at - after + before).cross(force);
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
            inertia.inverse() * (missing * self.h)
        } else {
            DVec3::ZERO
        };
        for (i, node) in state.nodes.iter_mut().enumerate() {
            node.velocity = (self.x[i] - self.start[i]) / self.h + turn.cross(self.x[i] - centre);
            node.position = self.x[i];
        }
    }

    /// What each bone feels of the flesh: force and torque about its centre of mass, at `after`.
    pub(crate) fn wrenches(&self, flesh: &Flesh, after: impl Fn(BodyId) -> Pose, out: &mut [Wrench]) {
        out.fill(Wrench::ZERO);
        for i in 0..flesh.start.len() {
            let Some(bone) = flesh.bones[i] else { continue };
            let (at, mut force) = self.reaction(flesh, i);
            if i >= flesh.free {
                force += self.push[i];
            }
            out[bone.index()] += Wrench::at(at - after(bone).translation, force);
        }
        self.touches.add_wrenches(flesh, &self.x, &after, out);
    }

    /// What a node does to its bone, contact left out, and where: a fixed one hands on its force; the damper of a free one pulls the bone where the
    /// bone would have it.
    fn reaction(&self, flesh: &Flesh, i: usize) -> (DVec3, DVec3) {
        let (_, damping) = self.weights(flesh);
        if i >= flesh.free {
            (self.x[i], self.force[i])
        } else {
            (self.drag[i], (self.x[i] - self.drag[i]) * (flesh.masses[i] * damping))
        }
    }

    /// (2) at the present places: `each(i, j, block)` for bodies i ≥ j.
    pub(crate) fn condense(
        &mut self,
        flesh: &Flesh,
        bodies: usize,
        after: impl Fn(BodyId) -> Pose,
        mut each: impl FnMut(usize, usize, &[[f64; 6]; 6]),
    ) -> Result<(), ()> {
        let (inertia, damping) = self.weights(flesh);
        let moving = self.moving.get_or_insert_with(|| Box::new(Stiffness::new(flesh, bodies, Bones::Moving)));
        moving.matrix.clear();
        moving.add_elements(flesh, &self.x, &after);
        moving.add_touches(flesh, &self.x, &self.touches, &after);
        for i in 0..flesh.free {
            let m = flesh.masses[i];
            moving.matrix.add_part(moving.own[i], &rows(DMat3::from_diagonal(DVec3::splat(m * (inertia + damping)))));
            let (Some(bone), Some([between, own])) = (flesh.bones[i], moving.with_bone[i]) else { continue };
            // the damper: m γ/h over [x; bone], with B the motion of the bone at d
            let r = self.drag[i] - after(bone).translation;
            let k = DMat3::from_diagonal(DVec3::splat(m * damping));
            moving.matrix.add_part(between, &node_bone(-k, r));
            moving.matrix.add_part(own, &bone_bone(k, r, r));
        }
        // A bone without flesh has no stiffness: it is not eliminated, and its block stays zero.
        let first = moving.blocks;
        let bodies = moving.matrix.nodes() - first;
        moving.ldl.condense(&moving.matrix, bodies, |i, j, block| each(i - first, j - first, block)).map_err(|_| ())
    }
}

impl Stiffness {
    fn new(flesh: &Flesh, bodies: usize, bones: Bones) -> Stiffness {
        let place = pair_up(flesh);
        let blocks = place.iter().map(|(block, _)| *block as usize + 1).max().unwrap_or(0);
        let mut sizes = vec![0; blocks];
        place.iter().for_each(|&(block, half)| sizes[block as usize] = sizes[block as usize].max(half + 3));
        sizes.extend(vec![6; bodies]);
        // Where the numbers of a node are in the matrix: a free one's own, a fixed one's bone's
        let at = |node: usize| match (place.get(node), flesh.bones[node], bones) {
            (Some(&(block, half)), _, _) => Some((block as usize, half)),
            (None, Some(bone), Bones::Moving) => Some((blocks + bone.index(), 0)),
            _ => None,
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
        let bone_of = |i: usize| flesh.bones[i].filter(|_| bones == Bones::Moving).map(|bone| blocks + bone.index());
        edges.extend((0..flesh.free).filter_map(|i| Some((place[i].0 as usize, bone_of(i)?))));
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
        // Nodes by minimum degree among themselves, then bones
        let own_edges: Vec<(usize, usize)> = edges.iter().copied().filter(|&(a, b)| a.max(b) < blocks).collect();
        let order: Vec<u32> = match bones {
            Bones::Held => Vec::new(),
            Bones::Moving => {
                let inner = Ldl::new(&Sparse::new(&sizes[..blocks], &own_edges));
                inner.order().iter().copied().chain(blocks as u32..sizes.len() as u32).collect()
            }
        };
        let ldl = if order.is_empty() { Ldl::new(&matrix) } else { Ldl::in_order(&matrix, &order) };
        Stiffness {
            slots: slots.collect(),
            own: own.collect(),
            with_bone: with_bone.collect(),
            ldl,
            bones,
            place,
            blocks,
            matrix,
        }
    }

    /// Adds the projected stiffness of all elements.
    fn add_elements(&mut self, flesh: &Flesh, x: &[DVec3], after: &impl Fn(BodyId) -> Pose) {
        for (t, element) in flesh.elements.iter().enumerate() {
            if self.slots[t].iter().all(Option::is_none) {
                continue;
            }
            let modes = flesh.lame.modes(&element.gradient(x));
            let g = element.shape_gradients().map(|g| modes.v.transpose() * g);
            // K_ab for a, b of 1 to 3; node 0 moves against all: K_0b = −Σ K_ab
            let block = |a: usize, b: usize| modes.block(g[a], g[b]) * element.filled;
            let (k11, k12, k13, k22, k23, k33) =
                (block(1, 1), block(1, 2), block(1, 3), block(2, 2), block(2, 3), block(3, 3));
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
    fn add_touches(&mut self, flesh: &Flesh, x: &[DVec3], touches: &Touches, after: &impl Fn(BodyId) -> Pose) {
        for touch in &touches.all {
            let Some(push) = touches.at(touch, flesh, x, after) else { continue };
            let vertex = &flesh.surface.vertices[touch.vertex as usize];
            for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
                let k = push.stiffness * (vertex.weights[a] * vertex.weights[b]);
                self.add_pair(flesh, x, (vertex.tet as usize, pair), k, after);
            }
            if let (Some(body), Bones::Moving) = (touch.body, self.bones) {
                // as if the flesh stood still: more than it is, which is safe
                let r = x[flesh.elements[vertex.tet as usize].nodes[0] as usize] - after(body).translation;
                let own = self.matrix.place((self.blocks + body.index(), 0), (self.blocks + body.index(), 0));
                self.matrix.add_part(own, &bone_bone(push.stiffness, r, r));
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
