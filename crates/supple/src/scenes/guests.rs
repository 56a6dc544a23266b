//! Guests: other characters put into a scene, each with its own clip and tones.

use super::{Motion, Scene};
use crate::input::{Contacts, JointInput};
use crate::maths::{Pose, Twist};
use crate::model::{
    AnchorSpringSpec, BodyId, BodySpec, BodyState, Coupling, JointId, JointSpec, JointState, Model, ModelBuilder,
    ModelError, TrackerSpec,
};
use crate::tone::Tone;
use std::ops::Range;
use std::sync::Arc;

/// Another character, to be put into a scene.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its own among the guests; it stands before the names of its bodies: `Anna/hand.l`.
    pub name: String,
    /// Its own scene, of which bodies, joints, springs and trackers come along; what stands around it does not.
    pub scene: Arc<Scene>,
    /// Where the world of that scene lies in this one.
    pub place: Pose,
    /// A clip of it, in the world of its own scene; it starts in the first pose.
    pub clip: Option<Arc<Motion>>,
    /// What it does at the start.
    pub tone: Tone,
}

/// A character that was put into a scene.
#[derive(Clone, Debug)]
pub struct Seated {
    /// As [`Guest::name`].
    pub name: String,
    /// Its bodies.
    pub bodies: Range<usize>,
    /// Where the world of its own scene lies.
    pub place: Pose,
    /// The clip that it follows from the start, in this world.
    pub clip: Option<Arc<Motion>>,
    /// What it does at the start.
    pub tone: Tone,
}

/// A motion, somewhere else.
pub(crate) fn placed(motion: &Motion, place: Pose) -> Option<Motion> {
    let poses = (0..motion.frames()).flat_map(|k| motion.frame(k)).map(|pose| place.then(*pose)).collect();
    Motion::new(motion.name(), motion.rate(), motion.bodies(), poses, motion.ending())
}

impl Seated {
    /// A clip of its own scene, where it is in this one.
    pub fn clip(&self, clip: &Motion) -> Option<Arc<Motion>> {
        placed(clip, self.place).map(Arc::new)
    }
}

impl Scene {
    /// The same scene with other characters in it, beside those it has: their bodies come after its own, in order. It must have no things yet. `None` when
    /// one of the scenes has flesh or skin, whose model cannot be made again, or a clip has other bodies than its guest.
    pub fn with_guests(&self, guests: &[Guest]) -> Result<Option<Scene>, ModelError> {
        let soft = |scene: &Scene| scene.model.flesh().is_some() || scene.model.skin().is_some();
        if soft(self) || self.things > 0 || guests.iter().any(|guest| soft(&guest.scene)) {
            return Ok(None);
        }
        let mut builder = ModelBuilder::from(&self.model);
        let mut scene = self.clone();
        let mut joints = scene.input.joints.clone();
        for guest in guests {
            let Guest { name, scene: own, place, clip, tone } = guest;
            if clip.as_ref().is_some_and(|clip| clip.bodies() != own.model.bodies().len()) {
                return Ok(None);
            }
            let (first, first_joint) = (scene.state.bodies.len(), scene.state.joints.len());
            add(&mut builder, &own.model, name, *place, first, first_joint);
            let mut state = own.state.clone();
            if let Some(clip) = clip {
                for (b, body) in state.bodies.iter_mut().enumerate() {
                    let moved = clip.at(0.0, b);
                    *body = BodyState { velocity: moved.velocity, ..BodyState::at_rest(moved.pose) };
                }
                state.recount_turns(&own.model);
            }
            let turned = |v: Twist| Twist::new(place.rotation * v.linear, place.rotation * v.angular);
            scene.state.bodies.extend(state.bodies.iter().map(|body| BodyState {
                velocity: turned(body.velocity),
                ..BodyState::at_rest(place.then(body.pose()))
            }));
            scene.state.joints.extend(state.joints);
            if !(joints.is_empty() && own.input.joints.is_empty()) {
                joints.resize(first_joint, JointInput::default());
                joints.extend(own.input.joints.iter().copied());
                joints.resize(scene.state.joints.len(), JointInput::default());
            }
            let clip = clip.as_ref().and_then(|clip| placed(clip, *place)).map(Arc::new);
            let bodies = first..scene.state.bodies.len();
            scene.guests.push(Seated { name: name.clone(), bodies, place: *place, clip, tone: *tone });
        }
        scene.model = builder.build()?;
        scene.state.joints.resize(scene.model.joints().len(), JointState::default());
        scene.state.contacts.clear(); // keys count shapes
        scene.state.rest.clear();
        if !guests.is_empty() {
            scene.input.contacts = Contacts::All;
        }
        scene.input.joints = joints;
        scene.bare = Some(Arc::new(self.bare().clone()));
        Ok(Some(scene))
    }

