//! Posing by hand: what is pulled is held by grips instead of springs, nothing falls and nothing swings. And the budget of solver
//! `assembly`, kept by iterations that are recorded with each step.

use super::Stage;
use supple::control::Mode;
use supple::glam::{DQuat, DVec3};
use supple::solver::assembly::{Budget, Scheme};
use supple::{
    Assembly, BodyId, ContactLaw, Drag, FleshCoupling, Grip, Input, JointInput, Scene, Solver, State, TreeScheme,
};

/// How fast a pin that is moved leads its body \[sizes of the model a second\].
const PIN_SPEED: f64 = 1.0;

/// Whether this solver poses.
pub(super) fn poses(solver: Solver) -> bool {
    matches!(solver, Solver::Assembly(Assembly { scheme: Scheme::Posing, .. }))
}

/// What moves a scene when it is not posed.
pub(super) fn moving_solver(scene: &Scene) -> Solver {
    if poses(scene.input.solver) { Solver::Assembly(Assembly::default()) } else { scene.input.solver }
}

/// The state to start a scene from. One that arrives broken is brought together, and that is to be said.
pub(super) fn start(scene: &Scene) -> (State, Option<String>) {
    let follows = scene.tones().clip().is_some();
    match scene.assembled_start() {
        Ok((state, None)) => (state, None),
        // A clip may turn a hinge askew: it begins in the nearest pose that the joints allow, and there is nothing to be done about it.
        Ok((state, Some(report))) if follows && report.error_after < 1e-6 => (state, None),
        Ok((state, Some(report))) => {
            let text = format!(
                "The scene starts broken, joints open by up to {:.3} m or rad. They were brought together in {} iterations; \
                 {:.1e} is left.",
                report.error_before, report.outer, report.error_after
            );
            (state, Some(text))
        }
        Err(error) => {
            (scene.state.clone(), Some(format!("The scene starts broken and cannot be brought together: {error}")))
        }
    }
}

impl Stage {
    pub(super) fn is_posing(&self) -> bool {
        poses(self.settings.solver)
    }

    /// Begins or ends posing; what moved the scene before moves it again after.
    pub(super) fn set_posing(&mut self, on: bool) {
        if on == self.is_posing() {
            return;
        }
        self.settings.solver = match on {
            true => {
                self.moved_by = self.settings.solver;
                Solver::Assembly(Assembly { scheme: Scheme::Posing, ..Assembly::default() })
            }
            false => self.moved_by,
        };
    }

    /// Sets what the corrections of a step may take; 0 for what the settings say \[µs\].
    pub(super) fn set_budget(&mut self, micros: f64) {
        self.budget = (micros > 0.0).then(|| Budget::new(micros));
    }

    /// What the corrections of a step may take \[µs\]; 0 without a budget.
    pub(super) fn budget_micros(&self) -> f64 {
        self.budget.map_or(0.0, |budget| budget.micros())
    }

    /// Whether pins are rows of the step, and so exact: of the default step, unless flesh or skin hangs on the bones.
    fn pins_by_rows(&self) -> bool {
        let model = &self.scene.model;
        let Solver::Tree(tree) = self.now.input.solver else { return false };
        let of_default = matches!(tree.scheme, TreeScheme::Midpoint(_)) && tree.contacts == ContactLaw::OfScheme;
        of_default && model.flesh().is_none() && model.skin().is_none()
    }

