//! The physical rig of a character, made from its skeleton, its skin and its clips: which bones are bodies, their shapes and masses, how
//! their joints turn, how stiff they are. Everything made here is a plain list of [`Bone`]s, which scene files and the studio change
//! before a model is built of them.

mod build;
pub(crate) mod fit;
mod joints;
mod limits;
mod names;
mod physics;
mod springs;

pub use names::Class;

use crate::gltf::{Clip, Document, SkinnedMesh, rigid};
use crate::{FileError, Note};
use glam::{DAffine3, DMat3, DQuat, DVec3};
use names::Side;
use supple::model::ServoTarget;
use supple::model::joint::RotationKind;
use supple::{
    JointMask, Limits, Material, Motor, ObstacleSpec, Pose, Range, RotationSpring, Shape, SlideSpring, SwingEllipse,
    Twist,
};

/// The plan of a character's physics.
#[derive(Clone, Debug)]
pub struct Rig {
    /// Parents before children.
    pub bones: Vec<Bone>,
    /// The height of the floor \[m\]; `None`: there is none.
    pub floor: Option<f64>,
    /// What stands around.
    pub obstacles: Vec<ObstacleSpec>,
    /// Joints that close loops; only physics of a file has any.
    pub(crate) loops: Vec<Loop>,
    /// Pairs of bones that do not touch each other, by filters of the file.
    pub(crate) apart: Vec<(usize, usize)>,
    /// By node of the file: the bone that carries it, if any.
    pub(crate) bone_of_node: Vec<Option<usize>>,
    /// The clips as poses of the bones' frames.
    pub(crate) clips: Vec<Sampled>,
    /// What was changed, guessed or left out.
    pub notes: Vec<Note>,
}

/// A bone that becomes a body.
#[derive(Clone, Debug)]
pub struct Bone {
    /// The name of its node.
    pub name: String,
    /// Its node in the file.
    pub node: usize,
    /// The bone it hangs on; a root has none.
    pub parent: Option<usize>,
    /// What it is.
    pub class: Class,
    /// Its frame in the world at rest: the origin of its node, where its joint is.
    pub link: Pose,
    /// Its shapes: one that was fitted, or those that the file gives.
    pub shapes: Vec<BoneShape>,
    /// \[kg\]
    pub mass: f64,
    /// Where its mass is; `None`: that of its shapes.
    pub spread: Option<Spread>,
    /// How its surface rubs and bounces.
    pub material: Material,
    /// The groups of obstacles that it touches, a bit each.
    pub(crate) collides_with: u32,
    /// At the start; linear part that of its centre of mass.
    pub velocity: Twist,
    /// How it turns on its parent.
    pub joint: Turn,
    /// Where the joint's kind and limits come from.
    pub joint_from: JointFrom,
    /// Whether its spring is made from `sag` and `settle`, or that of the file.
    pub spring_from: SpringFrom,
    /// How far the joint gives way under the weight of all it carries, held level \[rad\].
    pub sag: f64,
    /// How long it takes to come to rest, turned aside alone and let go: until 2 % of the swing is left \[s\].
    pub settle: f64,
    /// How strongly it follows a clip; 1 is the default, 0 not at all.
    pub strength: f64,
    /// Of a root: whether a spring holds it where it is until it is let go.
    pub held: bool,
}

/// A shape and its place in the frame of a bone.
#[derive(Clone, Debug, PartialEq)]
pub struct BoneShape {
    /// The shape.
    pub shape: Shape,
    /// Its frame in the bone's.
    pub link_from_shape: Pose,
}

/// Where the mass of a bone is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// In the bone's frame \[m\].
    pub centre: DVec3,
    /// About the centre, in the bone's axes, for each kilogram \[m²\].
    pub inertia: DMat3,
}

/// Where the spring of a joint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpringFrom {
    /// Sag and settling time.
    Asked,
    /// Physics that the file itself holds; sag and settling time tell what it does.
    File,
}

