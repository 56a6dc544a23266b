//! Any file, by its ending.

use crate::{Character, FileError, Imported, scene};
use std::path::Path;

/// A reader of one format.
type Read = fn(&Path) -> Result<Imported, FileError>;

/// The endings that [`open`] takes, without the dot, with their readers.
const READERS: [(&str, Read); 6] = [
    ("glb", read_character),
    ("gltf", read_character),
    ("toml", scene::open),
    ("urdf", crate::urdf::open),
    ("xml", crate::mjcf::open),
    ("bvh", crate::skeleton::open),
];

/// Reads a file by its ending.
pub fn open(path: &Path) -> Result<Imported, FileError> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    match READERS.iter().find(|(name, _)| *name == ending) {
        Some((_, read)) => read(path),
        None => Err(FileError::new(
            "file/ending",
            path,
            format!("\".{ending}\" is not an ending that Supple reads"),
            format!("give one of {}", READERS.map(|(name, _)| format!(".{name}")).join(", ")),
        )),
    }
}

fn read_character(path: &Path) -> Result<Imported, FileError> {
    Character::open(path)?.imported(&path.to_string_lossy())
}

/// The rigged character of a .glb or .gltf file, or of a scene file with its changes; `None` for files of other kinds.
pub fn character(path: &Path) -> Result<Option<Character>, FileError> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    match ending.as_str() {
        "glb" | "gltf" => Character::open(path).map(Some),
        "toml" => scene::character(path).map(Some),
        _ => Ok(None),
    }
}
