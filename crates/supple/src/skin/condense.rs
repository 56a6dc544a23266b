//! Skin and skeleton as one system, solved by the skeleton.
//!
//! ```text
//! [ A     M_bs   Jᵀ ] [ δv_b ]   [ f_b ]      A = M_b + h² K_b + h D_b,  M_b = core + Σ m_a B_aᵀ B_a
//! [ M_bsᵀ M̃_s    0  ] [ δv_s ] = [ f_s ]      M_bs[a] = m_a B_aᵀ R_a,    M̃_s = M_s + h D + h² K                          (1)
//! [ J     0      0  ] [ −μ   ]   [ g   ]      B_a = [w_i 1, X_i] of pose.rs
//! ```
//! M_s is m_a 1: exactly so when R_a is a rotation, and positive in any case. With the block diagonal M̂_s in place of M̃_s [Galoppo 2007, §5.1]
//!
//! ```text
//! M̂ = A − M_bs M̂_s⁻¹ M_bsᵀ = core + Σ B_aᵀ W_a B_a,   W_a = m_a (1 − m_a R_a D_a⁻¹ R_aᵀ)                                 (2)
//! ```
//! couples only bones that share vertices. Sweeps with the exact operator bring its solution to that of (1):
//!
//! ```text
//! r = f_b − M_bs M̃_s⁻¹ f_s − (A − M_bs M̃_s⁻¹ M_bsᵀ) δv_b + Jᵀ μ,   (δv_b, μ) += [M̂ Jᵀ; J 0]⁻¹ (r, 0)                     (3)
//! ```
//! Bodies are eliminated from the leaves of the tree, each before its joint: where only neighbours share vertices nothing fills in, and the cost is that of
//! the tree kernel; otherwise a few blocks fill in.

use super::pose::Posed;
use super::{Skin, SkinEquations, SkinMass};
use crate::maths::block::{Block, Vector, add_scaled};
use crate::maths::points::{Gradients, PointFactor, PointMatrix, conjugate_gradients};
use crate::maths::sparse::{Ldl, Place, Sparse};
use crate::model::Model;
use crate::watch::Stage;
use glam::{DMat3, DVec3};

/// Compliance of joints in units of 1/mass: so that loops and rows that say the same twice can be factored.
const COMPLIANCE: f64 = 1e-10;
/// Conjugate gradients go on until the residual is this share of the right-hand side, or so often.
const GRADIENTS: (f64, usize) = (1e-9, 2000);

/// The matrix of the skin for one length of a part, and its factors.
pub struct SkinMatrix {
    matrix: PointMatrix,
    factor: PointFactor,
    /// h of the factors; 0 before the first.
    h: f64,
    /// D_a⁻¹; zero where the skin does not move \[1/kg\].
    pub blocks: Vec<DMat3>,
    /// The same as one number: three over the trace of D_a \[1/kg\].
    pub scalars: Vec<f64>,
    gradients: Gradients,
    guess: Vec<DVec3>,
    /// Iterations of the last solution by conjugate gradients.
    pub iterations: usize,
    equations: SkinEquations,
}

impl SkinMatrix {
    /// Finds the order of elimination.
    pub fn new(skin: &Skin) -> SkinMatrix {
        let n = skin.nodes();
        SkinMatrix {
            factor: PointFactor::new(&skin.stiffness),
            matrix: skin.stiffness.clone(),
            h: 0.0,
            blocks: vec![DMat3::ZERO; n],
            scalars: vec![0.0; n],
            gradients: Gradients::default(),
            guess: vec![DVec3::ZERO; n],
            iterations: 0,
            equations: SkinEquations::Factored,
        }
    }

    /// Makes M̃_s for this h, if it is another than last time. Fails at a vertex where it is not positive.
    pub fn set(&mut self, skin: &Skin, h: f64, equations: SkinEquations) -> Result<(), usize> {
        let is_new = self.h != h;
        let unfactored = is_new || (equations == SkinEquations::Factored && self.equations != equations);
        self.equations = equations;
        if is_new {
            for a in 0..skin.nodes() {
                let mass = if skin.soft[a] { skin.masses[a] * (1.0 + h * skin.damping[a]) } else { 1.0 };
                let block = skin.stiffness.diagonal[a] * (h * h) + DMat3::from_diagonal(DVec3::splat(mass));
                self.matrix.diagonal[a] = block;
                let trace = block.x_axis.x + block.y_axis.y + block.z_axis.z;
                self.blocks[a] = if skin.soft[a] { block.inverse() } else { DMat3::ZERO };
                self.scalars[a] = if skin.soft[a] { 3.0 / trace } else { 0.0 };
            }
            for (to, from) in self.matrix.lower.iter_mut().zip(&skin.stiffness.lower) {
                *to = *from * (h * h);
            }
            self.h = h;
        }
        if unfactored && equations == SkinEquations::Factored {
            let done = self.factor.factor(&self.matrix);
            if done.is_err() {
                self.h = 0.0;
            }
            return done;
        }
        Ok(())
    }

