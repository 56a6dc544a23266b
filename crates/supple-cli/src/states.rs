//! Changes of state asked for on the command line.

use crate::error::Error;
use clap::Args;
use supple::tone::{Change, Hits};
use supple::{BodyId, Scene};

/// How the character holds itself as time passes.
#[derive(Args, Debug, Default)]
pub(crate) struct StateArgs {
    /// Change how the character holds itself at a time: posed, start, follow, loose or limp; may be given again. A bone's name may have *
    #[arg(long, value_name = "STATE@S[,blend=S][,strength=N][,bones=NAME]", help_heading = "States")]
    state: Vec<String>,
    /// A limb that another body strikes with this impulse goes loose within 0.1 s, and recovers in S seconds [default: 0.8]
    #[arg(long, value_name = "NS[,S]", help_heading = "States")]
    hits: Option<String>,
}

impl StateArgs {
    /// The scene with the changes beside its own.
    pub(crate) fn put(&self, scene: Scene) -> Result<Scene, Error> {
        if self.state.is_empty() && self.hits.is_none() {
            return Ok(scene);
        }
        let mut states = scene.states().clone();
        for told in &self.state {
            states.keys.push(key(told, &scene)?);
        }
        if let Some(told) = &self.hits {
            let (impulse, recovery) = told.split_once(',').unwrap_or((told, "0.8"));
            let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong("hits", told, "N·s, and seconds"));
            states.hits = Some(Hits { impulse: number(impulse)?, recovery: number(recovery)? });
        }
        scene.with_states(states).map_err(|e| Error::setting(e.to_string(), "give another --state or --hits"))
    }

    /// Refuses what a take has recorded.
    pub(crate) fn refuse_for_take(&self) -> Result<(), Error> {
        if self.state.is_empty() && self.hits.is_none() {
            return Ok(());
        }
        Err(Error::setting("a take is done again with the states it recorded", "leave out --state and --hits"))
    }
}

fn wrong(option: &str, told: &str, give: &str) -> Error {
    Error::setting(format!("--{option} {told} is not understood"), format!("give {give}"))
}

/// `loose@1.5,blend=0.2,bones=arm*` as a time and a change.
fn key(told: &str, scene: &Scene) -> Result<(f64, Change), Error> {
    let give = "a state and its time: loose@1.5, or follow@3,blend=1,strength=0.5,bones=arm*";
    let not_understood = || wrong("state", told, give);
    let mut parts = told.split(',');
    let (name, at) = parts.next().and_then(|first| first.split_once('@')).ok_or_else(not_understood)?;
    let at = at.trim().parse::<f64>().map_err(|_| not_understood())?;
    let (mut blend, mut strength, mut bodies) = (None, None, Vec::new());
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(not_understood)?;
        let number = || value.trim().parse::<f64>().map_err(|_| not_understood());
        match key.trim() {
            "blend" => blend = Some(number()?),
            "strength" => strength = Some(number()?),
            "bones" => {
                let fits = |name: &str| supple_assets::name_fits(value.trim(), name);
                let all = scene.model.bodies().iter().enumerate().take(scene.model.bodies().len() - scene.things());
                let before = bodies.len();
                bodies.extend(all.filter(|(_, body)| fits(&body.name)).map(|(k, _)| BodyId(k as u32)));
                if bodies.len() == before {
                    let remedy = "`supple inspect` lists the bodies";
                    return Err(Error::setting(format!("--state {told}: no bone fits \"{value}\""), remedy));
                }
            }
            _ => return Err(not_understood()),
        }
    }
    let change = Change::named(name.trim(), blend, strength)
        .map_err(|e| Error::setting(format!("--state {told}: {e}"), "correct it"))?;
    Ok((at, Change { bodies, ..change }))
}
