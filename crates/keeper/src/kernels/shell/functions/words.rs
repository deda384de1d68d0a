//! Words, and the bytes that they are made of.

use super::{Closer, Parser};

/// Where an expansion is. A here-document counts as quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Plain,
    DoubleQuotes,
}

/// Words.
impl Parser<'_> {
    pub(super) fn word(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                _ if is_delimiter(byte) => break,
                b'\\' => self.escape()?,
                b'\'' => self.single_quotes()?,
                b'"' => self.double_quotes()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::Plain)?,
                _ => self.at += 1,
            }
        }
        (self.at > start).then_some(())
    }

    pub(super) fn escape(&mut self) -> Option<()> {
        self.at += 2;
        (self.at <= self.text.len()).then_some(())
    }

    pub(super) fn single_quotes(&mut self) -> Option<()> {
        self.at += 1;
        self.at += self.rest().iter().position(|byte| *byte == b'\'')? + 1;
        Some(())
    }

    pub(super) fn double_quotes(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => return self.take(b'"'),
                b'\\' => self.escape()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::DoubleQuotes)?,
                _ => self.at += 1,
            }
        }
    }

    pub(super) fn backquotes(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'`' => return self.take(b'`'),
                b'\\' => self.escape()?,
                _ => self.at += 1,
            }
        }
    }

    pub(super) fn dollar(&mut self, context: Context) -> Option<()> {
        self.at += 1;
        match (self.rest(), context) {
            ([b'(', b'(', ..], _) => {
                self.at += 2;
                self.nested(Self::arithmetic)
            }
            ([b'(', ..], _) => {
                self.at += 1;
                self.substitution()
            }
            ([b'{', ..], _) => {
                self.at += 1;
                self.nested(|parser| parser.parameter(context))
            }
            // Shells differ in how they read `$'…'`, and in whether they look beyond a
            // line's end.
            ([b'\'', ..], Context::Plain) | ([b'\\', b'\n', ..], _) => None,
            _ => Some(()),
        }
    }

    pub(super) fn substitution(&mut self) -> Option<()> {
        let outer = std::mem::take(&mut self.here);
        self.aside(Self::possible_list).filter(|end| *end == Closer::Parenthesis)?;
        if !self.here.is_empty() {
            return None;
        }
        self.here = outer;
        self.take(b')')
    }

    pub(super) fn arithmetic(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b')' => {
                    self.at += 1;
                    return self.take(b')');
                }
                b'\\' => self.escape()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::DoubleQuotes)?,
                b'\'' | b'"' => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Parses what follows `${`. Quotes within quotes mean different things to different
    /// shells, and with different operators.
    pub(super) fn parameter(&mut self, context: Context) -> Option<()> {
        loop {
            match (self.peek()?, context) {
                (b'}', _) => return self.take(b'}'),
                (b'\\', _) => self.escape()?,
                (b'`', _) => self.backquotes()?,
                (b'$', _) => self.dollar(context)?,
                (b'\'', Context::Plain) => self.single_quotes()?,
                (b'"', Context::Plain) => self.double_quotes()?,
                (quote @ (b'\'' | b'"'), Context::DoubleQuotes) => self.harmless_quotes(quote)?,
                _ => self.at += 1,
            }
        }
    }

    /// Accepts quotes that end at the same place however they are read.
    pub(super) fn harmless_quotes(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b" _./:,@%+-=$".contains(&b))
        {
            self.at += 1;
        }
        self.take(quote)
    }
}

/// Bytes.
impl Parser<'_> {
    pub(super) fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    pub(super) fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let name =
            rest.get(..length).filter(|name| !name.first().is_none_or(u8::is_ascii_digit))?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        self.at += length;
        Some(name)
    }

    /// Returns which of the words is next, as a whole word.
    pub(super) fn reserved(&self, words: &[&'static str]) -> Option<Option<&'static str>> {
        for word in words {
            match self.rest().strip_prefix(word.as_bytes()) {
                // It may continue after the line's end.
                Some([b'\\', b'\n', ..]) => return None,
                Some(rest) if rest.first().is_none_or(|byte| is_delimiter(*byte)) => {
                    return Some(Some(word));
                }
                Some(_) | None => {}
            }
        }
        Some(None)
    }

    /// Skips blanks, joined lines, and a comment up to the end of its line.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.rest() {
                [b' ' | b'\t', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'#', rest @ ..] => {
                    let length = rest.iter().position(|byte| *byte == b'\n');
                    self.at += 1 + length.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Does the same with line ends, and the here-documents after them.
    pub(super) fn line_break(&mut self) -> Option<()> {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            self.here_documents()?;
            self.blanks();
        }
        Some(())
    }
}

/// Whether a byte ends a word.
fn is_delimiter(byte: u8) -> bool {
    b" \t\n;&|<>()".contains(&byte)
}
