//! Forces with their derivatives: springs, dampers, limits, motors, trackers, drags, and the gyroscopic term.
//!
//! What a spring, limit or motor does at a value of its coordinate is told by [`model::laws`](crate::model::laws); here are the coordinates, and the rows by
//! which forces act on bodies. Every force acts between a side a and a side b (a body or the world) and is told by what an implicit step needs,
//!
//! ```text
//! W(q ⊕ δ, V) ≈ W − K δ − D V,      A += h² K + h D,      b += h W                          [Hernández 2011, eq. 3, 4]
//! ```
//! where `δ` turns from the left in world axes. `W` leaves out what is linear in velocity: that enters A alone. There are
//! three shapes: [`Along`] a row (hinge angles, slides, limits, motors), [`Turning`] (all rotations at once) and [`Anchored`]
//! (a point against a point). Gravity and given wrenches have no derivative and are added where the system is assembled.
//!
//! Symbols: `φ` rotation vector of an error; `G` the derivative of the logarithm and `S` its symmetric part
//! (`maths/rotation.rs`); `a_k`, `b_k` world axes of the child's and the parent's joint frame; `r` levers from the centres of
//! mass; `d = p_a − p_b`; `[x]` the cross-product matrix of x.

use crate::input::{Input, JointInput};
use crate::maths::block::{Block, Vector, from_twist};
use crate::maths::rotation::{log, log_derivative, log_derivative_symmetric, skew, turn_near};
use crate::maths::small::V3;
use crate::maths::{Twist, Wrench};
use crate::model::joint::{Sides, twist_angle};
pub use crate::model::laws::PointSpring;
use crate::model::laws::{Limit, Servo, Spring, Tangent, TurnServo, TurnTangent};
use crate::model::limit::twist_direction;
use crate::model::{AnchorSpring, BodyId, Joint, JointId, Model, RotationKind, State, Swing};
use glam::{DMat3, DQuat, DVec3};

/// Which derivatives of forces enter the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivatives {
    /// Symmetric positive semidefinite blocks.
    Symmetric,
    /// The exact derivatives of rotation springs and of springs between points, which are not symmetric. Forces along
    /// a row keep their symmetric block: what it leaves out only turns the force with the body within the step.
    Exact,
}

/// A 12×12 matrix over [a; b] as four blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairBlock {
    /// Row a, column a.
    pub aa: Block,
    /// Row a, column b.
    pub ab: Block,
    /// Row b, column a.
    pub ba: Block,
    /// Row b, column b.
    pub bb: Block,
}

impl PairBlock {
    /// All zero.
    pub const ZERO: PairBlock =
        PairBlock { aa: Block::zeros(6, 6), ab: Block::zeros(6, 6), ba: Block::zeros(6, 6), bb: Block::zeros(6, 6) };

    /// `self += scale · other`.
    pub fn add_scaled(&mut self, scale: f64, other: &PairBlock) {
        self.aa.add_scaled(scale, &other.aa);
        self.ab.add_scaled(scale, &other.ab);
        self.ba.add_scaled(scale, &other.ba);
        self.bb.add_scaled(scale, &other.bb);
    }
}

/// A force of the size `force − k δx − c ẋ` along a row: `δx = a·δ_a + b·δ_b`, wrench on a `force · a`, on b `force · b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Along {
    /// Row of a.
    pub a: Twist,
    /// Row of b.
    pub b: Twist,
    /// \[N or N·m\]
    pub force: f64,
    /// k \[N/m or N·m/rad\]
    pub stiffness: f64,
    /// c \[N·s/m or N·m·s/rad\]
    pub damping: f64,
}

/// A torque on a, its opposite on b: `torque − X δθ_a + Xᵀ δθ_b − c (ω_a − ω_b)` with `X = k G` or `k S`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turning {
    /// On a \[N·m\].
    pub torque: DVec3,
    /// X \[N·m/rad\]
    pub stiffness: DMat3,
    /// c \[N·m·s/rad\]
    pub damping: f64,
}

/// A force at a point of a, its opposite at a point of b: `force − Kd δd − c ḋ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchored {
    /// Lever on a \[m\].
    pub r_a: DVec3,
    /// Lever on b \[m\].
    pub r_b: DVec3,
    /// On a \[N\].
    pub force: DVec3,
    /// Kd \[N/m\]
    pub stiffness: DMat3,
    /// c \[N·s/m\]
    pub damping: f64,
    /// Whether the levers turn within the step.
    pub levers: Levers,
}

/// Whether the derivative of a force at a point follows its lever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levers {
    /// `∂(r × F)/∂θ` through F alone: symmetric.
    Still,
    /// Also through r: exact.
    Turning,
}

/// One force between two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Force {
    /// Along a row.
    Along(Along),
    /// All rotations at once.
    Turning(Turning),
    /// A point against a point.
    Anchored(Anchored),
}

/// `Bᵀ X B` with `B = [I, −[r_a], −I, [r_b]]`.
fn between_points(x: DMat3, r_a: DVec3, r_b: DVec3) -> PairBlock {
    let quarter = |sign: f64, row: DVec3, col: DVec3| {
        let (x, r, c) = (x * sign, skew(row), skew(col));
        Block::from_quarters(x, -(x * c), r * x, -(r * x * c))
    };
    PairBlock {
        aa: quarter(1.0, r_a, r_a),
        ab: quarter(-1.0, r_a, r_b),
        ba: quarter(-1.0, r_b, r_a),
        bb: quarter(1.0, r_b, r_b),
    }
}

impl Along {
    /// A law along a coordinate with these rows.
    fn new((a, b): (Twist, Twist), Tangent { force, slope, damping }: Tangent<f64>) -> Along {
        Along { a, b, force, stiffness: slope, damping }
    }

    fn block(&self, scale: f64) -> PairBlock {
        let (a, b): (Vector, Vector) = (from_twist(self.a), from_twist(self.b));
        PairBlock {
            aa: Block::outer(scale, &a, &a),
            ab: Block::outer(scale, &a, &b),
            ba: Block::outer(scale, &b, &a),
            bb: Block::outer(scale, &b, &b),
        }
    }
}

impl Turning {
    fn block(x: DMat3) -> PairBlock {
        let xt = x.transpose();
        PairBlock { aa: Block::angular(x), ab: Block::angular(-xt), ba: Block::angular(-x), bb: Block::angular(xt) }
    }
}

impl Force {
    /// The wrenches on a and b at this pose, at rest.
    pub fn wrenches(&self) -> [Wrench; 2] {
        match self {
            Force::Along(f) => [f.a, f.b].map(|row| Wrench::new(row.linear, row.angular) * f.force),
            Force::Turning(f) => [f.torque, -f.torque].map(|torque| Wrench::new(DVec3::ZERO, torque)),
            Force::Anchored(f) => [Wrench::at(f.r_a, f.force), Wrench::at(f.r_b, -f.force)],
        }
    }

