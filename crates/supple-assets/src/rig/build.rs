//! From the plan of a rig to a model: springs from sag and settling time, floors of inertia, filters of what overlaps, a hold for each root.

use super::{Bone, Rig, Turn};
use crate::gltf::SkinnedMesh;
use crate::imported::{Carried, DrawnMesh, Imported, Link};
use crate::{FileError, Note};
use glam::{DMat3, DQuat, DVec3};
use std::path::Path;
use std::sync::Arc;
use supple::contact::{ContactWork, Other, detect};
use supple::maths::rotation;
use supple::{
    BodyId, BodyRef, BodySpec, Contacts, Ending, Input, JointMask, JointSpec, Limits, Model, ModelBuilder, ModelError,
    Motion, ObstacleSpec, Pose, RotationSpring, Scene, Target, TrackerSpec, Twist,
};

/// Of weights that limbs are held against \[m/s²\].
const GRAVITY: f64 = 9.81;
/// A critically damped spring of frequency ω is within 2 % after this over ω: (1 + x) e⁻ˣ = 0.02.
const CRITICAL: f64 = 5.834;
/// How fast a body follows its clip at strength 1, and its turning \[rad/s\]: soft enough to be pushed aside, fast enough to look.
const FOLLOW: f64 = 7.0;
const FOLLOW_TURN: f64 = 33.0;
/// How far the hold of a root gives way under the whole character \[m\].
const HOLD_SAG: f64 = 0.01;

/// What hangs on a joint.
#[derive(Clone, Copy, Debug)]
struct Carries {
    /// \[kg\]
    mass: f64,
    /// Centre of mass \[m\].
    centre: DVec3,
    /// About the joint, world axes \[kg·m²\].
    inertia: DMat3,
}

/// Spring and damper of a joint.
#[derive(Clone, Copy, Debug)]
struct Spring {
    stiffness: f64,
    damping: f64,
    /// The largest moment of what it carries \[kg·m²\].
    inertia: f64,
    /// The largest torque of its weight \[N·m\].
    load: f64,
    /// The torque that holds what it carries in the pose at rest, world axes \[N·m\].
    holding: DVec3,
}

impl Carries {
    /// The torque about a point that holds it against its weight: `−r × m g` \[N·m\].
    fn holding(&self, about: DVec3) -> DVec3 {
        (self.centre - about).cross(DVec3::Y * (self.mass * GRAVITY))
    }
}

impl Rig {
    /// The model, its start and what draws it.
    pub(crate) fn build(&self, path: &Path, name: &str, meshes: &[SkinnedMesh]) -> Result<Imported, FileError> {
        let mut notes = self.notes.clone();
        let wrong = |e: ModelError| {
            let first = e.problems.first();
            let (what, remedy) =
                first.map_or((e.to_string(), String::new()), |p| (format!("{}: {}", p.part, p.what), p.remedy.clone()));
            FileError::new("file/model", path, what, remedy)
        };
        let model = self.model(&[]).map_err(wrong)?;
        let overlaps = overlaps(&model);
        let model = if overlaps.is_empty() { model } else { self.model(&overlaps).map_err(wrong)? };
        if !overlaps.is_empty() {
            let text = format!("{} pairs of shapes overlap at rest and do not touch each other", overlaps.len());
            notes.push(Note { code: "import/overlap", part: "scene".into(), text });
        }
        let state = model.start();
        let carries = carries(&self.bones);
        let mut input = Input { targets: vec![None; model.trackers().len()], ..Input::default() };
        for (tracker, target) in model.trackers().iter().zip(&mut input.targets).skip(self.bones.len()) {
            let body = &model.bodies()[tracker.body.index()];
            // The springs are stretched and wound up by what they carry, so that nothing moves when the run begins.
            let carried = &carries[tracker.body.index()];
            let point = body.start.transform_point(tracker.point);
            let wound = carried.holding(point) / tracker.rotation_stiffness;
            let lifted = DVec3::Y * (carried.mass * GRAVITY / tracker.stiffness);
            let at = Pose::new(rotation::exp(wound) * body.start.rotation, point + lifted);
            *target = Some(Target { pose: at, velocity: Twist::ZERO });
        }
        let links = self.bones.iter().zip(model.bodies()).map(|(bone, body)| Link {
            name: bone.name.clone(),
            node: Some(bone.node),
            body_from_link: Pose::at(-body.centre_in_link),
        });
        let clips = self.clips.iter().filter_map(|clip| {
            let poses = clip.poses.iter().enumerate().map(|(k, link)| {
                let centre = model.bodies()[k % self.bones.len()].centre_in_link;
                link.then(Pose::at(centre))
            });
            let poses: Vec<Pose> = poses.collect();
            let ending = ending(&poses, self.bones.len());
            Motion::new(&clip.name, clip.rate, self.bones.len(), poses, ending).map(Arc::new)
        });
        let (links, clips) = (links.collect(), clips.collect());
        let meshes = meshes.iter().filter_map(|mesh| self.drawn(mesh)).collect();
        let scene = Scene::from_parts(name, model, state, input);
        Ok(Imported { source: path.to_owned(), scene, links, clips, meshes, notes })
    }

