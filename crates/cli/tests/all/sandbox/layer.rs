//! The layer of a session: what it changed, brought to the real directory, or
//! dropped, while the session lives.

use serde_json::Value;
use sessile_testkit::{Harness, Session, harness, needs};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

/// A policy by mounts alone, and one by the file system of rules.
const PRESETS: [&str; 2] = ["full-access", "development"];

fn sandboxed<'h>(h: &'h Harness, preset: &str) -> Session<'h> {
    h.session_with(&["--sandbox", preset])
}

/// A command's stdout, if it succeeded.
fn told(s: &Session<'_>, command: &str, args: &[&str]) -> String {
    let output = s.harness().sessile(&[&[command, s.id()], args].concat());
    let (stdout, stderr) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(output.status.success(), "{command} {args:?}: {}", stderr.expect("text"));
    stdout.expect("text")
}

/// Its message, if it was refused.
fn refused(s: &Session<'_>, command: &str, args: &[&str]) -> String {
    let output = s.harness().sessile(&[&[command, s.id()], args].concat());
    assert!(!output.status.success(), "{command} {args:?} should be refused");
    String::from_utf8(output.stderr).expect("text")
}

fn paths(s: &Session<'_>, command: &str, args: &[&str], field: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(&told(s, command, args)).expect("JSON");
    serde_json::from_value(answer[field].clone()).expect("paths")
}

fn changed(s: &Session<'_>) -> Vec<String> {
    let diff: Value = serde_json::from_str(&told(s, "diff", &["--json"])).expect("JSON");
    let path = |change: &Value| change["path"].as_str().expect("a path").to_owned();
    diff["changes"].as_array().expect("changes").iter().map(path).collect()
}

#[test]
fn a_diff_tells_every_kind_of_change() {
    for preset in PRESETS {
        let h = harness!();
        for (name, text) in
            [("a", "1\n2\n3\n"), ("gone", "bye\n"), ("old", "moved\n"), ("m", "x\n")]
        {
            fs::write(h.path(name), text).expect("a file");
        }
        fs::write(h.path("bin"), [0, 1]).expect("a file");
        symlink("a", h.path("link")).expect("a link");
        fs::create_dir(h.path("d")).expect("a directory");
        fs::write(h.path("d/x"), "x\n").expect("a file");
        let s = sandboxed(&h, preset);
        s.run(
            "sed -i s/2/two/ a; rm gone; mv old new; printf '\\0\\2' >bin; ln -sf bin link
             chmod 700 m; rm -r d; mkdir d empty; echo z >d/z; mkfifo pipe; printf 'no end' >e",
        )
        .exits(0);
        let diff = told(&s, "diff", &[]);
        for part in [
            "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n",
            "deleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
            "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n",
            "Binary files a/bin and b/bin differ: 2 and 2 bytes\n",
            "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-a\n",
            "diff --git a/m b/m\nold mode 100644\nnew mode 100700\n",
            "--- a/d/x\n+++ /dev/null\n",
            "--- /dev/null\n+++ b/d/z\n@@ -0,0 +1 @@\n+z\n",
            "directory empty: added, mode 0755\n",
            "special file pipe: added",
            "+no end\n\\ No newline at end of file\n",
        ] {
            assert!(diff.contains(part), "{preset}: {part} is missing in\n{diff}");
        }
        let stat = told(&s, "diff", &["--stat", "a", "/workspace/bin"]);
        assert_eq!(
            stat,
            " a   | 2 +-\n bin | Bin 2 -> 2 bytes\n 2 paths changed, 1 insertions(+), 1 deletions(-)\n"
        );
        assert_eq!(told(&s, "diff", &["m"]).lines().count(), 3);
        for command in ["diff", "apply"] {
            let error = refused(&s, command, &["m", "nothing"]);
            assert!(error.contains("the session has changed nothing at nothing"), "{error}");
        }
    }
}

