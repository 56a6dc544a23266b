//! `supple view`: serves the studio and opens a browser.

use crate::error::Error;
use crate::output;
use crate::scenes::{self, CharacterArgs, FilesArgs, Recorded};
use crate::terminal::{self, Terminal};
use clap::Args;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;
use supple_assets::{Files, Recipe, is_file};
use supple_studio::{Closed, Limits, Opening, Settings, Studio, Unfinished};

/// Open the studio: a page where the character moves and can be pulled
#[derive(Args, Debug, Default)]
pub(crate) struct ViewArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), a file (.glb, .gltf, .vrm, .fbx, .toml, .urdf, .xml,
    /// .bvh, .vrma), or a .take file; without one, the studio begins with its gallery
    scene: Option<String>,
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    character: CharacterArgs,
    /// Listen on this address of the machine instead of 127.0.0.1, so that others on the network who have the printed
    /// address reach the studio, unencrypted: 0.0.0.0 for all its addresses
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// Port; the next free one is used when it is busy [default: 7411]
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

/// What moves behind the gallery.
const BEHIND_GALLERY: &str = "hand";

/// Serves until Ctrl-C.
pub(crate) fn run(args: &ViewArgs, terminal: &Terminal) -> Result<(), Error> {
    let files = args.files.with(&args.character)?;
    let scene = args.scene.as_deref().unwrap_or(BEHIND_GALLERY);
    let opening = open(scene, &files)?;
    let bodies = opening.model().bodies().len();
    if bodies > supple_studio::MAX_BODIES {
        return Err(Error::wrong(
            "studio/size",
            format!("{scene} has {bodies} bodies, more than the studio shows"),
            format!("ask for up to {}", supple_studio::MAX_BODIES),
        ));
    }
    let (journal, rescue) = match args.no_journal {
        true => (None, Vec::new()),
        false => (args.journal.clone().or_else(supple_studio::default_journal_folder), rescue_folders()),
    };
    let homeless = journal.is_none() && !args.no_journal;
    if let (Some(folder), true) = (&journal, is_file(scene)) {
        supple_studio::remember_file(folder, std::path::Path::new(supple_assets::split_clip(scene).0));
    }
    let settings = Settings {
        listen: args.listen,
        port: args.port,
        build: crate::build(),
        journal,
        rescue,
        files,
        limits: Limits::default(),
        gallery: args.scene.is_none(),
    };
    let studio = Studio::bind(opening, settings).map_err(|e| Error::studio(&e))?;
    let address = studio.address().map_err(|e| Error::studio(&e))?;
    output::print(|out| writeln!(out, "{address}"))?;
    terminal.note("The studio runs at this address until you press Ctrl-C. Its key lets in: give it to nobody else.");
    if let Some(address) = studio.network_address().map_err(|e| Error::studio(&e))? {
        terminal.note(format_args!(
            "On the network: {address} (not encrypted: who can listen to the network sees the key)."
        ));
    }
    for session in studio.unfinished() {
        terminal
            .note(format_args!("A session that did not finish can be recovered from the page: {}.", told(&session)));
    }
    if let Some(trouble) = studio.journal_trouble() {
        alarm(&format!("No journal can be kept so far ({trouble}): save what you want to keep. supple keeps trying."));
    }
    if homeless {
        alarm("No journal is kept, because the environment names no home folder: give one with --journal DIR.");
    }
    if !args.no_open {
        open_browser(&studio.address_for_one().map_err(|e| Error::studio(&e))?);
    }
    let closed = studio.serve(alarm).map_err(|e| Error::studio(&e))?;
    end(&closed, args.no_journal, terminal)
}

/// Something that may cost takes is told also to who wants no notes.
fn alarm(text: &str) {
    terminal::say(text);
}

/// Where takes go that neither a page nor the journal has: where supple was started, home, and where temporary files go.
fn rescue_folders() -> Vec<PathBuf> {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from);
    std::env::current_dir().ok().into_iter().chain(home).chain([std::env::temp_dir()]).collect()
}

/// Tells what became of takes that were not saved.
fn end(closed: &Closed, no_journal: bool, terminal: &Terminal) -> Result<(), Error> {
    let Closed { kept, elsewhere, lost, trouble } = closed;
    let reason = trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    if *kept > 0 {
        let which = if *lost == 0 && elsewhere.is_empty() { "The takes" } else { "Other takes" };
        terminal.note(format_args!("{which} that were not saved are kept: the next `supple view` offers them again."));
    }
    let files: Vec<_> = elsewhere.iter().map(|path| path.display().to_string()).collect();
    match (*lost, files.is_empty()) {
        (0, true) if trouble.is_none() => Ok(()),
        (0, true) => {
            alarm(&format!("Journals that are not needed any more are left behind{reason}."));
            Ok(())
        }
        _ if no_journal => {
            terminal.note("The takes that were not saved are gone, as --no-journal asks.");
            Ok(())
        }
        (0, false) => Err(Error::failed(
            "studio/journal",
            format!(
                "the journal could not be written{reason}; the takes that were not saved are in {}: open them with `supple view FILE`",
                files.join(" and ")
            ),
        )),
        (lost, _) => {
            let others =
                if files.is_empty() { String::new() } else { format!("; others are in {}", files.join(" and ")) };
            let scenes = if lost == 1 { "one scene".to_owned() } else { format!("{lost} scenes") };
            Err(Error::failed(
                "studio/journal",
                format!(
                    "the takes of {scenes} that were not saved are lost, but for what the journal has of them, which the next `supple view` \
                     offers: neither the journal{reason} nor any other folder could be written to the end{others}"
                ),
            ))
        }
    }
}

/// What SCENE names.
fn open(text: &str, from: &Files) -> Result<Opening, Error> {
    if scenes::is_take(text) {
        let (recorded, file) = scenes::open_take(text, from)?;
        let opening = match recorded {
            Recorded::Scene(made) => Opening::of_furnished(*made),
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
