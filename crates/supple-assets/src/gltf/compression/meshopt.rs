//! Buffer views of `EXT_meshopt_compression`: vertex data (version 0 of the codec, which is the one that the extension allows), triangles, lists of
//! indices, and the three filters. In safe code: it is short, and the library is C++, which installing Supple should not need a compiler for.

/// What is wrong with a view.
type Broken = &'static str;

const CUT_OFF: Broken = "it is cut off";
const TOO_LONG: Broken = "it has bytes that belong to nothing";

/// How a view is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Attributes,
    Triangles,
    Indices,
}

/// What is made of the numbers of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    None,
    Octahedral,
    Quaternion,
    Exponential,
}

/// The bytes of a view of `count` elements, each `stride` bytes long.
pub(super) fn decode(bytes: &[u8], count: usize, stride: usize, mode: Mode, filter: Filter) -> Result<Vec<u8>, Broken> {
    let mut out = match mode {
        Mode::Attributes => vertices(bytes, count, stride)?,
        Mode::Triangles => indices(&triangles(bytes, count)?, stride)?,
        Mode::Indices => indices(&sequence(bytes, count)?, stride)?,
    };
    match filter {
        Filter::None => {}
        Filter::Octahedral if stride == 4 => out.chunks_exact_mut(4).for_each(octahedral8),
        Filter::Octahedral if stride == 8 => out.chunks_exact_mut(8).for_each(octahedral16),
        Filter::Quaternion if stride == 8 => out.chunks_exact_mut(8).for_each(quaternion),
        Filter::Exponential if stride.is_multiple_of(4) => out.chunks_exact_mut(4).for_each(exponential),
        _ => return Err("its filter does not fit its stride"),
    }
    Ok(out)
}

