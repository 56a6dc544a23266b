//! A motion while it is simulated: the pose of every body at every frame, and how good it is.

use glam::DVec3;
use serde::Serialize;
use supple::contact::{ContactWork, detect};
use supple::model::joint::swing_twist;
use supple::{BodyState, Input, Model, Pose, Report, State};

/// A simulated motion, frame by frame.
#[derive(Default)]
pub struct Recording {
    /// Since the first frame \[s\].
    pub(crate) times: Vec<f64>,
    /// The time of the first frame \[s\].
    begun: Option<f64>,
    /// Of the bodies' centres of mass, frame after frame.
    pub(crate) poses: Vec<Pose>,
    pub(crate) quality: Vec<Quality>,
    /// The vertices of the surface of flesh or skin, frame after frame \[m\].
    pub(crate) surface: Vec<DVec3>,
    nodes: Vec<DVec3>,
    places: Vec<DVec3>,
    contacts: ContactWork,
}

/// How good a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// The widest joint \[m\].
    pub gap: f64,
    /// The deepest overlap with an obstacle \[m\].
    pub penetration: f64,
    /// The largest torque with which a joint presses against its limit \[N·m\].
    pub torque_over_limit: f64,
}

impl Recording {
    /// Adds a state as a frame; `report` is that of the step that led to it, if one did.
    pub fn add(&mut self, model: &Model, input: &Input, state: &State, report: Option<&Report>) {
        let begun = *self.begun.get_or_insert(state.time);
        self.times.push(state.time - begun);
        self.poses.extend(state.bodies.iter().map(|body| body.pose()));
        if let Some(flesh) = model.flesh() {
            flesh.positions(state, &mut self.nodes);
            flesh.surface_positions(&self.nodes, &mut self.places);
            self.surface.extend_from_slice(&self.places);
        }
        if let Some(skin) = model.skin() {
            skin.positions(state, &mut self.places);
            self.surface.extend_from_slice(&self.places);
        }
        let found = detect(model, input, state, (1e-6, 0.0), &mut self.contacts);
        let penetration = found.iter().map(|contact| -contact.gap).fold(0.0, f64::max);
        let gap = report.map_or_else(|| supple::measure::joint_gap(model, state).distance, |r| r.max_joint_gap);
        self.quality.push(Quality { gap, penetration, torque_over_limit: torque_over_limit(model, state) });
    }

    /// The part of it from one time to another, which then begins at 0; with `rate`, in frames of that many a second, else in those that it has. Between
    /// frames, turns and places are those on the way from one to the next.
    #[must_use]
    pub fn cut(&self, from: f64, to: f64, rate: Option<f64>) -> Recording {
        let last = self.times.last().copied().unwrap_or(0.0);
        let (from, to) = (from.clamp(0.0, last), to.clamp(0.0, last));
        let times: Vec<f64> = match rate {
            Some(rate) => (0..=((to - from) * rate + 1e-6).floor() as usize).map(|k| from + k as f64 / rate).collect(),
            None => {
                let inside = self.times.iter().copied().filter(|t| *t > from && *t < to);
                std::iter::once(from).chain(inside).chain((to > from).then_some(to)).collect()
            }
        };
        let frames = self.times.len().max(1);
        let (bodies, vertices) = (self.poses.len() / frames, self.surface.len() / frames);
        let mut out = Recording::default();
        for time in times {
            let after = self.times.partition_point(|t| *t < time).min(self.times.len().saturating_sub(1));
            let before = after.saturating_sub(1);
            let span = self.times[after] - self.times[before];
            let share = if span > 0.0 { ((time - self.times[before]) / span).clamp(0.0, 1.0) } else { 1.0 };
            let pair = |list: usize, k: usize| (before * list + k, after * list + k);
            out.times.push(time - from);
            out.poses.extend((0..bodies).map(|k| {
                let (a, b) = pair(bodies, k);
                let (a, b) = (&self.poses[a], &self.poses[b]);
                Pose::new(a.rotation.slerp(b.rotation, share), a.translation.lerp(b.translation, share))
            }));
            out.surface.extend((0..vertices).map(|k| {
                let (a, b) = pair(vertices, k);
                self.surface[a].lerp(self.surface[b], share)
            }));
            out.quality.push(self.quality[if share < 0.5 { before } else { after }]);
        }
        out
    }

    /// The motion of some of the bodies, moved to another place.
    #[must_use]
    pub fn of(&self, bodies: std::ops::Range<usize>, place: Pose) -> Recording {
        let all = self.poses.len() / self.times.len().max(1);
        let frames = self.poses.chunks(all.max(1));
        let poses = frames.flat_map(|frame| frame[bodies.clone()].iter().map(|pose| place.then(*pose))).collect();
        let (times, quality) = (self.times.clone(), self.quality.clone());
        Recording { times, begun: self.begun, poses, quality, ..Recording::default() }
    }

    /// A frame as a state at rest. Flesh and skin are as the model has them.
    pub fn state(&self, model: &Model, frame: usize) -> State {
        let mut state = model.start();
        let bodies = model.bodies().len();
        for (body, pose) in state.bodies.iter_mut().zip(&self.poses[frame * bodies..]) {
            *body = BodyState::at_rest(*pose);
        }
        state.time = self.times[frame];
        state.recount_turns(model);
        state
    }

    /// How long it is \[s\].
    pub fn seconds(&self) -> f64 {
        self.times.last().map_or(0.0, |last| last - self.times[0])
    }

    /// The same without its travel along the ground, and by frame that travel: how far the first body has gone since the first frame, level \[m\].
    pub(crate) fn in_place(&self) -> (Recording, Vec<DVec3>) {
        let frames = self.times.len().max(1);
        let (bodies, vertices) = (self.poses.len() / frames, self.surface.len() / frames);
        let at = |frame: usize| self.poses.get(frame * bodies).map_or(DVec3::ZERO, |pose| pose.translation);
        let level = |p: DVec3| DVec3::new(p.x, 0.0, p.z);
        let travel: Vec<DVec3> = (0..self.times.len()).map(|frame| level(at(frame) - at(0))).collect();
        let poses = self.poses.iter().enumerate();
        let poses = poses.map(|(k, pose)| Pose::new(pose.rotation, pose.translation - travel[k / bodies])).collect();
        let surface = self.surface.iter().enumerate().map(|(k, p)| *p - travel[k / vertices]).collect();
        let (times, quality) = (self.times.clone(), self.quality.clone());
        (Recording { times, poses, quality, surface, ..Recording::default() }, travel)
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.times.len()
    }

    /// What a frame takes in memory \[bytes\].
    pub fn bytes_of_frame(&self) -> usize {
        let all = size_of_val(&self.poses[..]) + size_of_val(&self.surface[..]) + size_of_val(&self.quality[..]);
        all / self.times.len().max(1)
    }

    /// How good each frame is.
    pub fn quality(&self) -> &[Quality] {
        &self.quality
    }
}

/// `k v` of the limit that is violated most.
fn torque_over_limit(model: &Model, state: &State) -> f64 {
    let mut most = 0.0f64;
    for (joint, remembered) in model.joints().iter().zip(&state.joints) {
        let limits = &joint.limits;
        if let Some(range) = limits.angle {
            most = most.max(limits.stiffness * range.excess(remembered.angle).abs());
        }
        if let Some(swing) = limits.swing {
            let (s1, s2, _) = swing_twist(state.relative_rotation(model, joint));
            most = most.max(limits.stiffness * swing.violation(s1, s2).0);
        }
    }
    most
}
