//! Nothing holds a directed character from outside: in empty space, whatever it is asked to do in whichever style, its momentum stays as it is [Kim 2008, §3]. This checks by what happens what the
//! report says of the root ([`ControlReport::root_wrench`](supple::control::ControlReport)).

use glam::DVec3;
use supple::control::{Goal, Mode, Style};
use supple::solver::reduced::Balance;
use supple::*;

const STYLES: [Style; 3] = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity];

/// Linear momentum, and angular momentum: about the centre of mass of the bones, or about the origin where there is flesh, which starts at rest.
fn momentum(model: &Model, state: &State) -> [DVec3; 2] {
    let sum = measure::momentum(model, state);
    if model.flesh().is_some() {
        return [sum.linear, sum.angular];
    }
    let moments = model.bodies().iter().zip(&state.bodies).map(|(body, s)| s.position * body.mass);
    let centre = moments.sum::<DVec3>() / model.mass();
    [sum.linear, sum.angular - centre.cross(sum.linear)]
}

/// What is asked of a character in empty space, and what became of its momentum: the largest change of each part, and the largest sum of the bones' own \[kg·m/s\].
fn direct(model: &Model, start: &State, input: &Input, seconds: f64, goal: impl Fn(f64) -> Goal) -> ([DVec3; 2], f64) {
    let (mut state, mut input, mut work) = (start.clone(), input.clone(), Work::new(model));
    let first = momentum(model, &state);
    let (mut changes, mut moved) = ([DVec3::ZERO; 2], 0.0);
    while state.time < seconds - 1e-9 {
        input.control.goals = vec![goal(state.time)];
        let report = step(model, &input, &mut state, &mut work).unwrap();
        assert!(report.control.root_wrench < 1e-9, "{:?}", report.control);
        let now = momentum(model, &state);
        (0..2).for_each(|k| changes[k] = changes[k].max((now[k] - first[k]).abs()));
        let bones = model.bodies().iter().zip(&state.bodies).map(|(b, s)| b.mass * s.velocity.linear.length());
        moved = f64::max(moved, bones.sum());
    }
    (changes, moved)
}

fn in_space(style: Style, dt: f64, balance: Balance) -> Input {
    let solver = Solver::Reduced(Reduced { balance, ..Reduced::default() });
    let mut input = Input { dt, solver, gravity: DVec3::ZERO, contacts: Contacts::Off, ..Input::default() };
    (input.control.mode, input.control.style) = (Mode::Goals, style);
    input
}

/// Seven bones on balls, afloat: with the books balanced its momentum stays to rounding, without them it strays with the step.
#[test]
fn a_chain_led_in_empty_space_keeps_its_momentum() {
    let mut builder = ModelBuilder::new();
    for i in 0..7u32 {
        let at = DVec3::X * (0.2 * f64::from(i));
        let bone = BodySpec::new(format!("bone {i}")).shape(Shape::cuboid(0.2, 0.05, 0.05), 500.0);
        builder.body(bone.pose(Pose::at(at)));
        if i > 0 {
            let joint = JointSpec::new(format!("joint {i}"), JointMask::BALL, BodyId(i), BodyId(i - 1));
            builder.joint(joint.at(at - DVec3::X * 0.1));
        }
    }
    let model = builder.build().unwrap();
    // It drifts and turns, so that there is momentum to keep.
    let mut start = model.start();
    for body in &mut start.bodies {
        body.velocity.angular = DVec3::new(0.1, -0.2, 1.0);
        let lever = body.position - DVec3::X * 0.6;
        body.velocity.linear = DVec3::new(0.3, 0.1, -0.2) + body.velocity.angular.cross(lever);
    }
    let goal = |_| Goal::drag(BodyId(6), DVec3::X * 0.1, DVec3::new(1.1, 0.4, 0.3));
    for style in STYLES {
        let (kept, moved) = direct(&model, &start, &in_space(style, 1e-3, Balance::On), 0.6, goal);
        assert!(moved > 1.0, "it is led: {moved}");
        assert!(kept.iter().all(|change| change.length() < 1e-12 * moved), "{style:?}: {kept:?} of {moved}");
        // gently, so that a step is short for what moves
        let [coarse, fine] = [0.5e-3, 0.25e-3].map(|dt| {
            let mut input = in_space(style, dt, Balance::Off);
            (input.control.gains.goal, input.control.gains.most_acceleration) = (50.0, 10.0);
            direct(&model, &start, &input, 0.3, goal).0
        });
        for (coarse, fine) in coarse.iter().zip(&fine) {
            let ratio = coarse.length() / fine.length();
            assert!((1.7..2.4).contains(&ratio), "{style:?}: {coarse} and {fine}");
        }
    }
}

/// Flesh is stepped with forces of the step's start: momentum strays by an amount that is halved with the step. The root of these creatures is planar. Along X and Y, and about Z, it is free; along Z,
/// and about X and Y, it holds the bones in their plane, and since the lattice of the flesh is not the same on both sides of the plane there is something to hold: those parts of the momentum change by
/// what the plane does, and do not fall with the step.
#[test]
fn creatures_led_in_empty_space_keep_their_momentum_in_the_plane_they_move_in() {
    for (name, head) in [("worm", "segment_0"), ("fish", "spine_0")] {
        let scene = Scene::parse(name).unwrap();
        let model = &scene.model;
        let head = model.find_body(head).unwrap();
        let start = scene.state.bodies[head.index()].position;
        for style in STYLES {
            // the fish's flesh is stepped in parts of half a millisecond at most
            let runs = [0.5e-3, 0.25e-3, 0.125e-3].map(|dt| {
                let mut input = in_space(style, dt, Balance::On);
                input.control.gains.goal = 100.0;
                let goal = |t: f64| {
                    let lead = DVec3::new(0.1 * t, 0.1 * (1.0 - (8.0 * t).cos()), 0.0);
                    Goal::drag(head, DVec3::ZERO, start + lead)
                };
                direct(model, &scene.state, &input, 0.4, goal)
            });
            for pair in runs.windows(2) {
                let ([(coarse, moved), (fine, _)], free) =
                    ([pair[0], pair[1]], |of: [DVec3; 2]| [of[0].x, of[0].y, of[1].z]);
                assert!(moved > 1.0, "{name}, {style:?}: it is led: {moved}");
                for (coarse, fine) in free(coarse).iter().zip(free(fine)) {
                    let ratio = coarse / fine;
                    assert!((1.6..2.6).contains(&ratio), "{name}, {style:?}: {coarse:.3e} and {fine:.3e} of {moved}");
                }
                let (held, later) = (coarse[0].z, fine[0].z);
                assert!((held / later - 1.0).abs() < 0.1 && held < 0.03 * moved, "{name}, {style:?}: {held} {later}");
            }
        }
    }
}
