//! How a scene is made again. A take keeps no model but this text: the name of a built-in scene, or a file and what was changed by hand since it was read.

use crate::doctor::{examine_figure, mended};
use crate::{BoneChange, Cast, Character, FileError, Files, Imported, RigOptions, ThingTold, furnished};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use supple::timeline::Timeline;
use supple::{Scene, TakeError};

/// Endings that tell a file from a scene.
const ENDINGS: [&str; 10] = [".glb", ".gltf", ".vrm", ".fbx", ".vrma", ".urdf", ".xml", ".toml", ".take", ".bvh"];

/// Whether the text looks like a path: names of scenes have neither dots nor slashes before their parameters.
pub fn is_file(text: &str) -> bool {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    let lower = text.to_lowercase();
    name.contains(['/', '\\', '.']) || text.contains('\\') || ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// `FILE#CLIP` as its parts.
pub fn split_clip(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((path, clip)) if !Path::new(text).exists() => (path, Some(clip)),
        _ => (text, None),
    }
}

impl Files {
    /// Opens `FILE`, or `FILE#CLIP`: its scene follows a clip of the file, or starts in a keyframe of an MJCF.
    pub fn clip(&self, text: &str) -> Result<Imported, FileError> {
        let (path, clip) = split_clip(text);
        match clip {
            Some(keyframe) if path.to_lowercase().ends_with(".xml") => {
                crate::mjcf::open_at(&self.open(Path::new(path))?, keyframe)
            }
            _ => follow(self.scene(Path::new(path))?, clip),
        }
    }
}

/// The same with its scene following a clip.
fn follow(mut file: Imported, clip: Option<&str>) -> Result<Imported, FileError> {
    if let Some(name) = clip {
        let refused = |what: String, remedy: String| FileError::new("file/clip", &file.source, what, remedy);
        let clip = file.clip(name).map_err(|e| refused(e.what, e.remedy))?.clone();
        let other = || refused(format!("the clip \"{name}\" has other bodies than the model"), "take another".into());
        file.scene = file.following(&clip).ok_or_else(other)?;
    }
    Ok(file)
}

/// What a scene is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipe {
    /// A built-in scene as it was asked for, or a file, with its clip after `#`.
    pub source: String,
    /// What was changed by hand.
    pub changes: Changes,
    /// Of the bytes of the file, once it was opened. Takes that name this are from someone who has the file: they may open it wherever it lies.
    pub digest: Option<Digest>,
}

/// What tells the bytes of a file from others (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let next = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Digest(bytes.iter().fold(0xcbf2_9ce4_8422_2325, next))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// Before the name of a file that was sent and of which no copy is kept: it has no path, and lies beside the takes if somebody put it there.
pub const SENT: &str = "sent:";

/// Where takes came from, which tells what file they may open.
#[derive(Clone, Copy, Debug)]
pub enum TakesFrom<'a> {
    /// Written by this program for this user: their file is opened wherever it lies.
    Journal,
    /// A file in this folder: theirs lies there too, or in an allowed folder, or has the bytes that it had when they were made.
    Folder(&'a Path),
    /// They were sent: their file lies in an allowed folder.
    Sent,
}

impl TakesFrom<'_> {
    /// Whether a file that the takes name may be opened where they say. A path that is not from the root would mean whatever folder the program was
    /// started in: it is none.
    fn trust(self, files: &Files, path: &Path) -> bool {
        path.is_absolute()
            && match self {
                TakesFrom::Journal => path.exists(),
                TakesFrom::Folder(folder) => files.with(folder).allows(path),
                TakesFrom::Sent => files.allows(path),
            }
    }

    /// The file of this name beside the takes.
    fn beside(self, name: impl AsRef<Path>) -> Option<PathBuf> {
        match self {
            TakesFrom::Folder(folder) => Some(folder.join(name)).filter(|path| path.exists()),
            TakesFrom::Journal | TakesFrom::Sent => None,
        }
    }
}

/// Motions that a character may take on, and times that the remedies of the doctor may be applied. Each is a few bytes of a take and much work to do again.
pub const MOST_MOTIONS: usize = 64;
/// See [`MOST_MOTIONS`].
pub const MOST_MENDED: u32 = 16;

