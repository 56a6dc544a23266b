//! Things and other characters put into a scene, as scene files, recipes and messages tell them.

use crate::{Character, FileError, Imported};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use supple::glam::{DQuat, DVec3};
use supple::model::ObstacleShape;
use supple::scenes::thing_names;
use supple::tone::Tone;
use supple::{Guest, Model, Pose, Scene, Shape, Thing, ThingKind};

/// Things in a scene.
const MAX_THINGS: usize = 200;
/// Characters beside the scene's own.
const MAX_GUESTS: usize = 16;
/// What a character is called in place of a kind of thing.
const CHARACTER: &str = "character";
/// Directions in which the points of a prop are looked for that lie farthest out.
const DIRECTIONS: usize = 96;

/// A thing: what it is, where, how large, how heavy, how rough. Lengths in metres, masses in kilogrammes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThingTold {
    /// Its own among bodies and obstacles; left out: its kind and a number.
    #[serde(default)]
    pub name: String,
    /// `ball`, `box`, `capsule` or `prop`, which move; `ramp`, `stairs`, `table` or `swing`, which stand; `character`.
    pub kind: String,
    /// Its middle; of what stands and of characters, the middle of where it stands.
    pub position: [f64; 3],
    /// A unit quaternion x, y, z, w.
    #[serde(default = "upright")]
    pub rotation: [f64; 4],
    /// Along x, y and z; a character has its own, a prop is so many times as large as its file. A ball is as wide as its first number, a capsule stands along y and is as wide as its first; ramps and stairs rise along z.
    #[serde(default = "unit")]
    pub size: [f64; 3],
    /// Of what moves.
    #[serde(default = "one")]
    pub mass: f64,
    /// Coefficient of friction.
    #[serde(default = "half")]
    pub friction: f64,
    /// What carries it, exactly; `position` and `rotation` are those of the time before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldTold>,
    /// Of a character or prop: its file (.glb, .gltf, .vrm or .fbx); of a character the scene's own once more unless told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Of a character: the clip of its file that it follows, from its first pose on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<String>,
    /// Of a character: `posed`, `follow`, `loose` or `limp` at the start; `follow` if it has a clip, `posed` otherwise, unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A character that may stand beside the scene's own.
#[derive(Clone, Debug)]
pub struct Player {
    /// The file and its rig.
    pub character: Character,
    /// The scene made of it.
    pub imported: Imported,
}

/// Who may be put into a scene: its own character, and others by the file that names them.
#[derive(Clone, Debug, Default)]
pub struct Cast {
    own: Option<Arc<Player>>,
    files: BTreeMap<String, Arc<Player>>,
}

impl Cast {
    fn player(character: Character) -> Result<Arc<Player>, FileError> {
        let imported = character.imported(&character.source().to_string_lossy())?;
        Ok(Arc::new(Player { character, imported }))
    }

    /// One more, under the file that things name it by.
    pub fn add(&mut self, file: &str, character: Character) -> Result<(), FileError> {
        self.files.insert(file.to_owned(), Cast::player(character)?);
        Ok(())
    }

    /// Makes ready whom things name: the scene's own character as it is now, and files that are not known yet and may be opened.
    pub fn call(
        &mut self,
        own: Option<&Character>,
        things: &[ThingTold],
        open: impl Fn(&str) -> Result<Option<Character>, FileError>,
    ) -> Result<(), FileError> {
        self.own = None;
        for ThingTold { file, .. } in things.iter().filter(|told| told.is_character() || told.is_prop()) {
            if file.is_empty() && self.own.is_none() {
                self.own = own.map(|own| Cast::player(own.clone())).transpose()?;
            } else if !file.is_empty()
                && !self.files.contains_key(file)
                && let Some(character) = open(file)?
            {
                self.add(file, character)?;
            }
        }
        Ok(())
    }

    /// The character of this file; of none, the scene's own.
    pub fn get(&self, file: &str) -> Option<&Arc<Player>> {
        if file.is_empty() { self.own.as_ref() } else { self.files.get(file) }
    }

    /// All of them.
    pub fn players(&self) -> impl Iterator<Item = &Arc<Player>> {
        self.own.iter().chain(self.files.values())
    }
}

/// The bone that carries a thing, and where the thing is on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldTold {
    /// Its name.
    pub by: String,
    /// From the middle of its mass, in its axes.
    #[serde(default)]
    pub position: [f64; 3],
    /// A unit quaternion x, y, z, w.
    #[serde(default = "upright")]
    pub rotation: [f64; 4],
}

