//! `supple view`: serves the studio and opens a browser.

use crate::error::Error;
use crate::output;
use crate::scenes::{self, FilesArgs, Recorded};
use crate::terminal::Terminal;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;
use supple_assets::{Files, Recipe, is_file};
use supple_studio::{Closed, Opening, Settings, Studio, Unfinished};

/// Open the studio: a page where the character moves and can be pulled
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), a file (.glb, .gltf, .toml, .urdf, .xml,
    /// .bvh), or a .take file
    #[arg(default_value = "hand")]
    scene: String,
    #[command(flatten)]
    files: FilesArgs,
    /// Port on 127.0.0.1; the next free one is used when it is busy [default: 7411]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Keep the journal of unsaved takes in this folder instead of the user's own
    #[arg(long, value_name = "DIR", conflicts_with = "no_journal")]
    journal: Option<PathBuf>,
    /// Keep no journal: what is not saved is lost when supple ends
    #[arg(long)]
    no_journal: bool,
}

impl Default for ViewArgs {
    fn default() -> Self {
        ViewArgs {
            scene: "hand".into(),
            files: FilesArgs::default(),
            port: None,
            no_open: false,
            journal: None,
            no_journal: false,
        }
    }
}

/// Serves until Ctrl-C.
pub(crate) fn run(args: &ViewArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.files.files()?;
    let opening = open(&args.scene, &files)?;
    let bodies = opening.model().bodies().len();
    if bodies > supple_studio::MAX_BODIES {
        return Err(Error::wrong(
            "studio/size",
            format!("{} has {bodies} bodies, more than the studio shows", args.scene),
            format!("ask for up to {}", supple_studio::MAX_BODIES),
        ));
    }
    let journal = match args.no_journal {
        true => None,
        false => args.journal.clone().or_else(supple_studio::default_journal_folder),
    };
    let settings = Settings { port: args.port, build: crate::build(), journal, files };
    let studio = Studio::bind(opening, settings).map_err(|e| Error::studio(&e))?;
    let address = studio.address().map_err(|e| Error::studio(&e))?;
    output::print(|out| writeln!(out, "{address}"))?;
    terminal.note("The studio runs at this address until you press Ctrl-C.");
    for session in studio.unfinished() {
        terminal
            .note(format_args!("A session that did not finish can be recovered from the page: {}.", told(&session)));
    }
    if let Some(trouble) = studio.journal_trouble() {
        terminal.note(format_args!("No journal can be kept ({trouble}): save what you want to keep."));
    }
    if !args.no_open {
        open_browser(&address);
    }
    match studio.serve().map_err(|e| Error::studio(&e))? {
        Closed::Clean => Ok(()),
        Closed::Kept => {
            terminal.note("The takes that were not saved are kept: the next `supple view` offers them again.");
            Ok(())
        }
        Closed::Lost => Err(Error::failed(
            "studio/journal",
            "the journal of the takes that were not saved could not be written to its end; the next `supple view` offers what there is of it",
        )),
    }
}

/// What SCENE names.
fn open(text: &str, from: &Files) -> Result<Opening, Error> {
    if scenes::is_take(text) {
        let (recorded, file) = scenes::open_take(text, from)?;
        let opening = match recorded {
            Recorded::Scene(scene) => Opening::of_scene(*scene),
            Recorded::File(made) => Opening::of_file(*made),
        };
        return Ok(opening.with_takes(file));
    }
    if !is_file(text) {
        return scenes::open(text, from).map(Opening::of_scene);
    }
    let mut made = Recipe::of_file(text).make(from).map_err(|e| Error::file(&e))?;
    made.imported.scene.name = text.to_owned();
    Ok(Opening::of_file(made))
}

/// A session in a few words.
fn told(session: &Unfinished) -> String {
    let Unfinished { scene, seconds, takes, written, .. } = session;
    let minutes = SystemTime::now().duration_since(*written).map_or(0, |ago| ago.as_secs() / 60);
    let ago = match minutes {
        0 => "just now".to_owned(),
        1..=119 => format!("{minutes} min ago"),
        120..=2879 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    };
    let takes = if *takes == 1 { "1 take".to_owned() } else { format!("{takes} takes") };
    format!("{scene}, {takes}, {seconds:.1} s, {ago}")
}

/// Asks the system to open a browser. Whoever has none still has the address.
fn open_browser(address: &str) {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.args(["/C", "start", ""]);
        command
    } else {
        Command::new("xdg-open")
    };
    let _ = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
