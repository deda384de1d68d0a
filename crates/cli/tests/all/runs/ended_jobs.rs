//! Jobs that end within the run that started them, or later.

use serde_json::{Value, json};
use sessile_testkit::{Answer, Harness, Session, harness, until};

/// Starts a job that ends with that code, and goes on when it is gone.
fn ending_with(code: u8) -> String {
    format!("(exit {code}) & p=$!; while kill -0 $p 2>/dev/null; do :; done")
}

fn ended(answer: &Answer) -> Vec<Value> {
    answer.json()["jobs_ended"].as_array().cloned().unwrap_or_default()
}

/// The number of the last job that the session has started.
fn pid(s: &Session<'_>) -> Value {
    s.run("echo $p").stdout().trim().parse::<u32>().unwrap().into()
}

#[test]
fn a_job_that_ends_within_its_run_is_told_with_its_status() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        let answer = s.run(ending_with(3)).exits(0).is_kept();
        let (told, pid) = (ended(&answer), pid(&s));
        let job = json!({"pid": pid, "run": 1, "exit_code": 3, "command": "(exit 3)"});
        assert_eq!(told, [job], "{shell}");
        // Once, and it can still be waited for.
        let waited = s.run("wait $p; echo $?").prints("3\n");
        assert!(ended(&waited).is_empty(), "{waited:?}");
        let killed = s.run("sh -c 'kill -9 $$' & while kill -0 $! 2>/dev/null; do :; done");
        assert_eq!(ended(&killed)[0]["exit_code"], 137, "{killed:?}");
        let waited = s.run("(exit 9) & wait $!; echo $?").prints("9\n");
        assert_ne!(ended(&waited)[0]["exit_code"], 127, "{waited:?}");
        // What the text has waited for itself, bash has forgotten.
        let waited = s.run("true & true & wait").exits(0);
        let known = if shell == "bash" { Value::Null } else { json!(0) };
        assert_eq!(ended(&waited)[0]["exit_code"], known, "{waited:?}");
        // The last one that was started; nothing else is a job.
        for text in ["echo 2>&1", "true && true", "(sleep 0 &)", "f() { true & }", "echo $!"] {
            assert!(ended(&s.run(text)).is_empty(), "{shell}: {text}");
        }
    }
}

#[test]
fn a_command_that_is_not_there_is_told_at_once_or_with_the_next_answer() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        let first = s.run("nosuchserver --port 80 &").exits(0).is_kept();
        let mut told = ended(&first);
        until("the job's end to be told", || {
            if told.is_empty() {
                told = ended(&s.run(":"));
            }
            (!told.is_empty()).then_some(())
        });
        assert_eq!(told.len(), 1, "{told:?}");
        let Value::Object(job) = &told[0] else { panic!("{told:?}") };
        assert_eq!((&job["run"], &job["exit_code"]), (&json!(1), &json!(127)), "{shell}");
        assert_eq!(job["command"], "nosuchserver --port 80");
        assert!(ended(&s.run(":")).is_empty(), "twice");
    }
}

#[test]
fn a_job_that_lives_on_is_told_when_it_ends() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        let gate = format!("gate.{shell}");
        let text = format!("mkfifo {gate}; sh -c 'read x <{gate}; exit 7' & p=$!");
        assert!(ended(&s.run(text)).is_empty());
        assert!(ended(&s.run("x=1")).is_empty(), "it lives");
        let pid = pid(&s);
        assert_eq!(s.sessile("jobs").json()[0]["pid"], pid);
        std::fs::write(h.path(&gate), "go\n").unwrap();
        until("the job to end", || s.sessile("jobs").json().as_array()?.is_empty().then_some(()));
        let answer = s.run("false").exits(1);
        let command = format!("sh -c 'read x <{gate}; exit 7'");
        let job = json!({"pid": pid, "run": 1, "exit_code": 7, "command": command});
        assert_eq!(ended(&answer), [job], "{shell}");
        s.run("echo $?").prints("1\n");
        s.run("wait $p; echo $?").prints("7\n");
        let waited = h.sessile(&["wait", s.id(), &answer.run().to_string()]).json();
        assert_eq!(waited["jobs_ended"], answer.json()["jobs_ended"], "on disk, too");
    }
}

#[test]
fn a_job_is_told_in_the_answer_of_the_run_within_which_it_ended() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let gate = format!("gate.{shell}");
        let text = format!("mkfifo {gate}; for i in 1; do read x <{gate}; false; done & p=$!");
        assert!(ended(&s.run(text)).is_empty());
        assert!(ended(&s.run("x=1")).is_empty(), "it lives");
        let text = format!("echo go >{gate}; while kill -0 $p 2>/dev/null; do :; done; false");
        let told = ended(&s.run(text).exits(1).is_kept());
        let code = if shell == "dash" { Value::Null } else { json!(1) };
        let [job] = told.as_slice() else { panic!("{shell}: {told:?}") };
        assert_eq!(job["exit_code"], code, "{shell}");
        assert_eq!(job["command"], format!("for i in 1; do read x <{gate}; false; done"));
        let next = s.run("echo $?").prints("1\n");
        assert!(ended(&next).is_empty(), "twice: {next:?}");
    }
}

#[test]
fn options_of_the_shell_do_not_mind() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        for options in ["set -u", "set -e", "set -eu", "set -x", "set -v", "trap 'echo err' ERR"] {
            if shell == "dash" && options.contains("ERR") {
                continue;
            }
            let s = h.session_of(shell);
            s.run(options);
            s.run("x=1 || false & x=2; ls / >/dev/null 2>&1").exits(0).is_kept();
            let answer = s.run(ending_with(3)).exits(0).is_kept();
            let code = if shell == "dash" { Value::Null } else { json!(3) };
            let told = ended(&answer);
            assert_eq!(told[0]["exit_code"], code, "{shell} {options}: {answer:?}");
            s.run("echo fine $x").prints("fine 2\n").exits(0).is_kept();
        }
    }
}
