//! Built-in scenes, shared by tests, benches, examples, command line and studio.
//!
//! A scene is asked for by name, with parameters after a colon: the size first, as a bare number, then `key=value`.
//! [`catalogue`] lists the scenes with their parameters.

mod bar;
mod car;
mod chain;
mod creatures;
mod crowd_of_two;
mod grasp;
mod guests;
mod hand;
mod lattice;
mod loops;
mod motion;
mod parameters;
mod pendulum;
mod plant;
mod plate;
mod ragdoll;
mod robot;
mod skins;
mod stack;
mod strand;
mod takes;
#[cfg(test)]
mod tests;
mod things;
mod tree;
mod walker;

use crate::input::{Input, Target};
use crate::maths::{Pose, Twist};
use crate::measure;
use crate::model::{Model, ModelError, State};
use crate::settings::plain;
use crate::solver::assembly::AssemblyReport;
use crate::solver::{Assembly, Solver};
use crate::step::{StepError, Work, assemble};
use crate::tone::{Change, Hits, Play, ToneError, Tones};
use glam::{DMat3, DQuat, DVec3};
pub use guests::{Guest, Seated};
pub use motion::{Ending, Happenings, Motion, Moved, Pull, Push};
use parameters::Parameters;
use std::sync::Arc;
pub use things::{Thing, ThingKind, thing_names};

/// A model with a start and a script that directs it.
///
/// ```
/// use supple::*;
/// let scene = Scene::parse("chain:100,stiffness=5")?;
/// let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
/// for _ in 0..10 {
///     scene.direct(state.time, &mut input);
///     step(&scene.model, &input, &mut state, &mut work)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scene {
    /// As asked for: `chain:100,stiffness=10`.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Where it starts.
    pub state: State,
    /// The input of the first step.
    pub input: Input,
    /// How many of its bodies, the last, are things.
    things: usize,
    /// Characters beside its own, in the order of their bodies, which come before those of things.
    guests: Vec<Seated>,
    /// The scene before things were put into it, where that was done.
    bare: Option<Arc<Scene>>,
    /// How its bodies hold themselves as time passes.
    states: States,
    script: Script,
}

/// How the bodies of a scene hold themselves as time passes: to be given to its [`Scene::tones`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct States {
    /// Changes, with their times \[s\].
    pub keys: Vec<(f64, Change)>,
    /// How blows are answered; `None`: they are not.
    pub hits: Option<Hits>,
}

impl States {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == States::default()
    }
}

/// What comes from outside as time passes.
#[derive(Clone, Debug)]
enum Script {
    /// Nothing.
    Still,
    /// Trackers pull to where they were at the start.
    Hold(Vec<Option<Target>>),
    /// A torque at the beginning.
    Spin(tree::Spin),
    /// The root of a strand is shaken.
    Shake(strand::Shake),
    /// Wind on leaves.
    Wind(plant::Wind),
    /// A recorded hand is tracked.
    Grasp(hand::Grasp),
    /// A body is pulled along a path.
    Pull(robot::Pull),
    /// The corner of a lattice is led along a path.
    Lead(lattice::Drag),
    /// A plate is shaken by hand.
    ShakePlate(plate::Shake),
    /// A recorded motion is followed.
    Follow(motion::Follow),
    /// Cranks are turned.
    Walk(walker::Walk),
    /// Wheels are driven and steered.
    Drive(car::Drive),
    /// A hand closes, lifts and shakes.
    Lift(grasp::Lift),
    /// Bodies are pushed and pulled for a while, trackers let go, beside what another script gives.
    Happening(Box<Script>, motion::Happening),
    /// A wave runs along a body.
    Wave(creatures::Wave),
    /// Characters in soft skin.
    Show(skins::Show),
    /// A take directed by hand.
    Directed(Box<takes::Directed>),
}

