//! What a VRM avatar tells of itself, 1.0 (`VRMC_vrm`, `VRMC_springBone`) and 0.x (`VRM`): which node is which part of the body, and which chains of nodes
//! are hair, ears or clothes that spring.

use super::document::Document;
use super::schema::Root;
use crate::{Class, FileError, Note};
use glam::DVec3;
use serde_json::Value;
use std::path::Path;

/// A chain of nodes that springs back to its pose, as the author of an avatar set it. Units are the file's.
#[derive(Clone, Debug, PartialEq)]
pub struct SpringChain {
    /// Its name in the file.
    pub name: String,
    /// From the node that it hangs on outwards; the last may have no joint after it.
    pub joints: Vec<SpringJoint>,
    /// What it does not pass through: indices into [`Springs::colliders`].
    pub colliders: Vec<usize>,
    /// The node in whose frame it swings; `None`: the world.
    pub center: Option<usize>,
}

/// A node of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpringJoint {
    /// Its index in the file.
    pub node: usize,
    /// Its size against colliders.
    pub hit_radius: f64,
    /// How strongly it goes back to its pose; 1 is usual.
    pub stiffness: f64,
    /// How strongly it is pulled along `gravity_dir`.
    pub gravity_power: f64,
    /// A direction in the world.
    pub gravity_dir: DVec3,
    /// What part of its speed it loses, from 0 to 1.
    pub drag_force: f64,
}

/// A shape that chains do not pass through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpringCollider {
    /// The node that carries it.
    pub node: usize,
    /// Its centre, or where its axis begins, in the frame of the node.
    pub offset: DVec3,
    /// Where its axis ends; `None`: a sphere.
    pub tail: Option<DVec3>,
    /// Its radius.
    pub radius: f64,
}

/// What springs on an avatar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Springs {
    /// Hair, ears, clothes.
    pub chains: Vec<SpringChain>,
    /// What they touch.
    pub colliders: Vec<SpringCollider>,
    /// Nodes and colliders of all chains.
    parts: usize,
}

/// Most chains that are read, and most nodes and colliders of all of them: each may name long groups again, by a few bytes.
const MOST_SPRINGS: usize = 10_000;
const MOST_PARTS: usize = 200_000;

impl Springs {
    /// Adds a chain.
    fn add(&mut self, chain: SpringChain) -> Result<(), String> {
        self.parts += chain.joints.len() + chain.colliders.len();
        self.chains.push(chain);
        if self.chains.len() > MOST_SPRINGS || self.parts > MOST_PARTS {
            return Err(format!("there are more than {MOST_SPRINGS} of them, or {MOST_PARTS} nodes and colliders"));
        }
        Ok(())
    }
}

/// The bones of a human that a file tells, with their nodes.
fn told_bones(extensions: &Value) -> Vec<(&str, usize)> {
    // 1.0: an object by bone; 0.x: a list.
    let avatar = extensions.pointer("/VRMC_vrm/humanoid/humanBones");
    match avatar.or(extensions.pointer("/VRMC_vrm_animation/humanoid/humanBones")) {
        Some(Value::Object(bones)) => {
            bones.iter().filter_map(|(bone, value)| Some((&**bone, index(value.get("node"))?))).collect()
        }
        _ => {
            let bones = extensions.pointer("/VRM/humanoid/humanBones").and_then(Value::as_array).into_iter().flatten();
            bones.filter_map(|v| Some((v["bone"].as_str().unwrap_or_default(), index(v.get("node"))?))).collect()
        }
    }
}

/// Refuses bones of a human that name nodes which the file does not have, as every other reference to one is refused.
pub(super) fn check_bones(path: &Path, root: &Root) -> Result<(), FileError> {
    let nodes = root.nodes.len();
    match told_bones(&root.extensions).into_iter().find(|(_, node)| *node >= nodes) {
        None => Ok(()),
        Some((bone, node)) => {
            let what = format!("its bone \"{bone}\" names node {node}, and the file has {nodes}");
            Err(FileError::new("file/vrm", path, what, "export the avatar again").at("human bones"))
        }
    }
}

fn number(value: &Value, key: &str, other: f64) -> f64 {
    value.get(key).and_then(Value::as_f64).filter(|x| x.is_finite()).unwrap_or(other)
}

