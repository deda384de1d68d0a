//! Ways out of a sandbox whose network is a list of hosts. The machine has a
//! secret on its own loopback (127.0.0.1), and a host of the list has the same
//! port of another address (127.0.0.2): what gets the secret has come through.

use super::{Attempt, all_fail, for_everybody, py, sh};
use sessile_testkit::{Harness, NameServer, Session, Site, needs};
use std::net::Ipv4Addr;

/// `ask` sends a request to the proxy as it is written, and is refused by
/// anything but a good answer; the others are ways to ask.
const CLIENTS: &str = r#"
import urllib.request, urllib.error
def dial():
    s = socket.create_connection(("127.0.0.1", 3128))
    s.settimeout(30)
    return s
def rest(s):
    got = b""
    while True:
        more = s.recv(65536)
        if not more: return got
        got += more
def good(answer):
    if b" 200 " not in answer[:20]: raise OSError(answer[:200])
    if b"secret" in answer: print("the secret")
    return answer
def ask(text):
    s = dial()
    s.sendall(text.replace("\n", "\r\n").replace("PORT", str(P)).encode())
    return good(rest(s))
def get(host, also=""):
    return ask("GET http://%s/ HTTP/1.1\n%s\n" % (host, also))
def connect(target, also=""):
    s = dial()
    text = "CONNECT %s HTTP/1.1\n%s\n" % (target, also)
    s.sendall(text.replace("\n", "\r\n").replace("PORT", str(P)).encode())
    head = s.recv(4096)
    if b" 200 " not in head: raise OSError(head)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return good(rest(s))
def socks(kind, address, port=None, command=1):
    s = dial()
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(b"\5" + bytes([command]) + b"\0" + bytes([kind]) + address + (port or P).to_bytes(2, "big"))
    reply = s.recv(10)
    if reply[1]: raise OSError(reply)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return good(rest(s))
def name(text): return bytes([len(text)]) + text.encode()
def v6(text): return socket.inet_pton(socket.AF_INET6, text)
"#;

const HOSTS: &str = "127.0.0.2 allowed.test\n\
    127.0.0.1 localhost mine.allowed.test allowed.test.evil.test notallowed.test\n\
    ::1 six.allowed.test\n\
    169.254.169.254 metadata.allowed.test\n\
    10.255.255.1 private.allowed.test\n\
    0.0.0.0 zero.allowed.test\n";

/// Without the proxy there is nobody to be reached.
const AROUND: &[Attempt] = &[
    py("the host's loopback", "socket.create_connection(('127.0.0.1', P), 5)"),
    py("the host of the list itself", "socket.create_connection(('127.0.0.2', P), 5)"),
    py("the host's loopback by IPv6", "socket.create_connection(('::1', P), 5)"),
    py("any address", "socket.create_connection(('0.0.0.0', P), 5)"),
    py("the metadata address", "socket.create_connection(('169.254.169.254', 80), 5)"),
    py("the internet", "socket.create_connection(('192.0.2.1', 80), 5)"),
    py("a name server", "socket.socket(2, 2).sendto(b'x', ('192.0.2.53', 53))"),
    py(
        "a name server of the host's",
        "s = socket.socket(2, 2)\ns.connect(('127.0.0.53', 53))\ns.settimeout(5)\ns.send(b'x')\ns.recv(1)",
    ),
    py("a name", "socket.getaddrinfo('allowed.test', 80)"),
    py("a multicast", "socket.socket(2, 2).sendto(b'x', ('224.0.0.251', 5353))"),
    py("a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    py("a packet socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)"),
    py("a socket of another kind", "socket.socket(40, socket.SOCK_STREAM)"),
    sh("another interface", "ip link add dummy0 type dummy"),
    sh("a way through the loopback", "ip route add default dev lo"),
    py(
        "the proxy's port, shared",
        "s = socket.socket()\ns.setsockopt(1, 15, 1)\ns.bind(('127.0.0.1', 3128))",
    ),
];

