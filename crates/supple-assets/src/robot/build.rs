//! From a robot to a model: fixed links become one body, links without mass get some, several axes of one link get bodies between them,
//! limits and motors get numbers that fit what they carry, and Z up becomes Y up.

use super::inertia::{Inertial, Mended};
use super::*;
use crate::retarget::Followed;
use crate::{FileError, Imported, Link as ImportedLink, Note};
use glam::{DMat3, DQuat, DVec3};
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::path::Path;
use supple::maths::rotation::{between, exp};
use supple::model::RotationKind;
use supple::{
    AnchorSpringSpec, BodyId, BodyRef, BodySpec, BodyState, Coupling, Input, JointId, JointMask, JointSpec, Limits,
    Material, Model, ModelBuilder, Motor, ObstacleShape, ObstacleSpec, Range, RotationSpring, Scene, SlideSpring,
    State, SwingEllipse,
};

/// Where a root stands whose file does not say how it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// It is fixed to the world.
    #[default]
    Fixed,
    /// It floats.
    Floating,
}

/// Mass and inertia lent to a body without any, as a part of its neighbour's.
const LENT: f64 = 1e-4;
/// Density of links whose file gives no mass to any \[kg/m³\].
const DENSITY: f64 = 1000.0;
/// Most links of a robot.
const MOST_LINKS: usize = 20_000;

/// A model made of a robot, with the way back to what the file calls its parts.
#[derive(Clone, Debug)]
pub struct Built {
    /// The model.
    pub model: Model,
    /// Gravity and servo targets of the file.
    pub input: Input,
    /// Where each axis of the file went, in the order of links and axes.
    pub joints: Vec<FileJoint>,
    /// By link: its body, and where the link is in that body's link coordinates.
    pub links: Vec<(BodyId, Pose)>,
    /// By body, parents first: its joint in the file's tree; `None`: it floats.
    pub tree: Vec<Option<JointId>>,
    /// Named poses.
    pub poses: Vec<NamedPose>,
    /// What was changed, guessed or left out.
    pub notes: Vec<Note>,
}

/// An axis of the file in the model.
#[derive(Clone, Debug, PartialEq)]
pub struct FileJoint {
    /// As in the file.
    pub name: String,
    /// What it lets move.
    pub kind: Kind,
    /// Its link.
    pub link: usize,
    /// The joint of the model; `None`: the body floats.
    pub joint: Option<JointId>,
    /// Which of the joint's positions it is.
    pub slot: usize,
    /// The joint's position is `sign · (file's position − reference)`.
    pub sign: f64,
    /// As the file counts.
    pub reference: f64,
}

/// Links that move as one.
struct Group {
    name: String,
    /// The link that leads it.
    link: usize,
    parent: Option<usize>,
    /// In the link coordinates of the parent's group.
    parent_from_group: Pose,
    inertial: Option<Inertial>,
    geoms: Vec<Geom>,
}

/// A body of the model to be: a group, or what stands between two axes of one.
struct Part {
    name: String,
    group: usize,
    /// `None`: the world.
    parent: Option<usize>,
    inertial: Inertial,
    world_from_link: Pose,
    /// The joint to the parent; `None`: it floats.
    joint: Option<Joining>,
}

/// One joint of the model: axes of the file that one mask holds.
struct Joining {
    name: String,
    mask: JointMask,
    /// In link coordinates of the moved part.
    frame: Pose,
    /// The parent's link frame to that of the moved part, all axes at zero.
    parent_from_link: Pose,
    /// The axis whose limits, springs and motor the joint has.
    axis: Option<Axis>,
}

