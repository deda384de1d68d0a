//! Sessions that end because nothing happens in them, and what is left of ended
//! ones.

use serde_json::json;
use sessile_protocol::Request;
use sessile_testkit::{Session, harness, order, until};
use std::time::{Duration, Instant};

/// Longer than the pauses of a busy machine.
const LIMIT: Duration = Duration::from_secs(2);

fn wait_for_the_end(s: &Session<'_>) {
    until("the session to end", || (s.metadata()["status"] == "terminated").then_some(()));
    assert_eq!(s.metadata()["ended_by"], "idle timeout");
}

/// For twice as long as it may be idle.
fn it_goes_on(s: &Session<'_>, keeper: u32) {
    let since = Instant::now();
    until("a time that is long enough", || (since.elapsed() > 2 * LIMIT).then_some(()));
    assert_eq!(s.metadata()["status"], "active");
    assert_eq!(s.metadata()["keeper_pid"], keeper);
}

#[test]
fn a_job_keeps_a_session_from_being_idle_until_it_ends() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "2s"]);
    let job = s.spawns("sleep 1000 & echo $!");
    let keeper = s.metadata()["keeper_pid"].as_u64().unwrap();
    it_goes_on(&s, u32::try_from(keeper).unwrap());
    job.kill();
    wait_for_the_end(&s);
}

#[test]
fn who_looks_at_a_session_keeps_it_from_being_idle() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "2s"]);
    let keeper = s.metadata()["keeper_pid"].as_u64().unwrap();
    let mut link = s.link();
    let after = link.complete(order(":")).run;
    link.send(Request::Following { after, patience_ms: None });
    it_goes_on(&s, u32::try_from(keeper).unwrap());
    drop(link);
    wait_for_the_end(&s);
}

#[test]
fn only_runs_count_if_that_is_asked_for() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "2s", "--idle-without-runs"]);
    let job = s.spawns("sleep 1000 & echo $!");
    wait_for_the_end(&s);
    job.wait_gone();
    let server = h.serve();
    let body = json!({"idle_timeout": 2, "idle_without_runs": true});
    let path = server.started(&body);
    let over_http = h.session_called(path.rsplit('/').next().unwrap());
    wait_for_the_end(&over_http);
}

#[test]
fn an_ended_session_says_why_and_its_shell_can_be_had_again() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "2s"]);
    s.run("x=41; f() { echo $((x+1)); }; export STAGE=test");
    s.wait_captured(1);
    wait_for_the_end(&s);
    let gone = h.begin(&["exec", s.id()], b"echo hi").finish().exits(1).errors();
    let why = format!("Session {} has ended, because it was idle for 2s, at 20", s.id());
    assert!(gone.contains(&why) && gone.contains(&format!("--from {}", s.id())), "{gone}");
    let next = h.session_with(&["--from", s.id(), "--name", "next"]);
    next.run("f; echo $STAGE $x").prints("42\ntest 41\n").has("run", 1);
    assert_eq!(next.metadata()["name"], "next");
    next.run("x=1");
    let server = h.serve();
    server
        .post(&format!("/v1/sessions/{}/exec", s.id()), &json!({"command": "ls"}))
        .is_refused(410, "session_ended");
    let from = server.started(&json!({"from": s.id()}));
    assert_eq!(server.prints_at(&from, "f"), "42\n");
}
