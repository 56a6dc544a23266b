//! Things put into the scene, carried and thrown. A model is constant: other things make another one, and another stage, which begins as this one is now.

use super::*;
use crate::simulation::tones::Event;
use supple::BodyState;
use supple::tone::Play;
use supple_assets::HeldTold;

/// A figure that follows comes to follow again within this time, from the pose that it has \[s\].
const AGAIN: f64 = 0.2;

impl Simulation {
    /// Puts things into the scene, in place of those it has. Whatever stays goes on as it is.
    pub(super) fn put_things(&mut self, mut told: Vec<ThingTold>) -> Result<(), Refused> {
        let wrong = |what: String| ("studio/value", what);
        let stage = &mut self.stage;
        stage.compute().map_err(|error| ("studio/take", error.to_string()))?;
        let now = &stage.now.state;
        // The bodies of the scene are where they are now, so that what they carry is there too.
        let mut bare = stage.scene.bare().clone();
        let (bodies, joints) = (bare.state.bodies.len(), bare.state.joints.len());
        bare.state.time = now.time;
        bare.state.bodies.clone_from_slice(&now.bodies[..bodies]);
        bare.state.joints.clone_from_slice(&now.joints[..joints]);
        // Whom the things name is known already: a client opens no file.
        let mut dress = stage.dress.clone();
        dress.cast.call(dress.character.as_ref(), &told, |_| Ok(None)).map_err(|e| wrong(e.to_string()))?;
        let mut scene = furnished(&bare, &mut told, &dress.cast).map_err(wrong)?;
        // A character that stays is as it was, and so are its clips.
        for guest in scene.guests().to_vec() {
            let before = stage.scene.guests().iter().find(|old| old.name == guest.name && old.place == guest.place);
            if let Some(before) = before.filter(|before| before.bodies.len() == guest.bodies.len()) {
                scene.state.bodies[guest.bodies.clone()].clone_from_slice(&now.bodies[before.bodies.clone()]);
            }
        }
        // A thing that was not put elsewhere, nor into another hand, stays too.
        for thing in told.iter().filter(|thing| !thing.is_character()) {
            let Some(before) = stage.things.iter().find(|old| old.name == thing.name) else { continue };
            let same_place = before.position == thing.position && before.rotation == thing.rotation;
            let stays = same_place && (thing.held.is_none() || thing.held == before.held);
            let places = (stage.scene.model.find_body(&thing.name), scene.model.find_body(&thing.name));
            if let (true, (Some(old), Some(new))) = (stays, places) {
                scene.state.bodies[new.index()] = now.bodies[old.index()];
            }
        }
        let Input { targets, wrenches, contacts, .. } = std::mem::take(&mut scene.input);
        scene.input = Input { targets, wrenches, contacts, ..stage.settings.clone() };
        scene.input.joints.truncate(joints);
        if !scene.input.joints.is_empty() {
            scene.input.joints.resize(scene.model.joints().len(), JointInput::default());
        }
        let mut recipe = stage.recipe.clone();
        recipe.changes.things = Some(told.clone());
        let marks = stage.tones_as_marks(&scene);
        scene.state.recount_turns(&scene.model);
        scene.state.joints[..joints].clone_from_slice(&now.joints[..joints]);
        let name = |body: &u32| &stage.scene.model.bodies()[*body as usize].name;
        let pins = stage.pins.iter().filter_map(|(body, pin)| Some((scene.model.find_body(name(body))?.0, *pin)));
        let (hold, script, pins) = (stage.hold, stage.script, pins.collect());
        let opening = Opening { scene, dress, recipe, takes: None, things: told };
        let playing = self.playing;
        self.open(opening).map_err(|(_, text)| ("studio/value", text))?;
        self.playing = playing;
        let stage = &mut self.stage;
        (stage.hold, stage.script, stage.pins) = (hold, script, pins);
        stage.timeline.set_marks(0, marks);
        stage.recall_tones();
        stage.touch(ByHand::Takes);
        stage.begun_by = Some("things".into());
        self.publish_status();
        Ok(())
    }

