//! Linked as `delta-sessions` and `delta-sessions-pty`, it is these commands of
//! Delta Engine.

use serde_json::{Value, json};
use sessile_testkit::{Client, Harness, Output, harness};
use std::process::Command;

/// Calls us by another name.
fn call(h: &Harness, name: &str, args: &[&str], stdin: &str) -> Output {
    let link = h.path(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sessile"), &link).unwrap();
    }
    let ours = h.command(args);
    let mut command = Command::new(&link);
    command.args(args).current_dir(h.root());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Client::spawn(command, stdin.as_bytes()).finish()
}

fn id(answer: &Value) -> String {
    answer["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn delta_sessions_start_execute_list_and_end() {
    let h = harness!();
    let delta = |args: &[&str], stdin: &str| call(&h, "delta-sessions", args, stdin);
    let text = String::from_utf8(delta(&["start"], "").exits(0).stdout).unwrap();
    let id = id(&serde_json::from_str(&text).unwrap());
    let root = h.root().canonicalize().unwrap();
    let wanted = format!(
        "{{\n  \"session_id\": \"{id}\",\n  \"command\": \"bash\",\n  \"work_dir\": {:?},\n  \
         \"status\": \"active\"\n}}\n",
        root.display().to_string()
    );
    assert_eq!(text, wanted, "in their order, and indented");

    // Streams and the exit code pass through, and the state stays.
    let first = delta(&["exec", &id], "cd /; x=41; echo out; echo err >&2; (exit 3)\n").exits(3);
    assert_eq!((first.stdout.as_slice(), first.errors()), (&b"out\n"[..], "err\n".to_owned()));
    let second = delta(&["exec", &id], "echo $((x+1)) $PWD").exits(0);
    assert_eq!(second.stdout, b"42 /\n");
    let result = delta(&["exec", &id, "--json"], "sleep 0.01; echo hi").json();
    assert_eq!((&result["stdout"], &result["exit_code"]), (&json!("hi\n"), &json!(0)));
    assert!(result["execution_time_ms"].as_u64() >= Some(10), "whole milliseconds: {result}");
    delta(&["exec", &id], " \n").exits(1).warns("Error: No command provided (stdin is empty)\n");
    delta(&["exec", "sess_nope"], "ls").exits(1).warns("Error: Session sess_nope not found\n");

    let listed = delta(&["list"], "").json();
    assert_eq!(listed[0]["session_id"], id);
    assert_eq!(
        (&listed[0]["status"], &listed[0]["execution_count"]),
        (&json!("active"), &json!(3))
    );
    let ended = delta(&["end", &id], "").json();
    assert_eq!(ended, json!({"status": "terminated", "session_id": id}));
    assert_eq!(delta(&["list"], "").json()[0]["status"], "terminated");
    assert_eq!(delta(&["cleanup"], "").json(), json!({"cleaned": [id]}));
    assert_eq!(delta(&["list"], "").json(), json!([]));
    delta(&["nonsense"], "").exits(1);
}

#[test]
fn a_delta_session_may_be_of_another_language_and_elsewhere() {
    let h = harness!();
    let delta = |args: &[&str], stdin: &str| call(&h, "delta-sessions", args, stdin);
    // Wherever the option is.
    let id = id(&delta(&["start", "python3", "--sessions-dir", "elsewhere"], "").json());
    let run = |text: &str| delta(&["--sessions-dir", "elsewhere", "exec", &id], text).exits(0);
    run("def twice(n):\n    return 2 * n\n");
    assert_eq!(run("print(twice(21))").stdout, b"42\n");
    assert_eq!(delta(&["list"], "").json(), json!([]));
    delta(&["end", &id, "--sessions-dir", "elsewhere"], "").exits(0);
    delta(&["list", "--sessions-dir"], "").exits(1);
}

#[test]
fn delta_terminals_are_written_to_and_read() {
    let h = harness!();
    let delta = |args: &[&str], stdin: &str| call(&h, "delta-sessions-pty", args, stdin);
    let read = |id: &str, options: &[&str]| {
        let read = delta(&[&["read", id], options].concat(), "").exits(0);
        String::from_utf8(read.stdout).unwrap()
    };
    // It echoes nothing, so that what it prints is all there is.
    let program = "stty -echo; echo ready; while read -r line; do printf '[%s]\\n' \"$line\"; done";
    let started = delta(&["start", "sh", "-c", program], "").json();
    let id = id(&started);
    assert_eq!(started["status"], "running");
    assert_eq!(started["command"], json!(["sh", "-c", program]));
    assert!(started["pid"].as_u64() > Some(1));
    assert_eq!(read(&id, &["--wait"]), "ready\r\n");
    assert_eq!(read(&id, &[]), "", "it was read");
    let sent = delta(&["write", &id], "one\\ntwo\\\\n\\n").json();
    assert_eq!(sent, json!({"status": "sent", "bytes": 10, "session_id": id}));
    let mut seen = String::new();
    while !seen.contains("two") {
        seen += &read(&id, &["--timeout", "60000"]);
    }
    assert_eq!(seen, "[one]\r\n[two\\n]\r\n");
    let sent = delta(&["write-key", &id, "enter"], "").json();
    assert_eq!(sent, json!({"status": "sent", "key": "enter", "session_id": id}));
    assert_eq!(read(&id, &["--wait", "--lines", "2"]), "[]\r\n");
    let wrong = delta(&["write-key", &id, "nosuch"], "").exits(1);
    assert_eq!(wrong.stdout, b"{\"error\":\"Invalid key name: nosuch\"}\n");
    for key in ["arrow_up", "page_down", "ctrl+a", "f12", "escape", "backspace", "delete"] {
        delta(&["write-key", &id, key], "").exits(0);
    }

    let status = delta(&["status", &id], "").json();
    assert_eq!((&status["alive"], &status["status"]), (&json!(true), &json!("running")));
    assert_eq!(delta(&["list"], "").json()[0]["status"], "running");
    // The end of the program, but not of what can be read.
    delta(&["write-key", &id, "enter"], "").exits(0);
    delta(&["write-key", &id, "ctrl+d"], "").exits(0);
    assert!(read(&id, &["--follow"]).ends_with("]\r\n"));
    assert_eq!(delta(&["status", &id], "").json()["status"], "dead");
    let cleaned = delta(&["cleanup"], "").json();
    assert_eq!(cleaned, json!({"cleaned": [id], "remaining": []}));
    let second = super::delta::id(&delta(&["start", "cat"], "").json());
    let ended = delta(&["end", &second], "").json();
    assert_eq!(ended, json!({"status": "terminated", "session_id": second}));
    assert_eq!(delta(&["list"], "").json(), json!([]));
}

#[test]
fn delta_terminals_are_apart_from_other_sessions() {
    let h = harness!();
    let pty = |args: &[&str]| call(&h, "delta-sessions-pty", args, "");
    let (live, ended) = (h.session(), h.session());
    live.run("x=1");
    ended.run("echo no program");
    ended.end();
    let program = id(&pty(&["start", "cat"]).json());
    let listed = pty(&["list"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!((&listed[0]["session_id"], &listed[0]["command"]), (&json!(program), &json!("cat")));
    let cleaned = pty(&["cleanup"]).json();
    assert_eq!(cleaned, json!({"cleaned": [], "remaining": [program]}));
    live.run("echo $x").prints("1\n").is_kept();
    assert!(ended.dir().exists(), "it is another command's to remove");
    pty(&["end", &program]).exits(0);
}
