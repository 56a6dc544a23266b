//! What hangs and sways: tails, ears, hair, capes, skirts. Each bone of such a chain is a light body on the spring of its joint, in every state of the
//! character; it touches the other shapes of the character and no other chain.
//!
//! Which bones: those that the author of an avatar set to spring; else light chains of class [`Class::Tail`] that no clip moves.
//!
//! An avatar's spring (`VRMC_springBone`, `secondaryAnimation`) is a rule for one frame: the tip of a bone of length L goes on with `1 − drag` of its way in the
//! last frame, is moved by `dt · stiffness` along the direction at rest and by `dt · gravityPower` along `gravityDir`, and is brought back to its length. Its
//! numbers are made at 60 frames a second. As an equation of motion, which no frame rate changes:
//! 1. the tip is pulled along `p = stiffness · d + gravityPower · g`, d the direction at rest, with the acceleration `60 |p|`;
//! 2. so it rests along p, and swings about that with `ω² = 60 |p| / L`;
//! 3. it loses speed at the rate `γ = −60 ln(1 − drag)`.
//!
//! With I the inertia that the joint carries the spring is `k = I ω²` and the damper `c = I γ`.

use super::build::centre_and_inertia;
use super::fit::{self, Share};
use super::plan::Plan;
use super::{Bone, BoneShape, Class, Rig, Sampled, Spread, SpringFrom, joints};
use crate::Note;
use crate::gltf::{Document, SpringJoint, Springs};
use glam::{DMat3, DQuat, DVec3};
use std::collections::BTreeMap;
use supple::contact::{ContactWork, Other, detect};
use supple::maths::rotation;
use supple::{Contacts, Input, Model, Pose, Shape};

/// Frames a second that the numbers of avatars are made at.
const FRAME_RATE: f64 = 60.0;
/// The length of a last bone that has nothing below it, as the format has it \[m\].
const LAST_LENGTH: f64 = 0.07;
/// Least pull and largest drag: a spring of no strength swings for ever, one without loss of speed as well.
const LEAST_PULL: f64 = 0.01;
const MOST_DRAG: f64 = 0.99;
/// A chain that has more than this share of the mass is a limb.
const LIGHT: f64 = 0.05;
/// Between a chain and what it would overlap at rest \[of the size\].
const ROOM: f64 = 5e-4;
/// The group of bodies that sway: they do not touch each other.
pub(super) const GROUP: u32 = 1 << 1;

/// How a joint swings, as the author of an avatar set it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swing {
    /// ω² of (2) \[1/s²\].
    pub square: f64,
    /// γ of (3) \[1/s\].
    pub drag: f64,
    /// How it is turned when it rests, from the pose of the file, on its parent; world axes.
    pub droop: DQuat,
}

/// What is told of springs, by node.
pub(super) struct Told {
    joints: BTreeMap<usize, (SpringJoint, Option<usize>)>,
}

impl Told {
    pub(super) fn new(springs: &Springs) -> Told {
        let mut joints = BTreeMap::new();
        for chain in &springs.chains {
            let next = chain.joints.iter().skip(1).map(|joint| Some(joint.node)).chain([None]);
            for (joint, next) in chain.joints.iter().zip(next) {
                joints.entry(joint.node).or_insert((*joint, next));
            }
        }
        Told { joints }
    }

    /// The classes of what springs, where the file tells none.
    pub(super) fn classes(&self, told: &mut [Option<Class>]) {
        for node in self.joints.keys() {
            told[*node] = told[*node].or(Some(Class::Tail));
        }
    }
}

/// A rig as far as it is made.
pub(super) struct Made<'a> {
    pub(super) document: &'a Document,
    pub(super) plan: &'a Plan,
    pub(super) directions: &'a [DVec3],
    pub(super) shares: &'a [&'a Share],
    pub(super) clips: &'a [Sampled],
    /// Largest extent \[m\].
    pub(super) size: f64,
}

