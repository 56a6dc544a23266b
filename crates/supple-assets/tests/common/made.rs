//! Skinned characters made up for tests: tubes along bones whose vertices are shared at the joints, as exporters write them.

use glam::{DMat4, DQuat, DVec3};
use serde_json::{Value, json};

/// A bone as a test tells it, at rest, in units of the file.
pub(crate) struct Made {
    pub(crate) name: String,
    /// The node it hangs from.
    pub(crate) parent: Option<usize>,
    pub(crate) from: DVec3,
    pub(crate) to: DVec3,
    /// Of its tube; 0: it carries no vertex.
    pub(crate) radius: f64,
    /// The bone with which its first vertices are shared, whatever it hangs from.
    pub(crate) shared: Option<usize>,
    /// How its own axes are turned against the usual ones, with Y along the bone.
    pub(crate) roll: DQuat,
}

impl Made {
    pub(crate) fn new(
        name: impl Into<String>,
        parent: Option<usize>,
        from: [f64; 3],
        to: [f64; 3],
        radius: f64,
    ) -> Made {
        Made {
            name: name.into(),
            parent,
            from: from.into(),
            to: to.into(),
            radius,
            shared: parent,
            roll: DQuat::IDENTITY,
        }
    }
}

/// What a clip does: bone, turns in the axes of the rest pose by frame, and places of the bone's origin where it moves.
pub(crate) type Turned = (usize, Vec<DQuat>, Option<Vec<DVec3>>);

const RINGS: usize = 6;
const ROUND: usize = 10;
/// Seconds from frame to frame.
const FRAME: f64 = 0.1;

/// Y along the bone, as modelling programs have it.
fn arc(bone: &Made) -> DQuat {
    (bone.to - bone.from).try_normalize().map_or(DQuat::IDENTITY, |d| DQuat::from_rotation_arc(DVec3::Y, d))
}

/// The vertices of the tube around a bone, ring after ring.
fn tube(bone: &Made) -> Vec<DVec3> {
    let (x, z) = (arc(bone) * DVec3::X, arc(bone) * DVec3::Z);
    let place = |k: usize| {
        let t = (k / ROUND) as f64 / (RINGS - 1) as f64;
        let angle = std::f64::consts::TAU * (k % ROUND) as f64 / ROUND as f64;
        bone.from.lerp(bone.to, t) + (x * angle.cos() + z * angle.sin()) * bone.radius
    };
    (0..RINGS * ROUND).map(place).collect()
}

/// What closes a tube.
fn tube_triangles() -> impl Iterator<Item = u16> {
    let at = |ring: usize, k: usize| (ring * ROUND + k % ROUND) as u16;
    let mut triangles = Vec::new();
    for ring in 0..RINGS - 1 {
        for k in 0..ROUND {
            triangles.extend([at(ring, k), at(ring + 1, k), at(ring, k + 1)]);
            triangles.extend([at(ring, k + 1), at(ring + 1, k), at(ring + 1, k + 1)]);
        }
    }
    for k in 1..ROUND - 1 {
        triangles.extend([at(0, 0), at(0, k), at(0, k + 1)]);
        triangles.extend([at(RINGS - 1, 0), at(RINGS - 1, k + 1), at(RINGS - 1, k)]);
    }
    triangles.into_iter()
}

