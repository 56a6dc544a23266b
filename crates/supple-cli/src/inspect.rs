//! `supple inspect`: what is in a scene.

use crate::error::Error;
use crate::layer::LayerEntry;
use crate::output;
use crate::table::{self, Align, Table, count, figure, given};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::io::{self, Write};
use supple::glam::{DMat3, DQuat, DVec3};
use supple::maths::singular::eigen;
use supple::model::PlacedShape;
use supple::{
    Body, Ending, Joint, JointId, JointMask, Limits, Model, Motor, ObstacleShape, Pose, Problem, Range, Scene, Shape,
};
use supple_assets::{Bone, BoneTold, Imported};

/// Tell what is in a scene: bodies, joints, masses, limits, problems
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), or a file (.glb, .gltf, .vrm, .fbx, .urdf, .xml for MJCF, .bvh, .vrma)
    scene: String,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    #[command(flatten)]
    character: crate::scenes::CharacterArgs,
    /// Look for what would make it explode, jerk it for two seconds, tell causes and remedies
    #[arg(long)]
    doctor: bool,
    /// With --doctor and -o: write the rig with all remedies applied, as .xml, or a character as .toml
    #[arg(long, requires_all = ["doctor", "output"])]
    fix: bool,
    /// Write the model as MJCF, ending .xml
    #[arg(short, long, value_name = "FILE")]
    output: Vec<std::path::PathBuf>,
    /// Show every body and joint, however many there are
    #[arg(long)]
    all: bool,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
}

/// More parts than this are not all shown unless asked for.
const SHOWN_WHOLE: usize = 40;
/// How many of them are shown then.
const SHOWN_FIRST: usize = 20;

/// Tells what is in the scene.
pub(crate) fn run(args: &InspectArgs, terminal: &Terminal) -> Result<(), Error> {
    let from = args.files.with(&args.character)?;
    let source = crate::scenes::open_source(&args.scene, &from)?;
    let (scene, file) = (&source.scene, source.file.as_ref());
    let model = &scene.model;
    let endings: &[&str] = if args.fix { &["xml", "toml"] } else { &["xml"] };
    let files = output::Outputs::check(&args.output, endings)?;
    if !args.fix {
        write_mjcf(scene, model, &files, terminal)?;
    }
    if args.doctor {
        let mended = args.fix.then_some(&files);
        return crate::doctor::run(scene, &from, mended, args.json, terminal);
    }
    let character = crate::scenes::character(&args.scene, &from)?;
    let bones: Option<Vec<BoneTold>> = character.map(|c| c.rig.bones.iter().map(Bone::told).collect());
    if args.json {
        let file = file.map(|file| FileEntry { bones: bones.clone(), ..FileEntry::new(file) });
        return output::print_json(&Document { file, ..Document::new(&scene.name, model) });
    }
    let shown = |parts: usize| if args.all || parts <= SHOWN_WHOLE { parts } else { SHOWN_FIRST };
    output::print(|out| {
        let title = format!(
            "{}, {}",
            count(model.bodies().len(), "body", "bodies"),
            count(model.joints().len(), "joint", "joints")
        );
        writeln!(out, "{}  {}", terminal.bold(&scene.name), terminal.faint(&title))?;
        let mut pairs = totals(model);
        pairs.extend(LayerEntry::of(model).iter().flat_map(LayerEntry::words));
        let painted = file.map(Imported::group_names).unwrap_or_default();
        if !painted.is_empty() {
            pairs.push(("painted groups", painted.join(", ")));
        }
        table::write_pairs(out, terminal, &pairs)?;
        write_bodies(out, terminal, model, shown(model.bodies().len()))?;
        write_joints(out, terminal, model, shown(model.joints().len()))?;
        write_trackers(out, terminal, model, shown(model.trackers().len()))?;
        if let Some(bones) = &bones {
            write_bones(out, terminal, bones, shown(bones.len()))?;
        }
        if let Some(file) = file {
            write_file(out, terminal, file, shown(file.notes.len()))?;
        }
        for warning in model.warnings() {
            writeln!(out, "\n{} {warning}", terminal.warning("warning"))?;
        }
        Ok(())
    })
}

