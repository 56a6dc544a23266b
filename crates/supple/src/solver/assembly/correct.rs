//! The correction: from any pose to one in which what is held is closed [Faure 1998, §3.2, §3.4].
//!
//! ```text
//! repeat   errors C and rows J at the present pose
//!          δ = least motion with J δ = −C in the sense of least squares                                (rows.rs)
//!          cut rotations beyond 0.8 rad,  q ← q ⊕ δ
//! ```
//! until every error is below the tolerance, no motion brings it lower, or the iterations are used up.

use super::inertia::Inertia;
use super::rows::{Rows, Stop, world};
use super::surfaces::{RECOVERY, Surfaces};
use super::{Assembly, Cut, Linear};
use crate::contact::Contact;
use crate::contact::follow::Follow;
use crate::forces::{self, JointView};
use crate::input::{Drive, Grip, Input};
use crate::loads::Ledger;
use crate::maths::rotation::{exp, log, turned_inertia};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::joint::{Hold, Sides};
use crate::model::{BodyId, BodyState, Joint, JointId, JointMask, Model, State};
use glam::{DQuat, DVec3};
use std::f64::consts::TAU;

/// How far something held is from closed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    /// \[m\]
    pub distance: f64,
    /// \[rad\]
    pub angle: f64,
}

impl Residual {
    /// The larger of the two \[m, rad\].
    pub fn largest(&self) -> f64 {
        self.distance.max(self.angle)
    }
}

/// A hold with its bodies.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) hold: Hold,
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) owner: Owner,
    /// The distance that a radian counts as \[m\].
    length: f64,
    /// What its errors count as beside those of others.
    weight: f64,
}

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Joint(JointId),
    Driven(JointId),
    Grip,
}

/// What the rows of a pair of bodies are.
#[derive(Clone, Copy, Debug)]
enum RowsOf {
    Held(Owner),
    Limit(JointId),
}

/// What rows gave in a correction, `Jᵀ λ` of their displacements \[kg·m, kg·m²\]; empty where nobody asks.
#[derive(Clone, Default)]
struct Pulls {
    /// By joint, on its child: constraints, and hard limits.
    joints: Vec<Wrench>,
    limits: Vec<Wrench>,
    is_wanted: bool,
    /// Whether the multipliers of this iteration were found.
    are_known: bool,
}

impl Pulls {
    fn begin(&mut self, model: &Model, is_wanted: bool) {
        for list in [&mut self.joints, &mut self.limits] {
            list.clear();
            list.resize(if is_wanted { model.joints().len() } else { 0 }, Wrench::ZERO);
        }
        self.is_wanted = is_wanted;
    }

    fn copy_from(&mut self, other: &Pulls) {
        self.joints.clone_from(&other.joints);
        self.limits.clone_from(&other.limits);
    }
}

/// Whether joint limits are rows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitRows {
    /// No: they are springs, or left to others.
    None,
    /// The hard ones, where they are passed.
    Hard,
    /// Yes, those that are passed.
    Passed,
}

/// What a correction did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Largest error before \[m, rad\].
    pub(super) before: f64,
    /// Largest error after \[m, rad\].
    pub(super) after: f64,
    /// Linearisations.
    pub(super) outer: u32,
    /// Iterations of the linear solver in all of them.
    pub(super) inner: u32,
}

/// Largest errors \[m, rad\].
#[derive(Clone, Copy)]
pub(super) struct Largest {
    pub(super) joints: f64,
    pub(super) grips: f64,
}

/// Errors at a pose.
#[derive(Clone, Copy)]
struct Measured {
    /// \[m, rad\]
    largest: f64,
    /// Sum of squares, rotations by their length \[m²\].
    square: f64,
}

/// The motion of a body in an iteration.
#[derive(Clone, Copy)]
struct Step {
    from: Pose,
    /// How far it had moved in the part, and the sum of its turns.
    moved: Twist,
    turned: DVec3,
    motion: Twist,
}

