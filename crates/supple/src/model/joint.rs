//! Joints: which relative motions they forbid, by how much they are violated, and the rows that say so.
//!
//! This is the only file that knows the kinds of joint. A joint holds side `a` (the child body) to side `b` (the
//! parent body or the world) through a frame on each. X of a joint frame is its main axis: the axis of a hinge, the
//! direction of a slider, the twist axis of a ball, the normal of a plane. A joint is a mask of constrained
//! directions [Faure 1998, §3.1]; the names are presets.
//!
//! Every row is bilinear in vectors carried by the two bodies, so its derivative is exact and simple. With
//! `r` the levers from the centres of mass, `d = p_a − p_b` and axes `a_k`, `b_k` of the two frames:
//!
//! | constrained | residual C | row of a `[linear; angular]` | row of b |
//! |---|---|---|---|
//! | all translations | `d` (world axes) | `[I, −[r_a]]` | `[−I, [r_b]]` |
//! | translation k | `b_k·d` | `[b_k, r_a×b_k]` | `[−b_k, −(r_b+d)×b_k]` |
//! | one rotation i | `a_{i+2}·b_{i+1}` | `[0, a_{i+2}×b_{i+1}]` | negative |
//! | two rotations, i free | `a_i·b_{i+1}`, `a_i·b_{i+2}` | `[0, a_i×b_k]` | negative |
//! | three rotations | `a_x·b_y`, `a_y·b_z`, `a_z·b_x` | `[0, a_i×b_{i+1}]` | negative |
//!
//! These rows say how a closed joint moves. They vanish also where a joint is far from closed (a weld or a hinge at half a turn), so
//! they cannot lead a broken pose home: [`Joint::errors`] can, with angles in place of sines. With `B` the axes of b's frame, `G` of
//! `maths/rotation.rs` and `y, z, c` the parts of `a_i` along `b_{i+1}, b_{i+2}, b_i`:
//!
//! | constrained | error | row of a, angular; of b its negative |
//! |---|---|---|
//! | one rotation i | `atan2(C, |u×w|)`, `C = u·w`, `u = a_{i+2}`, `w = b_{i+1}` | `(u×w)/|u×w|` |
//! | two rotations, i free | `θ e`, `e = (y, z)/s`, `s = |(y, z)|`, `θ = atan2(s, c)` | `(θ/s) a_i×b_k + e_k (1 − θc/s) n`, `n = b_i×a_i/s` |
//! | three rotations | `φ = log(Bᵀ A)` | `G(φ) Bᵀ` |
//!
//! To first order about a closed joint they are the rows above (the three of a weld: the same space).

use super::{BodyId, Limits, Motor, RotationSpring, SlideSpring};
use crate::maths::block::Block;
use crate::maths::rotation::{fast_log, log, log_derivative, skew};
use crate::maths::{Pose, Twist};
use glam::{DMat3, DQuat, DVec3};

/// The constrained directions of a joint, in its frame: three translations, three rotations.
///
/// ```
/// use supple::JointMask;
/// assert_eq!(JointMask::HINGE.rows(), 5);
/// assert_eq!(JointMask::BALL.free(), 3);
/// assert_eq!(JointMask::from_bits(0b000111), JointMask::BALL);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JointMask(u8);

impl JointMask {
    /// Translation along X is constrained.
    pub const TX: u8 = 1;
    /// Translation along Y is constrained.
    pub const TY: u8 = 2;
    /// Translation along Z is constrained.
    pub const TZ: u8 = 4;
    /// Rotation about X is constrained.
    pub const RX: u8 = 8;
    /// Rotation about Y is constrained.
    pub const RY: u8 = 16;
    /// Rotation about Z is constrained.
    pub const RZ: u8 = 32;

    /// The points coincide; all rotations are free.
    pub const BALL: JointMask = JointMask(7);
    /// Rotation about X only.
    pub const HINGE: JointMask = JointMask(7 | Self::RY | Self::RZ);
    /// Two rotations, about Y of the parent's frame and Z of the child's; twist about X is blocked (Cardan joint).
    pub const UNIVERSAL: JointMask = JointMask(7 | Self::RX);
    /// Nothing is free.
    pub const WELD: JointMask = JointMask(63);
    /// Translation along X only.
    pub const PRISMATIC: JointMask = JointMask(63 & !Self::TX);
    /// Translation along X and rotation about X.
    pub const CYLINDRICAL: JointMask = JointMask(63 & !Self::TX & !Self::RX);
    /// Two planes stay on each other: translations along Y and Z, rotation about X.
    pub const PLANAR: JointMask = JointMask(Self::TX | Self::RY | Self::RZ);
    /// The child's point stays on the parent's X line; all rotations are free.
    pub const POINT_ON_LINE: JointMask = JointMask(Self::TY | Self::TZ);
    /// The child's point stays in the parent's plane normal to X; all rotations are free.
    pub const POINT_ON_PLANE: JointMask = JointMask(Self::TX);
    /// Nothing is constrained: a floating body, or a place for springs.
    pub const FREE: JointMask = JointMask(0);

