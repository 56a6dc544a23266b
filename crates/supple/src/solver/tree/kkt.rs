//! Elimination of the KKT form along the tree of bodies and joints, in linear time [Hernández 2011, §3.3, §4].
//!
//! Bodies and joints alternate: a body's parent is its joint, its grandparent the body at the other side. Eliminated
//! from the leaves, a body touches only these two and a joint only its parent body, so no block arises that was not there.
//! [`TreeLdlt`] is the paper's factorisation, for symmetric systems; [`TreeLdu`] the same order for any. A joint to the world,
//! or a floating body, is the root. Storage is made once; factoring and solving allocate nothing.
//!
//! Pivots: a body's is its articulated inertia with implicit terms (positive definite for a positive definite A), a joint's is
//! `−J B⁻¹ Jᵀ` of what hangs on it (negative definite while its rows are independent), so none are exchanged between blocks.

use super::assemble::{Gyroscopic, Options, System, SystemNode, Uncoupled, Unknown, check};
use crate::contact::penalty::Touch;
use crate::forces::{Acting, Derivatives, Source};
use crate::input::Input;
use crate::maths::block::{Block, Ldlt, Lu, add_scaled, to_twist};
use crate::maths::rotation::exp;
use crate::maths::{Twist, Wrench};
use crate::measure;
use crate::model::{BodyId, BodyState, JointId, Model, State};
use crate::step::{Failure, Report, StepError};
use crate::watch::{Notes, Stage};

/// The pivot at which a factorisation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Singular {
    /// A body's: its numbers are not finite, or A is not positive.
    Body(BodyId),
    /// A joint's: its rows depend on one another.
    Joint(JointId),
}

impl Singular {
    fn failure(self) -> Failure {
        match self {
            Singular::Body(id) => Failure::NotFinite(id),
            Singular::Joint(id) => Failure::Factor(id),
        }
    }

    fn describe(self, model: &Model) -> StepError {
        match self {
            Singular::Body(id) => {
                StepError::NotFinite { body: model.body(id).name.clone(), remedy: "use a smaller dt or softer springs" }
            }
            Singular::Joint(id) => StepError::Factor { joint: model.joint(id).name.clone() },
        }
    }
}

/// The children of node `i` in tree order: each subtree is contiguous.
fn children(system: &System, i: usize) -> impl Iterator<Item = usize> + '_ {
    let end = i + system.nodes[i].subtree;
    let first = i + 1;
    std::iter::successors((first < end).then_some(first), move |&c| {
        let next = c + system.nodes[c].subtree;
        (next < end).then_some(next)
    })
}

/// Rows shorter than this have lost their direction: rows of translations are at least 1 long, those of rotations are
/// sines of the angle between two axes (its square is the relative bound of the pivots in `maths/block.rs`).
const SHORT_ROW: f64 = 1e-7;

/// The joint of a node when a row of it has no direction: a Cardan joint whose two axes are parallel.
fn without_direction(node: &SystemNode) -> Option<JointId> {
    let short = |k: usize| (0..6).map(|i| node.j.get(k, i).powi(2)).sum::<f64>() < SHORT_ROW * SHORT_ROW;
    node.joint.filter(|_| (0..node.j.rows()).any(short))
}

/// Symmetric factors of one node: i the body, j its joint, p the parent body.
#[derive(Clone, Copy, Debug)]
struct LdltNode {
    /// D_i.
    body: Ldlt,
    /// D_j.
    joint: Ldlt,
    /// H_ij before and after scaling by D_i⁻¹: 6×m.
    ij: [Block; 2],
    /// H_ip before and after scaling.
    ip: [Block; 2],
    /// H_jp before and after scaling by D_j⁻¹: m×6.
    jp: [Block; 2],
}

/// `H = L D Lᵀ` over the tree [Hernández 2011, §4, sparsefactor and sparsesolve].
#[derive(Clone, Debug)]
pub struct TreeLdlt {
    nodes: Vec<LdltNode>,
}

impl TreeLdlt {
    /// Room for the factors of `model`.
    pub fn new(model: &Model) -> TreeLdlt {
        let empty = [Block::zeros(0, 0); 2];
        let node = LdltNode { body: Ldlt::EMPTY, joint: Ldlt::EMPTY, ij: empty, ip: empty, jp: empty };
        TreeLdlt { nodes: vec![node; model.topology().nodes.len()] }
    }

