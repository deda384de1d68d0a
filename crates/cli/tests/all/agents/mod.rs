//! Agents: a scripted model over real formats, and a real session.

mod certificates;
mod commands;
mod continuing;
mod crashes;
mod keys;
mod losses;
mod moving;
mod refusals;
mod rewinding;
mod surfaces;
mod tasks;

use serde_json::{Value, json};
use sessile_testkit::{Harness, ModelServer, Say, Server};

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

/// The entries of a thread of one kind.
fn entries(h: &Harness, agent: &str, kind: &str) -> Vec<Value> {
    let file = h.sessions_dir().join(agent).join("thread.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|entry| entry["type"] == kind).collect()
}
