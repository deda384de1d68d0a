//! All that a person can do with `sessile attach`, done by a program over a
//! WebSocket.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Server, Socket, harness, until};

fn open(server: &Server, id: &str, query: &str) -> Socket {
    server.socket(&format!("/v1/sessions/{id}/ws{query}"))
}

/// Messages up to one of this type of this run, which is the last.
#[track_caller]
fn until_of(socket: &mut Socket, kind: &str, run: u64) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let message = socket.receive();
        let is_last = message["type"] == kind && message["run"] == run;
        assert!(message["type"] != "error", "{message}");
        seen.push(message);
        if is_last {
            return seen;
        }
    }
}

/// Reads on until a run has written this.
#[track_caller]
fn until_written(socket: &mut Socket, run: u64, part: &str) -> String {
    let mut written = String::new();
    while !written.contains(part) {
        let event = until_of(socket, "stdout", run).pop().unwrap();
        written.push_str(event["data"].as_str().unwrap());
    }
    written
}

fn screen(server: &Server, id: &str, run: u64, pattern: &str) -> String {
    let path = format!("/v1/sessions/{id}/runs/{run}/screen?wait=40s&wait_for={pattern}");
    let screen = server.get(&path).is(200).json();
    assert_eq!(screen["wait"], "matched", "{screen}");
    screen["text"].as_str().unwrap().to_owned()
}

fn fifo(h: &Harness, name: &str) {
    assert!(std::process::Command::new("mkfifo").arg(h.path(name)).status().unwrap().success());
}

#[test]
fn a_program_steps_in_types_lines_and_sees_what_the_agent_runs() {
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    s.run("x=41; cd /tmp");
    let mut person = open(&server, s.id(), "?watch=true&tail=1");
    let past = until_of(&mut person, "closed", 1);
    assert_eq!(
        (&past[0]["type"], &past[0]["command"]),
        (&json!("started"), &json!("x=41; cd /tmp"))
    );
    // A line, in the same shell.
    let line = json!({"type": "exec", "command": "pwd; echo $((x += 1))", "terminal": true});
    person.send(&line);
    let told = until_of(&mut person, "closed", 2);
    assert!(told.iter().any(|m| m["type"] == "accepted" && m["run"] == 2), "{told:?}");
    let written: String = told
        .iter()
        .filter(|m| m["type"] == "stdout")
        .map(|m| m["data"].as_str().unwrap())
        .collect();
    assert_eq!(written, "/tmp\r\n42\r\n");
    // The agent's runs are shown as they come.
    s.run("echo agent $x");
    let told = until_of(&mut person, "closed", 3);
    assert_eq!(
        (&told[0]["type"], &told[0]["command"]),
        (&json!("started"), &json!("echo agent $x"))
    );
    assert!(told.iter().any(|m| m["data"] == "agent 42\n"), "{told:?}");
    // Two programs at once, each typed to by its number.
    let ask = |language: &str, command: &str| json!({"type": "exec", "language": language, "command": command, "terminal": true, "timeout": 0});
    person.send(&ask("bash", "read -rp 'name? ' name; echo \"hello $name\""));
    until_written(&mut person, 4, "name? ");
    person.send(&ask("python", "print('got', input('what? '))"));
    until_written(&mut person, 5, "what? ");
    person.send(&json!({"type": "keys", "keys": "Ann<Enter>", "run": 4}));
    until_written(&mut person, 4, "hello Ann");
    until_of(&mut person, "closed", 4);
    person.send(&json!({"type": "stdin", "data": "this\n"}));
    until_written(&mut person, 5, "got this");
    let last = until_of(&mut person, "closed", 5).pop().unwrap();
    // Whoever types is in the history; leaving harms nothing.
    drop(person);
    s.run("echo $name").prints("Ann\n").is_kept();
    let typed = "read -rp 'name? ' name; echo \"hello $name\"";
    assert!(s.history().as_array().unwrap().iter().any(|entry| entry["command"] == typed));
    let mut back =
        open(&server, s.id(), &format!("?watch=true&after={}", last["id"].as_str().unwrap()));
    assert_eq!(back.receive()["run"], 6, "what was seen does not come again");
    s.end();
    assert_eq!(back.receive_until("ended").pop().unwrap()["status"], "terminated");
}

