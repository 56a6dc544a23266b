//! How bones turn on each other: by anatomy, what is recognised; else by the clips; else by their form.
//!
//! What is recognised keeps its kind and axis whatever the clips do. They widen its range up to a bound; beyond that the clip is told of. Twins have the same
//! ranges about mirrored axes.

use super::fit::eigen;
use super::names::Class;
use super::plan::{Kind, Plan};
use super::{Bone, JointFrom, Sampled, Turn};
use crate::Note;
use glam::{DMat3, DQuat, DVec3};
use std::collections::BTreeMap;
use supple::maths::rotation;
use supple::model::joint::swing_twist;
use supple::{Range, Shape, SwingEllipse};

/// A joint as anatomy has it, in degrees from a straight limb, with the bounds that clips may widen it to.
#[derive(Clone, Copy, Debug)]
enum Anatomy {
    /// Bends one way only, between these.
    Hinge { range: [f64; 2], widest: [f64; 2] },
    /// Half ranges of bending, of swinging sideways and of twisting, and the middle of bending.
    Ball { half: [f64; 3], widest: [f64; 3], middle: f64 },
}

/// Ranges as passive joints have them, rounded outwards; about the pose at rest, whatever it is. The table of docs/guide/characters.md.
fn anatomy(class: Class, kind: Kind) -> Option<Anatomy> {
    let ball = |half, widest, middle| Some(Anatomy::Ball { half, widest, middle });
    let hinge = |range, widest| Some(Anatomy::Hinge { range, widest });
    match (class, kind) {
        (Class::Calf, Kind::Quadruped) => hinge([-10.0, 140.0], [-40.0, 165.0]),
        (Class::Foot, Kind::Quadruped) => hinge([-10.0, 140.0], [-60.0, 165.0]),
        (Class::Toe, Kind::Quadruped) => hinge([-60.0, 90.0], [-90.0, 120.0]),
        (Class::Pelvis | Class::Spine, _) => ball([25.0, 20.0, 20.0], [60.0, 50.0, 60.0], 0.0),
        (Class::Clavicle, _) => ball([15.0, 15.0, 10.0], [50.0, 50.0, 45.0], 0.0),
        (Class::Neck, _) => ball([35.0, 30.0, 40.0], [70.0, 60.0, 80.0], 0.0),
        (Class::Head, _) => ball([35.0, 30.0, 45.0], [80.0, 65.0, 90.0], 0.0),
        (Class::UpperArm, _) => ball([100.0, 100.0, 80.0], [140.0, 140.0, 140.0], 0.0),
        (Class::Forearm, _) => hinge([-5.0, 150.0], [-15.0, 165.0]),
        (Class::Hand, _) => ball([70.0, 25.0, 60.0], [95.0, 60.0, 120.0], 0.0),
        (Class::Metacarpal, _) => ball([5.0, 5.0, 5.0], [30.0, 30.0, 30.0], 0.0),
        (Class::FingerBase, _) => ball([60.0, 15.0, 10.0], [95.0, 45.0, 45.0], 35.0),
        (Class::Finger, _) => hinge([-5.0, 100.0], [-40.0, 125.0]),
        (Class::Thigh, _) => ball([75.0, 45.0, 45.0], [120.0, 90.0, 90.0], 40.0),
        (Class::Calf, _) => hinge([-3.0, 150.0], [-15.0, 165.0]),
        (Class::Foot, _) => ball([45.0, 20.0, 15.0], [80.0, 50.0, 60.0], 0.0),
        (Class::Toe, _) => hinge([-45.0, 60.0], [-80.0, 90.0]),
        (Class::Tail, _) => ball([50.0, 50.0, 20.0], [95.0, 95.0, 60.0], 0.0),
        (Class::Unknown, _) => None,
    }
}