/// What is corrected, with the scratch it takes.
pub(super) struct Correction {
    pub(super) inertia: Inertia,
    pub(super) rows: Rows,
    pub(super) held: Vec<Held>,
    pub(super) limits: LimitRows,
    /// What touches within the part.
    surfaces: Surfaces,
    /// How much turning is resisted while joints are open: a body of mass m with levers r and joints open by E turns with the inertia
    /// `I + wariness · m r E`. 0 where the masses alone shall count \[1/rad\].
    pub(super) wariness: f64,
    /// Iterations of a correction that may gain little or raise the error: from far away some do on the way home.
    pub(super) patience: u32,
    /// The shortest distance that a radian counts as, at most 1 \[m\].
    finest: f64,
    /// By `held`.
    pub(super) residuals: Vec<Residual>,
    /// By body: the poses from which displacements are counted…
    start: Vec<Pose>,
    /// …and the displacement from there; rotations as vectors, also beyond half a turn.
    pub(super) moved: Vec<Twist>,
    /// By body: the sum of the turns of its motions, which is what resists them \[rad\].
    pub(super) turned: Vec<DVec3>,
    /// By body: the present iteration.
    steps: Vec<Step>,
    /// By pair of bodies of the rows: what they are.
    rows_of: Vec<RowsOf>,
    pulls: Pulls,
    best_pulls: Pulls,
    /// By body: the best pose so far, how far it is moved, and the sum of its turns.
    best: Vec<(Pose, Twist, DVec3)>,
}

/// How well the rows of an iteration are met, as a share of what they ask for. With factors each iteration of the linear solver gains six
/// digits or so; without, digits are dear, and the next iteration is linearised anew anyway.
fn share(linear: Linear) -> f64 {
    match linear {
        Linear::Factored => 1e-9,
        Linear::Plain | Linear::Biconjugate => 1e-3,
    }
}

/// Iterations that may gain little, unless something is posed, where the way home is short and a jerk is seen.
pub(super) const PATIENCE: u32 = 4;
/// Less than this share of the promise of the linear rows is little.
const POOR: f64 = 0.25;
/// How often the last motion is halved when it raises the error.
const HALVINGS: i32 = 8;
/// Rows that promise to lower the sum of squares by less than this share have arrived: joints contradict each other.
const STILL: f64 = 1e-14;

impl Correction {
    pub(super) fn new(model: &Model) -> Correction {
        let bodies = model.bodies().len();
        Correction {
            inertia: Inertia::new(model),
            rows: Rows::new(model),
            held: Vec::new(),
            limits: LimitRows::None,
            surfaces: Surfaces::new(bodies),
            wariness: 0.0,
            patience: PATIENCE,
            finest: 1.0,
            residuals: Vec::new(),
            start: vec![Pose::IDENTITY; bodies],
            moved: vec![Twist::ZERO; bodies],
            turned: vec![DVec3::ZERO; bodies],
            steps: vec![
                Step { from: Pose::IDENTITY, moved: Twist::ZERO, turned: DVec3::ZERO, motion: Twist::ZERO };
                bodies
            ],
            rows_of: Vec::new(),
            pulls: Pulls::default(),
            best_pulls: Pulls::default(),
            best: vec![(Pose::IDENTITY, Twist::ZERO, DVec3::ZERO); bodies],
        }
    }

    /// Counts displacements from here.
    pub(super) fn begin(&mut self, state: &State) {
        for (i, body) in state.bodies.iter().enumerate() {
            self.start[i] = body.pose();
            (self.moved[i], self.turned[i]) = (Twist::ZERO, DVec3::ZERO);
        }
    }

    /// Whether what rows give in the corrections to come is to be noted.
    pub(super) fn note_pulls(&mut self, model: &Model, is_wanted: bool) {
        self.pulls.begin(model, is_wanted);
    }

    /// Finds what the rows of the motion found give, if anybody asks.
    fn find_pulls(&mut self) {
        self.pulls.are_known = self.pulls.is_wanted && self.rows.find_multipliers(&self.inertia);
    }

    /// Adds what the rows of an iteration give.
    fn add_pulls(&mut self) {
        if !self.pulls.are_known {
            return;
        }
        let pulls = &mut self.pulls;
        for (pair, rows_of) in self.rows_of.iter().enumerate() {
            let [on_a, _] = self.rows.pulls(pair);
            match *rows_of {
                RowsOf::Held(Owner::Joint(id) | Owner::Driven(id)) => pulls.joints[id.index()] += on_a,
                RowsOf::Held(Owner::Grip) => {}
                RowsOf::Limit(id) => pulls.limits[id.index()] += on_a,
            }
        }
    }

