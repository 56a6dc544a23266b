//! FNV-1a of 64 bits: a number that tells whether bytes are the same. It guards against mistakes, not against malice.

/// A hash that grows as bytes are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(u64);

impl Fnv {
    /// Of no bytes.
    pub(crate) const fn new() -> Fnv {
        Fnv(0xcbf29ce484222325)
    }

    /// Adds bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100000001b3);
        }
    }

    /// Goes on from a hash.
    pub(crate) const fn from(hash: u64) -> Fnv {
        Fnv(hash)
    }

    /// Adds a whole number at once, not byte by byte: faster, another hash.
    pub(crate) fn word(&mut self, x: u64) {
        self.0 = (self.0 ^ x).wrapping_mul(0x100000001b3).rotate_left(23);
    }

    /// Adds a whole number.
    pub(crate) fn u64(&mut self, x: u64) {
        self.bytes(&x.to_le_bytes());
    }

    /// Adds the bits of a number.
    pub(crate) fn f64(&mut self, x: f64) {
        self.u64(x.to_bits());
    }

    /// Adds the bits of numbers.
    pub(crate) fn f64s(&mut self, numbers: &[f64]) {
        numbers.iter().for_each(|x| self.f64(*x));
    }

    /// The hash of all that was added.
    pub(crate) fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // From the authors' page of test vectors.
        for (text, expected) in [("", 0xcbf29ce484222325), ("a", 0xaf63dc4c8601ec8c), ("foobar", 0x85944171f73967e8)] {
            let mut hash = Fnv::new();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.finish(), expected, "{text:?}");
        }
    }
}
