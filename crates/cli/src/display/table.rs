//! Tables that fit the terminal: wide columns are cut, and if that is not enough, the
//! least important ones are left out.

use super::words::{cut, width};
use super::{Colour, Page};

/// Blanks between two columns.
const GAP: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    head: &'static str,
    is_number: bool,
    /// Its cells may be cut down to this width.
    least: usize,
    /// Columns with a higher rank are left out first; those with 0 never are.
    rank: u8,
}

impl Column {
    /// A column whose cells are always shown whole.
    pub(super) fn whole(head: &'static str) -> Self {
        Self { head, is_number: false, least: usize::MAX, rank: 0 }
    }

    pub(super) fn number(head: &'static str) -> Self {
        Self { is_number: true, ..Self::whole(head) }
    }

    /// A column whose cells may be cut, down to this width.
    pub(super) fn cut(head: &'static str, least: usize) -> Self {
        Self { least, ..Self::whole(head) }
    }

    /// Makes it optional; the highest rank is left out first.
    pub(super) fn optional(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    pub(super) fn painted(text: impl Into<String>, colour: Colour) -> Self {
        Self { text: text.into(), colour: Some(colour) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), colour: None }
    }
}

pub(super) fn table(columns: &[Column], rows: &[Vec<Cell>], page: Page) -> String {
    let widest = |(i, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| width(&cell.text));
        cells.max().unwrap_or(0).max(width(column.head)).min(page.width)
    };
    let wanted: Vec<usize> = columns.iter().enumerate().map(widest).collect();
    let shown = fit(columns, &wanted, page.width);
    let mut text = String::new();
    let heads: Vec<Cell> = columns.iter().map(|c| Cell::painted(c.head, Colour::Bold)).collect();
    for row in std::iter::once(&heads).chain(rows) {
        text.push_str(&line(columns, row, &shown, page));
        text.push('\n');
    }
    text
}

/// Returns the width of each column; `None` where it is left out.
fn fit(columns: &[Column], wanted: &[usize], room: usize) -> Vec<Option<usize>> {
    let mut shown: Vec<Option<usize>> = wanted.iter().copied().map(Some).collect();
    let least = |i: usize| columns[i].least.min(wanted[i]);
    while taken(&shown) > room {
        let narrowest: Vec<Option<usize>> =
            shown.iter().enumerate().map(|(i, width)| width.map(|_| least(i))).collect();
        if taken(&narrowest) > room {
            let last = (0..columns.len())
                .filter(|i| shown[*i].is_some() && columns[*i].rank > 0)
                .max_by_key(|i| columns[*i].rank);
            match last {
                Some(i) => shown[i] = None,
                // The lines are cut.
                None => return narrowest,
            }
            continue;
        }
        // Takes one from the widest column that can be cut.
        let widest = (0..columns.len())
            .filter(|i| shown[*i].is_some_and(|width| width > least(*i)))
            .max_by_key(|i| shown[*i]);
        match widest.and_then(|i| shown[i].as_mut()) {
            Some(width) => *width -= 1,
            None => return shown,
        }
    }
    shown
}

fn taken(shown: &[Option<usize>]) -> usize {
    let widths = shown.iter().flatten();
    let gaps = GAP * widths.clone().count().saturating_sub(1);
    widths.fold(gaps, |sum, width| sum.saturating_add(*width))
}

fn line(columns: &[Column], row: &[Cell], shown: &[Option<usize>], page: Page) -> String {
    let mut line = String::new();
    // Blanks are written before a cell and not after it, so that no line ends with any.
    let (mut blanks, mut room) = (0, page.width);
    for ((cell, column), width_of) in row.iter().zip(columns).zip(shown) {
        let Some(width_of) = width_of.map(|width| width.min(room)) else { continue };
        let text = cut(&cell.text, width_of);
        let rest = width_of - width(&text);
        let (before, after) = if column.is_number { (rest, 0) } else { (0, rest) };
        if text.is_empty() {
            blanks += width_of + GAP;
        } else {
            line.push_str(&" ".repeat(blanks + before));
            line.push_str(&match cell.colour {
                Some(colour) => page.paint.text(colour, &text),
                None => text,
            });
            blanks = after + GAP;
        }
        room = room.saturating_sub(width_of + GAP);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::Paint;
    use super::*;

    fn shown(width: usize) -> String {
        let columns = [
            Column::whole("ID"),
            Column::number("RUNS"),
            Column::cut("DIRECTORY", 6).optional(1),
            Column::cut("COMMAND", 8),
        ];
        let row = |cells: [&str; 4]| cells.map(Cell::from).to_vec();
        let rows = [
            row(["sess_01", "7", "/home/me/project", "make -j test"]),
            row(["sess_02", "", "", "echo 日本語 日本語 日本語 日本語"]),
        ];
        table(&columns, &rows, Page { width, paint: Paint::Plain })
    }

    #[test]
    fn a_table_is_as_wide_as_it_needs_to_be() {
        let text = "\
ID       RUNS  DIRECTORY         COMMAND
sess_01     7  /home/me/project  make -j test
sess_02                          echo 日本語 日本語 日本語 日本語
";
        assert_eq!(shown(200), text);
        assert_eq!(shown(usize::MAX), text);
    }

    #[test]
    fn what_does_not_fit_is_cut_then_left_out() {
        assert_eq!(
            shown(40),
            "\
ID       RUNS  DIRECTORY     COMMAND
sess_01     7  /home/me/pr…  make -j te…
sess_02                      echo 日本…
"
        );
        assert_eq!(
            shown(28),
            "ID       RUNS  COMMAND\nsess_01     7  make -j test\nsess_02        echo 日本語 …\n"
        );
        for width in 1..60 {
            let text = shown(width);
            assert!(text.lines().all(|line| super::width(line) <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn colours_take_no_room() {
        let page = Page { width: 80, paint: Paint::Colours };
        let rows = [vec![Cell::painted("ok", Colour::Green), "x".into()]];
        let text = table(&[Column::whole("STATE"), Column::whole("A")], &rows, page);
        assert_eq!(text, "\x1b[1mSTATE\x1b[0m  \x1b[1mA\x1b[0m\n\x1b[32mok\x1b[0m     x\n");
    }
}
