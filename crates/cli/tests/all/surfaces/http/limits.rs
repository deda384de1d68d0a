//! What a server refuses when it is enough, and how it says so.

use serde_json::json;
use sessile_testkit::http::{Response, connect};
use sessile_testkit::{Server, harness, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a refusal says what was refused and when to try again.
#[track_caller]
fn refuses(response: Response, status: u16, code: &str) -> Response {
    let response = response.is(status);
    assert_eq!(response.code(), code);
    let is_busy = matches!(status, 429 | 503);
    assert_eq!(response.header("retry-after").is_some(), is_busy);
    assert!(!response.json()["error"]["hint"].as_str().unwrap_or_default().is_empty());
    response
}

fn start(server: &Server) -> Response {
    server.owner("POST", "/v1/sessions").json(&json!({})).send()
}

#[test]
fn sessions_in_all() {
    let h = harness!();
    let server = h.server(&["--max-sessions", "2"]);
    let first = server.session();
    let _ = server.session();
    let refused = refuses(start(&server), 429, "too_many_sessions");
    assert!(refused.text().contains("there are 2 live sessions"), "{}", refused.text());
    let _ = server.owner("DELETE", &format!("/v1/sessions/{first}")).send().is(200);
    let _ = server.session();
}

#[test]
fn sessions_in_all_when_many_ask_at_once() {
    let h = harness!();
    let server = h.server(&["--max-sessions", "3"]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| start(&server).status)).collect();
        calls.into_iter().map(|call| call.join().expect("an answer")).collect()
    });
    let made = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!(made + refused, statuses.len(), "{statuses:?}");
    // However many came first: there is room for three in all, and for no more.
    for _ in made..3 {
        let _ = server.session();
    }
    let _ = refuses(start(&server), 429, "too_many_sessions");
    let live = server.get("/v1/sessions?status=active").is(200).json();
    assert_eq!(live["sessions"].as_array().expect("a list").len(), 3);
}

#[test]
fn sessions_of_one_token() {
    let h = harness!();
    let server = h.server(&["--max-sessions-per-token", "1"]);
    let token = |name: &str| {
        let made = h.sessile(&["token", "create", name]).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let (a, b) = (token("a"), token("b"));
    let start =
        |token: &str| server.request("POST", "/v1/sessions").token(token).json(&json!({})).send();
    let _ = start(&a).is(201);
    let refused = refuses(start(&a), 429, "too_many_sessions");
    assert!(refused.text().contains("of this token"), "{}", refused.text());
    let _ = start(&b).is(201);
    // The owner is limited by the number in all alone.
    let _ = (server.session(), server.session());
}

#[test]
fn queued_runs_of_a_session() {
    let h = harness!();
    let server = h.server(&["--max-queue", "2"]);
    let id = server.session();
    let path = format!("/v1/sessions/{id}/exec");
    rustix::fs::mkfifoat(rustix::fs::CWD, h.path("pipe"), rustix::fs::Mode::RWXU).expect("a fifo");
    let order = |command: &str| {
        let body = json!({"command": command, "wait": 0});
        server.owner("POST", &path).json(&body).send()
    };
    let _ = order("read -r x < pipe").is(202);
    until("the first run to be under way", || {
        let events = server.owner("GET", &format!("/v1/sessions/{id}/runs/1/events")).open();
        contains(events, b"event: started").then_some(())
    });
    let _ = order("echo 2").is(202);
    let _ = order("echo 3").is(202);
    let refused = refuses(order("echo 4"), 429, "queue_full");
    assert!(refused.text().contains('2'), "{}", refused.text());
    std::fs::write(h.path("pipe"), "go\n").expect("a reader");
    let third = server.owner("GET", &format!("/v1/sessions/{id}/runs/3?wait=30s")).send().is(200);
    assert_eq!(third.json()["stdout"], "3\n");
    assert_eq!(order("echo 5").status, 202);
}

/// Reads until something has come.
fn contains(mut stream: TcpStream, wanted: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while let Ok(n @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..n]);
        if bytes.windows(wanted.len()).any(|window| window == wanted) {
            return true;
        }
    }
    false
}

