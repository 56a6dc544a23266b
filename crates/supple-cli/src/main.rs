//! The binary `supple`: one match over its sub-commands.
//!
//! Figures go to standard output, everything else to standard error. Exit status: 0 done, 1 the run failed, 2 the call
//! or a file is wrong.

mod assemble;
mod bake;
mod bench;
mod compare;
mod cores;
mod doctor;
mod error;
mod inspect;
mod layer;
mod output;
mod render;
mod replay;
mod rig;
mod scenes;
mod settings;
mod simulate;
mod states;
mod table;
mod terminal;
mod track;
mod view;
mod whole;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use error::Error;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use terminal::Terminal;

/// Articulated characters by physics: see, pull, simulate, draw, compare, measure and inspect them. Without a command: the studio.
#[derive(Parser, Debug)]
#[command(name = "supple", version, max_term_width = 100, subcommand_value_name = "COMMAND")]
#[command(after_help = "Exit status: 0 done, 1 the run failed, 2 the call or a file is wrong.")]
struct Cli {
    /// No progress bar and no notes on standard error
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    View(view::ViewArgs),
    Simulate(simulate::SimulateArgs),
    Render(render::RenderArgs),
    Assemble(assemble::AssembleArgs),
    Compare(compare::CompareArgs),
    Bench(bench::BenchArgs),
    Rig(rig::RigArgs),
    Inspect(inspect::InspectArgs),
    Scenes(scenes::ScenesArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    tell_panics_of_others();
    let result = std::panic::catch_unwind(run).unwrap_or_else(|panic| Err(bug(&*panic)));
    match result {
        Ok(status) => status,
        Err(Error::ReaderGone) => ExitCode::SUCCESS,
        Err(Error::Fault(fault)) => {
            let status = fault.status();
            show(fault);
            ExitCode::from(status)
        }
    }
}

/// A panic is our fault, told like any other, without a trace across the screen: that of this thread by whoever called, those of other threads, such
/// as the studio's, at once.
fn tell_panics_of_others() {
    let this = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != this
            && let Error::Fault(fault) = bug(panic.payload())
        {
            show(fault);
        }
    }));
}

fn run() -> Result<ExitCode, Error> {
    let colour = if terminal::colours_wanted() { ColorChoice::Auto } else { ColorChoice::Never };
    let parsed = Cli::command().color(colour).try_get_matches().and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let terminal = Terminal::new(cli.quiet);
    match &cli.command {
        Some(Command::View(args)) => view::run(args, &terminal)?,
        Some(Command::Simulate(args)) => simulate::run(args, &terminal)?,
        Some(Command::Render(args)) => render::run(args, &terminal)?,
        Some(Command::Assemble(args)) => assemble::run(args, &terminal)?,
        Some(Command::Compare(args)) => compare::run(args, &terminal)?,
        Some(Command::Bench(args)) => bench::run(args, &terminal)?,
        Some(Command::Rig(args)) => rig::run(args, &terminal)?,
        Some(Command::Inspect(args)) => inspect::run(args, &terminal)?,
        Some(Command::Scenes(args)) => scenes::run(args, &terminal)?,
        Some(Command::Completions { shell }) => completions(*shell)?,
        None => view::run(&view::ViewArgs::default(), &terminal)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// This build, as takes name it: version, machine, and a fingerprint of all that is computed.
fn build() -> String {
    let fused = if supple::maths::lanes::has_fused() { "+fma" } else { "" };
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("supple {version} {arch}{fused} {}", env!("SUPPLE_BUILD"))
}

/// What the parser of the call has to say: help and version, or what is wrong with the call.
fn usage(error: &clap::Error) -> Result<ExitCode, Error> {
    use clap::error::ErrorKind::{InvalidValue, ValueValidation};
    let text = error.to_string();
    match terminal::harmless(&text) {
        // What was typed may be the name of a file, and steer the terminal.
        std::borrow::Cow::Owned(text) => terminal::say(text.trim_end()),
        std::borrow::Cow::Borrowed(_) => error.print().map_err(Error::stdout)?,
    }
    if !error.use_stderr() {
        return Ok(ExitCode::SUCCESS);
    }
    let code = if matches!(error.kind(), InvalidValue | ValueValidation) { "cli/setting" } else { "cli/usage" };
    let _ = writeln!(std::io::stderr(), "\n[{code}]");
    Ok(ExitCode::from(2))
}

fn completions(shell: clap_complete::Shell) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "supple", &mut script);
    output::print(|out| out.write_all(&script))
}

/// A panic as a fault.
fn bug(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::failed(
        "cli/bug",
        format!(
            "a fault in supple itself: {}; please report it with the call that shows it",
            text.unwrap_or("no details")
        ),
    )
}

/// Shows a fault on standard error: whole lines where a program reads them, colours where a person may want them.
fn show(fault: error::Fault) {
    let stderr = std::io::stderr();
    let person = stderr.is_terminal();
    let width = terminal_size::terminal_size_of(&stderr).map_or(100, |(width, _)| usize::from(width.0).min(100));
    let _ = miette::set_hook(Box::new(move |_| {
        let options = miette::MietteHandlerOpts::new().width(width).break_words(false).wrap_lines(person);
        Box::new(if person && terminal::colours_wanted() { options } else { options.color(false) }.build())
    }));
    let _ = write!(std::io::stderr(), "{:?}", miette::Report::new(fault));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn a_thread_panics() {
        tell_panics_of_others();
        let _ = std::thread::spawn(|| panic!("as the test asks")).join();
    }

    #[test]
    fn panics_of_threads_are_told() {
        let call = ["--exact", "tests::a_thread_panics", "--ignored", "--nocapture"];
        let ended = std::process::Command::new(std::env::current_exe().unwrap()).args(call).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("a fault in supple itself: as the test asks") && said.contains("cli/bug"), "{said}");
    }
}
