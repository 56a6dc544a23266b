//! The plan of the sweeps: constants of every body and its joint in tree order, made once from the model.
//!
//! Node 0 is the world, at rest in its origin. A parent has a smaller index than its children and each subtree is
//! contiguous. Sweeping backwards, the articulated inertias of finished children wait in a few slots, taken and given back like
//! registers: a chain needs one, a binary tree as many as it has levels.
//!
//! Large trees are cut into tasks: runs of whole sibling subtrees that need nothing of each other. The cut follows from
//! the model alone, and one thread adds in the same order as many, so the bits do not depend on the threads.

use crate::model::joint::{Joint, JointMask, RotationKind};
use crate::model::{JointId, Model, RotationSpring};
use glam::{DMat3, DQuat, DVec3};

/// "None" for the `u32` indices of this file.
pub(crate) const NONE: u32 = u32::MAX;

/// How body and joint are eliminated together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// Point held, rotation free.
    Ball,
    /// Point held, one rotation free.
    Hinge,
    /// Nothing free.
    Weld,
    /// Nothing held, nothing acting: a root that floats.
    Floating,
    /// Anything else, with this many free directions.
    General(u8),
}

/// The joint has a spring or damper on its free rotations.
pub(crate) const SPRING: u8 = 1;
/// The joint has limits.
pub(crate) const LIMITS: u8 = 2;
/// The joint has a motor.
pub(crate) const MOTOR: u8 = 4;
/// The body is side b of its joint.
pub(crate) const FLIPPED: u8 = 8;
/// The anchor moves in the body: a flipped joint with free translations.
pub(crate) const ANCHOR_MOVES: u8 = 16;
/// The parent's anchor moves in the parent.
pub(crate) const PARENT_ANCHOR_MOVES: u8 = 32;
/// The joint counts turns.
pub(crate) const TURNS: u8 = 64;
/// The joint has a spring on more than one rotation, which remembers on which way round it is.
pub(crate) const WINDS: u8 = 128;

/// A body and the joint to its parent. Laid out by use, in whole cache lines: first what the way down reads of every node, then what
/// the way up reads besides, then what only some kinds of joint or the midpoint step need.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    pub(crate) parent: u32,
    pub(crate) body: u32,
    /// `NONE` for a floating body without a joint.
    pub(crate) joint: u32,
    /// Index among the details, or `NONE`.
    pub(crate) detail: u32,
    /// Index among the general factors, or `NONE`.
    pub(crate) general: u32,
    /// Where the children's sum waits, or `NONE`.
    pub(crate) slot_in: u32,
    /// Where this subtree's sum goes, or `NONE` below the world.
    pub(crate) slot_out: u32,
    pub(crate) link: Link,
    pub(crate) flags: u8,
    /// Whether `slot_out` is assigned rather than added to.
    pub(crate) first: bool,
    /// Joint point in side a, in side b.
    pub(crate) point_a: DVec3,
    pub(crate) point_b: DVec3,
    pub(crate) mass: f64,
    pub(crate) stiffness: f64,
    pub(crate) damping: f64,
    /// xx, xy, xz, yy, yz, zz in body axes.
    pub(crate) inertia: [f64; 6],
    /// From the parent's anchor to the joint point on the parent, in the parent's axes.
    pub(crate) hop: DVec3,
    /// `q0⁻¹`: side a's rest rotation in side b, inverted.
    pub(crate) rest_inverse: DQuat,
    /// The hinge axis in side a and in side b.
    pub(crate) axis_a: DVec3,
    pub(crate) axis_b: DVec3,
    /// Angle of rest of a hinge.
    pub(crate) rest_angle: f64,
    /// The anchor in this body (unless it moves): the joint point, or the centre of mass of a floating root.
    pub(crate) anchor: DVec3,
    /// Index among the hinges and general links, or `NONE`.
    pub(crate) any: u32,
    /// The smaller of the two bodies' inertias about the joint, and that body's lever: what a damper or tension there moves.
    pub(crate) joint_inertia: (f64, f64),
    /// The smaller of the two bodies' masses.
    pub(crate) joint_mass: f64,
    /// A third of the trace.
    pub(crate) mean_inertia: f64,
}

/// What only joints with limits, motors, turns or unusual masks need.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub(crate) joint: Joint,
    /// Axes of the joint frame in side a and in side b.
    pub(crate) axes_a: [DVec3; 3],
    pub(crate) axes_b: [DVec3; 3],
    /// Scalar part and turning-axis part of the relative rotation as linear functions of `q_b⁻¹ q_a` (w, x, y, z).
    pub(crate) turn_cosine: [f64; 4],
    pub(crate) turn_sine: [f64; 4],
}

