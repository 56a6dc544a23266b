//! What joints and bodies carry: forces by where they come from, means over the last part of a step.
//!
//! A solver notes what it alone knows: the impulses of joints, of hard limits and of contacts. The rest is the same code for all solvers. Springs, soft limits and
//! motors are their laws at the end of the part; what flesh and skin do to a body is what its change of momentum leaves when all else is taken off.

use crate::contact::penalty;
use crate::control::Mode;
use crate::forces::{self, Derivatives, Source};
use crate::input::{Drive, Input};
use crate::maths::rotation::turned_inertia;
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, Joint, JointId, Model, State};
use crate::solver::Solver;
use glam::DVec3;

/// What a joint does to its child in the last part of a step, constraints and hard limits in the mean over it, the rest at its end: world axes, about the child's centre of mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JointLoad {
    /// What holds the joint together: nothing of it lies along a free direction.
    pub constraint: Wrench,
    /// Its spring and damper.
    pub spring: Wrench,
    /// Its limits, soft and hard.
    pub limit: Wrench,
    /// Its motor, what the control commands, and what carries out a prescribed motion.
    pub motor: Wrench,
}

impl JointLoad {
    /// All together.
    pub fn total(&self) -> Wrench {
        self.constraint + self.spring + self.limit + self.motor
    }
}

/// What does not come from joints, gravity or the input, mean over the last part of a step: world axes, about the centre of mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BodyLoad {
    /// Contacts of its own shapes, friction included.
    pub contact: Wrench,
    /// Flesh or skin around it, with what that touches. Grips and couplings of a body in flesh are in it.
    pub flesh: Wrench,
}

/// What a solver noted of the impulses of joints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// Nothing: loads stay those of the part before.
    #[default]
    Nothing,
    /// Those of constraints.
    Constraints,
    /// All together.
    Totals,
}

/// The notes of a part.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Whether any are wanted.
    pub(crate) is_open: bool,
    /// Length of the part \[s\].
    pub(crate) part: f64,
    known: Known,
    /// How many wrenches of the input are the caller's.
    pub(crate) outside: usize,
    /// By joint: the impulse on its child; of constraints alone until it is closed, if the solver knows no more.
    impulses: Vec<Wrench>,
    /// By joint: impulses of hard limits on its child.
    stops: Vec<Wrench>,
    /// By joint: what the control commands, on its child \[N, N·m\].
    commands: Vec<Wrench>,
    /// By body: impulses of contacts.
    contacts: Vec<Wrench>,
    /// By body, with flesh or skin: momentum at the start, angular about the centre of mass.
    momenta: Vec<Wrench>,
    /// By joint and by body: what laws give.
    laws: Vec<JointLoad>,
    pulls: Vec<Wrench>,
    joints: Vec<JointLoad>,
    bodies: Vec<BodyLoad>,
}

fn zeros<T: Default + Clone>(list: &mut Vec<T>, length: usize) {
    list.clear();
    list.resize(length, T::default());
}

