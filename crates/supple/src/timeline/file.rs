//! A timeline as the bytes of a `.take` file. The layout is told in `docs/take.md`.

use super::encode::{Bytes, put_text, put_u32};
use super::take::Take;
use super::{TakeError, Timeline};

/// The letters a take begins with.
const MAGIC: &[u8; 8] = b"SUPPLETK";

/// Version of the format. A file of another version is refused.
pub const VERSION: u32 = 3;

/// A take file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct TakeFile {
    /// The takes.
    pub timeline: Timeline,
    /// The take that was being looked at.
    pub current: usize,
    /// The build that wrote it: another one plays it, but the bits may differ.
    pub build: String,
}

/// This build, as takes name it.
pub fn build() -> String {
    format!("supple {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)
}

/// The bytes of a file with these takes.
pub fn write(timeline: &Timeline, current: usize) -> Vec<u8> {
    let Timeline { scene, every, takes } = timeline;
    let mut out = Vec::with_capacity(timeline.bytes() + 1024);
    out.extend_from_slice(MAGIC);
    put_u32(&mut out, VERSION);
    put_text(&mut out, &build());
    put_text(&mut out, scene);
    put_u32(&mut out, *every);
    put_u32(&mut out, current as u32);
    put_u32(&mut out, takes.len() as u32);
    for take in takes {
        take.write(&mut out);
    }
    out
}

/// Reads what [`write()`] wrote. Everything is checked; a file that was not written so gives an error, never a panic.
pub fn read(bytes: &[u8]) -> Result<TakeFile, TakeError> {
    let mut from = Bytes(bytes);
    if from.take(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(TakeError::Format);
    }
    let found = from.u32()?;
    if found != VERSION {
        return Err(TakeError::Version { found, expected: VERSION });
    }
    let (build, scene) = (from.text()?, from.text()?);
    let every = from.u32()?;
    let current = from.u32()? as usize;
    let mut takes: Vec<Take> = Vec::new();
    for _ in 0..from.u32()? {
        let take = Take::read(&mut from, &takes)?;
        takes.push(take);
    }
    if every == 0 || current >= takes.len() || !from.0.is_empty() {
        return Err(TakeError::damaged("its head does not fit its takes"));
    }
    Ok(TakeFile { timeline: Timeline { scene, every, takes }, current, build })
}
