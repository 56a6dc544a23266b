//! The rig of a character written into its file as `KHR_physics_rigid_bodies` and `KHR_implicit_shapes`: all else of the file stays as it was.
//!
//! Each bone's node gets `motion`; nodes are added below it for its shapes and for the frames of its joint. A joint stands on the parent's side and names
//! the child's, so that its angles are those of the child in the parent's frame, as ours are. Springs are drives, soft limits have their stiffness.

use super::Document;
use super::bake::{Baked, Bounds, glb, merge_buffers, push, push_floats, push_indices};
use crate::{Character, FileError, Note};
use glam::{DAffine3, DQuat, DVec3};
use serde_json::{Value, json};
use std::f64::consts::FRAC_PI_2;
use supple::maths::{rotation, singular};
use supple::model::{ServoTarget, shape};
use supple::{
    Body, Joint, JointMask, Limits, Material, Model, ObstacleShape, Pose, RotationSpring, Shape, SlideSpring, Stops,
};

const BODIES: &str = "KHR_physics_rigid_bodies";
const SHAPES: &str = "KHR_implicit_shapes";
/// A floor is written as a box: edges and thickness \[m\].
const FLOOR: (f64, f64) = (200.0, 1.0);

/// What of a mesh is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Hull,
    AsItIs,
}

/// What is being written.
struct Writer<'a> {
    character: &'a Character,
    root: Value,
    binary: Vec<u8>,
    shapes: Vec<Value>,
    joints: Vec<Value>,
    materials: Vec<Material>,
    filters: Vec<Value>,
    /// Nodes at the root of the scene that were added.
    loose: Vec<usize>,
    notes: Vec<Note>,
}

impl Character {
    /// The file with the physics of its rig.
    pub fn with_physics(&self) -> Result<Baked, FileError> {
        let imported = self.imported("rig")?;
        let model = &imported.scene.model;
        let mut root: Value = serde_json::from_str(&self.document.container.json).unwrap_or_default();
        let binary = merge_buffers(&mut root, &self.document);
        // Physics that the file had is replaced.
        for node in root["nodes"].as_array_mut().into_iter().flatten() {
            forget(node);
        }
        forget(&mut root);
        write_scale(&mut root, self.document.scale);
        let mut writer = Writer {
            character: self,
            root,
            binary,
            shapes: Vec::new(),
            joints: Vec::new(),
            materials: Vec::new(),
            filters: Vec::new(),
            loose: Vec::new(),
            notes: Vec::new(),
        };
        let apart = apart(model);
        for (i, body) in model.bodies().iter().enumerate() {
            writer.body(i, body, &imported.scene.state.bodies[i].velocity, &apart[i]);
        }
        for (i, joint) in model.joints().iter().enumerate() {
            writer.joint(model, joint, imported.scene.input.joint(i).servo);
        }
        writer.surroundings(model);
        Ok(writer.finish())
    }
}

/// Where a file tells the unit that its physics were made in: masses and springs of a character of another size are others.
const UNIT: &str = "metres_per_unit";

/// Tells the unit that physics were made in, where it is not the metre.
fn write_scale(root: &mut Value, scale: f64) {
    let Some(asset) = root.get_mut("asset").and_then(Value::as_object_mut) else { return };
    let extras = asset.entry("extras").or_insert_with(|| json!({}));
    if let Some(all) = extras.as_object_mut() {
        all.remove(UNIT);
        if scale != 1.0 {
            all.insert(UNIT.into(), json!(scale));
        }
        if all.is_empty() {
            asset.remove("extras");
        }
    }
}

impl Document {
    /// Metres in a unit of the file, as it was when its physics were written; `None`: they are in metres.
    pub(crate) fn written_scale(&self) -> Option<f64> {
        let root: Value = serde_json::from_str(&self.container.json).ok()?;
        let scale = root.pointer("/asset/extras")?.get(UNIT)?.as_f64()?;
        (1e-9..=1e9).contains(&scale).then_some(scale)
    }
}

/// Takes the extension out of a node or of the root.
fn forget(part: &mut Value) {
    if let Some(extensions) = part.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(BODIES);
        if extensions.is_empty() {
            part.as_object_mut().map(|part| part.remove("extensions"));
        }
    }
}