/// Names and addresses that are not on the list, however they are written.
const NAMES: &[Attempt] = &[
    py("localhost", "get('localhost:PORT')"),
    py("an address", "get('127.0.0.1:PORT')"),
    py("an address in decimal", "get('2130706433:PORT')"),
    py("an address in hexadecimal", "get('0x7f000001:PORT')"),
    py("an address in hexadecimal parts", "get('0x7f.0x0.0x0.0x1:PORT')"),
    py("an address in octal", "get('0177.0.0.1:PORT')"),
    py("a short address", "get('127.1:PORT')"),
    py("an address with a dot", "get('127.0.0.1.:PORT')"),
    py("an address of the whole loopback", "get('127.0.0.3:PORT')"),
    py("no address", "get('0.0.0.0:PORT')"),
    py("zero", "get('0:PORT')"),
    py("IPv6", "get('[::1]:PORT')"),
    py("IPv4 in IPv6", "get('[::ffff:127.0.0.1]:PORT')"),
    py("IPv4 in IPv6 in hexadecimal", "get('[::ffff:7f00:1]:PORT')"),
    py("IPv4 compatible IPv6", "get('[::127.0.0.1]:PORT')"),
    py("no IPv6 address", "get('[::]:PORT')"),
    py("the metadata address", "get('169.254.169.254')"),
    py("a name that ends with one of the list", "get('notallowed.test:PORT')"),
    py("a name that begins with one of the list", "get('allowed.test.evil.test:PORT')"),
    py("a name in percent", "get('%6cocalhost:PORT')"),
    py("a name with a zero", "get('localhost\\0.allowed.test:PORT')"),
    py("a user before the host", "get('allowed.test:PORT@127.0.0.1:PORT')"),
    py("a host before the fragment", "get('127.0.0.1:PORT#@allowed.test')"),
    py("a backslash", "get('127.0.0.1:PORT\\\\@allowed.test')"),
];

/// Names of the list that stand for what is not.
const REBOUND: &[Attempt] = &[
    py("a name for the loopback", "get('mine.allowed.test:PORT')"),
    py("the same by CONNECT", "connect('mine.allowed.test:PORT')"),
    py("the same by SOCKS", "socks(3, name('mine.allowed.test'))"),
    py("a name for the loopback of IPv6", "get('six.allowed.test:PORT')"),
    py("a name for the metadata address", "get('metadata.allowed.test')"),
    py("a name for a private address", "get('private.allowed.test:PORT')"),
    py("a name for no address", "get('zero.allowed.test:PORT')"),
    py(
        "a redirect",
        "urllib.request.urlopen('http://allowed.test:%d/to?http://127.0.0.1:%d/' % (P, P))",
    ),
    py(
        "a redirect to a name",
        "urllib.request.urlopen('http://allowed.test:%d/to?http://mine.allowed.test:%d/' % (P, P))",
    ),
];

/// What a proxy and a server could read in two ways.
const REQUESTS: &[Attempt] = &[
    py("another Host header", "get('allowed.test:PORT', 'Host: localhost:PORT\\n')"),
    py("a Host header with another port", "get('allowed.test:PORT', 'Host: allowed.test:1\\n')"),
    py("two Host headers", "get('allowed.test:PORT', 'Host: allowed.test:PORT\\nHost: x\\n')"),
    py(
        "a Host header over two lines",
        "get('allowed.test:PORT', 'Host: allowed.test:PORT\\n x\\n')",
    ),
    py("a Host header with a space", "get('allowed.test:PORT', 'Host : x\\n')"),
    py(
        "a Host header of the list, for another",
        "get('127.0.0.1:PORT', 'Host: allowed.test:PORT\\n')",
    ),
    py("a path instead of a URL", "ask('GET / HTTP/1.1\\nHost: allowed.test:PORT\\n\\n')"),
    py("two URLs", "ask('GET http://allowed.test:PORT/ http://127.0.0.1:PORT/ HTTP/1.1\\n\\n')"),
    py("another scheme", "ask('GET ftp://127.0.0.1:PORT/ HTTP/1.1\\n\\n')"),
    py(
        "two lengths",
        "ask('POST http://allowed.test:PORT/ HTTP/1.1\\nContent-Length: 1\\nTransfer-Encoding: chunked\\n\\nx')",
    ),
    py("no line's end", "ask('GET http://allowed.test:PORT/ HTTP/1.1\\nX: \\rHost: x\\n\\n')"),
    py(
        "a head without an end",
        "ask('GET http://allowed.test:PORT/ HTTP/1.1\\nX: ' + 'x' * 100000)",
    ),
    py("CONNECT to another port", "connect('allowed.test:22')"),
    py("CONNECT to the loopback", "connect('127.0.0.1:PORT')"),
    py(
        "CONNECT with a Host header of the list",
        "connect('127.0.0.1:PORT', 'Host: allowed.test:PORT\\n')",
    ),
    py("CONNECT without a port", "connect('allowed.test')"),
    py("CONNECT to an address in decimal", "connect('2130706433:PORT')"),
    py("SOCKS to an address", "socks(1, socket.inet_aton('127.0.0.1'))"),
    py("SOCKS to an IPv6 address", "socks(4, v6('::1'))"),
    py("SOCKS to IPv4 in IPv6", "socks(4, v6('::ffff:127.0.0.1'))"),
    py("SOCKS to an address as a name", "socks(3, name('127.0.0.1'))"),
    py("SOCKS to a number as a name", "socks(3, name('2130706433'))"),
    py("SOCKS to a name with a zero", "socks(3, name('localhost\\0allowed.test'))"),
    py("SOCKS to another port", "socks(3, name('allowed.test'), 22)"),
    py("SOCKS that listens", "socks(3, name('allowed.test'), command=2)"),
    py("SOCKS that sends packets", "socks(3, name('allowed.test'), command=3)"),
    py(
        "SOCKS 4",
        "s = dial()\ns.sendall(b'\\4\\1' + P.to_bytes(2, 'big') + bytes([127, 0, 0, 1, 0]))\nif s.recv(8)[1] != 90: raise OSError('refused')",
    ),
];

