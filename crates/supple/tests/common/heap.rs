//! Random small scenes in which things fall on one another: boxes, capsules, balls, chains and rings of them, on a floor or on steps, heavy on light.

use super::Random;
use glam::{DQuat, DVec3};
use supple::*;

/// A scene with its start.
pub struct Heap {
    pub model: Model,
    pub state: State,
    pub input: Input,
    /// Joints that close rings.
    pub loops: usize,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Outcome {
    pub error: Option<String>,
    pub finite: bool,
    /// The widest gap of a joint, as a share of the scene's size.
    pub gap: f64,
    /// The largest rise of the energy above its start, as a share of what is at stake.
    pub gain: f64,
    /// The deepest that anything was in anything \[m\].
    pub depth: f64,
    /// Frames, and those in which contacts did not settle, parts were divided, or nothing but the last resort was left.
    pub frames: u32,
    pub unconverged: u32,
    pub divided: u32,
    pub resorted: u32,
    /// Passes over contacts in all.
    pub passes: u64,
}

/// The scene of a seed.
pub fn heap(seed: u64) -> Heap {
    let mut random = Random::new(seed);
    let mut builder = ModelBuilder::new();
    let material = |random: &mut Random| {
        let friction = if random.chance(0.2) { 0.0 } else { random.range(0.1, 1.0) };
        Material::new(friction, if random.chance(0.3) { random.range(0.0, 0.6) } else { 0.0 })
    };
    builder.obstacle(ObstacleSpec::floor("floor", 0.0).material(material(&mut random)));
    for k in 0..random.below(3) {
        let at = DVec3::new(random.range(-0.6, 0.6), 0.05, random.range(-0.6, 0.6));
        let step = ObstacleSpec::new(format!("step {k}"), ObstacleShape::Solid(Shape::cuboid(0.5, 0.1, 0.5)));
        builder.obstacle(step.pose(Pose::at(at)).material(material(&mut random)));
    }
    // Things one above the other, so that none begins inside another.
    let heaviest = if random.chance(0.5) { 1e4 } else { 10.0 };
    let (mut height, mut loops, mut things) = (0.3, 0, Vec::new());
    for thing in 0..1 + random.below(5) {
        let kind = random.below(4);
        let density = 1000.0 * f64::powf(heaviest, random.range(-0.5, 0.5));
        let stuff = material(&mut random);
        let turned = random.rotation(3.0);
        let first = things.len();
        let middle = DVec3::new(random.range(-0.2, 0.2), height + 0.45, random.range(-0.2, 0.2));
        let mut add = |builder: &mut ModelBuilder, shape: Shape, pose: Pose| {
            let spec = BodySpec::new(format!("body {}", things.len())).shape(shape, density).pose(pose).material(stuff);
            things.push((builder.body(spec), thing));
        };
        match kind {
            0 => {
                let mut side = || random.range(0.1, 0.4);
                let shape = Shape::cuboid(side(), side(), side());
                add(&mut builder, shape, Pose::new(turned, middle));
            }
            1 => {
                let shape = if random.chance(0.5) { Shape::sphere(0.15) } else { Shape::capsule(0.3, 0.08) };
                add(&mut builder, shape, Pose::new(turned, middle));
            }
            2 => {
                // A chain of capsules, its joints at their ends.
                let count = 2 + random.below(3);
                let mask = if random.chance(0.5) { JointMask::BALL } else { JointMask::HINGE };
                let at = |x: f64| middle + turned * DVec3::new(x, 0.0, 0.0);
                let along = turned * DQuat::from_rotation_arc(DVec3::Y, DVec3::X);
                for k in 0..count {
                    let x = 0.2 * (k as f64 - 0.5 * (count - 1) as f64);
                    add(&mut builder, Shape::capsule(0.12, 0.04), Pose::new(along, at(x)));
                    if k > 0 {
                        let [a, b] = [first + k, first + k - 1].map(|i| BodyId(i as u32));
                        let joint = JointSpec::new(format!("joint {a:?}"), mask, a, b);
                        builder.joint(joint.at(at(x - 0.1)).axis(turned * DVec3::Z));
                    }
                }
            }
            _ => {
                // A ring of bars, hinges about one axis: the last closes it, and two of its rows are redundant.
                let count = 4 + random.below(2);
                let radius = 0.25;
                let place = |k: f64| {
                    let angle = std::f64::consts::TAU * k / count as f64;
                    (angle, middle + turned * (DVec3::new(angle.cos(), 0.0, angle.sin()) * radius))
                };
                let half = std::f64::consts::PI / count as f64;
                let bar = Shape::cuboid(0.06, 0.06, 1.6 * radius * half.sin());
                for k in 0..count {
                    let (angle, _) = place(k as f64 + 0.5);
                    let middle_of = (place(k as f64).1 + place(k as f64 + 1.0).1) * 0.5;
                    let pose = Pose::new(turned * DQuat::from_rotation_y(-angle), middle_of);
                    add(&mut builder, bar.clone(), pose);
                }
                for k in 0..count {
                    let [a, b] = [first + (k + 1) % count, first + k].map(|i| BodyId(i as u32));
                    let joint = JointSpec::new(format!("hinge {first} {k}"), JointMask::HINGE, a, b);
                    builder.joint(joint.at(place(k as f64 + 1.0).1).axis(turned * DVec3::Y));
                }
                loops += 1;
            }
        }
        height += 0.95;
    }
    let model = builder.build().expect("a model");
    let mut state = model.start();
    let mut velocity = (usize::MAX, DVec3::ZERO);
    for &(body, thing) in &things {
        if thing != velocity.0 {
            velocity = (thing, random.vector(2.0));
        }
        state.bodies[body.index()].velocity.linear = velocity.1;
    }
    let dt = [1.0 / 30.0, 1.0 / 60.0, 1.0 / 60.0, 1.0 / 120.0][random.below(4)];
    let input = Input { dt, contacts: Contacts::All, ..Input::default() };
    Heap { model, state, input, loops }
}

/// Runs a scene for so long \[s\].
pub fn endure(heap: &Heap, seconds: f64) -> Outcome {
    let Heap { model, input, state, .. } = heap;
    let (mut state, mut work) = (state.clone(), Work::new(model));
    let start = measure::energy(model, input, &state).total();
    let size = 0.5;
    let stake = start.abs().max(model.mass() * input.gravity.length() * size);
    let mut out = Outcome { finite: true, ..Outcome::default() };
    while state.time < seconds - 0.5 * input.dt {
        let report = match step(model, input, &mut state, &mut work) {
            Ok(report) => report,
            Err(error) => {
                out.error = Some(error.to_string());
                break;
            }
        };
        out.frames += 1;
        out.unconverged += u32::from(report.unconverged > 0);
        out.divided += u32::from(report.substeps > 1);
        out.resorted += u32::from(report.resorts > 0);
        out.passes += u64::from(report.iterations);
        out.depth = out.depth.max(report.max_penetration);
        out.gap = out.gap.max(report.max_joint_gap / size).max(report.max_joint_tilt);
        let energy = measure::energy(model, input, &state).total();
        out.finite &= energy.is_finite();
        out.gain = out.gain.max((energy - start) / stake);
        if !out.finite {
            break;
        }
    }
    out
}
