//! Flesh and bones solved together: what a solver of bones needs of flesh, at any trial of their poses.
//!
//! For bones at q the flesh is solved (`implicit.rs`) and tells the wrench W(q) on each bone. Its derivative S, the Schur complement of the free
//! nodes, is what the solver of the bones adds to its matrix as blocks between bones; momentum that the flesh gives is momentum that it loses, since
//! W and the motion of the nodes come from the same forces.

use super::Flesh;
use super::implicit::{Budget, Implicit, Settled};
use crate::input::Input;
use crate::maths::block::{Block, Vector, add_scaled, from_wrench};
use crate::maths::sparse::Sparse;
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, Model, State};

/// Scratch of flesh that is solved together with bones.
pub(crate) struct Coupled {
    pub(crate) implicit: Implicit,
    /// S: block of bodies i ≥ j.
    blocks: Vec<(usize, usize, Block)>,
    /// W, by body.
    pub(crate) wrenches: Vec<Wrench>,
    /// Of all solutions of the part.
    pub(crate) settled: Settled,
    /// Poses of bones at the start of the part.
    before: Vec<Pose>,
    h: f64,
}

impl Coupled {
    pub(crate) fn new(flesh: &Flesh, bodies: usize) -> Coupled {
        Coupled {
            implicit: Implicit::new(flesh),
            blocks: Vec::with_capacity(bodies * (bodies + 1) / 2),
            wrenches: vec![Wrench::ZERO; bodies],
            settled: Settled::default(),
            before: vec![Pose::IDENTITY; bodies],
            h: 0.0,
        }
    }

    /// Notes the start of a part: its length, and how long before the end of the step it ends.
    pub(crate) fn begin(&mut self, model: &Model, flesh: &Flesh, input: &Input, state: &State, part: (f64, f64)) {
        self.h = part.0;
        self.settled = Settled { converged: true, ..Settled::default() };
        for (before, body) in self.before.iter_mut().zip(&state.bodies) {
            *before = body.pose();
        }
        self.implicit.begin(model, flesh, input, state, part);
    }

    /// W with the bones at these poses at the end of the part.
    pub(crate) fn settle(&mut self, flesh: &Flesh, poses: &[Pose], budget: Budget) {
        let at = |bone: BodyId| poses[bone.index()];
        let done = self.implicit.settle(flesh, |bone| self.before[bone.index()], at, budget);
        self.settled = Settled {
            newton: self.settled.newton + done.newton,
            factorisations: self.settled.factorisations + done.factorisations,
            converged: done.converged,
            outside: done.outside,
            touching: done.touching,
        };
        self.implicit.wrenches(flesh, at, &mut self.wrenches);
    }

    /// S at the poses that W was last found at. Where it cannot be found nothing is added: S helps to converge, and changes no result.
    pub(crate) fn condense(&mut self, flesh: &Flesh, poses: &[Pose]) {
        let Coupled { implicit, blocks, .. } = self;
        blocks.clear();
        let done = implicit.condense(
            flesh,
            poses.len(),
            |bone| poses[bone.index()],
            |i, j, block| {
                let mut b = Block::zeros(6, 6);
                (0..6).for_each(|r| b.set_row(r, &block[r]));
                blocks.push((i, j, b));
            },
        );
        if done.is_err() || blocks.iter().any(|(_, _, b)| (0..6).any(|r| !b.get(r, r).is_finite())) {
            blocks.clear();
        }
    }

    /// Adds `h² S` to the matrix of the bones.
    pub(crate) fn add_to(&self, matrix: &mut Sparse) {
        for (i, j, block) in &self.blocks {
            let mut scaled = Block::zeros(6, 6);
            scaled.add_scaled(self.h * self.h, block);
            matrix.add(*i, *j, &scaled);
        }
    }

    /// `momenta + h W + h² S v`: with `h² S` in the matrix, what is left when `A v` is taken off is `p + h W`.
    pub(crate) fn momenta(&self, momenta: &[Vector], v: &[Vector], out: &mut [Vector]) {
        out.copy_from_slice(momenta);
        for (out, wrench) in out.iter_mut().zip(&self.wrenches) {
            add_scaled(out, self.h, &from_wrench(*wrench));
        }
        let hh = self.h * self.h;
        for (i, j, block) in &self.blocks {
            add_scaled(&mut out[*i], hh, &block.times_vector(&v[*j]));
            if i != j {
                add_scaled(&mut out[*j], hh, &block.transpose_times_vector(&v[*i]));
            }
        }
    }

    /// Work of the flesh on bones that drift with v \[J\].
    pub(crate) fn work(&self, power: impl Fn(usize, &Wrench) -> f64) -> f64 {
        self.wrenches.iter().enumerate().map(|(i, wrench)| self.h * power(i, wrench)).sum()
    }

    /// Moves the nodes to the end of the part.
    pub(crate) fn commit(&self, flesh: &Flesh, state: &mut State) {
        self.implicit.commit(flesh, &self.before, state);
    }

    /// The pairs of bodies that flesh connects.
    pub(crate) fn pairs(model: &Model) -> Vec<(usize, usize)> {
        let mut bones: Vec<usize> =
            model.flesh().iter().flat_map(|f| f.bones.iter().flatten()).map(|b| b.index()).collect();
        bones.sort_unstable();
        bones.dedup();
        let all = |&i: &usize| bones.iter().filter(move |&&j| j < i).map(move |&j| (i, j)).collect::<Vec<_>>();
        bones.iter().flat_map(all).collect()
    }
}