    /// The presets with their names.
    pub const PRESETS: [(&'static str, JointMask); 10] = [
        ("ball", Self::BALL),
        ("hinge", Self::HINGE),
        ("universal", Self::UNIVERSAL),
        ("weld", Self::WELD),
        ("prismatic", Self::PRISMATIC),
        ("cylindrical", Self::CYLINDRICAL),
        ("planar", Self::PLANAR),
        ("point-on-line", Self::POINT_ON_LINE),
        ("point-on-plane", Self::POINT_ON_PLANE),
        ("free", Self::FREE),
    ];

    /// Any of the 64 masks; bits as in [`JointMask::TX`] and its fellows.
    pub const fn from_bits(bits: u8) -> JointMask {
        JointMask(bits & 63)
    }

    /// The six bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The preset's name, or the constrained directions (`tx ry`).
    pub fn name(self) -> String {
        if let Some((name, _)) = Self::PRESETS.iter().find(|(_, mask)| *mask == self) {
            return (*name).to_owned();
        }
        let words = ["tx", "ty", "tz", "rx", "ry", "rz"];
        (0..6).filter(|k| self.0 >> k & 1 == 1).map(|k| words[k]).collect::<Vec<_>>().join(" ")
    }

    /// Number of constrained directions.
    pub const fn rows(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Number of constrained translations.
    pub const fn translations(self) -> usize {
        (self.0 & 7).count_ones() as usize
    }

    /// Number of free directions.
    pub const fn free(self) -> usize {
        6 - self.rows()
    }

    /// Whether translation along axis `k` of the parent's frame is constrained.
    pub const fn holds_translation(self, k: usize) -> bool {
        self.0 >> k & 1 == 1
    }

    /// Number of constrained translations.
    pub const fn held_translations(self) -> usize {
        (self.0 & 7).count_ones() as usize
    }

    /// Whether all three translations are constrained.
    pub const fn holds_point(self) -> bool {
        self.0 & 7 == 7
    }

    /// What the joint does to rotation.
    pub const fn rotation(self) -> RotationKind {
        match self.0 >> 3 {
            0 => RotationKind::Free,
            1 => RotationKind::Cardan(0),
            2 => RotationKind::Cardan(1),
            4 => RotationKind::Cardan(2),
            6 => RotationKind::Axis(0),
            5 => RotationKind::Axis(1),
            3 => RotationKind::Axis(2),
            _ => RotationKind::Held,
        }
    }
}

/// How a joint constrains rotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RotationKind {
    /// Not at all.
    Free,
    /// Rotation about axis i is blocked: axis i+2 of the child stays perpendicular to axis i+1 of the parent.
    Cardan(usize),
    /// Only rotation about axis i is free.
    Axis(usize),
    /// Rotation is held.
    Held,
}

/// A joint of the [`Model`](crate::Model).
#[derive(Clone, Debug)]
pub struct Joint {
    /// Unique among the joints.
    pub name: String,
    /// Side a.
    pub child: BodyId,
    /// Side b; `None` is the world.
    pub parent: Option<BodyId>,
    /// The constrained directions.
    pub mask: JointMask,
    /// The joint's frame in the child's body coordinates (origin at the centre of mass, link axes).
    pub child_from_joint: Pose,
    /// The joint's frame in the parent's body coordinates, or in the world.
    pub parent_from_joint: Pose,
    /// Spring and damper on the free rotations.
    pub rotation_spring: RotationSpring,
    /// Spring and damper on the free translations.
    pub slide_spring: SlideSpring,
    /// Ranges and the swing ellipse.
    pub limits: Limits,
    /// Motor or servo on the free directions.
    pub motor: Option<Motor>,
    /// Whether the two bodies it joins may touch each other.
    pub collide: bool,
}

/// One scalar constraint row: `C` and its derivative with respect to the motion of both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// `C`, metres for translations, sines of angles for rotations.
    pub residual: f64,
    /// Row of a, [linear; angular].
    pub a: Twist,
    /// Row of b; meaningless for the world.
    pub b: Twist,
    /// `d²C/dt²` at zero acceleration: `J̇ V`.
    pub bias: f64,
}

/// The rows of one joint at one pose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    rows: [Row; 6],
    count: usize,
}

