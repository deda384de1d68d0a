//! The cells of a screen, with their final colours.
//!
//! Invariant: a row has as many columns as its screen, whatever its spans contain.

use crate::palette::{self, Rgb};
use crate::width;
use sessile_protocol::{Screen, Style, TerminalSize};

/// A character and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    pub(super) col: usize,
    /// One or two columns.
    pub(super) width: usize,
    /// A character with its marks.
    pub(super) text: &'a str,
    pub(super) look: Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) ink: Rgb,
    pub(super) paper: Rgb,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) strikethrough: bool,
}

impl Look {
    fn new(style: Style) -> Self {
        let mut ink = style.foreground.map_or(palette::FOREGROUND, palette::rgb);
        let mut paper = style.background.map_or(palette::BACKGROUND, palette::rgb);
        if style.inverse {
            (ink, paper) = (paper, ink);
        }
        if style.faint {
            ink = palette::between(ink, paper);
        }
        Self {
            ink,
            paper,
            bold: style.bold,
            italic: style.italic,
            underline: style.underline,
            strikethrough: style.strikethrough,
        }
    }
}

/// Returns the size, limited: a screen that came over a socket may claim any size.
pub(super) fn size(screen: &Screen) -> (usize, usize) {
    let side = |length: u16| usize::from(length.clamp(1, TerminalSize::MOST));
    (side(screen.size.cols), side(screen.size.rows))
}

/// Returns the cells of a row from the left, including blank ones; that of the cursor is inverse.
pub(super) fn row(screen: &Screen, row: usize) -> Vec<Cell<'_>> {
    let (cols, _) = size(screen);
    let mut cells = Vec::with_capacity(cols);
    let mut col = 0;
    let spans = screen.lines.get(row).map_or(&[][..], |line| &line.spans);
    for span in spans {
        let width = if span.is_wide { 2 } else { 1 };
        let look = Look::new(span.style);
        for text in width::clusters(&span.text) {
            if col + width > cols {
                break;
            }
            cells.push(Cell { col, width, text, look });
            col += width;
        }
    }
    let look = Look::new(Style::default());
    cells.extend((col..cols).map(|col| Cell { col, width: 1, text: " ", look }));
    if let Some(cursor) = screen.cursor.filter(|cursor| usize::from(cursor.row) == row) {
        let at = usize::from(cursor.col);
        if let Some(cell) =
            cells.iter_mut().find(|cell| (cell.col..cell.col + cell.width).contains(&at))
        {
            std::mem::swap(&mut cell.look.ink, &mut cell.look.paper);
        }
    }
    cells
}
