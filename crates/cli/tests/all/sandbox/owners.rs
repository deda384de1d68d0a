//! Workspaces with files of other users and groups.

use sessile_testkit::{Harness, Session, harness, needs};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;

/// Policies by mounts alone, and by the file system of rules.
const PRESETS: [&str; 2] = ["full-access", "development"];

/// Somebody, and somebody else, whom no machine knows.
const OWNER: u32 = 4711;
const OTHER: u32 = 4712;

/// Files of somebody, among them some that nobody else may read.
fn make_project(h: &Harness) -> PathBuf {
    let project = h.path("project");
    for directory in ["sub/deep", "closed"] {
        fs::create_dir_all(project.join(directory)).expect("a directory");
    }
    for file in ["a", "gone", "sub/b", "sub/deep/c", "closed/secret"] {
        fs::write(project.join(file), "old\n").expect("a file");
    }
    for (name, mode) in [("closed", 0o700), ("closed/secret", 0o600)] {
        fs::set_permissions(project.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let all =
        ["", "sub", "sub/deep", "closed", "a", "gone", "sub/b", "sub/deep/c", "closed/secret"];
    for name in all {
        chown(project.join(name), Some(OWNER), Some(OWNER)).expect("it is given away");
    }
    project
}

fn session_in<'h>(h: &'h Harness, project: &std::path::Path, options: &[&str]) -> Session<'h> {
    let cwd = ["--cwd", project.to_str().expect("text")];
    h.session_with(&[options, &cwd].concat())
}

/// Every way to change what is there.
const WORK: &str = "set -e; echo new >>a; rm gone; sed -i s/old/new/ sub/b; echo n >sub/deep/n
    cat closed/secret >read; mkdir made; echo m >made/m; ln -s a made/link; chmod 700 sub/deep/c
    mv sub moved; truncate -s 1 closed/secret; cp -p a kept; stat -c %U:%G a moved";

#[test]
fn root_changes_files_of_others_and_they_keep_their_owner() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("files of others");
    }
    for preset in PRESETS {
        for files in ["overlay", "direct"] {
            let h = harness!();
            let project = make_project(&h);
            let s = session_in(&h, &project, &["--sandbox", preset, "--files", files]);
            s.run(WORK).exits(0).prints("agent:agent\nagent:agent\n");
            if files == "overlay" {
                assert_eq!(fs::read_to_string(project.join("a")).expect("a file"), "old\n");
                let _ = h.sessile(&["apply", s.id()]).exits(0);
            }
            assert_eq!(fs::read_to_string(project.join("a")).expect("a file"), "old\nnew\n");
            assert!(!project.join("gone").exists() && !project.join("sub").exists());
            let changed = ["a", "moved", "moved/b", "moved/deep/c", "closed/secret"];
            let made = ["moved/deep/n", "read", "made", "made/m", "made/link", "kept"];
            for name in [&changed[..], &made].concat() {
                let found = fs::symlink_metadata(project.join(name)).expect(name);
                assert_eq!((found.uid(), found.gid()), (OWNER, OWNER), "{preset} {files} {name}");
            }
            let _ = h.sessile(&["end", s.id()]);
        }
    }
}

#[test]
fn root_changes_files_of_several_owners() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("files of others");
    }
    for preset in PRESETS {
        for files in ["overlay", "direct"] {
            let h = harness!();
            let project = make_project(&h);
            fs::create_dir(project.join("of_root")).expect("a directory");
            for (name, owner) in [("of_root/x", 0), ("of_root/y", 0), ("of_other", OTHER)] {
                fs::write(project.join(name), "old\n").expect("a file");
                chown(project.join(name), Some(owner), Some(owner)).expect("an owner");
            }
            let s = session_in(&h, &project, &["--sandbox", preset, "--files", files]);
            s.run(WORK).exits(0).prints("agent:agent\nagent:agent\n");
            s.run(
                "echo new >>of_root/x && rm of_root/y && echo n >of_root/n && echo new >>of_other \
                 && mkdir of_root/d && echo n >of_root/d/n && ln -s n of_root/l",
            )
            .exits(0);
            if files == "overlay" {
                let _ = h.sessile(&["apply", s.id()]).exits(0);
            }
            for (name, owner) in [("a", OWNER), ("of_root/x", 0), ("of_other", OTHER)] {
                let found = fs::metadata(project.join(name)).expect(name);
                assert_eq!((found.uid(), found.gid()), (owner, owner), "{preset} {files} {name}");
                let text = fs::read_to_string(project.join(name)).expect("a file");
                assert_eq!(text, "old\nnew\n", "{preset} {files} {name}");
            }
            assert!(!project.join("of_root/y").exists());
            // Whoever owns the directory gets a new file, a link and a directory in it.
            for name in ["of_root/n", "of_root/d", "of_root/d/n", "of_root/l"] {
                let found = fs::symlink_metadata(project.join(name)).expect(name);
                assert_eq!((found.uid(), found.gid()), (0, 0), "{preset} {files} {name}");
            }
            let _ = h.sessile(&["end", s.id()]);
        }
    }
}

