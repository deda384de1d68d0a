//! The authenticity of a bundle.
//!
//! A seal is the keyed hash of all bytes before it. With the key, a reader knows that the
//! file is its own, from the first byte to the seal; a seal that is not the last part
//! proves nothing.

/// A secret shared by programs that trust each other's bundles.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Key {
        Key(secret)
    }

    pub(super) fn seal(&self, digest: &[u8; 32]) -> blake3::Hash {
        blake3::keyed_hash(&self.0, digest)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// The seal that a bundle contains.
#[derive(Debug, Clone, Copy)]
pub struct Seal {
    /// Hash of all bytes before it.
    pub(super) digest: [u8; 32],
    pub(super) sealed: [u8; 32],
}

impl Seal {
    /// Returns whether it was made with this key.
    #[must_use]
    pub fn is_of(&self, key: &Key) -> bool {
        // Compares in constant time.
        key.seal(&self.digest) == blake3::Hash::from_bytes(self.sealed)
    }
}
