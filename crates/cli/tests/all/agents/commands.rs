//! A command-line agent in the place of a model.

use super::{agent, begin, ended, entries, harness, serve_with};
use serde_json::{Value, json};
use sessile_testkit::{Harness, Process, Server, until};

/// A program that does what the task says, and tells of it.
const PROGRAM: &str = r#"#!/bin/bash
read -r -d '' task || true
say() { printf '%s\n' "$1"; }
case $task in
count)
    echo "$SESSILE_AGENT_THREAD" > thread
    say '{"type": "text", "text": "Counting"}'
    say '{"type": "tool_call", "id": "1", "tool": "shell", "input": {"command": "x"}}'
    echo once >> log
    say '{"type": "tool_result", "id": "1", "text": "counted"}'
    say 'something that is no JSON'
    say '{"type": "something-newer"}'
    say '{"type": "usage", "input_tokens": 100, "output_tokens": 10}'
    say '{"type": "usage", "input_tokens": 200, "output_tokens": 5}'
    say '{"type": "result", "text": "it is one"}' ;;
wait)
    echo once >> log
    say '{"type": "text", "text": "Waiting"}'
    echo begun > begun
    read -r line < gate
    say '{"type": "text", "text": "Over"}'
    say '{"type": "result", "text": "waited"}' ;;
crash)
    say '{"type": "text", "text": "Before"}'
    say '{"type": "usage", "input_tokens": 70, "output_tokens": 5}'
    echo 'no such key' >&2
    exit 3 ;;
esac
"#;

fn program(h: &Harness) {
    use std::os::unix::fs::PermissionsExt;
    let path = h.path("agent.sh");
    std::fs::write(&path, PROGRAM).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let made = std::process::Command::new("mkfifo").arg(h.path("gate")).status().unwrap();
    assert!(made.success());
}

fn serve(h: &Harness) -> Server {
    let command = h.path("agent.sh");
    let model = format!(
        "[[model]]\nname = \"program\"\nformat = \"command\"\ncommand = [\"{}\"]\ninput-price = 1.0\n",
        command.display()
    );
    serve_with(h, &model, &[])
}

fn activities(h: &Harness, id: &str) -> Vec<Value> {
    entries(h, id, "activity")
}

#[test]
fn a_program_works_in_the_session_and_its_lines_become_the_thread() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    let view = ended(&server, &id, task);
    assert_eq!(view["output"], "it is one", "{view}");
    assert_eq!(view["spent"]["input_tokens"], 300);
    assert_eq!(view["spent"]["output_tokens"], 15);
    let told = activities(&h, &id);
    let kinds: Vec<_> = told.iter().map(|entry| entry["activity"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "tool_call", "tool_result", "text", "usage", "usage"]);
    assert_eq!(told[3]["text"], "something that is no JSON");
    let thread = std::fs::read_to_string(h.path("thread")).unwrap();
    assert_eq!(view["thread_id"], thread.trim());
    // What it did can be taken back as any step.
    assert!(h.path("log").exists());
    let back = server.post(&format!("/v1/agents/{id}/undo"), &json!({})).is(200).json();
    assert_eq!(back["steps"], json!([1]), "{back}");
    assert!(!h.path("log").exists());
}

#[test]
fn a_program_that_fails_is_told_by_what_it_says() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "crash");
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "crashed", "{view}");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.ends_with("ended with status 3, without a result: no such key"), "{message}");
    // What it has used is paid for all the same.
    let spent = &view["spent"];
    assert_eq!(
        (&spent["input_tokens"], &spent["output_tokens"]),
        (&json!(70), &json!(5)),
        "{view}"
    );
    assert!((spent["cost"].as_f64().unwrap() - 70e-6).abs() < 1e-9, "{view}");
    let task = begin(&server, &id, "count");
    assert_eq!(ended(&server, &id, task)["output"], "it is one");
}

#[test]
fn a_program_that_goes_on_beyond_its_limit_is_stopped() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let order = |text: &str, limits: Value| {
        let body = json!({ "text": text, "limits": limits });
        let begun = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
        ended(&server, &id, begun["task"].as_u64().unwrap())
    };
    // It says a second time what it has used, after the limit was reached.
    let view = order("count", json!({ "max_tokens": 100 }));
    assert_eq!(view["limit"], "tokens", "{view}");
    assert_eq!(view["spent"]["input_tokens"], 300, "{view}");
    // Its answer comes right after the limit was reached.
    let view = order("count", json!({ "max_tokens": 300 }));
    assert_eq!((&view["ended"], &view["output"]), (&json!("done"), &json!("it is one")), "{view}");
    assert_eq!(super::prints(&server, &id, "echo free"), "free\n");
}

#[test]
fn a_program_goes_on_while_the_server_is_killed_and_is_not_started_twice() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    until("what it told", || (activities(&h, &id).len() == 1).then_some(()));
    server.kill();
    let server = serve(&h);
    std::fs::write(h.path("gate"), "on\n").unwrap();
    assert_eq!(ended(&server, &id, task)["output"], "waited");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "once\n");
    let told = activities(&h, &id);
    let texts: Vec<_> = told.iter().map(|entry| entry["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Waiting", "Over"], "each is told once");
}

#[test]
fn a_program_whose_keeper_is_killed_is_told_and_not_started_again() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    let keeper = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64().unwrap();
    Process::of(i32::try_from(keeper).unwrap()).kill();
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "crashed", "{view}");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("it was not started again"), "{message}");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "once\n");
}

#[test]
fn a_program_is_interrupted_by_a_cancellation_and_by_its_limit() {
    let h = harness();
    program(&h);
    let server = serve(&h);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    let _ = server.post(&format!("/v1/agents/{id}/cancel"), &json!({})).is(200);
    assert_eq!(ended(&server, &id, task)["ended"], "cancelled");
    // The session is free again.
    assert_eq!(super::prints(&server, &id, "echo free"), "free\n");
    let body = json!({ "text": "wait", "limits": { "max_time_ms": 300 } });
    let task = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
    let view = ended(&server, &id, task["task"].as_u64().unwrap());
    assert_eq!((&view["ended"], &view["limit"]), (&json!("limit"), &json!("time")), "{view}");
    assert_eq!(super::prints(&server, &id, "echo free"), "free\n");
}