/// What was changed by hand since a file was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// What is asked of the rig before it is made.
    pub rig: RigOptions,
    /// Files whose motion the character took on as clips, each with its clip after `#` where it has several.
    pub motions: Vec<String>,
    /// Bones, in the order in which they were changed.
    pub bones: Vec<ChangedBone>,
    /// How often all remedies of the doctor were applied, after that.
    pub mended: u32,
    /// Things that were put into the scene, in place of those of the file; `None`: those of the file.
    pub things: Option<Vec<ThingTold>>,
}

/// A bone and what was changed of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedBone {
    /// Its name.
    pub bone: String,
    /// What changed.
    pub change: BoneChange,
}

/// What a file gave, and how it is made again.
#[derive(Clone, Debug)]
pub struct Made {
    /// How.
    pub recipe: Recipe,
    /// The scene, with all that the file gave.
    pub imported: Imported,
    /// The character whose bones may be changed, if it is one.
    pub character: Option<Character>,
}

/// The second line of a recipe's text.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    #[serde(skip_serializing_if = "RigOptions::is_default")]
    rig: RigOptions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    motions: Vec<String>,
    bones: Vec<ChangedBone>,
    mended: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    things: Option<Vec<ThingTold>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl fmt::Display for Recipe {
    /// The text that [`Recipe::parse`] reads: the source, and for a file a second line with what was changed and its digest, as JSON.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.source)?;
        if self.changes != Changes::default() || self.digest.is_some() {
            let Changes { rig, motions, bones, mended, things } = self.changes.clone();
            let digest = self.digest.map(|digest| digest.to_string());
            let line = Line { rig, motions, bones, mended, things, digest };
            write!(out, "\n{}", serde_json::to_string(&line).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

impl Recipe {
    /// Of a scene or file without changes.
    pub fn new(source: impl Into<String>) -> Recipe {
        Recipe { source: source.into(), changes: Changes::default(), digest: None }
    }

    /// Of a file, from wherever one is: its path from the root.
    pub fn of_file(text: &str) -> Recipe {
        let (path, clip) = split_clip(text);
        let whole = std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into());
        Recipe::new(clip.map_or(whole.clone(), |clip| format!("{whole}#{clip}")))
    }

    /// Reads what `to_string` wrote.
    pub fn parse(text: &str) -> Result<Recipe, FileError> {
        let (source, changes) = text.split_once('\n').map_or((text, None), |(source, rest)| (source, Some(rest)));
        let wrong = |e: &dyn fmt::Display| {
            let what = format!("what was changed of it cannot be read: {e}");
            FileError::new("take/damaged", Path::new(source), what, ANOTHER_COPY)
        };
        let line: Line = changes.map(serde_json::from_str).transpose().map_err(|e| wrong(&e))?.unwrap_or_default();
        if line.motions.len() > MOST_MOTIONS || line.mended > MOST_MENDED {
            let (motions, mended) = (line.motions.len(), line.mended);
            let most = format!("more than {MOST_MOTIONS} and {MOST_MENDED}");
            return Err(wrong(&format!("{motions} motions from elsewhere, mended {mended} times: {most}")));
        }
        let digest = line.digest.as_ref().and_then(|text| u64::from_str_radix(text, 16).ok()).map(Digest);
        let Line { rig, motions, bones, mended, things, .. } = line;
        let changes = Changes { rig, motions, bones, mended, things };
        Ok(Recipe { source: source.to_owned(), changes, digest })
    }

    /// What a scene file says to follow a clip: its name, or the file that the character took it on from.
    pub fn track(&self, clip: &str) -> String {
        let named = |motion: &&String| {
            let (file, own) = motion.rsplit_once('#').map_or((motion.as_str(), None), |(file, own)| (file, Some(own)));
            let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy());
            own.map_or(stem.as_deref() == Some(clip), |own| own == clip)
        };
        self.changes.motions.iter().find(named).cloned().unwrap_or_else(|| clip.to_owned())
    }

    /// Whether a file has the bytes that it had when this was made.
    fn has_bytes_of(&self, files: &Files, path: &Path) -> bool {
        self.digest.is_some_and(|digest| files.open(path).is_ok_and(|file| Digest::of(file.bytes()) == digest))
    }

    /// The file, without its clip; `None` for a built-in scene.
    pub fn file(&self) -> Option<&Path> {
        is_file(&self.source).then(|| Path::new(split_clip(&self.source).0))
    }

    /// How people call it: a scene as it was asked for, a file without its folders.
    pub fn shown(&self) -> &str {
        let Some(folder) = self.file().and_then(Path::parent).and_then(Path::to_str) else { return &self.source };
        self.source.strip_prefix(folder).map_or(&*self.source, |name| name.trim_start_matches(['/', '\\']))
    }

    /// Whether this is the other one with more changes: all that was changed in that is changed here.
    pub fn goes_on_from(&self, other: &Recipe) -> bool {
        let (mine, theirs) = (&self.changes, &other.changes);
        self != other
            && self.source == other.source
            && mine.rig == theirs.rig
            && mine.motions.starts_with(&theirs.motions)
            && mine.things == theirs.things
            && mine.bones.starts_with(&theirs.bones)
    }

    /// Opens a file and changes it as it was changed.
    pub fn make(mut self, files: &Files) -> Result<Made, FileError> {
        self.changes.rig = files.rig().or(self.changes.rig);
        let files = &files.with_rig(self.changes.rig);
        self.digest = Some(Digest::of(files.open(Path::new(split_clip(&self.source).0))?.bytes()));
        let (path, clip) = split_clip(&self.source);
        let path = Path::new(path);
        let mut character = files.character(path)?;
        let by_hand = !(self.changes.bones.is_empty() && self.changes.motions.is_empty());
        let mut imported =
            if by_hand && character.is_some() { files.scene(path)? } else { files.clip(&self.source)? };
        if let Some(character) = &mut character
            && by_hand
        {
            for ChangedBone { bone, change } in &self.changes.bones {
                let wrong = |what| FileError::new("take/model", path, what, CHANGED);
                character.change(bone, change).map_err(|what| wrong(format!("{bone}: {what}")))?;
            }
            let (things, cast) = (std::mem::take(&mut imported.things), std::mem::take(&mut imported.cast));
            imported = character.imported(&path.to_string_lossy())?;
            imported.cast = cast;
            imported.cast.call(Some(character), &things, |_| Ok(None))?;
            imported.furnish(things).map_err(|what| FileError::new("take/model", path, what, CHANGED))?;
            for motion in &self.changes.motions {
                character.add_motion(&mut imported, &files.motion(motion)?)?;
            }
            imported = follow(imported, clip)?;
        }
        for _ in 0..self.changes.mended {
            let rig = character.as_ref().map(|character| &character.rig);
            let bare = imported.scene.bare();
            let findings = examine_figure(&bare.model, &bare.input, rig).findings;
            let wrong = |e: supple::ModelError| FileError::new("take/model", path, e.to_string(), CHANGED);
            let scene = mended(bare, &findings).map_err(wrong)?;
            if scene.model.bodies().len() != bare.model.bodies().len() {
                imported.meshes.clear();
            }
            imported.scene = scene;
            let things = std::mem::take(&mut imported.things);
            let wrong = |what: String| FileError::new("take/model", path, what, CHANGED);
            imported.furnish(things).map_err(wrong)?;
        }
        if let Some(things) = &self.changes.things {
            // A path from the root was looked at by `make_for`; any other means the folder of a scene file, which opened it, and never
            // the folder that the program was started in.
            let open = |file: &str| match Path::new(file) {
                path if path.is_absolute() => Character::read(files.open(path)?).map(Some),
                _ => Ok(None),
            };
            imported.cast.call(character.as_ref(), things, open)?;
            let wrong = |what: String| FileError::new("take/model", path, what, CHANGED);
            imported.furnish(things.clone()).map_err(wrong)?;
        }
        Ok(Made { recipe: self, imported, character })
    }

    /// Finds the files of characters and props that were put into the scene: where the takes say, or beside them.
    fn find_guests(&mut self, files: &Files, from: TakesFrom<'_>) -> Result<(), FileError> {
        // What a scene file names without the path from the root is opened by that file.
        let by_scene_file =
            |file: &str| is_file(&self.source) && !Path::new(file).is_absolute() && !file.starts_with(SENT);
        let named = |told: &&mut ThingTold| !told.file.is_empty() && !by_scene_file(&told.file);
        for told in self.changes.things.iter_mut().flatten().filter(named) {
            let path = Path::new(&told.file).to_owned();
            if from.trust(files, &path) {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.strip_prefix(SENT).unwrap_or(&name);
            let near = from.beside(name);
            let Some(near) = near else { return Err(not_opened(files, &path.with_file_name(name), from)) };
            told.file = std::path::absolute(&near).unwrap_or(near).to_string_lossy().into_owned();
        }
        Ok(())
    }

    /// Makes a built-in scene with what was put into it, for takes: the scene, what is in it, and who may be.
    pub fn furnish_for(
        mut self,
        scene: &Scene,
        files: &Files,
        from: TakesFrom<'_>,
    ) -> Result<(Scene, Vec<ThingTold>, Cast), FileError> {
        self.find_guests(files, from)?;
        let (mut things, mut cast) = (self.changes.things.unwrap_or_default(), Cast::default());
        cast.call(None, &things, |file| Character::read(files.open(Path::new(file))?).map(Some))?;
        let wrong = |what: String| FileError::new("take/model", Path::new(&self.source), what, ANOTHER_COPY);
        let scene = furnished(scene, &mut things, &cast).map_err(wrong)?;
        Ok((scene, things, cast))
    }

    /// Opens the file that takes were made with; where that is gone or may not be opened, the one of its name beside them.
    pub fn make_for(mut self, files: &Files, takes: &Timeline, from: TakesFrom<'_>) -> Result<Made, FileError> {
        let path = self.file().unwrap_or(Path::new("")).to_owned();
        if !files.rig().is_default() {
            let what = "the takes were made with a mass and a size of its own";
            return Err(FileError::new("file/option", &path, what, "leave out --mass, --scale and --height"));
        }
        let is_known = matches!(from, TakesFrom::Folder(_)) && path.is_absolute() && self.has_bytes_of(files, &path);
        if !(from.trust(files, &path) || is_known) {
            let near = from.beside(path.file_name().unwrap_or_default());
            let Some(near) = near else { return Err(not_opened(files, &path, from)) };
            self.source = near.to_string_lossy().into_owned() + &self.source[path.as_os_str().len()..];
        }
        for motion in &mut self.changes.motions {
            let path = Path::new(split_clip(motion).0).to_owned();
            if from.trust(files, &path) {
                continue;
            }
            // As for the character: the file of this name beside the takes.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.strip_prefix(SENT).unwrap_or(&name);
            let near = from.beside(name);
            let Some(near) = near else { return Err(not_opened(files, &path.with_file_name(name), from)) };
            *motion = near.to_string_lossy().into_owned() + &motion[path.as_os_str().len()..];
        }
        self.find_guests(files, from)?;
        let made = self.make(files)?;
        let changed = |e: TakeError| {
            let what = match e {
                TakeError::Model { what, found, expected } => {
                    format!("it had {found} {what} when the takes were made, and has {expected} now")
                }
                e => e.to_string(),
            };
            FileError::new("take/model", &made.imported.source, what, CHANGED)
        };
        takes.check_bodies(&made.imported.scene.model).map_err(changed)?;
        Ok(made)
    }
}

/// Why the file that takes were made with is not opened.
fn not_opened(files: &Files, path: &Path, from: TakesFrom<'_>) -> FileError {
    let name = path.file_name().unwrap_or_default().display();
    let beside = format!("put {name} beside the take, or allow its folder with --allow-dir");
    let (code, what, remedy) = match from {
        // Whether there is something elsewhere is nobody's business.
        TakesFrom::Sent if !path.parent().is_some_and(|folder| files.allows(folder)) => (
            "file/outside",
            "the takes were made with this file, and takes that were sent open no file",
            "open them with `supple view FILE.take`, or allow the folder of the file with --allow-dir".to_owned(),
        ),
        TakesFrom::Folder(_) if path.exists() => {
            ("file/outside", "the takes name this file, and are not from someone who has it as it is now", beside)
        }
        TakesFrom::Folder(_) => (
            "take/file",
            "the takes were made with this file, and it is not there",
            format!("put it back, or {beside}"),
        ),
        TakesFrom::Journal | TakesFrom::Sent => {
            let remedy = "put it back, then open the takes again".to_owned();
            ("take/file", "the takes were made with this file, and it is not there", remedy)
        }
    };
    FileError::new(code, path, what, remedy)
}

/// What to do about takes that cannot be what was written.
const ANOTHER_COPY: &str = "take another copy of the take";
/// What to do about a file that is no longer what takes were made with.
const CHANGED: &str = "put the file back as it was then";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_scenes() {
        for file in ["hand.glb", "models/robot", "Robot.URDF", "C:\\rigs\\hand.gltf", "./hand", "take:1.take"] {
            assert!(is_file(file), "{file}");
        }
        for scene in ["hand", "chain:1000", "chain:10,damping=0.01"] {
            assert!(!is_file(scene), "{scene}");
        }
    }

    #[test]
    fn recipes_are_texts_and_back() {
        let plain = Recipe::new("chain:10,damping=0.01");
        assert_eq!((plain.to_string().as_str(), plain.shown()), ("chain:10,damping=0.01", "chain:10,damping=0.01"));
        assert_eq!(Recipe::parse("chain:10,damping=0.01").unwrap(), plain);
        let change = BoneChange { mass: Some(0.1 + 0.2), range: Some([-1.0, 1e-9]), ..BoneChange::default() };
        let mut of_file = Recipe::new("/models/man.glb#run");
        let rig = RigOptions { mass: Some(70.5), ..RigOptions::default() };
        let motions = vec!["/models/run.glb#run".to_owned()];
        let ball = ThingTold { kind: "ball".into(), rotation: [0.0, 0.0, 0.0, 1.0], ..ThingTold::default() };
        of_file.changes = Changes {
            rig,
            motions,
            bones: vec![ChangedBone { bone: "calf\n.l".into(), change }],
            mended: 2,
            things: Some(vec![ball]),
        };
        assert_eq!(Recipe::parse(&of_file.to_string()).unwrap(), of_file);
        of_file.digest = Some(Digest::of(b"man"));
        assert_eq!(Recipe::parse(&of_file.to_string()).unwrap(), of_file);
        assert_eq!(of_file.shown(), "man.glb#run");
        assert_eq!(Recipe::parse("man.glb\n{\"bones\":1}").unwrap_err().code, "take/damaged");
        // A few bytes that would cost hours.
        let motions = format!("man.glb\n{{\"motions\":[{}\"a.bvh\"]}}", "\"a.bvh\",".repeat(MOST_MOTIONS));
        for bomb in ["man.glb\n{\"mended\":4294967295}", &motions] {
            let error = Recipe::parse(bomb).unwrap_err();
            assert!(error.code == "take/damaged" && !error.remedy.is_empty(), "{error}");
        }
    }

    /// A take may name any file: a path that is not from the root would mean whatever folder the program was started in.
    #[test]
    fn guests_are_opened_by_a_path_from_the_root_alone() {
        let near = "../../fuzz/strip.gltf"; // from the folder that tests are run in
        let far = Path::new(near).canonicalize().unwrap().to_string_lossy().into_owned();
        let made = |file: &str| {
            let text = format!(r#"{{"name":"Anna","kind":"character","position":[2.0,0.0,0.0],"file":{file:?}}}"#);
            let mut recipe = Recipe::of_file(&far);
            recipe.changes.things = Some(vec![serde_json::from_str(&text).unwrap()]);
            recipe.make(&Files::default()).map(|made| made.imported.scene.guests().len())
        };
        assert_eq!(made(&far).unwrap(), 1);
        assert!(made(near).is_err());
    }
}
