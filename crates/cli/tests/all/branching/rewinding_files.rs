//! The files of a workspace, as part of checkpoints.

use serde_json::Value;
use sessile_testkit::{Client, Harness, Process, Session, harness, needs, until};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A workspace in which the sessions are not, and its session.
#[track_caller]
fn in_workspace<'h>(h: &'h Harness, args: &[&str]) -> Session<'h> {
    std::fs::create_dir_all(h.path("w")).unwrap();
    let place = h.path("w");
    h.session_with(&[args, &["--cwd", place.to_str().unwrap()]].concat())
}

/// Everything about a directory that a rewind is to bring back.
fn look(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut seen = BTreeMap::new();
    look_into(root, root, &mut seen);
    seen
}

fn look_into(root: &Path, directory: &Path, seen: &mut BTreeMap<Vec<u8>, String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        let mode = about.permissions().mode();
        let text = if about.is_dir() {
            look_into(root, &path, seen);
            "directory".to_owned()
        } else if about.is_symlink() {
            format!("to {}", std::fs::read_link(&path).unwrap().display())
        } else if about.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            format!(
                "{} bytes {:?}, {} links",
                bytes.len(),
                bytes.get(..20.min(bytes.len())),
                about.nlink()
            )
        } else {
            "other".to_owned()
        };
        seen.insert(name, format!("{mode:o} {text}"));
    }
}

const MAKE: &str = r#"
mkdir -p a/b empty 'with space' "$(printf 'new\nline')" ö .hidden/deep ro-dir
echo one >a/one; echo two >a/b/two; echo x >'with space/ü€'; : >none; echo h >.hidden/deep/h
printf 'n' >"$(printf 'new\nline')/f"; ln -s a/one link; ln -s nowhere dangling; ln -s a dirlink
ln a/one hard; chmod 751 a/b; chmod 600 a/b/two; chmod +x none; echo ro >ro; chmod 444 ro
head -c 20000000 /dev/urandom >large; echo in >ro-dir/in; chmod 555 ro-dir
"#;

const CHANGE: &str = r#"
chmod 755 ro-dir; rm -r ro-dir; mkdir new; echo n >new/n; echo changed >>a/one; rm a/b/two; mv none moved
mv ö ä; rm link; ln -s b link; rm dirlink; mkdir dirlink; echo f >dirlink/f; rmdir empty; echo file >empty
rm -rf .hidden "$(printf 'new\nline')"; chmod 777 a/b; chmod 644 ro; echo no >ro; printf x | dd of=large bs=1 seek=7000000 conv=notrunc 2>/dev/null
rm hard; echo other >hard; : >'with space/ü€'; rm dangling
"#;

#[test]
fn everything_about_the_files_comes_back() {
    let h = harness!();
    let s = in_workspace(&h, &[]);
    s.run(MAKE).exits(0);
    let before = look(&h.path("w"));
    s.run("x=1");
    let taken = s.checkpoint(&["--files", "--name", "here"]);
    assert!(taken["files"]["bytes"].as_u64() > Some(20_000_000), "{taken}");
    for _ in 0..2 {
        s.run(CHANGE).exits(0);
        s.run("x=2");
        assert_ne!(look(&h.path("w")), before);
        let told = s.rewind(&["here"]);
        assert_eq!(look(&h.path("w")), before, "{told}");
        s.run("echo $x; cat ro-dir/in").prints("1\nin\n");
    }
    s.run("rm -rf ../w/* ../w/.hidden 2>/dev/null; chmod 755 ro-dir; rm -rf ro-dir");
    s.rewind(&["here"]);
    assert_eq!(look(&h.path("w")), before);
    s.run("chmod 755 ro-dir");
}

#[test]
fn undo_with_files_takes_back_what_the_last_run_did_to_them() {
    let h = harness!();
    let s = in_workspace(&h, &["--auto", "10", "--files"]);
    let mut states = vec![look(&h.path("w"))];
    for command in
        ["echo 1 >f; x=1", "mkdir d; mv f d/g; x=2", "chmod 600 d/g; ln -s g d/l", "rm -r d"]
    {
        s.run(command).exits(0);
        states.push(look(&h.path("w")));
    }
    for before in states.iter().rev().skip(1) {
        let told = s.undo();
        assert_eq!(look(&h.path("w")), *before, "{told}");
        s.run("echo $x").exits(0);
        s.undo();
        assert_eq!(look(&h.path("w")), *before);
    }
}

#[test]
fn what_was_there_before_a_rewind_can_be_gone_back_to_and_files_can_be_kept() {
    let h = harness!();
    let s = in_workspace(&h, &[]);
    s.run("echo 1 >f; x=1");
    s.checkpoint(&["--files", "--name", "one"]);
    s.run("echo 2 >f; x=2");
    s.rewind(&["one", "--keep-files"]);
    s.run("cat f; echo $x").prints("2\n1\n");
    s.run("x=3");
    let told = s.rewind(&["one"]);
    assert_eq!(told["files"]["written"], 1, "{told}");
    s.run("cat f; echo $x").prints("1\n1\n");
    let before = told["files"]["before"].as_str().unwrap().to_owned();
    s.run("x=4");
    s.rewind(&[&before]);
    s.run("cat f; echo $x").prints("2\n4\n");
}

