//! avt and the state that we keep beside it. A panic in avt discards all of it.

use super::clusters::{self, Clusters, Kind};
use super::modes::{self, PrivateModes};
use super::replies::{Facts, Replies};
use super::sequences::{Scanner, Sequence};
use super::titles::Titles;
use crate::width;
use avt::parser::{AnsiMode, AnsiModes, DecMode, Function, Parser, State};
use avt::{ScreenKind, Terminal};
use sessile_protocol::TerminalSize;
use std::collections::HashSet;

pub(super) struct Core {
    pub(super) terminal: Terminal,
    pub(super) clusters: Clusters,
    pub(super) titles: Titles,
    pub(super) modes: PrivateModes,
    parser: Parser,
    scanner: Scanner,
    size: TerminalSize,
    history: usize,
    writing: Writing,
    /// Whether the cursor may count from the top of the scroll region.
    origin_seen: bool,
    /// How many clusters go without their marks before we look for room again.
    crowded: usize,
    /// The work done so far, in cells.
    pub(super) work: u64,
}

/// Insert or replace mode (IRM).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Over,
    Inserting,
}

/// Cells of capacity that narrowing may take for a moment: half as many are used, with 16
/// bytes each.
const MOST_CUT: u64 = 2_000_000;

/// Cost factor of operations that allocate both screens again, or write each cell by itself.
const WHOLE_SCREEN: u64 = 4;

/// Looking for room reads the whole screen, so it is not done for each cluster.
const CROWDED: usize = 4000;

impl Core {
    pub(super) fn new(size: TerminalSize, history: usize) -> Self {
        let (cols, rows) = (usize::from(size.cols).max(1), usize::from(size.rows).max(1));
        let Ok(terminal) = Terminal::with_scrollback(cols, rows, Some(history)) else {
            unreachable!("only a size of zero is refused")
        };
        Self {
            terminal,
            clusters: Clusters::default(),
            titles: Titles::default(),
            modes: PrivateModes::default(),
            parser: Parser::new(),
            scanner: Scanner::default(),
            size,
            history,
            writing: Writing::Over,
            origin_seen: false,
            crowded: 0,
            work: 0,
        }
    }

    pub(super) fn resize(&mut self, size: TerminalSize) {
        // avt cuts a row into narrower ones that keep its capacity, which is gigabytes for
        // a thousand columns cut to one. In steps of halves, lines that leave the history
        // are freed before the next cut. Only if necessary: each cut may leave a blank
        // where a wide character did not fit.
        let lines = u64::from(self.size.rows) + self.history as u64;
        let mut cols = self.size.cols;
        while lines * u64::from(cols).pow(2) / u64::from(size.cols) > MOST_CUT {
            cols /= 2;
            self.terminal.resize(usize::from(cols), usize::from(self.size.rows));
        }
        self.terminal.resize(usize::from(size.cols), usize::from(size.rows));
        self.size = size;
        self.work += WHOLE_SCREEN * self.area();
    }

    fn area(&self) -> u64 {
        u64::from(self.size.cols) * u64::from(self.size.rows)
    }

    /// Returns the approximate cost of an operation, in written cells.
    fn cost(&self, function: &Function) -> u64 {
        match function {
            Function::Ris | Function::Decaln => WHOLE_SCREEN * self.area(),
            Function::Ed(_)
            | Function::Decset(_)
            | Function::Decrst(_)
            | Function::Il(_)
            | Function::Dl(_)
            | Function::Su(_)
            | Function::Sd(_)
            | Function::Ri => self.area(),
            Function::Lf
            | Function::Nel
            | Function::El(_)
            | Function::Ech(_)
            | Function::Dch(_)
            | Function::Ich(_)
            | Function::Rep(_) => u64::from(self.size.cols),
            Function::Bs
            | Function::Cbt(_)
            | Function::Cha(_)
            | Function::Cht(_)
            | Function::Cnl(_)
            | Function::Cpl(_)
            | Function::Cr
            | Function::Ctc(_)
            | Function::Cub(_)
            | Function::Cud(_)
            | Function::Cuf(_)
            | Function::Cup(..)
            | Function::Cuu(_)
            | Function::Decrc
            | Function::Decsc
            | Function::Decstbm(..)
            | Function::Decstr
            | Function::G1d4(_)
            | Function::Gzd4(_)
            | Function::Ht
            | Function::Hts
            | Function::Osc(_)
            | Function::Print(_)
            | Function::Rm(_)
            | Function::Scorc
            | Function::Scosc
            | Function::Sgr(_)
            | Function::Si
            | Function::Sm(_)
            | Function::So
            | Function::Tbc(_)
            | Function::Vpa(_)
            | Function::Vpr(_)
            | Function::Xtwinops(_) => 1,
        }
    }

