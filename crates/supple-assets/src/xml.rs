//! XML files as plain trees: included files in their place, every element with its line, and a record of what was asked for, so that
//! whatever a reader does not know can be listed.

use crate::{FileError, InputFile, Note};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Deepest nesting of elements.
const DEEPEST: usize = 200;
/// Most attributes of an element: they are compared with each other.
const MOST_ATTRIBUTES: usize = 1000;
/// Most elements of a file with all that it includes.
const MOST: usize = 1_000_000;

/// An element with what is inside it.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) tag: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    file: Rc<PathBuf>,
    line: u32,
}

impl Element {
    /// An attribute as it stands.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The children with this tag.
    pub(crate) fn all<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.tag == tag)
    }

    /// The first child with this tag.
    pub(crate) fn child(&self, tag: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.tag == tag)
    }

    /// `line 12, <joint name="knee">`
    pub(crate) fn place(&self) -> String {
        let name = self.get("name").map(|name| format!(" name=\"{name}\"")).unwrap_or_default();
        format!("line {}, <{}{name}>", self.line, self.tag)
    }

    /// An error at this element.
    pub(crate) fn error(&self, code: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> FileError {
        FileError::new(code, &self.file, what, remedy).at(self.place())
    }
}

/// How to read an XML file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Includes {
    /// `<include file="…"/>` stands for what is in that file, as in MJCF.
    Expand,
    /// It is an element as any other.
    Keep,
}

/// The root element of a file.
pub(crate) fn read(file: &InputFile, includes: Includes) -> Result<Element, FileError> {
    Reading { outermost: file, includes, read: BTreeSet::new(), depth: 0, count: 0 }.file(file)
}

struct Reading<'a> {
    /// Included files are named from its folder.
    outermost: &'a InputFile,
    includes: Includes,
    /// The files that were read, without links.
    read: BTreeSet<PathBuf>,
    /// How many of them are open.
    depth: usize,
    count: usize,
}

impl Reading<'_> {
    fn file(&mut self, file: &InputFile) -> Result<Element, FileError> {
        self.read.insert(file.real().to_owned());
        self.depth += 1;
        let root = self.text(file.path(), file.text()?);
        self.depth -= 1;
        root
    }

    fn text(&mut self, path: &Path, text: &str) -> Result<Element, FileError> {
        // Some files in use say `version="0.0"`: the declaration tells nothing that is needed.
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let body = match start.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
            Some((_, body)) => body,
            None => start,
        };
        let skipped = text[..text.len() - body.len()].matches('\n').count() as u32;
        if most_attributes(body) > MOST_ATTRIBUTES {
            let what = format!("an element has more than {MOST_ATTRIBUTES} attributes");
            return Err(FileError::new("file/size", path, what, "give elements of their own"));
        }
        let options = roxmltree::ParsingOptions { nodes_limit: 4 * MOST as u32, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(body, options).map_err(|e| {
            let line = e.pos().row + skipped;
            FileError::new("file/xml", path, format!("it is not XML: {e}"), "correct the file")
                .at(format!("line {line}"))
        })?;
        // Lines of elements, which come in the order of the text.
        let mut lines = Lines { text: body, at: 0, line: 1 + skipped };
        let file = Rc::new(path.to_owned());
        self.element(document.root_element(), &file, &mut lines, 1)
    }

    fn element(
        &mut self,
        node: roxmltree::Node<'_, '_>,
        file: &Rc<PathBuf>,
        lines: &mut Lines<'_>,
        depth: usize,
    ) -> Result<Element, FileError> {
        self.count += 1;
        if depth > DEEPEST {
            let what = format!("its elements are nested more than {DEEPEST} deep");
            return Err(FileError::new("file/size", file, what, "give a flatter file"));
        }
        if self.count > MOST {
            return Err(FileError::new(
                "file/size",
                file,
                format!("it has more than {MOST} elements"),
                "give a smaller file",
            ));
        }
        let attributes = node.attributes().map(|a| (a.name().to_owned(), a.value().to_owned())).collect();
        let line = lines.line_at(node.range().start);
        let mut element = Element {
            tag: node.tag_name().name().to_owned(),
            attributes,
            children: Vec::new(),
            file: file.clone(),
            line,
        };
        for child in node.children().filter(|child| child.is_element()) {
            let child = self.element(child, file, lines, depth + 1)?;
            if self.includes == Includes::Expand && child.tag == "include" {
                element.children.extend(self.include(&child)?);
            } else {
                element.children.push(child);
            }
        }
        Ok(element)
    }

    /// What an `<include>` stands for.
    fn include(&mut self, element: &Element) -> Result<Vec<Element>, FileError> {
        let Some(name) = element.get("file") else {
            return Err(element.error("file/include", "it names no file", "give file=\"…\""));
        };
        let place = |e: FileError| element.error(e.code, e.what, e.remedy);
        let file = self.outermost.beside(name).map_err(|e| match e.code {
            "file/read" => element.error("file/include", e.what, e.remedy),
            _ => place(e),
        })?;
        // As in MuJoCo: files that include each other many times over would unfold to far more than was read.
        if self.read.contains(file.real()) {
            return Err(element.error("file/include", format!("{name} is included twice"), "include a file once"));
        }
        if self.depth > 20 {
            return Err(element.error("file/include", "files include files more than 20 deep", "include fewer"));
        }
        let root = self.file(&file)?;
        Ok(root.children)
    }
}