    fn model(&self, overlaps: &[(BodyId, BodyId)]) -> Result<Model, ModelError> {
        let mut builder = ModelBuilder::new();
        let bodies: Vec<BodyId> = self.bones.iter().map(|bone| builder.body(body(bone))).collect();
        let carries = carries(&self.bones);
        for (i, bone) in self.bones.iter().enumerate() {
            if let Some(parent) = bone.parent {
                let spring = spring(bone, &carries[i]);
                builder.joint(joint(bone, &self.bones[parent], bodies[i], bodies[parent], spring));
            }
        }
        // By body, in order: what follows clips. Then one hold for each root.
        for (i, bone) in self.bones.iter().enumerate() {
            let (centre, inertia) = centre_and_inertia(bone);
            // About its joint, where it turns.
            let moment = largest_moment(inertia) + bone.mass * centre.length_squared();
            // k = s m ω², c = 2 m ω √s: critical at every strength
            let spring = |inertia: f64, omega: f64| {
                (bone.strength * inertia * omega * omega, 2.0 * bone.strength.sqrt() * inertia * omega)
            };
            let (stiffness, damping) = spring(bone.mass, FOLLOW);
            let (rotation_stiffness, rotation_damping) = spring(moment, FOLLOW_TURN);
            builder.tracker(TrackerSpec {
                name: bone.name.clone(),
                body: bodies[i].into(),
                point: centre,
                stiffness,
                damping,
                rotation_stiffness,
                rotation_damping,
            });
        }
        for (i, bone) in self.bones.iter().enumerate().filter(|(_, bone)| bone.parent.is_none()) {
            let Carries { mass, inertia, .. } = carries[i];
            let moment = largest_moment(inertia);
            // k = m g / sag; critical damping
            let omega = (GRAVITY / HOLD_SAG).sqrt();
            builder.tracker(TrackerSpec {
                name: format!("hold {}", bone.name),
                body: bodies[i].into(),
                point: DVec3::ZERO,
                stiffness: mass * omega * omega,
                damping: 2.0 * mass * omega,
                rotation_stiffness: moment * omega * omega,
                rotation_damping: 2.0 * moment * omega,
            });
        }
        if let Some(height) = self.floor {
            builder.obstacle(ObstacleSpec::floor("floor", height));
        }
        for obstacle in &self.obstacles {
            builder.obstacle(obstacle.clone());
        }
        for (a, b) in overlaps {
            builder.no_collision(*a, *b);
        }
        builder.build()
    }

