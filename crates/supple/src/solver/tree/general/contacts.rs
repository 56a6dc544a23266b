//! What contacts and hard limits do in a part: in (1) bodies drift until they touch, in (2) they part no slower than a bounce asks.

use super::settle::{Equations, Until};
use super::system::{Along, Middle, Part, Regular, System, turn_by_drift};
use super::touch::{Roll, Touch};
use super::{GeneralWork, place, with_flesh};
use crate::contact::{Contact, ContactKey, Other};
use crate::flesh::couple::Coupled;
use crate::flesh::implicit::Nodes;
use crate::forces;
use crate::maths::block::{Vector, from_twist, to_twist};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{ContactMemory, State};
use crate::step::{Failure, Report};
use glam::DVec3;

/// A contact that closes slower than this many times what gravity gives in h does not bounce.
const BOUNCE: f64 = 2.0;
/// Deeper than this share of the model's size, bodies are pushed out: by this share of the depth in a part, and no farther than this
/// share of the model's size.
const SLOP: f64 = 1e-5;
const RECOVERY: f64 = 0.25;
const FARTHEST: f64 = 0.01;
/// No body is turned farther by it in a part \[rad\].
const FARTHEST_ROUND: f64 = 0.1;
/// In parts shorter than this less is done \[s\]: what must give way within no time at all cannot, and the shortest parts must not ask for more than those that failed.
const SHORT: f64 = 1.0 / 240.0;
/// Looks in which the torque of a limit turns with its joint.
const TURNING_LOOKS: u32 = 2;
/// A limit that is as near as this share of the model's size or this angle is closed.
const REACHED: f64 = 1e-9;
/// What moves more slowly than this share of what bounces rests.
const RESTS: f64 = 1e-3;

/// What a touch was at the start of the part and gave in (1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    key: ContactKey,
    /// The gap that the drift may leave \[m or rad\]: 0, or below 0 what was too deep at the start.
    floor: f64,
    /// How fast its sides parted at the start \[m/s or rad/s\].
    parted: f64,
    /// Its impulse in (1), world axes.
    pub(super) impulse: DVec3,
}

impl GeneralWork {
    /// Makes the contacts and limits of the part touches, and finds how far bodies must be pushed out.
    pub(super) fn meet(&mut self, part: &Part<'_>, state: &State, report: &mut Report) -> Result<(), Failure> {
        self.find_rolls(part, &state.contacts);
        let GeneralWork { system, met, rolls, .. } = self;
        system.guess(state);
        system.touches.clear();
        met.clear();
        for contact in part.contacts {
            let touch = Touch::contact(contact, &system.matrix);
            system.touches.push(touch);
            met.push(Met { key: contact.key, floor: contact.gap.min(0.0), parted: 0.0, impulse: DVec3::ZERO });
        }
        for stop in part.stops {
            system.touches.push(Touch::stop(stop, &system.matrix));
            let key = ContactKey::limit(stop.joint, stop.place as u32);
            met.push(Met { key, floor: stop.gap.min(0.0), parted: 0.0, impulse: DVec3::ZERO });
        }
        for roll in rolls.iter() {
            system.touches.push(Touch::roll(roll, &system.matrix));
            met.push(Met { key: roll.key, floor: 0.0, parted: 0.0, impulse: DVec3::ZERO });
        }
        system.kept_touches.clone_from(&system.touches); // has its room before it is needed
        place_touches(part, state, state, system);
        for (k, (met, touch)) in met.iter_mut().zip(&system.touches).enumerate() {
            let moving = part.contacts.get(k).map_or(0.0, |c| c.normal.dot(c.obstacle_velocity));
            met.parted = touch.parting(&system.v) - moving;
        }
        self.push_out(part, state, report);
        Ok(())
    }

    /// Finds which bodies resist rolling, and by what moments.
    fn find_rolls(&mut self, part: &Part<'_>, contacts: &[ContactMemory]) {
        let rolls = &mut self.rolls;
        rolls.clear();
        let mut known = contacts.iter().peekable();
        for contact in part.contacts {
            let memory = remembered(&mut known, &contact.key);
            rolls.extend(memory.filter(|_| contact.rolling > 0.0).and_then(|memory| Roll::of(contact, memory)));
        }
        // One for each two bodies; contacts of the same two need not follow one another.
        rolls.sort_unstable_by_key(|roll| roll.key);
        rolls.dedup_by(|next, first| {
            let same = next.key == first.key;
            if same {
                first.add(next);
            }
            same
        });
        rolls.retain_mut(|roll| match roll.normal.try_normalize() {
            Some(normal) => {
                roll.normal = normal;
                true
            }
            None => false, // held from both sides: it does not roll
        });
    }

    /// Where touches of rolling resistance begin.
    fn first_roll(part: &Part<'_>) -> usize {
        part.contacts.len() + part.stops.len()
    }

