//! What the machine has run out of is named, with what to do about it.

use serde_json::json;
use sessile_testkit::{Harness, Process, Session, harness, needs};
use std::process::{Command, Stdio};

const DESCRIPTORS: &str = "out of file descriptors";
const PROCESSES: &str = "no more processes can be started";
const SCRATCH: &str = "the file system for temporary files is full";
const DISK: &str = "the disk is full";
const READ_ONLY: &str = "the file system is read-only";

/// A limit of the session's keeper, set by who may: the session's user.
fn limit(s: &Session<'_>, resource: &str, most: u64) {
    s.run(format!("prlimit --pid $PPID --{resource}={most}:")).exits(0);
}

/// One more than the highest descriptor that a process has.
fn descriptors(process: &Process) -> u64 {
    let highest = process.entry().descriptors().map(|open| open.number()).max();
    u64::from(highest.expect("a process")) + 1
}

#[test]
fn a_keeper_without_descriptors_says_so_on_every_surface() {
    let h = harness!();
    let s = h.session();
    s.run("x=1");
    // Room for a client, and not for a kernel's files.
    limit(&s, "nofile", descriptors(&s.keeper()) + 3);
    let told = h.sessile(&["exec", s.id(), "--language", "python", "--", "1"]).exits(1).errors();
    assert!(told.contains("cannot start python") && told.contains(DESCRIPTORS), "{told}");
    let server = h.serve();
    let path = format!("/v1/sessions/{}/exec", s.id());
    let body = json!({"command": "1", "language": "python"});
    let error = server.post(&path, &body).is(503).json()["error"].clone();
    assert_eq!(error["code"], "kernel_unavailable");
    assert!(error["hint"].as_str().expect("a hint").starts_with(DESCRIPTORS), "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(DESCRIPTORS), "models read this: {error}");
    s.run("echo $x").prints("1\n");
}

#[test]
fn a_session_that_may_start_no_process_says_so() {
    // Root may start as many as it likes.
    let is_root = rustix::process::geteuid().is_root();
    let program = env!("CARGO_BIN_EXE_sessile");
    let h = if is_root { Harness::unprivileged(program) } else { Harness::new(program) };
    let s = h.session();
    limit(&s, "nproc", 1);
    for (language, code) in [("python", "1"), ("sh", ":")] {
        let args = ["exec", s.id(), "--language", language, "--", code];
        let told = h.sessile(&args).exits(1).errors();
        assert!(told.contains("cannot start") && told.contains(PROCESSES), "{told}");
    }
    for args in [["checkpoint", s.id(), "--files"].as_slice(), &["save", s.id(), "-o", "kept"]] {
        let told = h.sessile(args).exits(1).errors();
        assert!(told.contains(PROCESSES), "{args:?}: {told}");
    }
    limit(&s, "nproc", 10_000);
    s.run_in("python", "1").exits(0);
}

/// What a script prints in a place of its own, where it may mount file systems;
/// nothing where that is not allowed.
fn play(h: &Harness, script: &str) -> Option<String> {
    let apart = ["--user", "--map-root-user", "--mount"];
    let can = Command::new("unshare").args(apart).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        needs::not_permitted("this system does not let its users mount file systems");
        return None;
    }
    let output = Command::new("unshare")
        .args(apart)
        .args(["sh", "-c", script])
        .env("SESSILE", env!("CARGO_BIN_EXE_sessile"))
        .env("XDG_STATE_HOME", h.state_home())
        .current_dir(h.root())
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_full_memory_file_system_is_named_and_a_new_session_goes_elsewhere() {
    let h = harness!();
    let script = "mount -t tmpfs -o size=2m tmpfs /dev/shm || exit 1; exec 2>&1\n\
         $SESSILE start --name old >/dev/null; head -c 4M /dev/zero >/dev/shm/fill 2>/dev/null\n\
         $SESSILE exec old --language python -- 1; $SESSILE exec old -- \"echo $(seq 2000)\"\n\
         $SESSILE start --name new >/dev/null; $SESSILE exec new --language python -- 6*7\n\
         rm /dev/shm/fill; $SESSILE exec old --language python -- 7*6\n\
         $SESSILE end --all >/dev/null";
    let Some(told) = play(&h, script) else { return };
    let lines: Vec<&str> = told.lines().collect();
    let [python, bash, elsewhere, after] = lines.as_slice() else { panic!("{told}") };
    assert!(python.contains("cannot start python") && python.contains(SCRATCH), "{python}");
    assert!(bash.contains("could not be handed to bash") && bash.contains(SCRATCH), "{bash}");
    assert!(elsewhere.contains("\"result\":\"42\""), "{elsewhere}");
    assert!(after.contains("\"result\":\"42\""), "{after}");
}

#[test]
fn a_disk_that_takes_nothing_is_named_for_what_it_is() {
    let h = harness!();
    let script = "mkdir small; mount -t tmpfs -o size=1m tmpfs small && cd small || exit 1\n\
         exec 2>&1; export SESSILE_SESSIONS_DIR=$PWD/.sessions; $SESSILE start --name a >/dev/null\n\
         head -c 2M /dev/zero >fill 2>/dev/null; $SESSILE start; $SESSILE exec a -- 'echo 1'\n\
         rm fill; $SESSILE end a >/dev/null\n\
         until mount -o remount,ro . 2>/dev/null; do :; done; $SESSILE start";
    let Some(told) = play(&h, script) else { return };
    let lines: Vec<&str> = told.lines().collect();
    let [full, run, read_only] = lines.as_slice() else { panic!("{told}") };
    assert!(full.starts_with("Error: ") && full.contains(DISK), "{full}");
    assert!(run.contains("\"stdout\":\"1\\n\"") && run.contains(DISK), "{run}");
    assert!(read_only.starts_with("Error: ") && read_only.contains(READ_ONLY), "{read_only}");
}
