//! Sleep: bodies that have been at rest for half a second stand still, at no cost, until something asks or touches them.
//!
//! A body is at rest while its kinetic energy is next to nothing. An island (bodies joined or touching) sleeps when each of
//! its bodies has been at rest for [`TO_SLEEP`] without getting faster: what begins to topple is slow too, but gains speed.
//! Islands of the same model sleep one by one with solver `tree`'s default scheme; elsewhere all bodies sleep or none.
//!
//! All of it is in the state, so that replays sleep and wake at the same steps. A body wakes when the input asks something
//! else of it than in the step before, when its pose or velocity was changed by hand, or when an awake body comes near.

use super::report::Report;
use crate::control::Mode;
use crate::input::{Input, Target};
use crate::maths::fnv::Fnv;
use crate::maths::{Pose, Twist};
use crate::measure;
use crate::model::{BodyState, Model, Rest, ServoTarget, State};
use glam::{DQuat, DVec3};

/// How long a body is at rest before it may sleep \[s\].
const TO_SLEEP: f64 = 0.5;
/// The square of the speed below which a body is at rest, as a share of what a fall by the model's size gives. A figure of
/// 1.8 m is at rest below 1 cm/s.
const AT_REST: f64 = 5.7e-6;
/// By how much the square of a speed must grow in a quarter of a second for its body to count as one that gets faster. What
/// topples does so by √(3g/2L) a second at least: 1.25 is that of a pole of 70 m, 4 that of one as tall as a person. What
/// creeps, its joints held back by their damping, grows by a hundredth.
const TOPPLES: f64 = 1.25;

/// Whether bodies may sleep in a step. Those of a directed character do not, nor those of servos that integrate: what is
/// asked of them grows with time.
pub(super) fn is_wanted(input: &Input, has_integrals: bool) -> bool {
    input.sleep && input.control.mode == Mode::Off && !has_integrals
}

/// Before a step: bodies of which something else is asked are awake. `asked` gets what is asked of each body.
pub(super) fn wake(model: &Model, input: &Input, state: &mut State, asked: &mut Vec<u64>) {
    ask(model, input, asked);
    state.rest.resize(state.bodies.len(), Rest::default());
    for ((rest, body), asked) in state.rest.iter_mut().zip(&state.bodies).zip(&*asked) {
        if rest.asked != remembered(*asked, rest, body) {
            *rest = Rest::default();
        }
    }
}

/// Whether every body sleeps.
pub(super) fn is_all_asleep(state: &State) -> bool {
    !state.rest.is_empty() && state.rest.iter().all(is_asleep)
}

/// Whether a body has been at rest for long enough to sleep.
pub(super) fn is_asleep(rest: &Rest) -> bool {
    rest.seconds >= TO_SLEEP
}

/// A number that tells states in which bodies sleep from one another.
pub(super) fn signature(state: &State) -> u64 {
    let mut hash = Fnv::new();
    state.rest.iter().for_each(|rest| hash.word(rest.asked));
    hash.finish()
}

/// A step in which every body sleeps.
pub(super) fn pass(model: &Model, input: &Input, state: &mut State, asked: &[u64]) -> Report {
    for body in &mut state.bodies {
        body.velocity = Twist::ZERO;
    }
    for node in &mut state.nodes {
        node.velocity = DVec3::ZERO;
    }
    for ((rest, body), asked) in state.rest.iter_mut().zip(&state.bodies).zip(asked) {
        rest.asked = remembered(*asked, rest, body);
    }
    state.time += input.dt;
    let gap = measure::joint_gap(model, state);
    Report {
        max_joint_gap: gap.distance,
        max_joint_tilt: gap.tilt,
        widest_joint: gap.joint,
        contacts: state.contacts.iter().filter(|memory| memory.key.is_contact()).count() as u32,
        asleep: state.bodies.len() as u32,
        ..Report::default()
    }
}

/// After a step: counts how long each body has been at rest.
pub(super) fn count(model: &Model, input: &Input, state: &mut State, asked: &[u64]) {
    let still = AT_REST * measure::energy_at_stake(model, input, model.size()) / model.mass();
    // Soft matter belongs to all bodies at once.
    let soft = state.nodes.iter().map(|node| node.velocity.length_squared()).fold(0.0, f64::max);
    for (i, (rest, body)) in state.rest.iter_mut().zip(&state.bodies).enumerate() {
        let constant = &model.bodies()[i];
        let spin = body.orientation.inverse() * body.velocity.angular;
        let speed = body.velocity.linear.length_squared() + spin.dot(constant.inertia * spin) / constant.mass;
        note(rest, speed.max(soft), still, input.dt);
        rest.asked = remembered(asked[i], rest, body);
    }
}

/// One more step of a body, at this speed \[m²/s²\].
fn note(rest: &mut Rest, speed: f64, still: f64, dt: f64) {
    if speed.is_nan() || speed > still {
        *rest = Rest::default();
        return;
    }
    let is_early = rest.seconds < 0.5 * TO_SLEEP;
    let peak = if is_early { &mut rest.early } else { &mut rest.late };
    *peak = peak.max(speed);
    rest.seconds += dt;
    if rest.late > TOPPLES * rest.early {
        // It gets faster: another half of the time is needed to tell.
        (rest.seconds, rest.early, rest.late) = (rest.seconds.min(0.5 * TO_SLEEP), rest.late, 0.0);
    }
}

