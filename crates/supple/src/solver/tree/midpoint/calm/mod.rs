//! The default step where nothing is hard: the same equations as [`equations`](super::equations), solved by two fused sweeps a pass, for one character or
//! four side by side.
//!
//! Balance of translation is linear in displacements and joint forces, so joint forces follow from the trial motion, leaf to root; the joint torques
//! likewise. What is left of the equations are the imbalances on the free directions of joints, and gaps:
//!
//! ```text
//! up:    F = P + Σ F_c      N = L + Σ (r̄_c×F_c + N_c) − r̄×F      g = S̄ᵀ(F, N) − τ      (c, e) closes the joint
//!        the elimination of newton.rs, with these g, c and e alone on the right
//! down:  the correction, the next trial
//! ```
//! Factors are kept, and right to first order in what turns during the part: that only decides how fast corrections shrink. There are no loops over
//! lanes but for joints of unusual masks, whose text is that of `equations`, and no calls of a mathematical library but for turns far beyond a radian.
//!
//! A part is given up, for the robust way, as soon as it is not calm: joints open at the start, turns beyond what a rotation vector tells, corrections that
//! do not shrink, energy that grows. Nothing is written then. Every lane decides by its own numbers, and a lane that is done waits unchanged for the
//! others: a character alone and one in a lane do the same operations.

mod end;
mod law;
mod node;
mod pull;

use super::Settings;
use super::equations::{Moment, Part, Trial as OneTrial};
use super::newton::{AnyFactor, AnyJoint};
use crate::input::{Input, JointInput};
use crate::maths::lanes::{Kernel, Real};
use crate::maths::small::*;
use crate::model::laws::{Damper, Limit, Rule, Servo, TurnServo};
use crate::model::limit::Ellipse;
use crate::model::{Model, ServoTarget, State};
use crate::solver::Impulses;
use crate::solver::tree::kernel::{Factor as LimpFactor, General as KernelGeneral, Inertia, Passage};
use crate::solver::tree::loads::{quaternion, vector};
use crate::solver::tree::plan::*;
use crate::watch::{Notes, Stage};
use glam::{DQuat, DVec3};
use pull::Pull;

/// Constants of a node.
#[derive(Clone, Copy)]
struct Fixed<T> {
    /// The joint point in this body and in its parent.
    own: V3<T>,
    parent: V3<T>,
    mass: T,
    inertia: S3<T>,
    rest_inverse: Q<T>,
    /// 1/I of what a damper or tension at the joint moves, and its lever.
    inverse_inertia: T,
    lever: T,
    /// 1/what a gap is measured against.
    inverse_size: T,
}

/// Constants of a hinge, a weld, or a ball with limits or a motor.
#[derive(Clone, Copy)]
struct Turning<T> {
    axis_a: V3<T>,
    axis_b: V3<T>,
    rest_angle: T,
    /// Half the turn's cosine and sine as linear functions of `q_b⁻¹ q_a`.
    cosine: [f64; 4],
    sine: [f64; 4],
    frame_a: Q<T>,
    frame_b: Q<T>,
    /// Which axis of the joint frame a hinge turns about.
    axis: usize,
    angle: Option<Limit<T>>,
    swing: Option<(Ellipse<T>, Limit<T>)>,
    /// Below these a ball is within its limits: sin² of half the least swing, tangents of half the range of twist.
    near_swing: f64,
    near_twist: [f64; 2],
}

/// What springs and dampers of a joint are in this part.
#[derive(Clone, Copy)]
struct Springs<T> {
    /// Stiffness.
    k: T,
    damper: Damper<T>,
}

/// A node at the start of the part, and what is constant during it.
#[derive(Clone, Copy)]
struct Start<T> {
    x: V3<T>,
    q: Q<T>,
    v: V3<T>,
    w: V3<T>,
    r: M3<T>,
    /// Angular momentum.
    pi: V3<T>,
    /// Levers of the joint.
    own: V3<T>,
    parent: V3<T>,
    /// A spring's turn from rest, in world axes.
    turn: V3<T>,
    damper: Damper<T>,
    /// By how much the joint's rotation gives way to a force, `½ lever/(2I/h + ½hk + c)`.
    gives: T,
    angle: T,
}

