//! The character does what it is asked to, by its own actuators [Kim 2008, §3]: goals become rows on the commands x of the actuators,
//!
//! ```text
//! style               x          C x = d                                                        then
//! least acceleration  q̈_a        ∂A/∂q̈_a x = A* − A₀       A₀ at q̈_a = 0, root passive           hybrid dynamics
//! least torque        τ_a        ∂A/∂τ_a x = A* − A₀       A₀ at τ_a = 0                        forward dynamics
//! least velocity      q̇⁺         ∂τ_r/∂q̈ x/h = −τ_r1       τ_r1 the root's torque at q̈ = −q̇/h   hybrid dynamics with q̈_a = (q̇⁺ − q̇)/h
//!                                J x = V*                  after it
//! ```
//! solved level by level (`control/inverse.rs`). Rows of C come by reciprocity, one sweep each (`derivative.rs`). A₀ holds all that acts: flesh, contacts, gravity. At the end
//! the root is passive in every style: no force acts along its directions, whatever became of the goals.
//!
//! What is asked of a bone is what a critically damped spring would do to a unit mass, taken at the end of the part, so that no gain is too high for a step:
//! `A* = (Kp (x* − x − h v) + Kd (v* − v))/(1 + h Kd + h² Kp)`, `Kd = 2 √Kp`.
//!
//! Springs between bodies that are solved with the tree (`loads.rs`) are in A₀ but not in C: where they act, a goal is met to within what they give.

use super::loads::{self, Loads};
use super::recursion::{Given, Recursion, Singular};
use super::spatial::Inertia;
use crate::control::inverse::{Hierarchy, Robustness};
use crate::control::spline::Spline;
use crate::control::{Aim, Control, ControlReport, Gains, Goal, Level, Mode, Style};
use crate::forces::{JointView, StopPlace};
use crate::input::{Drive, Input};
use crate::maths::rotation::log;
use crate::maths::{Twist, Wrench};
use crate::model::coordinates::Link;
use crate::model::{BodyId, Coordinates, JointId, JointMask, Model, State};
use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::TAU;

/// What a node's joint is to the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It is told what to do.
    Actuator,
    /// It lets a character with actuators go anywhere: nothing may act along its directions.
    Root,
    /// It moves by itself, or as the input drives it.
    Other,
}

/// How an actuator is told, at its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// By its acceleration.
    Acceleration,
    /// By its torque, for its own sake.
    Torque,
    /// It was to have an acceleration that takes more torque than it has: it has that.
    Held,
    /// Nothing.
    Limp,
}

/// What a row is about.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The motion of a body along a direction, world axes about its centre of mass; the part of its acceleration that comes of velocities.
    Body { body: BodyId, along: Wrench, drift: f64 },
    /// The motion of a node's joint along its rates.
    Joint { node: usize, along: [f64; 6] },
}

/// One row of C x = d.
#[derive(Clone, Copy, Debug)]
struct Row {
    level: Level,
    /// Rows of one goal have one number.
    goal: u32,
    weight: f64,
    /// A length where it is about angles, otherwise 1.
    unit: f64,
    /// Of the row, as commands move it, before it is weighted.
    length: f64,
    place: Place,
    /// A* or V*.
    wanted: f64,
}

/// What is asked, and when.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) model: &'a Model,
    pub(super) input: &'a Input,
    pub(super) state: &'a State,
    pub(super) coordinates: &'a Coordinates,
    /// Length of the part \[s\].
    pub(super) h: f64,
    /// What is left of the step after it \[s\].
    pub(super) after: f64,
}

impl<'a> Asked<'a> {
    fn control(&self) -> &'a Control {
        &self.input.control
    }
}

/// The recursion with the springs between bodies that are solved with it.
pub(super) struct Dynamics<'a> {
    pub(super) recursion: &'a mut Recursion,
    pub(super) loads: &'a mut Loads,
}

impl Dynamics<'_> {
    /// Solves with the inertias as they are factored. Returns the number of right-hand sides.
    fn solve(&mut self) -> u32 {
        self.loads.solve(self.recursion)
    }

    fn factor_and_solve(&mut self) -> Result<u32, Singular> {
        self.recursion.factor()?;
        Ok(self.solve())
    }
}

/// Scratch of the control.
pub(super) struct Direct {
    /// By node.
    roles: Vec<Role>,
    bodies: Vec<BodyId>,
    masks: Vec<JointMask>,
    joints: Vec<Option<JointId>>,
    /// By rate: its node.
    node_of_rate: Vec<usize>,
    /// By column of C: its rate, and `1/√weight`.
    columns: Vec<usize>,
    ease: Vec<f64>,
    rows: Vec<Row>,
    /// C row by row, its columns scaled, and d; all levels one after the other.
    matrix: Vec<f64>,
    rhs: Vec<f64>,
    /// The rows as torques are measured, in least torque; and that of torques at their bounds.
    duals: Vec<f64>,
    fixed: Vec<f64>,
    hierarchy: Hierarchy,
    /// How the rows of bodies respond to forces along them, and what they lack.
    mobility: Vec<f64>,
    lack: Vec<f64>,
    pull: Hierarchy,
    /// By rate: torques that act without command; commands; those that brake; nothing.
    base: Vec<f64>,
    command: Vec<f64>,
    brake: Vec<f64>,
    nothing: Vec<f64>,
    /// By rate: what is commanded beside the solution of the rows, and the bounds of their sum.
    own: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    /// By node.
    told: Vec<Told>,
    spline: Spline,
    /// Positions on the motion through the keyframes: a part before, now, a part later.
    path: [Vec<f64>; 3],
    most_rows: usize,
    /// Positions at the start of the model; by rate: the inertia that a joint moves there \[kg·m², kg\].
    start: Vec<f64>,
    inertias: Vec<f64>,
    /// Mean distance of bodies from their tree parents \[m\]: how angles count beside lengths.
    length: f64,
}

/// Goals whose rows are shorter than this share of the longest are taken for what no command moves.
const UNMOVED: f64 = 1e-7;
/// Ends of the ranges of a joint that can be passed at once: of its angle, its swing, its slide.
const MOST_STOPS: usize = 3;
/// A share that counts as nothing when what was found is compared with its bound.
const BARELY: f64 = 1e-9;
/// Torques at their bounds that others make up for, in least torque; more are held back.
const MOST_FIXED: usize = 64;
/// How often commands are distributed anew when actuators reach their bounds.
const ROUNDS: u32 = 8;