/// Finds the bones that sway, and gives them their springs and shapes.
pub(super) fn find(bones: &mut [Bone], told: &Told, made: &Made<'_>, notes: &mut Vec<Note>) {
    let is_tail = |bones: &[Bone], i: usize| made.plan.classes[i] == Class::Tail && bones[i].parent.is_some();
    let whole: f64 = bones.iter().map(|bone| bone.mass).sum();
    // By bone: the first of its chain.
    let mut first: Vec<Option<usize>> = Vec::with_capacity(bones.len());
    for i in 0..bones.len() {
        let above = bones[i].parent.and_then(|p| first[p]);
        first.push(is_tail(bones, i).then(|| above.unwrap_or(i)));
    }
    let mut mass = vec![0.0; bones.len()];
    let mut moved = vec![false; bones.len()];
    for i in 0..bones.len() {
        if let (Some(chain), Some(parent)) = (first[i], bones[i].parent) {
            mass[chain] += bones[i].mass;
            moved[chain] |= joints::is_moved(bones, i, parent, made.clips);
        }
    }
    for i in 0..bones.len() {
        let spring = told.joints.get(&bones[i].node).filter(|_| first[i].is_some());
        bones[i].sways = spring.is_some() || first[i].is_some_and(|f| !moved[f] && mass[f] < LIGHT * whole);
        if bones[i].sways {
            bones[i].strength = 0.0;
        }
    }
    let mut turned = vec![DQuat::IDENTITY; bones.len()];
    for i in 0..bones.len() {
        let above = bones[i].parent.map_or(DQuat::IDENTITY, |p| turned[p]);
        turned[i] = above;
        if let Some((joint, next)) = told.joints.get(&bones[i].node).filter(|_| bones[i].sways) {
            let to = next.map(|next| made.document.world[next].translation - bones[i].link.translation);
            let (swing, turn) = swing(joint, to, made.directions[i], above);
            (bones[i].swing, bones[i].spring_from, turned[i]) = (Some(swing), SpringFrom::File, turn);
        }
    }
    for i in (0..bones.len()).filter(|i| bones[*i].sways).collect::<Vec<_>>() {
        let joint = told.joints.get(&bones[i].node).map(|(joint, _)| joint);
        let radius = joint.map(|joint| joint.hit_radius * unit(made.document, bones[i].node));
        strip(&mut bones[i], made.directions[i], made.shares[i], radius.filter(|r| *r > 0.0), made.size);
    }
    let swaying: Vec<&str> = bones.iter().filter(|bone| bone.sways).map(|bone| bone.name.as_str()).collect();
    if let [one, others @ ..] = &swaying[..] {
        let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        let text = format!(
            "\"{one}\"{others} hang and sway on springs of their own; give a strength to have one follow clips"
        );
        notes.push(Note { code: "import/sways", part: "scene".into(), text });
    }
}

/// (1) to (3), and how the bone is turned in the world when it rests; `above` is how the one above is.
fn swing(joint: &SpringJoint, to: Option<DVec3>, along: DVec3, above: DQuat) -> (Swing, DQuat) {
    let to = to.filter(|to| to.length() > 1e-6).unwrap_or(along * LAST_LENGTH);
    let direction = above * to.normalize_or(along);
    let gravity = joint.gravity_dir.normalize_or(DVec3::NEG_Y) * joint.gravity_power.max(0.0);
    let pull = direction * joint.stiffness.max(LEAST_PULL) + gravity;
    // Pulled straight against its direction it stays there.
    let pull = if pull.length() < LEAST_PULL { direction * LEAST_PULL } else { pull };
    let turn = rotation::between(direction, pull.normalize());
    let swing = Swing {
        square: FRAME_RATE * pull.length() / to.length(),
        drag: -FRAME_RATE * (1.0 - joint.drag_force.clamp(0.0, MOST_DRAG)).ln(),
        droop: above.conjugate() * turn * above,
    };
    (swing, turn * above)
}

/// Metres in a unit of length of a node.
fn unit(document: &Document, node: usize) -> f64 {
    document.world[node].matrix3.determinant().abs().cbrt()
}

/// A capsule along the bone from its joint on, of the radius that is told, else as thick as what it carries is where that is thinnest. Mass and inertia stay
/// those of the shape that it had.
fn strip(bone: &mut Bone, along: DVec3, share: &Share, told: Option<f64>, size: f64) {
    freeze(bone);
    let smallest = 0.002 * size;
    let from = bone.link.translation;
    let mut reach: Vec<f64> = share.points.iter().map(|p| (*p - from).dot(along)).collect();
    reach.sort_by(f64::total_cmp);
    let reach = reach.get(reach.len() * 49 / 50).copied().unwrap_or(0.0).max(2.0 * smallest);
    let radius = told.unwrap_or_else(|| fit::thinnest(&share.points)).clamp(smallest, 0.5 * reach);
    let length = (reach - 2.0 * radius).max(0.0);
    let middle = from + along * (0.5 * length + radius);
    let place = Pose::new(rotation::between(DVec3::X, along), middle);
    bone.shapes =
        vec![BoneShape { shape: Shape::capsule(length, radius), link_from_shape: bone.link.inverse().then(place) }];
}

/// Keeps mass and inertia where they are when shapes change.
pub(super) fn freeze(bone: &mut Bone) {
    let (centre, inertia) = centre_and_inertia(bone);
    let inertia: DMat3 = inertia * (1.0 / bone.mass);
    bone.spread = Some(Spread { centre, inertia });
}

