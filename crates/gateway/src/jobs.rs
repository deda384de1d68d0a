//! Jobs, listed.

use serde_json::{Value, json};
use sessile_protocol::{Job, Port};

/// A younger process has not lived long enough for an average.
const YOUNG_MS: u64 = 1000;

#[must_use]
pub fn jobs(jobs: &[Job]) -> Vec<Value> {
    jobs.iter().map(job).collect()
}

fn job(job: &Job) -> Value {
    let mut value = json!({
        "pid": job.pid,
        "command": job.command,
        "run": job.run,
        "language": job.language.map(|language| language.as_str()),
        "state": job.state.as_str(),
        "started_at": job.started_at,
        "cpu_ms": job.cpu_ms,
        "memory_bytes": job.memory,
        "processes": job.processes,
        "ports": job.ports.iter().map(port).collect::<Vec<Value>>(),
    });
    if let Some(percent) = cpu_percent(job) {
        value["cpu_percent"] = percent.into();
    }
    value
}

fn port(port: &Port) -> Value {
    json!({
        "port": port.port,
        "protocol": port.transport.as_str(),
        "address": port.address.to_string(),
    })
}

/// How much of one processor it has used since it was started, on average.
#[must_use]
pub fn cpu_percent(job: &Job) -> Option<f64> {
    let percent = 100.0 * job.cpu_ms as f64 / job.age_ms as f64;
    (job.age_ms >= YOUNG_MS).then_some((percent * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::{JobState, RunNo, Transport};

    #[test]
    fn a_job_is_told_with_its_ports() {
        let address = [127, 0, 0, 1].into();
        let it = Job {
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
            ports: vec![Port { port: 8000, transport: Transport::Tcp, address }],
        };
        let told = job(&it);
        assert_eq!((&told["run"], &told["language"]), (&json!(3), &Value::Null));
        let port = json!({"port": 8000, "protocol": "tcp", "address": "127.0.0.1"});
        assert_eq!((&told["ports"][0], &told["cpu_percent"]), (&port, &json!(1.5)));
        assert_eq!(cpu_percent(&Job { age_ms: 10, ..it }), None);
    }
}