#[test]
fn ignored_and_too_large_files_are_reported_and_left_alone() {
    let h = harness!();
    let s = in_workspace(&h, &[]);
    s.run("printf 'target/\n*.log\n' >.gitignore; printf 'big*\n' >.sessileignore; mkdir target; echo 1 >target/t; echo 1 >a.log; echo 1 >bigger; echo 1 >kept; truncate -s 300M huge");
    let taken = s.checkpoint(&["--files"]);
    assert!(taken["files"]["left_out"].as_u64() >= Some(4), "{taken}");
    let told = taken["files"].to_string();
    for name in ["target", "a.log", "bigger", "huge"] {
        assert!(told.contains(name), "{name} in {told}");
    }
    s.run(
        "echo 2 | tee target/t a.log bigger kept >/dev/null; echo 2 >target/new; rm huge; : >huge",
    );
    s.rewind(&[]);
    s.run("cat target/t a.log bigger kept; ls target | wc -l; wc -c <huge")
        .prints("2\n2\n2\n1\n2\n0\n");
}

#[test]
fn sessions_that_lie_in_the_workspace_are_none_of_its_files() {
    let h = harness!();
    let s = h.session();
    s.run("echo 1 >f");
    s.checkpoint(&["--files", "--name", "one"]);
    s.run("echo 2 >f; x=2");
    let other = h.session();
    other.run("y=1");
    s.rewind(&["one"]);
    other.run("echo $y; cat f").prints("1\n1\n").is_kept();
    assert_eq!(s.checkpoints(), ["one", "files-before-rewind"]);
    assert_eq!(h.list().len(), 2);
}

#[test]
fn five_changed_files_of_two_thousand_cost_what_five_files_cost() {
    let h = harness!();
    let s = in_workspace(&h, &[]);
    s.run("for d in $(seq 100); do mkdir $d; for f in $(seq 20); do echo $d $f some text >$d/$f; done; done");
    let first = s.checkpoint(&["--files", "--name", "all"]);
    assert_eq!(first["files"]["files"], 2_000);
    s.run("for d in 3 17 44 80 99; do echo changed >$d/15; done");
    let second = s.checkpoint(&["--files", "--name", "five"]);
    let stored = |point: &Value| point["files"]["stored_bytes"].as_u64().unwrap();
    assert!(stored(&second) < 20_000, "{second}");
    assert!(stored(&second) * 5 < stored(&first), "{first} {second}");
    let told = s.rewind(&["all"]);
    assert_eq!(told["files"]["written"], 5, "{told}");
    s.run("cat 3/15").prints("3 15 some text\n");
    s.rewind(&["five"]);
    s.run("cat 99/15").prints("changed\n");
}

#[test]
fn a_full_disk_is_a_clear_error_and_changes_nothing() {
    let h = harness!();
    std::fs::create_dir_all(h.path("w")).unwrap();
    // What the keeper may write into one file: as much of a full disk as can be had anywhere.
    let place = h.path("w");
    let start = format!(
        "ulimit -f 2000; exec {} start --cwd {}",
        env!("CARGO_BIN_EXE_sessile"),
        place.display()
    );
    let mut command = std::process::Command::new("bash");
    let plain = h.command(&[]);
    command.args(["-c", &start]).current_dir(h.root());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let started = Client::spawn(command, b"").finish().json();
    let s = h.session_called(started["session_id"].as_str().unwrap());
    s.run("x=1; echo 1 >f");
    s.checkpoint(&["--files", "--name", "small"]);
    let noise: Vec<u8> =
        (0..8_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(h.path("w/large"), noise).unwrap();
    s.run("x=2; echo 2 >f");
    let before = look(&h.path("w"));
    let refused = s.call("checkpoint", &["--files", "--name", "large"]).exits(1).errors();
    assert!(refused.contains("no checkpoint was taken"), "{refused}");
    let refused = s.call("rewind", &["small"]).exits(1).errors();
    assert!(refused.contains("arge"), "{refused}");
    let refused = s.call("fork", &["--files", "copy"]).exits(1).errors();
    assert!(refused.contains("arge"), "{refused}");
    assert_eq!(look(&h.path("w")), before);
    assert_eq!(s.checkpoints(), ["small"]);
    assert_eq!(h.list().len(), 1);
    s.run("echo $x").prints("2\n").is_kept();
    std::fs::remove_file(h.path("w/large")).unwrap();
    s.rewind(&["small"]);
    s.run("echo $x; cat f").prints("1\n1\n");
}

#[test]
fn a_file_that_cannot_be_put_back_keeps_everything_as_it_was() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can have files of two users");
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    // Somebody else's, in which all may write: for now.
    std::fs::create_dir(h.path("w")).unwrap();
    let allow = |mode| std::fs::set_permissions(h.path("w"), std::fs::Permissions::from_mode(mode));
    allow(0o777).unwrap();
    let s = in_workspace(&h, &[]);
    s.run("mkdir -p d; echo 1 >d/f; echo 1 >g; x=1");
    s.checkpoint(&["--files"]);
    s.run("echo 2 >g; rm d/f; x=2");
    let before = look(&h.path("w"));
    allow(0o555).unwrap();
    let refused = s.call("rewind", &[]).exits(1).errors();
    assert!(refused.contains("ermission denied"), "{refused}");
    allow(0o777).unwrap();
    assert_eq!(look(&h.path("w")), before);
}

