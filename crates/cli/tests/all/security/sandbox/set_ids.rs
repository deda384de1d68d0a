//! Programs that would run as somebody else.

use super::{Attempt, all_fail, for_everybody, py, sh};
use sessile_testkit::{Harness, Session, harness, needs};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// By every call that can give a file its mode.
const MADE: &[Attempt] = &[
    sh("chmod u+s", "cp /bin/sh s && chmod u+s s"),
    sh("chmod g+s", "cp /bin/sh t && chmod g+s t"),
    sh("chmod g+s of a directory", "mkdir -p d && chmod g+s d"),
    sh("install", "install -m 4755 /bin/sh i"),
    sh("cp of a mode", "cp -p $(find /usr/bin -perm -4000 -readable | head -1) p && test -u p"),
    py("chmod", "open('f', 'w').close()\nsyscall(90, b'f', 0o4755)"),
    py("fchmod", "syscall(91, os.open('f', os.O_CREAT), 0o2755)"),
    py("fchmodat", "syscall(268, -100, b'f', 0o4755)"),
    py("fchmodat2", "syscall(452, -100, b'f', 0o4755, 0)"),
    py("fchmodat2 of a descriptor", "syscall(452, os.open('f', 0), b'', 0o6755, 0x1000)"),
    py("chmod with upper bits", "syscall(90, b'f', 0x100000000 | 0o4755)"),
    py("open", "syscall(2, b'o1', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    py("openat", "syscall(257, -100, b'o2', os.O_CREAT | os.O_WRONLY, 0o2755)"),
    py("openat without a name", "syscall(257, -100, b'.', os.O_TMPFILE | os.O_WRONLY, 0o4755)"),
    py("openat2", "syscall(437, -100, b'o3', struct.pack('QQQ', os.O_CREAT | 1, 0o4755, 0), 24)"),
    py("creat", "syscall(85, b'o4', 0o4755)"),
    py("mknod", "syscall(133, b'm1', 0o104755, 0)"),
    py("mknodat", "syscall(259, -100, b'm2', 0o102755, 0)"),
    py(
        "a capability",
        "os.setxattr('f', 'security.capability', struct.pack('<IIIII', 0x02000001, 1 << 7, 0, 0, 0))",
    ),
    py(
        "an access list with such a mode",
        "os.setxattr('f', 'system.posix_acl_access', b'\\2\\0\\0\\0\\1\\0\\7\\10' + b'\\xff' * 4)",
    ),
    py("the layer's own marks", "os.setxattr('f', 'trusted.overlay.metacopy', b'')"),
];

/// Files with such bits below a directory of the host.
fn set_ids_below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top).into_iter().flatten().filter_map(Result::ok) {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        if meta.is_dir() {
            found.extend(set_ids_below(&entry.path()));
        }
        if !meta.is_symlink() && meta.mode() & 0o6000 != 0 {
            found.push(entry.path());
        }
    }
    found
}

fn root_session<'h>(h: &'h Harness, more: &[&str]) -> Option<Session<'h>> {
    if !rustix::process::geteuid().is_root() {
        needs::not_permitted("a system tree that is the user's");
        return None;
    }
    let args = [&["--sandbox", "full-access", "--root"], more].concat();
    Some(h.session_with(&args))
}

#[test]
fn no_call_makes_a_set_id_program_for_the_agent() {
    for_everybody(|h| {
        for files in ["overlay", "direct"] {
            let work = h.path(files);
            std::fs::create_dir(&work).expect("a directory");
            std::fs::set_permissions(&work, PermissionsExt::from_mode(0o777)).expect("a mode");
            let shown = work.display().to_string();
            let args = ["--sandbox", "full-access", "--files", files, "--workspace", &shown];
            all_fail(&h.session_with(&args), MADE);
            assert_eq!(set_ids_below(&h.root()), [] as [PathBuf; 0]);
        }
    });
}

#[test]
fn no_call_makes_one_for_root_inside_where_others_can_find_it() {
    let h = harness!();
    let Some(s) = root_session(&h, &["--files", "direct"]) else { return };
    all_fail(&s, MADE);
    let bound = h.path("bound");
    std::fs::create_dir(&bound).expect("a directory");
    let bind = format!("{}:/bound", bound.display());
    let s = root_session(&h, &["--bind", &bind]).expect("root");
    all_fail(&s, MADE);
    s.run("cd /bound").exits(0);
    s.run_in("python", "import os; os.chdir('/bound')").exits(0);
    all_fail(&s, MADE);
    assert_eq!(set_ids_below(&h.root()), [] as [PathBuf; 0]);
}

