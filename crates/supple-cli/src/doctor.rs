//! `supple inspect SCENE --doctor`: what is wrong with a rig, the gravest first, and what mending it does.

use crate::error::Error;
use crate::output;
use crate::table::figure;
use crate::terminal::Terminal;
use serde::Serialize;
use std::io::Write;
use supple::Scene;
use supple_assets::doctor::{Finding, Trial, examine, mend};

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

/// Examines the scene, mends it, and tells both.
pub(crate) fn run(scene: &Scene, json: bool, terminal: &Terminal) -> Result<(), Error> {
    let diagnosis = examine(&scene.model, &scene.input);
    let mended = if diagnosis.findings.is_empty() {
        None
    } else {
        let model = mend(&scene.model, &diagnosis.findings).map_err(|e| Error::failed("scene/model", e.to_string()))?;
        // Joints and trackers may have gone: the input keeps what does not name them.
        let input =
            supple::Input { gravity: scene.input.gravity, contacts: scene.input.contacts, ..supple::Input::default() };
        let after = examine(&model, &input);
        Some(Mended { findings: after.findings.len(), jerks: Jerks::new(&after.trial) })
    };
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
