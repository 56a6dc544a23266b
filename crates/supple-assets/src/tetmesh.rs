//! Meshes of tetrahedra: Gmsh `.msh` 2.2 and 4.1 (text and binary), VegaFEM `.veg`, legacy VTK `.vtk`, TetGen `.node` with `.ele`.
//!
//! Only tetrahedra are kept. Those of negative volume are turned round, nodes that none uses are left out; a [`Note`] tells of both. Points are taken as
//! they are: these formats know neither a unit nor which way is up.

use crate::imported::MOST_LENGTH;
use crate::{FileError, InputFile, Note};
use glam::DVec3;
use std::collections::BTreeMap;
use std::path::Path;
use supple::flesh::Cage;

/// Reads a mesh by the ending of its name. For TetGen either file may be named; the other lies beside it.
pub fn read(file: &InputFile) -> Result<(Cage, Vec<Note>), FileError> {
    let path = file.path();
    match file.ending().as_str() {
        ending @ ("node" | "ele") => {
            let other = path.with_extension(if ending == "node" { "ele" } else { "node" });
            let other = file.beside(other.file_name().unwrap_or_default())?;
            let (node, ele) = if ending == "node" { (file, &other) } else { (&other, file) };
            finish(path, tetgen(node.bytes(), ele.bytes()))
        }
        "msh" => finish(path, gmsh(file.bytes())),
        "veg" => finish(path, veg(file.bytes())),
        "vtk" => finish(path, vtk(file.bytes())),
        ending => Err(FileError::new(
            "file/format",
            path,
            format!("a mesh of tetrahedra does not end in .{ending}"),
            "give a .msh, .veg, .vtk, .node or .ele file",
        )),
    }
}

/// What is wrong, and where.
struct Wrong {
    place: String,
    what: String,
}

fn wrong<T>(place: impl Into<String>, what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { place: place.into(), what: what.into() })
}

/// Points by the numbers that tetrahedra name them by.
#[derive(Default)]
struct Raw {
    points: BTreeMap<u64, DVec3>,
    tets: Vec<[u64; 4]>,
    /// Elements of other kinds that were left out.
    others: usize,
}

/// More than this many points or elements are a damaged header.
const MOST: u64 = 50_000_000;

fn finish(path: &Path, raw: Result<Raw, Wrong>) -> Result<(Cage, Vec<Note>), FileError> {
    let fail = |wrong: Wrong| {
        FileError::new("file/tetrahedra", path, wrong.what, "write the mesh again, as tetrahedra of four nodes")
            .at(wrong.place)
    };
    let raw = raw.map_err(fail)?;
    if raw.tets.is_empty() {
        return Err(fail(Wrong { place: "elements".into(), what: "there is no tetrahedron".into() }));
    }
    if let Some((number, _)) = raw.points.iter().find(|(_, p)| p.length().is_nan() || p.length() >= MOST_LENGTH) {
        let what = format!("it is more than {MOST_LENGTH} m away, or its place is not finite");
        return Err(FileError::new("file/number", path, what, "write the mesh in metres").at(format!("node {number}")));
    }
    let mut place = BTreeMap::new();
    let mut cage = Cage::default();
    for (&number, &point) in &raw.points {
        place.insert(number, cage.nodes.len() as u32);
        cage.nodes.push(point);
    }
    for (t, tet) in raw.tets.iter().enumerate() {
        let mut nodes = [0; 4];
        for (to, number) in nodes.iter_mut().zip(tet) {
            let Some(&node) = place.get(number) else {
                return Err(fail(Wrong {
                    place: format!("tetrahedron {t}"),
                    what: format!("there is no node {number}"),
                }));
            };
            *to = node;
        }
        cage.tets.push(nodes);
    }
    let mut notes = Vec::new();
    let mut note = |code: &'static str, count: usize, text: &str| {
        if count > 0 {
            notes.push(Note { code, part: "mesh".into(), text: format!("{count} {text}") });
        }
    };
    note("import/left-out", raw.others, "elements that are not tetrahedra were left out");
    let turned = cage.tets.iter().filter(|&&tet| cage.volume(tet) < 0.0).count();
    note("import/turned", turned, "tetrahedra of negative volume were turned round");
    cage.orient();
    let points = cage.nodes.len();
    cage.drop_unused();
    note("import/left-out", points - cage.nodes.len(), "nodes that no tetrahedron uses were left out");
    match cage.fault() {
        None => Ok((cage, notes)),
        Some(what) => Err(fail(Wrong { place: "mesh".into(), what })),
    }
}