/// The rig of a character in what people mean.
fn write_bones(out: &mut impl Write, terminal: &Terminal, bones: &[BoneTold], shown: usize) -> io::Result<()> {
    let mut table = Table::new([
        ("bone", Align::Left),
        ("is", Align::Left),
        ("sags [°]", Align::Right),
        ("settles [s]", Align::Right),
        ("range, or swing and twist [°]", Align::Left),
        ("limits from", Align::Left),
    ]);
    for bone in &bones[..shown] {
        let pair = |p: [f64; 2], between: &str| p.map(|x| format!("{x:.0}")).join(between);
        let limits = [
            bone.range.map(|r| pair(r, " … ")),
            bone.swing.map(|s| pair(s, " × ")),
            bone.twist.map(|t| pair(t, " … ")),
        ];
        let joined = |x: f64| if bone.joint.is_some() { figure(x) } else { String::new() };
        table.row([
            bone.name.clone(),
            word(&bone.class),
            joined(bone.sag),
            joined(bone.settle),
            limits.into_iter().flatten().collect::<Vec<_>>().join(", "),
            word(&bone.joint_from),
        ]);
    }
    writeln!(out)?;
    table.write(out, terminal)?;
    write_more(out, terminal, bones.len() - shown)
}

/// A name as JSON has it, in words.
fn word(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned));
    name.unwrap_or_default().replace('_', " ")
}

/// Writes a model of the scene as MJCF into the files with that ending.
pub(crate) fn write_mjcf(
    scene: &Scene,
    model: &Model,
    files: &output::Outputs,
    terminal: &Terminal,
) -> Result<(), Error> {
    for path in files.ending("xml") {
        let exported = supple_assets::export_mjcf::export(&scene.name, model, &scene.input);
        for note in &exported.notes {
            terminal.note(format_args!("{}: {}", note.part, note.text));
        }
        output::write_text(path, &exported.text)?;
    }
    Ok(())
}

/// Clips of a file, and what was changed, guessed or left out.
fn write_file(out: &mut impl Write, terminal: &Terminal, file: &Imported, shown: usize) -> io::Result<()> {
    if !file.clips.is_empty() {
        let mut table = Table::new([("clip", Align::Left), ("seconds", Align::Right), ("then", Align::Left)]);
        for clip in &file.clips {
            let then = if clip.ending() == Ending::Repeat { "again" } else { "holds" };
            table.row([clip.name().to_owned(), figure(clip.seconds()), then.into()]);
        }
        writeln!(out)?;
        table.write(out, terminal)?;
    }
    if !file.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &file.notes[..shown] {
        writeln!(out, "  {} {}: {}", terminal.faint(note.code), note.part, note.text)?;
    }
    write_more(out, terminal, file.notes.len() - shown)
}

/// Totals of a model.
#[derive(Debug, Serialize)]
struct Totals {
    bodies: usize,
    joints: usize,
    anchor_springs: usize,
    trackers: usize,
    /// \[kg\]
    mass: f64,
    /// Free directions of the spanning tree.
    free_directions: usize,
    /// Bodies on the longest way from a root to a leaf.
    longest_branch: usize,
    /// Trees that hang on the world.
    fixed_trees: usize,
    /// Trees that nothing holds.
    floating_trees: usize,
    loops: usize,
}

impl Totals {
    fn of(model: &Model) -> Totals {
        let nodes = &model.topology().nodes;
        let mask = |joint: Option<JointId>| joint.map_or(JointMask::FREE, |id| model.joint(id).mask);
        let mut depth = vec![0usize; nodes.len()]; // parents come first
        for (i, node) in nodes.iter().enumerate() {
            depth[i] = 1 + node.parent.checked_sub(1).map_or(0, |parent| depth[parent]);
        }
        let roots = nodes.iter().filter(|node| node.parent == 0);
        let floating_trees = roots.clone().filter(|node| mask(node.joint) == JointMask::FREE).count();
        Totals {
            bodies: model.bodies().len(),
            joints: model.joints().len(),
            anchor_springs: model.anchor_springs().len(),
            trackers: model.trackers().len(),
            mass: model.mass(),
            free_directions: nodes.iter().map(|node| mask(node.joint).free()).sum(),
            longest_branch: depth.into_iter().max().unwrap_or(0),
            fixed_trees: roots.count() - floating_trees,
            floating_trees,
            loops: model.topology().loops.len(),
        }
    }
}

