//! What runs leave behind in the background: listed, followed, signalled.

use serde_json::json;
use sessile_protocol::{Answer, Code, Exec, Job, JobState, Language, Request, RunNo, Until};
use sessile_testkit::{Harness, Link, Process, harness, order, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

const SHELLS: [&str; 3] = ["bash", "zsh", "dash"];

#[track_caller]
fn jobs(link: &mut Link) -> Vec<Job> {
    match link.call(Request::Jobs) {
        Ok(Answer::Jobs(view)) => view.jobs,
        other => panic!("no jobs: {other:?}"),
    }
}

/// Waits until a job is as it should be.
#[track_caller]
fn job(link: &mut Link, what: &str, is_it: impl Fn(&Job) -> bool) -> Job {
    until(what, || jobs(link).into_iter().find(|job| is_it(job)))
}

#[track_caller]
fn signal(link: &mut Link, pid: u32, signal: i32) -> u64 {
    match link.call(Request::SignalJob { pid, signal }) {
        Ok(Answer::Signalled { processes }) => processes,
        other => panic!("not signalled: {other:?}"),
    }
}

fn process(pid: u32) -> Process {
    Process::of(pid.cast_signed())
}

/// The number that a run has printed.
fn printed(done: &sessile_protocol::Completed) -> u32 {
    String::from_utf8_lossy(&done.stdout.head).trim().parse().unwrap()
}

#[test]
fn a_server_is_listed_with_its_port_and_its_log_can_be_followed() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let started = s.run("python3 -um http.server 0 --bind 127.0.0.1 & echo $!");
        let pid = started.stdout().trim().parse::<u64>().unwrap();
        let server = until("a port", || {
            let jobs = s.sessile("jobs").json();
            let jobs = jobs.as_array().unwrap();
            assert!(jobs.len() <= 1, "{jobs:?}");
            jobs.first().filter(|job| job["ports"] != json!([])).cloned()
        });
        assert_eq!((&server["pid"], &server["run"]), (&json!(pid), &json!(1)));
        assert!(
            server["command"].as_str().unwrap().ends_with("-um http.server 0 --bind 127.0.0.1")
        );
        assert_eq!((&server["state"], &server["processes"]), (&json!("running"), &json!(1)));
        assert!(server["memory_bytes"].as_u64() > Some(1 << 20), "{server}");
        assert!(server["cpu_ms"].as_u64() > Some(0), "{server}");
        let port = &server["ports"][0];
        assert_eq!((&port["protocol"], &port["address"]), (&json!("tcp"), &json!("127.0.0.1")));
        let number = u16::try_from(port["port"].as_u64().unwrap()).unwrap();
        let follower = h.begin(&["output", s.id(), "1", "--follow"], b"");
        let mut client = TcpStream::connect(("127.0.0.1", number)).unwrap();
        client.write_all(b"GET /here HTTP/1.0\r\n\r\n").unwrap();
        client.read_to_end(&mut Vec::new()).unwrap();
        until("the log", || {
            let read = h.sessile(&["output", s.id(), "1"]).json();
            read["stderr"].as_str().unwrap().contains("GET /here").then_some(())
        });
        let told = h.sessile(&["signal", s.id(), "--job", &pid.to_string(), "TERM"]).json();
        assert_eq!(told, json!({"pid": pid, "processes": 1}));
        // It was the last that could write: there is nothing more to follow.
        let followed = follower.finish();
        assert!(followed.errors().contains("GET /here"), "{followed:?}");
        until("no jobs", || (s.sessile("jobs").json() == json!([])).then_some(()));
    }
}

