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

mod bounds;
mod poses;
mod pull;
mod rows;

use super::loads::{self, Loads};
use super::recursion::{Given, Recursion, Singular};
use super::spatial::Inertia;
use crate::control::inverse::{Hierarchy, Robustness};
use crate::control::spline::Spline;
use crate::control::{Control, ControlReport, Mode, Style};
use crate::input::{Drive, Input};
use crate::maths::Wrench;
use crate::model::coordinates::Link;
use crate::model::{BodyId, Coordinates, JointId, JointMask, Model, State};
use bounds::{ROUNDS, Told, allowed, measure};
use glam::{DMat3, DVec3};
use rows::{Place, Row};

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
    /// Rows, d and what is commanded beside, as a level found them.
    matrix_before: Vec<f64>,
    duals_before: Vec<f64>,
    rhs_before: Vec<f64>,
    own_before: Vec<f64>,
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
    /// By rate: torques of those that are held, and commands and torques with fewer levels of goals.
    held: Vec<f64>,
    below: Vec<f64>,
    /// How many levels the commands are of; those below are of one less.
    levels: u32,
    torques_below: Vec<f64>,
    /// By node.
    told: Vec<Told>,
    /// By node on the way from a goal to the root: the stiffness that its pull has from there on, and the number of joints there. By rate: that which torques take into account.
    passed_on: Vec<f64>,
    passed_by: Vec<f64>,
    stiffness: Vec<f64>,
    /// By column: the torques that come of it.
    back: Vec<f64>,
    spline: Spline,
    /// Positions on the motion through the keyframes: a part before, now, a part later.
    path: [Vec<f64>; 3],
    most_rows: usize,
    /// What is asked for as a motion of joints \[rad/s²; in least velocity rad/s\].
    turning: f64,
    /// Positions at the start of the model; by rate: the inertia that a joint moves there \[kg·m², kg\].
    start: Vec<f64>,
    inertias: Vec<f64>,
    /// Mean distance of bodies from their tree parents \[m\]: how angles count beside lengths.
    length: f64,
}

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
            matrix_before: Vec::new(),
            duals_before: Vec::new(),
            rhs_before: Vec::new(),
            own_before: vec![0.0; rates],
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
            held: vec![0.0; rates],
            below: vec![0.0; rates],
            levels: 0,
            torques_below: vec![0.0; rates],
            told: vec![Told::Limp; nodes.len()],
            passed_on: vec![0.0; nodes.len()],
            passed_by: vec![0.0; nodes.len()],
            stiffness: vec![0.0; rates],
            back: Vec::with_capacity(rates),
            spline: Spline::default(),
            path: std::array::from_fn(|_| coordinates.positions.clone()),
            most_rows: 0,
            turning: 0.0,
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

    /// Commands that reach the goals in the style asked for, and the solution with them.
    fn seek(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        self.tell_all(match asked.control().style {
            Style::LeastTorque => Told::Torque,
            Style::LeastAcceleration | Style::LeastVelocity => Told::Acceleration,
        });
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

    /// What there is where nothing is asked: what moves is braked.
    fn set_brakes(&mut self, asked: Asked<'_>) {
        let braking = asked.control().gains.braking;
        for rate in 0..self.brake.len() {
            let brake = -braking * asked.coordinates.rates[rate] / (1.0 + asked.h * braking);
            let (low, high) = allowed(asked, rate);
            (self.low[rate], self.high[rate], self.brake[rate]) = (low, high, brake.clamp(low, high));
        }
    }

    fn least_acceleration(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let (mut solves, mut rounds) = (0, ROUNDS);
        loop {
            // A₀
            self.set_brakes(asked);
            self.give_told(&self.brake, dynamics.recursion);
            solves += dynamics.factor_and_solve()?;
            self.choose_columns(asked.control());
            solves += self.make_rows(asked, dynamics.recursion, report);
            self.make_alike(asked.control(), 0);
            self.own.copy_from_slice(&self.brake);
            report.limited += self.solve_within_bounds(asked, 0, None);
            self.give_told(&self.command, dynamics.recursion);
            solves += dynamics.solve();
            let (is_done, more) = self.keep_torques(asked, dynamics, &mut rounds, report)?;
            solves += more;
            if is_done {
                return Ok(solves);
            }
        }
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
        give(&self.roles, Given::Torque, &self.base, dynamics.recursion);
        let mut solves = self.brake_softly(asked, dynamics)?;
        give(&self.roles, Given::Torque, &self.command, dynamics.recursion);
        solves += dynamics.factor_and_solve()?;
        solves += self.make_rows(asked, dynamics.recursion, report);
        self.own.copy_from_slice(&self.brake);
        if let Robustness::Scaled(_) = asked.control().robustness {
            give(&self.roles, Given::Acceleration, &self.nothing, dynamics.recursion);
            dynamics.recursion.factor()?;
            solves += self.add_duals(dynamics.recursion);
            self.make_alike(asked.control(), 0);
            report.limited += self.solve_within_torques(self.robustness(asked), Some(dynamics.recursion));
            solves += self.pull_till_the_end(asked, dynamics)?;
        } else {
            self.make_alike(asked.control(), 0);
            report.limited += self.solve_within_torques(self.robustness(asked), None); // as published
        }
        self.give_torques(dynamics.recursion);
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

    /// Tells the actuators the torques commanded, beside what acts without command.
    fn give_torques(&mut self, recursion: &mut Recursion) {
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Actuator) {
            let range = recursion.rates(i);
            let mut sum = [0.0; 6];
            for (sum, rate) in sum.iter_mut().zip(range.clone()) {
                *sum = self.base[rate] + self.command[rate];
            }
            recursion.give(i, Given::Torque, &sum[..range.len()]);
        }
    }

    fn least_velocity(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let (mut solves, mut rounds) = (0, ROUNDS);
        let is_bounded = (0..self.node_of_rate.len()).any(|rate| self.most_torque(asked, rate).is_finite());
        loop {
            solves += self.solve_velocities(asked, dynamics, report)?;
            if !is_bounded {
                break;
            }
            self.give_told(&self.command, dynamics.recursion);
            self.free_roots(dynamics.recursion);
            solves += dynamics.factor_and_solve()?;
            let (is_done, more) = self.keep_torques(asked, dynamics, &mut rounds, report)?;
            solves += more;
            if is_done {
                break;
            }
        }
        // The root is passive again. What a pull from outside would have done is told by what the joints do when they are told nothing.
        give(&self.roles, Given::Acceleration, &self.nothing, dynamics.recursion);
        self.free_roots(dynamics.recursion);
        solves += dynamics.factor_and_solve()?;
        self.clear_rows();
        solves += self.add_rows(dynamics.recursion);
        for (row, lack) in self.rows.iter().filter(|row| row.is_of_body()).zip(&mut self.lack) {
            *lack = (row.wanted - row.next_velocity(dynamics.recursion, asked)) / asked.h;
        }
        self.measure_pull(asked.state, report);
        self.give_told(&self.command, dynamics.recursion);
        solves += if is_bounded { dynamics.factor_and_solve()? } else { dynamics.solve() };
        Ok(solves)
    }

    /// The least velocities that obey the laws and then the goals, as commands.
    fn solve_velocities(
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
            if self.told[self.node_of_rate[rate]] == Told::Acceleration {
                let (low, high) = allowed(asked, rate);
                (self.low[rate], self.high[rate]) = (rates[rate] + h * low, rates[rate] + h * high);
            }
        }
        self.own.fill(0.0);
        report.limited += self.solve_within_bounds(asked, laws, Some(rates));
        self.command.iter_mut().zip(rates).for_each(|(x, rate)| *x = (*x - rate) / h);
        Ok(solves)
    }

    /// The rows of passive roots, `(∂τ_r/∂q̈ + E) x/h = τ_own + E q̇/h − τ_r1`, τ_own − E q̈ being what acts there by itself: a law of physics. Actuators that are held have such rows too, with what
    /// holds them. Returns how many.
    fn add_laws(&mut self, asked: Asked<'_>, recursion: &mut Recursion) -> usize {
        for i in 0..self.roles.len() {
            let torques = match (self.roles[i], self.told[i]) {
                (Role::Root, _) => &self.base,
                (Role::Actuator, Told::Torque) => &self.held,
                _ => continue,
            };
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
                self.rhs.push(torques[rate] + own[k] / asked.h - recursion.torques()[rate]);
            }
        }
        self.rhs.len()
    }

    /// Roots are passive: no torque is given.
    fn free_roots(&self, recursion: &mut Recursion) {
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Root) {
            recursion.give(i, Given::Torque, &self.base[recursion.rates(i)]);
        }
    }

    /// The force from outside that would fill the rows of bodies: `Λ f = lack`, Λ being how they respond to forces along them.
    fn measure_pull(&mut self, state: &State, report: &mut ControlReport) {
        self.pull.begin(self.lack.len(), self.lack.len(), 0);
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
                    let torques = self.torques(control.mode, recursion, i);
                    for (torque, rate) in torques.into_iter().zip(asked.coordinates.rate_range(i)) {
                        let acceleration = recursion.accelerations()[rate];
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

impl Direct {
    /// The torques of an actuator in the solution, by direction of its joint.
    pub(super) fn torques(&self, mode: Mode, recursion: &Recursion, node: usize) -> [f64; 6] {
        let mut torques = self.own_torques(recursion, node);
        if mode == Mode::Landing {
            for (torque, rate) in torques.iter_mut().zip(recursion.rates(node)) {
                *torque = self.own[rate] - self.brake[rate] * recursion.accelerations()[rate];
            }
        }
        torques
    }

    /// Tells the actuators their accelerations, by rate, but those that are held their torques.
    fn give_told(&self, accelerations: &[f64], recursion: &mut Recursion) {
        for (i, told) in self.told.iter().enumerate() {
            let range = recursion.rates(i);
            match told {
                Told::Acceleration => recursion.give(i, Given::Acceleration, &accelerations[range]),
                Told::Torque => recursion.give(i, Given::Torque, &self.held[range]),
                Told::Held | Told::Limp => {}
            }
        }
    }
}

/// Tells all actuators, by rate.
fn give(roles: &[Role], given: Given, values: &[f64], recursion: &mut Recursion) {
    for (i, _) in roles.iter().enumerate().filter(|(_, role)| **role == Role::Actuator) {
        recursion.give(i, given, &values[recursion.rates(i)]);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