/// The model of a robot.
pub fn build(file: &Path, robot: &Robot, base: Base) -> Result<Built, FileError> {
    if robot.links.is_empty() {
        let what = "it has no link or body that could move or stand";
        return Err(FileError::new("file/empty", file, what, "give a robot with at least one link"));
    }
    if robot.links.len() > MOST_LINKS {
        let what = format!("it has {} links", robot.links.len());
        return Err(FileError::new("file/size", file, what, format!("give at most {MOST_LINKS}")));
    }
    let mut notes = robot.notes.clone();
    let (mut groups, place) = merge(robot, &mut notes);
    give_mass(&mut groups, &mut notes);
    let mut names: BTreeSet<String> = robot.links.iter().map(|link| link.name.clone()).collect();

    let starts = starts(robot);
    let up = Pose::new(y_up(), DVec3::ZERO);
    let mut parts: Vec<Part> = Vec::new();
    let mut part_of: Vec<usize> = Vec::new();
    let mut zero: Vec<Pose> = Vec::new(); // by group: world_from_link with all axes at zero
    let mut joints = Vec::new();
    for (g, group) in groups.iter().enumerate() {
        let link = &robot.links[group.link];
        let parent_zero = group.parent.map_or(up, |p| zero[p]);
        zero.push(parent_zero.then(group.parent_from_group));
        let inertial = group.inertial.unwrap_or(Inertial::NONE);
        let mut parent = group.parent.map(|p| part_of[p]);
        let mut offset = group.parent_from_group;
        let mut world = parent.map_or(up, |p| parts[p].world_from_link).then(offset);

        let free = link.axes.iter().any(|axis| axis.kind == Kind::Free);
        let floats = free || (link.axes.is_empty() && base == Base::Floating);
        if floats || link.axes.is_empty() {
            for axis in &link.axes {
                joints.push(FileJoint::new(axis, group.link, None, 0, 1.0));
            }
            let name = unique(&mut names, format!("{} to world", group.name));
            let weld =
                Joining { name, mask: JointMask::WELD, frame: Pose::IDENTITY, parent_from_link: offset, axis: None };
            part_of.push(parts.len());
            parts.push(Part {
                name: group.name.clone(),
                group: g,
                parent: None,
                inertial,
                world_from_link: world,
                joint: (!floats).then_some(weld),
            });
            continue;
        }

        let bundles = bundles(&link.axes);
        let count = bundles.len();
        for (k, bundle) in bundles.into_iter().enumerate() {
            let last = k + 1 == count;
            let first_file_joint = joints.len();
            let joining = join(bundle, group.link, offset, &mut joints, JointId(0));
            if !joining.frame.is_finite() {
                let what = format!("joint \"{}\" has an axis without direction", joining.name);
                return Err(FileError::new("file/value", file, what, "give an axis that is not zero"));
            }
            world = world.then(start_motion(&joining, &starts, &mut notes));
            let name =
                if last { group.name.clone() } else { unique(&mut names, format!("{} {}", group.name, joining.name)) };
            let own = if last { inertial } else { lent(&inertial, joining.frame.translation) };
            if !last {
                let text = format!(
                    "stands between two axes of link \"{}\" and has {LENT} of its mass and inertia",
                    group.name
                );
                notes.push(Note { code: "import/between", part: name.clone(), text });
            }
            for joint in &mut joints[first_file_joint..] {
                joint.joint = Some(JointId(parts.len() as u32)); // the part for now; the joint's number below
            }
            parts.push(Part { name, group: g, parent, inertial: own, world_from_link: world, joint: Some(joining) });
            parent = Some(parts.len() - 1);
            offset = Pose::IDENTITY;
        }
        part_of.push(parts.len() - 1);
    }

    let load = Load::of(&parts, robot.gravity.length());
    let mut builder = ModelBuilder::new();
    let mut input = Input { gravity: up.rotation * robot.gravity, contacts: robot.contacts, ..Input::default() };
    let mut bodies = Vec::new();
    for (p, part) in parts.iter().enumerate() {
        let own = part_of[part.group] == p;
        bodies.push(builder.body(body(part, own.then_some(&groups[part.group]), &mut notes)));
    }
    let mut joint_of_part = vec![None; parts.len()];
    let (mut targets, mut masks) = (Vec::new(), Vec::new());
    for (p, part) in parts.iter().enumerate() {
        let Some(joining) = &part.joint else { continue };
        let parent = part.parent.map_or(BodyRef::World, |parent| BodyRef::Id(bodies[parent]));
        let parent_frame = match part.parent {
            Some(_) => joining.parent_from_link.then(joining.frame),
            None => up.then(joining.parent_from_link).then(joining.frame),
        };
        let spec =
            JointSpec::new(joining.name.clone(), joining.mask, bodies[p], parent).frames(joining.frame, parent_frame);
        let id = builder.joint(dress(spec, joining, load[p]));
        joint_of_part[p] = Some(id);
        masks.push(joining.mask);
        targets.extend(joining.axis.as_ref().and_then(|axis| axis.actuator?.target).map(|target| (id, target)));
    }
    for joint in &mut joints {
        joint.joint = joint.joint.and_then(|part| joint_of_part[part.index()]);
    }
    couple(robot, &joints, &masks, &mut builder, &mut notes);
    // What a file joins does not touch, whatever stands between.
    for group in groups.iter().enumerate().filter(|(_, group)| group.parent.is_some()) {
        let (g, group) = group;
        builder.no_collision(bodies[part_of[g]], bodies[part_of[group.parent.expect("filtered")]]);
    }
    let body_of = |link: usize| (bodies[part_of[place[link].0]], place[link].1);
    for &(a, b) in &robot.strangers {
        if body_of(a).0 != body_of(b).0 {
            builder.no_collision(body_of(a).0, body_of(b).0);
        }
    }
    let in_world = |link: Option<usize>| link.map_or(up, |l| zero[place[l].0].then(place[l].1));
    let fixed = |link: Option<usize>| match link {
        None => true,
        Some(l) => is_fixed(&parts, part_of[place[l].0]),
    };
    for closure in &robot.closures {
        let mut tell = |text: &str| {
            notes.push(Note { code: "import/closure", part: closure.name.clone(), text: text.to_owned() });
        };
        let same = closure.a.map(|l| place[l].0) == closure.b.map(|l| place[l].0);
        if same || (fixed(closure.a) && fixed(closure.b)) {
            tell("both sides are one body, or both are fixed: left out");
            continue;
        }
        let in_b =
            closure.in_b.unwrap_or_else(|| in_world(closure.b).inverse().then(in_world(closure.a)).then(closure.in_a));
        // The child of a joint is a body: the world can only be its parent.
        let ((child, in_child), (parent, in_parent)) = match closure.a {
            Some(a) => ((a, closure.in_a), (closure.b, in_b)),
            None => ((closure.b.expect("two worlds are the same"), in_b), (None, closure.in_a)),
        };
        let mask = match closure.kind {
            ClosureKind::Point => JointMask::BALL,
            ClosureKind::Frame => JointMask::WELD,
        };
        let side = |link: usize, pose: Pose| (body_of(link).0, body_of(link).1.then(pose));
        let (child, child_frame) = side(child, in_child);
        let (parent, parent_frame) = match parent {
            Some(parent) => {
                let (body, frame) = side(parent, in_parent);
                (BodyRef::Id(body), frame)
            }
            None => (BodyRef::World, up.then(in_parent)),
        };
        builder.joint(JointSpec::new(closure.name.clone(), mask, child, parent).frames(child_frame, parent_frame));
    }
    for spring in &robot.springs {
        let (a, b) = match (spring.a, spring.b) {
            (Some(a), b) => ((a, spring.point_in_a), (b, spring.point_in_b)),
            (None, Some(b)) => ((b, spring.point_in_b), (None, spring.point_in_a)),
            (None, None) => continue,
        };
        if b.0.is_some_and(|b| body_of(b).0 == body_of(a.0).0) {
            continue;
        }
        let (in_a, in_b) = (in_world(Some(a.0)).transform_point(a.1), in_world(b.0).transform_point(b.1));
        let point_in_b = match b.0 {
            Some(link) => body_of(link).1.transform_point(b.1),
            None => up.transform_point(b.1),
        };
        builder.anchor_spring(AnchorSpringSpec {
            name: spring.name.clone(),
            a: BodyRef::Id(body_of(a.0).0),
            point_in_a: body_of(a.0).1.transform_point(a.1),
            b: b.0.map_or(BodyRef::World, |link| BodyRef::Id(body_of(link).0)),
            point_in_b,
            stiffness: spring.stiffness,
            damping: 0.0,
            rest_length: spring.rest_length.unwrap_or((in_a - in_b).length()),
        });
    }
    for (part, body) in parts.iter().zip(&bodies) {
        let Inertial { mass, centre, inertia } = part.inertial;
        let held = part.joint.as_ref().map(|joint| joint.frame.translation - centre);
        let followed = Followed { mass, inertia, centre_in_link: centre, held };
        builder.tracker(followed.tracker(*body, part.name.clone()));
    }
    let mut obstacle_names = BTreeSet::new();
    for geom in &robot.fixtures {
        let name = if geom.name.is_empty() { "fixture".to_owned() } else { geom.name.clone() };
        builder.obstacle(obstacle(geom, unique(&mut obstacle_names, name), up));
    }
    let model = builder.build().map_err(|e| {
        let first = &e.problems[0];
        let more = if e.problems.len() > 1 { format!(" (and {} more)", e.problems.len() - 1) } else { String::new() };
        FileError::new("file/model", file, format!("{} [{}]{more}", first.what, first.code), first.remedy.clone())
            .at(first.part.clone())
    })?;
    for (joint, target) in targets {
        input.joint_mut(&model, joint.index()).servo = Some(target);
    }
    let links = (0..robot.links.len()).map(body_of).collect();
    Ok(Built { model, input, joints, links, tree: joint_of_part, poses: robot.poses.clone(), notes: gathered(notes) })
}

