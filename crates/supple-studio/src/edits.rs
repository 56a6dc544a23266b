//! What was done by hand to the document (settings, pins, takes and their names), to be undone and done again.
//!
//! Steps are not edits: they are recorded, and the slider of time goes back. Each edit knows the take that it acts on and is undone at the end
//! of it, where the next live step would begin. An edit at a recorded step began a take of its own; undoing it removes that take and goes back.

use crate::protocol::Change;
use crate::simulation::{Event, Pin};
use std::time::{Duration, Instant};

/// So many edits can be undone.
const MAX_EDITS: usize = 100;
/// Changes of one slider within this time are one edit.
const ONE_MOVE: Duration = Duration::from_millis(1000);

/// One thing done by hand.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    /// What it did, as in "Undo gravity".
    pub(crate) label: String,
    /// The take that it acts on.
    pub(crate) take: usize,
    /// The take that it began.
    pub(crate) begun: Option<Begun>,
    pub(crate) what: What,
}

/// A take that an edit began.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    /// Where one was before: take and step.
    pub(crate) from: (usize, u64),
    /// The takes that undoing removed: itself and what left it.
    pub(crate) removed: Vec<usize>,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // few are kept, and most of them are settings
pub(crate) enum What {
    /// A take was begun by a pull.
    Pull,
    /// Settings.
    Set { before: Change, after: Change },
    /// Where a body was held, and is.
    Pin { body: u32, before: Option<Pin>, after: Option<Pin> },
    /// Marks of the take: what stood there, what stands there, the step, and what brings it back once steps were done with it.
    Marks { step: u64, before: Vec<(u64, String)>, after: Vec<(u64, String)>, back: Vec<Event> },
    /// A name of a take.
    Rename { before: String, after: String },
    /// Takes were removed while one was at this take and step.
    Delete { removed: Vec<usize>, place: (usize, u64) },
}

/// What can be undone, and done again.
#[derive(Debug, Default)]
pub(crate) struct History {
    done: Vec<Edit>,
    undone: Vec<Edit>,
    last: Option<Instant>,
}

impl History {
    /// Adds what was just done. Returns takes that cannot come back any more.
    pub(crate) fn add(&mut self, edit: Edit) -> Vec<usize> {
        let mut lost = self.drop_undone();
        let soon = self.last.replace(Instant::now()).is_some_and(|last| last.elapsed() < ONE_MOVE);
        if soon
            && edit.begun.is_none()
            && let Some(Edit { label, take, what: What::Set { after, .. }, .. }) = self.done.last_mut()
            && let What::Set { after: newer, .. } = &edit.what
            && (&*label, *take) == (&edit.label, edit.take)
            && is_one_move(after, newer)
        {
            after.clone_from(newer); // the same slider, still being moved
            return lost;
        }
        if soon
            && edit.begun.is_none()
            && let Some(Edit { label, take, what: What::Pin { after: after @ Some(_), .. }, .. }) = self.done.last_mut()
            && let What::Pin { after: newer @ Some(_), .. } = &edit.what
            && (&*label, *take) == (&edit.label, edit.take)
        {
            *after = *newer; // the same mark, still being dragged
            return lost;
        }
        self.done.push(edit);
        if self.done.len() > MAX_EDITS
            && let What::Delete { removed, .. } = self.done.remove(0).what
        {
            lost.extend(removed);
        }
        lost
    }

    /// Something else was done: what was undone cannot be done again. Returns takes that cannot come back any more.
    pub(crate) fn drop_undone(&mut self) -> Vec<usize> {
        self.undone.drain(..).filter_map(|edit| edit.begun).flat_map(|begun| begun.removed).collect()
    }

    /// What would be undone.
    pub(crate) fn undo_label(&self) -> Option<&str> {
        self.done.last().map(|edit| edit.label.as_str())
    }

    /// What would be done again.
    pub(crate) fn redo_label(&self) -> Option<&str> {
        self.undone.last().map(|edit| edit.label.as_str())
    }

    /// Takes the last edit out, to be undone.
    pub(crate) fn pop_done(&mut self) -> Option<Edit> {
        self.last = None;
        self.done.pop()
    }

    /// Takes the last undone edit out, to be done again.
    pub(crate) fn pop_undone(&mut self) -> Option<Edit> {
        self.last = None;
        self.undone.pop()
    }

    /// The edit has been undone.
    pub(crate) fn push_undone(&mut self, edit: Edit) {
        self.undone.push(edit);
    }

    /// The edit has been done again.
    pub(crate) fn push_done(&mut self, edit: Edit) {
        self.done.push(edit);
    }
}

/// Whether two changes may be of one slider: a keyframe or a goal more or less is a thing done by itself.
fn is_one_move(a: &Change, b: &Change) -> bool {
    match (&a.control, &b.control) {
        (Some(a), Some(b)) => (a.keyframes.len(), a.goals.len()) == (b.keyframes.len(), b.goals.len()),
        _ => true,
    }
}