    /// The wrenches on a and b with damping at these velocities.
    pub fn wrenches_at(&self, a: Twist, b: Twist) -> [Wrench; 2] {
        let mut damped = *self;
        match &mut damped {
            Force::Along(f) => f.force -= f.damping * (along(f.a, a) + along(f.b, b)),
            Force::Turning(f) => f.torque -= (a.angular - b.angular) * f.damping,
            Force::Anchored(f) => f.force -= (a.at(f.r_a) - b.at(f.r_b)) * f.damping,
        }
        damped.wrenches()
    }

    /// `k K + c D` with `K = −∂W/∂q` and `D = −∂W/∂V`.
    pub fn block(&self, k: f64, c: f64) -> PairBlock {
        let isotropic = |c: f64| DMat3::from_diagonal(DVec3::splat(c));
        match self {
            Force::Along(f) => f.block(k * f.stiffness + c * f.damping),
            Force::Turning(f) => Turning::block(f.stiffness * k + isotropic(c * f.damping)),
            Force::Anchored(f) => {
                let mut block = between_points(f.stiffness * k + isotropic(c * f.damping), f.r_a, f.r_b);
                if f.levers == Levers::Turning {
                    // K −= [F][r_a] at θ_a θ_a and [−F][r_b] at θ_b θ_b
                    block.aa.add_scaled(-k, &Block::angular(skew(f.force) * skew(f.r_a)));
                    block.bb.add_scaled(k, &Block::angular(skew(f.force) * skew(f.r_b)));
                }
                block
            }
        }
    }

    /// `(k K + c D) v`: what a motion of its sides takes off the wrenches, without the blocks.
    pub fn taken(&self, k: f64, c: f64, a: Twist, b: Twist) -> [Wrench; 2] {
        match self {
            Force::Along(f) => {
                let size = (k * f.stiffness + c * f.damping) * (along(f.a, a) + along(f.b, b));
                [f.a, f.b].map(|row| Wrench::new(row.linear, row.angular) * size)
            }
            Force::Turning(f) => {
                let stiff = f.stiffness * a.angular - f.stiffness.transpose() * b.angular;
                let torque = stiff * k + (a.angular - b.angular) * (c * f.damping);
                [torque, -torque].map(|torque| Wrench::new(DVec3::ZERO, torque))
            }
            Force::Anchored(f) => {
                let apart = a.at(f.r_a) - b.at(f.r_b);
                let force = f.stiffness * apart * k + apart * (c * f.damping);
                let [mut on_a, mut on_b] = [Wrench::at(f.r_a, force), Wrench::at(f.r_b, -force)];
                if f.levers == Levers::Turning {
                    on_a.torque -= f.force.cross(f.r_a.cross(a.angular)) * k;
                    on_b.torque += f.force.cross(f.r_b.cross(b.angular)) * k;
                }
                [on_a, on_b]
            }
        }
    }
}

/// A row applied to a motion.
pub(crate) fn along(row: Twist, motion: Twist) -> f64 {
    row.linear.dot(motion.linear) + row.angular.dot(motion.angular)
}

/// `φ = log(q_a q0⁻¹ q_b⁻¹)`: the rotation in world axes by which a is turned from its rest `q_b q0` \[rad\].
pub fn rotation_error(a: DQuat, b: DQuat, rest: DQuat) -> DVec3 {
    log(a * rest.conjugate() * b.conjugate())
}

/// A rotation spring `−k φ` with isotropic damping [Hernández 2011, eq. 6, 7, corrected]. `K = k [[G, −Gᵀ], [−G, Gᵀ]]`,
/// or with S in place of G.
pub fn rotation_spring(phi: DVec3, stiffness: f64, damping: f64, derivatives: Derivatives) -> Turning {
    let g = match derivatives {
        Derivatives::Symmetric => log_derivative_symmetric(phi),
        Derivatives::Exact => log_derivative(phi),
    };
    Turning { torque: phi * -stiffness, stiffness: g * stiffness, damping }
}

impl PointSpring<f64> {
    /// The force at these levers and this difference of points `d = p_a − p_b`. The symmetric form leaves out what compression takes off the stiffness.
    pub fn force(&self, r_a: DVec3, r_b: DVec3, d: DVec3, derivatives: Derivatives) -> Anchored {
        let at = self.at(V3::splat(d));
        let (stiffness, levers) = match derivatives {
            Derivatives::Symmetric => (at.positive_slope(), Levers::Still),
            Derivatives::Exact => (at.slope(), Levers::Turning),
        };
        let (force, stiffness) = (at.force.lane(0), stiffness.matrix());
        Anchored { r_a, r_b, force, stiffness, damping: self.damping, levers }
    }

    fn energy(&self, d: DVec3) -> f64 {
        self.at(V3::splat(d)).energy
    }
}

/// `I0 + h([ω] I0 − [I0 ω])`: how the gyroscopic torque changes the inertia that a change of ω meets in an implicit step.
pub fn gyroscopic_inertia(inertia_in_body: DMat3, omega_in_body: DVec3, h: f64) -> DMat3 {
    inertia_in_body + (skew(omega_in_body) * inertia_in_body - skew(inertia_in_body * omega_in_body)) * h
}

/// The angular velocity in body axes after the gyroscopic torque has acted for `h` alone: one Newton step of the
/// implicit equation, taken before the solve so that the system stays symmetric.
///
/// ```text
/// ω ← ω − [I0 + h([ω] I0 − [I0 ω])]⁻¹ h ω × I0 ω
/// ```
pub fn gyroscopic(inertia_in_body: DMat3, omega_in_body: DVec3, h: f64) -> DVec3 {
    let torque = omega_in_body.cross(inertia_in_body * omega_in_body);
    omega_in_body - gyroscopic_inertia(inertia_in_body, omega_in_body, h).inverse() * (torque * h)
}

/// A joint at a state: frames, levers and coordinates, from which its forces follow.
#[derive(Clone, Copy, Debug)]
pub struct JointView<'m> {
    id: JointId,
    joint: &'m Joint,
    sides: Sides,
    /// World axes of the child's joint frame.
    frame_a: DMat3,
    /// World axes of the parent's joint frame.
    frame_b: DMat3,
    r_a: DVec3,
    r_b: DVec3,
    /// `p_a − p_b`
    d: DVec3,
    relative: DQuat,
    /// Unwrapped angle about the turning axis.
    angle: f64,
    /// Rotation vector from the spring's rest that is remembered of the last pose, in the parent's axes.
    turn: DVec3,
}

/// The rows of a coordinate of the relative rotation: `ẋ = g·(ω_a − ω_b)`.
fn turning(g: DVec3) -> (Twist, Twist) {
    (Twist::new(DVec3::ZERO, g), Twist::new(DVec3::ZERO, -g))
}