impl Ledger {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.impulses.clear();
        self.joints.clear();
        self.bodies.clear();
    }

    /// A part of length h begins.
    pub(crate) fn begin(&mut self, model: &Model, state: &State, h: f64, is_wanted: bool) {
        (self.is_open, self.part, self.known) = (is_wanted, h, Known::Nothing);
        if !is_wanted {
            self.clear();
            return;
        }
        let (joints, bodies) = (model.joints().len(), model.bodies().len());
        zeros(&mut self.impulses, joints);
        zeros(&mut self.stops, joints);
        zeros(&mut self.contacts, bodies);
        self.commands.resize(joints, Wrench::ZERO);
        self.joints.resize(joints, JointLoad::default());
        self.bodies.resize(bodies, BodyLoad::default());
        self.momenta.clear();
        if model.flesh().is_some() || model.skin().is_some() {
            self.momenta.extend((0..bodies).map(|i| momentum(model, state, i)));
        }
    }

    /// Adds an impulse of a joint's constraint on its child.
    pub(crate) fn constrain(&mut self, joint: JointId, impulse: Wrench) {
        self.known = Known::Constraints;
        self.impulses[joint.index()] += impulse;
    }

    /// What was noted belongs to an attempt that failed: loads stay those of the part before, unless the solver notes others.
    pub(crate) fn forget(&mut self) {
        if self.is_open {
            for list in [&mut self.impulses, &mut self.stops, &mut self.contacts] {
                list.fill(Wrench::ZERO);
            }
            self.known = Known::Nothing;
        }
    }

    /// The solver knows what constraints do, and where nothing is added it is nothing.
    pub(crate) fn knows_constraints(&mut self) {
        self.known = Known::Constraints;
    }

    /// By joint: the impulse of everything on its child, for the solver to write.
    pub(crate) fn totals(&mut self) -> &mut Vec<Wrench> {
        self.known = Known::Totals;
        &mut self.impulses
    }

    /// Adds an impulse of a hard limit on the joint's child.
    pub(crate) fn stop(&mut self, joint: JointId, impulse: Wrench) {
        self.stops[joint.index()] += impulse;
    }

    /// Adds an impulse of a contact.
    pub(crate) fn touch(&mut self, body: BodyId, impulse: Wrench) {
        self.contacts[body.index()] += impulse;
    }

    /// Adds what contacts that are springs do at the end of a part, which is `after` seconds before that of the step.
    pub(crate) fn touch_softly(&mut self, model: &Model, touches: &[penalty::Touch], state: &State, after: f64) {
        let h = self.part;
        for touch in touches {
            touch.wrenches(model, state, after, |body, wrench| self.touch(body, wrench * h));
        }
    }

    /// By joint: what the control commands of a part.
    pub(crate) fn commands(&mut self, model: &Model) -> &mut [Wrench] {
        zeros(&mut self.commands, model.joints().len());
        &mut self.commands
    }

    /// The part has ended at `state`: divides what was noted. `held` bodies took no part, and keep the loads that they had.
    pub(crate) fn close(&mut self, model: &Model, input: &Input, state: &State, held: &[bool]) {
        if !self.is_open || self.known == Known::Nothing {
            return;
        }
        self.follow_laws(model, input, state);
        let per_second = 1.0 / self.part;
        let is_held = |body: BodyId| held.get(body.index()) == Some(&true);
        let commands_itself = input.control.mode != Mode::Off && matches!(input.solver, Solver::Reduced(_));
        for (k, joint) in model.joints().iter().enumerate() {
            if is_held(joint.child) {
                self.impulses[k] = self.joints[k].total() * self.part;
                continue;
            }
            let (noted, law) = (self.impulses[k] * per_second, self.laws[k]);
            let command = if input.control.mode == Mode::Off { Wrench::ZERO } else { self.commands[k] };
            let mut load = JointLoad {
                constraint: noted,
                limit: law.limit + self.stops[k] * per_second,
                motor: law.motor + command,
                ..law
            };
            match self.known {
                Known::Totals => {
                    let sides = model.sides(joint, state);
                    load.constraint = constrained(joint, (sides.a, sides.b), noted);
                    if commands_itself || input.joint(k).drive != Drive::Forces {
                        load.motor = noted + -(load.constraint + load.spring + load.limit);
                    }
                }
                _ => {
                    if input.joint(k).drive != Drive::Forces {
                        let sides = model.sides(joint, state);
                        load.constraint = constrained(joint, (sides.a, sides.b), noted);
                        load.motor += noted + -load.constraint;
                    }
                    self.impulses[k] = (load.total() + -command) * self.part;
                }
            }
            if load.total().is_finite() {
                self.joints[k] = load;
            }
        }
        for (i, load) in self.bodies.iter_mut().enumerate() {
            if !is_held(BodyId(i as u32)) {
                load.contact = self.contacts[i] * per_second;
            }
        }
        self.balance_flesh(model, input, state);
    }

    /// Springs, limits, motors and pulls at `state`, by their laws.
    fn follow_laws(&mut self, model: &Model, input: &Input, state: &State) {
        let Ledger { laws, pulls, .. } = self;
        zeros(laws, model.joints().len());
        zeros(pulls, model.bodies().len());
        let velocity = |body: BodyId| state.bodies[body.index()].velocity;
        forces::collect(model, input, state, 0.0, Derivatives::Symmetric, |acting| {
            let other = acting.b.map_or(Twist::ZERO, velocity);
            let [on_a, on_b] = acting.force.wrenches_at(velocity(acting.a), other);
            match acting.source {
                Source::Joint(id) => laws[id.index()].spring += on_a,
                Source::Limit(id) => laws[id.index()].limit += on_a,
                Source::Motor(id) => laws[id.index()].motor += on_a,
                Source::AnchorSpring(_) | Source::Pull | Source::Contact => {
                    pulls[acting.a.index()] += on_a;
                    if let Some(b) = acting.b {
                        pulls[b.index()] += on_b;
                    }
                }
            }
        });
    }

    /// Flesh: the change of momentum of each body, less all else that acts on it.
    fn balance_flesh(&mut self, model: &Model, input: &Input, state: &State) {
        if self.momenta.is_empty() {
            return;
        }
        let per_second = 1.0 / self.part;
        for (i, load) in self.bodies.iter_mut().enumerate() {
            let weight = Wrench::new(input.gravity * model.bodies()[i].mass, DVec3::ZERO);
            let gained = (momentum(model, state, i) + -self.momenta[i]) * per_second;
            load.flesh = gained + -(weight + self.pulls[i] + load.contact);
        }
        // Flesh that is coupled loosely pushes by wrenches after those of the caller.
        for (body, wrench) in input.wrenches.iter().take(self.outside) {
            self.bodies[body.index()].flesh += -*wrench;
        }
        for (joint, impulse) in model.joints().iter().zip(&self.impulses) {
            let on_child = *impulse * per_second;
            self.bodies[joint.child.index()].flesh += -on_child;
            if let Some(parent) = joint.parent {
                let position = |body: BodyId| state.bodies[body.index()].position;
                let arm = position(joint.child) - position(parent);
                self.bodies[parent.index()].flesh += shifted(on_child, arm);
            }
        }
    }

    /// See [`Work::joint_impulses`](crate::Work::joint_impulses).
    pub(crate) fn joint_impulses(&self) -> &[Wrench] {
        if self.known == Known::Nothing { &[] } else { &self.impulses }
    }

    /// See [`Work::joint_loads`](crate::Work::joint_loads).
    pub(crate) fn joint_loads(&self) -> &[JointLoad] {
        &self.joints
    }

    /// See [`Work::body_loads`](crate::Work::body_loads).
    pub(crate) fn body_loads(&self) -> &[BodyLoad] {
        &self.bodies
    }
}

