//! Default classes: attributes that elements inherit.
//!
//! A class has the attributes of the class around it and its own. Elements of one kind inherit what their class says of that kind; all
//! actuators are one kind.

use super::kind;
use crate::FileError;
use crate::xml::Element;
use std::collections::BTreeMap;

/// The attributes of one class, by kind of element; later ones come last.
type Class = BTreeMap<String, Vec<(String, String)>>;

/// All classes by name.
#[derive(Debug)]
pub(super) struct Classes {
    classes: BTreeMap<String, Class>,
    /// What classes may still inherit from each other \[bytes\].
    left: usize,
}

/// What classes inherit may have so many times the bytes of what they are told, and some more.
const INHERITED: usize = 16;
const SOME_BYTES: usize = 1 << 20;

/// The bytes of attributes.
fn size(attributes: &[(String, String)]) -> usize {
    attributes.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>()).sum()
}

/// The bytes of all attributes within an element.
fn size_within(element: &Element) -> usize {
    size(&element.attributes) + element.children.iter().map(size_within).sum::<usize>()
}

/// The class of elements that name none.
pub(super) const MAIN: &str = "main";

impl Classes {
    /// The classes of all `<default>` elements of a file.
    pub(super) fn read(root: &Element) -> Result<Classes, FileError> {
        let told: usize = root.all("default").map(size_within).sum();
        let mut classes = Classes { classes: BTreeMap::new(), left: INHERITED * told + SOME_BYTES };
        classes.classes.insert(MAIN.to_owned(), Class::new());
        for element in root.all("default") {
            classes.add(element, MAIN, Place::Top)?;
        }
        Ok(classes)
    }

    fn add(&mut self, element: &Element, around: &str, place: Place) -> Result<(), FileError> {
        let name = match (element.get("class"), place) {
            (Some(name), _) => name,
            (None, Place::Top) => MAIN,
            (None, Place::Inside) => {
                return Err(element.error("file/value", "a class has no name", "give class=\"…\""));
            }
        };
        let outer = if name == MAIN { MAIN } else { around };
        let around_it: usize = self.classes.get(outer).map_or(0, |class| class.values().map(|list| size(list)).sum());
        self.left = self.left.checked_sub(around_it).ok_or_else(|| {
            element.error(
                "file/size",
                "classes inherit far more than is told",
                "nest fewer classes, or say less in them",
            )
        })?;
        let inherited = self.classes.get(outer).cloned().unwrap_or_default();
        let class = self.classes.entry(name.to_owned()).or_insert(inherited);
        for child in element.children.iter().filter(|child| child.tag != "default") {
            class.entry(kind(&child.tag).to_owned()).or_default().extend(child.attributes.iter().cloned());
        }
        for child in element.all("default") {
            self.add(child, name, Place::Inside)?;
        }
        Ok(())
    }

    /// What an element inherits: from the class that it names, else from `around`.
    pub(super) fn inherited(&self, element: &Element, around: &str) -> Result<&[(String, String)], FileError> {
        let name = element.get("class").unwrap_or(around);
        match self.classes.get(name) {
            Some(class) => Ok(class.get(kind(&element.tag)).map_or(&[], Vec::as_slice)),
            None => Err(element.error(
                "file/value",
                format!("there is no class \"{name}\""),
                "add it to <default>, or correct the name",
            )),
        }
    }
}

#[derive(Clone, Copy)]
enum Place {
    Top,
    Inside,
}
