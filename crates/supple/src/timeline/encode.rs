//! State and Input as bytes, and back. Little-endian; every `f64` by its bits, so that nothing is lost.
//!
//! Settings are written by their key, as the table of settings has them: a file tells what it means in builds to come. Other structs are taken apart
//! by naming every field: a new field does not compile until it is written here. When the layout changes, [`VERSION`](super::file::VERSION) goes up and `docs/take.md` follows.

use super::TakeError;
use crate::contact::ContactKey;
use crate::control::{
    self, Actuation, Aim, Control, Ends, Gains, Goal, JointControl, Keyframes, Landing, Level, Mark, Robustness, Style,
};
use crate::input::{Drag, Drive, Grip, Input, JointInput, Target};
use crate::maths::{Pose, Twist, Wrench};
use crate::model::{BodyId, BodyState, ContactMemory, JointState, NodeState, Rest, ServoTarget, State};
use crate::settings::{SETTINGS as SETTINGS_TABLE, Setting, Value};
use crate::skin::{Ball, Grab};
use crate::solver::Solver;
use glam::{DQuat, DVec3};

/// Appends `state`.
pub(super) fn write_state(state: &State, out: &mut Vec<u8>) {
    let State { time, last_dt, remembers, bodies, joints, contacts, nodes, rest } = state;
    put_f64(out, *time);
    put_f64(out, *last_dt);
    out.push(u8::from(*remembers) | if rest.is_empty() { 0 } else { RESTS });
    put_list(out, bodies, |out, body| {
        let BodyState { position, orientation, velocity } = body;
        put_vec3(out, *position);
        put_quat(out, *orientation);
        put_twist(out, *velocity);
    });
    put_list(out, joints, |out, joint| {
        let JointState { angle, turn, force, integral } = joint;
        put_f64(out, *angle);
        put_vec3(out, *turn);
        put_vec3(out, *force);
        put_f64(out, *integral);
    });
    put_list(out, contacts, |out, contact| {
        let ContactMemory { key: ContactKey { shape_a, shape_b, place, feature }, first, second } = contact;
        for number in [shape_a, shape_b, place, feature] {
            put_u32(out, *number);
        }
        put_vec3(out, *first);
        put_vec3(out, *second);
    });
    put_list(out, nodes, |out, node| {
        let NodeState { position, velocity } = node;
        put_vec3(out, *position);
        put_vec3(out, *velocity);
    });
    if !rest.is_empty() {
        put_list(out, rest, |out, Rest { seconds, early, late, asked }| {
            [seconds, early, late].into_iter().for_each(|x| put_f64(out, *x));
            put_u64(out, *asked);
        });
    }
}

/// Among the flags of a state: that it has a list of how long bodies have been at rest, which states before version 11 have not.
const RESTS: u8 = 2;

/// Reads what [`write_state`] wrote.
pub(super) fn read_state(from: &mut Bytes<'_>) -> Result<State, TakeError> {
    let (time, last_dt) = (from.f64()?, from.f64()?);
    let (remembers, rests) = from.choice(&[(false, false), (true, false), (false, true), (true, true)])?;
    Ok(State {
        time,
        last_dt,
        remembers,
        bodies: from.list(104, |from| {
            Ok(BodyState { position: from.vec3()?, orientation: from.quat()?, velocity: from.twist()? })
        })?,
        joints: from.list(64, |from| {
            Ok(JointState { angle: from.f64()?, turn: from.vec3()?, force: from.vec3()?, integral: from.f64()? })
        })?,
        contacts: from.list(64, |from| {
            let key =
                ContactKey { shape_a: from.u32()?, shape_b: from.u32()?, place: from.u32()?, feature: from.u32()? };
            Ok(ContactMemory { key, first: from.vec3()?, second: from.vec3()? })
        })?,
        nodes: from.list(48, |from| Ok(NodeState { position: from.vec3()?, velocity: from.vec3()? }))?,
        rest: if rests { from.list(32, Bytes::rest)? } else { Vec::new() },
    })
}