    /// `x ← M̃_s⁻¹ x`.
    pub fn solve(&mut self, x: &mut [DVec3]) {
        match self.equations {
            SkinEquations::Factored => self.factor.solve(x),
            SkinEquations::ConjugateGradients => {
                self.guess.fill(DVec3::ZERO);
                let SkinMatrix { matrix, guess, gradients, iterations, .. } = self;
                *iterations = conjugate_gradients(matrix, x, guess, GRADIENTS, gradients);
                x.copy_from_slice(guess);
            }
        }
    }

    /// Blocks below the diagonal of its factors.
    pub fn blocks_of_factor(&self) -> usize {
        self.factor.blocks()
    }
}

/// Which approximate inverse of M̃_s condenses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Diagonal<'w> {
    /// Its 3×3 blocks, as published.
    Blocks(&'w [DMat3]),
    /// One number for each vertex: contacts then have a closed form.
    Scalars(&'w [f64]),
}

/// One block of the bones in quarters.
#[derive(Clone, Copy, Debug)]
struct Quarters {
    ll: DMat3,
    la: DMat3,
    al: DMat3,
    aa: DMat3,
}

impl Quarters {
    const ZERO: Quarters = Quarters { ll: DMat3::ZERO, la: DMat3::ZERO, al: DMat3::ZERO, aa: DMat3::ZERO };

    fn rows(&self) -> [[f64; 6]; 6] {
        let at = |m: &DMat3, r: usize, c: usize| m.col(c)[r];
        std::array::from_fn(|r| {
            std::array::from_fn(|c| match (r < 3, c < 3) {
                (true, true) => at(&self.ll, r, c),
                (true, false) => at(&self.la, r, c - 3),
                (false, true) => at(&self.al, r - 3, c),
                (false, false) => at(&self.aa, r - 3, c - 3),
            })
        })
    }
}

/// The skeleton with its joints, and rows to the world: `[A Jᵀ; J −ε]`.
pub struct Skeleton {
    /// Bodies first, then joints, then what else has rows.
    pub matrix: Sparse,
    ldl: Ldl,
    places: Vec<Place>,
    quarters: Vec<Quarters>,
    bodies: usize,
    /// Bodies of grips, as the pattern has them.
    grips: Vec<(u32, u8)>,
    /// Pairs of bodies that contacts connect, and those of all blocks, by row.
    extra: Vec<(usize, usize)>,
    has: Vec<bool>,
    /// Without contacts.
    pub base: Sparse,
}

impl Skeleton {
    /// Room for the bones of a model with skin.
    pub fn new(model: &Model, skin: &Skin) -> Skeleton {
        let mut skeleton = Skeleton {
            matrix: Sparse::new(&[], &[]),
            ldl: Ldl::new(&Sparse::new(&[], &[])),
            places: Vec::new(),
            quarters: vec![Quarters::ZERO; skin.pairs.len()],
            bodies: model.bodies().len(),
            grips: Vec::new(),
            extra: Vec::new(),
            has: Vec::new(),
            base: Sparse::new(&[], &[]),
        };
        skeleton.set_pattern(model, skin);
        skeleton
    }

    /// Makes room for pairs of bodies that touch and for grips, bodies with three or six rows. Blocks that are zero change no bit of a solution.
    pub fn make_room(&mut self, model: &Model, skin: &Skin, pairs: &[(usize, usize)], grips: &[(u32, u8)]) {
        let before = self.extra.len();
        for &(i, j) in pairs {
            let (i, j) = (i.max(j), i.min(j));
            if !self.has[i * self.bodies + j] {
                self.has[i * self.bodies + j] = true;
                self.extra.push((i, j));
            }
        }
        if self.extra.len() > before || self.grips != grips {
            self.grips.clear();
            self.grips.extend_from_slice(grips);
            self.set_pattern(model, skin);
        }
    }

    fn set_pattern(&mut self, model: &Model, skin: &Skin) {
        let k = model.bodies().len();
        let joints = model.joints();
        let mut sizes = vec![6; k];
        sizes.extend(joints.iter().map(|joint| joint.mask.rows()));
        sizes.extend(self.grips.iter().map(|(_, rows)| *rows as usize));
        let mut edges: Vec<(usize, usize)> = self.extra.clone();
        edges.extend(skin.pairs.iter().map(|&(i, j)| (i as usize, j as usize)));
        for (j, joint) in joints.iter().enumerate() {
            edges.push((k + j, joint.child.index()));
            if let Some(parent) = joint.parent {
                edges.push((k + j, parent.index()));
                edges.push((joint.child.index(), parent.index()));
            }
        }
        for (g, (body, _)) in self.grips.iter().enumerate() {
            edges.push((k + joints.len() + g, *body as usize));
        }
        for spring in model.anchor_springs() {
            edges.extend(spring.b.map(|b| (spring.a.index(), b.index())));
        }
        self.has = vec![false; k * k];
        for &(i, j) in edges.iter().filter(|(i, j)| *i < k && *j < k) {
            self.has[i.max(j) * k + i.min(j)] = true;
        }
        (0..k).for_each(|i| self.has[i * k + i] = true);
        self.matrix = Sparse::new(&sizes, &edges);
        self.base = self.matrix.clone();
        // Leaves first, each body before the joint that leads to it; what has rows besides at the end.
        let topology = model.topology();
        let mut order: Vec<u32> = Vec::new();
        for node in topology.nodes.iter().rev() {
            order.push(node.body.0);
            order.extend(node.joint.map(|id| k as u32 + id.0));
        }
        order.extend(topology.loops.iter().map(|id| k as u32 + id.0));
        order.extend((k + joints.len()..sizes.len()).map(|i| i as u32));
        self.ldl = Ldl::in_order(&self.matrix, &order);
        self.places = skin.pairs.iter().map(|&(i, j)| self.matrix.place((i as usize, 0), (j as usize, 0))).collect();
    }

    /// Number of nodes: bodies, joints and grips.
    pub fn nodes(&self) -> usize {
        self.matrix.nodes()
    }

    /// Number of bodies.
    pub fn bodies(&self) -> usize {
        self.bodies
    }

    /// Blocks of the factors, fill included.
    pub fn blocks(&self) -> usize {
        self.ldl.blocks()
    }

    /// Starts a matrix: everything zero, joints a little compliant.
    pub fn clear(&mut self, mass: f64) {
        self.matrix.clear();
        for i in self.bodies..self.matrix.nodes() {
            self.matrix.add_diagonal(i, -COMPLIANCE / mass);
        }
    }

    /// Adds a block of two bodies.
    pub fn add(&mut self, i: usize, j: usize, block: &Block) {
        self.matrix.add(i, j, block);
    }

    /// Adds Σ B_aᵀ W_a B_a of (2), `yields` being R_a D_a⁻¹ R_aᵀ, or what stands for it with a block diagonal M_b.
    pub fn add_skin(&mut self, skin: &Skin, posed: &Posed, yields: &[DMat3], mass: SkinMass) {
        self.quarters.fill(Quarters::ZERO);
        for a in 0..skin.nodes() {
            let own = &skin.influences[a][..skin.counts[a] as usize];
            let (levers, slots) = (posed.levers(a), &skin.slots[a]);
            let m = skin.masses[a];
            let mut w = yields[a] * (-m * m);
            if mass == SkinMass::Full {
                w += DMat3::from_diagonal(DVec3::splat(m));
            }
            let mut slot = 0;
            for (p, i) in own.iter().enumerate() {
                for (q, j) in own[..=p].iter().enumerate() {
                    // rows are those of the body with the higher number
                    let (r, c, w_r, w_c) = if i.body >= j.body { (p, q, i, j) } else { (q, p, j, i) };
                    let quarters = &mut self.quarters[slots[slot] as usize];
                    let right = w * levers[c];
                    let left = levers[r].transpose();
                    quarters.ll += w * (w_r.weight * w_c.weight);
                    quarters.la += right * w_r.weight;
                    quarters.al += left * w * w_c.weight;
                    quarters.aa += left * right;
                    if p == q && mass == SkinMass::BlockDiagonal {
                        // D_i = Σ m_a w_i l_iᵀ l_i with B_i = w_i l_i: the first power of w keeps mass and sign
                        let (m, x) = (skin.masses[a], levers[p]);
                        quarters.ll += DMat3::from_diagonal(DVec3::splat(m * i.weight));
                        quarters.la += x * m;
                        quarters.al += x.transpose() * m;
                        quarters.aa += x.transpose() * x * (m / i.weight);
                    }
                    slot += 1;
                }
            }
        }
        for (quarters, place) in self.quarters.iter().zip(&self.places) {
            self.matrix.add_part(*place, &quarters.rows());
        }
    }

    /// Keeps the matrix as it is without contacts, and factors it. On failure names the node.
    pub fn factor_base(&mut self) -> Result<(), usize> {
        self.base.copy_from(&self.matrix);
        self.ldl.factor(&self.matrix)
    }

    /// Goes back to the matrix without contacts.
    pub fn restore(&mut self) {
        self.matrix.copy_from(&self.base);
    }

    /// Factors the matrix.
    pub fn factor(&mut self) -> Result<(), usize> {
        self.ldl.factor(&self.matrix)
    }

    /// Solves with the last factors.
    pub fn solve(&mut self, x: &mut [Vector]) {
        self.ldl.solve(x);
    }
}

/// `t_a = B_a v`, the velocity that bones give a vertex.
#[inline]
pub fn carried(skin: &Skin, posed: &Posed, a: usize, v: &[Vector]) -> DVec3 {
    let own = &skin.influences[a][..skin.counts[a] as usize];
    let mut t = DVec3::ZERO;
    for (i, lever) in own.iter().zip(posed.levers(a)) {
        let [x, y, z, p, q, r] = v[i.body as usize];
        t += DVec3::new(x, y, z) * i.weight + *lever * DVec3::new(p, q, r);
    }
    t
}

/// `out += B_aᵀ f`.
#[inline]
pub fn pull(skin: &Skin, posed: &Posed, a: usize, f: DVec3, out: &mut [Vector]) {
    let own = &skin.influences[a][..skin.counts[a] as usize];
    for (i, lever) in own.iter().zip(posed.levers(a)) {
        let (force, torque) = (f * i.weight, lever.transpose() * f);
        add_scaled(&mut out[i.body as usize], 1.0, &[force.x, force.y, force.z, torque.x, torque.y, torque.z]);
    }
}

/// Right-hand sides and solution of (1).
#[derive(Debug, Default)]
pub struct Solution {
    /// δv of bodies, then −μ of joints.
    pub bones: Vec<Vector>,
    /// δv of the skin, in pose space.
    pub skin: Vec<DVec3>,
    y: Vec<DVec3>,
    z: Vec<DVec3>,
    residual: Vec<Vector>,
    step: Vec<Vector>,
}

/// What (1) is made of.
pub struct Equations<'w> {
    /// The skin.
    pub skin: &'w Skin,
    /// Where it is.
    pub posed: &'w Posed,
    /// The mass matrix of the bones.
    pub mass: SkinMass,
    /// `A` without the skin: core and springs, by pairs of bodies (row, column), each pair once.
    pub core: &'w [(usize, usize, Block)],
}

