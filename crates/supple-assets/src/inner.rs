//! What the soft layer of a skin ends at or is made of, from a file: an inner surface, or tetrahedra between the surface and an inner one.

use crate::gltf::Document;
use crate::{FileError, InputFile, meshes, tetmesh};
use glam::DVec3;
use supple::flesh::{Cage, SurfaceMesh};
use supple::skin::layer;
use supple::skin::{GivenLayer, Layer, TetLayer};

/// What a layer ends at or is made of, in metres, where the character stands at rest.
#[derive(Clone, Debug)]
pub struct Inner {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The inner surface.
    Surface(SurfaceMesh),
    /// Tetrahedra; one part of what bounds them must be the surface of the character.
    Tets(Cage),
}

/// Depth where the inner surface is not met, of half the way through the body.
const ELSEWHERE: f64 = 0.4;
/// More than this share of vertices must have the inner surface below them.
const LEAST_BELOW: f64 = 0.5;

impl Inner {
    /// Reads .obj, .stl, .glb or .gltf as an inner surface; .msh, .veg, .vtk, .node or .ele as tetrahedra.
    pub fn read(file: InputFile) -> Result<Inner, FileError> {
        match file.ending().as_str() {
            "obj" | "stl" => {
                let mesh = meshes::read(&file)?;
                Ok(Inner::surface(mesh.vertices, mesh.triangles))
            }
            "glb" | "gltf" => {
                let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
                for mesh in Document::read(file)?.meshes(&mut Vec::new())? {
                    let first = vertices.len() as u32;
                    vertices.extend_from_slice(&mesh.vertices);
                    triangles.extend(mesh.triangles.iter().map(|t| t.map(|i| i + first)));
                }
                Ok(Inner::surface(vertices, triangles))
            }
            "msh" | "veg" | "vtk" | "node" | "ele" => {
                let (cage, _) = tetmesh::read(&file)?;
                Ok(Inner { kind: Kind::Tets(cage) })
            }
            ending => Err(FileError::new(
                "file/format",
                file.path(),
                format!("the inner side of a layer does not end in .{ending}"),
                "give a surface (.obj, .stl, .glb, .gltf) or tetrahedra (.msh, .veg, .vtk, .node, .ele)",
            )),
        }
    }

    /// An inner surface; where the character stands at rest \[m\].
    pub fn surface(vertices: Vec<DVec3>, triangles: Vec<[u32; 3]>) -> Inner {
        Inner { kind: Kind::Surface(SurfaceMesh { vertices, triangles, ..SurfaceMesh::default() }) }
    }

    /// The layer under a closed surface, or why there is none: tetrahedra as they are, or between the surface and the inner one.
    pub(crate) fn layer(&self, outer: &SurfaceMesh, note: &mut impl FnMut(String)) -> Result<GivenLayer, String> {
        match &self.kind {
            Kind::Surface(inner) => Ok(GivenLayer::Inner(places(outer, inner, note)?)),
            Kind::Tets(cage) => {
                let layer = TetLayer::new(outer, cage)?;
                note(format!(
                    "the layer is the {} tetrahedra of the file: {} of their corners move below the surface, {} on the inner side are fixed to the bones",
                    layer.tets.len(),
                    layer.within.len(),
                    layer.inner.len()
                ));
                if layer.left_out > 0 {
                    note(format!("{} tetrahedra of the file have no volume and are left out", layer.left_out));
                }
                Ok(GivenLayer::Tets(layer))
            }
        }
    }
}

/// The inner place of each vertex of a closed surface \[m\], or why there is none.
///
/// A surface with the same triangles gives them one by one. Otherwise the layer reaches down the inward normal to the inner surface, less where it would turn
/// over; vertices that have none below them get the usual depth.
fn places(outer: &SurfaceMesh, inner: &SurfaceMesh, note: &mut impl FnMut(String)) -> Result<Vec<DVec3>, String> {
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
    let depths = layer::depths_to(outer, inner);
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
