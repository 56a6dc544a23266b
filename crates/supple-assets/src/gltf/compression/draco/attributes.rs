//! Values of points: the order in which they come, how each is predicted from those before it, and what is made of the numbers.

use super::Attribute;
use super::bits::{Broken, Bytes, CUT_OFF, LikelyBits, numbers};
use super::connectivity::Connectivity;
use super::corners::{Corners, NONE, next, previous};
use super::octahedron::Octahedron;

/// The order in which the values of a group of attributes come.
#[derive(Debug)]
struct Sequence {
    /// By value: a point that has it.
    points: Vec<u32>,
    /// By value: the corner where it was met; empty where triangles are a plain list.
    corners: Vec<u32>,
    /// By vertex of the corner table: its value.
    of_vertex: Vec<u32>,
    /// By point: its value.
    of_point: Vec<u32>,
    /// Which table: `None` is that of positions.
    cut: Option<usize>,
}

/// What a stream tells of an attribute.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// 0 position, 1 normal, 2 colour, 3 texture coordinates, 4 others.
    role: u8,
    kind: u8,
    components: usize,
    id: u32,
    /// 0 as it stands, 1 integers, 2 quantised, 3 normals.
    coding: u8,
}

/// Integers before they are turned into values.
#[derive(Debug)]
struct Portable {
    values: Vec<i32>,
    components: usize,
}

/// Positions as integers, for predictions from the shape of the mesh.
struct Positions {
    values: Vec<i32>,
    of_point: Vec<u32>,
}

impl Positions {
    fn at(&self, point: u32) -> [i64; 3] {
        let at = 3 * self.of_point[point as usize] as usize;
        std::array::from_fn(|k| i64::from(self.values[at + k]))
    }
}

/// Reads all attributes. `most`: how many numbers there may be.
pub(super) fn read(bytes: &mut Bytes<'_>, mesh: &Connectivity, most: usize) -> Result<Vec<Attribute>, Broken> {
    let groups = usize::from(bytes.u8()?);
    let mut sequences = Vec::new();
    for _ in 0..groups {
        sequences.push(match &mesh.corners {
            Some(corners) => ordered(bytes, mesh, corners)?,
            None => listed(mesh),
        });
    }
    let mut told = Vec::new();
    for _ in 0..groups {
        told.push(descriptions(bytes)?);
    }
    let numbers: usize = told.iter().flatten().map(|told| told.components * mesh.points).sum();
    if numbers > most {
        return Err("it has more attributes than bytes allow");
    }
    let mut positions = None;
    let mut attributes = Vec::new();
    for (sequence, told) in sequences.iter().zip(&told) {
        let mut portable = Vec::new();
        for told in told {
            let read = one(bytes, mesh, sequence, told, positions.as_ref())?;
            if let Ok(integers) = &read
                && (told.role, integers.components) == (0, 3)
            {
                positions = Some(Positions { values: integers.values.clone(), of_point: sequence.of_point.clone() });
            }
            portable.push(read);
        }
        for (told, portable) in told.iter().zip(portable) {
            let values = match portable {
                Ok(integers) => transformed(bytes, told, &integers)?,
                Err(values) => values,
            };
            let of_point = sequence.of_point.clone();
            attributes.push(Attribute { id: told.id, components: told.components, values, of_point });
        }
    }
    Ok(attributes)
}

fn listed(mesh: &Connectivity) -> Sequence {
    let points: Vec<u32> = (0..mesh.points as u32).collect();
    Sequence { of_point: points.clone(), points, corners: Vec::new(), of_vertex: Vec::new(), cut: None }
}