/// A node at the end of the part, as far as it is known.
#[derive(Clone, Copy)]
struct Trial<T> {
    x: V3<T>,
    /// The rotation as a Cayley vector.
    a: V3<T>,
    q: Q<T>,
    r: M3<T>,
    own: V3<T>,
    parent: V3<T>,
    /// The joint's impulse, on this body; and the force of the factors.
    f: V3<T>,
    n: V3<T>,
    tension: V3<T>,
}

/// A node at the end.
#[derive(Clone, Copy)]
struct End<T> {
    x: V3<T>,
    q: Q<T>,
    a: V3<T>,
    r: M3<T>,
    v: V3<T>,
    w: V3<T>,
    own: V3<T>,
    parent: V3<T>,
    turn: V3<T>,
    angle: T,
}

/// A 6×6 matrix in 3×3 blocks; rows force and torque, columns displacement and rotation.
#[derive(Clone, Copy)]
struct Blocks<T> {
    vv: M3<T>,
    vw: M3<T>,
    wv: M3<T>,
    ww: M3<T>,
}

/// The factors of a node.
#[derive(Clone, Copy)]
enum Factor<T> {
    Ball { inverse: M3<T>, row: M3<T>, parent: M3<T> },
    Hinge { left: V3<T>, right: V3<T>, force: V3<T>, torque: V3<T>, w_u: V3<T>, w_w: V3<T>, inverse: T },
    Weld,
    Floating { inverse: M3<T>, row: M3<T>, point: M3<T> },
    General,
}

/// The levers that factors are for: of the joint on both bodies at the trial, and from the parent's anchor to it, averaged.
#[derive(Clone, Copy)]
struct Levers<T> {
    own: V3<T>,
    parent: V3<T>,
    hop: V3<T>,
}

/// What a node sends to its parent's slot, about the parent: impulses, right-hand side about its anchor, matrix.
#[derive(Clone, Copy)]
struct Passed<T> {
    f: V3<T>,
    n: V3<T>,
    load_f: V3<T>,
    load_n: V3<T>,
    a: Blocks<T>,
}

/// What the way down needs of the way up; and the correction.
#[derive(Clone, Copy)]
struct Moved<T> {
    c: V3<T>,
    e: V3<T>,
    /// The free directions' own part; of a hinge in x.
    free: V3<T>,
    x: V3<T>,
    w: V3<T>,
}

/// A joint of any mask, lane by lane.
struct AnyLink {
    now: [Moment; 4],
    trial: [OneTrial; 4],
    joint: [AnyJoint; 4],
    factor: [AnyFactor; 4],
    free: [[f64; 6]; 4],
}

/// Targets of the motors of a part.
#[derive(Clone, Copy)]
enum Aim<T> {
    None,
    Line(Servo<T>),
    Turn(TurnServo<T>, Q<T>),
}

/// Slots of a node, as in [`Plan`] but for the whole tree at once.
#[derive(Clone, Copy)]
struct Place {
    children: u32,
    own: u32,
    /// Whether the slot is assigned rather than added to.
    first: bool,
}

fn places(plan: &Plan) -> (Vec<Place>, usize) {
    let count = plan.nodes.len();
    let mut places = vec![Place { children: NONE, own: NONE, first: false }; count];
    let (mut free, mut slots) = (Vec::new(), 0);
    for i in (1..count).rev() {
        let children = places[i].children;
        if children != NONE {
            free.push(children);
        }
        let parent = plan.nodes[i].parent as usize;
        if parent != 0 {
            places[i].first = places[parent].children == NONE;
            if places[i].first {
                places[parent].children = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
            }
            places[i].own = places[parent].children;
        }
    }
    (places, slots as usize)
}

