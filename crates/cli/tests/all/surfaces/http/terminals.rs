//! Runs with a terminal over HTTP and WebSocket, on the programs that people
//! use one with.

use serde_json::{Value, json};
use sessile_testkit::http::Response;
use sessile_testkit::{Server, harness, until};

/// A run with a terminal.
struct Run<'a> {
    server: &'a Server,
    path: String,
}

/// A session's path.
fn start(server: &Server) -> String {
    format!("/v1/sessions/{}", server.session())
}

/// Begins a command with a terminal.
#[track_caller]
fn begin<'a>(server: &'a Server, session: &str, command: &str, terminal: &Value) -> Run<'a> {
    let body = json!({"command": command, "terminal": terminal, "wait": 0, "timeout": 0});
    let begun = server.post(&format!("{session}/exec"), &body).is(202).json();
    Run { server, path: format!("{session}/runs/{}", begun["run"]) }
}

impl Run<'_> {
    fn screen(&self, query: &str) -> Response {
        self.server.get(&format!("{}/screen?{query}", self.path))
    }

    /// The screen when this is on it.
    #[track_caller]
    fn shows(&self, pattern: &str) -> Value {
        let query = format!("wait=40s&wait_for={}", escaped(pattern));
        let screen = self.screen(&query).is(200).json();
        assert_eq!(screen["wait"], "matched", "{pattern}: {screen}");
        screen
    }

    fn keys(&self, body: &Value) -> Response {
        self.server.post(&format!("{}/keys", self.path), body)
    }

    /// Presses keys: the screen when this is on it.
    #[track_caller]
    fn press(&self, keys: &str, pattern: &str) -> Value {
        let body = json!({"keys": keys, "wait_for": pattern, "wait": "40s"});
        let screen = self.keys(&body).is(200).json();
        assert_eq!(screen["wait"], "matched", "{keys} for {pattern}: {screen}");
        screen
    }

    fn resize(&self, cols: u16, rows: u16) -> Response {
        self.server.post(&format!("{}/resize", self.path), &json!({"cols": cols, "rows": rows}))
    }

    /// Its result, which is waited for.
    #[track_caller]
    fn result(&self) -> Value {
        // A call that waits is also answered when the run waits for input.
        until("the end of the run", || {
            let answer = self.server.get(&format!("{}?wait=40s", self.path));
            (answer.status != 202).then(|| answer.is(200).json())
        })
    }
}

/// As a query has it.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn text(screen: &Value) -> &str {
    screen["text"].as_str().unwrap()
}

/// What vim shows when it is ready.
const VIM: &str = "vim -u NONE -n note.txt";

#[test]
fn vim_is_driven_by_keys_and_writes_its_file() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let vim = begin(&server, &session, VIM, &json!({"cols": 60, "rows": 12}));
    let screen = vim.shows("note.txt");
    assert_eq!(screen["size"], json!({"cols": 60, "rows": 12}));
    assert_eq!((&screen["is_alternate"], &screen["running"]), (&json!(true), &json!(true)));
    let typed = vim.press("ihello <lt>b> wörld 界<Enter>second", "^second$");
    assert_eq!(text(&typed).lines().next(), Some("hello <b> wörld 界"));
    assert_eq!(typed["cursor"], json!({"col": 6, "row": 1}));
    vim.press("<Esc>:set number<Enter>", "^ +2 second$");
    vim.keys(&json!({"keys": ":wq<Enter>"})).is(200);
    assert_eq!(vim.result()["exit_code"], 0);
    let written = std::fs::read_to_string(h.path("note.txt")).unwrap();
    assert_eq!(written, "hello <b> wörld 界\nsecond\n");
}

