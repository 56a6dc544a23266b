//! Joint coordinates: how far each joint has moved along its free directions, and how fast; from poses and back.
//!
//! A joint carries its child's frame first along the free translations of the parent's frame, then through the free rotations:
//!
//! ```text
//! parent_from_joint · T(q) · child_from_joint⁻¹ = parent_from_child,     T(q) = (R, p),     p = Σ q_k e_k
//! ```
//! so that every one of the 64 masks is a joint map. The directions `S` are the columns of the motion of the child's joint frame, in
//! its own axes and at its own origin: `T⁻¹ Ṫ = S q̇`. They are of unit length and at right angles to one another at every pose, so
//! that no joint has a singular pose and `q̇ = Sᵀ (relative motion)`.
//!
//! | free | positions | R | rates | column of S: linear, angular | its rate |
//! |---|---|---|---|---|---|
//! | translation k | length | | its rate | `Rᵀ e_k`, 0 | `−ω × Rᵀ e_k`, 0 |
//! | rotation i | unwrapped angle | `rot(e_i, q)` | its rate | 0, `e_i` | 0 |
//! | rotations j, k, not i | two angles | `rot(e_j, q_0) rot(e_k, q_1)` | their rates | 0, `Rᵀ e_j`; 0, `e_k` | 0, `−ω × Rᵀ e_j`; 0 |
//! | three rotations | quaternion x, y, z, w | as it is | `ω` in the child's joint axes | 0, `e_0`; 0, `e_1`; 0, `e_2` | 0 |
//!
//! with `j = i + 1`, `k = i + 2` and `ω` the angular part of `S q̇` [Kim 2008, App. A.1, with quaternions for balls and floating bodies].
//! Translations come before rotations. A floating body is a free joint to the world with its frame in the centre of mass.

use super::joint::Sides;
use super::{BodyId, BodyState, JointId, JointMask, Model, RotationKind, State, TreeNode};
use crate::maths::rotation::{exp, log};
use crate::maths::{Pose, Twist};
use glam::{DQuat, DVec3};
use std::f64::consts::{PI, TAU};
use std::ops::Range;

/// The free directions of a joint at one pose, one column each; or any list of up to six motions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directions {
    columns: [Twist; 6],
    count: usize,
}

impl Directions {
    fn push(&mut self, linear: DVec3, angular: DVec3) {
        self.columns[self.count] = Twist::new(linear, angular);
        self.count += 1;
    }

    /// `S q̇`.
    pub fn times(&self, rates: &[f64]) -> Twist {
        self.iter().zip(rates).fold(Twist::ZERO, |sum, (column, rate)| sum + *column * *rate)
    }
}

impl std::ops::Deref for Directions {
    type Target = [Twist];
    fn deref(&self) -> &[Twist] {
        &self.columns[..self.count]
    }
}

fn about(axis: usize, angle: f64) -> DQuat {
    exp(DVec3::AXES[axis % 3] * angle)
}

/// `angle` in (−π, π].
fn wrapped(angle: f64) -> f64 {
    let turned = angle - TAU * (angle / TAU).round();
    if turned <= -PI { turned + TAU } else { turned }
}

impl JointMask {
    /// Number of free translations.
    pub const fn free_translations(self) -> usize {
        3 - (self.bits() & 7).count_ones() as usize
    }

    /// How many numbers hold the position along the free directions: one each, but four for three free rotations.
    pub const fn positions(self) -> usize {
        self.free() + matches!(self.rotation(), RotationKind::Free) as usize
    }

    /// `T(q)`: the pose of the child's joint frame in the parent's.
    pub fn pose(self, positions: &[f64]) -> Pose {
        let (slides, turns) = positions.split_at(self.free_translations());
        let mut translation = DVec3::ZERO;
        for (k, slide) in (0..3).filter(|&k| !self.holds_translation(k)).zip(slides) {
            translation[k] = *slide;
        }
        let rotation = match self.rotation() {
            RotationKind::Held => DQuat::IDENTITY,
            RotationKind::Axis(i) => about(i, turns[0]),
            RotationKind::Cardan(i) => about(i + 1, turns[0]) * about(i + 2, turns[1]),
            RotationKind::Free => DQuat::from_slice(turns),
        };
        Pose::new(rotation, translation)
    }

