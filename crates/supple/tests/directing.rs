//! The control is a stage: commands are reckoned from state and input, and every solver carries them out.

use supple::control::{Goal, Mode, Style};
use supple::glam::DVec3;
use supple::measure;
use supple::{
    Assembly, BodyId, BodyRef, BodySpec, Impulse, Input, JointMask, JointSpec, Model, ModelBuilder, Pose, Reduced,
    Shape, Solver, State, Tree, TreeScheme, Work, step, step_crowd,
};

fn solvers() -> Vec<(&'static str, Solver)> {
    vec![
        ("tree default", Solver::default()),
        ("tree published", Solver::Tree(Tree::new(TreeScheme::Published))),
        ("impulse", Solver::Impulse(Impulse::default())),
        ("reduced", Solver::Reduced(Reduced::default())),
    ]
}

/// Bones in a row, with joints of these kinds between them; the first hangs on the world unless it floats.
fn limb(kinds: &[JointMask], floats: bool) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for (i, kind) in kinds.iter().enumerate() {
        let from = DVec3::X * (0.3 * i as f64);
        let bone = BodySpec::new(format!("bone {i}")).shape(Shape::cuboid(0.3, 0.06, 0.05), 1000.0);
        let id = builder.body(bone.pose(Pose::at(from + DVec3::X * 0.15)));
        if i > 0 || !floats {
            builder.joint(JointSpec::new(format!("joint {i}"), *kind, id, last).at(from));
        }
        last = BodyRef::Id(id);
    }
    builder.build().unwrap()
}

fn run(model: &Model, input: &Input, seconds: f64) -> State {
    let (mut state, mut work) = (model.start(), Work::new(model));
    for _ in 0..(seconds / input.dt).round() as usize {
        let report = step(model, input, &mut state, &mut work).unwrap();
        assert!(report.control.actuators > 0 && state.is_finite());
    }
    state
}

#[test]
fn every_solver_brings_a_bone_to_its_goal() {
    let model = limb(&[JointMask::BALL, JointMask::HINGE, JointMask::BALL], false);
    let goal = DVec3::new(0.55, 0.3, 0.1);
    for (name, solver) in solvers() {
        for style in [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity] {
            let mut input = Input { solver, dt: 1.0 / 120.0, ..Input::default() };
            (input.control.mode, input.control.style) = (Mode::Goals, style);
            input.control.goals = vec![Goal::drag(BodyId(2), DVec3::ZERO, goal)];
            let state = run(&model, &input, 3.0);
            let off = state.bodies[2].position.distance(goal);
            println!("{name}, {style:?}: {off:.4} m from its goal");
            assert!(off < 0.03, "{name}, {style:?}: {off} m from its goal");
        }
    }
}

/// Lanes carry no commands: a crowd that is directed goes one by one.
#[test]
fn a_crowd_is_directed_as_each_alone() {
    let model = limb(&[JointMask::BALL, JointMask::HINGE, JointMask::BALL], false);
    let mut input = Input::default();
    input.control.mode = Mode::Goals;
    input.control.goals = vec![Goal::drag(BodyId(2), DVec3::ZERO, DVec3::new(0.55, 0.3, 0.1))];
    let alone = run(&model, &input, 0.5);
    let (mut states, mut work) = (vec![model.start(); 4], Work::new(&model));
    for _ in 0..30 {
        step_crowd(&model, std::slice::from_ref(&input), &mut states, &mut work).unwrap();
    }
    assert!(states.iter().all(|state| state.hash() == alone.hash()));
}

/// What cannot be carried out is refused.
#[test]
fn solver_assembly_and_loops_are_refused() {
    let model = limb(&[JointMask::BALL, JointMask::BALL], false);
    let mut input = Input { solver: Solver::Assembly(Assembly::default()), ..Input::default() };
    input.control.mode = Mode::Goals;
    let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
    assert!(error.to_string().contains("velocities"), "{error}");
    let scene = supple::Scene::parse("fourbars:1").unwrap();
    let mut input = scene.input.clone();
    input.control.mode = Mode::Goals;
    let error = step(&scene.model, &input, &mut scene.state.clone(), &mut Work::new(&scene.model)).unwrap_err();
    assert!(error.to_string().contains("loop"), "{error}");
}

/// Actuators push two bodies apart and nothing else: what floats keeps its momentum.
#[test]
fn commands_change_no_momentum() {
    let model = limb(&[JointMask::BALL, JointMask::HINGE, JointMask::BALL, JointMask::UNIVERSAL], true);
    for (name, solver) in solvers() {
        let mut input = Input { solver, gravity: DVec3::ZERO, ..Input::default() };
        input.control.mode = Mode::Goals;
        input.control.goals = vec![Goal::drag(BodyId(3), DVec3::ZERO, DVec3::new(0.8, 0.3, 0.1))];
        let (mut state, mut work) = (model.start(), Work::new(&model));
        let mut moved = 0.0f64;
        for _ in 0..60 {
            step(&model, &input, &mut state, &mut work).unwrap();
            let energy = measure::kinetic_energy(&model, &state);
            moved = moved.max(energy);
        }
        let momentum = measure::momentum(&model, &state);
        println!("{name}: {momentum:?} with {moved:.3} J");
        assert!(moved > 1e-3, "{name} does not move");
        let scale = (2.0 * moved * model.mass()).sqrt();
        assert!(momentum.linear.length() < 1e-9 * scale, "{name}: {momentum:?}");
    }
}
