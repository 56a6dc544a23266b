//! The journal: the takes of a running studio, written to disk as they happen, so that a crash loses at most a second.
//!
//! A journal is a `.take` file without its last record (`docs/take.md`): whole records with checksums are appended, a torn end is
//! dropped. Each studio writes a file of its own in a folder that all share, and holds a lock on it for as long as it runs; the system
//! lets go of the lock when the process ends, however it ends. A journal that nobody holds belongs to a session that did not finish.
//!
//! The disk is written by a thread of its own: the simulation never waits for it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};
use supple::timeline::file::{self, TakeFile, Writer};
use supple::timeline::{Playback, TakeError, Timeline};
use supple_assets::{Digest, Recipe};

/// Journals that are kept; of more, the oldest go.
const MAX_KEPT: usize = 8;
/// A larger journal than this is not one of ours \[bytes\].
const MAX_BYTES: u64 = 2 << 30;
const ENDING: &str = "journal";
/// A file that is shorter than the letters a take begins with holds nothing \[bytes\].
const SHORTEST: usize = 8;
/// The folder of copies of files that were sent, and how many are kept; of more, the oldest go.
const FILES: (&str, usize) = ("files", 32);
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
    /// The scene as it was asked for, or the name of its file.
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

    /// Keeps a copy of a file that a page sent, in a folder of its own that its bytes name; returns where. Takes of it name the copy.
    pub(crate) fn keep_file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let _lock = self.lock()?;
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let known = [".glb", ".gltf"].iter().any(|ending| name.to_lowercase().ends_with(ending));
        let name = if known { name.into_owned() } else { format!("{name}.glb") };
        let files = self.kept_files();
        let folder = Folder::open(&files.join(Digest::of(bytes).to_string()))?.0;
        let (new, path) = (folder.join("new"), folder.join(&name));
        let mut file = private().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(new, &path)?;
        let _ = thin_out(&files, FILES.1);
        Ok(path)
    }

    /// Where copies of files that were sent are kept.
    pub(crate) fn kept_files(&self) -> PathBuf {
        self.0.join(FILES.0)
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

/// Removes all but the newest copies of files.
fn thin_out(files: &Path, kept: usize) -> io::Result<()> {
    let age = |entry: io::Result<fs::DirEntry>| {
        let path = entry?.path();
        Ok((fs::metadata(&path)?.modified()?, path))
    };
    let mut folders = fs::read_dir(files)?.map(age).collect::<io::Result<Vec<_>>>()?;
    folders.sort();
    let old = folders.len().saturating_sub(kept);
    folders.drain(..old).try_for_each(|(_, path)| fs::remove_dir_all(path))
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
    /// Nothing: it ended before its first letters.
    Nothing,
    /// Of another version, or damaged: it is kept for one that can read it.
    Unknown,
}

fn worth(file: &mut File) -> Worth {
    let Ok(written) = file.metadata().and_then(|data| data.modified()) else { return Worth::Unknown };
    let Ok(bytes) = read(file) else { return Worth::Unknown };
    let TakeFile { timeline, current, build } = match file::recover(&bytes) {
        Ok(recovered) => recovered.file,
        Err(TakeError::Format) if bytes.len() < SHORTEST => return Worth::Nothing,
        Err(_) => return Worth::Unknown,
    };
    let steps = timeline.takes()[current].end();
    let mut playback = Playback::default();
    if timeline.look(current, steps, &mut playback).is_err() {
        return Worth::Unknown;
    }
    let recipe = Recipe::parse(timeline.scene());
    let scene = recipe.map_or_else(|_| timeline.scene().to_owned(), |recipe| recipe.shown().to_owned());
    let takes = timeline.takes().len();
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
    /// What becomes of the file before, once the next one is written.
    before: Before,
    begun: bool,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What becomes of a file when another one is begun.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// It is put aside under this number; `None`: it is removed.
    put_aside: Option<u32>,
    /// One that was put aside is removed, because the next file holds the same.
    taken_up: Option<u32>,
}

/// What the writing thread is asked to do.
enum Errand {
    /// Write a piece: into a new file in place of the present one, or at its end.
    Write { piece: Vec<u8>, new: Option<Before>, taken_over: Vec<Orphan> },
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
            let mut desk = Desk { folder, file: None, put_aside: BTreeMap::new() };
            for errand in inbox {
                if let Err(error) = desk.obey(errand) {
                    let _ = out.send(error.to_string());
                    return; // from here on `busy` stays set, or nobody hears: nothing more is written
                }
                done.store(false, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("journal".into()).spawn(work).ok();
        let before = Before::default();
        let (writer, taken_over) = (Writer::default(), Vec::new());
        Journal { writer, errands, busy, trouble, taken_over, before, begun: false, thread }
    }

    /// Another scene or other takes: they go into a new file, and the present one is removed when that is written.
    pub(crate) fn begin_anew(&mut self) {
        (self.writer, self.begun) = (Writer::default(), false);
    }

    /// Takes that were not saved make room for others: their file is kept, under a number, until they are taken up again or a later studio offers them.
    pub(crate) fn put_aside(&mut self, number: u32, timeline: &Timeline, take: usize, build: &str) {
        self.append(timeline, take, build);
        self.begin_anew();
        self.before.put_aside = Some(number);
    }

    /// Takes that were put aside are back: their own file is removed when the new one is written.
    pub(crate) fn take_up(&mut self, number: u32) {
        self.before.taken_up = Some(number);
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
        self.append(timeline, take, build);
        true
    }

    /// Hands over what is new, even while the disk is busy.
    fn append(&mut self, timeline: &Timeline, take: usize, build: &str) {
        let mut piece = Vec::new();
        self.writer.append(timeline, take, build, &mut piece);
        if !piece.is_empty() {
            let taken_over = std::mem::take(&mut self.taken_over);
            let new = (!self.begun).then(|| std::mem::take(&mut self.before));
            self.busy.store(true, Ordering::Release);
            let _ = self.errands.send(Errand::Write { piece, new, taken_over });
            self.begun = true;
        }
    }

    /// Why nothing can be written any more, once.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.try_recv().ok()
    }

    /// Writes what is left and keeps the file, or removes it because what it holds is saved; waits until that is done, for some seconds at most.
    /// Returns whether all that is to be kept is on disk.
    pub(crate) fn end(mut self, kept: Option<(&Timeline, usize, &str)>) -> bool {
        let Some(thread) = self.thread.take() else { return false };
        let end = Instant::now() + PATIENCE;
        let waits = || {
            std::thread::sleep(Duration::from_millis(2));
            !thread.is_finished() && Instant::now() < end
        };
        match kept {
            // Journals that were taken over go only when ours holds what they held.
            Some((timeline, take, build)) => self.append(timeline, take, build),
            None => self.taken_over.drain(..).for_each(|orphan| _ = orphan.discard()),
        }
        // Where nothing of the last takes was written, the file is still that of those before.
        let keep = if self.begun { kept.is_some() } else { self.before.put_aside.is_some() };
        let _ = self.errands.send(Errand::End { keep });
        drop(self.errands);
        while waits() {}
        thread.is_finished() && self.trouble.try_recv().is_err()
    }
}

/// What the writing thread holds.
struct Desk {
    folder: Folder,
    file: Option<(File, PathBuf)>,
    /// Files of takes that made room for others, held so that no other studio offers them too.
    put_aside: BTreeMap<u32, (File, PathBuf)>,
}

impl Desk {
    fn obey(&mut self, errand: Errand) -> io::Result<()> {
        match errand {
            Errand::Write { piece, new, taken_over } => {
                let before = if new.is_some() { self.file.replace(self.folder.create()?) } else { None };
                let (file, _) = self.file.as_mut().expect("the first piece makes the file");
                file.write_all(&piece)?;
                file.sync_data()?;
                // Only now that the new file holds everything may the old ones go.
                let Before { put_aside, taken_up } = new.unwrap_or_default();
                match (before, put_aside) {
                    (Some(before), Some(number)) => _ = self.put_aside.insert(number, before),
                    (Some(before), None) => remove(before)?,
                    (None, _) => {}
                }
                if let Some(copy) = taken_up.and_then(|number| self.put_aside.remove(&number)) {
                    remove(copy)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use supple::Scene;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("supple-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn takes() -> Timeline {
        let scene = Scene::parse("pendulum").unwrap();
        Timeline::new(&scene.name, &scene.model, &scene.state, &scene.input)
    }

    /// A journal that nobody holds.
    fn orphan(folder: &Folder) -> Orphan {
        assert!(Journal::start(folder.clone()).end(Some((&takes(), 0, "test"))));
        folder.orphans().unwrap().remove(0)
    }

    #[test]
    fn what_was_taken_over_goes_only_once_ours_holds_it() {
        let [path, gone] = [folder("taken-over"), folder("taken-over-gone")];
        let kept = Folder::open(&path).unwrap();
        // The folder of our own journal is gone: it cannot be written, and the other one stays.
        let mut journal = Journal::start(Folder(gone));
        journal.take_over(orphan(&kept));
        assert!(!journal.end(Some((&takes(), 0, "test"))), "it says so");
        let mut left = kept.orphans().unwrap();
        assert_eq!(left.len(), 1);
        // It can be written: ours takes its place.
        let mut journal = Journal::start(kept.clone());
        let before = left[0].path.clone();
        journal.take_over(left.remove(0));
        assert!(journal.end(Some((&takes(), 0, "test"))));
        let mut left = kept.orphans().unwrap();
        assert!(left.len() == 1 && left[0].path != before, "{left:?}");
        // What it held is saved: nothing stays.
        let mut journal = Journal::start(kept.clone());
        journal.take_over(left.remove(0));
        assert!(journal.end(None));
        assert!(kept.orphans().unwrap().is_empty());
        let _ = fs::remove_dir_all(&path);
    }

    #[test]
    fn what_cannot_be_read_is_not_removed() {
        let path = folder("unread");
        let kept = Folder::open(&path).unwrap();
        fs::write(path.join("1-0.journal"), b"").unwrap();
        fs::write(path.join("2-0.journal"), b"SUPPLETK and then something that another version wrote").unwrap();
        let mut bytes = file::write(&takes(), 0, "test");
        bytes[40] ^= 1; // in its head
        fs::write(path.join("3-0.journal"), &bytes).unwrap();
        assert!(kept.orphans().unwrap().is_empty());
        assert_eq!([1, 2, 3].map(|k| path.join(format!("{k}-0.journal")).exists()), [false, true, true]);
        let _ = fs::remove_dir_all(&path);
    }

    #[test]
    fn the_newest_copies_of_files_are_kept() {
        let path = folder("copies");
        let kept = Folder::open(&path).unwrap();
        let copies: Vec<_> = (0..=FILES.1 as u8).map(|k| kept.keep_file("../man.glb", &[k]).unwrap()).collect();
        assert!(copies.iter().all(|copy| copy.starts_with(&path) && copy.ends_with("man.glb")), "{copies:?}");
        assert_eq!(copies.iter().filter(|copy| copy.exists()).count(), FILES.1);
        assert_eq!(fs::read(copies.last().unwrap()).unwrap(), [FILES.1 as u8]);
        assert!(kept.keep_file("man", b"x").unwrap().ends_with("man.glb"));
        let _ = fs::remove_dir_all(&path);
    }
}