/// How a bone turns on its parent. Frames are in the world at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // bones are few
pub enum Turn {
    /// About one axis.
    Hinge {
        /// Unit vector.
        axis: DVec3,
        /// From rest \[rad\].
        range: Range,
    },
    /// About all three.
    Ball {
        /// X along the bone; bending turns it about Z towards Y.
        frame: DQuat,
        /// The middle of the range of bending \[rad\].
        middle: f64,
        /// How far it swings from there.
        swing: SwingEllipse,
        /// About the bone \[rad\].
        twist: Range,
    },
    /// As the physics of the file has it; of a root: on the world.
    Given(Given),
}

/// A joint as the physics of a file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// What it holds.
    pub mask: JointMask,
    /// Its frame on the bone, in the bone's.
    pub child: Pose,
    /// Its frame on the parent, in the parent's; in the world without one.
    pub parent: Pose,
    /// The child's frame seen from the parent's at rest.
    pub at_rest: DQuat,
    /// Its limits, in its own frames.
    pub limits: Limits,
    /// Spring of its rotations.
    pub spring: RotationSpring,
    /// Spring of its translations.
    pub slide: SlideSpring,
    /// Its motor and what it aims at.
    pub motor: Option<(Motor, ServoTarget)>,
    /// Whether the two bones touch each other.
    pub collide: bool,
}

/// A joint that closes a loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) name: String,
    pub(crate) child: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) joint: Given,
}

impl Given {
    /// The angle about X at rest \[rad\].
    pub(crate) fn angle_at_rest(&self) -> f64 {
        2.0 * self.at_rest.x.atan2(self.at_rest.w)
    }

    /// The same joint told from the other side.
    fn flipped(&self) -> Given {
        let turned = |range: Range| Range::new(-range.max, -range.min);
        let (mut limits, mut spring, mut slide) = (self.limits, self.spring, self.slide);
        (limits.angle, limits.slide) = (limits.angle.map(turned), limits.slide.map(turned));
        (spring.rest, spring.rest_turns) = (spring.rest.conjugate(), -spring.rest_turns);
        slide.rest = -slide.rest;
        let motor = self.motor.map(|(motor, target)| {
            let target = match target {
                ServoTarget::Position { position, rate } => ServoTarget::Position { position: -position, rate: -rate },
                ServoTarget::Rotation(q) => ServoTarget::Rotation(q.conjugate()),
                ServoTarget::Rate(rate) => ServoTarget::Rate(-rate),
            };
            (motor, target)
        });
        Given {
            child: self.parent,
            parent: self.child,
            at_rest: self.at_rest.conjugate(),
            limits,
            spring,
            slide,
            motor,
            ..*self
        }
    }
}

/// A bone as people see it: masses in kg, times in s, angles in degrees.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BoneTold {
    /// The name of its node.
    pub name: String,
    /// What it is.
    pub class: Class,
    /// \[kg\]
    pub mass: f64,
    /// `hinge`, `ball`, or what a joint of the file holds; `None`: it has none.
    pub joint: Option<String>,
    /// Where kind and limits come from.
    pub joint_from: JointFrom,
    /// Whether the spring is made from the two numbers below.
    pub spring_from: SpringFrom,
    /// How far it gives way, held level \[°\].
    pub sag: f64,
    /// How long it takes to come to rest \[s\].
    pub settle: f64,
    /// How strongly it follows a clip.
    pub strength: f64,
    /// Of a hinge, from rest \[°\].
    pub range: Option<[f64; 2]>,
    /// Of a ball: half angles sideways and bending \[°\].
    pub swing: Option<[f64; 2]>,
    /// Of a ball \[°\].
    pub twist: Option<[f64; 2]>,
}