/// A built-in scene: what it is called and what it takes.
#[derive(Clone, Copy, Debug)]
pub struct SceneInfo {
    /// What stands before the colon.
    pub name: &'static str,
    /// What may stand after the colon, with the default values; empty when the scene takes no parameters.
    pub parameters: &'static str,
    /// The unit of each parameter, in the order of `parameters`; empty for one that has none.
    pub units: &'static [&'static str],
    /// A line about it.
    pub summary: &'static str,
    /// Takes that the parameter `take` may ask for, with a line about each; the first is the scene's own motion. Empty when it has none.
    pub takes: &'static [(&'static str, &'static str)],
    build: fn(&Parameters<'_>) -> Result<Scene, SceneError>,
}

/// Of `chain` and `whip`.
const CHAIN_UNITS: &[&str] = &["links", "N·m/rad", "N·m·s/rad", "link masses"];

static CATALOGUE: [SceneInfo; 35] = [
    SceneInfo {
        name: "pendulum",
        parameters: "",
        units: &[],
        summary: "a rod of 1 m on a hinge, released horizontal",
        takes: &[],
        build: pendulum::single,
    },
    SceneInfo {
        name: "double_pendulum",
        parameters: "",
        units: &[],
        summary: "two rods of 1 m on hinges, released horizontal",
        takes: &[],
        build: pendulum::double,
    },
    SceneInfo {
        name: "top",
        parameters: "",
        units: &[],
        summary: "a heavy top on a ball joint, spinning at 60 rad/s",
        takes: &[],
        build: pendulum::top,
    },
    SceneInfo {
        name: "chain",
        parameters: "20,stiffness=10,damping=0.01,tip_mass=1",
        units: CHAIN_UNITS,
        summary: "links on stiff ball joints, released horizontal",
        takes: &[],
        build: chain::chain,
    },
    SceneInfo {
        name: "whip",
        parameters: "20,stiffness=0,damping=0,tip_mass=1",
        units: CHAIN_UNITS,
        summary: "links on ball joints that start waving",
        takes: &[],
        build: chain::whip,
    },
    SceneInfo {
        name: "strand",
        parameters: "40",
        units: &["links"],
        summary: "a curled hair whose root is shaken",
        takes: &[],
        build: strand::strand,
    },
    SceneInfo {
        name: "plant",
        parameters: "",
        units: &[],
        summary: "a stem with branches and leaves in the wind",
        takes: &[],
        build: plant::plant,
    },
    SceneInfo {
        name: "tree",
        parameters: "127",
        units: &["bars"],
        summary: "a binary tree of bars like a mobile, set turning by a torque [Bender 2006, §5]",
        takes: &[],
        build: tree::tree,
    },
    SceneInfo {
        name: "star",
        parameters: "127",
        units: &["bars"],
        summary: "the bars of the tree, all jointed to the top one [Bender 2006, §5]",
        takes: &[],
        build: tree::star,
    },
    SceneInfo {
        name: "hand",
        parameters: "track=1",
        units: &[""],
        summary: "a hand of 16 bones that follows a hand-written grasp; track=0 lets the fingers hang",
        takes: &[],
        build: hand::hand,
    },
    SceneInfo {
        name: "robot",
        parameters: "torques=on",
        units: &[""],
        summary: "a humanoid pulled by the left hand",
        takes: &[],
        build: robot::robot,
    },
    SceneInfo {
        name: "bar",
        parameters: "",
        units: &[],
        summary: "a bar whose ends belong onto two discs, far from there at the start [Faure 1998, fig. 2]",
        takes: &[],
        build: bar::bar,
    },
    SceneInfo {
        name: "circle",
        parameters: "",
        units: &[],
        summary: "a particle on a circle without forces [Faure 1998, fig. 4]",
        takes: &[],
        build: bar::circle,
    },
    SceneInfo {
        name: "crowd_of_two",
        parameters: "",
        units: &[],
        summary: "two characters of different size to be bound at hands and feet [Faure 1998, fig. 3]",
        takes: &[],
        build: crowd_of_two::crowd_of_two,
    },
    SceneInfo {
        name: "lattice",
        parameters: "",
        units: &[],
        summary: "a lattice of 56 bars with 32 loops, posed by a corner [Faure 1998, fig. 5]",
        takes: &[],
        build: lattice::lattice,
    },
    SceneInfo {
        name: "plate",
        parameters: "",
        units: &[],
        summary: "a plate with nine strings of links, shaken by hand [Faure 1998, fig. 6]",
        takes: &[],
        build: plate::plate,
    },
    SceneInfo {
        name: "fourbars",
        parameters: "4",
        units: &["four-bars"],
        summary: "a row of four-bar linkages that share their rods",
        takes: &[],
        build: loops::fourbars,
    },
    SceneInfo {
        name: "ring",
        parameters: "16,damping=0.002",
        units: &["links", "N·m·s/rad"],
        summary: "a closed chain hung from one point, level at the start",
        takes: &[],
        build: loops::ring,
    },
    SceneInfo {
        name: "ladder",
        parameters: "8,damping=0.01",
        units: &["rungs", "N·m·s/rad"],
        summary: "a rope ladder hung from two points, level at the start",
        takes: &[],
        build: loops::ladder,
    },
    SceneInfo {
        name: "stack",
        parameters: "10,top_mass=1",
        units: &["boxes", "kg"],
        summary: "boxes of 1 kg on one another; the top one may be heavy",
        takes: &[],
        build: stack::stack,
    },
    SceneInfo {
        name: "block",
        parameters: "friction=0.3,speed=3,slope=0,height=0,restitution=0",
        units: &["", "m/s", "degrees", "m", ""],
        summary: "a box of 1 kg that slides, sticks or bounces on a slope",
        takes: &[],
        build: stack::block,
    },
    SceneInfo {
        name: "car",
        parameters: "speed=4",
        units: &["m/s"],
        summary: "a car with servos, springs and steering rods that drives over bumps [Bender 2006, fig. 9]",
        takes: &[],
        build: car::car,
    },
    SceneInfo {
        name: "walker",
        parameters: "turns=0.6",
        units: &["1/s"],
        summary: "a walking machine of six legs, each with a crank, a slider and a loop [Bender 2006, fig. 9]",
        takes: &[],
        build: walker::walker,
    },
    SceneInfo {
        name: "ragdoll",
        parameters: "",
        units: &[],
        summary: "the robot limp, thrown down stairs",
        takes: &[],
        build: ragdoll::ragdoll,
    },
    SceneInfo {
        name: "pile",
        parameters: "5",
        units: &["ragdolls"],
        summary: "ragdolls dropped onto one another",
        takes: &[],
        build: ragdoll::pile,
    },
    SceneInfo {
        name: "servos",
        parameters: "kp=1e4",
        units: &["N·m/rad"],
        summary: "the robot on its feet, every joint a servo",
        takes: &[],
        build: robot::servos,
    },
    SceneInfo {
        name: "grasp",
        parameters: "",
        units: &[],
        summary: "the hand closes on a box, lifts it by friction and shakes it",
        takes: &[],
        build: grasp::grasp,
    },
    SceneInfo {
        name: "worm",
        parameters: "take=crawl,fine=1,stiffness=100000,ratio=10",
        units: FLESH_UNITS,
        summary: "a worm of seven bones in flesh that sends waves along its body [Kim 2008, fig. 7]",
        takes: takes::WORM,
        build: creatures::worm,
    },
    SceneInfo {
        name: "fish",
        parameters: "take=beat,fine=1,stiffness=100000,ratio=10",
        units: FLESH_UNITS,
        summary: "a fish on the ground that beats its tail [Kim 2008, fig. 8]",
        takes: takes::FISH,
        build: creatures::fish,
    },
    SceneInfo {
        name: "finger",
        parameters: "take=roll,fine=1,stiffness=100000,ratio=10",
        units: FLESH_UNITS,
        summary: "a finger with a soft tip, and a ball to roll [Kim 2008, fig. 9]",
        takes: takes::FINGER,
        build: creatures::finger,
    },
    SceneInfo {
        name: "tube",
        parameters: "5,stiffness=100000,friction=0.5,influences=2,map=centres",
        units: &["bones", "Pa", "", "bones", ""],
        summary: "a soft tube that falls over a bar [Galoppo 2007, table 1]",
        takes: &[],
        build: skins::tube,
    },
    SceneInfo {
        name: "tubes",
        parameters: SKIN_PARAMETERS,
        units: SKIN_UNITS,
        summary: "three soft tubes across one another, their ends led about [Galoppo 2007, fig. 6]",
        takes: &[],
        build: skins::tubes,
    },
    SceneInfo {
        name: "snake",
        parameters: SKIN_PARAMETERS,
        units: SKIN_UNITS,
        summary: "a soft snake of 16 bones, touched by a fish [Galoppo 2007, fig. 3, 5]",
        takes: &[],
        build: skins::snake,
    },
    SceneInfo {
        name: "deer",
        parameters: "1748,stiffness=40000,friction=0.5,map=centres,bird=1,animated=1",
        units: &["vertices", "Pa", "", "", "", ""],
        summary: "a deer of 34 bones in soft skin, and a bird that lands on it [Galoppo 2007, fig. 1]",
        takes: &[],
        build: skins::deer,
    },
    SceneInfo {
        name: "soft_hand",
        parameters: SKIN_PARAMETERS,
        units: SKIN_UNITS,
        summary: "the hand in soft skin, pressed on a table [Hernández 2011, fig. 1]",
        takes: &[],
        build: skins::soft_hand,
    },
];