    /// Another character, or a thing of a file, comes into the scene, beside what is there.
    pub(super) fn welcome(&mut self, file: &str, character: Character, as_prop: bool) -> Result<(), (String, String)> {
        self.stage.compute().map_err(|e| (e.code().to_owned(), e.to_string()))?;
        let name = character.source().file_stem().unwrap_or_default().to_string_lossy().replace(['.', '/'], " ");
        self.stage.dress.cast.add(file, character).map_err(told)?;
        let right = |body: &BodyState| body.position.x;
        let right = self.stage.now.state.bodies.iter().map(right).fold(0.0, f64::max) + 0.8;
        let floor = self.stage.scene.model.find_obstacle("floor").map(|f| self.stage.scene.model.obstacle(f).pose);
        let floor = floor.map_or(0.0, |pose| pose.translation.y);
        let mut things = self.stage.things.clone();
        let taken = |name: &str| things.iter().any(|thing| thing.name == name);
        let name = if taken(&name) { String::new() } else { name };
        let mut told = ThingTold {
            name,
            kind: if as_prop { "prop" } else { "character" }.into(),
            position: [right, floor, 0.0],
            rotation: [0.0, 0.0, 0.0, 1.0],
            size: [1.0; 3],
            mass: 1.0,
            friction: 0.5,
            file: file.to_owned(),
            ..ThingTold::default()
        };
        // A prop lies on the floor, a little above it.
        if let Some((_, points, _)) = told.prop(&self.stage.dress.cast) {
            told.position[1] = floor + 0.002 - points.iter().map(|point| point.y).fold(0.0, f64::min);
        }
        things.push(told);
        self.put_things(things).map_err(|(code, text)| (code.to_owned(), text))
    }

    /// Puts what is in the scene beside a character that was made anew.
    pub(super) fn furnish(&self, file: &mut Imported, character: &Character) -> Result<(), Refused> {
        let wrong = |what: String| ("studio/value", what);
        file.cast = self.stage.dress.cast.clone();
        file.cast.call(Some(character), &self.stage.things, |_| Ok(None)).map_err(|e| wrong(e.to_string()))?;
        file.furnish(self.stage.things.clone()).map_err(wrong)
    }

    /// Lets a body carry a thing as the two are now, or lets the thing go.
    pub(super) fn hold_thing(&mut self, thing: &str, body: Option<u32>) -> Result<(), Refused> {
        let wrong = |what: String| ("studio/value", what);
        let stage = &mut self.stage;
        stage.compute().map_err(|error| ("studio/take", error.to_string()))?;
        let mut told = stage.things.clone();
        let Some(meant) = told.iter_mut().find(|told| told.name == thing) else {
            return Err(wrong(format!("there is no thing \"{thing}\"")));
        };
        let Some(own) = stage.scene.model.find_body(thing) else {
            return Err(wrong(format!("{thing} stands: a ball, a box or a capsule can be held")));
        };
        if let Some(body) = body.filter(|body| *body >= stage.figure()) {
            return Err(wrong(format!("body {body} cannot hold {thing}: choose a bone of the character")));
        }
        let pose = |body: usize| stage.now.state.bodies[body].pose();
        meant.held = body.map(|body| {
            let place = pose(body as usize).inverse().then(pose(own.index()));
            HeldTold {
                by: stage.scene.model.bodies()[body as usize].name.clone(),
                position: place.translation.to_array(),
                rotation: place.rotation.to_array(),
            }
        });
        self.put_things(told)
    }
}

