//! Whatever is killed: each call has one effect, and the result is the model's.

use super::{agent, begin, call, ended, entries, exec, harness, serve, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, Harness, ModelServer, Process, Say};

const STEPS: usize = 20;

/// Every fifth step is one of a file tool; an edit that is made twice is seen.
fn step(n: usize) -> Say {
    match n {
        5 => call("write_file", json!({ "path": "notes", "text": "5\nend\n" })),
        n if n % 5 == 0 => {
            let new = format!("{n}\nend");
            call("edit_file", json!({ "path": "notes", "old_text": "end", "new_text": new }))
        }
        n => exec(&format!("echo {n} >> log; total=$((total + {n}))")),
    }
}

/// The steps that run something.
fn runs() -> impl Iterator<Item = usize> {
    (1..=STEPS).filter(|n| n % 5 != 0)
}

/// Twenty steps, each of which leaves a line, then an answer.
fn script() -> Vec<Say> {
    let mut script: Vec<_> = (1..=STEPS).map(step).collect();
    script.push(exec("echo $total > total"));
    script.push(text("counted"));
    script
}

/// The numbers of the commands in the session's own history.
fn session_runs(h: &Harness, id: &str) -> Vec<u64> {
    let history = std::fs::read_to_string(h.sessions_dir().join(id).join("history.log")).unwrap();
    let entries = history.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let commands = entries.filter(|entry| entry["event"].is_null());
    let mut runs: Vec<_> = commands.filter_map(|entry| entry["run"].as_u64()).collect();
    runs.sort_unstable();
    runs
}

fn check(h: &Harness, id: &str, view: &Value) {
    assert_eq!(view["output"], "counted", "{view}");
    let log = std::fs::read_to_string(h.path("log")).unwrap();
    let expected: String = runs().map(|n| format!("{n}\n")).collect();
    assert_eq!(log, expected);
    let notes = std::fs::read_to_string(h.path("notes")).unwrap();
    assert_eq!(notes, "5\n10\n15\n20\nend\n");
    // Each call has one outcome, and each run of the session is that of one call.
    let outcomes = entries(h, id, "outcome");
    assert_eq!(outcomes.len(), STEPS + 1);
    let numbers: Vec<_> = outcomes.iter().filter_map(|o| o["run"].as_u64()).collect();
    assert_eq!(numbers, session_runs(h, id), "thread and session agree");
    assert_eq!(numbers.len(), runs().count() + 1);
}

#[test]
fn a_server_killed_at_each_question_to_the_model_loses_nothing() {
    let model = ModelServer::hesitant(Format::Chat, script());
    let h = harness();
    let mut server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    let mut asked = 0;
    for _ in 0..STEPS + 2 {
        asked += 1;
        model.wait_for_request(asked);
        server.kill();
        model.release();
        // The next server goes on by itself, and asks the same once more.
        server = serve(&h, &model);
        asked += 1;
        model.wait_for_request(asked);
    }
    let view = ended(&server, &id, task);
    check(&h, &id, &view);
    let total: usize = runs().sum();
    assert_eq!(std::fs::read_to_string(h.path("total")).unwrap(), format!("{total}\n"));
}

#[test]
fn a_server_killed_in_the_middle_of_a_call_has_it_carried_out_once() {
    let script = vec![
        exec("echo one >> log; echo begun > begun; read line < gate; echo two >> log"),
        text("done"),
    ];
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let made = std::process::Command::new("mkfifo").arg(h.path("gate")).status().unwrap();
    assert!(made.success());
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    server.kill();
    let server = serve(&h, &model);
    std::fs::write(h.path("gate"), "on\n").unwrap();
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "one\ntwo\n");
    assert_eq!(entries(&h, &id, "outcome").len(), 1);
}

#[test]
fn clients_killed_at_each_step_leave_their_task_going() {
    let model = ModelServer::hesitant(Format::Chat, script());
    let h = harness();
    let _server = serve(&h, &model);
    let client = h.begin(&["agent", "run", "--checkpoints", "0", "count"], b"");
    model.wait_for_request(1);
    client.process().kill();
    let _ = client.finish();
    let list = h.sessile(&["agent", "list"]).exits(0).json();
    let id = list[0]["session_id"].as_str().unwrap();
    for step in 2..=STEPS + 2 {
        // Whoever comes back to it is killed as well.
        let client = h.begin(&["agent", "resume", id], b"");
        model.release();
        model.wait_for_request(step);
        client.process().kill();
        let _ = client.finish();
    }
    model.release();
    let view = h.sessile(&["agent", "resume", id, "--json"]).exits(0).json();
    check(&h, id, &view);
}

#[test]
fn a_keeper_killed_at_each_question_loses_no_call() {
    let model = ModelServer::hesitant(Format::Responses, script());
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    for step in 1..=STEPS + 2 {
        model.wait_for_request(step);
        // The last captured state may be older than the last run: `total` is not
        // looked at here, and whoever loses state is told so by its runs.
        let keeper = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64();
        if let Some(keeper) = keeper.and_then(|pid| i32::try_from(pid).ok()) {
            let keeper = Process::of(keeper);
            keeper.kill();
            keeper.wait_gone();
        }
        model.release();
    }
    let view = ended(&server, &id, task);
    check(&h, &id, &view);
}