impl<'m> JointView<'m> {
    /// One joint of `model` at `state`.
    pub fn new(model: &'m Model, state: &State, id: JointId) -> JointView<'m> {
        let joint = model.joint(id);
        let sides = model.sides(joint, state);
        let Sides { a, b, .. } = sides;
        let r_a = a.rotation * joint.child_from_joint.translation;
        let r_b = b.rotation * joint.parent_from_joint.translation;
        let relative = joint.relative_rotation(a.rotation, b.rotation);
        JointView {
            id,
            joint,
            sides,
            frame_a: DMat3::from_quat(a.rotation * joint.child_from_joint.rotation),
            frame_b: DMat3::from_quat(b.rotation * joint.parent_from_joint.rotation),
            r_a,
            r_b,
            d: a.translation + r_a - b.translation - r_b,
            relative,
            angle: joint.angle_near(relative, state.joints[id.index()].angle),
            turn: state.turn_of(id),
        }
    }

    /// How fast a coordinate with these rows grows.
    fn rate(&self, (a, b): (Twist, Twist)) -> f64 {
        along(a, self.sides.a_velocity) + along(b, self.sides.b_velocity)
    }

    fn relative_omega(&self) -> DVec3 {
        self.sides.a_velocity.angular - self.sides.b_velocity.angular
    }

    /// Position along axis k of the parent's frame, `s_k = b_k·d` \[m\], and its rows.
    fn slide(&self, k: usize) -> (f64, Twist, Twist) {
        let t = self.frame_b.col(k);
        (t.dot(self.d), Twist::new(t, self.r_a.cross(t)), Twist::new(-t, -(self.r_b + self.d).cross(t)))
    }

    /// `φ` from the rotation `rest` of the child's frame in the parent's: `q0 = F_b rest F_a⁻¹`.
    pub(crate) fn error_from(&self, rest: DQuat) -> DVec3 {
        let (f_a, f_b) = (self.joint.child_from_joint.rotation, self.joint.parent_from_joint.rotation);
        rotation_error(self.sides.a.rotation, self.sides.b.rotation, f_b * rest * f_a.conjugate())
    }

    /// The same from the spring's rest, with the turns that are remembered.
    fn error_from_rest(&self) -> DVec3 {
        let q_b = self.sides.b.rotation;
        q_b * turn_near(q_b.conjugate() * self.error_from(self.joint.rotation_spring.rest), self.turn)
    }

    /// The law of the spring on the free rotations, its rest being that about the axis of a hinge.
    fn turning_law(&self, scales: (f64, f64)) -> Spring<f64> {
        let spring = &self.joint.rotation_spring;
        let rest = match self.joint.mask.rotation() {
            RotationKind::Axis(axis) => twist_angle(spring.rest, axis) + spring.rest_turns,
            _ => 0.0,
        };
        Spring::turning(spring, rest, scales)
    }

    /// Spring and damper on the free rotations: about a hinge a scalar in its unwrapped angle, else all rotations at once.
    pub fn rotation_spring(&self, scales: (f64, f64), derivatives: Derivatives) -> Option<Force> {
        let law = self.turning_law(scales);
        if law.stiffness == 0.0 && law.damping == 0.0 {
            return None;
        }
        match self.joint.mask.rotation() {
            RotationKind::Held => None,
            RotationKind::Axis(i) => {
                Some(Force::Along(Along::new(turning(self.frame_a.col(i)), law.tangent(self.angle))))
            }
            RotationKind::Free | RotationKind::Cardan(_) => {
                Some(Force::Turning(rotation_spring(self.error_from_rest(), law.stiffness, law.damping, derivatives)))
            }
        }
    }

    /// Spring and damper along translation k, when it is free.
    pub fn slide_spring(&self, k: usize, scales: (f64, f64)) -> Option<Force> {
        let law = Spring::sliding(&self.joint.slide_spring, k, scales);
        if self.joint.mask.holds_translation(k) || (law.stiffness == 0.0 && law.damping == 0.0) {
            return None;
        }
        let (s, a, b) = self.slide(k);
        Some(Force::Along(Along::new((a, b), law.tangent(s))))
    }

    /// The direction in which the unwrapped angle grows: the axis of a hinge, or that of a ball's twist.
    fn angle_direction(&self) -> Option<DVec3> {
        match self.joint.mask.rotation() {
            RotationKind::Axis(i) => Some(self.frame_a.col(i)),
            RotationKind::Free => {
                let [a, b] = [self.frame_a, self.frame_b].map(|frame| V3::<f64>::splat(frame.col(0)));
                Some(twist_direction(a, b).lane(0))
            }
            RotationKind::Cardan(_) | RotationKind::Held => None,
        }
    }

    /// Violation of the swing ellipse and the direction in which it grows, `v̇ = g·(ω_a − ω_b)`; no direction is given without swing, or at half a turn of it.
    pub fn swing_violation(&self) -> Option<(f64, DVec3)> {
        let ellipse = self.joint.limits.swing?;
        let (v, g) = self.swing()?.violation(&ellipse.lanes());
        Some((v, self.frame_b * g.lane(0)))
    }

    fn swing(&self) -> Option<Swing<f64>> {
        (self.joint.mask.rotation() == RotationKind::Free).then(|| Swing::meaningful(self.relative))?
    }

    /// What is left of the swing, and the direction in which it shrinks; see [`Swing::left`].
    pub(crate) fn swing_left(&self) -> Option<(f64, DVec3)> {
        let ellipse = self.joint.limits.swing?;
        let (left, g) = self.swing()?.left(ellipse);
        Some((left, self.frame_b * g))
    }

    /// Calls `visit` for every coordinate that has a soft limit, with its rows.
    fn limits(&self, mut visit: impl FnMut(&Limit, f64, (Twist, Twist))) {
        let limits = &self.joint.limits;
        if let (Some(law), Some(g)) = (limits.angle_law(), self.angle_direction()) {
            visit(&law, self.angle, turning(g));
        }
        if let (Some(law), Some((v, g))) = (limits.swing_law(), self.swing_violation()) {
            visit(&law, v, turning(g));
        }
        if let Some(law) = limits.slide_law() {
            let (s, a, b) = self.slide(0);
            visit(&law, s, (a, b));
        }
    }

    /// Calls `visit` for every limit that is passed, by how much, with the rows along which that grows.
    pub(crate) fn passed(&self, mut visit: impl FnMut(f64, (Twist, Twist))) {
        self.stops(|stop| {
            if stop.gap < 0.0 {
                visit(-stop.gap, (stop.a * -1.0, stop.b * -1.0));
            }
        });
    }

    /// What a motor moves, the angle of a hinge \[rad\] or the position of a slider \[m\], with its rows.
    pub fn motor_position(&self) -> Option<(f64, Twist, Twist)> {
        match self.joint.mask.rotation() {
            RotationKind::Axis(i) => {
                let g = self.frame_a.col(i);
                Some((self.angle, Twist::new(DVec3::ZERO, g), Twist::new(DVec3::ZERO, -g)))
            }
            RotationKind::Held if !self.joint.mask.holds_translation(0) => Some(self.slide(0)),
            _ => None,
        }
    }

    /// The motor. Its law is implicit while the torque it would have at the end of `h` is within the clamp.
    pub fn motor(&self, input: &Input, own: &JointInput, h: f64, derivatives: Derivatives) -> Option<Force> {
        let motor = self.joint.motor.as_ref()?;
        if self.joint.mask.rotation() == RotationKind::Free {
            let (servo, target) = TurnServo::of(motor, input, own)?;
            let (phi, omega) = (self.error_from(target), self.relative_omega());
            let TurnTangent { torque, slope, damping } = servo.ahead(V3::splat(phi), V3::splat(omega), h);
            let stiffness = rotation_spring(phi, slope, damping, derivatives).stiffness;
            return Some(Force::Turning(Turning { torque: torque.lane(0), stiffness, damping }));
        }
        let (x, a, b) = self.motor_position()?;
        let law = Servo::of(motor, input, own).ahead(x, self.rate((a, b)), h);
        Some(Force::Along(Along::new((a, b), law)))
    }

    /// Calls `visit` for every force of the joint; returns how many limits act.
    fn forces(
        &self,
        input: &Input,
        joint: &JointInput,
        h: f64,
        derivatives: Derivatives,
        mut visit: impl FnMut(Source, &Force),
    ) -> u32 {
        let scales = input.scales(joint);
        let mut own = |force: &Force| visit(Source::Joint(self.id), force);
        self.rotation_spring(scales, derivatives).iter().for_each(&mut own);
        for k in 0..3 {
            self.slide_spring(k, scales).iter().for_each(&mut own);
        }
        if input.torques {
            self.motor(input, joint, h, derivatives).iter().for_each(|force| visit(Source::Motor(self.id), force));
        }
        let mut acting = 0;
        self.limits(|law, x, rows| {
            let (tangent, on) = law.ahead(x, self.rate(rows), h);
            if on > 0.0 {
                visit(Source::Limit(self.id), &Force::Along(Along::new(rows, tangent)));
                acting += 1;
            }
        });
        acting
    }

    /// Energy of the joint's springs and limits \[J\].
    fn energy(&self, scales: (f64, f64)) -> f64 {
        let Joint { mask, slide_spring, .. } = self.joint;
        let law = self.turning_law(scales);
        let mut energy = match mask.rotation() {
            RotationKind::Held => 0.0,
            RotationKind::Axis(_) => law.at(self.angle).energy,
            RotationKind::Free | RotationKind::Cardan(_) => law.at_turn(V3::splat(self.error_from_rest())).0,
        };
        for k in (0..3).filter(|&k| !mask.holds_translation(k)) {
            energy += Spring::sliding(slide_spring, k, scales).at(self.slide(k).0).energy;
        }
        self.limits(|law, x, _| energy += law.at(x).energy);
        energy
    }

    /// Calls `visit` for every end of the joint's ranges that is there, whether reached or not.
    pub(crate) fn stops(&self, mut visit: impl FnMut(Stop)) {
        let limits = &self.joint.limits;
        let mut see = |place: StopPlace, gap: f64, a: Twist, b: Twist| {
            if gap.is_finite() {
                visit(Stop { joint: self.id, child: self.joint.child, parent: self.joint.parent, place, gap, a, b });
            }
        };
        if let (Some(range), Some(g)) = (limits.angle, self.angle_direction()) {
            let ((a, b), (a_back, b_back)) = (turning(g), turning(-g));
            see(StopPlace::AngleMin, self.angle - range.min, a, b);
            see(StopPlace::AngleMax, range.max - self.angle, a_back, b_back);
        }
        if let Some((violation, g)) = self.swing_violation() {
            let (a, b) = turning(-g);
            see(StopPlace::Swing, -violation, a, b);
        }
        if let Some(range) = limits.slide {
            let (s, a, b) = self.slide(0);
            see(StopPlace::SlideMin, s - range.min, a, b);
            see(StopPlace::SlideMax, range.max - s, a * -1.0, b * -1.0);
        }
    }
}

/// Which end of a joint's ranges a [`Stop`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopPlace {
    /// Lower end of the angle or twist.
    AngleMin,
    /// Upper end of the angle or twist.
    AngleMax,
    /// The swing ellipse.
    Swing,
    /// Lower end of the slide.
    SlideMin,
    /// Upper end of the slide.
    SlideMax,
}

