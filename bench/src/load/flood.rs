//! The effect of a session that writes without end on another.

use super::args::Args;
use super::clients::{Until, drive};
use super::crowd::Crowd;
use super::page::Page;
use crate::server::Serve;
use crate::stats::{Limit, Table};
use sessile_protocol::Language;
use std::path::Path;
use std::time::Duration;

/// A turn is long enough for a flood to exceed the stored output, which takes some 50 ms.
const TURN: Duration = Duration::from_millis(700);

pub(super) fn measure(sessile: &Path, args: &Args, page: &mut Page) -> anyhow::Result<()> {
    println!("  one session's runs, `:` in bash, while another floods with `yes`");
    let mut crowd = Crowd::new(Serve::start(sessile)?, Language::Bash);
    crowd.open(2)?;
    let flooding = crowd.paths[1].clone();
    let mut http = crowd.serve.connect()?;
    let (alone, beside) = ("a run, alone", "a run, beside a flood");
    let mut table = Table::default();
    let turns = (args.seconds / TURN.as_secs_f64()).ceil() as u32;
    for _ in 0..turns {
        take(&mut crowd, &mut table, alone)?;
        let flood = r#"{"command":"yes","wait":0,"timeout":0}"#;
        http.post(&format!("{flooding}/exec"), flood)?;
        take(&mut crowd, &mut table, beside)?;
        http.post(&format!("{flooding}/interrupt"), "{}")?;
        // Answered when the flood is over.
        http.post(&format!("{flooding}/exec"), r#"{"command":":"}"#)?;
    }
    table.print(&[]);
    for (name, q) in [("median", 0.5), ("p90", 0.9)] {
        let ratio = table.ratio(beside, alone, q);
        page.held(&format!("{name} of a run beside a flood / alone"), ratio, Limit::AtMost(1.2));
    }
    Ok(())
}

fn take(crowd: &mut Crowd, table: &mut Table, name: &str) -> anyhow::Result<()> {
    let one = &mut crowd.clients[..1];
    one[0].took.clear();
    drive(one, Until::Elapsed(TURN))?;
    for took in std::mem::take(&mut one[0].took) {
        table.add(name, took);
    }
    Ok(())
}
