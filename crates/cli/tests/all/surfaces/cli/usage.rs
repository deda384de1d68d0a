//! Errors, options and the ways to call the binary.

use rustix::process::Signal;
use sessile_testkit::{Client, Harness, harness};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where to look for a session that was misspelt.
pub(super) const LISTS: &str =
    "`sessile list` shows those of this directory, `sessile list --all` all of yours";

#[test]
fn an_error_is_one_line_on_stderr_and_exit_code_1() {
    let h = harness!();
    let s = h.session();
    let id = s.id();
    for (args, stdin) in [
        (&["exec", "sess_x"][..], "echo hi"),
        (&["end", "sess_0123"], ""),
        (&["state", "../../etc"], ""),
        (&["history", "sess_0123"], ""),
        (&["reset", "sess_0123"], ""),
        (&["interrupt", "sess_x"], ""),
    ] {
        let line = format!("Error: Session {} not found; {LISTS}\n", args[1]);
        h.begin(args, stdin.as_bytes()).finish().exits(1).prints("").warns(&line);
    }
    for (args, stdin, line) in [
        (&["exec", id][..], "", "No command provided (stdin is empty)"),
        (&["exec", id], " \n\t\n", "No command provided (stdin is empty)"),
    ] {
        h.begin(args, stdin.as_bytes())
            .finish()
            .exits(1)
            .prints("")
            .warns(&format!("Error: {line}\n"));
    }
    for (args, stdin, word) in [
        (&["exec", id][..], "echo a\0b", "NUL"),
        (&["start", "fish"], "", "fish"),
        (&["start", "/no/such/bash"], "", "bash"),
        (&["start", "--cwd", "/no/such/directory"], "", "/no/such/directory"),
        (&["start", "--cwd", "/etc/passwd"], "", "/etc/passwd"),
        (&["start", "--sessions-dir", "/proc/none"], "", "/proc/none"),
        (&["run", "--shell", "fish", "true"], "", "fish"),
    ] {
        let output = h.begin(args, stdin.as_bytes()).finish().exits(1).prints("");
        let line = output.errors();
        assert!(line.starts_with("Error: "), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        assert!(line.contains(word), "{args:?}: {line}");
    }
    assert_eq!(h.list().len(), 1, "a session that did not start is left");
    s.run("echo unharmed").prints("unharmed\n").has("run", 1);
}

#[test]
fn commands_that_print_json_anyway_accept_the_option() {
    let h = harness!();
    let started = h.begin(&["start", "--json"], b"").finish().exits(0);
    let started: serde_json::Value = serde_json::from_str(&started.text()).unwrap();
    let id = started["session_id"].as_str().unwrap();
    let ended = h.begin(&["end", id, "--json"], b"").finish().exits(0);
    let ended: serde_json::Value = serde_json::from_str(&ended.text()).unwrap();
    assert_eq!(ended["status"], "terminated");
}

#[test]
fn wrong_usage_is_one_line_on_stderr_and_exit_code_2() {
    let h = harness!();
    for args in [
        &["frobnicate"][..],
        &["exec"],
        &["end"],
        &["start", "--idle-timeout", "soon"],
        &["start", "--env", "NOVALUE"],
        &["start", "--no-such-option"],
        &["exec", "sess_0123", "--max-output", "big"],
        &["exec", "sess_0123", "--timeout", "-1s"],
        &["history", "sess_0123", "--limit", "many"],
        &["run", "--no-such-option"],
    ] {
        let output = h.sessile(args).exits(2).prints("");
        let line = output.errors();
        assert!(line.starts_with("Error: "), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    }
    let limit = h.sessile(&["history", "sess_0123", "--limit", "many"]).errors();
    assert!(limit.contains("a whole number is wanted; see --help"), "{limit}");
}

#[test]
fn what_is_not_there_is_told_with_where_to_look() {
    let h = harness!();
    let s = h.session();
    let refused = |args: &[&str]| h.sessile(args).exits(1).errors();
    let runs = "Error: the session has had no run 99; `sessile runs` lists those that are kept\n";
    assert_eq!(refused(&["output", s.id(), "99"]), runs);
    assert_eq!(refused(&["wait", s.id(), "99"]), runs);
    assert_eq!(refused(&["signal", s.id(), "99", "TERM"]), runs);
    let jobs = refused(&["signal", s.id(), "--job", "1", "TERM"]);
    assert!(jobs.ends_with("; `sessile jobs` lists those that there are\n"), "{jobs}");
    let tokens = refused(&["token", "revoke", "nobody"]);
    assert!(tokens.contains("`sessile token list`"), "{tokens}");
}

#[test]
fn times_and_sizes_are_taken_as_people_write_them() {
    let h = harness!();
    for times in [["500ms", "30s"], ["5m", "1s"], ["2h", "0"]] {
        let options = ["--idle-timeout", times[0], "--command-timeout", times[1]];
        h.session_with(&options).run("echo hi").prints("hi\n");
    }
    let s = h.session();
    for size in ["100", "64KiB", "8MiB"] {
        s.run_with(&["--max-output", size, "--timeout", "5m"], "echo hi").prints("hi\n");
    }
}

#[test]
fn the_sessions_directory_is_an_option_a_variable_or_dot_sessions() {
    let h = harness!();
    let plain = |args: &[&str]| {
        let mut command = h.command(args);
        command.env_remove("SESSILE_SESSIONS_DIR");
        Client::spawn(command, b"").finish()
    };
    let started = plain(&["start"]).json();
    let id = started["session_id"].as_str().unwrap();
    assert!(h.path(".sessions").join(id).join("metadata.json").exists());
    let exec = |args: &[&str]| plain(&[&["exec", id], args, &["--", "echo hi"]].concat());
    assert_eq!(exec(&[]).json()["stdout"], "hi\n");
    assert_eq!(exec(&["--sessions-dir", ".sessions"]).json()["run"], 2);
    let option = h.path(".sessions");
    let before = ["--sessions-dir", option.to_str().unwrap(), "list"];
    assert_eq!(h.sessile(&before).json()[0]["session_id"], id);
    exec(&["--sessions-dir", "elsewhere"]).exits(1).warns(&format!(
        "Error: Session {id} is in another sessions directory; give --sessions-dir {}\n",
        option.display()
    ));
    plain(&["end", id]).exits(0);
}

#[test]
fn linked_under_another_name_it_takes_the_same_commands() {
    let h = harness!();
    let link = h.path("agent-shell");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sessile"), &link).unwrap();
    let linked = |args: &[&str]| {
        let mut command = h.command(args);
        let mut renamed = Command::new(&link);
        renamed.args(args).current_dir(h.root());
        renamed.envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
        command = renamed;
        Client::spawn(command, b"").finish()
    };
    let id = linked(&["start"]).json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(linked(&["exec", &id, "--", "echo hi"]).json()["stdout"], "hi\n");
    assert_eq!(h.sessile(&["exec", &id, "--", "echo hi"]).json()["run"], 2);
    linked(&["exec", "sess_x"])
        .exits(1)
        .warns(&format!("Error: Session sess_x not found; {LISTS}\n"));
    assert_eq!(linked(&["end", &id]).json()["status"], "terminated");
}

#[test]
fn ctrl_c_in_a_waiting_exec_interrupts_the_command() {
    let h = harness!();
    let s = h.session();
    let text = "x=1; echo partial; touch begun; sleep 1000; x=2";
    let client = s.begin_with(&["--timeout", "0"], text);
    h.wait_for_file("begun");
    client.wait_blocked().process().signal(Signal::INT);
    s.answer(client, text).prints("partial\n").exits(130).has("interrupted", true);
    s.run("echo $x").prints("1\n").is_kept();
}

#[test]
fn ctrl_c_in_a_raw_exec_interrupts_the_command() {
    let h = harness!();
    let s = h.session();
    let options = ["--raw", "--timeout", "0"];
    let client = s.begin_with(&options, "echo partial; touch begun; sleep 1000");
    h.wait_for_file("begun");
    client.wait_blocked().process().signal(Signal::INT);
    client.finish().prints("partial\n").warns("").exits(130);
}

#[test]
fn ctrl_c_is_heard_whatever_the_client_is_doing() {
    let h = harness!();
    let s = h.session();
    for round in 0..5 {
        let text = format!("touch begun{round}; while :; do echo line; done");
        let client = s.begin_with(&["--raw", "--timeout", "0"], text);
        h.wait_for_file(&format!("begun{round}"));
        client.process().signal(Signal::INT);
        let _ = client.finish().exits(130);
    }
}

#[test]
fn an_exec_that_is_started_in_the_background_of_a_script_works() {
    let h = harness!();
    let s = h.session();
    let mut command =
        h.command(&["exec", s.id(), "--", "trap - INT; echo hi; sh -c 'kill -INT $$'"]);
    // SAFETY: only a system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            Ok(())
        });
    }
    let answer = Client::spawn(command, b"").finish().json();
    assert_eq!(answer["stdout"], "hi\n");
    assert_eq!(answer["exit_code"], 130);
}

