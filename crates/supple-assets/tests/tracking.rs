//! A character that follows a clip of its file, and is pushed.

use std::path::Path;
use supple::glam::DVec3;
use supple::{Motion, Scene, State, Work, Wrench, step};
use supple_assets::{Imported, open};

fn mannequin() -> Option<Imported> {
    let Ok(folder) = std::env::var("SUPPLE_ASSETS") else {
        eprintln!("SUPPLE_ASSETS is not set: SKIPPED");
        return None;
    };
    Some(open(&Path::new(&folder).join("gltf/mannequiny.glb")).unwrap())
}

/// Mean distance of the bodies from the clip \[m\] and mean angle \[degrees\] at a state.
fn off(clip: &Motion, state: &State) -> (f64, f64) {
    let n = state.bodies.len() as f64;
    let (mut distance, mut angle) = (0.0, 0.0);
    for (i, body) in state.bodies.iter().enumerate() {
        let wanted = clip.at(state.time, i).pose;
        distance += body.position.distance(wanted.translation) / n;
        angle += body.orientation.angle_between(wanted.rotation).to_degrees() / n;
    }
    (distance, angle)
}

/// Runs from the scene's start; `each` sees every state after its step, and pushes before it.
fn run(scene: &Scene, seconds: f64, push: impl Fn(f64) -> DVec3, body: usize, mut each: impl FnMut(&State)) {
    let (mut state, _) = scene.assembled_start().unwrap();
    let (mut input, mut work) = (scene.input.clone(), Work::new(&scene.model));
    while state.time < seconds - 1e-9 {
        scene.direct(state.time, &mut input);
        let bodies = scene.model.bodies().len();
        input.wrenches.truncate(bodies);
        let force = push(state.time);
        input.wrenches.push((supple::BodyId(body as u32), Wrench::new(force, DVec3::ZERO)));
        let report = step(&scene.model, &input, &mut state, &mut work).unwrap();
        // What a step with contacts leaves of a joint; without, it is rounding.
        assert!(report.max_joint_gap < 1e-8, "{}", report.max_joint_gap);
        each(&state);
    }
}

#[test]
fn every_clip_is_followed_within_3_cm_and_5_degrees() {
    let Some(imported) = mannequin() else { return };
    assert_eq!(imported.clips.len(), 10);
    for clip in &imported.clips {
        let scene = imported.following(clip).unwrap();
        let (mut distance, mut angle, mut steps) = (0.0, 0.0, 0.0);
        run(
            &scene,
            4.0,
            |_| DVec3::ZERO,
            0,
            |state| {
                let (d, a) = off(clip, state);
                (distance, angle, steps) = (distance + d, angle + a, steps + 1.0);
            },
        );
        let (distance, angle) = (distance / steps, angle / steps);
        eprintln!("{}: {:.1} mm, {angle:.2}°", clip.name(), 1e3 * distance);
        assert!(distance < 0.03 && angle < 5.0, "{}: {distance} m, {angle}°", clip.name());
    }
}

#[test]
fn a_push_moves_it_and_it_comes_back() {
    let Some(imported) = mannequin() else { return };
    let clip = imported.clip("idle_root.001").unwrap();
    let scene = imported.following(clip).unwrap();
    let chest = scene.model.find_body("spine_02").unwrap().index();
    // 46 N·s over a tenth of a second on 71 kg, from 1 s on, sideways.
    let push = |time: f64| if (1.0..1.0999).contains(&time) { DVec3::new(460.0, 0.0, 0.0) } else { DVec3::ZERO };
    let (mut furthest, mut back) = (0.0f64, f64::NAN);
    run(&scene, 3.1, push, chest, |state| {
        let d = state.bodies[chest].position.distance(clip.at(state.time, chest).pose.translation);
        furthest = furthest.max(d);
        back = d;
    });
    eprintln!("moved {:.1} cm, {:.2} cm left after 2 s", 1e2 * furthest, 1e2 * back);
    assert!(furthest > 0.05 && back < 0.005, "{furthest} m, then {back} m");
}
