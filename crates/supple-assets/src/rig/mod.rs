//! The physical rig of a character, made from its skeleton, its skin and its clips: which bones are bodies, their shapes and masses, how
//! their joints turn, how stiff they are. Everything made here is a plain list of [`Bone`]s, which scene files and the studio change
//! before a model is built of them.

mod build;
mod chains;
pub(crate) mod fit;
mod joints;
mod limits;
pub(crate) mod masses;
mod measure;
mod names;
mod physics;
mod plan;
mod springs;
mod structure;
mod torn;
pub(crate) mod units;

pub use chains::Swing;
pub use measure::Measured;
pub use names::Class;
pub(crate) use names::class;
pub use plan::Kind;
pub use torn::Tearing;

use crate::gltf::{Clip, Document, SkinnedMesh, Springs, rigid};
use crate::imported::MOST_LENGTH;
use crate::plant;
use crate::retarget::{Part, Side};
use crate::{FileError, Note, plain};
use glam::{DAffine3, DMat3, DQuat, DVec3};
use plan::Plan;
use structure::Structure;
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
    /// From the lowest vertex to the highest \[m\].
    pub(crate) height: f64,
    /// What body the bones make.
    plan: Plan,
    /// By bone: the mass that it was made with \[kg\]. Springs that nothing else tells are for these, so that a limb made heavier sags more.
    made: Vec<f64>,
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
    /// Whether it is hair, a tail or the like, that sways on its own spring whatever the character does, and touches nothing else that does.
    pub sways: bool,
    /// How it swings, as the author of an avatar set it, in place of `sag` and `settle`.
    pub swing: Option<Swing>,
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
    /// Sag and settling time, found for what the bone is.
    Asked,
    /// Physics or spring bones that the file itself holds; sag and settling time tell what they do.
    File,
    /// A scene file, or the studio, told how far it sags: it does so whatever it weighs.
    Scene,
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

impl Rig {
    /// What kind of body it is.
    pub fn kind(&self) -> Kind {
        self.plan.kind
    }

    /// Where the body looks, level, if anything tells.
    pub(crate) fn forward(&self) -> Option<DVec3> {
        self.plan.left.map(|left| left.cross(DVec3::Y))
    }

    /// The bone on the other side of the body.
    pub fn twin(&self, bone: usize) -> Option<usize> {
        self.plan.twins.get(bone).copied().flatten()
    }

    /// By bone: what it is in a recorded motion, and on which side.
    pub(crate) fn roles(&self) -> Vec<Option<(Part, Side)>> {
        let side = |bone: &Bone| match self.plan.left {
            Some(left) if bone.link.translation.dot(left) > self.plan.middle => Side::Left,
            Some(_) => Side::Right,
            None => match names::side(&bone.name) {
                names::Side::Left => Side::Left,
                names::Side::Right => Side::Right,
                names::Side::Middle => Side::Middle,
            },
        };
        let middle = |part: Part| matches!(part, Part::Hips | Part::Spine | Part::Neck | Part::Head);
        let role = |bone: &Bone| {
            plant::part(bone.class).map(|part| (part, if middle(part) { Side::Middle } else { side(bone) }))
        };
        self.bones.iter().map(role).collect()
    }

    /// Whether it is the physics that the file itself holds.
    pub(crate) fn is_given(&self) -> bool {
        let given = |bone: &Bone| bone.spring_from == SpringFrom::File && bone.swing.is_none();
        self.bones.iter().any(|bone| given(bone) || bone.joint_from == JointFrom::File)
    }

    /// Gives all bones together another mass \[kg\].
    pub fn set_mass(&mut self, total: f64) {
        let now: f64 = self.bones.iter().map(|bone| bone.mass).sum();
        self.scale_mass(total / now);
    }

    /// Makes all bones heavier or lighter, and their springs for it.
    pub(crate) fn scale_mass(&mut self, factor: f64) {
        self.bones.iter_mut().for_each(|bone| bone.mass *= factor);
        self.made.iter_mut().for_each(|mass| *mass *= factor);
    }

    /// Gives a bone the mass that it should have had from the first, and springs for it.
    pub(crate) fn make_mass(&mut self, bone: usize, mass: f64) {
        (self.bones[bone].mass, self.made[bone]) = (mass, mass);
    }

    /// Whether a bone has another mass than it was made with.
    pub(crate) fn is_reweighed(&self) -> bool {
        self.bones.iter().zip(&self.made).any(|(bone, made)| bone.mass != *made)
    }