    /// The positions at which the joint is nearest to `relative`, the pose of the child's joint frame in the parent's. Of the angles
    /// about a single axis, the one nearest `last`.
    ///
    /// Two rotations j, k: the quaternion of `rot(e_j, 2a) rot(e_k, 2b)` is `w, q_j, q_k, q_i = cos a cos b, sin a cos b, cos a sin b, sin a sin b`.
    /// Its product with that of `relative` is
    ///
    /// ```text
    /// ½[(w − q_i) cos(a+b) + (q_j + q_k) sin(a+b) + (w + q_i) cos(a−b) + (q_j − q_k) sin(a−b)]
    /// ```
    /// largest where `a + b = atan2(q_j + q_k, w − q_i)` and `a − b = atan2(q_j − q_k, w + q_i)`.
    pub fn nearest(self, relative: Pose, last: f64, positions: &mut [f64]) {
        let (slides, turns) = positions.split_at_mut(self.free_translations());
        for (k, slide) in (0..3).filter(|&k| !self.holds_translation(k)).zip(slides) {
            *slide = relative.translation[k];
        }
        let q = relative.rotation.to_array();
        match self.rotation() {
            RotationKind::Held => {}
            RotationKind::Axis(i) => {
                let angle = 2.0 * q[i].atan2(q[3]);
                turns[0] = angle + TAU * ((last - angle) / TAU).round();
            }
            RotationKind::Cardan(i) => {
                let (qi, qj, qk, w) = (q[i], q[(i + 1) % 3], q[(i + 2) % 3], q[3]);
                let (sum, difference) = ((qj + qk).atan2(w - qi), (qj - qk).atan2(w + qi));
                (turns[0], turns[1]) = (wrapped(sum + difference), wrapped(sum - difference));
            }
            RotationKind::Free => turns.copy_from_slice(&q),
        }
    }

    /// `S` at the rotation R of `T(q)`.
    pub fn directions(self, rotation: DQuat) -> Directions {
        let mut s = Directions::default();
        let back = rotation.conjugate();
        for k in (0..3).filter(|&k| !self.holds_translation(k)) {
            s.push(back * DVec3::AXES[k], DVec3::ZERO);
        }
        let axis = |k: usize| DVec3::AXES[k % 3];
        match self.rotation() {
            RotationKind::Held => {}
            RotationKind::Axis(i) => s.push(DVec3::ZERO, axis(i)),
            RotationKind::Cardan(i) => {
                s.push(DVec3::ZERO, back * axis(i + 1));
                s.push(DVec3::ZERO, axis(i + 2));
            }
            RotationKind::Free => (0..3).for_each(|k| s.push(DVec3::ZERO, axis(k))),
        }
        s
    }

    /// `Ṡ q̇`, with `directions` those of this pose.
    pub fn drift(self, directions: &Directions, rates: &[f64]) -> Twist {
        let motion = directions.times(rates);
        let linear = -motion.angular.cross(motion.linear);
        let angular = match self.rotation() {
            RotationKind::Cardan(_) => {
                let first = self.free_translations();
                -motion.angular.cross(directions[first].angular * rates[first])
            }
            _ => DVec3::ZERO,
        };
        Twist::new(linear, angular)
    }

    /// The motion from one position to another, by rate: `advance(from, difference, 1)` is `to`. Three rotations go the shorter way round.
    pub fn difference(self, from: &[f64], to: &[f64], out: &mut [f64]) {
        let plain = match self.rotation() {
            RotationKind::Free => self.free_translations(),
            _ => self.free(),
        };
        for ((out, from), to) in out.iter_mut().zip(&from[..plain]).zip(to) {
            *out = to - from;
        }
        if let RotationKind::Free = self.rotation() {
            let turned = DQuat::from_slice(&from[plain..]).conjugate() * DQuat::from_slice(&to[plain..]);
            log(turned).write_to_slice(&mut out[plain..]);
        }
    }

    /// Whether the last four positions are a quaternion.
    pub fn has_quaternion(self) -> bool {
        self.rotation() == RotationKind::Free
    }

