//! Poses of every step, stored small.
//!
//! A pose is rounded to a grid: positions to a power of two near 1/20,000 of the character's size, the four parts of a rotation to
//! 2⁻¹⁴. On the grid everything is whole numbers and exact: what is read is what was written, and no error gathers.
//!
//! 1. Each of the seven numbers `n` of a body is predicted from the two steps before: `p = 2 nₖ₋₁ − nₖ₋₂`. Before the first step of a
//!    stretch both are those of its snapshot.
//! 2. What is left, `r = n − p`, is folded into `u = 2r` or `−2r − 1`, so that small ones are small: 0, −1, 1, −2 … become 0, 1, 2, 3 …
//! 3. `u` is written as a Rice code: `u >> k` ones and a zero, then the `k` lowest bits. `k` follows the running mean of the part's own
//!    `u`, which writer and reader both know. Where that would be long, [`LONG`] ones announce the number of bits and the bits of `u`.
//! 4. The bits of a step fill whole bytes, lowest bit first.

use super::TakeError;
use super::encode::Bytes;
use crate::maths::Pose;
use crate::model::{BodyId, BodyState, MOST_LENGTH, Model, State, Strayed};
use glam::{DQuat, DVec3};

/// Numbers of a pose: three of the position, four of the rotation.
const PARTS: usize = 7;
/// Rotations lie on multiples of 2 to this.
const ROTATION_EXPONENT: i32 = -14;
/// That is, apart by this.
pub(super) const ROTATION: f64 = 1.0 / (1u64 << -ROTATION_EXPONENT) as f64;
/// Grid numbers stay within this: 2⁵⁰ grid lines are 10¹¹ m of a character of 2 m.
const FARTHEST: f64 = (1u64 << 50) as f64;
/// So many ones in a row announce a number of bits.
const LONG: u32 = 20;
/// The largest `k`: ones, zero and `k` bits fit into what [`Bits::peek`] gives.
const MAX_K: u32 = 32;
/// The running mean is kept times 2 to this, and follows over as many numbers.
const MEMORY: u32 = 4;
/// The mean that is assumed at the start of a stretch, times 2 to [`MEMORY`].
const FIRST_MEAN: u64 = 16 << MEMORY;

/// How finely positions are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Positions lie on multiples of 2 to this \[m\].
    pub(super) exponent: i32,
}

impl Grid {
    /// The exponents that a file may name: from below an atom to a planet.
    pub(super) const EXPONENTS: std::ops::RangeInclusive<i32> = -40..=20;

    /// For a character: 2 to the whole number below log₂(size / 20,000).
    pub(super) fn new(model: &Model) -> Grid {
        let exponent = (model.size() / 20_000.0).log2().floor();
        Grid { exponent: (exponent as i32).clamp(*Grid::EXPONENTS.start(), *Grid::EXPONENTS.end()) }
    }

    /// Positions are stored this far apart \[m\].
    pub(super) fn line(self) -> f64 {
        power(self.exponent)
    }

    /// The grid numbers of a pose.
    fn round(self, body: &BodyState) -> [i64; PARTS] {
        let near = |x: f64, exponent: i32| (x * power(-exponent)).round().clamp(-FARTHEST, FARTHEST) as i64;
        let ([x, y, z], q) = (body.position.to_array(), body.orientation.to_array());
        let [a, b, c, d] = q.map(|part| near(part, ROTATION_EXPONENT));
        let [x, y, z] = [x, y, z].map(|part| near(part, self.exponent));
        [x, y, z, a, b, c, d]
    }

    /// The grid numbers of a point.
    fn round_point(self, p: DVec3) -> [i64; 3] {
        p.to_array().map(|x| (x * power(-self.exponent)).round().clamp(-FARTHEST, FARTHEST) as i64)
    }

    /// The pose of grid numbers.
    fn pose(self, n: [i64; PARTS]) -> Pose {
        let [x, y, z, a, b, c, d] = n.map(|n| n as f64);
        let rotation = DQuat::from_xyzw(a, b, c, d);
        let rotation = if rotation.length_squared() > 0.0 { rotation.normalize() } else { DQuat::IDENTITY };
        Pose::new(rotation, DVec3::new(x, y, z) * self.line())
    }
}

/// 2 to a whole number, exact.
fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// One of the seven numbers of a body, with what its next value is predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    now: i64,
    before: i64,
    /// Running mean of `u`, times 2 to [`MEMORY`].
    mean: u64,
}

impl Part {
    fn at(n: i64) -> Part {
        Part { now: n, before: n, mean: FIRST_MEAN }
    }

    /// By 1. What a file holds may be anything: it wraps around.
    fn prediction(&self) -> i64 {
        self.now.wrapping_mul(2).wrapping_sub(self.before)
    }

