//! The linear systems of the general step: which blocks there are, and how they are filled.

use super::discs::Discs;
use super::touch::Touch;
use crate::contact::{Contact, Other};
use crate::flesh::couple::Coupled;
use crate::forces::{Acting, Force, PairBlock, Source, Stop};
use crate::input::{Grip, Input};
use crate::maths::block::{Block, Vector, add_scaled, from_twist, from_wrench, to_twist, to_wrench};
use crate::maths::lanes::Instructions;
use crate::maths::rotation::{exp, exp_derivative, log, skew, turned_inertia};
use crate::maths::sparse::{Ldl, Lu, Slot, Sparse};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::joint::{Rows as JointRows, Sides};
use crate::model::{Body, BodyId, BodyState, Joint, JointId, Model, State};
use crate::solver::Mode;
use crate::step::Failure;
use glam::{DMat3, DQuat, DVec3};
use std::ops::Range;

/// What a part of a step is about.
pub(super) struct Part<'a> {
    pub(super) model: &'a Model,
    pub(super) input: &'a Input,
    /// \[s\]
    pub(super) h: f64,
    /// From its end to that of the step \[s\].
    pub(super) after: f64,
    /// Size of the model \[m\].
    pub(super) reach: f64,
    /// Whether it fails, to be halved, when contacts are far from settled.
    pub(super) must_settle: bool,
    pub(super) contacts: &'a [Contact],
    /// Ends of hard limits that are near.
    pub(super) stops: &'a [Stop],
    /// By body: whether it stays where it is, at rest, with all that is joined to it; empty when all move.
    pub(super) held: &'a [bool],
    pub(super) accuracy: Accuracy,
}

impl Part<'_> {
    pub(super) fn is_held(&self, body: usize) -> bool {
        self.held.get(body).is_some_and(|held| *held)
    }

    /// The wrenches of the input on bodies that move.
    pub(super) fn wrenches(&self) -> impl Iterator<Item = &(BodyId, Wrench)> {
        self.input.wrenches.iter().filter(|(body, _)| !self.is_held(body.index()))
    }
}

/// How exactly contacts are solved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accuracy {
    /// Of what must not pass through anything, as a share of the speed at hand.
    pub(super) contacts: f64,
    /// Of the size of friction, as a share of it. What is left is taken up by the next step.
    pub(super) friction: f64,
    /// Passes of one system in which rounds of (5) may begin, and those of Newton's method on (4).
    pub(super) passes: u32,
    pub(super) newton: u32,
}

impl Accuracy {
    pub(super) fn of(mode: Mode) -> Accuracy {
        match mode {
            Mode::Fast => Accuracy { contacts: 1e-3, friction: 0.1, passes: 8, newton: 8 },
            Mode::Default => Accuracy { contacts: 1e-6, friction: 1e-2, passes: 80, newton: 60 },
            Mode::Accurate | Mode::Conservative => Accuracy { contacts: 1e-8, friction: 1e-6, passes: 80, newton: 60 },
        }
    }
}

/// Whose pose in the middle of the drift gives the inertia of p(v).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Middle {
    /// That of the drift itself: (1) is not linear in v, and keeps the energy of what spins.
    OfDrift,
    /// That of the body turning freely: (1) is linear in v, and the same where nothing acts. Where contacts push there is no such energy to keep,
    /// and a slender body that spins would make Newton's method slow.
    Foretold,
}

/// How the end of a drift with v, and a push besides, turns with v: by this times `h δw`.
pub(super) fn turn_by_drift(v: &Vector, push: &Vector, h: f64) -> DMat3 {
    exp_derivative((to_twist(v).angular + to_twist(push).angular) * h)
}

/// The inertia of a body in the middle of a drift with the angular velocity w.
fn middle_inertia(body: &Body, start: &BodyState, w: DVec3, h: f64) -> DMat3 {
    turned_inertia(exp(w * (0.5 * h)) * start.orientation, body.inertia)
}

/// The derivative of the angular momentum `I(½h w) w` in the middle of a drift, I being [`middle_inertia`]:
///
/// ```text
/// δ(I w) = I δw + ½h (δw × I w − I (δw × w))
/// ```
fn spin_derivative(inertia: DMat3, w: DVec3, h: f64) -> DMat3 {
    inertia + (inertia * skew(w) - skew(inertia * w)) * (0.5 * h)
}

/// The angular velocity with which a body would drift if nothing acted: `I(½h w) w = I(0) w0`, by Newton's method.
fn free_turn(body: &Body, start: &BodyState, h: f64) -> DVec3 {
    let w0 = start.velocity.angular;
    let momentum = turned_inertia(start.orientation, body.inertia) * w0;
    let mut w = w0;
    for _ in 0..20 {
        let inertia = middle_inertia(body, start, w, h);
        let missing = momentum - inertia * w;
        let step = spin_derivative(inertia, w, h).inverse() * missing;
        if !step.is_finite() {
            return w0;
        }
        w += step;
        if step.length() <= 1e-13 * w.length() {
            return w;
        }
    }
    if (w - w0).length() * h < 0.5 { w } else { w0 }
}

/// How a force enters, (3) of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// By the midpoint rule.
    Resolved,
    /// By the backward rule, in each half of the step.
    Backward,
    /// By the backward rule, all in the first half: beside flesh, which acts there alone.
    Whole,
}

impl Weight {
    /// `softness` is the velocity that a unit impulse along the force causes: with k, c the spring turns by `√(k softness) h` in h.
    fn of(force: &Force, softness: f64, h: f64) -> Weight {
        let (k, c) = match force {
            Force::Along(f) => (f.stiffness, f.damping),
            Force::Turning(f) => (largest(&f.stiffness), f.damping),
            Force::Anchored(f) => (largest(&f.stiffness), f.damping),
        };
        if (h * h * k + h * c) * softness < 1.0 { Weight::Resolved } else { Weight::Backward }
    }

    /// Where in the drift the force is evaluated.
    pub(super) fn place(self) -> f64 {
        match self {
            Weight::Resolved => 0.5,
            Weight::Backward | Weight::Whole => 1.0,
        }
    }

    /// The share of a force's impulse in the first half of the step.
    pub(super) fn share(self) -> f64 {
        match self {
            Weight::Resolved | Weight::Backward => 0.5,
            Weight::Whole => 1.0,
        }
    }
}

fn largest(m: &DMat3) -> f64 {
    m.to_cols_array().into_iter().fold(0.0, |a, x| a.max(x.abs()))
}

/// The velocity that a unit impulse of `force` causes at its point of `body`, as side a and as side b: `J M⁻¹ Jᵀ`, at most.
fn softness(model: &Model, state: &State, id: BodyId, force: &Force) -> [f64; 2] {
    let (body, s) = (model.body(id), &state.bodies[id.index()]);
    let light = |v: DVec3| v.dot(turned_inertia(s.orientation, body.inertia).inverse() * v);
    let row = |t: Twist| t.linear.length_squared() / body.mass + light(t.angular);
    match force {
        Force::Along(f) => [row(f.a), row(f.b)],
        Force::Turning(_) => {
            let e = largest(&body.inertia.inverse());
            [e, e]
        }
        Force::Anchored(f) => {
            let e = |r: DVec3| 1.0 / body.mass + r.length_squared() * largest(&body.inertia.inverse());
            [e(f.r_a), e(f.r_b)]
        }
    }
}

