//! What resists a motion: the masses of the bodies, and the springs that a part of a step meets on its way.
//!
//! A motion `δ` costs `½ δᵀ N δ`. Without springs `N` is the mass `M` of the bodies. A force of the common law (`forces.rs` of the crate) that
//! is taken at the end of a part `h` is, over the displacement `D` of the part, `W − K D − C D/h`; it moves the bodies as an energy does:
//!
//! ```text
//! h² (W − K D − C D/h) = h² W − (h² K + h C) D                                                                     (1)
//! N = M + h² K + h C                                                                                               (2)
//! ```
//! so that the least motion in `N` that closes the joints is the step under stiff springs, whatever their stiffness: the backward rule,
//! linearised at the start of the part. `N` is sparse, factored once a part.

use super::rows::{Motions, pairs};
use crate::flesh::together::Law;
use crate::forces::{self, Derivatives};
use crate::input::Input;
use crate::maths::block::{Block, Vector, from_wrench, to_twist};
use crate::maths::rotation::turned_inertia;
use crate::maths::sparse::{Ldl, Sparse};
use crate::maths::{Twist, Wrench};
use crate::model::{BodyId, BodyState, Model, State};
use crate::step::Failure;
use glam::{DMat3, DVec3};

/// What resists motion, and what pushes.
pub(super) struct Inertia {
    // By body; inertias in body axes.
    masses: Vec<f64>,
    inertias: Vec<DMat3>,
    inverse_inertias: Vec<DMat3>,
    /// World axes, at the present pose.
    turned: Vec<DMat3>,
    /// The longest to a joint \[m\].
    levers: Vec<f64>,
    turned_inverse: Vec<DMat3>,
    /// Gravity and given wrenches.
    outside: Vec<Wrench>,
    /// `h² W` of springs, dampers, limits and motors.
    pushed: Vec<Vector>,
    with_springs: Sparse,
    factors: Ldl,
    springs: Springs,
    pub(super) limits_active: u32,
}

/// Whether springs resist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Springs {
    /// `N = M`, at the present pose.
    None,
    /// `N` as factored at the start of the part.
    Factored,
}

impl Inertia {
    pub(super) fn new(model: &Model) -> Inertia {
        let bodies = model.bodies();
        let with_springs = Sparse::new(&vec![6; bodies.len()], &pairs(model));
        Inertia {
            masses: bodies.iter().map(|body| body.mass).collect(),
            inertias: bodies.iter().map(|body| body.inertia).collect(),
            inverse_inertias: bodies.iter().map(|body| body.inertia.inverse()).collect(),
            turned: vec![DMat3::ZERO; bodies.len()],
            levers: levers(model),
            turned_inverse: vec![DMat3::ZERO; bodies.len()],
            outside: vec![Wrench::ZERO; bodies.len()],
            pushed: vec![[0.0; 6]; bodies.len()],
            factors: Ldl::new(&with_springs),
            with_springs,
            springs: Springs::None,
            limits_active: 0,
        }
    }

    /// The distance that a radian counts as between two bodies \[m\]: their radius of gyration. Least squares need a common unit.
    pub(super) fn length(&self, a: usize, b: usize) -> f64 {
        let mean = |m: &DMat3| (m.x_axis.x + m.y_axis.y + m.z_axis.z) / 3.0;
        let linear = |i: usize| self.masses.get(i).map_or(0.0, |m| 1.0 / m);
        let angular = |i: usize| self.inverse_inertias.get(i).map_or(0.0, mean);
        ((linear(a) + linear(b)) / (angular(a) + angular(b))).sqrt()
    }

    /// Whether springs, dampers, limits, motors or flesh act in this part.
    pub(super) fn has_springs(&self) -> bool {
        self.springs == Springs::Factored
    }

    /// `N = M`.
    pub(super) fn without_springs(&mut self) {
        self.springs = Springs::None;
        self.limits_active = 0;
    }

