//! The scene as the page needs it: shapes, joints, limits, trackers, and the list of scenes.

use crate::protocol::{PROTOCOL, json};
use serde::Serialize;
use std::sync::Arc;
use supple::glam::DVec3;
use supple::scenes::catalogue;
use supple::{
    Ending, Flesh, Joint, Model, Motion, Obstacle, ObstacleShape, Pose, PoseMap, Range, Scene, Shape, Skin, Solver,
    Stage,
};
use supple_assets::{Bone, BoneTold, Cast, Character, DrawnMesh, Note, RigOptions, ThingTold};

#[derive(Serialize)]
struct Description<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    protocol: u16,
    generation: u32,
    name: &'a str,
    bodies: Vec<BodyLine<'a>>,
    joints: Vec<JointLine<'a>>,
    trackers: Vec<TrackerLine<'a>>,
    obstacles: Vec<ObstacleLine<'a>>,
    /// What a person may steer the scene by.
    controls: &'static [&'static str],
    /// Height of the level floor, if there is one \[m\].
    floor: Option<f64>,
    /// The character's own file, if the scene is one.
    file: Option<FileLine>,
    /// What bodies carry, unless the file is drawn; where they are when bodies are at their `rest`.
    meshes: Vec<MeshLine<'a>>,
    /// Soft matter around bones.
    flesh: Option<FleshLine>,
    /// How bones carry the skin, if the flesh is one.
    skin: Option<SkinLine>,
    /// What was changed, guessed or left out of a file.
    notes: Vec<NoteLine<'a>>,
    /// By body: the bone of a character, with what may be changed of it; empty when the scene is none.
    bones: Vec<BoneTold>,
    /// Mass, height and scale of a character, and which of them were asked for.
    rig: Option<RigLine>,
    /// Things that were put into it, and how many bodies, the last, are such.
    things: &'a [ThingTold],
    thing_bodies: usize,
    /// Characters that were put into it; their bodies come before those of things.
    guests: Vec<GuestLine<'a>>,
    /// Things of files.
    props: Vec<PropLine<'a>>,
    /// Clips of the file.
    clips: Vec<ClipLine<'a>>,
    scenes: Vec<SceneLine>,
    solvers: Vec<SolverLine>,
    /// Names of the stages whose times a frame tells.
    stages: Vec<&'static str>,
}

#[derive(Serialize)]
struct RigLine {
    /// \[kg\]
    mass: f64,
    /// \[m\]
    height: f64,
    /// Metres in a unit of length of the file.
    scale: f64,
    asked: RigOptions,
}

#[derive(Serialize)]
struct BodyLine<'a> {
    name: &'a str,
    mass: f64,
    /// Pose of the centre of mass at the start of the scene.
    start: Frame,
    /// Pose of the centre of mass as it was built: where meshes are given.
    rest: Frame,
    shapes: Vec<ShapeLine>,
}

#[derive(Serialize)]
struct ShapeLine {
    #[serde(flatten)]
    solid: Solid,
    frame: Frame,
}

#[derive(Serialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
enum Solid {
    Sphere { radius: f64 },
    Cuboid { size: [f64; 3] },
    Capsule { length: f64, radius: f64 },
    Cylinder { length: f64, radius: f64 },
    Hull { points: Vec<[f64; 3]> },
    Mesh { vertices: Vec<[f64; 3]>, triangles: Vec<[u32; 3]> },
    HalfSpace,
}

/// Position, and rotation as x, y, z, w.
#[derive(Serialize)]
struct Frame {
    position: [f64; 3],
    rotation: [f64; 4],
}

impl From<Pose> for Frame {
    fn from(pose: Pose) -> Frame {
        Frame { position: pose.translation.to_array(), rotation: pose.rotation.to_array() }
    }
}

