//! URDF: links and joints of robots, as ROS and its friends write them.
//!
//! What is read: inertial, collision and visual shapes (box, sphere, cylinder, capsule, STL and OBJ meshes as their convex hulls), joints of
//! every type with axis, limits, effort and damping, and what they mimic. Besides the standard: `capsule`, and joints of type `spherical`, whose limits
//! `lower`, `upper` and `twist` are the largest swings about X and Y and the largest twist about Z, as Bullet reads them.

use crate::meshes;
use crate::robot::{Actuator, Axis, AxisCoupling, Base, Form, Geom, Inertial, Kind, Link, Robot, build, z_from_x};
use crate::xml::{self, Asked, Element, Includes};
use crate::{FileError, Imported, InputFile, Note, plain};
use glam::{DMat3, DQuat, DVec3};
use std::collections::BTreeMap;
use std::path::Path;
use supple::model::ShapeFault;
use supple::model::shape::hull;
use supple::{Groups, Pose, Shape};

/// Whether the root element of an XML text is that of a URDF.
pub(crate) const ROOT: &str = "robot";

/// What a URDF file becomes; its root stands still.
pub fn open(file: &InputFile) -> Result<Imported, FileError> {
    open_based(file, Base::Fixed)
}

/// What a URDF file becomes, its root fixed or floating.
pub fn open_based(file: &InputFile, base: Base) -> Result<Imported, FileError> {
    let robot = read(file)?;
    build(file.path(), &robot, base)?.imported(file.path(), &robot).within_reach()
}

/// Reads a URDF from a text in memory: files that it names are not opened.
pub fn parse(path: &Path, text: &str) -> Result<Robot, FileError> {
    read(&InputFile::sent(path, text.into()))
}

/// Reads a URDF file.
pub fn read(file: &InputFile) -> Result<Robot, FileError> {
    let (path, root) = (file.path(), &xml::read(file, Includes::Keep)?);
    if root.tag != ROOT {
        let what = format!("its root is <{}>, not <robot>", root.tag);
        return Err(FileError::new("file/urdf", path, what, "give a URDF file"));
    }
    let asked = Asked::new(|tag| tag);
    for (parent, child) in STRUCTURE {
        asked.knows(parent, child);
    }
    let mut reader = Reader { file, asked: &asked, notes: Vec::new(), hulls: BTreeMap::new(), couplings: Vec::new() };
    let stem = || path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let name = asked.of(root, &[]).name_or(stem);
    let mut links = Vec::new();
    for element in root.all("link") {
        links.push(reader.link(element)?);
    }
    for material in root.all("material") {
        reader.texture(material.get("name").unwrap_or("material"), material);
    }
    let mut joints = Vec::new();
    for element in root.all("joint") {
        joints.push(reader.joint(element)?);
    }
    let links = order(path, links, joints)?;
    let (mut notes, couplings) = (reader.notes, reader.couplings);
    notes.extend(asked.unknown(root));
    Ok(Robot { name, links, gravity: DVec3::new(0.0, 0.0, -9.81), couplings, notes, ..Robot::default() })
}

/// Which elements are looked at, by parent.
const STRUCTURE: [(&str, &str); 24] = [
    ("robot", "link"),
    ("robot", "joint"),
    ("link", "inertial"),
    ("link", "visual"),
    ("link", "collision"),
    ("inertial", "origin"),
    ("inertial", "mass"),
    ("inertial", "inertia"),
    ("visual", "origin"),
    ("visual", "geometry"),
    ("collision", "origin"),
    ("collision", "geometry"),
    ("geometry", "box"),
    ("geometry", "sphere"),
    ("geometry", "cylinder"),
    ("geometry", "capsule"),
    ("geometry", "mesh"),
    ("joint", "origin"),
    ("joint", "parent"),
    ("joint", "child"),
    ("joint", "axis"),
    ("joint", "limit"),
    ("joint", "dynamics"),
    ("joint", "mimic"),
];

/// A joint before its links are known.
struct Join {
    parent: String,
    child: String,
    parent_from_link: Pose,
    axis: Option<Axis>,
    place: String,
}

struct Reader<'a> {
    file: &'a InputFile,
    asked: &'a Asked,
    notes: Vec<Note>,
    /// By file name and scale: the hull of a mesh, or `None` when it could not be had.
    hulls: BTreeMap<String, Option<Vec<DVec3>>>,
    couplings: Vec<AxisCoupling>,
}