fn totals(model: &Model) -> Vec<(&'static str, String)> {
    let totals = Totals::of(model);
    let held = match (totals.fixed_trees, totals.floating_trees) {
        (1, 0) => "one tree, fixed to the world".to_owned(),
        (0, 1) => "one tree, floating".to_owned(),
        (fixed, floating) => format!("{} trees, {fixed} fixed to the world, {floating} floating", fixed + floating),
    };
    let mut pairs = vec![
        ("mass", format!("{} kg", figure(totals.mass))),
        ("free directions", table::grouped(totals.free_directions)),
        ("held", held),
        ("longest branch", count(totals.longest_branch, "body", "bodies")),
    ];
    if totals.anchor_springs > 0 {
        pairs.push(("anchor springs", table::grouped(totals.anchor_springs)));
    }
    let loops: Vec<&str> = model.topology().loops.iter().map(|id| model.joint(*id).name.as_str()).collect();
    pairs.push(match loops.len() {
        0 => ("loops", "none".into()),
        n if n <= SHOWN_FIRST => ("loops", format!("closed by {}", loops.join(", "))),
        n => ("loops", format!("{n}, closed by {} and more", loops[..SHOWN_FIRST].join(", "))),
    });
    pairs
}

fn write_bodies(out: &mut impl Write, terminal: &Terminal, model: &Model, shown: usize) -> io::Result<()> {
    let mut table = Table::new([
        ("body", Align::Left),
        ("mass [kg]", Align::Right),
        ("principal moments [kg·m²]", Align::Left),
        ("shape [m]", Align::Left),
    ]);
    for body in &model.bodies()[..shown] {
        let shapes: Vec<String> = body.shapes.iter().map(|placed| shape_words(&placed.shape)).collect();
        table.row([
            body.name.clone(),
            figure(body.mass),
            principal_moments(body.inertia).map(|m| format!("{m:.2e}")).join(" "),
            if shapes.is_empty() { "none".into() } else { shapes.join(", ") },
        ]);
    }
    writeln!(out)?;
    table.write(out, terminal)?;
    write_more(out, terminal, model.bodies().len() - shown)
}

fn write_joints(out: &mut impl Write, terminal: &Terminal, model: &Model, shown: usize) -> io::Result<()> {
    if model.joints().is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        ("joint", Align::Left),
        ("kind", Align::Left),
        ("child → parent", Align::Left),
        ("stiffness", Align::Right),
        ("damping", Align::Right),
        ("limits, motor", Align::Left),
    ]);
    for joint in &model.joints()[..shown] {
        let parent = joint.parent.map_or("world", |id| model.body(id).name.as_str());
        let (stiffness, damping) = spring_words(joint);
        table.row([
            joint.name.clone(),
            joint.mask.name(),
            format!("{} → {parent}", model.body(joint.child).name),
            stiffness,
            damping,
            limit_words(&joint.limits, joint.motor),
        ]);
    }
    writeln!(out)?;
    table.write(out, terminal)?;
    write_more(out, terminal, model.joints().len() - shown)?;
    writeln!(out, "  {}", terminal.faint("Stiffness in N·m/rad, damping in N·m·s/rad; of slides in N/m and N·s/m."))
}

fn write_trackers(out: &mut impl Write, terminal: &Terminal, model: &Model, shown: usize) -> io::Result<()> {
    if model.trackers().is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        ("tracker", Align::Left),
        ("body", Align::Left),
        ("stiffness [N/m]", Align::Right),
        ("damping [N·s/m]", Align::Right),
        ("turning [N·m/rad]", Align::Right),
        ("damping [N·m·s/rad]", Align::Right),
    ]);
    for t in &model.trackers()[..shown] {
        let numbers = [t.stiffness, t.damping, t.rotation_stiffness, t.rotation_damping].map(given);
        let [stiffness, damping, turning, turning_damping] = numbers;
        table.row([t.name.clone(), model.body(t.body).name.clone(), stiffness, damping, turning, turning_damping]);
    }
    writeln!(out)?;
    table.write(out, terminal)?;
    write_more(out, terminal, model.trackers().len() - shown)
}

fn write_more(out: &mut impl Write, terminal: &Terminal, more: usize) -> io::Result<()> {
    if more == 0 {
        return Ok(());
    }
    writeln!(out, "  {}", terminal.faint(&format!("and {} more: --all shows them", table::grouped(more))))
}

/// The rotation spring, then the slide spring, where there are any.
fn spring_words(joint: &Joint) -> (String, String) {
    let (rotation, slide) = (&joint.rotation_spring, &joint.slide_spring);
    let words = |turn: f64, slide: f64| match (turn, slide) {
        (0.0, 0.0) => "0".to_owned(),
        (turn, 0.0) => given(turn),
        (0.0, slide) => format!("slide {}", given(slide)),
        (turn, slide) => format!("{}, slide {}", given(turn), given(slide)),
    };
    (words(rotation.stiffness, slide.stiffness), words(rotation.damping, slide.damping))
}

