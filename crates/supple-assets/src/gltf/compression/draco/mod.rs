//! Draco meshes, bitstream 2.2 (`KHR_draco_mesh_compression`), in safe code: the crates there are at present either wrap the C++ library or index without
//! checks what a file tells them, and files are hostile. What is read: triangles as a list and by Edgebreaker (standard and by valences), every
//! attribute coding and prediction that encoders of 2.2 write. What older versions wrote is refused.

mod attributes;
mod bits;
mod connectivity;
mod corners;
mod octahedron;

use bits::{Broken, Bytes};

/// A mesh.
#[derive(Debug)]
pub(super) struct Mesh {
    pub(super) points: usize,
    /// By face: its points.
    pub(super) faces: Vec<[u32; 3]>,
    pub(super) attributes: Vec<Attribute>,
}

/// What points have.
#[derive(Debug)]
pub(super) struct Attribute {
    /// By which the file names it.
    pub(super) id: u32,
    pub(super) components: usize,
    values: Vec<f64>,
    /// By point: which of the values it has.
    of_point: Vec<u32>,
}

impl Attribute {
    /// The numbers of a point.
    pub(super) fn of(&self, point: usize) -> &[f64] {
        let at = self.of_point[point] as usize * self.components;
        &self.values[at..at + self.components]
    }
}

/// Reads a mesh. `most`: how many numbers it may unfold to.
pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Mesh, Broken> {
    let mut bytes = Bytes { left: bytes };
    if bytes.take(5)? != b"DRACO" {
        return Err("it does not begin as a Draco mesh");
    }
    let (major, minor, kind, method) = (bytes.u8()?, bytes.u8()?, bytes.u8()?, bytes.u8()?);
    let flags = bytes.u16()?;
    if (major, minor) != (2, 2) {
        return Err("it is not of Draco version 2.2");
    }
    if kind != 1 {
        return Err("it is a point cloud, not a mesh");
    }
    if flags & 0x8000 != 0 {
        for _ in 0..bytes.count()? {
            bytes.count()?;
            skip_metadata(&mut bytes, 0)?;
        }
        skip_metadata(&mut bytes, 0)?;
    }
    let mesh = match method {
        0 => connectivity::list(&mut bytes, most)?,
        1 => connectivity::edgebreaker(&mut bytes, most)?,
        _ => return Err("its triangles are coded in a way that does not exist"),
    };
    let attributes = attributes::read(&mut bytes, &mesh, most)?;
    let whole = |a: &Attribute| {
        let last = a.of_point.iter().max().map_or(0, |last| (*last as usize + 1) * a.components);
        last <= a.values.len()
    };
    if !attributes.iter().all(whole) {
        return Err("an attribute has too few values");
    }
    Ok(Mesh { points: mesh.points, faces: mesh.faces, attributes })
}

/// Names and values that tell of the mesh.
fn skip_metadata(bytes: &mut Bytes<'_>, depth: u32) -> Result<(), Broken> {
    if depth > 16 {
        return Err("its metadata is nested too deeply");
    }
    for _ in 0..bytes.count()? {
        let name = usize::from(bytes.u8()?);
        bytes.take(name)?;
        bytes.part()?;
    }
    for _ in 0..bytes.count()? {
        let name = usize::from(bytes.u8()?);
        bytes.take(name)?;
        skip_metadata(bytes, depth + 1)?;
    }
    Ok(())
}