    /// Moves the positions with constant rates for `h`: `q ← q + h q̇`, a quaternion `q ← q exp(h ω)`.
    pub fn advance(self, positions: &mut [f64], rates: &[f64], h: f64) {
        let plain = match self.rotation() {
            RotationKind::Free => self.free_translations(),
            _ => self.free(),
        };
        for (position, rate) in positions[..plain].iter_mut().zip(rates) {
            *position += h * rate;
        }
        if let RotationKind::Free = self.rotation() {
            let turned = DQuat::from_slice(&positions[plain..]) * exp(DVec3::from_slice(&rates[plain..]) * h);
            turned.normalize().write_to_slice(&mut positions[plain..]);
        }
    }
}

/// A node of the tree as a map from joint coordinates to the place of its body in its tree parent.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The constrained directions; none of a floating body.
    pub mask: JointMask,
    /// The body is side b of its joint.
    pub flipped: bool,
    /// The joint's frame on side a.
    pub child_from_joint: Pose,
    /// The joint's frame on side b.
    pub parent_from_joint: Pose,
}

impl Link {
    /// The link of a node of `model`'s tree.
    pub fn new(model: &Model, node: &TreeNode) -> Link {
        match node.joint {
            Some(id) => {
                let joint = model.joint(id);
                Link {
                    mask: joint.mask,
                    flipped: node.flipped,
                    child_from_joint: joint.child_from_joint,
                    parent_from_joint: joint.parent_from_joint,
                }
            }
            None => Link {
                mask: JointMask::FREE,
                flipped: false,
                child_from_joint: Pose::IDENTITY,
                parent_from_joint: Pose::IDENTITY,
            },
        }
    }

    /// The pose of the body in its tree parent, at the pose `joint` of the child's joint frame in the parent's.
    pub fn pose(&self, joint: Pose) -> Pose {
        if self.flipped {
            self.child_from_joint.then(joint.inverse()).then(self.parent_from_joint.inverse())
        } else {
            self.parent_from_joint.then(joint).then(self.child_from_joint.inverse())
        }
    }

    /// The child's joint frame in the body, at the pose `joint`.
    pub fn body_from_joint(&self, joint: Pose) -> Pose {
        if self.flipped { self.parent_from_joint.then(joint) } else { self.child_from_joint }
    }

    /// A motion of the child's joint frame against the parent's, as the motion of the body against its tree parent, in body axes at the
    /// centre of mass: `±Ad` of `body_from_joint`. A flipped body moves the other way.
    pub fn carry(&self, body_from_joint: &Pose, motion: Twist) -> Twist {
        let angular = body_from_joint.rotation * motion.angular;
        let linear = body_from_joint.rotation * motion.linear + body_from_joint.translation.cross(angular);
        if self.flipped { Twist::new(-linear, -angular) } else { Twist::new(linear, angular) }
    }

    /// Poses and velocities of both sides of a node's joint at a state.
    fn sides(&self, model: &Model, state: &State, node: &TreeNode) -> Sides {
        match node.joint {
            Some(id) => model.sides(model.joint(id), state),
            None => {
                let s = &state.bodies[node.body.index()];
                Sides { a: s.pose(), a_velocity: s.velocity, b: Pose::IDENTITY, b_velocity: Twist::ZERO }
            }
        }
    }

    /// The pose of the child's joint frame in the parent's.
    fn relative(&self, sides: &Sides) -> Pose {
        let frame_b = sides.b.then(self.parent_from_joint);
        frame_b.inverse().then(sides.a.then(self.child_from_joint))
    }
}

/// Where the numbers of a node lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    position: usize,
    rate: usize,
}

