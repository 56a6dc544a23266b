//! Flesh as point masses in the recursion, explicitly [Kim 2008, §4.2, App. A.2]: strain and contact are forces of the present, velocities go first and
//! places follow with the new ones [symplectic Euler].
//!
//! A free node is a particle on the bone nearest to it (`particles.rs`): its joint coordinates are its place r and velocity ṙ in the bone's axes, its
//! damper `τ = −γ m ṙ` acts back on the bone. A fixed node hands its forces on to its bone. A node that refers to the ground moves by itself.

use super::particles::Particle;
use super::recursion::Recursion;
use crate::flesh::material::Diagonalize;
use crate::flesh::touch::{Side, Touches};
use crate::flesh::{Flesh, Settled};
use crate::input::Input;
use crate::maths::Wrench;
use crate::maths::rotation::turned_inertia;
use crate::model::{BodyId, Model, State};
use glam::{DMat3, DVec3};

/// Scratch of explicit flesh.
pub(super) struct Soft {
    /// By free node; those of nodes that refer to the ground are not used.
    particles: Vec<Particle>,
    /// All nodes, and the forces on them.
    nodes: Vec<DVec3>,
    forces: Vec<DVec3>,
    touches: Touches,
    /// Longest part that symplectic Euler takes \[s\].
    pub(super) longest: f64,
    settled: Settled,
}

/// Share of the bound that is used: it is that of small strains. A stretch may double the stiffness, and strains that come and go feed on what is left: a block
/// stretched to the end of the range, without dampers, gains energy with 0.6 of the bound and does not with 0.5.
const MARGIN: f64 = 0.45;

impl Soft {
    pub(super) fn new(model: &Model, flesh: &Flesh) -> Soft {
        let unused = Particle {
            body: BodyId(0),
            mass: 1.0,
            position: DVec3::ZERO,
            velocity: DVec3::ZERO,
            pull: DVec3::ZERO,
            force: DVec3::ZERO,
        };
        Soft {
            particles: vec![unused; flesh.free],
            nodes: flesh.start.clone(),
            forces: vec![DVec3::ZERO; flesh.start.len()],
            touches: Touches::new(flesh),
            longest: MARGIN * longest(model, flesh),
            settled: Settled::default(),
        }
    }

    /// Hangs the nodes on their bones, with what acts on them. The recursion is placed at `state`.
    pub(super) fn hang(
        &mut self,
        model: &Model,
        input: &Input,
        diagonalize: Diagonalize,
        part: (f64, f64),
        state: &State,
        recursion: &mut Recursion,
    ) {
        let Some(flesh) = model.flesh() else { return };
        flesh.positions(state, &mut self.nodes);
        self.forces.fill(DVec3::ZERO);
        let outside = flesh.add_elastic_forces(&self.nodes, diagonalize, &mut self.forces);
        self.settled = Settled { converged: true, outside: outside as u32, ..Settled::default() };
        self.touch(model, flesh, input, part, state, recursion);
        for (i, particle) in self.particles.iter_mut().enumerate() {
            let Some(bone) = flesh.bones[i] else { continue };
            let body = &state.bodies[bone.index()];
            let back = body.orientation.conjugate();
            let (lever, mass) = (self.nodes[i] - body.position, flesh.masses[i]);
            let velocity = back * (state.nodes[i].velocity - body.velocity.at(lever));
            *particle = Particle {
                body: bone,
                mass,
                position: back * lever,
                velocity,
                pull: velocity * (-flesh.material.damping * mass),
                force: back * self.forces[i],
            };
            recursion.hang(particle);
        }
        for i in flesh.free..flesh.start.len() {
            let Some(bone) = flesh.bones[i] else { continue };
            let lever = self.nodes[i] - state.bodies[bone.index()].position;
            recursion.push(bone, Wrench::at(lever, self.forces[i]));
        }
    }

