//! Random trees of every kind of joint, with velocities that keep the joints closed, at any size; and the energy that
//! the midpoint step keeps.

use super::Random;
use glam::DVec3;
use supple::model::RotationKind;
use supple::solver::Mode;
use supple::*;

pub fn midpoint(mode: Mode) -> Solver {
    Solver::Tree(Tree { scheme: TreeScheme::Midpoint(mode), ..Tree::default() })
}

/// What a random tree may have.
#[derive(Clone, Copy, Debug)]
pub struct Chaos {
    /// Fewest and most bodies.
    pub bodies: (usize, usize),
    /// Which joints: all 64 masks, or the presets.
    pub all_masks: bool,
    /// A single mask instead.
    pub mask: Option<JointMask>,
    /// Chance that the root floats, that a joint is flipped.
    pub floating: f64,
    pub flipped: f64,
    /// Largest ratio of densities.
    pub mass_ratio: f64,
    /// Chance of a joint spring; its stiffness as powers of ten, at scale 1.
    pub springs: f64,
    pub stiffness: (f64, f64),
    /// Chance that a spring starts slack.
    pub slack: f64,
    /// Chance of damping beside a spring or alone.
    pub dampers: f64,
    pub limits: f64,
    pub motors: f64,
    /// Chance of springs between bodies.
    pub anchors: f64,
    /// Chance of wrenches, drags and trackers.
    pub loads: f64,
    /// Largest relative rate \[rad/s\]; slides move at a third of it \[m/s\].
    pub speed: f64,
    pub gravity: bool,
    /// Lengths are multiplied by this, and all else that goes with them.
    pub scale: f64,
}

impl Chaos {
    /// Free motion: joints alone.
    pub const QUIET: Chaos = Chaos {
        bodies: (2, 5),
        all_masks: true,
        mask: None,
        floating: 0.4,
        flipped: 0.4,
        mass_ratio: 1.0,
        springs: 0.0,
        stiffness: (0.0, 2.0),
        slack: 0.5,
        dampers: 0.0,
        limits: 0.0,
        motors: 0.0,
        anchors: 0.0,
        loads: 0.0,
        speed: 3.0,
        gravity: false,
        scale: 1.0,
    };
}

/// A model with its start and input.
#[derive(Clone, Debug)]
pub struct Case {
    pub model: Model,
    pub input: Input,
    pub state: State,
    /// Whether motors, drags, trackers or wrenches may do work on it.
    pub driven: bool,
    /// The longest way from a root to a body's centre, over the joints \[m\].
    pub size: f64,
}