impl Rows {
    fn push(&mut self, row: Row) {
        self.rows[self.count] = row;
        self.count += 1;
    }
}

impl std::ops::Deref for Rows {
    type Target = [Row];
    fn deref(&self) -> &[Row] {
        &self.rows[..self.count]
    }
}

/// One direction that is to be closed: how far it is off, and how that changes with the motion of both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorRow {
    /// \[m, rad\]
    pub error: f64,
    /// Row of a, [linear; angular].
    pub a: Twist,
    /// Row of b; meaningless for the world.
    pub b: Twist,
}

/// The errors of one joint at one pose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    rows: [ErrorRow; 6],
    count: usize,
}

impl Errors {
    fn push(&mut self, row: ErrorRow) {
        self.rows[self.count] = row;
        self.count += 1;
    }

    /// A direction about which the child turns against the parent.
    fn push_turn(&mut self, error: f64, axis: DVec3) {
        self.push(ErrorRow { error, a: Twist::new(DVec3::ZERO, axis), b: Twist::new(DVec3::ZERO, -axis) });
    }
}

impl std::ops::Deref for Errors {
    type Target = [ErrorRow];
    fn deref(&self) -> &[ErrorRow] {
        &self.rows[..self.count]
    }
}

/// What is to be held between two bodies, or a body and the world: a joint, a joint whose motion is prescribed, a grip.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// The constrained directions.
    pub mask: JointMask,
    /// The frame on the child, in its body coordinates.
    pub child_from_joint: Pose,
    /// The frame on the parent, in its body coordinates, or in the world.
    pub parent_from_joint: Pose,
}

impl Hold {
    /// The errors at the poses `a` of the child and `b` of the parent: first translations, then rotations. All zero: closed.
    pub fn errors(&self, a: Pose, b: Pose) -> Errors {
        let mut errors = Errors::default();
        let r_a = a.rotation * self.child_from_joint.translation;
        let r_b = b.rotation * self.parent_from_joint.translation;
        let d = a.translation + r_a - b.translation - r_b;
        let (q_a, q_b) = (a.rotation * self.child_from_joint.rotation, b.rotation * self.parent_from_joint.rotation);
        let frame_b = DMat3::from_quat(q_b);
        for k in 0..3 {
            if self.mask.holds_point() {
                let t = DVec3::AXES[k];
                let (a, b) = (Twist::new(t, r_a.cross(t)), Twist::new(-t, -r_b.cross(t)));
                errors.push(ErrorRow { error: d[k], a, b });
            } else if self.mask.holds_translation(k) {
                let t = frame_b.col(k);
                let (a, b) = (Twist::new(t, r_a.cross(t)), Twist::new(-t, -(r_b + d).cross(t)));
                errors.push(ErrorRow { error: t.dot(d), a, b });
            }
        }
        match self.mask.rotation() {
            RotationKind::Free => {}
            RotationKind::Cardan(i) => {
                // asin(u·w); where u lies along w any direction across them opens the angle
                let (u, w) = (q_a * DVec3::AXES[(i + 2) % 3], frame_b.col((i + 1) % 3));
                let (cosine, across) = (u.dot(w), u.cross(w));
                let sine = across.length();
                let axis = if sine > SMALLEST_SINE { across / sine } else { u.any_orthonormal_vector() };
                errors.push_turn(cosine.atan2(sine), axis);
            }
            RotationKind::Axis(i) => {
                let axes = [frame_b.col(i), frame_b.col((i + 1) % 3), frame_b.col((i + 2) % 3)];
                let axis = q_a * DVec3::AXES[i];
                let [c, y, z] = axes.map(|b| axis.dot(b));
                let s = y.hypot(z);
                let angle = s.atan2(c);
                // e = (y, z)/s; opposed axes may turn home either way
                let e = if s > SMALLEST_SINE { [y / s, z / s] } else { [1.0, 0.0] };
                // θ/s: 1 where the axes agree; it grows without bound towards opposed axes, where a little tilt decides which way is
                // shorter, and is kept finite there
                let ratio = match (c > 0.0, s > SMALLEST_SINE) {
                    (true, false) => 1.0,
                    (true, true) => angle / s,
                    (false, _) => angle / s.max(OPPOSED_SINE),
                };
                let home = axes[2] * e[0] - axes[1] * e[1];
                for k in 0..2 {
                    let error = if c > 0.0 { ratio * [y, z][k] } else { angle * e[k] };
                    let row = axis.cross(axes[k + 1]) * ratio + home * (e[k] * (1.0 - ratio * c));
                    errors.push_turn(error, row);
                }
            }
            RotationKind::Held => {
                let phi = log(q_b.conjugate() * q_a);
                let rows = frame_b * log_derivative(phi).transpose();
                for k in 0..3 {
                    errors.push_turn(phi[k], rows.col(k));
                }
            }
        }
        errors
    }
}