fn limit_words(limits: &Limits, motor: Option<Motor>) -> String {
    let degrees = |x: f64| if x.is_finite() { format!("{:.0}°", x.to_degrees()) } else { x.to_string() };
    let mut words = Vec::new();
    if let Some(Range { min, max }) = limits.angle {
        words.push(format!("{}…{}", degrees(min), degrees(max)));
    }
    if let Some(swing) = limits.swing {
        words.push(format!("swing {}×{}", degrees(swing.about_y), degrees(swing.about_z)));
    }
    if let Some(Range { min, max }) = limits.slide {
        words.push(format!("slide {}…{} m", given(min), given(max)));
    }
    if limits.are_hard() {
        words.push("hard".to_owned());
    }
    if let Some(motor) = motor {
        words.push(format!("motor {} up to {}", given(motor.stiffness), given(motor.max)));
    }
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

fn shape_words(shape: &Shape) -> String {
    match shape {
        Shape::Sphere { radius } => format!("sphere r {}", given(*radius)),
        Shape::Cuboid { size } => format!("box {}", size.to_array().map(given).join("×")),
        Shape::Capsule { length, radius } => format!("capsule {} r {}", given(*length), given(*radius)),
        Shape::Cylinder { length, radius } => format!("cylinder {} r {}", given(*length), given(*radius)),
        Shape::Hull { points } => format!("hull of {}", count(points.len(), "point", "points")),
        Shape::Mesh { triangles, .. } => format!("mesh of {}", count(triangles.len(), "triangle", "triangles")),
    }
}

/// The eigenvalues of an inertia, smallest first.
fn principal_moments(inertia: DMat3) -> [f64; 3] {
    let mut moments = eigen(inertia).0.to_array();
    moments.sort_by(f64::total_cmp);
    moments
}

/// Everything, as JSON. Orientations are w, x, y, z; a parent of null is the world.
#[derive(Serialize)]
struct Document<'a> {
    scene: &'a str,
    /// Of a scene that came from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileEntry<'a>>,
    totals: Totals,
    /// The soft skin, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    skin: Option<LayerEntry<'a>>,
    bodies: Vec<BodyEntry<'a>>,
    joints: Vec<JointEntry<'a>>,
    anchor_springs: Vec<AnchorSpringEntry<'a>>,
    trackers: Vec<TrackerEntry<'a>>,
    loops: Vec<&'a str>,
    obstacles: Vec<ObstacleEntry<'a>>,
    warnings: Vec<WarningEntry<'a>>,
}

/// How the parts of a file became those of the model.
#[derive(Serialize)]
struct FileEntry<'a> {
    /// Of a character: its bones, by body; angles in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    bones: Option<Vec<BoneTold>>,
    links: Vec<LinkEntry<'a>>,
    clips: Vec<ClipEntry<'a>>,
    /// What is painted on the meshes.
    painted: Vec<&'a str>,
    meshes: Vec<MeshEntry<'a>>,
    notes: Vec<NoteEntry<'a>>,
}

#[derive(Serialize)]
struct LinkEntry<'a> {
    body: &'a str,
    name: &'a str,
    node: Option<usize>,
}

#[derive(Serialize)]
struct ClipEntry<'a> {
    name: &'a str,
    seconds: f64,
    frames: usize,
    repeats: bool,
}

#[derive(Serialize)]
struct MeshEntry<'a> {
    name: &'a str,
    vertices: usize,
    triangles: usize,
}

#[derive(Serialize)]
struct NoteEntry<'a> {
    code: &'a str,
    part: &'a str,
    text: &'a str,
}

impl FileEntry<'_> {
    fn new(file: &Imported) -> FileEntry<'_> {
        let bodies = file.scene.model.bodies();
        FileEntry {
            bones: None,
            links: file
                .links
                .iter()
                .zip(bodies)
                .map(|(link, body)| LinkEntry { body: &body.name, name: &link.name, node: link.node })
                .collect(),
            painted: file.group_names(),
            clips: file
                .clips
                .iter()
                .map(|c| ClipEntry {
                    name: c.name(),
                    seconds: c.seconds(),
                    frames: c.frames(),
                    repeats: c.ending() == Ending::Repeat,
                })
                .collect(),
            meshes: file
                .meshes
                .iter()
                .map(|m| MeshEntry { name: &m.name, vertices: m.vertices.len(), triangles: m.triangles.len() })
                .collect(),
            notes: file.notes.iter().map(|n| NoteEntry { code: n.code, part: &n.part, text: &n.text }).collect(),
        }
    }
}