impl Reader<'_> {
    fn note(&mut self, code: &'static str, part: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note { code, part: part.into(), text: text.into() });
    }

    /// `<origin xyz rpy>` of an element: `R = R_z(yaw) R_y(pitch) R_x(roll)`.
    fn origin(&self, element: &Element) -> Result<Pose, FileError> {
        let Some(origin) = element.child("origin") else { return Ok(Pose::IDENTITY) };
        let source = self.asked.of(origin, &[]);
        let at = source.vector("xyz")?.unwrap_or_default();
        let [roll, pitch, yaw] = source.numbers::<3>("rpy")?.unwrap_or_default();
        let turn = DQuat::from_rotation_z(yaw) * DQuat::from_rotation_y(pitch) * DQuat::from_rotation_x(roll);
        Ok(Pose::new(turn, at))
    }

    fn link(&mut self, element: &Element) -> Result<Link, FileError> {
        let source = self.asked.of(element, &[]);
        let Some(name) = source.text("name") else {
            return Err(element.error("file/value", "a link has no name", "give name=\"…\""));
        };
        let inertial = element.child("inertial").map(|inertial| self.inertial(inertial)).transpose()?;
        let mut geoms = Vec::new();
        for (tag, groups) in [("collision", Groups::default()), ("visual", Groups { member: 0, collides_with: 0 })] {
            for element in element.all(tag) {
                geoms.extend(self.geom(name, element, groups)?);
            }
        }
        element.all("visual").flat_map(|visual| visual.all("material")).for_each(|m| self.texture(name, m));
        Ok(Link { name: name.to_owned(), inertial: inertial.flatten(), geoms, ..Link::default() })
    }

    fn inertial(&mut self, element: &Element) -> Result<Option<Inertial>, FileError> {
        let place = self.origin(element)?;
        let mass = match element.child("mass") {
            Some(mass) => self.asked.of(mass, &[]).number("value")?.unwrap_or(0.0),
            None => 0.0,
        };
        if mass < 0.0 {
            return Err(element.error(
                "file/value",
                format!("its mass is {} kg", plain(mass)),
                "give a mass of 0 or more",
            ));
        }
        let mut inertia = DMat3::ZERO;
        if let Some(element) = element.child("inertia") {
            let source = self.asked.of(element, &[]);
            let part = |name| source.number(name).map(Option::unwrap_or_default);
            let (xx, yy, zz) = (part("ixx")?, part("iyy")?, part("izz")?);
            let (xy, xz, yz) = (part("ixy")?, part("ixz")?, part("iyz")?);
            inertia = DMat3::from_cols_array(&[xx, xy, xz, xy, yy, yz, xz, yz, zz]);
        }
        Ok((mass > 0.0).then(|| Inertial { mass, centre: DVec3::ZERO, inertia }.moved(place)))
    }

    fn geom(&mut self, link: &str, element: &Element, groups: Groups) -> Result<Option<Geom>, FileError> {
        let name = self.asked.of(element, &[]).name_or(String::new);
        let place = self.origin(element)?;
        let Some(form) = element.child("geometry").and_then(|geometry| geometry.children.first()) else {
            self.note("import/shape", link, format!("a <{}> without a form was left out", element.tag));
            return Ok(None);
        };
        let source = self.asked.of(form, &[]);
        let size = |name: &'static str| -> Result<f64, FileError> {
            source
                .number(name)?
                .ok_or_else(|| form.error("file/value", format!("it has no {name}"), format!("give {name}=\"…\"")))
        };
        let along_z = Pose::new(z_from_x(), DVec3::ZERO);
        let (shape, turn) = match form.tag.as_str() {
            "box" => {
                let size = source
                    .vector("size")?
                    .ok_or_else(|| form.error("file/value", "it has no size", "give size=\"x y z\""))?;
                (Shape::Cuboid { size }, Pose::IDENTITY)
            }
            "sphere" => (Shape::sphere(size("radius")?), Pose::IDENTITY),
            "cylinder" => (Shape::cylinder(size("length")?, size("radius")?), along_z),
            "capsule" => (Shape::capsule(size("length")?, size("radius")?), along_z),
            "mesh" => {
                let scale = source.vector("scale")?.unwrap_or(DVec3::ONE);
                let Some(file) = source.text("filename") else {
                    return Err(form.error("file/value", "a mesh names no file", "give filename=\"…\""));
                };
                match self.hull(link, file, scale) {
                    Some(points) => (Shape::Hull { points }, Pose::IDENTITY),
                    None => return Ok(None),
                }
            }
            other => {
                self.note("import/shape", link, format!("a shape of kind <{other}> is not known and was left out"));
                return Ok(None);
            }
        };
        Ok(Some(Geom { name, form: Form::Solid(shape), place: place.then(turn), groups, friction: None, rolling: 0.0 }))
    }

    /// Tells of a texture that is missing. None is drawn, but whoever passes the file on wants to know.
    fn texture(&mut self, part: &str, material: &Element) {
        let Some(file) = material.child("texture").and_then(|texture| texture.get("filename")) else { return };
        if let Err(e) = self.file.has_in_package(file) {
            self.note(missing(&e), part, format!("texture {file} {}; {}", e.what, e.remedy));
        }
    }

    /// The hull of a mesh file, made once.
    fn hull(&mut self, link: &str, file: &str, scale: DVec3) -> Option<Vec<DVec3>> {
        let key = format!("{file} {scale}");
        if let Some(known) = self.hulls.get(&key) {
            return known.clone();
        }
        let points = match self.file.in_package(file) {
            Ok(found) => match mesh_hull(&found, scale) {
                Ok(points) => Some(points),
                Err(e) => {
                    self.note("import/mesh", link, format!("mesh {file} was left out: {}; {}", e.what, e.remedy));
                    None
                }
            },
            Err(e) => {
                self.note(missing(&e), link, format!("mesh {file} was left out: it {}; {}", e.what, e.remedy));
                None
            }
        };
        self.hulls.insert(key, points.clone());
        points
    }

    fn joint(&mut self, element: &Element) -> Result<Join, FileError> {
        let source = self.asked.of(element, &[]);
        let Some(name) = source.text("name") else {
            return Err(element.error("file/value", "a joint has no name", "give name=\"…\""));
        };
        let side = |tag: &str| -> Result<String, FileError> {
            let link = element.child(tag).and_then(|side| self.asked.of(side, &[]).text("link"));
            link.map(str::to_owned).ok_or_else(|| {
                element.error("file/value", format!("it has no {tag} link"), format!("give <{tag} link=\"…\"/>"))
            })
        };
        let (parent, child) = (side("parent")?, side("child")?);
        let parent_from_link = self.origin(element)?;
        let kind = match source.text("type").unwrap_or_default() {
            "fixed" => None,
            "revolute" | "continuous" => Some(Kind::Hinge),
            "prismatic" => Some(Kind::Slide),
            "floating" => Some(Kind::Free),
            "planar" => Some(Kind::Planar),
            "spherical" => Some(Kind::Ball),
            other => {
                let known = "fixed, revolute, continuous, prismatic, floating, planar or spherical";
                return Err(element.error(
                    "file/value",
                    format!("joint type \"{other}\" is not known"),
                    format!("give {known}"),
                ));
            }
        };
        let axis = kind.map(|kind| self.axis(name, kind, element)).transpose()?;
        Ok(Join { parent, child, parent_from_link, axis, place: element.place() })
    }

    fn axis(&mut self, name: &str, kind: Kind, element: &Element) -> Result<Axis, FileError> {
        let mut axis = Axis::new(name, kind);
        let given = element.child("axis").map(|axis| self.asked.of(axis, &[]).vector("xyz")).transpose()?.flatten();
        let given = given.unwrap_or(if kind == Kind::Ball { DVec3::Z } else { DVec3::X });
        axis.direction = given.try_normalize().ok_or_else(|| {
            element.error("file/value", "its axis is zero", "give an axis that points somewhere, such as xyz=\"0 0 1\"")
        })?;
        if let Some(limit) = element.child("limit") {
            let source = self.asked.of(limit, &[]);
            let (lower, upper) = (source.number("lower")?.unwrap_or(0.0), source.number("upper")?.unwrap_or(0.0));
            let twist = source.number("twist")?;
            if kind == Kind::Ball {
                axis.cone = Some([lower, upper, twist.unwrap_or(std::f64::consts::PI)]);
            } else if element.get("type") != Some("continuous") && kind != Kind::Planar {
                if lower > upper {
                    return Err(limit.error(
                        "file/value",
                        format!("lower {lower} is above upper {upper}"),
                        "exchange them",
                    ));
                }
                axis.range = Some([lower, upper]);
            }
            if let Some(effort) = source.number("effort")?.filter(|effort| *effort > 0.0) {
                axis.actuator = Some(Actuator { gains: None, max: effort, target: None });
            }
        } else if matches!(element.get("type"), Some("revolute" | "prismatic")) {
            self.note("import/limit", name, "it has no <limit>, which its type asks for: it moves without bounds");
        }
        if let Some(dynamics) = element.child("dynamics") {
            let source = self.asked.of(dynamics, &[]);
            axis.damping = source.number("damping")?.unwrap_or(0.0).max(0.0);
            if source.number("friction")?.is_some_and(|friction| friction != 0.0) {
                self.note("import/friction", name, "dry friction in joints is not simulated: left out");
            }
        }
        if let Some(mimic) = element.child("mimic") {
            let source = self.asked.of(mimic, &[]);
            let Some(leader) = source.text("joint").map(str::to_owned) else {
                return Err(mimic.error("file/value", "it names no joint", "give joint=\"…\""));
            };
            let (times, plus) = (source.number("multiplier")?.unwrap_or(1.0), source.number("offset")?.unwrap_or(0.0));
            self.couplings.push(AxisCoupling {
                name: name.to_owned(),
                follower: name.to_owned(),
                leader: Some(leader),
                polynomial: [plus, times, 0.0, 0.0, 0.0],
            });
        }
        Ok(axis)
    }
}

