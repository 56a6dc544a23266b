//! The text messages, as JSON. `docs/protocol.md` tells them to the authors of clients.

use crate::control::{ControlChange, ControlTold, LevelTold};
use crate::simulation::Event;
use crate::variants::Variation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use supple::Contacts;
use supple_assets::{BoneChange, ChangedBone, RigOptions, ThingTold};

/// Version of the protocol, told with every scene and in every frame.
pub(crate) const PROTOCOL: u16 = 1;

/// What a client may ask.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Run.
    Play,
    /// Stop where it is.
    Pause,
    /// Stop, and do this many steps.
    Step {
        #[serde(default = "one")]
        count: u32,
    },
    /// Seconds simulated per second of real time.
    Speed { factor: f64 },
    /// Change settings: all that are given, or none when one is wrong.
    Set(Box<Change<ControlChange>>),
    /// Start or move a pull at a body.
    Drag {
        /// Tells several pulls of one client apart.
        #[serde(default)]
        pointer: u32,
        body: u32,
        /// In body coordinates.
        point: [f64; 3],
        target: [f64; 3],
        /// The orientation to hold while posing or to turn to while directing, x, y, z, w.
        #[serde(default)]
        rotation: Option<[f64; 4]>,
        /// Multiplies the stiffness of the pull.
        #[serde(default = "unit")]
        strength: f64,
    },
    /// Start or move a ball that pokes the skin.
    Poke {
        /// Tells pulls, balls and grabs of one client apart.
        #[serde(default)]
        pointer: u32,
        centre: [f64; 3],
        radius: f64,
    },
    /// Start or move a pull at a vertex of the skin.
    Grab {
        #[serde(default)]
        pointer: u32,
        vertex: u32,
        target: [f64; 3],
        /// Multiplies the stiffness of the pull.
        #[serde(default = "unit")]
        strength: f64,
    },
    /// End a pull, a ball or a grab.
    Release {
        #[serde(default)]
        pointer: u32,
    },
    /// Hold a body where it is, or let it go; the level is that of it while directing. `turn` says whether its orientation is held as well, `at` where its
    /// centre of mass is to be.
    Pin {
        body: u32,
        on: bool,
        #[serde(default)]
        level: Option<LevelTold>,
        #[serde(default)]
        turn: Option<bool>,
        #[serde(default)]
        at: Option<[f64; 3]>,
    },
    /// Target poses by the name of the tracker; null lets the scene drive that tracker again.
    Targets { poses: BTreeMap<String, Option<TargetPose>> },
    /// Steer the scene by its controls, each from -1 to 1; null gives them back to the scene.
    Steer { values: Option<Vec<f64>> },
    /// Change how bodies hold themselves; none named: all. At a later step, as a key, or now.
    State {
        #[serde(default)]
        bodies: Vec<u32>,
        state: String,
        /// From 0, as loose, to 1.
        #[serde(default = "unit")]
        strength: f64,
        /// How long the change takes \[s\].
        #[serde(default)]
        blend: f64,
        #[serde(default)]
        at: Option<u64>,
    },
    /// Begin anew in the first pose of a clip; with a fade \[s\], go over to it from where it is; without a clip, its speed and
    /// whether it goes round.
    Clip {
        #[serde(default)]
        clip: Option<String>,
        #[serde(default)]
        fade: Option<f64>,
        #[serde(default)]
        speed: Option<f64>,
        #[serde(default)]
        again: Option<bool>,
        #[serde(default)]
        at: Option<u64>,
        /// Whose: 0 is the scene's own character, guests come after it.
        #[serde(default)]
        figure: usize,
    },
    /// From which impulse on a blow makes a limb loose \[N·s\], and how long it takes to recover \[s\]; null: never.
    Hits {
        hits: Option<[f64; 2]>,
        #[serde(default)]
        at: Option<u64>,
    },
    /// Open a file of the list of those that were opened before, by its place.
    Recent { file: usize },
    /// Put things into the scene, in place of those it has.
    Things { things: Vec<ThingTold> },
    /// Let a body carry a thing as it is now, exactly; without a body it is let go.
    Hold { thing: String, body: Option<u32> },
    /// Throw a thing from a place.
    Throw { thing: String, from: [f64; 3], velocity: [f64; 3] },
    /// Do a part of a take again with something else in it, as another take.
    Variant { take: usize, from: u64, to: u64, variation: Variation },
    /// Name a step.
    Mark {
        name: String,
        #[serde(default)]
        at: Option<u64>,
    },
    /// Remove a mark by its number.
    Unmark { mark: usize },
    /// Open a built-in scene.
    Open { scene: String },
    /// Change a bone of the character: its model is made anew, in the present pose.
    Bone {
        bone: String,
        change: Box<BoneChange>,
        /// The bone across from it, changed together with it.
        #[serde(default)]
        twin: Option<Box<ChangedBone>>,
    },
    /// Make the rig of the character anew with another mass, unit of length or height; what is not told is found as when the file was opened.
    Rig { options: RigOptions },
    /// Go to the end of a take of the rig as it was before or after an edit, by its number in `aside`.
    Aside { sheet: u32, take: usize },
    /// Go to a step of a take.
    Seek { take: usize, step: u64 },
    /// Give a take a name.
    Rename { take: usize, name: String },
    /// Remove a take and all that left it.
    Delete { take: usize },
    /// Show another take beside the present one; null ends that.
    Compare { take: Option<usize> },
    /// Take the present pose for a keyframe, now or at a time.
    Key {
        #[serde(default)]
        time: Option<f64>,
    },
    /// Remove a keyframe.
    Unkey { key: usize },
    /// Take the present pose for the target pose of the control.
    TargetPose,
    /// Undo the last thing done by hand.
    Undo,
    /// Do again what was undone last.
    Redo,
    /// Apply the remedies of the doctor to the model that a file gave.
    Mend,
    /// Open the journal of a session that did not finish.
    Recover { journal: u32 },
    /// Remove the journal of a session that did not finish.
    Discard { journal: u32 },
}

