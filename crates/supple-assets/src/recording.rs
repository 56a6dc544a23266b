//! A motion while it is simulated: the pose of every body at every frame, and how good it is.

use glam::DVec3;
use serde::Serialize;
use supple::contact::{ContactWork, detect};
use supple::model::joint::swing_twist;
use supple::{Input, Model, Pose, Report, State};

/// A simulated motion, frame by frame.
#[derive(Default)]
pub struct Recording {
    /// \[s\]
    pub(crate) times: Vec<f64>,
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
        self.times.push(state.time);
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

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.times.len()
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
