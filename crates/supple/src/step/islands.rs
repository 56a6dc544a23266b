//! Islands: bodies that joints, couplings, springs or contacts connect. Where a part fails, the island that failed is done again by itself and the
//! others go on without it.
//!
//! Islands do not reach one another within a part: contacts are found ahead of time, so that whatever may come to touch is one island from the start.

use super::sleep;
use crate::contact::{Contact, Other};
use crate::maths::Twist;
use crate::model::{BodyId, ContactMemory, Model, Rest, State};
use glam::DVec3;

/// The islands of a part, and which of them stay where they are while others are stepped.
pub(super) struct Islands {
    /// By body: the first body of its island.
    leaders: Vec<u32>,
    count: usize,
    /// Leaders of the islands that are stepped by themselves.
    alone: Vec<u32>,
    /// By body: whether its island sleeps; empty when none does.
    asleep: Vec<bool>,
    /// By body: whether it stays; empty when all move.
    held: Vec<bool>,
    /// The state before those that are held were stopped.
    before: State,
}

impl Islands {
    pub(super) fn new(model: &Model) -> Islands {
        let bodies = model.bodies().len();
        Islands {
            leaders: Vec::with_capacity(bodies),
            count: 0,
            alone: Vec::with_capacity(bodies),
            asleep: Vec::with_capacity(bodies),
            held: Vec::with_capacity(bodies),
            before: model.start(),
        }
    }

    /// Finds the islands of a part with these contacts, and which of them sleep, where bodies have been at `rest`; none is
    /// singled out yet. Returns how many there are.
    pub(super) fn find(&mut self, model: &Model, contacts: &[Contact], rest: &[Rest]) -> usize {
        self.alone.clear();
        self.asleep.clear();
        self.leaders.clear();
        self.leaders.extend(0..model.bodies().len() as u32);
        for joint in model.joints() {
            self.join(joint.child, joint.parent);
        }
        for spring in model.anchor_springs() {
            self.join(spring.a, spring.b);
        }
        for coupling in model.couplings() {
            let leader = coupling.leader.map(|id| model.joint(id).child);
            self.join(model.joint(coupling.follower).child, leader);
        }
        for contact in contacts {
            if let Other::Body(b) = contact.b {
                self.join(contact.a, Some(b));
            }
        }
        for body in 0..self.leaders.len() as u32 {
            self.leaders[body as usize] = self.leader(body);
        }
        if rest.iter().any(sleep::is_asleep) {
            self.asleep.resize(self.leaders.len(), true);
            for (leader, rest) in self.leaders.iter().zip(rest) {
                self.asleep[*leader as usize] &= sleep::is_asleep(rest);
            }
            for body in 0..self.leaders.len() {
                self.asleep[body] = self.asleep[self.leaders[body] as usize];
            }
        }
        self.count = self.leaders.iter().enumerate().filter(|(body, leader)| *body == **leader as usize).count();
        self.count
    }

    fn join(&mut self, a: BodyId, b: Option<BodyId>) {
        let Some(b) = b else { return };
        let (a, b) = (self.leader(a.0), self.leader(b.0));
        self.leaders[a.max(b) as usize] = a.min(b);
    }

    fn leader(&mut self, mut body: u32) -> u32 {
        while self.leaders[body as usize] != body {
            let above = self.leaders[body as usize];
            self.leaders[body as usize] = self.leaders[above as usize];
            body = above;
        }
        body
    }

    /// From now on the island of a body is stepped by itself. Returns how many are.
    pub(super) fn single_out(&mut self, body: BodyId) -> usize {
        let leader = self.leaders[body.index()];
        if !self.alone.contains(&leader) {
            self.alone.push(leader);
        }
        self.alone.len()
    }

    /// Whether all islands are stepped by themselves.
    pub(super) fn are_all_alone(&self) -> bool {
        self.alone.len() == self.count
    }

    /// None sleeps.
    pub(super) fn wake_all(&mut self) {
        self.asleep.clear();
    }

    /// How many bodies sleep.
    pub(super) fn asleep(&self) -> u32 {
        self.asleep.iter().filter(|asleep| **asleep).count() as u32
    }

    /// Holds the islands that sleep; tells whether any does.
    pub(super) fn hold_asleep(&mut self, model: &Model, state: &mut State) -> bool {
        if self.asleep() == 0 {
            return false;
        }
        for (body, _) in state.bodies.iter_mut().zip(&self.asleep).filter(|(_, asleep)| **asleep) {
            body.velocity = Twist::ZERO; // for good
        }
        self.held.clone_from(&self.asleep);
        self.stop(model, state);
        true
    }

    /// Holds the islands that are stepped by themselves, and those that sleep.
    pub(super) fn hold_alone(&mut self, model: &Model, state: &mut State) {
        let Islands { held, leaders, alone, asleep, .. } = self;
        let sleeps = |leader: &u32| asleep.get(*leader as usize).is_some_and(|asleep| *asleep);
        held.clear();
        held.extend(leaders.iter().map(|leader| alone.contains(leader) || sleeps(leader)));
        self.stop(model, state);
    }

    /// Holds all but one of those that are stepped by themselves.
    pub(super) fn hold_all_but(&mut self, one: usize, model: &Model, state: &mut State) {
        let Islands { held, leaders, alone, .. } = self;
        held.clear();
        held.extend(leaders.iter().map(|leader| *leader != alone[one]));
        self.stop(model, state);
    }

    /// By body: whether it stays; empty when all move.
    pub(super) fn held(&self) -> &[bool] {
        &self.held
    }

    /// Takes the motion from those that are held.
    fn stop(&mut self, model: &Model, state: &mut State) {
        self.before.clone_from(state);
        for (body, _) in state.bodies.iter_mut().zip(&self.held).filter(|(_, held)| **held) {
            body.velocity = Twist::ZERO;
        }
        for (memory, joint) in state.joints.iter_mut().zip(model.joints()) {
            if self.held[joint.child.index()] {
                memory.force = DVec3::ZERO;
            }
        }
    }

    /// Gives those that were held back what they had. All may move again.
    pub(super) fn release(&mut self, model: &Model, state: &mut State) {
        let Islands { held, before, .. } = self;
        for (i, _) in held.iter().enumerate().filter(|(_, held)| **held) {
            state.bodies[i] = before.bodies[i];
        }
        for (k, joint) in model.joints().iter().enumerate().filter(|(_, joint)| held[joint.child.index()]) {
            debug_assert!(joint.parent.is_none_or(|parent| held[parent.index()]));
            state.joints[k] = before.joints[k];
        }
        let is_held = |memory: &ContactMemory| memory.key.body(model).is_some_and(|body| held[body.index()]);
        state.contacts.retain(|memory| !is_held(memory)); // which a part that failed has left there
        state.contacts.extend(before.contacts.iter().filter(|memory| is_held(memory)));
        state.contacts.sort_unstable_by_key(|memory| memory.key);
        held.clear();
    }
}
