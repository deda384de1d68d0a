//! What is lost in the middle of a task: a server, a session, a keeper. It is told.

use super::{
    agent, begin, call, ended, entries, exec, harness, kill_keeper, serve, serve_with, shown, text,
};
use serde_json::{Value, json};
use sessile_testkit::{Format, Harness, ModelServer, until};

#[test]
fn the_local_server_stays_until_a_task_is_over() {
    // The run takes longer than the server waits for somebody.
    let model = ModelServer::start(Format::Chat, vec![exec("sleep 3"), text("done")]);
    let h = harness();
    std::fs::write(h.path("model.key"), "key\n").unwrap();
    std::fs::write(h.path("conf.toml"), model.configuration()).unwrap();
    let server = h.local_server(&["--idle-exit", "1500ms", "--config", "conf.toml"]);
    let workspace = h.root().display().to_string();
    let made = server.post("/v1/agents", &json!({ "workspace": workspace })).is(201).json();
    let id = made["session_id"].as_str().unwrap().to_owned();
    let _ = server.post(&format!("/v1/agents/{id}/tasks"), &json!({ "text": "wait" })).is(202);
    model.wait_for_request(2);
    server.process.wait_gone();
    // Its thread has the end, whoever looks at it.
    let server = h.local_server(&["--config", "conf.toml"]);
    let view = server.get(&format!("/v1/agents/{id}/tasks/1")).is(200).json();
    assert_eq!(view["output"], "done", "{view}");
}

/// What a crash leaves that comes between an effect and its record: the thread up to
/// the last outcome.
fn forget_last_outcome(h: &Harness, id: &str) {
    let directory = h.sessions_dir().join(id);
    let file = directory.join("thread.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let last = lines.iter().rposition(|line| line.contains("\"type\":\"outcome\"")).unwrap();
    std::fs::write(&file, lines[..last].concat()).unwrap();
    let _ = std::fs::remove_file(directory.join("thread.digest.json"));
}

/// A server that is killed after a call was carried out, and before that was written
/// down; what is done to the workspace meanwhile; and the outcome of the call.
fn interrupted(wanted: sessile_testkit::Say, h: &Harness, meanwhile: impl FnOnce()) -> Value {
    let model = ModelServer::hesitant(Format::Chat, vec![wanted, text("done")]);
    let server = serve(h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "change it");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    server.kill();
    model.release();
    forget_last_outcome(h, &id);
    meanwhile();
    let server = serve(h, &model);
    assert_eq!(ended(&server, &id, task)["output"], "done");
    let mut outcomes = entries(h, &id, "outcome");
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    outcomes.remove(0)
}

#[test]
fn a_call_whose_outcome_was_not_recorded_is_not_carried_out_again() {
    let h = harness();
    std::fs::write(h.path("app.py"), "import os\n").unwrap();
    let edit =
        json!({ "path": "app.py", "old_text": "import os", "new_text": "import os\nimport re" });
    let outcome = interrupted(call("edit_file", edit), &h, || ());
    assert_eq!(outcome["text"], "edited: app.py");
    assert_eq!(std::fs::read_to_string(h.path("app.py")).unwrap(), "import os\nimport re\n");
    let outcome = interrupted(exec("echo once >> log"), &h, || ());
    assert_eq!(outcome["run"], 1, "{outcome}");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "once\n");
}

#[test]
fn a_file_that_somebody_changed_meanwhile_is_left_as_it_is() {
    let h = harness();
    let write = json!({ "path": "notes", "text": "one\n" });
    let outcome = interrupted(call("write_file", write), &h, || {
        std::fs::write(h.path("notes"), "one\ntwo\n").unwrap();
    });
    assert_eq!(outcome["is_error"], true, "{outcome}");
    assert!(outcome["text"].as_str().unwrap().contains("whether this was done is not known"));
    assert_eq!(std::fs::read_to_string(h.path("notes")).unwrap(), "one\ntwo\n");
}

