//! Redirections and here-documents.

use super::Parser;
use super::words::Context;

/// A here-document whose body has not come yet.
#[derive(Debug)]
pub(super) struct HereDocument {
    delimiter: Vec<u8>,
    tabs: Tabs,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tabs {
    Kept,
    Stripped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Literal,
    Expanded,
}

impl Parser<'_> {
    pub(super) fn redirections(&mut self) -> Option<()> {
        loop {
            let end = self.at;
            self.blanks();
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1;
            }
            match self.peek() {
                Some(b'<' | b'>') => self.redirection()?,
                Some(_) | None => {
                    self.at = end;
                    return Some(());
                }
            }
        }
    }

    pub(super) fn redirection(&mut self) -> Option<()> {
        let (length, tabs) = match self.rest() {
            [b'<', b'<', b'-', ..] => (3, Some(Tabs::Stripped)),
            [b'<', b'<', ..] => (2, Some(Tabs::Kept)),
            [b'<', b'&' | b'>', ..] | [b'>', b'&' | b'>' | b'|', ..] => (2, None),
            _ => (1, None),
        };
        self.at += length;
        self.blanks();
        let start = self.at;
        self.word()?;
        if let Some(tabs) = tabs {
            let (delimiter, body) = unquote(self.text.as_bytes().get(start..self.at)?)?;
            self.here.push(HereDocument { delimiter, tabs, body });
        }
        Some(())
    }

    /// Skips the here-documents that the last line announced. Called at the beginning of
    /// a line.
    pub(super) fn here_documents(&mut self) -> Option<()> {
        for here in std::mem::take(&mut self.here) {
            let start = self.at;
            let end = self.skip_to_delimiter(&here)?;
            match here.body {
                Body::Literal => {}
                Body::Expanded => self.check_expansions(start, end)?,
            }
        }
        Some(())
    }

    /// Passes the line with the delimiter; returns where that begins.
    pub(super) fn skip_to_delimiter(&mut self, here: &HereDocument) -> Option<usize> {
        while !self.rest().is_empty() {
            let start = self.at;
            let rest = self.rest();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &rest[..length];
            let tabs = match here.tabs {
                Tabs::Kept => 0,
                Tabs::Stripped => line.iter().take_while(|byte| **byte == b'\t').count(),
            };
            let is_delimiter = line[tabs..] == here.delimiter[..];
            self.at = (start + length + 1).min(self.text.len());
            if is_delimiter {
                return Some(start);
            }
        }
        None
    }

    /// Checks the expansions of a body: an expansion, or a backslash at the end of the
    /// last line, may contain what looks like the delimiter.
    pub(super) fn check_expansions(&self, start: usize, end: usize) -> Option<()> {
        let text = self.text.get(..end)?;
        let (here, found) = (Vec::new(), Vec::new());
        let mut body = Parser { text, at: start, depth: self.depth, here, found };
        body.nested(|body| {
            while let Some(byte) = body.peek() {
                match byte {
                    b'\\' if body.rest() == b"\\\n" => return None,
                    b'\\' => body.escape()?,
                    b'`' => body.backquotes()?,
                    b'$' => body.dollar(Context::DoubleQuotes)?,
                    _ => body.at += 1,
                }
            }
            Some(())
        })
    }
}

/// Returns the delimiter of a here-document, and what its quotes say about the body.
fn unquote(word: &[u8]) -> Option<(Vec<u8>, Body)> {
    let mut plain = Vec::new();
    let mut body = Body::Expanded;
    let mut rest = word;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'$' | b'`' | b'\n' => return None,
            b'\\' => {
                body = Body::Literal;
                let (escaped, after) = rest.split_first().filter(|(byte, _)| **byte != b'\n')?;
                plain.push(*escaped);
                rest = after;
            }
            quote @ (b'\'' | b'"') => {
                body = Body::Literal;
                let length = rest.iter().position(|byte| byte == quote)?;
                let inside = &rest[..length];
                if inside.iter().any(|byte| b"\\$`\n".contains(byte)) {
                    return None;
                }
                plain.extend_from_slice(inside);
                rest = &rest[length + 1..];
            }
            _ => plain.push(*byte),
        }
    }
    Some((plain, body))
}