/// Scenes with skin: how stiff, how rough, and how bones carry it.
const SKIN_PARAMETERS: &str = "stiffness=100000,friction=0.5,map=centres";
const SKIN_UNITS: &[&str] = &["Pa", "", ""];

/// Scenes with flesh: the take, how fine, how stiff, and the mass of flesh in bones' masses.
const FLESH_UNITS: &[&str] = &["", "", "Pa", ""];

/// The built-in scenes.
pub fn catalogue() -> &'static [SceneInfo] {
    &CATALOGUE
}

/// Why a scene could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SceneError {
    /// No scene has this name.
    #[error("there is no scene \"{name}\": `supple scenes` lists them [scene/unknown]")]
    Unknown {
        /// As given.
        name: String,
    },
    /// A parameter is not known, not readable or out of range.
    #[error("parameter \"{parameter}\" of scene \"{scene}\": {what} [scene/parameter]")]
    Parameter {
        /// Name of the scene.
        scene: &'static str,
        /// Its key as given, or `size`.
        parameter: String,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// The parameters make a model that cannot be.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl SceneError {
    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            SceneError::Unknown { .. } => "scene/unknown",
            SceneError::Parameter { .. } => "scene/parameter",
            SceneError::Model(_) => "scene/model",
        }
    }
}

