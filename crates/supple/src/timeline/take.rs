//! One take: stretches of steps, each beginning with a snapshot.

use super::TakeError;
use super::encode::{Bytes, Format, read_input, read_input_of, read_state, write_input, write_state};
use super::poses::{Grid, Trace};
use crate::input::Input;
use crate::maths::Pose;
use crate::model::{BodyState, Model, NodeState, State, Strayed};
use std::sync::Arc;

/// Where a take left another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Index of the other take.
    pub take: usize,
    /// The last step they share.
    pub step: u64,
}

/// A moment of a recording: what is needed to go on from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Steps since the start of the scene.
    pub step: u64,
    /// The state after them.
    pub state: State,
    /// The input of the last of them; before the first, that of the scene.
    pub input: Input,
    pub(super) place: Place,
}

impl Moment {
    /// A state that belongs to no recording, before its first step.
    pub fn new(state: State, input: Input) -> Moment {
        Moment { step: 0, state, input, place: Place { take: usize::MAX, stretch: 0, log: 0 } }
    }
}

/// Where a recording is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) take: usize,
    pub(super) stretch: usize,
    /// Bytes of the stretch's log that have been read.
    log: usize,
}

/// A recording being looked at: the stored poses of a step, its time and its input, without computing anything.
///
/// [`Timeline::look`](super::Timeline::look) moves it. Going forward is cheap; going back reads from the snapshot before.
#[derive(Clone, Debug, Default)]
pub struct Playback {
    /// Steps since the start of the scene.
    pub step: u64,
    /// \[s\]
    pub time: f64,
    /// The input of the last step; before the first, that of the scene.
    pub input: Input,
    place: Option<Place>,
    /// Bytes of the stretch's poses that have been read.
    poses: usize,
    trace: Trace,
    grid: Option<Grid>,
}

impl Playback {
    /// Number of bodies; 0 before anything was looked at.
    pub fn bodies(&self) -> usize {
        self.trace.bodies()
    }

    /// Where a body was, within half of what the recording's grid resolves.
    pub fn pose(&self, body: usize) -> Pose {
        self.grid.map_or(Pose::IDENTITY, |grid| self.trace.pose(grid, body))
    }
}

impl Playback {
    /// Brings a moment to what is looked at: step, time, input, and the stored poses, at rest. It is there to be shown, not to be gone on
    /// from; [`Timeline::seek`](super::Timeline::seek) finds one that is.
    ///
    /// # Panics
    /// When the moment has another number of bodies.
    pub fn show(&self, model: &Model, moment: &mut Moment) {
        let Moment { step, state, input, place } = moment;
        assert_eq!(state.bodies.len(), self.bodies(), "the moment has another number of bodies than the recording");
        *step = self.step;
        *place = Place { take: usize::MAX, stretch: 0, log: 0 };
        input.clone_from(&self.input);
        state.time = self.time;
        state.last_dt = 0.0;
        for (k, body) in state.bodies.iter_mut().enumerate() {
            *body = BodyState::at_rest(self.pose(k));
        }
        if let Some(grid) = self.grid {
            state.nodes.clear();
            state.nodes.extend(self.trace.nodes(grid).map(NodeState::at_rest));
        }
        state.recount_turns(model);
    }
}

/// A run of steps as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Take {
    /// Given by the user, or `take 2`.
    pub name: String,
    /// Where it left another take; `None` for the first.
    pub fork: Option<Fork>,
    /// Steps at which something is told, in order; what the texts mean is their writer's matter.
    pub(super) marks: Vec<(u64, String)>,
    /// Whether it was removed: it keeps its index, and may be restored.
    pub(super) removed: bool,
    /// Steps before its beginning.
    first: u64,
    /// Steps of a stretch.
    every: u32,
    grid: Grid,
    /// All but the last are full. A copy of a take shares them.
    pub(super) stretches: Vec<Arc<Stretch>>,
    /// The input of the last step; before the first, that of the moment it began at.
    last: Input,
    /// The poses after the last step.
    trace: Trace,
}

