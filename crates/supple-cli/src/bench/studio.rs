//! `supple bench studio`: the page in a browser without a screen: how soon the first picture is there, what a picture costs, how much there is to see.

use super::{Destination, Document, Machine};
use crate::error::Error;
use crate::table::{Align, Table, figure};
use crate::terminal::{Terminal, harmless};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Options of the bench.
#[derive(Args, Debug)]
pub(crate) struct StudioArgs {
    /// Scenes and characters; hand, robot and ragdoll unless told
    characters: Vec<String>,
    /// The folder of the page in the repository, with the harness of its tests
    #[arg(long, value_name = "DIR", default_value = "crates/supple-studio/web")]
    page: PathBuf,
    #[command(flatten)]
    destination: Destination,
}

/// The keys are a promise: add, do not rename.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    character: String,
    /// From the call of the page until the first picture with all that there is to draw is there.
    first_picture_ms: f64,
    /// What the browser's processes took until then, all threads together, a few pictures more included; null where the
    /// system does not say.
    first_picture_processor_ms: Option<f64>,
    /// Time of the page's script in a picture, telling the graphics card included: the median of those of two seconds.
    frame_ms: f64,
    /// Of a picture, shadows included.
    draw_calls: u32,
    /// Buttons, fields and choices of the panel that are seen at first.
    panel_controls: u32,
}

/// Measures, writes, prints.
pub(super) fn run(args: &StudioArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.destination.files(&["json"])?;
    let script = args.page.join("tests/bench.mjs");
    if !script.is_file() {
        let what =
            format!("{} is not there: the bench drives a browser by the harness of the page's tests", script.display());
        return Err(Error::setting(what, "run it in the repository, or give its folder with --page"));
    }
    let usual = || ["hand", "robot", "ragdoll"].map(str::to_owned).to_vec();
    let characters = if args.characters.is_empty() { usual() } else { args.characters.clone() };
    let own = std::env::current_exe()
        .map_err(|e| Error::failed("bench/studio", format!("this program is not found: {e}")))?;
    let bar = terminal.progress(characters.len() as u64, "characters");
    let mut rows = Vec::new();
    for character in characters {
        bar.set_message(harmless(&character).into_owned());
        bar.tick();
        let ran = Command::new("node").arg(&script).arg(&character).env("SUPPLE", &own).stderr(Stdio::piped()).output();
        let failed = |what: String| Error::failed("bench/studio", what);
        let ran = ran.map_err(|e| failed(format!("node cannot be started ({e}): install Node.js and Chromium")))?;
        let said = String::from_utf8_lossy(&ran.stderr);
        if !ran.status.success() {
            return Err(failed(format!("the page of {character} was not measured: {}", said.trim())));
        }
        let row = serde_json::from_slice::<Row>(&ran.stdout);
        rows.push(row.map_err(|e| failed(format!("the page of {character} was not measured: {e}")))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let document = Document { bench: "studio", machine: Machine::here(), rows };
    args.destination.deliver(&document, &files, terminal, || {
        let columns =
            ["character", "first picture [ms]", "of the processor [ms]", "script [ms]", "draw calls", "controls"];
        let mut table =
            Table::new(columns.map(|name| (name, if name == "character" { Align::Left } else { Align::Right })));
        for row in &document.rows {
            table.row([
                row.character.clone(),
                figure(row.first_picture_ms),
                row.first_picture_processor_ms.map_or_else(|| "?".to_owned(), figure),
                figure(row.frame_ms),
                row.draw_calls.to_string(),
                row.panel_controls.to_string(),
            ]);
        }
        document.print("the page at 1280 × 720 in a browser without a graphics card", &table, terminal)
    })
}