/// A .gltf of the same bones as rigid parts: a mesh each, no skin, no clip.
pub(crate) fn parts(bones: &[Made]) -> Vec<u8> {
    let mut data: Vec<u8> = tube_triangles().flat_map(u16::to_le_bytes).collect();
    let indices = data.len();
    let (mut nodes, mut meshes, mut accessors) = (Vec::new(), Vec::new(), vec![json!(null)]);
    let mut views = vec![json!({ "buffer": 0, "byteLength": indices })];
    accessors[0] = json!({ "bufferView": 0, "componentType": 5123, "count": indices / 2, "type": "SCALAR" });
    for (b, bone) in bones.iter().enumerate() {
        let above = bone.parent.map_or(DVec3::ZERO, |p| bones[p].from);
        let mut node = json!({ "name": bone.name, "translation": (bone.from - above).to_array() });
        let children: Vec<usize> = (0..bones.len()).filter(|c| bones[*c].parent == Some(b)).collect();
        if !children.is_empty() {
            node["children"] = json!(children);
        }
        if bone.radius > 0.0 {
            let places: Vec<[f32; 3]> = tube(bone).iter().map(|at| (*at - bone.from).as_vec3().to_array()).collect();
            let bound = |pick: fn(f32, f32) -> f32| {
                std::array::from_fn::<f32, 3, _>(|c| places.iter().map(|p| p[c]).reduce(pick).unwrap())
            };
            accessors
                .push(json!({ "bufferView": views.len(), "componentType": 5126, "count": places.len(), "type": "VEC3",
                "min": bound(f32::min), "max": bound(f32::max) }));
            views.push(json!({ "buffer": 0, "byteOffset": data.len(), "byteLength": 12 * places.len() }));
            data.extend(places.iter().flatten().flat_map(|x| x.to_le_bytes()));
            node["mesh"] = json!(meshes.len());
            meshes.push(json!({ "primitives": [{ "attributes": { "POSITION": accessors.len() - 1 }, "indices": 0 }] }));
        }
        nodes.push(node);
    }
    let roots: Vec<usize> = (0..bones.len()).filter(|b| bones[*b].parent.is_none()).collect();
    packed(
        json!({ "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": roots }], "nodes": nodes, "meshes": meshes,
            "accessors": accessors, "bufferViews": views, "buffers": [{ "byteLength": data.len() }] }),
        data,
    )
}

