//! Which vertices make triangles: a plain list of them, or the order in which triangles are joined (Edgebreaker, standard and by valences).

use super::bits::{Bits, Broken, Bytes, LikelyBits, numbers};
use super::corners::{Corners, NONE, next, previous};
use std::collections::BTreeMap;

/// Triangles, and what attributes need to know of them.
#[derive(Debug, Default)]
pub(super) struct Connectivity {
    pub(super) points: usize,
    /// By face: its points.
    pub(super) faces: Vec<[u32; 3]>,
    /// Of positions; none where triangles are a plain list.
    pub(super) corners: Option<Corners>,
    /// Of other attributes that have seams of their own.
    pub(super) cut: Vec<Corners>,
}

/// Triangles as a list.
pub(super) fn list(bytes: &mut Bytes<'_>, most: usize) -> Result<Connectivity, Broken> {
    let (faces, points) = (bytes.count()?, bytes.count()?);
    check_counts(faces, points, most)?;
    let indices: Vec<u32> = match bytes.u8()? {
        0 => {
            let mut last = 0u32;
            let deltas = numbers(bytes, 3 * faces, 1)?.into_iter();
            let from = |code: u32| if code & 1 == 1 { (code >> 1).wrapping_neg() } else { code >> 1 };
            deltas
                .map(|code| {
                    last = last.wrapping_add(from(code));
                    last
                })
                .collect()
        }
        1 => {
            let one = |bytes: &mut Bytes<'_>| match points {
                0..256 => bytes.u8().map(u32::from),
                256..65536 => bytes.u16().map(u32::from),
                65536..0x20_0000 => bytes.count().map(|n| n as u32),
                _ => bytes.u32(),
            };
            // Each takes a byte at least.
            if 3 * faces > bytes.left.len() {
                return Err(super::bits::CUT_OFF);
            }
            (0..3 * faces).map(|_| one(bytes)).collect::<Result<_, _>>()?
        }
        _ => return Err("its triangles are listed in a way that does not exist"),
    };
    if indices.iter().any(|i| *i as usize >= points) {
        return Err("a triangle names a point that does not exist");
    }
    let faces = indices.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect();
    Ok(Connectivity { points, faces, ..Connectivity::default() })
}

fn check_counts(faces: usize, points: usize, most: usize) -> Result<(), Broken> {
    if faces > most || points > most {
        return Err("it has more triangles or points than bytes allow");
    }
    Ok(())
}

/// How the next triangle is joined to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    /// It closes a vertex.
    C,
    /// It joins two ends.
    S,
    L,
    R,
    /// It stands alone.
    E,
}

/// Where symbols come from.
enum Order<'a> {
    Plain(Bits<'a>),
    /// A list for each valence of the vertex ahead, read from its end.
    ByValence {
        lists: Vec<Vec<u32>>,
        valences: Vec<u32>,
        context: Option<usize>,
        last: Symbol,
    },
}

impl Order<'_> {
    fn next(&mut self) -> Result<Symbol, Broken> {
        match self {
            Order::Plain(bits) => {
                if bits.take(1)? == 0 {
                    return Ok(Symbol::C);
                }
                Ok([Symbol::S, Symbol::L, Symbol::R, Symbol::E][bits.take(2)? as usize])
            }
            Order::ByValence { lists, context, last, .. } => {
                *last = match context {
                    None => Symbol::E,
                    Some(context) => {
                        let symbol = lists[*context].pop().ok_or("a list of symbols is too short")?;
                        let all = [Symbol::C, Symbol::S, Symbol::L, Symbol::R, Symbol::E];
                        *all.get(symbol as usize).ok_or("there is no such symbol")?
                    }
                };
                Ok(*last)
            }
        }
    }

    /// Tells of the corner from which the next triangle is joined.
    fn reached(&mut self, corners: &Corners, corner: u32) {
        let Order::ByValence { valences, context, last, .. } = self else { return };
        let (more_here, more_next, more_previous) = match last {
            Symbol::C | Symbol::S => (0, 1, 1),
            Symbol::R => (1, 1, 2),
            Symbol::L => (1, 2, 1),
            Symbol::E => (2, 2, 2),
        };
        let ahead = corners.vertex(next(corner)) as usize;
        valences[corners.vertex(corner) as usize] += more_here;
        valences[ahead] += more_next;
        valences[corners.vertex(previous(corner)) as usize] += more_previous;
        *context = Some(valences[ahead].clamp(2, 7) as usize - 2);
    }

    fn merge(&mut self, into: u32, from: u32) {
        if let Order::ByValence { valences, .. } = self {
            valences[into as usize] = valences[into as usize].saturating_add(valences[from as usize]);
        }
    }
}

