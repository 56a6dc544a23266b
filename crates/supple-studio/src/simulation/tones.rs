//! How the character holds itself, and the clip it follows: what a person asks for is kept as marks of the take, and the
//! [`Tones`] at any step are made again from the marks before it. A mark after the last step is a key: it acts when its step comes.

use super::*;
use crate::protocol::{ClipTold, MarkLine, TonesTold};
use serde::{Deserialize, Serialize};
use supple::State;
use supple::tone::{self, Hits, Play, Tone, ToneError};

/// Marks of one take.
const MAX_MARKS: usize = 10_000;
/// How long it takes to go back to a tone that carries, when a change is undone after steps were done with it \[s\].
const BACK: f64 = 0.7;

/// What a mark tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Event {
    /// Bodies change their tone; none named: all.
    State {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bodies: Vec<u32>,
        /// `posed`, `follow`, `loose`, `limp`; `start` is posed as the model starts, `scene` gives all back to the scene's script.
        state: String,
        strength: f64,
        blend: f64,
    },
    /// A clip is played from this place of it on.
    Clip {
        clip: String,
        from: f64,
        speed: f64,
        again: bool,
        fade: f64,
        /// Whose: 0 is the scene's own character, guests come after it.
        #[serde(default, skip_serializing_if = "is_first")]
        figure: usize,
    },
    /// How blows are answered.
    Hits { impulse: f64, recovery: f64 },
    /// Blows are not answered any more.
    NoHits,
    /// A name for a moment.
    Marker { name: String },
}

fn is_first(figure: &usize) -> bool {
    *figure == 0
}

fn refused(error: &ToneError) -> Refused {
    (error.code(), error.to_string())
}

impl Stage {
    /// Makes the tones of the present step again from the marks before it.
    pub(super) fn recall_tones(&mut self) {
        self.tones = self.scene.tones();
        self.heard = 0;
        let marks: Vec<(u64, String)> =
            self.timeline.marks(self.take).into_iter().map(|(step, text)| (step, text.to_owned())).collect();
        let mut playback = Playback::default();
        let mut state = self.now.state.clone();
        let now = self.now.step;
        for (step, text) in marks.iter().take_while(|(step, _)| *step <= now) {
            self.heard += 1;
            let Ok(event) = serde_json::from_str(text) else { continue };
            if *step == now {
                state.clone_from(&self.now.state);
            } else if self.timeline.look(self.take, *step, &mut playback).is_ok() {
                state.time = playback.time;
                for (k, body) in state.bodies.iter_mut().enumerate() {
                    *body = supple::BodyState::at_rest(playback.pose(k));
                }
            }
            let _ = self.happen(&event, &state); // it went well when it was marked
        }
    }

    /// Lets happen what marks tell of the present step.
    pub(super) fn heed_marks(&mut self) {
        let due = |stage: &Stage| {
            let marks = stage.timeline.marks(stage.take);
            marks.get(stage.heard).filter(|(step, _)| *step <= stage.now.step).map(|(_, text)| (*text).to_owned())
        };
        while let Some(text) = due(self) {
            self.heard += 1;
            if let Ok(event) = serde_json::from_str(&text) {
                let state = self.now.state.clone();
                let _ = self.happen(&event, &state); // it was checked when it was keyed
            }
        }
    }

