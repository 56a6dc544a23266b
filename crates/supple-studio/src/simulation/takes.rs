//! What the simulation does with takes: going to a step, forking, removing, comparing, undoing, and the journal.

use super::*;
use crate::protocol::{AsideLine, JournalLine, TakeLine};
use crate::variants::{Part, PartError, Variation};
use std::time::SystemTime;

/// Going to a step of a larger character shows the stored poses; what is needed to go on is computed when one goes on. Computing the steps
/// since the last snapshot again would take longer than a frame.
const COMPUTED_AT_ONCE: usize = 200;
/// What was open before another scene, or before a bone was changed, is kept for undoing, up to this size \[bytes\] and number.
const MAX_PUT_ASIDE: (usize, usize) = (256 << 20, 20);

/// Whether a request led to another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Not,
    Elsewhere,
}

/// Why recorded steps are shown as stored and not computed again; `None` when they can be computed.
pub(super) fn why_stored(scene: &Scene, recipe: &Recipe, file: &TakeFile, build: &str) -> Option<String> {
    if !file.timeline.is_of(&scene.model) {
        return Some(match recipe.file() {
            Some(path) => format!("{} has changed since it was recorded: put the file back as it was", path.display()),
            None => "the model of its scene has changed since it was recorded".into(),
        });
    }
    (file.build != build).then(|| format!("it was recorded by another build ({})", file.build))
}

/// The takes of a stage, for the list.
pub(super) fn takes_told(stage: &Stage) -> Vec<Option<TakeLine<'_>>> {
    let takes = stage.timeline.takes().iter().map(|take| {
        (!take.is_removed()).then(|| TakeLine {
            name: &take.name,
            parent: take.fork.map(|fork| fork.take),
            first: take.first(),
            end: take.end(),
        })
    });
    takes.collect()
}

fn refused(error: &TakeError) -> Refused {
    ("studio/take", error.to_string())
}

impl Simulation {
    pub(super) fn tell_if_stored(&mut self) {
        if let Some(why) = &self.stage.stored {
            let text =
                format!("The take is shown as it was stored, because {why}. What is computed from it may differ.");
            self.tell("warning", text);
        }
    }

    /// Another stage takes the place of the present one, which can be brought back by undoing.
    pub(super) fn put_aside(&mut self, stage: Stage) {
        let mut before = self.change_stage(stage);
        let lost = before.history.drop_undone();
        before.timeline.forget(&lost);
        self.later.clear();
        self.earlier.push(before);
        let (bytes, count) = MAX_PUT_ASIDE;
        let held = |stages: &[Stage]| stages.iter().map(|stage| stage.timeline.bytes()).sum::<usize>();
        while self.earlier.len() > count || held(&self.earlier) > bytes {
            self.earlier.remove(0);
        }
    }

    /// Another stage takes the place of the present one, whose journal is kept if it holds what was not saved.
    fn change_stage(&mut self, stage: Stage) -> Stage {
        let mut before = std::mem::replace(&mut self.stage, stage);
        self.stage.put_aside = false;
        before.put_aside = match before.unsaved() {
            ByHand::Nothing => false,
            // The next one may have its bones as they were changed.
            ByHand::Rig => !self.stage.recipe.goes_on_from(&before.recipe),
            ByHand::Takes => true,
        };
        if let Some(journal) = &self.journal {
            journal.hold(self.stage.sheet, self.stage.takes(&self.build));
            if before.put_aside {
                journal.hold(before.sheet, before.takes(&self.build));
            } else {
                journal.let_go(before.sheet, Some(self.stage.sheet));
            }
        }
        self.unwritten = true;
        before
    }

    /// What undo and redo would do.
    pub(super) fn labels(&self) -> (Option<String>, Option<String>) {
        let history = &self.stage.history;
        let open = |stage: &Stage| stage.begun_by.clone().unwrap_or_else(|| format!("open {}", stage.scene.name));
        let undo = history.undo_label().map(str::to_owned);
        let redo = history.redo_label().map(str::to_owned);
        (undo.or_else(|| self.earlier.last().map(|_| open(&self.stage))), redo.or_else(|| self.later.last().map(open)))
    }