#[test]
fn a_session_that_ends_for_want_of_use_does_not_take_the_task_with_it() {
    let script = vec![exec("x=41"), exec("echo $((x+1)) > answer"), text("done")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve_with(&h, &model.configuration(), &["--idle-timeout", "1s"]);
    let id = agent(&server, &json!({ "approve": ["runtime"] }));
    let task = begin(&server, &id, "count");
    for call in ["call_0_0", "call_1_0"] {
        until("a call that waits", || {
            let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
            (view["waiting_for"] == call).then_some(())
        });
        until("the session's end", || {
            let metadata = h.sessions_dir().join(&id).join("metadata.json");
            let metadata = std::fs::read_to_string(metadata).ok()?;
            metadata.contains("idle timeout").then_some(())
        });
        h.sessile(&["agent", "approve", &id]).exits(0);
    }
    let view = ended(&server, &id, task);
    assert_eq!(view["output"], "done", "{view}");
    assert_eq!(view["continuity"]["status"], "restored", "{view}");
    assert_eq!(std::fs::read_to_string(h.path("answer")).unwrap(), "42\n");
    assert!(shown(&model).contains("Since your last step"), "{}", shown(&model));
}

#[test]
fn a_keeper_lost_between_two_steps_is_told_to_the_model() {
    let script = vec![exec("x=41"), exec("echo x=$x"), text("done")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    kill_keeper(&server, &id);
    model.release();
    model.wait_for_request(3);
    assert!(shown(&model).contains("Since your last step"), "{}", shown(&model));
    model.release();
    let view = ended(&server, &id, task);
    assert_ne!(view["continuity"]["status"], "live", "{view}");
    assert_eq!(entries(&h, &id, "continued").len(), 1);
    // The next one has nothing to tell.
    let task = begin(&server, &id, "go on");
    model.wait_for_request(4);
    model.release();
    assert_eq!(ended(&server, &id, task)["continuity"]["status"], "live");
}

#[test]
fn a_keeper_lost_with_its_server_is_told_before_the_model_says_more() {
    let model = ModelServer::hesitant(Format::Chat, vec![exec("x=41"), text("done")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    kill_keeper(&server, &id);
    server.kill();
    model.release();
    let server = serve(&h, &model);
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert!(shown(&model).contains("Since your last step"), "{}", shown(&model));
    assert_eq!(entries(&h, &id, "continued").len(), 1);
}

/// A call of the runtime tool in a language of its own.
fn eval(language: &str, code: &str) -> sessile_testkit::Say {
    call("runtime", json!({ "action": "exec", "command": code, "language": language }))
}

/// Waits for a look at what runs in the background, when so many runs were over.
fn wait_seen(h: &Harness, id: &str, command: &str, runs: u64) {
    until("a look at the jobs", || {
        let file = h.sessions_dir().join(id).join("jobs.json");
        let seen: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        let is_seen = seen["jobs"].to_string().contains(command) && seen["as_of_run"] == runs;
        is_seen.then_some(())
    });
}

#[test]
fn a_background_program_that_was_begun_in_the_step_of_the_loss_is_named() {
    let script = vec![exec("sleep 1000 & sleep 2000"), text("I see")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "serve it");
    wait_seen(&h, &id, "sleep 1000", 0);
    kill_keeper(&server, &id);
    let view = ended(&server, &id, task);
    let lost = view["continuity"]["lost"].as_array().unwrap();
    assert!(lost.contains(&json!("the background program of run 1: sleep 1000")), "{view}");
    assert!(!view["continuity"].to_string().contains("sleep 2000"), "{view}");
}

#[test]
fn runs_that_nobody_has_looked_at_since_are_named() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=41"), text("set")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    wait_seen(&h, &id, "[]", 1);
    // A rewind has a number, and begins nothing.
    let _ = server.post(&format!("/v1/agents/{id}/undo"), &json!({})).is(200);
    // Somebody else's, after the agent's last step.
    let _ = server.exec(&id, "sleep 1000 &");
    kill_keeper(&server, &id);
    let task = begin(&server, &id, "go on");
    let view = ended(&server, &id, task);
    let unseen = "what run 3 may have begun in the background since the last look";
    assert!(view["continuity"]["lost"].as_array().unwrap().contains(&json!(unseen)), "{view}");
}

#[test]
fn a_session_that_somebody_else_has_brought_back_is_told() {
    let script = vec![exec("x=41; sleep 1000 &"), text("set"), text("I see"), text("fine")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    wait_seen(&h, &id, "sleep 1000", 1);
    kill_keeper(&server, &id);
    // This one is told, and the agent is not there to hear it.
    h.sessile(&["exec", &id, "--", ":"]).exits(0);
    let task = begin(&server, &id, "go on");
    let view = ended(&server, &id, task);
    assert_eq!(view["continuity"]["status"], "restored", "{view}");
    let lost = view["continuity"]["lost"].to_string();
    assert!(lost.contains("sleep 1000") && lost.contains("somebody else"), "{view}");
    assert!(shown(&model).contains("somebody else used the session"), "{}", shown(&model));
    // It is told once.
    let task = begin(&server, &id, "and on");
    assert_eq!(ended(&server, &id, task)["continuity"]["status"], "live");
}

#[test]
fn what_was_lost_with_a_keeper_is_named() {
    let script = vec![
        exec("x=41; sleep 1000 & disown"),
        eval("python", "y = 1"),
        text("set"),
        text("I see"),
    ];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x and y");
    ended(&server, &id, task);
    let directory = h.sessions_dir().join(&id);
    until("a captured state", || {
        let state: Value =
            serde_json::from_slice(&std::fs::read(directory.join("state.json")).ok()?).ok()?;
        (state["kernels"]["bash"]["as_of_run"] == 1).then_some(())
    });
    wait_seen(&h, &id, "sleep 1000", 2);
    kill_keeper(&server, &id);
    let task = begin(&server, &id, "go on");
    let view = ended(&server, &id, task);
    let continuity = json!({ "status": "restored", "as_of_run": 1, "lost": [
        "python: its variables and other state",
        "the background program of run 1: sleep 1000",
    ] });
    assert_eq!(view["continuity"], continuity, "{view}");
    assert!(shown(&model).contains("lost: python: its variables"), "{}", shown(&model));
    // It is told once.
    kill_keeper(&server, &id);
    let task = begin(&server, &id, "and on");
    let view = ended(&server, &id, task);
    assert_eq!(view["continuity"], json!({ "status": "restored", "as_of_run": 1 }), "{view}");
}

#[test]
fn an_old_id_begins_anew_under_a_server_that_has_just_used_it() {
    let model = ModelServer::start(Format::Chat, vec![text("one"), text("two")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "begin");
    ended(&server, &id, task);
    let record = |h: &Harness| -> Value {
        let file = h.sessions_dir().join(format!("{id}.json"));
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    let before = record(&h);
    let _ = server.delete(&format!("/v1/sessions/{id}")).is(200);
    h.sessile(&["cleanup"]).exits(0);
    let body = json!({ "text": "go on" });
    let begun = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
    assert_eq!(begun["continuity"]["status"], "fresh", "{begun}");
    let view = ended(&server, &id, begun["task"].as_u64().unwrap());
    assert_eq!(view["ended"], "done", "{view}");
    // The record goes on.
    let after = record(&h);
    assert_eq!(after["taskCount"], 2, "{after}");
    assert_eq!(after["created"], before["created"], "{after}");
    assert_eq!(after["previousThreadId"], before["threadId"], "{after}");
}

#[test]
fn an_agent_whose_thread_alone_is_gone_begins_a_new_one() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=41"), text("set"), text("fine")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    let directory = h.sessions_dir().join(&id);
    std::fs::remove_file(directory.join("thread.jsonl")).unwrap();
    let body = json!({ "text": "go on" });
    let begun = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
    assert_eq!(begun["continuity"]["status"], "fresh", "{begun}");
    assert_eq!(begun["continuity"]["lost"], json!(["the conversation"]), "{begun}");
    assert_eq!(ended(&server, &id, begun["task"].as_u64().unwrap())["ended"], "done");
    assert_eq!(super::prints(&server, &id, "echo $x"), "41\n");
}

#[test]
fn a_task_whose_model_is_gone_from_the_configuration_ends() {
    let model = ModelServer::hesitant(Format::Chat, vec![text("done")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "count");
    model.wait_for_request(1);
    server.kill();
    model.release();
    let other = model.configuration().replace("\"scripted\"", "\"other\"");
    let server = serve_with(&h, &other, &[]);
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "unknown_model", "{view}");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("there is no model \"scripted\"; there are: other"), "{message}");
    let _ = server.post(&format!("/v1/agents/{id}/cancel"), &json!({})).is(200);
}

#[test]
fn a_task_of_many_steps_can_be_taken_back() {
    let mut script: Vec<_> = (1..=13).map(|n| exec(&format!("echo {n} >> log"))).collect();
    script.push(text("done"));
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "checkpoints": 3 }));
    let task = begin(&server, &id, "count");
    ended(&server, &id, task);
    let undone = server.post(&format!("/v1/agents/{id}/undo"), &json!({})).is(200).json();
    assert_eq!(undone["tasks"], json!([1]), "{undone}");
    assert!(!h.path("log").exists());
}

#[test]
fn a_run_that_was_lost_is_named_once() {
    let script = vec![exec("touch begun; sleep 1000"), text("one"), text("two"), text("three")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "wait");
    h.wait_for_file("begun");
    kill_keeper(&server, &id);
    let view = ended(&server, &id, task);
    let lost = view["continuity"]["lost"].to_string();
    assert!(lost.contains("run 1, which was going"), "{view}");
    for text in ["go on", "and on"] {
        kill_keeper(&server, &id);
        let task = begin(&server, &id, text);
        let view = ended(&server, &id, task);
        assert_ne!(view["continuity"]["status"], "live", "{view}");
        let lost = view["continuity"]["lost"].to_string();
        assert!(!lost.contains("run 1, which was going"), "{view}");
    }
}

#[test]
fn whoever_follows_a_task_starts_the_local_server_again() {
    let script = vec![exec("touch begun; until [ -e go ]; do sleep 0.02; done"), text("done")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = h.local_server(&[]);
    let place = server.socket.with_file_name("local");
    drop(server);
    // A configuration that every local server reads.
    for (name, text) in [("model.key", "key\n"), ("sessile.toml", &model.configuration())] {
        std::fs::write(place.join(name), text).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.join(name), private).unwrap();
    }
    let server = h.local_server(&[]);
    let command = h.command(&["agent", "run", "--json", "wait"]);
    let client = sessile_testkit::Client::spawn(command, b"");
    h.wait_for_file("begun");
    server.process.kill();
    server.process.wait_gone();
    std::fs::write(h.path("go"), "").unwrap();
    let view = client.finish().exits(0).json();
    assert_eq!(view["output"], "done", "{view}");
    // Which is ended with what it has started.
    drop(h.local_server(&[]));
}