impl Detail {
    /// The joint frames in side a and in side b.
    pub(crate) fn frames(&self) -> (DMat3, DMat3) {
        let matrix = |axes: &[DVec3; 3]| DMat3::from_cols(axes[0], axes[1], axes[2]);
        (matrix(&self.axes_a), matrix(&self.axes_b))
    }
}

/// Part of the node order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First node.
    pub(crate) lo: u32,
    /// One past the last node.
    pub(crate) hi: u32,
    /// First of its general factors.
    pub(crate) general: u32,
    /// Index of the task, or `NONE` for a piece of the trunk.
    pub(crate) task: u32,
    /// Of a task: the trunk node its subtrees hang on, the slot there, whether that slot is assigned.
    pub(crate) parent: u32,
    pub(crate) slot_out: u32,
    pub(crate) first: bool,
}

/// The whole plan.
pub(crate) struct Plan {
    /// Node 0 is the world.
    pub(crate) nodes: Vec<Node>,
    pub(crate) details: Vec<Detail>,
    /// Number of general factors.
    pub(crate) generals: usize,
    /// Number of hinges and general links.
    pub(crate) any: usize,
    /// In node order; covers nodes 1…n.
    pub(crate) segments: Vec<Segment>,
    /// Number of tasks.
    pub(crate) tasks: usize,
    /// Slots of the trunk, and of each task (slot 0 of a task is its result).
    pub(crate) slots: usize,
    pub(crate) task_slots: usize,
    /// Node of each body.
    pub(crate) node_of: Vec<u32>,
    /// Total mass.
    pub(crate) mass: f64,
    /// Length of the longest path from a root, joint to joint: the character's size.
    pub(crate) reach: f64,
}

/// Below this many bodies a tree is not cut: waking another thread costs about a microsecond.
const SMALLEST_CUT: usize = 256;
/// A cut tree has about this many tasks.
const TASKS: usize = 16;

impl Plan {
    pub(crate) fn new(model: &Model) -> Plan {
        let topology = model.topology();
        let mut plan = Plan {
            nodes: Vec::with_capacity(topology.nodes.len() + 1),
            details: Vec::new(),
            generals: 0,
            any: 0,
            segments: Vec::new(),
            tasks: 0,
            slots: 0,
            task_slots: 0,
            node_of: topology.node_of.iter().map(|&i| i as u32 + 1).collect(),
            mass: model.mass(),
            reach: 0.0,
        };
        plan.nodes.push(world());
        for i in 0..topology.nodes.len() {
            let node = plan.node(model, i);
            plan.nodes.push(node);
        }
        plan.reach = plan.measure_reach();
        plan.cut(model);
        plan.assign_slots();
        plan
    }

    fn node(&mut self, model: &Model, i: usize) -> Node {
        let tree_node = model.topology().nodes[i];
        let body = model.body(tree_node.body);
        let inertia = body.inertia;
        let mut node = Node {
            parent: tree_node.parent as u32,
            body: tree_node.body.0,
            mass: body.mass,
            inertia: [
                inertia.x_axis.x,
                inertia.x_axis.y,
                inertia.x_axis.z,
                inertia.y_axis.y,
                inertia.y_axis.z,
                inertia.z_axis.z,
            ],
            ..world()
        };
        node.mean_inertia = (inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z) / 3.0;
        let parent = &self.nodes[tree_node.parent];
        if parent.flags & ANCHOR_MOVES != 0 {
            node.flags |= PARENT_ANCHOR_MOVES;
        }
        let Some(id) = tree_node.joint else {
            node.link = Link::Floating;
            return node;
        };
        let joint = model.joint(id);
        node.joint = id.0;
        node.link = link(joint);
        if node.link == Link::Floating {
            node.joint = NONE;
            return node;
        }
        let spring = &joint.rotation_spring;
        let springy = spring.stiffness > 0.0 || spring.damping > 0.0;
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        node.flags |= flag(springy && joint.mask.rotation() != RotationKind::Held, SPRING)
            | flag(joint.limits.any(), LIMITS)
            | flag(joint.motor.is_some(), MOTOR)
            | flag(tree_node.flipped, FLIPPED)
            | flag(tree_node.flipped && !joint.mask.holds_point(), ANCHOR_MOVES)
            | flag(joint.turning_axis().is_some(), TURNS)
            | flag(joint.turns_from_rest(DQuat::IDENTITY).is_some(), WINDS);
        node.point_a = joint.child_from_joint.translation;
        node.point_b = joint.parent_from_joint.translation;
        let (own, parents) =
            if tree_node.flipped { (node.point_b, node.point_a) } else { (node.point_a, node.point_b) };
        node.anchor = own;
        node.hop = parents - parent.anchor;
        let about = |mass: f64, inertia: DMat3, lever: DVec3| {
            (largest_moment(inertia) + mass * lever.length_squared(), lever.length())
        };
        node.joint_inertia = about(body.mass, body.inertia, own);
        node.joint_mass = body.mass;
        if tree_node.parent > 0 {
            let other = model.body(model.topology().nodes[tree_node.parent - 1].body);
            node.joint_mass = node.joint_mass.min(other.mass);
            let theirs = about(other.mass, other.inertia, parents);
            if theirs.0 < node.joint_inertia.0 {
                node.joint_inertia = theirs;
            }
        }
        let (frame_a, frame_b) = (joint.child_from_joint.rotation, joint.parent_from_joint.rotation);
        node.rest_inverse = (frame_b * spring.rest * frame_a.conjugate()).conjugate();
        node.stiffness = spring.stiffness;
        node.damping = spring.damping;
        if let RotationKind::Axis(k) = joint.mask.rotation() {
            node.rest_angle = rest_angle(spring, k);
            node.axis_a = DMat3::from_quat(frame_a).col(k);
            node.axis_b = DMat3::from_quat(frame_b).col(k);
        }
        if node.flags & (LIMITS | MOTOR | TURNS) != 0 || matches!(node.link, Link::General(_) | Link::Weld) {
            node.detail = self.details.len() as u32;
            self.details.push(detail(joint));
        }
        if let Link::General(_) | Link::Hinge = node.link {
            node.any = self.any as u32;
            self.any += 1;
        }
        if let Link::General(_) = node.link {
            node.general = self.generals as u32;
            self.generals += 1;
        }
        node
    }

