//! Sessions that are watched, and runs that are followed.

use super::peer::Peer;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::{harness, until};

fn numbers(answer: &Value) -> Vec<u64> {
    let runs = exact(answer)["runs"].as_array().unwrap();
    runs.iter().map(|run| run["run"].as_u64().unwrap()).collect()
}

#[test]
fn what_sessions_do_is_told_with_their_runs() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    assert_eq!(text(&peer.call("session_top", &json!({}))), "no live sessions");
    let started = peer.call("session_start", &json!({"name": "web"}));
    let id = exact(&started)["session_id"].clone();
    let spin = json!({"session_id": id, "command": "while :; do :; done # spins", "wait_ms": 0, "timeout_ms": 0});
    peer.call("session_exec", &spin);
    let top = until("a busy session", || {
        let top = peer.call("session_top", &json!({}));
        (exact(&top)["sessions"][0]["cpu_percent"].as_f64()? > 5.0).then_some(top)
    });
    let row = &exact(&top)["sessions"][0];
    assert_eq!((&row["session_id"], &row["state"]), (&id, &json!("busy")));
    let told = text(&top);
    assert!(told.contains(" (web): busy, ") && told.contains(": while :; do :; done # spins"));
    peer.call("session_end", &json!({"session_id": id}));
    assert_eq!(exact(&peer.call("session_top", &json!({})))["sessions"], json!([]));
    let all = peer.call("session_top", &json!({"all": true}));
    assert_eq!(exact(&all)["sessions"][0]["state"], "ended");
    let wrong = peer.call("session_top", &json!({"all": 1}));
    assert!(text(&wrong).contains("all must be true or false"), "{wrong}");
    peer.close();
}

#[test]
fn what_was_run_is_read_and_followed_run_by_run() {
    let h = harness!();
    let s = h.session();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let mut logs = |mut arguments: Value| {
        arguments["session_id"] = s.id().into();
        peer.call("session_logs", &arguments)
    };
    let none = logs(json!({}));
    assert_eq!(
        (exact(&none)["runs"].clone(), exact(&none)["after"].clone()),
        (json!([]), json!("0"))
    );
    s.run("echo out; echo err >&2; (exit 3)");
    s.run_in("python", "print('héllo')");
    let both = logs(json!({}));
    assert_eq!(numbers(&both), [1, 2]);
    let run = &exact(&both)["runs"][0];
    assert_eq!(
        (&run["stdout"], &run["stderr"], &run["exit_code"]),
        (&json!("out\n"), &json!("err\n"), &json!(3))
    );
    let told = text(&both);
    assert!(
        told.starts_with("bash> echo out; echo err >&2; (exit 3)\nexit code 3 after "),
        "{told}"
    );
    assert!(told.contains("\npython> print('héllo')\nexit code 0"), "{told}");
    assert_eq!(numbers(&logs(json!({"limit": 1}))), [2]);
    // A long run in one language does not hide the others from who follows.
    let fifo = std::process::Command::new("mkfifo").arg(h.path("go")).status().unwrap();
    assert!(fifo.success());
    let long = s.begin("echo begun; read -r _ <go; echo over");
    let going = until("its output", || {
        let answer = logs(json!({"after": 2}));
        (exact(&answer)["runs"][0]["stdout"] == "begun\n").then_some(answer)
    });
    assert_eq!(exact(&going)["runs"][0]["running"], true);
    assert_eq!(exact(&going)["after"], "3_3");
    assert!(text(&going).contains("still running as run 3"), "{going}");
    let idle = logs(json!({"after": "3_3", "wait_ms": 50}));
    assert_eq!((numbers(&idle), &exact(&idle)["after"]), (vec![3], &json!("3_3")));
    let python = s.begin_with(&["--language", "python"], "import os; os.getpid()");
    let next = logs(json!({"after": "3_3", "wait_ms": 40_000}));
    assert_eq!(numbers(&next), [3, 4]);
    assert_eq!(exact(&next)["after"], "4_3");
    s.answer(python, "");
    std::fs::write(h.path("go"), "\n").unwrap();
    let last = logs(json!({"after": "4_3", "wait_ms": 40_000}));
    assert_eq!((numbers(&last), &exact(&last)["after"]), (vec![3], &json!("4")));
    assert_eq!(exact(&last)["runs"][0]["stdout"], "begun\nover\n");
    s.answer(long, "");
    // Of a session that is over, what is on disk.
    s.end();
    let over = logs(json!({"after": 0, "wait_ms": 40_000}));
    assert_eq!(numbers(&over), [1, 2, 3, 4]);
    let wrong = logs(json!({"after": "soon"}));
    assert!(text(&wrong).contains("after must be"), "{wrong}");
    peer.close();
}

#[test]
fn a_log_shows_the_end_of_what_a_run_has_written_so_far() {
    let h = harness!();
    let s = h.session();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    s.run_with(&["--background", "--timeout", "0"], "seq 1 100000 | sed s/$/é/; sleep 1000");
    let logs = json!({"session_id": s.id()});
    let answer = until("all of it", || {
        let answer = peer.call("session_logs", &logs);
        exact(&answer)["runs"][0]["stdout"].as_str()?.ends_with("\n100000é\n").then_some(answer)
    });
    let run = &exact(&answer)["runs"][0];
    assert!(run["stdout"].as_str().unwrap().len() < 20_000 && run["encoding"].is_null(), "{run}");
    assert!(run["truncated"]["stdout"].is_object(), "{run}");
    peer.close();
}
