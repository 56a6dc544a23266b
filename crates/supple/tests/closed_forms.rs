//! Motions with a closed form: of the differential equation as dt → 0, or of the scheme itself to rounding.

mod support;

use glam::{DMat3, DQuat, DVec3};
use std::f64::consts::{FRAC_PI_2, TAU};
use supple::forces::JointView;
use supple::model::joint::swing_twist;
use supple::solver::Impulses;
use supple::*;
use support::*;

/// Complete elliptic integral of the first kind, by the arithmetic–geometric mean: K(k) = π / 2 agm(1, √(1 − k²)).
fn elliptic_k(k: f64) -> f64 {
    let (mut a, mut b) = (1.0, (1.0 - k * k).sqrt());
    while (a - b).abs() > 1e-15 {
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    FRAC_PI_2 / a
}

/// The rod of the scene, its angle from hanging, and √(g/L) of its small swings.
fn pendulum() -> (Scene, f64) {
    let scene = Scene::parse("pendulum").unwrap();
    let body = scene.model.body(BodyId(0));
    let arm = body.start.translation.length();
    let inertia = body.inertia.z_axis.z + body.mass * arm * arm;
    let omega = (body.mass * 9.81 * arm / inertia).sqrt();
    (scene, omega)
}

/// Turns the rod to this angle from hanging.
fn hang(scene: &Scene, angle: f64) -> State {
    let mut state = scene.state.clone();
    let rotation = DQuat::from_rotation_z(angle - FRAC_PI_2);
    state.bodies[0].orientation = rotation;
    state.bodies[0].position = rotation * (DVec3::X * 0.5);
    state.recount_turns(&scene.model);
    state
}

/// Angle of the rod from hanging.
fn angle_of(state: &State) -> f64 {
    let along = state.bodies[0].orientation * DVec3::X;
    along.x.atan2(-along.y)
}

/// Time of the first four passages through the lowest point after a release at rest, by linear interpolation.
fn passages(scene: &Scene, amplitude: f64, dt: f64) -> Vec<f64> {
    let mut state = hang(scene, amplitude);
    let (mut last, mut times) = ((0.0, amplitude), Vec::new());
    let mut work = Work::new(&scene.model);
    while times.len() < 4 {
        step(&scene.model, &input(dt), &mut state, &mut work).unwrap();
        let now = (state.time, angle_of(&state));
        if last.1 * now.1 <= 0.0 && last.1 != 0.0 {
            times.push(last.0 + (now.0 - last.0) * last.1 / (last.1 - now.1));
        }
        last = now;
    }
    times
}

#[test]
fn a_pendulum_has_the_period_of_its_amplitude() {
    let (scene, omega) = pendulum();
    for degrees in [2.0f64, 60.0, 120.0, 160.0] {
        let amplitude = degrees.to_radians();
        let period = 4.0 / omega * elliptic_k((0.5 * amplitude).sin());
        let rates = [500.0, 1000.0, 2000.0, 4000.0];
        let all = rates.map(|rate| passages(&scene, amplitude, 1.0 / rate));
        let quarter: Vec<f64> = all.iter().map(|t| (t[0] / (0.25 * period) - 1.0).abs()).collect();
        let whole: Vec<f64> = all.iter().map(|t| ((t[2] - t[0]) / period - 1.0).abs()).collect();
        let order = orders(&quarter);
        println!(
            "{degrees}°: period {period:.6} s, relative errors of a quarter {quarter:.6?} (orders {order:.2?}), of a whole {whole:.6?}"
        );
        assert!(order.iter().all(|o| (0.8..1.3).contains(o)), "{degrees}°: {quarter:?}, orders {order:?}");
        // At 1/4000 s a first-order error of the order of h ω.
        assert!(quarter[3] < 2e-3 && whole[3] < 2e-3, "{degrees}°: {quarter:?} {whole:?}");
    }
}

#[test]
fn small_swings_follow_the_closed_form_of_the_scheme() {
    // θ_{n+1} − 2θ_n + θ_{n−1} = −(hω)² θ_n, from rest: θ_n = θ_0 (cos nβ − tan(β/2) sin nβ), cos β = 1 − (hω)²/2.
    let (scene, omega) = pendulum();
    let amplitude = 1e-4;
    for dt in [1.0 / 30.0, 1.0 / 240.0] {
        let beta = (1.0 - 0.5 * (dt * omega).powi(2)).acos();
        let mut state = hang(&scene, amplitude);
        let mut n = 0.0;
        let mut worst = 0.0f64;
        run(&scene.model, &input(dt), &mut state, 300, |state, _| {
            n += 1.0;
            let expected = amplitude * ((n * beta).cos() - (0.5 * beta).tan() * (n * beta).sin());
            worst = worst.max((angle_of(state) - expected).abs());
        });
        println!("dt {dt:.4}: off by at most {:.1e} of the amplitude", worst / amplitude);
        // sin θ = θ − θ³/6: a relative 1e-8 of the force, added up over 300 steps of up to 0.1 rad of phase.
        assert!(worst < 1e-6 * amplitude, "dt {dt}: {worst:e}");
    }
}

#[test]
fn a_mass_on_a_slider_spring_is_backward_euler() {
    // x_n = (1 + (hω)²)^(−n/2) x_0 cos(n atan(hω)) without damping, from rest.
    let (k, m) = (50.0, 2.0);
    let axis = DVec3::new(1.0, 2.0, -2.0) / 3.0;
    for (c, weight) in [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)] {
        let spring = SlideSpring { stiffness: k, damping: c, rest: DVec3::new(0.1, 0.0, 0.0) };
        let model = on_world(JointMask::PRISMATIC, DVec3::ZERO, |j| j.axis(axis).slide_spring(spring));
        let dt = 1.0 / 60.0;
        let mut input = weightless(dt);
        input.gravity = axis * weight;
        let mut state = model.start();
        // m v' = m v + h (m g − k (x + h v' − rest) − c v')
        let (mut x, mut v, mut n) = (0.0, 0.0, 0);
        run(&model, &input, &mut state, 600, |state, _| {
            v = (m * v + dt * (m * weight - k * (x - 0.1))) / (m + dt * c + dt * dt * k);
            x += dt * v;
            n += 1;
            let off = (state.bodies[0].position - axis * x)
                .length()
                .max((state.bodies[0].velocity.linear - axis * v).length());
            assert!(off < 1e-12, "step {n}: off by {off:e}"); // rounding of 600 steps of values of order 1
            if c == 0.0 && weight == 0.0 {
                let a = dt * (k / m).sqrt();
                let closed = 0.1 - 0.1 * (1.0 + a * a).powf(-0.5 * f64::from(n)) * (f64::from(n) * a.atan()).cos();
                let found = state.bodies[0].position.dot(axis);
                assert!((found - closed).abs() < 1e-12, "step {n}: {found} against {closed}");
            }
        });
    }
}

