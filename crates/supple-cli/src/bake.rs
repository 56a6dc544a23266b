//! How a simulated motion is baked: which part of it, in how many frames, on which nodes.

use crate::error::Error;
use crate::output::{self, Outputs};
use crate::terminal::Terminal;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::Path;
use supple::Scene;
use supple_assets::{BakeSettings, Character, Recording, RootMotion, bake_scene, plain};

/// Options of a baked motion.
#[derive(Args, Debug, Default)]
pub(crate) struct BakeArgs {
    /// Frames a second of the motion in .glb and .bvh files; those of the steps unless told
    #[arg(long, value_name = "N", help_heading = "Baking")]
    fps: Option<f64>,
    /// Where the baked motion begins, in seconds
    #[arg(long, value_name = "S", help_heading = "Baking")]
    from: Option<f64>,
    /// Where the baked motion ends, in seconds
    #[arg(long, value_name = "S", help_heading = "Baking")]
    to: Option<f64>,
    /// Close the motion to a loop: over the last S seconds it is led to its first pose; travel along the ground goes on
    #[arg(long = "loop", value_name = "S", num_args = 0..=1, default_missing_value = "0.25", help_heading = "Baking")]
    seam: Option<f64>,
    /// Where the travel of a character along the ground is written: on the hips, on the node at the root of the skeleton, or nowhere
    #[arg(long, value_name = "WHERE", help_heading = "Baking")]
    root_motion: Option<Where>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    Hips,
    Root,
    InPlace,
}

/// A motion and its name.
pub(crate) type Clip = (String, Recording);

impl BakeArgs {
    /// Refuses what cannot be, and what would do nothing.
    pub(crate) fn check(&self, files: &Outputs) -> Result<(), Error> {
        let within = |name: &str, value: Option<f64>, low: f64, high: f64| match value {
            Some(x) if !(low..=high).contains(&x) => {
                let help = format!("give a number from {} to {}", plain(low), plain(high));
                Err(Error::setting(format!("--{name} is {}", plain(x)), help))
            }
            _ => Ok(()),
        };
        within("fps", self.fps, 1.0, 1000.0)?;
        within("from", self.from, 0.0, 1e6)?;
        within("to", self.to, 0.0, 1e6)?;
        within("loop", self.seam, 0.001, 1e3)?;
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Error::setting(
                format!("--from {} is not before --to {}", plain(from), plain(to)),
                "give an earlier --from",
            ));
        }
        let has = |ending: &str| files.ending(ending).next().is_some();
        let part = self.fps.is_some() || self.from.is_some() || self.to.is_some();
        if part && !crate::scenes::MOTION_ENDINGS.iter().any(|ending| has(ending)) {
            return Err(Error::setting("--fps, --from and --to are for baked motion", "give -o FILE.glb or FILE.bvh"));
        }
        if self.seam.is_some() || self.root_motion.is_some() {
            if !(has("glb") || has("vrma")) {
                return Err(Error::setting("--loop and --root-motion are for baked motion", "give -o FILE.glb"));
            }
            if has("bvh") || has("usda") {
                let what = "--loop and --root-motion are written into .glb and .vrma alone";
                return Err(Error::setting(what, "write the .bvh or .usda by a call of its own, without them"));
            }
        }
        Ok(())
    }

    /// The part of a motion that is asked for.
    fn cut(&self, recording: Recording) -> Result<Recording, Error> {
        let end = recording.seconds();
        let late = |name: &str, time: f64| {
            Error::setting(
                format!("--{name} {} is after the end of the motion, {end:.3} s", plain(time)),
                "give an earlier time",
            )
        };
        if let Some(to) = self.to.filter(|to| *to > end + 1e-6) {
            return Err(late("to", to));
        }
        if let Some(from) = self.from.filter(|from| *from >= end) {
            return Err(late("from", from));
        }
        let (from, to) = (self.from.unwrap_or(0.0), self.to.unwrap_or(end));
        if let Some(blend) = self.seam.filter(|blend| *blend > to - from) {
            let what = format!("--loop {} is longer than the motion, {:.3} s", plain(blend), to - from);
            return Err(Error::setting(what, "give fewer seconds"));
        }
        if self.fps.is_none() && self.from.is_none() && self.to.is_none() {
            return Ok(recording);
        }
        Ok(recording.cut(from, to, self.fps))
    }

    fn settings(&self) -> BakeSettings {
        let root = match self.root_motion {
            None | Some(Where::Hips) => RootMotion::Hips,
            Some(Where::Root) => RootMotion::Root,
            Some(Where::InPlace) => RootMotion::InPlace,
        };
        BakeSettings { root, seam: self.seam, ..BakeSettings::default() }
    }

    /// Writes motions into every .glb and .bvh of the files: a .glb has them all, on the nodes of the character's file or on new ones; a .bvh has the first.
    pub(crate) fn write(
        &self,
        scene: &Scene,
        character: Option<&Character>,
        clips: Vec<Clip>,
        files: &Outputs,
        terminal: &Terminal,
    ) -> Result<(), Error> {
        let write = |path: &Path, bytes: &[u8], notes: &[supple_assets::Note]| {
            notes.iter().for_each(|note| terminal.note(format_args!("{}: {}", note.part, note.text)));
            output::write(path, |out| out.write_all(bytes))
        };
        let cut = |(name, recording)| Ok((name, self.cut(recording)?));
        let clips = clips.into_iter().map(cut).collect::<Result<Vec<Clip>, Error>>()?;
        let settings = self.settings();
        if scene.model.skin().is_some() && self.seam.is_some() {
            return Err(Error::setting("--loop does not close soft skin", "leave it out, or bake without [skin]"));
        }
        for path in files.ending("glb") {
            let baked = match character {
                Some(character) => {
                    let clips: Vec<(&str, &Recording)> = clips.iter().map(|(name, clip)| (&**name, clip)).collect();
                    character.bake_clips(&scene.model, &clips, &settings)
                }
                None if self.seam.is_some() || self.root_motion.is_some() => {
                    let what = "--loop and --root-motion are for characters, and the scene is none";
                    return Err(Error::setting(what, "leave them out"));
                }
                None => bake_scene(&scene.model, &clips[0].1, &scene.name, &settings),
            };
            write(path, &baked.bytes, &baked.notes)?;
        }
        for path in files.ending("bvh") {
            let (motion, notes) = supple_assets::export_bvh(&scene.model, &clips[0].1);
            write(path, motion.write().as_bytes(), &notes)?;
        }
        let whose = |why: &str| {
            let what = format!("{}: {why}", scene.name);
            character.ok_or_else(|| Error::setting(what, "give a character's file, or write a .glb"))
        };
        let (name, recording) = &clips[0];
        for path in files.ending("usda") {
            let character = whose("USD is written of characters alone")?;
            let usda = character.usda(&scene.model, recording, name).map_err(|e| Error::file(&e))?;
            write(path, usda.text.as_bytes(), &usda.notes)?;
        }
        for path in files.ending("vrma") {
            let character = whose("a .vrma is written of avatars alone")?;
            let baked = character.vrma(&scene.model, recording, name, &settings).map_err(|e| Error::file(&e))?;
            write(path, &baked.bytes, &baked.notes)?;
        }
        Ok(())
    }
}
