//! Flesh after bones: the loose scheme [Kim 2008, with implicit flesh].
//!
//! A solver moves the bones with what flesh does to them at the start of the part, as wrenches from outside; then the flesh is solved with its bones led to where they are.
//! What bones feel is a part late: with flesh that is heavy or stiff beside its bones this gains energy, whatever the solver. It is there for comparison, and serves any solver.

use super::Flesh;
use super::implicit::{Implicit, Settled};
use crate::input::Input;
use crate::maths::{Pose, Wrench};
use crate::model::{BodyId, Model, State};

/// Scratch of the loose scheme.
pub(crate) struct Loose {
    implicit: Implicit,
    /// The input with the wrenches of flesh.
    pub(crate) input: Input,
    wrenches: Vec<Wrench>,
    poses: Vec<Pose>,
}

impl Loose {
    pub(crate) fn new(model: &Model, flesh: &Flesh) -> Loose {
        let bodies = model.bodies().len();
        Loose {
            implicit: Implicit::new(model, flesh),
            input: Input::default(),
            wrenches: vec![Wrench::ZERO; bodies],
            poses: vec![Pose::IDENTITY; bodies],
        }
    }

    /// Makes `input` the input with what flesh does to bodies at the start of a part: its length, and how long before the end of the step it ends.
    pub(crate) fn load(&mut self, model: &Model, flesh: &Flesh, input: &Input, state: &State, part: (f64, f64)) {
        self.implicit.begin(model, flesh, input, state, part);
        self.implicit.reactions(flesh, state, &mut self.wrenches);
        self.input.copy_from(input);
        for (i, wrench) in self.wrenches.iter().enumerate() {
            if *wrench != Wrench::ZERO {
                self.input.wrenches.push((BodyId(i as u32), *wrench));
            }
        }
    }

    /// Moves the nodes of a state whose bodies are at the end of the part.
    pub(crate) fn lead(&mut self, flesh: &Flesh, state: &mut State) -> Settled {
        for (pose, body) in self.poses.iter_mut().zip(&state.bodies) {
            *pose = body.pose();
        }
        self.implicit.settle(flesh, &self.poses);
        self.implicit.commit_led(state);
        self.implicit.settled
    }
}
