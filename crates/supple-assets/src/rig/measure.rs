//! A rig measured: how its mass is spread, whether hinges stay hinges, whether it comes to rest, whether it holds together and how well it follows its own clips.

use super::{Kind, Tearing, fit};
use crate::{Bone, Character, Class, FileError, Imported};
use glam::{DQuat, DVec3};
use serde::Serialize;
use supple::tone::{Change, Tone};
use supple::{BodyId, BodyState, Contacts, Input, Model, Pose, State, Work, Wrench, step};

/// What is measured of a rig. The keys are a promise: add, do not rename.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// What body it is.
    pub kind: Kind,
    /// Of the model.
    pub bodies: usize,
    /// Of the model.
    pub joints: usize,
    /// Joints that turn about one axis.
    pub hinges_found: usize,
    /// \[kg\]
    pub total_mass: f64,
    /// \[m\]
    pub height: f64,
    /// Metres in a unit of length of the file.
    pub scale: f64,
    /// Largest relative difference of the masses of twins.
    pub asymmetry: f64,
    /// Of the mass.
    pub head_share: f64,
    /// The largest angle by which a hinge is off its axis while the limp figure is thrown about \[°\].
    pub sideways: f64,
    /// Largest distance between a vertex by the nodes and by its limb, in shares of the height.
    pub torn: f64,
    /// Loose on the ground: until all is slower than 1 cm/s and 0.1 rad/s \[s\]; 10 where it never is.
    pub rest_time: f64,
    /// The largest speed of a body after 10 s \[m/s\], or its turning in tens of rad/s: 0.01 is rest either way.
    pub rest_speed: f64,
    /// Mean error over clips \[°\].
    pub clip_degrees: f64,
    /// Mean error over clips, in shares of the height.
    pub clip_share: f64,
    /// How long it was thrown about, and followed each clip at most \[s\]: 10, less of what has hundreds of bodies.
    pub seconds: f64,
}

const SECONDS: f64 = 10.0;
/// At rest: slower than this \[m/s, rad/s\].
const REST: (f64, f64) = (0.01, 0.1);
/// Poses are looked at for tears every so many steps.
const LOOK: usize = 6;
/// Bodies times seconds that it is thrown about, and follows each clip: a herd in one file takes no longer than fifty persons. How long it takes to rest is never cut.
const BODY_SECONDS: f64 = 2500.0;
/// What is told of a run that failed \[m, m/s\]: JSON has no infinity.
const FAILED: f64 = 1e9;

impl Character {
    /// Throws it about, lets it fall, has it follow each of its clips, and measures all that.
    pub fn measure(&self) -> Result<Measured, FileError> {
        let imported = self.imported(&self.source().to_string_lossy())?;
        let (rig, model) = (&self.rig, &imported.scene.model);
        let mass: f64 = rig.bones.iter().map(|bone| bone.mass).sum();
        let off = |i: usize| {
            let (a, b) = (rig.bones[i].mass, rig.bones[rig.twin(i)?].mass);
            Some((a - b).abs() / a.max(b))
        };
        let height = self.height().max(1e-9);
        let head = rig.bones.iter().filter(|bone| bone.class == Class::Head).map(|bone| bone.mass);
        let mut tearing = Tearing::new(self, model);
        let seconds = SECONDS.min(BODY_SECONDS / model.bodies().len().max(1) as f64);
        let (sideways, thrown) = throw_about(self, &imported, seconds, &mut tearing);
        let (rest_time, rest_speed) = lie_down(&imported);
        let sways: Vec<bool> = rig.bones.iter().map(|bone| bone.sways).collect();
        let followed = follow(&imported, &sways, seconds, &mut tearing);
        Ok(Measured {
            kind: rig.kind(),
            bodies: model.bodies().len(),
            joints: model.joints().len(),
            hinges_found: rig.bones.iter().filter(|bone| hinge(bone).is_some()).count(),
            total_mass: mass,
            height,
            scale: self.scale(),
            asymmetry: (0..rig.bones.len()).filter_map(off).fold(0.0, f64::max),
            // The sum of nothing is −0.
            head_share: head.sum::<f64>().max(0.0) / mass,
            sideways,
            torn: thrown.max(followed.torn) / height,
            rest_time,
            rest_speed,
            clip_degrees: followed.angle.to_degrees(),
            clip_share: followed.distance / height,
            seconds,
        })
    }
}

