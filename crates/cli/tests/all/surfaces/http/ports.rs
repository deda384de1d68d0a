//! Servers in sessions, reached over HTTP and by `sessile port`.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Process, Server, Session, harness, needs, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// Says what it was asked, in a session's own words.
const MIRROR: &str = r#"
import http.server, json
class Mirror(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(length)
        said = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body.decode()}
        text = json.dumps(said).encode()
        self.send_response(307 if self.path == "/away" else 418)
        self.send_header("content-length", str(len(text)))
        self.send_header("set-cookie", "stolen=1")
        self.send_header("location", "/../../../v1/sessions")
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(text)
    def __getattr__(self, name):
        if name.startswith("do_"): return self.answer
        raise AttributeError(name)
http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror).serve_forever()
"#;

/// Sends a piece, and the rest when it is asked for that.
const DRIBBLE: &str = r#"
import http.server, threading
more = threading.Event()
class Dribble(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path == "/more":
            more.set()
            return
        self.wfile.write(b"first\n")
        self.wfile.flush()
        more.wait()
        self.wfile.write(b"last\n")
http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dribble).serve_forever()
"#;

/// A WebSocket server of a few lines, which says back what it hears.
const ECHO: &str = r"
const crypto = require('crypto');
const server = require('http').createServer((_, answer) => answer.end('plain'));
server.on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = crypto.createHash('sha1').update(key).digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  const say = (text) => socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
  say(Buffer.from(JSON.stringify(request.headers.authorization ?? 'no token')));
  socket.on('data', (frame) => {
    const length = frame[1] & 127, mask = frame.subarray(2, 6);
    say(frame.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]));
  });
});
server.listen(0, '127.0.0.1');
";

/// Starts a server in a session; its port, once it is open.
fn begin(h: &Harness, s: &Session<'_>, file: &str, program: &str, text: &str) -> u64 {
    std::fs::write(h.path(file), text).unwrap();
    let known = ports(h, s.id());
    s.run(format!("{program} {} & :", h.path(file).display())).exits(0);
    until("an open port", || ports(h, s.id()).into_iter().find(|port| !known.contains(port)))
}

fn ports(h: &Harness, id: &str) -> Vec<u64> {
    let open = h.sessile(&["port", id]).json();
    open.as_array().unwrap().iter().map(|port| port["port"].as_u64().unwrap()).collect()
}

fn place(s: &Session<'_>, port: u64, path: &str) -> String {
    format!("/v1/sessions/{}/ports/{port}{path}", s.id())
}

#[test]
fn a_request_passes_as_it_is_and_without_the_callers_credentials() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    let port = begin(&h, &s, "mirror.py", "python3", MIRROR);
    let path = place(&s, port, "/a%2Fb/..//c?q=%20&r");
    let sent = server.owner("PUT", &path).header("cookie", "a=b").header("x-mine", "1");
    let answered = sent.file("ü".as_bytes()).send().is(418);
    let said = answered.json();
    assert_eq!(said["method"], "PUT");
    assert_eq!(said["path"], "/a%2Fb/..//c?q=%20&r");
    assert_eq!(said["body"], "ü");
    let headers: Vec<String> =
        said["headers"].as_object().unwrap().keys().map(|name| name.to_lowercase()).collect();
    for kept in ["authorization", "cookie", "connection"] {
        assert!(!headers.iter().any(|name| name == kept), "{kept} in {headers:?}");
    }
    assert!(headers.iter().any(|name| name == "x-mine"), "{headers:?}");
    assert!(!said.to_string().contains(server.token()), "{said}");
    assert_eq!(answered.header("set-cookie"), None);
    assert_eq!(answered.header("sessile-port"), Some(port.to_string().as_str()));
    assert!(answered.header("content-security-policy").unwrap().starts_with("sandbox "));
    // A client that follows a redirect does so with its token: not to us.
    let away = server.owner("POST", &place(&s, port, "/away")).json(&json!({})).send().is(307);
    assert_eq!(away.header("location"), Some(place(&s, port, "/v1/sessions").as_str()));
    // A body without a length, and methods that we do not know.
    let chunked = server.owner("PATCH", &place(&s, port, "/x"));
    let mut stream = chunked_request(&server, "PROPFIND", &place(&s, port, "/x"));
    stream.write_all(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = sessile_testkit::http::Response::parse(&answer).unwrap().is(418).json();
    assert_eq!((&answer["method"], &answer["body"]), (&json!("PROPFIND"), &json!("abcde")));
    assert_eq!(chunked.send().is(418).json()["method"], "PATCH");
    let head = server.owner("HEAD", &place(&s, port, "/")).send().is(418);
    assert_eq!(head.body, b"");
    let bare = server.get(&place(&s, port, "?x")).is(308);
    assert_eq!(bare.header("location"), Some(place(&s, port, "/?x").as_str()));
}