fn ordered(bytes: &mut Bytes<'_>, mesh: &Connectivity, corners: &Corners) -> Result<Sequence, Broken> {
    let (table, by_corner, method) = (bytes.i8()?, bytes.u8()?, bytes.u8()?);
    let cut = usize::try_from(table).ok();
    if cut.is_some_and(|cut| cut >= mesh.cut.len()) {
        return Err("an attribute belongs to a table that does not exist");
    }
    let used = match (by_corner, cut) {
        (0, _) => None,
        (1, Some(cut)) => Some(cut),
        _ => return Err("an attribute of corners belongs to no table"),
    };
    let of_use = used.map_or(corners, |cut| &mesh.cut[cut]);
    let mut walk = Walk {
        table: of_use,
        faces: &mesh.faces,
        seen_faces: vec![false; of_use.faces()],
        points: Vec::new(),
        corners: Vec::new(),
        of_vertex: vec![NONE; of_use.leftmost.len()],
    };
    match (method, used) {
        (0, _) => walk.depth_first(),
        (1, None) => walk.by_degree()?,
        _ => return Err("its points come in an order that does not exist"),
    }
    let Walk { points, corners, of_vertex, .. } = walk;
    let mut of_point = vec![NONE; mesh.points];
    for (face, points) in mesh.faces.iter().enumerate() {
        for (k, &point) in points.iter().enumerate() {
            let value = of_vertex[of_use.vertex(3 * face as u32 + k as u32) as usize];
            if value == NONE {
                return Err("a vertex is never reached");
            }
            of_point[point as usize] = value;
        }
    }
    // A point of no triangle has the first value.
    of_point.iter_mut().filter(|value| **value == NONE).for_each(|value| *value = 0);
    Ok(Sequence { points, corners, of_vertex, of_point, cut: used })
}

/// A walk over all triangles that meets each vertex once.
struct Walk<'m> {
    table: &'m Corners,
    faces: &'m [[u32; 3]],
    seen_faces: Vec<bool>,
    points: Vec<u32>,
    corners: Vec<u32>,
    of_vertex: Vec<u32>,
}

