//! Meshes of a scene as they stand at rest, with the nodes that carry each vertex.

use super::accessor::Reader;
use super::document::Document;
use super::schema::Primitive;
use crate::imported::MOST_LENGTH;
use crate::{FileError, Group, Note};
use glam::{DAffine3, DMat4, DVec3};

/// A mesh at one node, in world coordinates at rest.
#[derive(Debug)]
pub(crate) struct SkinnedMesh {
    /// The node that shows it.
    pub(crate) node: usize,
    /// Which primitive of the node's mesh it is.
    pub(crate) primitive: usize,
    pub(crate) name: String,
    pub(crate) vertices: Vec<DVec3>,
    pub(crate) triangles: Vec<[u32; 3]>,
    pub(crate) colour: [f32; 3],
    pub(crate) groups: Vec<Group>,
    /// By vertex: where its influences begin in `influences`; one more at the end.
    pub(crate) first: Vec<u32>,
    pub(crate) influences: Vec<Influence>,
}

/// A node that carries part of a vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Influence {
    pub(crate) node: usize,
    pub(crate) weight: f64,
}

impl SkinnedMesh {
    /// The influences of a vertex, strongest first; weights sum up to 1.
    pub(crate) fn influences(&self, vertex: usize) -> &[Influence] {
        &self.influences[self.first[vertex] as usize..self.first[vertex + 1] as usize]
    }
}

impl Document {
    /// Every mesh of the scene. A mesh without a skin is carried by its node.
    pub(crate) fn meshes(&self, notes: &mut Vec<Note>) -> Result<Vec<SkinnedMesh>, FileError> {
        let reader = self.reader();
        let mut all = Vec::new();
        for &node in &self.order {
            let (root, this) = (self.root(), &self.root().nodes[node]);
            let Some(mesh) = this.mesh else { continue };
            let skin = match this.skin {
                Some(skin) => Some(self.binds(&reader, skin)?),
                None => None,
            };
            for (k, primitive) in root.meshes[mesh].primitives.iter().enumerate() {
                if !matches!(primitive.mode.unwrap_or(4), 4..=6) {
                    let text = "lines and points are not read".into();
                    notes.push(Note { code: "import/mesh", part: self.names[node].clone(), text });
                    continue;
                }
                let place = format!("meshes[{mesh}].primitives[{k}]");
                all.extend(self.primitive(&reader, (node, k), primitive, skin.as_deref(), &place)?);
            }
        }
        Ok(all)
    }

    /// Vertices and triangles of a mesh as they stand in the file, in its own coordinates.
    pub(crate) fn mesh_points(
        &self,
        reader: &Reader<'_>,
        mesh: usize,
    ) -> Result<(Vec<DVec3>, Vec<[u32; 3]>), FileError> {
        let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
        for (k, primitive) in self.root().meshes[mesh].primitives.iter().enumerate() {
            let place = format!("meshes[{mesh}].primitives[{k}]");
            let Some((points, corners)) = self.surface(reader, primitive, &place)? else { continue };
            let first = vertices.len() as u32;
            vertices.extend(points);
            triangles.extend(corners.iter().map(|t| t.map(|i| first + i)));
        }
        Ok((vertices, triangles))
    }

    /// Vertices and triangles of a part of a mesh, in its own coordinates; `None`: it has no vertices.
    #[allow(clippy::type_complexity)]
    pub(crate) fn surface(
        &self,
        reader: &Reader<'_>,
        primitive: &Primitive,
        place: &str,
    ) -> Result<Option<(Vec<DVec3>, Vec<[u32; 3]>)>, FileError> {
        let Some(&positions) = primitive.attributes.get("POSITION") else { return Ok(None) };
        let positions = reader.floats(positions, &["VEC3"])?;
        let count = positions.len() / 3;
        let indices = match primitive.indices {
            Some(accessor) => reader.indices(accessor, "SCALAR")?,
            None => {
                reader.spend(count)?;
                (0..count as u32).collect()
            }
        };
        if let Some(index) = indices.iter().find(|index| **index as usize >= count) {
            let what = format!("an index names vertex {index}, and there are {count}");
            return Err(
                FileError::new("file/reference", &self.path, what, "export the file again").at(place.to_owned())
            );
        }
        let triangles: Vec<[u32; 3]> = match primitive.mode.unwrap_or(4) {
            4 => indices.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect(),
            5 => indices
                .windows(3)
                .enumerate()
                .map(|(k, w)| if k % 2 == 0 { [w[0], w[1], w[2]] } else { [w[1], w[0], w[2]] })
                .collect(),
            6 => indices.windows(2).skip(1).map(|w| [indices[0], w[0], w[1]]).collect(),
            _ => Vec::new(),
        };
        let point = |p: &[f32]| DVec3::new(p[0].into(), p[1].into(), p[2].into());
        Ok(Some((positions.chunks_exact(3).map(point).collect(), triangles)))
    }

