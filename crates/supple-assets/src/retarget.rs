//! Motion capture on other skeletons: which joint of a recording moves which body, by names and structure, and the poses that follow.
//!
//! With `W` the turn from the recording's axes (its up, its left) to the model's, `R_j` the orientation of a joint of the recording against
//! its rest, and `A` the least turn that carries a bone as it lies in the recording's rest to where the model's lies at the start, a body
//! is to have the orientation
//!
//! ```text
//! R_body(t) = W R_j(t) W⁻¹ · A⁻¹ · R_body(start)                                                                      (1)
//! ```
//! so that its bone points where the recording's does. Joints come as near to it as their axes and limits allow, from the root outwards: the
//! result is a pose with every joint closed.

use crate::bvh::Bvh;
use crate::imported::check_motion;
use crate::plant;
use crate::{FileError, Note, rig};
use glam::{DMat3, DQuat, DVec3};
use std::path::Path;
use supple::maths::rotation::{between, exp, log, turned_inertia};
use supple::model::coordinates::Link;
use supple::model::joint::swing_twist;
use supple::model::{Coordinates, RotationKind};
use supple::{
    BodyId, BodyRef, Ending, JointMask, Model, ModelBuilder, ModelError, Motion, Pose, Range, State, SwingEllipse,
    TrackerSpec, Wrench,
};

/// A recording on a model.
#[derive(Clone, Debug)]
pub struct Retargeted {
    /// The poses of all bodies.
    pub motion: Motion,
    /// Which body follows which joint of the recording, and how far its joints keep it from it.
    pub pairs: Vec<Pair>,
    /// What was guessed.
    pub notes: Vec<Note>,
    /// When feet stand on the ground, where the figure's soles are known.
    pub planted: Vec<Planted>,
}

pub use plant::Planted;

/// A body that follows a joint of the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Name of the body.
    pub body: String,
    /// Name of the joint of the recording.
    pub joint: String,
    /// Angle between the orientation asked for and the nearest that the joints allow, mean over the frames \[rad\].
    pub misfit: f64,
}

/// What bodies and recorded joints are: by their names, or as a rig knows it.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    /// By body of the model.
    pub(crate) bodies: Vec<Option<(Part, Side)>>,
    /// By joint of the recording.
    pub(crate) joints: Vec<Option<(Part, Side)>>,
}

/// By joint: what its name means, without what all names begin with (`mixamorig:`, `Character1_`); where names do not tell both legs, by the form of the figure.
pub(crate) fn by_names(bvh: &Bvh) -> Vec<Option<(Part, Side)>> {
    let names: Vec<&str> = bvh.joints.iter().map(|joint| joint.name.as_str()).collect();
    let prefix = common_prefix(&names);
    let told: Vec<_> = names.iter().map(|name| meaning(name).or_else(|| meaning(&name[prefix..]))).collect();
    let has = |list: &[Option<(Part, Side)>], part: Part| {
        [Side::Left, Side::Right].iter().all(|side| list.contains(&Some((part, *side))))
    };
    let legs = |list: &[Option<(Part, Side)>]| has(list, Part::Thigh) && has(list, Part::Shin);
    if legs(&told) {
        return told;
    }
    let rest = bvh.rest();
    let ends = bvh.joints.iter().zip(&rest).map(|(joint, pose)| {
        let ends = joint.ends.iter().map(|end| pose.transform_point(*end));
        ends.collect::<Vec<DVec3>>()
    });
    let mut ends: Vec<Vec<DVec3>> = ends.collect();
    for (joint, pose) in bvh.joints.iter().zip(&rest) {
        joint.parent.into_iter().for_each(|parent| ends[parent].push(pose.translation));
    }
    let by_form = rig::roles_by_form(&names, &bvh.joints.iter().map(|j| j.parent).collect::<Vec<_>>(), &rest, &ends);
    if legs(&by_form) { by_form } else { told }
}

/// How many bytes all names begin with alike, up to a mark or a digit, so that no word is cut.
fn common_prefix(names: &[&str]) -> usize {
    let Some((first, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) else { return 0 };
    let alike = |name: &&&str| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let shared = others.iter().map(|name| alike(&name)).min().unwrap_or(0);
    // Letters of several bytes may begin alike.
    let shared = (0..=shared).rev().find(|k| first.is_char_boundary(*k)).unwrap_or(0);
    first[..shared].rfind(|c: char| c.is_ascii() && !c.is_ascii_alphabetic()).map_or(0, |at| at + 1)
}

/// A part of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Hips,
    Spine,
    Neck,
    Head,
    Clavicle,
    UpperArm,
    Forearm,
    Hand,
    Thigh,
    Shin,
    Foot,
    Toe,
}

/// A side of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
    Middle,
}

/// Words for parts, without sides, digits and marks between.
const WORDS: [(&str, Part); 45] = [
    ("hips", Part::Hips),
    ("hip", Part::Hips),
    ("pelvis", Part::Hips),
    ("butt", Part::Hips),
    ("spine", Part::Spine),
    ("lowerback", Part::Spine),
    ("upperback", Part::Spine),
    ("thorax", Part::Spine),
    ("chest", Part::Spine),
    ("torso", Part::Spine),
    ("waist", Part::Spine),
    ("waistlower", Part::Spine),
    ("lwaist", Part::Spine),
    ("abdomen", Part::Spine),
    ("neck", Part::Neck),
    ("lowerneck", Part::Neck),
    ("upperneck", Part::Neck),
    ("head", Part::Head),
    ("clavicle", Part::Clavicle),
    ("collar", Part::Clavicle),
    ("shoulder", Part::Clavicle),
    ("upperarm", Part::UpperArm),
    ("uparm", Part::UpperArm),
    ("arm", Part::UpperArm),
    ("humerus", Part::UpperArm),
    ("forearm", Part::Forearm),
    ("lowerarm", Part::Forearm),
    ("loarm", Part::Forearm),
    ("radius", Part::Forearm),
    ("hand", Part::Hand),
    ("wrist", Part::Hand),
    ("thigh", Part::Thigh),
    ("upleg", Part::Thigh),
    ("upperleg", Part::Thigh),
    ("femur", Part::Thigh),
    ("shin", Part::Shin),
    ("leg", Part::Shin),
    ("calf", Part::Shin),
    ("lowerleg", Part::Shin),
    ("loleg", Part::Shin),
    ("tibia", Part::Shin),
    ("foot", Part::Foot),
    ("toe", Part::Toe),
    ("toes", Part::Toe),
    ("toebase", Part::Toe),
];