/// Words of a text, with the line they stand in; what follows `comment` in a line is no word.
struct Words<'a> {
    words: Vec<(usize, &'a str)>,
    next: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str, comment: Option<char>) -> Words<'a> {
        let mut words = Vec::new();
        for (k, line) in text.lines().enumerate() {
            let line = comment.and_then(|c| line.split_once(c)).map_or(line, |(before, _)| before);
            words.extend(line.split_whitespace().map(|word| (k + 1, word)));
        }
        Words { words, next: 0 }
    }

    fn place(&self) -> String {
        match self.words.get(self.next.min(self.words.len().saturating_sub(1))) {
            Some((line, _)) => format!("line {line}"),
            None => "an empty file".into(),
        }
    }

    fn word(&mut self) -> Result<&'a str, Wrong> {
        match self.words.get(self.next) {
            Some((_, word)) => {
                self.next += 1;
                Ok(word)
            }
            None => wrong("the end", "the file ends too early"),
        }
    }

    fn parse<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Wrong> {
        let place = self.place();
        let word = self.word()?;
        word.parse().or_else(|_| wrong(place, format!("\"{word}\" is not {what}")))
    }

    fn number(&mut self) -> Result<u64, Wrong> {
        self.parse("a whole number")
    }

    fn count(&mut self) -> Result<u64, Wrong> {
        let (place, n) = (self.place(), self.number()?);
        if n > MOST { wrong(place, format!("{n} are too many")) } else { Ok(n) }
    }

    fn point(&mut self) -> Result<DVec3, Wrong> {
        let place = self.place();
        let p = DVec3::new(self.parse("a number")?, self.parse("a number")?, self.parse("a number")?);
        if p.is_finite() { Ok(p) } else { wrong(place, "a point is not finite") }
    }

    fn skip(&mut self, count: u64) -> Result<(), Wrong> {
        (0..count).try_for_each(|_| self.word().map(|_| ()))
    }

    /// Goes on behind a word.
    fn find(&mut self, wanted: &str) -> Result<(), Wrong> {
        while let Some((_, word)) = self.words.get(self.next) {
            self.next += 1;
            if word.eq_ignore_ascii_case(wanted) {
                return Ok(());
            }
        }
        wrong("the end", format!("there is no {wanted}"))
    }
}

fn text(bytes: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(bytes).or_else(|e| wrong(format!("byte {}", e.valid_up_to()), "it is not text"))
}

fn tet(words: &mut Words<'_>) -> Result<[u64; 4], Wrong> {
    Ok([words.number()?, words.number()?, words.number()?, words.number()?])
}

/// `*VERTICES`, `*ELEMENTS` `TET`.
fn veg(bytes: &[u8]) -> Result<Raw, Wrong> {
    let mut words = Words::new(text(bytes)?, Some('#'));
    let mut raw = Raw::default();
    words.find("*VERTICES")?;
    let n = words.count()?;
    words.skip(3)?; // dimension, attributes, markers
    for _ in 0..n {
        raw.points.insert(words.number()?, words.point()?);
    }
    words.find("*ELEMENTS")?;
    let (place, kind) = (words.place(), words.word()?);
    if !(kind.eq_ignore_ascii_case("TET") || kind.eq_ignore_ascii_case("TETS")) {
        return wrong(place, format!("its elements are {kind}, not TET"));
    }
    let n = words.count()?;
    words.skip(2)?; // nodes of an element, attributes
    for _ in 0..n {
        words.number()?;
        raw.tets.push(tet(&mut words)?);
    }
    Ok(raw)
}

