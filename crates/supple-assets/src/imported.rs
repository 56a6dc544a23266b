//! What every reader makes of a file: a scene, and how its parts belong to those of the file.

use crate::rig::fit;
use crate::{Cast, FileError, Note, ThingTold, furnished};
use glam::DVec3;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supple::model::Obstacle;
use supple::{BodyId, BodyState, Input, Model, Motion, ObstacleShape, Pose, Scene, Shape, Target, Twist};

/// A character, robot or motion read from a file, ready to be simulated.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Where it came from.
    pub source: PathBuf,
    /// Model, start and input. Its name is the path as it was given.
    pub scene: Scene,
    /// By body: the part of the file that it stands for.
    pub links: Vec<Link>,
    /// The motions of the file, one pose a body and frame.
    pub clips: Vec<Arc<Motion>>,
    /// What is drawn around the bodies.
    pub meshes: Vec<DrawnMesh>,
    /// What was changed, guessed or left out.
    pub notes: Vec<Note>,
    /// What was put into the scene beside them.
    pub things: Vec<ThingTold>,
    /// The characters among them.
    pub cast: Cast,
}

/// The node, bone or link of a file that a body stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name in the file.
    pub name: String,
    /// Its index in the file, where parts have one (a node of glTF).
    pub node: Option<usize>,
    /// Its frame in body coordinates (origin in the centre of mass).
    pub body_from_link: Pose,
}

/// A triangle mesh that bodies carry, in world coordinates at the start of the scene.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnMesh {
    /// Its name in the file.
    pub name: String,
    /// \[m\]
    pub vertices: Vec<[f32; 3]>,
    /// Corner indices.
    pub triangles: Vec<[u32; 3]>,
    /// Red, green, blue, linear, 0 to 1.
    pub colour: [f32; 3],
    /// By vertex: the bodies that carry it.
    pub carried: Vec<Carried>,
    /// What is painted on its vertices.
    pub groups: Vec<Group>,
}

/// A painted vertex group: a custom attribute of the mesh, or a channel of its vertex colours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// As in the file: `_BELLY`, `COLOR_0.r`.
    pub name: String,
    /// How much of it each vertex has, from 0 to 1.
    pub shares: Vec<f32>,
}

/// How bodies carry a vertex: a vertex at `v` at the start goes to `Σ weight · world_from_body · world_from_body_at_start⁻¹ · v`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Up to four; those without weight are the first one again.
    pub bodies: [BodyId; 4],
    /// They sum up to 1.
    pub weights: [f32; 4],
}

impl Carried {
    /// By one body alone.
    pub fn by(body: BodyId) -> Carried {
        Carried { bodies: [body; 4], weights: [1.0, 0.0, 0.0, 0.0] }
    }
}

/// Why a name means no clip of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoClip {
    /// What is wrong.
    pub what: String,
    /// Which names could have been meant.
    pub remedy: String,
}

pub(crate) use supple::model::MOST_LENGTH;

/// What is said of what does not lie within [`MOST_LENGTH`].
pub(crate) fn far_away() -> String {
    format!("it is or reaches more than {MOST_LENGTH} m away, or its place is not finite")
}

fn too_far(file: &Path, part: &str) -> FileError {
    let remedy = "correct its place, its size, or those above it";
    FileError::new("file/number", file, far_away(), remedy).at(part.to_owned())
}

/// Refuses a motion that leads too far away.
pub(crate) fn check_motion(file: &Path, motion: &Motion) -> Result<(), FileError> {
    let near = |pose: &Pose| pose.is_finite() && pose.translation.length() < MOST_LENGTH;
    match (0..motion.frames()).find(|frame| !motion.frame(*frame).iter().all(near)) {
        Some(frame) => Err(too_far(file, &format!("\"{}\", frame {frame}", motion.name()))),
        None => Ok(()),
    }
}

/// How far a shape reaches from its own origin \[m\].
fn reach(shape: &Shape) -> f64 {
    match shape {
        Shape::Sphere { radius } => *radius,
        Shape::Capsule { length, radius } | Shape::Cylinder { length, radius } => 0.5 * length + radius,
        Shape::Cuboid { size } => 0.5 * size.length(),
        Shape::Hull { points } | Shape::Mesh { vertices: points, .. } => farthest(points),
    }
}

fn farthest(points: &[DVec3]) -> f64 {
    points.iter().map(|p| p.length()).fold(0.0, f64::max)
}

/// Whether what stands at a place lies within [`MOST_LENGTH`]; what has no end has its place there.
pub(crate) fn stands_near(place: DVec3, shape: &ObstacleShape) -> bool {
    let reach = match shape {
        ObstacleShape::HalfSpace => 0.0,
        ObstacleShape::Solid(shape) => reach(shape),
        ObstacleShape::HeightField(field) => {
            let height = field.heights.iter().fold(0.0, |most: f64, h| most.max(h.abs()));
            DVec3::new(0.5 * field.length_x, height, 0.5 * field.length_z).length()
        }
        ObstacleShape::Mesh { vertices, .. } => farthest(vertices),
    };
    place.length() + reach < MOST_LENGTH
}