    /// How many joints are between two bones; `None`: they are not in one tree.
    pub(crate) fn joints_between(&self, a: usize, b: usize) -> Option<usize> {
        let path = |mut i: usize| {
            let mut path = vec![i];
            while let Some(parent) = self.bones[i].parent {
                path.push(parent);
                i = parent;
            }
            path
        };
        let (above_a, above_b) = (path(a), path(b));
        let meet = above_a.iter().find(|i| above_b.contains(i))?;
        let up = |path: &[usize]| path.iter().position(|i| i == meet);
        Some(up(&above_a)? + up(&above_b)?)
    }
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
    /// Whether it sways on its own spring whatever the character does.
    pub sways: bool,
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
            sways: self.sways,
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

/// By joint of a skeleton without a skin: what it is, by the form of the figure and by names. `ends` are the places that each leads to.
pub(crate) fn roles_by_form(
    names: &[&str],
    parents: &[Option<usize>],
    places: &[Pose],
    ends: &[Vec<DVec3>],
) -> Vec<Option<(Part, Side)>> {
    let part = |i: usize| {
        let origin = places[i].translation;
        let volume = ends[i].iter().map(|end| end.distance(origin)).fold(0.0, f64::max);
        plan::Part { name: names[i], parent: parents[i], origin, points: &ends[i], volume, told: None }
    };
    let plan = plan::recognise(&(0..names.len()).map(part).collect::<Vec<_>>());
    let side = |i: usize| match plan.left {
        Some(left) if places[i].translation.dot(left) > plan.middle => Side::Left,
        _ => Side::Right,
    };
    let middle = |part: Part| matches!(part, Part::Hips | Part::Spine | Part::Neck | Part::Head);
    let role = |(i, class): (usize, &Class)| {
        plant::part(*class).map(|part| (part, if middle(part) { Side::Middle } else { side(i) }))
    };
    plan.classes.iter().enumerate().map(role).collect()
}

/// Density of what no file tells \[kg/m³\]: that of a body that just floats.
pub(crate) const DENSITY: f64 = 1000.0;
/// How long a joint takes to come to rest, unless told otherwise \[s\].
const SETTLE: f64 = 0.5;
/// A part with more than this share of the volume lies on facets where it is round.
const LARGE: f64 = 0.2;
/// Frames per second of a resampled clip.
const CLIP_RATE: f64 = 60.0;
/// Nodes times frames that are sampled of all clips together.
const MAX_SAMPLES: usize = 8_000_000;

/// No figure is put together from more rigid parts than these.
const MOST_PARTS: usize = 500;

/// The floor is this far under the lowest vertex, as a part of the size of all that is larger than 1 m \[m\]: a character that is held does not touch it, one that is let go lands on it.
const UNDER: f64 = 0.01;

/// What is asked of a rig before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RigOptions {
    /// Of all bodies together \[kg\]; by the height or the volume unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Metres in a unit of length of the file; found unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// From the lowest vertex to the highest \[m\], in place of `scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<f64>,
}

/// What masses, scales and heights may be.
pub(crate) const TOLD: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

impl RigOptions {
    /// These, and what they leave open as another has it. Scale and height stand for each other.
    #[must_use]
    pub fn or(self, other: RigOptions) -> RigOptions {
        let size = if self.scale.is_some() || self.height.is_some() { self } else { other };
        RigOptions { mass: self.mass.or(other.mass), scale: size.scale, height: size.height }
    }

    /// Whether nothing is asked.
    pub fn is_default(&self) -> bool {
        *self == RigOptions::default()
    }

    /// Refuses what no body can have.
    pub(crate) fn check(&self, path: &std::path::Path) -> Result<(), FileError> {
        let told = [
            ("mass", self.mass, "kilograms"),
            ("scale", self.scale, "metres a unit"),
            ("height", self.height, "metres"),
        ];
        for (name, value, unit) in told {
            if let Some(value) = value.filter(|v| !TOLD.contains(v)) {
                let remedy = format!("give {unit}, from {} to {}", plain(*TOLD.start()), plain(*TOLD.end()));
                return Err(FileError::new("file/option", path, format!("{name} is {}", plain(value)), remedy));
            }
        }
        if self.scale.is_some() && self.height.is_some() {
            let what = "both its scale and its height are told";
            return Err(FileError::new("file/option", path, what, "give one of them"));
        }
        Ok(())
    }
}