// The parts of an input that are written when they differ from the step before.
const SETTINGS: u8 = 1;
const JOINTS: u8 = 2;
const TARGETS: u8 = 4;
const DRAGS: u8 = 8;
const WRENCHES: u8 = 16;
const GRIPS: u8 = 32;
const OBSTACLES: u8 = 64;
const CONTROL: u8 = 128;
// Of the control, in the same way
const MODE: u8 = 1;
const GOALS: u8 = 2;
const ACTUATORS: u8 = 4;
const POSE: u8 = 8;
const KEYS: u8 = 16;
const SHARE: u8 = 32;
const GAINS: u8 = 64;
const CONTROL_PARTS: [u8; 7] = [MODE, GOALS, ACTUATORS, POSE, KEYS, SHARE, GAINS];

/// Appends what differs between `before` and `after`, by its bits: a byte that names the parts, then those parts whole.
/// With no `before`, everything.
pub(super) fn write_input(before: Option<&Input>, after: &Input, out: &mut Vec<u8>) {
    let start = out.len();
    let settled = before.is_some_and(|before| same_settings(before, after));
    let all = [SETTINGS, JOINTS, TARGETS, DRAGS, WRENCHES, GRIPS, OBSTACLES];
    write_parts(before, after, all.into_iter().skip(usize::from(settled)), write_part, out);
    // of the control, only what differs in it
    let head = out.len();
    write_parts(before.map(|input| &input.control), &after.control, CONTROL_PARTS, write_control, out);
    if out[head] == 0 {
        out.truncate(head);
    } else {
        out[start] |= CONTROL;
    }
}

/// Appends what differs between `before` and `after`: a byte that names the parts, then those parts whole. With no `before`, all `parts`.
fn write_parts<T>(
    before: Option<&T>,
    after: &T,
    parts: impl IntoIterator<Item = u8>,
    write: impl Fn(&T, u8, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let head = out.len();
    out.push(0);
    let mut same = Vec::new();
    for part in parts {
        let start = out.len();
        write(after, part, out);
        if let Some(before) = before {
            same.clear();
            write(before, part, &mut same);
            if out[start..] == same {
                out.truncate(start);
                continue;
            }
        }
        out[head] |= part;
    }
}

/// Appends one part of an input, whole.
fn write_part(input: &Input, part: u8, out: &mut Vec<u8>) {
    let Input { joints, targets, strengths, drags, grips, wrenches, balls, grabs, obstacles, .. } = input;
    match part {
        SETTINGS => put_settings(out, input),
        JOINTS => put_list(out, joints, |out, joint| {
            let JointInput { stiffness_scale, damping_scale, torque, servo, drive } = joint;
            put_f64(out, *stiffness_scale);
            put_f64(out, *damping_scale);
            put_f64(out, *torque);
            put_servo(out, *servo);
            put_drive(out, *drive);
        }),
        TARGETS => {
            put_u32(out, targets.len() as u32);
            for (k, target) in targets.iter().enumerate() {
                put_target_at(out, target, strengths.get(k).copied());
            }
        }
        OBSTACLES => {
            put_list(out, obstacles, put_target);
            put_list(out, balls, |out, Ball { centre, radius, velocity }| {
                put_vec3(out, *centre);
                put_f64(out, *radius);
                put_vec3(out, *velocity);
            });
            put_list(out, grabs, |out, Grab { vertex, target, stiffness, damping }| {
                put_u32(out, *vertex);
                put_vec3(out, *target);
                put_f64(out, *stiffness);
                put_f64(out, *damping);
            });
        }
        DRAGS => put_list(out, drags, |out, drag| {
            let Drag { body, point, target, target_velocity, stiffness, damping } = drag;
            put_u32(out, body.0);
            put_vec3(out, *point);
            put_vec3(out, *target);
            put_vec3(out, *target_velocity);
            put_f64(out, *stiffness);
            put_f64(out, *damping);
        }),
        WRENCHES => put_list(out, wrenches, |out, (body, wrench)| {
            let Wrench { force, torque } = wrench;
            put_u32(out, body.0);
            put_vec3(out, *force);
            put_vec3(out, *torque);
        }),
        GRIPS => put_list(out, grips, |out, grip| {
            let Grip { body, point, target, rotation } = grip;
            put_u32(out, body.0);
            put_vec3(out, *point);
            put_vec3(out, *target);
            out.push(u8::from(rotation.is_some()));
            if let Some(q) = rotation {
                put_quat(out, *q);
            }
        }),
        _ => unreachable!("the parts are those above"),
    }
}

/// How inputs are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// As they are written now.
    Now,
    /// As version 8 of the format had them (`eight.rs`): settings by their place, not by their key.
    Eight,
}

