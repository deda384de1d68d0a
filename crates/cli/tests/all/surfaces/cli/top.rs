//! `sessile top`: at a terminal, and in a pipe.

use rustix::process::Signal;
use serde_json::Value;
use sessile_testkit::harness;

const SIZE: (u16, u16) = (140, 20);

fn row<'a>(lines: &'a [String], id: &str) -> Option<&'a String> {
    lines.iter().find(|line| line.contains(id))
}

#[test]
fn sessions_and_what_they_run_are_on_the_screen() {
    let h = harness!();
    let (busy, idle) = (h.session(), h.session());
    let kernel = format!("bash:{}", busy.kernel().pid());
    busy.run_with(&["--background"], "while :; do :; done # spins");
    busy.run_with(&["--background"], "echo queued");
    let mut top = h.tty(&["top", "--interval", "100ms"], SIZE);
    let lines = top.until("two sessions", |lines| {
        row(lines, busy.id()).is_some_and(|line| line.contains("while :; do :; done # spins"))
            && row(lines, idle.id()).is_some_and(|line| line.contains("idle for"))
    });
    assert!(lines[0].starts_with("sessile top: 2 sessions, 1 busy"), "{lines:?}");
    assert!(lines[1].starts_with("SESSION"), "{lines:?}");
    top.until("the foot", |lines| lines[19].starts_with("q quit"));
    // The busy one comes first, once that is known.
    let lines = top.until("the busy one on top", |lines| lines[2].contains(busy.id()));
    assert!(lines[2].contains(" busy ") && lines[2].contains(&kernel), "{lines:?}");
    // It is interrupted from here, once that was confirmed.
    top.press("i");
    top.shows(&format!("interrupt what {} runs? y/n", busy.id()));
    top.press("n");
    top.shows("q quit");
    top.press("i");
    top.shows("y/n");
    top.press("y");
    top.until("no more runs", |lines| !lines.iter().any(|line| line.contains("spins")));
    // A session's end is seen; the other stays.
    idle.end();
    top.until("one session", |lines| row(lines, idle.id()).is_none());
    top.press("a");
    top.until("the ended one", |lines| row(lines, idle.id()).is_some_and(|l| l.contains("ended")));
    assert!(!top.is_restored());
    top.press("q");
    assert_eq!(top.finish().0, Some(0));
    assert!(top.is_restored());
    busy.run("echo unharmed").prints("unharmed\n").is_kept();
}

#[test]
fn the_terminal_is_put_back_on_signals_too() {
    let h = harness!();
    let s = h.session();
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut top = h.tty(&["top"], SIZE);
        top.shows(s.id());
        top.process().signal(signal);
        assert_eq!(top.finish().0, Some(code));
        assert!(top.is_restored());
    }
    let mut top = h.tty(&["top"], SIZE);
    top.shows(s.id());
    top.press("\x03");
    assert_eq!(top.finish().0, Some(0));
    assert!(top.is_restored());
}

#[test]
fn it_fits_into_any_size_and_the_selected_session_is_always_seen() {
    let h = harness!();
    let sessions: Vec<_> = (0..6).map(|_| h.session()).collect();
    let mut top = h.tty(&["top", "--interval", "100ms"], SIZE);
    top.until("all of them", |lines| sessions.iter().all(|s| row(lines, s.id()).is_some()));
    top.press("n");
    top.resize(40, 6);
    // Newest first, and two of them have room.
    let newest = sessions.last().unwrap();
    let oldest = sessions.first().unwrap();
    top.until("a small screen", |lines| {
        lines.len() == 6 && lines[5].starts_with("q quit") && lines[2].contains(newest.id())
    });
    top.press("jj\x1b[B\x1bOBj");
    let lines = top.shows(oldest.id());
    assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:?}");
    top.press("kkkkk");
    top.shows(newest.id());
    top.press("q");
    assert_eq!(top.finish().0, Some(0));
}

#[test]
fn a_keeper_that_is_stopped_is_shown_and_not_waited_for() {
    let h = harness!();
    let (stopped, well) = (h.session(), h.session());
    let keeper = stopped.keeper();
    let mut top = h.tty(&["top", "--interval", "100ms"], SIZE);
    top.shows(stopped.id());
    keeper.signal(Signal::STOP);
    top.until("that it is silent", |lines| {
        row(lines, stopped.id()).is_some_and(|line| line.contains("silent"))
    });
    well.run_with(&["--background"], "sleep 1000");
    top.shows("sleep 1000");
    let rows = h.sessile(&["top"]).json();
    let states: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["busy", "silent"]);
    keeper.signal(Signal::CONT);
    top.until("that it is back", |lines| {
        row(lines, stopped.id()).is_some_and(|line| line.contains("idle for"))
    });
    // One that is killed is gone from the list, and the rest goes on.
    keeper.kill().wait_gone();
    top.until("that it is gone", |lines| row(lines, stopped.id()).is_none());
    top.press("q");
    assert_eq!(top.finish().0, Some(0));
}

#[test]
fn in_a_pipe_it_is_one_look_as_json() {
    let h = harness!();
    assert_eq!(h.sessile(&["top"]).json(), Value::Array(Vec::new()));
    let s = h.session();
    let asks = s.run_with(&["--interactive", "--timeout", "0"], "read -r x # asks");
    s.run_in("python", "1");
    let rows = h.sessile(&["top"]).exits(0).json();
    let row = &rows[0];
    assert_eq!((&row["session_id"], &row["state"]), (&s.id().into(), &"busy".into()));
    assert_eq!(row["running"][0]["run"], asks.run());
    assert_eq!(row["running"][0]["waiting_for_input"], true);
    assert_eq!(row["kernels"].as_array().unwrap().len(), 2);
    assert_eq!(row["keeper_pid"], s.keeper().pid());
    assert!(row["memory_bytes"].as_u64().unwrap() > 1_000_000 && row["cpu_percent"].is_f64());
    assert!(row["idle_ms"].is_null() && row["processes"].as_u64().unwrap() >= 3);
    let table = h.at_a_terminal(&["top", "--once"]);
    assert!(table.starts_with("SESSION") && table.contains("(waits for input)"), "{table}");
    assert!(!table.contains('\x1b'));
}
