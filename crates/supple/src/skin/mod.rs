//! Skin: a soft layer under the surface of a skinned character, in pose space [Galoppo 2007].
//!
//! A vertex of the surface is at `u = u_o + u_s` in the rest pose and carried from there to the world by the bones it follows; `u_s`, its displacement, is
//! what moves beside the bones. Elasticity is linear in pose space, so that its matrix is constant; touching the surface dents it and moves the skeleton.
//!
//! `layer` (tetrahedra under the surface), `given` (those of a file), `build` (from a [`SkinSpec`] to the [`Skin`] of a model), `pose` (where the bones carry the surface, and how it
//! moves with them), `condense` (skin and skeleton as one system, solved by the skeleton), `prune`, `touch` and `between` (what touches), `respond` and `settle` (contact),
//! `advance` (one part of a step).

mod advance;
mod between;
mod build;
pub mod condense;
mod given;
pub(crate) mod hierarchy;
pub mod layer;
pub mod pose;
pub(crate) mod prune;
pub mod respond;
mod settle;
pub(crate) mod touch;

pub use advance::{Condensation, condensation};
pub(crate) use advance::{SkinWork, substep};
pub(crate) use build::{Attached, attach};
pub use build::{Core, Depth, Painted, SkinBone, SkinMaterial, SkinSpec};
pub use given::{GivenLayer, TetLayer};
pub use layer::Layer;
pub use pose::PoseMap;

use crate::maths::Pose;
use crate::maths::fnv::Fnv;
use crate::maths::points::PointMatrix;
use crate::model::State;
use glam::DVec3;

/// A body that a vertex follows, and its share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Influence {
    /// Index of the body.
    pub body: u32,
    /// Shares of a vertex add up to 1.
    pub weight: f64,
}

/// The most bodies that a vertex follows.
pub const INFLUENCES: usize = 4;

/// The skin of a model. Constant during a run. Its nodes are the vertices of its surface, and after them those corners of tetrahedra of its own that may move:
/// [`State::nodes`] has their displacements in pose space and the rates of these.
#[derive(Debug)]
pub struct Skin {
    /// Places of the nodes in the rest pose, `u_o` \[m\].
    pub rest: Vec<DVec3>,
    /// Counter-clockwise seen from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Linear red, green and blue of each vertex; empty when it has none.
    pub colours: Vec<[f32; 3]>,
    /// The layer below them.
    pub layer: Layer,
    /// The bodies that each vertex follows, the largest share first; the rest have no share.
    pub influences: Vec<[Influence; INFLUENCES]>,
    /// How many of them each vertex has.
    pub counts: Vec<u8>,
    /// Mass of each vertex \[kg\].
    pub masses: Vec<f64>,
    /// Whether each vertex may move beside the bones.
    pub soft: Vec<bool>,
    /// K, without what does not move \[N/m\].
    pub stiffness: PointMatrix,
    /// Damping of each vertex against its bones, in its masses \[1/s\].
    pub damping: Vec<f64>,
    /// Coefficient of friction of each vertex.
    pub friction: Vec<f64>,
    /// By body: from the rest pose to the body's coordinates.
    pub body_from_rest: Vec<Pose>,
    /// How bones carry the surface.
    pub map: PoseMap,
    /// Centre of rotation of each vertex in the rest pose \[m\].
    pub centres: Vec<DVec3>,
    /// Bodies that carry vertices, in order.
    pub bones: Vec<u32>,
    /// Pairs of bodies that share a vertex, each with itself first: (row, column), row ≥ column, in order.
    pub pairs: Vec<(u32, u32)>,
    /// By vertex: where the pairs of its bodies are in `pairs`; (0,0), (1,0), (1,1), (2,0) and so on.
    pub(crate) slots: Vec<[u32; 10]>,
    /// A length typical of the layer's depth \[m\].
    pub depth: f64,
    /// A length typical of the triangles' sides \[m\].
    pub edge: f64,
    /// What is tested first for contact.
    pub(crate) proxies: prune::Proxies,
}

/// How skin is solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkinSettings {
    /// Sweeps that bring the condensed solution nearer to the true one; 0 as published.
    pub refinements: u32,
    /// How contacts answer.
    pub response: SkinResponse,
    /// The mass matrix of the bones.
    pub mass: SkinMass,
    /// How the matrix of the skin is solved.
    pub equations: SkinEquations,
    /// Whether the surface moves beside the bones at all.
    pub dynamics: SkinDynamics,
}

impl Default for SkinSettings {
    fn default() -> SkinSettings {
        SkinSettings {
            refinements: 2,
            response: SkinResponse::Complementary,
            mass: SkinMass::Full,
            equations: SkinEquations::Factored,
            dynamics: SkinDynamics::Soft,
        }
    }
}

impl SkinSettings {
    /// As published [Galoppo 2007].
    pub const PUBLISHED: SkinSettings = SkinSettings {
        refinements: 0,
        response: SkinResponse::Published,
        mass: SkinMass::BlockDiagonal,
        equations: SkinEquations::Factored,
        dynamics: SkinDynamics::Soft,
    };
}

