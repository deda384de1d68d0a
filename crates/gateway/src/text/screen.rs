//! Output as a person finally sees it: without colours, with progress bars and spinners
//! in their final state.
//!
//! The screen has as many rows and columns as the text needs. A column is a character,
//! whatever its width: progress bars rewrite like with like. The content of a full-screen
//! program is gone when it has left its screen.
//!
//! This is for text that was not written to a terminal, or of which all lines count, and
//! it maps each line back to the original. The final screen of a terminal with a size is
//! computed in `sessile_terminal`.

use super::tokens::{Token, Tokens};
use std::borrow::Cow;

/// Number of rows, counted from the end, that `clear` and absolute positions refer to.
const HEIGHT: usize = 24;

/// A text as it is finally seen.
#[derive(Clone, Debug)]
pub struct RenderedText<'a> {
    pub text: Cow<'a, str>,
    /// Where each line begins, here and in the original text; empty when the two are the same.
    lines: Vec<(usize, usize)>,
}

impl<'a> RenderedText<'a> {
    /// Returns a text as it was written.
    pub(super) fn untouched(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), lines: Vec::new() }
    }

    /// Returns rewritten lines, each with its offset in the original.
    pub(super) fn of_lines(text: String, lines: Vec<(usize, usize)>) -> Self {
        Self { text: Cow::Owned(text), lines }
    }

    #[must_use]
    pub fn into_owned(self) -> RenderedText<'static> {
        RenderedText { text: Cow::Owned(self.text.into_owned()), lines: self.lines }
    }

    /// Returns the offset in the original; where lines were rewritten, that of the line.
    #[must_use]
    pub fn origin(&self, at: usize) -> usize {
        match self.lines.partition_point(|(here, _)| *here <= at) {
            0 => at,
            n => self.lines[n - 1].1,
        }
    }
}

/// Writes the text to a screen, and returns what is seen. Plain text stays as it is.
#[must_use]
pub fn settle(text: &str) -> RenderedText<'_> {
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(is_plain) {
        return RenderedText { text: Cow::Borrowed(text), lines: Vec::new() };
    }
    let mut screen = Screen::new(text.len());
    for (token, end) in Tokens::of(text) {
        screen.show(token, end);
    }
    screen.finish()
}

#[derive(Debug, Default)]
struct Line {
    cells: Vec<char>,
    /// Its offset in the original.
    origin: usize,
    /// Blanks at its end may have overwritten something.
    is_rewritten: bool,
}

#[derive(Debug)]
struct Screen {
    /// Never empty.
    lines: Vec<Line>,
    row: usize,
    column: usize,
    saved: (usize, usize),
    /// The main screen, its row and column, while the alternate one is shown.
    aside: Option<(Vec<Line>, usize, usize)>,
    /// How many blanks cursor motions may still create, so that a few bytes cannot make a
    /// large screen.
    blanks: usize,
}

impl Screen {
    fn new(blanks: usize) -> Self {
        let lines = vec![Line::default()];
        Self { lines, row: 0, column: 0, saved: (0, 0), aside: None, blanks }
    }

    fn show(&mut self, token: Token, end: usize) {
        match token {
            Token::Print(c) => self.print(c),
            Token::Newline => {
                self.row += 1;
                self.column = 0;
                if self.row == self.lines.len() {
                    self.lines.push(Line { origin: end, ..Line::default() });
                }
            }
            Token::Return => self.column = 0,
            Token::Back => self.column = self.column.saturating_sub(1),
            Token::Save => self.saved = (self.row, self.column),
            Token::Restore => self.go(self.saved.0, self.saved.1),
            Token::Reverse => self.row = self.row.saturating_sub(1),
            Token::Sequence { first, second, last } => self.obey(first, second, last),
            Token::OtherScreen => self.put_aside(end),
            Token::MainScreen => {
                if let Some((lines, row, column)) = self.aside.take() {
                    (self.lines, self.row, self.column) = (lines, row, column);
                }
            }
            Token::Unseen => {}
        }
    }

    fn put_aside(&mut self, end: usize) {
        if self.aside.is_none() {
            let other = vec![Line { origin: end, ..Line::default() }];
            let main = std::mem::replace(&mut self.lines, other);
            self.aside = Some((main, self.row, self.column));
            (self.row, self.column) = (0, 0);
        }
    }