/// The most attributes that an element has, counted without understanding them: signs of equality within a tag and outside quotes.
fn most_attributes(text: &str) -> usize {
    let (mut rest, mut most) = (text, 0);
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find(|(begin, _)| rest.starts_with(begin))
            .map(|(begin, end)| rest[begin.len()..].find(end).map_or(rest.len(), |at| begin.len() + at + end.len()));
        if let Some(length) = skipped {
            rest = &rest[length..];
            continue;
        }
        let (mut quote, mut count, mut end) = (None, 0, rest.len());
        for (k, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (Some(q), b) if b == q => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => count += 1,
                (None, b'>') => {
                    end = k + 1;
                    break;
                }
                (None, _) => {}
            }
        }
        (rest, most) = (&rest[end..], most.max(count));
    }
    most
}

/// Counts lines of positions that only grow.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl Lines<'_> {
    fn line_at(&mut self, position: usize) -> u32 {
        if position > self.at {
            self.line += self.text.as_bytes()[self.at..position].iter().filter(|&&b| b == b'\n').count() as u32;
            self.at = position;
        }
        self.line
    }
}

/// Which attributes and elements a reader has asked for, by kind of element: the others are what it does not know.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The kind of an element, by its tag: several tags may be one kind of thing.
    kind: fn(&str) -> &str,
    attributes: RefCell<BTreeSet<(String, &'static str)>>,
    elements: RefCell<BTreeSet<(String, &'static str)>>,
}

impl Asked {
    /// Nothing asked for yet.
    pub(crate) fn new(kind: fn(&str) -> &str) -> Asked {
        Asked { kind, attributes: RefCell::default(), elements: RefCell::default() }
    }

    /// An element's attributes, with those that it inherits.
    pub(crate) fn of<'a>(&'a self, element: &'a Element, inherited: &'a [(String, String)]) -> Source<'a> {
        Source { element, inherited, asked: self }
    }

    /// Notes that the reader looks at elements `child` within `parent`.
    pub(crate) fn knows(&self, parent: &str, child: &'static str) {
        self.elements.borrow_mut().insert(((self.kind)(parent).to_owned(), child));
    }

    /// Whether the reader has asked for this attribute of elements of this kind.
    fn knows_attribute(&self, tag: &str, name: &str) -> bool {
        self.attributes.borrow().iter().any(|(t, n)| t == tag && *n == name)
    }

    /// A note for each kind of element and of attribute under `root` that nobody asked for.
    pub(crate) fn unknown(&self, root: &Element) -> Vec<Note> {
        let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let mut stack = vec![root];
        while let Some(element) = stack.pop() {
            let tag = (self.kind)(&element.tag);
            let mut tell = |what: String| {
                let entry = found.entry(what).or_insert_with(|| (0, element.place()));
                entry.0 += 1;
            };
            for (name, _) in &element.attributes {
                if !self.knows_attribute(tag, name) {
                    tell(format!("{}/@{name}", element.tag));
                }
            }
            for child in element.children.iter().rev() {
                let known = self.elements.borrow().iter().any(|(parent, c)| *parent == tag && *c == child.tag);
                if !known {
                    tell(format!("{}/{}", element.tag, child.tag));
                } else {
                    stack.push(child);
                }
            }
        }
        let text = |count: usize, place: String| match count {
            1 => format!("it has no equivalent here and was left out, at {place}"),
            n => format!("it has no equivalent here and was left out, {n} times, first at {place}"),
        };
        found
            .into_iter()
            .map(|(part, (count, place))| Note { code: "import/unknown", part, text: text(count, place) })
            .collect()
    }
}

