//! Triangle meshes: STL (binary and text) and OBJ (points and faces).

use crate::files::ending;
use crate::{FileError, InputFile};
use glam::DVec3;
use std::collections::BTreeMap;
use std::path::Path;

/// Triangles between points, as they stand in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// In the file's unit.
    pub vertices: Vec<DVec3>,
    /// Corner indices, counter-clockwise from outside if the file is well made.
    pub triangles: Vec<[u32; 3]>,
}

/// Most vertices or triangles that are read.
const MOST: usize = 4_000_000;

/// Whether [`read`] knows files with this ending.
pub fn reads(path: &Path) -> bool {
    matches!(ending(path).as_str(), "stl" | "obj")
}

/// Reads a mesh by the ending of its file.
pub fn read(file: &InputFile) -> Result<Mesh, FileError> {
    let path = file.path();
    match ending(path).as_str() {
        "stl" => stl(path, file.bytes()),
        "obj" => obj(path, file.bytes()),
        other => Err(FileError::new(
            "file/format",
            path,
            format!("meshes of kind .{other} are not read"),
            "convert it to .stl or .obj",
        )),
    }
}

fn damaged(path: &Path, what: impl Into<String>) -> FileError {
    FileError::new("file/mesh", path, what, "export the mesh again")
}

/// An STL file: text when it begins with `solid` and soon tells of a `facet`, unless its length is that of a binary one.
pub fn stl(path: &Path, bytes: &[u8]) -> Result<Mesh, FileError> {
    let count = bytes.get(80..84).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize);
    let is_binary = count.is_some_and(|n| n.checked_mul(50).and_then(|l| l.checked_add(84)) == Some(bytes.len()));
    let head = &bytes[..bytes.len().min(1000)];
    let is_text = head.trim_ascii_start().starts_with(b"solid") && head.windows(5).any(|word| word == b"facet");
    if is_text && !is_binary {
        return stl_text(path, bytes);
    }
    // 80 bytes of title, the number of triangles, then for each: normal, three corners as f32, two bytes
    let Some(count) = count else { return Err(damaged(path, "it is shorter than the head of an STL file")) };
    let held = (bytes.len() - 84) / 50;
    if held < count {
        return Err(damaged(path, format!("it tells of {count} triangles and holds {held}")));
    }
    let mut welded = Welded::default();
    for facet in bytes[84..].chunks_exact(50).take(count.min(MOST)) {
        let number = |k: usize| {
            let at = 12 + 4 * k;
            f64::from(f32::from_le_bytes([facet[at], facet[at + 1], facet[at + 2], facet[at + 3]]))
        };
        let corner = |c: usize| DVec3::new(number(3 * c), number(3 * c + 1), number(3 * c + 2));
        welded.triangle([corner(0), corner(1), corner(2)]);
    }
    welded.finish(path)
}

fn stl_text(path: &Path, bytes: &[u8]) -> Result<Mesh, FileError> {
    let text = String::from_utf8_lossy(bytes);
    let mut welded = Welded::default();
    let mut corners = Vec::new();
    for (line, words) in text.lines().enumerate().map(|(i, line)| (i + 1, line.split_whitespace())) {
        let mut words = words;
        if words.next() != Some("vertex") {
            continue;
        }
        corners.push(
            point(words).ok_or_else(|| damaged(path, "a vertex has not three numbers").at(format!("line {line}")))?,
        );
        if let [a, b, c] = corners[..] {
            welded.triangle([a, b, c]);
            corners.clear();
        }
    }
    welded.finish(path)
}

/// An OBJ file: its points and faces; faces of more corners become fans.
pub fn obj(path: &Path, bytes: &[u8]) -> Result<Mesh, FileError> {
    let text = String::from_utf8_lossy(bytes);
    let mut mesh = Mesh::default();
    for (line, text) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
        let wrong = |what: &str| damaged(path, what).at(format!("line {line}"));
        let mut words = text.split_whitespace();
        match words.next() {
            Some("v") => mesh.vertices.push(point(words).ok_or_else(|| wrong("a vertex has not three numbers"))?),
            Some("f") => {
                let corners: Option<Vec<u32>> = words.map(|word| corner(word, mesh.vertices.len())).collect();
                let corners = corners.ok_or_else(|| wrong("a face names a vertex that does not stand before it"))?;
                for k in 2..corners.len() {
                    mesh.triangles.push([corners[0], corners[k - 1], corners[k]]);
                }
            }
            _ => {}
        }
        if mesh.vertices.len() > MOST || mesh.triangles.len() > MOST {
            return Err(wrong("it has more than four million vertices or triangles"));
        }
    }
    finished(path, mesh)
}

