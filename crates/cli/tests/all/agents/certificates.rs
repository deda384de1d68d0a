//! Models over TLS, and a workspace that is gone.

use super::{KEY, agent, begin, ended, exec, harness, serve, text};
use serde_json::json;
use sessile_testkit::{Format, Harness, ModelServer};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Speaks TLS in front of a model, with a certificate that nobody has signed; its PEM.
fn in_front_of(model: &ModelServer, name: &str) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (address, behind) = (listener.local_addr().unwrap(), model.address());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.ok()?;
                    let mut plain = tokio::net::TcpStream::connect(behind).await.ok()?;
                    tokio::io::copy_bidirectional(&mut stream, &mut plain).await.ok()
                });
            }
        });
    });
    (address, made.cert.pem())
}

/// A server that reaches its model there.
fn serve_at(
    h: &Harness,
    model: &ModelServer,
    address: SocketAddr,
    ca: Option<&str>,
) -> sessile_testkit::Server {
    std::fs::write(h.path("model.key"), format!("{KEY}\n")).unwrap();
    let plain = format!("http://{}", model.address());
    let secure = format!("https://127.0.0.1:{}", address.port());
    let mut configuration = model.configuration().replace(&plain, &secure);
    if let Some(ca) = ca {
        std::fs::write(h.path("ca.pem"), ca).unwrap();
        configuration.push_str("ca-file = \"ca.pem\"\n");
    }
    std::fs::write(h.path("conf.toml"), configuration).unwrap();
    h.server(&["--config", "conf.toml"])
}

#[test]
fn a_model_is_reached_over_tls_by_the_certificate_that_is_configured() {
    let model = ModelServer::start(Format::Chat, vec![exec("echo hi"), text("said")]);
    let (address, ca) = in_front_of(&model, "127.0.0.1");
    let h = harness();
    let server = serve_at(&h, &model, address, Some(&ca));
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "say hi");
    assert_eq!(ended(&server, &id, task)["output"], "said");
    let key = &model.requests()[0].headers["authorization"];
    assert_eq!(*key, format!("Bearer {KEY}"));
}

#[test]
fn a_model_with_a_wrong_certificate_gets_no_key_and_is_told_at_once() {
    let model = ModelServer::start(Format::Chat, vec![text("said")]);
    let (address, _) = in_front_of(&model, "127.0.0.1");
    let (_, other) = in_front_of(&model, "elsewhere.example");
    for ca in [None, Some(other.as_str())] {
        let h = harness();
        let server = serve_at(&h, &model, address, ca);
        let id = agent(&server, &json!({}));
        let task = begin(&server, &id, "say hi");
        let view = ended(&server, &id, task);
        assert_eq!(view["failure"]["fault"], "bad_certificate", "{view}");
        let message = view["failure"]["message"].as_str().unwrap();
        assert!(message.contains("ca-file"), "{message}");
        assert!(model.requests().is_empty());
    }
}

#[test]
fn a_key_that_is_missing_or_wrong_is_told_and_nothing_is_lost() {
    let refusal = json!({ "error": { "message": "no such key", "type": "authentication_error" } });
    let trouble =
        std::collections::BTreeMap::from([(1, sessile_testkit::Trouble::Status(401, refusal))]);
    let model = ModelServer::with_trouble(Format::Chat, vec![text("here")], trouble);
    let h = harness();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({}));
    let task = begin(&server, &id, "work");
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "bad_key", "{view}");
    std::fs::remove_file(h.path("model.key")).unwrap();
    let task = begin(&server, &id, "work");
    let view = ended(&server, &id, task);
    assert_eq!(view["failure"]["fault"], "bad_key", "{view}");
    let message = view["failure"]["message"].as_str().unwrap();
    assert!(message.contains("the key is missing") && message.contains("model.key"), "{message}");
    std::fs::write(h.path("model.key"), KEY).unwrap();
    let task = begin(&server, &id, "work");
    assert_eq!(ended(&server, &id, task)["output"], "here");
}

#[test]
fn a_workspace_that_is_gone_is_told_to_the_model_and_the_thread_stays() {
    let read = super::call("read_file", json!({ "path": "a.txt" }));
    let script = vec![read, super::exec("echo on"), text("it is gone")];
    let model = ModelServer::start(Format::Chat, script);
    let h = harness();
    std::fs::create_dir(h.path("project")).unwrap();
    let server = serve(&h, &model);
    let id = agent(&server, &json!({ "workspace": h.path("project") }));
    std::fs::remove_dir_all(h.path("project")).unwrap();
    let task = begin(&server, &id, "read");
    assert_eq!(ended(&server, &id, task)["output"], "it is gone");
    let outcome = &super::entries(&h, &id, "outcome")[0];
    assert!(
        outcome["text"].as_str().unwrap().contains("the workspace cannot be opened"),
        "{outcome}"
    );
    let outcome = &super::entries(&h, &id, "outcome")[1];
    let told = outcome["text"].as_str().unwrap();
    let gone = format!("(the workspace {} is gone)", h.path("project").display());
    assert!(told.contains("on\n") && told.ends_with(&gone), "{told}");
    let refused = server.post("/v1/agents", &json!({ "workspace": h.path("project") }));
    let _ = refused.is_refused(400, "bad_directory");
}
