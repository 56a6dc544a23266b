//! The smallest complete program: a rod on a hinge, released horizontal, and the time it takes to come back.
//!
//! `cargo run --release --example pendulum`

use supple::glam::DVec3;
use supple::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = ModelBuilder::new();
    let rod = builder.body(
        BodySpec::new("rod").shape(Shape::cuboid(1.0, 0.04, 0.04), 625.0).pose(Pose::at(DVec3::new(0.5, 0.0, 0.0))),
    );
    builder.joint(JointSpec::new("pivot", JointMask::HINGE, rod, BodyRef::World).axis(DVec3::Z));
    let model = builder.build()?;

    let input = Input { dt: 1.0 / 240.0, ..Input::default() };
    let (mut state, mut work) = (model.start(), Work::new(&model));
    // It swings down with negative spin, back with positive; after a period the spin turns negative again.
    let mut spin = 0.0;
    let mut came_back = None;
    while came_back.is_none() && state.time < 5.0 {
        let report = step(&model, &input, &mut state, &mut work)?;
        assert!(report.max_joint_gap < 1e-3, "the hinge opened by {} m", report.max_joint_gap);
        let last = std::mem::replace(&mut spin, state.bodies[rod.index()].velocity.angular.z);
        if last > 0.0 && spin <= 0.0 {
            came_back = Some(state.time + input.dt * spin / (last - spin)); // between two steps, by a straight line
        }
    }
    let measured = came_back.ok_or("the pendulum did not come back within 5 s")?;

    let exact = period(&model, rod, 9.81);
    println!("period {measured:.4} s, closed form {exact:.4} s, off by {:.2} %", 100.0 * (measured / exact - 1.0));
    // A first-order implicit step loses some amplitude, and a smaller swing is quicker.
    assert!((measured / exact - 1.0).abs() < 0.04);
    Ok(())
}

/// The period of a swing of a quarter turn to either side: that of small swings over the arithmetic-geometric mean of
/// 1 and cos(amplitude/2).
fn period(model: &Model, rod: BodyId, gravity: f64) -> f64 {
    let body = model.body(rod);
    let lever = body.start.translation.length();
    let about_pivot = body.inertia.z_axis.z + body.mass * lever * lever;
    let small = std::f64::consts::TAU * (about_pivot / (body.mass * gravity * lever)).sqrt();
    let (mut a, mut g) = (1.0, std::f64::consts::FRAC_PI_4.cos());
    for _ in 0..6 {
        (a, g) = (0.5 * (a + g), f64::sqrt(a * g)); // the error is squared each time
    }
    small / a
}