/// Legacy VTK as text: POINTS, CELLS, CELL_TYPES. The size of CELLS is not asked: some writers get it wrong.
fn vtk(bytes: &[u8]) -> Result<Raw, Wrong> {
    let all = text(bytes)?;
    if all.lines().nth(2).is_none_or(|line| line.trim() != "ASCII") {
        return wrong("line 3", "it is not an ASCII file");
    }
    let mut words = Words::new(all, None);
    let mut raw = Raw::default();
    words.find("POINTS")?;
    let n = words.count()?;
    words.skip(1)?; // float or double
    for k in 0..n {
        raw.points.insert(k, words.point()?);
    }
    words.find("CELLS")?;
    let n = words.count()?;
    words.skip(1)?;
    let mut cells = Vec::new();
    for _ in 0..n {
        let size = words.count()?;
        if size == 4 {
            cells.push(Some(tet(&mut words)?));
        } else {
            words.skip(size)?;
            cells.push(None);
        }
    }
    words.find("CELL_TYPES")?;
    words.count()?;
    for cell in cells {
        match (words.number()?, cell) {
            (10, Some(tet)) => raw.tets.push(tet),
            _ => raw.others += 1,
        }
    }
    Ok(raw)
}

/// TetGen: a line a node (number, point, attributes), a line an element (number, four nodes or more, attributes).
fn tetgen(node: &[u8], ele: &[u8]) -> Result<Raw, Wrong> {
    let mut raw = Raw::default();
    let lines = |text: &str| -> Vec<(usize, Vec<String>)> {
        let words = |line: &str| line.split('#').next().unwrap_or("").split_whitespace().map(str::to_owned).collect();
        let all = text.lines().enumerate().map(|(k, line)| (k + 1, words(line)));
        all.filter(|(_, words): &(usize, Vec<String>)| !words.is_empty()).collect()
    };
    let parse = |file: &str, line: usize, words: &[String], k: usize| match words.get(k).map(|w| w.parse::<f64>()) {
        Some(Ok(x)) if x.is_finite() => Ok(x),
        _ => wrong(format!("line {line} of the .{file} file"), format!("number {} is missing or none", k + 1)),
    };
    for (line, words) in lines(text(node)?).iter().skip(1) {
        let x = |k: usize| parse("node", *line, words, k);
        raw.points.insert(x(0)? as u64, DVec3::new(x(1)?, x(2)?, x(3)?));
    }
    for (line, words) in lines(text(ele)?).iter().skip(1) {
        let n = |k: usize| parse("ele", *line, words, k).map(|x| x as u64);
        raw.tets.push([n(1)?, n(2)?, n(3)?, n(4)?]);
    }
    Ok(raw)
}

/// Nodes of a Gmsh element by its type; 0 for types that are not known.
fn nodes_of(kind: u64) -> u64 {
    const NODES: [u64; 20] = [0, 2, 3, 4, 4, 8, 6, 5, 3, 6, 9, 10, 27, 18, 14, 1, 8, 20, 15, 13];
    NODES.get(kind as usize).copied().unwrap_or(0)
}

const TETRAHEDRON: u64 = 4;

fn gmsh(bytes: &[u8]) -> Result<Raw, Wrong> {
    let at = |name: &str| -> Option<usize> {
        let found = bytes.windows(name.len()).position(|window| window == name.as_bytes())?;
        // behind the end of its line
        bytes[found..].iter().position(|&b| b == b'\n').map(|k| found + k + 1)
    };
    let section = |name: &str| at(name).map_or_else(|| wrong("the file", format!("there is no {name}")), Ok);
    let head = section("$MeshFormat")?;
    let line: &[u8] = bytes[head..].split(|&b| b == b'\n').next().unwrap_or_default();
    let mut words = Words::new(text(line)?, None);
    let version: f64 = words.parse("a version")?;
    let is_binary = words.number()? == 1;
    if words.number()? != 8 {
        return wrong("$MeshFormat", "its numbers are not of 8 bytes");
    }
    let (nodes, elements) = (section("$Nodes")?, section("$Elements")?);
    let is_new = match version {
        v if (2.0..3.0).contains(&v) => false,
        v if (4.1..5.0).contains(&v) => true,
        v => return wrong("$MeshFormat", format!("version {v} is not read, 2.2 and 4.1 are")),
    };
    match (is_binary, is_new) {
        (false, false) => gmsh_2_text(bytes, nodes, elements),
        (false, true) => gmsh_4_text(bytes, nodes, elements),
        (true, is_new) => {
            // the number 1 behind the line of the format tells the order of bytes
            let one = Binary { bytes, at: head + line.len() + 1 }.i32()?;
            if one != 1 {
                return wrong("$MeshFormat", "its bytes are in another order: write it on a little-endian machine");
            }
            if is_new { gmsh_4_binary(bytes, nodes, elements) } else { gmsh_2_binary(bytes, nodes, elements) }
        }
    }
}

