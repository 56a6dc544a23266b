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
use crate::maths::block::Vector;
use crate::maths::rotation::skew;
use crate::maths::sparse::{Ldl, Place, Sparse};
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, State};
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
    /// Forces of strain on all nodes.
    force: Vec<DVec3>,
    /// Newton's direction, by free node.
    direction: Vec<DVec3>,
    /// Gradient of (1), by node of the matrix; then the direction.
    rhs: Vec<Vector>,
    held: Stiffness,
    moving: Option<Box<Stiffness>>,
    h: f64,
    /// Cost of the last positions.
    energy: f64,
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
            direction: vec![DVec3::ZERO; free],
            rhs: vec![[0.0; 6]; held.matrix.nodes()],
            held,
            moving: None,
            h: 0.0,
            energy: 0.0,
        }
    }

    /// Notes the start of a part.
    pub(crate) fn begin(&mut self, state: &State, gravity: DVec3, h: f64) {
        self.h = h;
        for (i, node) in state.nodes.iter().enumerate() {
            self.start[i] = node.position;
            self.target[i] = node.position + node.velocity * h + gravity * (h * h);
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
        self.energy = self.cost(flesh, &self.x);
        // The nodes carried along with their bones may be a better guess than where their velocities lead.
        self.trial.copy_from_slice(&self.x);
        self.trial[..flesh.free].copy_from_slice(&self.drag);
        let carried = self.cost(flesh, &self.trial);
        if carried < self.energy {
            std::mem::swap(&mut self.x, &mut self.trial);
            self.energy = carried;
        }
        let close = budget.tolerance * flesh.cell;
        while settled.newton < budget.steps {
            settled.newton += 1;
            let slope = self.newton_direction(flesh, &mut settled);
            let Some(moved) = slope.and_then(|slope| self.search(flesh, slope)) else { break };
            if moved < close {
                settled.converged = true;
                break;
            }
        }
        self.strain(flesh, &mut settled);
        settled
    }

    /// Forces of strain at the present places.
    fn strain(&mut self, flesh: &Flesh, settled: &mut Settled) {
        self.force.fill(DVec3::ZERO);
        settled.outside = flesh.add_elastic_forces(&self.x, super::Diagonalize::Selective, &mut self.force) as u32;
    }

    /// E of (1) \[J, but for a constant\].
    fn cost(&self, flesh: &Flesh, x: &[DVec3]) -> f64 {
        let (inertia, damping) = self.weights(flesh);
        let mut own = 0.0;
        for i in 0..flesh.free {
            let m = 0.5 * flesh.masses[i];
            own +=
                m * (inertia * x[i].distance_squared(self.target[i]) + damping * x[i].distance_squared(self.drag[i]));
        }
        own + flesh.elastic_energy(x)
    }

    /// 1/h² and γ/h.
    fn weights(&self, flesh: &Flesh) -> (f64, f64) {
        (1.0 / (self.h * self.h), flesh.material.damping / self.h)
    }

    /// Fills `direction`; returns the slope of E along it, or `None` where the matrix cannot be factored.
    fn newton_direction(&mut self, flesh: &Flesh, settled: &mut Settled) -> Option<f64> {
        let (inertia, damping) = self.weights(flesh);
        self.force.fill(DVec3::ZERO);
        let held = &mut self.held;
        held.matrix.clear();
        for element in &flesh.elements {
            let f = element.gradient(&self.x);
            let (stress, _) = flesh.lame.stress(&f, super::Diagonalize::Selective);
            for (i, f) in element.nodes.iter().zip(element.forces(stress)) {
                self.force[*i as usize] += f;
            }
        }
        held.add_elements(flesh, &self.x, |_| DVec3::ZERO);
        self.rhs.fill([0.0; 6]);
        for i in 0..flesh.free {
            let m = flesh.masses[i];
            held.matrix.add_part(held.own[i], &rows(DMat3::from_diagonal(DVec3::splat(m * (inertia + damping)))));
            let missing = self.force[i]
                - (self.x[i] - self.target[i]) * (m * inertia)
                - (self.x[i] - self.drag[i]) * (m * damping);
            let (block, half) = held.place[i];
            self.rhs[block as usize][half..half + 3].copy_from_slice(&missing.to_array());
            self.trial[i] = missing; // for the slope
        }
        held.ldl.factor(&held.matrix).ok()?;
        settled.factorisations += 1;
        held.ldl.solve(&mut self.rhs);
        let mut slope = 0.0;
        for i in 0..flesh.free {
            let (block, half) = held.place[i];
            self.direction[i] = DVec3::from_slice(&self.rhs[block as usize][half..half + 3]);
            slope -= self.direction[i].dot(self.trial[i]);
        }
        slope.is_finite().then_some(slope)
    }

    /// Goes along the direction, halved until E goes down enough. Returns how far the node that moved most would have gone at full length, or
    /// `None` where nothing goes down.
    fn search(&mut self, flesh: &Flesh, slope: f64) -> Option<f64> {
        let longest = self.direction.iter().map(|d| d.length_squared()).fold(0.0, f64::max).sqrt();
        let mut step = 1.0;
        self.trial[flesh.free..].copy_from_slice(&self.x[flesh.free..]);
        for _ in 0..HALVINGS {
            for i in 0..flesh.free {
                self.trial[i] = self.x[i] + self.direction[i] * step;
            }
            let energy = self.cost(flesh, &self.trial);
            // near the end the descent is less than the rounding of E
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
    pub(crate) fn commit(&self, state: &mut State) {
        for (i, node) in state.nodes.iter_mut().enumerate() {
            node.velocity = (self.x[i] - self.start[i]) / self.h;
            node.position = self.x[i];
        }
    }

    /// What each bone feels of the flesh: force and torque about its centre of mass, at `after`.
    pub(crate) fn wrenches(&self, flesh: &Flesh, after: impl Fn(BodyId) -> Pose, out: &mut [Wrench]) {
        let (_, damping) = self.weights(flesh);
        out.fill(Wrench::ZERO);
        for i in 0..flesh.start.len() {
            let Some(bone) = flesh.bones[i] else { continue };
            // A fixed node hands on its force; the damper of a free one pulls its bone where the bone would have it.
            let (at, force) = if i >= flesh.free {
                (self.x[i], self.force[i])
            } else {
                (self.drag[i], (self.x[i] - self.drag[i]) * (flesh.masses[i] * damping))
            };
            out[bone.index()] += Wrench::at(at - after(bone).translation, force);
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
        moving.add_elements(flesh, &self.x, |bone| after(bone).translation);
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

    /// Adds the projected stiffness of all elements; `centre` is the centre of mass of a bone.
    fn add_elements(&mut self, flesh: &Flesh, x: &[DVec3], centre: impl Fn(BodyId) -> DVec3) {
        for (element, slots) in flesh.elements.iter().zip(&self.slots) {
            if slots.iter().all(Option::is_none) {
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
            for ((k, slot), (a, b)) in k.into_iter().zip(slots).zip(PAIRS) {
                let Some(slot) = *slot else { continue };
                let [a, b] = [a, b].map(|k| element.nodes[k] as usize);
                match (a < flesh.free, b < flesh.free, self.bones) {
                    (true, true, _) => self.matrix.add_part(slot, &rows(k)),
                    (_, _, Bones::Held) => unreachable!("fixed nodes have no place"),
                    (true, false, Bones::Moving) => {
                        self.matrix.add_part(slot, &node_bone(k, arm(flesh, x, b, &centre)))
                    }
                    (false, true, Bones::Moving) => {
                        let part = node_bone(k.transpose(), arm(flesh, x, a, &centre));
                        self.matrix.add_part(slot, &transposed(&part));
                    }
                    (false, false, Bones::Moving) => {
                        let (r_a, r_b) = (arm(flesh, x, a, &centre), arm(flesh, x, b, &centre));
                        let part = bone_bone(k, r_a, r_b);
                        self.matrix.add_part(slot, &part);
                        if a != b && flesh.bones[a] == flesh.bones[b] {
                            // both halves of the pair fall into one diagonal block
                            self.matrix.add_part(slot, &transposed(&part));
                        }
                    }
                }
            }
        }
    }
}

/// From the centre of mass of its bone to a fixed node.
fn arm(flesh: &Flesh, x: &[DVec3], node: usize, centre: &impl Fn(BodyId) -> DVec3) -> DVec3 {
    x[node] - flesh.bones[node].map_or(DVec3::ZERO, centre)
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