#[derive(Serialize)]
struct PoseEntry {
    position: [f64; 3],
    orientation: [f64; 4],
}

#[derive(Serialize)]
struct ObstacleEntry<'a> {
    name: &'a str,
    kind: &'static str,
    pose: PoseEntry,
    friction: f64,
    restitution: f64,
}

#[derive(Serialize)]
struct BodyEntry<'a> {
    name: &'a str,
    mass: f64,
    principal_moments: [f64; 3],
    inertia: [[f64; 3]; 3],
    centre_in_link: [f64; 3],
    start: PoseEntry,
    shapes: Vec<ShapeEntry>,
}

#[derive(Serialize)]
struct ShapeEntry {
    #[serde(flatten)]
    shape: ShapeSizes,
    body_from_shape: PoseEntry,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ShapeSizes {
    Sphere { radius: f64 },
    Box { size: [f64; 3] },
    Capsule { length: f64, radius: f64 },
    Cylinder { length: f64, radius: f64 },
    Hull { points: usize },
    Mesh { vertices: usize, triangles: usize },
}

#[derive(Serialize)]
struct JointEntry<'a> {
    name: &'a str,
    kind: String,
    child: &'a str,
    parent: Option<&'a str>,
    free_directions: usize,
    stiffness: f64,
    damping: f64,
    slide_stiffness: f64,
    slide_damping: f64,
    limits: Option<LimitsEntry>,
    motor: Option<MotorEntry>,
    child_from_joint: PoseEntry,
    parent_from_joint: PoseEntry,
}

#[derive(Serialize)]
struct LimitsEntry {
    angle: Option<[f64; 2]>,
    swing: Option<[f64; 2]>,
    slide: Option<[f64; 2]>,
    hard: bool,
    stiffness: f64,
    damping: f64,
    slide_stiffness: f64,
    slide_damping: f64,
}

#[derive(Serialize)]
struct MotorEntry {
    stiffness: f64,
    damping: f64,
    max: f64,
    integral: f64,
}

#[derive(Serialize)]
struct AnchorSpringEntry<'a> {
    name: &'a str,
    a: &'a str,
    point_in_a: [f64; 3],
    b: Option<&'a str>,
    point_in_b: [f64; 3],
    stiffness: f64,
    damping: f64,
    rest_length: f64,
}

#[derive(Serialize)]
struct TrackerEntry<'a> {
    name: &'a str,
    body: &'a str,
    point: [f64; 3],
    stiffness: f64,
    damping: f64,
    rotation_stiffness: f64,
    rotation_damping: f64,
}

#[derive(Serialize)]
struct WarningEntry<'a> {
    code: &'a str,
    part: &'a str,
    what: &'a str,
    remedy: &'a str,
}

impl<'a> Document<'a> {
    fn new(scene: &'a str, model: &'a Model) -> Document<'a> {
        let name = |id: supple::BodyId| model.body(id).name.as_str();
        Document {
            scene,
            file: None,
            totals: Totals::of(model),
            skin: LayerEntry::of(model),
            bodies: model.bodies().iter().map(BodyEntry::new).collect(),
            joints: model.joints().iter().map(|joint| JointEntry::new(model, joint)).collect(),
            anchor_springs: model
                .anchor_springs()
                .iter()
                .map(|s| AnchorSpringEntry {
                    name: &s.name,
                    a: name(s.a),
                    point_in_a: s.point_in_a.to_array(),
                    b: s.b.map(name),
                    point_in_b: s.point_in_b.to_array(),
                    stiffness: s.stiffness,
                    damping: s.damping,
                    rest_length: s.rest_length,
                })
                .collect(),
            trackers: model
                .trackers()
                .iter()
                .map(|t| TrackerEntry {
                    name: &t.name,
                    body: name(t.body),
                    point: t.point.to_array(),
                    stiffness: t.stiffness,
                    damping: t.damping,
                    rotation_stiffness: t.rotation_stiffness,
                    rotation_damping: t.rotation_damping,
                })
                .collect(),
            loops: model.topology().loops.iter().map(|id| model.joint(*id).name.as_str()).collect(),
            obstacles: model
                .obstacles()
                .iter()
                .map(|o| ObstacleEntry {
                    name: &o.name,
                    kind: match &o.shape {
                        ObstacleShape::HalfSpace => "half-space",
                        ObstacleShape::Solid(_) => "solid",
                        ObstacleShape::HeightField(_) => "height field",
                        ObstacleShape::Mesh { .. } => "mesh",
                    },
                    pose: PoseEntry::new(o.pose),
                    friction: o.material.friction,
                    restitution: o.material.restitution,
                })
                .collect(),
            warnings: model
                .warnings()
                .iter()
                .map(|Problem { code, part, what, remedy }| WarningEntry { code, part, what, remedy })
                .collect(),
        }
    }
}

