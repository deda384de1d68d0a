//! Durable agents in a store: another machine goes on in the middle of a task.
//!
//! A machine is a sessions directory with a state directory of its own. All have one
//! workspace, in which each effect of a call is seen.

use super::{agent, begin, call, ended, entries, exec, harness, serve_with_store, shown, text};
use serde_json::{Value, json};
use sessile_testkit::{Client, Format, Harness, ModelServer, Process, Server, until};

/// What is left is looked for by each: those that went on go first.
struct Machines {
    shared: Harness,
    other: Harness,
    one: Harness,
    store: String,
}

impl Machines {
    fn new() -> Self {
        let (one, other, shared) = (harness(), harness(), harness());
        let store = format!("file://{}/kept", shared.root().display());
        std::fs::create_dir(shared.path("work")).unwrap();
        Self { one, other, shared, store }
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
            let latest = self.shared.path(&format!("kept/{id}/latest.json"));
            let latest: Value = serde_json::from_slice(&std::fs::read(latest).ok()?).ok()?;
            (latest["latest"]["as_of_run"] == run).then_some(())
        });
    }

    /// Another machine takes a session up, as far as the store knows.
    fn take_elsewhere(&self, id: &str) {
        let order = json!({ "take": { "url": self.store, "session_id": id,
            "file": self.shared.path("taken") } });
        let client = Client::spawn(self.other.command(&["fetcher"]), order.to_string().as_bytes());
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
    let script = vec![
        exec("x=41; echo one >> log"),
        exec("echo two >> log; touch begun; sleep 1000"),
        exec("echo three $x >> log"),
        text("counted"),
    ];
    let model = ModelServer::hesitant(Format::Chat, script);
    let m = Machines::new();
    let server = serve_with_store(&m.one, &model, &m.store);
    let id = m.agent(&server, &Value::Null);
    begin(&server, &id, "count");
    model.wait_for_request(1);
    model.release();
    model.wait_for_request(2);
    m.wait_saved(&id, 1);
    model.release();
    until("a call that is going", || m.shared.path("work/begun").exists().then_some(()));
    lose(server, &id);

    let server = serve_with_store(&m.other, &model, &m.store);
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
    let server = serve_with_store(&m.one, &model, &m.store);
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

    let server = serve_with_store(&m.other, &model, &m.store);
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
    let script = vec![exec("echo one >> log"), exec("echo two >> log"), text("done")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let m = Machines::new();
    let server = serve_with_store(&m.one, &model, &m.store);
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
    // Nor does it write over the thread of the one that has it.
    let thread = m.shared.path(&format!("kept/{id}/thread-1.jsonl"));
    assert!(!thread.exists());
}

#[test]
fn a_store_that_takes_nothing_keeps_calls_from_being_carried_out() {
    let script = vec![exec("echo one >> log"), text("so be it")];
    let model = ModelServer::hesitant(Format::Chat, script);
    let m = Machines::new();
    let server = serve_with_store(&m.one, &model, &m.store);
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
