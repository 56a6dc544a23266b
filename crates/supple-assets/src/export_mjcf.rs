//! A model as MJCF, so that others can run the same scene: bodies, joints, springs, limits, motors, shapes and obstacles.
//!
//! Bodies stand in the tree of the model, at their start; what closes loops becomes `connect` or `weld`. Y up becomes Z up. An angle is counted in the
//! file as in the model (`ref`).

use crate::Note;
use crate::robot::y_up;
use glam::{DQuat, DVec3};
use std::fmt::Write;
use supple::model::{PlacedShape, RotationKind};
use supple::{BodyId, Input, Joint, JointId, JointMask, Material, Model, ObstacleShape, Pose, Shape, State};

/// An exported model.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The text of the file.
    pub text: String,
    /// What has no equivalent in MJCF.
    pub notes: Vec<Note>,
}

/// The text of an MJCF file.
pub fn export(name: &str, model: &Model, input: &Input) -> Exported {
    let mut out = Writer {
        model,
        state: model.start(),
        meshes: String::new(),
        mesh_count: 0,
        actuators: String::new(),
        notes: Vec::new(),
    };
    let down = Pose::new(y_up().conjugate(), DVec3::ZERO);
    let mut bodies = String::new();
    for obstacle in model.obstacles() {
        out.obstacle(&mut bodies, obstacle, down);
    }
    let nodes = &model.topology().nodes;
    // Preorder: a body ends where the next is not below it.
    let mut open: Vec<usize> = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        while open.last().is_some_and(|&o| i >= o + nodes[o].subtree) {
            open.pop();
            let _ = writeln!(bodies, "{}</body>", pad(open.len() + 2));
        }
        let parent = node.parent.checked_sub(1).map_or(down.inverse(), |p| out.link(nodes[p].body));
        out.body(&mut bodies, i, parent, open.len() + 2);
        open.push(i);
    }
    while open.pop().is_some() {
        let _ = writeln!(bodies, "{}</body>", pad(open.len() + 2));
    }
    let equality = out.equality();
    let exclude = out.exclude();
    let Writer { meshes, actuators, notes, .. } = out;
    let gravity = vector(down.rotation * input.gravity);
    let section = |tag: &str, inside: &str| {
        if inside.is_empty() { String::new() } else { format!("  <{tag}>\n{inside}  </{tag}>\n") }
    };
    let text = format!(
        "<mujoco model=\"{}\">\n  <compiler angle=\"radian\" inertiafromgeom=\"false\"/>\n  <option gravity=\"{gravity}\"/>\n{}  <worldbody>\n{bodies}  </worldbody>\n{}{}{}</mujoco>\n",
        escaped(name),
        section("asset", &meshes),
        section("equality", &equality),
        section("contact", &exclude),
        section("actuator", &actuators),
    );
    Exported { text, notes }
}

struct Writer<'a> {
    model: &'a Model,
    state: State,
    meshes: String,
    mesh_count: usize,
    actuators: String,
    notes: Vec<Note>,
}

