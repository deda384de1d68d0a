//! Repositories that were made outside, as git sees them inside.

use sessile_testkit::{harness, needs};
use std::fs::{self, FileTimes};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// By mounts alone, with a layer and without one, and by the file system of rules.
const PRESETS: [&str; 3] = ["full-access", "read-only", "development"];

/// Some user who is neither the caller nor anybody inside.
const SOMEBODY: u32 = 4321;

fn git(repository: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=n@example.com"]);
    let output = command.args(args).current_dir(repository).output().expect("git");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
}

/// With one file, which is older than the index: git reads younger ones in any case.
fn commit_one_file(repository: &Path) {
    fs::create_dir(repository).expect("a directory");
    let file = fs::File::create(repository.join("a")).expect("a file");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_times(FileTimes::new().set_modified(long_ago)).expect("a date");
    git(repository, &["init", "--quiet"]);
    git(repository, &["add", "a"]);
    git(repository, &["commit", "--quiet", "--message", "one"]);
}

#[test]
fn git_need_not_read_the_files_of_a_repository_that_was_made_outside() {
    if !needs::has_program("git") {
        return;
    }
    for preset in PRESETS {
        let h = harness!();
        let repository = h.path("project");
        commit_one_file(&repository);
        let workspace = repository.display().to_string();
        let s = h.session_with(&["--sandbox", preset, "--workspace", &workspace]);
        s.run("git config --system --get core.checkStat").exits(0).prints("minimal\n");
        // It names what the index does not vouch for, before `status` mends that.
        s.run("git diff-files --name-only").exits(0).prints("");
        s.run("git status --porcelain 2>&1").exits(0).prints("");
    }
}

#[test]
fn git_trusts_the_workspace_whoever_owns_it() {
    if !needs::has_program("git") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("giving a file to another user");
    }
    for preset in PRESETS {
        let h = harness!();
        let repository = h.path("project");
        commit_one_file(&repository);
        for path in [repository.clone(), repository.join(".git")] {
            chown(path, Some(SOMEBODY), Some(SOMEBODY)).expect("another owner");
        }
        let workspace = repository.display().to_string();
        let s = h.session_with(&["--sandbox", preset, "--workspace", &workspace]);
        s.run("stat -c %U .git").exits(0).prints("agent\n");
        s.run("git status --porcelain 2>&1").exits(0).prints("");
    }
}

#[test]
fn files_that_git_tracks_and_rules_hide_are_told_of_once() {
    if !needs::has_program("git") {
        return;
    }
    let h = harness!();
    let repository = h.path("project");
    fs::create_dir(&repository).expect("a directory");
    fs::write(repository.join(".env.example"), "KEY=\n").expect("a file");
    git(&repository, &["init", "--quiet"]);
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "--message", "one"]);
    let workspace = repository.display().to_string();
    let with =
        |more: &[&str]| h.session_with(&[&["--sandbox", "--workspace", &workspace], more].concat());
    let s = with(&[]);
    let first = s.run("git status --porcelain").exits(0).prints(" D .env.example\n").notes();
    assert!(first.contains("takes them for deleted: .env.example."), "{first}");
    assert_eq!(s.run(":").exits(0).notes(), "");
    let shown = with(&["--allow", "/.env.example=read@200"]);
    assert_eq!(shown.run("git status --porcelain").exits(0).prints("").notes(), "");
}
