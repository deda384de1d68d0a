//! What a keeper answers on its socket.

use sessile_protocol::{Answer, Exec, ReadOutput, Request, RunNo, RunPhase, Until};
use sessile_testkit::{Harness, Link, harness, order};
use std::time::{Duration, Instant};

/// A FIFO in the harness's directory: a command that reads it waits until the
/// test opens it.
fn fifo(h: &Harness, name: &str) {
    let status = std::process::Command::new("mkfifo").arg(h.path(name)).status().unwrap();
    assert!(status.success());
}

fn open(h: &Harness, name: &str) {
    std::fs::File::options().write(true).open(h.path(name)).unwrap();
}

/// The result of a run, or what there is after so long.
fn result_within(run: RunNo, patience: u64) -> Request {
    Request::Result { run, max_output: 1 << 20, patience_ms: Some(patience), until_input: false }
}

#[test]
fn an_order_is_answered_when_the_patience_for_it_is_over() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut link = s.link();
    for until in [Until::Finished, Until::Recorded] {
        for patience in [0, 30] {
            let begun = Instant::now();
            let text = "echo before; cat gate; echo after";
            let order = Exec { until, patience_ms: Some(patience), ..order(text) };
            let run = link.accept(order);
            assert!(begun.elapsed() >= Duration::from_millis(patience));
            let accepted = link.call(result_within(run, patience)).unwrap();
            assert_eq!(accepted, Answer::accepted(run));
            open(&h, "gate");
            assert_eq!(link.result(run).stdout.head, b"before\nafter\n");
        }
    }
}

#[test]
fn a_run_that_ends_in_time_is_answered_with_its_result() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let done = link.complete(Exec { patience_ms: Some(30_000), ..order("echo hi") });
    assert_eq!(done.stdout.head, b"hi\n");
    let done = link.complete(Exec { patience_ms: Some(u64::MAX), ..order("echo ho") });
    assert_eq!(done.stdout.head, b"ho\n");
}

#[test]
fn output_is_answered_with_what_there_is_when_the_patience_is_over() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut link = s.link();
    let run = link.accept(Exec { until: Until::Accepted, ..order("cat gate; echo done") });
    for patience in [0, 30] {
        let view =
            link.output(ReadOutput { patience_ms: Some(patience), ..ReadOutput::waiting(run) });
        assert_eq!((view.stdout, view.phase), (Vec::new(), RunPhase::Running));
    }
    open(&h, "gate");
    let view = link.output(ReadOutput { patience_ms: Some(30_000), ..ReadOutput::waiting(run) });
    assert_eq!(view.stdout, b"done\n");
}

#[test]
fn a_client_that_goes_away_takes_its_waiting_along() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut stays = s.link();
    let run = stays.accept(Exec { until: Until::Accepted, ..order("cat gate") });
    let mut leaves = s.link();
    leaves.send(result_within(run, 1));
    leaves.send(Request::Output(ReadOutput::waiting(run)));
    drop(leaves);
    let accepted = stays.call(result_within(run, 20)).unwrap();
    assert_eq!(accepted, Answer::accepted(run));
    open(&h, "gate");
    assert_eq!(stays.result(run).exit_code, 0);
}

/// The first of many calls is not held up by the others.
#[test]
fn each_call_has_a_patience_of_its_own() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "gate");
    let mut link: Link = s.link();
    let run = link.accept(Exec { until: Until::Accepted, ..order("cat gate") });
    let forever =
        link.send(Request::Result { run, max_output: 0, patience_ms: None, until_input: false });
    let long = link.send(result_within(run, 60));
    let short = link.send(result_within(run, 5));
    assert_eq!(link.reply(short), Ok(Answer::accepted(run)));
    assert!(!link.is_answered(forever) && !link.is_answered(long));
    assert_eq!(link.reply(long), Ok(Answer::accepted(run)));
    assert!(!link.is_answered(forever));
    open(&h, "gate");
    assert!(matches!(link.reply(forever), Ok(Answer::Completed(_))));
}

