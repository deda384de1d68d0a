//! Agents with the same past.

use super::{agent, begin, ended, entries, exec, harness, serve, shown, text};
use serde_json::json;
use sessile_testkit::{Format, ModelServer, until};

#[test]
fn forks_of_an_agent_go_on_by_themselves() {
    let script = vec![exec("x=41"), text("set"), exec("echo $((x+1)); x=0"), text("it is 42")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    let forks = server.post(&format!("/v1/agents/{id}/fork"), &json!({ "count": 2 })).is(201);
    let forks = forks.json();
    let threads: Vec<_> = entries(&h, &id, "created");
    for fork in forks["agents"].as_array().unwrap() {
        let fork = fork["session_id"].as_str().unwrap();
        assert_eq!(entries(&h, fork, "created")[0]["forked_from"], threads[0]["thread"]);
        let task = begin(&server, fork, "what is x+1?");
        assert_eq!(ended(&server, fork, task)["output"], "it is 42");
        let outcome = entries(&h, fork, "outcome").pop().unwrap();
        assert!(outcome["text"].as_str().unwrap().ends_with("42"), "{outcome}");
        assert!(shown(&model).contains("set x"));
    }
    assert!(!h.sessions_dir().join(&id).join("forking.json").exists());
    assert_eq!(super::prints(&server, &id, "echo $x"), "41\n");
}

/// What a crash leaves that comes when the session was forked, and the thread was not
/// copied, or not to its end.
#[test]
fn forks_that_a_crash_interrupts_get_their_threads() {
    let script = vec![exec("x=41"), text("set"), text("fine"), text("and on")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "set x");
    ended(&server, &id, task);
    let length = server.get(&format!("/v1/agents/{id}")).is(200).json()["entries"].clone();
    // One that is older, and was never meant to be an agent.
    let plain = server.post(&format!("/v1/sessions/{id}/fork"), &json!({})).is(201).json();
    let plain = plain["session_ids"][0].as_str().unwrap().to_owned();
    let created = server.get(&format!("/v1/sessions/{plain}")).is(200).json()["created_at"].clone();
    let directory = h.sessions_dir().join(&id);
    let forked = until("a later time", || {
        let forked = server.post(&format!("/v1/sessions/{id}/fork"), &json!({ "count": 2 }));
        let forked = forked.is(201).json();
        let fork = forked["session_ids"][0].as_str().unwrap().to_owned();
        let at = server.get(&format!("/v1/sessions/{fork}")).is(200).json()["created_at"].clone();
        (at.as_str() > created.as_str()).then_some((forked, at))
    });
    let (forked, since) = forked;
    let plan = json!({ "entries": length, "since": since });
    std::fs::write(directory.join("forking.json"), plan.to_string()).unwrap();
    let forks = forked["session_ids"].as_array().unwrap().iter();
    let forks: Vec<_> = forks.map(|fork| fork.as_str().unwrap().to_owned()).collect();
    let begun = std::fs::read(directory.join("thread.jsonl")).unwrap();
    let half = h.sessions_dir().join(&forks[1]).join("thread.jsonl");
    std::fs::write(half, &begun[..begun.len() / 2]).unwrap();
    // The agent goes on; its forks have what there was then.
    let task = begin(&server, &id, "go on");
    ended(&server, &id, task);
    server.kill();

    let server = serve(&h, &model);
    for fork in &forks {
        let view = server.get(&format!("/v1/agents/{fork}")).is(200).json();
        assert_eq!((&view["task_count"], &view["entries"]), (&json!(1), &length), "{view}");
        assert_eq!(view["status"], "idle", "{view}");
        let task = begin(&server, fork, "go on");
        assert_eq!(ended(&server, fork, task)["output"], "fine");
        assert!(h.sessions_dir().join(format!("{fork}.json")).exists());
    }
    let _ = server.get(&format!("/v1/agents/{plain}")).is_refused(404, "agent_not_found");
}
