//! The soft skin of a character as morph targets of the meshes of its file.
//!
//! A viewer carries a vertex p of a mesh by the joints j that it follows, after its morph targets b_k:
//!
//! ```text
//! x = B (p + Σ_k w_k b_k)          B = Σ_j w_j world_j · bind_j                                                            (1)
//! ```
//! With x where the simulation had the vertex, `B⁻¹ x` is what p must become. This holds whatever the file's weights are, how many joints a vertex has and how the
//! simulation blends them. Vertices that were split, for their texture or their normal, are one point of the skin.

use super::accessor::Reader;
use super::bake::{Bounds, Channel, OF_TARGETS, OF_WEIGHTS, push, push_floats};
use super::document::Document;
use super::mesh::{Influence, SkinnedMesh};
use super::{BakeSettings, soft};
use crate::recording::Recording;
use crate::{Character, DrawnMesh, FileError, Note, skin};
use glam::{DAffine3, DMat3, DVec3};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use supple::Skin;

/// How much a matrix stretches at most along an axis.
pub(super) fn stretch(matrix: &DAffine3) -> f64 {
    let m = matrix.matrix3;
    [m.x_axis, m.y_axis, m.z_axis].iter().map(|axis| axis.length()).fold(0.0, f64::max)
}

/// Blends whose volume is less than this share of what it is at rest have collapsed.
const COLLAPSED: f64 = 0.05;

/// The point that a blend of matrices carries to `place`; where the blend has collapsed the one that comes near it and is not far from `near`. `size` is how much
/// the matrices stretch.
pub(super) fn unblend<'a>(
    blend: impl Iterator<Item = (&'a DAffine3, f64)>,
    size: f64,
    place: DVec3,
    near: DVec3,
) -> DVec3 {
    let (mut m, mut shift) = (DMat3::ZERO, DVec3::ZERO);
    for (matrix, weight) in blend {
        m += matrix.matrix3 * weight;
        shift += matrix.translation * weight;
    }
    if m.determinant().abs() > COLLAPSED * size.powi(3) {
        return m.inverse() * (place - shift);
    }
    // least squares with a little weight on staying: near + Mᵀ (M Mᵀ + ε 1)⁻¹ (x − M near − s)
    let damped = m * m.transpose() + DMat3::from_diagonal(DVec3::splat(1e-3 * size * size));
    near + m.transpose() * (damped.inverse() * (place - shift - m * near))
}

/// Adds the displacement of the skin to the meshes that show it; the channels of their weights. `worlds` are the nodes of every frame as they are written.
#[allow(clippy::too_many_arguments)] // the file as it is written, and all that is known of the motion
pub(super) fn add(
    root: &mut Value,
    binary: &mut Vec<u8>,
    character: &Character,
    skin: &Skin,
    recording: &Recording,
    worlds: &[DAffine3],
    settings: &BakeSettings,
    notes: &mut Vec<Note>,
) -> Vec<Channel> {
    let mut note = |text: String| notes.push(Note { code: "bake/skin", part: "skin".into(), text });
    let drawn: Vec<(&SkinnedMesh, DrawnMesh)> =
        character.meshes.iter().filter_map(|mesh| Some((mesh, character.rig.drawn(mesh)?))).collect();
    let (parts, drawn): (Vec<&SkinnedMesh>, Vec<DrawnMesh>) = drawn.into_iter().unzip();
    let Some(closed) = skin::close_meshes(&drawn).ok().filter(|c| c.surface.triangles == skin.triangles) else {
        note("the skin is not that of this file: the bones alone are written".into());
        return Vec::new();
    };
    // By node: its parts, each with the vertices of the skin that its own belong to
    let mut by_node: BTreeMap<usize, Vec<(&SkinnedMesh, &[u32])>> = BTreeMap::new();
    let mut first = 0;
    for part in parts {
        let own = &closed.vertex_of[first..first + part.vertices.len()];
        by_node.entry(part.node).or_default().push((part, own));
        first += part.vertices.len();
    }

    let (mut channels, mut targets, mut worst) = (Vec::new(), 0, 0.0f64);
    let reader = character.document.reader();
    for (node, parts) in by_node {
        let shown = match Shown::read(&character.document, &reader, node, &parts) {
            Ok(shown) => shown,
            Err(error) => {
                note(format!("node {node} is written without its skin: {}", error.what));
                continue;
            }
        };
        let frames = shown.frames(skin, recording, worlds, &mut worst);
        let tolerance = settings.position / shown.size.max(1e-12);
        let morphs = soft::morphs(&shown.base, &frames, OF_TARGETS * tolerance);
        if morphs.targets.is_empty() {
            continue;
        }
        let (rest, turned) = shown.normals(&frames);
        let turned = morphs.fit(&rest, &turned);
        let kept = shown.add_targets(root, binary, &reader, &morphs.targets, &turned);
        let mut channel = morphs.channel(node, &recording.times, OF_WEIGHTS * tolerance);
        let keys = channel.values.chunks_exact(morphs.targets.len());
        channel.values = keys.flat_map(|key| kept.iter().chain(key)).copied().collect();
        channels.push(channel);
        targets = targets.max(morphs.targets.len());
    }
    note(format!(
        "{targets} morph targets hold {} frames of it within {} mm",
        recording.times.len(),
        1e3 * settings.position
    ));
    if worst > settings.position {
        note(format!(
            "where joints fold all the way, viewers that blend bones linearly show it up to {:.1} mm off",
            1e3 * worst
        ));
    }
    channels
}

