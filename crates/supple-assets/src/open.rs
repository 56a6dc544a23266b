//! Any file, by its ending.

use crate::files::ending;
use crate::{Character, FileError, Files, Imported, InputFile, scene};
use std::path::Path;

/// A reader of one format.
type Read = fn(InputFile) -> Result<Imported, FileError>;

/// The endings that [`open`] takes, without the dot, with their readers.
const READERS: [(&str, Read); 9] = [
    ("glb", read_character),
    ("gltf", read_character),
    ("vrm", read_character),
    ("fbx", read_character),
    ("toml", |file| scene::open(&file)),
    ("urdf", |file| crate::urdf::open(&file)),
    ("xml", |file| crate::mjcf::open(&file)),
    ("bvh", |file| crate::skeleton::open(file)),
    ("vrma", |file| crate::skeleton::open(file)),
];

/// Endings of files that may hold a rigged character, without the dot.
pub const CHARACTER_ENDINGS: [&str; 4] = ["glb", "gltf", "vrm", "fbx"];

/// Reads a file by its ending. What it names must lie in its folder.
pub fn open(path: &Path) -> Result<Imported, FileError> {
    Files::default().scene(path)
}

impl Files {
    /// Reads a file by its ending.
    pub fn scene(&self, path: &Path) -> Result<Imported, FileError> {
        let read = reader(path)?;
        self.check_options(path)?;
        read(self.open(path)?)
    }

    /// The rigged character of a .glb, .gltf, .vrm or .fbx file, or of a scene file with its changes; `None` for files of other kinds.
    pub fn character(&self, path: &Path) -> Result<Option<Character>, FileError> {
        match ending(path).as_str() {
            ending if CHARACTER_ENDINGS.contains(&ending) => Character::read(self.open(path)?).map(Some),
            "toml" => scene::character(&self.open(path)?).map(Some),
            _ => self.check_options(path).map(|()| None),
        }
    }

    /// Refuses options of a rig for a file that holds no character: they would do nothing.
    fn check_options(&self, path: &Path) -> Result<(), FileError> {
        let ending = ending(path);
        if self.rig().is_default() || ending == "toml" || CHARACTER_ENDINGS.contains(&ending.as_str()) {
            return Ok(());
        }
        let what = "it is no rigged character: its mass and its lengths are those that it tells";
        Err(FileError::new("file/option", path, what, "leave out --mass, --scale and --height"))
    }
}

impl InputFile {
    /// What it holds, by its ending.
    pub fn scene(self) -> Result<Imported, FileError> {
        reader(self.path())?(self)
    }
}

fn reader(path: &Path) -> Result<Read, FileError> {
    let ending = ending(path);
    let found = READERS.iter().find(|(name, _)| *name == ending);
    found.map(|(_, read)| *read).ok_or_else(|| {
        let what = if ending.is_empty() {
            "its name has no ending, which tells what a file holds".to_owned()
        } else {
            format!("\".{ending}\" is not an ending that Supple reads")
        };
        FileError::new(
            "file/ending",
            path,
            what,
            format!("give one of {}", READERS.map(|(name, _)| format!(".{name}")).join(", ")),
        )
    })
}

fn read_character(file: InputFile) -> Result<Imported, FileError> {
    let name = file.path().to_string_lossy().into_owned();
    Character::read(file)?.imported(&name)
}
