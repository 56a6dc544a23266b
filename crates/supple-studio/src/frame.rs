//! A frame: what moves, as bytes. The layout is told in `docs/protocol.md`; numbers are little-endian.

use crate::protocol::PROTOCOL;
use supple::control::{Aim, Mark, Mode};
use supple::glam::{DQuat, DVec3};
use supple::maths::rotation;
use supple::timeline::Playback;
use supple::{BodyId, Cause, Drag, Input, Joint, JointLoad, Model, Report, State, Work, Wrench, measure};

/// The simulation runs.
pub(crate) const PLAYING: u16 = 1;
/// The present step was recorded before: playing replays.
pub(crate) const REPLAYING: u16 = 2;
/// The machine is too slow for real time at the present settings.
pub(crate) const BEHIND: u16 = 4;
/// The last step failed; the status tells why.
pub(crate) const FAILED: u16 = 8;

/// The poses are those that were stored; nothing was computed.
pub(crate) const STORED: u16 = 16;

/// Bytes before the bodies.
const HEAD: usize = 152;
/// In place of an index: none.
const NONE: u32 = u32::MAX;

/// Who pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Puller {
    Scene = 0,
    Person = 1,
    Pin = 2,
}

/// What a frame shows.
pub(crate) struct Shown<'a> {
    pub(crate) flags: u16,
    pub(crate) generation: u32,
    pub(crate) step: u64,
    pub(crate) end: u64,
    pub(crate) take: usize,
    /// Simulated per real time, as achieved.
    pub(crate) pace: f64,
    pub(crate) step_micros: f64,
    pub(crate) report: &'a Report,
    /// The body that made the last step fail.
    pub(crate) culprit: Option<BodyId>,
    /// What it noted of the last step.
    pub(crate) work: &'a Work,
    pub(crate) model: &'a Model,
    pub(crate) state: &'a State,
    pub(crate) input: &'a Input,
    /// For each drag of the input.
    pub(crate) pullers: &'a [Puller],
    /// The take that is compared with, at the same step.
    pub(crate) other: Option<&'a Playback>,
}

/// The bytes of a frame.
pub(crate) fn encode(shown: &Shown<'_>) -> Vec<u8> {
    let Shown { model, state, input, report, .. } = shown;
    let (bodies, joints) = (model.bodies().len(), model.joints().len());
    let targets = || input.targets.iter().enumerate().filter_map(|(k, t)| t.map(|t| (k, t)));
    let others = shown.other.map_or(0, Playback::bodies);
    let lines = joints + targets().count() + input.drags.len();
    let mut out = Bytes(Vec::with_capacity(HEAD + 28 * (bodies + others) + 32 * lines + 4));

    out.u16(PROTOCOL);
    out.u16(shown.flags);
    out.u32(shown.generation);
    out.0.extend_from_slice(&state.time.to_le_bytes());
    out.u32(shown.step as u32);
    out.u32(shown.end as u32);
    out.u32(shown.take as u32);
    out.u32(bodies as u32);
    out.u32(joints as u32);
    out.u32(targets().count() as u32);
    out.u32(input.drags.len() as u32);
    out.f32(shown.pace);

    out.f32(report.max_joint_gap);
    out.f32(report.max_joint_tilt);
    out.u32(report.widest_joint.map_or(NONE, |joint| joint.0));
    out.u32(report.substeps);
    out.u32(report.fallbacks);
    out.u32(report.limits_active);
    out.u32(report.contacts);
    out.f32(shown.step_micros);
    let energy = measure::energy(model, input, state);
    out.f32(energy.kinetic);
    out.f32(energy.gravity);
    out.f32(energy.springs + energy.flesh);
    out.u32(HEAD as u32);
    out.u32(report.factorisations);
    out.u32(report.solves);
    out.u32(report.rotation_halvings);
    out.u32(report.backward_parts);
    out.u32(report.resorts);
    out.u32(report.projections);
    let trouble = report.trouble.map(|trouble| (trouble.body, number(trouble.cause)));
    let (body, cause) = shown.culprit.map(|body| (body, FAILURE)).or(trouble).map_or((NONE, 0), |(b, c)| (b.0, c));
    out.u32(body);
    out.u32(cause);
    for nanos in shown.work.stage_nanos() {
        out.f32(nanos as f64 * 1e-3);
    }
    assert_eq!(out.0.len(), HEAD, "the head of a frame");

    for body in &state.bodies {
        out.vec3(body.position);
        out.quat(body.orientation);
    }
    let loads = shown.work.joint_loads();
    for (k, joint) in model.joints().iter().enumerate() {
        out.f32(joint.gap(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state)).0);
        let unknown = Wrench::new(DVec3::NAN, DVec3::NAN); // before the first step
        let load = loads.get(k).map_or(unknown, JointLoad::total);
        out.f32(load.force.length());
        out.vec3(angle(model, state, k));
        out.vec3(torque_in_joint(model, joint, state, load));
    }
    for (k, target) in targets() {
        out.u32(k as u32);
        out.vec3(target.pose.translation);
        out.quat(target.pose.rotation);
    }
    for (k, drag) in input.drags.iter().enumerate() {
        let (point, force) = pull(drag, state);
        out.u32(drag.body.0);
        out.u32(shown.pullers.get(k).copied().unwrap_or(Puller::Person) as u32);
        out.vec3(point);
        out.vec3(force);
    }
    out.u32(others as u32);
    for pose in shown.other.iter().flat_map(|other| (0..others).map(|body| other.pose(body))) {
        out.vec3(pose.translation);
        out.quat(pose.rotation);
    }
    contacts(shown, &mut out);
    let mut nodes = Vec::new();
    if let Some(flesh) = model.flesh() {
        flesh.positions(state, &mut nodes);
    }
    out.u32(nodes.len() as u32);
    nodes.into_iter().for_each(|node| out.vec3(node));
    direction(shown, &mut out);
    obstacles(shown, &mut out);
    skin(shown, &mut out);
    out.0
}