/// The points of a mesh's hull, few enough for fast contacts.
pub(crate) fn mesh_hull(file: &InputFile, scale: DVec3) -> Result<Vec<DVec3>, FileError> {
    let mesh = meshes::read(file)?;
    let points: Vec<DVec3> = mesh.vertices.iter().map(|v| *v * scale).collect();
    few_of_hull(&points)
        .map_err(|fault| FileError::new("file/mesh", file.path(), fault.to_string(), "give a solid mesh"))
}

/// The corners of a hull around points: few, because every shape that uses a mesh has its own copy.
pub(crate) fn few_of_hull(points: &[DVec3]) -> Result<Vec<DVec3>, ShapeFault> {
    hull(points).map(|(points, _)| few(points))
}

/// Most points of a hull.
const HULL_POINTS: usize = 100;

/// The points furthest out in evenly spread directions.
fn few(points: Vec<DVec3>) -> Vec<DVec3> {
    if points.len() <= HULL_POINTS {
        return points;
    }
    let mut chosen = std::collections::BTreeSet::new();
    for k in 0..HULL_POINTS {
        // Fibonacci's spiral on the sphere
        let z = 1.0 - (2 * k + 1) as f64 / HULL_POINTS as f64;
        let around = k as f64 * 2.399_963_229_728_653; // golden angle
        let r = (1.0 - z * z).sqrt();
        let direction = DVec3::new(r * around.cos(), r * around.sin(), z);
        let reach = |i: &usize| points[*i].dot(direction);
        chosen.extend((0..points.len()).max_by(|a, b| reach(a).total_cmp(&reach(b))));
    }
    chosen.into_iter().map(|i| points[i]).collect()
}