#[test]
fn the_size_of_a_body() {
    let h = harness!();
    let server = h.server(&["--max-body", "64KiB"]);
    let id = server.session();
    let path = format!("/v1/sessions/{id}/exec");
    let order = |size: usize| {
        let body = json!({"command": format!(": {}", "x".repeat(size))});
        server.owner("POST", &path).json(&body).send()
    };
    let _ = order(60 << 10).is(200);
    let _ = refuses(order(70 << 10), 413, "too_large");

    // A body that is held back until it is asked for is not asked for.
    for path in [path.as_str(), "/mcp"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: \
             application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: \
             70000\r\nExpect: 100-continue\r\n\r\n",
            server.address,
            server.token()
        );
        let mut stream = connect(server.address);
        stream.write_all(head.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        refuses(Response::parse(&answer).expect("an answer"), 413, "too_large");
    }
}

#[test]
fn streams_at_once() {
    let h = harness!();
    let server = h.server(&["--max-streams", "1"]);
    let id = server.session();
    rustix::fs::mkfifoat(rustix::fs::CWD, h.path("pipe"), rustix::fs::Mode::RWXU).expect("a fifo");
    let body = json!({"command": "read -r x < pipe", "wait": 0});
    let _ = server.owner("POST", &format!("/v1/sessions/{id}/exec")).json(&body).send().is(202);
    let events = || server.owner("GET", &format!("/v1/sessions/{id}/runs/1/events"));
    let mut open = events().open();
    let mut byte = [0];
    open.read_exact(&mut byte).expect("an answer");
    let _ = refuses(events().send(), 429, "too_many_streams");
    drop(open);
    std::fs::write(h.path("pipe"), "go\n").expect("a reader");
    // The place is free again when the server has seen that the client has gone.
    until("a free place", || (events().send().status == 200).then_some(()));
}

#[test]
fn output_in_an_answer() {
    let h = harness!();
    let server = h.server(&["--max-output", "1KiB"]);
    let id = server.session();
    let body = json!({"command": "printf '%05000d' 7", "max_output": 1 << 20});
    let path = format!("/v1/sessions/{id}/exec");
    let answer = server.owner("POST", &path).json(&body).send().is(200).json();
    let text = answer["stdout"].as_str().expect("text");
    assert!(text.len() < 2048, "{} bytes", text.len());
    // All of it can be read by cursor, a piece at a time.
    let path = format!("/v1/sessions/{id}/runs/1/output");
    let mut all = String::new();
    while all.len() < 5000 {
        let part = server.owner("GET", &format!("{path}?from={}", all.len())).send().is(200).json();
        let text = part["data"].as_str().expect("text");
        assert!((1..=1024).contains(&text.len()), "{} bytes", text.len());
        all.push_str(text);
    }
    assert_eq!(all, format!("{:05000}", 7));
}

#[test]
fn connections_at_once() {
    let h = harness!();
    let server = h.server(&["--max-connections", "2"]);
    let health = || server.request("GET", "/healthz");
    // Two that are kept open, and known to have been accepted.
    let kept: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = server.owner("GET", "/v1/sessions").open();
            stream.read_exact(&mut [0]).expect("an answer");
            stream
        })
        .collect();
    let _ = refuses(health().send(), 503, "too_many_connections");
    // However many come at once.
    let asked: Vec<TcpStream> = (0..100).map(|_| health().open()).collect();
    for mut stream in asked {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer, and no reset");
        refuses(Response::parse(&answer).expect("an answer"), 503, "too_many_connections");
    }
    drop(kept);
    until("a free place", || (health().send().status == 200).then_some(()));
}

