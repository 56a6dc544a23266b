//! A simulated motion as BVH: the tree of the model as a skeleton, in metres, Y up.
//!
//! With `R_b` the orientation of a body, `p_b` the point at which it hangs on its parent and 0 for the start of the model, a joint of the
//! file has no turn at the start and
//!
//! ```text
//! G_b = R_b R_b(0)⁻¹,   turn in its parent = G_parent⁻¹ G_b,   offset = p_b(0) − p_parent(0)
//! ```
//! A root, and a joint that slides, also has its place.

use crate::bvh::{Bvh, Channel, Joint};
use crate::{Note, Recording};
use glam::{DQuat, DVec3, EulerRot};
use std::f64::consts::{PI, TAU};
use supple::model::TreeNode;
use supple::{Model, Pose};

/// A recorded motion as a skeleton with its motion, and what BVH has no words for.
pub fn export(model: &Model, recording: &Recording) -> (Bvh, Vec<Note>) {
    let nodes = &model.topology().nodes;
    let mut notes = Vec::new();
    for id in &model.topology().loops {
        let text = "it closes a loop, and a BVH has none: left out".to_owned();
        notes.push(Note { code: "export/left-out", part: model.joint(*id).name.clone(), text });
    }
    let roots = nodes.iter().filter(|node| node.parent == 0).count();
    if roots > 1 {
        let text = format!("it has {roots} trees: the file has as many roots, and some programs read the first alone");
        notes.push(Note { code: "export/roots", part: "model".into(), text });
    }
    let start: Vec<Pose> = model.bodies().iter().map(|body| body.start).collect();
    let moves = |node: &TreeNode| node.joint.is_none_or(|id| !model.joint(id).mask.holds_point()) || node.parent == 0;
    let joint = |(i, node): (usize, &TreeNode)| {
        let parent = node.parent.checked_sub(1);
        let own = held_at(model, node, &start);
        let mut channels = Vec::new();
        if moves(node) {
            channels.extend([0, 1, 2].map(Channel::Position));
        }
        channels.extend([2, 1, 0].map(Channel::Rotation));
        // A bone that carries nothing ends as far behind its centre of mass as it begins before it.
        let is_last = i + 1 >= nodes.len() || nodes[i + 1].parent != i + 1;
        let ends = if is_last { vec![(start[node.body.index()].translation - own) * 2.0] } else { Vec::new() };
        Joint {
            name: model.body(node.body).name.split_whitespace().collect::<Vec<_>>().join("_"),
            parent,
            offset: parent.map_or(DVec3::ZERO, |p| own - held_at(model, &nodes[p], &start)),
            channels,
            ends,
        }
    };
    let joints: Vec<Joint> = nodes.iter().enumerate().map(joint).collect();

    let mut values = Vec::new();
    let mut angles = vec![DVec3::ZERO; nodes.len()]; // of the last frame: Z, Y, X
    for poses in recording.poses.chunks_exact(model.bodies().len().max(1)) {
        let turned = |node: &TreeNode| {
            let b = node.body.index();
            poses[b].rotation * start[b].rotation.conjugate()
        };
        for (i, node) in nodes.iter().enumerate() {
            let above = node.parent.checked_sub(1).map(|p| (turned(&nodes[p]), held_at(model, &nodes[p], poses)));
            let (turn, origin) = above.unwrap_or((DQuat::IDENTITY, DVec3::ZERO));
            if moves(node) {
                let place = turn.conjugate() * (held_at(model, node, poses) - origin);
                values.extend(place.to_array());
            }
            angles[i] = angles_near(turn.conjugate() * turned(node), angles[i]);
            values.extend(angles[i].to_array().map(f64::to_degrees));
        }
    }
    let (first, last) = (recording.times.first().copied(), recording.times.last().copied());
    let between = recording.frames().saturating_sub(1).max(1) as f64;
    let frame_time = first.zip(last).map_or(0.0, |(first, last)| (last - first) / between);
    (Bvh { joints, frame_time: if frame_time > 0.0 { frame_time } else { 1.0 / 60.0 }, values }, notes)
}

