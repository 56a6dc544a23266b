//! `supple view`: serves the studio and opens a browser.

use crate::error::Error;
use crate::output;
use crate::scenes::{self, Opened};
use crate::terminal::Terminal;
use clap::Args;
use std::io::Write;
use std::process::{Command, Stdio};
use supple_studio::{Opening, Studio};

/// Open the studio: a page where the character moves and can be pulled
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// A built-in scene, with parameters after a colon (hand, chain:1000), or a .take file
    #[arg(default_value = "hand")]
    scene: String,
    /// Port on 127.0.0.1; the next free one is used when it is busy [default: 7411]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

impl Default for ViewArgs {
    fn default() -> Self {
        ViewArgs { scene: "hand".into(), port: None, no_open: false }
    }
}

/// Serves until Ctrl-C.
pub(crate) fn run(args: &ViewArgs, terminal: &Terminal) -> Result<(), Error> {
    let opening = match scenes::open_any(&args.scene)? {
        Opened::Scene(scene) => {
            let bodies = scene.model.bodies().len();
            if bodies > supple_studio::MAX_BODIES {
                return Err(Error::wrong(
                    "studio/size",
                    format!("{} has {bodies} bodies, more than the studio shows", args.scene),
                    format!("ask for up to {}", supple_studio::MAX_BODIES),
                ));
            }
            Opening::Scene(scene)
        }
        Opened::Takes(scene, file) => Opening::Takes(scene, file),
    };
    let studio = Studio::bind(opening, args.port).map_err(|e| Error::studio(&e))?;
    let address = studio.address().map_err(|e| Error::studio(&e))?;
    output::print(|out| writeln!(out, "{address}"))?;
    terminal.note("The studio runs at this address until you press Ctrl-C.");
    if !args.no_open {
        open_browser(&address);
    }
    studio.serve().map_err(|e| Error::studio(&e))
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