/// Scratch.
pub(super) struct Calm<T> {
    fixed: Vec<Fixed<T>>,
    turning: Vec<Turning<T>>,
    springs: Vec<Springs<T>>,
    /// What `springs` were made for: h, factors on stiffness and damping by lane. None: of joints with inputs of their own.
    springs_of: Option<(f64, [(f64, f64); 4])>,
    /// By node and lane: the damping that its damper is of.
    damping: Vec<[f64; 4]>,
    /// By detail.
    aims: Vec<Aim<T>>,
    start: Vec<Start<T>>,
    trial: Vec<Trial<T>>,
    end: Vec<End<T>>,
    matrix: Vec<Blocks<T>>,
    factor: Vec<Factor<T>>,
    levers: Vec<Levers<T>>,
    moved: Vec<Moved<T>>,
    slots: Vec<Passed<T>>,
    /// By node: where its children's sum waits and where its own goes.
    places: Vec<Place>,
    pulls: Vec<Pull<T>>,
    /// By node: the first of its pulls, or `NONE`.
    pull_of: Vec<u32>,
    any: Vec<AnyLink>,
    passages: Vec<Passage<T>>,
    generals: Vec<KernelGeneral<T>>,
    inertias: Vec<Inertia<T>>,
    /// Roots, and one past the last node.
    roots: Vec<usize>,
    supported: bool,
}

/// What a lane came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) passes: u32,
    pub(super) factorisations: u32,
    pub(super) projections: u32,
    pub(super) limits: u32,
    pub(super) gap: f64,
    pub(super) tilt: f64,
    pub(super) widest: u32,
}

/// One part, of one character or of four.
pub(super) struct Task<'a, 's> {
    pub(super) plan: &'a Plan,
    pub(super) model: &'a Model,
    pub(super) inputs: &'a [&'a Input],
    pub(super) settings: &'a Settings,
    pub(super) h: f64,
    /// Time from the end of this part to the end of that which the input is for \[s\].
    pub(super) left: f64,
    /// And to the end of the step \[s\].
    pub(super) after: f64,
    /// Whether the joints' impulses are wanted.
    pub(super) impulses: Impulses,
    pub(super) states: &'a mut [&'s mut State],
    pub(super) notes: &'a mut Notes,
}

impl<T: Real> Calm<T> {
    pub(super) fn new(plan: &Plan, model: &Model) -> Calm<T> {
        let count = plan.nodes.len();
        let (o, z) = (V3::zero(), T::zero());
        let (q, m) = (Q::splat(DQuat::IDENTITY), M3::zero());
        let one = q.matrix();
        let blocks = Blocks { vv: m, vw: m, wv: m, ww: m };
        let none = Damper { strength: z, start: z };
        let (places, slots) = places(plan);
        let roots = (1..count).filter(|&i| plan.nodes[i].parent == 0).chain([count]).collect();
        let start =
            Start { x: o, q, v: o, w: o, r: one, pi: o, own: o, parent: o, turn: o, damper: none, gives: z, angle: z };
        let trial = Trial { x: o, a: o, q, r: one, own: o, parent: o, f: o, n: o, tension: o };
        let end = End { x: o, q, a: o, r: one, v: o, w: o, own: o, parent: o, turn: o, angle: z };
        let any = || AnyLink {
            now: [Moment::WORLD; 4],
            trial: [OneTrial::WORLD; 4],
            joint: [AnyJoint::NONE; 4],
            factor: [AnyFactor::NONE; 4],
            free: [[0.0; 6]; 4],
        };
        let passage = Passage { own: o, lever: o, c: o, e: o, turn: o, factor: LimpFactor::Weld };
        Calm {
            fixed: plan.nodes.iter().map(fixed).collect(),
            turning: plan.details.iter().map(|detail| turning(detail)).collect(),
            springs: vec![Springs { k: z, damper: none }; count],
            springs_of: None,
            damping: vec![[0.0; 4]; count],
            aims: vec![Aim::None; plan.details.len()],
            start: vec![start; count],
            trial: vec![trial; count],
            end: vec![end; count],
            matrix: vec![blocks; count],
            factor: vec![Factor::Weld; count],
            levers: vec![Levers { own: o, parent: o, hop: o }; count],
            moved: vec![Moved { c: o, e: o, free: o, x: o, w: o }; count],
            slots: vec![Passed { f: o, n: o, load_f: o, load_n: o, a: blocks }; slots],
            places,
            pulls: Vec::with_capacity(model.trackers().len() + 4),
            pull_of: vec![NONE; count],
            any: (0..plan.generals).map(|_| any()).collect(),
            passages: vec![passage; count],
            generals: vec![KernelGeneral::zero(); plan.generals],
            inertias: vec![Inertia::zero(); count],
            roots,
            supported: model.anchor_springs().is_empty() && model.hard_limits().is_empty(),
        }
    }