    /// Notes the impulses that moved bodies so within `h`.
    pub(super) fn note(&self, h: f64, state: &State, ledger: &mut Ledger) {
        if !self.pulls.is_wanted {
            return;
        }
        ledger.knows_constraints();
        for (k, (joint, limit)) in self.pulls.joints.iter().zip(&self.pulls.limits).enumerate() {
            ledger.constrain(JointId(k as u32), *joint * (1.0 / h));
            ledger.stop(JointId(k as u32), *limit * (1.0 / h));
        }
        self.surfaces.note(h, state, ledger);
    }

    /// What must be closed at the end of a part of `h` seconds: joints, prescribed motions, and grips, which have `after` more seconds to
    /// get where they should be.
    pub(super) fn hold(&mut self, model: &Model, input: &Input, state: &State, (h, after): (f64, f64)) {
        self.held.clear();
        self.finest = 1.0;
        for (k, joint) in model.joints().iter().enumerate() {
            let id = JointId(k as u32);
            match input.joint(k).drive {
                Drive::Velocity(rates) => {
                    let hold = driven(joint, model.sides(joint, state), state.joints[k].angle, &rates, h);
                    self.push_joint(model, joint, hold, Owner::Driven(id));
                }
                Drive::Forces | Drive::Acceleration(_) => self.push_joint(model, joint, joint.hold(), Owner::Joint(id)),
            }
        }
        self.hold_grips(model, &input.grips, state, h / (h + after), 1.0);
    }

    /// The joints alone.
    pub(super) fn hold_joints(&mut self, model: &Model) {
        self.held.clear();
        self.finest = 1.0;
        for (k, joint) in model.joints().iter().enumerate() {
            self.push_joint(model, joint, joint.hold(), Owner::Joint(JointId(k as u32)));
        }
    }

    fn push_joint(&mut self, model: &Model, joint: &Joint, hold: Hold, owner: Owner) {
        if hold.mask != JointMask::FREE {
            self.push(hold, (joint.child.index(), joint.parent.map_or(world(model), |p| p.index())), owner);
        }
    }

    /// Bodies held by hand, to be brought this share of the way to their targets, their errors counting `weight` times.
    pub(super) fn hold_grips(&mut self, model: &Model, grips: &[Grip], state: &State, share: f64, weight: f64) {
        for grip in grips {
            let body = &state.bodies[grip.body.index()];
            let place = body.pose().transform_point(grip.point);
            let rotation = grip.rotation.map_or(DQuat::IDENTITY, |wanted| {
                exp(log(wanted * body.orientation.conjugate()) * share) * body.orientation
            });
            let hold = Hold {
                mask: if grip.rotation.is_some() { JointMask::WELD } else { JointMask::BALL },
                child_from_joint: Pose::at(grip.point),
                parent_from_joint: Pose::new(rotation, place + (grip.target - place) * share),
            };
            self.push(hold, (grip.body.index(), world(model)), Owner::Grip);
            self.held.last_mut().expect("just pushed").weight = weight;
        }
    }

    fn push(&mut self, hold: Hold, (a, b): (usize, usize), owner: Owner) {
        let length = self.inertia.length(a, b);
        self.finest = self.finest.min(length);
        self.held.push(Held { hold, a, b, owner, length, weight: 1.0 });
    }

    /// Changes where bodies would go alone by the least motion that keeps what is held closed and what touches apart, by the rows of the start. Returns
    /// the iterations.
    ///
    /// Springs that act on bodies alone turn light ones by radians in a step, whatever their joints carry: what is closed
    /// from there rests in another pose than forces do. Without springs bodies go alone, as published.
    pub(super) fn lead(
        &mut self,
        model: &Model,
        settings: &Assembly,
        state: &State,
        displacements: &mut [Twist],
    ) -> u32 {
        if !self.inertia.has_springs() {
            return 0;
        }
        self.linearise(model, state);
        self.rows.foresee(displacements);
        let enough = 0.1 * settings.tolerance * self.finest;
        let stop = Stop { iterations: settings.inner, share: share(settings.linear), enough };
        let iterations = self.rows.solve(&mut self.inertia, settings.linear, stop);
        self.find_pulls();
        self.rows.follow(displacements);
        self.surfaces.answer(&mut self.rows, &self.inertia, state, &self.moved);
        self.add_pulls();
        for (i, displacement) in displacements.iter_mut().enumerate() {
            *displacement = self.rows.motion(i);
        }
        iterations
    }

