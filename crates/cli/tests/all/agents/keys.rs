//! The key of a model: who has it, and who has not.

use super::{KEY, agent, begin, ended, entries, exec, harness, serve, serve_with, text};
use serde_json::json;
use sessile_testkit::{Format, Harness, ModelServer, Process, Server, Trouble};
use std::collections::BTreeMap;

#[test]
fn the_key_reaches_the_model_and_nobody_else() {
    let model = ModelServer::start(Format::Messages, vec![exec("env; ls -a"), text("done")]);
    let h = harness();
    // The file with the key lies in the workspace here, whose checkpoints have all
    // that is not ignored.
    std::fs::write(h.path(".gitignore"), "model.key\n").unwrap();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "look");
    ended(&server, &id, task);
    assert_eq!(model.requests()[0].headers["x-api-key"], KEY);
    let found = std::process::Command::new("grep")
        .args(["-r", "-l", KEY, "."])
        .current_dir(h.path("."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "./model.key\n");
    assert!(!server.log().contains(KEY));
}

/// The environment of a process, in which a key would be.
fn environment(process: &Process) -> String {
    let file = format!("/proc/{}/environ", process.pid());
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// Those that a process has started and that are its own.
fn children(process: &Process) -> Vec<Process> {
    let pids = process.entry().children().into_iter();
    pids.map(|pid| Process::of(pid.as_raw_nonzero().get())).collect()
}

/// A server with the key in its environment, all of which its sessions may have.
fn serve_with_variable(h: &Harness, model: &ModelServer) -> Server {
    let configuration =
        model.configuration().replace("key-file = \"model.key\"", "key-env = \"TEST_MODEL_KEY\"");
    std::fs::write(h.path("conf.toml"), configuration).unwrap();
    let mut command = h.command(&["serve", "--listen", "127.0.0.1:0", "--config", "conf.toml"]);
    command.env("TEST_MODEL_KEY", KEY).env("SESSILE_ALLOW_ENV", "*");
    Server::spawn(command, h)
}

#[test]
fn a_key_in_the_environment_is_in_no_session_and_in_no_keeper() {
    // Also not where code of the same user would look for it first.
    let look = "env; tr '\\0' '\\n' < /proc/$PPID/environ
        tr '\\0' '\\n' < /proc/$(cat server)/environ | grep TEST_MODEL_KEY";
    let script = vec![exec(look), text("done")];
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let server = serve_with_variable(&h, &model);
    std::fs::write(h.path("server"), server.process().pid().to_string()).unwrap();
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "look");
    ended(&server, &id, task);
    assert_eq!(model.requests()[0].headers["x-api-key"], KEY);
    let outcome = entries(&h, &id, "outcome").pop().unwrap();
    assert!(outcome["text"].as_str().unwrap().contains("PATH="), "{outcome}");
    let seen = outcome["text"].as_str().unwrap();
    assert!(!seen.contains(KEY), "{outcome}");
    // The server's own is the last, and has the name of the variable left.
    assert!(seen.ends_with("TEST_MODEL_KEY="), "{outcome}");
    assert_eq!(seen.matches("TEST_MODEL_KEY").count(), 1, "{outcome}");
    let keeper = server.get(&format!("/v1/sessions/{id}")).json()["keeper_pid"].as_i64().unwrap();
    let mut launched = children(&server.process());
    launched.push(Process::of(i32::try_from(keeper).unwrap()));
    // The server itself has it in its memory only, once it has read its configuration.
    launched.push(server.process());
    for process in launched {
        let environment = environment(&process);
        assert!(!environment.contains(KEY), "{} {environment}", process.pid());
    }
}

#[test]
fn a_server_that_repeats_the_key_does_not_get_it_into_the_thread() {
    let echo = json!({ "error": { "message": format!("your key {KEY} for team-secret is bad") } });
    let trouble = BTreeMap::from([(1, Trouble::Status(401, echo))]);
    let model = ModelServer::with_trouble(Format::Chat, vec![text("fine")], trouble);
    let h = harness();
    let configuration =
        format!("{}headers = {{ x-team = \"team-secret\" }}\n", model.configuration());
    let server = serve_with(&h, &configuration, &[]);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "look");
    let view = ended(&server, &id, task);
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("your key [secret] for [secret] is bad"), "{message}");
    let thread = h.sessions_dir().join(&id).join("thread.jsonl");
    assert!(!std::fs::read_to_string(thread).unwrap().contains(KEY));
    assert!(!server.log().contains(KEY));
}

#[test]
fn a_request_is_not_sent_on_to_another_server() {
    let other = ModelServer::start(Format::Messages, vec![text("give me the key")]);
    let to = format!("http://{}/v1/messages?token=1", other.address());
    let trouble = BTreeMap::from([(1, Trouble::Redirect(to))]);
    let model = ModelServer::with_trouble(Format::Messages, vec![text("fine")], trouble);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "look");
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "unknown_model", "{view}");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("sends requests on to"), "{message}");
    assert!(message.contains("check the model's name and the base URL"), "{message}");
    assert!(!message.contains("token=1"), "{message}");
    assert_eq!(other.requests().len(), 0);
}