/// Bounds of what is not recognised \[°\].
const UNKNOWN: [f64; 3] = [100.0, 100.0, 120.0];
/// Beyond what the clips do \[rad\].
const MARGIN: f64 = 0.1;
/// A clip that turns a joint by less tells nothing about its kind \[rad\].
const TELLING: f64 = 0.15;
/// A joint whose clips turn it this much less about all other axes is a hinge.
const ONE_AXIS: f64 = 0.2;
/// Clips whose axis is this near to that of anatomy know it better: the cosine of the angle between. How a hand is turned about its fingers, and an arm about
/// itself, can be seen less well than where a knee bends.
fn same_axis(class: Class) -> f64 {
    match class {
        Class::Finger => 0.0,
        Class::Forearm => 0.5,
        _ => 0.866,
    }
}
/// What a clip turns by this much about one axis turns all the way round \[rad\].
const ROUND: f64 = 2.8;
/// What a clip does beyond the bounds is told from here on \[rad\].
const TOLD: f64 = 0.05;

/// What the clips make a joint do, as turns of the bone from rest, in world axes at rest.
struct Seen {
    /// With the number of the clip.
    turns: Vec<(usize, DQuat)>,
    /// The largest angle \[rad\].
    largest: f64,
    /// The axis that it turns about most, and how much less it turns about the next.
    axis: DVec3,
    second: f64,
}

/// How a joint is planned, before it is widened.
struct Planned {
    turn: Turn,
    /// Bounds of a hinge; of a ball's bending and sideways swing, and its twist \[rad\].
    widest: [f64; 3],
    from: JointFrom,
}

/// Plans the joints of all bones.
pub(super) fn plan(bones: &mut [Bone], plan: &Plan, directions: &[DVec3], clips: &[Sampled], notes: &mut Vec<Note>) {
    let seen: Vec<Option<Seen>> = (0..bones.len()).map(|i| Some(seen(bones, i, bones[i].parent?, clips))).collect();
    let curls = if plan.left.is_none() { curls(bones, directions) } else { vec![None; bones.len()] };
    let mut planned: Vec<Option<Planned>> = (0..bones.len())
        .map(|i| Some(by_anatomy(bones, plan, directions, i, bones[i].parent?, seen[i].as_ref()?, curls[i])))
        .collect();
    agree_on_axes(plan, &mut planned);
    let asked: Vec<Option<Turn>> = planned.iter().map(|p| p.as_ref().map(|p| p.turn)).collect();
    let mut beyond: Vec<(usize, f64, usize)> = Vec::new();
    for (i, planned) in planned.iter_mut().enumerate() {
        if let (Some(planned), Some(seen)) = (planned, &seen[i])
            && let Some((angle, clip)) = widen(planned, seen)
        {
            beyond.push((i, angle, clip));
        }
    }
    agree_on_ranges(plan, &mut planned);
    for (i, planned) in planned.into_iter().enumerate() {
        let Some(Planned { turn, mut from, .. }) = planned else { continue };
        if from == JointFrom::Name && Some(turn) != asked[i] {
            from = JointFrom::NameAndClips;
            let text = "its limits are widened to what the clips do".into();
            notes.push(Note { code: "import/widened", part: bones[i].name.clone(), text });
        }
        (bones[i].joint, bones[i].joint_from) = (turn, from);
    }
    for (i, angle, clip) in beyond {
        let text = format!(
            "clip \"{}\" turns it {:.0}° beyond what this joint can do: it follows as far as that",
            clips[clip].name,
            angle.to_degrees()
        );
        notes.push(Note { code: "import/beyond", part: bones[i].name.clone(), text });
    }
}