/// Where a body hangs on its parent, or the origin of its link if it floats, when bodies have these poses.
fn held_at(model: &Model, node: &TreeNode, poses: &[Pose]) -> DVec3 {
    let body = poses[node.body.index()];
    match node.joint.map(|id| model.joint(id)) {
        None => body.transform_point(-model.body(node.body).centre_in_link),
        Some(joint) if node.flipped => body.transform_point(joint.parent_from_joint.translation),
        Some(joint) => body.transform_point(joint.child_from_joint.translation),
    }
}

/// Angles about Z, Y and X, in this order, of all that give the turn those nearest to the last ones: curves do not jump where it can be helped.
pub(crate) fn angles_near(turn: DQuat, last: DVec3) -> DVec3 {
    let (z, y, x) = turn.to_euler(EulerRot::ZYX);
    let near = |angle: f64, last: f64| angle + TAU * ((last - angle) / TAU).round();
    let both = [DVec3::new(z, y, x), DVec3::new(z + PI, PI - y, x + PI)];
    let [one, other] = both.map(|v| DVec3::new(near(v.x, last.x), near(v.y, last.y), near(v.z, last.z)));
    if (other - last).length() < (one - last).length() { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bvh;
    use std::path::Path;
    use supple::{BodyRef, BodySpec, Input, JointMask, JointSpec, ModelBuilder, Scene, Shape, Work, step};

    /// What is written is read back as the same joints in the same places: a robot pulled by the hand, a car with wheels, a slider.
    #[test]
    fn a_simulated_motion_is_read_back() {
        let mut builder = ModelBuilder::new();
        let cart = builder.body(BodySpec::new("the cart").shape(Shape::cuboid(0.3, 0.1, 0.2), 300.0));
        let pole =
            builder.body(BodySpec::new("pole").shape(Shape::capsule(0.5, 0.03), 300.0).pose(Pose::at(DVec3::X * 0.3)));
        builder.joint(JointSpec::new("rail", JointMask::PRISMATIC, cart, BodyRef::World));
        builder.joint(JointSpec::new("pin", JointMask::HINGE, pole, cart).axis(DVec3::Z));
        let model = builder.build().unwrap();
        let cart = Scene::from_parts("cart", model.clone(), model.start(), Input::default());
        let named = ["robot", "hand", "car"].map(|name| Scene::parse(name).unwrap());
        for scene in named.into_iter().chain([cart]) {
            let name = scene.name.clone();
            let (model, mut state) = (&scene.model, scene.state.clone());
            let (mut input, mut work) = (scene.input.clone(), Work::new(model));
            let mut recording = Recording::default();
            recording.add(model, &input, &state, None);
            for _ in 0..30 {
                scene.direct(state.time, &mut input);
                let report = step(model, &input, &mut state, &mut work).unwrap();
                recording.add(model, &input, &state, Some(&report));
            }
            let (written, _) = export(model, &recording);
            let read = bvh::parse(Path::new("a.bvh"), &written.write()).unwrap();
            assert_eq!((read.frames(), read.joints.len()), (31, model.bodies().len()), "{name}");
            assert!((read.frame_time - input.dt).abs() < 1e-12);
            let mut moved = 0f64;
            for f in 0..read.frames() {
                let poses = &recording.poses[f * model.bodies().len()..][..model.bodies().len()];
                for (node, pose) in model.topology().nodes.iter().zip(read.frame(f)) {
                    let b = node.body.index();
                    let off = (held_at(model, node, poses) - pose.translation).length();
                    // rounding of degrees, along a chain; joints are closed to 1e-9
                    assert!(off < 1e-7, "{name}, frame {f}, {}: {off} m", model.bodies()[b].name);
                    let turned = poses[b].rotation * model.bodies()[b].start.rotation.conjugate();
                    assert!(turned.angle_between(pose.rotation) < 1e-6, "{name}, frame {f}");
                    moved = moved.max(turned.angle_between(DQuat::IDENTITY));
                }
            }
            assert!(moved > 0.01, "{name} does not move");
        }
    }

    #[test]
    fn angles_go_on_over_half_a_turn() {
        let mut last = DVec3::ZERO;
        for k in 0..400 {
            let next = angles_near(DQuat::from_rotation_y(0.02 * f64::from(k)), last);
            assert!((next - last).length() < 0.021 || k == 0, "{k}: {last} → {next}");
            last = next;
        }
        assert!((last.y - 7.98).abs() < 1e-9, "{last}");
    }
}
