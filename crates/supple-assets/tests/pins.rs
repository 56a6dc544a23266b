//! Pins by rows: a body of a character is held where it is to be, exactly, whatever else it does; and where two pins contradict each other nothing is thrown
//! across the room.

mod common;
#[path = "common/running.rs"]
mod running;

use common::assets;
use glam::DVec3;
use running::Running;
use supple::maths::rotation::log;
use supple::tone::{Change, Tone};
use supple::{BodyId, Grip};
use supple_assets::open;

fn limp(file: &str) -> Option<Running> {
    let scene = open(&assets()?.join(file)).unwrap().scene;
    let mut run = Running::new(scene);
    run.tones.change(&run.scene.model, &run.state, &Change::to(Tone::Limp, 0.1)).unwrap();
    Some(run)
}

/// The two bodies that are farthest apart: the hands of a figure with its arms spread.
fn ends(run: &Running) -> [usize; 2] {
    let bodies = &run.state.bodies;
    let pairs = (0..bodies.len()).flat_map(|a| (0..a).map(move |b| [a, b]));
    let apart = |[a, b]: &[usize; 2]| bodies[*a].position.distance(bodies[*b].position);
    pairs.max_by(|x, y| apart(x).total_cmp(&apart(y))).unwrap()
}

fn grip(run: &Running, body: usize, turned: bool) -> Grip {
    let state = &run.state.bodies[body];
    let rotation = turned.then_some(state.orientation);
    Grip { body: BodyId(body as u32), point: DVec3::ZERO, target: state.position, rotation }
}

#[test]
fn what_is_pinned_stays_where_it_is_to_rounding() {
    for turned in [false, true] {
        let Some(mut run) = limp("gltf/CesiumMan.glb") else { return };
        let [hand, _] = ends(&run);
        let pin = grip(&run, hand, turned);
        run.input.grips = vec![pin];
        let (mut off, mut askew, mut turns) = (0f64, 0f64, 0f64);
        for _ in 0..180 {
            run.step();
            let now = &run.state.bodies[hand];
            off = off.max(now.position.distance(pin.target));
            let turn = log(now.orientation * grip_rotation(&run, hand, pin).conjugate()).length();
            (askew, turns) = if turned { (askew.max(turn), turns) } else { (askew, turns.max(turn)) };
        }
        println!("turned {turned}: {off:.1e} m, {askew:.1e} rad");
        assert!(off < 1e-6 && askew < 1e-6, "{off} m, {askew} rad");
        // By its place alone it hangs and turns.
        assert!(turned || turns > 0.3, "{turns} rad");
    }
}

fn grip_rotation(run: &Running, body: usize, pin: Grip) -> glam::DQuat {
    pin.rotation.unwrap_or(run.scene.state.bodies[body].orientation)
}

/// Two hands pinned, and one pin led away further than arms reach, as the studio leads it: from where the hand is, at a bounded speed.
#[test]
fn pins_out_of_reach_throw_nothing_about() {
    let Some(mut run) = limp("gltf/CesiumMan.glb") else { return };
    let [left, right] = ends(&run);
    let size = run.scene.model.size();
    let (mut pins, dt) = ([grip(&run, left, false), grip(&run, right, false)], run.input.dt);
    let away = pins[0].target + (pins[0].target - pins[1].target).normalize() * size;
    let (mut fastest, mut off) = (0f64, 0f64);
    for k in 0..240 {
        if k > 60 {
            let here = run.state.bodies[left].position;
            pins[0].target = here + (away - here).clamp_length_max(size * dt);
        }
        run.input.grips = pins.to_vec();
        run.step();
        fastest = run.state.bodies.iter().map(|b| b.velocity.linear.length()).fold(fastest, f64::max);
        if k < 60 {
            off = off.max(run.state.bodies[left].position.distance(pins[0].target));
        }
    }
    println!("{fastest:.2} m/s at most, {off:.1e} m off while they can be reached");
    assert!(off < 1e-6, "{off}");
    assert!(fastest < 10.0 * size, "{fastest} m/s");
}
