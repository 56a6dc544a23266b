//! How much a character holds itself: posed, following its clip, loose or limp, body by body, with blends between.
//!
//! A [`Tones`] is turned into the [`Input`] of each step, after the scene's own script. What carries a body (its tracker, the
//! root's hold, the force that its motion needs) belongs to its tone and ends with it:
//!
//! | tone | tracker of the body | force `m (a − g)` | script's trackers | joint spring | joint damper | tissue |
//! |---|---|---|---|---|---|---|
//! | as the script has it | | | 1 | 1 | 1 | 0 |
//! | posed | to the pose it had | 1, a = 0 | 0 | 0 | 0 | 0 |
//! | follow | to the clip | 1 | 0 | 0 | 0 | 0 |
//! | loose | 0 | 0 | 0 | a limb held level sags by 60° | half critical for that spring | 1 |
//! | limp | 0 | 0 | 0 | 0 | a quarter of critical for the limb as a pendulum | 1 |
//!
//! A body whose tracker has no stiffness hangs on the one above it and sways in every tone, on the springs of its joint as they are: hair, ears, capes.
//! It is not carried, and neither is it let go.
//!
//! Posed and follow hold in the world: a limb that follows while the rest is loose is what the rest hangs from. At a strength
//! below 1 each number lies between loose and the tone. From the moment of a change all numbers go from what they were to what the new tone
//! has, over the blend time, and the target of posed and follow moves from the pose the body had to where it is led.
//!
//! What was let go is caught first: a limb that falls on while it is hardly held yet strikes the ground as a ragdoll does. The target starts with the body's own
//! velocity, which it loses within a seventh of a second, so that the body may be held in full from then on without a jerk, and the rest of the blend time
//! carries it to its goal.
//!
//! Tissue makes dampers stronger at both ends of the scale: `c (1 + (ω/ω₁)²) + τ/ω`. Friction τ, a small part of the limb's weight, stops what would creep near its
//! balance for many seconds; what turns faster than joints do is slowed down, or the last joints of fingers would whip at hundreds of rad/s.

use crate::input::{Input, JointInput, Target};
use crate::maths::{Pose, Twist, Wrench, rotation, singular};
use crate::model::{BodyId, JointId, Model, RotationKind, State};
use crate::scenes::{Ending, Motion, Moved};
use crate::settings::plain;
use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::FRAC_PI_3;
use std::ops::Range;
use std::sync::Arc;

/// Of the weights that springs are measured against \[m/s²\].
const GRAVITY: f64 = 9.81;
/// How far a loose limb gives way under its own weight \[rad\].
const LOOSE_SAG: f64 = FRAC_PI_3;
/// Damping ratio of loose limbs on their springs, and of limp ones as pendulums.
const LOOSE_RATIO: f64 = 0.5;
const LIMP_RATIO: f64 = 0.25;
/// Friction of tissue in shares of the torque of the limb held level, and the speeds from which on it is whole: of the joint \[rad/s\] or of what hangs on
/// it \[m/s\], whichever is the slower.
const FRICTION: f64 = 0.12;
const FRICTION_SPEED: (f64, f64) = (0.02, 0.004);
/// Tissue multiplies the damping of a joint by no more: one that is hardly damped would be locked.
const MOST_TISSUE: f64 = 1e4;
/// Where tissue doubles the damping of a joint \[rad/s\]: few joints of a living body get faster.
const FAST: f64 = 15.0;
/// A blow takes the strength of a limb within this time \[s\].
const HIT_TIME: f64 = 0.1;
/// How long letting go and carrying take unless told \[s\].
const LET_GO_TIME: f64 = 0.1;
const CARRY_TIME: f64 = 0.7;
/// What was let go is held in full within this time, and its target loses the velocity that the body had within that \[s\]; both at most the blend time.
const CATCH_TIME: f64 = 0.05;
const COAST_TIME: f64 = 0.15;
/// A clip that does not end as it begins goes over from end to beginning in this time at most \[s\].
const LOOP_TIME: f64 = 0.25;

/// What a body does of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It holds its pose: the one it had when the tone began, or that of the model's start. Carried.
    Posed,
    /// It follows its clip. Carried.
    Follow,
    /// A ragdoll that feels alive: springs that sag by 60° under the limb's weight, well damped. Not carried.
    Loose,
    /// A ragdoll without springs; its joints are damped as by tissue. Not carried.
    Limp,
}

impl Tone {
    /// All of them.
    pub const ALL: [Tone; 4] = [Tone::Posed, Tone::Follow, Tone::Loose, Tone::Limp];

    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Posed => "posed",
            Tone::Follow => "follow",
            Tone::Loose => "loose",
            Tone::Limp => "limp",
        }
    }

    /// The tone of this name.
    pub fn named(name: &str) -> Option<Tone> {
        Tone::ALL.into_iter().find(|tone| tone.name() == name)
    }

    /// Whether forces from outside hold the body up.
    pub fn is_carried(self) -> bool {
        matches!(self, Tone::Posed | Tone::Follow)
    }
}

/// A change of tone.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The bodies that change; empty: all.
    pub bodies: Vec<BodyId>,
    /// What they do from then on.
    pub tone: Tone,
    /// Of posed: whether it goes to the pose of the model's start, rather than staying in the one it has.
    pub start: bool,
    /// From 0, as loose, to 1; of posed and follow.
    pub strength: f64,
    /// How long the change takes \[s\].
    pub blend: f64,
}

