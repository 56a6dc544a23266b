//! What springs, limits and motors do does not depend on what touches, grips or closes a loop elsewhere in the model, nor on skin there.
//!
//! An arm on a joint, and two stones beside it that touch the ground, are gripped, are joined to a loop, or have a skin. None of that acts on the arm:
//! whatever its joint does must be the same with and without.

use glam::{DQuat, DVec3};
use supple::creature::{Creature, Limb};
use supple::forces::{self, Derivatives};
use supple::maths::rotation::exp;
use supple::skin::Core;
use supple::solver::Mode;
use supple::*;

/// What holds the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    /// A hinge pressed 0.05 rad beyond its limit.
    PressedLimit,
    /// A ball pressed against its swing and its twist.
    PressedBall,
    /// A ball whose spring is wound by four radians.
    WoundBall,
    /// A hinge with a servo.
    Servo,
    /// A ball with a servo that gives all it has.
    BallServo,
}

const HELD: [Held; 5] = [Held::PressedLimit, Held::PressedBall, Held::WoundBall, Held::Servo, Held::BallServo];

/// What goes on beside the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beside {
    Nothing,
    Contact,
    Grip,
    Loop,
    Skin,
}

/// A model, an input and a state at rest. Bodies: arm, stone, other stone.
fn case(held: Held, beside: Beside) -> (Model, Input, State) {
    let mut builder = ModelBuilder::new();
    let high = DVec3::Y * 5.0;
    let arm = builder.body(BodySpec::new("arm").shape(Shape::cuboid(0.5, 0.2, 0.3), 200.0).pose(Pose::at(high)));
    let limits = Limits { stiffness: 40.0, ..Limits::default() };
    let motor = Motor { stiffness: 12.0, damping: 0.0, max: 5.0, integral: 0.0 };
    let spec = |mask| JointSpec::new("shoulder", mask, arm, BodyRef::World).at(high);
    builder.joint(match held {
        Held::PressedLimit => {
            spec(JointMask::HINGE).limits(Limits { angle: Some(Range::new(-1.0, 0.3)), ..limits }).spring(3.0, 0.0)
        }
        Held::PressedBall => spec(JointMask::BALL).limits(Limits {
            angle: Some(Range::new(-1.0, 0.2)),
            swing: Some(model::SwingEllipse { about_y: 0.3, about_z: 0.5 }),
            ..limits
        }),
        Held::WoundBall => spec(JointMask::BALL).spring(5.0, 0.0),
        Held::Servo => spec(JointMask::HINGE).motor(motor),
        Held::BallServo => spec(JointMask::BALL).motor(Motor { max: 2.0, ..motor }),
    });
    for (k, name) in ["stone", "other stone"].into_iter().enumerate() {
        let at = Pose::at(DVec3::new(3.0 + k as f64, 0.1, 0.0));
        let stone = builder.body(BodySpec::new(name).shape(Shape::cuboid(0.2, 0.2, 0.2), 1000.0).pose(at));
        if beside == Beside::Loop {
            let axle = JointSpec::new(format!("axle {k}"), JointMask::HINGE, stone, BodyRef::World);
            builder.joint(axle.at(at.translation));
        }
    }
    if beside == Beside::Loop {
        builder.joint(JointSpec::new("weld", JointMask::WELD, "stone", "other stone").at(DVec3::new(3.5, 0.1, 0.0)));
    }
    if beside == Beside::Skin {
        let place = DVec3::new(3.0, 0.1, 0.0);
        let limb = Limb::new("stone", place - DVec3::X * 0.15, place + DVec3::X * 0.15, 0.15, 0.15);
        let grown = Creature { limbs: vec![limb], blend: 0.02 }.grow(DVec3::splat(0.06)).unwrap();
        let flesh = Some(SkinMaterial::default());
        let bones = vec![SkinBone { body: "stone".into(), rest: None, flesh, core: Core::Whole }];
        let (surface, weights) = (grown.surface, grown.weights);
        builder.skin(SkinSpec { surface, weights, bones, painted: Vec::new(), map: PoseMap::Centres, inner: None });
    }
    builder.obstacle(ObstacleSpec::floor("ground", 0.0));
    let model = builder.build().unwrap();
    let mut state = model.start();
    let turn = match held {
        Held::PressedLimit => DVec3::X * 0.35,
        Held::PressedBall => DVec3::new(0.26, 0.3, -0.35),
        Held::WoundBall => DVec3::new(0.0, 0.6, 0.8) * 4.0,
        Held::Servo => DVec3::X * 0.5,
        Held::BallServo => DVec3::new(0.3, 0.5, -0.4),
    };
    state.bodies[0].orientation = exp(turn);
    state.recount_turns(&model);
    if held == Held::WoundBall {
        (state.joints[0].turn, state.remembers) = (turn, true);
    }
    let mut input = Input { gravity: DVec3::ZERO, ..Input::default() };
    input.contacts = if beside == Beside::Contact { Contacts::Obstacles } else { Contacts::Off };
    input.solver = Solver::Tree(Tree { scheme: TreeScheme::Midpoint(Mode::Conservative), ..Tree::default() });
    if beside == Beside::Grip {
        let stone = &state.bodies[1];
        input.grips = vec![Grip { body: BodyId(1), point: DVec3::ZERO, target: stone.position, rotation: None }];
    }
    input.joint_mut(&model, 0).servo = match held {
        Held::Servo => Some(ServoTarget::Position { position: 0.1, rate: 0.0 }),
        Held::BallServo => Some(ServoTarget::Rotation(DQuat::IDENTITY)),
        _ => None,
    };
    (model, input, state)
}