/// Makes a tree.
pub fn tree(random: &mut Random, chaos: &Chaos) -> Case {
    let l = chaos.scale;
    let (torque, force, linear) = (l.powi(5), l.powi(4), l.powi(3));
    let (least, most) = chaos.bodies;
    let count = least + random.below(most - least + 1);
    let mut builder = ModelBuilder::new();
    let mut poses: Vec<Pose> = Vec::new();
    let mut reach: Vec<f64> = Vec::new();
    let mut driven = false;
    let mut servos = Vec::new();
    let place = |random: &mut Random| Pose::new(random.rotation(1.5), random.vector(0.3) * l);
    for i in 0..count {
        let mask = chaos.mask.unwrap_or_else(|| {
            if chaos.all_masks {
                JointMask::from_bits(random.below(64) as u8)
            } else {
                JointMask::PRESETS[random.below(10)].1
            }
        });
        // Half of the joints hang on the last body: longer trees than pure chance makes.
        let parent = (i > 0).then(|| if random.chance(0.5) { i - 1 } else { random.below(i) });
        let (frame_a, frame_b, mut relative) = (place(random), place(random), random.allowed(mask));
        relative.translation *= l;
        let flipped = parent.is_some() && random.chance(chaos.flipped);
        let base = parent.map_or(Pose::IDENTITY, |p| poses[p]);
        poses.push(if flipped {
            base.then(frame_a).then(relative.inverse()).then(frame_b.inverse())
        } else {
            base.then(frame_b).then(relative).then(frame_a.inverse())
        });
        reach.push(
            parent.map_or(0.0, |p| reach[p]) + frame_a.translation.length() + frame_b.translation.length() + 0.1 * l,
        );
        let mut side = || random.range(0.05, 0.4) * l;
        let shape = Shape::cuboid(side(), side(), side());
        let density = 1000.0 * chaos.mass_ratio.powf(random.range(-0.5, 0.5));
        builder.body(BodySpec::new(format!("body {i}")).shape(shape, density).pose(poses[i]));
        if parent.is_none() && random.chance(chaos.floating) {
            continue;
        }
        let this = BodyRef::Id(BodyId(i as u32));
        let other = parent.map_or(BodyRef::World, |p| BodyRef::Id(BodyId(p as u32)));
        let (child, holder) = if flipped { (other.clone(), this.clone()) } else { (this.clone(), other.clone()) };
        let mut spec = JointSpec::new(format!("joint {i}"), mask, child, holder).frames(frame_a, frame_b);
        let rotation = mask.rotation();
        let mut spring = RotationSpring::default();
        let mut slide = SlideSpring::default();
        if random.chance(chaos.springs) {
            let k = 10f64.powf(random.range(chaos.stiffness.0, chaos.stiffness.1));
            let slack = random.chance(chaos.slack);
            (spring.stiffness, slide.stiffness) = (k * torque, k * linear);
            (spring.rest, slide.rest) = if slack {
                (relative.rotation, relative.translation)
            } else {
                (random.rotation(0.8), random.vector(0.2) * l)
            };
        }
        if random.chance(chaos.dampers) {
            let c = 10f64.powf(random.range(-3.0, 3.0));
            (spring.damping, slide.damping) = (c * torque, c * linear);
        }
        spec = spec.rotation_spring(spring).slide_spring(slide);
        if random.chance(chaos.limits) {
            let (low, high) = (random.range(-1.0, 0.3), random.range(-0.3, 1.0));
            let range = Range::new(low.min(high), low.max(high));
            let k = 10f64.powf(random.range(1.0, 4.0));
            let c = random.range(0.0, 3.0);
            let ellipse = SwingEllipse { about_y: random.range(0.2, 1.2), about_z: random.range(0.2, 1.2) };
            spec = spec.limits(Limits {
                angle: matches!(rotation, RotationKind::Axis(_) | RotationKind::Free).then_some(range),
                swing: (rotation == RotationKind::Free).then_some(ellipse),
                slide: (!mask.holds_translation(0)).then_some(Range::new(0.2 * range.min * l, 0.2 * range.max * l)),
                stops: Stops::Soft,
                stiffness: k * torque,
                damping: c * torque,
                slide_stiffness: k * linear,
                slide_damping: c * linear,
            });
        }
        let moves = match rotation {
            RotationKind::Cardan(_) => false,
            RotationKind::Held => !mask.holds_translation(0),
            RotationKind::Axis(_) | RotationKind::Free => true,
        };
        if moves && random.chance(chaos.motors) {
            driven = true;
            let (k, c) = (random.range(0.0, 300.0), random.range(0.0, 3.0));
            let max = if random.chance(0.3) { random.range(0.1, 2.0) } else { 1e4 };
            // A slider's motor gives forces.
            let (scale, max) = match rotation {
                RotationKind::Held => (linear, max * force),
                _ => (torque, max * torque),
            };
            spec = spec.motor(Motor { stiffness: k * scale, damping: c * scale, max, integral: 0.0 });
            let length = if rotation == RotationKind::Held { l } else { 1.0 };
            servos.push((builder_joint(&builder), length, if rotation == RotationKind::Held { force } else { torque }));
        }
        builder.joint(spec);
        if random.chance(chaos.anchors) && i > 0 {
            builder.anchor_spring(AnchorSpringSpec {
                name: format!("spring {i}"),
                a: this.clone(),
                point_in_a: random.vector(0.3) * l,
                b: BodyId(random.below(i) as u32).into(),
                point_in_b: random.vector(0.3) * l,
                stiffness: random.range(0.0, 500.0) * linear,
                damping: random.range(0.0, 3.0) * linear,
                rest_length: if random.chance(0.3) { 0.0 } else { random.range(0.0, 1.0) * l },
            });
        }
        if random.chance(chaos.loads) {
            builder.tracker(TrackerSpec {
                name: format!("tracker {i}"),
                body: this,
                point: random.vector(0.2) * l,
                stiffness: random.range(0.0, 500.0) * linear,
                damping: random.range(0.0, 3.0) * linear,
                rotation_stiffness: random.range(0.0, 100.0) * torque,
                rotation_damping: random.range(0.0, 1.0) * torque,
            });
        }
    }
    let model = builder.build().unwrap();
    assert!(model.topology().is_tree());
    let mut state = model.start();
    set_moving(&model, &mut state, random, chaos.speed, chaos.speed / 3.0 * l);
    let gravity = if chaos.gravity { DVec3::new(0.0, -9.81 * l, 0.0) } else { DVec3::ZERO };
    let mut input = Input { gravity, ..Input::default() };
    for (k, length, scale) in servos {
        let servo = match random.below(4) {
            0 => {
                let (position, rate) = (random.range(-1.0, 1.0) * length, random.range(-1.0, 1.0) * length);
                Some(ServoTarget::Position { position, rate })
            }
            1 => Some(ServoTarget::Rate(random.range(-1.0, 1.0) * length)),
            2 => Some(ServoTarget::Rotation(random.rotation(1.0))),
            _ => None,
        };
        *input.joint_mut(&model, k) =
            JointInput { servo, torque: random.range(-3.0, 3.0) * scale, ..JointInput::default() };
    }
    for _ in model.trackers() {
        driven = true;
        let pose = place(random);
        let velocity = Twist::new(random.vector(1.0) * l, random.vector(1.0));
        input.targets.push(random.chance(0.8).then_some(Target { pose, velocity }));
    }
    if random.chance(chaos.loads) {
        driven = true;
        let body = BodyId(random.below(count) as u32);
        input.drags.push(Drag {
            body,
            point: random.vector(0.1) * l,
            target: random.vector(1.0) * l,
            target_velocity: random.vector(1.0) * l,
            stiffness: random.range(0.0, 500.0) * linear,
            damping: random.range(0.0, 5.0) * linear,
        });
        input.wrenches.push((body, Wrench::new(random.vector(5.0) * force, random.vector(1.0) * torque)));
    }
    let size = reach.into_iter().fold(0.0, f64::max);
    Case { model, input, state, driven, size }
}

