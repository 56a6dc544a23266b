//! The integral part of servos, for every solver alike: a torque added to the input of each part of a step.
//!
//! ```text
//! T = torque + ki e − kp (x − x*) − kd (ẋ − r*),     e = ∫ (x* − x) dt,     |ki e| ≤ max
//! ```
//! The solvers see `torque + ki e` as the given torque. The integral advances at the end of each part by h times the error there, and goes no farther than
//! the motor could answer: a servo that is held back for long lets go of it at once.

use crate::forces::JointView;
use crate::input::Input;
use crate::model::{JointId, Model, Motor, ServoTarget, State};

/// Whether any motor has an integral gain.
pub(crate) fn any_integral(model: &Model) -> bool {
    model.joints().iter().any(|j| j.motor.is_some_and(|m| m.integral > 0.0))
}

/// The joints whose integral acts: motor, gain with its scale, target.
fn governed<'a>(model: &'a Model, input: &'a Input) -> impl Iterator<Item = (usize, Motor, f64, f64)> + 'a {
    model.joints().iter().enumerate().filter_map(|(k, joint)| {
        let motor = joint.motor.filter(|m| m.integral > 0.0)?;
        let own = input.joint(k);
        let Some(ServoTarget::Position { position, .. }) = own.servo else { return None };
        let gain = (motor.integral * input.scales(&own).0).min(f64::MAX);
        (gain > 0.0).then_some((k, motor, gain, position))
    })
}

/// Makes `governed` the input with the torques of the integrals. Allocates nothing once its lists have their size.
pub(crate) fn govern(model: &Model, input: &Input, state: &State, with: &mut Input) {
    with.copy_from(input);
    for (k, motor, gain, _) in governed(model, input) {
        let torque = (gain * state.joints[k].integral).clamp(-motor.max, motor.max);
        with.joint_mut(model, k).torque += torque;
    }
}

/// The integrals after a part `h`, at the poses of its end.
pub(crate) fn advance(model: &Model, input: &Input, h: f64, state: &mut State) {
    for (k, motor, gain, target) in governed(model, input) {
        let view = JointView::new(model, state, JointId(k as u32));
        let Some((x, ..)) = view.motor_position() else { continue };
        let most = motor.max / gain;
        state.joints[k].integral = (state.joints[k].integral + h * (target - x)).clamp(-most, most);
    }
}