    /// Factors a symmetric system.
    pub fn factor(&mut self, system: &System) -> Result<(), Singular> {
        for i in (0..system.nodes.len()).rev() {
            let node = &system.nodes[i];

            // H_ii −= H_jiᵀ D_j H_ji + H_kiᵀ D_k H_ki  over child joints j and the bodies k below them;
            // D H, scaled, is H before scaling
            let mut pivot = node.a;
            for c in children(system, i) {
                let LdltNode { jp, ip, .. } = &self.nodes[c];
                pivot.add_scaled(-1.0, &jp[1].transpose_times(&jp[0]));
                pivot.add_scaled(-1.0, &ip[1].transpose_times(&ip[0]));
            }
            let body = Ldlt::new(&pivot).ok_or(Singular::Body(node.body))?;
            if let Some(id) = without_direction(node) {
                return Err(Singular::Joint(id));
            }
            let (j, up) = (node.j.transposed(), node.a_up);
            let ij = [j, body.solve_block(&j)];
            let ip = [up, body.solve_block(&up)];

            // The joint: H_jj −= H_ijᵀ D_i H_ij,  H_jp −= H_ijᵀ D_i H_ip
            let mut pivot = Block::zeros(node.j.rows(), node.j.rows());
            pivot.add_scaled(-1.0, &ij[1].transpose_times(&ij[0]));
            let joint = match node.joint {
                Some(id) => Ldlt::new(&pivot).ok_or(Singular::Joint(id))?,
                None => Ldlt::EMPTY,
            };
            let mut up = node.j_up;
            up.add_scaled(-1.0, &ij[1].transpose_times(&ip[0]));
            let jp = [up, joint.solve_block(&up)];
            self.nodes[i] = LdltNode { body, joint, ij, ip, jp };
        }
        Ok(())
    }

    /// Solves for one right-hand side, in place. The paper prints H_ij and H_ik in the first loop where H_ji and H_ki are
    /// meant.
    pub fn solve(&self, system: &System, x: &mut [Unknown]) {
        // x_i = z_i − Σ H_jiᵀ x_j − Σ H_kiᵀ x_k, leaves to root
        for i in (0..system.nodes.len()).rev() {
            let node = &self.nodes[i];
            for c in children(system, i) {
                let below = x[c];
                add_scaled(&mut x[i].body, -1.0, &self.nodes[c].jp[1].transpose_times_vector(&below.joint));
                add_scaled(&mut x[i].body, -1.0, &self.nodes[c].ip[1].transpose_times_vector(&below.body));
            }
            let body = x[i].body;
            add_scaled(&mut x[i].joint, -1.0, &node.ij[1].transpose_times_vector(&body));
        }
        // x_i = D_i⁻¹ x_i − H_ip x_p − H_ig x_g, root to leaves
        for i in 0..system.nodes.len() {
            let node = &self.nodes[i];
            let parent = system.nodes[i].parent.checked_sub(1).map_or([0.0; 6], |p| x[p].body);
            let mut joint = node.joint.solve(&x[i].joint);
            add_scaled(&mut joint, -1.0, &node.jp[1].times_vector(&parent));
            let mut body = node.body.solve(&x[i].body);
            add_scaled(&mut body, -1.0, &node.ij[1].times_vector(&joint));
            add_scaled(&mut body, -1.0, &node.ip[1].times_vector(&parent));
            x[i] = Unknown { body, joint };
        }
    }
}

/// Factors of one node of a system that need not be symmetric. `up` blocks are of U, `down` blocks of L, both scaled.
#[derive(Clone, Copy, Debug)]
struct LduNode {
    /// A_ii less what was eliminated; while factoring.
    pivot: Block,
    /// D_i.
    body: Lu,
    /// D_j.
    joint: Lu,
    /// U_ij, 6×m.
    ij: Block,
    /// L_ji, m×6.
    ji: Block,
    /// U_ip.
    ip: Block,
    /// L_pi.
    pi: Block,
    /// U_jp, m×6.
    jp: Block,
    /// L_pj, 6×m.
    pj: Block,
}

/// `H = L D U` over the tree: the same elimination without symmetry, eliminated blocks subtracted at once.
#[derive(Clone, Debug)]
pub struct TreeLdu {
    nodes: Vec<LduNode>,
}

impl TreeLdu {
    /// Room for the factors of `model`.
    pub fn new(model: &Model) -> TreeLdu {
        let e = Block::zeros(0, 0);
        let node = LduNode { pivot: e, body: Lu::EMPTY, joint: Lu::EMPTY, ij: e, ji: e, ip: e, pi: e, jp: e, pj: e };
        TreeLdu { nodes: vec![node; model.topology().nodes.len()] }
    }

