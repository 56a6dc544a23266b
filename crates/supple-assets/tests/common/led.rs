//! Places that a figure can bring a bone to: it is led there through keyframes, by its own actuators and within their bounds.

#![allow(dead_code, unreachable_pub)] // the test and the example use a part each

use glam::DVec3;
use supple::control::{Keyframes, Mode};
use supple::maths::Twist;
use supple::model::Coordinates;
use supple::*;

/// How far a joint is turned or pushed \[rad, m\].
const TURN: f64 = 0.25;
const PUSH: f64 = 0.02;
/// How long it is led, and how long it then stands \[s\].
const LED: f64 = 1.5;
const STANDS: f64 = 0.5;
/// It has come where its joints are no farther from the last key than this \[rad, m\].
const THERE: f64 = 1e-3;

/// A figure at rest, with what acts on it while it is directed: solver `reduced`, gravity unless it floats.
pub fn at_rest(scene: &Scene) -> (State, Input) {
    let model = &scene.model;
    let mut state = scene.state.clone();
    state.bodies.iter_mut().for_each(|body| body.velocity = Twist::ZERO);
    // a floor would kick off what floats, and scenery is in the way of some
    let solver = Solver::Reduced(Reduced::default());
    let mut input = Input { solver, contacts: Contacts::Off, ..Input::default() };
    let mut roots = model.topology().nodes.iter().filter(|node| node.parent == 0);
    if roots.any(|node| node.joint.is_none_or(|id| model.joint(id).mask.free_translations() >= 2)) {
        input.gravity = DVec3::ZERO; // nothing holds it up
    }
    (state, input)
}

/// The bone with most joints between it and the world, and those joints.
pub fn longest_limb(model: &Model) -> (BodyId, Vec<JointId>) {
    let above = |body: BodyId| model.joints().iter().position(|joint| joint.child == body);
    let limb = |body: BodyId| {
        let (mut at, mut joints) = (body, Vec::new());
        while let Some(k) = above(at) {
            joints.push(JointId(k as u32));
            let Some(parent) = model.joints()[k].parent else { break };
            at = parent;
        }
        joints
    };
    let limbs = (0..model.bodies().len() as u32).map(|k| (BodyId(k), limb(BodyId(k))));
    limbs.max_by_key(|(_, joints)| joints.len()).unwrap()
}

/// The coordinates with the joints of a limb turned by a share of [`TURN`], towards the middles of their ranges and by no more than a quarter of those.
fn turned(model: &Model, state: &State, limb: &[JointId], share: f64) -> Coordinates {
    let mut turned = Coordinates::of(model, state);
    turned.rates.fill(0.0);
    for &id in limb {
        let joint = model.joint(id);
        let is_root = joint.parent.is_none() && joint.mask.free_translations() >= 2;
        if is_root {
            continue;
        }
        let slides = joint.mask.free_translations() > 0;
        let range = if slides { joint.limits.slide } else { joint.limits.angle };
        let here = if slides { turned.positions_of(id)[0] } else { state.joints[id.index()].angle };
        let sign = range.map_or(1.0, |range| if here > 0.5 * (range.min + range.max) { -1.0 } else { 1.0 });
        let room = range.map_or(f64::INFINITY, |range| 0.25 * (range.max - range.min));
        let size = if slides { PUSH } else { TURN };
        turned.rates_of_mut(id).iter_mut().for_each(|rate| *rate = share * sign * size.min(room));
    }
    turned.advance(model, 1.0);
    turned.rates.fill(0.0);
    turned
}

/// Where a figure can bring the end of its longest limb.
pub struct Led {
    /// The bone.
    pub bone: BodyId,
    /// Where it is at first, and where it can be \[m\].
    pub from: DVec3,
    /// In the end.
    pub to: DVec3,
    /// The share of the turn that its actuators could do and then hold.
    pub share: f64,
}

/// Leads a figure by keyframes; where it cannot follow or cannot stand there, by half the way, and so on. None: it cannot even stand where it is.
pub fn lead(scene: &Scene) -> Result<Option<Led>, StepError> {
    let model = &scene.model;
    let (bone, limb) = longest_limb(model);
    for share in [1.0, 0.5, 0.25, 0.125, 0.0] {
        let (mut state, mut input) = at_rest(scene);
        let from = state.bodies[bone.index()].position;
        let end = turned(model, &state, &limb, share);
        input.control.mode = Mode::Keyframes;
        input.control.keyframes = Keyframes::new();
        input.control.keyframes.insert(state.time, &Coordinates::of(model, &state));
        input.control.keyframes.insert(state.time + LED, &end);
        let (mut work, mut held) = (Work::new(model), true);
        let steps = ((LED + STANDS) / input.dt) as u32;
        for n in 0..steps {
            let report = step(model, &input, &mut state, &mut work)?;
            held &= f64::from(n) * input.dt < LED || report.control.limited == 0;
        }
        let came = Coordinates::of(model, &state);
        let is_there = limb.iter().all(|&id| {
            let (mut off, mask) = ([0.0; 6], model.joint(id).mask);
            let is_root = model.joint(id).parent.is_none() && mask.free_translations() >= 2;
            mask.difference(came.positions_of(id), end.positions_of(id), &mut off);
            is_root || off.iter().all(|x| x.abs() < THERE)
        });
        if held && is_there {
            return Ok(Some(Led { bone, from, to: state.bodies[bone.index()].position, share }));
        }
    }
    Ok(None)
}