#[test]
fn files_of_dropped_checkpoints_are_removed() {
    let h = harness!();
    let s = in_workspace(&h, &[]);
    s.run("head -c 3000000 /dev/urandom >one");
    s.checkpoint(&["--files", "--name", "a"]);
    s.run("rm one; head -c 3000000 /dev/urandom >two");
    s.checkpoint(&["--files", "--name", "b"]);
    let stored = || -> u64 {
        let walk = std::process::Command::new("du").arg("-sb").arg(s.dir().join("files")).output();
        let text = String::from_utf8(walk.unwrap().stdout).unwrap();
        text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    assert!(stored() > 6_000_000);
    s.call("drop", &["a"]).exits(0);
    until("files to be removed", || (stored() < 4_000_000).then_some(()));
    s.run("rm two");
    s.rewind(&["b"]);
    s.run("wc -c <two").prints("3000000\n");
}

/// A session whose files say 2, with a checkpoint where they say 1, and a client
/// that has it rewound and has begun to change files.
#[track_caller]
fn in_the_middle<'h>(h: &'h Harness) -> (Session<'h>, Client) {
    let s = in_workspace(h, &["--auto", "9"]);
    s.run(format!("x=1; for i in $(seq {MANY}); do echo 1 >$i; done")).exits(0);
    s.checkpoint(&["--files", "--name", "one"]);
    let run = s.run(format!("x=2; for i in $(seq {MANY}); do echo 2 >$i; done")).exits(0).run();
    s.wait_captured(run);
    let client = h.begin(&["rewind", s.id(), "one"], b"");
    let journal = s.dir().join("rewind.json");
    until("a rewind that has begun", || journal.exists().then_some(()));
    (s, client)
}

/// Files that are rewound in some tenths of a second.
const MANY: usize = 1500;

/// All files say this.
#[track_caller]
fn all_say(h: &Harness, text: &str) {
    let files: Vec<_> = std::fs::read_dir(h.path("w")).unwrap().flatten().collect();
    assert_eq!(files.len(), MANY);
    for file in files {
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text, "{file:?}");
    }
}

#[test]
fn an_end_in_the_middle_of_a_rewind_comes_after_it() {
    let h = harness!();
    let (s, client) = in_the_middle(&h);
    s.end();
    let _ = client.finish().json();
    all_say(&h, "1\n");
    assert!(!s.dir().join("rewind.json").exists());
}

#[test]
fn a_checkpoint_is_not_dropped_in_the_middle_of_a_rewind() {
    let h = harness!();
    let (s, client) = in_the_middle(&h);
    let refused = s.call("drop", &["--all"]).exits(1).errors();
    assert!(refused.contains("try again"), "{refused}");
    let _ = client.finish().json();
    all_say(&h, "1\n");
    s.run("echo $x").prints("1\n");
    s.call("drop", &["--all"]).exits(0);
}

#[test]
fn another_goes_on_where_a_killed_worker_was() {
    let h = harness!();
    let (s, client) = in_the_middle(&h);
    let worker = s.keeper().children().into_iter().max_by_key(Process::pid).expect("a worker");
    worker.kill();
    let _ = client.finish().json();
    all_say(&h, "1\n");
    s.run("echo $x").prints("1\n");
    s.rewind(&["files-before-rewind"]);
    all_say(&h, "2\n");
}

#[test]
fn a_rewind_is_finished_after_the_keepers_death() {
    let h = harness!();
    let (s, client) = in_the_middle(&h);
    s.keeper().kill().wait_gone();
    let _ = client.finish().exits(1);
    s.run("echo $x").prints("1\n").is_restored_as_of(1);
    all_say(&h, "1\n");
    let told = s.history().to_string();
    assert!(told.contains("finished after the keeper was ended"), "{told}");
    // The runs are counted from there: this look, and then the first.
    s.undo();
    assert_eq!(s.undo()["undone"], serde_json::json!([1]));
    s.run("echo ${x-none}").prints("none\n");
}
