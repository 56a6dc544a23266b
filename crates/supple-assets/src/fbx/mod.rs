//! FBX, read by `ufbx` and made into a plain glTF document in memory: Y up, metres, one local transform for the many of FBX. All that reads, rigs, draws or
//! bakes a glTF then takes it; what is baked of it is a .glb.

mod bones;
mod materials;
mod mesh;

use crate::gltf::container::{Container, parse, too_large};
use crate::{FileError, InputFile, Note};
use glam::{DAffine3, DQuat, DVec3};
use serde_json::{Value, json};
use std::path::Path;
use ufbx::{
    AllocatorOpts, BakeOpts, BakedAnimRoot, CoordinateAxes, FileFormat, GeometryTransformHandling, InheritModeHandling,
    LoadOpts, SceneRoot, SpaceConversion,
};

/// What a byte of the file may take in memory while it is read, beside [`SOME_BYTES`].
const BYTES_PER_BYTE: usize = 64;
const SOME_BYTES: usize = 64 << 20;
/// The same for numbers of what is made of it.
const NUMBERS_PER_BYTE: usize = 16;
const SOME_NUMBERS: usize = 1 << 20;
/// Takes are sampled at least so often \[1/s\], where curves are not straight.
const RATE: f64 = 30.0;
/// The longest take \[s\], and the deepest hierarchy.
const MOST_SECONDS: f64 = 3600.0;
const MOST_DEPTH: u32 = 4096;

/// The document while it is made.
struct Writer<'f> {
    file: &'f InputFile,
    root: Value,
    binary: Vec<u8>,
    notes: Vec<Note>,
    /// How many more numbers may be written.
    left: usize,
    /// Whether the root of all, which does nothing in most files, is a node of the document.
    has_root: bool,
    /// By node of the file: its scale, rotation and translation at rest.
    rest: Vec<Steps>,
}

/// Scale, rotation and translation of a node in its parent.
type Steps = (DVec3, DQuat, DVec3);

fn bad(path: &Path, what: impl Into<String>) -> FileError {
    FileError::new("file/fbx", path, what, "export the file again, as FBX 7.4 or 7.5, or as .glb")
}

/// Reads a file as if it were a glTF.
pub(crate) fn read(file: &InputFile) -> Result<Container, FileError> {
    let path = file.path();
    let scene = load(file)?;
    let most = NUMBERS_PER_BYTE * file.bytes().len() + SOME_NUMBERS;
    let mut writer = Writer {
        file,
        root: json!({
            "asset": { "version": "2.0", "generator": format!("Supple {}", env!("CARGO_PKG_VERSION")) },
            "scene": 0,
            "scenes": [{}],
        }),
        binary: Vec::new(),
        notes: Vec::new(),
        left: most,
        has_root: false,
        rest: Vec::new(),
    };
    let takes = writer.bake(&scene)?;
    writer.nodes(&scene, &takes)?;
    writer.takes(&scene, &takes)?;
    let Writer { mut root, binary, mut notes, .. } = writer;
    let text = format!(
        "it is an FBX {} file, read in metres with Y up (its own unit is {} m): what is baked of it is a .glb",
        f64::from(scene.metadata.version) / 1000.0,
        scene.settings.original_unit_meters
    );
    notes.insert(0, Note { code: "import/fbx", part: "scene".into(), text });
    if !binary.is_empty() {
        root["buffers"] = json!([{ "byteLength": binary.len() }]);
    }
    let json = root.to_string();
    let buffers = if binary.is_empty() { Vec::new() } else { vec![binary] };
    Ok(Container { root: parse(path, &json)?, json, buffers, made: notes, is_own: false })
}

fn load(file: &InputFile) -> Result<SceneRoot, FileError> {
    let most = BYTES_PER_BYTE * file.bytes().len() + SOME_BYTES;
    let bound = || AllocatorOpts { memory_limit: most, ..AllocatorOpts::default() };
    let options = LoadOpts {
        temp_allocator: bound(),
        result_allocator: bound(),
        file_format: FileFormat::Fbx,
        // Files that it names are opened by the one door for files, never by the library.
        load_external_files: false,
        target_axes: CoordinateAxes::right_handed_y_up(),
        target_unit_meters: 1.0,
        space_conversion: SpaceConversion::ModifyGeometry,
        geometry_transform_handling: GeometryTransformHandling::ModifyGeometry,
        inherit_mode_handling: InheritModeHandling::Compensate,
        generate_missing_normals: true,
        normalize_normals: true,
        clean_skin_weights: true,
        node_depth_limit: MOST_DEPTH,
        ..LoadOpts::default()
    };
    ufbx::load_memory(file.bytes(), options).map_err(|e| {
        let what: &str = &e.description;
        match e.type_ {
            ufbx::ErrorType::MemoryLimit => too_large(file.path(), format!("it takes more than {most} bytes to read")),
            _ => bad(file.path(), format!("it cannot be read: {}", what.to_lowercase())),
        }
    })
}

