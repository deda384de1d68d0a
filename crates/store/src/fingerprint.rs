//! A hash of some bytes.

/// FNV-1a: the same in every version of this program, and good enough against accidental
/// collisions, which is all that it guards against.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    /// Adds the bytes as one of several fields: field boundaries count.
    #[must_use]
    pub fn with_field(self, bytes: &[u8]) -> Self {
        self.with(&(bytes.len() as u64).to_le_bytes()).with(bytes)
    }

    /// Returns sixteen hexadecimal digits.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_field_ends_makes_a_difference() {
        let of = |a: &[u8], b: &[u8]| Fingerprint::default().with_field(a).with_field(b).text();
        assert_ne!(of(b"ab", b"c"), of(b"a", b"bc"));
        assert_eq!(of(b"ab", b"c"), of(b"ab", b"c"));
        assert_eq!(Fingerprint::default().with(b"a").text(), "af63dc4c8601ec8c");
    }
}