#[test]
fn a_daemon_that_has_left_its_parents_is_listed() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let mut link = s.link();
        link.complete(order(":"));
        // The run goes on until the daemon is there.
        let text = "(setsid sh -c 'sleep 1000 & echo $! >daemon' >/dev/null 2>&1 &); \
                    until [ -s daemon ]; do sleep 0.01; done";
        let run = link.complete(order(text)).run;
        let pid: u32 = h.wait_for_line("daemon").parse().unwrap();
        let daemon = job(&mut link, "a daemon", |job| job.command == "sleep 1000");
        assert_eq!((daemon.pid, daemon.state), (pid, JobState::Running), "{shell}");
        assert_eq!(daemon.run, Some(run), "{shell}: {daemon:?}");
        let keeper = s.keeper().pid();
        until("its adoption", || (process(pid).parent()?.pid() == keeper).then_some(()));
        assert_eq!(signal(&mut link, pid, libc::SIGKILL), 1);
        process(pid).wait_gone();
        std::fs::remove_file(h.path("daemon")).unwrap();
    }
}

/// Where the system does not tell numbers, runs of the same hundredth of a
/// second cannot be told apart.
fn is_of(job: &Job, run: RunNo) -> bool {
    let is_told = Path::new("/proc/sys/kernel/ns_last_pid").exists();
    job.run == Some(run) || (job.run.is_none() && !is_told)
}

#[test]
fn each_job_is_of_the_run_that_started_it() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let mut link = s.link();
        let mut started = Vec::new();
        for text in [
            "sleep 1000 & echo $!",
            "sleep 1000 >/dev/null 2>&1 & echo $!",
            "(sleep 1000; :) >/dev/null 2>&1 & echo $!",
            "sleep 1000 2>/dev/null & echo $!",
        ]
        .repeat(3)
        {
            let done = link.complete(order(text));
            started.push((printed(&done), done.run));
        }
        let found = until("all of them", || {
            let found = jobs(&mut link);
            (found.len() == started.len()).then_some(found)
        });
        for (pid, run) in started {
            let job = found.iter().find(|job| job.pid == pid).unwrap();
            assert!(is_of(job, run), "{shell}: {run} in {found:?}");
            assert_eq!(job.language, s.metadata()["language"].as_str().unwrap().parse().ok());
        }
    }
}

#[test]
fn the_run_of_a_job_is_known_after_many_others() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let done = link.complete(order("sleep 1000 >/dev/null 2>&1 & echo $!"));
    let pid = printed(&done);
    for _ in 0..700 {
        link.complete(order("x=1"));
    }
    let left = job(&mut link, "the job", |job| job.pid == pid);
    assert!(is_of(&left, done.run), "{left:?}");
    // The shell itself may be another by now.
    link.complete(order("exec true"));
    let left = job(&mut link, "the job", |job| job.pid == pid);
    assert!(is_of(&left, done.run), "{left:?}");
}

#[test]
fn a_tree_is_one_job_and_a_signal_reaches_all_of_it() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let mut link = s.link();
        let done = link.complete(order("sh -c 'sleep 1000; :' & echo $!"));
        let root = printed(&done);
        let tree = job(&mut link, "a tree", |job| job.processes == 2);
        assert_eq!((tree.pid, tree.run), (root, Some(done.run)), "{shell}");
        assert_eq!(tree.command, "sh -c sleep 1000; :");
        // A shell that waits for its child to become another program, and that
        // child is stopped, is not stopped itself.
        let members = until("both programs", || {
            let mut members = h.processes();
            members.retain(|process| process.to_string().contains("sleep 1000"));
            let is_program = |process: &Process| process.to_string().contains("(sleep 1000;");
            (members.len() == 2 && members.iter().any(is_program)).then_some(members)
        });
        assert_eq!(signal(&mut link, root, libc::SIGSTOP), 2);
        job(&mut link, "a stopped job", |job| job.state == JobState::Stopped);
        for member in &members {
            until("its stop", || member.entry().status("State:")?.starts_with('T').then_some(()));
        }
        assert_eq!(signal(&mut link, root, libc::SIGCONT), 2);
        job(&mut link, "a running job", |job| job.state == JobState::Running);
        assert_eq!(signal(&mut link, root, libc::SIGTERM), 2);
        members.iter().for_each(Process::wait_ended);
        until("no jobs", || jobs(&mut link).is_empty().then_some(()));
    }
}