#[test]
fn a_damped_hinge_loses_its_speed_by_a_constant_factor() {
    let c = 0.7;
    let model = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::Z).spring(0.0, c));
    let dt = 1.0 / 60.0;
    let mut state = model.start();
    state.bodies[0].velocity.angular = DVec3::Z * 5.0;
    let (mut n, mut angle) = (0, 0.0);
    run(&model, &weightless(dt), &mut state, 120, |state, _| {
        n += 1;
        let omega = 5.0 * (1.0 + dt * c / MOMENTS.z).powi(-n); // I ω' = I ω − h c ω'
        angle += dt * omega;
        let off = (state.bodies[0].velocity.angular - DVec3::Z * omega).length();
        assert!(off < 1e-13, "step {n}: off by {off:e}");
        assert!((state.joints[0].angle - angle).abs() < 1e-13, "step {n}: {} against {angle}", state.joints[0].angle);
    });
}

#[test]
fn a_heavy_top_precesses_at_its_rate() {
    // Steady precession Ω about the vertical at tilt θ:  I₃ω₃Ω − I₁Ω² cos θ = m g l  (I₁ about the point).
    let scene = Scene::parse("top").unwrap();
    let body = scene.model.body(BodyId(0));
    let arm = body.start.translation.length();
    let (i3, i1) = (body.inertia.x_axis.x, body.inertia.y_axis.y + body.mass * arm * arm);
    let axis = body.start.rotation * DVec3::X;
    let (spin, cosine) = (60.0, axis.y);
    let weight = body.mass * 9.81 * arm;
    let discriminant = (i3 * spin).powi(2) - 4.0 * i1 * cosine * weight;
    let rate = (i3 * spin - discriminant.sqrt()) / (2.0 * i1 * cosine);
    let found = |dt: f64| {
        let mut state = scene.state.clone();
        // ω = Ω y + s axis with ω·axis = ω₃
        let omega = DVec3::Y * rate + axis * (spin - rate * cosine);
        let top = &mut state.bodies[0];
        top.velocity = Twist::new(omega.cross(top.position), omega);
        let (mut turned, mut last) = (0.0, 0.0);
        run(&scene.model, &input(dt), &mut state, (1.0 / dt).round() as usize, |state, _| {
            let along = state.bodies[0].orientation * DVec3::X;
            let azimuth = (-along.z).atan2(along.x);
            let by = azimuth - last;
            turned += by - TAU * (by / TAU).round();
            last = azimuth;
        });
        turned
    };
    // The first- and second-order parts of the error cancel near 1/1000 s: the order shows below that.
    let errors = [250.0, 4000.0, 8000.0, 16000.0].map(|r| (found(1.0 / r) / rate - 1.0).abs());
    let order = orders(&errors[1..]);
    println!("precession {rate:.5} rad/s, relative errors {errors:.6?}, orders {order:.2?}");
    assert!(errors[0] < 0.03, "{errors:?}"); // a few per cent at 1/250 s, where the top turns by 0.24 rad in a step
    assert!(errors[1] < 1e-3, "{errors:?}");
    assert!(order.iter().all(|o| (0.8..1.3).contains(o)), "{errors:?}: orders {order:?}");
}

