//! Input and signals for runs that are going.

use sessile_protocol::{
    Answer, Code, Exec, Failure, KernelFate, Language, ReadOutput, Request, RunNo, Until,
};
use sessile_testkit::{Harness, Link, harness, order, until};

/// An interactive run, begun.
fn begin(link: &mut Link, language: Option<Language>, text: &str) -> RunNo {
    let until = Until::Accepted;
    link.accept(Exec { language, until, interactive: true, ..order(text) })
}

fn input(run: RunNo, text: &str, eof: bool) -> Request {
    Request::Input { run, bytes: text.as_bytes().to_vec(), eof }
}

#[track_caller]
fn give(link: &mut Link, run: RunNo, text: &str, eof: bool) {
    let answer = link.call(input(run, text, eof));
    assert!(matches!(answer, Ok(Answer::Input { .. })), "{answer:?}");
}

/// Waits until a run has written this much, and gives what it wrote.
#[track_caller]
fn printed(link: &mut Link, run: RunNo, text: &str) {
    let mut seen = Vec::new();
    while seen.len() < text.len() {
        let from = seen.len() as u64;
        let view = link.output(ReadOutput { stdout_from: from, ..ReadOutput::waiting(run) });
        assert!(!view.stdout.is_empty(), "{run} ended after {seen:?}, {:?}", view.stderr);
        seen.extend(view.stdout);
    }
    assert_eq!(String::from_utf8_lossy(&seen), text);
}

#[test]
fn a_shells_run_reads_what_it_is_given_while_it_goes() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let mut link = s.link();
        let text =
            "read a; echo got $a; read b; echo got $b; cat; echo end; cat /dev/stdin; echo over";
        let run = begin(&mut link, None, text);
        give(&mut link, run, "one\ntw", false);
        printed(&mut link, run, "got one\n");
        give(&mut link, run, "o\nrest\n", false);
        printed(&mut link, run, "got one\ngot two\nrest\n");
        give(&mut link, run, "last", true);
        let done = link.result(run);
        let all = "got one\ngot two\nrest\nlastend\nover\n";
        assert_eq!(String::from_utf8_lossy(&done.stdout.head), all, "{shell}");
        assert_eq!((done.kernel, &done.stderr.head[..]), (KernelFate::Kept, &b""[..]));
        s.run("cat; echo next").prints("next\n");
    }
}

/// Such a kernel is a copy, in a directory of its own.
#[test]
fn a_python_that_was_gone_back_to_reads_it_too() {
    let h = harness!();
    let s = h.session();
    s.python("x = 1").exits(0);
    s.checkpoint(&["--name", "here"]);
    s.python("x = 2").exits(0);
    s.rewind(&["here"]);
    let mut link = s.link();
    let run = begin(&mut link, Some(Language::Python), "print(input(), x)");
    give(&mut link, run, "one\n", true);
    assert_eq!(String::from_utf8_lossy(&link.result(run).stdout.head), "one 1\n");
}

#[test]
fn python_and_node_read_it_too() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let cases = [
        (Language::Python, "print(input('? ')); import sys; print(sys.stdin.read())", "? a\nb\n\n"),
        (
            Language::Python,
            "import subprocess; subprocess.run(['cat']); print(open('/dev/stdin').read(), end='')",
            "a\nb\n",
        ),
        (Language::Node, "process.stdout.write(require('fs').readFileSync(0))", "a\nb\n"),
        (
            Language::Node,
            "for await (const chunk of process.stdin) process.stdout.write(chunk)",
            "a\nb\n",
        ),
        (
            Language::Node,
            "require('child_process').spawnSync('cat', { stdio: 'inherit' }); 0",
            "a\nb\n",
        ),
    ];
    for (language, text, output) in cases {
        let run = begin(&mut link, Some(language), text);
        give(&mut link, run, "a\n", false);
        give(&mut link, run, "b\n", false);
        give(&mut link, run, "", true);
        let done = link.result(run);
        assert_eq!(String::from_utf8_lossy(&done.stdout.head), output, "{text}: {done:?}");
    }
}

#[test]
fn input_waits_for_a_run_that_is_queued() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let mut link = s.link();
        let first = begin(&mut link, None, "cat");
        let stdin = Some(b"given, ".to_vec().into());
        let until = Until::Accepted;
        // One that ended before the run began, and one that did not.
        let queued =
            link.accept(Exec { stdin: stdin.clone(), until, interactive: true, ..order("cat") });
        let later =
            link.accept(Exec { stdin, until, interactive: true, ..order("cat </dev/stdin") });
        give(&mut link, queued, "and more", true);
        let Ok(Answer::Input { unread }) = link.call(input(later, "x", false)) else { panic!() };
        assert_eq!(unread, 8);
        give(&mut link, first, "", true);
        assert_eq!(link.result(queued).stdout.head, b"given, and more", "{shell}");
        give(&mut link, later, "y", true);
        assert_eq!(link.result(later).stdout.head, b"given, xy", "{shell}");
    }
}

