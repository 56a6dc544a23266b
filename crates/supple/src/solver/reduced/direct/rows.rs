//! Rows of what is asked of bones and joints: C and d of `C x = d`.

use super::super::recursion::Recursion;
use super::bounds::{MOST_FIXED, Told};
use super::{Asked, Direct, Role, dot};
use crate::control::inverse::Robustness;
use crate::control::{Aim, Control, Goal, Level, Style};
use crate::forces::{JointView, StopPlace};
use crate::maths::rotation::log;
use crate::maths::{Twist, Wrench};
use crate::model::BodyId;
use glam::DVec3;

/// What a row is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The motion of a body along a direction, world axes about its centre of mass; the part of its acceleration that comes of velocities.
    Body { body: BodyId, along: Wrench, drift: f64 },
    /// The motion of a node's joint along its rates.
    Joint { node: usize, along: [f64; 6] },
}

/// One row of C x = d.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) level: Level,
    /// Rows of one goal have one number.
    pub(super) goal: u32,
    pub(super) weight: f64,
    /// A length where it is about angles, otherwise 1.
    pub(super) unit: f64,
    /// Of the row, as commands are measured, before it is weighted.
    pub(super) length: f64,
    /// How joints move with a unit force along it: the length of the row in which commands are not measured.
    pub(super) motion: f64,
    /// What it is multiplied with, beside its weight, to be like others.
    pub(super) factor: f64,
    pub(super) place: Place,
    /// A* or V*.
    pub(super) wanted: f64,
}

/// Goals whose rows are shorter than this share of the longest are taken for what no command moves.
const UNMOVED: f64 = 1e-7;
/// Ends of the ranges of a joint that can be passed at once: of its angle, its swing, its slide.
const MOST_STOPS: usize = 3;

impl Direct {
    /// Makes room for as many rows as there can be, limits all passed.
    pub(super) fn make_room(&mut self, asked: Asked<'_>) {
        let control = asked.control();
        let goals = 3 * control.goals.len();
        let limits = asked.model.joints().iter().filter(|joint| joint.limits.any()).count();
        let pose = if control.pose_share > 0.0 { self.node_of_rate.len() } else { 0 };
        let roots = 6 * self.roles.iter().filter(|role| **role == Role::Root).count();
        let bounded = (0..self.node_of_rate.len()).filter(|rate| self.most_torque(asked, *rate).is_finite()).count();
        let laws = self.columns.len().min(roots + bounded);
        self.most_rows = goals + MOST_STOPS * limits + pose + laws;
        self.rows.reserve(self.most_rows);
        self.matrix.clear();
        self.matrix.reserve(self.most_rows * self.columns.len());
        self.rhs.clear();
        self.rhs.reserve(self.most_rows);
        self.duals.clear();
        self.duals.reserve(self.most_rows * self.columns.len());
        self.fixed.clear();
        self.fixed.reserve(MOST_FIXED.min(self.columns.len()) * self.columns.len());
        self.matrix_before.clear();
        self.matrix_before.reserve(self.most_rows * self.columns.len());
        self.duals_before.clear();
        self.duals_before.reserve(self.most_rows * self.columns.len());
        self.rhs_before.clear();
        self.rhs_before.reserve(self.most_rows);
        self.mobility.clear();
        self.mobility.reserve(goals * goals);
        self.lack.clear();
        self.lack.reserve(goals);
    }

    /// The columns of C: rates of actuators that are not held; in least velocity those of passive roots and of actuators that are held too.
    pub(super) fn choose_columns(&mut self, control: &Control) {
        self.columns.clear();
        self.ease.clear();
        for (rate, &node) in self.node_of_rate.iter().enumerate() {
            let takes_part = match self.roles[node] {
                Role::Actuator => self.told[node] == Told::Acceleration || control.style != Style::LeastAcceleration,
                Role::Root => control.style == Style::LeastVelocity,
                Role::Other => false,
            };
            if takes_part {
                let weight = self.joints[node].map_or(1.0, |id| control.joint(id.index()).weight);
                self.columns.push(rate);
                self.ease.push(1.0 / weight.sqrt());
            }
        }
    }

