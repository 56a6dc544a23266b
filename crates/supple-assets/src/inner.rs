//! What the soft layer of a skin ends at, from a file: an inner surface, or a mesh of tetrahedra between the surface and an inner one.

use crate::gltf::Document;
use crate::{FileError, meshes, tetmesh};
use glam::DVec3;
use std::path::Path;
use supple::flesh::SurfaceMesh;
use supple::skin::Layer;
use supple::skin::layer;

/// The inner end of a layer, in metres, where the character stands at rest.
#[derive(Clone, Debug)]
pub struct Inner {
    /// The inner surface, or what bounds a mesh of tetrahedra.
    surface: SurfaceMesh,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Surface,
    /// Of tetrahedra: one part of it must be the surface of the character.
    Boundary,
}

/// A corner of a mesh of tetrahedra is on the surface when it is this near, of the surface's size.
const ON_SURFACE: f64 = 1e-3;
/// Depth where the inner surface is not met, of half the way through the body.
const ELSEWHERE: f64 = 0.4;
/// More than this share of vertices must have the inner surface below them.
const LEAST_BELOW: f64 = 0.5;

impl Inner {
    /// Reads .obj, .stl, .glb or .gltf as an inner surface; .msh, .veg, .vtk, .node or .ele as tetrahedra.
    pub fn open(path: &Path) -> Result<Inner, FileError> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match ending.as_str() {
            "obj" | "stl" => {
                let mesh = meshes::read(path)?;
                Ok(Inner::surface(mesh.vertices, mesh.triangles))
            }
            "glb" | "gltf" => {
                let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
                for mesh in Document::read(path)?.meshes(&mut Vec::new())? {
                    let first = vertices.len() as u32;
                    vertices.extend_from_slice(&mesh.vertices);
                    triangles.extend(mesh.triangles.iter().map(|t| t.map(|i| i + first)));
                }
                Ok(Inner::surface(vertices, triangles))
            }
            "msh" | "veg" | "vtk" | "node" | "ele" => {
                let (cage, _) = tetmesh::load(path)?;
                Ok(Inner { surface: cage.boundary(), kind: Kind::Boundary })
            }
            _ => Err(FileError::new(
                "file/format",
                path,
                format!("the inner side of a layer does not end in .{ending}"),
                "give a surface (.obj, .stl, .glb, .gltf) or tetrahedra (.msh, .veg, .vtk, .node, .ele)",
            )),
        }
    }

    /// An inner surface; where the character stands at rest \[m\].
    pub fn surface(vertices: Vec<DVec3>, triangles: Vec<[u32; 3]>) -> Inner {
        Inner { surface: SurfaceMesh { vertices, triangles, ..SurfaceMesh::default() }, kind: Kind::Surface }
    }

    /// The inner place of each vertex of a closed surface \[m\], or why there is none.
    ///
    /// A surface with the same triangles gives them one by one. Otherwise the layer reaches down the inward normal to the inner surface, less where it would turn
    /// over; vertices that have none below them get the usual depth.
    pub(crate) fn places(&self, outer: &SurfaceMesh, note: &mut impl FnMut(String)) -> Result<Vec<DVec3>, String> {
        let inner = match self.kind {
            Kind::Surface => self.surface.clone(),
            Kind::Boundary => self.without(outer)?,
        };
        if let Some(t) = inner.triangles.iter().flatten().find(|i| **i as usize >= inner.vertices.len()) {
            return Err(format!("the inner surface names vertex {t}, and has {}", inner.vertices.len()));
        }
        if inner.triangles.is_empty() || inner.vertices.iter().any(|p| !p.is_finite()) {
            return Err("the inner surface has no triangle, or a vertex that is not finite".into());
        }
        if let Ok(closed) = layer::close(&inner.vertices, &inner.triangles)
            && closed.surface.triangles == outer.triangles
        {
            note("each vertex of the surface has its own of the inner surface".into());
            return Ok(closed.surface.vertices);
        }
        let (low, high) = outer.bounds();
        let radii = layer::radii(outer, 0.5 * (high - low).max_element());
        let depths = layer::depths_to(outer, &inner);
        let below = depths.iter().flatten().count();
        let all = outer.vertices.len();
        if (below as f64) < LEAST_BELOW * all as f64 {
            return Err(format!(
                "the inner surface lies below {below} of {all} vertices only: it must be within the character as it stands at rest, in metres"
            ));
        }
        if below < all {
            note(format!(
                "{} of {all} vertices have no inner surface below them: the layer has its usual depth there",
                all - below
            ));
        }
        let depths: Vec<f64> = depths.iter().zip(&radii).map(|(d, r)| d.unwrap_or(ELSEWHERE * r)).collect();
        let layer = Layer::under(outer, depths.clone())?;
        let thinned = layer.depths.iter().zip(&depths).filter(|(now, asked)| now < asked).count();
        if thinned > 0 {
            note(format!(
                "the layer is thinner than the inner surface asks for at {thinned} vertices, so that no part turns over"
            ));
        }
        Ok(layer.inner)
    }

    /// What bounds the tetrahedra without the part that is the surface of the character.
    fn without(&self, outer: &SurfaceMesh) -> Result<SurfaceMesh, String> {
        let (low, high) = outer.bounds();
        let near = ON_SURFACE * (high - low).max_element();
        let gap =
            |p: &DVec3, to: &[DVec3]| to.iter().map(|q| p.distance_squared(*q)).fold(f64::INFINITY, f64::min).sqrt();
        let on_surface: Vec<bool> = self.surface.vertices.iter().map(|p| gap(p, &outer.vertices) <= near).collect();
        for (v, p) in outer.vertices.iter().enumerate() {
            let off = gap(p, &self.surface.vertices);
            if off > near {
                return Err(format!(
                    "the outer side of the tetrahedra is not the surface of the character: vertex {v} is {off:.3} m from their nearest corner"
                ));
            }
        }
        let inside = |t: &&[u32; 3]| t.iter().all(|&i| !on_surface[i as usize]);
        let triangles: Vec<[u32; 3]> = self.surface.triangles.iter().filter(inside).copied().collect();
        if triangles.is_empty() {
            return Err(
                "the tetrahedra fill the whole character: leave out its core, so that they have an inner side".into()
            );
        }
        Ok(SurfaceMesh { vertices: self.surface.vertices.clone(), triangles, ..SurfaceMesh::default() })
    }
}
