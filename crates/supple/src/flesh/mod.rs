//! Flesh: soft matter around bones, as a coarse cage of tetrahedra with a fine surface in it [Kim 2008, §4].
//!
//! `surface` (closed surfaces), `cage` (tetrahedra around them, how they are filled), `material` (stress and its derivative), `build` (from a
//! [`FleshSpec`] to the [`Flesh`] of a model).

mod build;
pub mod cage;
pub(crate) mod couple;
pub(crate) mod implicit;
pub(crate) mod loose;
pub mod material;
pub mod surface;
pub(crate) mod together;
pub(crate) mod touch;

pub(crate) use build::{Attached, attach};
pub use build::{FleshSpec, Hold};
pub use cage::{Cage, Embedded, Lattice, Split};
pub use implicit::Settled;
pub use material::{Diagonalize, FleshMaterial, Lame};
pub use surface::SurfaceMesh;

use crate::maths::fnv::Fnv;
use crate::model::{BodyId, State};
use glam::{DMat3, DVec3};

/// The flesh of a model. Constant during a run.
///
/// Nodes are counted with the free ones first: those are in [`State::nodes`]. The others are fixed to bones, which carry their mass.
#[derive(Clone, Debug, PartialEq)]
pub struct Flesh {
    /// Where each node is at the start \[m\].
    pub start: Vec<DVec3>,
    /// Number of free nodes.
    pub free: usize,
    /// Mass of each node \[kg\]. That of a fixed node is part of its body's.
    pub masses: Vec<f64>,
    /// The body each node refers to: a fixed one moves with it, a free one is damped against it. `None` is the ground.
    pub bones: Vec<Option<BodyId>>,
    /// Where each node is at the start, from the centre of mass of its bone and in its axes \[m\]; in the world for the ground.
    pub in_bone: Vec<DVec3>,
    /// The tetrahedra.
    pub elements: Vec<Element>,
    /// What it is made of.
    pub material: FleshMaterial,
    /// The constants of the material.
    pub lame: Lame,
    /// A length typical of its elements \[m\].
    pub cell: f64,
    /// The surface in the cage.
    pub surface: EmbeddedSurface,
}

/// A tetrahedron.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// Indices of nodes.
    pub nodes: [u32; 4],
    /// `Dm⁻¹`, the inverse of its edges at rest: rows are the shape gradients of nodes 1 to 3 \[1/m\].
    pub inverse: DMat3,
    /// Volume that is filled, w V \[m³\].
    pub filled: f64,
    /// w
    pub ratio: f64,
}

/// A surface whose vertices follow a cage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddedSurface {
    /// Where each vertex is in the cage.
    pub vertices: Vec<Embedded>,
    /// Counter-clockwise seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Linear red, green and blue of each vertex; empty when it has none.
    pub colours: Vec<[f32; 3]>,
}

impl Element {
    /// `F = Ds Dm⁻¹` with its nodes at these places.
    #[inline]
    pub fn gradient(&self, x: &[DVec3]) -> DMat3 {
        let [a, b, c, d] = self.nodes.map(|i| x[i as usize]);
        DMat3::from_cols(b - a, c - a, d - a) * self.inverse
    }

    /// The shape gradients of its nodes \[1/m\].
    #[inline]
    pub fn shape_gradients(&self) -> [DVec3; 4] {
        let rows = self.inverse.transpose();
        let (b, c, d) = (rows.x_axis, rows.y_axis, rows.z_axis);
        [-(b + c + d), b, c, d]
    }

    /// The forces of a stress on its nodes: `f_i = −w V P G_i`, `f_0 = −(f_1 + f_2 + f_3)` \[N\] [Kim 2008, eq. 15].
    #[inline]
    pub fn forces(&self, stress: DMat3) -> [DVec3; 4] {
        let f = stress * self.inverse.transpose() * -self.filled;
        [-(f.x_axis + f.y_axis + f.z_axis), f.x_axis, f.y_axis, f.z_axis]
    }
}

