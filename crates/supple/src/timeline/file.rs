//! A timeline as the bytes of a `.take` file: a head, then records. The layout is told in `docs/take.md`.
//!
//! A file is written at once by [`write()`], or piece by piece by a [`Writer`], as a journal is: each piece is whole records, and each
//! record tells its length and its checksum. A journal that was cut off is read up to its last whole record by [`recover`].

use super::encode::{Bytes, Format, put_text, put_u32, put_u64};
use super::poses::Grid;
use super::take::{Fork, Take};
use super::{TakeError, Timeline};
use crate::maths::fnv::Fnv;

/// The letters a take begins with.
const MAGIC: &[u8; 8] = b"SUPPLETK";

/// Version of the format. Versions 8 to 10 are read too; a file of any other is refused.
pub const VERSION: u32 = 11;

// Kinds of records.
const HEAD: u8 = 1;
const TAKE: u8 = 2;
const STEPS: u8 = 3;
const NAME: u8 = 4;
const REMOVED: u8 = 5;
const RESTORED: u8 = 6;
const CURRENT: u8 = 7;
const END: u8 = 8;
const MARKS: u8 = 9;

/// A take file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct TakeFile {
    /// The takes.
    pub timeline: Timeline,
    /// The take that was being looked at.
    pub current: usize,
    /// The build that recorded it, as told to [`write()`]: another one shows it, but may compute other bits.
    pub build: String,
}

/// The bytes of a file with these takes, without those that were removed. `build` names the program that recorded them.
pub fn write(timeline: &Timeline, current: usize, build: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(timeline.bytes() + 1024);
    Writer::default().append(timeline, current, build, &mut out);
    record(&mut out, END, |_| {});
    out
}

/// Writes a timeline piece by piece: [`Writer::append`] adds what is new since the last time.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    takes: Vec<Written>,
    /// How many takes have been written.
    count: u32,
    current: Option<usize>,
    /// Whether the head has been written.
    begun: bool,
}

/// What has been written of a take.
#[derive(Clone, Debug)]
struct Written {
    /// Its number in the file; `None` while nothing has been written of it.
    number: Option<u32>,
    name: String,
    marks: Vec<(u64, String)>,
    removed: bool,
    /// Full stretches, and steps of the next.
    stretches: usize,
    steps: usize,
    /// Bytes of log and poses of these steps.
    log: usize,
    poses: usize,
}

impl Writer {
    /// Appends all that has happened since the last call, as whole records. The first call writes the head, with the name of the
    /// program that records.
    pub fn append(&mut self, timeline: &Timeline, current: usize, build: &str, out: &mut Vec<u8>) {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(MAGIC);
            put_u32(out, VERSION);
            record(out, HEAD, |out| {
                put_text(out, build);
                put_text(out, &timeline.scene);
                put_u64(out, timeline.model);
                put_u32(out, timeline.size.0 as u32);
                put_u32(out, timeline.size.1 as u32);
                put_u32(out, timeline.every);
                put_u32(out, timeline.grid.exponent as u32);
            });
        }
        for k in 0..timeline.takes.len() {
            self.append_take(timeline, k, out);
        }
        if self.current != Some(current)
            && let Some(number) = self.takes.get(current).and_then(|written| written.number)
        {
            self.current = Some(current);
            record(out, CURRENT, |out| put_u32(out, number));
        }
    }

    fn append_take(&mut self, timeline: &Timeline, index: usize, out: &mut Vec<u8>) {
        let take = &timeline.takes[index];
        if index == self.takes.len() {
            self.takes.push(Written {
                number: None,
                name: take.name.clone(),
                marks: Vec::new(),
                removed: false,
                stretches: 0,
                steps: 0,
                log: 0,
                poses: 0,
            });
        }
        let parent = take.fork.map(|fork| self.takes[fork.take].number.unwrap_or(u32::MAX));
        let written = &mut self.takes[index];
        let number = match written.number {
            Some(number) => number,
            None if take.removed => return,
            None => {
                let number = self.count;
                self.count += 1;
                written.number = Some(number);
                written.name.clone_from(&take.name);
                record(out, TAKE, |out| {
                    put_text(out, &take.name);
                    put_u32(out, parent.unwrap_or(u32::MAX));
                    put_u64(out, take.first());
                    put_block(out, &take.stretches[0].snapshot);
                });
                number
            }
        };
        if written.removed != take.removed {
            written.removed = take.removed;
            record(out, if take.removed { REMOVED } else { RESTORED }, |out| put_u32(out, number));
        }
        if written.name != take.name {
            written.name.clone_from(&take.name);
            record(out, NAME, |out| {
                put_u32(out, number);
                put_text(out, &take.name);
            });
        }
        if written.marks != take.marks {
            written.marks.clone_from(&take.marks);
            record(out, MARKS, |out| {
                put_u32(out, number);
                put_u32(out, take.marks.len() as u32);
                for (step, text) in &take.marks {
                    put_u64(out, *step);
                    put_text(out, text);
                }
            });
        }
        // A record of steps ends where its stretch does, with the snapshot that begins the next.
        while let Some(stretch) = take.stretches.get(written.stretches) {
            let next = take.stretches.get(written.stretches + 1);
            if written.steps < stretch.hashes.len() {
                let hashes = &stretch.hashes[written.steps..];
                record(out, STEPS, |out| {
                    put_u32(out, number);
                    put_u32(out, hashes.len() as u32);
                    hashes.iter().for_each(|hash| put_u64(out, *hash));
                    put_block(out, &stretch.log[written.log..]);
                    put_block(out, &stretch.poses[written.poses..]);
                    put_block(out, next.map_or(&[], |next| &next.snapshot));
                });
            }
            if next.is_none() {
                (written.steps, written.log, written.poses) =
                    (stretch.hashes.len(), stretch.log.len(), stretch.poses.len());
                break;
            }
            (written.steps, written.log, written.poses) = (0, 0, 0);
            written.stretches += 1;
        }
    }
}

