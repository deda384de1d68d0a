//! Runs that have gone silent.

use sessile_protocol::{Answer, Exec, KernelFate, Language, Request, Until};
use sessile_testkit::{harness, needs, order, until};
use std::time::{Duration, Instant};

/// A run that prints now and then, for longer than it may be silent.
const TALKERS: [(Language, &str); 3] = [
    (Language::Bash, "for i in $(seq 30); do sleep 0.1; echo $i; done"),
    (
        Language::Python,
        "import time, sys\nfor i in range(30):\n    time.sleep(0.1)\n    print(i + 1, file=sys.stderr, flush=True)",
    ),
    (
        Language::Node,
        "for (let i = 1; i <= 30; i++) { await new Promise(r => setTimeout(r, 100)); console.log(i); }",
    ),
];

#[test]
fn a_run_that_prints_now_and_then_goes_on() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let calls = TALKERS.map(|(language, text)| {
        let order = Exec {
            language: Some(language),
            timeout_ms: Some(0),
            silence_ms: Some(2500),
            ..order(text)
        };
        link.send(Request::Exec(order))
    });
    for call in calls {
        let done = sessile_testkit::completed(link.reply(call));
        assert_eq!((done.exit_code, done.timed_out), (0, false), "{done:?}");
        assert!(done.duration_us > 3_000_000, "{done:?}");
        assert_eq!(done.stdout.total + done.stderr.total, 81, "{done:?}");
    }
}

#[test]
fn a_silent_run_is_interrupted_and_the_state_is_kept() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    for (language, text, check) in [
        (Language::Bash, "kept=1; echo begun; sleep 1000", "echo $kept"),
        (Language::Bash, "kept=2; echo begun; while :; do :; done", "echo $kept"),
        (Language::Zsh, "kept=1; echo begun; sleep 1000", "echo $kept"),
        (Language::Sh, "kept=1; echo begun; sleep 1000", "echo $kept"),
        (
            Language::Python,
            "kept = 1; print('begun'); import time; time.sleep(1000)",
            "print(kept)",
        ),
        (
            Language::Node,
            "var kept = 1; console.log('begun'); await new Promise(() => setTimeout(() => {}, 1e6))",
            "console.log(kept)",
        ),
    ] {
        if language == Language::Zsh && !needs::has_program("zsh") {
            continue;
        }
        let language = Some(language);
        let silent = Exec { language, timeout_ms: Some(0), silence_ms: Some(200), ..order(text) };
        let done = link.complete(silent);
        assert!(done.timed_out && !done.interrupted, "{text}: {done:?}");
        assert_eq!(done.stdout.head, b"begun\n", "{text}: {done:?}");
        assert_eq!(done.kernel, KernelFate::Kept, "{text}: {done:?}");
        assert_eq!(done.notes, ["silent for 200ms, and interrupted for that"]);
        let kept = link.complete(Exec { language, ..order(check) });
        assert_eq!(kept.stdout.total, 2, "{text}: {kept:?}");
    }
}

#[test]
fn a_run_that_writes_nothing_may_be_silent_for_so_long_from_its_beginning() {
    let h = harness!();
    let s = h.session();
    s.run(":");
    let begun = Instant::now();
    let done = s.run_with(&["--timeout", "0", "--no-output-timeout", "300ms"], "sleep 1000");
    let done = done.timed_out().exits(130).is_kept();
    assert_eq!(done.notes(), "silent for 300ms, and interrupted for that");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(s.history()[1]["timed_out"], true);
}

#[test]
fn the_earlier_of_two_limits_counts() {
    let h = harness!();
    let s = h.session();
    let timed = s.run_with(&["--timeout", "200ms", "--no-output-timeout", "1h"], "sleep 1000");
    assert_eq!(timed.timed_out().notes(), "");
    let silent = s.run_with(&["--timeout", "1h", "--no-output-timeout", "200ms"], "sleep 1000");
    assert_eq!(silent.timed_out().notes(), "silent for 200ms, and interrupted for that");
    s.run_with(&["--no-output-timeout", "0"], "sleep 0.1; echo fine").prints("fine\n");
}

#[test]
fn input_is_a_sign_of_life_and_waiting_for_it_is_silence() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let silent = Exec {
        interactive: true,
        timeout_ms: Some(0),
        silence_ms: Some(1500),
        until: Until::Accepted,
        ..order("while read -r x; do got=$x; done")
    };
    let run = link.accept(silent);
    let begun = Instant::now();
    let mut given = 0;
    // For longer than it may be silent, and it prints nothing.
    until("a time that is long enough", || {
        let bytes = format!("{given}\n").into_bytes();
        let answer = link.call(Request::Input { run, bytes, eof: false });
        assert!(matches!(answer, Ok(Answer::Input { .. })), "{answer:?}");
        given += 1;
        (begun.elapsed() > Duration::from_millis(2500)).then_some(())
    });
    // Now nobody gives it anything.
    let done = link.result(run);
    assert!(done.timed_out && done.kernel == KernelFate::Kept, "{done:?}");
    assert_eq!(done.notes, ["silent for 1500ms, and interrupted for that"]);
    s.run("echo $got").prints(&format!("{}\n", given - 1));
}

#[test]
fn it_is_a_limit_of_runs_over_http_too() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    let session = format!("/v1/sessions/{id}");
    let order =
        serde_json::json!({"command": "sleep 1000", "timeout": 0, "no_output_timeout": 0.2});
    let done = server.post(&format!("{session}/exec"), &order).is(200).json();
    assert_eq!(done["timed_out"], true, "{done}");
    assert_eq!(done["notes"][0], "silent for 200ms, and interrupted for that");
}
