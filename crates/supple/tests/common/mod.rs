//! Random models for tests: a seed is a model for ever.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses a part

pub mod chaos;
pub mod heap;

use glam::{DQuat, DVec3};
use supple::maths::rotation::exp;
use supple::*;

/// Numbers for random models: xorshift64*, so that a seed is a model for ever.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn below(&mut self, n: usize) -> usize {
        ((self.bits() >> 33) as usize) % n
    }
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn chance(&mut self, p: f64) -> bool {
        self.range(0.0, 1.0) < p
    }
    pub fn vector(&mut self, size: f64) -> DVec3 {
        DVec3::new(self.range(-size, size), self.range(-size, size), self.range(-size, size))
    }
    pub fn rotation(&mut self, size: f64) -> DQuat {
        exp(self.vector(size))
    }
    pub fn pose(&mut self) -> Pose {
        Pose::new(self.rotation(1.5), self.vector(0.3))
    }

    /// A relative motion that `mask` allows.
    pub fn allowed(&mut self, mask: JointMask) -> Pose {
        use supple::model::RotationKind;
        let mut about = |i: usize, angle: f64| exp(DVec3::AXES[i % 3] * self.range(-angle, angle));
        let rotation = match mask.rotation() {
            RotationKind::Held => DQuat::IDENTITY,
            RotationKind::Axis(i) => about(i, 3.0),
            RotationKind::Cardan(i) => about(i + 1, 1.0) * about(i + 2, 1.0),
            RotationKind::Free => about(1, 1.4) * about(2, 1.0) * about(0, 1.4),
        };
        let mut slide = self.vector(0.3);
        for k in 0..3 {
            if mask.holds_translation(k) {
                slide[k] = 0.0;
            }
        }
        Pose::new(rotation, slide)
    }

    pub fn joint(&mut self, spec: JointSpec, mask: JointMask) -> JointSpec {
        use supple::model::RotationKind;
        let mut spec = spec;
        let rotation = mask.rotation();
        if self.chance(0.7) {
            spec = spec.rotation_spring(RotationSpring {
                stiffness: 10f64.powf(self.range(0.0, 4.0)),
                damping: self.range(0.0, 2.0),
                rest: self.rotation(0.8),
                rest_turns: self.range(-1.0, 1.0),
            });
            spec = spec.slide_spring(SlideSpring {
                stiffness: 10f64.powf(self.range(0.0, 4.0)),
                damping: self.range(0.0, 2.0),
                rest: self.vector(0.2),
            });
        }
        if self.chance(0.6) {
            let (low, high) = (self.range(-1.0, 0.3), self.range(-0.3, 1.0));
            let range = Range::new(low.min(high), low.max(high));
            spec = spec.limits(Limits {
                angle: matches!(rotation, RotationKind::Axis(_) | RotationKind::Free).then_some(range),
                swing: (rotation == RotationKind::Free)
                    .then_some(SwingEllipse { about_y: self.range(0.2, 1.2), about_z: self.range(0.2, 1.2) }),
                slide: (!mask.holds_translation(0)).then_some(Range::new(0.2 * range.min, 0.2 * range.max)),
                stops: Stops::Soft,
                stiffness: self.range(10.0, 1000.0),
                damping: self.range(0.0, 3.0),
                slide_stiffness: self.range(10.0, 1000.0),
                slide_damping: self.range(0.0, 3.0),
            });
        }
        let moves = match rotation {
            RotationKind::Cardan(_) => false,
            RotationKind::Held => !mask.holds_translation(0),
            RotationKind::Axis(_) | RotationKind::Free => true,
        };
        if moves && self.chance(0.5) {
            let max = if self.chance(0.3) { self.range(0.1, 2.0) } else { 1e4 };
            spec = spec.motor(Motor {
                stiffness: self.range(0.0, 300.0),
                damping: self.range(0.0, 3.0),
                max,
                integral: 0.0,
            });
        }
        spec
    }

    /// A tree of random joints with everything that may act on it, near an assembled pose, moving.
    pub fn tree(&mut self) -> (Model, Input, State) {
        let count = 1 + self.below(40);
        let mut builder = ModelBuilder::new();
        let mut poses: Vec<Pose> = Vec::new();
        for i in 0..count {
            let mask = JointMask::PRESETS[self.below(10)].1;
            let parent = if i == 0 || self.chance(0.03) { None } else { Some(self.below(i)) };
            let (frame_a, frame_b, relative) = (self.pose(), self.pose(), self.allowed(mask));
            let flipped = parent.is_some() && self.chance(0.4);
            let base = parent.map_or(Pose::IDENTITY, |p| poses[p]);
            let pose = if flipped {
                base.then(frame_a).then(relative.inverse()).then(frame_b.inverse())
            } else {
                base.then(frame_b).then(relative).then(frame_a.inverse())
            };
            poses.push(pose);
            let size = DVec3::new(self.range(0.05, 0.4), self.range(0.05, 0.4), self.range(0.05, 0.4));
            let shape = Shape::cuboid(size.x, size.y, size.z);
            builder.body(BodySpec::new(format!("body {i}")).shape(shape, 1000.0).pose(pose));
            if parent.is_none() && self.chance(0.4) {
                continue; // floating
            }
            let this = BodyRef::Id(BodyId(i as u32));
            let other = parent.map_or(BodyRef::World, |p| BodyRef::Id(BodyId(p as u32)));
            let (child, parent) = if flipped { (other.clone(), this.clone()) } else { (this.clone(), other.clone()) };
            let spec = JointSpec::new(format!("joint {i}"), mask, child, parent).frames(frame_a, frame_b);
            let spec = self.joint(spec, mask);
            builder.joint(spec);
            if self.chance(0.2) {
                builder.anchor_spring(AnchorSpringSpec {
                    name: format!("spring {i}"),
                    a: this.clone(),
                    point_in_a: self.vector(0.3),
                    b: if self.chance(0.5) { BodyRef::World } else { other },
                    point_in_b: self.vector(0.3),
                    stiffness: self.range(0.0, 500.0),
                    damping: self.range(0.0, 3.0),
                    rest_length: if self.chance(0.3) { 0.0 } else { self.range(0.0, 1.0) },
                });
            }
            if self.chance(0.2) {
                builder.tracker(TrackerSpec {
                    name: format!("tracker {i}"),
                    body: this,
                    point: self.vector(0.2),
                    stiffness: self.range(0.0, 500.0),
                    damping: self.range(0.0, 3.0),
                    rotation_stiffness: self.range(0.0, 100.0),
                    rotation_damping: self.range(0.0, 1.0),
                });
            }
        }
        let model = builder.build().unwrap();
        assert!(model.topology().is_tree());

        let mut state = model.start();
        for body in &mut state.bodies {
            body.position += self.vector(1e-3);
            body.orientation = (self.rotation(1e-3) * body.orientation).normalize();
            body.velocity = Twist::new(self.vector(1.0), self.vector(3.0));
        }
        state.recount_turns(&model);
        let mut input = Input { stiffness_scale: self.range(0.5, 2.0), ..Input::default() };
        input.torques = self.chance(0.9);
        for k in 0..model.joints().len() {
            let servo = match self.below(4) {
                0 => Some(ServoTarget::Position { position: self.range(-1.0, 1.0), rate: self.range(-1.0, 1.0) }),
                1 => Some(ServoTarget::Rate(self.range(-1.0, 1.0))),
                2 => Some(ServoTarget::Rotation(self.rotation(1.0))),
                _ => None,
            };
            let (torque, damping_scale) = (self.range(-3.0, 3.0), self.range(0.5, 2.0));
            *input.joint_mut(&model, k) = JointInput { servo, torque, damping_scale, ..JointInput::default() };
        }
        for _ in model.trackers() {
            let target = Target { pose: self.pose(), velocity: Twist::new(self.vector(1.0), self.vector(1.0)) };
            input.targets.push(self.chance(0.8).then_some(target));
        }
        for _ in 0..self.below(3) {
            let body = BodyId(self.below(count) as u32);
            let (stiffness, damping) = (self.range(0.0, 500.0), self.range(0.0, 5.0));
            let (point, target, target_velocity) = (self.vector(0.1), self.vector(1.0), self.vector(1.0));
            input.drags.push(Drag { body, point, target, target_velocity, stiffness, damping });
            input.wrenches.push((body, Wrench::new(self.vector(5.0), self.vector(1.0))));
        }
        (model, input, state)
    }
}