impl Direct {
    pub(super) fn new(model: &Model) -> Direct {
        let nodes = &model.topology().nodes;
        let start = model.start();
        let coordinates = Coordinates::of(model, &start);
        let mut recursion = Recursion::new(model);
        recursion.place(&coordinates);
        // Flesh goes with its bones.
        if let Some(flesh) = model.flesh() {
            for ((place, bone), mass) in flesh.start.iter().zip(&flesh.bones).zip(&flesh.masses) {
                let Some(bone) = bone else { continue };
                let lever = *place - start.bodies[bone.index()].position;
                let x = Inertia::at_point(lever, DMat3::from_diagonal(DVec3::splat(*mass)));
                recursion.load_body(*bone, Wrench::ZERO, &x);
            }
        }
        let rates = coordinates.rates.len();
        let node_of_rate: Vec<usize> =
            (0..nodes.len()).flat_map(|i| coordinates.rate_range(i).map(move |_| i)).collect();
        // What a joint moves when all others are stiff: the torque of a unit acceleration, roots being passive.
        let mut inertias = vec![0.0; rates];
        for (i, node) in nodes.iter().enumerate() {
            let roams = node.parent == 0 && Link::new(model, node).mask.free_translations() >= 2;
            let given = if roams { Given::Torque } else { Given::Acceleration };
            recursion.give(i, given, &inertias[recursion.rates(i)]);
        }
        if recursion.factor().is_ok() {
            for (rate, inertia) in inertias.iter_mut().enumerate() {
                recursion.by_command(rate);
                let found = recursion.response.found[rate];
                *inertia = match recursion.given(node_of_rate[rate]) {
                    Given::Acceleration => found,
                    Given::Torque => 1.0 / found,
                };
            }
        }
        let place = |body: BodyId| start.bodies[body.index()].position;
        let far = nodes.iter().filter_map(|node| {
            let parent = node.parent.checked_sub(1)?;
            Some(place(node.body).distance(place(nodes[parent].body)))
        });
        let (sum, count) = far.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
        Direct {
            roles: vec![Role::Other; nodes.len()],
            bodies: nodes.iter().map(|node| node.body).collect(),
            masks: nodes.iter().map(|node| Link::new(model, node).mask).collect(),
            joints: nodes.iter().map(|node| node.joint).collect(),
            node_of_rate,
            columns: Vec::new(),
            ease: Vec::new(),
            rows: Vec::new(),
            matrix: Vec::new(),
            rhs: Vec::new(),
            duals: Vec::new(),
            fixed: Vec::new(),
            hierarchy: Hierarchy::default(),
            mobility: Vec::new(),
            lack: Vec::new(),
            pull: Hierarchy::default(),
            base: vec![0.0; rates],
            command: vec![0.0; rates],
            brake: vec![0.0; rates],
            nothing: vec![0.0; rates],
            own: vec![0.0; rates],
            low: vec![0.0; rates],
            high: vec![0.0; rates],
            told: vec![Told::Limp; nodes.len()],
            spline: Spline::default(),
            path: std::array::from_fn(|_| coordinates.positions.clone()),
            most_rows: 0,
            start: coordinates.positions,
            inertias,
            length: if sum > 0.0 { sum / count } else { 0.2 },
        }
    }

    /// Which joints are actuators in this step.
    pub(super) fn assign(&mut self, model: &Model, input: &Input) {
        for (i, node) in model.topology().nodes.iter().enumerate().rev() {
            let driven = |id: JointId| input.joint(id.index()).drive != Drive::Forces;
            let acts = |id: JointId| input.control.joint(id.index()).acts(model.joint(id));
            self.roles[i] = match node.joint {
                Some(id) if driven(id) => Role::Other,
                Some(id) if acts(id) => Role::Actuator,
                _ if node.parent == 0 && self.roles[i + 1..i + node.subtree].contains(&Role::Actuator) => Role::Root,
                _ => Role::Other,
            };
        }
    }

    /// Whether a node's joint is told what to do: its motor rests.
    pub(super) fn acts(&self, node: usize) -> bool {
        self.roles[node] == Role::Actuator
    }

    /// Commands, and the solution with them. Everything but the actuators acts in the recursion already. Returns the number of right-hand sides solved.
    pub(super) fn carry_out(
        &mut self,
        asked: Asked<'_>,
        mut dynamics: Dynamics<'_>,
    ) -> Result<(u32, ControlReport), Singular> {
        let control = asked.control();
        let Asked { model, state, coordinates, h, .. } = asked;
        loads::stop_softly(model, state, coordinates, h, &self.inertias, dynamics.recursion);
        self.base.copy_from_slice(&dynamics.recursion.main.given);
        self.rows.clear();
        let mut report = ControlReport::default();
        let mut solves = match control.mode {
            Mode::Off => unreachable!("nothing is carried out while the control is off"),
            Mode::Goals => self.seek(asked, &mut dynamics, &mut report)?,
            Mode::Keyframes => self.follow(asked, &mut dynamics, &mut report)?,
            Mode::Landing => self.land(asked, &mut dynamics)?,
        };
        solves += self.hold_bounds(asked, &mut dynamics, &mut report)?;
        self.tell(asked, dynamics.recursion, &mut report);
        Ok((solves, report))
    }

    // Styles

    /// Commands that reach the goals in the style asked for, and the solution with them.
    fn seek(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        self.choose_columns(asked.control());
        self.make_room(asked);
        self.gather_goals(asked);
        self.gather_joints(asked, dynamics.recursion);
        self.rows.sort_unstable_by_key(|row| (row.level, row.goal));
        match asked.control().style {
            Style::LeastAcceleration => self.least_acceleration(asked, dynamics, report),
            Style::LeastTorque => self.least_torque(asked, dynamics, report),
            Style::LeastVelocity => self.least_velocity(asked, dynamics, report),
        }
    }

    fn least_acceleration(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        // A₀ where nothing is asked: what moves is braked.
        let braking = asked.control().gains.braking;
        for rate in 0..self.brake.len() {
            let brake = -braking * asked.coordinates.rates[rate] / (1.0 + asked.h * braking);
            let (low, high) = allowed(asked, rate);
            (self.low[rate], self.high[rate], self.brake[rate]) = (low, high, brake.clamp(low, high));
        }
        self.tell_all(Told::Acceleration);
        give(&self.roles, Given::Acceleration, &self.brake, dynamics.recursion);
        let mut solves = dynamics.factor_and_solve()?;
        solves += self.make_rows(asked, dynamics.recursion, report);
        self.make_alike(asked.control(), 0);
        self.own.copy_from_slice(&self.brake);
        report.limited += self.solve_within_bounds(asked.control().robustness, 0, None) + self.bound(asked.control());
        give(&self.roles, Given::Acceleration, &self.command, dynamics.recursion);
        Ok(solves + dynamics.solve())
    }

    /// The rows of what the solution at hand lacks, and the pull that would fill them. Returns the number of right-hand sides solved.
    fn make_rows(&mut self, asked: Asked<'_>, recursion: &mut Recursion, report: &mut ControlReport) -> u32 {
        self.clear_rows();
        let solves = self.add_rows(recursion);
        self.measure_pull(asked.state, report);
        solves
    }

