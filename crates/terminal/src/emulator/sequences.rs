//! Control sequences that avt ignores: it parses them, but does nothing for queries and for
//! sequences that only concern the keyboard.
//!
//! The scanner follows the states of avt's parser, so that both agree on where a sequence
//! begins and ends.

use avt::parser::State;

/// Longer sequences are neither queries nor readable titles.
const MOST_CSI: usize = 256;
const MOST_OSC: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terminator {
    Bell,
    StringTerminator,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sequence<'a> {
    /// The text between `ESC [` and the final letter, and that letter.
    Csi(&'a str, char),
    Osc {
        text: &'a str,
        is_cut: bool,
        end: Terminator,
    },
    /// `ESC` and a letter.
    Escape(char),
}

#[derive(Debug, Default)]
pub(super) struct Scanner {
    text: String,
    is_cut: bool,
    /// An `ESC` came in an OSC string; it ends the string if `\` follows.
    is_ending: bool,
}

impl Scanner {
    /// Looks at a character that took the parser from one state to another.
    pub(super) fn look(&mut self, before: State, ch: char, after: State) -> Option<Sequence<'_>> {
        match after {
            State::CsiEntry => self.begin(),
            State::OscString if before != State::OscString => self.begin(),
            State::OscString => self.push(ch, MOST_OSC),
            State::CsiParam | State::CsiIntermediate => self.push(ch, MOST_CSI),
            State::Escape => self.is_ending = before == State::OscString,
            State::Ground => return self.finish(before, ch),
            State::EscapeIntermediate
            | State::CsiIgnore
            | State::DcsEntry
            | State::DcsParam
            | State::DcsIntermediate
            | State::DcsPassthrough
            | State::DcsIgnore
            | State::SosPmApcString => self.is_ending = false,
        }
        None
    }

    fn begin(&mut self) {
        self.text.clear();
        self.is_cut = false;
        self.is_ending = false;
    }

    fn push(&mut self, ch: char, most: usize) {
        if ch < ' ' || ch == '\u{7f}' {
            return;
        }
        if self.text.len() + ch.len_utf8() > most {
            self.is_cut = true;
        } else {
            self.text.push(ch);
        }
    }

    fn finish(&mut self, before: State, ch: char) -> Option<Sequence<'_>> {
        let was_ending = std::mem::take(&mut self.is_ending);
        let (text, is_cut) = (self.text.as_str(), self.is_cut);
        match (before, ch) {
            (State::CsiEntry | State::CsiParam | State::CsiIntermediate, '@'..='~') => {
                let text = if before == State::CsiEntry { "" } else { text };
                (!is_cut).then_some(Sequence::Csi(text, ch))
            }
            (State::OscString, '\u{7}') => {
                Some(Sequence::Osc { text, is_cut, end: Terminator::Bell })
            }
            (State::OscString, '\u{9c}') => {
                Some(Sequence::Osc { text, is_cut, end: Terminator::StringTerminator })
            }
            (State::Escape, '\\') if was_ending => {
                Some(Sequence::Osc { text, is_cut, end: Terminator::StringTerminator })
            }
            (State::Escape, '0'..='~') => Some(Sequence::Escape(ch)),
            _ => None,
        }
    }
}
