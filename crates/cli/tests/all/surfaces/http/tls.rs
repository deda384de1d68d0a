//! HTTPS from a certificate and its key.

use sessile_testkit::http::connect;
use sessile_testkit::{Harness, harness};
use std::io::Read;
use std::process::Command;

/// A certificate for this machine that nobody has signed.
fn certificate(h: &Harness, name: &str) -> (String, String) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let path = |ending: &str| h.path(&format!("{name}.{ending}")).to_string_lossy().into_owned();
    let (cert, key) = (path("pem"), path("key"));
    std::fs::write(&cert, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    (cert, key)
}

fn curl(args: &[&str]) -> (bool, String) {
    let output = Command::new("curl").args(["-sS", "--max-time", "40"]).args(args).output();
    let output = output.expect("curl");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_server_with_a_certificate_speaks_only_tls() {
    let h = harness!();
    let (cert, key) = certificate(&h, "a");
    let server = h.server(&["--tls-cert", &cert, "--tls-key", &key]);
    let url = format!("https://{}/healthz", server.address);
    let (is_ok, text) = curl(&["--cacert", &cert, &url]);
    assert!(is_ok && text.contains("\"status\":\"ok\""), "{text}");
    assert!(!curl(&[&url]).0, "an unknown certificate");
    assert!(!curl(&[&url.replace("https", "http")]).0, "plain text");
    assert!(!curl(&["--cacert", &cert, "--tls-max", "1.1", &url]).0, "an old version");
    assert!(server.greeting.contains(&format!("Sessile is at https://{}", server.address)));
    let listed = h.sessile(&["api", "GET", "/v1/sessions"]).json();
    assert_eq!(listed["sessions"], serde_json::json!([]));
}

#[test]
fn the_command_line_knows_the_server_by_its_certificate() {
    let h = harness!();
    let (cert, key) = certificate(&h, "a");
    let server = h.server(&["--tls-cert", &cert, "--tls-key", &key]);
    let (other, _) = certificate(&h, "b");
    std::fs::copy(other, &cert).expect("another certificate");
    let said = h.sessile(&["api", "GET", "/v1/sessions"]).exits(1).errors();
    assert!(said.contains("not the one that was expected"), "{said}");
    drop(server);
}

#[test]
fn a_handshake_that_does_not_come_delays_nobody_and_ends() {
    let h = harness!();
    let (cert, key) = certificate(&h, "a");
    let server = h.server(&["--tls-cert", &cert, "--tls-key", &key, "--request-timeout", "500ms"]);
    let mut silent: Vec<_> = (0..20).map(|_| connect(server.address)).collect();
    let url = format!("https://{}/healthz", server.address);
    assert!(curl(&["--cacert", &cert, &url]).0);
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "closed by the server");
    }
}

#[test]
fn files_that_cannot_be_used_are_told() {
    let h = harness!();
    let (cert, key) = certificate(&h, "a");
    let (_, other) = certificate(&h, "b");
    let start = |cert: &str, key: &str| {
        h.no_server(&["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key])
    };
    for (cert, key, said) in [
        (key.as_str(), key.as_str(), "has no certificate in it"),
        (&cert, &cert, "cannot read a private key"),
        ("/nowhere.pem", &key, "cannot read a certificate from /nowhere.pem"),
        (&cert, &other, "cannot be used"),
    ] {
        let found = start(cert, key);
        assert!(found.contains(said), "{found}");
    }
}
