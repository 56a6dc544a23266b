//! A layer that is given, as by a file: an inner place for each vertex, or tetrahedra of its own between the surface and an inner one.

use super::hierarchy::Triangles;
use super::layer::{Layer, volume};
use crate::flesh::{Cage, SurfaceMesh};
use glam::DVec3;

/// What lies under a surface, when it is given.
#[derive(Clone, Debug)]
pub enum GivenLayer {
    /// The inner place of each vertex in the rest pose \[m\].
    Inner(Vec<DVec3>),
    /// Tetrahedra, as they are.
    Tets(TetLayer),
}

/// Tetrahedra under a surface. Their corners are numbered: vertices of the surface, then `within`, then `inner`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TetLayer {
    /// Corners that may move, below the surface or on it \[m\].
    pub within: Vec<DVec3>,
    /// Corners on the inner side, which are fixed to the bones \[m\].
    pub inner: Vec<DVec3>,
    /// Of positive volume.
    pub tets: Vec<[u32; 4]>,
    /// Tetrahedra that were left out since they have no volume.
    pub left_out: usize,
}

/// A corner is on the surface when it is this near, of the surface's size.
const ON_SURFACE: f64 = 1e-3;
/// A tetrahedron of less than this share of a cube as long as its longest side has no volume.
const FLAT: f64 = 1e-5;

impl TetLayer {
    /// The tetrahedra as a layer under a closed surface, each of whose vertices must be a corner of theirs; or what is wrong.
    pub fn new(surface: &SurfaceMesh, cage: &Cage) -> Result<TetLayer, String> {
        if let Some(what) = cage.fault() {
            return Err(format!("the tetrahedra are wrong: {what}"));
        }
        let (low, high) = surface.bounds();
        let near = ON_SURFACE * (high - low).max_element();
        let (n, corners) = (surface.vertices.len(), cage.nodes.len());

        // The corner of each vertex
        let mut by_x: Vec<u32> = (0..corners as u32).collect();
        by_x.sort_by(|a, b| cage.nodes[*a as usize].x.total_cmp(&cage.nodes[*b as usize].x));
        let mut number = vec![u32::MAX; corners];
        for (v, p) in surface.vertices.iter().enumerate() {
            let from = by_x.partition_point(|&i| cage.nodes[i as usize].x < p.x - near);
            let close = by_x[from..].iter().take_while(|&&i| cage.nodes[i as usize].x <= p.x + near);
            let away = |i: u32| cage.nodes[i as usize].distance(*p);
            let nearest = close.copied().min_by(|&a, &b| away(a).total_cmp(&away(b)).then(a.cmp(&b)));
            match nearest.filter(|&i| away(i) <= near) {
                Some(i) if number[i as usize] == u32::MAX => number[i as usize] = v as u32,
                Some(i) => {
                    return Err(format!(
                        "vertices {} and {v} are at the same corner of the tetrahedra",
                        number[i as usize]
                    ));
                }
                None => {
                    let off = cage.nodes.iter().map(|q| q.distance(*p)).fold(f64::INFINITY, f64::min);
                    return Err(format!(
                        "the outer side of the tetrahedra is not the surface of the character: vertex {v} is {off:.3} m from their nearest corner"
                    ));
                }
            }
        }

        // The inner side: what bounds the tetrahedra away from the surface
        let mut skin = Triangles::new(&surface.triangles);
        skin.refit(&surface.vertices);
        let is_on_skin = |p: DVec3| skin.nearest(p, near, |_| true).is_some();
        let mut is_inner = vec![false; corners];
        for i in cage.boundary_nodes() {
            is_inner[i as usize] = number[i as usize] == u32::MAX && !is_on_skin(cage.nodes[i as usize]);
        }
        if !is_inner.contains(&true) {
            return Err(
                "the tetrahedra fill the whole character: leave out its core, so that they have an inner side".into()
            );
        }

        // The rest in its order, if a tetrahedron has it
        let mut layer = TetLayer::default();
        let kept: Vec<[u32; 4]> = cage.tets.iter().copied().filter(|&t| !is_flat(cage, t)).collect();
        layer.left_out = cage.tets.len() - kept.len();
        let mut is_used = vec![false; corners];
        kept.iter().flatten().for_each(|&i| is_used[i as usize] = true);
        for i in 0..corners {
            if is_used[i] && number[i] == u32::MAX && !is_inner[i] {
                number[i] = (n + layer.within.len()) as u32;
                layer.within.push(cage.nodes[i]);
            }
        }
        let first = n + layer.within.len();
        for i in 0..corners {
            if is_used[i] && is_inner[i] {
                number[i] = (first + layer.inner.len()) as u32;
                layer.inner.push(cage.nodes[i]);
            }
        }
        if let Some(i) = (0..corners).find(|&i| !is_used[i] && (number[i] as usize) < n) {
            return Err(format!("no tetrahedron has vertex {} of the surface", number[i]));
        }
        layer.tets = kept.iter().map(|t| t.map(|i| number[i as usize])).collect();
        Ok(layer)
    }

