//! Flesh together with bones in solvers that know nothing of it but a law of where bones go.
//!
//! With D the displacements of the bodies over a part, flesh at the poses they lead to does, to first order,
//!
//! ```text
//! W(D) = W₀ − S D,      W₀ = W* + S D*                                                                      (1)
//! ```
//! where W* and S are its wrenches and its Schur complement at the poses D* (`implicit.rs` (2)). A solver that takes (1) as it takes stiff springs, the whole of
//! it at the start of the part, does a Newton step of bones and flesh. It is asked again with (1) at the poses it came to, until these do not change.

use super::Flesh;
use super::couple::Coupled;
use super::implicit::{Implicit, Nodes};
use crate::input::Input;
use crate::maths::block::{Block, Vector, add_scaled, from_twist, from_wrench, to_wrench};
use crate::maths::rotation::exp;
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, JointId, Model, State};
use crate::step::{Failure, Report};

/// (1) of a part.
pub(crate) struct Law {
    /// W₀, by body \[N, N·m\].
    pub(crate) wrenches: Vec<Vector>,
    /// `h² S`: block of bodies i ≥ j.
    pub(crate) blocks: Vec<(usize, usize, Block)>,
    /// D, as the solver has it \[m, rad\]: it writes it.
    pub(crate) moved: Vec<Vector>,
}

impl Law {
    /// `h² W` at these displacements, added to what is given by body.
    pub(crate) fn add_pushes(&self, h: f64, moved: &[Vector], out: &mut [Vector]) {
        for (out, wrench) in out.iter_mut().zip(&self.wrenches) {
            add_scaled(out, h * h, wrench);
        }
        for (i, j, block) in &self.blocks {
            add_scaled(&mut out[*i], -1.0, &block.times_vector(&moved[*j]));
            if i != j {
                add_scaled(&mut out[*j], -1.0, &block.transpose_times_vector(&moved[*i]));
            }
        }
    }

    /// The pairs of bodies it acts between.
    pub(crate) fn pairs(model: &Model) -> Vec<(usize, usize)> {
        Coupled::pairs(model)
    }
}

/// Scratch of flesh that is solved together with bones by way of (1).
pub(crate) struct Together {
    implicit: Implicit,
    pub(crate) law: Law,
    start: State,
    poses: Vec<Pose>,
    /// `h² W` that the bones were given.
    given: Vec<Vector>,
    h: f64,
}

/// Solver's parts before it has failed.
const PASSES: u32 = 20;
/// Bones and flesh have met when what is missing between them moves no bone by more than this share of a cell \[m\], turns none by more \[rad\].
const MISSING: f64 = 1e-7;
/// What may be missing when passes are used up; it is told as not settled.
const UNSETTLED: f64 = 1e-3;

impl Together {
    pub(crate) fn new(model: &Model, flesh: &Flesh) -> Together {
        let bodies = model.bodies().len();
        Together {
            implicit: Implicit::new(model, flesh),
            law: Law {
                wrenches: vec![[0.0; 6]; bodies],
                blocks: Vec::with_capacity(bodies * (bodies + 1) / 2),
                moved: vec![[0.0; 6]; bodies],
            },
            start: model.start(),
            poses: vec![Pose::IDENTITY; bodies],
            given: vec![[0.0; 6]; bodies],
            h: 0.0,
        }
    }

    /// Notes the start of a part: its length, and how long before the end of the step it ends. The first (1) is at the poses that velocities lead to.
    pub(crate) fn begin(&mut self, model: &Model, flesh: &Flesh, input: &Input, state: &State, part: (f64, f64)) {
        self.h = part.0;
        self.start.clone_from(state);
        self.implicit.begin(model, flesh, input, state, part);
        for ((pose, moved), body) in self.poses.iter_mut().zip(&mut self.law.moved).zip(&state.bodies) {
            let Twist { linear, angular } = body.velocity * self.h;
            *pose = Pose::new((exp(angular) * body.orientation).normalize(), body.position + linear);
            *moved = from_twist(body.velocity * self.h);
        }
        self.meet(flesh);
    }

    /// Flesh comes to rest at `poses`; (1) there.
    fn meet(&mut self, flesh: &Flesh) {
        let Together { implicit, law, poses, h, .. } = self;
        implicit.meet(flesh, poses, Nodes::Alone);
        law.blocks.clear();
        law.blocks.extend(implicit.schur().iter().map(|(i, j, rows)| {
            let mut block = Block::zeros(6, 6);
            rows.iter().enumerate().for_each(|(r, row)| block.set_row(r, row));
            (*i, *j, block)
        }));
        let squared = *h * *h;
        for (w, wrench) in law.wrenches.iter_mut().zip(&implicit.wrenches) {
            *w = from_wrench(*wrench);
        }
        for (i, j, block) in &law.blocks {
            add_scaled(&mut law.wrenches[*i], 1.0 / squared, &block.times_vector(&law.moved[*j]));
            if i != j {
                add_scaled(&mut law.wrenches[*j], 1.0 / squared, &block.transpose_times_vector(&law.moved[*i]));
            }
        }
    }

    /// Asks the solver for parts until bones and flesh have met; `state` is that of the end.
    pub(crate) fn run(
        &mut self,
        (model, flesh): (&Model, &Flesh),
        state: &mut State,
        mut solve: impl FnMut(&mut Law, &mut State) -> Result<Report, Failure>,
    ) -> Result<Report, Failure> {
        let (mut factorisations, mut solves) = (0, 0);
        for pass in 1..=PASSES {
            state.clone_from(&self.start);
            let mut report = solve(&mut self.law, state)?;
            factorisations += report.factorisations;
            solves += report.solves;
            self.given.fill([0.0; 6]);
            self.law.add_pushes(self.h, &self.law.moved, &mut self.given);
            for (pose, body) in self.poses.iter_mut().zip(&state.bodies) {
                *pose = body.pose();
            }
            self.meet(flesh);
            let (missing, body) = self.missing(model);
            if missing > MISSING * flesh.cell && pass < PASSES {
                continue;
            }
            if missing.is_nan() || missing > UNSETTLED * flesh.cell {
                state.clone_from(&self.start);
                return Err(model.joints().first().map_or(Failure::Turned(body), |_| Failure::Diverged(JointId(0))));
            }
            self.implicit.settled.converged &= missing <= MISSING * flesh.cell;
            // Momentum is that which the bones were given.
            for (wrench, given) in self.implicit.wrenches.iter_mut().zip(&self.given) {
                *wrench = to_wrench(&given.map(|x| x / (self.h * self.h)));
            }
            self.implicit.commit(flesh, state);
            report.note_flesh(self.implicit.settled);
            return Ok(Report { factorisations, solves, ..report });
        }
        unreachable!("the last pass returns")
    }

    /// How far what is missing of the flesh's wrenches would move or turn a bone \[m, rad\], and which.
    fn missing(&self, model: &Model) -> (f64, BodyId) {
        let mut most = (0.0, BodyId(0));
        for (i, (body, wrench)) in model.bodies().iter().zip(&self.implicit.wrenches).enumerate() {
            let given = to_wrench(&self.given[i]);
            let Wrench { force, torque } = *wrench * (self.h * self.h);
            let least = body.inertia.x_axis.x.min(body.inertia.y_axis.y).min(body.inertia.z_axis.z);
            let off = ((force - given.force).length() / body.mass).max((torque - given.torque).length() / least);
            if off.is_nan() || off > most.0 {
                most = (off, BodyId(i as u32));
            }
        }
        most
    }
}
