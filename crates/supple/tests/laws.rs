//! Laws that hold for every motion: free fall, momentum, energy, static equilibrium.

#[path = "common/mod.rs"]
mod common;
mod support;

use common::Random;
use glam::DVec3;
use supple::*;
use support::*;

#[test]
fn a_free_body_falls_as_the_scheme_says() {
    // v_n = v0 + n h g, x_n = x0 + n h v0 + h² g n(n+1)/2: velocities first, then positions with the new ones.
    let mut builder = ModelBuilder::new();
    builder.body(block("stone", DVec3::new(1.0, 2.0, 3.0)));
    let model = builder.build().unwrap();
    let (x0, v0, g) = (DVec3::new(1.0, 2.0, 3.0), DVec3::new(2.0, 5.0, -1.0), DVec3::new(0.0, -9.81, 0.0));
    for dt in [1.0 / 30.0, 1.0 / 60.0, 1.0 / 1000.0] {
        let mut state = model.start();
        state.bodies[0].velocity.linear = v0;
        let mut n = 0.0;
        run(&model, &input(dt), &mut state, 600, |state, _| {
            n += 1.0;
            let v = v0 + g * (n * dt);
            let x = x0 + v0 * (n * dt) + g * (dt * dt * n * (n + 1.0) / 2.0);
            let off = [(state.bodies[0].velocity.linear - v).length(), (state.bodies[0].position - x).length()];
            // Rounding: every step adds half a unit in the last place of the present value, eps/2 |x|.
            let rounding = |size: f64| n * f64::EPSILON * (1.0 + size);
            assert!(off[0] <= rounding(v.length()), "dt {dt}, step {n}: velocity off by {:e}", off[0]);
            assert!(off[1] <= rounding(x.length()), "dt {dt}, step {n}: position off by {:e}", off[1]);
        });
        assert_eq!(state.bodies[0].orientation, model.body(BodyId(0)).start.rotation);
    }
}

/// A floating tree of random joints, all forces internal: springs, limits and motors of joints, springs between anchors,
/// also of bodies that are not neighbours. Moving, a little open.
fn floating_tree(seed: u64) -> (Model, Input, State) {
    let mut random = Random::new(seed);
    let count = 2 + random.below(25);
    let mut builder = ModelBuilder::new();
    let mut poses: Vec<Pose> = Vec::new();
    for i in 0..count {
        let mask = JointMask::PRESETS[random.below(10)].1;
        let (frame_a, frame_b, relative) = (random.pose(), random.pose(), random.allowed(mask));
        let parent = random.below(i.max(1));
        let flipped = random.chance(0.4);
        let base = poses.get(parent).copied().unwrap_or(Pose::IDENTITY);
        poses.push(if flipped {
            base.then(frame_a).then(relative.inverse()).then(frame_b.inverse())
        } else {
            base.then(frame_b).then(relative).then(frame_a.inverse())
        });
        let mut side = || random.range(0.05, 0.4);
        let shape = Shape::cuboid(side(), side(), side());
        builder.body(BodySpec::new(format!("body {i}")).shape(shape, 1000.0).pose(poses[i]));
        if i == 0 {
            continue;
        }
        let (this, other) = (BodyId(i as u32), BodyId(parent as u32));
        let (child, holder) = if flipped { (other, this) } else { (this, other) };
        let spec = JointSpec::new(format!("joint {i}"), mask, child, holder).frames(frame_a, frame_b);
        let spec = random.joint(spec, mask);
        builder.joint(spec);
        if random.chance(0.2) {
            builder.anchor_spring(AnchorSpringSpec {
                name: format!("spring {i}"),
                a: this.into(),
                point_in_a: random.vector(0.3),
                b: BodyId(random.below(i) as u32).into(),
                point_in_b: random.vector(0.3),
                stiffness: random.range(0.0, 500.0),
                damping: random.range(0.0, 3.0),
                rest_length: if random.chance(0.3) { 0.0 } else { random.range(0.0, 1.0) },
            });
        }
    }
    let model = builder.build().unwrap();
    let mut state = model.start();
    for body in &mut state.bodies {
        body.position += random.vector(1e-3);
        body.orientation = (random.rotation(1e-3) * body.orientation).normalize();
        body.velocity = Twist::new(random.vector(1.0), random.vector(3.0));
    }
    state.recount_turns(&model);
    let mut input = weightless(1.0 / 120.0);
    for k in 0..model.joints().len() {
        let servo = match random.below(4) {
            0 => Some(ServoTarget::Position { position: random.range(-1.0, 1.0), rate: random.range(-1.0, 1.0) }),
            1 => Some(ServoTarget::Rate(random.range(-1.0, 1.0))),
            2 => Some(ServoTarget::Rotation(random.rotation(1.0))),
            _ => None,
        };
        input.joint_mut(&model, k).servo = servo;
        input.joint_mut(&model, k).torque = random.range(-3.0, 3.0);
    }
    (model, input, state)
}