/// Makes the rig of a file; `mass` is that of all bodies together, where it is told \[kg\].
pub(crate) fn make(
    document: &Document,
    meshes: &[SkinnedMesh],
    clips: &[Clip],
    springs: &Springs,
    mass: Option<f64>,
) -> Result<Rig, FileError> {
    if let Some(mut rig) = physics::make(document, meshes, clips)? {
        mass.into_iter().for_each(|mass| rig.set_mass(mass));
        return Ok(rig);
    }
    let mut notes = Vec::new();
    let mut told = document.humanoid();
    let sprung = chains::Told::new(springs);
    sprung.classes(&mut told);
    let candidates = candidates(document, meshes, clips, &told)?;
    let size = size(meshes).max(1e-6);
    let known = structure::Known::new(document, meshes, clips, &candidates, &told, size);
    let Structure { nodes: bone_nodes, parents, bone_of_node } = structure::find(known, &mut notes);
    let skinned = meshes.iter().any(|m| document.root().nodes[m.node].skin.is_some());
    report_merged(document, &candidates, &bone_of_node, &bone_nodes, skinned, &mut notes);
    let of_body = structure::body_meshes(document, meshes);
    let (shares, enclosed) = fit::shares(meshes, &of_body, bone_nodes.len(), |node| bone_of_node[node]);
    let order = parents_first(&parents);

    let points = || meshes.iter().flat_map(|m| &m.vertices);
    let lowest = points().map(|v| v.y).fold(f64::INFINITY, f64::min);
    let height = points().map(|v| v.y).fold(f64::NEG_INFINITY, f64::max) - lowest;
    let floor = lowest.is_finite().then_some(lowest - UNDER * size.max(1.0));
    let mut bones: Vec<Bone> = Vec::with_capacity(bone_nodes.len());
    let mut directions = Vec::with_capacity(bone_nodes.len());
    let mut place_of = vec![0; bone_nodes.len()]; // old index → new
    for &i in &order {
        let node = bone_nodes[i];
        let world = document.world[node];
        let link = Pose::new(rigid(world.matrix3).unwrap_or(DQuat::IDENTITY), world.translation);
        let parent = parents[i].map(|p| place_of[p]);
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
            class: Class::Unknown,
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
            sag: 0.0,
            settle: SETTLE,
            strength: 1.0,
            held: parent.is_none(),
            sways: false,
            swing: None,
        });
    }
    let shares: Vec<&fit::Share> = order.iter().map(|i| &shares[*i]).collect();
    let parts: Vec<plan::Part<'_>> = bones
        .iter()
        .zip(&shares)
        .map(|(bone, share)| plan::Part {
            name: &bone.name,
            parent: bone.parent,
            origin: bone.link.translation,
            points: &share.points,
            volume: bone.mass,
            told: told[bone.node],
        })
        .collect();
    let mut plan = plan::recognise(&parts);
    let large = large(&bones);
    masses::spread(&mut bones, &plan, &shares, enclosed, height, mass, &mut notes);
    let bone_of_node: Vec<Option<usize>> = bone_of_node.iter().map(|b| b.map(|b| place_of[b])).collect();

    let clips = sample(document, &bones, clips, &mut notes)?;
    joints::find_hips(&bones, &clips, &mut plan);
    for (bone, class) in bones.iter_mut().zip(&plan.classes) {
        (bone.class, bone.sag) = (*class, sag(*class));
    }
    joints::plan(&mut bones, &plan, &directions, &clips, &mut notes);
    lay_flat(&mut bones, &large, &shares);
    let known = chains::Made { document, plan: &plan, directions: &directions, shares: &shares, clips: &clips, size };
    chains::find(&mut bones, &sprung, &known, &mut notes);
    let made = bones.iter().map(|bone| bone.mass).collect();
    let (obstacles, loops, apart) = (Vec::new(), Vec::new(), Vec::new());
    let mut rig = Rig { bones, floor, obstacles, loops, apart, bone_of_node, height, plan, made, clips, notes };
    if rig.bones.iter().any(|bone| bone.sways) {
        chains::add_colliders(&mut rig, springs, document);
        rig.thin_chains(size);
    }
    rig.tell_springs();
    Ok(rig)
}

/// Which bones are large; until masses are made a bone's mass is its volume.
fn large(bones: &[Bone]) -> Vec<bool> {
    let whole: f64 = bones.iter().map(|bone| bone.mass).sum();
    bones.iter().map(|bone| bone.mass > LARGE * whole).collect()
}