/// Groups of links that are fixed to each other, and for each link its group and where it is in it.
fn merge(robot: &Robot, notes: &mut Vec<Note>) -> (Vec<Group>, Vec<(usize, Pose)>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut place: Vec<(usize, Pose)> = Vec::new();
    for (i, link) in robot.links.iter().enumerate() {
        match link.parent {
            Some(parent) if link.axes.is_empty() => {
                let (g, group_from_parent) = place[parent];
                let group_from_link = group_from_parent.then(link.parent_from_link);
                let group = &mut groups[g];
                if let Some(inertial) = link.inertial {
                    let moved = inertial.moved(group_from_link);
                    group.inertial = Some(group.inertial.map_or(moved, |own| own.plus(&moved)));
                }
                let moved = |geom: &Geom| Geom { place: group_from_link.then(geom.place), ..geom.clone() };
                group.geoms.extend(link.geoms.iter().map(moved));
                place.push((g, group_from_link));
            }
            _ => {
                let (parent, group_from_parent) =
                    link.parent.map_or((None, Pose::IDENTITY), |p| (Some(place[p].0), place[p].1));
                groups.push(Group {
                    name: link.name.clone(),
                    link: i,
                    parent,
                    parent_from_group: group_from_parent.then(link.parent_from_link),
                    inertial: link.inertial,
                    geoms: link.geoms.clone(),
                });
                place.push((groups.len() - 1, Pose::IDENTITY));
            }
        }
    }
    // A body is called after the first of its links that has mass.
    for (i, link) in robot.links.iter().enumerate().rev() {
        if link.inertial.is_some() {
            groups[place[i].0].name.clone_from(&link.name);
        }
    }
    for (i, link) in robot.links.iter().enumerate() {
        let group = &groups[place[i].0];
        if group.name != link.name {
            let text = format!("it is fixed to link \"{}\" and part of its body", group.name);
            notes.push(Note { code: "import/merged", part: link.name.clone(), text });
        }
    }
    (groups, place)
}

