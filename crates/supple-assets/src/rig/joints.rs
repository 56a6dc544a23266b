//! How bones turn on each other: by the class of their name, widened to what the clips do; else by the clips; else by their form.

use super::fit::eigen;
use super::names::{self, Class, Side};
use super::{Bone, JointFrom, Sampled, Turn, leftward};
use crate::Note;
use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::PI;
use supple::maths::rotation;
use supple::model::joint::swing_twist;
use supple::{Range, Shape, SwingEllipse};

/// A joint as anatomy has it, in degrees from a straight limb.
#[derive(Clone, Copy, Debug)]
enum Anatomy {
    /// Bends one way only, between these.
    Hinge(f64, f64),
    /// Half ranges of bending, of swinging sideways and of twisting, and the middle of bending.
    Ball { bend: f64, side: f64, twist: f64, middle: f64 },
}

/// Ranges as passive joints have them, rounded outwards; about the pose at rest, whatever it is.
fn anatomy(class: Class) -> Option<Anatomy> {
    let ball = |bend, side, twist, middle| Some(Anatomy::Ball { bend, side, twist, middle });
    match class {
        Class::Pelvis | Class::Spine => ball(25.0, 20.0, 20.0, 0.0),
        Class::Clavicle => ball(15.0, 15.0, 10.0, 0.0),
        Class::Neck => ball(35.0, 30.0, 40.0, 0.0),
        Class::Head => ball(35.0, 30.0, 45.0, 0.0),
        Class::UpperArm => ball(100.0, 100.0, 80.0, 0.0),
        Class::Forearm => Some(Anatomy::Hinge(-5.0, 150.0)),
        Class::Hand => ball(70.0, 25.0, 60.0, 0.0),
        Class::Metacarpal => ball(5.0, 5.0, 5.0, 0.0),
        Class::FingerBase => ball(60.0, 15.0, 10.0, 35.0),
        Class::Finger => Some(Anatomy::Hinge(-5.0, 100.0)),
        Class::Thigh => ball(75.0, 45.0, 45.0, 40.0),
        Class::Calf => Some(Anatomy::Hinge(-3.0, 150.0)),
        Class::Foot => ball(45.0, 20.0, 15.0, 0.0),
        Class::Toe => ball(45.0, 10.0, 5.0, 0.0),
        Class::Tail => ball(50.0, 50.0, 20.0, 0.0),
        Class::Unknown => None,
    }
}

/// Beyond what the clips do \[rad\].
const MARGIN: f64 = 0.1;
/// A clip that turns a joint by less tells nothing about its kind \[rad\].
const TELLING: f64 = 0.15;
/// A joint whose clips turn it this much less about all other axes is a hinge.
const ONE_AXIS: f64 = 0.2;
/// The widest swing that is a limit \[rad\]: near half a turn its direction, and the twist, have no meaning.
const WIDEST: f64 = 2.6;

/// What the clips make a joint do, as turns of the bone from rest, in world axes at rest.
struct Seen {
    turns: Vec<DQuat>,
    /// The largest angle \[rad\].
    largest: f64,
    /// The axis that it turns about most, and how much less it turns about the next.
    axis: DVec3,
    second: f64,
}

