//! Directing: the character follows pulls by its own actuators, or keyframes, or lands softly.

use super::{Pin, Refused, Stage};
use crate::control::{ControlTold, KeyTold, LevelTold, ModeTold, kept};
use crate::protocol::Change;
use supple::control::{Aim, Control, Goal, Mark, Mode, Style};
use supple::glam::DVec3;
use supple::model::Coordinates;
use supple::{BodyId, Solver};

impl Stage {
    /// What is asked of the actuators, as told to clients.
    pub(super) fn control_told(&self) -> ControlTold {
        ControlTold::of(&self.settings.control, self.drag_level)
    }

    /// Refuses a control that could not be carried out.
    pub(super) fn check_control(&self, told: &ControlTold) -> Result<(), Refused> {
        let bad = |what: String| Err(("studio/value", what));
        let model = &self.scene.model;
        if told.goals.len() > MOST_GOALS || told.keyframes.len() > MOST_KEYS {
            return bad(format!("there may be {MOST_GOALS} goals and {MOST_KEYS} keyframes"));
        }
        if let Some(joint) = told.joints.iter().find(|joint| joint.joint as usize >= model.joints().len()) {
            return bad(format!("there is no joint {}", joint.joint));
        }
        if let Some(key) = told.keyframes.iter().find(|key| !(0.0..=MOST_SECONDS).contains(&key.time)) {
            return bad(format!(
                "a keyframe is at {} s: give a time from 0 to {MOST_SECONDS} s",
                supple_assets::plain(key.time)
            ));
        }
        let positions = Coordinates::new(model).positions.len();
        if told.keyframes.iter().any(|key| key.positions.len() != positions) {
            return bad(format!("a keyframe needs {positions} positions: ask for one with `key`"));
        }
        if !(told.pose.is_empty() || told.pose.len() == positions) {
            return bad(format!(
                "a target pose needs {positions} positions, or none for that of the start: ask for one with `target_pose`"
            ));
        }
        let mut input = self.now.input.clone();
        input.control = told.control(model, &self.settings.control);
        input.grips.clear();
        input.solver = self.solver_for(told.mode, self.settings.solver);
        input
            .control
            .check(model)
            .and_then(|()| input.solver.takes(model, &input))
            .or_else(|error| bad(error.to_string()))
    }

    /// The solver that a mode has in place of one: what directs is solver `reduced`, with the settings it has or had last.
    pub(super) fn solver_for(&self, mode: ModeTold, solver: Solver) -> Solver {
        match (mode, solver) {
            (ModeTold::Off, Solver::Reduced(_)) if self.settings.control.mode != Mode::Off => self.undirected_by,
            (ModeTold::Off, _) | (_, Solver::Reduced(_)) => solver,
            _ => self.directed_by,
        }
    }

    /// Changes what is asked of the actuators. Solver `reduced` carries it out; what moved the scene before moves it again after.
    pub(super) fn apply_control(&mut self, told: &ControlTold) {
        self.drag_level = told.drag_level;
        let control = told.control(&self.scene.model, &self.settings.control);
        let (was, is) = (self.settings.control.mode != Mode::Off, control.mode != Mode::Off);
        match (was, is) {
            (false, true) => {
                self.undirected_by = if self.is_posing() { self.moved_by } else { self.settings.solver };
                self.settings.solver = self.solver_for(told.mode, self.settings.solver);
            }
            (true, false) if matches!(self.settings.solver, Solver::Reduced(_)) => {
                self.directed_by = self.settings.solver;
                self.settings.solver = self.undirected_by;
            }
            _ => {}
        }
        self.settings.control = control;
    }

    /// The pulls of people become goals: a place, and an orientation where they turn.
    pub(super) fn direct_hands(&mut self) {
        let level = self.drag_level.level();
        let goals = &mut self.now.input.control.goals;
        for (owner, drag) in &self.drags {
            goals.push(Goal { level, ..Goal::drag(drag.body, drag.point, drag.target) });
            if let Some(&target) = self.turns.get(owner) {
                let aim = Aim::Orientation { target, velocity: DVec3::ZERO };
                goals.push(Goal { mark: Mark::Cursor, ..Goal::new(drag.body, DVec3::ZERO, aim, level) });
            }
        }
        for (&body, pin) in &self.pins {
            let aim = Aim::Position { target: pin.at, velocity: DVec3::ZERO };
            let goal = Goal::new(BodyId(body), DVec3::ZERO, aim, pin.level.level());
            goals.push(Goal { mark: Mark::Cursor, weight: PIN_WEIGHT, ..goal });
        }
    }

    /// The control of a recorded input without what hands did in it, and with the keyframes and the target pose that were made by hand.
    pub(super) fn control_of(&self, control: &Control) -> Control {
        let mut control = Control { goals: kept(control).copied().collect(), ..control.clone() };
        if self.keyed {
            control.keyframes.clone_from(&self.settings.control.keyframes);
        }
        if self.aimed {
            control.pose.clone_from(&self.settings.control.pose);
        }
        control
    }

    /// What the script of a scene asks of the actuators is what is told of them, and what a person takes over. Returns whether it asks for anything.
    pub(super) fn heed_script(&mut self) -> bool {
        let asks = self.now.input.control != self.settings.control;
        if asks {
            self.settings.control = self.control_of(&self.now.input.control);
        }
        asks
    }

