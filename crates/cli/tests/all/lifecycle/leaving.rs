//! The end of sessions, keepers and clients: what is left, and what is not.

use rustix::process::Signal;
use sessile_testkit::{Client, Harness, Process, Session, harness, until};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

const ALL: &[&str] = &["bash", "zsh", "dash"];

/// Processes that try to stay, each started by a command that prints its id.
const CLINGING: &[&str] = &[
    "sleep 1000 & echo $!",
    "nohup sleep 1000 >/dev/null 2>&1 & echo $!",
    "setsid sleep 1000 & echo $!",
    "(setsid sh -c 'echo $$; exec sleep 1000' &)",
    "setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 1000\" &)'",
    "env -i setsid sleep 1000 & echo $!",
    "sh -c 'trap \"\" TERM HUP INT; echo $$; while :; do sleep 1; done' &\n until :; do :; done",
    "sh -c 'echo $$; kill -STOP $$' & sleep 0.05",
];

fn clinging(s: &Session<'_>) -> Vec<Process> {
    let mut found: Vec<Process> = CLINGING
        .iter()
        .map(|text| {
            // In the background the id may be written after the answer.
            let file = format!("pid.{}", s.id());
            s.run(format!("{{ {text}\n}} >{file}"));
            let path = s.run("pwd").stdout().trim().to_owned();
            let pid = until("a process id", || {
                let text = std::fs::read_to_string(format!("{path}/{file}")).ok()?;
                text.ends_with('\n').then(|| text.trim().parse().unwrap())
            });
            let process = Process::of(pid);
            process.assert_alive();
            process
        })
        .collect();
    found.push(s.kernel());
    found
}

#[track_caller]
fn all_gone(processes: &[Process]) {
    processes.iter().for_each(Process::wait_gone);
}

#[test]
fn ending_a_session_leaves_no_process() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        let processes = clinging(&s);
        let keeper = s.keeper();
        let guardian = keeper.parent().unwrap();
        s.end();
        for process in &processes {
            assert!(!process.is_alive(), "{shell}: {process} outlives the answer");
        }
        all_gone(&processes);
        all_gone(&[keeper, guardian]);
    }
    assert!(h.processes().is_empty(), "{:?}", h.processes());
}

#[test]
fn the_idle_timeout_leaves_no_process() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "1s", "--idle-without-runs"]);
    let processes = clinging(&s);
    let keeper = s.keeper();
    all_gone(&processes);
    all_gone(&[keeper]);
    assert_eq!(s.metadata()["status"], "terminated");
    s.sessile("end").exits(0);
}

#[test]
fn a_session_is_not_idle_while_it_runs_something() {
    let h = harness!();
    let s = h.session_with(&["--idle-timeout", "2s"]);
    s.run("sleep 2.5; echo done").prints("done\n");
    s.run("x=1; sleep 2.5; exit 3").exits(3).is_restarted();
    s.run("echo $x").prints("1\n");
    s.keeper().wait_gone();
}

/// What a keeper and its guardian would have cleared away, had nobody killed
/// them both. A session that was started in the other is not part of it.
#[test]
fn ending_a_session_that_was_killed_leaves_nothing() {
    let h = harness!();
    let s = h.session();
    let started = "setsid sleep 1000 & echo $!; (nohup sleep 1000 >/dev/null 2>&1 & echo $!)";
    let started = s.run(started).exits(0).stdout().to_owned();
    let started: Vec<Process> =
        started.lines().map(|pid| Process::of(pid.parse().unwrap())).collect();
    let inner = h.command(&["start"]).env("SESSILE_SESSION_ID", s.id()).output().unwrap();
    let inner: serde_json::Value = serde_json::from_slice(&inner.stdout).unwrap();
    let inner = h.session_called(inner["session_id"].as_str().unwrap());
    inner.run("x=1").exits(0);
    let kernel = s.kernel();
    let keeper = s.keeper();
    let guardian = keeper.parent().unwrap();
    guardian.kill();
    keeper.kill();
    all_gone(&[guardian, keeper, kernel]);
    for process in &started {
        process.assert_alive();
    }
    s.end();
    all_gone(&started);
    assert!(!s.memory().exists(), "{} is left", s.memory().display());
    assert_eq!(s.metadata()["status"], "terminated");
    inner.run("echo $x").prints("1\n").is_kept();
}

#[test]
fn the_death_of_a_keeper_leaves_no_process() {
    let h = harness!();
    for signal in [Signal::KILL, Signal::ABORT, Signal::TERM] {
        let s = h.session();
        let processes = clinging(&s);
        let keeper = s.keeper();
        let guardian = keeper.parent().unwrap();
        keeper.signal(signal).wait_gone();
        all_gone(&processes);
        guardian.wait_gone();
        assert!(h.processes().is_empty(), "{:?}", h.processes());
        s.end();
    }
}