impl Request {
    /// Whether it adds something to the present takes that only a person or a device could do again. A changed bone makes a scene of its own, and
    /// undoing may lead to another one.
    pub(crate) fn is_by_hand(&self) -> bool {
        use Request::{
            Clip, Delete, Drag, Grab, Hits, Key, Mark, Pin, Poke, Rename, Set, State, Steer, TargetPose, Targets,
        };
        use Request::{Throw, Unkey, Unmark, Variant};
        matches!(
            self,
            Delete { .. }
                | Drag { .. }
                | Poke { .. }
                | Grab { .. }
                | Key { .. }
                | Unkey { .. }
                | TargetPose
                | Pin { .. }
                | Rename { .. }
                | Set(_)
                | Steer { .. }
                | Targets { .. }
                | State { .. }
                | Clip { fade: Some(_), .. }
                | Hits { .. }
                | Mark { .. }
                | Unmark { .. }
                | Throw { .. }
                | Variant { .. }
        )
    }
}

fn one() -> u32 {
    1
}
fn unit() -> f64 {
    1.0
}

/// New values of settings; what is left out stays. Clients send of the control what changes of it, and the simulation makes it whole.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change<C = ControlTold> {
    /// A name of the scene message's list.
    pub(crate) solver: Option<String>,
    pub(crate) dt: Option<f64>,
    pub(crate) substeps: Option<u32>,
    pub(crate) gravity: Option<[f64; 3]>,
    pub(crate) stiffness_scale: Option<f64>,
    pub(crate) damping_scale: Option<f64>,
    pub(crate) torques: Option<bool>,
    /// What touches what.
    pub(crate) contacts: Option<ContactsTold>,
    /// Of contacts that are springs \[N/m\], and the speed below which their friction is viscous \[m/s\].
    pub(crate) contact_stiffness: Option<f64>,
    pub(crate) contact_slip: Option<f64>,
    /// Whether the scene's own script acts.
    pub(crate) script: Option<bool>,
    /// Whether trackers pull: the springs that hold a character.
    pub(crate) hold: Option<bool>,
    /// Whether bodies are posed: pulls hold by grips, nothing falls.
    pub(crate) pose: Option<bool>,
    /// Microseconds that the corrections of solver assembly may take in a step; 0: as its settings say.
    pub(crate) budget: Option<f64>,
    /// What is asked of the actuators.
    pub(crate) control: Option<Box<C>>,
    /// Scales of single joints.
    #[serde(default)]
    pub(crate) joints: Vec<JointChange>,
}

impl Change<ControlChange> {
    /// The same change with the control whole, as it is after it.
    pub(crate) fn whole(self, before: impl FnOnce() -> ControlTold) -> Change {
        Change {
            solver: self.solver,
            dt: self.dt,
            substeps: self.substeps,
            gravity: self.gravity,
            stiffness_scale: self.stiffness_scale,
            damping_scale: self.damping_scale,
            torques: self.torques,
            contacts: self.contacts,
            contact_stiffness: self.contact_stiffness,
            contact_slip: self.contact_slip,
            script: self.script,
            hold: self.hold,
            pose: self.pose,
            budget: self.budget,
            control: self.control.map(|change| Box::new(change.of(before()))),
            joints: self.joints,
        }
    }
}