/// The axis of a hinge in the world at rest.
fn hinge(bone: &Bone) -> Option<DVec3> {
    bone.axis().filter(|_| bone.parent.is_some())
}

/// Let go, in steps of a sixtieth of a second.
fn loose(imported: &Imported) -> Input {
    let mut input = imported.scene.input.clone();
    input.targets.fill(None);
    Input { dt: 1.0 / 60.0, contacts: Contacts::All, ..input }
}

/// The same with its springs off and next to no damping: nothing holds it up.
fn limp(imported: &Imported) -> Input {
    Input { stiffness_scale: 0.0, damping_scale: 0.05, ..loose(imported) }
}

fn poses(state: &State) -> Vec<Pose> {
    state.bodies.iter().map(|body| body.pose()).collect()
}

/// Throws the limp figure about: five times a second a body gets a blow in a direction of its own. The largest angle by which a hinge is off its axis \[°\], and
/// how far it is torn \[m\].
fn throw_about(character: &Character, imported: &Imported, seconds: f64, tearing: &mut Tearing<'_>) -> (f64, f64) {
    let (rig, model) = (&character.rig, &imported.scene.model);
    // The axis in the bodies on both sides of the joint.
    let hinges: Vec<(usize, usize, DVec3, DVec3)> = (0..rig.bones.len())
        .filter_map(|i| {
            let (axis, parent) = (hinge(&rig.bones[i])?, rig.bones[i].parent?);
            let within = |b: usize| model.bodies()[b].start.rotation.conjugate() * axis;
            Some((i, parent, within(i), within(parent)))
        })
        .collect();
    let base = limp(imported);
    let (mut state, mut work) = (imported.scene.state.clone(), Work::new(model));
    let (mut sideways, mut torn) = (0.0f64, 0.0f64);
    for k in 0..(seconds / base.dt) as usize {
        let mut input = base.clone();
        if k % 12 == 0 {
            input.wrenches.push(blow(model, k / 12, input.dt));
        }
        if step(model, &input, &mut state, &mut work).is_err() {
            return (180.0, FAILED);
        }
        for (child, parent, in_child, in_parent) in &hinges {
            let turned = |b: usize, axis: &DVec3| state.bodies[b].orientation * *axis;
            let (a, b) = (turned(*child, in_child), turned(*parent, in_parent));
            sideways = sideways.max(a.cross(b).length().atan2(a.dot(b)).to_degrees());
        }
        if k % LOOK == 0 {
            torn = torn.max(tearing.at(&poses(&state)));
        }
    }
    (sideways, torn)
}

/// A blow that would give a body 3 m/s and some turning, were it alone; bodies and directions go round in an order without a pattern.
fn blow(model: &Model, k: usize, dt: f64) -> (BodyId, Wrench) {
    let turn = |n: usize| (k as f64 * (0.618_034 + 0.1 * n as f64)).fract() * std::f64::consts::TAU;
    let direction = |n: usize| {
        let (up, round) = (turn(n).sin(), turn(n + 1));
        DVec3::new(round.cos() * (1.0 - up * up).sqrt(), up, round.sin() * (1.0 - up * up).sqrt())
    };
    let b = (k * 7919) % model.bodies().len();
    let body = &model.bodies()[b];
    let moment = (body.inertia.x_axis.x + body.inertia.y_axis.y + body.inertia.z_axis.z) / 3.0;
    let wrench = Wrench::new(direction(0) * (3.0 * body.mass / dt), direction(2) * (10.0 * moment / dt));
    (BodyId(b as u32), wrench)
}

/// How far the figure leans when it is let go \[rad\]: one that stands upright may stand for any time.
const LEANS: f64 = 0.2;