#[test]
fn a_free_symmetric_body_precesses_about_its_angular_momentum() {
    // The axis goes round L at |L|/I₁.
    let (i3, i1) = (0.06, 0.04);
    let mut builder = ModelBuilder::new();
    let inertia = DMat3::from_diagonal(DVec3::new(i3, i1, i1));
    builder.body(BodySpec::new("plate").mass(1.0).inertia(inertia, DVec3::ZERO));
    let model = builder.build().unwrap();
    let omega = DVec3::new(8.0, 3.0, 0.0);
    let momentum = DVec3::new(i3 * omega.x, i1 * omega.y, 0.0);
    let rate = momentum.length() / i1;
    let up = momentum.normalize();
    let seconds = 1.0;
    let error = |dt: f64| {
        let mut state = model.start();
        state.bodies[0].velocity.angular = omega;
        settle(&model, &weightless(dt), &mut state, seconds);
        let exact = DQuat::from_axis_angle(up, rate * seconds) * DVec3::X;
        (state.bodies[0].orientation * DVec3::X).angle_between(exact)
    };
    let errors = [500.0, 1000.0, 2000.0, 4000.0].map(|r| error(1.0 / r));
    let order = orders(&errors);
    println!("axis off after {:.1} rad of precession by {errors:.6?} rad, orders {order:.2?}", rate * seconds);
    assert!(errors[3] < 0.03 * rate * seconds, "{errors:?}"); // a few per cent of the way
    assert!(order.iter().all(|o| (0.8..1.3).contains(o)), "{errors:?}: orders {order:?}");
}

#[test]
fn a_servo_reaches_its_target() {
    let motor = Motor { stiffness: 20.0, damping: 2.0, max: 1e3, integral: 0.0 };
    let dt = 1.0 / 60.0;
    let aim = |model: &Model, servo: ServoTarget, gravity: DVec3| {
        let mut input = Input { gravity, ..weightless(dt) };
        input.joint_mut(model, 0).servo = Some(servo);
        let mut state = model.start();
        settle(model, &input, &mut state, 20.0); // the slowest decays as e^(−3 t): e^−60 is left
        state
    };

    let hinge = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::Z).motor(motor));
    let at = aim(&hinge, ServoTarget::Position { position: 1.2, rate: 0.0 }, DVec3::ZERO).joints[0].angle;
    assert!((at - 1.2).abs() < 1e-12, "hinge at {at}"); // rounding
    let state = aim(&hinge, ServoTarget::Rate(-2.5), DVec3::ZERO);
    let rate = state.bodies[0].velocity.angular.z;
    assert!((rate + 2.5).abs() < 1e-12, "hinge turns at {rate}");

    // Under its weight a slider's servo gives way by m g / kp.
    let strong = Motor { damping: 12.0, ..motor }; // decays as e^(−3 t)
    let slider = on_world(JointMask::PRISMATIC, DVec3::ZERO, |j| j.axis(DVec3::Y).motor(strong));
    let state = aim(&slider, ServoTarget::Position { position: 0.3, rate: 0.0 }, DVec3::NEG_Y * 9.81);
    let expected = 0.3 - 2.0 * 9.81 / 20.0;
    assert!((state.bodies[0].position.y - expected).abs() < 1e-12, "slider at {}", state.bodies[0].position.y);

    let ball = on_world(JointMask::BALL, DVec3::ZERO, |j| j.motor(motor));
    let target = DQuat::from_scaled_axis(DVec3::new(0.8, -1.1, 0.5));
    let turned = aim(&ball, ServoTarget::Rotation(target), DVec3::ZERO).bodies[0].orientation;
    assert!(turned.dot(target).abs() > 1.0 - 1e-14, "ball at {turned}, wanted {target}");
}