impl Change {
    /// All bodies, by the name of a tone or `start`, posed as the model starts. Unless told, what lets go takes 0.1 s and what carries 0.7 s, at full strength.
    pub fn named(name: &str, blend: Option<f64>, strength: Option<f64>) -> Result<Change, ToneError> {
        let start = name == "start";
        let Some(tone) = (if start { Some(Tone::Posed) } else { Tone::named(name) }) else {
            let what = format!("there is no state \"{name}\": give posed, start, follow, loose or limp");
            return Err(ToneError::Value { what });
        };
        let usual = if tone.is_carried() { CARRY_TIME } else { LET_GO_TIME };
        Ok(Change { start, strength: strength.unwrap_or(1.0), ..Change::to(tone, blend.unwrap_or(usual)) })
    }

    /// All bodies, at full strength.
    pub fn to(tone: Tone, blend: f64) -> Change {
        Change { bodies: Vec::new(), tone, start: false, strength: 1.0, blend }
    }
}

/// Why a change of tone is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToneError {
    /// A number is out of range.
    #[error("{what} [tone/value]")]
    Value {
        /// What is wrong and what is allowed.
        what: String,
    },
    /// There is nothing to follow.
    #[error("there is no clip to follow: choose a clip first [tone/clip]")]
    NoClip,
    /// A body has no tracker.
    #[error(
        "\"{body}\" has no tracker to be carried by: it can be loose or limp, or move as its scene does [tone/tracker]"
    )]
    NoTracker {
        /// Its name.
        body: String,
    },
}

impl ToneError {
    /// Stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            ToneError::Value { .. } => "tone/value",
            ToneError::NoClip => "tone/clip",
            ToneError::NoTracker { .. } => "tone/tracker",
        }
    }
}

/// A clip being played.
#[derive(Clone, Debug)]
pub struct Play {
    /// The clip.
    pub motion: Arc<Motion>,
    /// When `from` is shown \[s\].
    pub begun: f64,
    /// The place in the clip at that time \[s\].
    pub from: f64,
    /// Seconds of the clip in a second.
    pub speed: f64,
    /// Whether it begins again when it ends.
    pub again: bool,
}

impl Play {
    /// A clip from its beginning, as its ending says.
    pub fn new(motion: Arc<Motion>, begun: f64) -> Play {
        let again = motion.ending() == Ending::Repeat;
        Play { motion, begun, from: 0.0, speed: 1.0, again }
    }

    /// Where it is in the clip \[s\]; it goes on beyond its end.
    pub fn place(&self, time: f64) -> f64 {
        self.from + self.speed * (time - self.begun)
    }

    /// The same clip from a time on at another speed or ending, without a jump.
    #[must_use]
    pub fn going_on(&self, time: f64, speed: f64, again: bool) -> Play {
        let (length, place) = (self.motion.seconds(), self.place(time));
        let round = length > 0.0 && self.again;
        let mut from = if round { place.rem_euclid(length) } else { place.clamp(0.0, length) };
        // In a later round it still goes over from the end to the beginning.
        if round && again && place >= length {
            from += length;
        }
        Play { motion: self.motion.clone(), begun: time, from, speed, again }
    }

    /// From the end over to the beginning: how far, where that is under way.
    fn turning_round(&self, place: f64) -> Option<f64> {
        let length = self.motion.seconds();
        if !self.again || self.motion.ending() == Ending::Repeat || place < length || length <= 0.0 {
            return None;
        }
        let fade = (0.25 * length).min(LOOP_TIME);
        let phase = place.rem_euclid(length);
        (phase < fade).then(|| phase / fade)
    }

    fn at(&self, time: f64, body: usize) -> Moved {
        let (place, length) = (self.place(time), self.motion.seconds());
        let repeats = self.motion.ending() == Ending::Repeat;
        let mut moved = match (self.again, repeats) {
            (true, false) if length > 0.0 && place >= length => self.motion.at(place.rem_euclid(length), body),
            (false, true) if place >= length => {
                let pose = self.motion.frame(self.motion.frames() - 1)[body];
                return Moved { pose, velocity: Twist::ZERO, acceleration: Twist::ZERO };
            }
            _ => self.motion.at(place, body),
        };
        moved.velocity = moved.velocity * self.speed;
        moved.acceleration = moved.acceleration * (self.speed * self.speed);
        moved
    }
}

/// How a character answers a blow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hits {
    /// The impulse from which on another body's blow counts \[N·s\].
    pub impulse: f64,
    /// How long the strength takes to come back \[s\].
    pub recovery: f64,
}

impl Hits {
    /// What is wrong with the numbers, if anything.
    pub fn check(&self) -> Result<(), ToneError> {
        let Hits { impulse, recovery } = self;
        if impulse.is_finite() && *impulse > 0.0 && (0.0..=60.0).contains(recovery) {
            return Ok(());
        }
        let what = "a blow needs an impulse above 0 N·s, and a limb recovers within 0 to 60 s".into();
        Err(ToneError::Value { what })
    }
}

/// What acts on a body, as the table of the module says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Levels {
    pull: f64,
    carry: f64,
    script: f64,
    stiffness: f64,
    damping: f64,
    tissue: f64,
}

impl Levels {
    const NONE: Levels = Levels { pull: 0.0, carry: 0.0, script: 0.0, stiffness: 0.0, damping: 0.0, tissue: 0.0 };
    const SCRIPT: Levels = Levels { script: 1.0, stiffness: 1.0, damping: 1.0, ..Levels::NONE };
    const CARRIED: Levels = Levels { pull: 1.0, carry: 1.0, ..Levels::NONE };
    const SWAYS: Levels = Levels { stiffness: 1.0, damping: 1.0, ..Levels::NONE };

    fn towards(self, other: Levels, share: f64) -> Levels {
        let mix = |a: f64, b: f64| a * (1.0 - share) + b * share;
        Levels {
            pull: mix(self.pull, other.pull),
            carry: mix(self.carry, other.carry),
            script: mix(self.script, other.script),
            stiffness: mix(self.stiffness, other.stiffness),
            damping: mix(self.damping, other.damping),
            tissue: mix(self.tissue, other.tissue),
        }
    }
}