/// As a machine that goes down: server and keeper go at once, with whoever watches.
#[test]
fn all_of_them_killed_at_each_question_lose_no_call() {
    let model = ModelServer::hesitant(Format::Messages, script());
    let h = harness();
    let mut server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    let mut asked = 0;
    for _ in 0..STEPS + 2 {
        asked += 1;
        model.wait_for_request(asked);
        let client = h.begin(&["agent", "resume", &id], b"");
        super::kill_keeper(&server, &id);
        // Before the server: one that is just coming up would start a server of its own, which
        // has no model.
        client.process().kill();
        let _ = client.finish();
        server.kill();
        model.release();
        server = serve(&h, &model);
        asked += 1;
        model.wait_for_request(asked);
    }
    let view = ended(&server, &id, task);
    check(&h, &id, &view);
    assert_eq!(entries(&h, &id, "continued").len(), STEPS + 2, "each loss is told once");
}

/// A call that says that it has begun, and then waits to be let go on.
fn gated(n: usize) -> Say {
    exec(&format!("echo {n} >> log; : > begun-{n}; read line < gate-{n}; echo {n} >> done"))
}

fn numbers() -> String {
    (1..=STEPS).map(|n| format!("{n}\n")).collect()
}

#[test]
fn a_server_killed_in_the_middle_of_each_call_has_each_carried_out_once() {
    let script = (1..=STEPS).map(gated).chain([text("counted")]).collect();
    let model = ModelServer::start(Format::Responses, script);
    let h = harness();
    for n in 1..=STEPS {
        let gate = h.path(&format!("gate-{n}"));
        assert!(std::process::Command::new("mkfifo").arg(gate).status().unwrap().success());
    }
    let mut server = serve(&h, &model);
    let id = agent(&server, &json!({ "checkpoints": 0 }));
    let task = begin(&server, &id, "count");
    for n in 1..=STEPS {
        h.wait_for_file(&format!("begun-{n}"));
        server.kill();
        // The run goes on without it, or ends meanwhile.
        let open = |h: &Harness| std::fs::write(h.path(&format!("gate-{n}")), "on\n").unwrap();
        if n % 2 == 0 {
            open(&h);
        }
        server = serve(&h, &model);
        if n % 2 == 1 {
            open(&h);
        }
    }
    assert_eq!(ended(&server, &id, task)["output"], "counted");
    for file in ["log", "done"] {
        assert_eq!(std::fs::read_to_string(h.path(file)).unwrap(), numbers(), "{file}");
    }
    let outcomes = entries(&h, &id, "outcome");
    let runs: Vec<_> = outcomes.iter().filter_map(|outcome| outcome["run"].as_u64()).collect();
    assert_eq!(runs, session_runs(&h, &id), "thread and session agree");
    assert_eq!(runs.len(), STEPS);
}

#[test]
fn a_keeper_killed_in_the_middle_of_each_call_has_none_carried_out_again() {
    let wait = |n: usize| exec(&format!("echo {n} >> log; : > begun-{n}; sleep 1000"));
    let script = (1..=STEPS).map(wait).chain([text("counted")]).collect();
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "checkpoints": 0 }));
    let task = begin(&server, &id, "count");
    for n in 1..=STEPS {
        h.wait_for_file(&format!("begun-{n}"));
        super::kill_keeper(&server, &id);
    }
    assert_eq!(ended(&server, &id, task)["output"], "counted");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), numbers());
    let outcomes = entries(&h, &id, "outcome");
    assert_eq!(outcomes.len(), STEPS);
    for (outcome, run) in outcomes.iter().zip(1..) {
        assert_eq!((&outcome["is_error"], &outcome["run"]), (&json!(true), &json!(run)));
        assert!(outcome["text"].as_str().unwrap().contains("not known"), "{outcome}");
    }
}

#[test]
fn a_keeper_killed_in_the_middle_of_a_call_is_told_to_the_model() {
    let script = vec![exec("echo begun > begun; sleep 1000"), exec("echo again"), text("done")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    let keeper = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64().unwrap();
    Process::of(i32::try_from(keeper).unwrap()).kill();
    assert_eq!(ended(&server, &id, task)["output"], "done");
    let outcomes = entries(&h, &id, "outcome");
    assert_eq!(outcomes[0]["is_error"], true, "{outcomes:?}");
    assert_eq!(outcomes[0]["run"], 1, "{outcomes:?}");
    assert!(outcomes[0]["text"].as_str().unwrap().contains("not known"), "{outcomes:?}");
    assert_eq!(entries(&h, &id, "continued").len(), 1);
    assert!(outcomes[1]["text"].as_str().unwrap().contains("again"), "{outcomes:?}");
}
