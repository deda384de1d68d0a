//! Runs that are talked to, and what goes on besides.

use super::peer::Peer;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::{harness, until};

#[test]
fn an_interactive_program_is_answered_through_successive_calls() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    std::fs::write(h.path("main.py"), "def f(n):\n    m = n * 2\n    return m\n\nf(21)\n").unwrap();
    let command = "python3 -m pdb main.py";
    let begun = json!({"action": "exec", "command": command, "interactive": true, "timeout_ms": 0});
    let begun = peer.runtime(&begun);
    assert_eq!(exact(&begun)["waiting_for_input"], true, "{begun}");
    let told = text(&begun);
    assert!(told.starts_with("run 1 waits for input\n"), "{told}");
    assert!(told.contains("(Pdb) "), "{told}");
    let call = r#"{"action":"input","run":1,"input":"…\n"}"#;
    assert!(told.contains(call), "{told}");
    let mut say = |line: &str| {
        let mut input: Value = serde_json::from_str(call).unwrap();
        input["input"] = format!("{line}\n").into();
        peer.runtime(&input)
    };
    let broken = say("break main.py:3");
    let answer = exact(&broken)["stdout"].as_str().unwrap();
    assert!(answer.starts_with("Breakpoint 1 at "), "only what is new: {answer}");
    say("continue");
    let value = say("p m");
    assert_eq!(exact(&value)["stdout"], "42\n(Pdb) ");
    assert_eq!(exact(&value)["waiting_for_input"], true);
    assert!(exact(&value)["stdout_from"].as_u64() > Some(10), "{value}");
    let over = say("quit");
    assert!(exact(&over)["exitCode"].is_i64(), "{over}");
    let late = say("p m");
    assert_eq!(late["isError"], true);
    assert!(text(&late).contains("run 1 has finished"), "{late}");
    peer.close();
}

#[test]
fn the_end_of_the_input_is_told_to_a_run() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let started = peer.call("session_start", &json!({}));
    let id = exact(&started)["session_id"].clone();
    let mut exec = |mut arguments: Value| {
        arguments["session_id"] = id.clone();
        peer.call("session_exec", &arguments)
    };
    let begun = exec(json!({"command": "sort; echo over", "interactive": true}));
    assert_eq!(exact(&begun)["waiting_for_input"], true, "{begun}");
    let more = exec(json!({"run": 1, "input": "b\na\n"}));
    assert_eq!(exact(&more)["waiting_for_input"], true, "{more}");
    let done = exec(json!({"run": 1, "eof": true}));
    assert_eq!(
        (&exact(&done)["stdout"], &exact(&done)["run"]),
        (&json!("a\nb\nover\n"), &json!(1))
    );
    let wrong = exec(json!({"run": 1, "input": 3}));
    assert!(text(&wrong).contains("input must be a string"), "{wrong}");
    peer.close();
}

#[test]
fn a_run_that_has_not_begun_is_told_as_queued_and_may_give_up() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let command = super::gated("gate");
    peer.runtime(&json!({"action": "exec", "command": command, "wait_ms": 0, "timeout_ms": 0}));
    h.wait_for_file("gate.begun");
    let second = json!({"action": "exec", "command": "echo second", "wait_ms": 0});
    let queued = peer.runtime(&second);
    assert_eq!(exact(&queued)["queued"]["behind"]["run"], 1, "{queued}");
    let told = text(&queued);
    let beginning = "run 2 has not begun: queued at place 1, behind run 1 (mkfifo gate;";
    assert!(told.starts_with(beginning), "{told}");
    assert!(told.contains("It begins in its turn. To wait for it, call "), "{told}");
    let listed = peer.runtime(&json!({"action": "jobs"}));
    assert!(text(&listed).contains("(queued at place 1, behind run 1 (mkfifo"), "{listed}");
    let late = json!({"action": "exec", "command": "touch forbidden", "queue_timeout_ms": 50});
    let late = peer.runtime(&late);
    assert_eq!((&late["isError"], &exact(&late)["code"]), (&json!(true), &json!("queue_timeout")));
    assert!(text(&late).contains("and never began"), "{late}");
    std::fs::write(h.path("gate"), "go\n").unwrap();
    let done = peer.runtime(&json!({"action": "exec", "run": 2}));
    assert_eq!(exact(&done)["stdout"], "second\n", "{done}");
    assert!(!h.path("forbidden").exists());
    peer.close();
}

#[test]
fn a_run_in_the_background_is_listed_and_waited_for() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let command = super::gated("gate");
    let begun = json!({"action": "exec", "command": command, "wait_ms": 0, "no_output_timeout_ms": 600_000});
    let begun = peer.runtime(&begun);
    assert_eq!((&exact(&begun)["running"], &exact(&begun)["run"]), (&json!(true), &json!(1)));
    h.wait_for_file("gate.begun");
    let listed = peer.runtime(&json!({"action": "jobs"}));
    assert_eq!(exact(&listed)["runs"][0]["phase"], "running", "{listed}");
    assert_eq!(exact(&listed)["jobs"], json!([]));
    assert!(text(&listed).starts_with("run 1: mkfifo gate;"), "{listed}");
    std::fs::write(h.path("gate"), "go\n").unwrap();
    let done = peer.runtime(&json!({"action": "exec", "run": 1}));
    assert_eq!(exact(&done)["stdout"], "begun\ngo\nover\n");
    let wrong = peer.runtime(&json!({"action": "exec", "command": "ls", "wait_ms": "soon"}));
    assert!(text(&wrong).contains("wait_ms must be"), "{wrong}");
    peer.close();
}

#[test]
fn jobs_are_listed_with_their_ports_and_ended() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    peer.exec("python3 -m http.server 0 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 1000 & :");
    let listed = until("a port", || {
        let listed = peer.runtime(&json!({"action": "jobs"}));
        text(&listed).contains("listens on tcp port").then_some(listed)
    });
    let jobs = exact(&listed)["jobs"].as_array().unwrap().clone();
    assert_eq!(jobs.len(), 2, "{listed}");
    let id = &exact(&listed)["session_id"];
    let server = jobs.iter().find(|job| job["ports"] != json!([])).unwrap();
    let kill = peer.runtime(&json!({"action": "signal", "pid": server["pid"], "signal": "KILL"}));
    assert_eq!(text(&kill), "1 process got the signal");
    // The sleep is what is left of the run.
    let term = json!({"session_id": id, "run": 1, "signal": "TERM"});
    until("its end", || {
        let told = peer.call("session_exec", &term);
        (told["isError"] == true).then_some(())
    });
    until("no jobs", || {
        let listed = peer.call("session_jobs", &json!({"session_id": id}));
        text(&listed).ends_with("no jobs: nothing runs in the background").then_some(())
    });
    let wrong = peer.runtime(&json!({"action": "signal", "pid": 1, "signal": "TERM"}));
    assert_eq!(wrong["isError"], true);
    assert!(text(&wrong).contains("process 1 is not a job"), "{wrong}");
    peer.close();
}

#[test]
fn a_silent_command_is_interrupted() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let silent = json!({"action": "exec", "command": "x=41; sleep 1000", "timeout_ms": 0, "no_output_timeout_ms": 200});
    let result = peer.runtime(&silent);
    assert_eq!(exact(&result)["timed_out"], true);
    assert!(text(&result).contains("silent for 200ms"), "{result}");
    assert_eq!(peer.exec("echo $x"), "41\n");
    peer.close();
}