/// Where the legs of an animal begin. Of a leg with four joints the first may be a shoulder blade or a part of the pelvis, and the second the hip: the clips
/// tell, a knee turns about the axis across the body.
pub(super) fn find_hips(bones: &[Bone], clips: &[Sampled], plan: &mut Plan) {
    let Some(left) = plan.left.filter(|_| plan.kind == Kind::Quadruped) else { return };
    let is_no_knee = |i: usize| {
        let seen = bones[i].parent.map(|parent| seen(bones, i, parent, clips));
        seen.is_some_and(|seen| seen.largest > 0.5 && seen.axis.dot(left).abs() < 0.5)
    };
    let below = |i: usize, class: Class, classes: &[Class]| {
        (0..bones.len()).find(|b| bones[*b].parent == Some(i) && classes[*b] == class)
    };
    for first in 0..bones.len() {
        let classes = &plan.classes;
        let second = below(first, Class::Calf, classes).filter(|_| classes[first] == Class::Thigh);
        let Some(second) = second else { continue };
        let Some(third) = below(second, Class::Foot, classes) else { continue };
        let Some(paw) = below(third, Class::Toe, classes) else { continue };
        if is_no_knee(second) || plan.twins[second].is_some_and(is_no_knee) {
            let new = [(first, Class::Clavicle), (second, Class::Thigh), (third, Class::Calf), (paw, Class::Foot)];
            new.into_iter().for_each(|(bone, class)| plan.classes[bone] = class);
        }
    }
}

fn by_anatomy(
    bones: &[Bone],
    plan: &Plan,
    directions: &[DVec3],
    i: usize,
    parent: usize,
    seen: &Seen,
    curl: Option<DVec3>,
) -> Planned {
    let (bone, along, left) = (&bones[i], directions[i], plan.left);
    let forward = left.map(|left| left.cross(DVec3::Y));
    let radians = |degrees: [f64; 3]| degrees.map(f64::to_radians);
    let new = |turn, widest, from| Planned { turn, widest: radians(widest), from };
    // Towards what a limb bends: knees back, palms in, toes up, the rest forward.
    let towards = match bone.class {
        Class::Calf => forward.map(|f| -f),
        Class::FingerBase | Class::Finger => {
            Some(curl.map_or_else(|| palm(bone, along, plan), |axis| axis.cross(along)))
        }
        Class::Toe => Some(DVec3::Y),
        _ => forward,
    };
    match anatomy(bone.class, plan.kind) {
        Some(Anatomy::Hinge { range: [low, high], widest }) => {
            let (above, bent) = (directions[parent], directions[parent].cross(along));
            let angle = bent.length().atan2(above.dot(along));
            let by_shape = Some(bent).filter(|_| (0.09..2.8).contains(&angle)).and_then(DVec3::try_normalize);
            let on_four = plan.kind == Kind::Quadruped && matches!(bone.class, Class::Calf | Class::Foot | Class::Toe);
            let by_side = match (on_four, left) {
                // Legs of animals go to and fro: as they are bent they bend on.
                (true, Some(left)) => {
                    let across = left.reject_from_normalized(along).try_normalize();
                    across.map(|a| if by_shape.is_some_and(|b| b.dot(a) < 0.0) { -a } else { a })
                }
                _ => towards.map(|t| along.cross(t)).filter(|a| a.length() > 0.2).and_then(DVec3::try_normalize),
            };
            let known = match (by_side, by_shape) {
                // The form knows the axis of what is clearly bent, the side its sense.
                (Some(side), Some(shape)) if side.dot(shape) > 0.7 && angle > 0.25 => Some(shape),
                (Some(side), _) => Some(side),
                (None, shape) => shape,
            };
            let told = seen.largest >= TELLING && seen.second < ONE_AXIS;
            let axis = match known {
                Some(known) if told && known.dot(seen.axis).abs() > same_axis(bone.class) => {
                    Some(seen.axis * known.dot(seen.axis).signum())
                }
                Some(known) => Some(known),
                None if seen.largest >= TELLING => {
                    Some(if seen.mean_about(seen.axis) < 0.0 { -seen.axis } else { seen.axis })
                }
                None => None,
            };
            let Some(axis) = axis else {
                // Nothing tells where it bends: a ball that does not turn about itself.
                let half = radians([high.min(90.0), high.min(90.0), 6.0]);
                return new(ball(along, None, half, 0.0), [95.0, 95.0, 15.0], JointFrom::Name);
            };
            // How far it is bent at rest.
            let (a, b) = (above.reject_from_normalized(axis), along.reject_from_normalized(axis));
            let rest = if a.length() > 0.2 && b.length() > 0.2 { axis.dot(a.cross(b)).atan2(a.dot(b)) } else { 0.0 };
            let rest = if bone.class == Class::Toe { 0.0 } else { rest };
            let from_rest = |degrees: f64| degrees.to_radians() - rest;
            let range = Range::new(from_rest(low).min(-0.02), from_rest(high).max(0.02));
            let widest = [from_rest(widest[0]).min(range.min), from_rest(widest[1]).max(range.max), 0.0];
            Planned { turn: Turn::Hinge { axis, range }, widest, from: JointFrom::Name }
        }
        Some(Anatomy::Ball { half, widest, middle }) => {
            let middle = if towards.is_some() { middle.to_radians() } else { 0.0 };
            new(ball(along, towards, radians(half), middle), widest, JointFrom::Name)
        }
        None if seen.largest >= TELLING && seen.second < 0.5 * ONE_AXIS => {
            // What goes all the way round is a wheel, and has no end.
            let (end, most) = if seen.largest > ROUND { (std::f64::consts::TAU, 360.0) } else { (MARGIN, 150.0) };
            let turn = Turn::Hinge { axis: seen.axis, range: Range::new(-end, end) };
            new(turn, [-most, most, 0.0], JointFrom::Clips)
        }
        None if seen.largest >= TELLING => new(ball(along, towards, [0.1; 3], 0.0), UNKNOWN, JointFrom::Clips),
        None => {
            let swing = bone.shapes.first().map_or(0.5, |placed| by_form(&placed.shape));
            new(ball(along, towards, [swing, swing, 0.5 * swing], 0.0), UNKNOWN, JointFrom::Shape)
        }
    }
}

