//! Flesh and bones together.

mod common;

use common::Random;
use glam::DVec3;
use supple::flesh::Cage;
use supple::*;

fn scene(name: &str) -> Scene {
    Scene::parse(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A worm without a root joint, turning, its nodes besides moving about with this speed \[m/s\].
fn tumbling(ratio: f64, wild: f64) -> (Model, State) {
    let mut builder = ModelBuilder::new();
    let density = 1000.0 / ratio;
    let mut holds = Vec::new();
    let mut last: Option<BodyId> = None;
    for k in 0..3 {
        let x = 0.2 * f64::from(k) - 0.3;
        let [from, to] = [x, x + 0.2].map(|x| DVec3::new(x, 0.0, 0.0));
        let shape = Shape::cuboid(0.2, 0.2, 0.2);
        let name = format!("bone {k}");
        let body = builder.body(BodySpec::new(&name).shape(shape, density).pose(Pose::at(0.5 * (from + to))));
        if let Some(last) = last {
            builder.joint(JointSpec::new(format!("joint {k}"), JointMask::BALL, body, last).at(from));
        }
        last = Some(body);
        holds.push(flesh::Hold { body: body.into(), from, to, reach: 0.04 });
    }
    let lattice = flesh::Lattice { cell: DVec3::splat(0.1), origin: DVec3::splat(0.0), split: flesh::Split::Six };
    let mut cage: Cage = lattice.block([7, 2, 2]);
    cage.nodes.iter_mut().for_each(|x| *x -= DVec3::new(0.35, 0.1, 0.1));
    let material = FleshMaterial { young: 3e4, ..FleshMaterial::default() };
    builder.flesh(FleshSpec { cage, surface: None, material, holds });
    let model = builder.build().unwrap();
    let mut state = model.start();
    let mut random = Random::new(3);
    let spin = DVec3::new(0.5, -1.0, 2.0);
    for body in &mut state.bodies {
        body.velocity = Twist::new(spin.cross(body.position) + DVec3::X, spin);
    }
    for node in &mut state.nodes {
        node.velocity = spin.cross(node.position) + DVec3::X + random.vector(wild);
    }
    (model, state)
}

#[test]
fn bones_and_flesh_keep_their_momentum() {
    for ratio in [0.1, 1.0, 10.0] {
        let (model, mut state) = tumbling(ratio, 0.5);
        let mut work = Work::new(&model);
        let input = Input { gravity: DVec3::ZERO, ..Input::default() };
        let before = measure::momentum(&model, &state);
        let energy = measure::energy(&model, &input, &state).total();
        for k in 0..600 {
            step(&model, &input, &mut state, &mut work).unwrap();
            let after = measure::momentum(&model, &state);
            let (dp, dl) = ((after.linear - before.linear).length(), (after.angular - before.angular).length());
            assert!(
                dp < 1e-6 * before.linear.length() && dl < 1e-6 * before.angular.length(),
                "ratio {ratio}, step {k}: {dp:e} {dl:e}"
            );
        }
        assert!(measure::energy(&model, &input, &state).total() <= energy);
    }
}

#[test]
fn a_worm_swims_for_ten_seconds_at_any_ratio_of_masses() {
    for ratio in ["0.1", "1", "10"] {
        let scene = scene(&format!("worm:ratio={ratio}"));
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.gravity = DVec3::ZERO;
        let (mut newton, mut factorisations, mut unsettled, mut parts) = (0, 0, 0, 0);
        for _ in 0..600 {
            scene.direct(state.time, &mut input);
            let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
            newton += report.flesh_newton;
            factorisations += report.factorisations;
            unsettled += report.flesh_unsettled;
            parts += report.substeps;
            // The motors give it a few joules; it stays in one piece.
            assert!(report.max_joint_gap < 1e-8);
            assert!(measure::energy(&scene.model, &input, &state).total() < 100.0);
            let far = state.nodes.iter().map(|node| node.position.length()).fold(0.0, f64::max);
            assert!(far < 5.0, "{far}");
        }
        println!("{ratio}: newton {newton}, factorisations {factorisations}, unsettled {unsettled}, parts {parts}");
        assert_eq!(unsettled, 0);
    }
}

/// Runs a model and returns the places of all nodes at the end.
fn ends(model: &Model, start: &State, solver: Solver, dt: f64, seconds: f64) -> Vec<DVec3> {
    let (mut state, mut work) = (start.clone(), Work::new(model));
    let input = Input { gravity: DVec3::NEG_Y, dt, solver, ..Input::default() };
    for _ in 0..(seconds / dt).round() as usize {
        step(model, &input, &mut state, &mut work).unwrap();
    }
    let mut nodes = Vec::new();
    model.flesh().unwrap().positions(&state, &mut nodes);
    nodes
}

#[test]
fn explicit_and_implicit_flesh_converge_to_one_motion() {
    let (model, start) = tumbling(1.0, 0.0);
    let apart = |dt: f64| {
        let explicit = ends(&model, &start, Solver::Reduced(Reduced::default()), dt, 0.1);
        let implicit = ends(&model, &start, Solver::default(), dt, 0.1);
        explicit.iter().zip(&implicit).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max)
    };
    // Both are of first order: their difference halves with the step. They move by 0.1 m and turn by 0.2 rad.
    let [coarse, fine] = [1e-3, 5e-4].map(apart);
    assert!(coarse < 5e-3, "{coarse}");
    assert!((0.35..0.65).contains(&(fine / coarse)), "{coarse} {fine}");
}
