//! Solver `reduced`: recursive hybrid dynamics in joint coordinates [Kim 2008]. No joint can open.
//!
//! `recursion` (three passes: torques or accelerations given, joint by joint) with `particles` (point masses) and `derivative` (how accelerations follow
//! from what is given); `loads` (springs, limits and pulls, implicit in the recursion); `border` (the shared state becomes coordinates and back).

mod balance;
mod border;
pub(crate) mod command;
mod derivative;
mod direct;
mod loads;
mod particles;
mod recursion;
mod soft;
mod spatial;

pub use particles::Particle;
pub use recursion::{Given, Known, Recursion, Singular, forward, hybrid, inverse};

use crate::contact::penalty::{self, Touch};
use crate::contact::{Contact, Penalty};
use crate::control::{ControlReport, Mode};
use crate::flesh::Diagonalize;
use crate::input::{Drive, FleshCoupling, Input};
use crate::loads::{Ledger, shifted};
use crate::measure;
use crate::model::{BodyId, Coordinates, JointId, Model, NodeState, State};
use crate::step::{Failure, Report, StepError};
use balance::{Books, Verdict};
use direct::{Asked, Direct, Dynamics};
use glam::DVec3;
use loads::{Loads, Rule};
use soft::Soft;

/// Settings of solver `reduced`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reduced {
    /// How springs, dampers and pulls enter.
    pub springs: Springs,
    /// How the coordinates are moved.
    pub integration: Integration,
    /// Whether energy and momentum are balanced after each part. Not with flesh.
    pub balance: Balance,
    /// How bodies push where they touch: contacts are springs [Kim 2008, §4.1].
    pub contacts: Penalty,
    /// Which elements of flesh are diagonalised.
    pub diagonalize: Diagonalize,
}

/// How springs, dampers and pulls enter the recursion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Springs {
    /// Implicitly, inside the recursion: stable at any stiffness.
    #[default]
    Implicit,
    /// As torques of the present pose.
    Explicit,
}

/// How the coordinates are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integration {
    /// Velocities first, then positions with the new velocities: first order, damps stiff springs.
    #[default]
    Euler,
    /// Half the way with the old velocities, new velocities there, half the way with the new: second order, at half as much time again. Stiff
    /// springs keep their energy; pulls, and all springs while a limit acts, are taken at the end, to first order.
    Midpoint,
}

/// Whether energy and momentum are balanced after each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Inertial forces do no work, inner forces change no momentum: velocities are scaled until it is so, and loose chains stay bounded.
    #[default]
    On,
    /// Velocities as the recursion has them, as published.
    Off,
}

/// Scratch of solver `reduced`.
pub(crate) struct ReducedWork {
    coordinates: Coordinates,
    recursion: Recursion,
    loads: Loads,
    /// Contacts as springs.
    touches: Vec<Touch>,
    books: Books,
    soft: Option<Soft>,
    /// Made when a control is first carried out.
    direct: Option<Box<Direct>>,
    /// Rates at the start of the part, and in its middle.
    start: Vec<f64>,
    middle: Vec<f64>,
    /// States at the starts of parts that may have to be halved.
    saved: Vec<State>,
    /// The state that commands are reckoned from, its joints closed.
    entered: State,
}

impl ReducedWork {
    pub(crate) fn new(model: &Model) -> ReducedWork {
        let coordinates = Coordinates::new(model);
        ReducedWork {
            recursion: Recursion::new(model),
            loads: Loads::new(model),
            touches: Vec::new(),
            books: Books::new(model),
            soft: model.flesh().map(|flesh| Soft::new(model, flesh)),
            direct: None,
            start: coordinates.rates.clone(),
            middle: coordinates.rates.clone(),
            saved: vec![model.start(); HALVINGS],
            entered: model.start(),
            coordinates,
        }
    }
}

/// What solver `reduced` does not take.
pub(crate) fn takes(model: &Model, input: &Input, settings: Reduced) -> Result<(), StepError> {
    crate::solver::check_penalty("reduced", settings.contacts)?;
    if let Some(&id) = model.topology().loops.first() {
        return Err(StepError::loops("reduced", model, id));
    }
    if input.control.mode == Mode::Off {
        crate::solver::no_hard_limits("reduced", model)?; // the control keeps them
    }
    crate::solver::no_grips("reduced", model, input)
}