/// Gives mass to what has none, and an inertia that can be to what has an impossible one.
fn give_mass(groups: &mut [Group], notes: &mut Vec<Note>) {
    let massive = |group: &Group| group.inertial.is_some_and(|i| i.mass > 0.0);
    if !groups.iter().any(massive) {
        for group in groups.iter_mut() {
            let solids = group.geoms.iter().filter_map(|geom| match &geom.form {
                Form::Solid(shape) => {
                    let mass = DENSITY * shape.solid().ok()?.volume;
                    Inertial::of_shape(shape, mass).map(|i| i.moved(geom.place))
                }
                Form::Below => None,
            });
            group.inertial = solids.reduce(|a, b| a.plus(&b));
            if let Some(inertial) = group.inertial {
                let text = format!(
                    "the file gives no mass to any link: {:.3} kg from its shapes, of the density of water",
                    inertial.mass
                );
                notes.push(Note { code: "import/density", part: group.name.clone(), text });
            }
        }
    }
    for group in groups.iter_mut() {
        let Some(inertial) = group.inertial.filter(|i| i.mass > 0.0) else {
            group.inertial = None;
            continue;
        };
        let (mended, fault) = inertial.mended();
        let text = match fault {
            None => continue,
            Some(Mended::Moments) => {
                "its moments of inertia are those of no body: the nearest that are possible were taken; correct the file"
            }
            Some(Mended::Missing) => {
                "it has a mass and no inertia: that of a ball with the density of water was taken; correct the file"
            }
        };
        group.inertial = Some(mended);
        notes.push(Note { code: "import/inertia", part: group.name.clone(), text: text.to_owned() });
    }
    // The nearest neighbour with mass lends some: children before parents, nearest first, by sweeps over the tree.
    let mut lender: Vec<Option<Inertial>> = groups.iter().map(|g| g.inertial).collect();
    for g in (0..groups.len()).rev() {
        if let (Some(inertial), Some(parent)) = (lender[g], groups[g].parent)
            && lender[parent].is_none()
        {
            lender[parent] = Some(inertial);
        }
    }
    for g in 0..groups.len() {
        if let (None, Some(parent)) = (lender[g], groups[g].parent) {
            lender[g] = lender[parent];
        }
    }
    let anyone = groups.iter().find_map(|g| g.inertial);
    for (group, lender) in groups.iter_mut().zip(lender) {
        if group.inertial.is_some() {
            continue;
        }
        let kilogram = Inertial { mass: 1.0, centre: DVec3::ZERO, inertia: DMat3::IDENTITY * 0.01 };
        let (inertial, text) = match lender.or(anyone) {
            Some(neighbour) => (
                lent(&neighbour, DVec3::ZERO),
                format!("it has no mass: {LENT} of its neighbour's mass and inertia was given to it"),
            ),
            None => (kilogram, "nothing in the file has mass or a shape: it got 1 kg".to_owned()),
        };
        group.inertial = Some(inertial);
        notes.push(Note { code: "import/massless", part: group.name.clone(), text });
    }
}

/// Notes that say the same of several parts, as one.
fn gathered(notes: Vec<Note>) -> Vec<Note> {
    let mut out: Vec<Note> = Vec::new();
    let mut index: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for note in notes {
        match index.get(&(note.code, note.text.clone())) {
            Some(&at) => {
                let part = &mut out[at].part;
                part.push_str(", ");
                part.push_str(&note.part);
            }
            None => {
                index.insert((note.code, note.text.clone()), out.len());
                out.push(note);
            }
        }
    }
    out
}

/// A small ball at `centre` with a part of another body's mass and inertia.
fn lent(neighbour: &Inertial, centre: DVec3) -> Inertial {
    let i = neighbour.inertia;
    let mean = (i.x_axis.x + i.y_axis.y + i.z_axis.z) / 3.0;
    Inertial { mass: LENT * neighbour.mass, centre, inertia: DMat3::IDENTITY * (LENT * mean) }
}