    fn print(&mut self, c: char) {
        let line = &mut self.lines[self.row];
        let missing = self.column.saturating_sub(line.cells.len()).min(self.blanks);
        self.blanks -= missing;
        line.cells.extend(std::iter::repeat_n(' ', missing));
        self.column = self.column.min(line.cells.len());
        match line.cells.get_mut(self.column) {
            Some(cell) => {
                *cell = c;
                line.is_rewritten = true;
            }
            None => line.cells.push(c),
        }
        self.column += 1;
    }

    /// Moves to an existing row: there is nothing below the last.
    fn go(&mut self, row: usize, column: usize) {
        self.row = row.min(self.lines.len() - 1);
        self.column = column;
    }

    /// Returns the first row that a person still sees.
    fn top(&self) -> usize {
        self.lines.len().saturating_sub(HEIGHT)
    }

    fn obey(&mut self, first: Option<usize>, second: Option<usize>, last: char) {
        let by = first.unwrap_or(1).max(1);
        let place = |number: Option<usize>| number.unwrap_or(1).max(1) - 1;
        match last {
            'A' => self.go(self.row.saturating_sub(by), self.column),
            'B' | 'e' => self.go(self.row.saturating_add(by), self.column),
            'C' | 'a' => self.column = self.column.saturating_add(by),
            'D' => self.column = self.column.saturating_sub(by),
            'E' => self.go(self.row.saturating_add(by), 0),
            'F' => self.go(self.row.saturating_sub(by), 0),
            'G' | '`' => self.column = place(first),
            'H' | 'f' => self.go(self.top().saturating_add(place(first)), place(second)),
            'd' => self.go(self.top().saturating_add(place(first)), self.column),
            's' => self.saved = (self.row, self.column),
            'u' => self.go(self.saved.0, self.saved.1),
            'J' => self.erase_display(first.unwrap_or(0)),
            'K' => self.erase_line(first.unwrap_or(0)),
            'X' => self.erase_cells(self.column, self.column.saturating_add(by)),
            _ => {}
        }
    }

    fn erase_line(&mut self, which: usize) {
        let line = &mut self.lines[self.row];
        line.is_rewritten = true;
        match which {
            0 => line.cells.truncate(self.column),
            1 => self.erase_cells(0, self.column.saturating_add(1)),
            _ => line.cells.clear(),
        }
    }

    fn erase_cells(&mut self, from: usize, to: usize) {
        let line = &mut self.lines[self.row];
        line.is_rewritten = true;
        let to = to.min(line.cells.len());
        if let Some(cells) = line.cells.get_mut(from..to) {
            cells.fill(' ');
        }
    }

    fn erase_display(&mut self, which: usize) {
        let top = self.top();
        match which {
            0 => {
                self.erase_line(0);
                self.lines.truncate(self.row + 1);
            }
            1 => {
                for line in &mut self.lines[top.min(self.row)..self.row] {
                    line.cells.clear();
                }
                self.erase_line(1);
            }
            _ => {
                self.lines.truncate(top + 1);
                self.lines[top].cells.clear();
                self.go(top, 0);
            }
        }
    }

