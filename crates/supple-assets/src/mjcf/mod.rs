//! MJCF: the models of MuJoCo.
//!
//! What is read: bodies and frames, hinges, slides, balls and free joints with limits, springs and dampers, geoms with the inertia that
//! follows from them, sites, default classes, compiler options, included files, `connect`, `weld` and coupled joints, springs between two sites, motors and
//! servos on joints, excluded contacts, and keyframes. Everything else is listed as a note.

mod classes;

use crate::robot::{
    Actuator, Axis, AxisCoupling, Base, Closure, ClosureKind, Form, Geom, Inertial, Kind, Link, Mended, NamedPose,
    PointSpring, Robot, build, z_from_x,
};
use crate::urdf::{few_of_hull, mesh_hull, missing};
use crate::xml::{self, Asked, Element, Includes, Source};
use crate::{FileError, Imported, InputFile, Note, plain};
use classes::{Classes, MAIN};
use glam::{DMat3, DQuat, DVec3};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use supple::maths::rotation::between;
use supple::{Contacts, Groups, Pose, Scene, ServoTarget, Shape};

/// What an MJCF file becomes.
pub fn open(file: &InputFile) -> Result<Imported, FileError> {
    let robot = read(file)?;
    build(file.path(), &robot, Base::Fixed)?.imported(file.path(), &robot).within_reach()
}

/// What an MJCF file becomes, in the pose of one of its keyframes. Its scene is called `FILE#KEYFRAME`.
pub fn open_at(file: &InputFile, keyframe: &str) -> Result<Imported, FileError> {
    let (path, robot) = (file.path(), read(file)?);
    let built = build(path, &robot, Base::Fixed)?;
    let Some(pose) = robot.poses.iter().find(|pose| pose.name == keyframe) else {
        let names = robot.poses.iter().map(|pose| pose.name.as_str()).collect::<Vec<_>>().join(", ");
        let remedy = if names.is_empty() { "it has none: leave it out".into() } else { format!("it has {names}") };
        return Err(FileError::new("file/keyframe", path, format!("it has no keyframe \"{keyframe}\""), remedy));
    };
    let state = built.place(&pose.positions);
    let mut imported = built.imported(path, &robot);
    let Scene { name, model, input, .. } = imported.scene;
    imported.scene = Scene::from_parts(format!("{name}#{keyframe}"), model, state, input);
    imported.within_reach()
}

/// Reads MJCF from a text in memory: files that it names are not opened.
pub fn parse(path: &Path, text: &str) -> Result<Robot, FileError> {
    read(&InputFile::sent(path, text.into()))
}

/// The lever of rolling resistance where a geom has one and does not say which, as in MuJoCo \[m\].
const USUAL_ROLLING: f64 = 1e-4;

/// The tags of actuators.
const ACTUATORS: [&str; 10] =
    ["general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "plugin"];

/// Elements that are one kind of thing.
fn kind(tag: &str) -> &str {
    if ACTUATORS.contains(&tag) { "actuators" } else { tag }
}

/// Which elements are looked at, by parent.
const STRUCTURE: [(&str, &str); 49] = [
    ("mujoco", "compiler"),
    ("mujoco", "option"),
    ("mujoco", "default"),
    ("mujoco", "asset"),
    ("mujoco", "worldbody"),
    ("mujoco", "contact"),
    ("mujoco", "equality"),
    ("mujoco", "tendon"),
    ("mujoco", "actuator"),
    ("mujoco", "keyframe"),
    ("option", "flag"),
    ("default", "default"),
    ("default", "joint"),
    ("default", "geom"),
    ("default", "site"),
    ("default", "mesh"),
    ("default", "general"),
    ("default", "motor"),
    ("default", "position"),
    ("default", "velocity"),
    ("asset", "mesh"),
    ("worldbody", "body"),
    ("worldbody", "geom"),
    ("worldbody", "site"),
    ("worldbody", "frame"),
    ("frame", "body"),
    ("frame", "geom"),
    ("frame", "site"),
    ("frame", "frame"),
    ("body", "body"),
    ("body", "frame"),
    ("body", "inertial"),
    ("body", "joint"),
    ("body", "freejoint"),
    ("body", "geom"),
    ("body", "site"),
    ("contact", "exclude"),
    ("equality", "connect"),
    ("equality", "weld"),
    ("equality", "joint"),
    ("tendon", "spatial"),
    ("tendon", "fixed"),
    ("spatial", "site"),
    ("actuator", "general"),
    ("actuator", "motor"),
    ("actuator", "position"),
    ("actuator", "velocity"),
    ("actuator", "muscle"),
    ("keyframe", "key"),
];

/// Reads an MJCF file with all that it includes.
pub fn read(file: &InputFile) -> Result<Robot, FileError> {
    let (path, root) = (file.path(), &xml::read(file, Includes::Expand)?);
    if root.tag != "mujoco" {
        let what = format!("its root is <{}>, not <mujoco>", root.tag);
        return Err(FileError::new("file/mjcf", path, what, "give an MJCF file, or a URDF with the ending .urdf"));
    }
    if root.child("worldbody").is_none() {
        let what = "it has no <worldbody>: it is a fragment to be included by other files";
        return Err(FileError::new("file/fragment", path, what, "open the file that includes it"));
    }
    let asked = Asked::new(kind);
    for (parent, child) in STRUCTURE {
        asked.knows(parent, child);
    }
    let classes = Classes::read(root)?;
    for element in root.all("default") {
        asked.of(element, &[]).text("class");
    }
    let mut reader = Reader {
        file,
        asked: &asked,
        classes: &classes,
        compiler: Compiler::default(),
        meshes: BTreeMap::new(),
        robot: Robot { gravity: DVec3::new(0.0, 0.0, -9.81), ..Robot::default() },
        bodies: BTreeMap::new(),
        axes: BTreeMap::new(),
        sites: BTreeMap::new(),
        weights: Vec::new(),
    };
    reader.model(root)?;
    let mut robot = reader.robot;
    robot.notes.extend(asked.unknown(root));
    Ok(robot)
}

/// `<compiler>`.
struct Compiler {
    /// Radians in the file's unit of angles.
    angle: f64,
    euler: Vec<char>,
    autolimits: bool,
    mesh_folder: PathBuf,
    strip_path: bool,
    inertia: InertiaFrom,
    groups: [f64; 2],
    total_mass: Option<f64>,
    least_mass: f64,
    least_inertia: f64,
    balance: bool,
}

/// Where the inertia of a body comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InertiaFrom {
    Geoms,
    Elements,
    Either,
}

