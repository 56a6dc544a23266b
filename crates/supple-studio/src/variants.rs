//! Variants of a part of a take: the recorded inputs once more, with something else in them. They are computed beside the run, from a copy of the takes; the one
//! that is chosen is done again as a take, with the same bits.

use serde::{Deserialize, Serialize};
use supple::glam::DVec3;
use supple::{BodyId, Input, Model, Moment, State, StepError, TakeError, Timeline, Work, Wrench, step};

/// The longest part that variants are made of \[steps\].
pub(crate) const MAX_STEPS: u64 = 600;
/// What a seed pushes the character with, for so long; it gives way and recovers within this time \[m/s², s, s\].
const PUSH: f64 = 6.0;
const PUSH_TIME: f64 = 0.15;
const RECOVERY: f64 = 0.8;
/// What is left of the strength after a push.
const SHAKEN: f64 = 0.1;

/// How a variant differs from what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Variation {
    /// How strongly it follows or holds itself, as a share of what was recorded.
    pub(crate) strength: f64,
    /// All that is asked of it comes so much later \[s\]; earlier, below 0.
    pub(crate) delay: f64,
    /// How strongly the ends of its limbs follow, and its joints hold, as a share; bones between root and end lie between.
    pub(crate) style: f64,
    /// Gravity, as a share.
    pub(crate) gravity: f64,
    /// Another number, another push on the way; 0 is none.
    pub(crate) seed: u32,
}

impl Default for Variation {
    fn default() -> Variation {
        Variation { strength: 1.0, delay: 0.0, style: 1.0, gravity: 1.0, seed: 0 }
    }
}

impl Variation {
    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let within = |name: &str, x: f64, low: f64, high: f64| {
            let good = (low..=high).contains(&x);
            if good { Ok(()) } else { Err(format!("{name} is {}: give {low} to {high}", supple_assets::plain(x))) }
        };
        within("strength", self.strength, 0.0, 10.0)?;
        within("delay", self.delay, -10.0, 10.0)?;
        within("style", self.style, 0.0, 10.0)?;
        within("gravity", self.gravity, -10.0, 10.0)
    }

    /// What a take of it is called.
    pub(crate) fn name(&self) -> String {
        let usual = Variation::default();
        let parts = [
            (self.strength != usual.strength).then(|| format!("strength {:.2}", self.strength)),
            (self.delay != usual.delay).then(|| format!("{:+.2} s", self.delay)),
            (self.style != usual.style).then(|| format!("style {:.2}", self.style)),
            (self.gravity != usual.gravity).then(|| format!("gravity {:.2}", self.gravity)),
            (self.seed != usual.seed).then(|| format!("push {}", self.seed)),
        ];
        let told: Vec<String> = parts.into_iter().flatten().collect();
        if told.is_empty() { "variant".into() } else { told.join(", ") }
    }
}

/// A part of a take as it was recorded: where it begins, and the input of each of its steps.
pub(crate) struct Part {
    pub(crate) begin: Moment,
    inputs: Vec<Input>,
    /// By body: how far it is from the root, as a share of the longest limb.
    outward: Vec<f64>,
}

/// Why variants of a part cannot be made.
pub(crate) enum PartError {
    Value(String),
    Take(TakeError),
}

impl Part {
    /// Does a part of a take again.
    pub(crate) fn read(
        model: &Model,
        timeline: &Timeline,
        take: usize,
        (from, to): (u64, u64),
        work: &mut Work,
    ) -> Result<Part, PartError> {
        if to <= from || to - from > MAX_STEPS {
            return Err(PartError::Value(format!("steps {from} to {to}: give 1 to {MAX_STEPS} steps")));
        }
        if model.flesh().is_some() || model.skin().is_some() {
            return Err(PartError::Value("variants are made of scenes without flesh and soft skin".into()));
        }
        let begin = timeline.seek(model, take, from, work).map_err(PartError::Take)?;
        let (mut moment, mut inputs) = (begin.clone(), Vec::new());
        while moment.step < to {
            timeline.advance(model, take, &mut moment, work).map_err(PartError::Take)?;
            inputs.push(moment.input.clone());
        }
        Ok(Part { begin, inputs, outward: outward(model) })
    }