    fn least_torque(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        self.tell_all(Told::Torque);
        give(&self.roles, Given::Torque, &self.base, dynamics.recursion);
        let mut solves = self.brake_softly(asked, dynamics)?;
        give(&self.roles, Given::Torque, &self.command, dynamics.recursion);
        solves += dynamics.factor_and_solve()?;
        solves += self.make_rows(asked, dynamics.recursion, report);
        self.own.copy_from_slice(&self.brake);
        let robustness = asked.control().robustness;
        if let Robustness::Scaled(_) = robustness {
            give(&self.roles, Given::Acceleration, &self.nothing, dynamics.recursion);
            dynamics.recursion.factor()?;
            solves += self.add_duals(dynamics.recursion);
            self.make_alike(asked.control(), 0);
            report.limited += self.solve_within_bounds(robustness, 0, Some(dynamics.recursion));
        } else {
            self.make_alike(asked.control(), 0);
            report.limited += self.solve_within_bounds(robustness, 0, None); // as published
        }
        self.command.iter_mut().zip(&self.base).for_each(|(x, base)| *x += base);
        give(&self.roles, Given::Torque, &self.command, dynamics.recursion);
        Ok(solves + dynamics.factor_and_solve()?)
    }

    /// The torques of brakes, `−c (q̇ + h q̈)` with q̈ the accelerations without commands: they turn no rate round, however light the limbs are. They are commands beside the base.
    fn brake_softly(&mut self, asked: Asked<'_>, dynamics: &mut Dynamics<'_>) -> Result<u32, Singular> {
        let (h, rates) = (asked.h, &asked.coordinates.rates);
        let of_actuators = |of: &Direct, rate: usize| of.roles[of.node_of_rate[rate]] == Role::Actuator;
        let damping = |of: &Direct, rate: usize| asked.control().gains.braking * of.inertias[rate];
        let load = |of: &Direct, sign: f64, recursion: &mut Recursion| {
            for (rate, now) in rates.iter().enumerate().filter(|(rate, _)| of_actuators(of, *rate)) {
                let (node, c) = (of.node_of_rate[rate], sign * damping(of, rate));
                let k = rate - recursion.rates(node).start;
                recursion.spring_joint(node, k, -c * now, h * c);
            }
        };
        load(self, 1.0, dynamics.recursion);
        let solves = dynamics.factor_and_solve()?;
        load(self, -1.0, dynamics.recursion);
        for rate in 0..rates.len() {
            let brake = -damping(self, rate) * (rates[rate] + h * dynamics.recursion.accelerations()[rate]);
            let most = self.most_torque(asked, rate);
            (self.low[rate], self.high[rate], self.brake[rate]) = (-most, most, brake.clamp(-most, most));
            self.command[rate] = self.base[rate] + self.brake[rate];
        }
        Ok(solves)
    }

    /// Torques count by what they do, `τᵀ W⁻¹ τ` with W the inertia that the actuators move, roots being passive: τᵀ M⁻¹ τ is twice the energy that they give in a time. What is asked of a bone is
    /// then done as a pull on it would do it, and what is not asked for neither gains nor loses energy by it. Counted in N·m alone, fingers are flicked to move an arm and pass their limits, what
    /// brings one of them back flicks the next, and chains that hang swing ever wider; and forces of slides cannot be added to torques. Accelerations must be given in the recursion. Returns the
    /// number of sweeps.
    fn add_duals(&mut self, recursion: &mut Recursion) -> u32 {
        let n = self.columns.len();
        self.duals.clear();
        self.duals.extend_from_slice(&self.matrix);
        if n > 0 {
            let rows = self.rows.iter_mut().zip(self.matrix.chunks_exact(n));
            for ((row, c), dual) in rows.zip(self.duals.chunks_exact_mut(n)) {
                measure(&self.columns, &self.ease, &self.node_of_rate, recursion, dual);
                row.length = dot(c, dual).max(0.0).sqrt();
            }
        }
        self.rows.len() as u32
    }

    /// Solves the rows such that no command is beyond its bounds: one that would be stays there, and the others do what they can. The recursion measures torques, where they are. Returns how many
    /// came to their bounds.
    fn solve_within_bounds(
        &mut self,
        robustness: Robustness,
        laws: usize,
        mut measures: Option<&mut Recursion>,
    ) -> u32 {
        let mut limited = 0;
        self.fixed.clear();
        for _ in 0..ROUNDS {
            self.solve_levels(robustness, laws);
            let reached = self.fix_at_bounds(measures.as_deref_mut());
            limited += reached;
            if reached == 0 {
                break;
            }
        }
        self.command.copy_from_slice(&self.own);
        for ((&rate, x), ease) in self.columns.iter().zip(self.hierarchy.solution()).zip(&self.ease) {
            self.command[rate] = (self.own[rate] + x * ease).clamp(self.low[rate], self.high[rate]);
        }
        limited
    }

    /// Takes commands that are beyond their bounds out of the rows, as constants. Returns how many.
    fn fix_at_bounds(&mut self, mut measures: Option<&mut Recursion>) -> u32 {
        let n = self.columns.len();
        let mut reached = 0;
        for column in 0..n {
            let rate = self.columns[column];
            let sum = self.own[rate] + self.hierarchy.solution()[column] * self.ease[column];
            let bound = sum.clamp(self.low[rate], self.high[rate]);
            if bound == sum {
                continue;
            }
            reached += 1;
            match &mut measures {
                Some(recursion) => self.fix_measured(column, bound, recursion),
                None => self.fix(column, bound),
            }
        }
        reached
    }

    fn fix(&mut self, column: usize, bound: f64) {
        let (n, rate) = (self.columns.len(), self.columns[column]);
        let more = bound - self.own[rate];
        self.own[rate] = bound;
        for (row, rhs) in self.matrix.chunks_exact_mut(n).zip(&mut self.rhs) {
            *rhs -= row[column] * more / self.ease[column];
            row[column] = 0.0;
        }
    }

    /// With W the measure as it is while others are fixed, w its column and b what the command lacks, the others are nearest to where they were at `w b/w_f`, and W becomes `W − w wᵀ/w_f`.
    fn fix_measured(&mut self, column: usize, bound: f64, recursion: &mut Recursion) {
        let n = self.columns.len();
        let first = self.fixed.len();
        if first >= n * MOST_FIXED {
            return; // it is held back in the end
        }
        self.fixed.resize(first + n, 0.0);
        let (before, w) = self.fixed.split_at_mut(first);
        w[column] = 1.0;
        measure(&self.columns, &self.ease, &self.node_of_rate, recursion, w);
        for v in before.chunks_exact(n) {
            let along = v[column];
            w.iter_mut().zip(v).for_each(|(w, v)| *w -= along * v);
        }
        let own = w[column];
        if own <= 0.0 {
            self.fixed.truncate(first);
            return;
        }
        let scale = 1.0 / own.sqrt();
        w.iter_mut().for_each(|w| *w *= scale);
        let rate = self.columns[column];
        let more = (bound - self.own[rate]) / self.ease[column] / w[column];
        for ((&rate, ease), w) in self.columns.iter().zip(&self.ease).zip(&*w) {
            self.own[rate] += ease * w * more;
        }
        self.own[rate] = bound;
        for ((row, rhs), dual) in self.matrix.chunks_exact(n).zip(&mut self.rhs).zip(self.duals.chunks_exact_mut(n)) {
            *rhs -= more * dot(row, w);
            let along = dual[column] / w[column];
            dual.iter_mut().zip(&*w).for_each(|(dual, w)| *dual -= along * w);
            dual[column] = 0.0;
        }
    }

