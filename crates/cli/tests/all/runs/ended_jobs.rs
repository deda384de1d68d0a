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
fn a_job_that_was_disowned_has_no_made_up_status() {
    let h = harness!();
    let s = h.session();
    let text = "(exit 9) & disown; while kill -0 $! 2>/dev/null; do :; done";
    let told = ended(&s.run(text).exits(0));
    assert!(told.iter().all(|job| job["exit_code"] != 0), "{told:?}");
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

/// All that is told until that many jobs are, by this answer and later ones.
fn told(s: &Session<'_>, text: &str, count: usize) -> Vec<Value> {
    let mut told = ended(&s.run(text).exits(0).is_kept());
    until("all ends to be told", || {
        if told.len() < count {
            told.extend(ended(&s.run(":").exits(0)));
        }
        (told.len() >= count).then_some(())
    });
    told.sort_by_key(|job| job["pid"].as_u64());
    told
}

#[test]
fn every_job_of_a_run_is_told_with_its_command_and_status() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let text = "nosuchserver --port 80 & sh -c 'kill -9 $$' & (exit 3) & sleep 300 &";
        let jobs = told(&s, text, 3);
        let row = |job: &Value| json!([job["run"], job["command"], job["exit_code"]]);
        let rows: Vec<Value> = jobs.iter().map(row).collect();
        let expected = [
            json!([1, "nosuchserver --port 80", 127]),
            json!([1, "sh -c 'kill -9 $$'", 137]),
            json!([1, "(exit 3)", 3]),
        ];
        assert_eq!(rows, expected, "{shell}");
        // The one that lives is told when it is over, whatever runs then.
        let last = told(&s, "kill $!", 1);
        let expected = json!([1, "sleep 300", 143]);
        assert_eq!(last.iter().map(row).collect::<Vec<_>>(), [expected], "{shell}");
    }
}

#[test]
fn jobs_of_loops_and_functions_are_told() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        let codes = |jobs: Vec<Value>| -> Vec<Value> {
            jobs.into_iter().map(|job| job["exit_code"].clone()).collect()
        };
        let text = "for i in 4 5 6; do (exit $i) & done";
        assert_eq!(codes(told(&s, text, 3)), [4, 5, 6], "{shell}");
        if shell == "dash" {
            std::fs::write(h.path("start.sh"), "(exit 7) &\n").unwrap();
            assert_eq!(codes(told(&s, ". ./start.sh", 1)), [7], "{shell}");
        }
        s.run("f() { (exit 8) & }").exits(0);
        assert_eq!(codes(told(&s, "f", 1)), [8], "{shell}");
    }
}

#[test]
fn what_is_no_job_is_not_told() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh"]) {
        let s = h.session_of(shell);
        for text in ["cat <(exit 3)", "/bin/false; /bin/true", "(exit 4); x=$(exit 5)"] {
            assert!(ended(&s.run(text)).is_empty(), "{shell}: {text}");
        }
        // Nor when a function does it, though jobs are started elsewhere.
        told(&s, "true & f() { cat <(exit 3); }; g() { head -c 1 <(yes) >/dev/null; }", 1);
        for text in ["f", "g", "/bin/true; g"] {
            assert!(ended(&s.run(text)).is_empty(), "{shell}: {text}");
        }
        // Nor when there are jobs beside it.
        let s = h.session_of(shell);
        let first = ending_with(6);
        let text = format!("/bin/false; (exit 5); {first}; x=$(exit 4); {}; true", ending_with(7));
        let codes: Vec<Value> =
            told(&s, &text, 2).iter().map(|job| job["exit_code"].clone()).collect();
        assert_eq!(codes, [6, 7], "{shell}");
    }
}

/// dash forgets the jobs that it has listed, so it is not asked for a list once the
/// user has taken note of a number.
#[test]
fn sh_keeps_the_status_of_a_job_for_a_user_who_keeps_its_number() {
    let h = harness!();
    for shell in Harness::shells(&["dash"]) {
        let s = h.session_of(shell);
        let jobs = told(&s, "(exit 5) & p=$!; while kill -0 $p 2>/dev/null; do :; done", 1);
        assert_eq!(jobs[0].get("exit_code"), None, "{jobs:?}");
        s.run("/bin/true; wait $p; echo $?").prints("5\n");
    }
}

#[test]
fn a_return_trap_does_not_see_the_questions() {
    let h = harness!();
    let count = |text: &str| {
        let s = h.session_of("bash");
        s.run("n=0; trap 'n=$((n+1))' RETURN").exits(0);
        s.run(text).exits(0).is_kept();
        s.run("echo $n").exits(0).stdout().to_owned()
    };
    assert_eq!(count("for i in 1 2 3; do (exit $i) & done"), count("for i in 1 2 3; do :; done"));
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
