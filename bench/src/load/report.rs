//! Rates, times and costs, printed.

use super::cost::{Kind, Look, Usage};
use super::crowd::Turn;
use crate::stats::{Limit, micros, print_held, quantile};
use sessile_protocol::Language;
use std::collections::BTreeMap;
use std::time::Duration;

/// From so many busy sessions on, both cores are to be used, and nobody is to
/// wait out of proportion.
const HELD: [usize; 2] = [16, 100];

/// All turns, by how many sessions were busy.
#[derive(Debug, Default)]
pub(super) struct Rates {
    steps: BTreeMap<usize, Step>,
}

#[derive(Debug)]
struct Step {
    answered: usize,
    elapsed: Duration,
    took: Vec<Duration>,
    cost: Look,
    /// Runs that the cost is for: those that were answered late, too.
    runs: usize,
}

impl Step {
    pub(super) fn rate(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }
}

impl Rates {
    pub(super) fn add(&mut self, sessions: usize, turn: Turn) {
        let runs = turn.took.len();
        let Some(step) = self.steps.get_mut(&sessions) else {
            let Turn { driven, took, cost } = turn;
            let (answered, elapsed) = (driven.answered, driven.elapsed);
            self.steps.insert(sessions, Step { answered, elapsed, took, cost, runs });
            return;
        };
        step.answered += turn.driven.answered;
        step.elapsed += turn.driven.elapsed;
        step.took.extend(turn.took);
        step.cost = step.cost.plus(&turn.cost);
        step.runs += runs;
    }

    pub(super) fn print(&mut self, language: Language) {
        let one = self.steps.get(&1).map(Step::rate);
        println!("    sessions   runs/s  × one     median        p90        p99  p99/median");
        for (sessions, step) in &mut self.steps {
            step.took.sort();
            let [half, most, worst] = [0.5, 0.9, 0.99].map(|q| quantile(&step.took, q));
            println!(
                "    {sessions:>8} {:>8.0} {:>6} {:>10} {:>10} {:>10} {:>11.1}",
                step.rate(),
                one.map_or_else(String::new, |one| format!("{:.2}", step.rate() / one)),
                micros(half),
                micros(most),
                micros(worst),
                worst.as_secs_f64() / half.as_secs_f64()
            );
        }
        println!("    what one run costs, CPU µs (of which in the system)");
        println!(
            "    sessions        server        keeper        kernel  their forks        client    all   rest of machine"
        );
        for (sessions, step) in &self.steps {
            print_cost(*sessions, step);
        }
        for sessions in HELD {
            let Some(step) = self.steps.get(&sessions) else { continue };
            if let Some(one) = one {
                let name = format!("{language}: rate of {sessions} busy sessions / of one");
                print_held(&name, step.rate() / one, Limit::AtLeast(2.0));
            }
            let tail = quantile(&step.took, 0.99).as_secs_f64();
            let name = format!("{language}: p99 / median of {sessions} busy sessions");
            print_held(&name, tail / quantile(&step.took, 0.5).as_secs_f64(), Limit::AtMost(10.0));
        }
    }
}

fn print_cost(sessions: usize, step: &Step) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / step.runs.max(1) as f64;
    let kind = |kind| {
        let Usage { all, system, .. } = step.cost.of(kind);
        format!("{:.0} ({:.0})", each(all), each(system))
    };
    let kinds = [Kind::Server, Kind::Keeper, Kind::Kernel, Kind::Client];
    let forks: Duration = kinds.iter().map(|kind| step.cost.of(*kind).forks).sum();
    let own: Duration = kinds.iter().map(|kind| step.cost.of(*kind).all).sum();
    println!(
        "    {sessions:>8} {:>13} {:>13} {:>13} {:>12.0} {:>13} {:>6.0} {:>17.0}",
        kind(Kind::Server),
        kind(Kind::Keeper),
        kind(Kind::Kernel),
        each(forks),
        kind(Kind::Client),
        each(own + forks),
        each(step.cost.machine.saturating_sub(own + forks)),
    );
}