/// A force of the step.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) source: Source,
    pub(super) a: BodyId,
    pub(super) b: Option<BodyId>,
    pub(super) force: Force,
    pub(super) weight: Weight,
}

impl Kept {
    /// A force of a part, with its weight (3).
    pub(super) fn new(part: &Part<'_>, state: &State, acting: &Acting<'_>, is_whole: bool) -> Kept {
        let &Acting { source, a, b, force } = acting;
        let softness = |body: BodyId| softness(part.model, state, body, force);
        let softness = softness(a)[0] + b.map_or(0.0, |b| softness(b)[1]);
        let weight = if is_whole { Weight::Whole } else { Weight::of(force, softness, part.h) };
        Kept { source, a, b, force: *force, weight }
    }

    /// The joint whose limit or motor it is.
    pub(super) fn stop_or_motor(&self) -> Option<JointId> {
        match self.source {
            Source::Limit(id) | Source::Motor(id) => Some(id),
            _ => None,
        }
    }

    /// `½h (θ h K + D)`: what the force adds to A, θ the place in the drift where it is evaluated; twice that where it acts in the first half alone.
    fn block(&self, h: f64, place: f64) -> PairBlock {
        let share = self.weight.share() * h;
        self.force.block(share * h * place, share)
    }

    /// S of (3): its impulses on a and b in the first half of the step when the bodies drift with v.
    pub(super) fn first(&self, v: &[Vector], h: f64) -> [Wrench; 2] {
        let share = self.weight.share() * h;
        self.less(v, h, (share * h * self.weight.place(), share))
    }

    /// S' of (3), of a backward force without what depends on the velocities of the end.
    pub(super) fn second(&self, v: &[Vector], h: f64) -> [Wrench; 2] {
        match self.weight {
            Weight::Resolved => self.first(v, h),
            Weight::Backward => self.force.wrenches().map(|wrench| wrench * (0.5 * h)),
            Weight::Whole => [Wrench::ZERO; 2],
        }
    }

    /// What a force gives up of its energy while the bodies drift with v, as impulses; what it takes by damping is in it if it is resolved, else it is told by
    /// [`damped`](Self::damped).
    pub(super) fn given(&self, v: &[Vector], h: f64) -> [Wrench; 2] {
        match self.weight {
            Weight::Resolved => self.first(v, h).map(|impulse| impulse * 2.0),
            Weight::Whole => self.first(v, h),
            Weight::Backward => self.less(v, h, (0.25 * h * h, 0.0)).map(|impulse| impulse * 2.0),
        }
    }

    /// The energy that the damping of a force that is not resolved takes at most while the bodies drift with v: `h v·D v`. At the end they are slower.
    pub(super) fn damped(&self, v: &[Vector], h: f64) -> f64 {
        if self.weight != Weight::Backward {
            return 0.0;
        }
        let (v_a, v_b) = self.velocities(v);
        let [on_a, on_b] = self.force.taken(0.0, h, v_a, v_b);
        on_a.power(v_a) + on_b.power(v_b)
    }

    /// `½h W − (k K + c D) v`, or `h W − …` where the force acts in the first half alone.
    fn less(&self, v: &[Vector], h: f64, (k, c): (f64, f64)) -> [Wrench; 2] {
        let (v_a, v_b) = self.velocities(v);
        let ([on_a, on_b], [less_a, less_b]) = (self.force.wrenches(), self.force.taken(k, c, v_a, v_b));
        let share = self.weight.share() * h;
        [on_a * share + -less_a, on_b * share + -less_b]
    }

    fn velocities(&self, v: &[Vector]) -> (Twist, Twist) {
        (to_twist(&v[self.a.index()]), self.b.map_or(Twist::ZERO, |b| to_twist(&v[b.index()])))
    }
}

/// The leader's side of a coupling, whose other side is a [`Link`]: its bodies and the places of their blocks.
#[derive(Clone, Copy)]
struct Leader {
    bodies: [Option<(usize, Slot)>; 2],
}

/// A joint, a coupling or a grip: rows between two bodies, or a body and the world. The rows themselves are in the matrix: those at the start of the drift, or where
/// rows move with it the mean of both ends.
#[derive(Clone, Copy)]
pub(super) struct Link {
    a: usize,
    b: Option<usize>,
    rows: usize,
    /// Which rows are lengths, a bit each; the others are angles.
    lengths: u8,
    /// Where its rows of the start are kept.
    first_row: u32,
    /// From its bodies' centres to where it holds them \[m\]; without end for what is no joint.
    length: f64,
    /// Places of its blocks.
    at_a: Slot,
    at_b: Slot,
    /// Multipliers of (1).
    pub(super) y: Vector,
    /// μ
    regular: f64,
}

/// The systems (1) and (2) over bodies, joints, couplings and grips.
pub(super) struct System {
    pub(super) matrix: Sparse,
    pub(super) ldl: Ldl,
    pub(super) bodies: usize,
    pub(super) links: Vec<Link>,
    /// By coupling.
    leaders: Vec<Leader>,
    /// The velocities that grips ask for at the end. What else links ask for is to stay as it is.
    led: Vec<Vector>,
    /// How fast joints open in (2), by joint: what the midpoint rule leaves of a velocity that would open them alternates from part to part, and no energy is lost by it.
    opening: Vec<Vector>,
    /// Rows of joints at the start of the drift, both sides of each, where rows move with it.
    rows_of_start: Vec<[Vector; 2]>,
    /// Places of the blocks between the bodies of each pair that forces connect.
    pairs: Vec<(usize, usize)>,
    /// The velocities of the drift, by body.
    pub(super) v: Vec<Vector>,
    /// The inertia in the middle of the drift that is in the matrix of (1), by body.
    middle: Vec<DMat3>,
    /// The same where the drift has come to, as the last residual found it.
    ahead: Vec<DMat3>,
    /// What the derivative under tension adds to the rotations of each body, and between the rotations of each joint's bodies: its symmetric part.
    turning: Vec<DMat3>,
    crossing: Vec<DMat3>,
    /// Whether both are those of the last residual.
    is_bent: bool,
    /// One over the mass, and the inverse of the inertia in the body's axes, by body.
    pub(super) lightness: Vec<(f64, DMat3)>,
    drifted: Vec<Vector>,
    /// Right-hand side and solution, by node.
    pub(super) x: Vec<Vector>,
    pub(super) keep: Vec<Vector>,
    pub(super) plain: Vec<Vector>,
    pub(super) step: Vec<Vector>,
    /// v and y where they were followed last, with flesh.
    pub(super) place: Vec<Vector>,
    /// Bodies that are gripped, and pairs of bodies that touch, as the pattern was made for them.
    gripped: Vec<(BodyId, usize)>,
    touching: Vec<(usize, usize)>,
    /// Contacts and hard limits of the step.
    pub(super) touches: Vec<Touch>,
    /// The matrix with what touches add; without touches, that of Newton's method at the present drift.
    pub(super) stiffened: Sparse,
    /// What is above the diagonal of a matrix that is not symmetric, transposed; `stiffened` has the rest.
    pub(super) above: Sparse,
    /// Factors of what is not symmetric.
    pub(super) lu: Lu,
    /// Touches, v, y and what was missing before Newton's method on (4) began.
    pub(super) kept_touches: Vec<Touch>,
    pub(super) kept_place: Vec<Vector>,
    pub(super) kept_plain: Vec<Vector>,
    pub(super) discs: Discs,
    /// Room for finding the pattern.
    sizes: Vec<usize>,
    edges: Vec<(usize, usize)>,
    near: Vec<(usize, usize)>,
    /// Pairs of bodies that flesh connects.
    fleshy: Vec<(usize, usize)>,
}

