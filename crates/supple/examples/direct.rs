//! Directs a jump of the worm by pulling its head up, then lets it land: `cargo run --release -p supple --example direct`.

use supple::control::{Goal, Mode, Style};
use supple::glam::DVec3;
use supple::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scene = Scene::parse("worm")?;
    let model = &scene.model;
    let head = model.find_body("segment_0").ok_or("the worm has a head")?;
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let mut input = Input { dt: 1e-3, solver: Solver::Reduced(Reduced::default()), ..Input::default() };
    input.control.style = Style::LeastAcceleration;

    let start = state.bodies[head.index()].position;
    let (mut highest, mut pulled) = (0.0f64, 0.0f64);
    while state.time < 1.2 {
        // The hand: lifts the head a little, pulls it up fast, lets go.
        let up = match state.time {
            t if t < 0.4 => 0.15 * t / 0.4,
            t => 0.15 + 4.0 * (t - 0.4),
        };
        input.control.mode = if state.time < 0.55 { Mode::Goals } else { Mode::Landing };
        input.control.goals = vec![Goal::drag(head, DVec3::ZERO, start + DVec3::new(0.1, up, 0.0))];
        let report = step(model, &input, &mut state, &mut work)?.control;
        assert!(report.root_wrench < 1e-9); // it does all that by its own joints
        pulled = pulled.max(report.pull_force);
        let lowest = state.bodies.iter().map(|body| body.position.y).fold(f64::INFINITY, f64::min);
        highest = highest.max(lowest);
    }
    println!("all bones were above {highest:.2} m at once; a pull from outside would have needed {pulled:.0} N");
    assert!(highest > 0.15, "it has not jumped: {highest}");
    Ok(())
}
