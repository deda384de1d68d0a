//! Traces. `cargo test -p sessile --features otlp --test all otlp` tries the
//! real thing.

use sessile_testkit::harness;

#[cfg(not(feature = "otlp"))]
#[test]
fn a_program_without_traces_says_how_to_build_one() {
    let h = harness!();
    let said = h.no_server(&["--otlp-endpoint", "http://127.0.0.1:4318"]);
    assert!(said.contains("--features otlp"), "{said}");
}

#[cfg(feature = "otlp")]
#[test]
fn requests_reach_the_collector_as_traces() {
    use std::io::{Read, Write};
    let h = harness!();
    let sink = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", sink.local_addr().expect("an address"));
    let server = h.server(&["--otlp-endpoint", &endpoint]);
    let token = server.token().to_owned();
    let id = server.session();
    let collector = std::thread::spawn(move || {
        let (mut stream, _) = sink.accept().expect("an exporter");
        stream.set_read_timeout(Some(sessile_testkit::PATIENCE)).expect("a socket");
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        let is_whole = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).to_lowercase();
            let size = text.split("content-length: ").nth(1).and_then(|t| t.split("\r\n").next());
            let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
            matches!((head, size), (Some(head), Some(size))
                if bytes.len() >= head + 4 + size.parse::<usize>().unwrap_or(0))
        };
        while !is_whole(&bytes) {
            let n = stream.read(&mut part).expect("more");
            assert!(n > 0, "it broke off");
            bytes.extend_from_slice(&part[..n]);
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    // What is left is sent when the server stops.
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    let sent = collector.join().expect("a trace");
    assert!(sent.starts_with("POST /v1/traces HTTP/1.1"), "{sent}");
    for part in ["sessile", "request", "/v1/sessions", "POST"] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
    assert!(!sent.contains(&token));
    drop(id);
}
