//! What a session is called by, and sessions of other directories.

use sessile_testkit::{Harness, harness};

fn named(h: &Harness, name: &str) -> String {
    let started = h.sessile(&["start", "--name", name]).json();
    started["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_session_answers_to_its_name_the_beginning_of_its_id_and_last() {
    let h = harness!();
    let (web, other) = (named(&h, "web"), named(&h, "other"));
    h.sessile(&["exec", "web", "--raw", "--", "x=1"]).exits(0);
    h.sessile(&["exec", &web[..17], "--raw", "--", "echo $x"]).exits(0).prints("1\n");
    h.sessile(&["exec", &web["sess_".len()..17], "--raw", "--", "echo $x"]).prints("1\n");
    h.sessile(&["exec", "other", "--raw", "--", "x=2"]).exits(0);
    h.sessile(&["exec", "@last", "--raw", "--", "echo $x"]).exits(0).prints("2\n");
    let unknown = h.sessile(&["exec", "nobody", "--", ":"]).exits(1).errors();
    assert!(unknown.contains("Session nobody not found"), "{unknown}");
    assert_eq!(h.sessile(&["end", "other"]).json()["session_id"], other.as_str());
    let ended = h.sessile(&["exec", "other", "--", ":"]).exits(1).errors();
    assert!(ended.contains("was ended by request"), "{ended}");
}

#[test]
fn a_name_has_one_live_session() {
    let h = harness!();
    let first = named(&h, "web");
    let taken = h.sessile(&["start", "--name", "web"]).exits(1).errors();
    assert!(taken.contains(&first) && taken.contains("already"), "{taken}");
    let bad = h.sessile(&["start", "--name", "sess_web"]).exits(1).errors();
    assert!(bad.contains("cannot be a session's name"), "{bad}");
    assert_eq!(h.list().len(), 1, "nothing was started");
    h.sessile(&["end", "web"]).exits(0);
    let second = named(&h, "web");
    assert_ne!(first, second);
    assert_eq!(h.sessile(&["end", "web"]).json()["session_id"], second.as_str());
}

#[test]
fn of_forks_that_ask_for_one_name_at_once_one_gets_it() {
    let h = harness!();
    let s = h.session();
    let clients: Vec<_> =
        (0..4).map(|_| h.begin(&["fork", s.id(), "--name", "try"], b"")).collect();
    let outputs: Vec<_> = clients.into_iter().map(sessile_testkit::Client::finish).collect();
    let refused: Vec<String> =
        outputs.iter().map(|output| output.errors()).filter(|told| !told.is_empty()).collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|told| told.contains("is called \"try\" already")), "{refused:?}");
    // Several have a number each, and none is made if one of them is taken.
    h.sessile(&["fork", s.id(), "--name", "try", "--count", "2"]).exits(0);
    h.sessile(&["exec", "try-2", "--raw", "--", "echo two"]).prints("two\n");
    let before = h.list().len();
    let told = h.sessile(&["fork", s.id(), "--name", "try", "--count", "3"]).exits(1).errors();
    assert!(told.contains("try-"), "{told}");
    assert_eq!(h.list().len(), before);
}

#[test]
fn sessions_of_all_directories_are_listed_and_ended() {
    let h = harness!();
    let here = named(&h, "here");
    let elsewhere = |args: &[&str]| {
        let mut command = h.command(args);
        command.env("SESSILE_SESSIONS_DIR", h.path("elsewhere"));
        command.output().expect("sessile")
    };
    assert!(elsewhere(&["start", "--name", "there"]).status.success());
    let ids = |args: &[&str]| -> Vec<String> {
        let listed = h.sessile(args).json();
        let rows = listed.as_array().expect("a list");
        rows.iter().map(|row| row["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(ids(&["list"]), ["here"]);
    assert!(elsewhere(&["fork", "there", "--name", "a fork"]).status.success());
    let mut all = ids(&["list", "--all"]);
    all.sort();
    assert_eq!(all, ["a fork", "here", "there"]);
    let ended = h.sessile(&["end", "--all-dirs"]).json();
    assert_eq!(ended["session_ids"].as_array().map(Vec::len), Some(3), "{ended}");
    assert_eq!(ids(&["list", "--all"]), ["here"], "ended ones of this directory only");
    assert_eq!(h.list()[0]["session_id"], here.as_str());
}

#[test]
fn a_session_whose_directory_was_moved_goes_on_where_it_is() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    let moved = h.path("moved");
    std::fs::rename(h.sessions_dir(), &moved).unwrap();
    let there = |args: &[&str]| {
        let mut command = h.command(args);
        command.env("SESSILE_SESSIONS_DIR", &moved);
        let output = command.output().expect("sessile");
        String::from_utf8(output.stdout).expect("text")
    };
    // Whoever looks first: nobody has spoken with its keeper since.
    let listed = h.sessile(&["list", "--all"]).json();
    assert_eq!(listed[0]["session_id"], s.id(), "{listed}");
    let answer = there(&["exec", s.id(), "--", "echo $x; seq 20000"]);
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("an answer");
    assert_eq!(answer["exit_code"], 0);
    assert!(answer["notes"].is_null(), "the disk refused nothing: {}", answer["notes"]);
    assert!(there(&["output", s.id(), "2", "--follow"]).starts_with("1\n1\n2\n"));
    assert!(there(&["history", s.id(), "--json"]).contains("seq 20000"));
    let ended = h.sessile(&["end", "--all-dirs"]).json();
    assert_eq!(ended["session_ids"][0], s.id(), "{ended}");
    assert!(there(&["list", "--json"]).contains("\"terminated\""));
}
