//! A screen as text, as JSON, and as a picture.

mod cells;
mod picture;
mod rows;
mod svg;

pub use cells::cells;
pub use picture::{PictureError, png};
pub use svg::svg;

use sessile_protocol::Screen;

/// The screen's text, without the blanks at the ends of its lines and without
/// the empty lines below the last one.
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

#[cfg(test)]
mod tests;
