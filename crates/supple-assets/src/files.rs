//! The one door to the file system. Whatever a reader opens, the file that the user names included, comes through here:
//!
//! - Only regular files are read. A FIFO or a device is refused without waiting for it, and what was opened is asked again.
//! - A file that another one names lies in the folder of that one, or in a folder that the user allowed; links are resolved first.
//! - A file that was sent (an upload) has no folder: whatever it names stays closed.
//! - There is a bound on the bytes of each file, and on those of a file together with all that it names.

use crate::{FileError, RigOptions};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest file that is read, by its ending; others: [`MOST_BYTES`].
const MOST_BY_ENDING: [(&str, u64); 4] = [("toml", 4 << 20), ("xml", 64 << 20), ("urdf", 64 << 20), ("take", 1 << 30)];
/// The largest file of any other kind \[bytes\].
pub(crate) const MOST_BYTES: u64 = 384 << 20;
/// The most that is read for one file with all that it names \[bytes\].
const MOST_IN_ALL: u64 = 1 << 30;

/// Names of files are tried with up to so many of their folders left off.
const MOST_WORDS: usize = 16;

/// Which files may be opened: those that the user names, what lies in their folders, and the folders allowed here.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Without links.
    allowed: Arc<Vec<PathBuf>>,
    /// What is asked of the rigs of characters.
    rig: RigOptions,
}

/// A file that was opened: what a reader is given. What it names is opened through it.
#[derive(Clone, Debug)]
pub struct InputFile {
    path: PathBuf,
    /// Where it lies, without links; empty where it was sent.
    real: PathBuf,
    bytes: Vec<u8>,
    /// `None`: it was sent, and names nothing that could be opened.
    folder: Option<Folder>,
    allowed: Arc<Vec<PathBuf>>,
    /// What may still be read for this file and all that it names \[bytes\].
    left: Arc<AtomicU64>,
    /// What the user asks of the rig of a character in it, or in a file that it names.
    rig: RigOptions,
}

/// Where the files that a file names may lie.
#[derive(Clone, Debug)]
struct Folder {
    /// Names begin here.
    start: PathBuf,
    /// And lead nowhere outside this, which is without links.
    root: PathBuf,
}

impl Files {
    /// What files name may also lie in these folders.
    pub fn allowing(folders: &[PathBuf]) -> Result<Files, FileError> {
        let mut allowed = Vec::with_capacity(folders.len());
        for folder in folders {
            match folder.canonicalize() {
                Ok(real) if real.is_dir() => allowed.push(real),
                Ok(_) => return Err(FileError::new("file/folder", folder, "it is not a folder", "give a folder")),
                Err(e) => {
                    let what = format!("it cannot be allowed: {}", words(&e));
                    return Err(FileError::new("file/folder", folder, what, "give a folder that exists"));
                }
            }
        }
        Ok(Files { allowed: Arc::new(allowed), rig: RigOptions::default() })
    }

    /// The same, with this asked of the rigs of characters.
    #[must_use]
    pub fn with_rig(&self, rig: RigOptions) -> Files {
        Files { rig, ..self.clone() }
    }

    /// What is asked of the rigs of characters.
    pub fn rig(&self) -> &RigOptions {
        &self.rig
    }

    /// Opens a file that the user names.
    pub fn open(&self, path: &Path) -> Result<InputFile, FileError> {
        let left = Arc::new(AtomicU64::new(MOST_IN_ALL));
        let about = |fault: Fault| FileError::new(fault.code, path, format!("it {}", fault.what), fault.remedy);
        // Opening may already act on a device: it is looked at first.
        let seen = path.metadata().map_err(|e| about(Fault::unreadable(&e)))?;
        if !seen.is_file() {
            return Err(about(Fault::irregular(&seen)));
        }
        let bytes = take_in(path, path, false, &left).map_err(about)?;
        let real = path.canonicalize().map_err(|e| about(Fault::unreadable(&e)))?;
        let folder = Some(Folder::of(path).map_err(|e| about(Fault::unreadable(&e)))?);
        let (allowed, rig) = (self.allowed.clone(), self.rig);
        Ok(InputFile { path: path.to_owned(), real, bytes, folder, allowed, left, rig })
    }

