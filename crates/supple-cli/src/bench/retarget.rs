//! `supple bench retarget`: recorded motions on every figure of a folder that walks on two legs: whether feet stand where the recording's do, and do not slide.

use super::rigs::{folder, walk};
use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table};
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use supple_assets::{Character, Files, Imported, Kind, Taken};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct RetargetArgs {
    /// Where the characters and the recordings are, in folders of any depth; SUPPLE_ASSETS unless told
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only recordings whose names begin so
    #[arg(long, value_name = "TEXT", default_value = "cmu_")]
    clips: String,
    #[command(flatten)]
    destination: Destination,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    clip: String,
    /// From the folder.
    character: String,
    #[serde(flatten)]
    taken: Taken,
    /// The code of the error that refused it; all figures are then 0.
    refused: Option<&'static str>,
}

/// Measures, writes, prints.
pub(super) fn run(args: &RetargetArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let folder = folder(args.folder.as_deref())?;
    let (mut characters, mut clips) = (Vec::new(), Vec::new());
    walk(&folder, &super::rigs::ENDINGS, &mut characters)?;
    walk(&folder, &["bvh"], &mut clips)?;
    characters.sort();
    clips.sort();
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&args.clips));
    clips.retain(named);
    let mut figures: Vec<(String, Character, Imported)> = Vec::new();
    for path in &characters {
        let name = path.strip_prefix(&folder).unwrap_or(path).to_string_lossy().into_owned();
        // What does not open, or walks otherwise, is told by `bench rigs`.
        let opened = Files::default().character(path).ok().flatten().filter(|c| c.rig.kind() == Kind::Biped);
        if let Some(character) = opened
            && let Ok(imported) = character.imported(&name)
        {
            figures.push((name, character, imported));
        }
    }
    if figures.is_empty() || clips.is_empty() {
        let what = format!("{} holds no figure on two legs, or no recording", folder.display());
        return Err(Error::setting(what, "give another folder"));
    }
    let bar = terminal.progress((figures.len() * clips.len()) as u64, "motions");
    let mut rows = Vec::new();
    for path in &clips {
        let source = Files::default().motion(&path.to_string_lossy()).map_err(|e| Error::file(&e))?;
        let clip = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (name, character, imported) in &figures {
            let on = character.take_on(imported, &source, &[]);
            let (taken, refused) = match &on {
                Ok(on) => (character.measure_taken(imported, on), None),
                Err(error) => (Taken::default(), Some(error.code)),
            };
            rows.push(Row { clip: clip.clone(), character: name.clone(), taken, refused });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let document = Document { bench: "retarget", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let left = ["clip", "character", "refused"];
    let columns = [
        "clip",
        "character",
        "slide [m/s]",
        "largest [m/s]",
        "height [m]",
        "angle [°]",
        "stands [s]",
        "of [s]",
        "refused",
    ];
    let mut table =
        Table::new(columns.map(|name| (name, if left.contains(&name) { Align::Left } else { Align::Right })));
    for Row { clip, character, taken, refused } in &document.rows {
        table.row([
            clip.clone(),
            character.clone(),
            format!("{:.4}", taken.slide_mean),
            format!("{:.4}", taken.slide_max),
            format!("{:.4}", taken.foot_height),
            format!("{:.2}", taken.angle_error),
            format!("{:.2}", taken.planted),
            format!("{:.2}", taken.seconds),
            refused.unwrap_or_default().into(),
        ]);
    }
    document.print("recorded motions on figures of two legs: feet that stand", &table, terminal)
}