/// A vector as a list (1.0) or as x, y and z (0.x).
fn vector(value: Option<&Value>, other: DVec3) -> DVec3 {
    match value {
        Some(Value::Array(list)) if list.len() == 3 => {
            DVec3::from_array(std::array::from_fn(|k| list[k].as_f64().unwrap_or(0.0)))
        }
        Some(Value::Object(_)) => {
            DVec3::from_array(["x", "y", "z"].map(|k| number(value.unwrap_or(&Value::Null), k, 0.0)))
        }
        _ => other,
    }
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn index(value: Option<&Value>) -> Option<usize> {
    value.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

impl Document {
    /// By node: what the file says that it is.
    pub(crate) fn humanoid(&self) -> Vec<Option<Class>> {
        self.human_bones().iter().map(|bone| bone.as_deref().and_then(class)).collect()
    }

    /// By node: its name as a bone of a human, as an avatar or a motion for avatars tells it.
    pub(crate) fn human_bones(&self) -> Vec<Option<String>> {
        let mut told = vec![None; self.parents.len()];
        for (bone, node) in told_bones(&self.root().extensions) {
            told[node] = Some(bone.to_owned());
        }
        told
    }

    /// The springs that an avatar has. What they name must be there.
    pub(crate) fn springs(&self) -> Result<Springs, FileError> {
        let extensions = &self.root().extensions;
        let springs = match (extensions.get("VRMC_springBone"), extensions.pointer("/VRM/secondaryAnimation")) {
            (Some(told), _) => springs_of_1(told),
            (None, Some(told)) => self.springs_of_0(told),
            (None, None) => return Ok(Springs::default()),
        };
        let wrong = |what: String| {
            FileError::new("file/vrm", &self.path, what, "export the avatar again, or take its spring bones out")
                .at("spring bones")
        };
        let springs = springs.map_err(wrong)?;
        let nodes = self.parents.len();
        let joints = || springs.chains.iter().flat_map(|chain| &chain.joints);
        let named = joints().map(|j| j.node).chain(springs.colliders.iter().map(|c| c.node));
        let named = named.chain(springs.chains.iter().filter_map(|chain| chain.center));
        if let Some(node) = named.into_iter().find(|node| *node >= nodes) {
            return Err(wrong(format!("they name node {node}, and the file has {nodes}")));
        }
        if let Some(k) = springs.chains.iter().flat_map(|c| &c.colliders).find(|k| **k >= springs.colliders.len()) {
            return Err(wrong(format!("they name collider {k}, and the file has {}", springs.colliders.len())));
        }
        Ok(springs)
    }

    /// The chains of 0.x begin at the nodes that are named, and go on to the end of each branch.
    fn springs_of_0(&self, told: &Value) -> Result<Springs, String> {
        let mut springs = Springs::default();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for group in list(told, "colliderGroups") {
            let node = index(group.get("node")).ok_or("a group of colliders names no node")?;
            let mut own = Vec::new();
            for collider in list(group, "colliders") {
                own.push(springs.colliders.len());
                // 0.x has Z the other way round here.
                let offset = vector(collider.get("offset"), DVec3::ZERO) * DVec3::new(1.0, 1.0, -1.0);
                let radius = number(collider, "radius", 0.0);
                springs.colliders.push(SpringCollider { node, offset, tail: None, radius });
            }
            groups.push(own);
        }
        for group in list(told, "boneGroups") {
            let colliders = group_members(group, &groups)?;
            let joint = |node: usize| SpringJoint {
                node,
                hit_radius: number(group, "hitRadius", 0.0),
                stiffness: number(group, "stiffiness", 1.0), // as the format spells it
                gravity_power: number(group, "gravityPower", 0.0),
                gravity_dir: vector(group.get("gravityDir"), DVec3::NEG_Y),
                drag_force: number(group, "dragForce", 0.5),
            };
            let center = index(group.get("center")).filter(|node| *node < self.parents.len());
            for bone in list(group, "bones") {
                let bone = index(Some(bone)).filter(|bone| *bone < self.parents.len());
                let mut ends = vec![vec![bone.ok_or("a spring names a node that is not there")?]];
                while let Some(mut chain) = ends.pop() {
                    let last = chain[chain.len() - 1];
                    let children = &self.root().nodes[last].children;
                    for other in children.iter().skip(1) {
                        ends.push(vec![last, *other]);
                    }
                    if let Some(first) = children.first() {
                        chain.push(*first);
                        ends.push(chain);
                        continue;
                    }
                    let name = group["comment"].as_str().unwrap_or_default().to_owned();
                    let joints = chain.into_iter().map(joint).collect();
                    springs.add(SpringChain { name, joints, colliders: colliders.clone(), center })?;
                }
            }
        }
        Ok(springs)
    }

    /// What is read of an avatar and not simulated.
    pub(crate) fn vrm_notes(&self, springs: &Springs) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut note = |code, part: &str, text: String| notes.push(Note { code, part: part.into(), text });
        if !springs.chains.is_empty() {
            let joints: usize = springs.chains.iter().map(|chain| chain.joints.len()).sum();
            let text = format!(
                "its {} spring chains ({joints} nodes, {} colliders) are made springs of joints that do the same at any frame rate; they swing in the world",
                springs.chains.len(),
                springs.colliders.len()
            );
            note("import/spring", "spring bones", text);
        }
        let constrained = self.root().nodes.iter().filter(|node| node.extensions.get("VRMC_node_constraint").is_some());
        let constrained = constrained.count();
        if constrained > 0 {
            let text = format!(
                "{constrained} nodes are bound to others by constraints, which stay in the file and are not simulated"
            );
            note("import/constraint", "nodes", text);
        }
        notes
    }
}

/// The colliders of the groups that a spring names.
fn group_members(spring: &Value, groups: &[Vec<usize>]) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for group in list(spring, "colliderGroups") {
        let group = index(Some(group)).and_then(|k| groups.get(k));
        all.extend(group.ok_or("a spring names a group of colliders that is not there")?);
        if all.len() > MOST_PARTS {
            return Err(format!("one of them names more than {MOST_PARTS} colliders"));
        }
    }
    Ok(all)
}