/// Root inside may make them, as packages need it.
#[test]
fn a_set_id_program_in_a_layer_gives_nothing_and_stays_there() {
    let h = harness!();
    let Some(s) = root_session(&h, &[]) else { return };
    s.run("cp /usr/bin/id own; chown 33:33 own; chmod 6755 own; mkdir shared; chmod g+s shared; echo x >shared/f")
        .exits(0);
    s.run("cp /usr/bin/id /usr/local/bin/own; chmod 4755 /usr/local/bin/own; cp own /etc/own; chmod 6755 /etc/own").exits(0);
    // Nobody inside becomes somebody else by it.
    s.run("./own -u; setpriv --reuid 7 --regid 7 --clear-groups /usr/local/bin/own -u; setpriv --reuid 7 --regid 7 --clear-groups /etc/own -u")
        .exits(0)
        .prints("0\n7\n7\n");
    s.run("grep -cv nosuid /proc/self/mountinfo").prints("0\n");
    let id = s.id();
    // Nobody outside gets to it.
    let stays_inside = |h: &Harness| {
        for path in set_ids_below(&h.root()) {
            let own = path.strip_prefix(h.sessions_dir()).expect("within the sessions");
            let session = own.components().next().expect("a session");
            let mode = h.sessions_dir().join(session).metadata().expect("a directory").mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    };
    assert!(!set_ids_below(&s.dir()).is_empty());
    stays_inside(&h);
    let change = &h.sessile(&["diff", id, "--json", "own"]).json()["changes"][0];
    assert_eq!(change["mode"], "6755");
    assert!(h.sessile(&["diff", id, "own"]).text().contains("mode 6755"));
    let applied = h.sessile(&["apply", id]).exits(0).text();
    let applied: serde_json::Value = serde_json::from_str(&applied).expect("JSON");
    assert_eq!(applied["applied"], serde_json::json!(["own", "shared", "shared/f"]));
    assert_eq!(applied["skipped"][0]["path"], "own");
    let reason = applied["skipped"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("set-user-ID"), "{reason}");
    for (name, mode) in [("own", 0o755), ("shared", 0o755)] {
        assert_eq!(h.path(name).metadata().expect("a file").mode() & 0o7777, mode, "{name}");
    }
    stays_inside(&h);
    // Copies of the layer are as private as the layer.
    h.sessile(&["checkpoint", id, "--files", "--name", "before"]).exits(0);
    s.run("rm own").exits(0);
    h.sessile(&["rewind", id, "before"]).exits(0);
    s.run("stat -c %a own").prints("6755\n");
    let fork = h.sessile(&["fork", id, "--files", "copy"]).json();
    let fork = h.session_called(fork["session_ids"][0].as_str().expect("an id"));
    fork.run("stat -c %a own /usr/local/bin/own /etc/own").prints("6755\n4755\n6755\n");
    stays_inside(&h);
    let saved = h.path("saved.sessile").display().to_string();
    h.sessile(&["save", id, "--files", "--output", &saved]).exits(0);
    let other = h.path("other").display().to_string();
    h.sessile(&["restore", &saved, "--cwd", &other]).exits(0);
    assert_eq!(h.path("other/own").metadata().expect("a file").mode() & 0o7777, 0o755);
    stays_inside(&h);
}

/// They are the host's, also where its root runs the session.
#[test]
fn devices_and_files_of_the_kernel_keep_the_hosts_modes_and_owners() {
    const TOUCHED: &[Attempt] = &[
        sh("the mode of a device", "chmod 666 /dev/full"),
        sh("the owner of a device", "chown 0:0 /dev/full || chown $(id -u) /dev/full"),
        sh("the time of a device", "touch -d 2001-01-01 /dev/full"),
        sh("the mode of what covers a file", "chmod 666 /proc/kallsyms"),
        sh("the mode of a file of the kernel", "chmod 444 /proc/meminfo"),
        sh("the owner of a file of the kernel", "chown $(id -u) /proc/uptime"),
    ];
    for_everybody(|h| {
        let s = h.session_with(&["--sandbox", "full-access"]);
        all_fail(&s, TOUCHED);
        s.run("echo x >/dev/null && head -c 3 /dev/zero | wc -c; echo x 2>/dev/null >/dev/full || grep -c MemTotal /proc/meminfo")
            .prints("3\n1\n");
    });
    let h = harness!();
    if let Some(s) = root_session(&h, &[]) {
        all_fail(&s, TOUCHED);
    }
}
