//! A glTF file whose references are checked: the node tree, and where its nodes are at rest.

use super::accessor::Reader;
use super::container::{self, Container};
use super::schema::{Node, Root};
use crate::imported::MOST_LENGTH;
use crate::{FileError, InputFile, Note};
use glam::{DAffine3, DMat3, DMat4, DQuat, DVec3};
use std::path::{Path, PathBuf};

/// A file with its node tree.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    /// The file as it was opened: the page draws its bytes and what it names.
    pub(crate) file: InputFile,
    pub(crate) container: Container,
    /// By node: its parent.
    pub(crate) parents: Vec<Option<usize>>,
    /// Nodes of the scene, parents before children.
    pub(crate) order: Vec<usize>,
    /// By node: its place in its parent at rest.
    pub(crate) local: Vec<Part>,
    /// By node: its place in the world at rest; identity for nodes outside the scene.
    pub(crate) world: Vec<DAffine3>,
    /// Metres in a unit of length of the file.
    pub(crate) scale: f64,
    /// By node: a name that no other node has.
    pub(crate) names: Vec<String>,
    /// What was noticed.
    pub(crate) notes: Vec<Note>,
}

/// The transform of a node in its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    /// Translation, rotation, scale: what clips can change.
    Steps { translation: DVec3, rotation: DQuat, scale: DVec3 },
    /// A matrix as it stands.
    Matrix(DAffine3),
}

impl Part {
    pub(crate) fn matrix(&self) -> DAffine3 {
        match *self {
            Part::Steps { translation, rotation, scale } => {
                DAffine3::from_scale_rotation_translation(scale, rotation, translation)
            }
            Part::Matrix(matrix) => matrix,
        }
    }
}

/// The deepest hierarchy that is read.
const MAX_DEPTH: usize = 4096;

impl Document {
    pub(crate) fn read(file: InputFile) -> Result<Document, FileError> {
        let container = match file.ending().as_str() {
            "fbx" => crate::fbx::read(&file)?,
            _ => container::read(&file)?,
        };
        Document::new(file, container)
    }

    pub(crate) fn root(&self) -> &Root {
        &self.container.root
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.path, &self.container)
    }

    fn new(file: InputFile, container: Container) -> Result<Document, FileError> {
        let path = file.path();
        let root = &container.root;
        check_references(path, root)?;
        super::vrm::check_bones(path, root)?;
        let parents = parents(path, root)?;
        let roots: Vec<usize> = match root.scenes.get(root.scene.unwrap_or(0)) {
            Some(scene) => scene.nodes.clone(),
            None => (0..root.nodes.len()).filter(|i| parents[*i].is_none()).collect(),
        };
        let mut notes: Vec<Note> = container.made.clone();
        let order = order(path, root, &roots)?;
        if order.len() < root.nodes.len() {
            let text = format!(
                "{} of {} nodes are not in the scene and are left out",
                root.nodes.len() - order.len(),
                root.nodes.len()
            );
            notes.push(Note { code: "import/outside-scene", part: "scene".into(), text });
        }
        let mut local = Vec::with_capacity(root.nodes.len());
        for (i, node) in root.nodes.iter().enumerate() {
            local.push(part(path, i, node)?);
        }
        let mut world = vec![DAffine3::IDENTITY; root.nodes.len()];
        for &i in &order {
            // A scene may list a node that has a parent; its place is that within the parent all the same.
            world[i] = parents[i].map_or(DAffine3::IDENTITY, |p| world[p]) * local[i].matrix();
            if !(world[i].is_finite() && world[i].translation.length() < MOST_LENGTH) {
                let what = format!("its place is more than {MOST_LENGTH} m away, or not finite");
                return Err(FileError::new("file/number", path, what, "correct its transform, and those above it")
                    .at(format!("nodes[{i}]")));
            }
        }
        let names = names(root);
        Ok(Document { path: path.to_owned(), file, parents, order, local, world, scale: 1.0, names, notes, container })
    }

    /// The places of all nodes in the world, from those in their parents.
    pub(crate) fn world_of(&self, local: &[Part]) -> Vec<DAffine3> {
        let mut world = vec![DAffine3::IDENTITY; local.len()];
        for &i in &self.order {
            world[i] = self.parents[i].map_or(self.world_from_file(), |p| world[p]) * local[i].matrix();
        }
        world
    }

    /// From the file's own unit of length to metres.
    pub(crate) fn world_from_file(&self) -> DAffine3 {
        DAffine3::from_scale(DVec3::splat(self.scale))
    }

    /// Reads lengths in another unit; what was made of the file before must be made again.
    pub(crate) fn set_scale(&mut self, scale: f64) {
        self.scale = scale;
        self.world = self.world_of(&self.local);
    }
}