    /// Finds the least motion, measured by mass, that takes bodies out of what they are too deep in with joints closed. It moves poses
    /// and no velocities, so that no energy of motion comes of it. What is squeezed between things that cannot all be left at once goes as far as each gives way;
    /// where even that is not found it stays as deep as it is.
    fn push_out(&mut self, part: &Part<'_>, state: &State, report: &mut Report) {
        self.push.fill([0.0; 6]);
        let &Part { h, reach, contacts, .. } = part;
        let share = (h / SHORT).min(1.0);
        let deep = |contact: &Contact| share * (RECOVERY * (-contact.gap - SLOP * reach)).min(FARTHEST * reach);
        if !contacts.iter().any(|c| deep(c) > 0.0) {
            return;
        }
        let GeneralWork { system, met, push, momenta, second, .. } = self;
        system.assemble_second(part, state, &[], Regular::OfRows);
        system.unbend();
        momenta.fill([0.0; 6]);
        second.fill(Wrench::ZERO);
        for until in [Until::Settled, Until::Balanced] {
            system.v.fill([0.0; 6]);
            system.start_second();
            if until == Until::Balanced {
                place_touches(part, state, state, system); // with the weights of the start
            }
            let (touches, rolls) = system.touches.split_at_mut(GeneralWork::first_roll(part));
            rolls.iter_mut().for_each(|roll| roll.acts = false);
            for (k, touch) in touches.iter_mut().enumerate() {
                touch.restore_friction();
                touch.start_without_friction();
                let stop = || part.stops[k - contacts.len()].gap;
                let gap = contacts.get(k).map_or_else(stop, |c| c.gap).max(0.0);
                let wanted = contacts.get(k).map_or(0.0, |c| deep(c).max(0.0));
                touch.shift = [(gap - wanted) / h, 0.0, 0.0];
            }
            let mut way_out = Velocities { part, momenta, second };
            if system.settle(part, state, report, until, &mut way_out).is_ok() {
                push.copy_from_slice(&system.v);
                break;
            }
            report.unconverged = 1;
        }
        // Near poses in which rows become dependent the way out may lead far round.
        let turn = push.iter().map(|v| to_twist(v).angular.length() * h).fold(0.0, f64::max);
        if turn > share * FARTHEST_ROUND {
            push.iter_mut().flatten().for_each(|v| *v *= share * FARTHEST_ROUND / turn);
        }
        for (touch, met) in system.touches.iter_mut().zip(met) {
            touch.restore_friction();
            if met.floor < 0.0 {
                met.floor = (met.floor + h * touch.parting(push)).min(0.0);
            }
        }
        system.guess(state);
    }

    /// Begins (1) again with no impulses at all: those that are remembered of bodies jammed in one another may lead anywhere.
    pub(super) fn begin_cold(&mut self, part: &Part<'_>, state: &State) {
        self.system.guess(state);
        place_touches(part, state, state, &mut self.system);
        self.recall_touches(part, &[]);
    }

    /// Begins (1) with impulses of touches that are remembered.
    pub(super) fn recall_touches(&mut self, part: &Part<'_>, contacts: &[ContactMemory]) {
        let mut known = contacts.iter().peekable();
        let first_roll = GeneralWork::first_roll(part);
        for (k, (touch, met)) in self.system.touches.iter_mut().zip(&self.met).enumerate() {
            let memory = remembered(&mut known, &met.key);
            if k >= first_roll {
                let roll = &self.rolls[k - first_roll];
                let impulse = memory.map_or(DVec3::ZERO, |m| m.first * part.h);
                touch.start_rolling(impulse, roll.first * part.h / part.reach, roll.spin * part.reach);
                continue;
            }
            touch.start_from(memory.map_or(DVec3::ZERO, |m| m.first * part.h));
            if let Some(contact) = part.contacts.get(k) {
                touch.move_other_side(contact.obstacle_velocity);
            }
        }
    }

    /// Solves (1) with contacts: bodies drift until they touch, no deeper than they are.
    pub(super) fn drift_touching(
        &mut self,
        part: &Part<'_>,
        state: &State,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let GeneralWork { system, poses, momenta, met, push, trial, flesh, momenta_with_flesh, along, .. } = self;
        if !part.stops.is_empty() {
            trial.clone_from(state);
        }
        let along = *along;
        let mut drift =
            Drift { part, along, state, poses, momenta, met, push, trial, flesh, momenta_with_flesh, looks: 0 };
        system.settle(part, state, report, Until::Settled, &mut drift)?;
        for (met, touch) in met.iter_mut().zip(&system.touches) {
            met.impulse = touch.impulse();
        }
        Ok(())
    }