#[test]
fn a_clamped_motor_gives_exactly_its_largest_torque() {
    let (dt, max) = (1.0 / 60.0, 0.25);
    let motor = Motor { stiffness: 100.0, damping: 1.0, max, integral: 0.0 };
    for mask in [JointMask::HINGE, JointMask::PRISMATIC, JointMask::BALL] {
        let model = on_world(mask, DVec3::ZERO, |j| j.axis(DVec3::X).motor(motor));
        let mut input = weightless(dt);
        input.solver =
            Solver::Tree(Tree { scheme: TreeScheme::Published, impulses: Impulses::Keep, ..Tree::default() });
        input.joint_mut(&model, 0).servo = Some(match mask {
            JointMask::BALL => ServoTarget::Rotation(DQuat::from_rotation_x(3.0)),
            _ => ServoTarget::Position { position: 100.0, rate: 0.0 },
        });
        let (mut state, mut work) = (model.start(), Work::new(&model));
        for n in 1..=30 {
            step(&model, &input, &mut state, &mut work).unwrap();
            let (impulse, velocity) = (work.joint_impulses()[0], state.bodies[0].velocity);
            let (given, speed, inertia) = match mask {
                JointMask::PRISMATIC => (impulse.force.x, velocity.linear.x, 2.0),
                _ => (impulse.torque.x, velocity.angular.x, MOMENTS.x),
            };
            let name = mask.name();
            // Rounding: values of order 1.
            assert!((given / dt - max).abs() < 1e-13, "{name}, step {n}: {given} N·m·s in a step of {dt} s");
            let expected = f64::from(n) * dt * max / inertia;
            assert!((speed - expected).abs() < 1e-12, "{name}, step {n}: speed {speed}, not {expected}");
        }
    }
}

#[test]
fn a_hinge_counts_its_turns() {
    let model = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::new(1.0, -1.0, 0.5)));
    let axis = DVec3::new(1.0, -1.0, 0.5).normalize();
    let dt = 1.0 / 60.0;
    for speed in [20.0, -75.0] {
        let mut state = model.start();
        state.bodies[0].velocity.angular = axis * speed;
        // The moments about this axis are not principal: the hinge holds it, and the speed changes only by the
        // gyroscopic step, so compare with the speed the run has.
        let mut angle = 0.0;
        run(&model, &weightless(dt), &mut state, 300, |state, _| {
            angle += dt * state.bodies[0].velocity.angular.dot(axis);
            let found = state.joints[0].angle;
            assert!((found - angle).abs() < 1e-9, "{found} against {angle}"); // rounding and the gyroscopic tilt, squared
        });
        println!("{:.2} turns counted", angle / TAU);
        assert!((angle / TAU).abs() > 5.0, "{angle}");
    }
}

#[test]
fn a_spring_unwinds_to_a_rest_three_turns_away() {
    for turns in [3.0, -3.0] {
        let rest =
            RotationSpring { stiffness: 2.0, damping: 0.5, rest: DQuat::from_rotation_x(0.4), rest_turns: turns * TAU };
        let model = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::Y).rotation_spring(rest));
        let mut state = model.start();
        let mut furthest = 0.0f64;
        run(&model, &weightless(1.0 / 60.0), &mut state, 1800, |state, _| {
            furthest = furthest.max(state.joints[0].angle * turns.signum());
        });
        let wanted = turns * TAU + 0.4;
        let found = state.joints[0].angle;
        println!("rest {wanted:.4} rad, reached {found:.4} rad, at most {furthest:.4} on the way");
        // A damping ratio of 0.88: decays as e^(−6.2 t) for 30 s, and overshoots by 0.3 % at most.
        assert!((found - wanted).abs() < 1e-11, "{found}, not {wanted}");
        assert!(furthest < 1.01 * wanted.abs(), "overshoot to {furthest}");
    }
}

