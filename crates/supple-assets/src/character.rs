//! A rigged character of a glTF file: the file, the rig made for it, and what is built of both.

use crate::gltf::{Document, SkinnedMesh};
use crate::rig::{self, Rig};
use crate::scene::{self, BoneChange};
use crate::{FileError, Files, Imported, InputFile, Note};
use std::path::Path;
use std::sync::Arc;

/// A file with its rig. Bones may be changed; [`Character::imported`] then makes the scene anew.
#[derive(Clone, Debug)]
pub struct Character {
    pub(crate) document: Arc<Document>,
    pub(crate) meshes: Arc<Vec<SkinnedMesh>>,
    /// The rig that was made for the file.
    pub rig: Rig,
    /// What was noticed while the file was read.
    notes: Vec<Note>,
}

impl Character {
    /// Reads a .glb or .gltf file and makes its rig. Files that it names must lie in its folder.
    pub fn open(path: &Path) -> Result<Character, FileError> {
        Character::read(Files::default().open(path)?)
    }

    /// The same of a file that was opened.
    pub fn read(file: InputFile) -> Result<Character, FileError> {
        Character::new(Document::read(file)?)
    }

    /// The same from bytes in memory: files that they name are not opened.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Character, FileError> {
        Character::read(InputFile::sent(path, bytes))
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
        Ok(Character { document: Arc::new(document), meshes: Arc::new(meshes), rig, notes })
    }

    /// Changes a bone by its name, as a scene file does; what is wrong with the change, if anything.
    pub fn change(&mut self, bone: &str, change: &BoneChange) -> Result<(), String> {
        let found = self.rig.bones.iter_mut().find(|b| b.name == bone).ok_or(format!("there is no bone \"{bone}\""))?;
        scene::change_bone(found, change)
    }

    /// The scene of the rig as it is now. `name` is what it was asked for.
    pub fn imported(&self, name: &str) -> Result<Imported, FileError> {
        let mut imported = self.rig.build(&self.document.path, name, &self.meshes)?;
        imported.notes.splice(0..0, self.notes.iter().cloned());
        imported.within_reach()
    }
}
