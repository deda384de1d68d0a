//! Background jobs of runs, and ports.

use super::table::{Cell, Column, table};
use super::words::{age, on_one_line, took};
use super::{Colour, Page};
use jiff::Timestamp;
use sessile_protocol::{Job, JobState, Port};
use std::net::IpAddr;

pub(crate) fn list(jobs: &[Job], now: Timestamp, page: Page) -> String {
    if jobs.is_empty() {
        return "No jobs: nothing runs in the background.\n".to_owned();
    }
    let columns = [
        Column::number("PID"),
        Column::number("RUN"),
        Column::whole("STATE"),
        Column::whole("STARTED").optional(3),
        Column::number("CPU").optional(4),
        Column::number("MEMORY").optional(2),
        Column::number("PROCESSES").optional(5),
        Column::whole("PORTS").optional(1),
        Column::cut("COMMAND", 10),
    ];
    let row = |job: &Job| -> Vec<Cell> {
        let ports: Vec<String> = job.ports.iter().map(port).collect();
        let colour = match job.state {
            JobState::Running => Colour::Green,
            JobState::Stopped | JobState::Unknown => Colour::Yellow,
        };
        vec![
            job.pid.to_string().into(),
            job.run.map_or_else(|| "-".to_owned(), |run| run.to_string()).into(),
            Cell::painted(job.state.as_str(), colour),
            age(&job.started_at, now).into(),
            took(job.cpu_ms * 1000).into(),
            format!("{:.1} MiB", job.memory as f64 / f64::from(1 << 20)).into(),
            job.processes.to_string().into(),
            ports.join(",").into(),
            on_one_line(&job.command).into(),
        ]
    };
    table(&columns, &jobs.iter().map(row).collect::<Vec<_>>(), page)
}

/// Lists where a session's processes listen.
pub(crate) fn ports(ports: &[Port], page: Page) -> String {
    if ports.is_empty() {
        return "No ports: nothing in the session listens.\n".to_owned();
    }
    let columns = [Column::number("PORT"), Column::whole("PROTOCOL"), Column::whole("ADDRESS")];
    let row = |port: &Port| -> Vec<Cell> {
        vec![
            port.port.to_string().into(),
            port.transport.as_str().into(),
            port.address.to_string().into(),
        ]
    };
    table(&columns, &ports.iter().map(row).collect::<Vec<_>>(), page)
}

fn port(port: &Port) -> String {
    let address = match port.address {
        address if address.is_unspecified() => String::new(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    format!("{address}:{}/{}", port.port, port.transport.as_str())
}