    fn happen(&mut self, event: &Event, state: &State) -> Result<(), Refused> {
        match event {
            Event::State { bodies, state: name, strength, blend } => {
                if name == "scene" && bodies.is_empty() {
                    return self.tones.give_back(state.time, *blend).map_err(|e| refused(&e));
                }
                let named = tone::Change::named(name, Some(*blend), Some(*strength));
                let change = named.map_err(|e| ("studio/value", format!("{e}; scene is for all bodies")))?;
                let bodies = bodies.iter().map(|b| BodyId(*b)).collect();
                let change = tone::Change { bodies, ..change };
                self.tones.change(&self.scene.model, state, &change).map_err(|e| refused(&e))
            }
            Event::Clip { clip, from, speed, again, fade, figure } => {
                let motion = self.clip_named(*figure, clip)?;
                let play = Play { motion, begun: state.time, from: *from, speed: *speed, again: *again };
                self.tones.play_in(*figure, play, state.time, *fade).map_err(|e| refused(&e))
            }
            Event::Hits { impulse, recovery } => {
                let hits = Hits { impulse: *impulse, recovery: *recovery };
                hits.check().map_err(|e| ("studio/value", e.to_string()))?;
                self.tones.hits = Some(hits);
                Ok(())
            }
            Event::NoHits => {
                self.tones.hits = None;
                Ok(())
            }
            Event::Marker { name } => {
                if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
                    return Err(("studio/value", "a name has 1 to 80 letters".into()));
                }
                Ok(())
            }
        }
    }

    /// By guest: who it is.
    pub(super) fn players(&self) -> Vec<Arc<Player>> {
        let named = |name: &str| self.things.iter().find(|told| told.is_character() && told.name == name);
        let guests = self.scene.guests().iter();
        guests.filter_map(|guest| self.dress.cast.get(&named(&guest.name)?.file).cloned()).collect()
    }

    /// A clip of a figure's file by its name, where the figure is.
    pub(super) fn clip_named(&self, figure: usize, name: &str) -> Result<Arc<supple::Motion>, Refused> {
        let guest = figure.checked_sub(1).map(|k| (self.scene.guests().get(k), self.players().get(k).cloned()));
        let own = match &guest {
            None => &self.dress.clips,
            Some((Some(_), Some(player))) => &player.imported.clips,
            Some(_) => return Err(no_figure(figure)),
        };
        let found = own.iter().find(|clip| clip.name() == name);
        let placed = found.and_then(|clip| match &guest {
            Some((Some(guest), _)) => guest.clip(clip),
            _ => Some(clip.clone()),
        });
        placed.ok_or_else(|| {
            let names: Vec<&str> = own.iter().map(|clip| clip.name()).collect();
            let remedy = if names.is_empty() {
                "the scene has none".into()
            } else {
                format!("give one of {}", names.join(", "))
            };
            ("studio/value", format!("there is no clip \"{name}\": {remedy}"))
        })
    }

    /// Something is asked for at the present step, or keyed at a later one. At a recorded step another take begins.
    pub(super) fn mark(&mut self, events: &[Event], at: Option<u64>, label: String) -> Result<(), Refused> {
        let step = at.unwrap_or(self.now.step);
        if step < self.now.step {
            let text = format!("step {step} is done already: go there, and another take begins with the change");
            return Err(("studio/value", text));
        }
        if self.timeline.takes()[self.take].marks().len() + events.len() > MAX_MARKS {
            return Err(("studio/value", format!("a take has up to {MAX_MARKS} marks")));
        }
        // What would be refused when it happens is refused now.
        let (kept, state) = (self.tones.clone(), self.now.state.clone());
        let tried = events.iter().try_for_each(|event| self.happen(event, &state));
        let back = self.way_back(&kept, events);
        self.tones = kept;
        tried?;
        let names_only = events.iter().all(|event| matches!(event, Event::Marker { .. }));
        let begun = if names_only { None } else { self.fork()? };
        let before = self.timeline.takes()[self.take].marks().to_vec();
        let mut after = before.clone();
        for event in events {
            // Keys of one step act in the order in which they were made.
            let place = after.partition_point(|(other, _)| *other <= step);
            after.insert(place, (step, json(event)));
        }
        self.timeline.set_marks(self.take, after.clone());
        if names_only {
            self.heard = self.timeline.marks(self.take).iter().take_while(|(s, _)| *s <= self.now.step).count();
        } else {
            self.heed_marks();
        }
        self.add_edit(Edit { label, take: self.take, begun, what: What::Marks { step, before, after, back } });
        Ok(())
    }

    /// What brings back the tones as they were, once steps were done with others.
    pub(super) fn way_back(&self, before: &supple::Tones, events: &[Event]) -> Vec<Event> {
        let mut back = Vec::new();
        for event in events {
            match event {
                Event::State { bodies, .. } => {
                    let all = 0..self.figure();
                    let meant: Vec<u32> = if bodies.is_empty() { all.collect() } else { bodies.clone() };
                    for tone in Tone::ALL {
                        let bodies: Vec<u32> =
                            meant.iter().copied().filter(|b| before.tone(BodyId(*b)) == tone).collect();
                        if let Some(first) = bodies.first() {
                            let (strength, state) = (before.strength(BodyId(*first)), tone.name().to_owned());
                            back.push(Event::State { bodies, state, strength, blend: BACK });
                        }
                    }
                }
                Event::Clip { figure, .. } => back.extend(before.clip_of(*figure).map(|play| Event::Clip {
                    clip: play.motion.name().to_owned(),
                    from: play.from,
                    speed: play.speed,
                    again: play.again,
                    fade: BACK,
                    figure: *figure,
                })),
                Event::Hits { .. } | Event::NoHits => back.push(match before.hits {
                    Some(Hits { impulse, recovery }) => Event::Hits { impulse, recovery },
                    None => Event::NoHits,
                }),
                Event::Marker { .. } => {}
            }
        }
        back
    }

    /// Puts other marks in place of those of a take. Where steps were done since, what `back` tells happens now.
    pub(super) fn put_marks(&mut self, take: usize, step: u64, marks: &[(u64, String)], back: &[Event]) {
        let end = self.timeline.takes()[take].end();
        let mut marks = marks.to_vec();
        if step < end && !back.is_empty() {
            // What was recorded has happened: its marks stay, and the way back begins at the end.
            marks = self.timeline.takes()[take].marks().to_vec();
            for event in back {
                let place = marks.partition_point(|(other, _)| *other <= end);
                marks.insert(place, (end, json(event)));
            }
        }
        self.timeline.set_marks(take, marks);
        if take == self.take {
            self.recall_tones();
        }
    }

    /// Removes a mark of the present take that is a name, or a key that has not acted yet.
    pub(super) fn unmark(&mut self, index: usize) -> Result<(), Refused> {
        let all = self.timeline.marks(self.take);
        let Some(&(step, text)) = all.get(index) else {
            return Err(("studio/value", format!("there is no mark {index}")));
        };
        let (text, own) = (text.to_owned(), all.len() - self.timeline.takes()[self.take].marks().len());
        let is_name = matches!(serde_json::from_str(&text), Ok(Event::Marker { .. }));
        if index < own || (!is_name && step < self.timeline.takes()[self.take].end()) {
            let text = "it has acted on recorded steps: go to its step and change the state there".to_owned();
            return Err(("studio/value", text));
        }
        let before = self.timeline.takes()[self.take].marks().to_vec();
        let mut after = before.clone();
        after.remove(index - own);
        self.timeline.set_marks(self.take, after.clone());
        self.recall_tones();
        let (label, back) = ("remove a mark".to_owned(), Vec::new());
        self.add_edit(Edit { label, take: self.take, begun: None, what: What::Marks { step, before, after, back } });
        Ok(())
    }

    /// Changes the state of bodies; none named: all.
    pub(super) fn change_tone(
        &mut self,
        bodies: Vec<u32>,
        state: &str,
        (strength, blend): (f64, f64),
        at: Option<u64>,
    ) -> Result<(), Refused> {
        for body in &bodies {
            self.check_body(*body)?;
        }
        let whose = match bodies[..] {
            [] => String::new(),
            [one] => format!(" {}", self.scene.model.bodies()[one as usize].name),
            [first, ..] => format!(" {} and {} more", self.scene.model.bodies()[first as usize].name, bodies.len() - 1),
        };
        let mut events = Vec::new();
        // Whoever follows for the first time follows the first clip.
        let players = self.players();
        for figure in 0..=players.len() {
            let is_meant = |b: &u32| self.tones.figure_of(BodyId(*b)) == Some(figure);
            let meant = bodies.is_empty() || bodies.iter().any(is_meant);
            let clips = figure.checked_sub(1).map_or(&self.dress.clips, |k| &players[k].imported.clips);
            if state == Tone::Follow.name()
                && meant
                && self.tones.clip_of(figure).is_none()
                && let Some(clip) = clips.first()
            {
                events.push(play_event(figure, clip, 0.0));
            }
        }
        let label = format!("{state}{whose}");
        events.push(Event::State { bodies, state: state.to_owned(), strength, blend });
        self.mark(&events, at, label)
    }

    /// Plays a clip in place of the present one, over a time; bodies that do not follow come to follow it.
    pub(super) fn play_clip(&mut self, figure: usize, name: &str, fade: f64, at: Option<u64>) -> Result<(), Refused> {
        let clip = self.clip_named(figure, name)?;
        let mut events = vec![play_event(figure, &clip, fade)];
        let bodies = (0..self.figure()).filter(|b| self.tones.figure_of(BodyId(*b)) == Some(figure));
        let away: Vec<u32> = bodies.filter(|b| self.tones.tone(BodyId(*b)) != Tone::Follow).collect();
        if !away.is_empty() {
            let (state, blend) = (Tone::Follow.name().to_owned(), fade.max(BACK));
            events.push(Event::State { bodies: away, state, strength: 1.0, blend });
        }
        self.mark(&events, at, format!("clip {name}"))
    }

    /// Plays the present clip on at another speed, or with another ending.
    pub(super) fn pace_clip(&mut self, figure: usize, speed: Option<f64>, again: Option<bool>) -> Result<(), Refused> {
        if figure > self.scene.guests().len() {
            return Err(no_figure(figure));
        }
        let Some(play) = self.tones.clip_of(figure) else {
            return Err(("studio/value", "no clip is being followed".into()));
        };
        let (speed, again) = (speed.unwrap_or(play.speed), again.unwrap_or(play.again));
        let Play { motion, from, .. } = play.going_on(self.now.state.time, speed, again);
        let event = Event::Clip { clip: motion.name().to_owned(), from, speed, again, fade: 0.0, figure };
        self.mark(&[event], None, "pace of the clip".into())
    }

    /// What the page is told of all this.
    pub(super) fn tones_told(&self) -> TonesTold {
        let (time, bodies) = (self.now.state.time, 0..self.figure());
        let of = |b: u32| {
            let body = BodyId(b);
            if self.tones.is_scripted(body) && self.tones.clip().is_none() {
                "scene"
            } else {
                self.tones.tone(body).name()
            }
        };
        TonesTold {
            bodies: bodies.clone().map(of).collect(),
            strengths: bodies.map(|b| self.tones.strength(BodyId(b))).collect(),
            carried: self.carried_now(time),
            clip: self.tones.clip().map(clip_told),
            guest_clips: (1..=self.scene.guests().len()).map(|k| self.tones.clip_of(k).map(clip_told)).collect(),
            hits: self.tones.hits.map(|hits| [hits.impulse, hits.recovery]),
        }
    }

    /// How many bodies are no things: the first ones.
    pub(super) fn figure(&self) -> u32 {
        (self.scene.model.bodies().len() - self.scene.things()) as u32
    }

    /// The part of the character that something holds up.
    fn carried_now(&self, time: f64) -> f64 {
        let held = self.now.input.targets.iter().any(Option::is_some);
        if held { self.tones.carried(time) } else { 0.0 }
    }

    pub(super) fn marks_told(&self) -> Vec<MarkLine> {
        let line = |(step, text): (u64, &str)| MarkLine { step, what: serde_json::from_str(text).ok() };
        self.timeline.marks(self.take).into_iter().map(line).collect()
    }
}