impl PoseEntry {
    fn new(pose: Pose) -> PoseEntry {
        let (DVec3 { x, y, z }, q): (DVec3, DQuat) = (pose.translation, pose.rotation);
        PoseEntry { position: [x, y, z], orientation: [q.w, q.x, q.y, q.z] }
    }
}

impl<'a> BodyEntry<'a> {
    fn new(body: &'a Body) -> BodyEntry<'a> {
        BodyEntry {
            name: &body.name,
            mass: body.mass,
            principal_moments: principal_moments(body.inertia),
            inertia: body.inertia.to_cols_array_2d(),
            centre_in_link: body.centre_in_link.to_array(),
            start: PoseEntry::new(body.start),
            shapes: body.shapes.iter().map(ShapeEntry::new).collect(),
        }
    }
}

impl ShapeEntry {
    fn new(placed: &PlacedShape) -> ShapeEntry {
        let shape = match &placed.shape {
            Shape::Sphere { radius } => ShapeSizes::Sphere { radius: *radius },
            Shape::Cuboid { size } => ShapeSizes::Box { size: size.to_array() },
            Shape::Capsule { length, radius } => ShapeSizes::Capsule { length: *length, radius: *radius },
            Shape::Cylinder { length, radius } => ShapeSizes::Cylinder { length: *length, radius: *radius },
            Shape::Hull { points } => ShapeSizes::Hull { points: points.len() },
            Shape::Mesh { vertices, triangles } => {
                ShapeSizes::Mesh { vertices: vertices.len(), triangles: triangles.len() }
            }
        };
        ShapeEntry { shape, body_from_shape: PoseEntry::new(placed.body_from_shape) }
    }
}

impl<'a> JointEntry<'a> {
    fn new(model: &'a Model, joint: &'a Joint) -> JointEntry<'a> {
        let limits = &joint.limits;
        let ends = |range: Range| [range.min, range.max];
        JointEntry {
            name: &joint.name,
            kind: joint.mask.name(),
            child: &model.body(joint.child).name,
            parent: joint.parent.map(|id| model.body(id).name.as_str()),
            free_directions: joint.mask.free(),
            stiffness: joint.rotation_spring.stiffness,
            damping: joint.rotation_spring.damping,
            slide_stiffness: joint.slide_spring.stiffness,
            slide_damping: joint.slide_spring.damping,
            limits: limits.any().then(|| LimitsEntry {
                angle: limits.angle.map(ends),
                swing: limits.swing.map(|swing| [swing.about_y, swing.about_z]),
                slide: limits.slide.map(ends),
                hard: limits.are_hard(),
                stiffness: limits.stiffness,
                damping: limits.damping,
                slide_stiffness: limits.slide_stiffness,
                slide_damping: limits.slide_damping,
            }),
            motor: joint.motor.map(|motor| MotorEntry {
                stiffness: motor.stiffness,
                damping: motor.damping,
                max: motor.max,
                integral: motor.integral,
            }),
            child_from_joint: PoseEntry::new(joint.child_from_joint),
            parent_from_joint: PoseEntry::new(joint.parent_from_joint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_moments_do_not_depend_on_the_axes() {
        let wanted = [1.0, 2.0, 2.5];
        let turn = DMat3::from_quat(DQuat::from_scaled_axis(DVec3::new(0.7, -1.1, 0.4)));
        let turned = turn * DMat3::from_diagonal(DVec3::new(2.0, 2.5, 1.0)) * turn.transpose();
        let found = principal_moments(turned);
        // a few roundings of numbers near 1
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?}");
        assert_eq!(principal_moments(DMat3::from_diagonal(DVec3::new(3.0, 1.0, 2.0))), [1.0, 2.0, 3.0]);
    }
}