    /// `k` of 3: the whole part of log₂ of the mean.
    fn k(&self) -> u32 {
        (self.mean >> MEMORY).max(1).ilog2().min(MAX_K)
    }

    fn move_to(&mut self, n: i64, u: u64) {
        (self.before, self.now) = (self.now, n);
        self.mean = self.mean - (self.mean >> MEMORY) + u.min(1 << 40);
    }
}

/// The poses at a step, and what the next step's are predicted from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// Seven of each body.
    parts: Vec<Part>,
    /// Three of each free node of flesh.
    nodes: Vec<Part>,
}

impl Trace {
    /// At a snapshot.
    pub(super) fn start(&mut self, grid: Grid, state: &State) {
        self.parts.clear();
        self.parts.extend(state.bodies.iter().flat_map(|body| grid.round(body)).map(Part::at));
        self.nodes.clear();
        self.nodes.extend(state.nodes.iter().flat_map(|node| grid.round_point(node.position)).map(Part::at));
    }

    /// Number of bodies.
    pub(super) fn bodies(&self) -> usize {
        self.parts.len() / PARTS
    }

    /// Moves on to the next step and appends its poses.
    pub(super) fn write(&mut self, grid: Grid, state: &State, out: &mut Vec<u8>) {
        let mut bits = BitsOut { out, buffer: 0, count: 0 };
        for (body, parts) in state.bodies.iter().zip(self.parts.chunks_exact_mut(PARTS)) {
            let mut n = grid.round(body);
            // q and −q are one rotation: the one nearer to the step before is stored.
            let dot: i64 = (3..PARTS).map(|k| n[k].saturating_mul(parts[k].now)).fold(0, i64::saturating_add);
            if dot < 0 {
                n[3..].iter_mut().for_each(|part| *part = -*part);
            }
            parts.iter_mut().zip(n).for_each(|(part, n)| bits.next(part, n));
        }
        for (node, parts) in state.nodes.iter().zip(self.nodes.chunks_exact_mut(3)) {
            parts.iter_mut().zip(grid.round_point(node.position)).for_each(|(part, n)| bits.next(part, n));
        }
        bits.finish();
    }

    /// Moves on to the next step by what [`Trace::write`] wrote.
    pub(super) fn read(&mut self, from: &mut Bytes<'_>) -> Result<(), TakeError> {
        let mut bits = Bits { bytes: from.0, at: 0 };
        for part in self.parts.iter_mut().chain(&mut self.nodes) {
            let u = bits.number(part.k());
            let r = (u >> 1) as i64 ^ -((u & 1) as i64);
            let n = part.prediction().wrapping_add(r);
            part.move_to(n, u);
        }
        from.take(bits.at.div_ceil(8))?; // fails when more was read than there is
        Ok(())
    }

    /// What is farther away than any file may say. A place just within that may have been rounded to one beyond.
    pub(super) fn strayed(&self, grid: Grid) -> Option<Strayed> {
        let most = MOST_LENGTH + grid.line();
        let is_far = |n: &[Part]| {
            let place = DVec3::new(n[0].now as f64, n[1].now as f64, n[2].now as f64) * grid.line();
            place.length() > most
        };
        let body = self.parts.chunks_exact(PARTS).position(is_far).map(|k| Strayed::Body(BodyId(k as u32)));
        body.or_else(|| self.nodes.chunks_exact(3).position(is_far).map(Strayed::Node))
    }

    /// The pose of a body.
    pub(super) fn pose(&self, grid: Grid, body: usize) -> Pose {
        let parts = &self.parts[PARTS * body..][..PARTS];
        grid.pose(std::array::from_fn(|k| parts[k].now))
    }

    /// The places of the free nodes of flesh.
    pub(super) fn nodes(&self, grid: Grid) -> impl Iterator<Item = DVec3> {
        self.nodes
            .chunks_exact(3)
            .map(move |n| DVec3::new(n[0].now as f64, n[1].now as f64, n[2].now as f64) * grid.line())
    }
}

/// Bits being written.
struct BitsOut<'a> {
    out: &'a mut Vec<u8>,
    buffer: u64,
    count: u32,
}