/// What a body's tracker aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Script,
    Pose,
    Clip,
}

/// A body as it holds itself.
#[derive(Clone, Copy, Debug)]
struct Held {
    tone: Tone,
    aim: Aim,
    strength: f64,
    /// What acted on it when the tone began.
    before: Levels,
    /// When it began, and how long the change takes.
    change: Span,
    /// When the target began to move from where the body was then, and how long that takes. What is let go keeps its target while it fades.
    way: Span,
    /// Where the body was then, how it moved, and where it goes when it is posed.
    pose: Pose,
    velocity: Twist,
    goal: Pose,
    /// When it was last struck \[s\].
    struck: f64,
}

/// A time with a beginning and a length \[s\].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    begun: f64,
    length: f64,
}

impl Span {
    const OVER: Span = Span { begun: f64::NEG_INFINITY, length: 0.0 };

    /// How much of it is over.
    fn share(&self, time: f64) -> f64 {
        let x = (time - self.begun) / self.length;
        if self.length <= 0.0 || x >= 1.0 { 1.0 } else { ease(x) }
    }

    /// How long what loses its speed has gone at its first speed, in effect: `τ/3 (1 − (1 − t/τ)³)` \[s\].
    fn coasted(&self, time: f64) -> f64 {
        let whole = self.length.min(COAST_TIME);
        let left = if whole > 0.0 { (1.0 - (time - self.begun) / whole).clamp(0.0, 1.0) } else { 0.0 };
        whole / 3.0 * (1.0 - left * left * left)
    }
}

/// What is constant of a body.
#[derive(Clone, Copy, Debug)]
struct Part {
    tracker: Option<usize>,
    sways: bool,
    mass: f64,
    inertia: DMat3,
    /// Torque of friction by the damping of the joint that it hangs on, and the speed from which on it is whole \[rad/s\].
    friction: (f64, f64),
    loose: Levels,
    limp: Levels,
}

/// A figure among the bodies, and the clip that it follows.
#[derive(Clone, Debug)]
struct Figure {
    bodies: Range<usize>,
    clip: Option<Play>,
    /// The clip that was followed before, until when it fades, and how long that takes \[s\].
    fading: Option<(Play, f64, f64)>,
}

impl Figure {
    /// Whether the target of its clip is between two poses at a time.
    fn is_between(&self, time: f64) -> bool {
        let turning = |play: &Play| play.turning_round(play.place(time)).is_some();
        self.fading.is_some() || self.clip.as_ref().is_some_and(turning)
    }
}

/// The tones of all bodies, and the clips that they follow.
#[derive(Clone, Debug)]
pub struct Tones {
    /// One after another from the first body on; things come after them and have no tone.
    figures: Vec<Figure>,
    held: Vec<Held>,
    parts: Vec<Part>,
    /// Of each joint the body that hangs on it, seen from the root.
    hung: Vec<usize>,
    /// How blows are answered; `None`: they are not.
    pub hits: Option<Hits>,
    /// Changes to come, in order of time.
    keys: Vec<(f64, Change)>,
    next: usize,
    /// Wrenches that the script gives, which stand first.
    script_wrenches: usize,
    /// Whether the bodies ever left the script: until then the input is left alone.
    left: bool,
    /// Targets at the beginning, the end and the middle of a step.
    poses: [Vec<Pose>; 3],
    /// Where bodies on their way would be if they only lost their speed.
    coasted: Vec<Pose>,
}

impl Tones {
    /// Every body as the scene's script has it; `script_wrenches` stand first in the input and are the script's. The figure is the first `figure` bodies;
    /// others are things, which have no tone.
    pub fn new(model: &Model, figure: usize, script_wrenches: usize) -> Tones {
        let held = Held {
            tone: Tone::Posed,
            aim: Aim::Script,
            strength: 1.0,
            before: Levels::SCRIPT,
            change: Span::OVER,
            way: Span::OVER,
            pose: Pose::IDENTITY,
            velocity: Twist::ZERO,
            goal: Pose::IDENTITY,
            struck: f64::NEG_INFINITY,
        };
        let bodies = model.bodies().len();
        let scratch = vec![Pose::IDENTITY; bodies];
        Tones {
            figures: vec![Figure { bodies: 0..figure, clip: None, fading: None }],
            held: vec![held; bodies],
            parts: parts(model),
            hung: hung(model),
            hits: None,
            keys: Vec::new(),
            next: 0,
            script_wrenches,
            left: false,
            poses: [scratch.clone(), scratch.clone(), scratch.clone()],
            coasted: scratch,
        }
    }

    /// Every body follows a clip from the start, in place of a script that does so. `None` when the clip has another number of bodies.
    pub fn following(model: &Model, figure: usize, clip: Play) -> Option<Tones> {
        let mut tones = Tones::new(model, figure, 0);
        if clip.motion.bodies() != figure {
            return None;
        }
        for held in &mut tones.held[..figure] {
            (held.tone, held.aim) = (Tone::Follow, Aim::Clip);
        }
        (tones.figures[0].clip, tones.left) = (Some(clip), true);
        Some(tones)
    }