/// Reads what [`write_input`] wrote and changes `input` accordingly.
pub(super) fn read_input(from: &mut Bytes<'_>, input: &mut Input) -> Result<(), TakeError> {
    read_input_of(Format::Now, from, input)
}

/// The same of a file in this format.
pub(super) fn read_input_of(format: Format, from: &mut Bytes<'_>, input: &mut Input) -> Result<(), TakeError> {
    let parts = from.u8()?;
    if parts & SETTINGS != 0 {
        match format {
            Format::Now => from.settings(input)?,
            Format::Eight => from.settings_of_eight(input)?,
        }
    }
    if parts & JOINTS != 0 {
        input.joints = from.list(26, |from| {
            Ok(JointInput {
                stiffness_scale: from.f64()?,
                damping_scale: from.f64()?,
                torque: from.f64()?,
                servo: from.servo()?,
                drive: from.drive()?,
            })
        })?;
    }
    if parts & TARGETS != 0 {
        let both = from.list(1, Bytes::target_at)?;
        input.targets = both.iter().map(|(target, _)| *target).collect();
        input.strengths = both.iter().map_while(|(_, strength)| *strength).collect();
    }
    if parts & DRAGS != 0 {
        input.drags = from.list(92, |from| {
            Ok(Drag {
                body: BodyId(from.u32()?),
                point: from.vec3()?,
                target: from.vec3()?,
                target_velocity: from.vec3()?,
                stiffness: from.f64()?,
                damping: from.f64()?,
            })
        })?;
    }
    if parts & WRENCHES != 0 {
        input.wrenches =
            from.list(52, |from| Ok((BodyId(from.u32()?), Wrench { force: from.vec3()?, torque: from.vec3()? })))?;
    }
    if parts & GRIPS != 0 {
        input.grips = from.list(53, |from| {
            let (body, point, target) = (BodyId(from.u32()?), from.vec3()?, from.vec3()?);
            let rotation = if from.flag()? { Some(from.quat()?) } else { None };
            Ok(Grip { body, point, target, rotation })
        })?;
    }
    if parts & OBSTACLES != 0 {
        input.obstacles = from.list(1, Bytes::target)?;
        if format == Format::Eight {
            input.skin = from.skin_of_eight()?;
        }
        input.balls =
            from.list(56, |from| Ok(Ball { centre: from.vec3()?, radius: from.f64()?, velocity: from.vec3()? }))?;
        input.grabs = from.list(44, |from| {
            Ok(Grab { vertex: from.u32()?, target: from.vec3()?, stiffness: from.f64()?, damping: from.f64()? })
        })?;
    }
    if parts & CONTROL != 0 {
        from.control(&mut input.control)?;
    }
    Ok(())
}

