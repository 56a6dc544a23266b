//! Builds and checks a [`Model`]. All problems are found at once, each names its part and its remedy.

use super::shape::outer;
use super::*;
use crate::contact::Colliders;
use crate::flesh::{self, FleshSpec};
use crate::maths::{Pose, rotation};
use crate::skin::{self, SkinSpec};
use glam::{DMat3, DQuat, DVec3};
use std::collections::HashMap;
use std::sync::Arc;

/// A body named in a builder call: by id, by name, or the world.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyRef {
    /// Fixed space.
    World,
    /// The id that [`ModelBuilder::body`] returned.
    Id(BodyId),
    /// A name; the body may be added later.
    Name(String),
}

impl From<BodyId> for BodyRef {
    fn from(id: BodyId) -> Self {
        BodyRef::Id(id)
    }
}
impl From<&str> for BodyRef {
    fn from(name: &str) -> Self {
        BodyRef::Name(name.to_owned())
    }
}
impl From<Option<BodyId>> for BodyRef {
    fn from(id: Option<BodyId>) -> Self {
        id.map_or(BodyRef::World, BodyRef::Id)
    }
}

/// A body to be added.
#[derive(Clone, Debug)]
pub struct BodySpec {
    name: String,
    world_from_link: Pose,
    shapes: Vec<(Shape, Pose, f64)>,
    mass: Option<f64>,
    inertia: Option<(DMat3, DVec3)>,
    material: Material,
    groups: Groups,
}

impl BodySpec {
    /// A body of this name, its link frame at the world's origin.
    pub fn new(name: impl Into<String>) -> BodySpec {
        BodySpec {
            name: name.into(),
            world_from_link: Pose::IDENTITY,
            shapes: Vec::new(),
            mass: None,
            inertia: None,
            material: Material::default(),
            groups: Groups::default(),
        }
    }

    /// Where the link frame is at the start.
    pub fn pose(mut self, world_from_link: Pose) -> BodySpec {
        self.world_from_link = world_from_link;
        self
    }

    /// Adds a shape of this density \[kg/m³\] at the link's origin.
    pub fn shape(self, shape: Shape, density: f64) -> BodySpec {
        self.shape_at(shape, density, Pose::IDENTITY)
    }

    /// Adds a shape at a place in link coordinates.
    pub fn shape_at(mut self, shape: Shape, density: f64, link_from_shape: Pose) -> BodySpec {
        self.shapes.push((shape, link_from_shape, density));
        self
    }

    /// Total mass \[kg\]: the inertia of the shapes is scaled to it.
    pub fn mass(mut self, mass: f64) -> BodySpec {
        self.mass = Some(mass);
        self
    }

    /// Inertia about the centre of mass in link axes \[kg·m²\], and the centre of mass in link coordinates \[m\].
    pub fn inertia(mut self, inertia: DMat3, centre_in_link: DVec3) -> BodySpec {
        self.inertia = Some((inertia, centre_in_link));
        self
    }

    /// How its surface rubs and bounces.
    pub fn material(mut self, material: Material) -> BodySpec {
        self.material = material;
        self
    }

    /// The groups it is in, one bit each; the first unless told.
    pub fn group(mut self, bits: u32) -> BodySpec {
        self.groups.member = bits;
        self
    }

    /// The groups it collides with; all unless told. Two parts touch when each is in a group that the other collides with.
    pub fn collides_with(mut self, bits: u32) -> BodySpec {
        self.groups.collides_with = bits;
        self
    }
}

/// A joint to be added.
#[derive(Clone, Debug)]
pub struct JointSpec {
    name: String,
    child: BodyRef,
    parent: BodyRef,
    mask: JointMask,
    place: Place,
    rotation_spring: RotationSpring,
    slide_spring: SlideSpring,
    limits: Limits,
    motor: Option<Motor>,
    collide: bool,
}

#[derive(Clone, Debug)]
enum Place {
    /// One frame in the world at the start: both sides meet there.
    World(Pose),
    /// The frame on each side, in link coordinates.
    Links(Pose, Pose),
}

impl JointSpec {
    /// A joint between two bodies, its frame at the world's origin until placed.
    pub fn new(
        name: impl Into<String>,
        mask: JointMask,
        child: impl Into<BodyRef>,
        parent: impl Into<BodyRef>,
    ) -> JointSpec {
        JointSpec {
            name: name.into(),
            child: child.into(),
            parent: parent.into(),
            mask,
            place: Place::World(Pose::IDENTITY),
            rotation_spring: RotationSpring::default(),
            slide_spring: SlideSpring::default(),
            limits: Limits::default(),
            motor: None,
            collide: false,
        }
    }

    /// Where the joint is in the world at the start; both sides meet there.
    pub fn at(self, point: DVec3) -> JointSpec {
        let rotation = match self.place {
            Place::World(pose) => pose.rotation,
            Place::Links(..) => DQuat::IDENTITY,
        };
        self.frame(Pose::new(rotation, point))
    }

    /// The direction of the joint's X in the world at the start.
    pub fn axis(self, direction: DVec3) -> JointSpec {
        let point = match self.place {
            Place::World(pose) => pose.translation,
            Place::Links(..) => DVec3::ZERO,
        };
        // A zero or non-finite direction becomes a non-finite frame, which the builder reports by the joint's name.
        self.frame(Pose::new(rotation::between(DVec3::X, direction / direction.length()), point))
    }

