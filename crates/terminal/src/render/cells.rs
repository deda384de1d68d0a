//! A screen with its styles, for JSON.

use crate::width;
use serde::Serialize;
use sessile_protocol::{Color, Screen, ScreenLine, Span, Style};

const NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright_black",
    "bright_red",
    "bright_green",
    "bright_yellow",
    "bright_blue",
    "bright_magenta",
    "bright_cyan",
    "bright_white",
];

/// A screen with colours and attributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cells {
    size: Size,
    /// None while it is hidden.
    cursor: Option<Cursor>,
    title: String,
    is_alternate: bool,
    pub lines: Vec<CellLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Size {
    cols: u16,
    rows: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Cursor {
    col: u16,
    row: u16,
}

/// A line of a screen, as runs of characters with the same style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellLine {
    row: usize,
    /// Without trailing blanks.
    text: String,
    spans: Vec<CellSpan>,
    /// Whether it continues in the next line.
    #[serde(skip_serializing_if = "is_false")]
    is_wrapped: bool,
}

/// Characters of one style. Without a colour it has the terminal's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CellSpan {
    col: usize,
    /// In columns.
    width: usize,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreground: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    is_wide: bool,
    #[serde(skip_serializing_if = "is_false")]
    bold: bool,
    #[serde(skip_serializing_if = "is_false")]
    faint: bool,
    #[serde(skip_serializing_if = "is_false")]
    italic: bool,
    #[serde(skip_serializing_if = "is_false")]
    underline: bool,
    #[serde(skip_serializing_if = "is_false")]
    strikethrough: bool,
    #[serde(skip_serializing_if = "is_false")]
    blink: bool,
    #[serde(skip_serializing_if = "is_false")]
    inverse: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Returns the screen as runs of characters with the same style:
///
/// ```json
/// {
///   "size": {"cols": 80, "rows": 24},
///   "cursor": {"col": 2, "row": 1},
///   "title": "vim",
///   "is_alternate": true,
///   "lines": [
///     {"row": 0, "text": "ok 界", "spans": [
///       {"col": 0, "width": 2, "text": "ok", "foreground": "green", "bold": true},
///       {"col": 2, "width": 1, "text": " "},
///       {"col": 3, "width": 2, "text": "界", "is_wide": true}
///     ]}
///   ]
/// }
/// ```
///
/// Columns and rows count from zero. All lines are present; the rest of a line after its
/// last span is blank. A colour is one of the sixteen names (`red`, `bright_red`), `color16`
/// to `color255` of the palette, or `#rrggbb`.
#[must_use]
pub fn cells(screen: &Screen) -> Cells {
    Cells {
        size: Size { cols: screen.size.cols, rows: screen.size.rows },
        cursor: screen.cursor.map(|cursor| Cursor { col: cursor.col, row: cursor.row }),
        title: screen.title.clone(),
        is_alternate: screen.is_alternate,
        lines: screen.lines.iter().enumerate().map(|(row, one)| line(row, one)).collect(),
    }
}

fn line(row: usize, line: &ScreenLine) -> CellLine {
    let mut col = 0;
    let mut text = String::new();
    let mut spans = Vec::with_capacity(line.spans.len());
    for one in &line.spans {
        let width = width::clusters(&one.text).count() * if one.is_wide { 2 } else { 1 };
        spans.push(span(one, col, width));
        text.push_str(&one.text);
        col += width;
    }
    text.truncate(text.trim_end_matches(' ').len());
    CellLine { row, text, spans, is_wrapped: line.is_wrapped }
}

fn span(span: &Span, col: usize, width: usize) -> CellSpan {
    // Destructured, so that a new attribute cannot be forgotten.
    let Style {
        foreground,
        background,
        bold,
        faint,
        italic,
        underline,
        strikethrough,
        blink,
        inverse,
    } = span.style;
    CellSpan {
        col,
        width,
        text: span.text.clone(),
        foreground: foreground.map(color_name),
        background: background.map(color_name),
        is_wide: span.is_wide,
        bold,
        faint,
        italic,
        underline,
        strikethrough,
        blink,
        inverse,
    }
}

fn color_name(color: Color) -> String {
    match color {
        Color::Indexed(index) => match NAMES.get(usize::from(index)) {
            Some(name) => (*name).to_owned(),
            None => format!("color{index}"),
        },
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}