/// An edge that stays open until a later triangle joins two ends.
#[derive(Clone, Copy, Debug)]
struct Split {
    source: usize,
    split: usize,
    is_right: bool,
}

/// Triangles in the order in which they are joined.
pub(super) fn edgebreaker(bytes: &mut Bytes<'_>, most: usize) -> Result<Connectivity, Broken> {
    let kind = bytes.u8()?;
    let (vertices, faces) = (bytes.count()?, bytes.count()?);
    check_counts(faces, vertices, most)?;
    let attributes = usize::from(bytes.u8()?);
    let (symbols, split_symbols) = (bytes.count()?, bytes.count()?);
    if symbols > faces || split_symbols > symbols || faces > symbols + symbols / 3 {
        return Err("its counts of triangles and symbols do not agree");
    }
    if attributes * faces > most {
        return Err("it has more attributes than bytes allow");
    }
    let splits = splits(bytes, faces)?;
    let plain = if kind == 0 { bytes.part()? } else { &[] };
    let mut start_faces = LikelyBits::start(bytes)?;
    let mut seams = (0..attributes).map(|_| LikelyBits::start(bytes)).collect::<Result<Vec<_>, _>>()?;
    let most_vertices = vertices + split_symbols;
    let order = match kind {
        0 => Order::Plain(Bits::new(plain)),
        2 => {
            let mut lists = Vec::new();
            for _ in 2..=7 {
                let count = bytes.count()?;
                if count > faces {
                    return Err("a list of symbols is too long");
                }
                lists.push(numbers(bytes, count, 1)?);
            }
            Order::ByValence { lists, valences: vec![0; most_vertices], context: None, last: Symbol::E }
        }
        _ => return Err("its triangles are in an order that is not read"),
    };
    let mut build = Build {
        corners: Corners::new(faces),
        order,
        open: Vec::new(),
        waiting: BTreeMap::new(),
        splits,
        is_border: vec![true; most_vertices],
        isolated: Vec::new(),
        faces: 0,
    };
    for symbol in 0..symbols {
        build.symbol(symbol, symbols)?;
    }
    build.start_faces(&mut start_faces)?;
    if build.faces != faces {
        return Err("it has fewer triangles than it says");
    }
    let mut points = build.corners.leftmost.len();
    if attributes == 0 {
        points = build.remove_isolated()?;
    }
    let Build { corners, is_border, .. } = build;
    let named = |corner: &u32| (*corner as usize) < corners.leftmost.len();
    if !corners.vertex.iter().all(named) {
        return Err("a corner has no vertex");
    }
    let cut = cut(&corners, &mut seams)?;
    if cut.is_empty() {
        let faces = corners.vertex.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect();
        if corners.vertex.iter().any(|v| *v as usize >= points) {
            return Err("a corner has no vertex");
        }
        return Ok(Connectivity { points, faces, corners: Some(corners), cut });
    }
    let (points, of_corner) = merge_points(&corners, &cut, &is_border)?;
    let faces = of_corner.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect();
    Ok(Connectivity { points, faces, corners: Some(corners), cut })
}

fn splits(bytes: &mut Bytes<'_>, faces: usize) -> Result<Vec<Split>, Broken> {
    let count = bytes.count()?;
    if count > faces {
        return Err("it has more splits than triangles");
    }
    let (mut splits, mut last) = (Vec::new(), 0usize);
    for _ in 0..count {
        let source = last.checked_add(bytes.count()?).ok_or("a split lies too far")?;
        let split = source.checked_sub(bytes.count()?).ok_or("a split lies before the first symbol")?;
        splits.push(Split { source, split, is_right: false });
        last = source;
    }
    let mut bits = Bits::new(bytes.left);
    for split in &mut splits {
        split.is_right = bits.take(1)? == 1;
    }
    bytes.take(bits.used())?;
    Ok(splits)
}

/// Triangles while they are joined.
struct Build<'a> {
    corners: Corners,
    order: Order<'a>,
    /// Corners that face open edges: the last is where the next triangle goes.
    open: Vec<u32>,
    /// By symbol: an open edge that it will join.
    waiting: BTreeMap<usize, u32>,
    splits: Vec<Split>,
    /// By vertex.
    is_border: Vec<bool>,
    /// Vertices that were merged into others.
    isolated: Vec<u32>,
    faces: usize,
}

const NO_END: Broken = "a triangle is joined where nothing is open";