/// By body: the names of those that it does not touch, other than those that joints keep apart.
fn apart(model: &Model) -> Vec<Vec<String>> {
    let n = model.bodies().len();
    let joined: std::collections::BTreeSet<(u32, u32)> = model
        .joints()
        .iter()
        .filter(|j| !j.collide)
        .filter_map(|j| j.parent.map(|p| (j.child.0.min(p.0), j.child.0.max(p.0))))
        .collect();
    let mut apart = vec![Vec::new(); n];
    for a in 0..n as u32 {
        for b in a + 1..n as u32 {
            let (i, k) = (supple::BodyId(a), supple::BodyId(b));
            if !joined.contains(&(a, b)) && !model.may_touch(i, k) {
                apart[a as usize].push(model.body(k).name.clone());
                apart[b as usize].push(model.body(i).name.clone());
            }
        }
    }
    apart
}

fn list(values: &[f64]) -> Value {
    Value::from(values.to_vec())
}

impl Writer<'_> {
    /// Adds a node at a place in the world, below a node of the file or at the root of the scene.
    fn node(&mut self, name: String, below: Option<usize>, place: Pose, physics: Value) -> usize {
        let world = DAffine3::from_rotation_translation(place.rotation, place.translation);
        let above = below.map_or(DAffine3::IDENTITY, |node| self.character.document.world[node]);
        let local = above.inverse() * world;
        let (scale, rotation, translation) = local.to_scale_rotation_translation();
        let mut node = json!({ "name": name, "translation": list(&translation.to_array()), "rotation": list(&rotation.to_array()) });
        if scale.distance(DVec3::ONE) > 1e-12 {
            node["scale"] = list(&scale.to_array());
        }
        let back = DAffine3::from_scale_rotation_translation(scale, rotation, translation);
        if !local.is_finite() || (back.matrix3 - local.matrix3).to_cols_array().iter().any(|x| x.abs() > 1e-6) {
            let text = "its node is scaled unevenly: what hangs below it is sheared".into();
            self.notes.push(Note { code: "bake/shear", part: name, text });
        }
        if !physics.is_null() {
            node["extensions"] = json!({ BODIES: physics });
        }
        let index = push(&mut self.root, "nodes", node);
        match below {
            Some(above) => {
                push(&mut self.root["nodes"][above], "children", index.into());
            }
            None => self.loose.push(index),
        }
        index
    }

    fn material(&mut self, material: Material) -> usize {
        self.materials.iter().position(|m| *m == material).unwrap_or_else(|| {
            self.materials.push(material);
            self.materials.len() - 1
        })
    }

    /// The geometry of a shape, and its frame turned so that what lies along X lies along Y.
    fn geometry(&mut self, name: &str, solid: &Shape, place: Pose) -> (Value, Pose) {
        let upright = Pose::new(place.rotation * DQuat::from_rotation_z(-FRAC_PI_2), place.translation);
        let (shape, place) = match solid {
            Shape::Sphere { radius } => (json!({ "type": "sphere", "sphere": { "radius": radius } }), place),
            Shape::Cuboid { size } => (json!({ "type": "box", "box": { "size": size.to_array() } }), place),
            // One without length is a sphere.
            Shape::Capsule { length, radius } if *length <= 0.0 => {
                (json!({ "type": "sphere", "sphere": { "radius": radius } }), place)
            }
            Shape::Capsule { length, radius } => {
                let capsule = json!({ "height": length, "radiusTop": radius, "radiusBottom": radius });
                (json!({ "type": "capsule", "capsule": capsule }), upright)
            }
            Shape::Cylinder { length, radius } => {
                let cylinder = json!({ "height": length, "radiusTop": radius, "radiusBottom": radius });
                (json!({ "type": "cylinder", "cylinder": cylinder }), upright)
            }
            Shape::Hull { points } => {
                return (self.mesh(name, shape::hull(points).unwrap_or_default(), Surface::Hull), place);
            }
            Shape::Mesh { vertices, triangles } => {
                return (self.mesh(name, (vertices.clone(), triangles.clone()), Surface::AsItIs), place);
            }
        };
        self.shapes.push(shape);
        (json!({ "shape": self.shapes.len() - 1 }), place)
    }

    /// A mesh as geometry: no node shows it, so that it is not drawn.
    fn mesh(&mut self, name: &str, (vertices, triangles): (Vec<DVec3>, Vec<[u32; 3]>), surface: Surface) -> Value {
        let positions: Vec<f32> = vertices.iter().flat_map(|v| v.as_vec3().to_array()).collect();
        let position = push_floats(&mut self.root, &mut self.binary, &positions, 3, Some(34962), Bounds::Told);
        let indices = push_indices(&mut self.root, &mut self.binary, &triangles);
        let primitive = json!({ "attributes": { "POSITION": position }, "indices": indices });
        let name = format!("{name} hull");
        let mesh = push(&mut self.root, "meshes", json!({ "name": name, "primitives": [primitive] }));
        json!({ "mesh": mesh, "convexHull": surface == Surface::Hull })
    }

    fn body(&mut self, i: usize, body: &Body, velocity: &supple::Twist, apart: &[String]) {
        let bone = &self.character.rig.bones[i];
        let (node, link) = (bone.node, bone.link);
        let world = self.character.document.world[node];
        let centre = world.inverse().transform_point3(body.start.translation);
        let (moments, axes) = singular::eigen(body.inertia);
        let mut motion = json!({
            "mass": body.mass,
            "centerOfMass": centre.to_array(),
            "inertiaDiagonal": moments.to_array(),
            "inertiaOrientation": DQuat::from_mat3(&axes).normalize().to_array(),
        });
        for (key, value) in [("linearVelocity", velocity.linear), ("angularVelocity", velocity.angular)] {
            if value != DVec3::ZERO {
                motion[key] = list(&(link.rotation.conjugate() * value).to_array());
            }
        }
        self.root["nodes"][node]["extensions"][BODIES] = json!({ "motion": motion });
        let filter = (!apart.is_empty()).then(|| {
            let filter = json!({ "collisionSystems": [body.name], "notCollideWithSystems": apart });
            self.filters.push(filter);
            self.filters.len() - 1
        });
        let material = self.material(body.material);
        for (k, placed) in body.shapes.iter().enumerate() {
            let name = if k == 0 { format!("{} shape", body.name) } else { format!("{} shape {}", body.name, k + 1) };
            let (geometry, place) = self.geometry(&name, &placed.shape, body.start.then(placed.body_from_shape));
            let mut collider = json!({ "geometry": geometry, "physicsMaterial": material });
            if let Some(filter) = filter {
                collider["collisionFilter"] = filter.into();
            }
            self.node(name, Some(node), place, json!({ "collider": collider }));
        }
    }

    fn joint(&mut self, model: &Model, joint: &Joint, servo: Option<ServoTarget>) {
        let bones = &self.character.rig.bones;
        let below = |body: supple::BodyId| bones[body.index()].node;
        let (child, parent) = (below(joint.child), joint.parent.map(below));
        let child_frame = model.body(joint.child).start.then(joint.child_from_joint);
        let parent_start = joint.parent.map_or(Pose::IDENTITY, |p| model.body(p).start);
        let parent_frame = parent_start.then(joint.parent_from_joint);
        let connected = self.node(format!("{} joint", joint.name), Some(child), child_frame, Value::Null);
        let mut drives = rotation_drives(joint.mask, &joint.rotation_spring);
        drives.extend(slide_drives(joint.mask, &joint.slide_spring));
        if let (Some(motor), Some(target)) = (joint.motor, servo) {
            let (position, rate) = match target {
                ServoTarget::Position { position, rate } => (position, rate),
                ServoTarget::Rate(rate) => (0.0, rate),
                ServoTarget::Rotation(_) => (0.0, 0.0),
            };
            let kind = if joint.mask.holds_translation(0) { "angular" } else { "linear" };
            drives.push(json!({
                "type": kind, "mode": "force", "axis": 0, "stiffness": motor.stiffness, "damping": motor.damping,
                "maxForce": motor.max, "positionTarget": position, "velocityTarget": rate,
            }));
        }
        let mut part = json!({ "limits": limits(joint.mask, &joint.limits) });
        if !drives.is_empty() {
            part["drives"] = drives.into();
        }
        self.joints.push(part);
        let mut used = json!({ "connectedNode": connected, "joint": self.joints.len() - 1 });
        if joint.collide {
            used["enableCollision"] = true.into();
        }
        self.node(format!("{} socket", joint.name), parent, parent_frame, json!({ "joint": used }));
    }

    /// What stands around. A floor alone is not written: whoever reads the file has one.
    fn surroundings(&mut self, model: &Model) {
        if self.character.rig.obstacles.is_empty() {
            return;
        }
        for obstacle in model.obstacles() {
            let (edge, thick) = FLOOR;
            let floor = Shape::cuboid(edge, thick, edge);
            let (solid, place) = match &obstacle.shape {
                ObstacleShape::Solid(shape) => (shape.clone(), obstacle.pose),
                ObstacleShape::HalfSpace => (floor, obstacle.pose.then(Pose::at(DVec3::NEG_Y * (0.5 * thick)))),
                ObstacleShape::Mesh { vertices, triangles } => {
                    (Shape::Mesh { vertices: vertices.clone(), triangles: triangles.clone() }, obstacle.pose)
                }
                ObstacleShape::HeightField(_) => {
                    let text = "ground given by heights is not written".into();
                    self.notes.push(Note { code: "bake/obstacle", part: obstacle.name.clone(), text });
                    continue;
                }
            };
            let (geometry, place) = self.geometry(&obstacle.name, &solid, place);
            let material = self.material(obstacle.material);
            let collider = json!({ "geometry": geometry, "physicsMaterial": material });
            self.node(obstacle.name.clone(), None, place, json!({ "collider": collider }));
        }
    }

    fn finish(mut self) -> Baked {
        let materials: Vec<Value> = self
            .materials
            .iter()
            .map(|m| json!({ "staticFriction": m.friction, "dynamicFriction": m.friction, "restitution": m.restitution }))
            .collect();
        let mut bodies = json!({});
        for (key, values) in
            [("physicsMaterials", materials), ("physicsJoints", self.joints), ("collisionFilters", self.filters)]
        {
            if !values.is_empty() {
                bodies[key] = values.into();
            }
        }
        self.root["extensions"][BODIES] = bodies;
        if !self.shapes.is_empty() {
            self.root["extensions"][SHAPES] = json!({ "shapes": self.shapes });
        }
        for name in [BODIES, SHAPES] {
            let there = self.root["extensions"].get(name).is_some();
            let told = self.root["extensionsUsed"].as_array().is_some_and(|list| list.iter().any(|e| e == name));
            if there && !told {
                push(&mut self.root, "extensionsUsed", name.into());
            }
        }
        let scene = self.root["scene"].as_u64().unwrap_or(0) as usize;
        for node in std::mem::take(&mut self.loose) {
            push(&mut self.root["scenes"][scene], "nodes", node.into());
        }
        if !self.binary.is_empty() {
            self.root["buffers"][0]["byteLength"] = self.binary.len().into();
        }
        Baked { bytes: glb(&self.root, self.binary), notes: self.notes }
    }
}