    /// Takes of the same file before and after edits of its rig, the oldest first. Those without a step are none.
    pub(super) fn aside_told(&self) -> Vec<AsideLine<'_>> {
        let edit = |stage: &Stage| stage.begun_by.clone().unwrap_or_else(|| format!("open {}", stage.scene.name));
        let is_same = |stage: &Stage| stage.recipe.file().is_some() && stage.recipe.file() == self.stage.recipe.file();
        let recorded = |stage: &Stage| stage.timeline.takes().iter().any(|take| take.end() > 0);
        let after = |k: usize| self.earlier.get(k + 1).unwrap_or(&self.stage);
        let line = |stage: &'_ Stage, mark: String| (stage.sheet, mark, is_same(stage) && recorded(stage));
        let earlier = self.earlier.iter().enumerate().map(|(k, stage)| {
            let (sheet, mark, shown) = line(stage, format!("before {}", edit(after(k))));
            (shown, AsideLine { sheet, mark, takes: takes_told(stage) })
        });
        let later = self.later.iter().rev().map(|stage| {
            let (sheet, mark, shown) = line(stage, format!("after {}", edit(stage)));
            (shown, AsideLine { sheet, mark, takes: takes_told(stage) })
        });
        earlier.chain(later).filter(|(shown, _)| *shown).map(|(_, line)| line).collect()
    }

    /// Goes back or on to the rig of another sheet, by undoing or doing again, and to the end of one of its takes.
    pub(super) fn go_aside(&mut self, sheet: u32, take: usize) -> Result<(), Refused> {
        let is = |stage: &Stage| stage.sheet == sheet;
        let (back, on) = (self.earlier.iter().any(is), self.later.iter().any(is));
        let meant = self.earlier.iter().chain(&self.later).find(|stage| is(stage));
        let there = meant.and_then(|stage| stage.timeline.takes().get(take)).filter(|take| !take.is_removed());
        let Some(end) = there.map(|take| take.end()) else {
            return Err(("studio/take", format!("there is no take {take} of a rig {sheet}")));
        };
        while self.stage.sheet != sheet {
            let (from, to) = if back { (&mut self.earlier, true) } else { (&mut self.later, false) };
            let Some(next) = from.pop().filter(|_| back || on) else { break };
            let now = self.exchange(next);
            if to { self.later.push(now) } else { self.earlier.push(now) }
        }
        self.stage.seek(take, end)?;
        Ok(())
    }

    pub(super) fn undo(&mut self) -> Result<(), Refused> {
        if let Some(edit) = self.stage.history.pop_done() {
            self.stage.touch(ByHand::Takes);
            if self.stage.revert(edit)? == Moved::Elsewhere {
                self.playing = false;
            }
        } else if let Some(earlier) = self.earlier.pop() {
            let now = self.exchange(earlier);
            self.later.push(now);
        } else {
            return Err(("studio/value", "there is nothing to undo".into()));
        }
        Ok(())
    }

    pub(super) fn redo(&mut self) -> Result<(), Refused> {
        if let Some(edit) = self.stage.history.pop_undone() {
            self.stage.touch(ByHand::Takes);
            if self.stage.repeat(edit)? == Moved::Elsewhere {
                self.playing = false;
            }
        } else if let Some(later) = self.later.pop() {
            let now = self.exchange(later);
            self.earlier.push(now);
        } else {
            return Err(("studio/value", "there is nothing to do again".into()));
        }
        Ok(())
    }

    /// Shows another stage, paused, and returns the present one.
    fn exchange(&mut self, mut stage: Stage) -> Stage {
        self.generations += 1;
        stage.generation = self.generations;
        stage.let_go(|_| true);
        self.playing = false;
        let before = self.change_stage(stage);
        self.publish_all();
        before
    }

    /// Hands what is new to the journal, and tells when that begins or ceases to fail.
    pub(super) fn write_journal(&mut self) {
        let unwritten = std::mem::replace(&mut self.unwritten, false);
        let Some(journal) = &self.journal else { return };
        if unwritten {
            journal.hold(self.stage.sheet, self.stage.takes(&self.build));
        }
        let trouble = journal.trouble();
        if trouble == self.trouble {
            return;
        }
        let (level, text) = match &trouble {
            Some(trouble) => {
                let text = format!(
                    "The journal cannot be written ({trouble}). What is recorded is in memory alone: save what you want to keep. \
                     supple keeps trying."
                );
                ("error", text)
            }
            None => ("info", "The journal is written again, with all that was recorded meanwhile.".to_owned()),
        };
        self.trouble = trouble;
        (self.teller)(&text);
        self.tell(level, text);
    }

    /// Whether the journal holds all that was handed over, and what it has to tell is told.
    pub(super) fn is_journal_settled(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.is_settled() && self.trouble.is_none())
    }

    /// Ends the journal, which keeps what was made by hand and not saved; what it cannot keep is written elsewhere.
    pub(super) fn close(&mut self) -> Closed {
        let aside = self.earlier.iter().chain(&self.later).filter(|stage| stage.put_aside);
        let present = (self.stage.unsaved() != ByHand::Nothing).then_some(&self.stage);
        let unsaved = present.into_iter().chain(aside).map(|stage| (stage.sheet, stage.takes(&self.build)));
        let (kept, unwritten, trouble) = match self.journal.take() {
            None => (0, unsaved.map(|(_, takes)| Arc::new(takes)).collect(), None),
            Some(journal) => {
                unsaved.for_each(|(sheet, takes)| journal.hold(sheet, takes));
                if present.is_none() {
                    journal.let_go(self.stage.sheet, None);
                }
                let journal::Ended { kept, unwritten, trouble } = journal.end();
                (kept, unwritten, trouble)
            }
        };
        let mut closed = Closed { kept, trouble, ..Closed::default() };
        for takes in unwritten {
            match journal::rescue(&self.disk, &self.rescue, &takes) {
                Some(path) => closed.elsewhere.push(path),
                None => closed.lost += 1,
            }
        }
        closed
    }

    pub(super) fn journals_told(&self) -> Vec<JournalLine<'_>> {
        self.orphans
            .iter()
            .map(|(journal, orphan)| {
                let summary = &orphan.summary;
                let written = summary.written.duration_since(SystemTime::UNIX_EPOCH);
                JournalLine {
                    journal: *journal,
                    scene: &summary.scene,
                    takes: summary.takes,
                    steps: summary.steps,
                    seconds: summary.seconds,
                    written: written.map_or(0, |time| time.as_secs()),
                    build: &summary.build,
                }
            })
            .collect()
    }

    /// Opens an unfinished session in place of the present one. Its journal goes when ours holds its takes.
    pub(super) fn recover(&mut self, journal: u32) -> Result<(), Refused> {
        let orphan = self.orphans.get_mut(&journal).ok_or_else(|| missing(journal))?;
        let file = orphan.read().map_err(|text| ("studio/journal", text))?;
        let opening = Opening::of(file, &self.files, TakesFrom::Journal);
        let opening = opening.map_err(|(_, text)| ("studio/journal", text))?;
        self.open(opening).map_err(|(_, text)| ("studio/journal", text))?;
        self.stage.touch(ByHand::Takes); // it was never saved
        let orphan = self.orphans.remove(&journal).expect("it was just read");
        if let Some(journal) = &self.journal {
            journal.take_over(self.stage.sheet, self.stage.takes(&self.build), orphan);
        } // without a journal of our own it stays where it is
        Ok(())
    }

    pub(super) fn discard(&mut self, journal: u32) -> Result<(), Refused> {
        let orphan = self.orphans.remove(&journal).ok_or_else(|| missing(journal))?;
        orphan.discard().map_err(|error| ("studio/journal", format!("the journal cannot be removed: {error}")))
    }
}