/// A wrench about a point that is `arm` away from the one it was given about.
pub(crate) fn shifted(wrench: Wrench, arm: DVec3) -> Wrench {
    Wrench::new(wrench.force, wrench.torque + arm.cross(wrench.force))
}

fn momentum(model: &Model, state: &State, i: usize) -> Wrench {
    let (body, s) = (&model.bodies()[i], &state.bodies[i]);
    let spin = turned_inertia(s.orientation, body.inertia) * s.velocity.angular;
    Wrench::new(s.velocity.linear * body.mass, spin)
}

/// What of a joint's wrench on its child lies along the directions that it holds.
fn constrained(joint: &Joint, (a, b): (Pose, Pose), total: Wrench) -> Wrench {
    let lever = a.rotation * joint.child_from_joint.translation;
    let moment = total.torque - lever.cross(total.force);
    let (mut force, mut torque) = (DVec3::ZERO, DVec3::ZERO);
    for row in joint.hold().errors(a, b).iter() {
        if row.a.linear == DVec3::ZERO {
            let axis = row.a.angular.normalize_or_zero();
            torque += axis * axis.dot(moment);
        } else {
            force += row.a.linear * row.a.linear.dot(total.force);
        }
    }
    Wrench::new(force, torque + lever.cross(force))
}
