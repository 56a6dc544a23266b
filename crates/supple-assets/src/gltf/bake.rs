//! A simulated motion as an animation of a .glb: on the nodes of the file it came from, all else of the file kept; or on nodes made for the
//! bodies of a scene that came from no glTF.

use super::document::Document;
use super::nodes::{NodePlaces, steps};
use super::{bake_skin, soft, solids};
use crate::recording::Recording;
use crate::{Character, Note};
use glam::{DAffine3, DQuat, DVec3};
use serde_json::{Value, json};
use supple::{BodyId, Model, Pose, Skin};

/// How exactly a bake follows the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BakeSettings {
    /// Keys are left out where the others lead this near \[m\].
    pub position: f64,
    /// The same for rotations \[rad\].
    pub angle: f64,
    /// Of a character: where its travel along the ground is written.
    pub root: RootMotion,
    /// Of a character: over the last so many seconds its motion is led to the pose of the first frame, so that it can be played in a circle. Travel along the
    /// ground goes on.
    pub seam: Option<f64>,
}

/// Where the travel of a character along the ground is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootMotion {
    /// On the hips, as everything else that they do.
    #[default]
    Hips,
    /// On the node at the root of the skeleton: hips stay above it.
    Root,
    /// Nowhere: the character stays in its place.
    InPlace,
}

impl Default for BakeSettings {
    /// A tenth of a millimetre, a fiftieth of a degree.
    fn default() -> Self {
        BakeSettings { position: 1e-4, angle: 3.5e-4, root: RootMotion::Hips, seam: None }
    }
}

/// A baked file.
#[derive(Debug)]
pub struct Baked {
    /// The bytes of a .glb.
    pub bytes: Vec<u8>,
    /// What could not be kept.
    pub notes: Vec<Note>,
}

/// One animated property of a node: keys as times and values of `width` numbers.
pub(super) struct Channel {
    pub(super) node: usize,
    pub(super) path: &'static str,
    pub(super) width: usize,
    pub(super) times: Vec<f32>,
    pub(super) values: Vec<f32>,
}

/// Shares of the tolerance at the surface: of rotations and translations of bones, of targets, of the keys of their weights.
const OF_ROTATIONS: f64 = 0.05;
const OF_TRANSLATIONS: f64 = 0.05;
pub(super) const OF_TARGETS: f64 = 0.7;
pub(super) const OF_WEIGHTS: f64 = 0.2;

impl Character {
    /// The file with the motion as one more animation, named `name`. `model` is the one that [`Character::imported`] made, with or without soft skin: the skin
    /// becomes morph targets of the file's meshes, and every vertex is within `settings.position` of where the simulation had it.
    pub fn bake(&self, model: &Model, recording: &Recording, name: &str, settings: &BakeSettings) -> Baked {
        self.bake_clips(model, &[(name, recording)], settings)
    }

    /// The same with several motions, each an animation of its name. Soft skin is that of the first.
    pub fn bake_clips(&self, model: &Model, clips: &[(&str, &Recording)], settings: &BakeSettings) -> Baked {
        let document = &self.document;
        let mut notes = Vec::new();
        let mut root: Value = serde_json::from_str(&document.container.json).unwrap_or_default();
        let mut binary = merge_buffers(&mut root, document);
        let tolerances = match model.skin() {
            None => vec![*settings; self.rig.bones.len()],
            Some(skin) => tolerances_at_surface(self, skin, settings),
        };
        let root_node = (settings.root == RootMotion::Root).then(|| root_node(self, &mut root));
        for (k, (name, recording)) in clips.iter().enumerate() {
            let in_place = (settings.root != RootMotion::Hips).then(|| recording.in_place());
            let recording = in_place.as_ref().map_or(*recording, |(recording, _)| recording);
            let mut channels = self.channels(model, recording, &tolerances, settings, &mut root, &mut notes);
            if let (Some((node, at)), Some((_, travel))) = (root_node, &in_place) {
                let places: Vec<DVec3> = travel.iter().map(|far| at + *far / document.scale).collect();
                let tolerance = settings.position / document.scale;
                channels.0.push(translation_channel(node, &recording.times, &places, tolerance));
            }
            let (mut channels, worlds) = channels;
            match model.skin() {
                Some(skin) if k == 0 => channels.extend(bake_skin::add(
                    &mut root,
                    &mut binary,
                    self,
                    skin,
                    recording,
                    &worlds,
                    settings,
                    &mut notes,
                )),
                Some(_) => {
                    let text = "soft skin is written for the first motion alone: in this one bones carry it".into();
                    notes.push(Note { code: "bake/skin", part: (*name).to_owned(), text });
                }
                None => {}
            }
            add_animation(&mut root, &mut binary, &channels, name, recording);
        }
        Baked { bytes: glb(&root, binary), notes }
    }