fn chunked_request(server: &Server, method: &str, path: &str) -> TcpStream {
    let mut stream = sessile_testkit::http::connect(server.address);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        server.address,
        server.token()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn an_answer_comes_piece_by_piece() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    let port = begin(&h, &s, "dribble.py", "python3", DRIBBLE);
    let stream = server.owner("GET", &place(&s, port, "/")).header("connection", "close").open();
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    assert!(lines.any(|line| line == "first"), "the first piece, before the rest is there");
    let _ = server.get(&place(&s, port, "/more")).is(200);
    assert!(lines.any(|line| line == "last"), "the rest");
}

#[test]
fn a_websocket_passes() {
    if !needs::has_program("node") {
        return;
    }
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    let port = begin(&h, &s, "echo.js", "node", ECHO);
    let mut socket = server.socket(&place(&s, port, "/chat"));
    assert_eq!(socket.receive(), json!("no token"));
    for message in [json!({"n": 1}), json!("two")] {
        socket.send(&message);
        assert_eq!(socket.receive(), message);
    }
    assert_eq!(server.get(&place(&s, port, "/")).is(200).text(), "plain");
}

#[test]
fn a_port_is_reached_only_if_it_is_the_sessions_and_the_session_the_callers() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.serve();
    let (s, other) = (h.session(), h.session());
    let port = begin(&h, &s, "mirror.py", "python3", MIRROR);
    let listed = server.get(&format!("/v1/sessions/{}/ports", s.id())).is(200).json();
    assert_eq!(listed, json!([{"port": port, "protocol": "tcp", "address": "127.0.0.1"}]));
    let refused = server.get(&place(&other, port, "/")).is_refused(404, "port_not_open");
    assert!(refused.text().contains("nor on any other"), "{}", refused.text());
    assert_eq!(refused.header("sessile-port"), None);
    // Ours, and open, but of no session.
    let own = u64::from(server.address.port());
    let refused = server.get(&place(&s, own, "/")).is_refused(404, "port_not_open");
    assert!(refused.text().contains(&format!("it listens on {port}")), "{}", refused.text());
    for wrong in ["0", "65536", "x"] {
        let path = format!("/v1/sessions/{}/ports/{wrong}/", s.id());
        server.get(&path).is_refused(404, "port_not_open");
    }
    server.request("GET", &place(&s, port, "/")).send().is_refused(401, "unauthorized");
    std::fs::create_dir(h.path("elsewhere")).unwrap();
    let made = h.sessile(&["token", "create", "ci", "--workspace", "elsewhere"]).json();
    let stranger = made["token"].as_str().unwrap();
    let refused = server.request("GET", &place(&s, port, "/")).token(stranger).send();
    refused.is_refused(404, "session_not_found");
    let page = server.owner("GET", &place(&s, port, "/")).header("origin", "http://evil.example");
    page.send().is_refused(403, "origin_not_allowed");
    // A kernel's own server is no job, and is reached as well.
    let own = h.sessile(&["exec", s.id(), "--language", "python", "--", SERVER]).json();
    let own: u64 = own["stdout"].as_str().unwrap().trim().parse().unwrap();
    let refused = server.get(&place(&s, own, "/")).is_refused(502, "port_failed");
    assert!(refused.text().contains("did not answer in HTTP"), "{}", refused.text());
}

/// Hangs up on everybody.
const SERVER: &str = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0))
def hang_up():
    while True: listener.accept()[0].close()
threading.Thread(target=hang_up, daemon=True).start()
print(listener.getsockname()[1])";