    /// The characters that were put into it.
    pub fn guests(&self) -> &[Seated] {
        &self.guests
    }
}

/// Adds what moves of a model, under a name, at a place; its first body and joint become these.
fn add(builder: &mut ModelBuilder, model: &Model, name: &str, place: Pose, first: usize, first_joint: usize) {
    let own = |body: BodyId| BodyId((first + body.index()) as u32);
    let own_joint = |joint: JointId| JointId((first_joint + joint.index()) as u32);
    let named = |part: &str| format!("{name}/{part}");
    // In link coordinates of a body; in the world, where the place moves it.
    let link = |pose: Pose, body: Option<BodyId>| match body {
        Some(body) => Pose::new(pose.rotation, pose.translation + model.body(body).centre_in_link),
        None => place.then(pose),
    };
    for body in model.bodies() {
        let start = place.then(body.start).then(Pose::at(-body.centre_in_link));
        let spec = BodySpec::new(named(&body.name)).pose(start).mass(body.mass).material(body.material);
        let spec = spec.inertia(body.inertia, body.centre_in_link);
        let spec = spec.group(body.groups.member).collides_with(body.groups.collides_with);
        builder.body(body.shapes.iter().fold(spec, |spec, part| {
            let Pose { rotation, translation } = part.body_from_shape;
            // the mass is given: the density does not matter
            spec.shape_at(part.shape.clone(), 1.0, Pose::new(rotation, translation + body.centre_in_link))
        }));
    }
    for joint in model.joints() {
        let frames = (link(joint.child_from_joint, Some(joint.child)), link(joint.parent_from_joint, joint.parent));
        let spec = JointSpec::new(named(&joint.name), joint.mask, own(joint.child), joint.parent.map(own))
            .frames(frames.0, frames.1)
            .rotation_spring(joint.rotation_spring)
            .slide_spring(joint.slide_spring)
            .limits(joint.limits);
        let spec = joint.motor.map_or(spec.clone(), |motor| spec.motor(motor));
        builder.joint(if joint.collide { spec.collide() } else { spec });
    }
    for spring in model.anchor_springs() {
        builder.anchor_spring(AnchorSpringSpec {
            name: named(&spring.name),
            a: own(spring.a).into(),
            point_in_a: link(Pose::at(spring.point_in_a), Some(spring.a)).translation,
            b: spring.b.map(own).into(),
            point_in_b: link(Pose::at(spring.point_in_b), spring.b).translation,
            stiffness: spring.stiffness,
            damping: spring.damping,
            rest_length: spring.rest_length,
        });
    }
    for coupling in model.couplings() {
        let (follower, leader) = (own_joint(coupling.follower), coupling.leader.map(own_joint));
        builder.coupling(Coupling { name: named(&coupling.name), follower, leader, ..coupling.clone() });
    }
    for tracker in model.trackers() {
        builder.tracker(TrackerSpec {
            name: named(&tracker.name),
            body: own(tracker.body).into(),
            point: link(Pose::at(tracker.point), Some(tracker.body)).translation,
            stiffness: tracker.stiffness,
            damping: tracker.damping,
            rotation_stiffness: tracker.rotation_stiffness,
            rotation_damping: tracker.rotation_damping,
        });
    }
    let count = model.bodies().len() as u32;
    for a in (0..count).map(BodyId) {
        for b in (a.0 + 1..count).map(BodyId).filter(|b| !model.may_touch(a, *b)) {
            builder.no_collision(own(a), own(b));
        }
    }
}
