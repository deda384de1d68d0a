//! Runs that go on while others come and go: begun, read, fed and signalled by
//! one command each.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Output, Session, harness, until};

/// `sessile COMMAND ID RUN ARGS…`.
#[track_caller]
fn on_run(h: &Harness, s: &Session<'_>, command: &str, run: u64, args: &[&str]) -> Output {
    h.sessile(&[&[command, s.id(), &run.to_string()], args].concat())
}

#[track_caller]
fn give(h: &Harness, s: &Session<'_>, run: u64, text: &str, args: &[&str]) -> Value {
    let run = run.to_string();
    let words = [&["input", s.id(), &run], args].concat();
    h.begin(&words, text.as_bytes()).finish().json()
}

/// Waits until a run has written this to stdout.
#[track_caller]
fn await_output(h: &Harness, s: &Session<'_>, run: u64, text: &str) -> Value {
    until(text, || {
        let view = on_run(h, s, "output", run, &[]).json();
        view["stdout"].as_str()?.ends_with(text).then_some(view)
    })
}

#[test]
fn a_run_goes_on_after_its_answer_and_other_languages_are_free() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    let begun = s.run_with(&["--background"], "echo begun; read -r x <go; echo \"went $x\"");
    let begun = begun.has("running", true).has("run", 1);
    assert!(begun.json()["exit_code"].is_null());
    // The kernel is busy: another command waits for its turn.
    let waits = s.run_with(&["--wait", "50ms"], "echo next").has("running", true);
    assert_eq!((waits.run(), waits.stdout()), (2, ""));
    s.run_in("python", "print(1)").prints("1\n");
    let listed = s.sessile("runs").json();
    let phases: Vec<(u64, &str)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["run"].as_u64().unwrap(), run["phase"].as_str().unwrap()))
        .collect();
    assert_eq!(phases, [(1, "running"), (2, "queued"), (3, "closed")]);
    let waited = on_run(&h, &s, "wait", 2, &["--timeout", "50ms"]).json();
    assert_eq!(waited["running"], true);
    std::fs::write(h.path("go"), "on\n").unwrap();
    let done = on_run(&h, &s, "wait", 1, &[]).json();
    assert_eq!((&done["stdout"], &done["exit_code"]), (&"begun\nwent on\n".into(), &0.into()));
    assert_eq!(on_run(&h, &s, "wait", 2, &[]).json()["stdout"], "next\n");
}

#[test]
fn a_command_that_is_done_in_time_is_answered_as_ever() {
    let h = harness!();
    let s = h.session();
    s.run_with(&["--wait", "60s"], "echo hi; (exit 3)").prints("hi\n").exits(3).has("run", 1);
}

#[test]
fn output_is_read_by_cursor_followed_and_kept() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go later"]).exits(0);
    let text = "echo one; echo oops >&2; read -r _ <go; echo two; (read -r _ <later; echo late) &";
    let run = s.run_with(&["--background"], text).run();
    let view = until("both streams", || {
        let view = on_run(&h, &s, "output", run, &[]).json();
        (view["cursor"] == "4-5").then_some(view)
    });
    assert_eq!((&view["phase"], &view["running"]), (&"running".into(), &true.into()));
    let id = s.id().to_owned();
    let follower = h.begin(&["output", &id, "1", "--follow"], b"");
    std::fs::write(h.path("go"), "\n").unwrap();
    assert_eq!(on_run(&h, &s, "wait", run, &[]).json()["stdout"], "one\ntwo\n");
    let view = on_run(&h, &s, "output", run, &["--from", "4-5"]).json();
    assert_eq!((&view["stdout"], &view["stderr"]), (&"two\n".into(), &"".into()));
    assert_eq!((&view["phase"], &view["running"]), (&"exited".into(), &false.into()));
    std::fs::write(h.path("later"), "\n").unwrap();
    follower.finish().exits(0).prints("one\ntwo\nlate\n").warns("oops\n");
    assert_eq!(on_run(&h, &s, "output", run, &[]).json()["phase"], "closed");
    s.end();
    // What is over can be read when nobody is there to be asked.
    on_run(&h, &s, "output", run, &["--follow"]).exits(0).prints("one\ntwo\nlate\n");
    assert_eq!(on_run(&h, &s, "wait", run, &[]).json()["stdout"], "one\ntwo\nlate\n");
    assert_eq!(s.sessile("runs").json()[0]["phase"], "closed");
}

#[test]
fn half_a_character_is_left_to_the_next_reader() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    let text = r"printf 'a\xc3'; read -r _ <go; printf '\xa4'";
    let run = s.run_with(&["--background"], text).run();
    let view = until("the first character", || {
        let view = on_run(&h, &s, "output", run, &[]).json();
        (view["stdout"] != "").then_some(view)
    });
    assert_eq!((&view["stdout"], &view["cursor"]), (&"a".into(), &"1-0".into()));
    std::fs::write(h.path("go"), "\n").unwrap();
    on_run(&h, &s, "wait", run, &[]).exits(0);
    let view = on_run(&h, &s, "output", run, &["--from", "1-0"]).json();
    assert_eq!((&view["stdout"], &view["cursor"]), (&"ä".into(), &"3-0".into()));
}