fn missing(journal: u32) -> Refused {
    ("studio/journal", format!("there is no journal {journal}"))
}

impl Stage {
    /// A copy of the takes for the journal.
    pub(super) fn takes(&self, build: &str) -> Takes {
        Takes { timeline: self.timeline.clone(), take: self.take, build: build.to_owned() }
    }

    /// Goes to a step of a take.
    pub(super) fn seek(&mut self, take: usize, step: u64) -> Result<(), Refused> {
        self.go_to(take, step).map_err(|error| refused(&error))
    }

    pub(super) fn go_to(&mut self, take: usize, step: u64) -> Result<(), TakeError> {
        self.timeline.check_step(take, step)?; // what is refused moves nothing
        let model = &self.scene.model;
        if self.stored.is_none() && model.bodies().len() <= COMPUTED_AT_ONCE {
            // The step before is sought and the last one done again, for its report and loads.
            self.now = self.timeline.seek(model, take, step.saturating_sub(1), &mut self.work)?;
            self.computed = true;
            self.measure();
            if step > 0 {
                let model = &self.scene.model;
                self.report = self.timeline.advance(model, take, &mut self.now, &mut self.work)?.report;
            }
        } else {
            self.timeline.look(take, step, &mut self.playback)?;
            self.playback.show(model, &mut self.now);
            self.computed = false;
            self.measure();
        }
        self.take = take;
        self.run = Run::new(&self.scene.model, &self.now.input, &self.now.state);
        self.let_go(|_| true);
        (self.failed, self.culprit) = (false, None);
        self.recall_tones();
        self.adopt();
        Ok(())
    }