/// Adds to a list; its index there.
fn push(root: &mut Value, list: &str, value: Value) -> usize {
    crate::gltf::push(root, list, value)
}

fn vector(v: &ufbx::Vec3) -> [f64; 3] {
    [v.x, v.y, v.z]
}

/// A rotation of length 1.
fn rotation(q: &ufbx::Quat) -> [f64; 4] {
    let q = glam::DQuat::from_xyzw(q.x, q.y, q.z, q.w);
    if q.length_squared() > 1e-12 { q.normalize().to_array() } else { [0.0, 0.0, 0.0, 1.0] }
}

impl Writer<'_> {
    fn note(&mut self, code: &'static str, part: &str, text: impl Into<String>) {
        self.notes.push(Note { code, part: part.to_owned(), text: text.into() });
    }

    fn spend(&mut self, numbers: usize) -> Result<(), FileError> {
        let path = self.file.path();
        self.left = self
            .left
            .checked_sub(numbers)
            .ok_or_else(|| too_large(path, "its meshes and clips unfold to far more than it has bytes"))?;
        Ok(())
    }

    /// Which node of the document a node of the file is; the root of all is none when it does nothing.
    fn index(&self, node: usize) -> Option<usize> {
        if self.has_root { Some(node) } else { node.checked_sub(1) }
    }

    /// All nodes, in the order of the file, at rest: as they were when meshes were bound to them, if there is one such pose; else as the file was left.
    fn nodes(&mut self, scene: &SceneRoot, takes: &[Take]) -> Result<(), FileError> {
        let path = self.file.path().to_owned();
        for node in &scene.nodes {
            let t = &node.local_transform;
            let numbers = [vector(&t.translation), vector(&t.scale)];
            if !numbers.iter().flatten().all(|x| x.is_finite() && x.abs() < 1e12) || !t.rotation.w.is_finite() {
                let name: &str = &node.element.name;
                return Err(FileError::new("file/number", &path, "its place is not finite", "correct its transform")
                    .at(name.to_owned()));
            }
            self.rest.push(steps(t));
        }
        if let Some(bound) = bind_pose(scene, &self.rest) {
            let moved = |(a, b): (&Steps, &Steps)| a.1.angle_between(b.1) > 1e-3 || a.2.distance(b.2) > 1e-6;
            if self.rest.iter().zip(&bound).any(moved) {
                self.note("import/rest", "scene", "it was left in a pose: it stands as its skin was bound");
            }
            self.rest = bound;
        }
        let still: Steps = (DVec3::ONE, DQuat::IDENTITY, DVec3::ZERO);
        let is_first = |node: &ufbx::Node| node.element.typed_id == 0 && node.parent.is_none();
        let one_root = scene.nodes.first().is_some_and(|node| is_first(node));
        self.has_root = !one_root || self.rest.first() != Some(&still) || takes.iter().any(|take| take.moves(0));
        let mut tops = Vec::new();
        for (k, node) in scene.nodes.iter().enumerate() {
            let Some(own) = self.index(k) else { continue };
            let mut name: String = node.element.name.to_string();
            if let (true, Some(parent)) = (name.is_empty(), &node.parent) {
                name = format!("{} scale", &*parent.element.name);
            }
            let (scale, turn, place) = self.rest[k];
            let mut told = json!({ "name": name });
            if place != DVec3::ZERO {
                told["translation"] = json!(place.to_array());
            }
            if scale != DVec3::ONE {
                told["scale"] = json!(scale.to_array());
            }
            if turn != DQuat::IDENTITY {
                told["rotation"] = json!(turn.to_array());
            }
            let children = node.children.iter().filter_map(|child| self.index(child.element.typed_id as usize));
            let children: Vec<usize> = children.collect();
            if !children.is_empty() {
                told["children"] = json!(children);
            }
            let parent = node.parent.as_ref().and_then(|parent| self.index(parent.element.typed_id as usize));
            if parent.is_none() {
                tops.push(own);
            }
            push(&mut self.root, "nodes", told);
        }
        self.root["scenes"][0]["nodes"] = json!(tops);
        for (k, node) in scene.nodes.iter().enumerate() {
            let Some(mesh) = &node.mesh else { continue };
            if !node.visible {
                self.note("import/mesh", &node.element.name, "it is hidden in the file, and is left out");
                continue;
            }
            self.mesh(scene, k, node, mesh, takes)?;
        }
        if self.root.get("meshes").is_none() {
            let world = world_of(scene, &self.rest);
            self.bones(scene, &world)?;
        }
        Ok(())
    }

    /// The takes, sampled.
    fn bake(&mut self, scene: &SceneRoot) -> Result<Vec<Take>, FileError> {
        let mut takes = Vec::new();
        for stack in &scene.anim_stacks {
            let name: &str = &stack.element.name;
            let span = stack.time_end - stack.time_begin;
            if !(0.0..=MOST_SECONDS).contains(&span) {
                self.note("import/clip", name, format!("it lasts {span} s, which no clip does: it is left out"));
                continue;
            }
            let limit = |memory_limit: usize| AllocatorOpts { memory_limit, ..AllocatorOpts::default() };
            let options = BakeOpts {
                temp_allocator: limit(4 * self.left + SOME_BYTES),
                result_allocator: limit(8 * self.left + SOME_BYTES),
                trim_start_time: true,
                resample_rate: RATE,
                key_reduction_enabled: true,
                key_reduction_rotation: true,
                ..BakeOpts::default()
            };
            let baked = ufbx::bake_anim(scene, &stack.anim, options);
            let what = |e: ufbx::Error| format!("its take cannot be read: {:?}", e.type_);
            let baked = baked.map_err(|e| bad(self.file.path(), what(e)).at(name.to_owned()))?;
            let keys = |node: &ufbx::BakedNode| {
                4 * node.translation_keys.len() + 5 * node.rotation_keys.len() + 4 * node.scale_keys.len()
            };
            self.spend(baked.nodes.iter().map(keys).sum())?;
            takes.push(Take { name: name.to_owned(), baked });
        }
        Ok(takes)
    }

    /// Takes of the file as animations.
    fn takes(&mut self, scene: &SceneRoot, takes: &[Take]) -> Result<(), FileError> {
        for take in takes {
            let (mut channels, mut samplers) = (Vec::new(), Vec::new());
            for k in 0..scene.nodes.len() {
                let Some(own) = self.index(k) else { continue };
                let still = steps(&scene.nodes[k].local_transform);
                let baked = take.baked.nodes.iter().find(|node| node.typed_id as usize == k);
                let vectors = |keys: Option<&[ufbx::BakedVec3]>, other: DVec3| match keys {
                    Some(keys) if !keys.is_empty() => {
                        (keys.iter().map(|k| k.time).collect(), keys.iter().flat_map(|k| vector(&k.value)).collect())
                    }
                    _ => (vec![0.0], other.to_array().to_vec()),
                };
                let turns = match baked.map(|node| &*node.rotation_keys) {
                    Some(keys) if !keys.is_empty() => {
                        let turn = |k: &ufbx::BakedQuat| rotation(&k.value);
                        (
                            keys.iter().map(|k| k.time).collect::<Vec<f64>>(),
                            keys.iter().flat_map(turn).collect::<Vec<f64>>(),
                        )
                    }
                    _ => (vec![0.0], still.1.to_array().to_vec()),
                };
                let (scale, turn, place) = self.rest[k];
                let tracks = [
                    (
                        "translation",
                        3,
                        vectors(baked.map(|n| &*n.translation_keys), still.2),
                        place.to_array().to_vec(),
                    ),
                    ("rotation", 4, turns, turn.to_array().to_vec()),
                    ("scale", 3, vectors(baked.map(|n| &*n.scale_keys), still.0), scale.to_array().to_vec()),
                ];
                for (track, width, (times, values), rest) in tracks {
                    // What stays as it is at rest needs no keys.
                    let same = |v: &[f64], sign: f64| v.iter().zip(&rest).all(|(a, b)| (sign * a - b).abs() < 1e-9);
                    let is_rest = |v: &[f64]| same(v, 1.0) || (width == 4 && same(v, -1.0));
                    if values.chunks_exact(width).all(is_rest) {
                        continue;
                    }
                    let (times, values) = rising(&times, &values, width);
                    let input = self.floats(&times, 1, None, true);
                    let output = self.floats(&values, width, None, false);
                    channels.push(json!({ "sampler": samplers.len(), "target": { "node": own, "path": track } }));
                    samplers.push(json!({ "input": input, "output": output, "interpolation": "LINEAR" }));
                }
            }
            if take.baked.nodes.is_empty() {
                continue;
            }
            if !channels.is_empty() {
                let animation = json!({ "name": take.name, "channels": channels, "samplers": samplers });
                push(&mut self.root, "animations", animation);
            }
        }
        Ok(())
    }

    fn floats(&mut self, values: &[f32], width: usize, target: Option<u32>, bounds: bool) -> usize {
        let bounds = if bounds { crate::gltf::Bounds::Told } else { crate::gltf::Bounds::Untold };
        crate::gltf::push_floats(&mut self.root, &mut self.binary, values, width, target, bounds)
    }
}