/// Lets the figure go loose and fall over: when it has come to rest, and the largest speed at the end.
fn lie_down(imported: &Imported) -> (f64, f64) {
    let (scene, model) = (&imported.scene, &imported.scene.model);
    let (mut input, mut tones) = (loose(imported), scene.tones());
    let (mut state, mut work) = (imported.scene.state.clone(), Work::new(model));
    // Turned about its middle, and moved so that its lowest point is as high as it was.
    let lowest = |state: &State| {
        let of = |(body, built): (&BodyState, &supple::Body)| {
            let shapes = built.shapes.iter().map(|s| fit::lowest(&s.shape, &body.pose().then(s.body_from_shape)));
            shapes.fold(f64::INFINITY, f64::min)
        };
        state.bodies.iter().zip(model.bodies()).map(of).fold(f64::INFINITY, f64::min)
    };
    let before = lowest(&state);
    let middle = state.bodies.iter().map(|b| b.position).sum::<DVec3>() / state.bodies.len().max(1) as f64;
    let turn = DQuat::from_rotation_x(LEANS);
    for body in &mut state.bodies {
        body.position = middle + turn * (body.position - middle);
        body.orientation = (turn * body.orientation).normalize();
    }
    let down = lowest(&state) - before;
    if down.is_finite() {
        state.bodies.iter_mut().for_each(|body| body.position.y -= down);
    }
    let (mut rest, mut speed) = (0.0, 0.0f64);
    if tones.change(model, &state, &Change::to(Tone::Loose, 0.0)).is_err() {
        return (SECONDS, FAILED);
    }
    for _ in 0..(SECONDS / input.dt) as usize {
        scene.direct(state.time, &mut input);
        tones.direct(model, &state, &[], &mut input);
        if step(model, &input, &mut state, &mut work).is_err() {
            return (SECONDS, FAILED);
        }
        // In shares of what is rest.
        let fast = |b: &BodyState| (b.velocity.linear.length() / REST.0).max(b.velocity.angular.length() / REST.1);
        speed = state.bodies.iter().map(fast).fold(0.0, f64::max);
        if speed >= 1.0 {
            rest = state.time;
        }
    }
    (if speed >= 1.0 { SECONDS } else { rest }, speed * REST.0)
}

/// What following clips gave, the mean over bodies, frames and clips.
#[derive(Default)]
struct Followed {
    /// \[rad\]
    angle: f64,
    /// \[m\]
    distance: f64,
    /// The largest \[m\].
    torn: f64,
}

fn follow(imported: &Imported, sways: &[bool], longest: f64, tearing: &mut Tearing<'_>) -> Followed {
    let model = &imported.scene.model;
    let mut all = Followed::default();
    let mut clips = 0.0;
    for clip in &imported.clips {
        let Some(scene) = imported.following(clip) else { continue };
        let mut input = Input { dt: 1.0 / 60.0, ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), Work::new(model));
        let seconds = clip.seconds().min(longest);
        let (mut angle, mut distance, mut count) = (0.0, 0.0, 0.0);
        for k in 0..(seconds / input.dt).ceil().max(1.0) as usize {
            scene.direct(state.time, &mut input);
            if step(model, &input, &mut state, &mut work).is_err() {
                return Followed { angle: std::f64::consts::PI, distance: FAILED, torn: FAILED };
            }
            // What sways is not asked to follow.
            for (i, body) in state.bodies.iter().enumerate().filter(|(i, _)| !sways[*i]) {
                let wanted = clip.at(state.time, i).pose;
                angle += body.orientation.angle_between(wanted.rotation);
                distance += body.position.distance(wanted.translation);
                count += 1.0;
            }
            if k % LOOK == 0 {
                all.torn = all.torn.max(tearing.at(&poses(&state)));
            }
        }
        (all.angle, all.distance, clips) = (all.angle + angle / count, all.distance + distance / count, clips + 1.0);
    }
    let mean = |sum: f64| if clips > 0.0 { sum / clips } else { 0.0 };
    Followed { angle: mean(all.angle), distance: mean(all.distance), torn: all.torn }
}