/// Gives large round parts facets to lie on. Their mass stays where the round shape has it: the hull holds vertices that
/// neighbours share, and would make joints settle more slowly. Ranges by form are those of the round shape, too.
fn lay_flat(bones: &mut [Bone], large: &[bool], shares: &[&fit::Share]) {
    for ((bone, share), _) in bones.iter_mut().zip(shares).zip(large).filter(|(_, large)| **large) {
        let (centre, inertia) = build::centre_and_inertia(bone);
        bone.spread = Some(Spread { centre, inertia: inertia * (1.0 / bone.mass) });
        for placed in &mut bone.shapes {
            if let Some(fitted) = fit::facets(&placed.shape, &share.points) {
                let link_from_shape = bone.link.inverse().then(fitted.place);
                *placed = BoneShape { shape: fitted.shape, link_from_shape };
            }
        }
    }
}

/// The nodes that may become bodies: joints of skins; without any, nodes that clips or physics move.
fn candidates(
    document: &Document,
    meshes: &[SkinnedMesh],
    clips: &[Clip],
    told: &[Option<Class>],
) -> Result<Vec<bool>, FileError> {
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
        candidates[node] |= told[node].is_some();
        candidates[node] |= root.nodes[node].extensions.pointer("/KHR_physics_rigid_bodies/motion").is_some();
    }
    // Where the file itself tells its bones, those are all.
    if told.iter().all(Option::is_none) {
        limbs_of_parts(document, meshes).into_iter().for_each(|node| candidates[node] = true);
    }
    if !candidates.contains(&true) {
        return nothing(
            "nothing in it can be simulated: it has no skin, no node that a clip moves, no limbs made of parts, and no physics",
            "export the character with its skeleton and skin",
        );
    }
    if !meshes.iter().any(|m| !m.vertices.is_empty()) {
        return nothing("it has no mesh: nothing tells how large and heavy its bones are", "export the meshes too");
    }
    Ok(candidates)
}

/// The nodes of a figure that is put together from rigid parts, whether a clip moves them or not; none where the parts are no figure: a house has parts, too.
fn limbs_of_parts(document: &Document, meshes: &[SkinnedMesh]) -> Vec<usize> {
    let root = document.root();
    let mut drawn = vec![0; root.nodes.len()];
    meshes.iter().for_each(|mesh| drawn[mesh.node] = 1);
    let drawn_below = |node: usize| root.nodes[node].children.iter().map(|c| drawn[*c]).sum::<usize>();
    let mut parts = vec![false; root.nodes.len()];
    for &node in document.order.iter().filter(|node| drawn[**node] > 0) {
        // A mesh at the end of a branch is the form of the bone that it is on.
        let bone = document.parents[node]
            .filter(|above| root.nodes[node].children.is_empty() && drawn[*above] == 0 && drawn_below(*above) == 1);
        parts[bone.unwrap_or(node)] = true;
    }
    let carrier = nearest(&document.order, &document.parents, |node| parts[node]);
    let (shares, _) = fit::shares(meshes, &vec![true; meshes.len()], parts.len(), |node| carrier[node]);
    let nodes: Vec<usize> = document.order.iter().copied().filter(|node| parts[*node]).collect();
    if nodes.len() > MOST_PARTS {
        return Vec::new();
    }
    let above = |node: usize| {
        let above = document.parents[node].and_then(|parent| carrier[parent])?;
        nodes.iter().position(|other| *other == above)
    };
    let part = |node: &usize| plan::Part {
        name: &document.names[*node],
        parent: above(*node),
        origin: document.world[*node].translation,
        points: &shares[*node].points,
        volume: shares[*node].volume,
        told: None,
    };
    let known: Vec<plan::Part<'_>> = nodes.iter().map(part).collect();
    let classes = plan::recognise(&known).classes;
    // Two bones in a row of a leg, an arm or a finger.
    let of_limb = |(part, class): (&plan::Part<'_>, &Class)| {
        let above = part.parent.map(|parent| classes[parent]);
        let pairs =
            [(Class::Calf, Class::Thigh), (Class::Forearm, Class::UpperArm), (Class::Finger, Class::FingerBase)];
        pairs.iter().any(|(below, top)| class == below && above == Some(*top))
    };
    if known.iter().zip(&classes).filter(|both| of_limb(*both)).count() >= 2 { nodes } else { Vec::new() }
}

/// By node: itself or the nearest node above it of which `is` holds.
fn nearest(order: &[usize], parents: &[Option<usize>], is: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let mut found = vec![None; parents.len()];
    for &node in order {
        found[node] = if is(node) { Some(node) } else { parents[node].and_then(|p| found[p]) };
    }
    found
}