/// Below this sine two axes have no common perpendicular to rely on.
const SMALLEST_SINE: f64 = 1e-9;
/// Axes within this sine of being opposed (3°) get the rows of axes at it: the exact ones have no bound.
const OPPOSED_SINE: f64 = 0.05;

/// Where the two sides of a joint are.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    /// Pose of a.
    pub a: Pose,
    /// Velocity of a.
    pub a_velocity: Twist,
    /// Pose of b (identity for the world).
    pub b: Pose,
    /// Velocity of b (zero for the world).
    pub b_velocity: Twist,
}

impl Joint {
    /// The constraint rows at these poses: first translations, then rotations.
    pub fn rows(&self, sides: &Sides) -> Rows {
        let Sides { a, a_velocity: va, b, b_velocity: vb } = *sides;
        let (wa, wb) = (va.angular, vb.angular);
        let mut rows = Rows::default();

        let r_a = a.rotation * self.child_from_joint.translation;
        let r_b = b.rotation * self.parent_from_joint.translation;
        let d = a.translation + r_a - b.translation - r_b;
        let d_rate = va.at(r_a) - vb.at(r_b);
        let d_bias = wa.cross(wa.cross(r_a)) - wb.cross(wb.cross(r_b));
        let frame_b = DMat3::from_quat(b.rotation * self.parent_from_joint.rotation);
        for k in 0..3 {
            if !self.mask.holds_translation(k) {
                continue;
            }
            if self.mask.holds_point() {
                let t = DVec3::AXES[k];
                rows.push(Row {
                    residual: d[k],
                    a: Twist::new(t, r_a.cross(t)),
                    b: Twist::new(-t, -r_b.cross(t)),
                    bias: d_bias[k],
                });
            } else {
                let t = frame_b.col(k);
                let t_rate = wb.cross(t);
                rows.push(Row {
                    residual: t.dot(d),
                    a: Twist::new(t, r_a.cross(t)),
                    b: Twist::new(-t, -(r_b + d).cross(t)),
                    bias: t.dot(d_bias) + 2.0 * t_rate.dot(d_rate) + wb.cross(t_rate).dot(d),
                });
            }
        }

        let frame_a = DMat3::from_quat(a.rotation * self.child_from_joint.rotation);
        for &(i, k) in rotation_pairs(self.mask.rotation()) {
            // C = u·w with u carried by a, w by b;  Ċ = (u×w)·(ω_a − ω_b)
            let (u, w) = (frame_a.col(i), frame_b.col(k));
            let direction = u.cross(w);
            let (u_rate, w_rate) = (wa.cross(u), wb.cross(w));
            rows.push(Row {
                residual: u.dot(w),
                a: Twist::new(DVec3::ZERO, direction),
                b: Twist::new(DVec3::ZERO, -direction),
                bias: wa.cross(u_rate).dot(w) + 2.0 * u_rate.dot(w_rate) + u.dot(wb.cross(w_rate)),
            });
        }
        rows
    }

    /// How the impulses `Jᵀ y` of these [`rows`](Self::rows) on both sides change as the sides move and turn, world axes: on a by a, on a by b, on b by
    /// a, on b by b. The two in the middle are each other's transpose.
    pub(crate) fn impulse_derivative(&self, sides: &Sides, y: &[f64; 6]) -> [Block; 4] {
        let (a, b) = (sides.a, sides.b);
        let r_a = a.rotation * self.child_from_joint.translation;
        let r_b = b.rotation * self.parent_from_joint.translation;
        let (frame_a, frame_b) = (
            DMat3::from_quat(a.rotation * self.child_from_joint.rotation),
            DMat3::from_quat(b.rotation * self.parent_from_joint.rotation),
        );
        let held: usize = self.mask.translations();
        let mut pull = DVec3::ZERO;
        for (y, k) in y.iter().zip((0..3).filter(|&k| self.mask.holds_translation(k))) {
            pull += if self.mask.holds_point() { DVec3::AXES[k] } else { frame_b.col(k) } * *y;
        }
        let (f, arm) = (skew(pull), skew(r_a));
        let zero = DMat3::ZERO;
        let (mut aa, mut ab, mut bb) = (f * arm, zero, -(f * skew(r_b)));
        let along = if self.mask.holds_point() { zero } else { f };
        if !self.mask.holds_point() {
            // Axes that turn with b, at a's point
            let s = a.translation + r_a - b.translation;
            (ab, bb) = (-(arm * f), skew(s) * f);
        }
        for (&(i, k), y) in rotation_pairs(self.mask.rotation()).iter().zip(&y[held..]) {
            let (u, w) = (skew(frame_a.col(i)), skew(frame_b.col(k)));
            aa += w * u * *y;
            ab -= u * w * *y;
            bb += u * w * *y;
        }
        [
            Block::from_quarters(zero, zero, zero, aa),
            Block::from_quarters(zero, -along, zero, ab),
            Block::from_quarters(zero, zero, along, ab.transpose()),
            Block::from_quarters(zero, along, -along, bb),
        ]
    }

