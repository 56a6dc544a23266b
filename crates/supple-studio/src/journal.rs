//! The journal: the takes of a running studio, written to disk as they happen, so that a crash loses at most a second.
//!
//! A journal is a `.take` file without its last record (`docs/take.md`): whole records with checksums are appended, a torn end is
//! dropped. Each studio writes files of its own in a folder that all share, and holds a lock on them for as long as it runs; the system
//! lets go of the lock when the process ends, however it ends. A journal that nobody holds belongs to a session that did not finish.
//!
//! The disk is written by a thread of its own: the simulation never waits for it. It hands over copies of its takes, each for a *sheet*, the
//! journal of one scene; a copy is held in memory until it is on disk. When the disk refuses, a whole new file is written as soon as it
//! takes one again, and the file before stays until then.

use crate::disk::{Disk, Opened};
use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use supple::timeline::file::{self, TakeFile, Writer};
use supple::timeline::{Playback, TakeError, Timeline};
use supple_assets::{Digest, Recipe};

/// Journals that are offered at a time. Older ones wait in the folder: what was recorded and not saved goes when somebody says so.
const MOST_OFFERED: usize = 8;
/// A larger journal than this is not one of ours \[bytes\].
const MAX_BYTES: u64 = 2 << 30;
const ENDING: &str = "journal";
/// A file that is shorter than the letters a take begins with holds nothing \[bytes\].
const SHORTEST: usize = 8;
/// The folder of copies of files that were sent, and how many are kept; of more, the oldest go that no journal names.
const FILES: (&str, usize) = ("files", 32);
/// The longest name of such a copy \[bytes\].
const MOST_NAME: usize = 120;
/// How long the end of a studio waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);
/// After trouble the disk is tried again after this time, then after twice as long, up to this many times as long.
pub(crate) const RETRY: (Duration, u32) = (Duration::from_secs(1), 16);

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
    file: Opened,
    path: PathBuf,
    disk: Disk,
    pub(crate) summary: Unfinished,
}

impl Orphan {
    /// What is in it.
    pub(crate) fn read(&mut self) -> Result<TakeFile, String> {
        let bytes = self.file.read(MAX_BYTES).map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(file::recover(&bytes).map_err(|error| format!("{}: {error}", self.path.display()))?.file)
    }

    /// Removes it.
    pub(crate) fn discard(self) -> io::Result<()> {
        remove(&self.disk, self.file, &self.path)
    }
}

/// A folder of journals.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    disk: Disk,
}

impl Folder {
    pub(crate) fn new(path: &Path, disk: Disk) -> Folder {
        Folder { path: path.to_owned(), disk }
    }

    /// Held while files are made or looked for, so that no studio takes the file that another is just making for an orphan. Makes the
    /// folder if need be, for this user alone.
    fn lock(&self) -> io::Result<Opened> {
        self.disk.make_folder(&self.path)?;
        let file = self.disk.open_lock(&self.path.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// The journals that nobody holds, the newest first, eight at most. Those that hold nothing are removed.
    pub(crate) fn orphans(&self) -> io::Result<Vec<Orphan>> {
        let _lock = self.lock()?;
        let mut unheld = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if !is_ours(&path) {
                continue;
            }
            let Ok(file) = self.disk.open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue, // a studio runs
                Err(TryLockError::Error(_)) => continue,   // a file system without locks: it cannot be told whose it is
            }
            let written = file.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            unheld.push((written, path, file));
        }
        unheld.sort_by_key(|(written, ..)| std::cmp::Reverse(*written));
        let mut found = Vec::new();
        for (_, path, mut file) in unheld {
            if found.len() == MOST_OFFERED {
                break;
            }
            match worth(&mut file) {
                Worth::Session(summary) => found.push(Orphan { file, path, disk: self.disk.clone(), summary }),
                Worth::Nothing => _ = remove(&self.disk, file, &path),
                Worth::Unknown => {}
            }
        }
        Ok(found)
    }