/// An end of a hard limit as a one-sided row: `gap + h (a·V_child + b·V_parent) ≥ 0`, with an impulse `p ≥ 0` along the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// The joint.
    pub joint: JointId,
    /// Its child, side a.
    pub child: BodyId,
    /// Its parent, side b; `None` is the world.
    pub parent: Option<BodyId>,
    /// Which end; with the joint it tells one stop from another, from step to step.
    pub place: StopPlace,
    /// What is left of the way to the end \[rad or m\]; below 0 it is passed.
    pub gap: f64,
    /// Row of the child: how the gap grows.
    pub a: Twist,
    /// Row of the parent.
    pub b: Twist,
}

/// Calls `visit` for every end of every [hard](crate::model::Stops::Hard) limit, reached or not, in the order of joints and places.
pub fn stops(model: &Model, state: &State, mut visit: impl FnMut(Stop)) {
    for &id in model.hard_limits() {
        JointView::new(model, state, id).stops(&mut visit);
    }
}

/// Where a force comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Spring of a joint; a and b are its child and parent.
    Joint(JointId),
    /// Motor of a joint.
    Motor(JointId),
    /// A limit of a joint: it pushes one way and never pulls.
    Limit(JointId),
    /// An anchor spring, by its index.
    AnchorSpring(usize),
    /// A tracker or drag: b is the world.
    Pull,
    /// A contact that is a spring: b is the world for obstacles.
    Contact,
}

/// A force with its sides.
#[derive(Clone, Copy, Debug)]
pub struct Acting<'f> {
    /// Where it comes from.
    pub source: Source,
    /// Side a.
    pub a: BodyId,
    /// Side b; `None` is the world.
    pub b: Option<BodyId>,
    /// The force.
    pub force: &'f Force,
}

