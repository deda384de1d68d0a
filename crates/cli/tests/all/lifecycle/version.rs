//! A client of another version than the session's keeper.

use sessile_protocol::{Answer, Call, Code, PROTOCOL, Reply, Request, decode, encode};
use sessile_testkit::{harness, order};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A reply as it is on the wire.
fn reply_to(session: &std::path::Path, v: u16, request: Request) -> Reply {
    let mut socket = UnixStream::connect(session.join("keeper.sock")).unwrap();
    socket.write_all(&encode(&Call { v, ..Call::new(7, request) })).unwrap();
    let mut length = [0; 4];
    socket.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_le_bytes(length) as usize];
    socket.read_exact(&mut body).unwrap();
    decode(&body).unwrap()
}

#[test]
fn a_newer_client_is_refused_in_plain_words_and_can_end_the_session() {
    let h = harness!();
    let s = h.session();
    let keeper = s.keeper();
    let ask = |v: u16, request: Request| {
        let reply = reply_to(&s.dir(), v, request);
        assert_eq!((reply.v, reply.id), (PROTOCOL, 7));
        reply.outcome
    };
    assert!(matches!(ask(PROTOCOL, Request::Exec(order("x=1"))), Ok(Answer::Completed(_))));
    let refusal = ask(PROTOCOL + 1, Request::Exec(order("x=2"))).unwrap_err();
    assert_eq!(refusal.code, Code::VersionMismatch);
    assert!(refusal.message.contains("older than its client"), "{refusal}");
    s.run("echo $x").prints("1\n");
    assert!(matches!(ask(PROTOCOL + 1, Request::Status), Ok(Answer::Status(_))));
    assert!(ask(PROTOCOL + 1, Request::End).is_ok());
    keeper.wait_gone();
}
