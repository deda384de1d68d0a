//! Durable agents in a store: another machine goes on in the middle of a task.
//!
//! A machine is a sessions directory with a state directory of its own. All have one
//! workspace, in which each effect of a call is seen.

use super::{
    agent, begin, call, ended, entries, exec, harness, serve_with_credentials, shown, text,
};
use serde_json::{Value, json};
use sessile_testkit::{
    Client, Format, Harness, ModelServer, ObjectServer, Process, Server, object_server,
    shared_object_server, until,
};
use std::collections::BTreeMap;

/// What is left is looked for by each: those that went on go first.
struct Machines {
    shared: Harness,
    other: Harness,
    one: Harness,
    store: String,
    credentials: BTreeMap<String, String>,
}

impl Machines {
    /// With a directory that all of them see as their store.
    fn new() -> Self {
        let shared = harness();
        let store = format!("file://{}/kept", shared.root().display());
        Self::with(shared, store, BTreeMap::new())
    }

    /// With a bucket in a real object store.
    fn with_bucket(server: &ObjectServer, folder: &str) -> Self {
        Self::with(harness(), format!("s3://saves/{folder}"), server.user())
    }

    fn with(shared: Harness, store: String, credentials: BTreeMap<String, String>) -> Self {
        let (one, other) = (harness(), harness());
        std::fs::create_dir(shared.path("work")).unwrap();
        Self { one, other, shared, store, credentials }
    }

    fn serve(&self, machine: &Harness, model: &ModelServer) -> Server {
        serve_with_credentials(machine, model, &self.store, &self.credentials)
    }

    fn agent(&self, server: &Server, model: &Value) -> String {
        let mut body = json!({ "workspace": self.shared.path("work"), "durable": true,
            "checkpoints": 0 });
        if !model.is_null() {
            body["model"] = model.clone();
        }
        agent(server, &body)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.shared.path("work").join(file)).unwrap_or_default()
    }

    fn wait_saved(&self, id: &str, run: u64) {
        until("a save in the store", || {
            let metadata = self.one.sessions_dir().join(id).join("metadata.json");
            let metadata: Value = serde_json::from_slice(&std::fs::read(metadata).ok()?).ok()?;
            (metadata["durable"]["store"]["as_of_run"] == run).then_some(())
        });
    }

    /// Another machine takes a session up, as far as the store knows.
    fn take_elsewhere(&self, id: &str) {
        let order = json!({ "take": { "url": self.store, "session_id": id,
            "file": self.shared.path("taken") } });
        let mut command = self.other.command(&["fetcher"]);
        command.envs(&self.credentials);
        let client = Client::spawn(command, order.to_string().as_bytes());
        assert!(client.finish().text().contains("taken"), "it is taken");
    }
}

/// A machine goes down: the server cannot tell of what happens to the session.
fn lose(server: Server, id: &str) {
    let pid = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64().unwrap();
    server.kill();
    let keeper = Process::of(i32::try_from(pid).unwrap());
    keeper.kill();
    keeper.wait_gone();
}

#[test]
fn a_machine_lost_in_the_middle_of_a_call_is_gone_on_from_by_another() {
    goes_on_after_a_loss(&Machines::new());
}

#[test]
fn it_is_gone_on_from_by_way_of_an_object_store() {
    let Some(server) = shared_object_server() else { return };
    goes_on_after_a_loss(&Machines::with_bucket(server, "agents-lost"));
}

fn goes_on_after_a_loss(m: &Machines) {
    let script = vec![
        exec("x=41; echo one >> log"),
        exec("echo two >> log; touch begun; sleep 1000"),
        exec("echo three $x >> log"),
        text("counted"),
    ];
    let model = ModelServer::hesitant(Format::Chat, script);
    let server = m.serve(&m.one, &model);
    let id = m.agent(&server, &Value::Null);
    begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    m.wait_saved(&id, 1);
    model.release();
    until("a call that is going", || m.shared.path("work/begun").exists().then_some(()));
    lose(server, &id);

    let server = m.serve(&m.other, &model);
    // Whoever asks for it has it go on.
    let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!(view["status"], "running", "{view}");
    for request in [3, 4] {
        model.wait_for_request(request);
        model.release();
    }
    let view = server.get(&format!("/v1/agents/{id}/tasks/1?wait=60s")).is(200).json();
    assert_eq!(view["output"], "counted", "{view}");
    assert_eq!(view["continuity"]["status"], "restored", "{view}");
    assert_eq!(m.read("log"), "one\ntwo\nthree 41\n", "each call has one effect");
    let outcomes = entries(&m.other, &id, "outcome");
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
    assert_eq!(outcomes[1]["is_error"], true, "{outcomes:?}");
    let told = outcomes[1]["text"].as_str().unwrap();
    assert!(told.contains("whether this was carried out is not known"), "{told}");
    assert!(shown(&model).contains("is not known"), "{}", shown(&model));
}

#[test]
fn a_machine_lost_while_the_model_thinks_loses_no_outcome() {
    let write = json!({ "path": "notes", "text": "kept\n" });
    let script = vec![exec("echo one >> log; x=41"), call("write_file", write), text("done")];
    let model = ModelServer::hesitant(Format::Messages, script);
    let m = Machines::new();
    let server = m.serve(&m.one, &model);
    let id = m.agent(&server, &Value::Null);
    begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    m.wait_saved(&id, 1);
    until("the outcome in the store", || {
        let thread = m.shared.path(&format!("kept/{id}/thread.jsonl"));
        std::fs::read_to_string(thread).ok().filter(|t| t.contains("\"outcome\"")).map(drop)
    });
    lose(server, &id);
    model.release();

    let server = m.serve(&m.other, &model);
    let begun = server.get(&format!("/v1/agents/{id}")).is(200).json();
    assert_eq!(begun["status"], "running", "{begun}");
    model.release();
    let view = ended(&server, &id, 1);
    assert_eq!(view["output"], "done", "{view}");
    assert_eq!((m.read("log").as_str(), m.read("notes").as_str()), ("one\n", "kept\n"));
    let outcomes = entries(&m.other, &id, "outcome");
    assert_eq!(outcomes[0]["run"], 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome["is_error"].is_null()), "{outcomes:?}");
}