/// What a name means: `LeftUpLeg`, `thigh.l`, `upper_arm_right`, `lfemur`, `mixamorig:Spine1`.
fn meaning(name: &str) -> Option<(Part, Side)> {
    let name = name.rsplit(':').next().unwrap_or(name);
    // Words begin at marks and at capital letters.
    let mut words: Vec<String> = vec![String::new()];
    let mut small_before = false;
    for c in name.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && small_before) {
            words.push(String::new());
        }
        small_before = c.is_ascii_lowercase();
        if c.is_ascii_alphabetic() {
            words.last_mut().expect("there is one").push(c.to_ascii_lowercase());
        }
    }
    let side_of = |word: &str| match word {
        "left" | "l" => Some(Side::Left),
        "right" | "r" => Some(Side::Right),
        _ => None,
    };
    let side = words.iter().find_map(|word| side_of(word));
    let plain: String = words.iter().filter(|word| side_of(word).is_none()).map(String::as_str).collect();
    let part = |word: &str| WORDS.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    if let Some(part) = part(&plain) {
        return Some((part, side.unwrap_or(Side::Middle)));
    }
    // lfemur, rightleg
    let sides = [("left", Side::Left), ("right", Side::Right), ("l", Side::Left), ("r", Side::Right)];
    sides
        .into_iter()
        .filter(|_| side.is_none())
        .find_map(|(start, side)| Some((part(plain.strip_prefix(start)?)?, side)))
}

/// Which joint of the recording each body follows.
fn pairs(model: &Model, bvh: &Bvh, roles: &Roles, map: &[(String, String)]) -> Result<Vec<Option<usize>>, String> {
    let joint_named = |name: &str| bvh.joints.iter().rposition(|joint| joint.name == name);
    let Roles { bodies, joints: parts } = roles;
    let several = |part: Part| matches!(part, Part::Spine | Part::Neck);
    let mut out = vec![None; bodies.len()];
    for (b, role) in bodies.iter().enumerate() {
        let Some(role) = role else { continue };
        let same = |roles: &[Option<(Part, Side)>]| -> Vec<usize> {
            (0..roles.len()).filter(|&k| roles[k] == Some(*role)).collect()
        };
        let (own, theirs) = (same(bodies), same(parts));
        out[b] = match own.iter().position(|&k| k == b) {
            // Of several in a row the last follows the last, the others in proportion.
            Some(k) if several(role.0) && !theirs.is_empty() => {
                Some(theirs[((k + 1) * theirs.len()).div_ceil(own.len()) - 1])
            }
            // Of a joint and a helper before it the joint itself moves.
            Some(0) => theirs.last().copied(),
            _ => None,
        };
    }
    if !parts.contains(&Some((Part::Hips, Side::Middle))) {
        // A recording whose root is called otherwise.
        if let Some(b) = bodies.iter().position(|role| *role == Some((Part::Hips, Side::Middle))) {
            out[b] = Some(0);
        }
    }
    for (body, joint) in map {
        let b = model.find_body(body).ok_or_else(|| format!("there is no body \"{body}\""))?;
        out[b.index()] = Some(joint_named(joint).ok_or_else(|| format!("the recording has no joint \"{joint}\""))?);
    }
    Ok(out)
}

/// The axes with Y along `up` and X as near to `left` as can be.
fn frame(left: DVec3, up: DVec3) -> DQuat {
    let x = left.reject_from(up).normalize();
    DQuat::from_mat3(&DMat3::from_cols(x, up, x.cross(up)))
}

/// Brings a recording onto the bodies of a model, from its start. `map` names bodies and the joints of the recording that they follow,
/// where names do not tell.
pub fn retarget(
    path: &Path,
    bvh: &Bvh,
    model: &Model,
    start: &State,
    map: &[(String, String)],
) -> Result<Retargeted, FileError> {
    let bodies = model.bodies().iter().map(|body| meaning(&body.name)).collect();
    retarget_as(path, bvh, model, start, map, &Roles { bodies, joints: by_names(bvh) }, &[])
}

