//! Solver `impulse`: joints held by impulses [Bender 2006].
//!
//! ```text
//! start   half the impulse of every spring, damper, motor and limit                                   kicks.rs
//!         impulses of the joints, such that after the flight every joint is closed                    system.rs, by_joint.rs
//!         one-sided impulses of contacts and hard limits, such that nothing is in anything else       pushes.rs, coulomb.rs
//! flight  each body alone, under gravity and given wrenches                                           flight.rs
//! end     the other half; impulses of the joints, such that none is opening (velocity correction)
//! ```
//! The joints' impulses at the start are found by prediction: fly, see how far each joint would be open, add `S⁻¹` times that over h, fly again. When
//! this does not converge the part has failed and is done in halves. Impulses at both ends of a free flight make a symmetric rule of second order; without
//! the velocity correction the next start makes up for it.

mod by_joint;
mod correct;
mod coulomb;
mod flight;
mod kicks;
mod pushes;
mod system;

use crate::contact::Contact;
use crate::flesh::together::Law;
use crate::input::{Grip, Input};
use crate::loads::Ledger;
use crate::maths::Twist;
use crate::maths::block::{Vector, from_twist, from_wrench, to_twist};
use crate::model::{Body, JointId, Model, State};
use crate::solver::no_drives;
use crate::step::{Failure, Report, StepError};
use by_joint::ByJoint;
use correct::At;
use flight::Flyer;
use glam::DVec3;
use kicks::Kicks;
use pushes::Pushes;
use system::{System, Which};

/// Settings of solver `impulse`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impulse {
    /// How the impulses of an iteration are found.
    pub variant: Variant,
    /// Which matrix the system variant factors.
    pub elimination: Elimination,
    /// How far a joint may be open after a step \[m, rad\].
    pub tolerance: f64,
    /// How fast a joint may open after the velocity correction \[m/s, rad/s\].
    pub velocity_tolerance: f64,
    /// Whether velocities are corrected after the step.
    pub velocity_correction: VelocityCorrection,
    /// Corrections before a part is given up and halved; joint by joint, a thousand times as many rounds.
    pub iterations: u32,
}

impl Default for Impulse {
    fn default() -> Self {
        Impulse {
            variant: Variant::System,
            elimination: Elimination::Automatic,
            tolerance: 1e-6,
            velocity_tolerance: 1e-6,
            velocity_correction: VelocityCorrection::On,
            iterations: 8,
        }
    }
}

/// How the impulses of an iteration are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// All at once, by one sparse linear system.
    #[default]
    System,
    /// One joint after another.
    JointByJoint,
    /// All at once but those that close loops, and these by a system of their own, in turn [Bender 2006, §4.6]: for comparison. Slow where loops are long; may not
    /// converge where [`Variant::System`] does.
    SplitLoops,
}

/// Which matrix the system variant factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elimination {
    /// Joints while no body carries many, else bodies and joints.
    #[default]
    Automatic,
    /// `J M⁻¹ Jᵀ`, joints alone.
    Joints,
    /// Bodies and joints together, in tree order.
    Bodies,
}

/// Whether velocities are corrected after the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VelocityCorrection {
    /// Yes.
    #[default]
    On,
    /// No: the next step's corrections take care of it.
    Off,
}

/// Scratch of solver `impulse`.
pub(crate) struct ImpulseWork {
    system: System,
    /// The system with grips while the other is in use, and the other way round. Made when there are any.
    gripped: Option<Box<System>>,
    /// The system of the tree alone while another is in use, and the other way round. Made when loops are split.
    tree: Option<Box<System>>,
    /// The joints that close loops, while loops are split; else they wait in `unmarked`.
    marked: Option<Box<Marked>>,
    unmarked: Option<Box<Marked>>,
    noting: Option<Box<Noting>>,
    by_joint: ByJoint,
    kicks: Kicks,
    pushes: Pushes,
    motion: Motion,
    goals: Goals,
    /// Changes of velocity wanted of the rows of each joint and grip.
    wanted: Vec<Vector>,
    /// What bodies are owed by the implicit forces.
    owed: Vec<Vector>,
    /// The velocities that see it.
    mean: Vec<Twist>,
    /// Velocities before the first correction, and what contacts had been given.
    kicked: Vec<Twist>,
    given: Vec<[f64; 3]>,
    /// How far the bodies move in the part by the velocities that implicit forces see \[m, rad\].
    moved: Vec<Vector>,
}