/// Obstacles that are moved, and where they are.
fn obstacles(shown: &Shown<'_>, out: &mut Bytes) {
    // A take that came from elsewhere may move some that are not there.
    let known = shown.model.obstacles().len();
    let moved =
        || (0u32..).zip(&shown.input.obstacles).take(known).filter_map(|(k, target)| target.map(|t| (k, t.pose)));
    out.u32(moved().count() as u32);
    for (obstacle, pose) in moved() {
        out.u32(obstacle);
        out.vec3(pose.translation);
        out.quat(pose.rotation);
    }
}

/// Displacements of the skin, what presses on it, which bones were tested, and what hands do to it. Nothing where there is no skin.
fn skin(shown: &Shown<'_>, out: &mut Bytes) {
    let Shown { model, state, input, work, .. } = shown;
    let Some(skin) = model.skin() else { return };
    out.u32(skin.nodes() as u32);
    state.nodes.iter().for_each(|node| out.vec3(node.position));
    // Before the first step, and of stored poses, nothing is known of contacts.
    let known = shown.step > 0 && shown.flags & STORED == 0;
    let pressures = if known { work.skin_pressures() } else { &[] };
    out.u32(pressures.len() as u32);
    for &(vertex, force) in pressures {
        out.u32(vertex);
        out.vec3(force);
    }
    let looked = if known { work.skin_looked() } else { &[] };
    let tested = || (0u32..).zip(looked).filter(|(_, looked)| **looked);
    out.u32(tested().count() as u32);
    tested().for_each(|(body, _)| out.u32(body));
    out.u32(input.balls.len() as u32);
    for ball in &input.balls {
        out.vec3(ball.centre);
        out.f32(ball.radius);
    }
    // A take that came from elsewhere may name vertices that are not there.
    let grabs = || input.grabs.iter().filter(|grab| (grab.vertex as usize) < skin.nodes());
    out.u32(grabs().count() as u32);
    for grab in grabs() {
        out.u32(grab.vertex);
        out.vec3(grab.target);
        out.f32(grab.stiffness);
    }
}