/// The joint coordinates of a whole state: positions and rates of all joints of the tree and of floating bodies, in tree order.
///
/// ```
/// use supple::model::Coordinates;
/// use supple::*;
/// let scene = Scene::parse("robot").unwrap();
/// let mut coordinates = Coordinates::of(&scene.model, &scene.state);
/// let elbow = scene.model.joints().iter().position(|j| j.mask == JointMask::HINGE).unwrap();
/// coordinates.positions_of_mut(JointId(elbow as u32))[0] += 0.1;
/// let mut bent = scene.state.clone();
/// coordinates.write(&scene.model, &mut bent);
/// assert!((bent.joints[elbow].angle - scene.state.joints[elbow].angle - 0.1).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// Lengths \[m\], angles \[rad\] and quaternions x, y, z, w.
    pub positions: Vec<f64>,
    /// \[m/s, rad/s\]
    pub rates: Vec<f64>,
    /// By node, and one more for the ends.
    slots: Vec<Slot>,
    /// By joint: its node; `usize::MAX` where it closes a loop.
    node_of_joint: Vec<usize>,
    /// By body: its node.
    node_of_body: Vec<usize>,
}

impl Coordinates {
    /// All positions zero, hence the two frames of every joint one, at rest.
    pub fn new(model: &Model) -> Coordinates {
        let topology = model.topology();
        let mut slots = vec![Slot { position: 0, rate: 0 }];
        let mut positions = Vec::new();
        let mut node_of_joint = vec![usize::MAX; model.joints().len()];
        for (i, node) in topology.nodes.iter().enumerate() {
            let mask = Link::new(model, node).mask;
            positions.resize(positions.len() + mask.positions(), 0.0);
            if mask.rotation() == RotationKind::Free {
                *positions.last_mut().expect("a quaternion has four numbers") = 1.0;
            }
            slots.push(Slot { position: positions.len(), rate: slots[i].rate + mask.free() });
            if let Some(id) = node.joint {
                node_of_joint[id.index()] = i;
            }
        }
        let rates = vec![0.0; slots[topology.nodes.len()].rate];
        Coordinates { positions, rates, slots, node_of_joint, node_of_body: topology.node_of.clone() }
    }

    /// The coordinates of `state`.
    pub fn of(model: &Model, state: &State) -> Coordinates {
        let mut coordinates = Coordinates::new(model);
        coordinates.read(model, state);
        coordinates
    }

    /// Where the positions of a node of the tree lie.
    pub fn position_range(&self, node: usize) -> Range<usize> {
        self.slots[node].position..self.slots[node + 1].position
    }

    /// Where the rates of a node of the tree lie: also its torques, its accelerations.
    pub fn rate_range(&self, node: usize) -> Range<usize> {
        self.slots[node].rate..self.slots[node + 1].rate
    }

    /// The node of a joint; `None` where it closes a loop.
    pub fn node_of_joint(&self, joint: JointId) -> Option<usize> {
        Some(self.node_of_joint[joint.index()]).filter(|&node| node != usize::MAX)
    }

    fn joint_node(&self, joint: JointId) -> usize {
        self.node_of_joint(joint).expect("the joint closes a loop: it has no coordinates of its own")
    }

    /// The positions of a joint. It must not close a loop.
    pub fn positions_of(&self, joint: JointId) -> &[f64] {
        &self.positions[self.position_range(self.joint_node(joint))]
    }

    /// The positions of a joint, to be changed.
    pub fn positions_of_mut(&mut self, joint: JointId) -> &mut [f64] {
        let range = self.position_range(self.joint_node(joint));
        &mut self.positions[range]
    }

    /// The rates of a joint. It must not close a loop.
    pub fn rates_of(&self, joint: JointId) -> &[f64] {
        &self.rates[self.rate_range(self.joint_node(joint))]
    }

    /// The rates of a joint, to be changed.
    pub fn rates_of_mut(&mut self, joint: JointId) -> &mut [f64] {
        let range = self.rate_range(self.joint_node(joint));
        &mut self.rates[range]
    }

    /// Of the quaternions q and −q in `positions` takes that which is nearer to the one in `before`; both are lists of all positions.
    pub fn align(&self, before: &[f64], positions: &mut [f64]) {
        for node in 0..self.slots.len() - 1 {
            let (range, rates) = (self.position_range(node), self.rate_range(node));
            if range.len() == rates.len() {
                continue; // no quaternion
            }
            let (a, b) = (&before[range.end - 4..range.end], &mut positions[range.end - 4..range.end]);
            if a.iter().zip(&*b).map(|(a, b)| a * b).sum::<f64>() < 0.0 {
                b.iter_mut().for_each(|x| *x = -*x);
            }
        }
    }