/// The same with what bodies and joints are told; `soles` are those of feet that are to stand where the recording's do.
pub(crate) fn retarget_as(
    path: &Path,
    bvh: &Bvh,
    model: &Model,
    start: &State,
    map: &[(String, String)],
    roles: &Roles,
    soles: &[plant::Sole],
) -> Result<Retargeted, FileError> {
    let wrong = |what: String, remedy: &str| FileError::new("file/retarget", path, what, remedy);
    let follows = pairs(model, bvh, roles, map).map_err(|what| wrong(what, "correct the map"))?;
    if follows.iter().flatten().count() < 2 {
        let what = "fewer than two bodies have a name that one of its joints has".to_owned();
        return Err(wrong(what, "give a map of bodies to joints"));
    }
    let rest = bvh.rest();
    let mut notes = Vec::new();

    // Where a body is held by its parent, in the world at the start.
    let origin = |b: usize| {
        let node = &model.topology().nodes[model.topology().node_of[b]];
        let Some(id) = node.joint else { return start.bodies[b].position };
        let joint = model.joint(id);
        start.bodies[joint.child.index()].pose().transform_point(joint.child_from_joint.translation)
    };
    let body_of = |part: Part, side: Side| {
        roles.bodies.iter().position(|role| *role == Some((part, side))).filter(|&b| follows[b].is_some())
    };
    let joint_of = |part: Part, side: Side| roles.joints.iter().rposition(|role| *role == Some((part, side)));
    let sides = |a: Option<DVec3>, b: Option<DVec3>| Some(a? - b?).filter(|d| d.length() > 1e-9);
    let both = |part: Part| {
        let model_left = sides(body_of(part, Side::Left).map(&origin), body_of(part, Side::Right).map(&origin));
        let at = |side| joint_of(part, side).map(|j| rest[j].translation);
        model_left.zip(sides(at(Side::Left), at(Side::Right)))
    };
    let up = up_of(&roles.joints, &rest);
    let turn = match both(Part::Thigh).or_else(|| both(Part::UpperArm)) {
        Some((model_left, left)) => frame(model_left, DVec3::Y) * frame(left, up).conjugate(),
        None => {
            notes.push(Note {
                code: "import/facing",
                part: path.to_string_lossy().into_owned(),
                text: "no pair of thighs or arms tells where it looks: its axes were taken as they are".into(),
            });
            between(up, DVec3::Y)
        }
    };

    // Bones: the model's at the start, the recording's at rest.
    let next = |part: Part| match part {
        Part::UpperArm => Some(Part::Forearm),
        Part::Forearm => Some(Part::Hand),
        Part::Thigh => Some(Part::Shin),
        Part::Shin => Some(Part::Foot),
        Part::Foot => Some(Part::Toe),
        _ => None,
    };
    let align = |b: usize, j: usize| -> DQuat {
        let Some((part, side)) = roles.bodies[b] else { return DQuat::IDENTITY };
        if matches!(part, Part::Hips | Part::Spine | Part::Neck | Part::Head | Part::Clavicle) {
            return DQuat::IDENTITY;
        }
        let beyond = next(part).and_then(|next| Some((body_of(next, side)?, joint_of(next, side)?)));
        let (own_end, their_end) = match beyond {
            Some((body, joint)) => (origin(body), rest[joint].translation),
            None => {
                let child = bvh.joints.iter().position(|joint| joint.parent == Some(j)).map(|c| rest[c].translation);
                let end = bvh.joints[j].ends.first().map(|end| rest[j].transform_point(*end));
                (start.bodies[b].position, child.or(end).unwrap_or(rest[j].translation))
            }
        };
        // Of a foot the sole tells better where it points than where its mass is.
        let sole = soles.iter().find(|sole| sole.leg[2] == b);
        let own_end = sole.map_or(own_end, |sole| start.bodies[b].pose().transform_point(sole.tip));
        let bones = sides(Some(own_end), Some(origin(b))).zip(sides(Some(their_end), Some(rest[j].translation)));
        let Some((own, theirs)) = bones else { return DQuat::IDENTITY };
        let theirs = turn * theirs;
        // Soles are flat at rest, however high the joints above them are: feet are turned about the upright alone.
        let level = |d: DVec3| DVec3::new(d.x, 0.0, d.z);
        let points_forward = |d: DVec3| level(d).length() > 0.3 * d.length();
        if matches!(part, Part::Foot | Part::Toe) && points_forward(own) && points_forward(theirs) {
            return between(level(own).normalize(), level(theirs).normalize());
        }
        // A limb that is bent at the start shows the plane in which it bends: that of the recording is the mean over its frames.
        let limb = match part {
            Part::UpperArm | Part::Forearm => [Part::UpperArm, Part::Forearm, Part::Hand],
            Part::Thigh | Part::Shin => [Part::Thigh, Part::Shin, Part::Foot],
            _ => return between(own.normalize(), theirs.normalize()),
        };
        let bodies = limb.map(|part| body_of(part, side));
        let joints = limb.map(|part| joint_of(part, side));
        let points = match bodies {
            [Some(a), Some(b), Some(c)] => Some([origin(a), origin(b), origin(c)]),
            [Some(a), Some(b), None] => Some([origin(a), origin(b), start.bodies[b].position]),
            _ => None,
        };
        let plane = points.zip(joints[0].zip(joints[1]).zip(joints[2])).map(|([a, b, c], ((x, y), z))| {
            let mut normal = DVec3::ZERO;
            for f in (0..bvh.frames()).step_by((bvh.frames() / 50).max(1)) {
                let frame = bvh.frame(f);
                let [p, q, r] = [x, y, z].map(|k| frame[k].translation);
                normal += frame[j].rotation.conjugate() * (q - p).cross(r - q).normalize_or_zero();
            }
            ((b - a).normalize_or_zero().cross((c - b).normalize_or_zero()), turn * normal)
        });
        match plane {
            Some((normal, mean)) if normal.length() > 0.2 && mean.reject_from(theirs).length() > 0.1 => {
                frame(mean, theirs.normalize()) * frame(normal, own.normalize()).conjugate()
            }
            _ => between(own.normalize(), theirs.normalize()),
        }
    };
    let aligned: Vec<DQuat> =
        follows.iter().enumerate().map(|(b, j)| j.map_or(DQuat::IDENTITY, |j| align(b, j))).collect();

    // Size and ground: the heights of the roots above the lowest foot.
    let nodes = &model.topology().nodes;
    let root = nodes[0].body.index();
    let leader = follows[root].unwrap_or(0);
    let height = |p: DVec3| (turn * p).y;
    let lowest = |points: &[Pose]| points.iter().map(|p| height(p.translation)).fold(f64::INFINITY, f64::min);
    let own_ground = (0..model.bodies().len()).map(&origin).map(|p| p.y).fold(f64::INFINITY, f64::min);
    let (own_height, their_height) =
        (start.bodies[root].position.y - own_ground, height(rest[leader].translation) - lowest(&rest));
    let scale = if own_height > 1e-3 && their_height > 1e-9 { own_height / their_height } else { 1.0 };
    let floats = nodes[0].joint.is_none();
    let legs = Legs::find(bvh, turn, &rest, joint_of, soles, &origin).filter(|_| floats);
    let scale = legs.as_ref().map_or(scale, |legs| legs.scale);
    let hips = joint_of(Part::Hips, Side::Middle).unwrap_or(0);

    // Some recordings begin with a frame at rest, for programs that need one: the motion begins after it.
    let first_frame = usize::from(bvh.begins_at_rest());
    if first_frame == 1 {
        let text = "its first frame is a rest pose from which it jumps: left out".to_owned();
        notes.push(Note { code: "import/rest-frame", part: path.to_string_lossy().into_owned(), text });
    }
    notes.extend(bvh.jump_note(path, first_frame));
    let frames = bvh.frames() - first_frame;

    let mut at_start = Coordinates::of(model, start);
    let mut led = vec![false; nodes.len()];
    for i in (0..nodes.len()).filter(|&i| follows[nodes[i].body.index()].is_some()) {
        led[i] = true;
        let mut parent = nodes[i].parent;
        while let Some(p) = parent.checked_sub(1).filter(|&p| follows[nodes[p].body.index()].is_none()) {
            led[p] = true;
            parent = nodes[p].parent;
        }
    }
    for (i, node) in nodes.iter().enumerate() {
        let margin = if led[i] { MARGIN } else { LOOSE };
        keep_inside(model, &mut at_start, i, &Link::new(model, node), margin);
    }
    let mut coordinates = at_start.clone();
    let mut state = start.clone();
    let mut poses = Vec::with_capacity(frames * model.bodies().len());
    let mut misfits = vec![0.0; model.bodies().len()];
    let (mut found, mut wishes) = (Vec::new(), Vec::new());
    let mut first_place = None;
    for f in first_frame..bvh.frames() {
        let frame = bvh.frame(f);
        let world = |j: usize| turn * frame[j].rotation * turn.conjugate();
        // A root that is fixed keeps the figure's hips where they are.
        let back = if floats { DQuat::IDENTITY } else { world(hips).conjugate() };
        let wanted = |b: usize| follows[b].map(|j| back * world(j) * aligned[b] * start.bodies[b].orientation);
        if floats {
            let at = turn * frame[leader].translation * scale;
            let (first, ground) = *first_place.get_or_insert((at, own_ground - scale * ground_of(bvh, turn)));
            let centre = start.bodies[root].position;
            let turned = wanted(root).unwrap_or(start.bodies[root].orientation);
            let place = match &legs {
                Some(legs) => legs.root(&frame, turn, start.bodies[root].pose(), turned),
                None => DVec3::new(centre.x + at.x - first.x, at.y + ground, centre.z + at.z - first.z),
            };
            let range = coordinates.position_range(0);
            let slots = &mut coordinates.positions[range];
            place.write_to_slice(slots);
            turned.write_to_slice(&mut slots[3..]);
        }
        fit(model, &mut coordinates, &at_start, &wanted, &mut state);
        found.push(coordinates.positions.clone());
        wishes.push((0..model.bodies().len()).map(wanted).collect::<Vec<_>>());
    }
    let mut track = Track::new(model, &coordinates, &mut found, 1.0 / bvh.frame_time);
    let bridged = track.bridge();
    track.smooth();
    if bridged > 0 {
        let text = format!(
            "a joint turns faster than {FASTEST} rad/s in {bridged} places, which was taken for a fault of the recording: turned evenly there instead"
        );
        notes.push(Note { code: "import/jump", part: path.to_string_lossy().into_owned(), text });
    }
    // Feet: where the recording's stand, so do the figure's.
    let mut planted = Vec::new();
    if floats && !soles.is_empty() {
        let joint_for = |side: Side| joint_of(Part::Toe, side).or(joint_of(Part::Foot, side));
        let leg = [Part::Thigh, Part::Shin, Part::Foot].map(|part| joint_of(part, Side::Left));
        let unit = match leg {
            [Some(a), Some(b), Some(c)] => {
                let [a, b, c] = [a, b, c].map(|j| rest[j].translation);
                plant::LEG / (a.distance(b) + b.distance(c)).max(1e-9)
            }
            _ => scale,
        };
        let places = |j: usize| -> Vec<DVec3> {
            (first_frame..bvh.frames()).map(|f| turn * bvh.frame(f)[j].translation * unit).collect()
        };
        let contacts: Vec<Vec<bool>> = soles
            .iter()
            .map(|sole| joint_for(sole.side).map_or(vec![false; frames], |j| plant::stands(&places(j), bvh.frame_time)))
            .collect();
        planted =
            plant::plant(model, &mut coordinates, &mut state, &mut found, &wishes, soles, &contacts, bvh.frame_time);
    }
    for (positions, wishes) in found.into_iter().zip(wishes) {
        coordinates.positions = positions;
        coordinates.write(model, &mut state);
        for (b, misfit) in misfits.iter_mut().enumerate() {
            if let Some(wanted) = wishes[b] {
                *misfit += log(wanted * state.bodies[b].orientation.conjugate()).length() / frames as f64;
            }
        }
        poses.extend(state.bodies.iter().map(|body| body.pose()));
    }
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let motion = Motion::new(name, 1.0 / bvh.frame_time, model.bodies().len(), poses, Ending::Hold);
    let motion =
        motion.ok_or_else(|| wrong("its numbers are too large for a motion".into(), "correct the recording"))?;
    let pair = |b: usize, j: usize| Pair {
        body: model.bodies()[b].name.clone(),
        joint: bvh.joints[j].name.clone(),
        misfit: misfits[b],
    };
    let pairs = follows.iter().enumerate().filter_map(|(b, j)| j.map(|j| pair(b, j))).collect();
    check_motion(path, &motion)?;
    Ok(Retargeted { motion, pairs, notes, planted })
}

