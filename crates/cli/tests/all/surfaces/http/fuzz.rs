//! Requests of all kinds, made from the API's own description: none of them
//! gets a 500 or stops the server, and each answer is what the description says.

use serde_json::json;
use sessile_testkit::{Harness, Server, harness, needs};
use std::process::Command;

/// The same requests each time, and an end.
const OPTIONS: &[&str] = &[
    "--seed=7377",
    "--max-examples=20",
    "--generation-database=none",
    "--request-timeout=30",
    "--phases=examples,coverage,fuzzing",
    "--continue-on-failure",
    "--exclude-path-regex=/(ws|events)$",
    // What a description cannot say is refused, too: directories that are not
    // there, names of signals.
    "--exclude-checks=positive_data_acceptance",
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

fn fuzz(h: &Harness, server: &Server, config: &str, options: &[&str]) {
    let Some(fuzzer) = needs::installed("SESSILE_TEST_FUZZER") else { return };
    let file = h.path("schemathesis.toml");
    std::fs::write(&file, format!("{config}{OPERATIONS}")).unwrap();
    let output = Command::new(fuzzer)
        .args(["--no-color", "--config-file"])
        .arg(&file)
        .args(["run", &format!("http://{}/openapi.json", server.address())])
        .args(["--header", &format!("Authorization: Bearer {}", server.token())])
        .args(OPTIONS)
        .args(options)
        .current_dir(h.root())
        .output()
        .expect("the fuzzer starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let metrics = server.get("/metrics").is(200).text();
    assert!(!metrics.contains("code=\"internal\""), "{metrics}");
}

#[test]
fn no_request_to_a_live_session_breaks_anything() {
    let h = harness!();
    std::fs::create_dir(h.path("w")).unwrap();
    let root = h.path("w").display().to_string();
    let server = h.server(&["--workspace-root", &root, "--command-timeout", "2s"]);
    let id = server.session();
    // Over, so that whoever waits for its screen is answered.
    let body = json!({"command": "echo hi", "terminal": true});
    let run = server.post(&format!("/v1/sessions/{id}/exec"), &body).is(200).json();
    assert_eq!((&run["run"], &run["stdout"]), (&json!(1), &json!("hi\r\n")));
    let config = format!("[parameters]\n\"path.id\" = \"{id}\"\n\"path.run\" = 1\n");
    fuzz(&h, &server, &config, &["--exclude-method=DELETE"]);
    // The session is as good as before.
    let after = server.post(&format!("/v1/sessions/{id}/reset"), &json!({}));
    after.is(200);
    assert_eq!(server.exec(&id, "echo still here")["stdout"], "still here\n");
}

#[test]
fn no_request_breaks_anything() {
    let h = harness!();
    std::fs::create_dir(h.path("w")).unwrap();
    let root = h.path("w").display().to_string();
    let server = h.server(&["--workspace-root", &root, "--command-timeout", "2s"]);
    fuzz(&h, &server, "", &[]);
    server.get("/healthz").is(200);
}