#[test]
fn a_part_of_a_job_can_be_signalled_alone() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    link.complete(order("(sh -c 'echo $$ >inner; sleep 1000; :'; echo next) & :"));
    let inner: u32 = h.wait_for_line("inner").parse().unwrap();
    let tree = job(&mut link, "a tree", |job| job.processes == 3);
    assert_eq!(tree.command, "(fork of bash) sh -c echo $$ >inner; sleep 1000; :");
    assert_ne!(tree.pid, inner);
    assert_eq!(signal(&mut link, inner, libc::SIGTERM), 2);
    s.wait_filed(1, "stdout", "next\n");
    until("no jobs", || jobs(&mut link).is_empty().then_some(()));
}

#[test]
fn python_and_node_leave_jobs_too() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    for (language, text) in [
        (Language::Python, "import subprocess as s; p = s.Popen(['sleep', '1000']); print(p.pid)"),
        (
            Language::Python,
            "n = s.DEVNULL; p = s.Popen(['sleep', '1000'], stdout=n, stderr=n, start_new_session=True); print(p.pid)",
        ),
        (
            Language::Node,
            "console.log(require('child_process').spawn('sleep', ['1000'], {stdio: 'ignore'}).pid)",
        ),
    ] {
        let done = link.complete(Exec { language: Some(language), ..order(text) });
        let pid = printed(&done);
        let left = job(&mut link, "the job", |job| job.pid == pid);
        assert!(is_of(&left, done.run), "{left:?}");
        assert_eq!(left.language, Some(language));
        assert_eq!(signal(&mut link, pid, libc::SIGKILL), 1);
    }
    // What has ended is no job, also while nobody has taken note of it.
    until("no jobs", || jobs(&mut link).is_empty().then_some(()));
}

#[test]
fn what_a_run_waits_for_is_no_job_but_what_it_leaves_is() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let mut link = s.link();
        let earlier = link.complete(order("sleep 1000 & echo $!"));
        let text = "sleep 1001 & echo >begun; sleep 1002";
        let run = link.accept(Exec { until: Until::Accepted, ..order(text) });
        h.wait_for_file("begun");
        let left = job(&mut link, "a background job", |job| job.command == "sleep 1001");
        assert_eq!(left.run, Some(run), "{shell}");
        let foreground = until("the foreground", || {
            h.processes().into_iter().find(|p| p.to_string().contains("sleep 1002;"))
        });
        let listed: Vec<u32> = jobs(&mut link).iter().map(|job| job.pid).collect();
        assert_eq!(listed, [printed(&earlier), left.pid], "{shell}");
        let pid = foreground.pid().cast_unsigned();
        let refusal = link.refusal(Request::SignalJob { pid, signal: libc::SIGTERM });
        assert_eq!(refusal.code, Code::JobNotFound);
        link.call(Request::Interrupt { run: Some(run), call: None }).unwrap();
        link.result(run);
        assert_eq!(jobs(&mut link).len(), 2, "{shell}");
        std::fs::remove_file(h.path("begun")).unwrap();
        s.end();
    }
}

#[test]
fn nothing_of_ours_is_ever_listed() {
    let h = harness!();
    for shell in Harness::shells(&SHELLS) {
        let s = h.session_of(shell);
        let (mut link, mut other) = (s.link(), s.link());
        link.complete(order("i=0; while [ $i -lt 300 ]; do eval v$i=x; i=$((i+1)); done"));
        // Captures are made in idle time, and take a moment: asked for without
        // a pause, these are seen at every stage.
        for _ in 0..20 {
            let run = link.complete(order("x=1")).run;
            for _ in 0..50 {
                assert_eq!(jobs(&mut other), [], "{shell}, after {run}");
            }
        }
        let state = link.send(Request::State);
        assert_eq!(jobs(&mut other), [], "{shell}");
        link.reply(state).unwrap();
    }
}