#[derive(Serialize)]
struct JointLine<'a> {
    name: &'a str,
    kind: String,
    child: u32,
    parent: Option<u32>,
    child_frame: Frame,
    parent_frame: Frame,
    /// The axis about which turns are counted: 0, 1 or 2.
    turning_axis: Option<usize>,
    angle: Option<[f64; 2]>,
    swing: Option<[f64; 2]>,
    slide: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct TrackerLine<'a> {
    name: &'a str,
    body: u32,
    point: [f64; 3],
}

#[derive(Serialize)]
struct ObstacleLine<'a> {
    name: &'a str,
    #[serde(flatten)]
    shape: ShapeLine,
}

#[derive(Serialize)]
struct ClipLine<'a> {
    name: &'a str,
    seconds: f64,
    /// Whether it ends as it begins.
    repeats: bool,
}

#[derive(Serialize)]
struct SceneLine {
    name: &'static str,
    parameters: &'static str,
    summary: &'static str,
    /// What `take` may be; the first is the scene's own motion.
    takes: Vec<TakeName>,
}

#[derive(Serialize)]
struct TakeName {
    name: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct SolverLine {
    name: &'static str,
    summary: &'static str,
}

/// What a file gave besides its scene: meshes that bodies carry, and what was noted when it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dress {
    pub(crate) meshes: Vec<DrawnMesh>,
    pub(crate) notes: Vec<Note>,
    /// Motions of the file.
    pub(crate) clips: Vec<Arc<Motion>>,
    /// The character, whose bones may be changed.
    pub(crate) character: Option<Character>,
    /// Tells the character's file from others.
    pub(crate) fingerprint: Option<u64>,
    /// Who may be put beside it.
    pub(crate) cast: Cast,
}

impl Dress {
    /// The file that the page draws, as long as its bones are the bodies of the model.
    fn file(&self, bodies: usize) -> Option<FileLine> {
        let (character, fingerprint) = (self.character.as_ref()?, self.fingerprint?);
        if character.rig.bones.len() != bodies {
            return None;
        }
        Some(FileLine::of(character, fingerprint, 0))
    }
}

impl FileLine {
    fn of(character: &Character, fingerprint: u64, first: usize) -> FileLine {
        let name = character.source().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let carried_by = character.carriers().iter().map(|bone| bone.map(|bone| first + bone)).collect();
        FileLine { key: format!("{fingerprint:016x}"), name, scale: character.scale(), carried_by }
    }
}

/// A thing of a file: the page draws it with the body.
#[derive(Serialize)]
struct PropLine<'a> {
    name: &'a str,
    body: u32,
    file: FileLine,
    /// What of the file lies in the middle of the body, and how many times as large it is.
    centre: [f64; 3],
    scale: [f64; 3],
}

fn prop<'a>(told: &'a ThingTold, model: &Model, dress: &Dress) -> Option<PropLine<'a>> {
    let (player, _, centre) = told.prop(&dress.cast)?;
    let body = model.find_body(&told.name)?;
    let character = &player.character;
    let mut file = FileLine::of(character, character.fingerprint(), 0);
    file.carried_by.iter_mut().flatten().for_each(|carrier| *carrier = body.index());
    Some(PropLine { name: &told.name, body: body.0, file, centre: centre.to_array(), scale: told.size })
}

/// A character that was put into the scene.
#[derive(Serialize)]
struct GuestLine<'a> {
    name: &'a str,
    /// Its bodies: the first, and how many.
    first: usize,
    count: usize,
    /// Where the origin of its file lies.
    place: Frame,
    file: Option<FileLine>,
    clips: Vec<ClipLine<'a>>,
}

fn guest<'a>(guest: &'a supple::Seated, dress: &'a Dress, things: &[ThingTold]) -> GuestLine<'a> {
    let file = things.iter().find(|told| told.is_character() && told.name == guest.name).map(|told| told.file.as_str());
    let player = file.and_then(|file| dress.cast.get(file));
    let (first, count) = (guest.bodies.start, guest.bodies.len());
    GuestLine {
        name: &guest.name,
        first,
        count,
        place: guest.place.into(),
        file: player.map(|player| FileLine::of(&player.character, player.character.fingerprint(), first)),
        clips: player.iter().flat_map(|player| &player.imported.clips).map(|own| clip(own)).collect(),
    }
}

