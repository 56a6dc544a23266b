//! A recorded motion, and the script that lets trackers follow it.
//!
//! The trackers alone would lag behind: a spring of frequency ω leaves an error of `(a − g)/ω²`. So the force that the motion itself needs
//! is given to each body (`m (a − g)`, and the torque of its turning), and the springs only have to undo what comes between: pulls,
//! pushes, contacts.

use super::entries;
use crate::input::{Drag, Input, JointInput, Target};
use crate::maths::{Pose, Twist, Wrench, rotation};
use crate::model::{BodyId, Model, TrackerId};
use crate::tone::{Play, Tones, needs, sways, turn};
use glam::DVec3;
use std::sync::Arc;

/// What comes after the last frame of a [`Motion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The first frame again; the last frame is the same pose as the first.
    Repeat,
    /// The last frame stays.
    Hold,
}

/// Poses of bodies at equal intervals: a clip of a file, resampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Motion {
    name: String,
    /// Frames per second.
    rate: f64,
    bodies: usize,
    /// Of the centres of mass, frame after frame.
    poses: Vec<Pose>,
    ending: Ending,
}

/// Where a body of a [`Motion`] is at a time, and how that changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Of the centre of mass.
    pub pose: Pose,
    /// Of the centre of mass, world axes.
    pub velocity: Twist,
    /// Of the centre of mass \[m/s²\], and angular \[rad/s²\].
    pub acceleration: Twist,
}

impl Motion {
    /// A motion from its frames, `rate` of them a second; `poses` holds those of `bodies` bodies, frame after frame, as many frames as
    /// it has whole ones. `None` when there is not one frame, a number is not finite, or the rate is not positive.
    pub fn new(name: impl Into<String>, rate: f64, bodies: usize, poses: Vec<Pose>, ending: Ending) -> Option<Motion> {
        let whole = bodies > 0 && poses.len() >= bodies && poses.len().is_multiple_of(bodies);
        let good = rate.is_finite() && rate > 0.0 && poses.iter().all(Pose::is_finite);
        (whole && good).then(|| Motion { name: name.into(), rate, bodies, poses, ending })
    }

    /// Its name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many frames it has, at least one.
    pub fn frames(&self) -> usize {
        self.poses.len() / self.bodies
    }

    /// How many bodies it moves.
    pub fn bodies(&self) -> usize {
        self.bodies
    }

    /// Frames per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// From the first frame to the last \[s\].
    pub fn seconds(&self) -> f64 {
        (self.frames() - 1) as f64 / self.rate
    }

    /// What comes after the last frame.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The same motion with another ending.
    #[must_use]
    pub fn with_ending(mut self, ending: Ending) -> Motion {
        self.ending = ending;
        self
    }

    /// The poses of one frame, by body.
    pub fn frame(&self, frame: usize) -> &[Pose] {
        &self.poses[frame * self.bodies..(frame + 1) * self.bodies]
    }

    /// A frame that may lie before the first or after the last.
    fn pose(&self, frame: i64, body: usize) -> Pose {
        let last = self.frames() as i64 - 1;
        let frame = match self.ending {
            Ending::Repeat if last > 0 => frame.rem_euclid(last),
            _ => frame.clamp(0, last),
        };
        self.poses[frame as usize * self.bodies + body]
    }

    /// Where a body is at a time \[s\].
    ///
    /// Between frames k and k + 1 at u: position `(1 − u) p_k + u p_{k+1}` and rotation likewise along the shorter arc; velocity and
    /// acceleration blend the central differences at both frames. A motion that is held at its ends begins with the velocity of its first two frames: it was
    /// under way before.
    pub fn at(&self, time: f64, body: usize) -> Moved {
        let frames = time * self.rate;
        let k = frames.floor();
        let u = frames - k;
        // Beyond 2⁵³ frames a time has no fraction left.
        let k = k.clamp(-9e15, 9e15) as i64;
        let [mut before, a, b, after] = [-1, 0, 1, 2].map(|i| self.pose(k + i, body));
        if k == 0 && self.ending == Ending::Hold {
            before = mirrored(a, b);
        }
        let (at_a, at_b) = (self.rates(before, a, b), self.rates(a, b, after));
        let blend =
            |x: Twist, y: Twist| Twist::new(x.linear * (1.0 - u) + y.linear * u, x.angular * (1.0 - u) + y.angular * u);
        Moved {
            pose: Pose::new(
                rotation::exp(turn(a.rotation, b.rotation) * u) * a.rotation,
                a.translation.lerp(b.translation, u),
            ),
            velocity: blend(at_a.0, at_b.0),
            acceleration: blend(at_a.1, at_b.1),
        }
    }