    /// Takes one character, or a run of plain ones, from the text. They are removed from
    /// the text before they are processed.
    pub(super) fn step(&mut self, text: &mut &str, replies: &mut Replies) {
        if self.parser.state == State::Ground {
            let plain = text.bytes().take_while(|byte| matches!(byte, b' '..=b'~')).count();
            if plain > 0 {
                let (run, rest) = text.split_at(plain);
                *text = rest;
                self.work += plain as u64;
                self.terminal.feed(run);
                return;
            }
        }
        let mut chars = text.chars();
        if let Some(ch) = chars.next() {
            *text = chars.as_str();
            self.take_char(ch, replies);
        }
    }

    fn take_char(&mut self, ch: char, replies: &mut Replies) {
        let before = self.parser.state;
        let function = self.parser.feed(ch);
        let after = self.parser.state;
        if let Some(function) = function {
            self.execute(function);
        }
        if before == State::Ground && after == State::Ground {
            return;
        }
        match self.scanner.look(before, ch, after) {
            Some(Sequence::Csi(params, last)) => {
                let params = params.to_owned();
                self.csi(&params, last, replies);
            }
            Some(Sequence::Osc { text, is_cut, end }) => {
                self.titles.osc(text);
                if !is_cut {
                    replies.osc(text, end);
                }
            }
            Some(Sequence::Escape('Z')) => replies.device_attributes(),
            Some(Sequence::Escape('=')) => self.modes.set_keypad(),
            Some(Sequence::Escape('>')) => self.modes.reset_keypad(),
            Some(Sequence::Escape(_)) | None => {}
        }
    }

    fn execute(&mut self, function: Function) {
        self.work += self.cost(&function);
        if let Function::Print(ch) = function {
            self.print(ch);
        } else if let Function::Rep(count) = function {
            // Eight bytes must not cause the work of 65535 characters; programs repeat a
            // character within a line.
            self.terminal.execute(Function::Rep(count.min(self.size.cols)));
        } else {
            self.note(&function);
            self.terminal.execute(function);
        }
    }

    fn print(&mut self, ch: char) {
        if width::is_mark(ch) {
            self.join(ch);
        } else if clusters::is_reserved(ch) {
            self.terminal.execute(Function::Print('\u{fffd}'));
        } else if ch != '\u{7f}' {
            // xterm ignores DEL, too.
            self.terminal.execute(Function::Print(ch));
        }
    }

    /// Keeps state that avt has but does not expose.
    fn note(&mut self, function: &Function) {
        let inserts = |modes: &AnsiModes| modes.as_slice().contains(&AnsiMode::Insert);
        if matches!(function, Function::Sm(modes) if inserts(modes)) {
            self.writing = Writing::Inserting;
        } else if matches!(function, Function::Rm(modes) if inserts(modes)) {
            self.writing = Writing::Over;
        } else if *function == Function::Ris {
            self.modes = PrivateModes::default();
            self.clusters = Clusters::default();
            self.writing = Writing::Over;
        } else if *function == Function::Decstr {
            self.modes.reset_softly();
            self.writing = Writing::Over;
            // avt leaves it on, xterm does not.
            self.terminal.execute(Function::Decrst(vec![DecMode::CursorKeys].into()));
        }
    }

    fn csi(&mut self, params: &str, last: char, replies: &mut Replies) {
        if let Some(asked) = params.strip_suffix('$').filter(|_| last == 'p') {
            self.tell_mode(asked, replies);
        } else if let Some(list) = params.strip_prefix('?').filter(|_| matches!(last, 'h' | 'l')) {
            list.split(';').filter_map(|mode| mode.parse().ok()).for_each(|mode| {
                self.switch(mode, last == 'h');
            });
        } else {
            self.titles.csi(params, last);
            let mut facts = || self.facts();
            replies.csi(params, last, &mut facts);
        }
    }