/// Plans the joints of all bones.
pub(super) fn plan(bones: &mut [Bone], directions: &[DVec3], clips: &[Sampled], notes: &mut Vec<Note>) {
    let left = leftward(bones);
    let forward = left.map(|left| left.cross(DVec3::Y));
    for i in 0..bones.len() {
        let Some(parent) = bones[i].parent else { continue };
        let bone = &bones[i];
        let along = directions[i];
        let seen = seen(bones, i, parent, clips);
        // Towards what a limb bends: knees back, palms in, the rest forward.
        let towards = match bone.class {
            Class::Calf => forward.map(|f| -f),
            Class::FingerBase | Class::Finger => Some(palm(&bone.name, along, left)),
            _ => forward,
        };
        let (turn, from) = match anatomy(bone.class) {
            Some(Anatomy::Hinge(low, high)) if seen.largest < TELLING || seen.second < ONE_AXIS => {
                let bent = directions[parent].cross(along);
                let angle = bent.length().atan2(directions[parent].dot(along));
                let by_shape = Some(bent).filter(|_| (0.09..2.8).contains(&angle)).and_then(DVec3::try_normalize);
                let by_side = towards.map(|t| along.cross(t)).and_then(DVec3::try_normalize);
                let axis = match (seen.largest >= TELLING, by_shape.or(by_side)) {
                    // The clips know the axis, the form its sense.
                    (true, known) => {
                        let sense = known.map_or(seen.mean_about(seen.axis), |known| known.dot(seen.axis));
                        Some(if sense < 0.0 { -seen.axis } else { seen.axis })
                    }
                    (false, known) => known,
                };
                match axis {
                    Some(axis) => {
                        let rest = if by_shape.is_some_and(|b| b.dot(axis) > 0.5) { angle } else { 0.0 };
                        let asked = Range::new(low.to_radians() - rest, high.to_radians() - rest);
                        widen_hinge(axis, asked, &seen)
                    }
                    // Nothing tells where it bends: a ball that does not turn about itself.
                    None => ball(along, None, [high.to_radians(), high.to_radians(), 0.1], 0.0, &seen),
                }
            }
            Some(Anatomy::Hinge(_, high)) => ball(along, towards, [0.5 * high.to_radians(); 3], 0.0, &seen),
            Some(Anatomy::Ball { bend, side, twist, middle }) => {
                let middle = if towards.is_some() { middle.to_radians() } else { 0.0 };
                ball(along, towards, [bend, side, twist].map(f64::to_radians), middle, &seen)
            }
            None if seen.largest >= TELLING && seen.second < 0.5 * ONE_AXIS => {
                let (turn, _) = widen_hinge(seen.axis, Range::new(-MARGIN, MARGIN), &seen);
                (turn, JointFrom::Clips)
            }
            None if seen.largest >= TELLING => {
                let (turn, _) = ball(along, towards, [0.1, 0.1, 0.1], 0.0, &seen);
                (turn, JointFrom::Clips)
            }
            None => {
                let swing = bone.shapes.first().map_or(0.5, |placed| by_form(&placed.shape));
                let (turn, _) = ball(along, towards, [swing, swing, 0.5 * swing], 0.0, &seen);
                (turn, JointFrom::Shape)
            }
        };
        if from == JointFrom::NameAndClips {
            let text = "its limits are widened to what the clips do".into();
            notes.push(Note { code: "import/widened", part: bone.name.clone(), text });
        }
        (bones[i].joint, bones[i].joint_from) = (turn, from);
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
fn palm(name: &str, along: DVec3, left: Option<DVec3>) -> DVec3 {
    let inward = match (names::side(name), left) {
        (Side::Left, Some(left)) => -left,
        (Side::Right, Some(left)) => left,
        _ => DVec3::NEG_Y,
    };
    if along.y.abs() > 0.7 { inward } else { DVec3::NEG_Y }
}

/// What the clips make bone `i` do on its parent.
fn seen(bones: &[Bone], i: usize, parent: usize, clips: &[Sampled]) -> Seen {
    let (rest, above) = (bones[i].link.rotation, bones[parent].link.rotation);
    let mut turns = Vec::new();
    let (mut largest, mut second_moment) = (0.0f64, DMat3::ZERO);
    for clip in clips {
        for frame in clip.poses.chunks_exact(bones.len()) {
            // In world axes at rest: the parent brought back to rest, then the child against its rest.
            let turn = above * frame[parent].rotation.conjugate() * frame[i].rotation * rest.conjugate();
            let turn = if turn.w < 0.0 { -turn } else { turn };
            let phi = rotation::log(turn);
            largest = largest.max(phi.length());
            second_moment += DMat3::from_cols(phi * phi.x, phi * phi.y, phi * phi.z);
            turns.push(turn);
        }
    }
    let (values, vectors) = eigen(second_moment);
    let second = (values.y.max(0.0) / values.x.max(1e-300)).sqrt();
    Seen { turns, largest, axis: vectors.x_axis, second }
}

impl Seen {
    /// The mean angle about an axis \[rad\].
    fn mean_about(&self, axis: DVec3) -> f64 {
        self.turns.iter().map(|turn| rotation::log(*turn).dot(axis)).sum::<f64>()
    }
}

/// A hinge whose range holds what was asked, the pose at rest, and all that was seen.
fn widen_hinge(axis: DVec3, asked: Range, seen: &Seen) -> (Turn, JointFrom) {
    let inside = Range::new(asked.min.min(-0.02), asked.max.max(0.02));
    let mut range = inside;
    for turn in &seen.turns {
        let angle = 2.0 * DVec3::new(turn.x, turn.y, turn.z).dot(axis).atan2(turn.w);
        range = Range::new(range.min.min(angle - MARGIN), range.max.max(angle + MARGIN));
    }
    let from = if range == inside { JointFrom::Name } else { JointFrom::NameAndClips };
    (Turn::Hinge { axis, range }, from)
}

/// A ball of these half ranges (bending, sideways, twisting) that hold the pose at rest and all that was seen.
fn ball(along: DVec3, towards: Option<DVec3>, half: [f64; 3], middle: f64, seen: &Seen) -> (Turn, JointFrom) {
    let x = along;
    let y = towards.map(|t| t.reject_from_normalized(x)).filter(|y| y.length() > 0.1).and_then(DVec3::try_normalize);
    let y = y.unwrap_or_else(|| x.any_orthonormal_vector());
    let frame = DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y))).normalize();
    let [bend, side, twist] = half;
    let mut swing = SwingEllipse { about_y: side, about_z: bend };
    let mut twist = Range::new(-twist, twist);
    let (asked_swing, asked_twist) = (swing, twist);
    let rest = std::iter::once(&DQuat::IDENTITY);
    for turn in rest.chain(&seen.turns) {
        // In the joint's frame, seen from the middle of its range.
        let local = DQuat::from_rotation_z(-middle) * frame.conjugate() * *turn * frame;
        let (s1, s2, t) = swing_twist(local);
        let rho = ((s1 / swing.about_y).powi(2) + (s2 / swing.about_z).powi(2)).sqrt();
        if rho > 1.0 {
            let wider = 1.02 * rho;
            swing = SwingEllipse { about_y: swing.about_y * wider, about_z: swing.about_z * wider };
        }
        twist = Range::new(twist.min.min(t - MARGIN), twist.max.max(t + MARGIN));
    }
    if swing.about_y.max(swing.about_z) > WIDEST || twist.max - twist.min > 2.0 * WIDEST {
        // Clips that turn it over show no limit.
        swing = SwingEllipse { about_y: PI, about_z: PI };
        twist = Range::new(f64::NEG_INFINITY, f64::INFINITY);
    }
    let same = swing == asked_swing && twist == asked_twist;
    let from = if same || seen.largest < 1e-9 { JointFrom::Name } else { JointFrom::NameAndClips };
    (Turn::Ball { frame, middle, swing, twist }, from)
}
