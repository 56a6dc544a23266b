//! The model: everything that is constant during a run, built and checked once.

pub mod actuator;
pub mod body;
pub mod builder;
pub mod coordinates;
pub mod coupling;
mod fingerprint;
pub mod joint;
pub mod laws;
pub mod limit;
pub mod obstacle;
pub mod shape;
pub mod spring;
pub mod state;
pub mod topology;

pub use actuator::{Motor, ServoTarget};
pub use body::{Body, PlacedShape};
pub use builder::{
    AnchorSpringSpec, BodyRef, BodySpec, JointSpec, ModelBuilder, ModelError, Problem, TrackerSpec, Warning,
};
pub use coordinates::Coordinates;
pub use coupling::{Coupling, CouplingRow};
pub use joint::{Joint, JointMask, RotationKind};
pub use limit::{Limits, Range, Stops, Swing, SwingEllipse};
pub use obstacle::{Groups, HeightField, Material, Obstacle, ObstacleShape, ObstacleSpec};
pub use shape::{Shape, ShapeFault, Solid};
pub use spring::{AnchorSpring, RotationSpring, SlideSpring, Tracker};
pub use state::{BodyState, ContactMemory, JointState, MOST_LENGTH, NodeState, Rest, State, Strayed};
pub use topology::{Topology, TreeNode};

use crate::contact::Colliders;
use crate::flesh::Flesh;
use crate::maths::Pose;
use crate::skin::Skin;
use std::sync::Arc;

/// A body of a [`Model`], by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BodyId(pub u32);

/// A joint of a [`Model`], by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct JointId(pub u32);

/// A tracker of a [`Model`], by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TrackerId(pub u32);

/// An obstacle of a [`Model`], by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ObstacleId(pub u32);

impl BodyId {
    /// Index into [`Model::bodies`] and [`State::bodies`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl JointId {
    /// Index into [`Model::joints`] and [`State::joints`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl TrackerId {
    /// Index into [`Model::trackers`] and [`Input::targets`](crate::Input::targets).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ObstacleId {
    /// Index into [`Model::obstacles`] and [`Input::obstacles`](crate::Input::obstacles).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Everything that is constant during a run. Made by [`ModelBuilder`]; not changed afterwards.
#[derive(Clone, Debug)]
pub struct Model {
    bodies: Vec<Body>,
    joints: Vec<Joint>,
    anchor_springs: Vec<AnchorSpring>,
    couplings: Vec<Coupling>,
    trackers: Vec<Tracker>,
    obstacles: Vec<Obstacle>,
    /// Pairs of bodies that do not touch each other, the smaller id first, in order.
    strangers: Vec<(BodyId, BodyId)>,
    flesh: Option<Arc<Flesh>>,
    skin: Option<Arc<Skin>>,
    /// The shapes of bodies and obstacles, made ready for contacts.
    colliders: Arc<Colliders>,
    /// The joints with hard limits.
    hard_limits: Vec<JointId>,
    topology: Topology,
    warnings: Vec<Warning>,
    fingerprint: u64,
}

impl Model {
    /// The bodies, in the order they were added.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// The joints, in the order they were added.
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// Springs between anchors.
    pub fn anchor_springs(&self) -> &[AnchorSpring] {
        &self.anchor_springs
    }

    /// Joints that follow others.
    pub fn couplings(&self) -> &[Coupling] {
        &self.couplings
    }

    /// Springs to tracked poses.
    pub fn trackers(&self) -> &[Tracker] {
        &self.trackers
    }

    /// What bodies touch and cannot move.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// Soft matter around the bodies, if there is any.
    pub fn flesh(&self) -> Option<&Flesh> {
        self.flesh.as_deref()
    }

    /// A soft layer under the character's surface, if it has one.
    pub fn skin(&self) -> Option<&Skin> {
        self.skin.as_deref()
    }

    /// Number of nodes in [`State::nodes`]: free ones of the flesh, or vertices of the skin.
    pub fn nodes(&self) -> usize {
        self.flesh().map_or(0, |flesh| flesh.free) + self.skin().map_or(0, Skin::nodes)
    }

    /// The shapes of bodies and obstacles, made ready for contacts.
    pub(crate) fn colliders(&self) -> &Colliders {
        &self.colliders
    }

