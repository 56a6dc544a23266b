//! Files that are written whole or not at all. What is written goes into a temporary file beside the one that was asked for, which takes its place when
//! everything is on the disk: whoever kills the program, or fills the disk, finds the old file or the whole new one.
//!
//! Pipes and devices cannot be exchanged: they get what is written as it comes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How temporary files are called.
const PREFIX: &str = ".supple-";
const SUFFIX: &str = ".part";
/// A temporary file of this age that nobody holds was left behind.
const YOUNG: Duration = Duration::from_secs(60);

/// A file that is being written. Dropped before its end it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct WholeFile {
    /// Where it will be, links resolved, and where it is until then; `None`: a pipe or a device.
    places: Option<(PathBuf, PathBuf)>,
    out: BufWriter<File>,
}

impl WholeFile {
    /// Begins a file; the one of this name stays as it is.
    pub(crate) fn create(path: &Path) -> io::Result<WholeFile> {
        let buffered = |file| BufWriter::with_capacity(1 << 16, file);
        let path = resolved(path)?;
        let old = match fs::metadata(&path) {
            Ok(old) if old.is_file() => {
                OpenOptions::new().append(true).open(&path)?; // what may not be written is not exchanged either
                Some(old)
            }
            Ok(_) => return Ok(WholeFile { places: None, out: buffered(OpenOptions::new().write(true).open(&path)?) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        sweep(folder_of(&path));
        let (file, temporary) = temporary_beside(&path)?;
        let whole = WholeFile { places: Some((path, temporary)), out: buffered(file) };
        if let Some(old) = old {
            whole.out.get_ref().set_permissions(old.permissions())?;
        }
        Ok(whole)
    }

    /// Puts all on the disk, then the file in its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some((path, temporary)) = &self.places else { return Ok(()) };
        self.out.get_ref().sync_all()?;
        fs::rename(temporary, path)?;
        // The new name is on the disk when its folder is. Not every system can do that; the file is whole all the same.
        let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
        self.places = None;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some((_, temporary)) = &self.places {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Whether a file of this name could be written; leaves no trace. Pipes and devices are not tried: opening them may already act.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(there) if !there.is_file() && !there.is_dir() => Ok(()),
        _ => WholeFile::create(path).map(drop),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A link stays a link: what it leads to is exchanged.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

/// Where a file lies or will lie, the same for each of its names.
pub(crate) fn place(path: &Path) -> io::Result<PathBuf> {
    let path = resolved(path)?;
    Ok(folder_of(&path).canonicalize()?.join(path.file_name().unwrap_or_default()))
}

/// Removes temporary files that nobody writes any more: those of processes that were killed.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_named = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        // Whoever opens a pipe waits for its other end.
        let is_ours = is_named && entry.file_type().is_ok_and(|kind| kind.is_file());
        // Between its making and its lock a file is young.
        let old = |file: &File| Ok::<_, io::Error>(file.metadata()?.modified()?.elapsed().is_ok_and(|age| age > YOUNG));
        if is_ours
            && let Ok(file) = OpenOptions::new().append(true).open(entry.path())
            && old(&file).unwrap_or(false)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A new file in the folder of another one: a name of its own for each process and file.
fn temporary_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let name = format!("{PREFIX}{}-{}{SUFFIX}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temporary = folder_of(path).join(name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                let _ = file.lock(); // tells others that somebody is writing; systems without locks keep what kills leave
                return Ok((file, temporary));
            }
            // Left behind by a process of this number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
