//! Watching sessions over HTTP: what they do, and what happens in one.

use rustix::process::Signal;
use serde_json::{Value, json};
use sessile_testkit::{Event, Events, Harness, Server, harness, until};

fn gate(h: &Harness, name: &str) {
    let status = std::process::Command::new("mkfifo").arg(h.path(name)).status().unwrap();
    assert!(status.success());
}

fn open(h: &Harness, name: &str) {
    std::fs::File::options().write(true).open(h.path(name)).unwrap();
}

/// Begins a run and leaves it.
#[track_caller]
fn begin(server: &Server, id: &str, mut body: Value) -> Value {
    body["wait"] = 0.into();
    let path = format!("/v1/sessions/{id}/exec");
    server.post(&path, &body).json()["run"].clone()
}

fn watch(server: &Server, id: &str, query: &str, last: Option<&str>) -> Events {
    let path = format!("/v1/sessions/{id}/events?output=true{query}");
    let request = server.owner("GET", &path);
    match last {
        Some(last) => request.header("last-event-id", last).events(),
        None => request.events(),
    }
}

/// Events up to the one that this is said of, which is the last.
#[track_caller]
fn take_until(events: &mut Events, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut seen = Vec::new();
    for event in events {
        let is_it = is_last(&event);
        seen.push(event);
        if is_it {
            return seen;
        }
    }
    panic!("it ended with {:?}", seen.last());
}

/// Whether this is that event of that run.
fn is(name: &'static str, run: u64) -> impl Fn(&Event) -> bool {
    move |event| event.name == name && event.data["run"] == run
}

/// What a run wrote, by its events.
fn written(events: &[Event], name: &str, run: u64) -> String {
    let own = events.iter().filter(|event| is_of(event, name, run));
    own.map(|event| event.data["data"].as_str().unwrap()).collect()
}

fn is_of(event: &Event, name: &str, run: u64) -> bool {
    event.name == name && event.data["run"] == run
}

fn row<'a>(top: &'a Value, id: &str) -> Option<&'a Value> {
    top["sessions"].as_array().unwrap().iter().find(|row| row["session_id"] == id)
}

#[test]
fn what_sessions_do_is_told_once_and_live() {
    let h = harness!();
    let server = h.serve();
    let (busy, idle) = (server.session(), server.session());
    let spin = json!({"command": "while :; do :; done # spins", "timeout": 0});
    let run = begin(&server, &busy, spin);
    let top = until("a busy session", || {
        let top = server.get("/v1/top").is(200).json();
        (row(&top, &busy)?["cpu_percent"].as_f64()? > 5.0).then_some(top)
    });
    let shown = row(&top, &busy).unwrap();
    assert_eq!((&shown["state"], &shown["queued"]), (&json!("busy"), &json!(0)));
    assert_eq!(shown["running"][0]["run"], run);
    assert_eq!(shown["running"][0]["command"], "while :; do :; done # spins");
    assert!(shown["memory_bytes"].as_u64() > Some(1_000_000), "{shown}");
    assert!(shown["processes"].as_u64() >= Some(2), "{shown}");
    assert_eq!(row(&top, &idle).unwrap()["state"], "idle");
    let mut live =
        server.owner("GET", "/v1/top?interval=1ms").header("accept", "text/event-stream").events();
    let now = live.next().unwrap();
    assert_eq!(
        (now.name.as_str(), &row(&now.data, &busy).unwrap()["state"]),
        ("top", &json!("busy"))
    );
    server.post(&format!("/v1/sessions/{busy}/interrupt"), &json!({})).is(200);
    let is_idle = |event: &Event| row(&event.data, &busy).unwrap()["state"] == "idle";
    take_until(&mut live, is_idle);
    server.delete(&format!("/v1/sessions/{busy}")).is(200);
    take_until(&mut live, |event| row(&event.data, &busy).is_none());
    let all = server.get("/v1/top?all=true").is(200).json();
    assert_eq!(row(&all, &busy).unwrap()["state"], "ended");
    server.get("/v1/top?interval=soon").is_refused(400, "bad_request");
    server.get("/v1/top?what=1").is_refused(400, "bad_request");
}

