//! One take: snapshots, input changes, hashes.

use super::TakeError;
use super::encode::{Bytes, put_text, put_u32, put_u64, read_input, read_state, write_input, write_state};
use crate::input::Input;
use crate::model::State;

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
    /// The take whose log is being read and the place in it.
    place: (usize, usize),
}

/// A run of steps as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Take {
    /// Given by the user, or `take 2`.
    pub name: String,
    /// Where it left another take; `None` for the first.
    pub fork: Option<Fork>,
    /// Steps before its beginning.
    first: u64,
    snapshots: Vec<Snapshot>,
    /// For each step the change of the input.
    log: Vec<u8>,
    /// For each step the hash of the state after it.
    hashes: Vec<u64>,
    /// The input of the last step; before the first, that of the moment it began at.
    last: Input,
}

/// A state within the take.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot {
    /// Steps since the start of the scene.
    step: u64,
    /// Where the log goes on from here.
    log: usize,
    /// State, then the whole input of the step before.
    bytes: Vec<u8>,
}

impl Take {
    pub(super) fn new(name: impl Into<String>, fork: Option<Fork>, state: &State, input: &Input) -> Take {
        let mut take = Take {
            name: name.into(),
            fork,
            first: fork.map_or(0, |fork| fork.step),
            snapshots: Vec::new(),
            log: Vec::new(),
            hashes: Vec::new(),
            last: input.clone(),
        };
        take.keep(state);
        take
    }

    /// Steps of the scene before this take's own.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The last step recorded.
    pub fn end(&self) -> u64 {
        self.first + self.hashes.len() as u64
    }

    /// The hash of the state after a step of this take.
    pub fn hash(&self, step: u64) -> Option<u64> {
        let k = step.checked_sub(self.first + 1)?;
        self.hashes.get(usize::try_from(k).ok()?).copied()
    }

    pub(super) fn bytes(&self) -> usize {
        self.log.len() + 8 * self.hashes.len() + self.snapshots.iter().map(|s| s.bytes.len() + 48).sum::<usize>()
    }

    pub(super) fn record(&mut self, every: u32, input: &Input, state: &State) {
        write_input(Some(&self.last), input, &mut self.log);
        self.last.clone_from(input);
        self.hashes.push(state.hash());
        if (self.hashes.len() as u64).is_multiple_of(u64::from(every)) {
            self.keep(state);
        }
    }

    fn keep(&mut self, state: &State) {
        let mut bytes = Vec::new();
        write_state(state, &mut bytes);
        write_input(None, &self.last, &mut bytes);
        bytes.shrink_to_fit();
        self.snapshots.push(Snapshot { step: self.end(), log: self.log.len(), bytes });
    }

    /// The last snapshot at or before a step. `index` is that of this take.
    pub(super) fn snapshot(&self, index: usize, step: u64) -> Option<Moment> {
        let after = self.snapshots.partition_point(|s| s.step <= step);
        let snapshot = &self.snapshots[after.checked_sub(1)?];
        let mut from = Bytes(&snapshot.bytes);
        let mut input = Input::default();
        // both were read once when the take was opened, or written by this program
        let state = read_state(&mut from).ok()?;
        read_input(&mut from, &mut input).ok()?;
        Some(Moment { step: snapshot.step, state, input, place: (index, snapshot.log) })
    }

    /// Brings `moment.input` to what it was in the next step, and tells the hash recorded after it. `index` is that of this take.
    pub(super) fn next_input(&self, moment: &mut Moment, index: usize) -> Result<u64, TakeError> {
        let missing = TakeError::Step { take: index, step: moment.step + 1 };
        let hash = self.hash(moment.step + 1).ok_or(missing)?;
        if moment.place.0 != index {
            moment.place = (index, 0); // crossed from the take that this one left: its log begins
        }
        let mut from = Bytes(self.log.get(moment.place.1..).ok_or(TakeError::damaged("the log is too short"))?);
        read_input(&mut from, &mut moment.input)?;
        moment.place.1 = self.log.len() - from.0.len();
        Ok(hash)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Take { name, fork, first, snapshots, log, hashes, last: _ } = self;
        put_text(out, name);
        put_u32(out, fork.map_or(u32::MAX, |f| f.take as u32));
        put_u64(out, *first);
        put_u64(out, hashes.len() as u64);
        hashes.iter().for_each(|hash| put_u64(out, *hash));
        put_u64(out, log.len() as u64);
        out.extend_from_slice(log);
        put_u32(out, snapshots.len() as u32);
        for Snapshot { step, log, bytes } in snapshots {
            put_u64(out, *step);
            put_u64(out, *log as u64);
            put_u32(out, bytes.len() as u32);
            out.extend_from_slice(bytes);
        }
    }

    /// Reads what [`Take::write`] wrote, and all of its log and snapshots once, so that nothing is wrong later.
    pub(super) fn read(from: &mut Bytes<'_>, earlier: &[Take]) -> Result<Take, TakeError> {
        let damaged = TakeError::damaged;
        let size = |n: u64| usize::try_from(n).map_err(|_| damaged("a length is too large"));
        let name = from.text()?;
        let parent = from.u32()?;
        let first = from.u64()?;
        let fork = match parent {
            u32::MAX => None,
            p => Some(Fork { take: p as usize, step: first }),
        };
        match fork {
            None if earlier.is_empty() && first == 0 => {}
            Some(f) if earlier.get(f.take).is_some_and(|t| (t.first..=t.end()).contains(&first)) => {}
            _ => return Err(damaged("a take begins where no other was")),
        }
        let steps = size(from.u64()?)?;
        let hashes = from.take(steps.checked_mul(8).ok_or(damaged("a length is too large"))?)?;
        let hashes: Vec<u64> = hashes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let length = size(from.u64()?)?;
        let log = from.take(length)?.to_vec();

        let snapshots = from.list(20, |from| {
            let (step, log) = (from.u64()?, size(from.u64()?)?);
            let length = from.u32()? as usize;
            Ok(Snapshot { step, log, bytes: from.take(length)?.to_vec() })
        })?;
        if snapshots.first().is_none_or(|s| s.step != first) || !snapshots.is_sorted_by(|a, b| a.step < b.step) {
            return Err(damaged("the snapshots are not in order"));
        }

        let mut last = Input::default();
        let mut from = Bytes(&snapshots[0].bytes);
        read_state(&mut from)?;
        read_input(&mut from, &mut last)?;
        let mut rest = Bytes(&log);
        let mut places = Vec::with_capacity(steps + 1);
        for _ in 0..steps {
            places.push(log.len() - rest.0.len());
            read_input(&mut rest, &mut last)?;
        }
        places.push(log.len() - rest.0.len());
        if !rest.0.is_empty() {
            return Err(damaged("the log is longer than the take"));
        }

        for snapshot in &snapshots {
            let k = snapshot.step.checked_sub(first).and_then(|k| usize::try_from(k).ok());
            if k.and_then(|k| places.get(k)) != Some(&snapshot.log) {
                return Err(damaged("a snapshot does not fit the log"));
            }
            let mut from = Bytes(&snapshot.bytes);
            read_state(&mut from)?;
            read_input(&mut from, &mut Input::default())?;
        }
        Ok(Take { name, fork, first, snapshots, log, hashes, last })
    }
}
