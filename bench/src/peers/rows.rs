//! The measured work, one part at a time, on all peers in turns.

use super::cases;
use super::driver::{Driver, Outcome};
use super::results::{Cell, Results};
use super::{Language, Part};
use crate::stats::quantile;
use serde_json::{Value, json};
use std::time::Duration;

const BIG: u64 = 100_000_000;
/// Number of sessions whose memory is measured.
const IDLE: u64 = 16;

pub(super) fn measure(
    part: Part,
    language: Language,
    drivers: &mut [Driver],
    results: &mut Results,
) -> anyhow::Result<()> {
    match part {
        Part::Cold => cold(language, drivers, results),
        Part::Warm => {
            let nothing = Loop { sessions: 1, code: language.nothing(), expect: "" };
            let echo = Loop { sessions: 1, code: language.echo(), expect: "hi" };
            warm("noop", nothing, drivers, results)?;
            warm("echo", echo, drivers, results)
        }
        Part::Many => many(language, drivers, results),
        Part::Output => output(language, drivers, results),
        Part::Memory => memory(language, drivers, results),
        Part::Cases => cases::measure(language, drivers, results),
    }
}

fn cold(language: Language, drivers: &mut [Driver], results: &mut Results) -> anyhow::Result<()> {
    const ROUNDS: usize = 7;
    let mut looped = vec![Looped::default(); drivers.len()];
    let order = json!({"do": "cold", "code": language.nothing()});
    for _ in 0..ROUNDS {
        for (driver, looped) in drivers.iter_mut().zip(&mut looped) {
            match number(&driver.ask(&order, Duration::from_secs(30))?, "seconds") {
                Ok(seconds) => looped.took.push(Duration::from_secs_f64(seconds)),
                Err(why) => looped.failure = Some(why),
            }
        }
    }
    for (driver, looped) in drivers.iter().zip(looped) {
        results.set("cold", driver.peer.key, looped.median());
    }
    Ok(())
}

/// The work of busy sessions.
#[derive(Clone, Copy)]
struct Loop {
    sessions: usize,
    code: &'static str,
    expect: &'static str,
}

/// The result of some work, over all turns.
#[derive(Clone, Default)]
struct Looped {
    took: Vec<Duration>,
    elapsed: f64,
    failure: Option<String>,
}

impl Looped {
    fn add(&mut self, outcome: &Outcome) {
        match (list(outcome), number(outcome, "elapsed")) {
            (Ok(took), Ok(elapsed)) => {
                self.took.extend(took);
                self.elapsed += elapsed;
            }
            (Err(why), _) | (_, Err(why)) => self.failure = Some(why),
        }
    }

    fn add_output(&mut self, outcome: &Outcome) {
        let is_complete =
            matches!(outcome, Outcome::Answer(answer) if answer["complete"] == json!(true));
        match number(outcome, "seconds") {
            Ok(seconds) if is_complete => self.took.push(Duration::from_secs_f64(seconds)),
            Ok(_) => self.failure = Some("incomplete".to_owned()),
            Err(why) => self.failure = Some(why),
        }
    }

    fn median(mut self) -> Cell {
        self.took.sort();
        match self.failure {
            Some(why) => Cell::Missing(why),
            None => Cell::Value(quantile(&self.took, 0.5).as_secs_f64()),
        }
    }

    fn rate(self) -> Cell {
        match self.failure {
            Some(why) => Cell::Missing(why),
            None => Cell::Value(self.took.len() as f64 / self.elapsed),
        }
    }
}

fn turn(driver: &mut Driver, work: Loop, seconds: f64) -> anyhow::Result<Outcome> {
    let Loop { sessions, code, expect } = work;
    let order = json!({
        "do": "loop", "code": code, "sessions": sessions, "seconds": seconds, "expect": expect,
    });
    driver.ask(&order, Duration::from_secs_f64(60.0 + seconds * 4.0))
}

