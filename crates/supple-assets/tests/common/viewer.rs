//! A .glb as any viewer shows it: node tree, animation, skins, morph targets, straight from the specification of glTF 2.0.

use serde_json::Value;
use supple::glam::{DAffine3, DMat4, DQuat, DVec3};

/// JSON and binary chunk of a .glb.
pub(crate) fn parts(glb: &[u8]) -> (Value, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(glb[at..at + 4].try_into().unwrap()) as usize;
    let json = word(12);
    assert_eq!(word(8), glb.len());
    (serde_json::from_slice(&glb[20..20 + json]).unwrap(), glb[28 + json..].to_vec())
}

/// A file opened by a viewer.
pub(crate) struct Viewer {
    pub(crate) root: Value,
    binary: Vec<u8>,
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn numbers<const N: usize>(value: &Value, usual: [f64; N]) -> [f64; N] {
    value.as_array().map_or(usual, |list| std::array::from_fn(|k| list[k].as_f64().unwrap()))
}

/// Of each primitive, by node and number, where its vertices are.
pub(crate) type Frame = Vec<((usize, usize), Vec<DVec3>)>;

impl Viewer {
    pub(crate) fn open(glb: &[u8]) -> Viewer {
        let (root, binary) = parts(glb);
        Viewer { root, binary }
    }

    /// The numbers of an accessor; integers that are normalised become fractions.
    pub(crate) fn accessor(&self, accessor: &Value) -> Vec<f64> {
        let accessor = &self.root["accessors"][index(accessor)];
        let width = match accessor["type"].as_str().unwrap() {
            "SCALAR" => 1,
            "VEC2" => 2,
            "VEC3" => 3,
            "VEC4" => 4,
            _ => 16,
        };
        let count = index(&accessor["count"]);
        let Some(view) = accessor.get("bufferView") else { return vec![0.0; count * width] };
        let view = &self.root["bufferViews"][index(view)];
        let kind = index(&accessor["componentType"]);
        let size = [1, 1, 2, 2, 0, 4, 4][kind - 5120];
        let from = view["byteOffset"].as_u64().unwrap_or(0) + accessor["byteOffset"].as_u64().unwrap_or(0);
        let stride = view["byteStride"].as_u64().map_or(width * size, |s| s as usize);
        let normal = accessor["normalized"] == true;
        let read = |at: usize| {
            let b = &self.binary[at..at + size];
            match kind {
                5121 => f64::from(b[0]) / if normal { 255.0 } else { 1.0 },
                5123 => f64::from(u16::from_le_bytes([b[0], b[1]])) / if normal { 65535.0 } else { 1.0 },
                5125 => f64::from(u32::from_le_bytes(b.try_into().unwrap())),
                5126 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
                other => panic!("component type {other}"),
            }
        };
        let at = |row: usize, k: usize| from as usize + row * stride + k * size;
        (0..count).flat_map(|row| (0..width).map(move |k| (row, k))).map(|(row, k)| read(at(row, k))).collect()
    }