/// Every index of the node tree, of skins and of animations names something that exists.
fn check_references(path: &Path, root: &Root) -> Result<(), FileError> {
    let check = |place: String, kind: &str, index: usize, count: usize| match index < count {
        true => Ok(()),
        false => Err(FileError::new(
            "file/reference",
            path,
            format!("there is no {kind} {index}: the file has {count}"),
            "export the file again",
        )
        .at(place)),
    };
    let (nodes, accessors) = (root.nodes.len(), root.accessors.len());
    for (i, scene) in root.scenes.iter().enumerate() {
        for &node in &scene.nodes {
            check(format!("scenes[{i}].nodes"), "node", node, nodes)?;
        }
    }
    for (i, node) in root.nodes.iter().enumerate() {
        for &child in &node.children {
            check(format!("nodes[{i}].children"), "node", child, nodes)?;
        }
        if let Some(mesh) = node.mesh {
            check(format!("nodes[{i}].mesh"), "mesh", mesh, root.meshes.len())?;
        }
        if let Some(skin) = node.skin {
            check(format!("nodes[{i}].skin"), "skin", skin, root.skins.len())?;
        }
    }
    for (i, skin) in root.skins.iter().enumerate() {
        for &joint in &skin.joints {
            check(format!("skins[{i}].joints"), "node", joint, nodes)?;
        }
        if let Some(accessor) = skin.inverse_bind_matrices {
            check(format!("skins[{i}].inverseBindMatrices"), "accessor", accessor, accessors)?;
        }
    }
    for (i, mesh) in root.meshes.iter().enumerate() {
        for (k, primitive) in mesh.primitives.iter().enumerate() {
            let place = || format!("meshes[{i}].primitives[{k}]");
            for &accessor in primitive.attributes.values().chain(&primitive.indices) {
                check(place(), "accessor", accessor, accessors)?;
            }
            if let Some(material) = primitive.material {
                check(place(), "material", material, root.materials.len())?;
            }
        }
    }
    for (i, animation) in root.animations.iter().enumerate() {
        for (k, channel) in animation.channels.iter().enumerate() {
            check(format!("animations[{i}].channels[{k}]"), "sampler", channel.sampler, animation.samplers.len())?;
            if let Some(node) = channel.target.node {
                check(format!("animations[{i}].channels[{k}]"), "node", node, nodes)?;
            }
        }
        for (k, sampler) in animation.samplers.iter().enumerate() {
            check(format!("animations[{i}].samplers[{k}].input"), "accessor", sampler.input, accessors)?;
            check(format!("animations[{i}].samplers[{k}].output"), "accessor", sampler.output, accessors)?;
        }
    }
    Ok(())
}

/// By node: its parent. A node has one at most, and no node is above itself.
fn parents(path: &Path, root: &Root) -> Result<Vec<Option<usize>>, FileError> {
    let broken = |node: usize, what: String| {
        FileError::new("file/hierarchy", path, what, "export the file again: its nodes must be a tree")
            .at(format!("nodes[{node}]"))
    };
    let mut parents = vec![None; root.nodes.len()];
    for (i, node) in root.nodes.iter().enumerate() {
        for &child in &node.children {
            if let Some(other) = parents[child].replace(i) {
                return Err(broken(child, format!("it is a child of node {other} and of node {i}")));
            }
        }
    }
    // Each has one parent: who does not reach a root by going up goes in a circle. A walk stops where an earlier one has been.
    let mut depths = vec![0; parents.len()]; // 0: not known yet
    let mut walked = Vec::new();
    for start in 0..parents.len() {
        walked.clear();
        let mut at = Some(start);
        while let Some(node) = at.filter(|node| depths[*node] == 0 && walked.len() <= MAX_DEPTH) {
            walked.push(node);
            at = parents[node];
        }
        let mut depth = at.map_or(0, |node| depths[node]);
        for &node in walked.iter().rev() {
            depth += 1;
            depths[node] = depth;
        }
        if depth > MAX_DEPTH {
            return Err(broken(start, format!("it is its own ancestor, or has more than {MAX_DEPTH} above it")));
        }
    }
    Ok(parents)
}