impl Flesh {
    /// Places of all nodes in a state \[m\].
    pub fn positions(&self, state: &State, out: &mut Vec<DVec3>) {
        out.clear();
        out.extend(state.nodes.iter().map(|node| node.position));
        out.extend((self.free..self.start.len()).map(|i| self.carried(state, i)));
    }

    /// Where the bone of a node would have it if the node were fixed \[m\].
    pub fn carried(&self, state: &State, node: usize) -> DVec3 {
        match self.bones[node] {
            Some(bone) => state.bodies[bone.index()].pose().transform_point(self.in_bone[node]),
            None => self.in_bone[node],
        }
    }

    /// Places of the surface's vertices from those of all nodes \[m\] [Kim 2008, eq. 9].
    pub fn surface_positions(&self, nodes: &[DVec3], out: &mut Vec<DVec3>) {
        out.clear();
        out.extend(self.surface.vertices.iter().map(|vertex| {
            let corners = self.elements[vertex.tet as usize].nodes.map(|i| nodes[i as usize]);
            corners.iter().zip(vertex.weights).map(|(x, w)| *x * w).sum::<DVec3>()
        }));
    }

    /// Elastic energy with all nodes at these places \[J\].
    pub fn elastic_energy(&self, nodes: &[DVec3]) -> f64 {
        self.elements.iter().map(|e| e.filled * self.lame.energy(&e.gradient(nodes))).sum()
    }

    /// Adds the elastic forces with all nodes at these places; returns how many elements are outside the range.
    pub fn add_elastic_forces(&self, nodes: &[DVec3], diagonalize: Diagonalize, forces: &mut [DVec3]) -> usize {
        let mut outside = 0;
        for element in &self.elements {
            let (stress, within) = self.lame.stress(&element.gradient(nodes), diagonalize);
            outside += usize::from(!within);
            for (i, f) in element.nodes.iter().zip(element.forces(stress)) {
                forces[*i as usize] += f;
            }
        }
        outside
    }

    /// How many elements are inside out.
    pub fn inverted(&self, nodes: &[DVec3]) -> usize {
        self.elements.iter().filter(|e| e.gradient(nodes).determinant() <= 0.0).count()
    }

    /// What its energy cannot be told to where nothing is strained: that of a cell at a strain of 1e-10 \[J\].
    pub(crate) fn still(&self) -> f64 {
        1e-20 * self.lame.uniaxial() * self.cell.powi(3)
    }

    /// Degrees of freedom of the free nodes.
    pub fn freedoms(&self) -> usize {
        3 * self.free
    }

    /// Everything that acts on the motion or the picture.
    pub(crate) fn hash(&self, hash: &mut Fnv) {
        let Flesh { start, free, masses, bones, in_bone, elements, material, lame: _, cell: _, surface } = self;
        let points = |points: &[DVec3], hash: &mut Fnv| {
            hash.u64(points.len() as u64);
            points.iter().for_each(|p| hash.f64s(&p.to_array()));
        };
        points(start, hash);
        points(in_bone, hash);
        hash.u64(*free as u64);
        hash.f64s(masses);
        bones.iter().for_each(|bone| hash.u64(bone.map_or(u64::MAX, |bone| u64::from(bone.0))));
        for Element { nodes, inverse, filled, ratio } in elements {
            nodes.iter().for_each(|i| hash.u64(u64::from(*i)));
            hash.f64s(&inverse.to_cols_array());
            hash.f64s(&[*filled, *ratio]);
        }
        let FleshMaterial { young, poisson, density, damping, friction } = material;
        hash.f64s(&[*young, *poisson, *density, *damping, *friction]);
        let EmbeddedSurface { vertices, triangles, colours } = surface;
        for Embedded { tet, weights } in vertices {
            hash.u64(u64::from(*tet));
            hash.f64s(weights);
        }
        triangles.iter().flatten().for_each(|i| hash.u64(u64::from(*i)));
        colours.iter().flatten().for_each(|x| hash.u64(u64::from(x.to_bits())));
    }
}