/// Where the hips of a figure with soles go: its legs are as far stretched as the recording's.
struct Legs {
    /// By the lengths of legs, hip to ankle.
    scale: f64,
    /// Hips of the recording.
    hips: [usize; 2],
    /// Where they are in the first frame, and how high ankles are when feet stand, in the recording's unit and the model's axes.
    first: DVec3,
    standing: f64,
    /// The middle between the figure's hips at the start, and how high its ankles are then \[m\].
    middle: DVec3,
    ankles: f64,
}

impl Legs {
    /// `None` where not all of both legs is known.
    fn find(
        bvh: &Bvh,
        turn: DQuat,
        rest: &[Pose],
        joint_of: impl Fn(Part, Side) -> Option<usize>,
        soles: &[plant::Sole],
        origin: &impl Fn(usize) -> DVec3,
    ) -> Option<Legs> {
        let leg = |side: Side| {
            let [a, b, c] = [Part::Thigh, Part::Shin, Part::Foot].map(|part| joint_of(part, side));
            Some([a?, b?, c?])
        };
        let theirs = [leg(Side::Left)?, leg(Side::Right)?];
        let [one, other] = soles else { return None };
        let length = |[a, b, c]: [DVec3; 3]| a.distance(b) + b.distance(c);
        let their_length: f64 = theirs.iter().map(|leg| length(leg.map(|j| rest[j].translation))).sum();
        let own_length: f64 = [one, other].iter().map(|sole| length(sole.leg.map(origin))).sum();
        let first_frame = bvh.frame(usize::from(bvh.begins_at_rest()));
        let hips = theirs.map(|leg| leg[0]);
        let mut heights: Vec<f64> = (usize::from(bvh.begins_at_rest())..bvh.frames())
            .map(|f| bvh.frame(f))
            .map(|frame| {
                theirs.map(|leg| (turn * frame[leg[2]].translation).y).into_iter().fold(f64::INFINITY, f64::min)
            })
            .collect();
        heights.sort_by(f64::total_cmp);
        let mean = |f: &dyn Fn(&plant::Sole) -> DVec3| 0.5 * (f(one) + f(other));
        let scale = own_length / their_length;
        (scale.is_finite() && scale > 1e-9).then(|| Legs {
            scale,
            hips,
            first: turn * (0.5 * (first_frame[hips[0]].translation + first_frame[hips[1]].translation)),
            // Not the lowest of all: a marker may have been lost.
            standing: heights.get(heights.len() / 50).copied().unwrap_or(0.0),
            middle: mean(&|sole| origin(sole.leg[0])),
            ankles: mean(&|sole| origin(sole.leg[2])).y,
        })
    }

