//! Medians and ratios.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Table {
    samples: BTreeMap<String, Vec<Duration>>,
    order: Vec<String>,
}

impl Table {
    pub(crate) fn add(&mut self, name: &str, sample: Duration) {
        if !self.samples.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.samples.entry(name.to_owned()).or_default().push(sample);
    }

    pub(crate) fn median(&self, name: &str) -> Duration {
        self.quantile(name, 0.5)
    }

    pub(crate) fn quantile(&self, name: &str, q: f64) -> Duration {
        let mut sorted = self.samples.get(name).cloned().unwrap_or_default();
        sorted.sort();
        quantile(&sorted, q)
    }

    /// Prints each row, then the ratios with their limits.
    pub(crate) fn print(&self, ratios: &[(&str, &str, Option<f64>)]) {
        for name in &self.order {
            self.print_row(name);
        }
        for (name, base, limit) in ratios {
            print_ratio(&format!("{name} / {base}"), self.ratio(name, base, 0.5), *limit);
        }
    }

    pub(crate) fn print_row(&self, name: &str) {
        let [best, half, most] = [0.1, 0.5, 0.9].map(|q| micros(self.quantile(name, q)));
        println!("  {name:40} {half:>10} (p10 {best}, p90 {most})");
    }

    pub(crate) fn ratio(&self, name: &str, base: &str, q: f64) -> f64 {
        self.quantile(name, q).as_secs_f64() / self.quantile(base, q).as_secs_f64()
    }

    /// Prints the ratio of the slowest tenths, which a median hides.
    pub(crate) fn print_tail(&self, name: &str, base: &str, limit: f64) {
        let ratio = self.ratio(name, base, 0.9);
        print_ratio(&format!("the same at p90, {name} / {base}"), ratio, Some(limit));
    }
}

/// Returns the quantile of sorted samples.
pub(crate) fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let at = ((sorted.len().saturating_sub(1)) as f64 * q) as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// The limit of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    None,
}

pub(crate) fn print_ratio(name: &str, ratio: f64, limit: Option<f64>) {
    print_held(name, ratio, limit.map_or(Limit::None, Limit::AtMost));
}

pub(crate) fn print_held(name: &str, value: f64, limit: Limit) {
    let (holds, verdict) = match limit {
        Limit::AtMost(limit) => (value <= limit, format!("to hold: ≤ {limit}")),
        Limit::AtLeast(limit) => (value >= limit, format!("to hold: ≥ {limit}")),
        Limit::None => {
            println!("  → {name}: {value:.2}");
            return;
        }
    };
    let missed = if holds { "" } else { ", MISSED" };
    println!("  → {name}: {value:.2} ({verdict}{missed})");
}

pub(crate) fn micros(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    if us < 10_000.0 { format!("{us:.0} µs") } else { format!("{:.1} ms", us / 1000.0) }
}