/// Further solutions of a midpoint step with the velocities of its middle. The error of those velocities is of order h before the first, h² after it,
/// h³ after the second: one makes the step second order, two keep its error the same forwards and backwards in time.
const MIDDLE_VELOCITIES: u32 = 2;
/// Where the last of them still changes the rates by more than this share, they do not converge: the part is too long.
const UNSETTLED: f64 = 0.05;
/// How often a part that is too long for its motion may be halved. At the bound it is done by Euler's rule, whatever the books say.
const HALVINGS: usize = 4;

/// One part `h` of a step, `after` seconds before the step's end. On failure the state is that of some earlier moment.
pub(crate) fn substep(
    model: &Model,
    input: &Input,
    settings: Reduced,
    part: (f64, f64),
    contacts: &[Contact],
    state: &mut State,
    (work, ledger): (&mut ReducedWork, &mut Ledger),
) -> Result<Report, Failure> {
    penalty::gather(model, state, contacts, settings.contacts, part, &mut work.touches);
    if let (Some(soft), FleshCoupling::Together) = (&work.soft, input.flesh) {
        return with_flesh(model, input, settings, part, soft.longest, state, (work, ledger));
    }
    match settings.balance {
        // the books would count what flesh gives as gained from nothing
        Balance::On if model.flesh().is_none() => {
            in_halves(model, input, settings, part, HALVINGS, state, (work, ledger))
        }
        Balance::On | Balance::Off => {
            advance(model, input, settings, part, state, (work, ledger)).map(|(report, _)| report)
        }
    }
}

/// A part of a model with flesh, in as many pieces as its strain needs, all by Euler's rule as published.
fn with_flesh(
    model: &Model,
    input: &Input,
    settings: Reduced,
    (h, after): (f64, f64),
    longest: f64,
    state: &mut State,
    (work, ledger): (&mut ReducedWork, &mut Ledger),
) -> Result<Report, Failure> {
    let settings = Reduced { integration: Integration::Euler, balance: Balance::Off, ..settings };
    let pieces = (h / longest).ceil().clamp(1.0, MOST_PIECES) as u32;
    let piece = h / f64::from(pieces);
    let mut report = Report::default();
    for k in 1..=pieces {
        let rest = after + h - f64::from(k) * piece;
        report = report.then(advance(model, input, settings, (piece, rest), state, (work, ledger))?.0);
    }
    let is_lost = |node: &NodeState| !(node.position.is_finite() && node.velocity.is_finite());
    match state.nodes.iter().position(is_lost) {
        None => Ok(report),
        Some(i) => {
            let bone = model.flesh().and_then(|flesh| flesh.bones.get(i).copied().flatten());
            Err(Failure::NotFinite(bone.unwrap_or(BodyId(0))))
        }
    }
}

/// Flesh that needs shorter pieces than this share of a part is too stiff for explicit steps: they may grow without bound, which is told as an error.
const MOST_PIECES: f64 = 4096.0;

/// A part, or its two halves when it was too long for the motion.
fn in_halves(
    model: &Model,
    input: &Input,
    settings: Reduced,
    (h, after): (f64, f64),
    halvings: usize,
    state: &mut State,
    (work, ledger): (&mut ReducedWork, &mut Ledger),
) -> Result<Report, Failure> {
    if halvings == 0 {
        let robust = Reduced { integration: Integration::Euler, ..settings };
        let (report, verdict) = advance(model, input, robust, (h, after), state, (work, ledger))?;
        return Ok(Report { resorts: (verdict == Verdict::Rough) as u32, ..report });
    }
    work.saved[halvings - 1].clone_from(state);
    let done = advance(model, input, settings, (h, after), state, (work, ledger));
    if let Ok((report, Verdict::Sound)) = done {
        return Ok(report);
    }
    state.clone_from(&work.saved[halvings - 1]);
    let mut report = Report { fallbacks: 1, ..Report::default() };
    for after in [after + 0.5 * h, after] {
        report = report.then(in_halves(model, input, settings, (0.5 * h, after), halvings - 1, state, (work, ledger))?);
    }
    Ok(report)
}