impl Change {
    /// A change of the control alone.
    pub(crate) fn of_control(control: ControlTold) -> Change {
        Change {
            solver: None,
            dt: None,
            substeps: None,
            gravity: None,
            stiffness_scale: None,
            damping_scale: None,
            torques: None,
            contacts: None,
            contact_stiffness: None,
            contact_slip: None,
            script: None,
            hold: None,
            pose: None,
            budget: None,
            control: Some(Box::new(control)),
            joints: Vec::new(),
        }
    }
}

/// What touches what.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContactsTold {
    Off,
    Obstacles,
    All,
}

impl ContactsTold {
    pub(crate) fn contacts(self) -> Contacts {
        match self {
            ContactsTold::Off => Contacts::Off,
            ContactsTold::Obstacles => Contacts::Obstacles,
            ContactsTold::All => Contacts::All,
        }
    }

    pub(crate) fn of(contacts: Contacts) -> ContactsTold {
        match contacts {
            Contacts::Off => ContactsTold::Off,
            Contacts::Obstacles => ContactsTold::Obstacles,
            Contacts::All => ContactsTold::All,
        }
    }
}

/// New scales of one joint.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct JointChange {
    pub(crate) joint: u32,
    pub(crate) stiffness_scale: f64,
    pub(crate) damping_scale: f64,
}

/// Where a tracker should be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetPose {
    pub(crate) position: [f64; 3],
    /// x, y, z, w.
    pub(crate) rotation: [f64; 4],
    #[serde(default)]
    pub(crate) linear: [f64; 3],
    #[serde(default)]
    pub(crate) angular: [f64; 3],
}

/// The present settings, takes and switches.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) generation: u32,
    pub(crate) playing: bool,
    pub(crate) speed: f64,
    pub(crate) settings: Settings,
    pub(crate) pins: Vec<u32>,
    /// One by one those of the pins.
    pub(crate) pin_levels: Vec<LevelTold>,
    /// Where their centres of mass are to be, and whether their orientations are held.
    pub(crate) pin_places: Vec<[f64; 3]>,
    pub(crate) pin_turns: Vec<bool>,
    pub(crate) take: usize,
    /// By index; null where one was removed.
    pub(crate) takes: Vec<Option<TakeLine<'a>>>,
    /// Takes of the same file before and after edits of its rig.
    pub(crate) aside: Vec<AsideLine<'a>>,
    /// The take that is shown beside the present one.
    pub(crate) compare: Option<usize>,
    /// The takes are not computed again but shown as they were stored, and why.
    pub(crate) stored: Option<&'a str>,
    /// What would be undone and done again.
    pub(crate) undo: Option<String>,
    pub(crate) redo: Option<String>,
    /// Something was done by hand that no page holds, or something was recorded since.
    pub(crate) unsaved: bool,
    /// Why the journal cannot be written at present.
    pub(crate) journal_trouble: Option<&'a str>,
    /// Sessions that did not finish.
    pub(crate) journals: Vec<JournalLine<'a>>,
    /// What the doctor says of the model that a file gave; null while it is being examined, and for other scenes.
    pub(crate) doctor: Option<DoctorLine<'a>>,
    /// How the bodies hold themselves, and the clip they follow.
    pub(crate) tones: TonesTold,
    /// What is marked in the take's history, and keyed after it.
    pub(crate) marks: Vec<MarkLine>,
    /// Bytes held by the takes.
    pub(crate) bytes: usize,
    /// How far what was simulated is to be trusted, `good`, `degraded` or `failed`, and why no further.
    pub(crate) quality: &'static str,
    pub(crate) reasons: Vec<String>,
    /// The last thing that everyone should know.
    pub(crate) notice: Option<&'a Notice>,
}

/// How the bodies hold themselves.
#[derive(Debug, Serialize)]
pub(crate) struct TonesTold {
    /// By body: `posed`, `follow`, `loose`, `limp`, or `scene` where the scene's own script moves it.
    pub(crate) bodies: Vec<&'static str>,
    /// By body, from 0 to 1.
    pub(crate) strengths: Vec<f64>,
    /// The part of the mass that forces from outside hold up.
    pub(crate) carried: f64,
    pub(crate) clip: Option<ClipTold>,
    /// By guest: the clip that it follows.
    pub(crate) guest_clips: Vec<Option<ClipTold>>,
    /// Impulse and recovery, where blows are answered.
    pub(crate) hits: Option<[f64; 2]>,
}

