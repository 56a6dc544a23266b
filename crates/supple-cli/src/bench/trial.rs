//! A run that is watched frame by frame: what the robustness benches share.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use supple::glam::DVec3;
use supple::{Input, Scene, Solver, State, Tree, TreeScheme, Work, measure, step};

/// Length of a link of `chain` and `whip` \[m\].
pub(super) const LINK: f64 = 0.1;

/// Solver `tree` with this scheme on one thread.
pub(super) fn solver(scheme: TreeScheme) -> Solver {
    Solver::Tree(Tree { scheme, ..Tree::default() })
}

/// How a scene is run.
pub(super) struct Trial<'a> {
    pub(super) scene: &'a Scene,
    pub(super) scheme: TreeScheme,
    /// \[s\]
    pub(super) dt: f64,
    pub(super) frames: usize,
}

/// What was counted over the frames of a run.
#[derive(Debug)]
pub(super) struct Counts {
    /// Every frame was done, and every number was finite.
    pub(super) sound: bool,
    /// Over the frames \[m\].
    pub(super) max_joint_gap: f64,
    pub(super) substeps: u64,
    pub(super) factorisations: u64,
    /// Most in one frame.
    pub(super) factorisations_max: u32,
    pub(super) resorts: u64,
    /// Passes over contacts, and the most in one frame.
    pub(super) iterations: u64,
    pub(super) iterations_max: u32,
    /// Frames in which contacts did not settle to tolerance.
    pub(super) unconverged_steps: u64,
    /// Over the frames \[m\].
    pub(super) max_penetration: f64,
    times: Vec<Duration>,
}

impl Counts {
    /// Of a count, over the frames done; NaN without any.
    pub(super) fn mean(&self, count: u64) -> f64 {
        count as f64 / self.times.len() as f64
    }

    /// The median time of a step \[µs\].
    pub(super) fn us_per_frame(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(f64::NAN, |time| 1e6 * time.as_secs_f64())
    }
}

impl Trial<'_> {
    /// Runs the scene as its script says; `look` sees every frame and may end the run.
    pub(super) fn watch(&self, look: impl FnMut(&Input, &State) -> ControlFlow<()>) -> Counts {
        self.watch_directed(|_, _| {}, look)
    }

    /// The same; `direct` adds to what the script sets for the step that starts at a time.
    pub(super) fn watch_directed(
        &self,
        mut direct: impl FnMut(f64, &mut Input),
        mut look: impl FnMut(&Input, &State) -> ControlFlow<()>,
    ) -> Counts {
        let Trial { scene, scheme, dt, frames } = *self;
        let model = &scene.model;
        let mut input = Input { dt, solver: solver(scheme), ..scene.input.clone() };
        let (mut state, mut work) = (scene.state.clone(), Work::new(model));
        let mut counts = Counts {
            sound: true,
            max_joint_gap: 0.0,
            substeps: 0,
            factorisations: 0,
            factorisations_max: 0,
            resorts: 0,
            iterations: 0,
            iterations_max: 0,
            unconverged_steps: 0,
            max_penetration: 0.0,
            times: Vec::with_capacity(frames),
        };
        for _ in 0..frames {
            scene.direct(state.time, &mut input);
            direct(state.time, &mut input);
            let start = Instant::now();
            let result = step(model, &input, &mut state, &mut work);
            let time = start.elapsed();
            let Ok(done) = result else {
                counts.sound = false;
                break;
            };
            counts.times.push(time);
            counts.max_joint_gap = counts.max_joint_gap.max(done.max_joint_gap);
            counts.substeps += u64::from(done.substeps);
            counts.factorisations += u64::from(done.factorisations);
            counts.factorisations_max = counts.factorisations_max.max(done.factorisations);
            counts.resorts += u64::from(done.resorts);
            counts.iterations += u64::from(done.iterations);
            counts.iterations_max = counts.iterations_max.max(done.iterations);
            counts.unconverged_steps += u64::from(done.unconverged > 0);
            counts.max_penetration = counts.max_penetration.max(done.max_penetration);
            counts.sound = done.max_joint_gap.is_finite() && state.is_finite();
            if !counts.sound || look(&input, &state).is_break() {
                break;
            }
        }
        counts
    }
}

/// The energy of a run beyond that of its start and the work of its motors.
pub(super) struct Excess<'a> {
    scene: &'a Scene,
    first: f64,
    /// m g over the size of the scene, and the energy of motion at the start \[J\].
    scale: f64,
    /// Of the motors so far \[J\].
    work: f64,
    last: State,
    /// The most so far, as a share of the scale.
    pub(super) most: f64,
}

impl Excess<'_> {
    pub(super) fn new(scene: &Scene) -> Excess<'_> {
        let Scene { model, input, state, .. } = scene;
        let positions = || state.bodies.iter().map(|body| body.position);
        let low = positions().fold(DVec3::INFINITY, DVec3::min);
        let high = positions().fold(DVec3::NEG_INFINITY, DVec3::max);
        // The box around the centres of mass, and the edge of a cube of water that weighs as much.
        let size = low.distance(high) + (model.mass() / 1000.0).cbrt();
        Excess {
            scene,
            first: measure::energy(model, input, state).total(),
            scale: model.mass() * input.gravity.length() * size + measure::kinetic_energy(model, state),
            work: 0.0,
            last: state.clone(),
            most: 0.0,
        }
    }

    /// Takes in the state after a step of `input`. No obstacle may move: its work is not known here.
    pub(super) fn look(&mut self, input: &Input, state: &State) {
        self.work += measure::motor_work(&self.scene.model, input, &self.last, state);
        self.last.clone_from(state);
        let energy = measure::energy(&self.scene.model, input, state).total();
        self.most = self.most.max((energy - self.first - self.work) / self.scale);
    }
}

/// Energies of a chain that falls from horizontal, as shares of what is released until it hangs.
pub(super) struct Fall<'a> {
    scene: &'a Scene,
    first: f64,
    released: f64,
}

impl Fall<'_> {
    /// Of a scene whose bodies lie along +X from the joint to the world.
    pub(super) fn new(scene: &Scene) -> Fall<'_> {
        let gravity = scene.input.gravity.length();
        let bodies = scene.model.bodies().iter().zip(&scene.state.bodies);
        // Each centre of mass comes to hang as far below the origin as it lay beside it.
        let released = bodies.map(|(body, state)| body.mass * gravity * state.position.x).sum();
        Fall { scene, first: measure::energy(&scene.model, &scene.input, &scene.state).total(), released }
    }

    /// How much more energy than at the start a state has.
    pub(super) fn gain(&self, input: &Input, state: &State) -> f64 {
        (measure::energy(&self.scene.model, input, state).total() - self.first) / self.released
    }
}

/// The far end of the last link of a chain.
pub(super) fn tip(state: &State) -> DVec3 {
    let link = state.bodies.last().expect("a chain has links");
    link.position + link.orientation * DVec3::new(0.5 * LINK, 0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pendulum_releases_its_height() {
        let scene = Scene::parse("chain:1").unwrap();
        let fall = Fall::new(&scene);
        // 0.1 kg, its centre 0.05 m from the joint: rounding alone
        assert!((fall.released - 0.1 * 9.81 * 0.05).abs() < 1e-15);
        assert_eq!(fall.gain(&scene.input, &scene.state), 0.0);
        assert!((tip(&scene.state) - DVec3::X * LINK).length() < 1e-15);
    }
}
