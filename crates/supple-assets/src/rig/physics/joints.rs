//! Joints: their limits and drives as the mask, limits, springs and motor of one of ours. The axes are taken round so that the main one is X: the free axis
//! of a hinge or slider, the twist of a ball.

use super::parts::JointPart;
use super::{FileJoint, Physics};
use crate::FileError;
use crate::rig::build::centre_and_inertia;
use crate::rig::{Given, Rig};
use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::{PI, TAU};
use supple::maths::rotation;
use supple::model::ServoTarget;
use supple::{JointMask, Limits, Motor, Pose, Range, RotationSpring, SlideSpring, Stops, SwingEllipse};

/// What a twist is left that must be held while the swing has limits \[rad\].
const HARDLY: f64 = 0.01;

impl Physics<'_> {
    /// The joints of the file, b against a.
    pub(super) fn joints(&mut self, rig: &Rig) -> Result<Vec<FileJoint>, FileError> {
        let mut joints = Vec::new();
        for k in 0..self.document.order.len() {
            let node = self.document.order[k];
            let Some(used) = self.nodes[node].joint.take() else { continue };
            let other = used.connected_node;
            if other >= self.nodes.len() {
                return Err(self.missing(node, "node", other, self.nodes.len()));
            }
            let count = self.root.physics_joints.len();
            if used.joint >= count {
                return Err(self.missing(node, "joint", used.joint, count));
            }
            let (a, b) = (rig.bone_of_node[node], rig.bone_of_node[other]);
            if a == b {
                self.note(node, "its joint has the same body on both sides: left out");
                continue;
            }
            let sides = [(node, a), (other, b)].map(|(node, bone)| Side {
                frame: self.place(node).0,
                link: bone.map_or(Pose::IDENTITY, |b| rig.bones[b].link),
                inertia: bone.map(|b| centre_and_inertia(&rig.bones[b])),
                mass: bone.map(|b| rig.bones[b].mass),
            });
            let part = std::mem::take(&mut self.root.physics_joints[used.joint]);
            let mut joint = self.joint(node, &part, &sides)?;
            self.root.physics_joints[used.joint] = part;
            joint.collide = used.enable_collision;
            joints.push(FileJoint { name: self.document.names[node].clone(), a, b, joint });
        }
        Ok(joints)
    }

    /// One joint; its child is the second side.
    fn joint(&mut self, node: usize, part: &JointPart, sides: &[Side; 2]) -> Result<Given, FileError> {
        let bad = |axis: usize| axis > 2;
        let axes = part.limits.iter().flat_map(|l| l.linear_axes.iter().chain(&l.angular_axes)).copied();
        if axes.chain(part.drives.iter().map(|d| d.axis)).any(bad) {
            let what = "an axis of its joint is not 0, 1 or 2";
            return Err(FileError::new("file/physics", &self.document.path, what, "give 0 for X, 1 for Y, 2 for Z")
                .at(format!("nodes[{node}]")));
        }
        let mut draft = Draft::new(part, sides);
        self.take_limits(node, part, &mut draft);
        self.take_drives(node, part, sides, &mut draft);
        let Draft { bits, parent, child, limits, spring, slide, motor, .. } = draft;
        Ok(Given {
            mask: JointMask::from_bits(bits),
            child: sides[1].link.inverse().then(child),
            parent: sides[0].link.inverse().then(parent),
            at_rest: (parent.rotation.conjugate() * child.rotation).normalize(),
            limits,
            spring,
            slide,
            motor,
            collide: false,
        })
    }

    /// Ranges: of the angle, the swing and the slide; those without room that give are springs.
    fn take_limits(&mut self, node: usize, part: &JointPart, draft: &mut Draft) {
        let (mut ranges, mut hard): ([Option<Range>; 3], bool) = ([None; 3], false);
        let mut left_out = false;
        for limit in &part.limits {
            let (range, soft) = (limit.range(), !limit.is_hard());
            let (k, c) = (limit.stiffness.unwrap_or(0.0), limit.damping.unwrap_or(0.0));
            match (limit.linear_axes.as_slice(), limit.angular_axes.as_slice()) {
                // Held away from zero: the parent's frame is moved there.
                ([axis], []) if limit.closed() && !soft => {
                    let shift = DVec3::AXES[draft.round(*axis)] * range.min;
                    draft.parent = draft.parent.then(Pose::at(shift));
                }
                ([], [axis]) if limit.closed() && !soft => {
                    let turn = rotation::exp(DVec3::AXES[draft.round(*axis)] * range.min);
                    draft.parent = draft.parent.then(Pose::new(turn, DVec3::ZERO));
                }
                ([_, ..], []) if limit.closed() && soft => (draft.slide.stiffness, draft.slide.damping) = (k, c),
                ([], [_, ..]) if limit.closed() && soft => (draft.spring.stiffness, draft.spring.damping) = (k, c),
                ([_, ..], []) | ([], [_, ..]) if limit.closed() => {}
                ([axis], []) if draft.round(*axis) == 0 => {
                    draft.limits.slide = Some(range);
                    hard |= !soft;
                    (draft.limits.slide_stiffness, draft.limits.slide_damping) = (k, c);
                }
                ([], axes @ [_, ..]) => {
                    for axis in axes {
                        let cone = Range::new(-range.max, range.max);
                        ranges[draft.round(*axis)] = Some(if axes.len() == 1 { range } else { cone });
                    }
                    hard |= !soft;
                    (draft.limits.stiffness, draft.limits.damping) = (k, c);
                }
                _ => left_out = true,
            }
        }
        if left_out {
            self.note(node, "a limit on the distance of two points, or across a slider, is not one we have: left out");
        }
        draft.limits.stops = if hard { Stops::Hard } else { Stops::Soft };
        // Two free rotations have no limits of their own: a ball that hardly twists has.
        if ranges.iter().any(Option::is_some) && draft.held_turns().count_ones() == 1 {
            draft.bits &= 7;
            ranges[0] = Some(Range::new(-HARDLY, HARDLY));
            self.note(node, "a joint of two limited rotations is taken as a ball that hardly twists");
        }
        draft.limits.angle = ranges[0].filter(|_| draft.held_turns() & 1 == 0);
        if draft.held_turns() == 0 && (ranges[1].is_some() || ranges[2].is_some()) {
            // About the middle of the two ranges; a box of angles becomes the ellipse in it.
            let halves = [1, 2].map(|k| {
                let range = ranges[k].unwrap_or(Range::new(-PI, PI));
                let range = Range::new(range.min.max(-PI), range.max.min(PI));
                (0.5 * (range.max + range.min), (0.5 * (range.max - range.min)).clamp(1e-3, PI))
            });
            let [(middle_y, about_y), (middle_z, about_z)] = halves;
            draft.limits.swing = Some(SwingEllipse { about_y, about_z });
            if middle_y != 0.0 || middle_z != 0.0 {
                let turn = rotation::exp(DVec3::new(0.0, middle_y, middle_z));
                draft.parent = draft.parent.then(Pose::new(turn, DVec3::ZERO));
            }
        }
    }

    /// Drives: springs; with a largest force or a speed, on a hinge or slider, the motor.
    fn take_drives(&mut self, node: usize, part: &JointPart, sides: &[Side; 2], draft: &mut Draft) {
        let (mut rest, mut turning) = (DVec3::ZERO, Vec::new());
        for drive in &part.drives {
            let axis = draft.round(drive.axis);
            let way = if drive.kind == "linear" { Way::Slides } else { Way::Turns };
            let world = draft.parent.rotation * DVec3::AXES[axis];
            let scale = match drive.mode.as_str() {
                "acceleration" => effective(sides, draft.child.translation, world, way),
                _ => 1.0,
            };
            let (k, c) = (scale * drive.stiffness, scale * drive.damping);
            if !(k.is_finite() && c.is_finite() && k >= 0.0 && c >= 0.0) {
                self.note(node, "a drive with a negative stiffness or damping is left out");
                continue;
            }
            let (bit, alone) = match way {
                Way::Turns => (axis + 3, draft.held_turns() == 6),
                Way::Slides => (axis, draft.held_turns() == 7),
            };
            if draft.bits >> bit & 1 == 1 {
                self.note(node, "a drive along an axis that its joint holds does nothing: left out");
                continue;
            }
            let pushes = drive.max_force.is_some() || drive.velocity_target != 0.0;
            if pushes && axis == 0 && alone && draft.motor.is_none() {
                let max = drive.max_force.unwrap_or(f64::MAX).clamp(0.0, 1e12);
                let target = match k > 0.0 {
                    true => ServoTarget::Position { position: drive.position_target, rate: drive.velocity_target },
                    false => ServoTarget::Rate(drive.velocity_target),
                };
                draft.motor = Some((Motor { stiffness: k, damping: c, max, integral: 0.0 }, target));
                continue;
            }
            if pushes {
                let text =
                    "a drive with a largest force or a speed acts on hinges and sliders: taken as a plain spring";
                self.note(node, text);
            }
            match way {
                Way::Turns => {
                    rest[axis] = drive.position_target;
                    turning.push((k, c));
                }
                Way::Slides => {
                    draft.slide.rest[axis] = drive.position_target;
                    (draft.slide.stiffness, draft.slide.damping) = (k, c);
                }
            }
        }
        if let Some(&first) = turning.first() {
            let mut spring = first;
            if turning.iter().any(|other| *other != first) {
                self.note(node, "drives of unequal strength about its axes are taken as their mean");
                let mean = |of: fn(&(f64, f64)) -> f64| turning.iter().map(of).sum::<f64>() / turning.len() as f64;
                spring = (mean(|d| d.0), mean(|d| d.1));
            }
            (draft.spring.stiffness, draft.spring.damping) = spring;
        }
        // Whole turns of a hinge are not in a rotation.
        let whole = if draft.held_turns() == 6 { (rest.x / TAU).round() * TAU } else { 0.0 };
        draft.spring.rest = rotation::exp(rest - DVec3::X * whole);
        draft.spring.rest_turns = whole;
    }
}