impl Bone {
    /// The bone in the units that people use.
    pub fn told(&self) -> BoneTold {
        let degrees = f64::to_degrees;
        // JSON has no infinite ends: a range without them is told as none.
        let finite = |r: &Range| r.min.is_finite() && r.max.is_finite();
        let pair = |r: Range, rest: f64| [degrees(r.min - rest), degrees(r.max - rest)];
        let ellipse = |s: SwingEllipse| [degrees(s.about_y), degrees(s.about_z)];
        let (kind, range, swing, twist) = match &self.joint {
            Turn::Hinge { range, .. } => ("hinge".to_owned(), Some(pair(*range, 0.0)), None, None),
            Turn::Ball { swing, twist, .. } => {
                ("ball".to_owned(), None, Some(ellipse(*swing)), Some(*twist).filter(finite).map(|t| pair(t, 0.0)))
            }
            Turn::Given(joint) => {
                let (angle, name) = (joint.limits.angle.filter(finite), joint.mask.name());
                match self.axis() {
                    Some(_) => (name, angle.map(|r| pair(r, joint.angle_at_rest())), None, None),
                    None => (name, None, joint.limits.swing.map(ellipse), angle.map(|r| pair(r, 0.0))),
                }
            }
        };
        let joined = self.is_joined();
        BoneTold {
            name: self.name.clone(),
            class: self.class,
            mass: self.mass,
            joint: joined.then_some(kind),
            joint_from: self.joint_from,
            spring_from: self.spring_from,
            sag: degrees(self.sag),
            settle: self.settle,
            strength: self.strength,
            range: range.filter(|_| joined),
            swing: swing.filter(|_| joined),
            twist: twist.filter(|_| joined),
        }
    }

    /// Where its joint is in the world at rest \[m\].
    pub fn pivot(&self) -> DVec3 {
        match &self.joint {
            Turn::Given(joint) => self.link.transform_point(joint.child.translation),
            _ => self.link.translation,
        }
    }

    /// The one axis that its joint turns about, in the world at rest.
    pub fn axis(&self) -> Option<DVec3> {
        match &self.joint {
            Turn::Hinge { axis, .. } => Some(*axis),
            Turn::Ball { .. } => None,
            Turn::Given(joint) => match joint.mask.rotation() {
                RotationKind::Axis(k) => Some(self.link.rotation * joint.child.rotation * DVec3::AXES[k]),
                _ => None,
            },
        }
    }

    /// Whether its joint turns about all three axes.
    fn turns_all_ways(&self) -> bool {
        match &self.joint {
            Turn::Hinge { .. } => false,
            Turn::Ball { .. } => true,
            Turn::Given(joint) => joint.mask.rotation() == RotationKind::Free,
        }
    }

    /// Whether it is a root that hangs on the world by a joint.
    pub fn is_fixed(&self) -> bool {
        self.parent.is_none() && matches!(self.joint, Turn::Given(_))
    }

    /// Whether it has a joint.
    pub fn is_joined(&self) -> bool {
        self.parent.is_some() || self.is_fixed()
    }
}

/// Where the kind and the limits of a joint come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JointFrom {
    /// It has none: a root.
    Nothing,
    /// The name of the bone, recognised.
    Name,
    /// The name, widened to what the clips do.
    NameAndClips,
    /// What the clips do.
    Clips,
    /// The form of the bone.
    Shape,
    /// Physics that the file itself holds.
    File,
    /// A scene file, or the studio.
    Scene,
}

/// A clip as poses of the bones' frames, frame after frame.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    pub(crate) name: String,
    pub(crate) rate: f64,
    pub(crate) poses: Vec<Pose>,
}

/// Density of what no file tells \[kg/m³\]: that of a body that just floats.
pub(crate) const DENSITY: f64 = 1000.0;
/// How long a joint takes to come to rest, unless told otherwise \[s\].
const SETTLE: f64 = 0.5;
/// Frames per second of a resampled clip.
const CLIP_RATE: f64 = 60.0;
/// Nodes times frames that are sampled of all clips together.
const MAX_SAMPLES: usize = 8_000_000;
/// Bones smaller than this part of the character are merged.
const TINY: f64 = 0.004;

/// The floor is this far under the lowest vertex, as a part of the size of all that is larger than 1 m \[m\]: a character that is held does not touch it, one that is let go lands on it.
const UNDER: f64 = 0.01;

