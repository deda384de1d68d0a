//! The session directory as its readers find it.

use serde_json::Value;
use sessile_testkit::{Harness, harness, until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn is_rfc3339_utc(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default().as_bytes();
    let shape = b"0000-00-00T00:00:00";
    text.len() > shape.len()
        && text.ends_with(b"Z")
        && shape.iter().zip(text).all(|(want, found)| match want {
            b'0' => found.is_ascii_digit(),
            other => found == other,
        })
}

#[test]
fn metadata_tells_what_the_session_is() {
    let h = harness!();
    let s = h.session_with(&["--cwd", "/usr"]);
    let fresh = s.metadata();
    assert_eq!(fresh["session_id"], s.id());
    assert_eq!(fresh["command"], "bash");
    assert_eq!(fresh["work_dir"], "/usr");
    assert_eq!(fresh["status"], "active");
    assert_eq!(fresh["execution_count"], 0);
    assert!(is_rfc3339_utc(&fresh["created_at"]), "{fresh}");
    assert_eq!(fresh["last_executed_at"], Value::Null);
    s.run(":");
    s.run("cd /; false");
    let used = s.metadata();
    assert_eq!(used["execution_count"], 2);
    assert!(is_rfc3339_utc(&used["last_executed_at"]), "{used}");
    assert_eq!(used["created_at"], fresh["created_at"]);
    assert_eq!(used["work_dir"], "/usr");
    s.end();
    assert_eq!(s.metadata()["status"], "terminated");
}

#[test]
fn it_is_kept_out_of_repositories_whatever_is_done_first() {
    let exec = br#"{"action": "exec", "command": "true"}"#;
    let first: [(&[&str], &[u8]); 3] =
        [(&["start"], b""), (&["start", "--name", "work"], b""), (&["tool"], exec)];
    for (args, stdin) in first {
        let h = harness!();
        h.begin(args, stdin).finish().exits(0);
        for mark in [".gitignore", "CACHEDIR.TAG"] {
            assert!(h.sessions_dir().join(mark).exists(), "{args:?} leaves no {mark}");
        }
        h.sessile(&["end", "--all"]).exits(0);
    }
}

#[test]
fn a_sessions_directory_that_was_there_before_is_kept_to_itself_too() {
    let h = harness!();
    let place = h.sessions_dir().to_owned();
    std::fs::create_dir(&place).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(place.join(".gitignore"), "mine\n").unwrap();
    let _s = h.session();
    assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(place.join("CACHEDIR.TAG").exists());
    assert_eq!(std::fs::read(place.join(".gitignore")).unwrap(), b"mine\n", "a user's own file");
}

#[test]
fn state_holds_the_last_captured_state() {
    let h = harness!();
    let s = h.session_with(&["--env", "GIVEN=1"]);
    s.run("cd /usr; export ADDED=2; unset HOME; f() { :; }");
    s.wait_captured(1);
    let state = s.file("state.json");
    let bash = &state["kernels"]["bash"];
    assert_eq!(bash["as_of_run"], 1);
    assert_eq!(bash["working_dir"], "/usr");
    assert_eq!(bash["env_vars"]["ADDED"], "2");
    assert_eq!(bash["env_vars"].get("PATH"), None, "only what changed");
    assert!(bash["functions"].to_string().contains('f'));
}

#[test]
fn history_is_one_object_a_line() {
    let h = harness!();
    let s = h.session();
    s.run("echo 'a\nb'\n");
    s.run("(exit 3)");
    let text = std::fs::read_to_string(s.dir().join("history.log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["command"], "echo 'a\nb'\n");
    assert_eq!(lines[1]["exit_code"], 3);
    assert!(is_rfc3339_utc(&lines[1]["timestamp"]));
}

fn walk(path: &Path, see: &mut impl FnMut(&Path, &std::fs::Metadata)) {
    let found = std::fs::symlink_metadata(path).unwrap();
    see(path, &found);
    if found.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), see);
        }
    }
}

#[test]
fn everything_is_private_whatever_the_umask() {
    let h = harness!();
    let s = h.session();
    s.run("umask 0; echo hi; seq 100000 >&2; touch made-by-the-user");
    s.wait_captured(1);
    walk(h.sessions_dir(), &mut |path, found| {
        let want = if found.is_dir() { 0o700 } else { 0o600 };
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode, want, "{} has {mode:o}", path.display());
    });
    let made = std::fs::metadata(h.path("made-by-the-user")).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o666);
}

#[test]
fn files_are_valid_json_at_every_instant() {
    let h = harness!();
    let s = h.session_with(&["--max-history", "5"]);
    s.run("true");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0_u64;
            while !over.load(Ordering::Relaxed) {
                check_all(&s.dir());
                reads += 1;
            }
            reads
        });
        for i in 0..40 {
            // Long enough now and then to cross a page of the history.
            s.run(format!("x{i}={}; cd /usr", "y".repeat(i * 97)));
        }
        over.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 10);
    });
}

#[test]
fn files_are_valid_json_when_the_keeper_is_killed_at_any_moment() {
    let h = harness!();
    for round in 0..8 {
        let s = h.session();
        s.run("true");
        let keeper = s.keeper();
        let client = s.begin(format!("big={}; f() {{ :; }}", "z".repeat(round * 4000)));
        until("the run to be recorded", || {
            check_all(&s.dir());
            (s.metadata()["execution_count"] == 2).then_some(())
        });
        keeper.kill().wait_gone();
        let _ = client.finish();
        check_all(&s.dir());
        assert_eq!(s.metadata()["session_id"], s.id());
    }
}

#[track_caller]
fn check_all(dir: &Path) {
    for name in ["metadata.json", "state.json"] {
        let Ok(bytes) = std::fs::read(dir.join(name)) else {
            assert_eq!(name, "state.json", "metadata.json is always there");
            continue;
        };
        let parsed: Result<Value, _> = serde_json::from_slice(&bytes);
        assert!(parsed.is_ok(), "{name}: {}", String::from_utf8_lossy(&bytes));
    }
    let history = std::fs::read_to_string(dir.join("history.log")).unwrap_or_default();
    for line in history.split_inclusive('\n') {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        assert!(parsed.is_ok() && line.ends_with('\n'), "history: {line:?}");
    }
}

#[test]
fn a_session_directory_far_below_108_bytes_of_path_works() {
    let deep = "d".repeat(60);
    let h = Harness::below(env!("CARGO_BIN_EXE_sessile"), &format!("{deep}/{deep}/{deep}/{deep}"));
    for shell in Harness::shells(&["bash", "zsh", "dash"]) {
        let s = h.session_of(shell);
        assert!(s.dir().as_os_str().len() > 250);
        s.run("x=1").exits(0);
        s.run("echo $x").prints("1\n").is_kept();
        s.end();
    }
}

#[test]
fn a_directory_name_with_spaces_and_quotes_works() {
    let h = Harness::below(env!("CARGO_BIN_EXE_sessile"), "it's a \"dir\" $HOME\n*é");
    let s = h.session();
    s.run("echo hi; exit 3").prints("hi\n").exits(3).is_restarted();
    s.run("echo hi").prints("hi\n");
}