    /// What the nodes of the file do, as channels, and their worlds for a soft skin.
    fn channels(
        &self,
        model: &Model,
        recording: &Recording,
        tolerances: &[BakeSettings],
        settings: &BakeSettings,
        root: &mut Value,
        notes: &mut Vec<Note>,
    ) -> (Vec<Channel>, Vec<DAffine3>) {
        let document = &self.document;
        let mut motions = local_motions(self, model, recording, notes);
        if let Some(blend) = settings.seam {
            motions.nodes.iter_mut().for_each(|motion| close_seam(document, motion, &recording.times, blend));
        }
        let mut channels = Vec::new();
        for motion in &motions.nodes {
            let (scale, rotation, translation) = steps(&document.local[motion.node]);
            let tolerance = &tolerances[motion.bone];
            // In metres; keys are in the space of the node above, which may be scaled as well as the file.
            let above = document.parents[motion.node].map_or(document.world_from_file(), |p| document.world[p]);
            let near = tolerance.position / bake_skin::stretch(&above).max(1e-12);
            // A node that an animation moves has no matrix.
            let node = &mut root["nodes"][motion.node];
            if node.get("matrix").is_some() {
                let list = |values: &[f64]| Value::from(values.to_vec());
                node["translation"] = list(&translation.to_array());
                node["rotation"] = list(&rotation.to_array());
                node["scale"] = list(&scale.to_array());
                node.as_object_mut().map(|node| node.remove("matrix"));
            }
            let times = &recording.times;
            channels.push(rotation_channel(motion.node, times, &motion.rotations, tolerance.angle));
            let moves = motion.translations.iter().any(|t| t.distance(translation) > near);
            if moves || self.rig.bones[motion.bone].parent.is_none() {
                channels.push(translation_channel(motion.node, times, &motion.translations, near));
            }
        }
        (channels, motions.worlds)
    }
}

/// The node that carries the travel of a character, with its place: the topmost above its first bone; a new one where that bone is topmost itself.
fn root_node(character: &Character, root: &mut Value) -> (usize, DVec3) {
    let document = &character.document;
    let hips = character.rig.bones[0].node;
    let mut top = hips;
    while let Some(parent) = document.parents[top] {
        top = parent;
    }
    if top != hips {
        let (scale, rotation, translation) = steps(&document.local[top]);
        let node = &mut root["nodes"][top];
        if node.as_object_mut().and_then(|node| node.remove("matrix")).is_some() {
            // A node that an animation moves has no matrix.
            node["translation"] = json!(translation.to_array());
            node["rotation"] = json!(rotation.to_array());
            node["scale"] = json!(scale.to_array());
        }
        return (top, translation);
    }
    let added = push(root, "nodes", json!({ "name": "root", "children": [hips] }));
    for scene in root["scenes"].as_array_mut().into_iter().flatten() {
        for node in scene["nodes"].as_array_mut().into_iter().flatten() {
            if node.as_u64() == Some(hips as u64) {
                *node = added.into();
            }
        }
    }
    (added, DVec3::ZERO)
}