#[test]
fn root_reads_files_of_others_that_are_closed_and_changes_none_by_a_policy_that_forbids_it() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("files of others");
    }
    let h = harness!();
    let project = make_project(&h);
    let s = session_in(&h, &project, &["--sandbox", "read-only"]);
    s.run("cat closed/secret; echo x >a || echo x >closed/new || chmod 700 a || rm gone || exit 7")
        .exits(7)
        .prints("old\n");
}

/// Root inside sees the owners as they are, and may change what they own.
#[test]
fn root_of_a_sandbox_sees_owners_as_they_are() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("a range of user ids");
    }
    for preset in PRESETS {
        let h = harness!();
        let project = make_project(&h);
        let s = session_in(&h, &project, &["--sandbox", preset, "--root"]);
        s.run("stat -c %u:%g a; echo new >>a; chown 12:13 sub/b; stat -c %u:%g a sub/b")
            .exits(0)
            .prints("4711:4711\n4711:4711\n12:13\n");
        let _ = h.sessile(&["apply", s.id()]).exits(0);
        let found = fs::metadata(project.join("sub/b")).expect("a file");
        assert_eq!((found.uid(), found.gid()), (OWNER, OWNER), "owners are not applied");
    }
}

/// An ordinary user who is in another group as well, with rules for paths or without.
fn in_group(script: &str) -> Harness {
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    h.where_mounted(script).in_group(OTHER)
}

/// A project of that user whose files belong to the group.
fn make_shared(h: &Harness) -> PathBuf {
    let project = make_project(h);
    let owner = fs::metadata(h.root()).expect("a directory").uid();
    let all =
        ["", "sub", "sub/deep", "closed", "a", "gone", "sub/b", "sub/deep/c", "closed/secret"];
    for name in all {
        chown(project.join(name), Some(owner), Some(OTHER)).expect("it is given away");
    }
    let mode = fs::Permissions::from_mode(0o2775);
    fs::set_permissions(project.join("sub"), mode).expect("a mode");
    project
}

/// Opens the device for rules to everybody, or to root alone.
fn fuse(mode: u32) -> String {
    format!(
        "mount -t tmpfs -o mode=755 none /mnt; mknod -m {mode:o} /mnt/fuse c 10 229
         mount --bind /mnt/fuse /dev/fuse"
    )
}

#[test]
fn files_of_a_group_that_the_user_is_in_are_changed_and_keep_it() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("another group");
    }
    for preset in PRESETS {
        for files in ["overlay", "direct"] {
            let h = in_group(&fuse(0o666));
            let project = make_shared(&h);
            let s = session_in(&h, &project, &["--sandbox", preset, "--files", files]);
            s.run(WORK).exits(0);
            if files == "overlay" {
                assert_eq!(fs::read_to_string(project.join("a")).expect("a file"), "old\n");
                let _ = h.sessile(&["apply", s.id()]).exits(0);
            }
            for name in ["a", "closed/secret"] {
                let found = fs::metadata(project.join(name)).expect(name);
                assert_eq!(found.gid(), OTHER, "{preset} {files} {name}");
            }
            assert_eq!(fs::read_to_string(project.join("a")).expect("a file"), "old\nnew\n");
            assert!(!project.join("gone").exists() && project.join("moved/deep/n").exists());
            let _ = h.sessile(&["end", s.id()]);
        }
    }
}

#[test]
fn without_rules_for_paths_such_files_can_be_replaced_and_the_start_tells_the_rest() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("another group");
    }
    let h = in_group(&fuse(0o600));
    let project = make_shared(&h);
    let cwd = project.to_str().expect("text");
    let started = h.sessile(&["start", "--sandbox", "full-access", "--cwd", cwd]).exits(0).json();
    let note = started["notes"][0].as_str().expect("a note");
    assert!(note.contains("4712") && note.contains("--files direct"), "{note}");
    let s = h.session_called(started["session_id"].as_str().expect("an id"));
    s.run("echo n >sub/deep/n && sed -i s/old/new/ sub/b && rm gone closed/secret").exits(0);
    s.run("echo new >>a").complains("Value too large");
    let _ = h.sessile(&["apply", s.id()]).exits(0);
    assert_eq!(fs::read_to_string(project.join("sub/b")).expect("a file"), "new\n");
    assert_eq!(fs::metadata(project.join("sub/b")).expect("a file").gid(), OTHER);
}