#[test]
fn a_prompt_is_waited_for_and_the_one_before_the_keys_is_not_taken_for_it() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    // The answer comes when it waits for input, without a guess.
    let body = json!({"command": "python3 -q", "terminal": true, "timeout": 0, "wait": "40s"});
    let begun = server.post(&format!("{session}/exec"), &body).is(202).json();
    assert_eq!((&begun["waiting_for_input"], &begun["run"]), (&json!(true), &json!(1)));
    let listed = server.get(&format!("{session}/runs")).is(200).json();
    assert_eq!(listed[0]["terminal"], true);
    let python = Run { server: &server, path: format!("{session}/runs/1") };
    let screen = python.shows(">>> $");
    assert_eq!((&screen["cursor"], text(&screen)), (&json!({"col": 4, "row": 0}), ">>>"));
    for number in 1..=5 {
        let screen = python.press(&format!("6 * {number}<Enter>"), ">>> $");
        let answer = format!(">>> 6 * {number}\n{}\n>>>", 6 * number);
        assert!(text(&screen).ends_with(&answer), "{screen}");
    }
    let late = "import time; time.sleep(0.3); print(6 * 7)<Enter>";
    assert!(text(&python.press(late, "^42$")).contains("sleep"));
    // What is typed may also come as bytes.
    server.post(&format!("{}/input", python.path), &json!({"data": "print('so')\n"})).is(200);
    // At the prompt: an end of input that comes earlier is lost on readline.
    python.shows(r"^so\n>>> $");
    server.post(&format!("{}/input", python.path), &json!({"eof": true})).is(200);
    assert_eq!(python.result()["exit_code"], 0);
}

#[test]
fn a_wait_ends_in_one_of_four_ways() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let run = begin(&server, &session, "echo ready; read -r x; echo \"got $x\"", &json!(true));
    assert!(run.shows("^ready$")["revision"].is_u64());
    let now = run.screen("").is(200).json();
    assert_eq!((&now["wait"], &now["waiting_for_input"]), (&Value::Null, &json!(true)));
    assert_eq!(run.screen("settle=20ms").is(200).json()["wait"], "settled");
    assert_eq!(run.screen("wait_for=never&wait=20ms").is(200).json()["wait"], "timed_out");
    // What was there before the keys does not count.
    let body = json!({"keys": "", "wait_for": "ready", "wait": "20ms"});
    assert_eq!(run.keys(&body).is(200).json()["wait"], "timed_out");
    let body = json!({"keys": "it<Enter>", "wait_for": "never", "wait": "40s"});
    let last = run.keys(&body).is(200).json();
    assert_eq!((&last["wait"], &last["running"]), (&json!("ended"), &json!(false)));
    assert_eq!(text(&last), "ready\nit\ngot it");
    let plain = run.screen("format=text&wait_for=got").is(200);
    assert_eq!(plain.header("sessile-wait"), Some("matched"));
    run.screen("wait_for=(").is_refused(400, "bad_request");
    run.screen("format=gif").is_refused(400, "bad_request");
}

#[test]
fn a_new_size_reaches_the_program() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let size = json!({"cols": 90, "rows": 7});
    let shell = begin(&server, &session, "stty size; read -r _; stty size", &size);
    shell.shows("^7 90$");
    for (cols, rows) in [(1000, 1000), (1, 1), (132, 43)] {
        let sized = shell.resize(cols, rows).is(200).json();
        assert_eq!((&sized["cols"], &sized["rows"]), (&json!(cols), &json!(rows)));
    }
    shell.resize(0, 24).is_refused(400, "bad_request");
    shell.resize(80, 1001).is_refused(400, "bad_request");
    shell.press("<Enter>", "43 132$");
    assert_eq!(shell.result()["exit_code"], 0);
}

