//! Command-line arguments.

use anyhow::Context;
use clap::Parser;
use sessile_protocol::Language;
use std::path::PathBuf;
use std::time::Duration;

/// From this number on, sessions are opened after all others were measured.
const MANY: usize = 200;

/// Many sessions at once, over HTTP
#[derive(Clone, Debug, Parser)]
#[command(name = "load")]
pub(crate) struct Args {
    /// How many sessions are busy at once
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,100,1000")]
    pub(super) sessions: Vec<usize>,
    /// Their languages
    #[arg(long, value_delimiter = ',', default_value = "bash,python,node")]
    pub(super) languages: Vec<Language>,
    /// How long each number of sessions is measured, in all turns together
    #[arg(long, default_value_t = 4.0)]
    pub(super) seconds: f64,
    /// In how many turns
    #[arg(long, default_value_t = 2)]
    pub(super) rounds: u32,
    /// A page that the tables go into, such as docs/performance.md
    #[arg(long)]
    pub(super) page: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Self {
        Self::parse_from(["load"])
    }
}

impl Args {
    /// Parses the arguments after the part's name. Errors and `--help` end the process.
    pub(crate) fn of_command_line() -> anyhow::Result<Self> {
        let args = Self::parse_from(std::env::args().skip(1));
        anyhow::ensure!(args.rounds > 0 && args.seconds > 0.0, "nothing would be measured");
        args.sessions.iter().min().filter(|least| **least > 0).context("no sessions")?;
        Ok(args)
    }

    pub(super) fn turn(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / f64::from(self.rounds))
    }

    /// Returns the numbers of sessions: few enough to be open all the time, and larger ones.
    pub(super) fn steps(&self) -> (Vec<usize>, Vec<usize>) {
        self.sessions.iter().partition(|sessions| **sessions < MANY)
    }
}
