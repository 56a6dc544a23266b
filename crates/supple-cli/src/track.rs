//! `--track FILE`: the motion of a file (.bvh, .vrma, a clip of another character) on any scene, and how well it is followed.

use crate::error::Error;
use crate::table::{count, figure};
use crate::terminal::Terminal;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use supple::maths::rotation::log;
use supple::{BodyState, Motion, Scene, State};
use supple_assets::Files;
use supple_assets::retarget::{Pair, followable, residual, retarget};

/// A motion that a scene follows.
pub(crate) struct Track {
    motion: Arc<Motion>,
    pairs: Vec<(usize, Pair)>,
    /// By pair: angles between body and recording, summed over the steps \[rad\].
    angles: Vec<f64>,
    /// How many steps.
    steps: usize,
    residual: Residual,
}

/// The wrench that the recorded motion needs at the root beside the figure's own forces: 0 in free flight, the weight at rest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Residual {
    /// Mean over the motion, as a part of the weight.
    force_mean: f64,
    /// Largest, as a part of the weight.
    force_max: f64,
    /// \[N·m\]
    torque_mean: f64,
    /// \[N·m\]
    torque_max: f64,
    /// By frame: force as a part of the weight, torque \[N·m\].
    frames: Vec<[f64; 2]>,
}

/// How well a motion was followed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tracking {
    clip: String,
    /// Mean over bodies and steps: angle between body and recording \[rad\].
    error_mean: f64,
    joints: Vec<Followed>,
    residual: Residual,
}

#[derive(Clone, Debug, Serialize)]
struct Followed {
    body: String,
    joint: String,
    /// What axes and limits cost, before any physics \[rad\].
    misfit: f64,
    /// Mean angle between body and recording \[rad\].
    error: f64,
}

impl Tracking {
    /// Whether every number of it is one.
    pub(crate) fn is_finite(&self) -> bool {
        let Residual { force_mean, force_max, torque_mean, torque_max, frames } = &self.residual;
        let joints = self.joints.iter().flat_map(|joint| [joint.misfit, joint.error]);
        let all = joints.chain(frames.iter().flatten().copied());
        all.chain([self.error_mean, *force_mean, *force_max, *torque_mean, *torque_max]).all(f64::is_finite)
    }
}

impl Track {
    /// The scene with its bodies following a recording, from its first frame on.
    pub(crate) fn onto(
        scene: &Scene,
        from: &Files,
        file: &str,
        map: &[String],
        terminal: &Terminal,
    ) -> Result<(Scene, Track), Error> {
        let wanted = |text: &String| match text.split_once('=') {
            Some((body, joint)) => Ok((body.to_owned(), joint.to_owned())),
            None => Err(Error::setting(format!("--map {text} names no two parts"), "give --map BODY=JOINT")),
        };
        let map = map.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
        let (path, clip) = supple_assets::split_clip(file);
        let path = Path::new(path);
        let model = followable(&scene.model).map_err(|e| Error::failed("scene/model", e.to_string()))?;
        let on = match crate::scenes::character(&scene.name, from)? {
            Some(character) => {
                let source = from.motion(file).map_err(|e| Error::file(&e))?;
                let imported = character.imported(&scene.name).map_err(|e| Error::file(&e))?;
                character.take_on(&imported, &source, &map)
            }
            None => from
                .open(path)
                .and_then(|file| supple_assets::motion::recording(file, clip))
                .and_then(|recording| retarget(path, &recording, &model, &scene.state, &map)),
        };
        let on = on.map_err(|e| Error::file(&e))?;
        for note in &on.notes {
            terminal.note(format_args!("{}: {}", note.part, note.text));
        }
        let motion = Arc::new(on.motion);
        let mut input = scene.input.clone();
        (input.drags, input.grips, input.targets) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = scene.state.clone();
        for (b, body) in state.bodies.iter_mut().enumerate() {
            let start = motion.at(0.0, b);
            *body = BodyState { velocity: start.velocity, ..BodyState::at_rest(start.pose) };
        }
        state.recount_turns(&model);
        let wrenches = residual(&model, &motion, input.gravity);
        let weight = (model.mass() * input.gravity.length()).max(1e-300);
        let frames: Vec<[f64; 2]> = wrenches.iter().map(|w| [w.force.length() / weight, w.torque.length()]).collect();
        let mean = |k: usize| frames.iter().map(|f| f[k]).sum::<f64>() / frames.len() as f64;
        let most = |k: usize| frames.iter().map(|f| f[k]).fold(0.0, f64::max);
        let residual = Residual {
            force_mean: mean(0),
            force_max: most(0),
            torque_mean: mean(1),
            torque_max: most(1),
            frames: frames.clone(),
        };
        let find = |pair: Pair| model.find_body(&pair.body).map(|body| (body.index(), pair));
        let pairs: Vec<_> = on.pairs.into_iter().filter_map(find).collect();
        let angles = vec![0.0; pairs.len()];
        let name = format!("{} following {}", scene.name, path.display());
        let followed = Scene::from_parts(name, model, state, input).follow(motion.clone());
        let scene =
            followed.ok_or_else(|| Error::failed("cli/bug", "a retargeted motion has other bodies than its model"))?;
        Ok((scene, Track { motion, pairs, angles, steps: 0, residual }))
    }

    /// Adds what a step ended with, while the recording lasts.
    pub(crate) fn measure(&mut self, state: &State) {
        if state.time > self.motion.seconds() && self.steps > 0 {
            return;
        }
        self.steps += 1;
        for ((body, _), sum) in self.pairs.iter().zip(&mut self.angles) {
            let wanted = self.motion.at(state.time, *body).pose.rotation;
            *sum += log(wanted * state.bodies[*body].orientation.conjugate()).length();
        }
    }

    /// Over all steps of a run that the recording lasts.
    pub(crate) fn report(self) -> Tracking {
        let steps = self.steps.max(1);
        let joints: Vec<Followed> = self
            .pairs
            .into_iter()
            .zip(&self.angles)
            .map(|((_, Pair { body, joint, misfit }), sum)| Followed { body, joint, misfit, error: sum / steps as f64 })
            .collect();
        let error_mean = joints.iter().map(|joint| joint.error).sum::<f64>() / joints.len().max(1) as f64;
        Tracking { clip: self.motion.name().to_owned(), error_mean, joints, residual: self.residual }
    }
}

impl Tracking {
    /// In words.
    pub(crate) fn words(&self) -> Vec<(&'static str, String)> {
        let misfit = self.joints.iter().map(|joint| joint.misfit).sum::<f64>() / self.joints.len().max(1) as f64;
        vec![
            (
                "tracking",
                format!(
                    "{} follow {}: {} rad off on average; joints and limits cost {} rad",
                    count(self.joints.len(), "body", "bodies"),
                    self.clip,
                    figure(self.error_mean),
                    figure(misfit)
                ),
            ),
            (
                "needed at the root",
                format!(
                    "{} of the weight on average, {} at most; {} N·m, {} N·m at most",
                    figure(self.residual.force_mean),
                    figure(self.residual.force_max),
                    figure(self.residual.torque_mean),
                    figure(self.residual.torque_max)
                ),
            ),
        ]
    }
}
