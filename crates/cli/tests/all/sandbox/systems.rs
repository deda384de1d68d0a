//! Another system tree than the host's, and being root inside.

use sessile_testkit::{Harness, harness, needs};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of this machine, by its name.
fn program(name: &str) -> PathBuf {
    let search = std::env::var_os("PATH").expect("a search path");
    let found = std::env::split_paths(&search).map(|at| at.join(name)).find(|path| path.is_file());
    found.expect("a program")
}

/// A small system: some programs of this machine with the libraries that they need.
fn make_system(root: &Path) {
    for directory in ["usr/bin", "usr/lib", "usr/local/bin", "etc/ssl"] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    for (name, to) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib")] {
        symlink(to, root.join(name)).expect("a link");
    }
    let mut libraries = BTreeSet::new();
    for name in ["bash", "cat", "id", "ls", "chmod"] {
        let path = program(name);
        fs::copy(&path, root.join("usr/bin").join(name)).expect("a copy");
        let needs = Command::new("ldd").arg(&path).output().expect("a list").stdout;
        let needs = String::from_utf8(needs).expect("text");
        libraries
            .extend(needs.split_whitespace().filter(|w| w.starts_with('/')).map(PathBuf::from));
    }
    for library in libraries {
        let name = library.file_name().expect("a name");
        fs::copy(&library, root.join("usr/lib").join(name)).expect("a copy");
    }
    fs::write(root.join("etc/os-release"), "ID=tiny\n").expect("a file");
    // Links lead to nothing outside of the tree.
    symlink("/etc/passwd", root.join("etc/timezone")).expect("a link");
    symlink("../../../../../../../../etc/passwd", root.join("etc/magic")).expect("a link");
}

fn give_to_owner(h: &Harness, path: &Path) {
    let owner = fs::metadata(h.root()).expect("a directory");
    let mut all = vec![path.to_owned()];
    while let Some(path) = all.pop() {
        if path.is_symlink() {
            continue;
        }
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("it is given away");
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            all.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
}

fn for_everybody(check: impl Fn(&Harness)) {
    check(&harness!());
    if rustix::process::geteuid().is_root() {
        check(&Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")));
    }
}

#[test]
fn another_system_tree_takes_the_place_of_the_hosts() {
    for_everybody(|h| {
        let tree = h.path("tree");
        make_system(&tree);
        give_to_owner(h, &tree);
        let at = tree.to_str().expect("text");
        fs::create_dir(h.path("work")).expect("a directory");
        give_to_owner(h, &h.path("work"));
        let work = h.path("work");
        let work = work.to_str().expect("text");
        let s = h.session_with(&["--sandbox", "full-access", "--rootfs", at, "--cwd", work]);
        s.run("cat /etc/os-release; ls /usr/bin; id -un; echo w >f; cat f")
            .exits(0)
            .prints("ID=tiny\nbash\ncat\nchmod\nid\nls\nagent\nw\n");
        s.run("cat /etc/magic || cat /etc/timezone || echo x >/usr/x || exit 7").exits(7);
        let missing = h.sessile(&["exec", s.id(), "--language", "python", "--", "1"]);
        assert!(String::from_utf8_lossy(&missing.stderr).contains("was not found"));
    });
}

#[test]
fn root_inside_changes_the_system_in_its_layer() {
    for_everybody(|h| {
        let tree = h.path("tree");
        make_system(&tree);
        give_to_owner(h, &tree);
        let at = tree.to_str().expect("text");
        fs::create_dir(h.path("work")).expect("a directory");
        give_to_owner(h, &h.path("work"));
        let work = h.path("work");
        let work = work.to_str().expect("text");
        let s =
            h.session_with(&["--sandbox", "full-access", "--rootfs", at, "--root", "--cwd", work]);
        s.run("id -un; echo $HOME; echo 'echo installed' >/usr/local/bin/new; echo h >~/h")
            .exits(0)
            .prints("root\n/root\n");
        s.run("chmod +x /usr/local/bin/new; new").exits(0).prints("installed\n");
        assert!(!tree.join("usr/local/bin/new").exists());
        // What belongs to others is not root's.
        s.run("chmod 777 /proc/sys || grep -v ':[*]:' /etc/shadow || exit 7").exits(7);
    });
}

#[test]
fn trees_that_are_none_are_refused() {
    let h = harness!();
    let refused = |args: &[&str]| {
        let output = h.sessile(&[&["start", "--sandbox", "full-access"], args].concat());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    fs::create_dir(h.path("empty")).expect("a directory");
    let empty = h.path("empty");
    assert!(refused(&["--rootfs", empty.to_str().expect("text")]).contains("no system tree"));
    assert!(refused(&["--rootfs", "/nowhere"]).contains("cannot be opened"));
    if rustix::process::geteuid().is_root() {
        let user = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
        let output = user.sessile(&["start", "--sandbox", "full-access", "--root"]);
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("takes a system tree that is yours")
        );
    }
}

/// With a file of a user that the system has for its programs.
const TINY_PACKAGE: &str = "mkdir -p tiny/DEBIAN tiny/usr/bin tiny/etc
printf 'Package: sessile-tiny\\nVersion: 1\\nArchitecture: all\\nMaintainer: n <n@example.com>\\nDescription: tiny\\n' \
    >tiny/DEBIAN/control
printf '#!/bin/sh\\nchown man /usr/bin/sessile-tiny\\nadduser --system --quiet sessile-tiny\\n' >tiny/DEBIAN/postinst
printf '#!/bin/sh\\necho installed\\n' >tiny/usr/bin/sessile-tiny
echo x >tiny/etc/sessile-tiny
chmod 755 tiny/DEBIAN/postinst tiny/usr/bin/sessile-tiny
dpkg-deb --build tiny >/dev/null";

#[test]
fn root_inside_installs_packages_with_users_of_their_own() {
    if !needs::has_program("apt-get") || !needs::has_program("adduser") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("a range of user ids");
    }
    for preset in ["full-access", "development"] {
        let h = harness!();
        let s = h.session_with(&["--sandbox", preset, "--root"]);
        s.run(TINY_PACKAGE).exits(0);
        s.run("apt-get install --yes ./tiny.deb >log 2>&1 || { cat log; false; }").exits(0);
        s.run("sessile-tiny; stat -c %U /usr/bin/sessile-tiny; id -un sessile-tiny; cat /etc/sessile-tiny")
            .exits(0)
            .prints("installed\nman\nsessile-tiny\nx\n");
        s.run("dpkg --status sessile-tiny | grep ^Status; cat /etc/apt/auth.conf* 2>/dev/null")
            .prints("Status: install ok installed\n");
        assert!(!Path::new("/usr/bin/sessile-tiny").exists());
        assert!(!Path::new("/etc/sessile-tiny").exists());
        // What was installed is there again in a new sandbox.
        s.run("kill -9 $$").has("exit_code", 137);
        s.run(
            "sessile-tiny; dpkg --remove sessile-tiny >/dev/null 2>&1 && ls /usr/bin/sessile-tiny",
        )
        .exits(2)
        .prints("installed\n");
    }
}
