//! Runs that wait for their turn: what is told of them, and for how long they
//! may.

use serde_json::{Value, json};
use sessile_testkit::{Session, harness, until};
use std::time::{Duration, Instant};

/// What keeps a session busy until somebody opens the gate.
const GATED: &str = "mkfifo gate; touch begun; read -r x <gate";

/// A run that has begun and waits at the gate.
fn busy(s: &Session<'_>) {
    s.run_with(&["--timeout", "0", "--background"], GATED);
    s.harness().wait_for_file("begun");
}

fn open_the_gate(s: &Session<'_>) {
    std::fs::write(s.harness().path("gate"), "go\n").unwrap();
}

#[test]
fn a_run_that_waits_is_told_its_place_and_behind_what() {
    let h = harness!();
    let s = h.session();
    busy(&s);
    let behind = json!({"run": 1, "command": GATED});
    for place in 1..=2 {
        let told = s.run_with(&["--background"], format!("echo {place} >>order"));
        assert_eq!(told.json()["queued"], json!({"place": place, "behind": behind}));
        assert_eq!(told.json()["running"], true);
    }
    let waited = h.sessile(&["wait", s.id(), "3", "--timeout", "1ms"]).json();
    assert_eq!(waited["queued"], json!({"place": 2, "behind": behind}));
    let listed = s.sessile("runs").json();
    assert_eq!(listed[0]["queued"], Value::Null, "it is going");
    assert_eq!(listed[2]["queued"], json!({"place": 2, "behind": behind}));
    open_the_gate(&s);
    assert!(h.sessile(&["wait", s.id(), "3"]).json()["queued"].is_null());
    assert_eq!(std::fs::read_to_string(h.path("order")).unwrap(), "1\n2\n");
}

#[test]
fn who_waits_too_long_is_told_so_and_never_runs() {
    let h = harness!();
    let s = h.session();
    busy(&s);
    let client = s.begin_with(&["--queue-timeout", "100ms"], "touch forbidden");
    let why = client.finish().exits(1).prints("").errors();
    let message = format!("the run waited 100ms behind run 1 ({GATED}), as long as it may");
    assert!(why.contains(&message), "{why}");
    let again = h.sessile(&["wait", s.id(), "2"]).exits(1).errors();
    assert!(again.contains(&message), "{again}");
    let patient = s.begin_with(&["--queue-timeout", "1h"], "echo patient");
    until("the next one to wait", || {
        (s.sessile("runs").json()[1]["queued"]["place"] == 1).then_some(())
    });
    open_the_gate(&s);
    s.answer(patient, "echo patient").prints("patient\n").has("run", 3);
    assert!(!h.path("forbidden").exists());
    let numbers: Vec<Value> =
        s.history().as_array().unwrap().iter().map(|e| e["run"].clone()).collect();
    assert_eq!(numbers, [1, 3]);
}

#[test]
fn the_time_in_the_queue_does_not_count_for_the_timeout() {
    let h = harness!();
    let s = h.session();
    busy(&s);
    let late = s.begin_with(&["--timeout", "300ms"], "sleep 1000");
    until("the next one to wait", || {
        (s.sessile("runs").json()[1]["queued"]["place"] == 1).then_some(())
    });
    let since = Instant::now();
    until("a time that is long enough", || {
        (since.elapsed() > Duration::from_millis(1200)).then_some(())
    });
    open_the_gate(&s);
    let done = s.answer(late, "sleep 1000").timed_out().is_kept();
    let note = done.notes();
    assert!(note.starts_with("the timeout counts from the run's beginning, after 1"), "{note}");
}

#[test]
fn it_is_the_same_over_http() {
    let h = harness!();
    let server = h.serve();
    let session = format!("/v1/sessions/{}", server.session());
    let exec = |body: &Value| server.post(&format!("{session}/exec"), body);
    exec(&json!({"command": GATED, "timeout": 0, "wait": 0})).is(202);
    h.wait_for_file("begun");
    let queued = json!({"place": 1, "behind": {"run": 1, "command": GATED}});
    let told = exec(&json!({"command": "echo second", "wait": 0})).is(202).json();
    assert_eq!(told["queued"], queued, "{told}");
    assert_eq!(server.get(&format!("{session}/runs/2")).is(202).json()["queued"], queued);
    assert_eq!(server.get(&format!("{session}/runs")).is(200).json()[1]["queued"], queued);
    let output = server.get(&format!("{session}/runs/2/output?cursor=0-0")).is(200).json();
    assert_eq!(output["queued"], queued, "{output}");
    exec(&json!({"command": "touch forbidden", "queue_timeout": 0.1}))
        .is_refused(409, "queue_timeout");
    server.get(&format!("{session}/runs/3")).is_refused(409, "queue_timeout");
    std::fs::write(h.path("gate"), "go\n").unwrap();
    let done = server.get(&format!("{session}/runs/2?wait=30s")).is(200).json();
    assert_eq!((&done["stdout"], &done["queued"]), (&json!("second\n"), &Value::Null));
    assert!(!h.path("forbidden").exists());
}
