//! The user's own server: found or started on demand, gone when nobody needs it.

use rustix::process::Signal;
use serde_json::json;
use sessile_testkit::local::ask;
use sessile_testkit::{
    Harness, LocalServer, Process, harness, install, needs, session_path, until,
};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BACKGROUND: [&str; 3] = ["serve", "--local", "--background"];

#[test]
fn fifty_programs_at_once_start_one_server() {
    let h = harness!();
    let all: Vec<_> = (0..50).map(|_| h.begin(&BACKGROUND, b"")).collect();
    let told: Vec<_> = all.into_iter().map(|client| client.finish().json()).collect();
    let pids: BTreeSet<i64> = told.iter().filter_map(|told| told["pid"].as_i64()).collect();
    assert_eq!(pids.len(), 1, "{told:?}");
    let server = LocalServer::of(&h, &told[0]);
    let running = h.processes().iter().map(|process| process.pid()).collect::<Vec<_>>();
    assert_eq!(running, [server.process.pid()]);
    assert_eq!(told[0]["version"], env!("CARGO_PKG_VERSION"));
    let printed = h.sessile(&["serve", "--local", "--print-address"]).exits(0).text();
    assert_eq!(printed.trim_end(), server.socket.to_str().expect("a path"));
}

#[test]
fn its_users_programs_need_no_token_and_sessions_outlive_it() {
    let h = harness!();
    let server = h.local_server(&[]);
    assert_eq!(std::fs::metadata(&server.socket).expect("a socket").mode() & 0o777, 0o600);
    let workspace = h.path("project");
    std::fs::create_dir(&workspace).expect("a directory");
    let started = server.post("/v1/sessions", &json!({"workspace": workspace})).is(201).json();
    let session = session_path(&started["session_id"]);
    let exec = |server: &LocalServer<'_>, command: &str| {
        let body = json!({"command": command});
        server.post(&format!("{session}/exec"), &body).is(200).json()["stdout"].clone()
    };
    assert_eq!(exec(&server, "x=41; pwd"), format!("{}\n", workspace.display()));
    server.process.kill().wait_ended();
    assert!(server.socket.exists(), "a killed server leaves its socket");
    let next = h.local_server(&[]);
    assert_ne!(next.process.pid(), server.process.pid());
    assert_eq!(exec(&next, "echo $((x+1))"), "42\n");
    // The command line calls it, too, and finds its sessions.
    let listed = h.sessile(&["api", "--local", "GET", "/v1/sessions"]).json();
    assert_eq!(listed["sessions"][0]["session_id"], started["session_id"]);
    let all = h.sessile(&["list", "--all"]).json();
    assert_eq!(all[0]["session_id"], started["session_id"]);
}

#[test]
fn a_server_that_nobody_needs_goes_and_leaves_no_caller_without_an_answer() {
    let h = harness!();
    let mut gone = 0;
    for _ in 0..12 {
        let server = h.local_server(&["--idle-exit", "1ms"]);
        // Whoever gets through is answered, up to the moment when nobody does.
        while let Ok(mut stream) = server.connect() {
            ask(&mut stream, "GET", "/healthz", "").expect("an answer").is(200);
        }
        server.process.wait_ended();
        gone += 1;
    }
    assert_eq!(gone, 12);
    assert!(!h.state_home().join("sessile/local.sock").exists());
}

#[test]
fn a_server_stays_as_long_as_a_program_is_connected() {
    let h = harness!();
    let (server, mut kept) = loop {
        let server = h.local_server(&["--idle-exit", "20ms"]);
        if let Ok(stream) = server.connect() {
            break (server, stream);
        }
    };
    // Long after it would have gone, the silent program is still answered.
    let once = json!({"command": "sleep 0.2"});
    server.post("/v1/exec", &once).is(200);
    ask(&mut kept, "GET", "/v1/sessions", "").expect("an answer").is(200);
    server.process.wait_ended();
}

#[test]
fn a_server_whose_program_was_replaced_makes_room_when_nobody_is_connected() {
    let binary = env!("CARGO_BIN_EXE_sessile");
    let folder = tempfile::tempdir().expect("a directory");
    let installed = folder.path().join("sessile");
    install(binary.as_ref(), &installed);
    let h = Harness::new(&installed);
    let old = h.local_server(&[]);
    let mut kept = old.connect().expect("a server");
    let newer = folder.path().join("newer");
    install(binary.as_ref(), &newer);
    std::fs::rename(newer, &installed).expect("an upgrade");
    let same = h.local_server(&[]);
    assert_eq!(same.process.pid(), old.process.pid(), "somebody uses it");
    ask(&mut kept, "GET", "/healthz", "").expect("an answer").is(200);
    drop(kept);
    old.process.wait_ended();
    assert_ne!(h.local_server(&[]).process.pid(), old.process.pid());
    drop((old, same));
}