    /// How far the joint is from closed, and the rows that lead home from any pose: an error of zero means closed, at half a turn
    /// too. First translations, then rotations.
    pub fn errors(&self, sides: &Sides) -> Errors {
        self.hold().errors(sides.a, sides.b)
    }

    /// What the joint holds.
    pub fn hold(&self) -> Hold {
        Hold { mask: self.mask, child_from_joint: self.child_from_joint, parent_from_joint: self.parent_from_joint }
    }

    /// The rotation of the child's joint frame in the parent's: identity when the frames are aligned.
    pub fn relative_rotation(&self, a: DQuat, b: DQuat) -> DQuat {
        (b * self.parent_from_joint.rotation).conjugate() * (a * self.child_from_joint.rotation)
    }

    /// How far the child's point is from the parent's, in the parent's joint axes \[m\].
    pub fn relative_translation(&self, a: Pose, b: Pose) -> DVec3 {
        let p_a = a.transform_point(self.child_from_joint.translation);
        let p_b = b.transform_point(self.parent_from_joint.translation);
        (b.rotation * self.parent_from_joint.rotation).conjugate() * (p_a - p_b)
    }

    /// How far the joint is open: distance along constrained translations \[m\] and angle across constrained
    /// rotations \[rad, by its sine\]; at least 1 where the joint is out of joint.
    pub fn gap(&self, a: Pose, b: Pose) -> (f64, f64) {
        let mut d = self.relative_translation(a, b);
        for k in 0..3 {
            if !self.mask.holds_translation(k) {
                d[k] = 0.0;
            }
        }
        let (frame_a, frame_b) = (
            DMat3::from_quat(a.rotation * self.child_from_joint.rotation),
            DMat3::from_quat(b.rotation * self.parent_from_joint.rotation),
        );
        let squared: f64 =
            rotation_pairs(self.mask.rotation()).iter().map(|&(i, k)| frame_a.col(i).dot(frame_b.col(k)).powi(2)).sum();
        let least = if self.is_apart(frame_a, frame_b) { 1.0 } else { 0.0 };
        (d.length(), squared.sqrt().max(least))
    }

    /// Whether the axes that the joint holds together are so far apart that its rows no longer say how to close it.
    pub fn is_out_of_joint(&self, a: DQuat, b: DQuat) -> bool {
        self.is_apart(
            DMat3::from_quat(a * self.child_from_joint.rotation),
            DMat3::from_quat(b * self.parent_from_joint.rotation),
        )
    }

    fn is_apart(&self, frame_a: DMat3, frame_b: DMat3) -> bool {
        let apart = |k: usize| frame_a.col(k).dot(frame_b.col(k)) <= SMALLEST_COSINE;
        match self.mask.rotation() {
            RotationKind::Free => false,
            RotationKind::Cardan(k) => {
                frame_a.col((k + 2) % 3).cross(frame_b.col((k + 1) % 3)).length() < SMALLEST_COSINE
            }
            RotationKind::Axis(k) => apart(k),
            RotationKind::Held => (0..3).any(apart),
        }
    }

    /// The axis about which the joint counts turns: that of a hinge, or the twist axis X of a joint with free rotation
    /// and a range of twist; `None` for all others, whose [`JointState::angle`](super::JointState::angle) stays 0.
    pub fn turning_axis(&self) -> Option<usize> {
        match self.mask.rotation() {
            RotationKind::Axis(i) => Some(i),
            RotationKind::Free if self.limits.angle.is_some() => Some(0),
            _ => None,
        }
    }

    /// Whether the joint has one [`position`](Self::position) that motors move and couplings hold.
    pub fn has_position(&self) -> bool {
        match self.mask.rotation() {
            RotationKind::Axis(_) => true,
            RotationKind::Held => !self.mask.holds_translation(0),
            RotationKind::Free | RotationKind::Cardan(_) => false,
        }
    }

