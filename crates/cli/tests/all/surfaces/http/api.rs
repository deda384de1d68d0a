//! The HTTP API, on a real server with real sessions.

use serde_json::{Value, json};
use sessile_testkit::{Event, Harness, Server, curl, harness, until};

fn start(server: &Server) -> String {
    let reply = server.post("/v1/sessions", &json!({})).is(201);
    format!("/v1/sessions/{}", reply.json()["session_id"].as_str().unwrap())
}

fn exec(server: &Server, session: &str, command: &str) -> Value {
    server.post(&format!("{session}/exec"), &json!({"command": command})).is(200).json()
}

/// A FIFO that a command waits at until the test opens it.
fn gate(h: &Harness, name: &str) {
    let status = std::process::Command::new("mkfifo").arg(h.path(name)).status().unwrap();
    assert!(status.success());
}

fn open(h: &Harness, name: &str) {
    std::fs::File::options().write(true).open(h.path(name)).unwrap();
}

#[test]
fn a_session_remembers_over_http_and_answers_as_the_command_line_does() {
    let h = harness!();
    let server = h.serve();
    let started = server.post("/v1/sessions", &json!({"name": "first", "env": {"A": "1"}})).is(201);
    let started = started.json();
    assert_eq!(started["status"], "active");
    assert_eq!(started["command"], "bash");
    assert_eq!(started["work_dir"], json!(h.root()));
    let id = started["session_id"].as_str().unwrap();
    let session = format!("/v1/sessions/{id}");
    exec(&server, &session, "cd /tmp; x=41; greet() { echo hi; }");
    let answer = exec(&server, &session, "pwd; echo $((x+1)) $A; greet; echo oops >&2; exit 3");
    assert_eq!(answer["stdout"], "/tmp\n42 1\nhi\n");
    assert_eq!(answer["stderr"], "oops\n");
    assert_eq!(answer["exit_code"], 3);
    assert_eq!(answer["run"], 2);
    assert_eq!(answer["kernel"], "restarted");
    assert_eq!(answer["continuity"], json!({"status": "live"}));
    let eval = server.post(&format!("{session}/eval"), &json!({"command": "6 * 7"})).is(200);
    assert_eq!(eval.json()["result"], "42");
    let state = server.get(&format!("{session}/state")).is(200).json();
    assert_eq!(state["working_dir"], "/tmp");
    assert_eq!(state["variables"]["x"], "41");
    let history = server.get(&format!("{session}/history?limit=2")).is(200).json();
    assert_eq!(history[1]["command"], "6 * 7");
    assert_eq!(history.as_array().unwrap().len(), 2);
    let shown = server.get(&session).is(200).json();
    assert_eq!(shown["name"], "first");
    assert_eq!(shown["status"], "active");
    server.post(&format!("{session}/reset"), &json!({})).is(200);
    assert_eq!(exec(&server, &session, "echo -${x-none}-")["stdout"], "-none-\n");
    // The command line sees the same session.
    assert_eq!(h.list()[0]["session_id"], id);
    let ended = server.delete(&session).is(200).json();
    assert_eq!(ended, json!({"status": "terminated", "session_id": id}));
    server.delete(&session).is(200);
    server
        .post(&format!("{session}/exec"), &json!({"command": ":"}))
        .is_refused(410, "session_ended");
    server.post("/v1/sessions", &json!({})).is(201);
    assert_eq!(
        server.delete("/v1/sessions").is(200).json()["session_ids"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn sessions_are_listed_by_page_status_and_workspace() {
    let h = harness!();
    let server = h.serve();
    std::fs::create_dir(h.path("w")).unwrap();
    let ids: Vec<String> = (0..3)
        .map(|_| server.post("/v1/sessions", &json!({"workspace": "w"})).is(201).json())
        .map(|started| started["session_id"].as_str().unwrap().to_owned())
        .collect();
    server.delete(&format!("/v1/sessions/{}", ids[0])).is(200);
    start(&server);
    let page = |query: &str| {
        let page = server.get(&format!("/v1/sessions?{query}")).is(200).json();
        let ids: Vec<String> = page["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["session_id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(page("").0.len(), 4);
    assert_eq!(page("status=terminated").0, [ids[0].clone()]);
    let workspace = format!("workspace={}&status=active", h.path("w").display());
    assert_eq!(page(&workspace).0, [ids[2].clone(), ids[1].clone()]);
    let (first, next) = page(&format!("{workspace}&limit=1"));
    assert_eq!(first, [ids[2].clone()]);
    let (second, end) = page(&format!("{workspace}&limit=1&after={}", next.unwrap()));
    assert_eq!((second, end), (vec![ids[1].clone()], None));
}

#[test]
fn a_run_that_goes_on_is_waited_for_by_its_number() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    gate(&h, "gate");
    let body = json!({"command": "echo before; cat gate; echo after", "wait": "0s"});
    let running = server.post(&format!("{session}/exec"), &body).is(202).json();
    assert_eq!(running["running"], true);
    assert_eq!(running["run"], 1);
    let run = format!("{session}/runs/1");
    server.get(&run).is(202);
    // What it has written is read while it goes on.
    let output = server.get(&format!("{run}/output?wait=30s")).is(200).json();
    assert_eq!(output["data"], "before\n");
    assert_eq!(output["phase"], "running");
    open(&h, "gate");
    let next = output["next"].as_u64().unwrap();
    let output = server.get(&format!("{run}/output?from={next}&wait=30s")).is(200).json();
    assert_eq!(output["data"], "after\n");
    let done = server.get(&format!("{run}?wait=30s")).is(200).json();
    assert_eq!(done["stdout"], "before\nafter\n");
    assert_eq!(done["running"], false);
    server.get(&format!("{session}/runs/2")).is_refused(404, "run_not_found");
    server.get(&format!("{session}/runs/x")).is_refused(404, "run_not_found");
}

#[test]
fn a_run_goes_on_when_its_client_leaves_and_when_the_server_is_killed() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    gate(&h, "gate");
    let body = json!({"command": "echo begun > mark; cat gate; echo end; y=7"});
    let client = server.owner("POST", &format!("{session}/exec")).json(&body).open();
    h.wait_for_line("mark");
    drop(client);
    server.kill();
    let server = h.serve();
    server.get(&format!("{session}/runs/1")).is(202);
    open(&h, "gate");
    let done = server.get(&format!("{session}/runs/1?wait=30s")).is(200).json();
    assert_eq!(done["stdout"], "end\n");
    let answer = exec(&server, &session, "echo $y");
    assert_eq!(answer["stdout"], "7\n");
    assert_eq!(answer["continuity"]["status"], "live");
    assert!(server.get("/metrics").is(200).text().contains("sessile_keepers_adopted_total 1"));
}

#[test]
fn a_retry_with_the_same_key_never_runs_twice() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    gate(&h, "gate");
    let body = json!({"command": "echo once >> times; cat gate; echo done"});
    let exec = |server: &Server, body: &Value| {
        let path = format!("{session}/exec");
        server.owner("POST", &path).json(body).header("Idempotency-Key", "k-1")
    };
    let client = exec(&server, &body).open();
    h.wait_for_line("times");
    drop(client);
    server.kill();
    let server = h.serve();
    open(&h, "gate");
    let first = exec(&server, &body).send().is(200).json();
    assert_eq!((&first["stdout"], &first["run"]), (&json!("done\n"), &json!(1)));
    assert_eq!(first["repeated"], true);
    let again = exec(&server, &body).send().is(200).json();
    assert_eq!(again["stdout"], "done\n");
    assert_eq!(h.wait_for_line("times"), "once");
    exec(&server, &json!({"command": "echo other"})).send().is_refused(409, "key_reused");
    let odd = server.owner("POST", &format!("{session}/exec")).json(&body);
    odd.header("Idempotency-Key", &"k".repeat(300)).send().is_refused(400, "bad_request");
}

#[test]
fn one_command_with_a_key_is_answered_once_across_the_death_of_the_server() {
    let h = harness!();
    let server = h.serve();
    gate(&h, "gate");
    let body = json!({"command": "echo once >> times; cat gate; echo done"});
    let once = |server: &Server, body: &Value| {
        server.owner("POST", "/v1/exec").json(body).header("Idempotency-Key", "k-1")
    };
    let client = once(&server, &body).open();
    h.wait_for_line("times");
    server.kill();
    drop(client);
    let server = h.serve();
    open(&h, "gate");
    let first = once(&server, &body).send().is(200).json();
    assert_eq!(first["stdout"], "done\n");
    // The answer may have been lost, too, and its session has ended.
    // While it ends, a client is asked to try again.
    let again = until("an answer", || {
        let answer = once(&server, &body).send();
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(again.is(200).json()["stdout"], "done\n");
    assert_eq!(std::fs::read_to_string(h.path("times")).unwrap(), "once\n");
    once(&server, &json!({"command": "echo other"})).send().is_refused(409, "key_reused");
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

fn written(events: &[Event], stream: &str) -> String {
    let of_stream = events.iter().filter(|event| event.name == stream);
    of_stream.map(|event| event.data["data"].as_str().unwrap()).collect()
}

#[test]
fn events_come_as_they_happen_and_go_on_after_the_last_one_seen() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    gate(&h, "a");
    gate(&h, "b");
    let command = "echo one; cat a; echo two; echo zwei >&2; (cat b; echo late) &";
    let call = server.owner("POST", &format!("{session}/exec"));
    let call = call.header("Accept", "text/event-stream").json(&json!({"command": command}));
    let mut events = call.events();
    let mut seen: Vec<Event> = events.by_ref().take(2).collect();
    assert_eq!(names(&seen), ["started", "stdout"]);
    drop(events);
    open(&h, "a");
    // Once more from the last id, on another server.
    server.kill();
    let server = h.serve();
    let follow = |last: &str| {
        let call = server.owner("GET", &format!("{session}/runs/1/events"));
        call.header("Last-Event-ID", last).events()
    };
    let mut events = follow(&seen[1].id);
    while seen.last().unwrap().name != "exited" {
        seen.push(events.next().unwrap());
    }
    drop(events);
    assert_eq!(seen.last().unwrap().data["result"]["exit_code"], 0);
    open(&h, "b");
    seen.extend(follow(&seen.last().unwrap().id));
    assert_eq!(seen.last().unwrap().name, "closed");
    assert_eq!(written(&seen, "stdout"), "one\ntwo\nlate\n");
    assert_eq!(written(&seen, "stderr"), "zwei\n");
    let numbers: Vec<u64> = seen.iter().map(|event| event.data["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    // From the beginning, later: the same.
    let whole: Vec<Event> =
        server.owner("GET", &format!("{session}/runs/1/events")).events().collect();
    assert_eq!(written(&whole, "stdout"), "one\ntwo\nlate\n");
    assert_eq!(names(&whole)[0], "started");
    assert_eq!(follow(&whole.last().unwrap().id).count(), 0);
    server
        .owner("GET", &format!("{session}/runs/1/events"))
        .header("Last-Event-ID", "x")
        .send()
        .is_refused(400, "bad_request");
}

#[test]
fn a_session_whose_keeper_died_goes_on_and_says_what_was_lost() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let id = session.rsplit('/').next().unwrap().to_owned();
    exec(&server, &session, "x=5");
    server.get(&format!("{session}/state")).is(200);
    gate(&h, "gate");
    let body = json!({"command": "echo begun > mark; cat gate", "wait": "0s"});
    server.post(&format!("{session}/exec"), &body).is(202);
    h.wait_for_line("mark");
    let keeper = server.get(&session).json()["keeper_pid"].as_i64().unwrap();
    let keeper = sessile_testkit::Process::of(i32::try_from(keeper).unwrap());
    keeper.kill().wait_ended();
    until("the session to be lost", || {
        (server.get(&session).json()["status"] == "lost").then_some(())
    });
    server.get(&format!("{session}/runs/2")).is_refused(410, "run_lost");
    assert_eq!(server.get(&format!("{session}/runs/1")).is(200).json()["exit_code"], 0);
    let answer = exec(&server, &session, "echo $x");
    assert_eq!(answer["stdout"], "5\n");
    assert_eq!(answer["run"], 3);
    let continuity = &answer["continuity"];
    assert_eq!(continuity["status"], "restored");
    assert_eq!(continuity["as_of_run"], 1);
    assert_eq!(continuity["lost_runs"], json!([2]));
    assert_eq!(continuity["previous"]["session_id"], id);
    let warning = server.wait_for_log(&id);
    assert!(
        warning.contains("keeper was lost") && warning.to_lowercase().contains("warn"),
        "{warning}"
    );
    assert_eq!(exec(&server, &session, ":")["continuity"]["status"], "live");
}

#[test]
fn one_command_without_a_session_leaves_nothing() {
    let h = harness!();
    let server = h.serve();
    std::fs::create_dir(h.path("sub")).unwrap();
    let body = json!({
        "command": "cat; pwd; echo $V; exit 3", "stdin": "in\n", "env": {"V": "v"}, "cwd": "sub",
    });
    let answer = server.post("/v1/exec", &body).is(200).json();
    assert_eq!(answer["stdout"], format!("in\n{}\nv\n", h.path("sub").display()));
    assert_eq!(answer["exit_code"], 3);
    let slow = json!({"command": "sleep 100", "timeout": "50ms"});
    assert_eq!(server.post("/v1/exec", &slow).is(200).json()["timed_out"], true);
    until("no session to be left", || {
        let page = server.get("/v1/sessions").is(200).json();
        page["sessions"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn the_runtime_tool_answers_as_on_the_command_line() {
    let h = harness!();
    let server = h.serve();
    std::fs::create_dir(h.path("w")).unwrap();
    let call = |body: Value| server.post("/v1/tools/runtime", &body).is(200).json();
    let first = call(json!({"action": "exec", "command": "x=41", "workspace": "w"}));
    assert_eq!((&first["success"], &first["new_session"]), (&json!(true), &json!(true)));
    let second = call(json!({"action": "exec", "command": "echo $((x+1))", "workspace": "w"}));
    assert_eq!(second["stdout"], "42\n");
    assert_eq!(second["session_id"], first["session_id"]);
    let other = call(json!({"action": "exec", "command": "echo -$x-"}));
    assert_eq!(other["stdout"], "--\n");
    let wrong = call(json!({"action": "x"}));
    assert_eq!(
        wrong["error"],
        "Invalid action: x. Must be one of: exec, eval, state, reset, history"
    );
    let outside = call(json!({"action": "exec", "command": "ls", "workspace": "/etc"}));
    assert_eq!(outside["success"], false);
    let history = call(json!({"action": "history", "workspace": "w"}));
    assert_eq!(history["history"].as_array().unwrap().len(), 2);
}

#[test]
fn only_who_has_a_token_and_calls_us_by_our_name_is_answered() {
    let h = harness!();
    let server = h.serve();
    let list = || server.owner("GET", "/v1/sessions");
    let nobody = || server.request("GET", "/v1/sessions");
    nobody().send().is_refused(401, "unauthorized");
    nobody().token("sessile_wrong").send().is_refused(401, "unauthorized");
    nobody().token("").send().is_refused(401, "unauthorized");
    list().send().is(200);
    let raw = |head: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        let head = format!("{head}\r\nAuthorization: Bearer {}\r\n\r\n", server.token());
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let rebound = raw("GET /v1/sessions HTTP/1.0\r\nHost: evil.example");
    assert!(rebound.contains("host_not_allowed"), "{rebound}");
    list().header("Origin", "https://evil.example").send().is_refused(403, "origin_not_allowed");
    list().header("Origin", "null").send().is_refused(403, "origin_not_allowed");
    let plain = list().send();
    assert_eq!(plain.header("access-control-allow-origin"), None);
    server.request("GET", "/healthz").send().is(200);
    server.request("GET", "/readyz").send().is(200);
    server.request("GET", "/openapi.json").send().is(200);
    server.request("GET", "/docs").send().is(200);
    server.request("GET", "/metrics").send().is_refused(401, "unauthorized");
}

#[test]
fn no_path_from_the_network_leads_out_of_the_roots() {
    let h = harness!();
    std::fs::create_dir_all(h.path("root/in")).unwrap();
    std::os::unix::fs::symlink("/", h.path("root/out")).unwrap();
    let root = h.path("root").display().to_string();
    let server = h.server(&["--workspace-root", &root]);
    for path in ["..", "/", "/etc", "out/etc", "in/../..", "in/../../root-2"] {
        for field in ["cwd", "workspace"] {
            let body = json!({field: path});
            server.post("/v1/sessions", &body).is_refused(403, "forbidden");
        }
        let body = json!({"command": "pwd", "cwd": path});
        server.post("/v1/exec", &body).is_refused(403, "forbidden");
    }
    let inside = server.post("/v1/sessions", &json!({"cwd": "in"})).is(201).json();
    assert_eq!(inside["work_dir"], json!(h.path("root/in")));
    for id in ["..%2f..%2fetc", "sess_..", "%2e%2e", "sess_0000", "x%00y"] {
        server.get(&format!("/v1/sessions/{id}")).is_refused(404, "session_not_found");
    }
}

#[test]
fn wrong_requests_are_told_what_is_wrong() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let exec = |body: Value| server.post(&format!("{session}/exec"), &body);
    exec(json!({})).is_refused(400, "bad_request");
    exec(json!({"command": 1})).is_refused(400, "bad_request");
    exec(json!({"command": "x", "comand": "y"})).is_refused(400, "bad_request");
    exec(json!({"command": "x", "language": "perl"})).is_refused(400, "bad_request");
    exec(json!({"command": "x", "timeout": "soon"})).is_refused(400, "bad_request");
    exec(json!({"command": "x", "env": {"a b": "c"}})).is_refused(400, "bad_request");
    exec(json!({"command": "a\u{0}b"})).is_refused(400, "bad_command");
    let path = format!("{session}/exec");
    server.owner("POST", &path).send().is_refused(415, "unsupported_media_type");
    let reply = server.owner("POST", &path).json(&json!("x".repeat(30 << 20))).send();
    reply.is_refused(413, "too_large");
    server.post("/v1/sessions", &json!({"shell": "fish"})).is_refused(400, "unknown_program");
    server.post("/v1/sessions", &json!({"cwd": "nope"})).is_refused(400, "bad_directory");
    let missing = server.post("/v1/sessions", &json!({"shell": "/nope/bash"}));
    missing.is_refused(503, "kernel_unavailable");
    server.get("/v1/nope").is_refused(404, "not_found");
    server.owner("PUT", "/v1/sessions").send().is_refused(405, "method_not_allowed");
    server.get("/v1/sessions/sess_00000000").is_refused(404, "session_not_found");
}

#[test]
fn curl_does_as_the_greeting_says() {
    let h = harness!();
    let server = h.serve();
    let auth = format!("Authorization: Bearer {}", server.token());
    let url = format!("http://{}/v1/tools/runtime", server.address());
    let body = r#"{"action": "exec", "command": "echo hello"}"#;
    let kind = "Content-Type: application/json";
    let answer: Value =
        serde_json::from_str(&curl(&[&url, "-H", &auth, "-H", kind, "-d", body])).unwrap();
    assert_eq!(answer["stdout"], "hello\n");
}

fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["type"].as_str().unwrap()).collect()
}

#[test]
fn a_websocket_carries_events_and_takes_input_and_signals() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let mut socket = server.socket(&format!("{session}/ws"));
    socket.send(&json!({"type": "stdin", "data": "x"}));
    assert_eq!(socket.receive()["error"]["code"], "bad_request");
    socket.send(
        &json!({"type": "exec", "command": "read a; echo \"got $a\"; cat", "interactive": true}),
    );
    assert_eq!(socket.receive()["type"], "started");
    socket.send(&json!({"type": "stdin", "data": "one\n"}));
    let got = socket.receive();
    assert_eq!((&got["type"], &got["data"]), (&json!("stdout"), &json!("got one\n")));
    socket.send(&json!({"type": "stdin", "data": "dHdvCg==", "encoding": "base64"}));
    assert_eq!(socket.receive()["data"], "two\n");
    socket.send(&json!({"type": "resize", "columns": 80, "rows": 24}));
    let resized = socket.receive();
    assert_eq!((&resized["type"], &resized["terminal"]), (&json!("resized"), &json!(false)));
    socket.send(&json!({"type": "eof"}));
    let rest = socket.receive_until("closed");
    assert_eq!(kinds(&rest), ["exited", "closed"]);
    assert_eq!(rest[0]["result"]["stdout"], "got one\ntwo\n");
    // The next run, on the same socket.
    socket.send(&json!({"type": "exec", "command": "trap 'echo caught' TERM; sleep 100; echo after", "timeout": 0}));
    assert_eq!(socket.receive()["type"], "started");
    until("the sleep", || {
        sessile_testkit::processes_with(&format!(
            "SESSILE_SESSION_ID={}",
            &session["/v1/sessions/".len()..]
        ))
        .into_iter()
        .any(|process| process.entry().status("Name:").as_deref() == Some("sleep"))
        .then_some(())
    });
    socket.send(&json!({"type": "signal", "signal": "TERM"}));
    let rest = socket.receive_until("closed");
    let exited = rest.iter().find(|message| message["type"] == "exited").unwrap();
    assert!(exited["result"]["stdout"].as_str().unwrap().ends_with("after\n"), "{exited}");
    for wrong in ["", "[]", "{\"type\": \"dance\"}", "{\"type\": \"exec\"}"] {
        socket.send(&serde_json::from_str(wrong).unwrap_or(json!(wrong)));
        assert_eq!(socket.receive()["type"], "error", "{wrong}");
    }
}

#[test]
fn closing_a_websocket_harms_no_run() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    gate(&h, "gate");
    let mut socket = server.socket(&format!("{session}/ws"));
    socket.send(&json!({"type": "exec", "command": "echo one; cat gate; echo two"}));
    let seen = socket.receive_until("stdout");
    drop(socket);
    open(&h, "gate");
    let after = seen.last().unwrap()["id"].as_str().unwrap();
    let mut socket = server.socket(&format!("{session}/runs/1/ws?after={after}"));
    let rest = socket.receive_until("closed");
    assert_eq!(kinds(&rest), ["stdout", "exited", "closed"]);
    assert_eq!(rest[0]["data"], "two\n");
    server.get(&format!("{session}/ws")).is_refused(400, "bad_request");
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let body = json!({"command": "head -c 50000000 /dev/zero | tr '\\0' x"});
    let call = server.owner("POST", &format!("{session}/exec"));
    let unread = call.header("Accept", "text/event-stream").json(&body).open();
    let done = server.get(&format!("{session}/runs/1?wait=60s&max_output=0"));
    // It may not have begun when it is asked for the first time.
    let done = if done.status == 404 {
        until("the run", || {
            Some(server.get(&format!("{session}/runs/1?wait=60s&max_output=0")))
                .filter(|reply| reply.status == 200)
        })
    } else {
        done.is(200)
    };
    assert_eq!(done.json()["truncated"]["stdout"]["total_bytes"], 50_000_000);
    assert_eq!(exec(&server, &session, "echo next")["stdout"], "next\n");
    let memory = server.process().entry().status("VmRSS:").unwrap();
    let kilobytes: u64 = memory.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 200_000, "{memory}");
    drop(unread);
}

#[test]
fn every_run_is_counted_once_however_its_result_was_asked_for() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let path = format!("{session}/exec");
    exec(&server, &session, ":");
    let keyed = || server.owner("POST", &path).json(&json!({"command": ":"}));
    for _ in 0..2 {
        keyed().header("Idempotency-Key", "k").send().is(200);
    }
    gate(&h, "gate");
    server.post(&path, &json!({"command": "cat gate", "wait": 0})).is(202);
    open(&h, "gate");
    for _ in 0..2 {
        server.get(&format!("{session}/runs/3?wait=30s")).is(200);
    }
    let streamed = keyed().header("Accept", "text/event-stream").events();
    assert_eq!(streamed.last().unwrap().name, "closed");
    server.owner("GET", &format!("{session}/runs/4/events")).events().for_each(drop);
    let mut socket = server.socket(&format!("{session}/ws"));
    socket.send(&json!({"type": "exec", "command": ":"}));
    socket.receive_until("closed");
    let metrics = server.get("/metrics").is(200).text();
    let counted = "sessile_runs_total{language=\"bash\",outcome=\"succeeded\"} 5\n";
    assert!(metrics.contains(counted), "{metrics}");
}

#[test]
fn a_session_shows_the_run_that_was_just_answered() {
    let h = harness!();
    let server = h.serve();
    let path = server.started(&json!({}));
    for run in 1..=20 {
        server.exec_at(&path, ":");
        assert_eq!(server.get(&path).json()["execution_count"], run);
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_one_that_was_meant() {
    let h = harness!();
    let server = h.serve();
    let path = server.started(&json!({"max_history": 2.0}));
    assert_eq!(server.get(&path).json()["max_history"], 2);
    let refused = |path: &str, body: &serde_json::Value, why: &str| {
        let told = server.post(path, body).is_refused(400, "bad_request").text();
        assert!(told.contains(why), "{told}");
    };
    let exec = format!("{path}/exec");
    let meant = r#"unknown field \"maxOutput\"; did you mean \"max_output\"?"#;
    refused(&exec, &json!({"command": ":", "maxOutput": 1}), meant);
    refused(&exec, &json!({"command": ":", "env": {"A": 1}}), "env.A: must be a text, and is 1");
    refused("/v1/sessions", &json!({"limits": {"outptu": 1}}), "did you mean \\\"output\\\"?");
}