    /// The place of a root that is turned like this, `start` being its pose at the start.
    fn root(&self, frame: &[Pose], turn: DQuat, start: Pose, turned: DQuat) -> DVec3 {
        let at = turn * (0.5 * (frame[self.hips[0]].translation + frame[self.hips[1]].translation));
        let travel = (at - self.first) * self.scale;
        let height = self.ankles + self.scale * (at.y - self.standing);
        let middle = DVec3::new(self.middle.x + travel.x, height, self.middle.z + travel.z);
        middle - turned * (start.rotation.conjugate() * (self.middle - start.translation))
    }
}

/// Up of a recording: the axis along which its head is farthest from its feet at rest; Y where names do not tell.
pub(crate) fn up_of(joints: &[Option<(Part, Side)>], rest: &[Pose]) -> DVec3 {
    let joint_of = |part: Part, side: Side| joints.iter().rposition(|role| *role == Some((part, side)));
    let feet = joint_of(Part::Foot, Side::Left).or(joint_of(Part::Shin, Side::Left));
    match joint_of(Part::Head, Side::Middle).zip(feet) {
        Some((head, foot)) if rest[head].translation != rest[foot].translation => {
            let d = rest[head].translation - rest[foot].translation;
            let k = (0..3).max_by(|&a, &b| d[a].abs().total_cmp(&d[b].abs())).unwrap_or(1);
            DVec3::AXES[k] * d[k].signum()
        }
        _ => DVec3::Y,
    }
}

/// The same model with a tracker for every body in place of its own, so that it can follow a motion.
pub fn followable(model: &Model) -> Result<Model, ModelError> {
    let mut builder = ModelBuilder::from(model);
    builder.clear_trackers();
    let topology = model.topology();
    for (b, body) in model.bodies().iter().enumerate() {
        let node = &topology.nodes[topology.node_of[b]];
        let held = node.joint.map(|id| {
            let joint = model.joint(id);
            if node.flipped { joint.parent_from_joint.translation } else { joint.child_from_joint.translation }
        });
        let name = format!("follow {}", body.name);
        let followed = Followed { mass: body.mass, inertia: body.inertia, centre_in_link: body.centre_in_link, held };
        builder.tracker(followed.tracker(BodyId(b as u32), name));
    }
    builder.build()
}

