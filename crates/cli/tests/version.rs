//! A keeper of an earlier version, and what its clients get from it.

use sessile_protocol::{Answer, Call, Code, Exec, PROTOCOL, Reply, Request, RunNo, decode, encode};
use sessile_testkit::{harness, order, v1};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A reply as it is on the wire.
fn reply_to(session: &std::path::Path, request: Request) -> Reply {
    let mut socket = UnixStream::connect(session.join("keeper.sock")).unwrap();
    socket.write_all(&encode(&Call::new(7, request))).unwrap();
    let mut length = [0; 4];
    socket.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_le_bytes(length) as usize];
    socket.read_exact(&mut body).unwrap();
    decode(&body).unwrap()
}

#[test]
fn a_keeper_of_version_1_knows_nothing_of_what_came_later() {
    let h = harness!();
    let s = h.session();
    assert_eq!(reply_to(&s.dir(), Request::Status).v, PROTOCOL);
    let proxy = v1::Proxy::before(&s.dir());
    assert_eq!(reply_to(&s.dir(), Request::Status).v, 1);
    let mut link = s.link();
    let orders = Exec {
        key: Some("k".to_owned()),
        patience_ms: Some(0),
        interactive: true,
        ..order("cat; echo hi")
    };
    for run in [1, 2] {
        let done = link.complete(orders.clone());
        assert_eq!((done.run, &done.stdout.head[..]), (RunNo(run), &b"hi\n"[..]));
    }
    for request in [
        Request::Input { run: RunNo(1), bytes: Vec::new(), eof: true },
        Request::Signal { run: RunNo(1), signal: 1 },
    ] {
        let refusal = link.refusal(request);
        assert_eq!(refusal.code, Code::BadRequest);
        assert!(refusal.message.contains("does not know that request"), "{refusal}");
    }
    s.run("echo by the command line").prints("by the command line\n");
    drop(proxy);
    assert_eq!(reply_to(&s.dir(), Request::Status).v, PROTOCOL);
}

#[test]
fn it_is_gone_when_its_keeper_is() {
    let h = harness!();
    let s = h.session();
    let _proxy = v1::Proxy::before(&s.dir());
    let mut link = s.link();
    assert!(matches!(link.call(Request::Status), Ok(Answer::Status(_))));
    s.keeper().kill();
    link.wait_closed();
    sessile_testkit::until("the end of the proxy", || {
        UnixStream::connect(s.dir().join("keeper.sock")).is_err().then_some(())
    });
    s.run("echo $?").is_fresh();
    let ended = h.session();
    let _proxy = v1::Proxy::before(&ended.dir());
    ended.end();
    assert!(UnixStream::connect(ended.dir().join("keeper.sock")).is_err());
}
