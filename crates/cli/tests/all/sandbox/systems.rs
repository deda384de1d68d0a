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
    make_system_of(root, &["bash", "cat", "id", "ls", "chmod", "rm"]);
}

fn make_system_of(root: &Path, names: &[&str]) {
    for directory in ["usr/bin", "usr/lib", "usr/local/bin", "etc/ssl"] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    for (name, to) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib")] {
        symlink(to, root.join(name)).expect("a link");
    }
    let mut libraries = BTreeSet::new();
    let given = names
        .iter()
        .map(|name| if name.starts_with('/') { PathBuf::from(name) } else { program(name) });
    for path in given {
        let name = path.file_name().expect("a name");
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
            .prints("ID=tiny\nbash\ncat\nchmod\nid\nls\nrm\nagent\nw\n");
        s.run("cat /etc/magic || cat /etc/timezone || echo x >/usr/x || exit 7").exits(7);
        let missing = h.sessile(&["exec", s.id(), "--language", "python", "--", "1"]).errors();
        let in_tree = format!("was not found in the system tree {at}");
        assert!(missing.contains(&format!("python3 {in_tree}")), "{missing}");
        fs::remove_file(tree.join("usr/bin/bash")).expect("it is gone");
        let args = ["start", "--sandbox", "full-access", "--rootfs", at, "--cwd", work];
        let missing = h.sessile(&args).exits(1).errors();
        assert!(missing.contains(&format!("bash {in_tree}")), "{missing}");
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
        let left_by_save =
            |file: &str| h.sessile(&["save", s.id(), "-o", file]).json()["left"].clone();
        assert_eq!(left_by_save("before.sessile"), serde_json::json!([]));
        for file in ["/etc/new", "/var/lib/new", "/etc/passwd"] {
            s.run(format!("v=$(cat {file}); echo x >>{file}")).exits(0);
            assert_eq!(left_by_save("changed.sessile")[0]["name"], "changes to the system");
            s.run(format!("if [[ $v ]]; then echo \"$v\" >{file}; else rm {file}; fi")).exits(0);
            assert_eq!(left_by_save("before.sessile"), serde_json::json!([]), "{file}");
        }
        s.run("id -un; echo $HOME; echo 'echo installed' >/usr/local/bin/new; echo h >~/h")
            .exits(0)
            .prints("root\n/root\n");
        s.run("chmod +x /usr/local/bin/new; new").exits(0).prints("installed\n");
        assert!(!tree.join("usr/local/bin/new").exists());
        assert_eq!(left_by_save("after.sessile")[0]["name"], "changes to the system");
        // What belongs to others is not root's.
        s.run("chmod 777 /proc/sys || grep -v ':[*]:' /etc/shadow || exit 7").exits(7);
    });
}

/// A Python outside of the system's directories, as pyenv has it. Only its files count.
#[test]
fn root_inside_installs_into_a_python_outside_of_the_system() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("the host's system belongs to root");
    }
    let h = harness!();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let prefix = fs::canonicalize(elsewhere.path()).expect("a path").join("python-3.13");
    let packages = prefix.join("lib/python3.13/site-packages");
    fs::create_dir_all(prefix.join("bin")).expect("a directory");
    fs::create_dir_all(&packages).expect("a directory");
    fs::write(packages.join("../os.py"), "").expect("a file");
    fs::copy("/bin/sh", prefix.join("bin/python3")).expect("a copy");
    let path = format!("PATH={}:/usr/bin:/bin", prefix.join("bin").display());
    let with = |more: &[&str]| {
        let args = ["--sandbox", "full-access", "--env", &path];
        h.session_with(&[&args[..], more].concat())
    };
    let packages = packages.display();
    let install =
        format!("echo new >{packages}/new.py && echo tool >{}/bin/tool", prefix.display());
    let seen = format!("cat {packages}/new.py {}/bin/tool", prefix.display());
    with(&[]).run(&install).exits(1);
    let s = with(&["--root"]);
    s.run(&install).exits(0);
    assert!(!prefix.join("bin/tool").exists(), "it goes into the layer");
    let saved = h.sessile(&["save", s.id(), "-o", "saved.sessile"]).json();
    assert_eq!(saved["left"][0]["name"], "changes to the system");
    let forked = h.sessile(&["fork", s.id(), "--files", "copy"]).exits(0).json();
    assert_eq!(forked["left"], serde_json::json!([]));
    let fork = h.session_called(forked["session_ids"][0].as_str().expect("an id"));
    fork.run(&seen).exits(0).prints("new\ntool\n");
    // It is kept with the layer.
    s.wait_captured(1);
    s.keeper().kill();
    s.run(&seen).exits(0).prints("new\ntool\n");
}