    /// Adds pins and pulls to the next input, as springs, or as grips where it poses; and as many iterations as there is time for.
    pub(super) fn add_hands(&mut self, pin: Drag) {
        if self.is_directed() && !poses(self.now.input.solver) {
            return self.direct_hands();
        }
        let by_rows = self.pins_by_rows();
        let input = &mut self.now.input;
        if poses(input.solver) {
            input.control.mode = Mode::Off;
            input.flesh = FleshCoupling::Loose; // flesh follows posed bones
            let grip = |body, point, target, rotation| Grip { body, point, target, rotation };
            let pins = self.pins.iter().map(|(&body, pin)| grip(BodyId(body), DVec3::ZERO, pin.at, pin.turn));
            let turned = |owner| self.turns.get(owner).copied();
            let pulls = self.drags.iter().map(|(owner, d)| grip(d.body, d.point, d.target, turned(owner)));
            input.grips.extend(pins.chain(pulls));
        } else if by_rows {
            // A pin that is moved leads its body there at a bounded speed; one that cannot be reached does not tear at it from afar.
            let most = PIN_SPEED * self.scene.model.size() * input.dt;
            for (&body, pin) in &self.pins {
                let here = self.now.state.bodies[body as usize].position;
                let way = pin.at - here;
                let body = BodyId(body);
                let leads = way.length() > most;
                let target = if leads { here + way.clamp_length_max(most) } else { pin.at };
                input.grips.push(Grip { body, point: DVec3::ZERO, target, rotation: pin.turn });
                if leads {
                    input.drags.push(note_of_pin(body, pin.at));
                }
            }
            input.drags.extend(self.drags.values().copied());
        } else {
            let pins = self.pins.iter().map(|(&body, held)| Drag { body: BodyId(body), target: held.at, ..pin });
            input.drags.extend(pins.chain(self.drags.values().copied()));
        }
        if let (Some(budget), Solver::Assembly(asked)) = (self.budget, input.solver) {
            input.solver = Solver::Assembly(budget.settings(asked));
        }
    }

    /// The settings of a recorded input, its lists emptied. A solver's iterations are not those that a budget left it.
    pub(super) fn settings_of(&self, input: &Input) -> Input {
        let solver = match (input.solver, self.settings.solver) {
            (Solver::Assembly(kept), Solver::Assembly(asked)) if self.budget.is_some() => {
                Solver::Assembly(Assembly { outer: asked.outer, inner: asked.inner, ..kept })
            }
            (solver, _) => solver,
        };
        Input {
            solver,
            targets: Vec::new(),
            drags: Vec::new(),
            grips: Vec::new(),
            wrenches: Vec::new(),
            strengths: Vec::new(),
            joints: self.joints_without_tones(&input.joints),
            balls: Vec::new(),
            grabs: Vec::new(),
            control: self.control_of(&input.control),
            flesh: if poses(input.solver) { self.scene.input.flesh } else { input.flesh },
            ..input.clone()
        }
    }

    /// The inputs of joints, with the scales that a person gave them: those of a step have what the tones made of them.
    fn joints_without_tones(&self, joints: &[JointInput]) -> Vec<JointInput> {
        if !self.tones.is_active() {
            return joints.to_vec();
        }
        let scaled = |(k, joint): (usize, &JointInput)| {
            let JointInput { stiffness_scale, damping_scale, .. } = self.settings.joint(k);
            JointInput { stiffness_scale, damping_scale, ..*joint }
        };
        joints.iter().enumerate().map(scaled).collect()
    }

    /// Bodies that a recorded step pinned by grips: held by their centre of mass, and not by the scene.
    pub(super) fn gripped_pins(&self) -> impl Iterator<Item = (u32, DVec3, Option<DQuat>)> {
        let by_hand = self.now.input.grips.iter().skip(self.scene.input.grips.len());
        // While posing pulls are grips too: one that turns a body about its centre is no pin.
        let posing = poses(self.now.input.solver);
        let is_pin = move |g: &&Grip| g.point == DVec3::ZERO && (!posing || g.rotation.is_none());
        by_hand.filter(is_pin).map(|g| (g.body.0, g.target, g.rotation))
    }
}

/// Where a pin leads its body in the end, kept with the step: a pull without force.
fn note_of_pin(body: BodyId, target: DVec3) -> Drag {
    Drag { body, point: DVec3::ZERO, target, target_velocity: DVec3::ZERO, stiffness: 0.0, damping: 0.0 }
}

/// Whether a recorded pull is the note of a pin.
pub(super) fn is_note_of_pin(drag: &Drag) -> bool {
    drag.stiffness == 0.0 && drag.damping == 0.0
}

/// A rotation that a client sent, x, y, z, w.
pub(super) fn rotation(numbers: [f64; 4]) -> Option<DQuat> {
    let rotation = DQuat::from_array(numbers);
    ((rotation.length() - 1.0).abs() <= 1e-3).then(|| rotation.normalize())
}
