//! Decodes bytes as text, wherever they are cut.
//!
//! Invariant: the text is the same as that of all bytes at once, with one U+FFFD for each
//! invalid sequence.

#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The beginning of an incomplete character: at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// Passes on the text that is complete so far.
    pub(super) fn decode(&mut self, bytes: &[u8], mut text: impl FnMut(&str)) {
        let mut rest = self.finish_begun(bytes, &mut text);
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text(valid);
                    return;
                }
                Err(error) => {
                    let (valid, tail) = rest.split_at(error.valid_up_to());
                    if let Ok(valid) = std::str::from_utf8(valid) {
                        text(valid);
                    }
                    let Some(invalid) = error.error_len() else {
                        self.begun.extend_from_slice(tail);
                        return;
                    };
                    text("\u{fffd}");
                    rest = &tail[invalid..];
                }
            }
        }
    }

    fn finish_begun<'a>(&mut self, bytes: &'a [u8], text: &mut impl FnMut(&str)) -> &'a [u8] {
        let mut rest = bytes;
        while !self.begun.is_empty() {
            let Some((&next, tail)) = rest.split_first() else { break };
            self.begun.push(next);
            match std::str::from_utf8(&self.begun) {
                Ok(valid) => text(valid),
                Err(error) if error.error_len().is_none() => {
                    rest = tail;
                    continue;
                }
                // The begun sequence was valid so far, so the new byte does not belong to
                // it and is decoded again by itself.
                Err(_) => {
                    text("\u{fffd}");
                    self.begun.clear();
                    break;
                }
            }
            self.begun.clear();
            rest = tail;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let mut all = String::new();
        for piece in pieces {
            decoder.decode(piece, |text| all.push_str(text));
        }
        all
    }

    #[test]
    fn a_character_may_come_byte_by_byte() {
        assert_eq!(read(&[b"\xf0", b"\x9f", b"\x98", b"\x80!"]), "😀!");
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn cuts_do_not_matter(bytes: Vec<u8>, cut in 0usize..64, every in 1usize..4) {
            // With a letter at the end, nothing is incomplete.
            let mut bytes = bytes;
            bytes.push(b'.');
            let whole = String::from_utf8_lossy(&bytes);
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[a, b]), whole.clone());
            let pieces: Vec<_> = bytes.chunks(every).collect();
            prop_assert_eq!(read(&pieces), whole);
        }

        #[test]
        fn broken_characters_are_replaced_one_by_one(
            pieces in prop::collection::vec(prop::sample::select(vec![
                &b"\xe2\x82"[..], b"\xf0\x9f\x98", b"\xc3", b"\x80", b"\xff", b"a", b"\xe2\x82\xac",
            ]), 0..12),
        ) {
            let mut bytes = pieces.concat();
            bytes.push(b'.');
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(read(&single), String::from_utf8_lossy(&bytes));
        }
    }
}
