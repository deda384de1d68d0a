//! What is known of runs when nobody is left to remember them.

use sessile_protocol::{Answer, Code, Exec, ReadOutput, Request, RunNo, RunPhase, Until};
use sessile_store::{Absence, Directory};
use sessile_testkit::{Harness, Link, Session, completed, harness, order};

fn keyed(key: &str, text: &str) -> Exec {
    Exec { key: Some(key.to_owned()), ..order(text) }
}

fn fifo(h: &Harness, name: &str) {
    let status = std::process::Command::new("mkfifo").arg(h.path(name)).status().unwrap();
    assert!(status.success());
}

fn open(h: &Harness, name: &str) {
    std::fs::File::options().write(true).open(h.path(name)).unwrap();
}

fn directory(session: &Session<'_>) -> Directory {
    Directory::at(session.dir())
}

/// Kills the keeper, and has the next client bring the session back.
fn revive(session: &Session<'_>) -> Link {
    session.keeper().kill();
    session.keeper().wait_gone();
    session.run(":");
    session.link()
}

#[test]
fn an_order_with_the_key_of_an_earlier_one_is_answered_with_its_run() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let first = link.complete(keyed("a", "echo x | tee -a log; echo err >&2; (exit 3)"));
    assert!(!first.repeated);
    let again = link.complete(keyed("a", "echo x | tee -a log; echo err >&2; (exit 3)"));
    assert!(again.repeated);
    assert_eq!(sessile_protocol::Completed { repeated: false, ..again }, first);
    // Once it is only on disk, too.
    link.complete(Exec { until: Until::Recorded, ..order("other") });
    let later = link.complete(keyed("a", "echo x | tee -a log; echo err >&2; (exit 3)"));
    assert_eq!(sessile_protocol::Completed { repeated: false, ..later }, first);
    let accepted = Exec {
        until: Until::Accepted,
        ..keyed("a", "echo x | tee -a log; echo err >&2; (exit 3)")
    };
    assert_eq!(link.accept(accepted), first.run);
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "x\n");
    for other in [
        keyed("a", "echo y"),
        Exec {
            stdin: Some(Vec::new().into()),
            ..keyed("a", "echo x | tee -a log; echo err >&2; (exit 3)")
        },
    ] {
        let refusal = link.refusal(Request::Exec(other));
        assert_eq!(refusal.code, Code::KeyReused, "{refusal}");
    }
    for key in ["", "ä", "a\nb", &"x".repeat(256)] {
        assert_eq!(link.refusal(Request::Exec(keyed(key, ":"))).code, Code::BadRequest);
    }
    assert_eq!(link.complete(keyed(&"x".repeat(255), ":")).run, RunNo(3));
}

#[test]
fn a_repeated_order_waits_for_the_run_that_is_going() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let (mut one, mut other) = (s.link(), s.link());
    let first = one.send(Request::Exec(keyed("k", "cat gate; echo done")));
    one.call(Request::Status).unwrap();
    let again = other.send(Request::Exec(keyed("k", "cat gate; echo done")));
    let hasty = Exec { patience_ms: Some(0), ..keyed("k", "cat gate; echo done") };
    let run = other.accept(hasty);
    open(&h, "gate");
    let first = completed(one.reply(first));
    let again = completed(other.reply(again));
    assert_eq!((first.run, again.run, first.repeated, again.repeated), (run, run, false, true));
    assert_eq!(again.stdout.head, b"done\n");
}