/// Leads the end of a node's motion to its first frame, over the last `blend` seconds, without a kink. What hangs on no node that moves keeps its travel along
/// the ground.
fn close_seam(document: &Document, motion: &mut LocalMotion, times: &[f64], blend: f64) {
    let (Some(&end), Some(last)) = (times.last(), times.len().checked_sub(1)) else { return };
    let turn = motion.rotations[0] * motion.rotations[last].conjugate();
    let turn = if turn.w < 0.0 { -turn } else { turn };
    let mut shift = motion.translations[0] - motion.translations[last];
    if motion.is_root {
        let parent = document.parents[motion.node].map_or(document.world_from_file(), |p| document.world[p]).matrix3;
        let up = DVec3::Y * (parent * shift).y;
        shift = parent.inverse() * up;
    }
    for (k, time) in times.iter().enumerate() {
        let share = (1.0 - (end - time) / blend.max(1e-9)).clamp(0.0, 1.0);
        let share = share * share * (3.0 - 2.0 * share);
        motion.rotations[k] = DQuat::IDENTITY.slerp(turn, share) * motion.rotations[k];
        motion.translations[k] += shift * share;
    }
    keep_sign(&mut motion.rotations);
}

/// By bone: how near its keys must lead, so that all bones above a vertex together lead it near enough.
fn tolerances_at_surface(character: &Character, skin: &Skin, settings: &BakeSettings) -> Vec<BakeSettings> {
    let bones = &character.rig.bones;
    let mut above = vec![1usize; bones.len()];
    for (i, bone) in bones.iter().enumerate() {
        above[i] += bone.parent.map_or(0, |p| above[p]);
    }
    let longest = above.iter().copied().max().unwrap_or(1) as f64;
    let low = skin.rest.iter().copied().fold(DVec3::INFINITY, DVec3::min);
    let high = skin.rest.iter().copied().fold(DVec3::NEG_INFINITY, DVec3::max);
    let reach = (high - low).length().max(1e-9);
    let of_bone = BakeSettings {
        position: OF_TRANSLATIONS * settings.position / longest,
        angle: OF_ROTATIONS * settings.position / (longest * reach),
        ..*settings
    };
    vec![of_bone; bones.len()]
}