#[test]
fn a_machine_that_has_lost_the_session_carries_out_nothing_more() {
    let m = Machines::new();
    carries_out_nothing_more(&m);
    // Nor does it write over the thread of the one that has it.
    let threads = std::fs::read_dir(m.shared.path("kept")).unwrap().flatten();
    let late = threads.filter(|entry| entry.path().join("thread-1.jsonl").exists());
    assert_eq!(late.count(), 0);
}

#[test]
fn it_carries_out_nothing_more_when_an_object_store_says_so() {
    let Some(server) = shared_object_server() else { return };
    carries_out_nothing_more(&Machines::with_bucket(server, "agents-taken"));
}

fn carries_out_nothing_more(m: &Machines) {
    let script = vec![exec("echo one >> log"), exec("echo two >> log"), text("done")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let server = m.serve(&m.one, &model);
    let id = m.agent(&server, &Value::Null);
    begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    m.wait_saved(&id, 1);
    m.take_elsewhere(&id);
    model.release();
    let view = ended(&server, &id, 1);
    assert_eq!((&view["ended"], &view["failure"]["fault"]), (&json!("failed"), &json!("moved")));
    assert_eq!(m.read("log"), "one\n");
    let outcomes = entries(&m.one, &id, "outcome");
    assert_eq!(outcomes[1]["text"], "not carried out: the task had failed", "{outcomes:?}");
}

#[test]
fn a_store_that_takes_nothing_keeps_calls_from_being_carried_out() {
    let script = vec![exec("echo one >> log"), text("so be it")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let m = Machines::new();
    let server = m.serve(&m.one, &model);
    let id = m.agent(&server, &Value::Null);
    begin(&server, &id, "count");
    model.wait_for_request(1);
    // A file where the store's directory was.
    until("nothing on its way", || {
        let kept = m.shared.path("kept");
        std::fs::remove_dir_all(&kept).ok();
        std::fs::write(&kept, "").ok()
    });
    model.release();
    model.wait_for_request(2);
    model.release();
    assert_eq!(ended(&server, &id, 1)["output"], "so be it");
    assert_eq!(m.read("log"), "");
    let outcomes = entries(&m.one, &id, "outcome");
    assert!(outcomes[0]["text"].as_str().unwrap().starts_with("not carried out: "), "{outcomes:?}");
}

#[test]
fn an_object_store_that_is_down_keeps_calls_from_being_carried_out_and_is_used_again() {
    let Some(mut server) = object_server() else { return };
    let script = vec![exec("echo one >> log"), exec("echo two >> log"), text("so be it")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let m = Machines::with_bucket(&server, "agents-down");
    let sessile = m.serve(&m.one, &model);
    let id = m.agent(&sessile, &Value::Null);
    begin(&sessile, &id, "count");
    model.wait_for_request(1);
    server.kill();
    model.release();
    model.wait_for_request(2);
    server.restart();
    model.release();
    model.wait_for_request(3);
    model.release();
    assert_eq!(ended(&sessile, &id, 1)["output"], "so be it");
    assert_eq!(m.read("log"), "two\n");
    let outcomes = entries(&m.one, &id, "outcome");
    assert!(outcomes[0]["text"].as_str().unwrap().starts_with("not carried out: "), "{outcomes:?}");
    assert_eq!(outcomes[1]["run"], 1, "{outcomes:?}");
}

/// An agent whose session is on its machine alone: of it, the store has the record.
#[test]
fn a_record_in_an_object_store_is_gone_on_from_anew() {
    let Some(server) = shared_object_server() else { return };
    let model = ModelServer::start(Format::Chat, vec![text("one"), text("two")]);
    let m = Machines::with_bucket(server, "agents-recorded");
    let one = m.serve(&m.one, &model);
    let id = agent(&one, &json!({ "workspace": m.shared.path("work"), "durable": false }));
    let before = ended(&one, &id, begin(&one, &id, "begin"));
    let record = until("the record in the store", || {
        let record = server.object(&format!("agents-recorded/{id}.json"))?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        (record["taskCount"] == 1).then_some(record)
    });
    assert_eq!(record["threadId"], before["thread_id"], "{record}");
    lose(one, &id);

    let other = m.serve(&m.other, &model);
    let body = json!({ "text": "go on" });
    let begun = other.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
    assert_eq!(begun["continuity"]["status"], "fresh", "{begun}");
    assert!(begun["continuity"]["lost"].to_string().contains("the conversation"), "{begun}");
    ended(&other, &id, begun["task"].as_u64().unwrap());
    let line = other
        .log()
        .lines()
        .find(|line| line.contains("not in memory (restart?)"))
        .map(str::to_owned);
    let line: Value = serde_json::from_str(&line.expect("a line in the log")).unwrap();
    assert_eq!((&line["level"], &line["sessionId"]), (&json!("warn"), &json!(id)));
    assert_eq!(line["threadId"], record["threadId"]);
    until("the record of both", || {
        let record = server.object(&format!("agents-recorded/{id}.json"))?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        (record["taskCount"] == 2 && record["previousThreadId"] == before["thread_id"])
            .then_some(())
    });
}