#[test]
fn root_inside_becomes_other_users_and_adds_some() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("a range of user ids");
    }
    if !needs::has_program("su") || !needs::has_program("useradd") {
        return;
    }
    let h = harness!();
    let s = h.session_with(&["--sandbox", "full-access", "--root"]);
    s.run("su agent -s /bin/sh -c 'cd && pwd && touch f && id -un'")
        .exits(0)
        .prints("/home/agent\nagent\n");
    s.run("useradd --create-home ann && su ann -s /bin/sh -c 'cd && pwd && touch f'")
        .exits(0)
        .prints("/home/ann\n");
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
        let output =
            user.sessile(&["start", "--sandbox", "full-access", "--root", "--rootfs", "/"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("belongs to another user"));
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

/// Programs that install a package, with what they read.
fn make_debian(root: &Path) {
    let programs = [
        "bash",
        "apt-get",
        "cat",
        "chmod",
        "chown",
        "diff",
        "dpkg",
        "dpkg-deb",
        "dpkg-split",
        "id",
        "ls",
        "mkdir",
        "rm",
        "stat",
        "tar",
        "/sbin/ldconfig",
        "/sbin/start-stop-daemon",
    ];
    make_system_of(root, &programs);
    fs::copy(root.join("usr/bin/bash"), root.join("usr/bin/sh")).expect("a copy");
    symlink("usr/bin", root.join("sbin")).expect("a link");
    let copy = |from: &str, to: &str| {
        let mut call = Command::new("cp");
        call.args(["--recursive", "--dereference", from]).arg(root.join(to));
        assert!(call.status().expect("a copy").success(), "{from}");
    };
    fs::create_dir_all(root.join("usr/share")).expect("a directory");
    copy("/usr/lib/apt", "usr/lib");
    copy("/usr/share/dpkg", "usr/share");
    for method in ["file", "copy", "store"] {
        let path = format!("/usr/lib/apt/methods/{method}");
        let needs = Command::new("ldd").arg(&path).output().expect("a list").stdout;
        let needs = String::from_utf8(needs).expect("text");
        for library in needs.split_whitespace().filter(|word| word.starts_with('/')) {
            copy(library, "usr/lib");
        }
    }
    for directory in [
        "etc/apt/apt.conf.d",
        "etc/dpkg",
        "var/lib/apt/lists/partial",
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
    ] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    fs::write(root.join("var/lib/dpkg/status"), "").expect("a file");
    let users = "root:x:0:0::/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/bin/false\nman:x:6:12::/var/cache/man:/bin/false\n";
    fs::write(root.join("etc/passwd"), users).expect("a file");
    fs::write(root.join("etc/group"), "root:x:0:\nman:x:12:\n").expect("a file");
}

/// With files of another user, one of which nobody else may look at.
const PACKAGE_OF_MAN: &str = "mkdir -p tiny/DEBIAN tiny/usr/bin
printf 'Package: sessile-tiny\\nVersion: 1\\nArchitecture: all\\nMaintainer: n <n@example.com>\\nDescription: tiny\\n' \
    >tiny/DEBIAN/control
printf '#!/bin/sh\\nmkdir -p /var/lib/tiny/closed && echo s >/var/lib/tiny/closed/secret && chown -R man:man /var/lib/tiny && chmod 700 /var/lib/tiny/closed\\n' >tiny/DEBIAN/postinst
printf '#!/bin/sh\\necho installed\\n' >tiny/usr/bin/sessile-tiny
chmod 755 tiny/DEBIAN/postinst tiny/usr/bin/sessile-tiny
dpkg-deb --build tiny >/dev/null";

/// An ordinary user, with a range of ids or without.
fn ordinary(range: &str) -> Harness {
    let lists = tempfile::tempdir().expect("a directory");
    let list = lists.path().join("ids");
    fs::write(&list, range).expect("a file");
    let list = list.display();
    let script = format!("for f in subuid subgid; do mount --bind {list} /etc/$f; done");
    Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")).where_mounted(&script)
}

#[test]
fn an_ordinary_user_with_a_range_of_ids_installs_packages() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("a range of user ids");
    }
    if !needs::has_program("newuidmap") || !needs::has_program("apt-get") {
        return;
    }
    let h = ordinary("nobody:100000:65536\n");
    let tree = h.path("tree");
    make_debian(&tree);
    fs::create_dir(h.path("work")).expect("a directory");
    for path in [&tree, &h.path("work")] {
        give_to_owner(&h, path);
    }
    let (tree, work) = (tree.to_str().expect("text").to_owned(), h.path("work"));
    let work = work.to_str().expect("text");
    let s =
        h.session_with(&["--sandbox", "full-access", "--root", "--rootfs", &tree, "--cwd", work]);
    s.run(PACKAGE_OF_MAN).exits(0);
    s.run("apt-get install --yes ./tiny.deb >log 2>&1 || { cat log; false; }").exits(0);
    let seen =
        "sessile-tiny; stat -c '%U %a' /var/lib/tiny/closed; cat /var/lib/tiny/closed/secret";
    s.run(seen).exits(0).prints("installed\nman 700\ns\n");
    assert!(!Path::new(&tree).join("usr/bin/sessile-tiny").exists());
    // A copy has the same users, and what is theirs alone.
    let forked = h.sessile(&["fork", s.id(), "--files", "copy"]).exits(0).json();
    assert_eq!(forked["left"], serde_json::json!([]));
    let fork = h.session_called(forked["session_ids"][0].as_str().expect("an id"));
    fork.run(seen).exits(0).prints("installed\nman 700\ns\n");
    // And all of it goes with the sessions.
    let _ = h.sessile(&["end", "--all"]).exits(0);
    let _ = h.sessile(&["cleanup"]).exits(0);
    let left = fs::read_dir(h.sessions_dir()).expect("a directory");
    let left = left.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let left: Vec<String> = left.filter(|name| name.contains("sess_")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn an_ordinary_user_without_a_range_is_told_how_to_get_one_and_has_root_all_the_same() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let h = ordinary("ann:100000:65536\n");
    let found: serde_json::Value =
        serde_json::from_str(&h.sessile(&["sandbox", "check"]).text()).expect("JSON");
    let findings = found["findings"].as_array().expect("a list");
    let packages = findings.iter().find(|one| one["what"] == "packages with --root");
    let packages = packages.expect("a finding");
    assert_eq!(packages["status"], "missing", "{packages}");
    let command = "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 nobody";
    assert!(packages["remedy"].as_str().expect("text").contains(command), "{packages}");
    let tree = h.path("tree");
    make_system(&tree);
    fs::create_dir(h.path("work")).expect("a directory");
    for path in [&tree, &h.path("work")] {
        give_to_owner(&h, path);
    }
    let (tree, work) = (tree.to_str().expect("text").to_owned(), h.path("work"));
    let work = work.to_str().expect("text");
    let args = ["start", "--sandbox", "full-access", "--root", "--rootfs", &tree, "--cwd", work];
    let started = h.sessile(&args).exits(0).json();
    assert!(started["notes"][0].as_str().expect("a note").contains(command), "{started}");
    let s = h.session_called(started["session_id"].as_str().expect("an id"));
    s.run("echo x >/usr/local/bin/x; id -u").exits(0).prints("0\n");
}