    fn least_velocity(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let (h, rates) = (asked.h, &asked.coordinates.rates);
        // τ_r1: all is told, such that it would stand at the end
        self.command.iter_mut().zip(rates).for_each(|(x, rate)| *x = -rate / h);
        give(&self.roles, Given::Acceleration, &self.command, dynamics.recursion);
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Root) {
            let range = asked.coordinates.rate_range(i);
            dynamics.recursion.give(i, Given::Acceleration, &self.command[range]);
        }
        let mut solves = dynamics.factor_and_solve()?;
        self.clear_rows();
        let laws = self.add_laws(asked, dynamics.recursion);
        solves += self.add_rows(dynamics.recursion) + laws as u32;
        // V* − J x at x = 0, which is nothing but what joints that are no actuators do
        for (d, row) in self.rhs[laws..].iter_mut().zip(&self.rows) {
            *d = row.scale() * (row.wanted - row.next_velocity(dynamics.recursion, asked));
        }
        self.make_alike(asked.control(), laws);
        self.low.fill(f64::NEG_INFINITY);
        self.high.fill(f64::INFINITY);
        for &rate in &self.columns {
            if self.roles[self.node_of_rate[rate]] == Role::Actuator {
                let (low, high) = allowed(asked, rate);
                (self.low[rate], self.high[rate]) = (rates[rate] + h * low, rates[rate] + h * high);
            }
        }
        self.own.fill(0.0);
        report.limited += self.solve_within_bounds(asked.control().robustness, laws, None);
        self.command.iter_mut().zip(rates).for_each(|(x, rate)| *x = (*x - rate) / h);
        report.limited += self.bound(asked.control());
        self.tell_all(Told::Acceleration);