    /// The same with one figure more, of the next so many bodies, in the pose of a state or on a clip. `None` when the clip has another number of bodies.
    #[must_use]
    pub fn joined_by(mut self, state: &State, bodies: usize, clip: Option<Play>, tone: Tone) -> Option<Tones> {
        let first = self.bodies();
        if clip.as_ref().is_some_and(|play| play.motion.bodies() != bodies) {
            return None;
        }
        let follows = tone == Tone::Follow && clip.is_some();
        for b in first..first + bodies {
            let held = &mut self.held[b];
            let pose = state.bodies[b].pose();
            (held.pose, held.goal, held.aim) = (pose, pose, if follows { Aim::Clip } else { Aim::Pose });
            held.tone = if tone == Tone::Follow && !follows { Tone::Posed } else { tone };
            held.before = self.parts[b].loose;
        }
        self.figures.push(Figure { bodies: first..first + bodies, clip, fading: None });
        self.left = true;
        Some(self)
    }

    /// How many bodies, the first, are those of figures.
    fn bodies(&self) -> usize {
        self.figures.last().map_or(0, |figure| figure.bodies.end)
    }

    /// The figure that a body is of; `None`: it is a thing.
    pub fn figure_of(&self, body: BodyId) -> Option<usize> {
        self.figures.iter().position(|figure| figure.bodies.contains(&body.index()))
    }

    /// The clip of the figure that a body is of, and its place there.
    fn clip_for(&self, b: usize) -> Option<(&Figure, &Play, usize)> {
        let figure = self.figures.iter().find(|figure| figure.bodies.contains(&b))?;
        Some((figure, figure.clip.as_ref()?, b - figure.bodies.start))
    }

    /// The same with changes to come, at their times \[s\].
    #[must_use]
    pub fn with_keys(mut self, mut keys: Vec<(f64, Change)>) -> Tones {
        keys.sort_by(|a, b| a.0.total_cmp(&b.0));
        (self.keys, self.next) = (keys, 0);
        self
    }

    /// Whether it says anything: until a tone is changed or a clip followed, the input is left alone.
    pub fn is_active(&self) -> bool {
        self.left
    }

    /// What a body does of its own.
    pub fn tone(&self, body: BodyId) -> Tone {
        self.held[body.index()].tone
    }

    /// Whether a body moves as the scene's script has it.
    pub fn is_scripted(&self, body: BodyId) -> bool {
        self.held[body.index()].aim == Aim::Script && self.held[body.index()].tone == Tone::Posed
    }

    /// How strongly a body holds its tone, as asked.
    pub fn strength(&self, body: BodyId) -> f64 {
        self.held[body.index()].strength
    }

    /// How much of the change to its tone is done, from 0 to 1.
    pub fn blended(&self, body: BodyId, time: f64) -> f64 {
        let held = &self.held[body.index()];
        let way = if held.tone.is_carried() { held.way.share(time) } else { 1.0 };
        way.min(held.change.share(time))
    }

    /// The part of the whole mass that forces from outside hold up, from 0 to 1.
    pub fn carried(&self, time: f64) -> f64 {
        let (mut carried, mut whole) = (0.0, 0.0);
        for b in (0..self.bodies()).filter(|b| !self.parts[*b].sways) {
            let levels = self.levels(b, time);
            carried += self.parts[b].mass * (levels.carry + levels.script).min(1.0);
            whole += self.parts[b].mass;
        }
        carried / whole
    }

    /// The clip that the first figure follows.
    pub fn clip(&self) -> Option<&Play> {
        self.clip_of(0)
    }

    /// The clip that a figure follows.
    pub fn clip_of(&self, figure: usize) -> Option<&Play> {
        self.figures.get(figure)?.clip.as_ref()
    }

    /// Another clip, or the same otherwise, for the first figure, taking the place of the present one over a time \[s\].
    pub fn play(&mut self, clip: Play, time: f64, fade: f64) -> Result<(), ToneError> {
        self.play_in(0, clip, time, fade)
    }

    /// The same for any figure.
    pub fn play_in(&mut self, figure: usize, clip: Play, time: f64, fade: f64) -> Result<(), ToneError> {
        let wrong = |what: String| Err(ToneError::Value { what });
        let Some(figure) = self.figures.get_mut(figure) else {
            return wrong(format!("there is no figure {figure}: there are {}", self.figures.len()));
        };
        let has = figure.bodies.len();
        if clip.motion.bodies() != has {
            return wrong(format!("the clip moves {} bodies, the figure has {has}", clip.motion.bodies()));
        }
        if !(clip.speed.is_finite()
            && (0.0..=100.0).contains(&clip.speed)
            && clip.begun.is_finite()
            && clip.from.is_finite())
        {
            return wrong(format!("the speed of the clip is {}: give 0 to 100", plain(clip.speed)));
        }
        check_time("fade", fade)?;
        let before = figure.clip.replace(clip);
        figure.fading = before.filter(|_| fade > 0.0).map(|before| (before, time + fade, fade));
        Ok(())
    }