/// A take of the file, sampled.
struct Take {
    name: String,
    baked: BakedAnimRoot,
}

impl Take {
    /// Whether it moves or scales a node.
    fn moves(&self, node: usize) -> bool {
        let is_still = |n: &ufbx::BakedNode| n.constant_translation && n.constant_rotation && n.constant_scale;
        self.baked.nodes.iter().any(|n| n.typed_id as usize == node && !is_still(n))
    }
}

fn steps(t: &ufbx::Transform) -> Steps {
    (vector(&t.scale).into(), DQuat::from_array(rotation(&t.rotation)), vector(&t.translation).into())
}

fn affine(m: &ufbx::Matrix) -> DAffine3 {
    let column = |x, y, z| DVec3::new(x, y, z);
    DAffine3 {
        matrix3: glam::DMat3::from_cols(
            column(m.m00, m.m10, m.m20),
            column(m.m01, m.m11, m.m21),
            column(m.m02, m.m12, m.m22),
        ),
        translation: column(m.m03, m.m13, m.m23),
    }
}

/// Parents come before their children in the order of the file.
fn world_of(scene: &SceneRoot, rest: &[Steps]) -> Vec<DAffine3> {
    let mut world: Vec<DAffine3> = Vec::with_capacity(rest.len());
    for (k, (scale, turn, place)) in rest.iter().enumerate() {
        let own = DAffine3::from_scale_rotation_translation(*scale, *turn, *place);
        let parent = scene.nodes[k].parent.as_ref().and_then(|p| world.get(p.element.typed_id as usize));
        world.push(parent.map_or(own, |parent| *parent * own));
    }
    world
}