#[test]
fn who_sends_nothing_keeps_nobody_out() {
    let h = harness!();
    let server = h.server(&["--max-connections", "4"]);
    let mut known = server.owner("GET", "/v1/sessions").open();
    known.read_exact(&mut [0]).expect("an answer");
    let silent: Vec<TcpStream> = (0..3).map(|_| connect(server.address)).collect();
    let list = || server.owner("GET", "/v1/sessions").send();
    // Strangers that have only just come stay; then the oldest makes room.
    until("room", || (list().status == 200).then_some(()));
    let mut first = &silent[0];
    assert_eq!(first.read(&mut [0]).expect("the end"), 0, "the oldest was closed");
    // Whoever has shown a token stays.
    let again =
        format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    known.write_all(again.as_bytes()).expect("a connection");
    let mut rest = String::new();
    known.read_to_string(&mut rest).expect("an answer");
    assert!(rest.contains("\"status\":\"ok\""), "{rest}");
}

#[test]
fn who_comes_again_when_sent_away_keeps_nobody_out_either() {
    let h = harness!();
    let server = h.server(&["--max-connections", "6"]);
    let is_over = AtomicBool::new(false);
    let begun = std::sync::Barrier::new(7);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut half = begin_a_request(server.address);
                begun.wait();
                while !is_over.load(Ordering::Relaxed) {
                    // Until the server closes it.
                    let _ = half.read(&mut [0; 1024]);
                    half = begin_a_request(server.address);
                }
            });
        }
        begun.wait();
        let statuses: Vec<u16> =
            (0..5).map(|_| server.owner("GET", "/v1/sessions").send().status).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [200; 5]);
    });
}

fn begin_a_request(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let _ = stream.write_all(b"GET / HT");
    stream
}

#[test]
fn a_body_that_is_refused_leaves_no_memory_behind() {
    let h = harness!();
    let server = h.serve();
    let path = format!("/v1/sessions/{}/exec", server.session());
    // As large as may be, and no JSON at its end.
    let text = format!("{{\"command\": \"{}\"", "x".repeat(23 << 20));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let order = server.owner("POST", &path).file(text.as_bytes());
                    let order = order.with_type("application/json");
                    order.send().is_refused(400, "bad_request");
                }
            });
        }
    });
    until("the memory to be given back", || {
        let resident = server.process().entry().status("VmRSS:")?;
        let kib: u64 = resident.split(' ').next()?.parse().ok()?;
        (kib < 80 << 10).then_some(())
    });
}

#[test]
fn a_client_that_sends_its_request_too_slowly_is_cut_off() {
    let h = harness!();
    let server = h.server(&["--request-timeout", "200ms"]);
    let mut silent = connect(server.address);
    let mut slow = connect(server.address);
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").expect("a server");
    let id = server.session();
    let mut half = connect(server.address);
    let head = format!(
        "POST /v1/sessions/{id}/exec HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{",
        server.address,
        server.token()
    );
    half.write_all(head.as_bytes()).expect("a server");
    // Each of these ends only because the server closes the connection.
    let end = |stream: &mut TcpStream| {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!(end(&mut silent), "");
    assert!(!end(&mut slow).contains("200 OK"));
    assert!(end(&mut half).contains(" 400 "), "a body that stops");
    let _ = server.request("GET", "/healthz").send().is(200);
}

#[test]
fn a_server_with_few_descriptors_goes_on_although_others_hold_them() {
    let h = harness!();
    let mut command = std::process::Command::new("bash");
    let serve = "ulimit -n 64; exec \"$0\" serve --listen 127.0.0.1:0";
    command.args(["-c", serve, env!("CARGO_BIN_EXE_sessile")]);
    let plain = h.command(&[]);
    command.current_dir(h.root()).envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let server = Server::spawn(command, &h);
    let many: Vec<TcpStream> = (0..100).map(|_| connect(server.address)).collect();
    let time = || server.process().entry().stat().expect("a process").cpu;
    let before = time();
    // They hold descriptors and say nothing; who says something is answered.
    let list = || server.owner("GET", "/v1/sessions").send();
    until("an answer", || (list().status == 200).then_some(()));
    drop(many);
    let _ = server.request("GET", "/healthz").send().is(200);
    assert!(time() - before < 100, "a second of processor time: it spins");
}
