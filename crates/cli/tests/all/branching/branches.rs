//! Forks, checkpoints and going back on the command line.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Output, Session, harness};

fn ask(h: &Harness, session: &Session<'_>, words: &[&str]) -> Output {
    h.sessile(&[&[words[0], session.id()], &words[1..]].concat())
}

fn run(h: &Harness, id: &str, command: &str) -> String {
    let done = h.sessile(&["exec", id, "--", command]).json();
    done["stdout"].as_str().unwrap_or_default().to_owned()
}

fn names(h: &Harness, session: &Session<'_>) -> Vec<String> {
    let list = ask(h, session, &["checkpoints"]).json();
    let names = list.as_array().expect("a list").iter().map(|row| row["name"].as_str());
    names.map(|name| name.expect("a name").to_owned()).collect()
}

#[test]
fn forks_have_ids_a_name_and_the_state_of_their_original() {
    let h = harness!();
    let s = h.session();
    s.run("x=1; f() { echo \"f $x\"; }; cd /tmp");
    let forked = ask(&h, &s, &["fork", "--count", "3", "--name", "tries"]).json();
    let ids: Vec<&str> =
        forked["session_ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(
        forked["kernels"],
        json!([{"language": "bash", "as_of_run": 1, "carried": "saved"}])
    );
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(run(&h, id, &format!("x=1{n}; f; pwd")), format!("f 1{n}\n/tmp\n"));
    }
    assert_eq!(s.run("f").json()["stdout"], "f 1\n");
    let listed = h.list();
    for (n, id) in ids.iter().enumerate() {
        let fork = listed.iter().find(|m| m["session_id"] == **id).expect("listed");
        assert_eq!(fork["name"], format!("tries-{}", n + 1), "names are unique");
        assert_eq!(fork["forked_from"], json!({"session_id": s.id(), "as_of_run": 1}));
    }
    assert_eq!(listed.iter().filter(|m| m["forked_from"].is_null()).count(), 1);
    // A fork goes on counting where its original was.
    assert_eq!(h.sessile(&["exec", ids[0], "--", ":"]).json()["run"], 3);
    s.end();
    assert_eq!(run(&h, ids[2], "f"), "f 12\n");
}

#[test]
fn what_a_fork_does_not_have_is_named_with_the_reason() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("import threading, socket\ngate = threading.Event()\nworker = threading.Thread(target=gate.wait, daemon=True, name='worker')\nworker.start()\nsock = socket.socket()");
    let forked = ask(&h, &s, &["fork"]).json();
    let left = forked["left"].as_array().expect("a list");
    let has = |word: &str| {
        left.iter().any(|thing| {
            let text = format!("{} {}", thing["name"], thing["reason"]);
            text.contains(word)
        })
    };
    assert!(has("worker"), "{forked}");
    assert!(has("socket"), "{forked}");
    let id = forked["session_ids"][0].as_str().expect("an id");
    assert_eq!(run(&h, id, "print(threading.active_count(), gate.is_set())"), "1 False\n");
}

#[test]
fn a_background_process_stays_with_the_original() {
    let h = harness!();
    let s = h.session();
    let sleep = s.spawns("sleep 600 & echo $!");
    let forked = ask(&h, &s, &["fork"]).json();
    assert!(forked["left"].to_string().contains("sleep 600"), "{forked}");
    let id = forked["session_ids"][0].as_str().expect("an id");
    assert_eq!(h.sessile(&["jobs", id]).json(), json!([]));
    let _ = h.sessile(&["end", id]).exits(0);
    assert!(sleep.is_alive(), "it is the original's");
}

#[test]
fn a_checkpoint_is_gone_back_to_as_often_as_wanted() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("data = [1]");
    let taken = ask(&h, &s, &["checkpoint", "--name", "one"]).json();
    assert_eq!((&taken["name"], &taken["auto"]), (&json!("one"), &json!(false)));
    for _ in 0..3 {
        s.run("data.append(2)\nimport os; os._exit(1)");
        let back = ask(&h, &s, &["rewind", "one"]).json();
        assert_eq!(back["checkpoint"], "one");
        assert_eq!(s.run("print(data)").json()["stdout"], "[1]\n");
    }
    assert_eq!(names(&h, &s), ["one"]);
    assert_eq!(ask(&h, &s, &["drop", "one"]).json(), json!({"dropped": ["one"]}));
    assert_eq!(names(&h, &s), [""; 0]);
}

#[test]
fn the_history_and_the_logs_tell_of_a_rewind_as_what_it_is() {
    let h = harness!();
    let s = h.session_with(&["python3", "--auto", "5"]);
    s.run("x = 1");
    s.run("x = 2");
    let undone = ask(&h, &s, &["undo"]).json();
    assert_eq!((&undone["undone"], &undone["run"]), (&json!([2]), &json!(3)));
    let history = s.history();
    assert_eq!(history[2]["event"], "rewind");
    assert!(history[1].get("event").is_none());
    let logs = ask(&h, &s, &["logs"]).text();
    let line = logs.lines().find(|line| line.starts_with("3 * ")).expect("a line about it");
    assert!(line.ends_with("rewind before-2; takes back run 2"), "{line}");
    assert!(!logs.contains("3 = exit"), "{logs}");
    let json = ask(&h, &s, &["logs", "--json"]).text();
    let event: Value = json
        .lines()
        .filter_map(|l| serde_json::from_str(l).ok())
        .find(|e: &Value| e["run"] == 3)
        .expect("an event");
    assert_eq!(
        (&event["event"], &event["notes"]),
        (&json!("rewind"), &json!(["takes back run 2"]))
    );
    let runs = ask(&h, &s, &["runs"]).json();
    assert_eq!(runs[2]["event"], "rewind");
    // Who follows is told, too, once something is run.
    assert_eq!(s.run("print(x)").json()["stdout"], "1\n");
}

