//! The doctor of rigs in the studio: it looks at every model that a file gives, beside the run, and its remedies are applied on request.

use super::{Command, Opening, Refused, Simulation};
use crate::protocol::{DoctorLine, FindingLine};
use supple::{Input, Scene};
use supple_assets::doctor::{Finding, examine, mend};

fn finding(f: &Finding) -> FindingLine<'_> {
    FindingLine { code: f.cause.code(), part: &f.part, what: &f.what, remedy: &f.remedy }
}

impl Simulation {
    /// Lets the doctor look at the model of the present stage in a thread of its own: the picture does not wait for it.
    pub(super) fn examine(&self) {
        let (scene, generation, commands) = (self.stage.scene.clone(), self.stage.generation, self.commands.clone());
        let look = move || {
            let diagnosis = Box::new(examine(&scene.model, &scene.input));
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
        let old = &self.stage.scene;
        let model = mend(&old.model, &diagnosis.findings).map_err(|e| ("studio/value", e.to_string()))?;
        // Joints, trackers and bodies may have gone: what names them stays only where all are there.
        let same = model.bodies().len() == old.model.bodies().len()
            && model.joints().len() == old.model.joints().len()
            && model.trackers().len() == old.model.trackers().len();
        let input = match same {
            true => old.input.clone(),
            false => Input { gravity: old.input.gravity, contacts: old.input.contacts, ..Input::default() },
        };
        let state = model.start();
        let name = format!("{} (mended)", old.name.trim_end_matches(" (mended)"));
        let mut dress = self.stage.dress.clone();
        if !same {
            dress.meshes.clear();
        }
        let scene = Scene::from_parts(name, model, state, input);
        self.open(Opening::Scene(scene)).map_err(|(_, text)| ("studio/value", text))?;
        self.stage.dress = dress;
        self.examine();
        self.publish_all();
        Ok(())
    }
}