pub(super) fn put_u32(out: &mut Vec<u8>, x: u32) {
    out.extend_from_slice(&x.to_le_bytes());
}
pub(super) fn put_u64(out: &mut Vec<u8>, x: u64) {
    out.extend_from_slice(&x.to_le_bytes());
}
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u32(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}
fn put_f64(out: &mut Vec<u8>, x: f64) {
    put_u64(out, x.to_bits());
}
fn put_vec3(out: &mut Vec<u8>, v: DVec3) {
    v.to_array().into_iter().for_each(|x| put_f64(out, x));
}
fn put_quat(out: &mut Vec<u8>, q: DQuat) {
    q.to_array().into_iter().for_each(|x| put_f64(out, x));
}
fn put_twist(out: &mut Vec<u8>, Twist { linear, angular }: Twist) {
    put_vec3(out, linear);
    put_vec3(out, angular);
}
fn put_list<T>(out: &mut Vec<u8>, list: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_u32(out, list.len() as u32);
    list.iter().for_each(|item| put(out, item));
}
fn put_servo(out: &mut Vec<u8>, servo: Option<ServoTarget>) {
    match servo {
        None => out.push(0),
        Some(ServoTarget::Position { position, rate }) => {
            out.push(1);
            put_f64(out, position);
            put_f64(out, rate);
        }
        Some(ServoTarget::Rotation(q)) => {
            out.push(2);
            put_quat(out, q);
        }
        Some(ServoTarget::Rate(rate)) => {
            out.push(3);
            put_f64(out, rate);
        }
    }
}
fn put_drive(out: &mut Vec<u8>, drive: Drive) {
    let (kind, numbers) = match drive {
        Drive::Forces => return out.push(0),
        Drive::Velocity(x) => (1, x),
        Drive::Acceleration(x) => (2, x),
    };
    out.push(kind);
    numbers.into_iter().for_each(|x| put_f64(out, x));
}
/// Appends one part of a control, whole.
fn write_control(control: &Control, part: u8, out: &mut Vec<u8>) {
    let Control { mode, style, goals, joints, joint_level, pose, pose_share, keyframes, gains, landing, robustness } =
        control;
    let Keyframes { times, positions, share, ends, rate } = keyframes;
    match part {
        MODE => {
            put_choice(out, *mode, &MODES);
            put_choice(out, *style, &STYLES);
        }
        GOALS => put_list(out, goals, |out, goal| {
            let Goal { body, point, aim, level, weight, mark } = goal;
            put_u32(out, body.0);
            put_vec3(out, *point);
            put_choice(out, *level, &Level::ALL);
            put_f64(out, *weight);
            put_choice(out, *mark, &MARKS);
            put_aim(out, *aim);
        }),
        ACTUATORS => {
            put_list(out, joints, |out, joint| {
                let JointControl { actuation, weight, max_torque } = joint;
                put_choice(out, *actuation, &ACTUATIONS);
                put_f64(out, *weight);
                put_f64(out, *max_torque);
            });
            put_choice(out, *joint_level, &Level::ALL);
        }
        POSE => put_list(out, pose, |out, x| put_f64(out, *x)),
        KEYS => {
            put_list(out, times, |out, x| put_f64(out, *x));
            put_list(out, positions, |out, x| put_f64(out, *x));
            put_choice(out, *ends, &ENDS);
            put_f64(out, *rate);
        }
        SHARE => {
            put_f64(out, *pose_share);
            put_f64(out, *share);
        }
        GAINS => {
            let Gains {
                goal,
                reach_time,
                limit,
                pose,
                braking,
                most_acceleration,
                most_velocity,
                most_command,
                most_rate,
            } = gains;
            for x in [goal, reach_time, limit, pose, braking, most_acceleration, most_velocity, most_command, most_rate]
            {
                put_f64(out, *x);
            }
            let Landing { hertz, ratio } = landing;
            put_f64(out, *hertz);
            put_f64(out, *ratio);
            let (kind, number) = match robustness {
                Robustness::Scaled(x) => (0, x),
                Robustness::Constant(x) => (1, x),
            };
            out.push(kind);
            put_f64(out, *number);
        }
        _ => unreachable!("the parts are those above"),
    }
}
fn put_aim(out: &mut Vec<u8>, aim: Aim) {
    let (kind, vector) = match aim {
        Aim::Position { target, velocity } => {
            out.push(0);
            put_vec3(out, target);
            return put_vec3(out, velocity);
        }
        Aim::Height(height) => {
            out.push(1);
            return put_f64(out, height);
        }
        Aim::Orientation { target, velocity } => {
            out.push(2);
            put_quat(out, target);
            return put_vec3(out, velocity);
        }
        Aim::Velocity(x) => (3, x),
        Aim::AngularVelocity(x) => (4, x),
        Aim::Acceleration(x) => (5, x),
        Aim::AngularAcceleration(x) => (6, x),
    };
    out.push(kind);
    put_vec3(out, vector);
}
/// The solver's name, then every setting of the run by its key, with what kind of value it has.
fn put_settings(out: &mut Vec<u8>, input: &Input) {
    let solver = input.solver.name();
    put_text(out, solver);
    let own = || SETTINGS_TABLE.iter().filter(|s| s.owner().is_none_or(|owner| owner == solver));
    let told = || own().filter_map(|setting| Some((setting.key, setting.get(input)?)));
    put_u32(out, told().count() as u32);
    for (key, value) in told() {
        put_text(out, key);
        match value {
            Value::Whole(n) => {
                out.push(0);
                put_u32(out, n);
            }
            Value::Number(x) => {
                out.push(1);
                put_f64(out, x);
            }
            Value::Word(word) => {
                out.push(2);
                put_text(out, word);
            }
            Value::Vector(v) => {
                out.push(3);
                put_vec3(out, v);
            }
        }
    }
}

