//! From a cage, a surface and the bones that hold it to the flesh of a model.

use super::cage::{Cage, edges};
use super::surface::{Inside, SurfaceMesh};
use super::{Element, EmbeddedSurface, Flesh, FleshMaterial};
use crate::model::{Body, BodyId, BodyRef};
use glam::DVec3;

/// Flesh to be added to a model; all places in the world at the start.
#[derive(Clone, Debug)]
pub struct FleshSpec {
    /// The tetrahedra.
    pub cage: Cage,
    /// The closed surface that the flesh fills; `None` when it fills the whole cage.
    pub surface: Option<SurfaceMesh>,
    /// What it is made of.
    pub material: FleshMaterial,
    /// The bones it hangs on; none for flesh that lies about freely.
    pub holds: Vec<Hold>,
}

/// A bone that holds flesh.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The body.
    pub body: BodyRef,
    /// Where the bone starts \[m\].
    pub from: DVec3,
    /// Where it ends \[m\].
    pub to: DVec3,
    /// Nodes nearer than this are fixed to it, if no other bone is nearer \[m\].
    pub reach: f64,
}

impl Hold {
    fn distance(&self, p: DVec3) -> f64 {
        let along = self.to - self.from;
        let size = along.length_squared();
        let t = if size > 0.0 { ((p - self.from).dot(along) / size).clamp(0.0, 1.0) } else { 0.0 };
        p.distance(self.from.lerp(self.to, t))
    }
}

/// Flesh whose nodes know their bodies, which do not know their places yet.
pub(crate) struct Attached {
    flesh: Flesh,
}

/// A node far outside the surface carries nearly nothing of the elements that hold it, and would shake as fast as explicit steps cannot follow. It gets
/// at least this share of what it would carry if they were filled evenly, which bounds its frequency by twice that of full elements; the sum is kept.
const LIGHTEST: f64 = 0.25;

/// Tells what is wrong, or sorts the nodes and finds masses. `holders` are the bodies of the spec's holds.
pub(crate) fn attach(spec: FleshSpec, holders: &[BodyId]) -> Result<Attached, String> {
    let FleshSpec { mut cage, surface, material, holds } = spec;
    check_material(&material)?;
    cage.orient();
    if let Some(what) = cage.fault() {
        return Err(format!("its cage is wrong: {what}"));
    }
    let whole = surface.is_none();
    let surface = surface.unwrap_or_else(|| cage.boundary());
    // The boundary of a cage is closed as it is, though parts of it may meet along an edge.
    if let Some(what) = surface.fault().filter(|_| !whole) {
        return Err(format!("its surface is wrong: {what}"));
    }

    // Masses and filled ratios
    let mut filling = if whole {
        cage.fill(|_| true, material.density)
    } else {
        let inside = Inside::new(&surface);
        cage.fill(|p| inside.contains(p), material.density)
    };
    let exact: f64 = filling.masses.iter().sum();
    if !(exact.is_finite() && exact > 0.0) {
        return Err("its surface holds nothing of the cage".into());
    }
    let mut even = vec![0.0; cage.nodes.len()];
    for (tet, ratio) in cage.tets.iter().zip(&filling.ratios) {
        let quarter = 0.25 * material.density * ratio * cage.volume(*tet);
        tet.iter().for_each(|&i| even[i as usize] += quarter);
    }
    filling.masses.iter_mut().zip(&even).for_each(|(mass, even)| *mass = mass.max(LIGHTEST * even));
    let scale = exact / filling.masses.iter().sum::<f64>();
    filling.masses.iter_mut().for_each(|mass| *mass *= scale);

    // The nearest bone of each node, and whether it holds the node
    let nearest: Vec<Option<(usize, bool)>> = cage
        .nodes
        .iter()
        .map(|&p| {
            let by_distance = |&(_, a): &(usize, f64), &(_, b): &(usize, f64)| a.total_cmp(&b);
            let (k, distance) = holds.iter().map(|hold| hold.distance(p)).enumerate().min_by(by_distance)?;
            Some((k, distance <= holds[k].reach))
        })
        .collect();
    let is_fixed = |i: usize| nearest[i].is_some_and(|(_, held)| held);

    // Free nodes first
    let n = cage.nodes.len();
    let mut order: Vec<usize> = (0..n).filter(|&i| !is_fixed(i)).collect();
    let free = order.len();
    order.extend((0..n).filter(|&i| is_fixed(i)));
    let mut place = vec![0u32; n];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
    let cage = Cage {
        nodes: order.iter().map(|&i| cage.nodes[i]).collect(),
        tets: cage.tets.iter().map(|tet| tet.map(|i| place[i as usize])).collect(),
    };

    let vertices = cage.embed(&surface.vertices);
    // A vertex on a face is outside by rounding.
    if let Some((i, vertex)) = vertices.iter().enumerate().find(|(_, v)| v.depth() < -1e-9) {
        return Err(format!(
            "vertex {i} of its surface is outside the cage by {:.1e} of a tetrahedron",
            -vertex.depth()
        ));
    }
    let elements: Vec<Element> = cage
        .tets
        .iter()
        .zip(&filling.ratios)
        .map(|(&tet, &ratio)| Element {
            nodes: tet,
            inverse: edges(&cage.corners(tet)).inverse(),
            filled: ratio * cage.volume(tet),
            ratio,
        })
        .collect();
    // The edge of a cube of six such tetrahedra
    let volume: f64 = cage.tets.iter().map(|&tet| cage.volume(tet)).sum();
    let cell = (6.0 * volume / cage.tets.len() as f64).cbrt();
    let flesh = Flesh {
        free,
        masses: order.iter().map(|&i| filling.masses[i]).collect(),
        bones: order.iter().map(|&i| nearest[i].map(|(k, _)| holders[k])).collect(),
        in_bone: Vec::new(),
        elements,
        lame: material.lame(),
        material,
        cell,
        surface: EmbeddedSurface { vertices, triangles: surface.triangles, colours: surface.colours },
        start: cage.nodes,
    };
    Ok(Attached { flesh })
}

fn check_material(material: &FleshMaterial) -> Result<(), String> {
    let FleshMaterial { young, poisson, density, damping, friction } = *material;
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !(positive(young) && positive(density)) {
        return Err(format!("its stiffness is {young} Pa, its density {density} kg/m³: both must be above 0"));
    }
    if !(0.0..0.4999).contains(&poisson) {
        return Err(format!("its Poisson ratio is {poisson}: it must be from 0 to below 0.4999"));
    }
    if !(damping.is_finite() && damping >= 0.0 && friction.is_finite() && friction >= 0.0) {
        return Err(format!("its damping is {damping} 1/s, its friction {friction}: neither may be negative"));
    }
    Ok(())
}

impl Attached {
    /// What the fixed nodes add to a body: places in the world and masses.
    pub(crate) fn carried_by(&self, body: BodyId) -> impl Iterator<Item = (DVec3, f64)> {
        let flesh = &self.flesh;
        let held = (flesh.free..flesh.start.len()).filter(move |&i| flesh.bones[i] == Some(body));
        held.map(move |i| (flesh.start[i], flesh.masses[i]))
    }

    /// The flesh of the model with these bodies.
    pub(crate) fn finish(mut self, bodies: &[Body]) -> Flesh {
        let flesh = &mut self.flesh;
        flesh.in_bone = flesh
            .start
            .iter()
            .zip(&flesh.bones)
            .map(|(&x, bone)| bone.map_or(x, |bone| bodies[bone.index()].start.inverse().transform_point(x)))
            .collect();
        self.flesh
    }
}
