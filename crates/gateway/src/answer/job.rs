//! Jobs.

use serde::Serialize;
use sessile_protocol::{JobState, Language, RunNo, Transport};
use std::net::IpAddr;
use utoipa::ToSchema;

/// A younger process has not lived long enough for an average.
const YOUNG_MS: u64 = 1000;

/// A background process and its descendants
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = JobRow)]
pub struct Job {
    pub pid: u32,
    pub command: String,
    /// The run that started it, if known
    #[schema(nullable)]
    pub run: Option<RunNo>,
    #[schema(nullable)]
    pub language: Option<Language>,
    /// running or stopped
    pub state: JobState,
    pub started_at: String,
    /// CPU time of all its processes, including ended ones
    pub cpu_ms: u64,
    /// Resident memory of all its processes
    pub memory_bytes: u64,
    pub processes: u64,
    pub ports: Vec<Port>,
    /// Average since its start; absent in the first second
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cpu_percent: Option<f64>,
}

/// A port that a job listens on
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = JobPort)]
pub struct Port {
    pub port: u16,
    /// tcp or udp
    pub protocol: Transport,
    #[schema(value_type = String)]
    pub address: IpAddr,
}

impl From<&sessile_protocol::Job> for Job {
    fn from(job: &sessile_protocol::Job) -> Self {
        Self {
            pid: job.pid,
            command: job.command.clone(),
            run: job.run,
            language: job.language,
            state: job.state,
            started_at: job.started_at.clone(),
            cpu_ms: job.cpu_ms,
            memory_bytes: job.memory,
            processes: job.processes,
            ports: job.ports.iter().map(Port::from).collect(),
            cpu_percent: cpu_percent(job),
        }
    }
}

impl From<&sessile_protocol::Port> for Port {
    fn from(port: &sessile_protocol::Port) -> Self {
        Self { port: port.port, protocol: port.transport, address: port.address }
    }
}

/// Returns the average use of one processor since the job's start, in percent.
#[must_use]
pub fn cpu_percent(job: &sessile_protocol::Job) -> Option<f64> {
    let percent = 100.0 * job.cpu_ms as f64 / job.age_ms as f64;
    (job.age_ms >= YOUNG_MS).then_some((percent * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_job_is_told_with_its_ports() {
        let address = [127, 0, 0, 1].into();
        let it = sessile_protocol::Job {
            pid: 7,
            command: "python3 -m http.server".to_owned(),
            run: Some(RunNo(3)),
            language: None,
            state: JobState::Running,
            started_at: "2026-01-31T12:00:00.000Z".to_owned(),
            age_ms: 2000,
            cpu_ms: 30,
            memory: 4096,
            processes: 1,
            ports: vec![sessile_protocol::Port { port: 8000, transport: Transport::Tcp, address }],
        };
        let told = json!(Job::from(&it));
        assert_eq!((&told["run"], &told["language"]), (&json!(3), &Value::Null));
        let port = json!({"port": 8000, "protocol": "tcp", "address": "127.0.0.1"});
        assert_eq!((&told["ports"][0], &told["cpu_percent"]), (&port, &json!(1.5)));
        assert_eq!(cpu_percent(&sessile_protocol::Job { age_ms: 10, ..it }), None);
    }
}
