//! Entries of a directory, as the system tells them.

use std::ffi::CStr;

#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) inode: u64,
    /// Where the next one is.
    pub(super) next: u64,
    pub(super) kind: u8,
    pub(super) name: &'a CStr,
    /// Of the record.
    pub(super) length: usize,
}

impl<'a> Entry<'a> {
    /// The first of these; none at their end.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let length = usize::from(u16::from_ne_bytes(bytes.get(16..18)?.try_into().ok()?));
        Some(Self {
            inode: number(0)?,
            next: number(8)?,
            kind: *bytes.get(18)?,
            name: CStr::from_bytes_until_nul(bytes.get(19..length)?).ok()?,
            length,
        })
    }

    pub(super) fn is_dots(&self) -> bool {
        matches!(self.name.to_bytes(), b"." | b"..")
    }
}