struct World {
    secret: Site,
    allowed: Site,
}

impl World {
    fn new() -> Self {
        let (allowed, secret) = Site::pair(["127.0.0.2", "127.0.0.1"], ["allowed\n", "secret\n"]);
        Self { secret, allowed }
    }

    fn session<'h>(&self, h: &'h Harness) -> Session<'h> {
        let port = self.allowed.port();
        let list = format!("allowed.test:{port},*.allowed.test,127.0.0.2:{port}");
        let s = h.session_among(
            &[("/etc/hosts", HOSTS)],
            &["--sandbox", "full-access", "--network", &list],
        );
        let helpers = format!("{}\n{CLIENTS}\nP = {port}", super::HELPERS);
        s.run_in("python", helpers).exits(0);
        // All of these ways lead somewhere.
        s.run_in(
            "python",
            "for got in get('allowed.test:PORT'), connect('127.0.0.2:PORT'), \
             socks(3, name('allowed.test')): print(got.splitlines()[-1])",
        )
        .prints("b'allowed'\nb'allowed'\nb'allowed'\n");
        s
    }
}

fn attempt_all(attempts: &[Attempt]) {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can give a machine other names");
    }
    for_everybody(|h| {
        let world = World::new();
        let s = world.session(h);
        all_fail(&s, attempts);
        assert_eq!(world.secret.seen(), Vec::<String>::new(), "nobody has come to the secret");
    });
}

#[test]
fn there_is_no_way_around_the_proxy() {
    attempt_all(AROUND);
}

#[test]
fn what_is_not_on_the_list_is_not_reached_by_any_name() {
    attempt_all(NAMES);
}

#[test]
fn names_of_the_list_do_not_lead_to_the_machine_itself() {
    attempt_all(REBOUND);
}

#[test]
fn requests_with_two_meanings_are_refused() {
    attempt_all(REQUESTS);
}

#[test]
fn a_second_request_on_a_connection_is_not_passed_on() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can give a machine other names");
    }
    let h = Harness::new(env!("CARGO_BIN_EXE_sessile"));
    let world = World::new();
    let s = world.session(&h);
    let before = world.allowed.seen().len();
    s.run_in(
        "python",
        "print(ask('GET http://allowed.test:PORT/ HTTP/1.1\\n\\n\
         GET /second HTTP/1.1\\nHost: other.test\\n\\n').count(b'200 OK'))\n\
         print(ask('POST http://allowed.test:PORT/ HTTP/1.1\\nContent-Length: 1\\n\\nx\
         GET /third HTTP/1.1\\nHost: other.test\\n\\n').count(b'200 OK'))",
    )
    .prints("1\n1\n");
    let seen = world.allowed.seen();
    assert_eq!(seen.len(), before + 2, "{seen:?}");
    assert!(!seen.concat().contains("other.test"), "{seen:?}");
}

#[test]
fn a_name_is_resolved_once_and_connected_to_as_it_was_checked() {
    let mine = Ipv4Addr::LOCALHOST;
    let Some(names) = NameServer::of(&[Ipv4Addr::new(127, 0, 0, 2), mine, mine]) else {
        return needs::not_permitted("only root can be a name server");
    };
    let h = Harness::new(env!("CARGO_BIN_EXE_sessile"));
    let world = World::new();
    let port = world.allowed.port();
    let list = format!("rebinding.test,127.0.0.2:{port}");
    let files = [("/etc/resolv.conf", names.configuration()), ("/etc/hosts", String::new())];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let s = h.session_among(&files, &["--sandbox", "full-access", "--network", &list]);
    let helpers = format!("{}\n{CLIENTS}\nP = {port}", super::HELPERS);
    s.run_in("python", helpers).exits(0);
    // Were it resolved once more to connect, it would be the machine itself.
    s.run_in("python", "print(get('rebinding.test:PORT').splitlines()[-1])").prints("b'allowed'\n");
    assert_eq!(names.asked(), 1);
    let again = s.run_in("python", "get('rebinding.test:PORT')").exits(1);
    let notes = again.json()["notes"].to_string();
    assert!(notes.contains("it is 127.0.0.1, the host's own loopback"), "{notes}");
    assert_eq!(world.secret.seen(), Vec::<String>::new());
}