#[test]
fn an_interactive_run_is_fed_by_successive_commands() {
    let h = harness!();
    let s = h.session();
    let text = "read -r a; echo \"a=$a\"; read -r b; echo \"b=$b\"; cat";
    let run = s.run_with(&["--interactive", "--background"], text).run();
    give(&h, &s, run, "1\n", &[]);
    await_output(&h, &s, run, "a=1\n");
    give(&h, &s, run, "2\n", &[]);
    await_output(&h, &s, run, "b=2\n");
    // More than may wait at a time.
    let much = "0123456789abcde\n".repeat(2 << 20);
    let given = give(&h, &s, run, &much, &["--eof"]);
    assert_eq!(given["run"], run);
    let done = on_run(&h, &s, "wait", run, &["--max-output", "64MiB"]).json();
    assert_eq!(done["stdout"].as_str().unwrap().len(), 8 + much.len());
    s.run("echo next").prints("next\n").is_kept();
}

#[test]
fn a_signal_is_given_by_name_or_number() {
    let h = harness!();
    let s = h.session();
    for (signal, code) in [("TERM", 143), ("SIGKILL", 137), ("1", 129)] {
        // The program itself says that it is there: a shell that is about to
        // become it would not take the signal.
        let run = s
            .run_with(
                &["--background"],
                "python3 -c 'import time; print(1, flush=True); time.sleep(1000)'",
            )
            .run();
        await_output(&h, &s, run, "1\n");
        let told = on_run(&h, &s, "signal", run, &[signal]).json();
        assert_eq!((&told["run"], &told["processes"]), (&run.into(), &1.into()));
        assert_eq!(on_run(&h, &s, "wait", run, &[]).json()["exit_code"], code);
    }
}

#[test]
fn what_cannot_be_done_to_a_run_is_told_in_one_line() {
    let h = harness!();
    let s = h.session();
    s.run(":");
    for (command, run, args, word) in [
        ("wait", 7, &[][..], "no run 7"),
        ("output", 7, &[], "no run 7"),
        ("input", 7, &[], "no run 7"),
        ("input", 1, &[], "has finished"),
        ("signal", 1, &["TERM"], "has finished"),
    ] {
        let output = on_run(&h, &s, command, run, args).exits(1).prints("");
        let line = output.errors();
        assert!(line.contains(word) && line.lines().count() == 1, "{command}: {line}");
    }
    on_run(&h, &s, "signal", 1, &["NOPE"]).exits(2);
    on_run(&h, &s, "output", 1, &["--from", "x"]).exits(2);
    h.sessile(&["exec", s.id(), "--raw", "--background", "--", ":"]).exits(2);
    s.end();
    for (command, run, args, word) in [
        ("wait", 7, &[][..], "no run 7"),
        ("input", 1, &[], "has finished"),
        ("signal", 7, &["TERM"], "no run 7"),
    ] {
        let output = on_run(&h, &s, command, run, args).exits(1).prints("");
        assert!(output.errors().contains(word), "{command}: {}", output.errors());
    }
}

/// The answer of an interactive run that has come to wait for input.
#[track_caller]
fn asks(answer: &Value, question: &str) {
    assert_eq!((&answer["running"], &answer["waiting_for_input"]), (&true.into(), &true.into()));
    let printed = answer["stdout"].as_str().unwrap();
    assert!(printed.ends_with(question), "{question:?} is not at the end of {printed:?}");
}

#[test]
fn a_run_tells_when_it_waits_for_input() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let text = "printf 'Ok to proceed? (y) '; read -r a; echo \"$a\"; printf 'name? '; read -r b; echo \"[$b]\"";
        let begun = s.run_with(&["--interactive", "--timeout", "0"], text);
        asks(begun.json(), "Ok to proceed? (y) ");
        let run = begun.run();
        let listed = s.sessile("runs").json();
        assert_eq!(listed[0]["waiting_for_input"], true, "{listed}");
        // Half a line is not yet an answer, and is read all the same.
        give(&h, &s, run, "y", &[]);
        asks(&on_run(&h, &s, "wait", run, &[]).json(), "(y) ");
        give(&h, &s, run, "es\n", &[]);
        asks(&on_run(&h, &s, "wait", run, &[]).json(), "yes\nname? ");
        give(&h, &s, run, "me\n", &[]);
        let done = on_run(&h, &s, "wait", run, &[]).json();
        assert!(done["stdout"].as_str().unwrap().ends_with("[me]\n"), "{shell}: {done}");
        assert!(done["waiting_for_input"].is_null());
    }
}

