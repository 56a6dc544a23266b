//! `supple inspect SCENE --doctor`: what is wrong with a rig, the gravest first, and what mending it does; with `--fix -o FILE` the mended rig as a file.

use crate::error::Error;
use crate::output::{self, Outputs};
use crate::table::figure;
use crate::terminal::Terminal;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use supple::Scene;
use supple_assets::Files;
use supple_assets::doctor::{Finding, Trial, examine_figure, mend, mend_rig};

/// The rig of a character with its remedies, as a scene file.
fn write_rig(scene: &Scene, from: &Files, findings: &[Finding], path: &Path, terminal: &Terminal) -> Result<(), Error> {
    let (file, _) = supple_assets::split_clip(&scene.name);
    let character = from.character(Path::new(file)).map_err(|e| Error::file(&e))?;
    let Some(mut character) = character else {
        return Err(Error::setting("only a character is written as .toml", "give -o FILE.xml"));
    };
    for note in mend_rig(&mut character.rig, &scene.model, findings) {
        terminal.note(format_args!("{}: {}", note.part, note.text));
    }
    let source = character.source().to_owned();
    let named = crate::rig::relative(&source, path);
    crate::rig::tell_outside(&source, &named, terminal);
    output::write_text(path, &character.scene_file(&named, None))
}

#[derive(Serialize)]
struct Document<'a> {
    scene: &'a str,
    findings: Vec<Entry<'a>>,
    jerks: Jerks,
    /// After all remedies; null when there was nothing to mend.
    mended: Option<Mended>,
}

#[derive(Serialize)]
struct Entry<'a> {
    code: &'static str,
    part: &'a str,
    what: &'a str,
    remedy: &'a str,
}

#[derive(Serialize)]
struct Jerks {
    /// That went well \[s\].
    seconds: f64,
    /// \[m\]
    gap: f64,
    /// \[m/s\]
    fastest: f64,
    failure: Option<String>,
}

#[derive(Serialize)]
struct Mended {
    findings: usize,
    jerks: Jerks,
}

impl Jerks {
    fn new(trial: &Trial) -> Jerks {
        Jerks { seconds: trial.seconds, gap: trial.gap, fastest: trial.fastest, failure: trial.failure.clone() }
    }

    fn words(&self) -> String {
        match &self.failure {
            None => {
                format!("{} s of jerks went well, gaps below {} m", figure(self.seconds), figure(self.gap.max(1e-15)))
            }
            Some(failure) => format!("jerks failed after {} s: {failure}", figure(self.seconds)),
        }
    }
}

/// Examines the scene, mends it, and tells both. The mended rig is written to `files`.
pub(crate) fn run(
    scene: &Scene,
    from: &Files,
    files: Option<&Outputs>,
    json: bool,
    terminal: &Terminal,
) -> Result<(), Error> {
    let character = crate::scenes::character(&scene.name, from)?;
    let rig = character.as_ref().map(|character| &character.rig);
    let diagnosis = examine_figure(&scene.model, &scene.input, rig);
    let model = mend(&scene.model, &diagnosis.findings).map_err(|e| Error::failed("scene/model", e.to_string()))?;
    let mended = (!diagnosis.findings.is_empty()).then(|| {
        // Joints and trackers may have gone: the input keeps what does not name them.
        let input =
            supple::Input { gravity: scene.input.gravity, contacts: scene.input.contacts, ..supple::Input::default() };
        let after = examine_figure(&model, &input, rig);
        Mended { findings: after.findings.len(), jerks: Jerks::new(&after.trial) }
    });
    if let Some(files) = files {
        crate::inspect::write_mjcf(scene, &model, files, terminal)?;
        for path in files.ending("toml") {
            write_rig(scene, from, &diagnosis.findings, path, terminal)?;
        }
        files.tell(terminal);
    }
    let entry = |f: &Finding| (f.cause.code(), f.part.clone(), f.what.clone(), f.remedy.clone());
    let found: Vec<_> = diagnosis.findings.iter().map(entry).collect();
    let jerks = Jerks::new(&diagnosis.trial);
    if json {
        let findings = found.iter().map(|(code, part, what, remedy)| Entry { code, part, what, remedy }).collect();
        return output::print_json(&Document { scene: &scene.name, findings, jerks, mended });
    }
    output::print(|out| {
        writeln!(out, "{}  {}", terminal.bold(&scene.name), terminal.faint(&jerks.words()))?;
        for (code, part, what, remedy) in &found {
            writeln!(out, "  {} {part}: {what}\n    remedy: {remedy}", terminal.warning(code))?;
        }
        match &mended {
            None => writeln!(out, "  nothing is wrong"),
            Some(mended) => writeln!(out, "  with all remedies: {} left, {}", mended.findings, mended.jerks.words()),
        }
    })
}