/// A scene that came from no glTF, as one: a node with the shapes of each body, animated.
pub fn bake_scene(model: &Model, recording: &Recording, name: &str, settings: &BakeSettings) -> Baked {
    let mut binary = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let mut root = json!({
        "asset": { "version": "2.0", "generator": format!("Supple {version}") },
        "scene": 0,
        "scenes": [{ "nodes": (0..model.bodies().len()).collect::<Vec<_>>() }],
        "nodes": [], "meshes": [], "accessors": [], "bufferViews": [],
        "materials": [{ "name": "body", "pbrMetallicRoughness": { "baseColorFactor": [0.72, 0.66, 0.56, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.7 } }],
    });
    let mut channels = Vec::new();
    for (i, body) in model.bodies().iter().enumerate() {
        // bones lie within their flesh
        let in_skin = model.skin().is_some_and(|skin| skin.bones.binary_search(&(i as u32)).is_ok());
        let is_bone = in_skin || model.flesh().is_some_and(|flesh| flesh.bones.contains(&Some(BodyId(i as u32))));
        let mesh = if is_bone { solids::Mesh::default() } else { solids::of_body(body) };
        let start = body.start;
        let mut node = json!({
            "name": body.name,
            "translation": start.translation.to_array(),
            "rotation": start.rotation.to_array(),
        });
        if !mesh.triangles.is_empty() {
            let position = push_floats(&mut root, &mut binary, &mesh.positions, 3, Some(34962), Bounds::Told);
            let normal = push_floats(&mut root, &mut binary, &mesh.normals, 3, Some(34962), Bounds::Untold);
            let indices = push_indices(&mut root, &mut binary, &mesh.triangles);
            node["mesh"] = push(&mut root, "meshes", json!({
                "name": body.name,
                "primitives": [{ "attributes": { "POSITION": position, "NORMAL": normal }, "indices": indices, "material": 0 }],
            })).into();
        }
        push(&mut root, "nodes", node);
        let poses: Vec<Pose> = recording.poses.iter().skip(i).step_by(model.bodies().len()).copied().collect();
        let mut rotations: Vec<DQuat> = poses.iter().map(|p| p.rotation).collect();
        keep_sign(&mut rotations);
        let translations: Vec<DVec3> = poses.iter().map(|p| p.translation).collect();
        channels.push(rotation_channel(i, &recording.times, &rotations, settings.angle));
        channels.push(translation_channel(i, &recording.times, &translations, settings.position));
    }
    if let Some(flesh) = model.flesh() {
        let surface = SoftSurface { triangles: &flesh.surface.triangles, colours: &flesh.surface.colours, skin: None };
        channels.extend(add_soft(&mut root, &mut binary, &surface, recording, settings));
    }
    if let Some(skin) = model.skin() {
        let surface = SoftSurface { triangles: &skin.triangles, colours: &skin.colours, skin: Some(skin) };
        channels.extend(add_soft(&mut root, &mut binary, &surface, recording, settings));
    }
    if root["meshes"].as_array().is_some_and(Vec::is_empty) {
        // A list that is there must not be empty.
        root.as_object_mut().map(|root| (root.remove("meshes"), root.remove("materials")));
    }
    root["buffers"] = json!([{ "byteLength": 0 }]);
    add_animation(&mut root, &mut binary, &channels, name, recording);
    Baked { bytes: glb(&root, binary), notes: Vec::new() }
}

/// A surface that is soft.
struct SoftSurface<'m> {
    triangles: &'m [[u32; 3]],
    colours: &'m [[f32; 3]],
    /// What bones carry it, after its morph targets.
    skin: Option<&'m Skin>,
}

/// Adds the surface of flesh or skin as a node with morph targets; returns the channel of their weights, if it changes at all. Half of the tolerance is for the
/// targets, half for the keys.
fn add_soft(
    root: &mut Value,
    binary: &mut Vec<u8>,
    surface: &SoftSurface<'_>,
    recording: &Recording,
    settings: &BakeSettings,
) -> Option<Channel> {
    if recording.times.is_empty() || recording.surface.is_empty() {
        return None;
    }
    let vertices = recording.surface.len() / recording.times.len();
    let name = if surface.skin.is_some() { "skin" } else { "flesh" };
    let unblended = surface.skin.map(|skin| unblended(skin, recording));
    let frames = unblended.as_ref().unwrap_or(&recording.surface);
    let base = &frames[..vertices];
    let morphs = soft::morphs(base, frames, 0.5 * settings.position);
    let all_normals: Vec<DVec3> =
        frames.chunks_exact(vertices).flat_map(|frame| soft::normals(frame, surface.triangles)).collect();
    let turned = morphs.fit(&all_normals[..vertices], &all_normals);
    let flat = |list: &[DVec3]| list.iter().flat_map(|p| p.as_vec3().to_array()).collect::<Vec<f32>>();
    let mut add = |list: &[DVec3], bounds: Bounds| push_floats(root, binary, &flat(list), 3, Some(34962), bounds);
    let position = add(base, Bounds::Told);
    let normal = add(&all_normals[..vertices], Bounds::Untold);
    let targets: Vec<Value> = morphs
        .targets
        .iter()
        .zip(&turned)
        .map(|(moved, turned)| json!({ "POSITION": add(moved, Bounds::Told), "NORMAL": add(turned, Bounds::Untold) }))
        .collect();
    let mut attributes = json!({ "POSITION": position, "NORMAL": normal });
    if surface.colours.len() == vertices {
        let colours: Vec<f32> = surface.colours.iter().flatten().copied().collect();
        attributes["COLOR_0"] = push_floats(root, binary, &colours, 3, Some(34962), Bounds::Untold).into();
    }
    if let Some(skin) = surface.skin {
        let (joints, weights) = add_influences(root, binary, skin);
        attributes["JOINTS_0"] = joints.into();
        attributes["WEIGHTS_0"] = weights.into();
    }
    let indices = push_indices(root, binary, surface.triangles);
    let material = push(
        root,
        "materials",
        json!({
            "name": name,
            "pbrMetallicRoughness": { "metallicFactor": 0.0, "roughnessFactor": 0.6 },
        }),
    );
    let mut primitive = json!({ "attributes": attributes, "indices": indices, "material": material });
    let mut mesh = json!({ "name": name });
    if !targets.is_empty() {
        primitive["targets"] = targets.into();
        mesh["weights"] = json!(vec![0.0; morphs.targets.len()]);
    }
    mesh["primitives"] = json!([primitive]);
    let mesh = push(root, "meshes", mesh);
    let mut node = json!({ "name": name, "mesh": mesh });
    if let Some(skin) = surface.skin {
        node["skin"] = add_binding(root, binary, skin).into();
    }
    let node = push(root, "nodes", node);
    root["scenes"][0]["nodes"].as_array_mut()?.push(node.into());
    (!morphs.targets.is_empty()).then(|| morphs.channel(node, &recording.times, 0.5 * settings.position))
}