        // The root is passive again. What a pull from outside would have done is told by what the joints do when they are told nothing.
        give(&self.roles, Given::Acceleration, &self.nothing, dynamics.recursion);
        self.free_roots(dynamics.recursion);
        solves += dynamics.factor_and_solve()?;
        self.clear_rows();
        solves += self.add_rows(dynamics.recursion);
        for (row, lack) in self.rows.iter().filter(|row| row.is_of_body()).zip(&mut self.lack) {
            *lack = (row.wanted - row.next_velocity(dynamics.recursion, asked)) / h;
        }
        self.measure_pull(asked.state, report);
        give(&self.roles, Given::Acceleration, &self.command, dynamics.recursion);
        Ok(solves + dynamics.solve())
    }

    /// The rows of passive roots, `(∂τ_r/∂q̈ + E) x/h = τ_own + E q̇/h − τ_r1`, τ_own − E q̈ being what acts there by itself: a law of physics. Returns how many.
    fn add_laws(&mut self, asked: Asked<'_>, recursion: &mut Recursion) -> usize {
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Root) {
            let range = asked.coordinates.rate_range(i);
            let own = recursion.implicit_torques(i, &asked.coordinates.rates[range.clone()]);
            for (k, rate) in range.clone().enumerate() {
                recursion.by_command(rate);
                let mut unit = [0.0; 6];
                unit[k] = 1.0;
                let implicit = recursion.implicit_torques(i, &unit[..range.len()]);
                let entries = self.columns.iter().zip(&self.ease).map(|(column, ease)| {
                    let implicit = if range.contains(column) { implicit[column - range.start] } else { 0.0 };
                    (recursion.response.found[*column] + implicit) * ease / asked.h
                });
                self.matrix.extend(entries);
                self.rhs.push(self.base[rate] + own[k] / asked.h - recursion.torques()[rate]);
            }
        }
        self.rhs.len()
    }

    // Keyframes and landing

    /// The motion through the keyframes, mixed with the goals as far as its share is below 1.
    fn follow(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let share = asked.control().keyframes.share;
        let mut solves = 0;
        if share < 1.0 {
            solves += self.seek(asked, dynamics, report)?;
            let goals = dynamics.recursion.accelerations();
            self.command.iter_mut().zip(goals).for_each(|(x, goals)| *x = (1.0 - share) * goals);
        } else {
            self.command.fill(0.0);
        }
        self.add_keyframes(asked, share);
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Actuator) {
            for rate in asked.coordinates.rate_range(i) {
                let (low, high) = allowed(asked, rate);
                let within = self.command[rate].clamp(low, high);
                report.limited += u32::from(within != self.command[rate]);
                self.command[rate] = within;
            }
        }
        report.limited += self.bound(asked.control());
        self.tell_all(Told::Acceleration);
        give(&self.roles, Given::Acceleration, &self.command, dynamics.recursion);
        Ok(solves + dynamics.factor_and_solve()?)
    }

    /// Adds the share of the accelerations that lead along the keyframes. With s the motion at the start of the part, s₋ and s₊ a part before and after, and v₋, v₊ the
    /// mean velocities between them, a joint that was on the motion stays on it to rounding; one that is off it comes back as a critically damped spring does:
    ///
    /// ```text
    /// q̈ = (v₊ − v₋)/h + (ω² (e + h ė) + 2ω ė)/(1 + 2ωh + ω²h²),    e = s − q,  ė = v₋ − q̇
    /// ```
    fn add_keyframes(&mut self, asked: Asked<'_>, share: f64) {
        let keys = &asked.control().keyframes;
        let h = asked.h;
        let end = asked.state.time + asked.input.dt - asked.after;
        let stride = self.start.len();
        self.spline.lead(&keys.times, &keys.positions, stride, keys.ends);
        for (path, time) in self.path.iter_mut().zip([end - 2.0 * h, end - h, end]) {
            for (i, role) in self.roles.iter().enumerate() {
                if *role != Role::Actuator {
                    continue;
                }
                let range = asked.coordinates.position_range(i);
                for offset in range.clone() {
                    path[offset] = self.spline.at(offset, time)[0];
                }
                if self.masks[i].has_quaternion() {
                    normalise(&mut path[range.end - 4..range.end]);
                }
            }
        }
        let omega = keys.rate;
        let implicit = 1.0 + 2.0 * omega * h + (omega * h).powi(2);
        for (i, role) in self.roles.iter().enumerate() {
            if *role != Role::Actuator {
                continue;
            }
            let (at, rates) = (asked.coordinates.position_range(i), asked.coordinates.rate_range(i));
            let [before, now, later] = self.path.each_ref().map(|path| &path[at.clone()]);
            let (mut came, mut goes, mut off) = ([0.0; 6], [0.0; 6], [0.0; 6]);
            self.masks[i].difference(before, now, &mut came);
            self.masks[i].difference(now, later, &mut goes);
            self.masks[i].difference(&asked.coordinates.positions[at.clone()], now, &mut off);
            for (k, rate) in rates.enumerate() {
                let slower = came[k] / h - asked.coordinates.rates[rate];
                let back = omega * omega * (off[k] + h * slower) + 2.0 * omega * slower;
                self.command[rate] += share * ((goes[k] - came[k]) / (h * h) + back / implicit);
            }
        }
    }

    /// Limp but for springs to the pose, taken at the end of the part: `τ = −K (q + h q̇⁺ − q*) − C q̇⁺`, where spring and damper together have no more than the torque of the actuator.
    fn land(&mut self, asked: Asked<'_>, dynamics: &mut Dynamics<'_>) -> Result<u32, Singular> {
        self.tell_all(Told::Limp);
        give(&self.roles, Given::Torque, &self.base, dynamics.recursion);
        for i in 0..self.roles.len() {
            if self.roles[i] != Role::Actuator {
                continue;
            }
            let off = self.off_pose(i, asked);
            for (k, rate) in asked.coordinates.rate_range(i).enumerate() {
                let spring = self.landing_spring(asked, rate, off[k]);
                dynamics.recursion.spring_joint(i, k, spring.force, spring.implicit);
            }
        }
        dynamics.factor_and_solve()
    }

    /// The spring of a rate that is `off` its pose.
    fn landing_spring(&self, asked: Asked<'_>, rate: usize, off: f64) -> LandingSpring {
        let Control { landing, .. } = asked.control();
        let (omega, inertia, now) = (TAU * landing.hertz, self.inertias[rate], asked.coordinates.rates[rate]);
        let (stiffness, damping) = (inertia * omega * omega, 2.0 * landing.ratio * inertia * omega);
        let (force, most) = (stiffness * (off - asked.h * now) - damping * now, self.most_torque(asked, rate));
        if force.abs() > most {
            return LandingSpring { force: force.clamp(-most, most), implicit: 0.0 };
        }
        LandingSpring { force, implicit: asked.h * (damping + asked.h * stiffness) }
    }

    /// The motion from where a node's joint is to the pose.
    fn off_pose(&self, node: usize, asked: Asked<'_>) -> [f64; 6] {
        let at = asked.coordinates.position_range(node);
        let pose = if asked.control().pose.is_empty() { &self.start } else { &asked.control().pose };
        let mut off = [0.0; 6];
        self.masks[node].difference(&asked.coordinates.positions[at.clone()], &pose[at], &mut off);
        off
    }

    // Rows

    /// Makes room for as many rows as there can be, limits all passed.
    fn make_room(&mut self, asked: Asked<'_>) {
        let control = asked.control();
        let goals = 3 * control.goals.len();
        let limits = asked.model.joints().iter().filter(|joint| joint.limits.any()).count();
        let pose = if control.pose_share > 0.0 { self.node_of_rate.len() } else { 0 };
        let laws = self.columns.len().min(6 * self.roles.iter().filter(|role| **role == Role::Root).count());
        self.most_rows = goals + MOST_STOPS * limits + pose + laws;
        self.rows.reserve(self.most_rows);
        self.matrix.clear();
        self.matrix.reserve(self.most_rows * self.columns.len());
        self.rhs.clear();
        self.rhs.reserve(self.most_rows);
        self.duals.clear();
        self.duals.reserve(self.most_rows * self.columns.len());
        self.fixed.clear();
        self.fixed.reserve(MOST_FIXED.min(self.columns.len()) * self.columns.len());
        self.mobility.clear();
        self.mobility.reserve(goals * goals);
        self.lack.clear();
        self.lack.reserve(goals);
    }

    /// The columns of C: rates of actuators; in least velocity those of passive roots too.
    fn choose_columns(&mut self, control: &Control) {
        self.columns.clear();
        self.ease.clear();
        for (rate, &node) in self.node_of_rate.iter().enumerate() {
            let takes_part = match self.roles[node] {
                Role::Actuator => true,
                Role::Root => control.style == Style::LeastVelocity,
                Role::Other => false,
            };
            if takes_part {
                let weight = self.joints[node].map_or(1.0, |id| control.joint(id.index()).weight);
                self.columns.push(rate);
                self.ease.push(1.0 / weight.sqrt());
            }
        }
    }

    fn gather_goals(&mut self, asked: Asked<'_>) {
        for (number, goal) in asked.control().goals.iter().enumerate() {
            let body = &asked.state.bodies[goal.body.index()];
            let (lever, w) = (body.orientation * goal.point, body.velocity.angular);
            let (place, v) = (body.position + lever, body.velocity.at(lever));
            let turning = w.cross(w.cross(lever));
            let seeker = Seeker { control: asked.control(), h: asked.h };
            let point = |e: DVec3| Place::Body { body: goal.body, along: Wrench::at(lever, e), drift: turning.dot(e) };
            let turn = |e: DVec3| Place::Body { body: goal.body, along: Wrench::new(DVec3::ZERO, e), drift: 0.0 };
            let linear = (1.0, &point as &dyn Fn(DVec3) -> Place);
            let angular = (self.length, &turn as &dyn Fn(DVec3) -> Place);
            let ((scale, row), wanted) = match goal.aim {
                // where the target is at the end of this part
                Aim::Position { target, velocity } => {
                    (linear, seeker.reach(target - velocity * asked.after - place, v, velocity, 1.0))
                }
                Aim::Height(height) => {
                    let off = DVec3::Y * (height - place.y);
                    (linear, seeker.reach(off, DVec3::Y * v.y, DVec3::ZERO, 1.0))
                }
                Aim::Orientation { target, velocity } => {
                    let off = log(target * body.orientation.conjugate()) - velocity * asked.after;
                    (angular, seeker.reach(off, w, velocity, self.length))
                }
                Aim::Velocity(wanted) => (linear, seeker.speed(v, wanted, 1.0)),
                Aim::AngularVelocity(wanted) => (angular, seeker.speed(w, wanted, self.length)),
                Aim::Acceleration(wanted) => (linear, seeker.accelerate(v, wanted)),
                Aim::AngularAcceleration(wanted) => (angular, seeker.accelerate(w, wanted)),
            };
            for (axis, e) in DVec3::AXES.into_iter().enumerate() {
                let Goal { level, mut weight, .. } = *goal;
                if matches!(goal.aim, Aim::Height(_)) && axis != 1 {
                    weight = 0.0; // nothing is asked; but it is known how the point can be moved
                }
                let (goal, place, wanted) = (number as u32, row(e), wanted.dot(e));
                self.rows.push(Row { level, goal, weight, unit: scale, length: 0.0, place, wanted });
            }
        }
    }

    /// Rows of limits that are passed, or would be at the end of the part, and of the pose.
    fn gather_joints(&mut self, asked: Asked<'_>, recursion: &Recursion) {
        let (control, h) = (asked.control(), asked.h);
        for i in 0..self.roles.len() {
            let (Role::Actuator, Some(id)) = (self.roles[i], self.joints[i]) else { continue };
            let rates = &asked.coordinates.rates[asked.coordinates.rate_range(i)];
            // A limit acts when a critically damped spring would come to it no more slowly: it is reached without being passed.
            let ahead = 1.0 / control.gains.limit.sqrt();
            let view = JointView::new(asked.model, asked.state, id);
            view.stops(|mut stop| {
                if control.gains.limit == 0.0 {
                    return;
                }
                if let (StopPlace::Swing, Some((left, g))) = (stop.place, view.swing_left()) {
                    let turn = |g: DVec3| Twist::new(DVec3::ZERO, g);
                    (stop.gap, stop.a, stop.b) = (left, turn(-g), turn(g));
                }
                let row = if recursion.is_flipped(i) { stop.b } else { stop.a };
                let mut along = [0.0; 6];
                for (k, along) in along.iter_mut().enumerate().take(rates.len()) {
                    *along = Wrench::new(row.linear, row.angular).power(recursion.direction(i, k));
                }
                let now = dot(&along, rates);
                if stop.gap + (ahead + h) * now < 0.0 {
                    let wanted = spring(control.gains.limit, h, -stop.gap - h * now, now);
                    self.push_joint(control, i, along, wanted, (now, h));
                }
            });
            if control.pose_share > 0.0 {
                let off = self.off_pose(i, asked);
                for (k, &now) in rates.iter().enumerate() {
                    let mut along = [0.0; 6];
                    along[k] = 1.0;
                    let wanted = spring(control.gains.pose * control.pose_share, h, off[k] - h * now, now);
                    self.push_joint(control, i, along, wanted, (now, h));
                }
            }
        }
    }

    /// A row of a joint that is to have an acceleration, now moving with a rate.
    fn push_joint(&mut self, control: &Control, node: usize, along: [f64; 6], wanted: f64, (now, h): (f64, f64)) {
        let wanted = if control.style == Style::LeastVelocity { now + h * wanted } else { wanted };
        let turns = self.masks[node].free_translations() < self.masks[node].free();
        let scale = if turns { self.length } else { 1.0 };
        let (level, goal) = (control.joint_level, (control.goals.len() + self.rows.len()) as u32);
        let place = Place::Joint { node, along };
        self.rows.push(Row { level, goal, weight: 1.0, unit: scale, length: 0.0, place, wanted });
    }

    fn clear_rows(&mut self) {
        self.duals.clear();
        self.matrix.clear();
        self.rhs.clear();
    }

    /// C and d at the present solution, and what is needed to tell what a pull would have done. Returns the number of sweeps.
    fn add_rows(&mut self, recursion: &mut Recursion) -> u32 {
        self.mobility.clear();
        self.lack.clear();
        for i in 0..self.rows.len() {
            let row = &mut self.rows[i];
            let lack = row.wanted - row.acceleration(recursion);
            self.rhs.push(row.scale() * lack);
            let coefficients = row.coefficients(recursion);
            let first = self.matrix.len();
            self.matrix.extend(self.columns.iter().zip(&self.ease).map(|(k, ease)| row.unit * coefficients[*k] * ease));
            let own = &mut self.matrix[first..];
            row.length = dot(own, own).sqrt();
            if row.is_of_body() {
                self.lack.push(lack);
                self.mobility.extend(self.rows.iter().filter_map(|other| other.response(recursion)));
            }
        }
        self.rows.len() as u32
    }

    /// Gives rows their weights, and makes goals alike in what commands do to them: each is divided by its longest row. Light limbs and heavy ones, places and angles of joints would otherwise hide
    /// one another's singular values. Rows of one goal stay as they are to each other, so that what it cannot reach is told from what it can. The first `laws` rows stay as they are.
    fn make_alike(&mut self, control: &Control, laws: usize) {
        let n = self.columns.len();
        let longest = |rows: &[Row]| rows.iter().map(|row| row.length).fold(0.0, f64::max);
        let most = longest(&self.rows);
        let as_published = matches!(control.robustness, Robustness::Constant(_)) || most == 0.0;
        let mut first = 0;
        while first < self.rows.len() {
            let goal = self.rows[first].goal;
            let count = self.rows[first..].iter().take_while(|row| row.goal == goal).count();
            // what no command moves stays so
            let size = longest(&self.rows[first..first + count]).max(UNMOVED * most);
            let scale = if as_published { 1.0 } else { 1.0 / size };
            for i in first..first + count {
                let within = (laws + i) * n..(laws + i + 1) * n;
                let weight = scale * self.rows[i].weight;
                self.matrix[within.clone()].iter_mut().for_each(|x| *x *= weight);
                self.duals.get_mut(within).into_iter().flatten().for_each(|x| *x *= weight);
                self.rhs[laws + i] *= scale;
            }
            first += count;
        }
    }

    /// Solves the rows level by level; the first `laws` rows before all, exactly.
    fn solve_levels(&mut self, robustness: Robustness, laws: usize) {
        let n = self.columns.len();
        self.hierarchy.begin(n, self.most_rows);
        self.hierarchy.add_level(&self.matrix[..laws * n], &self.rhs[..laws], Robustness::EXACT);
        let mut first = 0;
        for level in Level::ALL {
            let count = self.rows[first..].iter().take_while(|row| row.level == level).count();
            let range = laws + first..laws + first + count;
            let within = range.start * n..range.end * n;
            let c = &self.matrix[within.clone()];
            let duals = self.duals.get(within).unwrap_or(c);
            self.hierarchy.add_level_by(c, duals, &self.rhs[range], robustness);
            first += count;
        }
    }

    /// Makes accelerations smaller, all alike, until none is above the bound. Returns how many were.
    fn bound(&mut self, control: &Control) -> u32 {
        let most = control.gains.most_command;
        let told = |rate: &usize| self.roles[self.node_of_rate[*rate]] == Role::Actuator;
        let sizes = || (0..self.command.len()).filter(told).map(|rate| self.command[rate].abs());
        let largest = sizes().fold(0.0, f64::max);
        let above = sizes().filter(|x| *x > most).count() as u32;
        if above > 0 {
            self.command.iter_mut().for_each(|x| *x *= most / largest);
        }
        above
    }

    /// Tells all actuators alike how they are told.
    fn tell_all(&mut self, how: Told) {
        for (told, role) in self.told.iter_mut().zip(&self.roles) {
            *told = if *role == Role::Actuator { how } else { Told::Limp };
        }
    }

    /// Roots are passive: no torque is given.
    fn free_roots(&self, recursion: &mut Recursion) {
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Root) {
            recursion.give(i, Given::Torque, &self.base[recursion.rates(i)]);
        }
    }

    fn most_torque(&self, asked: Asked<'_>, rate: usize) -> f64 {
        self.joints[self.node_of_rate[rate]]
            .map_or(f64::INFINITY, |id| asked.control().joint(id.index()).most_torque(asked.model.joint(id)))
    }

    /// The torques of a node's joint beside those of its own springs, dampers and motor, `base − E q̈`.
    fn own_torques(&self, recursion: &Recursion, node: usize) -> [f64; 6] {
        let rates = recursion.rates(node);
        // where torques are given, E acts beside them
        let mut own = match recursion.given(node) {
            Given::Acceleration => recursion.implicit_torques(node, &recursion.accelerations()[rates.clone()]),
            Given::Torque => [0.0; 6],
        };
        for (own, rate) in own.iter_mut().zip(rates) {
            *own += recursion.torques()[rate] - self.base[rate];
        }
        own
    }

    /// Where an acceleration would take more torque than the actuator has, it gets that torque and moves as it then does; where that torque would bring it past the
    /// acceleration, because others changed, it gets the acceleration again. With M the mass matrix this is the one solution of `M q̈ = τ + …`, `|τ| ≤ most`, where a torque at
    /// its bound points from q̈ to what is asked (Newton on the active set). Torques that were found for their own sake, in least torque, stay as they are unless they bring a
    /// joint beyond the accelerations it may have: then it is told the nearest of those. If it does not end, those in doubt are limp.
    fn hold_bounds(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let mut solves = 0;
        // past the rounds each change makes one limp for good: it ends
        for round in 0.. {
            let mut changed = 0;
            for i in 0..self.roles.len() {
                let is_wrong = self.is_beyond_bounds(asked, dynamics.recursion, i);
                if !is_wrong {
                    continue;
                }
                changed += 1;
                let range = asked.coordinates.rate_range(i);
                let recursion = &mut *dynamics.recursion;
                self.told[i] = match self.told[i] {
                    _ if round >= ROUNDS => {
                        recursion.give(i, Given::Torque, &self.base[range]);
                        Told::Limp
                    }
                    Told::Acceleration => {
                        let mut held = self.own_torques(recursion, i);
                        for (held, rate) in held.iter_mut().zip(range.clone()) {
                            let most = self.most_torque(asked, rate);
                            *held = self.base[rate] + held.clamp(-most, most);
                        }
                        recursion.give(i, Given::Torque, &held[..range.len()]);
                        Told::Held
                    }
                    Told::Torque => {
                        for rate in range.clone() {
                            let (low, high) = allowed(asked, rate);
                            self.command[rate] = recursion.accelerations()[rate].clamp(low, high);
                        }
                        recursion.give(i, Given::Acceleration, &self.command[range]);
                        Told::Acceleration
                    }
                    Told::Held | Told::Limp => {
                        recursion.give(i, Given::Acceleration, &self.command[range]);
                        Told::Acceleration
                    }
                };
            }
            report.limited += changed;
            if changed == 0 {
                break;
            }
            solves += dynamics.factor_and_solve()?;
        }
        Ok(solves)
    }

    /// Whether a node is told what its bounds do not allow, or is at a bound that it need not be at.
    fn is_beyond_bounds(&self, asked: Asked<'_>, recursion: &Recursion, node: usize) -> bool {
        let range = asked.coordinates.rate_range(node);
        let found = &recursion.accelerations()[range.clone()];
        match self.told[node] {
            Told::Acceleration => self
                .own_torques(recursion, node)
                .iter()
                .zip(range)
                .any(|(own, rate)| own.abs() > self.most_torque(asked, rate) * (1.0 + BARELY)),
            Told::Torque => found.iter().zip(range).any(|(found, rate)| {
                let (low, high) = allowed(asked, rate);
                let slack = BARELY * asked.control().gains.most_command;
                *found < low - slack || *found > high + slack
            }),
            Told::Held => {
                let beyond = found.iter().zip(&self.command[range]).map(|(found, asked)| found - asked);
                self.own_torques(recursion, node).iter().zip(beyond).map(|(own, beyond)| own * beyond).sum::<f64>()
                    > 0.0
            }
            Told::Limp => false,
        }
    }

    // What is told

    /// The force from outside that would fill the rows of bodies: `Λ f = lack`, Λ being how they respond to forces along them.
    fn measure_pull(&mut self, state: &State, report: &mut ControlReport) {
        self.pull.begin(self.lack.len(), self.lack.len());
        self.pull.add_level(&self.mobility, &self.lack, Robustness::default());
        let root = self.roles.iter().position(|role| *role == Role::Root).unwrap_or(0);
        let centre = state.bodies[self.bodies[root].index()].position;
        let mut sum = Wrench::ZERO;
        let rows = self.rows.iter().filter(|row| row.is_of_body());
        for (row, size) in rows.zip(self.pull.solution()) {
            let Place::Body { body, along, .. } = row.place else { continue };
            let (force, shift) = (along * *size, state.bodies[body.index()].position - centre);
            sum += Wrench::new(force.force, force.torque + shift.cross(force.force));
        }
        (report.pull_force, report.pull_torque) = (sum.force.length(), sum.torque.length());
    }

    /// What became of rows, roots and actuators in the solution.
    fn tell(&self, asked: Asked<'_>, recursion: &Recursion, report: &mut ControlReport) {
        let control = asked.control();
        for row in &self.rows {
            let reached = match control.style {
                Style::LeastVelocity => row.next_velocity(recursion, asked),
                _ => row.acceleration(recursion),
            };
            let level = row.level as usize;
            report.asked[level] += (row.scale() * row.wanted).powi(2);
            report.residuals[level] += (row.scale() * (row.wanted - reached)).powi(2);
        }
        for sum in report.asked.iter_mut().chain(&mut report.residuals) {
            *sum = sum.sqrt();
        }
        for (i, role) in self.roles.iter().enumerate() {
            match role {
                Role::Root => {
                    let force = recursion.joint_force(self.bodies[i]);
                    let rates = asked.coordinates.rate_range(i);
                    let implicit = recursion.implicit_torques(i, &recursion.accelerations()[rates.clone()]);
                    for ((k, rate), implicit) in rates.enumerate().zip(implicit) {
                        let own = self.base[rate] - implicit;
                        let wrench = force.power(recursion.direction(i, k)) - own;
                        report.root_wrench = report.root_wrench.max(wrench.abs());
                    }
                }
                Role::Actuator => {
                    report.actuators += 1;
                    let (off, own) = (self.off_pose(i, asked), self.own_torques(recursion, i));
                    for (k, rate) in asked.coordinates.rate_range(i).enumerate() {
                        let acceleration = recursion.accelerations()[rate];
                        let torque = match control.mode {
                            Mode::Landing => self.landing_spring(asked, rate, off[k]).torque(acceleration),
                            _ => own[k],
                        };
                        report.max_torque = report.max_torque.max(torque.abs());
                        report.torque += torque * torque;
                        report.acceleration += acceleration * acceleration;
                    }
                }
                Role::Other => {}
            }
        }
        (report.torque, report.acceleration) = (report.torque.sqrt(), report.acceleration.sqrt());
    }
}