    /// Whether two bodies may touch each other: not when a joint joins them, unless it says [`JointSpec::collide`], nor when
    /// [`ModelBuilder::no_collision`] or their groups forbid it.
    pub fn may_touch(&self, a: BodyId, b: BodyId) -> bool {
        a != b
            && self.body(a).groups.meet(self.body(b).groups)
            && self.strangers.binary_search(&(a.min(b), a.max(b))).is_err()
    }

    /// The joints whose limits are [hard](Stops::Hard).
    pub fn hard_limits(&self) -> &[JointId] {
        &self.hard_limits
    }

    /// The spanning tree.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What the builder noticed but accepted.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// A number that differs when anything differs that acts on the motion or the picture: all but names (FNV-1a over the bits). It
    /// tells whether a take or a [`Work`](crate::Work) belongs to this model.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// One body.
    pub fn body(&self, id: BodyId) -> &Body {
        &self.bodies[id.index()]
    }

    /// One joint.
    pub fn joint(&self, id: JointId) -> &Joint {
        &self.joints[id.index()]
    }

    /// The body of this name.
    pub fn find_body(&self, name: &str) -> Option<BodyId> {
        self.bodies.iter().position(|b| b.name == name).map(|i| BodyId(i as u32))
    }

    /// One obstacle.
    pub fn obstacle(&self, id: ObstacleId) -> &Obstacle {
        &self.obstacles[id.index()]
    }

    /// The obstacle of this name.
    pub fn find_obstacle(&self, name: &str) -> Option<ObstacleId> {
        self.obstacles.iter().position(|o| o.name == name).map(|i| ObstacleId(i as u32))
    }

    /// The joint of this name.
    pub fn find_joint(&self, name: &str) -> Option<JointId> {
        self.joints.iter().position(|j| j.name == name).map(|i| JointId(i as u32))
    }

    /// The tracker of this name.
    pub fn find_tracker(&self, name: &str) -> Option<TrackerId> {
        self.trackers.iter().position(|t| t.name == name).map(|i| TrackerId(i as u32))
    }

    /// The state at the start: bodies where they were built, at rest, at time 0.
    pub fn start(&self) -> State {
        let bodies: Vec<BodyState> = self.bodies.iter().map(|b| BodyState::at_rest(b.start)).collect();
        let mut state = State {
            time: 0.0,
            last_dt: 0.0,
            remembers: false,
            bodies,
            joints: vec![JointState::default(); self.joints.len()],
            contacts: Vec::new(),
            rest: Vec::new(),
            nodes: self
                .flesh
                .iter()
                .flat_map(|flesh| &flesh.start[..flesh.free])
                .map(|&x| NodeState::at_rest(x))
                .chain(std::iter::repeat_n(NodeState::default(), self.skin().map_or(0, Skin::nodes)))
                .collect(),
        };
        state.recount_turns(self);
        state
    }

    /// Total mass, flesh and skin included \[kg\].
    pub fn mass(&self) -> f64 {
        let flesh: f64 = self.flesh.iter().flat_map(|flesh| &flesh.masses[..flesh.free]).sum();
        let skin: f64 = self.skin.iter().flat_map(|skin| &skin.masses).sum();
        self.bodies.iter().map(|b| b.mass).sum::<f64>() + flesh + skin
    }

    /// How far its bodies are apart at the start \[m\]: the diagonal of the box around their centres; for one body the distance of its joint,
    /// or a metre. Gaps, depths and roundings are judged by it.
    pub fn size(&self) -> f64 {
        let centres = || self.bodies.iter().map(|body| body.start.translation);
        let (low, high) =
            centres().fold((glam::DVec3::MAX, glam::DVec3::MIN), |(low, high), p| (low.min(p), high.max(p)));
        let arms = self.joints.iter().map(|joint| joint.child_from_joint.translation.length());
        let size = arms.fold((high - low).length(), f64::max);
        if size.is_finite() && size > 0.0 { size } else { 1.0 }
    }

    /// Pose of side b of a joint: the parent's, or the world's.
    pub fn parent_pose(&self, joint: &Joint, state: &State) -> Pose {
        joint.parent.map_or(Pose::IDENTITY, |p| state.bodies[p.index()].pose())
    }

    /// Poses and velocities of both sides of a joint.
    pub fn sides(&self, joint: &Joint, state: &State) -> joint::Sides {
        let a = &state.bodies[joint.child.index()];
        let b = joint.parent.map_or(BodyState::at_rest(Pose::IDENTITY), |p| state.bodies[p.index()]);
        joint::Sides { a: a.pose(), a_velocity: a.velocity, b: b.pose(), b_velocity: b.velocity }
    }
}