    /// At the poses of `state`; bodies turn with `I + wary · m r`, r their longest lever.
    pub(super) fn turn(&mut self, state: &State, wary: f64) {
        if self.springs == Springs::None {
            for (i, body) in state.bodies.iter().enumerate() {
                let resisted = DVec3::splat(wary * self.masses[i] * self.levers[i]);
                let inertia = self.inertias[i] + DMat3::from_diagonal(resisted);
                self.turned[i] = turned_inertia(body.orientation, inertia);
                self.turned_inverse[i] = self.turned[i].inverse();
            }
        }
    }

    /// What acts during a part `h` that starts at `state`: by (2) when a spring, damper, limit or motor acts.
    pub(super) fn load(
        &mut self,
        model: &Model,
        (input, flesh): (&Input, Option<&Law>),
        state: &State,
        h: f64,
    ) -> Result<(), Failure> {
        self.load_outside(input);
        self.without_springs();
        self.pushed.fill([0.0; 6]);
        self.with_springs.clear();
        let Inertia { pushed, with_springs, springs, .. } = self;
        self.limits_active = forces::collect(model, input, state, h, Derivatives::Symmetric, |acting| {
            let (a, b) = (acting.a.index(), acting.b.map(BodyId::index).filter(|b| *b != acting.a.index()));
            *springs = Springs::Factored;
            let [on_a, on_b] = acting.force.wrenches();
            let block = acting.force.block(h * h, h);
            crate::maths::block::add_scaled(&mut pushed[a], h * h, &from_wrench(on_a));
            with_springs.add(a, a, &block.aa);
            if let Some(b) = b {
                crate::maths::block::add_scaled(&mut pushed[b], h * h, &from_wrench(on_b));
                with_springs.add(b, b, &block.bb);
                with_springs.add(a, b, &block.ab);
            }
        });
        if let Some(law) = flesh {
            self.springs = Springs::Factored;
            for (pushed, wrench) in self.pushed.iter_mut().zip(&law.wrenches) {
                crate::maths::block::add_scaled(pushed, h * h, wrench);
            }
            for (i, j, block) in &law.blocks {
                self.with_springs.add(*i, *j, block);
            }
        }
        if self.springs == Springs::Factored {
            for (i, body) in state.bodies.iter().enumerate() {
                let inertia = turned_inertia(body.orientation, self.inertias[i]);
                let mass = DMat3::from_diagonal(DVec3::splat(self.masses[i]));
                self.with_springs.add(i, i, &Block::from_quarters(mass, DMat3::ZERO, DMat3::ZERO, inertia));
            }
            self.factors.factor(&self.with_springs).map_err(|body| Failure::NotFinite(BodyId(body as u32)))?;
        }
        Ok(())
    }

    /// All forces at the start of the part, none at its end.
    pub(super) fn load_explicit(&mut self, model: &Model, input: &Input, state: &State) {
        self.load_outside(input);
        self.without_springs();
        let outside = &mut self.outside;
        let velocity = |body: Option<BodyId>| body.map_or(Twist::ZERO, |b| state.bodies[b.index()].velocity);
        self.limits_active = forces::collect(model, input, state, 0.0, Derivatives::Symmetric, |acting| {
            let sides = [Some(acting.a), acting.b];
            let wrenches = acting.force.wrenches_at(velocity(sides[0]), velocity(sides[1]));
            for (body, wrench) in sides.into_iter().zip(wrenches) {
                if let Some(body) = body {
                    outside[body.index()] += wrench;
                }
            }
        });
    }

    /// Gravity and given wrenches.
    fn load_outside(&mut self, input: &Input) {
        for (sum, mass) in self.outside.iter_mut().zip(&self.masses) {
            *sum = Wrench::new(input.gravity * *mass, DVec3::ZERO);
        }
        for (body, wrench) in &input.wrenches {
            self.outside[body.index()] += *wrench;
        }
    }