    /// Where every vertex of every mesh is at a time of an animation: by node and primitive.
    pub(crate) fn frames(&self, animation: usize, times: &[f64]) -> Vec<Frame> {
        let nodes = list(&self.root["nodes"]);
        let mut parents = vec![None; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            list(&node["children"]).iter().for_each(|child| parents[index(child)] = Some(i));
        }
        // node, path, times, values
        let animation = &self.root["animations"][animation];
        let channels: Vec<(usize, &str, Vec<f64>, Vec<f64>)> = list(&animation["channels"])
            .iter()
            .map(|channel| {
                let sampler = &animation["samplers"][index(&channel["sampler"])];
                assert!(sampler["interpolation"].as_str().is_none_or(|i| i == "LINEAR"));
                let (node, path) = (index(&channel["target"]["node"]), channel["target"]["path"].as_str().unwrap());
                (node, path, self.accessor(&sampler["input"]), self.accessor(&sampler["output"]))
            })
            .collect();
        // meshes are read once
        struct Part {
            node: usize,
            primitive: usize,
            base: Vec<DVec3>,
            targets: Vec<Vec<DVec3>>,
            joints: Vec<f64>,
            weights: Vec<f64>,
        }
        let points = |accessor: &Value| -> Vec<DVec3> {
            self.accessor(accessor).chunks_exact(3).map(DVec3::from_slice).collect()
        };
        let mut parts = Vec::new();
        for (i, node) in nodes.iter().enumerate().filter(|(_, node)| node.get("mesh").is_some()) {
            for (k, primitive) in list(&self.root["meshes"][index(&node["mesh"])]["primitives"]).iter().enumerate() {
                let attributes = &primitive["attributes"];
                let skinned = node.get("skin").is_some() && attributes.get("JOINTS_0").is_some();
                let of = |name: &str| if skinned { self.accessor(&attributes[name]) } else { Vec::new() };
                parts.push(Part {
                    node: i,
                    primitive: k,
                    base: points(&attributes["POSITION"]),
                    targets: list(&primitive["targets"]).iter().map(|t| points(&t["POSITION"])).collect(),
                    joints: of("JOINTS_0"),
                    weights: of("WEIGHTS_0"),
                });
            }
        }
        let mut skins: Vec<Vec<(usize, DAffine3)>> = Vec::new();
        for skin in list(&self.root["skins"]) {
            let binds = skin.get("inverseBindMatrices").map(|m| self.accessor(m));
            let joints = list(&skin["joints"]).iter().enumerate().map(|(k, joint)| {
                let bind = binds.as_ref().map_or(DMat4::IDENTITY, |b| DMat4::from_cols_slice(&b[16 * k..16 * k + 16]));
                (index(joint), DAffine3::from_mat4(bind))
            });
            skins.push(joints.collect());
        }

        let one = |time: f64| {
            let mut steps: Vec<(DVec3, DQuat, DVec3)> = nodes
                .iter()
                .map(|node| {
                    if let Some(m) = node.get("matrix") {
                        let m = DMat4::from_cols_array(&numbers(m, [0.0; 16]));
                        return m.to_scale_rotation_translation();
                    }
                    (
                        numbers(&node["scale"], [1.0; 3]).into(),
                        DQuat::from_array(numbers(&node["rotation"], [0.0, 0.0, 0.0, 1.0])),
                        numbers(&node["translation"], [0.0; 3]).into(),
                    )
                })
                .collect();
            let mut morphs: Vec<Vec<f64>> = nodes
                .iter()
                .map(|node| {
                    let told = node
                        .get("weights")
                        .or_else(|| node.get("mesh").and_then(|mesh| self.root["meshes"][index(mesh)].get("weights")));
                    told.map_or(Vec::new(), |w| list(w).iter().map(|w| w.as_f64().unwrap()).collect())
                })
                .collect();
            for (node, path, times, values) in &channels {
                let after = times.iter().position(|k| *k >= time).unwrap_or(times.len() - 1);
                let before = if times[after] <= time { after } else { after.saturating_sub(1) };
                let span = times[after] - times[before];
                let u = if span > 0.0 { ((time - times[before]) / span).clamp(0.0, 1.0) } else { 0.0 };
                let width = values.len() / times.len();
                let [a, b] = [before, after].map(|key| &values[key * width..(key + 1) * width]);
                let lerp = |k: usize| a[k] + u * (b[k] - a[k]);
                match *path {
                    "translation" => steps[*node].2 = DVec3::from_array(std::array::from_fn(lerp)),
                    "scale" => steps[*node].0 = DVec3::from_array(std::array::from_fn(lerp)),
                    "rotation" => steps[*node].1 = DQuat::from_slice(a).slerp(DQuat::from_slice(b), u),
                    "weights" => morphs[*node] = (0..width).map(lerp).collect(),
                    other => panic!("{other}"),
                }
            }
            let world = |node: usize| {
                let mut matrix = DAffine3::IDENTITY;
                let mut at = Some(node);
                while let Some(i) = at {
                    let (scale, rotation, translation) = steps[i];
                    matrix = DAffine3::from_scale_rotation_translation(scale, rotation, translation) * matrix;
                    at = parents[i];
                }
                matrix
            };
            parts
                .iter()
                .map(|part| {
                    let weights = &morphs[part.node];
                    assert_eq!(weights.len(), part.targets.len(), "node {}", part.node);
                    let matrices: Vec<DAffine3> = match nodes[part.node].get("skin") {
                        Some(skin) => skins[index(skin)].iter().map(|(joint, bind)| world(*joint) * *bind).collect(),
                        None => vec![world(part.node)],
                    };
                    let place = |v: usize| {
                        let moved: DVec3 = part.targets.iter().zip(weights).map(|(t, w)| t[v] * *w).sum();
                        let p = part.base[v] + moved;
                        if part.joints.is_empty() {
                            return world(part.node).transform_point3(p);
                        }
                        let range = 4 * v..4 * v + 4;
                        let total: f64 = part.weights[range.clone()].iter().sum();
                        range
                            .map(|i| matrices[part.joints[i] as usize].transform_point3(p) * (part.weights[i] / total))
                            .sum()
                    };
                    ((part.node, part.primitive), (0..part.base.len()).map(place).collect())
                })
                .collect()
        };
        times.iter().map(|time| one(*time)).collect()
    }
}