#[test]
fn a_keyed_order_is_not_run_again_after_its_keeper_was_killed() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut link = s.link();
    let done = link.complete(keyed("done", "echo out; echo err >&2; echo done >>log"));
    let going = keyed("going", "echo going >>log; cat gate");
    let lost = link.accept(Exec { until: Until::Accepted, ..going.clone() });
    let queued = keyed("queued", "echo queued >>log");
    let waiting = link.accept(Exec { until: Until::Accepted, ..queued.clone() });
    h.wait_for_line("log");
    sessile_testkit::until("both lines", || {
        (std::fs::read_to_string(h.path("log")).ok()? == "done\ngoing\n").then_some(())
    });
    s.keeper().kill();
    s.keeper().wait_gone();
    assert_eq!(directory(&s).lost_runs(), [lost, waiting]);
    assert_eq!(directory(&s).absence(lost), Absence::Lost);
    assert_eq!(directory(&s).recorded_run(done.run, 1 << 20), Some(done.clone()));
    s.run(":").has("run", 4);
    let mut link = s.link();
    let again = link.complete(keyed("done", "echo out; echo err >&2; echo done >>log"));
    assert_eq!(again, sessile_protocol::Completed { repeated: true, ..done });
    for order in [going, queued] {
        let refusal = link.refusal(Request::Exec(order));
        assert_eq!(refusal.code, Code::RunLost);
        assert!(refusal.message.contains("new key"), "{refusal}");
    }
    let result =
        Request::Result { run: lost, max_output: 0, patience_ms: None, until_input: false };
    assert_eq!(link.refusal(result).code, Code::RunLost);
    assert_eq!(std::fs::read_to_string(h.path("log")).unwrap(), "done\ngoing\n");
    // A second death changes nothing of that.
    let mut link = revive(&s);
    let refusal = link.refusal(Request::Exec(keyed("queued", "echo queued >>log")));
    assert_eq!(refusal.code, Code::RunLost);
    assert_eq!(link.complete(order(":")).run, RunNo(6));
}

#[test]
fn a_reset_forgets_keys_and_numbers_go_on() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    assert_eq!(link.complete(keyed("k", "echo 1")).run, RunNo(1));
    link.call(Request::Reset).unwrap();
    assert!(!s.dir().join("keys.log").exists());
    let again = link.complete(keyed("k", "echo 2"));
    assert_eq!((again.run, again.repeated), (RunNo(2), false));
    link.call(Request::Reset).unwrap();
    let mut link = revive(&s);
    assert_eq!(directory(&s).lost_runs(), []);
    assert_eq!(link.complete(keyed("k", "echo 2")).run, RunNo(4));
}

#[test]
fn a_key_whose_run_was_dropped_or_cancelled_says_so() {
    let h = harness!();
    let s = h.session_with(&["--max-history", "4"]);
    fifo(&h, "gate");
    let mut link = s.link();
    link.complete(keyed("old", "echo old"));
    let blocks = link.accept(Exec { until: Until::Accepted, ..order("cat gate") });
    let cancelled = link.send(Request::Exec(keyed("cancelled", "echo never")));
    let run = RunNo(blocks.0 + 1);
    link.call(Request::Interrupt { run: Some(run), call: None }).unwrap();
    let first = link.reply(cancelled).unwrap_err();
    assert_eq!(first.code, Code::RunCancelled);
    assert_eq!(link.refusal(Request::Exec(keyed("cancelled", "echo never"))), first);
    open(&h, "gate");
    link.result(blocks);
    for _ in 0..8 {
        link.complete(Exec { until: Until::Recorded, ..order("echo more") });
    }
    let dropped = link.refusal(Request::Exec(keyed("old", "echo old")));
    assert_eq!(dropped.code, Code::RunNotFound);
    assert!(dropped.message.contains("dropped"), "{dropped}");
    assert!(!s.dir().join("runs/1.stdout").exists());
    s.keeper().kill();
    s.keeper().wait_gone();
    assert_eq!(directory(&s).lost_runs(), []);
}

/// A long run in one language outlasts the records of many in another.
#[test]
fn a_run_that_outlasts_the_history_is_neither_dropped_nor_forgotten() {
    let h = harness!();
    let s = h.session_with(&["--max-history", "4"]);
    fifo(&h, "gate");
    let mut link = s.link();
    let long = "print('x' * 100_000, flush=True); open('gate').read()";
    let python = Some(sessile_protocol::Language::Python);
    let until = Until::Accepted;
    let kept = link.accept(Exec { language: python, until, ..order(long) });
    let read = ReadOutput { max: 10, ..ReadOutput::waiting(kept) };
    link.output(read);
    for _ in 0..12 {
        link.complete(Exec { until: Until::Recorded, ..order("echo more") });
    }
    open(&h, "gate");
    assert_eq!(link.result(kept).stdout.total, 100_001);
    link.complete(Exec { until: Until::Recorded, ..order("echo more") });
    assert_eq!(link.result(kept).stdout.total, 100_001);
    let lost = link.accept(Exec { language: python, until, ..order(long) });
    link.output(ReadOutput { run: lost, ..read });
    for _ in 0..12 {
        link.complete(Exec { until: Until::Recorded, ..order("echo more") });
    }
    s.keeper().kill();
    s.keeper().wait_gone();
    assert_eq!(directory(&s).lost_runs(), [lost]);
}