/// A name that none has yet.
fn unique(names: &mut BTreeSet<String>, name: String) -> String {
    let mut chosen = name.clone();
    let mut n = 2;
    while !names.insert(chosen.clone()) {
        chosen = format!("{name} {n}");
        n += 1;
    }
    chosen
}

/// Splits the axes of a link into what one joint each can hold.
fn bundles(axes: &[Axis]) -> Vec<&[Axis]> {
    let plain = |axis: &Axis| {
        axis.kind == Kind::Slide
            && axis.range.is_none()
            && axis.stiffness == 0.0
            && axis.damping == 0.0
            && axis.actuator.is_none()
    };
    let across = |a: &Axis, b: &Axis| a.direction.dot(b.direction).abs() < 1e-9;
    let mut out = Vec::new();
    let mut rest = axes;
    while !rest.is_empty() {
        let planar = rest.len() >= 3
            && plain(&rest[0])
            && plain(&rest[1])
            && rest[2].kind == Kind::Hinge
            && across(&rest[0], &rest[1])
            && across(&rest[0], &rest[2])
            && across(&rest[1], &rest[2]);
        let (bundle, after) = rest.split_at(if planar { 3 } else { 1 });
        out.push(bundle);
        rest = after;
    }
    out
}

impl FileJoint {
    fn new(axis: &Axis, link: usize, joint: Option<JointId>, slot: usize, sign: f64) -> FileJoint {
        FileJoint { name: axis.name.clone(), kind: axis.kind, link, joint, slot, sign, reference: axis.reference }
    }
}

/// The joint of a bundle; where its axes went is added to `joints`.
fn join(bundle: &[Axis], link: usize, parent_from_link: Pose, joints: &mut Vec<FileJoint>, id: JointId) -> Joining {
    let mut tell = |axis: &Axis, slot: usize, sign: f64| joints.push(FileJoint::new(axis, link, Some(id), slot, sign));
    if let [first, second, turn] = bundle {
        // X the axis of the turn, Y the first slide; translations come before rotations
        let z = turn.direction.cross(first.direction);
        let rotation = DQuat::from_mat3(&DMat3::from_cols(turn.direction, first.direction, z));
        tell(first, 0, 1.0);
        tell(second, 1, z.dot(second.direction).signum());
        tell(turn, 2, 1.0);
        return Joining {
            name: format!("{} {} {}", first.name, second.name, turn.name),
            mask: JointMask::PLANAR,
            frame: Pose::new(rotation, turn.anchor),
            parent_from_link,
            axis: Some(turn.clone()),
        };
    }
    let axis = &bundle[0];
    let mask = match axis.kind {
        Kind::Hinge => JointMask::HINGE,
        Kind::Slide => JointMask::PRISMATIC,
        Kind::Ball => JointMask::BALL,
        Kind::Planar => JointMask::PLANAR,
        Kind::Free => JointMask::FREE,
    };
    let rotation = match axis.kind {
        // X the direction, Y and Z the file's X and Y where the direction is its Z
        Kind::Ball => {
            between(DVec3::Z, axis.direction) * DQuat::from_mat3(&DMat3::from_cols(DVec3::Z, DVec3::X, DVec3::Y))
        }
        _ => between(DVec3::X, axis.direction),
    };
    tell(axis, 0, 1.0);
    Joining {
        name: axis.name.clone(),
        mask,
        frame: Pose::new(rotation, axis.anchor),
        parent_from_link,
        axis: Some(axis.clone()),
    }
}

/// Where axes start, from their references: as near to zero as their ranges allow, followers where their leaders want them.
fn starts(robot: &Robot) -> BTreeMap<&str, f64> {
    let axes = robot.links.iter().flat_map(|link| &link.axes);
    let axes = axes.filter(|axis| matches!(axis.kind, Kind::Hinge | Kind::Slide));
    let nearest = |axis: &Axis| {
        let [low, high] = axis.range.unwrap_or([axis.reference; 2]).map(|x| x - axis.reference);
        0f64.clamp(low, high.max(low))
    };
    let mut starts: BTreeMap<&str, f64> = axes.map(|axis| (axis.name.as_str(), nearest(axis))).collect();
    // A follower may lead others: once more for each.
    for _ in &robot.couplings {
        for coupling in &robot.couplings {
            let leading = coupling.leader.as_ref().map_or(Some(0.0), |leader| starts.get(leader.as_str()).copied());
            let wanted = leading.map(|x| coupling.polynomial.iter().rev().fold(0.0, |sum, c| sum * x + c));
            if let (Some(wanted), Some(start)) = (wanted, starts.get_mut(coupling.follower.as_str())) {
                *start = wanted;
            }
        }
    }
    starts
}