/// How far a bone of this form can swing before it meets its parent: slender ones far, stubby ones little \[rad\].
fn by_form(shape: &Shape) -> f64 {
    match shape {
        Shape::Capsule { length, radius } => ((0.5 * length + radius) / (2.0 * radius)).atan().clamp(0.3, 1.3),
        _ => 0.5,
    }
}

/// Where the palm of a hand faces: down when the fingers are level, to the body when they hang.
fn palm(bone: &Bone, along: DVec3, plan: &Plan) -> DVec3 {
    match plan.left {
        Some(left) if along.y.abs() > 0.7 => {
            let on_left = bone.link.translation.dot(left) > plan.middle;
            if on_left { -left } else { left }
        }
        _ => DVec3::NEG_Y,
    }
}

/// A finger that is bent by less, all its joints together, tells nothing about where it bends \[rad\].
const BENT: f64 = 0.15;

/// By bone of a finger: the axis that the finger is bent about as it is drawn; where it is straight, the one that all fingers are bent about together. Of a hand by
/// itself nothing else tells where its palm is.
fn curls(bones: &[Bone], directions: &[DVec3]) -> Vec<Option<DVec3>> {
    let of_finger = |i: usize| matches!(bones[i].class, Class::FingerBase | Class::Finger);
    let top = |mut i: usize| {
        while let Some(above) = bones[i].parent.filter(|above| of_finger(*above)) {
            i = above;
        }
        i
    };
    let mut bends = vec![DVec3::ZERO; bones.len()];
    for (i, bone) in bones.iter().enumerate().filter(|(_, bone)| bone.class == Class::Finger) {
        bends[top(i)] += bone.parent.map_or(DVec3::ZERO, |above| directions[above].cross(directions[i]));
    }
    let all: DVec3 = bends.iter().sum();
    let clear = |bend: DVec3| (bend.length() > BENT).then(|| bend.normalize());
    let axis = |i: usize| clear(bends[top(i)]).or(clear(all));
    (0..bones.len()).map(|i| if of_finger(i) { axis(i) } else { None }).collect()
}