/// How contacts of skin answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkinResponse {
    /// They push and never pull, with Coulomb friction, by Newton steps in the space of the skeleton.
    #[default]
    Complementary,
    /// What is inside at the end of the free motion stops there; friction by vertex afterwards [Galoppo 2007, §5.4 to §5.6].
    Published,
}

/// The mass matrix of the bones under skin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkinMass {
    /// With the blocks of bones that share vertices.
    #[default]
    Full,
    /// Without them [Galoppo 2007, §4.1], each bone with its share of the skin.
    BlockDiagonal,
}

/// How the matrix of the skin is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkinEquations {
    /// By its factors, found once for each length of a part.
    #[default]
    Factored,
    /// By conjugate gradients, for comparison.
    ConjugateGradients,
}

/// Whether the surface moves beside the bones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkinDynamics {
    /// It does.
    #[default]
    Soft,
    /// It is carried by them, for comparison [Galoppo 2007, fig. 3].
    Carried,
}

/// A ball that pokes the skin wherever it is, such as one under the mouse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// Where its centre is at the end of the step \[m\].
    pub centre: DVec3,
    /// \[m\]
    pub radius: f64,
    /// \[m/s\]
    pub velocity: DVec3,
}

/// A vertex of the skin pulled by a spring, such as one grabbed with the mouse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grab {
    /// Index of the vertex.
    pub vertex: u32,
    /// Where it is pulled to, at the end of the step \[m\].
    pub target: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
}

impl Skin {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.rest.len()
    }

    /// Places of all vertices in a state \[m\].
    pub fn positions(&self, state: &State, out: &mut Vec<DVec3>) {
        let bones = pose::Bones::new(self, state);
        out.clear();
        out.extend((0..self.nodes()).map(|a| bones.place(self, a, state.nodes[a].position)));
    }

    /// Where bones alone would carry the vertices \[m\].
    pub fn carried(&self, state: &State, out: &mut Vec<DVec3>) {
        let bones = pose::Bones::new(self, state);
        out.clear();
        out.extend((0..self.nodes()).map(|a| bones.place(self, a, DVec3::ZERO)));
    }

    /// Places of all corners of the layer's tetrahedra in a state, the vertices first \[m\].
    pub fn layer_positions(&self, state: &State, out: &mut Vec<DVec3>) {
        let bones = pose::Bones::new(self, state);
        self.positions(state, out);
        let inner = self.layer.inner.iter().zip(self.layer.follows.iter().map(|&a| a as usize));
        out.extend(inner.map(|(p, a)| bones.place(self, a, *p - self.rest[a])));
    }

    /// Places and velocities of all vertices in a state \[m, m/s\].
    pub fn motion(&self, state: &State) -> Vec<(DVec3, DVec3)> {
        let mut posed = pose::Posed::new(self);
        posed.pose(self, state);
        posed.places.iter().copied().zip(posed.velocities.iter().copied()).collect()
    }

    /// Elastic energy in a state \[J\].
    pub fn elastic_energy(&self, state: &State) -> f64 {
        let u: Vec<DVec3> = state.nodes.iter().map(|node| node.position).collect();
        let mut f = vec![DVec3::ZERO; u.len()];
        self.stiffness.product(&u, &mut f);
        0.5 * u.iter().zip(&f).map(|(u, f)| u.dot(*f)).sum::<f64>()
    }

    /// The convex proxy of each bone, by body, in the body's coordinates: corners and triangles, for pictures.
    pub fn proxy_surfaces(&self) -> Vec<(u32, Vec<DVec3>, Vec<[u32; 3]>)> {
        self.proxies.surfaces()
    }

    /// Vertices that are tested when the proxy of a body comes near something.
    pub fn proxy_vertices(&self, body: u32) -> &[u32] {
        self.proxies.vertices(body)
    }

    /// Everything that acts on the motion or the picture.
    pub(crate) fn hash(&self, hash: &mut Fnv) {
        for point in self.rest.iter().chain(&self.layer.inner).chain(&self.centres) {
            hash.f64s(&point.to_array());
        }
        for t in &self.triangles {
            t.iter().for_each(|&i| hash.u64(u64::from(i)));
        }
        for influence in self.influences.iter().flatten() {
            hash.u64(u64::from(influence.body));
            hash.f64(influence.weight);
        }
        hash.f64s(&self.masses);
        hash.f64s(&self.damping);
        hash.f64s(&self.friction);
        for block in self.stiffness.diagonal.iter().chain(&self.stiffness.lower) {
            hash.f64s(&block.to_cols_array());
        }
        for pose in &self.body_from_rest {
            hash.f64s(&pose.rotation.to_array());
            hash.f64s(&pose.translation.to_array());
        }
        self.soft.iter().for_each(|&soft| hash.u64(u64::from(soft)));
        self.colours.iter().flatten().for_each(|&c| hash.f64(f64::from(c)));
        hash.u64(match self.map {
            PoseMap::Linear => 0,
            PoseMap::Centres => 1,
        });
    }
}