/// How far the part is moved from zero at the start: as little as brings it inside its limits, or to its leader.
fn start_motion(joining: &Joining, starts: &BTreeMap<&str, f64>, notes: &mut Vec<Note>) -> Pose {
    let Some(axis) = &joining.axis else { return Pose::IDENTITY };
    let position = starts.get(axis.name.as_str()).copied().unwrap_or(0.0);
    if position == 0.0 || !position.is_finite() {
        return Pose::IDENTITY;
    }
    let text = format!(
        "its limits or its leader exclude the pose of the file: it starts at {:.4}, the nearest that they allow",
        position + axis.reference
    );
    notes.push(Note { code: "import/start", part: axis.name.clone(), text });
    let motion = match axis.kind {
        Kind::Slide => Pose::at(DVec3::X * position),
        _ => Pose::new(exp(DVec3::X * position), DVec3::ZERO),
    };
    joining.frame.then(motion).then(joining.frame.inverse())
}

/// Couples the joints of axes that follow others.
fn couple(robot: &Robot, joints: &[FileJoint], masks: &[JointMask], builder: &mut ModelBuilder, notes: &mut Vec<Note>) {
    // A planar joint of three axes is known by its turn, the last of them.
    let find = |name: &str| {
        let joint = joints.iter().find(|joint| joint.name == name)?;
        let mask = masks[joint.joint?.index()];
        let single = matches!(mask, JointMask::HINGE | JointMask::PRISMATIC) && joint.slot == 0;
        let turn = mask == JointMask::PLANAR && joint.kind == Kind::Hinge && joint.slot == 2;
        (single || turn).then_some((joint.joint?, joint.sign))
    };
    for coupling in &robot.couplings {
        let sides = match &coupling.leader {
            None => find(&coupling.follower).map(|follower| (follower, None)),
            Some(leader) => find(&coupling.follower).zip(find(leader).map(Some)),
        };
        let Some(((follower, sign), leader)) = sides else {
            let text = "one of its joints is not there, or neither turns about one axis nor slides along one: left out";
            notes.push(Note { code: "import/coupling", part: coupling.name.clone(), text: text.to_owned() });
            continue;
        };
        // s_f y = p(s_l x), with y and x the positions of the model's joints
        let mut scale = sign;
        let polynomial = coupling.polynomial.map(|c| {
            let scaled = c * scale;
            scale *= leader.map_or(1.0, |(_, sign)| sign);
            scaled
        });
        let leader = leader.map(|(id, _)| id);
        builder.coupling(Coupling { name: coupling.name.clone(), follower, leader, polynomial });
    }
}

fn is_fixed(parts: &[Part], part: usize) -> bool {
    let mut part = &parts[part];
    loop {
        match (&part.joint, part.parent) {
            (Some(joint), None) => return joint.mask == JointMask::WELD,
            (Some(joint), Some(parent)) if joint.mask == JointMask::WELD => part = &parts[parent],
            _ => return false,
        }
    }
}

/// The body of a part.
fn body(part: &Part, group: Option<&Group>, notes: &mut Vec<Note>) -> BodySpec {
    let Inertial { mass, centre, inertia } = part.inertial;
    let mut spec = BodySpec::new(part.name.clone()).pose(part.world_from_link).mass(mass).inertia(inertia, centre);
    let Some(group) = group else { return spec.group(0).collides_with(0) };
    // Shapes to be touched if there are any, else those to be looked at.
    let touching = group.geoms.iter().any(Geom::touches);
    let (mut member, mut collides_with, mut friction, mut rolling) = (0, 0, None, 0.0f64);
    for geom in group.geoms.iter().filter(|geom| geom.touches() == touching) {
        let Form::Solid(shape) = &geom.form else { continue };
        if let Err(fault) = shape.solid() {
            let text = format!("shape \"{}\" was left out: {fault}", geom.name);
            notes.push(Note { code: "import/shape", part: group.name.clone(), text });
            continue;
        }
        spec = spec.shape_at(shape.clone(), 1.0, geom.place);
        (member, collides_with) = (member | geom.groups.member, collides_with | geom.groups.collides_with);
        friction = friction.or(geom.friction);
        rolling = rolling.max(geom.rolling);
    }
    spec.material(surface(friction, rolling)).group(member).collides_with(collides_with)
}

/// An obstacle of the world.
fn obstacle(geom: &Geom, name: String, up: Pose) -> ObstacleSpec {
    let place = up.then(geom.place);
    let spec = match &geom.form {
        Form::Solid(shape) => ObstacleSpec::solid(name, shape.clone()).pose(place),
        // Z of the file's plane is Y of the model's
        Form::Below => ObstacleSpec::new(name, ObstacleShape::HalfSpace)
            .pose(place.then(Pose::new(DQuat::from_rotation_x(FRAC_PI_2), DVec3::ZERO))),
    };
    let spec = spec.group(geom.groups.member).collides_with(geom.groups.collides_with);
    spec.material(surface(geom.friction, geom.rolling))
}

fn surface(friction: Option<f64>, rolling: f64) -> Material {
    Material::new(friction.map_or(Material::default().friction, |friction| friction.max(0.0)), 0.0).rolling(rolling)
}