/// The .glb of bones under a node with this matrix; the clip, if any, is called `clip`.
pub(crate) fn glb(bones: &[Made], above: DMat4, clip: &[Turned]) -> Vec<u8> {
    let mut data: Vec<u8> = Vec::new();
    let (mut views, mut accessors): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut add = |bytes: Vec<u8>, kind: &str, component: u32, count: usize, bounds: Option<(Vec<f32>, Vec<f32>)>| {
        while !data.len().is_multiple_of(4) {
            data.push(0);
        }
        views.push(json!({ "buffer": 0, "byteOffset": data.len(), "byteLength": bytes.len() }));
        data.extend(bytes);
        let mut accessor =
            json!({ "bufferView": views.len() - 1, "componentType": component, "count": count, "type": kind });
        if let Some((low, high)) = bounds {
            (accessor["min"], accessor["max"]) = (json!(low), json!(high));
        }
        accessors.push(accessor);
        accessors.len() - 1
    };
    let floats = |list: &[f32]| list.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();

    let arcs: Vec<DQuat> = bones.iter().map(arc).collect();
    let axes: Vec<DQuat> = bones.iter().zip(&arcs).map(|(bone, arc)| *arc * bone.roll).collect();
    let (mut places, mut joints, mut weights, mut triangles) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (b, bone) in bones.iter().enumerate().filter(|(_, bone)| bone.radius > 0.0) {
        let first = (places.len() / 3) as u16;
        for (k, at) in tube(bone).into_iter().enumerate() {
            places.extend(at.to_array().map(|c| c as f32));
            let other = bone.shared.filter(|s| k < ROUND && bones[*s].radius > 0.0);
            joints.extend([b as u16, other.unwrap_or(0) as u16, 0, 0]);
            weights.extend(if other.is_some() { [0.5f32, 0.5, 0.0, 0.0] } else { [1.0, 0.0, 0.0, 0.0] });
        }
        triangles.extend(tube_triangles().map(|k| first + k));
    }
    let count = places.len() / 3;
    let bound = |pick: fn(f32, f32) -> f32, start: f32| {
        (0..3).map(|c| places.iter().skip(c).step_by(3).copied().fold(start, pick)).collect::<Vec<f32>>()
    };
    let bounds = (bound(f32::min, f32::INFINITY), bound(f32::max, f32::NEG_INFINITY));
    let words = |list: &[u16]| list.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let position = add(floats(&places), "VEC3", 5126, count, Some(bounds));
    let joint = add(words(&joints), "VEC4", 5123, count, None);
    let weight = add(floats(&weights), "VEC4", 5126, count, None);
    let index = add(words(&triangles), "SCALAR", 5123, triangles.len(), None);
    let inverse = |b: usize| DMat4::from_rotation_translation(axes[b], bones[b].from).inverse();
    let matrices: Vec<f32> = (0..bones.len()).flat_map(|b| inverse(b).to_cols_array().map(|x| x as f32)).collect();
    let inverses = add(floats(&matrices), "MAT4", 5126, bones.len(), None);

    let local = |b: usize, turn: DQuat, from: DVec3| {
        let (axes_above, origin) = bones[b].parent.map_or((DQuat::IDENTITY, DVec3::ZERO), |p| (axes[p], bones[p].from));
        (axes_above.conjugate() * turn * axes[b], axes_above.conjugate() * (from - origin))
    };
    let mut nodes: Vec<Value> = Vec::new();
    for (b, bone) in bones.iter().enumerate() {
        let (rotation, translation) = local(b, DQuat::IDENTITY, bone.from);
        let mut node =
            json!({ "name": bone.name, "rotation": rotation.to_array(), "translation": translation.to_array() });
        let children: Vec<usize> = (0..bones.len()).filter(|c| bones[*c].parent == Some(b)).collect();
        if !children.is_empty() {
            node["children"] = json!(children);
        }
        nodes.push(node);
    }
    let roots: Vec<usize> = (0..bones.len()).filter(|b| bones[*b].parent.is_none()).collect();
    nodes.push(json!({ "name": "Armature", "matrix": above.to_cols_array(), "children": roots }));
    nodes.push(json!({ "name": "body", "mesh": 0, "skin": 0 }));
    let (mut channels, mut samplers) = (Vec::new(), Vec::new());
    let frames = clip.iter().map(|(_, turns, _)| turns.len()).max().unwrap_or(0);
    if frames > 0 {
        let times: Vec<f32> = (0..frames).map(|f| (f as f64 * FRAME) as f32).collect();
        let last = times[frames - 1];
        let time = add(floats(&times), "SCALAR", 5126, frames, Some((vec![0.0], vec![last])));
        for (b, turns, moved) in clip {
            let rows: Vec<(DQuat, DVec3)> = (0..frames)
                .map(|f| local(*b, turns[f], moved.as_ref().map_or(bones[*b].from, |moved| moved[f])))
                .collect();
            let turns: Vec<f32> = rows.iter().flat_map(|row| row.0.to_array().map(|x| x as f32)).collect();
            let output = add(floats(&turns), "VEC4", 5126, frames, None);
            channels.push(json!({ "sampler": samplers.len(), "target": { "node": b, "path": "rotation" } }));
            samplers.push(json!({ "input": time, "output": output }));
            if moved.is_some() {
                let places: Vec<f32> = rows.iter().flat_map(|row| row.1.to_array().map(|x| x as f32)).collect();
                let output = add(floats(&places), "VEC3", 5126, frames, None);
                channels.push(json!({ "sampler": samplers.len(), "target": { "node": b, "path": "translation" } }));
                samplers.push(json!({ "input": time, "output": output }));
            }
        }
    }
    let mut root = json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [bones.len(), bones.len() + 1] }], "nodes": nodes,
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": position, "JOINTS_0": joint, "WEIGHTS_0": weight }, "indices": index }] }],
        "skins": [{ "joints": (0..bones.len()).collect::<Vec<_>>(), "inverseBindMatrices": inverses }],
        "accessors": accessors, "bufferViews": views, "buffers": [{ "byteLength": data.len() }],
    });
    if frames > 0 {
        root["animations"] = json!([{ "name": "clip", "channels": channels, "samplers": samplers }]);
    }
    packed(root, data)
}

/// A document and its buffer in one .glb.
pub(crate) fn packed(root: Value, mut data: Vec<u8>) -> Vec<u8> {
    let mut text = root.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    data.resize(data.len().next_multiple_of(4), 0);
    let word = |n: usize| (n as u32).to_le_bytes().to_vec();
    let length = 12 + 8 + text.len() + 8 + data.len();
    [
        b"glTF".to_vec(),
        word(2),
        word(length),
        word(text.len()),
        b"JSON".to_vec(),
        text,
        word(data.len()),
        b"BIN\0".to_vec(),
        data,
    ]
    .concat()
}