    /// Does the part for each lane, and tells what it took; none for a lane whose part is not calm: its state is as it was.
    pub(super) fn part(&mut self, task: Task<'_, '_>) -> [Option<Done>; 4] {
        if !self.supported {
            return [None; 4];
        }
        T::enter(Run { calm: self, task })
    }

    /// The impulse of each joint on this lane's bodies over the last part, about the joint: `(F, N)`, and the lever it acts at.
    pub(super) fn impulse(&self, node: usize, lane: usize) -> (DVec3, DVec3, DVec3, DVec3) {
        let (m, t) = (&self.start[node], &self.trial[node]);
        let mean = |a: V3<T>, b: V3<T>| (a.lane(lane) + b.lane(lane)) * 0.5;
        (t.f.lane(lane), t.n.lane(lane), mean(m.own, t.own), mean(m.parent, t.parent))
    }
}

fn fixed<T: Real>(node: &Node) -> Fixed<T> {
    let (own, parent) = match (node.link, node.flags & FLIPPED != 0) {
        (Link::Floating, _) => (DVec3::ZERO, DVec3::ZERO),
        (_, true) => (node.point_b, node.point_a),
        (_, false) => (node.point_a, node.point_b),
    };
    let q = node.rest_inverse;
    Fixed {
        own: V3::splat(own),
        parent: V3::splat(parent),
        mass: T::splat(node.mass),
        inertia: S3::splat(&node.inertia),
        rest_inverse: Q::splat(q),
        inverse_inertia: T::splat(1.0 / node.joint_inertia.0),
        lever: T::splat(node.joint_inertia.1),
        inverse_size: T::splat(1.0 / super::equations::gap_size(node)),
    }
}

fn turning<T: Real>(detail: &Detail) -> Turning<T> {
    let joint = &detail.joint;
    let axis = joint.turning_axis().unwrap_or(0);
    // Twist is told by the tangent of its half within less than half a turn; beyond, a ball is always looked at.
    let near_twist = match joint.limits.angle {
        Some(range) if range.min > -3.0 && range.max < 3.0 => [(0.5 * range.min).tan(), (0.5 * range.max).tan()],
        Some(_) => [f64::INFINITY, f64::NEG_INFINITY],
        None => [f64::NEG_INFINITY, f64::INFINITY],
    };
    let near_swing = joint.limits.swing.map_or(9.0, |ellipse| {
        (0.5 * ellipse.about_y.min(ellipse.about_z)).min(std::f64::consts::FRAC_PI_2).sin().powi(2)
    });
    let swing = joint.limits.swing.zip(joint.limits.swing_law());
    Turning {
        axis_a: V3::splat(detail.axes_a[axis]),
        axis_b: V3::splat(detail.axes_b[axis]),
        rest_angle: T::splat(rest_angle(&joint.rotation_spring, axis)),
        cosine: detail.turn_cosine,
        sine: detail.turn_sine,
        frame_a: Q::splat(joint.child_from_joint.rotation),
        frame_b: Q::splat(joint.parent_from_joint.rotation),
        axis,
        angle: joint.limits.angle_law().map(|limit| limit.splat()),
        swing: swing.map(|(ellipse, limit)| (ellipse.lanes(), limit.splat())),
        near_swing,
        near_twist,
    }
}

/// The numbers of a part.
#[derive(Clone, Copy)]
struct Times<T> {
    h: T,
    inverse_h: T,
    two_h: T,
    gravity: V3<T>,
    tension_damping: T,
}

