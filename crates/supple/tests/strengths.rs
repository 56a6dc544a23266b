//! A tracker at a strength is a tracker with as much less stiffness and, by the root, damping: in every solver.

use glam::DVec3;
use supple::*;

/// Three links on ball joints, the last one tracked with these factors on stiffness and damping.
fn tracked(stiffness: f64, damping: f64) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for k in 0..3 {
        let x = 0.2 * f64::from(k);
        let link = BodySpec::new(format!("link {k}")).shape(Shape::cuboid(0.2, 0.05, 0.05), 1000.0);
        let body = builder.body(link.pose(Pose::at(DVec3::new(x + 0.1, 0.0, 0.0))));
        let joint = JointSpec::new(format!("joint {k}"), JointMask::BALL, body, last).at(DVec3::new(x, 0.0, 0.0));
        builder.joint(joint.spring(0.5, 0.02));
        last = BodyRef::Id(body);
    }
    builder.tracker(TrackerSpec {
        name: "tip".into(),
        body: last,
        point: DVec3::new(0.1, 0.0, 0.0),
        stiffness: 200.0 * stiffness,
        damping: 12.0 * damping,
        rotation_stiffness: 3.0 * stiffness,
        rotation_damping: 0.1 * damping,
    });
    builder.build().unwrap()
}

fn run(model: &Model, solver: Solver, strengths: Vec<f64>) -> Option<State> {
    let target = Target { pose: Pose::at(DVec3::new(0.4, 0.2, 0.1)), velocity: Twist::ZERO };
    let input = Input { solver, targets: vec![Some(target)], strengths, dt: 1.0 / 240.0, ..Input::default() };
    let (mut state, mut work) = (model.start(), Work::new(model));
    for _ in 0..60 {
        step(model, &input, &mut state, &mut work).ok()?;
    }
    Some(state)
}

#[test]
fn a_weaker_pull_is_a_softer_spring_in_every_solver() {
    let strength: f64 = 0.09;
    let (full, soft) = (tracked(1.0, 1.0), tracked(strength, strength.sqrt()));
    let mut looked = 0;
    for choice in Solver::choices() {
        let Some(solver) = Solver::default().choose(choice.name) else { panic!("{}", choice.name) };
        let (Some(weak), Some(alike), Some(strong)) =
            (run(&full, solver, vec![strength]), run(&soft, solver, vec![]), run(&full, solver, vec![1.0]))
        else {
            println!("{} does not take it", choice.name);
            continue;
        };
        let far = |a: &State, b: &State| {
            a.bodies.iter().zip(&b.bodies).map(|(a, b)| a.position.distance(b.position)).fold(0.0, f64::max)
        };
        println!(
            "{}: {:.1e} m apart, {:.1e} m from full strength",
            choice.name,
            far(&weak, &alike),
            far(&weak, &strong)
        );
        // The same numbers but for their rounding.
        assert!(far(&weak, &alike) < 1e-9, "{}", choice.name);
        assert!(far(&weak, &strong) > 1e-3, "{}", choice.name);
        looked += 1;
    }
    assert!(looked >= 5, "{looked}");
}

#[test]
fn strengths_that_cannot_be_are_refused() {
    let model = tracked(1.0, 1.0);
    for strengths in [vec![-1.0], vec![f64::NAN], vec![1.0, 1.0]] {
        let input = Input { targets: vec![None], strengths, ..Input::default() };
        let error = step(&model, &input, &mut model.start(), &mut Work::new(&model)).unwrap_err();
        assert_eq!(error.code(), "step/input");
    }
}