/// Numbers as 16 or 32 bits.
fn indices(list: &[u32], stride: usize) -> Result<Vec<u8>, Broken> {
    match stride {
        2 => Ok(list.iter().flat_map(|i| (*i as u16).to_le_bytes()).collect()),
        4 => Ok(list.iter().flat_map(|i| i.to_le_bytes()).collect()),
        _ => Err("its indices have neither 2 nor 4 bytes"),
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Broken> {
    let (taken, left) = bytes.split_at_checked(count).ok_or(CUT_OFF)?;
    *bytes = left;
    Ok(taken)
}

/// The difference that a number of alternating signs stands for.
fn unfold(code: u32) -> u32 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

/// Blocks of up to 256 vertices; of each block one byte of all vertices after the other, as differences from the vertex before.
fn vertices(bytes: &[u8], count: usize, stride: usize) -> Result<Vec<u8>, Broken> {
    if stride == 0 || stride > 256 || !stride.is_multiple_of(4) {
        return Err("its stride is not a multiple of 4 up to 256");
    }
    let mut left = bytes;
    match take(&mut left, 1)?[0] {
        0xa0 => {}
        0xa1 => return Err("its vertices are of version 1 of the codec, and the extension allows only 0"),
        _ => return Err("it does not begin as compressed vertices"),
    }
    // The first vertex stands at the end, after bytes that fill up.
    let tail = stride.max(32);
    let end = left.len().checked_sub(tail).ok_or(CUT_OFF)?;
    let mut last = left[left.len() - stride..].to_vec();
    let mut left = &left[..end];
    // 16 vertices take at least a quarter of a byte for each byte of them.
    if count / 64 > end {
        return Err(CUT_OFF);
    }
    let block = ((8192 / stride) & !15).min(256);
    let mut out = vec![0; count * stride];
    let mut deltas = [0u8; 256];
    for chunk in out.chunks_mut(block * stride) {
        let here = chunk.len() / stride;
        let groups = here.div_ceil(16);
        for k in 0..stride {
            let header = take(&mut left, groups.div_ceil(4))?;
            for group in 0..groups {
                let bits = [0, 2, 4, 8][usize::from(header[group / 4] >> (group % 4 * 2) & 3)];
                read_group(&mut left, bits, &mut deltas[16 * group..16 * group + 16])?;
            }
            for (vertex, delta) in chunk.chunks_exact_mut(stride).zip(deltas) {
                last[k] = last[k].wrapping_add((delta >> 1) ^ (delta & 1).wrapping_neg());
                vertex[k] = last[k];
            }
        }
    }
    if left.is_empty() { Ok(out) } else { Err(TOO_LONG) }
}

/// Sixteen numbers of few bits, highest first; the largest of these bits means that a byte follows behind all.
fn read_group(left: &mut &[u8], bits: usize, out: &mut [u8]) -> Result<(), Broken> {
    match bits {
        0 => out.fill(0),
        8 => out.copy_from_slice(take(left, 16)?),
        _ => {
            let packed = take(left, 2 * bits)?;
            let all = (1u8 << bits) - 1;
            for (k, out) in out.iter_mut().enumerate() {
                let at = k * bits;
                *out = packed[at / 8] >> (8 - bits - at % 8) & all;
                if *out == all {
                    *out = take(left, 1)?[0];
                }
            }
        }
    }
    Ok(())
}

fn varint(left: &mut &[u8]) -> Result<u32, Broken> {
    let mut value = 0u32;
    for k in 0..5 {
        let byte = take(left, 1)?[0];
        value |= u32::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number has too many bytes")
}

/// The last 16 of something.
struct Recent<T> {
    list: [T; 16],
    at: usize,
}

impl<T: Copy> Recent<T> {
    /// The one before, the one before that, …
    fn back(&self, steps: usize) -> T {
        self.list[(self.at + 16 - steps) % 16]
    }

    fn push(&mut self, item: T) {
        self.list[self.at] = item;
        self.at = (self.at + 1) % 16;
    }
}

/// Triangles by edges and vertices that were met lately.
fn triangles(bytes: &[u8], count: usize) -> Result<Vec<u32>, Broken> {
    if !count.is_multiple_of(3) {
        return Err("its indices are not whole triangles");
    }
    let mut left = bytes;
    let head = take(&mut left, 1)?[0];
    let codes = take(&mut left, count / 3)?;
    let end = left.len().checked_sub(16).ok_or(CUT_OFF)?;
    let (mut data, table) = left.split_at(end);
    let free = match head {
        0xe0 => 15,
        0xe1 => 13,
        _ => return Err("it does not begin as compressed triangles"),
    };
    let mut edges = Recent { list: [(u32::MAX, u32::MAX); 16], at: 0 };
    let mut seen = Recent { list: [u32::MAX; 16], at: 0 };
    let (mut next, mut last) = (0u32, 0u32);
    let new = |next: &mut u32| {
        *next = next.wrapping_add(1);
        next.wrapping_sub(1)
    };
    let mut out = Vec::with_capacity(count);
    for &code in codes {
        if code < 0xf0 {
            let (a, b) = edges.back(usize::from(code >> 4) + 1);
            let third = u32::from(code & 15);
            let (c, is_new) = match third {
                0 => (new(&mut next), true),
                third if third < free => (seen.back(third as usize + 1), false),
                15 => (last.wrapping_add(unfold(varint(&mut data)?)), true),
                // 13 and 14: the index before and after the last that was told.
                third => (last.wrapping_add(third).wrapping_sub(third ^ 3), true),
            };
            if third >= free {
                last = c;
            }
            out.extend([a, b, c]);
            if is_new {
                seen.push(c);
            }
            edges.push((c, b));
            edges.push((a, c));
            continue;
        }
        let from_table = code < 0xfe;
        let more = if from_table { table[usize::from(code & 15)] } else { take(&mut data, 1)?[0] };
        let (second, third) = (usize::from(more >> 4), usize::from(more & 15));
        if !from_table && more == 0 {
            next = 0;
        }
        let first_is_free = code == 0xff;
        let mut a = if first_is_free { 0 } else { new(&mut next) };
        let mut b = if second == 0 { new(&mut next) } else { seen.back(second) };
        let mut c = if third == 0 { new(&mut next) } else { seen.back(third) };
        let told =
            [(first_is_free, &mut a), (second == 15 && !from_table, &mut b), (third == 15 && !from_table, &mut c)];
        for (is_free, index) in told {
            if is_free {
                last = last.wrapping_add(unfold(varint(&mut data)?));
                *index = last;
            }
        }
        out.extend([a, b, c]);
        seen.push(a);
        for (code, index) in [(second, b), (third, c)] {
            if code == 0 || (code == 15 && !from_table) {
                seen.push(index);
            }
        }
        edges.push((b, a));
        edges.push((c, b));
        edges.push((a, c));
    }
    if data.is_empty() { Ok(out) } else { Err(TOO_LONG) }
}

/// Indices as differences from one of two before.
fn sequence(bytes: &[u8], count: usize) -> Result<Vec<u32>, Broken> {
    let mut left = bytes;
    if !matches!(take(&mut left, 1)?[0], 0xd0 | 0xd1) {
        return Err("it does not begin as compressed indices");
    }
    let end = left.len().checked_sub(4).ok_or(CUT_OFF)?;
    let mut left = &left[..end];
    if count > end {
        return Err(CUT_OFF);
    }
    let mut last = [0u32; 2];
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let code = varint(&mut left)?;
        let which = (code & 1) as usize;
        last[which] = last[which].wrapping_add(unfold(code >> 1));
        out.push(last[which]);
    }
    if left.is_empty() { Ok(out) } else { Err(TOO_LONG) }
}

/// A unit vector from a point of the octahedron. The third number tells what 1 is.
fn octahedron(x: f32, y: f32, one: f32, most: f32) -> [f32; 3] {
    let z = one - x.abs() - y.abs();
    let fold = z.min(0.0);
    let x = x + if x >= 0.0 { fold } else { -fold };
    let y = y + if y >= 0.0 { fold } else { -fold };
    let scale = most / (x * x + y * y + z * z).sqrt();
    [x, y, z].map(|c| (c * scale).round())
}

fn octahedral8(b: &mut [u8]) {
    let [x, y, one] = [b[0], b[1], b[2]].map(|n| f32::from(n as i8));
    for (b, value) in b.iter_mut().zip(octahedron(x, y, one, 127.0)) {
        *b = value as i8 as u8;
    }
}

/// The k-th 16-bit number.
fn short(b: &[u8], k: usize) -> i16 {
    i16::from_le_bytes([b[2 * k], b[2 * k + 1]])
}

fn octahedral16(b: &mut [u8]) {
    let [x, y, one] = [0, 1, 2].map(|k| f32::from(short(b, k)));
    for (k, value) in octahedron(x, y, one, 32767.0).into_iter().enumerate() {
        b[2 * k..2 * k + 2].copy_from_slice(&(value as i16).to_le_bytes());
    }
}

/// A quaternion from three of its numbers: the fourth tells their scale and, in its last two bits, which one is missing.
fn quaternion(b: &mut [u8]) {
    let told = short(b, 3);
    let scale = std::f32::consts::FRAC_1_SQRT_2 / f32::from(told | 3);
    let [x, y, z] = [0, 1, 2].map(|k| f32::from(short(b, k)) * scale);
    let w = (1.0 - x * x - y * y - z * z).max(0.0).sqrt();
    let missing = (told & 3) as usize;
    for (k, value) in [w, x, y, z].into_iter().enumerate() {
        let at = 2 * ((missing + k) % 4);
        b[at..at + 2].copy_from_slice(&((value * 32767.0).round() as i16).to_le_bytes());
    }
}

/// A float from 24 bits of value and 8 of exponent.
fn exponential(b: &mut [u8]) {
    let code = i32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let value = f64::from((code << 8) >> 8) * f64::from(code >> 24).exp2();
    b.copy_from_slice(&(value as f32).to_le_bytes());
}
