//! The parameters of a scene, read from what stands after the colon. The catalogue gives keys and default values.

use super::{SceneError, SceneInfo};

/// Largest number of bodies a scene may be asked for.
const MAX_SIZE: usize = 2_000_000;

/// The key of the bare number.
const SIZE: &str = "size";

/// What the user gave, checked against the keys of the catalogue.
pub(super) struct Parameters<'a> {
    info: &'static SceneInfo,
    given: Vec<(&'a str, &'a str)>,
}

/// Key and value of one parameter; a bare value is the size.
fn pair(word: &str) -> (&str, &str) {
    word.split_once('=').map_or((SIZE, word), |(key, value)| (key.trim(), value.trim()))
}

impl<'a> Parameters<'a> {
    /// Reads `size,key=value,…`; `None` when there was no colon.
    pub(super) fn parse(info: &'static SceneInfo, text: Option<&'a str>) -> Result<Parameters<'a>, SceneError> {
        let mut parameters = Parameters { info, given: Vec::new() };
        for (i, word) in text.into_iter().flat_map(|text| text.split(',')).map(str::trim).enumerate() {
            let bare = !word.contains('=');
            let (key, value) = pair(word);
            if bare && !(i == 0 && parameters.default_of(SIZE).is_some()) {
                return Err(parameters.wrong(word, parameters.allowed()));
            }
            if parameters.default_of(key).is_none() || (key == SIZE && !bare) {
                return Err(parameters.wrong(key, parameters.allowed()));
            }
            if parameters.given.iter().any(|(other, _)| *other == key) {
                return Err(parameters.wrong(key, "it is given twice".into()));
            }
            parameters.given.push((key, value));
        }
        Ok(parameters)
    }

    fn default_of(&self, key: &str) -> Option<&'static str> {
        let words = self.info.parameters.split(',').filter(|word| !word.is_empty());
        words.map(pair).find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    fn allowed(&self) -> String {
        let SceneInfo { name, parameters, .. } = self.info;
        if parameters.is_empty() {
            format!("the scene takes none, write {name}")
        } else {
            format!("the scene does not take it, write for example {name}:{parameters}")
        }
    }

    /// The value given, else the default.
    fn value(&self, key: &str) -> &str {
        let given = self.given.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
        given.or_else(|| self.default_of(key)).expect("a scene reads only parameters of its catalogue entry")
    }

    /// The error for a parameter.
    pub(super) fn wrong(&self, parameter: &str, what: String) -> SceneError {
        SceneError::Parameter { scene: self.info.name, parameter: parameter.to_owned(), what }
    }

    /// The number of bodies.
    pub(super) fn size(&self) -> Result<usize, SceneError> {
        let value = self.value(SIZE);
        match value.parse() {
            Ok(size) if (1..=MAX_SIZE).contains(&size) => Ok(size),
            _ => Err(self.wrong(SIZE, format!("it is \"{value}\", give a whole number from 1 to {MAX_SIZE}"))),
        }
    }

    /// The error for a size that parses but does not fit the scene.
    pub(super) fn wrong_size(&self, what: String) -> SceneError {
        self.wrong(SIZE, what)
    }

    /// A finite number that is not negative.
    pub(super) fn number(&self, key: &str) -> Result<f64, SceneError> {
        let value = self.value(key);
        match value.parse::<f64>() {
            Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
            _ => Err(self.wrong(key, format!("it is \"{value}\", give a finite number that is not negative"))),
        }
    }

    /// A finite number above zero.
    pub(super) fn positive(&self, key: &str) -> Result<f64, SceneError> {
        match self.number(key)? {
            x if x > 0.0 => Ok(x),
            x => Err(self.wrong(key, format!("it is {x}, give a number above 0"))),
        }
    }

    /// One of these words.
    pub(super) fn choice<'w>(&self, key: &str, words: &[&'w str]) -> Result<&'w str, SceneError> {
        let value = self.value(key);
        let known = words.iter().find(|word| **word == value).copied();
        known.ok_or_else(|| self.wrong(key, format!("it is \"{value}\", give one of {}", words.join(", "))))
    }

    /// Whether the first or the second word is given.
    pub(super) fn switch(&self, key: &str, yes: &str, no: &str) -> Result<bool, SceneError> {
        match self.value(key) {
            value if value == yes => Ok(true),
            value if value == no => Ok(false),
            value => Err(self.wrong(key, format!("it is \"{value}\", give {yes} or {no}"))),
        }
    }
}
