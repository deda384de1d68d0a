//! A sandbox whose network is a list of hosts. What hostile programs try with it
//! is in `security`.

use rustix::process::Pid;
use serde_json::{Value, json};
use sessile_testkit::{Process, Session, Site, harness, needs, until};

/// Clients of each kind, by hand: `request` for the proxy's HTTP, `tunnel` for
/// CONNECT, `socks` for SOCKS 5. Each gives what came back.
const CLIENTS: &str = r#"
import socket, urllib.request
def dial():
    s = socket.create_connection(("127.0.0.1", 3128))
    s.settimeout(30)
    return s
def rest(s):
    got = b""
    while True:
        more = s.recv(65536)
        if not more: return got.decode()
        got += more
def request(url, *lines, body=b""):
    s = dial()
    head = "\r\n".join(["%s %s HTTP/1.1" % ("POST" if body else "GET", url), *lines])
    s.sendall(head.encode() + b"\r\n\r\n" + body)
    return rest(s)
def tunnel(target):
    s = dial()
    s.sendall(("CONNECT %s HTTP/1.1\r\n\r\n" % target).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"): head += s.recv(1)
    if b" 200 " not in head: return head.decode() + rest(s)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return rest(s)
def socks(kind, address, port):
    s = dial()
    s.sendall(b"\5\1\0" )
    assert s.recv(2) == b"\5\0"
    s.sendall(b"\5\1\0" + bytes([kind]) + address + port.to_bytes(2, "big"))
    reply = s.recv(10)
    if reply[1]: return "reply %d" % reply[1]
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return rest(s)
def name(text): return bytes([len(text)]) + text.encode()
"#;

fn python(s: &Session<'_>, port: u16) {
    s.run_in("python", format!("{CLIENTS}\nP = {port}")).exits(0);
}

fn notes(answer: &Value) -> Vec<String> {
    let notes = answer["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().filter_map(|note| note.as_str().map(str::to_owned)).collect()
}

#[test]
fn hosts_of_the_list_are_reached_by_http_connect_and_socks() {
    let h = harness!();
    let site = Site::at("127.0.0.1", 0, "reached\n");
    let port = site.port();
    let hosts = format!("127.0.0.1:{port}");
    let s = h.session_with(&["--sandbox", "full-access", "--network", &hosts]);
    python(&s, port);
    let answer = s.run_in(
        "python",
        r#"
url = "http://127.0.0.1:%d/" % P
print(urllib.request.urlopen(url).read())
print(len(urllib.request.urlopen(url, data=b"x" * 1000000).read()))
print(request(url).splitlines()[-1])
print(request(url, "Transfer-Encoding: chunked", body=b"2\r\nab\r\n0\r\n\r\n").splitlines()[-1])
print(tunnel("127.0.0.1:%d" % P).splitlines()[-1])
print(socks(1, socket.inet_aton("127.0.0.1"), P).splitlines()[-1])
print(socks(3, name("127.0.0.1"), P).splitlines()[-1])
print(socks(4, socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"), P).splitlines()[-1])
"#,
    );
    let expected = format!("b'reached\\n'\n1000000\n{}", "reached\n".repeat(6));
    let answer = answer.exits(0).prints(&expected);
    assert_eq!(notes(answer.json()), Vec::<String>::new());
    // What one may not do is what a plain sandbox may not, either.
    s.run("exec 3<>/dev/tcp/127.0.0.1/1").exits(1);
    s.run("env | grep -ic '_proxy=http://127.0.0.1:3128'").prints("6\n");
}

#[test]
fn names_are_resolved_outside_and_localhost_is_the_hosts_if_it_is_named() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can give a machine other names");
    }
    let h = harness!();
    let site = Site::at("127.0.0.1", 0, "reached\n");
    let port = site.port();
    let names = [("/etc/hosts", "127.0.0.1 localhost www.site.test private.site.test\n")];
    let list = format!("*.site.test,127.0.0.1:{port},localhost:{port}");
    let s = h.session_among(&names, &["--sandbox", "full-access", "--network", &list]);
    python(&s, port);
    s.run_in("python", "print(urllib.request.urlopen('http://www.site.test:%d/' % P).read())")
        .prints("b'reached\\n'\n");
    s.run_in("python", "print(urllib.request.urlopen('http://localhost:%d/' % P).read())")
        .prints("b'reached\\n'\n");
    s.run_in("python", "print(socks(3, name('www.site.test'), P).splitlines()[-1])")
        .prints("reached\n");
    assert!(site.seen()[0].starts_with(&format!("GET / HTTP/1.1\r\nHost: www.site.test:{port}")));
    // Names are resolved nowhere but there.
    s.run_in("python", "socket.getaddrinfo('www.site.test', 80)").exits(1);
    let unknown = s.run_in("python", "print(tunnel('nowhere.site.test:1').splitlines()[0])");
    let unknown = unknown.prints("HTTP/1.1 502 No connection\n");
    assert_eq!(notes(unknown.json()), Vec::<String>::new(), "that is no refusal");
}

#[test]
fn a_refusal_is_told_in_the_runs_notes_and_in_the_log() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--network", "api.example.com:443"]);
    python(&s, 0);
    let answer = s.run_in("python", "print(tunnel('evil.example:443').splitlines()[0])");
    let answer = answer.prints("HTTP/1.1 403 Refused by the sandbox\n");
    let why = "which was refused by the sandbox: it is not on the list of hosts";
    let note = |program: &str| format!("{program} wanted to reach evil.example:443, {why}");
    let told = notes(answer.json());
    assert!(told.len() == 1 && told[0].ends_with(why), "{told:?}");
    // A program that a shell has started, and one that is left in the background.
    let curl = "python3 -c 'import urllib.request as u; u.urlopen(\"https://evil.example\")'";
    let answer = s.run(format!("{curl} 2>/dev/null"));
    assert_eq!(notes(answer.exits(1).json()), [note("python3")]);
    let left =
        s.run(format!("mkfifo go done; (read line <go; {curl} 2>/dev/null; echo x >done) &"));
    assert_eq!(notes(left.exits(0).json()), Vec::<String>::new());
    let answer = s.run("echo x >go; read line <done");
    assert_eq!(notes(answer.exits(0).json()), [note("python3")]);
    let log = std::fs::read_to_string(s.dir().join("network.log")).expect("a log");
    let lines: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let runs: Vec<&Value> = lines.iter().map(|line| &line["run"]).collect();
    assert_eq!(runs, [2, 3, 4], "each with the run that has started it: {log}");
    assert_eq!(lines[1]["target"], "evil.example:443");
    assert_eq!(lines[1]["reason"], "it is not on the list of hosts");
    assert_eq!(lines[1]["program"], "python3");
}

#[test]
fn a_refusal_names_the_target_whatever_the_protocol() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--network", "a.example"]);
    python(&s, 0);
    let refused = |code: &str, target: &str, why: &str| {
        let answer = s.run_in("python", code).exits(0);
        let told = notes(answer.json());
        let words = format!("wanted to reach {target}, which was refused by the sandbox: {why}");
        assert!(told.len() == 1 && told[0].contains(&words), "{code}: {told:?}");
    };
    let header = "the request's Host header says b.example";
    refused("request('http://a.example/', 'Host: b.example')", "a.example:80", header);
    let lengths = "'Content-Length: 1', 'Content-Length: 2'";
    let code = format!("request('http://a.example/', {lengths})");
    refused(&code, "a.example:80", "the length of the request's body is not clear");
    let old = "it asked with SOCKS 4; the proxy takes SOCKS 5 (socks5h://)";
    let ask = |rest: &str| format!("s = dial(); s.sendall(b'\\4\\1\\1\\xbb{rest}'); rest(s)");
    refused(&ask("\\xc0\\0\\2\\7me\\0"), "192.0.2.7:443", old);
    refused(&ask("\\0\\0\\0\\1\\0a.example\\0"), "a.example:443", old);
    refused(&ask("\\0\\0\\0\\1\\0a\\x1b[31m\\n\\0"), "a\u{fffd}[31m\u{fffd}:443", old);
    let listening =
        "s = dial(); s.sendall(b'\\5\\1\\0\\5\\2\\0\\3\\x09a.example\\0\\x50'); rest(s)";
    refused(listening, "a.example:80", "SOCKS is for connections only");
}