/// The pose in which meshes were bound to bones, if all skins agree on it and it is one that nodes can have.
fn bind_pose(scene: &SceneRoot, rest: &[Steps]) -> Option<Vec<Steps>> {
    let mut bound: Vec<Option<DAffine3>> = vec![None; rest.len()];
    for cluster in scene.skin_deformers.iter().flat_map(|skin| skin.clusters.iter()) {
        // What only scales its own part of a mesh was made for reading, and has no such pose.
        let bone = cluster.bone_node.as_ref().filter(|bone| !bone.is_scale_helper)?;
        let node = bone.element.typed_id as usize;
        let place = affine(&cluster.bind_to_world);
        let far = |other: &DAffine3| !other.abs_diff_eq(place, 1e-4 * (1.0 + place.translation.length()));
        if !place.is_finite() || bound.get(node)?.as_ref().is_some_and(far) {
            return None;
        }
        bound[node] = Some(place);
    }
    let mut out = rest.to_vec();
    let mut world: Vec<DAffine3> = Vec::with_capacity(rest.len());
    for k in 0..rest.len() {
        let parent = scene.nodes[k].parent.as_ref().and_then(|p| world.get(p.element.typed_id as usize)).copied();
        let parent = parent.unwrap_or(DAffine3::IDENTITY);
        if let Some(place) = bound[k] {
            let local = parent.inverse() * place;
            let (scale, turn, at) = local.to_scale_rotation_translation();
            let back = DAffine3::from_scale_rotation_translation(scale, turn, at);
            let size = local.matrix3.to_cols_array().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let off = (back.matrix3 - local.matrix3).to_cols_array().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            if !(local.is_finite() && turn.is_finite() && off <= 1e-4 * size) {
                return None;
            }
            out[k] = (scale, turn.normalize(), at);
        }
        let (scale, turn, at) = out[k];
        world.push(parent * DAffine3::from_scale_rotation_translation(scale, turn, at));
    }
    Some(out)
}

/// Keys whose times rise as 32-bit floats: of several at one time the last is kept.
fn rising(times: &[f64], values: &[f64], width: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut kept, mut out): (Vec<f32>, Vec<f32>) = (Vec::new(), Vec::new());
    for (time, value) in times.iter().zip(values.chunks_exact(width)) {
        let time = time.max(0.0) as f32;
        while kept.last().is_some_and(|last| *last >= time) {
            kept.pop();
            out.truncate(out.len() - width);
        }
        kept.push(time);
        out.extend(value.iter().map(|x| *x as f32));
    }
    (kept, out)
}
