//! Sessions as files, as a model does it.

use super::peer::Peer;
use super::{exact, gated, text};
use serde_json::{Value, json};
use sessile_testkit::harness;

fn start(peer: &mut Peer, arguments: &Value) -> Value {
    exact(&peer.call("session_start", arguments))["session_id"].clone()
}

fn exec(peer: &mut Peer, id: &Value, command: &str) -> String {
    let done = peer.call("session_exec", &json!({"session_id": id, "command": command}));
    exact(&done)["stdout"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_model_saves_a_session_and_goes_on_from_the_file() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let id = start(&mut peer, &json!({}));
    exec(&mut peer, &id, "x=41");
    let saved = peer.call("session_save", &json!({"session_id": id, "path": "work.sessile"}));
    assert!(text(&saved).starts_with("saved with the state after run 1 to "), "{saved}");
    assert_eq!(exact(&saved)["path"], json!(h.path("work.sessile")), "{saved}");
    exec(&mut peer, &id, "x=0");
    let restored = peer.call("session_restore", &json!({"path": "work.sessile", "name": "b"}));
    let again = exact(&restored)["session_id"].clone();
    assert!(text(&restored).starts_with(again.as_str().expect("an id")), "{restored}");
    assert_eq!(exact(&restored)["restored_from"], id);
    assert_eq!(exec(&mut peer, &again, "echo $x"), "41\n");
    peer.close();
}

#[test]
fn files_and_what_is_left_are_told() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    std::fs::create_dir(h.path("project")).expect("a directory");
    std::fs::write(h.path("project/notes"), "n").expect("a file");
    let id = start(&mut peer, &json!({"shell": "python3", "cwd": "project"}));
    exec(&mut peer, &id, "import socket; s = socket.socket()");
    let save = json!({"session_id": id, "path": "work.sessile", "files": true});
    let saved = peer.call("session_save", &save);
    assert!(text(&saved).contains("and 1 files\nnot in it:\n- python s: a socket"), "{saved}");
    let restored = peer.call("session_restore", &json!({"path": "work.sessile", "cwd": "copy"}));
    assert!(text(&restored).contains("1 files are there again"), "{restored}");
    assert!(text(&restored).contains("not carried:\n- python s: a socket"), "{restored}");
    assert_eq!(std::fs::read_to_string(h.path("copy/notes")).expect("a file"), "n");
    let same = peer.call("session_restore", &json!({"path": "work.sessile"}));
    assert!(text(&same).contains("stay in the file: give cwd"), "{same}");
    peer.close();
}

#[test]
fn a_file_from_elsewhere_or_a_damaged_one_is_refused_in_words() {
    let (here, there) = (harness!(), harness!());
    let mut peer = Peer::start(&there, &["--tools", "sessions"]);
    let id = start(&mut peer, &json!({}));
    exec(&mut peer, &id, "x=1");
    let _ = peer.call("session_save", &json!({"session_id": id, "path": here.path("file")}));
    peer.close();
    let mut peer = Peer::start(&here, &["--tools", "sessions"]);
    let refused = peer.call("session_restore", &json!({"path": "file"}));
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("ask with trust if you trust whoever made it"), "{refused}");
    let restored = peer.call("session_restore", &json!({"path": "file", "trust": true}));
    let again = exact(&restored)["session_id"].clone();
    assert_eq!(exec(&mut peer, &again, "echo $x"), "1\n");
    std::fs::write(here.path("broken"), "no").expect("a file");
    let refused = peer.call("session_restore", &json!({"path": "broken", "trust": true}));
    assert_eq!(refused["isError"], true);
    let refused = peer.call("session_restore", &json!({"path": "nothing"}));
    assert!(text(&refused).contains("nothing is not a file"), "{refused}");
    peer.close();
}

#[test]
fn a_run_that_is_going_is_told_and_waited_for_only_so_long() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let id = start(&mut peer, &json!({}));
    let begun = json!({"session_id": id, "command": gated("gate"), "wait_ms": 0});
    let _ = peer.call("session_exec", &begun);
    h.wait_for_file("gate.begun");
    let mut save = json!({"session_id": id, "path": "file"});
    let refused = peer.call("session_save", &save);
    assert!(text(&refused).contains("a run is going"), "{refused}");
    save["wait"] = true.into();
    let waiting = peer.begin("session_save", &save);
    save["wait_ms"] = 50.into();
    save["path"] = "other".into();
    let impatient = peer.call("session_save", &save);
    assert!(text(&impatient).contains("still going"), "{impatient}");
    std::fs::write(h.path("gate"), "").expect("a gate");
    assert!(text(&peer.result(waiting)).contains("after run 1"));
    assert!(h.path("file").exists() && !h.path("other").exists());
    peer.close();
}

#[test]
fn a_durable_session_is_started_by_a_model() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let id = start(&mut peer, &json!({"durable": true}));
    let id = id.as_str().expect("an id");
    let metadata = std::fs::read(h.sessions_dir().join(id).join("metadata.json"));
    let metadata: Value = serde_json::from_slice(&metadata.expect("a file")).expect("JSON");
    assert!(metadata["durable"].is_object(), "{metadata}");
    let refused = peer.call("session_start", &json!({"durable": "yes"}));
    assert!(text(&refused).contains("durable must be true or false"), "{refused}");
    peer.close();
}