/// The same model without limits, so that they can be found from motions.
pub fn unlimited(model: &Model) -> Result<Model, ModelError> {
    let mut parts = crate::doctor::Parts::of(model);
    for joint in &mut parts.joints {
        (joint.limits.angle, joint.limits.swing, joint.limits.slide) = (None, None, None);
    }
    parts.build()
}

/// A body that is to follow a motion.
pub(crate) struct Followed {
    pub(crate) mass: f64,
    pub(crate) inertia: DMat3,
    pub(crate) centre_in_link: DVec3,
    /// From its centre to the point at which it hangs on its parent; `None`: it floats.
    pub(crate) held: Option<DVec3>,
}

impl Followed {
    /// A tracker, critically damped: 15 Hz for turns, about the point where the body is held; 10 Hz for the place of what floats, 1 Hz for the place of a body
    /// that is held. Its place follows from the turns before it: pulled there fast it would only bend a light finger on a hand that lags.
    pub(crate) fn tracker(&self, body: BodyId, name: String) -> TrackerSpec {
        let spring = |inertia: f64, hertz: f64| {
            let omega = std::f64::consts::TAU * hertz;
            (omega * omega * inertia, 2.0 * omega * inertia)
        };
        let mean = (self.inertia.x_axis.x + self.inertia.y_axis.y + self.inertia.z_axis.z) / 3.0;
        let moment = mean + self.mass * self.held.map_or(0.0, DVec3::length_squared);
        let (stiffness, damping) = spring(self.mass, if self.held.is_some() { 1.0 } else { 10.0 });
        let (rotation_stiffness, rotation_damping) = spring(moment, 15.0);
        let point = self.centre_in_link;
        TrackerSpec { name, body: BodyRef::Id(body), point, stiffness, damping, rotation_stiffness, rotation_damping }
    }
}

/// The lowest point of a recording, along the model's up, in the recording's unit.
fn ground_of(bvh: &Bvh, turn: DQuat) -> f64 {
    let every = (bvh.frames() / 100).max(1);
    let heights = (0..bvh.frames()).step_by(every).flat_map(|f| bvh.frame(f)).map(|pose| (turn * pose.translation).y);
    heights.fold(f64::INFINITY, f64::min)
}

/// Half the power of a motion is gone at this frequency \[Hz\]: below it people move, above it markers tremble.
const CUTOFF: f64 = 6.0;

/// A joint that turns faster is taken for a fault of the recording \[rad/s\]. Walking, running and leaping stay well below it; a hard throw does not, and is slowed down.
const FASTEST: f64 = 20.0;
/// A fault is bridged from this long before it to this long after it \[s\].
const BRIDGE: f64 = 0.05;

/// A row of coordinates over time, as the masks of the tree read them.
struct Track<'a> {
    frames: &'a mut [Vec<f64>],
    /// By node of the tree: where its positions begin and end, and whether the last four are a quaternion.
    nodes: Vec<(std::ops::Range<usize>, RotationKind)>,
    /// Frames a second.
    rate: f64,
}

