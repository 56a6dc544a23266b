//! The journal: the takes of a running studio, written to disk as they happen, so that a crash loses at most a second.
//!
//! A journal is a `.take` file without its last record (`docs/take.md`): whole records with checksums are appended, a torn end is
//! dropped. Each studio writes a file of its own in a folder that all share, and holds a lock on it for as long as it runs; the system
//! lets go of the lock when the process ends, however it ends. A journal that nobody holds belongs to a session that did not finish.
//!
//! The disk is written by a thread of its own: the simulation never waits for it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};
use supple::timeline::file::{self, TakeFile, Writer};
use supple::timeline::{Playback, TakeError, Timeline};

/// Journals that are kept; of more, the oldest go.
const MAX_KEPT: usize = 8;
/// A larger journal than this is not one of ours \[bytes\].
const MAX_BYTES: u64 = 2 << 30;
const ENDING: &str = "journal";
/// How long the end of a studio waits for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where journals are kept when nothing else is asked for: the folder for the state of programs that this system has.
pub fn default_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))
    };
    state.map(|state| state.join("supple").join("journal"))
}

/// A session that did not finish, as it is offered.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The scene as it was asked for.
    pub scene: String,
    /// Steps of the take that was looked at, and the time they took \[s\].
    pub steps: u64,
    /// \[s\]
    pub seconds: f64,
    /// Number of takes.
    pub takes: usize,
    /// When it was last written.
    pub written: SystemTime,
    /// The build that recorded it.
    pub build: String,
}

/// The journal of a session that did not finish, held by us so that no other studio offers it too.
#[derive(Debug)]
pub(crate) struct Orphan {
    file: File,
    path: PathBuf,
    pub(crate) summary: Unfinished,
}

impl Orphan {
    /// What is in it.
    pub(crate) fn read(&mut self) -> Result<TakeFile, String> {
        let bytes = read(&mut self.file).map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(file::recover(&bytes).map_err(|error| format!("{}: {error}", self.path.display()))?.file)
    }

    /// Removes it.
    pub(crate) fn discard(self) -> io::Result<()> {
        drop(self.file);
        fs::remove_file(&self.path)
    }
}