    /// Solves (2) with the contacts that were reached; the state is at the end of the drift.
    pub(super) fn velocities_touching(
        &mut self,
        part: &Part<'_>,
        state: &State,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let GeneralWork { system, momenta, second, met, poses, start, rolls, .. } = self;
        let resting = BOUNCE * part.h * part.input.gravity.length();
        place_touches(part, start, state, system);
        let mut known = start.contacts.iter().peekable();
        let first_roll = GeneralWork::first_roll(part);
        let (touches, drift) = (&mut system.touches, &system.v);
        for (k, (touch, met)) in touches.iter_mut().zip(met.iter()).enumerate() {
            let memory = remembered(&mut known, &met.key);
            if k >= first_roll {
                let roll = &rolls[k - first_roll];
                let impulse = memory.map_or(DVec3::ZERO, |m| m.second * part.h);
                touch.start_rolling(impulse, roll.second * part.h / part.reach, roll.spin * part.reach);
                continue;
            }
            touch.shift = [0.0; 3];
            if let Some(contact) = part.contacts.get(k) {
                touch.move_other_side(contact.obstacle_velocity);
            }
            // What moved before the drift and rests in it: where bodies jam, friction has a solution in which they rest and others in which they move, and what
            // is remembered of one of these would find it again in every step.
            let rests = |v: &dyn Fn(usize) -> Vector| touch.speed(v) < RESTS * resting;
            let is_jammed = rests(&|body| drift[body]) && !rests(&|body| from_twist(start.bodies[body].velocity));
            let impulse = match memory {
                Some(_) if is_jammed => met.impulse,
                Some(memory) => memory.second * part.h,
                None => DVec3::ZERO,
            };
            touch.start_from(impulse);
            touch.acts = met.impulse != DVec3::ZERO;
            if let Some(contact) = part.contacts.get(k) {
                touch.acts |= gap_at(contact, start, poses, part.h) <= REACHED * part.reach;
                if met.parted < -resting {
                    touch.shift[0] += contact.restitution * met.parted;
                }
            }
        }
        each_stop(part, state, |k, stop| system.touches[part.contacts.len() + k].acts |= stop.gap <= REACHED);
        system.start_second();
        system.unbend();
        let mut velocities = Velocities { part, momenta, second };
        let done = system.settle(part, state, report, Until::Settled, &mut velocities);
        system.end_second();
        for touch in &mut system.touches {
            touch.forget_idle();
        }
        done
    }

    /// Keeps the impulses of touches for the next part.
    pub(super) fn remember(&mut self, part: &Part<'_>, state: &mut State, report: &mut Report) {
        state.contacts.clear();
        for (touch, met) in self.system.touches.iter().zip(&self.met) {
            let (first, second) = (met.impulse, touch.impulse());
            if first != DVec3::ZERO || second != DVec3::ZERO {
                let (first, second) = (first / part.h, second / part.h);
                state.contacts.push(ContactMemory { key: met.key, first, second });
            }
        }
        for contact in part.contacts {
            let gap = gap_at(contact, &self.start, &self.poses, part.h);
            report.max_penetration = report.max_penetration.max(-gap);
        }
    }
}

/// (1) with contacts.
struct Drift<'a> {
    part: &'a Part<'a>,
    along: Along,
    state: &'a State,
    poses: &'a mut [Pose],
    momenta: &'a [Vector],
    met: &'a [Met],
    push: &'a [Vector],
    trial: &'a mut State,
    flesh: &'a mut Option<Box<Coupled>>,
    momenta_with_flesh: &'a mut [Vector],
    /// Times that it was followed.
    looks: u32,
}

