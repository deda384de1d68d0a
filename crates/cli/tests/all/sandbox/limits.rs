//! What a session may use of the machine: held, told, shown.

use serde_json::{Value, json};
use sessile_testkit::{Harness, harness, needs, until};
use std::path::{Path, PathBuf};

/// Whether whoever runs the tests may make control groups.
pub(crate) fn has_groups(h: &Harness) -> bool {
    let found = h.sessile(&["sandbox", "check"]).json();
    let findings = found["findings"].as_array().unwrap();
    let memory = findings.iter().find(|finding| finding["what"] == "limit: memory").unwrap();
    let has = memory["status"] == "enforced";
    if !has {
        needs::not_permitted("control groups cannot be made here");
    }
    has
}

/// Programs until there is no room for another. (A shell would try again for half a
/// minute.)
const STARTS_MANY: &str =
    "import subprocess\nfor _ in range(60): subprocess.Popen(['sleep', '100'])";

/// The control groups of a session.
pub(crate) fn groups(id: &str) -> Vec<PathBuf> {
    fn below(directory: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let found_name = entry.file_name();
            if found_name.to_str().is_some_and(|found| found.starts_with(name)) {
                found.push(entry.path());
            } else {
                below(&entry.path(), name, found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &format!("sessile-{id}"), &mut found);
    found
}

/// The group that competes with other programs is the session's, not one within it.
#[test]
fn a_session_with_a_group_has_an_eighth_of_the_weight_of_others() {
    let h = harness!();
    if !has_groups(&h) {
        return;
    }
    let s = h.session_with(&["--sandbox", "full-access", "--pids", "48"]);
    s.run("true").exits(0);
    let weight = |group: &PathBuf| {
        let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
        let shares = read("cpu.shares").map(|text| (text, "128"));
        shares.or_else(|| read("cpu.weight").map(|text| (text, "12")))
    };
    let found: Vec<_> = groups(s.id()).iter().filter_map(weight).collect();
    assert!(
        !found.is_empty() && found.iter().all(|(is, wanted)| is.trim() == *wanted),
        "{found:?}"
    );
}

const EATS_MEMORY: &str = "b'x' * 300_000_000";

#[test]
fn a_run_that_dies_of_the_memory_limit_says_so_and_the_session_goes_on() {
    let h = harness!();
    if !has_groups(&h) {
        return;
    }
    let s = h.session_with(&["--sandbox", "full-access", "--memory", "96MiB"]);
    s.run("x=5").exits(0);
    s.wait_captured(1);
    let answer = s.run(format!("python3 -c \"{EATS_MEMORY}\"")).exits(137).is_kept();
    assert_eq!(answer.notes(), "killed by the memory limit of 96 MiB; the peak was 96 MiB");
    // The kernel itself.
    s.wait_captured(2);
    let answer = s.run("while :; do y=$y$y-; done").exits(137).is_restored_as_of(2);
    assert!(answer.notes().contains("killed by the memory limit of 96 MiB"), "{}", answer.notes());
    assert_eq!(s.run("echo $x").exits(0).prints("5\n").is_kept().notes(), "");
    let answer = s.run_in("python", EATS_MEMORY).exits(137);
    assert!(answer.notes().contains("killed by the memory limit of 96 MiB"), "{}", answer.notes());
    s.run_in("python", "print(6 * 7)").exits(0).prints("42\n").is_kept();
    // What only a part of it dies of is told as well.
    let answer = s.run(format!("python3 -c \"{EATS_MEMORY}\"; echo on")).exits(0).prints("on\n");
    assert!(answer.notes().starts_with("a process was killed by the memory"), "{}", answer.notes());
}

#[test]
fn limits_and_what_is_used_of_them_are_shown() {
    let h = harness!();
    if !has_groups(&h) {
        return;
    }
    let limits =
        ["--memory", "256MiB", "--cpus", "1.5", "--pids", "50", "--open-files", "100", "--disk"];
    let args = [["--sandbox", "full-access"].as_slice(), &limits, &["64MiB"]].concat();
    let s = h.session_with(&args);
    s.run("ulimit -n; ulimit -n 200").exits(1).prints("100\n");
    let check = |limits: &Value| {
        let numbers = [
            &limits["memory"]["limit_bytes"],
            &limits["cpus"]["limit"],
            &limits["pids"]["limit"],
            &limits["open_files"]["limit"],
            &limits["layer"]["limit_bytes"],
        ];
        assert_eq!(json!(numbers), json!([256 << 20, 1.5, 50, 100, 64 << 20]), "{limits}");
        assert!(limits["memory"]["used_bytes"].as_u64().unwrap() > 100_000, "{limits}");
        assert!(limits["pids"]["used"].as_u64().unwrap() >= 2, "{limits}");
        assert!(limits["memory"]["held_by"].as_str().unwrap().starts_with("cgroup v"), "{limits}");
    };
    check(&s.state()["resources"]);
    let top = h.sessile(&["top", "--once"]).json();
    check(&top[0]["resources"]);
    let shown = h.at_a_terminal(&["state", s.id()]);
    assert!(shown.contains("of 256 MiB, 1.5 CPUs, ") && shown.contains(" of 50 proc"), "{shown}");
    let shown = h.at_a_terminal(&["top", "--once"]);
    assert!(shown.contains("/256.0M") && shown.contains("/50 "), "{shown}");
    // Of a session without limits, nothing.
    assert_eq!(h.session().state().get("resources"), None);
}

#[test]
fn no_control_group_is_left_by_an_end_or_by_a_keeper_that_was_killed() {
    let h = harness!();
    if !has_groups(&h) {
        return;
    }
    let args = ["--sandbox", "full-access", "--memory", "256MiB", "--cpus", "1", "--pids", "50"];
    let s = h.session_with(&args);
    s.run("x=5; setsid sleep 1000 &").exits(0);
    s.wait_captured(1);
    assert!(!groups(s.id()).is_empty());
    s.keeper().kill().wait_gone();
    until("the guardian to clear away", || groups(s.id()).is_empty().then_some(()));
    // The limits are those of the session, not of its keeper.
    s.run("echo $x").exits(0).prints("5\n").is_restored_as_of(1);
    assert_eq!(s.state()["resources"]["pids"]["limit"], 50);

    // With its guardian gone as well, whoever comes next does it.
    let (keeper, above) = (s.keeper(), s.keeper().parent().unwrap());
    above.kill().wait_gone();
    keeper.kill().wait_gone();
    assert!(!groups(s.id()).is_empty());
    s.end();
    assert_eq!(groups(s.id()), Vec::<PathBuf>::new());
    // Also one who only looks.
    let s = h.session_with(&args);
    let (keeper, above) = (s.keeper(), s.keeper().parent().unwrap());
    above.kill().wait_gone();
    keeper.kill().wait_gone();
    assert!(!groups(s.id()).is_empty());
    let listed = h.sessile(&["list"]);
    assert!(listed.status.success());
    assert_eq!(groups(s.id()), Vec::<PathBuf>::new());
}

#[test]
fn the_layer_and_private_directories_have_their_size_together() {
    let h = harness!();
    std::fs::write(h.path("old"), "of the host\n").unwrap();
    let s = h.session_with(&["--sandbox", "full-access", "--layer-size", "24MiB"]);
    let full = "No space left on device";
    let answer = s.run("head -c 30M /dev/zero >big").exits(1).complains(full);
    assert!(answer.notes().contains("may have 24 MiB"), "{}", answer.notes());
    s.run("test $(stat -c %s big) -le $((24 << 20))").exits(0);
    // What is in the layer is taken from what is private.
    s.run("head -c 4M /dev/zero >/tmp/x").exits(1).complains(full);
    // The room is there when the system has forgotten the file: soon.
    let freed = "rm /tmp/x big; until head -c 4M /dev/zero >/tmp/x; do :; done 2>/dev/null";
    s.run(format!("{freed}; head -c 12M /dev/zero >big")).exits(0);
    s.run("head -c 12M /dev/zero >more").exits(1).complains(full);
    s.run("df --output=size -m . | tail -1 | tr -d ' '").prints("24\n");
    // A file without a name takes as much.
    s.run("rm -f /tmp/x big more; exec 9>big; rm big; head -c 20M /dev/zero >&9").exits(0);
    s.run("head -c 8M /dev/zero >more").exits(1).complains(full);
    s.run("exec 9>&-; until head -c 8M /dev/zero >more; do :; done 2>/dev/null; cat old")
        .exits(0)
        .prints("of the host\n");
    // Many small ones, too.
    let text = "rm more; n=0; while : >f$n; do n=$((n + 1)); done; test $n -lt 7000";
    s.run_with(&["--timeout", "60s"], text).exits(0).complains(full);
}

#[test]
fn who_has_no_control_groups_is_told_what_is_weaker_or_missing() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can start a session as another user");
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    let started = h.sessile(&["start", "--sandbox", "full-access", "--memory", "200MiB"]).json();
    let note = started["notes"][0].as_str().unwrap();
    assert!(note.contains("200 MiB holds for each program by itself"), "{note}");
    let s = h.session_called(started["session_id"].as_str().unwrap());
    assert_eq!(s.metadata()["notes"], started["notes"]);
    s.run(format!("python3 -c \"{EATS_MEMORY}\"")).exits(1).complains("MemoryError");
    s.run_in("node", "console.log(6 * 7)").exits(0).prints("42\n");
    let met = s.run_in("python", "bytearray(1 << 30)");
    let note = "perhaps the memory limit was met, which is 200 MiB for each program by itself";
    assert!(met.notes().contains(note), "{}", met.json());

    let few = h.session_with(&["--sandbox", "full-access", "--pids", "20"]);
    few.run(format!("python3 -c \"{STARTS_MANY}\"")).complains("Resource temporarily unavailable");
    few.run("echo on").exits(0).prints("on\n");
    let few = h.session_with(&["--sandbox", "full-access", "--pids", "20"]);
    let threads = "import threading as t\ngo = t.Event()\n\
                   for _ in range(30): t.Thread(target=go.wait, daemon=True).start()";
    let met = few.run_in("python", threads);
    let note = "perhaps the limit of 20 processes and threads was met: one could not be started";
    assert!(met.notes().contains(note), "{}", met.json());

    let refused = h.sessile(&["start", "--sandbox", "full-access", "--cpus", "1"]).exits(1);
    let errors = refused.errors();
    assert!(errors.contains("a limit on CPUs needs control groups"), "{errors}");
    assert!(errors.contains("an administrator can allow it: `"), "{errors}");
}

#[test]
fn limits_come_by_http_and_by_policy_files_and_bad_ones_are_named() {
    let h = harness!();
    let server = h.serve();
    let sandbox = json!({"preset": "full-access", "limits": {"pids": 40, "open_files": 64}});
    if rustix::process::geteuid().is_root() && has_groups(&h) {
        let s = server.started(&json!({"sandbox": sandbox}));
        assert_eq!(server.prints_at(&s, "ulimit -n"), "64\n");
        let answer = server.exec_at(&s, &format!("python3 -c \"{STARTS_MANY}\""));
        let notes = answer["notes"].to_string();
        assert!(notes.contains("the limit is 40 processes and threads"), "{notes}");
        let state = server.get(&format!("{s}/state")).is(200).json();
        assert_eq!(state["resources"]["pids"]["limit"], 40);
    }
    let bad = json!({"sandbox": {"preset": "full-access", "limits": {"memory_bytes": 5}}});
    let refused = server.post("/v1/sessions", &bad).is(400).text();
    assert!(refused.contains("limits.memory_bytes"), "{refused}");

    let policy = "extends = \"full-access\"\n\n[limits]\npids = 1\n";
    std::fs::write(h.path("policy.toml"), policy).unwrap();
    let errors = h.sessile(&["start", "--sandbox", "policy.toml"]).exits(1).errors();
    assert!(errors.contains("policy.toml:4: limits.pids: must be at least 4"), "{errors}");
    assert!(h.list().len() <= 1, "{:?}", h.list());
}

#[test]
fn limits_that_nothing_runs_within_are_refused_before_anything_is_started() {
    let h = harness!();
    for (option, value, why) in [
        ("--cpus", "0", "must be between 0.01 and 4096"),
        ("--cpus", "0.001", "must be between 0.01 and 4096"),
        ("--cpus", "nan", "must be between 0.01 and 4096"),
        ("--pids", "0", "must be at least 4"),
        ("--pids", "2", "must be at least 4"),
        ("--open-files", "63", "must be at least 64"),
        ("--memory", "1", "must be at least 16MiB"),
        ("--layer-size", "1", "must be at least 1MiB"),
    ] {
        let errors =
            h.sessile(&["start", "--sandbox", "full-access", option, value]).exits(1).errors();
        assert!(errors.contains(&format!("{option}: {why}")), "{errors}");
    }
    let server = h.serve();
    for (limit, value) in [("cpus", 0), ("pids", 0), ("open_files", 1), ("layer_bytes", 1)] {
        let sandbox = json!({"preset": "full-access", "limits": {limit: value}});
        let refused = server.post("/v1/sessions", &json!({"sandbox": sandbox})).is(400).text();
        assert!(refused.contains(&format!("limits.{limit}: must be ")), "{refused}");
    }
    for (policy, why) in [
        ("[[binds]]\nhost = \"/usr\"\n\n[[binds]]\nhost = \"/nonexist\"\n", "4: binds[1]"),
        ("root = false\nrootfs = \"/nonexist\"\n", "2: rootfs"),
    ] {
        std::fs::write(h.path("policy.toml"), policy).unwrap();
        let errors = h.sessile(&["start", "--sandbox", "policy.toml"]).exits(1).errors();
        let told = format!("policy.toml:{why}: /nonexist does not exist");
        assert!(errors.contains(&told), "{errors}");
    }
    assert!(h.list().is_empty(), "{:?}", h.list());
}

/// On a disk of 64 MiB of its own, where one can be had.
fn on_a_small_disk() -> Option<Harness> {
    let h = harness!();
    let (image, at) = (h.state_home().join("image"), h.sessions_dir().to_owned());
    let (image, at) = (image.display(), at.display());
    let script = format!(
        "mkdir -p {at}; truncate -s 64M {image}; mkfs.ext4 -q {image}; mount -o loop {image} {at}"
    );
    let can = |script: &str| {
        let mut call = std::process::Command::new("unshare");
        call.args(["--mount", "--propagation", "private", "sh", "-ec", script]);
        call.output().is_ok_and(|output| output.status.success())
    };
    if !rustix::process::geteuid().is_root() || !can(&script) {
        needs::not_permitted("a disk of one's own");
        return None;
    }
    Some(h.where_mounted(&script))
}

#[test]
fn a_layer_without_a_limit_leaves_some_of_the_disk_to_others() {
    let Some(h) = on_a_small_disk() else { return };
    let work = h.path("work");
    std::fs::create_dir(&work).unwrap();
    let work = work.to_str().unwrap();
    for bomb in [
        "bash -c 'while :; do head -c 1M /dev/zero; sleep 0.01; done' >>big",
        "(while :; do head -c 1M /dev/zero; sleep 0.01; done) >>big & wait",
    ] {
        let s = h.session_with(&["--sandbox", "full-access", "--cwd", work]);
        let answer = s.run(bomb);
        let notes = answer.json()["notes"].to_string();
        assert!(notes.contains("the disk was nearly full"), "{bomb}: {notes}");
        assert_eq!(answer.json()["kernel"], "kept", "{bomb}: {notes}");
        // The session goes on, and has room to tidy up.
        s.run("rm -f big; echo small >small; cat small").exits(0).prints("small\n");
        s.end();
    }
}

#[test]
fn an_interpreter_that_needs_more_than_the_limits_allow_says_so() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--pids", "4"]);
    s.run("x=41").exits(0);
    let refused = h.sessile(&["exec", s.id(), "--language", "node", "0"]).errors();
    assert!(refused.contains("; it may need higher limits (memory, processes"), "{refused}");
    s.run("echo $x").is_kept().prints("41\n");
}

