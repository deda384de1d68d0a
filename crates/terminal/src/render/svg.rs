//! Renders a screen as a self-contained drawing.
//!
//! Each character has an explicit column, so that columns line up with any font of the
//! viewer. Lines under and through text are drawn, not left to the viewer.

use super::rows::{self, Cell, Look};
use crate::palette::{self, Rgb};
use sessile_protocol::Screen;
use std::fmt::Write;

/// Size of a character, in the drawing's units; the proportions of most fonts.
const WIDTH: usize = 9;
const HEIGHT: usize = 18;
const FONT_SIZE: usize = 15;
const BASELINE: usize = 14;

#[must_use]
pub fn svg(screen: &Screen) -> String {
    let (cols, rows) = rows::size(screen);
    let (width, height) = (cols * WIDTH, rows * HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         Liberation Mono, monospace\" font-size=\"{FONT_SIZE}\">\n"
    );
    if !screen.title.is_empty() {
        out.push_str("<title>");
        escape(&screen.title, &mut out);
        out.push_str("</title>\n");
    }
    rect(&mut out, (0, 0), (width, height), palette::BACKGROUND);
    for number in 0..rows {
        let row = rows::row(screen, number);
        let top = number * HEIGHT;
        for run in row.chunk_by(|a, b| a.look.paper == b.look.paper) {
            let paper = run[0].look.paper;
            if paper != palette::BACKGROUND {
                rect(&mut out, (run[0].col * WIDTH, top), (columns(run) * WIDTH, HEIGHT), paper);
            }
        }
        for run in row.chunk_by(goes_on) {
            write_run(&mut out, run, top + BASELINE);
        }
        for run in row.chunk_by(|a, b| a.look == b.look) {
            write_lines(&mut out, run, top);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn columns(run: &[Cell<'_>]) -> usize {
    run.iter().map(|cell| cell.width).sum()
}

/// Returns whether two cells can share one list of columns: viewers disagree on how many
/// entries marks and characters beyond 16 bits take.
fn goes_on(a: &Cell<'_>, b: &Cell<'_>) -> bool {
    let is_simple = |cell: &Cell<'_>| {
        let mut chars = cell.text.chars();
        cell.width == 1
            && chars.next().is_some_and(|ch| ch != ' ' && ch <= '\u{2fff}')
            && chars.next().is_none()
    };
    a.look == b.look && is_simple(a) && is_simple(b)
}

fn write_run(out: &mut String, run: &[Cell<'_>], baseline: usize) {
    let Some(first) = run.first() else { return };
    if run.iter().all(|cell| cell.text.trim().is_empty()) {
        return;
    }
    out.push_str("<text x=\"");
    if first.width == 2 {
        // A viewer's wide characters are rarely exactly twice as wide.
        let _ = write!(out, "{}\" text-anchor=\"middle", (first.col + 1) * WIDTH);
    } else {
        let columns: Vec<_> = run.iter().map(|cell| (cell.col * WIDTH).to_string()).collect();
        out.push_str(&columns.join(" "));
    }
    let Look { ink, bold, italic, .. } = first.look;
    let _ = write!(out, "\" y=\"{baseline}\" fill=\"{}\"", hex(ink));
    if bold {
        out.push_str(" font-weight=\"bold\"");
    }
    if italic {
        out.push_str(" font-style=\"italic\"");
    }
    out.push('>');
    run.iter().for_each(|cell| escape(cell.text, out));
    out.push_str("</text>\n");
}

fn write_lines(out: &mut String, run: &[Cell<'_>], top: usize) {
    let Some(Cell { col, look, .. }) = run.first() else { return };
    let size = (columns(run) * WIDTH, 1);
    if look.underline {
        rect(out, (col * WIDTH, top + BASELINE + 2), size, look.ink);
    }
    if look.strikethrough {
        rect(out, (col * WIDTH, top + HEIGHT / 2), size, look.ink);
    }
}

fn rect(out: &mut String, (x, y): (usize, usize), (width, height): (usize, usize), fill: Rgb) {
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
        hex(fill)
    );
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Escapes text. XML cannot represent control characters at all.
fn escape(text: &str, out: &mut String) {
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            ch if ch.is_control() => out.push('\u{fffd}'),
            ch => out.push(ch),
        }
    }
}