    /// The report of a state that no step has just led to.
    fn measure(&mut self) {
        let gap = supple::measure::joint_gap(&self.scene.model, &self.now.state);
        self.report = Report {
            max_joint_gap: gap.distance,
            max_joint_tilt: gap.tilt,
            widest_joint: gap.joint,
            ..Report::default()
        };
        self.step_micros = 0.0;
        self.work.watch(INSTRUMENTS); // forgets what it noted of other steps
    }

    /// Makes the present moment one that can be gone on from.
    pub(super) fn compute(&mut self) -> Result<(), TakeError> {
        if !self.computed {
            self.now = self.timeline.seek(&self.scene.model, self.take, self.now.step, &mut self.work)?;
            self.computed = true;
        }
        Ok(())
    }

    /// Does the next recorded step again, or shows it as stored.
    pub(super) fn replay(&mut self) -> Result<Advanced, String> {
        let clock = Instant::now();
        let mut differs = false;
        if self.stored.is_none() {
            self.compute().map_err(|error| error.to_string())?;
            let done = self.timeline.advance(&self.scene.model, self.take, &mut self.now, &mut self.work);
            self.step_micros = 1e6 * clock.elapsed().as_secs_f64();
            let outcome = match done {
                Ok(outcome) => outcome,
                Err(TakeError::Replay { error, .. }) => return Err(self.explain(&error)),
                Err(error) => return Err(error.to_string()),
            };
            self.report = outcome.report;
            differs = !outcome.identical;
            if differs {
                self.stored = Some(format!("this machine computes step {} of it otherwise", self.now.step));
                self.show_stored(self.now.step)?;
            }
        } else {
            self.show_stored(self.now.step + 1)?;
        }
        if !self.is_replaying() {
            self.recall_tones();
            self.adopt();
        }
        Ok(match (differs, self.is_replaying()) {
            (true, _) => Advanced::Differs,
            (false, true) => Advanced::Usual,
            (false, false) => Advanced::Resumed,
        })
    }

    fn show_stored(&mut self, step: u64) -> Result<(), String> {
        self.timeline.look(self.take, step, &mut self.playback).map_err(|error| error.to_string())?;
        self.playback.show(&self.scene.model, &mut self.now);
        self.computed = false;
        self.measure();
        Ok(())
    }

    /// Leaves the recorded take if the present step is not its last, before anything is changed by hand.
    pub(super) fn fork(&mut self) -> Result<Option<Begun>, Refused> {
        if !self.is_replaying() {
            return Ok(None);
        }
        self.compute().map_err(|error| refused(&error))?;
        self.shares = Shares::of(&self.now.input.control);
        let from = (self.take, self.now.step);
        let name = self.timeline.free_name();
        self.take = self.timeline.fork(Fork { take: from.0, step: from.1 }, name, &self.now);
        self.recall_tones();
        Ok(Some(Begun { from, removed: Vec::new() }))
    }