    /// A mesh carried by bodies; `None` when no bone carries any of it.
    fn drawn(&self, mesh: &SkinnedMesh) -> Option<DrawnMesh> {
        let mut carried = Vec::with_capacity(mesh.vertices.len());
        for v in 0..mesh.vertices.len() {
            let mut sums: Vec<(usize, f64)> = Vec::new();
            for influence in mesh.influences(v) {
                if let Some(bone) = self.bone_of_node[influence.node] {
                    match sums.iter_mut().find(|(other, _)| *other == bone) {
                        Some((_, sum)) => *sum += influence.weight,
                        None => sums.push((bone, influence.weight)),
                    }
                }
            }
            sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            sums.truncate(4);
            let (first, _) = *sums.first()?;
            let total: f64 = sums.iter().map(|(_, weight)| weight).sum();
            let mut this = Carried::by(BodyId(first as u32));
            for (k, (bone, weight)) in sums.iter().enumerate() {
                this.bodies[k] = BodyId(*bone as u32);
                this.weights[k] = (weight / total) as f32;
            }
            carried.push(this);
        }
        Some(DrawnMesh {
            name: mesh.name.clone(),
            vertices: mesh.vertices.iter().map(|v| v.as_vec3().to_array()).collect(),
            triangles: mesh.triangles.clone(),
            colour: mesh.colour,
            carried,
        })
    }
}

/// A clip whose last pose is its first goes round.
fn ending(poses: &[Pose], bodies: usize) -> Ending {
    let (first, last) = (&poses[..bodies.min(poses.len())], &poses[poses.len().saturating_sub(bodies)..]);
    let near = first
        .iter()
        .zip(last)
        .all(|(a, b)| a.translation.distance(b.translation) < 0.02 && a.rotation.angle_between(b.rotation) < 0.1);
    if near && poses.len() > 2 * bodies { Ending::Repeat } else { Ending::Hold }
}

/// The body of a bone, its inertia kept from being that of a needle.
fn body(bone: &Bone) -> BodySpec {
    let (centre, inertia) = centre_and_inertia(bone);
    BodySpec::new(&bone.name)
        .pose(bone.link)
        .shape_at(bone.shape.clone(), 1.0, bone.link_from_shape)
        .mass(bone.mass)
        .inertia(inertia, centre)
}

/// Centre of mass and inertia of a bone in its frame. No principal moment is below a tenth of the largest: thin bones would spin about
/// themselves too easily.
fn centre_and_inertia(bone: &Bone) -> (DVec3, DMat3) {
    let place = bone.link_from_shape;
    let Ok(solid) = bone.shape.solid() else {
        return (place.translation, DMat3::IDENTITY * bone.mass); // the builder tells what is wrong with the shape
    };
    let turned = rotation::turned_inertia(place.rotation, solid.inertia * (bone.mass / solid.volume));
    let (moments, axes) = super::fit::eigen(turned);
    let floored = moments.max(DVec3::splat(0.1 * moments.x));
    let inertia = axes * DMat3::from_diagonal(floored) * axes.transpose();
    (place.transform_point(solid.centre), inertia)
}

/// What each joint carries, leaves to roots.
fn carries(bones: &[Bone]) -> Vec<Carries> {
    let about = |p: DVec3, mass: f64| {
        (DMat3::from_diagonal(DVec3::splat(p.length_squared())) - DMat3::from_cols(p * p.x, p * p.y, p * p.z)) * mass
    };
    // Mass, first moment and inertia about the world's origin add up.
    let mut sums: Vec<(f64, DVec3, DMat3)> = bones
        .iter()
        .map(|bone| {
            let (centre, inertia) = centre_and_inertia(bone);
            let at = bone.link.transform_point(centre);
            let inertia = rotation::turned_inertia(bone.link.rotation, inertia) + about(at, bone.mass);
            (bone.mass, at * bone.mass, inertia)
        })
        .collect();
    for i in (0..bones.len()).rev() {
        if let Some(parent) = bones[i].parent {
            let (mass, moment, inertia) = sums[i];
            let sum = &mut sums[parent];
            *sum = (sum.0 + mass, sum.1 + moment, sum.2 + inertia);
        }
    }
    let about_joint = |bone: &Bone, (mass, moment, inertia): (f64, DVec3, DMat3)| {
        let centre = moment / mass;
        let at_centre = inertia - about(centre, mass);
        Carries { mass, centre, inertia: at_centre + about(centre - bone.link.translation, mass) }
    };
    bones.iter().zip(sums).map(|(bone, sum)| about_joint(bone, sum)).collect()
}

fn largest_moment(inertia: DMat3) -> f64 {
    super::fit::eigen(inertia).0.x
}