/// The clip that is followed: at time `begun` it shows its place `from`.
#[derive(Debug, Serialize)]
pub(crate) struct ClipTold {
    pub(crate) name: String,
    pub(crate) begun: f64,
    pub(crate) from: f64,
    pub(crate) speed: f64,
    pub(crate) again: bool,
    pub(crate) seconds: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct MarkLine {
    pub(crate) step: u64,
    /// What it tells; null when another program wrote it.
    pub(crate) what: Option<Event>,
}

/// What the doctor says.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorLine<'a> {
    /// The gravest first.
    pub(crate) findings: Vec<FindingLine<'a>>,
    /// Seconds of jerks that went well.
    pub(crate) seconds: f64,
    /// Why they ended early.
    pub(crate) failure: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FindingLine<'a> {
    pub(crate) code: &'static str,
    pub(crate) part: &'a str,
    pub(crate) what: &'a str,
    pub(crate) remedy: &'a str,
}

#[derive(Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) solver: &'static str,
    pub(crate) dt: f64,
    pub(crate) substeps: u32,
    pub(crate) gravity: [f64; 3],
    pub(crate) stiffness_scale: f64,
    pub(crate) damping_scale: f64,
    pub(crate) torques: bool,
    pub(crate) contacts: ContactsTold,
    /// Null where contacts are no springs.
    pub(crate) contact_stiffness: Option<f64>,
    pub(crate) contact_slip: Option<f64>,
    pub(crate) script: bool,
    pub(crate) hold: bool,
    pub(crate) pose: bool,
    pub(crate) budget: f64,
    pub(crate) control: ControlTold,
    /// Joints whose scales are not 1, with stiffness and damping.
    pub(crate) joints: Vec<(usize, f64, f64)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TakeLine<'a> {
    pub(crate) name: &'a str,
    pub(crate) parent: Option<usize>,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

/// Takes of a rig before or after an edit.
#[derive(Debug, Serialize)]
pub(crate) struct AsideLine<'a> {
    /// Its number, to go there.
    pub(crate) sheet: u32,
    /// Which edit is between: `before change of …`, `after change of …`.
    pub(crate) mark: String,
    /// By index; null where one was removed.
    pub(crate) takes: Vec<Option<TakeLine<'a>>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct JournalLine<'a> {
    pub(crate) journal: u32,
    pub(crate) scene: &'a str,
    pub(crate) takes: usize,
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
    /// Seconds since 1970.
    pub(crate) written: u64,
    pub(crate) build: &'a str,
}

/// Two takes compared.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonTold<'a> {
    pub(crate) takes: [usize; 2],
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) steps_per_column: u64,
    pub(crate) times: Vec<f64>,
    /// Smaller differences may be those of rounding.
    pub(crate) resolution: DifferenceTold,
    /// The joints that differ most in angle \[rad\], and in place \[m\].
    pub(crate) angles: Vec<CurveTold<'a>>,
    pub(crate) shifts: Vec<CurveTold<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DifferenceTold {
    pub(crate) angle: f64,
    pub(crate) shift: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct CurveTold<'a> {
    pub(crate) joint: u32,
    pub(crate) name: &'a str,
    pub(crate) largest: f64,
    pub(crate) values: Vec<f64>,
}

/// A message to everyone, numbered so that a page shows it once.
#[derive(Debug, Serialize)]
pub(crate) struct Notice {
    pub(crate) number: u64,
    pub(crate) level: &'static str,
    pub(crate) text: String,
}

/// A request that was refused.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    #[serde(rename = "type")]
    kind: &'static str,
    code: String,
    message: String,
}

/// What the start page shows.
#[derive(Debug, Serialize)]
pub(crate) struct StartTold {
    /// Whether the page begins with it.
    pub(crate) gallery: bool,
    pub(crate) recent: Vec<RecentTold>,
}

/// A file that was opened before.
#[derive(Debug, Serialize)]
pub(crate) struct RecentTold {
    pub(crate) name: String,
    pub(crate) folder: String,
}

/// A page says that it holds takes that were sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedTold {
    /// As the answer named them.
    pub(crate) id: u64,
    /// Length and FNV-1a hash of what the page holds.
    pub(crate) bytes: usize,
    pub(crate) hash: String,
}

/// A request that was refused, as a message.
pub(crate) fn refusal(code: &str, message: impl Into<String>) -> String {
    json(&Refusal { kind: "error", code: code.to_owned(), message: message.into() })
}

pub(crate) fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("a message of plain fields is JSON")
}