/// What a joint carries: its part and all that hangs on it.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// \[kg\]
    mass: f64,
    /// About the joint's axis, or the mean about a ball's point \[kg·m²\].
    inertia: f64,
    /// Of the weight about the joint's point, hanging level \[N·m\].
    torque: f64,
    /// \[N\]
    weight: f64,
}

impl Load {
    /// By part.
    fn of(parts: &[Part], gravity: f64) -> Vec<Load> {
        // Mass, first and second moments about the world's origin, summed from the leaves: Σ m, Σ m x, Σ ∫ x xᵀ
        let mut sums: Vec<(f64, DVec3, DMat3)> = parts
            .iter()
            .map(|part| {
                let i = part.inertial.moved(part.world_from_link);
                let trace = i.inertia.x_axis.x + i.inertia.y_axis.y + i.inertia.z_axis.z;
                let second = DMat3::from_diagonal(DVec3::splat(0.5 * trace)) - i.inertia;
                (i.mass, i.centre * i.mass, second + outer(i.centre, i.centre) * i.mass)
            })
            .collect();
        for p in (0..parts.len()).rev() {
            if let Some(parent) = parts[p].parent {
                let (m, h, s) = sums[p];
                let sum = &mut sums[parent];
                *sum = (sum.0 + m, sum.1 + h, sum.2 + s);
            }
        }
        let load = |part: &Part, (mass, first, second): (f64, DVec3, DMat3)| {
            let frame = part.joint.as_ref().map_or(Pose::IDENTITY, |j| j.frame);
            let at = part.world_from_link.then(frame);
            let p = at.translation;
            let about = second - outer(first, p) - outer(p, first) + outer(p, p) * mass;
            let inertia = DMat3::from_diagonal(DVec3::splat(about.x_axis.x + about.y_axis.y + about.z_axis.z)) - about;
            let x = at.rotation * DVec3::X;
            let along = match part.joint.as_ref().map(|j| j.mask) {
                Some(JointMask::BALL) => (inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z) / 3.0,
                _ => x.dot(inertia * x),
            };
            let lever = (first / mass - p).length();
            Load { mass, inertia: along.max(1e-12), torque: mass * gravity * lever, weight: mass * gravity }
        };
        parts.iter().zip(sums).map(|(part, sum)| load(part, sum)).collect()
    }
}

fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// Limits, springs and motor of a joint.
///
/// A limit gives way by a hundredth of a radian, or a millimetre, under the weight it carries, and by two of them under its motor; it is
/// half critically damped. A servo without gains in the file moves its load with 3 Hz, critically damped.
fn dress(spec: JointSpec, joining: &Joining, load: Load) -> JointSpec {
    let Some(axis) = &joining.axis else { return spec };
    let effort = axis.actuator.map_or(0.0, |a| if a.max.is_finite() { a.max } else { 0.0 });
    let slides = axis.kind == Kind::Slide;
    let moved = if slides { load.mass } else { load.inertia };
    let stiffest = (TAU * 10.0).powi(2) * moved;
    let (stiffness, slide_stiffness) =
        (stiffest.max(load.torque / 0.01).max(effort / 0.02), stiffest.max(load.weight / 0.001).max(effort / 0.002));
    let damping = |k: f64| (k * moved).sqrt();
    let mut limits = Limits {
        stiffness,
        damping: damping(stiffness),
        slide_stiffness,
        slide_damping: damping(slide_stiffness),
        ..Limits::default()
    };
    let range = axis.range.map(|[low, high]| Range::new(low - axis.reference, high - axis.reference));
    match axis.kind {
        Kind::Hinge => limits.angle = range,
        Kind::Slide => limits.slide = range,
        Kind::Ball => {
            let whole = axis.range.map(|[_, most]| [most, most, most]);
            if let Some([about_y, about_z, twist]) = axis.cone.or(whole) {
                let swing = |x: f64| x.abs().clamp(1e-3, PI);
                limits.swing = Some(SwingEllipse { about_y: swing(about_y), about_z: swing(about_z) });
                limits.angle = Some(Range::new(-twist.abs(), twist.abs()));
            }
        }
        Kind::Planar | Kind::Free => {}
    }
    let rest = axis.rest - axis.reference;
    let spec = if slides {
        spec.slide_spring(SlideSpring { stiffness: axis.stiffness, damping: axis.damping, rest: DVec3::X * rest })
    } else if axis.kind == Kind::Hinge {
        // the turns of rest beyond half a turn are told apart from its rotation
        let turns = TAU * (rest / TAU).round();
        spec.rotation_spring(RotationSpring {
            stiffness: axis.stiffness,
            damping: axis.damping,
            rest: exp(DVec3::X * (rest - turns)),
            rest_turns: turns,
        })
    } else {
        spec.spring(axis.stiffness, axis.damping)
    };
    let spec = spec.limits(limits);
    match (axis.actuator, axis.kind) {
        (Some(actuator), Kind::Hinge | Kind::Slide | Kind::Ball) => {
            let omega = TAU * 3.0;
            let [stiffness, damping] = actuator.gains.unwrap_or([omega * omega * moved, 2.0 * omega * moved]);
            spec.motor(Motor { stiffness, damping, max: actuator.max, integral: 0.0 })
        }
        _ => spec,
    }
}

