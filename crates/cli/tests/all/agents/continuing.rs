//! Old ids after a restart: live, restored or fresh, and never silently.

use super::{
    agent, begin, ended, entries, exec, harness, kill_keeper, serve, serve_with_store, text,
};
use serde_json::{Value, json};
use sessile_testkit::{Format, Harness, ModelServer, Server, until};

const WARNING: &str = "Session found in store but not in memory (restart?)";

/// The lines that operators look for.
fn warnings(server: &Server) -> Vec<Value> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(WARNING));
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn record(h: &Harness, id: &str) -> Value {
    let file = h.sessions_dir().join(format!("{id}.json"));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Testbase's own test: two tasks, one session id, a restart between. More than the
/// warning that it gives is left: the session itself.
#[test]
fn two_tasks_have_one_session_although_the_server_is_restarted_between() {
    let script = vec![exec("x=41"), text("set"), exec("echo $((x+1))"), text("it is 42")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let first = begin(&server, &id, "set x");
    let first = ended(&server, &id, first);
    server.kill();
    let server = serve(&h, &model);
    let second = begin(&server, &id, "what is x+1?");
    let second = ended(&server, &id, second);
    assert_eq!(second["session_id"], first["session_id"]);
    assert_eq!(second["thread_id"], first["thread_id"]);
    assert_eq!(second["continuity"]["status"], "live", "{second}");
    let outcome = entries(&h, &id, "outcome").pop().unwrap();
    assert!(outcome["text"].as_str().unwrap().ends_with("42"), "{outcome}");
    assert_eq!(warnings(&server), Vec::<Value>::new());
    assert_eq!(record(&h, &id)["taskCount"], 2);
}

#[test]
fn a_session_whose_keeper_is_gone_is_restored_and_the_model_is_told() {
    let model = ModelServer::start(Format::Chat, vec![exec("x=41"), text("set"), text("fine")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    until("a captured state", || {
        let state = std::fs::read(h.sessions_dir().join(&id).join("state.json")).ok()?;
        let state: Value = serde_json::from_slice(&state).ok()?;
        (state["kernels"]["bash"]["as_of_run"] == 1).then_some(())
    });
    kill_keeper(&server, &id);
    server.kill();
    let server = serve(&h, &model);
    let task = begin(&server, &id, "go on");
    let view = ended(&server, &id, task);
    assert_eq!(view["continuity"], json!({ "status": "restored", "as_of_run": 1 }), "{view}");
    assert_eq!(super::prints(&server, &id, "echo $x"), "41\n");
    let said = model.requests().last().unwrap().body["messages"].to_string();
    assert!(said.contains("restored as it was after run 1"), "{said}");
    assert_eq!(warnings(&server), Vec::<Value>::new());
}

/// The agent is fresh, under its old id, and everybody is told once.
fn begins_anew(server: &Server, h: &Harness, id: &str, before: &Value, lost: &[&str]) {
    let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!(view["continuity"]["status"], "fresh", "{view}");
    // Tasks are counted on, here as in the record.
    assert_eq!((&view["task_count"], &before["taskCount"]), (&json!(1), &json!(1)), "{view}");
    let lost_task = server.get(&format!("/v1/agents/{id}/tasks/1")).is_refused(404, "not_found");
    assert!(lost_task.text().contains("lost with the agent's earlier thread"));
    let resumed = h.sessile(&["agent", "resume", id]).exits(1).errors();
    assert!(resumed.contains("began anew, and has had no task since"), "{resumed}");
    let begun = server.post(&format!("/v1/agents/{id}/tasks"), &json!({ "text": "go on" }));
    let begun = begun.is(202).json();
    assert_eq!(begun["continuity"]["status"], "fresh", "{begun}");
    let task = begun["task"].as_u64().unwrap();
    assert_eq!(task, 2, "numbers go on");
    let view = ended(server, id, task);
    assert_eq!(view["session_id"], id);
    let told = view["continuity"]["lost"].to_string();
    for part in lost {
        assert!(told.contains(part), "{part} in {told}");
    }
    let expected = json!({ "level": "warn", "message": WARNING, "sessionId": id,
        "threadId": before["threadId"], "lastActivity": before["lastActivity"] });
    until("the warning", || (!warnings(server).is_empty()).then_some(()));
    assert_eq!(warnings(server), [expected]);
    // The next task is an ordinary one.
    let task = begin(server, id, "and on");
    assert_eq!(ended(server, id, task)["continuity"]["status"], "live");
    assert_eq!(warnings(server).len(), 1);
    assert_eq!(record(h, id)["sessionId"], id);
    let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!((&view["task_count"], &record(h, id)["taskCount"]), (&json!(3), &json!(3)));
}

#[test]
fn an_id_whose_session_directory_is_gone_begins_anew() {
    let model = ModelServer::start(Format::Chat, vec![text("one"), text("two"), text("three")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "approve": ["runtime"], "instructions": "Be brief." }));
    let task = begin(&server, &id, "begin");
    ended(&server, &id, task);
    let _ = server.delete(&format!("/v1/sessions/{id}")).is(200);
    server.kill();
    let before = record(&h, &id);
    std::fs::remove_dir_all(h.sessions_dir().join(&id)).unwrap();
    let server = serve(&h, &model);
    begins_anew(&server, &h, &id, &before, &["the conversation", "variables"]);
    // Under a server that has used it, too.
    h.sessile(&["end", &id]).exits(0);
    std::fs::remove_dir_all(h.sessions_dir().join(&id)).unwrap();
    let task = begin(&server, &id, "once more");
    assert_eq!(ended(&server, &id, task)["continuity"]["status"], "fresh");
    // What it may do without being asked has not grown.
    let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!(view["approve"], json!(["runtime"]), "{view}");
    let said = model.requests().last().unwrap().body["messages"].to_string();
    assert!(said.contains("Be brief."), "{said}");
}

#[test]
fn an_id_of_which_only_the_record_is_left_begins_anew() {
    let model = ModelServer::start(Format::Chat, vec![text("one"), text("two"), text("three")]);
    let (h, other) = (harness(), harness());
    let root = other.root().display().to_string();
    let server = super::serve_with(&h, &model.configuration(), &["--workspace-root", &root]);
    let workspace = other.root();
    let id = agent(&server, &json!({ "workspace": workspace }));
    let task = begin(&server, &id, "begin");
    ended(&server, &id, task);
    let _ = server.delete(&format!("/v1/sessions/{id}")).is(200);
    server.kill();
    let before = record(&h, &id);
    // Another sessions directory, with the record alone.
    std::fs::create_dir_all(other.sessions_dir()).unwrap();
    let name = format!("{id}.json");
    std::fs::copy(h.sessions_dir().join(&name), other.sessions_dir().join(&name)).unwrap();
    let server = serve(&other, &model);
    begins_anew(&server, &other, &id, &before, &["the conversation", "environment variables"]);
    let unknown = server.get("/v1/agents/sess_0123456789abcdef01234567");
    let _ = unknown.is_refused(404, "session_not_found");
}

#[test]
fn an_id_that_only_the_store_knows_begins_anew_or_is_restored() {
    let script = vec![exec("x=41"), text("one"), text("two"), text("three")];
    let model = ModelServer::start(Format::Chat, script);
    let (h, other, shared) = (harness(), harness(), harness());
    let store = format!("file://{}/kept", shared.root().display());
    let server = serve_with_store(&h, &model, &store);
    let workspace = shared.root().join("work");
    std::fs::create_dir(&workspace).unwrap();
    let plain = agent(&server, &json!({ "workspace": workspace, "durable": false }));
    let durable = agent(&server, &json!({ "workspace": workspace, "durable": true }));
    for id in [&plain, &durable] {
        let task = begin(&server, id, "begin");
        ended(&server, id, task);
        until("a record in the store", || {
            let file = shared.path(&format!("kept/{id}.json"));
            let record: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
            let is_whole = record["taskCount"] == 1
                && record["lastActivity"] == self::record(&h, id)["lastActivity"];
            is_whole.then_some(())
        });
    }
    until("a save in the store", || {
        shared.path(&format!("kept/{durable}/latest.json")).exists().then_some(())
    });
    until("a thread in the store", || {
        let file = shared.path(&format!("kept/{durable}/thread.jsonl"));
        std::fs::read_to_string(file).ok().filter(|thread| thread.contains("\"ended\"")).map(drop)
    });
    let before = record(&h, &plain);
    for id in [&plain, &durable] {
        kill_keeper(&server, id);
    }
    server.kill();

    // A machine that has seen neither.
    let server = serve_with_store(&other, &model, &store);
    begins_anew(&server, &other, &plain, &before, &["the conversation", "variables"]);
    let task = begin(&server, &durable, "go on");
    assert_eq!(task, 2, "the thread goes on");
    let view = ended(&server, &durable, task);
    assert_eq!(view["continuity"]["status"], "restored", "{view}");
    assert_eq!(super::prints(&server, &durable, "echo $x"), "41\n");
    assert_eq!(warnings(&server).len(), 1, "none for the one that was restored");
}