/// Stiffness and damping by what they do.
///
/// Held level, what a joint carries turns it by `sag = τ / k`, `τ = m g r`; so k = τ / sag. Let go, it comes to rest like one mass on one
/// spring of frequency `ω = √(k/I)`: with critical damping after 5.83/ω. Asked to settle faster, it must be stiffer, `k = I (5.83/T)²`;
/// asked to take longer, it is damped less, so that its swings die away by `e^(−ζωT) = 0.02`.
fn spring(bone: &Bone, carries: &Carries) -> Spring {
    let holding = carries.holding(bone.link.translation);
    let lever = carries.centre - bone.link.translation;
    let (lever, inertia) = match bone.joint {
        Turn::Hinge { axis, .. } => (lever.reject_from_normalized(axis).length(), axis.dot(carries.inertia * axis)),
        Turn::Ball { .. } => (lever.length(), largest_moment(carries.inertia)),
    };
    let load = carries.mass * GRAVITY * lever;
    let stiffness = (load / bone.sag.max(1e-4)).max(inertia * (CRITICAL / bone.settle.max(1e-3)).powi(2));
    let omega = (stiffness / inertia).sqrt();
    let ratio = (f64::ln(50.0) / (omega * bone.settle)).clamp(0.05, 1.0);
    // Within 2 % both laws agree at ratio 1; between, the slower of the two is meant.
    Spring { stiffness, damping: 2.0 * ratio * (stiffness * inertia).sqrt(), inertia, load, holding }
}

fn joint(bone: &Bone, above: &Bone, child: BodyId, parent: BodyId, spring: Spring) -> JointSpec {
    // A limit gives way by a degree under the weight, and is at least as stiff again as the spring.
    let stiffness = spring.stiffness + spring.load / f64::to_radians(1.0);
    let limits = Limits { stiffness, damping: (stiffness * spring.inertia).sqrt(), ..Limits::default() };
    let at_rest = |rest: DQuat| RotationSpring {
        stiffness: spring.stiffness,
        damping: spring.damping,
        rest,
        ..RotationSpring::default()
    };
    let spec = |mask| JointSpec::new(&bone.name, mask, child, BodyRef::Id(parent));
    let (mask, frame, middle, limits) = match bone.joint {
        Turn::Hinge { axis, range } => {
            let frame = rotation::between(DVec3::X, axis);
            (JointMask::HINGE, frame, 0.0, Limits { angle: Some(range), ..limits })
        }
        Turn::Ball { frame, middle, swing, twist } => {
            (JointMask::BALL, frame, middle, Limits { angle: Some(twist), swing: Some(swing), ..limits })
        }
    };
    let world = Pose::new(frame, bone.link.translation);
    let turned = Pose::new(frame * DQuat::from_rotation_z(middle), bone.link.translation);
    // The child's frame at rest, seen from the parent's, is turned back by the middle of the range. The spring is wound up by what it
    // carries, so that this pose is the one it holds: −k φ = holding, φ from the slack rotation to this one.
    let wound = (turned.rotation.conjugate() * spring.holding) / spring.stiffness;
    let wound = match bone.joint {
        Turn::Hinge { .. } => DVec3::X * wound.x,
        Turn::Ball { .. } => wound,
    };
    let slack = rotation::exp(wound) * DQuat::from_rotation_z(-middle);
    let frames = (bone.link.inverse().then(world), above.link.inverse().then(turned));
    spec(mask).frames(frames.0, frames.1).rotation_spring(at_rest(slack)).limits(limits)
}

/// Pairs of bodies that overlap at the start.
fn overlaps(model: &Model) -> Vec<(BodyId, BodyId)> {
    let mut work = ContactWork::new(model);
    let input = Input { contacts: Contacts::All, ..Input::default() };
    let found = detect(model, &input, &model.start(), (1e-4, 0.0), &mut work);
    let mut pairs: Vec<(BodyId, BodyId)> = found
        .iter()
        .filter(|contact| contact.gap < 0.0)
        .filter_map(|contact| match contact.b {
            Other::Body(b) => Some((contact.a.min(b), contact.a.max(b))),
            Other::Obstacle(_) => None,
        })
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