#[test]
fn ten_megabytes_arrive_whole_and_no_more_than_sixteen_wait() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let chunk: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
    let give =
        |link: &mut Link, run, eof| link.call(Request::Input { run, bytes: chunk.clone(), eof });
    let run = begin(&mut link, None, "read -r gate </dev/null; sha256sum; true");
    give(&mut link, run, false).unwrap();
    give(&mut link, run, true).unwrap();
    let done = link.result(run);
    let expected = {
        std::fs::write(h.path("whole"), [&chunk[..], &chunk].concat()).unwrap();
        s.run("sha256sum <whole").stdout().to_owned()
    };
    assert_eq!(String::from_utf8_lossy(&done.stdout.head), expected);
    // One that reads nothing.
    let run = begin(&mut link, None, "sleep 1000");
    for _ in 0..3 {
        give(&mut link, run, false).unwrap();
    }
    let refusal = give(&mut link, run, false).unwrap_err();
    assert_eq!(refusal.code, Code::QueueFull, "{refusal}");
    // The keeper is as quick as ever meanwhile.
    let Ok(Answer::Status(status)) = link.call(Request::Status) else { panic!() };
    assert_eq!(status.running, [run]);
    link.call(Request::Interrupt { run: Some(run), call: None }).unwrap();
    assert_eq!(link.result(run).exit_code, 130);
}

#[test]
fn input_that_nobody_can_read_is_refused() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let code = |link: &mut Link, run| link.refusal(input(run, "x", false)).code;
    assert_eq!(code(&mut link, RunNo(1)), Code::RunNotFound);
    let done = link.complete(Exec { interactive: true, ..order(":") }).run;
    assert_eq!(code(&mut link, done), Code::InputClosed);
    link.complete(Exec { until: Until::Recorded, ..order(":") });
    assert_eq!(code(&mut link, done), Code::InputClosed);
    let run = begin(&mut link, None, "echo begun; sleep 1000");
    printed(&mut link, run, "begun\n");
    give(&mut link, run, "x", true);
    let refusal: Failure = link.refusal(input(run, "", true));
    assert_eq!(refusal.code, Code::InputClosed);
    link.call(Request::Interrupt { run: Some(run), call: None }).unwrap();
    link.result(run);
    let plain = link.accept(Exec { until: Until::Accepted, ..order("sleep 1000") });
    assert_eq!(code(&mut link, plain), Code::InputClosed);
    link.call(Request::Interrupt { run: Some(plain), call: None }).unwrap();
    link.result(plain);
}

#[test]
fn a_run_that_waits_for_input_is_timed_out_and_its_kernel_kept() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let cases = [
        (Language::Bash, "kept=1; read x; echo never", "echo $kept"),
        (Language::Bash, "kept=1; cat; echo never", "echo $kept"),
        (Language::Python, "kept = 1; input(); print('never')", "print(kept)"),
        (
            Language::Node,
            "var kept = 1; require('fs').readFileSync(0); for (;;);",
            "console.log(kept)",
        ),
        (
            Language::Node,
            "var kept = 1; for await (const x of process.stdin);",
            "console.log(kept)",
        ),
    ];
    for (language, text, check) in cases {
        let language = Some(language);
        // The kernel is up before the time counts.
        link.complete(Exec { language, ..order("0 || true") });
        let timeout_ms = Some(100);
        let done = link.complete(Exec { language, timeout_ms, interactive: true, ..order(text) });
        assert!(done.timed_out, "{text}: {done:?}");
        assert_eq!((done.kernel, done.stdout.total), (KernelFate::Kept, 0), "{text}: {done:?}");
        assert_eq!(done.exit_code, 130, "{text}: {done:?}");
        let kept = link.complete(Exec { language, ..order(check) });
        assert_eq!(kept.stdout.head, b"1\n", "{text}");
    }
}

/// What a process in the background has of a run's stdin ends with the run.
#[test]
fn the_end_of_a_run_is_the_end_of_its_input() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let run = begin(&mut link, None, "{ cat >rest; echo done >>rest; } <&0 & echo out");
    link.result(run);
    until("the end of its input", || {
        std::fs::read_to_string(h.path("rest")).ok()?.ends_with("done\n").then_some(())
    });
}

fn signal(link: &mut Link, run: RunNo, signal: i32) -> u64 {
    match link.call(Request::Signal { run, signal }) {
        Ok(Answer::Signalled { processes }) => processes,
        other => panic!("{other:?}"),
    }
}