/// What is remembered of a body after a step: what is asked of it and, once it may sleep, where it is.
fn remembered(asked: u64, rest: &Rest, body: &BodyState) -> u64 {
    if !is_asleep(rest) {
        return asked;
    }
    let mut hash = Fnv::from(asked);
    pose(&mut hash, body.pose());
    twist(&mut hash, body.velocity);
    hash.finish()
}

/// What the input asks of each body, as a number that differs when any of it does. The length of the step is left out, and
/// the solver: what is at rest is so for all of them. So is the damping of joints, which moves nothing that stands still:
/// tissue changes it with the speed, and figures that were let go would never sleep.
fn ask(model: &Model, input: &Input, asked: &mut Vec<u64>) {
    let mut all = Fnv::new();
    vector(&mut all, input.gravity);
    let switches = [u64::from(input.torques), input.contacts as u64, input.flesh as u64];
    switches.into_iter().for_each(|x| all.word(x));
    all.word(input.stiffness_scale.to_bits());
    for obstacle in &input.obstacles {
        target(&mut all, obstacle.as_ref());
    }
    for ball in &input.balls {
        vector(&mut all, ball.centre);
        all.word(ball.radius.to_bits());
        vector(&mut all, ball.velocity);
    }
    for grab in &input.grabs {
        all.word(u64::from(grab.vertex));
        vector(&mut all, grab.target);
        [grab.stiffness, grab.damping].into_iter().for_each(|x| all.word(x.to_bits()));
    }
    asked.clear();
    asked.resize(model.bodies().len(), all.finish());
    let mut add = |body: usize, put: &dyn Fn(&mut Fnv)| {
        let mut hash = Fnv::from(asked[body]);
        put(&mut hash);
        asked[body] = hash.finish();
    };
    for (joint, own) in model.joints().iter().zip(&input.joints) {
        add(joint.child.index(), &|hash| {
            [own.stiffness_scale, own.torque].into_iter().for_each(|x| hash.word(x.to_bits()));
            match own.servo {
                None => hash.word(0),
                Some(ServoTarget::Position { position, rate }) => {
                    [position, rate].into_iter().for_each(|x| hash.word(x.to_bits()));
                }
                Some(ServoTarget::Rotation(q)) => quaternion(hash, q),
                Some(ServoTarget::Rate(rate)) => hash.word(rate.to_bits()),
            }
            own.drive.numbers().iter().for_each(|x| hash.word(x.to_bits()));
        });
    }
    for (k, (tracker, wanted)) in model.trackers().iter().zip(&input.targets).enumerate() {
        add(tracker.body.index(), &|hash| {
            target(hash, wanted.as_ref());
            hash.word(input.strength(k).to_bits());
        });
    }
    for drag in &input.drags {
        add(drag.body.index(), &|hash| {
            [drag.point, drag.target, drag.target_velocity].into_iter().for_each(|x| vector(hash, x));
            [drag.stiffness, drag.damping].into_iter().for_each(|x| hash.word(x.to_bits()));
        });
    }
    for grip in &input.grips {
        add(grip.body.index(), &|hash| {
            [grip.point, grip.target].into_iter().for_each(|x| vector(hash, x));
            grip.rotation.into_iter().for_each(|q| quaternion(hash, q));
        });
    }
    for (body, wrench) in &input.wrenches {
        add(body.index(), &|hash| [wrench.force, wrench.torque].into_iter().for_each(|x| vector(hash, x)));
    }
}

fn target(hash: &mut Fnv, target: Option<&Target>) {
    let Some(target) = target else { return hash.word(0) };
    pose(hash, target.pose);
    twist(hash, target.velocity);
}

fn pose(hash: &mut Fnv, pose: Pose) {
    quaternion(hash, pose.rotation);
    vector(hash, pose.translation);
}

fn twist(hash: &mut Fnv, twist: Twist) {
    vector(hash, twist.linear);
    vector(hash, twist.angular);
}

fn vector(hash: &mut Fnv, v: DVec3) {
    v.to_array().into_iter().for_each(|x| hash.word(x.to_bits()));
}

fn quaternion(hash: &mut Fnv, q: DQuat) {
    q.to_array().into_iter().for_each(|x| hash.word(x.to_bits()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: f64 = 1e-6;

    fn seconds_until_asleep(speed: impl Fn(f64) -> f64) -> Option<f64> {
        let (mut rest, dt) = (Rest::default(), 1.0 / 60.0);
        (0..600).map(|k| f64::from(k) * dt).find(|time| {
            note(&mut rest, speed(*time), STILL, dt);
            is_asleep(&rest)
        })
    }

    #[test]
    fn what_slows_down_sleeps_after_half_a_second() {
        let time = seconds_until_asleep(|time| 0.9e-6 * (-time).exp()).unwrap();
        assert!((time - TO_SLEEP).abs() < 0.02, "{time}");
    }

    #[test]
    fn what_gets_faster_stays_awake() {
        // as a pole that stands on its end and begins to fall
        assert_eq!(seconds_until_asleep(|time| 1e-12 * (2.0 * time).exp()), None);
        assert_eq!(seconds_until_asleep(|_| 2e-6), None);
        assert_eq!(seconds_until_asleep(|_| f64::NAN), None);
    }
}