/// How many joints a builder has: the index of the next.
fn builder_joint(builder: &ModelBuilder) -> usize {
    // The builder tells it by the id of a joint added to a copy.
    builder.clone().joint(JointSpec::new("next", JointMask::FREE, BodyId(0), BodyRef::World)).index()
}

/// Velocities that keep all joints closed: random rates in the free directions, from the roots on.
pub fn set_moving(model: &Model, state: &mut State, random: &mut Random, turning: f64, sliding: f64) {
    let topology = model.topology();
    for node in &topology.nodes {
        let body = node.body.index();
        let Some(id) = node.joint else {
            state.bodies[body].velocity = Twist::new(random.vector(sliding), random.vector(turning));
            continue;
        };
        let joint = model.joint(id);
        let (a, b) = (state.bodies[joint.child.index()].pose(), model.parent_pose(joint, state));
        let axes_a = |k: usize| a.rotation * joint.child_from_joint.rotation * DVec3::AXES[k % 3];
        let axes_b = |k: usize| b.rotation * joint.parent_from_joint.rotation * DVec3::AXES[k % 3];
        let mut rate = || random.range(-turning, turning);
        let spin = match joint.mask.rotation() {
            RotationKind::Held => DVec3::ZERO,
            RotationKind::Axis(k) => axes_a(k) * rate(),
            RotationKind::Cardan(k) => axes_b(k + 1) * rate() + axes_a(k + 2) * rate(),
            RotationKind::Free => DVec3::new(rate(), rate(), rate()),
        };
        let mut slide = DVec3::ZERO;
        for k in (0..3).filter(|&k| !joint.mask.holds_translation(k)) {
            slide += axes_b(k) * random.range(-sliding, sliding);
        }
        let point = a.transform_point(joint.child_from_joint.translation);
        if node.flipped {
            // v_b + ω_b × (p − x_b) + slide = v_a at p
            let v_a = state.bodies[joint.child.index()].velocity;
            let omega = v_a.angular - spin;
            let at_point = v_a.at(point - a.translation) - slide;
            state.bodies[body].velocity = Twist::new(at_point - omega.cross(point - b.translation), omega);
        } else {
            let v_b = joint.parent.map_or(Twist::ZERO, |p| state.bodies[p.index()].velocity);
            let omega = v_b.angular + spin;
            let at_point = v_b.at(point - b.translation) + slide;
            state.bodies[body].velocity = Twist::new(at_point - omega.cross(point - a.translation), omega);
        }
    }
}

