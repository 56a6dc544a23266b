//! Every joint: what it holds stays closed, what it frees really moves. All 64 masks, on the world and on a floating body,
//! as the child of its parent and flipped.

mod support;

use glam::{DQuat, DVec3};
use supple::model::RotationKind;
use supple::*;
use support::*;

const DT: f64 = 1.0 / 240.0;

/// Where the joint hangs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parent {
    World,
    /// A floating body that was declared first: the root of the tree.
    Body,
    /// The tree's root is the joint's child, so the joint is passed from its child to its parent.
    Flipped,
}

const PARENTS: [Parent; 3] = [Parent::World, Parent::Body, Parent::Flipped];

/// A joint frame that is turned on both sides, off the centres of mass.
fn model(mask: JointMask, parent: Parent) -> Model {
    let mut builder = ModelBuilder::new();
    let frame = Pose::new(DQuat::from_scaled_axis(DVec3::new(0.5, -0.8, 0.3)), DVec3::new(0.2, 0.1, -0.1));
    let (child, holder) = (block("child", DVec3::new(0.3, 0.25, 0.05)), block("holder", DVec3::new(-0.1, 0.0, 0.1)));
    let joint = |holder: BodyRef| JointSpec::new("joint", mask, "child", holder).frame(frame);
    match parent {
        Parent::World => {
            builder.body(child);
            builder.joint(joint(BodyRef::World));
        }
        Parent::Body => {
            builder.body(holder);
            builder.body(child);
            builder.joint(joint("holder".into()));
        }
        Parent::Flipped => {
            // The child is held by the world through a joint without constraints, so that the tree grows from it.
            builder.body(child);
            builder.body(holder);
            builder.joint(JointSpec::new("root", JointMask::FREE, "child", BodyRef::World));
            builder.joint(joint("holder".into()));
        }
    }
    let model = builder.build().unwrap();
    let id = model.find_joint("joint").unwrap();
    let flipped = model.topology().nodes.iter().any(|n| n.joint == Some(id) && n.flipped);
    assert_eq!(flipped, parent == Parent::Flipped);
    model
}

/// Pushes the two sides of the joint apart along direction `k` (three forces, three torques, axes of the joint at the
/// start): equal and opposite, at the joint's point.
fn push(model: &Model, k: usize, size: f64) -> Vec<(BodyId, Wrench)> {
    let id = model.find_joint("joint").unwrap();
    let (joint, state) = (model.joint(id), model.start());
    let b = model.parent_pose(joint, &state);
    let axis = b.rotation * joint.parent_from_joint.rotation * DVec3::AXES[k % 3] * size;
    let at = |body: BodyId, lever: DVec3, sign: f64| {
        let turned = state.bodies[body.index()].orientation * lever;
        (body, if k < 3 { Wrench::at(turned, axis * sign) } else { Wrench::new(DVec3::ZERO, axis * sign) })
    };
    let mut wrenches = vec![at(joint.child, joint.child_from_joint.translation, 1.0)];
    if let Some(parent) = joint.parent {
        wrenches.push(at(parent, joint.parent_from_joint.translation, -1.0));
    }
    wrenches
}

/// Translation and rotation of the joint's coordinates from the start.
fn coordinates(model: &Model, state: &State) -> (DVec3, DVec3) {
    let joint = model.joint(model.find_joint("joint").unwrap());
    let a = state.bodies[joint.child.index()].pose();
    let slide = joint.relative_translation(a, model.parent_pose(joint, state));
    (slide, supple::maths::rotation::log(state.relative_rotation(model, joint)))
}

/// Whether direction `k` is free.
fn is_free(mask: JointMask, k: usize) -> bool {
    mask.bits() >> k & 1 == 0
}

/// The presets, and masks that no preset has: hinges about Y and Z, sliders along two axes, Cardans about Y and Z.
fn chosen() -> Vec<JointMask> {
    use JointMask as M;
    let odd = [
        7 | M::RX | M::RZ,
        7 | M::RX | M::RY,
        7 | M::RY,
        7 | M::RZ,
        M::TY | M::RX | M::RY | M::RZ,
        M::TX | M::TZ | M::RY,
        M::RX | M::RY | M::RZ,
        M::TZ | M::RX | M::RZ,
        M::RX,
    ];
    M::PRESETS.iter().map(|(_, mask)| *mask).chain(odd.map(M::from_bits)).collect()
}

/// What a gap or tilt may be: `½ (h ω_rel)²` times a lever, with both sides turning at up to `angular`.
fn allowed(dt: f64, angular: f64, lever: f64) -> f64 {
    0.5 * (dt * 2.0 * angular).powi(2) * lever + 1e-12
}

/// Distances of the joint from the two centres of mass, and the present slide \[m\].
fn levers(model: &Model, state: &State) -> f64 {
    let joint = model.joint(model.find_joint("joint").unwrap());
    let (a, b) = (joint.child_from_joint.translation.length(), joint.parent_from_joint.translation.length());
    a + joint.parent.map_or(0.0, |_| b) + coordinates(model, state).0.length()
}

