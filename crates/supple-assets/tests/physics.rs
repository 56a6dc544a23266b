//! Physics within glTF files, `KHR_physics_rigid_bodies` and `KHR_implicit_shapes`: written and read again it is the same model; what others write is understood.

mod common;

use common::assets;
use serde_json::{Value, json};
use std::path::Path;
use supple::glam::{DQuat, DVec3};
use supple::model::ServoTarget;
use supple::{Contacts, JointMask, Model, ObstacleShape, Scene, Shape, Stops, Work, step};
use supple_assets::{Character, FileError, Imported, JointFrom};

/// Relative to the larger of the two, or to 1.
fn near(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

fn same_model(name: &str, a: &Model, b: &Model) {
    assert_eq!(a.bodies().len(), b.bodies().len(), "{name}");
    assert_eq!(a.joints().len(), b.joints().len(), "{name}");
    // Numbers are written to the last bit; transforms of nodes are multiplied and divided on the way.
    const ROUNDING: f64 = 1e-9;
    for (x, y) in a.bodies().iter().zip(b.bodies()) {
        assert_eq!(x.name, y.name, "{name}");
        assert!(near(x.mass, y.mass, ROUNDING), "{name}, {}", x.name);
        assert!(x.start.translation.distance(y.start.translation) < 1e-9 * (1.0 + x.start.translation.length()));
        let size = x.inertia.to_cols_array().iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let off = (x.inertia - y.inertia).to_cols_array().iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(off < 1e-8 * size, "{name}, {}: {off} of {size}", x.name);
        assert_eq!(x.material, y.material);
        assert_eq!(x.shapes.len(), y.shapes.len());
        for (p, q) in x.shapes.iter().zip(&y.shapes) {
            let (v, w) = (p.shape.solid().unwrap(), q.shape.solid().unwrap());
            // Hulls are stored in single precision.
            assert!((v.volume - w.volume).abs() < 1e-5 * v.volume, "{name}, {}: {} {}", x.name, v.volume, w.volume);
            assert!(p.body_from_shape.translation.distance(q.body_from_shape.translation) < 1e-6);
        }
    }
    for (x, y) in a.joints().iter().zip(b.joints()) {
        let part = format!("{name}, {}", x.name);
        assert_eq!(
            (&x.name, x.mask, x.child, x.parent, x.collide),
            (&y.name, y.mask, y.child, y.parent, y.collide),
            "{part}"
        );
        for (p, q) in [(x.child_from_joint, y.child_from_joint), (x.parent_from_joint, y.parent_from_joint)] {
            assert!(p.translation.distance(q.translation) < 1e-8 * (1.0 + p.translation.length()), "{part}");
            assert!(p.rotation.angle_between(q.rotation) < 1e-6, "{part}: {}", p.rotation.angle_between(q.rotation));
        }
        let (l, m) = (&x.limits, &y.limits);
        assert_eq!(l.stops, m.stops, "{part}");
        for (p, q) in [(l.angle, m.angle), (l.slide, m.slide)] {
            assert_eq!(p.is_some(), q.is_some(), "{part}");
            if let (Some(p), Some(q)) = (p, q) {
                assert!(near(p.min, q.min, ROUNDING) && near(p.max, q.max, ROUNDING), "{part}: {p:?} {q:?}");
            }
        }
        assert_eq!(l.swing.is_some(), m.swing.is_some(), "{part}");
        if let (Some(p), Some(q)) = (l.swing, m.swing) {
            assert!(
                near(p.about_y, q.about_y, ROUNDING) && near(p.about_z, q.about_z, ROUNDING),
                "{part}: {p:?} {q:?}"
            );
        }
        assert!(near(l.stiffness, m.stiffness, ROUNDING) && near(l.damping, m.damping, ROUNDING), "{part}");
        let (s, t) = (&x.rotation_spring, &y.rotation_spring);
        assert!(near(s.stiffness, t.stiffness, ROUNDING) && near(s.damping, t.damping, ROUNDING), "{part}");
        assert!(s.rest.angle_between(t.rest) < 1e-6, "{part}");
    }
    for i in 0..a.bodies().len() as u32 {
        for k in i + 1..a.bodies().len() as u32 {
            let (i, k) = (supple::BodyId(i), supple::BodyId(k));
            assert_eq!(a.may_touch(i, k), b.may_touch(i, k), "{name}: {} and {}", a.body(i).name, a.body(k).name);
        }
    }
}

#[test]
fn a_rig_written_into_its_file_and_read_again_is_the_same() {
    let Some(assets) = assets() else { return };
    for name in ["CesiumMan.glb", "mannequiny.glb", "RiggedSimple.glb", "RiggedFigure.glb", "generic-hand-left.glb"] {
        let path = assets.join("gltf").join(name);
        let character = Character::open(&path).unwrap();
        let before = character.imported(name).unwrap();
        let written = character.with_physics().unwrap();
        assert!(written.notes.is_empty(), "{name}: {:?}", written.notes);
        let again = Character::from_bytes(&path, written.bytes).unwrap();
        assert!(again.rig.bones.iter().all(|b| b.parent.is_none() || b.joint_from == JointFrom::File), "{name}");
        // Whatever the unit of the file: the cylinder is in tenths of metres.
        assert_eq!(
            (again.scale(), name == "RiggedSimple.glb"),
            (character.scale(), character.scale() != 1.0),
            "{name}"
        );
        let after = again.imported(name).unwrap();
        same_model(name, &before.scene.model, &after.scene.model);
        assert_eq!(before.scene.model.trackers().len(), after.scene.model.trackers().len(), "{name}");
        // What the springs of the file do is told as sag and settling time again.
        for (x, y) in character.rig.bones.iter().zip(&again.rig.bones).filter(|(x, _)| x.parent.is_some()) {
            assert!(y.sag <= x.sag * 1.0001, "{name}, {}: {} {}", x.name, x.sag, y.sag);
        }
        // And it does the same: a second under a push, to what rounding makes of it.
        let (one, other) = (pushed(&before.scene), pushed(&after.scene));
        for (x, y) in one.iter().zip(&other) {
            assert!(x.distance(*y) < 1e-5 * (1.0 + x.length()), "{name}: {x} {y}");
        }
    }
}

#[test]
fn what_an_uneven_scale_shears_is_told() {
    let Some(assets) = assets() else { return };
    let path = assets.join("gltf/platformer-robot.glb");
    let character = Character::open(&path).unwrap();
    let written = character.with_physics().unwrap();
    assert!(written.notes.iter().all(|n| n.code == "bake/shear") && !written.notes.is_empty());
    let again = Character::from_bytes(&path, written.bytes).unwrap();
    for (x, y) in character.rig.bones.iter().zip(&again.rig.bones) {
        assert!(x.name == y.name && near(x.mass, y.mass, 1e-9) && x.parent == y.parent, "{}", x.name);
    }
}

/// Where the bodies are after half a second of being pulled sideways.
fn pushed(scene: &Scene) -> Vec<DVec3> {
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    input.gravity += DVec3::new(3.0, 0.0, 1.0);
    for _ in 0..30 {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    state.bodies.iter().map(|b| b.position).collect()
}

fn open(json: Value) -> Result<Imported, FileError> {
    Character::from_bytes(Path::new("physics.gltf"), json.to_string().into_bytes())?.imported("physics")
}

/// A file of these nodes, all at the root, with these lists.
fn file(nodes: Value, joints: Value, others: Value) -> Value {
    let n = nodes.as_array().unwrap();
    let below: Vec<u64> =
        n.iter().flat_map(|n| n["children"].as_array().into_iter().flatten()).filter_map(Value::as_u64).collect();
    let roots: Vec<usize> = (0..n.len()).filter(|i| !below.contains(&(*i as u64))).collect();
    let mut bodies = json!({ "physicsJoints": joints });
    for (key, value) in others.as_object().unwrap() {
        bodies[key] = value.clone();
    }
    json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": roots }], "nodes": nodes,
        "extensionsUsed": ["KHR_physics_rigid_bodies", "KHR_implicit_shapes"],
        "extensions": {
            "KHR_physics_rigid_bodies": bodies,
            "KHR_implicit_shapes": { "shapes": [
                { "type": "box", "box": { "size": [0.2, 0.4, 0.6] } },
                { "type": "sphere", "sphere": { "radius": 0.1 } },
                { "type": "capsule", "capsule": { "height": 0.5, "radiusTop": 0.1, "radiusBottom": 0.1 } },
                { "type": "cylinder", "cylinder": { "height": 0.5, "radiusTop": 0.0, "radiusBottom": 0.2 } },
                { "type": "box", "box": { "size": [10.0, 1.0, 10.0] } },
            ] },
        },
    })
}

