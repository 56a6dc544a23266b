//! The control as a stage before a part of a step: what the actuators are told, as wrenches that any solver carries out.
//!
//! Commands are reckoned by the recursion from the state and the input alone, as solver `reduced` does (`direct.rs`): springs
//! and flesh act in it as they will in the part, and contacts push as they did in the last one. An acceleration that is asked
//! of a joint becomes the torque that it takes.

use super::direct::{Asked, Direct, Dynamics};
use super::loads::Rule;
use super::recursion::Singular;
use super::{ReducedWork, border};
use crate::contact::{Contact, Other};
use crate::control::{ControlReport, Mode};
use crate::flesh::Diagonalize;
use crate::input::{FleshCoupling, Input};
use crate::maths::Wrench;
use crate::model::{BodyId, JointId, Model, State};
use crate::solver::Solver;
use crate::step::{Failure, StepError};
use glam::{DMat3, DVec3};

/// Whether a step has commands that its solver does not reckon itself.
pub(crate) fn is_wanted(input: &Input) -> bool {
    input.control.mode != Mode::Off && !matches!(input.solver, Solver::Reduced(_))
}

/// What cannot be commanded.
pub(crate) fn takes(model: &Model, input: &Input) -> Result<(), StepError> {
    if input.control.mode == Mode::Off {
        return Ok(());
    }
    let refuse = |part: String, remedy| Err(StepError::Unsupported { solver: input.solver.name(), part, remedy });
    if let Solver::Assembly(_) = input.solver {
        // Commands that answer to velocities half a step old swing ever wider: least velocity does within a second.
        let part = "the control of the actuators, since its velocities are those of half a step ago".to_owned();
        return refuse(part, "use solver tree, impulse or reduced, or give the motors of the joints targets");
    }
    if let Some(&id) = model.topology().loops.first() {
        let part = format!("the control of actuators in the loop of joint \"{}\"", model.joint(id).name);
        return refuse(part, "give the motors of the joints targets, or leave that joint out");
    }
    Ok(())
}

/// Commands for a part of length `h` that ends `after` seconds before its step: adds their wrenches to `asked`, whose
/// actuators have no other motor. `contacts` are those of the start; `told` becomes what each joint's child is given.
pub(crate) fn command(
    model: &Model,
    asked: &mut Input,
    (h, after): (f64, f64),
    contacts: &[Contact],
    state: &State,
    (work, told): (&mut ReducedWork, &mut [Wrench]),
) -> Result<ControlReport, Failure> {
    let not_finite = |Singular(body)| Failure::NotFinite(body);
    let ReducedWork { coordinates, recursion, loads, soft, direct, entered, .. } = work;
    let direct = direct.get_or_insert_with(|| Box::new(Direct::new(model)));
    direct.assign(model, asked);
    entered.clone_from(state);
    border::enter(model, entered, coordinates, recursion).map_err(not_finite)?;
    let rests = |node: usize| direct.acts(node);
    loads.collect(model, asked, entered, coordinates, (Rule::backward(h), rests), recursion);
    for (contact, memory) in remembered(contacts, state) {
        let lever = |body: usize, point: DVec3| entered.bodies[body].orientation * point;
        recursion.push(contact.a, Wrench::at(lever(contact.a.index(), contact.point_in_a), memory));
        if let Other::Body(b) = contact.b {
            recursion.push(b, Wrench::at(lever(b.index(), contact.point_in_b), -memory));
        }
    }
    if let (Some(soft), FleshCoupling::Together) = (soft, asked.flesh) {
        soft.hang(model, asked, Diagonalize::default(), (h, after), entered, recursion);
    }
    let question = Asked { model, input: asked, state: entered, coordinates, h, after };
    let (_, report) = direct.carry_out(question, Dynamics { recursion, loads }).map_err(not_finite)?;

    // Torques of the joints as wrenches on their two bodies
    let nodes = &model.topology().nodes;
    for (i, node) in nodes.iter().enumerate() {
        let (true, Some(id)) = (direct.acts(i), node.joint) else { continue };
        let torques = direct.torques(asked.control.mode, recursion, i);
        let slides = model.joint(id).mask.free_translations();
        let count = recursion.rates(i).len();
        let force: DVec3 = (0..slides).map(|k| recursion.direction(i, k).linear * torques[k]).sum();
        let axes: [DVec3; 3] = std::array::from_fn(|k| match slides + k {
            rate if rate < count => recursion.direction(i, rate).angular,
            _ => DVec3::ZERO,
        });
        let torque = along_axes(axes, &torques[slides..count]);
        let at = anchor(model, entered, id);
        let mut add = |body: usize, sign: f64| {
            let moment = (at - entered.bodies[body].position).cross(force);
            let wrench = Wrench::new(force, torque + moment) * sign;
            asked.wrenches.push((BodyId(body as u32), wrench));
            if BodyId(body as u32) == model.joint(id).child {
                told[id.index()] = wrench;
            }
        };
        add(node.body.index(), 1.0);
        if let Some(parent) = node.parent.checked_sub(1) {
            add(nodes[parent].body.index(), -1.0);
        }
    }
    for i in (0..nodes.len()).filter(|&i| direct.acts(i)) {
        if let Some(id) = nodes[i].joint {
            let own = asked.joint_mut(model, id.index());
            (own.servo, own.torque) = (None, 0.0);
        }
    }
    Ok(report)
}

/// The contacts that pushed in the last part, with their forces on side a. Both lists are in the order of their keys.
fn remembered<'a>(contacts: &'a [Contact], state: &'a State) -> impl Iterator<Item = (&'a Contact, DVec3)> {
    let mut known = state.contacts.iter().peekable();
    contacts.iter().filter_map(move |contact| {
        while known.next_if(|memory| memory.key < contact.key).is_some() {}
        known.next_if(|memory| memory.key == contact.key).map(|memory| (contact, memory.first + memory.second))
    })
}

/// The torque t with `t · axis = τ` for each axis, and nothing along what is across all of them.
fn along_axes(axes: [DVec3; 3], torques: &[f64]) -> DVec3 {
    match *torques {
        [] => DVec3::ZERO,
        [x] => axes[0] * (x / axes[0].length_squared()),
        [x, y] => {
            let rows = DMat3::from_cols(axes[0], axes[1], axes[0].cross(axes[1])).transpose();
            rows.inverse() * DVec3::new(x, y, 0.0)
        }
        [x, y, z, ..] => DMat3::from_cols(axes[0], axes[1], axes[2]).transpose().inverse() * DVec3::new(x, y, z),
    }
}

/// Where a joint is on its child.
fn anchor(model: &Model, state: &State, id: JointId) -> DVec3 {
    let joint = model.joint(id);
    let child = &state.bodies[joint.child.index()];
    child.position + child.orientation * joint.child_from_joint.translation
}