#[test]
fn a_refusal_in_a_fork_is_told_to_the_fork() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--network", "api.example.com:443"]);
    let forked = s.sessile("fork").json();
    let fork = h.session_called(forked["session_ids"][0].as_str().expect("an id"));
    let fetch = "python3 -c 'import urllib.request as u; u.urlopen(\"https://evil.example\")'";
    assert_eq!(notes(fork.run(fetch).exits(1).json()).len(), 1);
    assert_eq!(notes(s.run("echo quiet").exits(0).json()), Vec::<String>::new());
    assert!(fork.dir().join("network.log").exists() && !s.dir().join("network.log").exists());
}

#[test]
fn the_same_over_http() {
    let h = harness!();
    let site = Site::at("127.0.0.1", 0, "reached\n");
    let server = h.serve();
    let sandbox = |hosts: Value| json!({"sandbox": {"preset": "full-access", "network": hosts}});
    let refused = server.post("/v1/sessions", &sandbox(json!(["https://a.com"])));
    let refused = refused.is_refused(400, "bad_request");
    assert!(refused.text().contains("write the name alone"), "{}", refused.text());
    let hosts = json!([format!("127.0.0.1:{}", site.port())]);
    let made = server.post("/v1/sessions", &sandbox(hosts)).is(201).json();
    let path = format!("/v1/sessions/{}/exec", made["session_id"].as_str().expect("an id"));
    let fetch = |port: u16| {
        let command = format!(
            "python3 -c 'import urllib.request as u; \
             print(u.urlopen(\"http://127.0.0.1:{port}\").read())'"
        );
        server.post(&path, &json!({"command": command})).is(200).json()
    };
    assert_eq!(fetch(site.port())["stdout"], "b'reached\\n'\n");
    let why = "python3 wanted to reach 127.0.0.1:1, which was refused by the sandbox: \
               the list of hosts has it with another port";
    assert!(notes(&fetch(1))[0].starts_with(why));
}