fn pad(depth: usize) -> String {
    "  ".repeat(depth)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn vector(v: DVec3) -> String {
    format!("{} {} {}", v.x, v.y, v.z)
}

fn placed(pose: Pose) -> String {
    let q = pose.rotation;
    format!("pos=\"{}\" quat=\"{} {} {} {}\"", vector(pose.translation), q.w, q.x, q.y, q.z)
}

/// Friction of a geom: sliding, spinning and rolling, the last with as many dimensions as it takes to act.
fn surface(material: Material) -> String {
    let Material { friction, rolling, .. } = material;
    if rolling > 0.0 {
        format!("friction=\"{friction} 0.005 {rolling}\" condim=\"6\"")
    } else {
        format!("friction=\"{friction} 0.005 0.0001\"")
    }
}

impl Writer<'_> {
    fn note(&mut self, part: &str, text: &str) {
        self.notes.push(Note { code: "export/left-out", part: part.to_owned(), text: text.to_owned() });
    }

    /// Where the link of a body is at the start.
    fn link(&self, body: BodyId) -> Pose {
        let body = self.model.body(body);
        body.start.then(Pose::at(-body.centre_in_link))
    }

    fn body(&mut self, out: &mut String, node: usize, parent: Pose, depth: usize) {
        let tree = self.model.topology().nodes[node];
        let body = self.model.body(tree.body);
        let link = self.link(tree.body);
        let space = pad(depth + 1);
        let _ = writeln!(
            out,
            "{}<body name=\"{}\" {}>",
            pad(depth),
            escaped(&body.name),
            placed(parent.inverse().then(link))
        );
        let i = body.inertia;
        let _ = writeln!(
            out,
            "{space}<inertial pos=\"{}\" mass=\"{}\" fullinertia=\"{} {} {} {} {} {}\"/>",
            vector(body.centre_in_link),
            body.mass,
            i.x_axis.x,
            i.y_axis.y,
            i.z_axis.z,
            i.y_axis.x,
            i.z_axis.x,
            i.z_axis.y
        );
        match tree.joint {
            None => {
                let _ = writeln!(out, "{space}<freejoint name=\"{} floats\"/>", escaped(&body.name));
            }
            Some(id) => self.joint(out, id, if tree.flipped { -1.0 } else { 1.0 }, link, &space),
        }
        let centre = Pose::at(body.centre_in_link);
        for PlacedShape { shape, body_from_shape } in &body.shapes {
            let touches = body.groups.member != 0 && body.groups.collides_with != 0;
            let contact = if touches { "" } else { " contype=\"0\" conaffinity=\"0\"" };
            if let Some(form) = self.form(shape, centre.then(*body_from_shape)) {
                let _ = writeln!(out, "{space}<geom {form} {}{contact}/>", surface(body.material));
            }
        }
    }

    /// The axes of a joint, in the coordinates of the body that it moves. A body that is side b of its joint moves the other way.
    fn joint(&mut self, out: &mut String, id: JointId, sign: f64, link: Pose, space: &str) {
        let joint = self.model.joint(id);
        let k = id.index();
        let child = self.state.bodies[joint.child.index()].pose().then(joint.child_from_joint);
        let side_b = self.model.parent_pose(joint, &self.state).then(joint.parent_from_joint);
        let in_link = |v: DVec3| link.rotation.conjugate() * v * sign;
        let anchor = vector(link.inverse().transform_point(child.translation));
        let along = side_b.rotation.conjugate() * (child.translation - side_b.translation);
        let name = escaped(&joint.name);
        let (free, limits) = (|t: usize| !joint.mask.holds_translation(t), &joint.limits);
        let mut single = None;
        for t in (0..3).filter(|&t| free(t)) {
            let own = if joint.mask.free() == 1 { name.clone() } else { format!("{name} {}", ["x", "y", "z"][t]) };
            let axis = vector(in_link(side_b.rotation * DVec3::AXES[t]));
            let range = if t == 0 { limits.slide.map(|r| [r.min, r.max]) } else { None };
            let spring = joint.slide_spring;
            let _ = writeln!(
                out,
                "{space}<joint name=\"{own}\" type=\"slide\" axis=\"{axis}\" pos=\"{anchor}\" ref=\"{}\" stiffness=\"{}\" springref=\"{}\" damping=\"{}\"{}/>",
                along[t],
                spring.stiffness,
                spring.rest[t],
                spring.damping,
                ranged(range)
            );
            if t == 0 {
                single = Some(own);
            }
        }
        let spring = joint.rotation_spring;
        match joint.mask.rotation() {
            RotationKind::Held => {}
            RotationKind::Axis(i) => {
                let own = if joint.mask.free() == 1 { name.clone() } else { format!("{name} turn") };
                let axis = vector(in_link(child.rotation * DVec3::AXES[i]));
                let rest = joint.angle_near(spring.rest, 0.0) + spring.rest_turns;
                let range = limits.angle.map(|r| [r.min, r.max]);
                let _ = writeln!(
                    out,
                    "{space}<joint name=\"{own}\" type=\"hinge\" axis=\"{axis}\" pos=\"{anchor}\" ref=\"{}\" stiffness=\"{}\" springref=\"{rest}\" damping=\"{}\"{}/>",
                    self.state.joints[k].angle,
                    spring.stiffness,
                    spring.damping,
                    ranged(range)
                );
                single = Some(own);
            }
            RotationKind::Free => {
                let _ = writeln!(
                    out,
                    "{space}<joint name=\"{name}\" type=\"ball\" pos=\"{anchor}\" stiffness=\"{}\" damping=\"{}\"/>",
                    spring.stiffness, spring.damping
                );
                if limits.swing.is_some() || limits.angle.is_some() {
                    self.note(&joint.name, "the swing and twist limits of a ball have no equivalent in MJCF");
                }
            }
            RotationKind::Cardan(i) => {
                // about axis i + 1 of side b, then axis i + 2 of side a
                for (word, axis) in [
                    ("first", side_b.rotation * DVec3::AXES[(i + 1) % 3]),
                    ("second", child.rotation * DVec3::AXES[(i + 2) % 3]),
                ] {
                    let axis = vector(in_link(axis));
                    let _ = writeln!(
                        out,
                        "{space}<joint name=\"{name} {word}\" type=\"hinge\" axis=\"{axis}\" pos=\"{anchor}\" damping=\"{}\"/>",
                        spring.damping
                    );
                }
                if spring.stiffness > 0.0 || sign < 0.0 {
                    self.note(&joint.name, "the spring of a universal joint has no equivalent in MJCF");
                }
            }
        }
        self.motor(joint, single);
    }

    fn motor(&mut self, joint: &Joint, axis: Option<String>) {
        let (Some(motor), Some(axis)) = (joint.motor, axis) else {
            if joint.motor.is_some() {
                self.note(&joint.name, "the motor of a ball has no equivalent in MJCF");
            }
            return;
        };
        let range = if motor.max.is_finite() && motor.max > 0.0 {
            format!(" forcerange=\"{} {}\"", -motor.max, motor.max)
        } else {
            String::new()
        };
        let _ = writeln!(
            self.actuators,
            "    <position name=\"{axis}\" joint=\"{axis}\" kp=\"{}\" kv=\"{}\"{range}/>",
            motor.stiffness, motor.damping
        );
        if motor.integral > 0.0 {
            self.note(&joint.name, "the integral gain of a motor has no equivalent in MJCF");
        }
    }

    /// A shape as the attributes of a geom. Round solids lie along X here, along Z there.
    fn form(&mut self, shape: &Shape, place: Pose) -> Option<String> {
        let round = place.then(Pose::new(DQuat::from_rotation_y(std::f64::consts::FRAC_PI_2), DVec3::ZERO));
        let points = match shape {
            Shape::Sphere { radius } => return Some(format!("type=\"sphere\" size=\"{radius}\" {}", placed(place))),
            Shape::Cuboid { size } => {
                return Some(format!("type=\"box\" size=\"{}\" {}", vector(*size * 0.5), placed(place)));
            }
            Shape::Capsule { length, radius } if *length > 0.0 => {
                return Some(format!("type=\"capsule\" size=\"{radius} {}\" {}", 0.5 * length, placed(round)));
            }
            Shape::Capsule { radius, .. } => {
                return Some(format!("type=\"sphere\" size=\"{radius}\" {}", placed(place)));
            }
            Shape::Cylinder { length, radius } => {
                return Some(format!("type=\"cylinder\" size=\"{radius} {}\" {}", 0.5 * length, placed(round)));
            }
            Shape::Hull { points } => points,
            Shape::Mesh { vertices, .. } => vertices,
        };
        self.mesh_count += 1;
        let name = format!("mesh {}", self.mesh_count);
        let numbers: Vec<String> = points.iter().map(|p| vector(*p)).collect();
        let _ = writeln!(self.meshes, "    <mesh name=\"{name}\" vertex=\"{}\"/>", numbers.join("  "));
        Some(format!("type=\"mesh\" mesh=\"{name}\" {}", placed(place)))
    }

    fn obstacle(&mut self, out: &mut String, obstacle: &supple::Obstacle, down: Pose) {
        let place = down.then(obstacle.pose);
        let form = match &obstacle.shape {
            // Y of the half-space is Z of the plane
            ObstacleShape::HalfSpace => {
                let turned = place.then(Pose::new(DQuat::from_rotation_x(-std::f64::consts::FRAC_PI_2), DVec3::ZERO));
                Some(format!("type=\"plane\" size=\"0 0 1\" {}", placed(turned)))
            }
            ObstacleShape::Solid(shape) => self.form(shape, place),
            ObstacleShape::HeightField(_) | ObstacleShape::Mesh { .. } => {
                self.note(&obstacle.name, "height fields and open meshes are left out");
                None
            }
        };
        if let Some(form) = form {
            let (name, surface) = (escaped(&obstacle.name), surface(obstacle.material));
            let _ = writeln!(out, "    <geom name=\"{name}\" {form} {surface}/>");
        }
    }

    /// The joints that close loops.
    fn equality(&mut self) -> String {
        let mut out = String::new();
        for id in self.model.topology().loops.clone() {
            let joint = self.model.joint(id);
            let body = |b: BodyId| escaped(&self.model.body(b).name);
            let parent = joint.parent.map_or("world".to_owned(), body);
            let at = vector(joint.child_from_joint.translation + self.model.body(joint.child).centre_in_link);
            let (name, child) = (escaped(&joint.name), body(joint.child));
            match joint.mask {
                JointMask::BALL => {
                    let _ = writeln!(
                        out,
                        "    <connect name=\"{name}\" body1=\"{child}\" body2=\"{parent}\" anchor=\"{at}\"/>"
                    );
                }
                JointMask::WELD => {
                    let _ = writeln!(out, "    <weld name=\"{name}\" body1=\"{child}\" body2=\"{parent}\"/>");
                }
                _ => {
                    let (name, text) =
                        (joint.name.clone(), "a joint that closes a loop and is neither ball nor weld was left out");
                    self.note(&name, text);
                }
            }
        }
        for coupling in self.model.couplings() {
            let axis = |id: JointId| {
                let joint = self.model.joint(id);
                let turn = if joint.mask.free() == 1 { "" } else { " turn" };
                format!("{}{turn}", escaped(&joint.name))
            };
            let start = |id: JointId| {
                let joint = self.model.joint(id);
                joint
                    .position(&self.model.sides(joint, &self.state), self.state.joints[id.index()].angle)
                    .map_or(0.0, |x| x.0)
            };
            // The file counts both positions from the start: y_0 + v = p(x_0 + u)
            let mut polynomial = shifted(coupling.polynomial, coupling.leader.map_or(0.0, start));
            polynomial[0] -= start(coupling.follower);
            let numbers: Vec<String> = polynomial.iter().map(f64::to_string).collect();
            let leader = coupling.leader.map_or_else(String::new, |id| format!(" joint2=\"{}\"", axis(id)));
            let _ = writeln!(
                out,
                "    <joint name=\"{}\" joint1=\"{}\"{leader} polycoef=\"{}\"/>",
                escaped(&coupling.name),
                axis(coupling.follower),
                numbers.join(" ")
            );
        }
        for spring in self.model.anchor_springs() {
            let name = spring.name.clone();
            self.notes.push(Note {
                code: "export/left-out",
                part: name,
                text: "springs between anchors are left out".into(),
            });
        }
        out
    }

    /// Pairs that do not touch although their groups would let them.
    fn exclude(&self) -> String {
        let mut out = String::new();
        let count = self.model.bodies().len() as u32;
        for b in 0..count {
            for a in 0..b {
                let (a, b) = (BodyId(a), BodyId(b));
                let (one, other) = (self.model.body(a), self.model.body(b));
                if one.groups.meet(other.groups) && !self.model.may_touch(a, b) {
                    let _ = writeln!(
                        out,
                        "    <exclude body1=\"{}\" body2=\"{}\"/>",
                        escaped(&one.name),
                        escaped(&other.name)
                    );
                }
            }
        }
        out
    }
}

/// The polynomial of u with the values of the given one at `x + u`: Horner's rule again and again.
fn shifted(mut c: [f64; 5], x: f64) -> [f64; 5] {
    for k in 0..5 {
        for i in (k..4).rev() {
            c[i] += x * c[i + 1];
        }
    }
    c
}

fn ranged(range: Option<[f64; 2]>) -> String {
    range.map_or_else(String::new, |[low, high]| format!(" range=\"{low} {high}\""))
}