/// What differs is what git itself would make of it.
#[test]
fn git_takes_a_diff_with_renames_modes_and_files_that_are_not_text() {
    for preset in PRESETS {
        let h = harness!();
        let text: String = (0..20).map(|n| format!("line {n}\n")).collect();
        for name in ["m.sh", "b.txt", "same.txt"] {
            fs::write(h.path(name), format!("{name}\n{text}")).expect("a file");
        }
        for name in ["old.bin", "changed.bin"] {
            fs::write(h.path(name), [0, 1]).expect("a file");
        }
        let s = sandboxed(&h, preset);
        s.run(
            "chmod +x m.sh; mv m.sh n.sh; mkdir d; mv b.txt d/b.txt; sed -i s/7/seven/ d/b.txt
             echo end >>same.txt; rm old.bin; printf '\\0new' >new.bin; printf '\\0x' >changed.bin
             chmod 700 changed.bin",
        )
        .exits(0);
        let diff = told(&s, "diff", &[]);
        for part in [
            "diff --git a/m.sh b/n.sh\nold mode 100644\nnew mode 100755\nsimilarity index 100%\n\
             rename from m.sh\nrename to n.sh\n",
            "rename from b.txt\nrename to d/b.txt\n--- a/b.txt\n+++ b/d/b.txt\n@@ ",
            "Binary files a/changed.bin and b/changed.bin differ: 2 and 2 bytes\n\
             diff --git a/changed.bin b/changed.bin\nold mode 100644\nnew mode 100700\n",
            "Binary files a/old.bin and /dev/null differ: 2 and 0 bytes\n",
            "Binary files /dev/null and b/new.bin differ: 0 and 4 bytes\n",
        ] {
            assert!(diff.contains(part), "{preset}: {part} is missing in\n{diff}");
        }
        let stat = told(&s, "diff", &["--stat"]);
        assert!(stat.contains("m.sh => n.sh") && stat.contains("b.txt => d/b.txt"), "{stat}");
        // Beside the sessions' directory, which is none of git's.
        let copy = h.path("copy");
        fs::create_dir(&copy).expect("a directory");
        for name in ["m.sh", "b.txt", "same.txt", "old.bin", "changed.bin"] {
            fs::copy(h.path(name), copy.join(name)).expect("a copy");
        }
        let patch = h.path("patch");
        fs::write(&patch, &diff).expect("a file");
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).arg(&patch).current_dir(&copy);
            let output = command.output().expect("git");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{args:?}: {said}\n{diff}");
        };
        git(&["apply", "--check"]);
        git(&["apply"]);
        let mode = fs::metadata(copy.join("n.sh")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        let moved = fs::read_to_string(copy.join("d/b.txt")).expect("a file");
        assert!(moved.contains("line seven\n") && !copy.join("b.txt").exists());
        // Told, and left as it was.
        assert_eq!(fs::read(copy.join("old.bin")).expect("a file"), [0, 1]);
    }
}