/// What the clips make bone `i` do on its parent.
fn seen(bones: &[Bone], i: usize, parent: usize, clips: &[Sampled]) -> Seen {
    let (rest, above) = (bones[i].link.rotation, bones[parent].link.rotation);
    let mut turns = Vec::new();
    let (mut largest, mut second_moment) = (0.0f64, DMat3::ZERO);
    for (k, clip) in clips.iter().enumerate() {
        for frame in clip.poses.chunks_exact(bones.len()) {
            // In world axes at rest: the parent brought back to rest, then the child against its rest.
            let turn = above * frame[parent].rotation.conjugate() * frame[i].rotation * rest.conjugate();
            let turn = if turn.w < 0.0 { -turn } else { turn };
            let phi = rotation::log(turn);
            largest = largest.max(phi.length());
            second_moment += DMat3::from_cols(phi * phi.x, phi * phi.y, phi * phi.z);
            turns.push((k, turn));
        }
    }
    let (values, vectors) = eigen(second_moment);
    let second = (values.y.max(0.0) / values.x.max(1e-300)).sqrt();
    Seen { turns, largest, axis: vectors.x_axis, second }
}

/// Whether clips turn a bone on its parent by more than they would by the way.
pub(super) fn is_moved(bones: &[Bone], i: usize, parent: usize, clips: &[Sampled]) -> bool {
    seen(bones, i, parent, clips).largest >= TELLING
}

impl Seen {
    /// The mean angle about an axis \[rad\].
    fn mean_about(&self, axis: DVec3) -> f64 {
        self.turns.iter().map(|(_, turn)| rotation::log(*turn).dot(axis)).sum::<f64>()
    }
}

/// A ball of these half ranges (bending, sideways, twisting).
fn ball(along: DVec3, towards: Option<DVec3>, half: [f64; 3], middle: f64) -> Turn {
    let x = along;
    let y = towards.map(|t| t.reject_from_normalized(x)).filter(|y| y.length() > 0.1).and_then(DVec3::try_normalize);
    let y = y.unwrap_or_else(|| x.any_orthonormal_vector());
    let frame = DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y))).normalize();
    let [bend, side, twist] = half;
    let swing = SwingEllipse { about_y: side, about_z: bend };
    Turn::Ball { frame, middle, swing, twist: Range::new(-twist, twist) }
}

/// The axis of a twin: a turn's axis is mirrored the other way round.
fn mirrored(axis: DVec3, left: DVec3) -> DVec3 {
    axis.reject_from_normalized(left) * -1.0 + axis.project_onto_normalized(left)
}

/// Hinges of twins turn about mirrored axes: the mean of both.
fn agree_on_axes(plan: &Plan, planned: &mut [Option<Planned>]) {
    let Some(left) = plan.left else { return };
    for i in 0..planned.len() {
        let Some(j) = plan.twins[i].filter(|j| *j > i) else { continue };
        let axis = |p: &Option<Planned>| match p {
            Some(Planned { turn: Turn::Hinge { axis, .. }, .. }) => Some(*axis),
            _ => None,
        };
        let (Some(a), Some(b)) = (axis(&planned[i]), axis(&planned[j])) else { continue };
        let b_here = mirrored(b, left);
        // Axes of clips have no sense of their own.
        let sense = if a.dot(b_here) < 0.0 { -1.0 } else { 1.0 };
        let Some(mean) = (a + b_here * sense).try_normalize().filter(|_| a.dot(b_here).abs() > 0.5) else { continue };
        for (k, new, flip) in [(i, mean, false), (j, mirrored(mean, left), sense < 0.0)] {
            if let Some(Planned { turn: Turn::Hinge { axis, range }, widest, .. }) = &mut planned[k] {
                *axis = new;
                if flip {
                    *range = Range::new(-range.max, -range.min);
                    (widest[0], widest[1]) = (-widest[1], -widest[0]);
                }
            }
        }
    }
}

