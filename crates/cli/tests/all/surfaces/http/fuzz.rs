//! Requests of all kinds, made from the API's own description: none of them
//! gets a 500 or stops the server, and each answer is what the description says.
//!
//! `cargo xtask fuzz` runs the same for minutes, with other requests each time:
//! `SESSILE_FUZZ` has the seconds, and `SESSILE_FUZZ_SEED` their seed.

use serde_json::json;
use sessile_testkit::{Harness, Server, harness, needs};
use std::path::Path;
use std::process::{Command, Stdio};

const OPTIONS: &[&str] = &[
    "--generation-database=none",
    "--request-timeout=20",
    "--continue-on-failure",
    // The first goes by the status alone, and `checks.py` has a better one. The
    // others take an ended session, of which the history can still be read, for
    // one that was not ended.
    "--exclude-checks=positive_data_acceptance,use_after_free,ensure_resource_availability",
];

/// The tool answers every request that is JSON, with its own words. What
/// sessions do is looked at for up to ten seconds, if that is asked for.
const OPERATIONS: &str = r#"
[[operations]]
include-name = "POST /v1/tools/runtime"
checks.negative_data_rejection.enabled = false
[[operations]]
include-name = "GET /v1/top"
parameters = { "query.interval" = "100ms" }
"#;

/// What is not fuzzed: what the session's own servers answer, and streams without
/// an end. (Those of runs end.)
const OTHERS: &str = r"/ports/|/watch$|(sessions|agents)/\{id\}/events$";

/// What our own sessions would do to the machine is bounded: random requests fork
/// sessions by the hundred, and run whatever text there is.
fn server(h: &Harness) -> (Server, String) {
    std::fs::create_dir(h.path("w")).unwrap();
    let root = h.path("w").display().to_string();
    let limits = ["--command-timeout", "2s", "--max-sessions", "25"];
    let server = h.server(&[&["--workspace-root", &root][..], &limits].concat());
    let made = h.sessile(&["token", "create", "fuzzer", "--workspace", &root]).json();
    (server, made["token"].as_str().unwrap().to_owned())
}

fn fuzz(h: &Harness, server: &Server, token: &str, config: &str, options: &[&str]) {
    let Some(fuzzer) = needs::installed("SESSILE_TEST_FUZZER") else { return };
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/surfaces/http/fuzz");
    let file = h.path("schemathesis.toml");
    std::fs::write(&file, format!("{config}{OPERATIONS}")).unwrap();
    let variable = |name: &str| std::env::var(name).ok();
    let seconds = variable("SESSILE_FUZZ");
    let bound = match &seconds {
        Some(seconds) => format!("--max-time={seconds}"),
        // The same requests each time, and an end.
        None => "--max-examples=5".to_owned(),
    };
    let seed = variable("SESSILE_FUZZ_SEED").unwrap_or_else(|| "7377".to_owned());
    let mut command = Command::new(fuzzer);
    command
        .args(["--no-color", "--config-file"])
        .arg(&file)
        .args(["run", &format!("http://{}/openapi.json", server.address())])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args([&bound, &format!("--seed={seed}")])
        .args(OPTIONS)
        .args(options)
        .env("SCHEMATHESIS_HOOKS", "checks")
        .env("PYTHONPATH", checks)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(h.root());
    if seconds.is_some() {
        command.stdout(Stdio::inherit());
    }
    let output = command.output().expect("the fuzzer starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let metrics = server.get("/metrics").is(200).text();
    assert!(!metrics.contains("code=\"internal\""), "{metrics}");
}

#[test]
fn no_request_to_a_live_session_breaks_anything() {
    let h = harness!();
    let (server, token) = server(&h);
    let start = server.request("POST", "/v1/sessions").token(&token).json(&json!({})).send();
    let id = start.is(201).json()["session_id"].as_str().unwrap().to_owned();
    // Over, so that whoever waits for its screen is answered.
    let body = json!({"command": "echo hi", "terminal": true});
    let run = server.post(&format!("/v1/sessions/{id}/exec"), &body).is(200).json();
    assert_eq!((&run["run"], &run["stdout"]), (&json!(1), &json!("hi\r\n")));
    let config = format!("[parameters]\n\"path.id\" = \"{id}\"\n\"path.run\" = 1\n");
    // A reset would take the run away.
    let options = [
        "--phases=examples,coverage,fuzzing",
        "--exclude-method=DELETE",
        &format!("--exclude-path-regex=(/reset|/ws)$|{OTHERS}"),
    ];
    fuzz(&h, &server, &token, &config, &options);
    // The session is as good as before.
    let after = server.post(&format!("/v1/sessions/{id}/reset"), &json!({}));
    after.is(200);
    assert_eq!(server.exec(&id, "echo still here")["stdout"], "still here\n");
}

/// One request after the other, each with what the answer before has named:
/// sessions that were started, their runs, checkpoints and forks.
#[test]
fn no_sequence_of_requests_breaks_anything() {
    let h = harness!();
    let (server, token) = server(&h);
    let exclude = format!("--exclude-path-regex=/ws$|{OTHERS}");
    let options = ["--phases=stateful", &exclude];
    fuzz(&h, &server, &token, "", &options);
    server.get("/healthz").is(200);
}