/// Whether two inputs have the same settings, bit for bit: most steps have those of the step before.
fn same_settings(a: &Input, b: &Input) -> bool {
    // Named one by one, so that a new field of the input is put either here or among what is recorded step by step.
    let settings = |i: &Input| {
        let Input {
            dt, substeps, solver, gravity, stiffness_scale, damping_scale, torques, contacts, flesh, skin, ..
        } = i;
        let numbers = [*dt, *stiffness_scale, *damping_scale, gravity.x, gravity.y, gravity.z].map(f64::to_bits);
        (numbers, *substeps, *torques, *contacts, *flesh, *skin, *solver)
    };
    settings(a) == settings(b)
}

// What stands for a choice is its number in a list: new ones go to the end.
const MODES: [control::Mode; 4] =
    [control::Mode::Off, control::Mode::Goals, control::Mode::Keyframes, control::Mode::Landing];
const STYLES: [Style; 3] = [Style::LeastAcceleration, Style::LeastTorque, Style::LeastVelocity];
const ACTUATIONS: [Actuation; 3] = [Actuation::ByPlace, Actuation::Active, Actuation::Passive];
const MARKS: [Mark; 2] = [Mark::Constraint, Mark::Cursor];
const ENDS: [Ends; 2] = [Ends::AtRest, Ends::Natural];

fn put_target(out: &mut Vec<u8>, target: &Option<Target>) {
    put_target_at(out, target, None);
}

/// A target, and the strength of its pull if that is told: 0 none, 1 a target, 2 a target and a strength, 3 a strength alone.
fn put_target_at(out: &mut Vec<u8>, target: &Option<Target>, strength: Option<f64>) {
    out.push(match (target, strength) {
        (None, None) => 0,
        (Some(_), None) => 1,
        (Some(_), Some(_)) => 2,
        (None, Some(_)) => 3,
    });
    if let Some(Target { pose: Pose { rotation, translation }, velocity }) = target {
        put_quat(out, *rotation);
        put_vec3(out, *translation);
        put_twist(out, *velocity);
    }
    if let Some(strength) = strength {
        put_f64(out, strength);
    }
}

fn put_choice<T: PartialEq>(out: &mut Vec<u8>, choice: T, choices: &[T]) {
    let number = choices.iter().position(|c| *c == choice).expect("every choice is in its list");
    out.push(number as u8);
}