#[test]
fn the_command_line_forwards_a_port_until_the_session_ends() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let s = h.session();
    let refused = h.sessile(&["port", s.id(), "8000"]).exits(1).errors();
    assert!(refused.contains("listens on port 8000, nor on any other"), "{refused}");
    let port = begin(&h, &s, "mirror.py", "python3", MIRROR);
    let mut command = h.command(&["port", s.id(), &port.to_string()]);
    let mut forward = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(forward.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&told["session_id"], &told["port"]), (&json!(s.id()), &json!(port)));
    let address = told["address"].as_str().unwrap().parse().unwrap();
    // Raw: what is sent to it is the app's own, an Authorization included.
    let asked = sessile_testkit::http::Request::new(address, "POST", "/x").token("app's");
    let said = asked.file(&[b'x'; 1 << 20]).send().is(418).json();
    assert_eq!(said["body"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(said["headers"]["authorization"], "Bearer app's");
    h.sessile(&["end", s.id()]).exits(0);
    Process::of(forward.id().cast_signed()).wait_ended();
    assert!(forward.wait().unwrap().success());
    let refused = h.sessile(&["port", s.id(), "8000"]).exits(1).errors();
    assert!(refused.contains("was ended by request"), "{refused}");
}

#[test]
fn a_session_that_has_ended_has_no_port_to_open() {
    let h = harness!();
    let server = h.serve();
    let s = h.session();
    s.end();
    server.get(&place(&s, 8000, "/")).is_refused(410, "session_ended");
}

/// A session in a sandbox with a server on port 8000, which says this.
fn serving<'h>(h: &'h Harness, network: &str, says: &str) -> Session<'h> {
    let s = h.session_with(&["--sandbox", "full-access", "--network", network]);
    s.run(format!("mkdir /tmp/{says} && cd /tmp/{says} && echo {says} >a")).exits(0);
    s.run("python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &").exits(0);
    until("an open port", || ports(h, s.id()).contains(&8000).then_some(()));
    s
}

#[test]
fn the_same_port_in_two_sandboxes_is_each_ones_own() {
    let h = harness!();
    let server = h.serve();
    let (first, second) = (serving(&h, "none", "first"), serving(&h, "a.example", "second"));
    assert_eq!(server.get(&place(&first, 8000, "/a")).is(200).text(), "first\n");
    assert_eq!(server.get(&place(&second, 8000, "/a")).is(200).text(), "second\n");
    // The way out is no way in.
    assert_eq!(ports(&h, second.id()), [8000]);
    server.get(&place(&second, 3128, "/")).is_refused(404, "port_not_open");
    server.request("GET", &place(&first, 8000, "/a")).send().is_refused(401, "unauthorized");
    std::fs::create_dir(h.path("elsewhere")).unwrap();
    let made = h.sessile(&["token", "create", "ci", "--workspace", "elsewhere"]).json();
    let stranger = made["token"].as_str().unwrap();
    let refused = server.request("GET", &place(&first, 8000, "/a")).token(stranger).send();
    refused.is_refused(404, "session_not_found");
}

#[test]
fn the_command_line_forwards_a_port_of_a_sandbox() {
    let check = |h: &Harness| {
        let s = serving(h, "none", "inside");
        let mut command = h.command(&["port", s.id(), "8000"]);
        let mut forward = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(forward.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let address = told["address"].as_str().unwrap().parse().unwrap();
        let got = sessile_testkit::http::Request::new(address, "GET", "/a").send().is(200);
        assert_eq!(got.text(), "inside\n");
        s.end();
        assert!(forward.wait().unwrap().success());
    };
    check(&harness!());
    if rustix::process::geteuid().is_root() {
        check(&Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")));
    }
}

#[test]
fn a_websocket_passes_into_a_sandbox() {
    if !needs::has_program("node") {
        return;
    }
    let h = harness!();
    let server = h.serve();
    let s = h.session_with(&["--sandbox", "full-access"]);
    std::fs::write(h.path("echo.js"), ECHO).unwrap();
    s.run("node echo.js & :").exits(0);
    let port = until("an open port", || ports(&h, s.id()).first().copied());
    let mut socket = server.socket(&place(&s, port, "/chat"));
    assert_eq!(socket.receive(), json!("no token"));
    socket.send(&json!({"n": 1}));
    assert_eq!(socket.receive(), json!({"n": 1}));
}