/// Where μ comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regular {
    /// From the rows.
    OfRows,
    /// That of the rows of the start of the part, which are nearly the same.
    AsBefore,
}

/// How far velocities may open joints within a part, as a share of a lever or an angle.
const OPENING: f64 = 1e-2;
/// μ as a share of `J A⁻¹ Jᵀ`.
const REGULAR: f64 = 1e-12;
/// Refinements of the linear system (2), at most: a change of velocities by this share is rounding.
const REFINEMENTS: u32 = 3;
const ROUNDING: f64 = 1e-12;

impl System {
    pub(super) fn new(model: &Model) -> System {
        let mut system = System {
            matrix: Sparse::new(&[], &[]),
            ldl: Ldl::new(&Sparse::new(&[], &[])),
            bodies: model.bodies().len(),
            links: Vec::new(),
            leaders: Vec::new(),
            led: Vec::new(),
            opening: Vec::new(),
            rows_of_start: Vec::new(),
            pairs: Vec::new(),
            v: vec![[0.0; 6]; model.bodies().len()],
            middle: vec![DMat3::ZERO; model.bodies().len()],
            ahead: vec![DMat3::ZERO; model.bodies().len()],
            turning: vec![DMat3::ZERO; model.bodies().len()],
            crossing: vec![DMat3::ZERO; model.joints().len()],
            is_bent: false,
            lightness: model.bodies().iter().map(|body| (1.0 / body.mass, body.inertia.inverse())).collect(),
            drifted: Vec::new(),
            x: Vec::new(),
            keep: Vec::new(),
            plain: Vec::new(),
            step: Vec::new(),
            place: Vec::new(),
            gripped: Vec::new(),
            touching: Vec::new(),
            touches: Vec::new(),
            stiffened: Sparse::new(&[], &[]),
            above: Sparse::new(&[], &[]),
            lu: Lu::default(),
            kept_touches: Vec::new(),
            kept_place: Vec::new(),
            kept_plain: Vec::new(),
            discs: Discs::default(),
            sizes: Vec::new(),
            edges: Vec::new(),
            near: Vec::new(),
            fleshy: Coupled::pairs(model),
        };
        system.build(model);
        system
    }

    /// From now on computes with these instructions.
    pub(super) fn use_instructions(&mut self, instructions: Instructions) {
        self.ldl.use_instructions(instructions);
        self.matrix.use_instructions(instructions);
    }

    /// Makes the pattern fit the grips and contacts of this step.
    pub(super) fn fit(&mut self, part: &Part<'_>) {
        let now = |grip: &Grip| (grip.body, if grip.rotation.is_some() { 6 } else { 3 });
        self.near.clear();
        self.near.extend(part.contacts.iter().filter_map(|c| match c.b {
            Other::Body(b) => Some((c.a.index(), b.index())),
            Other::Obstacle(_) => None,
        }));
        self.near.sort_unstable();
        self.near.dedup();
        if self.near != self.touching || !part.input.grips.iter().map(now).eq(self.gripped.iter().copied()) {
            self.gripped.clear();
            self.gripped.extend(part.input.grips.iter().map(now));
            self.touching.clone_from(&self.near);
            self.build(part.model);
        }
    }

    /// The pattern: bodies, then joints, then couplings, then grips. Contacts are between bodies.
    fn build(&mut self, model: &Model) {
        let System { sizes, edges, pairs, .. } = self;
        let n = self.bodies;
        sizes.clear();
        sizes.resize(n, 6);
        pairs.clear();
        let springs = model.anchor_springs().iter().filter_map(|s| Some((s.a.index(), s.b?.index())));
        let joints = model.joints().iter().filter_map(|j| Some((j.child.index(), j.parent?.index())));
        pairs.extend(joints.chain(springs).chain(self.fleshy.iter().copied()));
        edges.clear();
        edges.extend(pairs.iter().chain(&self.touching).copied());
        for (k, joint) in model.joints().iter().enumerate() {
            sizes.push(joint.mask.rows());
            edges.push((n + k, joint.child.index()));
            edges.extend(joint.parent.map(|b| (n + k, b.index())));
        }
        for (k, coupling) in model.couplings().iter().enumerate() {
            sizes.push(1);
            for joint in [Some(coupling.follower), coupling.leader].into_iter().flatten().map(|id| model.joint(id)) {
                let bodies = [Some(joint.child), joint.parent].into_iter().flatten();
                edges.extend(bodies.map(|body| (n + model.joints().len() + k, body.index())));
            }
        }
        for (k, (body, rows)) in self.gripped.iter().enumerate() {
            sizes.push(*rows);
            edges.push((n + first_grip(model) + k, body.index()));
        }
        self.matrix.set_pattern(sizes, edges);
        self.stiffened.set_pattern(sizes, edges);
        self.above.set_pattern(sizes, edges);
        self.ldl.set_pattern(&self.matrix);
        self.lu.set_pattern(&self.ldl);
        let matrix = &self.matrix;
        let link = |node: usize, rows: usize, a: usize, b: Option<usize>| Link {
            a,
            b,
            rows,
            lengths: 0,
            first_row: 0,
            length: f64::INFINITY,
            at_a: matrix.slot(node, a),
            at_b: matrix.slot(node, b.unwrap_or(a)),
            y: [0.0; 6],
            regular: 0.0,
        };
        let joints = model.joints().iter().enumerate();
        let joints = joints.map(|(k, j)| Link {
            length: j.child_from_joint.translation.length()
                + j.parent.map_or(0.0, |_| j.parent_from_joint.translation.length()),
            ..link(n + k, j.mask.rows(), j.child.index(), j.parent.map(|b| b.index()))
        });
        let grips = self.gripped.iter().enumerate();
        let grips = grips.map(|(k, (body, rows))| link(n + first_grip(model) + k, *rows, body.index(), None));
        let couplings = model.couplings().iter().enumerate().map(|(k, c)| (n + model.joints().len() + k, c));
        let followers = couplings.clone().map(|(node, c)| {
            let follower = model.joint(c.follower);
            link(node, 1, follower.child.index(), follower.parent.map(|b| b.index()))
        });
        let place = |node: usize, body: BodyId| (body.index(), matrix.slot(node, body.index()));
        let leaders = couplings.map(|(node, c)| {
            let leader = c.leader.map(|id| model.joint(id));
            let bodies = [leader.map(|joint| joint.child), leader.and_then(|joint| joint.parent)];
            Leader { bodies: bodies.map(|body| body.map(|body| place(node, body))) }
        });
        self.links.clear();
        self.links.extend(joints.chain(followers).chain(grips));
        self.leaders.clear();
        self.leaders.extend(leaders);
        self.led.clear();
        self.led.resize(self.gripped.len(), [0.0; 6]);
        self.opening.clear();
        self.opening.resize(model.joints().len(), [0.0; 6]);
        let mut row = 0;
        for link in self.links.iter_mut().take(model.joints().len()) {
            link.first_row = row;
            row += link.rows as u32;
        }
        self.rows_of_start.clear();
        self.rows_of_start.resize(row as usize, [[0.0; 6]; 2]);
        let kept = [&mut self.kept_plain, &mut self.kept_place];
        for list in [&mut self.x, &mut self.keep, &mut self.plain, &mut self.step].into_iter().chain(kept) {
            list.clear();
            list.resize(sizes.len(), [0.0; 6]);
        }
    }