    /// Adds `scale · N`.
    pub(super) fn add_to(&self, matrix: &mut Sparse, scale: f64) {
        match self.springs {
            Springs::None => {
                for i in 0..self.masses.len() {
                    let linear = DMat3::from_diagonal(DVec3::splat(scale * self.masses[i]));
                    let block = Block::from_quarters(linear, DMat3::ZERO, DMat3::ZERO, self.turned[i] * scale);
                    matrix.add(i, i, &block);
                }
            }
            Springs::Factored => matrix.add_scaled(scale, &self.with_springs),
        }
    }

    /// `z = N⁻¹ s`, by body.
    pub(super) fn resist(&mut self, s: &Motions, z: &mut Motions) {
        match self.springs {
            Springs::None => {
                for (i, (z, s)) in z.iter_mut().zip(s).enumerate().take(self.masses.len()) {
                    let inverse = 1.0 / self.masses[i];
                    let w = self.turned_inverse[i] * DVec3::new(s[3], s[4], s[5]);
                    *z = [s[0] * inverse, s[1] * inverse, s[2] * inverse, w.x, w.y, w.z];
                }
            }
            Springs::Factored => {
                let bodies = self.masses.len();
                z[..bodies].copy_from_slice(&s[..bodies]);
                self.factors.solve(&mut z[..bodies]);
            }
        }
    }

    /// The displacements that make `½ (D − Δ)ᵀ M (D − Δ)` and the springs' energy smallest: `N D = M Δ + h² W` by (1).
    pub(super) fn yield_to_springs(&mut self, state: &State, displacements: &mut [Twist]) {
        if self.springs == Springs::None {
            return;
        }
        for (i, (sum, d)) in self.pushed.iter_mut().zip(displacements.iter()).enumerate() {
            let momentum = turned_inertia(state.bodies[i].orientation, self.inertias[i]) * d.angular;
            let plus = Wrench::new(d.linear * self.masses[i], momentum);
            crate::maths::block::add_scaled(sum, 1.0, &from_wrench(plus));
        }
        self.factors.solve(&mut self.pushed);
        for (d, solved) in displacements.iter_mut().zip(&self.pushed) {
            *d = to_twist(solved);
        }
    }

    /// `Δᵀ M Δ` of displacements, at the orientations of `state`.
    pub(super) fn size(&self, state: &State, displacements: &[Twist]) -> f64 {
        let each = displacements.iter().zip(&state.bodies).enumerate().map(|(i, (d, body))| {
            let turn = body.orientation.conjugate() * d.angular;
            self.masses[i] * d.linear.length_squared() + turn.dot(self.inertias[i] * turn)
        });
        each.sum()
    }

    /// `M⁻¹` of what pushes a body from outside.
    pub(super) fn acceleration(&self, i: usize, body: &BodyState) -> Twist {
        let (q, wrench) = (body.orientation, self.outside[i]);
        let angular = q * (self.inverse_inertias[i] * (q.conjugate() * wrench.torque));
        Twist::new(wrench.force / self.masses[i], angular)
    }

    /// The angular velocity `omega` after the gyroscopic torque has acted for `h`, in its stable form.
    pub(super) fn spun(&self, i: usize, body: &BodyState, omega: DVec3, h: f64) -> DVec3 {
        let q = body.orientation;
        q * forces::gyroscopic(self.inertias[i], q.conjugate() * omega, h)
    }
}

pub(super) fn dot(a: &Vector, b: &Vector) -> f64 {
    (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]) + (a[4] * b[4] + a[5] * b[5])
}

/// By body: the longest lever to a joint \[m\].
fn levers(model: &Model) -> Vec<f64> {
    let mut levers = vec![0.0f64; model.bodies().len()];
    for joint in model.joints() {
        let sides = [(Some(joint.child), joint.child_from_joint), (joint.parent, joint.parent_from_joint)];
        for (body, frame) in sides {
            if let Some(body) = body {
                levers[body.index()] = levers[body.index()].max(frame.translation.length());
            }
        }
    }
    levers
}