/// The words from a place up to the end of the section.
fn words_from(bytes: &[u8], from: usize) -> Result<Words<'_>, Wrong> {
    let end = bytes[from..].iter().position(|&b| b == b'$').map_or(bytes.len(), |k| from + k);
    Ok(Words::new(text(&bytes[from..end])?, None))
}

fn gmsh_2_text(bytes: &[u8], nodes: usize, elements: usize) -> Result<Raw, Wrong> {
    let mut raw = Raw::default();
    let mut words = words_from(bytes, nodes)?;
    for _ in 0..words.count()? {
        raw.points.insert(words.number()?, words.point()?);
    }
    let mut words = words_from(bytes, elements)?;
    for _ in 0..words.count()? {
        words.number()?;
        let kind = words.number()?;
        let tags = words.count()?;
        words.skip(tags)?;
        element(&mut raw, kind, &mut words)?;
    }
    Ok(raw)
}

/// The nodes of an element of some kind.
fn element(raw: &mut Raw, kind: u64, words: &mut Words<'_>) -> Result<(), Wrong> {
    match (kind, nodes_of(kind)) {
        (TETRAHEDRON, _) => raw.tets.push(tet(words)?),
        (_, 0) => return wrong(words.place(), format!("elements of type {kind} are not known")),
        (_, n) => {
            words.skip(n)?;
            raw.others += 1;
        }
    }
    Ok(())
}

fn gmsh_4_text(bytes: &[u8], nodes: usize, elements: usize) -> Result<Raw, Wrong> {
    let mut raw = Raw::default();
    let mut words = words_from(bytes, nodes)?;
    let blocks = words.count()?;
    words.skip(3)?;
    for _ in 0..blocks {
        words.skip(3)?;
        let n = words.count()?;
        let tags: Vec<u64> = (0..n).map(|_| words.number()).collect::<Result<_, _>>()?;
        for tag in tags {
            raw.points.insert(tag, words.point()?);
        }
    }
    let mut words = words_from(bytes, elements)?;
    let blocks = words.count()?;
    words.skip(3)?;
    for _ in 0..blocks {
        words.skip(2)?;
        let kind = words.number()?;
        for _ in 0..words.count()? {
            words.number()?;
            element(&mut raw, kind, &mut words)?;
        }
    }
    Ok(raw)
}

/// Little-endian numbers.
struct Binary<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Binary<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let part = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        match part {
            Some(part) => {
                self.at += N;
                Ok(*part)
            }
            None => wrong(format!("byte {}", self.at), "the file ends too early"),
        }
    }

    fn i32(&mut self) -> Result<i32, Wrong> {
        Ok(i32::from_le_bytes(self.take()?))
    }

    fn index(&mut self) -> Result<u64, Wrong> {
        let n = self.i32()?;
        u64::try_from(n).or_else(|_| wrong(format!("byte {}", self.at), format!("{n} is negative")))
    }

    fn u64(&mut self) -> Result<u64, Wrong> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn count(&mut self) -> Result<u64, Wrong> {
        let n = self.u64()?;
        if n > MOST { wrong(format!("byte {}", self.at), format!("{n} are too many")) } else { Ok(n) }
    }

    fn point(&mut self) -> Result<DVec3, Wrong> {
        let mut x = || Ok::<f64, Wrong>(f64::from_le_bytes(self.take()?));
        let p = DVec3::new(x()?, x()?, x()?);
        if p.is_finite() { Ok(p) } else { wrong(format!("byte {}", self.at), "a point is not finite") }
    }

    /// A count written as a line of text.
    fn line_count(&mut self) -> Result<u64, Wrong> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let line = rest.split(|&b| b == b'\n').next().unwrap_or_default();
        self.at += line.len() + 1;
        Words::new(text(line)?, None).count()
    }
}

