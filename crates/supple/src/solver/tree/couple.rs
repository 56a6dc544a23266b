//! Springs and flesh between bodies anywhere in the tree, solved together with it.
//!
//! What couples bodies that need not be neighbours does not fit the tree's factors. With `B` the rows of the velocities that it
//! acts on, `K` its matrix (of a spring `h²Kd + h·damping`, of flesh `h² S`) and `g` its impulses beyond those that are loads of
//! single bodies, the velocities `v` obey `(A + BᵀKB) v = b + Bᵀg`. One factorisation of the tree serves
//!
//! ```text
//! v₀ = A⁻¹b,   Z = B A⁻¹ Bᵀ (a solve a row),   p = (1 + K Z)⁻¹ (K B v₀ − g),   v = v₀ − A⁻¹Bᵀ p
//! ```
//! exact for any stiffness, at a cost of the number of bodies times the number of rows: three of a spring, six of a body that flesh reaches.

use super::loads::{anchor_force, anchor_levers};
use super::plan::Plan;
use super::sweep::Sweep;
use crate::contact::penalty::Touch;
use crate::flesh::together::Law;
use crate::input::Input;
use crate::maths::Twist;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, solve_dense};
use crate::maths::lanes::Real;
use crate::maths::small::V3;
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

pub(crate) struct Couple {
    /// Anchor springs between bodies, the lasting ones, then contacts between bodies.
    springs: Vec<Spring>,
    lasting: usize,
    contacts: Vec<ContactLoad>,
    flesh: Vec<Fleshed>,
    /// `h² S` between bones in flesh, by their places in `flesh`.
    blocks: Vec<(usize, usize, Block)>,
    /// `B v` of the bones in flesh, and `K B v`.
    moved: Vec<Vector>,
    answer: Vec<Vector>,
    /// `1 + K Z`, row by row, and `K B v₀ − g`.
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

/// A bone in flesh.
struct Fleshed {
    body: usize,
    node: usize,
    /// g
    impulse: Vector,
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
        Couple {
            springs,
            lasting,
            contacts: Vec::new(),
            flesh: Vec::new(),
            blocks: Vec::new(),
            moved: Vec::new(),
            answer: Vec::new(),
            matrix: vec![0.0; n * n],
            rhs: vec![0.0; n],
        }
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
        self.make_room();
    }

    /// Takes what flesh does in a part `h`; `None` where there is none.
    pub(crate) fn surround(&mut self, plan: &Plan, law: Option<&Law>, h: f64) {
        self.flesh.clear();
        self.blocks.clear();
        let Some(law) = law else { return };
        // Of bodies that flesh does not reach there are blocks of zeros.
        let acts = |(i, j, block): &&(usize, usize, Block)| {
            i != j || law.wrenches[*i] != [0.0; 6] || (0..36).any(|k| block.get(k / 6, k % 6) != 0.0)
        };
        for (i, j, block) in law.blocks.iter().filter(acts) {
            let [i, j] = [i, j].map(|body| {
                self.flesh.iter().position(|bone| bone.body == *body).unwrap_or_else(|| {
                    let mut impulse = [0.0; 6];
                    add_scaled(&mut impulse, h, &law.wrenches[*body]);
                    self.flesh.push(Fleshed { body: *body, node: plan.node_of[*body] as usize, impulse });
                    self.flesh.len() - 1
                })
            });
            self.blocks.push((i, j, *block));
        }
        self.moved.resize(self.flesh.len(), [0.0; 6]);
        self.answer.resize(self.flesh.len(), [0.0; 6]);
        self.make_room();
    }

    /// Writes the displacements of bones in flesh within `h`.
    pub(crate) fn displace<T: Real>(&self, sweep: &Sweep<T>, h: f64, law: &mut Law) {
        for bone in &self.flesh {
            let mut moved = [0.0; 6];
            add_scaled(&mut moved, h, &velocity(&sweep.again.velocities, bone.node));
            law.moved[bone.body] = moved;
        }
    }

    fn rows(&self) -> usize {
        3 * self.springs.len() + 6 * self.flesh.len()
    }

    fn make_room(&mut self) {
        let n = self.rows();
        if self.rhs.len() < n {
            self.rhs.resize(n, 0.0);
            self.matrix.resize(n * n, 0.0);
        }
    }

    /// `K B v`, by row.
    fn find_answer<T: Real>(&mut self, velocities: &[(V3<T>, V3<T>)], mut write: impl FnMut(&mut Self, usize, f64)) {
        for s in 0..self.springs.len() {
            let k = self.springs[s].k * self.springs[s].relative(velocities);
            (0..3).for_each(|row| write(self, 3 * s + row, k[row]));
        }
        if self.flesh.is_empty() {
            return;
        }
        for (moved, bone) in self.moved.iter_mut().zip(&self.flesh) {
            *moved = velocity(velocities, bone.node);
        }
        self.answer.fill([0.0; 6]);
        for (i, j, block) in &self.blocks {
            add_scaled(&mut self.answer[*i], 1.0, &block.times_vector(&self.moved[*j]));
            if i != j {
                add_scaled(&mut self.answer[*j], 1.0, &block.transpose_times_vector(&self.moved[*i]));
            }
        }
        let first = 3 * self.springs.len();
        for bone in 0..self.flesh.len() {
            let answer = self.answer[bone];
            (0..6).for_each(|row| write(self, first + 6 * bone + row, answer[row]));
        }
    }

    /// Adds a unit impulse of a row, times `size`.
    fn push_row<T: Real>(&self, row: usize, size: f64, rhs: &mut [(V3<T>, V3<T>)]) {
        let springs = 3 * self.springs.len();
        if row < springs {
            self.springs[row / 3].push(DVec3::AXES[row % 3] * size, rhs);
            return;
        }
        let (bone, axis) = ((row - springs) / 6, (row - springs) % 6);
        let (f, n) = &mut rhs[self.flesh[bone].node];
        let push = V3::splat(DVec3::AXES[axis % 3] * size);
        let side = if axis < 3 { f } else { n };
        *side = *side + push;
    }

    /// What contacts do to single bodies.
    pub(crate) fn contacts(&self) -> &[ContactLoad] {
        &self.contacts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.springs.is_empty() && self.flesh.is_empty()
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
        let n = self.rows();
        self.find_answer(&sweep.again.velocities, |couple, row, k| couple.rhs[row] = k);
        let first = 3 * self.springs.len();
        for (rhs, g) in self.rhs[first..n].iter_mut().zip(self.flesh.iter().flat_map(|bone| bone.impulse)) {
            *rhs -= g;
        }
        sweep.set_first();
        for column in 0..n {
            sweep.again.clear();
            self.push_row(column, 1.0, &mut sweep.again.rhs);
            sweep.solve_again(plan);
            self.find_answer(&sweep.again.velocities, |couple, row, k| {
                couple.matrix[row * n + column] = if row == column { 1.0 + k } else { k };
            });
        }
        solve_dense(&mut self.matrix[..n * n], &mut self.rhs[..n]);
        sweep.again.clear();
        for row in 0..n {
            self.push_row(row, -self.rhs[row], &mut sweep.again.rhs);
        }
        sweep.solve_again(plan);
        sweep.add_first();
        n as u32 + 2
    }
}

/// Velocity of the body of a node.
fn velocity<T: Real>(velocities: &[(V3<T>, V3<T>)], node: usize) -> Vector {
    let (v, w) = velocities[node];
    from_twist(Twist::new(v.lane(0), w.lane(0)))
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
