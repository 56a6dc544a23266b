//! The state: all that is needed to go on, nothing derived. A clone is a snapshot.

use super::{BodyId, JointId, Model, joint::Joint};
use crate::contact::ContactKey;
use crate::maths::fnv::Fnv;
use crate::maths::rotation::turn_near;
use crate::maths::{Pose, Twist};
use glam::{DQuat, DVec3};

/// Places beyond this are those of no character \[m\]: squares of masses and lengths must stay finite. No file that is read may hold one.
pub const MOST_LENGTH: f64 = 1e6;

/// Pose of a body's centre of mass, with link axes, and its velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyState {
    /// Centre of mass in the world \[m\].
    pub position: DVec3,
    /// Body axes to world axes.
    pub orientation: DQuat,
    /// Velocity of the centre of mass and angular velocity, world axes.
    pub velocity: Twist,
}

impl BodyState {
    /// At a pose, without velocity.
    pub fn at_rest(pose: Pose) -> BodyState {
        BodyState { position: pose.translation, orientation: pose.rotation, velocity: Twist::ZERO }
    }

    /// `world_from_body`.
    pub fn pose(&self) -> Pose {
        Pose::new(self.orientation, self.position)
    }

    /// Velocity of the point with these body coordinates \[m/s\].
    pub fn velocity_at(&self, point: DVec3) -> DVec3 {
        self.velocity.at(self.orientation * point)
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.position.is_finite() && self.orientation.is_finite() && self.velocity.is_finite()
    }
}

/// What a joint must remember from step to step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JointState {
    /// Unwrapped angle of a hinge, or twist of a ball with a range of twist, at the present pose \[rad\]: turns are
    /// counted. Whoever places bodies by hand calls [`State::recount_turns`].
    pub angle: f64,
    /// Rotation vector of a ball from its spring's rest, in the parent's axes, at the present pose \[rad\]. It goes on beyond half a
    /// turn; within a radian of a whole turn, where a rotation vector loses its meaning, it goes back to the short way round.
    pub turn: DVec3,
    /// Force of the joint on its child over the last part of a step, world axes \[N\]: a first guess for the next. Zero where the solver needs
    /// none.
    pub force: DVec3,
    /// Of a servo's error, `∫ (target − x) dt`, for motors with an integral gain \[rad·s, or m·s\].
    pub integral: f64,
}

/// A free node of flesh, or a vertex of skin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeState {
    /// In the world; of skin the displacement in the rest pose \[m\].
    pub position: DVec3,
    /// Its rate \[m/s\].
    pub velocity: DVec3,
}

impl NodeState {
    /// At a place, without velocity.
    pub fn at_rest(position: DVec3) -> NodeState {
        NodeState { position, velocity: DVec3::ZERO }
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.position.is_finite() && self.velocity.is_finite()
    }
}

/// How long a body has been at rest, for bodies that may sleep ([`Input::sleep`](crate::Input)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rest {
    /// \[s\]
    pub seconds: f64,
    /// The largest squares of its speed in the first and the second half of the time that it takes to fall asleep \[m²/s²\].
    pub early: f64,
    /// See `early`.
    pub late: f64,
    /// A hash of what the input asked of it and, once it may sleep, of where it is: it wakes when that changes.
    pub asked: u64,
}

/// Everything needed to continue a run.
#[derive(Debug, PartialEq)]
pub struct State {
    /// \[s\]
    pub time: f64,
    /// Length of the last part of the last step \[s\]; 0 before the first.
    pub last_dt: f64,
    /// Whether the joints' `turn` and `force` are those of the present pose: some methods do not keep them.
    pub remembers: bool,
    /// By [`BodyId`].
    pub bodies: Vec<BodyState>,
    /// By [`JointId`].
    pub joints: Vec<JointState>,
    /// Contacts and hard limits that pushed in the last part, in the order of their keys.
    pub contacts: Vec<ContactMemory>,
    /// The free nodes of the flesh or the vertices of the skin, in their order; empty without either.
    pub nodes: Vec<NodeState>,
    /// By body, how long it has been at rest; empty where bodies do not sleep.
    pub rest: Vec<Rest>,
}

/// What a contact must remember from step to step: where a solver starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactMemory {
    /// Which contact.
    pub key: ContactKey,
    /// Its force on side a in the first half of the part: the impulse divided by the part's length, world axes \[N\].
    pub first: DVec3,
    /// In the second half \[N\].
    pub second: DVec3,
}

impl Clone for State {
    fn clone(&self) -> State {
        let State { time, last_dt, remembers, bodies, joints, contacts, nodes, rest } = self;
        State {
            time: *time,
            last_dt: *last_dt,
            remembers: *remembers,
            bodies: bodies.clone(),
            joints: joints.clone(),
            contacts: contacts.clone(),
            nodes: nodes.clone(),
            rest: rest.clone(),
        }
    }

    /// Keeps the room of all lists: saving a state in a step allocates nothing.
    fn clone_from(&mut self, other: &State) {
        let State { time, last_dt, remembers, bodies, joints, contacts, nodes, rest } = other;
        (self.time, self.last_dt, self.remembers) = (*time, *last_dt, *remembers);
        self.bodies.clone_from(bodies);
        self.joints.clone_from(joints);
        self.contacts.clone_from(contacts);
        self.nodes.clone_from(nodes);
        self.rest.clone_from(rest);
    }
}

