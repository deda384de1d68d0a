//! The formats of models, as they are spoken: streamed and whole, with all that goes wrong.

use super::{agent, begin, ended, entries, harness, serve_with, text};
use serde_json::{Value, json};
use sessile_testkit::{Format, Harness, ModelServer, Say, Server, Trouble, at_once};
use std::collections::BTreeMap;

const FORMATS: [Format; 3] = [Format::Chat, Format::Responses, Format::Messages];

/// Each format, streamed and not.
fn ways() -> impl Iterator<Item = (Format, bool)> {
    FORMATS.into_iter().flat_map(|format| [(format, true), (format, false)])
}

fn serve(h: &Harness, model: &ModelServer, streams: bool) -> Server {
    serve_with(h, &format!("{}stream = {streams}\n", model.configuration()), &[])
}

fn run(command: &str) -> (String, Value) {
    ("runtime".to_owned(), json!({ "action": "exec", "command": command }))
}

#[test]
fn calls_of_one_answer_are_carried_out_in_their_order() {
    for (format, streams) in ways() {
        let script = vec![
            Say::Calls(vec![run("echo one >> log; x=41"), run("echo two $((x+1)) >> log")]),
            text("both"),
        ];
        let model = ModelServer::start(format, script);
        let h = harness();
        let server = serve(&h, &model, streams);
        let id = agent(&server, &json!({}));
        let task = begin(&server, &id, "count");
        let view = ended(&server, &id, task);
        assert_eq!(view["output"], "both", "{format:?} {streams} {view}");
        assert_eq!(view["spent"]["input_tokens"], 200, "{format:?} {streams} {view}");
        assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "one\ntwo 42\n");
        let asked = model.requests();
        assert!(asked.iter().all(|request| (request.body["stream"] == true) == streams));
        // Both outcomes are in the next request, each with its call.
        let said = asked[1].body.to_string();
        assert!(said.contains("call_0_0") && said.contains("call_0_1"), "{said}");
    }
}

#[test]
fn trouble_is_waited_for_in_every_format() {
    at_once(ways(), |(format, streams)| {
        let trouble = BTreeMap::from([
            (1, Trouble::Status(429, json!({ "error": { "message": "slow down" } }))),
            (2, Trouble::CutOff),
            (3, Trouble::Nonsense),
        ]);
        let script = vec![Say::Calls(vec![run("echo once >> log")]), text("done")];
        let model = ModelServer::with_trouble(format, script, trouble);
        let h = harness();
        let server = serve(&h, &model, streams);
        let id = agent(&server, &json!({}));
        let task = begin(&server, &id, "do it");
        assert_eq!(ended(&server, &id, task)["output"], "done", "{format:?} {streams}");
        assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "once\n");
        assert_eq!((model.requests().len(), entries(&h, &id, "reply").len()), (5, 2));
    });
}

#[test]
fn refusals_are_told_by_one_word_in_every_format() {
    let refusals = [
        (401, "invalid key", "bad_key"),
        (404, "no such model: test-1", "unknown_model"),
        (400, "prompt is too long: 300000 tokens", "too_long"),
        (400, "unknown field", "bad_request"),
    ];
    for format in FORMATS {
        let trouble = refusals.iter().zip(1..).map(|((status, said, _), number)| {
            (number, Trouble::Status(*status, json!({ "error": { "message": said } })))
        });
        let model = ModelServer::with_trouble(format, vec![text("here I am")], trouble.collect());
        let h = harness();
        let server = serve(&h, &model, true);
        let id = agent(&server, &json!({}));
        for (_, said, fault) in refusals {
            let task = begin(&server, &id, "do it");
            let view = ended(&server, &id, task);
            assert_eq!(view["failure"]["fault"], fault, "{format:?} {view}");
            let message = view["failure"]["message"].as_str().unwrap();
            assert!(message.contains(said), "{format:?} {message}");
        }
        // Nothing is lost by it.
        let task = begin(&server, &id, "again");
        assert_eq!(ended(&server, &id, task)["output"], "here I am", "{format:?}");
    }
}