/// A node with this part of the extension.
fn node(name: &str, at: [f64; 3], part: Value) -> Value {
    json!({ "name": name, "translation": at, "extensions": { "KHR_physics_rigid_bodies": part } })
}

fn collider(shape: usize) -> Value {
    json!({ "geometry": { "shape": shape } })
}

#[test]
fn masses_shapes_and_what_stands_still_are_understood() {
    let mut below = node("knob", [0.0, 0.5, 0.0], json!({ "collider": collider(1) }));
    below["scale"] = json!([2.0, 2.0, 2.0]);
    let mut crate_ = node(
        "crate",
        [0.0, 3.0, 0.0],
        json!({
            "motion": { "linearVelocity": [1.0, 0.0, 0.0], "angularVelocity": [0.0, 2.0, 0.0] },
            "collider": { "geometry": { "shape": 0 }, "physicsMaterial": 0 },
        }),
    );
    crate_["children"] = json!([1]);
    // Turned a quarter about Y: its own X is the world's −Z.
    crate_["rotation"] = json!([0.0, std::f64::consts::FRAC_1_SQRT_2, 0.0, std::f64::consts::FRAC_1_SQRT_2]);
    let heavy = node(
        "heavy",
        [5.0, 3.0, 0.0],
        json!({
            "motion": { "mass": 7.0, "centerOfMass": [0.0, 0.1, 0.0], "inertiaDiagonal": [1.0, 2.0, 2.5] },
            "collider": { "shape": 2 }, // as older files have it
        }),
    );
    let ground = node("ground", [0.0, -0.5, 0.0], json!({ "collider": collider(4) }));
    let lift = node("lift", [9.0, 0.5, 0.0], json!({ "motion": { "isKinematic": true }, "collider": collider(3) }));
    let imported = open(file(
        json!([crate_, below, heavy, ground, lift]),
        json!([]),
        json!({ "physicsMaterials": [{ "staticFriction": 0.3, "dynamicFriction": 0.3, "restitution": 0.25 }] }),
    ))
    .unwrap();
    let model = &imported.scene.model;
    let names: Vec<&str> = model.bodies().iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["crate", "heavy"]);
    let body = &model.bodies()[0];
    // Water: a box of 0.048 m³, a ball of twice 0.1 m half a metre above it.
    let ball = 4.0 / 3.0 * std::f64::consts::PI * 0.008;
    assert!((body.mass - 1000.0 * (0.048 + ball)).abs() < 1e-9);
    assert!((body.start.translation.y - (3.0 + 0.5 * ball / (0.048 + ball))).abs() < 1e-12);
    assert!(matches!(body.shapes[1].shape, Shape::Sphere { radius } if (radius - 0.2).abs() < 1e-12));
    assert_eq!((body.material.friction, body.material.restitution), (0.3, 0.25));
    let start = &imported.scene.state.bodies[0].velocity;
    assert!(start.linear.distance(DVec3::NEG_Z) < 1e-12 && start.angular.distance(DVec3::Y * 2.0) < 1e-12);
    let heavy = &model.bodies()[1];
    assert_eq!(heavy.mass, 7.0);
    assert!(heavy.start.translation.distance(DVec3::new(5.0, 3.1, 0.0)) < 1e-12);
    assert!((heavy.inertia.y_axis.y - 2.0).abs() < 1e-12);
    // The capsule of the file lies along its Y.
    let placed = &heavy.shapes[0];
    assert!(matches!(placed.shape, Shape::Capsule { length: 0.5, radius: 0.1 }));
    assert!((placed.body_from_shape.rotation * DVec3::X).distance(DVec3::Y) < 1e-12);
    // What stands still, or moves only as the file says, is an obstacle; then no floor is added, and nothing is held.
    let around: Vec<&str> = model.obstacles().iter().map(|o| o.name.as_str()).collect();
    assert_eq!(around, ["ground", "lift"]);
    assert!(matches!(&model.obstacles()[1].shape, ObstacleShape::Solid(Shape::Hull { points }) if points.len() == 17));
    assert!(imported.scene.input.targets.iter().all(Option::is_none));
    // It falls, and comes to rest on the ground.
    let (mut state, mut work) = (imported.scene.state.clone(), Work::new(model));
    for _ in 0..300 {
        step(model, &imported.scene.input, &mut state, &mut work).unwrap();
    }
    assert!(state.bodies[1].position.y < 0.8 && state.bodies[1].position.y > 0.0, "{}", state.bodies[1].position);
}

