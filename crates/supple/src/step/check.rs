//! What must hold of model, input and state before a step.

use super::error::StepError;
use crate::input::{Grip, Input, Target};
use crate::model::{Model, State};
use crate::settings::{MAX_REFINEMENTS, MAX_SUBSTEPS};
use crate::skin::Skin;

/// Whether a state is finite with unit orientations, without a branch for each number: anything not finite times zero is not a number.
/// When it says no, [`check_state`] finds the place.
fn looks_sound(state: &State) -> bool {
    let (mut poison, mut off) = (state.time + state.last_dt, 0.0f64);
    for b in &state.bodies {
        let sum = b.position + b.velocity.linear + b.velocity.angular;
        poison += sum.x + sum.y + sum.z;
        poison *= 0.0;
        off = off.max((b.orientation.length_squared() - 1.0).abs());
        poison += b.orientation.length_squared() * 0.0;
    }
    for j in &state.joints {
        let sum = j.turn + j.force;
        poison += (j.angle + j.integral + sum.x + sum.y + sum.z) * 0.0;
    }
    for c in &state.contacts {
        let sum = c.first + c.second;
        poison += (sum.x + sum.y + sum.z) * 0.0;
    }
    for rest in &state.rest {
        poison += (rest.seconds + rest.early + rest.late) * 0.0;
    }
    for node in &state.nodes {
        let sum = node.position + node.velocity;
        poison += (sum.x + sum.y + sum.z) * 0.0;
    }
    poison * 0.0 == 0.0 && off < 1e-3
}

fn target_is_sound(t: &Target) -> bool {
    let sum = t.pose.translation + t.velocity.linear + t.velocity.angular;
    (sum.x + sum.y + sum.z) * 0.0 == 0.0 && (t.pose.rotation.length_squared() - 1.0).abs() < 2e-3
}

/// Everything that must hold before a step.
pub(super) fn check(model: &Model, input: &Input, state: &State) -> Result<(), StepError> {
    if !(input.dt.is_finite() && input.dt > 0.0) {
        return Err(StepError::Dt { dt: input.dt });
    }
    check_sizes(model, state)?;
    input.solver.takes(model, input)?;
    check_motion(model, state)?;
    check_input(model, input)
}

pub(super) fn check_sizes(model: &Model, state: &State) -> Result<(), StepError> {
    for (what, found, expected) in [
        ("bodies", state.bodies.len(), model.bodies().len()),
        ("joints", state.joints.len(), model.joints().len()),
        ("nodes", state.nodes.len(), model.nodes()),
    ] {
        if found != expected {
            return Err(StepError::Mismatch { what, found, expected });
        }
    }
    if !state.rest.is_empty() && state.rest.len() != state.bodies.len() {
        let (found, expected) = (state.rest.len(), state.bodies.len());
        return Err(StepError::Mismatch { what: "bodies at rest", found, expected });
    }
    Ok(())
}

pub(super) fn check_motion(model: &Model, state: &State) -> Result<(), StepError> {
    if looks_sound(state) {
        return Ok(());
    }
    if let Some(i) = state.bodies.iter().position(|b| !b.is_finite()) {
        return Err(StepError::NotFinite { body: model.bodies()[i].name.clone(), remedy: "give a finite start" });
    }
    check_state(model, state)
}

/// What the motion of bodies does not tell: orientations that are none, angles, times.
fn check_state(model: &Model, state: &State) -> Result<(), StepError> {
    let wrong = |part: String, what: &'static str| Err(StepError::State { part, what });
    // As far from a unit as the builder takes one.
    if let Some(i) = state.bodies.iter().position(|b| (b.orientation.length_squared() - 1.0).abs() > 2e-3) {
        let part = format!("the orientation of body \"{}\"", model.bodies()[i].name);
        return wrong(part, "it is not a unit quaternion: normalise it");
    }
    if let Some(i) = state.joints.iter().position(|j| !j.angle.is_finite()) {
        let part = format!("the angle of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: call State::recount_turns");
    }
    if let Some(i) = state.joints.iter().position(|j| !(j.turn.is_finite() && j.force.is_finite())) {
        let part = format!("the memory of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: call State::recount_turns");
    }
    if let Some(i) = state.joints.iter().position(|j| !j.integral.is_finite()) {
        let part = format!("the integral of joint \"{}\"", model.joints()[i].name);
        return wrong(part, "it is not finite: give 0 or what a step left there");
    }
    if state.contacts.iter().any(|c| !(c.first.is_finite() && c.second.is_finite())) {
        return wrong("the memory of a contact".to_owned(), "it is not finite: clear the list");
    }
    if state.rest.iter().any(|r| !(r.seconds.is_finite() && r.early.is_finite() && r.late.is_finite())) {
        return wrong("how long a body has been at rest".to_owned(), "it is not finite: clear the list");
    }
    if let Some(i) = state.nodes.iter().position(|node| !node.is_finite()) {
        return wrong(format!("node {i} of the flesh"), "it is not finite: give a finite start");
    }
    for (part, number) in [("the time", state.time), ("the length of the last step", state.last_dt)] {
        if !number.is_finite() {
            return wrong(part.to_owned(), "it is not finite: give 0 or what a step left there");
        }
    }
    Ok(())
}