    pub(super) fn gather_goals(&mut self, asked: Asked<'_>) {
        for (number, goal) in asked.control().goals.iter().enumerate() {
            let body = &asked.state.bodies[goal.body.index()];
            let (lever, w) = (body.orientation * goal.point, body.velocity.angular);
            let (place, v) = (body.position + lever, body.velocity.at(lever));
            let turning = w.cross(w.cross(lever));
            let seeker = Seeker { control: asked.control(), h: asked.h };
            let point = |e: DVec3| Place::Body { body: goal.body, along: Wrench::at(lever, e), drift: turning.dot(e) };
            let turn = |e: DVec3| Place::Body { body: goal.body, along: Wrench::new(DVec3::ZERO, e), drift: 0.0 };
            let linear = (1.0, &point as &dyn Fn(DVec3) -> Place);
            let angular = (self.length, &turn as &dyn Fn(DVec3) -> Place);
            let ((scale, row), wanted) = match goal.aim {
                // where the target is at the end of this part
                Aim::Position { target, velocity } => {
                    (linear, seeker.reach(target - velocity * asked.after - place, v, velocity, 1.0))
                }
                Aim::Height(height) => {
                    let off = DVec3::Y * (height - place.y);
                    (linear, seeker.reach(off, DVec3::Y * v.y, DVec3::ZERO, 1.0))
                }
                Aim::Orientation { target, velocity } => {
                    let off = log(target * body.orientation.conjugate()) - velocity * asked.after;
                    (angular, seeker.reach(off, w, velocity, self.length))
                }
                Aim::Velocity(wanted) => (linear, seeker.speed(v, wanted, 1.0)),
                Aim::AngularVelocity(wanted) => (angular, seeker.speed(w, wanted, self.length)),
                Aim::Acceleration(wanted) => (linear, seeker.accelerate(v, wanted)),
                Aim::AngularAcceleration(wanted) => (angular, seeker.accelerate(w, wanted)),
            };
            for (axis, e) in DVec3::AXES.into_iter().enumerate() {
                let Goal { level, mut weight, .. } = *goal;
                if matches!(goal.aim, Aim::Height(_)) && axis != 1 {
                    weight = 0.0; // nothing is asked; but it is known how the point can be moved
                }
                let (goal, place, wanted) = (number as u32, row(e), wanted.dot(e));
                self.rows.push(Row {
                    level,
                    goal,
                    weight,
                    unit: scale,
                    length: 0.0,
                    motion: 0.0,
                    factor: 0.0,
                    place,
                    wanted,
                });
            }
        }
    }

    /// Rows of limits that are passed, or would be at the end of the part, and of the pose.
    pub(super) fn gather_joints(&mut self, asked: Asked<'_>, recursion: &Recursion) {
        let (control, h) = (asked.control(), asked.h);
        for i in 0..self.roles.len() {
            let (Role::Actuator, Some(id)) = (self.roles[i], self.joints[i]) else { continue };
            let rates = &asked.coordinates.rates[asked.coordinates.rate_range(i)];
            // A limit acts when a critically damped spring would come to it no more slowly: it is reached without being passed.
            let ahead = 1.0 / control.gains.limit.sqrt();
            let view = JointView::new(asked.model, asked.state, id);
            view.stops(|mut stop| {
                if control.gains.limit == 0.0 {
                    return;
                }
                if let (StopPlace::Swing, Some((left, g))) = (stop.place, view.swing_left()) {
                    let turn = |g: DVec3| Twist::new(DVec3::ZERO, g);
                    (stop.gap, stop.a, stop.b) = (left, turn(-g), turn(g));
                }
                let row = if recursion.is_flipped(i) { stop.b } else { stop.a };
                let mut along = [0.0; 6];
                for (k, along) in along.iter_mut().enumerate().take(rates.len()) {
                    *along = Wrench::new(row.linear, row.angular).power(recursion.direction(i, k));
                }
                let now = dot(&along, rates);
                if stop.gap + (ahead + h) * now < 0.0 {
                    let wanted = spring(control.gains.limit, h, -stop.gap - h * now, now);
                    self.push_joint(control, i, along, wanted, (now, h));
                }
            });
            if control.pose_share > 0.0 {
                let off = self.off_pose(i, asked);
                for (k, &now) in rates.iter().enumerate() {
                    let mut along = [0.0; 6];
                    along[k] = 1.0;
                    let wanted = spring(control.gains.pose * control.pose_share, h, off[k] - h * now, now);
                    self.push_joint(control, i, along, wanted, (now, h));
                }
            }
        }
    }

    /// A row of a joint that is to have an acceleration, now moving with a rate.
    pub(super) fn push_joint(
        &mut self,
        control: &Control,
        node: usize,
        along: [f64; 6],
        wanted: f64,
        (now, h): (f64, f64),
    ) {
        let wanted = if control.style == Style::LeastVelocity { now + h * wanted } else { wanted };
        let turns = self.masks[node].free_translations() < self.masks[node].free();
        let scale = if turns { self.length } else { 1.0 };
        let (level, goal) = (control.joint_level, (control.goals.len() + self.rows.len()) as u32);
        let place = Place::Joint { node, along };
        self.rows.push(Row {
            level,
            goal,
            weight: 1.0,
            unit: scale,
            length: 0.0,
            motion: 0.0,
            factor: 0.0,
            place,
            wanted,
        });
    }