impl Build<'_> {
    fn face(&mut self) -> Result<u32, Broken> {
        if self.faces >= self.corners.faces() {
            return Err("it has more triangles than it says");
        }
        self.faces += 1;
        Ok(3 * (self.faces as u32 - 1))
    }

    fn add_vertex(&mut self, corner: u32) -> Result<u32, Broken> {
        let vertex = self.corners.leftmost.len();
        if vertex >= self.is_border.len() {
            return Err("it has more vertices than it says");
        }
        self.corners.leftmost.push(corner);
        Ok(vertex as u32)
    }

    fn set(&mut self, corner: u32, vertex: u32) {
        self.corners.vertex[corner as usize] = vertex;
    }

    fn set_leftmost(&mut self, vertex: u32, corner: u32) {
        self.corners.leftmost[vertex as usize] = corner;
    }

    /// The corner after the leftmost of a vertex: it faces the open edge to the left of it.
    fn beyond(&self, vertex: u32) -> Result<u32, Broken> {
        match self.corners.leftmost[vertex as usize] {
            NONE => Err("a vertex has no corner"),
            corner => Ok(next(corner)),
        }
    }

    fn check_open(&self, corners: &[u32]) -> Result<(), Broken> {
        let is_open = |corner: &u32| self.corners.across(*corner) == NONE;
        let distinct = (1..corners.len()).all(|k| !corners[..k].contains(&corners[k]));
        if distinct && corners.iter().all(is_open) { Ok(()) } else { Err("an edge has more than two triangles") }
    }

    fn symbol(&mut self, number: usize, symbols: usize) -> Result<(), Broken> {
        let symbol = self.order.next()?;
        let new = self.face()?;
        match symbol {
            Symbol::C => {
                let a = *self.open.last().ok_or(NO_END)?;
                let middle = self.corners.vertex(next(a));
                let b = self.beyond(middle)?;
                self.check_open(&[a, b])?;
                let (before, after) = (self.corners.vertex(previous(a)), self.corners.vertex(next(b)));
                if middle == before || middle == after {
                    return Err("a triangle has one vertex twice");
                }
                self.corners.join(a, new + 1);
                self.corners.join(b, new + 2);
                self.set(new, middle);
                self.set(new + 1, after);
                self.set(new + 2, before);
                self.set_leftmost(before, new + 2);
                self.is_border[middle as usize] = false;
            }
            Symbol::R | Symbol::L => {
                let a = *self.open.last().ok_or(NO_END)?;
                self.check_open(&[a])?;
                let (tip, left, right) =
                    if symbol == Symbol::R { (new + 2, new + 1, new) } else { (new + 1, new, new + 2) };
                self.corners.join(tip, a);
                let vertex = self.add_vertex(tip)?;
                self.set(tip, vertex);
                let before = self.corners.vertex(previous(a));
                self.set(right, before);
                self.set_leftmost(before, right);
                self.set(left, self.corners.vertex(next(a)));
            }
            Symbol::S => {
                let b = self.open.pop().ok_or(NO_END)?;
                self.open.extend(self.waiting.remove(&number));
                let a = *self.open.last().ok_or(NO_END)?;
                self.check_open(&[a, b])?;
                self.corners.join(a, new + 2);
                self.corners.join(b, new + 1);
                let kept = self.corners.vertex(previous(a));
                self.set(new, kept);
                self.set(new + 1, self.corners.vertex(next(a)));
                let before = self.corners.vertex(previous(b));
                self.set(new + 2, before);
                self.set_leftmost(before, new + 2);
                let first = next(b);
                let merged = self.corners.vertex(first);
                self.order.merge(kept, merged);
                self.set_leftmost(kept, self.corners.leftmost[merged as usize]);
                let mut corner = first;
                for _ in 0..=self.corners.vertex.len() {
                    self.set(corner, kept);
                    corner = self.corners.left(corner);
                    if corner == first {
                        return Err("a vertex that is joined to another is closed");
                    }
                    if corner == NONE {
                        break;
                    }
                }
                self.set_leftmost(merged, NONE);
                self.isolated.push(merged);
            }
            Symbol::E => {
                for corner in new..new + 3 {
                    let vertex = self.add_vertex(corner)?;
                    self.set(corner, vertex);
                }
                self.open.push(0);
            }
        }
        *self.open.last_mut().ok_or(NO_END)? = new;
        self.order.reached(&self.corners, new);
        if !matches!(symbol, Symbol::C | Symbol::S) {
            // Symbols were numbered from the other end.
            let own = symbols - number - 1;
            while let Some(&Split { source, split, is_right }) = self.splits.last() {
                if source > own {
                    return Err("a split was passed by");
                }
                if source != own {
                    break;
                }
                self.splits.pop();
                let at = if is_right { next(new) } else { previous(new) };
                self.waiting.insert((symbols - 1).checked_sub(split).ok_or("a split lies too far")?, at);
            }
        }
        Ok(())
    }

    /// The triangles with which each part began, which are joined last.
    fn start_faces(&mut self, is_inner: &mut LikelyBits<'_>) -> Result<(), Broken> {
        while let Some(a) = self.open.pop() {
            if !is_inner.next() {
                continue;
            }
            let after = self.corners.vertex(next(a));
            let b = self.beyond(after)?;
            let far = self.corners.vertex(next(b));
            let c = self.beyond(far)?;
            self.check_open(&[a, b, c])?;
            let before = self.corners.vertex(next(c));
            let new = self.face()?;
            for (k, (old, vertex)) in [(a, far), (b, before), (c, after)].into_iter().enumerate() {
                self.corners.join(new + k as u32, old);
                self.set(new + k as u32, vertex);
                self.is_border[vertex as usize] = false;
            }
        }
        Ok(())
    }

    /// The last vertices take the places of those that were merged into others; how many are left.
    fn remove_isolated(&mut self) -> Result<usize, Broken> {
        let mut count = self.corners.leftmost.len();
        for gone in std::mem::take(&mut self.isolated) {
            while count > 0 && self.corners.leftmost[count - 1] == NONE {
                count -= 1;
            }
            let last = (count as u32).checked_sub(1).ok_or("no vertex is left")?;
            if last < gone {
                continue;
            }
            let start = self.corners.leftmost[last as usize];
            let around: Vec<u32> = self.corners.around(start).collect();
            for corner in around {
                if self.corners.vertex(corner) != last {
                    return Err("a vertex has corners of another");
                }
                self.set(corner, gone);
            }
            self.set_leftmost(gone, start);
            self.set_leftmost(last, NONE);
            self.is_border[gone as usize] = std::mem::take(&mut self.is_border[last as usize]);
            count -= 1;
        }
        Ok(count)
    }
}

