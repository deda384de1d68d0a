//! `sessile serve`: how it starts, stops and greets.

use rustix::process::{Resource, getrlimit};
use sessile_testkit::{Process, Server, harness, until};
use std::process::Command;

#[test]
fn the_greeting_says_how_to_call() {
    let h = harness!();
    let server = h.server(&[]);
    let url = format!("http://{}", server.address);
    assert!(server.greeting.starts_with(&format!("Sessile is at {url} ")), "{}", server.greeting);
    assert!(server.greeting.contains(&format!("\"url\":\"{url}/mcp\"")), "{}", server.greeting);
    assert!(!server.greeting.contains(server.token()), "no token in it");
    let start = server.greeting.find("curl ").expect("a curl line");
    let call = server.greeting[start..].split("\n\n").next().expect("a command");
    let output = Command::new("bash").args(["-c", call]).output().expect("bash");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["stdout"], "hello\n", "{answer}");
    for snippet in server.greeting.lines().filter(|line| line.contains("mcpServers")) {
        serde_json::from_str::<serde_json::Value>(snippet).expect("JSON that can be pasted");
    }
}

#[test]
fn a_token_is_made_on_first_start_and_stays() {
    use std::os::unix::fs::MetadataExt;
    let h = harness!();
    let server = h.server(&[]);
    let token = server.token().to_owned();
    let file = std::fs::metadata(h.private_dir().join("token")).expect("a token");
    assert_eq!(file.mode() & 0o777, 0o600);
    server.stop();
    assert_eq!(h.server(&[]).token(), token);
    let shown = h.sessile(&["token", "show"]).json();
    assert_eq!(shown["token"], token.as_str());
}

#[test]
fn a_second_server_on_the_same_port_says_so() {
    let h = harness!();
    let server = h.server(&[]);
    let said = h.no_server(&["--listen", &server.address.to_string()]);
    assert!(said.contains("another server is already there"), "{said}");
}

#[test]
fn everybody_may_call_only_on_loopback() {
    let h = harness!();
    let said = h.no_server(&["--auth", "none", "--listen", "0.0.0.0:0"]);
    assert!(said.contains("loopback only"), "{said}");
    let server = h.server(&["--auth", "none"]);
    let _ = server.request("GET", "/v1/sessions").send().is(200);
}

#[test]
fn a_server_that_others_can_reach_without_tls_warns() {
    let h = harness!();
    let server = h.server(&["--listen", "0.0.0.0:0"]);
    server.wait_for_log("unencrypted");
    // It is called by its name on this machine.
    assert!(server.greeting.contains("http://127.0.0.1:"), "{}", server.greeting);
    let elsewhere = server.owner("GET", "/v1/sessions").header("host", "box.example");
    assert_eq!(elsewhere.send().is(403).code(), "host_not_allowed");
}

#[test]
fn names_and_origins_are_checked() {
    let h = harness!();
    let server =
        h.server(&["--allow-host", "box.example", "--allow-origin", "https://app.example"]);
    let get = || server.owner("GET", "/v1/sessions");
    let _ = get().header("host", "box.example:1").send().is(200);
    assert_eq!(get().header("host", "evil.example").send().is(403).code(), "host_not_allowed");
    let own = get().header("origin", "https://app.example").send().is(200);
    assert_eq!(own.header("access-control-allow-origin"), Some("https://app.example"));
    let other = get().header("origin", "https://evil.example").send().is(403);
    assert_eq!(other.code(), "origin_not_allowed");
    assert_eq!(other.header("access-control-allow-origin"), None);
}

#[test]
fn sessions_outlive_the_server_and_are_found_again() {
    let h = harness!();
    let server = h.server(&[]);
    let id = server.session();
    assert_eq!(server.exec(&id, "x=41")["exit_code"], 0);
    server.kill();
    let server = h.server(&[]);
    assert!(server.greeting.contains("1 live session was found"), "{}", server.greeting);
    assert_eq!(server.exec(&id, "echo $((x+1))")["stdout"], "42\n");
}

/// The process that keepers of a server are forked from.
fn fork_server(server: &Server) -> Process {
    let children = server.process().children();
    let is_fork_server = |child: &Process| child.to_string().contains("keeper fork-server");
    children.into_iter().find(is_fork_server).expect("a fork server")
}

#[test]
fn keepers_of_a_server_are_forked_and_nothing_of_that_shows() {
    let h = harness!();
    let server = h.server(&[]);
    let id = server.session();
    let keeper = h.session_called(&id).keeper();
    assert!(keeper.to_string().contains(&format!("keeper {id}")), "{keeper}");
    let parent = fork_server(&server);
    server.kill();
    parent.wait_gone();
    let s = h.session_called(&id);
    s.run("trap -p; echo $-").prints("hiBs\n").is_kept();
    s.run("echo $SESSILE_SESSION_ID").prints(&format!("{id}\n"));
}