/// By node that has no bone above it and several below, such as a root that carries no vertex: one of the bones below. It stands
/// for the node, so that what hangs on the node stays together.
fn representatives(known: &structure::Known<'_>, chosen: &[bool], loads: &[fit::Share]) -> Vec<Option<usize>> {
    let ancestor = nearest(&known.order, &known.parents, |node| chosen[node]);
    let mut first: Vec<Option<usize>> = vec![None; chosen.len()];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); chosen.len()];
    for &node in known.order.iter().rev() {
        first[node] = if chosen[node] { Some(node) } else { trunk(known, &below[node], loads) };
        // Only joints of the skeleton tie their branches together; a node above two skeletons does not.
        if let (Some(bone), Some(parent)) = (first[node], known.parents[node])
            && !chosen[parent]
            && known.candidates[parent]
            && ancestor[parent].is_none()
        {
            below[parent].push(bone);
        }
    }
    (0..chosen.len()).map(|n| first[n].filter(|_| !chosen[n])).collect()
}

/// Of branches the one that carries most, but none of a pair, such as the thighs, while there is another.
fn trunk(known: &structure::Known<'_>, branches: &[usize], loads: &[fit::Share]) -> Option<usize> {
    let volume = |node: usize| loads[node].volume.abs();
    let paired = |node: usize| {
        let alike = |other: usize| (volume(other) - volume(node)).abs() < 0.1 * volume(node);
        names::side(&known.document.names[node]) != names::Side::Middle
            || branches.iter().any(|other| *other != node && alike(*other))
    };
    // The first in the file of those that carry as much.
    branches.iter().copied().max_by(|a, b| {
        let rank = |node: usize| (!paired(node), volume(node));
        let ((x, v), (y, w)) = (rank(*a), rank(*b));
        x.cmp(&y).then(v.total_cmp(&w))
    })
}