impl Row {
    /// Whether it asks something of a body.
    fn is_of_body(&self) -> bool {
        self.weight > 0.0 && matches!(self.place, Place::Body { .. })
    }

    fn scale(&self) -> f64 {
        self.weight * self.unit
    }

    /// The row's acceleration in the last solution.
    fn acceleration(&self, recursion: &Recursion) -> f64 {
        match self.place {
            Place::Body { body, along, drift } => along.power(recursion.acceleration(body)) + drift,
            Place::Joint { node, along } => dot(&along, &recursion.accelerations()[recursion.rates(node)]),
        }
    }

    /// The same without any acceleration of joints: what comes of velocities alone.
    fn coasting(&self, recursion: &Recursion) -> f64 {
        match self.place {
            Place::Body { body, along, drift } => along.power(recursion.coasting(body)) + drift,
            Place::Joint { .. } => 0.0,
        }
    }

    /// The row's velocity at the start of the part.
    fn velocity(&self, recursion: &Recursion, rates: &[f64]) -> f64 {
        match self.place {
            Place::Body { body, along, .. } => along.power(recursion.velocity(body)),
            Place::Joint { node, along } => dot(&along, &rates[recursion.rates(node)]),
        }
    }

    /// The row's velocity at the end of the part, to first order.
    fn next_velocity(&self, recursion: &Recursion, asked: Asked<'_>) -> f64 {
        let gained = asked.h * (self.acceleration(recursion) - self.coasting(recursion));
        self.velocity(recursion, &asked.coordinates.rates) + gained
    }