impl Imported {
    /// The same, if nothing of it is too far away. Every reader ends with this.
    pub(crate) fn within_reach(self) -> Result<Imported, FileError> {
        let (model, file) = (&self.scene.model, &self.source);
        let near = |place: DVec3, reach: f64| place.length() + reach < MOST_LENGTH;
        for (body, state) in model.bodies().iter().zip(&self.scene.state.bodies) {
            let shapes = body.shapes.iter().map(|s| s.body_from_shape.translation.length() + reach(&s.shape));
            let widest = shapes.fold(0.0, f64::max);
            if !(near(state.position, widest) && near(body.start.translation, widest)) {
                return Err(too_far(file, &body.name));
            }
        }
        let stands_far = |obstacle: &&Obstacle| !stands_near(obstacle.pose.translation, &obstacle.shape);
        if let Some(far) = model.obstacles().iter().find(stands_far) {
            return Err(too_far(file, &far.name));
        }
        let is_near = |vertex: &[f32; 3]| near(DVec3::from(vertex.map(f64::from)), 0.0);
        if let Some(far) = self.meshes.iter().find(|mesh| !mesh.vertices.iter().all(is_near)) {
            return Err(too_far(file, &far.name));
        }
        self.clips.iter().try_for_each(|clip| check_motion(file, clip))?;
        Ok(self)
    }

    /// The clip of this name; failing that, the only one whose name contains it.
    pub fn clip(&self, name: &str) -> Result<&Arc<Motion>, NoClip> {
        if let Some(clip) = self.clips.iter().find(|clip| clip.name() == name) {
            return Ok(clip);
        }
        let lower = name.to_lowercase();
        let near: Vec<_> = self.clips.iter().filter(|clip| clip.name().to_lowercase().contains(&lower)).collect();
        let names =
            |clips: &mut dyn Iterator<Item = &Arc<Motion>>| clips.map(|c| c.name()).collect::<Vec<_>>().join(", ");
        match near[..] {
            [clip] => Ok(clip),
            [] if self.clips.is_empty() => Err(NoClip {
                what: format!("there is no clip \"{name}\": the file has none"),
                remedy: "leave the clip out".into(),
            }),
            [] => Err(NoClip {
                what: format!("there is no clip \"{name}\""),
                remedy: format!("give one of {}", names(&mut self.clips.iter())),
            }),
            _ => Err(NoClip {
                what: format!("\"{name}\" is the name of no clip, and part of the names of {}", near.len()),
                remedy: format!("give one of {} whole", names(&mut near.into_iter())),
            }),
        }
    }

    /// The scene with its trackers following a clip, from the clip's first pose on. Every root is led by the clip instead of its hold; a floor that the clip goes
    /// below is lowered.
    pub fn following(&self, clip: &Arc<Motion>) -> Option<Scene> {
        let mut input = self.scene.bare().input.clone();
        lower_floor(&self.scene.bare().model, clip, &mut input);
        self.led(clip, input)
    }

    /// The same with the floor as it is, for motions that press on it.
    pub(crate) fn led_by(&self, clip: &Arc<Motion>) -> Option<Scene> {
        self.led(clip, self.scene.bare().input.clone())
    }

    fn led(&self, clip: &Arc<Motion>, mut input: Input) -> Option<Scene> {
        let Scene { name, model, mut state, .. } = self.scene.bare().clone();
        input.targets.fill(None);
        for (i, body) in state.bodies.iter_mut().enumerate().take(clip.bodies()) {
            let start = clip.at(0.0, i);
            *body = BodyState { velocity: start.velocity, ..BodyState::at_rest(start.pose) };
        }
        state.recount_turns(&model);
        let scene = Scene::from_parts(format!("{name}#{}", clip.name()), model, state, input).follow(clip.clone())?;
        furnished(&scene, &mut self.things.clone(), &self.cast).ok()
    }

    /// The same with these things in place of those it has, or what is wrong with them.
    pub fn furnish(&mut self, mut things: Vec<ThingTold>) -> Result<(), String> {
        self.scene = furnished(&self.scene, &mut things, &self.cast)?;
        self.things = things;
        Ok(())
    }
}

/// A clip that goes below the floor of the pose at rest has the floor a centimetre under its own lowest point.
fn lower_floor(model: &Model, clip: &Motion, input: &mut Input) {
    let Some(floor) = model.find_obstacle("floor") else { return };
    let shapes = model.bodies().iter().map(|body| &body.shapes);
    let mut lowest = f64::INFINITY;
    for frame in 0..clip.frames() {
        for (pose, shapes) in clip.frame(frame).iter().zip(shapes.clone()) {
            for placed in shapes {
                lowest = lowest.min(fit::lowest(&placed.shape, &pose.then(placed.body_from_shape)));
            }
        }
    }
    let built = model.obstacle(floor).pose;
    if lowest < built.translation.y {
        let pose = Pose::new(built.rotation, DVec3::new(built.translation.x, lowest - 0.01, built.translation.z));
        input.obstacles.resize(model.obstacles().len(), None);
        input.obstacles[floor.index()] = Some(Target { pose, velocity: Twist::ZERO });
    }
}
