//! A rigged character of a glTF file: the file, the rig made for it, and what is built of both.

use crate::gltf::{Document, SkinnedMesh, Springs, container};
use crate::rig::{self, Class, Rig, RigOptions};
use crate::scene::{self, BoneChange, Shaped};
use crate::{Bone, FileError, Files, Imported, InputFile, Note};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// A file with its rig. Bones may be changed; [`Character::imported`] then makes the scene anew.
#[derive(Clone, Debug)]
pub struct Character {
    pub(crate) document: Arc<Document>,
    pub(crate) meshes: Arc<Vec<SkinnedMesh>>,
    /// The rig that was made for the file.
    pub rig: Rig,
    /// Chains that the author of an avatar (VRM) set to spring.
    pub springs: Springs,
    /// What was noticed while the file was read.
    notes: Vec<Note>,
    /// What was asked of the rig.
    options: RigOptions,
    /// Shapes that were made wider or longer.
    pub(crate) shaped: Shaped,
}

impl Character {
    /// Reads a .glb or .gltf file and makes its rig. Files that it names must lie in its folder.
    pub fn open(path: &Path) -> Result<Character, FileError> {
        Character::read(Files::default().open(path)?)
    }

    /// The same of a file that was opened.
    pub fn read(file: InputFile) -> Result<Character, FileError> {
        let options = *file.rig();
        Character::read_with(file, &options)
    }

    /// The same with the mass, the unit of length or the height told.
    pub fn read_with(file: InputFile, options: &RigOptions) -> Result<Character, FileError> {
        Character::new(Document::read(file)?, options)
    }

    /// The same from bytes in memory: files that they name are not opened.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Character, FileError> {
        Character::read(InputFile::received(path, bytes)?)
    }

    /// The .glb or .gltf file.
    pub fn source(&self) -> &Path {
        &self.document.path
    }

    /// The file as it was read, byte for byte.
    pub fn bytes(&self) -> &[u8] {
        self.document.file.bytes()
    }

    /// The same as viewers of plain glTF read it: a file whose meshes are compressed, or that is no glTF at all, as a .glb.
    pub fn drawn(&self) -> Vec<u8> {
        if self.document.container.is_own { self.bytes().to_vec() } else { self.document.as_glb() }
    }

    /// Tells this file from others that a running program has read; it means nothing to another program.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.document.path.hash(&mut hash);
        self.bytes().hash(&mut hash);
        hash.finish()
    }

    /// A buffer or image that the file names by a relative URI, by its name without percent signs. Nothing else is read: a name that the file does not have
    /// is none, and neither is an image of a file whose bytes came alone.
    pub fn beside(&self, name: &str) -> Option<Vec<u8>> {
        let root = self.document.root();
        let named = |uri: &Option<String>| {
            uri.as_deref().filter(|uri| !uri.starts_with("data:")).and_then(container::decode_percent).as_deref()
                == Some(name)
        };
        if let Some(k) = root.buffers.iter().position(|buffer| named(&buffer.uri)) {
            return self.document.container.buffers.get(k).cloned();
        }
        let image = root.images.iter().find(|image| named(&image.uri))?;
        container::beside(&self.document.file.afresh(), image.uri.as_deref()?).ok()
    }

    /// What was asked of the rig when it was made.
    pub fn options(&self) -> &RigOptions {
        &self.options
    }

    /// The same file with another mass, unit of length or height. Changes of bones are not kept.
    pub fn with_options(&self, options: &RigOptions) -> Result<Character, FileError> {
        Character::read_with(self.document.file.afresh(), options)
    }

    /// By node of the file: the bone that carries it, if any.
    pub fn carriers(&self) -> &[Option<usize>] {
        &self.rig.bone_of_node
    }

    /// Whether it is a figure of bones rather than things that move by themselves: it has a skin, or a joint.
    pub fn has_bones(&self) -> bool {
        !self.document.root().skins.is_empty() || self.rig.bones.iter().any(Bone::is_joined)
    }

    /// Metres in a unit of length of the file.
    pub fn scale(&self) -> f64 {
        self.document.scale
    }

    /// From the lowest vertex to the highest \[m\].
    pub fn height(&self) -> f64 {
        height(&self.meshes)
    }

    fn new(mut document: Document, options: &RigOptions) -> Result<Character, FileError> {
        options.check(&document.path)?;
        let mut notes = std::mem::take(&mut document.notes);
        let springs = document.springs()?;
        notes.extend(document.vrm_notes(&springs));
        let clips = document.clips(&mut notes)?;
        let read = |document: &Document, notes: &mut Vec<Note>| {
            let meshes = document.meshes(notes)?;
            let rig = rig::make(document, &meshes, &clips, &springs, options.mass)?;
            Ok::<_, FileError>((meshes, rig))
        };
        let (mut meshes, mut rig) = read(&document, &mut notes)?;
        let found = height(&meshes);
        let scale = match (options.scale, options.height) {
            (Some(scale), _) => scale,
            (None, Some(wanted)) if found > 0.0 => wanted / found,
            // Physics of the file are in its own unit, or in the one that they were written in.
            _ if rig.is_given() => document.written_scale().unwrap_or(1.0),
            _ => {
                let classes: Vec<Class> = rig.bones.iter().map(|bone| bone.class).collect();
                let (scale, note) = rig::units::guess(rig.kind(), &classes, found, rig::size(&meshes));
                notes.extend(note);
                scale
            }
        };
        if scale != 1.0 {
            document.set_scale(scale);
            (meshes, rig) = read(&document, &mut Vec::new())?;
        }
        let (document, meshes) = (Arc::new(document), Arc::new(meshes));
        let shaped = Shaped::default();
        Ok(Character { document, meshes, rig, springs, notes, options: *options, shaped })
    }

    /// Changes a bone by its name, as a scene file does; what is wrong with the change, if anything.
    pub fn change(&mut self, bone: &str, change: &BoneChange) -> Result<(), String> {
        let found = self.rig.bones.iter_mut().find(|b| b.name == bone).ok_or(format!("there is no bone \"{bone}\""))?;
        scene::change_bone(found, change)?;
        scene::note(&mut self.shaped, bone, change);
        Ok(())
    }

    /// The scene of the rig as it is now. `name` is what it was asked for.
    pub fn imported(&self, name: &str) -> Result<Imported, FileError> {
        let mut imported = self.rig.build(&self.document.path, name, &self.meshes)?;
        imported.notes.splice(0..0, self.notes.iter().cloned());
        imported.within_reach()
    }
}

/// From the lowest vertex to the highest \[m\].
fn height(meshes: &[SkinnedMesh]) -> f64 {
    let heights = || meshes.iter().flat_map(|mesh| &mesh.vertices).map(|v| v.y);
    let (low, high) = (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
    if low <= high { high - low } else { 0.0 }
}