/// Bytes that are read from the front. Every length is checked against what is left before anything is set aside for it.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], TakeError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(TakeError::damaged("it ends too early"))?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], TakeError> {
        Ok(self.take(N)?.try_into().expect("just as many were taken"))
    }
    pub(super) fn u8(&mut self) -> Result<u8, TakeError> {
        Ok(self.array::<1>()?[0])
    }
    pub(super) fn u32(&mut self) -> Result<u32, TakeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    pub(super) fn u64(&mut self) -> Result<u64, TakeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// A length and as many bytes.
    pub(super) fn block(&mut self) -> Result<&'a [u8], TakeError> {
        let length = self.u32()? as usize;
        self.take(length)
    }
    pub(super) fn text(&mut self) -> Result<String, TakeError> {
        let text = std::str::from_utf8(self.block()?);
        Ok(text.map_err(|_| TakeError::damaged("a name is not UTF-8"))?.to_owned())
    }
    /// A list of items of at least `size` bytes each.
    pub(super) fn list<T>(
        &mut self,
        size: usize,
        mut item: impl FnMut(&mut Bytes<'a>) -> Result<T, TakeError>,
    ) -> Result<Vec<T>, TakeError> {
        let count = self.u32()? as usize;
        if count > self.0.len() / size {
            return Err(TakeError::damaged("a list is longer than the file"));
        }
        (0..count).map(|_| item(self)).collect()
    }
    pub(super) fn flag(&mut self) -> Result<bool, TakeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(TakeError::damaged("a switch is neither on nor off")),
        }
    }
    pub(super) fn f64(&mut self) -> Result<f64, TakeError> {
        Ok(f64::from_bits(self.u64()?))
    }
    pub(super) fn vec3(&mut self) -> Result<DVec3, TakeError> {
        Ok(DVec3::new(self.f64()?, self.f64()?, self.f64()?))
    }
    fn quat(&mut self) -> Result<DQuat, TakeError> {
        Ok(DQuat::from_xyzw(self.f64()?, self.f64()?, self.f64()?, self.f64()?))
    }
    fn twist(&mut self) -> Result<Twist, TakeError> {
        Ok(Twist { linear: self.vec3()?, angular: self.vec3()? })
    }
    fn rest(&mut self) -> Result<Rest, TakeError> {
        Ok(Rest { seconds: self.f64()?, early: self.f64()?, late: self.f64()?, asked: self.u64()? })
    }

    fn target(&mut self) -> Result<Option<Target>, TakeError> {
        match self.target_at()? {
            (target, None) => Ok(target),
            _ => Err(TakeError::damaged("a strength stands where there is no tracker")),
        }
    }
    fn target_at(&mut self) -> Result<(Option<Target>, Option<f64>), TakeError> {
        let kind = self.u8()?;
        if kind > 3 {
            return Err(TakeError::damaged("a target is of no known kind"));
        }
        let target = if matches!(kind, 1 | 2) {
            let pose = Pose { rotation: self.quat()?, translation: self.vec3()? };
            Some(Target { pose, velocity: self.twist()? })
        } else {
            None
        };
        Ok((target, if kind >= 2 { Some(self.f64()?) } else { None }))
    }
    fn servo(&mut self) -> Result<Option<ServoTarget>, TakeError> {
        Ok(match self.u8()? {
            0 => None,
            1 => Some(ServoTarget::Position { position: self.f64()?, rate: self.f64()? }),
            2 => Some(ServoTarget::Rotation(self.quat()?)),
            3 => Some(ServoTarget::Rate(self.f64()?)),
            _ => return Err(TakeError::damaged("a servo target of an unknown kind")),
        })
    }
    pub(super) fn choice<T: Copy>(&mut self, choices: &[T]) -> Result<T, TakeError> {
        let k = usize::from(self.u8()?);
        choices.get(k).copied().ok_or(TakeError::damaged("a setting of the solver is unknown"))
    }
    fn six(&mut self) -> Result<[f64; 6], TakeError> {
        let mut numbers = [0.0; 6];
        for x in &mut numbers {
            *x = self.f64()?;
        }
        Ok(numbers)
    }
    fn drive(&mut self) -> Result<Drive, TakeError> {
        Ok(match self.u8()? {
            0 => Drive::Forces,
            1 => Drive::Velocity(self.six()?),
            2 => Drive::Acceleration(self.six()?),
            _ => return Err(TakeError::damaged("a drive of an unknown kind")),
        })
    }
    fn numbers(&mut self) -> Result<Vec<f64>, TakeError> {
        self.list(8, Bytes::f64)
    }
    fn control(&mut self, control: &mut Control) -> Result<(), TakeError> {
        let parts = self.u8()?;
        if parts & MODE != 0 {
            (control.mode, control.style) = (self.choice(&MODES)?, self.choice(&STYLES)?);
        }
        if parts & GOALS != 0 {
            control.goals = self.list(47, |from| {
                let (body, point) = (BodyId(from.u32()?), from.vec3()?);
                let (level, weight, mark) = (from.choice(&Level::ALL)?, from.f64()?, from.choice(&MARKS)?);
                Ok(Goal { body, point, aim: from.aim()?, level, weight, mark })
            })?;
        }
        if parts & ACTUATORS != 0 {
            control.joints = self.list(17, |from| {
                let actuation = from.choice(&ACTUATIONS)?;
                Ok(JointControl { actuation, weight: from.f64()?, max_torque: from.f64()? })
            })?;
            control.joint_level = self.choice(&Level::ALL)?;
        }
        if parts & POSE != 0 {
            control.pose = self.numbers()?;
        }
        if parts & KEYS != 0 {
            (control.keyframes.times, control.keyframes.positions) = (self.numbers()?, self.numbers()?);
            (control.keyframes.ends, control.keyframes.rate) = (self.choice(&ENDS)?, self.f64()?);
        }
        if parts & SHARE != 0 {
            (control.pose_share, control.keyframes.share) = (self.f64()?, self.f64()?);
        }
        if parts & GAINS != 0 {
            control.gains = Gains {
                goal: self.f64()?,
                reach_time: self.f64()?,
                limit: self.f64()?,
                pose: self.f64()?,
                braking: self.f64()?,
                most_acceleration: self.f64()?,
                most_velocity: self.f64()?,
                most_command: self.f64()?,
                most_rate: self.f64()?,
            };
            control.landing = Landing { hertz: self.f64()?, ratio: self.f64()? };
            control.robustness = match self.choice(&[0, 1])? {
                0 => Robustness::Scaled(self.f64()?),
                _ => Robustness::Constant(self.f64()?),
            };
        }
        Ok(())
    }
    fn aim(&mut self) -> Result<Aim, TakeError> {
        Ok(match self.u8()? {
            0 => Aim::Position { target: self.vec3()?, velocity: self.vec3()? },
            1 => Aim::Height(self.f64()?),
            2 => Aim::Orientation { target: self.quat()?, velocity: self.vec3()? },
            3 => Aim::Velocity(self.vec3()?),
            4 => Aim::AngularVelocity(self.vec3()?),
            5 => Aim::Acceleration(self.vec3()?),
            6 => Aim::AngularAcceleration(self.vec3()?),
            _ => return Err(TakeError::damaged("a goal of an unknown kind")),
        })
    }
    /// What [`put_settings`] wrote. Settings that this build does not have are passed over, those that the file does not tell are the usual ones;
    /// the hashes show whether that changes the motion.
    fn settings(&mut self, input: &mut Input) -> Result<(), TakeError> {
        let name = self.text()?;
        let solver = Solver::all().into_iter().find(|solver| solver.name() == name);
        input.solver = solver.ok_or(TakeError::damaged("there is no such solver"))?;
        for _ in 0..self.u32()? {
            let key = self.text()?;
            let setting = SETTINGS_TABLE.iter().find(|setting| setting.key == key);
            let value = match self.u8()? {
                0 => Some(Value::Whole(self.u32()?)),
                1 => Some(Value::Number(self.f64()?)),
                2 => {
                    let word = self.text()?;
                    setting.and_then(|setting| setting.word(&word))
                }
                3 => Some(Value::Vector(self.vec3()?)),
                _ => return Err(TakeError::damaged("a setting of an unknown kind")),
            };
            // What has the value already is left alone: some settings, put anew, take others back to what is usual.
            let has = |setting: &Setting, value: Value| match (setting.get(input), value) {
                (Some(Value::Number(x)), Value::Number(y)) => x.to_bits() == y.to_bits(),
                (Some(Value::Vector(x)), Value::Vector(y)) => {
                    x.to_array().map(f64::to_bits) == y.to_array().map(f64::to_bits)
                }
                (has, value) => has == Some(value),
            };
            if let (Some(setting), Some(value)) = (setting, value)
                && !has(setting, value)
            {
                setting.put(input, value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scene;
    use crate::input::Contacts;
    use crate::solver::{Impulses, Tree, TreeScheme};

    #[test]
    fn a_state_comes_back_bit_for_bit() {
        let mut state = Scene::parse("robot").unwrap().state;
        state.time = 0.1 + 0.2;
        state.joints[3].angle = -0.0;
        let mut bytes = Vec::new();
        write_state(&state, &mut bytes);
        let mut from = Bytes(&bytes);
        let back = read_state(&mut from).unwrap();
        assert!(from.0.is_empty());
        assert_eq!((back.hash(), &back), (state.hash(), &state));
        for end in 0..bytes.len() {
            assert!(read_state(&mut Bytes(&bytes[..end])).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn an_input_comes_back_whole_and_by_its_changes() {
        let scene = Scene::parse("hand").unwrap();
        let mut full = scene.input.clone();
        full.joint_mut(&scene.model, 2).servo = Some(ServoTarget::Rotation(DQuat::from_rotation_x(0.3)));
        full.joint_mut(&scene.model, 3).servo = Some(ServoTarget::Position { position: 0.2, rate: -1.0 });
        full.joint_mut(&scene.model, 4).servo = Some(ServoTarget::Rate(2.0));
        full.targets[5] = None;
        full.strengths = vec![1.0, 0.25, 0.0, 1.0, 1.0, 0.5];
        full.contacts = Contacts::All;
        let velocity = Twist::new(DVec3::X, DVec3::Z);
        full.obstacles = vec![None, Some(Target { pose: Pose::at(DVec3::Y), velocity })];
        full.joint_mut(&scene.model, 5).drive = Drive::Velocity([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        full.grips.push(Grip { body: BodyId(2), point: DVec3::X, target: DVec3::Y, rotation: Some(DQuat::IDENTITY) });
        full.wrenches.push((BodyId(3), Wrench { force: DVec3::X, torque: DVec3::Y }));
        full.drags.push(Drag {
            body: BodyId(1),
            point: DVec3::X,
            target: DVec3::Y,
            target_velocity: DVec3::Z,
            stiffness: 3.0,
            damping: 0.5,
        });
        full.control.mode = control::Mode::Keyframes;
        full.control.joints = vec![JointControl { weight: 2.0, ..JointControl::default() }; 3];
        let aims = [
            Aim::Position { target: DVec3::X, velocity: DVec3::Y },
            Aim::Height(0.7),
            Aim::Orientation { target: DQuat::from_rotation_y(0.2), velocity: DVec3::Z },
            Aim::Velocity(DVec3::X),
            Aim::AngularVelocity(DVec3::Y),
            Aim::Acceleration(DVec3::Z),
            Aim::AngularAcceleration(DVec3::ONE),
        ];
        let goal =
            |aim: Aim| Goal { weight: 0.5, mark: Mark::Cursor, ..Goal::new(BodyId(1), DVec3::Y, aim, Level::Tertiary) };
        full.control.goals = aims.into_iter().map(goal).collect();
        full.control.keyframes =
            Keyframes { times: vec![0.5, 1.0], positions: vec![1.0; 8], ends: Ends::Natural, ..Keyframes::new() };
        (full.control.pose, full.control.robustness) = (vec![0.25; 4], Robustness::Constant(0.5));
        full.solver = Solver::Tree(Tree { scheme: TreeScheme::Exact, impulses: Impulses::Keep, ..Tree::default() });
        let mut bytes = Vec::new();
        write_input(None, &full, &mut bytes);
        let mut back = Input::default();
        read_input(&mut Bytes(&bytes), &mut back).unwrap();
        assert_eq!(back, full);

        let mut next = full.clone();
        next.torques = false;
        next.drags[0].target = DVec3::ONE;
        (next.control.pose_share, next.control.gains.most_rate) = (0.25, 7.0);
        bytes.clear();
        write_input(Some(&full), &next, &mut bytes);
        read_input(&mut Bytes(&bytes), &mut back).unwrap();
        assert_eq!(back, next);

        for solver in Solver::all() {
            next.solver = solver;
            bytes.clear();
            write_input(Some(&full), &next, &mut bytes);
            read_input(&mut Bytes(&bytes), &mut back).unwrap();
            assert_eq!(back, next);
        }

        bytes.clear();
        write_input(Some(&next), &next, &mut bytes);
        assert_eq!(bytes, [0]); // one byte for a step without a change

        // a step in which a cursor moves on: which parts, how many goals, each goal
        let mut dragged = next.clone();
        dragged.control.goals.truncate(1);
        bytes.clear();
        write_input(Some(&next), &dragged, &mut bytes);
        assert_eq!(bytes.len(), 2 + 4 + 4 + 24 + 1 + 8 + 1 + 49);
        read_input(&mut Bytes(&bytes), &mut next).unwrap();
        assert_eq!(next, dragged);
    }
}