    fn measure_reach(&self) -> f64 {
        let mut reach = vec![0.0f64; self.nodes.len()];
        let mut longest = 0.0f64;
        for (i, node) in self.nodes.iter().enumerate().skip(1) {
            let hop = if node.parent == 0 { 0.0 } else { node.hop.length() };
            reach[i] = reach[node.parent as usize] + hop;
            // Beyond the anchor the body still has its own size: centre of mass and radius of gyration.
            longest = longest.max(reach[i] + node.anchor.length() + (node.mean_inertia / node.mass).sqrt());
        }
        longest
    }

    /// Cuts the tree into tasks and trunk.
    fn cut(&mut self, model: &Model) {
        let count = self.nodes.len() - 1;
        let size = |i: usize| model.topology().nodes[i - 1].subtree;
        let largest = if count < SMALLEST_CUT { 0 } else { (count / TASKS).max(32) };
        let mut i = 1;
        let mut general = 0;
        while i <= count {
            // A task: sibling subtrees in a row, as many as fit. A lone chain end is left in the trunk: it gains nothing.
            let mut hi = i;
            while hi <= count
                && self.nodes[hi].parent == self.nodes[i].parent
                && self.nodes[hi].parent != 0
                && hi - i + size(hi) <= largest
            {
                hi += size(hi);
            }
            let task = if hi > i {
                self.tasks += 1;
                self.tasks as u32 - 1
            } else {
                hi = i + 1;
                NONE
            };
            let parent = self.nodes[i].parent;
            match self.segments.last_mut() {
                Some(last) if task == NONE && last.task == NONE => last.hi = hi as u32,
                _ => self.segments.push(Segment {
                    lo: i as u32,
                    hi: hi as u32,
                    general,
                    task,
                    parent,
                    slot_out: NONE,
                    first: false,
                }),
            }
            general += self.nodes[i..hi].iter().filter(|n| n.general != NONE).count() as u32;
            i = hi;
        }
        if self.tasks < 2 {
            let segment = Segment {
                lo: 1,
                hi: count as u32 + 1,
                general: 0,
                task: NONE,
                parent: 0,
                slot_out: NONE,
                first: false,
            };
            self.segments = vec![segment];
            self.tasks = 0;
        }
    }

    /// Gives every node its slots.
    fn assign_slots(&mut self) {
        let mut slot_of = vec![NONE; self.nodes.len()];
        let mut trunk = Registers::default();
        for s in (0..self.segments.len()).rev() {
            let segment = self.segments[s];
            let (lo, hi) = (segment.lo as usize, segment.hi as usize);
            if segment.task == NONE {
                for i in (lo..hi).rev() {
                    self.assign(i, &mut slot_of, &mut trunk);
                }
            } else {
                // The task has slots of its own, of which 0 is the sum for the parent.
                let parent = segment.parent as usize;
                let mut local = Registers { free: Vec::new(), count: 1 };
                let outer = std::mem::replace(&mut slot_of[parent], 0);
                let mut first = true;
                for i in (lo..hi).rev() {
                    self.assign(i, &mut slot_of, &mut local);
                    if self.nodes[i].parent as usize == parent {
                        self.nodes[i].first = std::mem::take(&mut first);
                    }
                }
                self.task_slots = self.task_slots.max(local.count);
                slot_of[parent] = outer;
                let segment = &mut self.segments[s];
                segment.first = outer == NONE;
                if outer == NONE {
                    slot_of[parent] = trunk.take();
                }
                segment.slot_out = slot_of[parent];
            }
        }
        self.slots = trunk.count;
    }