    /// Brings `state` to where what is held is closed, or as near as it gets.
    ///
    /// Iterations may raise the error on the way, a few of them: from far away that is how most come home. After that the best pose so
    /// far is gone on from with damped iterations, `(Jᵀ J + λ N) δ = −Jᵀ C`, which never raise it; λ follows how well they keep what the
    /// rows promise. Where joints contradict each other they end at the least squares. A correction never ends with a larger sum of
    /// squared errors than it began with, whatever the budget.
    pub(super) fn correct(&mut self, model: &Model, settings: &Assembly, state: &mut State) -> Outcome {
        let mut now = self.linearise(model, state);
        let mut best = now.square;
        self.keep(state);
        let mut outcome = Outcome { before: now.largest, after: now.largest, outer: 0, inner: 0 };
        let (mut poor, mut damping) = (0, None);
        while outcome.outer < settings.outer && now.largest > settings.tolerance {
            outcome.outer += 1;
            let cut = match damping {
                None => {
                    let enough = 0.1 * settings.tolerance * self.finest;
                    let stop = Stop { iterations: settings.inner, share: share(settings.linear), enough };
                    outcome.inner += self.rows.solve(&mut self.inertia, settings.linear, stop);
                    settings.cut
                }
                Some(lambda) => {
                    outcome.inner += 1;
                    if !self.rows.solve_damped(&self.inertia, lambda) {
                        break;
                    }
                    Cut::Whole
                }
            };
            let promised = now.square - self.rows.left();
            self.find_pulls();
            self.surfaces.answer(&mut self.rows, &self.inertia, state, &self.moved);
            self.add_pulls();
            let largest = self.cut(settings, cut, state);
            self.apply(1.0, state);
            let next = self.linearise(model, state);
            let gained = now.square - next.square;
            let (is_last, keeps_promise) = (outcome.outer == settings.outer, gained >= POOR * promised);
            let stands_still = largest <= 1e-3 * settings.tolerance || promised.abs() <= STILL * now.square;
            let accepted = match damping {
                None => keeps_promise || (poor < self.patience && !is_last && next.square.is_finite()),
                Some(_) => gained >= 0.0,
            };
            poor += u32::from(!keeps_promise);
            damping = match damping {
                None if accepted => None,
                None => Some(self.rows.first_damping()),
                Some(lambda) if !accepted => Some(10.0 * lambda),
                Some(lambda) if !keeps_promise => Some(4.0 * lambda),
                Some(lambda) => Some(0.1 * lambda).filter(|lambda| *lambda > self.rows.least_damping()),
            };
            now = match accepted {
                true => next,
                false if is_last => self.shorten(model, settings, now, state),
                false => {
                    self.go_back(state);
                    self.linearise(model, state)
                }
            };
            if now.square < best {
                best = now.square;
                self.keep(state);
            }
            if stands_still {
                break;
            }
        }
        if now.square > best {
            self.go_back(state);
            now = self.linearise(model, state);
        }
        outcome.after = now.largest;
        outcome
    }

    /// The motion of the iteration, which raised the error, halved until it does not.
    fn shorten(&mut self, model: &Model, settings: &Assembly, before: Measured, state: &mut State) -> Measured {
        self.apply(0.0, state);
        self.cut(settings, Cut::Whole, state);
        for halving in 0..HALVINGS {
            self.apply(0.5f64.powi(halving), state);
            let now = self.linearise(model, state);
            if now.square <= before.square {
                return now;
            }
        }
        self.apply(0.0, state);
        self.linearise(model, state)
    }

    /// How far joints are open at a pose.
    pub(super) fn measure_open(&mut self, model: &Model, state: &State) -> f64 {
        self.linearise(model, state);
        self.errors().joints
    }

    /// How far joints, and contacts beyond what they may, are open at the last linearisation.
    pub(super) fn left_open(&self, state: &State) -> f64 {
        self.surfaces.list.iter().map(|surface| -surface.room(state)).fold(self.errors().joints, f64::max)
    }