/// The character's own file: the page draws it, and bodies carry its nodes.
#[derive(Serialize)]
struct FileLine {
    /// It is at `/file/KEY/NAME`, what it names beside it.
    key: String,
    name: String,
    /// Metres in a unit of length of the file.
    scale: f64,
    /// By node of the file: the body that carries it.
    carried_by: Vec<Option<usize>>,
}

/// A mesh in world coordinates at the start, flat lists.
#[derive(Serialize)]
struct MeshLine<'a> {
    name: &'a str,
    colour: [f32; 3],
    vertices: Vec<f32>,
    triangles: Vec<u32>,
    /// Four a vertex.
    bodies: Vec<u32>,
    weights: Vec<f32>,
}

/// A cage and the surface in it, flat lists.
#[derive(Serialize)]
struct FleshLine {
    /// Nodes from this one on are fixed to bones.
    free: usize,
    start: Vec<f64>,
    masses: Vec<f64>,
    elements: Vec<u32>,
    /// By vertex: its element, and the weights of that element's nodes.
    tets: Vec<u32>,
    weights: Vec<f64>,
    triangles: Vec<u32>,
    colours: Vec<f32>,
}

fn flesh(flesh: &Flesh) -> FleshLine {
    let surface = &flesh.surface;
    FleshLine {
        free: flesh.free,
        start: flesh.start.iter().flat_map(|p| p.to_array()).collect(),
        masses: flesh.masses.clone(),
        elements: flesh.elements.iter().flat_map(|e| e.nodes).collect(),
        tets: surface.vertices.iter().map(|v| v.tet).collect(),
        weights: surface.vertices.iter().flat_map(|v| v.weights).collect(),
        triangles: surface.triangles.iter().flatten().copied().collect(),
        colours: surface.colours.iter().flatten().copied().collect(),
    }
}

/// Skin as the page draws flesh: its layer is the cage, its vertices are corners of it.
fn skin(skin: &Skin, model: &Model) -> FleshLine {
    let n = skin.nodes();
    let mut start = Vec::new();
    skin.layer_positions(&model.start(), &mut start);
    // a tetrahedron for each vertex, and which corner of it the vertex is; one of no volume where the layer has none
    let mut elements = skin.layer.tets.clone();
    let mut corner: Vec<Option<(u32, usize)>> = vec![None; n];
    for (t, tet) in skin.layer.tets.iter().enumerate() {
        for (k, &i) in tet.iter().enumerate().filter(|(_, i)| (**i as usize) < n) {
            corner[i as usize].get_or_insert((t as u32, k));
        }
    }
    let mut own = |v: usize| {
        corner[v].unwrap_or_else(|| {
            elements.push([v as u32; 4]);
            (elements.len() as u32 - 1, 0)
        })
    };
    let corners: Vec<(u32, usize)> = (0..n).map(&mut own).collect();
    FleshLine {
        free: n,
        start: start.iter().flat_map(|p| p.to_array()).collect(),
        masses: skin.masses.iter().copied().chain(std::iter::repeat_n(0.0, skin.layer.inner.len())).collect(),
        tets: corners.iter().map(|(t, _)| *t).collect(),
        weights: corners
            .iter()
            .flat_map(|(_, k)| std::array::from_fn::<f64, 4, _>(|i| f64::from(u8::from(i == *k))))
            .collect(),
        elements: elements.into_iter().flatten().collect(),
        triangles: skin.triangles.iter().flatten().copied().collect(),
        colours: skin.colours.iter().flatten().copied().collect(),
    }
}

/// What carries a skin to the world: `x = R (u − p) + Σ w T p`, or `Σ w T u` (docs/protocol.md), flat lists.
#[derive(Serialize)]
struct SkinLine {
    map: &'static str,
    /// Places of the vertices in the rest pose, and of the corners of the layer below them.
    rest: Vec<f32>,
    inner: Vec<f32>,
    /// The vertex that carries each of them.
    follows: Vec<u32>,
    centres: Vec<f32>,
    /// Four a vertex; those after the last have no weight.
    bodies: Vec<u32>,
    weights: Vec<f32>,
    /// By body: from the rest pose to its coordinates.
    from_rest: Vec<Frame>,
    proxies: Vec<ProxyLine>,
}