    /// The angle of a hinge nearest `last` \[rad\], or the position of a slider along X of the parent's frame, `s = b_x·d` \[m\], with its
    /// rows on child and parent.
    pub fn position(&self, sides: &Sides, last: f64) -> Option<(f64, Twist, Twist)> {
        let Sides { a, b, .. } = *sides;
        match self.mask.rotation() {
            RotationKind::Axis(i) => {
                let g = a.rotation * self.child_from_joint.rotation * DVec3::AXES[i];
                let angle = self.angle_near(self.relative_rotation(a.rotation, b.rotation), last);
                Some((angle, Twist::new(DVec3::ZERO, g), Twist::new(DVec3::ZERO, -g)))
            }
            RotationKind::Held if !self.mask.holds_translation(0) => {
                let (r_a, r_b) =
                    (a.rotation * self.child_from_joint.translation, b.rotation * self.parent_from_joint.translation);
                let d = a.translation + r_a - b.translation - r_b;
                let t = b.rotation * self.parent_from_joint.rotation * DVec3::X;
                Some((t.dot(d), Twist::new(t, r_a.cross(t)), Twist::new(-t, -(r_b + d).cross(t))))
            }
            _ => None,
        }
    }

    /// The rotation vector by which a child on a spring of more than one rotation is turned from rest, the short way round, in the parent's axes \[rad\].
    pub(crate) fn turns_from_rest(&self, relative: DQuat) -> Option<DVec3> {
        let spring = &self.rotation_spring;
        let turns = matches!(self.mask.rotation(), RotationKind::Free | RotationKind::Cardan(_));
        let springs = turns && (spring.stiffness > 0.0 || spring.damping > 0.0);
        springs.then(|| self.parent_from_joint.rotation * fast_log(relative * spring.rest.conjugate()))
    }

    /// The angle about [`turning_axis`](Self::turning_axis), of all its values the one nearest `last` \[rad\].
    pub fn angle_near(&self, relative: DQuat, last: f64) -> f64 {
        let Some(axis) = self.turning_axis() else { return 0.0 };
        let angle = twist_angle(relative, axis);
        angle + std::f64::consts::TAU * ((last - angle) / std::f64::consts::TAU).round()
    }
}

/// Held axes farther apart than this cosine are out of joint.
pub const SMALLEST_COSINE: f64 = 1e-3;

/// The pairs (axis of the child's frame, axis of the parent's) that must stay perpendicular.
pub fn rotation_pairs(kind: RotationKind) -> &'static [(usize, usize)] {
    match kind {
        RotationKind::Free => &[],
        RotationKind::Cardan(0) => &[(2, 1)],
        RotationKind::Cardan(1) => &[(0, 2)],
        RotationKind::Cardan(_) => &[(1, 0)],
        RotationKind::Axis(0) => &[(0, 1), (0, 2)],
        RotationKind::Axis(1) => &[(1, 2), (1, 0)],
        RotationKind::Axis(_) => &[(2, 0), (2, 1)],
        RotationKind::Held => &[(0, 1), (1, 2), (2, 0)],
    }
}

/// The twist of `relative` about axis `k`, in (−π, π] \[rad\].
pub fn twist_angle(relative: DQuat, k: usize) -> f64 {
    let v = [relative.x, relative.y, relative.z][k];
    let (v, w) = if relative.w < 0.0 { (-v, -relative.w) } else { (v, relative.w) };
    2.0 * v.atan2(w)
}

