//! Renders a screen as escape sequences for another terminal.

use sessile_protocol::{Color, Screen, Style};
use std::fmt::Write;

/// Draws the screen on a terminal that is at least as large, from its upper left corner,
/// and places the cursor.
#[must_use]
pub fn ansi(screen: &Screen) -> String {
    let mut out = String::from("\x1b[?25l\x1b[H");
    for (row, line) in screen.lines.iter().enumerate() {
        if row > 0 {
            out.push_str("\r\n");
        }
        for span in &line.spans {
            let _ = write!(out, "\x1b[0{}m{}", attributes(&span.style), span.text);
        }
        out.push_str("\x1b[0m\x1b[K");
    }
    out.push_str("\x1b[J");
    if let Some(cursor) = screen.cursor {
        let _ = write!(out, "\x1b[{};{}H\x1b[?25h", cursor.row + 1, cursor.col + 1);
    }
    out
}

fn attributes(style: &Style) -> String {
    let mut codes = String::new();
    let flags = [
        (style.bold, 1),
        (style.faint, 2),
        (style.italic, 3),
        (style.underline, 4),
        (style.blink, 5),
        (style.inverse, 7),
        (style.strikethrough, 9),
    ];
    for (_, code) in flags.into_iter().filter(|(is_set, _)| *is_set) {
        let _ = write!(codes, ";{code}");
    }
    for (color, base) in [(style.foreground, 38), (style.background, 48)] {
        let _ = match color {
            Some(Color::Indexed(index)) => write!(codes, ";{base};5;{index}"),
            Some(Color::Rgb(red, green, blue)) => write!(codes, ";{base};2;{red};{green};{blue}"),
            None => Ok(()),
        };
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Emulator;
    use sessile_protocol::TerminalSize;

    #[test]
    fn what_it_draws_is_the_screen() {
        let size = TerminalSize { cols: 30, rows: 5 };
        let mut shown = Emulator::new(size);
        shown
            .feed("a\x1b[1;31mred\x1b[0m 界 😀\r\n\x1b[48;5;200mx\x1b[0m\r\n\x1b[7mend".as_bytes());
        let mut drawn = Emulator::new(size);
        drawn.feed(b"something\r\nelse\r\n\r\n\r\nthat goes");
        drawn.feed(ansi(&shown.screen()).as_bytes());
        let mut expected = shown.screen();
        // Written and unwritten blanks look the same.
        let mut found = drawn.screen();
        for line in expected.lines.iter_mut().chain(&mut found.lines) {
            while line.spans.last().is_some_and(|s| s.style.is_plain() && s.text.trim().is_empty())
            {
                line.spans.pop();
            }
        }
        assert_eq!(found, expected);
    }
}