    /// The same with one more folder or file, if it exists.
    #[must_use]
    pub fn with(&self, path: &Path) -> Files {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let more = path.canonicalize().ok();
        Files { allowed: Arc::new(self.allowed.iter().cloned().chain(more).collect()), rig: self.rig }
    }

    /// Whether a file lies in one of the allowed folders, links resolved.
    pub fn allows(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.allowed.iter().any(|folder| real.starts_with(folder)))
    }
}

impl Folder {
    fn of(path: &Path) -> io::Result<Folder> {
        let start = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Folder { start: start.to_owned(), root: start.canonicalize()? })
    }
}

impl InputFile {
    /// Bytes that were sent under a name. They have no folder: what they name is not opened.
    pub fn sent(name: impl Into<PathBuf>, bytes: Vec<u8>) -> InputFile {
        let left = Arc::new(AtomicU64::new(MOST_IN_ALL));
        let (path, real, rig) = (name.into(), PathBuf::new(), RigOptions::default());
        InputFile { path, real, bytes, folder: None, allowed: Arc::default(), left, rig }
    }

    /// The same, if it is no larger than a file of this name may be.
    pub fn received(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<InputFile, FileError> {
        let file = InputFile::sent(name, bytes);
        match check_size(&file.path, file.bytes.len() as u64) {
            Ok(_) => Ok(file),
            Err(fault) => Err(FileError::new(fault.code, &file.path, format!("it {}", fault.what), fault.remedy)),
        }
    }

    /// What the user asks of the rig of a character in it.
    pub fn rig(&self) -> &RigOptions {
        &self.rig
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it lies, without links: the same for every name of one file. Empty where it was sent.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same with all of its allowance, to read again what it names.
    pub(crate) fn afresh(&self) -> InputFile {
        InputFile { left: Arc::new(AtomicU64::new(MOST_IN_ALL)), ..self.clone() }
    }

    /// All of it, and nothing else.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same as text.
    pub fn text(&self) -> Result<&str, FileError> {
        std::str::from_utf8(&self.bytes).map_err(|e| {
            let remedy = "save it as UTF-8, or give another file";
            FileError::new("file/text", &self.path, "it is not text in UTF-8", remedy)
                .at(format!("byte {}", e.valid_up_to()))
        })
    }

    /// What its name ends in, without the dot, in small letters.
    pub fn ending(&self) -> String {
        ending(&self.path)
    }

    /// Opens a file that this one names, by its path from the folder of this one.
    pub fn beside(&self, name: impl AsRef<Path>) -> Result<InputFile, FileError> {
        let name = name.as_ref();
        let fail = |fault: Fault| {
            FileError::new(fault.code, &self.path, format!("\"{}\" {}", name.display(), fault.what), fault.remedy)
        };
        let folder = self.folder.as_ref().ok_or_else(|| fail(Fault::sent()))?;
        let path = folder.start.join(name);
        let real = self.locate(&path).map_err(&fail)?;
        self.open(&path, &real).map_err(fail)
    }

    /// Where a file really lies that this one names: inside its folder or one that is allowed.
    fn locate(&self, path: &Path) -> Result<PathBuf, Fault> {
        let folder = self.folder.as_ref().ok_or_else(Fault::sent)?;
        match path.canonicalize() {
            Ok(real) if self.reaches(&real, folder) => Ok(real),
            Ok(_) => Err(Fault::outside()),
            // What leads out is told as such, whether or not there is something.
            Err(_) if !self.reaches(&by_letters(path, folder), folder) => Err(Fault::outside()),
            Err(e) => Err(Fault::unreadable(&e)),
        }
    }

    /// Opens what [`InputFile::locate`] found. What was opened must still be what lies there.
    fn open(&self, path: &Path, real: &Path) -> Result<InputFile, Fault> {
        let seen = real.symlink_metadata().map_err(|e| Fault::unreadable(&e))?;
        if !seen.is_file() {
            return Err(Fault::irregular(&seen));
        }
        let bytes = take_in(path, real, true, &self.left)?;
        let root = real.parent().unwrap_or(real).to_owned();
        let start = path.parent().unwrap_or(Path::new(".")).to_owned();
        let folder = Some(Folder { start, root });
        let (allowed, left, rig) = (self.allowed.clone(), self.left.clone(), self.rig);
        Ok(InputFile { path: path.to_owned(), real: real.to_owned(), bytes, folder, allowed, left, rig })
    }

    /// Opens a file of the package that this one belongs to: `package://name/rest`, `file://rest` or a path.
    pub(crate) fn in_package(&self, name: &str) -> Result<InputFile, FileError> {
        let fail = |fault: Fault| FileError::new(fault.code, &self.path, fault.what, fault.remedy);
        let (package, path, real) = self.find_in_package(name).map_err(&fail)?;
        package.open(&path, &real).map_err(fail)
    }

    /// Whether [`InputFile::in_package`] would find it.
    pub(crate) fn has_in_package(&self, name: &str) -> Result<(), FileError> {
        let fail = |fault: Fault| FileError::new(fault.code, &self.path, fault.what, fault.remedy);
        self.find_in_package(name).map(|_| ()).map_err(fail)
    }

    /// Names are looked for from the folder of this file up to the root of its package and in allowed folders, with ever shorter beginnings left
    /// off, because packages are moved and renamed. Returns this file with the reach of its package, the path, and the same without links.
    fn find_in_package(&self, name: &str) -> Result<(InputFile, PathBuf, PathBuf), Fault> {
        let folder = self.folder.as_ref().ok_or_else(Fault::sent)?;
        let (rest, is_plain) = match name.split_once("://") {
            Some(("package" | "model", rest)) => (rest, false),
            Some(("file", rest)) => (rest, true),
            Some((scheme, _)) => {
                let what = format!("is named by {scheme}://, which is not opened");
                return Err(Fault { code: "file/outside", what, remedy: "give a path or package://" });
            }
            None => (name, true),
        };
        let root = package_root(&folder.root);
        let package = self.within(Folder { start: folder.start.clone(), root: root.clone() });
        let mut refused = Fault::unreadable(&io::Error::from(io::ErrorKind::NotFound));
        if is_plain {
            let path = folder.start.join(rest);
            match package.locate(&path) {
                Ok(real) => return Ok((package, path, real)),
                Err(fault) => refused = fault,
            }
        }
        let words: Vec<&str> =
            rest.split(['/', '\\']).filter(|word| !word.is_empty() && *word != "." && *word != "..").collect();
        let up = folder.root.ancestors().take_while(|here| here.starts_with(&root));
        for here in up.chain(self.allowed.iter().map(PathBuf::as_path)) {
            for skip in 0..words.len().min(MOST_WORDS) {
                let candidate = here.join(words[skip..].join("/"));
                if let Ok(real) = package.locate(&candidate)
                    && real.is_file()
                {
                    return Ok((package, candidate, real));
                }
            }
        }
        Err(refused)
    }

    /// The same file without its bytes, with another folder.
    fn within(&self, folder: Folder) -> InputFile {
        let InputFile { path, real, allowed, left, .. } = self;
        let (path, real, allowed, left) = (path.clone(), real.clone(), allowed.clone(), left.clone());
        InputFile { path, real, bytes: Vec::new(), folder: Some(folder), allowed, left, rig: self.rig }
    }

    /// Whether a place without links lies where files that this one names may lie.
    fn reaches(&self, place: &Path, folder: &Folder) -> bool {
        place.starts_with(&folder.root) || self.allowed.iter().any(|allowed| place.starts_with(allowed))
    }
}

/// Why a file is not opened. `what` follows its name.
struct Fault {
    code: &'static str,
    what: String,
    remedy: &'static str,
}

impl Fault {
    fn unreadable(error: &io::Error) -> Fault {
        let what = format!("cannot be read: {}", words(error));
        Fault { code: "file/read", what, remedy: "check that it exists and may be read" }
    }

    fn irregular(seen: &std::fs::Metadata) -> Fault {
        let kind = if seen.is_dir() { "a folder" } else { "a pipe or a device" };
        Fault { code: "file/read", what: format!("is {kind}, not a file"), remedy: "give a file" }
    }

    fn outside() -> Fault {
        let what = "leads out of the folder of the file that names it".to_owned();
        Fault { code: "file/outside", what, remedy: "put it into that folder, or allow its own with --allow-dir" }
    }

    fn sent() -> Fault {
        let what = "lies beside a file that was sent alone".to_owned();
        Fault {
            code: "file/outside",
            what,
            remedy: "send one file that holds everything (.glb), or open it with supple",
        }
    }

    fn large(what: String) -> Fault {
        Fault { code: "file/size", what, remedy: "make it smaller: fewer vertices, shorter clips, or several files" }
    }
}

/// Reads a file that was found to be one. `unchanging`: without links, and what was opened must be what lies there.
fn take_in(named: &Path, path: &Path, unchanging: bool, left: &AtomicU64) -> Result<Vec<u8>, Fault> {
    let file = options(unchanging).open(path).map_err(|e| Fault::unreadable(&e))?;
    // Between the look and the opening something else may have been put there: only what is open counts.
    let opened = file.metadata().map_err(|e| Fault::unreadable(&e))?;
    if !opened.is_file() {
        return Err(Fault::irregular(&opened));
    }
    if unchanging && !is_still(path, &opened) {
        let what = "was exchanged while it was opened".to_owned();
        return Err(Fault { code: "file/read", what, remedy: "open it again" });
    }
    let most = check_size(named, opened.len())?;
    let in_all = left.load(Ordering::Relaxed);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(opened.len() as usize).map_err(|_| Fault::large("does not fit into memory".into()))?;
    // Some files tell no length, and some grow while they are read.
    file.take(most.min(in_all) + 1).read_to_end(&mut bytes).map_err(|e| Fault::unreadable(&e))?;
    if bytes.len() as u64 > most {
        return Err(Fault::large(format!("has more than the {} MiB that are read", most >> 20)));
    }
    if bytes.len() as u64 > in_all {
        return Err(Fault::large(format!("and what was read before it have more than {} MiB", MOST_IN_ALL >> 20)));
    }
    left.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
    Ok(bytes)
}

/// The most that is read of a file of this name, if so many bytes are not more.
fn check_size(named: &Path, bytes: u64) -> Result<u64, Fault> {
    let ending = ending(named);
    let most = MOST_BY_ENDING.iter().find(|(name, _)| *name == ending).map_or(MOST_BYTES, |(_, most)| *most);
    if bytes > most {
        return Err(Fault::large(format!("has {bytes} bytes, more than the {} MiB that are read", most >> 20)));
    }
    Ok(most)
}

/// A FIFO is not waited for.
#[cfg(unix)]
fn options(unchanging: bool) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | if unchanging { libc::O_NOFOLLOW } else { 0 });
    options
}