/// The code of a note about a file that was not opened.
pub(crate) fn missing(error: &FileError) -> &'static str {
    match error.code {
        "file/read" => "import/missing-file",
        "file/outside" => "import/outside",
        _ => "import/mesh",
    }
}

/// Links with their parents, parents first.
fn order(path: &Path, links: Vec<Link>, joints: Vec<Join>) -> Result<Vec<Link>, FileError> {
    let wrong = |place: &str, what: String, remedy: &str| {
        FileError::new("file/structure", path, what, remedy).at(place.to_owned())
    };
    let mut number = BTreeMap::new();
    for (i, link) in links.iter().enumerate() {
        if number.insert(link.name.clone(), i).is_some() {
            return Err(wrong(&link.name, "two links have this name".into(), "give each link its own name"));
        }
    }
    let mut names = std::collections::BTreeSet::new();
    let mut joint_of: Vec<Option<Join>> = links.iter().map(|_| None).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); links.len()];
    for join in joints {
        let link = |name: &str| number.get(name).copied();
        let place = join.place.clone();
        let unknown =
            |name: &str| wrong(&place, format!("there is no link \"{name}\""), "add the link, or correct the name");
        let parent = link(&join.parent).ok_or_else(|| unknown(&join.parent))?;
        let child = link(&join.child).ok_or_else(|| unknown(&join.child))?;
        if joint_of[child].is_some() {
            return Err(wrong(
                &place,
                format!("link \"{}\" has two parents", join.child),
                "a link has one parent joint; a URDF cannot close loops",
            ));
        }
        if join.axis.as_ref().is_some_and(|axis| !names.insert(axis.name.clone())) {
            return Err(wrong(&place, "two joints have this name".into(), "give each joint its own name"));
        }
        children[parent].push(child);
        joint_of[child] = Some(join);
    }
    let mut stack: Vec<usize> = (0..links.len()).rev().filter(|&i| joint_of[i].is_none()).collect();
    let mut links: Vec<Option<Link>> = links.into_iter().map(Some).collect();
    let mut place = vec![usize::MAX; links.len()];
    let mut out = Vec::new();
    while let Some(i) = stack.pop() {
        let mut link = links[i].take().expect("a link is reached once");
        if let Some(join) = joint_of[i].take() {
            link.parent = number.get(&join.parent).map(|&p| place[p]);
            link.parent_from_link = join.parent_from_link;
            link.axes.extend(join.axis);
        }
        place[i] = out.len();
        out.push(link);
        stack.extend(children[i].iter().rev());
    }
    match links.iter().flatten().next() {
        Some(link) => Err(wrong(&link.name, "its parents form a circle".into(), "one link must have no parent")),
        None => Ok(out),
    }
}