impl Default for Compiler {
    fn default() -> Self {
        Compiler {
            angle: std::f64::consts::PI / 180.0,
            euler: vec!['x', 'y', 'z'],
            autolimits: true,
            mesh_folder: PathBuf::new(),
            strip_path: false,
            inertia: InertiaFrom::Either,
            groups: [0.0, 5.0],
            total_mass: None,
            least_mass: 0.0,
            least_inertia: 0.0,
            balance: false,
        }
    }
}

/// A mesh of `<asset>`, read when a geom first asks for it.
struct MeshAsset {
    file: Option<PathBuf>,
    points: Option<Vec<DVec3>>,
    scale: DVec3,
}

struct Reader<'a> {
    file: &'a InputFile,
    asked: &'a Asked,
    classes: &'a Classes,
    compiler: Compiler,
    meshes: BTreeMap<String, MeshAsset>,
    robot: Robot,
    /// By name: its link.
    bodies: BTreeMap<String, usize>,
    /// By name: link and axis.
    axes: BTreeMap<String, (usize, usize)>,
    /// By name: link and place.
    sites: BTreeMap<String, (Option<usize>, Pose)>,
    /// By link: what its geoms weigh.
    weights: Vec<Option<Inertial>>,
}

/// Where an element stands: its link, a frame around it, and the class it inherits from.
#[derive(Clone, Copy)]
struct Around<'a> {
    link: Option<usize>,
    frame: Pose,
    class: &'a str,
}