/// Widens a joint to what was seen, within its bounds; what is furthest beyond them, and the clip that does it.
fn widen(planned: &mut Planned, seen: &Seen) -> Option<(f64, usize)> {
    let widest = planned.widest;
    let mut beyond: BTreeMap<usize, f64> = BTreeMap::new();
    let mut note = |clip: usize, angle: f64| {
        let most = beyond.entry(clip).or_default();
        *most = most.max(angle);
    };
    match &mut planned.turn {
        Turn::Hinge { axis, range } => {
            for (clip, turn) in &seen.turns {
                let v = DVec3::new(turn.x, turn.y, turn.z);
                let angle = 2.0 * v.dot(*axis).atan2(turn.w);
                let angle = if angle > std::f64::consts::PI { angle - std::f64::consts::TAU } else { angle };
                let wanted = Range::new(range.min.min(angle - MARGIN), range.max.max(angle + MARGIN));
                *range = Range::new(wanted.min.max(widest[0]), wanted.max.min(widest[1]));
                let across = 2.0 * v.reject_from_normalized(*axis).length().min(1.0).asin();
                note(*clip, (widest[0] - angle).max(angle - widest[1]).max(across));
            }
        }
        Turn::Ball { frame, middle, swing, twist } => {
            let [bend, side, most] = [widest[0].max(swing.about_z), widest[1].max(swing.about_y), widest[2]];
            for (clip, turn) in std::iter::once((usize::MAX, DQuat::IDENTITY)).chain(seen.turns.iter().copied()) {
                // In the joint's frame, seen from the middle of its range.
                let local = DQuat::from_rotation_z(-*middle) * frame.conjugate() * turn * *frame;
                let (s1, s2, t) = swing_twist(local);
                let rho = ((s1 / swing.about_y).powi(2) + (s2 / swing.about_z).powi(2)).sqrt();
                if rho > 1.0 {
                    let wider = 1.02 * rho;
                    swing.about_y = (swing.about_y * wider).min(side);
                    swing.about_z = (swing.about_z * wider).min(bend);
                }
                let outside = ((s1 / side).powi(2) + (s2 / bend).powi(2)).sqrt();
                let excess = if outside > 1.0 { s1.hypot(s2) * (1.0 - 1.0 / outside) } else { 0.0 };
                *twist = Range::new(twist.min.min(t - MARGIN).max(-most), twist.max.max(t + MARGIN).min(most));
                if clip != usize::MAX {
                    note(clip, excess.max(t.abs() - most));
                }
            }
        }
        Turn::Given(_) => {}
    }
    let (clip, angle) = beyond.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (angle > TOLD).then_some((angle, clip))
}

/// Twins can do what either does.
fn agree_on_ranges(plan: &Plan, planned: &mut [Option<Planned>]) {
    for i in 0..planned.len() {
        let Some(j) = plan.twins[i].filter(|j| *j > i) else { continue };
        let (first, second) = planned.split_at_mut(j);
        let (Some(a), Some(b)) = (&mut first[i], &mut second[0]) else { continue };
        match (&mut a.turn, &mut b.turn) {
            (Turn::Hinge { range: a, .. }, Turn::Hinge { range: b, .. }) => {
                let both = Range::new(a.min.min(b.min), a.max.max(b.max));
                (*a, *b) = (both, both);
            }
            (Turn::Ball { swing: s, twist: t, .. }, Turn::Ball { swing: u, twist: v, .. }) => {
                let both = SwingEllipse { about_y: s.about_y.max(u.about_y), about_z: s.about_z.max(u.about_z) };
                (*s, *u) = (both, both);
                // A mirror turns the sense of a twist round.
                let twist = Range::new(t.min.min(-v.max), t.max.max(-v.min));
                (*t, *v) = (twist, Range::new(-twist.max, -twist.min));
            }
            _ => {}
        }
    }
}