    /// The velocities of the start are the first guess, without impulses of joints.
    pub(super) fn guess(&mut self, state: &State) {
        for (v, s) in self.v.iter_mut().zip(&state.bodies) {
            *v = from_twist(s.velocity);
        }
        self.links.iter_mut().for_each(|link| link.y = [0.0; 6]);
    }

    /// Guesses that joints pull as the state remembers it, along the rows of the start; tells whether it remembers any.
    pub(super) fn recall(&mut self, part: &Part<'_>, state: &State) -> bool {
        if state.joints.iter().all(|joint| joint.force == DVec3::ZERO) {
            return false;
        }
        for (link, joint) in self.links.iter_mut().zip(&state.joints) {
            let rows = self.matrix.rows(link.at_a, link.rows);
            for (y, row) in link.y.iter_mut().zip(rows) {
                *y = -0.5 * part.h * to_twist(row).linear.dot(joint.force);
            }
        }
        true
    }

    /// The forces of joints in (1) and (2), for the state to remember.
    pub(super) fn remember(&self, h: f64, state: &mut State) {
        for (link, joint) in self.links.iter().zip(&mut state.joints) {
            joint.force = link.pull(&self.matrix) * (-2.0 / h);
        }
    }

    /// `[A J0ᵀ; J0 −μ]` with A = M in the middle of the drift, as the velocities of the start foretell it, and the forces.
    pub(super) fn assemble_first(&mut self, part: &Part<'_>, middle: Middle, state: &State, forces: &[Kept]) {
        let &Part { model, h, .. } = part;
        self.matrix.clear_outside(self.joints(model));
        for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
            let w = match middle {
                Middle::OfDrift => s.velocity.angular,
                Middle::Foretold => free_turn(body, s, h),
            };
            self.middle[i] = middle_inertia(body, s, w, h);
            self.matrix.add(i, i, &inertia(body.mass, self.middle[i]));
        }
        for kept in forces {
            self.add_force(kept, kept.block(h, kept.weight.place()));
        }
        self.set_rows(part, state, Regular::OfRows);
    }

    /// `[A J1ᵀ; J1 −μ]` at the end of the drift, with A = M and what backward forces add. Joints are to stay closed, grips to go on as they drifted.
    pub(super) fn assemble_second(&mut self, part: &Part<'_>, state: &State, forces: &[Kept], regular: Regular) {
        self.opening.fill([0.0; 6]);
        self.led.clear();
        let grips = self.links.iter().skip(first_grip(part.model));
        self.led.extend(grips.map(|link| times(self.matrix.rows(link.at_a, link.rows), &self.v[link.a])));
        self.matrix.clear_outside(self.joints(part.model));
        for (i, (body, s)) in part.model.bodies().iter().zip(&state.bodies).enumerate() {
            self.matrix.add(i, i, &inertia(body.mass, turned_inertia(s.orientation, body.inertia)));
        }
        for kept in forces.iter().filter(|kept| kept.weight == Weight::Backward) {
            self.add_force(kept, kept.block(part.h, 1.0));
        }
        self.set_rows(part, state, regular);
    }

    fn add_force(&mut self, kept: &Kept, block: PairBlock) {
        let a = kept.a.index();
        self.matrix.add(a, a, &block.aa);
        if let Some(b) = kept.b.map(BodyId::index) {
            self.matrix.add(b, b, &block.bb);
            self.matrix.add(a, b, &block.ab);
        }
    }

    fn set_rows(&mut self, part: &Part<'_>, state: &State, regular: Regular) {
        let &Part { model, input, .. } = part;
        // J M⁻¹ Jᵀ of one row
        let light = |i: usize, row: Twist| {
            if regular == Regular::AsBefore {
                return 0.0;
            }
            let w = state.bodies[i].orientation.conjugate() * row.angular;
            row.linear.length_squared() * self.lightness[i].0 + w.dot(self.lightness[i].1 * w)
        };
        for (k, link) in self.links.iter_mut().enumerate() {
            let mut compliance = 0.0;
            let mut set = |matrix: &mut Sparse, link: &mut Link, r: usize, [a, b]: [Twist; 2]| {
                matrix.rows_mut(link.at_a, link.rows)[r] = from_twist(a);
                compliance += light(link.a, a);
                if let Some(other) = link.b {
                    matrix.rows_mut(link.at_b, link.rows)[r] = from_twist(b);
                    compliance += light(other, b);
                }
                link.lengths |= u8::from(a.linear != DVec3::ZERO) << r;
            };
            link.lengths = 0;
            match Rows::of(model, k) {
                Rows::Joint(joint) => {
                    for (r, row) in joint.rows(&model.sides(joint, state)).iter().enumerate() {
                        set(&mut self.matrix, link, r, [row.a, row.b]);
                    }
                }
                Rows::Coupling(c) => {
                    let row = model.couplings()[c].row_at(model, state);
                    set(&mut self.matrix, link, 0, row.follower);
                    for (side, twist) in self.leaders[c].bodies.iter().zip(row.leader) {
                        let &Some((body, slot)) = side else { continue };
                        add_scaled(&mut self.matrix.rows_mut(slot, 1)[0], 1.0, &from_twist(twist));
                        compliance += light(body, twist);
                    }
                }
                Rows::Grip(g) => {
                    let rows = grip_rows(&state.bodies[link.a].pose(), &input.grips[g]);
                    for (r, row) in rows.into_iter().enumerate().take(link.rows) {
                        set(&mut self.matrix, link, r, [row, Twist::ZERO]);
                    }
                }
            }
            if link.rows > 0 {
                if regular == Regular::OfRows {
                    link.regular = REGULAR * compliance / link.rows as f64;
                }
                self.matrix.add_diagonal(self.bodies + k, -link.regular);
            }
        }
    }

    /// The nodes of joints.
    fn joints(&self, model: &Model) -> Range<usize> {
        self.bodies..self.bodies + model.joints().len()
    }

    pub(super) fn factor(&mut self, model: &Model) -> Result<(), Failure> {
        self.ldl.factor(&self.matrix).map_err(|node| self.failed_at(model, node))
    }

    pub(super) fn failed_at(&self, model: &Model, node: usize) -> Failure {
        let Some(link) = node.checked_sub(self.bodies) else { return Failure::NotFinite(BodyId(node as u32)) };
        match Rows::of(model, link) {
            Rows::Joint(_) => Failure::Factor(JointId(link as u32)),
            Rows::Coupling(c) => Failure::Factor(model.couplings()[c].follower),
            Rows::Grip(_) => Failure::NotFinite(BodyId(self.links[link].a as u32)),
        }
    }

    /// What is missing in (1) at the drift v that leads to `poses`, without touches, as the right-hand side of the next correction. Returns how
    /// far joints are open, as a share of the model's size or in radians.
    pub(super) fn residual(
        &mut self,
        part: &Part<'_>,
        (middle, along): (Middle, Along),
        state: &State,
        poses: &[Pose],
        momenta: &[Vector],
    ) -> f64 {
        let &Part { model, input, h, reach, .. } = part;
        // p0 + S − p(v) − Jᵀ y: the matrix has A v for p(v) − S(v); the inertia in it is that of the guess, set right here
        let (bodies, links) = self.x.split_at_mut(self.bodies);
        bodies.copy_from_slice(momenta);
        self.matrix.subtract_product_within(self.bodies, &self.v, bodies);
        if middle == Middle::OfDrift {
            for (i, (body, s)) in model.bodies().iter().zip(&state.bodies).enumerate() {
                let w = to_twist(&self.v[i]).angular;
                self.ahead[i] = middle_inertia(body, s, w, h);
                let right = self.middle[i] * w - self.ahead[i] * w;
                add_scaled(&mut bodies[i], 1.0, &from_twist(Twist::new(DVec3::ZERO, right)));
            }
        }
        let mut largest = 0.0f64;
        for (k, (link, x)) in self.links.iter().zip(links).enumerate() {
            let mut open = [0.0; 6];
            match Rows::of(model, k) {
                // It stays as it is, closed or not.
                _ if part.is_held(link.a) => {}
                Rows::Joint(joint) => {
                    let rows = joint.rows(&link.sides_at(poses));
                    for (open, row) in open.iter_mut().zip(rows.iter()) {
                        *open = row.residual;
                    }
                    if along == Along::Mean {
                        link.act_along_mean(&self.rows_of_start, &rows, &mut self.matrix);
                    }
                }
                Rows::Coupling(c) => open[0] = model.couplings()[c].row(model, state, |i| poses[i]).residual,
                Rows::Grip(g) => {
                    let grip = reachable(part, &input.grips[g], &state.bodies[link.a].pose());
                    open = grip_error(&poses[link.a], &grip);
                }
            }
            self.matrix.subtract_given(self.bodies + k, &link.y, bodies);
            // J0 δv = −C(q1)/h
            for r in 0..link.rows {
                largest = largest.max(open[r].abs() / link.size_of_row(r, reach));
                x[r] = -open[r] / h;
            }
        }
        largest
    }

    /// What is missing in (2) at v, without touches. Returns how fast joints would open, as a share of the model's size in h or in radians.
    pub(super) fn residual_second(&mut self, part: &Part<'_>, momenta: &[Vector], second: &[Wrench]) -> f64 {
        let mut v = std::mem::take(&mut self.keep);
        v[..self.bodies].copy_from_slice(&self.v);
        for (node, link) in v[self.bodies..].iter_mut().zip(&self.links) {
            *node = link.y;
        }
        self.ask_second(momenta, second);
        self.matrix.subtract_product(&v, &mut self.x);
        self.keep = v;
        let mut largest = 0.0f64;
        for (link, x) in self.links.iter().zip(&mut self.x[self.bodies..]) {
            // without μ
            add_scaled(x, -link.regular, &link.y);
            for r in 0..link.rows {
                largest = largest.max(part.h * x[r].abs() / link.size_of_row(r, part.reach));
            }
        }
        largest
    }

    /// The right-hand side of (2).
    fn ask_second(&mut self, momenta: &[Vector], second: &[Wrench]) {
        let (bodies, links) = self.x.split_at_mut(self.bodies);
        for (x, (p, impulse)) in bodies.iter_mut().zip(momenta.iter().zip(second)) {
            *x = *p;
            add_scaled(x, 1.0, &from_wrench(*impulse));
        }
        let (stay, led) = links.split_at_mut(links.len() - self.led.len());
        stay.fill([0.0; 6]);
        stay[..self.opening.len()].copy_from_slice(&self.opening);
        led.copy_from_slice(&self.led);
    }

    /// Joints go on to open in (2) as the midpoint rule has it, at `J1 (2 v − v0)`, unless that is more than [`OPENING`] in the part: then they are to stay
    /// closed. Returns whether they are.
    pub(super) fn keep_opening(&mut self, part: &Part<'_>, start: &State, end: &State) -> bool {
        let &Part { h, reach, .. } = part;
        let System { opening, links, matrix, v, .. } = self;
        let rebound = |i: usize| {
            let (v, s) = (to_twist(&v[i]), &start.bodies[i]);
            let turned = end.bodies[i].orientation * s.orientation.conjugate();
            let linear = v.linear * 2.0 - s.velocity.linear;
            from_twist(Twist::new(linear, turned * (v.angular * 2.0 - s.velocity.angular)))
        };
        let mut largest = 0.0f64;
        for (link, opening) in links.iter().zip(opening.iter_mut()).filter(|(link, _)| !part.is_held(link.a)) {
            *opening = times(matrix.rows(link.at_a, link.rows), &rebound(link.a));
            if let Some(b) = link.b {
                add_scaled(opening, 1.0, &times(matrix.rows(link.at_b, link.rows), &rebound(b)));
            }
            for r in 0..link.rows {
                let size = if link.length > 0.0 { link.length } else { reach };
                let size = if link.lengths & (1 << r) != 0 { size } else { 1.0 };
                largest = largest.max(h * opening[r].abs() / size);
            }
        }
        if largest > OPENING {
            opening.fill([0.0; 6]);
        }
        largest > OPENING
    }

    /// From here to [`end_second`](Self::end_second) v are the velocities at the end, first those of the drift.
    pub(super) fn start_second(&mut self) {
        self.drifted.clone_from(&self.v);
        self.links.iter_mut().for_each(|link| link.y = [0.0; 6]);
    }

    /// v are those of the drift again, and the velocities found are the [`solution`](Self::solution).
    pub(super) fn end_second(&mut self) {
        self.keep[..self.bodies].copy_from_slice(&self.v);
        std::mem::swap(&mut self.v, &mut self.drifted);
    }

    /// The joint that is open widest.
    pub(super) fn widest_open(&self, model: &Model) -> Failure {
        let mut widest = (0.0, 0);
        for (k, link) in self.links.iter().enumerate().take(first_grip(model)) {
            let open = self.x[self.bodies + k][..link.rows].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            if open > widest.0 {
                widest = (open, k);
            }
        }
        Failure::Diverged(match Rows::of(model, widest.1) {
            Rows::Coupling(c) => model.couplings()[c].follower,
            Rows::Joint(_) | Rows::Grip(_) => JointId(widest.1 as u32),
        })
    }

    /// The angular momentum of a body at the drift v of the last [`residual`](Self::residual).
    pub(super) fn spin(&self, middle: Middle, i: usize) -> DVec3 {
        let inertia = match middle {
            Middle::OfDrift => self.ahead[i],
            Middle::Foretold => self.middle[i],
        };
        inertia * to_twist(&self.v[i]).angular
    }

    /// The momentum of a body that the last [`residual`](Self::residual) found missing.
    pub(super) fn missing(&self, body: usize) -> &Vector {
        &self.x[body]
    }

    /// Whether joints pull so hard that bodies swing in their tension faster than h resolves, `h² λ·r / I ≥ 2` with λ = 2 y / h: [`Along::Start`] is unstable from
    /// 4 on.
    pub(super) fn is_tense(&self, part: &Part<'_>, state: &State) -> bool {
        let inertia = |i: usize| {
            let inertia = part.model.bodies()[i].inertia;
            0.5 * (inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z)
        };
        let joints = self.links.iter().zip(part.model.joints());
        let mut swing = joints.flat_map(|(link, joint)| {
            let sides = part.model.sides(joint, state);
            let pull = link.pull(&self.matrix);
            let a = pull.dot(sides.a.rotation * joint.child_from_joint.translation) / inertia(link.a);
            let b = pull.dot(sides.b.rotation * joint.parent_from_joint.translation);
            [a.abs(), link.b.map_or(0.0, |id| b.abs() / inertia(id))]
        });
        swing.any(|pull| 2.0 * part.h * pull > 2.0)
    }

    /// From now on joints act along the mean of their rows: those of the start are kept.
    pub(super) fn begin_mean(&mut self, model: &Model) {
        for link in self.links.iter().take(model.joints().len()) {
            let (a, b) = (self.matrix.rows(link.at_a, link.rows), self.matrix.rows(link.at_b, link.rows));
            let keep = &mut self.rows_of_start[link.first_row as usize..][..link.rows];
            keep.iter_mut().zip(a.iter().zip(b)).for_each(|(keep, (a, b))| *keep = [*a, *b]);
        }
    }

    /// Joints act along the rows of the start again.
    pub(super) fn end_mean(&mut self, model: &Model) {
        for link in self.links.iter().take(model.joints().len()) {
            for (r, [a, b]) in self.rows_of_start[link.first_row as usize..][..link.rows].iter().enumerate() {
                self.matrix.rows_mut(link.at_a, link.rows)[r] = *a;
                if link.b.is_some() {
                    self.matrix.rows_mut(link.at_b, link.rows)[r] = *b;
                }
            }
        }
    }

    /// The impulse of a joint on its child with these multipliers, by the rows that are in the matrix.
    pub(super) fn impulse_on_child(&self, link: &Link, y: &Vector) -> Wrench {
        to_wrench(&transpose_times(self.matrix.rows(link.at_a, link.rows), y)) * -1.0
    }

    /// The impulses of joints in (1), once more for (2).
    pub(super) fn add_mean_impulses(&self, model: &Model, second: &mut [Wrench]) {
        for link in self.links.iter().take(model.joints().len()) {
            let on = |slot: Slot| to_wrench(&transpose_times(self.matrix.rows(slot, link.rows), &link.y)) * -1.0;
            second[link.a] += on(link.at_a);
            if let Some(b) = link.b {
                second[b] += on(link.at_b);
            }
        }
    }

    /// Finds the symmetric part of what turns with the drift that leads to `poses`: impulses of joints, which act [along the mean](Along::Mean) of their rows, and the
    /// inertia where it is that of the drift.
    pub(super) fn bend(&mut self, part: &Part<'_>, middle: Middle, poses: &[Pose]) {
        let &Part { model, h, .. } = part;
        let System { turning, crossing, links, v, middle: kept, ahead, .. } = self;
        for (i, turning) in turning.iter_mut().enumerate() {
            *turning = match middle {
                Middle::OfDrift => symmetric(spin_derivative(ahead[i], to_twist(&v[i]).angular, h)) - kept[i],
                Middle::Foretold => DMat3::ZERO,
            };
        }
        for ((link, joint), crossing) in links.iter().zip(model.joints()).zip(crossing) {
            let [aa, ab, _, bb] = joint.impulse_derivative(&link.sides_at(poses), &link.y).map(|block| turns(&block));
            turning[link.a] += symmetric(aa) * (0.5 * h);
            if let Some(b) = link.b {
                turning[b] += symmetric(bb) * (0.5 * h);
                *crossing = ab * (0.5 * h);
            }
        }
        self.is_bent = true;
    }

    /// From now on the matrix is that of rows that do not turn.
    pub(super) fn unbend(&mut self) {
        self.is_bent = false;
    }

    /// The matrix with what [`bend`](Self::bend) found and touches add, and its factors.
    pub(super) fn stiffen_and_factor(&mut self, model: &Model) -> Result<(), Failure> {
        loop {
            self.stiffened.copy_from(&self.matrix);
            if self.is_bent {
                for (i, turning) in self.turning.iter().enumerate() {
                    self.stiffened.add(i, i, &Block::angular(*turning));
                }
                for (link, crossing) in self.links.iter().zip(&self.crossing) {
                    if let Some(b) = link.b {
                        self.stiffened.add(link.a, b, &Block::angular(*crossing));
                    }
                }
            }
            for touch in self.touches.iter().filter(|t| t.acts) {
                touch.stiffen(&mut self.stiffened);
            }
            match self.ldl.factor(&self.stiffened) {
                // Where bodies are pressed together the symmetric part may have no factors.
                Err(_) if self.is_bent => self.unbend(),
                done => return done.map_err(|node| self.failed_at(model, node)),
            }
        }
    }

    /// Takes from `plain` what the step `x` brings by what turns.
    pub(super) fn subtract_bent(&mut self) {
        if !self.is_bent {
            return;
        }
        let System { turning, crossing, links, plain, x, .. } = self;
        let angular = |v: &Vector| to_twist(v).angular;
        let take = |x: &mut Vector, v: DVec3| add_scaled(x, -1.0, &from_twist(Twist::new(DVec3::ZERO, v)));
        for (i, turning) in turning.iter().enumerate() {
            take(&mut plain[i], *turning * angular(&x[i]));
        }
        for (link, crossing) in links.iter().zip(crossing) {
            if let Some(b) = link.b {
                take(&mut plain[link.a], *crossing * angular(&x[b]));
                take(&mut plain[b], crossing.transpose() * angular(&x[link.a]));
            }
        }
    }

    /// One correction of v and y by the symmetric part of the derivative of (1) where joints act [along the mean](Along::Mean) of their rows. Those are close to the rows of the end as
    /// v moves them, which the derivative has, and what tension adds is symmetric but for the moment that turns the body: it converges nearly as fast while bodies turn
    /// little in h, and is half the work. It fails where bodies are pressed together so hard that it is not definite.
    pub(super) fn correct_tense(&mut self, part: &Part<'_>, poses: &[Pose]) -> Result<f64, Failure> {
        let model = part.model;
        self.bend(part, Middle::OfDrift, poses);
        let done = self.ldl.factor_and_solve(&self.matrix, &self.turning, &mut self.x);
        done.map_err(|node| self.failed_at(model, node))?;
        Ok(self.follow_solution(part))
    }

    /// Factors the derivative of (1) at the drift v that leads to `poses`: `[A' Jᵀ; J1' −μ]` with the rows where it ends, as v moves them, and A' with what
    /// the middle of the drift adds, and what tension adds to rows that go with the end.
    pub(super) fn factor_at(
        &mut self,
        part: &Part<'_>,
        along: Along,
        state: &State,
        poses: &[Pose],
    ) -> Result<(), Failure> {
        let &Part { model, h, .. } = part;
        let joints = self.joints(model);
        let System { stiffened: ahead, matrix, v, middle, ahead: drifted, .. } = self;
        ahead.copy_outside(matrix, joints);
        for i in 0..self.bodies {
            let change = spin_derivative(drifted[i], to_twist(&v[i]).angular, h) - middle[i];
            ahead.add(i, i, &Block::from_quarters(DMat3::ZERO, DMat3::ZERO, DMat3::ZERO, change));
        }
        self.above.copy_lower_from(&self.matrix);
        self.set_rows_of_end(part, along, state, (poses, None));
        self.lu.factor(&self.ldl, &self.stiffened, &self.above).map_err(|node| self.failed_at(model, node))
    }

    /// Sets the rows of links in `stiffened`, which has the blocks of the matrix, to those where the drift v ends, as v moves them; where joints act [along the mean](Along::Mean)
    /// of their rows it adds what tension does to them.
    pub(super) fn set_rows_of_end(
        &mut self,
        part: &Part<'_>,
        along: Along,
        state: &State,
        (poses, push): (&[Pose], Option<&[Vector]>),
    ) {
        let &Part { model, h, .. } = part;
        let System { stiffened: ahead, above, links, leaders, v, .. } = self;
        // A row of the end as it depends on v: a turn h δw of v turns the end by exp'(h w) h δw.
        let turn = |i: usize| turn_by_drift(&v[i], push.map_or(&[0.0; 6], |push| &push[i]), h);
        let by_drift = |turn: DMat3, row: Twist| from_twist(Twist::new(row.linear, turn.transpose() * row.angular));
        for (k, link) in links.iter().enumerate().filter(|(_, link)| link.rows > 0) {
            let (turn_a, turn_b) = (turn(link.a), link.b.map(&turn));
            match Rows::of(model, k) {
                Rows::Joint(joint) => {
                    let sides = link.sides_at(poses);
                    for (r, row) in joint.rows(&sides).iter().enumerate() {
                        ahead.rows_mut(link.at_a, link.rows)[r] = by_drift(turn_a, row.a);
                        if let Some(turn_b) = turn_b {
                            ahead.rows_mut(link.at_b, link.rows)[r] = by_drift(turn_b, row.b);
                        }
                    }
                    if along == Along::Mean {
                        let turned = |block: &Block, turn: DMat3| {
                            let [ll, la, al, aa] = quarters(block).map(|quarter| quarter * (0.5 * h));
                            Block::from_quarters(ll, la * turn, al, aa * turn)
                        };
                        let [aa, ab, ba, bb] = joint.impulse_derivative(&sides, &link.y);
                        ahead.add(link.a, link.a, &turned(&aa, turn_a));
                        if let (Some(b), Some(turn_b)) = (link.b, turn_b) {
                            ahead.add(b, b, &turned(&bb, turn_b));
                            let (ab, ba) = (turned(&ab, turn_b), turned(&ba, turn_a).transposed());
                            let (lower, upper) = if link.a > b { (ab, ba) } else { (ba, ab) };
                            ahead.add(link.a, b, &lower);
                            above.add(link.a, b, &upper);
                        }
                    }
                }
                Rows::Coupling(c) => {
                    let coupling = &model.couplings()[c];
                    let (start, end) = (coupling.row_at(model, state), coupling.row(model, state, |i| poses[i]));
                    // Sides may be the same body: what changes is added.
                    let mut change = |slot: Slot, i: usize, from: Twist, to: Twist| {
                        let row = &mut ahead.rows_mut(slot, 1)[0];
                        add_scaled(row, 1.0, &by_drift(turn(i), to));
                        add_scaled(row, -1.0, &from_twist(from));
                    };
                    change(link.at_a, link.a, start.follower[0], end.follower[0]);
                    if let Some(b) = link.b {
                        change(link.at_b, b, start.follower[1], end.follower[1]);
                    }
                    for (side, (from, to)) in leaders[c].bodies.iter().zip(start.leader.into_iter().zip(end.leader)) {
                        let &Some((body, slot)) = side else { continue };
                        change(slot, body, from, to);
                    }
                }
                Rows::Grip(_) => {
                    let grip = &part.input.grips[k - first_grip(model)];
                    let rows = ahead.rows_mut(link.at_a, link.rows);
                    for (to, row) in rows.iter_mut().zip(grip_rows(&poses[link.a], grip)) {
                        *to = by_drift(turn_a, row);
                    }
                }
            }
        }
    }

    /// One correction of v and y; returns its size as a turn or a share of the model's size in h.
    pub(super) fn correct(&mut self, part: &Part<'_>, factors: Factors) -> f64 {
        match factors {
            Factors::Symmetric => self.ldl.solve(&mut self.x),
            Factors::OfDrift => self.lu.solve(&self.ldl, &mut self.x),
        }
        self.follow_solution(part)
    }

    /// Adds x to v and y; returns its size as a turn or a share of the model's size in h.
    fn follow_solution(&mut self, part: &Part<'_>) -> f64 {
        let (bodies, links) = self.x.split_at(self.bodies);
        let mut largest = 0.0f64;
        for (v, dv) in self.v.iter_mut().zip(bodies) {
            add_scaled(v, 1.0, dv);
            let dv = to_twist(dv);
            let size = (dv.linear.length() / part.reach).max(dv.angular.length()) * part.h;
            largest = if size.is_nan() { f64::NAN } else { largest.max(size) };
        }
        for (link, dy) in self.links.iter_mut().zip(links) {
            add_scaled(&mut link.y, 1.0, dy);
        }
        largest
    }

    /// `yᵀ J δv` of all links.
    pub(super) fn along(&self, dv: &[Vector]) -> f64 {
        let one = |link: &Link| {
            let mut rate = times(self.matrix.rows(link.at_a, link.rows), &dv[link.a]);
            if let Some(b) = link.b {
                add_scaled(&mut rate, 1.0, &times(self.matrix.rows(link.at_b, link.rows), &dv[b]));
            }
            (0..link.rows).map(|r| link.y[r] * rate[r]).sum::<f64>()
        };
        self.links.iter().map(one).sum()
    }

    /// Solves (2): velocities from momenta and the second impulses, first those of the drift. Returns the number of solves.
    pub(super) fn velocities(&mut self, model: &Model, momenta: &[Vector], second: &[Wrench]) -> Result<u32, Failure> {
        let n = self.bodies;
        let largest = |list: &[Vector]| list.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
        self.keep[..n].copy_from_slice(&self.v);
        self.keep[n..].fill([0.0; 6]);
        let mut last = 0.0;
        for solve in 0..=REFINEMENTS {
            // residual of the system without μ
            self.ask_second(momenta, second);
            self.matrix.subtract_product(&self.keep, &mut self.x);
            if solve == 0 {
                let done = self.ldl.factor_and_solve(&self.matrix, &[], &mut self.x);
                done.map_err(|node| self.failed_at(model, node))?;
            } else {
                for (k, link) in self.links.iter().enumerate() {
                    add_scaled(&mut self.x[n + k], -link.regular, &self.keep[n + k]);
                }
                self.ldl.solve(&mut self.x);
            }
            self.keep.iter_mut().zip(&self.x).for_each(|(keep, x)| add_scaled(keep, 1.0, x));
            // The next change is less than this one by as much as this one is less than the last.
            let change = largest(&self.x[..n]);
            if solve > 0 && change * change <= ROUNDING * last * largest(&self.keep[..n]) {
                return Ok(1 + solve);
            }
            last = change;
        }
        Ok(1 + REFINEMENTS)
    }

    /// The velocities that [`velocities`](Self::velocities) found, by body.
    pub(super) fn solution(&self) -> &[Vector] {
        &self.keep[..self.bodies]
    }
}