    /// The whole joint frame in the world at the start.
    pub fn frame(mut self, world_from_joint: Pose) -> JointSpec {
        self.place = Place::World(world_from_joint);
        self
    }

    /// The frame on each side in link coordinates (the parent's in world coordinates when it is the world).
    pub fn frames(mut self, child_link_from_joint: Pose, parent_link_from_joint: Pose) -> JointSpec {
        self.place = Place::Links(child_link_from_joint, parent_link_from_joint);
        self
    }

    /// Spring \[N·m/rad\] and damper \[N·m·s/rad\] on the free rotations, slack when the frames are aligned.
    pub fn spring(mut self, stiffness: f64, damping: f64) -> JointSpec {
        self.rotation_spring.stiffness = stiffness;
        self.rotation_spring.damping = damping;
        self
    }

    /// The whole rotation spring.
    pub fn rotation_spring(mut self, spring: RotationSpring) -> JointSpec {
        self.rotation_spring = spring;
        self
    }

    /// Spring and damper on the free translations.
    pub fn slide_spring(mut self, spring: SlideSpring) -> JointSpec {
        self.slide_spring = spring;
        self
    }

    /// The limits.
    pub fn limits(mut self, limits: Limits) -> JointSpec {
        self.limits = limits;
        self
    }

    /// The motor.
    pub fn motor(mut self, motor: Motor) -> JointSpec {
        self.motor = Some(motor);
        self
    }

    /// Lets the two bodies touch each other; joined bodies do not otherwise.
    pub fn collide(mut self) -> JointSpec {
        self.collide = true;
        self
    }
}

/// A spring between anchors to be added; points in link coordinates (world coordinates for the world).
#[derive(Clone, Debug)]
pub struct AnchorSpringSpec {
    /// Unique among the anchor springs.
    pub name: String,
    /// Side a.
    pub a: BodyRef,
    /// \[m\]
    pub point_in_a: DVec3,
    /// Side b.
    pub b: BodyRef,
    /// \[m\]
    pub point_in_b: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
    /// \[m\]
    pub rest_length: f64,
}

/// A tracker to be added; the point in link coordinates.
#[derive(Clone, Debug)]
pub struct TrackerSpec {
    /// Unique among the trackers.
    pub name: String,
    /// The body that is pulled.
    pub body: BodyRef,
    /// \[m\]
    pub point: DVec3,
    /// \[N/m\]
    pub stiffness: f64,
    /// \[N·s/m\]
    pub damping: f64,
    /// \[N·m/rad\]
    pub rotation_stiffness: f64,
    /// \[N·m·s/rad\]
    pub rotation_damping: f64,
}