    /// Changes the tone of bodies from the present state on.
    pub fn change(&mut self, model: &Model, state: &State, change: &Change) -> Result<(), ToneError> {
        let Change { bodies, tone, start, strength, blend } = change;
        if !(0.0..=1.0).contains(strength) {
            return Err(ToneError::Value { what: format!("the strength is {}: give 0 to 1", plain(*strength)) });
        }
        check_time("blend", *blend)?;
        let count = self.bodies();
        if let Some(body) = bodies.iter().find(|body| body.index() >= count) {
            return Err(ToneError::Value { what: format!("body {} is none of the figure's {count}", body.0) });
        }
        // All who have a clip follow theirs; who is named must have one.
        let mut all: Vec<usize> =
            if bodies.is_empty() { (0..count).collect() } else { bodies.iter().map(|b| b.index()).collect() };
        if *tone == Tone::Follow {
            let has_clip = |b: &usize| self.clip_for(*b).is_some();
            if !bodies.is_empty() && !all.iter().all(has_clip) || !all.iter().any(has_clip) {
                return Err(ToneError::NoClip);
            }
            all.retain(has_clip);
        }
        if *tone == Tone::Follow
            && let Some(&b) = all.iter().find(|b| self.parts[**b].tracker.is_none())
        {
            return Err(ToneError::NoTracker { body: model.bodies()[b].name.clone() });
        }
        for b in all {
            let before = self.levels(b, state.time);
            let held = &mut self.held[b];
            held.aim = match tone {
                Tone::Follow => Aim::Clip,
                Tone::Posed if self.parts[b].tracker.is_some() => Aim::Pose,
                // What has no tracker is posed by its own springs.
                Tone::Posed => Aim::Script,
                Tone::Loose | Tone::Limp => held.aim,
            };
            (held.tone, held.strength, held.before) = (*tone, *strength, before);
            held.change = Span { begun: state.time, length: *blend };
            if tone.is_carried() {
                held.way = held.change;
                if before.pull + before.script <= 0.0 {
                    held.change.length = blend.min(CATCH_TIME);
                }
                (held.pose, held.velocity) = (state.bodies[b].pose(), state.bodies[b].velocity);
                held.goal = if *start { model.bodies()[b].start } else { held.pose };
            }
        }
        self.left = true;
        Ok(())
    }

    /// Gives the bodies of the first figure back to the scene's script, over a time \[s\]. Others have none.
    pub fn give_back(&mut self, time: f64, blend: f64) -> Result<(), ToneError> {
        check_time("blend", blend)?;
        for b in self.figures[0].bodies.clone() {
            let before = self.levels(b, time);
            let held = &mut self.held[b];
            (held.tone, held.aim, held.strength, held.before) = (Tone::Posed, Aim::Script, 1.0, before);
            held.change = Span { begun: time, length: blend };
        }
        Ok(())
    }

    /// What acts on a body at a time.
    fn levels(&self, b: usize, time: f64) -> Levels {
        let (held, part) = (&self.held[b], &self.parts[b]);
        if part.sways {
            return Levels::SWAYS;
        }
        let full = match (held.tone, held.aim) {
            (Tone::Loose, _) => part.loose,
            (Tone::Limp, _) => part.limp,
            (_, Aim::Script) => Levels::SCRIPT,
            _ => Levels::CARRIED,
        };
        let asked = if held.tone.is_carried() { part.loose.towards(full, held.strength) } else { full };
        let levels = held.before.towards(asked, held.change.share(time));
        match self.hits {
            Some(hits) if held.tone.is_carried() => part.loose.towards(levels, left(time - held.struck, hits.recovery)),
            _ => levels,
        }
    }

    /// Sets what the tones ask for in `input`, for the step from the present state on: targets, strengths, wrenches and scales of
    /// joints. `scales` are those of the joints without any tone; empty: 1. It comes after the scene's script.
    ///
    /// Allocates nothing once the lists have their size, except where a key changes tones.
    pub fn direct(&mut self, model: &Model, state: &State, scales: &[JointInput], input: &mut Input) {
        while let Some((at, _)) = self.keys.get(self.next)
            && *at <= state.time + 1e-9
        {
            let (_, change) = self.keys[self.next].clone();
            // Keys are checked where they are made; one that asks for a clip that is gone changes nothing.
            let _ = self.change(model, state, &change);
            self.next += 1;
        }
        if !self.left {
            return;
        }
        self.feel_hits(model, state);
        let (time, end) = (state.time, state.time + input.dt);
        for figure in &mut self.figures {
            figure.fading.take_if(|(_, until, _)| *until <= time);
        }
        self.aim(model, time, 0);
        self.aim(model, end, 1);
        if (0..self.bodies()).any(|b| self.is_between(b, end)) {
            self.aim(model, 0.5 * (time + end), 2);
        }
        self.pull(model, (time, end), input);
        self.carry((time, end), input);
        if input.joints.len() < model.joints().len() {
            input.joints.resize(model.joints().len(), JointInput::default());
        }
        for j in 0..model.joints().len() {
            let levels = self.levels(self.hung[j], end);
            let base = scales.get(j).copied().unwrap_or_default();
            let own = &mut input.joints[j];
            own.stiffness_scale = base.stiffness_scale * levels.stiffness;
            let speed = relative_speed(model, state, j);
            let (friction, least) = self.parts[self.hung[j]].friction;
            let friction = friction / speed.max(least);
            let fast = levels.damping * (speed / FAST).powi(2);
            let tissue = (levels.tissue * (fast + friction)).min(MOST_TISSUE);
            own.damping_scale = base.damping_scale * (levels.damping + tissue);
        }
    }

    /// Targets and strengths of all trackers.
    fn pull(&self, model: &Model, (start, end): (f64, f64), input: &mut Input) {
        let dt = end - start;
        input.targets.resize(model.trackers().len(), None);
        input.strengths.clear();
        input.strengths.resize(model.trackers().len(), 1.0);
        for (k, tracker) in model.trackers().iter().enumerate() {
            let b = tracker.body.index();
            let levels = self.levels(b, end);
            let own = self.parts[b].tracker == Some(k);
            let (target, strength) = (&mut input.targets[k], &mut input.strengths[k]);
            if !(own && self.held[b].aim != Aim::Script) {
                *strength = levels.script;
            } else {
                // A tracker that the script has too goes over from its target at once: it is one spring.
                *strength = levels.pull + if target.is_some() { levels.script } else { 0.0 };
                let moved = self.moved(b, end, dt);
                let lever = moved.pose.rotation * tracker.point;
                *target = Some(Target {
                    pose: Pose::new(moved.pose.rotation, moved.pose.translation + lever),
                    velocity: Twist::new(moved.velocity.at(lever), moved.velocity.angular),
                });
            }
            if *strength <= 0.0 {
                (*target, *strength) = (None, 1.0);
            }
        }
    }