#[test]
fn patch_takes_a_diff_with_spaces_in_names() {
    if !needs::has_program("patch") {
        return;
    }
    let h = harness!();
    let text: String = (0..20).map(|n| format!("line {n}\n")).collect();
    let (outside, copy) = (h.path("w"), h.path("copy"));
    for directory in [&outside, &copy] {
        fs::create_dir(directory).expect("a directory");
        for name in ["a b", "c d", "e f"] {
            fs::write(directory.join(name), &text).expect("a file");
        }
    }
    let work = outside.to_str().expect("text");
    let s = h.session_with(&["--sandbox", "full-access", "--cwd", work]);
    s.run("mv 'a b' 'b a'; echo x | tee -a 'b a' >>'c d'; rm 'e f'; echo y >'g h'").exits(0);
    fs::write(h.path("patch"), told(&s, "diff", &[])).expect("a file");
    let mut command = std::process::Command::new("patch");
    command.args(["-p1", "--batch", "-i"]).arg(h.path("patch")).current_dir(&copy);
    let output = command.output().expect("patch");
    assert!(output.status.success(), "{output:?}");
    let _ = told(&s, "apply", &[]);
    let seen = |directory: &std::path::Path| {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let file = |path: std::path::PathBuf| (path.clone(), fs::read_to_string(path));
        let seen = entries.map(|entry| file(entry.path())).map(|(path, text)| {
            (path.file_name().expect("a name").to_owned(), text.expect("a file"))
        });
        seen.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(seen(&outside), seen(&copy));
}

#[test]
fn what_is_bound_into_the_workspace_is_no_change_of_the_session() {
    let h = harness!();
    let other = h.state_home().join("other");
    fs::create_dir(&other).expect("a directory");
    fs::write(other.join(".env"), "of the host\n").expect("a file");
    let bind = format!("{}:/workspace/new/sub", other.display());
    let s = h.session_with(&["--sandbox", "full-access", "--bind", &bind]);
    s.run("cat new/sub/.env").exits(0).prints("of the host\n");
    assert_eq!(told(&s, "diff", &[]), "");
    s.run("echo mine >new/mine; echo written >new/sub/file").exits(0);
    assert_eq!(changed(&s), ["new", "new/mine"]);
    assert_eq!(paths(&s, "apply", &[], "applied"), ["new", "new/mine"]);
    assert_eq!(fs::read_to_string(other.join("file")).expect("a file"), "written\n");

    // Where rules differ by path, they would not hold there.
    let refused = |options: &[&str]| {
        let output = h.sessile(&[&["start", "--bind", &bind][..], options].concat());
        assert!(!output.status.success(), "{options:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for preset in ["development", "agent-safe", "view-only"] {
        let error = refused(&["--sandbox", preset]);
        assert!(error.contains("the rules for paths of the workspace would not hold"), "{error}");
    }
    let error = refused(&["--sandbox", "read-only"]);
    assert!(error.contains("the workspace can only be read: add :ro"), "{error}");
}

#[test]
fn changes_are_applied_and_are_no_changes_any_more() {
    for preset in PRESETS {
        let h = harness!();
        fs::write(h.path("a"), "1\n").expect("a file");
        fs::write(h.path("gone"), "bye\n").expect("a file");
        fs::create_dir(h.path("was")).expect("a directory");
        fs::write(h.path("was/in"), "in\n").expect("a file");
        let s = sandboxed(&h, preset);
        s.run("echo 2 >>a; rm gone; mkdir -p n/e; echo f >n/e/f; chmod 755 n/e/f; ln -s /etc up")
            .exits(0);
        s.run("rm -r was; echo file >was; mkfifo pipe").exits(0);
        assert_eq!(paths(&s, "apply", &["n/e/f"], "applied"), ["n/e/f"]);
        assert_eq!(fs::read_to_string(h.path("n/e/f")).expect("a file"), "f\n");
        let mode = fs::metadata(h.path("n/e/f")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        let applied = paths(&s, "apply", &[], "applied");
        assert_eq!(applied, ["a", "gone", "up", "was", "was/in"], "{preset}");
        assert_eq!(fs::read_to_string(h.path("a")).expect("a file"), "1\n2\n");
        assert_eq!(fs::read_to_string(h.path("was")).expect("a file"), "file\n");
        assert!(!h.path("gone").exists() && !h.path("pipe").exists());
        assert_eq!(fs::read_link(h.path("up")).expect("a link").to_str(), Some("/etc"));
        assert_eq!(changed(&s), ["pipe"]);
        // Nor is it one when people go on with the file.
        fs::write(h.path("a"), "of people\n").expect("a file");
        assert_eq!(changed(&s), ["pipe"]);
        assert!(refused(&s, "apply", &["a"]).contains("has changed nothing at a"));
        s.run("echo 3 >>a").exits(0);
        assert!(refused(&s, "apply", &["a"]).contains("a (it was changed there)"));
    }
}

#[test]
fn what_changed_in_the_real_directory_is_refused_by_name() {
    let h = harness!();
    for name in ["a", "b", "c", "d", "e"] {
        fs::write(h.path(name), format!("{name}\n")).expect("a file");
    }
    let s = sandboxed(&h, "full-access");
    s.run("for f in a b c new; do echo session >$f; done; rm d; mv e f; echo more >>f").exits(0);
    fs::write(h.path("b"), "people\n").expect("a file");
    fs::remove_file(h.path("c")).expect("no file");
    fs::write(h.path("d"), "people\n").expect("a file");
    fs::write(h.path("new"), "people\n").expect("a file");
    let message = refused(&s, "apply", &[]);
    for part in [
        "b (it was changed there)",
        "c (it was deleted there)",
        "d (it was changed there)",
        "new (it was made there)",
    ] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
    assert!(!message.contains(" a ("), "{message}");
    // All or nothing.
    assert_eq!(fs::read_to_string(h.path("a")).expect("a file"), "a\n");
    assert_eq!(paths(&s, "apply", &["a"], "applied"), ["a"]);
    assert_eq!(paths(&s, "apply", &["--force", "b", "c", "d", "new"], "applied").len(), 4);
    for name in ["a", "b", "c", "new"] {
        assert_eq!(fs::read_to_string(h.path(name)).expect("a file"), "session\n");
    }
    assert!(!h.path("d").exists());
}

#[test]
fn changes_are_dropped_while_programs_use_them() {
    for preset in PRESETS {
        let h = harness!();
        fs::write(h.path("a"), "real\n").expect("a file");
        fs::create_dir_all(h.path("d/deep")).expect("a directory");
        fs::write(h.path("d/deep/x"), "x\n").expect("a file");
        let s = sandboxed(&h, preset);
        s.run("echo session >a; mkdir -p new/dir; echo n >new/dir/n; rm -r d; cd new/dir").exits(0);
        s.run_in("python", "f = open('/workspace/a', 'a+'); f.seek(0); print(f.read(), end='')")
            .exits(0)
            .prints("session\n");
        assert_eq!(paths(&s, "discard", &["d/deep/x"], "discarded"), ["d/deep/x"]);
        s.run("cat /workspace/d/deep/x").exits(0).prints("x\n");
        assert_eq!(changed(&s), ["a", "new", "new/dir", "new/dir/n"], "{preset}");
        paths(&s, "discard", &[], "discarded");
        assert!(changed(&s).is_empty());
        s.run("cd /workspace; cat a; ls -d a d new 2>/dev/null").prints("real\na\nd\n").is_kept();
        // Who has it open goes on with what was dropped.
        s.run_in("python", "f.seek(0); print(f.read(), end='')").exits(0).prints("session\n");
        s.run("echo again >a; mkdir new; ls new; rm a").exits(0);
        assert_eq!(changed(&s), ["a", "new"]);
        assert_eq!(fs::read_to_string(h.path("a")).expect("a file"), "real\n");
    }
}

/// Only root may read the environment of a kernel in a sandbox.
#[test]
fn an_ordinary_user_drops_changes_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    let owner = fs::metadata(h.root()).expect("a directory").uid();
    fs::write(h.path("a"), "real\n").expect("a file");
    chown(h.path("a"), Some(owner), Some(owner)).expect("it is given away");
    let s = sandboxed(&h, "full-access");
    s.run("echo session >a; echo n >new").exits(0);
    assert_eq!(paths(&s, "discard", &["a"], "discarded"), ["a"]);
    s.run("cat a new").exits(0).prints("real\nn\n");
}

#[test]
fn what_is_hidden_is_neither_told_nor_touched() {
    let h = harness!();
    fs::create_dir_all(h.path("d")).expect("a directory");
    fs::write(h.path("d/.env"), "hidden\n").expect("a file");
    fs::write(h.path("d/v"), "v\n").expect("a file");
    let s = sandboxed(&h, "development");
    s.run("rm -r d; echo x >.env; mkdir sub; echo y >sub/key.pem; echo z >sub/z").exits(0);
    assert_eq!(changed(&s), ["d/v", "sub", "sub/z"]);
    assert_eq!(told(&s, "diff", &[]).matches("diff --git").count(), 2);
    // The real directory gets a hidden file where the session deletes one.
    fs::create_dir(h.path("late")).expect("a directory");
    s.run("rmdir late").exits(0);
    fs::write(h.path("late/secret.key"), "hidden\n").expect("a file");
    let answer: Value = serde_json::from_str(&told(&s, "apply", &["--force"])).expect("JSON");
    assert_eq!(answer["applied"], serde_json::json!(["d/v", "sub", "sub/z"]));
    assert_eq!(answer["skipped"][0]["path"], "late");
    assert!(h.path("d/.env").exists() && h.path("late/secret.key").exists());
    assert!(!h.path("d/v").exists() && !h.path("sub/key.pem").exists());
}

#[test]
fn no_layer_leads_out_of_the_real_directory() {
    let check = |h: &Harness| {
        let outside = h.path("outside");
        let workspace = h.path("workspace");
        for directory in [&outside, &workspace, &workspace.join("d")] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let owner = fs::metadata(h.root()).expect("a directory");
        for directory in [&outside, &workspace, &workspace.join("d")] {
            chown(directory, Some(owner.uid()), Some(owner.gid())).expect("it is given away");
        }
        fs::write(outside.join("kept"), "kept\n").expect("a file");
        symlink(&outside, workspace.join("out")).expect("a link");
        let at = workspace.to_str().expect("text");
        let s = h.session_with(&["--sandbox", "full-access", "--cwd", at]);
        s.run("rm out; mkdir out; echo evil >out/kept; echo evil >out/new; echo evil >d/f")
            .exits(0);
        // A directory that the session has written to becomes a link meanwhile.
        fs::remove_dir(workspace.join("d")).expect("no directory");
        symlink(&outside, workspace.join("d")).expect("a link");
        refused(&s, "apply", &[]);
        told(&s, "apply", &["--force"]);
        assert_eq!(fs::read_to_string(outside.join("kept")).expect("a file"), "kept\n");
        assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 1);
        for made in ["out/kept", "out/new", "d/f"] {
            assert_eq!(fs::read_to_string(workspace.join(made)).expect("a file"), "evil\n");
        }
    };
    check(&harness!());
    if rustix::process::geteuid().is_root() {
        check(&Harness::unprivileged(env!("CARGO_BIN_EXE_sessile")));
    }
}

#[test]
fn sessions_without_a_layer_say_so() {
    let h = harness!();
    let plain = h.session();
    let direct = h.session_with(&["--sandbox", "full-access", "--files", "direct"]);
    for command in ["diff", "apply", "discard"] {
        assert!(refused(&plain, command, &[]).contains("has no sandbox"));
        assert!(refused(&direct, command, &[]).contains("--files direct"));
    }
    let reader = sandboxed(&h, "read-only");
    reader.run("touch x").exits(1);
    assert_eq!(told(&reader, "diff", &[]), "");
}

#[test]
fn a_layer_is_used_over_http() {
    let h = harness!();
    fs::write(h.path("a,b"), "1\n").expect("a file");
    let server = h.serve();
    let s = sandboxed(&h, "development");
    let at = format!("/v1/sessions/{}", s.id());
    server.exec_at(&at, "echo 2 >>a,b; echo c >c; echo d >d");
    let diff = server.get(&format!("{at}/diff?path=a%5C,b,c")).is(200).json();
    assert_eq!(diff["insertions"], 2);
    assert_eq!(diff["changes"][0]["path"], "a,b");
    assert_eq!(diff["changes"][1]["change"], "added");
    assert!(diff["diff"].as_str().expect("text").contains("+++ b/c\n"));
    let stat = server.get(&format!("{at}/diff?stat=true")).is(200).json();
    assert!(
        stat["diff"]
            .as_str()
            .expect("text")
            .ends_with(" 3 paths changed, 3 insertions(+), 0 deletions(-)\n")
    );
    server.get(&format!("{at}/diff?path=..")).is_refused(400, "bad_path");
    fs::write(h.path("a,b"), "people\n").expect("a file");
    let post = |verb: &str, body: Value| server.post(&format!("{at}/{verb}"), &body);
    post("apply", serde_json::json!({})).is_refused(409, "layer_conflict");
    let applied = post("apply", serde_json::json!({"paths": ["c"]})).is(200).json();
    assert_eq!(applied, serde_json::json!({"applied": ["c"], "skipped": []}));
    let dropped = post("discard", serde_json::json!({"paths": ["d"]})).is(200).json();
    assert_eq!(dropped, serde_json::json!({"discarded": ["d"], "skipped": []}));
    post("apply", serde_json::json!({"paths": ["d"]})).is_refused(404, "file_not_found");
    post("apply", serde_json::json!({"force": true})).is(200);
    assert_eq!(fs::read_to_string(h.path("a,b")).expect("a file"), "1\n2\n");
    // To whom only confined sessions are given does not write to the directory.
    let made = h.sessile(&["token", "create", "agent", "--sandbox", "full-access"]).json();
    let token = made["token"].as_str().expect("a token");
    let with_token =
        |path: &str| server.request("POST", path).token(token).json(&serde_json::json!({})).send();
    let session = with_token("/v1/sessions").is(201).json();
    let at = format!("/v1/sessions/{}", session["session_id"].as_str().expect("an id"));
    with_token(&format!("{at}/apply")).is_refused(403, "forbidden");
    with_token(&format!("{at}/discard")).is(200);
    let plain = h.session();
    server.get(&format!("/v1/sessions/{}/diff", plain.id())).is_refused(409, "no_layer");
}