/// The system puts no descriptor at a number beyond the limit of today, and the pipes of a
/// kernel may have such numbers from before.
#[test]
fn a_session_goes_on_when_its_code_has_changed_the_limit_of_open_files() {
    let h = harness!();
    for soft in [50, 500, 4096] {
        let s = h.session_with(&["--sandbox", "full-access"]);
        // With a process beside them, kernels get new pipes.
        s.run(format!("v=1; ulimit -Sn {soft}; sleep 100 &")).exits(0);
        s.run_in(
            "python",
            format!(
                "import resource, subprocess\nv = 1\n\
                 files = resource.RLIMIT_NOFILE\n\
                 resource.setrlimit(files, ({soft}, resource.getrlimit(files)[1]))\n\
                 p = subprocess.Popen(['sleep', '100'])"
            ),
        )
        .exits(0);
        for _ in 0..2 {
            s.run("echo $v; ulimit -Sn").is_kept().prints(&format!("1\n{soft}\n"));
            let limit = s.run_in("python", "print(v, resource.getrlimit(files)[0])");
            limit.is_kept().prints(&format!("1 {soft}\n"));
        }
    }
}

/// Nobody can put a pipe at a number beyond that, unless the system trusts them with all limits.
#[test]
fn python_goes_on_when_its_code_has_lowered_its_limit_of_open_files_for_good() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access"]);
    let limit = |limit: u32| {
        s.run_in(
            "python",
            format!(
                "import resource, subprocess\nv = 1\np = subprocess.Popen(['sleep', '100'])\n\
                 resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))"
            ),
        )
        .exits(0);
    };
    let look = || s.run_in("python", "print(v, resource.getrlimit(resource.RLIMIT_NOFILE))");
    limit(10);
    for _ in 0..2 {
        look().is_kept().prints("1 (10, 10)\n");
    }
    limit(4);
    let told = look().exits(126).is_fresh();
    assert!(told.notes().contains("its limit of open files is 4, which is too low"), "{told:?}");
}

#[test]
fn node_goes_on_below_a_soft_limit_of_open_files_and_is_told_of_below_a_hard_one() {
    if !needs::has_program("node") || !needs::has_program("prlimit") {
        return;
    }
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access"]);
    s.run_in("node", "v = 1").exits(0);
    let node = s.run_in("node", "console.log(process.pid)").number();
    let limit = |limit: &str| {
        s.run(format!("prlimit --pid {node} --nofile={limit}")).exits(0);
    };
    limit("10:");
    s.run_in("node", "console.log(v)").is_kept().prints("1\n");
    limit("10:10");
    let told = s.run_in("node", "console.log(v)").exits(126).is_fresh();
    assert!(told.notes().contains("its limit of open files is 10, which is too low"), "{told:?}");
}

#[test]
fn all_interpreters_run_within_the_least_limit_of_open_files() {
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--open-files", "64"]);
    for _ in 0..2 {
        s.run("cat /dev/null | cat; echo ran").prints("ran\n");
        s.run_in("python", "print('ran')").prints("ran\n");
        s.run_in("node", "console.log('ran')").prints("ran\n");
    }
}