fn springs_of_1(told: &Value) -> Result<Springs, String> {
    let mut springs = Springs::default();
    for collider in list(told, "colliders") {
        let node = index(collider.get("node")).ok_or("a collider names no node")?;
        let sphere = collider.pointer("/shape/sphere");
        let shape = sphere.or(collider.pointer("/shape/capsule")).ok_or("a collider is neither sphere nor capsule")?;
        let offset = vector(shape.get("offset"), DVec3::ZERO);
        let tail = sphere.is_none().then(|| vector(shape.get("tail"), DVec3::ZERO));
        springs.colliders.push(SpringCollider { node, offset, tail, radius: number(shape, "radius", 0.0) });
    }
    let mut groups = Vec::new();
    for group in list(told, "colliderGroups") {
        let members = list(group, "colliders").map(|k| index(Some(k)).ok_or("a group names no collider"));
        groups.push(members.collect::<Result<Vec<_>, _>>()?);
    }
    for spring in list(told, "springs") {
        let mut joints = Vec::new();
        for joint in list(spring, "joints") {
            joints.push(SpringJoint {
                node: index(joint.get("node")).ok_or("a joint of a spring names no node")?,
                hit_radius: number(joint, "hitRadius", 0.0),
                stiffness: number(joint, "stiffness", 1.0),
                gravity_power: number(joint, "gravityPower", 0.0),
                gravity_dir: vector(joint.get("gravityDir"), DVec3::NEG_Y),
                drag_force: number(joint, "dragForce", 0.5),
            });
        }
        let name = spring["name"].as_str().unwrap_or_default().to_owned();
        let colliders = group_members(spring, &groups)?;
        springs.add(SpringChain { name, joints, colliders, center: index(spring.get("center")) })?;
    }
    Ok(springs)
}

/// The class of a human bone by its name in the format; jaw and eyes are parts of the head.
fn class(bone: &str) -> Option<Class> {
    let part = bone.strip_prefix("left").or(bone.strip_prefix("right")).unwrap_or(bone);
    Some(match part {
        "hips" => Class::Pelvis,
        "spine" | "chest" | "upperChest" => Class::Spine,
        "neck" => Class::Neck,
        "head" => Class::Head,
        "Shoulder" => Class::Clavicle,
        "UpperArm" => Class::UpperArm,
        "LowerArm" => Class::Forearm,
        "Hand" => Class::Hand,
        "UpperLeg" => Class::Thigh,
        "LowerLeg" => Class::Calf,
        "Foot" => Class::Foot,
        "Toes" => Class::Toe,
        "ThumbMetacarpal" | "IndexProximal" | "MiddleProximal" | "RingProximal" | "LittleProximal" => Class::FingerBase,
        _ if part.ends_with("Proximal") || part.ends_with("Intermediate") || part.ends_with("Distal") => Class::Finger,
        _ => return None,
    })
}