/// Sums over a sweep.
#[derive(Clone, Copy)]
struct Sums<T> {
    /// Positive where the part is not calm.
    bad: T,
    /// Limits that act.
    limits: T,
    /// Work done from outside: by loads and motors \[J\].
    work: T,
    kinetic: T,
    potential: T,
    /// How far tension is from that of the factors, squared: the share of a correction that they leave.
    drift: T,
}

impl<T: Real> Sums<T> {
    #[inline(always)]
    fn zero() -> Self {
        let o = T::zero();
        Sums { bad: o, limits: o, work: o, kinetic: o, potential: o, drift: o }
    }

    #[inline(always)]
    fn refuse(&mut self, over: T) {
        self.bad = self.bad.max(over);
    }
}

/// How far a lane is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stand {
    /// Corrections go on.
    Moving,
    /// They are small: to be closed and judged.
    Small,
    Done,
    Failed,
}

/// The course of a lane.
#[derive(Clone, Copy)]
struct Course {
    stand: Stand,
    /// The last correction.
    last: f64,
    refactor: bool,
    limits: f64,
    /// How often other limits came to act.
    changes: u32,
    done: Done,
}

/// Passes before a part is not calm.
const PASSES: u32 = 10;
/// Changes of the limits that act before corrections must shrink all the same.
const CHANGES: u32 = 4;
/// Corrections are never taken to shrink faster than by this \[a share\]: factors are right to first order in turns of up to half a radian.
const FASTEST: f64 = 0.02;

impl Course {
    /// What a correction means. It is accepted once the next one would be below the tolerance. Newton's method with factors that are kept shrinks corrections
    /// by twice what the first pass did, `2 c₂/c₁`, with new ones by as much less as they are nearer, and with both by what `drift` tells.
    fn judge(&mut self, correction: f64, drift: f64, tolerance: f64) {
        self.done.passes += 1;
        let (ratio, first) = (correction / self.last, self.last == f64::INFINITY);
        let next = if self.refactor { 2.0 * ratio * ratio } else { 2.0 * ratio };
        if correction.is_nan() || correction > 1.0 || (!first && ratio > 0.7) || self.done.passes > PASSES {
            self.stand = Stand::Failed;
        } else if correction < tolerance
            || (!first && ratio < 0.3 && correction * next.max(FASTEST).max(drift) < tolerance)
        {
            self.stand = Stand::Small;
        } else {
            self.refactor =
                if first { correction > 0.1 } else { ratio > 0.5 || correction * ratio.powi(4) > tolerance };
        }
        self.last = correction;
    }

    /// Whether other limits act than in the last pass: the factors do not know them, and the last correction tells nothing of the next.
    fn sees_others(&mut self, limits: f64, first: bool) -> bool {
        let others = !first && limits != self.limits;
        self.limits = limits;
        if others {
            self.changes += 1;
            if self.changes <= CHANGES {
                self.last = f64::INFINITY;
            }
        }
        others && !self.refactor
    }
}

/// Which lanes a pass is for.
#[derive(Clone, Copy)]
struct Pass<T> {
    first: bool,
    /// Whether only the lanes that are `on` go on.
    some: bool,
    on: T,
    /// Whether all lanes get new factors, or only those that are `factored`.
    all: bool,
    factored: T,
}

/// The stages of a part, each compiled by itself.
struct Begin<'a, 'b, 's, T> {
    calm: &'a mut Calm<T>,
    plan: &'a Plan,
    parts: &'a [Part<'b>; 4],
    times: Times<T>,
    guard: f64,
    states: &'a [&'s mut State],
}

impl<T: Real> Kernel for Begin<'_, '_, '_, T> {
    type Output = Sums<T>;
    #[inline(always)]
    fn run(self) -> Sums<T> {
        self.calm.begin(self.plan, self.parts, &self.times, self.guard, self.states)
    }
}