impl Scene {
    /// The state to run from: that of the scene or, when its joints are open, one in which they are brought together, with what that took.
    pub fn assembled_start(&self) -> Result<(State, Option<AssemblyReport>), StepError> {
        let settings = Assembly { outer: 100, ..Assembly::default() };
        let gap = measure::joint_gap(&self.model, &self.state);
        let mut state = self.state.clone();
        if gap.distance <= settings.tolerance && gap.tilt <= settings.tolerance {
            return Ok((state, None));
        }
        let report = assemble(&self.model, &settings, &[], &mut state, &mut Work::new(&self.model))?;
        Ok((state, Some(report)))
    }

    /// The scene asked for, such as `hand` or `chain:100,stiffness=10,damping=0.01`.
    pub fn parse(text: &str) -> Result<Scene, SceneError> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let info = CATALOGUE
            .iter()
            .find(|info| info.name == name)
            .ok_or_else(|| SceneError::Unknown { name: name.to_owned() })?;
        let mut scene = (info.build)(&Parameters::parse(info, rest)?)?;
        scene.name = text.to_owned();
        scene.script.direct(0.0, &mut scene.input);
        Ok(scene)
    }

    /// A scene from its parts, such as a file gives them. Trackers keep pulling to the targets of `input`; nothing else directs it. Its name
    /// is what it was asked for.
    pub fn from_parts(name: impl Into<String>, model: Model, state: State, input: Input) -> Scene {
        let script = Script::Hold(input.targets.clone());
        Scene {
            name: name.into(),
            model,
            state,
            input,
            things: 0,
            guests: Vec::new(),
            bare: None,
            states: States::default(),
            script,
        }
    }

    /// The same scene, its trackers following a motion of all its bodies, in order, while the springs of its joints rest. `None` when the
    /// motion has another number of bodies.
    pub fn follow(mut self, motion: Arc<Motion>) -> Option<Scene> {
        self.script = Script::Follow(motion::Follow::new(&self.model, motion)?);
        self.script.direct(self.state.time, &mut self.input);
        Some(self)
    }

    /// How the bodies hold themselves at the start: following, where the scene follows a motion; elsewhere as the script has it. To be
    /// directed after [`Scene::direct`].
    pub fn tones(&self) -> Tones {
        let guests: usize = self.guests.iter().map(|guest| guest.bodies.len()).sum();
        let figure = self.model.bodies().len() - self.things - guests;
        let following = match &self.script {
            Script::Follow(follow) => follow.tones(&self.model, figure),
            _ => None,
        };
        let own = following.unwrap_or_else(|| Tones::new(&self.model, figure, self.input.wrenches.len()));
        self.guests.iter().fold(own, |tones, guest| {
            let clip = guest.clip.clone().map(|clip| Play::new(clip, self.state.time));
            // a clip of other bodies was refused where the guest came in
            let joined = tones.clone().joined_by(&self.state, guest.bodies.len(), clip, guest.tone);
            joined.unwrap_or(tones)
        })
    }

    /// The same scene with changes of state to come, or why one of them cannot be.
    pub fn with_states(mut self, states: States) -> Result<Scene, ToneError> {
        let mut tones = self.tones();
        for (at, change) in &states.keys {
            if !(at.is_finite() && *at >= 0.0) {
                let at = plain(*at);
                return Err(ToneError::Value { what: format!("the time of a state is {at}: give seconds, 0 or more") });
            }
            tones.change(&self.model, &self.state, change)?;
        }
        if let Some(hits) = states.hits {
            hits.check()?;
        }
        self.states = states;
        Ok(self)
    }

    /// The changes of state to come.
    pub fn states(&self) -> &States {
        &self.states
    }

    /// The tones with the changes to come; `None` when there are none and the script alone directs it.
    pub fn stated_tones(&self) -> Option<Tones> {
        if self.states.is_empty() && self.guests.is_empty() {
            return None;
        }
        let mut tones = self.tones().with_keys(self.states.keys.clone());
        tones.hits = self.states.hits;
        Some(tones)
    }

    /// The same scene with happenings beside what directs it.
    pub fn with(mut self, happenings: Happenings) -> Scene {
        let happening = motion::Happening::new(happenings, &self.input);
        self.script = Script::Happening(Box::new(self.script), happening);
        self.script.direct(self.state.time, &mut self.input);
        self
    }

    /// A scene that starts as its model does.
    fn new(model: Model, script: Script) -> Scene {
        Scene {
            name: String::new(),
            state: model.start(),
            model,
            input: Input::default(),
            things: 0,
            guests: Vec::new(),
            bare: None,
            states: States::default(),
            script,
        }
    }

    /// What a person may steer the scene by, each from −1 to 1; empty when it has nothing to steer.
    pub fn controls(&self) -> &'static [&'static str] {
        match self.script {
            Script::Drive(_) => &["drive", "turn"],
            _ => &[],
        }
    }

    /// Sets the targets of the scene's servos in `input` from the values of its [`controls`](Scene::controls), in place of its script.
    /// What is beyond −1 and 1 is cut off; missing values are 0.
    pub fn steer(&self, values: &[f64], input: &mut Input) {
        if let Script::Drive(drive) = &self.script {
            let value = |k: usize| values.get(k).copied().filter(|x| x.is_finite()).unwrap_or(0.0).clamp(-1.0, 1.0);
            drive.steer(value(0), value(1), input);
        }
    }

    /// Sets what the scene's script gives in `input` (targets, drags, grips, wrenches) for the step that starts at `time` and
    /// lasts `input.dt`. Its entries come first in their lists; entries after them are left alone.
    ///
    /// Allocates nothing once the lists have their size, as those of [`Scene::input`] have.
    pub fn direct(&self, time: f64, input: &mut Input) {
        self.script.direct(time, input);
    }
}