/// The next news of a run, for a reader that has all until then.
fn next(link: &mut Link, run: RunNo, stdout_from: u64, known: RunPhase) -> (Vec<u8>, RunPhase) {
    let read = ReadOutput { stdout_from, known: Some(known), ..ReadOutput::waiting(run) };
    let view = link.output(read);
    (view.stdout, view.phase)
}

#[test]
fn a_reader_can_wait_for_each_phase_of_a_run() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let _ = std::fs::remove_file(h.path("gate"));
        let _ = std::fs::remove_file(h.path("late"));
        fifo(&h, "gate");
        fifo(&h, "late");
        let mut link = s.link();
        link.accept(Exec { until: Until::Accepted, ..order("cat gate") });
        let text = "cat gate; (cat late; echo late) & echo out";
        let run = link.accept(Exec { until: Until::Accepted, ..order(text) });
        let queued = link.output(ReadOutput { wait: false, ..ReadOutput::waiting(run) });
        assert_eq!(queued.phase, RunPhase::Queued);
        let waiting = link.send(Request::Output(ReadOutput {
            known: Some(RunPhase::Queued),
            ..ReadOutput::waiting(run)
        }));
        open(&h, "gate");
        let Ok(Answer::Output(view)) = link.reply(waiting) else { panic!("no output") };
        assert_eq!((view.stdout, view.phase), (Vec::new(), RunPhase::Running), "{shell}");
        open(&h, "gate");
        let (out, phase) = next(&mut link, run, 0, RunPhase::Running);
        assert_eq!(out, b"out\n");
        if phase == RunPhase::Running {
            assert_eq!(next(&mut link, run, 4, phase), (Vec::new(), RunPhase::Exited));
        }
        assert_eq!(link.result(run).exit_code, 0);
        // Without `known` a wait is over once the run is.
        let over = link.output(ReadOutput { stdout_from: 4, ..ReadOutput::waiting(run) });
        assert_eq!(over.phase, RunPhase::Exited);
        open(&h, "late");
        let (out, phase) = next(&mut link, run, 4, RunPhase::Exited);
        assert_eq!(out, b"late\n");
        if phase == RunPhase::Exited {
            assert_eq!(next(&mut link, run, 9, phase), (Vec::new(), RunPhase::Closed));
        }
        // From disk, too, and without a wait that could never end.
        assert_eq!(next(&mut link, run, 9, RunPhase::Closed), (Vec::new(), RunPhase::Closed));
        assert_eq!(next(&mut link, run, 0, RunPhase::Exited).0, b"out\nlate\n");
    }
}

#[test]
fn who_waits_for_late_output_learns_of_the_sessions_reset_and_end() {
    let h = harness!();
    let s = h.session();
    fifo(&h, "never");
    let mut link = s.link();
    let read = |run, from| {
        let known = Some(RunPhase::Exited);
        Request::Output(ReadOutput { known, stdout_from: from, ..ReadOutput::waiting(run) })
    };
    let text = "echo now; cat never &";
    let first = link.complete(order(text)).run;
    let waiting = link.send(read(first, 4));
    link.call(Request::Reset).unwrap();
    match link.reply(waiting) {
        Ok(Answer::Output(view)) => assert_eq!(view.phase, RunPhase::Closed),
        Err(failure) => assert_eq!(failure.code, sessile_protocol::Code::RunCancelled),
        Ok(other) => panic!("{other:?}"),
    }
    let second = link.complete(order(text)).run;
    let waiting = link.send(read(second, 4));
    link.call(Request::End).unwrap();
    let Ok(Answer::Output(view)) = link.reply(waiting) else { panic!("no output") };
    assert_eq!(view.phase, RunPhase::Closed);
}

#[test]
fn a_client_that_does_not_read_for_a_while_misses_nothing() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let run = link.complete(order("head -c 3000000 /dev/zero")).run;
    let read = ReadOutput { wait: false, max: 3_000_000, ..ReadOutput::waiting(run) };
    let calls: Vec<u64> = (0..8).map(|_| link.send(Request::Output(read))).collect();
    // The keeper has others to serve meanwhile.
    s.run("echo other").prints("other\n");
    for call in calls {
        let Ok(Answer::Output(view)) = link.reply(call) else { panic!("no output") };
        assert_eq!(view.stdout.len(), 3_000_000);
    }
}