struct Ascend<'a, 'b, T, const FACTOR: bool> {
    calm: &'a mut Calm<T>,
    plan: &'a Plan,
    parts: &'a [Part<'b>; 4],
    times: Times<T>,
    pass: Pass<T>,
    sums: Sums<T>,
}

impl<T: Real, const FACTOR: bool> Kernel for Ascend<'_, '_, T, FACTOR> {
    type Output = Sums<T>;
    #[inline(always)]
    fn run(mut self) -> Sums<T> {
        self.calm.ascend::<FACTOR>(self.plan, self.parts, &self.times, &self.pass, &mut self.sums);
        self.sums
    }
}

struct Descend<'a, 'b, T> {
    calm: &'a mut Calm<T>,
    plan: &'a Plan,
    parts: &'a [Part<'b>; 4],
    pass: Pass<T>,
}

impl<T: Real> Kernel for Descend<'_, '_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        self.calm.descend(self.plan, self.parts, &self.pass)
    }
}

struct Close<'a, 'b, T> {
    calm: &'a mut Calm<T>,
    plan: &'a Plan,
    parts: &'a [Part<'b>; 4],
    times: Times<T>,
}

impl<T: Real> Kernel for Close<'_, '_, T> {
    type Output = (Sums<T>, T);
    #[inline(always)]
    fn run(self) -> (Sums<T>, T) {
        self.calm.close(self.plan, self.parts, &self.times)
    }
}

struct Project<'a, T> {
    calm: &'a mut Calm<T>,
    plan: &'a Plan,
    on: T,
}

impl<T: Real> Kernel for Project<'_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        self.calm.project(self.plan, self.on)
    }
}

struct Run<'a, 'b, 's, T> {
    calm: &'a mut Calm<T>,
    task: Task<'b, 's>,
}

