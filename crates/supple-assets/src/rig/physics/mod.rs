//! Physics that a file itself holds, `KHR_physics_rigid_bodies` with `KHR_implicit_shapes`, read as a rig.
//!
//! Nodes with `motion` are the bodies; colliders below them their shapes, others obstacles.

mod joints;
mod parts;
mod solids;

use super::build::centre_and_inertia;
use super::fit::{self, eigen};
use super::plan::Plan;
use super::{Bone, BoneShape, Class, DENSITY, Given, JointFrom, Loop, Rig, Spread, SpringFrom, Turn, UNDER, names};
use super::{nearest, parents_first, sample, size};
use crate::gltf::{Clip, Document, Reader, SkinnedMesh, rigid};
use crate::{FileError, Note};
use glam::{DMat3, DQuat, DVec3};
use parts::{MotionPart, NodePart, RootPart, ShapeList, ShapePart};
use serde::de::DeserializeOwned;
use serde_json::Value;
use solids::Placed;
use std::collections::BTreeSet;
use supple::maths::rotation;
use supple::{Material, ObstacleShape, ObstacleSpec, Pose, Range, Twist};

const EXTENSION: &str = "KHR_physics_rigid_bodies";

/// The extension of a file.
struct Physics<'a> {
    document: &'a Document,
    /// What all meshes together may unfold to is bounded.
    reader: Reader<'a>,
    root: RootPart,
    shapes: Vec<ShapePart>,
    /// By node.
    nodes: Vec<NodePart>,
    /// By node: whether it is part of a body that moves.
    moving: Vec<bool>,
    notes: Vec<Note>,
}

/// The rig that a file itself holds; `None`: no node of it moves by physics.
pub(super) fn make(document: &Document, meshes: &[SkinnedMesh], clips: &[Clip]) -> Result<Option<Rig>, FileError> {
    let mut physics = Physics::read(document)?;
    let moves = |part: &NodePart| part.motion.as_ref().is_some_and(|m| !m.is_kinematic && m.mass != Some(0.0));
    let nodes: Vec<usize> = document.order.iter().copied().filter(|n| moves(&physics.nodes[*n])).collect();
    if nodes.is_empty() {
        return Ok(None);
    }
    let mut bone_at = vec![None; document.parents.len()];
    for (i, node) in nodes.iter().enumerate() {
        bone_at[*node] = Some(i);
    }
    // A node with motion of its own is no part of one above, and what only the file moves stands still.
    let owner = nearest(&document.order, &document.parents, |node| physics.nodes[node].motion.is_some());
    let bone_of_node: Vec<Option<usize>> = owner.iter().map(|o| o.and_then(|node| bone_at[node])).collect();

    physics.moving = bone_of_node.iter().map(Option::is_some).collect();

    let mut bones = Vec::with_capacity(nodes.len());
    let skinned: BTreeSet<usize> = document.root().skins.iter().flat_map(|skin| skin.joints.iter().copied()).collect();
    for &node in &nodes {
        let mut bone = physics.bone(node);
        // Parts of a character stand until they are let go; other things fall.
        bone.held = skinned.contains(&node);
        bones.push(bone);
    }
    let mut filters: Vec<Option<usize>> = vec![None; bones.len()];
    let mut obstacles = Vec::new();
    for &node in &document.order {
        let Some(collider) = physics.nodes[node].collider.take() else { continue };
        let Some(Placed { shape, place }) = physics.solid(node, &collider)? else { continue };
        let material = physics.material(node, &collider)?;
        let filter = physics.filter(node, &collider)?;
        match (bone_of_node[node], shape) {
            (Some(bone), ObstacleShape::Solid(shape)) => {
                let link_from_shape = bones[bone].link.inverse().then(place);
                bones[bone].shapes.push(BoneShape { shape, link_from_shape });
                if let Some(material) = material {
                    bones[bone].material = material;
                }
                filters[bone] = filters[bone].or(filter);
            }
            (Some(_), _) => physics.note(node, "a plane cannot be part of a body: left out"),
            (None, shape) => {
                let spec = ObstacleSpec::new(&document.names[node], shape).pose(place);
                let spec = spec.material(material.unwrap_or_default());
                obstacles.push((spec, filter));
            }
        }
    }
    for (bone, &node) in bones.iter_mut().zip(&nodes) {
        physics.weigh(bone, node)?;
    }
    let mut rig = Rig {
        floor: None,
        obstacles: Vec::new(),
        loops: Vec::new(),
        apart: physics.apart(&filters),
        bones,
        bone_of_node,
        height: size(meshes),
        plan: Plan::default(),
        made: Vec::new(),
        clips: Vec::new(),
        notes: Vec::new(),
    };
    physics.obstacles(obstacles, &filters, &mut rig);
    let joints = physics.joints(&rig)?;
    hang(&mut rig, joints);
    if rig.obstacles.is_empty() {
        let vertices = meshes.iter().flat_map(|m| &m.vertices).map(|v| v.y).fold(f64::INFINITY, f64::min);
        let shapes = rig
            .bones
            .iter()
            .flat_map(|b| b.shapes.iter().map(|s| fit::lowest(&s.shape, &b.link.then(s.link_from_shape))));
        let lowest = shapes.fold(vertices, f64::min);
        rig.floor = lowest.is_finite().then_some(lowest - UNDER * size(meshes).max(1.0));
    }
    // Vertices that no body carries go with the first root.
    for (node, bone) in rig.bone_of_node.iter_mut().enumerate() {
        if bone.is_none() && skinned.contains(&node) {
            *bone = Some(0);
        }
    }
    let mut notes = physics.notes;
    rig.clips = sample(document, &rig.bones, clips, &mut notes)?;
    rig.notes = notes;
    rig.made = rig.bones.iter().map(|bone| bone.mass).collect();
    rig.tell_springs();
    Ok(Some(rig))
}

