//! `supple rig`: the physical rig of a character as a scene file, or as physics within its own.

use crate::error::Error;
use crate::output::{self, Outputs};
use crate::table::count;
use crate::terminal::Terminal;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supple::Motion;
use supple_assets::retarget::{retarget, unlimited};
use supple_assets::{Character, Files, scene_schema};

/// Make the physical rig of a character and write it: as a scene file that can be edited, or into the character's file
#[derive(Args, Debug)]
pub(crate) struct RigArgs {
    /// A rigged character: .glb or .gltf, or a scene file (.toml) with changes of one
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,
    #[command(flatten)]
    files: crate::scenes::FilesArgs,
    #[command(flatten)]
    character: crate::scenes::CharacterArgs,
    /// Fit the limits of joints to these clips of the file or recorded motions, instead of what names and forms tell
    #[arg(long, value_name = "CLIP|FILE.bvh", num_args = 1..)]
    limits_from: Vec<String>,
    /// What to write, by its ending: .toml (a scene file; printed when left out) or .glb (the character with its physics, KHR_physics_rigid_bodies)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the JSON schema of scene files, for editors
    #[arg(long, conflicts_with = "output")]
    schema: bool,
}

/// Writes the rig.
pub(crate) fn run(args: &RigArgs, terminal: &Terminal) -> Result<(), Error> {
    let Some(path) = args.file.as_ref().filter(|_| !args.schema) else {
        return output::print(|out| out.write_all(scene_schema().as_bytes()));
    };
    let files = Outputs::check(args.output.as_slice(), &["toml", "glb"])?;
    let from = args.files.with(&args.character)?;
    let mut character = open(path, &from)?;
    if !args.limits_from.is_empty() {
        fit_limits(&mut character, path, &args.limits_from, &from, terminal)?;
    }
    let Some(output) = &args.output else {
        let text = character.scene_file(&character.source().to_string_lossy(), None);
        return output::print(|out| out.write_all(text.as_bytes()));
    };
    match files.ending("glb").next() {
        Some(output) => {
            let written = character.with_physics().map_err(|e| Error::file(&e))?;
            for note in &written.notes {
                terminal.note(format_args!("{}: {}", note.part, note.text));
            }
            output::write(output, |out| out.write_all(&written.bytes))?;
        }
        None => {
            let named = relative(character.source(), output);
            output::write_text(output, &character.scene_file(&named, None))?;
            tell_outside(character.source(), &named, terminal);
        }
    }
    terminal.note(format_args!("{}: {}", path.display(), count(character.rig.bones.len(), "body", "bodies")));
    files.tell(terminal);
    Ok(())
}

/// The character of a file.
fn open(path: &Path, from: &Files) -> Result<Character, Error> {
    let none = || Error::setting(format!("{} holds no character", path.display()), "give a .glb, .gltf or .toml file");
    from.character(path).map_err(|e| Error::file(&e))?.ok_or_else(none)
}

/// Fits the limits of a character to clips of its file and to recordings.
fn fit_limits(
    character: &mut Character,
    path: &Path,
    clips: &[String],
    from: &Files,
    terminal: &Terminal,
) -> Result<(), Error> {
    let imported = character.imported(&path.to_string_lossy()).map_err(|e| Error::file(&e))?;
    let free = unlimited(&imported.scene.model).map_err(|e| Error::failed("scene/model", e.to_string()))?;
    let mut motions: Vec<Arc<Motion>> = Vec::new();
    for name in clips {
        if name.to_lowercase().ends_with(".bvh") {
            let file = Path::new(name);
            let recording =
                from.open(file).and_then(|file| supple_assets::bvh::read(&file)).map_err(|e| Error::file(&e))?;
            let on = retarget(file, &recording, &free, &imported.scene.state, &[]).map_err(|e| Error::file(&e))?;
            motions.push(Arc::new(on.motion));
        } else {
            motions.push(crate::scenes::clip(&imported, name)?.clone());
        }
    }
    let motions: Vec<&Motion> = motions.iter().map(|motion| &**motion).collect();
    for note in character.rig.fit_limits(&motions) {
        terminal.note(format_args!("{}: {}", note.part, note.text));
    }
    Ok(())
}

/// A scene file that names a character in another folder opens only when that folder is allowed.
pub(crate) fn tell_outside(source: &Path, named: &str, terminal: &Terminal) {
    if named.starts_with("..") || Path::new(named).is_absolute() {
        let folder = source.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        terminal
            .note(format_args!("it names a file outside its folder: open it with --allow-dir {}", folder.display()));
    }
}

/// The path of a file from the folder of another: `../models/hand.glb`.
pub(crate) fn relative(file: &Path, from: &Path) -> String {
    let whole = |path: &Path| path.canonicalize().ok();
    let folder = from.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(file_whole), Some(folder)) = (whole(file), whole(folder)) else {
        return file.to_string_lossy().into_owned();
    };
    let shared = file_whole.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| "..".to_owned());
    let down = file_whole.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