    /// The joints of a skin with the matrix that takes a vertex to the coordinates of each.
    pub(crate) fn binds(&self, reader: &Reader<'_>, skin: usize) -> Result<Vec<(usize, DAffine3)>, FileError> {
        let this = &self.root().skins[skin];
        reader.spend(16 * this.joints.len())?;
        let inverse = match this.inverse_bind_matrices {
            Some(accessor) => reader.floats(accessor, &["MAT4"])?,
            None => Vec::new(),
        };
        if !inverse.is_empty() && inverse.len() < 16 * this.joints.len() {
            let what = format!("it has {} joints and {} inverse bind matrices", this.joints.len(), inverse.len() / 16);
            return Err(
                FileError::new("file/skin", &self.path, what, "export the file again").at(format!("skins[{skin}]"))
            );
        }
        let joints = this.joints.iter().enumerate().map(|(k, &node)| {
            let bind = match inverse.get(16 * k..16 * k + 16) {
                Some(m) => DAffine3::from_mat4(DMat4::from_cols_array(&std::array::from_fn(|i| f64::from(m[i])))),
                None => DAffine3::IDENTITY,
            };
            (node, bind)
        });
        Ok(joints.collect())
    }

    fn primitive(
        &self,
        reader: &Reader<'_>,
        (node, number): (usize, usize),
        primitive: &Primitive,
        skin: Option<&[(usize, DAffine3)]>,
        place: &str,
    ) -> Result<Option<SkinnedMesh>, FileError> {
        let bad =
            |code, what: String| FileError::new(code, &self.path, what, "export the file again").at(place.to_owned());
        let Some((points, triangles)) = self.surface(reader, primitive, place)? else { return Ok(None) };
        let count = points.len();
        let point = |v: usize| points[v];
        let (mut first, mut influences, mut vertices) = (vec![0], Vec::new(), Vec::with_capacity(count));
        match skin {
            Some(joints) if primitive.attributes.contains_key("JOINTS_0") => {
                let rest: Vec<DAffine3> = joints.iter().map(|&(node, bind)| self.world[node] * bind).collect();
                let sets = self.influence_sets(reader, primitive, count, &bad)?;
                let mut here: Vec<(usize, f64)> = Vec::new();
                for v in 0..count {
                    here.clear();
                    for (slots, weights) in &sets {
                        for i in 4 * v..4 * v + 4 {
                            let (slot, weight) = (slots[i] as usize, f64::from(weights[i]));
                            if weight <= 0.0 {
                                continue;
                            }
                            if slot >= joints.len() {
                                let what =
                                    format!("vertex {v} hangs on joint {slot}, and the skin has {}", joints.len());
                                return Err(bad("file/reference", what));
                            }
                            match here.iter_mut().find(|(other, _)| *other == slot) {
                                Some((_, sum)) => *sum += weight,
                                None => here.push((slot, weight)),
                            }
                        }
                    }
                    let total: f64 = here.iter().map(|(_, weight)| weight).sum();
                    if total <= 0.0 {
                        here.push((0, 1.0)); // a vertex that nothing carries goes with the first joint, as renderers have it
                        if joints.is_empty() {
                            return Err(bad("file/skin", "the skin has no joints".into()));
                        }
                    }
                    let total = if total > 0.0 { total } else { 1.0 };
                    here.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                    let mut at = DVec3::ZERO;
                    for &(slot, weight) in &here {
                        at += rest[slot].transform_point3(point(v)) * (weight / total);
                        influences.push(Influence { node: joints[slot].0, weight: weight / total });
                    }
                    first.push(influences.len() as u32);
                    vertices.push(at);
                }
            }
            _ => {
                for v in 0..count {
                    influences.push(Influence { node, weight: 1.0 });
                    first.push(influences.len() as u32);
                    vertices.push(self.world[node].transform_point3(point(v)));
                }
            }
        }
        if vertices.iter().any(|v| !(v.is_finite() && v.length() < MOST_LENGTH)) {
            return Err(bad("file/number", "a vertex is more than 1000 km away, or not finite".into()));
        }
        let material = primitive.material.and_then(|m| self.root().materials[m].pbr_metallic_roughness.as_ref());
        let colour = material.and_then(|m| m.base_color_factor).unwrap_or([0.8, 0.8, 0.8, 1.0]);
        let mesh = self.root().nodes[node].mesh.and_then(|m| self.root().meshes[m].name.clone());
        let name = mesh.unwrap_or_else(|| self.names[node].clone());
        let colour = [colour[0], colour[1], colour[2]].map(|c| if c.is_finite() { c.clamp(0.0, 1.0) } else { 0.8 });
        let groups = self.groups(reader, primitive, count)?;
        Ok(Some(SkinnedMesh { node, primitive: number, name, vertices, triangles, colour, groups, first, influences }))
    }

