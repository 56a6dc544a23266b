//! One Newton step along the tree: the exact derivative of the discrete equations, eliminated from the leaves to the root.
//!
//! The unknowns are the bodies' displacements and the joints' impulses. With the motion of a body's anchor at the end pose `(u, ρ)`
//! (displacement, rotation), `(û, ρ_p)` that of the joint on the parent, and `(F, N)` the change of the joint's impulse:
//!
//! ```text
//! (u, ρ) = (û, ρ_p) + (c, e) + S q    S: free directions at the end pose; c, e close the joint               (1)
//! (F, N) = Â (u, ρ) + p               what the joint must supply to all that hangs on it                    (2)
//! S̄ᵀ(F, N) + K_q q + K_p ρ_p = −g      S̄: free directions of the rule (averaged), g: present imbalance        (3)
//! ```
//! Levers on the left (of forces) are those of the rule, levers on the right (of displacements) those of the end pose, so Â is
//! not symmetric. Eliminating q by (3) from (2) gives what the joint passes on:
//!
//! ```text
//! D = S̄ᵀÂS + K_q    W = S̄ᵀÂ + (0, K_p)    p̄ = p + Â(c,e)    q = −D⁻¹(W(û,ρ_p) + S̄ᵀp̄ + g)
//! Â' = Â − ÂS D⁻¹ W                     p' = p̄ − ÂS D⁻¹(S̄ᵀp̄ + g)
//! ```

use crate::maths::block::solve_dense;
use crate::maths::rotation::{outer, skew};
use glam::{DMat3, DVec3};

/// A 6×6 matrix in 3×3 blocks; rows force and torque, columns displacement and rotation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub(super) vv: DMat3,
    pub(super) vw: DMat3,
    pub(super) wv: DMat3,
    pub(super) ww: DMat3,
}

impl Blocks {
    pub(super) const ZERO: Blocks = Blocks { vv: DMat3::ZERO, vw: DMat3::ZERO, wv: DMat3::ZERO, ww: DMat3::ZERO };

    #[inline(always)]
    pub(super) fn times(&self, u: DVec3, w: DVec3) -> (DVec3, DVec3) {
        (self.vv * u + self.vw * w, self.wv * u + self.ww * w)
    }

    /// Row `(f, n)` times the matrix.
    #[inline(always)]
    fn row(&self, f: DVec3, n: DVec3) -> (DVec3, DVec3) {
        (self.vv.transpose() * f + self.wv.transpose() * n, self.vw.transpose() * f + self.ww.transpose() * n)
    }

    #[inline(always)]
    fn add(&mut self, o: &Blocks) {
        self.vv += o.vv;
        self.vw += o.vw;
        self.wv += o.wv;
        self.ww += o.ww;
    }

    /// Referred to another point: displacements there are `u_new`, `u = u_new + ρ×right`; torques there gain `left × F`.
    #[inline(always)]
    fn shifted(&self, left: DVec3, right: DVec3) -> Blocks {
        let r = skew(right);
        let l = skew(left);
        let vw = self.vw - self.vv * r;
        Blocks { vv: self.vv, vw, wv: self.wv + l * self.vv, ww: self.ww - self.wv * r + l * vw }
    }
}

/// A lever: its value in the rule, for forces, and at the end pose, for displacements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lever {
    pub(super) left: DVec3,
    pub(super) right: DVec3,
}

/// A free direction, translation or rotation, in the rule and at the end pose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) turns: bool,
    pub(super) left: DVec3,
    pub(super) right: DVec3,
}

/// What (3) needs of a joint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joint {
    /// No joint: the body's own six displacements, at its centre of mass.
    Floating,
    /// All rotations free, all translations held: `K_own ρ − K_parent ρ_p` is the torques' derivative.
    Ball { k_own: DMat3, k_parent: DMat3 },
    /// Nothing free.
    Weld,
    /// Any directions: index among `Newton::any`.
    Any(u32),
}

/// What (3) needs of a joint with any free directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyJoint {
    pub(super) count: usize,
    pub(super) free: [Free; 6],
    /// K_q.
    pub(super) k: [[f64; 6]; 6],
    /// K_p, row by row.
    pub(super) k_parent: [DVec3; 6],
}

impl AnyJoint {
    pub(super) const NONE: AnyJoint = AnyJoint {
        count: 0,
        free: [Free { turns: true, left: DVec3::ZERO, right: DVec3::ZERO }; 6],
        k: [[0.0; 6]; 6],
        k_parent: [DVec3::ZERO; 6],
    };
}