    /// The largest errors at the last linearisation.
    pub(super) fn errors(&self) -> Largest {
        let mut largest = Largest { joints: 0.0, grips: 0.0 };
        for (held, residual) in self.held.iter().zip(&self.residuals) {
            let most = if held.owner == Owner::Grip { &mut largest.grips } else { &mut largest.joints };
            *most = most.max(residual.largest());
        }
        largest
    }

    /// To where displacements are counted from.
    pub(super) fn go_to_start(&mut self, state: &mut State) {
        for (i, body) in state.bodies.iter_mut().enumerate() {
            let pose = self.start[i];
            (body.position, body.orientation, self.moved[i]) = (pose.translation, pose.rotation, Twist::ZERO);
            self.turned[i] = DVec3::ZERO;
        }
    }

    /// Remembers the present pose as the best.
    fn keep(&mut self, state: &State) {
        self.surfaces.keep();
        self.best_pulls.copy_from(&self.pulls);
        for (i, body) in state.bodies.iter().enumerate() {
            self.best[i] = (body.pose(), self.moved[i], self.turned[i]);
        }
    }

    /// To the best pose.
    fn go_back(&mut self, state: &mut State) {
        self.surfaces.go_back();
        self.pulls.copy_from(&self.best_pulls);
        for (i, body) in state.bodies.iter_mut().enumerate() {
            let (pose, moved, turned) = self.best[i];
            (body.position, body.orientation) = (pose.translation, pose.rotation);
            (self.moved[i], self.turned[i]) = (moved, turned);
        }
    }

    /// Brings velocities to where no joint opens: `J v = 0`. Returns the iterations.
    pub(super) fn project(&mut self, settings: &Assembly, state: &mut State) -> u32 {
        self.inertia.turn(state, 0.0);
        let rows = &mut self.rows;
        rows.clear();
        let body = |i: usize| state.bodies.get(i).map_or(BodyState::at_rest(Pose::IDENTITY), |body| *body);
        for held in &self.held {
            let (a, b) = (body(held.a), body(held.b));
            let translations = held.hold.mask.held_translations();
            rows.between(held.a, held.b);
            for (k, row) in held.hold.errors(a.pose(), b.pose()).iter().enumerate() {
                let scale = if k < translations { 1.0 } else { held.length };
                rows.push(row.a, row.b, -(along(row.a, a.velocity) + along(row.b, b.velocity)), scale);
            }
        }
        let stop = Stop { iterations: settings.inner, share: 1e-6, enough: 0.1 * settings.tolerance };
        let inner = rows.solve(&mut self.inertia, settings.linear, stop);
        for (i, body) in state.bodies.iter_mut().enumerate() {
            body.velocity = body.velocity + rows.motion(i);
        }
        inner
    }

    /// The largest error at the present pose \[m, rad\].
    pub(super) fn measure(&mut self, model: &Model, state: &State) -> f64 {
        self.linearise(model, state).largest
    }

    /// Rows and errors at the present pose.
    fn linearise(&mut self, model: &Model, state: &State) -> Measured {
        let rows = &mut self.rows;
        let mut measured = Measured { largest: 0.0, square: 0.0 };
        let mut open = 0.0f64;
        rows.clear();
        self.residuals.clear();
        self.rows_of.clear();
        let pose = |body: usize| state.bodies.get(body).map_or(Pose::IDENTITY, BodyState::pose);
        for held in &self.held {
            let errors = held.hold.errors(pose(held.a), pose(held.b));
            let translations = held.hold.mask.held_translations();
            let mut squares = [0.0; 2];
            rows.between(held.a, held.b);
            self.rows_of.push(RowsOf::Held(held.owner));
            for (k, row) in errors.iter().enumerate() {
                let turns = usize::from(k >= translations);
                let scale = [1.0, held.length][turns] * held.weight;
                rows.push(row.a, row.b, -row.error, scale);
                squares[turns] += row.error * row.error;
            }
            let residual = Residual { distance: squares[0].sqrt(), angle: squares[1].sqrt() };
            open = open.max(residual.distance);
            measured.largest = measured.largest.max(residual.largest());
            measured.square += (squares[0] + squares[1] * held.length * held.length) * held.weight * held.weight;
            self.residuals.push(residual);
        }
        self.inertia.turn(state, self.wariness * open);
        match self.limits {
            LimitRows::None => {}
            LimitRows::Passed => self.linearise_limits(model, state, &mut measured),
            LimitRows::Hard => self.linearise_stops(model, state, &mut measured),
        }
        for surface in &self.surfaces.list {
            let passed = (-surface.room(state)).max(0.0);
            measured.largest = measured.largest.max(passed);
            measured.square += passed * passed;
        }
        measured
    }