impl Script {
    fn direct(&self, time: f64, input: &mut Input) {
        match self {
            Script::Still => {}
            Script::Hold(targets) => entries(&mut input.targets, targets.len(), None).copy_from_slice(targets),
            Script::Spin(spin) => spin.direct(time, input),
            Script::Shake(shake) => shake.direct(time, input),
            Script::Wind(wind) => wind.direct(time, input),
            Script::Grasp(grasp) => grasp.direct(time, input),
            Script::Pull(pull) => pull.direct(time, input),
            Script::Lead(drag) => drag.direct(time, input),
            Script::ShakePlate(shake) => shake.direct(time, input),
            Script::Follow(follow) => follow.direct(time, input),
            Script::Walk(walk) => walk.direct(time, input),
            Script::Drive(drive) => drive.direct(time, input),
            Script::Lift(lift) => lift.direct(time, input),
            Script::Happening(script, happening) => {
                script.direct(time, input);
                happening.direct(time, input);
            }
            Script::Wave(wave) => wave.direct(time, input),
            Script::Show(show) => show.direct(time, input),
            Script::Directed(directed) => directed.direct(time, input),
        }
    }
}

/// The scene moved by solver `assembly` unless asked otherwise: it has loops, starts broken or holds bodies by grips.
fn by_assembly(mut scene: Scene) -> Scene {
    scene.input.solver = Solver::Assembly(Assembly::default());
    scene
}