fn warm(
    row: &str,
    work: Loop,
    drivers: &mut [Driver],
    results: &mut Results,
) -> anyhow::Result<()> {
    const ROUNDS: usize = 3;
    let mut looped = vec![Looped::default(); drivers.len()];
    for _ in 0..ROUNDS {
        for (driver, looped) in drivers.iter_mut().zip(&mut looped) {
            looped.add(&turn(driver, work, 1.0)?);
        }
    }
    for (driver, looped) in drivers.iter().zip(looped) {
        results.set(row, driver.peer.key, looped.median());
    }
    Ok(())
}

/// Measures sessions that are busy at once. Only one peer's are open at a time: a hundred
/// idle interpreters of some peers are a load by themselves.
fn many(language: Language, drivers: &mut [Driver], results: &mut Results) -> anyhow::Result<()> {
    for (row, sessions) in [("rate1", 1), ("rate16", 16), ("rate100", 100)] {
        let work = Loop { sessions, code: language.nothing(), expect: "" };
        let mut looped = vec![Looped::default(); drivers.len()];
        let rounds = if sessions < 100 { 2 } else { 1 };
        for _ in 0..rounds {
            for (driver, looped) in drivers.iter_mut().zip(&mut looped) {
                let opened = driver
                    .ask(&json!({"do": "open", "sessions": sessions}), Duration::from_secs(180))?;
                match opened {
                    Outcome::Answer(_) => looped.add(&turn(driver, work, 2.0)?),
                    Outcome::Error(_) | Outcome::Hangs => looped.add(&opened),
                }
                driver.ask(&json!({"do": "close"}), Duration::from_secs(120))?;
            }
        }
        for (driver, looped) in drivers.iter().zip(looped) {
            results.set(row, driver.peer.key, looped.rate());
        }
    }
    Ok(())
}

fn output(language: Language, drivers: &mut [Driver], results: &mut Results) -> anyhow::Result<()> {
    const ROUNDS: usize = 3;
    let order = json!({"do": "output", "code": language.output(BIG), "size": BIG});
    let mut looped = vec![Looped::default(); drivers.len()];
    for _ in 0..ROUNDS {
        for (driver, looped) in drivers.iter_mut().zip(&mut looped) {
            // A peer that has failed once is not tried again.
            if looped.failure.is_none() {
                looped.add_output(&driver.ask(&order, Duration::from_secs(60))?);
            }
        }
    }
    for (driver, looped) in drivers.iter().zip(looped) {
        results.set("output", driver.peer.key, looped.median());
    }
    Ok(())
}

fn memory(language: Language, drivers: &mut [Driver], results: &mut Results) -> anyhow::Result<()> {
    let order = json!({"do": "memory", "code": language.nothing(), "sessions": IDLE});
    for driver in drivers {
        let outcome = driver.ask(&order, Duration::from_secs(90))?;
        let cell = match number(&outcome, "kilobytes") {
            Ok(kilobytes) => Cell::Value(kilobytes / 1024.0),
            Err(why) => Cell::Missing(why),
        };
        results.set("memory", driver.peer.key, cell);
        driver.ask(&json!({"do": "close"}), Duration::from_secs(60))?;
    }
    Ok(())
}

/// Returns a number of an answer, or why there is none.
fn number(outcome: &Outcome, name: &str) -> Result<f64, String> {
    match outcome {
        Outcome::Answer(answer) => answer[name].as_f64().ok_or_else(|| "no answer".to_owned()),
        Outcome::Error(error) => Err(format!("fails: {error}")),
        Outcome::Hangs => Err("no answer in time".to_owned()),
    }
}

fn list(outcome: &Outcome) -> Result<Vec<Duration>, String> {
    number(outcome, "elapsed")?;
    let Outcome::Answer(answer) = outcome else { return Err("no answer".to_owned()) };
    let took = answer["took"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(took.iter().filter_map(Value::as_f64).map(Duration::from_secs_f64).collect())
}