/// Something wrong with a model: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {what} ({remedy}) [{code}]")]
pub struct Problem {
    /// Stable code, listed in `docs/errors.md`.
    pub code: &'static str,
    /// The part: `body "arm"`, `joint "elbow"`.
    pub part: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// Something noticed but accepted.
pub type Warning = Problem;

/// Every problem the builder found.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.problems.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("\n"))]
pub struct ModelError {
    /// At least one.
    pub problems: Vec<Problem>,
}

/// A builder that holds the parts of a model, to which more can be added.
///
/// ```
/// use supple::*;
/// let scene = Scene::parse("robot").unwrap();
/// let mut builder = ModelBuilder::from(&scene.model);
/// builder.obstacle(ObstacleSpec::floor("floor", 0.0));
/// let model = builder.build()?;
/// assert_eq!(model.bodies().len(), scene.model.bodies().len());
/// assert!((model.mass() - scene.model.mass()).abs() < 1e-9);
/// # Ok::<(), ModelError>(())
/// ```
impl From<&Model> for ModelBuilder {
    fn from(model: &Model) -> ModelBuilder {
        let bodies = model.bodies.iter().map(BodySpec::from).collect();
        let link = |pose: Pose, body: Option<BodyId>| {
            let centre = body.map_or(DVec3::ZERO, |b| model.body(b).centre_in_link);
            Pose::new(pose.rotation, pose.translation + centre)
        };
        let joint = |joint: &Joint| JointSpec {
            name: joint.name.clone(),
            child: BodyRef::Id(joint.child),
            parent: joint.parent.into(),
            mask: joint.mask,
            place: Place::Links(
                link(joint.child_from_joint, Some(joint.child)),
                link(joint.parent_from_joint, joint.parent),
            ),
            rotation_spring: joint.rotation_spring,
            slide_spring: joint.slide_spring,
            limits: joint.limits,
            motor: joint.motor,
            collide: joint.collide,
        };
        let spring = |spring: &AnchorSpring| AnchorSpringSpec {
            name: spring.name.clone(),
            a: BodyRef::Id(spring.a),
            point_in_a: link(Pose::at(spring.point_in_a), Some(spring.a)).translation,
            b: spring.b.into(),
            point_in_b: link(Pose::at(spring.point_in_b), spring.b).translation,
            stiffness: spring.stiffness,
            damping: spring.damping,
            rest_length: spring.rest_length,
        };
        let tracker = |tracker: &Tracker| TrackerSpec {
            name: tracker.name.clone(),
            body: BodyRef::Id(tracker.body),
            point: link(Pose::at(tracker.point), Some(tracker.body)).translation,
            stiffness: tracker.stiffness,
            damping: tracker.damping,
            rotation_stiffness: tracker.rotation_stiffness,
            rotation_damping: tracker.rotation_damping,
        };
        let obstacle = |obstacle: &Obstacle| ObstacleSpec {
            name: obstacle.name.clone(),
            shape: obstacle.shape.clone(),
            pose: obstacle.pose,
            material: obstacle.material,
            groups: obstacle.groups,
        };
        // Joined bodies are strangers by their joints.
        let joined = |a: BodyId, b: BodyId| {
            let pair = |j: &&Joint| {
                [Some(j.child), j.parent] == [Some(a), Some(b)] || [Some(j.child), j.parent] == [Some(b), Some(a)]
            };
            model.joints.iter().filter(|j| !j.collide).any(|j| pair(&j))
        };
        let strangers = model.strangers.iter().filter(|(a, b)| !joined(*a, *b));
        ModelBuilder {
            bodies,
            joints: model.joints.iter().map(joint).collect(),
            anchor_springs: model.anchor_springs.iter().map(spring).collect(),
            couplings: model.couplings.clone(),
            trackers: model.trackers.iter().map(tracker).collect(),
            obstacles: model.obstacles.iter().map(obstacle).collect(),
            strangers: strangers.map(|&(a, b)| (BodyRef::Id(a), BodyRef::Id(b))).collect(),
            flesh: None, // its nodes' masses are in the bodies by now: it cannot be put around them once more
            skin: None,  // as flesh
        }
    }
}

impl From<&Body> for BodySpec {
    fn from(body: &Body) -> BodySpec {
        let in_link = |pose: Pose| Pose::new(pose.rotation, pose.translation + body.centre_in_link);
        // The mass and inertia are given: the density does not matter.
        let shapes = body.shapes.iter().map(|placed| (placed.shape.clone(), in_link(placed.body_from_shape), 1.0));
        BodySpec {
            name: body.name.clone(),
            world_from_link: body.start.then(Pose::at(-body.centre_in_link)),
            shapes: shapes.collect(),
            mass: Some(body.mass),
            inertia: Some((body.inertia, body.centre_in_link)),
            material: body.material,
            groups: body.groups,
        }
    }
}

/// Collects parts, then checks them all and makes the [`Model`].
///
/// ```
/// use glam::DVec3;
/// use supple::*;
/// let mut builder = ModelBuilder::new();
/// let rod = builder.body(
///     BodySpec::new("rod").shape(Shape::cuboid(1.0, 0.1, 0.1), 500.0).pose(Pose::at(DVec3::new(0.5, 0.0, 0.0))),
/// );
/// builder.joint(JointSpec::new("pivot", JointMask::HINGE, rod, BodyRef::World).axis(DVec3::Z));
/// let model = builder.build()?;
/// assert!((model.mass() - 5.0).abs() < 1e-12);
///
/// let mut wrong = ModelBuilder::new();
/// wrong.body(BodySpec::new("ghost").mass(-1.0));
/// wrong.joint(JointSpec::new("knee", JointMask::BALL, "ghost", "shin"));
/// let error = wrong.build().unwrap_err();
/// let codes: Vec<_> = error.problems.iter().map(|p| p.code).collect();
/// assert_eq!(codes, ["model/mass", "model/unknown-body"]);
/// # Ok::<(), ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ModelBuilder {
    bodies: Vec<BodySpec>,
    joints: Vec<JointSpec>,
    anchor_springs: Vec<AnchorSpringSpec>,
    couplings: Vec<Coupling>,
    trackers: Vec<TrackerSpec>,
    obstacles: Vec<ObstacleSpec>,
    strangers: Vec<(BodyRef, BodyRef)>,
    flesh: Option<FleshSpec>,
    skin: Option<SkinSpec>,
}

impl ModelBuilder {
    /// An empty builder.
    pub fn new() -> ModelBuilder {
        ModelBuilder::default()
    }

    /// Adds a body.
    pub fn body(&mut self, body: BodySpec) -> BodyId {
        self.bodies.push(body);
        BodyId(self.bodies.len() as u32 - 1)
    }

    /// Adds a joint.
    pub fn joint(&mut self, joint: JointSpec) -> JointId {
        self.joints.push(joint);
        JointId(self.joints.len() as u32 - 1)
    }

    /// Adds a spring between anchors.
    pub fn anchor_spring(&mut self, spring: AnchorSpringSpec) {
        self.anchor_springs.push(spring);
    }

    /// Lets a joint follow another.
    pub fn coupling(&mut self, coupling: Coupling) {
        self.couplings.push(coupling);
    }

    /// Adds a tracker.
    pub fn tracker(&mut self, tracker: TrackerSpec) -> TrackerId {
        self.trackers.push(tracker);
        TrackerId(self.trackers.len() as u32 - 1)
    }

    /// Takes all trackers out, for others in their place.
    pub fn clear_trackers(&mut self) {
        self.trackers.clear();
    }