/// Swing and twist of `relative = swing · twist(X)`: the swing as a rotation vector `(s1, s2)` about Y and Z, the
/// twist angle about X \[rad\].
///
/// ```
/// use glam::{DQuat, DVec3};
/// use supple::model::joint::swing_twist;
/// let q = DQuat::from_scaled_axis(DVec3::new(0.0, 0.3, -0.4)) * DQuat::from_rotation_x(0.7);
/// let (s1, s2, twist) = swing_twist(q);
/// assert!((s1 - 0.3).abs() < 1e-14 && (s2 + 0.4).abs() < 1e-14 && (twist - 0.7).abs() < 1e-14);
/// ```
pub fn swing_twist(relative: DQuat) -> (f64, f64, f64) {
    let q = if relative.w < 0.0 { -relative } else { relative };
    let w_s = q.w.hypot(q.x);
    if w_s < 1e-12 {
        // half a turn of swing: the twist is undetermined; take none
        return (std::f64::consts::PI * q.y, std::f64::consts::PI * q.z, 0.0);
    }
    let (c, s) = (q.w / w_s, q.x / w_s);
    let (y, z) = (c * q.y - s * q.z, s * q.y + c * q.z);
    let sin_half = y.hypot(z);
    let scale = if sin_half < 1e-9 { 2.0 / w_s } else { 2.0 * sin_half.atan2(w_s) / sin_half };
    (scale * y, scale * z, 2.0 * s.atan2(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maths::block::from_twist;
    use crate::maths::rotation::exp;

    fn hold(bits: u8) -> Hold {
        Hold {
            mask: JointMask::from_bits(bits),
            child_from_joint: Pose::new(exp(DVec3::new(0.4, -0.3, 0.9)), DVec3::new(0.2, -0.1, 0.05)),
            parent_from_joint: Pose::new(exp(DVec3::new(-0.7, 0.5, 0.2)), DVec3::new(-0.3, 0.15, 0.1)),
        }
    }

    /// Poses of both sides at which the joint is open by `gap` and its frames are turned by `turn` against each other.
    fn opened(hold: &Hold, gap: DVec3, turn: DVec3) -> (Pose, Pose) {
        let b = Pose::new(exp(DVec3::new(0.3, 1.1, -0.6)), DVec3::new(0.5, -0.2, 0.7));
        let a = b.then(hold.parent_from_joint).then(Pose::new(exp(turn), gap)).then(hold.child_from_joint.inverse());
        (a, b)
    }

    fn axes() -> impl Iterator<Item = DVec3> {
        (0..12).map(|i| {
            let f = f64::from(i);
            DVec3::new((1.3 * f).sin(), (2.1 * f + 1.0).cos(), (0.7 * f + 0.3).sin()).normalize()
        })
    }

    fn moved(pose: Pose, k: usize, by: f64) -> Pose {
        match k {
            0..3 => Pose::new(pose.rotation, pose.translation + DVec3::AXES[k] * by),
            _ => Pose::new(exp(DVec3::AXES[k - 3] * by) * pose.rotation, pose.translation),
        }
    }

    #[test]
    fn error_rows_match_central_differences() {
        let step = 1e-6; // central differences: error about step² |C‴| + 1e-16/step; |C‴| grows to 1e4 towards opposed axes
        let part = |t: Twist, k: usize| if k < 3 { t.linear[k] } else { t.angular[k - 3] };
        let mut worst = 0.0f64;
        for bits in 0..64 {
            let hold = hold(bits);
            for angle in [0.0, 1e-10, 1e-3, 0.3, 1.0, 2.0, 170f64.to_radians()] {
                for axis in axes() {
                    let (a, b) = opened(&hold, DVec3::new(0.1, -0.2, 0.3), axis * angle);
                    let rows = hold.errors(a, b);
                    assert_eq!(rows.len(), hold.mask.rows());
                    for k in 0..6 {
                        let ahead = [hold.errors(moved(a, k, step), b), hold.errors(a, moved(b, k, step))];
                        let behind = [hold.errors(moved(a, k, -step), b), hold.errors(a, moved(b, k, -step))];
                        for (i, row) in rows.iter().enumerate() {
                            for (side, row) in [row.a, row.b].into_iter().enumerate() {
                                let slope = (ahead[side][i].error - behind[side][i].error) / (2.0 * step);
                                let off = (slope - part(row, k)).abs();
                                worst = worst.max(off);
                                assert!(off < 2e-8, "mask {bits}, {angle} about {axis}, row {i}, side {side}: {off:e}");
                            }
                        }
                    }
                }
            }
        }
        println!("worst difference {worst:.1e}");
    }

    #[test]
    fn errors_are_zero_only_where_the_joint_is_closed() {
        // Directions of rotation that a mask leaves free, as turns of the frames; closed there at every angle.
        for bits in 0..64 {
            let hold = hold(bits);
            let total = |turn: DVec3| {
                let (a, b) = opened(&hold, DVec3::ZERO, turn);
                hold.errors(a, b).iter().map(|row| row.error.powi(2)).sum::<f64>().sqrt()
            };
            for angle in [1.0, 2.0, 2.9, std::f64::consts::PI] {
                for k in 0..3 {
                    let found = total(DVec3::AXES[k] * angle);
                    let wanted = match hold.mask.rotation() {
                        RotationKind::Free => 0.0,
                        RotationKind::Held => angle,
                        RotationKind::Axis(i) if i == k => 0.0,
                        RotationKind::Axis(_) => angle,
                        // Half a turn about the blocked axis is one about each free axis: the joint can go there.
                        RotationKind::Cardan(i) if i == k => angle.sin().asin(),
                        RotationKind::Cardan(_) => 0.0,
                    };
                    // A few roundings, of a sine at its flat top by their root.
                    assert!((found - wanted).abs() < 1e-7, "mask {bits}: {found}, wanted {wanted}");
                }
                // A third of a turn about the diagonal exchanges the axes: the rows of a weld vanish, its errors do not.
                let third = DVec3::ONE.normalize() * (2.0 / 3.0 * std::f64::consts::PI);
                if hold.mask.rotation() == RotationKind::Held {
                    assert!(total(third) > 2.0 && total(-third) > 2.0);
                }
            }
        }
    }

    #[test]
    fn rows_of_a_little_opened_joint_are_those_of_a_closed_one() {
        for (bits, opening) in (0..64u8).flat_map(|bits| [1e-9, 1e-11].map(|opening| (bits, opening))) {
            let hold = hold(bits);
            let joint = joint(&hold);
            let (a, b) = opened(&hold, DVec3::splat(opening), DVec3::new(1.0, -2.0, 1.5) * opening);
            let sides = Sides { a, a_velocity: Twist::ZERO, b, b_velocity: Twist::ZERO };
            if hold.mask.rotation() == RotationKind::Held {
                continue; // other combinations of the same three directions
            }
            for (row, error) in joint.rows(&sides).iter().zip(joint.errors(&sides).iter()) {
                // Both are linear in openings of 1e-9 and less; what differs is of second order and rounding of numbers below 1.
                assert!((row.residual - error.error).abs() < 1e-15, "mask {bits}");
                assert!((row.a.angular - error.a.angular).length() < 1e-8, "mask {bits}");
                assert!((row.b.angular - error.b.angular).length() < 1e-8, "mask {bits}");
            }
        }
    }

    #[test]
    fn derivatives_of_impulses_match_central_differences() {
        // Multipliers below 2, levers below 1: third derivatives below 10, so 1e-11, and rounding of 1e-16/1e-6.
        let step = 1e-6;
        let y: [f64; 6] = std::array::from_fn(|k| (1.7 * k as f64 + 0.4).sin() * 2.0);
        for bits in 0..64u8 {
            let hold = hold(bits);
            let joint = joint(&hold);
            let (a, b) = opened(&hold, DVec3::new(0.02, -0.03, 0.01), DVec3::new(0.1, -0.2, 0.15));
            let sides = |a: Pose, b: Pose| Sides { a, a_velocity: Twist::ZERO, b, b_velocity: Twist::ZERO };
            let impulses = |a: Pose, b: Pose| {
                let mut sum = [Twist::ZERO; 2];
                for (row, &y) in joint.rows(&sides(a, b)).iter().zip(&y) {
                    sum[0] = sum[0] + row.a * y;
                    sum[1] = sum[1] + row.b * y;
                }
                sum.map(from_twist)
            };
            let derivative = joint.impulse_derivative(&sides(a, b), &y);
            for (by, col) in (0..2).flat_map(|by| (0..6).map(move |col| (by, col))) {
                let at = |by_step: f64| match by {
                    0 => impulses(moved(a, col, by_step), b),
                    _ => impulses(a, moved(b, col, by_step)),
                };
                let (plus, minus) = (at(step), at(-step));
                for (on, row) in (0..2).flat_map(|on| (0..6).map(move |row| (on, row))) {
                    let difference = (plus[on][row] - minus[on][row]) / (2.0 * step);
                    let exact = derivative[2 * on + by].get(row, col);
                    assert!((difference - exact).abs() < 1e-8, "mask {bits}: {on} by {by}: {exact}, not {difference}");
                }
            }
        }
    }

    fn joint(hold: &Hold) -> Joint {
        let mut builder = crate::ModelBuilder::new();
        builder.body(crate::BodySpec::new("a").mass(1.0).inertia(DMat3::IDENTITY, DVec3::ZERO));
        builder.joint(crate::JointSpec::new("j", hold.mask, "a", crate::BodyRef::World));
        let mut joint = builder.build().unwrap().joints()[0].clone();
        (joint.child_from_joint, joint.parent_from_joint) = (hold.child_from_joint, hold.parent_from_joint);
        joint
    }

    #[test]
    fn a_joint_at_half_a_turn_is_seen_to_be_open() {
        for bits in 0..64u8 {
            let hold = hold(bits);
            let joint = joint(&hold);
            let tilt = |turn: DVec3| {
                let (a, b) = opened(&hold, DVec3::ZERO, turn);
                joint.gap(a, b).1
            };
            for k in 0..3 {
                let half = tilt(DVec3::AXES[k] * std::f64::consts::PI);
                match hold.mask.rotation() {
                    RotationKind::Held => assert!(half >= 1.0, "mask {bits}: {half}"),
                    RotationKind::Axis(i) if i != k => assert!(half >= 1.0, "mask {bits}: {half}"),
                    _ => assert!(half < 1e-15, "mask {bits}: {half}"),
                }
            }
            if hold.mask.rotation() == RotationKind::Held {
                assert!(tilt(DVec3::ONE.normalize() * (2.0 / 3.0 * std::f64::consts::PI)) >= 1.0);
            }
            // A closed joint has none.
            assert!(tilt(DVec3::ZERO) < 1e-15);
        }
    }
}