/// What the control of the actuators did, and the goals it had.
fn direction(shown: &Shown<'_>, out: &mut Bytes) {
    let (told, control) = (&shown.report.control, &shown.input.control);
    out.u32(match control.mode {
        Mode::Off => 0,
        Mode::Goals => 1,
        Mode::Keyframes => 2,
        Mode::Landing => 3,
    });
    out.u32(told.actuators);
    out.u32(told.limited);
    for x in [told.root_wrench, told.pull_force, told.pull_torque, told.torque, told.acceleration] {
        out.f32(x);
    }
    told.asked.iter().chain(&told.residuals).for_each(|x| out.f32(*x));
    let goals = if control.mode == Mode::Off { &[] } else { control.goals.as_slice() };
    // A take that came from elsewhere may name bodies that are not there.
    let goals = goals.iter().filter(|goal| goal.body.index() < shown.state.bodies.len());
    out.u32(goals.clone().count() as u32);
    for goal in goals {
        let point = shown.state.bodies[goal.body.index()].pose().transform_point(goal.point);
        let (aim, at) = match goal.aim {
            Aim::Position { target, .. } => (0, target),
            Aim::Height(height) => (1, DVec3::new(point.x, height, point.z)),
            Aim::Orientation { .. } => (2, point),
            Aim::Velocity(_) => (3, point),
            Aim::AngularVelocity(_) => (4, point),
            Aim::Acceleration(_) => (5, point),
            Aim::AngularAcceleration(_) => (6, point),
        };
        out.u32(goal.body.0);
        out.u32(aim);
        out.u32(goal.level as u32);
        out.u32(u32::from(goal.mark == Mark::Cursor));
        out.vec3(point);
        out.vec3(at);
    }
}

/// The contacts of the last part that push, with their forces: those that only came near are left out. None when nothing was computed.
fn contacts(shown: &Shown<'_>, out: &mut Bytes) {
    let at = out.0.len();
    out.u32(0);
    if shown.flags & STORED != 0 {
        return;
    }
    let mut count = 0u32;
    // Both lists are in the order of their keys.
    let mut pushing = shown.state.contacts.iter().peekable();
    for contact in shown.work.contacts() {
        while pushing.next_if(|memory| memory.key < contact.key).is_some() {}
        let Some(memory) = pushing.next_if(|memory| memory.key == contact.key) else { continue };
        out.u32(contact.a.0);
        out.vec3(contact.point);
        out.vec3(contact.normal);
        out.vec3(memory.first + memory.second);
        out.f32(contact.friction);
        count += 1;
    }
    out.0[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

/// The step was not done.
const FAILURE: u32 = 6;

/// A cause as the protocol numbers it.
fn number(cause: Cause) -> u32 {
    match cause {
        Cause::Turning => 1,
        Cause::Energy => 2,
        Cause::Convergence => 3,
        Cause::Overflow => 4,
        Cause::Resort => 5,
        Cause::Stalled => 7, // 6 is a step that failed
    }
}

/// The child's rotation in the joint's frame on the parent, as a rotation vector; about an axis whose turns are counted, with them.
fn angle(model: &Model, state: &State, k: usize) -> DVec3 {
    let joint = &model.joints()[k];
    let mut turn = rotation::log(state.relative_rotation(model, joint));
    if let Some(axis) = joint.turning_axis() {
        turn[axis] = state.joints[k].angle;
    }
    turn
}

/// The torque of a joint on its child about the joint, in the axes of the joint's frame on the parent. `load` is about the
/// child's centre of mass: `τ = n − r × f`, `r` from there to the joint.
fn torque_in_joint(model: &Model, joint: &Joint, state: &State, load: Wrench) -> DVec3 {
    let lever = state.bodies[joint.child.index()].orientation * joint.child_from_joint.translation;
    let axes = model.parent_pose(joint, state).rotation * joint.parent_from_joint.rotation;
    axes.conjugate() * (load.torque - lever.cross(load.force))
}

/// The pulled point in the world and the force of the pull, the law told at [`Drag`]: `k (target − p) + c (target velocity − v)`. None of a body that is not there.
fn pull(drag: &Drag, state: &State) -> (DVec3, DVec3) {
    let Some(body) = state.bodies.get(drag.body.index()) else { return (drag.target, DVec3::ZERO) };
    let point = body.pose().transform_point(drag.point);
    let stretch = drag.target - point;
    let closing = drag.target_velocity - body.velocity_at(drag.point);
    (point, drag.stiffness * stretch + drag.damping * closing)
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, x: u16) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }
    fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }
    fn f32(&mut self, x: f64) {
        self.0.extend_from_slice(&(x as f32).to_le_bytes());
    }
    fn vec3(&mut self, v: DVec3) {
        v.to_array().into_iter().for_each(|x| self.f32(x));
    }
    fn quat(&mut self, q: DQuat) {
        q.to_array().into_iter().for_each(|x| self.f32(x));
    }
}