    fn assign(&mut self, i: usize, slot_of: &mut [u32], registers: &mut Registers) {
        let parent = self.nodes[i].parent as usize;
        self.nodes[i].slot_in = slot_of[i];
        if slot_of[i] != NONE {
            registers.free.push(slot_of[i]);
        }
        if parent == 0 {
            return;
        }
        self.nodes[i].first = slot_of[parent] == NONE;
        if slot_of[parent] == NONE {
            slot_of[parent] = registers.take();
        }
        self.nodes[i].slot_out = slot_of[parent];
    }

    pub(crate) fn joint_id(&self, node: usize) -> Option<JointId> {
        let joint = self.nodes[node].joint;
        (joint != NONE).then_some(JointId(joint))
    }
}

#[derive(Default)]
struct Registers {
    free: Vec<u32>,
    count: usize,
}

impl Registers {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count as u32 - 1
        })
    }
}

fn world() -> Node {
    Node {
        parent: 0,
        body: NONE,
        joint: NONE,
        slot_in: NONE,
        slot_out: NONE,
        detail: NONE,
        general: NONE,
        any: NONE,
        link: Link::Weld,
        flags: 0,
        first: false,
        mass: 0.0,
        inertia: [0.0; 6],
        point_a: DVec3::ZERO,
        point_b: DVec3::ZERO,
        anchor: DVec3::ZERO,
        hop: DVec3::ZERO,
        rest_inverse: DQuat::IDENTITY,
        rest_angle: 0.0,
        stiffness: 0.0,
        damping: 0.0,
        axis_a: DVec3::X,
        axis_b: DVec3::X,
        joint_inertia: (1.0, 1.0),
        joint_mass: 1.0,
        mean_inertia: 1.0,
    }
}

fn link(joint: &Joint) -> Link {
    let spring = &joint.rotation_spring;
    let slide = &joint.slide_spring;
    let quiet = spring.stiffness == 0.0
        && spring.damping == 0.0
        && slide.stiffness == 0.0
        && slide.damping == 0.0
        && !joint.limits.any()
        && joint.motor.is_none();
    match (joint.mask.holds_point(), joint.mask.rotation()) {
        (true, RotationKind::Free) => Link::Ball,
        (true, RotationKind::Axis(_)) => Link::Hinge,
        (true, RotationKind::Held) => Link::Weld,
        _ if joint.mask == JointMask::FREE && quiet && joint.parent.is_none() => Link::Floating,
        _ => Link::General(joint.mask.free() as u8),
    }
}

/// The largest principal moment, by power iteration: a few digits are enough.
fn largest_moment(inertia: DMat3) -> f64 {
    let mut v = DVec3::new(1.0, 0.9, 0.8);
    for _ in 0..50 {
        v = (inertia * v).normalize();
    }
    v.dot(inertia * v)
}

/// The unwrapped angle at which a hinge's spring is slack.
pub(crate) fn rest_angle(spring: &RotationSpring, axis: usize) -> f64 {
    crate::model::joint::twist_angle(spring.rest, axis) + spring.rest_turns
}

fn detail(joint: &Joint) -> Detail {
    let (a, b) = (joint.child_from_joint.rotation, joint.parent_from_joint.rotation);
    let columns = |q: DQuat| {
        let m = DMat3::from_quat(q);
        [m.col(0), m.col(1), m.col(2)]
    };
    // The relative rotation b⁻¹ p a is linear in p: read its coefficients off the four unit quaternions.
    let axis = joint.turning_axis().unwrap_or(0);
    let (mut cosine, mut sine) = ([0.0; 4], [0.0; 4]);
    let units = [
        DQuat::from_xyzw(0.0, 0.0, 0.0, 1.0),
        DQuat::from_xyzw(1.0, 0.0, 0.0, 0.0),
        DQuat::from_xyzw(0.0, 1.0, 0.0, 0.0),
        DQuat::from_xyzw(0.0, 0.0, 1.0, 0.0),
    ];
    for k in 0..4 {
        let relative = b.conjugate() * units[k] * a;
        cosine[k] = relative.w;
        sine[k] = relative.to_array()[axis];
    }
    Detail { joint: joint.clone(), axes_a: columns(a), axes_b: columns(b), turn_cosine: cosine, turn_sine: sine }
}
