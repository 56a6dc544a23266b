//! The scratch of a step.

use super::islands::Islands;
use crate::contact::{Contact, ContactWork};
use crate::flesh::loose::Loose;
use crate::flesh::together::Together;
use crate::input::Input;
use crate::loads::{BodyLoad, JointLoad};
use crate::maths::Wrench;
use crate::model::{Model, Rest, State};
use crate::servo;
use crate::skin::SkinWork;
use crate::solver::{assembly, impulse, reduced, tree};
use crate::watch::{Notes, StageNanos, Watch};
use glam::DVec3;

/// Scratch, made once from the model. Nothing in it affects a result: a fresh one gives the same step bit for bit.
pub struct Work {
    pub(super) tree: tree::TreeWork,
    pub(super) notes: Notes,
    pub(super) contacts: ContactWork,
    pub(super) islands: Islands,
    /// What the input asks of each body, where bodies may sleep.
    pub(super) asked_of: Vec<u64>,
    /// The [`signature`](super::sleep::signature) of the state that contacts and notes are of.
    pub(super) noted: u64,
    /// How long bodies had been at rest before the step.
    pub(super) rest: Vec<Rest>,
    // Made when the solver is first used.
    pub(super) impulse: Option<Box<impulse::ImpulseWork>>,
    pub(super) assembly: Option<Box<assembly::AssemblyWork>>,
    pub(super) reduced: Option<Box<reduced::ReducedWork>>,
    pub(super) loose: Option<Box<Loose>>,
    pub(super) together: Option<Box<Together>>,
    pub(super) skin: Option<Box<SkinWork>>,
    /// The state at the start of a step of several parts.
    pub(super) saved: State,
    /// The state at the start of a part.
    pub(super) part_start: State,
    /// The input of a part, where it is not that of the step; made when it is first needed.
    pub(super) asked: Option<Box<Input>>,
    /// Whether any motor has an integral gain.
    pub(super) integrals: bool,
    /// The fingerprint of the model it was made for.
    pub(super) model: u64,
}

impl Work {
    /// Scratch for this model.
    pub fn new(model: &Model) -> Work {
        Work {
            tree: tree::TreeWork::new(model),
            notes: Notes::default(),
            contacts: ContactWork::new(model),
            islands: Islands::new(model),
            asked_of: Vec::new(),
            noted: 0,
            rest: Vec::new(),
            impulse: None,
            assembly: None,
            reduced: None,
            loose: None,
            together: None,
            skin: None,
            saved: model.start(),
            part_start: model.start(),
            asked: None,
            integrals: servo::any_integral(model),
            model: model.fingerprint(),
        }
    }

    /// Before a step in which nothing is solved: what is told beside the report stays if it is of this state, and is empty otherwise.
    pub(super) fn keep_notes_of(&mut self, signature: u64) {
        if self.noted != signature {
            self.notes.ledger.clear();
            self.contacts.clear();
            self.skin.iter_mut().for_each(|skin| skin.pressures.clear());
        }
    }

    /// Asks for times or impulses beside the report. Steps give the same bits with any watch.
    pub fn watch(&mut self, watch: Watch) {
        self.notes.set(watch);
    }

    /// Nanoseconds of the last step by [`Stage`](crate::watch::Stage); zeros without a clock to [`watch`](Work::watch) with.
    pub fn stage_nanos(&self) -> StageNanos {
        self.notes.nanos()
    }

    /// What each joint carried in the last part of the last step, by where it comes from. Every solver reports it, once it or a [`Watch`] was told to keep it;
    /// empty before.
    pub fn joint_loads(&self) -> &[JointLoad] {
        self.notes.ledger.joint_loads()
    }

    /// What contacts and flesh did to each body in the last part of the last step; kept with [`joint_loads`](Work::joint_loads).
    pub fn body_loads(&self) -> &[BodyLoad] {
        self.notes.ledger.body_loads()
    }

    /// The impulse each joint exerted on its child in the last part of the last step, about the child's centre of mass
    /// \[N·s, N·m·s\]: constraint, spring, limit and motor together. Empty unless the solver or a [`Watch`] was told to keep them.
    pub fn joint_impulses(&self) -> &[Wrench] {
        self.notes.ledger.joint_impulses()
    }

    /// Length of the part that [`joint_impulses`](Work::joint_impulses) are of \[s\]: divided by it, they are mean forces and torques.
    pub fn impulse_time(&self) -> f64 {
        self.notes.ledger.part
    }

    /// The vertices of the skin that something pressed on in the last part of the last step, and the forces \[N\].
    pub fn skin_pressures(&self) -> &[(u32, DVec3)] {
        self.skin.as_ref().map_or(&[], |skin| &skin.pressures)
    }

    /// By body: whether the triangles of its skin were looked at for contacts in the last search, or pruned.
    pub fn skin_looked(&self) -> &[bool] {
        self.skin.as_ref().map_or(&[], |skin| &skin.search.looked)
    }

    /// Iterations of conjugate gradients in the last solution of the skin, when it is solved so.
    pub fn skin_iterations(&self) -> usize {
        self.skin.as_ref().map_or(0, |skin| skin.gradient_iterations())
    }

    /// The contacts of the last part of the last step, as found at its start.
    pub fn contacts(&self) -> &[Contact] {
        self.contacts.contacts()
    }
}
