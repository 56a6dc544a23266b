//! `supple scenes`, and how SCENE is opened.

use crate::error::Error;
use crate::output;
use crate::table::{Align, Table, count, figure};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supple::scenes::{SceneInfo, catalogue};
use supple::timeline::file::{self, TakeFile};
use supple::{Motion, Scene, State};
use supple_assets::{
    Cast, Character, Files, Imported, Made, Recipe, RigOptions, TakesFrom, ThingTold, is_file, split_clip,
};

/// List the built-in scenes
#[derive(Args, Debug)]
pub(crate) struct ScenesArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    scenes: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    parameters: &'static str,
    /// Of the parameters, in their order; empty where a parameter has none.
    units: &'static [&'static str],
    summary: &'static str,
    /// What the parameter `take` may be, with a line about each.
    takes: &'static [(&'static str, &'static str)],
}

/// Lists the scenes.
pub(crate) fn run(args: &ScenesArgs, terminal: &Terminal) -> Result<(), Error> {
    if args.json {
        let entry = |scene: &SceneInfo| Entry {
            name: scene.name,
            parameters: scene.parameters,
            units: scene.units,
            summary: scene.summary,
            takes: scene.takes,
        };
        return output::print_json(&Document { scenes: catalogue().iter().map(entry).collect() });
    }
    let mut table = Table::new([("scene", Align::Left), ("parameters", Align::Left), ("what it shows", Align::Left)]);
    for scene in catalogue() {
        let mut parameters = with_units(scene);
        table.row([scene.name.into(), parameters.next().unwrap_or_default(), scene.summary.into()]);
        for parameter in parameters {
            table.row([String::new(), parameter, String::new()]);
        }
        for (take, what) in scene.takes {
            table.row([String::new(), format!("take={take}"), (*what).into()]);
        }
    }
    output::print(|out| table.write(out, terminal))?;
    terminal.note("\nParameters follow a colon, without units: supple simulate chain:100,stiffness=50");
    Ok(())
}

/// The parameters with their default values and units: `20 links`, `stiffness=10 N·m/rad`.
fn with_units(scene: &SceneInfo) -> impl Iterator<Item = String> {
    let words = scene.parameters.split(',').zip(scene.units);
    words.map(|(word, unit)| format!("{word} {unit}").trim_end().to_owned())
}

/// Which files may be opened besides those that are named.
#[derive(Args, Debug, Default)]
pub(crate) struct FilesArgs {
    /// Let files also name others in this folder, which is not their own: scene files a character, robots their meshes (may be given several times)
    #[arg(long, value_name = "DIR")]
    allow_dir: Vec<PathBuf>,
}

/// What is asked of the rig of a character.
#[derive(Args, Debug, Default)]
pub(crate) struct CharacterArgs {
    /// The mass of a character of a file; by its height or volume unless told
    #[arg(long, value_name = "KG", value_parser = above_zero, help_heading = "Character")]
    mass: Option<f64>,
    /// Metres in a unit of length of a character's file; found unless told
    #[arg(long, value_name = "M", value_parser = above_zero, conflicts_with = "height", help_heading = "Character")]
    scale: Option<f64>,
    /// The height of a character of a file in metres, in place of --scale
    #[arg(long, value_name = "M", value_parser = above_zero, help_heading = "Character")]
    height: Option<f64>,
}

/// A number above 0.
pub(crate) fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
    number.ok_or_else(|| "give a number above 0".to_owned())
}

impl FilesArgs {
    /// The door that all files of a call go through.
    pub(crate) fn files(&self) -> Result<Files, Error> {
        Files::allowing(&self.allow_dir).map_err(|e| Error::file(&e))
    }

    /// The same, with this asked of characters.
    pub(crate) fn with(&self, character: &CharacterArgs) -> Result<Files, Error> {
        let CharacterArgs { mass, scale, height } = *character;
        Ok(self.files()?.with_rig(RigOptions { mass, scale, height }))
    }
}

/// What SCENE may name.
pub(crate) enum Opened {
    /// A scene at its start.
    Scene(Scene),
    /// Recorded takes with their scene, and the character that it is of.
    Takes(Scene, TakeFile, Option<Box<Character>>),
}

/// Opens a scene or a take.
pub(crate) fn open_any(text: &str, from: &Files) -> Result<Opened, Error> {
    if !is_take(text) {
        return open(text, from).map(Opened::Scene);
    }
    let (recorded, file) = open_take(text, from)?;
    let (scene, character) = match recorded {
        Recorded::Scene(made) => (made.0, None),
        Recorded::File(made) => (made.imported.scene, made.character.map(Box::new)),
    };
    Ok(Opened::Takes(scene, file, character))
}