    /// What may touch in a part `h` that starts at `state`.
    pub(super) fn touch(&mut self, contacts: &[Contact], state: &State, part: (f64, f64)) {
        self.surfaces.begin(contacts, state, part);
    }

    /// How deep anything is in anything else \[m\].
    pub(super) fn penetration(&self, state: &State) -> f64 {
        self.surfaces.list.iter().map(|contact| -contact.follow.gap_at(state, contact.left)).fold(0.0, f64::max)
    }

    /// Whether something may touch.
    pub(super) fn touches(&self) -> bool {
        !self.surfaces.list.is_empty()
    }

    /// Whether something touches, and only what does not move by itself.
    pub(super) fn touches_only_what_stands(&self) -> bool {
        !self.surfaces.list.is_empty() && self.surfaces.list.iter().all(|contact| contact.follow.carried == DVec3::ZERO)
    }

    /// The body that has moved farthest in the part.
    pub(super) fn fastest(&self, state: &State) -> BodyId {
        let far = |i: &usize| self.moved[*i].linear.length();
        let most = (0..state.bodies.len()).max_by(|i, j| far(i).total_cmp(&far(j)));
        BodyId(most.unwrap_or(0) as u32)
    }

    /// Nothing touches.
    pub(super) fn touch_nothing(&mut self) {
        self.surfaces.list.clear();
    }

    /// Rows of hard limits that are passed.
    fn linearise_stops(&mut self, model: &Model, state: &State, measured: &mut Measured) {
        let Correction { rows, rows_of, inertia, .. } = self;
        forces::stops(model, state, |stop| {
            if stop.gap < 0.0 {
                let (a, b) = (stop.child.index(), stop.parent.map_or(world(model), |b| b.index()));
                let scale = if stop.a.linear == DVec3::ZERO { inertia.length(a, b) } else { 1.0 };
                rows.between(a, b);
                rows_of.push(RowsOf::Limit(stop.joint));
                rows.push(stop.a, stop.b, -stop.gap, scale);
                measured.largest = measured.largest.max(-stop.gap);
                measured.square += (stop.gap * scale).powi(2);
            }
        });
    }

    /// Takes from the velocities of `state` what lifted bodies out of each other within `h`: they part without a speed.
    pub(super) fn settle(&mut self, model: &Model, state: &mut State, h: f64) {
        for contact in self.surfaces.list.iter().filter(|contact| contact.least < 0.0) {
            let Follow { a, b, normal, .. } = contact.follow;
            let [r_a, r_b] = contact.follow.levers_at(state);
            let parting = normal.dot(contact.follow.velocity_at(state));
            let lifted = RECOVERY / (1.0 - RECOVERY) * -contact.least / h;
            let excess = parting.min(lifted);
            if excess <= 0.0 {
                continue;
            }
            let sides = [Some((a, r_a, 1.0)), b.map(|b| (b, r_b, -1.0))];
            let answer = |id: BodyId, r: DVec3, state: &State| {
                let (body, q) = (model.body(id), state.bodies[id.index()].orientation);
                (1.0 / body.mass, turned_inertia(q, body.inertia.inverse()) * r.cross(normal))
            };
            let mut softness = 0.0;
            for (id, r, _) in sides.into_iter().flatten() {
                let (linear, angular) = answer(id, r, state);
                softness += linear + angular.dot(r.cross(normal));
            }
            for (id, r, sign) in sides.into_iter().flatten() {
                let (linear, angular) = answer(id, r, state);
                let velocity = &mut state.bodies[id.index()].velocity;
                *velocity = *velocity - Twist::new(normal * linear, angular) * (sign * excess / softness);
            }
        }
    }