    /// Factors any system.
    pub fn factor(&mut self, system: &System) -> Result<(), Singular> {
        for (factors, node) in self.nodes.iter_mut().zip(&system.nodes) {
            factors.pivot = node.a;
        }
        for i in (0..system.nodes.len()).rev() {
            let node = &system.nodes[i];
            let parent = node.parent.checked_sub(1);

            // Body: U_it = D⁻¹ H_it, L_ti = H_ti D⁻¹, H_st −= L_si H_it  for s, t among joint j and parent p
            let body = Lu::new(&self.nodes[i].pivot).ok_or(Singular::Body(node.body))?;
            let transposed = Lu::new(&self.nodes[i].pivot.transposed()).ok_or(Singular::Body(node.body))?;
            if let Some(id) = without_direction(node) {
                return Err(Singular::Joint(id));
            }
            let ij = body.solve_block(&node.j.transposed());
            let ip = body.solve_block(&node.a_up);
            let ji = transposed.solve_block(&node.j.transposed()).transposed();
            let pi = transposed.solve_block(&node.a_down.transposed()).transposed();
            let mut pivot = Block::zeros(node.j.rows(), node.j.rows());
            pivot.add_scaled(-1.0, &ji.times(&node.j.transposed()));
            let (mut h_jp, mut h_pj) = (node.j_up, node.j_up.transposed());
            h_jp.add_scaled(-1.0, &ji.times(&node.a_up));
            h_pj.add_scaled(-1.0, &pi.times(&node.j.transposed()));
            if let Some(p) = parent {
                self.nodes[p].pivot.add_scaled(-1.0, &pi.times(&node.a_up));
            }

            // Joint: U_jp = D⁻¹ H_jp, L_pj = H_pj D⁻¹, H_pp −= L_pj H_jp
            let (mut joint, mut jp, mut pj) = (Lu::EMPTY, h_jp, h_pj);
            if let Some(id) = node.joint {
                joint = Lu::new(&pivot).ok_or(Singular::Joint(id))?;
                let transposed = Lu::new(&pivot.transposed()).ok_or(Singular::Joint(id))?;
                jp = joint.solve_block(&h_jp);
                pj = transposed.solve_block(&h_pj.transposed()).transposed();
                if let Some(p) = parent {
                    self.nodes[p].pivot.add_scaled(-1.0, &pj.times(&h_jp));
                }
            }
            self.nodes[i] = LduNode { pivot: self.nodes[i].pivot, body, joint, ij, ji, ip, pi, jp, pj };
        }
        Ok(())
    }

    /// Solves for one right-hand side, in place.
    pub fn solve(&self, system: &System, x: &mut [Unknown]) {
        // x_t −= L_ti x_i, leaves to root
        for i in (0..system.nodes.len()).rev() {
            let node = &self.nodes[i];
            let body = x[i].body;
            add_scaled(&mut x[i].joint, -1.0, &node.ji.times_vector(&body));
            let joint = x[i].joint;
            if let Some(p) = system.nodes[i].parent.checked_sub(1) {
                add_scaled(&mut x[p].body, -1.0, &node.pi.times_vector(&body));
                add_scaled(&mut x[p].body, -1.0, &node.pj.times_vector(&joint));
            }
        }
        // x_i = D⁻¹ x_i − Σ U_it x_t, root to leaves
        for i in 0..system.nodes.len() {
            let node = &self.nodes[i];
            let parent = system.nodes[i].parent.checked_sub(1).map_or([0.0; 6], |p| x[p].body);
            let mut joint = node.joint.solve(&x[i].joint);
            add_scaled(&mut joint, -1.0, &node.jp.times_vector(&parent));
            let mut body = node.body.solve(&x[i].body);
            add_scaled(&mut body, -1.0, &node.ij.times_vector(&joint));
            add_scaled(&mut body, -1.0, &node.ip.times_vector(&parent));
            x[i] = Unknown { body, joint };
        }
    }
}

/// The velocities at the end of a part `h` by the system with symmetric blocks, its LDLᵀ and one refinement: what the
/// fast kernels are compared with. By body.
pub fn reference_velocities(model: &Model, input: &Input, state: &State, h: f64) -> Result<Vec<Twist>, StepError> {
    Ok(reference(model, input, state, h)?.0)
}

/// As [`reference_velocities`], and the impulse each joint exerts on its child, by joint.
pub fn reference(model: &Model, input: &Input, state: &State, h: f64) -> Result<(Vec<Twist>, Vec<Wrench>), StepError> {
    check(model)?;
    let mut system = System::new(model);
    let options = Options { derivatives: Derivatives::Symmetric, gyroscopic: Gyroscopic::Split };
    system.assemble(model, input, state, h, options).expect(CHECKED);
    let mut factors = TreeLdlt::new(model);
    factors.factor(&system).map_err(|singular| singular.describe(model))?;
    let mut x = vec![Unknown::default(); system.nodes.len()];
    system.load(&mut x);
    factors.solve(&system, &mut x);
    // x += H⁻¹ (z − H x)
    let mut r = x.clone();
    system.residual(&x, &mut r);
    factors.solve(&system, &mut r);
    for (x, r) in x.iter_mut().zip(&r) {
        add_scaled(&mut x.body, 1.0, &r.body);
        add_scaled(&mut x.joint, 1.0, &r.joint);
    }
    let twists = model.topology().node_of.iter().map(|&i| to_twist(&x[i].body)).collect();
    let mut impulses = Vec::new();
    joint_impulses(model, &system, &x, &mut impulses);
    Ok((twists, impulses))
}