/// Steps that follow a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stretch {
    /// State, then the whole input of the step before.
    pub(super) snapshot: Vec<u8>,
    /// For each step the change of the input.
    pub(super) log: Vec<u8>,
    /// For each step the hash of the state after it.
    pub(super) hashes: Vec<u64>,
    /// For each step the poses after it.
    pub(super) poses: Vec<u8>,
}

impl Stretch {
    fn bytes(&self) -> usize {
        let Stretch { snapshot, log, hashes, poses } = self;
        snapshot.capacity() + log.capacity() + 8 * hashes.capacity() + poses.capacity() + size_of::<Stretch>() + 24
    }

    fn shrink(&mut self) {
        self.log.shrink_to_fit();
        self.hashes.shrink_to_fit();
        self.poses.shrink_to_fit();
    }
}

impl Take {
    /// An empty take without even a snapshot.
    pub(super) fn empty(name: impl Into<String>, fork: Option<Fork>, every: u32, grid: Grid) -> Take {
        Take {
            name: name.into(),
            fork,
            marks: Vec::new(),
            removed: false,
            first: fork.map_or(0, |fork| fork.step),
            every,
            grid,
            stretches: Vec::new(),
            last: Input::default(),
            trace: Trace::default(),
        }
    }

    /// A take that begins at a state.
    pub(super) fn new(
        name: impl Into<String>,
        fork: Option<Fork>,
        (every, grid): (u32, Grid),
        state: &State,
        input: &Input,
    ) -> Take {
        let mut take = Take::empty(name, fork, every, grid);
        take.last.clone_from(input);
        take.keep(state);
        take
    }

    /// Steps of the scene before this take's own.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The last step recorded.
    pub fn end(&self) -> u64 {
        let full = self.stretches.len().saturating_sub(1) as u64;
        self.first + full * u64::from(self.every) + self.stretches.last().map_or(0, |s| s.hashes.len() as u64)
    }

    /// Steps at which something is told of this take alone, in order. A step may lie after the last one recorded.
    pub fn marks(&self) -> &[(u64, String)] {
        &self.marks
    }

    /// Whether it was removed.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// The hash of the state after a step of this take.
    pub fn hash(&self, step: u64) -> Option<u64> {
        let k = step.checked_sub(self.first + 1)?;
        let (stretch, k) = (k / u64::from(self.every), k % u64::from(self.every));
        self.stretches.get(usize::try_from(stretch).ok()?)?.hashes.get(k as usize).copied()
    }