#[cfg(not(unix))]
fn options(_unchanging: bool) -> OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

/// Whether the file that was opened is the one at this place, reached without links.
#[cfg(unix)]
fn is_still(real: &Path, opened: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |there: std::fs::Metadata| (there.dev(), there.ino()) == (opened.dev(), opened.ino());
    real.canonicalize().is_ok_and(|again| again == real) && real.symlink_metadata().is_ok_and(same)
}

#[cfg(not(unix))]
fn is_still(real: &Path, _opened: &std::fs::Metadata) -> bool {
    real.canonicalize().is_ok_and(|again| again == real)
}

/// Folders of a package that descriptions of robots lie in.
const DESCRIPTIONS: [&str; 8] = ["urdf", "urdfs", "robot", "robots", "xacro", "description", "model", "models"];

/// The root of the package that a folder belongs to: the nearest one above with a `package.xml`; failing that, the folder above one that is named
/// as those of descriptions are; failing that, the folder itself.
fn package_root(folder: &Path) -> PathBuf {
    if let Some(root) = folder.ancestors().take(5).find(|here| here.join("package.xml").is_file()) {
        return root.to_owned();
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match folder.parent() {
        Some(above) if DESCRIPTIONS.contains(&name.as_str()) => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Where a path would lead whose end does not exist.
fn by_letters(path: &Path, folder: &Folder) -> PathBuf {
    let (mut place, below) = match path.strip_prefix(&folder.start) {
        Ok(below) => (folder.start.canonicalize().unwrap_or_default(), below),
        Err(_) => (PathBuf::new(), path),
    };
    for part in below.components() {
        match part {
            Component::ParentDir => _ = place.pop(),
            Component::CurDir => {}
            part => place.push(part),
        }
    }
    place
}

/// What a name ends in, without the dot, in small letters.
pub(crate) fn ending(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// What the system says, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