/// Makes the rig of a file.
pub(crate) fn make(document: &Document, meshes: &[SkinnedMesh], clips: &[Clip]) -> Result<Rig, FileError> {
    if let Some(rig) = physics::make(document, meshes, clips)? {
        return Ok(rig);
    }
    let mut notes = Vec::new();
    let candidates = candidates(document, meshes, clips)?;
    let size = size(meshes).max(1e-6);

    // What each candidate carries, before anything is merged.
    let carrier = nearest(document, |node| candidates[node]);
    let (loads, _) = fit::shares(meshes, document.parents.len(), |node| carrier[node]);
    let skinned = meshes.iter().any(|m| document.root().nodes[m.node].skin.is_some());
    let matters = |node: usize| {
        let extent = extent(&loads[node].points);
        candidates[node] && loads[node].points.len() >= 3 && extent > TINY * size
    };
    let mut chosen: Vec<bool> = (0..candidates.len()).map(matters).collect();
    if !chosen.contains(&true) {
        // Everything is tiny, or nothing has a form: take whatever there is.
        chosen.clone_from(&candidates);
    }

    let bone_nodes: Vec<usize> = document.order.iter().copied().filter(|n| chosen[*n]).collect();
    let index_of: Vec<Option<usize>> = {
        let mut index = vec![None; chosen.len()];
        for (i, node) in bone_nodes.iter().enumerate() {
            index[*node] = Some(i);
        }
        index
    };
    let ancestor = nearest(document, |node| chosen[node]);
    let first_branch = representatives(document, &candidates, &chosen, &ancestor, &loads);
    let bone_of_node: Vec<Option<usize>> = (0..chosen.len())
        .map(|node| {
            let own = ancestor[node].or(first_branch[node]);
            own.or_else(|| candidates[node].then(|| bone_nodes.first().copied()).flatten()).and_then(|n| index_of[n])
        })
        .collect();
    report_merged(document, &candidates, &chosen, &loads, &bone_of_node, &bone_nodes, skinned, &mut notes);

    let (shares, enclosed) = fit::shares(meshes, bone_nodes.len(), |node| bone_of_node[node]);
    let mut parents: Vec<Option<usize>> = bone_nodes
        .iter()
        .enumerate()
        .map(|(i, &node)| {
            let above = document.parents[node]?;
            let bone = ancestor[above].or(first_branch[above]).and_then(|n| index_of[n]);
            bone.filter(|parent| *parent != i)
        })
        .collect();
    join_by_skin(document, meshes, &bone_of_node, &bone_nodes, &shares, &mut parents, &mut notes);
    let order = parents_first(&parents);

    let lowest = meshes.iter().flat_map(|m| &m.vertices).map(|v| v.y).fold(f64::INFINITY, f64::min);
    let floor = lowest.is_finite().then_some(lowest - UNDER * size.max(1.0));
    let mut bones: Vec<Bone> = Vec::with_capacity(bone_nodes.len());
    let mut directions = Vec::with_capacity(bone_nodes.len());
    let mut place_of = vec![0; bone_nodes.len()]; // old index → new
    for &i in &order {
        let node = bone_nodes[i];
        let world = document.world[node];
        let link = Pose::new(rigid(world.matrix3).unwrap_or(DQuat::IDENTITY), world.translation);
        let parent = parents[i].map(|p| place_of[p]);
        let class = names::class(&document.names[node], parent.map(|p: usize| bones[p].class));
        let class = if parent.is_none() && class == Class::Unknown { Class::Pelvis } else { class };
        let along = direction(document, &bone_nodes, &parents, i, &shares[i].points);
        let mut fitted = fit::fit(&shares[i].points, along, 0.002 * size);
        // A round foot would reach below its sole.
        let below = if lowest.is_finite() { lowest - fitted.lowest() } else { 0.0 };
        fitted.place.translation.y += below.max(0.0);
        directions.push(along.and_then(DVec3::try_normalize).unwrap_or(DVec3::Y));
        place_of[i] = bones.len();
        bones.push(Bone {
            name: document.names[node].clone(),
            node,
            parent,
            class,
            link,
            shapes: vec![BoneShape { shape: fitted.shape, link_from_shape: link.inverse().then(fitted.place) }],
            mass: fitted.volume, // a volume until the masses are made
            spread: None,
            material: Material::default(),
            collides_with: u32::MAX,
            velocity: Twist::ZERO,
            joint: Turn::Hinge { axis: DVec3::X, range: Range::new(0.0, 0.0) },
            joint_from: JointFrom::Nothing,
            spring_from: SpringFrom::Asked,
            sag: sag(class),
            settle: SETTLE,
            strength: 1.0,
            held: parent.is_none(),
        });
    }
    let shares: Vec<&fit::Share> = order.iter().map(|i| &shares[*i]).collect();
    masses(&mut bones, &shares, enclosed, &mut notes);
    let bone_of_node: Vec<Option<usize>> = bone_of_node.iter().map(|b| b.map(|b| place_of[b])).collect();

    let clips = sample(document, &bones, clips, &mut notes);
    joints::plan(&mut bones, &directions, &clips, &mut notes);

    if !(0.01..=20.0).contains(&size) {
        let text = format!("the character is {size:.3} m high: glTF is in metres; scale it if that was not meant");
        notes.push(Note { code: "import/scale", part: "scene".into(), text });
    }
    let (obstacles, loops, apart) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Rig { bones, floor, obstacles, loops, apart, bone_of_node, clips, notes })
}