/// What a joint holds, and its ranges.
fn limits(mask: JointMask, limits: &Limits) -> Vec<Value> {
    let bits = mask.bits();
    let held = |from: u8| (0..3).filter(|k| bits >> (from + k) & 1 == 1).collect::<Vec<u8>>();
    let mut all = Vec::new();
    for (key, axes) in [("linearAxes", held(0)), ("angularAxes", held(3))] {
        if !axes.is_empty() {
            all.push(json!({ key: axes, "min": 0.0, "max": 0.0 }));
        }
    }
    let mut range = |key: &str, axes: &[u8], (min, max): (f64, f64), (stiffness, damping): (f64, f64)| {
        let mut limit = json!({ key: axes });
        // Without an end there is none on that side.
        for (end, value) in [("min", min), ("max", max)] {
            if value.is_finite() {
                limit[end] = value.into();
            }
        }
        if limits.stops == Stops::Soft {
            (limit["stiffness"], limit["damping"]) = (stiffness.into(), damping.into());
        }
        all.push(limit);
    };
    let turn = (limits.stiffness, limits.damping);
    if let Some(slide) = limits.slide {
        range("linearAxes", &[0], (slide.min, slide.max), (limits.slide_stiffness, limits.slide_damping));
    }
    if let Some(angle) = limits.angle {
        range("angularAxes", &[0], (angle.min, angle.max), turn);
    }
    match limits.swing {
        // A cone, or two angles of their own: the ellipse between them is not in the extension.
        Some(swing) if swing.about_y == swing.about_z => range("angularAxes", &[1, 2], (0.0, swing.about_y), turn),
        Some(swing) => {
            range("angularAxes", &[1], (-swing.about_y, swing.about_y), turn);
            range("angularAxes", &[2], (-swing.about_z, swing.about_z), turn);
        }
        None => {}
    }
    all
}

fn rotation_drives(mask: JointMask, spring: &RotationSpring) -> Vec<Value> {
    if spring.stiffness == 0.0 && spring.damping == 0.0 {
        return Vec::new();
    }
    let rest = rotation::log(spring.rest) + DVec3::X * spring.rest_turns;
    let free = (0..3).filter(|k| mask.bits() >> (3 + k) & 1 == 0);
    free.map(|k| drive("angular", k, spring.stiffness, spring.damping, rest[k])).collect()
}

fn slide_drives(mask: JointMask, spring: &SlideSpring) -> Vec<Value> {
    if spring.stiffness == 0.0 && spring.damping == 0.0 {
        return Vec::new();
    }
    let free = (0..3).filter(|k| !mask.holds_translation(*k));
    free.map(|k| drive("linear", k, spring.stiffness, spring.damping, spring.rest[k])).collect()
}

fn drive(kind: &str, axis: usize, stiffness: f64, damping: f64, target: f64) -> Value {
    json!({
        "type": kind, "mode": "force", "axis": axis, "stiffness": stiffness, "damping": damping, "positionTarget": target,
    })
}
