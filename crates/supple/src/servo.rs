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

/// Motor, gain with its scale, and target of a joint whose integral acts.
fn governor(model: &Model, input: &Input, k: usize) -> Option<(Motor, f64, f64)> {
    let motor = model.joints()[k].motor.filter(|m| m.integral > 0.0)?;
    let own = input.joint(k);
    let Some(ServoTarget::Position { position, .. }) = own.servo else { return None };
    let gain = (motor.integral * input.scales(&own).0).min(f64::MAX);
    (gain > 0.0).then_some((motor, gain, position))
}

/// Adds the torques of the integrals to an input.
pub(crate) fn govern(model: &Model, state: &State, input: &mut Input) {
    for k in 0..model.joints().len() {
        if let Some((motor, gain, _)) = governor(model, input, k) {
            let torque = (gain * state.joints[k].integral).clamp(-motor.max, motor.max);
            input.joint_mut(model, k).torque += torque;
        }
    }
}

/// The integrals after a part `h`, at the poses of its end.
pub(crate) fn advance(model: &Model, input: &Input, h: f64, state: &mut State) {
    for k in 0..model.joints().len() {
        let Some((motor, gain, target)) = governor(model, input, k) else { continue };
        let view = JointView::new(model, state, JointId(k as u32));
        let Some((x, ..)) = view.motor_position() else { continue };
        let most = motor.max / gain;
        state.joints[k].integral = (state.joints[k].integral + h * (target - x)).clamp(-most, most);
    }
}