#[test]
fn one_that_is_asked_to_make_room_goes_when_nobody_is_connected() {
    let h = harness!();
    let server = h.local_server(&[]);
    let mut kept = server.connect().expect("a server");
    server.process.signal(Signal::HUP);
    server.get("/healthz").is(200);
    ask(&mut kept, "GET", "/healthz", "").expect("an answer").is(200);
    server.process.wait_ended();
}

#[test]
fn a_second_one_in_the_foreground_is_told_of_the_first() {
    let h = harness!();
    let server = h.local_server(&[]);
    let said = h.no_server(&["--local"]);
    assert!(said.contains("a local server is already running"), "{said}");
    let said = h.sessile(&["serve", "--local", "--listen", "127.0.0.1:0"]).exits(2).errors();
    assert!(said.contains("--listen"), "{said}");
    server.get("/healthz").is(200);
}

#[test]
fn programs_of_other_users_are_turned_away() {
    if !rustix::process::geteuid().is_root() {
        needs::not_permitted("another user to call as: root");
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    // As if somebody had opened the door to all.
    let folder = server.socket.parent().expect("a directory");
    for (path, mode) in
        [(&h.state_home(), 0o755), (&folder.to_owned(), 0o755), (&server.socket, 0o666)]
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    }
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "30", "--unix-socket"]).arg(&server.socket);
    curl.arg("http://localhost/v1/sessions").uid(65_534).gid(65_534).current_dir("/");
    let output = curl.output().expect("curl");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["error"]["code"], "forbidden", "{answer}");
}

/// A program that starts a session over the socket and then waits to be killed.
const PROGRAM: &str = r#"
import http.client, json, socket, sys, time
class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
server = Local("localhost")
body = json.dumps({"ends_with_caller": True, "workspace": sys.argv[2]})
server.request("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
print(json.load(server.getresponse())["session_id"], flush=True)
server.close()
time.sleep(1000)
"#;

/// That program, killed at the latest when this is dropped.
struct Program {
    child: Child,
    session: String,
}

impl Program {
    fn start(server: &LocalServer<'_>, workspace: &Path) -> Self {
        Self::running(PROGRAM, server, workspace)
    }

    fn running(code: &str, server: &LocalServer<'_>, workspace: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", code]).arg(&server.socket).arg(workspace);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("python3");
        let mut id = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut id).expect("an id");
        Self { child, session: format!("/v1/sessions/{}", id.trim()) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until_ended(server: &LocalServer<'_>, session: &str) {
    until("its end", || (server.get(session).json()["status"] == "terminated").then_some(()));
}

#[test]
fn a_session_can_end_with_the_program_that_started_it() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    let program = Program::start(&server, &h.root());
    let session = program.session.clone();
    assert_eq!(server.get(&session).is(200).json()["status"], "active");
    drop(program);
    wait_until_ended(&server, &session);
    assert_eq!(server.get(&session).json()["ended_by"], "end of its program");
    // The next server goes on watching, and finds those that are gone already.
    let (gone, stays) = (Program::start(&server, &h.root()), Program::start(&server, &h.root()));
    let (one, other) = (gone.session.clone(), stays.session.clone());
    server.process.kill().wait_ended();
    drop(gone);
    let next = h.local_server(&[]);
    wait_until_ended(&next, &one);
    assert_eq!(next.get(&other).is(200).json()["status"], "active");
    drop(stays);
    wait_until_ended(&next, &other);
    // Over the network nobody knows the caller's process.
    let refused = h.serve().post("/v1/sessions", &json!({"ends_with_caller": true}));
    refused.is_refused(403, "forbidden");
}

#[test]
fn forks_end_with_the_program_of_their_original_unless_they_are_to_be_kept() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    let program = Program::start(&server, &h.root());
    let session = program.session.clone();
    let fork = |from: &str, body: serde_json::Value| {
        let forked = server.post(&format!("{from}/fork"), &body).is(201).json();
        session_path(&forked["session_ids"][0])
    };
    let one = fork(&session, json!({}));
    let of_one = fork(&one, json!({}));
    let kept = [
        fork(&session, json!({"name": "named"})),
        fork(&session, json!({"ends_with_caller": false})),
    ];
    // The original goes first, and the server that has seen it made.
    server.call("DELETE", &session, "").is(200);
    server.call("DELETE", &one, "").is(200);
    server.process.kill().wait_ended();
    let next = h.local_server(&[]);
    assert_eq!(next.get(&of_one).is(200).json()["status"], "active");
    drop(program);
    wait_until_ended(&next, &of_one);
    for kept in kept {
        assert_eq!(next.get(&kept).is(200).json()["status"], "active");
    }
}

/// The metadata of a local server's session, of which nobody has to tell.
fn written(server: &LocalServer<'_>, session: &str) -> serde_json::Value {
    let id = session.rsplit('/').next().expect("an id");
    let path = server.socket.with_extension("").join(id).join("metadata.json");
    let text = std::fs::read_to_string(&path).expect("metadata");
    serde_json::from_str(&text).expect("JSON")
}

/// A job of a session, and the process that keeps the session.
fn job_and_keeper(server: &LocalServer<'_>, session: &str) -> [Process; 2] {
    let body = json!({"command": "sleep 1000 & echo $!"});
    let said = server.post(&format!("{session}/exec"), &body).is(200).json();
    let job = said["stdout"].as_str().and_then(|pid| pid.trim().parse().ok()).expect("a pid");
    let keeper = server.get(session).json()["keeper_pid"].as_i64().expect("a pid");
    [job, i32::try_from(keeper).expect("a pid")].map(Process::of)
}

#[test]
fn sessions_end_with_their_program_when_there_is_no_server_any_more() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    let (gone, stays) = (Program::start(&server, &h.root()), Program::start(&server, &h.root()));
    let fork = |body: serde_json::Value| {
        let forked = server.post(&format!("{}/fork", gone.session), &body).is(201).json();
        session_path(&forked["session_ids"][0])
    };
    let (ends, kept) = (fork(json!({})), fork(json!({"name": "kept"})));
    let [job, _] = job_and_keeper(&server, &gone.session);
    let [of_fork, _] = job_and_keeper(&server, &ends);
    let [of_kept, _] = job_and_keeper(&server, &kept);
    let [of_other, _] = job_and_keeper(&server, &stays.session);
    server.process.kill().wait_ended();
    let session = gone.session.clone();
    drop(gone);
    job.wait_gone();
    of_fork.wait_gone();
    for session in [&session, &ends] {
        let metadata = until("its end", || {
            Some(written(&server, session)).filter(|written| written["status"] == "terminated")
        });
        assert_eq!(metadata["ended_by"], "end of its program");
    }
    of_kept.assert_alive();
    of_other.assert_alive();
    // Whoever asks for one is told why.
    let next = h.local_server(&[]);
    let body = json!({"command": ":"});
    let refused = next.post(&format!("{session}/exec"), &body);
    assert!(refused.text().contains("has ended with its program"), "{}", refused.text());
    assert_eq!(next.get(&kept).is(200).json()["status"], "active");
}