#[test]
fn a_proxy_that_ends_is_started_again_and_goes_with_its_keeper() {
    let h = harness!();
    let site = Site::at("127.0.0.1", 0, "reached\n");
    let hosts = format!("127.0.0.1:{}", site.port());
    let s = h.session_with(&["--sandbox", "full-access", "--network", &hosts]);
    python(&s, site.port());
    let proxy = || {
        let keeper = Pid::from_raw(s.keeper().pid()).expect("a keeper");
        let children = sessile_proc::Process::new(keeper).children().into_iter();
        let is_outside = |pid: &Pid| {
            let numbers = sessile_proc::Process::new(*pid).namespace_numbers();
            numbers.is_some_and(|numbers| numbers.len() == 1)
        };
        children.into_iter().find(is_outside).map(|pid| pid.as_raw_nonzero().get())
    };
    let first = proxy().expect("a proxy");
    Process::of(first).kill().wait_gone();
    let second = until("another proxy", || proxy().filter(|pid| *pid != first));
    s.run_in("python", "print(tunnel('127.0.0.1:%d' % P).splitlines()[-1])").prints("reached\n");
    let second = Process::of(second);
    s.keeper().kill().wait_gone();
    second.wait_gone();
    // The session goes on, with another sandbox and another proxy.
    python(&s, site.port());
    s.run_in("python", "print(tunnel('127.0.0.1:%d' % P).splitlines()[-1])").prints("reached\n");
}

#[test]
fn connections_are_counted_and_one_too_many_is_told_so() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--network", "api.example.com"]);
    python(&s, 0);
    let answer = s.run_in("python", "all = [dial() for _ in range(128)]\nprint(request('x')[:35])");
    answer.prints("HTTP/1.1 503 Too many connections\r\n\n");
    s.run_in("python", "[one.close() for one in all]\nimport time\nfor _ in range(500):\n    \
        said = request('x')\n    if ' 503 ' not in said: break\n    time.sleep(0.02)\nprint(said[:12])")
        .prints("HTTP/1.1 400\n");
}

#[test]
fn a_list_that_is_none_starts_nothing() {
    let h = harness!();
    for (list, why) in [
        ("https://a.com", "--network: \"https://a.com\" is more than a host"),
        ("a.com,*", "--network: `*` would be every host; write full for that"),
        ("none,a.com", "--network: none is not a host, and is written alone"),
        ("a.com:99999", "has no port between 1 and 65535"),
        ("0x7f000001", "is an address in a form that is not taken"),
        ("a.com,", "--network: the name of a host is missing"),
    ] {
        let refused = h.sessile(&["start", "--sandbox", "full-access", "--network", list]);
        assert!(refused.errors().contains(why), "{list}: {}", refused.errors());
    }
    std::fs::write(h.path("policy.toml"), "network = [\n  \"a.com\",\n  \"b:c\",\n]\n").unwrap();
    let refused = h.sessile(&["start", "--sandbox", "policy.toml"]);
    let text = refused.errors();
    assert!(text.contains("policy.toml:3: \"b:c\" has no port"), "{text}");
    assert_eq!(h.list(), Vec::<Value>::new());
}