    /// Adds an obstacle.
    pub fn obstacle(&mut self, obstacle: ObstacleSpec) -> ObstacleId {
        self.obstacles.push(obstacle);
        ObstacleId(self.obstacles.len() as u32 - 1)
    }

    /// Puts flesh around the bodies, in place of any given before. Bodies take over the mass of the nodes that are fixed to them.
    pub fn flesh(&mut self, flesh: FleshSpec) {
        self.flesh = Some(flesh);
    }

    /// Puts a soft skin on the bodies, in place of any given before. Bodies take over the mass of the layer's inner side.
    pub fn skin(&mut self, skin: SkinSpec) {
        self.skin = Some(skin);
    }

    /// Keeps two bodies from touching each other, such as neighbours of a joint that overlap where they bend.
    pub fn no_collision(&mut self, a: impl Into<BodyRef>, b: impl Into<BodyRef>) {
        self.strangers.push((a.into(), b.into()));
    }

    /// Checks everything and makes the model, or tells every problem.
    pub fn build(self) -> Result<Model, ModelError> {
        let mut check = Check { problems: Vec::new(), names: HashMap::new() };
        if self.bodies.is_empty() {
            check.problem("model/empty", "model".into(), "it has no body", "add at least one body");
        }
        for (i, spec) in self.bodies.iter().enumerate() {
            if check.names.insert(spec.name.clone(), BodyId(i as u32)).is_some() {
                check.problem(
                    "model/duplicate-name",
                    body_part(&spec.name),
                    "another body has this name",
                    "give each body its own name",
                );
            }
        }
        check.unique("joint", self.joints.iter().map(|j| j.name.as_str()));
        check.unique("anchor spring", self.anchor_springs.iter().map(|s| s.name.as_str()));
        check.unique("coupling", self.couplings.iter().map(|c| c.name.as_str()));
        check.unique("tracker", self.trackers.iter().map(|t| t.name.as_str()));
        check.unique("obstacle", self.obstacles.iter().map(|o| o.name.as_str()));

        if self.flesh.is_some() && self.skin.is_some() {
            let what = "there is a cage of flesh and a skin";
            check.problem("model/skin", "skin".into(), what, "give a character one kind of flesh");
        }
        let attached = self.flesh.and_then(|spec| check.flesh(spec, self.bodies.len()));
        let covered = self.skin.and_then(|spec| check.skin(spec, self.bodies.len()));
        let bodies: Vec<Body> = (0..)
            .map(BodyId)
            .zip(self.bodies)
            .map(|(id, spec)| check.body(id, spec, attached.as_ref(), covered.as_ref()))
            .collect();
        let joints: Vec<Joint> = self.joints.into_iter().filter_map(|spec| check.joint(spec, &bodies)).collect();
        let anchor_springs: Vec<AnchorSpring> =
            self.anchor_springs.into_iter().filter_map(|spec| check.anchor_spring(spec, &bodies)).collect();
        for coupling in &self.couplings {
            if let Some((what, remedy)) = coupling::fault(coupling, &joints, &self.couplings) {
                check.problem("model/coupling", format!("coupling \"{}\"", coupling.name), what, remedy);
            }
        }
        let trackers: Vec<Tracker> =
            self.trackers.into_iter().filter_map(|spec| check.tracker(spec, &bodies)).collect();
        let obstacles: Vec<Obstacle> = self.obstacles.into_iter().map(|spec| check.obstacle(spec)).collect();
        let mut strangers: Vec<(BodyId, BodyId)> =
            self.strangers.into_iter().filter_map(|(a, b)| check.strangers(&a, &b, bodies.len())).collect();
        if !check.problems.is_empty() {
            return Err(ModelError { problems: check.problems });
        }

        for joint in joints.iter().filter(|j| !j.collide) {
            if let Some(parent) = joint.parent {
                strangers.push((joint.child.min(parent), joint.child.max(parent)));
            }
        }
        strangers.sort_unstable();
        strangers.dedup();

        let flesh = attached.map(|attached| Arc::new(attached.finish(&bodies)));
        let joined: Vec<(BodyId, BodyId)> = joints.iter().filter_map(|j| Some((j.child, j.parent?))).collect();
        let skin = covered.map(|covered| Arc::new(covered.finish(&bodies, &joined)));
        let topology = Topology::new(&bodies, &joints);
        let colliders = Arc::new(Colliders::new(&bodies, &obstacles));
        let fingerprint = fingerprint::fingerprint(&fingerprint::Parts {
            bodies: &bodies,
            joints: &joints,
            anchor_springs: &anchor_springs,
            couplings: &self.couplings,
            trackers: &trackers,
            obstacles: &obstacles,
            strangers: &strangers,
            flesh: flesh.as_deref(),
            skin: skin.as_deref(),
        });
        let is_hard = |(_, joint): &(usize, &Joint)| joint.limits.are_hard();
        let hard_limits = joints.iter().enumerate().filter(is_hard).map(|(k, _)| JointId(k as u32)).collect();
        let mut model = Model {
            bodies,
            joints,
            anchor_springs,
            couplings: self.couplings,
            trackers,
            obstacles,
            strangers,
            flesh,
            skin,
            colliders,
            hard_limits,
            topology,
            warnings: Vec::new(),
            fingerprint,
        };
        model.warnings = warnings(&model);
        Ok(model)
    }
}

