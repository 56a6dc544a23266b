//! A frame: what moves, as bytes. The layout is told in `docs/protocol.md`; numbers are little-endian.

use crate::protocol::PROTOCOL;
use supple::glam::{DQuat, DVec3};
use supple::timeline::Playback;
use supple::{Drag, Input, Model, Report, State, measure};

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
    let lines = 32 * (targets().count() + input.drags.len());
    let mut out = Bytes(Vec::with_capacity(100 + 28 * (bodies + others) + 4 * joints + lines));

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
    out.u32(report.widest_joint.map_or(u32::MAX, |joint| joint.0));
    out.u32(report.substeps);
    out.u32(report.fallbacks);
    out.u32(report.limits_active);
    out.u32(report.contacts);
    out.f32(shown.step_micros);
    let energy = measure::energy(model, input, state);
    out.f32(energy.kinetic);
    out.f32(energy.gravity);
    out.f32(energy.springs);
    out.u32(0);

    for body in &state.bodies {
        out.vec3(body.position);
        out.quat(body.orientation);
    }
    for joint in model.joints() {
        out.f32(joint.gap(state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state)).0);
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
    out.0
}

/// The pulled point in the world and the force of the pull, the law told at [`Drag`]: `k (target − p) + c (target velocity − v)`.
fn pull(drag: &Drag, state: &State) -> (DVec3, DVec3) {
    let body = &state.bodies[drag.body.index()];
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