fn gmsh_2_binary(bytes: &[u8], nodes: usize, elements: usize) -> Result<Raw, Wrong> {
    let mut raw = Raw::default();
    let mut from = Binary { bytes, at: nodes };
    for _ in 0..from.line_count()? {
        raw.points.insert(from.index()?, from.point()?);
    }
    let mut from = Binary { bytes, at: elements };
    let count = from.line_count()?;
    let mut read = 0;
    while read < count {
        let (kind, n, tags) = (from.index()?, from.index()?, from.index()?);
        let size = nodes_of(kind);
        if size == 0 || n == 0 {
            return wrong(format!("byte {}", from.at), format!("{n} elements of type {kind} are not known"));
        }
        for _ in 0..n {
            for _ in 0..=tags {
                from.i32()?; // its number, then its tags
            }
            if kind == TETRAHEDRON {
                raw.tets.push([from.index()?, from.index()?, from.index()?, from.index()?]);
            } else {
                (0..size).try_for_each(|_| from.i32().map(|_| ()))?;
                raw.others += 1;
            }
        }
        read += n;
    }
    Ok(raw)
}

fn gmsh_4_binary(bytes: &[u8], nodes: usize, elements: usize) -> Result<Raw, Wrong> {
    let mut raw = Raw::default();
    let mut from = Binary { bytes, at: nodes };
    let blocks = from.count()?;
    for _ in 0..3 {
        from.u64()?;
    }
    for _ in 0..blocks {
        for _ in 0..3 {
            from.i32()?;
        }
        let n = from.count()?;
        let tags: Vec<u64> = (0..n).map(|_| from.u64()).collect::<Result<_, _>>()?;
        for tag in tags {
            raw.points.insert(tag, from.point()?);
        }
    }
    let mut from = Binary { bytes, at: elements };
    let blocks = from.count()?;
    for _ in 0..3 {
        from.u64()?;
    }
    for _ in 0..blocks {
        let (_, _, kind) = (from.i32()?, from.i32()?, from.index()?);
        let (n, size) = (from.count()?, nodes_of(kind));
        if size == 0 {
            return wrong(format!("byte {}", from.at), format!("elements of type {kind} are not known"));
        }
        for _ in 0..n {
            from.u64()?;
            if kind == TETRAHEDRON {
                raw.tets.push([from.u64()?, from.u64()?, from.u64()?, from.u64()?]);
            } else {
                (0..size).try_for_each(|_| from.u64().map(|_| ()))?;
                raw.others += 1;
            }
        }
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cage(raw: Result<Raw, Wrong>) -> Result<Cage, String> {
        finish(Path::new("mesh"), raw).map(|(cage, _)| cage).map_err(|e| e.to_string())
    }

    const TWO: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n9 1 1 1\n$EndNodes\n\
                       $Elements\n3\n1 2 2 0 1 1 2 3\n2 4 2 0 1 1 2 3 4\n3 4 0 2 9 3 4\n$EndElements\n";

    #[test]
    fn text_meshes_of_every_kind_are_the_same() {
        let expected = cage(gmsh(TWO.as_bytes())).unwrap();
        assert_eq!((expected.nodes.len(), expected.tets.len()), (5, 2));
        assert!(expected.tets.iter().all(|&t| expected.volume(t) > 0.0));
        let four = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 5 1 9\n3 1 0 5\n1\n2\n3\n4\n9\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\n$EndNodes\n\
                    $Elements\n2 3 1 3\n2 1 2 1\n1 1 2 3\n3 1 4 2\n2 1 2 3 4\n3 2 9 3 4\n$EndElements\n";
        let veg_text = "# a comment\n*VERTICES\n5 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1 1 1\n*ELEMENTS\nTET\n2 4 0\n1 1 2 3 4\n2 2 5 3 4\n";
        let vtk_text = "# vtk\nname\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 5 double\n0 0 0 1 0 0 0 1 0 0 0 1 1 1 1\nCELLS 3 99\n\
                        4 0 1 2 3\n4 1 4 2 3\n3 0 1 2\nCELL_TYPES 3\n10\n10\n5\n";
        let (node, ele) =
            ("5 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1 1 1\n", "2 4 0\n1 1 2 3 4\n2 2 5 3 4 # a\n");
        for raw in [
            gmsh(four.as_bytes()),
            veg(veg_text.as_bytes()),
            vtk(vtk_text.as_bytes()),
            tetgen(node.as_bytes(), ele.as_bytes()),
        ] {
            assert_eq!(cage(raw).unwrap(), expected);
        }
    }

    #[test]
    fn a_mesh_that_reaches_too_far_is_refused() {
        let far = TWO.replace("9 1 1 1", "9 1 2e6 1");
        assert!(cage(gmsh(far.as_bytes())).unwrap_err().contains("more than 1000000 m away"));
    }

    #[test]
    fn binary_meshes_are_the_same() {
        let expected = cage(gmsh(TWO.as_bytes())).unwrap();
        let points =
            [(1, [0.0, 0.0, 0.0]), (2, [1.0, 0.0, 0.0]), (3, [0.0, 1.0, 0.0]), (4, [0.0, 0.0, 1.0]), (9, [1.0f64; 3])];
        let mut two = b"$MeshFormat\n2.2 1 8\n\x01\0\0\0\n$EndMeshFormat\n$Nodes\n5\n".to_vec();
        for (number, p) in points {
            two.extend(i32::to_le_bytes(number));
            p.iter().for_each(|x| two.extend(x.to_le_bytes()));
        }
        two.extend(b"\n$EndNodes\n$Elements\n2\n");
        for n in [4, 2, 1, 1, 7, 1, 2, 3, 4, 2, 7, 2, 9, 3, 4] {
            two.extend(i32::to_le_bytes(n));
        }
        two.extend(b"\n$EndElements\n");
        assert_eq!(cage(gmsh(&two)).unwrap(), expected);
        let mut four = b"$MeshFormat\n4.1 1 8\n\x01\0\0\0\n$EndMeshFormat\n$Nodes\n".to_vec();
        let longs = |out: &mut Vec<u8>, all: &[u64]| all.iter().for_each(|n| out.extend(n.to_le_bytes()));
        let ints = |out: &mut Vec<u8>, all: &[i32]| all.iter().for_each(|n| out.extend(n.to_le_bytes()));
        longs(&mut four, &[1, 5, 1, 9]);
        ints(&mut four, &[3, 1, 0]);
        longs(&mut four, &[5, 1, 2, 3, 4, 9]);
        points.iter().flat_map(|(_, p)| p).for_each(|x| four.extend(x.to_le_bytes()));
        four.extend(b"\n$EndNodes\n$Elements\n");
        longs(&mut four, &[1, 2, 1, 2]);
        ints(&mut four, &[3, 1, 4]);
        longs(&mut four, &[2, 1, 1, 2, 3, 4, 2, 2, 9, 3, 4]);
        four.extend(b"\n$EndElements\n");
        assert_eq!(cage(gmsh(&four)).unwrap(), expected);
    }

    #[test]
    fn damaged_files_are_refused_with_their_place() {
        for (from, to, says) in [
            ("9 1 1 1\n", "9 1 x 1\n", "not a number"),
            ("2 9 3 4", "2 8 3 4", "no node 8"),
            ("9 1 1 1\n", "", "ends too early"),
            ("$Elements", "$Other", "no $Elements"),
            ("2.2 0 8", "3.0 0 8", "version 3"),
            ("1 2 3 4\n", "1 1 1 1\n", "flat"),
            ("$Elements\n3", "$Elements\n99999999999", "too many"),
        ] {
            let error = cage(gmsh(TWO.replace(from, to).as_bytes())).unwrap_err();
            assert!(error.contains(says), "{to}: {error}");
        }
        let cubes = "*VERTICES\n1 3 0 0\n1 0 0 0\n*ELEMENTS\nCUBIC\n1 8 0\n";
        assert!(cage(veg(cubes.as_bytes())).unwrap_err().contains("CUBIC"));
        // Cut anywhere, nothing panics.
        for end in 0..TWO.len() {
            let _ = cage(gmsh(&TWO.as_bytes()[..end]));
        }
    }
}