const CHECKED: &str = "anchor springs that fit no block are refused by assemble::check before the step";

fn joint_impulses(model: &Model, system: &System, x: &[Unknown], impulses: &mut Vec<Wrench>) {
    impulses.resize(model.joints().len(), Wrench::ZERO);
    for (i, node) in system.nodes.iter().enumerate() {
        if let Some(id) = node.joint {
            impulses[id.index()] = system.joint_impulse(model, x, i);
        }
    }
}

/// Scratch of the schemes that solve the KKT form.
pub struct KktWork {
    pub(super) system: System,
    ldlt: TreeLdlt,
    ldu: TreeLdu,
    x: Vec<Unknown>,
    moved: Vec<BodyState>,
}

impl KktWork {
    /// Scratch for `model`.
    pub fn new(model: &Model) -> KktWork {
        KktWork {
            system: System::new(model),
            ldlt: TreeLdlt::new(model),
            ldu: TreeLdu::new(model),
            x: vec![Unknown::default(); model.bodies().len()],
            moved: model.start().bodies,
        }
    }

    /// The impulse each joint exerted on its child in the last part, by joint, after [`exact_substep`]; after the explicit
    /// form the force.
    pub(crate) fn joint_impulses(&self, model: &Model, impulses: &mut Vec<Wrench>) {
        joint_impulses(model, &self.system, &self.x, impulses);
    }

    /// Factors the assembled system, which is symmetric, and solves it into `x`.
    pub(super) fn solve_symmetric(&mut self, notes: &mut Notes) -> Result<(), Failure> {
        self.ldlt.factor(&self.system).map_err(Singular::failure)?;
        notes.mark(Stage::Factor);
        self.system.load(&mut self.x);
        self.ldlt.solve(&self.system, &mut self.x);
        notes.mark(Stage::Solve);
        Ok(())
    }

    /// Moves the bodies with the velocities `twist(body at the start, its solution)` for `h`: `x += h v`, `q ← exp(h ω) q`. On failure `state` is
    /// as it was.
    pub(super) fn move_bodies(
        &mut self,
        model: &Model,
        h: f64,
        state: &mut State,
        twist: impl Fn(&BodyState, Twist) -> Twist,
    ) -> Result<Report, Failure> {
        for (node, x) in self.system.nodes.iter().zip(&self.x) {
            let mut body = state.bodies[node.body.index()];
            body.velocity = twist(&body, to_twist(&x.body));
            body.position += body.velocity.linear * h;
            body.orientation = (exp(body.velocity.angular * h) * body.orientation).normalize();
            if !body.is_finite() {
                return Err(Failure::NotFinite(node.body));
            }
            self.moved[node.body.index()] = body;
        }
        state.bodies.copy_from_slice(&self.moved);
        state.follow_turns(model);
        let gap = measure::joint_gap(model, state);
        Ok(Report {
            max_joint_gap: gap.distance,
            max_joint_tilt: gap.tilt,
            widest_joint: gap.joint,
            substeps: 1,
            factorisations: 1,
            solves: 1,
            limits_active: self.system.limits_active,
            ..Report::default()
        })
    }
}

/// One part of a step by the exact, non-symmetric derivatives [Hernández 2011, eq. 3, 4, 6] and LDU.
/// The model has passed [`check`].
pub(crate) fn exact_substep(
    model: &Model,
    (input, touches): (&Input, &[Touch]),
    (h, after): (f64, f64),
    state: &mut State,
    work: &mut KktWork,
    notes: &mut Notes,
) -> Result<Report, Failure> {
    let options = Options { derivatives: Derivatives::Exact, gyroscopic: Gyroscopic::Split };
    work.system.assemble(model, input, state, h, options).unwrap_or_else(|Uncoupled(_)| panic!("{CHECKED}"));
    for touch in touches {
        let place = touch.place(state, (h, after));
        let Some(linear) = touch.linear(model, state, &place, input.gravity, h) else { continue };
        touch.forces(&place, &linear, |force| {
            let acting = Acting { source: Source::Contact, a: touch.follow.a, b: touch.follow.b, force };
            work.system.add_force(model, &acting, h).unwrap_or_else(|Uncoupled(_)| panic!("{CHECKED}"));
        });
    }
    notes.mark(Stage::Forces);
    work.ldu.factor(&work.system).map_err(Singular::failure)?;
    notes.mark(Stage::Factor);
    work.system.load(&mut work.x);
    work.ldu.solve(&work.system, &mut work.x);
    notes.mark(Stage::Solve);
    let report = work.move_bodies(model, h, state, |_, end| end);
    notes.mark(Stage::Measure);
    report
}