/// Where in the drift the rows are along which joints act in (1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// At its start, and in (2) at its end [RATTLE]. Bodies must not swing in the tension of joints faster than h resolves.
    Start,
    /// The mean of both ends, by the same impulse in (1) and (2) [the midpoint rule]: any tension. The points at which a joint acts on its two bodies have the same
    /// mean, so that angular momentum is kept.
    Mean,
}

/// What the matrix of a correction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Factors {
    /// That of the start of the drift, or the symmetric part of the derivative under tension.
    Symmetric,
    /// The derivative at the last [`factor_at`](System::factor_at).
    OfDrift,
}

/// What the rows of a link are: joints come first, then couplings, then grips.
enum Rows<'m> {
    Joint(&'m Joint),
    Coupling(usize),
    Grip(usize),
}

impl<'m> Rows<'m> {
    fn of(model: &'m Model, link: usize) -> Rows<'m> {
        let joints = model.joints();
        match joints.get(link) {
            Some(joint) => Rows::Joint(joint),
            None if link < first_grip(model) => Rows::Coupling(link - joints.len()),
            None => Rows::Grip(link - first_grip(model)),
        }
    }
}

/// The link of the first grip.
fn first_grip(model: &Model) -> usize {
    model.joints().len() + model.couplings().len()
}

impl Link {
    /// What a row is measured against: the model's size, less if that is hundreds of the joint's, or a radian.
    fn size_of_row(&self, r: usize, reach: f64) -> f64 {
        if self.lengths & (1 << r) != 0 { reach.min((100.0 * self.length).max(0.01 * reach)) } else { 1.0 }
    }