#[test]
fn what_is_wrong_is_said_in_plain_words() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    let says = |words: &[&str], part: &str| {
        let errors = ask(&h, &s, words).exits(1).errors();
        assert!(errors.contains(part), "{words:?}: {errors}");
    };
    says(&["rewind"], "the session has no checkpoints");
    says(&["rewind", "nope"], "there is no checkpoint \"nope\"");
    says(&["undo"], "start a session with `auto`");
    says(&["drop", "nope"], "there is no checkpoint \"nope\"");
    says(&["fork", "--count", "0"], "1 to 1000 times");
    says(&["fork", "--count", "1001"], "1 to 1000 times");
    let _ = ask(&h, &s, &["checkpoint", "--name", "a"]).exits(0);
    says(&["checkpoint", "--name", "a"], "there is a checkpoint \"a\" already");
    says(&["checkpoint", "--name", ""], "cannot be the name of a checkpoint");
    let wrong = ask(&h, &s, &["rewind", "a", "--runs", "1"]).exits(2).errors();
    assert!(wrong.contains("cannot be used with"), "{wrong}");
    let _ = ask(&h, &s, &["drop"]).exits(2);
    let _ = h.sessile(&["start", "--auto", "0"]).exits(2);
    let _ = h.sessile(&["fork", "sess_000000000000"]).exits(1);
    s.end();
    says(&["fork"], "was ended by request");
}

#[test]
fn checkpoints_and_forks_are_a_table_at_a_terminal() {
    let h = harness!();
    let s = h.session();
    let empty = h.at_a_terminal(&["checkpoints", s.id()]);
    assert_eq!(empty.trim_end(), "No checkpoints.");
    s.run("x=1");
    let _ = ask(&h, &s, &["checkpoint", "--name", "before lunch"]).exits(0);
    let table = h.at_a_terminal(&["checkpoints", s.id()]);
    let mut lines = table.lines();
    assert!(lines.next().is_some_and(|head| head.starts_with("NAME  ")), "{table}");
    let row = lines.next().unwrap_or_default();
    assert!(row.starts_with("before lunch  ") && row.contains("bash"), "{table}");
    let before = h.at_a_terminal(&["list"]);
    assert!(!before.contains("FORK OF"), "{before}");
    let _ = ask(&h, &s, &["fork"]).exits(0);
    let after = h.at_a_terminal(&["list"]);
    assert!(after.contains("FORK OF") && after.matches(s.id()).count() == 2, "{after}");
}

#[test]
fn a_run_that_is_going_is_waited_for_if_that_is_wanted() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo gate");
    let going = s.begin("x=done; echo > begun; read line < gate");
    h.wait_for_file("begun");
    for command in ["fork", "checkpoint", "rewind", "undo"] {
        let errors = ask(&h, &s, &[command]).exits(1).errors();
        assert!(errors.contains("run 2 is going"), "{errors}");
    }
    let refused = h.sessile(&["start", "--from", s.id()]).exits(1).errors();
    assert!(refused.contains("ask with `wait`"), "{refused}");
    let waiting = h.begin(&["fork", s.id(), "--wait"], b"");
    waiting.wait_blocked();
    let starting = h.begin(&["start", "--from", s.id(), "--wait"], b"");
    starting.wait_blocked();
    std::fs::write(h.path("gate"), "").expect("a gate");
    let forked = waiting.finish().json();
    let started = starting.finish().json();
    drop(s.answer(going, ""));
    for id in [&forked["session_ids"][0], &started["session_id"]] {
        assert_eq!(run(&h, id.as_str().expect("an id"), "echo $x"), "done\n");
    }
    let _ = h.sessile(&["start", "--wait"]).exits(2);
}

#[test]
fn a_session_that_cannot_be_started_leaves_no_keeper() {
    let h = harness!();
    let _ = h.sessile(&["start", "/nowhere/bash"]).exits(1);
    for process in h.processes() {
        process.wait_gone();
    }
}

#[test]
fn a_fork_that_nobody_waits_for_any_more_is_not_made() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo gate");
    let going = s.begin("echo > begun; read line < gate");
    h.wait_for_file("begun");
    let impatient = h.begin(&["fork", s.id(), "--wait"], b"");
    impatient.wait_blocked().process().kill().wait_ended();
    let patient = h.begin(&["fork", s.id(), "--wait", "--name", "second"], b"");
    patient.wait_blocked();
    std::fs::write(h.path("gate"), "").expect("a gate");
    let _ = patient.finish().exits(0);
    drop(s.answer(going, ""));
    assert_eq!(h.list().len(), 2);
}