#[test]
fn a_run_that_works_or_sleeps_does_not_wait_for_input() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    for text in ["read -r _ <go; read -r x", "head -n 1 go >/dev/null; read -r x"] {
        let options = ["--interactive", "--wait", "100ms"];
        let begun = s.run_with(&options, text).has("running", true);
        assert!(begun.json()["waiting_for_input"].is_null(), "{text}");
        let waiter = h.begin(&["wait", s.id(), &begun.run().to_string()], b"");
        std::fs::write(h.path("go"), "\n").unwrap();
        asks(&waiter.finish().json(), "");
        give(&h, &s, begun.run(), "", &["--eof"]);
        on_run(&h, &s, "wait", begun.run(), &[]).exits(0);
    }
    // One that is given its input at once is not taken to wait for it.
    let begun = s.run_with(&["--interactive", "--background"], "cat | sort").run();
    give(&h, &s, begun, "b\na\n", &["--eof"]);
    assert_eq!(on_run(&h, &s, "wait", begun, &[]).json()["stdout"], "a\nb\n");
}

#[test]
fn python_tells_it_too() {
    let h = harness!();
    let s = h.session();
    let options = ["--interactive", "--timeout", "0", "--language", "python"];
    let begun = s.run_with(&options, "x = input('x? ')\nprint(x)");
    asks(begun.json(), "x? ");
    give(&h, &s, begun.run(), "1\n", &["--eof"]);
    let done = on_run(&h, &s, "wait", begun.run(), &[]).json();
    assert_eq!(done["stdout"], "x? 1\n", "{done}");
}

/// Node's event loop waits with a limit whenever a timer of its own is set, and
/// each run has another pipe.
#[test]
fn node_tells_it_in_one_run_after_the_other() {
    let h = harness!();
    let s = h.session();
    let options = ["--interactive", "--timeout", "0", "--language", "node"];
    let text = "var rl = require('readline/promises').createInterface({ input: process.stdin, output: process.stdout });\nconsole.log(await rl.question('x? '), await rl.question('y? ')); rl.close()";
    for _ in 0..10 {
        let begun = s.run_with(&options, text);
        asks(begun.json(), "x? ");
        let listed = s.sessile("runs").json();
        let open = listed.as_array().unwrap().iter().find(|run| run["run"] == begun.run());
        assert_eq!(open.unwrap()["waiting_for_input"], true, "{listed}");
        give(&h, &s, begun.run(), "1\n", &[]);
        asks(&on_run(&h, &s, "wait", begun.run(), &[]).json(), "x? y? ");
        asks(&on_run(&h, &s, "output", begun.run(), &[]).json(), "x? y? ");
        give(&h, &s, begun.run(), "2\n", &[]);
        let done = on_run(&h, &s, "wait", begun.run(), &[]).json();
        assert_eq!(done["stdout"], "x? y? 1 2\n", "{done}");
    }
}

/// What listens to stdin takes a line that comes too early, and loses it.
#[test]
fn node_that_has_something_else_to_do_does_not_wait_for_input() {
    let h = harness!();
    let s = h.session();
    h.sessile(&["run", "mkfifo go"]).exits(0);
    // A server of an earlier run is no concern of this one.
    let server = "var server = require('net').createServer().listen(0, '127.0.0.1'); 0";
    s.run_with(&["--language", "node"], server).exits(0);
    for work in [
        "await require('fs').promises.readFile('go')",
        "await new Promise((done) => require('child_process').execFile('cat', ['go'], done))",
        "await new Promise((done) => { const timer = setInterval(() => { if (require('fs').existsSync('went')) { clearInterval(timer); done() } }, 5) })",
    ] {
        let _ = std::fs::remove_file(h.path("went"));
        let text = format!(
            "var rl = require('readline/promises').createInterface({{ input: process.stdin }});\n{work};\nconsole.log(await rl.question('')); rl.close()"
        );
        let options = ["--interactive", "--timeout", "0", "--language", "node", "--wait", "200ms"];
        let begun = s.run_with(&options, &text).has("running", true);
        assert!(begun.json()["waiting_for_input"].is_null(), "{work}");
        let waiter = h.begin(&["wait", s.id(), &begun.run().to_string()], b"");
        match work.contains("went") {
            true => std::fs::write(h.path("went"), "").unwrap(),
            false => std::fs::write(h.path("go"), "\n").unwrap(),
        }
        asks(&waiter.finish().json(), "");
        give(&h, &s, begun.run(), "now\n", &[]);
        let done = on_run(&h, &s, "wait", begun.run(), &[]).json();
        assert_eq!(done["stdout"], "now\n", "{work}");
    }
}

