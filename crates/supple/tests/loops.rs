//! Loops in solver `tree`: closed, redundant rows and all.

use glam::DVec3;
use supple::measure;
use supple::*;

/// Bars of 0.05 m between these points, joined by hinges about Z; the first and the last point are in the world.
fn bars(points: &[DVec3]) -> Model {
    let mut builder = ModelBuilder::new();
    let mut last = BodyRef::World;
    for (k, ends) in points.windows(2).enumerate() {
        let along = ends[1] - ends[0];
        let rotation = glam::DQuat::from_rotation_arc(DVec3::X, along.normalize());
        let pose = Pose::new(rotation, 0.5 * (ends[0] + ends[1]));
        let body = builder
            .body(BodySpec::new(format!("bar {k}")).shape(Shape::cuboid(along.length(), 0.05, 0.05), 400.0).pose(pose));
        builder.joint(
            JointSpec::new(format!("hinge {k}"), JointMask::HINGE, body, last.clone()).axis(DVec3::Z).at(ends[0]),
        );
        last = body.into();
    }
    let end = points.len() - 1;
    builder.joint(
        JointSpec::new(format!("hinge {end}"), JointMask::HINGE, format!("bar {}", end - 1).as_str(), BodyRef::World)
            .axis(DVec3::Z)
            .at(points[end]),
    );
    builder.build().unwrap()
}

fn four_bar() -> Model {
    bars(&[DVec3::ZERO, DVec3::new(0.2, 0.8, 0.0), DVec3::new(1.3, 1.0, 0.0), DVec3::new(1.0, 0.0, 0.0)])
}

/// n ball-jointed links in a circle that floats.
fn ring(n: usize) -> Model {
    let mut builder = ModelBuilder::new();
    let angle = std::f64::consts::TAU / n as f64;
    let radius = 0.05 / (0.5 * angle).sin();
    let corner = |k: usize| radius * DVec3::new((k as f64 * angle).cos(), (k as f64 * angle).sin(), 0.0);
    for k in 0..n {
        let (p, q) = (corner(k), corner(k + 1));
        let pose = Pose::new(glam::DQuat::from_rotation_arc(DVec3::X, (q - p).normalize()), 0.5 * (p + q));
        builder.body(BodySpec::new(format!("link {k}")).shape(Shape::capsule(0.08, 0.01), 1000.0).pose(pose));
    }
    for k in 0..n {
        let name = |k: usize| format!("link {}", k % n);
        builder.joint(
            JointSpec::new(format!("joint {k}"), JointMask::BALL, name(k + 1).as_str(), name(k).as_str()).at(corner(k + 1)),
        );
    }
    builder.build().unwrap()
}

#[test]
fn scratch() {
    for (name, model) in [("fourbar", four_bar()), ("ring", ring(12))] {
        for dt in [1.0 / 30.0, 1.0 / 60.0, 1.0 / 240.0] {
            let mut input = Input { dt, ..Input::default() };
            let mut state = model.start();
            if name == "ring" {
                input.gravity = DVec3::ZERO;
                for (k, b) in state.bodies.iter_mut().enumerate() {
                    b.velocity.linear = DVec3::new((k as f64).sin(), (2.0 * k as f64).cos(), (3.0 * k as f64).sin());
                    b.velocity.angular = DVec3::new((k as f64).sin(), (2.0 * k as f64).cos(), (3.0 * k as f64).sin()) * 5.0;
                }
            }
            let mut work = Work::new(&model);
            let mut short = Input { dt: 1e-6, ..input.clone() };
            step(&model, &short, &mut state, &mut work).unwrap();
            short.dt = dt;
            let (e0, p0) = (measure::energy(&model, &input, &state).total(), measure::momentum(&model, &state));
            let (mut gap, mut solves, mut falls, mut emax, mut emin) = (0.0f64, 0, 0, f64::MIN, f64::MAX);
            let steps = (10.0 / dt) as usize;
            for _ in 0..steps {
                let r = step(&model, &input, &mut state, &mut work).unwrap();
                gap = gap.max(r.max_joint_gap).max(r.max_joint_tilt);
                solves += r.solves;
                falls += r.fallbacks;
                let e = measure::energy(&model, &input, &state).total();
                emax = emax.max(e);
                emin = emin.min(e);
            }
            let p1 = measure::momentum(&model, &state);
            println!("{name} dt {dt:.4} gap {gap:.1e} solves {:.2} falls {falls} E0 {e0:.4} range {:.4} {:.4} dL {:.1e} of {:.1e} dP {:.1e}",
                solves as f64 / steps as f64, emin - e0, emax - e0, (p1.angular - p0.angular).length(), p0.angular.length(), (p1.linear-p0.linear).length());
        }
    }
}