    /// Velocity `(p₊ − p₋) rate / 2` and acceleration `(p₊ − 2p + p₋) rate²` in the middle of three frames.
    fn rates(&self, before: Pose, here: Pose, after: Pose) -> (Twist, Twist) {
        let (to, from) = (after.translation - here.translation, here.translation - before.translation);
        let (turn_to, turn_from) = (turn(here.rotation, after.rotation), turn(before.rotation, here.rotation));
        let (half, square) = (0.5 * self.rate, self.rate * self.rate);
        (
            Twist::new((to + from) * half, (turn_to + turn_from) * half),
            Twist::new((to - from) * square, (turn_to - turn_from) * square),
        )
    }
}

/// As far before `here` as `after` is behind it.
fn mirrored(here: Pose, after: Pose) -> Pose {
    Pose::new(
        rotation::exp(-turn(here.rotation, after.rotation)) * here.rotation,
        here.translation * 2.0 - after.translation,
    )
}

/// The first tracker of each body follows the recorded motion; others rest.
#[derive(Clone, Debug)]
pub(super) struct Follow {
    motion: Arc<Motion>,
    /// By tracker: its body and the point it pulls in body coordinates \[m\]; `None` for further trackers of a body, which rest.
    trackers: Vec<Option<(BodyId, DVec3)>>,
    /// By body: mass \[kg\] and inertia in body axes \[kg·m²\].
    inertias: Vec<(f64, glam::DMat3)>,
    /// By body: whether it sways on its own springs instead.
    sways: Vec<bool>,
    /// By joint: whether what hangs on it sways.
    joints: Vec<bool>,
}

impl Follow {
    /// `None` when the motion is one of another number of bodies.
    pub(super) fn new(model: &Model, motion: Arc<Motion>) -> Option<Follow> {
        let mut pulled = vec![false; model.bodies().len()];
        let mut first = |body: BodyId| !std::mem::replace(&mut pulled[body.index()], true);
        let sways = sways(model);
        (motion.bodies == model.bodies().len()).then(|| Follow {
            trackers: model.trackers().iter().map(|t| first(t.body).then_some((t.body, t.point))).collect(),
            inertias: model.bodies().iter().map(|b| (b.mass, b.inertia)).collect(),
            joints: model.joints().iter().map(|joint| sways[joint.child.index()]).collect(),
            sways,
            motion,
        })
    }

    /// Tones in which every body follows the same motion, from the scene's beginning on.
    pub(super) fn tones(&self, model: &Model, figure: usize) -> Option<Tones> {
        Tones::following(model, figure, Play::new(self.motion.clone(), 0.0))
    }

    /// Targets at the end of the step; forces in its middle. The springs of the joints rest: they hold another pose; but for what sways.
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let (end, middle) = (time + input.dt, time + 0.5 * input.dt);
        let gravity = input.gravity;
        let targets = entries(&mut input.targets, self.trackers.len(), None);
        for (target, tracker) in targets.iter_mut().zip(&self.trackers) {
            *target = tracker.map(|(body, point)| {
                let moved = self.motion.at(end, body.index());
                let lever = moved.pose.rotation * point;
                Target {
                    pose: Pose::new(moved.pose.rotation, moved.pose.translation + lever),
                    velocity: Twist::new(moved.velocity.at(lever), moved.velocity.angular),
                }
            });
        }
        let wrenches = entries(&mut input.wrenches, self.inertias.len(), (BodyId(0), Wrench::ZERO));
        for (i, (wrench, (mass, inertia))) in wrenches.iter_mut().zip(&self.inertias).enumerate() {
            let moved = self.motion.at(middle, i);
            let needed = if self.sways[i] { Wrench::ZERO } else { needs(moved, *mass, *inertia, gravity) };
            *wrench = (BodyId(i as u32), needed);
        }
        let joints = entries(&mut input.joints, self.joints.len(), JointInput::default());
        for (joint, sways) in joints.iter_mut().zip(&self.joints) {
            let scale = if *sways { 1.0 } else { 0.0 };
            (joint.stiffness_scale, joint.damping_scale) = (scale, scale);
        }
    }
}

/// A force on a body for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Push {
    /// The body, pushed at its centre of mass.
    pub body: BodyId,
    /// When it begins \[s\].
    pub from: f64,
    /// When it ends \[s\].
    pub to: f64,
    /// World axes \[N\].
    pub force: DVec3,
}

/// A point of a body pulled to a place by a spring for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pull {
    /// Body, point, place and spring.
    pub drag: Drag,
    /// When it begins \[s\].
    pub from: f64,
    /// When it ends \[s\].
    pub to: f64,
}

