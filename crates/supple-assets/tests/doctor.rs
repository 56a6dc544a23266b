//! The doctor finds what is wrong with rigs that were broken on purpose, names the cause first, and what it mends lives through jerks.

mod common;

use common::assets;
use glam::{DMat3, DVec3};
use supple::{BodyId, Input, Model, Pose, Range, Scene, Shape};
use supple_assets::doctor::{Cause, Parts, examine, jerk, mend};
use supple_assets::open;

/// A good rig and how it moves.
struct Rig {
    name: &'static str,
    model: Model,
    input: Input,
}

/// Good rigs: two that are built in, and two of the assets where these are there.
fn rigs() -> Vec<Rig> {
    let mut rigs = Vec::new();
    for name in ["robot", "hand"] {
        let scene = Scene::parse(name).unwrap();
        rigs.push(Rig { name, model: scene.model, input: Input::default() });
    }
    if let Some(assets) = assets() {
        for name in ["mjcf/dm_control/walker.xml", "mjcf/dm_control/cheetah.xml"] {
            let scene = open(&assets.join(name)).unwrap().scene;
            rigs.push(Rig {
                name,
                model: scene.model,
                input: Input { contacts: supple::Contacts::Off, ..scene.input },
            });
        }
    }
    rigs
}

/// A body in the middle of the rig that has a joint to its parent, one to a child, and a shape.
fn middle(model: &Model) -> BodyId {
    let has_parent = |b: BodyId| model.joints().iter().any(|j| j.child == b && j.parent.is_some());
    let has_child = |b: BodyId| model.joints().iter().any(|j| j.parent == Some(b));
    let mut ids = (0..model.bodies().len() as u32).map(BodyId);
    ids.rfind(|&b| has_parent(b) && has_child(b) && !model.body(b).shapes.is_empty()).unwrap()
}

/// Moves a body with all that hangs on it.
fn shift(parts: &mut Parts, body: BodyId, by: DVec3) {
    parts.bodies[body.index()].start.translation += by;
    let children: Vec<BodyId> = parts.joints.iter().filter(|j| j.parent == Some(body)).map(|j| j.child).collect();
    children.into_iter().for_each(|child| shift(parts, child, by));
}

type Break = fn(&mut Parts, &Model);

/// What can be broken, and what it should be called.
const BREAKS: [(&str, Cause, Break); 8] = [
    ("centimetres", Cause::Units, |parts, _| parts.scale(100.0)),
    ("millimetres taken as kilometres", Cause::Units, |parts, _| parts.scale(1e-3)),
    ("a bone twice", Cause::Duplicate, |parts, model| {
        let b = middle(model);
        let mut twin = parts.bodies[b.index()].clone();
        twin.name += " again";
        let id = BodyId(parts.bodies.len() as u32);
        parts.bodies.push(twin);
        let mut joint = parts.joints.iter().find(|j| j.child == b).unwrap().clone();
        joint.name += " again";
        joint.child = id;
        parts.joints.push(joint);
    }),
    ("an inertia inverted", Cause::Inertia, |parts, model| {
        // The axis about which it turns hardest becomes the one about which it turns most easily.
        let body = &mut parts.bodies[middle(model).index()];
        let moments = DVec3::new(body.inertia.x_axis.x, body.inertia.y_axis.y, body.inertia.z_axis.z);
        let hardest = (0..3).max_by(|&a, &b| moments[a].total_cmp(&moments[b])).unwrap();
        let mut inverted = DVec3::splat(moments[hardest]);
        inverted[hardest] = 1e-3 * moments[hardest];
        body.inertia = DMat3::from_diagonal(inverted);
    }),
    ("a bone as light as dust", Cause::MassRatio, |parts, model| {
        let body = &mut parts.bodies[middle(model).index()];
        (body.mass, body.inertia) = (body.mass * 1e-7, body.inertia * 1e-7);
    }),
    ("a bone without length", Cause::ZeroLength, |parts, model| {
        // All of it is where its joints are: shapes, inertia, what hangs on it.
        let b = middle(model);
        let body = &mut parts.bodies[b.index()];
        body.inertia = DMat3::IDENTITY * (1e-10 * body.mass);
        body.shapes = vec![supple::model::PlacedShape { shape: Shape::sphere(1e-6), body_from_shape: Pose::IDENTITY }];
        for k in 0..parts.joints.len() {
            let joint = &mut parts.joints[k];
            let (child, parent) = (joint.child, joint.parent);
            if child == b {
                let at = std::mem::take(&mut joint.child_from_joint.translation);
                let there = model.body(b).start.transform_point(at);
                parts.bodies[b.index()].start.translation = there;
            }
            if parent == Some(b) {
                let at = std::mem::take(&mut joint.parent_from_joint.translation);
                let (there, own) = (model.body(b).start.transform_point(at), parts.bodies[b.index()].start.translation);
                shift(parts, child, own - there);
            }
        }
    }),
    ("a limit that excludes the pose", Cause::Limit, |parts, _| {
        let joint = parts.joints.iter_mut().rev().find(|j| j.limits.angle.is_some()).unwrap();
        joint.limits.angle = Some(Range::new(1.0, 1.2));
    }),
    ("one leg in the other", Cause::Overlap, |parts, model| {
        // The first and the last body get a ball each in the same place, and may touch.
        let (a, b) = (0, model.bodies().len() - 1);
        let there = model.bodies()[a].start.inverse().then(model.bodies()[b].start);
        for (body, place) in [(a, there), (b, Pose::IDENTITY)] {
            parts.bodies[body]
                .shapes
                .push(supple::model::PlacedShape { shape: Shape::sphere(0.05), body_from_shape: place });
            parts.bodies[body].groups = supple::Groups::default();
        }
        let (first, last) = (BodyId(a as u32), BodyId(b as u32));
        parts.strangers.retain(|pair| *pair != (first, last));
    }),
];