    /// Rows that bring joints back to the limits they have passed.
    fn linearise_limits(&mut self, model: &Model, state: &State, measured: &mut Measured) {
        for (k, joint) in model.joints().iter().enumerate() {
            let view = JointView::new(model, state, JointId(k as u32));
            let (a, b) = (joint.child.index(), joint.parent.map_or(world(model), |p| p.index()));
            let length = self.inertia.length(a, b);
            let limits = &joint.limits;
            view.passed(|passed, (row_a, row_b)| {
                let turns = row_a.linear == DVec3::ZERO;
                let (scale, stiffness) = if turns { (length, limits.stiffness) } else { (1.0, limits.slide_stiffness) };
                if limits.are_hard() || stiffness > 0.0 {
                    self.rows.between(a, b);
                    self.rows_of.push(RowsOf::Limit(JointId(k as u32)));
                    self.rows.push(row_a, row_b, -passed, scale);
                    measured.largest = measured.largest.max(passed);
                    measured.square += (passed * scale).powi(2);
                }
            });
        }
    }

    /// The motion `δ` of the iteration, its rotations cut; returns the largest \[m, rad\].
    fn cut(&mut self, settings: &Assembly, cut: Cut, state: &State) -> f64 {
        let bodies = state.bodies.len();
        let whole = match cut {
            Cut::Resisted | Cut::EachBody => 1.0,
            Cut::Whole => {
                let turn = (0..bodies).map(|i| self.rows.motion(i).angular.length()).fold(0.0, f64::max);
                shortened(turn, settings.truncation)
            }
        };
        let mut largest = 0.0f64;
        for (i, body) in state.bodies.iter().enumerate() {
            let mut motion = self.rows.motion(i) * whole;
            motion.angular *= shortened(motion.angular.length(), settings.truncation);
            largest = largest.max(motion.linear.length()).max(motion.angular.length());
            self.steps[i] = Step { from: body.pose(), moved: self.moved[i], turned: self.turned[i], motion };
        }
        largest
    }

    /// `q ← q ⊕ share · δ` from where the iteration began.
    fn apply(&mut self, share: f64, state: &mut State) {
        for (i, body) in state.bodies.iter_mut().enumerate() {
            let Step { from, moved, turned, motion } = self.steps[i];
            (body.position, body.orientation) = (from.translation, from.rotation);
            (self.moved[i], self.turned[i]) = (moved, turned);
            if share > 0.0 {
                self.displace(i, body, motion * share);
            }
        }
    }

    /// Moves a body and keeps count of how far.
    pub(super) fn displace(&mut self, i: usize, body: &mut BodyState, motion: Twist) {
        body.position += motion.linear;
        body.orientation = (exp(motion.angular) * body.orientation).normalize();
        self.turned[i] += motion.angular;
        let turn = log(body.orientation * self.start[i].rotation.conjugate());
        self.moved[i] = Twist::new(
            body.position - self.start[i].translation,
            nearest_turn(turn, self.moved[i].angular + motion.angular),
        );
    }
}

/// A joint whose free directions are where these rates bring them in `h`: nothing is left free.
fn driven(joint: &Joint, sides: Sides, angle: f64, rates: &[f64; 6], h: f64) -> Hold {
    let hold = joint.hold();
    let relative = sides.b.then(hold.parent_from_joint).inverse().then(sides.a.then(hold.child_from_joint));
    let mut positions = [0.0; 7];
    let positions = &mut positions[..joint.mask.positions()];
    joint.mask.nearest(relative, angle, positions);
    joint.mask.advance(positions, rates, h);
    Hold { mask: JointMask::WELD, parent_from_joint: hold.parent_from_joint.then(joint.mask.pose(positions)), ..hold }
}

/// Of the vectors that turn as `turn` does, the one nearest `to`.
fn nearest_turn(turn: DVec3, to: DVec3) -> DVec3 {
    let angle = turn.length();
    if angle < 1e-9 {
        // A whole number of turns about the axis of `to`.
        let size = to.length();
        let turns = (size / TAU).round();
        return if turns == 0.0 { turn } else { turn + to * (turns * TAU / size) };
    }
    let axis = turn / angle;
    axis * (angle + TAU * ((axis.dot(to) - angle) / TAU).round())
}

/// The factor that shortens an angle to `most`.
fn shortened(angle: f64, most: f64) -> f64 {
    if angle > most { most / angle } else { 1.0 }
}

/// A row applied to a motion.
pub(super) fn along(row: Twist, motion: Twist) -> f64 {
    row.linear.dot(motion.linear) + row.angular.dot(motion.angular)
}