fn check_input(model: &Model, input: &Input) -> Result<(), StepError> {
    let wrong = |part: String, what: &str| Err(StepError::Input { part, what: what.to_owned() });
    let scale = |x: f64| x.is_finite() && x >= 0.0;
    if input.substeps > MAX_SUBSTEPS {
        return wrong("substeps".into(), "there are more than 1,000");
    }
    if !input.gravity.is_finite() {
        return wrong("gravity".into(), "it is not finite");
    }
    if !(scale(input.stiffness_scale) && scale(input.damping_scale)) {
        return wrong("a scale".into(), "it is negative or not finite");
    }
    if !(input.joints.is_empty() || input.joints.len() == model.joints().len()) {
        return wrong("joints".into(), "its length is neither 0 nor the number of joints");
    }
    if input.targets.len() > model.trackers().len() {
        return wrong("targets".into(), "there are more targets than trackers");
    }
    if input.strengths.len() > input.targets.len() {
        return wrong("strengths".into(), "there are more strengths than targets");
    }
    if let Some(i) = input.strengths.iter().position(|x| !scale(*x)) {
        let name = &model.trackers()[i].name;
        return wrong(format!("the strength of tracker \"{name}\""), "it is negative or not finite");
    }
    for (i, joint) in input.joints.iter().enumerate() {
        let name = || format!("joint \"{}\"", model.joints()[i].name);
        if !(scale(joint.stiffness_scale) && scale(joint.damping_scale) && joint.torque.is_finite()) {
            return wrong(name(), "a scale or torque is negative or not finite");
        }
        if let Some(servo) = joint.servo
            && !servo.is_finite()
        {
            return wrong(name(), "its servo target is not finite");
        }
        if !joint.drive.is_finite() {
            return wrong(name(), "its prescribed motion is not finite");
        }
    }
    for (i, target) in input.targets.iter().enumerate() {
        if let Some(t) = target
            && !target_is_sound(t)
        {
            return wrong(
                format!("the target of tracker \"{}\"", model.trackers()[i].name),
                "it is not finite or its rotation is not a unit quaternion",
            );
        }
    }
    if input.obstacles.len() > model.obstacles().len() {
        return wrong("obstacles".into(), "there are more entries than obstacles");
    }
    for (i, target) in input.obstacles.iter().enumerate() {
        if let Some(t) = target
            && !target_is_sound(t)
        {
            return wrong(
                format!("the motion of obstacle \"{}\"", model.obstacles()[i].name),
                "it is not finite or its rotation is not a unit quaternion",
            );
        }
    }
    for (i, drag) in input.drags.iter().enumerate() {
        if drag.body.index() >= model.bodies().len() {
            return wrong(format!("drag {i}"), "its body does not exist");
        }
        let finite = drag.point.is_finite() && drag.target.is_finite() && drag.target_velocity.is_finite();
        if !(finite && scale(drag.stiffness) && scale(drag.damping)) {
            return wrong(format!("drag {i}"), "a number is negative or not finite");
        }
    }
    check_grips(model, &input.grips)?;
    input.control.check(model)?;
    if input.skin.refinements > MAX_REFINEMENTS {
        return wrong("skin".into(), "there are more than 100 refinements");
    }
    if let Some(i) = input.balls.iter().position(|ball| !ball.is_sound()) {
        return wrong(format!("ball {i}"), "its radius is not above 0 or a number is not finite");
    }
    for (i, grab) in input.grabs.iter().enumerate() {
        if grab.vertex as usize >= model.skin().map_or(0, Skin::nodes) {
            return wrong(format!("grab {i}"), "the skin has no such vertex");
        }
        if !(grab.target.is_finite() && scale(grab.stiffness) && scale(grab.damping)) {
            return wrong(format!("grab {i}"), "a number is negative or not finite");
        }
    }
    for (i, (body, wrench)) in input.wrenches.iter().enumerate() {
        if body.index() >= model.bodies().len() {
            return wrong(format!("wrench {i}"), "its body does not exist");
        }
        if !wrench.is_finite() {
            return wrong(format!("wrench {i}"), "it is not finite");
        }
    }
    Ok(())
}

pub(super) fn check_grips(model: &Model, grips: &[Grip]) -> Result<(), StepError> {
    let wrong = |i: usize, what: &str| Err(StepError::Input { part: format!("grip {i}"), what: what.to_owned() });
    for (i, grip) in grips.iter().enumerate() {
        if grip.body.index() >= model.bodies().len() {
            return wrong(i, "its body does not exist");
        }
        if !grip.is_sound() {
            return wrong(i, "a number is not finite or its rotation is not a unit quaternion");
        }
    }
    Ok(())
}
