//! What is taken as a request, and what is not: the description has it, and
//! whatever else comes is refused by name.

use serde_json::{Value, json};
use sessile_testkit::{Server, harness};

#[track_caller]
fn refused(server: &Server, method: &str, path: &str, body: Option<&Value>, why: &str) {
    let request = server.owner(method, path);
    let request = body.into_iter().fold(request, |request, body| request.json(body));
    let answer = request.send().is(400);
    assert_eq!(answer.code(), "bad_request");
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(why), "{message}");
}

#[test]
fn an_unknown_name_in_a_query_is_refused_whatever_the_call() {
    let h = harness!();
    let server = h.server(&[]);
    let session = format!("/v1/sessions/{}", server.session());
    let path = format!("{session}/history?lmit=5");
    refused(&server, "GET", &path, None, "unknown field \"lmit\"; did you mean \"limit\"?");
    let known = "; no fields are accepted here";
    refused(&server, "GET", &format!("{session}?verbose=1"), None, known);
    refused(&server, "DELETE", &format!("{session}?force=true"), None, known);
    let body = json!({"command": "x=1"});
    refused(&server, "POST", &format!("{session}/exec?timeout=5"), Some(&body), known);
    let path = format!("{session}/history?limit=5&limit=6");
    refused(&server, "GET", &path, None, "\"limit\" is there twice");
    // None of them did anything; and a whole number is one however it is written.
    assert_eq!(server.get(&format!("{session}/history?limit=2.0")).is(200).json(), json!([]));
    // A wrong value is named with its parameter.
    refused(&server, "GET", &format!("{session}/history?limit=2.5"), None, "limit: not a whole");
}

#[test]
fn an_empty_body_is_called_empty() {
    let h = harness!();
    let server = h.server(&[]);
    let empty = server.owner("POST", "/v1/sessions").with_type("application/json");
    let answer = empty.send().is(400);
    let message = answer.json()["error"]["message"].clone();
    assert_eq!(message, "the request body is empty; send a JSON object, {} at the least");
}

#[test]
fn a_list_is_no_object_with_fields() {
    let h = harness!();
    let server = h.server(&[]);
    let session = format!("/v1/sessions/{}", server.session());
    let why = "must be an object with fields, and is an array";
    refused(&server, "POST", &format!("{session}/rewind"), Some(&json!([null, null])), why);
    refused(&server, "POST", &format!("{session}/exec"), Some(&json!(["echo hi"])), why);
    let sized = json!({"command": ":", "terminal": [80, 24]});
    refused(&server, "POST", &format!("{session}/exec"), Some(&sized), "terminal: expected true");
    let auto = json!({"auto": [5, true]});
    refused(&server, "POST", "/v1/sessions", Some(&auto), "auto: expected a number");
}

#[test]
fn a_very_short_timeout_is_one() {
    let h = harness!();
    let server = h.server(&[]);
    let session = format!("/v1/sessions/{}", server.session());
    for timeout in [json!(0.0001), json!("0.1ms")] {
        let body = json!({"command": "sleep 1000", "timeout": timeout});
        let done = server.post(&format!("{session}/exec"), &body).is(200).json();
        assert_eq!(done["timed_out"], true, "{done}");
    }
    // On the command line as well.
    let done = h.sessile(&["exec", "--timeout", "0.1ms", "@last", "--", "sleep 1000"]);
    assert_eq!(done.json()["timed_out"], true);
}

#[test]
fn signals_sizes_and_keys_are_taken_in_all_their_forms() {
    let h = harness!();
    let server = h.server(&[]);
    let session = format!("/v1/sessions/{}", server.session());
    // It says when it is a program: a shell's fork may lose a signal before that.
    let program = "sh -c 'echo on; exec sleep 1000'";
    let body = json!({"command": program, "wait": 0, "max_output": "1.5 KiB"});
    for signal in [json!(2), json!(2.0), json!("2"), json!("INT"), json!("SIGINT")] {
        let run = server.post(&format!("{session}/exec"), &body).is(202).json()["run"].clone();
        let output = server.get(&format!("{session}/runs/{run}/output?wait=1min")).is(200).json();
        assert_eq!(output["data"], "on\n");
        let path = format!("{session}/runs/{run}/signal");
        let sent = server.post(&path, &json!({"signal": signal})).is(200);
        assert!(sent.json()["processes"].as_u64() >= Some(1), "{signal}");
        let done = server.get(&format!("{session}/runs/{run}.0?wait=1min")).is(200).json();
        assert_eq!(
            (&done["exit_code"], &done["timed_out"]),
            (&json!(130), &json!(false)),
            "{signal}"
        );
    }
    let wrong = json!({"signal": 0});
    refused(&server, "POST", &format!("{session}/runs/1/signal"), Some(&wrong), "not a signal");
    let exec = |key: &str| {
        let request = server.owner("POST", &format!("{session}/exec"));
        request.json(&json!({"command": ":"})).header("idempotency-key", key).send()
    };
    assert_eq!(exec("a key").is(200).json()["run"], exec("a key").is(200).json()["run"]);
    for wrong in ["a\tkey", &"k".repeat(256)] {
        assert_eq!(exec(wrong).is(400).code(), "bad_request");
    }
}