    fn switch(&mut self, mode: u16, is_on: bool) {
        if is_on {
            self.modes.set(mode);
        } else {
            self.modes.reset(mode);
        }
        self.origin_seen |= mode == modes::ORIGIN;
        // avt knows only its successors.
        if mode == modes::OLD_ALTERNATE {
            let modes = vec![DecMode::AltScreenBuffer].into();
            self.terminal.execute(if is_on {
                Function::Decset(modes)
            } else {
                Function::Decrst(modes)
            });
        }
    }

    fn tell_mode(&self, asked: &str, replies: &mut Replies) {
        let (prefix, number) = match asked.strip_prefix('?') {
            Some(number) => ("?", number),
            None => ("", asked),
        };
        let Ok(mode) = number.parse::<u16>() else { return };
        let state = match (prefix, mode) {
            ("?", modes::CURSOR_KEYS) => Some(self.terminal.cursor_key_app_mode()),
            ("?", modes::SHOW_CURSOR) => Some(self.terminal.cursor().visible),
            ("?", mode) if modes::ALTERNATES.contains(&mode) => {
                Some(self.terminal.active_screen_kind() == ScreenKind::Alternate)
            }
            ("?", mode) => self.modes.state(mode),
            ("", 4) => Some(self.writing == Writing::Inserting),
            _ => None,
        };
        replies.mode(prefix, mode, state);
    }

    fn facts(&mut self) -> Facts {
        let cursor = self.terminal.cursor();
        let col = cursor.col.min(usize::from(self.size.cols) - 1);
        let mut top = 0;
        // avt does not expose its origin, but moves the cursor there.
        if self.origin_seen {
            self.terminal.execute(Function::Cup(1, 1));
            top = self.terminal.cursor().row.min(cursor.row);
            let back = |at: usize| u16::try_from(at + 1).unwrap_or(u16::MAX);
            self.terminal.execute(Function::Cup(back(cursor.row - top), back(col)));
        }
        Facts {
            row: cursor.row - top + 1,
            col: col + 1,
            rows: self.size.rows,
            cols: self.size.cols,
        }
    }

    /// Adds a mark to the character before the cursor.
    fn join(&mut self, mark: char) {
        let cursor = self.terminal.cursor();
        let Some(line) = self.terminal.screen().line(cursor.row) else { return };
        let before = &line.cells()[..cursor.col.min(line.len())];
        let Some(col) = before.iter().rposition(|cell| cell.width() > 0) else { return };
        let (base, kind) = match before[col].width() {
            2 => (before[col].char(), Kind::Wide),
            _ => (before[col].char(), Kind::Narrow),
        };
        let Some(joined) = self.stand_in(base, kind, mark) else { return };
        let column = u16::try_from(col + 1).unwrap_or(u16::MAX);
        let modes = || vec![AnsiMode::Insert].into();
        self.terminal.execute(Function::Rm(modes()));
        self.terminal.execute([Function::Cha(column), Function::Print(joined)]);
        if self.writing == Writing::Inserting {
            self.terminal.execute(Function::Sm(modes()));
        }
    }

    /// Returns none if there is no room: the character stays without the mark.
    fn stand_in(&mut self, base: char, kind: Kind, mark: char) -> Option<char> {
        if let Ok(joined) = self.clusters.join(base, kind, mark) {
            return Some(joined);
        }
        self.crowded = self.crowded.saturating_sub(1);
        if self.crowded > 0 {
            return None;
        }
        self.crowded = CROWDED;
        self.work += self.area();
        let (primary, active) = (self.terminal.primary_screen(), self.terminal.screen());
        let used: HashSet<char> = primary
            .all_lines()
            .chain(active.all_lines())
            .flat_map(|line| line.chars())
            .filter(|ch| clusters::is_reserved(*ch))
            .collect();
        self.clusters.retain(&used);
        self.clusters.join(base, kind, mark).ok()
    }
}
