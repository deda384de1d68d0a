//! Words as shells print them, and as shells read them back.

use std::fmt::Write;

/// The rest of a listing that a shell has printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing<'a> {
    rest: &'a [u8],
}

/// The value in a declaration of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Assigned<'a> {
    Nothing,
    /// A string, as it was printed and without quotes.
    Word {
        printed: &'a [u8],
        plain: Vec<u8>,
    },
    /// An array, with its parentheses.
    List {
        printed: &'a [u8],
    },
}

impl<'a> Listing<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes a fixed text, if it comes next.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes everything before the first of some bytes; the whole rest if there is none.
    pub(super) fn before(&mut self, ends: &[u8]) -> &'a [u8] {
        let end = self.rest.iter().position(|b| ends.contains(b)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Takes the rest of a line, including its end.
    pub(super) fn line(&mut self) -> &'a [u8] {
        let line = self.before(b"\n");
        self.skip("\n");
        line
    }

    /// Takes a word up to a blank, without its quotes. Returns `None` if it has no end.
    pub(super) fn word(&mut self) -> Option<Vec<u8>> {
        let mut plain = Vec::new();
        while !matches!(self.rest.first(), None | Some(b' ' | b'\t' | b'\n')) {
            self.piece(&mut plain)?;
        }
        Some(plain)
    }

    /// Takes what follows the name in a declaration.
    pub(super) fn assigned(&mut self) -> Option<Assigned<'a>> {
        if !self.skip("=") {
            return Some(Assigned::Nothing);
        }
        let before = self.rest;
        let printed = |after: &[u8]| &before[..before.len() - after.len()];
        if self.rest.first() == Some(&b'(') {
            self.list()?;
            return Some(Assigned::List { printed: printed(self.rest) });
        }
        let plain = self.word()?;
        Some(Assigned::Word { printed: printed(self.rest), plain })
    }

    /// Takes a key in a list, `[key]=`, if there is one.
    pub(super) fn key(&mut self) -> Option<Vec<u8>> {
        let mut entry = *self;
        let mut plain = Vec::new();
        if !entry.skip("[") {
            return None;
        }
        while !entry.skip("]=") {
            entry.piece(&mut plain)?;
        }
        *self = entry;
        Some(plain)
    }

    fn list(&mut self) -> Option<()> {
        let mut ignored = Vec::new();
        while *self.rest.first()? != b')' {
            ignored.clear();
            self.piece(&mut ignored)?;
        }
        self.rest = &self.rest[1..];
        Some(())
    }

    /// Takes a quoted part of a word, or one byte that is not quoted.
    fn piece(&mut self, plain: &mut Vec<u8>) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix(b"$'") {
            self.rest = rest;
            return self.ansi(plain);
        }
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            b'\'' => {
                plain.extend_from_slice(self.before(b"'"));
                self.skip("'").then_some(())
            }
            b'"' => self.double_quoted(plain),
            b'\\' => {
                let (escaped, rest) = self.rest.split_first()?;
                plain.push(*escaped);
                self.rest = rest;
                Some(())
            }
            other => {
                plain.push(*other);
                Some(())
            }
        }
    }

    fn double_quoted(&mut self, plain: &mut Vec<u8>) -> Option<()> {
        loop {
            plain.extend_from_slice(self.before(b"\"\\"));
            if self.skip("\"") {
                return Some(());
            }
            match self.rest.get(1)? {
                escaped @ (b'"' | b'\\' | b'$' | b'`') => plain.push(*escaped),
                other => plain.extend([b'\\', *other]),
            }
            self.rest = &self.rest[2..];
        }
    }

    /// Takes the rest of a `$'…'`.
    fn ansi(&mut self, plain: &mut Vec<u8>) -> Option<()> {
        loop {
            plain.extend_from_slice(self.before(b"'\\"));
            if self.skip("'") {
                return Some(());
            }
            self.rest = self.rest.get(1..)?;
            self.escaped(plain)?;
        }
    }

    /// Takes what follows a backslash in a `$'…'`.
    fn escaped(&mut self, plain: &mut Vec<u8>) -> Option<()> {
        // Escapes of zsh. It quotes nothing after these, not even a quote.
        if self.skip("M-") {
            let byte = match () {
                () if self.skip("\\C-") => self.controlled()?,
                () if self.skip("\\n") => b'\n',
                () if self.skip("\\t") => b'\t',
                () => self.byte()?,
            };
            plain.push(byte | 0x80);
            return Some(());
        }
        if self.skip("C-") {
            plain.push(self.controlled()?);
            return Some(());
        }
        let byte = match self.byte()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'v' => 11,
            b'x' => u8::try_from(self.digits(16, 2, 0)).ok()?,
            octal @ b'0'..=b'7' => u8::try_from(self.digits(8, 2, u32::from(octal - b'0'))).ok()?,
            kind @ (b'u' | b'U') => {
                let number = self.digits(16, if kind == b'u' { 4 } else { 8 }, 0);
                let text = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                plain.extend_from_slice(text.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            other => other,
        };
        plain.push(byte);
        Some(())
    }

    fn controlled(&mut self) -> Option<u8> {
        Some(match self.byte()? {
            b'?' => 0x7f,
            of => of & 0x1f,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn digits(&mut self, radix: u32, most: usize, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..most {
            let digit = self.rest.first().and_then(|b| char::from(*b).to_digit(radix));
            let Some(digit) = digit else { break };
            value = value * radix + digit;
            self.rest = &self.rest[1..];
        }
        value
    }
}

/// Returns the text as one word of any POSIX shell.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns any bytes as one word of bash or zsh that is valid text.
pub(super) fn quote_bytes(bytes: &[u8]) -> String {
    let is_plain = |text: &str| !text.bytes().any(is_control);
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => quote(text),
        Ok(_) | Err(_) => ansi_quote(bytes),
    }
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t')
}

fn ansi_quote(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => word.extend(['\\', c]),
                c if u8::try_from(c).is_ok_and(is_control) => {
                    let _ = write!(word, "\\{:03o}", u32::from(c));
                }
                c => word.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(word, "\\{byte:03o}");
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn word(text: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&Listing::new(text.as_bytes()).word()?).into_owned())
    }

    #[test]
    fn words_are_read_as_shells_print_them() {
        for (printed, plain) in [
            (r"'it'\''s' rest", "it's"),
            ("'echo '\"'\"'q'", "echo 'q"),
            (r#""a\$b \"q\" \n""#, r#"a$b "q" \n"#),
            (r"$'a\nit\'s\303\251\E'", "a\nit's\u{e9}\u{1b}"),
            (r"$'\C-a\M-C\M-)\C-?\C-\ue0b0'", "\u{1}\u{e9}\u{7f}\u{1c}ue0b0"),
            (r"$'\ue0b0\M-b\M-\C-@\M-\C-\'", "\u{e0b0}\u{201c}"),
            (r"a\ b", "a b"),
            ("plain\nnext", "plain"),
            ("''", ""),
        ] {
            assert_eq!(word(printed).as_deref(), Some(plain), "{printed}");
        }
        for open in ["'a", "\"a", "\"a\\", "$'a", "$'a\\"] {
            assert_eq!(word(open), None, "{open}");
        }
    }

    #[test]
    fn a_list_ends_at_its_own_parenthesis() {
        let text = br#"=([0]="a)" [1]=$')\'' ["k)"]='(' ) rest"#;
        let mut listing = Listing::new(text);
        let Some(Assigned::List { printed }) = listing.assigned() else { panic!("no list") };
        assert_eq!(printed, &text[1..text.len() - 5]);
        assert_eq!(listing.word().as_deref(), Some(&b""[..]));
    }

    #[test]
    fn any_text_is_one_word_when_quoted() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote_bytes(b"it's\xff"), r"$'it\'s\377'");
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn what_is_quoted_is_read_back(bytes in prop::collection::vec(1u8.., 0..60)) {
            let word = quote_bytes(&bytes);
            prop_assert_eq!(Listing::new(word.as_bytes()).word(), Some(bytes));
        }

        #[test]
        fn any_listing_is_read_without_harm(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut listing = Listing::new(&text);
            let _ = listing.assigned();
            let _ = listing.word();
        }
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(40))]

        /// Many values at once: a shell takes longer to start than to print.
        #[test]
        fn bash_reads_what_we_quote_and_we_what_bash_does(
            values in prop::collection::vec(prop::collection::vec(1u8.., 0..40), 1..20)
        ) {
            let words: Vec<String> = values.iter().map(|value| quote_bytes(value)).collect();
            let script = format!("set -- {}; printf '%s\\0' \"$@\"; printf '%q\\0' \"$@\"; a=(\"$@\"); declare -p a", words.join(" "));
            for locale in ["C", "C.UTF-8"] {
                let output = Command::new("bash")
                    .args(["--norc", "-c", &script])
                    .env("LC_ALL", locale)
                    .output()
                    .expect("bash");
                let mut fields: Vec<&[u8]> = output.stdout.split(|b| *b == 0).collect();
                let declaration = fields.pop().expect("a declaration");
                let (plain, printed) = fields.split_at(values.len());
                prop_assert_eq!(plain, values.iter().map(Vec::as_slice).collect::<Vec<_>>());
                for (printed, value) in printed.iter().zip(&values) {
                    prop_assert_eq!(&Listing::new(printed).word(), &Some(value.clone()));
                }
                let mut listing = Listing::new(declaration);
                prop_assert!(listing.skip("declare -a a"));
                let is_list = matches!(listing.assigned(), Some(Assigned::List { .. }));
                prop_assert!(is_list);
                prop_assert_eq!(listing.line(), b"");
                prop_assert!(listing.is_empty());
            }
        }
    }
}
