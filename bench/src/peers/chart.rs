//! The results as charts: bars on a logarithmic scale, in SVG that is readable on light and
//! dark pages.

use super::results::Results;
use super::table::{ROWS, Row, Unit};
use super::{Language, of, ours};
use std::fmt::Write;

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.group { font-weight: 600 }
.note { fill: #6e7781 }
.ours { fill: #0969da }
.peer { fill: #afb8c1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #8d96a0 }
  .ours { fill: #4493f8 }
  .peer { fill: #545d68 }
}";

const WIDTH: f64 = 760.0;
const LABELS: f64 = 190.0;
const BARS: f64 = 450.0;
const LINE: f64 = 22.0;

/// The files and titles of the charts.
pub(super) const NAMES: [(&str, &str); 4] = [
    ("peers-warm.svg", "A warm run that does nothing (less is better)"),
    ("peers-many.svg", "Runs a second, by sessions that are busy at once (more is better)"),
    ("peers-cold.svg", "A new session, to its first answer (less is better)"),
    ("peers-memory.svg", "Memory of an idle session (less is better)"),
];

/// The rows of each chart.
const SHOWN: [&[&str]; 4] = [&["noop"], &["rate1", "rate16", "rate100"], &["cold"], &["memory"]];

pub(super) fn all(results: &Results) -> impl Iterator<Item = (&'static str, String)> {
    let shown = NAMES.into_iter().zip(SHOWN);
    shown.map(|((file, title), rows)| (file, picture(results, title, rows)))
}

fn picture(results: &Results, title: &str, keys: &[&str]) -> String {
    let rows: Vec<Row> = ROWS.into_iter().filter(|row| keys.contains(&row.key)).collect();
    let scale = Scale::of(results, &rows);
    let mut body = String::new();
    let mut y = 20.0;
    let _ = writeln!(body, r#"<text class="title" x="0" y="{y}">{title}</text>"#);
    y += LINE;
    for language in Language::ALL {
        for row in &rows {
            y += LINE * 0.5;
            let _ = writeln!(
                body,
                r#"<text class="group" x="0" y="{y}">{}</text>"#,
                heading(language, *row)
            );
            y += LINE * 0.4;
            for peer in of(language) {
                let is_ours = peer.key == ours(language);
                let class = if is_ours { "ours" } else { "peer" };
                let middle = y + 13.0;
                let _ = writeln!(
                    body,
                    r#"<text x="{LABELS}" y="{middle}" text-anchor="end">{}</text>"#,
                    peer.title
                );
                let from = LABELS + 10.0;
                let (width, note) = match results.value(row.key, peer.key) {
                    Some(value) => (scale.width(value), row.unit.show(value)),
                    None => (0.0, "no answer".to_owned()),
                };
                let _ = writeln!(
                    body,
                    r#"<rect class="{class}" x="{from}" y="{:.1}" width="{width:.1}" height="15" rx="2"/>"#,
                    y + 1.0
                );
                let _ = writeln!(
                    body,
                    r#"<text x="{:.1}" y="{middle}">{note}</text>"#,
                    from + width + 6.0
                );
                y += LINE;
            }
            y += LINE * 0.4;
        }
    }
    y += LINE * 0.6;
    let _ = writeln!(
        body,
        r#"<text class="note" x="0" y="{y}">Logarithmic scale. Measured on {} on a machine with 2 cores.</text>"#,
        results.day
    );
    let height = y + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}\n</style>\n{body}</svg>\n"
    )
}

fn heading(language: Language, row: Row) -> String {
    match row.unit {
        Unit::Rate => format!("{language:?}, {}", row.title.trim_start_matches("runs a second, ")),
        Unit::Seconds | Unit::Mebibytes => format!("{language:?}"),
    }
}

/// From half of the least value to the greatest.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(results: &Results, rows: &[Row]) -> Self {
        let peers = || Language::ALL.into_iter().flat_map(of);
        let values =
            rows.iter().flat_map(|row| peers().filter_map(|peer| results.value(row.key, peer.key)));
        let (mut least, mut most) = (f64::INFINITY, f64::MIN_POSITIVE);
        for value in values {
            least = least.min(value);
            most = most.max(value);
        }
        Self { least: least / 2.0, most }
    }

    fn width(&self, value: f64) -> f64 {
        ((value / self.least).ln() / (self.most / self.least).ln() * BARS).max(1.0)
    }
}