    pub(super) fn clear_rows(&mut self) {
        self.duals.clear();
        self.matrix.clear();
        self.rhs.clear();
    }

    /// C and d at the present solution, and what is needed to tell what a pull would have done. Returns the number of sweeps.
    pub(super) fn add_rows(&mut self, recursion: &mut Recursion) -> u32 {
        self.mobility.clear();
        self.lack.clear();
        for i in 0..self.rows.len() {
            let row = &mut self.rows[i];
            let lack = row.wanted - row.acceleration(recursion);
            self.rhs.push(row.scale() * lack);
            let coefficients = row.coefficients(recursion);
            let first = self.matrix.len();
            self.matrix.extend(self.columns.iter().zip(&self.ease).map(|(k, ease)| row.unit * coefficients[*k] * ease));
            let own = &mut self.matrix[first..];
            row.length = dot(own, own).sqrt();
            row.motion = row.length;
            if row.is_of_body() {
                self.lack.push(lack);
                self.mobility.extend(self.rows.iter().filter_map(|other| other.response(recursion)));
            }
        }
        self.rows.len() as u32
    }

    /// Gives rows their weights, and makes goals alike in what commands do to them: each is divided by its longest row. Light limbs and heavy ones, places and angles of joints would otherwise hide
    /// one another's singular values. Rows of one goal stay as they are to each other, so that what it cannot reach is told from what it can. The first `laws` rows stay as they are.
    pub(super) fn make_alike(&mut self, control: &Control, laws: usize) {
        let n = self.columns.len();
        let longest = |rows: &[Row]| rows.iter().map(|row| row.length).fold(0.0, f64::max);
        let most = longest(&self.rows);
        let as_published = matches!(control.robustness, Robustness::Constant(_)) || most == 0.0;
        let mut first = 0;
        self.turning = 0.0;
        while first < self.rows.len() {
            let goal = self.rows[first].goal;
            let count = self.rows[first..].iter().take_while(|row| row.goal == goal).count();
            // what no command moves stays so
            let size = longest(&self.rows[first..first + count]).max(UNMOVED * most);
            let scale = if as_published { 1.0 } else { 1.0 / size };
            if size > 0.0 && self.rows[first].is_of_body() {
                let asked = &self.rhs[laws + first..laws + first + count];
                let motion = self.rows[first..first + count].iter().map(|row| row.motion).fold(0.0, f64::max);
                self.turning = self.turning.max(dot(asked, asked).sqrt() * motion / (size * size));
            }
            for i in first..first + count {
                let within = (laws + i) * n..(laws + i + 1) * n;
                let weight = scale * self.rows[i].weight;
                self.matrix[within.clone()].iter_mut().for_each(|x| *x *= weight);
                self.duals.get_mut(within).into_iter().flatten().for_each(|x| *x *= weight);
                self.rhs[laws + i] *= scale;
                self.rows[i].factor = scale;
            }
            first += count;
        }
    }

    /// What is done about rows that can hardly be reached. In least acceleration a command of `|d|/e` turns joints by `h² |d|/e` until the end of the part, and a singular value changes by about as
    /// large a share of the largest: it tells nothing of a step in which that is more than the share e at which it was taken to be small. So `e ≥ h √|d|`. With less, a limb that is pulled
    /// straight beyond its reach is told to straighten by more than it is bent, then to straighten back, and flutters. In least velocity it turns them by `h |d|/e`, and `e² ≥ h |d|`. Least torque
    /// has its own remedy (`pull.rs`): there a small singular value may be that of a heavy trunk beside a light hand.
    pub(super) fn robustness(&self, asked: Asked<'_>) -> Robustness {
        match (asked.control().robustness, asked.control().style) {
            (Robustness::Scaled(share), Style::LeastAcceleration) => {
                Robustness::Scaled((asked.h * self.turning.sqrt()).min(1.0).max(share))
            }
            (Robustness::Scaled(share), Style::LeastVelocity) => {
                Robustness::Scaled((asked.h * self.turning).sqrt().min(1.0).max(share))
            }
            (as_asked, _) => as_asked,
        }
    }

    /// Solves the rows of so many levels, one after the other; the first `laws` rows before all, exactly.
    pub(super) fn solve_some_levels(&mut self, robustness: Robustness, laws: usize, levels: usize) {
        let n = self.columns.len();
        let multiplied = if self.duals.is_empty() { 0 } else { laws + self.rows.len() };
        self.hierarchy.begin(n, self.most_rows, multiplied);
        self.hierarchy.add_level(&self.matrix[..laws * n], &self.rhs[..laws], Robustness::EXACT);
        let mut first = 0;
        for &level in &Level::ALL[..levels] {
            let count = self.rows_of(level);
            let range = laws + first..laws + first + count;
            let within = range.start * n..range.end * n;
            let c = &self.matrix[within.clone()];
            let duals = self.duals.get(within).unwrap_or(c);
            self.hierarchy.add_level_by(c, duals, &self.rhs[range], robustness);
            first += count;
        }
    }