/// A collider that names a mesh, as the extension has it now; one that names a node with a mesh, as it had it; and a shape of that kind, as it was at first.
#[test]
fn a_mesh_is_the_same_collider_in_every_form_of_the_extension() {
    let corners: [[f32; 3]; 4] = [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.3]];
    let data: Vec<u8> = corners.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let hulls = |geometry: Value| {
        let body = node("rock", [0.0, 3.0, 0.0], json!({ "motion": { "mass": 2.0 }, "collider": geometry }));
        let mut root = file(json!([body, { "name": "shown", "mesh": 0 }]), json!([]), json!({}));
        root["meshes"] = json!([{ "primitives": [{ "attributes": { "POSITION": 0 } }] }]);
        root["accessors"] = json!([{ "bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3" }]);
        root["bufferViews"] = json!([{ "buffer": 0, "byteLength": data.len() }]);
        root["buffers"] = json!([{ "byteLength": data.len() }]);
        let shapes = root["extensions"]["KHR_implicit_shapes"]["shapes"].as_array_mut().unwrap();
        let hull = json!({ "KHR_physics_rigid_bodies": { "convexHull": true } });
        shapes.push(json!({ "type": "mesh", "mesh": { "mesh": 0 }, "extensions": hull }));
        let mut text = root.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let word = |n: usize| (n as u32).to_le_bytes().to_vec();
        let all = 28 + text.len() + data.len();
        let glb = [
            b"glTF".to_vec(),
            word(2),
            word(all),
            word(text.len()),
            b"JSON".to_vec(),
            text,
            word(data.len()),
            b"BIN\0".to_vec(),
            data.clone(),
        ];
        let imported = Character::from_bytes(Path::new("rock.glb"), glb.concat()).unwrap().imported("rock").unwrap();
        let body = &imported.scene.model.bodies()[0];
        let Shape::Hull { points } = &body.shapes[0].shape else { panic!("{:?}", body.shapes) };
        assert_eq!((points.len(), body.mass), (4, 2.0));
        points.clone()
    };
    let present = hulls(json!({ "geometry": { "mesh": 0, "convexHull": true } }));
    assert_eq!(hulls(json!({ "geometry": { "node": 1, "convexHull": true } })), present);
    assert_eq!(hulls(json!({ "geometry": { "shape": 5 } })), present);
}

