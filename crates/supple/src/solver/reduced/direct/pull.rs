//! Torques of least torque at the end of the part.
//!
//! In least torque a goal acts as a pull on its bone would: the torques are `Jᵀ f`. Each bone on the way to the root passes the pull on, over the vector ℓ from its own joint to the next one (to the
//! point that is pulled, of the last), and is turned into its direction as a pendulum is by gravity, with a stiffness of `|f| |ℓ|` at most. Pulled beyond its reach a limb is straight and the
//! pull is large: light bones would swing in it faster than steps are long, and torques of the start of the part turn them round by more than they were off. So torques are those of the end of
//! the part, as far as the stiffness is more than the inertia of the bone stands in a step:
//!
//! ```text
//! τ_j − D_j (h q̇ + h² q̈),     D_j = R_j (Σ R_j/R_k + n),     R_j = Σ max(0, |f| |ℓ| − s I/h²)                                         (1)
//! ```
//! R_j sums over the bones from the joint j to the pull; Σ over the joints k from j to the root, and n counts those from j to the pull. The joints' stiffnesses are `K_jk ≤ R` of the one nearer to the
//! pull, and `D ≥ K` since `Σ_k K_jk R_j/R_k ≤ D_j` [Gershgorin's discs, scaled]: no joint is turned beyond where the pull leads it, however many turn at once. Where nothing moves (1)
//! does nothing, and neither where steps are short enough.

use super::super::recursion::{Recursion, Singular};
use super::bounds::share_within;
use super::{Asked, Direct, Dynamics, Place, Role};
use glam::{DMat3, DVec3};

/// The stiffness that a bone stands over a step, `h² k/I`. At 4 it would be turned round by as much as it was off.
const STANDS: f64 = 1.0;

impl Direct {
    /// Changes the torques commanded to those of the end of the part. Levels before the last one lose nothing by it of what they reach. Returns the number of right-hand sides solved.
    pub(super) fn pull_till_the_end(&mut self, asked: Asked<'_>, dynamics: &mut Dynamics<'_>) -> Result<u32, Singular> {
        self.measure_stiffness(asked, dynamics.recursion);
        if self.stiffness.iter().all(|k| *k == 0.0) {
            return Ok(0);
        }
        let (h, rates) = (asked.h, &asked.coordinates.rates);
        let load = |of: &Direct, sign: f64, recursion: &mut Recursion| {
            for (rate, now) in rates.iter().enumerate().filter(|(rate, _)| of.stiffness[*rate] > 0.0) {
                let (node, k) = (of.node_of_rate[rate], sign * of.stiffness[rate]);
                recursion.spring_joint(node, rate - recursion.rates(node).start, -h * k * now, h * h * k);
            }
        };
        self.give_torques(dynamics.recursion);
        load(self, 1.0, dynamics.recursion);
        let solves = dynamics.factor_and_solve()?;
        load(self, -1.0, dynamics.recursion);
        self.back.clear();
        for (&rate, ease) in self.columns.iter().zip(&self.ease) {
            let then = rates[rate] + h * dynamics.recursion.accelerations()[rate];
            self.back.push(-h * self.stiffness[rate] * then / ease);
        }
        let mut share = 1.0f64;
        let has_levels_before = self.hierarchy.spare(&mut self.back);
        let Direct { columns, ease, back, command, low, high, .. } = self;
        let all = || columns.iter().zip(&*ease).zip(&*back).map(|((&rate, ease), back)| (rate, ease * back));
        if has_levels_before {
            for (rate, back) in all() {
                let sum = command[rate] + back;
                share = share.min(share_within(command[rate], sum, sum.clamp(low[rate], high[rate])));
            }
        }
        for (rate, back) in all() {
            command[rate] = (command[rate] + share * back).clamp(low[rate], high[rate]);
        }
        Ok(solves)
    }

    /// D by rate, of the goals as they are solved.
    fn measure_stiffness(&mut self, asked: Asked<'_>, recursion: &Recursion) {
        let nodes = &asked.model.topology().nodes;
        self.stiffness.fill(0.0);
        for (number, goal) in asked.control().goals.iter().enumerate() {
            let force = self.pull_of(number).length();
            let body = &asked.state.bodies[goal.body.index()];
            let mut end = body.position + body.orientation * goal.point;
            // R_j and n, from the pull to the root
            let (mut sum, mut count) = (0.0, 0.0);
            let mut node = Some(recursion.node_of(goal.body));
            while let Some(i) = node {
                let place = recursion.joint_place(i);
                let stands = STANDS * mean_inertia(asked.model.body(self.bodies[i]).inertia) / (asked.h * asked.h);
                sum += (force * end.distance(place) - stands).max(0.0);
                (self.passed_on[i], self.passed_by[i]) = (sum, count);
                if sum > 0.0 {
                    count += 1.0;
                }
                (end, node) = (place, nodes[i].parent.checked_sub(1));
            }
            let mut node = Some(recursion.node_of(goal.body));
            while let Some(i) = node {
                let own = self.passed_on[i];
                node = nodes[i].parent.checked_sub(1);
                if own == 0.0 {
                    continue; // those near the pull that stand it
                }
                let (mut ratios, mut above) = (0.0, Some(i));
                while let Some(k) = above {
                    ratios += own / self.passed_on[k];
                    above = nodes[k].parent.checked_sub(1);
                }
                for (k, rate) in asked.coordinates.rate_range(i).enumerate() {
                    let turns = recursion.direction(i, k).angular.length_squared();
                    if self.roles[i] == Role::Actuator {
                        self.stiffness[rate] += own * (ratios + self.passed_by[i]) * turns;
                    }
                }
            }
        }
    }

    /// The force with which a goal pulls on its bone.
    fn pull_of(&self, goal: usize) -> DVec3 {
        let mut force = DVec3::ZERO;
        for (row, lambda) in self.rows.iter().zip(self.hierarchy.multipliers()) {
            if let Place::Body { along, .. } = row.place
                && row.goal == goal as u32
            {
                force += along.force * (row.factor * row.scale() * lambda);
            }
        }
        force
    }
}

/// About any axis, on the mean.
fn mean_inertia(inertia: DMat3) -> f64 {
    (inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z) / 3.0
}