#[test]
fn a_recorded_run_is_the_same_as_it_was_answered() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let python = Some(sessile_protocol::Language::Python);
    let texts = [
        "1 + 1",
        "import sys; print('out'); print('err', file=sys.stderr); [1, 2]",
        "1 / 0",
        "'long ' * 5000",
        "class Rich:\n  def _repr_html_(self): return '<b>' + 'x' * 5000 + '</b>'\nRich()",
        "raise ValueError('y' * 9000)",
        "import os; os._exit(7)",
    ];
    for text in texts {
        let order = Exec { language: python, until: Until::Recorded, ..order(text) };
        let first = link.complete(order);
        link.call(Request::Exec(order_in_bash())).unwrap();
        assert_eq!(link.result(first.run), first, "{text}");
        assert_eq!(directory(&s).recorded_run(first.run, 1 << 20), Some(first));
    }
    let view = directory(&s).recorded_output(&ReadOutput::waiting(RunNo(3))).unwrap();
    assert_eq!((&view.stdout[..], &view.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(view.phase, RunPhase::Closed);
    assert_eq!(directory(&s).recorded_output(&ReadOutput::waiting(RunNo(99))), None);
    assert_eq!(directory(&s).absence(RunNo(99)), Absence::Never);
}

fn order_in_bash() -> Exec {
    Exec { until: Until::Recorded, ..order(":") }
}

#[test]
fn a_run_whose_answer_was_received_is_in_the_history_whatever_is_killed() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    for text in ["x=1", "echo $x", &format!("# {}\necho long", "z".repeat(6000))] {
        let done = link.complete(order(text));
        let keeper = s.keeper();
        keeper.kill();
        keeper.wait_gone();
        let found = directory(&s).recorded_run(done.run, 1 << 20).unwrap();
        assert_eq!((found.exit_code, found.stdout.total), (0, done.stdout.total));
        assert_eq!(directory(&s).lost_runs(), []);
        s.run(":");
        link = s.link();
    }
}

#[test]
fn runs_of_an_ended_session_are_told_from_its_files() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut link = s.link();
    let done = link.complete(order("echo hi"));
    let going = link.accept(Exec { until: Until::Accepted, ..order("cat gate") });
    let Ok(Answer::Ended) = link.call(Request::End) else { panic!("not ended") };
    let directory = directory(&s);
    assert_eq!(directory.recorded_run(done.run, 1 << 20), Some(done));
    assert_eq!(directory.cancelled_run(going).unwrap().code, Code::RunCancelled);
    assert_eq!(directory.lost_runs(), []);
}

#[test]
fn long_texts_and_large_values_are_not_lost_with_the_keeper() {
    let h = harness!();
    let s = h.session_of("python3");
    let text = format!("# {}\n'v' * 5000", "x".repeat(10_000));
    let mut link = s.link();
    let value = |done: &sessile_protocol::Completed| done.result.clone().expect("a value").text;
    let first = link.complete(keyed("k", &text));
    assert_eq!(value(&first).len(), 5002);
    // One without a key is in the history, and who asks for it has it whole.
    let second = link.complete(order(&text));
    assert!(matches!(link.call(Request::History { limit: 1 }), Ok(Answer::History(_))));
    assert_eq!(directory(&s).history().find(second.run).expect("a line").command, text);
    let third = link.complete(order(&text));
    let mut link = revive(&s);
    let again = link.complete(keyed("k", &text));
    assert!(again.repeated);
    assert_eq!(again.result, first.result);
    let known = directory(&s).history().newest(10);
    let third = known.iter().find(|entry| entry.run == third.run).expect("a line");
    assert!(text.starts_with(&third.command) && third.command.starts_with("# x"));
    assert_eq!(third.command_bytes.is_some(), third.command != text, "{third:?}");
}
