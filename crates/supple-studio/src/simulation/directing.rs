//! Directing: the character follows pulls by its own actuators, or keyframes, or lands softly.

use super::{Refused, Stage};
use crate::control::{ControlTold, KeyTold, ModeTold, kept};
use crate::protocol::Change;
use supple::control::{Aim, Control, Goal, Level, Mark, Mode, Style};
use supple::glam::DVec3;
use supple::model::Coordinates;
use supple::{Reduced, Solver};

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
        let positions = Coordinates::new(model).positions.len();
        if told.keyframes.iter().any(|key| key.positions.len() != positions) {
            return bad(format!("a keyframe needs {positions} positions: ask for one with `key`"));
        }
        let mut input = self.now.input.clone();
        input.control = told.control(model, &self.settings.control);
        input.grips.clear();
        input.solver = match told.mode {
            ModeTold::Off if self.settings.control.mode != Mode::Off => self.undirected_by,
            ModeTold::Off => self.settings.solver,
            _ => directed(self.settings.solver),
        };
        input
            .control
            .check(model)
            .and_then(|()| input.solver.takes(model, &input))
            .or_else(|error| bad(error.to_string()))
    }

    /// Changes what is asked of the actuators. Solver `reduced` carries it out; what moved the scene before moves it again after.
    pub(super) fn apply_control(&mut self, told: &ControlTold) {
        self.drag_level = told.drag_level;
        let control = told.control(&self.scene.model, &self.settings.control);
        let (was, is) = (self.settings.control.mode != Mode::Off, control.mode != Mode::Off);
        match (was, is) {
            (false, true) => {
                self.undirected_by = if self.is_posing() { self.moved_by } else { self.settings.solver };
                self.settings.solver = directed(self.settings.solver);
            }
            (true, false) if matches!(self.settings.solver, Solver::Reduced(_)) => {
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
        for (&body, &at) in &self.pins {
            let aim = Aim::Position { target: at, velocity: DVec3::ZERO };
            goals
                .push(Goal { mark: Mark::Cursor, ..Goal::new(supple::BodyId(body), DVec3::ZERO, aim, Level::Primary) });
        }
    }

    /// The control of a recorded input without what hands did in it, and with the keyframes that were made by hand.
    pub(super) fn control_of(&self, control: &Control) -> Control {
        let mut control = Control { goals: kept(control).copied().collect(), ..control.clone() };
        if self.keyed {
            control.keyframes.clone_from(&self.settings.control.keyframes);
        }
        control
    }

    /// What the script of a scene asks of the actuators is what is told of them, and what a person takes over.
    pub(super) fn heed_script(&mut self) {
        if self.now.input.control != self.settings.control {
            self.settings.control = self.control_of(&self.now.input.control);
        }
    }

    /// Bodies that a recorded directed step pinned.
    pub(super) fn directed_pins(&self) -> impl Iterator<Item = (u32, DVec3)> {
        let pin = |goal: &Goal| match goal.aim {
            Aim::Position { target, .. } if goal.mark == Mark::Cursor && goal.level == Level::Primary => {
                (goal.point == DVec3::ZERO).then_some((goal.body.0, target))
            }
            _ => None,
        };
        self.now.input.control.goals.iter().filter_map(pin)
    }

    /// Whether a change concerns keyframes alone. They belong to the scene rather than to a step: making them begins no take.
    pub(super) fn is_keying(&self, before: &Change, change: &Change) -> bool {
        let (Some(was), Some(told)) = (&before.control, &change.control) else { return false };
        let same = ControlTold { keyframes: was.keyframes.clone(), ..(**told).clone() };
        was != told && **was == same && *before == Change { control: Some(Box::new(same)), ..change.clone() }
    }

    /// Takes the keyframes of a change, and nothing else of it.
    pub(super) fn put_keys(&mut self, change: &Change) {
        let Some(control) = &change.control else { return };
        let told = ControlTold { keyframes: control.keyframes.clone(), ..self.control_told() };
        self.keyed = true;
        self.apply_control(&told);
    }

    /// Whether a change asks for keyframes where the present recorded step was played by others.
    pub(super) fn has_other_keys(&self, change: &Change) -> bool {
        let plays = change.control.as_ref().is_some_and(|told| told.mode == ModeTold::Keyframes);
        plays && self.is_replaying() && self.settings.control.keyframes != self.now.input.control.keyframes
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

/// Solver `reduced`, with the settings it has if it moves the scene already.
fn directed(solver: Solver) -> Solver {
    match solver {
        Solver::Reduced(_) => solver,
        _ => Solver::Reduced(Reduced::default()),
    }
}

const MOST_GOALS: usize = 64;
const MOST_KEYS: usize = 1000;
