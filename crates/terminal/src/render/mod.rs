//! Renders a screen as text, as JSON, and as a picture.

mod ansi;
mod cells;
mod picture;
mod rows;
mod svg;

pub use ansi::ansi;
pub use cells::{CellLine, Cells, cells};
pub use picture::{PictureError, png};
pub use svg::svg;

use crate::width;
use sessile_protocol::{Screen, ScreenLine};

/// Returns the screen's text, without trailing blanks and without the empty lines at the end.
#[must_use]
pub fn text(screen: &Screen) -> String {
    let mut all = String::new();
    for line in &screen.lines {
        line.spans.iter().for_each(|span| all.push_str(&span.text));
        all.truncate(all.trim_end_matches(' ').len());
        all.push('\n');
    }
    all.truncate(all.trim_end_matches('\n').len());
    all
}

/// Returns the number of columns that the spans of a line take.
#[must_use]
pub fn columns(line: &ScreenLine) -> usize {
    let of_span = |is_wide: bool| if is_wide { 2 } else { 1 };
    line.spans.iter().map(|span| width::clusters(&span.text).count() * of_span(span.is_wide)).sum()
}

#[cfg(test)]
mod tests;