    /// How the row's acceleration changes with each joint's command, by rate.
    fn coefficients<'a>(&self, recursion: &'a mut Recursion) -> &'a [f64] {
        match self.place {
            Place::Body { body, along, .. } => recursion.by_acceleration(body, along),
            Place::Joint { node, along } => recursion.by_joint(node, &along),
        }
    }

    /// How a row of a body changed in the last response.
    fn response(&self, recursion: &Recursion) -> Option<f64> {
        match self.place {
            Place::Body { body, along, .. } if self.is_of_body() => Some(along.power(recursion.response(body))),
            _ => None,
        }
    }
}

/// A torque `force − implicit q̈`.
struct LandingSpring {
    force: f64,
    implicit: f64,
}

impl LandingSpring {
    fn torque(&self, acceleration: f64) -> f64 {
        self.force - self.implicit * acceleration
    }
}

/// What is asked of a motion that is off its aim.
struct Seeker<'a> {
    control: &'a Control,
    h: f64,
}

impl Seeker<'_> {
    /// To go by `off` until the end of the part, moving with `now`, there to have the velocity `then`. Angles count as lengths of `unit`.
    fn reach(&self, off: DVec3, now: DVec3, then: DVec3, unit: f64) -> DVec3 {
        let gains = &self.control.gains;
        if self.control.style == Style::LeastVelocity {
            return (then + off / gains.reach_time).clamp_length_max(gains.most_velocity / unit);
        }
        let (kp, kd) = (gains.goal, 2.0 * gains.goal.sqrt());
        let wanted = (off - now * self.h) * kp + (then - now) * kd;
        (wanted / (1.0 + self.h * kd + self.h * self.h * kp)).clamp_length_max(gains.most_acceleration / unit)
    }

    /// To have a velocity.
    fn speed(&self, now: DVec3, wanted: DVec3, unit: f64) -> DVec3 {
        let gains = &self.control.gains;
        if self.control.style == Style::LeastVelocity {
            return wanted.clamp_length_max(gains.most_velocity / unit);
        }
        let kd = 2.0 * gains.goal.sqrt();
        ((wanted - now) * kd / (1.0 + self.h * kd)).clamp_length_max(gains.most_acceleration / unit)
    }

    /// To have an acceleration.
    fn accelerate(&self, now: DVec3, wanted: DVec3) -> DVec3 {
        if self.control.style == Style::LeastVelocity { now + wanted * self.h } else { wanted }
    }
}