    /// How many rows a level has.
    pub(super) fn rows_of(&self, level: Level) -> usize {
        self.rows.iter().filter(|row| row.level == level).count()
    }
}

impl Row {
    /// Whether it asks something of a body.
    pub(super) fn is_of_body(&self) -> bool {
        self.weight > 0.0 && matches!(self.place, Place::Body { .. })
    }

    pub(super) fn scale(&self) -> f64 {
        self.weight * self.unit
    }

    /// The row's acceleration in the last solution.
    pub(super) fn acceleration(&self, recursion: &Recursion) -> f64 {
        match self.place {
            Place::Body { body, along, drift } => along.power(recursion.acceleration(body)) + drift,
            Place::Joint { node, along } => dot(&along, &recursion.accelerations()[recursion.rates(node)]),
        }
    }

    /// The same without any acceleration of joints: what comes of velocities alone.
    pub(super) fn coasting(&self, recursion: &Recursion) -> f64 {
        match self.place {
            Place::Body { body, along, drift } => along.power(recursion.coasting(body)) + drift,
            Place::Joint { .. } => 0.0,
        }
    }

    /// The row's velocity at the start of the part.
    pub(super) fn velocity(&self, recursion: &Recursion, rates: &[f64]) -> f64 {
        match self.place {
            Place::Body { body, along, .. } => along.power(recursion.velocity(body)),
            Place::Joint { node, along } => dot(&along, &rates[recursion.rates(node)]),
        }
    }

    /// The row's velocity at the end of the part, to first order.
    pub(super) fn next_velocity(&self, recursion: &Recursion, asked: Asked<'_>) -> f64 {
        let gained = asked.h * (self.acceleration(recursion) - self.coasting(recursion));
        self.velocity(recursion, &asked.coordinates.rates) + gained
    }

    /// How the row's acceleration changes with each joint's command, by rate.
    pub(super) fn coefficients<'a>(&self, recursion: &'a mut Recursion) -> &'a [f64] {
        match self.place {
            Place::Body { body, along, .. } => recursion.by_acceleration(body, along),
            Place::Joint { node, along } => recursion.by_joint(node, &along),
        }
    }

    /// How a row of a body changed in the last response.
    pub(super) fn response(&self, recursion: &Recursion) -> Option<f64> {
        match self.place {
            Place::Body { body, along, .. } if self.is_of_body() => Some(along.power(recursion.response(body))),
            _ => None,
        }
    }
}

/// What is asked of a motion that is off its aim.
struct Seeker<'a> {
    control: &'a Control,
    h: f64,
}

impl Seeker<'_> {
    /// To go by `off` until the end of the part, moving with `now`, there to have the velocity `then`. Angles count as lengths of `unit`.
    fn reach(&self, off: DVec3, now: DVec3, then: DVec3, unit: f64) -> DVec3 {
        let gains = &self.control.gains;
        if self.control.style == Style::LeastVelocity {
            return (then + off / gains.reach_time).clamp_length_max(gains.most_velocity / unit);
        }
        let (kp, kd) = (gains.goal, 2.0 * gains.goal.sqrt());
        // far off it is sought at the most velocity, not ever faster: kp off = kd v
        let off = off.clamp_length_max(gains.most_velocity / unit * kd / kp);
        let wanted = (off - now * self.h) * kp + (then - now) * kd;
        (wanted / (1.0 + self.h * kd + self.h * self.h * kp)).clamp_length_max(gains.most_acceleration / unit)
    }

    /// To have a velocity.
    fn speed(&self, now: DVec3, wanted: DVec3, unit: f64) -> DVec3 {
        let gains = &self.control.gains;
        if self.control.style == Style::LeastVelocity {
            return wanted.clamp_length_max(gains.most_velocity / unit);
        }
        let kd = 2.0 * gains.goal.sqrt();
        ((wanted - now) * kd / (1.0 + self.h * kd)).clamp_length_max(gains.most_acceleration / unit)
    }

    /// To have an acceleration.
    fn accelerate(&self, now: DVec3, wanted: DVec3) -> DVec3 {
        if self.control.style == Style::LeastVelocity { now + wanted * self.h } else { wanted }
    }
}

/// What a critically damped spring does to a unit mass that is to go by `off`, moving with `now`, taken at the end of the part.
fn spring(stiffness: f64, h: f64, off: f64, now: f64) -> f64 {
    let damping = 2.0 * stiffness.sqrt();
    (stiffness * off - damping * now) / (1.0 + h * damping + h * h * stiffness)
}