/// The changes of state that a scene has of its own, as marks of its first take.
pub(super) fn scene_marks(scene: &Scene) -> Vec<(u64, String)> {
    let supple::States { keys, hits } = scene.states();
    let event = |change: &tone::Change| Event::State {
        bodies: change.bodies.iter().map(|b| b.0).collect(),
        state: if change.start { "start" } else { change.tone.name() }.to_owned(),
        strength: change.strength,
        blend: change.blend,
    };
    let step = |at: f64| (at / scene.input.dt).round() as u64;
    let blows = hits.map(|Hits { impulse, recovery }| (0, Event::Hits { impulse, recovery }));
    let mut marks: Vec<(u64, Event)> =
        blows.into_iter().chain(keys.iter().map(|(at, change)| (step(*at), event(change)))).collect();
    marks.sort_by_key(|(step, _)| *step);
    marks.into_iter().map(|(step, event)| (step, json(&event))).collect()
}

/// The refusal of a figure that is not there.
fn no_figure(figure: usize) -> Refused {
    ("studio/value", format!("there is no character {figure} in the scene"))
}

fn play_event(figure: usize, clip: &Arc<supple::Motion>, fade: f64) -> Event {
    let Play { from, speed, again, .. } = Play::new(clip.clone(), 0.0);
    Event::Clip { clip: clip.name().to_owned(), from, speed, again, fade, figure }
}