/// The accelerations with which a rate is no faster at the end of the part than it may be. What is too fast already is braked, by no more than commands may.
fn allowed(asked: Asked<'_>, rate: usize) -> (f64, f64) {
    let Gains { most_rate, most_command, .. } = asked.control().gains;
    let to = |then: f64| (then - asked.coordinates.rates[rate]) / asked.h;
    (to(-most_rate).min(most_command), to(most_rate).max(-most_command))
}

/// What a critically damped spring does to a unit mass that is to go by `off`, moving with `now`, taken at the end of the part.
fn spring(stiffness: f64, h: f64, off: f64, now: f64) -> f64 {
    let damping = 2.0 * stiffness.sqrt();
    (stiffness * off - damping * now) / (1.0 + h * damping + h * h * stiffness)
}

/// `W x`, W being how torques are measured: the torques of these accelerations of the actuators, implicit springs included. Both are scaled as the columns are.
fn measure(columns: &[usize], ease: &[f64], nodes: &[usize], recursion: &mut Recursion, x: &mut [f64]) {
    x.iter_mut().zip(ease).for_each(|(x, ease)| *x *= ease);
    recursion.by_given(columns.iter().copied().zip(x.iter().copied()));
    let mut first = 0;
    while first < columns.len() {
        let node = nodes[columns[first]];
        let range = first..first + recursion.rates(node).len();
        let implicit = recursion.implicit_torques(node, &x[range.clone()]);
        for (column, implicit) in range.clone().zip(implicit) {
            x[column] = (recursion.response.found[columns[column]] + implicit) * ease[column];
        }
        first = range.end;
    }
}

/// Tells all actuators, by rate.
fn give(roles: &[Role], given: Given, values: &[f64], recursion: &mut Recursion) {
    for (i, _) in roles.iter().enumerate().filter(|(_, role)| **role == Role::Actuator) {
        recursion.give(i, given, &values[recursion.rates(i)]);
    }
}

fn normalise(quaternion: &mut [f64]) {
    DQuat::from_slice(quaternion).normalize().write_to_slice(quaternion);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
