//! The results as tables.

use super::results::{Cell, Results};
use super::{Language, Peer, cases, chart, of, ours};
use std::fmt::Write;

/// A comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Less is better.
    Seconds,
    Mebibytes,
    /// More is better.
    Rate,
}

pub(super) const ROWS: [Row; 8] = [
    row("cold", "a new session, to its first answer", Unit::Seconds),
    row("noop", "a warm run that does nothing", Unit::Seconds),
    row("echo", "a warm run that prints a word", Unit::Seconds),
    row("rate1", "runs a second, 1 session", Unit::Rate),
    row("rate16", "runs a second, 16 sessions at once", Unit::Rate),
    row("rate100", "runs a second, 100 sessions at once", Unit::Rate),
    row("output", "100 MB of output, to its last byte", Unit::Seconds),
    row("memory", "memory of an idle session, of 16", Unit::Mebibytes),
];

const fn row(key: &'static str, title: &'static str, unit: Unit) -> Row {
    Row { key, title, unit }
}

impl Unit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 0.001 => format!("{:.0} µs", value * 1e6),
            Self::Seconds if value < 0.01 => format!("{:.1} ms", value * 1e3),
            Self::Seconds if value < 1.0 => format!("{:.0} ms", value * 1e3),
            Self::Seconds => format!("{value:.1} s"),
            Self::Mebibytes => format!("{value:.1} MiB"),
            Self::Rate if value < 10.0 => format!("{value:.1}"),
            Self::Rate => format!("{value:.0}"),
        }
    }

    /// Returns how many times better the first is.
    fn factor(self, ours: f64, other: f64) -> f64 {
        match self {
            Self::Seconds | Self::Mebibytes => other / ours,
            Self::Rate => ours / other,
        }
    }
}

/// How ours compares with the others in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Better than each of them, or the only one that can do it.
    Ahead,
    Behind,
    Unknown,
}

impl Standing {
    fn shown(self) -> &'static str {
        match self {
            Self::Ahead => "yes",
            Self::Behind => "**no**",
            Self::Unknown => "–",
        }
    }
}

fn standing(results: &Results, row: Row, language: Language) -> Standing {
    match results.get(row.key, ours(language)) {
        None => Standing::Unknown,
        Some(Cell::Missing(_)) => Standing::Behind,
        Some(Cell::Value(own)) => {
            let is_less = |peer: &Peer| {
                let other = results.value(row.key, peer.key);
                other.is_none_or(|other| row.unit.factor(*own, other) > 1.0)
            };
            let is_ahead = of(language).skip(1).all(is_less);
            if is_ahead { Standing::Ahead } else { Standing::Behind }
        }
    }
}

fn standing_in_case(results: &Results, case: &str, language: Language) -> Standing {
    match results.case(case, ours(language)) {
        None => Standing::Unknown,
        Some(cases::HOLDS) => Standing::Ahead,
        Some(_) => Standing::Behind,
    }
}

fn cell(results: &Results, row: Row, peer: &Peer) -> String {
    match results.get(row.key, peer.key) {
        None => "–".to_owned(),
        Some(Cell::Missing(why)) => why.split(':').next().unwrap_or_default().to_owned(),
        Some(Cell::Value(value)) => {
            let shown = row.unit.show(*value);
            match results.value(row.key, ours(peer.language)) {
                Some(own) if peer.key != ours(peer.language) => {
                    let factor = row.unit.factor(own, *value);
                    let digits = usize::from(factor < 10.0);
                    format!("{shown} ({factor:.digits$} ×)")
                }
                Some(_) | None => format!("**{shown}**"),
            }
        }
    }
}

fn title(results: &Results, peer: &Peer) -> String {
    let version = results.name_of(peer.key).split(' ').nth(1).unwrap_or_default();
    match peer.title.split_once(',') {
        Some((name, more)) => format!("{name} {version},{more}"),
        None => format!("{} {version}", peer.title).trim().to_owned(),
    }
}

fn case_cell(results: &Results, case: &str, peer: &Peer) -> String {
    match results.case(case, peer.key) {
        None => "–".to_owned(),
        Some(cases::HOLDS) => "✓".to_owned(),
        Some(why) => format!("✗ {why}"),
    }
}

fn held(results: &Results, peer: &Peer) -> usize {
    let holds = |case: &&&str| results.case(case, peer.key) == Some(cases::HOLDS);
    cases::NAMES.iter().filter(holds).count()
}

pub(super) fn markdown(results: &Results) -> String {
    let mut text = format!("Measured on {}, on a virtual machine with 2 cores.\n", results.day);
    for (file, title) in chart::NAMES {
        let _ = write!(text, "\n![{title}](images/{file})\n");
    }
    for language in Language::ALL {
        let peers: Vec<_> = of(language).collect();
        let titles: Vec<_> = peers.iter().map(|peer| title(results, peer)).collect();
        let _ = write!(text, "\n| {language:?} | {} | ahead |\n", titles.join(" | "));
        let _ = writeln!(text, "|---|{}---|", "---|".repeat(peers.len()));
        for row in ROWS {
            let cells: Vec<_> = peers.iter().map(|peer| cell(results, row, peer)).collect();
            let ahead = standing(results, row, language).shown();
            let _ = writeln!(text, "| {} | {} | {ahead} |", row.title, cells.join(" | "));
        }
        for case in cases::NAMES {
            let cells: Vec<_> = peers.iter().map(|peer| case_cell(results, case, peer)).collect();
            let ahead = standing_in_case(results, case, language).shown();
            let _ = writeln!(text, "| {case} | {} | {ahead} |", cells.join(" | "));
        }
        let sums: Vec<_> =
            peers.iter().map(|peer| format!("{} of 12", held(results, peer))).collect();
        let _ = writeln!(text, "| hard cases that hold | {} | |", sums.join(" | "));
    }
    text
}

/// Returns the rows where we are not ahead, for a terminal.
pub(super) fn plain(results: &Results) -> String {
    let mut text = String::new();
    for language in Language::ALL {
        for row in ROWS {
            if standing(results, row, language) == Standing::Behind {
                let _ = writeln!(text, "  → {language:?}, {}: NOT AHEAD", row.title);
            }
        }
        for case in cases::NAMES {
            if standing_in_case(results, case, language) == Standing::Behind {
                let _ = writeln!(text, "  → {language:?}, {case}: NOT HELD");
            }
        }
    }
    if text.is_empty() { "  → ahead in every row\n".to_owned() } else { text }
}
