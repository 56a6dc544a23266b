//! Four solvers, one motion: on a smooth scene they converge to it, each with its order; and any may take over from any other.

mod support;

use glam::DVec3;
use supple::solver::assembly::Scheme;
use supple::solver::impulse::Variant;
use supple::solver::reduced::Integration;
use supple::*;
use support::*;

/// Links with soft springs and dampers, turning out of their plane.
fn smooth() -> Scene {
    let mut scene = Scene::parse("chain:3,stiffness=0.5,damping=0.01").unwrap();
    for link in &mut scene.state.bodies {
        let turning = DVec3::new(0.3, 2.0, 0.2);
        link.velocity = Twist::new(turning.cross(link.position), turning);
    }
    scene
}

fn play(scene: &Scene, solver: Solver, rate: f64, seconds: f64) -> State {
    let (mut state, mut work) = (scene.state.clone(), Work::new(&scene.model));
    let input = Input { dt: 1.0 / rate, solver, ..scene.input.clone() };
    for _ in 0..(seconds * rate).round() as usize {
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    state
}

fn reduced(integration: Integration) -> Solver {
    Solver::Reduced(Reduced { integration, ..Reduced::default() })
}

fn impulse(variant: Variant) -> Solver {
    // Errors of joints stay below those of the step.
    Solver::Impulse(Impulse { variant, tolerance: 1e-10, velocity_tolerance: 1e-9, ..Impulse::default() })
}

fn assembly(scheme: Scheme) -> Solver {
    Solver::Assembly(Assembly { scheme, tolerance: 1e-10, inner: 200, ..Assembly::default() })
}

#[test]
fn all_solvers_converge_to_the_same_motion_with_their_orders() {
    let scene = smooth();
    let seconds = 0.25;
    // Second order: (4 fine − coarse)/3.
    let (coarse, mut reference) =
        (play(&scene, Solver::default(), 7680.0, seconds), play(&scene, Solver::default(), 15360.0, seconds));
    for (a, b) in reference.bodies.iter_mut().zip(&coarse.bodies) {
        a.position = (a.position * 4.0 - b.position) / 3.0;
    }
    for (name, solver, order) in [
        ("tree", Solver::default(), 1.8..2.3),
        ("tree, published", with_scheme(TreeScheme::Published), 0.8..1.3),
        // Its springs are soft rows of the backward rule here; without springs it is of second order (tests/impulse.rs).
        ("impulse, system", impulse(Variant::System), 0.8..1.3),
        ("impulse, joint by joint", impulse(Variant::JointByJoint), 0.8..1.3),
        ("assembly, displacements", assembly(Scheme::Displacements), 0.7..1.3),
        ("reduced, Euler", reduced(Integration::Euler), 0.8..1.3),
        ("reduced, midpoint", reduced(Integration::Midpoint), 1.8..2.3),
    ] {
        let error = |rate: f64| apart(&play(&scene, solver, rate, seconds), &reference);
        let errors = [240.0, 480.0, 960.0].map(error);
        let orders = [0, 1].map(|k| (errors[k] / errors[k + 1]).log2());
        println!("{name}: errors {errors:?} m, orders {orders:.2?}");
        assert!(orders.iter().all(|o| order.contains(o)), "{name}: errors {errors:?}, orders {orders:.2?}");
    }
}

#[test]
fn any_solver_takes_over_from_any_other_without_a_jump() {
    for name in ["robot", "hand", "chain:10"] {
        let scene = Scene::parse(name).unwrap();
        let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
        input.dt = 1.0 / 240.0;
        let all = Solver::all();
        // Every ordered pair of different solvers comes once, 12 steps apart.
        let pairs = (0..4).flat_map(|a| (0..4).filter(move |b| a != *b).flat_map(move |b| [a, b]));
        let (mut before, mut jump, mut usual, mut kick) = (state.clone(), 0.0f64, 0.0f64, 0.0f64);
        for (n, solver) in pairs.flat_map(|k| std::iter::repeat_n(k, 12)).enumerate() {
            input.solver = all[solver];
            scene.direct(state.time, &mut input);
            step(&scene.model, &input, &mut state, &mut work).unwrap();
            let faster = |(a, b): (&BodyState, &BodyState)| (a.velocity.linear - b.velocity.linear).length();
            let gained = state.bodies.iter().zip(&before.bodies).map(faster).fold(0.0, f64::max);
            if n % 12 == 0 && n > 0 {
                jump = jump.max(apart(&state, &before));
                kick = kick.max(gained);
            } else {
                usual = usual.max(apart(&state, &before));
            }
            before = state.clone();
        }
        println!("{name}: {jump:.1e} m and {kick:.1e} m/s in a step that changes the solver, {usual:.1e} m in others");
        // No farther than in other steps, but for half of what gravity adds in one: ½ g h² = 8.5e-5 m.
        assert!(jump < 1.1 * usual + 1e-4, "{name}: {jump} {usual}");
    }
}

#[test]
fn hard_limits_are_refused_aloud_by_solvers_that_cannot_hold_them() {
    let limits = Limits { angle: Some(Range::new(-0.5, 0.5)), stops: Stops::Hard, ..Limits::default() };
    let model = on_world(JointMask::HINGE, DVec3::X * 0.2, |joint| joint.limits(limits));
    assert_eq!(model.hard_limits(), [JointId(0)]);
    for solver in [with_scheme(TreeScheme::Published), reduced(Integration::Euler)] {
        let error = solver.takes(&model, &Input { solver, ..Input::default() }).unwrap_err();
        assert!(error.code() == "step/unsupported" && error.to_string().contains("\"joint\""), "{error}");
    }
    let soft =
        on_world(JointMask::HINGE, DVec3::X * 0.2, |joint| joint.limits(Limits { stops: Stops::Soft, ..limits }));
    assert!(soft.hard_limits().is_empty() && soft.fingerprint() != model.fingerprint());
}