#[test]
fn joints_with_limits_and_drives_are_understood() {
    let body = |name, at| node(name, at, json!({ "motion": { "mass": 1.0 }, "collider": collider(1) }));
    let held = json!({ "linearAxes": [0, 1, 2], "min": 0.0, "max": 0.0 });
    let hinge = json!({ "limits": [
        held, { "angularAxes": [0, 1], "min": 0.0, "max": 0.0 }, { "angularAxes": [2], "min": -0.5, "max": 1.5 },
    ], "drives": [{ "type": "angular", "mode": "force", "axis": 2, "stiffness": 8.0, "damping": 0.5, "positionTarget": 0.25 }] });
    let cone = json!({ "limits": [
        held, { "angularAxes": [0, 2], "max": 0.7, "stiffness": 300.0, "damping": 3.0 },
        { "angularAxes": [1], "min": -0.2, "max": 0.4, "stiffness": 300.0, "damping": 3.0 },
    ] });
    let slider = json!({ "limits": [
        { "linearAxes": [0], "min": 0.0, "max": 0.0 }, { "linearAxes": [2], "min": 0.0, "max": 0.0 },
        { "linearAxes": [1], "min": -0.1, "max": 0.3 }, { "angularAxes": [0, 1, 2], "min": 0.0, "max": 0.0 },
    ], "drives": [{ "type": "linear", "mode": "acceleration", "axis": 1, "stiffness": 100.0, "damping": 20.0, "maxForce": 50.0, "positionTarget": 0.1 }] });
    // The hinge stands on its child, which the parent's angle runs against; the others on the parent.
    let mut elbow = body("elbow", [0.0, 1.0, 0.0]);
    elbow["extensions"]["KHR_physics_rigid_bodies"]["joint"] = json!({ "connectedNode": 1, "joint": 0 });
    let socket = |at, to, joint| node("socket", at, json!({ "joint": { "connectedNode": to, "joint": joint } }));
    let imported = open(file(
        json!([elbow, { "name": "post", "translation": [0.0, 1.0, 0.0] }, body("head", [0.0, 2.0, 0.0]), socket([0.0, 2.0, 0.0], 2, 1),
               body("piston", [3.0, 1.0, 0.0]), socket([3.0, 1.0, 0.0], 4, 2)]),
        json!([hinge, cone, slider]),
        json!({}),
    ))
    .unwrap();
    let model = &imported.scene.model;
    assert_eq!(model.joints().len(), 3, "{:?}", imported.notes);
    let joint = |name: &str| &model.joints()[model.find_joint(name).unwrap().index()];
    let hinge = joint("elbow");
    assert_eq!(hinge.mask, JointMask::HINGE);
    assert!(hinge.parent.is_none());
    let angle = hinge.limits.angle.unwrap();
    assert!((angle.min + 1.5).abs() < 1e-12 && (angle.max - 0.5).abs() < 1e-12, "{angle:?}");
    assert_eq!(hinge.limits.stops, Stops::Hard);
    assert!((hinge.parent_from_joint.rotation * DVec3::X).distance(DVec3::Z) < 1e-12);
    let spring = hinge.rotation_spring;
    assert_eq!((spring.stiffness, spring.damping), (8.0, 0.5));
    assert!(spring.rest.angle_between(DQuat::from_rotation_x(-0.25)) < 1e-7);
    let cone = joint("head");
    assert_eq!((cone.mask, cone.limits.stops, cone.limits.stiffness), (JointMask::BALL, Stops::Soft, 300.0));
    let (swing, twist) = (cone.limits.swing.unwrap(), cone.limits.angle.unwrap());
    assert_eq!((swing.about_y, swing.about_z, twist.min, twist.max), (0.7, 0.7, -0.2, 0.4));
    assert!((cone.parent_from_joint.rotation * DVec3::X).distance(DVec3::Y) < 1e-12);
    let slider = joint("piston");
    assert_eq!(slider.mask, JointMask::PRISMATIC);
    assert!((slider.parent_from_joint.rotation * DVec3::X).distance(DVec3::Y) < 1e-12);
    let motor = slider.motor.unwrap();
    // An acceleration of 1 kg against the world.
    assert!((motor.stiffness - 100.0).abs() < 1e-9 && motor.max == 50.0);
    let k = model.find_joint("piston").unwrap().index();
    assert_eq!(imported.scene.input.joint(k).servo, Some(ServoTarget::Position { position: 0.1, rate: 0.0 }));
    // The piston rises towards its target, as far as it carries its weight: 9.81 N at 100 N/m.
    let (mut state, mut input, mut work) =
        (imported.scene.state.clone(), imported.scene.input.clone(), Work::new(model));
    input.contacts = Contacts::Off;
    for _ in 0..240 {
        step(model, &input, &mut state, &mut work).unwrap();
    }
    let piston = model.find_body("piston").unwrap().index();
    assert!((state.bodies[piston].position.y - (1.1 - 0.0981)).abs() < 1e-4, "{}", state.bodies[piston].position);
}