/// The frames of a skin in the rest pose, before bones blend them \[m\].
fn unblended(skin: &Skin, recording: &Recording) -> Vec<DVec3> {
    let mut out = Vec::with_capacity(recording.surface.len());
    let poses = recording.poses.chunks_exact(skin.body_from_rest.len());
    for (places, poses) in recording.surface.chunks_exact(skin.nodes()).zip(poses) {
        let moved = poses.iter().zip(&skin.body_from_rest).map(|(pose, rest)| pose.then(*rest));
        let carries: Vec<DAffine3> =
            moved.map(|p| DAffine3::from_rotation_translation(p.rotation, p.translation)).collect();
        for (v, &place) in places.iter().enumerate() {
            let own = skin.influences[v].iter().map(|i| (&carries[i.body as usize], i.weight));
            out.push(bake_skin::unblend(own, 1.0, place, skin.rest[v]));
        }
    }
    out
}

/// The bodies that each vertex follows and their shares, as accessors.
fn add_influences(root: &mut Value, binary: &mut Vec<u8>, skin: &Skin) -> (usize, usize) {
    let joint_of = |body: u32| skin.bones.binary_search(&body).unwrap_or(0) as u16;
    let joints: Vec<u8> = skin.influences.iter().flatten().flat_map(|i| joint_of(i.body).to_le_bytes()).collect();
    let view = push_view(root, binary, &joints, Some(34962));
    let count = skin.influences.len();
    let accessor = json!({ "bufferView": view, "componentType": 5123, "count": count, "type": "VEC4" });
    let joints = push(root, "accessors", accessor);
    let weights: Vec<f32> = skin.influences.iter().flatten().map(|i| i.weight as f32).collect();
    (joints, push_floats(root, binary, &weights, 4, Some(34962), Bounds::Untold))
}

/// The skin of a mesh: its joints are the nodes of bodies, bound in the rest pose.
fn add_binding(root: &mut Value, binary: &mut Vec<u8>, skin: &Skin) -> usize {
    let bind = |&body: &u32| {
        let pose = skin.body_from_rest[body as usize];
        glam::DMat4::from_rotation_translation(pose.rotation, pose.translation).as_mat4().to_cols_array()
    };
    let numbers: Vec<f32> = skin.bones.iter().flat_map(bind).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = push_view(root, binary, &bytes, None);
    let accessor = json!({ "bufferView": view, "componentType": 5126, "count": skin.bones.len(), "type": "MAT4" });
    let matrices = push(root, "accessors", accessor);
    push(root, "skins", json!({ "joints": skin.bones, "inverseBindMatrices": matrices }))
}

