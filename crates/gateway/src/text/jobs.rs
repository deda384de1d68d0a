//! The runs and jobs of a session as text, one per line.

use super::excerpt::clip;
use super::history::event_text;
use serde::Deserialize;
use serde_json::Value;
use sessile_protocol::Queued;
use std::fmt::Write;

/// How many characters of a command are shown: enough to recognize it.
const COMMAND: usize = 200;

/// Lists runs and jobs, given in the form that programs get.
#[must_use]
pub fn jobs(runs: &[Value], jobs: &[Value]) -> String {
    let mut text = String::new();
    for run in runs {
        if run["event"].is_string() {
            let _ = writeln!(text, "{}: {}", run["run"], event_text(run));
            continue;
        }
        let state = match run["exit_code"].as_i64() {
            Some(code) => format!("exit code {code}"),
            None if run["waiting_for_input"] == true => "waits for input".to_owned(),
            None if run["queued"].is_object() => match Queued::deserialize(&run["queued"]) {
                Ok(queued) => clip(&queued.to_string(), COMMAND),
                Err(_) => "queued".to_owned(),
            },
            None => word(run, "phase").to_owned(),
        };
        let _ = writeln!(text, "run {}: {} ({state})", run["run"], command(run));
    }
    for job in jobs {
        let _ = writeln!(text, "job {}: {} ({})", job["pid"], command(job), details(job));
    }
    if jobs.is_empty() {
        text.push_str("no jobs: nothing runs in the background\n");
    }
    text.truncate(text.trim_end().len());
    text
}

fn details(job: &Value) -> String {
    let mut words = vec![word(job, "state").to_owned()];
    if let Some(run) = job["run"].as_u64() {
        words.push(format!("of run {run}"));
    }
    let ports = job["ports"].as_array().into_iter().flatten();
    words.extend(ports.map(|port| {
        format!(
            "listens on {} port {} of {}",
            word(port, "protocol"),
            port["port"],
            word(port, "address")
        )
    }));
    if let Some(processes) = job["processes"].as_u64().filter(|count| *count > 1) {
        words.push(format!("{processes} processes"));
    }
    words.push(format!("{:.1} s of CPU", job["cpu_ms"].as_f64().unwrap_or(0.0) / 1000.0));
    let mebibytes = job["memory_bytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
    words.push(format!("{mebibytes:.0} MiB"));
    words.join(", ")
}

fn command(of: &Value) -> String {
    let line = word(of, "command").split_whitespace().collect::<Vec<_>>().join(" ");
    clip(&line, COMMAND)
}

fn word<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_or_a_job_is_a_line() {
        let runs = [
            json!({"run": 3, "phase": "running", "command": "make\ntest"}),
            json!({"run": 2, "phase": "closed", "command": "ls", "exit_code": 0}),
            json!({"run": 4, "event": "rewind", "command": "rewind a", "notes": ["takes back nothing"]}),
        ];
        let port = json!({"port": 80, "protocol": "tcp", "address": "::"});
        let left = [json!({"pid": 42, "command": "nginx", "run": 1, "state": "running",
            "ports": [port], "processes": 3, "cpu_ms": 1500, "memory_bytes": 5 << 20})];
        assert_eq!(
            jobs(&runs, &left),
            "run 3: make test (running)\nrun 2: ls (exit code 0)\n4: rewind a; takes back nothing\njob 42: nginx (running, of run 1, \
             listens on tcp port 80 of ::, 3 processes, 1.5 s of CPU, 5 MiB)"
        );
        assert_eq!(jobs(&[], &[]), "no jobs: nothing runs in the background");
    }
}