/// Gives the bodies the colliders of an avatar as shapes of their own, beside those that were fitted.
pub(super) fn add_colliders(rig: &mut Rig, springs: &Springs, document: &Document) {
    let mut below = 0;
    for collider in &springs.colliders {
        let (world, unit) = (document.world[collider.node], unit(document, collider.node));
        let radius = collider.radius * unit;
        let bone = rig.bone_of_node[collider.node].filter(|b| !rig.bones[*b].sways);
        let Some(bone) = bone.filter(|_| radius > 0.0 && radius.is_finite()) else { continue };
        let a = world.transform_point3(collider.offset);
        let b = collider.tail.map_or(a, |tail| world.transform_point3(tail));
        let axis = (b - a).try_normalize().unwrap_or(DVec3::X);
        let place = Pose::new(rotation::between(DVec3::X, axis), 0.5 * (a + b));
        let shape = if a.distance(b) > 1e-9 { Shape::capsule(a.distance(b), radius) } else { Shape::sphere(radius) };
        // What stands on the ground would be pushed out of it.
        if rig.floor.is_some_and(|floor| fit::lowest(&shape, &place) < floor) {
            below += 1;
            continue;
        }
        let bone = &mut rig.bones[bone];
        freeze(bone);
        bone.shapes.push(BoneShape { shape, link_from_shape: bone.link.inverse().then(place) });
    }
    if below > 0 {
        let text = format!("{below} colliders of its springs reach below the ground: left out");
        rig.notes.push(Note { code: "import/collider", part: "spring bones".into(), text });
    }
}

/// Makes what sways so thin that it touches nothing at rest, as far as that is possible.
pub(super) fn thin(rig: &mut Rig, model: &Model, size: f64) {
    let mut work = ContactWork::new(model);
    let input = Input { contacts: Contacts::All, ..Input::default() };
    let mut deepest = vec![0.0f64; rig.bones.len()];
    for contact in detect(model, &input, &model.start(), (1e-4, 0.0), &mut work) {
        let bodies = [Some(contact.a), if let Other::Body(b) = contact.b { Some(b) } else { None }];
        for body in bodies.into_iter().flatten().filter(|b| rig.bones[b.index()].sways) {
            let deep = &mut deepest[body.index()];
            *deep = deep.max(ROOM * size - contact.gap);
        }
    }
    for (bone, deep) in rig.bones.iter_mut().zip(deepest).filter(|(bone, deep)| bone.sways && *deep > 0.0) {
        for placed in &mut bone.shapes {
            if let Shape::Capsule { length, radius } = placed.shape {
                let thinner = (radius - deep).max(0.001 * size).min(radius);
                // The far end goes back with it, the near one stays at the joint.
                placed.shape = Shape::capsule(length, thinner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of the format, frame by frame, against the equation of motion that is made of it.
    #[test]
    fn a_spring_swings_as_the_rule_of_avatars_has_it() {
        let length = 0.1;
        for (stiffness, power, drag) in [(1.0, 0.0, 0.4), (0.5, 0.0, 0.1), (1.0, 0.3, 0.2), (4.0, 0.0, 0.7)] {
            let joint = SpringJoint {
                node: 0,
                hit_radius: 0.0,
                stiffness,
                gravity_power: power,
                gravity_dir: DVec3::NEG_Y,
                drag_force: drag,
            };
            let (swing, _) = swing(&joint, Some(DVec3::NEG_Y * length), DVec3::NEG_Y, DQuat::IDENTITY);
            let begin = 0.3;
            let at = |angle: f64| DVec3::new(f64::sin(angle), -f64::cos(angle), 0.0) * length;
            // Let go at rest: the way of the last frame is none.
            let (mut tip, mut before) = (at(begin), at(begin));
            let (mut angle, mut rate): (f64, f64) = (begin, 0.0);
            let dt = 1.0 / FRAME_RATE;
            for frame in 0..60 {
                let pull = DVec3::NEG_Y * (dt * stiffness) + DVec3::NEG_Y * (dt * power);
                let next = (tip + (tip - before) * (1.0 - drag) + pull).normalize() * length;
                (before, tip) = (tip, next);
                for _ in 0..100 {
                    rate += 0.01 * dt * (-swing.square * angle.sin() - swing.drag * rate);
                    angle += 0.01 * dt * rate;
                }
                let told = tip.x.atan2(-tip.y);
                // A frame is not short against the swing: the rule is ahead by up to a frame's way.
                let way = begin * swing.square.sqrt() * dt;
                assert!((told - angle).abs() < way, "{stiffness} {power} {drag}, {frame}: {told} and {angle}");
            }
        }
    }

    #[test]
    fn a_pull_aside_bends_each_bone_on_from_the_one_before() {
        let joint = SpringJoint {
            node: 0,
            hit_radius: 0.0,
            stiffness: 1.0,
            gravity_power: 1.0,
            gravity_dir: DVec3::X,
            drag_force: 0.4,
        };
        let (first, turned) = swing(&joint, Some(DVec3::NEG_Y), DVec3::NEG_Y, DQuat::IDENTITY);
        assert!((turned * DVec3::NEG_Y - DVec3::new(1.0, -1.0, 0.0).normalize()).length() < 1e-12);
        assert!((first.square - FRAME_RATE * 2f64.sqrt()).abs() < 1e-9);
        let (second, on) = swing(&joint, Some(DVec3::NEG_Y), DVec3::NEG_Y, turned);
        // 45°, then half of the 45° that are left.
        let angle = (on * DVec3::NEG_Y).angle_between(DVec3::NEG_Y).to_degrees();
        assert!((angle - 67.5).abs() < 1e-9, "{angle}");
        assert!((second.droop.to_axis_angle().1.to_degrees() - 22.5).abs() < 1e-9);
    }
}
