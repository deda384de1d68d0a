//! Threads go back with their sessions: conversation, interpreters and files.

use super::{agent, begin, call, ended, entries, exec, harness, serve, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, ModelServer, Say};

fn write(path: &str, content: &str) -> Say {
    call("write_file", json!({ "path": path, "text": content }))
}

/// What the model was shown, in order: the text of each message.
fn shown(model: &ModelServer) -> String {
    model.requests().last().unwrap().body["messages"].to_string()
}

#[test]
fn an_agent_goes_back_with_its_interpreters_and_files() {
    let script = vec![
        exec("x=1"),
        write("notes.txt", "first\n"),
        text("begun"),
        exec("x=2; echo second >> notes.txt; rm -f other.txt"),
        text("gone on"),
        // After the rewind the model has spoken three times.
        exec("echo $x; cat notes.txt"),
    ];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    std::fs::write(h.path("other.txt"), "here\n").unwrap();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let first = begin(&server, &id, "begin");
    ended(&server, &id, first);
    let second = begin(&server, &id, "go on");
    ended(&server, &id, second);
    assert!(!h.path("other.txt").exists());

    let back = server.post(&format!("/v1/agents/{id}/rewind"), &json!({ "step": 2 })).is(200);
    let back = back.json();
    assert_eq!((&back["step"], &back["steps"]), (&json!(2), &json!([3, 4, 5])), "{back}");
    assert_eq!((&back["tasks"], &back["session"]["undone"]), (&json!([2]), &json!([2])), "{back}");
    assert_eq!(std::fs::read_to_string(h.path("notes.txt")).unwrap(), "first\n");
    assert_eq!(std::fs::read_to_string(h.path("other.txt")).unwrap(), "here\n");
    assert_eq!(super::prints(&server, &id, "echo $x"), "1\n");
    let tasks = server.get(&format!("/v1/agents/{id}/tasks")).is(200).json();
    assert_eq!(tasks["tasks"][0]["taken_back"], true, "{tasks}");
    // The whole thread is on disk.
    assert_eq!(entries(&h, &id, "task").len(), 2);
    assert_eq!(entries(&h, &id, "reply").len(), 5);
    assert_eq!(entries(&h, &id, "rewound").len(), 1);

    let third = begin(&server, &id, "look");
    assert_eq!(third, 3);
    ended(&server, &id, third);
    let said = shown(&model);
    assert!(said.contains("begin") && said.contains("look"), "{said}");
    assert!(!said.contains("go on") && !said.contains("gone on"), "{said}");

    let undone = h.sessile(&["agent", "undo", &id]).exits(0).json();
    assert_eq!((&undone["step"], &undone["tasks"]), (&json!(2), &json!([3])), "{undone}");
    let all = h.sessile(&["agent", "rewind", &id, "0"]).exits(0).json();
    assert_eq!((&all["step"], &all["steps"]), (&json!(0), &json!([1, 2])), "{all}");
    assert!(!h.path("notes.txt").exists());
    let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!((&view["status"], &view["task_count"]), (&json!("idle"), &json!(3)), "{view}");
}

#[test]
fn a_rewind_that_cannot_be_made_says_why_and_changes_nothing() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=1"), text("done"), text("more")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "checkpoints": 0 }));
    let rewind =
        |step: u64| server.post(&format!("/v1/agents/{id}/rewind"), &json!({ "step": step }));
    let _ = rewind(1).is_refused(404, "checkpoint_not_found");
    let none = server.post(&format!("/v1/agents/{id}/undo"), &json!({}));
    let _ = none.is_refused(404, "checkpoint_not_found");
    let task = begin(&server, &id, "begin");
    ended(&server, &id, task);
    let refused = rewind(0).is_refused(404, "checkpoint_not_found");
    assert!(refused.text().contains("was made without checkpoints"), "{}", refused.text());
    let refused = rewind(7).is_refused(404, "checkpoint_not_found");
    assert!(refused.text().contains("its steps are 1 to 2"), "{}", refused.text());
    // Nothing was done in the session since: the conversation alone goes back.
    let back = rewind(1).is(200).json();
    assert_eq!((&back["steps"], &back["session"]), (&json!([2]), &Value::Null), "{back}");
    assert_eq!(super::prints(&server, &id, "echo $x"), "1\n");
}

#[test]
fn a_session_that_is_taken_back_by_itself_is_told_to_the_model() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=1"), text("set"), text("I see")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    let back = h.sessile(&["rewind", &id, "agent-step-1"]).exits(0).json();
    assert_eq!(back["undone"], json!([1]), "{back}");
    let task = begin(&server, &id, "and now?");
    assert_eq!(ended(&server, &id, task)["output"], "I see");
    let told = entries(&h, &id, "session_rewound");
    assert_eq!((told.len(), &told[0]["run"]), (1, &back["run"]), "{told:?}");
    let said = shown(&model);
    assert!(said.contains("The user has taken the session back"), "{said}");
    assert!(said.contains("takes back run 1"), "{said}");
    // It is told once.
    let task = begin(&server, &id, "again");
    ended(&server, &id, task);
    assert_eq!(entries(&h, &id, "session_rewound").len(), 1);
}

#[test]
fn only_so_many_steps_can_be_taken_back() {
    let script = (1..=6).map(|n| exec(&format!("x={n}"))).chain([text("counted")]).collect();
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "checkpoints": 3 }));
    let task = begin(&server, &id, "count");
    ended(&server, &id, task);
    let names: Vec<_> = h
        .sessile(&["checkpoints", &id])
        .exits(0)
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| checkpoint["name"].as_str().unwrap().to_owned())
        .collect();
    // And the one from before the task.
    assert_eq!(names, ["agent-step-1", "agent-step-4", "agent-step-5", "agent-step-6"]);
    let path = format!("/v1/agents/{id}/rewind");
    let refused = server.post(&path, &json!({ "step": 1 })).is_refused(404, "checkpoint_not_found");
    assert!(refused.text().contains("it can go back to: 0, 3, 4, 5"), "{}", refused.text());
    assert_eq!(entries(&h, &id, "not_rewound").len(), 1);
    let _ = server.post(&path, &json!({ "step": 4 })).is(200);
    assert_eq!(super::prints(&server, &id, "echo $x"), "4\n");
}