/// What is kept to note the impulses of one end of a part; made when they are first wanted.
struct Noting {
    system: System,
    /// Before the corrections: velocities, and what contacts and limits had been given.
    velocities: Vec<Twist>,
    given: Vec<[f64; 3]>,
    /// On bodies, of all but joints.
    impulses: Vec<Vector>,
    /// Where flesh takes them to be going.
    moved: Vec<Vector>,
    change: Vec<Twist>,
}

impl Noting {
    fn new(model: &Model) -> Noting {
        let bodies = model.bodies().len();
        Noting {
            system: System::new(model, Which::All),
            velocities: Vec::with_capacity(bodies),
            given: Vec::new(),
            impulses: vec![[0.0; 6]; bodies],
            moved: Vec::with_capacity(bodies),
            change: Vec::with_capacity(bodies),
        }
    }
}

/// The joints that close loops, when loops are split.
struct Marked {
    system: System,
    wanted: Vec<Vector>,
}

/// The bodies on their way.
struct Motion {
    /// \[s\]
    h: f64,
    flyers: Vec<Flyer>,
    /// Velocities after the impulses at the start; then after those at the end.
    velocities: Vec<Twist>,
    /// What the mean velocity of the flight to come has more than that at its start: `½h a`; nothing once it has ended.
    drift: Vec<Twist>,
    /// Where the flight ends.
    end: State,
}

/// What is to be left at the end: nothing, but for grips whose target is reached only at the end of the step.
#[derive(Default)]
struct Goals {
    /// Errors \[m, rad\].
    errors: Vec<Vector>,
    /// Their rates \[m/s, rad/s\].
    rates: Vec<Vector>,
}

impl ImpulseWork {
    pub(crate) fn new(model: &Model) -> ImpulseWork {
        let n = model.bodies().len();
        let flyer = |body: &Body| Flyer {
            inertia: body.inertia,
            inverse_inertia: body.inertia.inverse(),
            acceleration: DVec3::ZERO,
            torque: DVec3::ZERO,
        };
        ImpulseWork {
            system: System::new(model, Which::All),
            gripped: None,
            tree: None,
            marked: None,
            unmarked: None,
            noting: None,
            by_joint: ByJoint::default(),
            kicks: Kicks::new(model),
            pushes: Pushes::new(model),
            motion: Motion {
                h: 0.0,
                flyers: model.bodies().iter().map(flyer).collect(),
                velocities: vec![Twist::ZERO; n],
                drift: vec![Twist::ZERO; n],
                end: model.start(),
            },
            goals: Goals::default(),
            wanted: Vec::new(),
            owed: vec![[0.0; 6]; n],
            mean: vec![Twist::ZERO; n],
            kicked: vec![Twist::ZERO; n],
            given: Vec::new(),
            moved: vec![[0.0; 6]; n],
        }
    }
}

/// What solver `impulse` does not take.
pub(crate) fn takes(model: &Model, input: &Input, settings: Impulse) -> Result<(), StepError> {
    let Impulse { tolerance, velocity_tolerance, iterations, .. } = settings;
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !(positive(tolerance) && positive(velocity_tolerance) && iterations > 0) {
        let what = "a tolerance or the number of iterations is not above 0".to_owned();
        return Err(StepError::Input { part: "solver impulse".to_owned(), what });
    }
    no_drives("impulse", model, input)
}