/// `7`, `7/2`, `7//3`, `-1/…`: the vertex of a corner, from 0.
fn corner(word: &str, count: usize) -> Option<u32> {
    let index: i64 = word.split('/').next()?.parse().ok()?;
    let at = if index < 0 { count as i64 + index } else { index - 1 };
    (0..count as i64).contains(&at).then_some(at as u32)
}

fn point<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<DVec3> {
    let mut number = || words.next()?.parse::<f64>().ok().filter(|x| x.is_finite());
    Some(DVec3::new(number()?, number()?, number()?))
}

fn finished(path: &Path, mesh: Mesh) -> Result<Mesh, FileError> {
    if mesh.triangles.is_empty() {
        return Err(damaged(path, "it has no triangle"));
    }
    if !mesh.vertices.iter().all(|v| v.is_finite()) {
        return Err(damaged(path, "a vertex is not finite"));
    }
    Ok(mesh)
}

/// Triangles whose equal corners become one vertex: STL repeats every corner.
#[derive(Default)]
struct Welded {
    mesh: Mesh,
    index: BTreeMap<[u64; 3], u32>,
}

impl Welded {
    fn triangle(&mut self, corners: [DVec3; 3]) {
        let corners = corners.map(|p| {
            let key = (p + DVec3::ZERO).to_array().map(f64::to_bits); // + 0: −0 and 0 are one
            *self.index.entry(key).or_insert_with(|| {
                self.mesh.vertices.push(p);
                self.mesh.vertices.len() as u32 - 1
            })
        });
        let [a, b, c] = corners;
        if a != b && b != c && c != a {
            self.mesh.triangles.push(corners);
        }
    }

    fn finish(self, path: &Path) -> Result<Mesh, FileError> {
        finished(path, self.mesh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tetrahedron as binary STL.
    fn binary() -> Vec<u8> {
        let p = [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]];
        let mut bytes = b"solid, but binary".to_vec();
        bytes.resize(80, 0);
        bytes.extend(4u32.to_le_bytes());
        for face in faces {
            bytes.extend([0; 12]);
            face.iter().flat_map(|&i| p[i]).for_each(|x| bytes.extend(x.to_le_bytes()));
            bytes.extend([0; 2]);
        }
        bytes
    }

    #[test]
    fn a_tetrahedron_is_the_same_in_every_format() {
        let path = Path::new("a.stl");
        let mesh = stl(path, &binary()).unwrap();
        assert_eq!((mesh.vertices.len(), mesh.triangles.len()), (4, 4));
        let mut text = String::from("solid a\n");
        for t in &mesh.triangles {
            text += " facet normal 0 0 0\n  outer loop\n";
            for i in t {
                let v = mesh.vertices[*i as usize];
                text += &format!("   vertex {} {} {}\n", v.x, v.y, v.z);
            }
            text += "  endloop\n endfacet\n";
        }
        assert_eq!(stl(path, text.as_bytes()).unwrap(), mesh);
        let square = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\nf 1/1/1 2//1 3 -1\n";
        let flat = obj(path, square).unwrap();
        assert_eq!(flat.triangles, [[0, 1, 2], [0, 2, 3]]);
    }

    #[test]
    fn damage_is_told() {
        let path = Path::new("a.stl");
        let whole = binary();
        assert!(stl(path, &whole[..200]).unwrap_err().what.contains("holds 2"));
        assert_eq!(stl(path, b"").unwrap_err().code, "file/mesh");
        assert_eq!(obj(path, b"v 0 0\n").unwrap_err().place.as_deref(), Some("line 1"));
        assert_eq!(obj(path, b"v 0 0 0\nf 1 2 3\n").unwrap_err().place.as_deref(), Some("line 2"));
    }
}