fn upright() -> [f64; 4] {
    [0.0, 0.0, 0.0, 1.0]
}
fn one() -> f64 {
    1.0
}
fn half() -> f64 {
    0.5
}
fn unit() -> [f64; 3] {
    [1.0; 3]
}

fn pose(position: [f64; 3], rotation: [f64; 4]) -> Result<Pose, String> {
    let rotation = DQuat::from_array(rotation);
    if rotation.is_finite() && (rotation.length() - 1.0).abs() < 1e-3 {
        Ok(Pose::new(rotation.normalize(), DVec3::from_array(position)))
    } else {
        Err("the rotation of a thing is not a unit quaternion x, y, z, w".into())
    }
}

impl ThingTold {
    /// The thing as the engine takes it, in a scene of this model; or what is wrong with it.
    pub fn thing(&self, model: &Model, cast: &Cast) -> Result<Thing, String> {
        let kind = ThingKind::named(&self.kind).ok_or_else(|| {
            let names = ThingKind::ALL.map(ThingKind::name).join(", ");
            format!("there is no thing \"{}\": give one of {names}, {CHARACTER}", self.kind)
        })?;
        let (name, letters) = (self.name.trim().to_owned(), self.name.chars().count());
        if letters > 80 || name.contains('.') || name.chars().any(char::is_control) {
            return Err("the name of a thing has up to 80 letters and no dot".into());
        }
        let hull = match (kind, self.prop(cast)) {
            (ThingKind::Prop, None) => {
                return Err(format!("the prop needs a file that is known: \"{}\" is none", self.file));
            }
            (ThingKind::Prop, Some((_, points, _))) => points,
            _ => Vec::new(),
        };
        if (!self.file.is_empty() && kind != ThingKind::Prop) || self.clip.is_some() || self.state.is_some() {
            return Err(format!("a {} has no file, clip or state: characters do", self.kind));
        }
        let held = match &self.held {
            None => None,
            Some(HeldTold { by, position, rotation }) => {
                let body = model.find_body(by).ok_or_else(|| {
                    format!(
                        "there is no bone \"{by}\" to hold the {kind}: `supple inspect` lists them",
                        kind = self.kind
                    )
                })?;
                Some((body, pose(*position, *rotation)?))
            }
        };
        let pose = pose(self.position, self.rotation)?;
        let size = DVec3::from_array(self.size);
        let thing = Thing { name, kind, pose, size, hull, mass: self.mass, friction: self.friction, held };
        thing.check()?;
        Ok(thing)
    }

    /// Whether it is a body; otherwise it stands.
    pub fn moves(&self) -> bool {
        ThingKind::named(&self.kind).is_some_and(ThingKind::moves)
    }

    /// Whether it is a solid of a file.
    pub fn is_prop(&self) -> bool {
        self.kind == ThingKind::Prop.name()
    }

    /// Of a prop: its file, the points of its hull about the middle of its mass, and that middle in the file.
    pub fn prop<'a>(&self, cast: &'a Cast) -> Option<(&'a Arc<Player>, Vec<DVec3>, DVec3)> {
        let player = Some(cast.get(&self.file)?).filter(|_| self.is_prop() && !self.file.is_empty())?;
        let vertices = player.imported.meshes.iter().flat_map(|mesh| &mesh.vertices);
        let points = farthest(&vertices.map(|v| DVec3::from_array(v.map(f64::from))).collect::<Vec<_>>());
        let centre = Shape::Hull { points: points.clone() }.solid().ok()?.centre;
        Some((player, points.into_iter().map(|point| point - centre).collect(), centre))
    }

    /// Whether it is a character.
    pub fn is_character(&self) -> bool {
        self.kind == CHARACTER
    }

    /// The character that it stands for, on the floor of a scene; or what is wrong with it.
    fn guest(&self, cast: &Cast) -> Result<Guest, String> {
        let name = self.name.trim().to_owned();
        if self.size != unit() || self.mass != one() || self.friction != half() || self.held.is_some() {
            return Err(format!("the character {name} has its own size, mass and friction, and is not held"));
        }
        let player = cast.get(&self.file).ok_or_else(|| {
            if self.file.is_empty() {
                format!("the scene is no character of a file: tell the file of the character {name}")
            } else {
                format!("there is no character of the file \"{}\": drop it on the page first", self.file)
            }
        })?;
        let scene = player.imported.scene.bare();
        let clip = self.clip.as_ref().map(|clip| player.imported.clip(clip).cloned());
        let clip = clip.transpose().map_err(|e| format!("{}: {}", e.what, e.remedy))?;
        let state = self.state.as_deref().unwrap_or(if clip.is_some() { "follow" } else { "posed" });
        let tone = Tone::named(state).filter(|tone| *tone != Tone::Follow || clip.is_some()).ok_or_else(|| {
            format!("the character {name} cannot be \"{state}\": give posed, loose or limp, or a clip")
        })?;
        let place = pose(self.position, self.rotation)?;
        if !(place.is_finite() && place.translation.abs().max_element() <= 1e3) {
            return Err(format!("the character {name} must stand within 1,000 m"));
        }
        let floor = scene.model.find_obstacle("floor").map(|floor| scene.model.obstacle(floor));
        let height =
            floor.filter(|floor| floor.shape == ObstacleShape::HalfSpace).map_or(0.0, |f| f.pose.translation.y);
        let place = place.then(Pose::at(DVec3::Y * -height));
        Ok(Guest { name, scene: Arc::new(scene.clone()), place, clip, tone })
    }
}