#[test]
fn a_signal_to_a_run_that_has_ended_goes_to_what_it_has_left() {
    let h = harness!();
    let s = h.session();
    let one = s.spawns("sleep 1000 & echo $!");
    let other = s.spawns("sleep 1000 & echo $!");
    let told = h.sessile(&["signal", s.id(), "1", "TERM"]).json();
    assert_eq!(told, json!({"run": 1, "processes": 1}));
    one.wait_ended();
    other.assert_alive();
    let refused = |args: &[&str], words: &str| {
        let refused = h.sessile(&[&["signal", s.id()], args].concat()).exits(1);
        assert!(refused.errors().contains(words), "{refused:?}");
    };
    until("its end", || (jobs(&mut s.link()).len() == 1).then_some(()));
    refused(&["1", "TERM"], "run 1 has finished and has left nothing to signal");
    refused(&["7", "TERM"], "run 7");
    for pid in [1, std::process::id().cast_signed(), s.keeper().pid(), s.kernel().pid(), one.pid()]
    {
        refused(&["--job", &pid.to_string(), "TERM"], "is not a job of this session");
    }
    h.sessile(&["signal", s.id(), "TERM"]).exits(2);
    h.sessile(&["signal", s.id(), "1", "--job", "1", "TERM"]).exits(2);
    other.assert_alive();
    s.kernel().assert_alive();
}

#[test]
fn a_reset_or_an_end_leaves_no_jobs() {
    let h = harness!();
    let s = h.session();
    let first = s.spawns("sleep 1000 & echo $!");
    let escaped = s.spawns("setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'");
    assert_eq!(jobs(&mut s.link()).len(), 2);
    s.sessile("reset").exits(0);
    first.wait_gone();
    escaped.wait_gone();
    assert_eq!(s.sessile("jobs").json(), json!([]));
    let last = s.spawns("sleep 1000 & echo $!");
    s.end();
    last.wait_gone();
    assert_eq!(s.sessile("jobs").json(), json!([]));
    let refused = h.sessile(&["signal", s.id(), "--job", "1", "TERM"]).exits(1);
    assert!(refused.errors().contains("not a job"), "{refused:?}");
}

#[test]
fn a_person_sees_a_table() {
    let h = harness!();
    let s = h.session();
    let nothing = h.at_a_terminal(&["jobs", s.id()]);
    assert!(nothing.contains("No jobs"), "{nothing}");
    let job = s.spawns("sleep 1000 & echo $!");
    let row = |table: &str| {
        let row = table.lines().find(|line| line.starts_with(&job.pid().to_string()))?;
        row.trim_end().ends_with("sleep 1000").then(|| row.to_owned())
    };
    let shown = until("a row", || row(&h.at_a_terminal(&["jobs", s.id()])));
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words[1..3], ["1", "running"], "{shown}");
    let json = h.at_a_terminal(&["jobs", s.id(), "--json"]);
    assert!(json.starts_with('['), "{json}");
}

#[test]
fn jobs_are_listed_and_signalled_over_http() {
    let h = harness!();
    let server = h.serve();
    let id = server.session();
    let session = format!("/v1/sessions/{id}");
    assert_eq!(server.get(&format!("{session}/jobs")).is(200).json(), json!([]));
    assert_eq!(server.exec(&id, "sleep 1000 & :")["run"], 1);
    let listed = server.get(&format!("{session}/jobs")).is(200).json();
    let (pid, run) = (&listed[0]["pid"], &listed[0]["run"]);
    assert_eq!((run, &listed[0]["language"]), (&json!(1), &json!("bash")), "{listed}");
    let term = json!({"signal": "TERM"});
    let told = server.post(&format!("{session}/jobs/{pid}/signal"), &term).is(200).json();
    assert_eq!(told, json!({"pid": pid, "processes": 1}));
    until("its end", || {
        let listed = server.get(&format!("{session}/jobs")).is(200).json();
        (listed == json!([])).then_some(())
    });
    for pid in ["1", "x", "-1", "99999999999"] {
        let path = format!("{session}/jobs/{pid}/signal");
        server.post(&path, &term).is_refused(404, "job_not_found");
    }
    let wrong = json!({"signal": "BOO"});
    server.post(&format!("{session}/jobs/1/signal"), &wrong).is_refused(400, "bad_request");
    server.delete(&session).is(200);
    assert_eq!(server.get(&format!("{session}/jobs")).is(200).json(), json!([]));
    server.post(&format!("{session}/jobs/1/signal"), &term).is_refused(404, "job_not_found");
}