#[test]
fn a_session_that_was_brought_back_still_ends_with_its_program() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    let program = Program::start(&server, &h.root());
    let [_, lost] = job_and_keeper(&server, &program.session);
    lost.kill().wait_gone();
    let [job, keeper] = job_and_keeper(&server, &program.session);
    assert_ne!(keeper.pid(), lost.pid());
    server.process.kill().wait_ended();
    let session = program.session.clone();
    drop(program);
    job.wait_gone();
    keeper.wait_gone();
    assert_eq!(written(&server, &session)["ended_by"], "end of its program");
}

/// The same program, with a session that is restored.
const RESTORING: &str = r#"
body = json.dumps({"workspace": sys.argv[2]})
server.request("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
first = json.load(server.getresponse())["session_id"]
server.request("POST", f"/v1/sessions/{first}/save", json.dumps({"path": sys.argv[2] + "/saved"}), {"Content-Type": "application/json"})
server.getresponse().read()
server.request("POST", f"/v1/restore?ends_with_caller=true&path={sys.argv[2]}/saved")
"#;

#[test]
fn a_restored_session_can_end_with_its_program() {
    if !needs::has_program("python3") {
        return;
    }
    let h = harness!();
    let server = h.local_server(&[]);
    let (head, tail) = PROGRAM.split_once("body = ").expect("a body");
    let tail = tail.split_once("print(").expect("what it prints").1;
    let code = format!("{head}{RESTORING}print({tail}");
    let program = Program::running(&code, &server, &h.root());
    let session = program.session.clone();
    assert_eq!(server.get(&session).is(200).json()["status"], "active");
    drop(program);
    wait_until_ended(&server, &session);
}

#[test]
fn the_command_line_says_where_a_session_of_the_local_server_is() {
    let h = harness!();
    let server = h.local_server(&[]);
    let started = server.post("/v1/sessions", &json!({"name": "far"})).is(201).json();
    let id = started["session_id"].as_str().expect("an id");
    let sessions = server.socket.with_extension("");
    let sessions = sessions.to_str().expect("a path");
    for said in [id, "far"] {
        let refused = h.sessile(&["state", said]).exits(1).errors();
        assert!(refused.contains(&format!("{id} is in another sessions directory")), "{refused}");
        assert!(refused.contains(&format!("--sessions-dir {sessions}")), "{refused}");
    }
    h.sessile(&["state", id, "--sessions-dir", sessions]).exits(0);
}