/// A node's part of the system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equation {
    /// Of the body about its centre of mass.
    pub(super) body: Blocks,
    /// From the centre of mass to the anchor.
    pub(super) own: Lever,
    /// From the parent's centre of mass to the joint.
    pub(super) parent: Lever,
    pub(super) joint: Joint,
}

/// The factors of a node.
#[derive(Clone, Copy, Debug)]
enum Factor {
    Floating {
        inverse: [[f64; 6]; 6],
    },
    Ball {
        inverse: DMat3,
        row: DMat3,
        force: DMat3,
        torque: DMat3,
        parent: DMat3,
    },
    Weld,
    /// Index among the factors of joints with any directions.
    Any(u32),
}

/// `D⁻¹`, the columns of ÂS and the rows W.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyFactor {
    inverse: [[f64; 6]; 6],
    force: [DVec3; 6],
    torque: [DVec3; 6],
    w_u: [DVec3; 6],
    w_w: [DVec3; 6],
}

impl AnyFactor {
    pub(super) const NONE: AnyFactor = AnyFactor {
        inverse: [[0.0; 6]; 6],
        force: [DVec3::ZERO; 6],
        torque: [DVec3::ZERO; 6],
        w_u: [DVec3::ZERO; 6],
        w_w: [DVec3::ZERO; 6],
    };

    /// `s = D⁻¹(S̄ᵀp̄ + g)`, and what is passed on of p̄.
    pub(super) fn ascend(&self, joint: &AnyJoint, g: &[f64; 6], f: DVec3, n: DVec3) -> ([f64; 6], DVec3, DVec3) {
        let AnyJoint { count, free, .. } = joint;
        let mut load = [0.0; 6];
        for k in 0..*count {
            load[k] = g[k] + free[k].left.dot(if free[k].turns { n } else { f });
        }
        let s = times(&self.inverse, &load, *count);
        let (mut f, mut n) = (f, n);
        for k in 0..*count {
            f -= self.force[k] * s[k];
            n -= self.torque[k] * s[k];
        }
        (s, f, n)
    }

    /// The motion of the anchor, from that of the joint on the parent.
    pub(super) fn descend(
        &self,
        joint: &AnyJoint,
        s: &[f64; 6],
        (c, e): (DVec3, DVec3),
        at_joint: DVec3,
        rho_parent: DVec3,
    ) -> (DVec3, DVec3) {
        let AnyJoint { count, free, .. } = joint;
        let mut w = [0.0; 6];
        for k in 0..*count {
            w[k] = self.w_u[k].dot(at_joint) + self.w_w[k].dot(rho_parent);
        }
        let w = times(&self.inverse, &w, *count);
        let (mut u, mut rho) = (at_joint + c, rho_parent + e);
        for k in 0..*count {
            let q = -(s[k] + w[k]);
            if free[k].turns {
                rho += free[k].right * q;
            } else {
                u += free[k].right * q;
            }
        }
        (u, rho)
    }
}

/// A spring between two bodies anywhere in the tree: `−k` times the relative displacement of its ends (levers on the right) acts
/// on a, and its opposite on b (levers on the left).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) lever_a: Lever,
    pub(super) lever_b: Lever,
    pub(super) k: DMat3,
}

impl Pair {
    /// Displacement of a's end relative to b's.
    fn relative(&self, moved: &[(DVec3, DVec3)]) -> DVec3 {
        let at = |i: usize, r: DVec3| moved[i].0 + moved[i].1.cross(r);
        at(self.a, self.lever_a.right) - at(self.b, self.lever_b.right)
    }

    /// Adds an imbalance on a's end and its opposite on b's.
    fn push(&self, p: DVec3, load: &mut [(DVec3, DVec3)]) {
        for (i, r, p) in [(self.a, self.lever_a.left, p), (self.b, self.lever_b.left, -p)] {
            load[i].0 += p;
            load[i].1 += r.cross(p);
        }
    }
}