impl Stage {
    /// The tones as they are now, as marks of a take of another scene that begins here. Who is not there any more has none.
    fn tones_as_marks(&self, next: &Scene) -> Vec<(u64, String)> {
        if !self.tones.is_active() {
            return Vec::new();
        }
        let mut events = Vec::new();
        let figures = std::iter::once(Some(0)).chain(self.scene.guests().iter().map(|old| {
            let same = |new: &supple::Seated| new.name == old.name && new.place == old.place;
            Some(1 + next.guests().iter().position(same)?)
        }));
        let figures: Vec<Option<usize>> = figures.collect();
        for (k, figure) in figures.iter().enumerate() {
            if let (Some(play), Some(figure)) = (self.tones.clip_of(k), *figure) {
                let Play { from, speed, again, .. } = play.going_on(self.now.state.time, play.speed, play.again);
                let clip = play.motion.name().to_owned();
                events.push(Event::Clip { clip, from, speed, again, fade: 0.0, figure });
            }
        }
        let stays = |body: &u32| {
            let of = self.tones.figure_of(BodyId(*body))?;
            figures[of]?;
            // What the script moves it moves on.
            let scripted = of == 0 && self.tones.is_scripted(BodyId(*body)) && self.tones.clip().is_none();
            let name = &self.scene.model.bodies()[*body as usize].name;
            if scripted { None } else { next.model.find_body(name).map(|body| body.0) }
        };
        let whole = [Event::State { bodies: Vec::new(), state: "loose".into(), strength: 1.0, blend: 0.0 }];
        for event in self.way_back(&self.tones, &whole) {
            if let Event::State { bodies, state, strength, .. } = event {
                let bodies: Vec<u32> = bodies.iter().filter_map(stays).collect();
                if bodies.is_empty() {
                    continue;
                }
                let blend = if state == "loose" || state == "limp" { 0.0 } else { AGAIN };
                events.push(Event::State { bodies, state, strength, blend });
            }
        }
        events.extend(self.tones.hits.map(|h| Event::Hits { impulse: h.impulse, recovery: h.recovery }));
        events.iter().map(|event| (0, json(event))).collect()
    }

    /// Throws a thing from a place: another take begins, in which it is there.
    pub(super) fn throw(&mut self, thing: &str, from: DVec3, velocity: DVec3) -> Result<(), Refused> {
        let told = self.things.iter().find(|told| told.name == thing && told.moves());
        let (Some(told), Some(body)) = (told, self.scene.model.find_body(thing)) else {
            let what = format!("there is no thing \"{thing}\" that can be thrown: put a ball into the scene");
            return Err(("studio/value", what));
        };
        if let Some(held) = &told.held {
            return Err(("studio/value", format!("{thing} is held by {}: let it go first", held.by)));
        }
        let near = |v: DVec3, most: f64| v.is_finite() && v.length() <= most;
        if !(near(from, 1e3) && near(velocity, 200.0)) {
            return Err(("studio/value", "a throw begins within 1,000 m, at up to 200 m/s".into()));
        }
        self.compute().map_err(|error| ("studio/take", error.to_string()))?;
        let place = (self.take, self.now.step);
        self.shares = Shares::of(&self.now.input.control);
        let thrown = &mut self.now.state.bodies[body.index()];
        let pose = Pose::new(thrown.orientation, from);
        *thrown = BodyState { velocity: Twist::new(velocity, DVec3::ZERO), ..BodyState::at_rest(pose) };
        let name = self.timeline.free_name();
        // What was asked of it at this very step is asked of the take that begins here, too.
        let here = self.timeline.marks(place.0).into_iter().filter(|(step, _)| *step >= place.1);
        let here: Vec<(u64, String)> = here.map(|(step, text)| (step, text.to_owned())).collect();
        self.take = self.timeline.fork(Fork { take: place.0, step: place.1 }, name, &self.now);
        self.timeline.set_marks(self.take, here);
        self.recall_tones();
        let begun = Some(Begun { from: place, removed: Vec::new() });
        self.add_edit(Edit { label: format!("throw {thing}"), take: self.take, begun, what: What::Pull });
        Ok(())
    }
}