    fn finish(mut self) -> RenderedText<'static> {
        // A program that was killed has not left its screen.
        if let Some((mut main, _, _)) = self.aside.take() {
            let is_empty = main.last().is_some_and(|line| line.cells.is_empty());
            main.truncate(main.len() - usize::from(is_empty));
            main.append(&mut self.lines);
            self.lines = main;
        }
        let mut text = String::new();
        let mut lines = Vec::with_capacity(self.lines.len());
        for (number, line) in self.lines.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            lines.push((text.len(), line.origin));
            text.extend(&line.cells);
            if line.is_rewritten {
                let end = text.trim_end_matches(' ').len();
                text.truncate(end.max(lines[number].0));
            }
        }
        RenderedText { text: Cow::Owned(text), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &str) -> String {
        settle(text).text.into_owned()
    }

    #[test]
    fn a_progress_bar_is_seen_as_it_ended() {
        assert_eq!(seen("  0%\r 50%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(seen("\x1b[2K\rloading…\x1b[2K\rok\n"), "ok\n");
        assert_eq!(seen("Downloading\r\x1b[KDone\n"), "Done\n");
        assert_eq!(seen("working |\x08/\x08-\x08\\\x08 \ndone"), "working\ndone");
        assert_eq!(seen("hello\rJ\n"), "Jello\n");
    }

    #[test]
    fn lines_that_are_written_anew_from_above_are_seen_once() {
        let twice = "a: 1\nb: 1\n\x1b[2A\x1b[2Ka: 2\n\x1b[2Kb: 2\n";
        assert_eq!(seen(twice), "a: 2\nb: 2\n");
        assert_eq!(seen("one\ntwo\n\x1b[1A\rsix\n"), "one\nsix\n");
        assert_eq!(seen("x\n\x1b[s1\x1b[u2\n"), "x\n2\n");
        assert_eq!(seen("old\nold\x1b[H\x1b[2Jnew"), "new");
    }

    #[test]
    fn what_a_full_screen_program_drew_is_gone_when_it_has_left() {
        assert_eq!(seen("a\n\x1b[?1049h\x1b[2J\x1b[1;1H~\n~\n\x1b[?1049lb\n"), "a\nb\n");
        assert_eq!(seen("a\n\x1b[?1049h\x1b[?1049hone\n\x1b[?47l\x1b[?47lb"), "a\nb");
        assert_eq!(seen("a\n\x1b[?1049hkilled"), "a\nkilled");
        assert_eq!(seen("a\x1b[?25;1049hkilled"), "a\nkilled");
    }

    #[test]
    fn colours_titles_and_links_are_not_seen() {
        assert_eq!(seen("\x1b[1;31merror\x1b[0m: no\n"), "error: no\n");
        assert_eq!(seen("\x1b]0;title\x07text"), "text");
        assert_eq!(seen("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\."), "link.");
        assert_eq!(seen("\x1b[?25lhidden\x1b[?25h\x1b(B\x07"), "hidden");
        assert_eq!(seen("never ended \x1b]0;text\nmore"), "never ended 0;text\nmore");
        assert_eq!(seen("cut \x1b[3"), "cut ");
    }

    #[test]
    fn windows_line_ends_and_blanks_at_line_ends_are_harmless() {
        assert_eq!(seen("a\r\nb\r\n"), "a\nb\n");
        assert_eq!(seen("a  \n\x1b[1mb  \x1b[0m\n"), "a  \nb  \n");
    }

    #[test]
    fn a_few_bytes_make_no_large_screen() {
        let far = "\x1b[999999999C\x1b[999999999Bx\n".repeat(1000);
        assert!(seen(&far).len() < 2 * far.len() + 2000);
        let open = "\x1b]".repeat(200_000);
        assert_eq!(seen(&open), "");
    }

    #[test]
    fn a_line_is_found_again_in_the_original() {
        let text = "\x1b[1mone\x1b[0m\ntwo\n";
        let settled = settle(text);
        let at = settled.text.find("two").unwrap();
        assert_eq!(settled.origin(at), text.find("two").unwrap());
        assert_eq!(settle("plain\ntext").origin(7), 7);
    }

    /// Returns text with many control sequences.
    fn terminal() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-z ]{0,6}",
            "\x1b\\[[0-9;?]{0,4}[A-Za-z`]",
            "[\r\n\x08\t\x07\x1b]",
            Just("\x1b]0;t\x07".to_owned()),
            "\\PC{0,3}",
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn plain_text_is_as_it_was(text in "(\\PC|\n|\t){0,200}") {
            prop_assert_eq!(seen(&text), text);
        }

        #[test]
        fn nothing_that_a_terminal_obeys_is_left(text in terminal()) {
            let settled = settle(&text);
            let is_seen = |c: char| !c.is_control() || c == '\n' || c == '\t';
            prop_assert!(settled.text.chars().all(is_seen));
            prop_assert!(settled.text.len() <= 2 * text.len());
            prop_assert_eq!(seen(&settled.text), settled.text.clone());
            for at in 0..=settled.text.len() {
                prop_assert!(settled.origin(at) <= text.len());
            }
        }
    }
}
