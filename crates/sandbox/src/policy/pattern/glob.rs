//! One pattern without braces, as parts between slashes.

use super::PatternError;

/// A pattern without braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Part>,
}

/// The part between two slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// `**`: any number of names, including none.
    Any,
    /// A name without wildcards.
    Name(Box<[u8]>),
    /// A name with wildcards.
    Wild(Box<[Piece]>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Byte(u8),
    /// `*`: any number of characters.
    Star,
    /// `?`: one character.
    One,
    /// `[a-z]`: one of these, or with `!` one of the others.
    Class {
        not: bool,
        ranges: Box<[(char, char)]>,
    },
}

/// The state of a match after some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    at: Vec<bool>,
    has_matched: bool,
}

/// How specific a pattern is: more fixed characters, then fewer `**`, then fewer `*`,
/// then fewer wildcards for one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Specificity {
    fixed: usize,
    any: std::cmp::Reverse<usize>,
    stars: std::cmp::Reverse<usize>,
    ones: std::cmp::Reverse<usize>,
}

impl Glob {
    /// Parses a glob; `text` is one choice of the whole pattern `all`.
    pub(super) fn parse(all: &str, text: &str) -> Result<Self, PatternError> {
        let body = text.trim_matches('/');
        let mut parts = Vec::new();
        // A slash other than the last one ties a pattern to the workspace.
        if !text.starts_with('/') && !body.contains('/') {
            parts.push(Part::Any);
        }
        for part in body.split('/').filter(|part| !part.is_empty()) {
            let part = Part::parse(all, part)?;
            if part != Part::Any || parts.last() != Some(&Part::Any) {
                parts.push(part);
            }
        }
        // `**/*` is everything, including the workspace itself.
        if let [Part::Any, Part::Wild(pieces)] = parts.as_slice()
            && **pieces == [Piece::Star]
        {
            parts.pop();
        }
        Ok(Self { parts })
    }

    /// Whether it has no wildcard but a `**` for any depth at its beginning.
    pub(super) fn is_literal(&self) -> bool {
        let names = self.parts.strip_prefix(&[Part::Any]).unwrap_or(&self.parts);
        !names.is_empty() && names.iter().all(|part| matches!(part, Part::Name(_)))
    }

    /// Whether every path matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.parts == [Part::Any]
    }

    /// Returns the fixed names that every match begins with.
    pub(crate) fn beginning(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map_while(|part| match part {
            Part::Name(name) => Some(&**name),
            Part::Any | Part::Wild(_) => None,
        })
    }

    /// Whether these names match.
    pub(crate) fn matches(&self, names: &[&[u8]]) -> bool {
        matches_from(&self.parts, names)
    }

    /// Returns the state of the match after these names, and whether any prefix of them
    /// matched. Two paths with the same state have the same matches beneath them.
    pub(crate) fn standing(&self, names: &[&[u8]]) -> Standing {
        let mut at = vec![false; self.parts.len() + 1];
        at[0] = true;
        let mut has_matched = self.pass_any(&mut at);
        for name in names {
            let mut next = vec![false; at.len()];
            for (n, part) in self.parts.iter().enumerate().filter(|(n, _)| at[*n]) {
                match part {
                    Part::Any => next[n] = true,
                    Part::Name(_) | Part::Wild(_) => next[n + 1] |= part.matches(name),
                }
            }
            at = next;
            has_matched |= self.pass_any(&mut at);
        }
        Standing { at, has_matched }
    }

    /// Lets each `**` stand for nothing. Returns whether the end is reached.
    fn pass_any(&self, at: &mut [bool]) -> bool {
        for (n, part) in self.parts.iter().enumerate() {
            at[n + 1] |= at[n] && *part == Part::Any;
        }
        at[self.parts.len()]
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let mut found = [0; 4];
        for part in &self.parts {
            match part {
                Part::Any => found[1] += 1,
                Part::Name(name) => found[0] += name.len(),
                Part::Wild(pieces) => {
                    for piece in pieces {
                        match piece {
                            Piece::Byte(_) => found[0] += 1,
                            Piece::Star => found[2] += 1,
                            Piece::One | Piece::Class { .. } => found[3] += 1,
                        }
                    }
                }
            }
        }
        let [fixed, any, stars, ones] = found;
        let fewer = std::cmp::Reverse;
        Specificity { fixed, any: fewer(any), stars: fewer(stars), ones: fewer(ones) }
    }
}