#[test]
fn filters_and_loops_are_understood() {
    let body = |name, x: f64, filter: usize| {
        node(
            name,
            [x, 1.0, 0.0],
            json!({ "motion": { "mass": 1.0 }, "collider": { "geometry": { "shape": 1 }, "collisionFilter": filter } }),
        )
    };
    let ground = |filter: usize| {
        node(
            "ground",
            [0.0, -0.5, 0.0],
            json!({ "collider": { "geometry": { "shape": 4 }, "collisionFilter": filter } }),
        )
    };
    let ball = json!({ "limits": [{ "linearAxes": [0, 1, 2], "max": 0.0 }] });
    let socket = |x: f64, to: usize| json!({ "joint": { "connectedNode": to, "joint": 0 }, "x": x });
    let mut nodes = vec![body("a", 0.0, 0), body("b", 1.0, 1), body("c", 2.0, 2), ground(3)];
    // A triangle of balls: two of its joints make a tree, the third closes it.
    for (k, to) in [(0, 1), (1, 2), (2, 0)] {
        nodes[k]["children"] = json!([4 + k]);
        nodes.push(node(&format!("socket {k}"), [0.0, 0.0, 0.0], socket(k as f64, to)));
    }
    let filters = json!({ "collisionFilters": [
        { "collisionSystems": ["one"], "notCollideWithSystems": ["three"] },
        { "collisionSystems": ["two"] },
        { "collisionSystems": ["three"], "collideWithSystems": ["two"] },
        { "collisionSystems": ["land"] },
    ] });
    let imported = open(file(json!(nodes), json!([ball]), filters)).unwrap();
    let model = &imported.scene.model;
    assert_eq!((model.joints().len(), model.topology().loops.len()), (3, 1));
    let groups: Vec<bool> = model.bodies().iter().map(|b| b.groups.meet(model.obstacles()[0].groups)).collect();
    assert_eq!(groups, [true, true, false], "the third touches only the second");
    // Without joints: who touches whom.
    let mut loose = nodes.clone();
    loose.truncate(4);
    loose.iter_mut().for_each(|n| drop(n.as_object_mut().unwrap().remove("children")));
    let filters = file(
        json!(loose),
        json!([]),
        json!({ "collisionFilters": [
        { "collisionSystems": ["one"], "notCollideWithSystems": ["three"] },
        { "collisionSystems": ["two"] },
        { "collisionSystems": ["three"], "collideWithSystems": ["two"] },
        { "collisionSystems": ["land"] },
    ] }),
    );
    let model = open(filters).unwrap().scene.model;
    let id = |k| supple::BodyId(k);
    assert!(model.may_touch(id(0), id(1)) && model.may_touch(id(1), id(2)) && !model.may_touch(id(0), id(2)));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let moving = |part: Value| file(json!([node("a", [0.0; 3], part)]), json!([]), json!({}));
    let motion = json!({ "mass": 1.0 });
    for (part, what) in [
        (json!({ "motion": motion, "collider": collider(9) }), "no shape 9"),
        (json!({ "motion": { "mass": "heavy" } }), "heavy"),
        (json!({ "motion": motion, "joint": { "connectedNode": 7, "joint": 0 } }), "no node 7"),
        (json!({ "motion": motion, "joint": { "connectedNode": 0, "joint": 3 } }), "no joint 3"),
        (json!({ "motion": { "mass": 1.0, "inertiaDiagonal": [-1.0, 1.0, 1.0] } }), "inertia"),
        (
            json!({ "motion": motion, "collider": { "geometry": { "shape": 0 }, "collisionFilter": 4 } }),
            "no collision filter 4",
        ),
        (
            json!({ "motion": motion, "collider": { "geometry": { "shape": 0 }, "physicsMaterial": 4 } }),
            "no physics material 4",
        ),
        (json!({ "motion": motion, "collider": { "geometry": { "node": 4 } } }), "no node 4"),
    ] {
        let error = open(moving(part.clone())).expect_err(&part.to_string());
        assert_eq!((error.code, error.place.as_deref()), ("file/physics", Some("nodes[0]")), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    // Things we have not are left out, and told.
    let imported = open(moving(
        json!({ "motion": { "mass": 1.0, "gravityFactor": 0.5 }, "collider": collider(1), "trigger": {} }),
    ))
    .unwrap();
    assert_eq!(imported.notes.iter().filter(|n| n.code == "import/physics").count(), 2, "{:?}", imported.notes);
}