/// One part `h` of a step, `after` seconds before the step's end, with the contacts of its start.
pub(crate) fn substep(
    model: &Model,
    input: &Input,
    settings: Impulse,
    (h, after): (f64, f64),
    (contacts, law): (&[Contact], Option<&mut Law>),
    state: &mut State,
    (work, ledger): (&mut ImpulseWork, &mut Ledger),
) -> Result<Report, Failure> {
    let flesh = law.as_deref();
    let part = Part { model, input, settings, h, after, contacts, flesh, held: &input.grips, loose: &[] };
    let mut done = match (settings.variant, input.grips.is_empty()) {
        (Variant::SplitLoops, _) if !model.topology().is_tree() => part.run_split(state, work, ledger),
        (_, true) => part.run(state, work, ledger),
        (_, false) => part.run_gripped(state, work, ledger),
    };
    let is_short = h * f64::from(input.substeps.max(1)) < GIVING_WAY * input.dt;
    if done.is_err() && !input.grips.is_empty() && is_short {
        // It seems that a grip is out of reach: then all give way, and pull like springs.
        let giving = Part { held: &[], loose: &input.grips, ..part };
        ledger.forget();
        done = giving.run(state, work, ledger).map(|report| Report { fallbacks: report.fallbacks + 1, ..report });
    }
    let report = done?;
    if let Some(law) = law {
        law.moved.copy_from_slice(&work.moved);
    }
    state.clone_from(&work.motion.end);
    state.follow_turns(model);
    Ok(Part::measured(model, state, report))
}

/// How often a part may be halved. Light links between heavy ones want short parts: the corrections converge while `h √(F/(m l))`, of the force F in a link of
/// mass m and length l, is below about ½.
pub(crate) const MAX_HALVINGS: u32 = 10;

/// Grips give way in parts that are shorter than this share of the part asked for: after two halvings.
const GIVING_WAY: f64 = 0.3;

/// What is to be done.
#[derive(Clone, Copy)]
struct Part<'a> {
    model: &'a Model,
    input: &'a Input,
    settings: Impulse,
    h: f64,
    after: f64,
    contacts: &'a [Contact],
    /// What flesh does to bodies.
    flesh: Option<&'a Law>,
    /// Grips held by rows.
    held: &'a [Grip],
    /// Grips that give way.
    loose: &'a [Grip],
}