    /// Contact forces on nodes and on the bodies they touch: `N = max(0, k d − c v_n)`, friction against the slip, at most μ N.
    fn touch(
        &mut self,
        model: &Model,
        flesh: &Flesh,
        input: &Input,
        part: (f64, f64),
        state: &State,
        recursion: &mut Recursion,
    ) {
        self.touches.find(model, flesh, input, state, part, &self.nodes);
        let pose = |body: BodyId| state.bodies[body.index()].pose();
        let node_velocity = |i: usize, at: DVec3| match (state.nodes.get(i), flesh.bones[i]) {
            (Some(node), _) => node.velocity,
            (None, Some(bone)) => {
                let body = &state.bodies[bone.index()];
                body.velocity.at(at - body.position)
            }
            (None, None) => DVec3::ZERO,
        };
        for touch in &self.touches.all {
            // velocity of the vertex against what it touches, and how light both are
            let (mut slip, mut light) = (DVec3::ZERO, 0.0);
            touch.shares(
                |vertex, share| {
                    for (i, w) in flesh.elements[vertex.tet as usize].nodes.iter().zip(vertex.weights) {
                        let i = *i as usize;
                        slip += node_velocity(i, self.nodes[i]) * (w * share);
                        light += (w * share).powi(2) / flesh.masses[i];
                    }
                },
                flesh,
            );
            match touch.side {
                Side::Obstacle => slip -= self.touches.obstacle_velocity(touch),
                Side::Body(body) => {
                    let s = &state.bodies[body.index()];
                    slip -= s.velocity.at(touch.place(flesh, &self.nodes) - s.position);
                }
                Side::Own(..) => {}
            }
            let found = self.touches.explicit(touch, flesh, &self.nodes, (slip, 1.0 / light), &pose);
            let Some((at, force)) = found else { continue };
            self.settled.touching += 1;
            touch.shares(
                |vertex, share| {
                    for (i, w) in flesh.elements[vertex.tet as usize].nodes.iter().zip(vertex.weights) {
                        self.forces[*i as usize] += force * (w * share);
                    }
                },
                flesh,
            );
            if let Side::Body(body) = touch.side {
                recursion.push(body, Wrench::at(at - state.bodies[body.index()].position, -force));
            }
        }
    }

    /// `ṙ + h r̈` of each particle with what the recursion found, and the nodes that refer to the ground.
    pub(super) fn accelerate(
        &mut self,
        flesh: &Flesh,
        h: f64,
        gravity: DVec3,
        recursion: &Recursion,
        state: &mut State,
    ) {
        for (i, particle) in self.particles.iter_mut().enumerate() {
            match flesh.bones[i] {
                Some(_) => particle.velocity += recursion.particle_acceleration(particle) * h,
                None => {
                    let node = &mut state.nodes[i];
                    let damping = node.velocity * -flesh.material.damping;
                    node.velocity += (self.forces[i] / flesh.masses[i] + damping + gravity) * h;
                }
            }
        }
    }

    /// `r + h ṙ`, carried by the bones at the end of the part.
    pub(super) fn write(&mut self, flesh: &Flesh, h: f64, state: &mut State) {
        for (i, particle) in self.particles.iter_mut().enumerate() {
            let Some(bone) = flesh.bones[i] else {
                let node = &mut state.nodes[i];
                node.position += node.velocity * h;
                continue;
            };
            particle.position += particle.velocity * h;
            let body = state.bodies[bone.index()];
            let lever = body.orientation * particle.position;
            state.nodes[i].position = body.position + lever;
            state.nodes[i].velocity = body.velocity.at(lever) + body.orientation * particle.velocity;
        }
    }

    /// What the last part counted.
    pub(super) fn settled(&self) -> Settled {
        self.settled
    }
}

