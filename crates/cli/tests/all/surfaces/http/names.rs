//! What sessions are called over HTTP and MCP.

use serde_json::{Value, json};
use sessile_testkit::http::Response;
use sessile_testkit::{Server, harness};

fn start(server: &Server, token: &str, name: &str) -> Response {
    let body = json!({"name": name});
    server.request("POST", "/v1/sessions").token(token).json(&body).send()
}

fn id(started: &Response) -> String {
    started.json()["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_session_answers_to_its_name_and_the_beginning_of_its_id() {
    let h = harness!();
    let server = h.serve();
    let web = id(&start(&server, server.token(), "web app").is(201));
    let other = id(&start(&server, server.token(), "other").is(201));
    server.exec_at("/v1/sessions/web%20app", "x=1");
    for called in ["web%20app", &web[..17], &web["sess_".len()..17], &web] {
        let path = format!("/v1/sessions/{called}");
        assert_eq!(server.prints_at(&path, "echo $x"), "1\n");
        assert_eq!(server.get(&path).is(200).json()["session_id"], web.as_str());
        assert_eq!(server.get(&format!("{path}/runs/1")).is(200).json()["exit_code"], 0);
    }
    server.exec_at("/v1/sessions/other", "x=2");
    server.get("/v1/sessions/nobody").is_refused(404, "session_not_found");
    server.get("/v1/sessions/abc").is_refused(404, "session_not_found");
    // A new one from one that is called so.
    let from = server.post("/v1/sessions", &json!({"from": "other"})).is(201);
    assert_eq!(server.prints_at(&format!("/v1/sessions/{}", id(&from)), "echo $x"), "2\n");
    // The name is free when its session has ended; the id is not.
    let taken = start(&server, server.token(), "other").is_refused(409, "name_taken").text();
    assert!(taken.contains(&other), "{taken}");
    server.delete("/v1/sessions/other").is(200);
    let next = id(&start(&server, server.token(), "other").is(201));
    assert_eq!(server.get("/v1/sessions/other").json()["session_id"], next.as_str());
    assert_eq!(server.get(&format!("/v1/sessions/{other}")).json()["status"], "terminated");
}

#[test]
fn last_is_the_session_that_the_caller_used_last() {
    let h = harness!();
    let server = h.serve();
    server.get("/v1/sessions/@last").is_refused(404, "session_not_found");
    let token = |name: &str| {
        let made = h.sessile(&["token", "create", name]).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let (a, b) = (token("a"), token("b"));
    let first = id(&start(&server, server.token(), "first").is(201));
    let second = id(&start(&server, server.token(), "second").is(201));
    let last = |token: &str| server.request("GET", "/v1/sessions/%40last").token(token).send();
    assert_eq!(last(server.token()).is(200).json()["session_id"], second.as_str());
    for (called, id) in [("first", &first), ("second", &second), ("first", &first)] {
        server.exec_at(&format!("/v1/sessions/{called}"), "x=$SESSILE_SESSION_ID");
        assert_eq!(server.prints_at("/v1/sessions/@last", "echo $x"), format!("{id}\n"));
    }
    // A token has its own.
    let theirs = id(&start(&server, &a, "theirs").is(201));
    assert_eq!(last(&a).is(200).json()["session_id"], theirs.as_str());
    let told = last(&b).is_refused(404, "session_not_found").text();
    assert!(told.contains("no session yet"), "{told}");
}

#[test]
fn the_beginning_of_an_id_has_four_digits_at_least() {
    let h = harness!();
    let server = h.serve();
    let web = id(&start(&server, server.token(), "web").is(201));
    let digits = &web["sess_".len()..];
    for short in [&digits[..1], &digits[..3], &web[.."sess_".len() + 2]] {
        let path = format!("/v1/sessions/{short}");
        let told = server.get(&path).is_refused(404, "session_not_found").text();
        assert!(told.contains("at least 4 digits"), "{told}");
    }
    server.get(&format!("/v1/sessions/{}", &digits[..4])).is(200);
}

#[test]
fn a_session_is_renamed_whatever_it_is_doing() {
    let h = harness!();
    let server = h.serve();
    let first = id(&start(&server, server.token(), "first").is(201));
    let second = id(&start(&server, server.token(), "second").is(201));
    let rename = |called: &str, name: Value| {
        let path = format!("/v1/sessions/{called}");
        server.owner("PATCH", &path).json(&json!({"name": name})).send()
    };
    server.post("/v1/sessions/first/exec", &json!({"command": "sleep 1000", "wait": 0})).is(202);
    assert_eq!(rename("first", json!("web")).is(200).json()["name"], "web");
    assert_eq!(rename("web", json!("web")).is(200).json()["session_id"], first.as_str());
    server.get("/v1/sessions/first").is_refused(404, "session_not_found");
    rename("web", json!("second")).is_refused(409, "name_taken");
    rename("web", json!("sess_web")).is_refused(400, "bad_request");
    rename("web", json!("")).is_refused(400, "bad_request");
    let owner = |path: &str| server.owner("PATCH", path);
    owner("/v1/sessions/web").json(&json!({})).send().is_refused(400, "bad_request");
    // It is kept by the keeper, which writes it anew after each run.
    server.post("/v1/sessions/web/interrupt", &json!({})).is(200);
    server.exec_at("/v1/sessions/web", ":");
    assert_eq!(h.sessile(&["rename", "web", "site"]).json()["session_id"], first.as_str());
    assert_eq!(server.get("/v1/sessions/site").json()["name"], "site");
    // Without a name, and one that has ended.
    assert!(rename("site", Value::Null).is(200).json().get("name").is_none());
    server.get("/v1/sessions/site").is_refused(404, "session_not_found");
    server.delete(&format!("/v1/sessions/{second}")).is(200);
    assert_eq!(rename(&second, json!("old")).is(200).json()["status"], "terminated");
    assert_eq!(server.get("/v1/sessions/old").json()["session_id"], second.as_str());
}

#[test]
fn a_token_sees_its_own_names() {
    let h = harness!();
    let server = h.serve();
    let token = |name: &str| {
        let made = h.sessile(&["token", "create", name]).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let (a, b) = (token("a"), token("b"));
    let mine = id(&start(&server, server.token(), "web").is(201));
    let theirs = id(&start(&server, &a, "web").is(201));
    let show = |token: &str, called: &str| {
        server.request("GET", &format!("/v1/sessions/{called}")).token(token).send()
    };
    assert_eq!(show(&a, "web").json()["session_id"], theirs.as_str());
    assert_eq!(show(server.token(), "web").json()["session_id"], mine.as_str());
    show(&b, "web").is_refused(404, "session_not_found");
    start(&server, &a, "web").is_refused(409, "name_taken");
    // Each time: what was found once is not everybody's.
    assert_eq!(show(&a, "web").json()["session_id"], theirs.as_str());
    show(&b, "web").is_refused(404, "session_not_found");
}