impl BitsOut<'_> {
    /// Appends what is missing in the prediction of a part, and moves it on.
    fn next(&mut self, part: &mut Part, n: i64) {
        let r = n.wrapping_sub(part.prediction());
        let u = ((r << 1) ^ (r >> 63)) as u64;
        self.number(u, part.k());
        part.move_to(n, u);
    }

    /// Appends the lowest `count` bits, at most 56.
    fn put(&mut self, bits: u64, count: u32) {
        self.buffer |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.buffer as u8);
            self.buffer >>= 8;
            self.count -= 8;
        }
    }

    /// By 3.
    fn number(&mut self, u: u64, k: u32) {
        let ones = u >> k;
        if ones < u64::from(LONG) {
            self.put((1 << ones) - 1, ones as u32 + 1);
            self.put(u & ((1 << k) - 1), k);
        } else {
            let length = 64 - u.leading_zeros(); // at most 54: grid numbers stay below 2⁵⁰, what is left below 2⁵²
            self.put((1 << LONG) - 1, LONG);
            self.put(u64::from(length), 6);
            self.put(u, length);
        }
    }

    fn finish(&mut self) {
        if self.count > 0 {
            self.out.push(self.buffer as u8);
        }
    }
}

/// Bits being read. Behind the end there are zeros; who reads them finds `at` beyond the bytes.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next 57 bits or more.
    #[inline]
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word >> (self.at % 8)
    }

    /// By 3.
    #[inline]
    fn number(&mut self, k: u32) -> u64 {
        let word = self.peek();
        let ones = word.trailing_ones();
        if ones < LONG {
            self.at += (ones + 1 + k) as usize;
            return u64::from(ones) << k | (word >> (ones + 1)) & ((1 << k) - 1);
        }
        let length = (word >> LONG & 63).min(56) as u32;
        self.at += LONG as usize + 6;
        let u = self.peek() & ((1 << length) - 1);
        self.at += length as usize;
        u
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scene;

    #[test]
    fn numbers_of_every_length_come_back() {
        for k in [0, 1, 7, MAX_K] {
            let mut numbers: Vec<u64> = (0..53).flat_map(|b| [(1u64 << b) - 1, 1 << b, (1 << b) + 1]).collect();
            numbers.extend(0..200);
            let mut out = Vec::new();
            let mut bits = BitsOut { out: &mut out, buffer: 0, count: 0 };
            numbers.iter().for_each(|u| bits.number(*u, k));
            bits.finish();
            let mut bits = Bits { bytes: &out, at: 0 };
            for u in &numbers {
                assert_eq!(bits.number(k), *u, "k = {k}");
            }
            assert_eq!(bits.at.div_ceil(8), out.len());
        }
    }

    #[test]
    fn poses_come_back_within_half_a_grid_line() {
        let scene = Scene::parse("robot").unwrap();
        let grid = Grid::new(&scene.model);
        assert_eq!(grid.exponent, -14); // 0.06 mm: the robot is 1.6 m between the centres of its head and its feet
        let mut state = scene.state.clone();
        let (mut writer, mut reader) = (Trace::default(), Trace::default());
        writer.start(grid, &state);
        reader.start(grid, &state);
        let (mut bytes, mut states) = (Vec::new(), Vec::new());
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        for step in 0..60 {
            // Now and then everything jumps, also far away, and rotations change their sign.
            let far = if step % 13 == 0 { 1e9 } else { 0.02 };
            for body in &mut state.bodies {
                body.position += DVec3::new(random(), random(), random()) * far;
                let turn = DVec3::new(random(), random(), random());
                body.orientation = (DQuat::from_scaled_axis(turn) * body.orientation).normalize() * random().signum();
            }
            writer.write(grid, &state, &mut bytes);
            states.push(state.clone());
        }
        let mut from = Bytes(&bytes);
        for state in &states {
            reader.read(&mut from).unwrap();
            for (k, body) in state.bodies.iter().enumerate() {
                let pose = reader.pose(grid, k);
                let off = (pose.translation - body.position).abs().max_element();
                assert!(off <= 0.5 * power(-14) + 1e-7, "{off} m"); // 1e-7: the last digit of 1e9
                // four parts each off by 2⁻¹⁵ at most: an angle of 2·2·2⁻¹⁵
                assert!(pose.rotation.angle_between(body.orientation) < 1.3e-4);
            }
        }
        assert!(from.0.is_empty());
        assert_eq!(reader, writer);
    }

    #[test]
    fn what_is_not_a_number_is_stored_as_some_pose() {
        let scene = Scene::parse("pendulum").unwrap();
        let grid = Grid::new(&scene.model);
        let mut state = scene.state.clone();
        let mut trace = Trace::default();
        trace.start(grid, &state);
        state.bodies[0].position.x = f64::NAN;
        state.bodies[0].position.y = f64::INFINITY;
        state.bodies[0].orientation = DQuat::from_xyzw(0.0, 0.0, 0.0, 0.0);
        let mut bytes = Vec::new();
        trace.write(grid, &state, &mut bytes);
        assert!(trace.pose(grid, 0).is_finite());
    }
}