/// One part by three passes of the recursion, and whether it was short enough for its motion.
fn advance(
    model: &Model,
    input: &Input,
    settings: Reduced,
    (h, after): (f64, f64),
    state: &mut State,
    (work, ledger): (&mut ReducedWork, &mut Ledger),
) -> Result<(Report, Verdict), Failure> {
    ledger.begin(model, state, h, ledger.is_open);
    let ReducedWork { coordinates, recursion, loads, touches, books, start, middle, soft, direct, .. } = work;
    let mut direct =
        (input.control.mode != Mode::Off).then(|| direct.get_or_insert_with(|| Box::new(Direct::new(model))));
    let mut settings = settings;
    if let Some(direct) = &mut direct {
        direct.assign(model, input);
        // Commands are reckoned from the start of the part.
        settings.integration = Integration::Euler;
    }
    let rests = |node: usize| direct.as_ref().is_some_and(|direct| direct.acts(node));
    // Flesh that is coupled loosely is no matter of the bodies.
    let mut soft = soft.as_mut().filter(|_| input.flesh == FleshCoupling::Together);
    let not_finite = |Singular(body)| Failure::NotFinite(body);
    let mut verdict = Verdict::Sound;
    let entry = border::enter(model, state, coordinates, recursion).map_err(not_finite)?;
    start.copy_from_slice(&coordinates.rates);
    let midpoint = settings.integration == Integration::Midpoint;
    books.open(model, state, if midpoint { input.gravity } else { DVec3::ZERO });
    if midpoint {
        coordinates.advance(model, 0.5 * h);
        coordinates.write(model, state);
        recursion.place(coordinates);
    }

    // What acts: torques and forces, or motions as prescribed
    let (rule, at_limits) = match (settings.springs, settings.integration) {
        (Springs::Explicit, _) => (Rule::EXPLICIT, None),
        (Springs::Implicit, Integration::Euler) => (Rule::backward(h), None),
        (Springs::Implicit, Integration::Midpoint) => (Rule::midpoint(h), Some(Rule::end_of_midpoint(h))),
    };
    // What is left of the part when forces are taken: poses are those of its middle, or of its start
    let left = (if midpoint { 0.5 * h } else { h }, after);
    let mut limits = loads.collect(model, input, state, coordinates, (rule, rests), recursion);
    loads.touch(model, input, state, (touches, left), at_limits.unwrap_or(rule), recursion);
    if let (Some(rule), 1..) = (at_limits, limits) {
        recursion.place(coordinates);
        limits = loads.collect(model, input, state, coordinates, (rule, rests), recursion);
        loads.touch(model, input, state, (touches, left), rule, recursion);
    }
    if let Some(soft) = &mut soft {
        soft.hang(model, input, settings.diagonalize, (h, after), state, recursion);
    }
    prescribe(input, h, coordinates, recursion);

    // q̈, with the commands of the actuators
    let (mut solves, told) = match direct {
        Some(direct) => {
            let asked = Asked { model, input, state, coordinates, h, after };
            direct.carry_out(asked, Dynamics { recursion, loads }).map_err(not_finite)?
        }
        None => {
            recursion.factor().map_err(not_finite)?;
            (loads.solve(recursion), ControlReport::default())
        }
    };
    if midpoint {
        for _ in 0..MIDDLE_VELOCITIES {
            advance_rates(start, 0.5 * h, recursion, middle);
            recursion.set_rates(middle);
            solves += loads.solve(recursion);
        }
    }

    if ledger.is_open {
        note(model, h, recursion, ledger);
    }

    // q̇ += h q̈, then q by the joint map
    advance_rates(start, h, recursion, &mut coordinates.rates);
    if midpoint && !has_settled(start, middle, &coordinates.rates) {
        verdict = Verdict::Rough;
    }
    if let (Some(soft), Some(flesh)) = (&mut soft, model.flesh()) {
        soft.accelerate(flesh, h, input.gravity, recursion, state);
    }
    if settings.balance == Balance::On {
        verdict = verdict.and(books.enter(recursion, h, start, &mut coordinates.rates));
    }
    coordinates.advance(model, if midpoint { 0.5 * h } else { h });
    coordinates.write(model, state);
    if let (Some(soft), Some(flesh)) = (&mut soft, model.flesh()) {
        soft.write(flesh, h, state);
    }
    if settings.balance == Balance::On {
        verdict = verdict.and(books.close(model, state, recursion));
    }

    if ledger.is_open {
        ledger.touch_softly(model, touches, state, left.0 + after);
    }

    let gap = measure::joint_gap(model, state);
    let mut report = Report {
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        substeps: 1,
        factorisations: 1 + entry.projections,
        solves: solves + entry.projections,
        projections: entry.projections,
        closed: entry.closed,
        limits_active: limits,
        control: told,
        ..Report::default()
    };
    if let Some(soft) = soft {
        report.note_flesh(soft.settled());
    }
    Ok((report, verdict))
}