    /// Its two sides at these poses, at rest.
    fn sides_at(&self, poses: &[Pose]) -> Sides {
        let b = self.b.map_or(Pose::IDENTITY, |b| poses[b]);
        Sides { a: poses[self.a], a_velocity: Twist::ZERO, b, b_velocity: Twist::ZERO }
    }

    /// Makes the rows along which a joint acts in (1) the mean of those of the start and those of the end.
    fn act_along_mean(&self, rows_of_start: &[[Vector; 2]], of_end: &JointRows, matrix: &mut Sparse) {
        let mean = |end: Twist, start: &Vector| -> Vector {
            let end = from_twist(end);
            std::array::from_fn(|k| 0.5 * (end[k] + start[k]))
        };
        let starts = &rows_of_start[self.first_row as usize..];
        for (r, (end, start)) in of_end.iter().zip(starts).enumerate() {
            matrix.rows_mut(self.at_a, self.rows)[r] = mean(end.a, &start[0]);
            if self.b.is_some() {
                matrix.rows_mut(self.at_b, self.rows)[r] = mean(end.b, &start[1]);
            }
        }
    }

    /// The impulse `Jᵀ y` on side a, without its moment.
    fn pull(&self, matrix: &Sparse) -> DVec3 {
        to_twist(&transpose_times(matrix.rows(self.at_a, self.rows), &self.y)).linear
    }
}

/// The quarters of a block of two bodies: linear by linear, linear by angular, angular by linear, angular by angular.
fn quarters(block: &Block) -> [DMat3; 4] {
    let at = |row: usize, col: usize| {
        DMat3::from_cols_array_2d(&std::array::from_fn(|c| std::array::from_fn(|r| block.get(row + r, col + c))))
    };
    [at(0, 0), at(0, 3), at(3, 0), at(3, 3)]
}

/// What a block of two bodies does between their rotations.
fn turns(block: &Block) -> DMat3 {
    quarters(block)[3]
}

fn symmetric(m: DMat3) -> DMat3 {
    (m + m.transpose()) * 0.5
}

/// `J v` of these rows.
fn times(rows: &[Vector], v: &Vector) -> Vector {
    std::array::from_fn(|r| rows.get(r).map_or(0.0, |row| row.iter().zip(v).map(|(j, v)| j * v).sum()))
}

/// `Jᵀ y` of these rows.
fn transpose_times(rows: &[Vector], y: &Vector) -> Vector {
    let mut sum = [0.0; 6];
    rows.iter().zip(y).for_each(|(row, y)| add_scaled(&mut sum, *y, row));
    sum
}

/// The rows of a grip: those of its point, then those of the rotation.
fn grip_rows(pose: &Pose, grip: &Grip) -> [Twist; 6] {
    let r = pose.rotation * grip.point;
    std::array::from_fn(|k| match k {
        0..3 => Twist::new(DVec3::AXES[k], r.cross(DVec3::AXES[k])),
        _ => Twist::new(DVec3::ZERO, DVec3::AXES[k - 3]),
    })
}

/// How far a gripped body is from where it is held: the point \[m\], then the rotation \[rad\].
fn grip_error(pose: &Pose, grip: &Grip) -> Vector {
    let d = pose.transform_point(grip.point) - grip.target;
    let turned = grip.rotation.map_or(DVec3::ZERO, |q| log(pose.rotation * q.conjugate()));
    from_twist(Twist::new(d, turned))
}

/// Where a grip is at the end of the part: it comes to its target at the end of the step, and no farther than a part may bring the body.
fn reachable(part: &Part<'_>, grip: &Grip, start: &Pose) -> Grip {
    let share = part.h / (part.h + part.after);
    let from = start.transform_point(grip.point);
    let turn = |to: DQuat| (log(to * start.rotation.conjugate()) * share).clamp_length_max(0.5);
    Grip {
        target: from + ((grip.target - from) * share).clamp_length_max(0.5 * part.reach),
        rotation: grip.rotation.map(|to| exp(turn(to)) * start.rotation),
        ..*grip
    }
}

fn inertia(mass: f64, inertia: DMat3) -> Block {
    Block::from_quarters(DMat3::from_diagonal(DVec3::splat(mass)), DMat3::ZERO, DMat3::ZERO, inertia)
}
