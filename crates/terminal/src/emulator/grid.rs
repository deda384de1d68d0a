//! Converts a row of avt's cells to spans.

use super::clusters::Clusters;
use avt::{Cell, Line, Pen};
use sessile_protocol::{Color, ScreenLine, Span, Style};

pub(super) fn line(line: &Line, clusters: &Clusters) -> ScreenLine {
    let blank = Cell::default();
    let cells = line.cells();
    let end = cells.iter().rposition(|cell| *cell != blank).map_or(0, |last| last + 1);
    let mut spans: Vec<Span> = Vec::new();
    let mut looks: Option<(Pen, bool)> = None;
    for cell in &cells[..end] {
        // The second column of a wide character.
        if cell.width() == 0 {
            continue;
        }
        let is_wide = cell.width() == 2;
        if looks != Some((*cell.pen(), is_wide)) {
            looks = Some((*cell.pen(), is_wide));
            spans.push(Span { text: String::new(), is_wide, style: style(cell.pen()) });
        }
        if let Some(span) = spans.last_mut() {
            clusters.write(cell.char(), &mut span.text);
        }
    }
    ScreenLine { spans, is_wrapped: line.is_wrapped() }
}

/// Appends the text of a row without trailing blanks.
pub(super) fn text(line: &Line, clusters: &Clusters, out: &mut String) {
    let begin = out.len();
    for ch in line.chars() {
        clusters.write(ch, out);
    }
    let end = begin + out[begin..].trim_end().len();
    out.truncate(end);
}

fn style(pen: &Pen) -> Style {
    Style {
        foreground: pen.foreground().map(color),
        background: pen.background().map(color),
        bold: pen.is_bold(),
        faint: pen.is_faint(),
        italic: pen.is_italic(),
        underline: pen.is_underline(),
        strikethrough: pen.is_strikethrough(),
        blink: pen.is_blink(),
        inverse: pen.is_inverse(),
    }
}

fn color(color: avt::Color) -> Color {
    match color {
        avt::Color::Indexed(index) => Color::Indexed(index),
        avt::Color::RGB(rgb) => Color::Rgb(rgb.r, rgb.g, rgb.b),
    }
}