/// Calls `visit` for every force of the model but gravity, given wrenches and gyroscopic torques; returns how many
/// limits act. Limits and motors look `h` ahead with the velocities of `state`: 0 for the forces of this instant.
pub fn collect(
    model: &Model,
    input: &Input,
    state: &State,
    h: f64,
    derivatives: Derivatives,
    mut visit: impl FnMut(Acting<'_>),
) -> u32 {
    let mut limits = 0;
    for (k, joint) in model.joints().iter().enumerate() {
        let id = JointId(k as u32);
        limits += JointView::new(model, state, id).forces(input, &input.joint(k), h, derivatives, |source, force| {
            visit(Acting { source, a: joint.child, b: joint.parent, force })
        });
    }
    for (k, spring) in model.anchor_springs().iter().enumerate() {
        let (r_a, r_b, d) = levers(spring, state);
        let force = Force::Anchored(PointSpring::of(spring).force(r_a, r_b, d, derivatives));
        visit(Acting { source: Source::AnchorSpring(k), a: spring.a, b: spring.b, force: &force });
    }
    // Pulls: a spring of no length to a moving point, −k (p − p*) − c (ṗ − ṗ*), and one of rotation.
    let mut pull = |body: BodyId, force: Force| {
        visit(Acting { source: Source::Pull, a: body, b: None, force: &force });
    };
    let to_point = |body: BodyId, point: DVec3, k: f64, c: f64, target: DVec3, velocity: DVec3| {
        let s = &state.bodies[body.index()];
        let r = s.orientation * point;
        let spring = PointSpring { stiffness: k, damping: c, rest_length: 0.0 };
        let mut force = spring.force(r, target, s.position + r - target, derivatives);
        force.force += velocity * c;
        Force::Anchored(force)
    };
    for (i, (tracker, target)) in model.trackers().iter().zip(&input.targets).enumerate() {
        let Some(target) = target else { continue };
        let [k, c, turn_k, turn_c] = tracker.at_strength(input.strength(i));
        let (place, velocity) = (target.pose.translation, target.velocity);
        pull(tracker.body, to_point(tracker.body, tracker.point, k, c, place, velocity.linear));
        let (k, c) = (turn_k, turn_c);
        let orientation = state.bodies[tracker.body.index()].orientation;
        let phi = rotation_error(orientation, DQuat::IDENTITY, target.pose.rotation);
        let mut force = rotation_spring(phi, k, c, derivatives);
        force.torque += velocity.angular * c;
        pull(tracker.body, Force::Turning(force));
    }
    for drag in &input.drags {
        let (k, c) = (drag.stiffness, drag.damping);
        pull(drag.body, to_point(drag.body, drag.point, k, c, drag.target, drag.target_velocity));
    }
    limits
}

/// Levers of an anchor spring, and `d = p_a − p_b`.
fn levers(spring: &AnchorSpring, state: &State) -> (DVec3, DVec3, DVec3) {
    let a = &state.bodies[spring.a.index()];
    let r_a = a.orientation * spring.point_in_a;
    let (x_b, r_b) = spring.b.map_or((DVec3::ZERO, spring.point_in_b), |b| {
        let b = &state.bodies[b.index()];
        (b.position, b.orientation * spring.point_in_b)
    });
    (r_a, r_b, a.position + r_a - x_b - r_b)
}

/// Energy of joint springs (with their scales), limits, anchor springs, trackers and drags \[J\].
pub fn spring_energy(model: &Model, input: &Input, state: &State) -> f64 {
    let joints: f64 = (0..model.joints().len())
        .map(|k| JointView::new(model, state, JointId(k as u32)).energy(input.scales(&input.joint(k))))
        .sum();
    let anchors: f64 = model.anchor_springs().iter().map(|s| PointSpring::of(s).energy(levers(s, state).2)).sum();
    let point = |body: BodyId, point: DVec3| state.bodies[body.index()].pose().transform_point(point);
    let trackers: f64 = model
        .trackers()
        .iter()
        .zip(&input.targets)
        .enumerate()
        .filter_map(|(i, (tracker, target))| {
            let pose = target.as_ref()?.pose;
            let apart = (point(tracker.body, tracker.point) - pose.translation).length_squared();
            let orientation = state.bodies[tracker.body.index()].orientation;
            let turned = rotation_error(orientation, DQuat::IDENTITY, pose.rotation).length_squared();
            Some(0.5 * input.strength(i) * (tracker.stiffness * apart + tracker.rotation_stiffness * turned))
        })
        .sum();
    let drags: f64 =
        input.drags.iter().map(|d| 0.5 * d.stiffness * (point(d.body, d.point) - d.target).length_squared()).sum();
    joints + anchors + trackers + drags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Drag, Target};
    use crate::maths::Pose;
    use crate::maths::block::{Lu, from_wrench, to_twist};
    use crate::maths::rotation::exp;
    use crate::model::*;

    const STEP: f64 = 1e-6; // central differences: error about STEP² + 1e-16/STEP, times stiffnesses below 100
    const CLOSE: f64 = 1e-7;

    /// Two bodies a and b, the joint between them turned by `relative` and slid by `slide`, moving.
    fn pair(mask: JointMask, relative: DVec3, slide: DVec3, adjust: impl Fn(JointSpec) -> JointSpec) -> (Model, State) {
        let (in_a, in_b) = (
            Pose::new(exp(DVec3::new(0.4, -0.9, 0.2)), DVec3::new(0.1, -0.2, 0.15)),
            Pose::new(exp(DVec3::new(-1.1, 0.3, 0.7)), DVec3::new(-0.25, 0.1, 0.2)),
        );
        let b = Pose::new(exp(DVec3::new(0.5, 0.8, -0.3)), DVec3::new(0.3, 0.2, -0.4));
        let a = b.then(in_b).then(Pose::new(exp(relative), slide)).then(in_a.inverse());
        let mut builder = ModelBuilder::new();
        for (name, pose) in [("b", b), ("a", a)] {
            let inertia = DMat3::from_diagonal(DVec3::new(0.1, 0.2, 0.25));
            builder.body(BodySpec::new(name).mass(1.0).inertia(inertia, DVec3::ZERO).pose(pose));
        }
        builder.joint(adjust(JointSpec::new("joint", mask, "a", "b").frames(in_a, in_b)));
        let model = builder.build().unwrap();
        let state = model.start();
        (model, state)
    }

    #[test]
    fn the_turning_of_swing_directions_matches_central_differences() {
        let ellipse = SwingEllipse { about_y: 0.4, about_z: 0.9 };
        let q_b = exp(DVec3::new(0.5, 0.8, -0.3));
        // From near no swing to near half a turn. Differences over 2e-5 sin t leave a hundred squares of that, and rounding.
        for t in [1e-4f64, 1e-2, 0.1, 0.8, 1.5, 2.5, 3.1] {
            for k in 0..8 {
                let (axis, twist) = (0.3 + 0.8 * f64::from(k), 0.7 * f64::from(k) - 2.0);
                let q_a = q_b * exp(DVec3::new(0.0, axis.cos(), axis.sin()) * t) * exp(DVec3::X * twist);
                let swing = |q_a: DQuat, q_b: DQuat| Swing::meaningful(q_b.conjugate() * q_a).unwrap();
                let direction = |q_a: DQuat, q_b: DQuat| q_b * swing(q_a, q_b).violation(&ellipse.lanes()).1.lane(0);
                let frame = DMat3::from_quat(q_b);
                let h = frame * swing(q_a, q_b).turning(&ellipse.lanes()).matrix() * frame.transpose();
                let step = 2e-5 * t.sin();
                for rho in DVec3::AXES {
                    let (e, back) = (exp(rho * step), exp(-rho * step));
                    let by_a = (direction(e * q_a, q_b) - direction(back * q_a, q_b)) / (2.0 * step);
                    let by_b = (direction(q_a, e * q_b) - direction(q_a, back * q_b)) / (2.0 * step);
                    let size = 1e-6 * h.to_cols_array().iter().fold(1.0f64, |a, b| a.max(b.abs()));
                    let off = (h * rho - by_a).length();
                    assert!(off < size, "a at swing {t}, {k}: {} and {by_a}, {off:e}", h * rho);
                    let expected = rho.cross(direction(q_a, q_b)) - h * rho;
                    assert!((expected - by_b).length() < size, "b at swing {t}, {k}: {expected} and {by_b}");
                }
            }
        }
    }

    /// `state` with one body moved a little: three translations, three rotations from the left.
    fn moved(state: &State, body: usize, direction: usize, by: f64) -> State {
        let mut state = state.clone();
        let body = &mut state.bodies[body];
        let axis = DVec3::AXES[direction % 3] * by;
        if direction < 3 {
            body.position += axis;
        } else {
            body.orientation = exp(axis) * body.orientation;
        }
        state
    }

    /// Central difference over the twelve motions of [b; a], the bodies in the order of [`pair`].
    fn differences<const N: usize>(state: &State, f: impl Fn(&State) -> [f64; N]) -> [[f64; N]; 12] {
        std::array::from_fn(|k| {
            let (high, low) = (f(&moved(state, k / 6, k % 6, STEP)), f(&moved(state, k / 6, k % 6, -STEP)));
            std::array::from_fn(|i| (high[i] - low[i]) / (2.0 * STEP))
        })
    }

    /// Sum of all wrenches by body, [b; a], and of all stiffness blocks.
    fn sum(model: &Model, input: &Input, state: &State, derivatives: Derivatives) -> ([f64; 12], [[f64; 12]; 12]) {
        let (mut w, mut k) = ([0.0; 12], [[0.0; 12]; 12]);
        collect(model, input, state, 0.0, derivatives, |acting| {
            let (wrenches, block) = (acting.force.wrenches(), acting.force.block(1.0, 0.0));
            let sides = [Some(acting.a), acting.b];
            let blocks = [[&block.aa, &block.ab], [&block.ba, &block.bb]];
            for (s, row) in sides.iter().enumerate() {
                let Some(row) = row else { continue };
                for i in 0..6 {
                    w[6 * row.index() + i] += from_wrench(wrenches[s])[i];
                    for (t, col) in sides.iter().enumerate() {
                        let Some(col) = col else { continue };
                        for j in 0..6 {
                            k[6 * row.index() + i][6 * col.index() + j] += blocks[s][t].get(i, j);
                        }
                    }
                }
            }
        });
        (w, k)
    }

    /// Force = −∇ energy.
    fn assert_conservative(model: &Model, input: &Input, state: &State, what: &str) {
        let slope = differences(state, |s| [spring_energy(model, input, s)]);
        let (w, _) = sum(model, input, state, Derivatives::Symmetric);
        assert!(w.iter().any(|x| x.abs() > 1e-3), "{what}: nothing acts");
        for i in 0..12 {
            assert!((w[i] + slope[i][0]).abs() < CLOSE * 10.0, "{what}: {i}: {} against {}", w[i], -slope[i][0]);
        }
    }

    /// Exact K = −∂W/∂q, and its symmetric form is what is said of it.
    fn assert_stiffness(model: &Model, input: &Input, state: &State, what: &str) {
        let (_, k) = sum(model, input, state, Derivatives::Exact);
        let slope = differences(state, |s| sum(model, input, s, Derivatives::Exact).0);
        for i in 0..12 {
            for j in 0..12 {
                assert!((k[i][j] + slope[j][i]).abs() < CLOSE, "{what}: {i},{j}: {} against {}", k[i][j], -slope[j][i]);
            }
        }
        let (_, s) = sum(model, input, state, Derivatives::Symmetric);
        for i in 0..12 {
            for j in 0..12 {
                assert!((s[i][j] - s[j][i]).abs() < 1e-12, "{what}: not symmetric");
            }
        }
    }

    /// A relative motion that the mask allows.
    fn allowed(mask: JointMask) -> (DVec3, DVec3) {
        let turn = match mask.rotation() {
            RotationKind::Free => DVec3::new(0.6, 0.9, -0.7),
            RotationKind::Axis(i) => DVec3::AXES[i] * 0.8,
            RotationKind::Cardan(i) => log(exp(DVec3::AXES[(i + 1) % 3] * 0.5) * exp(DVec3::AXES[(i + 2) % 3] * -0.4)),
            RotationKind::Held => DVec3::ZERO,
        };
        let slide =
            DVec3::from_array(std::array::from_fn(
                |k| {
                    if mask.holds_translation(k) { 0.0 } else { [0.3, -0.2, 0.25][k] }
                },
            ));
        (turn, slide)
    }

    #[test]
    fn joint_springs_of_every_mask_are_minus_the_slope_of_their_energy() {
        for bits in 0..64 {
            let mask = JointMask::from_bits(bits);
            if mask == JointMask::WELD {
                continue;
            }
            let (turn, slide) = allowed(mask);
            let (model, state) = pair(mask, turn, slide, |joint| {
                let rest = exp(DVec3::new(0.3, -0.2, 0.4));
                joint
                    .rotation_spring(RotationSpring { stiffness: 7.0, damping: 0.3, rest, rest_turns: 0.5 })
                    .slide_spring(SlideSpring { stiffness: 11.0, damping: 0.2, rest: DVec3::new(0.1, 0.05, -0.1) })
            });
            let input = Input { stiffness_scale: 1.7, ..Input::default() };
            if mask.rotation() == RotationKind::Held && mask.holds_point() {
                continue;
            }
            assert_conservative(&model, &input, &state, &mask.name());
            let off = Input { torques: false, ..Input::default() };
            assert_eq!(spring_energy(&model, &off, &state), 0.0);
            assert_eq!(sum(&model, &off, &state, Derivatives::Exact).0, [0.0; 12]);
        }
    }

    #[test]
    fn limits_are_minus_the_slope_of_their_energy() {
        let limits = Limits { stiffness: 9.0, slide_stiffness: 13.0, ..Limits::default() };
        let cases = [
            (JointMask::HINGE, Limits { angle: Some(Range::new(-1.0, 0.3)), ..limits }),
            (JointMask::HINGE, Limits { angle: Some(Range::new(1.1, 2.0)), ..limits }),
            (
                JointMask::from_bits(7 | JointMask::RX | JointMask::RZ),
                Limits { angle: Some(Range::new(-1.0, 0.3)), ..limits },
            ),
            (JointMask::BALL, Limits { angle: Some(Range::new(-0.4, 0.2)), ..limits }),
            (JointMask::BALL, Limits { angle: Some(Range::new(1.0, 1.2)), ..limits }),
            (JointMask::BALL, Limits { swing: Some(SwingEllipse { about_y: 0.4, about_z: 0.7 }), ..limits }),
            (JointMask::BALL, Limits { swing: Some(SwingEllipse { about_y: 0.8, about_z: 0.3 }), ..limits }),
            (JointMask::POINT_ON_LINE, Limits { slide: Some(Range::new(-0.1, 0.1)), ..limits }),
            (JointMask::FREE, Limits { slide: Some(Range::new(0.5, 0.6)), ..limits }),
        ];
        for (mask, limits) in cases {
            let (turn, slide) = allowed(mask);
            let (model, state) = pair(mask, turn, slide, |joint| joint.limits(limits));
            assert_conservative(&model, &Input::default(), &state, &format!("{limits:?}"));
            let off = Input { torques: false, ..Input::default() }; // limits always act
            assert_conservative(&model, &off, &state, &format!("{limits:?}"));
        }
    }

    #[test]
    fn hard_stops_grow_along_their_rows_and_are_no_forces() {
        let limits = Limits {
            angle: Some(Range::new(-0.3, 0.9)),
            swing: Some(SwingEllipse { about_y: 0.8, about_z: 0.3 }),
            slide: Some(Range::new(-0.1, f64::INFINITY)),
            stops: Stops::Hard,
            ..Limits::default()
        };
        let (model, state) =
            pair(JointMask::FREE, DVec3::new(1.1, 0.4, -0.5), DVec3::new(0.2, 0.1, -0.3), |joint| joint.limits(limits));
        assert_eq!(collect(&model, &Input::default(), &state, 0.1, Derivatives::Exact, |_| panic!("a force")), 0);
        assert_eq!(spring_energy(&model, &Input::default(), &state), 0.0);
        let list = |state: &State| {
            let mut found = Vec::new();
            stops(&model, state, |stop| found.push(stop));
            found
        };
        let found = list(&state);
        use StopPlace::*;
        assert_eq!(found.iter().map(|s| s.place).collect::<Vec<_>>(), [AngleMin, AngleMax, Swing, SlideMin]);
        for body in 0..2 {
            for axis in 0..6 {
                let mut unit = [0.0; 6];
                unit[axis] = 1.0;
                let unit = to_twist(&unit);
                let gaps = [1.0, -1.0].map(|sign| {
                    let mut state = state.clone();
                    let body = &mut state.bodies[body];
                    body.position += unit.linear * (sign * STEP);
                    body.orientation = exp(unit.angular * (sign * STEP)) * body.orientation;
                    list(&state)
                });
                for (k, stop) in found.iter().enumerate() {
                    let slope = (gaps[0][k].gap - gaps[1][k].gap) / (2.0 * STEP);
                    let row = if body == stop.child.index() { stop.a } else { stop.b };
                    assert!((along(row, unit) - slope).abs() < CLOSE, "{:?}: {slope}", stop.place);
                }
            }
        }
    }

    #[test]
    fn directions_of_limits_match_central_differences_at_any_angle() {
        let ellipse = SwingEllipse { about_y: 0.5, about_z: 1.1 };
        let limits = Limits { swing: Some(ellipse), angle: Some(Range::new(-9.0, 9.0)), ..Limits::default() };
        for i in 0..40 {
            let f = f64::from(i);
            let axis = DVec3::new((1.3 * f).sin(), (2.1 * f + 1.0).cos(), (0.7 * f + 0.3).sin()).normalize();
            let (model, state) =
                pair(JointMask::BALL, axis * (0.07 * f + 0.05), DVec3::ZERO, |joint| joint.limits(limits));
            let view = |s: &State| JointView::new(&model, s, JointId(0));
            let (_, swing) = view(&state).swing_violation().unwrap();
            let twist = view(&state).angle_direction().unwrap();
            let slope = differences(&state, |s| [view(s).swing_violation().unwrap().0, view(s).angle]);
            for k in 0..3 {
                for (g, column) in [(swing, 0), (twist, 1)] {
                    let scale = 1.0 + g.length();
                    assert!((slope[9 + k][column] - g[k]).abs() < CLOSE * scale, "{i}: column {column} of a");
                    assert!((slope[3 + k][column] + g[k]).abs() < CLOSE * scale, "{i}: column {column} of b");
                }
            }
        }
    }

    #[test]
    fn rows_of_slides_match_central_differences() {
        for bits in [0u8, 1, 2, 4, 6, 62, 63 & !6] {
            let mask = JointMask::from_bits(bits);
            let (turn, slide) = allowed(mask);
            let (model, state) = pair(mask, turn, slide, |joint| joint);
            let view = |s: &State| JointView::new(&model, s, JointId(0));
            let slope = differences(&state, |s| std::array::from_fn::<f64, 3, _>(|k| view(s).slide(k).0));
            for k in 0..3 {
                let (_, a, b) = view(&state).slide(k);
                for i in 0..6 {
                    assert!((slope[i][k] - from_twist(b)[i]).abs() < CLOSE);
                    assert!((slope[6 + i][k] - from_twist(a)[i]).abs() < CLOSE);
                }
            }
        }
    }

    #[test]
    fn rotation_springs_have_exact_derivatives_and_s_is_their_symmetric_part() {
        for scale in [0.0, 0.3, 1.0, 2.2] {
            for mask in [JointMask::BALL, JointMask::UNIVERSAL, JointMask::FREE] {
                let turn = DVec3::new(0.6, 0.9, -0.7) * scale;
                let (model, state) = pair(mask, turn, DVec3::ZERO, |joint| joint.spring(7.0, 0.0));
                assert_stiffness(&model, &Input::default(), &state, &mask.name());
                let (_, exact) = sum(&model, &Input::default(), &state, Derivatives::Exact);
                let (_, symmetric) = sum(&model, &Input::default(), &state, Derivatives::Symmetric);
                for i in 3..6 {
                    for j in 3..6 {
                        assert!((0.5 * (exact[i][j] + exact[j][i]) - symmetric[i][j]).abs() < 1e-12);
                    }
                }
            }
        }
    }

    fn with_anchor_spring(rest_length: f64, to_world: bool) -> (Model, State) {
        let mut builder = ModelBuilder::new();
        let poses = [
            Pose::new(exp(DVec3::new(-0.2, 0.5, 0.4)), DVec3::new(-0.1, 0.4, 0.1)),
            Pose::new(exp(DVec3::new(0.3, 0.1, -0.6)), DVec3::new(0.3, -0.2, 0.5)),
        ];
        for (name, pose) in ["b", "a"].into_iter().zip(poses) {
            builder.body(BodySpec::new(name).shape(Shape::sphere(0.1), 1000.0).pose(pose));
        }
        builder.anchor_spring(AnchorSpringSpec {
            name: "spring".into(),
            a: "a".into(),
            point_in_a: DVec3::new(0.3, 0.1, -0.2),
            b: if to_world { BodyRef::World } else { "b".into() },
            point_in_b: DVec3::new(-0.2, 0.25, 0.1),
            stiffness: 11.0,
            damping: 0.5,
            rest_length,
        });
        let model = builder.build().unwrap();
        let state = model.start();
        (model, state)
    }

    #[test]
    fn anchor_springs_have_exact_derivatives_stretched_and_compressed() {
        for rest_length in [0.0, 0.2, 2.5] {
            for to_world in [false, true] {
                let (model, state) = with_anchor_spring(rest_length, to_world);
                let what = format!("rest length {rest_length}, to the world: {to_world}");
                assert_conservative(&model, &Input::default(), &state, &what);
                assert_stiffness(&model, &Input::default(), &state, &what);
            }
        }
        let spring = PointSpring { stiffness: 3.0, damping: 1.0, rest_length: 0.1 };
        let none = spring.force(DVec3::X, DVec3::Y, DVec3::ZERO, Derivatives::Exact);
        assert!(none.force == DVec3::ZERO && none.stiffness == DMat3::ZERO);
    }

    #[test]
    fn pulls_have_exact_derivatives() {
        let mut builder = ModelBuilder::new();
        for (k, name) in ["b", "a"].into_iter().enumerate() {
            let pose = Pose::new(exp(DVec3::new(0.3, 0.1, -0.6)), DVec3::new(0.3, k as f64, 0.5));
            builder.body(BodySpec::new(name).shape(Shape::sphere(0.1), 1000.0).pose(pose));
        }
        builder.tracker(TrackerSpec {
            name: "tracker".into(),
            body: "a".into(),
            point: DVec3::new(0.1, -0.2, 0.05),
            stiffness: 20.0,
            damping: 0.0,
            rotation_stiffness: 6.0,
            rotation_damping: 0.0,
        });
        let model = builder.build().unwrap();
        let state = model.start();
        let pose = Pose::new(exp(DVec3::new(-0.9, 0.4, 0.2)), DVec3::new(0.1, 0.6, 0.2));
        let drag = Drag {
            body: BodyId(0),
            point: DVec3::new(0.2, 0.1, -0.1),
            target: DVec3::new(1.0, 0.0, 0.3),
            target_velocity: DVec3::ZERO,
            stiffness: 15.0,
            damping: 0.0,
        };
        let target = Target { pose, velocity: Twist::ZERO };
        let input = Input { targets: vec![Some(target)], drags: vec![drag], ..Input::default() };
        assert_conservative(&model, &input, &state, "pulls");
        assert_stiffness(&model, &input, &state, "pulls");
        assert_eq!(spring_energy(&model, &Input::default(), &state), 0.0);
    }

    /// D is minus the slope of the damped wrench, for each shape of force.
    #[test]
    fn damping_blocks_match_the_damped_wrenches() {
        let phi = DVec3::new(0.3, 0.8, -0.1);
        let row = |s: f64| Twist::new(DVec3::new(0.1, s, 0.4), DVec3::new(-s, 0.7, 0.2));
        let spring = PointSpring { stiffness: 3.0, damping: 0.9, rest_length: 0.1 };
        let forces = [
            Force::Turning(rotation_spring(phi, 5.0, 0.7, Derivatives::Exact)),
            Force::Along(Along { a: row(0.3), b: row(-0.8), force: 2.0, stiffness: 3.0, damping: 0.6 }),
            Force::Anchored(spring.force(phi, DVec3::new(0.2, -0.3, 0.5), DVec3::ONE, Derivatives::Exact)),
        ];
        let (a, b) = (row(1.3), row(-0.4));
        for force in forces {
            let (still, moving, d) = (force.wrenches(), force.wrenches_at(a, b), force.block(0.0, 1.0));
            for (side, rows) in [(0, [d.aa, d.ab]), (1, [d.ba, d.bb])] {
                let (x, y) = (rows[0].times_vector(&from_twist(a)), rows[1].times_vector(&from_twist(b)));
                for i in 0..6 {
                    let lost = from_wrench(still[side])[i] - from_wrench(moving[side])[i];
                    assert!((lost - x[i] - y[i]).abs() < 1e-12);
                }
            }
            // Without the blocks it is the same, for any weights.
            let (block, taken) = (force.block(0.3, 1.7), force.taken(0.3, 1.7, a, b));
            for (taken, rows) in taken.into_iter().zip([[block.aa, block.ab], [block.ba, block.bb]]) {
                let (x, y) = (rows[0].times_vector(&from_twist(a)), rows[1].times_vector(&from_twist(b)));
                for (i, taken) in from_wrench(taken).into_iter().enumerate() {
                    assert!((taken - x[i] - y[i]).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn limits_look_ahead_and_motors_keep_within_their_clamp() {
        let limits = Limits { angle: Some(Range::new(-1.0, 0.9)), ..Limits::default() };
        let motor = Motor { stiffness: 10.0, damping: 1.0, max: 4.0, integral: 0.0 };
        let (model, mut state) =
            pair(JointMask::HINGE, DVec3::X * 0.8, DVec3::ZERO, |joint| joint.limits(limits).motor(motor));
        let axis = JointView::new(&model, &state, JointId(0)).frame_a.col(0);
        state.bodies[1].velocity.angular = axis * 2.0;
        let view = JointView::new(&model, &state, JointId(0));
        let input = Input::default();
        let limit = |h: f64| {
            let mut found = None;
            view.forces(&input, &JointInput::default(), h, Derivatives::Symmetric, |source, force| {
                if let (Source::Limit(_), Force::Along(f)) = (source, force) {
                    found = Some(*f);
                }
            });
            found
        };
        assert!(limit(0.04).is_none());
        let limit = limit(0.06).expect("0.8 + 0.06 · 2 is beyond 0.9");
        // At 0.02 beyond the end, where it has set in: k (v − w/2).
        assert!((limit.force - 100.0 * (0.1 + 0.01)).abs() < 1e-12, "pulls to the limit it is about to reach");
        assert!((limit.stiffness - 100.0).abs() < 1e-10);

        let servo = |position, torque| JointInput {
            servo: Some(ServoTarget::Position { position, rate: 0.5 }),
            torque,
            ..JointInput::default()
        };
        let motor = |own: JointInput| match view.motor(&input, &own, 0.1, Derivatives::Symmetric) {
            Some(Force::Along(f)) => f,
            other => panic!("{other:?}"),
        };
        // T = 0.3 − 10 (0.8 + 0.1 · 2 − x*) − (2 − 0.5)
        let within = motor(servo(0.9, 0.3));
        assert!((within.force - (0.3 - 10.0 * (0.8 - 0.9) + 0.5)).abs() < 1e-12);
        assert_eq!((within.stiffness, within.damping), (10.0, 1.0));
        let clamped = motor(servo(0.0, 0.3));
        assert_eq!((clamped.force, clamped.stiffness, clamped.damping), (-4.0, 0.0, 0.0));
        let torque_only = motor(JointInput { torque: 3.0, ..JointInput::default() });
        assert_eq!((torque_only.force, torque_only.stiffness, torque_only.damping), (3.0, 0.0, 0.0));
    }

    #[test]
    fn gyroscopic_inertia_matches_central_differences() {
        let inertia = DMat3::from_diagonal(DVec3::new(0.1, 0.2, 0.35));
        let (omega, h) = (DVec3::new(3.0, -2.0, 5.0), 1.0 / 60.0);
        let residual = |w: DVec3| inertia * (w - omega) + w.cross(inertia * w) * h;
        let a = gyroscopic_inertia(inertia, omega, h);
        for axis in DVec3::AXES {
            let slope = (residual(omega + axis * STEP) - residual(omega - axis * STEP)) / (2.0 * STEP);
            assert!((a * axis - slope).length() < 1e-8);
        }
        let after = gyroscopic(inertia, omega, h);
        let newton = Lu::new(&{
            let mut block = Block::angular(a);
            block.add_scaled(1.0, &Block::from_quarters(DMat3::IDENTITY, DMat3::ZERO, DMat3::ZERO, DMat3::ZERO));
            block
        })
        .unwrap()
        .solve(&from_wrench(Wrench::new(DVec3::ZERO, residual(omega))));
        assert!((omega - DVec3::new(newton[3], newton[4], newton[5]) - after).length() < 1e-14);
    }
}