    /// Keeps a copy of a file that a page sent, in a folder of its own that its bytes name; returns where. Takes of it name the copy.
    pub(crate) fn keep_file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let _lock = self.lock()?;
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let ends = |ending: &&str| name.to_lowercase().ends_with(&format!(".{ending}"));
        let known = supple_assets::CHARACTER_ENDINGS.iter().chain(&supple_assets::motion::MOTION_ENDINGS).any(ends);
        let name = if known { name.into_owned() } else { format!("{name}.glb") };
        let folder = self.kept_files().join(Digest::of(bytes).to_string());
        self.disk.make_folder(&folder)?;
        let path = folder.join(shortened(&name));
        self.disk.write_whole(&path, bytes)?;
        let _ = self.thin_out(FILES.1); // what could not be removed is tried again with the next one
        Ok(path)
    }

    /// Removes all but the newest copies of files, and those that a journal names: its takes need them.
    fn thin_out(&self, kept: usize) -> io::Result<()> {
        let age = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok((fs::metadata(entry.path())?.modified()?, entry.file_name().into_encoded_bytes(), entry.path()))
        };
        let mut folders = fs::read_dir(self.kept_files())?.map(age).collect::<io::Result<Vec<_>>>()?;
        folders.sort();
        folders.truncate(folders.len().saturating_sub(kept));
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if !folders.is_empty() && is_ours(&path) && path.is_file() {
                let names: Vec<&[u8]> = folders.iter().map(|(_, name, _)| name.as_slice()).collect();
                let named = which_are_in(&path, &names)?;
                folders = folders.into_iter().zip(named).filter(|(_, named)| !named).map(|(old, _)| old).collect();
            }
        }
        folders.into_iter().try_for_each(|(.., path)| fs::remove_dir_all(path))
    }

    /// Where copies of files that were sent are kept.
    pub(crate) fn kept_files(&self) -> PathBuf {
        self.path.join(FILES.0)
    }

    /// Makes a journal that no other studio has, holds it and writes this into it. What cannot be written leaves no file behind.
    fn create(&self, content: &[u8]) -> io::Result<(Opened, PathBuf)> {
        let _lock = self.lock()?;
        for number in 0.. {
            let path = self.path.join(format!("{}-{number}.{ENDING}", std::process::id()));
            match self.disk.create(&path) {
                Ok(mut file) => {
                    let written = file
                        .lock()
                        .and_then(|()| file.write(&path, content))
                        .and_then(|()| self.disk.flush_folder(&self.path));
                    return match written {
                        Ok(()) => Ok((file, path)),
                        Err(error) => {
                            drop(file);
                            let _ = fs::remove_file(&path);
                            Err(error)
                        }
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// A name of a file that every file system takes: of a longer one its end, where its kind stands.
fn shortened(name: &str) -> &str {
    let cut = name.len().saturating_sub(MOST_NAME);
    let cut = (cut..name.len()).find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    &name[cut..]
}

/// Which of these short texts occur in a file.
fn which_are_in(path: &Path, texts: &[&[u8]]) -> io::Result<Vec<bool>> {
    let most = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut found = vec![false; texts.len()];
    let (mut file, mut piece) = (fs::File::open(path)?, Vec::new());
    loop {
        piece.drain(..piece.len().saturating_sub(most)); // a text may lie across two pieces
        if (&mut file).take(1 << 20).read_to_end(&mut piece)? == 0 {
            return Ok(found);
        }
        for (found, text) in found.iter_mut().zip(texts) {
            *found |= piece.windows(text.len().max(1)).any(|window| window == *text);
        }
    }
}

/// Whether a file is named as [`Folder::create`] names them. Others in the folder are nobody's business.
fn is_ours(path: &Path) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('-'));
    path.extension().is_some_and(|ending| ending == ENDING) && stem.is_some_and(|(a, b)| number(a) && number(b))
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

fn worth(file: &mut Opened) -> Worth {
    let Ok(written) = file.metadata().and_then(|data| data.modified()) else { return Worth::Unknown };
    let Ok(bytes) = file.read(MAX_BYTES) else { return Worth::Unknown };
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
    let takes = timeline.takes().len();
    let scene = shown(&timeline);
    Worth::Session(Unfinished { scene, steps, seconds: playback.time, takes, written, build })
}

/// A copy of the takes of a scene; it shares what does not change any more.
#[derive(Debug)]
pub(crate) struct Takes {
    pub(crate) timeline: Timeline,
    pub(crate) take: usize,
    pub(crate) build: String,
}

/// The journal of this studio.
#[derive(Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    desk: Mutex<Desk>,
    /// Something is to be done, or has been.
    changed: Condvar,
}

/// What the studio and the writing thread tell one another.
#[derive(Debug, Default)]
struct Desk {
    /// By sheet, takes that are not on disk as they are now.
    pending: BTreeMap<u32, Arc<Takes>>,
    /// Sheets whose file may go, each once that of the other, if any, is on disk.
    obsolete: Vec<(u32, Option<u32>)>,
    /// Journals of other sessions, each removed once a sheet of ours, which holds the same, is on disk.
    taken_over: Vec<(u32, Orphan)>,
    /// Why the disk does not take what is pending.
    trouble: Option<String>,
    /// The thread is at work outside the lock.
    busy: bool,
    ending: bool,
    /// How many whole sheets the thread left on disk when it ended.
    ended: Option<usize>,
}

impl Desk {
    fn is_settled(&self) -> bool {
        let Desk { pending, obsolete, busy, trouble, .. } = self;
        pending.is_empty() && obsolete.is_empty() && !busy && trouble.is_none()
    }

    /// Whether what a sheet holds is on disk: in its own file, or in that of the one that took its place.
    fn holds(&self, sheet: u32) -> bool {
        let place = self.obsolete.iter().find(|(old, _)| *old == sheet).and_then(|(_, once)| *once);
        !self.pending.contains_key(&sheet) && place.is_none_or(|place| self.holds(place))
    }

    /// Takes out what may go by now.
    fn take_due(&mut self) -> (Vec<u32>, Vec<Orphan>) {
        let is_due: Vec<bool> = self.obsolete.iter().map(|(_, once)| once.is_none_or(|s| self.holds(s))).collect();
        let is_held: Vec<bool> = self.taken_over.iter().map(|(sheet, _)| self.holds(*sheet)).collect();
        let (mut is_due, mut is_held) = (is_due.into_iter(), is_held.into_iter());
        let sheets = self.obsolete.extract_if(.., |_| is_due.next() == Some(true)).map(|(sheet, _)| sheet).collect();
        let orphans = self.taken_over.extract_if(.., |_| is_held.next() == Some(true)).map(|(_, o)| o).collect();
        (sheets, orphans)
    }
}

/// What became of takes that were not saved.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// How many journals are left for the next studio.
    pub(crate) kept: usize,
    /// What is not in the journal.
    pub(crate) unwritten: Vec<Arc<Takes>>,
    /// Why not; also why something that is not needed any more could not be removed.
    pub(crate) trouble: Option<String>,
}

impl Journal {
    /// Starts the thread. Files are made with the first takes of a sheet. `retry`: see [`RETRY`].
    pub(crate) fn start(folder: Folder, retry: (Duration, u32)) -> Journal {
        let shared = Arc::<Shared>::default();
        let ours = shared.clone();
        let work = move || Clerk { folder, sheets: BTreeMap::new(), leftover: Vec::new() }.work(&ours, retry);
        if let Err(error) = std::thread::Builder::new().name("journal".into()).spawn(work) {
            let mut desk = shared.lock();
            (desk.trouble, desk.ended) = (Some(format!("no thread can be started: {error}")), Some(0));
        }
        Journal { shared }
    }

    /// The takes of a sheet as they are now. They are written soon, or as soon as they can be.
    pub(crate) fn hold(&self, sheet: u32, takes: Takes) {
        let mut desk = self.shared.lock();
        desk.obsolete.retain(|(old, _)| *old != sheet);
        desk.pending.insert(sheet, Arc::new(takes));
        self.shared.changed.notify_all();
    }

    /// Nothing of a sheet need be kept; its file goes once that of the other is on disk.
    pub(crate) fn let_go(&self, sheet: u32, once: Option<u32>) {
        let mut desk = self.shared.lock();
        desk.pending.remove(&sheet);
        desk.obsolete.push((sheet, once));
        self.shared.changed.notify_all();
    }

    /// The takes of a sheet come from this journal, which is removed when ours holds them.
    pub(crate) fn take_over(&self, sheet: u32, takes: Takes, orphan: Orphan) {
        self.shared.lock().taken_over.push((sheet, orphan));
        self.hold(sheet, takes);
    }

    /// Why what is new cannot be written at present.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }

    /// Whether all that was handed over is on disk.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.lock().is_settled()
    }

    /// Tries once more to write what is pending, and ends; waits for that, for some seconds at most.
    pub(crate) fn end(self) -> Ended {
        let end = Instant::now() + PATIENCE;
        let mut desk = self.shared.lock();
        desk.ending = true;
        self.shared.changed.notify_all();
        while desk.ended.is_none() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            desk = self.shared.changed.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        desk.taken_over.clear(); // what ours does not hold is offered again
        let unwritten: Vec<_> = std::mem::take(&mut desk.pending).into_values().collect();
        let kept = desk.ended.unwrap_or(0);
        let silent = || "the disk does not answer".to_owned();
        let trouble = desk.trouble.take().or_else(|| desk.ended.is_none().then(silent));
        Ended { kept, unwritten, trouble }
    }
}

impl Shared {
    /// A panic elsewhere does not make what is told here wrong.
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who writes.
struct Clerk {
    folder: Folder,
    sheets: BTreeMap<u32, Sheet>,
    /// Files that are not needed any more and could not be removed yet.
    leftover: Vec<Sheet>,
}

/// The file of a sheet.
struct Sheet {
    file: Opened,
    path: PathBuf,
    writer: Writer,
    /// It may end in the middle of a record: another one is to take its place.
    torn: bool,
}

impl Clerk {
    fn work(mut self, shared: &Shared, (retry, most): (Duration, u32)) {
        let mut pause = retry;
        let mut desk = shared.lock();
        loop {
            while desk.is_settled() && !desk.ending {
                desk = shared.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            }
            // After trouble it waits, whatever else is handed over meanwhile.
            let due = Instant::now() + pause;
            while desk.trouble.is_some() && !desk.ending && Instant::now() < due {
                let left = due.saturating_duration_since(Instant::now());
                desk = shared.changed.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            pause = if desk.trouble.is_some() { (2 * pause).min(most * retry) } else { retry };
            let ending = desk.ending; // then this is the last round
            desk.busy = true;
            let pending = desk.pending.clone();
            drop(desk);
            let done: Vec<_> =
                pending.iter().map(|(sheet, takes)| (*sheet, takes, self.write(*sheet, takes))).collect();
            desk = shared.lock();
            let mut trouble = None;
            for (sheet, takes, result) in done {
                match result {
                    // What was handed over meanwhile is still to be written.
                    Ok(()) if desk.pending.get(&sheet).is_some_and(|now| Arc::ptr_eq(now, takes)) => {
                        desk.pending.remove(&sheet);
                    }
                    Ok(()) => {}
                    Err(error) => trouble = Some(format!("{}: {error}", self.folder.path.display())),
                }
            }
            let (obsolete, orphans) = desk.take_due();
            drop(desk);
            self.leftover.extend(obsolete.into_iter().filter_map(|number| self.sheets.remove(&number)));
            trouble = trouble.or(self.tidy());
            orphans.into_iter().for_each(|orphan| _ = orphan.discard()); // what cannot be removed is offered again
            // At the end the files are let go of: the next studio finds them.
            let left: Vec<u32> =
                if ending { std::mem::take(&mut self.sheets).into_keys().collect() } else { Vec::new() };
            desk = shared.lock();
            let ended = ending.then(|| left.iter().filter(|sheet| desk.holds(**sheet)).count());
            (desk.trouble, desk.busy, desk.ended) = (trouble, false, ended);
            shared.changed.notify_all();
            if ending {
                return;
            }
        }
    }

    /// Brings the file of a sheet up to these takes.
    fn write(&mut self, number: u32, Takes { timeline, take, build }: &Takes) -> io::Result<()> {
        let mut piece = Vec::new();
        if let Some(sheet) = self.sheets.get_mut(&number)
            && !sheet.torn
            && sheet.file.is_at(&sheet.path)
        {
            sheet.writer.append(timeline, *take, build, &mut piece);
            if !piece.is_empty() {
                sheet.torn = true; // until all of it is there
                sheet.file.write(&sheet.path, &piece)?;
                sheet.torn = false;
            }
            return Ok(());
        }
        let mut writer = Writer::default();
        writer.append(timeline, *take, build, &mut piece);
        let (file, path) = self.folder.create(&piece)?;
        self.leftover.extend(self.sheets.insert(number, Sheet { file, path, writer, torn: false }));
        Ok(())
    }

    /// Removes files that are not needed any more. Returns why one could not be removed: it is tried again.
    fn tidy(&mut self) -> Option<String> {
        let mut trouble = None;
        self.leftover.retain(|Sheet { file, path, .. }| {
            let removed = if file.is_at(path) { self.folder.disk.remove(path) } else { Ok(()) };
            removed.is_err_and(|error| {
                trouble = Some(format!("{} cannot be removed: {error}", path.display()));
                true
            })
        });
        trouble
    }
}

/// Writes takes as a file into the first of these folders that takes it; returns where.
pub(crate) fn rescue(disk: &Disk, folders: &[PathBuf], Takes { timeline, take, build }: &Takes) -> Option<PathBuf> {
    let bytes = file::write(timeline, *take, build);
    let shown = shown(timeline).replace(|c: char| !(c.is_alphanumeric() || c == '_'), "-");
    let name = |number: u32| format!("supple-rescued-{shown}-{}-{number}.take", std::process::id());
    folders.iter().find_map(|folder| {
        let path = (0..10_000).map(|number| folder.join(name(number))).find(|path| !path.exists())?;
        disk.write_whole(&path, &bytes).ok()?;
        Some(path)
    })
}

/// The scene of takes, as it is shown.
fn shown(timeline: &Timeline) -> String {
    let recipe = Recipe::parse(timeline.scene());
    recipe.map_or_else(|_| timeline.scene().to_owned(), |recipe| recipe.shown().to_owned())
}

fn remove(disk: &Disk, file: Opened, path: &Path) -> io::Result<()> {
    drop(file); // some systems remove no open file
    disk.remove(path)
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

    fn takes() -> Takes {
        let scene = Scene::parse("pendulum").unwrap();
        let timeline = Timeline::new(&scene.name, &scene.model, &scene.state, &scene.input);
        Takes { timeline, take: 0, build: "test".into() }
    }

    /// A journal that nobody holds.
    fn orphan(folder: &Folder) -> Orphan {
        let journal = Journal::start(folder.clone(), RETRY);
        journal.hold(0, takes());
        assert_eq!(journal.end().kept, 1);
        folder.orphans().unwrap().remove(0)
    }

    #[test]
    fn what_was_taken_over_goes_only_once_ours_holds_it() {
        let path = folder("taken-over");
        let kept = Folder::new(&path, Disk::default());
        // Our own journal cannot be written, because its folder is a file: the other one stays.
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("no-folder"), b"").unwrap();
        let journal = Journal::start(Folder::new(&path.join("no-folder"), Disk::default()), RETRY);
        journal.take_over(0, takes(), orphan(&kept));
        let ended = journal.end();
        assert!(ended.kept == 0 && ended.unwritten.len() == 1 && ended.trouble.is_some(), "{ended:?}");
        let mut left = kept.orphans().unwrap();
        assert_eq!(left.len(), 1);
        // It can be written: ours takes its place.
        let journal = Journal::start(kept.clone(), RETRY);
        let before = left[0].path.clone();
        journal.take_over(0, takes(), left.remove(0));
        assert_eq!(journal.end().kept, 1);
        let mut left = kept.orphans().unwrap();
        assert!(left.len() == 1 && left[0].path != before, "{left:?}");
        // What it held is saved: nothing stays.
        let journal = Journal::start(kept.clone(), RETRY);
        journal.take_over(0, takes(), left.remove(0));
        journal.let_go(0, None);
        assert_eq!(journal.end().kept, 0);
        assert!(kept.orphans().unwrap().is_empty());
        let _ = fs::remove_dir_all(&path);
    }

    #[test]
    fn a_sheet_goes_only_once_its_successor_is_on_disk() {
        let path = folder("successor");
        let kept = Folder::new(&path, Disk::default());
        let journal = Journal::start(kept.clone(), RETRY);
        journal.hold(0, takes());
        while !journal.is_settled() {
            std::thread::yield_now();
        }
        // 1 and 2 follow it at once; 1 is never written, and 0 goes when 2 is there.
        journal.hold(1, takes());
        journal.let_go(0, Some(1));
        journal.hold(2, takes());
        journal.let_go(1, Some(2));
        let ended = journal.end();
        assert_eq!((ended.kept, ended.unwritten.len(), ended.trouble), (1, 0, None));
        assert_eq!(kept.orphans().unwrap().len(), 1);
        let _ = fs::remove_dir_all(&path);
    }

    #[test]
    fn what_cannot_be_read_is_not_removed() {
        let path = folder("unread");
        fs::create_dir_all(&path).unwrap();
        let kept = Folder::new(&path, Disk::default());
        fs::write(path.join("1-0.journal"), b"").unwrap();
        fs::write(path.join("2-0.journal"), b"SUPPLETK and then something that another version wrote").unwrap();
        let mut bytes = file::write(&takes().timeline, 0, "test");
        bytes[40] ^= 1; // in its head
        fs::write(path.join("3-0.journal"), &bytes).unwrap();
        assert!(kept.orphans().unwrap().is_empty());
        assert_eq!([1, 2, 3].map(|k| path.join(format!("{k}-0.journal")).exists()), [false, true, true]);
        let _ = fs::remove_dir_all(&path);
    }

    /// Sessions that nobody has looked at are not thinned out by newer ones.
    #[test]
    fn the_newest_eight_are_offered_and_the_others_wait() {
        let path = folder("many");
        let kept = Folder::new(&path, Disk::default());
        let now = SystemTime::now();
        let mut names = Vec::new();
        for age in 0..10u64 {
            names.push(orphan(&kept).path);
            let file = fs::File::options().write(true).open(&names[age as usize]).unwrap();
            file.set_modified(now - Duration::from_secs(60 * (age + 1))).unwrap();
        }
        let offered = |folder: &Folder| folder.orphans().unwrap().into_iter().map(|o| o.path).collect::<Vec<_>>();
        assert_eq!(offered(&kept), names[..8]);
        assert!(names.iter().all(|name| name.exists()));
        // As one goes the next comes.
        kept.orphans().unwrap().remove(3).discard().unwrap();
        names.remove(3);
        assert_eq!(offered(&kept), names[..8]);
        let _ = fs::remove_dir_all(&path);
    }

    /// Whoever opens a pipe waits for its other end.
    #[cfg(unix)]
    #[test]
    fn a_pipe_in_the_folder_is_not_waited_for() {
        for name in ["lock", "1-0.journal"] {
            let path = folder(&format!("pipe-{name}"));
            fs::create_dir_all(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path.join(name)).status().unwrap().success());
            let kept = Folder::new(&path, Disk::default());
            assert_eq!(kept.orphans().map(|orphans| orphans.len()).ok(), (name != "lock").then_some(0));
            let _ = fs::remove_dir_all(&path);
        }
    }

    #[test]
    fn the_newest_copies_of_files_are_kept() {
        let path = folder("copies");
        let kept = Folder::new(&path, Disk::default());
        let copies: Vec<_> = (0..=FILES.1 as u8).map(|k| kept.keep_file("../man.glb", &[k]).unwrap()).collect();
        assert!(copies.iter().all(|copy| copy.starts_with(&path) && copy.ends_with("man.glb")), "{copies:?}");
        assert_eq!(copies.iter().filter(|copy| copy.exists()).count(), FILES.1);
        assert_eq!(fs::read(copies.last().unwrap()).unwrap(), [FILES.1 as u8]);
        assert!(kept.keep_file("man", b"x").unwrap().ends_with("man.glb"));
        let long = kept.keep_file(&format!("{}.glb", "é".repeat(300)), b"y").unwrap();
        assert!(long.is_file() && long.extension().is_some_and(|ending| ending == "glb"), "{long:?}");
        let _ = fs::remove_dir_all(&path);
    }

    /// What was recorded with it could not be opened again.
    #[test]
    fn a_copy_that_an_unsaved_session_names_stays() {
        let path = folder("named-copies");
        let kept = Folder::new(&path, Disk::default());
        let copy = kept.keep_file("man.glb", b"the first").unwrap();
        let journal = Journal::start(kept.clone(), RETRY);
        let scene = Scene::parse("pendulum").unwrap();
        let named = Recipe::of_file(&copy.to_string_lossy()).to_string();
        let timeline = Timeline::new(&named, &scene.model, &scene.state, &scene.input);
        journal.hold(0, Takes { timeline, take: 0, build: "test".into() });
        assert_eq!(journal.end().kept, 1);
        let more = |from: u32| (from..from + 40).for_each(|k| _ = kept.keep_file("b.glb", &k.to_le_bytes()).unwrap());
        more(0);
        assert!(copy.is_file());
        kept.orphans().unwrap().remove(0).discard().unwrap();
        more(40);
        assert!(!copy.exists());
        let _ = fs::remove_dir_all(&path);
    }
}
