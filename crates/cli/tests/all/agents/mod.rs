//! Agents: a scripted model over real formats, and a real session.

mod certificates;
mod commands;
mod continuing;
mod crashes;
mod forks;
mod formats;
mod keys;
mod limits;
mod losses;
mod moving;
mod refusals;
mod rewinding;
mod stores;
mod surfaces;
mod tasks;
mod terminals;

use serde_json::{Value, json};
use sessile_testkit::{Harness, ModelServer, Process, Say, Server};
use std::collections::BTreeMap;

const KEY: &str = "sk-test-0123456789";

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_sessile"))
}

/// A server whose agents use this model.
fn serve(h: &Harness, model: &ModelServer) -> Server {
    serve_with(h, &model.configuration(), &[])
}

/// The same with more to its configuration, and further arguments.
fn serve_with(h: &Harness, configuration: &str, args: &[&str]) -> Server {
    std::fs::write(h.path("model.key"), format!("{KEY}\n")).unwrap();
    std::fs::write(h.path("conf.toml"), configuration).unwrap();
    h.server(&[&["--config", "conf.toml"], args].concat())
}

/// What a command prints in an agent's session.
fn prints(server: &Server, id: &str, command: &str) -> String {
    server.exec(id, command)["stdout"].as_str().unwrap().to_owned()
}

fn text(text: &str) -> Say {
    Say::Text(text.to_owned())
}

fn exec(command: &str) -> Say {
    call("runtime", json!({ "action": "exec", "command": command }))
}

fn call(tool: &str, input: Value) -> Say {
    Say::Calls(vec![(tool.to_owned(), input)])
}

/// A new agent's session.
fn agent(server: &Server, body: &Value) -> String {
    let made = server.post("/v1/agents", body).is(201).json();
    made["session_id"].as_str().unwrap().to_owned()
}

/// Gives a task.
fn begin(server: &Server, agent: &str, text: &str) -> u64 {
    let body = json!({ "text": text });
    let begun = server.post(&format!("/v1/agents/{agent}/tasks"), &body).is(202).json();
    begun["task"].as_u64().unwrap()
}

/// What becomes of a task, when it has ended.
fn ended(server: &Server, agent: &str, task: u64) -> Value {
    let view = server.get(&format!("/v1/agents/{agent}/tasks/{task}?wait=60s")).is(200).json();
    assert_eq!(view["running"], false, "{view}");
    view
}

/// Kills the keeper of an agent's session, as a machine that goes down does.
fn kill_keeper(server: &Server, id: &str) {
    let pid = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64().unwrap();
    let keeper = Process::of(i32::try_from(pid).unwrap());
    keeper.kill();
    keeper.wait_gone();
}

/// What the model was shown in its last request.
fn shown(model: &ModelServer) -> String {
    model.requests().last().unwrap().body["messages"].to_string()
}

/// A server whose records, and whose durable sessions, are in a store as well.
fn serve_with_store(h: &Harness, model: &ModelServer, store: &str) -> Server {
    serve_with_credentials(h, model, store, &BTreeMap::new())
}

/// The same with what the store wants to be told by variables.
fn serve_with_credentials(
    h: &Harness,
    model: &ModelServer,
    store: &str,
    credentials: &BTreeMap<String, String>,
) -> Server {
    std::fs::write(h.path("model.key"), format!("{KEY}\n")).unwrap();
    let conf = format!("store = \"{store}\"\n{}", model.configuration());
    std::fs::write(h.path("conf.toml"), conf).unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0", "--config", "conf.toml"];
    let mut command = h.command(&[&words[..], &["--workspace-root", "/"]].concat());
    command.envs(credentials);
    Server::spawn(command, h)
}

/// The entries of a thread of one kind.
fn entries(h: &Harness, agent: &str, kind: &str) -> Vec<Value> {
    let file = h.sessions_dir().join(agent).join("thread.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|entry| entry["type"] == kind).collect()
}
