//! How a scene is simulated: `[simulation]`, its keys and its schema from the table of settings in the engine.

use super::Text;
use crate::FileError;
use glam::DVec3;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range as Span;
use supple::settings::{Value, Values};
use supple::{Input, Model, SETTINGS, Setting, Solver};
use toml::Spanned;

/// `[simulation]` as it is written.
#[derive(Debug, Default)]
pub(crate) struct SimulationEdit {
    /// The method.
    solver: Option<Spanned<String>>,
    /// Whether the root is held by a spring.
    pub(super) hold: Option<Spanned<bool>>,
    settings: Vec<Told>,
}

/// A setting as it is written.
#[derive(Debug)]
struct Told {
    key: String,
    span: Span<usize>,
    value: Spanned<toml::Value>,
}

/// Tables within `[simulation]`: those of solvers, and that of skin.
fn groups() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    SETTINGS.iter().filter_map(|setting| setting.key.split_once('.')).map(|(group, _)| group).filter(move |group| {
        let new = *group != last; // groups stand together
        last = group;
        new
    })
}

impl<'de> Deserialize<'de> for SimulationEdit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SimulationEdit, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = SimulationEdit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SimulationEdit, A::Error> {
        let mut edit = SimulationEdit::default();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            match key.get_ref().as_str() {
                "solver" => edit.solver = Some(map.next_value()?),
                "hold" => edit.hold = Some(map.next_value()?),
                group if groups().any(|name| name == group) => {
                    let inside: BTreeMap<Spanned<String>, Spanned<toml::Value>> = map.next_value()?;
                    edit.settings.extend(inside.into_iter().map(|(last, value)| Told {
                        key: format!("{group}.{}", last.get_ref()),
                        span: last.span(),
                        value,
                    }));
                }
                name => {
                    let (key, span) = (name.to_owned(), key.span());
                    edit.settings.push(Told { key, span, value: map.next_value()? });
                }
            }
        }
        Ok(edit)
    }
}

impl SimulationEdit {
    /// Changes the input of a scene. What would do nothing is refused.
    pub(super) fn apply(&self, text: &Text<'_>, model: &Model, input: &mut Input) -> Result<(), FileError> {
        if let Some(name) = &self.solver {
            let names = || Solver::all().into_iter().map(|solver| solver.name());
            let found = Solver::all().into_iter().find(|solver| solver.name() == name.get_ref());
            input.solver = found.ok_or_else(|| {
                let what = format!("there is no solver \"{}\"", name.get_ref());
                text.wrong(name.span(), what, format!("give one of {}", names().collect::<Vec<_>>().join(", ")))
            })?;
        }
        let mut told = Vec::with_capacity(self.settings.len());
        for one in &self.settings {
            let Some(place) = SETTINGS.iter().position(|setting| setting.key == one.key) else {
                let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
                let what = format!("[simulation] has no key `{}`", one.key);
                let remedy = format!("keys are solver, hold, {}", keys.join(", "));
                return Err(text.wrong(one.span.clone(), what, remedy));
            };
            told.push((place, one));
        }
        told.sort_by_key(|(place, _)| *place); // what a key needs stands before it
        for (place, one) in told {
            let setting = &SETTINGS[place];
            if let Some(reason) = setting.idle(model, input) {
                let what = format!("{} would do nothing: {reason}", one.key);
                let remedy = match setting.owner() {
                    Some(owner) if owner != input.solver.name() => {
                        format!("write solver = \"{owner}\", or take it out")
                    }
                    _ => "take it out".into(),
                };
                return Err(text.wrong(one.span.clone(), what, remedy));
            }
            if !value(setting, one.value.get_ref()).is_some_and(|value| setting.set(input, value)) {
                let given = serde_json::to_string(one.value.get_ref()).unwrap_or_default();
                let what = format!("{} is {given}", one.key);
                return Err(text.wrong(one.value.span(), what, format!("give {}", range_words(setting))));
            }
        }
        Ok(())
    }
}

/// What a setting may be in a scene file.
fn range_words(setting: &Setting) -> String {
    match setting.values() {
        Values::Vector(most) => format!("three numbers, each within {most} {}", setting.unit),
        _ => setting.range_words(),
    }
}

/// The value that was written; `None` when it is of another kind.
fn value(setting: &Setting, told: &toml::Value) -> Option<Value> {
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    match setting.values() {
        Values::Whole(..) => told.as_integer().and_then(|n| u32::try_from(n).ok()).map(Value::Whole),
        Values::Number(..) => number(told).map(Value::Number),
        Values::NumberOrOff(..) if told.as_str() == Some("off") => Some(Value::Number(f64::INFINITY)),
        Values::NumberOrOff(..) => number(told).filter(|x| x.is_finite()).map(Value::Number),
        Values::Choice(_) => setting.parse(told.as_str()?),
        Values::Vector(_) => {
            let parts: Vec<f64> = told.as_array()?.iter().map(number).collect::<Option<_>>()?;
            Some(Value::Vector(DVec3::from_array(parts.try_into().ok()?)))
        }
    }
}

impl JsonSchema for SimulationEdit {
    fn schema_name() -> Cow<'static, str> {
        "SimulationEdit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Solver::all().iter().map(|solver| solver.name()).collect();
        let mut properties = Map::new();
        properties.insert("solver".into(), json!({ "description": "The method; tree unless told.", "enum": names }));
        let hold = "`false`: the root is not held by a spring, from the start on.";
        properties.insert("hold".into(), json!({ "description": hold, "type": "boolean" }));
        for setting in SETTINGS {
            match setting.key.split_once('.') {
                None => _ = properties.insert(setting.key.into(), schema_of(setting)),
                Some((group, last)) => {
                    let words = match setting.owner() {
                        Some(solver) => format!("Settings of solver {solver}, if it runs."),
                        None => "How soft skin is solved, where there is some.".to_owned(),
                    };
                    let table = properties.entry(group).or_insert_with(|| {
                        json!({ "description": words, "type": "object", "properties": {}, "additionalProperties": false })
                    });
                    table["properties"][last] = schema_of(setting);
                }
            }
        }
        let mut schema = Map::new();
        schema.insert("description".into(), "How a scene is simulated.".into());
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), Json::Object(properties));
        schema.insert("additionalProperties".into(), false.into());
        schema.into()
    }
}

/// The schema of a setting: what it may be, its default, its words.
fn schema_of(setting: &Setting) -> Json {
    let mut schema = match setting.values() {
        Values::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Values::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Values::NumberOrOff(least, most) => {
            json!({ "anyOf": [{ "type": "number", "minimum": least, "maximum": most }, { "const": "off" }] })
        }
        Values::Choice(words) => json!({ "enum": words }),
        Values::Vector(most) => {
            let part = json!({ "type": "number", "minimum": -most, "maximum": most });
            json!({ "type": "array", "items": part, "minItems": 3, "maxItems": 3 })
        }
    };
    let unit = if setting.unit.is_empty() { String::new() } else { format!(" [{}]", setting.unit) };
    schema["description"] = format!("{}{unit}.", capital(setting.words)).into();
    schema["default"] = match setting.default_value() {
        Some(Value::Whole(n)) => n.into(),
        Some(Value::Number(x)) => x.into(),
        Some(Value::Word(word)) => word.into(),
        Some(Value::Vector(v)) => v.to_array().to_vec().into(),
        None => return schema, // there is none while it does nothing
    };
    schema
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