/// Again and again: a program that is just being started is still a shell that
/// ignores the signal, and one that does not wait yet has nothing to be woken
/// from.
fn signal_until_over(link: &mut Link, run: RunNo, signal: i32) {
    until("the end of a run that was signalled", || {
        let _ = link.call(Request::Signal { run, signal });
        let patience_ms = Some(20);
        let result =
            link.call(Request::Result { run, max_output: 100, patience_ms, until_input: false });
        matches!(result, Ok(Answer::Completed(_))).then_some(())
    });
}

fn start(link: &mut Link, language: Option<Language>, text: &str) -> RunNo {
    let run = link.accept(Exec { language, until: Until::Accepted, ..order(text) });
    printed(link, run, "ready\n");
    run
}

#[test]
fn a_signal_reaches_what_a_shell_has_in_the_foreground() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let mut link = s.link();
        link.complete(order("sleep 1000 & earlier=$!"));
        let child = r#"sh -c 'trap "echo got; exit 5" USR1; echo ready; while :; do sleep 0.01; done'; echo $?; kill -0 $earlier && echo alive"#;
        let run = start(&mut link, None, child);
        assert!(signal(&mut link, run, libc::SIGUSR1) >= 1);
        let done = link.result(run);
        let out = String::from_utf8_lossy(&done.stdout.head).into_owned();
        assert_eq!((out.as_str(), done.kernel), ("ready\ngot\n5\nalive\n", KernelFate::Kept));
        let run = start(&mut link, None, "echo ready; sleep 1000; echo $?");
        signal_until_over(&mut link, run, libc::SIGTERM);
        assert_eq!(link.result(run).stdout.head, b"ready\n143\n", "{shell}");
        // A shell by itself is interrupted, and gets nothing else.
        let run = start(&mut link, None, "echo ready; while :; do :; done");
        assert_eq!(signal(&mut link, run, libc::SIGTERM), 0);
        assert_eq!(signal(&mut link, run, libc::SIGINT), 1);
        let done = link.result(run);
        assert_eq!((done.exit_code, done.interrupted, done.kernel), (130, true, KernelFate::Kept));
    }
}

#[test]
fn a_signal_reaches_python_and_node_themselves() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let cases = [
        (Language::Python, "print('ready', flush=True)\nwhile True: pass"),
        (Language::Node, "console.log('ready'); await new Promise(() => {})"),
    ];
    for (language, text) in cases {
        let run = start(&mut link, Some(language), text);
        assert_eq!(signal(&mut link, run, libc::SIGINT), 1);
        let done = link.result(run);
        assert_eq!((done.exit_code, done.kernel), (130, KernelFate::Kept), "{done:?}");
        let run = start(&mut link, Some(language), text);
        assert_eq!(signal(&mut link, run, libc::SIGKILL), 1);
        let done = link.result(run);
        assert_eq!((done.exit_code, done.kernel), (137, KernelFate::Fresh), "{done:?}");
        assert!(done.notes.iter().any(|note| note.contains("signal 9")), "{done:?}");
    }
    let text = "import signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('got'))\nprint('ready', flush=True)\nsignal.pause()";
    let run = start(&mut link, Some(Language::Python), text);
    signal_until_over(&mut link, run, libc::SIGUSR1);
    let text = "import subprocess\np = subprocess.run(['sh', '-c', 'echo ready; sleep 1000'])\nprint(p.returncode)";
    let run = start(&mut link, Some(Language::Python), text);
    assert!(signal(&mut link, run, libc::SIGKILL) >= 1);
    assert_eq!(link.result(run).stdout.head, b"ready\n-9\n");
}

#[test]
fn signals_that_cannot_be_sent_are_refused() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let code = |link: &mut Link, run, signal| link.refusal(Request::Signal { run, signal }).code;
    assert_eq!(code(&mut link, RunNo(7), libc::SIGTERM), Code::RunNotFound);
    let done = link.complete(order(":")).run;
    let refusal = link.refusal(Request::Signal { run: done, signal: libc::SIGTERM });
    assert_eq!(refusal.code, Code::RunNotFound);
    assert!(refusal.message.contains("finished"), "{refusal}");
    let run = start(&mut link, None, "echo ready; sleep 1000");
    for bad in [0, -1, 65, i32::MAX] {
        assert_eq!(code(&mut link, run, bad), Code::BadRequest);
    }
    let queued = link.accept(Exec { until: Until::Accepted, ..order(":") });
    assert_eq!(signal(&mut link, queued, libc::SIGKILL), 0);
    signal_until_over(&mut link, run, libc::SIGKILL);
    assert_eq!(link.result(run).exit_code, 137);
    assert_eq!(link.result(queued).exit_code, 0);
}