impl<T: Real> Kernel for Run<'_, '_, '_, T> {
    type Output = [Option<Done>; 4];

    #[inline(always)]
    fn run(self) -> [Option<Done>; 4] {
        let Run { calm, task } = self;
        let Task { plan, model, inputs, settings, h, left, after, impulses, states, notes } = task;
        let one = |l: usize| Part {
            plan,
            model,
            input: inputs[l.min(inputs.len() - 1)],
            touches: &[],
            rule: Rule::Midpoint,
            h,
            left,
            after,
            tension_damping: settings.tension_damping,
        };
        let parts = [one(0), one(1), one(2), one(3)];
        let times = Times {
            h: T::splat(h),
            inverse_h: T::splat(1.0 / h),
            two_h: T::splat(2.0 / h),
            gravity: vector(|l| inputs[l].gravity),
            tension_damping: T::splat(settings.tension_damping),
        };
        calm.set_springs(plan, inputs, h);
        calm.set_aims(plan, inputs);
        let guard = settings.guard / h;
        let before = T::enter(Begin { calm, plan, parts: &parts, times, guard, states: &*states });
        notes.mark(Stage::Check);
        let fresh = Course {
            stand: Stand::Moving,
            last: f64::INFINITY,
            refactor: true,
            limits: 0.0,
            changes: 0,
            done: Done::default(),
        };
        let mut lanes = [fresh; 4];
        for lane in 0..T::LANES {
            if before.bad.lane(lane) > 0.0 {
                lanes[lane].stand = Stand::Failed;
            }
        }
        let lanes = &mut lanes[..T::LANES];
        if lanes.iter().any(|lane| lane.stand == Stand::Moving) {
            calm.set_pulls(plan, model, inputs, (h, left));
        }
        let (mut work, mut first) = (T::zero(), true);
        loop {
            let moving = |c: &Course| c.stand == Stand::Moving;
            if lanes.iter().any(moving) {
                let on = T::gather(|l| if moving(&lanes[l]) { 1.0 } else { -1.0 });
                let some = !lanes.iter().all(moving);
                let loads = calm.pull(&times, first || lanes.iter().any(|c| moving(c) && c.refactor));
                let mut sums = calm.up(plan, &parts, &times, lanes, (first, some, on), loads);
                let mut others = false;
                for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.stand == Stand::Moving) {
                    if lane.sees_others(sums.limits.lane(l), first) {
                        (others, lane.refactor) = (true, true);
                    }
                }
                if others {
                    calm.pull(&times, true);
                    sums = calm.up(plan, &parts, &times, lanes, (first, some, on), loads);
                }
                let factor = lanes.iter().any(|c| moving(c) && c.refactor);
                first = false;
                notes.mark(if factor { Stage::Factor } else { Stage::Forces });
                let pass = Pass { first, some, on, all: true, factored: on };
                let largest = T::enter(Descend { calm, plan, parts: &parts, pass });
                notes.mark(Stage::Solve);
                work = on.if_positive(sums.work, work);
                for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.stand == Stand::Moving) {
                    lane.done.factorisations += u32::from(lane.refactor);
                    lane.judge(largest.lane(l).sqrt(), sums.drift.lane(l).sqrt(), settings.tolerance);
                    if sums.bad.lane(l) > 0.0 {
                        lane.stand = Stand::Failed;
                    }
                }
                continue;
            }
            if !lanes.iter().any(|lane| lane.stand == Stand::Small) {
                break;
            }
            let (mut sums, opening) = T::enter(Close { calm, plan, parts: &parts, times });
            for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.stand == Stand::Small) {
                if sums.limits.lane(l) != lane.limits {
                    // Other limits act than those that the last pass saw: one pass more, with a matrix that knows them.
                    lane.limits = sums.limits.lane(l);
                    (lane.stand, lane.refactor, lane.last) = (Stand::Moving, true, f64::INFINITY);
                    if lane.done.passes >= PASSES {
                        lane.stand = Stand::Failed;
                    }
                }
            }
            if lanes.iter().any(|lane| lane.stand == Stand::Moving) {
                continue;
            }
            let bound = settings.projection * settings.projection;
            if opening.any_above(bound) {
                let kinetic = T::enter(Project { calm, plan, on: opening - T::splat(bound) });
                sums.kinetic = (opening - T::splat(bound)).if_positive(kinetic, sums.kinetic);
            }
            for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.stand == Stand::Small) {
                if opening.lane(l) > bound {
                    lane.done.projections += 1;
                    lane.done.factorisations += 1;
                    lane.done.passes += 1;
                }
                let kinetic = (before.kinetic.lane(l), sums.kinetic.lane(l));
                let potential = (before.potential.lane(l), sums.potential.lane(l));
                let kept = super::energy_kept(plan, inputs[l], h, kinetic, potential, work.lane(l), 0.0);
                lane.stand = if kept && sums.bad.lane(l) <= 0.0 { Stand::Done } else { Stand::Failed };
            }
        }
        notes.mark(Stage::Close);
        if !lanes.iter().any(|lane| lane.stand == Stand::Done) {
            return [None; 4];
        }
        calm.measure(plan, lanes);
        for (l, lane) in lanes.iter_mut().enumerate() {
            lane.done.limits = lane.limits as u32;
            if lane.stand == Stand::Done && !calm.write(plan, &times, l, states[l]) {
                lane.stand = Stand::Failed;
            }
        }
        if impulses == Impulses::Keep {
            calm.find_impulses(plan, &parts, times);
        }
        notes.mark(Stage::Measure);
        let mut done = [None; 4];
        for (slot, lane) in done.iter_mut().zip(&*lanes) {
            *slot = (lane.stand == Stand::Done).then_some(lane.done);
        }
        done
    }
}