    pub(crate) fn steps(&self) -> usize {
        self.inputs.len()
    }

    /// The input of a step of a variant.
    pub(crate) fn input(&self, model: &Model, variation: &Variation, k: usize) -> Input {
        let last = self.inputs.len() - 1;
        let shift = (variation.delay / self.inputs[0].dt).round() as i64;
        let mut input = self.inputs[(k as i64 - shift).clamp(0, last as i64) as usize].clone();
        input.gravity *= variation.gravity;
        let blow = (variation.seed != 0).then(|| Blow::new(model, variation.seed, input.dt * self.steps() as f64));
        let time = k as f64 * input.dt;
        let strength = variation.strength * blow.as_ref().map_or(1.0, |blow| blow.strength(time));
        let held = |b: usize| strength * variation.style.powf(self.outward[b]);
        if strength != 1.0 || variation.style != 1.0 {
            input.strengths.resize(model.trackers().len(), 1.0);
            for (strength, tracker) in input.strengths.iter_mut().zip(model.trackers()) {
                *strength *= held(tracker.body.index());
            }
            for (body, wrench) in &mut input.wrenches {
                let share = held(body.index()).min(1.0);
                *wrench = Wrench::new(wrench.force * share, wrench.torque * share);
            }
            input.stiffness_scale *= strength * variation.style;
            input.damping_scale *= variation.style;
        }
        if let Some(Blow { body, force, begin }) = blow
            && (begin..begin + PUSH_TIME).contains(&time)
        {
            input.wrenches.push((body, Wrench::new(force, DVec3::ZERO)));
        }
        input
    }

    /// Does a variant; `each` is told every step of it.
    pub(crate) fn run(
        &self,
        model: &Model,
        variation: &Variation,
        work: &mut Work,
        mut each: impl FnMut(&Input, &State),
    ) -> Result<(), StepError> {
        let mut state = self.begin.state.clone();
        for k in 0..self.steps() {
            let input = self.input(model, variation, k);
            step(model, &input, &mut state, work)?;
            each(&input, &state);
        }
        Ok(())
    }
}

/// By body: how many bones are above it, as a share of the longest limb.
fn outward(model: &Model) -> Vec<f64> {
    let topology = model.topology();
    let mut depth = vec![0usize; topology.nodes.len()];
    for k in 0..topology.nodes.len() {
        if let Some(parent) = topology.nodes[k].parent.checked_sub(1) {
            depth[k] = depth[parent] + 1;
        }
    }
    let most = depth.iter().copied().max().unwrap_or(0).max(1) as f64;
    (0..model.bodies().len()).map(|b| depth[topology.node_of[b]] as f64 / most).collect()
}

/// A push along the ground at one of the bodies, which gives way.
struct Blow {
    body: BodyId,
    force: DVec3,
    /// After the beginning of the part \[s\].
    begin: f64,
}

impl Blow {
    /// That of a seed: the heavier a body the likelier, somewhere in the middle of the part.
    fn new(model: &Model, seed: u32, length: f64) -> Blow {
        let mut number = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut next = || {
            number ^= number >> 33;
            number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
            (number >> 11) as f64 / (1u64 << 53) as f64
        };
        let (share, angle, begin) = (next(), std::f64::consts::TAU * next(), length * (0.2 + 0.4 * next()));
        let whole = model.mass();
        let mut left = share * whole;
        let body = model.bodies().iter().position(|body| {
            left -= body.mass;
            left <= 0.0
        });
        let force = DVec3::new(angle.cos(), 0.0, angle.sin()) * (PUSH * whole);
        Blow { body: BodyId(body.unwrap_or(0) as u32), force, begin }
    }

    /// How strong the character is at a time.
    fn strength(&self, time: f64) -> f64 {
        let since = time - self.begin;
        if since < 0.0 {
            1.0
        } else if since < PUSH_TIME {
            SHAKEN
        } else {
            (SHAKEN + (1.0 - SHAKEN) * (since - PUSH_TIME) / RECOVERY).min(1.0)
        }
    }
}