#[test]
fn colours_and_wide_characters_come_out_right() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let text =
        r"printf '\033]0;a title\007\033[38;5;208;1m界🙂\033[0m é\033[48;2;1;2;3mx\033[0m\n'";
    let body = json!({"command": text, "terminal": {"cols": 20, "rows": 3}});
    server.post(&format!("{session}/exec"), &body).is(200);
    let run = Run { server: &server, path: format!("{session}/runs/1") };
    let cells = run.screen("format=cells").is(200).json();
    assert_eq!((&cells["title"], &cells["text"]), (&json!("a title"), &json!("界🙂 éx")));
    let spans = cells["lines"][0]["spans"].as_array().unwrap();
    let wide = json!({"col": 0, "width": 4, "text": "界🙂", "foreground": "color208", "is_wide": true, "bold": true});
    assert_eq!(spans[0], wide);
    let last = json!({"col": 6, "width": 1, "text": "x", "background": "#010203"});
    assert_eq!(spans.last(), Some(&last));
    let svg = run.screen("format=svg").is(200);
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.text().contains("<svg") && svg.text().contains('界'), "{}", svg.text());
    let png = run.screen("format=png").is(200);
    assert_eq!(png.header("content-type"), Some("image/png"));
    let mut reader = png::Decoder::new(std::io::Cursor::new(&png.body)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.width, frame.height), (20 * 16, 3 * 32));
    let orange = [0xff, 0x87, 0x00];
    assert!(pixels.chunks_exact(3).any(|pixel| pixel == orange), "color208 is not drawn");
    let plain = run.screen("format=text").is(200);
    assert_eq!(plain.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(plain.text(), "界🙂 éx\n");
}

#[test]
fn the_last_screen_is_there_whatever_ends() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let run = begin(&server, &session, "read -r x; echo \"the end of $x\"", &json!(true));
    run.press("it<Enter>", "the end of it");
    run.result();
    run.keys(&json!({"keys": "x"})).is_refused(409, "input_closed");
    run.resize(10, 10).is_refused(409, "input_closed");
    let path = run.path;
    let shown = |server: &Server| {
        let screen = server.get(&format!("{path}/screen?wait_for=never")).is(200).json();
        assert_eq!((text(&screen), &screen["wait"]), ("it\nthe end of it", &json!("ended")));
        assert_eq!(screen["running"], false);
    };
    shown(&server);
    server.kill();
    let server = h.serve();
    shown(&server);
    server.delete(&session).is(200);
    shown(&server);
    let over = Run { server: &server, path };
    over.keys(&json!({"keys": "x"})).is_refused(409, "input_closed");
    let none = Run { server: &server, path: format!("{session}/runs/9") };
    none.screen("").is_refused(404, "run_not_found");
    none.keys(&json!({"keys": "x"})).is_refused(404, "run_not_found");
}

#[test]
fn a_run_without_a_terminal_has_no_screen() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let body = json!({"command": "cat", "interactive": true, "wait": 0});
    server.post(&format!("{session}/exec"), &body).is(202);
    let run = Run { server: &server, path: format!("{session}/runs/1") };
    run.screen("").is_refused(409, "no_terminal");
    run.keys(&json!({"keys": "x"})).is_refused(409, "no_terminal");
    run.keys(&json!({"keys": "x", "wait_for": "x"})).is_refused(409, "no_terminal");
    run.resize(10, 10).is_refused(409, "no_terminal");
    run.screen("wait_for=x&wait=40s").is_refused(409, "no_terminal");
    server.post(&format!("{}/input", run.path), &json!({"eof": true})).is(200);
    run.result();
    run.screen("").is_refused(409, "no_terminal");
    server.delete(&session).is(200);
    run.screen("").is_refused(409, "no_terminal");
    let once = json!({"command": "test -t 1 && stty size", "terminal": {"cols": 33, "rows": 5}});
    assert_eq!(server.post("/v1/exec", &once).is(200).json()["stdout"], "5 33\r\n");
    for wrong in [json!(1), json!({"cols": 80}), json!({"cols": 0, "rows": 1}), json!("80x24")] {
        let body = json!({"command": ":", "terminal": wrong});
        server.post("/v1/exec", &body).is_refused(400, "bad_request");
    }
}