impl<'a> Track<'a> {
    fn new(model: &Model, coordinates: &Coordinates, frames: &'a mut [Vec<f64>], rate: f64) -> Track<'a> {
        let kind = |(i, node)| (coordinates.position_range(i), Link::new(model, node).mask.rotation());
        let nodes: Vec<_> = model.topology().nodes.iter().enumerate().map(kind).collect();
        let mut track = Track { frames, nodes, rate };
        track.on_one_side();
        track
    }

    /// Where quaternions begin.
    fn quaternions(&self) -> Vec<usize> {
        let free = self.nodes.iter().filter(|(_, kind)| *kind == RotationKind::Free);
        free.map(|(range, _)| range.end - 4).collect()
    }

    /// q and −q are one turn: all of a row on one side.
    fn on_one_side(&mut self) {
        for at in self.quaternions() {
            for f in 1..self.frames.len() {
                if DQuat::from_slice(&self.frames[f - 1][at..]).dot(DQuat::from_slice(&self.frames[f][at..])) < 0.0 {
                    self.frames[f][at..at + 4].iter_mut().for_each(|x| *x = -*x);
                }
            }
        }
    }

    /// Turns joints evenly over places where they turn too fast: markers that were taken for each other. Returns how many there were.
    fn bridge(&mut self) -> usize {
        let (count, span) = (self.frames.len(), (BRIDGE * self.rate).ceil() as usize);
        let mut places = 0;
        for (range, kind) in self.nodes.clone() {
            let mut f = 1;
            while f < count {
                if self.rate * self.turned(&range, kind, f - 1, f) <= FASTEST {
                    f += 1;
                    continue;
                }
                // As wide as it takes to be slow enough, or as there is room.
                let (mut from, mut to) = ((f - 1).saturating_sub(span), (f + span).min(count - 1));
                while (from > 0 || to < count - 1)
                    && self.rate * self.turned(&range, kind, from, to) > 0.5 * FASTEST * (to - from) as f64
                {
                    (from, to) = (from.saturating_sub(span), (to + span).min(count - 1));
                }
                let (start, end) = (self.frames[from].clone(), self.frames[to].clone());
                for g in from + 1..to {
                    let s = (g - from) as f64 / (to - from) as f64;
                    let row = &mut self.frames[g];
                    for k in range.clone() {
                        row[k] = (1.0 - s) * start[k] + s * end[k];
                    }
                    if kind == RotationKind::Free {
                        let at = range.end - 4;
                        let (a, b) = (DQuat::from_slice(&start[at..]), DQuat::from_slice(&end[at..]));
                        a.slerp(b, s).write_to_slice(&mut row[at..]);
                    }
                }
                places += 1;
                f = to + 1;
            }
        }
        self.on_one_side();
        places
    }

    /// How far a joint turns from one frame to another \[rad\].
    fn turned(&self, range: &std::ops::Range<usize>, kind: RotationKind, from: usize, to: usize) -> f64 {
        let (a, b) = (&self.frames[from], &self.frames[to]);
        match kind {
            RotationKind::Free => {
                DQuat::from_slice(&a[range.end - 4..]).angle_between(DQuat::from_slice(&b[range.end - 4..]))
            }
            RotationKind::Held => 0.0,
            RotationKind::Axis(_) => (a[range.end - 1] - b[range.end - 1]).abs(),
            RotationKind::Cardan(_) => (a[range.end - 2] - b[range.end - 2]).hypot(a[range.end - 1] - b[range.end - 1]),
        }
    }

    /// Takes the trembling out: means with the weights `exp(−½ (t/σ)²)`, `σ = √(ln 2)/(2π f)`. Before its first frame and after its last the motion is taken to go
    /// on as its mirror in time and place, `2 x(0) − x(−t)`: the ends stay where they are, and their velocities are means too.
    fn smooth(&mut self) {
        let sigma = std::f64::consts::LN_2.sqrt() / (std::f64::consts::TAU * CUTOFF) * self.rate;
        let last = self.frames.len() as i64 - 1;
        let reach = ((3.0 * sigma).floor() as i64).min(last);
        if reach < 1 {
            return;
        }
        let given = self.frames.to_vec();
        let quaternions = self.quaternions();
        for (f, out) in self.frames.iter_mut().enumerate() {
            out.fill(0.0);
            let mut sum = 0.0;
            for d in -reach..=reach {
                let weight = (-0.5 * (d as f64 / sigma).powi(2)).exp();
                sum += weight;
                let at = f as i64 + d;
                let end = at.clamp(0, last);
                // inside, end and mirror are the frame itself: 2 x − x
                let (end, mirror) = (&given[end as usize], &given[(2 * end - at) as usize]);
                for ((x, end), mirror) in out.iter_mut().zip(end).zip(mirror) {
                    *x += weight * (2.0 * end - mirror);
                }
            }
            out.iter_mut().for_each(|x| *x /= sum);
            for &at in &quaternions {
                DQuat::from_slice(&out[at..]).normalize().write_to_slice(&mut out[at..]);
            }
        }
    }
}

/// Turns the joints so that bodies come as near to the orientations that are wanted as axes and limits allow, from the root outwards.
fn fit(
    model: &Model,
    coordinates: &mut Coordinates,
    rest: &Coordinates,
    wanted: &impl Fn(usize) -> Option<DQuat>,
    state: &mut State,
) {
    let nodes = &model.topology().nodes;
    for (i, node) in nodes.iter().enumerate() {
        let Some(target) = wanted(node.body.index()) else { continue };
        // The joints since the last body that has its own target.
        let mut chain = vec![i];
        let mut parent = node.parent;
        while let Some(p) = parent.checked_sub(1).filter(|&p| wanted(nodes[p].body.index()).is_none()) {
            chain.push(p);
            parent = nodes[p].parent;
        }
        if parent == 0 && nodes[*chain.last().expect("not empty")].joint.is_none() {
            chain.pop();
        }
        chain.reverse();
        coordinates.write(model, state);
        let base = match chain.first().map(|&c| nodes[c].parent) {
            Some(0) | None => DQuat::IDENTITY,
            Some(p) => state.bodies[nodes[p - 1].body.index()].orientation,
        };
        // From where the last frame ended; where that is caught at a limit on the wrong side, from the start.
        let off = reach(model, coordinates, &chain, base, target);
        if off > CAUGHT {
            let caught = coordinates.positions.clone();
            for &c in &chain {
                let range = coordinates.position_range(c);
                coordinates.positions[range.clone()].copy_from_slice(&rest.positions[range]);
            }
            if reach(model, coordinates, &chain, base, target) > off - 0.1 {
                coordinates.positions = caught;
            }
        }
    }
}

/// An orientation this far off may be caught at a limit \[rad\].
const CAUGHT: f64 = 0.5;

/// Gauss–Newton on the turns of a chain of joints: `log(target R⁻¹) → 0`, damped, each step inside the limits. Returns what is left \[rad\].
fn reach(model: &Model, coordinates: &mut Coordinates, chain: &[usize], base: DQuat, target: DQuat) -> f64 {
    let links: Vec<(usize, Link)> = chain.iter().map(|&i| (i, Link::new(model, &model.topology().nodes[i]))).collect();
    let turns: Vec<(usize, usize)> = links
        .iter()
        .enumerate()
        .flat_map(|(c, (_, link))| (link.mask.free_translations()..link.mask.free()).map(move |k| (c, k)))
        .collect();
    let orientation = |coordinates: &Coordinates| {
        links.iter().fold(base, |turn, (i, link)| {
            turn * link.pose(link.mask.pose(&coordinates.positions[coordinates.position_range(*i)])).rotation
        })
    };
    let error = |coordinates: &Coordinates| log(target * orientation(coordinates).conjugate());
    let mut best = error(coordinates);
    for _ in 0..12 {
        if best.length() < 1e-10 || turns.is_empty() {
            break;
        }
        // Columns by differences: a turn of δ about each free axis.
        const DELTA: f64 = 1e-6;
        let here = orientation(coordinates);
        let columns: Vec<DVec3> = turns
            .iter()
            .map(|&(c, k)| {
                let mut moved = coordinates.clone();
                advance(&mut moved, &links[c], k, DELTA);
                log(orientation(&moved) * here.conjugate()) / DELTA
            })
            .collect();
        // δ = Jᵀ (J Jᵀ + μ)⁻¹ e
        let mut square = DMat3::from_diagonal(DVec3::splat(1e-6));
        for a in &columns {
            square += DMat3::from_cols(*a * a.x, *a * a.y, *a * a.z);
        }
        let weights = square.inverse() * best;
        let before = coordinates.positions.clone();
        for (&(c, k), column) in turns.iter().zip(&columns) {
            advance(coordinates, &links[c], k, column.dot(weights).clamp(-0.5, 0.5));
        }
        for (i, link) in &links {
            keep_inside(model, coordinates, *i, link, MARGIN);
        }
        let now = error(coordinates);
        if now.length() >= best.length() - 1e-14 {
            coordinates.positions = before;
            break;
        }
        best = now;
    }
    best.length()
}

pub(crate) fn advance(coordinates: &mut Coordinates, link: &(usize, Link), direction: usize, by: f64) {
    let mut rates = [0.0; 6];
    rates[direction] = by;
    let range = coordinates.position_range(link.0);
    link.1.mask.advance(&mut coordinates.positions[range], &rates[..link.1.mask.free()], 1.0);
}

/// Followed poses keep this far from limits \[rad\], so that these need not act.
pub(crate) const MARGIN: f64 = 0.1;
/// Joints that no recorded one moves, as those of fingers, rest this far from them \[rad\]: they swing with what carries them.
const LOOSE: f64 = 0.4;

/// A range without its margins.
fn narrowed(range: Range, margin: f64) -> Range {
    let margin = margin.min(0.5 * (range.max - range.min).max(0.0));
    Range::new(range.min + margin, (range.max - margin).max(range.min + margin))
}

/// Brings a joint inside its limits: an angle and a twist to the nearest end, a swing back until it is inside.
pub(crate) fn keep_inside(model: &Model, coordinates: &mut Coordinates, node: usize, link: &Link, margin: f64) {
    let Some(joint) = model.topology().nodes[node].joint.map(|id| model.joint(id)) else { return };
    let range = coordinates.position_range(node);
    let slots = &mut coordinates.positions[range][link.mask.free_translations()..];
    match link.mask.rotation() {
        RotationKind::Axis(_) => {
            if let Some(limit) = joint.limits.angle.map(|range| narrowed(range, margin)) {
                slots[0] = slots[0].clamp(limit.min, limit.max);
            }
        }
        RotationKind::Free if joint.mask != JointMask::FREE => {
            // Swing and twist each to the nearest that is allowed: a twist that is not does not cost the swing.
            let (s1, s2, twist) = swing_twist(DQuat::from_slice(slots));
            let less = |x: f64| x - margin.min(0.5 * x);
            let swing = joint.limits.swing.map(|e| SwingEllipse { about_y: less(e.about_y), about_z: less(e.about_z) });
            let out = swing.map_or(0.0, |e| (s1 / e.about_y).hypot(s2 / e.about_z));
            let twists = joint.limits.angle.map(|range| narrowed(range, margin));
            let allowed = twists.map_or(twist, |range| twist.clamp(range.min, range.max));
            if out > 1.0 || allowed != twist {
                let swing = exp(DVec3::new(0.0, s1, s2) / out.max(1.0));
                (swing * DQuat::from_rotation_x(allowed)).write_to_slice(slots);
            }
        }
        _ => {}
    }
}

/// The wrench about the root's centre that a motion needs beside the forces inside the figure, by frame: zero where it is possible in free
/// flight, and what the ground or a hand must give elsewhere.
///
/// ```text
/// F = Σ m (a − g),   τ = Σ (x − x_root) × m (a − g) + I α + ω × I ω
/// ```
pub fn residual(model: &Model, motion: &Motion, gravity: DVec3) -> Vec<Wrench> {
    let root = model.topology().nodes[0].body.index();
    // Differences at the ends would see the motion start and stop: the nearest frames inside stand for them.
    let inside = 2.min(motion.frames() / 2)..=motion.frames().saturating_sub(3).max(motion.frames() / 2);
    let wrench = |f: usize| {
        let time = f.clamp(*inside.start(), *inside.end()) as f64 / motion.rate();
        let about = motion.at(time, root).pose.translation;
        model.bodies().iter().enumerate().fold(Wrench::ZERO, |sum, (b, body)| {
            let moved = motion.at(time, b);
            let inertia = turned_inertia(moved.pose.rotation, body.inertia);
            let (omega, alpha) = (moved.velocity.angular, moved.acceleration.angular);
            let force = (moved.acceleration.linear - gravity) * body.mass;
            let torque = (moved.pose.translation - about).cross(force) + inertia * alpha + omega.cross(inertia * omega);
            sum + Wrench::new(force, torque)
        })
    };
    (0..motion.frames()).map(wrench).collect()
}

#[cfg(test)]
mod tests {
    use super::common_prefix;

    #[test]
    fn names_of_any_letters_have_a_common_prefix() {
        assert_eq!(common_prefix(&["Character1_Hips", "Character1_Spine"]), 11);
        assert_eq!(common_prefix(&["グルーブ", "センター"]), 0); // two of three bytes are alike
        assert_eq!(common_prefix(&["J_ä", "J_ö"]), 2);
        assert_eq!(common_prefix(&["alone"]), 0);
    }
}