/// What happens to a scene beside what directs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Happenings {
    /// Forces.
    pub pushes: Vec<Push>,
    /// Springs.
    pub pulls: Vec<Pull>,
    /// Trackers that let go, and when \[s\].
    pub releases: Vec<(TrackerId, f64)>,
}

/// Happenings, as wrenches and drags after those of another script.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    what: Happenings,
    /// Wrenches and drags that come before.
    before: (usize, usize),
}

impl Happening {
    pub(super) fn new(what: Happenings, input: &Input) -> Happening {
        Happening { what, before: (input.wrenches.len(), input.drags.len()) }
    }

    /// The mean force over the step, so that every step length gives the same impulse; springs in proportion.
    pub(super) fn direct(&self, time: f64, input: &mut Input) {
        let (start, end) = (time, time + input.dt);
        let share = |from: f64, to: f64| ((to.min(end) - from.max(start)) / (end - start)).clamp(0.0, 1.0);
        let Happenings { pushes, pulls, releases } = &self.what;
        let wrenches = entries(&mut input.wrenches, self.before.0 + pushes.len(), (BodyId(0), Wrench::ZERO));
        for (wrench, push) in wrenches[self.before.0..].iter_mut().zip(pushes) {
            *wrench = (push.body, Wrench::new(push.force * share(push.from, push.to), DVec3::ZERO));
        }
        if let Some(first) = pulls.first() {
            let drags = entries(&mut input.drags, self.before.1 + pulls.len(), first.drag);
            for (drag, pull) in drags[self.before.1..].iter_mut().zip(pulls) {
                let share = share(pull.from, pull.to);
                *drag = pull.drag;
                (drag.stiffness, drag.damping) = (share * drag.stiffness, share * drag.damping);
            }
        }
        for (tracker, at) in releases {
            if let Some(target) = input.targets.get_mut(tracker.index())
                && *at <= start
            {
                *target = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::DQuat;

    /// A body on a circle of radius 0.5 m at 2 rad/s, that turns with it.
    fn circle(rate: f64) -> Motion {
        let frames = (std::f64::consts::PI * rate).round() as usize;
        let poses = (0..=frames).map(|k| {
            let angle = std::f64::consts::TAU * k as f64 / frames as f64;
            let rotation = DQuat::from_rotation_y(angle);
            Pose::new(rotation, rotation * DVec3::new(0.5, 0.0, 0.0))
        });
        Motion::new("circle", rate, 1, poses.collect(), Ending::Repeat).unwrap()
    }

    #[test]
    fn a_circle_has_its_velocity_and_acceleration() {
        let motion = circle(120.0);
        for time in [0.0, 0.3, 1.57, 3.0, 3.2, -0.4, 100.0] {
            let moved = motion.at(time, 0);
            // 2 rad/s to the rounding of the number of frames (377 for 120 π = 376.99).
            let w = std::f64::consts::TAU * 120.0 / 377.0;
            let angle = w * time;
            let here = DQuat::from_rotation_y(angle) * DVec3::new(0.5, 0.0, 0.0);
            // Chords of 1/120 s: ⅛ (w h)² r = 1.7e-5 m; differences have the relative error (w h)²/6 = 5e-5.
            assert!((moved.pose.translation - here).length() < 2e-5, "{time}");
            assert!((moved.velocity.linear - DVec3::new(0.0, w, 0.0).cross(here)).length() < 1e-4, "{time}");
            assert!((moved.velocity.angular - DVec3::new(0.0, w, 0.0)).length() < 1e-9, "{time}");
            assert!((moved.acceleration.linear + here * w * w).length() < 3e-4, "{time}");
        }
    }

    #[test]
    fn a_motion_that_holds_stays_at_its_ends() {
        let motion = circle(30.0).with_ending(Ending::Hold);
        let end = motion.at(1e30, 0);
        assert_eq!(end.velocity, Twist::ZERO);
        assert_eq!(end.pose, motion.frame(motion.frames() - 1)[0]);
    }

    #[test]
    fn what_is_no_motion_is_refused() {
        let pose = Pose::IDENTITY;
        let make = |rate, bodies, poses| Motion::new("m", rate, bodies, poses, Ending::Hold);
        assert!(make(30.0, 1, vec![]).is_none());
        assert!(make(30.0, 2, vec![pose; 3]).is_none());
        assert!(make(0.0, 1, vec![pose]).is_none());
        assert!(make(30.0, 0, vec![pose]).is_none());
        assert!(make(30.0, 1, vec![Pose::at(DVec3::splat(f64::NAN))]).is_none());
        assert!(make(30.0, 1, vec![pose]).is_some());
    }
}