#[test]
fn a_server_whose_fork_server_was_killed_starts_another() {
    let h = harness!();
    let server = h.server(&[]);
    let first = server.session();
    let before = fork_server(&server);
    before.kill();
    before.wait_ended();
    let sessions: Vec<String> = (0..3).map(|_| server.session()).collect();
    for id in sessions.iter().chain([&first]) {
        assert_eq!(server.exec(id, "echo $SESSILE_SESSION_ID")["stdout"], format!("{id}\n"));
    }
    let after = fork_server(&server);
    assert_ne!(before.pid(), after.pid());
}

#[test]
fn it_stops_whatever_is_going_on() {
    let h = harness!();
    let server = h.server(&[]);
    let id = server.session();
    let path = format!("/v1/sessions/{id}/exec");
    let order = serde_json::json!({"command": "echo started >&2; read -r x < pipe; echo $x"});
    rustix::fs::mkfifoat(rustix::fs::CWD, h.path("pipe"), rustix::fs::Mode::RWXU).expect("a fifo");
    let waiting = server.owner("POST", &path).json(&order).open();
    until("the run", || {
        let run = server.owner("GET", &format!("/v1/sessions/{id}/runs/1")).send();
        (run.status == 202).then_some(())
    });
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the server has stopped"), "{log}");
    drop(waiting);
    // The run goes on without the server, and so does the session.
    std::fs::write(h.path("pipe"), "hello\n").expect("a reader");
    let server = h.server(&[]);
    let result = until("the result", || {
        let run = server.owner("GET", &format!("/v1/sessions/{id}/runs/1?wait=30s")).send();
        (run.status == 200).then(|| run.json())
    });
    assert_eq!(result["stdout"], "hello\n", "{result}");
}

#[test]
fn its_sessions_have_the_limit_on_files_that_it_was_started_with() {
    let h = harness!();
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(4096);
    let mut command = Command::new("bash");
    let serve =
        format!("ulimit -S -n 256; ulimit -H -n {hard}; exec \"$0\" serve --listen 127.0.0.1:0");
    command.args(["-c", &serve, env!("CARGO_BIN_EXE_sessile")]);
    let plain = h.command(&[]);
    command.current_dir(h.root()).envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let server = Server::spawn(command, &h);
    let own = server.process().entry().limit("Max open files").expect("a limit");
    assert_eq!((own.soft, own.hard), (Some(hard), Some(hard)));
    let id = server.session();
    assert_eq!(server.exec(&id, "ulimit -n; ulimit -Hn")["stdout"], format!("256\n{hard}\n"));
}

#[test]
fn the_file_that_says_where_it_is_goes_with_it() {
    use std::os::unix::fs::MetadataExt;
    let h = harness!();
    let server = h.server(&[]);
    let path = h.private_dir().join(format!("servers/{}.json", server.process().pid()));
    let text = std::fs::read_to_string(&path).expect("the server's file");
    let said: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(said["url"], format!("http://{}", server.address));
    assert_eq!(said["pid"], server.process().pid());
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
    server.stop();
    assert!(!path.exists());
}

#[test]
fn a_second_server_does_not_hide_the_first() {
    let h = harness!();
    let first = h.server(&[]);
    let second = h.server(&[]);
    assert_eq!(first.token(), second.token());
    second.stop();
    let sessions = h.sessile(&["api", "GET", "/v1/sessions"]).json();
    assert!(sessions["sessions"].is_array(), "{sessions}");
}

#[test]
fn a_sessions_directory_stays_out_of_a_repository_and_has_no_secret() {
    let h = harness!();
    let run = |line: &str| {
        let output = Command::new("bash").args(["-c", line]).current_dir(h.root()).output();
        let output = output.expect("bash");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    run("git init --quiet . && touch app.py");
    let server = h.server(&[]);
    let id = server.session();
    assert_eq!(server.exec(&id, "echo hi")["stdout"], "hi\n");
    run("git add .");
    assert_eq!(run("git ls-files"), "app.py\n");
    assert_eq!(
        run("tar --exclude-caches -cf - sessions | tar -t | sort"),
        "sessions/\nsessions/CACHEDIR.TAG\n"
    );
    let found = run(&format!("grep -rlF {} . || true", server.token()));
    assert_eq!(found, "", "the token is nowhere in the workspace");
}
