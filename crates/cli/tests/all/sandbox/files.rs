//! Files of a session in a sandbox, from outside: as the session sees them.

use sessile_testkit::{Server, harness};

#[test]
fn files_are_those_that_the_session_sees_and_may_change() {
    let h = harness!();
    std::fs::write(h.path("a"), "of the host\n").expect("a file");
    let server = h.serve();
    let put = |server: &Server, session: &str, path: &str| {
        server.owner("PUT", &format!("{session}/files/content?path={path}")).file(b"sent\n").send()
    };
    let sandboxed = |preset: &str| {
        let started = h.session_with(&["--sandbox", preset]);
        format!("/v1/sessions/{}", started.id())
    };
    let s = sandboxed("full-access");
    assert_eq!(server.prints_at(&s, "echo inside > b; pwd"), "/workspace\n");
    let read = |path: &str| server.get(&format!("{s}/files/content?path={path}"));
    assert_eq!(read("b").is(200).text(), "inside\n");
    assert_eq!(read("/workspace/a").is(200).text(), "of the host\n");
    put(&server, &s, "a").is(200);
    put(&server, &s, "c").is(201);
    assert_eq!(server.prints_at(&s, "cat a c; stat -c %U c"), "sent\nsent\nagent\n");
    // In the layer, not in the directory below it.
    assert_eq!(std::fs::read_to_string(h.path("a")).expect("a file"), "of the host\n");
    assert!(!h.path("b").exists() && !h.path("c").exists());
    server.exec_at(&s, "ln -s /etc/passwd out; ln -s ../etc up");
    for path in ["out", "up/passwd", "/etc/passwd"] {
        read(path).is_refused(403, "outside_workspace");
    }
    let reader = sandboxed("read-only");
    server.exec_at(&reader, "true");
    put(&server, &reader, "d").is_refused(403, "permission_denied");
    assert!(!h.path("d").exists());
}

/// By the file system of rules; overlayfs by itself cannot do it.
#[test]
fn a_directory_that_was_there_is_renamed_with_all_that_is_in_it() {
    let h = harness!();
    for path in ["d/e/b", "d/a", "d/.env", "d/secrets/x"] {
        std::fs::create_dir_all(h.path(path).parent().expect("a parent")).expect("a directory");
        std::fs::write(h.path(path), format!("{path}\n")).expect("a file");
    }
    let s = h.session_with(&["--sandbox", "development"]);
    s.run("chmod 750 d/e; touch -d 2001-01-01 d/e; exec 7>>d/a; cd d/e").exits(0);
    s.run_in("python", "import os; os.chdir('/workspace'); os.rename('d', 'q')").exits(0);
    // Who stands in it, or has a file of it open, goes on.
    s.run("pwd -P; ls; echo more >&7; exec 7>&-; cd /workspace; cat q/a; find q | sort")
        .exits(0)
        .prints("/workspace/q/e\nb\nd/a\nmore\nq\nq/a\nq/e\nq/e/b\n");
    s.run("stat -c '%a %y' q/e | cut -c1-14; test ! -e d").exits(0).prints("750 2001-01-01\n");
    // What is hidden went along, hidden.
    s.run("mkdir t; mv -T q t && mv t u; cat u/e/b; ls -A u; rmdir u/secrets || cat u/.env")
        .exits(1)
        .prints("d/e/b\na\ne\n");
    s.run_in("python", "os.mkdir('x'); os.mkdir('x/y')").exits(0);
    s.run_in("python", "os.rename('u', 'x')").complains("Directory not empty");
    s.run("cat u/a").exits(0).prints("d/a\nmore\n");
    assert_eq!(std::fs::read_to_string(h.path("d/a")).expect("a file"), "d/a\n");
    let told = h.sessile(&["diff", s.id(), "--json"]).json();
    let paths: Vec<_> = told["changes"].as_array().expect("changes").iter().collect();
    assert!(paths.iter().all(|change| !change["path"].to_string().contains("env")), "{told}");
    assert!(told["changes"].to_string().contains("\"from\":\"d/e/b\""), "{told}");
}

/// The kernel keeps what it was told of a directory, also when a program has read only the
/// first names, and goes on there for the next reader. Offsets in a tmpfs are small numbers
/// that mean something else after the directory has moved to the layer.
#[test]
fn a_directory_on_a_tmpfs_that_was_read_in_part_lists_each_name_once_when_it_has_moved() {
    if !rustix::process::geteuid().is_root() {
        return sessile_testkit::needs::not_permitted("mounts");
    }
    let h = harness!();
    let place = h.root();
    let place = place.display();
    let files = "mkdir -p d/e d/secrets; touch d/e/b d/a d/.env d/secrets/x";
    let h = h.where_mounted(&format!("mount -t tmpfs small '{place}'; cd '{place}'; {files}"));
    let s = h.session_with(&["--sandbox", "development"]);
    let part = "import os\nwith os.scandir('d') as listing: next(listing)\n";
    s.run_in("python", format!("os = __import__('os'); os.chmod('d/e', 0o750)\n{part}")).exits(0);
    s.run_in("python", "os.rename('d', 'q')").exits(0);
    for _ in 0..2 {
        s.run("ls -A q").exits(0).prints("a\ne\n");
    }
    // As if nobody had begun.
    s.run("touch q/c; ls -A q; ls -A q").exits(0).prints("a\nc\ne\na\nc\ne\n");
}

#[test]
fn a_workspace_with_a_mount_in_it_is_refused_by_name() {
    if !rustix::process::geteuid().is_root() {
        return sessile_testkit::needs::not_permitted("mounts");
    }
    let h = harness!();
    std::fs::create_dir_all(h.path("work/in it")).unwrap();
    let place = h.path("work/in it");
    let h = h.where_mounted(&format!("mount -t tmpfs small '{}'", place.display()));
    let work = h.path("work");
    let start = |files: &str| {
        let work = work.to_str().unwrap();
        h.sessile(&["start", "--sandbox", "full-access", "--files", files, "--cwd", work])
    };
    let errors = start("overlay").exits(1).errors();
    assert!(errors.contains(place.to_str().unwrap()), "{errors}");
    assert!(errors.contains("--files direct"), "{errors}");
    let _ = start("direct").exits(0);
}
