//! Long work shows progress at a terminal, and nothing in a pipe.

use sessile_testkit::{Tty, harness, until};
use std::process::Command;

const SIZE: (u16, u16) = (100, 10);

#[test]
fn a_run_that_takes_long_is_told_of_at_a_terminal() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go end");
    let text = "read -r _ <go; echo one; echo two >&2; read -r _ <end; echo three";
    let mut exec = h.tty(&["exec", s.id(), "--", text], SIZE);
    exec.shows("run 2, no output yet");
    let mut queued = h.tty(&["exec", s.id(), "--", "echo four"], SIZE);
    queued.shows("run 3 waits for its turn");
    let mut wait = h.tty(&["wait", s.id(), "2"], SIZE);
    std::fs::write(h.path("go"), "\n").unwrap();
    wait.shows("run 2, 8 B of output: two");
    exec.shows("two");
    std::fs::write(h.path("end"), "\n").unwrap();
    assert_eq!(exec.finish().0, Some(0));
    assert_eq!(exec.screen()[..4], ["one", "two", "three", ""]);
    assert_eq!(queued.finish().0, Some(0));
    assert_eq!(queued.screen()[..2], ["four", ""]);
    assert_eq!(wait.finish().0, Some(0));
    let screen = wait.screen();
    let answer = r#"{"stdout":"one\nthree\n","stderr":"two\n""#;
    assert!(screen[0].starts_with(answer), "{screen:?}");
    assert!(!screen.iter().any(|line| line.contains("of output")), "{screen:?}");
}

#[test]
fn what_is_over_soon_shows_nothing_else() {
    let h = harness!();
    let s = h.session();
    let (code, shown) = h.tty(&["exec", s.id(), "--", "echo hi"], SIZE).finish();
    assert_eq!((code, shown.as_str()), (Some(0), "hi\r\n"));
}

#[test]
fn nothing_is_shown_in_a_pipe_or_at_a_dumb_terminal() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go");
    let mut command = h.command(&["exec", s.id(), "--", "read -r _ <go; echo hi; false"]);
    command.env("TERM", "dumb");
    let mut dumb = Tty::spawn(command, SIZE);
    until("run 2", || (s.sessile("runs").json()[1]["phase"] == "running").then_some(()));
    let piped = h.begin(&["wait", s.id(), "2"], b"");
    // One that came last tells, so the others would have told by now.
    let mut seen = h.tty(&["wait", s.id(), "2"], SIZE);
    seen.shows("run 2, no output yet");
    std::fs::write(h.path("go"), "\n").unwrap();
    seen.finish();
    let (code, shown) = dumb.finish();
    assert_eq!(code, Some(1));
    assert!(shown.starts_with("hi\r\nrun 2: exit 1 after "), "{shown:?}");
    assert!(!shown.contains('\x1b') && shown.lines().count() == 2, "{shown:?}");
    assert_eq!(piped.finish().warns("").json()["stdout"], "hi\n");
}

#[test]
fn a_terminal_that_does_not_know_its_size_shows_it_too() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo end");
    let going = s.begin("echo >begun; read -r _ <end");
    h.wait_for_file("begun");
    let program = env!("CARGO_BIN_EXE_sessile");
    let script = format!("stty cols 0 rows 0; {program} exec {} -- true", s.id());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(h.root());
    command.env("SESSILE_SESSIONS_DIR", h.sessions_dir());
    let mut queued = Tty::spawn(command, SIZE);
    queued.shows("run 3 waits for its turn");
    std::fs::write(h.path("end"), "\n").unwrap();
    s.answer(going, "the run").exits(0);
    assert_eq!(queued.finish().0, Some(0));
}

#[test]
fn what_waits_for_a_run_says_what_it_does() {
    let h = harness!();
    let s = h.session_with(&["--auto", "3"]);
    s.run("mkfifo go");
    let going = s.begin("echo >begun; read -r _ <go");
    h.wait_for_file("begun");
    let mut waiting: Vec<Tty> = [
        (&["fork", s.id(), "--wait"][..], "forking "),
        (&["save", s.id(), "-o", "work.sessile", "--wait"], "saving to work.sessile"),
        (&["checkpoint", s.id(), "--wait"], "taking a checkpoint of "),
    ]
    .into_iter()
    .map(|(args, says)| {
        let mut tty = h.tty(args, SIZE);
        tty.shows(&format!("s {says}"));
        tty
    })
    .collect();
    std::fs::write(h.path("go"), "\n").unwrap();
    s.answer(going, "the run").exits(0);
    for tty in &mut waiting {
        assert_eq!(tty.finish().0, Some(0));
        let screen = tty.screen();
        assert!(screen[0].starts_with('{'), "{screen:?}");
    }
}

#[test]
fn input_that_waits_to_be_read_is_counted() {
    let h = harness!();
    let s = h.session();
    s.run("mkfifo go");
    let text = "read -r _ <go; cat >/dev/null; echo done";
    let run = s.run_with(&["--interactive", "--background", "--timeout", "0"], text).run();
    std::fs::write(h.path("large"), vec![b'x'; 20 << 20]).unwrap();
    // Its stdin is a file, its stderr a terminal.
    let script = format!("{} input {} {run} --eof <large", env!("CARGO_BIN_EXE_sessile"), s.id());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(h.root());
    command.env("SESSILE_SESSIONS_DIR", h.sessions_dir());
    let mut input = Tty::spawn(command, SIZE);
    input.shows(&format!(" MiB given to run {run}"));
    std::fs::write(h.path("go"), "\n").unwrap();
    assert_eq!(input.finish().0, Some(0));
    let screen = input.screen();
    assert!(screen[0].starts_with(&format!(r#"{{"run":{run},"unread":"#)), "{screen:?}");
}