#[test]
fn a_token_sees_what_its_own_sessions_do() {
    let h = harness!();
    let server = h.serve();
    for name in ["mine", "theirs"] {
        std::fs::create_dir(h.path(name)).unwrap();
    }
    let workspace = h.path("mine").display().to_string();
    let made = h.sessile(&["token", "create", "ci", "--workspace", &workspace]).json();
    let token = made["token"].as_str().unwrap();
    let start = |cwd: &str| {
        let started = server.post("/v1/sessions", &json!({"cwd": cwd})).is(201).json();
        started["session_id"].as_str().unwrap().to_owned()
    };
    let (mine, theirs) = (start("mine"), start("theirs"));
    let top = server.request("GET", "/v1/top").token(token).send().is(200).json();
    assert_eq!(top["sessions"].as_array().unwrap().len(), 1);
    assert!(row(&top, &mine).is_some());
    let live = server.request("GET", "/v1/top").token(token).header("accept", "text/event-stream");
    let event = live.events().next().unwrap();
    assert!(row(&event.data, &mine).is_some() && row(&event.data, &theirs).is_none());
    let path = format!("/v1/sessions/{theirs}/events?output=true");
    let refused = server.request("GET", &path).token(token).send();
    refused.is_refused(404, "session_not_found");
    assert_eq!(server.get("/v1/top").json()["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_keeper_that_is_stopped_is_told_and_not_waited_for() {
    let h = harness!();
    let server = h.serve();
    let (stopped, well) = (h.session(), h.session());
    let keeper = stopped.keeper();
    let mut live = server
        .owner("GET", "/v1/top?interval=100ms")
        .header("accept", "text/event-stream")
        .events();
    live.next().unwrap();
    keeper.signal(Signal::STOP);
    let is_silent = |event: &Event| row(&event.data, stopped.id()).unwrap()["state"] == "silent";
    let told = take_until(&mut live, is_silent);
    assert_eq!(row(&told.last().unwrap().data, well.id()).unwrap()["state"], "idle");
    // However often it is asked for, and however many wait for it then.
    let path = "/v1/top?interval=100ms";
    for _ in 0..3 {
        let asked: Vec<_> = (0..50).map(|_| server.owner("GET", path).open()).collect();
        let top = server.get(path).is(200).json();
        assert_eq!(row(&top, stopped.id()).unwrap()["state"], "silent");
        drop(asked);
    }
    keeper.signal(Signal::CONT);
    take_until(&mut live, |event| row(&event.data, stopped.id()).unwrap()["state"] == "idle");
    stopped.run("echo unharmed").prints("unharmed\n").is_kept();
}

#[test]
fn what_happens_in_a_session_is_streamed_across_runs_and_languages() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    gate(&h, "go");
    gate(&h, "later");
    let _ = server.exec(&id, "echo unseen");
    let _ = server.exec(&id, "echo old; echo err >&2; (exit 3)");
    let mut events = watch(&server, &id, "&tail=1", None);
    let past = take_until(&mut events, is("closed", 2));
    let names: Vec<&str> = past.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["started", "stdout", "stderr", "exited", "closed"]);
    assert_eq!(past[0].data["command"], "echo old; echo err >&2; (exit 3)");
    assert_eq!(past[0].data["language"], "bash");
    assert_eq!(past[3].data["exit_code"], 3);
    // Two at once, one of them begun from the command line.
    let command = "echo first; read -r _ <go; echo last; (read -r _ <later; echo late) &";
    assert_eq!(begin(&server, &id, json!({"command": command})), 3);
    let seen = take_until(&mut events, is("stdout", 3));
    assert_eq!(written(&seen, "stdout", 3), "first\n");
    let text = b"import sys; print(7, file=sys.stderr)";
    h.begin(&["exec", &id, "--language", "python"], text).finish().exits(0);
    let seen = take_until(&mut events, is("closed", 4));
    assert_eq!(written(&seen, "stderr", 4), "7\n");
    assert!(!seen.iter().any(|event| is_of(event, "exited", 3)));
    open(&h, "go");
    let seen = take_until(&mut events, is("exited", 3));
    assert_eq!(written(&seen, "stdout", 3), "last\n");
    // What it has left behind writes under its run.
    let _ = server.exec(&id, "echo between");
    take_until(&mut events, is("closed", 5));
    open(&h, "later");
    let seen = take_until(&mut events, is("closed", 3));
    assert_eq!(written(&seen, "stdout", 3), "late\n");
    // The runs that are queued when the session ends are told, and its end.
    begin(&server, &id, json!({"command": "sleep 1000", "timeout": 0}));
    begin(&server, &id, json!({"command": "echo never"}));
    take_until(&mut events, is("started", 6));
    server.delete(&format!("/v1/sessions/{id}")).is(200);
    let rest: Vec<Event> = events.collect();
    assert!(!rest.iter().any(|event| is_of(event, "started", 7)), "{rest:?}");
    let end = rest.last().unwrap();
    assert_eq!((end.name.as_str(), &end.data["status"]), ("ended", &json!("terminated")));
}