impl Reader<'_> {
    fn note(&mut self, code: &'static str, part: impl Into<String>, text: impl Into<String>) {
        self.robot.notes.push(Note { code, part: part.into(), text: text.into() });
    }

    fn model(&mut self, root: &Element) -> Result<(), FileError> {
        let stem = || self.file.path().file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let source = self.asked.of(root, &[]);
        self.robot.name = source.text("model").map_or_else(stem, str::to_owned);
        for element in root.all("compiler") {
            self.compiler(element)?;
        }
        for element in root.all("option") {
            self.option(element)?;
        }
        for asset in root.all("asset") {
            for mesh in asset.all("mesh") {
                self.mesh(mesh)?;
            }
        }
        for world in root.all("worldbody") {
            let class = world.get("childclass").unwrap_or(MAIN);
            self.inside(world, Around { link: None, frame: Pose::IDENTITY, class })?;
        }
        self.inertias()?;
        for section in root.all("equality") {
            for element in &section.children {
                self.equality(element)?;
            }
        }
        for section in root.all("tendon") {
            for element in &section.children {
                self.tendon(element)?;
            }
        }
        for section in root.all("actuator") {
            for element in &section.children {
                self.actuator(element)?;
            }
        }
        for section in root.all("contact") {
            for element in section.all("exclude") {
                let source = self.asked.of(element, &[]);
                source.text("name");
                if let (Some(a), Some(b)) = (self.body_named(source, "body1")?, self.body_named(source, "body2")?) {
                    self.robot.strangers.push((a, b));
                }
            }
        }
        for section in root.all("keyframe") {
            for (k, element) in section.all("key").enumerate() {
                self.key(element, k)?;
            }
        }
        Ok(())
    }

    fn compiler(&mut self, element: &Element) -> Result<(), FileError> {
        let source = self.asked.of(element, &[]);
        let c = &mut self.compiler;
        match source.text("angle") {
            Some("radian") => c.angle = 1.0,
            Some("degree") => c.angle = std::f64::consts::PI / 180.0,
            Some(other) => return Err(source.wrong("angle", other, "radian or degree")),
            None => {}
        }
        if source.text("coordinate").is_some_and(|text| text != "local") {
            return Err(source.wrong("coordinate", "global", "local: global coordinates are no longer part of MJCF"));
        }
        if let Some(text) = source.text("eulerseq") {
            let letters: Vec<char> = text.chars().collect();
            if letters.len() != 3 || letters.iter().any(|c| !"xyzXYZ".contains(*c)) {
                return Err(source.wrong("eulerseq", text, "three letters of xyzXYZ"));
            }
            c.euler = letters;
        }
        let flag = |name| -> Result<Option<bool>, FileError> {
            match source.text(name) {
                Some("true") => Ok(Some(true)),
                Some("false") => Ok(Some(false)),
                Some(other) => Err(source.wrong(name, other, "true or false")),
                None => Ok(None),
            }
        };
        c.autolimits = flag("autolimits")?.unwrap_or(c.autolimits);
        c.strip_path = flag("strippath")?.unwrap_or(c.strip_path);
        c.balance = flag("balanceinertia")?.unwrap_or(c.balance);
        match source.text("inertiafromgeom") {
            Some("true") => c.inertia = InertiaFrom::Geoms,
            Some("false") => c.inertia = InertiaFrom::Elements,
            _ => {}
        }
        c.groups = source.numbers::<2>("inertiagrouprange")?.unwrap_or(c.groups);
        c.total_mass = source.number("settotalmass")?.filter(|mass| *mass > 0.0).or(c.total_mass);
        c.least_mass = source.number("boundmass")?.unwrap_or(c.least_mass);
        c.least_inertia = source.number("boundinertia")?.unwrap_or(c.least_inertia);
        for name in ["assetdir", "meshdir"] {
            if let Some(folder) = source.text(name) {
                c.mesh_folder = PathBuf::from(folder);
            }
        }
        Ok(())
    }

    fn option(&mut self, element: &Element) -> Result<(), FileError> {
        let source = self.asked.of(element, &[]);
        if let Some(gravity) = source.vector("gravity")? {
            self.robot.gravity = gravity;
        }
        for name in ["density", "viscosity"] {
            if source.number(name)?.is_some_and(|x| x != 0.0) {
                self.note("import/medium", name, "the drag of air or water around bodies is not simulated: left out");
            }
        }
        if let Some(flag) = element.child("flag") {
            let source = self.asked.of(flag, &[]);
            if source.text("gravity") == Some("disable") {
                self.robot.gravity = DVec3::ZERO;
            }
            if [source.text("contact"), source.text("constraint")].contains(&Some("disable")) {
                self.robot.contacts = Contacts::Off;
            }
        }
        Ok(())
    }

    fn mesh(&mut self, element: &Element) -> Result<(), FileError> {
        let source = self.asked.of(element, self.classes.inherited(element, MAIN)?);
        source.text("class");
        let file = source.text("file").map(|file| {
            let file = Path::new(file);
            let file = if self.compiler.strip_path { file.file_name().map_or(file, Path::new) } else { file };
            self.compiler.mesh_folder.join(file)
        });
        let stem =
            || file.as_ref().and_then(|f| f.file_stem()).map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let name = source.name_or(stem);
        let scale = source.vector("scale")?.unwrap_or(DVec3::ONE);
        let points = source.list("vertex", 3_000_000)?.and_then(|list| {
            let points: Vec<DVec3> = list.chunks_exact(3).map(|p| DVec3::from_slice(p) * scale).collect();
            let hull = few_of_hull(&points);
            if let Err(fault) = &hull {
                self.note("import/mesh", &name, format!("it was left out: {fault}; give a solid mesh"));
            }
            hull.ok()
        });
        self.meshes.insert(name, MeshAsset { file, points, scale });
        Ok(())
    }

    /// A turn, by whichever attribute gives one.
    fn turn(&self, source: Source<'_>) -> Result<DQuat, FileError> {
        let unit = |name: &str, v: DVec3| v.try_normalize().ok_or_else(|| source.wrong(name, "0", "a direction"));
        if let Some([w, x, y, z]) = source.numbers::<4>("quat")? {
            let q = DQuat::from_xyzw(x, y, z, w);
            return if q.length() > 1e-12 {
                Ok(q.normalize())
            } else {
                Err(source.wrong("quat", "0 0 0 0", "a quaternion w x y z"))
            };
        }
        if let Some([x, y, z, a]) = source.numbers::<4>("axisangle")? {
            return Ok(DQuat::from_axis_angle(unit("axisangle", DVec3::new(x, y, z))?, a * self.compiler.angle));
        }
        if let Some(angles) = source.numbers::<3>("euler")? {
            let mut turn = DQuat::IDENTITY;
            for (letter, angle) in self.compiler.euler.iter().zip(angles) {
                let angle = angle * self.compiler.angle;
                let step = match letter.to_ascii_lowercase() {
                    'x' => DQuat::from_rotation_x(angle),
                    'y' => DQuat::from_rotation_y(angle),
                    _ => DQuat::from_rotation_z(angle),
                };
                // small letters turn with the frame, capital ones about fixed axes
                turn = if letter.is_ascii_lowercase() { turn * step } else { step * turn };
            }
            return Ok(turn);
        }
        if let Some(v) = source.numbers::<6>("xyaxes")? {
            let x = unit("xyaxes", DVec3::from_slice(&v))?;
            let y = DVec3::from_slice(&v[3..]);
            let y = unit("xyaxes", y - x * x.dot(y))?;
            return Ok(DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y))));
        }
        match source.vector("zaxis")? {
            Some(z) => Ok(z_to(unit("zaxis", z)?)),
            None => Ok(DQuat::IDENTITY),
        }
    }

    /// `pos` and a turn.
    fn pose(&self, source: Source<'_>) -> Result<Pose, FileError> {
        Ok(Pose::new(self.turn(source)?, source.vector("pos")?.unwrap_or_default()))
    }

    /// Everything inside `<worldbody>`, `<body>` or `<frame>`.
    fn inside(&mut self, element: &Element, around: Around<'_>) -> Result<(), FileError> {
        for child in &element.children {
            match child.tag.as_str() {
                "body" => self.body(child, around)?,
                "frame" => {
                    let source = self.asked.of(child, &[]);
                    source.text("name");
                    let class = source.text("childclass").unwrap_or(around.class);
                    let frame = around.frame.then(self.pose(source)?);
                    self.inside(child, Around { frame, class, ..around })?;
                }
                "geom" => self.geom(child, around)?,
                "site" => {
                    let source = self.asked.of(child, self.classes.inherited(child, around.class)?);
                    source.text("class");
                    let (place, _) = self.placed(source)?;
                    if let Some(name) = source.text("name") {
                        self.sites.insert(name.to_owned(), (around.link, around.frame.then(place)));
                    }
                }
                "joint" | "freejoint" => self.joint(child, around)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn body(&mut self, element: &Element, around: Around<'_>) -> Result<(), FileError> {
        let source = self.asked.of(element, &[]);
        let number = self.robot.links.len();
        let name = source.name_or(|| format!("body {}", number + 1));
        if self.bodies.insert(name.clone(), number).is_some() {
            return Err(element.error("file/structure", "two bodies have this name", "give each body its own name"));
        }
        if source.text("mocap") == Some("true") {
            self.note("import/mocap", &name, "it is moved from outside in MuJoCo: here it stands still");
        }
        let class = source.text("childclass").unwrap_or(around.class);
        let parent_from_link = around.frame.then(self.pose(source)?);
        let inertial = element.child("inertial").map(|inertial| self.inertial(inertial)).transpose()?;
        self.robot.links.push(Link { name, parent: around.link, parent_from_link, inertial, ..Link::default() });
        self.weights.push(None);
        self.inside(element, Around { link: Some(number), frame: Pose::IDENTITY, class })
    }

    fn inertial(&self, element: &Element) -> Result<Inertial, FileError> {
        let source = self.asked.of(element, &[]);
        let mass =
            source.number("mass")?.ok_or_else(|| element.error("file/value", "it has no mass", "give mass=\"…\""))?;
        if mass < 0.0 {
            return Err(element.error(
                "file/value",
                format!("its mass is {} kg", plain(mass)),
                "give a mass of 0 or more",
            ));
        }
        let place = self.pose(source)?;
        let inertia = if let Some([xx, yy, zz, xy, xz, yz]) = source.numbers::<6>("fullinertia")? {
            DMat3::from_cols_array(&[xx, xy, xz, xy, yy, yz, xz, yz, zz])
        } else {
            DMat3::from_diagonal(source.vector("diaginertia")?.unwrap_or_default())
        };
        Ok(Inertial { mass, centre: DVec3::ZERO, inertia }.moved(place))
    }

    /// Place and half length of a geom or site: by `fromto`, or by `pos` and a turn.
    fn placed(&self, source: Source<'_>) -> Result<(Pose, Option<f64>), FileError> {
        let Some(ends) = source.numbers::<6>("fromto")? else { return Ok((self.pose(source)?, None)) };
        let (a, b) = (DVec3::from_slice(&ends), DVec3::from_slice(&ends[3..]));
        let along =
            (b - a).try_normalize().ok_or_else(|| source.wrong("fromto", "both ends", "two points that differ"))?;
        Ok((Pose::new(z_to(along), (a + b) * 0.5), Some(0.5 * (b - a).length())))
    }

    fn geom(&mut self, element: &Element, around: Around<'_>) -> Result<(), FileError> {
        let source = self.asked.of(element, self.classes.inherited(element, around.class)?);
        source.text("class");
        let name = source.name_or(String::new);
        let (place, half_length) = self.placed(source)?;
        let place = around.frame.then(place);
        let size = source.list("size", 3)?.unwrap_or_default();
        let mesh = source.text("mesh");
        let kind = source.text("type").unwrap_or(if mesh.is_some() { "mesh" } else { "sphere" });
        let along_z = Pose::new(z_from_x(), DVec3::ZERO);
        let need = |k: usize| -> Result<f64, FileError> {
            let text = source.text("size").unwrap_or_default();
            size.get(k)
                .copied()
                .filter(|x| *x > 0.0)
                .ok_or_else(|| source.wrong("size", text, "positive numbers, as many as the type needs"))
        };
        let length = |k: usize| half_length.map_or_else(|| need(k), Ok);
        let mut volume = None;
        let (form, turn) = match kind {
            "plane" => (Form::Below, Pose::IDENTITY),
            "sphere" => (Form::Solid(Shape::sphere(need(0)?)), Pose::IDENTITY),
            "capsule" => (Form::Solid(Shape::capsule(2.0 * length(1)?, need(0)?)), along_z),
            "cylinder" => (Form::Solid(Shape::cylinder(2.0 * length(1)?, need(0)?)), along_z),
            "box" | "ellipsoid" => {
                let half = match half_length {
                    Some(half) => DVec3::new(need(0)?, need(0)?, half),
                    None => DVec3::new(need(0)?, need(1)?, need(2)?),
                };
                if kind == "box" {
                    (Form::Solid(Shape::Cuboid { size: half * 2.0 }), Pose::IDENTITY)
                } else {
                    volume = Some(ellipsoid(half));
                    (Form::Solid(Shape::Hull { points: ellipsoid_points(half) }), Pose::IDENTITY)
                }
            }
            "mesh" => match self.mesh_points(source, mesh)? {
                Some(points) => (Form::Solid(Shape::Hull { points }), Pose::IDENTITY),
                None => return Ok(()),
            },
            other => {
                self.note("import/shape", element.place(), format!("geoms of type {other} are left out"));
                return Ok(());
            }
        };
        if mesh.is_some() && kind != "mesh" {
            self.note(
                "import/shape",
                element.place(),
                "a form is not fitted to a mesh: its sizes were taken as they stand",
            );
        }

        // Weight: the mass that is given, else density times volume. (volume, inertia for density 1)
        let group = source.number("group")?.unwrap_or(0.0);
        let (mass, density) = (source.number("mass")?, source.number("density")?.unwrap_or(1000.0));
        if mass.is_some_and(|mass| mass < 0.0) || density < 0.0 {
            return Err(element.error("file/value", "its mass or density is negative", "give 0 or more"));
        }
        if source.text("shellinertia") == Some("true") {
            self.note("import/shell", element.place(), "the inertia of a shell is taken as that of a solid");
        }
        if let (Form::Solid(shape), Some(link)) = (&form, around.link)
            && (self.compiler.groups[0]..=self.compiler.groups[1]).contains(&group)
        {
            let solid = volume.or_else(|| {
                let solid = shape.solid().ok()?;
                Some(Inertial { mass: solid.volume, centre: solid.centre, inertia: solid.inertia })
            });
            if let Some(solid) = solid {
                let weight = solid.scaled(mass.map_or(density, |mass| mass / solid.mass)).moved(place.then(turn));
                let sum = &mut self.weights[link];
                *sum = Some(sum.map_or(weight, |sum| sum.plus(&weight)));
            }
        }
        let bits =
            |name| -> Result<u32, FileError> { Ok(source.number(name)?.map_or(1, |x| x.clamp(0.0, 65535.0) as u32)) };
        let (contype, conaffinity) = (bits("contype")?, bits("conaffinity")?);
        // Two geoms touch in MuJoCo when contype of one meets conaffinity of the other, either way round: with both in one word, the lower
        // half of one and the upper half of the other, each side's groups meet exactly then.
        let groups = Groups { member: contype | conaffinity << 16, collides_with: conaffinity | contype << 16 };
        let surface = source.list("friction", 3)?;
        let given = |k: usize| surface.as_ref().and_then(|list| list.get(k).copied());
        // The third number is a lever, and acts where contacts have six dimensions.
        let rolls = source.number("condim")?.is_some_and(|n| n >= 6.0);
        let rolling = if rolls { given(2).unwrap_or(USUAL_ROLLING).max(0.0) } else { 0.0 };
        let geom = Geom { name, form, place: place.then(turn), groups, friction: given(0), rolling };
        match around.link {
            None => self.robot.fixtures.push(geom),
            Some(link) if geom.form == Form::Below => {
                let part = self.robot.links[link].name.clone();
                self.note("import/shape", part, "a plane on a body is left out");
            }
            Some(link) => self.robot.links[link].geoms.push(geom),
        }
        Ok(())
    }

    /// The hull of a mesh asset.
    fn mesh_points(&mut self, source: Source<'_>, name: Option<&str>) -> Result<Option<Vec<DVec3>>, FileError> {
        let Some(asset) = name.and_then(|name| self.meshes.get_mut(name)) else {
            return Err(source.wrong("mesh", name.unwrap_or_default(), "the name of a mesh in <asset>"));
        };
        if asset.points.is_none() {
            let (file, scale) = (asset.file.take(), asset.scale);
            let Some(file) = file else { return Ok(None) };
            let points = match self.file.beside(&file) {
                Ok(found) => mesh_hull(&found, scale).map_err(|e| ("import/mesh", e)),
                Err(e) => Err((missing(&e), e)),
            };
            match points {
                Ok(points) => asset.points = Some(points),
                Err((code, e)) => {
                    let text = format!("mesh {} was left out: {}; {}", file.display(), e.what, e.remedy);
                    self.note(code, name.unwrap_or_default(), text);
                    return Ok(None);
                }
            }
        }
        Ok(asset_points(&self.meshes, name))
    }

    fn joint(&mut self, element: &Element, around: Around<'_>) -> Result<(), FileError> {
        let Some(link) = around.link else {
            return Err(element.error("file/structure", "the world has a joint", "joints stand in bodies"));
        };
        let free = element.tag == "freejoint";
        let inherited = if free { &[] } else { self.classes.inherited(element, around.class)? };
        let source = self.asked.of(element, inherited);
        source.text("class");
        let owner = self.robot.links[link].name.clone();
        let count = self.robot.links[link].axes.len();
        let name = source.name_or(|| format!("{owner} joint {}", count + 1));
        let kind = match source.text("type").filter(|_| !free) {
            None if free => Kind::Free,
            None | Some("hinge") => Kind::Hinge,
            Some("free") => Kind::Free,
            Some("slide") => Kind::Slide,
            Some("ball") => Kind::Ball,
            Some(other) => return Err(source.wrong("type", other, "free, ball, slide or hinge")),
        };
        if kind == Kind::Free && (self.robot.links[link].parent.is_some() || count > 0) {
            return Err(element.error(
                "file/structure",
                "a free joint is not alone, or its body is not in the world",
                "move the body to <worldbody>",
            ));
        }
        let mut axis = Axis::new(name.clone(), kind);
        axis.anchor = source.vector("pos")?.unwrap_or_default();
        let direction = source.vector("axis")?.unwrap_or(DVec3::Z);
        if matches!(kind, Kind::Hinge | Kind::Slide) {
            axis.direction = direction.try_normalize().ok_or_else(|| source.wrong("axis", "0 0 0", "a direction"))?;
        }
        let unit = if matches!(kind, Kind::Hinge | Kind::Ball) { self.compiler.angle } else { 1.0 };
        axis.reference = source.number("ref")?.unwrap_or(0.0) * unit;
        axis.rest = source.number("springref")?.unwrap_or(0.0) * unit;
        let range = source.numbers::<2>("range")?;
        if self.limited(source, "limited", range.is_some())? && kind != Kind::Free {
            let [low, high] = range.unwrap_or_default();
            if low > high {
                return Err(source.wrong(
                    "range",
                    &format!("{} {}", plain(low), plain(high)),
                    "the smaller number first",
                ));
            }
            axis.range = Some([low * unit, high * unit]);
        }
        let first = |name| -> Result<f64, FileError> {
            Ok(source.list(name, 4)?.and_then(|l| l.first().copied()).unwrap_or(0.0).max(0.0))
        };
        (axis.stiffness, axis.damping) = (first("stiffness")?, first("damping")?);
        let (armature, friction) = (first("armature")?, first("frictionloss")?);
        if armature > 0.0 {
            self.note("import/armature", &name, "the inertia of rotors (armature) is not simulated: left out");
        }
        if friction > 0.0 {
            self.note("import/friction", &name, "dry friction in joints is not simulated: left out");
        }
        if kind == Kind::Free && (axis.stiffness > 0.0 || axis.damping > 0.0) {
            self.note("import/damping", &name, "springs and dampers on a free joint are left out");
        }
        if kind == Kind::Ball && axis.range.is_some() {
            self.note("import/limit", &name, "its largest turn became a largest swing and a largest twist");
        }
        if self.axes.insert(name, (link, count)).is_some() {
            return Err(element.error("file/structure", "two joints have this name", "give each joint its own name"));
        }
        self.robot.links[link].axes.push(axis);
        Ok(())
    }

    /// `limited="auto"` means: if there is a range.
    fn limited(&self, source: Source<'_>, name: &'static str, has_range: bool) -> Result<bool, FileError> {
        match source.text(name) {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some("auto") | None => Ok(has_range && self.compiler.autolimits),
            Some(other) => Err(source.wrong(name, other, "true, false or auto")),
        }
    }

    /// Inertia of links: from their element, from their geoms, or whichever there is.
    fn inertias(&mut self) -> Result<(), FileError> {
        let from = self.compiler.inertia;
        for (link, weight) in self.robot.links.iter_mut().zip(&self.weights) {
            let own = link.inertial.take().filter(|_| from != InertiaFrom::Geoms);
            let weight = weight.filter(|w| from != InertiaFrom::Elements && w.mass > 0.0);
            link.inertial = own.or(weight);
            if let Some(inertial) = &mut link.inertial {
                inertial.mass = inertial.mass.max(self.compiler.least_mass);
                *inertial = inertial.bounded(self.compiler.least_inertia);
                if self.compiler.balance && inertial.mended().1 == Some(Mended::Moments) {
                    *inertial = inertial.balanced();
                    let text =
                        "its moments of inertia are those of no body: their mean was taken for each (balanceinertia)";
                    let note = Note { code: "import/inertia", part: link.name.clone(), text: text.to_owned() };
                    self.robot.notes.push(note);
                }
            }
        }
        if let Some(total) = self.compiler.total_mass {
            let sum: f64 = self.robot.links.iter().filter_map(|link| link.inertial).map(|i| i.mass).sum();
            for inertial in self.robot.links.iter_mut().filter_map(|link| link.inertial.as_mut()).filter(|_| sum > 0.0)
            {
                *inertial = inertial.scaled(total / sum);
            }
        }
        Ok(())
    }

    /// The link of a body; `None`: the world, which is also meant where none is named.
    fn body_named(&self, source: Source<'_>, name: &'static str) -> Result<Option<usize>, FileError> {
        match source.text(name) {
            None | Some("world") => Ok(None),
            Some(body) => match self.bodies.get(body) {
                Some(link) => Ok(Some(*link)),
                None => Err(source.wrong(name, body, "the name of a body")),
            },
        }
    }

    fn site_named(&self, source: Source<'_>, name: &'static str) -> Result<Option<(Option<usize>, Pose)>, FileError> {
        let Some(site) = source.text(name) else { return Ok(None) };
        self.sites.get(site).copied().map(Some).ok_or_else(|| source.wrong(name, site, "the name of a site"))
    }

    fn equality(&mut self, element: &Element) -> Result<(), FileError> {
        let kind = match element.tag.as_str() {
            "connect" => ClosureKind::Point,
            "weld" => ClosureKind::Frame,
            "joint" => return self.coupling(element),
            _ => return Ok(()),
        };
        let source = self.asked.of(element, self.classes.inherited(element, MAIN)?);
        source.text("class");
        let count = self.robot.closures.len();
        let name = source.name_or(|| format!("{} {}", element.tag, count + 1));
        if source.text("active") == Some("false") {
            self.note("import/closure", name, "it is not active at the start: left out");
            return Ok(());
        }
        let sites = (self.site_named(source, "site1")?, self.site_named(source, "site2")?);
        let closure = if let (Some((a, in_a)), Some((b, in_b))) = sites {
            Closure { name, kind, a, in_a, b, in_b: Some(in_b) }
        } else {
            let (a, b) = (self.body_named(source, "body1")?, self.body_named(source, "body2")?);
            let anchor = source.vector("anchor")?;
            let relative = if kind == ClosureKind::Frame { source.list("relpose", 7)? } else { None };
            // x y z w i j k; a quaternion of zeros means the relative pose at the start
            let given = relative
                .filter(|v| v.len() == 7 && v[3..].iter().any(|x| *x != 0.0))
                .map(|v| Pose::new(DQuat::from_xyzw(v[4], v[5], v[6], v[3]).normalize(), DVec3::from_slice(&v)));
            match given {
                Some(pose) => Closure { name, kind, a, in_a: pose, b, in_b: Some(Pose::IDENTITY) },
                None => {
                    let at = if kind == ClosureKind::Point { anchor.unwrap_or_default() } else { DVec3::ZERO };
                    Closure { name, kind, a, in_a: Pose::at(at), b, in_b: None }
                }
            }
        };
        self.robot.closures.push(closure);
        Ok(())
    }

    /// `y − y_ref = c_0 + c_1 (x − x_ref) + …`
    fn coupling(&mut self, element: &Element) -> Result<(), FileError> {
        // What classes say of joints is about those of bodies.
        let source = self.asked.of(element, &[]);
        for name in ["class", "solref", "solimp"] {
            source.text(name);
        }
        let count = self.robot.couplings.len();
        let name = source.name_or(|| format!("joint {}", count + 1));
        if source.text("active") == Some("false") {
            self.note("import/coupling", name, "it is not active at the start: left out");
            return Ok(());
        }
        let axis = |name: &'static str| match source.text(name) {
            Some(joint) if self.axes.contains_key(joint) => Ok(Some(joint.to_owned())),
            Some(joint) => Err(source.wrong(name, joint, "the name of a joint")),
            None => Ok(None),
        };
        let Some(follower) = axis("joint1")? else {
            return Err(element.error("file/value", "it names no joint", "give joint1=\"…\""));
        };
        let leader = axis("joint2")?;
        let mut polynomial = [0.0, 1.0, 0.0, 0.0, 0.0];
        if let Some(given) = source.list("polycoef", 5)? {
            polynomial = std::array::from_fn(|k| given.get(k).copied().unwrap_or(polynomial[k]));
        }
        self.robot.couplings.push(AxisCoupling { name, follower, leader, polynomial });
        Ok(())
    }

    fn tendon(&mut self, element: &Element) -> Result<(), FileError> {
        let source = self.asked.of(element, &[]);
        let name = source.name_or(|| element.place());
        if element.tag == "fixed" {
            self.note("import/tendon", name, "tendons between joints are not simulated: left out");
            return Ok(());
        }
        if element.tag != "spatial" {
            return Ok(());
        }
        let stiffness = source.list("stiffness", 4)?.and_then(|l| l.first().copied()).unwrap_or(0.0);
        let length = source.list("springlength", 2)?.and_then(|l| l.first().copied()).filter(|l| *l >= 0.0);
        let plain = element.children.len() == 2 && element.all("site").count() == 2;
        if !plain || stiffness <= 0.0 {
            self.note("import/tendon", name, "only tendons that are springs between two sites are simulated: left out");
            return Ok(());
        }
        if source.number("damping")?.is_some_and(|c| c > 0.0) {
            self.note("import/tendon", &name, "the damping of the tendon is left out");
        }
        let site = |k: usize| self.site_named(self.asked.of(&element.children[k], &[]), "site");
        if let (Some((a, in_a)), Some((b, in_b))) = (site(0)?, site(1)?) {
            let (point_in_a, point_in_b) = (in_a.translation, in_b.translation);
            self.robot.springs.push(PointSpring { name, a, point_in_a, b, point_in_b, stiffness, rest_length: length });
        }
        Ok(())
    }

    fn actuator(&mut self, element: &Element) -> Result<(), FileError> {
        let source = self.asked.of(element, self.classes.inherited(element, MAIN)?);
        source.text("class");
        let name = source.name_or(|| element.place());
        match self.motor(element, source)? {
            Ok((link, axis, actuator)) => self.robot.links[link].axes[axis].actuator = Some(actuator),
            Err(why) => self.note("import/actuator", name, why),
        }
        Ok(())
    }

    /// The motor that an actuator is, with its link and axis, or why it is left out.
    fn motor(
        &self,
        element: &Element,
        source: Source<'_>,
    ) -> Result<Result<(usize, usize, Actuator), String>, FileError> {
        let left_out = |text: &str| Ok(Err(text.to_owned()));
        let Some(joint) = source.text("joint") else {
            return left_out("only actuators on joints are simulated: left out");
        };
        let Some(&(link, axis)) = self.axes.get(joint) else {
            return Err(source.wrong("joint", joint, "the name of a joint"));
        };
        let gear = source.list("gear", 6)?.and_then(|list| list.first().copied()).unwrap_or(1.0);
        let (control, force) = (source.numbers::<2>("ctrlrange")?, source.numbers::<2>("forcerange")?);
        let control = control.filter(|_| self.limited(source, "ctrllimited", true).unwrap_or(false));
        let force = force.filter(|_| self.limited(source, "forcelimited", true).unwrap_or(false));
        let reach = |range: Option<[f64; 2]>| range.map_or(f64::INFINITY, |[a, b]| a.abs().max(b.abs()));
        let start = control.map_or(0.0, |[low, high]| 0f64.clamp(low.min(high), high.max(low)));
        let strongest = (gear * reach(force)).abs();
        let reference = self.robot.links[link].axes[axis].reference;
        let position = |target: f64| Some(ServoTarget::Position { position: target - reference, rate: 0.0 });
        let actuator = match element.tag.as_str() {
            "motor" => Actuator { gains: None, max: strongest.min((gear * reach(control)).abs()), target: None },
            "position" => {
                let (kp, kv) = (source.number("kp")?.unwrap_or(1.0), source.number("kv")?.unwrap_or(0.0));
                let target = if gear == 0.0 { 0.0 } else { start / gear };
                Actuator { gains: Some([kp * gear * gear, kv * gear * gear]), max: strongest, target: position(target) }
            }
            "velocity" => {
                let kv = source.number("kv")?.unwrap_or(1.0);
                let rate = if gear == 0.0 { 0.0 } else { start / gear };
                Actuator { gains: Some([0.0, kv * gear * gear]), max: strongest, target: Some(ServoTarget::Rate(rate)) }
            }
            "general" => {
                let list = |name| source.list(name, 10);
                let gain = list("gainprm")?.and_then(|l| l.first().copied()).unwrap_or(1.0);
                let bias = list("biasprm")?.unwrap_or_default();
                let [b0, b1, b2] = [0, 1, 2].map(|k| bias.get(k).copied().unwrap_or(0.0));
                let dynamics = source.text("dyntype").unwrap_or("none");
                if dynamics != "none" || source.text("gaintype").is_some_and(|t| t != "fixed") {
                    return left_out("only actuators with fixed gain and without dynamics are simulated: left out");
                }
                match source.text("biastype").unwrap_or("none") {
                    // torque = gear (gain·u + b0 + b1·gear·q + b2·gear·q̇)
                    "affine" if b1 <= 0.0 && b2 <= 0.0 => {
                        let target = if b1 == 0.0 || gear == 0.0 { 0.0 } else { (gain * start + b0) / (-b1 * gear) };
                        Actuator {
                            gains: Some([-b1 * gear * gear, -b2 * gear * gear]),
                            max: strongest,
                            target: position(target),
                        }
                    }
                    "none" => {
                        Actuator { gains: None, max: strongest.min((gear * gain * reach(control)).abs()), target: None }
                    }
                    _ => return left_out("its bias is none that a servo has: left out"),
                }
            }
            other => {
                let text = format!("actuators of type {other} are not simulated: left out");
                return left_out(&text);
            }
        };
        if actuator.max.is_nan() || actuator.gains.is_some_and(|[kp, kd]| kp < 0.0 || kd < 0.0) {
            return left_out("its gains are negative: left out");
        }
        if self.robot.links[link].axes[axis].actuator.is_some() {
            return left_out("its joint has a motor already: left out");
        }
        Ok(Ok((link, axis, actuator)))
    }

    fn key(&mut self, element: &Element, number: usize) -> Result<(), FileError> {
        let source = self.asked.of(element, &[]);
        let name = source.name_or(|| format!("key {}", number + 1));
        let Some(positions) = source.list("qpos", 1_000_000)? else { return Ok(()) };
        let wanted: usize = self.robot.links.iter().flat_map(|link| &link.axes).map(|axis| axis.kind.positions()).sum();
        if positions.len() != wanted {
            let text = format!("qpos has {} numbers and the model {wanted}: left out", positions.len());
            self.note("import/key", name, text);
            return Ok(());
        }
        self.robot.poses.push(NamedPose { name, positions });
        Ok(())
    }
}

fn asset_points(meshes: &BTreeMap<String, MeshAsset>, name: Option<&str>) -> Option<Vec<DVec3>> {
    name.and_then(|name| meshes.get(name)).and_then(|asset| asset.points.clone())
}

/// The least turn that carries Z to a direction; half a turn about X where it is opposite.
fn z_to(direction: DVec3) -> DQuat {
    if direction.z < -1.0 + 1e-15 { DQuat::from_rotation_x(std::f64::consts::PI) } else { between(DVec3::Z, direction) }
}

/// Volume integrals of an ellipsoid of density 1 with these half axes: `m = 4/3 π abc`, `I_x = m (b² + c²)/5`.
fn ellipsoid(half: DVec3) -> Inertial {
    let mass = 4.0 / 3.0 * std::f64::consts::PI * half.x * half.y * half.z;
    let q = half * half * (mass / 5.0);
    let inertia = DMat3::from_diagonal(DVec3::new(q.y + q.z, q.x + q.z, q.x + q.y));
    Inertial { mass, centre: DVec3::ZERO, inertia }
}

/// Points on an ellipsoid, whose hull stands for it in contacts and pictures.
fn ellipsoid_points(half: DVec3) -> Vec<DVec3> {
    let mut points: Vec<DVec3> = DVec3::AXES.iter().flat_map(|axis| [*axis, -*axis]).collect();
    for ring in 1..8 {
        let polar = std::f64::consts::PI * f64::from(ring) / 8.0;
        for k in 0..12 {
            let around = std::f64::consts::TAU * f64::from(k) / 12.0;
            points.push(DVec3::new(polar.sin() * around.cos(), polar.sin() * around.sin(), polar.cos()));
        }
    }
    points.into_iter().map(|p| p * half).collect()
}