/// The attributes of an element, its own before those of its class.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) element: &'a Element,
    inherited: &'a [(String, String)],
    asked: &'a Asked,
}

impl<'a> Source<'a> {
    fn ask(&self, name: &'static str) {
        let kind = (self.asked.kind)(&self.element.tag).to_owned();
        self.asked.attributes.borrow_mut().insert((kind, name));
    }

    /// An attribute as text.
    pub(crate) fn text(&self, name: &'static str) -> Option<&'a str> {
        self.ask(name);
        let inherited = || self.inherited.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        self.element.get(name).or_else(inherited)
    }

    /// The element's name, or what it is called in want of one.
    pub(crate) fn name_or(&self, other: impl FnOnce() -> String) -> String {
        self.text("name").filter(|name| !name.trim().is_empty()).map_or_else(other, |name| name.trim().to_owned())
    }

    /// All numbers of an attribute, at most `most`.
    pub(crate) fn list(&self, name: &'static str, most: usize) -> Result<Option<Vec<f64>>, FileError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let mut numbers = Vec::new();
        for word in text.split_whitespace() {
            match word.parse::<f64>() {
                Ok(number) if number.is_finite() && numbers.len() < most => numbers.push(number),
                Ok(number) if number.is_finite() => {
                    return Err(self.wrong(name, text, &format!("at most {most} numbers")));
                }
                _ => return Err(self.wrong(name, text, "finite numbers")),
            }
        }
        Ok(Some(numbers))
    }

    /// Exactly `N` numbers.
    pub(crate) fn numbers<const N: usize>(&self, name: &'static str) -> Result<Option<[f64; N]>, FileError> {
        let Some(list) = self.list(name, N)? else { return Ok(None) };
        let numbers = <[f64; N]>::try_from(list).ok();
        numbers.map(Some).ok_or_else(|| self.wrong(name, self.text(name).unwrap_or_default(), &format!("{N} numbers")))
    }

    /// A vector.
    pub(crate) fn vector(&self, name: &'static str) -> Result<Option<glam::DVec3>, FileError> {
        Ok(self.numbers::<3>(name)?.map(glam::DVec3::from_array))
    }

    /// One number.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<f64>, FileError> {
        Ok(self.numbers::<1>(name)?.map(|[x]| x))
    }

    /// An error about one of its attributes.
    pub(crate) fn wrong(&self, name: &str, text: &str, wanted: &str) -> FileError {
        let shown: String = text.chars().take(60).collect();
        let remedy = format!("give {wanted}");
        self.element.error("file/value", format!("{name}=\"{shown}\" cannot be used here"), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Element, FileError> {
        read(&InputFile::sent("a.urdf", text.into()), Includes::Keep)
    }

    #[test]
    fn lines_and_unknown_parts_are_told() {
        let text = "<?xml version=\"0.0\"?>\n<robot>\n  <link name=\"a\" colour=\"red\"/>\n  <magic/>\n</robot>";
        let root = parse(text).unwrap();
        let asked = Asked::new(|tag| tag);
        asked.knows("robot", "link");
        let link = root.child("link").unwrap();
        assert_eq!(asked.of(link, &[]).text("name"), Some("a"));
        assert_eq!(link.place(), "line 3, <link name=\"a\">");
        let notes = asked.unknown(&root);
        let parts: Vec<_> = notes.iter().map(|n| n.part.as_str()).collect();
        assert_eq!(parts, ["link/@colour", "robot/magic"]);
    }

    #[test]
    fn what_is_not_xml_or_too_deep_is_refused() {
        let wrong = parse("<robot>\n<link>\n</robot>").unwrap_err();
        assert_eq!((wrong.code, wrong.place.as_deref()), ("file/xml", Some("line 3")));
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert_eq!(parse(&deep).unwrap_err().code, "file/size");
    }
}
