//! The disk as the journal and saved takes use it: a few operations on files that only this user may read. Tests make the n-th of them fail.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
#[cfg(test)]
use std::sync::Arc;

/// The disk. Copies of it are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    faults: Option<Arc<faults::Faults>>,
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    file: File,
    disk: Disk,
}

impl Disk {
    /// Called before each operation that a full, broken or forbidden disk may refuse.
    fn ask(&self, _path: &Path) -> io::Result<()> {
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            return faults.ask(_path);
        }
        Ok(())
    }

    /// Makes a folder for this user alone, with those it lies in, unless it is there.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.ask(path)?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    /// Makes a file that is not there yet.
    pub(crate) fn create(&self, path: &Path) -> io::Result<Opened> {
        self.open_with(path, private().write(true).create_new(true))
    }

    /// Opens a file to hold a lock on it; makes it if need be.
    pub(crate) fn open_lock(&self, path: &Path) -> io::Result<Opened> {
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::other(format!("{} is no file", path.display()))); // to open a pipe is to wait for it
        }
        self.open_with(path, private().write(true).create(true).truncate(false))
    }

    /// Opens a file that is there, to read it and to hold it.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Opened> {
        self.open_with(path, private().read(true).write(true))
    }

    fn open_with(&self, path: &Path, options: &OpenOptions) -> io::Result<Opened> {
        self.ask(path)?;
        Ok(Opened { file: options.open(path)?, disk: self.clone() })
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(path)?;
        fs::remove_file(path)
    }

    /// Writes a whole file, so that at any moment either nothing or all of it has this name.
    pub(crate) fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = path.with_file_name(name);
        let _ = fs::remove_file(&new); // of a process before us with our number
        let mut file = self.create(&new)?;
        let written = file.write(&new, bytes).and_then(|()| {
            drop(file); // some systems rename no open file
            self.ask(path)?;
            fs::rename(&new, path)?;
            self.flush_folder(path.parent().unwrap_or(Path::new(".")))
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Makes the names in a folder outlive a power cut, where the system can.
    pub(crate) fn flush_folder(&self, path: &Path) -> io::Result<()> {
        self.ask(path)?;
        #[cfg(unix)]
        File::open(path)?.sync_all()?;
        Ok(())
    }
}

impl Opened {
    /// Appends bytes and waits until they are on the disk.
    pub(crate) fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.disk.ask(path) {
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]); // a disk that fills up takes a part
            return Err(error);
        }
        self.file.write_all(bytes)?;
        self.disk.ask(path)?;
        self.file.sync_data()
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    /// What the system knows of it.
    pub(crate) fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    /// All of it, from its start, if it is no longer than this.
    pub(crate) fn read(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let length = self.file.metadata()?.len();
        if length > most {
            return Err(io::Error::other("it is larger than any journal"));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        self.file.seek(SeekFrom::Start(0))?;
        (&mut self.file).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether this is still the file that has this name: a folder may have been removed under it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let place = |data: &fs::Metadata| (data.dev(), data.ino());
            matches!((self.file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if place(&a) == place(&b))
        }
        #[cfg(not(unix))]
        path.is_file()
    }
}

/// Files that only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Operations that fail.
#[cfg(test)]
pub(crate) mod faults {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// How long it fails.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Lasting {
        /// One operation.
        Once,
        /// Every operation from then on, until [`Disk::mend`].
        On,
    }

    /// Which operation fails, and how.
    #[derive(Debug)]
    pub(crate) struct Faults {
        /// Only operations below this folder are counted, and fail.
        below: PathBuf,
        first: u64,
        lasting: Lasting,
        /// As the system numbers it: ENOSPC, EIO, EACCES.
        error: i32,
        asked: AtomicU64,
        mended: AtomicU64,
    }

    impl Faults {
        pub(super) fn ask(&self, path: &Path) -> io::Result<()> {
            if !path.starts_with(&self.below) {
                return Ok(());
            }
            let now = self.asked.fetch_add(1, Ordering::SeqCst);
            let fails = match self.lasting {
                Lasting::Once => now == self.first,
                Lasting::On => now >= self.first && self.mended.load(Ordering::SeqCst) == 0,
            };
            if fails { Err(io::Error::from_raw_os_error(self.error)) } else { Ok(()) }
        }
    }

    impl Disk {
        /// A disk whose operations below a folder fail from the one with this number, counted from 0.
        pub(crate) fn failing(below: &Path, first: u64, lasting: Lasting, error: i32) -> Disk {
            let (asked, mended) = (AtomicU64::new(0), AtomicU64::new(0));
            Disk { faults: Some(Arc::new(Faults { below: below.into(), first, lasting, error, asked, mended })) }
        }

        /// How many operations were asked for.
        pub(crate) fn asked(&self) -> u64 {
            self.faults.as_ref().map_or(0, |faults| faults.asked.load(Ordering::SeqCst))
        }

        /// Nothing fails any more.
        pub(crate) fn mend(&self) {
            self.faults.as_ref().expect("it fails").mended.store(1, Ordering::SeqCst);
        }
    }
}