/// A joint while its parts are taken in; its child is the second side.
struct Draft {
    /// The axis of the file that is X here.
    main: usize,
    /// What it holds, as in [`JointMask`].
    bits: u8,
    /// Frames in the world at rest.
    parent: Pose,
    child: Pose,
    limits: Limits,
    spring: RotationSpring,
    slide: SlideSpring,
    motor: Option<(Motor, ServoTarget)>,
}

impl Draft {
    fn new(part: &JointPart, sides: &[Side; 2]) -> Draft {
        // Directions that a limit without room and without a spring holds.
        let (mut slides, mut turns) = ([false; 3], [false; 3]);
        for limit in part.limits.iter().filter(|l| l.is_hard() && l.closed()) {
            limit.linear_axes.iter().for_each(|a| slides[*a] = true);
            limit.angular_axes.iter().for_each(|a| turns[*a] = true);
        }
        let main = main_axis(part, slides, turns);
        // Columns: the file's axes main, main + 1, main + 2.
        let turn = DQuat::from_mat3(&DMat3::from_cols_array_2d(&std::array::from_fn(|c| {
            std::array::from_fn(|r| if r == (main + c) % 3 { 1.0 } else { 0.0 })
        })));
        let turned = |side: &Side| side.frame.then(Pose::new(turn, DVec3::ZERO));
        let mut draft = Draft {
            main,
            bits: 0,
            parent: turned(&sides[0]),
            child: turned(&sides[1]),
            limits: Limits::default(),
            spring: RotationSpring::default(),
            slide: SlideSpring::default(),
            motor: None,
        };
        for axis in 0..3 {
            draft.bits |= u8::from(slides[axis]) << draft.round(axis);
            draft.bits |= u8::from(turns[axis]) << (3 + draft.round(axis));
        }
        draft
    }

