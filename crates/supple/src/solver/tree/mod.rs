//! Solver `tree`: implicit joint forces and implicit joint constraints, in time linear in the number of bodies
//! [Hernández 2011].

pub mod acceleration;
pub mod assemble;
pub mod kkt;

use crate::input::Input;
use crate::maths::Wrench;
use crate::model::{Model, State};
use crate::solver::{Impulses, Tree, TreeScheme};
use crate::step::{Failure, Report};

/// Scratch of solver `tree`.
pub struct TreeWork {
    impulses: Vec<Wrench>,
    /// Made when a scheme first asks for it.
    kkt: Option<kkt::KktWork>,
}

impl TreeWork {
    pub(crate) fn new(_model: &Model) -> TreeWork {
        TreeWork { impulses: Vec::new(), kkt: None }
    }

    pub(crate) fn joint_impulses(&self) -> &[Wrench] {
        &self.impulses
    }
}

/// One part `h` of a step.
pub(crate) fn substep(
    model: &Model,
    input: &Input,
    settings: Tree,
    h: f64,
    state: &mut State,
    work: &mut TreeWork,
) -> Result<Report, Failure> {
    work.impulses.clear();
    match settings.scheme {
        TreeScheme::Published => Ok(Report::default()),
        TreeScheme::Exact => {
            let kkt = work.kkt.get_or_insert_with(|| kkt::KktWork::new(model));
            let report = kkt::exact_substep(model, input, h, state, kkt)?;
            if settings.impulses == Impulses::Keep {
                kkt.joint_impulses(model, &mut work.impulses);
            }
            Ok(report)
        }
        TreeScheme::Acceleration => {
            let kkt = work.kkt.get_or_insert_with(|| kkt::KktWork::new(model));
            let report = acceleration::acceleration_substep(model, input, h, state, kkt)?;
            if settings.impulses == Impulses::Keep {
                kkt.joint_impulses(model, &mut work.impulses);
                work.impulses.iter_mut().for_each(|force| *force = *force * h);
            }
            Ok(report)
        }
    }
}
