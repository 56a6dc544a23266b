//! What a solver of bones needs of flesh that is solved together with it (`implicit.rs`).

use super::implicit::{Implicit, Nodes};
use super::{Flesh, touch};
use crate::maths::block::{Block, Vector, add_scaled, from_wrench};
use crate::maths::sparse::Sparse;
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, Model};

/// Share of the descent that the slope promises.
const DESCENT: f64 = 1e-4;
/// What energies cannot be told to.
const ROUNDING: f64 = 1e-12;

/// Φ along a step of bones and flesh.
pub(crate) struct Line {
    /// Of all but flesh: slope, and its growth.
    slope: f64,
    bend: f64,
    /// Slope of Φ at the start.
    total: f64,
    /// E at the start.
    before: f64,
}

/// Scratch of flesh that is solved together with bones.
pub(crate) struct Coupled {
    pub(crate) implicit: Implicit,
    /// `h² S`, and W*, at the poses that were met last.
    blocks: Vec<(usize, usize, Block)>,
    h: f64,
    /// The matrix of the bones without flesh.
    bare: Sparse,
    /// Scratch of the search: by node of the matrix.
    step: Vec<Vector>,
    product: Vec<Vector>,
}

impl Coupled {
    pub(crate) fn new(model: &Model, flesh: &Flesh) -> Coupled {
        let bodies = model.bodies().len();
        Coupled {
            implicit: Implicit::new(model, flesh),
            blocks: Vec::with_capacity(bodies * (bodies + 1) / 2),
            h: 0.0,
            bare: Sparse::new(&[], &[]),
            step: Vec::new(),
            product: Vec::new(),
        }
    }

    /// Notes the matrix of the bones without flesh, for a part of length h.
    pub(crate) fn note(&mut self, h: f64, matrix: &Sparse) {
        self.h = h;
        self.bare.set_to(matrix);
    }

    /// Flesh at these poses of the bodies, which drift with v: makes `matrix` that of bones and flesh, and `out` the momenta with `h W* + h² S v`, so that
    /// what is left when the product of matrix and v is taken off is what is missing at v.
    pub(crate) fn meet(
        &mut self,
        flesh: &Flesh,
        (poses, nodes): (&[Pose], Nodes),
        v: &[Vector],
        momenta: &[Vector],
        matrix: &mut Sparse,
        out: &mut [Vector],
    ) {
        let Coupled { implicit, blocks, h, bare, .. } = self;
        implicit.meet(flesh, poses, nodes);
        blocks.clear();
        blocks.extend(implicit.schur().iter().map(|(i, j, rows)| {
            let mut block = Block::zeros(6, 6);
            rows.iter().enumerate().for_each(|(r, row)| block.set_row(r, row));
            (*i, *j, block)
        }));
        matrix.copy_from(bare);
        out.copy_from_slice(momenta);
        for (out, wrench) in out.iter_mut().zip(&implicit.wrenches) {
            add_scaled(out, *h, &from_wrench(*wrench));
        }
        for (i, j, block) in blocks.iter() {
            matrix.add(*i, *j, block);
            add_scaled(&mut out[*i], 1.0, &block.times_vector(&v[*j]));
            if i != j {
                add_scaled(&mut out[*j], 1.0, &block.transpose_times_vector(&v[*i]));
            }
        }
    }

    /// Aims bones, which change their velocities from `v` by `dv`, and flesh along a Newton step. With
    ///
    /// ```text
    /// Φ(v, x) = ½ vᵀ A v − pᵀ v + E(x, q(v)) + yᵀ J v
    /// ```
    /// Newton's method looks for the place where the gradient of Φ is zero. `p` are the momenta, `along` is `yᵀ J δv`.
    pub(crate) fn aim(&mut self, flesh: &Flesh, v: &[Vector], dv: &[Vector], p: &[Vector], along: f64) -> Line {
        let n = self.bare.nodes();
        let dot =
            |a: &[Vector], b: &[Vector]| a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>();
        let mut minus_product = |x: &[Vector]| {
            self.step.clear();
            self.step.extend_from_slice(x);
            self.step.resize(n, [0.0; 6]);
            self.product.clear();
            self.product.resize(n, [0.0; 6]);
            self.bare.subtract_product(&self.step, &mut self.product);
            dot(&self.product[..dv.len()], dv)
        };
        let turning = self.implicit.turning(v, dv);
        let slope = -minus_product(v) - dot(p, dv) + along + turning;
        let bend = -minus_product(dv);
        let flesh_slope = self.implicit.aim(dv);
        Line { slope, bend, total: slope - turning + flesh_slope, before: self.implicit.cost_here(flesh) }
    }

    /// Goes this share of the way, where the bones are at these poses, if Φ is enough less there [Armijo]; tells whether it did.
    pub(crate) fn descend(&mut self, flesh: &Flesh, line: &Line, share: f64, poses: &[Pose]) -> bool {
        let e = self.implicit.try_at(flesh, poses, share);
        let change = share * line.slope + 0.5 * share * share * line.bend + e - line.before;
        // Near the end the descent is less than the rounding of E. Anything that is no number is no descent.
        let rounding = ROUNDING * line.before.abs() + flesh.still();
        let descends = change <= DESCENT * share * line.total.min(0.0) + rounding;
        if descends {
            self.implicit.stay(flesh, e);
        }
        descends
    }

    /// Work of the flesh on bones that drift with v \[J\].
    pub(crate) fn work(&self, power: impl Fn(usize, &Wrench) -> f64) -> f64 {
        self.implicit.wrenches.iter().enumerate().map(|(i, wrench)| self.h * power(i, wrench)).sum()
    }

    /// The pairs of bodies that flesh connects.
    pub(crate) fn pairs(model: &Model) -> Vec<(usize, usize)> {
        let Some(flesh) = model.flesh() else { return Vec::new() };
        let is_near = |i: usize| {
            let id = BodyId(i as u32);
            flesh.bones.contains(&Some(id)) || touch::may_touch(flesh, id, model.body(id))
        };
        let near: Vec<usize> = (0..model.bodies().len()).filter(|&i| is_near(i)).collect();
        near.iter().enumerate().flat_map(|(k, &i)| near[..k].iter().map(move |&j| (i, j))).collect()
    }
}