fn body_part(name: &str) -> String {
    format!("body \"{name}\"")
}

struct Check {
    problems: Vec<Problem>,
    names: HashMap<String, BodyId>,
}

impl Check {
    fn problem(&mut self, code: &'static str, part: String, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem { code, part, what: what.into(), remedy: remedy.into() });
    }

    fn unique<'a>(&mut self, kind: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = std::collections::HashSet::new();
        for name in names {
            if !seen.insert(name) {
                self.problem(
                    "model/duplicate-name",
                    format!("{kind} \"{name}\""),
                    format!("another {kind} has this name"),
                    format!("give each {kind} its own name"),
                );
            }
        }
    }

    fn non_negative(&mut self, code: &'static str, part: &str, what: &str, value: f64) {
        if !(value.is_finite() && value >= 0.0) {
            self.problem(
                code,
                part.to_owned(),
                format!("{what} is {value}"),
                "give a finite value that is not negative",
            );
        }
    }

    fn finite(&mut self, part: &str, what: &str, finite: bool) {
        if !finite {
            self.problem("model/not-finite", part.to_owned(), format!("{what} is not finite"), "give finite numbers");
        }
    }

    fn resolve(&mut self, body: &BodyRef, part: &str, count: usize) -> Option<Option<BodyId>> {
        match body {
            BodyRef::World => Some(None),
            BodyRef::Id(id) if id.index() < count => Some(Some(*id)),
            BodyRef::Id(id) => {
                self.problem(
                    "model/unknown-body",
                    part.to_owned(),
                    format!("there is no body number {}", id.0),
                    "use an id this builder returned",
                );
                None
            }
            BodyRef::Name(name) => match self.names.get(name) {
                Some(id) => Some(Some(*id)),
                None => {
                    self.problem(
                        "model/unknown-body",
                        part.to_owned(),
                        format!("there is no body \"{name}\""),
                        "add the body or correct the name",
                    );
                    None
                }
            },
        }
    }

    /// As [`resolve`](Self::resolve), where the world will not do.
    fn resolve_body(&mut self, body: &BodyRef, part: &str, count: usize) -> Option<BodyId> {
        let id = self.resolve(body, part, count)?;
        if id.is_none() {
            self.problem("model/unknown-body", part.to_owned(), "the world cannot stand here", "name a body");
        }
        id
    }

    /// Flesh whose holders exist, or a problem.
    fn flesh(&mut self, spec: FleshSpec, count: usize) -> Option<flesh::Attached> {
        let holders: Vec<Option<BodyId>> =
            spec.holds.iter().map(|hold| self.resolve_body(&hold.body, "flesh", count)).collect();
        let holders: Vec<BodyId> = holders.into_iter().collect::<Option<_>>()?;
        for (k, hold) in spec.holds.iter().enumerate() {
            let finite = hold.from.is_finite() && hold.to.is_finite() && hold.reach.is_finite();
            self.finite(&format!("hold {k} of the flesh"), "a number", finite);
        }
        match flesh::attach(spec, &holders) {
            Ok(attached) => Some(attached),
            Err(what) => {
                let remedy = "give a closed surface, a cage around it and a material that can be";
                self.problem("model/flesh", "flesh".into(), what, remedy);
                None
            }
        }
    }

    /// Skin whose bones exist, or a problem.
    fn skin(&mut self, spec: SkinSpec, count: usize) -> Option<skin::Attached> {
        let holders: Vec<Option<BodyId>> =
            spec.bones.iter().map(|bone| self.resolve_body(&bone.body, "skin", count)).collect();
        let holders: Vec<BodyId> = holders.into_iter().collect::<Option<_>>()?;
        match skin::attach(spec, &holders, count) {
            Ok(attached) => Some(attached),
            Err(what) => {
                let remedy = "give a closed surface, a bone for each vertex and a material that can be";
                self.problem("model/skin", "skin".into(), what, remedy);
                None
            }
        }
    }

    fn body(
        &mut self,
        id: BodyId,
        mut spec: BodySpec,
        flesh: Option<&flesh::Attached>,
        skin: Option<&skin::Attached>,
    ) -> Body {
        let part = body_part(&spec.name);
        self.finite(&part, "its pose", spec.world_from_link.is_finite());
        let rotation = self.unit(&part, spec.world_from_link.rotation);

        // Sum of the shapes, in link coordinates.
        let (mut mass, mut moment, mut about_origin) = (0.0, DVec3::ZERO, DMat3::ZERO);
        for (shape, place, density) in &mut spec.shapes {
            self.finite(&part, "a shape's place", place.is_finite());
            place.rotation = self.unit(&part, place.rotation);
            if !(density.is_finite() && *density > 0.0) {
                self.problem(
                    "model/shape",
                    part.clone(),
                    format!("a shape has density {density}"),
                    "give a positive density in kg/m³",
                );
            }
            match shape.solid() {
                Ok(solid) => {
                    let m = *density * solid.volume;
                    let centre = place.transform_point(solid.centre);
                    mass += m;
                    moment += centre * m;
                    about_origin +=
                        rotation::turned_inertia(place.rotation, solid.inertia) * *density + about(centre, m);
                }
                Err(fault) => self.problem(
                    "model/shape",
                    part.clone(),
                    fault.to_string(),
                    "give positive lengths, four points not in a plane, or a closed mesh with outward faces",
                ),
            }
        }
        let (mut centre, mut inertia) = if mass > 0.0 {
            (moment / mass, about_origin - about(moment / mass, mass))
        } else {
            (DVec3::ZERO, DMat3::ZERO)
        };
        if let Some(given) = spec.mass {
            inertia *= if mass > 0.0 { given / mass } else { 0.0 };
            mass = given;
        }
        if let Some((given, given_centre)) = spec.inertia {
            inertia = (given + given.transpose()) * 0.5;
            centre = given_centre;
        }
        let core = skin.map_or(1.0, |skin| skin.core_share(id, mass));
        (mass, inertia) = (mass * core, inertia * core);
        // What flesh is fixed to it, as points
        let link_from_world = Pose::new(rotation, spec.world_from_link.translation).inverse();
        let start = Pose::new(rotation, spec.world_from_link.translation);
        let under_skin = skin.iter().flat_map(|skin| skin.carried_by(id, start));
        for (at, m) in flesh.iter().flat_map(|flesh| flesh.carried_by(id)).chain(under_skin) {
            let at = link_from_world.transform_point(at);
            let joined = (centre * mass + at * m) / (mass + m);
            inertia += about(centre - joined, mass) + about(at - joined, m);
            (mass, centre) = (mass + m, joined);
        }
        if !(mass.is_finite() && mass > 0.0) {
            self.problem(
                "model/mass",
                part.clone(),
                format!("its mass is {mass} kg"),
                "give it a positive mass, or weld its shapes to a neighbour instead of making it a body",
            );
        } else if let Some(what) = inertia_fault(inertia) {
            self.problem(
                "model/inertia",
                part.clone(),
                what,
                "give a symmetric positive inertia whose principal moments obey the triangle inequality, or a shape",
            );
        }
        self.finite(&part, "its centre of mass", centre.is_finite());
        let shapes = spec.shapes.into_iter().map(|(shape, place, _)| PlacedShape {
            shape,
            body_from_shape: Pose::new(place.rotation, place.translation - centre),
        });
        self.material(&part, spec.material);
        let link = Pose::new(rotation, spec.world_from_link.translation);
        Body {
            name: spec.name,
            mass,
            inertia,
            centre_in_link: centre,
            shapes: shapes.collect(),
            material: spec.material,
            groups: spec.groups,
            start: Pose::new(rotation, link.transform_point(centre)),
        }
    }

    /// The quaternion normalised, or a problem when it cannot be.
    fn unit(&mut self, part: &str, q: DQuat) -> DQuat {
        let length = q.length();
        if length.is_finite() && (length - 1.0).abs() < 1e-3 {
            return q.normalize();
        }
        if q.is_finite() {
            self.problem("model/not-finite", part.to_owned(), "a rotation is not a unit quaternion", "normalise it");
        }
        DQuat::IDENTITY
    }

    fn joint(&mut self, spec: JointSpec, bodies: &[Body]) -> Option<Joint> {
        let part = format!("joint \"{}\"", spec.name);
        let child = self.resolve_body(&spec.child, &part, bodies.len());
        let parent = self.resolve(&spec.parent, &part, bodies.len());
        let (child, parent) = (child?, parent?);
        if parent == Some(child) {
            self.problem(
                "model/joint-to-itself",
                part.clone(),
                "both sides are the same body",
                "name two bodies, or a body and the world",
            );
            return None;
        }

        // Frames in body coordinates: link axes, origin in the centre of mass.
        let in_body = |pose: Pose, centre: DVec3| Pose::new(pose.rotation, pose.translation - centre);
        let parent_start = parent.map_or(Pose::IDENTITY, |p| bodies[p.index()].start);
        let parent_centre = parent.map_or(DVec3::ZERO, |p| bodies[p.index()].centre_in_link);
        let child_body = &bodies[child.index()];
        let (mut in_child, mut in_parent) = match spec.place {
            Place::World(frame) => (child_body.start.inverse().then(frame), parent_start.inverse().then(frame)),
            Place::Links(a, b) => (in_body(a, child_body.centre_in_link), in_body(b, parent_centre)),
        };
        if !(in_child.is_finite() && in_parent.is_finite()) {
            self.problem(
                "model/joint-frame",
                part.clone(),
                "its point or axis is not finite",
                "give a finite point and an axis that is not zero",
            );
        } else {
            in_child.rotation = self.unit(&part, in_child.rotation);
            in_parent.rotation = self.unit(&part, in_parent.rotation);
        }

        let k = &spec.rotation_spring;
        self.non_negative("model/spring", &part, "its stiffness", k.stiffness);
        self.non_negative("model/spring", &part, "its damping", k.damping);
        self.finite(&part, "its rest rotation", k.rest.is_finite() && k.rest_turns.is_finite());
        let rest = self.unit(&part, k.rest);
        let s = &spec.slide_spring;
        self.non_negative("model/spring", &part, "its slide stiffness", s.stiffness);
        self.non_negative("model/spring", &part, "its slide damping", s.damping);
        self.finite(&part, "its slide rest", s.rest.is_finite());
        self.limits(&part, spec.mask, &spec.limits);
        if let Some(motor) = &spec.motor {
            self.non_negative("model/motor", &part, "its motor stiffness", motor.stiffness);
            self.non_negative("model/motor", &part, "its motor damping", motor.damping);
            self.non_negative("model/motor", &part, "its motor's integral gain", motor.integral);
            if motor.max.is_nan() || motor.max < 0.0 {
                self.problem(
                    "model/motor",
                    part.clone(),
                    format!("its largest torque is {}", motor.max),
                    "give a value that is not negative",
                );
            }
            if motor.integral > 0.0 && spec.mask.rotation() == RotationKind::Free {
                self.problem(
                    "model/motor",
                    part.clone(),
                    "an integral gain needs one angle or one position, and a ball has three",
                    "use a hinge or slider, or make the gain 0",
                );
            }
            let held = spec.mask.rotation() == RotationKind::Held && spec.mask.holds_translation(0);
            if held || matches!(spec.mask.rotation(), RotationKind::Cardan(_)) {
                self.problem(
                    "model/motor",
                    part.clone(),
                    "no free direction takes a motor",
                    "use a hinge, ball or slider, or leave the motor out",
                );
            }
        }
        Some(Joint {
            name: spec.name,
            child,
            parent,
            mask: spec.mask,
            child_from_joint: in_child,
            parent_from_joint: in_parent,
            rotation_spring: RotationSpring { rest, ..spec.rotation_spring },
            slide_spring: spec.slide_spring,
            limits: spec.limits,
            motor: spec.motor,
            collide: spec.collide,
        })
    }

    fn material(&mut self, part: &str, material: Material) {
        if let Some((what, remedy)) = material.fault() {
            self.problem("model/material", part.to_owned(), what, remedy);
        }
    }

    fn obstacle(&mut self, spec: ObstacleSpec) -> Obstacle {
        let part = format!("obstacle \"{}\"", spec.name);
        self.finite(&part, "its pose", spec.pose.is_finite());
        let rotation = self.unit(&part, spec.pose.rotation);
        self.material(&part, spec.material);
        if let Some(what) = spec.shape.fault() {
            self.problem(
                "model/obstacle",
                part,
                what,
                "give positive lengths, finite heights as many as rows × columns, and triangles between existing vertices",
            );
        }
        Obstacle {
            name: spec.name,
            shape: spec.shape,
            pose: Pose::new(rotation, spec.pose.translation),
            material: spec.material,
            groups: spec.groups,
        }
    }

    /// Two bodies that do not touch each other, the smaller id first.
    fn strangers(&mut self, a: &BodyRef, b: &BodyRef, count: usize) -> Option<(BodyId, BodyId)> {
        let (a, b) = (self.resolve_body(a, "no collision", count)?, self.resolve_body(b, "no collision", count)?);
        Some((a.min(b), a.max(b)))
    }

    fn limits(&mut self, part: &str, mask: JointMask, limits: &Limits) {
        let mut wrong = |what: &str, remedy: &str| self.problem("model/limit", part.to_owned(), what, remedy);
        for (range, name) in [(limits.angle, "angle"), (limits.slide, "slide")] {
            if let Some(r) = range
                && !(r.min <= r.max && r.min < f64::INFINITY && r.max > f64::NEG_INFINITY)
            {
                wrong(&format!("its {name} range {}…{} is empty", r.min, r.max), "give min ≤ max");
            }
        }
        let turning = matches!(mask.rotation(), RotationKind::Axis(_) | RotationKind::Free);
        if limits.angle.is_some() && !turning {
            wrong("an angle range needs a hinge or a free twist", "use a hinge or ball, or leave the range out");
        }
        if limits.swing.is_some() && mask.rotation() != RotationKind::Free {
            wrong("a swing ellipse needs a joint with free rotation", "use a ball, or leave the ellipse out");
        }
        if limits.slide.is_some() && mask.holds_translation(0) {
            wrong("a slide range needs a free translation along X", "use a slider, or leave the range out");
        }
        if let Some(e) = limits.swing {
            let good = |x: f64| x > 0.0 && x <= std::f64::consts::PI;
            if !(good(e.about_y) && good(e.about_z)) {
                wrong(
                    &format!("its swing ellipse {} × {} is not within 0…π", e.about_y, e.about_z),
                    "give half axes between 0 and π",
                );
            }
        }
        for (what, value) in [
            ("its limit stiffness", limits.stiffness),
            ("its limit damping", limits.damping),
            ("its slide limit stiffness", limits.slide_stiffness),
            ("its slide limit damping", limits.slide_damping),
        ] {
            self.non_negative("model/limit", part, what, value);
        }
    }

    fn anchor_spring(&mut self, spec: AnchorSpringSpec, bodies: &[Body]) -> Option<AnchorSpring> {
        let part = format!("anchor spring \"{}\"", spec.name);
        let a = self.resolve_body(&spec.a, &part, bodies.len());
        let b = self.resolve(&spec.b, &part, bodies.len());
        self.non_negative("model/spring", &part, "its stiffness", spec.stiffness);
        self.non_negative("model/spring", &part, "its damping", spec.damping);
        self.non_negative("model/spring", &part, "its rest length", spec.rest_length);
        self.finite(&part, "a point", spec.point_in_a.is_finite() && spec.point_in_b.is_finite());
        let (a, b) = (a?, b?);
        if Some(a) == b {
            self.problem(
                "model/joint-to-itself",
                part,
                "both sides are the same body",
                "name two bodies, or a body and the world",
            );
            return None;
        }
        Some(AnchorSpring {
            name: spec.name,
            a,
            point_in_a: spec.point_in_a - bodies[a.index()].centre_in_link,
            b,
            point_in_b: spec.point_in_b - b.map_or(DVec3::ZERO, |b| bodies[b.index()].centre_in_link),
            stiffness: spec.stiffness,
            damping: spec.damping,
            rest_length: spec.rest_length,
        })
    }

    fn tracker(&mut self, spec: TrackerSpec, bodies: &[Body]) -> Option<Tracker> {
        let part = format!("tracker \"{}\"", spec.name);
        for (what, value) in [
            ("its stiffness", spec.stiffness),
            ("its damping", spec.damping),
            ("its rotation stiffness", spec.rotation_stiffness),
            ("its rotation damping", spec.rotation_damping),
        ] {
            self.non_negative("model/tracker", &part, what, value);
        }
        self.finite(&part, "its point", spec.point.is_finite());
        let body = self.resolve_body(&spec.body, &part, bodies.len())?;
        Some(Tracker {
            name: spec.name,
            body,
            point: spec.point - bodies[body.index()].centre_in_link,
            stiffness: spec.stiffness,
            damping: spec.damping,
            rotation_stiffness: spec.rotation_stiffness,
            rotation_damping: spec.rotation_damping,
        })
    }
}