/// A process that was killed still has its sockets for a moment: whoever looks,
/// or asks, is not to be deceived by that.
#[test]
fn a_keeper_that_was_killed_this_very_moment_is_gone() {
    let h = harness!();
    for round in 0..10 {
        let s = h.session();
        s.run("x=1");
        s.wait_captured(1);
        s.keeper().kill();
        if round % 2 == 0 {
            assert_eq!(h.list()[0]["status"], "lost");
        }
        let answer = s.run("x=$((x+1)); echo $x").prints("2\n").is_restored_as_of(1);
        assert!(answer.notes().contains("keeper had died"), "{answer:?}");
        s.keeper().kill();
        s.sessile("end").exits(0);
        assert_eq!(h.list()[0]["status"], "terminated");
    }
}

#[test]
fn many_sessions_are_listed_with_the_truth_about_each() {
    let h = harness!();
    let sessions: Vec<_> = (0..12).map(|_| h.session()).collect();
    for s in sessions.iter().step_by(3) {
        s.keeper().kill();
    }
    let mut listed = h.list();
    listed.reverse();
    let statuses = listed.iter().map(|row| row["status"].as_str().unwrap());
    let lost = statuses.filter(|status| *status == "lost").count();
    assert_eq!((listed.len(), lost), (12, 4));
}

#[test]
fn a_session_whose_keeper_died_is_lost_and_goes_on_from_its_last_state() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("x=1; cd /usr; greet() { echo hi; }; export E=e");
        s.run("x=2");
        s.wait_captured(2);
        s.keeper().kill().wait_gone();
        let listed = h.list();
        let listed = listed.iter().find(|l| l["session_id"] == s.id()).unwrap();
        assert_eq!(listed["status"], "lost", "{shell}");
        assert_eq!(s.history().as_array().unwrap().len(), 2);
        let greet = if shell == "dash" { "echo hi" } else { "greet" };
        let answer = s.run(format!("echo $x; {greet}; pwd; echo $E"));
        let answer = answer.prints("2\nhi\n/usr\ne\n").is_restored_as_of(2);
        assert!(answer.json()["notes"][0].is_string(), "it says so: {answer:?}");
        assert_eq!(answer.run(), 3, "numbers go on");
        assert_eq!(s.metadata()["status"], "active");
        s.run("echo $x").prints("2\n").is_kept();
        assert_eq!(s.history().as_array().unwrap().len(), 4);
        s.end();
    }
}

#[test]
fn a_client_that_waits_when_the_keeper_dies_is_told() {
    let h = harness!();
    let s = h.session();
    let client = s.begin("touch begun; sleep 1000");
    h.wait_for_file("begun");
    s.keeper().kill();
    let output = client.finish().exits(1).prints("");
    assert!(output.errors().starts_with("Error: "), "{output:?}");
    assert_eq!(output.errors().lines().count(), 1, "{output:?}");
}

#[test]
fn a_session_without_its_guardian_ends_as_well() {
    let h = harness!();
    let s = h.session();
    let processes = clinging(&s);
    s.keeper().parent().unwrap().kill().wait_gone();
    s.run("echo hi").prints("hi\n");
    s.end();
    all_gone(&processes);
}

#[test]
fn the_end_is_graceful_first() {
    let h = harness!();
    for shell in Harness::shells(ALL) {
        let s = h.session_of(shell);
        s.run("trap 'echo exit >exit-trap' EXIT");
        s.run("sh -c 'trap \"echo term >term-trap; exit\" TERM; echo >ready; while :; do sleep 0.02; done' &");
        h.wait_for_file("ready");
        s.end();
        for (file, text) in [("exit-trap", "exit\n"), ("term-trap", "term\n")] {
            let said = std::fs::read_to_string(h.path(file)).unwrap_or_default();
            assert_eq!(said, text, "{shell}: {file}");
            std::fs::remove_file(h.path(file)).unwrap();
        }
        std::fs::remove_file(h.path("ready")).unwrap();
    }
}

#[test]
fn a_running_command_does_not_keep_its_session_from_ending() {
    let h = harness!();
    for hang in ["sleep 1000", "while :; do :; done", "trap '' INT TERM; while :; do :; done"] {
        let s = h.session();
        let client = s.begin(format!(": >begun; {hang}"));
        h.wait_for_file("begun");
        s.end();
        let output = client.finish().exits(1).prints("");
        assert_eq!(output.errors().lines().count(), 1, "{output:?}");
        std::fs::remove_file(h.path("begun")).unwrap();
    }
}