/// A node's place in its parent over time.
struct LocalMotion {
    node: usize,
    /// The bone whose body carries it.
    bone: usize,
    /// Whether no node above it moves.
    is_root: bool,
    rotations: Vec<DQuat>,
    translations: Vec<DVec3>,
}

/// What the nodes of a file do.
struct Motions {
    nodes: Vec<LocalMotion>,
    /// Frame after frame, by node: where it is in the world as written; empty when there is no skin.
    worlds: Vec<DAffine3>,
}

/// What the nodes that bodies carry do within their parents. All others keep their place in theirs.
fn local_motions(character: &Character, model: &Model, recording: &Recording, notes: &mut Vec<Note>) -> Motions {
    let mut places = NodePlaces::new(character, model);
    let moving: Vec<(usize, usize)> = places.moving().collect();
    let mut moves = vec![false; character.document.parents.len()];
    let mut nodes = Vec::with_capacity(moving.len());
    for (node, bone) in moving {
        let mut above = character.document.parents[node];
        while let Some(parent) = above.filter(|p| !moves[*p]) {
            above = character.document.parents[parent];
        }
        moves[node] = true;
        let (rotations, translations) = (Vec::new(), Vec::new());
        nodes.push(LocalMotion { node, bone, is_root: above.is_none(), rotations, translations });
    }
    let mut motions = Motions { nodes, worlds: Vec::new() };
    for frame in recording.poses.chunks_exact(character.rig.bones.len()) {
        let mut next = motions.nodes.iter_mut();
        places.place(frame, |_, rotation, translation| {
            if let Some(motion) = next.next() {
                motion.rotations.push(rotation);
                motion.translations.push(translation);
            }
        });
        if model.skin().is_some() {
            motions.worlds.extend_from_slice(&places.written);
        }
    }
    if places.sheared > 1e-3 {
        let text = "nodes with uneven scale turn: what they shear cannot be written as rotation and translation".into();
        notes.push(Note { code: "bake/shear", part: "scene".into(), text });
    }
    for motion in &mut motions.nodes {
        keep_sign(&mut motion.rotations);
    }
    motions
}

/// q and −q are one rotation: the nearer to the one before is written.
pub(super) fn keep_sign(rotations: &mut [DQuat]) {
    for k in 1..rotations.len() {
        if rotations[k - 1].dot(rotations[k]) < 0.0 {
            rotations[k] = -rotations[k];
        }
    }
}

fn rotation_channel(node: usize, times: &[f64], rotations: &[DQuat], tolerance: f64) -> Channel {
    let error = |a: usize, b: usize, k: usize| {
        let u = (times[k] - times[a]) / (times[b] - times[a]);
        rotations[a].slerp(rotations[b], u).angle_between(rotations[k])
    };
    let keys = reduce(times.len(), tolerance, error);
    Channel {
        node,
        path: "rotation",
        width: 4,
        times: keys.iter().map(|k| times[*k] as f32).collect(),
        values: keys.iter().flat_map(|k| rotations[*k].as_quat().normalize().to_array()).collect(),
    }
}

fn translation_channel(node: usize, times: &[f64], translations: &[DVec3], tolerance: f64) -> Channel {
    let error = |a: usize, b: usize, k: usize| {
        let u = (times[k] - times[a]) / (times[b] - times[a]);
        translations[a].lerp(translations[b], u).distance(translations[k])
    };
    let keys = reduce(times.len(), tolerance, error);
    Channel {
        node,
        path: "translation",
        width: 3,
        times: keys.iter().map(|k| times[*k] as f32).collect(),
        values: keys.iter().flat_map(|k| translations[*k].as_vec3().to_array()).collect(),
    }
}