/// Appends a record: its kind, the length of what `content` writes, that, and the checksum of all.
fn record(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(kind);
    put_u32(out, 0);
    content(out);
    let length = (out.len() - start - 5) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&out[start..]);
    put_u64(out, sum);
}

fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.bytes(bytes);
    hash.finish()
}

/// Reads what [`write()`] wrote. Everything is checked; a file that was not written so gives an error, never a panic.
pub fn read(bytes: &[u8]) -> Result<TakeFile, TakeError> {
    let (mut from, mut reader) = Reader::start(bytes)?;
    while let Some((kind, content)) = next_record(&mut from)? {
        if kind == END {
            return if from.0.is_empty() && content.0.is_empty() {
                reader.finish()
            } else {
                Err(TakeError::damaged("something follows its end"))
            };
        }
        reader.record(kind, content)?;
    }
    Err(TakeError::damaged("it ends too early"))
}

/// What could be read of a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// As far as it was written.
    pub file: TakeFile,
    /// Bytes at the end that are no whole record.
    pub lost: usize,
}

/// Reads what a [`Writer`] wrote, up to the last record that is whole: the end of a journal may be missing or damaged.
pub fn recover(bytes: &[u8]) -> Result<Recovered, TakeError> {
    let (mut from, mut reader) = Reader::start(bytes)?;
    loop {
        let rest = from.0.len();
        match next_record(&mut from) {
            Ok(Some((END, _))) => {}
            Ok(Some((kind, content))) => match reader.record(kind, content) {
                // Steps before are worth keeping; older builds recorded those after, too.
                Err(TakeError::Far { .. }) if !reader.timeline.takes.is_empty() => {
                    return Ok(Recovered { file: reader.finish()?, lost: rest });
                }
                done => done?,
            },
            Ok(None) | Err(_) => return Ok(Recovered { file: reader.finish()?, lost: rest }),
        }
    }
}

/// The kind and content of the next record; `None` at the end.
fn next_record<'a>(from: &mut Bytes<'a>) -> Result<Option<(u8, Bytes<'a>)>, TakeError> {
    if from.0.is_empty() {
        return Ok(None);
    }
    let whole = from.0;
    let kind = from.u8()?;
    let length = from.u32()? as usize;
    let content = from.take(length)?;
    if from.u64()? != checksum(&whole[..5 + length]) {
        return Err(TakeError::damaged("a checksum is wrong"));
    }
    Ok(Some((kind, Bytes(content))))
}

struct Reader {
    format: Format,
    build: String,
    current: usize,
    timeline: Timeline,
}