/// A point of a mesh: one of the vertices at the same place that follow the same joints.
struct Point<'a> {
    /// Its vertex of the skin; none when only triangles that were left out have it.
    vertex: Option<u32>,
    influences: &'a [Influence],
}

/// A mesh as one node shows it.
struct Shown<'a> {
    node: usize,
    points: Vec<Point<'a>>,
    /// By point: its place in the coordinates of the mesh.
    base: Vec<DVec3>,
    /// By primitive of the mesh that has one: the point of each vertex.
    point_of: BTreeMap<usize, Vec<u32>>,
    /// Of points.
    triangles: Vec<[u32; 3]>,
    /// By joint: from the mesh to its coordinates.
    binds: BTreeMap<usize, DAffine3>,
    /// How much the joints stretch the mesh at rest.
    size: f64,
}

impl<'a> Shown<'a> {
    fn read(
        document: &Document,
        reader: &Reader<'_>,
        node: usize,
        parts: &[(&'a SkinnedMesh, &[u32])],
    ) -> Result<Shown<'a>, FileError> {
        let this = &document.root().nodes[node];
        let mut binds: BTreeMap<usize, DAffine3> = match this.skin {
            Some(skin) => document.binds(reader, skin)?.into_iter().collect(),
            None => BTreeMap::new(),
        };
        binds.entry(node).or_insert(DAffine3::IDENTITY);
        let mut shown = Shown {
            node,
            points: Vec::new(),
            base: Vec::new(),
            point_of: BTreeMap::new(),
            triangles: Vec::new(),
            size: 0.0,
            binds,
        };
        let mut at_vertex: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (part, vertices) in parts {
            let mesh = this.mesh.unwrap_or_default();
            let place = format!("meshes[{mesh}].primitives[{}]", part.primitive);
            let primitive = &document.root().meshes[mesh].primitives[part.primitive];
            let Some((places, triangles)) = document.surface(reader, primitive, &place)? else { continue };
            let mut point_of = Vec::with_capacity(places.len());
            for (v, place) in places.into_iter().enumerate() {
                let influences = part.influences(v);
                let vertex = Some(vertices[v]).filter(|v| *v != u32::MAX);
                let same =
                    |&&p: &&u32| shown.base[p as usize] == place && shown.points[p as usize].influences == influences;
                let here = vertex.map(|vertex| at_vertex.entry(vertex).or_default());
                if let Some(&p) = here.as_ref().and_then(|here| here.iter().find(same)) {
                    point_of.push(p);
                    continue;
                }
                let p = shown.points.len() as u32;
                if let Some(here) = here {
                    here.push(p);
                }
                for i in influences {
                    let joint = document.world[i.node] * shown.binds.get(&i.node).copied().unwrap_or_default();
                    shown.size = shown.size.max(stretch(&joint));
                }
                shown.points.push(Point { vertex, influences });
                shown.base.push(place);
                point_of.push(p);
            }
            shown.triangles.extend(triangles.iter().map(|t| t.map(|v| point_of[v as usize])));
            shown.point_of.insert(part.primitive, point_of);
        }
        Ok(shown)
    }

    /// What the points must become in every frame; `worst` takes how far the blend of (1) is from the skin where it has collapsed \[m\].
    fn frames(&self, skin: &Skin, recording: &Recording, worlds: &[DAffine3], worst: &mut f64) -> Vec<DVec3> {
        let mut frames = Vec::with_capacity(self.base.len() * recording.times.len());
        let nodes = worlds.len() / recording.times.len().max(1);
        let mut joints = vec![DAffine3::IDENTITY; nodes];
        for (worlds, places) in worlds.chunks_exact(nodes.max(1)).zip(recording.surface.chunks_exact(skin.nodes())) {
            for (&node, bind) in &self.binds {
                joints[node] = worlds[node] * *bind;
            }
            for (point, &base) in self.points.iter().zip(&self.base) {
                let Some(vertex) = point.vertex else {
                    frames.push(base);
                    continue;
                };
                let place = places[vertex as usize];
                let blend = || point.influences.iter().map(|i| (&joints[i.node], i.weight));
                let found = unblend(blend(), self.size, place, base);
                let back: DVec3 = blend().map(|(matrix, weight)| matrix.transform_point3(found) * weight).sum();
                *worst = worst.max(back.distance(place));
                frames.push(found);
            }
        }
        frames
    }

    /// Smooth normals of the points, of the mesh as it is and of every frame; points of one vertex of the skin have one.
    fn normals(&self, frames: &[DVec3]) -> (Vec<DVec3>, Vec<DVec3>) {
        let mut first_of: BTreeMap<u32, u32> = BTreeMap::new();
        let firsts: Vec<u32> = (0u32..)
            .zip(&self.points)
            .map(|(p, point)| point.vertex.map_or(p, |vertex| *first_of.entry(vertex).or_insert(p)))
            .collect();
        let joined: Vec<[u32; 3]> = self.triangles.iter().map(|t| t.map(|p| firsts[p as usize])).collect();
        let of = |places: &[DVec3]| {
            let normals = soft::normals(places, &joined);
            firsts.iter().map(|&p| normals[p as usize]).collect::<Vec<_>>()
        };
        (of(&self.base), frames.chunks_exact(self.base.len()).flat_map(of).collect())
    }

    /// Adds targets to every primitive of the mesh, after those it has; the weights that these keep.
    fn add_targets(
        &self,
        root: &mut Value,
        binary: &mut Vec<u8>,
        reader: &Reader<'_>,
        moved: &[Vec<DVec3>],
        turned: &[Vec<DVec3>],
    ) -> Vec<f32> {
        // a mesh that other nodes show too is copied: its numbers are not, only what is said of them
        let mesh = &root["nodes"][self.node]["mesh"];
        let (shared, number) = (mesh.clone(), mesh.as_u64().unwrap_or(0) as usize);
        let uses = root["nodes"].as_array().map_or(0, |nodes| nodes.iter().filter(|n| n["mesh"] == shared).count());
        let number = if uses > 1 {
            let copy = root["meshes"][number].clone();
            let number = push(root, "meshes", copy);
            root["nodes"][self.node]["mesh"] = number.into();
            number
        } else {
            number
        };
        let primitives = root["meshes"][number]["primitives"].as_array().cloned().unwrap_or_default();
        let old = primitives.first().and_then(|p| p["targets"].as_array()).map_or(0, Vec::len);
        for (k, mut primitive) in primitives.into_iter().enumerate() {
            let mut targets = primitive["targets"].as_array().cloned().unwrap_or_default();
            let has_normals = primitive["attributes"].get("NORMAL").is_some();
            let normals = has_normals && targets.iter().all(|target| target.get("NORMAL").is_some());
            for (moved, turned) in moved.iter().zip(turned) {
                targets.push(match self.point_of.get(&k) {
                    Some(points) => {
                        let mut add = |of: &[DVec3], bounds| {
                            let flat = points.iter().flat_map(|&p| of[p as usize].as_vec3().to_array());
                            push_floats(root, binary, &flat.collect::<Vec<f32>>(), 3, Some(34962), bounds)
                        };
                        let mut target = json!({ "POSITION": add(moved, Bounds::Told) });
                        if normals {
                            target["NORMAL"] = add(turned, Bounds::Untold).into();
                        }
                        target
                    }
                    // lines, and what no bone carries: nothing moves
                    None => {
                        let at = primitive["attributes"]["POSITION"].as_u64().unwrap_or(0) as usize;
                        let zero = [0.0; 3];
                        let count = root["accessors"][at]["count"].clone();
                        let still =
                            json!({ "componentType": 5126, "count": count, "type": "VEC3", "min": zero, "max": zero });
                        json!({ "POSITION": push(root, "accessors", still) })
                    }
                });
            }
            primitive["targets"] = targets.into();
            root["meshes"][number]["primitives"][k] = primitive;
        }
        // what the targets of the file weigh, and names, if they have any
        let new = moved.len();
        let told = [&root["nodes"][self.node]["weights"], &root["meshes"][number]["weights"]];
        let told = told.into_iter().find_map(Value::as_array);
        let weight = |k: usize| told.and_then(|w| w.get(k)?.as_f64()).unwrap_or(0.0) as f32;
        let kept: Vec<f32> = (0..old).map(weight).collect();
        let longer = |list: &Value| {
            let list = list.as_array().cloned().unwrap_or_else(|| vec![0.0.into(); old]);
            Value::from([list, vec![0.0.into(); new]].concat())
        };
        let mesh = &mut root["meshes"][number];
        mesh["weights"] = longer(&mesh["weights"]);
        if let Some(names) = mesh["extras"]["targetNames"].as_array_mut() {
            names.extend((0..new).map(|k| format!("skin {k}").into()));
        } else if mesh["extras"].is_null() {
            mesh.as_object_mut().map(|mesh| mesh.remove("extras"));
        }
        if root["nodes"][self.node].get("weights").is_some() {
            let weights = longer(&root["nodes"][self.node]["weights"]);
            root["nodes"][self.node]["weights"] = weights;
        }
        if old > 0 {
            lengthen_animations(root, binary, reader, self.node, old, new);
        }
        kept
    }
}

/// The animations of the file that move the targets of a node, with no weight on the new ones.
fn lengthen_animations(
    root: &mut Value,
    binary: &mut Vec<u8>,
    reader: &Reader<'_>,
    node: usize,
    old: usize,
    new: usize,
) {
    let animations = root["animations"].as_array().map_or(0, Vec::len);
    for a in 0..animations {
        let channels = root["animations"][a]["channels"].as_array().cloned().unwrap_or_default();
        for (c, channel) in channels.iter().enumerate() {
            if channel["target"]["node"] != node || channel["target"]["path"] != "weights" {
                continue;
            }
            let number = channel["sampler"].as_u64().unwrap_or(0) as usize;
            let mut sampler = root["animations"][a]["samplers"][number].clone();
            let output = sampler["output"].as_u64().unwrap_or(0) as usize;
            let Ok(values) = reader.floats(output, &["SCALAR"]) else { continue };
            let rows = values.chunks_exact(old);
            let longer: Vec<f32> =
                rows.flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, new))).collect();
            sampler["output"] = push_floats(root, binary, &longer, 1, None, Bounds::Untold).into();
            // a sampler of several channels stays as it is for the others
            if channels.iter().filter(|other| other["sampler"] == channel["sampler"]).count() == 1 {
                root["animations"][a]["samplers"][number] = sampler;
            } else {
                let own = push(&mut root["animations"][a], "samplers", sampler);
                root["animations"][a]["channels"][c]["sampler"] = own.into();
            }
        }
    }
}
