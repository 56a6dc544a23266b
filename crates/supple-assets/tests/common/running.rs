//! A scene being run with its tones.

use supple::tone::Tones;
use supple::{Input, Scene, State, Work, step};

pub(crate) struct Running {
    pub(crate) scene: Scene,
    pub(crate) tones: Tones,
    pub(crate) state: State,
    pub(crate) input: Input,
    pub(crate) work: Work,
}

impl Running {
    pub(crate) fn new(scene: Scene) -> Running {
        let (tones, state, input) = (scene.tones(), scene.state.clone(), scene.input.clone());
        Running { tones, state, input, work: Work::new(&scene.model), scene }
    }

    pub(crate) fn step(&mut self) {
        self.scene.direct(self.state.time, &mut self.input);
        self.tones.direct(&self.scene.model, &self.state, &[], &mut self.input);
        if let Err(error) = step(&self.scene.model, &self.input, &mut self.state, &mut self.work) {
            panic!("{} at {}: {error}", self.scene.name, self.state.time);
        }
    }
}