    /// The layer, and for each corner within the vertex that it is nearest to.
    pub(crate) fn under(self, surface: &SurfaceMesh) -> Result<(Layer, Vec<u32>), String> {
        let n = surface.vertices.len();
        let TetLayer { within, inner, tets, .. } = self;
        let places: Vec<DVec3> = surface.vertices.iter().chain(&within).copied().collect();
        let corners = places.len() + inner.len();
        if let Some(t) = tets.iter().position(|t| t.iter().any(|&i| i as usize >= corners)) {
            return Err(format!("tetrahedron {t} names a corner that does not exist"));
        }
        let mut layer = Layer { inner, tets, ..Layer::default() };
        if layer.inner.is_empty() || places.iter().chain(&layer.inner).any(|p| !p.is_finite()) {
            return Err("the tetrahedra have no inner side, or a corner that is not finite".into());
        }
        if let Some(t) = layer.tets.iter().position(|&t| layer.volume(&places, t) <= 0.0) {
            return Err(format!("tetrahedron {t} is turned over"));
        }
        let mut has = vec![false; corners];
        layer.tets.iter().flatten().for_each(|&i| has[i as usize] = true);
        if let Some(v) = has[..places.len()].iter().position(|has| !has) {
            return Err(format!("no tetrahedron has corner {v}"));
        }
        let nearest = |p: &DVec3| {
            let away = |v: usize| surface.vertices[v].distance_squared(*p);
            (0..n).min_by(|&a, &b| away(a).total_cmp(&away(b))).unwrap_or(0) as u32
        };
        layer.follows = layer.inner.iter().map(nearest).collect();
        let follows = within.iter().map(nearest).collect();
        layer.depths = depths(&layer, &places);
        Ok((layer, follows))
    }
}

fn is_flat(cage: &Cage, t: [u32; 4]) -> bool {
    let corners = t.map(|i| cage.nodes[i as usize]);
    let longest = corners.iter().flat_map(|p| corners.iter().map(|q| p.distance(*q))).fold(0.0, f64::max);
    volume(corners) <= FLAT * longest.powi(3)
}

/// How far the inner side is from each place.
fn depths(layer: &Layer, places: &[DVec3]) -> Vec<f64> {
    let first = places.len() as u32;
    let mut faces: Vec<[u32; 3]> = Vec::new();
    for &[a, b, c, d] in &layer.tets {
        faces.extend([[a, b, c], [a, b, d], [a, c, d], [b, c, d]].iter().filter(|f| f.iter().all(|&i| i >= first)));
    }
    faces.iter_mut().for_each(|f| *f = f.map(|i| i - first));
    let mut inner = Triangles::new(&faces);
    inner.refit(&layer.inner);
    let to_corner = |p: &DVec3| layer.inner.iter().map(|q| q.distance(*p)).fold(f64::INFINITY, f64::min);
    let one = |p: &DVec3| {
        let most = to_corner(p);
        inner.nearest(*p, most, |_| true).map_or(most, |found| found.gap.abs())
    };
    places.iter().map(one).collect()
}