    /// The node that leads to a body: its joint, or its six free directions.
    pub fn node_of_body(&self, body: BodyId) -> usize {
        self.node_of_body[body.index()]
    }

    /// Takes the coordinates of `state`. Where a joint is open they are those of the nearest closed pose; what its sides move along
    /// constrained directions is left out.
    pub fn read(&mut self, model: &Model, state: &State) {
        for (i, node) in model.topology().nodes.iter().enumerate() {
            let link = Link::new(model, node);
            let sides = link.sides(model, state, node);
            let relative = link.relative(&sides);
            let last = node.joint.map_or(0.0, |id| state.joints[id.index()].angle);
            let range = self.position_range(i);
            let positions = &mut self.positions[range];
            link.mask.nearest(relative, last, positions);

            // q̇ = Sᵀ F⁻¹ (motion of a − motion of b, at the joint's point on a), F the axes of a's frame
            let frame_a = sides.a.then(link.child_from_joint);
            let r_a = frame_a.translation - sides.a.translation;
            let r_b = frame_a.translation - sides.b.translation;
            let back = frame_a.rotation.conjugate();
            let linear = back * (sides.a_velocity.at(r_a) - sides.b_velocity.at(r_b));
            let angular = back * (sides.a_velocity.angular - sides.b_velocity.angular);
            let directions = link.mask.directions(link.mask.pose(positions).rotation);
            let range = self.rate_range(i);
            for (rate, s) in self.rates[range].iter_mut().zip(directions.iter()) {
                *rate = s.linear.dot(linear) + s.angular.dot(angular);
            }
        }
    }

    /// Places the bodies of `state` by these coordinates, with their velocities, from the roots on; and counts the turns of joints.
    pub fn write(&self, model: &Model, state: &mut State) {
        for (i, node) in model.topology().nodes.iter().enumerate() {
            let link = Link::new(model, node);
            let (positions, rates) = (&self.positions[self.position_range(i)], &self.rates[self.rate_range(i)]);
            let joint = link.mask.pose(positions);
            let parent = node.parent.checked_sub(1).map(|p| model.topology().nodes[p].body);
            let parent = parent.map_or(BodyState::at_rest(Pose::IDENTITY), |p| state.bodies[p.index()]);
            let relative = link.pose(joint);
            let mut pose = parent.pose().then(relative);
            pose.rotation = pose.rotation.normalize();

            // The motion of the child's joint frame against the parent's, at its origin.
            let motion = link.mask.directions(joint.rotation).times(rates);
            let frame = pose.then(link.body_from_joint(joint));
            let sign = if link.flipped { -1.0 } else { 1.0 };
            let angular = parent.velocity.angular + frame.rotation * motion.angular * sign;
            let at_joint =
                parent.velocity.at(frame.translation - parent.position) + frame.rotation * motion.linear * sign;
            let linear = at_joint - angular.cross(frame.translation - pose.translation);
            state.bodies[node.body.index()] = BodyState {
                position: pose.translation,
                orientation: pose.rotation,
                velocity: Twist::new(linear, angular),
            };
            if let Some(id) = node.joint {
                // A hinge may turn by more than half a turn between two poses: its own coordinate has counted.
                let counted = match link.mask.rotation() {
                    RotationKind::Axis(_) => positions[link.mask.free_translations()],
                    _ => model.joint(id).angle_near(joint.rotation, state.joints[id.index()].angle),
                };
                state.joints[id.index()].angle = counted;
            }
        }
        for id in &model.topology().loops {
            let turned = state.relative_rotation(model, model.joint(*id));
            let joint = &mut state.joints[id.index()];
            joint.angle = model.joint(*id).angle_near(turned, joint.angle);
        }
    }

    /// Moves all positions with the present rates for `h`.
    pub fn advance(&mut self, model: &Model, h: f64) {
        for (i, node) in model.topology().nodes.iter().enumerate() {
            let mask = Link::new(model, node).mask;
            let (positions, rates) = (self.position_range(i), self.rate_range(i));
            mask.advance(&mut self.positions[positions], &self.rates[rates], h);
        }
    }
}