/// Matrix, factors and right-hand side by node; index 0 is the world.
pub(super) struct Newton {
    /// Springs between bodies.
    pub(super) pairs: Vec<Pair>,
    /// `1 + K Z`, row by row: Z the pairs' relative displacement for unit impulses of each.
    coupling: Vec<f64>,
    scratch: Vec<f64>,
    impulses: Vec<f64>,
    saved: Saved,
    pub(super) equations: Vec<Equation>,
    factors: Vec<Factor>,
    /// Joints that are neither balls nor welds.
    pub(super) any: Vec<AnyJoint>,
    any_factors: Vec<AnyFactor>,
    /// Â at the anchor, before elimination.
    inertia: Vec<Blocks>,
    /// The imbalances g: of a ball in world axes, else by free direction.
    pub(super) imbalance: Vec<[f64; 6]>,
    /// Imbalances p of the bodies, about their centres of mass.
    pub(super) load: Vec<(DVec3, DVec3)>,
    /// Closing motions `(c, e)` of the joints.
    pub(super) closing: Vec<(DVec3, DVec3)>,
    passed: Vec<(DVec3, DVec3)>,
    free: Vec<[f64; 6]>,
    /// Solution: `(displacement of the centre of mass, ρ)`.
    pub(super) moved: Vec<(DVec3, DVec3)>,
    /// Solution: `(F, N)` of the joints.
    pub(super) supplied: Vec<(DVec3, DVec3)>,
}

/// A right-hand side set aside.
#[derive(Default)]
struct Saved {
    load: Vec<(DVec3, DVec3)>,
    closing: Vec<(DVec3, DVec3)>,
    imbalance: Vec<[f64; 6]>,
}

impl Newton {
    pub(super) fn new(nodes: usize, any: usize) -> Newton {
        let lever = Lever::default();
        let equation = Equation { body: Blocks::ZERO, own: lever, parent: lever, joint: Joint::Weld };
        let zero = (DVec3::ZERO, DVec3::ZERO);
        Newton {
            pairs: Vec::new(),
            coupling: Vec::new(),
            scratch: Vec::new(),
            impulses: Vec::new(),
            saved: Saved::default(),
            equations: vec![equation; nodes],
            factors: vec![Factor::Weld; nodes],
            any: vec![AnyJoint::NONE; any],
            any_factors: vec![AnyFactor::NONE; any],
            inertia: vec![Blocks::ZERO; nodes],
            imbalance: vec![[0.0; 6]; nodes],
            load: vec![zero; nodes],
            closing: vec![zero; nodes],
            passed: vec![zero; nodes],
            free: vec![[0.0; 6]; nodes],
            moved: vec![zero; nodes],
            supplied: vec![zero; nodes],
        }
    }

    /// Factors the equations and their pairs; false when a pivot is singular.
    pub(super) fn factor(&mut self, parents: impl Fn(usize) -> usize + Copy) -> bool {
        if !self.factor_tree(parents) {
            return false;
        }
        let n = 3 * self.pairs.len();
        if n == 0 {
            return true;
        }
        self.save();
        self.coupling.clear();
        self.coupling.resize(n * n, 0.0);
        for s in 0..self.pairs.len() {
            for axis in 0..3 {
                self.clear();
                self.pairs[s].push(DVec3::AXES[axis], &mut self.load);
                self.solve_tree(parents);
                for (t, pair) in self.pairs.iter().enumerate() {
                    let column = pair.k * -pair.relative(&self.moved);
                    for row in 0..3 {
                        let identity = if s == t && row == axis { 1.0 } else { 0.0 };
                        self.coupling[(3 * t + row) * n + 3 * s + axis] = identity + column[row];
                    }
                }
            }
        }
        self.restore();
        true
    }

    /// Solves for the present imbalances and closing motions, pairs included: `(1 + K Z) p = K·(relative displacement without
    /// them)` are their impulses.
    pub(super) fn solve(&mut self, parents: impl Fn(usize) -> usize + Copy) {
        self.solve_tree(parents);
        if self.pairs.is_empty() {
            return;
        }
        self.impulses.clear();
        for pair in &self.pairs {
            self.impulses.extend((pair.k * pair.relative(&self.moved)).to_array());
        }
        self.scratch.clone_from(&self.coupling);
        solve_dense(&mut self.scratch, &mut self.impulses);
        for (s, pair) in self.pairs.iter().enumerate() {
            pair.push(DVec3::from_slice(&self.impulses[3 * s..]), &mut self.load);
        }
        self.solve_tree(parents);
    }

    fn save(&mut self) {
        self.saved.load.clone_from(&self.load);
        self.saved.closing.clone_from(&self.closing);
        self.saved.imbalance.clone_from(&self.imbalance);
    }

    fn restore(&mut self) {
        self.load.clone_from(&self.saved.load);
        self.closing.clone_from(&self.saved.closing);
        self.imbalance.clone_from(&self.saved.imbalance);
    }