#[test]
fn a_debugger_is_driven_by_successive_commands() {
    let h = harness!();
    let s = h.session();
    let main = "def f(x):\n    y = x + 1\n    return y\n\nfor i in range(3):\n    f(i)\n";
    std::fs::write(h.path("main.py"), main).unwrap();
    let begun = s.run_with(&["--interactive", "--timeout", "0"], "python3 -m pdb main.py");
    asks(begun.json(), "(Pdb) ");
    let run = begun.run();
    let mut cursor = begun.json()["cursor"].as_str().unwrap().to_owned();
    for (line, answer) in [
        ("break main.py:3", "Breakpoint 1"),
        ("continue", "return y"),
        ("p x, y", "(0, 1)"),
        ("continue", "return y"),
        ("p x, y", "(1, 2)"),
    ] {
        give(&h, &s, run, &format!("{line}\n"), &[]);
        asks(&on_run(&h, &s, "wait", run, &[]).json(), "(Pdb) ");
        let view = on_run(&h, &s, "output", run, &["--from", &cursor]).json();
        asks(&view, "(Pdb) ");
        assert!(view["stdout"].as_str().unwrap().contains(answer), "{line}: {view}");
        cursor = view["cursor"].as_str().unwrap().to_owned();
    }
    give(&h, &s, run, "quit\n", &["--eof"]);
    on_run(&h, &s, "wait", run, &[]).exits(0);
    s.run("echo next").prints("next\n").is_kept();
}

#[test]
fn a_database_is_asked_by_successive_commands() {
    let h = harness!();
    let s = h.session();
    let begun = s.run_with(&["--interactive", "--timeout", "0"], "sqlite3 people.db");
    assert_eq!(begun.json()["waiting_for_input"], true, "{}", begun.json());
    let run = begun.run();
    let mut cursor = begun.json()["cursor"].as_str().unwrap().to_owned();
    for (line, answer) in [
        ("CREATE TABLE people (name TEXT, born INTEGER);", ""),
        ("INSERT INTO people VALUES ('Ada', 1815), ('Grace', 1906);", ""),
        ("SELECT name FROM people WHERE born > 1900;", "Grace\n"),
        ("SELECT count(*) FROM people;", "2\n"),
    ] {
        give(&h, &s, run, &format!("{line}\n"), &[]);
        let view = until("an answer", || {
            let waits = on_run(&h, &s, "wait", run, &[]).json();
            assert_eq!(waits["waiting_for_input"], true, "{line}: {waits}");
            let view = on_run(&h, &s, "output", run, &["--from", &cursor]).json();
            (view["stdout"] == answer).then_some(view)
        });
        cursor = view["cursor"].as_str().unwrap().to_owned();
    }
    give(&h, &s, run, ".quit\n", &["--eof"]);
    assert_eq!(on_run(&h, &s, "wait", run, &[]).json()["exit_code"], 0);
}

#[test]
fn ten_megabytes_of_input_arrive_whole() {
    let h = harness!();
    let s = h.session();
    let bytes: String = (0..10 << 20).map(|i: u32| char::from(b' ' + (i % 95) as u8)).collect();
    for (language, text) in
        [("bash", "cat >got"), ("python", "import sys; open('got', 'w').write(sys.stdin.read())")]
    {
        let options = ["--interactive", "--background", "--language", language];
        let run = s.run_with(&options, text).run();
        give(&h, &s, run, &bytes, &["--eof"]);
        let done = on_run(&h, &s, "wait", run, &[]).json();
        assert_eq!(done["exit_code"], 0, "{language}");
        assert!(std::fs::read_to_string(h.path("got")).unwrap() == bytes, "{language}");
    }
}

#[test]
fn a_run_is_talked_to_over_http() {
    let h = harness!();
    let server = h.serve();
    let started = server.post("/v1/sessions", &json!({})).is(201).json();
    let session = format!("/v1/sessions/{}", started["session_id"].as_str().unwrap());
    let order = json!({"command": "printf 'name? '; read -r x; echo $x", "interactive": true});
    asks(&server.post(&format!("{session}/exec"), &order).is(202).json(), "name? ");
    let listed = server.get(&format!("{session}/runs")).is(200).json();
    assert_eq!(
        (&listed[0]["phase"], &listed[0]["waiting_for_input"]),
        (&"running".into(), &true.into())
    );
    let run = format!("{session}/runs/1");
    asks(&server.get(&format!("{run}?wait=60s")).is(202).json(), "name? ");
    server.post(&format!("{run}/input"), &json!({"data": "me\n"})).is(200);
    let done = server.get(&format!("{run}?wait=60s")).is(200).json();
    assert_eq!(done["stdout"], "name? me\n");
    let listed = server.get(&format!("{session}/runs")).is(200).json();
    assert_eq!((&listed[0]["phase"], &listed[0]["exit_code"]), (&"closed".into(), &0.into()));
}
