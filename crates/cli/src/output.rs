//! Printing. A reader that closes the pipe ends the output without a panic.

use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints one JSON document, on one line.
pub(crate) fn json(answer: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    all(&mut io::stdout().lock(), text.as_bytes())
}

pub(crate) fn all(to: &mut impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Formats a table with columns as wide as needed.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(heads[i].len())
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut row = String::new();
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(row, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line(&mut heads.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    text
}