/// Matches greedily, with one position to backtrack to: a later `**` makes an earlier
/// one's choice irrelevant, so this takes at most names × parts steps.
fn matches_from(parts: &[Part], names: &[&[u8]]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        match parts.get(p) {
            Some(Part::Any) => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some(part) if n < names.len() && part.matches(names[n]) => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            None if n == names.len() => return true,
            Some(_) | None => {}
        }
        match back {
            Some((at, from)) if from < names.len() => {
                back = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
            Some(_) | None => return false,
        }
    }
}

impl Part {
    fn parse(all: &str, text: &str) -> Result<Self, PatternError> {
        match text {
            "**" => return Ok(Self::Any),
            "." => return Err(PatternError::Dots(all.to_owned(), ".")),
            ".." => return Err(PatternError::Dots(all.to_owned(), "..")),
            _ => {}
        }
        let mut pieces = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '*' if rest.peek() == Some(&'*') => {
                    return Err(PatternError::DoubleStar(all.to_owned()));
                }
                '*' => pieces.push(Piece::Star),
                '?' => pieces.push(Piece::One),
                '[' => pieces.push(class(all, &mut rest)?),
                '\\' => {
                    let c = rest.next().ok_or(PatternError::Unclosed(all.to_owned(), '\\'))?;
                    push(&mut pieces, c);
                }
                _ => push(&mut pieces, c),
            }
        }
        let bytes: Option<Vec<u8>> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Byte(byte) => Some(*byte),
                Piece::Star | Piece::One | Piece::Class { .. } => None,
            })
            .collect();
        Ok(bytes.map_or_else(|| Self::Wild(pieces.into()), |name| Self::Name(name.into())))
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Name(fixed) => **fixed == *name,
            Self::Wild(pieces) => pieces_match(pieces, name),
        }
    }
}

fn push(pieces: &mut Vec<Piece>, c: char) {
    pieces.extend(c.encode_utf8(&mut [0; 4]).bytes().map(Piece::Byte));
}

/// Parses what follows a `[`.
fn class(
    all: &str,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<Piece, PatternError> {
    let unclosed = || PatternError::Unclosed(all.to_owned(), '[');
    let not = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let mut first = rest.next().ok_or_else(unclosed)?;
        // A `]` that comes first is literal.
        if first == ']' && !ranges.is_empty() {
            return Ok(Piece::Class { not, ranges: ranges.into() });
        }
        if first == '\\' {
            first = rest.next().ok_or_else(unclosed)?;
        }
        let mut ahead = rest.clone();
        let last = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                *rest = ahead;
                last
            }
            _ => first,
        };
        if first > last {
            return Err(PatternError::Backwards(all.to_owned(), first, last));
        }
        ranges.push((first, last));
    }
}

/// As for whole paths: greedy, with one position to backtrack to.
fn pieces_match(pieces: &[Piece], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        match pieces.get(p) {
            Some(Piece::Star) => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some(piece) if n < name.len() => {
                if let Some(length) = piece.takes(&name[n..]) {
                    (p, n) = (p + 1, n + length);
                    continue;
                }
            }
            None if n == name.len() => return true,
            Some(_) | None => {}
        }
        match back {
            Some((at, from)) if from < name.len() => {
                back = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
            Some(_) | None => return false,
        }
    }
}

impl Piece {
    /// Returns how many bytes it matches at the beginning of a non-empty text; none if it
    /// does not match.
    fn takes(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => (text[0] == *byte).then_some(1),
            Self::Star => None,
            Self::One => Some(first_character(text).1),
            Self::Class { not, ranges } => {
                let (c, length) = first_character(text);
                let within =
                    c.is_some_and(|c| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)));
                (within != *not).then_some(length)
            }
        }
    }
}

/// Returns the first character and its length; an invalid byte stands alone.
fn first_character(text: &[u8]) -> (Option<char>, usize) {
    let end = text.len().min(4);
    (1..=end)
        .find_map(|length| {
            let c = std::str::from_utf8(&text[..length]).ok()?.chars().next()?;
            Some((Some(c), length))
        })
        .unwrap_or((None, 1))
}
