//! From the plan of a rig to a model: springs from sag and settling time, floors of inertia, filters of what overlaps, a hold for each root.

use super::springs::{Carries, Spring, carries, largest_moment, point_inertia, settling, springs};
use super::{Bone, Given, Rig, SpringFrom, Turn, chains};
use crate::gltf::SkinnedMesh;
use crate::imported::{Carried, DrawnMesh, Imported, Link};
use crate::{FileError, Note};
use glam::{DMat3, DQuat, DVec3};
use std::path::Path;
use std::sync::Arc;
use supple::contact::{ContactWork, Other, detect};
use supple::maths::rotation;
use supple::{
    BodyId, BodyRef, BodySpec, BodyState, Contacts, Ending, Input, JointMask, JointSpec, Limits, Model, ModelBuilder,
    ModelError, Motion, ObstacleSpec, Pose, RotationSpring, Scene, State, Target, TrackerSpec, Twist,
};

/// Of weights that limbs are held against \[m/s²\].
pub(super) const GRAVITY: f64 = 9.81;
/// How fast a body follows its clip at strength 1, and its turning \[rad/s\]: soft enough to be pushed aside, fast enough to look.
const FOLLOW: f64 = 7.0;
const FOLLOW_TURN: f64 = 33.0;
/// How far a bone that follows a clip gives way under its own weight \[rad\].
const FOLLOW_SAG: f64 = 0.05;
/// The height that these are for \[m\].
const USUAL_HEIGHT: f64 = 1.7;
/// How far the hold of a root gives way under the whole character \[m\].
const HOLD_SAG: f64 = 0.01;
/// At most this many frames of all clips are searched for parts that overlap.
const OVERLAP_FRAMES: usize = 200;

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
        let carries = carries(&self.bones);
        let springs = self.springs(&carries);
        let model = self.model(&[], &carries, &springs).map_err(wrong)?;
        let overlaps = self.overlaps(&model);
        let model =
            if overlaps.is_empty() { model } else { self.model(&overlaps, &carries, &springs).map_err(wrong)? };
        if !overlaps.is_empty() {
            let text =
                format!("{} pairs of shapes overlap at rest or in a clip and do not touch each other", overlaps.len());
            notes.push(Note { code: "import/overlap", part: "scene".into(), text });
        }
        let mut state = model.start();
        for (body, bone) in state.bodies.iter_mut().zip(&self.bones) {
            body.velocity = bone.velocity;
        }
        let mut input = Input {
            targets: vec![None; model.trackers().len()],
            contacts: Contacts::All,
            sleep: true,
            ..Input::default()
        };
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
        let joints = self.bones.iter().filter(|bone| bone.is_joined()).map(|bone| match &bone.joint {
            Turn::Given(joint) => joint.motor,
            _ => None,
        });
        let motors = joints.chain(self.loops.iter().map(|l| l.joint.motor));
        for (k, (_, target)) in motors.enumerate().filter_map(|(k, motor)| Some((k, motor?))) {
            input.joint_mut(&model, k).servo = Some(target);
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
        let (things, cast) = (Vec::new(), crate::Cast::default());
        Ok(Imported { source: path.to_owned(), scene, links, clips, meshes, notes, things, cast })
    }

    /// Spring and damper of every joint: those of the masses that the rig was made with, where no sag is asked for.
    fn springs(&self, carries: &[Carries]) -> Vec<Spring> {
        let mut now = springs(&self.bones, carries, GRAVITY / HOLD_SAG);
        if self.is_reweighed() {
            let mut made = self.bones.clone();
            made.iter_mut().zip(&self.made).for_each(|(bone, mass)| bone.mass = *mass);
            let before = springs(&made, &super::springs::carries(&made), GRAVITY / HOLD_SAG);
            for ((bone, spring), before) in self.bones.iter().zip(&mut now).zip(before) {
                if bone.spring_from != SpringFrom::Scene {
                    *spring = before;
                }
            }
        }
        now
    }

    /// See [`chains::thin`].
    pub(super) fn thin_chains(&mut self, size: f64) {
        let carries = carries(&self.bones);
        // What is wrong with a model is told when it is built.
        if let Ok(model) = self.model(&[], &carries, &self.springs(&carries)) {
            chains::thin(self, &model, size);
        }
    }

    fn model(
        &self,
        overlaps: &[(BodyId, BodyId)],
        carries: &[Carries],
        springs: &[Spring],
    ) -> Result<Model, ModelError> {
        let mut builder = ModelBuilder::new();
        let bodies: Vec<BodyId> = self.bones.iter().map(|bone| builder.body(body(bone))).collect();
        for (i, bone) in self.bones.iter().enumerate().filter(|(_, bone)| bone.is_joined()) {
            let above = bone.parent.map_or(Pose::IDENTITY, |parent| self.bones[parent].link);
            let parent = bone.parent.map_or(BodyRef::World, |parent| BodyRef::Id(bodies[parent]));
            builder.joint(joint(bone, above, bodies[i], parent, springs[i]));
        }
        for closing in &self.loops {
            let parent = closing.parent.map_or(BodyRef::World, |parent| BodyRef::Id(bodies[parent]));
            let spring = closing.joint.spring;
            builder.joint(given(&closing.name, &closing.joint, bodies[closing.child], parent, spring));
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
            // A small figure moves faster: times go with the root of lengths.
            let faster = (USUAL_HEIGHT / self.height.max(1e-3)).sqrt().max(1.0);
            let (stiffness, damping) = spring(bone.mass, FOLLOW * faster);
            // A short bone is held against its own weight, not only against its inertia.
            let load = if bone.parent.is_some() { bone.mass * GRAVITY * centre.length() } else { 0.0 };
            let turn = (load / FOLLOW_SAG / moment.max(1e-300)).sqrt().max(FOLLOW_TURN * faster);
            let (rotation_stiffness, rotation_damping) = spring(moment, turn);
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
        for (i, bone) in self.bones.iter().enumerate().filter(|(_, bone)| bone.held && !bone.is_joined()) {
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
        for (a, b) in &self.apart {
            builder.no_collision(bodies[*a], bodies[*b]);
        }
        builder.build()
    }

    /// Pairs of bodies that overlap at the start, or in frames of the clips: what artists let go through each other passes.
    fn overlaps(&self, model: &Model) -> Vec<(BodyId, BodyId)> {
        let mut work = ContactWork::new(model);
        let input = Input { contacts: Contacts::All, ..Input::default() };
        let mut state = model.start();
        let mut pairs: std::collections::BTreeSet<(BodyId, BodyId)> = std::collections::BTreeSet::new();
        let count = self.bones.len();
        let frames: usize = self.clips.iter().map(|clip| clip.poses.len() / count.max(1)).sum();
        let every = frames.div_ceil(OVERLAP_FRAMES).max(1);
        let mut look = |state: &State, counts: &dyn Fn(&[BodyId; 2]) -> bool| {
            for contact in detect(model, &input, state, (1e-4, 0.0), &mut work).iter().filter(|c| c.gap < 0.0) {
                if let Other::Body(b) = contact.b
                    && counts(&[contact.a, b])
                {
                    pairs.insert((contact.a.min(b), contact.a.max(b)));
                }
            }
        };
        look(&state, &|_| true);
        // Chains are carried stiffly by the clips: there they lie in what they will meet.
        let sways = |b: BodyId| self.bones.get(b.index()).is_some_and(|bone| bone.sways);
        for frame in self.clips.iter().flat_map(|clip| clip.poses.chunks_exact(count.max(1))).step_by(every) {
            for ((body, link), told) in state.bodies.iter_mut().zip(frame).zip(model.bodies()) {
                *body = BodyState::at_rest(link.then(Pose::at(told.centre_in_link)));
            }
            look(&state, &|pair| !pair.iter().any(|b| sways(*b)));
        }
        pairs.into_iter().collect()
    }

    /// Sag and settling time of joints whose springs the file gives.
    pub(super) fn tell_springs(&mut self) {
        let springs = self.springs(&carries(&self.bones));
        for (bone, spring) in self.bones.iter_mut().zip(springs) {
            if bone.spring_from == SpringFrom::File && spring.stiffness > 0.0 {
                bone.sag = (spring.load / spring.stiffness).clamp(1e-4, std::f64::consts::PI);
                bone.settle = settling(&spring);
            }
        }
    }

    /// A mesh carried by bodies; `None` when no bone carries any of it.
    pub(crate) fn drawn(&self, mesh: &SkinnedMesh) -> Option<DrawnMesh> {
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
            groups: mesh.groups.clone(),
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

/// The body of a bone.
fn body(bone: &Bone) -> BodySpec {
    let (centre, inertia) = centre_and_inertia(bone);
    let spec = BodySpec::new(&bone.name)
        .pose(bone.link)
        .mass(bone.mass)
        .inertia(inertia, centre)
        .material(bone.material)
        .collides_with(if bone.sways { bone.collides_with & !chains::GROUP } else { bone.collides_with });
    let spec = if bone.sways { spec.group(chains::GROUP) } else { spec };
    bone.shapes.iter().fold(spec, |spec, placed| spec.shape_at(placed.shape.clone(), 1.0, placed.link_from_shape))
}

/// Centre of mass and inertia of a bone in its frame. Unless they are given, those of its shapes; no principal moment is then below a
/// tenth of the largest: thin bones would spin about themselves too easily.
pub(super) fn centre_and_inertia(bone: &Bone) -> (DVec3, DMat3) {
    if let Some(spread) = bone.spread {
        return (spread.centre, spread.inertia * bone.mass);
    }
    let solids = || bone.shapes.iter().filter_map(|placed| Some((placed.link_from_shape, placed.shape.solid().ok()?)));
    let volume: f64 = solids().map(|(_, solid)| solid.volume).sum();
    if volume <= 0.0 {
        return (DVec3::ZERO, DMat3::IDENTITY * (0.01 * bone.mass)); // a ball of 16 cm; the builder tells what is wrong with a shape
    }
    let centre =
        solids().map(|(place, solid)| place.transform_point(solid.centre) * solid.volume).sum::<DVec3>() / volume;
    let mut inertia = DMat3::ZERO;
    for (place, solid) in solids() {
        let off = place.transform_point(solid.centre) - centre;
        inertia += rotation::turned_inertia(place.rotation, solid.inertia) + point_inertia(off, solid.volume);
    }
    let (moments, axes) = super::fit::eigen(inertia * (bone.mass / volume));
    let floored = moments.max(DVec3::splat(0.1 * moments.x));
    (centre, axes * DMat3::from_diagonal(floored) * axes.transpose())
}

/// The joint of a bone on what is above it, whose frame at rest is `above`.
fn joint(bone: &Bone, above: Pose, child: BodyId, parent: BodyRef, spring: Spring) -> JointSpec {
    // A limit gives way by a degree under the weight, and is at least as stiff again as the spring.
    let stiffness = spring.stiffness + spring.load / f64::to_radians(1.0);
    let limits = Limits { stiffness, damping: (stiffness * spring.inertia).sqrt(), ..Limits::default() };
    let (mask, frame, middle, limits) = match bone.joint {
        Turn::Hinge { axis, range } => {
            let frame = rotation::between(DVec3::X, axis);
            (JointMask::HINGE, frame, 0.0, Limits { angle: Some(range), ..limits })
        }
        Turn::Ball { frame, middle, swing, twist } => {
            (JointMask::BALL, frame, middle, Limits { angle: Some(twist), swing: Some(swing), ..limits })
        }
        Turn::Given(joint) => {
            let spring = match bone.spring_from {
                SpringFrom::File => joint.spring,
                SpringFrom::Asked | SpringFrom::Scene => {
                    wound(bone, above.rotation * joint.parent.rotation, joint.at_rest, spring)
                }
            };
            return given(&bone.name, &joint, child, parent, spring);
        }
    };
    // The child's frame at rest, seen from the parent's, is turned back by the middle of the range.
    let world = Pose::new(frame, bone.link.translation);
    let turned = Pose::new(frame * DQuat::from_rotation_z(middle), bone.link.translation);
    let droop = bone.swing.map_or(DQuat::IDENTITY, |s| turned.rotation.conjugate() * s.droop * turned.rotation);
    JointSpec::new(&bone.name, mask, child, parent)
        .frames(bone.link.inverse().then(world), above.inverse().then(turned))
        .rotation_spring(wound(bone, turned.rotation, droop * DQuat::from_rotation_z(-middle), spring))
        .limits(limits)
}

/// A spring wound up by what it carries, so that the pose at rest is the one it holds: `−k φ = holding`, φ from the slack rotation to that of rest.
/// `parent` is the parent's frame of the joint in the world, `at_rest` the child's seen from it.
fn wound(bone: &Bone, parent: DQuat, at_rest: DQuat, spring: Spring) -> RotationSpring {
    let mut wound = (parent.conjugate() * spring.holding) / spring.stiffness;
    if let Some(axis) = bone.axis() {
        wound = wound.project_onto_normalized(parent.conjugate() * axis);
    }
    let rest = rotation::exp(wound) * at_rest;
    RotationSpring { stiffness: spring.stiffness, damping: spring.damping, rest, ..RotationSpring::default() }
}

/// A joint as a file has it.
fn given(name: &str, joint: &Given, child: BodyId, parent: BodyRef, spring: RotationSpring) -> JointSpec {
    let spec = JointSpec::new(name, joint.mask, child, parent)
        .frames(joint.child, joint.parent)
        .rotation_spring(spring)
        .slide_spring(joint.slide)
        .limits(joint.limits);
    let spec = match joint.motor {
        Some((motor, _)) => spec.motor(motor),
        None => spec,
    };
    if joint.collide { spec.collide() } else { spec }
}