impl Part<'_> {
    /// The same with the system that has rows for grips.
    fn run_gripped(&self, start: &State, work: &mut ImpulseWork, ledger: &mut Ledger) -> Result<Report, Failure> {
        let gripped = work.gripped.get_or_insert_with(|| Box::new(System::new(self.model, Which::All)));
        std::mem::swap(&mut work.system, gripped);
        let done = self.run(start, work, ledger);
        if let Some(system) = &mut work.gripped {
            std::mem::swap(&mut work.system, system);
        }
        done
    }

    /// The same with joints that close loops apart from the others.
    fn run_split(&self, start: &State, work: &mut ImpulseWork, ledger: &mut Ledger) -> Result<Report, Failure> {
        let tree = work.tree.get_or_insert_with(|| Box::new(System::new(self.model, Which::Tree)));
        std::mem::swap(&mut work.system, tree);
        work.marked = Some(work.unmarked.take().unwrap_or_else(|| {
            let system = System::new(self.model, Which::Closing);
            Box::new(Marked { wanted: vec![[0.0; 6]; system.held.len()], system })
        }));
        let done = self.run(start, work, ledger);
        work.unmarked = work.marked.take();
        if let Some(system) = &mut work.tree {
            std::mem::swap(&mut work.system, system);
        }
        done
    }

    /// From `start` to the end of `work.motion`.
    fn run(&self, start: &State, work: &mut ImpulseWork, ledger: &mut Ledger) -> Result<Report, Failure> {
        let Part { model, input, h, .. } = *self;
        let mut report = Report { substeps: 1, ..Report::default() };
        work.system.hold_grips(self.held);
        work.system.make_room(work.kicks.soft.capacity());
        self.set_goals(start, work);

        work.motion.end.clone_from(start);

        // Start: half the impulses of the forces, and impulses that close the joints after the flight.
        work.system.weigh(&start.bodies);
        self.set_flight(&work.system, &mut work.motion);
        work.motion.velocities.clear();
        work.motion.velocities.extend(start.bodies.iter().map(|b| b.velocity));
        if self.flesh.is_some() {
            self.set_out(work);
        }
        work.kicks.gather((model, input), (start, &work.system.masses), &work.motion.velocities, h, self.loose);
        work.kick();
        work.pushes.gather(model, start, self.contacts, &work.motion.drift, h);
        report.corrections = self.correct_and_note(At::Start(start), work, &mut report, ledger)?;
        report.limits_active = work.kicks.limits_active + work.pushes.limits_active();

        work.note_moves(h);

        // End: the other half, and impulses that keep the joints from opening. Dampers there see the velocity changed by as much again as it was at the
        // start: about what it will be.
        work.pushes.measure(&work.motion.velocities, &work.motion.drift);
        work.pushes.land(model, &work.motion.end, h, self.settings.tolerance);
        report.max_penetration = work.pushes.penetration();
        work.motion.arrive(start, &mut work.mean);
        work.system.weigh(&work.motion.end.bodies);
        work.kicks.gather((model, input), (&work.motion.end, &work.system.masses), &work.mean, h, self.loose);
        work.kick();
        report.velocity_corrections = self.correct_and_note(At::End, work, &mut report, ledger)?;
        for (body, velocity) in work.motion.end.bodies.iter_mut().zip(&work.motion.velocities) {
            body.velocity = *velocity;
        }
        work.motion.end.joints.iter_mut().for_each(|joint| joint.force = DVec3::ZERO);
        work.pushes.remember(h, &mut work.motion.end);
        Ok(report)
    }

    /// The corrections at one end, and what joints, contacts and hard limits gave in them where that is wanted.
    fn correct_and_note(
        &self,
        at: At<'_>,
        work: &mut ImpulseWork,
        report: &mut Report,
        ledger: &mut Ledger,
    ) -> Result<u32, Failure> {
        if !ledger.is_open {
            return self.correct(at, work, report);
        }
        ledger.knows_constraints();
        let mut noting = work.noting.take().unwrap_or_else(|| Box::new(Noting::new(self.model)));
        noting.velocities.clone_from(&work.motion.velocities);
        work.pushes.keep(&mut noting.given);
        let done = self.correct(at, work, report);
        if done.is_ok() {
            self.note(at, work, &mut noting, ledger);
        }
        work.noting = Some(noting);
        done
    }

    /// Finds the impulses of joints from what velocities came to: however they were corrected, these are the ones that explain it.
    fn note(&self, at: At<'_>, work: &mut ImpulseWork, noting: &mut Noting, ledger: &mut Ledger) {
        let ImpulseWork { kicks, pushes, motion, mean, .. } = work;
        let Noting { system, velocities, given, impulses, moved, change } = noting;
        let (bodies, flesh) = match at {
            At::Start(start) => (&start.bodies, self.flesh),
            At::End => (&motion.end.bodies, None),
        };
        system.hold_grips(self.held);
        system.weigh(bodies);
        let implicit = (&kicks.soft[..], flesh);
        if system.factor(self.model, Elimination::Bodies, bodies, implicit, self.h).is_err() {
            return ledger.forget();
        }
        // What implicit forces owed before: the matrix has how they answer.
        impulses.fill([0.0; 6]);
        for ((mean, velocity), drift) in mean.iter_mut().zip(velocities.iter()).zip(&motion.drift) {
            *mean = *velocity + *drift;
        }
        if let Some(law) = flesh {
            moved.clear();
            moved.extend(mean.iter().map(|mean| from_twist(*mean * self.h)));
            law.add_pushes(self.h, moved, impulses);
            impulses.iter_mut().flatten().for_each(|x| *x /= self.h);
        }
        kicks.owed(self.h, mean, impulses);
        pushes.note(given, impulses, ledger);
        change.clear();
        change.extend(motion.velocities.iter().zip(velocities.iter()).map(|(after, before)| *after + *before * -1.0));
        system.find_impulses(impulses, change, |joint, impulse| ledger.constrain(joint, impulse));
    }

    /// Gravity and given wrenches act during the flight.
    fn set_flight(&self, system: &System, motion: &mut Motion) {
        motion.h = self.h;
        for flyer in &mut motion.flyers {
            (flyer.acceleration, flyer.torque) = (self.input.gravity, DVec3::ZERO);
        }
        for (body, wrench) in &self.input.wrenches {
            let flyer = &mut motion.flyers[body.index()];
            flyer.acceleration += wrench.force * system.masses[body.index()].inverse;
            flyer.torque += wrench.torque;
        }
        for ((drift, flyer), mass) in motion.drift.iter_mut().zip(&motion.flyers).zip(&system.masses) {
            *drift = Twist::new(flyer.acceleration, mass.inverse_inertia * flyer.torque) * (0.5 * self.h);
        }
    }

    /// With flesh, which acts at the start alone, so do gravity and given wrenches: what they balance would otherwise be at rest in its place and yet have a
    /// velocity at the end.
    fn set_out(&self, work: &mut ImpulseWork) {
        let Motion { flyers, velocities, drift, .. } = &mut work.motion;
        for ((flyer, velocity), drift) in flyers.iter_mut().zip(velocities).zip(drift) {
            // the drift is half of what the flight would add
            *velocity = *velocity + std::mem::replace(drift, Twist::ZERO) * 2.0;
            (flyer.acceleration, flyer.torque) = (DVec3::ZERO, DVec3::ZERO);
        }
    }

    /// A grip comes to its target at the end of the step: in this part by its share of the time, at the speed that takes.
    fn set_goals(&self, start: &State, work: &mut ImpulseWork) {
        let ImpulseWork { system, goals, wanted, .. } = work;
        let count = system.held.len();
        for list in [&mut goals.errors, &mut goals.rates, wanted] {
            list.clear();
            list.resize(count, [0.0; 6]);
        }
        let left = self.h + self.after.max(0.0);
        for (k, held) in system.held.iter().enumerate().filter(|(_, held)| held.joint.is_none()) {
            for (i, row) in held.errors(&start.bodies).iter().enumerate() {
                goals.errors[k][i] = row.error * (1.0 - self.h / left);
                goals.rates[k][i] = -row.error / left;
            }
        }
    }

    /// The report with the gaps at the end.
    fn measured(model: &Model, state: &State, mut report: Report) -> Report {
        for (k, joint) in model.joints().iter().enumerate() {
            let (gap, tilt) = joint.gap(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state));
            if gap > report.max_joint_gap || report.widest_joint.is_none() {
                (report.max_joint_gap, report.widest_joint) = (gap, Some(JointId(k as u32)));
            }
            report.max_joint_tilt = report.max_joint_tilt.max(tilt);
        }
        report
    }
}