/// The hull that is tested for a bone before its vertices are, in coordinates of its body.
#[derive(Serialize)]
struct ProxyLine {
    body: u32,
    points: Vec<[f64; 3]>,
    triangles: Vec<[u32; 3]>,
    vertices: Vec<u32>,
}

fn carried(skin: &Skin) -> SkinLine {
    let flat = |points: &[DVec3]| points.iter().flat_map(|p| p.as_vec3().to_array()).collect();
    let proxies = skin.proxy_surfaces().into_iter().map(|(body, points, triangles)| ProxyLine {
        body,
        points: points.iter().map(|p| p.to_array()).collect(),
        triangles,
        vertices: skin.proxy_vertices(body).to_vec(),
    });
    SkinLine {
        map: match skin.map {
            PoseMap::Linear => "linear",
            PoseMap::Centres => "centres",
        },
        rest: flat(&skin.rest),
        inner: flat(&skin.layer.inner),
        follows: skin.layer.follows.clone(),
        centres: flat(&skin.centres),
        bodies: skin.influences.iter().flatten().map(|i| i.body).collect(),
        weights: skin.influences.iter().flatten().map(|i| i.weight as f32).collect(),
        from_rest: skin.body_from_rest.iter().map(|&pose| pose.into()).collect(),
        proxies: proxies.collect(),
    }
}

#[derive(Serialize)]
struct NoteLine<'a> {
    code: &'a str,
    part: &'a str,
    text: &'a str,
}

fn mesh(mesh: &DrawnMesh) -> MeshLine<'_> {
    MeshLine {
        name: &mesh.name,
        colour: mesh.colour,
        vertices: mesh.vertices.iter().flatten().copied().collect(),
        triangles: mesh.triangles.iter().flatten().copied().collect(),
        bodies: mesh.carried.iter().flat_map(|c| c.bodies.map(|b| b.0)).collect(),
        weights: mesh.carried.iter().flat_map(|c| c.weights).collect(),
    }
}

/// The message that describes a scene.
pub(crate) fn describe(scene: &Scene, dress: &Dress, things: &[ThingTold], generation: u32) -> String {
    let model = &scene.model;
    let bodies = model.bodies().iter().zip(&scene.state.bodies).map(|(body, start)| BodyLine {
        name: &body.name,
        mass: body.mass,
        start: start.pose().into(),
        rest: body.start.into(),
        shapes: body
            .shapes
            .iter()
            .map(|s| ShapeLine { solid: solid(&s.shape), frame: s.body_from_shape.into() })
            .collect(),
    });
    let trackers = model.trackers().iter().map(|tracker| TrackerLine {
        name: &tracker.name,
        body: tracker.body.0,
        point: tracker.point.to_array(),
    });
    let obstacles = model.obstacles().iter().map(|obstacle| ObstacleLine {
        name: &obstacle.name,
        shape: ShapeLine { solid: obstacle_solid(&obstacle.shape), frame: obstacle.pose.into() },
    });
    let scenes = catalogue().iter().map(|info| SceneLine {
        name: info.name,
        parameters: info.parameters,
        summary: info.summary,
        takes: info.takes.iter().map(|&(name, summary)| TakeName { name, summary }).collect(),
    });
    let guests: usize = scene.guests().iter().map(|guest| guest.bodies.len()).sum();
    let file = dress.file(model.bodies().len() - scene.things() - guests);
    let meshes = if file.is_some() { &[][..] } else { &dress.meshes[..] };
    json(&Description {
        kind: "scene",
        protocol: PROTOCOL,
        generation,
        name: &scene.name,
        bodies: bodies.collect(),
        joints: model.joints().iter().map(joint).collect(),
        trackers: trackers.collect(),
        obstacles: obstacles.collect(),
        controls: scene.controls(),
        floor: floor(model),
        file,
        meshes: meshes.iter().map(mesh).collect(),
        flesh: model.flesh().map(flesh).or_else(|| model.skin().map(|own| skin(own, model))),
        skin: model.skin().map(carried),
        notes: dress.notes.iter().map(|n| NoteLine { code: n.code, part: &n.part, text: &n.text }).collect(),
        bones: dress.character.iter().flat_map(|c| &c.rig.bones).map(Bone::told).collect(),
        rig: dress.character.as_ref().filter(|c| c.has_bones()).map(|c| RigLine {
            mass: c.rig.bones.iter().map(|bone| bone.mass).sum(),
            height: c.height(),
            scale: c.scale(),
            asked: *c.options(),
        }),
        things,
        thing_bodies: scene.things(),
        props: things.iter().filter_map(|told| prop(told, model, dress)).collect(),
        guests: scene.guests().iter().map(|own| guest(own, dress, things)).collect(),
        clips: dress.clips.iter().map(|c| clip(c)).collect(),
        scenes: scenes.collect(),
        solvers: Solver::choices()
            .iter()
            .map(|choice| SolverLine { name: choice.name, summary: choice.summary })
            .collect(),
        stages: Stage::ALL.iter().map(|stage| stage.name()).collect(),
    })
}

