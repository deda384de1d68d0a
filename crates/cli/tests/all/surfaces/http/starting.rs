//! Sessions that are started once, however often that is asked for.

use serde_json::{Value, json};
use sessile_testkit::http::{Request, Response};
use sessile_testkit::{Server, harness};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn keyed(server: &Server, key: &str, body: &Value) -> Request {
    server.owner("POST", "/v1/sessions").header("idempotency-key", key).json(body)
}

fn id(started: &Response) -> String {
    started.json()["session_id"].as_str().expect("an id").to_owned()
}

fn live(server: &Server) -> usize {
    let page = server.get("/v1/sessions?status=active").is(200).json();
    page["sessions"].as_array().expect("a list").len()
}

#[test]
fn a_start_that_is_repeated_answers_with_the_same_session() {
    let h = harness!();
    let server = h.server(&["--max-sessions", "3"]);
    let body = json!({"name": "one", "env": {"A": "1"}});
    let first = id(&keyed(&server, "k1", &body).send().is(201));
    server.exec_at(&format!("/v1/sessions/{first}"), "x=1");
    assert_eq!(id(&keyed(&server, "k1", &body).send().is(201)), first);
    assert_eq!(server.prints_at(&format!("/v1/sessions/{first}"), "echo $x $A"), "1 1\n");
    // Another order, another key, another caller.
    keyed(&server, "k1", &json!({"name": "one"})).send().is_refused(409, "key_reused");
    keyed(&server, "k2", &json!({"shell": "perl"})).send().is_refused(400, "unknown_program");
    let second = id(&keyed(&server, "k2", &json!({})).send().is(201));
    let made = server.post("/v1/sessions", &json!({})).is(201);
    assert_eq!(BTreeSet::from([first.clone(), second, id(&made)]).len(), 3);
    // A repetition needs no room; a new one does, and what was refused may be tried again.
    keyed(&server, "k3", &json!({})).send().is_refused(429, "too_many_sessions");
    assert_eq!(id(&keyed(&server, "k1", &body).send().is(201)), first);
    server.delete(&format!("/v1/sessions/{first}")).is(200);
    let third = id(&keyed(&server, "k3", &json!({})).send().is(201));
    assert_ne!(third, first);
    keyed(&server, "k\u{1}", &json!({})).send().is(400);
    // The answer is the one that was lost, whatever has become of the session.
    assert_eq!(id(&keyed(&server, "k1", &body).send().is(201)), first);
    assert_eq!(live(&server), 3);
}

#[test]
fn many_who_start_with_one_key_get_one_session() {
    let h = harness!();
    let server = h.serve();
    let body = json!({});
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let each = || scope.spawn(|| id(&keyed(&server, "same", &body).send().is(201)));
        let asked: Vec<_> = (0..8).map(|_| each()).collect();
        asked.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(live(&server), 1);
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_starts_makes_none_twice() {
    let h = harness!();
    let mut server = h.serve();
    let body = json!({});
    // A first one, to know how long a start takes here.
    let begun = Instant::now();
    let mut ids = BTreeSet::from([id(&keyed(&server, "k", &body).send().is(201))]);
    let whole = begun.elapsed();
    const KILLS: u32 = 8;
    for moment in 0..KILLS {
        let key = format!("k{moment}");
        let order = keyed(&server, &key, &body);
        // Sent, and not waited for. No event to wait for: the server dies at another moment
        // of the start each time.
        let asked = order.open();
        std::thread::sleep(Duration::from_micros(
            u64::from(moment) * whole.as_micros() as u64 / u64::from(KILLS),
        ));
        let address = server.address();
        server.kill();
        drop(asked);
        server = h.serve_at(&address, &[]);
        let made = id(&keyed(&server, &key, &body).send().is(201));
        assert_eq!(server.prints_at(&format!("/v1/sessions/{made}"), "echo ok"), "ok\n");
        ids.insert(made);
    }
    assert_eq!(ids.len(), KILLS as usize + 1);
    assert_eq!(live(&server), ids.len());
}