#[test]
fn all_masks_run_in_all_places() {
    let (mut widest, mut closest) = ((0.0, String::new()), (0.0, String::new()));
    for bits in 0..64 {
        let mask = JointMask::from_bits(bits);
        for parent in PARENTS {
            let name = format!("{} on {parent:?}", mask.name());
            let model = model(mask, parent);
            let mut state = model.start();
            let dt = 1.0 / 60.0;
            let mut input = input(dt);
            input.wrenches = (0..6).flat_map(|k| push(&model, k, 0.2 + 0.1 * k as f64)).collect();
            run(&model, &input, &mut state, 60, |state, report| {
                assert!(state.is_finite() && report.fallbacks == 0, "{name}");
                let angular = state.bodies.iter().map(|b| b.velocity.angular.length()).fold(0.0, f64::max);
                let gap = measure::joint_gap(&model, state);
                let limit = allowed(dt, angular, levers(&model, state));
                assert!(gap.distance <= limit, "{name}: gap {:e} m, allowed {limit:e}", gap.distance);
                assert!(gap.tilt <= allowed(dt, angular, 2.0), "{name}: tilt {:e} at {angular} rad/s", gap.tilt);
                if gap.distance > widest.0 {
                    widest = (gap.distance, name.clone());
                }
                if gap.distance / limit > closest.0 {
                    closest = (gap.distance / limit, name.clone());
                }
            });
        }
    }
    println!("widest gap {:.1e} m: {}; at most {:.2} of what is allowed: {}", widest.0, widest.1, closest.0, closest.1);
}

#[test]
fn free_directions_move_and_held_ones_do_not() {
    for mask in chosen() {
        for parent in PARENTS {
            let model = model(mask, parent);
            for k in 0..6 {
                let mut state = model.start();
                let size = if k < 3 { 2.0 } else { 0.05 };
                let mut input = weightless(DT);
                input.wrenches = push(&model, k, size);
                let steps = 48; // 0.2 s
                run(&model, &input, &mut state, steps, |_, _| {});
                let (slide, turn) = coordinates(&model, &state);
                let moved = if k < 3 { slide[k] } else { turn[k - 3] };
                let name = format!("{} on {parent:?}, direction {k}", mask.name());
                if is_free(mask, k) {
                    // One body alone would move by ½ F/m t² = 0.02 m, or ½ T/I t² = 0.02…0.03 rad. Held directions
                    // may add the inertia of the body about the joint (up to 2 kg × (0.3 m)²), never more than
                    // five times its own.
                    assert!(moved > 0.003, "{name}: moved by {moved:e}");
                } else {
                    // A held one only by its gap, which follows from h ω: see the next test.
                    let angular = state.bodies.iter().map(|b| b.velocity.angular.length()).fold(0.0, f64::max);
                    let gap = allowed(DT, angular, if k < 3 { levers(&model, &state) } else { 2.0 });
                    let held = match (k < 3, mask.rotation()) {
                        // Of a Cardan joint the blocked direction is that of a row, not of a coordinate: two turns about
                        // the free axes make one of second order about the third.
                        (false, RotationKind::Cardan(_)) => gap + turn.length_squared(),
                        _ => gap,
                    };
                    assert!(moved.abs() <= held, "{name}: moved by {moved:e}, allowed {held:e}");
                }
            }
        }
    }
}

/// Largest gap and tilt within half a second of a motion with all free directions in play.
fn widest(mask: JointMask, parent: Parent, dt: f64) -> (f64, f64) {
    let model = model(mask, parent);
    let mut state = model.start();
    let mut input = weightless(dt);
    input.wrenches = (0..6).flat_map(|k| push(&model, k, if k < 3 { 1.0 } else { 0.2 })).collect();
    let (mut distance, mut tilt) = (0.0f64, 0.0f64);
    run(&model, &input, &mut state, (0.5 / dt).round() as usize, |state, _| {
        let gap = measure::joint_gap(&model, state);
        (distance, tilt) = (distance.max(gap.distance), tilt.max(gap.tilt));
    });
    (distance, tilt)
}

#[test]
fn gaps_shrink_with_the_square_of_the_step() {
    for mask in chosen() {
        for parent in PARENTS {
            let found = [1.0, 2.0, 4.0].map(|parts| widest(mask, parent, DT / parts));
            let name = format!("{} on {parent:?}", mask.name());
            for (what, sizes) in [("gap", found.map(|f| f.0)), ("tilt", found.map(|f| f.1))] {
                if sizes[2] < 1e-11 {
                    continue; // closed to rounding
                }
                let orders = orders(&sizes);
                println!("{name}: {what} {}, orders {orders:.2?}", list(&sizes));
                assert!(orders.iter().all(|o| (1.7..2.4).contains(o)), "{name}: {what} {sizes:?}, orders {orders:?}");
            }
        }
    }
}