/// The nodes that may become bodies: joints of skins; without any, nodes that clips or physics move.
fn candidates(document: &Document, meshes: &[SkinnedMesh], clips: &[Clip]) -> Result<Vec<bool>, FileError> {
    let root = document.root();
    let mut candidates = vec![false; root.nodes.len()];
    let mut in_scene = vec![false; root.nodes.len()];
    for &node in &document.order {
        in_scene[node] = true;
    }
    let nothing = |what: &str, remedy: &str| Err(FileError::new("file/nothing", &document.path, what, remedy));
    for mesh in meshes {
        if let Some(skin) = root.nodes[mesh.node].skin {
            for &joint in &root.skins[skin].joints {
                if !in_scene[joint] {
                    let what = "a joint of its skin is not in the scene";
                    return Err(FileError::new("file/skin", &document.path, what, "export the skeleton with the mesh")
                        .at(format!("nodes[{joint}]")));
                }
                candidates[joint] = true;
            }
        }
    }
    if candidates.contains(&true) {
        return Ok(candidates);
    }
    for node in clips.iter().flat_map(Clip::nodes) {
        candidates[node] |= in_scene[node];
    }
    for &node in &document.order {
        candidates[node] |= root.nodes[node].extensions.pointer("/KHR_physics_rigid_bodies/motion").is_some();
    }
    if !candidates.contains(&true) {
        return nothing(
            "nothing in it can be simulated: it has no skin, no node that a clip moves, and no physics",
            "export the character with its skeleton and skin",
        );
    }
    if !meshes.iter().any(|m| !m.vertices.is_empty()) {
        return nothing("it has no mesh: nothing tells how large and heavy its bones are", "export the meshes too");
    }
    Ok(candidates)
}

/// By node: itself or the nearest node above it of which `is` holds.
fn nearest(document: &Document, is: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut found = vec![None; document.parents.len()];
    for &node in &document.order {
        found[node] = if is(node) { Some(node) } else { document.parents[node].and_then(|p| found[p]) };
    }
    found
}

/// By node that has no bone above it and several below, such as a root that carries no vertex: the bone below that carries most. It stands
/// for the node, so that what hangs on the node stays together.
fn representatives(
    document: &Document,
    candidates: &[bool],
    chosen: &[bool],
    ancestor: &[Option<usize>],
    loads: &[fit::Share],
) -> Vec<Option<usize>> {
    let mut heaviest: Vec<Option<usize>> = vec![None; chosen.len()];
    for &node in document.order.iter().rev() {
        if chosen[node] {
            heaviest[node] = Some(node);
        }
        // Only joints of the skeleton tie their branches together; a node above two skeletons does not.
        if let (Some(bone), Some(parent)) = (heaviest[node], document.parents[node])
            && !chosen[parent]
            && candidates[parent]
            && ancestor[parent].is_none()
        {
            let more = |other: usize| loads[bone].volume.abs() > loads[other].volume.abs();
            if heaviest[parent].is_none_or(more) {
                heaviest[parent] = Some(bone);
            }
        }
    }
    (0..chosen.len()).map(|n| heaviest[n].filter(|_| !chosen[n])).collect()
}

