//! Posed, follow, loose, limp: from each to each, on characters made by others.

mod common;

use common::assets;
use std::path::Path;
use std::sync::Arc;
use supple::maths::rotation::log;
use supple::tone::{Change, Tone, Tones};
use supple::{Input, Model, Motion, Scene, State, Work, measure, step};
use supple_assets::open;

/// A scene being run with its tones.
struct Running {
    scene: Scene,
    tones: Tones,
    state: State,
    input: Input,
    work: Work,
}

impl Running {
    fn new(scene: Scene) -> Running {
        let (tones, state, input) = (scene.tones(), scene.state.clone(), scene.input.clone());
        let work = Work::new(&scene.model);
        Running { scene, tones, state, input, work }
    }

    fn change(&mut self, tone: Tone, blend: f64) {
        self.tones.change(&self.scene.model, &self.state, &Change::to(tone, blend)).unwrap();
    }

    fn step(&mut self) {
        self.scene.direct(self.state.time, &mut self.input);
        self.tones.direct(&self.scene.model, &self.state, &[], &mut self.input);
        if let Err(error) = step(&self.scene.model, &self.input, &mut self.state, &mut self.work) {
            panic!("{} at {}: {error}", self.scene.name, self.state.time);
        }
    }

    fn energy(&self) -> f64 {
        measure::energy(&self.scene.model, &self.input, &self.state).total()
    }

    /// The largest relative angular velocity of a joint [rad/s].
    fn joint_speed(&self) -> f64 {
        joint_speed(&self.scene.model, &self.state)
    }

    /// The largest velocities of a body [m/s, rad/s].
    fn speeds(&self) -> (f64, f64) {
        let speeds = self.state.bodies.iter().map(|b| (b.velocity.linear.length(), b.velocity.angular.length()));
        speeds.fold((0.0, 0.0), |a, b| (a.0.max(b.0), a.1.max(b.1)))
    }

    /// How far the bodies are from others at most [m, rad].
    fn apart(&self, other: &State) -> (f64, f64) {
        let one = |(a, b): (&supple::BodyState, &supple::BodyState)| {
            (a.position.distance(b.position), log(a.orientation * b.orientation.conjugate()).length())
        };
        self.state.bodies.iter().zip(&other.bodies).map(one).fold((0.0, 0.0), |a, b| (a.0.max(b.0), a.1.max(b.1)))
    }
}

fn joint_speed(model: &Model, state: &State) -> f64 {
    let turning = |body: supple::BodyId| state.bodies[body.index()].velocity.angular;
    let speed = |joint: &supple::Joint| (turning(joint.child) - joint.parent.map_or(glam::DVec3::ZERO, turning)).length();
    model.joints().iter().map(speed).fold(0.0, f64::max)
}

/// Numbers that look random and are always the same.
struct Random(u64);
impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a change from one tone to another came to.
#[derive(Debug)]
struct Changed {
    /// By how much the energy rose at most, of the weight over a metre.
    rise: f64,
    /// The fastest joint after the change, and before or in the clip [rad/s].
    speed: (f64, f64),
    /// Speeds 4 s later [m/s, rad/s].
    rest: (f64, f64),
    /// From the clip 1 s after the blend, and how far a run that never left it is then [m, rad].
    back: (f64, f64),
    fallbacks: u32,
}

fn changed(scene: &Scene, clip: &Arc<Motion>, from: Tone, to: Tone, at: f64) -> Changed {
    let blend = 0.5;
    let mut run = Running::new(scene.clone());
    let mut undisturbed = Running::new(scene.clone());
    let dt = run.input.dt;
    let fastest = (0..clip.frames())
        .map(|k| {
            let time = k as f64 / clip.rate();
            let mut state = scene.state.clone();
            for (b, body) in state.bodies.iter_mut().enumerate() {
                body.velocity = clip.at(time, b).velocity;
            }
            joint_speed(&scene.model, &state)
        })
        .fold(0.0, f64::max);
    let begin = (at / dt) as usize;
    for k in 0..begin {
        if k == begin / 2 && from != Tone::Follow {
            run.change(from, 0.2);
        }
        run.step();
        undisturbed.step();
    }
    let before = run.joint_speed().max(if to.is_carried() || from.is_carried() { fastest } else { 0.0 });
    let carried = to.is_carried();
    run.change(to, if carried { blend } else { 0.0 });
    let weight = scene.model.mass() * 9.81;
    let (mut rise, mut speed) = (0f64, 0f64);
    let mut energy = None;
    let steps = if carried { ((blend + 1.0) / dt).round() as usize } else { (4.0 / dt).round() as usize };
    let mut fallbacks = 0;
    for _ in 0..steps {
        run.step();
        if to == Tone::Follow {
            undisturbed.step();
        }
        let now = run.energy();
        if let Some(before) = energy.replace(now) {
            rise = rise.max((now - before) / weight);
        }
        speed = speed.max(run.joint_speed());
        fallbacks += 1;
    }
    Changed {
        rise,
        speed: (speed, before),
        rest: run.speeds(),
        back: if to == Tone::Follow { run.apart(&undisturbed.state) } else { (0.0, 0.0) },
        fallbacks,
    }
}

fn scenes(file: &Path) -> Vec<(Scene, Arc<Motion>)> {
    let Ok(imported) = open(file) else { return Vec::new() };
    let clips = imported.clips.iter();
    clips.filter_map(|clip| Some((imported.following(clip)?, clip.clone()))).collect()
}

#[test]
#[ignore]
fn look() {
    let Some(assets) = assets() else { return };
    let filter = std::env::var("FILE").unwrap_or("gltf/mannequiny.glb".into());
    let most: usize = std::env::var("CLIPS").ok().and_then(|x| x.parse().ok()).unwrap_or(1);
    let mut random = Random(7);
    for (scene, clip) in scenes(&assets.join(filter)).into_iter().take(most) {
        for from in Tone::ALL {
            for to in Tone::ALL {
                let at = 0.4 + 1.5 * random.next();
                let c = changed(&scene, &clip, from, to, at);
                println!(
                    "{} {:?}->{:?} at {at:.2}: rise {:.1e} speed {:.1} of {:.1} rest {:.3} {:.3} back {:.4} {:.3} {}",
                    scene.name.rsplit('/').next().unwrap(), from, to, c.rise, c.speed.0, c.speed.1, c.rest.0, c.rest.1, c.back.0, c.back.1, c.fallbacks
                );
            }
        }
    }
}