#[test]
fn a_reader_goes_on_after_any_event_also_at_another_server() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    gate(&h, "go");
    begin(&server, &id, json!({"command": "printf 'é1\\n'; read -r _ <go; printf 'é2\\n'"}));
    let mut first = watch(&server, &id, "", None);
    let mut seen = take_until(&mut first, is("stdout", 1));
    for n in 0..3 {
        let eval = json!({"command": format!("print({n})")});
        server.post(&format!("/v1/sessions/{id}/eval"), &eval).is(200);
    }
    seen.extend(take_until(&mut first, is("closed", 4)));
    let address = server.address();
    server.kill();
    let server = h.serve_at(&address, &[]);
    open(&h, "go");
    let last = seen.last().unwrap().id.clone();
    seen.extend(take_until(&mut watch(&server, &id, "", Some(&last)), is("closed", 1)));
    assert_eq!(written(&seen, "stdout", 1), "é1\né2\n");
    // From anywhere the rest of each run comes, and nothing twice.
    let of_run = |events: &[Event], run: u64| -> String {
        let own = events.iter().filter(|event| event.data["run"] == run && !event.name.is_empty());
        own.map(|e| format!("{}{};", e.name, e.data["data"].as_str().unwrap_or(""))).collect()
    };
    let whole: Vec<String> = (1..=4).map(|run| of_run(&seen, run)).collect();
    for (at, event) in seen.iter().enumerate() {
        let mut again = seen[..=at].to_vec();
        let marker = server.exec(&id, ":")["run"].as_u64().unwrap();
        let mut on = watch(&server, &id, "", Some(&event.id));
        let is_closed = |all: &[Event], run| all.iter().any(|event| is_of(event, "closed", run));
        // Events of several runs come in any order.
        while ![1, 2, 3, 4, marker].into_iter().all(|run| is_closed(&again, run)) {
            again.push(on.next().unwrap());
        }
        // Output comes in pieces of any size.
        for (run, whole) in (1..=4).zip(&whole) {
            let told = of_run(&again, run).replace(";stdout", "");
            assert_eq!(told, whole.replace(";stdout", ""), "run {run} after {}", event.id);
        }
    }
    server.delete(&format!("/v1/sessions/{id}")).is(200);
    // And when nobody is there to be asked.
    let rest: Vec<Event> = watch(&server, &id, "", Some(&seen[0].id)).collect();
    let mut again = seen[..1].to_vec();
    again.extend(rest);
    assert_eq!(written(&again, "stdout", 1), "é1\né2\n");
    assert_eq!(again.last().unwrap().name, "ended");
    let wrong = server.owner("GET", &format!("/v1/sessions/{id}/events?output=true"));
    wrong.header("last-event-id", "5_9").send().is_refused(400, "bad_request");
    server
        .get(&format!("/v1/sessions/{id}/events?output=true&tail=1001"))
        .is_refused(400, "bad_request");
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    let mut lazy = watch(&server, &id, "", None);
    let _ = server.exec(&id, "echo first");
    take_until(&mut lazy, is("closed", 1));
    // Far more than sockets and buffers hold.
    let flood = "head -c 60000000 /dev/zero | tr '\\0' 'x'";
    let body = json!({"command": flood, "max_output": 0, "timeout": 0});
    let done = server.post(&format!("/v1/sessions/{id}/exec"), &body).is(200).json();
    assert_eq!(done["exit_code"], 0);
    assert_eq!(server.exec(&id, "echo after")["stdout"], "after\n");
    let memory = server.process().entry().status("VmRSS:").unwrap();
    let kib: u64 = memory.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 100_000, "{memory}");
    // It comes to all of it that is kept, in the end, and is told of what is not.
    let mut seen = take_until(&mut lazy, is("closed", 3));
    if !seen.iter().any(|event| is_of(event, "closed", 2)) {
        seen.extend(take_until(&mut lazy, is("closed", 2)));
    }
    let flooded: Vec<&Event> = seen.iter().filter(|event| is_of(event, "stdout", 2)).collect();
    let length: u64 = flooded.iter().map(|e| e.data["data"].as_str().unwrap().len() as u64).sum();
    let skipped: u64 = flooded.iter().filter_map(|event| event.data["skipped"].as_u64()).sum();
    assert_eq!(length + skipped, 60_000_000);
    assert_eq!(written(&seen, "stdout", 3), "after\n");
}

#[test]
fn what_is_not_kept_of_a_stream_is_told_and_nothing_comes_twice() {
    let h = harness!();
    let server = h.serve();
    let limited = json!({"limits": {"output": 100_000}});
    let started = server.post("/v1/sessions", &limited).is(201).json();
    let id = started["session_id"].as_str().unwrap();
    let body = json!({"command": "seq 1 1000000", "max_output": 0});
    server.post(&format!("/v1/sessions/{id}/exec"), &body).is(200);
    let total: u64 = 6_888_896;
    let by_run = server.owner("GET", &format!("/v1/sessions/{id}/runs/1/events")).events();
    let streams: [Vec<Event>; 2] =
        [by_run.collect(), take_until(&mut watch(&server, id, "&tail=1", None), is("closed", 1))];
    for events in streams {
        let text = written(&events, "stdout", 1);
        let skipped: u64 = events.iter().filter_map(|event| event.data["skipped"].as_u64()).sum();
        assert!(skipped > 0);
        assert_eq!(text.len() as u64 + skipped, total);
        assert!(text.starts_with("1\n2\n3\n") && text.ends_with("\n999999\n1000000\n"));
    }
}