/// Inertia of a point mass about the origin.
fn about(p: DVec3, mass: f64) -> DMat3 {
    (DMat3::from_diagonal(DVec3::splat(p.length_squared())) - outer(p)) * mass
}

/// What is wrong with an inertia tensor, if anything.
///
/// With `C = ½ tr(I) 1 − I` (the second moments of mass), `I` is that of a real body when `C` has no negative
/// eigenvalue: this is the triangle inequality of the principal moments, told by principal minors.
fn inertia_fault(i: DMat3) -> Option<String> {
    if !i.is_finite() {
        return Some("its inertia is not finite".into());
    }
    let trace = i.x_axis.x + i.y_axis.y + i.z_axis.z;
    let slack = 1e-9 * trace; // rounding in files: a thin rod has a zero moment
    let minors = |m: DMat3| {
        let (a, b, c) = (m.x_axis.x, m.y_axis.y, m.z_axis.z);
        let (d, e, f) = (m.x_axis.y, m.x_axis.z, m.y_axis.z);
        let s = slack;
        a >= -s
            && b >= -s
            && c >= -s
            && a * b - d * d >= -s * trace
            && a * c - e * e >= -s * trace
            && b * c - f * f >= -s * trace
            && m.determinant() >= -s * trace * trace
    };
    if !(trace > 0.0 && minors(i)) {
        return Some("its inertia is not positive".into());
    }
    if i.determinant() <= 1e-30 * trace.powi(3) {
        return Some("its inertia is singular: a moment is zero".into());
    }
    (!minors(DMat3::from_diagonal(DVec3::splat(0.5 * trace)) - i))
        .then(|| "its principal moments break the triangle inequality".into())
}

