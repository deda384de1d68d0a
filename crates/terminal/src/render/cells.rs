//! A screen as JSON.

use crate::width;
use serde_json::{Map, Value, json};
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
/// Columns and rows count from zero; `width` is in columns. The cursor is null when hidden.
/// All lines are present; the rest of a line after its last span is blank. A colour is one
/// of the sixteen names (`red`, `bright_red`), `color16` to `color255` of the palette, or
/// `#rrggbb`; without one it is the terminal's default. Of the attributes (`bold`, `faint`,
/// `italic`, `underline`, `strikethrough`, `blink`, `inverse`) only those that are set are
/// present, and `is_wrapped` only in lines that continue in the next one.
#[must_use]
pub fn cells(screen: &Screen) -> Value {
    let lines: Vec<_> = screen.lines.iter().enumerate().map(|(row, one)| line(row, one)).collect();
    json!({
        "size": {"cols": screen.size.cols, "rows": screen.size.rows},
        "cursor": screen.cursor.map(|cursor| json!({"col": cursor.col, "row": cursor.row})),
        "title": screen.title,
        "is_alternate": screen.is_alternate,
        "lines": lines,
    })
}

fn line(row: usize, line: &ScreenLine) -> Value {
    let mut col = 0;
    let mut text = String::new();
    let mut spans = Vec::with_capacity(line.spans.len());
    for one in &line.spans {
        let width = width::clusters(&one.text).count() * if one.is_wide { 2 } else { 1 };
        spans.push(span(one, col, width));
        text.push_str(&one.text);
        col += width;
    }
    let mut value = json!({"row": row, "text": text.trim_end_matches(' '), "spans": spans});
    if line.is_wrapped {
        value["is_wrapped"] = true.into();
    }
    value
}

fn span(span: &Span, col: usize, width: usize) -> Value {
    let mut fields = Map::new();
    fields.insert("col".into(), col.into());
    fields.insert("width".into(), width.into());
    fields.insert("text".into(), span.text.as_str().into());
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
    for (name, color) in [("foreground", foreground), ("background", background)] {
        if let Some(color) = color {
            fields.insert(name.into(), color_name(color).into());
        }
    }
    let flags = [
        ("is_wide", span.is_wide),
        ("bold", bold),
        ("faint", faint),
        ("italic", italic),
        ("underline", underline),
        ("strikethrough", strikethrough),
        ("blink", blink),
        ("inverse", inverse),
    ];
    for (name, _) in flags.iter().filter(|(_, is_set)| *is_set) {
        fields.insert((*name).into(), true.into());
    }
    Value::Object(fields)
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