/// The names of all commands, from the help.
fn commands(h: &Harness) -> Vec<String> {
    let help = h.sessile(&["--help"]).exits(0).text();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.map_while(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_an_example_and_a_manual_page() {
    let h = harness!();
    let all = commands(&h);
    assert!(all.len() >= 20, "{all:?}");
    let top = h.sessile(&["man"]).exits(0).warns("").text();
    assert!(top.contains(".TH sessile 1"), "{top}");
    for name in all {
        let help = h.sessile(&[&name, "--help"]).exits(0).text();
        assert!(help.contains("\nExample"), "{name} has no example:\n{help}");
        let page = h.sessile(&["man", &name]).exits(0).warns("").text();
        assert!(page.contains(&format!(".TH sessile-{name} 1")), "{page}");
        assert!(top.contains(&format!("sessile\\-{name}(1)")), "{name} is not in {top}");
    }
    h.sessile(&["man", "frobnicate"]).exits(1).prints("");
}

#[test]
fn shells_take_the_completions() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "fish"]) {
        let script = h.sessile(&["completions", shell]).exits(0).warns("").text();
        std::fs::write(h.path("script"), &script).unwrap();
        let checked = Command::new(shell).args(["-n", "script"]).current_dir(h.root()).output();
        let checked = checked.unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{shell}: {checked:?}");
    }
    h.sessile(&["completions", "csh"]).exits(2);
}