fn clip(clip: &Motion) -> ClipLine<'_> {
    ClipLine { name: clip.name(), seconds: clip.seconds(), repeats: clip.ending() == Ending::Repeat }
}

/// The height of the first obstacle that is a level half-space.
fn floor(model: &Model) -> Option<f64> {
    let level = |o: &&Obstacle| o.shape == ObstacleShape::HalfSpace && (o.pose.rotation * DVec3::Y).y > 1.0 - 1e-9;
    model.obstacles().iter().find(level).map(|o| o.pose.translation.y)
}

fn joint(joint: &Joint) -> JointLine<'_> {
    let ends = |range: Option<Range>| range.map(|r| [r.min, r.max]);
    JointLine {
        name: &joint.name,
        kind: joint.mask.name(),
        child: joint.child.0,
        parent: joint.parent.map(|p| p.0),
        child_frame: joint.child_from_joint.into(),
        parent_frame: joint.parent_from_joint.into(),
        turning_axis: joint.turning_axis(),
        angle: ends(joint.limits.angle),
        swing: joint.limits.swing.map(|s| [s.about_y, s.about_z]),
        slide: ends(joint.limits.slide),
    }
}

fn obstacle_solid(shape: &ObstacleShape) -> Solid {
    let mesh = |vertices: &[DVec3], triangles: &[[u32; 3]]| Solid::Mesh {
        vertices: vertices.iter().map(|p| p.to_array()).collect(),
        triangles: triangles.to_vec(),
    };
    match shape {
        ObstacleShape::HalfSpace => Solid::HalfSpace,
        ObstacleShape::Solid(shape) => solid(shape),
        ObstacleShape::HeightField(field) => {
            let (vertices, triangles) = field.surface();
            mesh(&vertices, &triangles)
        }
        ObstacleShape::Mesh { vertices, triangles } => mesh(vertices, triangles),
    }
}

fn solid(shape: &Shape) -> Solid {
    match shape {
        Shape::Sphere { radius } => Solid::Sphere { radius: *radius },
        Shape::Cuboid { size } => Solid::Cuboid { size: size.to_array() },
        Shape::Capsule { length, radius } => Solid::Capsule { length: *length, radius: *radius },
        Shape::Cylinder { length, radius } => Solid::Cylinder { length: *length, radius: *radius },
        Shape::Hull { points } => Solid::Hull { points: points.iter().map(|p| p.to_array()).collect() },
        Shape::Mesh { vertices, triangles } => {
            Solid::Mesh { vertices: vertices.iter().map(|p| p.to_array()).collect(), triangles: triangles.clone() }
        }
    }
}
