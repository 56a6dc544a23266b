//! Recorded motion on other figures.

mod common;

use common::assets;
use glam::DVec3;
use std::path::Path;
use std::sync::Arc;
use supple::maths::rotation::log;
use supple::{Scene, Work, measure, step};
use supple_assets::retarget::{followable, residual, retarget};
use supple_assets::{Files, bvh, open};

/// What a run that follows a recording measured.
struct Tracked {
    /// Mean over bodies that follow and over time: angle between body and recording [rad].
    angle: f64,
    /// Mean angle that axes and limits cost before any physics [rad].
    misfit: f64,
    pairs: usize,
    fallbacks: u32,
    gap: f64,
}

fn track(scene: &Scene, clip: &Path) -> Tracked {
    let recording = bvh::read(&Files::default().open(clip).unwrap()).unwrap();
    let model = followable(&scene.model).unwrap();
    let on = retarget(clip, &recording, &model, &model.start(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let motion = Arc::new(on.motion);
    let state = model.start();
    let mut scene = Scene::from_parts("tracked", model, state, scene.input.clone());
    scene.input.contacts = supple::Contacts::Off;
    // the robot is pulled by its hand otherwise, the mannequin held by its hips
    (scene.input.drags, scene.input.targets) = (Vec::new(), Vec::new());
    // The run starts in the first frame, with its velocities.
    for (b, body) in scene.state.bodies.iter_mut().enumerate() {
        let moved = motion.at(0.0, b);
        (body.position, body.orientation, body.velocity) =
            (moved.pose.translation, moved.pose.rotation, moved.velocity);
    }
    scene.state.recount_turns(&scene.model);
    assert!(measure::joint_gap(&scene.model, &scene.state).distance < 1e-9);
    let scene = scene.follow(motion.clone()).unwrap();
    let followed: Vec<usize> = on.pairs.iter().map(|pair| scene.model.find_body(&pair.body).unwrap().index()).collect();
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    let steps = (motion.seconds() / input.dt) as usize;
    let (mut angle, mut fallbacks, mut gap) = (0.0, 0, 0f64);
    for _ in 0..steps {
        scene.direct(state.time, &mut input);
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        fallbacks += report.fallbacks;
        gap = gap.max(report.max_joint_gap);
        for &b in &followed {
            let wanted = motion.at(state.time, b).pose.rotation;
            angle += log(wanted * state.bodies[b].orientation.conjugate()).length() / (steps * followed.len()) as f64;
        }
    }
    let misfit = on.pairs.iter().map(|pair| pair.misfit).sum::<f64>() / on.pairs.len() as f64;
    Tracked { angle, misfit, pairs: on.pairs.len(), fallbacks, gap }
}

#[test]
fn walks_runs_and_leaps_are_followed() {
    let Some(assets) = assets() else { return };
    let robot = Scene::parse("robot").unwrap();
    let humanoid = open(&assets.join("mjcf/humanoid.xml")).unwrap().scene;
    let mannequin = open(&assets.join("gltf/mannequiny.glb")).unwrap().scene;
    for clip in ["cmu_02_01", "cmu_02_03", "cmu_16_01", "cmu_49_05", "cmu_05_06"] {
        for (name, scene) in [("robot", &robot), ("humanoid.xml", &humanoid), ("mannequiny.glb", &mannequin)] {
            let file = assets.join("bvh").join(clip).with_extension("bvh");
            let Tracked { angle, misfit, pairs, fallbacks, gap } = track(scene, &file);
            println!(
                "{clip} on {name}: {pairs} bodies, misfit {misfit:.3} rad, tracking {angle:.4} rad, {fallbacks} fallbacks, gap {gap:.1e} m"
            );
            assert!(pairs >= 11, "{clip} on {name}: {pairs}");
            assert!(angle < 0.03, "{clip} on {name}: {angle} rad");
            assert!(gap < 1e-9);
            // Frames of 1/60 s, none halved
            assert_eq!(fallbacks, 0, "{clip} on {name}");
        }
    }
}

#[test]
fn a_figure_in_free_flight_needs_no_wrench_at_its_root() {
    // The humanoid falls freely, its joints at rest: a motion that is possible without hands or ground.
    let Some(assets) = assets() else { return };
    let scene = open(&assets.join("mjcf/humanoid.xml")).unwrap().scene;
    let (mut state, mut input, mut work) = (scene.state.clone(), scene.input.clone(), Work::new(&scene.model));
    (input.dt, input.contacts) = (1.0 / 240.0, supple::Contacts::Off);
    for (k, body) in state.bodies.iter_mut().enumerate() {
        assert!(k < 100);
        body.velocity.linear = DVec3::new(0.3, 2.0, 0.1);
    }
    let mut poses = Vec::new();
    for _ in 0..120 {
        poses.extend(state.bodies.iter().map(|body| body.pose()));
        step(&scene.model, &input, &mut state, &mut work).unwrap();
    }
    let motion = supple::Motion::new("fall", 240.0, scene.model.bodies().len(), poses, supple::Ending::Hold).unwrap();
    let weight = scene.model.mass() * 9.81;
    let wrenches = residual(&scene.model, &motion, input.gravity);
    let worst = wrenches.iter().map(|w| w.force.length() / weight).fold(0f64, f64::max);
    println!("free flight: {worst:.1e} of the weight");
    assert!(worst < 1e-6, "{worst}");
    // Standing still it needs its whole weight.
    let still = supple::Motion::new(
        "still",
        240.0,
        scene.model.bodies().len(),
        motion.frame(0).repeat(10),
        supple::Ending::Hold,
    )
    .unwrap();
    let force = residual(&scene.model, &still, input.gravity)[5].force;
    assert!((force - DVec3::Y * weight).length() < 1e-9 * weight, "{force}");
}
