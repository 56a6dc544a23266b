//! Articulated characters that move by physics: bones, stiff joints, limits, motors, in time linear in their number.
//!
//! Five things in memory: a [`Model`] (constant), a [`State`] (all that is needed to go on), an [`Input`] (what may
//! differ from step to step), a [`Work`] (scratch) and a [`Report`] (what a step measured). One function: [`step()`].
//!
//! ```
//! use supple::glam::DVec3;
//! use supple::*;
//!
//! // A stiff rod of two links, held by one end.
//! let mut builder = ModelBuilder::new();
//! let mut last = BodyRef::World;
//! for (i, name) in ["upper", "lower"].into_iter().enumerate() {
//!     let x = 0.1 * i as f64;
//!     let link = BodySpec::new(name).shape(Shape::cuboid(0.1, 0.04, 0.04), 1000.0).pose(Pose::at(DVec3::new(x + 0.05, 0.0, 0.0)));
//!     let body = builder.body(link);
//!     builder.joint(JointSpec::new(format!("{name} joint"), JointMask::BALL, body, last).at(DVec3::new(x, 0.0, 0.0)).spring(10.0, 0.1));
//!     last = BodyRef::Id(body);
//! }
//! let model = builder.build()?;
//!
//! let (mut state, mut work, input) = (model.start(), Work::new(&model), Input::default());
//! for _ in 0..60 {
//!     let report = step(&model, &input, &mut state, &mut work)?;
//!     assert!(report.max_joint_gap < 1e-3);
//! }
//! assert!((state.time - 1.0).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod contact;
pub mod control;
pub mod creature;
pub mod flesh;
pub mod forces;
pub mod input;
mod loads;
pub mod maths;
pub mod measure;
pub mod model;
pub mod run;
pub mod scenes;
mod servo;
pub mod settings;
pub mod skin;
pub mod solver;
pub mod step;
pub mod timeline;
pub mod tone;
pub mod watch;

pub use contact::{Contact, ContactKey, ContactWork, Other, Penalty};
pub use control::{Control, ControlReport};
pub use flesh::{Diagonalize, Flesh, FleshMaterial, FleshSpec};
pub use glam;
pub use input::{Contacts, Drag, Drive, FleshCoupling, Grip, Input, JointInput, Target};
pub use loads::{BodyLoad, JointLoad};
pub use maths::{Pose, Twist, Wrench};
pub use model::{
    AnchorSpring, AnchorSpringSpec, Body, BodyId, BodyRef, BodySpec, BodyState, ContactMemory, Coupling, Groups,
    HeightField, Joint, JointId, JointMask, JointSpec, JointState, Limits, Material, Model, ModelBuilder, ModelError,
    Motor, NodeState, Obstacle, ObstacleId, ObstacleShape, ObstacleSpec, Problem, Range, Rest, RotationSpring,
    ServoTarget, Shape, SlideSpring, State, Stops, SwingEllipse, Tracker, TrackerId, TrackerSpec, Warning,
};
pub use run::{Grade, Quality, Reason, Run};
pub use scenes::{Ending, Guest, Motion, Scene, SceneError, Seated, States, Thing, ThingKind};
pub use settings::{SETTINGS, Setting};
pub use skin::{PoseMap, Skin, SkinBone, SkinMaterial, SkinSettings, SkinSpec};
pub use solver::assembly::AssemblyReport;
pub use solver::{Assembly, ContactLaw, Impulse, Reduced, Solver, Tree, TreeScheme};
pub use step::{
    Cause, CrowdError, FIGURES, Figure, Merge, Report, Rules, StepError, StepRule, Trouble, Work, assemble, step,
    step_crowd,
};
pub use timeline::{Fork, Moment, Take, TakeError, Timeline};
pub use tone::{Tone, Tones};
pub use watch::{Stage, StageNanos, Watch};

/// The program of the README, kept running.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