impl<T: Real> Calm<T> {
    /// The way up, with new factors for the lanes that want them.
    #[inline(always)]
    fn up(
        &mut self,
        plan: &Plan,
        parts: &[Part<'_>; 4],
        times: &Times<T>,
        lanes: &[Course],
        (first, some, on): (bool, bool, T),
        work: T,
    ) -> Sums<T> {
        let renews = |lane: &Course| lane.stand == Stand::Moving && lane.refactor;
        let factored = T::gather(|l| if renews(&lanes[l]) { 1.0 } else { -1.0 });
        let (all, sums) = (lanes.iter().all(renews), Sums { work, ..Sums::zero() });
        let (times, pass) = (*times, Pass { first, some, on, all, factored });
        if lanes.iter().any(renews) {
            T::enter(Ascend::<T, true> { calm: self, plan, parts, times, pass, sums })
        } else {
            T::enter(Ascend::<T, false> { calm: self, plan, parts, times, pass, sums })
        }
    }

    /// Stiffness and damping of every joint, with the factors of the inputs.
    #[inline(always)]
    fn set_springs(&mut self, plan: &Plan, inputs: &[&Input], h: f64) {
        let mut scales = [(1.0, 1.0); 4];
        for (scales, input) in scales.iter_mut().zip(inputs) {
            *scales = input.scales(&JointInput::default());
        }
        let same = inputs.iter().all(|input| input.joints.is_empty());
        let of = (h, scales);
        if same && self.springs_of == Some(of) {
            return;
        }
        let new_h = self.springs_of.is_none_or(|(last, _)| last != h);
        for (i, node) in plan.nodes.iter().enumerate().skip(1) {
            if node.joint == NONE || matches!(node.link, Link::Weld | Link::General(_)) {
                continue;
            }
            let scale =
                |l: usize| if same { scales[l] } else { inputs[l].scales(&inputs[l].joint(node.joint as usize)) };
            let springs = &mut self.springs[i];
            springs.k = T::gather(|l| node.stiffness * scale(l).0);
            let c = std::array::from_fn(|l| if l < T::LANES { node.damping * scale(l).1 } else { 0.0 });
            if new_h || self.damping[i] != c {
                let over = |l: usize| Damper::over(Rule::Midpoint, h, c[l], node.joint_inertia.0);
                springs.damper =
                    Damper { strength: T::gather(|l| over(l).strength), start: T::gather(|l| over(l).start) };
                self.damping[i] = c;
            }
        }
        self.springs_of = Some((h, if same { scales } else { [(f64::NAN, f64::NAN); 4] }));
    }

    /// What motors aim at.
    #[inline(always)]
    fn set_aims(&mut self, plan: &Plan, inputs: &[&Input]) {
        for node in &plan.nodes[1..] {
            if node.flags & MOTOR == 0 || matches!(node.link, Link::General(_)) {
                continue;
            }
            let joint = &plan.details[node.detail as usize].joint;
            let Some(motor) = &joint.motor else { continue };
            let own = |l: usize| inputs[l].joint(node.joint as usize);
            self.aims[node.detail as usize] = if node.link == Link::Hinge {
                Aim::Line(Servo::gather(|l| Servo::of(motor, inputs[l], &own(l))))
            } else {
                let (a, b) = (joint.child_from_joint.rotation, joint.parent_from_joint.rotation);
                let of = |l: usize| TurnServo::of(motor, inputs[l], &own(l));
                if (0..T::LANES).any(|l| of(l).is_none()) {
                    Aim::None
                } else {
                    let servo = |l: usize| of(l).map_or((0.0, 0.0, 0.0), |(s, _)| (s.stiffness, s.damping, s.max));
                    let rest =
                        |l: usize| of(l).map_or(DQuat::IDENTITY, |(_, aim)| (b * aim * a.conjugate()).conjugate());
                    let servo = TurnServo {
                        stiffness: T::gather(|l| servo(l).0),
                        damping: T::gather(|l| servo(l).1),
                        max: T::gather(|l| servo(l).2),
                    };
                    Aim::Turn(servo, quaternion(rest))
                }
            };
        }
    }
}

/// Whether four characters may go side by side: balls with motors aim at a rotation in all lanes or in none.
pub(super) fn may_go_beside(plan: &Plan, inputs: &[&Input; 4]) -> bool {
    inputs.iter().all(|input| input.joints.is_empty())
        || plan.nodes[1..].iter().filter(|node| node.flags & MOTOR != 0 && node.joint != NONE).all(|node| {
            let turns =
                |input: &&Input| matches!(input.joint(node.joint as usize).servo, Some(ServoTarget::Rotation(_)));
            inputs.iter().all(turns) || !inputs.iter().any(turns)
        })
}
