//! Random drags by the character's own actuators: any bone, any style, goals that contradict one another, far targets that leap.

#![allow(dead_code, unreachable_pub)] // the test and the example use a part each

use glam::{DQuat, DVec3};
use supple::control::{Aim, Gains, Goal, Level, Mode, Style};
use supple::{BodyId, Input, Reduced, Scene, Solver, Work, step};

/// What became of a drag.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Largest force along a passive root \[N, N·m\].
    pub root_wrench: f64,
    /// Fastest body \[m/s\], and fastest turn \[rad/s\].
    pub speed: f64,
    pub spin: f64,
    /// Largest torque of an actuator \[N·m\].
    pub torque: f64,
}

/// A bound on every actuator \[N·m\].
pub const MOST_TORQUE: f64 = 200.0;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
    fn vector(&mut self, size: f64) -> DVec3 {
        DVec3::new(self.unit() - 0.5, self.unit() - 0.5, self.unit() - 0.5) * 2.0 * size
    }
}

/// Drags a character for `steps` steps of `dt`, with goals that change twice. The error says what went wrong.
pub fn drag(scene: &Scene, seed: u64, dt: f64, steps: usize) -> Result<Outcome, String> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let model = &scene.model;
    let (mut state, mut work) = (scene.state.clone(), Work::new(model));
    let mut input = Input { dt, solver: Solver::Reduced(Reduced::default()), ..Input::default() };
    input.contacts = scene.input.contacts;
    if random.unit() < 0.3 {
        input.gravity = DVec3::ZERO;
    }
    (0..model.joints().len()).for_each(|k| input.control.joint_mut(model, k).max_torque = MOST_TORQUE);
    input.control.mode = Mode::Goals;
    let mut told = Outcome::default();
    for n in 0..steps {
        if n % (steps / 3 + 1) == 0 {
            input.control.style = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity][random.below(3)];
            input.control.goals.clear();
            for _ in 0..1 + random.below(4) {
                let body = BodyId(random.below(model.bodies().len()) as u32);
                let place = state.bodies[body.index()].position;
                let aim = match random.below(5) {
                    0 => Aim::Height(place.y + random.vector(0.5).y),
                    1 => {
                        Aim::Orientation { target: DQuat::from_scaled_axis(random.vector(3.0)), velocity: DVec3::ZERO }
                    }
                    2 => Aim::Velocity(random.vector(2.0)),
                    _ => Aim::Position { target: place + random.vector(1.0), velocity: random.vector(1.0) },
                };
                let level = Level::ALL[random.below(3)];
                input.control.goals.push(Goal::new(body, random.vector(0.1), aim, level));
            }
        }
        let report = step(model, &input, &mut state, &mut work).map_err(|e| format!("seed {seed}, step {n}: {e}"))?;
        told.root_wrench = told.root_wrench.max(report.control.root_wrench);
        told.torque = told.torque.max(report.control.max_torque);
        for body in &state.bodies {
            told.speed = told.speed.max(body.velocity.linear.length());
            told.spin = told.spin.max(body.velocity.angular.length());
        }
    }
    Ok(told)
}

/// A speed that no body can have while no joint turns faster than the control tells it to \[m/s\]: all on its way to the root turn at their largest rate about three axes, the same way. What falls
/// for a second is in it.
pub fn most_speed(scene: &Scene) -> f64 {
    let (model, place) = (&scene.model, |body: BodyId| scene.state.bodies[body.index()].position);
    let reach = (0..model.bodies().len() as u32).map(|k| {
        let (mut at, mut sum) = (BodyId(k), 0.0);
        let above = |at: BodyId| model.joints().iter().find(|joint| joint.child == at).and_then(|joint| joint.parent);
        while let Some(parent) = above(at) {
            sum += place(BodyId(k)).distance(place(parent));
            at = parent;
        }
        sum
    });
    9.81 + 3f64.sqrt() * Gains::default().most_rate * reach.fold(0.0, f64::max)
}