impl Reader {
    /// Reads letters, version and head.
    fn start(bytes: &[u8]) -> Result<(Bytes<'_>, Reader), TakeError> {
        let mut from = Bytes(bytes);
        if from.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(TakeError::Format);
        }
        let found = from.u32()?;
        let format = match found {
            // Version 9 has neither strengths of targets nor marks, 10 no rest.
            9 | 10 | VERSION => Format::Now,
            8 => Format::Eight,
            _ => return Err(TakeError::Version { found, expected: VERSION }),
        };
        let Some((HEAD, mut head)) = next_record(&mut from)? else {
            return Err(TakeError::damaged("it has no head"));
        };
        let (build, scene) = (head.text()?, head.text()?);
        let model = head.u64()?;
        let size = (head.u32()? as usize, head.u32()? as usize);
        let (every, exponent) = (head.u32()?, head.u32()? as i32);
        if every == 0 || !Grid::EXPONENTS.contains(&exponent) || !head.0.is_empty() {
            return Err(TakeError::damaged("its head makes no sense"));
        }
        let grid = Grid { exponent };
        let timeline = Timeline { scene, model, size, every, grid, takes: Vec::new() };
        Ok((from, Reader { format, build, current: 0, timeline }))
    }

    fn record(&mut self, kind: u8, mut from: Bytes<'_>) -> Result<(), TakeError> {
        match kind {
            TAKE => self.take(&mut from)?,
            STEPS => {
                let (size, format) = (self.timeline.size, self.format);
                let take = self.named(&mut from)?;
                let count = from.u32()? as usize;
                let hashes = from.take(count.checked_mul(8).ok_or(TakeError::damaged("a length is too large"))?)?;
                let hashes: Vec<u64> = hashes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
                take.add_steps(format, &hashes, (from.block()?, from.block()?, from.block()?), size)?;
            }
            NAME => {
                let take = self.named(&mut from)?;
                take.name = from.text()?;
            }
            MARKS => {
                let take = self.named(&mut from)?;
                let count = from.u32()?;
                take.marks.clear();
                for _ in 0..count {
                    let mark = (from.u64()?, from.text()?);
                    if mark.0 < take.first() || take.marks.last().is_some_and(|last| last.0 > mark.0) {
                        return Err(TakeError::damaged("marks are not in order"));
                    }
                    take.marks.push(mark);
                }
            }
            REMOVED => {
                let take = self.named(&mut from)?;
                if take.fork.is_none() {
                    return Err(TakeError::damaged("the first take is removed"));
                }
                take.removed = true;
            }
            RESTORED => self.named(&mut from)?.removed = false,
            CURRENT => {
                let number = from.u32()? as usize;
                if number >= self.timeline.takes.len() {
                    return Err(TakeError::damaged("a record names a take that does not exist"));
                }
                self.current = number;
            }
            _ => return Err(TakeError::damaged("a record is of an unknown kind")),
        }
        if from.0.is_empty() { Ok(()) } else { Err(TakeError::damaged("a record is too long")) }
    }

    fn take(&mut self, from: &mut Bytes<'_>) -> Result<(), TakeError> {
        let (name, parent, first) = (from.text()?, from.u32()?, from.u64()?);
        let Timeline { size, every, grid, takes, .. } = &mut self.timeline;
        let fork = match parent {
            u32::MAX => None,
            parent => Some(Fork { take: parent as usize, step: first }),
        };
        match fork {
            None if takes.is_empty() && first == 0 => {}
            Some(f) if takes.get(f.take).is_some_and(|t| (t.first()..=t.end()).contains(&first)) => {}
            _ => return Err(TakeError::damaged("a take begins where no other was")),
        }
        let mut take = Take::empty(name, fork, *every, *grid);
        take.add_snapshot(self.format, from.block()?, *size)?;
        takes.push(take);
        Ok(())
    }

    /// The take that a record names.
    fn named(&mut self, from: &mut Bytes<'_>) -> Result<&mut Take, TakeError> {
        let number = from.u32()? as usize;
        let missing = TakeError::damaged("a record names a take that does not exist");
        self.timeline.takes.get_mut(number).ok_or(missing)
    }

    /// Leaves out what was removed.
    fn finish(mut self) -> Result<TakeFile, TakeError> {
        let takes = std::mem::take(&mut self.timeline.takes);
        let mut numbers: Vec<Option<usize>> = Vec::with_capacity(takes.len());
        for mut take in takes {
            let parent = take.fork.map(|fork| numbers[fork.take]); // takes come after those they left
            let kept = !take.removed && parent != Some(None);
            numbers.push(kept.then_some(self.timeline.takes.len()));
            if kept {
                if let (Some(fork), Some(Some(parent))) = (&mut take.fork, parent) {
                    fork.take = parent;
                }
                self.timeline.takes.push(take);
            }
        }
        if self.timeline.takes.is_empty() {
            return Err(TakeError::damaged("it has no take"));
        }
        let current = numbers.get(self.current).copied().flatten().unwrap_or(0);
        Ok(TakeFile { timeline: self.timeline, current, build: self.build })
    }
}
