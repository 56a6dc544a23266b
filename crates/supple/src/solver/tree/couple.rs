//! Springs between two bodies anywhere in the tree, solved together with it.
//!
//! Such a spring couples two bodies that need not be neighbours, so it does not fit the tree's factors. With `B` the rows of
//! all anchors' relative velocities and `K` their matrices `h²Kd + h·damping`, the velocities `v` obey
//! `(A + BᵀKB) v = b`. One factorisation of the tree serves
//!
//! ```text
//! v₀ = A⁻¹b,   Z = B A⁻¹ Bᵀ (three solves a spring),   p = (1 + K Z)⁻¹ K B v₀,   v = v₀ − A⁻¹Bᵀ p
//! ```
//! exact for any stiffness, at a cost of the number of bodies times the number of such springs.

use super::loads::{anchor_force, anchor_levers};
use super::plan::Plan;
use super::sweep::Sweep;
use crate::contact::penalty::Touch;
use crate::input::Input;
use crate::maths::block::solve_dense;
use crate::maths::lanes::Real;
use crate::maths::small::V3;
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

pub(crate) struct Couple {
    /// Anchor springs between bodies, the lasting ones, then contacts between bodies.
    springs: Vec<Spring>,
    lasting: usize,
    contacts: Vec<ContactLoad>,
    /// `1 + K Z`, row by row, and `K B v₀`.
    matrix: Vec<f64>,
    rhs: Vec<f64>,
}

/// A contact on one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContactLoad {
    pub(crate) node: usize,
    pub(crate) lever: DVec3,
    /// `h² K + h D`
    pub(crate) k: DMat3,
    /// h F
    pub(crate) impulse: DVec3,
}

struct Spring {
    /// Index among the model's anchor springs; `None`: a contact, whose matrix stays.
    index: Option<usize>,
    /// Nodes and levers of the two sides.
    a: usize,
    b: usize,
    r_a: DVec3,
    r_b: DVec3,
    k: DMat3,
}

impl Couple {
    pub(crate) fn new(model: &Model, plan: &Plan) -> Couple {
        let node = |body: BodyId| plan.node_of[body.index()] as usize;
        let springs: Vec<Spring> = model
            .anchor_springs()
            .iter()
            .enumerate()
            .filter_map(|(index, s)| {
                let b = s.b?;
                let (r_a, r_b, k) = (DVec3::ZERO, DVec3::ZERO, DMat3::ZERO);
                Some(Spring { index: Some(index), a: node(s.a), b: node(b), r_a, r_b, k })
            })
            .collect();
        let n = 3 * springs.len();
        let lasting = springs.len();
        Couple { springs, lasting, contacts: Vec::new(), matrix: vec![0.0; n * n], rhs: vec![0.0; n] }
    }

    /// Takes the contacts of a part: those with obstacles are loads of one body, those between bodies springs.
    pub(crate) fn touch(
        &mut self,
        model: &Model,
        input: &Input,
        state: &State,
        (h, after): (f64, f64),
        plan: &Plan,
        touches: &[Touch],
    ) {
        self.springs.truncate(self.lasting);
        self.contacts.clear();
        let node = |body: BodyId| plan.node_of[body.index()] as usize;
        for touch in touches {
            let place = touch.place(state, (h, after));
            let Some(linear) = touch.linear(model, state, &place, input.gravity, h) else { continue };
            let (a, k, impulse) =
                (node(touch.follow.a), linear.stiffness * (h * h) + linear.damping * h, linear.force * h);
            let Some(b) = touch.follow.b.map(node) else {
                self.contacts.push(ContactLoad { node: a, lever: place.r_a, k, impulse });
                continue;
            };
            for (node, lever, impulse) in [(a, place.r_a, impulse), (b, place.r_b, -impulse)] {
                self.contacts.push(ContactLoad { node, lever, k: DMat3::ZERO, impulse });
            }
            self.springs.push(Spring { index: None, a, b, r_a: place.r_a, r_b: place.r_b, k });
        }
        let n = 3 * self.springs.len();
        if self.rhs.len() < n {
            self.rhs.resize(n, 0.0);
            self.matrix.resize(n * n, 0.0);
        }
    }

    /// What contacts do to single bodies.
    pub(crate) fn contacts(&self) -> &[ContactLoad] {
        &self.contacts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.springs.is_empty()
    }

    /// Solves the springs with the tree that `sweep` has factored and kept. The velocities are left in `sweep.again`.
    /// Returns the number of solves.
    pub(crate) fn join<T: Real>(&mut self, model: &Model, plan: &Plan, sweep: &mut Sweep<T>, h: f64) -> u32 {
        for spring in &mut self.springs {
            let Some(index) = spring.index else { continue };
            let given = &model.anchor_springs()[index];
            let (r_a, r_b, d) = anchor_levers(given, &sweep.moving[spring.a], &sweep.moving[spring.b]);
            let (_, k) = anchor_force(given, d, T::splat(h));
            (spring.r_a, spring.r_b) = (r_a.lane(0), r_b.lane(0));
            spring.k = DMat3::from_cols(k.row(0).lane(0), k.row(1).lane(0), k.row(2).lane(0));
        }
        // v₀: its right-hand side is already in the factors.
        sweep.solve_present(plan);
        let n = 3 * self.springs.len();
        for (s, spring) in self.springs.iter().enumerate() {
            let k = spring.k * spring.relative(&sweep.again.velocities);
            self.rhs[3 * s..3 * s + 3].copy_from_slice(&k.to_array());
        }
        sweep.set_first();
        for s in 0..self.springs.len() {
            for axis in 0..3 {
                sweep.again.clear();
                self.springs[s].push(DVec3::AXES[axis], &mut sweep.again.rhs);
                sweep.solve_again(plan);
                for (t, spring) in self.springs.iter().enumerate() {
                    let column = spring.k * spring.relative(&sweep.again.velocities);
                    for row in 0..3 {
                        let identity = if s == t && row == axis { 1.0 } else { 0.0 };
                        self.matrix[(3 * t + row) * n + 3 * s + axis] = identity + column[row];
                    }
                }
            }
        }
        solve_dense(&mut self.matrix[..n * n], &mut self.rhs[..n]);
        sweep.again.clear();
        for (s, spring) in self.springs.iter().enumerate() {
            spring.push(-DVec3::from_slice(&self.rhs[3 * s..3 * s + 3]), &mut sweep.again.rhs);
        }
        sweep.solve_again(plan);
        sweep.add_first();
        n as u32 + 2
    }
}

impl Spring {
    /// Velocity of a's anchor relative to b's.
    fn relative<T: Real>(&self, velocities: &[(V3<T>, V3<T>)]) -> DVec3 {
        let at = |node: usize, r: DVec3| velocities[node].0.lane(0) + velocities[node].1.lane(0).cross(r);
        at(self.a, self.r_a) - at(self.b, self.r_b)
    }

    /// Adds the impulse on a's anchor and its opposite on b's.
    fn push<T: Real>(&self, impulse: DVec3, rhs: &mut [(V3<T>, V3<T>)]) {
        for (node, r, p) in [(self.a, self.r_a, impulse), (self.b, self.r_b, -impulse)] {
            let (f, n) = rhs[node];
            rhs[node] = (f + V3::splat(p), n + V3::splat(r.cross(p)));
        }
    }
}
