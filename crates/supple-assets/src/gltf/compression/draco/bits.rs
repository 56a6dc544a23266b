//! Bytes, bits and entropy codes of a Draco stream. What is cut off or impossible is an error, nothing is read beyond the end.

/// What is wrong with a stream.
pub(super) type Broken = &'static str;

pub(super) const CUT_OFF: Broken = "it is cut off";

/// Bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub(super) left: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(CUT_OFF)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        self.take(N)?.try_into().map_err(|_| CUT_OFF)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn i8(&mut self) -> Result<i8, Broken> {
        Ok(self.u8()? as i8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Broken> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Broken> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Broken> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn f32(&mut self) -> Result<f32, Broken> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    /// Seven bits a byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0;
        for k in 0..10 {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << (7 * k);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number has too many bytes")
    }

    /// The same as a count or an index.
    pub(super) fn count(&mut self) -> Result<usize, Broken> {
        u32::try_from(self.varint()?).map(|n| n as usize).map_err(|_| "a count is too large")
    }

    /// The bytes of a part that tells its own length.
    pub(super) fn part(&mut self) -> Result<&'a [u8], Broken> {
        let length = usize::try_from(self.varint()?).map_err(|_| CUT_OFF)?;
        self.take(length)
    }
}

/// Bits, the lowest of each byte first.
#[derive(Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, count: u32) -> Result<u32, Broken> {
        let mut value = 0;
        for k in 0..count {
            let byte = self.bytes.get(self.at >> 3).ok_or(CUT_OFF)?;
            value |= u32::from(byte >> (self.at & 7) & 1) << k;
            self.at += 1;
        }
        Ok(value)
    }

    /// How many bytes were begun.
    pub(super) fn used(&self) -> usize {
        self.at.div_ceil(8)
    }
}

/// Where an entropy code begins: it is read from its end, which tells by two bits how many bytes the first state has.
fn first_state(bytes: &[u8], most: usize, base: u32) -> Result<(u32, usize), Broken> {
    let last = *bytes.last().ok_or(CUT_OFF)?;
    let size = usize::from(last >> 6) + 1;
    if size > most || size > bytes.len() {
        return Err("an entropy code begins with a state of too many bytes");
    }
    let start = bytes.len() - size;
    let state = bytes[start..].iter().rev().fold(0, |state, byte| state << 8 | u32::from(*byte));
    let state = (state & ((1u64 << (8 * size - 2)) - 1) as u32).checked_add(base);
    let state = state.filter(|state| u64::from(*state) < u64::from(base) * 256);
    Ok((state.ok_or("an entropy code begins with a state that is too large")?, start))
}

/// Single bits, one of whose values may be likelier (rANS of two symbols).
#[derive(Debug, Default)]
pub(super) struct LikelyBits<'a> {
    bytes: &'a [u8],
    left: usize,
    state: u32,
    zero: u32,
}

impl<'a> LikelyBits<'a> {
    const BASE: u32 = 4096;

    pub(super) fn start(bytes: &mut Bytes<'a>) -> Result<LikelyBits<'a>, Broken> {
        let zero = u32::from(bytes.u8()?);
        let coded = bytes.part()?;
        let (state, left) = first_state(coded, 3, Self::BASE)?;
        Ok(LikelyBits { bytes: coded, left, state, zero })
    }

    pub(super) fn next(&mut self) -> bool {
        if self.state < Self::BASE && self.left > 0 {
            self.left -= 1;
            self.state = self.state << 8 | u32::from(self.bytes[self.left]);
        }
        let one = 256 - self.zero;
        let (quotient, rest) = (self.state / 256, self.state % 256);
        let bit = rest < one;
        self.state = if bit { quotient * one + rest } else { self.state - quotient * one - one };
        bit
    }
}

/// Symbols by their probabilities (rANS).
struct Symbols<'a> {
    bytes: &'a [u8],
    left: usize,
    state: u32,
    /// Probabilities are shares of `1 << bits`.
    bits: u32,
    /// By symbol: its share, and the sum of those before it.
    shares: Vec<(u32, u32)>,
    /// By place in the sum: the symbol.
    symbols: Vec<u32>,
}

impl<'a> Symbols<'a> {
    /// `length`: the bits of the largest symbol.
    fn start(bytes: &mut Bytes<'a>, length: u32) -> Result<Symbols<'a>, Broken> {
        let bits = (3 * length / 2).clamp(12, 20);
        let count = bytes.count()?;
        // A byte tells of up to 64 symbols; none has more than 18 bits.
        if count / 64 > bytes.left.len() || count > 1 << 18 {
            return Err("it has more symbols than bytes allow");
        }
        let mut shares: Vec<(u32, u32)> = Vec::with_capacity(count);
        while shares.len() < count {
            let first = bytes.u8()?;
            if first & 3 == 3 {
                let absent = usize::from(first >> 2) + 1;
                if shares.len() + absent > count {
                    return Err("its table of symbols is too long");
                }
                shares.resize(shares.len() + absent, (0, 0));
                continue;
            }
            let mut share = u32::from(first >> 2);
            for k in 0..first & 3 {
                share |= u32::from(bytes.u8()?) << (8 * (k + 1) - 2);
            }
            shares.push((share, 0));
        }
        let mut symbols = Vec::with_capacity(1 << bits);
        for (symbol, (share, before)) in shares.iter_mut().enumerate() {
            *before = symbols.len() as u32;
            if symbols.len() + *share as usize > 1 << bits {
                return Err("the shares of its symbols are more than all");
            }
            symbols.resize(symbols.len() + *share as usize, symbol as u32);
        }
        if symbols.len() != 1 << bits {
            return Err("the shares of its symbols are less than all");
        }
        let coded = bytes.part()?;
        let (state, left) = first_state(coded, 4, 4 << bits)?;
        Ok(Symbols { bytes: coded, left, state, bits, shares, symbols })
    }

    fn next(&mut self) -> u32 {
        while self.state < 4 << self.bits && self.left > 0 {
            self.left -= 1;
            self.state = self.state << 8 | u32::from(self.bytes[self.left]);
        }
        let (quotient, rest) = (self.state >> self.bits, self.state & ((1 << self.bits) - 1));
        let symbol = self.symbols[rest as usize];
        let (share, before) = self.shares[symbol as usize];
        self.state = quotient * share + rest - before;
        symbol
    }
}

/// A list of numbers: symbols as they stand, or by their count of bits with the bits behind.
pub(super) fn numbers(bytes: &mut Bytes<'_>, count: usize, components: usize) -> Result<Vec<u32>, Broken> {
    if count == 0 {
        return Ok(Vec::new());
    }
    match bytes.u8()? {
        0 => {
            let mut lengths = Symbols::start(bytes, 5)?;
            let mut bits = Bits::new(bytes.left);
            let mut values = Vec::with_capacity(count);
            while values.len() < count {
                let length = lengths.next();
                if length > 32 {
                    return Err("a number has more than 32 bits");
                }
                for _ in 0..components {
                    values.push(bits.take(length)?);
                }
            }
            bytes.take(bits.used())?;
            Ok(values)
        }
        1 => {
            let length = u32::from(bytes.u8()?);
            if !(1..=18).contains(&length) {
                return Err("its symbols have more than 18 bits");
            }
            let mut symbols = Symbols::start(bytes, length)?;
            Ok((0..count).map(|_| symbols.next()).collect())
        }
        _ => Err("its numbers are coded in a way that does not exist"),
    }
}