#[test]
fn a_unit_and_an_inertia_are_mended_together() {
    let Some(rig) = rigs().into_iter().find(|rig| rig.name == "robot") else { unreachable!() };
    let mut parts = Parts::of(&rig.model);
    let (damage, b) = (BREAKS[3].2, middle(&rig.model));
    damage(&mut parts, &rig.model);
    parts.scale(100.0);
    let broken = parts.build().unwrap();
    let mended = mend(&broken, &examine(&broken, &rig.input).findings).unwrap();
    let off = (mended.body(b).inertia - rig.model.body(b).inertia)
        .to_cols_array()
        .map(f64::abs)
        .into_iter()
        .fold(0f64, f64::max);
    assert!(off < 1e-9, "{off}");
}

/// A figure with light bodies between its axes, which are no fault.
fn humanoid() -> Option<Rig> {
    let scene = open(&assets()?.join("mjcf/humanoid.xml")).unwrap().scene;
    Some(Rig { name: "humanoid.xml", model: scene.model, input: scene.input })
}

#[test]
fn good_rigs_are_well() {
    for rig in rigs().into_iter().chain(humanoid()) {
        let diagnosis = examine(&rig.model, &rig.input);
        let found: Vec<_> = diagnosis.findings.iter().map(|f| (f.cause, f.part.as_str())).collect();
        println!("{}: {:?} {:?}", rig.name, found, diagnosis.trial);
        assert!(diagnosis.trial.failure.is_none(), "{}: {:?}", rig.name, diagnosis.trial);
        assert!(found.is_empty(), "{}: {found:?}", rig.name);
    }
}

#[test]
fn the_cause_is_named_first_and_the_mended_rig_lives() {
    let mut count = 0;
    for rig in rigs() {
        for (name, cause, damage) in BREAKS {
            let mut parts = Parts::of(&rig.model);
            damage(&mut parts, &rig.model);
            let broken = parts.build().unwrap_or_else(|e| panic!("{} with {name}: {e}", rig.name));
            let diagnosis = examine(&broken, &rig.input);
            let first = diagnosis.findings.first().unwrap_or_else(|| panic!("{} with {name}: nothing found", rig.name));
            println!(
                "{} with {name}: {} {}: {} → {}",
                rig.name,
                first.cause.code(),
                first.part,
                first.what,
                first.remedy
            );
            assert_eq!(first.cause, cause, "{} with {name}: {:?}", rig.name, diagnosis.findings);
            let mended = mend(&broken, &diagnosis.findings).unwrap_or_else(|e| panic!("{} with {name}: {e}", rig.name));
            let after = examine(&mended, &rig.input);
            assert!(after.findings.is_empty(), "{} with {name}, mended: {:?}", rig.name, after.findings);
            let trial = jerk(&mended, &rig.input, 60.0, 7);
            assert!(trial.failure.is_none() && trial.seconds > 59.9, "{} with {name}: {trial:?}", rig.name);
            assert!(trial.gap < 1e-6, "{} with {name}: {trial:?}", rig.name);
            assert_eq!(mended.trackers().len(), rig.model.trackers().len(), "{} with {name}", rig.name);
            if cause == Cause::Units {
                let far = |m: &Model| m.bodies().iter().map(|b| b.start.translation.length()).fold(0f64, f64::max);
                assert!(
                    (far(&mended) / far(&rig.model) - 1.0).abs() < 1e-9,
                    "{} with {name}: the wrong unit",
                    rig.name
                );
            }
            count += 1;
        }
    }
    assert!(count >= 14);
    if assets().is_some() {
        assert!(count >= 20, "{count} broken rigs");
    }
}
