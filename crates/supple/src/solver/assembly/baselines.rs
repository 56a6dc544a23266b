//! What the paper compares itself with: velocities that are projected after each step, and Baumgarte's stabilisation [Faure 1998, §2].

use super::correct::{Outcome, along};
use super::rows::{Stop, world};
use super::{Assembly, AssemblyWork};
use crate::input::Input;
use crate::maths::Twist;
use crate::model::{Model, State};
use crate::step::Failure;
use glam::DVec3;

/// Steps in which Baumgarte's terms let a joint's error decay to about 1/e: α = 1/(DECAY h), well within stability.
const DECAY: f64 = 5.0;

/// Post-stabilisation [Faure 1998, eq. 5, 6]:
///
/// ```text
/// v ← v + h M⁻¹ (f + Jᵀλ)  with J v = 0;   q ← q ⊕ h v;   q ← q ⊕ correction(q);   v ← v + M⁻¹Jᵀμ  with J v = 0
/// ```
/// Springs are taken at the end of the part, as by the displacements.
pub(super) fn projected(
    model: &Model,
    input: &Input,
    settings: &Assembly,
    h: f64,
    state: &mut State,
    work: &mut AssemblyWork,
) -> Result<Outcome, Failure> {
    let AssemblyWork { correction, displacements } = work;
    correction.begin(state);
    correction.touch_nothing();
    correction.hold_joints(model);
    correction.inertia.load(model, (input, None), state, h)?;
    let limits_active = correction.inertia.limits_active;
    for (i, (displacement, body)) in displacements.iter_mut().zip(&state.bodies).enumerate() {
        let omega = correction.inertia.spun(i, body, body.velocity.angular, h);
        let acceleration = correction.inertia.acceleration(i, body);
        *displacement = (Twist::new(body.velocity.linear, omega) + acceleration * h) * h;
    }
    correction.inertia.yield_to_springs(state, displacements);
    for (displacement, body) in displacements.iter().zip(&mut state.bodies) {
        body.velocity = *displacement * (1.0 / h);
    }
    let mut inner = correction.project(settings, state);
    for (i, body) in state.bodies.iter_mut().enumerate() {
        correction.displace(i, body, body.velocity * h);
    }
    correction.inertia.without_springs();
    let mut outcome = correction.correct(model, settings, state);
    inner += correction.project(settings, state);
    outcome.inner += inner;
    correction.inertia.limits_active = limits_active;
    Ok(outcome)
}

/// Accelerations with the errors fed back [Faure 1998, §2]: `J a = −J̇ v − 2α J v − α² C`, all forces at the start.
pub(super) fn baumgarte(
    model: &Model,
    input: &Input,
    settings: &Assembly,
    h: f64,
    state: &mut State,
    work: &mut AssemblyWork,
) -> Outcome {
    let AssemblyWork { correction, displacements: accelerations } = work;
    correction.begin(state);
    correction.touch_nothing();
    correction.hold_joints(model);
    correction.inertia.load_explicit(model, input, state);
    correction.inertia.turn(state, 0.0);
    // The accelerations of free bodies; the rows ask for the rest.
    for (i, (acceleration, body)) in accelerations.iter_mut().zip(&state.bodies).enumerate() {
        let omega = body.velocity.angular;
        let gyroscopic = (correction.inertia.spun(i, body, omega, h) - omega) / h;
        *acceleration = correction.inertia.acceleration(i, body) + Twist::new(DVec3::ZERO, gyroscopic);
    }
    let rows = &mut correction.rows;
    rows.clear();
    let alpha = 1.0 / (DECAY * h);
    let free = |body: usize| accelerations.get(body).copied().unwrap_or(Twist::ZERO);
    for joint in model.joints() {
        let (a, b) = (joint.child.index(), joint.parent.map_or(world(model), |p| p.index()));
        let sides = model.sides(joint, state);
        rows.between(a, b);
        for row in joint.rows(&sides).iter() {
            let rate = along(row.a, sides.a_velocity) + along(row.b, sides.b_velocity);
            let had = along(row.a, free(a)) + along(row.b, free(b));
            let wanted = -row.bias - 2.0 * alpha * rate - alpha * alpha * row.residual;
            rows.push(row.a, row.b, wanted - had, 1.0);
        }
    }
    let inner = rows.solve(
        &mut correction.inertia,
        settings.linear,
        Stop { iterations: settings.inner, share: 1e-6, enough: 0.0 },
    );
    for (i, body) in state.bodies.iter_mut().enumerate() {
        let acceleration = accelerations[i] + correction.rows.motion(i);
        body.velocity = body.velocity + acceleration * h;
        correction.displace(i, body, body.velocity * h);
    }
    let left = correction.measure(model, state);
    Outcome { before: left, after: left, outer: 1, inner }
}