impl Walk<'_> {
    fn is_seen(&self, corner: u32) -> bool {
        corner == NONE || self.seen_faces[corner as usize / 3]
    }

    fn meet(&mut self, corner: u32) -> bool {
        let vertex = self.table.vertex(corner) as usize;
        if self.of_vertex[vertex] != NONE {
            return false;
        }
        self.of_vertex[vertex] = self.points.len() as u32;
        self.points.push(self.faces[corner as usize / 3][corner as usize % 3]);
        self.corners.push(corner);
        true
    }

    fn depth_first(&mut self) {
        let mut stack = Vec::new();
        for face in 0..self.faces.len() as u32 {
            let start = 3 * face;
            if self.is_seen(start) {
                continue;
            }
            stack.push(start);
            self.meet(next(start));
            self.meet(previous(start));
            while let Some(mut corner) = stack.pop() {
                while !self.is_seen(corner) {
                    self.seen_faces[corner as usize / 3] = true;
                    let (right, left) = (self.table.across(next(corner)), self.table.across(previous(corner)));
                    if self.meet(corner) && !self.table.is_at_border(self.table.vertex(corner)) {
                        corner = right;
                        continue;
                    }
                    match (self.is_seen(right), self.is_seen(left)) {
                        (true, true) => break,
                        (true, false) => corner = left,
                        (false, true) => corner = right,
                        (false, false) => {
                            stack.push(left);
                            corner = right;
                        }
                    }
                }
            }
        }
    }

    fn by_degree(&mut self) -> Result<(), Broken> {
        let mut stacks: [Vec<u32>; 3] = Default::default();
        let mut degrees = vec![0u32; self.table.leftmost.len()];
        for face in 0..self.faces.len() as u32 {
            let start = 3 * face;
            stacks[0].push(start);
            let mut best = 0;
            self.meet(next(start));
            self.meet(previous(start));
            self.meet(start);
            while let Some(priority) = (best..3).find(|k| !stacks[*k].is_empty()) {
                best = priority;
                let mut corner = stacks[priority].pop().ok_or(CUT_OFF)?;
                while !self.is_seen(corner) {
                    self.seen_faces[corner as usize / 3] = true;
                    self.meet(corner);
                    let (right, left) = (self.table.across(next(corner)), self.table.across(previous(corner)));
                    let (right_seen, left_seen) = (self.is_seen(right), self.is_seen(left));
                    if !left_seen {
                        let priority = self.priority(left, &mut degrees);
                        if right_seen && priority <= best {
                            corner = left;
                            continue;
                        }
                        stacks[priority].push(left);
                        best = best.min(priority);
                    }
                    if !right_seen {
                        let priority = self.priority(right, &mut degrees);
                        if priority <= best {
                            corner = right;
                            continue;
                        }
                        stacks[priority].push(right);
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// 0 where the vertex ahead was met; less the more often it was passed.
    fn priority(&self, corner: u32, degrees: &mut [u32]) -> usize {
        let vertex = self.table.vertex(corner) as usize;
        if self.of_vertex[vertex] != NONE {
            return 0;
        }
        degrees[vertex] += 1;
        if degrees[vertex] > 1 { 1 } else { 2 }
    }
}

fn descriptions(bytes: &mut Bytes<'_>) -> Result<Vec<Told>, Broken> {
    let count = bytes.count()?;
    // Five bytes at least for each.
    if count > bytes.left.len() / 5 {
        return Err(CUT_OFF);
    }
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let (role, kind, components, _normalised) = (bytes.u8()?, bytes.u8()?, bytes.u8()?, bytes.u8()?);
        let id = bytes.count()? as u32;
        if components == 0 {
            return Err("an attribute has no components");
        }
        all.push(Told { role, kind, components: usize::from(components), id, coding: 0 });
    }
    for told in &mut all {
        told.coding = bytes.u8()?;
    }
    Ok(all)
}

/// The numbers of one attribute: integers that are still to be turned into values, or the values themselves (as `Err`).
fn one(
    bytes: &mut Bytes<'_>,
    mesh: &Connectivity,
    sequence: &Sequence,
    told: &Told,
    positions: Option<&Positions>,
) -> Result<Result<Portable, Vec<f64>>, Broken> {
    let count = sequence.points.len();
    if told.coding == 0 {
        let values = (0..count * told.components).map(|_| plain(bytes, told.kind)).collect::<Result<_, _>>()?;
        return Ok(Err(values));
    }
    if told.coding == 3 && told.components != 3 {
        return Err("normals do not have three components");
    }
    let components = if told.coding == 3 { 2 } else { told.components };
    let scheme = bytes.i8()?;
    let transform = if scheme == -2 { None } else { Some(bytes.i8()?) };
    let is_signed = transform != Some(3);
    let symbols = if bytes.u8()? > 0 {
        numbers(bytes, count * components, components)?
    } else {
        let size = usize::from(bytes.u8()?);
        if size > 4 {
            return Err("an integer has more than four bytes");
        }
        let raw = bytes.take(size * count * components)?;
        let whole = |b: &[u8]| b.iter().rev().fold(0u32, |n, b| n << 8 | u32::from(*b));
        if size == 0 { vec![0; count * components] } else { raw.chunks_exact(size).map(whole).collect() }
    };
    let fold = |s: u32| if s & 1 == 1 { -((s >> 1) as i32) - 1 } else { (s >> 1) as i32 };
    let mut values: Vec<i32> = symbols.into_iter().map(|s| if is_signed { fold(s) } else { s as i32 }).collect();
    if let Some(transform) = transform {
        let of_use = match sequence.cut {
            Some(cut) => mesh.cut.get(cut),
            None => mesh.corners.as_ref(),
        };
        let predict = Predict { sequence, corners: of_use, positions, components };
        predict.undo(bytes, scheme, transform, &mut values)?;
    }
    Ok(Ok(Portable { values, components }))
}

/// A number as it stands.
fn plain(bytes: &mut Bytes<'_>, kind: u8) -> Result<f64, Broken> {
    Ok(match kind {
        1 => f64::from(bytes.i8()?),
        2 | 11 => f64::from(bytes.u8()?),
        3 => f64::from(bytes.u16()? as i16),
        4 => f64::from(bytes.u16()?),
        5 => f64::from(bytes.i32()?),
        6 => f64::from(bytes.u32()?),
        9 => f64::from(bytes.f32()?),
        _ => return Err("an attribute has numbers of a kind that is not read"),
    })
}

/// What is read from the stream after all integers of a group, and the values.
fn transformed(bytes: &mut Bytes<'_>, told: &Told, portable: &Portable) -> Result<Vec<f64>, Broken> {
    let Portable { values, components } = portable;
    match told.coding {
        1 => Ok(values.iter().map(|v| if told.kind == 6 { f64::from(*v as u32) } else { f64::from(*v) }).collect()),
        2 => {
            let least = (0..*components).map(|_| bytes.f32()).collect::<Result<Vec<f32>, _>>()?;
            let range = bytes.f32()?;
            let bits = bytes.u8()?;
            if !(1..=30).contains(&bits) || !range.is_finite() || !least.iter().all(|x| x.is_finite()) {
                return Err("an attribute is quantised in a way that is not possible");
            }
            let step = range / ((1u32 << bits) - 1) as f32;
            let value = |(k, v): (usize, &i32)| f64::from(*v as f32 * step + least[k % components]);
            Ok(values.iter().enumerate().map(value).collect())
        }
        3 => {
            let octahedron = Octahedron::new(bytes.u8()?)?;
            Ok(values.chunks_exact(2).flat_map(|v| octahedron.unit(v[0], v[1]).map(f64::from)).collect())
        }
        _ => Err("an attribute is coded in a way that does not exist"),
    }
}

/// What is common to all predictions.
struct Predict<'a> {
    sequence: &'a Sequence,
    corners: Option<&'a Corners>,
    positions: Option<&'a Positions>,
    components: usize,
}

/// How a prediction and its correction are one value.
enum Correct {
    /// Between these, round and round.
    Wrap {
        min: i32,
        max: i32,
    },
    Octahedron(Octahedron),
}

impl Correct {
    fn read(bytes: &mut Bytes<'_>, transform: i8) -> Result<Correct, Broken> {
        match transform {
            1 => {
                let (min, max) = (bytes.i32()?, bytes.i32()?);
                if min > max || i64::from(max) - i64::from(min) >= i64::from(i32::MAX) {
                    return Err("its values have an impossible range");
                }
                Ok(Correct::Wrap { min, max })
            }
            3 => {
                let (most, _centre) = (bytes.i32()?, bytes.i32()?);
                if most <= 0 || most % 2 == 0 {
                    return Err("normals have an impossible range");
                }
                Ok(Correct::Octahedron(Octahedron::new((32 - most.leading_zeros()) as u8)?))
            }
            _ => Err("its predictions are corrected in a way that is not read"),
        }
    }

    /// Puts the value in the place of its correction.
    fn apply(&self, predicted: &[i32], value: &mut [i32]) {
        match self {
            Correct::Wrap { min, max } => {
                let round = max.wrapping_sub(*min).wrapping_add(1);
                for (value, &predicted) in value.iter_mut().zip(predicted) {
                    let sum = predicted.clamp(*min, *max).wrapping_add(*value);
                    *value = if sum > *max {
                        sum.wrapping_sub(round)
                    } else if sum < *min {
                        sum.wrapping_add(round)
                    } else {
                        sum
                    };
                }
            }
            Correct::Octahedron(octahedron) => {
                if let ([a, b], [x, y]) = (predicted, value) {
                    [*x, *y] = octahedron.corrected([*a, *b], [*x, *y]);
                }
            }
        }
    }
}

impl Predict<'_> {
    fn undo(&self, bytes: &mut Bytes<'_>, scheme: i8, transform: i8, values: &mut [i32]) -> Result<(), Broken> {
        let shape = self.corners.filter(|_| !self.sequence.corners.is_empty());
        if transform == 3 && self.components != 2 {
            return Err("normals are predicted from other values");
        }
        match (scheme, shape) {
            (1, Some(corners)) if transform == 1 => {
                let correct = Correct::read(bytes, transform)?;
                self.parallelogram(corners, &correct, values);
            }
            (4, Some(corners)) if transform == 1 => {
                let mut is_crease = Vec::new();
                for _ in 0..4 {
                    let count = bytes.count()?;
                    if count > corners.vertex.len() {
                        return Err("it has more creases than corners");
                    }
                    let mut bits = if count > 0 { LikelyBits::start(bytes)? } else { LikelyBits::default() };
                    is_crease.push((0..count).map(|_| bits.next()).collect::<Vec<bool>>());
                }
                let correct = Correct::read(bytes, transform)?;
                self.parallelograms(corners, &is_crease, &correct, values)?;
            }
            (5, Some(corners)) if transform == 1 => {
                let count = usize::try_from(bytes.i32()?).map_err(|_| "it has fewer than no orientations")?;
                if count > corners.vertex.len() {
                    return Err("it has more orientations than corners");
                }
                let mut bits = LikelyBits::start(bytes)?;
                let mut last = true;
                let turns = (0..count).map(|_| {
                    last ^= !bits.next();
                    last
                });
                let turns: Vec<bool> = turns.collect();
                let correct = Correct::read(bytes, transform)?;
                self.texture(corners, turns, &correct, values)?;
            }
            (6, Some(corners)) if transform == 3 => {
                let correct = Correct::read(bytes, transform)?;
                let mut flips = LikelyBits::start(bytes)?;
                self.normals(corners, &mut flips, &correct, values)?;
            }
            (2 | 3, Some(_)) => return Err("it is predicted as versions before 2.2 did"),
            // All others, and those without a shape: from the value before.
            _ => {
                let correct = Correct::read(bytes, transform)?;
                self.differences(&correct, values);
            }
        }
        Ok(())
    }

    fn differences(&self, correct: &Correct, values: &mut [i32]) {
        let mut before = vec![0; self.components];
        for value in values.chunks_exact_mut(self.components) {
            correct.apply(&before, value);
            before.copy_from_slice(value);
        }
    }

    /// The fourth corner of a parallelogram whose other three were read before.
    fn fourth(&self, corners: &Corners, at: usize, corner: u32, values: &[i32], out: &mut [i32]) -> bool {
        let across = corners.across(corner);
        if across == NONE {
            return false;
        }
        let value = |corner| self.sequence.of_vertex[corners.vertex(corner) as usize] as usize;
        let (far, one, other) = (value(across), value(next(across)), value(previous(across)));
        if far >= at || one >= at || other >= at {
            return false;
        }
        let n = self.components;
        for (k, out) in out.iter_mut().enumerate() {
            *out = values[one * n + k].wrapping_add(values[other * n + k]).wrapping_sub(values[far * n + k]);
        }
        true
    }

    fn parallelogram(&self, corners: &Corners, correct: &Correct, values: &mut [i32]) {
        let n = self.components;
        let mut predicted = vec![0; n];
        for (at, &corner) in self.sequence.corners.iter().enumerate() {
            let (before, rest) = values.split_at_mut(at * n);
            if at > 0 && !self.fourth(corners, at, corner, before, &mut predicted) {
                predicted.copy_from_slice(&before[(at - 1) * n..]);
            }
            correct.apply(&predicted, &mut rest[..n]);
        }
    }

    /// The mean of several parallelograms, but those across creases.
    fn parallelograms(
        &self,
        corners: &Corners,
        is_crease: &[Vec<bool>],
        correct: &Correct,
        values: &mut [i32],
    ) -> Result<(), Broken> {
        let n = self.components;
        let mut read = [0; 4];
        let mut found = vec![0; 4 * n];
        let mut predicted = vec![0i32; n];
        for (at, &corner) in self.sequence.corners.iter().enumerate() {
            let (before, rest) = values.split_at_mut(at * n);
            if at > 0 {
                let mut count = 0;
                for around in corners.around(corner) {
                    if self.fourth(corners, at, around, before, &mut found[count * n..(count + 1) * n]) {
                        count += 1;
                        if count == 4 {
                            break;
                        }
                    }
                }
                predicted.fill(0);
                let mut used = 0;
                for one in found.chunks_exact(n).take(count) {
                    let context = count - 1;
                    let crease = is_crease[context].get(read[context]).ok_or("it has too few creases")?;
                    read[context] += 1;
                    if !crease {
                        used += 1;
                        predicted.iter_mut().zip(one).for_each(|(sum, x)| *sum = sum.wrapping_add(*x));
                    }
                }
                match used {
                    0 => predicted.copy_from_slice(&before[(at - 1) * n..]),
                    _ => predicted.iter_mut().for_each(|sum| *sum /= used),
                }
            }
            correct.apply(&predicted, &mut rest[..n]);
        }
        Ok(())
    }

    /// Texture coordinates from where the corner lies over the edge across from it.
    fn texture(
        &self,
        corners: &Corners,
        mut turns: Vec<bool>,
        correct: &Correct,
        values: &mut [i32],
    ) -> Result<(), Broken> {
        let positions = self.positions.ok_or("texture coordinates come before positions")?;
        if self.components != 2 {
            return Err("texture coordinates do not have two components");
        }
        for (at, &corner) in self.sequence.corners.iter().enumerate() {
            let (before, rest) = values.split_at_mut(2 * at);
            let value = |corner| self.sequence.of_vertex[corners.vertex(corner) as usize] as usize;
            let (after, ahead) = (value(next(corner)), value(previous(corner)));
            let read = |k: usize| [i64::from(before[2 * k]), i64::from(before[2 * k + 1])];
            let place = |k: usize| positions.at(self.sequence.points[k]);
            let mut predicted = match (after < at, at.checked_sub(1)) {
                (true, _) => read(after),
                (false, Some(last)) => read(last),
                (false, None) => [0; 2],
            };
            if after < at && ahead < at {
                let (a, b) = (read(after), read(ahead));
                if a == b {
                    predicted = b;
                } else if let Some(found) = over_edge([a, b], [place(after), place(ahead), place(at)], &mut turns)? {
                    predicted = found;
                }
            }
            correct.apply(&predicted.map(|x| x as i32), &mut rest[..2]);
        }
        Ok(())
    }

    /// Normals from the triangles around.
    fn normals(
        &self,
        corners: &Corners,
        flips: &mut LikelyBits<'_>,
        correct: &Correct,
        values: &mut [i32],
    ) -> Result<(), Broken> {
        let positions = self.positions.ok_or("normals come before positions")?;
        let Correct::Octahedron(octahedron) = correct else { return Err("normals are not on an octahedron") };
        for (at, &corner) in self.sequence.corners.iter().enumerate() {
            let place = |corner: u32| {
                let value = self.sequence.of_vertex[corners.vertex(corner) as usize];
                positions.at(self.sequence.points[value as usize])
            };
            let centre = place(corner);
            let mut sum = [0i64; 3];
            for around in corners.around(corner) {
                let (a, b) = (minus(place(next(around)), centre), minus(place(previous(around)), centre));
                for k in 0..3 {
                    let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                    let part = a[i].wrapping_mul(b[j]).wrapping_sub(a[j].wrapping_mul(b[i]));
                    sum[k] = sum[k].wrapping_add(part);
                }
            }
            let size = sum.iter().fold(0i64, |size, x| size.saturating_add(x.saturating_abs()));
            let most = 1 << 29;
            if size > most {
                sum = sum.map(|x| x / (size / most));
            }
            let predicted = octahedron.of_vector(sum, flips.next());
            correct.apply(&predicted, &mut values[2 * at..2 * at + 2]);
        }
        Ok(())
    }
}

fn minus(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

/// The place in the texture of a corner over an edge; `None` where the edge has no length.
fn over_edge(
    [a, b]: [[i64; 2]; 2],
    [at_a, at_b, tip]: [[i64; 3]; 3],
    turns: &mut Vec<bool>,
) -> Result<Option<[i64; 2]>, Broken> {
    const FAR: Broken = "texture coordinates are predicted too far away";
    let dot = |x: [i64; 3], y: [i64; 3]| (0..3).fold(0i128, |sum, k| sum + i128::from(x[k]) * i128::from(y[k]));
    let narrow = |x: i128| i64::try_from(x).map_err(|_| FAR);
    let (edge, to_tip) = (minus(at_b, at_a), minus(tip, at_a));
    let length = narrow(dot(edge, edge))?;
    if length == 0 {
        return Ok(None);
    }
    let along = narrow(dot(edge, to_tip))?;
    let in_texture = [b[0] - a[0], b[1] - a[1]];
    let mut foot = [0; 3];
    for k in 0..3 {
        let moved = along.checked_mul(edge[k]).ok_or(FAR)? / length;
        foot[k] = at_a[k].checked_add(moved).ok_or(FAR)?;
    }
    let off = minus(tip, foot);
    // The reference multiplies unsigned 64-bit numbers, round and round.
    let product = (dot(off, off) as u64).wrapping_mul(length as u64);
    let height = product.isqrt() as i64;
    let turned = [in_texture[1], in_texture[0].wrapping_neg()];
    let turn = turns.pop().ok_or("it has too few orientations")?;
    let mut out = [0; 2];
    for k in 0..2 {
        let base = a[k].checked_mul(length).ok_or(FAR)?;
        let base = base.wrapping_add(along.checked_mul(in_texture[k]).ok_or(FAR)?);
        let more = turned[k].wrapping_mul(height);
        out[k] = (if turn { base.wrapping_add(more) } else { base.wrapping_sub(more) }) / length;
    }
    Ok(Some(out))
}