#[test]
fn a_terminal_that_is_drawn_on_is_joined_resized_left_and_joined_again() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    let program = "for n in $(seq 500); do echo \"line $n\"; done; printf 'é> '; read -r a; printf '[%s] ' \"$a\"; read -r b; stty size";
    let body =
        json!({"command": program, "terminal": {"cols": 50, "rows": 9}, "wait": 0, "timeout": 0});
    server.post(&format!("/v1/sessions/{id}/exec"), &body).is(202);
    screen(&server, &id, 1, "%C3%A9%3E");
    let mut person = server.socket(&format!("/v1/sessions/{id}/runs/1/ws?screen=true"));
    let drawn = person.receive();
    assert_eq!(
        (&drawn["type"], &drawn["size"]),
        (&json!("screen"), &json!({"columns": 50, "rows": 9}))
    );
    let data = drawn["data"].as_str().unwrap();
    assert!(
        data.contains("line 500") && data.contains("é>") && !data.contains("line 400"),
        "{data:?}"
    );
    person.send(&json!({"type": "resize", "columns": 60, "rows": 12}));
    assert_eq!(person.receive_until("resized").pop().unwrap()["terminal"], true);
    person.send(&json!({"type": "keys", "keys": "one<Enter>"}));
    let seen = until_written(&mut person, 1, "[one] ");
    assert!(!seen.contains("line"), "only what is new: {seen:?}");
    drop(person);
    // Two watch; one of them must not type.
    let mut watcher =
        server.socket(&format!("/v1/sessions/{id}/runs/1/ws?screen=true&read_only=true"));
    assert!(watcher.receive()["data"].as_str().unwrap().contains("[one]"));
    watcher.send(&json!({"type": "keys", "keys": "no<Enter>"}));
    let refused = watcher.receive_until("error").pop().unwrap();
    assert_eq!(refused["error"]["code"], "forbidden");
    let mut person = server.socket(&format!("/v1/sessions/{id}/runs/1/ws?screen=true"));
    person.send(&json!({"type": "keys", "keys": "two<Enter>"}));
    for socket in [&mut person, &mut watcher] {
        let told = socket.receive_until("exited");
        assert_eq!(told.last().unwrap()["result"]["exit_code"], 0, "{told:?}");
        let written: String = told.iter().filter_map(|m| m["data"].as_str()).collect();
        assert!(written.contains("12 60"), "{written:?}");
    }
    // Of one that is over, the last screen.
    let mut late = server.socket(&format!("/v1/sessions/{id}/runs/1/ws?screen=true"));
    assert!(late.receive()["data"].as_str().unwrap().contains("12 60"));
    assert_eq!(late.receive()["type"], "exited");
}

/// What is sent and what is received, from the block of the page.
fn documented() -> Vec<(bool, Value)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http-api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```text conversation\n").nth(1).unwrap().split("```").next().unwrap();
    let message = |line: &str| {
        let (sign, text) = line.split_once(' ').unwrap();
        (sign == ">", serde_json::from_str(text).unwrap())
    };
    block.lines().map(message).collect()
}

#[test]
fn the_conversation_in_the_documentation_goes_as_it_says() {
    let h = harness!();
    let server = h.serve();
    let mut socket = open(&server, &server.session(), "?watch=true");
    let conversation = documented();
    assert!(conversation.len() > 10);
    for (is_sent, message) in conversation {
        if is_sent {
            socket.send(&message);
            continue;
        }
        let mut data = String::new();
        loop {
            let mut received = socket.receive();
            assert!(received["type"] != "error", "{received} instead of {message}");
            // A run's output comes in pieces.
            if received["type"] == message["type"] && received["data"].is_string() {
                data.push_str(received["data"].as_str().unwrap());
                received["data"] = data.clone().into();
            }
            let fields = message.as_object().unwrap();
            if fields.iter().all(|(name, value)| received[name] == *value) {
                break;
            }
        }
    }
}

#[test]
fn who_only_watches_does_nothing() {
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    fifo(&h, "go");
    let mut watcher = open(&server, s.id(), "?watch=true&read_only=true");
    for order in [
        json!({"type": "exec", "command": "echo no"}),
        json!({"type": "signal", "signal": "KILL", "run": 1}),
        json!({"type": "stdin", "data": "x", "run": 1}),
    ] {
        watcher.send(&order);
        assert_eq!(watcher.receive()["error"]["code"], "forbidden", "{order}");
    }
    let run = s.begin("read -r _ <go; echo went");
    until_of(&mut watcher, "started", 1);
    std::fs::write(h.path("go"), "\n").unwrap();
    until_written(&mut watcher, 1, "went");
    s.answer(run, "").prints("went\n");
    until("one run", || (s.history().as_array().unwrap().len() == 1).then_some(()));
}

#[test]
fn orders_and_queries_that_make_no_sense_are_refused() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    let mut socket = open(&server, &id, "");
    for (order, code) in [
        (json!({"type": "keys", "keys": "x"}), "bad_request"),
        (json!({"type": "keys", "keys": "x", "run": 9}), "run_not_found"),
        (json!({"type": "keys", "keys": "x", "run": "nine"}), "bad_request"),
        (json!({"type": "exec", "command": "x", "run": 1}), "bad_request"),
    ] {
        socket.send(&order);
        assert_eq!(socket.receive()["error"]["code"], code, "{order}");
    }
    let _ = server.exec(&id, "echo hi; echo there >&2");
    let both = server.get(&format!("/v1/sessions/{id}/runs/1/output?cursor=1-2")).is(200).json();
    assert_eq!(
        (&both["stdout"], &both["stderr"], &both["cursor"]),
        (&json!("i\n"), &json!("ere\n"), &json!("3-6"))
    );
    for (query, status, code) in [
        ("/ws?tail=3", 400, "bad_request"),
        ("/ws?watch=true&after=9_x", 400, "bad_request"),
        ("/runs/1/ws?screen=true&after=1-0-0-r", 400, "bad_request"),
        ("/runs/1/output?cursor=1-2&from=3", 400, "bad_request"),
        ("/runs/1/output?cursor=soon", 400, "bad_request"),
    ] {
        let path = format!("/v1/sessions/{id}{query}");
        let request = server.owner("GET", &path).header("upgrade", "websocket");
        let request = request.header("sec-websocket-version", "13");
        let request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        request.send().is_refused(status, code);
    }
}
