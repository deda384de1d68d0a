use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use clap::Args;
use sessile_gateway::answer;
use sessile_protocol::{Job, Port};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// List what runs have left in the background
///
/// A job is a process with all that descends from it: CPU, memory and ports are
/// those of all its processes. Prints a JSON array; at a terminal, a table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile jobs sess_…\n  \
    sessile jobs sess_… | jq '.[] | {pid, ports}'\n  \
    sessile signal sess_… --job 4242 TERM\n  \
    sessile output sess_… 3 --follow")]
pub(crate) struct Jobs {
    /// The session
    id: String,
    /// JSON at a terminal, too
    #[arg(long)]
    json: bool,
}

impl Jobs {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let jobs = Reader::find(settings, &self.id)?.jobs()?;
        if io::stdout().is_terminal() && !self.json {
            output::all(&mut io::stdout().lock(), table(&jobs).as_bytes())?;
        } else {
            output::json(&jobs.iter().map(answer::Job::from).collect::<Vec<_>>())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(jobs: &[Job]) -> String {
    if jobs.is_empty() {
        return "No jobs: nothing runs in the background.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    let heads =
        ["PID", "RUN", "STATE", "STARTED (UTC)", "CPU", "MEMORY", "PROCESSES", "PORTS", "COMMAND"];
    output::table(&heads, &rows)
}

fn row(job: &Job) -> Vec<String> {
    let ports: Vec<String> = job.ports.iter().map(port).collect();
    vec![
        job.pid.to_string(),
        job.run.map_or_else(|| "-".to_owned(), |run| run.to_string()),
        job.state.as_str().to_owned(),
        job.started_at.chars().take(19).collect(),
        format!("{:.1} s", job.cpu_ms as f64 / 1000.0),
        format!("{:.1} MiB", job.memory as f64 / f64::from(1 << 20)),
        job.processes.to_string(),
        ports.join(","),
        // A command may have any number of lines.
        job.command.split_whitespace().collect::<Vec<_>>().join(" "),
    ]
}

fn port(port: &Port) -> String {
    let address = match port.address {
        address if address.is_unspecified() => String::new(),
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    };
    format!("{address}:{}/{}", port.port, port.transport.as_str())
}
