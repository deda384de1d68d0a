//! Splits text into what a terminal does with it: characters, motions, and much that is
//! invisible.

/// One action of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Print(char),
    Newline,
    Return,
    Back,
    /// A control sequence, `ESC [ first ; second last`.
    Sequence {
        first: Option<usize>,
        second: Option<usize>,
        last: char,
    },
    Save,
    Restore,
    /// One row up.
    Reverse,
    /// Switches to the alternate screen of full-screen programs.
    OtherScreen,
    /// Switches back to the unchanged main screen.
    MainScreen,
    /// Colours, titles, modes, bells.
    Unseen,
}

/// The tokens of a text, each with the offset where it ends.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// A search for the end of a string sequence has failed, so the next one would fail,
    /// too. Without this, many such sequences would take quadratic time.
    is_unterminated: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0, is_unterminated: false }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let c = self.rest().chars().next().filter(|c| wanted(*c))?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn escape(&mut self) -> Token {
        let Some(c) = self.take_if(|c| (' '..='~').contains(&c)) else { return Token::Unseen };
        match c {
            '[' => self.sequence(),
            ']' | 'P' | '_' | '^' | 'X' => self.string(),
            '7' => Token::Save,
            '8' => Token::Restore,
            'M' => Token::Reverse,
            'D' | 'E' => Token::Newline,
            // A choice of character sets and the like, with one more character.
            ' '..='/' => {
                while self.take_if(|c| (' '..='/').contains(&c)).is_some() {}
                self.take_if(|c| ('0'..='~').contains(&c));
                Token::Unseen
            }
            _ => Token::Unseen,
        }
    }

    /// Parses what follows `ESC [`. An incomplete sequence is dropped as far as it got.
    fn sequence(&mut self) -> Token {
        let start = self.at;
        while self.take_if(|c| ('0'..='?').contains(&c)).is_some() {}
        let parameters = &self.text[start..self.at];
        let mut is_plain = parameters.bytes().all(|b| b.is_ascii_digit() || b == b';');
        while self.take_if(|c| (' '..='/').contains(&c)).is_some() {
            is_plain = false;
        }
        match self.take_if(|c| ('@'..='~').contains(&c)) {
            Some(last) if is_plain => {
                let mut numbers = parameters.split(';').map(|number| number.parse().ok());
                let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
                Token::Sequence { first, second, last }
            }
            Some('h') if is_other_screen(parameters) => Token::OtherScreen,
            Some('l') if is_other_screen(parameters) => Token::MainScreen,
            Some(_) | None => Token::Unseen,
        }
    }

    /// Parses a title, a link's target or an image: up to BEL or `ESC \`. Without an end,
    /// what follows is taken for text.
    fn string(&mut self) -> Token {
        if self.is_unterminated {
            return Token::Unseen;
        }
        let rest = self.rest();
        let ends = [("\u{7}", 1), ("\u{1b}\\", 2), ("\u{9c}", 2)];
        let end = ends.iter().filter_map(|(end, size)| Some(rest.find(end)? + size)).min();
        match end {
            Some(end) => self.at += end,
            None => self.is_unterminated = true,
        }
        Token::Unseen
    }
}

/// Whether the set or reset modes concern the alternate screen.
fn is_other_screen(parameters: &str) -> bool {
    let mut modes = parameters.strip_prefix('?').unwrap_or_default().split(';');
    modes.any(|mode| matches!(mode, "47" | "1047" | "1049"))
}

impl Iterator for Tokens<'_> {
    type Item = (Token, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let token = match self.take()? {
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' => Token::Newline,
            '\r' => Token::Return,
            '\u{8}' => Token::Back,
            '\t' => Token::Print('\t'),
            '\u{1b}' => self.escape(),
            '\u{9b}' => self.sequence(),
            c if c.is_control() => Token::Unseen,
            c => Token::Print(c),
        };
        Some((token, self.at))
    }
}