#[test]
fn limits_give_way_by_force_over_stiffness() {
    let limits = Limits {
        angle: Some(Range::new(-0.3, 0.5)),
        stiffness: 200.0,
        damping: 5.0,
        slide_stiffness: 4e3,
        slide_damping: 200.0,
        ..Limits::default()
    };
    let hinge = on_world(JointMask::HINGE, DVec3::ZERO, |j| j.axis(DVec3::X).limits(limits));
    let slide = Limits { slide: Some(Range::new(-0.1, 0.2)), angle: None, ..limits };
    let slider = on_world(JointMask::PRISMATIC, DVec3::ZERO, |j| j.axis(DVec3::X).limits(slide));
    // Beyond the width w over which it sets in the law is k (v − w/2): it gives way by force over stiffness and half of w, which is a thousandth of the
    // slider's range.
    let (half, slide_half) = (0.5 * Limits::WIDTH, 0.5e-3 * 0.3);
    for (push, end, slide_end) in [(4.0f64, 0.5, 0.2), (-4.0, -0.3, -0.1), (40.0, 0.5, 0.2)] {
        let (end, slide_end) = (end + half * push.signum(), slide_end + slide_half * push.signum());
        for dt in [1.0 / 30.0, 1.0 / 240.0] {
            let mut input = weightless(dt);
            input.wrenches = vec![(BodyId(0), Wrench::new(DVec3::X * push, DVec3::X * push))];
            let settled = |model: &Model| {
                let mut state = model.start();
                let mut furthest = 0.0f64;
                run(model, &input, &mut state, (30.0 / dt) as usize, |state, _| {
                    furthest = furthest.max(state.joints[0].angle.abs().max(state.bodies[0].position.x.abs()));
                });
                (state, furthest)
            };
            let (state, furthest) = settled(&hinge);
            let found = state.joints[0].angle;
            println!("push {push}, dt {dt:.4}: hinge at {found:.6}, at most {furthest:.4} rad");
            assert!((found - (end + push / 200.0)).abs() < 1e-9, "hinge at {found}, push {push}, dt {dt}");
            let (state, furthest) = settled(&slider);
            let found = state.bodies[0].position.x;
            println!("push {push}, dt {dt:.4}: slider at {found:.6}, at most {furthest:.4} m");
            assert!((found - (slide_end + push / 4e3)).abs() < 1e-9, "slider at {found}, push {push}, dt {dt}");
        }
    }
}

#[test]
fn a_ball_pulled_sideways_stops_at_its_ellipse() {
    let ellipse = SwingEllipse { about_y: 0.4, about_z: 0.9 };
    let k = 300.0;
    let limits = Limits { swing: Some(ellipse), stiffness: k, damping: 3.0, ..Limits::default() };
    let arm = 0.2;
    // The damper keeps what the limit lets through from swinging; it has no rest.
    let model = on_world(JointMask::BALL, DVec3::X * arm, |j| j.limits(limits).spring(0.0, 0.5));
    for step in 0..12 {
        let around = TAU * f64::from(step) / 12.0 + 0.1;
        let pull = DVec3::new(0.0, around.cos(), around.sin()) * 15.0;
        let mut input = weightless(1.0 / 60.0);
        input.wrenches = vec![(BodyId(0), Wrench::new(pull, DVec3::ZERO))];
        let mut state = model.start();
        settle(&model, &input, &mut state, 60.0);
        let relative = state.relative_rotation(&model, &model.joints()[0]);
        let (s1, s2, _) = swing_twist(relative);
        let (v, _) = ellipse.violation(s1, s2);
        let along = relative * DVec3::X;
        let torque = along.cross(pull) * arm;
        println!(
            "pull at {:.0}°: swing ({s1:.4}, {s2:.4}), beyond the ellipse by {v:.5}, torque/k {:.5}",
            around.to_degrees(),
            torque.length() / k
        );
        let half = 0.5 * Limits::WIDTH;
        assert!(v > 0.0 && v <= torque.length() / k + half + 1e-9, "{around}: violation {v}, torque {torque}");
        // At rest the limit's torque F(v) g is that of the pull.
        let (v, g) = JointView::new(&model, &state, JointId(0)).swing_violation().unwrap();
        let left = torque + g * limits.swing_law().unwrap().force(v, 0.0);
        let left = left.reject_from_normalized(along);
        assert!(left.length() < 1e-6 * torque.length(), "{around}: torque left over {left}");
    }
}
