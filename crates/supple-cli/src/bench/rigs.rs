//! `supple bench rigs`: every character of a folder, its rig measured: how its mass is spread, whether hinges stay hinges, whether it comes to rest, whether it
//! holds together and how well it follows its own clips.

use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table, figure};
use crate::terminal::{Terminal, harmless};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use supple_assets::{FileError, Files, Measured};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct RigsArgs {
    /// Where the characters are, in folders of any depth; SUPPLE_ASSETS unless told
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    destination: Destination,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize)]
struct Row {
    /// From the folder.
    file: String,
    #[serde(flatten)]
    measured: Measured,
    /// The code of the error that refused it; all figures are then 0.
    refused: Option<&'static str>,
}

pub(super) use supple_assets::CHARACTER_ENDINGS as ENDINGS;

/// Measures, writes, prints.
pub(super) fn run(args: &RigsArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let folder = folder(args.folder.as_deref())?;
    let mut found = Vec::new();
    walk(&folder, &ENDINGS, &mut found)?;
    found.sort();
    if found.is_empty() {
        let what = format!("{} holds no file ending in .{}", folder.display(), ENDINGS.join(", ."));
        return Err(Error::setting(what, "give another folder"));
    }
    let bar = terminal.progress(found.len() as u64, "files");
    let mut rows = Vec::new();
    for path in &found {
        let name = path.strip_prefix(&folder).unwrap_or(path).to_string_lossy().into_owned();
        bar.set_message(harmless(&name).into_owned());
        bar.tick();
        rows.push(match measure(path) {
            Ok(measured) => Row { file: name, measured, refused: None },
            Err(error) => Row { file: name, measured: Measured::default(), refused: Some(error.code) },
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let document = Document { bench: "rigs", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || print(&document, terminal))
}

/// The folder that is walked.
pub(super) fn folder(told: Option<&Path>) -> Result<PathBuf, Error> {
    match (told, std::env::var_os("SUPPLE_ASSETS")) {
        (Some(folder), _) => Ok(folder.to_owned()),
        (None, Some(folder)) => Ok(folder.into()),
        (None, None) => {
            Err(Error::setting("no folder of characters is given", "give --folder DIR, or set SUPPLE_ASSETS"))
        }
    }
}

/// All files with one of these endings, in folders of any depth.
pub(super) fn walk(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let cannot = |e: std::io::Error| {
        let what = format!("cannot read the folder {}: {}", folder.display(), e.kind());
        Error::setting(what, "check that it exists and may be read")
    };
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        if path.is_dir() {
            walk(&path, endings, found)?;
        } else if endings.contains(&ending.as_str()) {
            found.push(path);
        }
    }
    Ok(())
}

fn measure(path: &Path) -> Result<Measured, FileError> {
    let Some(character) = Files::default().character(path)? else {
        return Err(FileError::new("file/ending", path, "it is not read as a character", "give a .glb or .gltf file"));
    };
    if !character.has_bones() {
        let what = "it has no bones: no skin, no joint, no humanoid";
        return Err(FileError::new("file/bones", path, what, "give a rigged character"));
    }
    character.measure()
}

fn print(document: &Document<Row>, terminal: &Terminal) -> Result<(), Error> {
    let left = ["file", "kind", "refused"];
    let columns = [
        "file",
        "kind",
        "bodies",
        "hinges",
        "mass [kg]",
        "height [m]",
        "scale",
        "asymmetry",
        "head",
        "sideways [°]",
        "torn",
        "rest [s]",
        "speed",
        "clips [°]",
        "clips",
        "refused",
    ];
    let mut table =
        Table::new(columns.map(|name| (name, if left.contains(&name) { Align::Left } else { Align::Right })));
    for Row { file, measured: row, refused } in &document.rows {
        table.row([
            file.clone(),
            format!("{:?}", row.kind).to_lowercase(),
            row.bodies.to_string(),
            row.hinges_found.to_string(),
            figure(row.total_mass),
            figure(row.height),
            figure(row.scale),
            format!("{:.3}", row.asymmetry),
            format!("{:.3}", row.head_share),
            format!("{:.2}", row.sideways),
            format!("{:.4}", row.torn),
            format!("{:.1}", row.rest_time),
            figure(row.rest_speed),
            format!("{:.2}", row.clip_degrees),
            format!("{:.4}", row.clip_share),
            refused.unwrap_or_default().into(),
        ]);
    }
    document.print(
        "every character of the folder: its rig, thrown about, let fall, following its clips",
        &table,
        terminal,
    )
}