/// Reads the seams of each attribute, and cuts along them.
fn cut(corners: &Corners, seams: &mut [LikelyBits<'_>]) -> Result<Vec<Corners>, Broken> {
    let count = corners.vertex.len();
    let mut is_seam = vec![vec![false; count]; seams.len()];
    for corner in 0..count as u32 {
        // Of each face: the first corner, the next, the one before.
        let across = corners.across(corner);
        if across != NONE && across / 3 < corner / 3 {
            continue;
        }
        for (seams, is_seam) in seams.iter_mut().zip(&mut is_seam) {
            is_seam[corner as usize] = across == NONE || seams.next();
        }
    }
    is_seam.iter().map(|is_seam| corners.cut(is_seam)).collect()
}

/// Points: corners of one vertex without a seam of any attribute between them. Their count, and by corner its point.
fn merge_points(corners: &Corners, cut: &[Corners], is_border: &[bool]) -> Result<(usize, Vec<u32>), Broken> {
    let most = corners.vertex.len();
    let mut of_corner = vec![NONE; most];
    let mut points = 0;
    for (vertex, &leftmost) in corners.leftmost.iter().enumerate() {
        if leftmost == NONE {
            continue;
        }
        let mut first = leftmost;
        if !is_border[vertex] {
            // Begin behind a seam of any attribute.
            'attributes: for cut in cut {
                let own = cut.vertex(leftmost);
                let mut corner = leftmost;
                for _ in 0..most {
                    corner = corners.right(corner);
                    if corner == NONE {
                        return Err("an inner vertex is open");
                    }
                    if corner == leftmost {
                        break;
                    }
                    if cut.vertex(corner) != own {
                        first = corner;
                        break 'attributes;
                    }
                }
            }
        }
        let mut corner = first;
        of_corner[corner as usize] = points;
        points += 1;
        for _ in 0..most {
            let before = corner;
            corner = corners.right(corner);
            if corner == NONE || corner == first {
                break;
            }
            of_corner[corner as usize] = if cut.iter().any(|cut| cut.vertex(corner) != cut.vertex(before)) {
                points += 1;
                points - 1
            } else {
                of_corner[before as usize]
            };
        }
    }
    if of_corner.contains(&NONE) {
        return Err("a corner has no point");
    }
    Ok((points as usize, of_corner))
}
