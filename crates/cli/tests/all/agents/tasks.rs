//! What an agent does with a task.

use super::{agent, begin, call, ended, entries, exec, harness, serve, text};
use serde_json::json;
use sessile_testkit::{Format, ModelServer, Say, Trouble};
use std::collections::BTreeMap;

const FORMATS: [Format; 3] = [Format::Chat, Format::Responses, Format::Messages];

#[test]
fn a_task_runs_to_its_end_in_every_format_and_the_next_one_goes_on() {
    for format in FORMATS {
        let script = vec![
            exec("x=41; echo begun"),
            call("write_file", json!({ "path": "src/app.py", "text": "print('hello')\n" })),
            call(
                "edit_file",
                json!({ "path": "src/app.py", "old_text": "hello", "new_text": "hi" }),
            ),
            exec("python3 src/app.py"),
            text("app.py says hi"),
            exec("echo $((x+1))"),
            text("it is 42"),
        ];
        let model = ModelServer::start(format, script);
        let h = harness();
        let server = serve(&h, &model);
        let id = agent(&server, &json!({}));
        let first = begin(&server, &id, "Create app.py");
        let view = ended(&server, &id, first);
        assert_eq!(view["output"], "app.py says hi", "{format:?} {view}");
        assert_eq!(view["spent"]["steps"], 5);
        assert_eq!(view["spent"]["input_tokens"], 500);
        // 500 tokens at 1.0 and 50 at 2.0 a million.
        assert!((view["spent"]["cost"].as_f64().unwrap() - 0.0006).abs() < 1e-9, "{view}");

        let second = begin(&server, &id, "What is x+1?");
        assert_eq!(second, 2);
        assert_eq!(ended(&server, &id, second)["output"], "it is 42");
        let outcomes = entries(&h, &id, "outcome");
        assert!(outcomes[3]["text"].as_str().unwrap().ends_with("hi"), "{outcomes:?}");
        assert!(outcomes[4]["text"].as_str().unwrap().contains("42"), "{outcomes:?}");
        // Each step says which run of the session it led to.
        assert_eq!(outcomes[4]["run"], 3, "{outcomes:?}");
    }
}

#[test]
fn trouble_that_passes_is_waited_for() {
    let trouble = BTreeMap::from([
        (1, Trouble::Status(429, json!({ "error": { "message": "slow down" } }))),
        (2, Trouble::CutOff),
        (3, Trouble::Nonsense),
    ]);
    let script = vec![exec("echo once >> log"), text("done")];
    let model = ModelServer::with_trouble(Format::Chat, script, trouble);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "do it");
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "once\n");
    assert_eq!(model.requests().len(), 5);
}

#[test]
fn trouble_that_stays_is_told_and_the_agent_can_be_used_again() {
    let unknown = json!({ "error": { "message": "no such model: test-1" } });
    let trouble = BTreeMap::from([(1, Trouble::Status(404, unknown))]);
    let model = ModelServer::with_trouble(Format::Chat, vec![text("here I am")], trouble);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "do it");
    let view = ended(&server, &id, task);
    assert_eq!(view["ended"], "failed", "{view}");
    assert_eq!(view["failure"]["fault"], "unknown_model");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("no such model: test-1; check the model's name"), "{message}");
    let task = begin(&server, &id, "again");
    assert_eq!(ended(&server, &id, task)["output"], "here I am");
}

#[test]
fn a_model_that_calls_nonsense_is_told_so() {
    let script = vec![
        call("browse", json!({ "url": "x" })),
        Say::BadArguments("{\"action\": ".to_owned()),
        call("runtime", json!({ "action": "dance" })),
        call("read_file", json!({ "path": "../../etc/passwd" })),
        call("read_file", json!({ "path": "nothing.txt" })),
        text("I give up"),
    ];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "do it");
    assert_eq!(ended(&server, &id, task)["output"], "I give up");
    let outcomes = entries(&h, &id, "outcome");
    let told = [
        "there is no tool \"browse\"; the tools are: runtime, read_file",
        "the arguments are not a JSON object",
        "dance",
        "is no path in the workspace",
        "there is no nothing.txt",
    ];
    for (outcome, part) in outcomes.iter().zip(told) {
        assert_eq!(outcome["is_error"], true, "{outcome}");
        assert!(outcome["text"].as_str().unwrap().contains(part), "{outcome}");
    }
    assert_eq!(outcomes.len(), told.len());
}

#[test]
fn a_task_stops_at_its_limit_and_when_it_is_cancelled() {
    let script = vec![exec("echo 1"), exec("echo 2"), exec("touch begun; sleep 1000"), text("no")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let body = json!({ "text": "count", "limits": { "max_steps": 2 } });
    let _ = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202);
    let view = ended(&server, &id, 1);
    assert_eq!((&view["ended"], &view["limit"]), (&json!("limit"), &json!("steps")));

    let task = begin(&server, &id, "go on");
    h.wait_for_file("begun");
    let busy = json!({ "text": "more" });
    let _ = server.post(&format!("/v1/agents/{id}/tasks"), &busy).is_refused(409, "busy");
    let _ = server.post(&format!("/v1/agents/{id}/cancel"), &json!({})).is(200);
    assert_eq!(ended(&server, &id, task)["ended"], "cancelled");
    let outcome = entries(&h, &id, "outcome").pop().unwrap();
    assert!(outcome["text"].as_str().unwrap().contains("130"), "{outcome}");
}

#[test]
fn calls_wait_for_approval_where_that_is_wanted() {
    let script = vec![exec("touch one"), exec("touch two"), text("done")];
    let model = ModelServer::start(Format::Messages, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "approve": ["runtime"] }));
    let task = begin(&server, &id, "make files");
    let decide = |call: &str, allow: bool| {
        sessile_testkit::until(&format!("{call} waits"), || {
            let view = server.get(&format!("/v1/agents/{id}")).json();
            let waits = view["waiting_for"] == call && view["status"] == "waiting_for_approval";
            waits.then_some(())
        });
        let body = json!({ "call": call, "allow": allow, "reason": "not that one" });
        let _ = server.post(&format!("/v1/agents/{id}/approvals"), &body).is(200);
    };
    decide("call_0_0", false);
    decide("call_1_0", true);
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert!(!h.path("one").exists());
    assert!(h.path("two").exists());
    let outcomes = entries(&h, &id, "outcome");
    assert_eq!(outcomes[0]["text"], "the user does not allow this: not that one");
}