/// The frames to keep so that the line between two kept ones is nowhere further off than `tolerance`: the worst one between is kept until
/// none is [Douglas–Peucker]. One key will do where nothing moves.
pub(super) fn reduce(frames: usize, tolerance: f64, error: impl Fn(usize, usize, usize) -> f64) -> Vec<usize> {
    let Some(last) = frames.checked_sub(1) else { return Vec::new() };
    let mut keep = vec![false; frames];
    (keep[0], keep[last]) = (true, true);
    let mut spans = vec![(0, last)];
    while let Some((a, b)) = spans.pop() {
        let worst = (a + 1..b).map(|k| (error(a, b, k), k)).max_by(|x, y| x.0.total_cmp(&y.0));
        if let Some((off, k)) = worst.filter(|(off, _)| *off > tolerance) {
            debug_assert!(off.is_finite());
            keep[k] = true;
            spans.extend([(a, k), (k, b)]);
        }
    }
    (0..frames).filter(|k| keep[*k]).collect()
}

impl Document {
    /// The file as a .glb, all that it holds in one buffer.
    pub(crate) fn as_glb(&self) -> Vec<u8> {
        let mut root: Value = serde_json::from_str(&self.container.json).unwrap_or_default();
        let binary = merge_buffers(&mut root, self);
        root["buffers"][0]["byteLength"] = binary.len().into();
        glb(&root, binary)
    }
}

/// All buffers as one, the views into them moved accordingly.
pub(super) fn merge_buffers(root: &mut Value, document: &Document) -> Vec<u8> {
    let mut binary: Vec<u8> = Vec::new();
    let mut starts = Vec::new();
    for buffer in &document.container.buffers {
        pad(&mut binary, 0);
        starts.push(binary.len());
        binary.extend_from_slice(buffer);
    }
    if starts.len() > 1 {
        for view in root["bufferViews"].as_array_mut().into_iter().flatten() {
            let buffer = view["buffer"].as_u64().unwrap_or(0) as usize;
            let offset = view["byteOffset"].as_u64().unwrap_or(0) as usize;
            view["byteOffset"] = (offset + starts.get(buffer).copied().unwrap_or(0)).into();
            view["buffer"] = 0.into();
        }
    }
    let mut first = root["buffers"].get_mut(0).map(Value::take).unwrap_or_else(|| json!({}));
    first.as_object_mut().map(|buffer| buffer.remove("uri"));
    root["buffers"] = json!([first]);
    binary
}

fn add_animation(root: &mut Value, binary: &mut Vec<u8>, channels: &[Channel], name: &str, recording: &Recording) {
    let (mut samplers, mut targets) = (Vec::new(), Vec::new());
    for channel in channels {
        let input = push_floats(root, binary, &channel.times, 1, None, Bounds::Told);
        let output = push_floats(root, binary, &channel.values, channel.width, None, Bounds::Untold);
        targets.push(json!({ "sampler": samplers.len(), "target": { "node": channel.node, "path": channel.path } }));
        samplers.push(json!({ "input": input, "output": output, "interpolation": "LINEAR" }));
    }
    let list = |read: fn(&crate::Quality) -> f64| recording.quality.iter().map(read).collect::<Vec<f64>>();
    let animation = json!({
        "name": name,
        "channels": targets,
        "samplers": samplers,
        "extras": { "supple": {
            "times": recording.times,
            "gap": list(|q| q.gap),
            "penetration": list(|q| q.penetration),
            "torque_over_limit": list(|q| q.torque_over_limit),
        } },
    });
    push(root, "animations", animation);
    root["buffers"][0]["byteLength"] = binary.len().into();
}

