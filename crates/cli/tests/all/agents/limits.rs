//! What a task may use up, and what becomes of long conversations.

use super::{agent, ended, entries, exec, harness, serve, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, ModelServer, Server, Trouble};
use std::collections::BTreeMap;

fn begin(server: &Server, id: &str, limits: &Value) -> u64 {
    let body = json!({ "text": "count to three", "limits": limits });
    let begun = server.post(&format!("/v1/agents/{id}/tasks"), &body).is(202).json();
    begun["task"].as_u64().unwrap()
}

#[test]
fn a_task_ends_at_the_limit_that_it_reaches() {
    // Each step has 110 tokens, for 0.00012.
    let limits = [
        (json!({ "max_tokens": 200 }), "tokens", 2),
        (json!({ "max_cost": 0.0001 }), "cost", 1),
        (json!({ "max_steps": 3 }), "steps", 3),
    ];
    for (limits, reached, steps) in limits {
        let script = (1..=9).map(|n| exec(&format!("echo {n} >> log"))).collect();
        let model = ModelServer::start(Format::Chat, script);
        let h = harness();
        let server = serve(&h, &model);
        let id = agent(&server, &json!({}));
        let task = begin(&server, &id, &limits);
        let view = ended(&server, &id, task);
        assert_eq!((&view["ended"], &view["limit"]), (&json!("limit"), &json!(reached)), "{view}");
        assert_eq!(view["spent"]["steps"], steps, "{view}");
        // What was asked for before is done, and told.
        let log = std::fs::read_to_string(h.path("log")).unwrap();
        assert_eq!(log.lines().count(), steps, "{log}");
        assert_eq!(entries(&h, &id, "outcome").len(), steps);
    }
}

#[test]
fn a_task_whose_time_is_over_is_interrupted() {
    let model = ModelServer::start(Format::Messages, vec![exec("sleep 1000"), text("awake")]);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, &json!({ "max_time_ms": 300 }));
    let view = ended(&server, &id, task);
    assert_eq!((&view["ended"], &view["limit"]), (&json!("limit"), &json!("time")), "{view}");
    let outcome = entries(&h, &id, "outcome").pop().unwrap();
    assert_eq!(outcome["is_error"], true, "{outcome}");
    let task = begin(&server, &id, &json!({}));
    assert_eq!(ended(&server, &id, task)["output"], "awake");
}

#[test]
fn tokens_of_an_answer_that_is_cancelled_in_its_middle_count() {
    let stalls = BTreeMap::from([(1, Trouble::Stall)]);
    let script = vec![text("an answer of many words, of which a half is said")];
    let model = ModelServer::hesitant_with_trouble(Format::Messages, script, stalls);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, &json!({}));
    let mut events = server.owner("GET", &format!("/v1/agents/{id}/events")).events();
    // Words are for those who watch already.
    model.release();
    assert!(events.any(|event| event.name == "delta"), "some of its words");
    let _ = server.post(&format!("/v1/agents/{id}/cancel"), &json!({})).is(200);
    let view = ended(&server, &id, task);
    assert_eq!(view["ended"], "cancelled", "{view}");
    // Anthropic's format tells the tokens of the request first.
    let spent = &view["spent"];
    assert_eq!((&spent["input_tokens"], &spent["steps"]), (&json!(100), &json!(0)), "{view}");
    assert_eq!(entries(&h, &id, "activity")[0]["input_tokens"], 100);
}

#[test]
fn a_long_conversation_is_summed_up_and_stays_on_disk() {
    // A conversation that was summed up begins anew, and the script with it.
    let said = BTreeMap::from([
        (2, Trouble::Says(text("one is counted"))),
        (3, Trouble::Says(text("done"))),
    ]);
    let model = ModelServer::with_trouble(Format::Chat, vec![exec("echo first-outcome")], said);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, &json!({ "compact_above_tokens": 50 }));
    assert_eq!(ended(&server, &id, task)["output"], "done");
    let asked = model.requests();
    let summing = asked[1].body["messages"].to_string();
    assert!(summing.contains("first-outcome") && summing.contains("Sum up"), "{summing}");
    let after = asked[2].body["messages"].to_string();
    assert!(after.contains("one is counted") && after.contains("count to three"), "{after}");
    assert!(!after.contains("first-outcome"), "{after}");
    // The whole stays.
    assert_eq!(entries(&h, &id, "summary")[0]["text"], "one is counted");
    let outcome = entries(&h, &id, "outcome").pop().unwrap();
    assert!(outcome["text"].as_str().unwrap().contains("first-outcome"), "{outcome}");
}