/// Tells of nodes that are no bodies and were not told of yet, and of bones without length.
fn report_merged(
    document: &Document,
    candidates: &[bool],
    bone_of_node: &[Option<usize>],
    bone_nodes: &[usize],
    skinned: bool,
    notes: &mut Vec<Note>,
) {
    let told: std::collections::HashSet<String> = notes.iter().map(|note| note.part.clone()).collect();
    for &node in document.order.iter().filter(|node| candidates[**node]) {
        let part = document.names[node].clone();
        if !bone_nodes.contains(&node) {
            if !told.contains(&part) {
                let into = bone_of_node[node].map_or("nothing", |b| document.names[bone_nodes[b]].as_str());
                let text = format!("it carries no vertex more than others do: it goes with \"{into}\"");
                notes.push(Note { code: "import/no-influence", part, text });
            }
        } else if skinned {
            let root = &document.root().nodes[node];
            let here = document.world[node].translation;
            let begins = |c: &&usize| bone_nodes.contains(c) && document.world[**c].translation.distance(here) < 1e-9;
            if let Some(child) = root.children.iter().find(begins) {
                let text = format!("it has no length: \"{}\" begins where it does", document.names[*child]);
                notes.push(Note { code: "import/zero-length", part, text });
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

/// The largest extent of all meshes \[m\].
pub(crate) fn size(meshes: &[SkinnedMesh]) -> f64 {
    let (low, high) = meshes
        .iter()
        .flat_map(|m| &m.vertices)
        .fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(low, high), p| (low.min(*p), high.max(*p)));
    let size = (high - low).max_element();
    if size.is_finite() { size } else { 0.0 }
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

/// The clips as poses of the bones. One that leads too far away is refused, as a bone at rest there is.
fn sample(
    document: &Document,
    bones: &[Bone],
    clips: &[Clip],
    notes: &mut Vec<Note>,
) -> Result<Vec<Sampled>, FileError> {
    let rest: Vec<Option<DAffine3>> =
        bones.iter().map(|b| Some(document.world[b.node].inverse()).filter(DAffine3::is_finite)).collect();
    let room = MAX_SAMPLES / (document.parents.len() + 1) / clips.len().max(1);
    let (mut all, mut stretches, mut flattens) = (Vec::new(), Vec::new(), Vec::new());
    for clip in clips {
        let frames = ((clip.end * CLIP_RATE).round() as usize + 1).min(room.max(2));
        let rate = if clip.end > 0.0 { (frames.max(2) - 1) as f64 / clip.end } else { CLIP_RATE };
        if rate < 0.99 * CLIP_RATE && clip.end * CLIP_RATE > 1.5 {
            let text = format!("it is long: read with {rate:.1} frames a second");
            notes.push(Note { code: "import/clip", part: clip.name.clone(), text });
        }
        let mut poses = Vec::with_capacity(frames * bones.len());
        let mut flat = None;
        for frame in 0..frames {
            let world = clip.world(document, frame as f64 / rate);
            for (bone, rest) in bones.iter().zip(&rest) {
                let Some(rest) = rest else {
                    poses.push(bone.link);
                    continue;
                };
                // What the node does to the world at rest: world_now · world_at_rest⁻¹.
                let change = world[bone.node] * *rest;
                let at = change.transform_point3(bone.link.translation);
                if !(at.is_finite() && at.length() < MOST_LENGTH) {
                    let what = format!("the clip leads \"{}\" more than {MOST_LENGTH} m away", bone.name);
                    let place = format!("clip \"{}\", frame {frame}", clip.name);
                    let remedy = "correct its keys, and those of the nodes above it";
                    return Err(FileError::new("file/number", &document.path, what, remedy).at(place));
                }
                let rotation = rigid(change.matrix3);
                flat = flat.or(rotation.is_none().then_some(&bone.name));
                poses.push(rotation.map_or(bone.link, |turn| Pose::new(turn * bone.link.rotation, at)));
            }
        }
        let stretched = stretched(bones, &poses);
        keep_lengths(bones, &stretched, &mut poses);
        let worst = stretched.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        stretches.extend(worst.map(|(bone, by)| (clip, &bones[bone].name, by)));
        flattens.extend(flat.map(|bone| (clip, bone)));
        all.push(Sampled { name: clip.name.clone(), rate, poses });
    }
    // One note for all clips: a file has dozens of them.
    let others = |count: usize| if count > 1 { format!(", and so do {} more clips", count - 1) } else { String::new() };
    if let Some((clip, bone, by)) = stretches.iter().max_by(|a, b| a.2.total_cmp(&b.2)) {
        let (percent, others) = (100.0 * by, others(stretches.len()));
        let text = format!(
            "it stretches \"{bone}\" by up to {percent:.0} %{others}: bodies keep their size, and follow the turns alone"
        );
        notes.push(Note { code: "import/stretch", part: clip.name.clone(), text });
    }
    if let Some((clip, bone)) = flattens.first() {
        let others = others(flattens.len());
        let text = format!("it shrinks \"{bone}\" to nothing{others}: without a direction it is at rest meanwhile");
        notes.push(Note { code: "import/clip", part: clip.name.clone(), text });
    }
    Ok(all)
}

/// A clip that makes a bone longer or shorter by more than this stretches it.
const STRETCH: f64 = 0.1;

/// The bones whose distance from the one above changes by much over the frames of a clip, and by which part of it at most.
fn stretched(bones: &[Bone], poses: &[Pose]) -> Vec<(usize, f64)> {
    let length = |frame: &[Pose], i: usize, parent: usize| frame[i].translation.distance(frame[parent].translation);
    let rest: Vec<Pose> = bones.iter().map(|bone| bone.link).collect();
    let changes = (0..bones.len()).filter_map(|i| {
        let parent = bones[i].parent?;
        let at_rest = length(&rest, i, parent);
        let most = |most: f64, frame: &[Pose]| most.max((length(frame, i, parent) / at_rest - 1.0).abs());
        (at_rest > 1e-6).then(|| (i, poses.chunks_exact(bones.len()).fold(0.0, most)))
    });
    changes.filter(|(_, by)| *by > STRETCH).collect()
}

/// Puts bones that a clip stretches where their joints have them, and what hangs on them along with them: what is followed is the turns.
fn keep_lengths(bones: &[Bone], stretched: &[(usize, f64)], poses: &mut [Pose]) {
    if stretched.is_empty() {
        return;
    }
    let mut held = vec![false; bones.len()];
    stretched.iter().for_each(|(bone, _)| held[*bone] = true);
    for frame in poses.chunks_exact_mut(bones.len()) {
        let given: Vec<DVec3> = frame.iter().map(|pose| pose.translation).collect();
        // Parents come first.
        for (i, bone) in bones.iter().enumerate() {
            let Some(parent) = bone.parent else { continue };
            let above = frame[parent];
            frame[i].translation = if held[i] {
                let at_rest = bones[parent].link.inverse().transform_point(bone.link.translation);
                above.transform_point(at_rest)
            } else {
                given[i] + (above.translation - given[parent])
            };
        }
    }
}