#[test]
fn internal_forces_keep_the_linear_momentum() {
    let (mut worst, mut largest_change) = (0.0f64, 0.0f64);
    for seed in 0..150 {
        let (model, input, mut state) = floating_tree(seed);
        let start = measure::momentum(&model, &state).linear;
        let mut moved = 0.0f64; // the largest sum of |m v| so far: what rounding goes with
        let mut work = Work::new(&model);
        for n in 0..60 {
            let before = state.bodies.clone();
            step(&model, &input, &mut state, &mut work).unwrap_or_else(|e| panic!("seed {seed}, step {n}: {e}"));
            let mut exchanged = 0.0;
            let mut sum = 0.0;
            for ((body, s), before) in model.bodies().iter().zip(&state.bodies).zip(&before) {
                sum += body.mass * s.velocity.linear.length();
                exchanged += body.mass * (s.velocity.linear - before.velocity.linear).length();
            }
            moved = moved.max(sum);
            largest_change = largest_change.max(exchanged / sum);
            let off = (measure::momentum(&model, &state).linear - start).length();
            worst = worst.max(off / moved);
            // Rounding of one step is eps times the momenta exchanged, worsened by the condition of the stiffest joints
            // (h²k/m up to about 10), sixty times.
            assert!(off < 1e-12 * moved, "seed {seed}, step {n}: momentum off by {off:e}, moved {moved:e}");
        }
    }
    println!("momentum off by at most {worst:.1e} of Σ|mv|; forces exchange up to {largest_change:.1} of it in a step");
    assert!(largest_change > 0.1, "the forces hardly act: {largest_change}");
}

#[test]
fn angular_momentum_drifts_to_first_order_only() {
    // A chain of five floating links on stiff balls, thrown with a spin and set waving.
    let mut builder = ModelBuilder::new();
    for i in 0..5 {
        let x = DVec3::X * (0.2 * i as f64);
        let link = builder
            .body(BodySpec::new(format!("link {i}")).shape(Shape::cuboid(0.2, 0.05, 0.04), 1000.0).pose(Pose::at(x)));
        if i > 0 {
            let joint = JointSpec::new(format!("joint {i}"), JointMask::BALL, link, BodyId(i as u32 - 1));
            builder.joint(joint.at(x - DVec3::X * 0.1).spring(20.0, 0.01));
        }
    }
    let model = builder.build().unwrap();
    let drift = |dt: f64| {
        let mut state = model.start();
        let spin = DVec3::new(0.5, 1.0, 3.0);
        for (i, body) in state.bodies.iter_mut().enumerate() {
            // Closed joints: a rigid rotation about the middle.
            body.velocity = Twist::new(spin.cross(body.position - DVec3::X * 0.4) + DVec3::Y, spin);
            body.velocity.angular.x += if i % 2 == 0 { 2.0 } else { -2.0 }; // about the chain's axis: opens nothing
        }
        let first = measure::momentum(&model, &state);
        let mut worst = 0.0f64;
        run(&model, &weightless(dt), &mut state, (1.0 / dt).round() as usize, |state, _| {
            worst = worst.max((measure::momentum(&model, state).angular - first.angular).length());
        });
        worst / first.angular.length()
    };
    let drifts = [60.0, 240.0, 480.0, 960.0, 1920.0].map(|rate| drift(1.0 / rate));
    let orders = orders(&drifts[1..]);
    println!("relative drift in a second {drifts:.5?}, orders {orders:.2?}");
    // Levers turn by h|ω| = 0.09 rad within a step of 1/60 s; the drift stays an order of magnitude below that.
    assert!(drifts[0] < 0.01, "{drifts:?}");
    assert!(orders.iter().all(|o| (0.8..1.3).contains(o)), "{drifts:?}: orders {orders:?}");
}

#[test]
fn damped_stiff_chains_gain_no_energy() {
    for stiffness in [1e2, 1e3, 1e4, 1e5, 1e6] {
        for seconds in [1e-2, 1e-3, 1e-4] {
            let damping = seconds * stiffness;
            let scene = Scene::parse(&format!("chain:20,stiffness={stiffness},damping={damping}")).unwrap();
            let input = input(1.0 / 60.0);
            let mut state = scene.state.clone();
            let first = measure::energy(&scene.model, &input, &state).total();
            let (mut last, mut rise, mut most) = (first, 0.0f64, f64::NEG_INFINITY);
            run(&scene.model, &input, &mut state, 600, |state, _| {
                let energy = measure::energy(&scene.model, &input, state).total();
                rise = rise.max(energy - last);
                most = most.max(energy - first);
                last = energy;
            });
            println!(
                "k = {stiffness:.0e}, c = {damping:.0e}: largest rise in a step {rise:.1e} J, above the start {most:.1e} J, at the end {:.2e} J",
                last - first
            );
            assert!(rise <= 1e-12 && most <= 0.0, "k = {stiffness:e}: rise {rise:e}, {most:e} above the start");
        }
    }
}

#[test]
fn static_sag_does_not_depend_on_the_step() {
    // Ten links: an independent planar equilibrium to seven digits.
    for (stiffness, damping, x, y) in [(1e2, 1.0, 0.988251, -0.146044), (1e4, 30.0, 0.9999988, -0.0014838)] {
        let scene = Scene::parse(&format!("chain:10,stiffness={stiffness},damping={damping}")).unwrap();
        for dt in [1.0 / 30.0, 1.0 / 60.0, 1.0 / 240.0] {
            let mut state = scene.state.clone();
            settle(&scene.model, &input(dt), &mut state, 20.0);
            let last = state.bodies.last().unwrap();
            let tip = last.pose().transform_point(DVec3::X * 0.05);
            println!(
                "k = {stiffness:.0e}, dt = {dt:.5}: tip ({:.7}, {:.7}), speed {:.1e}",
                tip.x,
                tip.y,
                last.velocity.linear.length()
            );
            assert!((tip - DVec3::new(x, y, 0.0)).length() < 1e-6, "k = {stiffness:e}, dt = {dt}: {tip}");
        }
    }
}