impl Equations for Drift<'_> {
    fn residual(&mut self, system: &mut System) -> Result<f64, Failure> {
        let Drift { part, along, state, poses, momenta, met, push, trial, flesh, momenta_with_flesh, looks } = self;
        let h = part.h;
        place(state, &system.v, Some(push), h, poses)?;
        for (k, contact) in part.contacts.iter().enumerate() {
            let gap = gap_at(contact, state, poses, h);
            system.touches[k].set_gap((gap - met[k].floor) / h, &system.v);
        }
        if !part.stops.is_empty() {
            for (body, pose) in trial.bodies.iter_mut().zip(poses.iter()) {
                (body.position, body.orientation) = (pose.translation, pose.rotation);
            }
            each_stop(part, trial, |k, stop| {
                let k = part.contacts.len() + k;
                // A limit turns with its joint: its torque is that of the end, as the first looks find it. If it went on turning with what it does,
                // Newton's method would have to know how.
                if *looks < TURNING_LOOKS {
                    system.touches[k].turn_stop(stop);
                }
                let turn = |i: usize, row: Twist| {
                    Twist::new(row.linear, turn_by_drift(&system.v[i], &push[i], h).transpose() * row.angular)
                };
                let b = stop.parent.map_or(Twist::ZERO, |b| turn(b.index(), stop.b));
                let a = turn(stop.child.index(), stop.a);
                system.touches[k].set_ahead(a, b);
                system.touches[k].set_gap((stop.gap - met[k].floor) / h, &system.v);
            });
        }
        *looks += 1;
        let (momenta, unsettled) = with_flesh(part, flesh, (poses, Nodes::Alone), momenta, system, momenta_with_flesh);
        let open = system.residual(part, (Middle::Foretold, *along), state, poses, momenta).max(unsettled);
        if *along == Along::Mean {
            system.bend(part, Middle::Foretold, poses);
        }
        Ok(open)
    }

    fn derive(&mut self, system: &mut System) {
        let Drift { part, along, state, poses, push, .. } = self;
        system.set_rows_of_end(part, *along, state, (poses, Some(push)));
        for (k, contact) in part.contacts.iter().enumerate() {
            let normal = system.touches[k].normal();
            let row = |i: usize, point: DVec3, round: DVec3, sign: f64| {
                let core = point - state.bodies[i].orientation.conjugate() * round;
                let arm = poses[i].rotation * core;
                let turn = turn_by_drift(&system.v[i], &push[i], part.h);
                Twist::new(normal * sign, turn.transpose() * arm.cross(normal * sign))
            };
            let a = row(contact.a.index(), contact.point_in_a, contact.round_a, 1.0);
            let b = match contact.b {
                Other::Body(b) => row(b.index(), contact.point_in_b, contact.round_b, -1.0),
                Other::Obstacle(_) => Twist::ZERO,
            };
            system.touches[k].set_ahead(a, b);
        }
    }
}

/// (2), or the way out of what bodies are too deep in.
struct Velocities<'a> {
    part: &'a Part<'a>,
    momenta: &'a [Vector],
    second: &'a [Wrench],
}

impl Equations for Velocities<'_> {
    fn residual(&mut self, system: &mut System) -> Result<f64, Failure> {
        Ok(system.residual_second(self.part, self.momenta, self.second))
    }

    fn derive(&mut self, _: &mut System) {}
}

/// The memory of a contact, keys being asked for in their order.
fn remembered<'s>(
    known: &mut std::iter::Peekable<std::slice::Iter<'s, ContactMemory>>,
    key: &ContactKey,
) -> Option<&'s ContactMemory> {
    while known.next_if(|k| k.key < *key).is_some() {}
    known.next_if(|k| k.key == *key)
}

/// Rows of all touches at the poses of `now`; contacts were found at those of `start`.
fn place_touches(part: &Part<'_>, start: &State, now: &State, system: &mut System) {
    for (k, contact) in part.contacts.iter().enumerate() {
        let carried = |i: usize, point: DVec3, round: DVec3| {
            let (then, now) = (&start.bodies[i], &now.bodies[i]);
            now.orientation * (point - then.orientation.conjugate() * round) + round
        };
        let lever_a = carried(contact.a.index(), contact.point_in_a, contact.round_a);
        let lever_b = match contact.b {
            Other::Body(b) => carried(b.index(), contact.point_in_b, contact.round_b),
            Other::Obstacle(_) => DVec3::ZERO,
        };
        system.touches[k].place(part.model, now, lever_a, lever_b);
    }
    each_stop(part, now, |k, stop| {
        system.touches[part.contacts.len() + k].place_stop(part.model, now, stop);
    });
    for touch in &mut system.touches[GeneralWork::first_roll(part)..] {
        touch.place_roll(part.model, now, part.reach);
    }
}

/// Calls `visit` with each stop of the part at another state, and its place among them.
fn each_stop(part: &Part<'_>, state: &State, mut visit: impl FnMut(usize, &forces::Stop)) {
    let mut next = 0;
    if part.stops.is_empty() {
        return;
    }
    forces::stops(part.model, state, |stop| {
        let asked = part.stops.get(next).is_some_and(|s| (s.joint, s.place) == (stop.joint, stop.place));
        if asked {
            visit(next, &stop);
            next += 1;
        }
    });
}

/// How far apart the sides of a contact are along its normal when the bodies have moved from `start` to `poses` in h. What is round
/// does not turn with its body.
fn gap_at(contact: &Contact, start: &State, poses: &[Pose], h: f64) -> f64 {
    let moved = |i: usize, point: DVec3, round: DVec3| {
        let (then, now) = (&start.bodies[i], &poses[i]);
        let core = point - then.orientation.conjugate() * round;
        (now.translation - then.position) + (now.rotation * core - then.orientation * core)
    };
    let a = moved(contact.a.index(), contact.point_in_a, contact.round_a);
    let b = match contact.b {
        Other::Body(b) => moved(b.index(), contact.point_in_b, contact.round_b),
        Other::Obstacle(_) => contact.obstacle_velocity * h,
    };
    contact.gap + contact.normal.dot(a - b)
}