#[test]
fn a_websocket_carries_a_terminal_and_closing_it_harms_nothing() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let mut socket = server.socket(&format!("{session}/ws"));
    let size = json!({"cols": 50, "rows": 9});
    socket.send(&json!({"type": "exec", "command": VIM, "terminal": size, "timeout": 0}));
    assert_eq!(socket.receive()["type"], "started");
    let mut bytes = String::new();
    while !bytes.contains("note.txt") {
        let event = socket.receive();
        assert_eq!(event["type"], "stdout", "{event}");
        bytes.push_str(event["data"].as_str().unwrap());
    }
    assert!(bytes.contains("\x1b[?1049h"), "{bytes:?}");
    let run = Run { server: &server, path: format!("{session}/runs/1") };
    socket.send(&json!({"type": "resize", "columns": 70, "rows": 11}));
    let resized = &socket.receive_until("resized");
    let resized = resized.last().unwrap();
    assert_eq!((&resized["terminal"], &resized["run"]), (&json!(true), &json!(1)));
    socket.send(&json!({"type": "keys", "keys": "iby keys<Enter>"}));
    socket.send(&json!({"type": "stdin", "data": "by bytes"}));
    assert_eq!(run.shows("^by bytes$")["size"], json!({"cols": 70, "rows": 11}));
    drop(socket);
    // Another one joins, and sees what was drawn before.
    let mut joined = server.socket(&format!("{}/ws", run.path));
    assert_eq!(joined.receive()["type"], "started");
    assert_eq!(joined.receive()["type"], "stdout");
    drop(joined);
    let screen = run.press(" stay<Esc>", "^by bytes stay$");
    assert_eq!(screen["running"], true);
    run.keys(&json!({"keys": ":wq<Enter>"})).is(200);
    assert_eq!(run.result()["exit_code"], 0);
    let written = std::fs::read_to_string(h.path("note.txt")).unwrap();
    assert_eq!(written, "by keys\nby bytes stay\n");
}

/// Hundredths of a second that a process has used the processor.
fn cpu(server: &Server) -> u64 {
    server.process().entry().stat().unwrap().cpu
}

#[test]
fn a_program_that_floods_its_terminal_costs_the_server_little() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let run = begin(&server, &session, "yes 'a line that comes again and again'", &json!(true));
    run.shows("again and again$");
    let before = cpu(&server);
    let screen = run.screen("wait_for=never&settle=10ms&wait=2s").is(200).json();
    assert_eq!(screen["wait"], "timed_out");
    assert!(cpu(&server) - before < 100, "half of the time was spent with looking");
    // Those who go away in the middle leave nothing behind.
    let open = descriptors(&server);
    for _ in 0..20 {
        let path = format!("{}/screen?wait_for=never&wait=1h", run.path);
        let mut stream = server.owner("GET", &path).open();
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        assert!(std::io::Read::read(&mut stream, &mut [0]).is_err(), "it is answered");
    }
    until("the end of their connections", || (descriptors(&server) <= open + 4).then_some(()));
    let memory = server.process().entry().status("VmRSS:").unwrap();
    let kilobytes: u64 = memory.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 200_000, "{memory}");
    run.keys(&json!({"keys": "<C-c>"})).is(200);
    assert_eq!(run.result()["exit_code"], 130);
}

#[test]
fn a_huge_screen_in_which_every_cell_has_a_colour_is_told_as_text_only() {
    let h = harness!();
    let server = h.serve();
    let session = start(&server);
    let program = r#"python3 -c '
for cell in range(60000):
    print(f"\033[38;5;{cell % 250}mx", end="")'"#;
    let body = json!({"command": program, "terminal": {"cols": 300, "rows": 300}, "max_output": 0});
    server.post(&format!("{session}/exec"), &body).is(200);
    let run = Run { server: &server, path: format!("{session}/runs/1") };
    for format in ["cells", "svg", "png"] {
        run.screen(&format!("format={format}")).is_refused(413, "too_large");
    }
    assert_eq!(text(&run.screen("").is(200).json()).matches('x').count(), 60_000);
}

fn descriptors(server: &Server) -> usize {
    server.process().entry().descriptors().count()
}