    fn clear(&mut self) {
        self.load.fill((DVec3::ZERO, DVec3::ZERO));
        self.closing.fill((DVec3::ZERO, DVec3::ZERO));
        self.imbalance.fill([0.0; 6]);
    }

    fn factor_tree(&mut self, parents: impl Fn(usize) -> usize) -> bool {
        let count = self.equations.len();
        // To the anchors: δx = u − ρ×r, torque about it = torque − r̄×F.
        for i in 1..count {
            let e = &self.equations[i];
            self.inertia[i] = e.body.shifted(-e.own.left, -e.own.right);
        }
        for i in (1..count).rev() {
            let e = &self.equations[i];
            let a = &self.inertia[i];
            let eliminated = match e.joint {
                Joint::Any(k) => {
                    let (joint, factor) = (&self.any[k as usize], &mut self.any_factors[k as usize]);
                    eliminate_any(a, joint, factor).map(|rest| (Factor::Any(k), rest))
                }
                ref joint => eliminate(a, joint),
            };
            let Some((factor, rest)) = eliminated else { return false };
            self.factors[i] = factor;
            let p = parents(i);
            if p != 0 {
                let parent = self.equations[p].own;
                let rest = rest.shifted(e.parent.left - parent.left, e.parent.right - parent.right);
                self.inertia[p].add(&rest);
            }
        }
        true
    }

    /// Solves (1) to (3) for the present imbalances and closing motions.
    fn solve_tree(&mut self, parents: impl Fn(usize) -> usize) {
        let count = self.equations.len();
        for i in 1..count {
            let (f, n) = self.load[i];
            self.passed[i] = (f, n - self.equations[i].own.left.cross(f));
        }
        for i in (1..count).rev() {
            let (c, e) = self.closing[i];
            let (close_f, close_n) = self.inertia[i].times(c, e);
            let (f, n) = (self.passed[i].0 + close_f, self.passed[i].1 + close_n);
            let g = self.imbalance[i];
            let s = &mut self.free[i];
            // s = D⁻¹(S̄ᵀp̄ + g), and what is passed on
            let (f, n) = match &self.factors[i] {
                Factor::Floating { inverse } => {
                    *s = times(inverse, &[f.x, f.y, f.z, n.x, n.y, n.z], 6);
                    (DVec3::ZERO, DVec3::ZERO)
                }
                Factor::Ball { inverse, force, torque, .. } => {
                    let load = n + DVec3::new(g[0], g[1], g[2]);
                    let q = *inverse * load;
                    (s[0], s[1], s[2]) = (q.x, q.y, q.z);
                    (f - *force * load, n - *torque * load)
                }
                Factor::Any(k) => {
                    let passed;
                    (*s, passed) = {
                        let (s, f, n) = self.any_factors[*k as usize].ascend(&self.any[*k as usize], &g, f, n);
                        (s, (f, n))
                    };
                    passed
                }
                _ => (f, n),
            };
            let p = parents(i);
            if p != 0 {
                let hop = self.equations[i].parent.left - self.equations[p].own.left;
                self.passed[p].0 += f;
                self.passed[p].1 += n + hop.cross(f);
            }
        }
        self.moved[0] = (DVec3::ZERO, DVec3::ZERO);
        for i in 1..count {
            let equation = &self.equations[i];
            let (x, rho_p) = self.moved[parents(i)];
            let (c, e) = self.closing[i];
            let at_joint = x + rho_p.cross(equation.parent.right);
            let s = &self.free[i];
            let (u, rho) = match &self.factors[i] {
                Factor::Floating { .. } => (-DVec3::new(s[0], s[1], s[2]), -DVec3::new(s[3], s[4], s[5])),
                Factor::Ball { row, parent, .. } => {
                    (at_joint + c, *parent * rho_p - *row * at_joint - DVec3::new(s[0], s[1], s[2]))
                }
                Factor::Any(k) => {
                    let k = *k as usize;
                    self.any_factors[k].descend(&self.any[k], s, (c, e), at_joint, rho_p)
                }
                _ => (at_joint + c, rho_p + e),
            };
            let (f, n) = self.inertia[i].times(u, rho);
            self.supplied[i] = (f + self.passed[i].0, n + self.passed[i].1);
            self.moved[i] = (u - rho.cross(equation.own.right), rho);
        }
    }
}