fn part<T: DeserializeOwned + Default>(
    document: &Document,
    value: Option<&Value>,
    place: String,
) -> Result<T, FileError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(T::default()) };
    T::deserialize(value).map_err(|e| {
        let remedy = "see the text of KHR_physics_rigid_bodies, or take the extension out";
        FileError::new("file/physics", &document.path, format!("it is not as the extension has it: {e}"), remedy)
            .at(place)
    })
}

impl<'a> Physics<'a> {
    fn read(document: &'a Document) -> Result<Physics<'a>, FileError> {
        let extensions = &document.root().extensions;
        let place = |name: &str| format!("extensions.{name}");
        let root = part(document, extensions.get(EXTENSION), place(EXTENSION))?;
        let shapes = "KHR_implicit_shapes";
        let list: ShapeList = part(document, extensions.get(shapes), place(shapes))?;
        let nodes = document.root().nodes.iter().enumerate();
        let nodes = nodes.map(|(i, node)| part(document, node.extensions.get(EXTENSION), format!("nodes[{i}]")));
        let nodes = nodes.collect::<Result<Vec<NodePart>, _>>()?;
        let mut physics = Physics {
            document,
            reader: document.reader(),
            root,
            shapes: list.shapes,
            nodes,
            moving: Vec::new(),
            notes: Vec::new(),
        };
        for &node in &document.order {
            let told = physics.nodes[node].motion.as_ref().filter(|m| m.is_kinematic);
            if told.is_some_and(|m| m.linear_velocity != [0.0; 3] || m.angular_velocity != [0.0; 3]) {
                physics.note(node, "a kinematic body stands still here: its velocity is left out");
            }
            if physics.nodes[node].trigger.is_some() {
                physics.note(node, "a trigger sets off nothing here: left out");
            }
        }
        Ok(physics)
    }

    fn note(&mut self, node: usize, text: impl Into<String>) {
        self.notes.push(Note { code: "import/physics", part: self.document.names[node].clone(), text: text.into() });
    }

    fn missing(&self, node: usize, kind: &str, index: usize, count: usize) -> FileError {
        let what = format!("there is no {kind} {index}: the file has {count}");
        FileError::new("file/physics", &self.document.path, what, "export the file again").at(format!("nodes[{node}]"))
    }

    /// Place and scale of a node.
    fn place(&self, node: usize) -> (Pose, DVec3) {
        let world = self.document.world[node];
        let scale = DVec3::new(world.x_axis.length(), world.y_axis.length(), world.z_axis.length());
        (Pose::new(rigid(world.matrix3).unwrap_or(DQuat::IDENTITY), world.translation), scale)
    }

    /// The bone of a node with motion, without its shapes, mass and joint.
    fn bone(&mut self, node: usize) -> Bone {
        let (link, _) = self.place(node);
        let motion = self.nodes[node].motion.as_ref();
        let vector = |read: fn(&MotionPart) -> [f64; 3]| link.rotation * motion.map_or(DVec3::ZERO, |m| read(m).into());
        let velocity = Twist::new(vector(|m| m.linear_velocity), vector(|m| m.angular_velocity));
        if motion.and_then(|m| m.gravity_factor).is_some_and(|f| f != 1.0) {
            self.note(node, "its gravityFactor is taken as 1: gravity is the same for all");
        }
        Bone {
            name: self.document.names[node].clone(),
            node,
            parent: None,
            class: names::class(&self.document.names[node], None),
            link,
            shapes: Vec::new(),
            mass: 0.0,
            spread: None,
            material: Material::default(),
            collides_with: u32::MAX,
            velocity,
            joint: Turn::Hinge { axis: DVec3::X, range: Range::new(0.0, 0.0) },
            joint_from: JointFrom::Nothing,
            spring_from: SpringFrom::File,
            sag: super::sag(Class::Unknown),
            settle: super::SETTLE,
            strength: 1.0,
            held: false,
            sways: false,
            swing: None,
        }
    }

    /// Mass and inertia: as told, else those of the shapes, filled with water.
    fn weigh(&mut self, bone: &mut Bone, node: usize) -> Result<(), FileError> {
        let motion = self.nodes[node].motion.take().unwrap_or_default();
        let solids = bone.shapes.iter().filter_map(|s| s.shape.solid().ok());
        let volume: f64 = solids.map(|s| s.volume).sum();
        bone.mass = motion.mass.unwrap_or(DENSITY * volume);
        if !(bone.mass > 0.0 && bone.mass < 1e12) {
            bone.mass = 1.0;
            self.note(node, "it has neither a mass nor a shape: 1 kg");
        }
        let world = self.document.world[node];
        let told_centre =
            motion.center_of_mass.map(|c| bone.link.inverse().transform_point(world.transform_point3(c.into())));
        let by_shapes = centre_and_inertia(bone);
        let inertia = match motion.inertia_diagonal {
            Some(moments) => {
                // Zero stands for infinite: as hard to turn as nothing else of the body is.
                let most = moments.iter().copied().fold(0.0, f64::max).max(bone.mass);
                if moments.contains(&0.0) {
                    self.note(
                        node,
                        "a moment of inertia of 0 stands for an infinite one: taken as a thousand times the largest",
                    );
                }
                let moments = moments.map(|m| if m == 0.0 { 1e3 * most } else { m });
                let turn = motion.inertia_orientation.map_or(DQuat::IDENTITY, DQuat::from_array);
                let turn = if turn.length() > 1e-6 { turn.normalize() } else { DQuat::IDENTITY };
                rotation::turned_inertia(turn, DMat3::from_diagonal(moments.into()))
            }
            None => by_shapes.1,
        };
        let (moments, _) = eigen(inertia);
        if !(inertia.is_finite() && moments.z > 0.0) {
            let what = "its inertia is not that of a body";
            let remedy = "give three positive moments, none larger than the other two together";
            return Err(FileError::new("file/physics", &self.document.path, what, remedy).at(format!("nodes[{node}]")));
        }
        if motion.inertia_diagonal.is_some() || told_centre.is_some() {
            let centre = told_centre.unwrap_or(by_shapes.0);
            bone.spread = Some(Spread { centre, inertia: inertia * (1.0 / bone.mass) });
        }
        Ok(())
    }
}

/// A joint as it stands in the file: b against a, either of them the world.
struct FileJoint {
    name: String,
    a: Option<usize>,
    b: Option<usize>,
    joint: Given,
}

/// Hangs the bones on each other: from those that hang on the world outwards, then from the first of each loose group. Joints left over close loops.
fn hang(rig: &mut Rig, joints: Vec<FileJoint>) {
    let n = rig.bones.len();
    let mut touching: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (k, joint) in joints.iter().enumerate() {
        for side in [joint.a, joint.b].into_iter().flatten() {
            touching[side].push(k);
        }
    }
    let mut reached = vec![false; n];
    let mut used = vec![false; joints.len()];
    let with_child = |joint: &FileJoint, child: usize| match joint.b == Some(child) {
        true => joint.joint,
        false => joint.joint.flipped(),
    };
    // On the world; then those that are on no joint's second side; then any.
    let to_world = joints.iter().enumerate().filter(|(_, j)| j.a.is_none() || j.b.is_none());
    let mut starts: Vec<(usize, Option<usize>)> = Vec::new();
    for (k, joint) in to_world {
        starts.extend(joint.a.or(joint.b).map(|bone| (bone, Some(k))));
    }
    let mut second = vec![false; n];
    joints.iter().filter_map(|j| j.b).for_each(|b| second[b] = true);
    starts.extend((0..n).filter(|bone| !second[*bone]).chain(0..n).map(|bone| (bone, None)));
    for (start, to_world) in starts {
        if reached[start] {
            continue;
        }
        reached[start] = true;
        if let Some(k) = to_world {
            used[k] = true;
            rig.bones[start].joint = Turn::Given(with_child(&joints[k], start));
            rig.bones[start].joint_from = JointFrom::File;
        }
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(bone) = queue.pop_front() {
            for &k in &touching[bone] {
                let (Some(a), Some(b)) = (joints[k].a, joints[k].b) else { continue };
                let next = if a == bone { b } else { a };
                if used[k] || reached[next] {
                    continue;
                }
                (reached[next], used[k]) = (true, true);
                rig.bones[next].parent = Some(bone);
                rig.bones[next].joint = Turn::Given(with_child(&joints[k], next));
                rig.bones[next].joint_from = JointFrom::File;
                rig.bones[next].held = false;
                queue.push_back(next);
            }
        }
    }
    for (k, joint) in joints.iter().enumerate().filter(|(k, _)| !used[*k]) {
        let Some(child) = joint.b.or(joint.a) else { continue };
        let parent = if joint.b == Some(child) { joint.a } else { joint.b };
        debug_assert!(!used[k]);
        rig.loops.push(Loop { name: format!("loop {}", joint.name), child, parent, joint: with_child(joint, child) });
    }
    // Parents first.
    let parents: Vec<Option<usize>> = rig.bones.iter().map(|b| b.parent).collect();
    let order = parents_first(&parents);
    let mut place_of = vec![0; n];
    order.iter().enumerate().for_each(|(new, old)| place_of[*old] = new);
    let mut bones: Vec<Option<Bone>> = rig.bones.drain(..).map(Some).collect();
    for old in order {
        let Some(mut bone) = bones[old].take() else { continue };
        bone.parent = bone.parent.map(|p| place_of[p]);
        let above = bone.parent.map(|p: usize| rig.bones[p].class);
        bone.class = names::class(&bone.name, above);
        rig.bones.push(bone);
    }
    rig.bone_of_node.iter_mut().flatten().for_each(|bone| *bone = place_of[*bone]);
    rig.apart.iter_mut().for_each(|(a, b)| (*a, *b) = (place_of[*a], place_of[*b]));
    rig.loops.iter_mut().for_each(|l| (l.child, l.parent) = (place_of[l.child], l.parent.map(|p| place_of[p])));
}