impl Equations<'_> {
    /// `r −= M_b v` with everything but joints: the exact operator of the bones.
    fn subtract_bones(&self, v: &[Vector], r: &mut [Vector]) {
        for (i, j, block) in self.core {
            add_scaled(&mut r[*i], -1.0, &block.times_vector(&v[*j]));
            if i != j {
                add_scaled(&mut r[*j], -1.0, &block.transpose_times_vector(&v[*i]));
            }
        }
        if self.mass == SkinMass::BlockDiagonal {
            let skin = self.skin;
            for a in 0..skin.nodes() {
                for (i, lever) in skin.influences[a][..skin.counts[a] as usize].iter().zip(self.posed.levers(a)) {
                    let [x, y, z, p, q, s] = v[i.body as usize];
                    let t = DVec3::new(x, y, z) + *lever * DVec3::new(p, q, s) / i.weight;
                    let f = t * -skin.masses[a];
                    let (force, torque) = (f * i.weight, lever.transpose() * f);
                    add_scaled(
                        &mut r[i.body as usize],
                        1.0,
                        &[force.x, force.y, force.z, torque.x, torque.y, torque.z],
                    );
                }
            }
        }
    }

    /// `(A − M_bs M̃_s⁻¹ M_bsᵀ) x`: the exact condensed operator of the bones, without joints.
    pub fn condensed_product(&self, matrix: &mut SkinMatrix, x: &[Vector]) -> Vec<Vector> {
        let (skin, posed) = (self.skin, self.posed);
        let mut out = vec![[0.0; 6]; x.len()];
        self.subtract_bones(x, &mut out);
        out.iter_mut().flatten().for_each(|y| *y = -*y);
        let carried: Vec<DVec3> = (0..skin.nodes()).map(|a| carried(skin, posed, a, x) * skin.masses[a]).collect();
        let mut z: Vec<DVec3> = (0..skin.nodes())
            .map(|a| if skin.soft[a] { posed.turns[a].transpose() * carried[a] } else { DVec3::ZERO })
            .collect();
        matrix.solve(&mut z);
        for a in 0..skin.nodes() {
            let mut f = if self.mass == SkinMass::Full { carried[a] } else { DVec3::ZERO };
            if skin.soft[a] {
                f -= posed.turns[a] * z[a] * skin.masses[a];
            }
            pull(skin, posed, a, f, &mut out);
        }
        out
    }

    /// Solves (1) for `bones` (with what joints are to yield behind the bodies) and `skin`, with so many sweeps of (3).
    pub fn solve(
        &self,
        skeleton: &mut Skeleton,
        matrix: &mut SkinMatrix,
        (f_b, f_s): (&[Vector], &[DVec3]),
        refinements: u32,
        out: &mut Solution,
        mark: &mut dyn FnMut(Stage),
    ) {
        let (skin, posed) = (self.skin, self.posed);
        let Solution { bones, skin: dv_s, y, z, residual, step } = out;
        // y = M̃_s⁻¹ f_s,  b = f_b − M_bs y
        y.clear();
        y.extend_from_slice(f_s);
        matrix.solve(y);
        mark(Stage::Solve);
        bones.clear();
        bones.extend_from_slice(f_b);
        for a in 0..skin.nodes() {
            if skin.soft[a] {
                pull(skin, posed, a, posed.turns[a] * y[a] * -skin.masses[a], bones);
            }
        }
        residual.clear();
        residual.extend_from_slice(bones);
        skeleton.solve(bones);
        mark(Stage::Factor);
        z.resize(skin.nodes(), DVec3::ZERO);
        let bodies = skeleton.bodies;
        for sweep in 0..=refinements {
            // z = M̃_s⁻¹ M_bsᵀ δv
            for a in 0..skin.nodes() {
                z[a] = if skin.soft[a] {
                    posed.turns[a].transpose() * carried(skin, posed, a, bones) * skin.masses[a]
                } else {
                    DVec3::ZERO
                };
            }
            matrix.solve(z);
            mark(Stage::Solve);
            if sweep == refinements {
                break;
            }
            step.clear();
            step.extend_from_slice(residual);
            // the rows of joints hold already
            step[bodies..].fill([0.0; 6]);
            self.subtract_bones(bones, step);
            for a in 0..skin.nodes() {
                let mut f = DVec3::ZERO;
                if self.mass == SkinMass::Full {
                    f -= carried(skin, posed, a, bones) * skin.masses[a];
                }
                if skin.soft[a] {
                    f += posed.turns[a] * z[a] * skin.masses[a];
                }
                pull(skin, posed, a, f, step);
            }
            skeleton.subtract_joint_pulls(bones, step);
            skeleton.solve(step);
            for (x, dx) in bones.iter_mut().zip(step.iter()) {
                add_scaled(x, 1.0, dx);
            }
            mark(Stage::Factor);
        }
        dv_s.clear();
        dv_s.extend(y.iter().zip(z.iter()).map(|(y, z)| *y - *z));
        for (dv, soft) in dv_s.iter_mut().zip(&skin.soft) {
            if !soft {
                *dv = DVec3::ZERO;
            }
        }
    }
}

impl Solution {
    /// The solution when the skin is carried by the bones.
    pub fn carried(&mut self, skeleton: &mut Skeleton, (f_b, f_s): (&[Vector], &[DVec3])) {
        self.bones.clear();
        self.bones.extend_from_slice(f_b);
        skeleton.solve(&mut self.bones);
        self.skin.clear();
        self.skin.resize(f_s.len(), DVec3::ZERO);
    }
}

impl Skeleton {
    /// `r −= Jᵀ λ` for the bodies, λ being what stands behind the bodies in x.
    fn subtract_joint_pulls(&self, x: &[Vector], r: &mut [Vector]) {
        self.base.subtract_part(x, r, self.bodies);
    }
}

/// `R D⁻¹ Rᵀ` of a vertex \[1/kg\].
pub fn yielding(posed: &Posed, diagonal: Diagonal<'_>, a: usize) -> DMat3 {
    let turn = posed.turns[a];
    match diagonal {
        Diagonal::Blocks(blocks) => turn * blocks[a] * turn.transpose(),
        Diagonal::Scalars(scalars) => turn * turn.transpose() * scalars[a],
    }
}
