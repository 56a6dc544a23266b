//! Commands that follow keyframes, and landing.

use super::super::recursion::{Given, Recursion, Singular};
use super::bounds::{BARELY, Told, allowed};
use super::{Asked, Direct, Dynamics, Role, give};
use crate::control::{Control, ControlReport};
use glam::DQuat;
use std::f64::consts::TAU;

impl Direct {
    /// The motion through the keyframes, mixed with the goals as far as its share is below 1.
    pub(super) fn follow(
        &mut self,
        asked: Asked<'_>,
        dynamics: &mut Dynamics<'_>,
        report: &mut ControlReport,
    ) -> Result<u32, Singular> {
        let share = asked.control().keyframes.share;
        let mut solves = 0;
        if share < 1.0 {
            solves += self.seek(asked, dynamics, report)?;
            let goals = dynamics.recursion.accelerations();
            self.command.iter_mut().zip(goals).for_each(|(x, goals)| *x = (1.0 - share) * goals);
        } else {
            self.command.fill(0.0);
        }
        self.add_keyframes(asked, share);
        for (i, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Actuator) {
            for rate in asked.coordinates.rate_range(i) {
                let (low, high) = allowed(asked, rate);
                let within = self.command[rate].clamp(low, high);
                report.limited += u32::from(within != self.command[rate]);
                self.command[rate] = within;
            }
        }
        self.levels = 0;
        report.limited += self.bound(asked, None);
        self.tell_all(Told::Acceleration);
        give(&self.roles, Given::Acceleration, &self.command, dynamics.recursion);
        Ok(solves + dynamics.factor_and_solve()?)
    }

    /// Adds the share of the accelerations that lead along the keyframes. With s the motion at the start of the part, s₋ and s₊ a part before and after, and v₋, v₊ the
    /// mean velocities between them, a joint that was on the motion stays on it to rounding; one that is off it comes back as a critically damped spring does:
    ///
    /// ```text
    /// q̈ = (v₊ − v₋)/h + (ω² (e + h ė) + 2ω ė)/(1 + 2ωh + ω²h²),    e = s − q,  ė = v₋ − q̇
    /// ```
    pub(super) fn add_keyframes(&mut self, asked: Asked<'_>, share: f64) {
        let keys = &asked.control().keyframes;
        let h = asked.h;
        let end = asked.state.time + asked.input.dt - asked.after;
        let stride = self.start.len();
        self.spline.lead(&keys.times, &keys.positions, stride, keys.ends);
        for (path, time) in self.path.iter_mut().zip([end - 2.0 * h, end - h, end]) {
            for (i, role) in self.roles.iter().enumerate() {
                if *role != Role::Actuator {
                    continue;
                }
                let range = asked.coordinates.position_range(i);
                for offset in range.clone() {
                    path[offset] = self.spline.at(offset, time)[0];
                }
                if self.masks[i].has_quaternion() {
                    normalise(&mut path[range.end - 4..range.end]);
                }
            }
        }
        let omega = keys.rate;
        let implicit = 1.0 + 2.0 * omega * h + (omega * h).powi(2);
        for (i, role) in self.roles.iter().enumerate() {
            if *role != Role::Actuator {
                continue;
            }
            let (at, rates) = (asked.coordinates.position_range(i), asked.coordinates.rate_range(i));
            let [before, now, later] = self.path.each_ref().map(|path| &path[at.clone()]);
            let (mut came, mut goes, mut off) = ([0.0; 6], [0.0; 6], [0.0; 6]);
            self.masks[i].difference(before, now, &mut came);
            self.masks[i].difference(now, later, &mut goes);
            self.masks[i].difference(&asked.coordinates.positions[at.clone()], now, &mut off);
            for (k, rate) in rates.enumerate() {
                let slower = came[k] / h - asked.coordinates.rates[rate];
                let back = omega * omega * (off[k] + h * slower) + 2.0 * omega * slower;
                self.command[rate] += share * ((goes[k] - came[k]) / (h * h) + back / implicit);
            }
        }
    }

    /// Limp but for springs to the pose, taken at the end of the part: `τ = −K (q + h q̇⁺ − q*) − C q̇⁺`. Where that is more than the actuator has, it has what it has. Its torques are then
    /// `own − brake q̈`, by rate.
    pub(super) fn land(&mut self, asked: Asked<'_>, dynamics: &mut Dynamics<'_>) -> Result<u32, Singular> {
        self.tell_all(Told::Limp);
        give(&self.roles, Given::Torque, &self.base, dynamics.recursion);
        for i in 0..self.roles.len() {
            if self.roles[i] != Role::Actuator {
                continue;
            }
            let off = self.off_pose(i, asked);
            for (k, rate) in asked.coordinates.rate_range(i).enumerate() {
                (self.own[rate], self.brake[rate]) = self.landing_spring(asked, rate, off[k]);
                dynamics.recursion.spring_joint(i, k, self.own[rate], self.brake[rate]);
            }
        }
        let mut solves = dynamics.factor_and_solve()?;
        // each round makes a spring a constant torque for good: it ends
        while self.hold_springs(asked, dynamics.recursion) {
            solves += dynamics.factor_and_solve()?;
        }
        Ok(solves)
    }

    /// Gives springs of the landing that need more torque than their actuators have that torque. Returns whether there are any.
    fn hold_springs(&mut self, asked: Asked<'_>, recursion: &mut Recursion) -> bool {
        let mut any = false;
        for rate in 0..self.own.len() {
            let (node, most) = (self.node_of_rate[rate], self.most_torque(asked, rate));
            let torque = self.own[rate] - self.brake[rate] * recursion.accelerations()[rate];
            if self.roles[node] == Role::Actuator && torque.abs() > most * (1.0 + BARELY) {
                let held = torque.clamp(-most, most);
                let k = rate - recursion.rates(node).start;
                recursion.spring_joint(node, k, held - self.own[rate], -self.brake[rate]);
                (self.own[rate], self.brake[rate]) = (held, 0.0);
                any = true;
            }
        }
        any
    }

    /// The spring of a rate that is `off` its pose: `force − implicit q̈`, force and implicit.
    fn landing_spring(&self, asked: Asked<'_>, rate: usize, off: f64) -> (f64, f64) {
        let Control { landing, .. } = asked.control();
        let (omega, inertia, now) = (TAU * landing.hertz, self.inertias[rate], asked.coordinates.rates[rate]);
        let (stiffness, damping) = (inertia * omega * omega, 2.0 * landing.ratio * inertia * omega);
        let force = stiffness * (off - asked.h * now) - damping * now;
        (force, asked.h * (damping + asked.h * stiffness))
    }

    /// The motion from where a node's joint is to the pose.
    pub(super) fn off_pose(&self, node: usize, asked: Asked<'_>) -> [f64; 6] {
        let at = asked.coordinates.position_range(node);
        let pose = if asked.control().pose.is_empty() { &self.start } else { &asked.control().pose };
        let mut off = [0.0; 6];
        self.masks[node].difference(&asked.coordinates.positions[at.clone()], &pose[at], &mut off);
        off
    }
}

fn normalise(quaternion: &mut [f64]) {
    DQuat::from_slice(quaternion).normalize().write_to_slice(quaternion);
}