/// Whether SCENE names a file of takes.
pub(crate) fn is_take(text: &str) -> bool {
    text.to_lowercase().ends_with(".take")
}

/// What takes were made with.
pub(crate) enum Recorded {
    /// A built-in scene with what was put into it.
    Scene(Box<(Scene, Vec<ThingTold>, Cast)>),
    /// A file.
    File(Box<Made>),
}

/// Opens takes with what they were made with. A file that is gone may lie beside the takes.
pub(crate) fn open_take(text: &str, from: &Files) -> Result<(Recorded, TakeFile), Error> {
    let path = Path::new(text);
    let taken = from.open(path).map_err(|e| Error::file(&e))?;
    let file = file::read(taken.bytes()).map_err(|e| Error::take_file(path, &e))?;
    let recipe = Recipe::parse(file.timeline.scene()).map_err(|e| Error::file(&e))?;
    let beside = TakesFrom::Folder(path.parent().unwrap_or(Path::new("")));
    let recorded = match recipe.file() {
        None => {
            let scene = open(&recipe.source, from)?;
            let made = recipe.furnish_for(&scene, from, beside).map_err(|e| Error::file(&e))?;
            Recorded::Scene(Box::new(made))
        }
        Some(_) => {
            let made = recipe.make_for(from, &file.timeline, beside).map_err(|e| Error::file(&e))?;
            Recorded::File(Box::new(made))
        }
    };
    Ok((recorded, file))
}

/// Opens what SCENE names, where a take makes no sense.
pub(crate) fn open(text: &str, from: &Files) -> Result<Scene, Error> {
    open_source(text, from).map(|source| source.scene)
}

/// Opens a URDF whose root floats.
pub(crate) fn open_floating(text: &str, from: &Files) -> Result<Scene, Error> {
    if !text.to_lowercase().ends_with(".urdf") {
        return Err(Error::setting("only the root of a URDF can be let float", "leave out --floating"));
    }
    let base = supple_assets::robot::Base::Floating;
    let robot = from.open(Path::new(text)).and_then(|file| supple_assets::urdf::open_based(&file, base));
    robot.map(|file| file.scene).map_err(|e| Error::file(&e))
}

/// A scene, and the file that it came from.
pub(crate) struct Source {
    pub(crate) scene: Scene,
    /// `None` for a built-in scene.
    pub(crate) file: Option<Imported>,
}

/// Opens a built-in scene or a file. `FILE#CLIP` follows a clip of the file, or starts in a keyframe of an MJCF.
pub(crate) fn open_source(text: &str, from: &Files) -> Result<Source, Error> {
    if !is_file(text) {
        refuse_options(from)?;
        let scene = Scene::parse(text).map_err(|e| Error::scene(&e, text))?;
        return Ok(Source { scene, file: None });
    }
    let file = from.clip(text).map_err(|e| Error::file(&e))?;
    Ok(Source { scene: file.scene.clone(), file: Some(file) })
}

/// Refuses options of a character's rig where there is none: they would do nothing.
fn refuse_options(from: &Files) -> Result<(), Error> {
    if from.rig().is_default() {
        return Ok(());
    }
    let what = "--mass, --scale and --height are for characters of files, and this is a built-in scene";
    Err(Error::setting(what, "leave them out"))
}

/// Endings of files that a motion is recorded for.
pub(crate) const MOTION_ENDINGS: [&str; 4] = ["glb", "bvh", "usda", "vrma"];

/// The character that SCENE names; `None` for built-in scenes and files of other kinds.
pub(crate) fn character(text: &str, from: &Files) -> Result<Option<Character>, Error> {
    let (path, _) = split_clip(text);
    match is_file(path) {
        true => from.character(Path::new(path)).map_err(|e| Error::file(&e)),
        false => Ok(None),
    }
}

/// A clip of a file by its name.
pub(crate) fn clip<'a>(file: &'a Imported, name: &str) -> Result<&'a Arc<Motion>, Error> {
    file.clip(name).map_err(|e| Error::setting(format!("{}: {}", file.source.display(), e.what), e.remedy))
}

/// The state to run a scene from. One that arrives broken is brought together, and that is said.
pub(crate) fn start(scene: &Scene, terminal: &Terminal) -> Result<State, Error> {
    let (state, report) = scene.assembled_start().map_err(|e| Error::step(&e, "the start of the scene"))?;
    if let Some(report) = report {
        terminal.note(format_args!(
            "the scene starts broken, joints open by up to {} (m, rad): assembled in {}, {} left",
            figure(report.error_before),
            count(report.outer as usize, "iteration", "iterations"),
            figure(report.error_after),
        ));
    }
    Ok(state)
}