/// What a user should know although the model is accepted.
fn warnings(model: &Model) -> Vec<Warning> {
    let mut out = Vec::new();
    let state = model.start();
    for (k, joint) in model.joints.iter().enumerate() {
        let relative = state.relative_rotation(model, joint);
        let (s1, s2, _) = joint::swing_twist(relative);
        let slide =
            joint.relative_translation(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, &state)).x;
        let l = &joint.limits;
        let tolerance = 1e-9; // rad or m: a pose on the limit, to rounding
        let outside = l.angle.is_some_and(|r| r.excess(state.joints[k].angle).abs() > tolerance)
            || l.swing.is_some_and(|e| e.violation(s1, s2).0 > tolerance)
            || l.slide.is_some_and(|r| r.excess(slide).abs() > tolerance);
        if outside {
            out.push(Problem {
                code: "model/start-outside-limit",
                part: format!("joint \"{}\"", joint.name),
                what: "the start pose is outside its limit".into(),
                remedy: "the limit brings it back in the first steps; widen the limit or move the start pose".into(),
            });
        }
    }
    for coupling in &model.couplings {
        let off = coupling.row_at(model, &state).residual;
        if off.abs() > 1e-9 {
            out.push(Problem {
                code: "model/start-uncoupled",
                part: format!("coupling \"{}\"", coupling.name),
                what: format!(
                    "in the start pose joint \"{}\" is off by {off:.3e}",
                    model.joint(coupling.follower).name
                ),
                remedy: "the first step brings it there; start where both joints agree".into(),
            });
        }
    }
    for id in &model.topology.loops {
        out.push(Problem {
            code: "model/loop",
            part: format!("joint \"{}\"", model.joint(*id).name),
            what: "it closes a loop".into(),
            remedy: "solver tree holds it with its default scheme; solver reduced refuses loops, an anchor spring in its place would do".into(),
        });
    }
    out
}