    /// What is painted on the vertices: custom attributes of one number (`_BELLY`), and the channels of vertex colours (`COLOR_0.r`).
    fn groups(&self, reader: &Reader<'_>, primitive: &Primitive, count: usize) -> Result<Vec<Group>, FileError> {
        let mut groups = Vec::new();
        for (name, &accessor) in &primitive.attributes {
            let kind = self.root().accessors.get(accessor).map_or("", |a| a.kind.as_str());
            let channels: &[&str] = match (name.starts_with('_'), name.starts_with("COLOR_"), kind) {
                (true, _, "SCALAR") => &[""],
                (_, true, "VEC3") => &[".r", ".g", ".b"],
                (_, true, "VEC4") => &[".r", ".g", ".b", ".a"],
                _ => continue,
            };
            if reader.count(accessor)? < count {
                continue;
            }
            let values = reader.floats(accessor, &[kind])?;
            for (k, channel) in channels.iter().enumerate() {
                let shares = values.iter().skip(k).step_by(channels.len()).take(count);
                let shares = shares.map(|x| x.clamp(0.0, 1.0)).collect();
                groups.push(Group { name: format!("{name}{channel}"), shares });
            }
        }
        Ok(groups)
    }

    /// JOINTS_0 and WEIGHTS_0, JOINTS_1 and WEIGHTS_1, …
    #[allow(clippy::type_complexity)]
    fn influence_sets(
        &self,
        reader: &Reader<'_>,
        primitive: &Primitive,
        count: usize,
        bad: &impl Fn(&'static str, String) -> FileError,
    ) -> Result<Vec<(Vec<u32>, Vec<f32>)>, FileError> {
        let mut sets = Vec::new();
        for k in 0.. {
            let Some(&joints) = primitive.attributes.get(&format!("JOINTS_{k}")) else { break };
            let Some(&weights) = primitive.attributes.get(&format!("WEIGHTS_{k}")) else {
                return Err(bad("file/skin", format!("it has JOINTS_{k} and no WEIGHTS_{k}")));
            };
            if reader.count(joints)? < count || reader.count(weights)? < count {
                return Err(bad("file/skin", format!("JOINTS_{k} or WEIGHTS_{k} has fewer rows than POSITION")));
            }
            reader.spend(4 * count)?; // what is gathered from them
            sets.push((reader.indices(joints, "VEC4")?, reader.floats(weights, &["VEC4"])?));
        }
        Ok(sets)
    }
}