/// A part of a state that is [`MOST_LENGTH`] away or farther.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strayed {
    /// A body.
    Body(BodyId),
    /// A node of the flesh or skin, by its index in [`State::nodes`].
    Node(usize),
}

impl Strayed {
    /// The body, unless it is a node.
    pub fn body(self) -> Option<BodyId> {
        match self {
            Strayed::Body(body) => Some(body),
            Strayed::Node(_) => None,
        }
    }

    /// What a message calls it: a body by its name.
    pub fn name(self, model: &Model) -> String {
        match self {
            Strayed::Body(body) => format!("\"{}\"", model.body(body).name),
            Strayed::Node(_) => self.to_string(),
        }
    }
}

impl std::fmt::Display for Strayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Strayed::Body(body) => write!(f, "body {}", body.0),
            Strayed::Node(node) => write!(f, "node {node} of the flesh"),
        }
    }
}

impl State {
    /// A body or node that is [`MOST_LENGTH`] away or farther, or nowhere.
    pub fn strayed(&self) -> Option<Strayed> {
        let is_near = |position: DVec3| position.length_squared() < MOST_LENGTH * MOST_LENGTH;
        let body = self.bodies.iter().position(|body| !is_near(body.position));
        let node = || self.nodes.iter().position(|node| !is_near(node.position)).map(Strayed::Node);
        body.map(|k| Strayed::Body(BodyId(k as u32))).or_else(node)
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.time.is_finite()
            && self.bodies.iter().all(BodyState::is_finite)
            && self.nodes.iter().all(NodeState::is_finite)
            && self
                .joints
                .iter()
                .all(|j| j.angle.is_finite() && j.turn.is_finite() && j.force.is_finite() && j.integral.is_finite())
            && self.contacts.iter().all(|c| c.first.is_finite() && c.second.is_finite())
            && self.rest.iter().all(|r| r.seconds.is_finite() && r.early.is_finite() && r.late.is_finite())
    }

    /// Takes every joint's angle from the poses, in (−π, π], and forgets what the joints remember of earlier ones: call it after
    /// placing bodies by hand.
    pub fn recount_turns(&mut self, model: &Model) {
        self.forget();
        for (k, joint) in model.joints().iter().enumerate() {
            self.joints[k].angle = joint.angle_near(self.relative_rotation(model, joint), 0.0);
        }
    }

    /// Forgets what solvers keep of one step for the next, turns of balls included.
    pub fn forget(&mut self) {
        self.remembers = false;
        self.forget_forces();
        self.rest.clear();
        self.joints.iter_mut().for_each(|joint| joint.turn = DVec3::ZERO);
    }

    /// Forgets the forces of joints and contacts: first guesses, which only some methods keep.
    pub(crate) fn forget_forces(&mut self) {
        self.contacts.clear();
        self.joints.iter_mut().for_each(|joint| joint.force = DVec3::ZERO);
    }

    /// Takes every joint's angle and turn from the poses, the values nearest the present ones: turns go on being counted. Solvers call it after
    /// moving the bodies.
    pub fn follow_turns(&mut self, model: &Model) {
        for (k, joint) in model.joints().iter().enumerate() {
            let relative = self.relative_rotation(model, joint);
            let angle = joint.angle_near(relative, self.joints[k].angle);
            let turn = match joint.turns_from_rest(relative) {
                Some(short) => turn_near(short, self.turn_of(JointId(k as u32))),
                None => DVec3::ZERO,
            };
            (self.joints[k].angle, self.joints[k].turn) = (angle, turn);
        }
        self.remembers = true;
    }

    /// The turn of a joint from its spring's rest at the last pose it is remembered of; none remembered counts as none turned.
    pub(crate) fn turn_of(&self, joint: JointId) -> DVec3 {
        if self.remembers { self.joints[joint.index()].turn } else { DVec3::ZERO }
    }

    /// The force of a joint over the last part; none remembered counts as none.
    pub(crate) fn remembered_force(&self, joint: usize) -> DVec3 {
        if self.remembers { self.joints[joint].force } else { DVec3::ZERO }
    }

    /// The rotation of a joint's child frame in its parent frame.
    pub fn relative_rotation(&self, model: &Model, joint: &Joint) -> DQuat {
        let a = self.bodies[joint.child.index()].orientation;
        joint.relative_rotation(a, model.parent_pose(joint, self).rotation)
    }

    /// A number that differs when any bit of the state differs (FNV-1a over the bits).
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.f64s(&[self.time, self.last_dt]);
        for b in &self.bodies {
            hash.f64s(&b.position.to_array());
            hash.f64s(&b.orientation.to_array());
            hash.f64s(&b.velocity.linear.to_array());
            hash.f64s(&b.velocity.angular.to_array());
        }
        for j in &self.joints {
            hash.f64(j.angle);
            hash.f64s(&j.turn.to_array());
            hash.f64s(&j.force.to_array());
            hash.f64(j.integral);
        }
        for c in &self.contacts {
            let ContactKey { shape_a, shape_b, place, feature } = c.key;
            hash.f64s(&[shape_a, shape_b, place, feature].map(f64::from));
            hash.f64s(&c.first.to_array());
            hash.f64s(&c.second.to_array());
        }
        for node in &self.nodes {
            hash.f64s(&node.position.to_array());
            hash.f64s(&node.velocity.to_array());
        }
        for rest in &self.rest {
            hash.f64s(&[rest.seconds, rest.early, rest.late]);
            hash.u64(rest.asked);
        }
        hash.f64(if self.remembers { 1.0 } else { 0.0 });
        hash.finish()
    }
}