#[allow(clippy::too_many_arguments)]
fn report_merged(
    document: &Document,
    candidates: &[bool],
    chosen: &[bool],
    loads: &[fit::Share],
    bone_of_node: &[Option<usize>],
    bone_nodes: &[usize],
    skinned: bool,
    notes: &mut Vec<Note>,
) {
    for &node in &document.order {
        let part = document.names[node].clone();
        if candidates[node] && !chosen[node] {
            let into = bone_of_node[node].map_or("nothing", |b| document.names[bone_nodes[b]].as_str());
            let (code, why) = match loads[node].points.is_empty() {
                true => ("import/no-influence", "it carries no vertex more than others do"),
                false => ("import/tiny", "it is too small to matter"),
            };
            notes.push(Note { code, part, text: format!("{why}: merged into \"{into}\"") });
        } else if skinned && candidates[node] {
            let root = &document.root().nodes[node];
            let here = document.world[node].translation;
            let flat =
                root.children.iter().find(|c| chosen[**c] && document.world[**c].translation.distance(here) < 1e-9);
            if let Some(child) = flat {
                let text = format!("it has no length: \"{}\" begins where it does", document.names[*child]);
                notes.push(Note { code: "import/zero-length", part, text });
            }
        }
    }
}

/// Skeletons whose bones are not nodes below each other: bones that stand alone and share vertices of a skin hang together, by the strongest
/// ties, from the one that is named as a root is, or carries most, outwards. The joint of each is at its own origin.
fn join_by_skin(
    document: &Document,
    meshes: &[SkinnedMesh],
    bone_of_node: &[Option<usize>],
    bone_nodes: &[usize],
    shares: &[fit::Share],
    parents: &mut [Option<usize>],
    notes: &mut Vec<Note>,
) {
    let mut alone: Vec<bool> = parents.iter().map(Option::is_none).collect();
    for parent in parents.iter().flatten() {
        alone[*parent] = false;
    }
    if alone.iter().filter(|a| **a).count() < 2 {
        return;
    }
    // By pair: the sum over vertices of the lesser weight.
    let mut shared = std::collections::BTreeMap::<(usize, usize), f64>::new();
    for mesh in meshes {
        for v in 0..mesh.vertices.len() {
            let here = mesh.influences(v);
            for (k, a) in here.iter().enumerate() {
                for b in &here[k + 1..] {
                    if let (Some(i), Some(j)) = (bone_of_node[a.node], bone_of_node[b.node])
                        && i != j
                        && alone[i]
                        && alone[j]
                    {
                        *shared.entry((i.min(j), i.max(j))).or_default() += a.weight.min(b.weight);
                    }
                }
            }
        }
    }
    let name = |bone: usize| &document.names[bone_nodes[bone]];
    // Neighbours in the palm share vertices too: bones of one finger hang together, and fingers on the wrist, not on the next one.
    let tie = |((i, j), sum): ((usize, usize), f64)| match (names::finger(name(i)), names::finger(name(j))) {
        (Some(a), Some(b)) if a != b => ((i, j), 1e-3 * sum),
        _ => ((i, j), sum),
    };
    let mut pairs: Vec<((usize, usize), f64)> = shared.into_iter().map(tie).collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    // The strongest ties that close no loop [Kruskal].
    let mut group: Vec<usize> = (0..parents.len()).collect();
    let mut ties: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    for ((i, j), _) in pairs {
        let (a, b) = (group[i], group[j]);
        if a != b {
            group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
            ties[i].push(j);
            ties[j].push(i);
        }
    }
    let rank = |bone: usize| {
        let named = matches!(names::class(name(bone), None), Class::Pelvis | Class::Hand);
        (named, shares[bone].volume.abs())
    };
    let mut reached = vec![false; parents.len()];
    for start in 0..parents.len() {
        if reached[start] || ties[start].is_empty() {
            continue;
        }
        let members = (0..parents.len()).filter(|i| group[*i] == group[start]);
        let root = members.max_by(|a, b| {
            let ((x, v), (y, w)) = (rank(*a), rank(*b));
            x.cmp(&y).then(v.total_cmp(&w)).then(b.cmp(a))
        });
        let mut queue = std::collections::VecDeque::from([root.unwrap_or(start)]);
        while let Some(bone) = queue.pop_front() {
            reached[bone] = true;
            for &next in ties[bone].iter().filter(|n| !reached[**n]) {
                parents[next] = Some(bone);
                let above = name(bone);
                let text =
                    format!("its node is not below a bone: it hangs on \"{above}\", with which it shares vertices");
                notes.push(Note { code: "import/joined-by-skin", part: name(next).clone(), text });
                queue.push_back(next);
            }
        }
    }
}