    /// The forces that carry the bodies, in the middle of the step; the script's in proportion.
    fn carry(&self, (start, end): (f64, f64), input: &mut Input) {
        let gravity = input.gravity;
        for (body, wrench) in input.wrenches.iter_mut().take(self.script_wrenches) {
            let share = self.levels(body.index(), end).script;
            *wrench = Wrench::new(wrench.force * share, wrench.torque * share);
        }
        let first = self.script_wrenches;
        let carries = (0..self.held.len()).any(|b| self.levels(b, end).carry > 0.0);
        if !carries && input.wrenches.len() < first + self.held.len() {
            return;
        }
        input.wrenches.resize(input.wrenches.len().max(first + self.held.len()), (BodyId(0), Wrench::ZERO));
        for b in 0..self.held.len() {
            let (carry, Part { mass, inertia, .. }) = (self.levels(b, end).carry, self.parts[b]);
            let wrench = if carry > 0.0 {
                let needed = needs(self.accelerated(b, (start, end)), mass, inertia, gravity);
                Wrench::new(needed.force * carry, needed.torque * carry)
            } else {
                Wrench::ZERO
            };
            input.wrenches[first + b] = (BodyId(b as u32), wrench);
        }
    }

    /// Whether the target of a body that follows is between two poses at a time.
    fn is_between(&self, b: usize, time: f64) -> bool {
        let clip = || self.clip_for(b).is_some_and(|(figure, ..)| figure.is_between(time));
        self.held[b].way.share(time) < 1.0 || (self.held[b].aim == Aim::Clip && clip())
    }

    /// Where the target of a body is at the end of a step.
    fn moved(&self, b: usize, end: f64, dt: f64) -> Moved {
        let still = |pose| Moved { pose, velocity: Twist::ZERO, acceleration: Twist::ZERO };
        match (self.held[b].aim, self.clip_for(b)) {
            (Aim::Clip, Some((_, clip, own))) if !self.is_between(b, end) => clip.at(end, own),
            (Aim::Clip | Aim::Pose, _) if self.is_between(b, end) => {
                let (before, pose) = (self.poses[0][b], self.poses[1][b]);
                let linear = (pose.translation - before.translation) / dt;
                let angular = turn(before.rotation, pose.rotation) / dt;
                Moved { velocity: Twist::new(linear, angular), ..still(pose) }
            }
            _ => still(self.held[b].goal),
        }
    }

    /// How the target of a body is accelerated in the middle of a step: as its clip is, or, between two poses, by their differences over both halves.
    fn accelerated(&self, b: usize, (start, end): (f64, f64)) -> Moved {
        let still = |pose| Moved { pose, velocity: Twist::ZERO, acceleration: Twist::ZERO };
        if self.is_between(b, end) {
            let [first, last, middle] = [0, 1, 2].map(|k| self.poses[k][b]);
            let half = 0.5 * (end - start);
            let linear = |from: Pose, to: Pose| (to.translation - from.translation) / half;
            let angular = |from: Pose, to: Pose| turn(from.rotation, to.rotation) / half;
            let [v, w] = [linear(first, middle), linear(middle, last)];
            let [p, q] = [angular(first, middle), angular(middle, last)];
            return Moved {
                pose: middle,
                velocity: Twist::new(0.5 * (v + w), 0.5 * (p + q)),
                acceleration: Twist::new((w - v) / half, (q - p) / half),
            };
        }
        match (self.held[b].aim, self.clip_for(b)) {
            (Aim::Clip, Some((_, clip, own))) => clip.at(0.5 * (start + end), own),
            _ => still(self.held[b].goal),
        }
    }

    /// The targets of all bodies that are carried, at a time, joints closed.
    fn aim(&mut self, model: &Model, time: f64, which: usize) {
        let mut poses = std::mem::take(&mut self.poses[which]);
        // Blends are of relative poses: a limb keeps its length on its way.
        for Figure { bodies, clip, fading } in &self.figures {
            let Some(clip) = clip else { continue };
            for (own, pose) in poses[bodies.clone()].iter_mut().enumerate() {
                *pose = clip.at(time, own).pose;
            }
            let own = |share: f64| move |b: usize| bodies.contains(&b).then_some(share);
            if let Some((before, until, fade)) = fading {
                let share = ease(1.0 - (until - time) / fade);
                mix(model, |b| before.at(time, b - bodies.start).pose, own(share), &mut poses);
            } else if let Some(share) = clip.turning_round(clip.place(time)) {
                let last = clip.motion.frame(clip.motion.frames() - 1);
                mix(model, |b| last[b - bodies.start], own(ease(share)), &mut poses);
            }
        }
        let held = &self.held;
        for (pose, held) in poses.iter_mut().zip(held).filter(|(_, held)| held.aim != Aim::Clip) {
            *pose = held.goal;
        }
        let together = |b: usize| (held[b].aim != Aim::Script).then(|| held[b].way.share(time));
        if held.iter().any(|held| held.aim != Aim::Script && held.way.share(time) < 1.0) {
            let mut from = std::mem::take(&mut self.coasted);
            self.coast(model, time, &mut from);
            mix(model, |b| from[b], together, &mut poses);
            self.coasted = from;
        }
        self.poses[which] = poses;
    }