    /// Does a part of a take again with something else in it: another take, which ends with that part.
    pub(super) fn take_variant(
        &mut self,
        take: usize,
        (from, to): (u64, u64),
        variation: &Variation,
    ) -> Result<(), Refused> {
        self.check_take(take)?;
        variation.check().map_err(|what| ("studio/value", what))?;
        let scene = self.scene.clone();
        let model = &scene.model;
        let part = Part::read(model, &self.timeline, take, (from, to), &mut self.work).map_err(|e| match e {
            PartError::Value(what) => ("studio/value", what),
            PartError::Take(error) => refused(&error),
        })?;
        let mut done = Vec::with_capacity(part.steps());
        part.run(model, variation, &mut self.work, |input, state| done.push((input.clone(), state.clone())))
            .map_err(|error| ("studio/value", format!("this variant fails: {error}")))?;
        if let Some(part) = done.iter().find_map(|(_, state)| state.strayed()) {
            let name = part.name(model);
            let what = format!("this variant leads {name} more than {MOST_LENGTH} m away");
            return Err(("studio/value", what));
        }
        let place = (self.take, self.now.step);
        let shift = (variation.delay / part.begin.input.dt).round() as i64;
        // What was marked in the part happens in the variant, too, so that playing on goes on from it.
        let later = |step: u64| (step as i64 + shift).clamp(from as i64, to as i64) as u64;
        let marks = self.timeline.marks(take).into_iter().filter(|(step, _)| (from..=to).contains(step));
        let marks = marks.map(|(step, text)| (if step == from { from } else { later(step) }, text.to_owned()));
        let marks: Vec<(u64, String)> = marks.collect();
        let own = self.timeline.fork(Fork { take, step: from }, variation.name(), &part.begin);
        for (input, state) in &done {
            self.timeline.record(own, input, state);
        }
        self.timeline.set_marks(own, marks);
        self.seek(own, to)?;
        let begun = Some(Begun { from: place, removed: Vec::new() });
        self.add_edit(Edit { label: variation.name(), take: own, begun, what: What::Pull });
        Ok(())
    }

    fn check_take(&self, take: usize) -> Result<(), Refused> {
        match self.timeline.takes().get(take) {
            Some(t) if !t.is_removed() => Ok(()),
            _ => Err(("studio/take", format!("there is no take {take}"))),
        }
    }