/// The longest stable part: that of the largest frequency ω of flesh at rest with its bones free of their joints, which joints only lower. ω² is the largest
/// eigenvalue of `M⁻¹ K`, found by the power method: `x ← M⁻¹ K x`, `ω² ≥ y·M⁻¹y / x·y` with `y = K x`.
fn longest(model: &Model, flesh: &Flesh) -> f64 {
    // any start that has something of all motions, the same in every run
    let number = |i: usize, k: usize| ((i * 3 + k) as f64 * 12.9898).sin();
    let mut x: Vec<DVec3> =
        (0..flesh.start.len()).map(|i| DVec3::new(number(i, 0), number(i, 1), number(i, 2))).collect();
    let mut y = x.clone();
    let mut wrenches = vec![Wrench::ZERO; model.bodies().len()];
    let mut squared: f64 = 0.0;
    for _ in 0..POWERS {
        stiffness_times(flesh, &x, &mut y);
        // M⁻¹ y: free nodes alone, the others as their bones move
        let along: f64 = x.iter().zip(&y).map(|(x, y)| x.dot(*y)).sum();
        wrenches.fill(Wrench::ZERO);
        for i in flesh.free..flesh.start.len() {
            let Some(bone) = flesh.bones[i] else { continue };
            wrenches[bone.index()] += Wrench::at(flesh.start[i] - model.body(bone).start.translation, y[i]);
        }
        for (i, x) in x.iter_mut().enumerate() {
            *x = match flesh.bones[i] {
                _ if i < flesh.free => y[i] / flesh.masses[i],
                None => DVec3::ZERO,
                Some(bone) => {
                    let (body, wrench) = (model.body(bone), wrenches[bone.index()]);
                    let inertia = turned_inertia(body.start.rotation, body.inertia);
                    let turn = inertia.inverse() * wrench.torque;
                    wrench.force / body.mass + turn.cross(flesh.start[i] - body.start.translation)
                }
            };
        }
        // fixed nodes of one bone: the work of their forces is that of the wrench on it
        let power: f64 = x.iter().zip(&y).map(|(x, y)| x.dot(*y)).sum();
        let size = x.iter().map(|x| x.abs().max_element()).fold(0.0, f64::max);
        if !(along > 0.0 && size > 0.0) {
            break;
        }
        squared = squared.max(power / along);
        x.iter_mut().for_each(|x| *x /= size);
    }
    stable_part((NOT_QUITE * squared).sqrt(), flesh.material.damping)
}

/// Passes of the power method.
const POWERS: usize = 60;
/// What it may be short of the eigenvalue after them.
const NOT_QUITE: f64 = 1.1;

/// `y = K x`, K the stiffness of the elements at rest: `dP = λ tr(dF) 1 + μ (dF + dFᵀ)`.
fn stiffness_times(flesh: &Flesh, x: &[DVec3], y: &mut [DVec3]) {
    y.fill(DVec3::ZERO);
    for element in &flesh.elements {
        let f = element.gradient(x);
        let trace = f.x_axis.x + f.y_axis.y + f.z_axis.z;
        let stress =
            (f + f.transpose()) * flesh.lame.mu + DMat3::from_diagonal(DVec3::splat(flesh.lame.lambda * trace));
        for (i, force) in element.nodes.iter().zip(element.forces(stress)) {
            y[*i as usize] -= force;
        }
    }
}

/// The longest part in which the explicit rule `v ← v − h (ω² x + γ v)`, `x ← x + h v` is stable: `h² ω² = 4 − 2γh`.
fn stable_part(omega: f64, damping: f64) -> f64 {
    // the root without a difference of large numbers
    4.0 / (damping + (damping * damping + 4.0 * omega * omega).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_is_that_of_the_rule() {
        // the oracle of a damped oscillator
        let all: serde_json::Value = serde_json::from_str(include_str!("../../../tests/data/flesh.json")).unwrap();
        for case in all["O9_damper"]["cases"].as_array().unwrap() {
            let number = |name: &str| case[name].as_f64().unwrap();
            let (omega, damping) = (number("w"), number("gam"));
            let h = stable_part(omega, damping);
            assert!((h / number("hmax_explicit") - 1.0).abs() < 1e-12, "{h}");
            // the rule itself, a little below and above
            for (share, bounded) in [(0.999, true), (1.001, false)] {
                let (mut x, mut v, h) = (1.0f64, 0.0, share * h);
                for _ in 0..100_000 {
                    v -= h * (omega * omega * x + damping * v);
                    x += h * v;
                    x = x.clamp(-1e9, 1e9);
                }
                assert_eq!(x.abs() < 1.0, bounded, "{share}: {x}");
            }
        }
    }
}
