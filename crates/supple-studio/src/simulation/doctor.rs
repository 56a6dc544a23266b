//! The doctor of rigs in the studio: it looks at every model that a file gives, beside the run, and its remedies are applied on request.

use super::{Command, Opening, Refused, Simulation};
use crate::protocol::{DoctorLine, FindingLine};
use supple_assets::doctor::{Finding, examine_figure, mended};
use supple_assets::{MOST_MENDED, RigOptions, furnished};

fn finding(f: &Finding) -> FindingLine<'_> {
    FindingLine { code: f.cause.code(), part: &f.part, what: &f.what, remedy: &f.remedy }
}

impl Simulation {
    /// Lets the doctor look at the model that a file gave to the present stage, in a thread of its own: the picture does not wait for it.
    pub(super) fn examine(&self) {
        if self.stage.recipe.file().is_none() {
            return; // only files are ill
        }
        let (scene, generation, commands) = (self.stage.scene.clone(), self.stage.generation, self.commands.clone());
        let rig = self.stage.dress.character.as_ref().map(|character| character.rig.clone());
        let look = move || {
            let bare = scene.bare();
            let diagnosis = Box::new(examine_figure(&bare.model, &bare.input, rig.as_ref()));
            if let Some(commands) = commands.upgrade() {
                let _ = commands.blocking_send(Command::Examined { generation, diagnosis }); // the studio may have ended
            }
        };
        // Without a thread there is no doctor, and nothing else is lost.
        let _ = std::thread::Builder::new().name("doctor".into()).spawn(look);
    }

    pub(super) fn doctor_told(&self) -> Option<DoctorLine<'_>> {
        let diagnosis = self.stage.diagnosis.as_ref()?;
        Some(DoctorLine {
            findings: diagnosis.findings.iter().map(finding).collect(),
            seconds: diagnosis.trial.seconds,
            failure: diagnosis.trial.failure.as_deref(),
        })
    }

    /// Opens the same scene with a mended model.
    pub(super) fn mend(&mut self) -> Result<(), Refused> {
        let Some(diagnosis) = self.stage.diagnosis.as_ref().filter(|d| !d.findings.is_empty()) else {
            return Err(("studio/value", "the doctor has found nothing to mend".into()));
        };
        // A character in another unit is read anew, so that its picture has the same size as its bodies.
        if let (Some(scale), Some(character)) =
            (diagnosis.findings.iter().find_map(Finding::scale), &self.stage.dress.character)
        {
            let scale = Some(scale * character.scale());
            return self.change_rig(&RigOptions { scale, height: None, ..*character.options() });
        }
        let old = self.stage.scene.bare();
        let scene = mended(old, &diagnosis.findings).map_err(|e| ("studio/value", e.to_string()))?;
        let mut dress = self.stage.dress.clone();
        if scene.model.bodies().len() != old.model.bodies().len() {
            dress.meshes.clear();
        }
        let mut recipe = self.stage.recipe.clone();
        if recipe.changes.mended >= MOST_MENDED {
            let text = format!("{MOST_MENDED} times its remedies did not help: change the bones that it names");
            return Err(("studio/value", text));
        }
        recipe.changes.mended += 1;
        let mut things = self.stage.things.clone();
        let scene = furnished(&scene, &mut things, &dress.cast).map_err(|text| ("studio/value", text))?;
        self.open(Opening { scene, dress, recipe, takes: None, things }).map_err(|(_, text)| ("studio/value", text))
    }
}