    pub(super) fn rename(&mut self, take: usize, name: &str) -> Result<(), Refused> {
        self.check_take(take)?;
        if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
            return Err(("studio/value", "a name has 1 to 80 letters".into()));
        }
        let before = self.timeline.takes()[take].name.clone();
        if before != name {
            self.timeline.rename(take, name);
            let what = What::Rename { before: before.clone(), after: name.to_owned() };
            self.add_edit(Edit { label: format!("rename {before}"), take, begun: None, what });
        }
        Ok(())
    }

    /// Removes a take and all that left it; who is in one of them goes to where the take left.
    pub(super) fn delete(&mut self, take: usize) -> Result<Moved, Refused> {
        self.check_take(take)?;
        let place = (self.take, self.now.step);
        let removed = self.timeline.remove(take).map_err(|error| refused(&error))?;
        let label = match removed.len() {
            1 => format!("delete {}", self.timeline.takes()[take].name),
            n => format!("delete {} and {} from it", self.timeline.takes()[take].name, n - 1),
        };
        let moved = self.leave(&removed)?;
        self.add_edit(Edit { label, take, begun: None, what: What::Delete { removed, place } });
        Ok(moved)
    }

    /// Takes were removed: who is in one of them goes to where the first of them left.
    fn leave(&mut self, removed: &[usize]) -> Result<Moved, Refused> {
        if self.compare.is_some_and(|take| removed.contains(&take)) {
            self.compare = None;
        }
        match removed.first().and_then(|first| self.timeline.takes()[*first].fork) {
            Some(fork) if removed.contains(&self.take) => {
                self.seek(fork.take, fork.step)?;
                Ok(Moved::Elsewhere)
            }
            _ => Ok(Moved::Not),
        }
    }

    pub(super) fn set_compare(&mut self, take: Option<usize>) -> Result<(), Refused> {
        take.map_or(Ok(()), |take| self.check_take(take))?;
        self.compare = take;
        Ok(())
    }

    /// Brings the take that is compared with to the present step. Returns whether it has one.
    pub(super) fn look_beside(&mut self) -> bool {
        match self.compare {
            Some(take) if take != self.take => self.timeline.look(take, self.now.step, &mut self.other).is_ok(),
            _ => false,
        }
    }

    pub(super) fn add_edit(&mut self, edit: Edit) {
        let lost = self.history.add(edit);
        self.timeline.forget(&lost);
    }

    /// Undoes an edit.
    pub(super) fn revert(&mut self, mut edit: Edit) -> Result<Moved, Refused> {
        let mut moved = Moved::Not;
        if let Some(begun) = &mut edit.begun {
            begun.removed = self.timeline.remove(edit.take).map_err(|error| refused(&error))?;
            if self.compare.is_some_and(|take| begun.removed.contains(&take)) {
                self.compare = None;
            }
            self.seek(begun.from.0, begun.from.1)?;
            moved = Moved::Elsewhere;
        } else if self.is_of_the_end(&edit.what) {
            moved = self.go_to_end(edit.take)?;
        }
        match &edit.what {
            What::Pull => {}
            What::Set { before, after } if self.is_keying(after, before) => self.put_keys(after, before),
            What::Set { before, .. } => self.apply(before),
            What::Pin { body, before, .. } => self.hold_body(*body, *before),
            What::Rename { before, .. } => self.timeline.rename(edit.take, before),
            What::Marks { step, before, back, .. } => self.put_marks(edit.take, *step, before, back),
            What::Delete { removed, place } => {
                self.timeline.restore(removed);
                self.seek(place.0, place.1)?;
                moved = Moved::Elsewhere;
            }
        }
        self.history.push_undone(edit);
        Ok(moved)
    }

    /// Does an edit again.
    pub(super) fn repeat(&mut self, mut edit: Edit) -> Result<Moved, Refused> {
        let mut moved = Moved::Not;
        if let Some(begun) = &mut edit.begun {
            self.timeline.restore(&std::mem::take(&mut begun.removed));
        }
        if edit.begun.is_some() || self.is_of_the_end(&edit.what) {
            moved = self.go_to_end(edit.take)?;
        }
        match &edit.what {
            What::Pull => {}
            What::Set { before, after } if self.is_keying(before, after) => self.put_keys(before, after),
            What::Set { after, .. } => self.apply(after),
            What::Pin { body, after, .. } => self.hold_body(*body, *after),
            What::Rename { after, .. } => self.timeline.rename(edit.take, after),
            What::Marks { step, after, .. } => self.put_marks(edit.take, *step, after, &[]),
            What::Delete { .. } => {
                let removed = self.timeline.remove(edit.take).map_err(|error| refused(&error))?;
                moved = self.leave(&removed)?;
            }
        }
        self.history.push_done(edit);
        Ok(moved)
    }

    /// Whether an edit is undone where the next live step begins. Keyframes belong to no step: one stays where one is.
    fn is_of_the_end(&self, what: &What) -> bool {
        match what {
            What::Set { before, after } => !self.is_keying(before, after),
            What::Pin { .. } => true,
            What::Marks { back, .. } => !back.is_empty(),
            What::Pull | What::Rename { .. } | What::Delete { .. } => false,
        }
    }

    /// Goes to the end of a take, where the next live step begins, unless one is there.
    fn go_to_end(&mut self, take: usize) -> Result<Moved, Refused> {
        if self.take == take && !self.is_replaying() {
            return Ok(Moved::Not);
        }
        self.seek(take, self.timeline.takes()[take].end())?;
        Ok(Moved::Elsewhere)
    }

    /// Holds a body at a place, or lets it go.
    pub(super) fn hold_body(&mut self, body: u32, pin: Option<Pin>) {
        match pin {
            Some(pin) => self.pins.insert(body, pin),
            None => self.pins.remove(&body),
        };
    }

    /// The present values of the settings that a change names.
    pub(super) fn settings_before(&self, change: &Change) -> Change {
        let s = &self.settings;
        let joint = |change: &JointChange| {
            let JointInput { stiffness_scale, damping_scale, .. } = s.joint(change.joint as usize);
            JointChange { joint: change.joint, stiffness_scale, damping_scale }
        };
        Change {
            solver: change.solver.as_ref().map(|_| s.solver.choice().to_owned()),
            dt: change.dt.map(|_| s.dt),
            substeps: change.substeps.map(|_| s.substeps),
            gravity: change.gravity.map(|_| s.gravity.to_array()),
            stiffness_scale: change.stiffness_scale.map(|_| s.stiffness_scale),
            damping_scale: change.damping_scale.map(|_| s.damping_scale),
            torques: change.torques.map(|_| s.torques),
            contacts: change.contacts.map(|_| ContactsTold::of(s.contacts)),
            contact_stiffness: change.contact_stiffness.and_then(|_| springs(s.solver)).map(|law| law.stiffness),
            contact_slip: change.contact_slip.and_then(|_| springs(s.solver)).map(|law| law.slip),
            script: change.script.map(|_| self.script),
            hold: change.hold.map(|_| self.hold),
            pose: change.pose.map(|_| self.is_posing()),
            budget: change.budget.map(|_| self.budget_micros()),
            control: change.control.as_ref().map(|_| Box::new(self.control_told())),
            joints: change.joints.iter().map(joint).collect(),
        }
    }

    /// Changes settings, for the next live steps.
    pub(super) fn apply(&mut self, change: &Change) {
        let Change {
            solver,
            dt,
            substeps,
            gravity,
            stiffness_scale,
            damping_scale,
            torques,
            contacts,
            contact_stiffness,
            contact_slip,
            script,
            hold,
            pose,
            budget,
            control,
            joints,
        } = change;
        let s = &mut self.settings;
        s.solver = solver.as_ref().and_then(|name| s.solver.choose(name)).unwrap_or(s.solver);
        s.dt = dt.unwrap_or(s.dt);
        s.substeps = substeps.unwrap_or(s.substeps);
        s.gravity = gravity.map_or(s.gravity, DVec3::from_array);
        s.stiffness_scale = stiffness_scale.unwrap_or(s.stiffness_scale);
        s.damping_scale = damping_scale.unwrap_or(s.damping_scale);
        s.torques = torques.unwrap_or(s.torques);
        s.contacts = contacts.map_or(s.contacts, ContactsTold::contacts);
        for j in joints {
            let input = s.joint_mut(&self.scene.model, j.joint as usize);
            *input = JointInput { stiffness_scale: j.stiffness_scale, damping_scale: j.damping_scale, ..*input };
        }
        if let Some(script) = *script
            && script != self.script
        {
            self.hold();
            self.script = script;
        }
        self.hold = hold.unwrap_or(self.hold);
        if let Some(on) = *pose {
            self.set_posing(on);
        }
        if let Some(micros) = *budget {
            self.set_budget(micros);
        }
        if let Some(told) = control {
            self.apply_control(told);
        }
        if let Solver::Reduced(Reduced { contacts: law, .. }) = &mut self.settings.solver {
            law.stiffness = contact_stiffness.unwrap_or(law.stiffness);
            law.slip = contact_slip.unwrap_or(law.slip);
        }
    }

    /// The solver that moves the scene after a change.
    pub(super) fn solver_after(&self, change: &Change) -> Solver {
        let now = self.settings.solver;
        let chosen = change.solver.as_ref().and_then(|name| now.choose(name)).unwrap_or(now);
        change.control.as_ref().map_or(chosen, |told| self.solver_for(told.mode, chosen))
    }

    /// What a change of settings is called when it is undone.
    pub(super) fn label_of(&self, change: &Change) -> String {
        let Change {
            solver,
            dt,
            substeps,
            gravity,
            stiffness_scale,
            damping_scale,
            torques,
            contacts,
            contact_stiffness,
            contact_slip,
            script,
            hold,
            pose,
            budget,
            control,
            joints,
        } = change;
        let joint = joints.first().map(|first| {
            let name = &self.scene.model.joints()[first.joint as usize].name;
            if joints.len() == 1 { format!("joint {name}") } else { format!("joints from {name} on") }
        });
        let named = [
            (solver.is_some(), "solver"),
            (dt.is_some(), "length of a step"),
            (substeps.is_some(), "parts of a step"),
            (gravity.is_some(), "gravity"),
            (stiffness_scale.is_some(), "joint stiffness"),
            (damping_scale.is_some(), "joint damping"),
            (torques.is_some(), "joint torques"),
            (contacts.is_some(), "contacts"),
            (contact_stiffness.is_some(), "stiffness at contacts"),
            (contact_slip.is_some(), "slip at contacts"),
            (script.is_some(), "scene motion"),
            (hold.is_some(), "hold"),
            (pose.is_some(), "posing"),
            (budget.is_some(), "budget"),
            (control.is_some(), "direction"),
        ];
        let mut names: Vec<String> = named.into_iter().filter(|n| n.0).map(|n| n.1.to_owned()).collect();
        names.extend(joint);
        names.join(", ")
    }
}
