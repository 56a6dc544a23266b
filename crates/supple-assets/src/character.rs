//! A rigged character of a glTF file: the file, the rig made for it, and what is built of both.

use crate::gltf::{Document, SkinnedMesh};
use crate::rig::{self, Rig};
use crate::{FileError, Imported, Note};
use std::path::Path;

/// A file with its rig. Bones may be changed; [`Character::imported`] then makes the scene anew.
#[derive(Debug)]
pub struct Character {
    pub(crate) document: Document,
    pub(crate) meshes: Vec<SkinnedMesh>,
    /// The rig that was made for the file.
    pub rig: Rig,
    /// What was noticed while the file was read.
    notes: Vec<Note>,
}

impl Character {
    /// Reads a .glb or .gltf file and makes its rig.
    pub fn open(path: &Path) -> Result<Character, FileError> {
        Character::new(Document::read(path)?)
    }

    /// The same from bytes; files that it names are looked for beside `path`.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Character, FileError> {
        Character::new(Document::from_bytes(path, bytes)?)
    }

    /// The .glb or .gltf file.
    pub fn source(&self) -> &Path {
        &self.document.path
    }

    fn new(mut document: Document) -> Result<Character, FileError> {
        let mut notes = std::mem::take(&mut document.notes);
        let clips = document.clips(&mut notes)?;
        let meshes = document.meshes(&mut notes)?;
        let rig = rig::make(&document, &meshes, &clips)?;
        Ok(Character { document, meshes, rig, notes })
    }

    /// The scene of the rig as it is now. `name` is what it was asked for.
    pub fn imported(&self, name: &str) -> Result<Imported, FileError> {
        let mut imported = self.rig.build(&self.document.path, name, &self.meshes)?;
        imported.notes.splice(0..0, self.notes.iter().cloned());
        Ok(imported)
    }
}