/// Kinetic and potential energy, without what drags and trackers hold.
pub fn energy(model: &Model, input: &Input, state: &State) -> (f64, f64) {
    let alone = Input { drags: Vec::new(), targets: Vec::new(), ..input.clone() };
    let whole = measure::energy(model, &alone, state);
    (whole.kinetic, whole.gravity + whole.springs)
}

/// The kinds of stress, drawn from a seed: everything that may happen to a character in a few frames.
pub fn stress(seed: u64) -> Case {
    let mut random = Random::new(seed ^ 0x5EED_0000);
    let random = &mut random;
    let some = |random: &mut Random, p: f64| if random.chance(0.5) { random.range(0.0, p) } else { 0.0 };
    let chaos = Chaos {
        bodies: (1, if random.chance(0.3) { 60 } else { 12 }),
        all_masks: random.chance(0.6),
        mask: random.chance(0.2).then_some(JointMask::BALL),
        floating: 0.4,
        flipped: 0.4,
        mass_ratio: 10f64.powf(random.range(0.0, 4.0)),
        springs: some(random, 1.0),
        stiffness: (0.0, random.range(0.0, 8.0)),
        slack: random.range(0.3, 1.0),
        dampers: some(random, 1.0),
        limits: some(random, 0.8),
        motors: some(random, 0.5),
        anchors: some(random, 0.2),
        loads: if random.chance(0.3) { 0.2 } else { 0.0 },
        speed: 10f64.powf(random.range(-1.0, 1.7)),
        gravity: random.chance(0.8),
        scale: 1.0,
    };
    let mut case = tree(random, &chaos);
    case.input.dt = 1.0 / [30.0, 60.0, 120.0, 240.0][random.below(4)];
    case
}

/// What 20 steps of a case came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub bodies: usize,
    pub driven: bool,
    /// A step was refused, by this error.
    pub error: Option<String>,
    /// The state or report was not finite.
    pub not_finite: bool,
    pub resorts: u32,
    pub backward: u32,
    pub fallbacks: u32,
    pub steps: u32,
    pub factorisations: u64,
    pub most_factorisations: u32,
    /// Largest gap of a step, as a share of the size (tilts count as they are), with resorts and without.
    pub gap: f64,
    /// Largest rise of energy above the start, as a share of what is at stake; 0 for driven cases.
    pub gain: f64,
    /// Largest speed at the end over the largest that the energy allows; driven cases: m/s.
    pub speed: f64,
}

/// Runs a case.
pub fn endure(case: &Case, steps: usize) -> Outcome {
    let Case { model, input, state, driven, size } = case;
    let mut out = Outcome { bodies: model.bodies().len(), driven: *driven, ..Outcome::default() };
    let (mut state, mut work) = (state.clone(), Work::new(model));
    let (kinetic, potential) = energy(model, input, &state);
    let first = kinetic + potential;
    // What is at stake: motion, the energy in springs, limits and anchors, a fall through its own size.
    let height: f64 =
        model.bodies().iter().zip(&state.bodies).map(|(b, s)| -b.mass * input.gravity.dot(s.position)).sum();
    let stake = (kinetic + (potential - height)).max(model.mass() * input.gravity.length() * size).max(1e-12);
    for _ in 0..steps {
        match step(model, input, &mut state, &mut work) {
            Err(error) => {
                out.error = Some(error.to_string());
                return out;
            }
            Ok(report) => {
                out.steps += 1;
                out.resorts += report.resorts;
                out.backward += report.backward_parts - report.resorts.min(report.backward_parts);
                out.fallbacks += report.fallbacks;
                out.factorisations += u64::from(report.factorisations);
                out.most_factorisations = out.most_factorisations.max(report.factorisations);
                let gap = (report.max_joint_gap / size).max(report.max_joint_tilt);
                out.gap = out.gap.max(gap);
                if !(state.is_finite() && gap.is_finite()) {
                    out.not_finite = true;
                    return out;
                }
                let now = energy(model, input, &state);
                if !driven {
                    out.gain = out.gain.max((now.0 + now.1 - first) / stake);
                }
            }
        }
    }
    out.speed = state.bodies.iter().map(|b| b.velocity.linear.length()).fold(0.0, f64::max);
    out
}