    /// Bodies that a recorded directed step pinned. A recording does not tell; the weight does.
    pub(super) fn directed_pins(&self) -> impl Iterator<Item = (u32, Pin)> {
        let pin = |goal: &Goal| match goal.aim {
            Aim::Position { target: at, .. } if goal.mark == Mark::Cursor && goal.weight == PIN_WEIGHT => {
                Some((goal.body.0, Pin { at, turn: None, level: LevelTold::of(goal.level) }))
            }
            _ => None,
        };
        self.now.input.control.goals.iter().filter_map(pin)
    }

    /// Whether a change concerns keyframes or the target pose alone. They belong to the scene rather than to a step: making them begins no take.
    pub(super) fn is_keying(&self, before: &Change, change: &Change) -> bool {
        let (Some(was), Some(told)) = (&before.control, &change.control) else { return false };
        let (keyframes, pose) = (was.keyframes.clone(), was.pose.clone());
        let same = ControlTold { keyframes, pose, ..(**told).clone() };
        was != told && **was == same && *before == Change { control: Some(Box::new(same)), ..change.clone() }
    }

    /// What such a change makes stays when one goes to another step.
    pub(super) fn keep_made(&mut self, before: &Change, change: &Change) {
        let (Some(was), Some(told)) = (&before.control, &change.control) else { return };
        self.keyed |= was.keyframes != told.keyframes;
        self.aimed |= was.pose != told.pose;
    }

    /// Takes of a change what such a change makes, and nothing else of it.
    pub(super) fn put_keys(&mut self, before: &Change, change: &Change) {
        let Some(control) = &change.control else { return };
        let (keyframes, pose) = (control.keyframes.clone(), control.pose.clone());
        let told = ControlTold { keyframes, pose, ..self.control_told() };
        self.keep_made(before, change);
        self.apply_control(&told);
    }

    /// Whether a change asks for keyframes where the present recorded step was played by others.
    pub(super) fn has_other_keys(&self, change: &Change) -> bool {
        let plays = change.control.as_ref().is_some_and(|told| told.mode == ModeTold::Keyframes);
        let (own, played) = (&self.settings.control.keyframes, &self.now.input.control.keyframes);
        plays && self.is_replaying() && (&own.times, &own.positions) != (&played.times, &played.positions)
    }

    /// Whether the present take left another one here and has no step yet.
    pub(super) fn is_new_take(&self) -> bool {
        self.timeline.takes()[self.take].fork.is_some_and(|fork| fork.step == self.now.step)
    }

    /// A take that was just begun is named by the style that it is directed in.
    pub(super) fn name_by_style(&mut self) {
        let style = match (self.settings.control.mode, self.settings.control.style) {
            (Mode::Off, _) => return,
            (Mode::Landing, _) => "landing",
            (Mode::Keyframes, _) => "keyframes",
            (Mode::Goals, Style::LeastAcceleration) => "least acceleration",
            (Mode::Goals, Style::LeastTorque) => "least torque",
            (Mode::Goals, Style::LeastVelocity) => "least velocity",
        };
        let taken = self.timeline.takes().iter().enumerate().any(|(k, take)| k != self.take && take.name == style);
        let name = if taken { format!("{style} {}", self.take + 1) } else { style.to_owned() };
        self.timeline.rename(self.take, name);
    }

    /// Whether pulls are goals and no forces.
    pub(super) fn is_directed(&self) -> bool {
        self.now.input.control.mode != Mode::Off
    }

    /// Adds the present pose as a keyframe at a time, now unless told otherwise.
    pub(super) fn add_key(&mut self, time: Option<f64>) -> Result<(), Refused> {
        let coordinates = Coordinates::of(&self.scene.model, &self.now.state);
        let time = time.unwrap_or(self.now.state.time);
        let mut told = self.control_told();
        told.keyframes.retain(|key| key.time != time);
        told.keyframes.push(KeyTold { time, positions: coordinates.positions });
        told.keyframes.sort_by(|a, b| a.time.total_cmp(&b.time));
        self.set(Change::of_control(told))
    }

    /// Takes the present pose for the target pose.
    pub(super) fn take_target_pose(&mut self) -> Result<(), Refused> {
        let pose = Coordinates::of(&self.scene.model, &self.now.state).positions;
        self.set(Change::of_control(ControlTold { pose, ..self.control_told() }))
    }

    /// Takes a keyframe away.
    pub(super) fn remove_key(&mut self, key: usize) -> Result<(), Refused> {
        let mut told = self.control_told();
        if key >= told.keyframes.len() {
            return Err(("studio/value", format!("there is no keyframe {key}")));
        }
        told.keyframes.remove(key);
        if told.keyframes.is_empty() && told.mode == ModeTold::Keyframes {
            told.mode = ModeTold::Goals;
        }
        self.set(Change::of_control(told))
    }
}

/// A pin counts more than a pull at its level, and is told from it by this.
const PIN_WEIGHT: f64 = 4.0;
const MOST_GOALS: usize = 64;
const MOST_KEYS: usize = 1000;
/// Keyframes lie within a day.
const MOST_SECONDS: f64 = 86_400.0;
