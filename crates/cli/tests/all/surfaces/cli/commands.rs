//! What each command answers.

use super::usage::LISTS;
use serde_json::{Value, json};
use sessile_testkit::{Harness, harness, needs};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_four_commands_of_the_issue_answer_exactly() {
    let h = harness!();
    let s = h.session();
    s.run("cd /tmp; x=41; greet() { echo hi; }").prints("").warns("").exits(0);
    s.run("pwd; echo $((x+1)); greet").prints("/tmp\n42\nhi\n");
    s.sessile("end").exits(0);
}

#[test]
fn start_answers_the_id_the_command_the_directory_and_the_status() {
    let h = harness!();
    let started = h.sessile(&["start"]).json();
    assert_eq!(keys(&started), ["session_id", "command", "work_dir", "status"]);
    let id = started["session_id"].as_str().unwrap();
    let hex = id.strip_prefix("sess_").expect("sess_");
    assert!(!hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(started["command"], "bash");
    assert_eq!(started["work_dir"], h.root().to_str().unwrap());
    assert_eq!(started["status"], "active");
}

#[test]
fn start_takes_a_shell_by_name_or_by_path() {
    let h = harness!();
    for (shell, question, answer) in [
        ("bash", "echo ${BASH_VERSION:+bash}", "bash\n"),
        ("sh", "echo sh", "sh\n"),
        ("dash", "readlink /proc/$$/exe", "/usr/bin/dash\n"),
        ("zsh", "echo ${ZSH_VERSION:+zsh}", "zsh\n"),
        ("/bin/bash", "echo ${BASH_VERSION:+bash}", "bash\n"),
        ("/bin/sh", "echo sh", "sh\n"),
    ] {
        if Harness::shells(&[shell.rsplit('/').next().unwrap()]).is_empty() {
            continue;
        }
        let started = h.sessile(&["start", shell]).json();
        assert_eq!(started["command"], shell);
        let id = started["session_id"].as_str().unwrap();
        let answered = h.begin(&["exec", id], question.as_bytes()).finish().json();
        assert_eq!(answered["stdout"], answer, "{shell}");
        assert_eq!(answered["stderr"], "", "{shell}");
    }
}

#[test]
fn start_takes_environment_and_directory() {
    let h = harness!();
    let s = h.session_with(&["--env", "A=1", "--env", "B=two = 2", "--cwd", "/usr"]);
    s.run("echo \"$A|$B\"; env | grep -c '^B=two = 2$'; pwd").prints("1|two = 2\n1\n/usr\n");
    std::fs::create_dir(h.path("below")).unwrap();
    h.session_with(&["--cwd", "below"])
        .run("pwd")
        .prints(&format!("{}/below\n", h.root().display()));
}

#[test]
fn exec_answers_with_every_promised_field() {
    let h = harness!();
    let s = h.session();
    let answer = s.run("echo out; echo err >&2; (exit 7)");
    let answer = answer.prints("out\n").warns("err\n").exits(7).is_kept();
    let found = keys(answer.json());
    for key in ["stdout", "stderr", "exit_code", "execution_time_ms", "run", "kernel"] {
        assert!(found.contains(&key), "{key} is missing in {answer:?}");
    }
    assert!(answer.json()["execution_time_ms"].as_f64().unwrap() >= 0.0);
    assert_eq!([answer.run(), s.run(":").run()], [1, 2]);
}

#[test]
fn exec_takes_the_command_from_stdin_or_from_its_arguments() {
    let h = harness!();
    let s = h.session();
    s.run("echo one\nif true\nthen\n  echo two\nfi\n").prints("one\ntwo\n");
    let given = h.sessile(&["exec", s.id(), "--", "x='a  b'; echo \"$x\""]);
    assert_eq!(given.json()["stdout"], "a  b\n");
    let words = h.sessile(&["exec", s.id(), "--", "echo", "--timeout", "$x"]);
    assert_eq!(words.json()["stdout"], "--timeout a b\n");
    let quoted = h.sessile(&["exec", s.id(), "echo \"$x\"", "--timeout", "5s"]);
    assert_eq!(quoted.json()["stdout"], "a  b\n");
    let unquoted = h.sessile(&["exec", s.id(), "echo", "hi"]).exits(2);
    unquoted.warns("Error: unexpected word 'hi'; quote the command, or put -- before it\n");
    let both = h.sessile(&["exec", s.id(), "echo", "--", "hi"]).exits(2);
    assert!(both.errors().contains("cannot be used with"), "{}", both.errors());
}

#[test]
fn exec_raw_passes_streams_and_exit_code_through() {
    let h = harness!();
    let s = h.session();
    let raw = |text: &str| h.begin(&["exec", s.id(), "--raw"], text.as_bytes()).finish();
    raw("printf out; printf err >&2; (exit 3)").prints("out").warns("err").exits(3);
    raw("kill -9 $BASHPID").exits(137);
    raw("exit 5").exits(5);
    let bytes = raw(r"for i in {0..255}; do printf \\x$(printf %x $i); done").exits(0);
    assert_eq!(bytes.stdout, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn ending_an_ended_session_succeeds_again() {
    let h = harness!();
    let s = h.session();
    let ended = json!({"status": "terminated", "session_id": s.id()});
    assert_eq!(s.sessile("end").json(), ended);
    assert_eq!(s.sessile("end").json(), ended);
    let gone = h.begin(&["exec", s.id()], b"echo hi").finish().exits(1).prints("").errors();
    let at = s.metadata()["ended_at"].as_str().unwrap().to_owned();
    let why = format!("Error: Session {} was ended by request at {at}; start a new one\n", s.id());
    assert_eq!(gone, why);
}

#[test]
fn end_all_ends_every_session() {
    let h = harness!();
    let keepers = [h.session().keeper(), h.session().keeper()];
    let answer = h.sessile(&["end", "--all"]).json();
    assert_eq!(answer["status"], "terminated");
    keepers.iter().for_each(|keeper| keeper.wait_gone());
    assert!(h.list().iter().all(|s| s["status"] == "terminated"));
}

#[test]
fn list_shows_the_newest_first_and_ended_ones_too() {
    let h = harness!();
    h.sessile(&["list"]).exits(0).prints("[]\n").warns("");
    let (first, second) = (h.session(), h.session());
    first.run(":");
    first.end();
    let listed = h.list();
    let ids: Vec<&str> = listed.iter().map(|s| s["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.id(), first.id()]);
    assert_eq!(listed[0]["status"], "active");
    assert_eq!(listed[1]["status"], "terminated");
    assert_eq!(listed[1]["execution_count"], 1);
    for (listed, session) in listed.iter().zip([&second, &first]) {
        for (key, value) in session.metadata().as_object().unwrap() {
            assert_eq!(&listed[key], value, "{key}");
        }
    }
}

#[test]
fn list_shows_a_table_at_a_terminal() {
    let h = harness!();
    let s = h.session();
    let table = h.at_a_terminal(&["list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("SESSION"), "{table}");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words[..3], [s.id(), "active", "bash"]);
}

#[test]
fn state_is_read_from_the_live_kernel_without_disturbing_it() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        s.run("cd /usr; export E='é x'; v=1; alias ll='ls -l'; greet() { echo hi; }; (exit 9)");
        let state = s.state();
        for key in ["working_dir", "env_vars", "functions", "aliases", "variables", "history"] {
            assert!(state.get(key).is_some(), "{shell}: {key} is missing");
        }
        assert_eq!(state["working_dir"], "/usr", "{shell}");
        assert_eq!(state["env_vars"]["E"], "é x", "{shell}");
        assert!(state["env_vars"]["PATH"].is_string(), "{shell}");
        let text = state["functions"].to_string();
        assert!(shell == "dash" || text.contains("greet"), "{shell}: {text}");
        assert_eq!(state["aliases"]["ll"], "ls -l", "{shell}");
        assert!(state["variables"].to_string().contains("\"v\""), "{shell}");
        assert_eq!(state["history"][0]["exit_code"], 9, "{shell}");
        s.run("echo $? $v").prints("9 1\n").is_kept().has("run", 2);
    }
}

#[test]
fn history_tells_what_was_run() {
    let h = harness!();
    let s = h.session();
    for i in 1..=25 {
        s.run(format!("# {i}\n(exit {i})"));
    }
    let history = s.history();
    let history = history.as_array().unwrap();
    assert_eq!(history.len(), 20, "the default limit");
    let newest = &history[19];
    for key in ["run", "timestamp", "command", "language", "exit_code", "duration_ms"] {
        assert!(newest.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(newest["run"], 25);
    assert_eq!(newest["command"], "# 25\n(exit 25)");
    assert_eq!(newest["language"], "bash");
    assert_eq!(newest["exit_code"], 25);
    let two = h.sessile(&["history", s.id(), "--limit", "2"]).json();
    assert_eq!([&two[0]["run"], &two[1]["run"]], [24, 25]);
}

#[test]
fn history_is_kept_up_to_its_maximum() {
    let h = harness!();
    let s = h.session_with(&["--max-history", "3"]);
    for i in 1..=9 {
        s.run(format!("echo {i}"));
    }
    let history = h.sessile(&["history", s.id(), "--limit", "100"]).json();
    let runs: Vec<&Value> = history.as_array().unwrap().iter().map(|e| &e["run"]).collect();
    assert_eq!(runs, [7, 8, 9]);
}

#[test]
fn reset_starts_afresh_under_the_same_id() {
    let h = harness!();
    let s = h.session_with(&["--env", "A=1", "--cwd", "/usr"]);
    let kernel = s.kernel();
    let ask = "pwd; echo $A ${x-unset}; type f 2>/dev/null; umask; echo $-";
    let fresh = s.run(ask);
    s.run("cd /; x=1; A=2; f() { :; }; umask 011; set -f");
    let job = s.spawns("setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!");
    assert_eq!(s.sessile("reset").json()["session_id"].as_str(), Some(s.id()));
    job.wait_gone();
    kernel.wait_gone();
    assert_eq!(s.history(), json!([]));
    s.run(ask).prints(fresh.stdout());
    assert_eq!(s.history().as_array().unwrap().len(), 1);
}

#[test]
fn interrupt_ends_the_running_command_and_keeps_the_state() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    let text = "x=2; echo partial; touch begun; sleep 1000; x=3";
    let client = s.begin(text);
    h.wait_for_file("begun");
    s.sessile("interrupt").exits(0);
    s.answer(client, text).prints("partial\n").exits(130).is_kept().has("timed_out", false);
    s.run("echo $x").prints("2\n");
    s.sessile("interrupt").exits(0);
    s.run("echo $x").prints("2\n").is_kept();
}

#[test]
fn cleanup_removes_ended_sessions_only() {
    let h = harness!();
    let (kept, ended) = (h.session(), h.session());
    let keeper = ended.keeper();
    let guardian = keeper.parent().unwrap();
    ended.end();
    keeper.wait_gone();
    guardian.wait_gone();
    let cleaned = h.sessile(&["cleanup"]).json();
    assert_eq!(cleaned, json!({"cleaned": [ended.id()]}));
    assert!(!ended.dir().exists());
    kept.run("echo still here").prints("still here\n");
    assert_eq!(h.sessile(&["cleanup"]).json(), json!({"cleaned": []}));
    let line = format!("Error: Session {} not found; {LISTS}\n", ended.id());
    ended.sessile("end").exits(1).warns(&line);
}

#[test]
fn cleanup_removes_what_never_became_a_session() {
    let h = harness!();
    let s = h.session();
    let ids = ["sess_0123456789abcdef01234567", "sess_1123456789abcdef01234567"];
    for id in ids {
        std::fs::create_dir_all(h.sessions_dir().join(id).join("workspace")).unwrap();
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    std::fs::File::open(h.sessions_dir().join(ids[0])).unwrap().set_modified(old).unwrap();
    assert_eq!(h.sessile(&["cleanup"]).json(), json!({"cleaned": [ids[0]]}));
    assert!(h.sessions_dir().join(ids[1]).exists(), "somebody may be at it");
    s.run("echo here").prints("here\n").is_kept();
}

#[test]
fn cleanup_removes_a_session_that_was_ended_just_before() {
    let h = harness!();
    for _ in 0..30 {
        let s = h.session();
        s.end();
        assert_eq!(h.sessile(&["cleanup"]).json(), json!({"cleaned": [s.id()]}));
    }
}

#[test]
fn run_passes_the_output_of_each_command_through_and_leaves_nothing() {
    let h = harness!();
    h.sessile(&["run", "x=41", "echo $((x+1)); echo err >&2", "(exit 4)"])
        .prints("42\n")
        .warns("err\n")
        .exits(4);
    h.sessile(&["run", "false", "true"]).prints("").exits(0);
    h.sessile(&["run", "setsid sleep 1000 & echo hi"]).prints("hi\n").exits(0);
    assert_eq!(h.list(), Vec::<Value>::new());
}

#[test]
fn run_joins_the_words_of_a_command_and_takes_it_from_stdin() {
    let h = harness!();
    h.sessile(&["run", "--", "echo", "hi", "--timeout", "there"]).prints("hi --timeout there\n");
    h.sessile(&["run", "x=1", "--", "echo", "$x"]).prints("1\n").exits(0);
    let piped = |args: &[&str], stdin: &str| h.begin(args, stdin.as_bytes()).finish();
    piped(&["run"], "x=41\necho $((x+1))\nexit 3\n").prints("42\n").exits(3);
    piped(&["run", "--shell", "python3"], "print(6 * 7)").prints("42\n").exits(0);
    piped(&["run", "--stdin", "-", "sort"], "b\na\n").prints("a\nb\n").exits(0);
    let none = "Error: No command provided (stdin is empty)\n";
    piped(&["run"], "").prints("").warns(none).exits(1);
    let _ = piped(&["run", "--stdin", "-"], "echo hi").exits(1);
}

#[test]
fn a_script_has_the_stdin_of_run_and_leaves_what_it_does_not_read() {
    let h = harness!();
    let write = |name: &str, text: &str| std::fs::write(h.path(name), text).unwrap();
    let piped = |args: &[&str], stdin: &[u8]| h.begin(args, stdin).finish();
    write("a.py", "import sys; print(sum(len(line) for line in sys.stdin))");
    let much = "line\n".repeat(1 << 20);
    piped(&["run", "a.py"], much.as_bytes()).prints("5242880\n").exits(0);
    piped(&["run", "a.py"], b"").prints("0\n").exits(0);
    piped(&["run", "--sandbox", "full-access", "a.py"], b"in\n").prints("3\n").exits(0);
    write("given", "four");
    piped(&["run", "--stdin", "given", "a.py"], b"more than that").prints("4\n").exits(0);
    write("a.sh", "read x; echo \"$x|$(cat)\"");
    piped(&["run", "a.sh"], b"one\ntwo\nthree\n").prints("one|two\nthree\n").exits(0);
    if needs::has_program("node") {
        write("a.js", "process.stdin.on('data', (d) => process.stdout.write(d))");
        piped(&["run", "a.js"], b"back\n").prints("back\n").exits(0);
    }
    // In a loop that reads from the same pipe.
    write("b.sh", "echo \"$1\"");
    let text = format!(
        "while read -r name; do {:?} run b.sh \"$name\"; done",
        env!("CARGO_BIN_EXE_sessile")
    );
    piped(&["run", "--stdin", "-", &text], b"one\ntwo\n").prints("one\ntwo\n").exits(0);
}

#[test]
fn run_takes_a_script_of_any_language_with_its_arguments() {
    let h = harness!();
    let write = |name: &str, text: &str| std::fs::write(h.path(name), text).unwrap();
    write("a.sh", "echo \"$1|$2|$#\"; ls a.sh; exit 3");
    h.sessile(&["run", "a.sh", "x y", "--", "--z"]).prints("x y|--z|2\na.sh\n").exits(3);
    write(
        "b.py",
        "import sys, threading\n\
         def late(): print('late')\n\
         if __name__ == '__main__':\n    \
             print(sys.argv)\n    \
             threading.Timer(0.1, late).start()\n",
    );
    h.sessile(&["run", "b.py", "it's"]).prints("['b.py', \"it's\"]\nlate\n").exits(0);
    write("tool", "#!/usr/bin/env python3\nraise SystemExit(4)\n");
    h.sessile(&["run", "tool"]).prints("").warns("").exits(4);
    // No script: a command, as ever.
    write("words.txt", "echo no");
    h.sessile(&["run", "cat words.txt", "echo"]).prints("echo no\n").exits(0);
    if needs::has_program("node") {
        write("c.mjs", "setTimeout(() => console.log(process.argv[2]), 10);");
        h.sessile(&["run", "c.mjs", "7"]).prints("7\n").exits(0);
    }
}