    /// Our axis for one of the file.
    fn round(&self, axis: usize) -> usize {
        (axis + 3 - self.main) % 3
    }

    /// The rotations that are held, a bit each.
    fn held_turns(&self) -> u8 {
        self.bits >> 3
    }
}

/// Whether something moves along an axis or about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Slides,
    Turns,
}

/// The axis that becomes X.
fn main_axis(part: &JointPart, held_slides: [bool; 3], held_turns: [bool; 3]) -> usize {
    let only = |held: [bool; 3], wanted: bool| {
        let mut found = (0..3).filter(|k| held[*k] == wanted);
        found.next().filter(|_| found.next().is_none())
    };
    // One free turn; one held; else the axis of a cone, or the only one with a limit of its own; else the one that slides.
    let cone = part
        .limits
        .iter()
        .find(|l| l.angular_axes.len() == 2)
        .and_then(|l| (0..3).find(|k| !l.angular_axes.contains(k)));
    let mut single = [false; 3];
    part.limits.iter().filter(|l| l.angular_axes.len() == 1).for_each(|l| single[l.angular_axes[0]] = true);
    let free = held_turns == [false; 3];
    only(held_turns, false)
        .or(only(held_turns, true))
        .or(cone.filter(|_| free))
        .or(only(single, true).filter(|_| free))
        .or(only(held_slides, false))
        .unwrap_or(0)
}

/// One side of a joint.
struct Side {
    /// In the world at rest.
    frame: Pose,
    link: Pose,
    /// Centre of mass and inertia in the link's frame.
    inertia: Option<(DVec3, DMat3)>,
    mass: Option<f64>,
}

/// What an acceleration about (or along) an axis through a point takes of both sides together, each free: `1/(1/I_a + 1/I_b)`.
fn effective(sides: &[Side; 2], point: DVec3, axis: DVec3, way: Way) -> f64 {
    let inverse = |side: &Side| -> f64 {
        let (Some((centre, inertia)), Some(mass)) = (side.inertia, side.mass) else { return 0.0 };
        if way == Way::Slides {
            return 1.0 / mass;
        }
        let lever = (point - side.link.transform_point(centre)).reject_from_normalized(axis).length();
        let own = axis.dot(rotation::turned_inertia(side.link.rotation, inertia) * axis);
        1.0 / (own + mass * lever * lever)
    };
    let sum = inverse(&sides[0]) + inverse(&sides[1]);
    if sum > 0.0 { 1.0 / sum } else { 1.0 }
}