/// Eliminates one joint; `None` when its pivot is singular.
fn eliminate(a: &Blocks, joint: &Joint) -> Option<(Factor, Blocks)> {
    match joint {
        Joint::Weld => Some((Factor::Weld, *a)),
        Joint::Floating => Some((Factor::Floating { inverse: inverse(&dense(a), 6)? }, Blocks::ZERO)),
        Joint::Ball { k_own, k_parent } => {
            // ρ = D⁻¹(K_parent ρ_p − Hl û − p − g),  D = I + K_own; nothing cancels for any stiffness
            let d = a.ww + *k_own;
            let det = d.determinant();
            if !(det.is_finite() && det != 0.0) {
                return None;
            }
            let inverse = d.inverse();
            let parent = inverse * *k_parent;
            let left = inverse * a.wv;
            let rest = Blocks { vv: a.vv - a.vw * left, vw: a.vw * parent, wv: *k_own * left, ww: a.ww * parent };
            let (force, torque) = (a.vw * inverse, a.ww * inverse);
            Some((Factor::Ball { inverse, row: left, force, torque, parent }, rest))
        }
        Joint::Any(_) => unreachable!("eliminated by eliminate_any"),
    }
}

/// Eliminates a joint with any free directions; `None` when its pivot is singular.
pub(super) fn eliminate_any(a: &Blocks, joint: &AnyJoint, factor: &mut AnyFactor) -> Option<Blocks> {
    let AnyJoint { count: n, free, k, k_parent } = joint;
    let n = *n;
    let AnyFactor { inverse: d_inverse, force, torque, w_u, w_w } = factor;
    let mut d = *k;
    for j in 0..n {
        let (u, w) = if free[j].turns { (DVec3::ZERO, free[j].right) } else { (free[j].right, DVec3::ZERO) };
        (force[j], torque[j]) = a.times(u, w);
        let (f, t) = if free[j].turns { (DVec3::ZERO, free[j].left) } else { (free[j].left, DVec3::ZERO) };
        let (row_u, row_w) = a.row(f, t);
        (w_u[j], w_w[j]) = (row_u, row_w + k_parent[j]);
    }
    for i in 0..n {
        for j in 0..n {
            d[i][j] += free[i].left.dot(if free[i].turns { torque[j] } else { force[j] });
        }
    }
    *d_inverse = inverse(&d, n)?;
    let mut rest = *a;
    for i in 0..n {
        for j in 0..n {
            let s = d_inverse[i][j];
            rest.vv -= outer(force[i] * s, w_u[j]);
            rest.vw -= outer(force[i] * s, w_w[j]);
            rest.wv -= outer(torque[i] * s, w_u[j]);
            rest.ww -= outer(torque[i] * s, w_w[j]);
        }
    }
    Some(rest)
}

fn dense(a: &Blocks) -> [[f64; 6]; 6] {
    let mut m = [[0.0; 6]; 6];
    for i in 0..3 {
        for k in 0..3 {
            m[i][k] = a.vv.col(k)[i];
            m[i][k + 3] = a.vw.col(k)[i];
            m[i + 3][k] = a.wv.col(k)[i];
            m[i + 3][k + 3] = a.ww.col(k)[i];
        }
    }
    m
}

fn times(m: &[[f64; 6]; 6], x: &[f64; 6], n: usize) -> [f64; 6] {
    let mut y = [0.0; 6];
    for i in 0..n {
        for k in 0..n {
            y[i] += m[i][k] * x[k];
        }
    }
    y
}

/// The inverse of the leading n×n part, by Gauss–Jordan with row exchange.
fn inverse(m: &[[f64; 6]; 6], n: usize) -> Option<[[f64; 6]; 6]> {
    let mut a = *m;
    let mut b = [[0.0; 6]; 6];
    for i in 0..n {
        b[i][i] = 1.0;
    }
    for c in 0..n {
        let pivot = (c..n).max_by(|&i, &k| a[i][c].abs().total_cmp(&a[k][c].abs()))?;
        a.swap(c, pivot);
        b.swap(c, pivot);
        let s = 1.0 / a[c][c];
        if !s.is_finite() {
            return None;
        }
        for k in 0..n {
            a[c][k] *= s;
            b[c][k] *= s;
        }
        for r in 0..n {
            if r != c {
                let f = a[r][c];
                for k in 0..n {
                    a[r][k] -= f * a[c][k];
                    b[r][k] -= f * b[c][k];
                }
            }
        }
    }
    Some(b)
}