fn clip_told(play: &Play) -> ClipTold {
    ClipTold {
        name: play.motion.name().to_owned(),
        begun: play.begun,
        from: play.from,
        speed: play.speed,
        again: play.again,
        seconds: play.motion.seconds(),
    }
}

impl Simulation {
    /// The character follows a motion that it took on from elsewhere, as one of its clips.
    pub(super) fn take_motion(
        &mut self,
        generation: u32,
        motion: String,
        clip: Arc<supple::Motion>,
    ) -> Result<(), (String, String)> {
        if generation != self.stage.generation {
            let text = "the scene was changed while the motion was read: drop it again";
            return Err(("studio/busy".into(), text.into()));
        }
        let mut recipe = self.stage.recipe.clone();
        if recipe.changes.motions.len() >= MOST_MOTIONS {
            let text = format!("the character has taken on {MOST_MOTIONS} motions: open it again for others");
            return Err(("studio/size".into(), text));
        }
        recipe.changes.motions.push(motion);
        let clips = self.stage.dress.clips.iter().cloned().chain([clip.clone()]).collect();
        self.begin_clip(&clip, recipe, clips).map_err(|(code, text)| (code.to_owned(), text))?;
        self.stage.touch(ByHand::Rig);
        self.publish_all();
        Ok(())
    }

