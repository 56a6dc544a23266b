//! The acceleration form that the implicit step improves on [Baraff 1996; Hernández 2011, §3.1, eq. 1, 2].
//!
//! ```text
//! [ M  Jᵀ ] [ a ]   [ F(q, V)                   ]
//! [ J  0  ] [ λ ] = [ −J̇V − 2α J V − α² C       ]
//! ```
//! All forces are explicit: springs, dampers, limits, motors and the gyroscopic torque at the start. It costs the same
//! elimination, but stiff springs make it diverge at steps where the implicit form is at ease: that is what it is here to show.
//! Equation 2 of the paper leaves out J̇V.

use super::kkt::KktWork;
use crate::contact::penalty::Touch;
use crate::forces::{self, Acting, Derivatives, Source};
use crate::input::Input;
use crate::maths::block::{add_scaled, from_wrench};
use crate::maths::rotation::turned_inertia;
use crate::maths::{Twist, Wrench};
use crate::model::{Model, State};
use crate::step::{Failure, Report};
use crate::watch::{Notes, Stage};

/// Steps in which a joint's error decays to about 1/e: α = 1/(DECAY h). An error C follows
/// `v += h(−2α v − α² C)`, `C += h v`, whose eigenvalues are real for every α and within the unit circle for α h < 0.82;
/// at 1/5 they are 0.87 and 0.69.
const DECAY: f64 = 5.0;

/// One part of a step: accelerations, then `v += h a`, then the bodies move with the new velocities.
pub(crate) fn acceleration_substep(
    model: &Model,
    (input, touches): (&Input, &[Touch]),
    (h, after): (f64, f64),
    state: &mut State,
    work: &mut KktWork,
    notes: &mut Notes,
) -> Result<Report, Failure> {
    let system = &mut work.system;
    system.set_inertia(model, state);

    // F = m g − ω × I ω + W + springs, dampers, limits, motors
    for node in &mut system.nodes {
        let (body, s) = (model.body(node.body), &state.bodies[node.body.index()]);
        let omega = s.velocity.angular;
        let inertia = turned_inertia(s.orientation, body.inertia);
        node.rhs.body = from_wrench(Wrench::new(input.gravity * body.mass, -omega.cross(inertia * omega)));
    }
    let node_of = &model.topology().node_of;
    for (body, wrench) in &input.wrenches {
        add_scaled(&mut system.nodes[node_of[body.index()]].rhs.body, 1.0, &from_wrench(*wrench));
    }
    let limits = forces::collect(model, input, state, 0.0, Derivatives::Symmetric, |acting| {
        system.add_explicit(model, state, &acting);
    });
    system.limits_active = limits;
    for touch in touches {
        let place = touch.place(state, (h, after));
        let Some(linear) = touch.linear(model, state, &place, input.gravity, 0.0) else { continue };
        touch.forces(&place, &linear, |force| {
            system.add_explicit(
                model,
                state,
                &Acting { source: Source::Contact, a: touch.follow.a, b: touch.follow.b, force },
            );
        });
    }

    // J a = −J̇V − 2α J V − α² C
    let alpha = 1.0 / (DECAY * h);
    system.set_rows(model, state, |row, rate| -row.bias - 2.0 * alpha * rate - alpha * alpha * row.residual);

    notes.mark(Stage::Forces);
    work.solve_symmetric(notes)?;
    let report = work.move_bodies(model, h, state, |start, a| {
        Twist::new(start.velocity.linear + a.linear * h, start.velocity.angular + a.angular * h)
    });
    notes.mark(Stage::Measure);
    report
}