    /// Where the bodies would be if they went on as they moved when their way began and lost their speed; joints stay as closed as they were.
    fn coast(&self, model: &Model, time: f64, poses: &mut [Pose]) {
        let topology = model.topology();
        for (k, node) in topology.nodes.iter().enumerate() {
            let b = node.body.index();
            let Held { pose, velocity, way, .. } = self.held[b];
            let far = way.coasted(time);
            let rotation = rotation::exp(velocity.angular * far) * pose.rotation;
            poses[b] = Pose::new(rotation, pose.translation + velocity.linear * far);
            let (began, aim) = (|b: usize| self.held[b].way, |b: usize| self.held[b].aim);
            let link = link(model, k).and_then(|(parent, own, above)| Some((parent?, own, above)));
            // A parent that was caught at another time has gone on since: what is caught alone goes its own way.
            let link = link.filter(|(parent, ..)| began(*parent) == began(b) && aim(*parent) != Aim::Script);
            if let Some((parent, own, above)) = link {
                // The point of the joint is where the parent has it.
                let before = self.held[parent].pose.then(above).inverse().then(pose.then(own)).translation;
                let at = poses[parent].then(above).transform_point(before);
                poses[b].translation = at - rotation * own.translation;
            }
        }
    }

    /// Notes which bodies were struck in the last step by others that move.
    fn feel_hits(&mut self, model: &Model, state: &State) {
        let Some(hits) = self.hits else { return };
        let topology = model.topology();
        let root = |body: BodyId| {
            let mut node = topology.node_of[body.index()];
            while topology.nodes[node].parent > 0 {
                node = topology.nodes[node].parent - 1;
            }
            node
        };
        for contact in &state.contacts {
            let Some((a, b)) = contact.key.bodies(model) else { continue };
            let impulse = 0.5 * (contact.first + contact.second).length() * state.last_dt;
            if root(a) == root(b) || impulse < hits.impulse {
                continue;
            }
            for body in [a, b] {
                // The limb from the joint above what was struck.
                let struck = topology.node_of[body.index()];
                let above = topology.nodes[struck].parent;
                let first = if above > 0 { above - 1 } else { struck };
                let below = struck..struck + topology.nodes[struck].subtree;
                for node in below.chain([first]) {
                    let held = &mut self.held[topology.nodes[node].body.index()];
                    // A limb that is down already is not taken up to be struck again.
                    if state.time - held.struck > HIT_TIME {
                        held.struck = state.time - HIT_TIME * (1.0 - left(state.time - held.struck, hits.recovery));
                    }
                }
            }
        }
    }
}

/// `3x² − 2x³`: from 0 to 1 with no rate at both ends.
fn ease(x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}

/// The strength that a limb has so long after a blow.
fn left(since: f64, recovery: f64) -> f64 {
    if since < HIT_TIME { 1.0 - since.max(0.0) / HIT_TIME } else { ease((since - HIT_TIME) / recovery.max(1e-9)) }
}

fn check_time(what: &str, time: f64) -> Result<(), ToneError> {
    if (0.0..=60.0).contains(&time) {
        return Ok(());
    }
    Err(ToneError::Value { what: format!("the {what} takes {} s: give 0 to 60 s", plain(time)) })
}

/// The rotation vector from one orientation to another, world axes, the shorter way.
pub(crate) fn turn(from: DQuat, to: DQuat) -> DVec3 {
    short(to * from.conjugate())
}

fn short(q: DQuat) -> DVec3 {
    rotation::log(if q.w < 0.0 { -q } else { q })
}

/// What a motion needs besides what joints give: `F = m (a − g)`, `τ = I α + ω × I ω`.
pub(crate) fn needs(moved: Moved, mass: f64, inertia: DMat3, gravity: DVec3) -> Wrench {
    let inertia = rotation::turned_inertia(moved.pose.rotation, inertia);
    let (omega, alpha) = (moved.velocity.angular, moved.acceleration.angular);
    let force = (moved.acceleration.linear - gravity) * mass;
    Wrench::new(force, inertia * alpha + omega.cross(inertia * omega))
}

/// Brings `poses` back towards others, body by body: of a share s each is `(1 − s)` of the way to its other pose. A body whose parent has the same
/// share is blended against it, by the rotation vector of its joint from the joint's own zero: that way no joint goes round through
/// its limits. Others are blended in the world, the shorter way. Bodies without a share stay.
fn mix(model: &Model, from: impl Fn(usize) -> Pose, share: impl Fn(usize) -> Option<f64>, poses: &mut [Pose]) {
    let topology = model.topology();
    // From the leaves in, so that a parent is still as the clip has it when its children's relative poses are taken; the
    // relative pose takes the body's own place until the sweep out.
    let linked = |k: usize| {
        let b = topology.nodes[k].body.index();
        let (parent, own, above) = link(model, k)?;
        let same = match parent {
            Some(p) => share(p).is_some() && share(p) == share(b),
            None => share(b).is_some(),
        };
        same.then_some((parent, own, above))
    };
    for k in (0..topology.nodes.len()).rev() {
        let b = topology.nodes[k].body.index();
        let Some(s) = share(b) else { continue };
        poses[b] = match linked(k) {
            Some((parent, own, above)) => {
                let relative = |parent: Pose, body: Pose| parent.then(above).inverse().then(body.then(own));
                let (p0, p1) = parent.map_or((Pose::IDENTITY, Pose::IDENTITY), |p| (from(p), poses[p]));
                let (r0, r1) = (relative(p0, from(b)), relative(p1, poses[b]));
                let phi = short(r0.rotation).lerp(short(r1.rotation), s);
                Pose::new(rotation::exp(phi), r0.translation.lerp(r1.translation, s))
            }
            None => {
                let (a, z) = (from(b), poses[b]);
                let rotation = rotation::exp(turn(a.rotation, z.rotation) * s) * a.rotation;
                Pose::new(rotation, a.translation.lerp(z.translation, s))
            }
        };
    }
    for k in 0..topology.nodes.len() {
        let b = topology.nodes[k].body.index();
        if let Some((parent, own, above)) = linked(k) {
            let parent = parent.map_or(Pose::IDENTITY, |p| poses[p]);
            poses[b] = parent.then(above).then(poses[b]).then(own.inverse());
        }
    }
}

