//! The step converges to one motion as dt → 0, to first order, whichever system is solved.

mod support;

use glam::DVec3;
use supple::*;
use support::*;

/// Errors against a reference by Richardson's extrapolation of two fine runs, which leaves an error of second order.
fn errors(scene: &Scene, seconds: f64, rates: &[f64], fine: f64) -> Vec<f64> {
    let at = |rate: f64| play(scene, published(), 1.0 / rate, seconds);
    let (coarse, mut reference) = (at(fine), at(2.0 * fine));
    let between = apart(&coarse, &reference);
    for (a, b) in reference.bodies.iter_mut().zip(&coarse.bodies) {
        a.position = a.position * 2.0 - b.position;
    }
    let errors: Vec<f64> = rates.iter().map(|&rate| apart(&at(rate), &reference)).collect();
    println!(
        "{}: errors {} m at rates {rates:?}, between the two fine runs {between:.1e} m",
        scene.name,
        list(&errors)
    );
    errors
}

#[test]
fn a_stiff_chain_converges_to_first_order() {
    // The chain stays smooth: springs only, no limits.
    let scene = Scene::parse("chain:5,stiffness=20,damping=0.01").unwrap();
    let errors = errors(&scene, 0.5, &[240.0, 480.0, 960.0, 1920.0], 15360.0);
    let orders = orders(&errors);
    println!("orders {orders:.2?}");
    assert!(orders.iter().all(|o| (0.8..1.3).contains(o)), "{errors:?}: orders {orders:?}");
}

#[test]
fn the_robot_converges_to_first_order() {
    let scene = Scene::parse("robot").unwrap();
    let errors = errors(&scene, 0.5, &[120.0, 240.0, 480.0, 960.0], 7680.0);
    let orders = orders(&errors);
    println!("orders {orders:.2?}");
    assert!(orders.iter().all(|o| (0.8..1.3).contains(o)), "{errors:?}: orders {orders:?}");
}

/// How far Exact and Acceleration are from Published at each rate.
fn schemes_apart(scene: &Scene, seconds: f64, rates: [f64; 4]) -> [Vec<f64>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for rate in rates {
        let at = |scheme| play(scene, with_scheme(scheme), 1.0 / rate, seconds);
        let reference = at(TreeScheme::Published);
        for (list, scheme) in all.iter_mut().zip([TreeScheme::Exact, TreeScheme::Acceleration]) {
            list.push(apart(&at(scheme), &reference));
        }
    }
    for (found, scheme) in all.iter().zip(["Exact", "Acceleration"]) {
        println!("{}: {scheme} off by {} m, orders {:.2?}", scene.name, list(found), orders(found));
    }
    all
}

#[test]
fn all_schemes_agree_on_a_chain_as_the_step_shrinks() {
    let mut scene = Scene::parse("chain:5,stiffness=20,damping=0.01").unwrap();
    // The chain turns about the vertical as one piece, its links about their common axis to and fro: joints stay closed, and
    // the motion leaves the plane, where exact and symmetric derivatives would be the same.
    for (i, link) in scene.state.bodies.iter_mut().enumerate() {
        let turning = DVec3::Y * 6.0;
        let spin = DVec3::X * if i % 2 == 0 { 20.0 } else { -10.0 };
        link.velocity = Twist::new(turning.cross(link.position), turning + spin);
    }
    // Explicit springs and dampers are stable below about 1/1000 s here.
    for found in schemes_apart(&scene, 0.5, [1920.0, 3840.0, 7680.0, 15360.0]) {
        assert!(orders(&found).iter().all(|o| (0.8..1.3).contains(o)), "{found:?}");
        assert!(found[3] < 1e-3, "{found:?}"); // m, of a chain of 0.5 m
    }
}

#[test]
fn all_schemes_agree_on_the_robot_as_the_step_shrinks() {
    // The explicit dampers along the arms need steps below about 1/5000 s.
    let scene = Scene::parse("robot").unwrap();
    for found in schemes_apart(&scene, 0.2, [8000.0, 16000.0, 32000.0, 64000.0]) {
        assert!(orders(&found).iter().all(|o| (0.8..1.3).contains(o)), "{found:?}");
        assert!(found[3] < 1e-3, "{found:?}"); // m, of a body of 1.7 m
    }
}