/// A folder of journals.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if need be, for this user alone.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        Ok(Folder(path.to_owned()))
    }

    /// Held while files are made or looked for, so that no studio takes the file that another is just making for an orphan.
    fn lock(&self) -> io::Result<File> {
        let file = private().write(true).create(true).truncate(false).open(self.0.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// The journals that nobody holds, the newest first. Those that hold nothing, and those beyond the eighth, are removed.
    pub(crate) fn orphans(&self) -> io::Result<Vec<Orphan>> {
        let _lock = self.lock()?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if !is_ours(&path) {
                continue;
            }
            let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue, // a studio runs
                Err(TryLockError::Error(_)) => continue,   // a file system without locks: it cannot be told whose it is
            }
            match worth(&mut file) {
                Worth::Session(summary) => found.push(Orphan { file, path, summary }),
                Worth::Nothing => _ = remove((file, path)),
                Worth::Unknown => {}
            }
        }
        found.sort_by_key(|orphan| std::cmp::Reverse(orphan.summary.written));
        for old in found.drain(MAX_KEPT.min(found.len())..) {
            let _ = old.discard();
        }
        Ok(found)
    }

    /// Makes a journal that no other studio has, and holds it.
    fn create(&self) -> io::Result<(File, PathBuf)> {
        let _lock = self.lock()?;
        for number in 0.. {
            let path = self.0.join(format!("{}-{number}.{ENDING}", std::process::id()));
            match private().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    file.lock()?;
                    return Ok((file, path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// Whether a file is named as [`Folder::create`] names them. Others in the folder are nobody's business.
fn is_ours(path: &Path) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('-'));
    path.extension().is_some_and(|ending| ending == ENDING) && stem.is_some_and(|(a, b)| number(a) && number(b))
}

/// Files that only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > MAX_BYTES {
        return Err(io::Error::other("it is larger than any journal"));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a journal is worth.
enum Worth {
    /// A session.
    Session(Unfinished),
    /// Nothing that could be read: it ended before its first record.
    Nothing,
    /// Unknown to this version; it is kept for the one that wrote it.
    Unknown,
}

fn worth(file: &mut File) -> Worth {
    let Ok(written) = file.metadata().and_then(|data| data.modified()) else { return Worth::Unknown };
    let Ok(bytes) = read(file) else { return Worth::Unknown };
    let TakeFile { timeline, current, build } = match file::recover(&bytes) {
        Ok(recovered) => recovered.file,
        Err(TakeError::Version { .. }) => return Worth::Unknown,
        Err(_) => return Worth::Nothing,
    };
    let steps = timeline.takes()[current].end();
    let mut playback = Playback::default();
    if timeline.look(current, steps, &mut playback).is_err() {
        return Worth::Nothing;
    }
    let (scene, takes) = (timeline.scene().to_owned(), timeline.takes().len());
    Worth::Session(Unfinished { scene, steps, seconds: playback.time, takes, written, build })
}

/// The journal of this studio.
#[derive(Debug)]
pub(crate) struct Journal {
    writer: Writer,
    errands: mpsc::Sender<Errand>,
    /// A piece is being written.
    busy: Arc<AtomicBool>,
    trouble: mpsc::Receiver<String>,
    /// Removed once the takes that came from them are in our own journal.
    taken_over: Vec<Orphan>,
    begun: bool,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What the writing thread is asked to do.
enum Errand {
    /// Write a piece: into a new file in place of the present one, or at its end.
    Write { piece: Vec<u8>, new: bool, taken_over: Vec<Orphan> },
    /// End: keep the file, or remove it.
    End { keep: bool },
}

impl Journal {
    /// Starts the thread. The file is made with the first piece.
    pub(crate) fn start(folder: Folder) -> Journal {
        let (errands, inbox) = mpsc::channel();
        let (out, trouble) = mpsc::channel();
        let busy = Arc::new(AtomicBool::new(false));
        let done = busy.clone();
        let work = move || {
            let mut desk = Desk { folder, file: None };
            for errand in inbox {
                if let Err(error) = desk.obey(errand) {
                    let _ = out.send(error.to_string());
                    return; // from here on `busy` stays set, or nobody hears: nothing more is written
                }
                done.store(false, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(work).ok();
        Journal { writer: Writer::default(), errands, busy, trouble, taken_over: Vec::new(), begun: false, thread }
    }

    /// Another scene or other takes: they go into a new file, and the present one is removed when that is written.
    pub(crate) fn begin_anew(&mut self) {
        (self.writer, self.begun) = (Writer::default(), false);
    }

    /// The takes now come from this journal: when ours holds them, that one is removed.
    pub(crate) fn take_over(&mut self, orphan: Orphan) {
        self.taken_over.push(orphan);
    }

    /// Hands over what is new. Returns whether it did: while the disk is still busy it does not, and nothing is lost by asking again.
    pub(crate) fn keep(&mut self, timeline: &Timeline, take: usize, build: &str) -> bool {
        if self.busy.load(Ordering::Acquire) {
            return false;
        }
        let mut piece = Vec::new();
        self.writer.append(timeline, take, build, &mut piece);
        if !piece.is_empty() {
            let taken_over = std::mem::take(&mut self.taken_over);
            self.busy.store(true, Ordering::Release);
            let _ = self.errands.send(Errand::Write { piece, new: !self.begun, taken_over });
            self.begun = true;
        }
        true
    }

    /// Why nothing can be written any more, once.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }

    /// Writes what is left and keeps the file, or removes it; waits until that is done, for some seconds at most.
    pub(crate) fn end(mut self, kept: Option<(&Timeline, usize, &str)>) {
        let Some(thread) = self.thread.take() else { return };
        let end = Instant::now() + PATIENCE;
        let waits = || {
            std::thread::sleep(Duration::from_millis(2));
            !thread.is_finished() && Instant::now() < end
        };
        if let Some((timeline, take, build)) = kept {
            while !self.keep(timeline, take, build) && waits() {}
        }
        for orphan in self.taken_over {
            let _ = orphan.discard(); // what it held has been saved
        }
        let _ = self.errands.send(Errand::End { keep: kept.is_some() });
        drop(self.errands);
        while waits() {}
    }
}

/// What the writing thread holds.
struct Desk {
    folder: Folder,
    file: Option<(File, PathBuf)>,
}

impl Desk {
    fn obey(&mut self, errand: Errand) -> io::Result<()> {
        match errand {
            Errand::Write { piece, new, taken_over } => {
                let before = if new { self.file.replace(self.folder.create()?) } else { None };
                let (file, _) = self.file.as_mut().expect("the first piece makes the file");
                file.write_all(&piece)?;
                file.sync_data()?;
                // Only now that the new file holds everything may the old ones go.
                if let Some(before) = before {
                    remove(before)?;
                }
                for orphan in taken_over {
                    orphan.discard()?;
                }
            }
            Errand::End { keep } => {
                if let Some(file) = self.file.take()
                    && !keep
                {
                    remove(file)?;
                }
            }
        }
        Ok(())
    }
}

fn remove((file, path): (File, PathBuf)) -> io::Result<()> {
    drop(file); // some systems remove no open file
    fs::remove_file(path)
}