impl Built {
    /// The state with these positions, as the file counts them: by axis, in the order of [`Built::joints`], those that are missing at
    /// zero; at rest. Joints beside those of the tree may be open in it.
    pub fn place(&self, positions: &[f64]) -> State {
        // By body: the position of its joint to its parent, or its place in the world.
        let zero = |joint: &Option<JointId>| {
            let mask = joint.map_or(JointMask::FREE, |id| self.model.joint(id).mask);
            let mut slots = vec![0.0; mask.positions()];
            if mask.rotation() == RotationKind::Free {
                *slots.last_mut().expect("a quaternion has four numbers") = 1.0;
            }
            slots
        };
        let mut slots: Vec<Vec<f64>> = self.tree.iter().map(zero).collect();
        let mut world: Vec<Option<Pose>> = vec![None; self.tree.len()];
        let mut rest = positions;
        for joint in &self.joints {
            let count = joint.kind.positions();
            if rest.len() < count {
                break;
            }
            let (own, after) = rest.split_at(count);
            rest = after;
            let Some(id) = joint.joint else {
                let (body, body_from_link) = self.links[joint.link];
                let turn = DQuat::from_xyzw(own[4], own[5], own[6], own[3]).normalize();
                let link = Pose::new(y_up(), DVec3::ZERO).then(Pose::new(turn, DVec3::from_slice(own)));
                world[body.index()] = Some(link.then(body_from_link.inverse()));
                continue;
            };
            let slots = &mut slots[self.model.joint(id).child.index()];
            match joint.kind {
                Kind::Hinge | Kind::Slide => slots[joint.slot] = joint.sign * (own[0] - joint.reference),
                Kind::Planar => slots.copy_from_slice(own),
                Kind::Ball => {
                    // a turn in link axes as one in the axes of the joint's frame
                    let frame = self.model.joint(id).child_from_joint.rotation;
                    let turn = DQuat::from_xyzw(own[1], own[2], own[3], own[0]).normalize();
                    (frame.conjugate() * turn * frame).write_to_slice(slots);
                }
                Kind::Free => {}
            }
        }
        let mut state = self.model.start();
        for (b, joint) in self.tree.iter().enumerate() {
            let pose = match joint {
                // parent_from_joint · T(q) · child_from_joint⁻¹
                Some(id) => {
                    let joint = self.model.joint(*id);
                    let frame = self.model.parent_pose(joint, &state).then(joint.parent_from_joint);
                    frame.then(joint.mask.pose(&slots[b])).then(joint.child_from_joint.inverse())
                }
                None => match world[b] {
                    Some(link) => Pose::new(link.rotation, link.transform_point(self.model.bodies()[b].centre_in_link)),
                    None => self.model.bodies()[b].start,
                },
            };
            state.bodies[b] = BodyState::at_rest(Pose::new(pose.rotation.normalize(), pose.translation));
        }
        state.recount_turns(&self.model);
        state
    }

    /// As every reader gives it.
    pub fn imported(self, source: &Path, robot: &Robot) -> Imported {
        // The link that each body is called after.
        let mut links: Vec<Option<ImportedLink>> = vec![None; self.model.bodies().len()];
        for (i, (body, body_from_link)) in self.links.iter().enumerate() {
            let model_body = self.model.body(*body);
            if robot.links[i].name == model_body.name {
                let frame = Pose::at(-model_body.centre_in_link).then(*body_from_link);
                links[body.index()] =
                    Some(ImportedLink { name: model_body.name.clone(), node: Some(i), body_from_link: frame });
            }
        }
        let plain = |body: &supple::Body| ImportedLink {
            name: body.name.clone(),
            node: None,
            body_from_link: Pose::at(-body.centre_in_link),
        };
        let links = links.into_iter().zip(self.model.bodies()).map(|(link, body)| link.unwrap_or_else(|| plain(body)));
        let links = links.collect();
        let state = self.model.start();
        let scene = Scene::from_parts(source.to_string_lossy(), self.model, state, self.input);
        Imported {
            source: source.to_owned(),
            scene,
            links,
            clips: Vec::new(),
            meshes: Vec::new(),
            notes: self.notes,
            things: Vec::new(),
            cast: crate::Cast::default(),
        }
    }

    /// Where a link of the file is, in the axes of the model.
    pub fn link_pose(&self, state: &State, link: usize) -> Pose {
        let (body, body_from_link) = self.links[link];
        let centre = self.model.body(body).centre_in_link;
        state.bodies[body.index()].pose().then(Pose::at(-centre)).then(body_from_link)
    }
}