/// Notes what joints carry over a part `h`, by the recursion's own solution.
fn note(model: &Model, h: f64, recursion: &Recursion, ledger: &mut Ledger) {
    let nodes = &model.topology().nodes;
    let totals = ledger.totals();
    for node in nodes {
        let Some(id) = node.joint else { continue };
        let on_node = recursion.joint_force(node.body) * h;
        totals[id.index()] = match node.parent.checked_sub(1) {
            // The tree runs through this joint from its child.
            Some(parent) if model.joint(id).child != node.body => {
                let arm = recursion.position(node.body) - recursion.position(nodes[parent].body);
                -shifted(on_node, arm)
            }
            _ => on_node,
        };
    }
}

/// Whether the middle of the rates at both ends is the middle that they were found with.
fn has_settled(start: &[f64], middle: &[f64], end: &[f64]) -> bool {
    let (mut change, mut size) = (0.0, 0.0);
    for ((start, middle), end) in start.iter().zip(middle).zip(end) {
        change += (0.5 * (start + end) - middle).powi(2);
        size += middle * middle;
    }
    change <= UNSETTLED * UNSETTLED * size
}

/// `q̇ + h q̈` with the accelerations that the recursion found.
fn advance_rates(start: &[f64], h: f64, recursion: &Recursion, rates: &mut [f64]) {
    for (rate, (start, a)) in rates.iter_mut().zip(start.iter().zip(recursion.accelerations())) {
        *rate = start + h * a;
    }
}

/// Accelerations of this instant under every force of the model and the input, prescribed accelerations included; what a step of length zero would find.
/// `coordinates` become those of `state`, whose joints must be closed.
pub fn accelerate(
    model: &Model,
    input: &Input,
    state: &State,
    coordinates: &mut Coordinates,
    recursion: &mut Recursion,
) -> Result<(), Singular> {
    coordinates.read(model, state);
    recursion.place(coordinates);
    // Nothing implicit: no spring between bodies has to be solved with the tree.
    Loads::empty().collect(model, input, state, coordinates, (Rule::EXPLICIT, |_| false), recursion);
    prescribe(input, f64::INFINITY, coordinates, recursion);
    recursion.solve()
}

/// Accelerations of the joints whose motion is prescribed; a velocity is reached at the end of the part.
fn prescribe(input: &Input, h: f64, coordinates: &Coordinates, recursion: &mut Recursion) {
    for (k, joint) in input.joints.iter().enumerate() {
        let Some(node) = coordinates.node_of_joint(JointId(k as u32)) else { continue };
        let rates = &coordinates.rates[coordinates.rate_range(node)];
        let accelerations = match joint.drive {
            Drive::Forces => continue,
            Drive::Acceleration(given) => given,
            Drive::Velocity(mut given) => {
                given.iter_mut().zip(rates).for_each(|(given, rate)| *given = (*given - rate) / h);
                given
            }
        };
        recursion.give(node, Given::Acceleration, &accelerations[..rates.len()]);
    }
}