#[test]
fn orphans_leave_no_zombie_while_the_session_lives() {
    let h = harness!();
    let s = h.session();
    let orphans: Vec<Process> = (0..5)
        .map(|i| {
            s.run(format!("(sh -c 'echo $$ >orphan{i}; exec cat' <>fifo &) 2>/dev/null; :"));
            Process::of(h.wait_for_line(&format!("orphan{i}")).parse().unwrap())
        })
        .collect();
    for orphan in orphans {
        orphan.kill().wait_gone();
    }
    s.run("echo hi").prints("hi\n").is_kept();
}

#[test]
fn a_run_outlives_its_client() {
    let h = harness!();
    // Not SIGHUP: under nohup it is ignored, by the client as well.
    for (round, signal) in [Signal::KILL, Signal::TERM].into_iter().enumerate() {
        let s = h.session();
        s.run("mkfifo -m 600 gate 2>/dev/null; :");
        let client = s.begin(format!("touch begun{round}; cat gate >/dev/null; x=done; (exit 5)"));
        h.wait_for_file(&format!("begun{round}"));
        let process = client.process();
        process.signal(signal).wait_ended();
        let _ = client.finish();
        std::fs::write(h.path("gate"), "go\n").unwrap();
        s.run("echo $x $?").prints("done 5\n").is_kept();
        let history = s.history();
        assert_eq!(history[1]["exit_code"], 5);
        assert_eq!(s.metadata()["execution_count"], 3);
    }
}

#[test]
fn a_second_ctrl_c_leaves_and_the_command_is_interrupted_all_the_same() {
    let h = harness!();
    let s = h.session();
    let client = s.begin("x=1; touch begun; sh -c 'trap \"\" INT; exec sleep 1000'");
    h.wait_for_file("begun");
    client.process().signal(Signal::INT).signal(Signal::INT).wait_ended();
    let _ = client.finish();
    s.run("echo $x").prints("1\n").is_kept();
}

#[test]
fn a_reader_that_closes_the_pipe_harms_nothing() {
    let h = harness!();
    let s = h.session();
    for raw in [&[][..], &["--raw"]] {
        let args = [&["exec", s.id()], raw, &["--", "seq 100000; x=set"]].concat();
        let mut command = h.command(&args);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        s.run("echo $x; unset x").prints("set\n").is_kept();
    }
}

#[test]
fn the_death_of_the_process_group_that_started_it_does_not_end_a_session() {
    let h = harness!();
    let mut command = h.command(&["start"]);
    command.process_group(0);
    let client = Client::spawn(command, b"");
    let group = rustix::process::Pid::from_raw(client.process().pid()).unwrap();
    let started = client.finish().json();
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let id = started["session_id"].as_str().unwrap();
    let answer = h.sessile(&["exec", id, "--", "echo hi"]).json();
    assert_eq!(answer["stdout"], "hi\n");
}

#[test]
fn a_session_holds_none_of_its_starters_descriptors() {
    let h = harness!();
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
    let s = h.session();
    drop(writer);
    // Only when nobody holds the other side any more does a pipe end.
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).unwrap();
    until("the end of the pipe", || {
        (rustix::io::read(&reader, &mut [0_u8; 1]) == Ok(0)).then_some(())
    });
    s.run("echo hi").prints("hi\n");
}

/// As `rm -rf` does, until it succeeds: the keeper may just be writing there.
fn delete(directory: &std::path::Path) {
    until("a directory to be deleted", || {
        let _ = std::fs::remove_dir_all(directory);
        (!directory.exists()).then_some(())
    });
}

#[test]
fn a_keeper_whose_directory_was_deleted_ends_with_all_that_it_started() {
    let h = harness!();
    let s = h.session();
    let job = s.spawns("sleep 1000 >/dev/null & echo $!");
    let kernel = s.kernel();
    let keeper = s.keeper();
    let guardian = keeper.parent().unwrap();
    // Deletions in it are nothing special.
    std::fs::write(s.dir().join("note"), "").unwrap();
    std::fs::remove_file(s.dir().join("note")).unwrap();
    s.run(":").is_kept();
    delete(h.sessions_dir());
    all_gone(&[job, kernel, keeper, guardian]);
    assert!(!s.memory().exists());
    assert!(!h.sessions_dir().exists(), "it was made again");
}

#[test]
fn a_fork_whose_directory_was_deleted_ends_and_the_others_go_on() {
    let h = harness!();
    let s = h.session();
    s.run("x=1").exits(0);
    let forks = [s.fork(), s.fork()];
    let jobs = [&s, &forks[0], &forks[1]].map(|s| s.spawns("sleep 1000 >/dev/null & echo $!"));
    let keeper = s.keeper();
    delete(&forks[0].dir());
    jobs[1].wait_gone();
    // The original's own, while its fork lives on in the same process.
    delete(&s.dir());
    jobs[0].wait_gone();
    keeper.assert_alive();
    jobs[2].assert_alive();
    forks[1].run("echo $x").prints("1\n").is_kept();
    forks[1].end();
    all_gone(&[keeper]);
}
