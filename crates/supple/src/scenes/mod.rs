//! Built-in scenes, shared by tests, benches, examples, command line and studio.

use crate::input::Input;
use crate::model::{Model, State};

/// A model with a start and a script that directs it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// As asked for: `chain:100,stiffness=10`.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Where it starts.
    pub state: State,
    /// The input at the start.
    pub input: Input,
}

/// Why a scene could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// No scene has this name.
    #[error("there is no scene \"{name}\": `supple scenes` lists them [scene/unknown]")]
    Unknown {
        /// As given.
        name: String,
    },
}