/// The first `count` entries of a list, made if they are missing.
fn entries<T: Clone>(list: &mut Vec<T>, count: usize, missing: T) -> &mut [T] {
    if list.len() < count {
        list.resize(count, missing);
    }
    &mut list[..count]
}

/// The damping that makes a spring of this stiffness on this inertia critical, times `ratio`.
fn damping(ratio: f64, stiffness: f64, inertia: f64) -> f64 {
    2.0 * ratio * (stiffness * inertia).sqrt()
}

/// The rotation whose X is along `x` and whose Y is as near to `y` as can be.
fn frame_along(x: DVec3, y: DVec3) -> DQuat {
    let x = x.normalize();
    let y = y.reject_from_normalized(x).normalize();
    DQuat::from_mat3(&DMat3::from_cols(x, y, x.cross(y)))
}

/// A frame that moves: its place in the world, the velocity of its origin and its angular velocity.
#[derive(Clone, Copy, Debug)]
struct Moving {
    pose: Pose,
    velocity: Twist,
}

impl Moving {
    /// A frame within this one that turns about its origin with angular velocity `rate`, in this one's axes \[rad/s\].
    fn then(&self, inner: Pose, rate: DVec3) -> Moving {
        Moving {
            pose: self.pose.then(inner),
            velocity: Twist::new(
                self.velocity.at(self.pose.rotation * inner.translation),
                self.velocity.angular + self.pose.rotation * rate,
            ),
        }
    }
}