/// The torque on the arm at an instant, by the laws.
fn torque(model: &Model, input: &Input, state: &State) -> DVec3 {
    let mut sum = DVec3::ZERO;
    forces::collect(model, input, state, 0.0, Derivatives::Symmetric, |acting| {
        assert_eq!(acting.a, BodyId(0), "nothing acts but on the arm");
        sum += acting.force.wrenches()[0].torque;
    });
    sum
}

/// The torque on the arm as steps give it: inertia times velocity over h from rest, extrapolated to h = 0 from four steps by Neville's scheme: from
/// rest it is an even function of h by every rule, so in powers of h².
fn torque_of_steps(model: &Model, input: &Input, state: &State) -> DVec3 {
    let mut table: Vec<(f64, DVec3)> = Vec::new();
    for k in 0..4 {
        let h = 1.0 / f64::from(128 << k);
        let (mut end, mut work) = (state.clone(), Work::new(model));
        let report = step(model, &Input { dt: h, ..input.clone() }, &mut end, &mut work).unwrap();
        assert_eq!((report.substeps, report.fallbacks), (1, 0), "one part");
        let (arm, r) = (&end.bodies[0], glam::DMat3::from_quat(state.bodies[0].orientation));
        let momentum = r * (model.bodies()[0].inertia * (r.transpose() * arm.velocity.angular));
        table.push((h, momentum / h));
        for i in (0..k as usize).rev() {
            let (low, high) = (table[i], table[i + 1]);
            let h_low = 1.0 / f64::from(128 << i);
            table[i] = (h_low, high.1 + (high.1 - low.1) * (h * h / (h_low * h_low - h * h)));
        }
    }
    table[0].1
}

#[test]
fn torques_and_energies_do_not_depend_on_what_goes_on_beside() {
    for held in HELD {
        let (model, input, state) = case(held, Beside::Nothing);
        let (expected, energy) = (torque(&model, &input, &state), measure::energy(&model, &input, &state).springs);
        assert!(expected.length() > 1.0, "{held:?}: {expected}");
        let alone = torque_of_steps(&model, &input, &state);
        // (k/I)⁴ and the product of the four h², with k/I = 660/s², leave 6e-10; Newton's method, which ends at 1e-11 of 2e-5 rad, a little more.
        let off = (alone - expected).length() / expected.length();
        assert!(off < 1e-7, "{held:?}: the step gives {alone}, the law {expected}");
        for beside in [Beside::Contact, Beside::Grip, Beside::Loop, Beside::Skin] {
            let (model, input, state) = case(held, beside);
            let law = torque(&model, &input, &state);
            assert!((law - expected).length() < 1e-12, "{held:?}, {beside:?}: {law}, not {expected}");
            let with = measure::energy(&model, &input, &state).springs;
            assert!((with - energy).abs() < 1e-12, "{held:?}, {beside:?}: {with} J, not {energy}");
            let steps = torque_of_steps(&model, &input, &state);
            let off = (steps - expected).length() / expected.length();
            println!("{held:?}, {beside:?}: torque {expected}, off by {off:.1e}");
            assert!(off < 1e-7, "{held:?}, {beside:?}: the step gives {steps}, the law {expected}");
        }
    }
}

#[test]
fn a_wound_spring_goes_on_unwinding_when_something_touches() {
    // From four radians back through half a turn, contact or not, by every solver: the energy of the spring goes down from ½ k 4².
    for beside in [Beside::Nothing, Beside::Contact, Beside::Grip, Beside::Loop, Beside::Skin] {
        let (model, mut input, mut state) = case(Held::WoundBall, beside);
        input.dt = 1.0 / 240.0;
        let mut work = Work::new(&model);
        let mut last = measure::energy(&model, &input, &state).springs;
        assert!((last - 40.0).abs() < 1e-9);
        while last > 1.0 {
            step(&model, &input, &mut state, &mut work).unwrap();
            let now = measure::energy(&model, &input, &state).springs;
            assert!(now < last, "{beside:?}: {now} J after {last} J");
            last = now;
        }
    }
    for solver in [
        Solver::Tree(Tree { scheme: TreeScheme::Published, ..Tree::default() }),
        Solver::Tree(Tree { scheme: TreeScheme::Exact, ..Tree::default() }),
        Solver::Impulse(Impulse::default()),
        Solver::Reduced(Reduced::default()),
        Solver::Assembly(Assembly::default()),
    ] {
        let (model, input, mut state) = case(Held::WoundBall, Beside::Nothing);
        let input = Input { solver, dt: 1.0 / 240.0, ..input };
        let mut work = Work::new(&model);
        let first = torque(&model, &input, &state);
        step(&model, &input, &mut state, &mut work).unwrap();
        let turned = state.bodies[0].velocity.angular.dot(first);
        assert!(turned > 0.0, "{solver:?} turns the wrong way");
        assert!(
            (torque(&model, &input, &state) / first.length() - first / first.length()).length() < 0.1,
            "{solver:?}"
        );
    }
}
