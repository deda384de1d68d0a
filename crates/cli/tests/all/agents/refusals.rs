//! What is not taken, and what is tried again.

use super::{agent, begin, ended, exec, harness, serve, serve_with, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, ModelServer, Trouble};
use std::collections::BTreeMap;

#[test]
fn a_tool_that_there_is_not_cannot_be_asked_about() {
    let model = ModelServer::start(Format::Chat, Vec::new());
    let h = harness();
    let server = serve(&h, &model);
    let refused = server.post("/v1/agents", &json!({ "approve": ["runtme"] }));
    let refused = refused.is_refused(400, "bad_request").text();
    assert!(refused.contains("the tools are runtime, read_file"), "{refused}");
}

#[test]
fn a_limit_on_the_cost_needs_prices() {
    let model = ModelServer::start(Format::Chat, vec![text("done")]);
    let h = harness();
    let free = model.configuration().replace("input-price = 1.0\noutput-price = 2.0\n", "");
    let server = serve_with(&h, &free, &[]);
    let id = agent(&server, &json!({}));
    let body = json!({ "text": "go", "limits": { "max_cost": 1.0 } });
    let refused = server.post(&format!("/v1/agents/{id}/tasks"), &body);
    let refused = refused.is_refused(400, "bad_request").text();
    assert!(refused.contains("max_cost needs prices"), "{refused}");
    let refused = h.sessile(&["agent", "run", "--agent", &id, "--max-cost", "1", "go"]).exits(1);
    assert!(refused.errors().contains("max_cost needs prices"), "{}", refused.errors());
}

#[test]
fn the_command_line_takes_all_limits() {
    let model = ModelServer::start(Format::Chat, vec![exec("true"), text("done")]);
    let h = harness();
    let _server = serve(&h, &model);
    let limits = ["--max-tokens", "100", "--max-time", "10m", "--max-cost", "5"];
    let args = ["agent", "run", "--json", "--compact-above", "1000"];
    let view = h.sessile(&[&args[..], &limits, &["go"]].concat()).exits(1).text();
    let view: Value = serde_json::from_str(&view).unwrap();
    assert_eq!(view["limit"], "tokens", "{view}");
}

#[test]
fn an_answer_that_says_nothing_is_asked_for_again() {
    let trouble = BTreeMap::from([(1, Trouble::Says(text("")))]);
    let model = ModelServer::with_trouble(Format::Messages, vec![text("done")], trouble);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "go");
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn an_answer_that_broke_off_is_told_and_comes_again_as_a_whole() {
    // The waits grow: whoever comes late sees one of them.
    let trouble = (1..=3).map(|number| (number, Trouble::CutOff)).collect();
    let script = vec![text("a long answer, in many pieces")];
    let model = ModelServer::with_trouble(Format::Chat, script, trouble);
    let h = harness();
    let _server = serve(&h, &model);
    let done = h.sessile(&["agent", "run", "go"]).exits(0);
    // Words of the first attempt, if it was there to see them, are on a line of their own.
    assert_eq!(done.text().lines().last(), Some("a long answer, in many pieces"));
    assert!(done.errors().contains("; asked again in "), "{}", done.errors());
}

#[test]
fn a_call_is_approved_or_denied_on_the_command_line() {
    let script = vec![exec("touch one"), exec("touch two"), text("done")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "approve": ["runtime"] }));
    let none = h.sessile(&["agent", "approve", &id]).exits(1);
    assert!(none.errors().contains("no call of this agent waits"), "{}", none.errors());
    let task = begin(&server, &id, "go");
    let waits = |call: &str| {
        sessile_testkit::until("a call that waits", || {
            let view = server.get(&format!("/v1/agents/{id}")).is(200).json();
            (view["waiting_for"] == call).then_some(())
        });
    };
    waits("call_0_0");
    h.sessile(&["agent", "deny", &id, "--reason", "not that"]).exits(0);
    waits("call_1_0");
    h.sessile(&["agent", "approve", &id, "call_1_0"]).exits(0);
    assert_eq!(ended(&server, &id, task)["output"], "done");
    assert!(!h.path("one").exists() && h.path("two").exists());
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_place_and_what_is_right() {
    let model = ModelServer::start(Format::Chat, Vec::new());
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let refused = |path: &str, body: Value, told: &str| {
        let refused = server.post(path, &body).is_refused(400, "bad_request");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(message, format!("the request body is not valid: {told}"));
    };
    let tasks = format!("/v1/agents/{id}/tasks");
    let limits = |limits: Value, told: &str| {
        refused(&tasks, json!({ "text": "go", "limits": limits }), &format!("limits{told}"));
    };
    limits(json!({ "price": 3 }), ".price: must be an object, and is 3");
    limits(json!({ "price": "free" }), r#".price: must be an object, and is "free""#);
    limits(json!({ "price": { "input": "1" } }), r#".price.input: must be a number, and is "1""#);
    limits(json!({ "price": { "input": -1 } }), ".price.input: must be 0 or more, and is -1");
    limits(
        json!({ "price": { "inptu": 1 } }),
        r#".price: unknown field "inptu"; did you mean "input"?"#,
    );
    limits(json!({ "max_cost": -0.5 }), ".max_cost: must be 0 or more, and is -0.5");
    let whole = "must be a whole number from 0 to 4294967295";
    limits(json!({ "max_steps": -1 }), &format!(".max_steps: {whole}, and is -1"));
    limits(json!({ "max_steps": null }), &format!(".max_steps: {whole}, and is null"));
    limits(json!(7), ": must be an object, and is 7");
    refused(&tasks, json!({ "text": 1 }), "text: must be a text, and is 1");
    let steps = json!({ "step": "one" });
    let told = r#"step: must be a whole number, 0 or more, and is "one""#;
    refused(&format!("/v1/agents/{id}/rewind"), steps, told);
    refused("/v1/agents", json!({ "approve": "*" }), r#"approve: must be an array, and is "*""#);
    let told = format!("checkpoints: {whole}, and is true");
    refused("/v1/agents", json!({ "checkpoints": true }), &told);
    refused("/v1/agents", json!(["a"]), "must be an object with fields, and is an array");
    let sandbox = json!({ "sandbox": { "limits": { "pids": "many" } } });
    let wrong = server.post("/v1/agents", &sandbox).is_refused(400, "bad_request").text();
    assert!(wrong.contains("sandbox.limits.pids: must be a whole number, 0 or more"), "{wrong}");
}

#[test]
fn a_session_without_an_agent_says_so_on_each_surface_in_its_own_way() {
    let model = ModelServer::start(Format::Chat, Vec::new());
    let h = harness();
    let server = serve(&h, &model);
    let made = server.post("/v1/sessions", &json!({})).is(201).json();
    let id = made["session_id"].as_str().unwrap();
    let refused = server.get(&format!("/v1/agents/{id}")).is_refused(404, "agent_not_found");
    let error = refused.json()["error"].clone();
    assert_eq!(error["message"], "this session has no agent");
    assert!(error["hint"].as_str().unwrap().contains("POST /v1/agents"), "{error}");
    let said = h.sessile(&["agent", "show", id]).exits(1).errors();
    assert!(said.contains("`sessile agent run` makes one") && !said.contains("POST"), "{said}");
}
