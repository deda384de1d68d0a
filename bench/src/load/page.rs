//! Results, printed as they come and kept for the documentation.

use crate::page;
use crate::stats::{Limit, print_held};
use std::fmt::Write;
use std::path::Path;

#[derive(Debug, Default)]
pub(super) struct Page {
    rates: String,
    held: String,
}

impl Page {
    /// Adds a row to the table of rates.
    pub(super) fn rate(&mut self, cells: &[String]) {
        let _ = writeln!(self.rates, "| {} |", cells.join(" | "));
    }

    /// Adds a number with a limit.
    pub(super) fn held(&mut self, name: &str, value: f64, limit: Limit) {
        print_held(name, value, limit);
        let (limit, holds) = match limit {
            Limit::AtMost(limit) => (format!("≤ {limit}"), value <= limit),
            Limit::AtLeast(limit) => (format!("≥ {limit}"), value >= limit),
            Limit::None => return,
        };
        let missed = if holds { "" } else { ", **missed**" };
        let _ = writeln!(self.held, "| {name} | {limit} | {value:.2}{missed} |");
    }

    pub(super) fn publish(&self, path: &Path) -> anyhow::Result<()> {
        let text = format!(
            "Measured on {}, on a virtual machine with 2 cores.\n\n\
             | busy sessions | runs/s | × one | median | p90 | p99 | CPU µs a run: server | keeper | kernel | forks |\n\
             |---|---|---|---|---|---|---|---|---|---|\n{}\n\
             | what | to hold | measured |\n|---|---|---|\n{}",
            page::day(),
            self.rates,
            self.held
        );
        page::replace(path, "load", &text)
    }
}
