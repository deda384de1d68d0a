//! Prints rates, times and costs.

use super::cost::{Kind, Look, Usage};
use super::crowd::Turn;
use super::page::Page;
use crate::stats::{Limit, micros, quantile};
use sessile_protocol::Language;
use std::collections::BTreeMap;
use std::time::Duration;

/// From this many busy sessions on, both cores should be used, and no session should wait
/// out of proportion.
const HELD: [usize; 2] = [16, 100];

/// All turns, by the number of busy sessions.
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
    /// Runs that the cost covers, including those that were answered late.
    runs: usize,
}

impl Step {
    fn rate(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the CPU microseconds of a run in server, keeper and kernel, and in the
    /// processes that they have forked.
    fn costs(&self) -> [f64; 4] {
        let kinds = [Kind::Server, Kind::Keeper, Kind::Kernel].map(|kind| self.cost.of(kind));
        let forks = kinds.iter().map(|usage| usage.forks).sum();
        let [server, keeper, kernel] = kinds.map(|usage| usage.all);
        [server, keeper, kernel, forks].map(|time| self.each(time))
    }

    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.runs.max(1) as f64
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

    pub(super) fn print(&mut self, language: Language, page: &mut Page) {
        let one = self.steps.get(&1).map(Step::rate);
        println!("    sessions   runs/s  × one     median        p90        p99  p99/median");
        for (sessions, step) in &mut self.steps {
            step.took.sort();
            let [half, most, worst] = [0.5, 0.9, 0.99].map(|q| quantile(&step.took, q));
            let rate = format!("{:.0}", step.rate());
            let ratio = one.map_or_else(String::new, |one| format!("{:.2}", step.rate() / one));
            let tail = worst.as_secs_f64() / half.as_secs_f64();
            let [half, most, worst] = [half, most, worst].map(micros);
            println!(
                "    {sessions:>8} {rate:>8} {ratio:>6} {half:>10} {most:>10} {worst:>10} {tail:>11.1}",
            );
            let mut cells =
                vec![format!("{sessions} of {language}"), rate, ratio, half, most, worst];
            cells.extend(step.costs().map(|cost| format!("{cost:.0}")));
            page.rate(&cells);
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
                page.held(&name, step.rate() / one, Limit::AtLeast(2.0));
            }
            let tail = quantile(&step.took, 0.99).as_secs_f64();
            let name = format!("{language}: p99 / median of {sessions} busy sessions");
            page.held(&name, tail / quantile(&step.took, 0.5).as_secs_f64(), Limit::AtMost(10.0));
        }
    }
}

fn print_cost(sessions: usize, step: &Step) {
    let each = |time: Duration| step.each(time);
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