impl ImpulseWork {
    /// Notes how far the bodies move in the part.
    fn note_moves(&mut self, h: f64) {
        self.motion.mean(&mut self.mean);
        for (moved, mean) in self.moved.iter_mut().zip(&self.mean) {
            *moved = from_twist(*mean * h);
        }
    }

    /// `V += M⁻¹ P` with the impulses of the explicit forces.
    fn kick(&mut self) {
        let masses = self.system.masses.iter();
        for ((velocity, mass), impulse) in self.motion.velocities.iter_mut().zip(masses).zip(&self.kicks.explicit) {
            *velocity = *velocity + to_twist(&mass.answer(&from_wrench(*impulse)));
        }
    }
}

impl Motion {
    /// Predicts where body `i` ends.
    fn fly(&mut self, start: &State, i: usize) {
        self.end.bodies[i] = self.flyers[i].fly(&start.bodies[i], self.velocities[i], self.h);
    }

    fn fly_all(&mut self, start: &State) {
        for i in 0..self.flyers.len() {
            self.fly(start, i);
        }
    }

    /// Ends the flight: `velocities` become those of arrival; `settled` what they will be when they have changed by as much again as at the start.
    fn arrive(&mut self, start: &State, settled: &mut [Twist]) {
        let bodies = self.end.bodies.iter().zip(&start.bodies);
        for ((velocity, settled), (end, start)) in self.velocities.iter_mut().zip(settled).zip(bodies) {
            *settled = end.velocity + (*velocity - start.velocity);
            *velocity = end.velocity;
        }
        self.drift.fill(Twist::ZERO);
    }
}