/// What a node of the tree hangs on: the body above it, and the joint's frame in its own body and in that one.
fn link(model: &Model, k: usize) -> Option<(Option<usize>, Pose, Pose)> {
    let topology = model.topology();
    let node = &topology.nodes[k];
    let joint = model.joint(node.joint?);
    let parent = node.parent.checked_sub(1).map(|p| topology.nodes[p].body.index());
    let (own, above) = if node.flipped {
        (joint.parent_from_joint, joint.child_from_joint)
    } else {
        (joint.child_from_joint, joint.parent_from_joint)
    };
    Some((parent, own, above))
}

/// How fast the bodies of a joint turn against each other \[rad/s\].
fn relative_speed(model: &Model, state: &State, joint: usize) -> f64 {
    let joint = &model.joints()[joint];
    let turning = |body: BodyId| state.bodies[body.index()].velocity.angular;
    (turning(joint.child) - joint.parent.map_or(DVec3::ZERO, turning)).length()
}

/// By body: whether it hangs on another and its tracker pulls at nothing, so that it sways on its own springs whatever else the character does.
pub(crate) fn sways(model: &Model) -> Vec<bool> {
    let topology = model.topology();
    let mut first = vec![None; model.bodies().len()];
    for tracker in model.trackers() {
        first[tracker.body.index()].get_or_insert(tracker);
    }
    let slack = |b: usize| {
        let hangs = topology.nodes[topology.node_of[b]].joint.is_some();
        hangs && first[b].is_some_and(|t| t.stiffness == 0.0 && t.rotation_stiffness == 0.0)
    };
    (0..model.bodies().len()).map(slack).collect()
}

/// Of each joint the body on its far side from the root: the child, or the parent of a joint that the tree takes the other
/// way round. Joints that close loops keep their child.
fn hung(model: &Model) -> Vec<usize> {
    let mut hung: Vec<usize> = model.joints().iter().map(|joint| joint.child.index()).collect();
    for node in &model.topology().nodes {
        if let Some(joint) = node.joint {
            hung[joint.index()] = node.body.index();
        }
    }
    hung
}

/// What is constant of the bodies: their first trackers, masses, and the springs of loose and limp joints.
fn parts(model: &Model) -> Vec<Part> {
    let mut trackers = vec![None; model.bodies().len()];
    for (k, tracker) in model.trackers().iter().enumerate() {
        trackers[tracker.body.index()].get_or_insert(k);
    }
    let sways = sways(model);
    let own = |b: usize| {
        let body = &model.bodies()[b];
        let node = model.topology().node_of[b];
        let alone = (Levels::NONE, Levels::NONE, (0.0, 1.0));
        let (loose, limp, friction) = model.topology().nodes[node].joint.map_or(alone, |j| slack(model, node, j));
        Part { tracker: trackers[b], sways: sways[b], mass: body.mass, inertia: body.inertia, friction, loose, limp }
    };
    (0..model.bodies().len()).map(own).collect()
}

/// What acts at a joint when what hangs on it is loose, and when it is limp, and its friction. Scales of springs and dampers are never above 1: what a file makes softer stays
/// so.
fn slack(model: &Model, node: usize, joint: JointId) -> (Levels, Levels, (f64, f64)) {
    let topology = model.topology();
    let joint = model.joint(joint);
    let at = model.body(joint.child).start.then(joint.child_from_joint);
    let below = node..node + topology.nodes[node].subtree;
    let bodies = || below.clone().map(|k| model.body(topology.nodes[k].body));
    let mass: f64 = bodies().map(|body| body.mass).sum();
    let lever = bodies().map(|body| (body.start.translation - at.translation) * body.mass).sum::<DVec3>() / mass;
    let inertia = bodies().fold(DMat3::ZERO, |sum, body| {
        let r = body.start.translation - at.translation;
        let far = DMat3::from_diagonal(DVec3::splat(r.length_squared())) - rotation::outer(r, r);
        sum + rotation::turned_inertia(body.start.rotation, body.inertia) + far * body.mass
    });
    let (load, moment) = match joint.mask.rotation() {
        RotationKind::Axis(i) => {
            let axis = at.rotation * DVec3::AXES[i];
            (mass * GRAVITY * lever.reject_from_normalized(axis).length(), axis.dot(inertia * axis))
        }
        _ => (mass * GRAVITY * lever.length(), singular::eigen(inertia).0.max_element()),
    };
    let spring = joint.rotation_spring;
    let share = |wanted: f64, has: f64| if has > 0.0 { (wanted / has).min(1.0) } else { 1.0 };
    // Held level and let sag by φ, what hangs on it weighs `load cos φ`: k = load cos φ / φ, c = 2 ζ √(k I); of a pendulum k = load
    let stiffness = load * LOOSE_SAG.cos() / LOOSE_SAG;
    let damping = |ratio: f64, stiffness: f64| share(2.0 * ratio * (stiffness * moment).sqrt(), spring.damping);
    let friction = if spring.damping > 0.0 { FRICTION * load / spring.damping } else { 0.0 };
    let least = FRICTION_SPEED.0.min(FRICTION_SPEED.1 / lever.length().max(1e-9));
    let tissue = Levels { tissue: 1.0, ..Levels::NONE };
    let loose =
        Levels { stiffness: share(stiffness, spring.stiffness), damping: damping(LOOSE_RATIO, stiffness), ..tissue };
    (loose, Levels { damping: damping(LIMP_RATIO, load), ..tissue }, (friction, least))
}