/// The nodes below these, parents before children, each once.
fn order(path: &Path, root: &Root, roots: &[usize]) -> Result<Vec<usize>, FileError> {
    let mut order = Vec::new();
    let mut seen = vec![false; root.nodes.len()];
    let mut stack: Vec<usize> = roots.iter().rev().copied().collect();
    while let Some(i) = stack.pop() {
        if std::mem::replace(&mut seen[i], true) {
            return Err(FileError::new("file/hierarchy", path, "it is in the scene twice", "export the file again")
                .at(format!("nodes[{i}]")));
        }
        order.push(i);
        stack.extend(root.nodes[i].children.iter().rev());
    }
    Ok(order)
}

fn part(path: &Path, i: usize, node: &Node) -> Result<Part, FileError> {
    let wrong =
        |what: &str| FileError::new("file/number", path, what, "correct its transform").at(format!("nodes[{i}]"));
    if let Some(m) = node.matrix {
        let matrix = DAffine3::from_mat4(DMat4::from_cols_array(&m));
        let plain = m[3] == 0.0 && m[7] == 0.0 && m[11] == 0.0 && m[15] == 1.0;
        if !plain || !matrix.is_finite() {
            return Err(wrong("its matrix does not end in the row 0 0 0 1, or is not finite"));
        }
        // A matrix of scale, rotation and translation is one: then clips and bakes can change it.
        return Ok(steps(matrix).unwrap_or(Part::Matrix(matrix)));
    }
    let translation = DVec3::from(node.translation.unwrap_or_default());
    let q = node.rotation.unwrap_or([0.0, 0.0, 0.0, 1.0]);
    let rotation = DQuat::from_array(q);
    let scale = DVec3::from(node.scale.unwrap_or([1.0; 3]));
    let length = rotation.length();
    if !(translation.is_finite() && scale.is_finite() && length.is_finite() && (length - 1.0).abs() < 0.1) {
        return Err(wrong("its translation, rotation or scale is not finite, or its rotation is not of length 1"));
    }
    Ok(Part::Steps { translation, rotation: rotation.normalize(), scale })
}

/// The matrix as scale, rotation and translation, if it is one to rounding.
fn steps(matrix: DAffine3) -> Option<Part> {
    let (scale, rotation, translation) = matrix.to_scale_rotation_translation();
    let back = DAffine3::from_scale_rotation_translation(scale, rotation, translation);
    let size = matrix.matrix3.to_cols_array().iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let same = (0..9).all(|k| {
        (back.matrix3.to_cols_array()[k] - matrix.matrix3.to_cols_array()[k]).abs() <= 1e-5 * size // digits in a file
    });
    (same && rotation.is_finite() && scale.is_finite()).then_some(Part::Steps { translation, rotation, scale })
}

/// A name for each node, told apart by numbers where the file has none or repeats one.
fn names(root: &Root) -> Vec<String> {
    let mut used = std::collections::HashSet::new();
    let plain = root.nodes.iter().enumerate().map(|(i, node)| match &node.name {
        Some(name) if !name.is_empty() => name.chars().take(200).collect(),
        _ => format!("node {i}"),
    });
    plain
        .enumerate()
        .map(|(i, name): (usize, String)| {
            let name = if used.contains(&name) { format!("{name} ({i})") } else { name };
            used.insert(name.clone());
            name
        })
        .collect()
}

/// The rotation nearest to a matrix that may also scale, shear and mirror; `None` when it flattens.
///
/// By the iteration `R ← ½ (R + R⁻ᵀ)`, which converges quadratically to the polar factor.
pub(crate) fn rigid(matrix: DMat3) -> Option<DQuat> {
    let size = matrix.to_cols_array().iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if !(size.is_finite() && size > 1e-12) {
        return None;
    }
    let mut r = matrix * (1.0 / size);
    if r.determinant() < 0.0 {
        r = DMat3::from_cols(-r.x_axis, r.y_axis, r.z_axis);
    }
    if r.determinant() < 1e-9 {
        return None;
    }
    for _ in 0..60 {
        let next = (r + r.inverse().transpose()) * 0.5;
        let change = (next - r).to_cols_array().iter().fold(0.0f64, |most, x| most.max(x.abs()));
        r = next;
        if change < 1e-14 {
            break;
        }
    }
    let rotation = DQuat::from_mat3(&r).normalize();
    rotation.is_finite().then_some(rotation)
}