/// Adds to a list of the file; its index there.
pub(crate) fn push(root: &mut Value, list: &str, value: Value) -> usize {
    if !root[list].is_array() {
        root[list] = json!([]);
    }
    let list = root[list].as_array_mut().expect("it was made one");
    list.push(value);
    list.len() - 1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    Told,
    Untold,
}

pub(crate) fn push_floats(
    root: &mut Value,
    binary: &mut Vec<u8>,
    values: &[f32],
    width: usize,
    target: Option<u32>,
    bounds: Bounds,
) -> usize {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = push_view(root, binary, &bytes, target);
    let kind = ["", "SCALAR", "VEC2", "VEC3", "VEC4"][width];
    let mut accessor =
        json!({ "bufferView": view, "componentType": 5126, "count": values.len() / width, "type": kind });
    if bounds == Bounds::Told {
        let of = |pick: fn(f32, f32) -> f32| -> Vec<f32> {
            (0..width).map(|i| values.iter().skip(i).step_by(width).copied().reduce(pick).unwrap_or(0.0)).collect()
        };
        (accessor["min"], accessor["max"]) = (json!(of(f32::min)), json!(of(f32::max)));
    }
    push(root, "accessors", accessor)
}

pub(crate) fn push_indices(root: &mut Value, binary: &mut Vec<u8>, triangles: &[[u32; 3]]) -> usize {
    let bytes: Vec<u8> = triangles.iter().flatten().flat_map(|i| i.to_le_bytes()).collect();
    let view = push_view(root, binary, &bytes, Some(34963));
    let accessor = json!({ "bufferView": view, "componentType": 5125, "count": 3 * triangles.len(), "type": "SCALAR" });
    push(root, "accessors", accessor)
}

pub(crate) fn push_view(root: &mut Value, binary: &mut Vec<u8>, bytes: &[u8], target: Option<u32>) -> usize {
    pad(binary, 0);
    let mut view = json!({ "buffer": 0, "byteOffset": binary.len(), "byteLength": bytes.len() });
    if let Some(target) = target {
        view["target"] = target.into();
    }
    binary.extend_from_slice(bytes);
    push(root, "bufferViews", view)
}

/// Fills up to a multiple of four bytes.
fn pad(bytes: &mut Vec<u8>, with: u8) {
    bytes.resize(bytes.len().next_multiple_of(4), with);
}

/// Header, JSON, binary chunk.
pub(super) fn glb(root: &Value, mut binary: Vec<u8>) -> Vec<u8> {
    let mut json = root.to_string().into_bytes();
    pad(&mut json, b' ');
    pad(&mut binary, 0);
    let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut out = Vec::with_capacity(28 + json.len() + binary.len());
    out.extend(b"glTF");
    out.extend(word(2));
    out.extend(word(28 + json.len() + binary.len()));
    out.extend(word(json.len()));
    out.extend(b"JSON");
    out.extend(json);
    out.extend(word(binary.len()));
    out.extend(b"BIN\0");
    out.extend(binary);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out_within_the_tolerance() {
        // A sine of 1 m, 1,000 frames: straight lines need about π √(1/(8 tolerance)) ≈ 111 keys a half-turn of 1e-4.
        let value = |k: usize| (k as f64 * std::f64::consts::TAU / 999.0).sin();
        let error = |a: usize, b: usize, k: usize| {
            let u = (k - a) as f64 / (b - a) as f64;
            (value(a) + u * (value(b) - value(a)) - value(k)).abs()
        };
        let keys = reduce(1000, 1e-4, error);
        assert!(keys.len() < 260 && keys.len() > 80, "{}", keys.len());
        for pair in keys.windows(2) {
            assert!((pair[0] + 1..pair[1]).all(|k| error(pair[0], pair[1], k) <= 1e-4));
        }
        assert_eq!(reduce(1000, 1e-4, |_, _, _| 0.0), [0, 999]);
        assert_eq!(reduce(1, 1e-4, |_, _, _| 0.0), [0]);
    }
}