/// The scene with these things and characters in place of those it has, or what is wrong with them. What has no name gets one.
pub fn furnished(scene: &Scene, told: &mut [ThingTold], cast: &Cast) -> Result<Scene, String> {
    let bare = scene.bare();
    if told.is_empty() {
        return Ok(bare.clone());
    }
    if told.len() > MAX_THINGS {
        return Err(format!("a scene has up to {MAX_THINGS} things"));
    }
    const SOFT: &str = "a scene with flesh or soft skin cannot have things put into it";
    let guests = name_characters(told)?;
    let guests = guests.iter().map(|&k| told[k].guest(cast)).collect::<Result<Vec<Guest>, _>>()?;
    let scene = bare.with_guests(&guests).map_err(|e| e.to_string())?.ok_or(SOFT)?;
    let is_thing = |told: &&mut ThingTold| !told.is_character();
    let things = told.iter().filter(|told| !told.is_character());
    let things = things.map(|told| told.thing(&scene.model, cast)).collect::<Result<Vec<Thing>, _>>()?;
    let all = thing_names(&scene.model, &things);
    let mut names = BTreeSet::new();
    if let Some(twice) = all.iter().find(|name| !names.insert(*name)) {
        return Err(format!("two things are called \"{twice}\": give each a name of its own"));
    }
    let made = scene.with_things(&things).map_err(|e| e.to_string())?.ok_or(SOFT)?;
    for (told, name) in told.iter_mut().filter(is_thing).zip(all) {
        told.name = name;
    }
    Ok(made)
}

/// The points that lie farthest out in evenly spread directions, each once.
fn farthest(points: &[DVec3]) -> Vec<DVec3> {
    let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let mut found: Vec<usize> = (0..DIRECTIONS)
        .filter_map(|k| {
            let y = 1.0 - (2 * k + 1) as f64 / DIRECTIONS as f64;
            let (sin, cos) = (golden * k as f64).sin_cos();
            let way = DVec3::new((1.0 - y * y).sqrt() * cos, y, (1.0 - y * y).sqrt() * sin);
            (0..points.len()).max_by(|a, b| points[*a].dot(way).total_cmp(&points[*b].dot(way)))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|k| points[k]).collect()
}

/// Gives characters names of their own, and tells which these are.
fn name_characters(told: &mut [ThingTold]) -> Result<Vec<usize>, String> {
    let meant: Vec<usize> = (0..told.len()).filter(|k| told[*k].is_character()).collect();
    if meant.len() > MAX_GUESTS {
        return Err(format!("a scene has up to {MAX_GUESTS} characters beside its own"));
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    for k in meant.iter().copied().filter(|k| !told[*k].name.trim().is_empty()) {
        let name = told[k].name.trim().to_owned();
        if name.chars().count() > 80 || name.contains(['.', '/']) || name.chars().any(char::is_control) {
            return Err("the name of a character has up to 80 letters, no dot and no slash".into());
        }
        if !names.insert(name.clone()) {
            return Err(format!("two characters are called \"{name}\": give each a name of its own"));
        }
    }
    for &k in &meant {
        let free = || (1..).map(|n| format!("{CHARACTER} {n}")).find(|name| !names.contains(name));
        let name = Some(told[k].name.trim().to_owned()).filter(|name| !name.is_empty()).or_else(free);
        told[k].name = name.unwrap_or_default();
        names.insert(told[k].name.clone());
    }
    Ok(meant)
}