/// An order in which parents come first.
fn parents_first(parents: &[Option<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(parents.len());
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    for (i, parent) in parents.iter().enumerate() {
        if let Some(p) = parent {
            children[*p].push(i);
        }
    }
    let mut stack: Vec<usize> = (0..parents.len()).rev().filter(|i| parents[*i].is_none()).collect();
    while let Some(i) = stack.pop() {
        order.push(i);
        stack.extend(children[i].iter().rev());
    }
    order
}

/// Where a bone points: to the joints that hang on it; a last one to the middle of what it carries.
fn direction(
    document: &Document,
    nodes: &[usize],
    parents: &[Option<usize>],
    bone: usize,
    points: &[DVec3],
) -> Option<DVec3> {
    let origin = document.world[nodes[bone]].translation;
    let ends: Vec<DVec3> =
        (0..nodes.len()).filter(|i| parents[*i] == Some(bone)).map(|i| document.world[nodes[i]].translation).collect();
    let extent = extent(points);
    let towards = |to: DVec3| Some(to - origin).filter(|d| d.length() > 0.1 * extent && d.length() > 1e-9);
    if !ends.is_empty() {
        return towards(ends.iter().sum::<DVec3>() / ends.len() as f64);
    }
    // What a short last bone carries lies around it: then it points on from the one before.
    let middle = points.iter().sum::<DVec3>() / points.len().max(1) as f64;
    let before = parents[bone].map(|p| origin - document.world[nodes[p]].translation).filter(|d| d.length() > 1e-9);
    match before {
        Some(before) if points.is_empty() || middle.distance(origin) < 0.35 * extent => Some(before),
        _ if points.is_empty() => None,
        _ => towards(middle),
    }
}

/// The largest extent along an axis \[m\].
fn extent(points: &[DVec3]) -> f64 {
    let (low, high) =
        points.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    if points.is_empty() { 0.0 } else { (high - low).max_element() }
}

fn size(meshes: &[SkinnedMesh]) -> f64 {
    let (low, high) = meshes
        .iter()
        .flat_map(|m| &m.vertices)
        .fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = (high - low).max_element();
    if size.is_finite() { size } else { 0.0 }
}

/// Volumes become masses: the share of each bone in the volume that the skin encloses; where it encloses none, the volumes of the shapes.
fn masses(bones: &mut [Bone], shares: &[&fit::Share], enclosed: Option<f64>, notes: &mut Vec<Note>) {
    let shapes: f64 = bones.iter().map(|b| b.mass).sum();
    let carried: f64 = shares.iter().map(|s| s.volume.max(0.0)).sum();
    // Shapes and skin tell about the same volume, or the skin is several layers, inside out, or a sheet.
    match enclosed.filter(|v| carried > 0.0 && (0.2..4.0).contains(&(v / shapes.max(1e-300)))) {
        Some(volume) => {
            for (bone, share) in bones.iter_mut().zip(shares) {
                // A part of a tube, without its ends, gives two thirds of its volume: so do all, and the sum is made that of the skin.
                bone.mass = DENSITY * volume * share.volume.max(0.0) / carried;
            }
        }
        None => {
            let text = "the skin encloses no clear volume: masses come from the fitted shapes".into();
            notes.push(Note { code: "import/open-skin", part: "scene".into(), text });
            for bone in bones.iter_mut() {
                bone.mass *= DENSITY;
            }
        }
    }
    // No body is lighter than this part of all: a step with far lighter ones is slow.
    let total: f64 = bones.iter().map(|b| b.mass).sum();
    let floor = (2e-5 * total).max(1e-9);
    for bone in bones.iter_mut() {
        if bone.mass < floor {
            let text = format!("its mass of {:.2e} kg is raised to {floor:.2e} kg", bone.mass);
            notes.push(Note { code: "import/light", part: bone.name.clone(), text });
            bone.mass = floor;
        }
    }
}

/// How far a joint gives way under what it carries, unless told otherwise \[rad\].
fn sag(class: Class) -> f64 {
    let degrees = match class {
        Class::Pelvis | Class::Spine | Class::Clavicle | Class::Metacarpal => 1.5,
        Class::Neck | Class::Head | Class::Thigh | Class::Calf | Class::Foot | Class::Toe => 2.0,
        Class::UpperArm | Class::Forearm | Class::Hand | Class::FingerBase | Class::Finger => 3.0,
        Class::Unknown => 3.0,
        Class::Tail => 10.0,
    };
    f64::to_radians(degrees)
}

/// The clips as poses of the bones.
fn sample(document: &Document, bones: &[Bone], clips: &[Clip], notes: &mut Vec<Note>) -> Vec<Sampled> {
    let rest: Vec<Option<DAffine3>> =
        bones.iter().map(|b| Some(document.world[b.node].inverse()).filter(DAffine3::is_finite)).collect();
    let room = MAX_SAMPLES / (document.parents.len() + 1) / clips.len().max(1);
    let mut all = Vec::new();
    for clip in clips {
        let frames = ((clip.end * CLIP_RATE).round() as usize + 1).min(room.max(2));
        let rate = if clip.end > 0.0 { (frames.max(2) - 1) as f64 / clip.end } else { CLIP_RATE };
        if rate < 0.99 * CLIP_RATE && clip.end * CLIP_RATE > 1.5 {
            let text = format!("it is long: read with {rate:.1} frames a second");
            notes.push(Note { code: "import/clip", part: clip.name.clone(), text });
        }
        let mut poses = Vec::with_capacity(frames * bones.len());
        for frame in 0..frames {
            let world = clip.world(document, frame as f64 / rate);
            for (bone, rest) in bones.iter().zip(&rest) {
                // What the node does to the world at rest: world_now · world_at_rest⁻¹.
                let moved = rest.and_then(|rest| {
                    let change = world[bone.node] * rest;
                    let rotation = rigid(change.matrix3)?;
                    let at = change.transform_point3(bone.link.translation);
                    (at.is_finite() && at.length() < 1e6).then(|| Pose::new(rotation * bone.link.rotation, at))
                });
                poses.push(moved.unwrap_or(bone.link));
            }
        }
        all.push(Sampled { name: clip.name.clone(), rate, poses });
    }
    all
}

/// The side of the body, by the names of bones: left minus right, level \[m\].
pub(crate) fn leftward(bones: &[Bone]) -> Option<DVec3> {
    let middle = |side: Side| {
        let points: Vec<DVec3> =
            bones.iter().filter(|b| names::side(&b.name) == side).map(|b| b.link.translation).collect();
        (!points.is_empty()).then(|| points.iter().sum::<DVec3>() / points.len() as f64)
    };
    let left = middle(Side::Left)? - middle(Side::Right)?;
    DVec3::new(left.x, 0.0, left.z).try_normalize()
}