    /// Bytes held, nearly.
    pub(super) fn bytes(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.bytes()).sum()
    }

    /// Whether the last stretch is full: a snapshot follows.
    fn is_full(&self) -> bool {
        self.stretches.last().is_some_and(|stretch| stretch.hashes.len() >= self.every as usize)
    }

    pub(super) fn record(&mut self, input: &Input, state: &State) {
        let stretch = growing(&mut self.stretches);
        write_input(Some(&self.last), input, &mut stretch.log);
        stretch.hashes.push(state.hash());
        self.trace.write(self.grid, state, &mut stretch.poses);
        self.last.clone_from(input);
        if self.is_full() {
            self.keep(state);
        }
    }

    /// Begins a stretch.
    fn keep(&mut self, state: &State) {
        let mut snapshot = Vec::new();
        write_state(state, &mut snapshot);
        write_input(None, &self.last, &mut snapshot);
        snapshot.shrink_to_fit();
        self.begin(snapshot, state);
    }

    fn begin(&mut self, snapshot: Vec<u8>, state: &State) {
        if !self.stretches.is_empty() {
            growing(&mut self.stretches).shrink();
        }
        self.trace.start(self.grid, state);
        self.stretches.push(Arc::new(Stretch { snapshot, ..Stretch::default() }));
    }

    /// Frees what a removed take holds: it cannot be restored any more.
    pub(super) fn forget(&mut self) {
        self.stretches = Vec::new();
        self.trace = Trace::default();
    }

    /// The index of the stretch to which a step belongs.
    fn stretch_of(&self, step: u64) -> Option<usize> {
        let stretch = usize::try_from(step.checked_sub(self.first)? / u64::from(self.every)).ok()?;
        (stretch < self.stretches.len()).then_some(stretch)
    }

    /// The first step of a stretch.
    fn start_of(&self, stretch: usize) -> u64 {
        self.first + stretch as u64 * u64::from(self.every)
    }

    /// The last snapshot at or before a step. `index` is that of this take.
    pub(super) fn snapshot(&self, index: usize, step: u64) -> Option<Moment> {
        let stretch = self.stretch_of(step)?;
        let mut input = Input::default();
        // it was read once when the take was opened, or written by this program
        let state = read_snapshot(&self.stretches[stretch].snapshot, &mut input).ok()?;
        Some(Moment { step: self.start_of(stretch), state, input, place: Place { take: index, stretch, log: 0 } })
    }

    /// Brings an input to what it was in the next step after `step`, and tells the hash recorded after it. `index` is that of this take.
    pub(super) fn next_input(
        &self,
        index: usize,
        step: u64,
        input: &mut Input,
        place: &mut Place,
    ) -> Result<u64, TakeError> {
        let hash = self.hash(step + 1).ok_or(TakeError::Step { take: index, step: step + 1, end: Some(self.end()) })?;
        let stretch = self.stretch_of(step).expect("it holds the step after");
        if (place.take, place.stretch) != (index, stretch) {
            *place = Place { take: index, stretch, log: 0 }; // the stretch before, or the take that this one left, has been read
        }
        let log = &self.stretches[stretch].log;
        let mut from = Bytes(log.get(place.log..).ok_or(TakeError::damaged("the log is too short"))?);
        read_input(&mut from, input)?;
        place.log = log.len() - from.0.len();
        Ok(hash)
    }

    /// Moves a playback to a step of this take.
    pub(super) fn look(&self, index: usize, step: u64, playback: &mut Playback) -> Result<(), TakeError> {
        let missing = TakeError::Step { take: index, step, end: Some(self.end()) };
        let stretch = self.stretch_of(step).filter(|_| step <= self.end()).ok_or(missing)?;
        let goes_on = playback.place.is_some_and(|p| (p.take, p.stretch) == (index, stretch)) && playback.step <= step;
        if !goes_on {
            let state = read_snapshot(&self.stretches[stretch].snapshot, &mut playback.input)?;
            playback.trace.start(self.grid, &state);
            playback.grid = Some(self.grid);
            playback.poses = 0;
            playback.place = Some(Place { take: index, stretch, log: 0 });
            (playback.step, playback.time) = (self.start_of(stretch), state.time);
        }
        let poses = &self.stretches[stretch].poses;
        while playback.step < step {
            let place = playback.place.as_mut().expect("set above");
            self.next_input(index, playback.step, &mut playback.input, place)?;
            let mut from = Bytes(poses.get(playback.poses..).ok_or(TakeError::damaged("the poses are too short"))?);
            playback.trace.read(&mut from)?;
            playback.poses = poses.len() - from.0.len();
            playback.time += playback.input.dt;
            playback.step += 1;
        }
        Ok(())
    }

    /// Adds a snapshot as a file holds it; `size` is the number of bodies and joints that it must have.
    pub(super) fn add_snapshot(&mut self, format: Format, bytes: &[u8], size: (usize, usize)) -> Result<(), TakeError> {
        let (state, last) = self.checked(format, bytes, size, self.end())?;
        self.last = last;
        match format {
            Format::Now => self.begin(bytes.to_vec(), &state),
            Format::Eight => self.keep(&state),
        }
        Ok(())
    }

    /// A snapshot after `step`, as a file holds it, with nothing wrong.
    fn checked(
        &self,
        format: Format,
        bytes: &[u8],
        size: (usize, usize),
        step: u64,
    ) -> Result<(State, Input), TakeError> {
        let mut last = Input::default();
        let state = read_snapshot_of(format, bytes, &mut last)?;
        if (state.bodies.len(), state.joints.len()) != size {
            return Err(TakeError::damaged("a snapshot has another number of bodies or joints than the head"));
        }
        let mut trace = Trace::default();
        trace.start(self.grid, &state);
        self.check_places(state.strayed().or_else(|| trace.strayed(self.grid)), step)?;
        Ok((state, last))
    }

    /// Refuses what is farther away than any file may say after `step`.
    fn check_places(&self, strayed: Option<Strayed>, step: u64) -> Result<(), TakeError> {
        match strayed {
            Some(part) => Err(TakeError::Far { part: part.to_string(), take: self.name.clone(), step }),
            None => Ok(()),
        }
    }

    /// Adds steps as a file holds them, and the snapshot that follows where they end a stretch; `size` is as in [`Take::add_snapshot`]. All is read once, so
    /// that nothing is wrong later.
    pub(super) fn add_steps(
        &mut self,
        format: Format,
        hashes: &[u64],
        (log, poses, snapshot): (&[u8], &[u8], &[u8]),
        size: (usize, usize),
    ) -> Result<(), TakeError> {
        let room = self.stretches.last().map_or(0, |stretch| self.every as usize - stretch.hashes.len());
        if hashes.is_empty() || hashes.len() > room {
            return Err(TakeError::damaged("there are no steps, or more than fit before the next snapshot"));
        }
        let (mut inputs, mut traces) = (Bytes(log), Bytes(poses));
        // What is refused adds nothing: a journal is read up to there.
        let (mut last, mut trace) = (self.last.clone(), self.trace.clone());
        let (mut anew, end) = (Vec::new(), self.end());
        for k in 1..=hashes.len() as u64 {
            if format == Format::Now {
                read_input(&mut inputs, &mut last)?;
            } else {
                let before = last.clone();
                read_input_of(format, &mut inputs, &mut last)?;
                write_input(Some(&before), &last, &mut anew);
            }
            trace.read(&mut traces)?;
            self.check_places(trace.strayed(self.grid), end + k)?;
        }
        if !inputs.0.is_empty() || !traces.0.is_empty() {
            return Err(TakeError::damaged("the log or the poses are longer than the steps"));
        }
        let is_full = hashes.len() == room;
        if is_full {
            self.checked(format, snapshot, size, end + hashes.len() as u64)?;
        } else if !snapshot.is_empty() {
            return Err(TakeError::damaged("a snapshot stands where steps are missing"));
        }
        (self.last, self.trace) = (last, trace);
        let stretch = growing(&mut self.stretches);
        stretch.hashes.extend_from_slice(hashes);
        stretch.log.extend_from_slice(if format == Format::Now { log } else { &anew });
        stretch.poses.extend_from_slice(poses);
        if is_full { self.add_snapshot(format, snapshot, size) } else { Ok(()) }
    }
}

/// The stretch that grows, made this take's own if a copy shares it.
fn growing(stretches: &mut [Arc<Stretch>]) -> &mut Stretch {
    Arc::make_mut(stretches.last_mut().expect("a take begins with a snapshot"))
}

/// A snapshot: a state, then a whole input.
fn read_snapshot(bytes: &[u8], input: &mut Input) -> Result<State, TakeError> {
    read_snapshot_of(Format::Now, bytes, input)
}

fn read_snapshot_of(format: Format, bytes: &[u8], input: &mut Input) -> Result<State, TakeError> {
    let mut from = Bytes(bytes);
    let state = read_state(&mut from)?;
    *input = Input::default();
    read_input_of(format, &mut from, input)?;
    if from.0.is_empty() { Ok(state) } else { Err(TakeError::damaged("a snapshot is too long")) }
}