    /// Begins the scene anew in the first pose of a clip, following it; what was open is brought back by undoing.
    pub(super) fn cut_to_clip(&mut self, name: &str) -> Result<(), Refused> {
        let clip = self.stage.clip_named(0, name)?;
        self.begin_clip(&clip, self.stage.recipe.clone(), self.stage.dress.clips.clone())
    }

    fn begin_clip(
        &mut self,
        clip: &Arc<supple::Motion>,
        recipe: Recipe,
        clips: Vec<Arc<supple::Motion>>,
    ) -> Result<(), Refused> {
        let (stage, name) = (&self.stage, clip.name());
        let (source, _) = supple_assets::split_clip(&stage.recipe.source);
        let (shown, _) = supple_assets::split_clip(&stage.scene.name);
        let mut scene = stage.scene.bare().clone();
        scene.name = shown.to_owned();
        if stage.tones.clip().is_some() {
            scene.input.obstacles.clear(); // a floor that another clip lowered
        }
        let imported = Imported {
            source: PathBuf::from(source),
            scene,
            links: Vec::new(),
            clips,
            meshes: stage.dress.meshes.clone(),
            notes: stage.dress.notes.clone(),
            things: stage.things.clone(),
            cast: stage.dress.cast.clone(),
        };
        let Some(following) = imported.following(clip) else {
            return Err(("studio/value", format!("the clip \"{name}\" has other bodies than the model")));
        };
        let recipe = Recipe { source: format!("{source}#{name}"), ..recipe };
        let made = Made {
            recipe,
            imported: Imported { scene: following, ..imported },
            character: stage.dress.character.clone(),
        };
        self.open(Opening::of_file(made)).map_err(|(_, text)| ("studio/value", text))?;
        self.stage.begun_by = Some(format!("clip {name}"));
        self.playing = true;
        Ok(())
    }
}
